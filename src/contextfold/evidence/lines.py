"""A message as lines that may be quoted, word for word, and what each of them holds.

What belongs here: cutting texts, calls and results into lines, and reading a line once. What does not: what a line is
worth beside others (``choice``).

A line holds **names** (identifiers that must be repeated exactly) and, where a person or the assistant speaks,
**terms** (its plain words). A decision, a preference or an open question often names nothing: all there is to know it
by are its words. Short messages of users are one line each, so that what people said stays whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from contextfold import identifiers, json_values
from contextfold.identifiers import Kind
from contextfold.messages import Message, Opaque, Text, ToolCall, ToolResult
from contextfold.summary import extractive_cues as cues

Source = Literal["user", "assistant", "tool"]

# Passages of 160 to 240 characters lost against single lines at every budget that was tried.
WIDTH = 160
"""Characters. A longer source line is cut into pieces of at most this size, at blanks or punctuation."""

MOST_READ, MOST_OF_ONE_LINE = 1_300_000, 300_000
"""Characters of one output that are read for evidence; of one that is hardly broken into lines."""

WHOLE = 400
"""Characters. What was said up to this size, by a user or by an assistant that called no tool with it, is one line,
line breaks and all: half of what was said in a turn seldom tells what is asked about later."""

RULE, WISH = 3.0, 1.5
"""What a user's constraint and a milder one count by themselves, whatever stands in them and at any age: people do not
repeat a rule."""

ERROR, OUTCOME, MEASURE = 0.6, 0.6, 0.45
"""What a tool's line about a failure, about what came of something, and with an amount in it count by themselves."""

BARE = 0.6
"""What an identifier counts without any plain word beside it."""

ENOUGH_WORDS = 2
"""Plain words beside an identifier that make it more than a bare name."""

_TOGETHER = 200
"""Lines that are read together: enough that searches are shared, and no search takes more than some milliseconds."""

STEM = 6
"""Letters of a plain word that tell it from others: ``decided`` and ``decides`` are one term."""

_KIND_WORTH: dict[Kind, float] = {
    "date": 0.6,
    "flag": 0.6,
    "title": 0.5,
    "person": 0.4,
    "member": 0.4,
    "number": 0.3,
}
"""What is short, common or made of plain words is easily said another way; the other kinds count 1."""

_DATA = re.compile(r"[A-Za-z0-9+/_=-]{300,}")
_GUTTER = re.compile(r"\s*\d+(?:→|\t|\s*\|\s)")
_ESCAPED_BREAK = re.compile(r"(?<!\\)(?:\\++[nrt])+")
_BREAK = re.compile(r"[\s,;|&，。、；]")
_SAYS = re.compile(r"[^\W_]").search
"""Whether there is a letter or digit in a text."""

_ERROR_WORDS = tuple(filter(str.isascii, cues.ERROR_WORDS))
_OUTCOME_WORDS = tuple(filter(str.isascii, cues.OUTCOME_WORDS))
"""Those that tell which lines of ASCII may have a bonus."""

_ASCII_WORD = re.compile(r"[A-Za-z]{3,}")
"""``PLAIN_WORD`` in a text of ASCII alone."""

PLAIN_WORD = re.compile(rf"[{identifiers.CJK}]{{2}}|[^\W\d_{identifiers.CJK}]{{3,}}")


_SAID = re.compile(rf"[{identifiers.CJK}]+|[^\W\d_{identifiers.CJK}]{{4,}}")
"""Where terms come from: words of four letters and more, and runs of CJK signs."""


class Line(NamedTuple):
    """A line of a message, word for word but without indentation and line numbers.

    ``names`` are the identifiers in it and the parts that they may be called by, ``worths`` what each would cost to get
    wrong (0 to 1). ``words`` counts the plain words beside them, up to ``ENOUGH_WORDS``. ``bonus`` is what the line
    counts besides its names. ``terms`` are the plain words of what was said, each behind a blank so that none is taken
    for a name. ``date``: when it was said, where a section that is read back told it.
    """

    text: str
    source: Source
    names: tuple[str, ...] = ()
    worths: tuple[float, ...] = ()
    words: int = 0
    bonus: float = 0.0
    terms: tuple[str, ...] = ()
    date: str = ""


Known = dict[tuple[str, Source], Line]
"""Lines by their text and speaker."""


# ---- lines of a message ----


def lines_of(message: Message, known: Known | None = None) -> tuple[Line, ...]:
    """All lines of a message that hold a letter or digit, in order. Pure, so that a caller can keep them per message.

    Text, tool arguments and results; neither hidden reasoning nor encoded data. ``known``: lines that were read before,
    for a caller that reads many messages: agents read the same files again and again.
    """
    known = {} if known is None else known
    if message.is_instruction:
        return ()
    lines: list[Line] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            lines += _lines(weighed(part.text), "tool", known)
        elif isinstance(part, ToolCall):
            lines += _call_lines(part, known)
        elif isinstance(part, Text | Opaque):
            lines += _spoken(
                part.text, "user" if message.role == "user" else "assistant", known, not message.tool_calls
            )
    return tuple(lines)


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
    return "\n".join((text[: max(end, 0)], *text[end + 1 : start].splitlines()[::step], text[start + 1 :]))


