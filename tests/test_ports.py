"""One color: the same coroutine runs to the same end over blocking and over suspending ports."""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from contextfold.errors import TimedOut
from contextfold.ports import AsyncPorts, BothColors, Branch, Patience, Ports, SyncPorts, run

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


def stepped(value: int) -> Any:
    """A step of an async generator: it is awaited, though its class has a ``__next__``."""

    async def steps() -> AsyncIterator[int]:
        yield value * value

    return steps().__anext__()


class Managed:
    """A coroutine by its class, as drivers of databases have it: with all methods of one, and a ``__next__``."""

    def __init__(self, value: int) -> None:
        self.inner = suspending(value)

    def send(self, value: Any) -> Any:
        return self.inner.send(value)

    def throw(self, *error: Any) -> Any:
        return self.inner.throw(*error)

    def close(self) -> None:
        self.inner.close()

    def __await__(self) -> Any:
        return self.inner.__await__()

    def __iter__(self) -> Any:
        return self.__await__()

    def __next__(self) -> Any:
        return self.send(None)


@pytest.mark.parametrize(
    "function", [plain, suspending, Callable_(), lambda value: suspending(value), stepped, Managed]
)
def test_both_drivers_give_the_same_for_sync_and_async_callables(function: Any) -> None:
    async def both() -> list[int]:
        ports = AsyncPorts()
        return await ports.gather(branches(ports, function, 4))

    ports = SyncPorts()
    assert run(ports.gather(branches(ports, function, 4))) == asyncio.run(both()) == [0, 1, 4, 9]


def test_branches_run_side_by_side_in_both_colors() -> None:
    """No branch goes on before all eight have begun."""
    begun = threading.Barrier(8)

    def meeting(value: int) -> int:
        begun.wait(timeout=30)
        return value

    async def both() -> None:
        ports = AsyncPorts(8)
        await ports.gather(branches(ports, meeting, 8))

    run(SyncPorts(8).gather(branches(SyncPorts(8), meeting, 8)))
    asyncio.run(both())
    assert not begun.broken


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

    async def beat() -> int:
        beats = 0
        work = asyncio.create_task(AsyncPorts().compute(time.sleep, 0.2))
        while not work.done():
            await asyncio.sleep(0.01)
            beats += 1
        return beats

    assert asyncio.run(beat()) > 5


def test_a_cancelled_task_ends_with_its_own_work_and_leaves_what_others_hold_up() -> None:
    """However often it is cancelled: what the work writes to is the next call's. A store may hang for half a minute."""

    async def cancelled(port: str) -> tuple[bool, list[str]]:
        entered, gate, done = threading.Event(), threading.Event(), list[str]()

        def work() -> None:
            entered.set()
            gate.wait(10)
            done.append("done")

        task = asyncio.create_task(getattr(AsyncPorts(), port)(work))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.02)
        waits = not task.done()
        gate.set()
        await asyncio.wait({task})
        assert task.cancelled()
        return waits, list(done)

    assert asyncio.run(cancelled("compute")) == (True, ["done"])
    assert asyncio.run(cancelled("wait_for"))[0] is False


def test_work_that_has_not_begun_when_its_task_is_cancelled_never_begins() -> None:
    begun: list[int] = []

    async def cancelled() -> None:
        task = asyncio.create_task(AsyncPorts().compute(begun.append, 1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(0.02)
        assert task.cancelled()

    asyncio.run(cancelled())
    assert not begun


def test_a_port_that_suspends_in_blocking_code_is_a_programming_error() -> None:
    async def suspends() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="only ports"):
        run(suspends())


# ---- pieces ----


def yields(value: int) -> Iterator[int]:
    yield from range(value)


async def yields_async(value: int) -> AsyncIterator[int]:
    for number in range(value):
        await asyncio.sleep(0)
        yield number


async def returns_an_iterator(value: int) -> AsyncIterator[int]:
    return yields_async(value)


async def collected(ports: Ports, function: Any, patience: Patience | None = None) -> list[Any]:
    return [piece async for piece in ports.pieces(patience or Patience(), function, 3)]


def in_both(function: Any, patience: Patience | None = None) -> list[list[Any]]:
    async def suspended() -> list[Any]:
        return await collected(AsyncPorts(), function, patience)

    return [run(collected(SyncPorts(), function, patience)), asyncio.run(suspended())]


@pytest.mark.parametrize("function", [yields, yields_async, returns_an_iterator, lambda value: iter([0, 1, 2])])
def test_an_iterator_is_handed_over_piece_by_piece_in_both_colors(function: Any) -> None:
    assert in_both(function) == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    "function", [plain, suspending, Callable_(), lambda value: suspending(value), stepped, Managed]
)
def test_what_is_no_iterator_is_one_piece(function: Any) -> None:
    assert in_both(function) == [[9], [9]]


