"""What happens when the database fails: a clear error, nothing lost, nothing evicted, and on it goes afterwards."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from conversations import SYSTEM, said, turn, turns
from sqlalchemy import event, text

from contextfold import Compactor, ContextfoldError, InputError
from contextfold.errors import StoreCorrupt, StoreError, StoreUnavailable
from contextfold.store import Session, open_store
from contextfold.store.sql import SQLStore
from contextfold.testing.dict_store import DictStore

OPTIONS = {"upper_threshold": 4_000, "lower_threshold": 2_000, "min_messages": 4}


def opened(store: Any) -> Session:
    return Compactor(window=64_000).session("thread", store, options=OPTIONS)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """Neither messages nor the summary in force; and when there is room again, it goes on."""
    path = tmp_path / "full.db"
    store = open_store(f"sqlite:///{path}")
    session = opened(store)
    session.append([SYSTEM, *turns(20)])
    session.view()
    in_force = session.state().summary_id
    assert in_force is not None
    session.append(turns(20))
    _limit_pages(store, 1)
    with pytest.raises(StoreUnavailable, match=r"disk is full; nothing was written\. Make room") as caught:
        _fill(session)
    assert str(path) in str(caught.value)
    count = session.state().message_count
    assert len(session.history()) == count
    with pytest.raises(StoreUnavailable, match="disk is full"):
        session.view()  # a summary is due, and cannot be recorded
    assert session.state().summary_id == in_force
    assert not [one for one in session.summaries() if one.used_at is None]
    assert len(session.ledger()) == count
    _limit_pages(store, 1_000_000)
    session.append(turn(99))
    assert session.view()[-1] == turn(99)[-1]
    assert session.state().summary_id != in_force
    assert session.history()[:81] == [SYSTEM, *turns(20)]
    assert len(session.ledger()) == count + 4
    store.close()


def _fill(session: Session) -> None:
    while True:
        session.append(said(1, 500))


def _limit_pages(store: SQLStore, pages: int) -> None:
    """As many pages as the file may have; SQLite never goes below what it has."""
    store.close()

    def limit(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={pages}")

    writer = store.database._engines().writer
    event.listen(writer, "connect", limit)
    writer.dispose()


def test_a_file_that_cannot_be_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    store = open_store(f"sqlite:///{path}")
    opened(store).append(turns(3))
    store.close()
    read_only = open_store(f"sqlite:///file:{path}?mode=ro&uri=true")
    session = opened(read_only)
    assert session.view() == turns(3)
    with pytest.raises(StoreUnavailable, match="Make the file and its folder writable, which reading needs, too"):
        session.append(turn(4))
    assert session.history() == turns(3)
    read_only.close()


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/nowhere/sessions.db")
    with pytest.raises(StoreUnavailable, match="Check that the folder exists"):
        opened(store).append(turns(1))


def test_a_full_disk_that_cannot_be_read_from_is_told_as_one(tmp_path: Path) -> None:
    """Readers share memory in a file of their own: without room for it, SQLite says no more than ``disk I/O error``."""
    store = open_store(f"sqlite:///{tmp_path}/sessions.db")

    def fails(*_: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    opened(store).append(turns(1))
    event.listen(store.database._engines().reader, "do_execute", fails)
    with pytest.raises(StoreUnavailable, match="Make room on the disk, or check it"):
        opened(store).history()
    store.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look like one. " * 50, encoding="utf-8")
    with pytest.raises(StoreCorrupt, match=r"notes\.txt is damaged, or never was a database of SQLite: check its name"):
        opened(open_store(f"sqlite:///{path}")).append(turns(1))
    assert path.read_text(encoding="utf-8").startswith("not a database")


def test_a_lock_that_is_held_for_too_long_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextfold.store.database.PATIENCE", 0.2)
    store = open_store(f"sqlite:///{tmp_path}/locked.db")
    session = opened(store)
    session.append(turns(1))
    other = sqlite3.connect(tmp_path / "locked.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="Another process holds it"):
        session.append(turn(2))
    assert session.history() == turns(1)  # readers are not held up
    other.execute("ROLLBACK")
    other.close()
    session.append(turn(1))
    store.close()


def test_a_message_that_cannot_be_read_is_named_and_the_rest_can_be(store: SQLStore) -> None:
    session = opened(store)
    session.append(turns(3))
    for payload, said_of_it in (("{", "cannot be read"), ("[1]", "cannot be read")):
        with store.database.write() as connection:
            connection.execute(text("UPDATE session_messages SET payload = :p WHERE sequence = 7"), {"p": payload})
        for read in (opened(store).view, opened(store).history, opened(store).compact):
            with pytest.raises(StoreCorrupt, match=f"message 7 of session 'thread' {said_of_it}"):
                read()
    assert session.history(0, 7) == turns(3)[:7]
    session.append(turn(4))
    assert session.state().message_count == 16
    assert session.summaries() == []


def test_a_message_that_is_missing_is_named(store: SQLStore) -> None:
    session = opened(store)
    session.append(turns(3))
    with store.database.write() as connection:
        connection.execute(text("DELETE FROM session_messages WHERE sequence = 5"))
    with pytest.raises(StoreCorrupt, match="message 5 of session 'thread' is missing"):
        opened(store).view()


def test_a_summary_that_cannot_be_read_is_named(store: SQLStore) -> None:
    session = opened(store)
    session.append(turns(20))
    session.view()
    for column in ("record", "layout"):
        with store.database.write() as connection:
            connection.execute(text(f"UPDATE session_summaries SET {column} = 'nonsense'"))
        with pytest.raises(StoreCorrupt, match=r"summary \d+ of session 'thread' cannot be read"):
            opened(store).view()
    assert opened(store).history() == turns(20)


def test_rows_of_summaries_that_are_missing_or_say_too_much_are_told_by_the_ledger(store: SQLStore) -> None:
    session = opened(store)
    session.append(turns(20))
    session.view()
    for changes, said_of_it in (
        (["DELETE FROM session_summary_messages", "DELETE FROM session_summaries"], r"summary \d+ of .* is missing"),
        (["UPDATE agent_sessions SET message_count = 10"], "more messages than the 10"),
    ):
        with store.database.write() as connection:
            for change in changes:
                connection.execute(text(change))
        with pytest.raises(StoreCorrupt, match=said_of_it):
            opened(store).ledger()


def test_nothing_is_acknowledged_that_would_go_into_a_deleted_file(tmp_path: Path) -> None:
    """SQLite would write on into it, as long as this process has it open, and the next one would find nothing."""
    path = tmp_path / "talks.db"
    store = open_store(f"sqlite:///{path}")
    session = opened(store)
    session.append(turns(1))
    store.close()
    session.append(turns(1))
    aside = path.rename(tmp_path / "aside.db")
    wal = [file.rename(tmp_path / file.name.replace("talks", "aside")) for file in tmp_path.glob("talks.db-*")]
    for work in (lambda: session.append(turn(2)), session.view, session.history, lambda: session.search("turn")):
        with pytest.raises(StoreUnavailable, match=r"not there any more.*Put it back"):
            work()
    assert not path.exists()
    for file in (aside, *wal):
        file.rename(tmp_path / file.name.replace("aside", "talks"))
    session.append(turn(2))
    assert opened(open_store(f"sqlite:///{path}")).history() == [*turns(1), *turns(1), *turn(2)]
    store.close()


def test_a_file_that_was_restored_from_a_backup_is_the_one_that_is_used(tmp_path: Path) -> None:
    path = tmp_path / "talks.db"
    store = open_store(f"sqlite:///{path}")
    session = opened(store)
    session.append(turns(3))
    session.view()
    store.close()
    backup = tmp_path / "backup.db"
    backup.write_bytes(path.read_bytes())
    session.append(turns(20))
    session.view()
    for file in tmp_path.glob("talks.db-*"):
        file.unlink()
    backup.replace(path)
    assert session.history() == turns(3)
    session.append(turns(1))
    view = session.view()
    assert opened(open_store(f"sqlite:///{path}")).history() == [*turns(3), *turns(1)] == list(view)
    store.close()


LEFT_BEHIND = """
import os, sys
from contextfold.store import open_store
from contextfold import Compactor

