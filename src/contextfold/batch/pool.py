"""Workers on this machine: processes that are given one part at a time, and may die.

``concurrent.futures`` gives up on all its work when one process is killed, and does not say by which conversation. Here
the pipe to each worker tells how many conversations of its part are behind it. A part whose worker died is done again,
from its beginning, by another one. Where two died over the same conversation, that one gets an error instead, and the
job goes on: so does a job that meets a conversation too large for the machine's memory.

What belongs here: processes and pipes. What does not: what a part is, and what becomes of its report (``job``).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from contextfold.batch.sources import Part
from contextfold.errors import ContextfoldError, reason

Told = Callable[[bool], object]
"""Called after each conversation: whether it failed."""
Skipped = Mapping[int, str]
"""Conversations of a part, by their place in it, that get this error instead of being worked on."""

DEATHS_OF_A_ROW = 2
"""A worker may be killed by anything once. Twice over one conversation, and it is that."""
DEATHS_AT_START = 3
_PATIENCE = 10.0
"""Seconds that a worker has to end by itself."""


class PartWork(Protocol):
    """What is done to a part; pickles."""

    def __call__(self, number: int, part: Part, skipped: Skipped, told: Told) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class RowDone:
    """A conversation is done."""

    failed: bool


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker died; this many conversations of its part will be done again, ``failed`` of them with an error."""

    rows: int
    failed: int


@dataclass(frozen=True, slots=True)
class PartDone:
    """A part is written."""

    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PartFailed:
    """A part could not be read or written; nothing of it is there."""

    number: int
    why: str


Happened = RowDone | WorkerLost | PartDone | PartFailed


def in_this_process(task: PartWork, parts: Sequence[tuple[int, Part]]) -> Iterator[Happened]:
    """The work without any worker."""
    for number, part in parts:
        rows: list[RowDone] = []
        try:
            report = task(number, part, {}, lambda failed, rows=rows: rows.append(RowDone(failed)))  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  one part that cannot be read or written is no reason to lose others
            yield PartFailed(number, reason(error))
            continue
        yield from rows
        yield PartDone(report)


def _work(connection: Connection, task: PartWork) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the job ends its workers itself
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # A worker ends when its pipe does, so none outlives a job that was killed.
    with contextlib.suppress(EOFError, ConnectionError):  # it was reset where the job left something unread
        connection.send("ready")
        while (given := connection.recv()) is not None:
            number, part, skipped = given
            try:
                connection.send(PartDone(task(number, part, skipped, lambda failed: connection.send(RowDone(failed)))))
            except BrokenPipeError:
                return
            except Exception as error:  # noqa: BLE001  as above
                connection.send(PartFailed(number, reason(error)))


def _started(process: BaseProcess) -> None:
    """Start a worker, to which Ctrl-C says nothing from its first moment on: loading takes it a second, and each that
    was interrupted there showed a traceback.
    """
    if sys.platform == "win32":  # has no masks of signals
        process.start()
        return
    resource_tracker.ensure_running()  # or the start of the first worker would, which lets the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a new process has the mask of this thread
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    def __init__(self, task: PartWork) -> None:
        context = multiprocessing.get_context("spawn")  # fork would copy locks of threads that are not copied
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, task), daemon=True)
        _started(self.process)
        other.close()  # so that the death of the process ends the pipe
        self.is_ready = False
        self.part: tuple[int, Part] | None = None
        self.rows = self.failed = 0

    def give(self, number: int, part: Part, skipped: Skipped) -> None:
        self.part, self.rows, self.failed = (number, part), 0, 0
        self.connection.send((number, part, skipped))

    def why(self) -> str:
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.connection.close()
        self.process.join(0.2)
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()


class Pool:
    """Some workers, and the parts that wait for them."""

    def __init__(self, task: PartWork, workers: int) -> None:
        self._task = task
        self._most = workers
        self._workers: list[_Worker] = []
        self._deaths: Counter[tuple[int, int]] = Counter()
        self._at_start = 0
        self._skipped: dict[int, dict[int, str]] = {}

    def run(self, parts: Sequence[tuple[int, Part]]) -> Iterator[Happened]:
        """Do all parts. Raises ``ContextfoldError`` where no worker can be started."""
        waiting = deque(parts)
        try:
            while waiting or any(worker.part for worker in self._workers):
                self._fill(waiting)
                for connection in wait([worker.connection for worker in self._workers]):
                    worker = next(one for one in self._workers if one.connection is connection)
                    yield from self._hear(worker, waiting)
        finally:
            for worker in self._workers:
                worker.stop()

    def _fill(self, waiting: deque[tuple[int, Part]]) -> None:
        for worker in self._workers:
            if waiting and worker.is_ready and worker.part is None:
                self._give(worker, waiting)
        # workers that are still starting count as idle: each will take one of the parts that wait
        idle = sum(worker.part is None for worker in self._workers)
        while len(self._workers) < self._most and len(waiting) > idle:
            self._workers.append(_Worker(self._task))
            idle += 1

    def _give(self, worker: _Worker, waiting: deque[tuple[int, Part]]) -> None:
        number, part = waiting.popleft()
        try:
            worker.give(number, part, self._skipped.get(number, {}))
        except OSError:  # it died while it was idle: the pipe tells that next
            worker.part = None
            waiting.appendleft((number, part))

    def _hear(self, worker: _Worker, waiting: deque[tuple[int, Part]]) -> Iterator[Happened]:
        try:
            said = worker.connection.recv()
        except (EOFError, OSError):
            yield from self._bury(worker, waiting)
            return
        if said == "ready":
            worker.is_ready = True
            self._at_start = 0
            return
        if isinstance(said, RowDone):
            worker.rows += 1
            worker.failed += said.failed
        else:
            worker.part = None
        yield said

    def _bury(self, worker: _Worker, waiting: deque[tuple[int, Part]]) -> Iterator[Happened]:
        self._workers.remove(worker)
        why = worker.why()
        worker.connection.close()
        if worker.part is None:
            self._at_start += not worker.is_ready
            if self._at_start >= DEATHS_AT_START:
                raise ContextfoldError(f"no worker can be started: each {why}; try --workers 0 to see the reason")
            return
        number, part = worker.part
        place = number, worker.rows
        self._deaths[place] += 1
        if self._deaths[place] > DEATHS_OF_A_ROW:  # not while the conversation was worked on: while it was read
            yield WorkerLost(worker.rows, worker.failed)
            yield PartFailed(number, f"three workers died over conversation {worker.rows + 1:,} of it, {why}")
            return
        if self._deaths[place] == DEATHS_OF_A_ROW:
            reason = f"two workers died over this conversation, {why}: it may need more memory than there is"
            self._skipped.setdefault(number, {})[worker.rows] = reason
        waiting.appendleft((number, part))
        yield WorkerLost(worker.rows, worker.failed)
