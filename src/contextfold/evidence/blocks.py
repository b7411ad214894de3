"""The lines of one message in the form that a choice among many thousand of them needs: numbers in arrays.

What belongs here: ``Block`` (one message's lines), ``Blocks`` (the lines of many messages) and ``Vocabulary`` (the
number of each name and term, shared by all blocks of a history). What does not: reading a message (``lines``), what
anything is worth (``choice``).

A line as an object with its strings takes about a kilobyte, a line in arrays about two hundred bytes with its text, and
arrays of blocks are put together and weighed a thousand times faster than objects. A block follows from its message
alone, so it is made once per message and kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, chain, count, islice, pairwise, repeat
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from contextfold import identifiers
from contextfold.evidence.lines import is_cjk
from contextfold.evidence.reading import ERROR, OUTCOME, Line, Lines, Source
from contextfold.evidence.tables import Marks, exceptions, head_of, is_field, marks_of, record_of
from contextfold.evidence.told import told

SOURCES: tuple[Source, ...] = ("user", "assistant", "tool")
_SPEAKER = {source: number for number, source in enumerate(SOURCES)}
_TOOL = _SPEAKER["tool"]

# Tuned on the replay: with 0.2 for tools, mentions in outputs push out what users said (after five compactions 48 % of
# the planted facts are told instead of 52).
MENTION: dict[Source, float] = {"assistant": 1.0, "user": 0.5, "tool": 0.1}
"""What one mention counts, by who made it. Calls are the assistant's words."""

# Without plain words 88 instead of 86 % of the hard needs are in the view, but 56 instead of 72 % of the planted facts.
# Twice these weights change nothing beyond noise.
TERM: dict[Source, float] = {"user": 1.2, "assistant": 0.2, "tool": 0.0}
"""What one plain word counts, by who said it."""

PAIR = 0.4
"""What a pair of CJK signs counts of a word: a word is one or two of them, and so is the border between two words."""

LEAST_SAID = 3
"""Plain words that two statements must have in common, and no others, to be about the same thing."""

LEAST_WORTH = 0.8
"""What getting a name wrong must cost (``Line.worths``) for a part of a line. Numbers and short names say nothing
without their line."""

# With 0.35 and 0.7 replays show no difference worth a decision.
ALIKE = -0.5
"""Exponent of the number of lines of an output that look alike: what each of them counts of what it would alone."""

LEAST_ALIKE = 4
"""Lines that look alike are a list or a log from this number on."""

STATED = 0.6
"""What the sentences of an output of prose that state a figure count by themselves, over the root of their number."""

SENTENCE, LONG_PIECE = 40, 100
"""Characters of a line that is a sentence by its end, at least; and of a piece of a paragraph whose end is cut off."""

LOOKED_AT = 500
"""Lines whose looks are told at once."""

_ENDS = frozenset(".!?。．｡！？؟।…")
_HEADER = re.compile(r"[A-Za-z][\w-]{0,40}: ").match
_FRAME = re.compile(r"at \S.{0,300}\.\w{1,5}(?::\d+){1,2}\)?|/\S{1,300}\.go:\d+(?: \+0x[\da-f]+)?").fullmatch
_LIBRARY = re.compile(
    r"node_modules/|node:|/go/(?:pkg/mod|\S*src)/|/usr/|at (?:java|javax|jdk|sun|kotlin|scala|org\.\w+)\.|<anonymous>"
).search
"""Frames of stack traces in JavaScript, Java and Go, and what tells those of libraries."""

_COMPARED = re.compile(r"(?:(expected|left)|received|actual|got|right) *: [^;,]+$", re.IGNORECASE).match
_COMPARED_SIDE_BY_SIDE = 2
"""What a failed test expected, and what it got; and how many lines one stands below the other at most."""

