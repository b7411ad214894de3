"""The full-text index of messages: the same words in SQLite (FTS5) and PostgreSQL (GIN), and the same order.

Both databases would cut texts into words in their own way, and neither does it for Chinese; so they get words that are
cut already (``recall.words``), and only say where they stand. What a place is worth is computed by ``recall.ranking``.

The number of a row says which session, message and piece of it the row is (``recall.ranking.place_of``). So a search
reads the entries of one session, however many there are in the database, and no other table.

What belongs here: tables of the index, writing and asking it. What does not: which messages there are (``sql``).
"""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text

from contextfold.errors import StoreCorrupt, StoreError
from contextfold.recall.memory import OVERLAP, rows_of
from contextfold.recall.ranking import PIECE_BITS, PIECES, Ask, Ranked, RankedText, Row, places_of, rank, sequence_of
from contextfold.store.rows import REMEDY, counts
from contextfold.store.values import Search, Thread

SESSION, ROLE, MARKS = "\ue000", "\ue001", "\ue020"
"""What the words begin with that a row has for its session and for who said it, and what stands before its marks.
Characters of the private use area: no word of a text has one."""

_LENGTH_BITS = places_of(range(1)).stop.bit_length() - 1 - PIECE_BITS
_PLACE_BITS = 37
_LARGEST = 1 << (_PLACE_BITS - PIECE_BITS - _LENGTH_BITS)
"""Messages of one session that have numbers."""

_MERGED_PAGES = 500
"""Two megabytes of the index in one transaction: some ten milliseconds in which no one else writes."""

_DELETED = 1
"""What a file of SQLite is marked with until a purge has ended: one that was interrupted is made up for."""

_MARKED = "contextfold_schema WHERE version = 0"
"""The row of that mark. What SQLite has for such numbers belongs to the program whose tables the file has as well."""

_OF = "namespace = :namespace AND session_id = :session_id"
_INSERT = {
    "sqlite": "INSERT INTO session_words (rowid, words) VALUES (:id, :content)",
    # PostgreSQL's index names rows, and the number of each is read from its page, for each word of a question. So rows
    # have to be narrow: a hundred on a page instead of eight, or the pages of a long session fit into no cache. It
    # moves a text out of its row where the row is larger than 2,032 bytes, whatever target its table has; the blanks
    # make every row that large, and are compressed to some 30 bytes.
    "postgresql": "INSERT INTO session_words (id, content) VALUES (:id, :content || repeat(' ', 2000))",
}
_PLACES = {
    "sqlite": "SELECT rowid FROM session_words WHERE session_words MATCH :query AND rowid >= :first AND rowid < :stop "
    "ORDER BY rowid",
    # no range and no order: the planner would take the key's index for them, and read every row of a session
    # As one value, since a row for each of a million numbers costs more than finding them.
    "postgresql": "SELECT string_agg(int8send(id), '') FROM session_words "
    "WHERE array_to_tsvector(string_to_array(rtrim(content), ' ')) @@ CAST(:query AS tsquery)",
}
_READ = {
    "sqlite": "SELECT rowid, words FROM session_words WHERE rowid >= :first AND rowid < :stop ORDER BY rowid",
    "postgresql": "SELECT w.id, rtrim(w.content) FROM unnest(CAST(:firsts AS bigint[])) AS a (first) "
    "JOIN session_words w ON w.id >= a.first AND w.id < a.first + :width ORDER BY w.id",
}


def index(connection: Connection, thread: Thread, texts: Iterable[tuple[int, str, str]]) -> None:
    """Add messages: their sequence numbers, who said them, and what they say."""
    dialect = connection.dialect.name
    number = _number(connection, thread)
    rows: list[dict[str, Any]] = []
    messages = words = 0
    for sequence, role, content in texts:
        if sequence >= _LARGEST:
            raise StoreError(f"session {thread} has {sequence:,} messages, and {_LARGEST:,} can be indexed")
        messages += 1
        for row in rows_of(sequence, content):
            words += len(row.words) - row.repeated
            rows.append(_stored(dialect, number, role, row))
    if rows:
        connection.execute(text(_INSERT[dialect]), rows)
    connection.execute(
        text(
            "UPDATE searched_sessions SET messages = messages + :messages, words = words + :words "
            "WHERE number = :number"
        ),
        {"messages": messages, "words": words, "number": number},
    )


