"""Nothing is deleted unless a ``Retention`` is applied; then idle sessions go whole, of one namespace and no others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conversations import said, turns
from fsspec.implementations.local import LocalFileSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextfold import Compactor
from contextfold.archive import Archive, open_archive
from contextfold.errors import ArchiveError, PolicyError, StoreConflict
from contextfold.inspector.stored import stored
from contextfold.store import Retention, Session
from contextfold.store.database import Database
from contextfold.store.sql import SQLStore
from effort import crossed, examples

OWNERS = [("", "a"), ("x", "a"), ("x", "b"), ("y", "a")]
OPTIONS = {"upper_threshold": 1_500, "lower_threshold": 800, "min_messages": 2, "min_new_messages": 1}

STEP = st.tuples(
    st.sampled_from(OWNERS),
    st.sampled_from(["append", "append", "compact", "undo", "view", "search", "lease"]),
    st.integers(1, 400),
)
"""Who, does what, and how many seconds pass before it."""


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def opened(store: SQLStore, owner: tuple[str, str], **options: Any) -> Session:
    return Compactor(window=16_000).session(owner[1], store, namespace=owner[0], options=OPTIONS, **options)


def everything(store: SQLStore, owner: tuple[str, str]) -> str:
    session = opened(store, owner)
    links = [store.read_links(session.thread, one.id) for one in session.summaries()]
    hits = session.search("w7", limit=50)
    return repr([session.history(), session.state(), session.summaries(), list(session.ledger()), links, hits])


class Model:
    """What should be: when each session was last written to, and until when someone is summarizing it."""

    def __init__(self, store: SQLStore, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.written: dict[tuple[str, str], float] = {}
        self.leased: dict[tuple[str, str], float] = {}

    def do(self, owner: tuple[str, str], name: str, number: int) -> None:
        session = opened(self.store, owner)
        before = session.state().revision
        if name == "append":
            session.append(said(3, 60, number))
            self.written[owner] = self.clock.now
        elif name == "lease":
            if self.store.acquire_lease(session.thread, "worker", 100.0):
                self.leased[owner] = self.clock.now + 100.0
        elif name == "search":
            session.search("w7")
        elif self.leased.get(owner, 0.0) <= self.clock.now:  # else it would wait for the lease
            getattr(session, name)()
        if session.state().revision != before:
            self.written[owner] = self.clock.now

    def expired(self, idle: float, namespace: str) -> set[tuple[str, str]]:
        last = self.clock.now - idle
        return {
            owner
            for owner, written in self.written.items()
            if owner[0] == namespace and written < last and self.leased.get(owner, 0.0) <= self.clock.now
        }


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(STEP, min_size=4, max_size=14),
    idle=st.integers(1, 1_500),
    namespace=st.sampled_from(["", "x", "y"]),
)
def test_exactly_the_idle_sessions_of_a_namespace_go(steps: list[Any], idle: int, namespace: str) -> None:
    """Against a model. Looking changes nothing; applying leaves every other session as it was, byte for byte."""
    clock = Clock()
    store = SQLStore("sqlite://", clock=clock)
    model = Model(store, clock)
    for number, (owner, name, seconds) in enumerate(steps):
        clock.now += seconds
        model.do(owner, name, 3 * number)
    clock.now += 200
    before = {owner: everything(store, owner) for owner in OWNERS}
    retention = Retention(idle_seconds=idle)
    expected = model.expired(idle, namespace)
    found = retention.expired(store, namespace)
    assert {(state.thread.namespace, state.thread.id) for state in found} == expected
    assert [state.updated_at for state in found] == sorted(state.updated_at or 0.0 for state in found)
    assert before == {owner: everything(store, owner) for owner in OWNERS}
    assert retention.apply(store, namespace) == found
    assert retention.apply(store, namespace) == []
    for owner in OWNERS:
        if owner in expected:
            assert everything(store, owner) == everything(store, (owner[0], "never written to")).replace(
                "never written to", owner[1]
            )
        else:
            assert everything(store, owner) == before[owner]
    store.close()


def test_the_default_keeps_everything(store: SQLStore) -> None:
    opened(store, ("", "a")).append(said(3, 10))
    assert Retention().expired(store) == Retention().apply(store) == []
    assert opened(store, ("", "a")).history() == said(3, 10)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "90d"])
def test_what_is_no_time_is_refused(wrong: Any) -> None:
    with pytest.raises(PolicyError, match=r"idle_seconds is .* positive number of seconds, or None"):
        Retention(idle_seconds=wrong)


def test_what_is_deleted_is_gone_to_whoever_asks(url: str) -> None:
    """Also to a session object that remembers it, when someone has begun anew under the same id."""
    clock = Clock()
    store = SQLStore(url, clock=clock)
    session = opened(store, ("x", "a"))
    session.append(turns(10))
    session.view()
    assert session.summaries()
    old = opened(store, ("x", "b"))
    old.append(said(2, 10))
    assert old.view() == said(2, 10)
    clock.now += 100
    deleted = Retention(idle_seconds=50).apply(store, "x")
    assert [(state.thread.id, state.message_count) for state in deleted] == [("a", 40), ("b", 2)]
    assert (session.history(), session.read(), session.view(), session.summaries()) == ([], [], [], [])
    assert session.search("module") == []
    assert session.undo() is None
    with pytest.raises(StoreConflict, match="has 0 messages, and these were to come at 40"):
        session.append(said(1, 10), at=40)
    opened(store, ("x", "b")).append(said(4, 10, 100))
    assert old.view() == old.history() == said(4, 10, 100)
    store.close()


def test_no_file_holds_a_word_of_what_was_deleted(tmp_path: Path) -> None:
    """Nor the index, which only marks words as deleted, nor the log, while the store is open and goes on."""
    clock = Clock()
    store = SQLStore(f"sqlite:///{tmp_path}/held.db", clock=clock)
    gone, stays = opened(store, ("anna", "a")), opened(store, ("", "b"))

    def held() -> int:
        return sum(file.read_bytes().lower().count(b"zanzibar") for file in tmp_path.iterdir())

    for n in range(30):
        gone.append([{"role": "user", "content": f"zanzibar{n} pays invoice_zanzibar_{n}.pdf" + " and more" * 60}])
        stays.append(said(1, 10, n))
        gone.view()
    assert gone.summaries()
    assert held()
    clock.now += 1
    deleted = Retention(idle_seconds=1e-6).apply(store, "anna")
    assert [state.thread.id for state in deleted] == ["a"]
    assert held() == 0
    assert len(stays.search("w3", limit=50)) == 30
    stays.append(said(1, 10, 30))
    assert held() == 0
    store.close()


@pytest.mark.parametrize("at", ["before the purge", "in it", "while a reader needs the log"])
def test_what_an_interrupted_purge_left_the_next_one_wipes(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it finds nothing that has expired. One that was not interrupted leaves nothing to do."""
    clock = Clock()
    store = SQLStore(f"sqlite:///{tmp_path}/held.db", clock=clock)
    gone = opened(store, ("", "a"))
    gone.append([{"role": "user", "content": f"zanzibar{n}" + " and more" * 60} for n in range(300)])
    clock.now += 1
    retention = Retention(idle_seconds=1e-6)
    if at == "while a reader needs the log":
        with sqlite3.connect(f"{tmp_path}/held.db", isolation_level=None) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM agent_sessions").fetchone()
            assert retention.apply(store)
        reader.close()
    else:
        broken: type = SQLStore if at == "before the purge" else Database
        with monkeypatch.context() as patch:
            patch.setattr(broken, "purge" if broken is SQLStore else "truncate_log", interrupted)
            with pytest.raises(KeyboardInterrupt):
                retention.apply(store)
    assert retention.apply(store) == []
    assert not any(b"zanzibar" in file.read_bytes().lower() for file in tmp_path.iterdir())
    monkeypatch.setattr(Database, "truncate_log", interrupted)
    assert retention.apply(store) == []
    store.close()


