"""The first view of an import of 20,000 messages, with the sizes that users have: it tells how far it is, can be
interrupted, and goes on. The quick runs are the same with a thirteenth of everything.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from conversations import said

from contextfold import Cancelled, Compactor, Event
from contextfold.store.sql import SQLStore

WORDS = 40
SHARE = 13


@pytest.fixture(params=[20_000 // SHARE, pytest.param(20_000, marks=pytest.mark.strict)])
def count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, sqlite_store: SQLStore) -> int:
    """Messages that were imported into the thread."""
    if request.param < 20_000:
        monkeypatch.setattr("contextfold.store.reading.PAGE", 2_000 // SHARE)
        monkeypatch.setattr("contextfold.store.settling.PAID_MESSAGES", 5_000 // SHARE)
    Compactor().session("thread", sqlite_store).append(said(request.param, WORDS))
    return int(request.param)


class Told:
    """Events; ``stop`` is set when the given one comes for the given time."""

    def __init__(self, name: str = "", times: int = 0) -> None:
        self.events: list[Event] = []
        self.stop = threading.Event()
        self._wanted = name, times

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        name, times = self._wanted
        if len(self.named(name)) == times > 0:
            self.stop.set()

    def named(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]

    @property
    def steps(self) -> list[int]:
        """How far it was, in messages."""
        return [event.data["messages"] for event in self.named("session_progress")]


class Writer:
    def __init__(self) -> None:
        self.requests = 0

    def __call__(self, prompt: str) -> str:
        self.requests += 1
        return f"A summary of what was said, written as number {self.requests}."


def opened(store: Any, told: Told, summarizer: Any = None) -> Any:
    return Compactor(window=32_000, summarizer=summarizer, on_event=told).session("thread", store)


def whole(session: Any, view: Any, count: int) -> None:
    assert view[-1] == said(1, WORDS, count - 1)[0]
    assert len(view) < 300
    assert sum(session.ledger().counts().values()) == count
    assert not session.state().is_summarizing


def test_an_import_says_how_far_it_is_can_be_interrupted_and_reads_on(sqlite_store: SQLStore, count: int) -> None:
    told = Told("session_progress", 4)
    session = opened(sqlite_store, told)
    with pytest.raises(Cancelled):
        session.view(cancel=told.stop)
    reached = told.steps[-1]
    assert len(told.steps) == 4
    assert all(earlier < later for earlier, later in itertools.pairwise(told.steps))
    assert {event.data["total"] for event in told.named("session_progress")} == {count}
    assert not session.state().is_summarizing
    told.events.clear()
    whole(session, session.view(), count)
    assert min(told.steps) > reached, "what was read is not read again"
    assert len(session.summaries()) == 1


def test_an_import_is_stopped_in_the_middle_of_a_pass_as_well(sqlite_store: SQLStore, count: int) -> None:
    told = Told("compaction_started", 1)
    session = opened(sqlite_store, told)
    with pytest.raises(Cancelled):
        session.view(cancel=told.stop)
    assert told.named("compaction_finished") == []
    assert session.summaries() == []
    assert not session.state().is_summarizing


def test_what_a_model_wrote_before_an_import_was_interrupted_is_not_paid_for_again(
    sqlite_store: SQLStore, count: int
) -> None:
    writer, told = Writer(), Told("compaction_finished", 2)
    session = opened(sqlite_store, told, writer)
    with pytest.raises(Cancelled):
        session.view(cancel=told.stop)
    done, paid = session.summaries(), writer.requests
    reached = session.state().summary_until_index
    assert done
    assert 0 < reached < count
    other = opened(sqlite_store, Told(), writer)
    whole(other, other.view(), count)
    after = other.summaries()
    assert [one.id for one in after[: len(done)]] == [one.id for one in done]
    assert all(one.covers > reached for one in after[len(done) :])
    assert writer.requests - paid < 0.8 * writer.requests