def ranked(
    connection: Connection,
    thread: Thread,
    asked: Search,
    within: range | None = None,
    but: frozenset[int] = frozenset(),
) -> list[Ranked]:
    """The thread's messages that answer a search. ``within``: only among these sequence numbers, ``but`` for some."""
    found = connection.execute(
        text(f"SELECT number, messages, words FROM searched_sessions WHERE {_OF}"), thread.columns
    ).first()
    if found is None or asked.query.is_empty:
        return []
    if connection.dialect.name == "postgresql":
        # A plan that was made while the table was small is kept, and reads all of it long after it has grown. Compiling
        # one takes longer than running it.
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        connection.execute(text("SET LOCAL jit = off"))
    number, messages, words = counts(thread, found)
    where = _Index(connection, thread, (number, messages, words), asked.roles, within, but)
    return rank(asked.query, where, asked.limit, asked.order)


def forget(connection: Connection, thread: Thread) -> None:
    """Remove a thread from the index."""
    number = connection.scalar(text(f"SELECT number FROM searched_sessions WHERE {_OF}"), thread.columns)
    if number is None:
        return
    _delete_rows(connection, int(number) << _PLACE_BITS, (int(number) + 1) << _PLACE_BITS)
    connection.execute(text("DELETE FROM searched_sessions WHERE number = :number"), {"number": number})


def forget_message(connection: Connection, thread: Thread, sequence: int, content: str) -> None:
    """Remove one message from the index. ``content``: what it says."""
    number = connection.scalar(text(f"SELECT number FROM searched_sessions WHERE {_OF}"), thread.columns)
    if number is None:
        return
    places, base = places_of(range(sequence, sequence + 1)), int(number) << _PLACE_BITS
    _delete_rows(connection, base + places.start, base + places.stop)
    words = sum(len(row.words) - row.repeated for row in rows_of(sequence, content))
    connection.execute(
        text("UPDATE searched_sessions SET messages = messages - 1, words = words - :words WHERE number = :number"),
        {"words": words, "number": number},
    )


def is_unpurged(connection: Connection) -> bool:
    """Whether a file of SQLite may hold words of what was deleted."""
    return _marked(connection) is not None


def new_run() -> int:
    """A number for one purge: the mark that it leaves, which whatever is deleted meanwhile replaces."""
    return random.randrange(2, 1 << 31)


def merge_deleted(connection: Connection, run: int | None) -> bool:
    """Go on rewriting SQLite's index without the words of what was deleted, which it only marks as such; False once
    that is done. ``run``: it begins.
    """
    if run is not None:
        _mark(connection, run)
    before = _changes(connection)
    pages = _MERGED_PAGES if run is None else -_MERGED_PAGES
    connection.execute(
        text("INSERT INTO session_words (session_words, rank) VALUES ('merge', :pages)"), {"pages": pages}
    )
    return run is not None or _changes(connection) - before > 1  # the command counts as one


def end_run(connection: Connection, run: int) -> None:
    """Nothing is left to purge, unless something was deleted since ``run`` began."""
    if _marked(connection) == run:
        connection.exec_driver_sql(f"DELETE FROM {_MARKED}")


def _mark(connection: Connection, number: int) -> None:
    statement = (
        "INSERT OR REPLACE INTO contextfold_schema (version, name, applied_at) VALUES (0, 'to be purged', :number)"
    )
    connection.execute(text(statement), {"number": number})


def _marked(connection: Connection) -> Any:
    return connection.exec_driver_sql(f"SELECT applied_at FROM {_MARKED}").scalar()


def _changes(connection: Connection) -> int:
    driver: Any = connection.connection.driver_connection
    return int(driver.total_changes)


def _delete_rows(connection: Connection, first: int, stop: int) -> None:
    column = "rowid" if connection.dialect.name == "sqlite" else "id"
    statement = text(f"DELETE FROM session_words WHERE {column} >= :first AND {column} < :stop")
    connection.execute(statement, {"first": first, "stop": stop})
    if connection.dialect.name == "sqlite":
        _mark(connection, _DELETED)


