"""The client's side of one request: its body as it comes, the answer as it takes it, and whether it is still there.

What belongs here: ASGI messages of one client, and its time limits. What does not: what is answered (``app``).
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable

from starlette.types import Message, Receive, Send

from contextfold.gateway.settings import GatewaySettings


class ClientGone(Exception):
    """The client has left."""


class TooSlow(Exception):
    """The client took too long to send its request, or to take its answer."""


_LAST_EVENT = re.compile(
    rb"^(?:data: ?\[DONE\]|event: ?(?:message_stop|response\.(?:completed|incomplete|failed))\b)", re.MULTILINE
)
_PIECES = 4
"""So many of the newest hold a stream's last event, which with OpenAI Responses has the whole answer in it."""


class Caller:
    """The client's side of one request."""

    def __init__(self, receive: Receive, send: Send, settings: GatewaySettings) -> None:
        self.send = send
        self.started = False
        self.problem: ClientGone | TooSlow | None = None
        """Why no more of its request comes, if it broke off."""
        self._receive = receive
        self._seconds = settings.client_seconds
        self._is_complete = False
        self._is_sending = False
        self._sent = 0
        self._newest: deque[bytes] = deque(maxlen=_PIECES)
        self._is_over = False
        """Whether the work was canceled because of this client."""

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout(self._seconds):
                message = await self._receive()
        except TimeoutError:
            self.problem = TooSlow(f"no more of the request came for {self._seconds:g} seconds")
            raise self.problem from None
        if message["type"] == "http.disconnect":
            self.problem = ClientGone()
            raise self.problem
        self._is_complete = not message.get("more_body", False)
        return message

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while not self._is_complete:
            message = await self._next()
            if message.get("body"):
                yield message["body"]

    async def body(self, most: int) -> bytes:
        """The whole body. Raises ``OverflowError`` where it has more bytes than it may."""
        first = await self._next()
        if self._is_complete and len(first.get("body", b"")) <= most:
            return bytes(first.get("body", b""))
        found, size = [first.get("body", b"")], len(first.get("body", b""))
        async for piece in self.pieces():
            size += len(piece)
            if size > most:
                raise OverflowError
            found.append(piece)
        if size > most:
            raise OverflowError
        return b"".join(found)

    async def while_there(self, work: Awaitable[int]) -> int:
        """The work's result. It is cancelled when the client leaves, or takes nothing of its answer any more.

        Two timers and one task per request, and none per piece of an answer.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        reasons: list[Exception] = []

        def end(reason: Exception) -> None:
            if not reasons:
                self._is_over = True
                reasons.append(reason)
                task.cancel()

        async def gone() -> None:
            while not self._is_complete:  # the request is still being read by the work itself
                await asyncio.sleep(0.05)
            while (await self._receive())["type"] != "http.disconnect":
                pass
            end(ClientGone())

        timers: list[asyncio.TimerHandle] = []

        def beat(at_last: int) -> None:
            if self._is_sending and self._sent == at_last:
                end(TooSlow(f"the client took nothing of its answer for {self._seconds:g} seconds"))
            timers[:] = [loop.call_later(self._seconds, beat, self._sent)]

        beat(-1)
        watch = loop.create_task(gone())
        try:
            return await work
        except asyncio.CancelledError:
            if not reasons:
                raise
            # cancelled by the watch or the timer and not from outside: the task goes on, and says why to the client
            task.uncancel()
            raise reasons[0] from None
        finally:
            timers[0].cancel()
            watch.cancel()

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._newest.append(data)

    @property
    def has_last_event(self) -> bool:
        """Whether the last event of a stream was sent: behind it many clients close their connection at once."""
        said = b"".join(self._newest)
        return said.endswith((b"\n\n", b"\n\r\n")) and _LAST_EVENT.search(said) is not None

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, message: Message) -> None:
        if self._is_over:
            # What the work awaited may have taken the cancellation for its own (a connection that was just being
            # opened): without this it would relay the answer to no one for as long as there is one.
            raise asyncio.CancelledError
        self._is_sending = True
        await self.send(message)
        self._is_sending = False
        self._sent += 1
