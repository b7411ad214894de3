"""Texts that a tier made before, known by the digest of what they were made from.

What belongs here: remembering them. What does not: shortening.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from contextfold.at_once import digest

LARGEST = 16_384
"""Characters. A longer outcome is made again: it was a larger limit, of a request that is large anyway."""

SMALL_SHARE = 16
"""An outcome is kept all the same if its text is as many times longer at least: what is slow is reading that."""

REMEMBERED = 1 << 20
"""Characters in each of two generations. No outcome takes more than an eighth of one."""


class RememberedTier:
    """Outcomes of one pure function of a text and a limit. Safe for concurrent use: at worst one is made twice."""

    def __init__(self) -> None:
        self._young: dict[tuple[bytes, Hashable], str | None] = {}
        self._old: dict[tuple[bytes, Hashable], str | None] = {}
        self._held = 0

    def text(self, text: str, limit: Hashable, make: Callable[[], str]) -> str:
        """The text under the limit. ``text`` itself, as the same object, if ``make`` returned that."""
        key = (digest(text), limit)
        for known in (self._young, self._old):
            if key in known:
                made = known[key]
                return text if made is None else made
        made = make()
        largest = max(LARGEST, min(len(text) // SMALL_SHARE, REMEMBERED // 8))
        if len(made) <= largest or made is text:
            self._keep(key, None if made is text else made)
        return made

    def _keep(self, key: tuple[bytes, Hashable], made: str | None) -> None:
        self._held += 100 + len(made or "")
        # The older half goes as a whole: there is no order of use to keep, and so no lock.
        if self._held > REMEMBERED:
            self._old, self._young, self._held = self._young, {}, 100 + len(made or "")
        self._young[key] = made
