"""Sessions in SQLite or PostgreSQL.

What belongs here: the queries. Each method is one short transaction, and no lock outlives it: in particular none is
held while a summary is made. What does not: connections and errors (``database``), tables (``schema``).

Writers of one thread queue behind its session row (PostgreSQL locks the row, SQLite the database), so sequence numbers
have no gaps, and two writers never get the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    not_,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from contextfold import formats
from contextfold.errors import InputError, StoreConflict, StoreCorrupt, StoreError, shown
from contextfold.recall.history import readable
from contextfold.recall.ranking import Ranked
from contextfold.store import payload, rows, search
from contextfold.store.database import Database
from contextfold.store.recording import COMPANIONS
from contextfold.store.schema import LINKS, MESSAGES, SESSIONS, SUMMARIES, WINDOWS
from contextfold.store.values import (
    LEASES,
    Link,
    NewMessage,
    NewSummary,
    Search,
    SessionState,
    StoredMessage,
    StoredSummary,
    Thread,
    checked_namespace,
    unreadable,
)

_RANGES_AT_ONCE = 100
"""Ranges in one query: parsers limit how deep a condition may be."""


class SQLStore:
    """A ``SessionStore`` on a database, by its URL. Safe for concurrent use by threads and processes.

    ``clock`` gives seconds since 1970, for tests; None: that of the database.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None) -> None:
        self.database = Database(url, clock=clock)

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        self.database.close()

    def __deepcopy__(self, memo: object) -> SQLStore:
        return self  # the same database: another store of one in memory would have nothing

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process, the store at the same address. Raises ``InputError`` for one in memory."""
        from contextfold.store import open_store

        if self.database.is_in_memory:
            raise InputError(
                "a store in memory is in this process alone and cannot be sent to another: use sqlite:///FILE"
            )
        clock = self.database.clock
        opened = open_store if clock is None else partial(SQLStore, clock=clock)
        return opened, (self.database.url.render_as_string(hide_password=False),)

    # ---- sessions ----

    def load(self, thread: Thread) -> SessionState:
        with self.database.read() as connection:
            opened = self.database.opened
            row = connection.execute(_loading(), thread.columns).mappings().first()
            found = self._now(connection, [rows.state(thread, row)])[0] if row else SessionState(thread)
            return found.under(opened)

    def sessions(self, namespace: str = "") -> list[SessionState]:
        """All sessions of a namespace, the one that was written to last first. One whose row is damaged says so
        (``SessionState.damage``)."""
        query = _sessions_with_prepared().where(SESSIONS.c.namespace == checked_namespace(namespace))
        with self.database.read() as connection:
            found = connection.execute(query.order_by(SESSIONS.c.updated_at.desc(), SESSIONS.c.thread_id))
            return self._listed(connection, namespace, found)

    def idle(self, seconds: float, namespace: str = "") -> list[SessionState]:
        """The idle sessions of a namespace that are not being summarized; the oldest first."""
        with self.database.read() as connection:
            unused = _is_idle(self.database.now(connection), seconds)
            query = _sessions_with_prepared().where(SESSIONS.c.namespace == checked_namespace(namespace), unused)
            found = connection.execute(query.order_by(SESSIONS.c.updated_at, SESSIONS.c.thread_id))
            return self._listed(connection, namespace, found)

    def _listed(self, connection: Connection, namespace: str, found: CursorResult[Any]) -> list[SessionState]:
        names = tuple(found.keys())  # a mapping of SQLAlchemy costs as much as reading the row
        states = [rows.listed(namespace, dict(zip(names, row, strict=True))) for row in found.all()]
        return self._now(connection, states)

    def _now(self, connection: Connection, states: list[SessionState]) -> list[SessionState]:
        """Rows as they are now. The time is a query on PostgreSQL, so it is only asked for where a row needs it."""
        if not any(state.is_summarizing for state in states):
            return states
        now = self.database.now(connection)
        return [state.at(now) for state in states]

    def delete_idle(self, thread: Thread, seconds: float) -> bool:
        """Delete a session, unless it was written to within ``seconds`` (below 0: ever so late) or is being summarized.

        True if it was deleted. Beside ``delete_newest``, the only way in which anything is ever deleted.
        """
        with self.database.write() as connection:
            unused = _is_idle(self.database.now(connection), seconds)
            query = select(SESSIONS.c.session_id).where(_of(SESSIONS, thread), unused)
            # for update: no summary of it is recorded either until this is done
            if connection.execute(query.with_for_update()).first() is None:
                return False
            search.forget(connection, thread)
            # what refers to a row goes before the row
            for table in (LINKS, SUMMARIES, MESSAGES, SESSIONS):
                connection.execute(delete(table).where(_of(table, thread)))
        return True

    def purge(self) -> None:
        """Leave nothing of what was deleted in a file of SQLite: in its index, and in its write-ahead log unless a
        reader needs that. What was not finished, the next call does. In PostgreSQL it is VACUUM that does so.
        """
        if self.database.dialect != "sqlite":
            return
        with self.database.read() as connection:
            if not search.is_unpurged(connection):
                return
        run, is_first, goes_on = search.new_run(), True, True
        while goes_on:  # a transaction each, so that no writer waits for long
            with self.database.write() as connection:
                goes_on = search.merge_deleted(connection, run if is_first else None)
            is_first = False
        if self.database.truncate_log():
            with self.database.write() as connection:
                search.end_run(connection, run)

    # ---- messages ----

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
        with self.database.write() as connection:
            now = self.database.now(connection)
            # The row is locked before its count is read: two writers would give out one sequence number twice.
            row = self._row(connection, thread) or self._created(connection, thread, now)
            # Encoded for a format that the session has not: another writer's first message decided it meanwhile.
            if row["format"] != expected_format:
                return None
            first = int(row["message_count"])
            if at is not None and at != first:
                raise StoreConflict(
                    f"session {thread} has {first:,} messages, and these were to come at {at:,}: "
                    "another writer appended meanwhile, or they are there already"
                )
            connection.execute(
                update(SESSIONS)
                .where(_of(SESSIONS, thread))
                .values(
                    format=format,
                    format_marked=marked,
                    message_count=first + len(messages),
                    token_count=SESSIONS.c.token_count + sum(message.tokens for message in messages),
                    updated_at=now,
                )
            )
            if messages:
                connection.execute(insert(MESSAGES), list(rows.of_messages(thread, messages, first, now)))
                said = ((n, message.role, message.text) for n, message in enumerate(messages, first))
                search.index(connection, thread, said)
        return first

    def delete_newest(self, thread: Thread, count: int, revision: int) -> bool:
        """Delete the newest of ``count`` messages, and the summaries: they speak about what was there.

        False, and nothing has changed, where the session has another number of messages, is not at ``revision`` any
        more, or is being summarized.
        """
        with self.database.write() as connection:
            now = self.database.now(connection)
            row = self._row(connection, thread)
            if row is None or (row["message_count"], row["revision"]) != (count, revision):
                return False
            if rows.state(thread, {"prepared_id": None, **row}).at(now).is_summarizing:
                return False
            newest = and_(_of(MESSAGES, thread), MESSAGES.c.sequence == count - 1)
            found = connection.execute(select(MESSAGES.c.tokens, MESSAGES.c.payload).where(newest)).first()
            if found is None:
                return False
            search.forget_message(connection, thread, count - 1, _text_of(found.payload, row["format"], count - 1))
            for table in (LINKS, SUMMARIES):
                connection.execute(delete(table).where(_of(table, thread)))
            connection.execute(delete(MESSAGES).where(newest))
            connection.execute(
                update(SESSIONS)
                .where(_of(SESSIONS, thread))
                .values(
                    **self._shown(connection, thread, None),
                    message_count=count - 1,
                    token_count=SESSIONS.c.token_count - found.tokens,
                    revision=revision + 1,  # what was read or summarized before is of another conversation
                    held_until=min(row["held_until"], count - 1),  # what comes in its place is new
                    updated_at=now,
                )
            )
        return True

    def read_messages(self, thread: Thread, ranges: Sequence[range]) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        wanted = [one for one in ranges if one]
        with self.database.read() as connection:
            for start in range(0, len(wanted), _RANGES_AT_ONCE):
                some = wanted[start : start + _RANGES_AT_ONCE]
                ends = {f"first_{n}": one.start for n, one in enumerate(some)}
                ends |= {f"last_{n}": one.stop - 1 for n, one in enumerate(some)}
                stored = connection.execute(_reading(len(some)), {**thread.columns, **ends}).all()
                found += _checked(thread, stored, (sequence for one in some for sequence in one))
        return found

    def search(self, thread: Thread, asked: Search) -> list[Ranked]:
        """The thread's messages that answer a search, in its order."""
        with self.database.read() as connection:
            if self.database.dialect == "postgresql":
                # A search asks many times, and each would see what was appended meanwhile: a score out of two states.
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
            return search.ranked(connection, thread, asked, *self._appended(connection, thread, asked))

    def _appended(self, connection: Connection, thread: Thread, asked: Search) -> tuple[range | None, frozenset[int]]:
        """The messages that a search is about by their time and place (None where that is all of them), and those
        among them that it is not about all the same: a clock that was set back made them older than the one before.
        """
        if asked.since is None and asked.until is None:
            return None if asked.before is None else range(asked.before), frozenset()
        times: list[ColumnElement[bool]] = [MESSAGES.c.created_at.between(0, rows.LATEST)]
        damaged = or_(MESSAGES.c.created_at.is_(None), not_(times[0]))
        if asked.since is not None:
            times.append(MESSAGES.c.created_at >= asked.since)
        if asked.until is not None:
            times.append(MESSAGES.c.created_at < asked.until)
        # A time that is damaged may have been any: whoever reads the message is told so.
        wanted = or_(and_(*times), damaged)
        query = select(func.min(MESSAGES.c.sequence), func.max(MESSAGES.c.sequence))
        query = query.where(_of(MESSAGES, thread), MESSAGES.c.sequence.between(0, rows.LARGEST))
        first, last = connection.execute(query.where(wanted)).one()
        if first is None:
            return range(0), frozenset()
        within = range(first, last + 1 if asked.before is None else min(last + 1, asked.before))
        others = select(MESSAGES.c.sequence).where(_of(MESSAGES, thread), not_(wanted))
        others = others.where(MESSAGES.c.sequence.between(first, last))
        return within, frozenset(connection.scalars(others))

    # ---- summaries ----

    def read_summary(self, thread: Thread, summary_id: int) -> StoredSummary:
        with self.database.read() as connection:
            query = select(SUMMARIES).where(_of(SUMMARIES, thread), SUMMARIES.c.id == summary_id)
            row = connection.execute(query).mappings().first()
        if row is None:
            raise StoreCorrupt(f"summary {summary_id} of session {thread} is missing; {rows.REMEDY}")
        return rows.summary(thread, row)

    def read_summaries(self, thread: Thread) -> list[StoredSummary]:
        with self.database.read() as connection:
            query = select(SUMMARIES).where(_of(SUMMARIES, thread)).order_by(SUMMARIES.c.id)
            return [rows.summary(thread, row) for row in connection.execute(query).mappings().all()]

    def read_links(self, thread: Thread, summary_id: int) -> list[Link]:
        with self.database.read() as connection:
            query = select(LINKS.c.sequence, LINKS.c.fate, LINKS.c.reason)
            query = query.where(_of(LINKS, thread), LINKS.c.summary_id == summary_id).order_by(LINKS.c.sequence)
            return [rows.link(thread, summary_id, row) for row in connection.execute(query).all()]

    def record_summary(self, thread: Thread, summary: NewSummary) -> StoredSummary:
        with self.database.write() as connection:
            # Deleted meanwhile: whoever asks for a view then looks at the session again, and finds it empty.
            if connection.scalar(select(SESSIONS.c.session_id).where(_of(SESSIONS, thread))) is None:
                raise StoreCorrupt(f"session {thread} is missing: it was deleted while it was summarized")
            if summary.trigger in COMPANIONS and not self._has_beside(connection, thread, summary):
                # Another session has its name by now, and must not keep what the deleted one said.
                raise StoreCorrupt(f"summary {summary.parent_id} of session {thread} is missing: it was deleted")
            columns = {**thread.columns, **summary.columns(), "created_at": self.database.now(connection)}
            row = connection.execute(insert(SUMMARIES).values(**columns).returning(SUMMARIES)).mappings().one()
            return rows.summary(thread, row)

    def _has_beside(self, connection: Connection, thread: Thread, companion: NewSummary) -> bool:
        """Whether the summary is there that this one says again. SQLite gives the numbers of deleted ones to others."""
        query = select(SUMMARIES).where(_of(SUMMARIES, thread), SUMMARIES.c.id == companion.parent_id)
        row = connection.execute(query).mappings().first()
        said = rows.summary(thread, row) if row is not None else None
        if said is None:
            return False
        return (said.text, said.record.fingerprint) == (companion.text, companion.record.fingerprint)

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
        with self.database.write() as connection:
            row = self._row(connection, thread)
            # Compare and swap: the revision tells whether something came into force meanwhile, the owner whether the
            # lease is still held.
            if row is None or row["revision"] != revision or (owner is not None and row["lease_owner"] != owner):
                return False
            now = self.database.now(connection)
            shown = self._shown(connection, thread, summary_id)
            held = row["message_count"] if undoing is not None else row["held_until"]
            connection.execute(
                update(SESSIONS)
                .where(_of(SESSIONS, thread))
                .values(**shown, revision=revision + 1, held_until=held, updated_at=now)
            )
            self._mark(connection, thread, summary_id, undoing, now)
            if links:
                connection.execute(insert(LINKS), list(rows.of_links(thread, summary_id, links)))
        return True

    def _shown(self, connection: Connection, thread: Thread, summary_id: int | None) -> dict[str, Any]:
        """What the session row says of a summary."""
        names = ("id", "text", "covers", "tokens", "created_at")
        if summary_id is None:
            values: Sequence[Any] = (None,) * len(names)
        else:
            query = select(*(SUMMARIES.c[name] for name in names))
            found = connection.execute(query.where(_of(SUMMARIES, thread), SUMMARIES.c.id == summary_id)).first()
            if found is None:
                raise StoreCorrupt(f"summary {summary_id} of session {thread} is missing; {rows.REMEDY}")
            values = tuple(found)
        columns = ("summary_id", "summary_text", "summary_until_index", "summary_tokens", "summary_created_at")
        return dict(zip(columns, values, strict=True))

    def _mark(self, connection: Connection, thread: Thread, used: int | None, undone: int | None, now: float) -> None:
        for summary_id, column in ((used, SUMMARIES.c.used_at), (undone, SUMMARIES.c.undone_at)):
            if summary_id is not None:
                connection.execute(
                    update(SUMMARIES)
                    # the first time counts
                    .where(_of(SUMMARIES, thread), SUMMARIES.c.id == summary_id, column.is_(None))
                    .values({column: now})
                )

    # ---- the lease ----

    def acquire_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        with self.database.write() as connection:
            now = self.database.now(connection)
            # a task that was cancelled while it asked may hold it without knowing
            free = or_(not_(_is_leased(now)), SESSIONS.c.lease_owner == owner)
            lease = {"lease_owner": owner, "lease_until": now + seconds, "lease_seconds": seconds}
            return _changed(connection, thread, free, {"is_summarizing": True, **lease})

    def renew_lease(self, thread: Thread, owner: str, seconds: float) -> bool:
        with self.database.write() as connection:
            lease = {"lease_until": self.database.now(connection) + seconds, "lease_seconds": seconds}
            return _changed(connection, thread, SESSIONS.c.lease_owner == owner, lease)

    def release_lease(self, thread: Thread, owner: str) -> None:
        free = {"is_summarizing": False, "lease_owner": None, "lease_until": None, "lease_seconds": None}
        with self.database.write() as connection:
            # Only one's own: the lease may have expired, and belong to another worker by now.
            _changed(connection, thread, SESSIONS.c.lease_owner == owner, free)

    # ---- windows, as ``contextfold.window.WindowStore`` ----

    def load_window(self, endpoint: str, model: str) -> int | None:
        query = select(WINDOWS.c.tokens).where(WINDOWS.c.endpoint == endpoint, WINDOWS.c.model == model)
        with self.database.read() as connection:
            return connection.scalar(query)

    def save_window(self, endpoint: str, model: str, tokens: int) -> None:
        new = self._insert(WINDOWS).values(endpoint=endpoint, model=model, tokens=tokens)
        with self.database.write() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=["endpoint", "model"], set_={"tokens": tokens}))

    # ---- rows ----

    def _insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """An insert that may say what to do when the row is there already."""
        return postgresql.insert(table) if self.database.dialect == "postgresql" else sqlite.insert(table)

    def _row(self, connection: Connection, thread: Thread) -> rows.Row | None:
        """The session row, locked until the transaction ends."""
        query = self._locked(select(SESSIONS).where(_of(SESSIONS, thread)))
        row = connection.execute(query).mappings().first()
        return None if row is None else rows.locked(thread, row)

    def _locked(self, query: Any) -> Any:
        # FOR NO KEY UPDATE: a plain FOR UPDATE would make rows wait that only refer to the session, such as a summary
        # that is being recorded.
        return query.with_for_update(key_share=True) if self.database.dialect == "postgresql" else query

    def _created(self, connection: Connection, thread: Thread, now: float) -> rows.Row:
        """The row of a new session, unless another writer has just made it."""
        values = {**thread.columns, "thread_id": thread.id, "created_at": now, "updated_at": now}
        connection.execute(self._insert(SESSIONS).values(**values).on_conflict_do_nothing())
        row = self._row(connection, thread)
        assert row is not None  # made here or by another writer, and sessions that are written to are not idle
        return row


