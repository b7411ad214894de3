"""Sizes of texts that were counted before, known by their digests.

What belongs here: remembering them. What does not: counting.

A pass asks for the size of one text many times: as a message, as a part, under a tier, in the view before and after. To
count a kilobyte takes about 130 microseconds, to digest it one. Digests in place of the texts keep no text alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from contextfold.at_once import digest

WORTH_KEEPING = 256
"""Characters. A shorter text is counted about as quickly as it is looked up."""

REMEMBERED = 8192
"""Sizes in each of two generations, about a megabyte together."""


class KnownSizes:
    """Sizes by one pure function. Safe for concurrent use: at worst a text is counted twice."""

    def __init__(self) -> None:
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    def size(self, text: str, count: Callable[[str], int]) -> int:
        """What ``count`` says of the text, or said before."""
        key = digest(text)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            found = count(text) if found is None else found
            self._keep(key, found)
        return found

    def learn(self, texts: Iterable[str], count: Callable[[list[str]], Iterable[int]]) -> None:
        """The sizes of those of these texts that were not counted before are counted all at once."""
        keys = {digest(text): text for text in texts}
        new = {key: text for key, text in keys.items() if key not in self._young and key not in self._old}
        if new:
            for key, size in zip(new, count(list(new.values())), strict=True):
                self._keep(key, size)

    def _keep(self, key: bytes, size: int) -> None:
        # Two generations instead of an order of use: what is asked for moves to the young one, the rest goes at once.
        if len(self._young) >= REMEMBERED:
            self._old, self._young = self._young, {}
        self._young[key] = size

    def clear(self) -> None:
        """Forget all of them, as a benchmark wants it."""
        self._young, self._old = {}, {}
