"""Running a pass beside the conversation: on a thread, or on a task of the caller's event loop.

What belongs here: starting and waiting. What does not: what is done there (``calls.attempts``, ``store.flow``).
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from contextfold.ports import CANCEL_SECONDS, AsyncPorts, Ports, SyncPorts, run

if TYPE_CHECKING:
    import asyncio

Work = Callable[[Ports], Coroutine[Any, Any, None]]


class Background:
    """At most one piece of work at a time, for one conversation. ``parallel`` limits its model calls."""

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        thread, task = self._thread, self._task
        # A loop that was closed has cancelled its tasks, or never comes back to them.
        runs = task is not None and not task.done() and not task.get_loop().is_closed()
        return (thread is not None and thread.is_alive()) or runs

    @property
    def _ended_with_loop(self) -> bool:
        task = self._task
        return task is not None and task.get_loop().is_closed() and (task.cancelled() or not task.done())

    def start(self, work: Work, ports: Ports) -> None:
        """Run ``work`` in the color of the ports that the caller uses; nothing happens while some is running.

        On event loops other than asyncio's there are no tasks that outlive their caller: a thread does it there. Where
        a task ended with its loop, as each one does under an ``asyncio.run`` for each call, no other is begun: it would
        be paid for and end as well, and on a thread a caller's client would meet a second loop.
        """
        if self.is_busy:
            return
        loop = _asyncio_loop() if isinstance(ports, AsyncPorts) else None
        if loop is not None:
            if not self._ended_with_loop:
                self._task = loop.create_task(work(AsyncPorts(self._parallel)))
            return
        # A daemon: what it prepares can be made again, and is not worth holding up the end of the process.
        run_here = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=lambda: run_here(_worked, work(SyncPorts(self._parallel))),
            daemon=True,
            name="contextfold-background",
        )
        self._thread.start()

    async def finished(self, ports: Ports) -> None:
        """Wait until nothing is running. A task of another event loop, which may be gone, is not waited for, nor by
        blocking code the task of a loop that it holds up.

        In steps, since neither a token nor a scope ends a wait on a thread. Raises ``Cancelled``; the work goes on.
        """
        task, thread = self._task, self._thread
        suspends = isinstance(ports, AsyncPorts)
        while suspends and task is not None and not task.done() and task.get_loop() is _asyncio_loop():
            ports.check()
            await sys.modules["asyncio"].wait({task}, timeout=CANCEL_SECONDS)
        while thread is not None and thread.is_alive():
            ports.check()
            await ports.wait_for(thread.join, CANCEL_SECONDS)

    def join(self, seconds: float | None = None) -> None:
        """Wait for work on a thread."""
        if self._thread is not None:
            self._thread.join(seconds)


def _worked(work: Coroutine[Any, Any, None]) -> None:
    # As anyio's own threads do: the caller's context names the library of its event loop, and none runs here.
    if sniffio := sys.modules.get("sniffio"):
        sniffio.current_async_library_cvar.set(None)
    run(work)


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    asyncio = sys.modules.get("asyncio")  # not loaded: no loop of it runs, and a conversation may never need one
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()  # type: ignore[no-any-return]
    except RuntimeError:
        return None
