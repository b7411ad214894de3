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

**How is that quick?** A choice lowers what others would add, except for its neighbors, which are looked at again, so a
heap with lazy updates finds the next one (Minoux, "Accelerated greedy algorithms for maximizing submodular set
functions", 1978). Weights and gains of all lines are computed in arrays; only the best few thousand enter the heap, and
when most of what the heap holds is out of date, or what is left out might be better, all gains are computed again. Sums
run in the order of the lines, so the outcome is that of a plain greedy choice to the last bit.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from contextfold.evidence.blocks import LEAST_WORTH, MENTION, PAIR, TERM, Block, Floats, Ints, Vocabulary, pair_factors
from contextfold.evidence.clips import SHARE, clips
from contextfold.evidence.lines import BARE, ENOUGH_WORDS, Line
from contextfold.evidence.section import as_quoted, lines_under_marks
from contextfold.evidence.sizes import Sizes
from contextfold.evidence.told import is_relative

__all__ = ["FADING", "LEAST_WORTH", "MENTION", "PAIR", "RARITY", "TERM", "YOUNGEST", "select"]

FADING = 0.15
"""Exponent of age. The fitted one is 1.0 for what is needed next; a lower one also keeps what is needed late, and what
is needed next mostly still stands in the recent messages."""

YOUNGEST = 500
"""Tokens added to every age, so that no single mention outweighs everything else."""

RARITY = 0.5
"""Exponent of the number of messages that say a plain word."""

TOLD = 3.0
"""What a line of talk counts besides its names and words, for each unit of what it tells."""

LEAST_SAID = 3
"""Plain words that two statements must have in common, and no others, to be about the same thing."""

JOINED = 200
"""Characters. Two neighboring lines longer than this together are not offered as a pair."""

_HELD = 2000
"""Spans that enter the heap at a time. Most others are never looked at."""

_STALE = 2000
"""Spans that are looked at for nothing before all gains are computed again, which takes about as long."""

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


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
    that stands beside the lines: what a user said that stands there word for word is not quoted again. ``is_talk``:
    the history is a dialogue without tools, in which lines count by what they tell (``told``). ``dates``: for each
    candidate the day of its stretch of talk, where that is known. It stands with lines that say ``yesterday``.
    """
    words = Vocabulary() if words is None else words
    sizes = Sizes(count) if sizes is None else sizes
    blocks = [(end, lines if isinstance(lines, Block) else Block(lines, words)) for end, lines in candidates]
    material = _Material(blocks, words, sizes, is_talk)
    weights = material.weights(now, _numbers(already, beside, words))
    choice = _Choice(material, weights, _needless(blocks, beside, shown))
    chosen = choice.make(budget)
    quoted = {n: as_quoted(material.texts[n]) for n in chosen}
    dated = material.dated(chosen, dates)
    text, _ = _fitted(quoted, material.speakers, chosen, budget, sizes, dated)
    if not choice.missing(chosen):
        return text
    # Names are missing: the last lines give way to parts of lines, which show more names for their tokens.
    text, size = _fitted(quoted, material.speakers, chosen, int(budget * (1 - SHARE)), sizes, dated)
    missing = choice.missing(chosen)
    parts = clips(missing, [block for _, block in blocks], words, budget - size - 1, sizes)
    return "\n".join(filter(None, (text, parts)))


def _numbers(already: Collection[str], beside: Iterable[Block], words: Vocabulary) -> Ints:
    """The numbers of the names that stand in the view."""
    known = [number for name in already if (number := words.known(name)) is not None]
    return np.concatenate([np.array(known, dtype=np.int32), *(block.mentions for block in beside)])


def _fitted(
    quoted: Mapping[int, str],
    speakers: bytes,
    chosen: list[int],
    budget: int,
    sizes: Sizes,
    dates: Mapping[int, str],
) -> tuple[str, int]:
    """The chosen lines as a text of at most ``budget`` tokens, and its size. What is too much is taken off the end of
    ``chosen``.
    """
    lines = lines_under_marks(quoted, speakers, chosen, dates)
    while (excess := (size := sizes.joined(lines)) - budget) > 0 and chosen:
        # several at a time while far off: each look counts the whole text
        del chosen[-max(1, excess // 40) :]
        lines = lines_under_marks(quoted, speakers, chosen, dates)
    return "\n".join(lines), size


def _needless(blocks: Sequence[tuple[int, Block]], beside: Sequence[Block], shown: str) -> Flags:
    """The lines of users that stand in ``shown``, and those that the user said again later about something else.

    Said again is what has the same plain words with other names or figures: ``the budget is $900``. Later words win,
    also those that stand in the view (``beside``).
    """
    latest: dict[bytes, str] = {}
    for block in reversed(beside):
        for n in _said_by_users(block):
            latest.setdefault(_words_of(block, n), block.texts[n])
    flags: list[Flags] = []
    for _, block in reversed(blocks):
        needless = np.zeros(len(block), dtype=bool)
        for n in _said_by_users(block):
            text, key = block.texts[n], _words_of(block, n)
            if block.bonuses[n] and key:
                needless[n] = latest.setdefault(key, text) != text
            needless[n] |= bool(shown) and " ".join(text.split()) in shown
        flags.append(needless)
    return np.concatenate([np.zeros(0, dtype=bool), *reversed(flags)])


def _said_by_users(block: Block) -> list[int]:
    """The numbers of a block's lines that a user said, the last first."""
    return [n for n in range(len(block) - 1, -1, -1) if block.speakers[n] == 0] if 0 in block.speakers else []


def _words_of(block: Block, n: int) -> bytes:
    """What tells whether two lines are about the same: their plain words; empty where there are too few."""
    start = int(block.counts[:n].sum())
    said = np.sort(block.shown[start + int(block.named[n]) : start + int(block.counts[n])])
    return said.tobytes() if len(said) >= LEAST_SAID else b""


def _faded(age: int) -> float:
    """What an age in tokens leaves of a weight."""
    share: float = (1000 / (max(0, age) + YOUNGEST)) ** FADING
    return share


class _Material:
    """The lines of all candidates in one row, and what is known of each."""

    def __init__(
        self, blocks: Sequence[tuple[int, Block]], words: Vocabulary, sizes: Sizes, is_talk: bool = False
    ) -> None:
        found = [block for _, block in blocks]
        self.ends = [end for end, _ in blocks]
        self.blocks = found
        self.vocabulary = words
        self.texts = [text for block in found for text in block.texts]
        self.speakers = b"".join(block.speakers for block in found)
        self.words = _joined([block.words for block in found])
        self.characters = _joined([block.characters for block in found])
        self.sizes = _joined([sizes.lines(block) for block in found])
        self.counts = _joined([block.counts for block in found])
        self.shown = _joined([block.shown for block in found])
        self.message = np.repeat(np.arange(len(found)), [len(block) for block in found])
        self.bonuses = self._once(is_talk)

    def _once(self, is_talk: bool) -> Floats:
        """The bonus of each line; of lines that say the same only the newest has one."""
        bonuses = np.concatenate([np.empty(0), *(block.bonuses for block in self.blocks)])
        if is_talk:
            bonuses += TOLD * np.concatenate([np.empty(0), *(block.told for block in self.blocks)])
        shapes = np.concatenate([np.empty(0, np.int64), *(block.shapes for block in self.blocks)])
        _, newest = np.unique(shapes[::-1], return_index=True)
        once = np.zeros_like(bonuses)
        kept = len(shapes) - 1 - newest
        once[kept] = bonuses[kept]
        return once

    def dated(self, chosen: Iterable[int], dates: Sequence[str]) -> dict[int, str]:
        """The days of those of these lines that mean nothing without."""
        first = np.cumsum([0, *map(len, self.blocks)])
        found: dict[int, str] = {}
        for n in chosen:
            message = int(self.message[n])
            block = self.blocks[message]
            date = (block.dates[n - int(first[message])] if block.dates else "") or (dates[message] if dates else "")
            if date and is_relative(self.texts[n]):
                found[n] = date
        return found

    def weights(self, now: int, already: Ints) -> Floats:
        """For every number of the vocabulary, how much it will be missed; 0 for what the candidates do not mention.

        A name counts once per message and speaker, however often it stands there. A term counts what hangs on it: its
        best mention, less the more messages say it.
        """
        size = len(self.vocabulary)
        factors = np.array([_faded(now - end) for end in self.ends])
        mentions = [block.mentions for block in self.blocks]
        values = np.concatenate([np.empty(0), *(block.mention_weights for block in self.blocks)])
        values *= np.repeat(factors, [len(part) for part in mentions])
        weights = np.zeros(size)
        np.add.at(weights, _joined(mentions), values)
        weights[already] = 0.0
        said = [block.terms for block in self.blocks]
        terms = _joined(said)
        if not len(terms):
            return weights
        values = np.concatenate([np.empty(0), *(block.term_weights for block in self.blocks)])
        values *= np.repeat(factors, [len(part) for part in said])
        best = np.zeros(size)
        np.maximum.at(best, terms, values)
        messages = np.bincount(terms, minlength=size)
        distinct = np.flatnonzero(messages)
        rarity = np.array([float(n) ** RARITY for n in range(int(messages.max()) + 1)])
        factor: Floats = np.array(pair_factors(self.vocabulary, distinct.tolist()))
        weights[distinct] = best[distinct] * factor / rarity[messages[distinct]]
        return weights


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int32), *parts])