def is_sampled(text: str) -> bool:
    """Whether an output is too long to be read for evidence as a whole."""
    return len(text) > MOST_OF_ONE_LINE and (len(text) > MOST_READ or _is_one_line(text))


def _is_one_line(text: str) -> bool:
    # a thousand characters to a line and more, on average
    return text.count("\n") * 1_000 < len(text)


def _spoken(text: str, source: Source, known: Known, is_turn: bool = True) -> Iterator[Line]:
    """The lines of what a person or the assistant said, with their terms. ``is_turn``: it did nothing but speak."""
    whole = text.strip()
    if is_turn and len(whole) <= WHOLE:
        lines = iter([_line(whole, source)] if _SAYS(whole) else [])
    else:
        lines = _lines(text, source, known)
    for line in lines:
        yield line._replace(terms=_terms(line))


def _terms(line: Line) -> tuple[str, ...]:
    """The distinct plain words of a line: the stems of words outside names, and every two neighboring CJK signs."""
    text = line.text
    for name in line.names:
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
    return word.lstrip()[0] >= "\u3040"


def _lines(text: str, source: Source, known: Known) -> Iterator[Line]:
    pieces: list[str] = []
    for row in text.splitlines():
        if len(row) <= WIDTH:
            pieces.append(_without_gutter(row))
        else:
            pieces += (piece for part in _without_data(row).splitlines() for piece in _pieces(_without_gutter(part)))
    new = [piece for piece in dict.fromkeys(pieces) if (piece, source) not in known and _SAYS(piece)]
    for start in range(0, len(new), _TOGETHER):
        for line in _read(new[start : start + _TOGETHER], source):
            known[line.text, source] = line
    yield from (known[piece, source] for piece in pieces if (piece, source) in known)


def _without_gutter(raw: str) -> str:
    """A line of a listing without its number, and without the blanks around it."""
    line = raw.strip()
    found = _GUTTER.match(raw) if line[:1].isdigit() else None
    return raw[found.end() :].strip() if found else line


def _without_data(text: str) -> str:
    return _DATA.sub("\n", text) if len(text) >= 300 else text


def _read(lines: Sequence[str], source: Source) -> Iterator[Line]:
    """Lines without breaks in them, read together: a search over all of them costs a fraction of one in each."""
    text = "\n".join(lines)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    spaced = _where(identifiers.MAY_BE_SPACED, text, starts)
    bonuses = _tool_bonuses(lines, text, starts) if source == "tool" else {}
    ahead = _chunks(text)[::-1]
    for n, line in enumerate(lines):
        start, end = starts[n], starts[n + 1] - 1
        found: list[tuple[int, int, Named]] = []
        while ahead and ahead[-1][0] < end:
            found.append(ahead.pop())
        if n in spaced:
            found += [
                (start + one.start, start + one.end, _names(one.text, one.kind, ())) for one in identifiers.spaced(line)
            ]
        bonus = bonuses.get(n, 0.0) if source == "tool" else _bonus(line, source)
        yield _made(line, source, text, start, end, found, bonus)


def _chunks(text: str) -> list[tuple[int, int, Named]]:
    """What the chunks of a text name, in order: from where to where, and how it may be called."""
    return [
        (chunk.start() + first, chunk.start() + last, names)
        for chunk in identifiers.CHUNK.finditer(text)
        for first, last, names in _named(chunk.group())
    ]


def named_spans(text: str) -> list[tuple[int, int]]:
    """From where to where each name stands in a text, in order of their beginnings."""
    spans = [(first, last) for first, last, _ in _chunks(text)]
    if identifiers.MAY_BE_SPACED.search(text):
        spans += [(one.start, one.end) for one in identifiers.spaced(text)]
        spans.sort()
    return spans


def _line(text: str, source: Source, searched: str | None = None) -> Line:
    """A line with what it holds. ``searched`` is the part of it that may name something, if not all of it."""
    plain = text if searched is None else searched
    found = _chunks(plain)
    if identifiers.MAY_BE_SPACED.search(plain):
        found += [(one.start, one.end, _names(one.text, one.kind, ())) for one in identifiers.spaced(plain)]
    return _made(text, source, plain, 0, len(plain), found, _bonus(text, source))


def _made(
    line: str, source: Source, text: str, start: int, end: int, found: Sequence[tuple[int, int, Named]], bonus: float
) -> Line:
    if not found:
        return Line(line, source, (), (), _plain_words(text, ((start, end),)), bonus)
    names: dict[str, float] = {}
    rest: list[tuple[int, int]] = []
    for first, last, named in found:
        for name, worth in named:
            names.setdefault(name, worth)
        if first >= start:
            rest.append((start, first))
            start = last
    rest.append((start, end))
    return Line(line, source, tuple(names), tuple(names.values()), _plain_words(text, rest), bonus)


