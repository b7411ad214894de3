"""The first view of many imported messages: how far it is, interrupting it, going on. Options read for each call."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from conversations import said

from contextfold import Cancelled, Compactor, Event
from contextfold.store.sql import SQLStore
from contextfold.testing.dict_store import DictStore

COUNT = 900
"""Messages of an import: three pages of the size that is set here."""


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextfold.store.reading.PAGE", 300)
    monkeypatch.setattr("contextfold.store.settling.ENOUGH_MESSAGES", 0)


def imported(store: Any) -> None:
    Compactor().session("thread", store).append(said(COUNT, 40))


def opened(store: Any, on_event: Any = None, *, window: int = 6_000, **options: Any) -> Any:
    return Compactor(window=window, on_event=on_event).session("thread", store, **options)


def test_the_first_view_of_many_messages_says_how_far_it_is(sqlite_store: SQLStore) -> None:
    told: list[Event] = []
    imported(sqlite_store)
    session = opened(sqlite_store, told.append)
    view = session.view()
    steps = [event.data["messages"] for event in told if event.name == "session_progress"]
    assert {event.data["total"] for event in told if event.name == "session_progress"} == {COUNT}
    assert steps == sorted(steps)
    assert len(set(steps)) >= 2
    assert all(0 < step < COUNT for step in steps)
    assert view[-1] == said(COUNT, 40)[-1]
    assert sum(session.ledger().counts().values()) == COUNT


def test_it_can_be_interrupted_and_goes_on_behind_what_is_done(sqlite_store: SQLStore) -> None:
    imported(sqlite_store)
    stop, told = threading.Event(), []

    def on_event(event: Event) -> None:
        told.append(event.name)
        if event.name == "context_built" or told.count("compaction_finished") == 1:
            stop.set()

    session = opened(sqlite_store, on_event)
    with pytest.raises(Cancelled):
        session.view(cancel=stop)
    done = session.summaries()
    assert len(done) > 0
    assert session.state().summary_id is not None
    assert not session.state().is_summarizing
    reached = session.state().summary_until_index
    assert 0 < reached < COUNT
    view = opened(sqlite_store).view()
    after = session.summaries()
    assert [one.id for one in after[: len(done)]] == [one.id for one in done]  # nothing is made again
    assert all(one.covers > reached for one in after[len(done) :])
    assert view[-1] == said(COUNT, 40)[-1]
    assert sum(session.ledger().counts().values()) == COUNT


def test_a_task_that_is_cancelled_leaves_what_is_done_and_no_lease(sqlite_store: SQLStore) -> None:
    imported(sqlite_store)
    first = asyncio.Event()

    async def interrupted() -> None:
        loop = asyncio.get_running_loop()

        def on_event(event: Event) -> None:
            if event.name == "compaction_finished":
                loop.call_soon_threadsafe(first.set)

        session = opened(sqlite_store, on_event)
        task = loop.create_task(session.aview())
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    session = opened(sqlite_store)
    for _ in range(200):
        if not session.state().is_summarizing:
            break
        threading.Event().wait(0.02)
    assert not session.state().is_summarizing
    assert session.view()[-1] == said(COUNT, 40)[-1]


# ---- options of a user ----


def test_options_of_a_user_are_read_for_each_call_and_not_before() -> None:
    configured: dict[str, Any] = {}
    asked: list[str] = []

    def get_optimization_config(user: str) -> dict[str, Any]:
        asked.append(user)
        return configured

    session = opened(DictStore(), window=64_000, user="anna", get_optimization_config=get_optimization_config)
    assert asked == []  # it may ask a database, which making a session on an event loop must not
    session.append(said(30, 200))
    assert session.due() is None
    configured |= {"upper_threshold": 4_000, "lower_threshold": 2_000}
    assert session.due() == "tokens:4000"
    assert session.options.upper_threshold == 4_000
    configured["enable_context_optimization"] = False
    assert len(session.view()) == 30
    configured["enable_context_optimization"] = True
    assert len(session.view()) < 30
    assert set(asked) == {"anna"}


def test_options_of_a_user_may_come_from_async_code() -> None:
    async def get_optimization_config(user: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"upper_threshold": 4_000, "lower_threshold": 2_000}

    async def due() -> str | None:
        session = opened(DictStore(), window=64_000, user="anna", get_optimization_config=get_optimization_config)
        await session.aappend(said(30, 200))
        return await session.adue()

    assert asyncio.run(due()) == "tokens:4000"


def test_a_wrong_option_of_a_user_is_said_by_the_call_that_reads_it() -> None:
    session = opened(
        DictStore(), window=64_000, user="anna", get_optimization_config=lambda user: {"upper_treshold": 1}
    )
    session.append(said(2, 20))
    with pytest.raises(ValueError, match="there is no such option; there are: upper_threshold"):
        session.view()
