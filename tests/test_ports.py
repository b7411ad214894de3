"""One colour: the same coroutine runs to the same end over blocking and over suspending ports."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest

from contextfold.ports import AsyncPorts, Branch, Ports, SyncPorts, run

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")


async def square(ports: Ports, value: int, function: Any) -> int:
    found: int = await ports.call(function, value)
    return found


def branches(ports: Ports, function: Any, count: int) -> list[Branch[int]]:
    return [lambda value=value: square(ports, value, function) for value in range(count)]  # type: ignore[misc]


def plain(value: int) -> int:
    return value * value


async def suspending(value: int) -> int:
    await asyncio.sleep(0)
    return value * value


class Callable_:
    async def __call__(self, value: int) -> int:
        return value * value


@pytest.mark.parametrize("function", [plain, suspending, Callable_(), lambda value: suspending(value)])
def test_both_drivers_give_the_same_for_sync_and_async_callables(function: Any) -> None:
    async def both() -> list[int]:
        ports = AsyncPorts()
        return await ports.gather(branches(ports, function, 4))

    ports = SyncPorts()
    assert run(ports.gather(branches(ports, function, 4))) == asyncio.run(both()) == [0, 1, 4, 9]


def test_branches_run_side_by_side_in_both_colours() -> None:
    def slow(value: int) -> int:
        time.sleep(0.1)
        return value

    async def both() -> None:
        ports = AsyncPorts(8)
        await ports.gather(branches(ports, slow, 8))

    for work in (lambda: run(SyncPorts(8).gather(branches(SyncPorts(8), slow, 8))), lambda: asyncio.run(both())):
        started = time.perf_counter()
        work()
        assert time.perf_counter() - started < 0.5


def test_no_more_calls_run_at_once_than_the_limit() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def counted(value: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return value

    ports = SyncPorts(2)
    run(ports.gather(branches(ports, counted, 8)))
    assert most == 2
    most = 0

    async def both() -> None:
        suspended = AsyncPorts(2)
        await suspended.gather(branches(suspended, counted, 8))

    asyncio.run(both())
    assert most == 2


def test_the_first_error_comes_out_as_it_is() -> None:
    def failing(value: int) -> int:
        raise ValueError(f"no {value}")

    async def both() -> None:
        ports = AsyncPorts()
        await ports.gather(branches(ports, failing, 3))

    ports = SyncPorts()
    with pytest.raises(ValueError, match="no 0"):
        run(ports.gather(branches(ports, failing, 3)))
    with pytest.raises(ValueError, match="no"):
        asyncio.run(both())


def test_an_error_of_an_async_callable_reaches_blocking_code() -> None:
    async def failing(value: int) -> int:
        raise KeyError(value)

    with pytest.raises(KeyError):
        run(SyncPorts().call(failing, 1))


def test_threads_see_the_context_of_the_caller() -> None:
    def look(_: int) -> int:
        return len(request_id.get())

    request_id.set("abc")
    ports = SyncPorts()
    assert run(ports.gather(branches(ports, look, 2))) == [3, 3]


def test_blocking_work_never_holds_the_event_loop() -> None:
    """R33."""

    async def beat() -> int:
        beats = 0
        work = asyncio.create_task(AsyncPorts().compute(time.sleep, 0.2))
        while not work.done():
            await asyncio.sleep(0.01)
            beats += 1
        return beats

    assert asyncio.run(beat()) > 5


def test_a_port_that_suspends_in_blocking_code_is_a_programming_error() -> None:
    async def suspends() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="only ports"):
        run(suspends())