session = Compactor().session("thread", open_store(sys.argv[1]))
for number in range(30):
    session.append([{"role": "user", "content": f"{number} " + "words " * 300}])
os._exit(9)
"""


def test_who_restores_a_file_as_the_error_says_has_its_messages(tmp_path: Path) -> None:
    """Beside the file of a process that was killed lies a log: it is played into whatever file takes its place."""
    path, backup = tmp_path / "talks.db", tmp_path / "backup.db"
    store = open_store(f"sqlite:///{path}")
    opened(store).append(turns(20))
    store.close()
    with closing(sqlite3.connect(path)) as live:
        live.execute("VACUUM INTO ?", (str(backup),))
    subprocess.run([sys.executable, "-c", LEFT_BEHIND, f"sqlite:///{path}"], check=False)
    path.write_bytes(backup.read_bytes())
    with pytest.raises(StoreCorrupt) as refused:
        opened(open_store(f"sqlite:///{path}")).history()
    first = re.findall(r"-[ws]\w\w\b", str(refused.value))
    for suffix in first:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(backup.read_bytes())
    assert (first, opened(open_store(f"sqlite:///{path}")).history()) == (["-wal", "-shm"], turns(20))


def test_a_history_that_was_changed_under_its_summary_is_summarized_anew(store: SQLStore) -> None:
    """The record does not belong to it any more: it is set aside, and said."""
    session = opened(store)
    session.append(turns(20))
    session.view()
    with store.database.write() as connection:
        changed = '{"role":"assistant","content":"Module 0 is fine; the ticket is BILL-1."}'
        connection.execute(text("UPDATE session_messages SET payload = :p WHERE sequence = 3"), {"p": changed})
    session.append(turn(20))
    result = opened(store).compact()
    assert "compaction_set_aside" in [found.name for found in result.events]
    assert result.changed
    assert "BILL-1." in str(result.messages)


@pytest.mark.parametrize("kill", ["terminate", "drop"])
def test_a_server_that_goes_away_and_comes_back(new_database: Callable[[], str], postgres: str, kill: str) -> None:
    """Connections that were cut are made anew; while it is away, errors say so."""
    import psycopg

    store = open_store(new_database())
    session = opened(store)
    session.append(turns(3))
    name = store.database.url.database
    with psycopg.connect(postgres.replace("+psycopg", ""), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])
        if kill == "drop":
            admin.execute(f"ALTER DATABASE {name} RENAME TO {name}_away")
            with pytest.raises(StoreUnavailable, match="cannot be used now"):
                session.append(turn(3))
            admin.execute(f"ALTER DATABASE {name}_away RENAME TO {name}")
    session.append(turn(3))
    assert session.history() == turns(4)
    store.close()


def test_a_connection_that_is_cut_in_the_middle_of_an_append_appends_nothing(
    new_postgres: Callable[[], str],
) -> None:
    store = open_store(new_postgres())
    session = opened(store)
    session.append(turns(2))

    def cut(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if "INSERT INTO session_messages" in statement:
            with store.database._engines().reader.connect() as other:
                pid = cursor.connection.info.backend_pid
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})

    event.listen(store.database._engines().writer, "before_cursor_execute", cut)
    with pytest.raises(StoreUnavailable, match="Try again once it is back"):
        session.append(turn(2), at=8)
    event.remove(store.database._engines().writer, "before_cursor_execute", cut)
    assert session.append(turn(2), at=8) == range(8, 12)
    assert session.history() == turns(3)
    store.close()


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (("//postgres:@", "//nobody:@"), "Check the user and the password in the URL"),
        (("/postgres?", "/nowhere?"), "Create the database, or check its name in the URL"),
    ],
)
def test_who_is_not_let_in_is_told_the_way_out(postgres: str, change: tuple[str, str], remedy: str) -> None:
    """Each was told to try again once the server is back, which was there."""
    assert change[0] in postgres
    store = open_store(postgres.replace(*change))
    with pytest.raises(StoreUnavailable, match=f"does not exist. {remedy}"):
        opened(store).view()
    store.close()


def test_a_password_is_in_no_error(postgres: str) -> None:
    store = open_store("postgresql+psycopg://anna:geheimnis@127.0.0.1:1/nowhere")
    with pytest.raises(StoreUnavailable) as caught:
        opened(store).view()
    assert "geheimnis" not in str(caught.value)
    assert "anna:***@" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://anna:geheimnis@127.0.0.1:1/none", "postgresql://anna:***@127.0.0.1:1/none"),
        ("postgresql+psycopg://127.0.0.1:1/none?user=a", "postgresql+psycopg://127.0.0.1:1/none?user=a"),
        ("sqlite:///file:gone/talks.db?mode=rw&uri=true", "sqlite:///file:gone/talks.db?mode=rw&uri=true"),
        ("sqlite:///gone/my talks.db", "sqlite:///{here}/gone/my talks.db"),
        ("sqlite+pysqlite:////gone/talks%3F.db?", "sqlite+pysqlite:////gone/talks%3F.db"),
    ],
)
def test_an_error_names_the_store_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, name: str
) -> None:
    """With a driver, or other characters in its path, it was another URL than the user had written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreUnavailable) as caught:
        opened(open_store(url)).view()
    assert str(caught.value).startswith((f"{name.format(here=tmp_path)} ", f"{name.format(here=tmp_path)}:"))


