"""uvicorn's HTTP/1.1, for requests that also offer another protocol, clients of HTTP/1.0, heads without an end, and
connections that have to be cut.

Some clients offer HTTP/2 with every request (``Upgrade: h2c``, as Java's does unless it is told otherwise), and go on
in HTTP/1.1 where nothing comes of it. The parser takes such an offer for accepted, skips the body, and uvicorn would
hand out an empty request. Here the request is read once more, without the offer.

Neither uvicorn nor its parser has a limit for what stands before a body: a head that never ends would be kept whole,
and one long value copied again with each piece of it. And what stands behind a body in chunks they add to its headers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import httptools
from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

ABORT = "contextfold.abort"
"""In a request's scope: what cuts its connection. One that is merely closed waits until what was written is taken; a
client that takes nothing would keep it for good."""

OF_1_0 = "1.0"
"""The version whose clients know no chunks."""

MOST_HEAD = 256 * 1024
"""Bytes that may come without being the end of a head, or part of a body. One read of the socket may add to them."""


class Http(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *arguments: Any, client_seconds: float, **named: Any) -> None:
        """``client_seconds``: within which the head of a request has to be here."""
        super().__init__(*arguments, **named)
        self._is_offer = False
        self._seconds = client_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._is_in_head = False
        self._has_moved = False
        """Whether the last bytes ended a head, or were part of a body."""
        self._waited = 0
        """Bytes that came since then."""
        self._is_deaf = False
        """Whether what comes is of no interest any more: the connection ends with the answer that is being given."""
        self.parser = _Reader(self)  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(self._seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        self._has_moved = False
        super().data_received(data)
        if self.transport.is_closing():
            self._stop_timer()
            return
        self._waited = 0 if self._has_moved else self._waited + len(data)
        if self._waited > MOST_HEAD and self._owes_an_answer and not self.cycle.more_body:
            # It belongs to a next request. What was asked before costs its answer nothing.
            self._is_deaf, self.cycle.keep_alive = True, False
            self._stop_timer()
            return
        if self._waited > MOST_HEAD:
            self._let_go("431 Request Header Fields Too Large", f"headers may have {MOST_HEAD:,} bytes")
            return
        if self._has_moved:
            self._stop_timer()
        if self._timer is None and (self._is_in_head or not self._has_moved):
            self._timer = self.loop.call_later(self._seconds, self._head_is_late)

    @property
    def _owes_an_answer(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _head_is_late(self) -> None:
        self._timer = None
        if self._owes_an_answer:
            # What was asked before is still being answered, or read by what has a time limit of its own. Unless a next
            # request has begun, the connection is then kept as every other: an empty line behind a body is no head.
            if self._is_in_head:
                self._timer = self.loop.call_later(self._seconds, self._head_is_late)
        elif self._is_in_head:
            self._let_go(
                "408 Request Timeout", f"the headers of the request did not come within {self._seconds:g} seconds"
            )
        else:
            self.transport.close()

    def _let_go(self, status: str, text: str) -> None:
        """Refuse what cannot be answered in the shape of any provider, since its path may not be known yet."""
        self._stop_timer()
        if not self._owes_an_answer:
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\n"
            self.transport.write(f"{head}connection: close\r\n\r\n{text}".encode())
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # RFC 9110, section 6.5.1: fields behind the body are no headers. A proxy that decides by the headers, such as
        # whose credential goes on, has never seen them.
        if self._is_in_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._has_moved = True
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._is_in_head, self._has_moved = False, True
        # A tunnel (CONNECT) is none that could be read in another way.
        self._is_offer = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if not self._is_offer:
            super().on_headers_complete()
            self.scope[ABORT] = self.reset  # type: ignore[literal-required]
            if self.scope["http_version"] == OF_1_0:
                self.cycle.send = _until_closed(self.cycle)  # type: ignore[method-assign, assignment]

    def on_message_complete(self) -> None:
        self._has_moved = True
        if not self._is_offer:
            super().on_message_complete()

    def reset(self) -> None:
        """Cut the connection, so that the client sees an error and no end."""
        with suppress(OSError):  # it may have ended by itself
            given = self.transport.get_extra_info("socket")
            given.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def without_offer(self) -> bytes:
        """The head of the request that was just read, without what it offered."""
        lines = [b"%s: %s\r\n" % (name, value) for name, value in self.headers if name != b"upgrade"]
        version = self.parser.get_http_version().encode()
        return b"%s %s HTTP/%s\r\n%s\r\n" % (self.parser.get_method(), self.url, version, b"".join(lines))

    @property
    def is_offer(self) -> bool:
        """Whether the head that was read last offers another protocol."""
        return self._is_offer


def _until_closed(cycle: RequestResponseCycle) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """Sends an answer whose length is not known without chunks, which uvicorn would write to anyone: its end is that of
    the connection (RFC 9112, section 6.3).
    """
    write, is_bare = cycle.send, False

    async def send(message: Message) -> None:
        nonlocal is_bare
        if message["type"] == "http.response.start":
            is_bare = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if is_bare:
                cycle.chunked_encoding = False
        elif is_bare:
            cycle.expected_content_length = len(message.get("body", b""))
        await write(message)  # type: ignore[arg-type]

    return send


class _Reader:
    """A parser that begins again where it stopped at an offer."""

    def __init__(self, protocol: Http) -> None:
        self._protocol = protocol
        self._parser = self._fresh()

    def _fresh(self) -> Any:
        parser = httptools.HttpRequestParser(self._protocol)
        if hasattr(parser, "set_dangerous_leniencies"):  # as uvicorn has it
            parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def feed_data(self, data: bytes) -> None:
        """As httptools has it."""
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                if not self._protocol.is_offer:
                    raise
                data = self._protocol.without_offer() + data[offer.args[0] :]
                self._parser = self._fresh()
            else:
                return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)
