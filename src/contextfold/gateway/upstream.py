"""Toward the provider: one connection pool, its proxies, and the answer as the bytes that come.

What belongs here: HTTP. What does not: which headers go on (``headers``), what a body says (``body``, ``decoding``),
and what follows from an answer (``exchange``).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from inspect import signature
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.request import getproxies, proxy_bypass, proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp
from yarl import URL

from contextfold.gateway.decoding import Decoder
from contextfold.gateway.headers import LENGTH, RawHeaders, as_answered, as_text, for_aiohttp, value_of

_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""What aiohttp would add where a client sent none."""

_EVENT = re.compile(rb"(?:event|data|id|retry)?:")

_MOST_HEADERS = 1_024
"""aiohttp's own limit is 128: litellm alone writes each header of its upstream twice."""
_MORE_HEADERS: Mapping[str, Any] = (
    {"max_headers": _MOST_HEADERS} if "max_headers" in signature(aiohttp.ClientSession).parameters else {}
)

CONNECT_SECONDS = 15.0
KEEP_ALIVE_SECONDS = 15.0
"""Shorter than any provider's: a request on a connection that the other side has just closed is lost."""


class UpstreamFailed(Exception):
    """No answer could be had. ``kind``: ``unreachable``, ``reset`` or ``timeout``; ``status``: what the client gets."""

    def __init__(self, kind: str, status: int, text: str) -> None:
        self.kind = kind
        self.status = status
        super().__init__(text)


@dataclass(slots=True)
class UpstreamAnswer:
    """An answer whose status and headers are here. ``ahead`` was read before it is handed out; the rest follows."""

    status: int
    headers: list[tuple[bytes, bytes]]
    response: aiohttp.ClientResponse | None
    ahead: list[bytes] = field(default_factory=list)

    def header(self, name: bytes) -> str:
        return value_of(self.headers, name)

    @property
    def is_stream(self) -> bool:
        kind = self.header(b"content-type")
        return kind.startswith("text/event-stream") or (not kind and self._begins_with_an_event())

    def _begins_with_an_event(self) -> bool:
        text = Decoder(self.header(b"content-encoding")).feed(b"".join(self.ahead))
        return _EVENT.match(text) is not None

    async def begin(self, seconds: float) -> None:
        """Read what tells what an answer is that does not say it, as ChatGPT's streams to Codex do not."""
        if not self.header(b"content-type"):
            await self.whole(0, seconds)  # its first bytes

    @property
    def is_plain(self) -> bool:
        """Whether its bytes can be read, and others put in their place, as they come."""
        return self.header(b"content-encoding") in ("", "identity")

    async def is_list(self) -> bool:
        """Whether it begins as a list, as a stream of Gemini's does whose client does not ask for events."""
        await self.whole(0)  # its first bytes
        return self.is_plain and b"".join(self.ahead).lstrip().startswith(b"[")

    async def chunks(self) -> AsyncIterator[bytes]:
        """All bytes, as they come. Raises ``UpstreamFailed`` where they stop before the end."""
        ahead, self.ahead = self.ahead, []  # to take them out one by one costs the square of their number
        for chunk in ahead:
            yield chunk
        while chunk := await self.next():
            yield chunk

    async def next(self) -> bytes:
        """The next bytes; empty at the end. How long they may take is the session's matter."""
        if self.response is None:
            return b""
        try:
            return await self.response.content.readany()
        except TimeoutError:
            self.close()
            raise UpstreamFailed("timeout", 504, "the upstream fell silent in the middle of its answer") from None
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            text = f"the upstream broke off its answer: {error or type(error).__name__}"
            raise UpstreamFailed("reset", 502, text) from None

    async def next_within(self, seconds: float) -> bytes | None:
        """The next bytes; None where they do not come in time. Nothing is lost then: they come with the next call."""
        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                return await self.next()
        except TimeoutError:
            return None

    async def whole(self, most: int, seconds: float | None = None) -> bytes | None:
        """The whole body; None where it has more bytes than ``most``, or has not ended within ``seconds``. What was
        read is kept, so that it can be handed out afterwards.
        """
        loop = asyncio.get_running_loop()
        until, size = loop.time() + (seconds or 0.0), sum(map(len, self.ahead))
        while size <= most:
            chunk = await (self.next() if seconds is None else self.next_within(max(0.0, until - loop.time())))
            if chunk is None:
                return None
            if not chunk:
                self.ahead = [b"".join(self.ahead)]
                self.release()
                return self.ahead[0]
            self.ahead.append(chunk)
            size += len(chunk)
        return None

    def release(self) -> None:
        """Everything was read: the connection can serve another request."""
        if self.response is not None:
            self.response.release()
            self.response = None

    def close(self) -> None:
        """The rest is not wanted: the connection ends, so that the provider stops working on it."""
        if self.response is not None:
            self.response.close()
            self.response = None


