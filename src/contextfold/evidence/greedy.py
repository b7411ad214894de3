"""A greedy choice of lines: what each would add beside those that are chosen, per token.

What belongs here: gains and the choice. What does not: what a name and a line weigh (``choice``).

A choice lowers what others would add, except for its neighbors, so a heap with lazy updates finds the next one (Minoux,
"Accelerated greedy algorithms for maximizing submodular set functions", 1978). What each line adds at first is computed
in arrays. The lines far ahead go on the heap; when the next ones may be better, those that were ahead at first are
weighed again, together. In whole numbers, so that the outcome is that of a plain greedy choice that weighs every line
again.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from contextfold.evidence.blocks import Blocks, Flags, Floats, Ints, Numbers
from contextfold.evidence.reading import BARE, ENOUGH_WORDS

JOINED = 200
"""Characters. Two neighboring lines longer than this together are not offered as a pair."""

QUALITIES = [round(1000 * (BARE + (1 - BARE) * words / ENOUGH_WORDS)) for words in range(ENOUGH_WORDS + 1)]
"""How well a name is shown with no, one, ... plain words beside it, in thousandths."""

LEVELS = np.array([0, *QUALITIES])
BETTER = np.maximum(LEVELS[:, None] - LEVELS, 0)
"""What a name shown at one level adds where it was shown at another."""

_BETTER: list[list[int]] = BETTER.tolist()

UNIT = 1 << 32
"""What a weight of 1 is in whole numbers. Sums of those are the same in any order, so what is shown by now can be taken
off what a line adds, instead of weighing the line again."""

MOST = 10_000.0
"""What a weight counts at most. A line names some 200 things; their units, in thousandths, then fit in 64 bits."""

_AT_ONCE = 300
"""Spans that are weighed together, the ones that may add most, before half of them and more are looked at one by one.
Most others never are."""

_FALLEN = 16
"""Spans in a row that add less than was known, as where lines come again: then all that are ahead are weighed again,
together, in the time of some thirty of them."""

_NEAR = 2_048
"""Spans among which those are looked for, the ones with the highest bounds at some moment: a look at the bounds of all
takes as long as to weigh hundreds, and is due only once these have fallen below all others."""


def in_units(weights: Floats) -> Numbers:
    """Weights as whole numbers."""
    units: Numbers = np.rint(np.minimum(weights, MOST) * UNIT).astype(np.int64)
    return units


class Choice:
    """Greedy choice of spans: single lines, and two neighbors where one of them lacks plain words."""

    def __init__(self, row: Blocks, sizes: Ints, bonuses: Floats, weights: Floats, needless: Flags) -> None:
        """``sizes`` and ``bonuses``: of each line; ``weights``: of each name and term by its number. ``needless``:
        lines that are not offered.
        """
        self.row = row
        self.weights = weights
        bonuses = np.where(needless, 0.0, bonuses)
        units = in_units(weights)[row.shown]
        known = (units > 0) & ~np.repeat(needless, row.counts)
        self._wanted, self._units = row.shown[known], units[known]
        """What the lines show and is wanted, line by line, and what it weighs."""
        ends = np.concatenate([[0], np.cumsum(row.counts)])
        self._starts: Numbers = np.concatenate([[0], np.cumsum(known)])[ends]
        offered = (np.diff(self._starts) > 0) | (bonuses > 0)
        poor = offered & (row.words < ENOUGH_WORDS)
        self._sizes: Numbers = sizes.astype(np.int64) + 1  # 1: the line break
        self._bonuses: Numbers = in_units(bonuses) * QUALITIES[-1]
        self._shown = np.zeros(len(weights), dtype=np.uint8)
        """How well each name or term is shown, by its place in ``LEVELS``."""
        self._is_chosen = bytearray(len(offered))
        self._spans(offered, poor)
        self._budget = self._left = 0
        self._chosen: list[int] = []
        # One at a time is read from views of the arrays: those give plain numbers, in half the time.
        self._views = _Views(
            first=_view(self._first),
            last=_view(self._last),
            starts=_view(self._starts),
            sizes=_view(self._sizes),
            bonuses=_view(self._bonuses),
            level=_view(self._level),
            shown=_view(self._shown),
            wanted=_view(self._wanted),
            units=_view(self._units),
            words=_view(self.row.words),
            of_block=_view(self.row.of_block),
            order=_view(self._order),
        )

    def _begin(self, bounds: Floats) -> None:
        self._bounds = bounds
        """What each span adds per token at most: what it added when it was weighed last."""
        self._near = np.empty(0, dtype=np.int64)
        """Some spans, and what no bound of the others exceeds (``_beyond``)."""
        self._is_near, self._beyond = _marked(self._near, len(bounds)), math.inf
        self._risen: set[int] = set()
        """Spans whose bounds rose since, and may exceed it."""

    def _spans(self, offered: Flags, poor: Flags) -> None:
        words, singles, pairs = self.row.words, np.flatnonzero(offered), np.flatnonzero(self._pairs(poor))
        self._first, self._last = np.concatenate([singles, pairs]), np.concatenate([singles, pairs + 1])
        # Of spans that add the same the first wins, in the order: a line, with the one before it, with the one after.
        self._order = np.concatenate([3 * singles, np.where(poor[pairs], 3 * pairs + 2, 3 * pairs + 4)])
        self._single = _places(singles, 0, len(offered))
        """For each line, the number of the span that it is; -1 for none. Three more stand for lines around them all."""
        self._pair = _places(pairs, len(singles), len(offered))
        """The same for the span that it is with the next line."""
        inside = np.concatenate([words[singles], words[pairs] + words[pairs + 1]])
        self._level = (1 + np.minimum(inside, ENOUGH_WORDS)).astype(np.uint8)
        """How well each span shows its names, by its place in ``LEVELS``."""

    def _pairs(self, poor: Flags) -> Flags:
        """For each line, whether it is offered together with the next one."""
        row = self.row
        if not len(row.counts):
            return np.zeros(0, dtype=bool)
        near = (row.of_block[:-1] == row.of_block[1:]) & (row.characters[:-1] + row.characters[1:] <= JOINED)
        return np.append(near & (poor[:-1] | poor[1:]), False)

    def _at_first(self) -> Floats:
        """What each span adds per token as long as nothing is chosen."""
        first, last = self._first, self._last
        sums = np.concatenate([[0], np.cumsum(self._units)])  # a span's lines stand side by side, and so their names
        value = LEVELS[self._level] * (sums[self._starts[last + 1]] - sums[self._starts[first]])
        gains: Floats = (value + _over(self._bonuses, first, last)) / _over(self._sizes, first, last)
        return gains

    def make(self, budget: int) -> list[int]:
        """Numbers of the chosen lines, best first, within ``budget`` tokens. Asked again with more, it goes on."""
        self._left += budget - self._budget
        self._budget = budget
        # What had no room may have some now.
        self._begin(self._gains(np.arange(len(self._first))) if self._chosen else self._at_first())
        best: list[tuple[float, int, int]] = []
        least, fallen = math.inf, 0
        while self._left > 0:
            if not best or -best[0][0] <= least:
                best, least = self._best()
                if not best:
                    break
            expected, order, span = heapq.heappop(best)
            gain = self._gain(span)
            if gain < -expected:
                if gain > 0:
                    heapq.heappush(best, (-gain, order, span))
                fallen += 1
                if fallen >= _FALLEN and best:
                    best, fallen = self._weighed(np.array([span for _, _, span in best]), 0.0), 0
                continue
            fallen = 0
            new = self._take(span)
            self._chosen += new
            for span in self._around(new):
                if (gain := self._gain(span)) > 0:
                    heapq.heappush(best, (-gain, self._views.order[span], span))
                    self._bounds[span] = gain
                    self._risen.add(span)
        return list(self._chosen)

    def _best(self) -> tuple[list[tuple[float, int, int]], float]:
        """(-gain, order, span) of the spans that add most per token by now, as a heap, and what no other exceeds."""
        many = _AT_ONCE
        while True:
            spans, least = self._ahead(many)
            best = self._weighed(spans, least)
            if not least or 2 * len(best) > _AT_ONCE:
                return best, least
            many *= 2

    def _weighed(self, spans: Numbers, least: float) -> list[tuple[float, int, int]]:
        """Those of some spans that add more than ``least`` per token by now, as a heap."""
        # What a span adds never grows but by a line beside it, so those with lower bounds are not weighed again.
        self._bounds[spans] = gains = self._gains(spans)
        is_best = gains > least
        spans = spans[is_best]
        best = list(zip((-gains[is_best]).tolist(), self._order[spans].tolist(), spans.tolist(), strict=True))
        heapq.heapify(best)
        return best

    def _ahead(self, many: int) -> tuple[Numbers, float]:
        """The spans with the highest bounds, and the highest bound of the others: 0 where there are none."""
        if self._risen:
            risen = np.fromiter(self._risen, dtype=np.int64, count=len(self._risen))
            self._near = np.concatenate([self._near, risen[~self._is_near[risen]]])
            self._is_near[risen] = True
            self._risen = set()
        spans, least = self._highest(self._near, many)
        if least < self._beyond:
            # what has no room now has none later: at the end, that is nearly all
            self._bounds[_over(self._sizes, self._first, self._last) > self._left] = 0.0
            self._near, self._beyond = self._highest(np.flatnonzero(self._bounds > 0), max(_NEAR, 2 * many))
            self._is_near = _marked(self._near, len(self._bounds))
            spans, least = self._highest(self._near, many)
        return spans, least

    def _highest(self, spans: Numbers, many: int) -> tuple[Numbers, float]:
        """Those of some spans that have the highest bounds, and the highest bound of the others, as in ``_ahead``."""
        if len(spans) <= many:
            return spans, 0.0
        order = np.argpartition(self._bounds[spans], len(spans) - many - 1)
        return spans[order[-many:]], float(self._bounds[spans[order[-many - 1]]])

    def _gains(self, spans: Numbers) -> Floats:
        """What each of these spans adds per token by now; 0 for what is chosen or has no room."""
        first, last = self._first[spans], self._last[spans]
        cost = _over(self._sizes, first, last)
        begin, end = self._starts[first], self._starts[last + 1]
        lengths = end - begin
        ends = np.cumsum(lengths)
        entries = np.repeat(begin - ends + lengths, lengths) + np.arange(int(lengths.sum()))
        better = BETTER[np.repeat(self._level[spans], lengths), self._shown[self._wanted[entries]]]
        # A sum of thousands may exceed 64 bits. It goes on from below then, and the difference of two is right.
        sums = np.concatenate([[0], np.cumsum(self._units[entries] * better)])
        value = sums[ends] - sums[ends - lengths] + _over(self._bonuses, first, last)
        gains: Floats = np.where((cost > 0) & (cost <= self._left), value / np.maximum(cost, 1), 0.0)
        return gains

    def _gain(self, span: int) -> float:
        """The same of one span."""
        views = self._views
        first, last = views.first[span], views.last[span]
        cost, value = views.sizes[first], views.bonuses[first]
        if last != first:
            cost += views.sizes[last]
            value += views.bonuses[last]
        if not 0 < cost <= self._left:
            return 0.0  # what does not fit now comes back only where a neighbor makes it cheaper
        begin, end = views.starts[first], views.starts[last + 1]
        better, shown = _BETTER[views.level[span]], views.shown
        for number, unit in zip(views.wanted[begin:end], views.units[begin:end], strict=True):
            value += unit * better[shown[number]]
        return float(value) / cost

    def _take(self, span: int) -> list[int]:
        """A span is chosen. Returns the lines that were not."""
        views = self._views
        first, last, level, shown = views.first[span], views.last[span], views.level[span], views.shown
        for number in views.wanted[views.starts[first] : views.starts[last + 1]]:
            if shown[number] < level:
                shown[number] = level
        new = [n for n in range(first, last + 1) if not self._is_chosen[n]]
        for n in new:
            self._left -= views.sizes[n]
            self._is_chosen[n] = 1
            views.sizes[n] = views.bonuses[n] = 0
        return new

    def _around(self, new: Iterable[int]) -> set[int]:
        """The spans that became cheaper or better since these lines are chosen."""
        single, pair, words = self._single, self._pair, self._views.words
        touched: set[int] = set()
        for n in new:
            touched.add(pair[n - 1])
            touched.add(pair[n])
            if words[n]:
                for span in (single[n - 1], single[n + 1], pair[n - 2], pair[n + 1]):
                    if span >= 0 and self._is_better(span):
                        touched.add(span)
        touched.discard(-1)
        return touched

    def _is_better(self, span: int) -> bool:
        """Whether the span shows its names better than before, now that a line beside it is chosen."""
        views = self._views
        before = views.level[span]
        if before == len(QUALITIES):
            return False
        words, of_block, chosen = views.words, views.of_block, self._is_chosen
        first, last = views.first[span], views.last[span]
        inside = words[first] if first == last else words[first] + words[last]
        if first and chosen[first - 1] and of_block[first - 1] == of_block[first]:
            inside += words[first - 1]
        if last + 1 < len(chosen) and chosen[last + 1] and of_block[last + 1] == of_block[last]:
            inside += words[last + 1]
        views.level[span] = level = 1 + min(inside, ENOUGH_WORDS)
        return level > before

    def missing(self, chosen: Sequence[int]) -> Numbers:
        """The numbers of the names that none of these lines shows and that say something without their line."""
        is_missing = np.zeros(len(self.weights), dtype=bool)
        is_missing[self.row.telling] = True
        is_missing &= self.weights > 0
        shown = np.zeros(len(self._starts) - 1, dtype=bool)
        shown[chosen] = True
        is_missing[self._wanted[np.repeat(shown, np.diff(self._starts))]] = False
        return np.flatnonzero(is_missing)


@dataclass(slots=True)
class _Views:
    """Views of the arrays of a choice. With slots: to read a field of a named tuple takes several times as long."""

    first: memoryview
    last: memoryview
    starts: memoryview
    sizes: memoryview
    bonuses: memoryview
    level: memoryview
    shown: memoryview
    wanted: memoryview
    units: memoryview
    words: memoryview
    of_block: memoryview
    order: memoryview


def _view(array: npt.NDArray[Any]) -> memoryview:
    return memoryview(array)  # type: ignore[arg-type]


def _marked(places: Numbers, length: int) -> Flags:
    """For each of ``length`` places whether it is among these."""
    is_marked = np.zeros(length, dtype=bool)
    is_marked[places] = True
    return is_marked


def _over(lines: Numbers, first: Numbers, last: Numbers) -> Numbers:
    """The sums of numbers of lines over spans from ``first`` to ``last``, of one line or two."""
    return lines[first] + np.where(first != last, lines[last], 0)


def _places(lines: Numbers, start: int, length: int) -> memoryview:
    """For each of ``length`` lines its place among ``lines``, counted from ``start``; -1 for those not there."""
    # Three more: for the line behind the last one and, counted from the end, two before the first.
    places = np.full(length + 3, -1)
    places[lines] = np.arange(start, start + len(lines))
    return _view(places)
