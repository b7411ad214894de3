"""A message as lines that may be quoted, word for word, and what each of them holds.

What belongs here: cutting texts, calls and results into lines. What does not: what stands in a line (``reading``), and
what it is worth beside others (``choice``).

Lines are read in **books**, those of many messages together and each line once: a third of the lines of a session stand
in an earlier message, too.

A line holds **names** (identifiers that must be repeated exactly) and, where a person or the assistant speaks,
**terms** (its plain words). A decision, a preference or an open question often names nothing: all there is to know it
by are its words. Short messages of users are one line each, so that what people said stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from contextfold import identifiers, json_values, quoting
from contextfold.at_once import some_lines, some_words, split_lines
from contextfold.evidence.reading import Line, Lines, Source, read, read_line
from contextfold.evidence.tables import unquoted
from contextfold.harness import is_note, parted, pieces, without_reminders
from contextfold.messages import Media, Message, Opaque, Text, ToolCall, ToolResult, texts

# Passages of 160 to 240 characters lost against single lines at every budget that was tried.
WIDTH = 160
"""Characters. A longer source line, unless it is a row of a table, is cut into pieces of at most this size, at blanks
or punctuation."""

MOST_READ, MOST_OF_ONE_LINE = 1_300_000, 300_000
"""Characters of one output that are read for evidence; of one that is hardly broken into lines."""

WIDEST_ROW, LEAST_CELLS = 320, 4
"""Characters of a row of a table that stays whole, at most; and signs between cells that tell it is one, at least."""

WHOLE = 400
"""Characters. What was said up to this size, by a user or by an assistant that called no tool with it, is one line,
line breaks and all: half of what was said in a turn seldom tells what is asked about later."""

REMEMBERED = 4_096
"""Lines that a reader remembers, some 200 bytes each. With all lines of a session there is 5 % less to read."""

STEM = 6
"""Letters of a plain word that tell it from others: ``decided`` and ``decides`` are one term."""

_DATA = re.compile(r"[A-Za-z0-9+/_=-]{300,}")
_GUTTER = re.compile(r"[^\S\n]*(\d{1,9})(→|\t|[^\S\n]*\|(?=\s|$))")
"""A number before a row: that of a line in a listing, or the first cell of a table."""

_ESCAPED_BREAK = re.compile(r"(?<!\\)(?:\\++[nrt])+")
_GAP = re.compile(r"[^\s.!?]  +(?=\S)")
"""What parts the cells of a row that blanks fill up. Behind a sentence, two blanks part nothing."""

_BREAK = re.compile(r"[\s,;|&，。、；]")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_MOVE = re.compile(r"(?:\x1b\[(?:\d{0,4}[ABEFH]|\d{1,4};\d{0,4}[Hf]|;\d{0,4}[Hf]|[23]J|\?1049[hl]))+")
"""Moves of a terminal's cursor to other lines, and what wipes its screen."""

_STATE_END = re.compile(r"[\r\n]")
_ESCAPED_STATE = re.compile(r"(?<!\\)\\(?:r(?!\\n)|u001[bB]\[[\d;]{0,9}[ABEFHJ])")
_ESCAPED_SIGN = re.compile(r"(?<!\\)\\(n|r|u001[bB])")
_SIGNS = {"n": "\n", "r": "\r", "u001b": "\x1b"}
"""How JSON spells out what a terminal showed."""

_MANY = 3
"""A line with more quotation marks, or opening brackets of tags, than that in its width is JSON, or XML."""

_OBJECTS, _MEMBERS = ("},{", "}, {"), (',"', ', "', ',\\"', ', \\"')
"""What stands between two objects of a list and two members of an object, in JSON without line breaks."""

_CLOSED = re.compile(r"</[^<>]{1,40}>(?P<outer></[^<>]{1,40}>)?(?=\s*<\w)")
"""The end of an element that another one follows, and of the one around it."""

_SAYS = re.compile(r"[^\W_]").search
"""Whether there is a letter or digit in a text."""

_SAID = re.compile(rf"[{identifiers.CJK}]+|[^\W\d_{identifiers.CJK}]{{4,}}")
"""Where terms come from: words of four letters and more, and runs of CJK signs."""


# ---- lines of messages ----


def lines_of(message: Message) -> tuple[Line, ...]:
    """All lines of a message that hold a letter or digit, in order. Pure, so that a caller can keep them per message.

    Text, tool arguments and results; neither hidden reasoning nor encoded data.
    """
    return tuple(read_message(message).each())


def read_message(message: Message) -> Lines:
    """The same column by column."""
    return LineReader().read([message])[0]