_FIGURES = re.compile(r"\d+")
_LOOKS = re.compile(r"(?<![\w.-])[A-Za-z_.-]*+\d[\w.-]*+")
_LINKS = re.compile(r"""(?<![a-z])[a-z]++://[^\s"'<>)]++|"[^"]*+"(?!:)""")
"""What lines that look alike differ in: words with figures; and links, with their titles."""

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Vocabulary:
    """Names and terms by number. It only grows; numbers are given in the order of first use."""

    __slots__ = ("_are_pairs", "_endings", "_lengths", "_numbers", "_texts", "clips", "lines")

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._texts: list[str] = []
        self._endings: dict[str, list[int]] = {}
        self._lengths = np.zeros(0, dtype=np.int32)
        self._are_pairs = np.zeros(0, dtype=np.bool_)
        self.clips: Any = None
        """Parts of lines that the last choice looked at (``clips``)."""
        self.lines = 0
        """Lines of all blocks."""

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def texts(self) -> list[str]:
        """The names and terms by their numbers."""
        if len(self._texts) < len(self._numbers):
            self._texts += islice(self._numbers, len(self._texts), None)
        return self._texts

    @property
    def lengths(self) -> Ints:
        """Characters of each."""
        if new := self.texts[len(self._lengths) :]:
            self._lengths = np.append(self._lengths, np.array(list(map(len, new)), dtype=np.int32))
        return self._lengths

    @property
    def are_pairs(self) -> Flags:
        """Which of them are a pair of CJK signs."""
        if new := self.texts[len(self._are_pairs) :]:
            found = np.array([text[:1] == " " and is_cjk(text) for text in new])
            self._are_pairs = np.append(self._are_pairs, found)
        return self._are_pairs

    def number(self, text: str) -> int:
        """The number of a name or term; a new one gets the next."""
        return self._numbers[text]

    def numbers(self, texts: Iterable[str]) -> list[int]:
        """The same for several."""
        return list(map(self._numbers.__getitem__, texts))

    def endings(self, path: str) -> list[int]:
        """The numbers of what a path can also be called by. Agents name the same files again and again."""
        found = self._endings.get(path)
        if found is None:
            found = self._endings[path] = self.numbers(identifiers.endings(path))
        return found

    def known(self, text: str) -> int | None:
        """The number of a name or term, None if no block has it."""
        return self._numbers.get(text)


