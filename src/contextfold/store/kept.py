"""What a pass over a session has read, kept for the next pass: it then reads what is new.

What belongs here: the history of the last pass, when it may be used again, and how much of all sessions is held. What
does not: making it (``loading``), and the view between passes (``reading``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from contextfold.conversation.history import History
from contextfold.store.layout import Layout
from contextfold.store.values import SessionState, Thread

MOST_TOKENS = 4_000_000
"""Of the histories that all compactors of a process keep, some hundred megabytes; what is beyond is read again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The messages of a layout before ``until``, with what passes have learned of each."""

    opened: int
    created_at: float | None
    revision: int
    layout: Layout
    history: History
    until: int


class PassMemory:
    """The histories of the last passes over the sessions of one compactor. Safe for concurrent use: who takes one has
    it alone.
    """

    def __init__(self) -> None:
        self._kept: dict[PassKey, Kept] = {}  # no lock: each step is atomic, and what is missed is read again
        self._me = weakref.ref(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return PassMemory, ()  # a copy, also one in another process, has read nothing

    def take(self, key: PassKey) -> Kept | None:
        """What is kept of a session; it is taken out."""
        _HELD.pop((self._me, key), None)
        return self._kept.pop(key, None)

    def put(self, key: PassKey, kept: Kept, most: int) -> None:
        """Keep it, and ``most`` in all. Those that were used longest ago give way, also of other compactors."""
        self.take(key)
        self._kept[key] = kept
        _HELD[self._me, key] = sum(kept.history.sizes)
        held = list(_HELD.items())  # the oldest first
        for gone in [one for one, _ in held if one[0]() is None]:
            _HELD.pop(gone, None)
        for old in list(self._kept)[: max(0, len(self._kept) - most)]:
            self.take(old)
        held = list(_HELD.items())
        more = sum(tokens for _, tokens in held) - MOST_TOKENS
        for (memory, old), tokens in held:
            if more > 0 and (other := memory()) is not None:
                other.take(old)
            more -= tokens


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What the last pass over one session has read, whatever object stands for that. ``most``: as for ``put``."""

    memory: PassMemory
    most: int
    key: PassKey

    def keep(self, kept: Kept) -> None:
        self.memory.put(self.key, kept, self.most)

    def take(self, state: SessionState, layout: Layout, until: int) -> Kept | None:
        """What is kept, if the session has only more messages since, and no more than ``until``."""
        kept = self.memory.take(self.key)
        if kept is None:
            return None
        if (kept.opened, kept.created_at, kept.revision) != (state.opened, state.created_at, state.revision):
            return None
        return kept if kept.layout == layout and kept.until <= until else None

    def follow(self, revision: int) -> None:
        """Another summary is in force: the messages are what they were at ``revision``."""
        kept = self.memory.take(self.key)
        if kept is not None:
            self.keep(replace(kept, revision=revision + 1) if kept.revision == revision else kept)


class ByIdentity:
    """An object by which one it is, whatever it says of itself. It is not kept alive where that can be."""

    __slots__ = ("_get", "_id")

    def __init__(self, one: Any) -> None:
        self._id = id(one)
        try:
            self._get: Callable[[], Any] = weakref.ref(one)
        except TypeError:
            self._get = lambda: one

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self._id == other._id and self._get() is other._get()


class PassKey(NamedTuple):
    """Which session of which store, and what counts its texts, or the name of that."""

    store: ByIdentity
    thread: Thread
    counting: ByIdentity | str

    @classmethod
    def of(cls, store: Any, thread: Thread, counting: Callable[[str], int] | str) -> PassKey:
        return cls(ByIdentity(store), thread, ByIdentity(counting) if callable(counting) else counting)


_HELD: dict[tuple[weakref.ref[PassMemory], PassKey], int] = {}
"""The tokens that each of them holds, the one that was used last at the end."""
