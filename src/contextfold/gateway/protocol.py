"""uvicorn's HTTP/1.1, for requests that also offer another protocol, clients of HTTP/1.0, and connections that have to
be cut.

Some clients offer HTTP/2 with every request (``Upgrade: h2c``, as Java's does unless it is told otherwise), and go on
in HTTP/1.1 where nothing comes of it. The parser takes such an offer for accepted, skips the body, and uvicorn would
hand out an empty request. Here the request is read once more, without the offer.
"""

from __future__ import annotations

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


class Http(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_offer = False
        self.parser = _Reader(self)  # type: ignore[assignment]

    def on_headers_complete(self) -> None:
        # A tunnel (CONNECT) is none that could be read in another way.
        self._is_offer = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if not self._is_offer:
            super().on_headers_complete()
            self.scope[ABORT] = self.reset  # type: ignore[literal-required]
            if self.scope["http_version"] == OF_1_0:
                self.cycle.send = _until_closed(self.cycle)  # type: ignore[method-assign, assignment]

    def on_message_complete(self) -> None:
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
