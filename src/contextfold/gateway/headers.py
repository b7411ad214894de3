"""Which headers go on, from the client to the upstream and back, and which hold for other bytes than those that go.

What belongs here: names and values of headers. What does not: the headers of our own that tell a client what was done
(``app``), and a credential that is the operator's (``settings``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from multidict import CIMultiDict

RawHeaders = Sequence[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
"""RFC 9110, section 7.6.1: they are about one connection. Those that ``Connection`` names are too."""
LENGTH = b"content-length"
OURS = frozenset({b"host", LENGTH, b"expect"})
"""Written again for each request, from the address and the body."""
ABOUT_THE_BODY = frozenset({b"content-encoding", b"content-md5", b"digest", b"content-digest", b"repr-digest"})
"""They hold for the bytes that came."""
IDEMPOTENCY = frozenset({b"idempotency-key", b"x-idempotency-key"})
SWITCH = b"x-contextfold"
"""A request with ``x-contextfold: off`` is passed on untouched. Ours carry it wherever a view was made, so that a
second gateway behind this one leaves it alone."""
UNCOMPRESSED = (b"accept-encoding", b"identity")


def value_of(headers: RawHeaders, name: bytes) -> str:
    """The first value under a name in lower case; empty where there is none."""
    return next((value.decode("latin-1") for one, value in headers if one.lower() == name), "")


def for_aiohttp(headers: RawHeaders) -> CIMultiDict[str]:
    """What goes to the upstream of a request's headers, as its client takes them."""
    kept = CIMultiDict[str]()
    for name, value in forwarded(headers):
        if name.lower() not in OURS:
            kept.add(name.decode("latin-1"), as_text(value))
    return kept


def as_text(value: bytes) -> str:
    """A header's value as aiohttp takes it, which writes UTF-8 and leaves out whatever it cannot write."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")  # as Node and Python's own client write it; it goes on as UTF-8


_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def as_answered(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    """What goes to the client of an answer's headers."""
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


def beside_view(headers: RawHeaders, data: bytes, usage: str) -> RawHeaders:
    """The headers of a request whose body is ``data`` in place of the client's. ``usage``: as in the settings."""
    # Usage that is to be told otherwise is rewritten in the answer, so that has to come uncompressed.
    dropped = ABOUT_THE_BODY | ({UNCOMPRESSED[0]} if usage == "history" else set())
    kept = [_of_body(name, value, data) for name, value in headers if name.lower() not in dropped]
    kept.append((SWITCH, b"off"))
    return kept if usage == "provider" else [*kept, UNCOMPRESSED]


def of_own_request(headers: RawHeaders) -> RawHeaders:
    """The headers of a request for a summary that is made under the client's credential."""
    dropped = {UNCOMPRESSED[0], SWITCH, *ABOUT_THE_BODY, *IDEMPOTENCY}
    return [*(one for one in headers if one[0].lower() not in dropped), (SWITCH, b"off"), UNCOMPRESSED]


def _of_body(name: bytes, value: bytes, data: bytes) -> tuple[bytes, bytes]:
    """A header beside a body of ours. A key that a client sends once more with the same request names one body: with
    another one, a provider would answer what it answered to the first, such as that this was too long.
    """
    if name.lower() not in IDEMPOTENCY:
        return name, value
    return name, value + b"-" + hashlib.blake2b(data, digest_size=8).hexdigest().encode()
