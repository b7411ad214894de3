"""Any damage to any row is told in our words, with its place and the way out, and everything else can be read.

Each column of each table gets each value that it cannot have; then all that a session and a store can be asked is
asked. What is damaged either answers as it did before, or says so; who does not ask for it never notices.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conversations import SYSTEM, turn, turns
from sqlalchemy import Table, text

from contextfold import Compactor
from contextfold.errors import StoreCorrupt
from contextfold.store import Session, Thread, open_store
from contextfold.store.schema import LINKS, MESSAGES, SESSIONS, SUMMARIES
from contextfold.store.sql import SQLStore
from contextfold.testing.dict_store import DictStore
from effort import FULL

OPTIONS = {"upper_threshold": 3_000, "lower_threshold": 1_500, "min_messages": 4}
KEY = Thread("", "talk").key
DAMAGED = 8
"""The message whose row is damaged: it has left the view."""

NULL = "NULL"
TEXTS = {"null": NULL, "nonsense": "'nonsense'"}
NUMBERS = {"null": NULL, "negative": "-7", "huge": "9000000000000000000"}
REALS = {
    "null": NULL,
    "endless": "'Infinity'::float",
    "no number": "'NaN'::float",
}
JSON = {
    "of a scalar": "'7'",
    "of a list": "'[1]'",
    "of nothing": "'{}'",
    "cut off": '\'{"role":"user","content":"x\'',
    "too deep": f"'{'[' * 100_000}'",
}
PAYLOADS = {
    **JSON,
    "another role": '\'{"role":"nobody","content":"x"}\'',
    "no text for a role": '\'{"role":[7],"content":"x"}\'',
    "odd content": '\'{"role":"user","content":7}\'',
    "an object of no class": "'{\"langchain_object\":7}'",
}
LAYOUTS = {
    **JSON,
    "endless runs": '\'{"runs":[[0,1000000000000]],"start":1000000000000,"summary_id":null}\'',
    "runs backward": '\'{"runs":[[5,2]],"start":9,"summary_id":null}\'',
    "a start before 0": '\'{"runs":[],"start":-3,"summary_id":null}\'',
    "a summary that is a text": '\'{"runs":[],"start":0,"summary_id":"x"}\'',
}
IN_SQLITE = {"bytes": "x'ff00fe'", "no text": "CAST(x'ff41fe' AS TEXT)", "a text": "'nonsense'", "half": "1.5"}
"""SQLite takes any value in any column."""

ANY_TEXT = {"reason", "text", "algorithm", "model", "summary_text", "lease_owner", "message_id", "role"}
"""Columns in which nonsense is no damage that shows, or that are only written for other programs."""


def kinds(column: Any, dialect: str) -> dict[str, str]:
    """The values that a column cannot have, by the name of the damage."""
    kind = type(column.type).__name__
    known = dict(TEXTS) if kind in ("Text", "String") and column.name not in ANY_TEXT else {"null": NULL}
    if column.nullable and column.name != "format":  # without it there is no message
        del known["null"]
    if kind == "BigInteger":
        known |= NUMBERS if not column.nullable else {k: v for k, v in NUMBERS.items() if v != NULL}
    elif kind == "Float":
        known |= {"endless": "9e999"} if dialect == "sqlite" else REALS
        if column.nullable:
            known.pop("null", None)
    known |= {"payload": PAYLOADS, "record": JSON, "layout": LAYOUTS}.get(column.name, {})
    if dialect == "sqlite":
        known |= IN_SQLITE if kind not in ("Text", "String") else {k: IN_SQLITE[k] for k in ("bytes", "no text")}
        if kind == "Float":
            del known["half"]
    return known


PLACES: dict[Table, str] = {
    SESSIONS: "TRUE",
    MESSAGES: f"sequence = {DAMAGED}",
    SUMMARIES: f"id = (SELECT summary_id FROM agent_sessions WHERE session_id = '{KEY}')",
    LINKS: f"sequence = {DAMAGED}",
}
KEYS = {"namespace", "session_id", "id", "summary_id"}
"""Of a row that has another key nobody knows that it is there; what is missing is told where it is referred to."""

READING: dict[str, Callable[[Session], Any]] = {
    "state": lambda session: session.state(),
    "view": lambda session: list(session.view()),
    "due": lambda session: session.due(),
    "history": lambda session: session.history(),
    "ledger": lambda session: [(one.index, one.id, one.fate, one.reason) for one in session.ledger()],
    "summaries": lambda session: session.summaries(),
}
LOOKING: dict[str, Callable[[Session], Any]] = {
    "search": lambda session: session.search("ticket BILL-4001 module", limit=60, neighbors=1),
    "search by time": lambda session: session.search("ticket BILL-4001 module", limit=60, since=5.0, until=9e9),
    "read": lambda session: session.read(0, 100),
}
WRITING: dict[str, Callable[[Session], Any]] = {
    "append": lambda session: session.append(turn(90), at=49) and session.history(49),
    "undo": lambda session: session.undo() is not None and list(session.view()),
    "compact": lambda session: session.compact().messages,
}


def opened(store: Any, thread: str = "talk") -> Session:
    return Compactor(window=64_000).session(thread, store, options=OPTIONS)


def fill(store: Any) -> None:
    for thread in ("talk", "other"):
        session = opened(store, thread)
        session.append([SYSTEM, *turns(12)])
        session.view()
        assert DAMAGED in {entry.index for entry in session.ledger() if entry.fate == "summarized"}


class Damager:
    """A database whose rows can be damaged, and are whole again afterwards."""

    def __init__(self, url: str, folder: Path) -> None:
        self.store = open_store(url)
        self.dialect = self.store.database.dialect
        self._file, self._kept = folder / "sessions.db", folder / "kept.db"
        fill(self.store)
        self._loosen()

    def _loosen(self) -> None:
        """A table that refuses a value cannot be damaged with it."""
        if self.dialect == "sqlite":
            self.store.close()
            connection = sqlite3.connect(self._file)
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table'")
            connection.commit()
            connection.close()
            shutil.copy(self._file, self._kept)
            # Written back page by page into the file that is open: another file would have the store connect again,
            # and compile each statement again. The machine is not switched off meanwhile.
            self._whole = sqlite3.connect(self._kept)
            self._beside = sqlite3.connect(self._file)
            self._beside.execute("PRAGMA synchronous = OFF")
            return
        with self.store.database.write() as connection:
            for table in PLACES:
                connection.execute(text(f"CREATE TABLE kept_{table.name} AS SELECT * FROM {table.name}"))
                for column in table.columns:
                    if not column.primary_key and column.name not in KEYS:
                        loose = f'ALTER TABLE {table.name} ALTER COLUMN "{column.name}" DROP NOT NULL'
                        connection.execute(text(loose))
            for name in ("searched_sessions", "session_words"):
                connection.execute(text(f"CREATE TABLE kept_{name} AS SELECT * FROM {name}"))

    def close(self) -> None:
        self.store.close()
        if self.dialect == "sqlite":
            self._whole.close()
            self._beside.close()

    def restore(self) -> None:
        if self.dialect == "sqlite":
            self._whole.backup(self._beside)
            return
        names = ["session_words", "searched_sessions", *(table.name for table in reversed(PLACES))]
        emptied = [f"DELETE FROM {name}" for name in names]
        filled = [f"INSERT INTO {name} SELECT * FROM kept_{name}" for name in reversed(names)]
        with self.store.database.write() as connection:
            connection.exec_driver_sql("; ".join([*emptied, *filled]))

    @contextmanager
    def damaged(self, table: Table, values: dict[str, str]) -> Iterator[None]:
        """One row in which these columns have these values, for as long as it takes."""
        changes = ", ".join(f'"{column}" = {value}' for column, value in values.items())
        statement = f"UPDATE {table.name} SET {changes} WHERE session_id = '{KEY}' AND {PLACES[table]}"
        if self.dialect == "sqlite":
            changed = self._beside.execute(statement).rowcount  # this connection lets rows go apart
            self._beside.commit()
        else:
            with self.store.database.write() as one:
                changed = one.exec_driver_sql(statement).rowcount
        assert changed == 1, statement
        try:
            yield
        finally:
            self.restore()


@pytest.mark.parametrize("table", PLACES, ids=lambda table: table.name)
def test_each_kind_of_damage_in_each_column_is_told_and_all_else_can_be_read(
    url: str, tmp_path: Path, table: Table
) -> None:
    damager = Damager(url, tmp_path)
    whole = {thread: everything(damager.store, thread) for thread in ("talk", "other")}
    written: dict[str, Any] = {}
    for name, ask in WRITING.items():
        written[name] = ask(opened(damager.store))
        damager.restore()
    listed = {state.thread.id: state for state in damager.store.sessions()}
    wrong = []
    cases = list(damages(table, damager.dialect))
    for column, kind, value in cases if FULL else cases[::12]:
        with damager.damaged(table, {column: value}):
            found = {
                **{name: answered(ask, opened(damager.store)) for name, ask in {**READING, **LOOKING}.items()},
                "the list": {state.thread.id: state for state in damager.store.sessions()},
                "what may go": {state.thread.id: state for state in damager.store.idle(-1)},
                "append": answered(WRITING["append"], opened(damager.store)),
            }
        for name in ("undo", "compact"):
            with damager.damaged(table, {column: value}):
                found[name] = answered(WRITING[name], opened(damager.store))
        expected = {**whole["talk"], **written}
        for name, answer in found.items():
            if name in ("the list", "what may go"):
                fine = (
                    answer.get("other") == listed["other"]
                    and all(state == listed.get(state.thread.id) or told(state.damage) for state in answer.values())
                    and (len(answer) == 2 or name == "what may go")
                )
            elif name == "history" and column == "payload" and isinstance(answer, list):
                # It hands out what was stored, and reads no message: what is JSON comes as it stands.
                fine = [n for n, one in enumerate(answer) if one != expected[name][n]] == [DAMAGED]
            elif name in LOOKING and table is not SESSIONS:
                fine = isinstance(answer, list) and same_but_one(name, answer, expected[name])
            else:
                fine = answer == expected[name] or (isinstance(answer, str) and told(answer))
            if not fine:
                wrong.append(f"{column} is {kind}: {name}: {str(answer)[:300]}")
    for values in rounds(cases if FULL else cases[::12]):
        with damager.damaged(table, values):
            if everything(damager.store, "other") != whole["other"]:
                wrong.append(f"the other session, where {values}")
    assert not wrong, "\n".join(wrong)
    damager.close()


def damages(table: Table, dialect: str) -> Iterator[tuple[str, str, str]]:
    """Columns of a table, each with each value that it cannot have, by its name."""
    for column in table.columns:
        if column.name in KEYS and not (table is SESSIONS and column.name == "summary_id"):
            continue
        if column.name == "sequence" and dialect == "postgresql":  # rows refer to each other by it
            continue
        for kind, value in kinds(column, dialect).items():
            yield column.name, kind, value


def rounds(cases: Iterable[tuple[str, str, str]]) -> list[dict[str, str]]:
    """All cases, as few times as one value for each column allows: a session that is whole reads none of them."""
    found: list[dict[str, str]] = []
    for column, _, value in cases:
        free = next((one for one in found if column not in one), None)
        if free is None:
            found.append(free := {})
        free[column] = value
    return found


def everything(store: SQLStore, thread: str) -> dict[str, Any]:
    """What a session that is whole answers, asked one after another as a program does."""
    session = opened(store, thread)
    return {name: ask(session) for name, ask in {**READING, **LOOKING}.items()}


@pytest.mark.parametrize("damage", ["cut off", "too deep", "another role"])
def test_an_error_that_someone_keeps_holds_no_later_look_at_its_own_time(damage: str, url: str, tmp_path: Path) -> None:
    """As a log does that sends errors on: its traceback held the cursor, and what came later was not to be seen."""
    damager = Damager(url, tmp_path)
    kept: list[StoreCorrupt] = []
    with damager.damaged(MESSAGES, {"payload": PAYLOADS[damage]}):
        for ask in READING.values():
            try:
                ask(opened(damager.store))
            except StoreCorrupt as error:
                kept.append(error)
        session = opened(damager.store)
        session.append(turn(90), at=49)
        assert kept
        assert session.state().message_count > 49
        assert session.history(49) == turn(90)
    damager.close()


def answered(ask: Callable[[Session], Any], session: Session) -> Any:
    """What a session answers, or what it says of the damage."""
    try:
        return ask(session)
    except StoreCorrupt as error:
        return str(error)


def told(problem: str) -> bool:
    """Whether an error names the place and the way out."""
    return ("session 'talk'" in problem or KEY in problem) and "restore it from a backup" in problem


def same_but_one(name: str, found: list[Any], expected: list[Any]) -> bool:
    """Whether the same messages were found, and all but the damaged one say the same. By words, whose scores are the
    index's; what is out of the view, only the rows of summaries know."""

    def words(entry: Any) -> tuple[int, str, str]:
        return entry.index, entry.role, entry.text if name == "read" else entry.snippet

    if sorted(one.index for one in found) != sorted(one.index for one in expected):
        return False
    said = {one.index: words(one) for one in expected}
    others = [one for one in found if words(one) != said[one.index]]
    return not others or (
        [one.index for one in others] == [DAMAGED] and others[0].role == "unreadable" and told(words(others[0])[2])
    )


def test_a_message_that_cannot_be_read_is_found_where_nothing_is_indexed_too() -> None:
    """A store without a search of its own is read from end to end."""

    class Damaged(DictStore):
        def read_messages(self, thread: Any, ranges: Any) -> Any:
            if any(DAMAGED in one for one in ranges):
                raise StoreCorrupt("message 8 of session 'talk' cannot be read; restore it from a backup")
            return super().read_messages(thread, ranges)

    store = Damaged()
    session = opened(store)
    session.append([SYSTEM, *turns(3)])
    hits = session.search("BILL-4002 module")
    assert [hit.role for hit in hits if hit.index == DAMAGED] == ["unreadable"]
    assert hits[0].index == 9
    assert [entry.role == "unreadable" for entry in session.read(0, 13)] == [n == DAMAGED for n in range(13)]
