"""Summaries that are prepared while the conversation goes on, leases, and who wins when two want to summarize."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from conversations import said

from contextfold import Compactor, Event
from contextfold.calls.background import Background
from contextfold.errors import StoreUnavailable, SummaryFailed
from contextfold.inspector.stored import row
from contextfold.ports import AsyncPorts, SyncPorts
from contextfold.store import Session
from contextfold.store.lease import Keeper, Lease, keeper
from contextfold.store.options import LONGEST_LEASE
from contextfold.store.sql import SQLStore
from contextfold.store.values import Thread
from contextfold.testing import FailingSummarizer
from contextfold.testing.dict_store import DictStore

OPTIONS = {"upper_threshold": 4_000, "lower_threshold": 2_000, "min_messages": 4, "min_new_messages": 2}
SOFT = {**OPTIONS, "background": True, "soft_ratio": 0.5}
ONCE = {"min_new_messages": 100}
"""After the first summary none is worthwhile: else the next one is prepared as soon as that one is in force."""

PATIENCE = 60
"""Seconds after which a test says that something hangs. Nothing here promises to be fast."""


class DriverError(Exception):
    """What the database of someone's own tables raises; none of ours."""


class Gate:
    """A summarizer that waits until it is let through, and counts."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, prompt: str) -> str:
        self.calls += 1
        self.entered.set()
        assert self.opened.wait(PATIENCE)
        return f"A summary, the {self.calls}. of its kind."


class Told:
    """Events by name."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def names(self) -> list[str]:
        return [event.name for event in self.events]


def opened(store: Any, summarizer: Any = None, told: Told | None = None, **options: Any) -> Session:
    compactor = Compactor(window=64_000, summarizer=summarizer, on_event=told)
    return compactor.session("thread", store, options={**SOFT, **options})


def test_a_summary_is_prepared_from_the_soft_threshold_on_and_used_at_the_hard_one(store: SQLStore) -> None:
    """The foreground does not wait for it, and asks for no other."""
    gate, told = Gate(), Told()
    session = opened(store, gate, told, **ONCE)
    session.append(said(12, 240))
    assert session.view() == said(12, 240)
    assert gate.entered.wait(PATIENCE)
    session.append(said(2, 240, 12))
    assert session.view() == said(14, 240)  # while the summary is being made
    assert session.state().is_summarizing
    gate.opened.set()
    session.join()
    assert session.view() == said(14, 240)  # it is there, and not needed yet
    assert session.summaries()[0].used_at is None
    session.append(said(8, 240, 14))
    view = session.view()
    assert "A summary, the 1. of its kind." in str(view)
    assert view[-8:] == said(8, 240, 14)
    assert gate.calls == 1
    (summary,) = session.summaries()
    assert (summary.trigger, summary.reason, summary.id) == ("background", "soft threshold", session.state().summary_id)
    assert {"summary_prepared", "summary_adopted"} <= set(told.names())


def test_another_process_may_use_what_was_prepared(store: SQLStore) -> None:
    session = opened(store)
    session.append(said(12, 240))
    session.view()
    session.join()
    session.append(said(8, 240, 12))
    other = opened(store, FailingSummarizer(), background=False)
    other.view()
    assert other.state().summary_id == session.summaries()[0].id


def test_a_prepared_summary_whose_messages_changed_is_discarded(store: SQLStore) -> None:
    told = Told()
    session = opened(store, None, told)
    session.append(said(12, 240))
    session.view()
    session.join()
    (prepared,) = session.summaries()
    with store.database.write() as connection:
        connection.exec_driver_sql(
            'UPDATE session_messages SET payload = \'{"role":"user","content":"changed"}\' WHERE sequence = 3'
        )
    session.append(said(8, 240, 12))
    opened(store, None, told, background=False).view()
    assert session.state().summary_id not in (None, prepared.id)
    discarded = [event for event in told.events if event.name == "summary_discarded"]
    assert "are not the ones it was made from" in discarded[0].message