class Client:
    """Sends requests. Made inside the event loop that uses it."""

    def __init__(self, connections: int, silence: float) -> None:
        """``silence``: seconds that may pass before an answer begins, and between two pieces of it."""
        self._silence = silence
        self._proxies: dict[URL, Mapping[str, Any]] = {}
        connector = aiohttp.TCPConnector(limit=connections, keepalive_timeout=KEEP_ALIVE_SECONDS, ttl_dns_cache=60)
        self._session = aiohttp.ClientSession(
            connector=connector,
            # the bytes go on to the client as they came
            auto_decompress=False,
            # all clients share this session: none may get another's cookies
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence),
            skip_auto_headers=_AUTOMATIC,
            requote_redirect_url=False,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
            **_MORE_HEADERS,
        )

    async def send(self, method: str, url: str, headers: RawHeaders, data: Any) -> UpstreamAnswer:
        """The beginning of an answer to a body of bytes, or one that comes in pieces. Raises ``UpstreamFailed``."""
        given = for_aiohttp(headers)
        if data is not None and not isinstance(data, bytes):
            # Of pieces aiohttp cannot tell the length: without the client's own word they would go out in chunks.
            given.extend([("Content-Length", as_text(value)) for name, value in headers if name.lower() == LENGTH])
        elif data is not None and len(data) > _AT_ONCE:
            given.add("Content-Length", str(len(data)))
            data = _in_pieces(data)
        try:
            # Redirects are the client's to follow: its credential goes where the client sent it, and nowhere else.
            to = URL(url, encoded=True)
            response = await self._session.request(
                method, to, headers=given, data=data, allow_redirects=False, **self._proxy_for(to)
            )
        except aiohttp.ClientHttpProxyError as error:
            # its own text has the proxy's address, and with it the operator's password
            text = f"the proxy before the upstream refused to connect: {error.status} {error.message}"
            raise UpstreamFailed("unreachable", 502, text) from None
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            raise UpstreamFailed("unreachable", 502, f"the upstream cannot be reached: {error}") from None
        except TimeoutError:
            text = f"the upstream's answer did not begin within {self._silence:g} seconds"
            raise UpstreamFailed("timeout", 504, text) from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"the upstream broke off: {error or type(error).__name__}"
            raise UpstreamFailed("reset", 502, text) from None
        # 101 would end HTTP on a connection where nothing else was offered; beyond 599 there is no status.
        if not 200 <= response.status <= 599:
            response.close()
            raise UpstreamFailed("reset", 502, f"the upstream answered with the status {response.status}")
        answered = as_answered(response.raw_headers)
        if response.status == 304:  # the length is of what the client has already, and uvicorn would miss those bytes
            answered = [(name, value) for name, value in answered if name.lower() != LENGTH]
        return UpstreamAnswer(response.status, answered, response)

    def _proxy_for(self, url: URL) -> Mapping[str, Any]:
        # Once for each upstream, and by ourselves. With `trust_env` aiohttp would read the environment and ~/.netrc in
        # two threads for every request, and add the operator's password from there to a request that has a key of
        # another kind.
        origin = url.origin()
        if origin not in self._proxies:
            self._proxies[origin] = proxy_for(url)
        return self._proxies[origin]

    async def close(self) -> None:
        await self._session.close()
        await asyncio.sleep(0.02)  # the loop needs a moment to close the sockets, and may end at once behind this


_AT_ONCE = 1024 * 1024
"""Bytes of a body that are handed to the connection in one piece. It keeps a copy of what the other side has not taken
yet, and aiohttp warns of megabytes: an error where warnings are errors."""


async def _in_pieces(data: bytes) -> AsyncIterator[memoryview]:
    view = memoryview(data)
    for at in range(0, len(view), _AT_ONCE):
        yield view[at : at + _AT_ONCE]


def proxy_for(url: URL) -> Mapping[str, Any]:
    """The proxy that the environment names for this address, as aiohttp takes it; nothing where there is none."""
    proxies = getproxies()
    named = proxies.get(url.scheme) or _of_http(proxies.get("all", ""))
    if not named or _is_excepted(url, proxies.get("no", "")):
        return {}
    # as curl and others read it; aiohttp takes a name and a password out of it
    return {"proxy": URL(named if "://" in named else f"http://{named}")}


def _is_excepted(url: URL, said: str) -> bool:
    """``said``: ``NO_PROXY``. Python alone knows no ranges of addresses, no ``*``, no brackets, no dot at the end of a
    name, and no blanks between two, as each of curl, Go, Node and others knows some of them.
    """
    host = (url.host or "").rstrip(".")
    names = [name.strip("[").rstrip(".") for name in re.split(r"[\s,]+", said.replace("]", "")) if name]
    plain = {"no": ",".join(name[1:] if name.startswith("*.") else name for name in names)}
    for one in (host, f"{host}:{url.port}"):
        if proxy_bypass(one) or proxy_bypass_environment(one, plain):
            return True
    return any(_is_in_range(host, name) if "/" in name else "*" in name and fnmatch(host, name) for name in names)


def _is_in_range(host: str, named: str) -> bool:
    try:
        return ip_address(host) in ip_network(named, strict=False)
    except ValueError:  # a host's name, or no range
        return False


def _of_http(named: str) -> str:
    """The proxy for all schemes, which mostly speaks SOCKS: nothing then, since that is not spoken here."""
    return named if named.partition("://")[0] in ("http", "https", named) else ""
