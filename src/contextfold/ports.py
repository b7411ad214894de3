"""Both drivers of the engine, and nothing else knows about colour.

The engine is a set of ``async def`` functions that await nothing but ports: ``call`` (run something the user
supplied), ``gather`` (run branches side by side). The async ports really suspend. The sync ports block and never
suspend, so a coroutine over them runs to its end at the first ``send``, and ``run`` takes its value from there.

- Limits hold leaves (calls), never branches: a branch that waits for its children must not hold a place.
- Every thread gets a copy of the context, so that tracing and request-local values keep working.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")
Branch = Callable[[], Coroutine[Any, Any, T]]


class Ports(Protocol):
    """What the engine cannot do by itself."""

    async def compute(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run our own work that may take long, such as planning over a whole history."""
        ...

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run something the user supplied, sync or async, and return its value."""
        ...

    async def gather(self, branches: Sequence[Branch[T]]) -> list[T]:
        """Run branches side by side; values in order. The first error ends the others and is raised as it is."""
        ...


class SyncPorts:
    """Blocks. ``parallel`` limits the calls that run at the same time."""

    def __init__(self, parallel: int = 8) -> None:
        self._limit = threading.BoundedSemaphore(parallel)

    async def compute(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with self._limit:
            value = function(*arguments)
            return _finish(value) if inspect.isawaitable(value) else value

    async def gather(self, branches: Sequence[Branch[T]]) -> list[T]:
        if len(branches) <= 1:
            return [await branch() for branch in branches]
        futures: list[Future[T]] = []
        for branch in branches:
            future: Future[T] = Future()
            work = functools.partial(_settle, future, branch)
            threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
            futures.append(future)
        outcomes = [(future.exception(), future) for future in futures]  # waits for every branch
        for error, _ in outcomes:
            if error is not None:
                raise error
        return [future.result() for _, future in outcomes]


class AsyncPorts:
    """Suspends. Blocking callables run in worker threads, so the event loop is never held up."""

    def __init__(self, parallel: int = 8) -> None:
        self._limit = anyio.CapacityLimiter(parallel)

    async def compute(self, function: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(functools.partial(function, *arguments))

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if _is_async(function):
            async with self._limit:
                return await function(*arguments)
        value = await anyio.to_thread.run_sync(functools.partial(function, *arguments), limiter=self._limit)
        return await value if inspect.isawaitable(value) else value

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


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine over sync ports to its end."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    coroutine.close()
    raise RuntimeError("a sync port suspended: only ports may be awaited in the engine")


def _settle(future: Future[T], branch: Branch[T]) -> None:
    try:
        future.set_result(run(branch()))
    except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
        future.set_exception(error)


def _finish(value: Awaitable[T]) -> T:
    """The value of an awaitable, from blocking code: on a loop of its own, in a thread of its own."""

    async def wait() -> T:
        return await value

    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(anyio.run(wait))
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            future.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    return future.result()


def _is_async(function: Callable[..., Any]) -> bool:
    target = function.func if isinstance(function, functools.partial) else function
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)
