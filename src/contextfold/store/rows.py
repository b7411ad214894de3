"""Rows of our tables as values, or an error that says which row is damaged and where.

A database can hold what no program wrote: a disk fails, a backup is restored in part, a row is edited by hand. What
comes of it must be told where it is read; a number that is none would end in a ``TypeError`` far from here, or in a
view without half of its messages.

What belongs here: what each column may hold, and what the columns of one row say together. What does not: queries
(``sql``), and messages, whose payload says itself what it is (``payload``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, get_args

from sqlalchemy import BigInteger, Boolean, Float, Table

from contextfold import formats
from contextfold.conversation.ledger import Fate
from contextfold.errors import InputError, StoreCorrupt, shown
from contextfold.store.schema import SESSIONS, SUMMARIES
from contextfold.store.values import Link, NewMessage, SessionState, StoredSummary, Thread, Trigger

LARGEST = 2**53
"""No whole number is as large: of messages, tokens, or an id."""

LATEST = 253_402_300_800.0
"""Seconds since 1970. No time is behind it, since calendars end with the year 9999."""

Row = Mapping[Any, Any]
"""Values by the names of their columns."""

_STATE = frozenset(SessionState.__dataclass_fields__)

REMEDY = "restore it from a backup"


def state(thread: Thread, row: Row) -> SessionState:
    """The row of a session. Raises ``StoreCorrupt`` where it is damaged."""
    found, problem = _state(thread, row)
    if problem:
        raise StoreCorrupt(problem)
    return found


def listed(namespace: str, row: Row) -> SessionState:
    """The row of a session among others, which has to be told of as well where it is damaged: see ``damage``."""
    key, name = row["session_id"], row["thread_id"]
    try:
        thread = Thread(namespace, name)
        problem = "" if thread.key == key else _told(f"the row {key} of agent_sessions", "thread_id", name)
    except InputError:
        problem = _told(f"the row {key} of agent_sessions", "thread_id", name)
    if problem:
        thread = Thread(namespace, str(key))  # what it was called, only the damaged column says
    found, other = _state(thread, row)
    return replace(found, damage=problem or other) if problem or other else found


def locked(thread: Thread, row: Row) -> Row:
    """The row of a session that is about to be written. Raises ``StoreCorrupt`` where it is damaged."""
    if problem := _state(thread, {"prepared_id": None, **row})[1]:
        raise StoreCorrupt(problem)
    return row


def _state(thread: Thread, row: Row) -> tuple[SessionState, str]:
    """What can be read of a row, and what is wrong with it."""
    fields, problem = {name: value for name, value in row.items() if name in _STATE}, ""
    for name, value in [*_damaged(SESSIONS, fields)]:
        problem = problem or _told(_place(thread), name, value)
        del fields[name]
    for name in ("format_marked", "is_summarizing"):  # SQLite has 0 and 1
        if name in fields:
            fields[name] = bool(fields[name])
    found = SessionState(thread, **fields)
    return found, problem or _contradiction(found)


def _place(thread: Thread) -> str:
    return f"the row of session {thread}"


def _contradiction(found: SessionState) -> str:
    """What the columns of a session's row say that cannot be true at once; empty where they agree."""
    if found.format is None and found.message_count:
        return f"{_place(found.thread)} cannot be read: it has {found.message_count:,} messages of no format; {REMEDY}"
    if found.format is not None and not formats.exists(found.format):
        return _told(_place(found.thread), "format", found.format)
    if found.is_summarizing and found.lease_until is None:
        return _told(_place(found.thread), "lease_until", None)
    until = found.summary_until_index
    for name in ("summary_until_index", "summary_text", "summary_tokens", "summary_created_at"):
        if (getattr(found, name) is None) is not (found.summary_id is None):
            return _told(_place(found.thread), name, getattr(found, name))
    if until is not None and until > found.message_count:
        return (
            f"{_place(found.thread)} cannot be read: its summary covers {until:,} messages, more messages than the "
            f"{found.message_count:,} that it has; {REMEDY}"
        )
    return ""


