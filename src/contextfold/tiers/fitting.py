"""From tokens to characters: how much room a shortened text may take so that it fits a limit in tokens.

What belongs here: the search for that room. What does not: how a text is shortened to a room (``pieces``,
``tool_outputs_json``).

Reductions work in characters, because characters are what they cut; limits are in tokens, because tokens are what a
window holds. How many characters a token takes differs between scripts and even between the lines of one text, so the
room is found by trying.
"""

from __future__ import annotations

from collections.abc import Callable

from contextfold.tokens.estimate import estimate

LEAST = 32
"""Tokens. Smaller limits count as this: a marker alone takes about a third of it."""

_ATTEMPTS = 8
_GOOD_USE = 0.9
"""A text that uses this share of its limit is not tried any larger."""
_CAUTION = 0.97
"""Of the room that the last try suggests: characters per token differ even between the lines of one text."""


def fit(length: int, size: int, limit: int, render: Callable[[int], str]) -> str | None:
    """The largest of some renderings that fits ``limit`` tokens, or None if none did.

    ``render(room)`` gives in at most ``room`` characters a text that has ``length`` characters and ``size`` tokens in
    full. It is called at most eight times.
    """
    room = length * limit // max(1, size)
    too_large = length
    best: str | None = None
    for _ in range(_ATTEMPTS):
        candidate = render(room)
        used = max(1, estimate(candidate))
        if used <= limit:
            best = candidate if best is None or len(candidate) > len(best) else best
            if used >= limit * _GOOD_USE:
                break
        else:
            too_large = min(too_large, room)
        wanted = int(room * limit / used * _CAUTION)
        # never a room again that gave too much: half way to it instead
        following = wanted if wanted < too_large else (room + too_large) // 2
        if following == room or (used <= limit and following < room):
            break
        room = following
    return best
