"""Parts of lines: a name that no chosen line shows, with the two plain words next to it.

What belongs here: which names get a part of a line, and cutting it out. What does not: what a name is worth and which
lines are chosen whole (``choice``).

The last lines of a choice cost about eleven tokens for each name that they add: most of such a line says again what
others say. The name and two words beside it cost seven, so parts of lines in place of the last lines show far more
names, and still say a little about each. Replays at 16,000 tokens: with 30 % of the room for parts, 88 % of what was
needed again stood in the view with something beside it, and 86 % of what was needed from long ago stood there at all,
instead of 86 % and 79 % with lines alone.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from contextfold import identifiers
from contextfold.evidence.blocks import Block, Vocabulary
from contextfold.evidence.lines import BARE, PLAIN_WORD, named_spans
from contextfold.evidence.section import parts_as_text, parts_under_mark
from contextfold.evidence.sizes import Sizes

# With 45 % and shorter parts, 89.7 instead of 84.9 % of what is needed late is there; planted facts lose 5 points.
SHARE = 0.3
"""Of the room for evidence, what parts of lines take where not every name stands in a line."""

REACH = 40
"""Characters. A part of a line is at most this much longer than the name in it."""

OVERHEAD = 5
"""Characters added to the length of a part for its price: a line break, and the first token, however short it is."""

CONSIDERED = 1.5
"""Names that are looked at, per token of room: several times more than fit."""


_LEAST_AT_ONCE = 256
"""Names for which lines are looked through together."""

_TOGETHER = 64
"""Parts of lines whose sizes are counted together."""


class Clip(NamedTuple):
    """Part of a line, word for word. ``quality``: as in ``choice``, 1 where plain words stand beside the name."""

    text: str
    quality: float


def clips(weights: Mapping[int, float], blocks: Sequence[Block], words: Vocabulary, room: int, sizes: Sizes) -> str:
    """The parts of lines most worth their tokens, under the mark; at most ``room`` tokens, and empty if nothing fits.

    ``weights``: the names (by their numbers) that no chosen line shows, and how much each will be missed. ``blocks``:
    all that may be quoted, oldest first; of several lines with a name the newest counts that has plain words beside it.
    """
    if room <= 0 or not blocks:
        return ""
    texts = words.texts
    taken: list[str] = []
    shown: set[str] = set()
    cut: dict[tuple[str, int], Clip] = {}
    left = room - sizes.text(parts_as_text([""]))
    for name, text, size in _sized(_ranked(weights, blocks, words, room, cut), sizes):
        if texts[name] in shown:
            continue
        left -= size + 1
        if left < 0:
            break
        taken.append(text)
        shown.update(_named(text))
    words.clips = cut
    while taken and (excess := sizes.joined(parts_under_mark(taken)) - room) > 0:
        del taken[-max(1, excess // 8) :]
    return parts_as_text(taken)


def _sized(ranked: Iterator[tuple[int, str]], sizes: Sizes) -> Iterator[tuple[int, str, int]]:
    """The names in their order, their parts of lines and the sizes of these, counted some at a time."""
    while some := list(islice(ranked, _TOGETHER)):
        for (name, text), size in zip(some, sizes.each([text for _, text in some]), strict=True):
            yield name, text, size


def _ranked(
    weights: Mapping[int, float],
    blocks: Sequence[Block],
    words: Vocabulary,
    room: int,
    cut: dict[tuple[str, int], Clip],
) -> Iterator[tuple[int, str]]:
    """The names that are worth most for their tokens, the best first, each with its part of a line."""
    texts = words.texts
    heaviest = heapq.nsmallest(
        int(room * CONSIDERED), ((-weight / (len(texts[n]) + OVERHEAD), texts[n], n) for n, weight in weights.items())
    )
    waiting: list[tuple[float, str, int, str]] = []
    lines = _Lines(blocks)
    # A part is no shorter than its name, which says how much it can be worth at most. So lines are looked through for
    # some names at a time, and not for those that come after all that fits.
    at_once = max(_LEAST_AT_ONCE, room // 4)
    for start in range(0, len(heaviest), at_once):
        names = {n for _, _, n in heaviest[start : start + at_once]}
        for n, clip in _newest(names, lines, words, cut).items():
            heapq.heappush(waiting, (-weights[n] * clip.quality / _price(clip), texts[n], n, clip.text))
        best = heaviest[start + at_once][0] if start + at_once < len(heaviest) else math.inf
        while waiting and waiting[0][0] < best:
            _, _, n, text = heapq.heappop(waiting)
            yield n, text


class _Lines:
    """The lines of blocks, and where each name stands in them, the newest line first."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.texts = [text for block in blocks for text in block.texts]
        counts, named, shown = (
            np.concatenate([np.empty(0, np.int32), *parts])
            for parts in zip(*((block.counts, block.named, block.shown) for block in blocks), strict=True)
        )
        place = np.arange(len(shown)) - np.repeat(np.cumsum(counts) - counts, counts)
        is_name = place < np.repeat(named, counts)
        self._names = shown[is_name][::-1]
        self._lines = np.repeat(np.arange(len(counts)), counts)[is_name][::-1]

    def holding(self, names: set[int], words: Vocabulary) -> Iterator[tuple[int, int]]:
        """(name, number of a line that holds it) for some names, the newest line first."""
        is_asked = np.zeros(len(words), dtype=bool)
        is_asked[list(names)] = True
        asked = is_asked[self._names]
        return zip(self._names[asked].tolist(), self._lines[asked].tolist(), strict=True)


def _newest(names: set[int], lines: _Lines, words: Vocabulary, cut: dict[tuple[str, int], Clip]) -> dict[int, Clip]:
    """For each name the part of the newest line where plain words stand beside it, or else of the newest line.

    ``cut``: gets all parts that were looked at.
    """
    found: dict[int, Clip] = {}
    spans: dict[int, list[tuple[int, int]]] = {}
    left = set(names)
    for name, line in lines.holding(names, words):
        if name not in left:
            continue
        text = lines.texts[line]
        clip = words.clips.get((text, name))
        if clip is None:
            if line not in spans:
                spans[line] = list(_plain_words(text))
            clip = _cut(text, words.texts[name], spans[line])
        cut[text, name] = clip
        if clip.quality > found.get(name, _NOTHING).quality:
            found[name] = clip
            if clip.quality == 1:
                left.discard(name)
    return found


_NOTHING = Clip("", 0.0)


def _cut(text: str, name: str, words: Sequence[tuple[int, int]]) -> Clip:
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
        return Clip(text[first:last], 1.0)
    return Clip(name, BARE)


def _plain_words(text: str) -> Iterator[tuple[int, int]]:
    """Where the plain words of a line begin and end: those outside its names."""
    taken = named_spans(text)
    n = 0
    for word in PLAIN_WORD.finditer(text):
        start, end = word.span()
        while n < len(taken) and taken[n][1] <= start:
            n += 1
        if n == len(taken) or taken[n][0] >= end:
            yield start, end


@lru_cache(maxsize=2_048)
def _named(text: str) -> tuple[str, ...]:
    """All that a part of a line shows."""
    return tuple(one for name in identifiers.names(text) for one in (name, *identifiers.endings(name)))


def _price(clip: Clip) -> int:
    return len(clip.text) + OVERHEAD
