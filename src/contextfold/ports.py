"""Both drivers of the engine, and nothing else knows about color.

The engine is a set of ``async def`` functions that await nothing but ports: ``call`` (run something the user
supplied), ``pieces`` (ask a model that may answer bit by bit, within time limits), ``gather`` (run branches side by
side), ``sleep``, ``tell`` (a hook). The async ports really suspend. The sync ports block and never suspend, so a
coroutine over them runs to its end at the first ``send``, and ``run`` takes its value from there.

- Limits hold leaves (calls), never branches: a branch that waits for its children must not hold a place.
- Every thread gets a copy of the context, so that tracing and request-local values keep working.
- Time and chance are ports too (``Clock``): nothing in the engine reads them anywhere else.
- What blocks cannot be ended from outside. A leaf that takes too long, or is not wanted any more, is left alone in
  its thread, and its answer is thrown away.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import math
import os
import queue
import random
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from contextfold.errors import Cancelled, TimedOut, is_async_function

if TYPE_CHECKING:
    import anyio
    import anyio.to_thread
    from anyio.from_thread import BlockingPortal
else:

    class _Later:
        """The module ``anyio``, loaded by the first that awaits something: blocking code never does."""

        def __getattr__(self, name: str) -> Any:
            import anyio
            import anyio.to_thread

            return getattr(anyio, name)

    anyio = _Later()

T = TypeVar("T")
Branch = Callable[[], Coroutine[Any, Any, T]]
Sends = Callable[[list[Any]], T] | Callable[[list[Any], Any], T]
"""What sends a view, and the answer limit with it where the caller gives one."""

CANCEL_SECONDS = 0.05
"""How often blocking code that waits looks whether it is to stop."""

ENDING_SECONDS = 0.005
"""How often a cancelled task looks whether the work that it began is over."""

CLOSING_SECONDS = 2.0
"""How long cleaning up may take after a task was cancelled."""


class Cancellation(Protocol):
    """Says that a call is to stop; a ``threading.Event`` is one."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance. ``now`` in seconds from some beginning, ``wall`` in seconds since 1970, ``chance`` in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for pieces: ``idle`` seconds for each, and no longer than ``deadline`` (of ``Clock.now``).

    ``total`` are the seconds that end at the deadline, for what is said about it.
    """

    idle: float | None = None
    total: float | None = None
    deadline: float = math.inf

    def left(self, now: float) -> float:
        """Seconds that the next piece may take; infinite without a limit. Raises ``TimedOut`` at the deadline."""
        if now >= self.deadline:
            raise self.expired(now)
        return min(self.deadline - now, math.inf if self.idle is None else self.idle)

    def expired(self, now: float) -> TimedOut:
        """The error for a wait that ended at ``now``."""
        if self.idle is None or now >= self.deadline:
            seconds = self.total or 0.0
            return TimedOut(f"the summary took longer than {seconds:g} s in total", seconds=seconds, total=True)
        return TimedOut(f"the summarizer was silent for {self.idle:g} s", seconds=self.idle, total=False)


@dataclass(frozen=True, slots=True)
class BothColors:
    """A function that exists in both colors, such as the constructors of an SDK's sync and async client."""

    blocking: Callable[..., Any]
    suspending: Callable[..., Any]


