"""The full-text index of messages: the same words in SQLite (FTS5) and PostgreSQL (tsvector).

Both databases would cut texts into words in their own way, and neither does it for Chinese; so they get words that are
cut already (``recall.words``) and only store and match them. Each row also holds a word for its session, so that a
search looks at the entries of one session, however many there are in the database.

What belongs here: tables of the index, writing and asking it. What does not: which messages there are (``sql``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, text

from contextfold.recall.words import Query, words_of
from contextfold.store.values import Thread

PIECE = 8_000
"""Words of one row. PostgreSQL knows positions up to 16,383 and rows of up to 1 MB; longer texts take several rows."""

OVERLAP = 16
"""Words that a row repeats from the one before it, so that a phrase is found where a text was cut."""

TABLES = {
    "sqlite": (
        """CREATE VIRTUAL TABLE session_words USING fts5(
            words, namespace UNINDEXED, session_id UNINDEXED, sequence UNINDEXED,
            tokenize = 'unicode61 remove_diacritics 0'
        )""",
    ),
    "postgresql": (
        """CREATE TABLE session_words (
            namespace VARCHAR(200) NOT NULL,
            session_id CHAR(32) NOT NULL,
            sequence BIGINT NOT NULL,
            words TSVECTOR NOT NULL
        )""",
        "CREATE INDEX session_words_by_word ON session_words USING gin (words)",
        "CREATE INDEX session_words_by_session ON session_words (namespace, session_id)",
    ),
}

_OF = "namespace = :namespace AND session_id = :session_id"

_INSERT = {
    "sqlite": "INSERT INTO session_words (words, namespace, session_id, sequence) "
    "VALUES (:words, :namespace, :session_id, :sequence)",
    "postgresql": "INSERT INTO session_words (words, namespace, session_id, sequence) "
    "VALUES (CAST(:words AS tsvector), :namespace, :session_id, :sequence)",
}
_MATCH = {"sqlite": "session_words MATCH :query", "postgresql": "words @@ CAST(:query AS tsquery)"}


def index(connection: Connection, thread: Thread, texts: Iterable[tuple[int, str]]) -> None:
    """Add texts, by the sequence numbers of their messages."""
    dialect = connection.dialect.name
    rows = [
        {**_key(thread), "sequence": sequence, "words": _stored(dialect, thread, words)}
        for sequence, content in texts
        for words in _pieces(content)
    ]
    if rows:
        connection.execute(text(_INSERT[dialect]), rows)


def matches(connection: Connection, thread: Thread, query: Query, limit: int) -> list[int]:
    """Sequence numbers of the thread's messages that have every term of the query, the newest first."""
    if query.is_empty:
        return []
    dialect = connection.dialect.name
    statement = (
        f"SELECT DISTINCT CAST(sequence AS BIGINT) AS number FROM session_words WHERE {_MATCH[dialect]} AND {_OF} "
        "ORDER BY number DESC LIMIT :limit"
    )
    asked = {**_key(thread), "query": _asked(dialect, thread, query), "limit": limit}
    return [int(found) for found in connection.scalars(text(statement), asked)]


def forget(connection: Connection, thread: Thread) -> None:
    """Remove a thread from the index."""
    condition = f"{_MATCH['sqlite']} AND {_OF}" if connection.dialect.name == "sqlite" else _OF
    asked: dict[str, Any] = {**_key(thread), "query": f'"{_mark(thread)}"'}
    connection.execute(text(f"DELETE FROM session_words WHERE {condition}"), asked)


def _key(thread: Thread) -> dict[str, str]:
    return {"namespace": thread.namespace, "session_id": thread.key}


def _mark(thread: Thread) -> str:
    """The word that stands for a session in the index. No text has it: no word of a text is as long in one piece."""
    return f"session{thread.key}"


def _pieces(content: str) -> Iterator[list[str]]:
    """The words of a text, in rows. A text without any word needs none."""
    words = words_of(content)
    before: list[str] = []
    while new := list(islice(words, PIECE)):
        yield before + new
        before = new[-OVERLAP:]


def _stored(dialect: str, thread: Thread, words: Sequence[str]) -> str:
    if dialect == "sqlite":
        return " ".join((_mark(thread), *words))
    places: dict[str, list[str]] = {}
    for place, word in enumerate(words, 1):
        places.setdefault(word, []).append(str(place))
    # without a position, the session's word can be asked for and is next to nothing
    return " ".join((f"'{_mark(thread)}'", *(f"'{word}':{','.join(where)}" for word, where in places.items())))


def _asked(dialect: str, thread: Thread, query: Query) -> str:
    """The query in the words of a database. Words are letters and digits only, so nothing needs escaping."""
    terms = zip(query.terms, query.prefixes, strict=True)
    if dialect == "sqlite":
        asked = (f'"{" ".join(term)}"' + ("*" if prefix else "") for term, prefix in terms)
        return " AND ".join((f'"{_mark(thread)}"', *asked))
    asked = (
        "(" + " <-> ".join(f"'{word}'" for word in term) + (":*" if prefix else "") + ")" for term, prefix in terms
    )
    return " & ".join((f"'{_mark(thread)}'", *asked))
