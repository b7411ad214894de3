"""Parts of lines: a name that no chosen line shows, with the two plain words next to it.

What belongs here: which names get a part of a line, and cutting it out. What does not: what a name is worth and which
lines are chosen whole (``choice``).

The last lines of a choice cost about eleven tokens for each name that they add: most of such a line says again what
others say. The name and two words beside it cost seven, so parts of lines in place of the last lines show far more
names, and still say a little about each. Replays at 16,000 tokens: with 30 % of the room for parts, 88 % of what was
needed again stood in the view with something beside it, and 86 % of what was needed from long ago stood there at all,
instead of 86 % and 79 % with lines alone.

What is worth most is taken first, but parts stand in the order of their lines, like whole lines: what stood together
stands together, which says a little even about a name without a word beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from contextfold import identifiers
from contextfold.evidence.blocks import Blocks, Floats, Numbers, Vocabulary
from contextfold.evidence.reading import BARE, names_in, plain_words
from contextfold.evidence.section import mark_of_parts, parts_under_marks
from contextfold.evidence.sizes import Sizes

# With 45 % and shorter parts, 89.7 instead of 84.9 % of what is needed late is there; planted facts lose 5 points.
SHARE = 0.3
"""Of the room for evidence, what parts of lines take where not every name stands in a line."""

REACH = 40
"""Characters. A part of a line is at most this much longer than the name in it."""

OVERHEAD = 5
"""Characters added to the length of a part for its price: a line break, and the first token, however short it is."""

TWO_WORDS = 4
"""Characters of two plain words at least: two signs each."""

CONSIDERED = 1.5
"""Names that are looked at, per token of room: several times more than fit."""


_AT_ONCE = 256
"""Names for which lines are looked through together."""

_TOGETHER = 128
"""Parts of lines whose sizes are counted together."""


class Clip(NamedTuple):
    """Part of a line, word for word. ``quality``: as in ``choice``, 1 where plain words stand beside the name.
    ``price``: its characters and ``OVERHEAD``. ``speaker``: who said it, by the place in ``blocks.SOURCES``. Every
    choice asks for thousands of them.
    """

    text: str
    quality: float
    price: int
    speaker: int


def clips(missing: Numbers, weights: Floats, row: Blocks, words: Vocabulary, room: int, sizes: Sizes) -> str:
    """The parts of lines most worth their tokens, under marks and in the order of the lines; at most ``room`` tokens,
    and empty if nothing fits.

    ``missing``: the names (by their numbers) that no chosen line shows; ``weights``: how much each number will be
    missed. ``row``: all lines that may be quoted, oldest first; of several with a name the newest counts that has plain
    words beside it.
    """
    if room <= 0 or not row.blocks:
        return ""
    texts = words.texts
    taken: dict[str, tuple[Clip, int]] = {}
    shown: set[str] = set()
    marked: set[int] = set()
    lines = _Lines(row, words)
    left = room
    for name, clip, size in _sized(_ranked(missing, weights, lines, int(room * CONSIDERED)), sizes):
        if texts[name] in shown:
            continue
        named = _named(clip.text)
        # a part that stands in this one says nothing beside it
        within = {one for one in named if one in taken and taken[one][0].text in clip.text}
        left -= size + 1 - sum(taken[one][1] + 1 for one in within)
        if clip.speaker not in marked:
            left -= sizes.text(f"{mark_of_parts(clip.speaker)}\n")
        if left < 0:
            break
        for one in within:
            del taken[one]
        taken[texts[name]] = clip, size
        marked.add(clip.speaker)
        shown.update(named)
    words.clips = lines.found()
    parts = [(*lines.place(name, clip), clip) for name, (clip, _) in taken.items()]
    while (excess := sizes.joined(text := _in_order(parts)) - room) > 0 and parts:
        del parts[-max(1, excess // 8) :]
    return "\n".join(text)


def _in_order(parts: Iterable[tuple[int, int, Clip]]) -> list[str]:
    """Parts of lines under marks. For each the number of its line, and where in it the part begins."""
    ordered = sorted(parts, key=lambda part: part[:2])
    return parts_under_marks([(clip.speaker, clip.text) for _, _, clip in ordered])


def _sized(ranked: Iterator[tuple[int, Clip]], sizes: Sizes) -> Iterator[tuple[int, Clip, int]]:
    """The names in their order, their parts of lines and the sizes of these, counted some at a time."""
    while some := list(islice(ranked, _TOGETHER)):
        for (name, clip), size in zip(some, sizes.again([clip.text for _, clip in some]), strict=True):
            yield name, clip, size


def _ranked(missing: Numbers, weights: Floats, lines: _Lines, most: int) -> Iterator[tuple[int, Clip]]:
    """The names that are worth most for their tokens, the best first, each with its part of a line."""
    texts = lines.words.texts
    waiting: list[tuple[float, str, int, Clip]] = []
    # A part is no shorter than its name, which says how much it can be worth at most. So lines are looked through for
    # some names at a time, and not for those that come after all that fits.
    for names, best in _by_bound(missing, weights, lines, most):
        found = lines.newest(names)
        for (n, clip), weight in zip(found.items(), weights[list(found)].tolist(), strict=True):
            waiting.append((-weight * clip.quality / clip.price, texts[n], n, clip))
        waiting.sort(reverse=True)
        while waiting and waiting[-1][0] < best:
            _, _, n, clip = waiting.pop()
            yield n, clip


def _by_bound(missing: Numbers, weights: Floats, lines: _Lines, most: int) -> Iterator[tuple[Numbers, float]]:
    """The names by what they can be worth per character at most, ``most`` of them and some at a time, each time with
    the bound of those to come. Both are negative; of names with the same the first by their texts are taken.
    """
    texts = lines.words.texts
    bounds = -weights[missing] / (lines.words.lengths[missing] + OVERHEAD)
    if len(bounds) > most:
        last = np.partition(bounds, most - 1)[most - 1]
        kept, tied = np.flatnonzero(bounds < last), np.flatnonzero(bounds == last).tolist()
        tied.sort(key=lambda n: texts[missing[n]])
        chosen = np.concatenate([kept, np.array(tied[: most - len(kept)], dtype=np.int64)])
        missing, bounds = missing[chosen], bounds[chosen]
    # what stands beside a name takes room, too; without, it counts less
    lengths = lines.words.lengths[missing] + OVERHEAD
    bounds = np.minimum(-weights[missing] / (lengths + TWO_WORDS), -weights[missing] * BARE / lengths)
    prices = lines.prices[missing]
    known = np.flatnonzero(prices)
    bounds[known] = -weights[missing[known]] / prices[known]
    lines.keep(missing[known].tolist())
    order = np.argsort(bounds)
    missing, bounds = missing[order], bounds[order]
    start = 0
    while start < len(missing):
        stop = start + _AT_ONCE
        yield missing[start:stop], float(bounds[stop]) if stop < len(bounds) else math.inf
        start = stop


class _Found(NamedTuple):
    """Parts of lines that a choice looked at: the next one, which has most of the same lines, looks at most of them.

    ``numbers``: names whose newest line has plain words beside them, in ascending order; for each the ``serial`` of
    that line and its part. ``others``: all other parts, by speaker, line and name.
    """

    numbers: Numbers
    serials: Numbers
    clips: list[Clip]
    others: dict[tuple[int, str, int], Clip]


class _Lines:
    """All lines, where each name stands in them, and the parts of them that were looked at."""

    def __init__(self, row: Blocks, words: Vocabulary) -> None:
        self.words, self.texts, self.speakers = words, row.texts, row.speakers
        place = np.arange(len(row.shown)) - np.repeat(np.cumsum(row.counts) - row.counts, row.counts)
        is_name = place < np.repeat(row.named, row.counts)
        self._names = row.shown[is_name]
        self._lines: Numbers = np.repeat(np.arange(len(row.counts)), row.counts)[is_name]
        self._newest = np.zeros(len(words), dtype=np.int64)
        self._newest[self._names] = self._lines  # of several the last one is set
        self._serials = row.serials
        self._before: _Found | None = words.clips
        self._known: dict[int, Clip] = {}
        self.prices = np.zeros(len(words))
        """Of the names whose part is known, what it takes; 0 for the others."""
        if self._before is not None:
            numbers, serials, found, _ = self._before
            same = np.flatnonzero(self._serials[self._newest[numbers]] == serials).tolist()
            self._known = dict(zip(numbers[same].tolist(), map(found.__getitem__, same), strict=True))
            self.prices[numbers[same]] = [clip.price for clip in self._known.values()]
        self._spans: dict[int, list[tuple[int, int]]] = {}
        self._of_part: dict[int, int] = {}
        """For each name the line that its part is from."""
        self._sure: dict[int, Clip] = {}
        self._others: dict[tuple[int, str, int], Clip] = {}

    def newest(self, names: Numbers) -> dict[int, Clip]:
        """For each name the part of the newest line where plain words stand beside it, or else of the newest line."""
        found: dict[int, Clip] = {}
        left: list[int] = []
        for name, line in zip(names.tolist(), self._newest[names].tolist(), strict=True):
            self._of_part[name] = line
            clip = self._known.get(name) or self._part(line, name)
            if clip.quality == 1:
                found[name] = self._sure[name] = clip
            else:
                left.append(name)
        for name, lines in self._holding(left):
            best = _NOTHING
            for line in lines:
                clip = self._part(line, name)
                if clip.quality > best.quality:
                    best, self._of_part[name] = clip, line
                if best.quality == 1:
                    break
            if best.quality:
                found[name] = best
        return found

    def place(self, name: str, clip: Clip) -> tuple[int, int]:
        """The number of the line that the part for a name is from, and where in it the part begins."""
        line = self._of_part[self.words.number(name)]
        return line, self.texts[line].find(clip.text)

    def keep(self, names: Iterable[int]) -> None:
        """These names are missing still: what is known of them is kept, also if it comes after all that fits."""
        self._sure.update((name, self._known[name]) for name in names)

    def _holding(self, names: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Each of some names with the numbers of the lines that hold it, the newest first."""
        is_asked = np.zeros(len(self.words), dtype=bool)
        is_asked[names] = True
        asked = np.flatnonzero(is_asked[self._names])[::-1]
        found = self._names[asked]
        order = np.argsort(found, kind="stable")
        found, lines = found[order], self._lines[asked[order]].tolist()
        starts = np.flatnonzero(np.diff(found, prepend=-1)).tolist()
        for start, stop in pairwise([*starts, len(lines)]):
            yield int(found[start]), lines[start:stop]

    def _part(self, line: int, name: int) -> Clip:
        text, speaker = self.texts[line], self.speakers[line]
        clip = self._before.others.get((speaker, text, name)) if self._before is not None else None
        if clip is None:
            spans = self._spans.get(line)
            if spans is None:
                spans = self._spans[line] = plain_words(text)
            clip = _cut(text, speaker, self.words.texts[name], spans)
        if clip.quality < 1:
            self._others[speaker, text, name] = clip
        return clip

    def found(self) -> _Found:
        numbers = np.array(sorted(self._sure), dtype=np.int64)
        serials = self._serials[self._newest[numbers]]
        return _Found(numbers, serials, list(map(self._sure.__getitem__, numbers.tolist())), self._others)


_NOTHING = Clip("", 0.0, OVERHEAD, 0)


def _cut(text: str, speaker: int, name: str, words: Sequence[tuple[int, int]]) -> Clip:
    """The name with the two nearest of the plain ``words`` (where each begins and ends), on one side or one on each."""
    start = text.find(name)
    if start < 0:  # what a name is called by need not stand in the line as it is
        return _NOTHING
    end = start + len(name)
    left = [word for word in words if word[1] <= start]
    right = [word for word in words if word[0] >= end]
    spans = [(left[-2][0], end)] if len(left) > 1 else []
    spans += [(start, right[1][1])] if len(right) > 1 else []
    spans += [(left[-1][0], right[0][1])] if left and right else []
    first, last = min(spans, key=lambda span: span[1] - span[0], default=(start, end))
    if spans and last - first <= len(name) + REACH:
        return Clip(text[first:last], 1.0, last - first + OVERHEAD, speaker)
    return Clip(name, BARE, len(name) + OVERHEAD, speaker)


@lru_cache(maxsize=2_048)
def _named(text: str) -> tuple[str, ...]:
    """All that a part of a line shows."""
    return tuple(one for name in names_in(text) for one in (name, *identifiers.endings(name)))