class Block:
    """Lines of one message. Per line: its text, its speaker, plain words, characters, bonus and what it would show."""

    __slots__ = (
        "_alike",
        "_heads",
        "_marks",
        "_said",
        "_told",
        "dates",
        "first",
        "floats",
        "ints",
        "parts",
        "shapes",
        "sizes",
        "speakers",
        "texts",
    )

    def __init__(self, lines: Iterable[Line] | Lines, words: Vocabulary) -> None:
        lines = lines if isinstance(lines, Lines) else Lines(lines)
        self.texts = tuple(lines.texts)
        self.first = words.lines
        """The serial of the first line, which no other line of this vocabulary has."""
        words.lines += len(lines)
        self.speakers = bytes(map(_SPEAKER.__getitem__, lines.sources))
        self.dates: tuple[str, ...] = ()
        if lines.dates:
            self.dates = tuple(lines.dates.get(n, "") for n in range(len(lines)))
        self._told: Floats | None = None
        self._said: list[tuple[int, bytes]] | None = None
        self._heads: dict[tuple[str, int], int | None] = {}
        self.sizes: Ints | None = None
        """Tokens of each line, once they were counted (``sizes.Sizes``)."""
        numbers = words.numbers(lines.names)
        counts, shown = _shown(lines, numbers, words)
        shares = _shares(lines)
        self._alike = np.array(shares) < 1.0
        self._marks: Marks | None = None
        named = exceptions(self.texts, self._heads) if self.speakers and set(self.speakers) == {_TOOL} else {}
        mentions, weights = _mentions(lines, numbers, shares)
        said = {term: lines.sources[n] for n, terms in lines.terms.items() for term in terms}
        telling = {number for number, worth in zip(numbers, lines.worths, strict=True) if worth >= LEAST_WORTH}
        self.parts = (len(lines), len(shown), len(mentions), len(said), len(telling))
        """How many numbers the parts of the arrays hold: see ``Blocks``."""
        parts = (
            *(lines.words, map(len, self.texts), lines.counts),
            *(counts, shown, mentions, words.numbers(said), telling),
        )
        self.ints = np.concatenate([np.fromiter(part, dtype=np.int32) for part in parts])
        is_output = bool(self.speakers) and self.speakers[0] == _TOOL
        own = _own_frames(self.texts) if is_output else []
        for n in own:
            if n and self.texts[n][0] == "/":  # Go names the function above
                self._heads["", n] = n - 1
        bonuses = _bonuses(lines, shares)
        compared = _compared(self.texts) if is_output else []
        for some, worth in ((named, OUTCOME), (own, ERROR), (compared, OUTCOME), (_stated(lines), STATED)):
            bonuses = _raised(bonuses, some, worth * max(1, len(some)) ** ALIKE)
        self.floats = np.array([*bonuses, *weights, *(TERM[source] for source in said.values())], np.float64)
        # Only equality is asked for, so hashes do. Where two collide, a line loses its bonus and nothing else.
        shapes = map(_shape, lines.texts, lines.sources, lines.bonuses) if any(lines.bonuses) else lines.texts
        self.shapes = np.array(list(map(hash, shapes)), dtype=np.int64)
        for n, head in named.items():
            if is_field(self.texts[n]):  # the same may be said of another object
                self.shapes[n] = hash((self.texts[head], self.texts[n]))

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def named(self) -> Ints:
        """How many of what each line shows are names that stand in it; they come first."""
        return self.ints[2 * self.parts[0] : 3 * self.parts[0]]

    @property
    def counts(self) -> Ints:
        """How much each line shows."""
        return self.ints[3 * self.parts[0] : 4 * self.parts[0]]

    @property
    def shown(self) -> Ints:
        """Numbers of what the lines show, line by line: names, terms, and what a path can be called by from its end."""
        start = 4 * self.parts[0]
        return self.ints[start : start + self.parts[1]]

    @property
    def mentions(self) -> Ints:
        """Each name of the block once for each speaker."""
        start = 4 * self.parts[0] + self.parts[1]
        return self.ints[start : start + self.parts[2]]

    @property
    def bonuses(self) -> Floats:
        """What each line counts besides what it shows."""
        return self.floats[: self.parts[0]]

    def head_of(self, n: int) -> int | None:
        """The line that names the columns of this one, if it is a row of a table, or else its record of several lines.
        Only asked of what is quoted.
        """
        head = head_of(self.texts, n, self._heads)
        if head is not None or self.bonuses[n] <= 0 or self.speakers[n] != _TOOL:
            return head
        if self._marks is None:
            self._marks = marks_of(self.texts, {n: _look(self.texts[n]) for n in np.flatnonzero(self._alike).tolist()})
        return record_of(self.texts, n, self._marks) if self._marks else None

    @property
    def said(self) -> list[tuple[int, bytes]]:
        """The lines that a user said, the last first, each with what tells whether two are about the same: their plain
        words; empty where there are too few.
        """
        if self._said is None:
            ends = np.cumsum(self.counts)
            self._said = []
            for n in [n for n in range(len(self) - 1, -1, -1) if self.speakers[n] == 0]:
                words = np.sort(self.shown[int(ends[n] - self.counts[n] + self.named[n]) : int(ends[n])])
                self._said.append((n, words.tobytes() if len(words) >= LEAST_SAID else b""))
        return self._said

    @property
    def told(self) -> Floats:
        """How much each line tells that people come back to. Only asked of talk, so it is read then."""
        if self._told is None:
            # A pasted log says the same on many lines.
            known = {text: told(text) for text in dict.fromkeys(self.texts)}
            self._told = np.array([known[text] for text in self.texts], dtype=np.float64)
            self._told[np.frombuffer(self.speakers, dtype=np.uint8) == _TOOL] = 0.0
        return self._told


