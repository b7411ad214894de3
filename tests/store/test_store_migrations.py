"""Tables come into being by themselves, from every earlier version, once, whoever starts first."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conversations import turns
from sqlalchemy import create_engine, inspect, text

from contextfold import Compactor
from contextfold.errors import StoreCorrupt, StoreError, StoreUnavailable
from contextfold.recall.words import parse_query
from contextfold.store import migrations, open_store
from contextfold.store.database import resolved
from contextfold.store.migrations import NEWEST, STEPS, migrate, version_of
from contextfold.store.schema import METADATA
from contextfold.store.sql import SQLStore
from contextfold.store.values import Search, Thread
from effort import FULL

PROCESSES = 5 if FULL else 3
START = """
import sys
from contextfold import Compactor
session = Compactor(window=16_000).session("thread", sys.argv[1])
session.append([{"role": "user", "content": "from " + sys.argv[2]}])
"""


@pytest.mark.parametrize("version", range(NEWEST))
def test_a_database_of_every_earlier_version_is_brought_to_the_newest(url: str, version: int) -> None:
    """With what is in it."""
    engine = create_engine(resolved(url))
    with engine.begin() as connection:
        if version:
            migrate(connection, 1.0, version)
            key = ("", Thread("", "old").key)
            connection.execute(
                text(
                    "INSERT INTO agent_sessions"
                    " (namespace, session_id, thread_id, message_count, format, created_at, updated_at)"
                    " VALUES (:n, :s, 'old', 1, 'openai-chat', 1.0, 1.0)"
                ),
                {"n": key[0], "s": key[1]},
            )
            connection.execute(
                text(
                    "INSERT INTO session_messages (namespace, session_id, sequence, role, tokens, created_at, payload)"
                    " VALUES (:n, :s, 0, 'user', 5, 1.0, '{}')"
                ),
                {"n": key[0], "s": key[1]},
            )
        assert version_of(connection) == version
    store = open_store(url)
    session = Compactor(window=16_000).session(
        "thread", store, options={"upper_threshold": 2_000, "lower_threshold": 900}
    )
    session.append(turns(20))
    session.view()
    assert session.summaries()
    with store.database.read() as connection:
        assert version_of(connection) == NEWEST
        steps = connection.execute(text("SELECT version FROM contextfold_schema ORDER BY version")).scalars().all()
        assert steps == [step.version for step in STEPS]
    assert [found.thread.id for found in store.sessions()] == ["thread", *(["old"] if version else [])]
    store.close()
    engine.dispose()


DAMAGED = {
    "no text": "CAST(x'ff22' AS TEXT)",
    "bytes": "x'ff22'",
    "a number": "7",
    "nothing": "''",
    "no object": """'{"langchain_object": 7}'""",
    "an object of no type": """'{"langchain_object": {"data": 1}}'""",
    "nested without end": f"'{'[' * 3_000}{']' * 3_000}'",
}
"""What may stand in the place of a message, as SQLite writes it."""


@pytest.mark.parametrize("version", [5, 8])
@pytest.mark.parametrize("payload", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_message_ends_no_upgrade(payload: str, version: int, tmp_path: Path) -> None:
    """Of the index at step 6, or at step 9: all else of the store is there, and the message can be taken back."""
    url, key = f"sqlite:///{tmp_path}/old.db", Thread("", "old").key
    engine = create_engine(resolved(url))
    with engine.begin() as connection:
        migrate(connection, 1.0, version)
        connection.exec_driver_sql(
            "INSERT INTO agent_sessions (namespace, session_id, thread_id, message_count, token_count, format, "
            f"created_at, updated_at) VALUES ('', '{key}', 'old', 2, 10, 'openai-chat', 1.0, 1.0)"
        )
        sound = """'{"role": "user", "content": "The harbor is closed."}'"""
        for sequence, stored in enumerate((sound, payload)):
            connection.exec_driver_sql(
                "INSERT INTO session_messages (namespace, session_id, sequence, role, tokens, created_at, payload) "
                f"VALUES ('', '{key}', {sequence}, 'user', 5, 1.0, {stored})"
            )
    engine.dispose()
    store = SQLStore(url)
    assert [found.thread.id for found in store.sessions()] == ["old"]
    assert [hit.index for hit in store.search(Thread("", "old"), Search(parse_query("harbor"), 5, "best"))] == [0]
    with pytest.raises(StoreCorrupt, match="message 1 of session 'old' cannot be read"):
        store.read_messages(Thread("", "old"), [range(2)])
    assert store.delete_newest(Thread("", "old"), 2, 0)
    assert Compactor(window=16_000).session("old", store).view() == [
        {"role": "user", "content": "The harbor is closed."}
    ]
    store.close()


def test_the_index_of_postgresql_is_taken_over_as_it_stands(new_postgres: Callable[[], str]) -> None:
    """Cutting a million messages into words again would take ten minutes, with all sessions locked."""
    url = new_postgres()
    engine = create_engine(resolved(url))
    words = "the port is 8443 \ue020 \ue001user \ue010port"
    one = {"n": "", "s": Thread("", "old").key, "w": words, "v": "'port':2 'is':3 '8443':4 '\ue001user'"}
    with engine.begin() as connection:
        migrate(connection, 1.0, 7)
        for statement in (
            "INSERT INTO agent_sessions (namespace, session_id, thread_id, format, message_count, created_at, "
            "updated_at) VALUES (:n, :s, 'old', 'openai-chat', 1, 1.0, 1.0)",
            "INSERT INTO session_messages (namespace, session_id, sequence, role, tokens, created_at, payload)"
            " VALUES (:n, :s, 0, 'user', 5, 1.0, 'not read again')",
            "INSERT INTO searched_sessions (number, namespace, session_id, messages, words) VALUES (3, :n, :s, 1, 4)",
            "INSERT INTO session_words (id, content, words) "
            "VALUES ((CAST(3 AS bigint) << 37) + 3, :w, CAST(:v AS tsvector))",
        ):
            connection.execute(text(statement), one)
    engine.dispose()
    store = open_store(url)
    for query, roles in (("Which port?", None), ('"port is"', ("user",)), ("8443", ("user", "tool"))):
        found = store.search(Thread("", "old"), Search(parse_query(query), 5, "best", roles))
        assert [hit.index for hit in found] == [0]
    assert store.search(Thread("", "old"), Search(parse_query("port"), 5, "best", ("tool",))) == []
    store.close()


def test_the_tables_are_what_queries_take_them_for(url: str) -> None:
    """``schema`` describes what ``migrations`` leaves, name by name."""
    store = open_store(url)
    store.sessions()
    with store.database.read() as connection:
        found = inspect(connection)
        tables = {table.name: {column.name for column in table.columns} for table in METADATA.sorted_tables}
        assert {name: {column["name"] for column in found.get_columns(name)} for name in tables} == tables
        for table in METADATA.sorted_tables:
            keys = {tuple(found.get_pk_constraint(table.name)["constrained_columns"])}
            keys |= {tuple(one["column_names"]) for one in found.get_unique_constraints(table.name)}
            assert any(key[:2] == ("namespace", "session_id") for key in keys)
        if store.database.dialect == "postgresql":  # a list of entries that wait is read by every search
            options = connection.scalar(text("SELECT reloptions FROM pg_class WHERE relname = 'session_words_by_word'"))
            assert options == ["fastupdate=off"]
    store.close()


@pytest.mark.strict
@pytest.mark.parametrize("version", [0, NEWEST - 1])
def test_processes_that_start_at_once_make_the_tables_once(url: str, version: int) -> None:
    engine = create_engine(resolved(url))
    with engine.begin() as connection:
        migrate(connection, 1.0, version)
    engine.dispose()
    starting = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", START, url, str(n)], stderr=subprocess.PIPE, text=True)
        for n in range(PROCESSES)
    ]
    said = [process.communicate()[1] for process in starting]
    assert [process.returncode for process in starting] == [0] * PROCESSES, said
    store = open_store(url)
    session = Compactor(window=16_000).session("thread", store)
    assert sorted(entry["content"] for entry in session.history()) == [f"from {n}" for n in range(PROCESSES)]
    assert len(session.search("from", limit=PROCESSES + 1)) == PROCESSES
    with store.database.read() as connection:
        steps = connection.execute(text("SELECT version FROM contextfold_schema")).scalars().all()
        assert sorted(steps) == [step.version for step in STEPS]
    store.close()


def test_a_process_waits_for_another_that_brings_the_tables_up_to_date(new_postgres: Callable[[], str]) -> None:
    """However long that takes: a table of a million messages takes longer than anyone waits for a row."""
    url = new_postgres()
    engine = create_engine(resolved(url))
    begun, done = threading.Event(), []

    def slow() -> None:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": migrations._LOCK})
            begun.set()
            time.sleep(0.4)
            migrate(connection, 1.0)
            done.append("first")

    worker = threading.Thread(target=slow)
    worker.start()
    assert begun.wait(10)
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '50ms'"))
        migrate(connection, 2.0)
        assert done == ["first"]
        assert connection.scalar(text("SELECT current_setting('lock_timeout')")) == "50ms"
        assert set(connection.execute(text("SELECT applied_at FROM contextfold_schema")).scalars()) == {1.0}
    worker.join()
    engine.dispose()


def test_a_step_that_fails_leaves_the_database_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (*STEPS[:-1], migrations.Step(NEWEST, "broken", ("CREATE TABLE half (n BIGINT)", "SELECT * FROM nowhere")))
    monkeypatch.setattr(migrations, "STEPS", broken)
    store = SQLStore(url)
    with pytest.raises(StoreError):
        store.sessions()
    monkeypatch.undo()
    assert store.sessions() == []
    with store.database.read() as connection:
        assert not inspect(connection).has_table("half")
    store.close()


def test_tables_of_a_newer_version_are_left_alone(url: str) -> None:
    store = SQLStore(url)
    with store.database.write() as connection:
        connection.execute(text("INSERT INTO contextfold_schema VALUES (99, 'the future', 1.0)"))
    store.close()
    with pytest.raises(StoreError, match=f"version 99, and this contextfold knows them up to {NEWEST}") as raised:
        store.sessions()
    assert str(raised.value).startswith(f"{store.database.name} has tables")


def test_tables_of_another_program_with_names_of_ours_are_left_alone_and_said(url: str) -> None:
    """The OpenAI Agents SDK's sessions are in ``agent_sessions``, too: a move from them begins with their file."""
    engine = create_engine(resolved(url))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY)"))
        connection.execute(text("INSERT INTO agent_sessions VALUES ('theirs')"))
    store = SQLStore(url)
    with pytest.raises(StoreError, match=r"another program .*: agent_sessions .* of its own") as raised:
        store.sessions()
    assert not isinstance(raised.value, StoreUnavailable)  # waiting does not help
    store.close()
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == ["agent_sessions"]
        assert connection.scalar(text("SELECT session_id FROM agent_sessions")) == "theirs"
    engine.dispose()


def test_versions_are_in_order() -> None:
    assert [step.version for step in STEPS] == list(range(1, NEWEST + 1))
