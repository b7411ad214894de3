"""A session store in dictionaries: the shortest one that keeps all promises, for tests and to read.

What belongs here: ``DictStore``. What does not: the promises (``contextfold.store.protocol``) and the tests that hold a
store to them (``summary_store``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from contextfold.errors import StoreConflict, StoreCorrupt
from contextfold.store import payload
from contextfold.store.values import (
    Link,
    NewMessage,
    NewSummary,
    SessionState,
    StoredMessage,
    StoredSummary,
    Thread,
)


class DictStore:
    """A ``SessionStore`` in dictionaries: the shortest one that keeps all promises, for tests and to read.

    ``clock`` gives seconds. Safe for threads, useless for processes.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._states: dict[Thread, SessionState] = {}
        self._messages: dict[Thread, list[str]] = {}
        self._summaries: dict[Thread, dict[int, StoredSummary]] = {}
        self._links: dict[tuple[Thread, int], tuple[Link, ...]] = {}

    def load(self, thread: Thread) -> SessionState:
        with self._lock:
            state = self._states.get(thread, SessionState(thread))
            made_for = [s.id for s in self._summaries.get(thread, {}).values() if s.base_revision == state.revision]
            return replace(state, prepared_id=max(made_for, default=None)).at(self._clock())

    def append(
        self,
        thread: Thread,
        messages: Sequence[NewMessage],
        *,
        format: str,
        marked: bool,
        expected_format: str | None,
        at: int | None = None,
    ) -> int | None:
        with self._lock:
            state = self._states.get(thread, SessionState(thread, created_at=self._clock()))
            first = state.message_count
            if state.format != expected_format:
                return None
            if at is not None and at != first:
                raise StoreConflict(f"session {thread} has {first} messages, and these were to come at {at}")
            self._messages.setdefault(thread, []).extend(message.payload for message in messages)
            self._states[thread] = replace(
                state,
                format=format,
                format_marked=marked,
                message_count=first + len(messages),
                token_count=state.token_count + sum(message.tokens for message in messages),
                updated_at=self._clock(),
            )
            return first

    def read_messages(self, thread: Thread, ranges: Sequence[range]) -> list[StoredMessage]:
        texts = self._messages.get(thread, [])
        wanted = [sequence for one in ranges for sequence in one]
        if wanted and wanted[-1] >= len(texts):
            raise StoreCorrupt(f"message {wanted[-1]} of session {thread} is missing")
        return [StoredMessage(sequence, payload.loads(texts[sequence])) for sequence in wanted]

    def read_summary(self, thread: Thread, summary_id: int) -> StoredSummary:
        found = self._summaries.get(thread, {}).get(summary_id)
        if found is None:
            raise StoreCorrupt(f"session {thread} has no summary {summary_id}")
        return found

    def read_summaries(self, thread: Thread) -> list[StoredSummary]:
        return list(self._summaries.get(thread, {}).values())

    def read_links(self, thread: Thread, summary_id: int) -> list[Link]:
        return list(self._links.get((thread, summary_id), ()))

    def record_summary(self, thread: Thread, summary: NewSummary) -> StoredSummary:
        with self._lock:
            recorded = self._summaries.setdefault(thread, {})
            times = {"created_at": self._clock(), "used_at": None, "undone_at": None}
            stored = StoredSummary.of({**summary.columns(), **times, "id": len(recorded) + 1})
            recorded[stored.id] = stored
            return stored

    def put_in_force(
        self,
        thread: Thread,
        summary_id: int | None,
        links: Sequence[Link],
        *,
        revision: int,
        owner: str | None = None,
        undoing: int | None = None,
    ) -> bool:
        with self._lock:
            state = self._states.get(thread)
            if state is None or state.revision != revision or owner not in (None, state.lease_owner):
                return False
            summary = self.read_summary(thread, summary_id) if summary_id is not None else None
            now = self._clock()
            if summary is not None:
                self._summaries[thread][summary.id] = replace(summary, used_at=summary.used_at or now)
                self._links[thread, summary.id] = (*self._links.get((thread, summary.id), ()), *links)
            if undoing is not None:
                self._summaries[thread][undoing] = replace(self.read_summary(thread, undoing), undone_at=now)
            self._states[thread] = replace(
                state,
                revision=revision + 1,
                summary_id=summary_id,
                summary_text=summary.text if summary else None,
                summary_until_index=summary.covers if summary else None,
                summary_tokens=summary.tokens if summary else None,
                summary_created_at=summary.created_at if summary else None,
                held_until=state.message_count if undoing is not None else state.held_until,
                updated_at=now,
            )
            return True

    def acquire_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        with self._lock:
            state = self._states.get(thread)
            if state is None:
                return False
            now = self._clock()
            if state.at(now).is_summarizing and state.lease_owner != owner:
                return False
            lease = {"lease_owner": owner, "lease_until": now + seconds, "lease_seconds": seconds}
            self._states[thread] = replace(state, is_summarizing=True, **lease)  # type: ignore[arg-type]
            return True

    def renew_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        with self._lock:
            state = self._states.get(thread)
            if state is None or state.lease_owner != owner:
                return False
            self._states[thread] = replace(state, lease_until=self._clock() + seconds, lease_seconds=seconds)
            return True

    def release_lease(self, thread: Thread, owner: str) -> None:
        with self._lock:
            state = self._states.get(thread)
            if state is not None and state.lease_owner == owner:
                free = {"is_summarizing": False, "lease_owner": None, "lease_until": None, "lease_seconds": None}
                self._states[thread] = replace(state, **free)  # type: ignore[arg-type]
