"""Tokens of lines, and of many lines as one text, without counting the text again for each line that leaves it.

What belongs here: sizes of lines that evidence weighs. What does not: how many tokens a text has (``tokens``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from contextfold.evidence.blocks import Block, Ints
from contextfold.tokens import arrays
from contextfold.tokens.estimate import SYMBOLS, estimate, hundredths, remember, rounded

_REMEMBERED = 4_096
"""Parts of lines, about half a megabyte."""


class Sizes:
    """Sizes by any function of a text. Nothing is known of it, so a text is counted as a whole."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.text = count
        self._again: dict[str, int] = {}

    def of(self, blocks: Sequence[Block]) -> Ints:
        """Tokens of each line of some blocks, which keep them."""
        if new := [block for block in blocks if block.sizes is None]:
            ends = np.cumsum([len(block) for block in new])
            found = np.array(self.each([text for block in new for text in block.texts]), dtype=np.int32)
            for block, own in zip(new, np.split(found, ends[:-1]), strict=True):
                block.sizes = own.copy()  # a part of the whole would keep all of it
        return np.concatenate([np.empty(0, np.int32), *(block.sizes for block in blocks if block.sizes is not None)])

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

    def each(self, texts: Sequence[str]) -> list[int]:
        distinct = list(dict.fromkeys(texts))
        prices, _ = arrays.prices(distinct)
        sizes = np.maximum(1, (prices + 50) // 100).tolist()
        for n in np.flatnonzero(prices < 0).tolist():
            sizes[n] = estimate(distinct[n])
        return list(map(dict(zip(distinct, sizes, strict=True)).__getitem__, texts))

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
        if new := [unit for unit in units if unit not in self._known]:
            prices, breaks = arrays.prices(new)
            for unit, price in zip(new, (prices + breaks).tolist(), strict=True):
                self._known[unit] = price if price >= 0 else self._price(unit)
        return units, list(map(self._known.__getitem__, units))

    def _units(self, lines: Sequence[str]) -> list[str]:
        """The lines, those joined that are not priced by themselves."""
        units = list(lines)
        for n in [n for n, line in enumerate(units) if line[:1] == "/" and n][::-1]:
            if SYMBOLS.match(units[n - 1], len(units[n - 1]) - 1):
                units[n - 1 : n + 1] = [f"{units[n - 1]}\n{units[n]}"]
        return units

    def _price(self, unit: str) -> int:
        """Hundredths of a token for a line and its end."""
        if _DEPENDS.search(unit):
            return _DEPENDENT
        return _LOOSE if unit[:1].isspace() or unit[-1:].isspace() or not unit else hundredths(f"{unit}\n")


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

    def of(self, blocks: Sequence[Block]) -> Ints:
        sizes = self._sizes.of(blocks)
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