def test_a_late_result_is_discarded(store: SQLStore) -> None:
    """The session was compacted and that undone meanwhile; what was made from the older state is not used."""
    gate, told = Gate(), Told()
    slow = opened(store, gate, told, background=False)
    slow.append(said(30, 240))
    worker = threading.Thread(target=slow.compact)
    worker.start()
    assert gate.entered.wait(PATIENCE)
    with store.database.write() as connection:  # as if the lease had expired, and another worker had it
        connection.exec_driver_sql("UPDATE agent_sessions SET lease_until = 0, lease_owner = 'gone'")
    fast = opened(store, background=False)
    assert fast.compact().changed
    in_force = fast.state().summary_id
    gate.opened.set()
    worker.join()
    assert "summary_discarded" in told.names()
    assert fast.state().summary_id == in_force or slow.summaries()[-1].parent_id == in_force


def note_refusals(store: SQLStore, method: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads to whom this method of the store said no, in a list that grows."""
    answer = getattr(store, method)
    refused: list[int] = []

    def answered(*arguments: Any) -> bool:
        said: bool = answer(*arguments)
        if not said:
            refused.append(threading.get_ident())
        return said

    monkeypatch.setattr(store, method, answered)
    return refused


def test_two_that_ask_at_once_make_one_summary(store: SQLStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the threshold and on demand: whoever comes second waits, and takes what the first one made."""
    gate, refused = Gate(), note_refusals(store, "acquire_lease", monkeypatch)
    sessions = [opened(store, gate, background=False) for _ in range(3)]
    sessions[0].append(said(30, 240))
    views: list[Any] = []
    first = threading.Thread(target=lambda: views.append(sessions[0].view()))
    first.start()
    assert gate.entered.wait(PATIENCE)
    second = threading.Thread(target=lambda: views.append(sessions[1].view()))
    third = threading.Thread(target=lambda: views.append(sessions[2].compact().messages))
    second.start()
    third.start()
    wait_for(lambda: len(set(refused)) == 2)
    gate.opened.set()
    for thread in (first, second, third):
        thread.join()
    assert gate.calls == 1
    assert views[0] == views[1] == views[2]


def test_a_crashed_worker_blocks_nobody_for_longer_than_its_lease(store: SQLStore) -> None:
    session = opened(store, background=False)
    session.append(said(30, 240))
    start = time.monotonic()
    assert store.acquire_lease(session.thread, "crashed", 0.4)
    session.view()
    assert session.state().summary_id is not None
    assert 0.39 < time.monotonic() - start < PATIENCE


@pytest.fixture(params=["sqlite", "postgresql", "dictionaries"])
def clocked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, list[float]]]:
    """A store of each kind, and its clock."""
    now = [1_000_000.0]
    if request.param == "dictionaries":
        yield DictStore(lambda: now[0]), now
        return
    file = f"sqlite:///{tmp_path}/sessions.db"
    url = file if request.param == "sqlite" else request.getfixturevalue("new_postgres")()
    with closing(SQLStore(url, clock=lambda: now[0])) as store:
        yield store, now


@pytest.mark.parametrize("back", [121, 3_600, 900_000])
def test_a_lease_ends_where_the_clock_is_set_back(clocked: tuple[Any, list[float]], back: float) -> None:
    """It lived until the old time came again, and so long no summary of its session was made."""
    store, now = clocked
    session = opened(store)
    thread = session.thread
    session.append(said(12, 240))
    assert store.acquire_lease(thread, "dead", 60)
    now[0] -= back
    assert not store.load(thread).is_summarizing
    session.view()
    session.join(PATIENCE)
    assert len(session.summaries()) == 1
    assert store.acquire_lease(thread, "next", 60)
    assert not store.renew_lease(thread, "dead", 60)
    assert not store.acquire_lease(thread, "third", 60)


def test_a_clock_that_is_corrected_ends_no_lease_and_a_living_worker_has_its_own_at_any_time(
    clocked: tuple[Any, list[float]],
) -> None:
    store, now = clocked
    session = opened(store)
    thread = session.thread
    session.append(said(2, 10))
    assert store.acquire_lease(thread, "one", 60)
    for back, seconds in ((0, 60), (1, 60), (59, 30), (5_000, 60)):
        now[0] -= back
        if back < seconds:
            assert not store.acquire_lease(thread, "two", 60)
        assert store.renew_lease(thread, "one", seconds)
        assert store.load(thread).is_summarizing
        assert not store.acquire_lease(thread, "two", 60)
    store.release_lease(thread, "one")
    assert store.load(thread).lease_seconds is None