class LineReader:
    """Reads messages as ``lines_of`` does, and remembers lines that it read lately. Not for several threads."""

    def __init__(self) -> None:
        self._books: dict[tuple[Source, bool], _Book] = {}

    def read(self, messages: Sequence[Message]) -> list[Lines]:
        """The lines of each of these messages."""
        # all are cut before any is read
        cut = [[self._entered(entry) for entry in _entries(message)] for message in messages]
        for book in self._books.values():
            book.read()
        found = [_put_together(runs) for runs in cut]
        if sum(map(len, self._books.values())) > REMEMBERED:
            self._books.clear()
        return found

    def _entered(self, entry: _Entry) -> _Run:
        if isinstance(entry, Line):
            return entry
        source, is_spoken, texts = entry
        book = self._books.get((source, is_spoken))
        if book is None:
            book = self._books[source, is_spoken] = _Book(source, is_spoken)
        return book, book.places(texts)


class _Book:
    """Distinct lines of one source. ``is_spoken``: with their terms, which what stands in a call has not."""

    def __init__(self, source: Source, is_spoken: bool) -> None:
        self._source: Source = source
        self._is_spoken = is_spoken
        self._places: dict[str, int] = {}
        self._lines = Lines()

    def __len__(self) -> int:
        return len(self._lines)

    def places(self, texts: Iterable[str]) -> list[int]:
        """The place of each of these lines. Those that have none yet come behind the last one."""
        places = self._places
        return [places.setdefault(text, len(places)) for text in texts]

    def read(self) -> None:
        """Read the lines that came since this was asked for the last time."""
        if len(self._lines) == len(self._places):
            return
        new = read(list(islice(self._places, len(self._lines), None)), self._source)
        if self._is_spoken:
            said = enumerate(zip(new.texts, new.each_names(), strict=True))
            new.terms = {n: terms for n, (text, names) in said if (terms := _terms(text, names))}
        self._lines.extend(new)

    def taken(self, places: Sequence[int]) -> Lines:
        """The lines at these places."""
        return self._lines.taken(places)


_Entry = Line | tuple[Source, bool, Sequence[str]]
"""A line that is read by itself; or the source of some, whether they are words of one who speaks, and their texts."""

_Run = Line | tuple[_Book, list[int]]
"""A line, or where some stand."""


def _put_together(runs: Sequence[_Run]) -> Lines:
    if len(runs) == 1 and not isinstance(runs[0], Line):  # most messages: one output
        book, places = runs[0]
        return book.taken(places)
    lines = Lines()
    for run in runs:
        if isinstance(run, Line):
            lines.append(run)
        else:
            lines.extend(run[0].taken(run[1]))
    return lines


def _entries(message: Message) -> Iterator[_Entry]:
    if message.is_instruction:
        return
    answered, said = parted(message)
    for is_tools, one in ((True, answered), (False, said)):
        if one is not None:
            yield from _entries_of(one, is_tools=is_tools)


def _entries_of(message: Message, *, is_tools: bool) -> Iterator[_Entry]:
    concludes = not message.tool_calls  # asked once: a message may have ten thousand parts
    for part in message.parts:
        if isinstance(part, ToolResult) or (is_tools and isinstance(part, Text)):
            yield "tool", False, _cut_lines(weighed(without_reminders("\n".join(texts(part)))))
        elif isinstance(part, Opaque) and part.is_output:
            yield "tool", False, _cut_lines(weighed(part.text))
        elif isinstance(part, ToolCall):
            yield from _of_call(part)
        elif isinstance(part, Text | Opaque):
            source: Source = "user" if message.role == "user" else "assistant"
            if source == "assistant":
                yield _spoken(part.text, source, concludes)
            elif not is_note(part.text):
                yield from _of_user(part.text)
        elif isinstance(part, Media) and part.name:
            yield _spoken(part.name, "user" if message.role == "user" else "assistant", concludes)