def _of(table: Table, thread: Thread) -> ColumnElement[bool]:
    return and_(table.c.namespace == thread.namespace, table.c.session_id == thread.key)


def _of_any(table: Table) -> ColumnElement[bool]:
    """``_of`` the thread whose columns are given to a statement that is made once: to make one takes as long as to
    run it."""
    return and_(table.c.namespace == bindparam("namespace"), table.c.session_id == bindparam("session_id"))


@cache
def _loading() -> Any:
    return _sessions_with_prepared().where(_of_any(SESSIONS))


@cache
def _reading(ranges: int) -> Any:
    # the whole key in each branch: beside an OR of numbers alone, a planner reads the whole session
    within = (
        and_(_of_any(MESSAGES), MESSAGES.c.sequence.between(bindparam(f"first_{n}"), bindparam(f"last_{n}")))
        for n in range(ranges)
    )
    query = select(MESSAGES.c.sequence, MESSAGES.c.payload, MESSAGES.c.created_at).where(or_(*within))
    return query.order_by(MESSAGES.c.sequence)


def _is_idle(now: float, seconds: float) -> ColumnElement[bool]:
    return and_(SESSIONS.c.updated_at < now - seconds, not_(_is_leased(now)))


def _is_leased(now: float) -> ColumnElement[bool]:
    """``SessionState.at`` in the database. Never null: its opposite would be null as well."""
    until = SESSIONS.c.lease_until
    longest = func.coalesce(now + LEASES * SESSIONS.c.lease_seconds, until)
    return and_(SESSIONS.c.is_summarizing.is_(True), or_(until.is_(None), and_(until > now, until <= longest)))


