"""Toward the provider: one connection pool, the client's own headers, and the answer as the bytes that come.

What belongs here: HTTP. What does not: what is in a body, and what follows from an answer (``exchange``).
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from inspect import signature
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.request import getproxies, proxy_bypass, proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp
from multidict import CIMultiDict
from yarl import URL

RawHeaders = Sequence[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
"""RFC 9110, section 7.6.1: they are about one connection. Those that ``Connection`` names are too."""
_LENGTH = b"content-length"
_OURS = frozenset({b"host", _LENGTH, b"expect"})
"""Written again for each request, from the address and the body."""
_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""What aiohttp would add where a client sent none."""

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
        return next((value.decode("latin-1") for one, value in self.headers if one.lower() == name), "")

    @property
    def is_stream(self) -> bool:
        return self.header(b"content-type").startswith("text/event-stream")

    async def chunks(self) -> AsyncIterator[bytes]:
        """All bytes, as they come. Raises ``UpstreamFailed`` where they stop before the end."""
        while self.ahead:
            yield self.ahead.pop(0)
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
        given = _for_aiohttp(headers)
        if data is not None and not isinstance(data, bytes):
            # Of pieces aiohttp cannot tell the length: without the client's own word they would go out in chunks.
            given.extend([("Content-Length", _text(value)) for name, value in headers if name.lower() == _LENGTH])
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
        answered = _as_answered(response.raw_headers)
        if response.status == 304:  # the length is of what the client has already, and uvicorn would miss those bytes
            answered = [(name, value) for name, value in answered if name.lower() != _LENGTH]
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


def _for_aiohttp(headers: RawHeaders) -> CIMultiDict[str]:
    kept = CIMultiDict[str]()
    for name, value in forwarded(headers):
        if name.lower() not in _OURS:
            kept.add(name.decode("latin-1"), _text(value))
    return kept


def _text(value: bytes) -> str:
    """A header's value as aiohttp takes it, which writes UTF-8 and leaves out whatever it cannot write."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")  # as Node and Python's own client write it; it goes on as UTF-8


_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def _as_answered(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    # Control characters are not allowed in a value. aiohttp lets some of them in, and uvicorn none out: it would cut
    # the client's connection in place of the answer. RFC 9110, section 5.5, has a blank in their stead.
    return [(name, _CONTROL.sub(b" ", value)) for name, value in forwarded(headers)]


def forwarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that are about the message, and not about the connection."""
    kept = [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP]
    named = [value for name, value in headers if name.lower() == b"connection"]
    if named:
        dropped = {token.strip().lower() for value in named for token in value.split(b",")}
        kept = [(name, value) for name, value in kept if name.lower() not in dropped]
    return kept


MOST_DECODED = 64 * 1024 * 1024
"""Bytes that one piece of compressed bytes may become. A few hundred bytes of Brotli can stand for gigabytes; what says
more than this is passed on unread."""


class Decoder:
    """Reads along with compressed bytes. ``is_known``: whether this encoding is known here, and still makes sense."""

    def __init__(self, encoding: str) -> None:
        self._feed: Any = None
        name = encoding.strip().lower()
        if name in ("", "identity"):
            self._feed = _same
        elif name in ("gzip", "x-gzip"):
            self._feed = _inflating(zlib.MAX_WBITS | 16)
        elif name == "deflate":
            self._feed = _deflated()
        elif name == "br":
            self._feed = _brotli()
        elif name == "zstd":
            self._feed = _zstd()

    @property
    def is_known(self) -> bool:
        return self._feed is not None

    def feed(self, data: bytes) -> bytes:
        """What these bytes say; empty where that cannot be told (any more)."""
        if self._feed is None:
            return b""
        try:
            return bytes(self._feed(data))
        except Exception:  # noqa: BLE001 - each library has its own errors; reading along is all that ends
            self._feed = None
            return b""


def _same(data: bytes) -> bytes:
    return data


class _TooMuch(Exception):
    """It becomes more than ``MOST_DECODED`` bytes."""


MOST_MEMBERS = 1_024
"""Of one body in gzip, or frames of Zstandard: each costs time, whatever it says."""
_INFLATED = 64 * 1024
"""Bytes that are inflated at once: behind each member the rest of them is copied."""


def _members(
    another: Callable[[], Any], read: Callable[[Any, bytes, int], bytes], step: int
) -> Callable[[bytes], bytes]:
    """One reader behind the other: in both formats several compressed texts may stand for the one that they make
    together, as parallel compressors write them. ``step``: bytes that are read at once.
    """
    reader, count = another(), 1

    def feed(data: bytes) -> bytes:
        nonlocal reader, count
        found, size = [], 0
        for at in range(0, len(data), step):
            rest = data[at : at + step]
            while rest:
                if reader.eof:
                    rest = rest if rest.strip(b"\0") else b""  # some pad what they wrote
                    if not rest:
                        break
                    reader, count = another(), count + 1
                if count > MOST_MEMBERS or size >= MOST_DECODED:
                    raise _TooMuch
                found.append(read(reader, rest, MOST_DECODED - size))
                size += len(found[-1])
                rest = reader.unused_data if reader.eof else b""
        if size > MOST_DECODED:
            raise _TooMuch
        return b"".join(found)

    return feed


def _inflating(bits: int) -> Callable[[bytes], bytes]:
    def another() -> Any:
        return zlib.decompressobj(bits)

    def read(reader: Any, data: bytes, most: int) -> bytes:
        found: bytes = reader.decompress(data, most)
        if reader.unconsumed_tail:
            raise _TooMuch
        return found

    return _members(another, read, _INFLATED)


def _deflated() -> Callable[[bytes], bytes]:
    """Zlib's format, as the standard has it, or what stands inside of it, as some clients write it."""
    feed: Callable[[bytes], bytes] | None = None

    def first(data: bytes) -> bytes:
        nonlocal feed
        if feed is None and data:
            # RFC 1950: the method is 8, and the first two bytes are a multiple of 31.
            is_zlib = data[0] & 15 == 8 and (len(data) < 2 or int.from_bytes(data[:2], "big") % 31 == 0)
            feed = _inflating(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
        return feed(data) if feed is not None else b""

    return first


def _brotli() -> Callable[[bytes], bytes] | None:
    try:
        import brotli
    except ImportError:
        return None
    reader = brotli.Decompressor()
    if not hasattr(reader, "can_accept_more_data"):  # a release before 1.2, which has no limit to what it gives
        return None

    def feed(data: bytes) -> bytes:
        found: bytes = reader.process(data, output_buffer_limit=MOST_DECODED)
        if not reader.is_finished() and not reader.can_accept_more_data():
            raise _TooMuch
        return found

    return feed


_SLICE = 256
"""Bytes of Zstandard that are decoded at once: they become a few megabytes at most, and the library has no limit."""


def _zstd() -> Callable[[bytes], bytes] | None:
    try:
        import zstandard
    except ImportError:
        return None

    def another() -> Any:
        return zstandard.ZstdDecompressor().decompressobj()

    def read(reader: Any, data: bytes, _: int) -> bytes:
        return bytes(reader.decompress(data))

    return _members(another, read, _SLICE)