class _Index:
    """The rows of one session, as ``recall.ranking`` asks for them."""

    def __init__(
        self,
        connection: Connection,
        thread: Thread,
        numbers: Sequence[int],
        roles: Sequence[str] | None,
        within: range | None,
        but: frozenset[int],
    ) -> None:
        number, self.messages, self.words = numbers
        self._thread = thread
        self._connection = connection
        self._dialect = connection.dialect.name
        self._number = number
        self._base = number << _PLACE_BITS
        self._roles = roles
        self._rows = places_of(within if within is not None else range(_LARGEST))
        self._but = but

    def places(self, ask: Ask) -> list[int]:
        found = self._in_sqlite(ask) if self._dialect == "sqlite" else self._in_postgresql(ask)
        return [place for place in found if sequence_of(place) not in self._but] if self._but else found

    def _in_sqlite(self, ask: Ask) -> list[int]:
        asked = {
            "query": _match(ask, self._roles),
            "first": self._base + self._rows.start,
            "stop": self._base + self._rows.stop,
        }
        base = self._base
        # of the driver's cursor: a row of SQLAlchemy costs as much as the query itself, and there may be a million
        found = self._connection.execute(text(_PLACES["sqlite"]), asked).cursor
        return [] if found is None else [row - base for (row,) in found.fetchall()]

    def _in_postgresql(self, ask: Ask) -> list[int]:
        query, asked = _PLACES["postgresql"], {"query": _tsquery(self._number, ask, self._roles)}
        if len(ask.phrase) > 1:  # the index says which rows have all its words, and the text whether in a row
            query += " AND strpos(' ' || content, :phrase) > 0"
            asked["phrase"] = f" {' '.join(ask.phrase)}{'' if ask.prefix else ' '}"
        found = array("q", self._connection.scalar(text(query), asked) or b"")
        if sys.byteorder == "little":
            found.byteswap()
        first, stop = self._base + self._rows.start, self._base + self._rows.stop
        return sorted(row - self._base for row in found if first <= row < stop)

    def texts(self, sequences: Sequence[int]) -> Mapping[int, RankedText]:
        found: dict[int, list[tuple[Sequence[str], int, Sequence[str]]]] = {}
        for row, content in self._contents(sequences):
            if not isinstance(content, str):
                raise StoreCorrupt(f"the search index of session {self._thread} cannot be read; {REMEDY}")
            place = row - self._base
            piece = (place >> _LENGTH_BITS) & (PIECES - 1)
            words, _, marks = content.partition(f" {MARKS} ")
            one = (words.split(" "), OVERLAP if piece else 0, marks.split(" ") if marks else ())
            found.setdefault(sequence_of(place), []).append(one)
        return {sequence: RankedText.of(pieces) for sequence, pieces in found.items()}

    def _contents(self, sequences: Sequence[int]) -> list[Any]:
        spans = [places_of(range(n, n + 1)) for n in sequences]
        firsts = [self._base + span.start for span in spans]
        if self._dialect == "postgresql":
            asked = {"firsts": firsts, "width": len(spans[0]) if spans else 0}
            return list(self._connection.execute(text(_READ["postgresql"]), asked))
        cursor = self._connection.connection.cursor()  # as above: hundreds of small queries
        try:
            return [
                row
                for first, span in zip(firsts, spans, strict=True)
                for row in cursor.execute(_READ["sqlite"], {"first": first, "stop": first + len(span)}).fetchall()
            ]
        finally:
            cursor.close()


def _number(connection: Connection, thread: Thread) -> int:
    """The number of a session in the index; it gets one where it has none. Its row in ``agent_sessions`` is locked."""
    query = text(f"SELECT number FROM searched_sessions WHERE {_OF}")
    found = connection.scalar(query, thread.columns)
    if found is None:
        connection.execute(
            text(
                "INSERT INTO searched_sessions (namespace, session_id, messages, words) "
                "VALUES (:namespace, :session_id, 0, 0)"
            ),
            thread.columns,
        )
        found = connection.scalar(query, thread.columns)
    return int(found or 0)


def _stored(dialect: str, number: int, role: str, row: Row) -> dict[str, Any]:
    # In SQLite a range of row numbers says which session; PostgreSQL would read every row of all sessions for that.
    session = () if dialect == "sqlite" else (f"{SESSION}{number}",)
    marks = (*session, f"{ROLE}{role}", *row.marks)
    return {
        "id": (number << _PLACE_BITS) + row.place,
        "content": f"{' '.join(row.words)} {MARKS} {' '.join(marks)}",
    }


def _match(ask: Ask, roles: Sequence[str] | None) -> str:
    """The question in the words of FTS5. Words are letters and digits only, so nothing needs escaping."""
    phrase = f'"{" ".join(ask.phrase)}"' + ("*" if ask.prefix else "")
    asked = [phrase if ask.phrase else " OR ".join(f'"{token}"' for token in ask.tokens)]
    asked += [" OR ".join(f'"{ROLE}{role}"' for role in roles)] if roles is not None else []
    return " AND ".join(f"({one})" for one in asked)


def _tsquery(number: int, ask: Ask, roles: Sequence[str] | None) -> str:
    """The question in the words of PostgreSQL: rows that have all words of a phrase, wherever, or any of the tokens."""
    every = " & ".join(f"'{word}'" for word in ask.phrase) + (":*" if ask.prefix else "")
    asked = [f"'{SESSION}{number}'", every if ask.phrase else " | ".join(f"'{token}'" for token in ask.tokens)]
    asked += [" | ".join(f"'{ROLE}{role}'" for role in roles)] if roles is not None else []
    return " & ".join(f"({one})" for one in asked)