def _changed(connection: Connection, thread: Thread, condition: ColumnElement[bool], values: dict[str, Any]) -> bool:
    done = connection.execute(update(SESSIONS).where(_of(SESSIONS, thread), condition).values(**values))
    return done.rowcount == 1


def _sessions_with_prepared() -> Any:
    """Session rows, each with the newest summary that was made from its very revision."""
    prepared = select(func.max(SUMMARIES.c.id)).where(
        SUMMARIES.c.namespace == SESSIONS.c.namespace,
        SUMMARIES.c.session_id == SESSIONS.c.session_id,
        SUMMARIES.c.base_revision == SESSIONS.c.revision,
    )
    return select(SESSIONS, prepared.scalar_subquery().label("prepared_id"))


def _text_of(stored: str, format: str, sequence: int) -> str:
    """What a stored message says; nothing where it cannot be read."""
    try:
        return readable(formats.get(format).decode(payload.loads(stored), sequence))
    except StoreError:  # a package is missing
        raise
    except Exception:  # noqa: BLE001  a damaged row may hold anything
        return ""


def _checked(thread: Thread, stored: Any, wanted: Iterator[int]) -> Iterator[StoredMessage]:
    """Rows as messages. Raises ``StoreCorrupt`` unless they are the wanted ones, and readable."""
    found = iter(stored)
    for sequence in wanted:
        row = next(found, None)
        if row is None or row[0] != sequence:
            raise StoreCorrupt(f"message {sequence:,} of session {thread} is missing; {rows.REMEDY}")
        _, text, created_at = row
        try:
            if not isinstance(text, str):
                raise ValueError(f"payload is {shown(text, 60)}")
            if not rows.is_time(created_at):
                raise ValueError(f"created_at is {shown(created_at, 60)}")
            yield StoredMessage(sequence, payload.loads(text), created_at)
        except StoreError:  # a package is missing
            raise
        except Exception as error:
            raise unreadable(thread, sequence, error) from error