def test_the_number_that_another_program_gave_its_file_stays(tmp_path: Path) -> None:
    """Many keep the version of their own tables in it, and would make those again where it is 0."""
    store = SQLStore(f"sqlite:///{tmp_path}/app.db", clock=(clock := Clock()))
    opened(store, ("", "a")).append(said(2, 20))
    with sqlite3.connect(f"{tmp_path}/app.db") as app:
        app.execute("PRAGMA user_version = 7")
    clock.now += 1
    assert Retention(idle_seconds=1e-6).apply(store)
    assert app.execute("PRAGMA user_version").fetchone() == (7,)
    app.close()
    store.close()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_is_used_meanwhile_stays(url: str) -> None:
    """Whoever writes to it, or is summarizing it, between the look and the deletion."""
    clock = Clock()
    store = SQLStore(url, clock=clock)
    for owner in OWNERS[1:3]:
        opened(store, owner).append(said(3, 10))
    clock.now += 100
    first, second = Retention(idle_seconds=50).expired(store, "x")
    opened(store, ("x", "a")).append(said(1, 10, 3))
    assert store.acquire_lease(second.thread, "worker", 30.0)
    assert not store.delete_idle(first.thread, 50)
    assert not store.delete_idle(second.thread, 50)
    assert opened(store, ("x", "a")).history() == said(4, 10)
    clock.now += 31  # the worker died
    assert store.delete_idle(second.thread, 50)
    store.close()