def weighed(text: str) -> str:
    """What of a tool's output is read for evidence: all of it, or of a very long one both ends and a sample between.

    Nothing in the middle of a log of megabytes stands out by being read: the same lines come again and again, and only
    a few hundred can be quoted. A line of megabytes is a table or data, and takes more time than lines.
    """
    if not is_sampled(text):
        return text
    if _is_one_line(text):
        third = MOST_OF_ONE_LINE // 3
        middle = (len(text) - third) // 2
        return "\n".join((text[:third], text[middle : middle + third], text[-third:]))
    third = MOST_READ // 3
    end, start = text.rfind("\n", 0, third), text.find("\n", len(text) - third)
    step = max(1, -(-(start - end) // third))
    return "\n".join((text[: max(end, 0)], *split_lines(text[end + 1 : start])[::step], text[start + 1 :]))


def is_sampled(text: str) -> bool:
    """Whether an output is too long to be read for evidence as a whole."""
    return len(text) > MOST_OF_ONE_LINE and (len(text) > MOST_READ or _is_one_line(text))


def _is_one_line(text: str) -> bool:
    # a thousand characters to a line and more, on average
    return text.count("\n") * 1_000 < len(text)


def _spoken(text: str, source: Source, is_turn: bool) -> _Entry:
    """The lines of what a person or the assistant said, with their terms. ``is_turn``: it did nothing but speak."""
    whole = quoting.readable(text).strip()
    if not is_turn or len(whole) > WHOLE:
        return source, True, _cut_lines(text)
    if "\n" in whole and _SAYS(whole):
        line = read_line(whole, source)
        return line._replace(terms=_terms(whole, line.names))
    return source, True, [whole] if _SAYS(whole) else []


def _of_user(text: str) -> Iterator[_Entry]:
    """What stands in a user's name. What a harness wrote into it sets no rules: its lines count by what they name."""
    for piece, is_typed in pieces(text):
        if is_typed:
            yield _spoken(piece, "user", True)
        else:
            for row in _cut_lines(piece):
                line = read_line(row, "user")
                yield line._replace(bonus=0.0, terms=_terms(row, line.names))


def _terms(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """The distinct plain words of a line: the stems of words outside names, and every two neighboring CJK signs."""
    for name in names:
        text = text.replace(name, " ")
    found: dict[str, None] = {}
    for word in _SAID.findall(text):
        if is_cjk(word):
            found.update(dict.fromkeys(f" {word[n : n + 2]}" for n in range(len(word) - 1)))
        else:
            found[f" {word[:STEM].lower()}"] = None
    return tuple(found)


def is_cjk(word: str) -> bool:
    """Whether a word, or a term behind its blank, is made of CJK signs."""
    return word.lstrip()[:1] >= "\u3040"


def _cut_lines(text: str) -> list[str]:
    """The lines of a text that hold a letter or digit, without numbers and blanks around them, long ones in pieces."""
    lines: list[str] = []
    if "\\r" in text or "\\u001" in text:
        text = _unescaped(text)
    if "\x1b[" in text:
        text = _last_screens(text)
    text = quoting.readable(text)
    for row in _without_numbers((_last_states(text) if "\r" in text else text).splitlines()):
        if len(row) > WIDTH and not _is_row(row):
            for part in _without_data(row).splitlines():
                lines += _pieces(part.strip())
        else:
            lines.append(row)
    return list(filter(_SAYS, lines))


def _is_row(row: str) -> bool:
    """Whether a line is a row of a wide table by its signs: a piece of one has no head."""
    if len(row) > WIDEST_ROW:
        return False
    if row.count("|") >= LEAST_CELLS or row.count("\t") >= LEAST_CELLS or len(_GAP.findall(row)) >= LEAST_CELLS:
        return True
    if row.count(",") <= LEAST_CELLS or row[0] in "[{" or any(sign in row for sign in ('":', " = ")):
        return False
    cells = unquoted(row)
    return cells.count(",") > LEAST_CELLS and ", " not in cells


def _unescaped(text: str) -> str:
    """JSON whose strings hold what a terminal showed, with the breaks of that as breaks; others as they are."""
    if not quoting.is_json(text) or not _ESCAPED_STATE.search(text):
        return text
    return _ESCAPED_SIGN.sub(lambda sign: _SIGNS[sign[1].lower()], text)


def _last_screens(text: str) -> str:
    """The text without what a terminal wrote over where the cursor went back: of rows of earlier screens that differ
    in figures from one of a later screen, none; the others stay, as pages that were turned do.
    """
    screens = [""]
    for some in some_lines(text):
        first, *others = _MOVE.split(some)
        screens[-1] += first
        screens += others
    if len(screens) == 1:
        return text
    later: set[str] = set()
    left: list[str] = []
    for screen in reversed(screens):
        letters = {state: _NO_LETTERS.sub("", quoting.readable(state)) or state for state in _STATE_END.split(screen)}
        rows = [[state for state in row.split("\r") if letters[state] not in later] for row in screen.split("\n")]
        left.append("\n".join("\r".join(states) for states in rows))
        later.update(letters.values())
    return "\n".join(reversed(left))


def _last_states(text: str) -> str:
    """The text without what was written over: of the states of a progress bar, which differ in figures, the last."""
    if "\n" not in text or text.count("\r") == text.count("\r\n"):  # ends of lines
        return text
    rows = (row.rstrip("\r") for row in text.split("\n"))
    return "\n".join([_last_state(row) if "\r" in row else row for row in rows])


def _last_state(row: str) -> str:
    # by their letters, since other words stay: what a bar was written over may be an error
    states = {_NO_LETTERS.sub("", state): state for state in row.split("\r")}
    return "\r".join(states.values())


def _without_numbers(rows: Sequence[str]) -> list[str]:
    """Rows without blanks around them, and without the numbers that a listing has before its lines: those that count
    on from row to row. Others, and those below a head, are cells of a table, most often what its rows are called by.
    """
    lines = [row.strip() for row in rows]
    found = [(n, gutter) for n, line in enumerate(lines) if line[:1].isdigit() and (gutter := _GUTTER.match(rows[n]))]
    numbers = {n: int(gutter[1]) for n, gutter in found}
    is_table = False
    for n, gutter in found:
        number, mark = numbers[n], gutter[2][-1]
        if n - 1 not in numbers:
            is_table = mark in next(filter(_SAYS, reversed(rows[max(0, n - 2) : n])), "")
        is_counted = numbers.get(n - 1) == number - 1 or numbers.get(n + 1) == number + 1
        if mark == "→" or (is_counted and not is_table):
            lines[n] = rows[n][gutter.end() :].strip()
    return lines


def _without_data(text: str) -> str:
    return "".join(_DATA.sub("\n", some) for some in some_words(text)) if len(text) >= 300 else text


def _pieces(line: str) -> Iterator[str]:
    """The line, or what it falls into when it is too long: at escaped line breaks (JSON in JSON), then by width."""
    if len(line) <= WIDTH:
        yield line
        return
    for part in _ESCAPED_BREAK.split(line) if line.count("\\") > 3 else (line,):
        yield from _by_width(part.strip())


def _by_width(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > WIDTH:
        end = start + _cut(line[start : start + identifiers.LONGEST])
        yield line[start:end].strip()
        start = end
    yield line[start:].strip()


def _cut(text: str) -> int:
    """Where to cut: behind the last sentence in the second half of the width, else at its last blank or the next; JSON
    and XML behind an object or a member.
    """
    half = WIDTH // 2
    if end := _end_of_object(text):
        return end
    for marks in ((". ", "! ", "? ", "; ", "。", "！", "？", "；"), (" ", "，", "、", "\t"), (",", "|", "&")):
        cut = max(text.rfind(mark, half, WIDTH) + len(mark) - 1 for mark in marks)
        if cut >= half:
            return cut + 1
    found = _BREAK.search(text, WIDTH)
    return found.end() if found else len(text)


def _end_of_object(text: str) -> int:
    """Where the last object ends in the width of a line of JSON or XML, or else the last member of one; 0 elsewhere.

    What is said of a thing so stands with its name, which blanks may part.
    """
    first = WIDTH // 4
    if text.count('"', 0, WIDTH) > _MANY:
        for marks in (_OBJECTS, _MEMBERS):
            if (place := max(text.rfind(mark, first, WIDTH) for mark in marks)) >= 0:
                return text.index(",", place) + 1
    if text.count("<", 0, WIDTH) > _MANY:
        ends = [(end["outer"] is not None, end.end()) for end in _CLOSED.finditer(text, first, WIDTH)]
        return max(ends)[1] if ends else 0
    return 0


def _of_call(call: ToolCall) -> Iterator[_Entry]:
    """A call as lines: the tool's name with the short arguments, and long arguments line by line."""
    shown: list[str] = [call.name]
    values: list[str] = []
    for key, value in _leaves(_arguments(call)):
        if len(value) > WIDTH or "\n" in value:
            yield from _joined(shown, values)
            shown, values = [], []
            yield "assistant", False, _cut_lines(value)
            continue
        if values and sum(map(len, shown)) + len(key) + len(value) > WIDTH:
            yield from _joined(shown, values)
            shown, values = [], []
        # Keys and the tool's name are shown, but only values name something: the others belong to the tool's
        # definition.
        shown.append(f"{key}: {value}" if key else value)
        values.append(value)
    yield from _joined(shown, values)


def _joined(shown: Sequence[str], values: Sequence[str]) -> Iterator[Line]:
    if shown:
        yield read_line(_without_data(" ".join(shown)), "assistant", _without_data("\n".join(values)))


def _arguments(call: ToolCall) -> Any:
    try:
        return json_values.read(call.arguments)
    except ValueError:
        # what a model wrote as arguments need not be JSON: then it is one value
        return call.arguments


def _leaves(value: Any) -> Iterator[tuple[str, str]]:
    """The scalars inside a JSON value, in order, each with the key that it stands under."""
    waiting = [("", value)]
    while waiting:  # a loop: each of many leaves would climb through every level above it
        key, found = waiting.pop()
        if isinstance(found, dict):
            waiting.extend((str(name), inner) for name, inner in reversed(found.items()))
        elif isinstance(found, list):
            waiting.extend((key, inner) for inner in reversed(found))
        elif found is not None and not isinstance(found, bool) and found != "":
            yield key, str(found)