def test_a_session_whose_lease_the_clock_ended_may_go_and_its_newest_message_be_taken_back(url: str) -> None:
    now = [1_000_000.0]
    with closing(SQLStore(url, clock=lambda: now[0])) as store:
        thread = Thread("", "thread")
        session = opened(store)
        session.append(said(2, 10))
        assert store.acquire_lease(thread, "dead", 60)
        assert not store.delete_newest(thread, 2, 0)
        assert not store.delete_idle(thread, -1e9)
        now[0] -= 3_600
        assert store.delete_newest(thread, 2, 0)
        assert store.delete_idle(thread, -1e9)


def test_below_the_hard_threshold_nobody_waits_for_a_lease(store: SQLStore) -> None:
    session = opened(store)
    session.append(said(12, 240))
    assert store.acquire_lease(session.thread, "somebody", 3_600)
    assert session.view() == said(12, 240)
    session.join(PATIENCE)
    assert session.state().lease_owner == "somebody"
    assert session.summaries() == []


def test_messages_that_arrive_while_a_summary_is_made_survive(store: SQLStore) -> None:
    gate = Gate()
    session = opened(store, gate, background=False)
    session.append(said(30, 240))
    worker = threading.Thread(target=session.view)
    worker.start()
    assert gate.entered.wait(PATIENCE)
    opened(store).append(said(3, 240, 30))
    gate.opened.set()
    worker.join()
    assert session.view()[-3:] == said(3, 240, 30)
    assert session.history() == said(33, 240)


def test_a_summarizer_that_fails_in_the_background_changes_nothing(store: SQLStore) -> None:
    told = Told()
    policy_raises = Compactor(
        window=64_000, policy=_raising(), summarizer=FailingSummarizer(SummaryFailed("no")), on_event=told
    )
    session = policy_raises.session("thread", store, options=SOFT)
    session.append(said(12, 240))
    assert session.view() == said(12, 240)
    session.join()
    assert session.summaries() == []
    assert "background_failed" in told.names()
    assert not session.state().is_summarizing


