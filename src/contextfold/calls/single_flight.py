"""Several calls for the same state of one conversation at the same time: one makes the pass, the others wait for it.

What belongs here: who makes it, and waiting. What does not: whether its outcome serves the call that waited
(``calls.attempts``, ``integrations.langchain.folding``), and other processes (``store``, ``Request.once``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from contextfold.errors import is_control_flow
from contextfold.passes.means import Made, Nothing
from contextfold.ports import CANCEL_SECONDS, Ports, Worker


class _Flight:
    """A pass that is being made. Over without an outcome and without an error: it was given up."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.outcome: Made | Nothing | None = None
        self.error: Exception | None = None
        self.is_over = False


class SingleFlight:
    """The passes that are being made over what one memory, or one middleware, serves. Safe in threads, and across event
    loops."""

    def __init__(self) -> None:
        self._flying: dict[Hashable, _Flight] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # What is being made is made in this process: a copy begins with nothing.
        return type(self), ()

    async def made(
        self,
        key: Hashable,
        making: Callable[[], Awaitable[Made | Nothing]],
        ports: Ports,
        seconds: float | None,
    ) -> tuple[Made | Nothing, bool]:
        """What comes of a pass, and whether it is that of another call. ``key``: equal for calls that would make the
        same one. ``seconds``: for which another call is waited for; None for any time.

        An error of the other call is raised here, too: it would come again. Where that was given up, as by a task that
        is cancelled, or cannot go on while this one waits, the pass is made here. Raises ``Cancelled``.
        """
        # A process that was forked has nothing of what its parent is doing.
        key = (os.getpid(), key)
        until = None if seconds is None else ports.clock.now() + seconds
        worker = Worker.over(ports)
        while (other := self._other(key, own := _Flight(worker))) is not None:
            while not other.is_over and (until is None or ports.clock.now() < until):
                if not other.worker.can_be_awaited_by(worker):
                    break
                await ports.sleep(CANCEL_SECONDS)
            if other.error is not None:
                raise other.error
            if other.outcome is not None:
                return other.outcome, True
            if not other.is_over:  # on an event loop that no one runs any more, or that this call holds up
                return await making(), False
        try:
            own.outcome = await making()
        except Exception as error:
            own.error = None if is_control_flow(error) else error
            raise
        finally:
            with self._lock:
                del self._flying[key]
            own.is_over = True
        return own.outcome, False

    def _other(self, key: Hashable, own: _Flight) -> _Flight | None:
        """The flight of another call; None where this one's own has begun."""
        with self._lock:
            found = self._flying.setdefault(key, own)
        return None if found is own else found
