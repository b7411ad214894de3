"""Tokens of lines, and of many lines as one text, without counting the text again for each line that leaves it.

What belongs here: sizes of lines that evidence weighs. What does not: how many tokens a text has (``tokens``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from contextfold.evidence.blocks import Block, Ints
from contextfold.tokens.estimate import SYMBOLS, hundredths, rounded


class Sizes:
    """Sizes by any function of a text. Nothing is known of it, so a text is counted as a whole."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.text = count

    def lines(self, block: Block) -> Ints:
        """Tokens of each line of a block; counted once, and kept with it."""
        if block.sizes is None:
            block.sizes = np.array([self.text(text) for text in block.texts], dtype=np.int32)
        return block.sizes

    def joined(self, lines: Sequence[str]) -> int:
        """Tokens of the lines as one text."""
        return self.text("\n".join(lines))


class EstimatedSizes(Sizes):
    """Sizes by the built-in estimate, which are sums: what it makes of a line does not depend on the lines around it.

    There are two exceptions. Slashes at the beginning of a line belong to the symbols at the end of the line before.
    Words in Cyrillic letters are priced by what language the whole text seems to be in; it is counted as a whole.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__(count)
        self._known: dict[str, int] = {}

    def joined(self, lines: Sequence[str]) -> int:
        units = self._units(lines)
        prices = [self._known.get(unit) or self._price(unit) for unit in units]
        if min(prices, default=_DEPENDENT) == _DEPENDENT:
            return super().joined(lines)
        return rounded(sum(prices) - prices[-1] + hundredths(units[-1]))

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
            price = self._known[unit] = _DEPENDENT if _DEPENDS.search(unit) else hundredths(f"{unit}\n")
        return price


_DEPENDENT = -1
"""The price of a line that has none by itself."""

_DEPENDS = re.compile(r"[\u0400-\u052f]|^\s|\s$|^$|[A-Za-z0-9+/=_-]{4096}")
"""What makes the price of a line depend on other lines."""


class ScaledSizes(Sizes):
    """Other sizes, corrected by what a provider reported (``tokens.CalibratedCounter``)."""

    def __init__(self, sizes: Sizes, scale: Callable[[int], int]) -> None:
        super().__init__(lambda text: scale(sizes.text(text)))
        self._sizes = sizes
        self._scale = scale

    def lines(self, block: Block) -> Ints:
        sizes = self._sizes.lines(block)
        table = [self._scale(size) for size in range(int(sizes.max(initial=0)) + 1)]
        return np.array(table, dtype=np.int32)[sizes]

    def joined(self, lines: Sequence[str]) -> int:
        return self._scale(self._sizes.joined(lines))
