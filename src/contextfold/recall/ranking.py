"""Which messages answer a query, best first: BM25 over our own words, the same on every database and in memory.

Databases rank in ways of their own (FTS5 counts all sessions at once, PostgreSQL does not know how rare a word is), so
they are only asked where words stand, and everything is computed here:

1. **Where.** Each unit of a query has its places: one whole number per row of the index, which says the message and
   roughly how long it is (``place_of``). One pass over them gives every message a score that is nearly right.
2. **How well.** The best few hundred are read and scored exactly, by how often each unit occurs in them (Robertson and
   Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
3. **Beside what.** A message next to a good one gains from it: the answer stands next to the question.

Names and quoted words come before everything else, and the newer of two equal messages before the older.

What belongs here: weights, scores and the order. What does not: where rows are kept (``memory``, ``store.search``).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from contextfold.recall import stems
from contextfold.recall.words import OFTEN, PART, STEM, Query, WordUnit

Order = Literal["best", "newest"]

# Measured on 510 questions about dialogues: of 100, 62 and 70 find their turn among five and ten hits, with 0.75 59 and
# 70; 0.3 favors long outputs of tools.
K1, B = 1.2, 0.5
"""BM25's: how soon further occurrences stop to count, and how much long texts are discounted. Messages are short or
logs; a long one is rarely padding, so B is below the usual 0.75. Dialogues prefer 0.3, by a point of a hundred."""

NEIGHBOR = 0.3
"""Share of the better neighbor's score that a message gains. Of 510 questions about three long dialogues, 75 of 100
find their turn among the first ten with it, 70 without."""

AS_PART = 0.6
"""What a word counts that is only found inside a compound, or instead of a compound or name that no text has."""

MOST_READ = 100
"""Messages that are scored exactly, unless more are asked for."""

PIECE_BITS, LENGTH_BITS = 7, 4
PIECES = 1 << PIECE_BITS
_SEQUENCE_SHIFT = PIECE_BITS + LENGTH_BITS
_LENGTHS = 1 << LENGTH_BITS


@dataclass(frozen=True, slots=True)
class Row:
    """One row of an index: some words of a message with their marks, and where it stands."""

    place: int
    words: tuple[str, ...]
    repeated: int
    """How many words at its beginning the row before it has as well."""
    marks: tuple[str, ...]


def place_of(sequence: int, piece: int, length: int) -> int:
    """The number of a row: message, piece of it, and the length of the whole message in words, in powers of two."""
    return (sequence << _SEQUENCE_SHIFT) | (piece << LENGTH_BITS) | min(_LENGTHS - 1, length.bit_length())


def sequence_of(place: int) -> int:
    return place >> _SEQUENCE_SHIFT


def places_of(sequences: range) -> range:
    """All numbers that rows of these messages can have."""
    return range(sequences.start << _SEQUENCE_SHIFT, sequences.stop << _SEQUENCE_SHIFT)


@dataclass(frozen=True, slots=True)
class Ask:
    """What an index is asked for: rows with any of the ``tokens``, or with all ``phrase`` words in a row.

    ``prefix``: the last word of the phrase may go on.
    """

    tokens: tuple[str, ...] = ()
    phrase: tuple[str, ...] = ()
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class RankedText:
    """All words and marks of a message, and the words as one text with a blank around each, for phrases.

    ``counts``: how often each is there. To count a word in a list takes as long as the message is, and a pasted log
    is a query of a thousand words.
    """

    counts: Mapping[str, int]
    line: str
    length: int

    @classmethod
    def of(cls, rows: Iterable[tuple[Sequence[str], int, Sequence[str]]]) -> RankedText:
        """From its rows in order: words, how many of them are repeated, marks."""
        tokens: list[str] = []
        lines: list[str] = []
        length = 0
        for words, repeated, marks in rows:
            tokens += words[repeated:]
            tokens += marks
            lines.append(" ".join(words))
            length += len(words) - repeated
        return cls(Counter(tokens), " " + " \n ".join(lines) + " ", length)


class Index(Protocol):
    """Where the words of a conversation are. All of it in one state, as long as one search takes."""

    messages: int
    words: int
    """Of all messages together, marks left out."""

    def places(self, ask: Ask) -> list[int]:
        """The rows that have what is asked for, ascending."""
        ...

    def texts(self, sequences: Sequence[int]) -> Mapping[int, RankedText]:
        """What messages say, by their sequence numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Ranked:
    """A message that was found, what it scores, and how many names or quoted phrases of the query it has.

    ``share``: of the query, weighed by how rare its words are, what stands in the message; ``held``: those words.
    """

    index: int
    score: float
    exact: int = 0
    share: float = 0.0
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """A unit with the places where it is, and what it is worth there."""

    unit: WordUnit
    ask: Ask
    places: list[int]
    idf: float
    weight: float


