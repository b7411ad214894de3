"""How long sessions are kept.

What belongs here: the value that says so, and applying it when that is asked for. Nothing applies it by itself, and
without it nothing is ever deleted. What does not: SQL (``sql``).

A session is deleted whole or not at all. A summary quotes the messages that it covers, so deleting these messages alone
would not delete what they say; and a session that lost some of them could neither be undone nor read from its start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextfold.errors import PolicyError, plain_number
from contextfold.store.values import SessionState

if TYPE_CHECKING:
    from contextfold.archive import Archive
    from contextfold.store.sql import SQLStore

__all__ = ["Retention"]


@dataclass(frozen=True, slots=True)
class Retention:
    """What may be deleted. The default keeps everything for ever.

    ``idle_seconds``: a session may go when it was not written to for longer than that, and is not being summarized.
    Views, searches and reading do not count as writing. Raises ``PolicyError`` for what is not a positive number.
    """

    idle_seconds: float | None = None

    def __post_init__(self) -> None:
        seconds = self.idle_seconds
        number = plain_number(seconds)
        if seconds is not None and (number is None or not 0 < number < math.inf):
            raise PolicyError(
                f"idle_seconds is {seconds!r}; it must be a positive number of seconds, or None to keep all"
            )
        object.__setattr__(self, "idle_seconds", number)

    def expired(self, store: SQLStore, namespace: str = "") -> list[SessionState]:
        """The sessions of a namespace that may go now, the one that was written to longest ago first. Changes nothing.

        Raises ``StoreError``.
        """
        return [] if self.idle_seconds is None else store.idle(self.idle_seconds, namespace)

    def apply(self, store: SQLStore, namespace: str = "", *, archive: Archive | None = None) -> list[SessionState]:
        """Delete the sessions of a namespace that may go: messages, summaries, index, and their files in an archive.

        Returns those that were deleted, as they were. Each goes in one transaction, and its files before that, so
        an interrupted run is repeated. What a file of SQLite still holds of them, and of what was deleted before, is
        wiped at the end. A session that is
        written to at this very moment stays, perhaps without its file: the store has all its messages. Raises
        ``StoreError`` and ``ArchiveError``; the sessions that came before are deleted then.
        """
        deleted: list[SessionState] = []
        try:
            for state in self.expired(store, namespace):
                if archive is not None:
                    archive.thread(state.thread.id, namespace=namespace).delete()
                if store.delete_idle(state.thread, self.idle_seconds or 0.0):
                    deleted.append(state)
        finally:
            store.purge()
        return deleted
