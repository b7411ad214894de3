"""Which lines are carried: what each would add, and a greedy choice under a token budget.

What belongs here: weights, gains and the choice. What does not: what a line holds (``lines``).

**What is an identifier worth?** Whether something will be needed again follows its history of use: the odds grow with
how often it was met and fade as a power of how long ago (Anderson and Schooler, "Reflections of the Environment in
Memory", Psychological Science 2, 1991). Agent sessions obey the same law. Fitted to which identifiers of evicted
messages came back in 27 real conversations, a mention by the assistant, in words or in a call, counts at least twice as
much as one by a user and ten times one in a tool's output. So an identifier weighs the sum over its mentions of
``MENTION / age ** FADING``, times what it would cost to get it wrong (``Line.worths``).

**What is a sentence worth that names nothing?** What it says that no other message says. Its plain words weigh
``TERM / age ** FADING / messages ** RARITY``: words said everywhere weigh next to nothing, those said once tell that a
sentence is about something of its own. A summary as a cover of weighted concepts (Gillick and Favre, "A Scalable Global
Model for Summarization", 2009), beside the names as further concepts.

**Which line shows it?** A bare name helps little: ``max_age`` in a list says less than ``max_age = 3600 # seconds``. So
an identifier counts in full only where plain words stand with it, in its line or in a neighboring one that is
quoted too. Lines are chosen greedily by what they add per token, alone or with a neighbor; what is shown
already adds nothing.

**How is that quick?** A choice lowers what others would add, except for its neighbors, so a heap with lazy updates
finds the next one (Minoux, "Accelerated greedy algorithms for maximizing submodular set functions", 1978). What each
line adds at first is computed in arrays. The lines far ahead go on the heap; when the next ones may be better, those
that were ahead at first are weighed again, together. In whole numbers, so that the outcome is that of a plain
greedy choice that weighs every line again.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from contextfold.evidence.blocks import PAIR, Block, Blocks, Floats, Ints, Numbers, Vocabulary
from contextfold.evidence.clips import SHARE, clips
from contextfold.evidence.reading import BARE, ENOUGH_WORDS, RULE, Line
from contextfold.evidence.section import as_quoted, lines_under_marks
from contextfold.evidence.sizes import Sizes
from contextfold.evidence.told import is_relative
from contextfold.summary.extractive_facts import sentences
from contextfold.summary.rules import said_of
from contextfold.summary.statements import statements_of

# Between 0.08 and 0.15 replays show no difference worth a decision.
FADING = 0.15
"""Exponent of age. The fitted one is 1.0 for what is needed next; a lower one also keeps what is needed late, and what
is needed next mostly still stands in the recent messages."""

YOUNGEST = 500
"""Tokens added to every age, so that no single mention outweighs everything else."""

# An exponent of 1 makes no difference in replays.
RARITY = 0.5
"""Exponent of the number of messages that say a plain word."""

TOLD = 3.0
"""What a line of talk counts besides its names and words, for each unit of what it tells."""

LEAST_SAID = 3
"""Plain words that two statements must have in common, and no others, to be about the same thing."""

LEAST_TAKEN = 8
"""Tokens of a line for each name that it adds at the end of a choice, at the very least: about eleven in the mean."""

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

_NEAR = 2_048
"""Spans among which those are looked for, the ones with the highest bounds at some moment: a look at the bounds of all
takes as long as to weigh hundreds, and is due only once these have fallen below all others."""

_TABLE = 1 << 16
"""Places in a table of hashes: many more than there are lines with a bonus."""

_GOES_ON = re.compile(r"[.,:/\\@'’+-]?\w")
_ENDS_INSIDE = re.compile(r"\w[.,:/\\@'’+-]?$")
"""What behind a text, and before it, is one word or name with what it ends or begins with."""

Flags = npt.NDArray[np.bool_]


def select(
    candidates: Sequence[tuple[int, Sequence[Line] | Block]],
    *,
    budget: int,
    already: Collection[str],
    count: Callable[[str], int],
    now: int,
    beside: Sequence[Block] = (),
    sizes: Sizes | None = None,
    words: Vocabulary | None = None,
    shown: str = "",
    taken_back: Collection[str] = (),
    replaced: Collection[str] = (),
    is_talk: bool = False,
    dates: Sequence[str] = (),
) -> str:
    """The lines most worth their tokens, in their original order under short marks of who said them.

    ``candidates``: for each evicted message, in order, how many tokens of the history end with it, and its lines.
    ``now``: tokens of the whole history. ``already``: names that need no evidence since they stand in the view.
    The text has at most ``budget`` tokens as ``count`` gives them, and is empty if nothing fits or nothing is left to
    say.

    For a caller that keeps what is known of a message: ``words`` is the vocabulary of all blocks among the candidates,
    ``beside`` are blocks whose names stand in the view, and ``sizes`` counts as ``count`` does. ``shown`` is a text
    that stands beside the lines: what a user said that stands there word for word is not quoted again. ``taken_back``:
    rules that hold no longer; lines that set no others count by what they name. ``replaced``: those that others took
    the place of; lines that say nothing else are not quoted. ``is_talk``: the history is a dialogue without tools, in
    which lines count by what they tell (``told``). ``dates``: for each candidate the day of its stretch of talk, where
    that is known. It stands with lines that say ``yesterday``.
    """
    words = Vocabulary() if words is None else words
    sizes = Sizes(count) if sizes is None else sizes
    blocks = [(end, lines if isinstance(lines, Block) else Block(lines, words)) for end, lines in candidates]
    lapsed, gone = _lapsed(blocks, taken_back, replaced)
    material = _Material(blocks, words, sizes, is_talk, lapsed)
    weights = material.weights(now, _numbers(already, beside, words))
    needless = _needless(blocks, beside, shown)
    if gone:
        needless[gone] = True
        weights[~material.named_outside(gone)] = 0.0
    choice = _Choice(material, weights, needless)

    def lines(room: int) -> tuple[str, int, Numbers]:
        """The text of the lines that fit, its size, and the names that it does not show."""
        chosen = choice.make(room)
        quoted = {n: as_quoted(material.row.texts[n]) for n in chosen}
        text, size = _fitted(quoted, material, chosen, room, sizes, material.dated(chosen, dates))
        return text, size, choice.missing(chosen)

    text, size, missing = lines(int(budget * (1 - SHARE)))
    # Only where few names are left can lines show them all; where names are missing, the last lines would give way to
    # parts of lines, which show more names for their tokens.
    if len(missing) * LEAST_TAKEN <= budget - size:
        whole, _, unshown = lines(budget)
        if not len(unshown):
            return whole
    parts = clips(missing, weights, material.row, words, budget - size - 1, sizes)
    return "\n".join(filter(None, (text, parts)))


def _numbers(already: Collection[str], beside: Iterable[Block], words: Vocabulary) -> Ints:
    """The numbers of the names that stand in the view."""
    known = [number for name in already if (number := words.known(name)) is not None]
    return np.concatenate([np.array(known, dtype=np.int32), *(block.mentions for block in beside)])


def _fitted(
    quoted: Mapping[int, str],
    material: _Material,
    chosen: list[int],
    budget: int,
    sizes: Sizes,
    dates: Mapping[int, str],
) -> tuple[str, int]:
    """The chosen lines as a text of at most ``budget`` tokens, and its size. What is too much is taken off the end of
    ``chosen``.
    """
    lines = _marked_lines(quoted, material, chosen, dates)
    while (excess := (size := sizes.joined(lines)) - budget) > 0 and chosen:
        # as many as take the excess by themselves; a look at the whole tells what their breaks and marks took
        while excess > 0 and chosen:
            excess -= int(material.sizes[chosen.pop()]) + 1
        lines = _marked_lines(quoted, material, chosen, dates)
    return "\n".join(lines), size


def _marked_lines(
    quoted: Mapping[int, str], material: _Material, chosen: Sequence[int], dates: Mapping[int, str]
) -> list[str]:
    """The chosen lines under marks, rows of tables below what names their columns."""
    heads = material.heads(chosen)
    texts = {**quoted, **{n: as_quoted(material.row.texts[n]) for n in heads}}
    return lines_under_marks(texts, material.row.speakers, [*chosen, *heads], dates)


def _needless(blocks: Sequence[tuple[int, Block]], beside: Sequence[Block], shown: str) -> Flags:
    """The lines of users that stand in ``shown``, and those that the user said again later about something else."""
    latest: dict[tuple[bytes, frozenset[str]], str] = {}
    for block in reversed(beside):
        for n in _said_by_users(block):
            if words := _words_of(block, n):
                latest.setdefault((words, _said_of(block.texts[n])), block.texts[n])
    needless = np.zeros(sum(len(block) for _, block in blocks), dtype=bool)
    start = len(needless)
    for _, block in reversed(blocks):
        start -= len(block)
        for n in _said_by_users(block):
            text, words = block.texts[n], _words_of(block, n)
            if block.bonuses[n] and words:
                # The same plain words with other names or figures: ``the budget is $900``. Later words win, also those
                # that stand in the view. What is forbidden of another thing is not the same.
                needless[start + n] = latest.setdefault((words, _said_of(text)), text) != text
            needless[start + n] |= bool(shown) and _stands(" ".join(text.split()), shown)
    return needless


def _lapsed(
    blocks: Sequence[tuple[int, Block]], taken_back: Collection[str], replaced: Collection[str]
) -> tuple[list[int], list[int]]:
    """The numbers of the lines of users that set rules which hold no longer, and no others; and of those among them
    whose rules were replaced and that say nothing else.
    """
    lapsed: list[int] = []
    alone: list[int] = []
    start = 0
    fallen = {*taken_back, *replaced}
    for _, block in blocks if fallen else ():
        for n in _said_by_users(block):
            said, is_all = _rules_said(block.texts[n]) if block.bonuses[n] >= RULE else ((), False)
            # A line may be a part of a sentence.
            if said and all(any(rule in text for text in fallen) for rule in said):
                lapsed.append(start + n)
                if is_all and all(any(rule in text for text in replaced) for rule in said):
                    alone.append(start + n)
        start += len(block)
    return lapsed, alone


@lru_cache(maxsize=4_096)
def _rules_said(line: str) -> tuple[tuple[str, ...], bool]:
    """The rules that a line sets, and whether it says nothing else."""
    said = list(sentences(line))
    found = tuple(one.text for one in statements_of(said) if one.is_rule)
    return found, len(" ".join(found)) >= len(" ".join(said))


_said_of = lru_cache(maxsize=4_096)(said_of)


def _stands(line: str, shown: str) -> bool:
    """Whether a line stands in a text, its label aside: that may stand above it.

    It is not said by one that goes on: neither ``use port 80`` by ``use port 8080`` or ``use port 80.5``, nor by a text
    without blanks that says something more about the same (``不要修改数据库`` by ``不要修改数据库结构``).
    """
    if ": " in line and f"- {line.partition(': ')[2]}\n" in f"{shown}\n":
        return True
    start = shown.find(line)
    while start >= 0:
        if not _ENDS_INSIDE.search(shown[max(0, start - 2) : start]) and not _GOES_ON.match(shown, start + len(line)):
            return True
        start = shown.find(line, start + 1)
    return False


def _said_by_users(block: Block) -> list[int]:
    """The numbers of a block's lines that a user said, the last first."""
    return [n for n in range(len(block) - 1, -1, -1) if block.speakers[n] == 0] if 0 in block.speakers else []


