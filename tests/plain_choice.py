"""A plain greedy choice of evidence, weighed from scratch with objects: what the choice in arrays has to equal.

It is slow and says what is meant; ``contextfold.evidence.choice`` and ``greedy`` are quick. A test holds the two
together.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from contextfold import identifiers, quoting
from contextfold.evidence.blocks import LEAST_SAID, LEAST_WORTH, MENTION, PAIR, SOURCES, TERM
from contextfold.evidence.choice import FADING, LEAST_TAKEN, RARITY, YOUNGEST
from contextfold.evidence.clips import CONSIDERED, OVERHEAD, REACH, SHARE
from contextfold.evidence.greedy import JOINED, MOST, QUALITIES, UNIT
from contextfold.evidence.lines import is_cjk
from contextfold.evidence.reading import BARE, ENOUGH_WORDS, PLAIN_WORD, Line
from contextfold.evidence.section import mark_of_parts, parts_under_marks
from contextfold.summary.rules import said_of

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
) -> str:
    """The lines most worth their tokens, in their original order under short marks of who said them.

    ``candidates``: for each evicted message, in order, how many tokens of the history end with it, and its lines.
    ``now``: tokens of the whole history. ``already``: names that need no evidence since they stand in the view.
    The text has at most ``budget`` tokens as ``count`` gives them, and is empty if nothing fits or nothing is left to
    say.
    """
    weights = _weights(candidates, now)
    for name in already:
        weights.pop(name, None)
    weights |= _term_weights(candidates, now)

    choice = _Choice(candidates, weights, count)

    def lines(room: int) -> tuple[str, list[int]]:
        chosen = choice.make(room)
        return _fitted(choice.lines, chosen, room, count), chosen

    text, chosen = lines(int(budget * (1 - SHARE)))
    missing = choice.missing(chosen)
    if len(missing) * LEAST_TAKEN <= budget - count(text):
        whole, all_chosen = lines(budget)
        if not choice.missing(all_chosen):
            return whole
    parts = clips(missing, choice.lines, budget - count(text) - 1, count)
    return "\n".join(filter(None, (text, parts)))


def _fitted(lines: Sequence[Line], chosen: list[int], budget: int, count: Callable[[str], int]) -> str:
    """The chosen lines as a text of at most ``budget`` tokens. What is too much is taken off the end of ``chosen``."""
    text = lines_as_text(lines, chosen)
    while chosen and (excess := count(text) - budget) > 0:
        while excess > 0 and chosen:
            excess -= count(lines[chosen.pop()].text) + 1
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
        self.units = {name: round(min(weight, MOST) * UNIT) for name, weight in weights.items()}
        self.message = [number for number, (_, lines) in enumerate(candidates) for _ in lines]
        needless = _needless(self.lines)
        bonuses = [0.0 if n in needless else bonus for n, bonus in enumerate(_once(self.lines))]
        self.bonus = [QUALITIES[-1] * round(bonus * UNIT) for bonus in bonuses]
        self.wanted = [() if n in needless else _wanted(line, weights) for n, line in enumerate(self.lines)]
        self.spans = self._offered()
        self.sizes = {n: count(self.lines[n].text) + 1 for span in self.spans for n in span}  # 1: the line break
        self.shown: dict[str, int] = {}  # name -> how well it is shown
        self.chosen: set[int] = set()
        self.order: list[int] = []
        self.budget = self.left = 0

    def make(self, budget: int) -> list[int]:
        """Numbers of the chosen lines, best first, within ``budget`` tokens. Asked again with more, it goes on."""
        self.left += budget - self.budget
        self.budget = budget
        spans = self.spans
        touching = self._touching(spans)
        queue = [(-gain, number) for number, span in enumerate(spans) if (gain := self._gain(span)) > 0]
        heapq.heapify(queue)
        while queue and self.left > 0:
            expected, number = heapq.heappop(queue)
            gain = self._gain(spans[number])
            if gain <= 0:
                continue
            if gain < -expected:
                heapq.heappush(queue, (-gain, number))
                continue
            new = [n for n in range(spans[number].first, spans[number].last + 1) if n not in self.chosen]
            cost = sum(self.sizes[n] for n in new)
            if cost > self.left:
                continue
            self.left -= cost
            self.order += new
            self._take(spans[number], new)
            for other in sorted({other for n in new for other in touching.get(n, ())}):
                if (gain := self._gain(spans[other])) > 0:  # a neighbor may have become cheaper or better
                    heapq.heappush(queue, (-gain, other))
        return list(self.order)

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
        value = cost = 0
        for n in range(span.first, span.last + 1):
            if n not in self.chosen:
                cost += self.sizes[n]
                value += self.bonus[n]
            for name in self.wanted[n]:
                better = quality - self.shown.get(name, 0)
                if better > 0:
                    value += better * self.units[name]
        return value / cost if cost else 0.0

    def _quality(self, span: Span) -> int:
        """How well the span would show its names: best with enough plain words in it or in a chosen line next to it."""
        words = sum(self.lines[n].words for n in range(span.first, span.last + 1))
        for inner, outer in ((span.first, span.first - 1), (span.last, span.last + 1)):
            if outer in self.chosen and self.message[inner] == self.message[outer]:
                words += self.lines[outer].words
        return QUALITIES[min(words, ENOUGH_WORDS)]

    def _take(self, span: Span, new: Iterable[int]) -> None:
        quality = self._quality(span)
        self.chosen.update(new)
        for n in range(span.first, span.last + 1):
            for name in self.wanted[n]:
                self.shown[name] = max(self.shown.get(name, 0), quality)


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


def _needless(lines: Sequence[Line]) -> set[int]:
    """The lines of users who later said the same words with other names or figures."""
    latest: dict[tuple[frozenset[str], frozenset[str]], str] = {}
    needless: set[int] = set()
    for n, line in reversed(list(enumerate(lines))):
        said = frozenset(_shown(line)) - set(line.names)
        counts = line.source == "user" and line.bonus and len(said) >= LEAST_SAID
        if counts and latest.setdefault((said, said_of(line.text)), line.text) != line.text:
            needless.add(n)
    return needless


def _wanted(line: Line, weights: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(name for name in _shown(line) if name in weights)


def _shown(line: Line) -> dict[str, None]:
    """The names and terms that the line would show, and what a path in it can be called by from its end."""
    shown = dict.fromkeys((*line.names, *line.terms))
    for name in line.names:
        if "/" in name:
            shown.update(dict.fromkeys(identifiers.endings(name)))
    return shown


def lines_as_text(lines: Sequence[Line], chosen: Iterable[int]) -> str:
    """The chosen ones of the lines, by their numbers, in their order. A mark stands where the speaker changes."""
    text: list[str] = []
    speaker = ""
    for n in sorted(chosen):
        if lines[n].source != speaker:
            speaker = lines[n].source
            text.append(f"[{speaker}]")
        text.append(quoting.quoted(lines[n].text))
    return "\n".join(text)


class Clip(NamedTuple):
    """Part of a line, word for word. ``quality``: as in ``choice``, 1 where plain words stand beside the name.
    ``speaker``: who said it, by the place in ``SOURCES``. ``line``: the number of its line.
    """

    text: str
    quality: float
    speaker: int
    line: int


def clips(weights: Mapping[str, float], lines: Sequence[Line], room: int, count: Callable[[str], int]) -> str:
    """The parts of lines most worth their tokens, under marks and in the order of the lines; at most ``room`` tokens,
    and empty if nothing fits.

    ``weights``: the names that no chosen line shows, and how much each will be missed. ``lines``: all that may be
    quoted, oldest first; of several lines with a name the newest counts that has plain words beside it.
    """
    found = _newest(_heaviest(weights, room), lines)
    ranked = sorted(found, key=lambda name: (-weights[name] * found[name].quality / _price(found[name]), name))
    taken: dict[str, Clip] = {}
    shown: set[str] = set()
    marked: set[int] = set()
    left = room
    for name in ranked:
        if name in shown:
            continue
        clip = found[name]
        left -= count(clip.text) + 1
        for other, earlier in list(taken.items()):
            if other in _named(clip.text) and earlier.text in clip.text:
                left += count(earlier.text) + 1
        if clip.speaker not in marked:
            left -= count(f"{mark_of_parts(clip.speaker)}\n")
        if left < 0:
            break
        named = set(_named(clip.text))
        taken = {o: one for o, one in taken.items() if o not in named or one.text not in clip.text} | {name: clip}
        marked.add(clip.speaker)
        shown |= named
    kept = list(taken.values())
    while (excess := count(text := _in_order(kept, lines)) - room) > 0:
        del kept[-max(1, excess // 8) :]
    return text


def _in_order(clips: Sequence[Clip], lines: Sequence[Line]) -> str:
    ordered = sorted(clips, key=lambda clip: (clip.line, lines[clip.line].text.find(clip.text)))
    return "\n".join(parts_under_marks([(clip.speaker, clip.text) for clip in ordered]))


def _heaviest(weights: Mapping[str, float], room: int) -> set[str]:
    ranked = sorted(weights, key=lambda name: (-weights[name] / (len(name) + OVERHEAD), name))
    return set(ranked[: int(room * CONSIDERED)])


def _newest(names: set[str], lines: Sequence[Line]) -> dict[str, Clip]:
    found: dict[str, Clip] = {}
    for number, line in reversed(list(enumerate(lines))):
        wanted = [name for name in line.names if name in names and found.get(name, _NOTHING).quality < 1]
        if wanted:
            rest = list(_plain_words(line.text))
            for name in wanted:
                clip = _cut(line, number, name, rest)
                if clip.quality > found.get(name, _NOTHING).quality:
                    found[name] = clip
    return found


_NOTHING = Clip("", 0.0, 0, 0)


def _cut(line: Line, number: int, name: str, words: Sequence[tuple[int, int]]) -> Clip:
    """The name with the two nearest of the plain ``words`` (where each begins and ends), on one side or one on each."""
    text, speaker = line.text, SOURCES.index(line.source)
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
        return Clip(text[first:last], 1.0, speaker, number)
    return Clip(name, BARE, speaker, number)


def _plain_words(text: str) -> Iterator[tuple[int, int]]:
    """Where the plain words of a line begin and end: those outside its names."""
    taken = [(found.start, found.start + len(found.text)) for found in identifiers.find(text)]
    for word in PLAIN_WORD.finditer(text):
        if not any(start < word.end() and word.start() < end for start, end in taken):
            yield word.span()


def _named(text: str) -> Iterator[str]:
    for name in identifiers.names(text):
        yield name
        yield from identifiers.endings(name)


def _price(clip: Clip) -> int:
    return len(clip.text) + OVERHEAD
