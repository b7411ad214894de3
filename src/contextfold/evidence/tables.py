"""Tables and records in outputs: which line names the columns of a row, and what differs from the records beside it.

What belongs here: recognizing the head of a table by its form, whatever wrote it (psql, Markdown, CSV, ``ps``), and the
exceptions among rows and among the fields of objects (JSON, YAML). What does not: what they are worth (``blocks``).

A row without the line that names its columns shows values without their meaning, and under the head of another table
it says what is not so. So does a field without the one that names its object, and a message without its commit.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from contextfold.evidence.reading import read_line

LEAST_ROWS = 2
"""Rows below a line that make it the head of a table, each with figures in it."""

FARTHEST = 500
"""Lines above a row among which its head is looked for."""

LONGEST_CELL = 32
"""Characters of what names a column."""

LEAST_RECORDS, MOST_OTHERS = 10, 0.1
"""Records among which one can be an exception; and the share of them that may have another value than the others."""

FARTHEST_FIELD = 40
"""Lines above a field among which the one that names its object is looked for."""

LEAST_ALIKE, LEAST_LINES = 4, 3
"""Lines with one field, or that look alike, which make a list of records; and lines of each of them."""

LEAST_WORTH = 0.8
"""What getting a name wrong must cost for a line to be called by it."""

_CELLS = {",": re.compile(","), "\t": re.compile("\t"), " ": re.compile(r"\s{2,}")}
_BORDER = re.compile(r"[|│┃]")
_QUOTED = re.compile(r'"(?:[^"]++|"")*+"')
_PERIOD = re.compile(r"(?:(?:19|20)\d\d|[A-Z]{1,3}'?\d{1,2}|\d\d?[./]\d\d?[./]\d{2,4})(?!\w)")
"""A year, a quarter or a day: figures that name a column."""

_MARKS: dict[Callable[[str], object], str] = {
    re.compile(cells).search: mark
    for mark, cells in (
        ("|", r"[|│┃]"),
        ("\t", r"\t"),
        (" ", r"\S  +\S++(?: \S++)*+  +\S"),
        (",", r"^(?:[^,]*+,[^\s,]*+){2}"),
    )
}
"""What tells that a line has cells, and what parts them. Borders come first: beside them blanks fill cells up."""

_FIGURE = re.compile(r"\d")
is_field = re.compile(r"""(?P<item>- )?(["']?)(?P<key>[A-Za-z][\w.-]{0,40})\2: (?=\S)""").match
"""Whether a line is a field of an object in JSON or YAML."""

_NAMING = re.compile(r"(?i:(?:.*[_.-])?(?:id|name|key|title|uuid|path|url|sha|email|number|code))|.*(?:Id|Name|Key)")
"""Keys of what an object is called by."""


def head_of(texts: Sequence[str], row: int, known: dict[tuple[str, int], int | None]) -> int | None:
    """The number of the line that names the columns of this one, if it is a row of a table among these lines.

    ``known``: what was found before, to which this is added. It saves looking again, and changes no answer: the same
    lines have the same heads, in whatever order they are asked of.
    """
    if ("", row) not in known:
        known["", row] = _head_of(texts, row, known)
    return known["", row]


def _head_of(texts: Sequence[str], row: int, known: dict[tuple[str, int], int | None]) -> int | None:
    has_sign = _row_sign(texts[row])
    head = _nearest(texts, row - 1, has_sign, known) if has_sign is not None else None
    if head is None or row - head >= FARTHEST:
        return None
    form = _form(texts[head])
    rows = texts[head + 1 : head + 1 + LEAST_ROWS]
    return head if _fits(_form(texts[row]), form) and _has_rows(rows, form) else None


def _nearest(
    texts: Sequence[str], last: int, has_sign: Callable[[str], object], known: dict[tuple[str, int], int | None]
) -> int | None:
    """The nearest line from ``last`` upward that names columns, with lines of cells alone between."""
    mark, n = _MARKS[has_sign], last
    found = None
    while n >= 0:
        if (mark, n) in known:
            found = known[mark, n]
            break
        if not has_sign(texts[n]):
            break
        if not _has_figures(texts[n]) and _names_columns(texts[n], _form(texts[n])):
            found = n
            break
        n -= 1
    known.update(((mark, passed), found) for passed in range(max(n, 0), last + 1))
    return found


def _row_sign(text: str) -> Callable[[str], object] | None:
    """What tells whether another line has cells parted as this one has; None where it has none."""
    return next((has_sign for has_sign in _MARKS if has_sign(text)), None)


def _has_rows(texts: Sequence[str], head: _Form) -> bool:
    return len(texts) == LEAST_ROWS and all(_FIGURE.search(text) and _fits(_form(text), head) for text in texts)


_Form = tuple[str, int, int]
"""What parts the cells of a line, how many it has, and its words."""


def _form(text: str) -> _Form:
    has_sign = _row_sign(text)
    if has_sign is None:
        return "", 0, 0
    mark = _MARKS[has_sign]
    return mark, len(_cells(text, mark)), 0 if mark == "|" else len(text.split())


def unquoted(text: str) -> str:
    """A row of CSV whose quoted cells have other signs in place of their commas."""
    return _QUOTED.sub(lambda cell: cell[0].replace(",", ";"), text) if '"' in text else text


def _cells(text: str, mark: str) -> list[str]:
    text = unquoted(text) if mark == "," else text
    return _BORDER.split(text.strip("|│┃")) if mark == "|" else _CELLS[mark].split(text)


def _fits(row: _Form, head: _Form) -> bool:
    """Whether a line has the cells that a head names. An index needs no name, and a last cell may have blanks."""
    if row[0] != head[0]:
        return False
    if row[0] == " ":
        return head[1] <= row[1] <= head[1] + 1 or row[2] >= head[2] > LEAST_ROWS
    return row[1] == head[1]


def _has_figures(text: str) -> bool:
    return _FIGURE.search(text) is not None and _FIGURE.search(_PERIOD.sub("", text)) is not None


def _names_columns(text: str, form: _Form) -> bool:
    mark, many, words = form
    if many < 2 or (mark in " ," and max(many, words if mark == " " else 0) < 3):
        return False
    if mark == "," and ", " in text:  # a sentence
        return False
    return all(len(cell) <= LONGEST_CELL and ": " not in cell for cell in _cells(text, mark))


# ---- exceptions ----


def exceptions(texts: Sequence[str], heads: dict[tuple[str, int], int | None]) -> dict[int, int]:
    """The lines whose field or cell has another value than nearly all records beside them: the one order that was not
    paid. For each the line that names it or its columns; those without count for nothing. ``heads``: as in ``head_of``.
    """
    if len(texts) < LEAST_RECORDS:
        return {}
    fields, tables = _records(texts)
    found: dict[int, int | None] = {}
    for numbers in fields.values():
        for n in _exceptional(numbers, [texts[n].rstrip(",") for n in numbers]):
            found[n] = heads["", n] = _naming(texts, n, numbers)
    for (mark, _), numbers in tables.items():
        rows = [_cells(texts[n], mark) for n in numbers] if len(numbers) >= LEAST_RECORDS else []
        for column in zip(*rows, strict=False):
            found.update((n, head_of(texts, n, heads)) for n in _exceptional(numbers, list(map(str.strip, column))))
    return {n: head for n, head in found.items() if head is not None}


def _records(texts: Sequence[str]) -> tuple[dict[str, list[int]], dict[tuple[str, int], list[int]]]:
    """The numbers of fields by their keys, and of rows by what parts their cells and how often."""
    fields: defaultdict[str, list[int]] = defaultdict(list)
    tables: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    # most outputs have too few of these signs for many records, and no line of theirs is looked at
    whole, least = "\n".join(texts), max(2 * LEAST_RECORDS, len(texts))
    has_fields = 4 * whole.count(":") >= least and 4 * whole.count(": ") >= least  # one sign is found four times faster
    signs = [sign for sign in ("|", "│", "┃", "\t", "  ") if whole.count(sign) >= least]
    commas = whole.count(",")
    has_commas = commas >= least and commas - whole.count(", ") >= least
    for n, text in enumerate(texts if has_fields or signs or has_commas else ()):
        if has_fields and ": " in text and (field := is_field(text)):
            fields[field["key"]].append(n)
            continue
        sign = "," if has_commas else ""
        for one in signs:
            if one in text:
                sign = one
                break
        if sign == "  ":
            tables[" ", len(list(filter(None, text.split(sign))))].append(n)
        elif sign and (many := (unquoted(text) if sign == "," else text).count(sign)) > 1:
            tables["|" if sign in "│┃" else sign, many].append(n)
    return fields, tables


def _exceptional(numbers: Sequence[int], values: Sequence[str]) -> Iterable[int]:
    """Those of some lines whose values differ from the one that nearly all have."""
    if len(numbers) < LEAST_RECORDS:
        return ()
    if len(set(values)) - 1 > MOST_OTHERS * len(values):  # most columns: to count their values takes longer
        return ()
    ((usual, many),) = Counter(values).most_common(1)
    if len(values) - many > MOST_OTHERS * len(values):
        return ()
    return [n for n, value in zip(numbers, values, strict=True) if value != usual]


def _naming(texts: Sequence[str], field: int, alike: Sequence[int]) -> int | None:
    """The line above a field that names its object: the nearest with such a key in JSON, the first one in YAML.
    ``alike``: all fields with the same key.

    Braces alone are no lines, and what another object or list parts from the field may be the record before. So there,
    the key must stand above the first of these fields, and not below the last.
    """
    named, passed = (_naming_in_json if texts[field].startswith('"') else _naming_in_yaml)(texts, field)
    found = None if named is None else is_field(texts[named])
    if found is None:
        return named
    first, behind = alike[0], alike[-1] + 1
    above, below = (
        {one["key"] for text in part if (one := is_field(text))}
        for part in (texts[max(0, first - FARTHEST_FIELD) : first], texts[behind : behind + FARTHEST_FIELD])
    )
    if not passed:  # behind each of these fields stands a list whose items begin so
        return None if found["item"] and found["key"] in below - above else named
    return named if found["key"] in above - below - passed else None


def _naming_in_json(texts: Sequence[str], field: int) -> tuple[int | None, set[str]]:
    """It, and what is not empty where another object or list stands between."""
    inner, passed = 0, set[str]()
    for n in range(field - 1, max(-1, field - FARTHEST_FIELD), -1):
        if texts[n].endswith(("{", "[")):
            inner -= 1
        elif not texts[n].endswith(","):
            inner, passed = inner + 1, {""}
        elif not inner:
            found = is_field(texts[n])
            if found is None or _NAMING.fullmatch(found["key"]):
                return (n if found else None), passed
        if inner < 0:  # the field's own object begins
            break
    return None, passed


def _naming_in_yaml(texts: Sequence[str], field: int) -> tuple[int | None, set[str]]:
    """It, and the keys with which items of lists between begin, which look alike and stand below a key of their own."""
    is_inner, passed = False, set[str]()
    for n in range(field - 1, max(-1, field - FARTHEST_FIELD), -1):
        found = is_field(texts[n])
        if is_inner:
            is_inner = not texts[n].endswith(":")
        elif found is None or texts[n + 1].startswith("- "):
            break
        elif found["item"]:
            if texts[max(0, n - FARTHEST_FIELD) : n + FARTHEST_FIELD].count(texts[n]) == 1:
                return n, passed
            is_inner = True
            passed.add(found["key"])
    return None, passed


# ---- records of several lines ----


Marks = dict[int, tuple[str, bool]]
"""Of lines that stand in each record of a list: the field, or how the line looks, and whether records differ in it."""


def marks_of(texts: Sequence[str], looks: Mapping[int, str]) -> Marks:
    """The lines that come again and again, some lines apart. ``looks``: of lines that look alike how each does."""
    kinds: defaultdict[str, list[int]] = defaultdict(list)
    for n, text in enumerate(texts):
        field = is_field(text)
        if mark := field["key"] if field else looks.get(n):
            kinds[mark].append(n)
    marks: Marks = {}
    for mark, numbers in kinds.items():
        gaps = [end - start for start, end in pairwise([*numbers, len(texts)])]
        if len(numbers) >= LEAST_ALIKE and min(gaps[:-1]) >= LEAST_LINES and max(gaps) <= FARTHEST_FIELD > numbers[0]:
            marks.update(dict.fromkeys(numbers, (mark, len({texts[n] for n in numbers}) >= LEAST_ALIKE)))
    return marks


def record_of(texts: Sequence[str], row: int, marks: Marks) -> int | None:
    """The line that names the record of several lines in which this one stands: the commit of its message, the link of
    what was found, the sender of a mail.
    """
    lines: list[int] = []
    own = marks.get(row)
    for n in range(row - 1, max(-1, row - FARTHEST_FIELD), -1):
        if n not in marks:
            if lines:
                break
        elif marks[n] == own:
            break
        else:
            lines.insert(0, n)
    if own is not None:  # the record before ends among these lines: what stands behind a line like this one is its own
        ends = [n for n in (*range(FARTHEST_FIELD), *range(len(texts) - FARTHEST_FIELD, len(texts))) if n in marks]
        last = {marks[n]: n for n in ends}
        first = {marks[n]: n for n in reversed(ends)}
        lines = [n for n in lines if first[marks[n]] < first[own] and last[marks[n]] < last[own]]
    if len({marks[n] for n in lines}) < len(lines):  # a log
        return None
    # a line that begins as this one does is another one of the same file
    worths = {
        n: max(read_line(texts[n], "tool").worths, default=0.0)
        for n in lines
        if marks[n][1] and texts[n][:8] != texts[row][:8]
    }
    by_worth = sorted(worths, key=lambda n: ("://" not in texts[n], worths[n] < LEAST_WORTH))
    return next((n for n in by_worth if worths[n]), None)
