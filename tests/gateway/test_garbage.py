"""Full collections in a process that is a gateway: short, and nothing is kept for good."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from contextfold.gateway import garbage
from contextfold.gateway.garbage import Garbage, look_at_all


class Thing:
    """Something that may stand in a circle."""

    def __init__(self) -> None:
        self.other: object = self


@contextmanager
def begun(*, is_busy: bool = False) -> Iterator[None]:
    work = Garbage(lambda: is_busy)
    work.start()
    try:
        yield
    finally:
        work.stop()


def looked_at() -> int:
    return len(gc.get_objects())


def test_what_survived_a_full_collection_is_not_looked_at_again_and_yet_freed() -> None:
    async def work() -> None:
        before = looked_at()
        with begun():
            assert looked_at() < before / 10
            kept = [[n] for n in range(10_000)]
            gc.collect()
            assert looked_at() < before / 10
            thing = Thing()
            gone = weakref.ref(thing)
            thing.other = kept
            gc.collect()
            del thing, kept  # no circle: no collection is needed
            assert gone() is None
        assert looked_at() > before / 2

    asyncio.run(work())


def test_old_circles_are_found_now_and_then_even_while_it_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"THOROUGH": 0.02, "QUIET": 0.02, "MOST": 0.2, "STEP": 0.01}.items():
        monkeypatch.setattr(garbage, f"{name}_SECONDS", seconds)

    async def work(is_busy: bool) -> None:
        with begun(is_busy=is_busy):
            thing = Thing()
            gc.collect()
            gone = weakref.ref(thing)
            del thing
            gc.collect()
            assert gone() is not None  # it was old by then
            until = time.monotonic() + 10
            while gone() is not None and time.monotonic() < until:
                await asyncio.sleep(0.02)
            assert gone() is None

    for is_busy in (False, True):
        asyncio.run(work(is_busy))


def test_looking_at_all_spares_nothing() -> None:
    async def work() -> None:
        with begun():
            thing = Thing()
            gc.collect()
            gone = weakref.ref(thing)
            del thing
            look_at_all()
            assert gone() is None

    asyncio.run(work())