def _words_of(block: Block, n: int) -> bytes:
    """What tells whether two lines are about the same: their plain words; empty where there are too few."""
    start = int(block.counts[:n].sum())
    said = np.sort(block.shown[start + int(block.named[n]) : start + int(block.counts[n])])
    return said.tobytes() if len(said) >= LEAST_SAID else b""


def _faded(age: int) -> float:
    share: float = (1000 / (max(0, age) + YOUNGEST)) ** FADING
    return share


class _Material:
    def __init__(
        self,
        blocks: Sequence[tuple[int, Block]],
        words: Vocabulary,
        sizes: Sizes,
        is_talk: bool = False,
        lapsed: Sequence[int] = (),
    ) -> None:
        self.row = Blocks([block for _, block in blocks])
        self.ends = [end for end, _ in blocks]
        self.vocabulary = words
        self.sizes = sizes.of(self.row.blocks)
        """Tokens of each line."""
        self.bonuses = self._once(is_talk, lapsed)
        self._first: list[int] = np.cumsum([0, *map(len, self.row.blocks)]).tolist()

    def _once(self, is_talk: bool, lapsed: Sequence[int]) -> Floats:
        """The bonus of each line; of lines that say the same only the newest has one. ``lapsed``: lines without any."""
        bonuses = self.row.bonuses
        bonuses[list(lapsed)] = 0.0
        if is_talk:
            bonuses += TOLD * np.concatenate([np.empty(0), *(block.told for block in self.row.blocks)])
        shapes = np.concatenate([np.empty(0, np.int64), *[block.shapes for block in self.row.blocks]])
        # Most lines have no bonus and nothing in common with one that has: few are left by the last bits of the hashes.
        is_shape = np.zeros(_TABLE, dtype=bool)
        is_shape[shapes[bonuses > 0] % _TABLE] = True
        likely = np.flatnonzero(is_shape[shapes % _TABLE])[::-1]
        _, newest = np.unique(shapes[likely], return_index=True)
        once = np.zeros_like(bonuses)
        kept = likely[newest]
        once[kept] = bonuses[kept]
        return once

    def named_outside(self, gone: Sequence[int]) -> Flags:
        """For every number of the vocabulary, whether a line that is not among these shows it."""
        is_left = np.ones(len(self.row.counts), dtype=bool)
        is_left[list(gone)] = False
        is_shown = np.zeros(len(self.vocabulary), dtype=bool)
        is_shown[self.row.shown[np.repeat(is_left, self.row.counts)]] = True
        return is_shown

    def heads(self, chosen: Iterable[int]) -> set[int]:
        """The lines that name the columns of those of these lines that are rows of tables, as far as rows would stand
        without it or below another one.
        """
        lines, found, above = set(chosen), set[int](), ""
        for n in sorted(lines):
            message = int(self.row.of_block[n])
            start = self._first[message]
            head = self.row.blocks[message].head_of(n - start)
            if head is not None:
                text = self.row.texts[start + head]
                if text != above and start + head not in lines:
                    found.add(start + head)
                above = text
        return found

    def dated(self, chosen: Iterable[int], dates: Sequence[str]) -> dict[int, str]:
        """The days of those of these lines that mean nothing without."""
        if not dates and not any(block.dates for block in self.row.blocks):
            return {}
        first = np.cumsum([0, *map(len, self.row.blocks)])
        found: dict[int, str] = {}
        for n in chosen:
            message = int(self.row.of_block[n])
            block = self.row.blocks[message]
            date = (block.dates[n - int(first[message])] if block.dates else "") or (dates[message] if dates else "")
            if date and is_relative(self.row.texts[n]):
                found[n] = date
        return found

    def weights(self, now: int, already: Ints) -> Floats:
        """For every number of the vocabulary, how much it will be missed; 0 for what the candidates do not mention.

        A name counts once per message and speaker, however often it stands there. A term counts what hangs on it: its
        best mention, less the more messages say it.
        """
        row, size = self.row, len(self.vocabulary)
        factors = np.array([_faded(now - end) for end in self.ends], dtype=np.float64)
        weights = np.zeros(size)
        np.add.at(weights, row.mentions, row.mention_weights * row.each_mention(factors))
        weights[already] = 0.0
        if not len(row.terms):
            return weights
        best = np.zeros(size)
        np.maximum.at(best, row.terms, row.term_weights * row.each_term(factors))
        messages = np.bincount(row.terms, minlength=size)
        said = np.flatnonzero(messages)
        rarity = np.array([float(n) ** RARITY for n in range(int(messages.max()) + 1)])
        factor = np.where(self.vocabulary.are_pairs[said], PAIR, 1.0)
        weights[said] = best[said] * factor / rarity[messages[said]]
        return weights