@pytest.mark.parametrize("option", ["?", "?check_same_thread=false", "?check_same_thread=False&"])
def test_an_option_that_holds_anyway_is_taken(tmp_path: Path, option: str) -> None:
    """Examples of other libraries give a file of SQLite with it, and it was refused."""
    url = f"sqlite:///{tmp_path}/talks.db"
    assert open_store(url + option) is open_store(url)
    opened(open_store(url + option)).append(turn(0))
    assert len(opened(open_store(url)).history()) == len(turn(0))


@pytest.mark.parametrize(
    ("url", "said_of_it"),
    [
        ("nonsense", "is not a database URL"),
        ("mysql://host/db", "is of no kind that is known"),
        ("postgresql+asyncpg://host/db", "only the driver psycopg is supported"),
    ],
)
def test_a_url_of_no_known_database_says_which_there_are(url: str, said_of_it: str) -> None:
    with pytest.raises(InputError, match=said_of_it) as caught:
        open_store(url)
    assert "sqlite:///FILE" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said_of_it"),
    [
        ("sqlite://talks.db", "three slashes: sqlite:///FILE"),
        ("sqlite://folder/talks.db", "three slashes: sqlite:///FILE"),
        ("sqlite://anna:geheim@host/talks.db", "three slashes: sqlite:///FILE"),
        ("sqlite:///talks?1.db", "write ? in a path as %3F"),
        ("sqlite:///talks?a=1.db", "write ? in a path as %3F"),
        ("sqlite:///talks.db?mode=ro", "sqlite:///file:FILE?mode=ro&uri=true"),
        ("sqlite:///talks.db?timeout=5", "there is no option 'timeout'"),
        ("sqlite:///talks.db?check_same_thread=true", "there is no option 'check_same_thread'"),
        ("sqlite:///talks\0.db", "no character of number 0"),
    ],
)
def test_a_url_of_sqlite_that_means_another_file_than_it_says_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, said_of_it: str
) -> None:
    """A path was cut at its ``?``, what was to be read only was written, and two slashes ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        opened(open_store(url)).append(turn(0))
    assert said_of_it in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["talks?1.db", "a b#c.db", "100%.db", "%41.db", "größe 完成.db", "a=b&c.db", "file:x"])
def test_a_file_of_any_name_is_the_one_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = "./" + name if name.startswith("file:") else name
    for url in (f"sqlite:///{quote(path)}", f"sqlite:///{tmp_path}/{quote(name)}"):
        store = open_store(url)
        opened(store).append(turn(0))
        store.close()
    assert {file.name.removesuffix("-wal").removesuffix("-shm") for file in tmp_path.iterdir()} == {name}


@pytest.mark.parametrize(
    ("module", "url", "extra"),
    [("sqlalchemy", "sqlite:///x.db", "store"), ("psycopg", "postgresql://host/db", "postgres")],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, module: str, url: str, extra: str) -> None:
    for name in [name for name in sys.modules if name.startswith("contextfold.store.sql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    if module == "sqlalchemy":
        for name in ("database", "schema", "migrations"):
            monkeypatch.delitem(sys.modules, f"contextfold.store.{name}", raising=False)
    with pytest.raises(InputError, match=rf"pip install 'contextfold\[{extra}\]'"):
        open_store(url)


def test_a_store_is_used_anew_in_a_forked_process(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/forked.db")
    session = opened(store)
    session.append(turn(0))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            session.append(turn(1))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    session.append(turn(2))
    assert session.history() == turns(3)
    store.close()


UNCLOSED = """
import atexit, gc, sys

