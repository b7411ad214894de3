"""contextfold's sessions on Django's models and Django's connection.

Every method that writes runs in ``transaction.atomic()``: by itself it is a transaction of its own; inside of a
caller's it is a part of that one, on the same connection. So what a view appends is committed or rolled back with
whatever else it writes, and nothing ever waits for a lock that its own caller holds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, transaction
from django.db import Error as DatabaseError
from django.db.models import Max, Q
from django.utils import timezone

from agent.models import AgentMessage, AgentSession, SessionSummary, SummaryMessage
from contextfold.errors import StoreConflict, StoreCorrupt, StoreError, StoreUnavailable
from contextfold.store import Link, NewMessage, NewSummary, SessionState, StoredMessage, StoredSummary, Thread

Method = TypeVar("Method", bound=Callable[..., Any])

RANGES_AT_ONCE = 100
"""Ranges of messages in one query: databases limit how long a condition may be."""


def _in_words(method: Method) -> Method:
    """The method with errors of the database in contextfold's words."""

    @functools.wraps(method)
    def run(self: DjangoStore, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except (OperationalError, InterfaceError) as error:
            raise StoreUnavailable(f"Django's database {self.using!r} cannot be used now: {error}") from error
        except DatabaseError as error:
            raise StoreError(f"Django's database {self.using!r} refused: {error}") from error

    return run  # type: ignore[return-value]


def _in_transaction(method: Method) -> Method:
    """The same in a transaction, or in a part of the caller's."""

    @functools.wraps(method)
    def run(self: DjangoStore, *arguments: Any, **named: Any) -> Any:
        with transaction.atomic(using=self.using):
            return method(self, *arguments, **named)

    return _in_words(run)  # type: ignore[arg-type]


class DjangoStore:
    """A ``SessionStore`` for blocking code. ``user``: to whom new sessions belong. ``using``: one of ``DATABASES``."""

    def __init__(self, user: Any = None, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self.user = user
        self.using = using
        self._unseen: set[str] = set()
        """Owners of leases that were taken inside of a caller's transaction."""

    # ---- messages ----

    @_in_words
    def load(self, thread: Thread) -> SessionState:
        row = self._sessions(thread).first()
        if row is None:
            return SessionState(thread)
        prepared = row.summaries.filter(base_revision=row.revision).aggregate(newest=Max("id"))["newest"]
        times = ("summary_created_at", "lease_until", "created_at", "updated_at")
        same = set(SessionState.__dataclass_fields__) - {"thread", "prepared_id", "damage", *times}
        fields = {name: getattr(row, name) for name in same} | {name: _seconds(getattr(row, name)) for name in times}
        state = SessionState(thread, prepared_id=prepared, **fields)
        # One that was taken inside of the caller's transaction is not renewed there, and does not expire.
        return state if state.lease_owner in self._unseen else state.at(timezone.now().timestamp())

    @_in_transaction
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
        now = timezone.now()
        new = {"namespace": thread.namespace, "thread_id": thread.id, "user": self.user}
        AgentSession.objects.using(self.using).get_or_create(
            key=thread.key, defaults={**new, "created_at": now, "updated_at": now}
        )
        row = self._locked(thread)
        assert row is not None
        if row.format != expected_format:
            return None
        first = row.message_count
        if at is not None and at != first:
            raise StoreConflict(f"session {thread} has {first:,} messages, and these were to come at {at:,}")
        AgentMessage.objects.using(self.using).bulk_create(
            AgentMessage(
                session=row,
                sequence=sequence,
                role=message.role,
                message_id=message.message_id,
                tokens=message.tokens,
                payload=message.payload,
                created_at=now,
            )
            for sequence, message in enumerate(messages, first)
        )
        row.format, row.format_marked, row.updated_at = format, marked, now
        row.message_count = first + len(messages)
        row.token_count += sum(message.tokens for message in messages)
        row.save(using=self.using)
        return first

    @_in_words
    def read_messages(self, thread: Thread, ranges: Sequence[range]) -> list[StoredMessage]:
        wanted = [one for one in ranges if one]
        found: dict[int, str] = {}
        for start in range(0, len(wanted), RANGES_AT_ONCE):
            within = Q()
            for one in wanted[start : start + RANGES_AT_ONCE]:
                within |= Q(sequence__range=(one.start, one.stop - 1))
            rows = AgentMessage.objects.using(self.using).filter(within, session__key=thread.key)
            found |= dict(rows.values_list("sequence", "payload"))
        return [self._message(thread, sequence, found) for one in wanted for sequence in one]

    def _message(self, thread: Thread, sequence: int, found: dict[int, str]) -> StoredMessage:
        if sequence not in found:
            raise StoreCorrupt(f"message {sequence:,} of session {thread} is missing; restore it from a backup")
        try:
            return StoredMessage.of(sequence, found[sequence])
        except ValueError as error:
            raise StoreCorrupt(f"message {sequence:,} of session {thread} cannot be read: {error}") from error

    # ---- summaries ----

    @_in_words
    def read_summary(self, thread: Thread, summary_id: int) -> StoredSummary:
        row = self._summaries(thread).filter(id=summary_id).first()
        if row is None:
            raise StoreCorrupt(f"session {thread} has no summary {summary_id}")
        return _stored(row)

    @_in_words
    def read_summaries(self, thread: Thread) -> list[StoredSummary]:
        return [_stored(row) for row in self._summaries(thread).order_by("id")]

    @_in_words
    def read_links(self, thread: Thread, summary_id: int) -> list[Link]:
        links = SummaryMessage.objects.using(self.using).filter(summary_id=summary_id, summary__session__key=thread.key)
        rows = links.order_by("message__sequence").values_list("message__sequence", "fate", "reason")
        return [Link(*row) for row in rows]

    @_in_transaction
    def record_summary(self, thread: Thread, summary: NewSummary) -> StoredSummary:
        session = self._sessions(thread).get()
        row = SessionSummary(session=session, created_at=timezone.now(), **summary.columns())
        row.save(using=self.using)
        return _stored(row)

    @_in_transaction
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
        row = self._locked(thread)
        if row is None or row.revision != revision or owner not in (None, row.lease_owner):
            return False
        summary = None if summary_id is None else self._summaries(thread).filter(id=summary_id).first()
        if summary is None and summary_id is not None:
            raise StoreCorrupt(f"session {thread} has no summary {summary_id} that could be put in force")
        now = timezone.now()
        row.summary = summary
        row.summary_text = summary.text if summary else None
        row.summary_until_index = summary.covers if summary else None
        row.summary_tokens = summary.tokens if summary else None
        row.summary_created_at = summary.created_at if summary else None
        row.held_until = row.message_count if undoing is not None else row.held_until
        row.revision, row.updated_at = revision + 1, now
        row.save(using=self.using)
        if summary is not None:
            self._summaries(thread).filter(id=summary.id, used_at=None).update(used_at=now)
            self._link(row, summary, links)
        if undoing is not None:
            self._summaries(thread).filter(id=undoing, undone_at=None).update(undone_at=now)
        return True

    def _link(self, session: AgentSession, summary: SessionSummary, links: Iterable[Link]) -> None:
        by_sequence = {link.sequence: link for link in links}
        numbers = sorted(by_sequence)
        messages: dict[int, int] = {}
        for start in range(0, len(numbers), RANGES_AT_ONCE):
            some = session.messages.using(self.using).filter(sequence__in=numbers[start : start + RANGES_AT_ONCE])
            messages |= dict(some.values_list("sequence", "id"))
        SummaryMessage.objects.using(self.using).bulk_create(
            SummaryMessage(summary=summary, message_id=messages[number], fate=link.fate, reason=link.reason)
            for number, link in by_sequence.items()
        )

    # ---- the lease ----

    def acquire_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        within = transaction.get_connection(self.using).in_atomic_block
        got = self._acquire_lease(thread, owner, seconds)
        if got and within:
            self._unseen.add(owner)
        return got

    @_in_transaction
    def _acquire_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        row, now = self._locked(thread), timezone.now()
        if row is None:
            return False
        lease = {"lease_until": _seconds(row.lease_until), "lease_seconds": row.lease_seconds}
        lent = SessionState(thread, is_summarizing=row.is_summarizing, **lease)
        if lent.at(now.timestamp()).is_summarizing and row.lease_owner != owner:
            return False
        # Compare and swap: not every database locks a row.
        seen = self._sessions(thread).filter(lease_owner=row.lease_owner, lease_until=row.lease_until)
        until = now + timedelta(seconds=seconds)
        return seen.update(is_summarizing=True, lease_owner=owner, lease_until=until, lease_seconds=seconds) == 1

    def renew_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        """From a thread of contextfold's own, with another connection: that would wait for the caller's transaction, in
        which the lease was taken and no one else sees it. No one can take it before that one ends, either.
        """
        return owner in self._unseen or self._renew_lease(thread, owner, seconds)

    @_in_transaction
    def _renew_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        until = timezone.now() + timedelta(seconds=seconds)
        held = self._sessions(thread).filter(lease_owner=owner)
        return held.update(lease_until=until, lease_seconds=seconds) == 1

    @_in_transaction
    def release_lease(self, thread: Thread, owner: str) -> None:
        self._unseen.discard(owner)
        held = self._sessions(thread).filter(lease_owner=owner)
        held.update(is_summarizing=False, lease_owner=None, lease_until=None, lease_seconds=None)

    # ---- rows ----

    def _sessions(self, thread: Thread) -> Any:
        return AgentSession.objects.using(self.using).filter(key=thread.key)

    def _summaries(self, thread: Thread) -> Any:
        return SessionSummary.objects.using(self.using).filter(session__key=thread.key)

    def _locked(self, thread: Thread) -> AgentSession | None:
        """The session's row, for this transaction alone."""
        row: AgentSession | None = self._sessions(thread).select_for_update().first()
        return row


def _stored(row: SessionSummary) -> StoredSummary:
    fields = {name: getattr(row, name) for name in StoredSummary.__dataclass_fields__}
    times = {name: _seconds(fields[name]) for name in ("created_at", "used_at", "undone_at")}
    return StoredSummary.of(fields | times)


def _seconds(time: datetime | None) -> float | None:
    """Seconds since 1970, as contextfold has times."""
    return None if time is None else time.astimezone(UTC).timestamp()


def _suspending(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method for async code, on the thread and the connection that Django's own async queries use."""

    @functools.wraps(method)
    async def run(self: AsyncDjangoStore, *arguments: Any, **named: Any) -> Any:
        return await sync_to_async(method, thread_sensitive=True)(self.blocking, *arguments, **named)

    return run


class AsyncDjangoStore:
    """``DjangoStore`` for async code."""

    def __init__(self, user: Any = None, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self.blocking = DjangoStore(user, using=using)

    load = _suspending(DjangoStore.load)
    append = _suspending(DjangoStore.append)
    read_messages = _suspending(DjangoStore.read_messages)
    read_summary = _suspending(DjangoStore.read_summary)
    read_summaries = _suspending(DjangoStore.read_summaries)
    read_links = _suspending(DjangoStore.read_links)
    record_summary = _suspending(DjangoStore.record_summary)
    put_in_force = _suspending(DjangoStore.put_in_force)
    acquire_lease = _suspending(DjangoStore.acquire_lease)
    renew_lease = _suspending(DjangoStore.renew_lease)
    release_lease = _suspending(DjangoStore.release_lease)
