"""Tokens of lines, and of many lines as one text, without counting the text again for each line that leaves it.

What belongs here: sizes of lines that evidence weighs. What does not: how many tokens a text has (``tokens``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from contextfold.evidence.blocks import Block, Blocks, Ints, Numbers
from contextfold.tokens.estimate import SYMBOLS, hundredths, remember, rounded, sizes

_REMEMBERED = 4_096
"""Parts of lines, about half a megabyte."""


class Sizes:
    """Sizes by any function of a text. Nothing is known of it, so a text is counted as a whole."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.text = count
        self._again: dict[str, int] = {}

    def known(self, blocks: Sequence[Block]) -> Ints:
        """Tokens of each line of some blocks, which keep them. Where a line is not counted yet, the negative of what it
        has at least: most lines are never near to being chosen.
        """
        for block in blocks:
            if block.sizes is None:
                block.sizes = np.array(self.each(block.texts), dtype=np.int32)
        return np.concatenate([np.empty(0, np.int32), *(block.sizes for block in blocks if block.sizes is not None)])

    def learn(self, row: Blocks, lines: Numbers) -> Ints:
        """Count these lines, by their numbers in ``row``. Their blocks keep it."""
        found = self.each([row.texts[n] for n in lines.tolist()])
        starts = np.cumsum(row.lines) - row.lines
        of_block = row.of_block[lines]
        for number, n, size in zip(of_block.tolist(), (lines - starts[of_block]).tolist(), found, strict=True):
            if (sizes := row.blocks[number].sizes) is not None:
                sizes[n] = size
        return np.array(found, dtype=np.int32)

    def each(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each of these texts."""
        return list(map(self.text, texts))

    def again(self, texts: Sequence[str]) -> list[int]:
        """The same for texts that are mostly asked for at the next choice, too."""
        if new := [text for text in texts if text not in self._again]:
            if len(self._again) > _REMEMBERED:
                self._again.clear()
                new = list(texts)
            self._again.update(zip(new, self.each(new), strict=True))
        return list(map(self._again.__getitem__, texts))

    def joined(self, lines: Sequence[str]) -> int:
        """Tokens of the lines as one text."""
        return self.text("\n".join(lines))

    def whole(self, text: str) -> int:
        """Tokens of a text, most of whose lines were sized before."""
        return self.text(text)


class EstimatedSizes(Sizes):
    """Sizes by the built-in estimate, which are sums: what it makes of a line does not depend on the lines around it.

    There are two exceptions. Slashes at the beginning of a line belong to the symbols at the end of the line before.
    Words in Cyrillic letters are priced by what language the whole text seems to be in; it is counted as a whole.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__(count)
        self._known: dict[str, int] = {}

    def known(self, blocks: Sequence[Block]) -> Ints:
        new = [block for block in blocks if block.sizes is None]
        if new:
            ends = np.cumsum([len(block) for block in new])
            bounds = -least([text for block in new for text in block.texts])
            for block, own in zip(new, np.split(bounds, ends[:-1]), strict=True):
                block.sizes = own.copy()  # a part of the whole would keep all of it
        return super().known(blocks)

    def each(self, texts: Sequence[str]) -> list[int]:
        return sizes(texts)

    def joined(self, lines: Sequence[str]) -> int:
        units, prices = self._priced(self._units(lines))
        if _LOOSE in prices:
            units, prices = self._priced(_bound(units, prices))
        if min(prices, default=_DEPENDENT) < 0:
            return super().joined(lines)
        return rounded(sum(prices) - prices[-1] + hundredths(units[-1]))

    def whole(self, text: str) -> int:
        """The size is remembered as that of the text: the next one to count it finds it."""
        size = self.joined(text.split("\n"))
        remember(text, size)
        return size

    def _priced(self, units: list[str]) -> tuple[list[str], list[int]]:
        known = self._known.get
        return units, [known(unit) or self._price(unit) for unit in units]

    def _units(self, lines: Sequence[str]) -> list[str]:
        """The lines, those joined that are not priced by themselves."""
        units = list(lines)
        for n in [n for n, line in enumerate(units) if line[:1] == "/" and n][::-1]:
            if SYMBOLS.match(units[n - 1], len(units[n - 1]) - 1):
                units[n - 1 : n + 1] = [f"{units[n - 1]}\n{units[n]}"]
        return units

    def _price(self, unit: str) -> int:
        """Hundredths of a token for a line and its end."""
        price = self._known.get(unit)
        if price is None:
            if _DEPENDS.search(unit):
                price = _DEPENDENT
            else:
                price = _LOOSE if unit[:1].isspace() or unit[-1:].isspace() or not unit else hundredths(f"{unit}\n")
            self._known[unit] = price
        return price


_SPACE, _LETTER, _FIGURE, _SYMBOL, _BREAK = range(5)
_KINDS = np.full(256, _SYMBOL, dtype=np.uint8)
_KINDS[[9, 32]] = _SPACE
_KINDS[10:14] = _BREAK
_KINDS[48:58] = _FIGURE
_KINDS[65:91] = _KINDS[97:123] = _LETTER
_KINDS[128:] = _BREAK

_LONGEST = 4_096
"""Characters. Encoded data of that length and more is priced by samples."""


def least(texts: Sequence[str]) -> Ints:
    """Tokens that each of these texts has at least, as ``estimate`` counts: a fifth less for a usual line of ASCII.

    No piece of a text holds two words, figures with anything else, or symbols on both sides of something else, and each
    is a token at least. That is counted in arrays, at a tenth of the time that pieces take. One token is all that is
    said of a text with other signs or with breaks in it.
    """
    if not texts:
        return np.zeros(0, dtype=np.int32)
    lengths = np.array(list(map(len, texts)))
    signs = np.frombuffer(" ".join(texts).encode("latin-1", "replace") + b" ", dtype=np.uint8)
    kinds = _KINDS[signs]
    before, after = np.roll(kinds, 1), np.roll(kinds, -1)
    pieces = (kinds == _FIGURE) & (before != _FIGURE)
    is_small = (signs >= ord("a")) & (signs <= ord("z"))
    pieces |= (kinds == _LETTER) & ~is_small & np.roll(is_small, 1)
    # the letters behind an apostrophe may belong to the word before it
    pieces |= (kinds == _LETTER) & (before != _LETTER) & (np.roll(signs, 1) != ord("'"))
    # a symbol by itself may belong to the word behind it
    pieces |= (kinds == _SYMBOL) & (before != _SYMBOL) & (after != _LETTER)
    starts = np.cumsum(lengths + 1) - lengths - 1
    found = np.add.reduceat(pieces, starts, dtype=np.int32)
    is_other = np.logical_or.reduceat(kinds == _BREAK, starts) | (lengths >= _LONGEST)
    bounds: Ints = np.where(is_other, 1, np.maximum(found, 1)).astype(np.int32)
    return bounds


def _bound(units: Sequence[str], prices: Sequence[int]) -> list[str]:
    """The units, those without a price of their own joined to their neighbors on both sides."""
    bound: list[str] = []
    is_loose = False
    for unit, price in zip(units, prices, strict=True):
        if bound and (is_loose or price == _LOOSE):
            bound[-1] = f"{bound[-1]}\n{unit}"
        else:
            bound.append(unit)
        is_loose = price == _LOOSE
    return bound


_DEPENDENT = -1
"""The price of a line that has none by itself."""

_LOOSE = -2
"""The price of a line that has one together with its neighbors: white space goes on across the breaks between them."""

_DEPENDS = re.compile(r"[\u0400-\u052f]|[A-Za-z0-9+/=_-]{4096}")
"""What makes the price of a line depend on lines anywhere."""


class ScaledSizes(Sizes):
    """Other sizes, corrected by what a provider reported (``tokens.CalibratedCounter``)."""

    def __init__(self, sizes: Sizes, scale: Callable[[int], int]) -> None:
        super().__init__(lambda text: scale(sizes.text(text)))
        self._sizes = sizes
        self._scale = scale

    def known(self, blocks: Sequence[Block]) -> Ints:
        sizes = self._sizes.known(blocks)
        scaled: Ints = np.sign(sizes) * self._scaled(np.abs(sizes))  # bounds stay bounds: more is never scaled to less
        return scaled

    def learn(self, row: Blocks, lines: Numbers) -> Ints:
        return self._scaled(self._sizes.learn(row, lines))

    def _scaled(self, sizes: Ints) -> Ints:
        table = [self._scale(size) for size in range(int(sizes.max(initial=0)) + 1)]
        return np.array(table, dtype=np.int32)[sizes]

    def each(self, texts: Sequence[str]) -> list[int]:
        return list(map(self._scale, self._sizes.each(texts)))

    def again(self, texts: Sequence[str]) -> list[int]:
        return list(map(self._scale, self._sizes.again(texts)))

    def joined(self, lines: Sequence[str]) -> int:
        return self._scale(self._sizes.joined(lines))

    def whole(self, text: str) -> int:
        return self._scale(self._sizes.whole(text))
