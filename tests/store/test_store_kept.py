"""A pass over a session that goes on reads what is new; what it read before is kept, within bounds."""

from __future__ import annotations

import copy
import gc
import pickle
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conversations import turns

from contextfold import Compactor, Policy
from contextfold.store import Session, kept, loading, open_store
from contextfold.store.sql import SQLStore
from contextfold.store.values import StoredMessage, Thread

TURNS = 24


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages the database was asked for, by each request."""
    asked: list[int] = []
    real = SQLStore.read_messages

    def counted(self: SQLStore, thread: Thread, ranges: Sequence[range]) -> list[StoredMessage]:
        asked.append(sum(map(len, ranges)))
        return real(self, thread, ranges)

    monkeypatch.setattr(SQLStore, "read_messages", counted)
    return asked


def always(session: Session) -> Callable[[], Session]:
    return lambda: session


def passes_of(opened: Callable[[], Session], reads: list[int]) -> Iterator[tuple[int, int, int]]:
    """The messages that were there, that are in the view, and that were read, for each view that made a pass."""
    for number, message in enumerate(turns(TURNS), 1):
        session = opened()
        session.append([message])
        reads.clear()
        view = session.view()
        if view.result.changed:
            yield number, len(view), sum(reads)


def held_of(session: Session) -> kept.Kept | None:
    memory = session._flow.memory
    return memory.memory._kept.get(memory.key)


@pytest.mark.parametrize("is_opened_again", [False, True])
@pytest.mark.parametrize("method", ["estimate", "tiktoken"])
def test_a_pass_reads_no_more_than_its_view(
    sqlite_store: SQLStore, reads: list[int], method: str, is_opened_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the session is: the first one reads the messages once, and the others what came since. A server that
    opens it for each request has other objects, which stand for the same one."""
    monkeypatch.setattr("contextfold.store.options.tiktoken_counter", lambda name: lambda text: len(text) // 3)
    compactor = Compactor(window=4_000)

    def opened() -> Session:
        return compactor.session("thread", sqlite_store, options={"token_calculation_method": method})

    known = opened()
    made = list(passes_of(opened if is_opened_again else always(known), reads))
    assert len(made) > 3
    for number, shown, read in made[1:]:
        assert read <= (3 if is_opened_again else 2) * shown + 8, f"of {number} messages, of which the view has {shown}"


@pytest.mark.parametrize("background", [False, True])
def test_what_is_kept_makes_no_difference(tmp_path: Any, background: bool) -> None:
    """One object for all turns, and one compactor that opens the session for each, make the records that a fresh one
    makes, folded or not."""
    views = []
    for name in ("one", "opened again", "fresh"):
        store = open_store(f"sqlite:///{tmp_path}/{name}.db")
        compactor = Compactor(window=4_000, policy=Policy(background=background))
        known = compactor.session("thread", store)
        seen = []
        for message in turns(TURNS):
            compactor = copy.copy(compactor) if name == "fresh" else compactor
            current = known if name == "one" else compactor.session("thread", store)
            current.append([message])
            seen.append(list(current.view()))
            current.join()
        views.append(seen)
        store.close()
    assert views[0] == views[1] == views[2]


def test_a_history_that_is_folded_next_is_not_kept(
    session: Callable[..., Session], reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "HORIZON", 20)
    known = session(window=4_000)
    for _ in passes_of(always(known), reads):
        held = held_of(known)
        assert held is None or len(held.history.messages) < 60


def test_all_sessions_of_a_process_keep_no_more_than_the_limit(
    session: Callable[..., Session], reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was used longest ago gives way; with its compactor all that it kept is given back."""
    kept._HELD.clear()
    sessions = [session(f"thread {n}", window=4_000) for n in range(6)]
    for one in sessions:
        list(passes_of(always(one), reads))
    assert all(map(held_of, sessions))
    (most,) = set(kept._HELD.values())
    monkeypatch.setattr(kept, "MOST_TOKENS", 6 * most)
    list(passes_of(always(sessions[0]), reads))  # it is twice as long now
    assert sum(kept._HELD.values()) <= 6 * most
    holding = [held_of(one) is not None for one in sessions]
    assert (holding[0], holding[1], holding[-1]) == (True, False, True)
    assert holding[1:] == sorted(holding[1:])
    held = weakref.ref(held_of(sessions[0]).history)
    del one, sessions[:]
    gc.collect()
    assert held() is None
    last = session("thread 6", window=4_000)
    list(passes_of(always(last), reads))
    assert list(kept._HELD.values()) == [most]


@pytest.mark.parametrize("remembered", [0, 2])
def test_a_compactor_keeps_of_no_more_sessions_than_it_remembers(
    sqlite_store: SQLStore, reads: list[int], remembered: int
) -> None:
    compactor = Compactor(window=4_000, remembered=remembered)
    sessions = [compactor.session(f"thread {n}", sqlite_store) for n in range(4)]
    for one in sessions:
        list(passes_of(always(one), reads))
    assert [held_of(one) is not None for one in sessions] == [n >= 4 - remembered for n in range(4)]


def test_sessions_of_equal_names_on_other_stores_have_nothing_in_common(tmp_path: Any, reads: list[int]) -> None:
    """Nor have a copy of the compactor, and the sessions that are opened with it."""
    compactor = Compactor(window=4_000)
    first, second = (open_store(f"sqlite:///{tmp_path}/{name}.db") for name in "ab")
    list(passes_of(lambda: compactor.session("thread", first), reads))
    assert held_of(compactor.session("thread", first)) is not None
    assert held_of(compactor.session("thread", second)) is None
    for copied in (copy.copy(compactor), copy.deepcopy(compactor), pickle.loads(pickle.dumps(compactor))):
        assert held_of(copied.session("thread", first)) is None


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("is_opened_again", [False, True])
def test_what_was_read_before_a_backup_was_put_in_place_is_read_again(
    is_opened_again: bool, passes: bool, tmp_path: Path
) -> None:
    """It has the same revision, and soon more messages than were there: the view had those that are lost."""
    store = SQLStore(f"sqlite:///{tmp_path}/sessions.db")
    options = {"upper_threshold": 2_000 if passes else None, "lower_threshold": 1_000 if passes else None}
    compactor = Compactor(window=64_000)

    def opened() -> Session:
        return compactor.session("thread", store, options=options)

    one = opened()
    session = opened if is_opened_again else always(one)
    session().append(turns(20))
    assert (session().view().result.summary is not None) == passes
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as there, closing(sqlite3.connect(tmp_path / "b.db")) as to:
        there.backup(to)
    session().append([{"role": "user", "content": f"lost {n}"} for n in range(10)])
    session().view()
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"sessions.db{suffix}").unlink()
    (tmp_path / "b.db").replace(tmp_path / "sessions.db")
    session().append([{"role": "user", "content": f"new {n}"} for n in range(15)])
    for view in (session().view(), session().compact().messages):
        assert "lost" not in str(view)
        assert view[-1] == {"role": "user", "content": "new 14"}
    assert "lost" not in str([summary.text for summary in session().summaries()])
    fresh = Compactor(window=64_000).session("thread", SQLStore(f"sqlite:///{tmp_path}/sessions.db"), options=options)
    assert session().view() == fresh.view()
    store.close()