def test_files_of_the_archive_go_with_the_session(url: str, tmp_path: Path) -> None:
    """Those of this thread and namespace; media too. Whoever begins anew finds an empty archive."""
    clock = Clock()
    store = SQLStore(url, clock=clock)
    address = f"file://{tmp_path}/archive"
    archive = open_archive(address)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    for owner in OWNERS[1:]:
        session = opened(store, owner, archive=address)
        session.append([{"role": "user", "content": [{"type": "text", "text": "Look."}, picture]}, *turns(10)])
        session.compact()
    assert len(list(tmp_path.rglob("*.md"))) == 3
    clock.now += 100
    opened(store, ("x", "b")).append(said(1, 10))
    deleted = Retention(idle_seconds=50).apply(store, "x", archive=archive)
    assert [state.thread.id for state in deleted] == ["a"]
    assert archive.thread("a", namespace="x").indices() == []
    assert not list(tmp_path.rglob(f"{archive.thread('a', namespace='x').name.rpartition('/')[2]}*"))
    for owner in (("x", "b"), ("y", "a")):
        assert archive.thread(owner[1], namespace=owner[0]).indices()
    session = opened(store, ("x", "a"), archive=address)
    session.append(turns(10))
    assert session.compact().changed
    assert archive.thread("a", namespace="x").read(0, 1)
    store.close()


class Slow(LocalFileSystem):
    """A file system on which deleting takes so long that someone writes to the session meanwhile."""

    def rm(self, *arguments: Any, **named: Any) -> None:
        super().rm(*arguments, **named)
        self.writing.append(said(1, 10))

    writing: Session


def test_a_session_that_is_written_to_while_its_files_go_stays_whole(tmp_path: Path) -> None:
    """And what is compacted later is archived again."""
    clock = Clock()
    store = SQLStore("sqlite://", clock=clock)
    system = Slow()
    archive = Archive(system, f"{tmp_path}/archive", f"file://{tmp_path}/archive")
    session = system.writing = opened(store, ("", "a"), archive=archive.thread("a"))
    session.append(turns(10))
    session.compact()
    clock.now += 100
    assert Retention(idle_seconds=50).apply(store, archive=archive) == []
    assert session.history()[:40] == turns(10)
    session.append(turns(10))
    session.compact()
    evicted = {entry.index for entry in session.ledger() if entry.fate == "summarized"}
    assert len(evicted) > 40
    assert evicted <= set(archive.thread("a").indices())
    store.close()


class Stubborn(LocalFileSystem):
    """A file system that refuses to delete."""

    def rm(self, *arguments: Any, **named: Any) -> None:
        raise PermissionError("not permitted")


def test_a_file_that_cannot_be_deleted_keeps_its_session(tmp_path: Path) -> None:
    clock = Clock()
    store = SQLStore("sqlite://", clock=clock)
    archive = Archive(Stubborn(), f"{tmp_path}/archive", f"file://{tmp_path}/archive")
    session = opened(store, ("", "a"), archive=archive.thread("a"))
    session.append(turns(10))
    session.compact()
    clock.now += 100
    with pytest.raises(ArchiveError, match="md cannot be deleted: not permitted"):
        Retention(idle_seconds=50).apply(store, archive=archive)
    assert session.history() == turns(10)
    assert archive.thread("a").indices()
    store.close()


LOOKS: dict[str, Callable[[Session], Any]] = {
    "view": lambda session: list(session.view()),
    "compact": lambda session: session.compact().messages,
    "due": Session.due,
    "history": Session.history,
    "read": Session.read,
    "search": lambda session: session.search("w7"),
    "ledger": lambda session: list(session.ledger()),
    "summaries": Session.summaries,
    "undo": Session.undo,
    "page": lambda session: {**stored(session.store, session.thread), "source": None},
}


@crossed(look=LOOKS, read=["search", "read_messages", "read_summary", "read_summaries", "read_links"], anew=[0, 12])
def test_a_session_that_is_deleted_while_it_is_read_is_an_empty_one_or_the_next_one_and_no_damaged_one(
    look: str, read: str, anew: int, store: SQLStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told that a message or a summary is missing, and to restore a backup; or what of both was read stood
    together."""
    begun = said(anew, 10)
    asked, expected = opened(store, ("", "idle")), opened(store, ("", "next"))
    asked.append(said(40, 200))
    assert asked.compact().changed
    expected.append(begun)
    ask = getattr(store, read)

    def deleted_first(thread: Any, *arguments: Any) -> Any:
        monkeypatch.undo()
        store.delete_idle(thread, -1)
        opened(store, ("", "idle")).append(begun)
        return ask(thread, *arguments)

    monkeypatch.setattr(store, read, deleted_first)
    found = LOOKS[look](opened(store, ("", "idle")))
    if getattr(store, read) is not deleted_first:  # else this look has no use for it
        assert found == LOOKS[look](expected)
