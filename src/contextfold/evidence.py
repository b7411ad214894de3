"""Verbatim lines worth carrying: chosen by code from everything that has left the view.

What belongs here: cutting messages into lines, weighing what they hold, and choosing among them under a token budget.
What does not: recognising identifiers (``identifiers``), prose (``summary``), and where the lines stand in the view
(the engine).

**What is an identifier worth?** Whether something will be needed again follows its history of use: the odds grow with
how often it was met and fade as a power of how long ago (Anderson and Schooler, "Reflections of the Environment in
Memory", Psychological Science 2, 1991). Agent sessions obey the same law. Fitted to which identifiers of evicted
messages came back in 27 real conversations, a mention by the assistant, in words or in a call, counts at least twice as
much as one by a user and ten times one in a tool's output. So an identifier weighs the sum over its mentions of
``MENTION / age ** FADING``, times what it would cost to get it wrong (``_worth``).

**Which line shows it?** A bare name helps little: ``max_age`` in a list says less than ``max_age = 3600 # seconds``. So
an identifier counts in full only where plain words stand with it, in its line or in a neighbouring one that is
quoted too. Lines are chosen greedily by what they add per token, alone or with a neighbour; what is shown
already adds nothing. A choice lowers what others would add, except for its neighbours, which are looked at again, so a
heap with lazy updates finds the next one (Minoux, "Accelerated greedy algorithms for maximizing submodular set
functions", 1978).
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from contextfold import identifiers
from contextfold.identifiers import Kind
from contextfold.messages import Message, Opaque, Text, ToolCall, ToolResult
from contextfold.summary import extractive_cues as cues

Source = Literal["user", "assistant", "tool"]

WIDTH = 160
"""Characters. A longer source line is cut into pieces of at most this size, at blanks or punctuation."""

MENTION: dict[Source, float] = {"assistant": 1.0, "user": 0.5, "tool": 0.1}
"""What one mention counts, by who made it. Calls are the assistant's words."""

FADING = 0.15
"""Exponent of age. The fitted one is 1.0 for what is needed next; a lower one also keeps what is needed late, and what
is needed next mostly still stands in the recent messages."""

YOUNGEST = 500
"""Tokens added to every age, so that no single mention outweighs everything else."""

ENOUGH_WORDS = 2
"""Plain words beside an identifier that make it more than a bare name."""

BARE = 0.6
"""What an identifier counts without any plain word beside it."""

RULE, WISH, ERROR = 1.5, 0.5, 0.15
"""What a user's constraint, a milder one, and a tool's line about a failure count by themselves, whatever stands in
them and at any age: nobody repeats a rule."""