def _plain_words(text: str, spans: Iterable[tuple[int, int]]) -> int:
    """How many distinct plain words stand in these parts of a text, counted up to what makes a difference."""
    seen = ""
    pattern = _ASCII_WORD if text.isascii() else PLAIN_WORD
    for start, end in spans:
        if end - start < 2:  # the shortest word: two signs of CJK
            continue
        for word in pattern.finditer(text, start, end):
            said = word.group().lower()
            if seen and said != seen:
                return ENOUGH_WORDS
            seen = said
    return 1 if seen else 0


Named = Sequence[tuple[str, float]]
"""A name and the parts that it may be called by, each with what it would cost to get it wrong."""


@lru_cache(maxsize=2_048)
def _named(chunk: str) -> tuple[tuple[int, int, Named], ...]:
    """What a chunk names: from where to where in it, and how it may be called."""
    if chunk.isidentifier() and len(chunk) <= identifiers.LONGEST:  # most of them: one name or none
        return ((0, len(chunk), ((chunk, _worth(chunk, "name")),)),) if identifiers.is_name(chunk) else ()
    read = identifiers.in_chunk.__wrapped__  # remembered here, so not there as well
    return tuple([(one.start, one.end, _names(one.text, one.kind, one.parts)) for one in read(chunk)])


def _names(name: str, kind: Kind, parts: Sequence[str]) -> Named:
    named = (name, _worth(name, kind))
    return (named, *[(part, _worth(part, "name")) for part in parts]) if parts else (named,)


def _where(pattern: re.Pattern[str], text: str, starts: Sequence[int]) -> set[int]:
    """The numbers of the lines, which begin at ``starts``, in which a pattern matches."""
    lines: set[int] = set()
    found = pattern.search(text)
    while found is not None:
        line = bisect_right(starts, found.start()) - 1
        lines.add(line)
        found = pattern.search(text, starts[line + 1])
    return lines


def _with_any(words: Iterable[str], text: str, starts: Sequence[int]) -> set[int]:
    """The numbers of the lines in which one of these words stands."""
    lines: set[int] = set()
    for word in words:
        place = text.find(word)
        while place >= 0:
            line = bisect_right(starts, place) - 1
            lines.add(line)
            place = text.find(word, starts[line + 1])
    return lines


def _tool_bonuses(lines: Sequence[str], text: str, starts: Sequence[int]) -> dict[int, float]:
    """The bonuses of a tool's lines that have one, as ``_bonus`` gives them."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that is two in lower case: no place there is one of the text
        likely = set(range(len(lines)))
    else:
        # The patterns are tried where a word stands that each of their matches holds. Upper and lower case are one in
        # some of them, in ways of Unicode's own, so other lines than ASCII are always tried.
        likely = _with_any(_ERROR_WORDS, text, starts) | _with_any(_OUTCOME_WORDS, lowered, starts)
        likely |= {n for n, line in enumerate(lines) if not line.isascii()}
    bonuses = {n: bonus for n in likely if (bonus := _bonus(lines[n], "tool"))}
    measured = _where(cues.MEASURE, text, starts) - likely
    return bonuses | {n: MEASURE for n in measured if cues.MEASURE.search(lines[n])}


def _worth(name: str, kind: Kind) -> float:
    """What getting it wrong would cost, from 0 to 1: the longer a name is, the less it can be guessed."""
    return _KIND_WORTH.get(kind, 1.0) * min(1.0, (len(name) - 1) / 6)


def _bonus(text: str, source: Source) -> float:
    if source == "user":
        heads = cues.heads(text)
        is_rule = cues.PROHIBITION.search(text, heads) or cues.is_labeled(text)
        return RULE if is_rule else WISH if cues.CONSTRAINT.search(text, heads) else 0.0
    if source == "assistant":
        return 0.0
    if cues.ERROR.search(text):
        return ERROR
    return OUTCOME if cues.OUTCOME.search(text) else MEASURE if cues.MEASURE.search(text) else 0.0


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
    """Where to cut: behind the last sentence in the second half of the width, else at its last blank or the next."""
    half = WIDTH // 2
    for marks in ((". ", "! ", "? ", "; ", "。", "！", "？", "；"), (" ", "，", "、", "\t"), (",", "|", "&")):
        cut = max(text.rfind(mark, half, WIDTH) + len(mark) - 1 for mark in marks)
        if cut >= half:
            return cut + 1
    found = _BREAK.search(text, WIDTH)
    return found.end() if found else len(text)


def _call_lines(call: ToolCall, known: Known) -> Iterator[Line]:
    """A call as lines: the tool's name with the short arguments, and long arguments line by line."""
    shown: list[str] = [call.name]
    values: list[str] = []
    for key, value in _leaves(_arguments(call)):
        if len(value) > WIDTH or "\n" in value:
            yield from _joined(shown, values)
            shown, values = [], []
            yield from _lines(value, "assistant", known)
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
        yield _line(_without_data(" ".join(shown)), "assistant", _without_data("\n".join(values)))


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