def _shown(lines: Lines, numbers: Sequence[int], words: Vocabulary) -> tuple[Sequence[int], Sequence[int]]:
    """How much each line shows, and the numbers of all that, line by line."""
    # a search in one text is quicker than one in each name
    if not lines.terms and "/" not in "\n".join(lines.names):
        return lines.counts, numbers
    ends = list(accumulate(lines.counts))
    telling = {bisect_right(ends, n) for n, name in enumerate(lines.names) if "/" in name}
    counts, done = list(lines.counts), 0
    shown: list[int] = []
    for n in sorted(telling.union(lines.terms)):
        start, end = ends[n] - lines.counts[n], ends[n]
        own = dict.fromkeys(numbers[start:end])
        own.update(dict.fromkeys(words.numbers(lines.terms.get(n, ()))))
        for name in lines.names[start:end]:
            if "/" in name:
                own.update(dict.fromkeys(words.endings(name)))
        shown += numbers[done:start]
        shown += own
        counts[n], done = len(own), end
    return counts, [*shown, *numbers[done:]]


def _shares(lines: Lines) -> Sequence[float]:
    """What each line of an output counts of what it would alone; empty where all count in full.

    Of pods, requests or links in a row one may be needed again, and seldom more: in full, those of the newest output
    would take the room of the one line that says which booking or which error it was.
    """
    if len(lines) < LEAST_ALIKE or set(lines.sources) != {"tool"}:
        return ()
    # some at a time: a pattern holds up the event loop, and there may be megabytes
    some = (lines.texts[n : n + LOOKED_AT] for n in range(0, len(lines), LOOKED_AT))
    looks = [look for texts in some for look in _LOOKS.sub("0", "\n".join(texts)).split("\n")]
    looks = [_LINKS.sub("0", look) if "://" in look else look for look in looks]
    counts = Counter(looks)
    if max(counts.values()) < LEAST_ALIKE:
        return ()
    return [many**ALIKE if (many := counts[look]) >= LEAST_ALIKE else 1.0 for look in looks]


def _look(text: str) -> str:
    """What a line has in common with those that look alike."""
    return _LINKS.sub("0", _LOOKS.sub("0", text))


def _bonuses(lines: Lines, shares: Sequence[float]) -> Sequence[float]:
    """What each line counts besides what it shows. Where nearly all lines of an output look alike, one that does not
    is what people look for there: the pod that crashes, the total of a table, what came of a run.
    """
    if not shares:
        return lines.bonuses
    bonuses = list(map(mul, lines.bonuses, shares))
    odd = [n for n, share in enumerate(shares) if share == 1.0]
    if 4 * len(odd) < len(shares):
        for n in odd:
            bonuses[n] = max(bonuses[n], OUTCOME * len(odd) ** ALIKE)
    return bonuses


def _raised(bonuses: Sequence[float], some: Collection[int], worth: float) -> Sequence[float]:
    """What the lines count, some of them this much at least."""
    if not some:
        return bonuses
    raised = list(bonuses)
    for n in some:
        raised[n] = max(raised[n], worth)
    return raised


def _stated(lines: Lines) -> list[int]:
    """The sentences of an output that state a figure, where most of it is prose: a mail, a chart, a page of a book.

    A room, an amount or a date in a sentence is no name, and without this nothing would ever quote it. Who wrote what
    when, above each mail of a thread, is no part of what was written.
    """
    texts = lines.texts
    if not texts or lines.sources[0] != "tool" or lines.sources[-1] != "tool":
        return []
    ended = [n for n, text in enumerate(texts) if text[-1] in _ENDS and len(text) >= SENTENCE]
    said = 2 * sum(len(texts[n]) for n in ended)
    if not said or (said < sum(map(len, texts)) and said < sum(len(text) for text in texts if not _HEADER(text))):
        return []
    is_ended = set(ended)
    return [
        n
        for n, text in enumerate(texts)
        if (n in is_ended or len(text) >= LONG_PIECE) and lines.words[n] > 1 and _FIGURES.search(text)
    ]


def _own_frames(texts: Sequence[str]) -> list[int]:
    """The frames of stack traces that stand in no library, where others do: there the reader's own code failed."""
    frames = [n for n, text in enumerate(texts) if text.startswith(("at ", "/")) and _FRAME(text)]
    own = [n for n in frames if not _LIBRARY(texts[n])]
    return own if len(own) < len(frames) else []


