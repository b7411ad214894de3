"""What a pass over a session has read, kept for the next pass: it then reads what is new.

What belongs here: the history of the last pass, when it may be used again, and how much of all sessions is held. What
does not: making it (``loading``), and the view between passes (``reading``).
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace

from contextfold.conversation.history import History
from contextfold.store.layout import Layout
from contextfold.store.values import SessionState

MOST_TOKENS = 4_000_000
"""Of the histories that all sessions of a process keep, some hundred megabytes; what is beyond is read again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The messages of a layout before ``until``, with what passes have learned of each."""

    created_at: float | None
    revision: int
    layout: Layout
    history: History
    until: int


class PassMemory:
    """Keeps the history of one session's last pass. Safe for concurrent use: who takes it has it alone."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}  # pop is atomic

    def keep(self, kept: Kept) -> None:
        self._kept["history"] = kept
        me = weakref.ref(self, _forget)
        _forget(me)
        _HELD[me] = sum(kept.history.sizes)
        held = list(_HELD.items())  # the oldest first
        more = sum(tokens for _, tokens in held) - MOST_TOKENS
        for other, tokens in held:
            if more <= 0:
                return
            more -= tokens
            _forget(other)
            if (memory := other()) is not None:
                memory._kept.clear()

    def take(self, state: SessionState, layout: Layout, until: int) -> Kept | None:
        """What is kept, if the session has only more messages since, and no more than ``until``."""
        kept = self._kept.pop("history", None)
        if kept is None or (kept.created_at, kept.revision) != (state.created_at, state.revision):
            return None
        return kept if kept.layout == layout and kept.until <= until else None

    def follow(self, revision: int) -> None:
        """Another summary is in force: the messages are what they were at ``revision``."""
        kept = self._kept.get("history")
        if kept is not None and kept.revision == revision:
            self._kept["history"] = replace(kept, revision=revision + 1)


_HELD: dict[weakref.ref[PassMemory], int] = {}
"""The tokens that each of them holds, the one that was used last at the end."""


def _forget(memory: weakref.ref[PassMemory]) -> None:
    _HELD.pop(memory, None)