class Ports(Protocol):
    """What the engine cannot do by itself."""

    clock: Clock

    async def compute(self, function: Callable[..., T] | BothColors, *arguments: Any) -> T:
        """Run our own work that may take long, such as planning over a whole history.

        A task that is cancelled meanwhile ends when the work has: it shares what is known of a history with the next
        call.
        """
        ...

    async def wait_for(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run what may block for as long as others like, such as a store; a task that is cancelled leaves it alone."""
        ...

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run something the user supplied, sync or async, and return its value."""
        ...

    def pieces(self, patience: Patience, function: Callable[..., Any], *arguments: Any) -> AsyncGenerator[Any]:
        """Run something the user supplied: the items of the iterator it returns, or whatever else it returns as one.

        Raises ``TimedOut`` when a piece takes too long, and ``Cancelled``.
        """
        ...

    async def gather(self, branches: Sequence[Branch[T]]) -> list[T]:
        """Run branches side by side; values in order. The first error ends the others and is raised as it is."""
        ...

    async def tell(self, hook: Callable[..., Any], *arguments: Any) -> None:
        """Run a hook, sync or async. It takes no place among the calls, because it may run during one of them."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Raises ``Cancelled``."""
        ...

    async def release(self, close: Callable[[], Any]) -> None:
        """Clean up, also while a task is being cancelled. Errors of it are of no interest."""
        ...

    def check(self) -> None:
        """Raises ``Cancelled`` when the caller's token is set."""
        ...


class _Stoppable:
    """What both drivers do alike with the caller's token."""

    def __init__(self, clock: Clock | None, cancel: Cancellation | None) -> None:
        self.clock = clock or Clock()
        self.cancel = cancel

    def check(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled("the compaction was cancelled; nothing has changed")


class SyncPorts(_Stoppable):
    """Blocks. ``parallel`` limits the calls that run at the same time."""

    def __init__(self, parallel: int = 8, *, clock: Clock | None = None, cancel: Cancellation | None = None) -> None:
        super().__init__(clock, cancel)
        self._limit = threading.BoundedSemaphore(parallel)

    async def compute(self, function: Callable[..., T] | BothColors, *arguments: Any) -> T:
        value: T = _blocking(function)(*arguments)
        return value

    async def wait_for(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with self._limit:
            value = function(*arguments)
            return _finish(value) if is_awaitable(value) else value

    async def pieces(self, patience: Patience, function: Callable[..., Any], *arguments: Any) -> AsyncGenerator[Any]:
        with self._limit:
            self.check()
            pump = _Pump(functools.partial(function, *arguments))
            try:
                while (piece := self._next(pump, patience)) is not _END:
                    yield piece
            finally:
                pump.stop()

    def _next(self, pump: _Pump, patience: Patience) -> Any:
        until = self.clock.now() + patience.left(self.clock.now())
        while (now := self.clock.now()) < until:
            wait = min(until - now, math.inf if self.cancel is None else CANCEL_SECONDS)
            try:
                return pump.next(None if wait == math.inf else wait)
            except queue.Empty:
                self.check()
        raise patience.expired(now)

    async def gather(self, branches: Sequence[Branch[T]]) -> list[T]:
        if len(branches) <= 1:
            return [await branch() for branch in branches]
        futures = [_in_a_thread(functools.partial(_ran, branch)) for branch in branches]
        outcomes = [(future.exception(), future) for future in futures]  # waits for every branch
        for error, _ in outcomes:
            if error is not None:
                raise error
        return [future.result() for _, future in outcomes]

    async def tell(self, hook: Callable[..., Any], *arguments: Any) -> None:
        value = hook(*arguments)
        if inspect.isawaitable(value):
            _finish(value)

    async def sleep(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        while (left := until - self.clock.now()) > 0:
            self.check()
            time.sleep(left if self.cancel is None else min(left, CANCEL_SECONDS))
        self.check()

    async def release(self, close: Callable[[], Any]) -> None:
        with contextlib.suppress(Exception):
            value = close()
            if inspect.isawaitable(value):
                _finish(value)


class AsyncPorts(_Stoppable):
    """Suspends. Blocking callables run in worker threads, so the event loop is never held up."""

    def __init__(self, parallel: int = 8, *, clock: Clock | None = None, cancel: Cancellation | None = None) -> None:
        super().__init__(clock, cancel)
        self._limit = anyio.CapacityLimiter(parallel)
        self._threads = anyio.CapacityLimiter(math.inf)  # what runs in them holds a place already

    async def compute(self, function: Callable[..., T] | BothColors, *arguments: Any) -> T:
        work = function.suspending if isinstance(function, BothColors) else function
        piece = _Piece(functools.partial(work, *arguments))
        try:
            value: T = await anyio.to_thread.run_sync(piece)
        except anyio.get_cancelled_exc_class():
            # ``Task.cancel`` knows nothing of scopes: it ends the wait, and leaves the thread at work.
            while piece.goes_on():
                with anyio.CancelScope(shield=True), contextlib.suppress(anyio.get_cancelled_exc_class()):
                    await anyio.sleep(ENDING_SECONDS)
            raise
        return value

    async def wait_for(self, function: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(functools.partial(function, *arguments))

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if is_async_function(function):
            async with self._limit:
                return await function(*arguments)
        value = await anyio.to_thread.run_sync(functools.partial(function, *arguments), limiter=self._limit)
        return await value if is_awaitable(value) else value

    async def pieces(self, patience: Patience, function: Callable[..., Any], *arguments: Any) -> AsyncGenerator[Any]:
        async with self._limit:
            self.check()
            value = await self._within(patience, self._started, functools.partial(function, *arguments))
            if not isinstance(value, Iterator | AsyncIterator):
                yield value
                return
            following = value.__anext__ if isinstance(value, AsyncIterator) else functools.partial(self._follow, value)
            try:
                while (piece := await self._within(patience, _or_end, following)) is not _END:
                    yield piece
                    self.check()
            finally:
                await self.release(functools.partial(_close, value))

    async def _started(self, work: functools.partial[Any]) -> Any:
        if is_async_function(work):
            return await work()
        value = await self.threaded(work)
        return await value if inspect.isawaitable(value) else value

    async def _follow(self, pieces: Iterator[Any]) -> Any:
        return await self.threaded(next, pieces, _END)

    async def threaded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run what blocks and holds a place among the calls already, in a thread that no one else waits for: forty
        answers that take a minute each would hold up every store of the process, and the application's own threads.
        """
        work = functools.partial(function, *arguments)
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    async def _within(self, patience: Patience, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        with anyio.move_on_after(patience.left(self.clock.now())):
            return await function(*arguments)
        raise patience.expired(self.clock.now())

    async def gather(self, branches: Sequence[Branch[T]]) -> list[T]:
        values: dict[int, T] = {}
        errors: list[Exception] = []

        async def run_one(number: int, branch: Branch[T]) -> None:
            try:
                values[number] = await branch()
            except Exception as error:  # noqa: BLE001 - kept as it is instead of inside an ExceptionGroup
                errors.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for number, branch in enumerate(branches):
                group.start_soon(run_one, number, branch)
        if errors:
            raise errors[0]
        return [values[number] for number in range(len(branches))]

    async def tell(self, hook: Callable[..., Any], *arguments: Any) -> None:
        await self._started(functools.partial(hook, *arguments))

    async def sleep(self, seconds: float) -> None:
        self.check()
        await anyio.sleep(seconds)
        self.check()

    async def release(self, close: Callable[[], Any]) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING_SECONDS), contextlib.suppress(Exception):
            work = functools.partial(close)
            try:
                await self._started(work)
            except anyio.get_cancelled_exc_class():
                # ``Task.cancel`` knows nothing of scopes, and may come before the work has begun. Closing twice is
                # harmless; not closing leaves a lease or a connection behind.
                await self._started(work)
                raise


def is_awaitable(value: Any) -> bool:
    """Whether a value is to be awaited. A stream is not, though one of a tracer's may say so: some serve both colors,
    and ours pose as what they stand for.
    """
    kind = type(value)  # not `__class__`, which `isinstance` believes
    # Some coroutines can be stepped by `next` as well: those of async generators, and of some drivers of databases.
    is_stepped = hasattr(kind, "__next__") and not issubclass(kind, Coroutine)
    is_stream = is_stepped or not hasattr(kind, "__await__")
    return inspect.isawaitable(value) and (not is_stream or inspect.isgenerator(value))


def mark_async(target: Callable[..., Any]) -> None:
    """Say of an object that calling it gives a coroutine: ``asyncio`` and ``inspect`` ask for the mark."""
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(target)
    else:
        import asyncio

        target._is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)  # type: ignore[attr-defined]


async def hand_over(ports: Ports, taker: Callable[[Any], object], value: Any) -> None:
    """Call what a caller gave for a value, in the caller's own thread, and wait for it where it is async."""
    taken = taker(value)
    if inspect.isawaitable(taken):
        await ports.call(lambda: taken)


@dataclass(frozen=True, slots=True)
class Worker:
    """Who is at work on something that others may want, too: a thread, and whether it does other things meanwhile."""

    thread: int
    suspends: bool

    @classmethod
    def over(cls, ports: Ports) -> Worker:
        """The one that runs this code, over these ports."""
        return cls(threading.get_ident(), isinstance(ports, AsyncPorts))

    def can_be_awaited_by(self, other: Worker) -> bool:
        """Whether it goes on while the other one waits: blocking code in a thread holds up the event loop there."""
        return self.thread != other.thread or (self.suspends and other.suspends)


async def settled(change: Coroutine[Any, Any, T]) -> T:
    """The outcome of a change, on an event loop of asyncio. A task that is cancelled meanwhile ends when the change
    has: whoever comes next finds what has become of it, and nothing of it comes later.
    """
    import asyncio  # blocking code never does

    task = asyncio.ensure_future(change)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            while not task.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at: else the event loop would report it as lost
        raise


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine over sync ports to its end."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    coroutine.close()
    raise RuntimeError("a sync port suspended: only ports may be awaited in the engine")


# ---- a leaf that blocks, in a thread of its own ----


class _End:
    """Stands behind the last piece."""


_END = _End()


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


class _Piece:
    """A piece of our own work in a thread, which can be asked whether it is over. It begins only while it is wanted."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._is_running = self._is_left = False

    def __call__(self) -> Any:
        with self._lock:
            if self._is_left:
                return None
            self._is_running = True
        try:
            return self._work()
        finally:
            self._is_running = False

    def goes_on(self) -> bool:
        """Whether it is at work, now that no one wants it any more."""
        with self._lock:
            self._is_left = True
            return self._is_running


class _Pump:
    """Runs one leaf beside the code that waits for it, and hands over its pieces. ``stop``: it is not wanted now."""

    def __init__(self, work: Callable[[], Any]) -> None:
        # without a bound: a leaf that no one waits for any more must not hang on a full queue
        self._handed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._on_loop: Future[None] | None = None
        _in_a_thread(functools.partial(self._run, work))

    def next(self, seconds: float | None) -> Any:
        """The next piece, or ``_END``. Raises what the leaf raised, and ``queue.Empty`` when none came in time."""
        piece = self._handed.get(timeout=seconds)
        if isinstance(piece, _Raised):
            raise piece.error
        return piece

    def stop(self) -> None:
        self._stopped.set()
        if self._on_loop is not None:
            self._on_loop.cancel()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            value = work()
            if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
                self._run_on_loop(value)
            elif isinstance(value, Iterator):
                self._drain(value)
            else:
                self._handed.put(value)
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            self._handed.put(_Raised(error))
        else:
            self._handed.put(_END)

    def _drain(self, pieces: Iterator[Any]) -> None:
        try:
            for piece in pieces:
                if self._stopped.is_set():
                    return
                self._handed.put(piece)
        finally:
            _close(pieces)

    def _run_on_loop(self, value: Any) -> None:
        # On the loop in the background, because async clients keep their connections on it.
        self._on_loop = _background().start_task_soon(self._drain_async, value)
        # ``stop`` may have come before there was anything to cancel.
        if self._stopped.is_set():
            self._on_loop.cancel()
        self._on_loop.result()

    async def _drain_async(self, value: Any) -> None:
        if inspect.isawaitable(value):
            value = await value
        if not isinstance(value, AsyncIterator):
            self._handed.put(value)
            return
        try:
            async for piece in value:
                self._handed.put(piece)
        finally:
            # A task that is cancelled can await nothing any more without a shield, and closing may have to.
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING_SECONDS):
                closed = _close(value)
                if inspect.isawaitable(closed):
                    await closed


def _close(pieces: Any) -> Any:
    """Close a stream or a generator by the method it has; an awaitable where that is async."""
    close = getattr(pieces, "aclose", None) or getattr(pieces, "close", None)
    return close() if callable(close) else None


async def _or_end(following: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await following()
    except StopAsyncIteration:
        return _END


# ---- an event loop for async leaves in blocking code ----

_loops: dict[int, BlockingPortal] = {}
_loops_lock = threading.Lock()


def _background() -> BlockingPortal:
    """The process's event loop in the background: always the same, because async clients keep connections on theirs."""
    with _loops_lock:
        process = os.getpid()  # threads do not survive a fork
        if process not in _loops:
            started: Future[BlockingPortal] = Future()
            threading.Thread(target=anyio.run, args=(_serve, started), daemon=True, name="contextfold-loop").start()
            _loops[process] = started.result()
        return _loops[process]


async def _serve(started: Future[BlockingPortal]) -> None:
    from anyio.from_thread import BlockingPortal

    async with BlockingPortal() as portal:
        started.set_result(portal)
        await portal.sleep_until_stopped()


def _in_a_thread(work: Callable[[], T]) -> Future[T]:
    """What comes of work in a thread of its own. A daemon: work that hangs must not keep the process from ending."""
    future: Future[T] = Future()

    promised = [future]

    def settle() -> None:
        future = promised.pop()
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            future.set_exception(error)
        finally:
            # The error has this frame, and would be held by its own future, with all that those who wait for it hold,
            # such as a cursor: until the next garbage collection.
            del future

    threading.Thread(target=contextvars.copy_context().run, args=(settle,), daemon=True).start()
    return future


def on_own_stack(work: Callable[[], T]) -> T:
    """What comes of our own work that needs more of a stack than the caller has left."""
    return _in_a_thread(work).result()


def _ran(branch: Branch[T]) -> T:
    return run(branch())


def _finish(value: Awaitable[T]) -> T:
    """The value of an awaitable, from blocking code: on a loop of its own, in a thread of its own."""

    async def wait() -> T:
        return await value

    return _in_a_thread(lambda: anyio.run(wait)).result()


def _blocking(function: Callable[..., Any] | BothColors) -> Callable[..., Any]:
    return function.blocking if isinstance(function, BothColors) else function
