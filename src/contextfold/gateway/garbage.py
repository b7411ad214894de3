"""Python's search for garbage in a process that remembers many conversations.

Each remembered message is a few objects, and a full collection looks at all of them: with 64 conversations of 2 MB a
million objects, and no request is served for the third of a second that it takes. So what survived one full collection
is not looked at by the next. It is freed all the same as soon as nothing refers to it; only circles among such old
objects stay, such as those of connections that were open for long. These are looked for now and then, in a moment
without requests if there is one.

What belongs here: settings of the process. So it is for a process that is a gateway and nothing else.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

THOROUGH_SECONDS = 300.0
"""How often everything is looked at where it is quiet."""
QUIET_SECONDS = 2.0
"""Without a request: between two turns of an agent there often is none for a moment, and the next one would wait."""
MOST_SECONDS = 1_800.0
"""How often it is in any case."""
STEP_SECONDS = 0.1


class Garbage:
    """Full collections of this process spare what survived one. ``is_busy``: whether requests are being served."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy = is_busy
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """From now on. Needs a running event loop."""
        gc.callbacks.append(_spare)
        gc.collect()
        self._task = asyncio.create_task(self._now_and_then())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        gc.callbacks.remove(_spare)
        gc.unfreeze()

    async def _now_and_then(self) -> None:
        while True:
            await asyncio.sleep(THOROUGH_SECONDS)
            waited, quiet = THOROUGH_SECONDS, 0.0
            while quiet < QUIET_SECONDS and waited < MOST_SECONDS:
                await asyncio.sleep(STEP_SECONDS)
                waited += STEP_SECONDS
                quiet = 0.0 if self._is_busy() else quiet + STEP_SECONDS
            look_at_all()


def look_at_all() -> None:
    """A full collection that spares nothing."""
    gc.unfreeze()
    gc.collect()


def _spare(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
