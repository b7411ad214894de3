"""How long an event loop is held: by what its own thread computes, and by single calls of functions written in C."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

AT_MOST = 0.020
"""Seconds. A loop that answers others as well is late by no more than a frame of a film."""

TRIES = 3
"""A thread may be slowed down by what runs beside it; what the code does comes back."""

Holds = list[tuple[float, str]]


@contextmanager
def watched(holds: Holds) -> Iterator[None]:
    """Notes how long each call of a C function takes in threads that are started meanwhile, where it calls nothing."""
    own = threading.local()

    def look(frame: FrameType, event: str, called: Any) -> None:
        calls: list[float] = own.__dict__.setdefault("calls", [])
        if event == "c_call":
            calls.append(time.thread_time())
        elif event.startswith("c_") and calls:
            holds.append((time.thread_time() - calls.pop(), f"{called.__qualname__} in {frame.f_code.co_qualname}"))
            holds[:] = [max(holds)] if len(holds) > 100 else holds
        elif event == "call":  # a C function that runs Python code holds nothing
            calls[:] = [math.inf] * len(calls)

    threading.setprofile(look)
    try:
        yield
    finally:
        threading.setprofile(None)


async def turns(holds: Holds, clock: Callable[[], float] = time.thread_time) -> None:
    """Notes how long the loop's own thread computes from one turn of this task to the next, or whatever has a clock."""
    before = clock()
    while True:
        await asyncio.sleep(0.001)
        now = clock()
        holds.append((now - before, "the loop's own thread"))
        before = now