def in_units(weights: Floats) -> Numbers:
    """Weights as whole numbers."""
    units: Numbers = np.rint(np.minimum(weights, MOST) * UNIT).astype(np.int64)
    return units


class _Choice:
    """Greedy choice of spans: single lines, and two neighbors where one of them lacks plain words."""

    def __init__(self, material: _Material, weights: Floats, needless: Flags) -> None:
        row = self.row = material.row
        self.weights = weights
        material.bonuses[needless] = 0.0
        units = in_units(weights)[row.shown]
        known = (units > 0) & ~np.repeat(needless, row.counts)
        self._wanted, self._units = row.shown[known], units[known]
        """What the lines show and is wanted, line by line, and what it weighs."""
        ends = np.concatenate([[0], np.cumsum(row.counts)])
        self._starts: Numbers = np.concatenate([[0], np.cumsum(known)])[ends]
        offered = (np.diff(self._starts) > 0) | (material.bonuses > 0)
        poor = offered & (row.words < ENOUGH_WORDS)
        self._sizes: Numbers = material.sizes.astype(np.int64) + 1  # 1: the line break
        self._bonuses: Numbers = in_units(material.bonuses) * QUALITIES[-1]
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
        least = math.inf
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
                continue
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
            # What a span adds never grows but by a line beside it, so those with lower bounds are not weighed again.
            self._bounds[spans] = gains = self._gains(spans)
            is_best = gains > least
            if not least or 2 * np.count_nonzero(is_best) > _AT_ONCE:
                break
            many *= 2
        spans = spans[is_best]
        best = list(zip((-gains[is_best]).tolist(), self._order[spans].tolist(), spans.tolist(), strict=True))
        heapq.heapify(best)
        return best, least

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


class _Views(NamedTuple):
    """Views of the arrays of a choice."""

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