atexit.register(lambda: print(f"{opened} opened, {closed} closed"))  # first registered, last asked
opened = closed = 0

from sqlalchemy import event
from sqlalchemy.pool import Pool

from contextfold import Compactor
from contextfold.store.sql import SQLStore


@event.listens_for(Pool, "connect")
def _(*_):
    global opened
    opened += 1


@event.listens_for(Pool, "close")
def _(*_):
    global closed
    closed += 1


if sys.argv[2] == "forgotten":
    store = SQLStore(sys.argv[1])
    store.sessions("")
    del store
    gc.collect()
    print("nothing is left" if opened == closed > 0 else f"{opened}, {closed}")
else:
    Compactor().session("t", sys.argv[1]).append([{"role": "user", "content": "Hello"}])
"""


@pytest.mark.parametrize("way", ["forgotten", "at the end of the program"])
def test_who_never_closes_a_store_leaves_no_connection_open(tmp_path: Path, way: str) -> None:
    """From Python 3.13 on each one is a warning, and an error where those are errors."""
    arguments = [sys.executable, "-c", UNCLOSED, f"sqlite:///{tmp_path}/s.db", way]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    opened, closed = [int(word) for word in said.split() if word.isdecimal()][-2:]
    assert opened == closed > 0
    assert ("nothing is left" in said) is (way == "forgotten")


def test_errors_of_somebody_elses_store_come_through_as_they_are() -> None:
    class Broken(DictStore):
        def read_messages(self, thread: Any, ranges: Any) -> Any:
            raise LookupError("mine")

    session = opened(Broken())
    session.append(turns(1))
    with pytest.raises(LookupError, match="mine"):
        session.view()


def test_every_error_of_a_store_can_be_caught_as_one() -> None:
    assert issubclass(StoreUnavailable, StoreError)
    assert issubclass(StoreCorrupt, StoreError)
    assert issubclass(StoreError, ContextfoldError)
