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
line adds at first is computed in arrays. From then on every choice takes off what it shows, for each line that shows
the same: in whole numbers, so the outcome is that of a plain greedy choice that weighs every line again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from contextfold.evidence.blocks import LEAST_WORTH, MENTION, PAIR, TERM, Block, Floats, Ints, Vocabulary, pair_factors
from contextfold.evidence.clips import SHARE, clips
from contextfold.evidence.lines import BARE, ENOUGH_WORDS, Line
from contextfold.evidence.section import as_quoted, lines_under_marks
from contextfold.evidence.sizes import Sizes
from contextfold.evidence.told import is_relative

__all__ = ["FADING", "LEAST_WORTH", "MENTION", "PAIR", "RARITY", "TERM", "YOUNGEST", "select"]

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

JOINED = 200
"""Characters. Two neighboring lines longer than this together are not offered as a pair."""

QUALITIES = [round(1000 * (BARE + (1 - BARE) * words / ENOUGH_WORDS)) for words in range(ENOUGH_WORDS + 1)]
"""How well a name is shown with no, one, ... plain words beside it, in thousandths."""

UNIT = 1 << 32
"""What a weight of 1 is in whole numbers. Sums of those are the same in any order, so what is shown by now can be taken
off what a line adds, instead of weighing the line again."""

MOST = 10_000.0
"""What a weight counts at most. A line names some 200 things; their units, in thousandths, then fit in 64 bits."""

_AT_ONCE = 4_000
"""Spans that are put in order at a time. Most others are never looked at."""

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
    text, _ = _fitted(quoted, material, chosen, budget, sizes, dated)
    if not choice.missing(chosen):
        return text
    # Names are missing: the last lines give way to parts of lines, which show more names for their tokens.
    text, size = _fitted(quoted, material, chosen, int(budget * (1 - SHARE)), sizes, dated)
    missing = choice.missing(chosen)
    parts = clips(missing, [block for _, block in blocks], words, budget - size - 1, sizes)
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
    lines = lines_under_marks(quoted, material.speakers, chosen, dates)
    while (excess := (size := sizes.joined(lines)) - budget) > 0 and chosen:
        # as many as take the excess by themselves; a look at the whole tells what their breaks and marks took
        while excess > 0 and chosen:
            excess -= int(material.sizes[chosen.pop()]) + 1
        lines = lines_under_marks(quoted, material.speakers, chosen, dates)
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
    share: float = (1000 / (max(0, age) + YOUNGEST)) ** FADING
    return share


class _Material:
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


def in_units(weights: Floats) -> Numbers:
    """Weights as whole numbers."""
    units: Numbers = np.rint(np.minimum(weights, MOST) * UNIT).astype(np.int64)
    return units


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int32), *parts])


