"""The passes of one request: others of its conversation wait for one under way, and it goes on where its client leaves.

What belongs here: when a request goes on, and when it ends with its client. What does not: what a pass does
(``exchange``).
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from contextfold.gateway.call import State

T = TypeVar("T")


class Overtaken(Exception):
    """The pass that this request needs was made for another one meanwhile: it begins again under that record."""


class Passing:
    """The view and the passes of one request, for which others of its conversation wait. They go on where its client
    leaves: a client with a time limit comes back, and each time another summary would be paid for.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._before = state.record
        self._ended: asyncio.Event | None = None
        self._is_left = False

    async def begin(self) -> None:
        """A pass is next, and none besides. Raises ``Overtaken`` where another request has made it."""
        # Those that came at the same moment all found none under way.
        if self._ended is None:
            await none_under_way(self._state)
        if self._state.record is not self._before:
            raise Overtaken
        self._hold()

    def _hold(self) -> None:
        # The same one at a second try, under another window: the others wait for it.
        self._ended = self._state.under_way = self._ended or asyncio.Event()

    def made(self) -> None:
        """It came to a record, which is in force."""
        self._before = self._state.record

    def end(self, _: object = None) -> None:
        """None is under way any more, whatever came of it."""
        if self._ended is not None:
            self._ended.set()
            self._state.under_way = None if self._state.under_way is self._ended else self._state.under_way
            self._ended = None

    def go_on(self) -> None:
        """A view is to be sent. Raises ``CancelledError`` where no one waits for its answer."""
        self.end()
        if self._is_left:
            raise asyncio.CancelledError

    async def outlived(self, work: asyncio.Task[T]) -> T:
        """What becomes of a request, which is canceled with its client once its view is made. None is under way yet."""
        # Until then others wait: of those that come at the same moment each would prepare a summary beside itself.
        self._hold()
        work.add_done_callback(self.end)
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            self._is_left = True
            if self._ended is None:
                work.cancel()
            await asyncio.wait({work})  # it counts among the requests at a time until it has ended
            raise
        return work.result()


async def none_under_way(state: State) -> None:
    """Return when no pass of the conversation is under way: a summary is paid for once."""
    while state.under_way is not None:
        await state.under_way.wait()
