"""The tables as the newest migration leaves them, for queries.

What belongs here: names and types of columns. What does not: creating them (``migrations``; a test compares the two).
Every table of a session has the namespace in its key, and every query names it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, MetaData, String, Table, Text

METADATA = MetaData()


def _key() -> tuple[Column[str], Column[str]]:
    return Column("namespace", String(200), primary_key=True), Column("session_id", String(32), primary_key=True)


def _whole(name: str, *, key: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key)


SESSIONS = Table(
    "agent_sessions",
    METADATA,
    *_key(),
    Column("thread_id", Text),
    Column("format", String(40)),
    Column("format_marked", Boolean),
    _whole("message_count"),
    _whole("token_count"),
    Column("created_at", Float),
    Column("updated_at", Float),
    _whole("revision"),
    _whole("summary_id"),
    Column("summary_text", Text),
    _whole("summary_until_index"),
    _whole("summary_tokens"),
    Column("summary_created_at", Float),
    _whole("held_until"),
    Column("is_summarizing", Boolean),
    Column("lease_owner", String(80)),
    Column("lease_until", Float),
)

WINDOWS = Table(
    "learned_windows",
    MetaData(),  # apart: these belong to a model at an endpoint, and to no session
    Column("endpoint", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    _whole("tokens"),
)

MESSAGES = Table(
    "session_messages",
    METADATA,
    *_key(),
    _whole("id"),
    _whole("sequence", key=True),
    Column("role", String(20)),
    Column("message_id", Text),
    _whole("tokens"),
    Column("created_at", Float),
    Column("payload", Text),
)

SUMMARIES = Table(
    "session_summaries",
    METADATA,
    *_key(),
    _whole("id"),
    _whole("parent_id"),
    _whole("base_revision"),
    Column("trigger", String(20)),
    Column("reason", Text),
    Column("algorithm", String(40)),
    Column("text", Text),
    _whole("tokens"),
    _whole("covers"),
    _whole("message_count"),
    _whole("original_tokens"),
    _whole("input_tokens"),
    _whole("output_tokens"),
    _whole("calls"),
    _whole("chunk_count"),
    _whole("max_depth"),
    Column("truncated", Boolean),
    Column("model", Text),
    Column("cost", Float),
    Column("seconds", Float),
    _whole("tokens_before"),
    _whole("tokens_after"),
    Column("record", Text),
    Column("layout", Text),
    Column("created_at", Float),
    Column("used_at", Float),
    Column("undone_at", Float),
)

LINKS = Table(
    "session_summary_messages",
    METADATA,
    *_key(),
    _whole("summary_id", key=True),
    _whole("sequence", key=True),
    Column("fate", String(20)),
    Column("reason", Text),
)
