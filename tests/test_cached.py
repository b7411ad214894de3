"""Values that are worked out once for an object."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import sys
import threading

import pytest

import contextfold
from contextfold.cached import cached_property

ROOMS = ("calls", "conversation", "evidence", "formats", "overflow", "passes", "record", "summary", "tiers", "tokens")


class Conversation:
    def __init__(self, worked: threading.Event | None = None, goes_on: threading.Event | None = None) -> None:
        self.worked, self.goes_on = worked, goes_on
        self.times = 0

    @cached_property
    def sizes(self) -> list[int]:
        """What it takes a while to find out."""
        self.times += 1
        if self.worked is not None and self.goes_on is not None:
            self.worked.set()
            assert self.goes_on.wait(60)
        return [1, 2]


def test_a_value_is_worked_out_once_and_the_decorator_tells_what_it_is_for() -> None:
    conversation = Conversation()
    assert conversation.sizes is conversation.sizes
    assert conversation.times == 1
    assert Conversation.sizes.__doc__ == "What it takes a while to find out."


def test_no_conversation_waits_for_the_thread_of_another() -> None:
    worked, goes_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Conversation(worked, goes_on).sizes)
    thread.start()
    assert worked.wait(60)
    other = threading.Thread(target=lambda: Conversation().sizes, daemon=True)
    other.start()
    other.join(10)
    waits = other.is_alive()
    goes_on.set()
    thread.join()
    assert not waits


@pytest.mark.skipif(not hasattr(os, "fork") or sys.version_info >= (3, 12), reason="forking with threads warns there")
def test_a_process_that_is_forked_while_another_thread_works_goes_on() -> None:
    worked, goes_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Conversation(worked, goes_on).sizes)
    thread.start()
    assert worked.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(10)  # ends it
        os._exit(0 if Conversation().sizes else 1)
    _, status = os.waitpid(child, 0)
    goes_on.set()
    thread.join()
    assert status == 0


def test_the_engine_has_no_other_one() -> None:
    for found in pkgutil.walk_packages(contextfold.__path__, "contextfold."):
        if found.name.split(".")[1] in ROOMS:
            module = importlib.import_module(found.name)
            assert getattr(module, "cached_property", cached_property) is cached_property, found.name
