"""Planted facts: what a strategy still tells after 1, 3 and 5 compactions.

What belongs here: following the planted facts of one conversation through the views of one strategy, and the counts.
What does not: the facts (``facts``), and putting them into the conversation (``planting``).

A *compaction* is a view that is not the view before it with something appended. There are two clocks:

- ``left`` counts from the view in which the fact's message no longer stands as it was; the compaction that took it out
  is the first. This asks memory alone, and is the one to compare.
- ``said`` counts from the first view that could have shown the fact. Here a fact that still stands in the kept tail
  counts as known.

Each fact is asked for once per clock and number of compactions, in the view of that compaction. A view over the window
or malformed tells nothing: no provider would have taken it. *Told* means that all parts of the fact stand together in
one message of the view (``facts.NEAR``); *exact* that the whole sentence does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.replay.measure import Number
from benchmarks.replay.planted.facts import Fact, is_told, is_verbatim, parts_together, squeezed
from benchmarks.replay.planted.planting import Planted

AFTER = (1, 3, 5)
CLOCKS = ("left", "said")
FIGURES = ("asked", "told", "exact", "parts_told", "parts")

Key = tuple[str, int, str, str, str]
"""Clock, number of compactions, kind, voice, language."""


@dataclass
class Retention:
    """Counts of ``FIGURES`` by ``Key``. Adding two gives the counts over both their conversations."""

    counts: dict[Key, list[int]] = field(default_factory=dict)

    def add(self, key: Key, figures: Sequence[int]) -> None:
        old = self.counts.get(key, [0] * len(FIGURES))
        self.counts[key] = [a + b for a, b in zip(old, figures, strict=True)]

    def merge(self, other: Retention) -> None:
        for key, figures in other.counts.items():
            self.add(key, figures)

    def share(self, clock: str, after: int, figure: str = "told", **only: str) -> float | None:
        """Told (or ``exact``) facts per asked one, where ``kind``, ``voice`` and ``language`` are as given."""
        asked, got = self.total(clock, after, figure, **only)
        return got / asked if asked else None

    def total(self, clock: str, after: int, figure: str = "told", **only: str) -> tuple[int, int]:
        """(how many were asked for, how many of them were told)."""
        column = FIGURES.index(figure)
        base = FIGURES.index("parts") if figure == "parts_told" else 0
        rows = [figures for key, figures in self.counts.items() if key[:2] == (clock, after) and _fits(key, only)]
        return sum(row[base] for row in rows), sum(row[column] for row in rows)

    def to_json(self) -> dict[str, Number]:
        """Flat totals: one entry for each key and figure, which may be added up like any others."""
        found: dict[str, Number] = {}
        for key, figures in sorted(self.counts.items()):
            found |= {"|".join(map(str, (*key, name))): n for name, n in zip(FIGURES, figures, strict=True)}
        return found

    @classmethod
    def from_json(cls, totals: Mapping[str, Number]) -> Retention:
        """From what ``to_json`` gave, or sums of such."""
        retention = cls()
        for name, number in totals.items():
            clock, after, kind, voice, language, figure = name.split("|")
            row = [int(number) if column == figure else 0 for column in FIGURES]
            retention.add((clock, int(after), kind, voice, language), row)
        return retention


def _fits(key: Key, only: dict[str, str]) -> bool:
    named = dict(zip(("kind", "voice", "language"), key[2:], strict=True))
    return all(named[name] == value for name, value in only.items())


@dataclass
class _Followed:
    """A fact with the compactions since it was said, and since its message left (None: it has not)."""

    planted: Planted
    said: int = 0
    left: int | None = None

    def age(self, is_kept: bool) -> None:
        """One compaction more."""
        self.said += 1
        if self.left is not None:
            self.left += 1
        elif not is_kept:
            self.left = 1


class Follower:
    """Follows the facts of one conversation through the views of one strategy, in order."""

    def __init__(self, planted: Iterable[Planted]) -> None:
        self.retention = Retention()
        self._waiting = sorted((_Followed(one) for one in planted), key=lambda f: -f.planted.index)
        self._followed: list[_Followed] = []
        self._texts: dict[int, str] = {}

    def observe(
        self,
        *,
        length: int,
        kept: Collection[int],
        numbers: Sequence[int],
        others: Iterable[tuple[int, str]],
        compacted: bool,
        usable: bool,
    ) -> None:
        """One view.

        Args:
            length: messages of the conversation that it could show.
            kept: numbers of messages that stand in it as they were.
            numbers: of the messages of the conversation.
            others: a number and the text of each message of the view that is none of the conversation.
            compacted: it is not the view before it with something appended.
            usable: a provider would take it.
        """
        if compacted:
            texts = [self._squeezed(number, text) for number, text in others] if usable else []
            for one in self._followed:
                is_kept = numbers[one.planted.index] in kept
                one.age(is_kept)
                self._ask(one, _figures(one.planted.fact, is_kept, texts) if usable else (0, 0, 0))
        while self._waiting and self._waiting[-1].planted.index < length:
            self._followed.append(self._waiting.pop())

    def _ask(self, one: _Followed, figures: tuple[int, int, int]) -> None:
        fact = one.planted.fact
        for clock, number in (("said", one.said), ("left", one.left)):
            if number in AFTER:
                key = (clock, number, fact.kind, fact.voice, fact.language)
                self.retention.add(key, (1, *figures, len(fact.parts)))

    def _squeezed(self, number: int, text: str) -> str:
        if number not in self._texts:
            self._texts[number] = squeezed(text)
        return self._texts[number]


def _figures(fact: Fact, is_kept: bool, others: Sequence[str]) -> tuple[int, int, int]:
    """(told, exact, parts told), given whether its own message stands in the view and what else does."""
    if is_kept:
        return 1, 1, len(fact.parts)
    told = any(is_told(fact, text) for text in others)
    exact = any(is_verbatim(fact, text) for text in others)
    return int(told), int(exact), max((parts_together(fact, text) for text in others), default=0)
