"""Several calls for the same state of one conversation at the same time pay for one summary."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from building import conversation
from contextfold import Compactor, Policy, SummaryFailed

WINDOW = 4_000
TOGETHER = 3
SUMMARY = "The agent reads the modules one after the other to find out why invoices are late."


class Summarizer:
    """Answers when it is told to, or fails; knows how often it was asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked = 0
        self.may_answer = threading.Event()
        self.error = error

    def until_asked(self) -> None:
        until = time.monotonic() + 20
        while not self.asked and time.monotonic() < until:
            time.sleep(0.01)

    def __call__(self, prompt: str) -> str:
        self.asked += 1
        assert self.may_answer.wait(20)
        if self.error is not None:
            raise self.error
        return SUMMARY


Talks = list[list[Any]]


def in_threads(compactor: Compactor, talks: Talks, meanwhile: Callable[[], None]) -> list[Any]:
    with ThreadPoolExecutor(len(talks)) as pool:
        made = [pool.submit(compactor.compact, messages) for messages in talks]
        meanwhile()
        return [one.exception() or one.result() for one in made]


def in_tasks(compactor: Compactor, talks: Talks, meanwhile: Callable[[], None]) -> list[Any]:
    async def together() -> list[Any]:
        calls = map(compactor.acompact, talks)
        return (await asyncio.gather(*calls, asyncio.to_thread(meanwhile), return_exceptions=True))[:-1]

    return asyncio.run(together())


def on_loops(compactor: Compactor, talks: Talks, meanwhile: Callable[[], None]) -> list[Any]:
    with ThreadPoolExecutor(len(talks)) as pool:
        made = [pool.submit(asyncio.run, compactor.acompact(messages)) for messages in talks]
        meanwhile()
        return [one.exception() or one.result() for one in made]


WAYS = pytest.mark.parametrize("way", [in_threads, in_tasks, on_loops])


def long_enough(summarizer: Summarizer) -> Callable[[], None]:
    """Lets the summarizer answer once it was asked and the others had the time to ask it, too."""

    def wait() -> None:
        summarizer.until_asked()
        time.sleep(0.3)
        summarizer.may_answer.set()

    return wait


@WAYS
def test_one_summary_serves_all(way: Callable[..., list[Any]]) -> None:
    summarizer = Summarizer()
    compactor = Compactor(window=WINDOW, summarizer=summarizer)
    results = way(compactor, [conversation(40)] * TOGETHER, long_enough(summarizer))
    assert summarizer.asked == 1
    assert all(result.messages == results[0].messages for result in results)
    assert SUMMARY in str(results[0].messages)


@WAYS
def test_branches_that_begin_alike_share_a_summary(way: Callable[..., list[Any]]) -> None:
    summarizer = Summarizer()
    compactor = Compactor(window=WINDOW, summarizer=summarizer)
    newest = [{"role": "user", "content": f"Have a look at branch {n}."} for n in range(TOGETHER)]
    talks = [[*conversation(40), message] for message in newest]  # equal copies, as read from a database
    results = way(compactor, talks, long_enough(summarizer))
    assert summarizer.asked == 1
    assert [result.messages[-1] for result in results] == newest
    assert all(SUMMARY in str(result.messages) for result in results)


@WAYS
def test_a_failure_is_paid_for_once_too(way: Callable[..., list[Any]]) -> None:
    summarizer = Summarizer(ValueError("it cannot be summarized"))
    policy = Policy(on_failure="raise", summary={"retries_on_failure": 0})
    compactor = Compactor(window=WINDOW, summarizer=summarizer, policy=policy)
    results = way(compactor, [conversation(40)] * TOGETHER, long_enough(summarizer))
    assert summarizer.asked == 1
    assert [type(result) for result in results] == [ValueError] * TOGETHER


@WAYS
def test_a_view_that_still_fits_goes_on_for_all_where_the_summary_fails(way: Callable[..., list[Any]]) -> None:
    summarizer = Summarizer(SummaryFailed("it cannot be summarized"))
    policy = Policy(trigger=("fraction", 0.5), summary={"retries_on_failure": 0})
    compactor = Compactor(window=16_000, summarizer=summarizer, policy=policy)
    messages = conversation(70)
    results = way(compactor, [messages] * TOGETHER, long_enough(summarizer))
    assert summarizer.asked == 1
    assert all(result.messages == messages for result in results)