def test_a_text_or_a_list_is_one_piece() -> None:
    assert in_both(lambda value: "text") == [["text"], ["text"]]
    assert in_both(lambda value: [1, 2]) == [[[1, 2]], [[1, 2]]]


def fails_halfway(value: int) -> Iterator[int]:
    yield 1
    raise KeyError("halfway")


async def fails_halfway_async(value: int) -> AsyncIterator[int]:
    yield 1
    raise KeyError("halfway")


@pytest.mark.parametrize("function", [fails_halfway, fails_halfway_async])
def test_an_error_between_pieces_comes_out_as_it_is(function: Any) -> None:
    async def suspended() -> None:
        await collected(AsyncPorts(), function)

    with pytest.raises(KeyError, match="halfway"):
        run(collected(SyncPorts(), function))
    with pytest.raises(KeyError, match="halfway"):
        asyncio.run(suspended())


def test_a_stream_that_nobody_reads_on_is_closed() -> None:
    closed: list[str] = []

    class Stream:
        def __init__(self, name: str) -> None:
            self.name = name

        def __iter__(self) -> Stream:
            return self

        def __next__(self) -> int:
            time.sleep(0.01)
            return 1

        def close(self) -> None:
            closed.append(self.name)

    async def first(ports: Ports, name: str) -> None:
        pieces = ports.pieces(Patience(), lambda: Stream(name))
        async for _ in pieces:
            break
        await pieces.aclose()

    run(first(SyncPorts(), "sync"))
    asyncio.run(first(AsyncPorts(), "async"))
    time.sleep(0.1)
    assert sorted(closed) == ["async", "sync"]


def test_time_limits_name_what_ran_out() -> None:
    clock = SyncPorts().clock
    with pytest.raises(TimedOut, match=r"silent for 0.05 s") as silent:
        run(collected(SyncPorts(), lambda _: time.sleep(0.5), Patience(idle=0.05)))
    assert not silent.value.total
    late = Patience(idle=9, total=0.05, deadline=clock.now() + 0.05)
    with pytest.raises(TimedOut, match=r"longer than 0.05 s in total") as over:
        run(collected(SyncPorts(), lambda _: time.sleep(0.5), late))
    assert over.value.total
    with pytest.raises(TimedOut):
        run(collected(SyncPorts(), plain, late))


def test_what_exists_in_both_colors_is_run_in_the_right_one() -> None:
    both = BothColors(blocking=lambda: "blocking", suspending=lambda: "suspending")

    async def suspended() -> str:
        return await AsyncPorts().compute(both)

    assert run(SyncPorts().compute(both)) == "blocking"
    assert asyncio.run(suspended()) == "suspending"


def test_async_leaves_of_blocking_code_run_on_one_loop() -> None:
    """Async clients keep connections that belong to the loop on which they were opened."""
    loops: list[int] = []

    async def note(value: int) -> int:
        loops.append(id(asyncio.get_running_loop()))
        return len(request_id.get())

    request_id.set("abcd")
    for _ in range(3):
        assert run(collected(SyncPorts(), note)) == [4]
    assert len(set(loops)) == 1


@pytest.mark.skipif(not hasattr(os, "fork") or sys.version_info >= (3, 12), reason="forking with threads warns there")
def test_a_forked_process_has_a_loop_of_its_own() -> None:
    run(collected(SyncPorts(), suspending))
    child = os.fork()
    if child == 0:
        os._exit(0 if run(collected(SyncPorts(), suspending)) == [9] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_cleaning_up_is_done_while_a_task_is_cancelled_and_its_errors_are_of_no_interest() -> None:
    closed: list[str] = []

    async def close() -> None:
        await asyncio.sleep(0)
        closed.append("async")
        raise RuntimeError("no matter")

    async def main() -> None:
        ports = AsyncPorts()

        async def work() -> None:
            try:
                await asyncio.sleep(9)
            finally:
                await ports.release(close)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    run(SyncPorts().release(close))
    assert closed == ["async", "async"]


@pytest.mark.parametrize("hook", [plain, suspending])
def test_a_hook_may_run_during_a_call(hook: Any) -> None:
    """It takes no place: with one place, a call that tells a hook would wait for itself."""

    async def told(ports: Ports) -> int:
        async for piece in ports.pieces(Patience(), yields, 3):
            await ports.tell(hook, piece)
        return 1

    async def suspended() -> int:
        return await told(AsyncPorts(1))

    assert run(told(SyncPorts(1))) == asyncio.run(suspended()) == 1