def _compared(texts: Sequence[str]) -> list[int]:
    """The lines that say what a test expected and what it got. One of them alone is a step of a plan, or a mail's."""
    told = [
        (n, one[1] is None) for n, text in enumerate(texts) if text[:1] in "eElLrRaAgG" and (one := _COMPARED(text))
    ]
    sides = [(n, m) for (n, one), (m, other) in pairwise(told) if one != other and m - n <= _COMPARED_SIDE_BY_SIDE]
    return sorted(set(chain.from_iterable(sides)))


def _mentions(lines: Lines, numbers: Sequence[int], shares: Sequence[float]) -> tuple[Sequence[int], Sequence[float]]:
    """Each name once for each speaker, by its number, and what that mention counts."""
    if len(set(lines.sources)) == 1:
        factor = MENTION[lines.sources[0]]
        found = dict(zip(numbers, lines.worths, strict=True))
        if shares:  # in a line of its own a name counts in full, wherever else it stands
            each = chain.from_iterable(map(repeat, shares, lines.counts))
            best: dict[int, float] = {}
            for number, share in zip(numbers, each, strict=True):
                best[number] = max(best.get(number, 0.0), share)
            found = {number: best[number] * worth for number, worth in found.items()}
        return list(found), [factor * worth for worth in found.values()]
    of = chain.from_iterable(map(repeat, lines.sources, lines.counts))
    mentions = dict(zip(zip(of, numbers, strict=True), lines.worths, strict=True))
    return [number for _, number in mentions], [MENTION[source] * worth for (source, _), worth in mentions.items()]


def _shape(text: str, source: Source, bonus: float) -> str:
    """What tells a line from others that say the same."""
    # Lines of tools that differ in nothing but figures say the same: a log of a hundred durations is one fact.
    return _FIGURES.sub("0", text) if bonus and source == "tool" else text


class Blocks:
    """The lines of several blocks side by side, as a choice among all of them reads them.

    Per line: ``words`` (plain words), ``characters``, ``named``, ``counts`` and ``bonuses`` as in ``Block``, the number
    of its block (``of_block``) and its serial (``serials``). Line by line what they show (``shown``), and block by
    block each name once for each speaker (``mentions``), each term (``terms``), both with their weights, and the names
    that say something without their line (``telling``).
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.texts = list(chain.from_iterable([block.texts for block in blocks]))
        self.speakers = b"".join([block.speakers for block in blocks])
        sizes = np.array([block.parts for block in blocks], dtype=np.int64).reshape(-1, 5)
        self.lines, self._mentions, self._terms = sizes[:, 0], sizes[:, 2], sizes[:, 3]
        self.of_block: Numbers = np.repeat(np.arange(len(blocks)), self.lines)
        starts = np.array([block.first for block in blocks], dtype=np.int64) - (np.cumsum(self.lines) - self.lines)
        self.serials: Numbers = np.repeat(starts, self.lines) + np.arange(len(self.texts))
        # a block has its parts in one array, one behind the other
        self.words, self.characters, self.named, self.counts, self.shown, self.mentions, self.terms, self.telling = (
            _parts([block.ints for block in blocks], sizes[:, [0, 0, 0, 0, 1, 2, 3, 4]], np.int32)
        )
        self.bonuses, self.mention_weights, self.term_weights = _parts(
            [block.floats for block in blocks], sizes[:, [0, 2, 3]], np.float64
        )

    def each_mention(self, of_blocks: Floats) -> Floats:
        """A number of each block, for each of its mentions."""
        return np.repeat(of_blocks, self._mentions)

    def each_term(self, of_blocks: Floats) -> Floats:
        return np.repeat(of_blocks, self._terms)


def _parts(arrays: Sequence[npt.NDArray[Any]], sizes: Numbers, kind: type) -> list[npt.NDArray[Any]]:
    """The first parts of all arrays as one, the second parts, and so on. ``sizes``: of each part of each array."""
    whole = np.concatenate([np.zeros(0, dtype=kind), *arrays])
    part = np.repeat(np.tile(np.arange(sizes.shape[1], dtype=np.uint8), len(arrays)), sizes.ravel())
    return [whole[part == number] for number in range(sizes.shape[1])]