@pytest.mark.parametrize("way", [in_threads, in_tasks])
def test_a_summary_that_is_prepared_beside_several_calls_is_paid_for_once(way: Callable[..., list[Any]]) -> None:
    summarizer = Summarizer()
    compactor = Compactor(
        window=16_000, summarizer=summarizer, policy=Policy(background=True, trigger=("fraction", 0.9))
    )
    messages = conversation(70)
    results = way(compactor, [messages] * TOGETHER, long_enough(summarizer))
    assert all(result.messages == messages for result in results)
    assert summarizer.asked == 1


def test_conversations_that_say_something_else_do_not_wait_for_each_other() -> None:
    both = threading.Barrier(2, timeout=20)

    def summarizer(prompt: str) -> str:
        both.wait()  # broken, and so a failure, unless both are asked at the same time
        return SUMMARY

    compactor = Compactor(window=WINDOW, summarizer=summarizer, policy=Policy(fallback=None))
    talks = [conversation(40), conversation(40, words=126)]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(compactor.compact, talks))
    assert all(SUMMARY in str(result.messages) for result in results)


def test_what_one_call_gives_up_another_makes() -> None:
    asked, was_asked = 0, asyncio.Event()

    async def summarizer(prompt: str) -> str:
        nonlocal asked
        asked += 1
        was_asked.set()
        await asyncio.sleep(20 if asked == 1 else 0)
        return SUMMARY

    async def together() -> Any:
        compactor, messages = Compactor(window=WINDOW, summarizer=summarizer), conversation(40)
        first = asyncio.create_task(compactor.acompact(messages))
        await asyncio.wait_for(was_asked.wait(), 20)
        second = asyncio.create_task(compactor.acompact(messages))
        await asyncio.sleep(0.2)
        first.cancel()
        return await second

    result = asyncio.run(together())
    assert asked == 2
    assert SUMMARY in str(result.messages)


def test_a_call_that_waits_for_another_one_hears_that_it_is_to_stop() -> None:
    summarizer, token = Summarizer(), threading.Event()
    compactor, messages = Compactor(window=WINDOW, summarizer=summarizer), conversation(40)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(compactor.compact, messages)
        summarizer.until_asked()
        second = pool.submit(compactor.compact, messages, cancel=token)
        time.sleep(0.2)
        token.set()
        error = second.exception(5)
        summarizer.may_answer.set()
        assert SUMMARY in str(first.result().messages)
    assert type(error).__name__ == "Cancelled"
    assert summarizer.asked == 1


@pytest.mark.parametrize("background", [False, True], ids=["made", "prepared"])
def test_blocking_code_on_an_event_loop_waits_for_no_task_of_that_loop(background: bool) -> None:
    """It holds up the loop, so the task would not end before it: both would stand still for minutes, or for good."""
    asked: list[str] = []
    let = asyncio.Event()

    async def summarizer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            await let.wait()
        return SUMMARY

    policy = Policy(background=background, summary={"total_seconds": 20})
    compactor = Compactor(window=WINDOW, summarizer=summarizer, policy=policy)
    due = next(n for n in range(1, 41) if compactor.due(conversation(n)) is not None)
    talk = conversation(due - 1 if background else 40)

    async def both() -> tuple[Any, float]:
        task = asyncio.create_task(compactor.acompact(talk))
        while not asked:
            await asyncio.sleep(0.01)
            if background and task.done():  # near the trigger, one is prepared as soon as it has grown
                talk.append({"role": "user", "content": "Go on."})
                await compactor.acompact(talk)
        begun = time.monotonic()
        blocking = compactor.compact(talk, force=background)
        took = time.monotonic() - begun
        let.set()
        await task
        return blocking, took

    blocking, took = asyncio.run(both())
    assert took < 10
    assert SUMMARY in str(blocking.messages)
    assert len(asked) == 2