def rank(
    query: Query, index: Index, limit: int, order: Order = "best", *, among: set[int] | None = None
) -> list[Ranked]:
    """The messages that answer a query, at most ``limit``. ``among``: only these."""
    if not index.messages:
        return []
    parts = list(_parts(query, index))
    allowed = _allowed(parts)
    if among is not None:
        allowed = among & ({sequence_of(n) for part in parts for n in part.places} if allowed is None else allowed)
    if allowed is not None and not allowed:
        return []
    average = max(1.0, index.words / index.messages)
    if order == "newest":
        found = allowed if allowed is not None else {sequence_of(place) for part in parts for place in part.places}
        candidates = heapq.nlargest(limit, found)
    else:
        candidates = _candidates(parts, allowed, index, average, max(MOST_READ, 2 * limit))
    scored = _scored(candidates, parts, index, average)
    if order == "newest":
        return [scored[n] for n in candidates]
    return sorted((scored[n] for n in candidates), key=lambda one: (-one.exact, -one.score, -one.index))[:limit]


def _parts(query: Query, index: Index) -> Iterator[_Part]:
    for unit in query.units:
        part = _part(unit, index, 1.0)
        if part.places or unit.required or not unit.instead:
            yield part
        else:
            yield from (_part(other, index, AS_PART) for other in unit.instead)


def _part(unit: WordUnit, index: Index, weight: float) -> _Part:
    ask = _ask(unit)
    places = index.places(ask)
    count = len(places) if len(places) < 2 else len({place >> _SEQUENCE_SHIFT for place in places})
    idf = math.log(1 + (index.messages - count + 0.5) / (count + 0.5))
    return _Part(unit, ask, places, idf, weight)


def _ask(unit: WordUnit) -> Ask:
    """A word is found in all its forms; words in a row, and what stood in quotes, as they are."""
    if len(unit.words) > 1 or unit.required or unit.prefix:
        return Ask(phrase=unit.words, prefix=unit.prefix)
    (word,) = unit.words
    forms = stems.variants(word)
    tokens = (word, *forms, *(mark + form for mark in (STEM, PART) for form in (word, *forms)))
    return Ask(tokens=tokens)


def _allowed(parts: Sequence[_Part]) -> set[int] | None:
    """The messages that have all that is required; None where nothing is."""
    allowed: set[int] | None = None
    for part in parts:
        if part.unit.required:
            found = {place >> _SEQUENCE_SHIFT for place in part.places}
            allowed = found if allowed is None else allowed & found
    return allowed


# ---- nearly right, for all that have any unit ----


def _candidates(parts: Sequence[_Part], allowed: set[int] | None, index: Index, average: float, most: int) -> list[int]:
    scores: dict[int, float] = {}
    get = scores.get
    for part in parts:
        # A row tells its message's length in powers of two: the middle of each stands for it.
        weights = [_worth(part, 1.0, 0.75 * (1 << length), average) for length in range(_LENGTHS)]
        if part.unit.exact:  # so that no other message takes the place of one that comes first
            weights = [weight + 1_000.0 for weight in weights]
        last = -1
        for place in part.places:
            sequence = place >> _SEQUENCE_SHIFT
            if sequence != last:  # another piece of the same message adds nothing
                scores[sequence] = get(sequence, 0.0) + weights[place & (_LENGTHS - 1)]
                last = sequence
    if allowed is not None:
        scores = {sequence: score for sequence, score in scores.items() if sequence in allowed}
    if len(scores) <= most:
        return list(scores)
    for part in parts:
        _count_repeats(part, index, scores, average)
    # More than are wanted, since a good neighbor may lift one that is not among the best by itself.
    first = _first(scores, 4 * most)
    get = scores.get
    near = {n: scores[n] + NEIGHBOR * max(get(n - 1, 0.0), get(n + 1, 0.0)) for n in first}
    return heapq.nlargest(most, near, key=lambda n: (near[n], n))


def _first(scores: Mapping[int, float], most: int) -> list[int]:
    """The best messages, of equal ones the newest."""
    if len(scores) <= most:
        return list(scores)
    # Comparing bare scores is several times faster than with a key.
    least = heapq.nlargest(most, scores.values())[-1]
    better = [n for n, score in scores.items() if score > least]
    equal = sorted((n for n, score in scores.items() if score == least), reverse=True)
    return better + equal[: most - len(better)]