class _Choice:
    """Greedy choice of spans: single lines, and two neighbors where one of them lacks plain words."""

    def __init__(self, material: _Material, weights: Floats, needless: Flags) -> None:
        self.material = material
        self.weights = weights
        material.bonuses[needless] = 0.0
        units = in_units(weights)
        known = (units[material.shown] > 0) & ~np.repeat(needless, material.counts)
        line_of = np.repeat(np.arange(len(material.counts)), material.counts)[known]
        wanted = material.shown[known]
        """What the lines show and is wanted, line by line."""
        counts = np.bincount(line_of, minlength=len(material.counts))
        offered = (counts > 0) | (material.bonuses > 0)
        poor = offered & (material.words < ENOUGH_WORDS)
        # What the loop reads of one at a time is kept in lists, which are quicker for that than arrays.
        self._numbers: list[int] = wanted.tolist()
        self._starts: list[int] = [0, *np.cumsum(counts).tolist()]
        self._units: list[int] = units.tolist()
        self._words: list[int] = material.words.tolist()
        self._message: list[int] = material.message.tolist()
        self._sizes: list[int] = (material.sizes + 1).tolist()  # 1: the line break
        self._bonuses: list[int] = (in_units(material.bonuses) * QUALITIES[-1]).tolist()
        self._shown = [0] * len(weights)
        """How well each name or term is shown, in thousandths."""
        self._is_chosen = bytearray(len(counts))
        self._spans(offered, poor)
        self._weigh(wanted, counts, units)

    def _spans(self, offered: Flags, poor: Flags) -> None:
        singles, pairs = np.flatnonzero(offered), np.flatnonzero(self._pairs(poor))
        first, last = np.concatenate([singles, pairs]), np.concatenate([singles, pairs + 1])
        self.first, self.last = first, last
        # Of spans that add the same the first wins, in the order: a line, with the one before it, with the one after.
        self.order = np.concatenate([3 * singles, np.where(poor[pairs], 3 * pairs + 2, 3 * pairs + 4)])
        self._single = _places(singles, 0, len(offered))
        """For each line, the number of the span that it is; -1 for none. Two more stand for lines around the first."""
        self._pair = _places(pairs, len(singles), len(offered))
        """The same for the span that it is with the next line."""

    def _pairs(self, poor: Flags) -> Flags:
        """For each line, whether it is offered together with the next one."""
        material = self.material
        if not len(material.counts):
            return np.zeros(0, dtype=bool)
        near = (material.message[:-1] == material.message[1:]) & (
            material.characters[:-1] + material.characters[1:] <= JOINED
        )
        return np.append(near & (poor[:-1] | poor[1:]), False)

    def _weigh(self, wanted: Ints, counts: Numbers, units: Numbers) -> None:
        """What each span would add at first, what it costs, and the spans that show each name or term."""
        material, first, last = self.material, self.first, self.last
        is_pair = first != last
        inside = material.words[first] + np.where(is_pair, material.words[last], 0)
        quality = np.array(QUALITIES)[np.minimum(inside, ENOUGH_WORDS)]
        self._quality: list[int] = quality.tolist()
        sizes, bonuses = np.array(self._sizes, dtype=np.int64), np.array(self._bonuses, dtype=np.int64)
        self.cost = sizes[first] + np.where(is_pair, sizes[last], 0)
        # a span's lines stand side by side, and so does what they show
        starts = np.concatenate([[0], np.cumsum(counts)])
        begin, end = starts[first], starts[last + 1]
        sums = np.concatenate([[0], np.cumsum(units[wanted])])
        self.value = quality * (sums[end] - sums[begin]) + bonuses[first] + np.where(is_pair, bonuses[last], 0)
        lengths = end - begin
        entries = np.repeat(begin - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
        numbers = wanted[entries]
        by_number = _in_order(numbers)
        self._showing: list[int] = np.repeat(np.arange(len(first)), lengths)[by_number].tolist()
        """Numbers of the spans that show each name or term, from ``_showing_from`` of its number on."""
        self._showing_from: list[int] = [0, *np.cumsum(np.bincount(numbers, minlength=len(units))).tolist()]

    def make(self, budget: int) -> list[int]:
        """Numbers of the chosen lines, best first, within ``budget`` tokens."""
        gains = self.value / np.maximum(self.cost, 1)
        fresh = _best_first(gains, self.order)
        self._value: list[int] = self.value.tolist()
        self._cost: list[int] = self.cost.tolist()
        first, last, order = self.first.tolist(), self.last.tolist(), self.order.tolist()
        value, cost = self._value, self._cost
        waiting: list[tuple[float, int, int]] = []
        """What was found to add less than at first, or became better."""
        ahead = next(fresh, None)
        chosen: list[int] = []
        left = budget
        while left > 0:
            if waiting and (ahead is None or waiting[0] < ahead):
                expected, _, span = heapq.heappop(waiting)
            elif ahead is not None:
                expected, _, span = ahead
                ahead = next(fresh, None)
            else:
                break
            if value[span] <= 0 or not cost[span]:
                continue
            gain = float(value[span]) / cost[span]
            if gain < -expected:
                heapq.heappush(waiting, (-gain, order[span], span))
                continue
            if cost[span] > left:
                continue
            left -= cost[span]
            lines = range(first[span], last[span] + 1)
            new = [n for n in lines if not self._is_chosen[n]]
            chosen += new
            for other in self._take(lines, new, self._quality[span]):
                if value[other] > 0 and cost[other]:
                    heapq.heappush(waiting, (-(float(value[other]) / cost[other]), order[other], other))
        return chosen

    def _take(self, lines: Iterable[int], new: Sequence[int], quality: int) -> set[int]:
        """Lines are chosen, which show their names this well. Returns the spans that became cheaper or better by it."""
        self._show([number for n in lines for number in self._wanted(n)], quality)
        touched: set[int] = set()
        for n in new:
            self._is_chosen[n] = 1
            for span in (self._single[n], self._pair[n - 1], self._pair[n]):
                if span >= 0:
                    self._cost[span] -= self._sizes[n]
                    self._value[span] -= self._bonuses[n]
                    touched.add(span)
        for n in new:
            if self._words[n]:
                touched |= self._beside(n)
        return touched

    def _show(self, numbers: Iterable[int], quality: int) -> None:
        """Names and terms are shown this well: the spans that show those that were not add less."""
        value, qualities, shown, showing, start = (
            self._value,
            self._quality,
            self._shown,
            self._showing,
            self._showing_from,
        )
        for number in numbers:
            before = shown[number]
            if quality > before:
                shown[number] = quality
                unit = self._units[number]
                for span in showing[start[number] : start[number + 1]]:
                    at = qualities[span]
                    if at > before:
                        value[span] -= unit * ((at if at < quality else quality) - before)

    def _beside(self, n: int) -> set[int]:
        """The spans next to a chosen line with plain words, which may show their names better by it."""
        touched: set[int] = set()
        for span, first, last in (
            (self._single[n - 1], n - 1, n - 1),
            (self._single[n + 1], n + 1, n + 1),
            (self._pair[n - 2], n - 2, n - 1),
            (self._pair[n + 1], n + 1, n + 2),
        ):
            if span >= 0 and self._quality[span] < QUALITIES[-1] and self._is_better(span, first, last):
                touched.add(span)
        return touched

    def _is_better(self, span: int, first: int, last: int) -> bool:
        """Whether the span shows its names better than before, now that a line beside it is chosen."""
        words = self._words[first] if first == last else self._words[first] + self._words[last]
        message = self._message[first]
        for n in (first - 1, last + 1):
            if 0 <= n < len(self._message) and self._is_chosen[n] and self._message[n] == message:
                words += self._words[n]
        before, quality = self._quality[span], QUALITIES[min(words, ENOUGH_WORDS)]
        if quality <= before:
            return False
        self._quality[span] = quality
        for number in self._numbers[self._starts[first] : self._starts[last + 1]]:
            if quality > (shown := self._shown[number]):
                self._value[span] += self._units[number] * (quality - max(before, shown))
        return True

    def missing(self, chosen: Sequence[int]) -> dict[int, float]:
        """The names that none of these lines shows and that say something without their line: number -> weight."""
        is_missing = self.weights > 0
        is_missing[[number for n in chosen for number in self._wanted(n)]] = False
        telling = np.zeros(len(is_missing), dtype=bool)
        telling[_joined([block.telling for block in self.material.blocks])] = True
        numbers = np.flatnonzero(is_missing & telling)
        return dict(zip(numbers.tolist(), self.weights[numbers].tolist(), strict=True))

    def _wanted(self, n: int) -> list[int]:
        return self._numbers[self._starts[n] : self._starts[n + 1]]


def _in_order(numbers: Ints) -> Numbers:
    """The places of whole numbers below 2**32 in ascending order, of equal ones in theirs."""
    # Half by half: numbers of 16 bits are put in order by counting, which takes a fraction of comparing each with
    # others.
    by_low = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    return by_low[np.argsort((numbers >> 16).astype(np.uint16)[by_low], kind="stable")]


def _best_first(gains: Floats, order: Numbers) -> Iterator[tuple[float, int, int]]:
    """(-gain, order, span) of the spans that add anything, the best first: some at a time, since few are asked for."""
    left = np.flatnonzero(gains > 0)
    while len(left):
        found = left
        if len(left) > _AT_ONCE:
            least = np.partition(gains[left], len(left) - _AT_ONCE)[len(left) - _AT_ONCE]
            found = left[gains[left] >= least]
        left = left[gains[left] < gains[found].min()]
        found = found[np.lexsort((order[found], -gains[found]))]
        yield from zip((-gains[found]).tolist(), order[found].tolist(), found.tolist(), strict=True)


def _places(lines: Numbers, start: int, length: int) -> list[int]:
    """For each of ``length`` lines its place among ``lines``, counted from ``start``; -1 for those that are not there.

    Two more at the end, for the lines behind the last one and, counted from the end, before the first.
    """
    places = np.full(length + 2, -1)
    places[lines] = np.arange(start, start + len(lines))
    found: list[int] = places.tolist()
    return found
