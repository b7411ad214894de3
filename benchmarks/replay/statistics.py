"""From results to rows of a table: totals over conversations, the figures of columns, and 95 % intervals."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.replay.measure import Column, Number, Totals, added
from benchmarks.replay.results import Result
from benchmarks.replay.strategies import REFERENCE

RESAMPLES = 1_000
"""Of the bootstrap. Its seed is fixed: the same results give the same interval."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One strategy in one window over all conversations."""

    strategy: str
    window: int
    conversations: int
    totals: Totals
    reference: Totals
    """The totals of ``none`` for the same conversations; empty where it was not run."""
    values: Mapping[str, float | None]
    """By the key of the column."""
    intervals: Mapping[str, Interval]
    """95 % of the resampled conversations lie within, for columns that are shares."""
    first_error: str

    def as_json(self) -> dict[str, Any]:
        """All figures, for other programs."""
        return {
            "strategy": self.strategy,
            "window": self.window,
            "conversations": self.conversations,
            "values": dict(self.values),
            "intervals": {key: list(bounds) for key, bounds in self.intervals.items()},
            "totals": dict(self.totals),
            "first_error": self.first_error,
        }


def rows(results: Sequence[Result], columns: Sequence[Column]) -> list[Row]:
    """A row for each window and strategy, in the order in which they came."""
    found = []
    for window in dict.fromkeys(sorted(result.window for result in results)):
        here = [result for result in results if result.window == window]
        for strategy in dict.fromkeys(result.strategy for result in here):
            mine = [result for result in here if result.strategy == strategy]
            found.append(_row(mine, [result for result in here if result.strategy == REFERENCE], columns))
    return found


def _row(results: Sequence[Result], references: Sequence[Result], columns: Sequence[Column]) -> Row:
    totals = added([result.totals for result in results])
    digests = {result.digest for result in results}
    reference = added([result.totals for result in references if result.digest in digests])
    sampled = [column for column in columns if column.sample is not None]
    intervals = {column.key: interval(_pairs(results, column)) for column in sampled}
    return Row(
        strategy=results[0].strategy,
        window=results[0].window,
        conversations=len(results),
        totals=totals,
        reference=reference,
        values={column.key: column.value(totals, reference) for column in columns},
        intervals={key: bounds for key, bounds in intervals.items() if bounds is not None},
        first_error=next((result.first_error for result in results if result.first_error), ""),
    )


def _pairs(results: Iterable[Result], column: Column) -> list[tuple[Number, Number]]:
    assert column.sample is not None
    part, whole = column.sample
    return [(result.totals.get(part, 0), result.totals.get(whole, 0)) for result in results]


def interval(pairs: Sequence[tuple[Number, Number]]) -> Interval | None:
    """95 % interval of the sum of parts over the sum of wholes, resampling whole conversations.

    The percentile bootstrap (Efron 1979); None for fewer than two conversations that have anything to count.
    """
    counted = [pair for pair in pairs if pair[1]]
    if len(counted) < 2:
        return None
    chance = random.Random(0)
    values = []
    for _ in range(RESAMPLES):
        sample = chance.choices(counted, k=len(counted))
        values.append(sum(part for part, _ in sample) / sum(whole for _, whole in sample))
    values.sort()
    return values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES) - 1]


@dataclass(frozen=True)
class Times:
    """How long one strategy took for a call, in milliseconds, over all calls of a window."""

    strategy: str
    window: int
    calls: int
    median: float
    ninety_fifth: float
    worst: float


def times(results: Sequence[Result]) -> list[Times]:
    """Of each window and strategy."""
    gathered: dict[tuple[int, str], list[float]] = {}
    for result in results:
        samples = gathered.setdefault((result.window, result.strategy), [])
        samples += result.times.get("milliseconds", ())
    return [_times(strategy, window, sorted(samples)) for (window, strategy), samples in gathered.items() if samples]


def _times(strategy: str, window: int, ordered: Sequence[float]) -> Times:
    high = ordered[int(0.95 * (len(ordered) - 1))]
    return Times(strategy, window, len(ordered), median(ordered), high, ordered[-1])