def _count_repeats(part: _Part, index: Index, scores: dict[int, float], average: float) -> None:
    before = 1.0
    for times, sign in OFTEN if part.ask.tokens else ():
        asked = Ask(tokens=tuple(token + sign for token in part.ask.tokens if token[0] != PART))
        gains = [
            _worth(part, times, 0.75 * (1 << length), average) - _worth(part, before, 0.75 * (1 << length), average)
            for length in range(_LENGTHS)
        ]
        for place in index.places(asked):
            if (sequence := place >> _SEQUENCE_SHIFT) in scores:
                scores[sequence] += gains[place & (_LENGTHS - 1)]
        before = times


# ---- exactly, for the best of them ----


def _scored(candidates: Sequence[int], parts: Sequence[_Part], index: Index, average: float) -> dict[int, Ranked]:
    chosen = set(candidates)
    read = sorted({near for n in candidates for near in (n - 1, n, n + 1) if near >= 0})
    # Neighbors that hold nothing of the query score nothing, and need not be read.
    texts = index.texts([n for n in read if n in chosen or any(_holds(part, n) for part in parts)])
    asked = _Asked(parts)
    held = {n: asked.held(text) for n, text in texts.items()}
    own = {n: sum(_worth(part, times, texts[n].length, average) for part, times in found) for n, found in held.items()}
    return {
        n: Ranked(
            n,
            own.get(n, 0.0) + NEIGHBOR * max(own.get(n - 1, 0.0), own.get(n + 1, 0.0)),
            sum(part.unit.exact for part, _ in held.get(n, ())),
            *asked.coverage([part for part, _ in held.get(n, ())]),
        )
        for n in candidates
    }


def _holds(part: _Part, sequence: int) -> bool:
    at = bisect_left(part.places, sequence << _SEQUENCE_SHIFT)
    return at < len(part.places) and part.places[at] >> _SEQUENCE_SHIFT == sequence


class _Asked:
    """The parts of a query by their words: a pasted log asks for thousands, and a message has few of them."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self._of: dict[str, list[int]] = {}
        self._open: list[int] = []
        """Those of one word that may go on: which words of a text these are, only the text says."""
        for number, part in enumerate(parts):
            if part.ask.prefix and len(part.ask.phrase) == 1:
                self._open.append(number)
            for token in part.ask.phrase[:1] or part.ask.tokens:
                self._of.setdefault(token, []).append(number)
        # Words that no message has do not count: nothing could answer them.
        self._whole = sum(part.idf * part.weight for part in parts if part.places)

    def held(self, text: RankedText) -> list[tuple[_Part, float]]:
        """What of the query a text has, and how often it says it."""
        numbers = {number for token in self._of.keys() & text.counts.keys() for number in self._of[token]}
        found = ((self._parts[n], _times(text, self._parts[n].ask)) for n in sorted(numbers.union(self._open)))
        return [(part, times) for part, times in found if times]

    def coverage(self, held: Iterable[_Part]) -> tuple[float, tuple[str, ...]]:
        """What share of a query these parts are, weighed by how rare each is, and their words."""
        known = [part for part in held if part.places]
        if not self._whole:
            return 0.0, ()
        words = tuple(" ".join(part.unit.words) for part in sorted(known, key=lambda part: -part.idf))
        return sum(part.idf * part.weight for part in known) / self._whole, words


def _worth(part: _Part, times: float, length: float, average: float) -> float:
    """What a unit counts that a text of a length in words says so often."""
    return part.weight * part.idf * times * (K1 + 1) / (times + K1 * (1 - B + B * length / average))


def _times(text: RankedText, ask: Ask) -> float:
    """How often a text says what is asked for: forms of a word count as the word, a compound around it as less."""
    counts = text.counts
    if ask.phrase:
        if any(word not in counts for word in (ask.phrase[:-1] if ask.prefix else ask.phrase)):
            return 0
        return text.line.count(" " + " ".join(ask.phrase) + ("" if ask.prefix else " "))
    plain = stemmed = inside = 0
    for token in ask.tokens:
        found = counts.get(token, 0)
        if found:
            if token[0] == STEM:
                stemmed += found
            elif token[0] == PART:
                inside += found
            else:
                plain += found
    # a form that is stemmed stands among the words as well, and is only counted once where it is the word asked for
    own = counts.get(ask.tokens[0], 0) if stemmed else 0
    times = max(plain, plain - own + stemmed)
    return times if times else AS_PART * min(1, inside)
