"""A pass over large inputs beside an event loop: no step of it keeps the loop from its other work for long.

Two things do: what the loop's own thread computes between two turns, and one call of a function written in C in a
worker thread, since the interpreter changes threads between its own instructions alone. Both are measured in CPU time
of the thread, so a busy machine changes nothing. The collector of cyclic garbage is off meanwhile: what it takes
depends on all that the process holds.

To look at each call takes ten times as long as the pass itself. So what the whole process computes between two turns
of the loop is looked at before: no hold is longer than that. It may be more than any hold on a busy machine, which lets
a worker go on before the loop's thread has its turn; then each call is looked at. That does not see the steps of an
iterator, so what is much too long is taken for what it is.
"""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks.passes import WINDOW, Message, large_inputs, one_output, session, short

from contextfold import Compactor, observe, redaction
from holds import AT_MOST, TRIES, Holds, turns, watched

CLEARLY = 10.0
"""What takes as many times as long in each try holds the loop, whatever else the machine does."""


@contextmanager
def soon() -> Iterator[None]:
    """A thread that asks for the interpreter has it as soon as no call of a C function holds it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


async def longest_hold(messages: list[Message], window: int, *, each_call: bool) -> tuple[float, str]:
    """With ``each_call`` exactly. Without, what may be more: all that the process computes between two turns."""
    holds: Holds = []
    heart = asyncio.create_task(turns(holds, time.thread_time if each_call else time.process_time))
    await asyncio.sleep(0)  # the first turn begins
    gc.disable()
    try:
        with watched(holds) if each_call else soon():
            out = await Compactor(window=window).acompact(messages)
            await asyncio.sleep(0.005)  # the last turn ends
    finally:
        gc.enable()
        heart.cancel()
    assert out.changed
    return max(holds)


def the_loop_is_free_during(messages: list[Message], window: int = WINDOW) -> None:
    """In one of the tries, each of texts of which nothing is remembered."""
    found: Holds = []
    for number, each_call in enumerate((*[False] * TRIES, *[True] * TRIES), start=1):
        new = [message | {"content": (said := message["content"]) and said + " " * number} for message in messages]
        found.append(asyncio.run(longest_hold(new, window, each_call=each_call)))
        if found[-1][0] <= AT_MOST:
            return
        if number == TRIES and min(found)[0] > CLEARLY * AT_MOST:
            pytest.fail(f"the event loop was held much too long: {found}")
    pytest.fail(f"the event loop was held too long: {found[TRIES:]}")


def test_a_hold_is_noticed_in_a_worker_and_in_the_loop() -> None:
    text = "a" * 30_000_000

    async def work(holds: Holds) -> None:
        heart = asyncio.create_task(turns(holds))
        await asyncio.sleep(0.005)
        with watched(holds):
            thread = threading.Thread(target=lambda: sum(text.count(letter) for letter in "bcdefghijk"))
            thread.start()
            thread.join()
        sum(range(2_000_000))
        await asyncio.sleep(0.005)
        heart.cancel()

    holds: Holds = []
    asyncio.run(work(holds))
    assert max(hold for hold, where in holds if where.startswith("str.count")) > 0.0005
    assert max(hold for hold, where in holds if where.startswith("the loop")) > 0.005


def test_a_conversation_leaves_the_event_loop_free() -> None:
    the_loop_is_free_during(session(60_000), window=16_000)


def test_the_first_call_of_a_process_compiles_the_patterns_of_secrets_beside_the_loop() -> None:
    async def first_call() -> float:
        re.purge()
        redaction._patterns.cache_clear()
        observe._redacted.cache_clear()
        holds: Holds = []
        heart = asyncio.create_task(turns(holds))
        await asyncio.sleep(0)  # the first turn begins
        await Compactor(window=16_000).acompact([{"role": "user", "content": "Hello"}])
        await asyncio.sleep(0.005)
        heart.cancel()
        return max(held for held, _ in holds)

    asyncio.run(first_call())  # loads what else a first call takes
    assert min(asyncio.run(first_call()) for _ in range(TRIES)) <= AT_MOST


def in_chinese(message: Message) -> Message:
    """As long, with signs that take two bytes each in memory and three where they are sent."""
    said = message["content"]
    return message if message["role"] != "tool" else {**message, "content": said.replace("e", "记").replace("a", "日")}


STORED = {
    "a megabyte of log": "worker-7 GET /api/v2/users/77 took refreshUserToken 913ms\n" * 18_000,
    "3 MB without a blank": "aB3_" * 750_000,
    "3 MB of marks": "e\u0301\u0327" * 1_000_000,
    "3 MB on one line": '{"user": "u-77", "took": 913}, ' * 100_000,
}


@pytest.mark.strict
@pytest.mark.parametrize("what", STORED)
def test_a_store_takes_megabytes_beside_the_event_loop(tmp_path: Path, what: str) -> None:
    """All words of a text go into the index of its search, and are read again."""
    messages = one_output(STORED[what])

    async def append(name: str) -> tuple[float, str]:
        known = Compactor(window=WINDOW).session(name, f"sqlite:///{tmp_path}/sessions.db")
        holds: Holds = []
        heart = asyncio.create_task(turns(holds))
        with watched(holds):
            await known.aappend(messages)
            await known.aread()
        heart.cancel()
        return max(hold for hold in holds if ".do_" not in hold[1])  # while SQLite writes, other threads run

    found = []
    for name in "abc":
        found.append(asyncio.run(append(name)))
        if found[-1][0] <= AT_MOST:
            return
    pytest.fail(f"the event loop was held too long: {found}")


WRITTEN = {
    "2 MB of Chinese prose": ("夜间导入太慢，请先看日志。", 150_000),
    "2 MB of log in Turkish": ("worker-{} kayıt okundu: kullanıcı İstanbul şubesinde refreshUserToken\n", 30_000),
    "2 MB of prose on one line": ("The report of worker {} came in time and was read. ", 40_000),
    "4 MB without a blank": ("src/a{}/b-Token_", 250_000),
}
"""A line, and how often it is said."""


@pytest.mark.strict
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_megabytes_without_a_blank_that_are_said_leave_the_event_loop_free(role: str) -> None:
    pasted = {"role": role, "content": "".join(f"src/a{n}/b-Token_" for n in range(200_000))}
    the_loop_is_free_during([{"role": "user", "content": "Read it."}, pasted, *one_output("It ran.")])


@pytest.mark.strict
@pytest.mark.parametrize(
    "name",
    [
        "5 MB of log",
        "1 MB of CSV on one line",
        "1 MB of names",
        "8,000 messages",
        "5 MB of log in Chinese",
        *WRITTEN,
    ],
)
def test_large_inputs_leave_the_event_loop_free(name: str) -> None:
    inputs = large_inputs()
    if name.endswith(" in Chinese"):
        the_loop_is_free_during(list(map(in_chinese, inputs[name.removesuffix(" in Chinese")])))
    elif name in WRITTEN:
        line, times = WRITTEN[name]
        the_loop_is_free_during(one_output("".join(line.format(n) for n in range(times)) + "Then a test came."))
    elif name in inputs:
        the_loop_is_free_during(inputs[name])
    else:
        the_loop_is_free_during([short(message) for message in session(14_000_000, seed=7)[:8_000]])