class _Choice:
    """Greedy choice of spans: single lines, and two neighbors where one of them lacks plain words."""

    def __init__(self, material: _Material, weights: Floats, needless: Flags) -> None:
        self.material = material
        self.weights = weights
        material.bonuses[needless] = 0.0
        known = (weights[material.shown] > 0) & ~np.repeat(needless, material.counts)
        line_of = np.repeat(np.arange(len(material.counts)), material.counts)[known]
        self.wanted = material.shown[known]
        """What the lines show and is wanted, line by line."""
        self.counts = np.bincount(line_of, minlength=len(material.counts))
        self.starts = np.concatenate([[0], np.cumsum(self.counts)])
        self.offered = (self.counts > 0) | (material.bonuses > 0)
        self.poor = self.offered & (material.words < ENOUGH_WORDS)
        self.pairs = self._pairs()
        self.shown = [0.0] * len(weights)
        """How well each name or term is shown, up to 1."""
        self.chosen: set[int] = set()
        self._prepare()

    def _pairs(self) -> Flags:
        """For each line, whether it is offered together with the next one."""
        material = self.material
        if not len(material.counts):
            return np.zeros(0, dtype=bool)
        near = (material.message[:-1] == material.message[1:]) & (
            material.characters[:-1] + material.characters[1:] <= JOINED
        )
        return np.append(near & (self.poor[:-1] | self.poor[1:]), False)

    def _prepare(self) -> None:
        """The spans as arrays, and what the loop reads of lines as lists: those are quicker for one at a time."""
        material = self.material
        singles, pairs = np.flatnonzero(self.offered), np.flatnonzero(self.pairs)
        self.first = np.concatenate([singles, pairs])
        self.last = np.concatenate([singles, pairs + 1])
        # Of spans that add the same the first wins, in the order: a line, with the one before it, with the one after.
        self.order = np.concatenate([3 * singles, np.where(self.poor[pairs], 3 * pairs + 2, 3 * pairs + 4)])
        self.worth = self.weights.tolist()
        self._open = list(self.worth)
        """What showing each name or term in full would add. Most lines do, so most gains are sums of these."""
        self._numbers, self._starts = self.wanted.tolist(), self.starts.tolist()
        self._ids: list[list[int] | None] = [None] * len(material.counts)
        self._words = material.words.tolist()
        self._sizes = (material.sizes + 1).tolist()  # 1: the line break
        self._bonuses = material.bonuses.tolist()
        self._message = material.message.tolist()
        self._paired = self.pairs.tolist()
        self._poor = self.poor.tolist()
        self._entries()

    def _entries(self) -> None:
        """All that spans show, one after the other: the first entry of each line is its bonus (number -1)."""
        lines = np.concatenate([np.column_stack([self.first, self.last])[:, k] for k in (0, 1)])
        spans = np.concatenate([np.arange(len(self.first))] * 2)
        twice = np.concatenate([np.ones(len(self.first), dtype=bool), self.first != self.last])
        lines, spans = lines[twice], spans[twice]
        by_span = np.argsort(spans, kind="stable")
        lines, spans = lines[by_span], spans[by_span]
        lengths = self.counts[lines] + 1
        ends = np.cumsum(lengths)
        heads = ends - lengths
        places = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(heads, lengths)
        source = np.repeat(self.starts[lines] - 1, lengths) + places
        numbers = self.wanted[np.maximum(source, 0)] if len(self.wanted) else np.zeros(len(source), dtype=np.int32)
        self._entry_number = np.where(places == 0, 0, numbers)
        self._entry_weight = np.where(places == 0, 0.0, self.weights[self._entry_number] if len(self.weights) else 0.0)
        self._entry_span = np.repeat(spans, lengths)
        self._heads, self._head_line, self._head_span = heads, lines, spans

    def _gains(self, left: int) -> Floats:
        """What each span would add per token now; 0 for those that do not fit what is left."""
        material = self.material
        is_chosen = np.zeros(len(material.counts) + 2, dtype=bool)  # one more at each end
        if self.chosen:
            is_chosen[np.fromiter(self.chosen, dtype=np.int64) + 1] = True
        message = np.concatenate([[-1], material.message, [-1]])
        words = np.concatenate([[0], material.words, [0]])
        inside = words[self.first + 1] + np.where(self.first == self.last, 0, words[self.last + 1])
        for inner, outer in ((self.first + 1, self.first), (self.last + 1, self.last + 2)):
            inside = inside + np.where(is_chosen[outer] & (message[inner] == message[outer]), words[outer], 0)
        quality = BARE + (1 - BARE) * np.minimum(1.0, inside / ENOUGH_WORDS)
        better = quality[self._entry_span] - np.array(self.shown or [0.0])[self._entry_number]
        values = np.where(better > 0, better * self._entry_weight, 0.0)
        new = ~is_chosen[self._head_line + 1]
        values[self._heads] = np.where(new, material.bonuses[self._head_line], 0.0)
        value = np.bincount(self._entry_span, weights=values, minlength=len(self.first))
        sizes = np.where(new, material.sizes[self._head_line] + 1, 0)
        cost = np.bincount(self._head_span, weights=sizes, minlength=len(self.first))
        return np.where((cost > 0) & (cost <= left), value / np.maximum(cost, 1.0), 0.0)

    def make(self, budget: int) -> list[int]:
        """Numbers of the chosen lines, best first, within ``budget`` tokens."""
        order: list[int] = []
        left = budget
        queue, least = self._best(left)
        # The newest entry of each span in the heap. A span that became no better has one that is good enough: it is
        # looked at again when its turn comes.
        entered = {number: -gain for gain, number, _, _ in queue}
        stale = 0
        while left > 0:
            if not queue or -queue[0][0] < least or stale > _STALE:
                if stale <= _STALE and least == 0.0:
                    break
                queue, least = self._best(left)
                entered = {number: -gain for gain, number, _, _ in queue}
                stale = 0
                if not queue:
                    break
            expected, number, first, last = heapq.heappop(queue)
            gain = self._gain(first, last)
            entered[number] = 0.0
            if gain <= 0:
                continue
            if gain < -expected * (1 - 1e-9):
                heapq.heappush(queue, (-gain, number, first, last))
                entered[number] = gain
                stale += 1
                continue
            new = [n for n in range(first, last + 1) if n not in self.chosen]
            cost = sum(self._sizes[n] for n in new)
            if cost > left:
                continue
            left -= cost
            order += new
            self._take(first, last, new)
            for span in {span for n in new for span in self._touching(n)}:
                gain = self._gain(span[1], span[2])  # a neighbor may have become cheaper or better
                if gain > entered.get(span[0], 0.0):
                    heapq.heappush(queue, (-gain, *span))
                    entered[span[0]] = gain
        return order

    def _best(self, left: int) -> tuple[list[tuple[float, int, int, int]], float]:
        """A heap of the best spans, and the gain below which others, left out of it, may be better."""
        gains = self._gains(left)
        found = np.flatnonzero(gains > 0)
        least = 0.0
        if len(found) > 2 * _HELD:
            least = float(np.partition(gains[found], len(found) - _HELD)[len(found) - _HELD])
            found = found[gains[found] >= least]
        rows = (-gains[found], self.order[found], self.first[found], self.last[found])
        heap = list(zip(*(row.tolist() for row in rows), strict=True))
        heapq.heapify(heap)
        return heap, least

    def _touching(self, n: int) -> Iterable[tuple[int, int, int]]:
        """The spans that line ``n`` can have made better by being chosen: number, first line, last line.

        What stands beside it has its plain words now, where it has any; what it is part of has become cheaper. A line
        that has plain words of its own is neither.
        """
        poor, chosen = self._poor, self.chosen
        reach = 1 if self._words[n] else 0
        if reach:
            for first in (n - 1, n + 1):
                if 0 <= first < len(poor) and poor[first] and first not in chosen:
                    yield 3 * first, first, first
        for first in range(max(0, n - 1 - reach), min(len(poor), n + 1 + reach)):
            if self._paired[first] and not (first in chosen and first + 1 in chosen):
                yield 3 * first + (2 if poor[first] else 4), first, first + 1

    def missing(self, chosen: Sequence[int]) -> dict[int, float]:
        """The names that none of these lines shows and that say something without their line: number -> weight."""
        is_missing = self.weights > 0
        for n in chosen:
            is_missing[self._wanted(n)] = False
        telling = np.zeros(len(is_missing), dtype=bool)
        telling[_joined([block.telling for block in self.material.blocks])] = True
        numbers = np.flatnonzero(is_missing & telling)
        return dict(zip(numbers.tolist(), self.weights[numbers].tolist(), strict=True))

    def _wanted(self, n: int) -> list[int]:
        found = self._ids[n]
        if found is None:
            found = self._ids[n] = self._numbers[self._starts[n] : self._starts[n + 1]]
        return found

    def _gain(self, first: int, last: int) -> float:
        """What the span would add per token."""
        shown, worth, chosen = self.shown, self.worth, self.chosen
        if first == last:  # most spans
            if first in chosen:
                return 0.0
            if self._words[first] >= ENOUGH_WORDS:
                value = self._bonuses[first]
                for added in map(self._open.__getitem__, self._ids[first] or self._wanted(first)):
                    value += added
                gain: float = value / self._sizes[first]
                return gain
        quality = 1.0 if self._words[first] >= ENOUGH_WORDS else self._quality(first, last)
        value = cost = 0.0
        for n in (first,) if first == last else (first, last):
            if n not in chosen:
                cost += self._sizes[n]
                value += self._bonuses[n]
            wanted = self._ids[n] or self._wanted(n)
            if quality == 1.0:
                for added in map(self._open.__getitem__, wanted):
                    value += added
                continue
            for number in wanted:
                better = quality - shown[number]
                if better > 0:
                    value += better * worth[number]
        return value / cost if cost else 0.0

    def _quality(self, first: int, last: int) -> float:
        """How well the span would show its names: 1 with enough plain words in it or in a chosen line next to it."""
        words = self._words[first] if first == last else self._words[first] + self._words[last]
        if words < ENOUGH_WORDS:
            if first - 1 in self.chosen and self._message[first] == self._message[first - 1]:
                words += self._words[first - 1]
            if last + 1 in self.chosen and self._message[last] == self._message[last + 1]:
                words += self._words[last + 1]
        share: float = min(1.0, words / ENOUGH_WORDS)
        return BARE + (1 - BARE) * share

    def _take(self, first: int, last: int, new: Iterable[int]) -> None:
        quality = self._quality(first, last)
        self.chosen.update(new)
        for n in range(first, last + 1):
            for number in self._wanted(n):
                if quality > self.shown[number]:
                    self.shown[number] = quality
                    self._open[number] = (1.0 - quality) * self.worth[number]