@pytest.mark.parametrize("error", [StoreUnavailable("away"), DriverError("away")], ids=["our store", "own tables"])
def test_a_store_that_fails_in_the_background_is_told_and_changes_nothing(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, told, lost = DictStore(), Told(), []
    monkeypatch.setattr(threading, "excepthook", lost.append)

    def fails(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr(store, "record_summary", fails)
    session = opened(store, None, told)
    session.append(said(12, 240))
    assert session.view() == said(12, 240)
    session.join()
    assert told.names().count("background_failed") == 1
    assert lost == []
    assert not session.state().is_summarizing


def test_another_worker_is_waited_for_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may write for an hour, and its worker renews the lease all the while."""
    store, waits = DictStore(), []
    session = opened(store, background=False)
    session.append(said(12, 240))
    assert store.acquire_lease(session.thread, "other", 3_600)

    async def sleep(ports: Any, seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 5_000:
            store.release_lease(session.thread, "other")

    monkeypatch.setattr(SyncPorts, "sleep", sleep)
    assert session.compact().changed
    assert waits[:6] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5]
    assert set(waits[6:]) == {0.5}


def _raising() -> Any:
    from contextfold import Policy

    return Policy(on_failure="raise")


def test_a_summary_that_failed_is_not_asked_for_again_before_something_changed(store: SQLStore) -> None:
    failing = FailingSummarizer()
    session = opened(store, failing, background=False)
    session.append(said(30, 240))
    for _ in range(3):
        assert session.view() == said(30, 240)
    asked = len(failing.prompts)
    assert asked >= 1
    session.append(said(1, 240, 30))
    session.view()
    assert len(failing.prompts) == 2 * asked


def test_a_task_prepares_it_in_async_code(url: str) -> None:
    """On asyncio a task of the loop, so that async summarizers run where their clients live; else a thread."""
    store = SQLStore(url)

    async def work(thread: str) -> Any:
        loops: list[int] = []

        async def summarizer(prompt: str) -> str:
            loops.append(threading.get_ident())
            await anyio.sleep(0.01)
            return "A summary by a task."

        compactor = Compactor(window=64_000, summarizer=summarizer)
        session = compactor.session(thread, store, options={**SOFT, **ONCE})
        await session.aappend(said(12, 240))
        assert await session.aview() == said(12, 240)
        await session.ajoin()
        await session.aappend(said(8, 240, 12))
        view = await session.aview()
        assert "A summary by a task." in str(view)
        assert loops == [threading.get_ident()]
        return [one.trigger for one in await session.asummaries()]

    assert anyio.run(work, "asyncio") == ["background"]
    store.close()


@pytest.mark.parametrize("begun_by", ["a thread", "a loop that is closed", "a loop that stands still"])
def test_waiting_in_async_code_is_over_when_the_work_is_wherever_it_runs(begun_by: str, store: SQLStore) -> None:
    """A service has a loop for each request, or begins in blocking code. What no loop runs is not waited for."""
    gate = Gate()
    session = opened(store, gate, **ONCE)
    session.append(said(12, 240))

    async def waiting() -> bool:
        waits = asyncio.create_task(session.ajoin())
        await asyncio.sleep(0.05)
        was_done = waits.done()
        gate.opened.set()
        await asyncio.wait_for(waits, PATIENCE)
        return was_done

    async def begin() -> None:
        await session.aview()
        while not gate.entered.is_set():
            await asyncio.sleep(0.01)

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        if begun_by == "a thread":
            session.view()
            assert gate.entered.wait(PATIENCE)
        elif begun_by == "a loop that is closed":
            asyncio.run(begin())
        else:
            loop.run_until_complete(begin())
        assert asyncio.run(waiting()) is (begun_by != "a thread")
        if begun_by == "a thread":
            assert [one.trigger for one in session.summaries()] == ["background"]
        for task in asyncio.all_tasks(loop):
            task.cancel()
            loop.run_until_complete(asyncio.wait({task}))


def test_background_work_is_one_at_a_time_and_waiting_for_none_is_over_at_once() -> None:
    background = Background(1)
    background.join()
    anyio.run(background.finished, AsyncPorts())
    gate = threading.Event()
    runs: list[int] = []

    async def work(ports: Any) -> None:
        runs.append(1)
        await ports.compute(gate.wait, 10)

    background.start(work, SyncPorts())
    background.start(work, SyncPorts())
    assert background.is_busy
    gate.set()
    background.join()
    assert runs == [1]
    assert not background.is_busy


# ---- leases ----


def dies_while_summarizing(session: Session) -> None:
    """A worker of the session takes its lease, and is never heard of again."""
    assert session.store.acquire_lease(session.thread, "a worker that died", 60)


def test_after_a_worker_died_over_a_summary_one_is_prepared_as_before(url: str) -> None:
    """As soon as its lease has expired: no view has to wait for a summary first."""
    now = [1_000.0]
    store = SQLStore(url, clock=lambda: now[0])
    session = opened(store, **ONCE)
    session.append(said(12, 240))
    dies_while_summarizing(session)
    for seconds, is_prepared in ((59, False), (2, True)):
        now[0] += seconds
        assert session.state().is_summarizing is not is_prepared
        assert session.view() == said(12, 240)
        session.join()
        assert bool(session.summaries()) is is_prepared
    session.append(said(8, 240, 12))
    opened(store, FailingSummarizer(), background=False).view()
    assert session.state().summary_id == session.summaries()[0].id
    store.close()


def test_a_list_of_sessions_says_who_is_being_summarized_now(url: str) -> None:
    now = [1_000.0]
    store = SQLStore(url, clock=lambda: now[0])
    session = opened(store)
    session.append(said(2, 240))
    dies_while_summarizing(session)
    for seconds, at_work in ((59, True), (2, False)):
        now[0] += seconds
        (listed,) = store.sessions()
        shown = row(listed, None, "")
        assert (listed.is_summarizing, shown["busy"], "worker ended" in shown["error"]) == (
            at_work,
            at_work,
            not at_work,
        )
    assert [one.is_summarizing for one in store.idle(1)] == [False]
    store.close()


def test_leases_are_renewed_while_they_are_held(url: str) -> None:
    """A summary that takes longer than a lease lasts is not interfered with."""
    now = [1_000.0]
    gate, store = Gate(), SQLStore(url, clock=lambda: now[0])
    session = opened(store, gate, background=False, lease_seconds=0.3)
    session.append(said(30, 240))
    worker = threading.Thread(target=session.view)
    worker.start()
    assert gate.entered.wait(PATIENCE)
    for _ in range(3):
        now[0] += 0.2  # of the store's clock, so that the lease cannot expire before it is renewed
        wait_for(lambda: (session.state().lease_until or 0.0) >= now[0] + 0.3)
    assert not store.acquire_lease(session.thread, "thief", 60)
    gate.opened.set()
    worker.join()
    assert session.state().summary_id is not None
    store.close()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    assert condition()


class Slow:
    """A store in which asking for the lease takes until it is let go."""

    def __init__(self, store: SQLStore, *, answers_first: bool) -> None:
        self.store = store
        self.answers_first = answers_first
        self.entered, self.let_go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def acquire_lease(self, *arguments: Any) -> bool:
        got = self.store.acquire_lease(*arguments) if self.answers_first else False
        self.entered.set()
        assert self.let_go.wait(PATIENCE)
        return got or self.store.acquire_lease(*arguments)


@pytest.mark.parametrize("answers_first", [True, False])
def test_a_task_that_is_cancelled_while_it_asks_leaves_no_lease_behind(url: str, answers_first: bool) -> None:
    """Whether the database has said yes already, or says so after the task has ended."""
    store = SQLStore(url)
    slow = Slow(store, answers_first=answers_first)
    session = opened(slow, background=False)
    session.append(said(30, 240))

    async def cancelled() -> None:
        task = asyncio.get_running_loop().create_task(session.acompact())
        await anyio.to_thread.run_sync(slow.entered.wait, PATIENCE)
        task.cancel()
        await asyncio.sleep(0.05)
        slow.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    wait_for(lambda: not session.state().is_summarizing)
    time.sleep(0.05)
    assert not session.state().is_summarizing
    assert session.compact().changed
    store.close()


def test_a_task_that_is_cancelled_at_any_moment_leaves_no_lease_behind(sqlite_store: SQLStore) -> None:
    session = opened(sqlite_store, background=False)
    session.append(said(30, 240))

    async def cancelled(seconds: float) -> None:
        task = asyncio.get_running_loop().create_task(session.acompact())
        await asyncio.sleep(seconds)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    for number in range(25):
        asyncio.run(cancelled(number * 0.0012))
        wait_for(lambda: not session.state().is_summarizing)


@pytest.mark.parametrize("away", [StoreUnavailable("away"), DriverError("away")], ids=["our store", "own tables"])
def test_a_keeper_tries_again_while_the_store_is_away_and_gives_up_what_is_lost(away: Exception) -> None:
    answers: list[Any] = [away, True, False]
    said: list[Any] = []

    def renew() -> bool:
        answer = answers[len(said)]
        said.append(answer)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    lease = Lease(renew, 0.06)
    held = Keeper()
    held.hold(lease)
    wait_for(lambda: lease.lost)
    assert said == answers
    held.hold(Lease(lambda: True, 0.05))
    assert keeper() is keeper()


def test_the_longest_lease_is_held_renewed_and_given_back(sqlite_store: SQLStore) -> None:
    session = opened(sqlite_store, background=False, lease_seconds=LONGEST_LEASE)
    session.append(said(30, 240))
    assert session.compact().changed
    assert not session.state().is_summarizing
    held = Lease(lambda: True, LONGEST_LEASE)
    keeper().hold(held)
    other = Lease(lambda: False, 0.01)  # refused, and so known to be lost, if leases are renewed beside the long one
    keeper().hold(other)
    wait_for(lambda: other.lost)
    keeper().drop(held)


def test_a_worker_that_lost_its_lease_says_so(store: SQLStore, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, told = Gate(), Told()
    refused = note_refusals(store, "renew_lease", monkeypatch)
    session = opened(store, gate, told, background=False, lease_seconds=0.3)
    session.append(said(30, 240))
    worker = threading.Thread(target=session.view)
    worker.start()
    assert gate.entered.wait(PATIENCE)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE agent_sessions SET lease_owner = 'thief', lease_until = 0")
    wait_for(lambda: len(refused) == 1)
    gate.opened.set()
    worker.join()
    assert "lease_lost" in told.names()
    assert session.state().summary_id is not None  # by a second attempt


@pytest.mark.strict
@pytest.mark.parametrize("processes", [2, pytest.param(8, marks=pytest.mark.strict)])
def test_processes_on_one_thread_lose_nothing(processes: int, url: str) -> None:
    """The same as ``benchmarks/store_stress.py together`` does for 2,000 operations."""
    report = stress("together", url, "--processes", str(processes), "--operations", "120")
    assert report["problems"] == []
    assert report["operations"] == 120
    assert report["overlapping_calls"] == report["lost"] == report["duplicates"] == 0
    assert report["summary_calls"] > 0


@pytest.mark.strict
def test_a_killed_process_loses_nothing_that_was_acknowledged(url: str) -> None:
    """12 of the 200 kills of ``benchmarks/store_stress.py kill``."""
    report = stress("kill", url, "--times", "12", "--seed", "7")
    assert report["problems"] == []
    assert report["kills"] == 12
    assert report["acknowledged"] > 0


def stress(*arguments: str) -> Any:
    import json
    import subprocess
    import sys
    from pathlib import Path

    script = Path(__file__).resolve().parents[2] / "benchmarks" / "store_stress.py"
    done = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_turn_waits_for_a_model_that_is_silent_until_the_window_is_full() -> None:
    """It is asked beside the conversation alone, for each turn once at most; then the built-in summarizer stands in."""
    asked: list[threading.Thread] = []
    entered, ended = threading.Event(), threading.Event()

    def silent(prompt: str) -> str:
        asked.append(threading.current_thread())
        entered.set()
        assert ended.wait(PATIENCE)
        raise SummaryFailed("silent")

    told = Told()
    compactor = Compactor(window=16_000, summarizer=silent, on_event=told)
    session = compactor.session("thread", DictStore(), options=SOFT)
    session.append(said(6, 500))
    session.view()
    assert entered.wait(PATIENCE)
    session.append(said(6, 500, 6))
    session.view()  # one is due, and does not wait for the other
    assert len(asked) == 1
    ended.set()
    turns = 0
    while not session.summaries():
        asked[-1].join(PATIENCE)
        session.append(said(2, 500, 12 + 2 * turns))
        turns += 1
        session.view()
    assert 5 < turns < 20
    assert threading.current_thread() not in asked
    assert len(asked) <= turns + 1
    assert told.names().count("fallback_used") == 1


def test_no_turn_waits_for_a_model_that_is_silent_for_another_worker() -> None:
    """Of two that serve a session one asks a model that gives no answer, and the other waited as long for its lease."""
    entered, ended = threading.Event(), threading.Event()

    def silent(prompt: str) -> str:
        entered.set()
        assert ended.wait(PATIENCE)
        return "A summary that came late."

    def waits(event: Event) -> None:
        if event.name == "session_progress":
            ended.set()

    store = DictStore()
    first, second = (
        Compactor(window=16_000, summarizer=silent, on_event=told).session("thread", store, options=SOFT)
        for told in (None, waits)
    )
    first.append(said(6, 500))
    first.view()
    assert entered.wait(PATIENCE)
    first.append(said(6, 500, 6))
    assert len(second.view()) == 12
    assert not ended.is_set()
    ended.set()
    first.join()
    second.append(said(2, 500, 12))
    assert len(second.view()) < 12


def test_a_pass_that_is_not_worth_it_yet_is_no_failure_of_the_model() -> None:
    """The built-in summarizer stood in for a model that had not been asked."""
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "What the model wrote."

    def read(number: int, words: int) -> list[dict[str, Any]]:
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"n": {number}}}'}}
        text = " ".join(f"word{number}x{n}" for n in range(words))
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        ]

    told = Told()
    session = Compactor(window=16_000, summarizer=model, on_event=told).session(
        "thread", DictStore(), options={"background": True}
    )
    session.append([{"role": "user", "content": "Read all pages."}])
    for number in range(12):
        session.append(read(number, (300, 600, 100, 1_500)[number % 4]))
        session.view()
        session._flow.background.join(PATIENCE)
    assert "the newest messages are large and not read yet" in str(told.events)
    assert asked
    assert "fallback_used" not in told.names()