JOINED = 200
"""Characters. Two neighbouring lines longer than this together are not offered as a pair."""

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
_ESCAPED_BREAK = re.compile(r"(?:\\+[nrt])+")
_PLAIN_WORD = re.compile(rf"[{identifiers.CJK}]{{2}}|[^\W\d_{identifiers.CJK}]{{3,}}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a message, word for word but without indentation and line numbers.

    ``names`` are the identifiers in it and the parts that they may be called by, ``worths`` what each would cost to get
    wrong (0 to 1). ``words`` counts the plain words beside them. ``bonus`` is what the line counts besides its names.
    """

    text: str
    source: Source
    names: tuple[str, ...] = ()
    worths: tuple[float, ...] = ()
    words: int = 0
    bonus: float = 0.0


# ---- lines of a message ----


def lines_of(message: Message) -> tuple[Line, ...]:
    """All lines of a message that hold a letter or digit, in order. Pure, so that a caller can keep them per message.

    Text, tool arguments and results; neither hidden reasoning nor encoded data.
    """
    if message.is_instruction:
        return ()
    lines: list[Line] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            lines += _lines(part.text, "tool")
        elif isinstance(part, ToolCall):
            lines += _call_lines(part)
        elif isinstance(part, Text | Opaque):
            lines += _lines(part.text, "user" if message.role == "user" else "assistant")
    return tuple(lines)


def _lines(text: str, source: Source) -> Iterator[Line]:
    for raw in _without_data(text).splitlines():
        for piece in _pieces(_GUTTER.sub("", raw, count=1).strip() if _GUTTER.match(raw) else raw.strip()):
            if any(map(str.isalnum, piece)):
                yield _line(piece, source)


def _without_data(text: str) -> str:
    return _DATA.sub("\n", text) if len(text) >= 300 else text


def _line(text: str, source: Source, searched: str | None = None) -> Line:
    """A line with what it holds. ``searched`` is the part of it that may name something, if not all of it."""
    names: dict[str, float] = {}
    plain = text if searched is None else searched
    rest: list[str] = []
    end = 0
    for found in identifiers.find(plain):
        names.setdefault(found.text, _worth(found.text, found.kind))
        for part in found.parts:
            names.setdefault(part, _worth(part, "name"))
        if found.start >= end:
            rest.append(plain[end : found.start])
            end = found.end
    rest.append(plain[end:])
    words = len({word.lower() for piece in rest for word in _PLAIN_WORD.findall(piece)})
    return Line(text, source, tuple(names), tuple(names.values()), words, _bonus(text, source))


def _worth(name: str, kind: Kind) -> float:
    """What getting it wrong would cost, from 0 to 1: the longer a name is, the less it can be guessed."""
    return _KIND_WORTH.get(kind, 1.0) * min(1.0, (len(name) - 1) / 6)


def _bonus(text: str, source: Source) -> float:
    if source == "user":
        return RULE if cues.PROHIBITION.search(text) else WISH if cues.CONSTRAINT.search(text) else 0.0
    return ERROR if source == "tool" and cues.ERROR.search(text) else 0.0


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
    found = re.search(r"[\s,;|&，。、；]", text[WIDTH:])
    return WIDTH + found.end() if found else len(text)


def _call_lines(call: ToolCall) -> Iterator[Line]:
    """A call as lines: the tool's name with the short arguments, and long arguments line by line.

    Keys and the tool's name are shown, but only values name something: the others belong to the tool's definition.
    """
    shown: list[str] = [call.name]
    values: list[str] = []
    for key, value in _leaves(_arguments(call)):
        if len(value) > WIDTH or "\n" in value:
            yield from _joined(shown, values)
            shown, values = [], []
            yield from _lines(value, "assistant")
            continue
        if values and sum(map(len, shown)) + len(key) + len(value) > WIDTH:
            yield from _joined(shown, values)
            shown, values = [], []
        shown.append(f"{key}: {value}" if key else value)
        values.append(value)
    yield from _joined(shown, values)


def _joined(shown: Sequence[str], values: Sequence[str]) -> Iterator[Line]:
    if shown:
        yield _line(_without_data(" ".join(shown)), "assistant", _without_data("\n".join(values)))


def _arguments(call: ToolCall) -> Any:
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The scalars inside a JSON value, each with the key that it stands under."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)
    elif value is not None and not isinstance(value, bool) and value != "":
        yield key, str(value)


# ---- choosing ----


class Span(NamedTuple):
    """Neighbouring lines ``first`` to ``last`` (both included) that are offered together."""

    first: int
    last: int


def select(
    candidates: Sequence[tuple[int, Sequence[Line]]],
    *,
    budget: int,
    already: Collection[str],
    count: Callable[[str], int],
    now: int,
) -> str:
    """The lines most worth their tokens, in their original order under short marks of who said them.

    ``candidates``: for each evicted message, in order, how many tokens of the history end with it, and its lines.
    ``now``: tokens of the whole history. ``already``: names that need no evidence since they stand in the view.
    The text has at most ``budget`` tokens as ``count`` gives them, and is empty if nothing fits or nothing is left
    to say.
    """
    weights = _weights(candidates, now)
    for name in already:
        weights.pop(name, None)
    choice = _Choice(candidates, weights, count)
    chosen = choice.make(budget)
    text = _rendered(choice.lines, chosen)
    while chosen and (excess := count(text) - budget) > 0:
        del chosen[-max(1, excess // 40) :]
        text = _rendered(choice.lines, chosen)
    return text


def _weights(candidates: Sequence[tuple[int, Sequence[Line]]], now: int) -> dict[str, float]:
    """Name -> how much it will be missed. A name counts once per message and source, however often it stands there."""
    weights: dict[str, float] = {}
    for end, lines in candidates:
        factor = (1000 / (max(0, now - end) + YOUNGEST)) ** FADING
        mentions = {
            (line.source, name): worth for line in lines for name, worth in zip(line.names, line.worths, strict=True)
        }
        for (source, name), worth in mentions.items():
            weights[name] = weights.get(name, 0.0) + MENTION[source] * worth * factor
    return weights


class _Choice:
    """Greedy choice of lines. ``lines`` are those of all messages; lines of one message are neighbours."""

    def __init__(
        self,
        candidates: Sequence[tuple[int, Sequence[Line]]],
        weights: dict[str, float],
        count: Callable[[str], int],
    ) -> None:
        self.lines = [line for _, lines in candidates for line in lines]
        self.weights = weights
        self.message = [number for number, (_, lines) in enumerate(candidates) for _ in lines]
        self.bonus = _once(self.lines)
        self.wanted = [_wanted(line, weights) for line in self.lines]
        self.spans = self._offered()
        self.sizes = {n: count(self.lines[n].text) + 1 for span in self.spans for n in span}  # 1: the line break
        self.shown: dict[str, float] = {}  # name -> how well it is shown, up to 1
        self.chosen: set[int] = set()

    def make(self, budget: int) -> list[int]:
        """Numbers of the chosen lines, best first, within ``budget`` tokens."""
        spans = self.spans
        touching = self._touching(spans)
        queue = [(-gain, number) for number, span in enumerate(spans) if (gain := self._gain(span)) > 0]
        heapq.heapify(queue)
        order: list[int] = []
        left = budget
        while queue and left > 0:
            expected, number = heapq.heappop(queue)
            gain = self._gain(spans[number])
            if gain <= 0:
                continue
            if gain < -expected * (1 - 1e-9):
                heapq.heappush(queue, (-gain, number))
                continue
            new = [n for n in range(spans[number].first, spans[number].last + 1) if n not in self.chosen]
            cost = sum(self.sizes[n] for n in new)
            if cost > left:
                continue
            left -= cost
            order += new
            self._take(spans[number], new)
            for other in sorted({other for n in new for other in touching.get(n, ())}):
                if (gain := self._gain(spans[other])) > 0:  # a neighbour may have become cheaper or better
                    heapq.heappush(queue, (-gain, other))
        return order

    def _offered(self) -> list[Span]:
        """Every line that adds something, and where it lacks plain words, with the line before and the line after."""
        spans: dict[Span, None] = {}
        for n, line in enumerate(self.lines):
            if not self.wanted[n] and not self.bonus[n]:
                continue
            spans[Span(n, n)] = None
            if line.words < ENOUGH_WORDS:
                spans.update((Span(pair, pair + 1), None) for pair in (n - 1, n) if self._is_pair(pair))
        return list(spans)

    def _is_pair(self, n: int) -> bool:
        return self._are_neighbours(n, n + 1) and len(self.lines[n].text) + len(self.lines[n + 1].text) <= JOINED

    def _are_neighbours(self, first: int, second: int) -> bool:
        return first >= 0 and second < len(self.lines) and self.message[first] == self.message[second]

    def _touching(self, spans: Sequence[Span]) -> dict[int, list[int]]:
        """Line -> numbers of the spans whose gain depends on whether it is chosen."""
        touching: dict[int, list[int]] = {}
        for number, span in enumerate(spans):
            for n in range(span.first - 1, span.last + 2):
                touching.setdefault(n, []).append(number)
        return touching

    def _gain(self, span: Span) -> float:
        """What the span would add per token."""
        quality = self._quality(span)
        value = cost = 0.0
        for n in range(span.first, span.last + 1):
            if n not in self.chosen:
                cost += self.sizes[n]
                value += self.bonus[n]
            for name in self.wanted[n]:
                better = quality - self.shown.get(name, 0.0)
                if better > 0:
                    value += better * self.weights[name]
        return value / cost if cost else 0.0

    def _quality(self, span: Span) -> float:
        """How well the span would show its names: 1 with enough plain words in it or in a chosen line next to it."""
        words = sum(self.lines[n].words for n in range(span.first, span.last + 1))
        for inner, outer in ((span.first, span.first - 1), (span.last, span.last + 1)):
            if outer in self.chosen and self.message[inner] == self.message[outer]:
                words += self.lines[outer].words
        return BARE + (1 - BARE) * min(1.0, words / ENOUGH_WORDS)

    def _take(self, span: Span, new: Iterable[int]) -> None:
        quality = self._quality(span)
        self.chosen.update(new)
        for n in range(span.first, span.last + 1):
            for name in self.wanted[n]:
                self.shown[name] = max(self.shown.get(name, 0.0), quality)


def _once(lines: Sequence[Line]) -> list[float]:
    """The bonus of each line; of lines that say the same only the newest has one."""
    said: set[str] = set()
    bonuses = []
    for line in reversed(lines):
        bonuses.append(0.0 if line.text in said else line.bonus)
        said.add(line.text)
    return bonuses[::-1]


def _wanted(line: Line, weights: Mapping[str, float]) -> tuple[str, ...]:
    """The names that the line would show, those among them that a path in it ends with."""
    shown = dict.fromkeys(line.names)
    for name in line.names:
        if "/" in name:
            shown.update(dict.fromkeys(identifiers.endings(name)))
    return tuple(name for name in shown if name in weights)


def _rendered(lines: Sequence[Line], chosen: Iterable[int]) -> str:
    """Lines in their order. A mark stands where the speaker changes."""
    text: list[str] = []
    speaker = ""
    for n in sorted(chosen):
        if lines[n].source != speaker:
            speaker = lines[n].source
            text.append(f"[{speaker}]")
        text.append(lines[n].text)
    return "\n".join(text)