def summary(thread: Thread, row: Row) -> StoredSummary:
    """The row of a summary. Raises ``StoreCorrupt`` where it is damaged."""
    place = f"summary {shown(row['id'])} of session {thread}"
    for name, value in _damaged(SUMMARIES, row):
        raise StoreCorrupt(_told(place, name, value))
    parent = row["parent_id"]
    # Each is built on an older one: following them would never end.
    if parent is not None and parent >= row["id"]:
        raise StoreCorrupt(_told(place, "parent_id", parent))
    if row["trigger"] not in get_args(Trigger):
        raise StoreCorrupt(_told(place, "trigger", row["trigger"]))
    try:
        found = StoredSummary.of({**row, "truncated": bool(row["truncated"])})
    except InputError as error:
        raise StoreCorrupt(f"{place} cannot be read: {error}; {REMEDY}") from error
    record, layout = found.record, found.layout
    if layout.summary_id is not None and layout.summary_id >= found.id:
        raise StoreCorrupt(_told(place, "layout", layout.summary_id))
    # Before anything is made of them: a number in a damaged record may be as large as it likes.
    if layout.start > found.covers or (
        record.covers > len(layout.head) and layout.after(record.covers) != found.covers
    ):
        problem = f"record and layout do not speak of the {found.covers:,} messages that it covers"
        raise StoreCorrupt(f"{place} cannot be read: {problem}; {REMEDY}")
    return found


def link(thread: Thread, summary_id: int, row: Sequence[Any]) -> Link:
    """The row of a link. Raises ``StoreCorrupt`` where it is damaged."""
    sequence, fate, reason = row
    for name, value, fits in (
        ("sequence", sequence, _is_whole(sequence)),
        ("fate", fate, fate in get_args(Fate)),
        ("reason", reason, isinstance(reason, str)),
    ):
        if not fits:
            raise StoreCorrupt(_told(f"a link of summary {summary_id} of session {thread}", name, value))
    return Link(sequence, fate, reason)


def of_messages(thread: Thread, messages: Sequence[NewMessage], first: int, now: float) -> Iterator[dict[str, Any]]:
    """The rows that new messages become."""
    for sequence, message in enumerate(messages, first):
        yield {
            **thread.columns,
            "sequence": sequence,
            "role": message.role,
            "message_id": message.message_id,
            "tokens": message.tokens,
            "created_at": now,
            "payload": message.payload,
        }


def of_links(thread: Thread, summary_id: int | None, links: Sequence[Link]) -> Iterator[dict[str, Any]]:
    """The rows that say what a summary made of each message."""
    for link in links:
        yield {
            **thread.columns,
            "summary_id": summary_id,
            "sequence": link.sequence,
            "fate": link.fate,
            "reason": link.reason,
        }


def counts(thread: Thread, row: Sequence[Any]) -> Sequence[int]:
    """Numbers of the search index. Raises ``StoreCorrupt`` where they are damaged."""
    for value in row:
        if not _is_whole(value):
            raise StoreCorrupt(_told(f"the search index of session {thread}", "a number", value))
    return row


def is_time(value: object) -> bool:
    """Whether it is a time, in seconds since 1970."""
    return _is_real(value) and 0 <= value < LATEST  # type: ignore[operator]


def _damaged(table: Table, row: Row) -> Iterator[tuple[str, Any]]:
    """The columns whose values no column of this kind can have."""
    kinds = _kinds(table)
    for name, value in row.items():
        if (kind := kinds.get(name)) is not None and not (kind[0] if value is None else kind[1](value)):
            yield name, value


@cache
def _kinds(table: Table) -> dict[str, tuple[bool, Callable[[Any], bool]]]:
    """By the name of each column: whether it may be empty, and whether a value fits it. Found once: lists have 10,000
    rows."""
    found = {}
    for column in table.columns:
        fits = next((fits for kind, fits in _FITS.items() if isinstance(column.type, kind)), _is_text)
        if isinstance(column.type, Float) and column.name.endswith("_at"):
            fits = is_time
        found[column.name] = (bool(column.nullable), fits)
    found.pop("thread_id", None)  # checked where it is read
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_flag(value: object) -> bool:
    return isinstance(value, int) and value in (0, 1)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_FITS: dict[type, Callable[[Any], bool]] = {BigInteger: _is_whole, Float: _is_real, Boolean: _is_flag}


def _told(place: str, column: str, value: object) -> str:
    return f"{place} cannot be read: {column} is {shown(value, 60)}; {REMEDY}"
