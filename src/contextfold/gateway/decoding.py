"""Compressed bodies, read along while they go on as the bytes that came.

What belongs here: what compressed bytes say, within limits of time and memory. What does not: what follows from it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

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
