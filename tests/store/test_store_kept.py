"""A pass over a session that goes on reads what is new; what it read before is kept, within bounds."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
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


def passes_of(session: Session, reads: list[int]) -> Iterator[tuple[int, int, int]]:
    """The messages that were there, that are in the view, and that were read, for each view that made a pass."""
    for number, message in enumerate(turns(TURNS), 1):
        session.append([message])
        reads.clear()
        view = session.view()
        if view.result.changed:
            yield number, len(view), sum(reads)


def test_a_pass_reads_no_more_than_its_view(session: Callable[..., Session], reads: list[int]) -> None:
    """However long the session is: the first one reads the messages once, and the others what came since."""
    made = list(passes_of(session(window=4_000), reads))
    assert len(made) > 3
    for number, shown, read in made[1:]:
        assert read <= 2 * shown + 8, f"of {number} messages, of which the view has {shown}"


@pytest.mark.parametrize("background", [False, True])
def test_what_is_kept_makes_no_difference(tmp_path: Any, background: bool) -> None:
    """One object for all turns makes the records that a fresh one for each turn makes, folded or not."""
    views = []
    for name in ("one", "fresh"):
        store = open_store(f"sqlite:///{tmp_path}/{name}.db")
        compactor = Compactor(window=4_000, policy=Policy(background=background))
        known = compactor.session("thread", store)
        seen = []
        for message in turns(TURNS):
            current = known if name == "one" else compactor.session("thread", store)
            current.append([message])
            seen.append(list(current.view()))
            current.join()
        views.append(seen)
        store.close()
    assert views[0] == views[1]


def test_a_history_that_is_folded_next_is_not_kept(
    session: Callable[..., Session], reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "HORIZON", 20)
    known = session(window=4_000)
    for _ in passes_of(known, reads):
        held = known._flow.memory._kept.get("history")
        assert held is None or len(held.history.messages) < 60


def test_all_sessions_of_a_process_keep_no_more_than_the_limit(
    session: Callable[..., Session], reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was used longest ago gives way; one that is dropped gives back what it kept."""
    kept._HELD.clear()
    sessions = [session(f"thread {n}", window=4_000) for n in range(6)]
    for one in sessions:
        list(passes_of(one, reads))
    assert all(one._flow.memory._kept for one in sessions)
    (most,) = set(kept._HELD.values())
    monkeypatch.setattr(kept, "MOST_TOKENS", 6 * most)
    list(passes_of(sessions[0], reads))  # it is twice as long now
    assert sum(kept._HELD.values()) <= 6 * most
    holding = [bool(one._flow.memory._kept) for one in sessions]
    assert (holding[0], holding[1], holding[-1]) == (True, False, True)
    assert holding[1:] == sorted(holding[1:])
    held = weakref.ref(sessions[0]._flow.memory._kept["history"].history)
    del one, sessions[:]
    gc.collect()
    assert held() is None
    assert not kept._HELD
