"""What a store must be able to do.

``SummaryStore`` is for applications that keep messages in tables of their own: it reads them, records summaries, links
them to the messages they cover, and knows who is summarizing. ``SessionStore`` also takes new messages; ours are such.
``contextfold.testing.SummaryStoreTests`` holds any implementation to what is promised here.

Methods may be sync or async, and are called from several threads. They raise ``StoreError`` or whatever their database
raises; a call that raised has changed nothing. Threads never see each other's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from contextfold.store.values import Link, NewMessage, NewSummary, Thread


class SummaryStore(Protocol):
    """Reads messages; records, links and replaces summaries; lends the right to summarize."""

    def load(self, thread: Thread) -> Any:
        """The ``SessionState``, as it is now (``SessionState.at``). A thread without messages has an empty one."""
        ...

    def read_messages(self, thread: Thread, ranges: Sequence[range]) -> Any:
        """``StoredMessage`` for every sequence number in these ascending ranges, in order.

        Raises ``StoreCorrupt`` naming the sequence number of a message that is missing or cannot be read.
        """
        ...

    def read_summary(self, thread: Thread, summary_id: int) -> Any:
        """The ``StoredSummary``. Raises ``StoreCorrupt`` if there is none with this id in this thread."""
        ...

    def read_summaries(self, thread: Thread) -> Any:
        """All of the thread, oldest first: those in force, superseded, undone and prepared."""
        ...

    def read_links(self, thread: Thread, summary_id: int) -> Any:
        """``Link`` for each message that this summary took out of the view, by ascending sequence number."""
        ...

    def record_summary(self, thread: Thread, summary: NewSummary) -> Any:
        """Write a summary down, and nothing else: it is not in force. Returns the ``StoredSummary``.

        Raises ``StoreCorrupt`` where the session was deleted meanwhile. One that only says another again (its
        ``trigger`` is ``recall`` or ``thinking``) takes no lease: there may be a new session of that name, without it.
        """
        ...

    def put_in_force(
        self,
        thread: Thread,
        summary_id: int | None,
        links: Sequence[Link],
        *,
        revision: int,
        owner: str | None = None,
        undoing: int | None = None,
    ) -> Any:
        """Let a recorded summary (or none) be in force, all at once or not at all; True if that was done.

        False, and nothing has changed, when the session is not at ``revision`` any more, or ``owner`` is given and does
        not hold the lease. Else: the links are written, the revision grows by one, and the session shows the summary.
        ``undoing``: the summary that goes out of force; it is marked as undone, and the session is held until
        it has more messages than now.
        """
        ...

    def acquire_lease(self, thread: Thread, owner: str, seconds: float) -> Any:
        """Lend the right to summarize for ``seconds``; False if another owner holds it and it has not expired."""
        ...

    def renew_lease(self, thread: Thread, owner: str, seconds: float) -> Any:
        """Extend it by ``seconds``; False if this owner does not hold it any more."""
        ...

    def release_lease(self, thread: Thread, owner: str) -> Any:
        """Give it back; nothing happens if this owner does not hold it."""
        ...


class SessionStore(SummaryStore, Protocol):
    """A store that takes messages as well."""

    def append(
        self,
        thread: Thread,
        messages: Sequence[NewMessage],
        *,
        format: str,
        marked: bool,
        expected_format: str | None,
        at: int | None = None,
    ) -> Any:
        """Append all or none; returns the sequence number of the first. The session is in ``format`` from now on.

        Returns None, and nothing has changed, when the session is not in ``expected_format`` any more. Raises
        ``StoreConflict`` when ``at`` is given and is not where the first message would come.
        """
        ...
