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
already adds nothing. A choice lowers what others would add, except for its neighbors, which are looked at again, so a
heap with lazy updates finds the next one (Minoux, "Accelerated greedy algorithms for maximizing submodular set
functions", 1978).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from contextfold import identifiers
from contextfold.evidence.clips import LEAST_WORTH, SHARE, clips
from contextfold.evidence.lines import BARE, Line, Source, is_cjk
from contextfold.evidence.section import lines_as_text

MENTION: dict[Source, float] = {"assistant": 1.0, "user": 0.5, "tool": 0.1}
"""What one mention counts, by who made it. Calls are the assistant's words."""

FADING = 0.15
"""Exponent of age. The fitted one is 1.0 for what is needed next; a lower one also keeps what is needed late, and what
is needed next mostly still stands in the recent messages."""

YOUNGEST = 500
"""Tokens added to every age, so that no single mention outweighs everything else."""

ENOUGH_WORDS = 2
"""Plain words beside an identifier that make it more than a bare name."""

TERM: dict[Source, float] = {"user": 1.2, "assistant": 0.2, "tool": 0.0}
"""What one plain word counts, by who said it."""

PAIR = 0.4
"""What a pair of CJK signs counts of a word: a word is one or two of them, and so is the border between two words."""

RARITY = 0.5
"""Exponent of the number of messages that say a plain word."""

JOINED = 200
"""Characters. Two neighboring lines longer than this together are not offered as a pair."""


_FIGURES = re.compile(r"\d+")


class Span(NamedTuple):
    """Neighboring lines ``first`` to ``last`` (both included) that are offered together."""

    first: int
    last: int


def select(
    candidates: Sequence[tuple[int, Sequence[Line]]],
    *,
    budget: int,
    already: Collection[str],
    count: Callable[[str], int],
    now: int,
    count_line: Callable[[str], int] | None = None,
) -> str:
    """The lines most worth their tokens, in their original order under short marks of who said them.

    ``candidates``: for each evicted message, in order, how many tokens of the history end with it, and its lines.
    ``now``: tokens of the whole history. ``already``: names that need no evidence since they stand in the view.
    ``count_line``: as ``count``, for a line, if the caller remembers their sizes.
    The text has at most ``budget`` tokens as ``count`` gives them, and is empty if nothing fits or nothing is left to
    say.
    """
    weights = _weights(candidates, now)
    for name in already:
        weights.pop(name, None)
    weights |= _term_weights(candidates, now)
    choice = _Choice(candidates, weights, count_line or count)
    chosen = choice.make(budget)
    text = _fitted(choice.lines, chosen, budget, count)
    if not choice.missing(chosen):
        return text
    text = _fitted(choice.lines, chosen, int(budget * (1 - SHARE)), count)
    parts = clips(choice.missing(chosen), choice.lines, budget - count(text) - 1, count)
    return "\n".join(filter(None, (text, parts)))


def _fitted(lines: Sequence[Line], chosen: list[int], budget: int, count: Callable[[str], int]) -> str:
    """The chosen lines as a text of at most ``budget`` tokens. What is too much is taken off the end of ``chosen``."""
    text = lines_as_text(lines, chosen)
    while chosen and (excess := count(text) - budget) > 0:
        del chosen[-max(1, excess // 40) :]
        text = lines_as_text(lines, chosen)
    return text


def _weights(candidates: Sequence[tuple[int, Sequence[Line]]], now: int) -> dict[str, float]:
    """Name -> how much it will be missed. A name counts once per message and source, however often it stands there."""
    weights: dict[str, float] = {}
    for end, lines in candidates:
        factor = _faded(now - end)
        mentions = {
            (line.source, name): worth for line in lines for name, worth in zip(line.names, line.worths, strict=True)
        }
        for (source, name), worth in mentions.items():
            weights[name] = weights.get(name, 0.0) + MENTION[source] * worth * factor
    return weights


def _term_weights(candidates: Sequence[tuple[int, Sequence[Line]]], now: int) -> dict[str, float]:
    """Term -> how much of what was said hangs on it: its best mention, less the more messages say it."""
    messages: dict[str, int] = {}
    best: dict[str, float] = {}
    for end, lines in candidates:
        factor = _faded(now - end)
        said = {term: line.source for line in lines for term in line.terms}
        for term, source in said.items():
            messages[term] = messages.get(term, 0) + 1
            best[term] = max(best.get(term, 0.0), TERM[source] * factor)
    return {term: weight * (PAIR if is_cjk(term) else 1.0) / messages[term] ** RARITY for term, weight in best.items()}


def _faded(age: int) -> float:
    """What an age in tokens leaves of a weight."""
    share: float = (1000 / (max(0, age) + YOUNGEST)) ** FADING
    return share


class _Choice:
    """Greedy choice of lines. ``lines`` are those of all messages; lines of one message are neighbors."""

    def __init__(
        self,
        candidates: Sequence[tuple[int, Sequence[Line]]],
        weights: dict[str, float],
        count: Callable[[str], int],
    ) -> None:
        self.lines = [line for _, lines in candidates for line in lines]
        self.weights = weights
        self.message = [number for number, (_, lines) in enumerate(candidates) for _ in lines]
        self.bonus = _once(self.lines)
        self.wanted = [_wanted(line, weights) for line in self.lines]
        self.spans = self._offered()
        self.sizes = {n: count(self.lines[n].text) + 1 for span in self.spans for n in span}  # 1: the line break
        self.shown: dict[str, float] = {}  # name -> how well it is shown, up to 1
        self.chosen: set[int] = set()

    def make(self, budget: int) -> list[int]:
        """Numbers of the chosen lines, best first, within ``budget`` tokens."""
        spans = self.spans
        touching = self._touching(spans)
        queue = [(-gain, number) for number, span in enumerate(spans) if (gain := self._gain(span)) > 0]
        heapq.heapify(queue)
        order: list[int] = []
        left = budget
        while queue and left > 0:
            expected, number = heapq.heappop(queue)
            gain = self._gain(spans[number])
            if gain <= 0:
                continue
            if gain < -expected * (1 - 1e-9):
                heapq.heappush(queue, (-gain, number))
                continue
            new = [n for n in range(spans[number].first, spans[number].last + 1) if n not in self.chosen]
            cost = sum(self.sizes[n] for n in new)
            if cost > left:
                continue
            left -= cost
            order += new
            self._take(spans[number], new)
            for other in sorted({other for n in new for other in touching.get(n, ())}):
                if (gain := self._gain(spans[other])) > 0:  # a neighbor may have become cheaper or better
                    heapq.heappush(queue, (-gain, other))
        return order

    def missing(self, chosen: Iterable[int]) -> dict[str, float]:
        """The names that none of these lines shows and that say something without their line, with their weights."""
        shown = {name for n in chosen for name in self.wanted[n]}
        return {
            name: self.weights[name]
            for line in self.lines
            for name, worth in zip(line.names, line.worths, strict=True)
            if worth >= LEAST_WORTH and name in self.weights and name not in shown
        }

    def _offered(self) -> list[Span]:
        """Every line that adds something, and where it lacks plain words, with the line before and the line after."""
        spans: dict[Span, None] = {}
        for n, line in enumerate(self.lines):
            if not self.wanted[n] and not self.bonus[n]:
                continue
            spans[Span(n, n)] = None
            if line.words < ENOUGH_WORDS:
                spans.update((Span(pair, pair + 1), None) for pair in (n - 1, n) if self._is_pair(pair))
        return list(spans)

    def _is_pair(self, n: int) -> bool:
        return self._are_neighbors(n, n + 1) and len(self.lines[n].text) + len(self.lines[n + 1].text) <= JOINED

    def _are_neighbors(self, first: int, second: int) -> bool:
        return first >= 0 and second < len(self.lines) and self.message[first] == self.message[second]

    def _touching(self, spans: Sequence[Span]) -> dict[int, list[int]]:
        """Line -> numbers of the spans whose gain depends on whether it is chosen."""
        touching: dict[int, list[int]] = {}
        for number, span in enumerate(spans):
            for n in range(span.first - 1, span.last + 2):
                touching.setdefault(n, []).append(number)
        return touching

    def _gain(self, span: Span) -> float:
        """What the span would add per token."""
        quality = self._quality(span)
        value = cost = 0.0
        for n in range(span.first, span.last + 1):
            if n not in self.chosen:
                cost += self.sizes[n]
                value += self.bonus[n]
            for name in self.wanted[n]:
                better = quality - self.shown.get(name, 0.0)
                if better > 0:
                    value += better * self.weights[name]
        return value / cost if cost else 0.0

    def _quality(self, span: Span) -> float:
        """How well the span would show its names: 1 with enough plain words in it or in a chosen line next to it."""
        words = sum(self.lines[n].words for n in range(span.first, span.last + 1))
        for inner, outer in ((span.first, span.first - 1), (span.last, span.last + 1)):
            if outer in self.chosen and self.message[inner] == self.message[outer]:
                words += self.lines[outer].words
        return BARE + (1 - BARE) * min(1.0, words / ENOUGH_WORDS)

    def _take(self, span: Span, new: Iterable[int]) -> None:
        quality = self._quality(span)
        self.chosen.update(new)
        for n in range(span.first, span.last + 1):
            for name in self.wanted[n]:
                self.shown[name] = max(self.shown.get(name, 0.0), quality)


def _once(lines: Sequence[Line]) -> list[float]:
    """The bonus of each line; of lines that say the same only the newest has one.

    Lines of tools that differ in nothing but figures say the same: a log of a hundred durations is one fact.
    """
    said: set[str] = set()
    bonuses = []
    for line in reversed(lines):
        shape = _FIGURES.sub("0", line.text) if line.bonus and line.source == "tool" else line.text
        bonuses.append(0.0 if shape in said else line.bonus)
        said.add(shape)
    return bonuses[::-1]


def _wanted(line: Line, weights: Mapping[str, float]) -> tuple[str, ...]:
    """The names and terms that the line would show, and what a path in it can be called by from its end."""
    shown = dict.fromkeys((*line.names, *line.terms))
    for name in line.names:
        if "/" in name:
            shown.update(dict.fromkeys(identifiers.endings(name)))
    return tuple(name for name in shown if name in weights)
