"""Which lines are carried: what names, words and lines weigh, and which of them are not needed.

What belongs here: weights, and what is put together of the lines. What does not: what a line holds (``lines``), and the
greedy choice by what each would add (``greedy``).

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
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from contextfold.evidence.blocks import PAIR, Block, Blocks, Flags, Floats, Ints, Numbers, Vocabulary
from contextfold.evidence.clips import SHARE, clips
from contextfold.evidence.greedy import Choice
from contextfold.evidence.reading import RULE, Line
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

LEAST_TAKEN = 8
"""Tokens of a line for each name that it adds at the end of a choice, at the very least: about eleven in the mean."""

_TABLE = 1 << 16
"""Places in a table of hashes: many more than there are lines with a bonus."""

_GOES_ON = re.compile(r"[.,:/\\@'’+-]?\w")
_ENDS_INSIDE = re.compile(r"\w[.,:/\\@'’+-]?$")
"""What behind a text, and before it, is one word or name with what it ends or begins with."""


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
    firsts = list(accumulate([len(block.texts) for _, block in blocks], initial=0))
    # few messages are a user's: the others are passed over once
    said = [(first, block) for first, (_, block) in zip(firsts, blocks, strict=False) if block.said]
    lapsed, gone = _lapsed(said, taken_back, replaced)
    material = _Material(blocks, words, sizes, is_talk, lapsed)
    weights = material.weights(now, _numbers(already, beside, words))
    needless = _needless(said, firsts[-1], beside, shown)
    if gone:
        needless[gone] = True
        weights[~material.named_outside(gone)] = 0.0
    choice = Choice(material.row, material.sizes, material.bonuses, weights, needless)

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


def _needless(said: Sequence[tuple[int, Block]], lines: int, beside: Sequence[Block], shown: str) -> Flags:
    """Of all ``lines`` those of users that stand in ``shown``, and those that the user said again later about something
    else. ``said``: the blocks with lines of users, each with the number of its first line.
    """
    latest: dict[tuple[bytes, frozenset[str]], str] = {}
    for block in reversed(beside):
        for n, words in block.said:
            if words:
                latest.setdefault((words, _said_of(block.texts[n])), block.texts[n])
    needless = np.zeros(lines, dtype=bool)
    for start, block in reversed(said):
        for n, words in block.said:
            text = block.texts[n]
            if block.bonuses[n] and words:
                # The same plain words with other names or figures: ``the budget is $900``. Later words win, also those
                # that stand in the view. What is forbidden of another thing is not the same.
                needless[start + n] = latest.setdefault((words, _said_of(text)), text) != text
            needless[start + n] |= bool(shown) and _stands(" ".join(text.split()), shown)
    return needless


def _lapsed(
    said: Sequence[tuple[int, Block]], taken_back: Collection[str], replaced: Collection[str]
) -> tuple[list[int], list[int]]:
    """The numbers of the lines of users that set rules which hold no longer, and no others; and of those among them
    whose rules were replaced and that say nothing else. ``said``: as for ``_needless``.
    """
    lapsed: list[int] = []
    alone: list[int] = []
    fallen = {*taken_back, *replaced}
    told = "\n".join(fallen)
    for start, block in said if fallen else ():
        for n, _ in block.said:
            may_lapse = block.bonuses[n] >= RULE and any(one in told for one in sentences(block.texts[n]))
            rules, is_all = _rules_said(block.texts[n]) if may_lapse else ((), False)
            # A line may be a part of a sentence. Each rule is a sentence of its line, or all of them: where none stands
            # among what fell, it is not looked at further, which takes a hundred times as long.
            if rules and all(any(rule in text for text in fallen) for rule in rules):
                lapsed.append(start + n)
                if is_all and all(any(rule in text for text in replaced) for rule in rules):
                    alone.append(start + n)
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
        found: dict[int, str] = {}
        for n in chosen:
            message = int(self.row.of_block[n])
            block = self.row.blocks[message]
            date = (block.dates[n - self._first[message]] if block.dates else "") or (dates[message] if dates else "")
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
