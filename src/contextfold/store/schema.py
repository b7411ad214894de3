"""The tables as the newest migration leaves them, for queries.

What belongs here: names and types of columns. What does not: creating them (``migrations``; a test compares the two).
Every table of a session has the namespace in its key, and every query names it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, MetaData, String, Table, Text

METADATA = MetaData()


class Flag(Boolean):
    """True or false as it is stored: what is neither is told by who reads it (``rows``), and not taken for true."""

    def result_processor(self, dialect: Any, coltype: Any) -> None:
        return None


def _key() -> tuple[Column[str], Column[str]]:
    return Column("namespace", String(200), primary_key=True), Column("session_id", String(32), primary_key=True)


def _whole(name: str, *, key: bool = False, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=nullable)


SESSIONS = Table(
    "agent_sessions",
    METADATA,
    *_key(),
    Column("thread_id", Text, nullable=False),
    Column("format", String(40)),
    Column("format_marked", Flag, nullable=False),
    _whole("message_count"),
    _whole("token_count"),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    _whole("revision"),
    _whole("summary_id", nullable=True),
    Column("summary_text", Text),
    _whole("summary_until_index", nullable=True),
    _whole("summary_tokens", nullable=True),
    Column("summary_created_at", Float),
    _whole("held_until"),
    Column("is_summarizing", Flag, nullable=False),
    Column("lease_owner", String(80)),
    Column("lease_until", Float),
    Column("lease_seconds", Float),
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
    Column("role", String(20), nullable=False),
    Column("message_id", Text),
    _whole("tokens"),
    Column("created_at", Float, nullable=False),
    Column("payload", Text, nullable=False),
)

SUMMARIES = Table(
    "session_summaries",
    METADATA,
    *_key(),
    _whole("id"),
    _whole("parent_id", nullable=True),
    _whole("base_revision"),
    Column("trigger", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("algorithm", String(40), nullable=False),
    Column("text", Text, nullable=False),
    _whole("tokens"),
    _whole("covers"),
    _whole("message_count"),
    _whole("original_tokens"),
    _whole("input_tokens"),
    _whole("output_tokens"),
    _whole("calls"),
    _whole("chunk_count"),
    _whole("max_depth"),
    Column("truncated", Flag, nullable=False),
    Column("model", Text),
    Column("cost", Float),
    Column("seconds", Float, nullable=False),
    _whole("tokens_before"),
    _whole("tokens_after"),
    Column("record", Text, nullable=False),
    Column("layout", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("used_at", Float),
    Column("undone_at", Float),
)

LINKS = Table(
    "session_summary_messages",
    METADATA,
    *_key(),
    _whole("summary_id", key=True),
    _whole("sequence", key=True),
    Column("fate", String(20), nullable=False),
    Column("reason", Text, nullable=False),
)
