"""Requests and answers as clients, proxies and providers really send them, odd ones included. One server per kind."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import logging
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from emulator import ProviderServer
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from tests.gateway.conftest import RawUpstream, Seen, Writer, settings_for
from tests.gateway.requests_made import PATHS, Response, body_of, compact, post, turns

from contextfold.gateway import refusals
from contextfold.gateway.app import make_app
from contextfold.gateway.caller import Caller, ClientGone
from contextfold.gateway.protocol import MOST_HEAD
from contextfold.gateway.serve import InThread

CHAT = PATHS["openai-chat"]
LONG = compact(body_of("openai-chat", list(turns("openai-chat", 40))[-1]))
"""Several windows of a conversation."""
SHORT = compact(body_of("openai-chat", [{"role": "user", "content": "hi"}]))


class Scene:
    """A gateway before an upstream that does with the next requests what a test says."""

    def __init__(self, upstream: RawUpstream, gateway: InThread) -> None:
        self.upstream = upstream
        self.gateway = gateway
        self.url = gateway.url

    @property
    def last(self) -> Seen:
        return self.upstream.seen[-1]

    def raw(self, request: bytes, *, until: Callable[[bytes], bool] = lambda _: False) -> bytes:
        """The bytes that come back for the bytes of a request, until the connection ends or enough is there."""
        with socket.create_connection(("127.0.0.1", self.gateway.port), timeout=5) as client:
            client.sendall(request)
            return received(client, until)


def received(client: socket.socket, until: Callable[[bytes], bool]) -> bytes:
    found = b""
    while not until(found) and (piece := client.recv(65_536)):
        found += piece
    return found


async def ok(writer: Writer, seen: Seen) -> None:
    await writer.json(b'{"ok": true}')


script: list[Any] = [ok]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    async def play(writer: Writer, seen: Seen) -> None:
        await script[0](writer, seen)

    with RawUpstream(play) as upstream:
        named = {
            "openai": f"{upstream.url}/v1",
            "anthropic": upstream.url,
            "prefixed": f"{upstream.url}/a%20b/api/v1/",
            "paid": f"{upstream.url.replace('://', '://ada:secret@')}/v1",
            "gemini": upstream.url,
            "bedrock": upstream.url,
        }
        settings = settings_for(upstream.url, tmp_path_factory.mktemp("attacks"), upstreams=named)
        with InThread(settings) as gateway:
            yield Scene(upstream, gateway)


@pytest.fixture
def scene(shared: Scene) -> Iterator[Scene]:
    shared.upstream.seen.clear()
    yield shared
    script[0] = ok


def answers(play: Any) -> None:
    script[0] = play


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    given = [f"{method} {path} HTTP/1.1", "host: h", "connection: close", *lines]
    return "\r\n".join(given).encode() + b"\r\n\r\n"


# ---- how requests are framed ----


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
def test_a_chunked_body_arrives_whole(scene: Scene, path: str) -> None:
    pieces = [LONG[at : at + 10_000] for at in range(0, 30_000, 10_000)] if path != CHAT else [SHORT[:9], SHORT[9:]]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    answer = scene.raw(head(path, "transfer-encoding: chunked") + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert scene.last.body == b"".join(pieces)


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
@pytest.mark.parametrize("path", ["/v1/files", "/v1/messages/batches", "/gemini/upload/v1beta/files"])
def test_a_body_whose_length_is_told_arrives_with_its_length(scene: Scene, path: str, size: int) -> None:
    """Some servers take nothing else (HTTP 411), and store an upload as it comes."""
    scene.raw(head(path, f"content-length: {size}") + b"y" * size)
    told = {name.lower(): value for name, value in scene.last.headers}
    assert (told.get(b"content-length"), told.get(b"transfer-encoding")) == (b"%d" % size, None)
    assert scene.last.body == b"y" * size


@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/messages", "/v1/files"])
@pytest.mark.parametrize("size", [1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 5_000_000])
def test_megabytes_arrive_whole_and_with_their_length(scene: Scene, path: str, size: int) -> None:
    """Also where warnings are errors, as in these tests: aiohttp has one about so large a body."""
    body = b'{"contents": "%s"}' % (b"0123456789abcdef" * (size // 16 + 1))[: size - 16]
    assert post(scene.url, path, body).status == 200
    assert scene.last.body == body
    about = {name.lower(): value for name, value in scene.last.headers}
    assert about[b"content-length"] == str(size).encode()
    assert about[b"content-type"] == b"application/json"
    assert b"transfer-encoding" not in about
    assert len(about) == len(scene.last.headers)


def test_a_client_that_waits_for_100_continue_gets_it_and_the_upstream_is_not_asked_to(scene: Scene) -> None:
    with socket.create_connection(("127.0.0.1", scene.gateway.port), timeout=5) as client:
        client.sendall(head(CHAT, f"content-length: {len(SHORT)}", "expect: 100-continue"))
        assert received(client, lambda found: found.endswith(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        assert not scene.upstream.seen
        client.sendall(SHORT)
        assert b"HTTP/1.1 200" in received(client, lambda _: False)
    assert scene.last.body == SHORT
    assert b"expect" not in {name.lower() for name, _ in scene.last.headers}


def test_head_has_the_headers_of_the_answer_and_no_body(scene: Scene) -> None:
    async def only_a_head(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\nx-model: m\r\n\r\n")

    answers(only_a_head)
    answer = scene.raw(head("/v1/models", method="HEAD"))
    assert scene.last.line == b"HEAD /v1/models HTTP/1.1"
    assert b"x-model: m" in answer
    assert b"content-length: 1234" in answer.lower()
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("path", [CHAT, "/v1/anything"])
def test_options_are_the_upstreams_to_answer(scene: Scene, path: str) -> None:
    async def allowed(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 204 No Content\r\naccess-control-allow-origin: *\r\nallow: POST\r\n\r\n")

    answers(allowed)
    answer = scene.raw(head(path, "origin: http://page", method="OPTIONS"))
    assert answer.startswith(b"HTTP/1.1 204")
    assert b"access-control-allow-origin: *" in answer
    assert (b"origin", b"http://page") in scene.last.headers


def test_headers_that_stand_twice_stand_twice_on_the_other_side(scene: Scene) -> None:
    async def twice(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}", headers=b"x-two: a\r\nx-two: b\r\n")

    answers(twice)
    sent = head(CHAT, f"content-length: {len(SHORT)}", "anthropic-beta: one", "anthropic-beta: two, three")
    answer = scene.raw(sent + SHORT)
    given = [value for name, value in scene.last.headers if name.lower() == b"anthropic-beta"]
    assert given == [b"one", b"two, three"]
    assert answer.count(b"x-two: a\r\n") == answer.count(b"x-two: b\r\n") == 1


def test_huge_headers_go_both_ways(scene: Scene) -> None:
    async def huge(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}", headers=b"x-large: " + b"a" * 30_000 + b"\r\n")

    answers(huge)
    answer = scene.raw(head(CHAT, f"content-length: {len(SHORT)}", f"x-large: {'b' * 30_000}") + SHORT)
    assert (b"x-large", b"b" * 30_000) in scene.last.headers
    assert b"a" * 30_000 in answer


CHUNKED = f"POST {CHAT} HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("begun", "piece"),
    [
        (b"GET /", b"a" * 64_000),
        (b"GET / HTTP/1.1\r\nx-a: ", b"a" * 64_000),
        (b"GET / HTTP/1.1\r\n", b"x-a: a\r\n" * 8_000),
        (CHUNKED + b"2;", b"a" * 64_000),
        (CHUNKED + b"0\r\n", b"x-a: a\r\n" * 8_000),
        (b"", b"\r\n" * 32_000),
    ],
    ids=["target", "value", "headers", "extension of a chunk", "trailers", "empty lines"],
)
def test_what_stands_around_a_body_has_an_end(scene: Scene, begun: bytes, piece: bytes) -> None:
    def send_on(client: socket.socket) -> None:
        client.sendall(begun)
        for _ in range(1_000):
            client.sendall(piece)

    connected = socket.create_connection(("127.0.0.1", scene.gateway.port), timeout=5)
    with connected as client, pytest.raises(ConnectionError):  # the gateway has left
        send_on(client)
    assert until(lambda: not scene.gateway.app.state.gateway.in_flight)
    assert scene.raw(head("/v1/models", method="GET")).startswith(b"HTTP/1.1 200")  # and serves others


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
@pytest.mark.parametrize("offer", ["", "connection: Upgrade\r\nupgrade: h2c\r\n"], ids=["plain", "with an offer"])
def test_what_stands_behind_a_body_is_no_header(scene: Scene, path: str, offer: str) -> None:
    """A proxy before the gateway that decides whose credential goes on, and what is switched off, never saw it."""
    begun = f"POST {path} HTTP/1.1\r\nhost: h\r\n{offer}transfer-encoding: chunked\r\n\r\n".encode()
    body = b"%x\r\n%s\r\n0\r\n" % (len(SHORT), SHORT)
    trailers = b"Authorization: Bearer another\r\nX-Contextfold: off\r\nContent-Encoding: gzip\r\n\r\n"
    answer = scene.raw(begun + body + trailers, until=lambda found: found.endswith(b'{"ok": true}'))
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"x-contextfold-reason: off" not in answer
    assert scene.last.body == SHORT
    named = {name.lower() for name, _ in scene.last.headers}
    assert not named & {b"authorization", b"x-contextfold", b"content-encoding"}


def test_a_head_that_is_too_large_is_refused_as_such(scene: Scene) -> None:
    begun = b"GET /v1/models HTTP/1.1\r\nx-a: "
    answer = scene.raw(begun + b"a" * MOST_HEAD, until=lambda found: b"headers may have" in found)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert not scene.upstream.seen


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
@pytest.mark.parametrize("body", [SHORT, LONG], ids=["short", "long"])
def test_a_request_that_offers_another_protocol_is_read_to_its_end(scene: Scene, path: str, body: bytes) -> None:
    """Java's client offers HTTP/2 with every request, and sends its body in HTTP/1.1 all the same."""
    offer = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAEAAEAAAAIAAAAB")
    lines = [f"POST {path} HTTP/1.1", "host: h", *offer, f"content-length: {len(body)}"]
    request = "\r\n".join(lines).encode() + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", scene.gateway.port), timeout=5) as client:
        for first in (len(request), 40, len(request) + len(body)):  # in other pieces each time, on one connection
            client.sendall((request + body)[:first])
            client.sendall((request + body)[first:])
            assert received(client, lambda found: found.endswith(b'{"ok": true}')).startswith(b"HTTP/1.1 200")
            assert scene.last.body == body or (body is LONG and path == CHAT and json.loads(scene.last.body))
            assert not {b"upgrade", b"http2-settings", b"connection"} & {name.lower() for name, _ in scene.last.headers}


def test_a_chunked_request_that_offers_another_protocol_is_read_to_its_end(scene: Scene) -> None:
    offer = ("connection: Upgrade", "upgrade: TLS/1.3", "transfer-encoding: chunked")
    request = "\r\n".join([f"POST {CHAT} HTTP/1.1", "host: h", *offer]).encode() + b"\r\n\r\n"
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SHORT), SHORT)
    answer = scene.raw(request + body, until=lambda found: found.endswith(b'{"ok": true}'))
    assert answer.startswith(b"HTTP/1.1 200")
    assert scene.last.body == SHORT


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
OF_1_0 = b"POST %s HTTP/1.0\r\nhost: h\r\ncontent-length: %d\r\n\r\n%s"


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
@pytest.mark.parametrize("is_counted", [False, True], ids=["stream", "length"])
def test_a_client_of_http_1_0_gets_an_answer_without_chunks(scene: Scene, path: str, is_counted: bool) -> None:
    """They came with it to proxies and programs that know no chunks, and stood in the text as lines of figures."""
    first_arrived = threading.Event()

    async def in_two(writer: Writer, seen: Seen) -> None:
        if is_counted:
            await writer.json(b"onetwo")
            return
        await writer.write(CHUNKED)
        await writer.chunk(b"one")
        while not first_arrived.is_set():  # a stream that is gathered first never arrives
            await asyncio.sleep(0.01)
        await writer.chunk(b"two")
        await writer.write(b"0\r\n\r\n")

    answers(in_two)
    with socket.create_connection(("127.0.0.1", scene.gateway.port), timeout=5) as client:
        client.sendall(OF_1_0 % (path.encode(), len(SHORT), SHORT))
        found = received(client, lambda found: b"\r\n\r\none" in found)
        first_arrived.set()
        found += received(client, lambda _: False)
    head, _, body = found.partition(b"\r\n\r\n")
    assert body == b"onetwo"
    assert b"transfer-encoding" not in head
    assert (b"content-length: 6" in head) == is_counted


def test_a_client_of_http_1_0_does_not_take_half_an_answer_for_a_whole_one(scene: Scene) -> None:
    """Its end is that of the connection, so one that breaks off has to break that as well."""

    async def cut(writer: Writer, seen: Seen) -> None:
        await writer.write(CHUNKED)
        await writer.chunk(b"one")
        await asyncio.sleep(0.02)
        writer.reset()

    answers(cut)
    with pytest.raises(ConnectionResetError):
        scene.raw(OF_1_0 % (CHAT.encode(), len(SHORT), SHORT))


def test_a_websocket_is_declined_at_once_and_the_upstream_is_not_asked(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    offer = ("upgrade: websocket", "connection: Upgrade", "sec-websocket-key: eA==", "sec-websocket-version: 13")
    request = "\r\n".join(["GET /v1/responses HTTP/1.1", "host: h", *offer]).encode() + b"\r\n\r\n"
    answer = scene.raw(request)
    assert answer.startswith(b"HTTP/1.1 426")
    assert b"by HTTP" in answer
    assert not scene.upstream.seen
    assert "pip install" not in caplog.text  # uvicorn would advise to


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
@pytest.mark.parametrize("value", [b"caf\xe9", "経".encode(), b"\xff\x80", b"a=\t;b", b""])
def test_header_values_that_are_no_ascii_go_both_ways(scene: Scene, path: str, value: bytes) -> None:
    async def odd(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}", headers=b"x-odd: " + value + b"\r\n")

    answers(odd)
    sent = head(path, f"content-length: {len(SHORT)}").removesuffix(b"\r\n") + b"x-odd: " + value + b"\r\n\r\n"
    answer = scene.raw(sent + SHORT)
    assert b"x-odd: " + value + b"\r\n" in answer
    # towards the upstream what is no UTF-8 is taken for Latin-1, and written as UTF-8: nothing of it is lost
    given = dict(scene.last.headers)[b"x-odd"].decode()
    assert given in (value.decode(errors="replace"), value.decode("latin-1"))


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
def test_a_control_character_in_a_header_of_the_answer_costs_no_answer(scene: Scene, path: str) -> None:
    async def odd(writer: Writer, seen: Seen) -> None:
        await writer.json(b'{"ok": 1}', headers=b"x-odd: a\x01b\x7f\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n")

    answers(odd)
    answer = scene.raw(head(path, f"content-length: {len(SHORT)}") + SHORT)
    assert b"x-odd: a b " in answer
    assert answer.count(b"set-cookie: ") == 2
    assert answer.endswith(b'{"ok": 1}')


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
@pytest.mark.parametrize("status", ["101 Switching Protocols", "600 Odd", "999 Denied"])
def test_a_status_that_there_is_not_is_told_as_an_upstream_that_broke_off(scene: Scene, path: str, status: str) -> None:
    async def odd(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}", status)

    answers(odd)
    response = post(scene.url, path, SHORT)
    assert response.status == 502
    assert f"the status {status[:3]}" in response.json["error"]["message"]


def test_as_many_headers_as_another_proxy_writes_reach_the_client(scene: Scene) -> None:
    async def rich(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}", headers=b"".join(b"llm_provider-x-%d: 1\r\n" % number for number in range(300)))

    answers(rich)
    assert scene.raw(head(CHAT, f"content-length: {len(SHORT)}") + SHORT).count(b"llm_provider-x-") == 300


@pytest.mark.parametrize(("body", "told"), [(SHORT, b"shadow"), (LONG, b"compacted")])
def test_of_two_gateways_in_a_row_one_tells_what_was_done(scene: Scene, body: bytes, told: bytes) -> None:
    async def behind(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}", headers=b"X-Contextfold-Action: shadow\r\nx-contextfold-native: compaction\r\n")

    answers(behind)
    answer = scene.raw(head(CHAT, f"content-length: {len(body)}", f"authorization: {told}") + body).lower()
    assert answer.count(b"x-contextfold-action: ") == 1
    assert b"x-contextfold-action: " + told in answer
    assert (b"x-contextfold-native" in answer) == (told == b"shadow")


@pytest.mark.parametrize(
    "query", ["a=%2f&b=+&c=%E4&&d", "key=%61%62&x=1;y=2", "api-version=2025-01-01", "%", "a=b?c=d"]
)
@pytest.mark.parametrize("path", [CHAT, "/v1/threads/a%2Fb%20c"])
def test_a_path_and_its_query_arrive_byte_for_byte(scene: Scene, path: str, query: str) -> None:
    scene.raw(head(f"{path}?{query}", f"content-length: {len(SHORT)}") + SHORT)
    assert scene.last.line == f"POST {path}?{query} HTTP/1.1".encode()


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("/prefixed/v1/chat/completions", "/a%20b/api/v1/chat/completions"),
        ("/prefixed/v1/models/", "/a%20b/api/v1/models/"),
        ("/v1/chat/completions/", "/v1/chat/completions/"),
        ("//v1/models", "//v1/models"),
        ("/gemini/v1beta/models/gemini-3:generateContent?key=k", "/v1beta/models/gemini-3:generateContent?key=k"),
        ("/gemini/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("/bedrock/model/anthropic.claude-v1%3A0/invoke", "/model/anthropic.claude-v1%3A0/invoke"),
        ("/bedrock/model/m/converse-stream", "/model/m/converse-stream"),
    ],
)
def test_prefixes_slashes_and_other_providers_routes_pass_untouched(scene: Scene, asked: str, sent: str) -> None:
    async def events(writer: Writer, seen: Seen) -> None:
        await writer.json(b"\x00\x00\x00\x10binary\xff", headers=b"x-amzn-requestid: 1\r\n")

    answers(events)
    body = b'{"contents": [{"role":"user","parts":[{"text":"hi"}]}] }'
    response = post(scene.url, asked, body, {"x-goog-api-key": "k", "authorization": "AWS4-HMAC-SHA256 Credential=a"})
    assert scene.last.line == f"POST {sent} HTTP/1.1".encode()
    assert scene.last.body == body
    assert response.body == b"\x00\x00\x00\x10binary\xff"
    assert response.headers["x-amzn-requestid"] == "1"


# ---- clients that break off ----


@pytest.fixture
def impatient(shared: Scene, tmp_path: Path) -> Iterator[Scene]:
    """A gateway that gives its clients half a second."""
    with InThread(settings_for(shared.upstream.url, tmp_path, client_seconds=0.5)) as gateway:
        yield Scene(shared.upstream, gateway)


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def test_a_client_that_leaves_its_upload_unfinished_is_no_fault_of_the_upstreams(impatient: Scene) -> None:
    begun = head("/v1/files", "content-length: 5000000") + b"y" * 100_000
    with socket.create_connection(("127.0.0.1", impatient.gateway.port), timeout=5) as client:
        client.sendall(begun)
    total = impatient.gateway.metrics.total
    assert until(lambda: total("disconnects_total") == 1)
    assert impatient.raw(begun).startswith(b"HTTP/1.1 408")  # stays, and sends nothing more
    assert total("upstream_errors_total") == 0


BEGUN = (b"\r\n", b"GET /v1/models HT", b"GET /v1/models HTTP/1.1\r\nhost: h\r\n")


@pytest.mark.parametrize(
    ("kept", "begun"), [(False, b""), *((kept, begun) for kept in (False, True) for begun in BEGUN)]
)
def test_a_client_that_does_not_send_its_headers_is_let_go(impatient: Scene, kept: bool, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", impatient.gateway.port), timeout=5) as client:
        if kept:
            client.sendall(b"GET /v1/models HTTP/1.1\r\nhost: h\r\n\r\n")
            received(client, lambda found: found.endswith(b'{"ok": true}'))
        client.sendall(begun)
        answer = received(client, lambda _: False)
    assert answer.startswith(b"HTTP/1.1 408 ") == begun.startswith(b"GET")


def test_the_head_of_a_next_request_ends_no_answer_to_the_one_before(impatient: Scene) -> None:
    async def late(writer: Writer, seen: Seen) -> None:
        await asyncio.sleep(1.2)
        await ok(writer, seen)

    answers(late)
    asked = b"GET /v1/models HTTP/1.1\r\nhost: h\r\n\r\n"
    assert impatient.raw(asked + asked[:30], until=lambda found: found.endswith(b'{"ok": true}')).startswith(
        b"HTTP/1.1 200"
    )


def test_a_next_request_whose_head_is_too_large_ends_no_answer_to_the_one_before(scene: Scene) -> None:
    async def late(writer: Writer, seen: Seen) -> None:
        await asyncio.sleep(0.3)
        await ok(writer, seen)

    answers(late)
    asked = b"GET /v1/models HTTP/1.1\r\nhost: h\r\n"
    answer = scene.raw(asked + b"\r\n" + asked + b"x-a: " + b"a" * 4 * MOST_HEAD)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'{"ok": true}')  # and the connection has ended
    assert len(scene.upstream.seen) == 1


def test_an_empty_line_behind_a_body_does_not_end_the_connection_once_it_is_answered(impatient: Scene) -> None:
    """Some old clients write one, and go on to use the connection (RFC 9112, section 2.2)."""

    async def late(writer: Writer, seen: Seen) -> None:
        await asyncio.sleep(1.2)
        await ok(writer, seen)

    def is_answered(found: bytes) -> bool:
        return found.endswith(b'{"ok": true}')

    asked = b"POST /v1/files HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}"
    answers(late)
    impatient.upstream.seen.clear()
    with socket.create_connection(("127.0.0.1", impatient.gateway.port), timeout=5) as client:
        client.sendall(asked)
        assert until(lambda: bool(impatient.upstream.seen))
        client.sendall(b"\r\n")
        assert is_answered(received(client, is_answered))
        time.sleep(1.0)  # more than the gateway waits for a head
        client.sendall(asked)
        assert is_answered(received(client, is_answered))


def test_a_client_that_takes_nothing_loses_its_connection(impatient: Scene, caplog: pytest.LogCaptureFixture) -> None:
    async def endless(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 90000000\r\n\r\n")
        for _ in range(90):
            await writer.write(b"x" * 1_000_000)

    answers(endless)
    connections = impatient.gateway._server.server_state.connections
    with socket.create_connection(("127.0.0.1", impatient.gateway.port), timeout=5) as client:
        client.sendall(head("/v1/models", method="GET"))
        assert until(lambda: len(connections) == 1)
        assert until(lambda: not connections)
    assert "Exception in ASGI" not in caplog.text


def test_an_upstream_that_fails_is_logged_with_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("contextfold.gateway"), "propagate", True)
    with InThread(settings_for("http://127.0.0.1:9", tmp_path)) as gateway, caplog.at_level("INFO"):
        assert post(gateway.url, CHAT, SHORT).headers["x-contextfold-upstream"] == "unreachable"
    assert "upstream=openai " in caplog.text
    assert "upstream_error=unreachable" in caplog.text


@pytest.mark.parametrize(
    ("path", "headers", "is_anthropic"),
    [
        ("/v1/messages/count_tokens", {}, True),
        ("/v1/messages/batches", {}, True),
        ("/claude/v1/messages/batches", {}, True),
        ("/v1/files", {"anthropic-version": "2023-06-01"}, True),
        ("/v1/files", {}, False),
        ("/v1/responses/input_tokens", {}, False),
    ],
)
def test_an_error_of_ours_has_the_shape_of_the_clients_provider_on_every_path(
    tmp_path: Path, path: str, headers: dict[str, str], is_anthropic: bool
) -> None:
    """SDKs with types, such as Go's, read an error by its shape."""
    away = "http://127.0.0.1:9"
    upstreams = {"openai": f"{away}/v1", "anthropic": away, "claude": away}
    with InThread(settings_for(away, tmp_path, upstreams=upstreams)) as gateway:
        response = post(gateway.url, path, SHORT, headers)
    assert response.status == 502
    assert (response.json.get("type") == "error") is is_anthropic
    assert response.json["error"]["type"] == ("api_error" if is_anthropic else "upstream_unreachable")


# ---- what is in a body ----


def packed(body: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(body)
    if encoding == "deflate":
        return zlib.compress(body)
    if encoding == "zstd":
        return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(body))
    return bytes(pytest.importorskip("brotli").compress(body, quality=1))


ENCODINGS = ["gzip", "deflate", "zstd", "br"]


@pytest.mark.parametrize("encoding", ["identity", *ENCODINGS])
@pytest.mark.parametrize("stream", [False, True])
def test_usage_that_is_told_otherwise_fits_the_length_that_is_told(
    shared: Scene, tmp_path: Path, encoding: str, stream: bool
) -> None:
    """A stream that another proxy has read whole comes with its length."""
    usage = b'{"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":1,"total_tokens":901}}'
    said = b"data: " + usage + b"\n\ndata: [DONE]\n\n" if stream else usage
    sent = packed(said, encoding) if encoding != "identity" else said
    kind = b"text/event-stream" if stream else b"application/json"

    async def measured(writer: Writer, seen: Seen) -> None:
        headers = b"content-type: %s\r\ncontent-encoding: %s\r\n" % (kind, encoding.encode())
        await writer.write(b"HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n%s" % (headers, len(sent), sent))

    answers(measured)
    with InThread(settings_for(shared.upstream.url, tmp_path, usage="history")) as gateway:
        body = post(gateway.url, CHAT, LONG).body
    script[0] = ok
    if encoding != "identity":  # it was asked for without, and is left alone with
        assert body == sent
    else:
        told = json.loads(body.removeprefix(b"data: ").partition(b"\n")[0])["usage"]
        assert told["prompt_tokens"] > 5_000
        assert told["total_tokens"] == told["prompt_tokens"] + 1


def test_an_answer_too_large_to_tell_its_usage_otherwise_is_relayed(shared: Scene, tmp_path: Path) -> None:
    is_there = threading.Event()

    async def large(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20000000\r\n\r\n")
        await writer.write(b" " * 15_000_000)
        while not is_there.is_set():
            await asyncio.sleep(0.02)
        await writer.write(b" " * 5_000_000)

    answers(large)
    sent = head(CHAT, f"content-length: {len(LONG)}") + LONG
    opened = InThread(settings_for(shared.upstream.url, tmp_path, usage="history"))
    with opened as gateway, socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as client:
        client.sendall(sent)
        size = len(received(client, lambda found: len(found) > 8_000_000))
        is_there.set()
        size += len(received(client, lambda _: False))
    script[0] = ok
    assert size > 20_000_000


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_compressed_request_passes_as_it_came_and_a_view_of_one_is_plain(scene: Scene, encoding: str) -> None:
    raw = packed(SHORT, encoding)
    assert post(scene.url, CHAT, raw, {"content-encoding": encoding}).status == 200
    assert scene.last.body == raw
    assert (b"content-encoding", encoding.encode()) in scene.last.headers
    long = post(scene.url, CHAT, packed(LONG, encoding), {"content-encoding": encoding, "authorization": encoding})
    assert long.headers["x-contextfold-action"] == "compacted"
    assert len(json.loads(scene.last.body)["messages"]) < len(json.loads(LONG)["messages"])
    assert b"content-encoding" not in {name.lower() for name, _ in scene.last.headers}


def test_an_encoding_that_is_not_known_passes_as_it_came(scene: Scene) -> None:
    response = post(scene.url, CHAT, LONG, {"content-encoding": "aws-chunked"})
    assert scene.last.body == LONG
    assert response.headers["x-contextfold-reason"] == "encoding"


def test_requests_whose_body_could_not_be_read_are_counted_by_reason(scene: Scene) -> None:
    """They are never compacted, and nothing else that an operator watches says so."""

    def counted(reason: str) -> float:
        text = post(scene.url, "/metrics", b"", method="GET").body.decode()
        rows = re.findall(rf'^contextfold_unread_total{{reason="{reason}".*}} (\S+)$', text, re.MULTILINE)
        return sum(map(float, rows))

    before = {reason: counted(reason) for reason in ("encoding", "unreadable")}
    post(scene.url, CHAT, LONG, {"content-encoding": "aws-chunked"})
    post(scene.url, CHAT, LONG[:-2])
    post(scene.url, CHAT, LONG)
    assert {reason: counted(reason) - count for reason, count in before.items()} == {"encoding": 1, "unreadable": 1}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("body", [SHORT, LONG], ids=["short", "long"])
def test_a_compressed_answer_is_relayed_as_it_came_and_its_usage_is_read(
    scene: Scene, encoding: str, body: bytes
) -> None:
    said = packed(b'{"choices": [], "usage": {"prompt_tokens": 5000}}', encoding)

    async def compressed(writer: Writer, seen: Seen) -> None:
        await writer.json(said, headers=b"content-encoding: %s\r\n" % encoding.encode())

    answers(compressed)
    response = post(scene.url, CHAT, body, {"accept-encoding": encoding})
    assert response.body == said
    assert response.headers["content-encoding"] == encoding
    assert (b"accept-encoding", encoding.encode()) in scene.last.headers


ODD = {
    "empty": b"",
    "blank": b"  \r\n ",
    "no JSON": b"what is this",
    "a list": b"[1,2]",
    "null": b"null",
    "cut off": SHORT[:-2],
    "byte order mark": b"\xef\xbb\xbf" + SHORT,
    "UTF-16": SHORT.decode().encode("utf-16"),
    "no UTF-8": b'{"messages":[{"role":"user","content":"\xff\xfe"}]}',
    "NaN": b'{"temperature":NaN,"messages":[{"role":"user","content":"x"}]}',
    "half an emoji": rb'{"messages":[{"role":"user","content":"\ud83d"}]}',
    "messages twice": b'{"messages":[{"role":"user","content":"x"}],"messages":[{"role":"user","content":"y"}]}',
    "a key twice": b'{"model":"a","model":"b","messages":[{"role":"user","content":"x","content":"y"}]}',
    "messages null": b'{"messages":null}',
    "messages a text": b'{"messages":"hi"}',
    "messages odd": b'{"messages":[1,null,"x",[],{}]}',
    "deep": b'{"messages":' + b"[" * 3_000 + b"]" * 3_000 + b"}",
    "form": b"------x\r\ncontent-disposition: form-data; name=file\r\n\r\n\x00\x01\r\n------x--",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_an_odd_body_is_the_upstreams_to_judge(scene: Scene, name: str, path: str) -> None:
    async def judged(writer: Writer, seen: Seen) -> None:
        await writer.json(b'{"error": {"message": "no"}}', status="422 Unprocessable")

    answers(judged)
    response = post(scene.url, path, ODD[name])
    assert (response.status, response.body) == (422, b'{"error": {"message": "no"}}')
    assert scene.last.body == ODD[name]
    assert len(scene.upstream.seen) == 1


@pytest.mark.parametrize("name", ODD)
def test_a_long_odd_body_passes_or_keeps_its_newest_message(scene: Scene, name: str) -> None:
    """The same oddities in a request that is looked at."""
    filler = b'{"role":"user","content":"%s"}' % (b"word " * 1_500)
    more = b",".join([filler, b'{"role":"assistant","content":"yes"}'] * 12)
    raw = ODD[name].replace(b'"messages":[', b'"messages":[' + more + b",", 1)
    raw = raw if raw != ODD[name] else raw + b" " * 20_000
    response = post(scene.url, CHAT, raw, {"authorization": f"Bearer {name}"})
    assert response.status == 200
    assert "x-contextfold-failure" not in response.headers or name in ("messages odd", "deep")  # Python 3.14 reads it
    if scene.last.body != raw:
        newest = json.loads(raw.replace(rb"\ud83d", rb"\ufffd"))["messages"][-1]  # half a character is mended in a view
        assert json.loads(scene.last.body)["messages"][-1] == newest


def test_unknown_fields_stay_in_a_view(scene: Scene) -> None:
    messages = list(turns("openai-chat", 40))[-1]
    messages[-1] = {**messages[-1], "x_vendor": {"b": 1, "a": [1.0, 2e3]}}
    raw = compact(body_of("openai-chat", messages, x_unknown={"z": [True, None]}, service_tier="flex"))
    response = post(scene.url, CHAT, raw, {"authorization": "Bearer unknown-fields"})
    assert response.headers["x-contextfold-action"] == "compacted"
    sent = json.loads(scene.last.body)
    assert sent["messages"][-1] == messages[-1]
    assert {name: sent[name] for name in ("x_unknown", "service_tier")} == {
        "x_unknown": {"z": [True, None]},
        "service_tier": "flex",
    }


@pytest.mark.parametrize("body", [SHORT, LONG], ids=["short", "long"])
def test_events_of_any_kind_are_relayed_as_bytes(scene: Scene, body: bytes) -> None:
    events = (
        b": a comment\n\nevent: of_no_known_kind\nid: 7\nretry: 100\ndata: {not json\n\n"
        b'data: {"choices":[{"index":0,"delta":{"content":"x","x_new":[1]}}]}\r\n\r\n'
        b"data: one\ndata: two\n\ndata: [DONE]\n\ndata: behind the end"
    )

    async def streamed(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(events), 7):
            await writer.chunk(events[at : at + 7])
        await writer.chunk(b"")

    answers(streamed)
    assert post(scene.url, CHAT, body, {"authorization": "Bearer events"}).body == events


DEEP = b"[" * 2_000 + b"]" * 2_000
OPENED = b'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'
ODD_EVENTS = {
    "deep": b'data: {"x":' + DEEP + b"}\n\n",
    "a type that is a list": b'data: {"type":["message_start"]}\n\n',
    "a type that is an object": b'data: {"type":{"a":1},"error":{}}\n\n',
    "choices of no kind": b'data: {"choices":7}\n\ndata: {"choices":[7]}\n\ndata: {"choices":[{"delta":7}]}\n\n',
    "usage of no kind": b'data: {"choices":[],"usage":[1]}\n\ndata: {"usage":{"prompt_tokens":"many"}}\n\n',
    "a huge count": b'data: {"choices":[],"usage":{"prompt_tokens":1' + b"0" * 400 + b"}}\n\n",
    "a number too long to read": b'data: {"choices":[],"usage":{"prompt_tokens":1' + b"0" * 5_000 + b"}}\n\n",
    "half a character": b'data: {"choices":[{"delta":{"content":"\\ud83d"}}],"usage":{"prompt_tokens":7}}\n\n',
    "cut in a character": 'data: {"choices":[{"delta":{"content":"日'.encode()[:-1],
    "no UTF-8": b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n',
    "NUL": b"data: \x00\n\n\x00",
    "several lines": b'event: x\r\ndata: {"choices":\r\ndata: [],\r\ndata: "usage":{"prompt_tokens":5}}\r\n\r\n',
    "carriage returns alone": b'data: {"choices":[]}\r\rdata: [DONE]\r\r',
    "a field of no name": b": x\n: y\n\ndata\n\ndata:\n\n:\n\n",
    "an error behind content": b'data: {"choices":[{"delta":{"content":"x"}}]}\n\ndata: {"error":{"message":'
    b'"prompt is too long: 9000 tokens > 8000 maximum"}}\n\n',
    "an error of no kind": b'data: {"error":[' + DEEP + b"]}\n\n",
    "nothing": b"",
}


@pytest.mark.parametrize("name", ODD_EVENTS)
def test_odd_events_of_an_upstream_reach_the_client_as_bytes(scene: Scene, name: str) -> None:
    for events, body in ((ODD_EVENTS[name], LONG), (OPENED + ODD_EVENTS[name], SHORT)):

        async def streamed(writer: Writer, seen: Seen, events: bytes = events) -> None:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            await writer.write(head)
            for at in range(0, len(events), 1_000):
                await writer.chunk(events[at : at + 1_000])
            await writer.chunk(b"")

        answers(streamed)
        scene.upstream.seen.clear()
        response = post(scene.url, CHAT, body, {"authorization": f"Bearer odd-{name}"})
        assert (response.status, response.body) == (200, events)
        assert len(scene.upstream.seen) == 1


@pytest.mark.parametrize(
    "text",
    [
        b'{"error":{"message":"prompt is too long: 9000 tokens > 8000 maximum","x":' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"error":' + DEEP + b"}",
        b'{"error":{"message":"prompt is too long \\ud83d"}}',
        b"\xff\xfe\x00",
        b"",
        b'{"error":{"code":[1],"message":{"a":1}}}',
    ],
    ids=lambda text: repr(text[:12]),
)
def test_an_error_of_any_shape_is_the_clients(scene: Scene, text: bytes) -> None:
    async def refused(writer: Writer, seen: Seen) -> None:
        await writer.json(text, status="400 Bad Request")

    answers(refused)
    response = post(scene.url, CHAT, SHORT, {"authorization": f"Bearer shape-{text[:9].hex()}"})
    assert (response.status, response.body) == (400, text)


REFUSED = (
    b'data: {"error": {"code": "context_length_exceeded", "message": "maximum context length is 2500 tokens"}}\n\n'
)


@pytest.mark.parametrize("piece", [b" ", b" " * 2_000_000], ids=["slow", "large"])
@pytest.mark.parametrize(
    ("status", "kind", "begun"),
    [
        (b"400 Bad Request", b"application/json", b'{"error": {"message": "'),
        (b"502 Bad Gateway", b"text/html", b"<html>"),
        (b"200 OK", b"application/json", b'{"error": {"message": "'),
        (b"200 OK", b"application/json", b""),
        (b"200 OK", b"text/event-stream", b": waiting\n\n"),
    ],
    ids=["error", "page", "success that says error", "blanks", "comments"],
)
def test_an_answer_without_an_end_is_relayed_as_it_comes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, status: bytes, kind: bytes, begun: bytes, piece: bytes
) -> None:
    """What could be a refusal is held back for a moment, not until an upstream has said it all."""
    monkeypatch.setattr(refusals, "HOLD_SECONDS", 0.5 if len(piece) == 1 else 60.0)
    is_there = threading.Event()

    async def endless(writer: Writer, seen: Seen) -> None:
        top = b"HTTP/1.1 %s\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"
        await writer.write(top % (status, kind))
        await writer.chunk(begun + piece)
        while not is_there.is_set():
            await asyncio.sleep(0.02)
            if len(piece) == 1:
                await writer.chunk(piece)
        await writer.chunk(b"rest")
        await writer.chunk(b"")

    answers(endless)
    try:
        sent = head(
            CHAT, f"content-length: {len(LONG)}", f"authorization: {status.decode()}{kind.decode()}{len(begun)}"
        )
        with socket.create_connection(("127.0.0.1", scene.gateway.port), timeout=10) as client:
            client.sendall(sent + LONG)
            found = received(client, lambda found: len(found.partition(b"\r\n\r\n")[2]) > len(begun))
            assert found.startswith(b"HTTP/1.1 " + status[:3])
            is_there.set()
            assert b"rest" in received(client, lambda found: b"rest" in found)
    finally:
        is_there.set()


@pytest.mark.parametrize("behind", [b": ping\n\n", b": ping\n\n" * 300_000], ids=["slow", "large"])
def test_a_refusal_in_a_stream_that_does_not_end_leads_to_another_view(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: bytes
) -> None:
    monkeypatch.setattr(refusals, "HOLD_SECONDS", 0.5 if len(behind) < 100 else 60.0)

    async def refused(writer: Writer, seen: Seen) -> None:
        if len(scene.upstream.seen) > 1:
            await ok(writer, seen)
            return
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        await writer.chunk(REFUSED)
        while not seen.closed.is_set():
            await writer.chunk(behind)
            await asyncio.sleep(0.02)

    answers(refused)
    with InThread(settings_for(scene.upstream.url, tmp_path)) as gateway:  # of its own: it learns a window
        assert post(gateway.url, CHAT, LONG).body == b'{"ok": true}'
    first, second = scene.upstream.seen
    assert len(second.body) < len(first.body)
    assert until(first.closed.is_set)


@pytest.mark.parametrize("path", [CHAT, PATHS["anthropic"]])
@pytest.mark.parametrize("status", ["400 Bad Request", "429 Too Many Requests"])
def test_an_error_that_breaks_off_keeps_its_status(scene: Scene, path: str, status: str) -> None:
    """Clients try a 502 again, and a 400 not; of a 429 they read when to come back."""
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nretry-after: 7\r\ncontent-length: 900\r\n\r\n"

    async def cut(writer: Writer, _: Seen) -> None:
        await writer.write(head % status.encode() + b'{"error": {"mess')
        raise ConnectionError

    answers(cut)
    response = post(scene.url, path, SHORT)
    assert (response.status, response.headers["retry-after"]) == (int(status[:3]), "7")
    assert b'{"error": {"mess'.startswith(response.body)  # what came of it before the end was seen


def test_a_compressed_error_that_breaks_off_is_handed_on_as_text(scene: Scene) -> None:
    """Half of a compressed text is an error of its own in a client, in place of what the provider said."""
    said = b'{"error": {"message": "the key of this project is not valid, ' + bytes(range(40, 90)) * 40

    async def cut(writer: Writer, _: Seen) -> None:
        half = gzip.compress(said)[:-40]
        head = b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n"
        await writer.write(head + b"content-length: 900\r\n\r\n" + half)
        raise ConnectionError

    answers(cut)
    response = post(scene.url, CHAT, SHORT, {"accept-encoding": "gzip"})
    assert response.status == 401
    assert "content-encoding" not in response.headers
    assert said.startswith(response.body)
    assert b"the key of this project" in response.body


@pytest.mark.parametrize("end", ["cut", "no empty line", "bare returns"])
def test_a_refusal_in_a_stream_that_ends_as_it_should_not_leads_to_another_view(
    scene: Scene, tmp_path: Path, end: str
) -> None:
    """A server whose error ends its stream may drop the connection behind it, or leave out the line that ends it; and
    lines may end in a return alone."""

    async def refused(writer: Writer, seen: Seen) -> None:
        if len(scene.upstream.seen) > 1:
            await ok(writer, seen)
            return
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        said = {
            "cut": REFUSED,
            "no empty line": REFUSED.rstrip() + b"\n",
            "bare returns": (b'data: {"choices": []}\n\n' + REFUSED).replace(b"\n", b"\r"),
        }
        await writer.chunk(said[end])
        if end == "cut":
            raise ConnectionError
        await writer.chunk(b"")

    answers(refused)
    with InThread(settings_for(scene.upstream.url, tmp_path)) as gateway:  # of its own: it learns a window
        assert post(gateway.url, CHAT, LONG).body == b'{"ok": true}'
    first, second = scene.upstream.seen
    assert len(second.body) < len(first.body)


@pytest.mark.parametrize("target", ["@127.0.0.2/v1/messages", ".example/v1/messages", "http://127.0.0.2/v1/x", "*"])
def test_a_target_that_would_name_another_host_reaches_none(scene: Scene, target: str) -> None:
    answer = scene.raw(head(target, f"content-length: {len(SHORT)}") + SHORT)
    if target.startswith("http:"):  # as proxies are asked: the path of it, at the upstream that is configured
        assert [seen.line for seen in scene.upstream.seen] == [b"POST /v1/x HTTP/1.1"]
    else:
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
        assert not scene.upstream.seen


@pytest.mark.parametrize("up", ["..", "%2e%2e", ".%2E", "..%2f..", "x%2f..", "..%5c..", "."])
@pytest.mark.parametrize("before", ["/v1/", "/prefixed/v1/", "/prefixed/v1beta/"])
def test_no_target_leaves_the_path_of_its_upstream(scene: Scene, before: str, up: str) -> None:
    """An address may have the path of one team, and a password."""
    for target in (f"{before}{up}/{up}/admin", f"{before}{up}", f"{before}models/{up}/{up}/chat/completions"):
        answer = scene.raw(head(target, f"content-length: {len(SHORT)}") + SHORT)
        assert answer.startswith(b"HTTP/1.1 400")
        assert not scene.upstream.seen
    kept = f"{before}models/.hidden/a..b/...%2Fc."
    assert scene.raw(head(kept, f"content-length: {len(SHORT)}") + SHORT).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", ["/chat/completions", "/messages", "/files"])
def test_no_page_of_a_browser_spends_the_password_of_an_upstream(scene: Scene, path: str) -> None:
    """A page may send such a request to any port of the machine that it is looked at on, without asking before."""
    asked = ("origin: http://elsewhere.example", "content-type: text/plain", f"content-length: {len(SHORT)}")
    answer = scene.raw(head(f"/paid/v1{path}", *asked) + SHORT)
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"secret" not in answer
    assert not scene.upstream.seen
    assert scene.raw(head(f"/paid/v1{path}", *asked[1:]) + SHORT).startswith(b"HTTP/1.1 200")
    # with its own key it may, as it could without a gateway
    assert scene.raw(head(f"/prefixed/v1{path}", *asked) + SHORT).startswith(b"HTTP/1.1 200")


def in_two(body: bytes, encoding: str) -> bytes:
    return packed(body[:5_000], encoding) + packed(body[5_000:], encoding)


def bare_deflate(body: bytes, _: str) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "how"),
    [("gzip", in_two), ("zstd", in_two), ("deflate", bare_deflate)],
    ids=["gzip of two members", "zstd of two frames", "deflate without zlib's frame"],
)
def test_a_body_that_was_packed_in_pieces_or_bare_is_read(scene: Scene, encoding: str, how: Any) -> None:
    response = post(scene.url, CHAT, how(LONG, encoding), {"content-encoding": encoding})
    assert response.headers["x-contextfold-action"] in ("compacted", "view")
    assert len(scene.last.body) < len(LONG)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_of_very_many_members_passes_unread(scene: Scene, encoding: str) -> None:
    raw = packed(b"", encoding) * 20_000
    response = post(scene.url, CHAT, raw, {"content-encoding": encoding})
    assert (response.status, response.headers["x-contextfold-reason"]) == (200, "encoding")
    assert scene.last.body == raw


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "br"])
def test_a_few_bytes_that_stand_for_gigabytes_pass_unread(scene: Scene, encoding: str) -> None:
    bomb = packed(b'{"messages":[' + b" " * (100 << 20), encoding)
    response = post(scene.url, CHAT, bomb, {"content-encoding": encoding})
    assert response.status == 200
    assert response.headers["x-contextfold-reason"] == "encoding"
    assert scene.last.body == bomb


@pytest.mark.parametrize(
    "field",
    [
        b'"model":"a\nmodel=forged status=200"',
        b'"prompt_cache_key":' + b"[" * 900 + b"]" * 900,
        b'"metadata":{"user_id":"' + b'{\\"a\\":' * 3_000 + b'"}',
        b'"max_tokens":1' + b"0" * 400,
        b'"tools":[' + b'{"messages":[]},' * 3_000 + b"{}]",
    ],
    ids=lambda field: field[:20].decode(),
)
def test_odd_fields_beside_a_conversation_cost_no_answer(
    scene: Scene, field: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    raw = b"{" + field + b"," + LONG[1:]
    with caplog.at_level("INFO", logger="contextfold.gateway"):
        response = post(scene.url, CHAT, raw, {"authorization": f"Bearer {field[:9].hex()}"})
    assert response.status == 200
    assert response.headers.get("x-contextfold-failure") in (None, "cannot_fit")
    assert not [record for record in caplog.records if "\n" in record.getMessage()]


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("openai-responses", {"previous_response_id": "resp_1", "store": True}),
        ("openai-responses", {"conversation": "conv_1", "store": True}),
        ("openai-responses", {"conversation": {"id": "conv_1"}, "store": True}),
        ("anthropic", {"thread": {"type": "continue", "previous_message_id": "msg_1"}}),
    ],
    ids=str,
)
def test_what_the_provider_holds_the_beginning_of_passes_untouched(scene: Scene, wire: str, fields: Any) -> None:
    raw = compact(body_of(wire, list(turns(wire, 40))[-1], **fields))
    response = post(scene.url, PATHS[wire], raw)
    assert scene.last.body == raw
    assert response.headers["x-contextfold-native"] in fields


def test_a_result_whose_call_the_provider_holds_stays_a_result(opened: Any, provider: ProviderServer) -> None:
    """Tool runners of Anthropic's SDKs send the newest results alone; what an upstream says of them is the client's."""
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done " * 9_000}
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    raw = compact(body_of("anthropic", [{"role": "user", "content": [result]}], thread=thread))
    response = post(opened().url, PATHS["anthropic"], raw)
    assert response.status == 404
    assert json.loads(response.body)["error"]["details"] == {"error_code": "thread_not_found"}
    assert [request.raw for request in provider.requests] == [raw]


def test_a_thread_that_begins_is_a_whole_conversation_and_is_compacted(scene: Scene) -> None:
    raw = compact(body_of("anthropic", list(turns("anthropic", 40))[-1], thread={"type": "create"}))
    response = post(scene.url, PATHS["anthropic"], raw, {"authorization": "Bearer thread"})
    assert response.headers["x-contextfold-action"] == "compacted"
    assert json.loads(scene.last.body)["thread"] == {"type": "create"}


@pytest.mark.parametrize("store", [True, False])
def test_storing_an_answer_is_the_clients_choice_and_stays(scene: Scene, store: bool) -> None:
    raw = compact(body_of("openai-responses", list(turns("openai-responses", 40))[-1], store=store))
    response = post(scene.url, PATHS["openai-responses"], raw, {"authorization": f"Bearer store-{store}"})
    assert response.headers["x-contextfold-action"] == "compacted"
    assert json.loads(scene.last.body)["store"] is store


# ---- answers and connections ----


@pytest.mark.parametrize("body", [SHORT, LONG], ids=["short", "long"])
def test_a_429_is_the_clients_with_every_header_and_byte_and_is_not_tried_again(scene: Scene, body: bytes) -> None:
    text = b'{"error" : {"message":"slow down", "type":"rate_limit_error"} }'

    async def limited(writer: Writer, seen: Seen) -> None:
        headers = b"retry-after: 17\r\nretry-after-ms: 16900\r\nx-ratelimit-reset-tokens: 6m0s\r\n"
        await writer.json(text, status="429 Too Many Requests", headers=headers)

    answers(limited)
    response = post(scene.url, CHAT, body, {"authorization": "Bearer limited"})
    assert (response.status, response.body) == (429, text)
    assert response.headers["retry-after"] == "17"
    assert response.headers["retry-after-ms"] == "16900"
    assert response.headers["x-ratelimit-reset-tokens"] == "6m0s"
    assert len(scene.upstream.seen) == 1


def test_a_connection_serves_on_after_errors(scene: Scene) -> None:
    plays: list[Any] = []

    async def next_one(writer: Writer, seen: Seen) -> None:
        await plays.pop(0)(writer, seen)

    async def bad(writer: Writer, seen: Seen) -> None:
        await writer.json(b'{"error": "bad"}', status="400 Bad Request")

    async def broken(writer: Writer, seen: Seen) -> None:
        writer.reset()

    async def failing(writer: Writer, seen: Seen) -> None:
        await writer.json(b"<html>oops</html>", status="503 Service Unavailable")

    answers(next_one)
    plays += [bad, broken, failing, ok]
    connection = http.client.HTTPConnection("127.0.0.1", scene.gateway.port, timeout=10)
    found, sockets = [], set()
    for _ in range(4):
        connection.request("POST", CHAT, SHORT, {"content-type": "application/json"})
        response = connection.getresponse()
        found.append((response.status, response.read()[:20]))
        sockets.add(id(connection.sock))
    connection.close()
    assert [status for status, _ in found] == [400, 502, 503, 200]
    assert len(sockets) == 1


def test_a_client_that_leaves_in_the_middle_of_a_stream_ends_the_upstreams_work(scene: Scene) -> None:
    async def endless(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        while not seen.closed.is_set():
            await writer.chunk(b'data: {"choices":[{"index":0,"delta":{"content":"on"}}]}\n\n')
            await asyncio.sleep(0.01)

    answers(endless)
    with socket.create_connection(("127.0.0.1", scene.gateway.port), timeout=5) as client:
        client.sendall(head(CHAT, f"content-length: {len(SHORT)}") + SHORT)
        received(client, lambda found: b'"content":"on"' in found)
    assert scene.last.closed.wait(5)


def test_work_for_a_client_that_has_left_ends_also_where_its_cancellation_was_swallowed(tmp_path: Path) -> None:
    """As by a connection to the upstream that is just being opened."""
    said = [{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return said.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def work(caller: Caller) -> int:
        await caller.body(100)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await caller.start(200, [])
        return 200

    async def served() -> None:
        caller = Caller(receive, send, settings_for("http://127.0.0.1:9", tmp_path))
        with pytest.raises(ClientGone):
            await caller.while_there(work(caller))
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    asyncio.run(served())
    assert not sent


@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request"])
def test_a_client_that_leaves_before_it_got_any_of_its_answer_ends_the_upstreams_work(
    scene: Scene, status: bytes
) -> None:
    """The opening of a stream is held back, and an error read whole, in case the request is refused for its size."""
    begun = threading.Event()

    async def opening(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 %s\r\ncontent-type: text/event-stream\r\n" % status)
        await writer.write(b"transfer-encoding: chunked\r\n\r\n")
        await writer.chunk(b": the model is at work\n\n")
        begun.set()
        await asyncio.sleep(20)

    answers(opening)
    with socket.create_connection(("127.0.0.1", scene.gateway.port), timeout=5) as client:
        client.sendall(head(CHAT, f"content-length: {len(LONG)}") + LONG)
        assert begun.wait(5)
        time.sleep(0.2)
    assert scene.last.closed.wait(2)


def test_an_upstream_that_closes_in_the_middle_is_no_end_of_an_answer(scene: Scene) -> None:
    async def cut(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        await asyncio.sleep(0.02)
        writer.reset()

    answers(cut)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(scene.url, CHAT, SHORT)


# ---- whose conversation ----


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"authorization": "Bearer a"}, {"authorization": "Bearer b"}),
        ({"x-api-key": "a"}, {"x-api-key": "b"}),
        ({"api-key": "a"}, {"api-key": "b"}),
        ({"x-goog-api-key": "a"}, {"x-goog-api-key": "b"}),
        ({"?": "key=a"}, {"?": "key=b"}),
        ({"?": "api-version=1&key=c"}, {"?": "api-version=1"}),
    ],
    ids=str,
)
def test_tenants_are_told_apart_wherever_their_key_stands(scene: Scene, one: Any, other: Any) -> None:
    """The same messages: each tenant makes a record of its own, and finds it again."""

    def ask(who: dict[str, str]) -> Response:
        headers = {name: value for name, value in who.items() if name != "?"}
        query = f"?{who['?']}" if "?" in who else ""
        return post(scene.url, CHAT + query, LONG, {"authorization": "Bearer of-all", "x-test": "1", **headers})

    actions = [ask(who).headers["x-contextfold-action"] for who in (one, other, one)]
    assert actions == ["compacted", "compacted", "view"]


def test_requests_of_one_conversation_side_by_side_each_get_their_own_view(scene: Scene) -> None:
    lists = list(turns("openai-chat", 40, seed=5))[30:]
    raws = [compact(body_of("openai-chat", messages)) for messages in lists]
    found: list[Response | None] = [None] * len(raws)

    def ask(place: int) -> None:
        found[place] = post(scene.url, CHAT, raws[place], {"authorization": "Bearer side-by-side"})

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(raws))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {response.status for response in found if response} == {200}
    assert all("x-contextfold-failure" not in response.headers for response in found if response)
    newest = sorted(json.dumps(messages[-1]) for messages in lists)
    assert sorted(json.dumps(json.loads(seen.body)["messages"][-1]) for seen in scene.upstream.seen) == newest


def test_an_edited_turn_goes_on_from_what_is_unchanged(scene: Scene) -> None:
    """What stands in the view word for word may say something else; not what left it."""
    key = {"authorization": "Bearer edited"}
    messages = list(turns("openai-chat", 40, seed=6))[-1]
    made = post(scene.url, CHAT, compact(body_of("openai-chat", messages)), key)
    edited = [*messages[:-1], {**messages[-1], "content": "another result"}]
    again = post(scene.url, CHAT, compact(body_of("openai-chat", edited)), key)
    assert again.headers["x-contextfold-compaction"] == made.headers["x-contextfold-compaction"]
    assert json.loads(scene.last.body)["messages"][-1]["content"] == "another result"
    task = [messages[0], {"role": "user", "content": "something else from the start"}, *messages[2:]]
    again = post(scene.url, CHAT, compact(body_of("openai-chat", task)), key)
    assert again.headers["x-contextfold-compaction"] == made.headers["x-contextfold-compaction"]
    assert json.loads(scene.last.body)["messages"][1]["content"] == "something else from the start"
    gone = [*messages[:3], {**messages[3], "content": "another result from the start"}, *messages[4:]]
    other = post(scene.url, CHAT, compact(body_of("openai-chat", gone)), key)
    assert other.headers["x-contextfold-action"] == "compacted"
    assert other.headers["x-contextfold-compaction"] != made.headers["x-contextfold-compaction"]


# ---- most turns are told to fit by their new bytes alone ----


def grown(count: int, size: int = 300) -> list[bytes]:
    """The requests of a conversation; the model's own words are not ASCII, so that bytes and tokens differ."""
    messages = [{"role": "user", "content": "経路 " * size}]
    bodies = []
    for turn in range(count):
        messages += [{"role": "assistant", "content": f"é{turn}"}, {"role": "user", "content": f"go on {turn}"}]
        bodies.append(compact(body_of("openai-chat", messages)))
    return bodies


def test_a_conversation_that_was_counted_is_not_taken_apart_again_until_it_could_be_due(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = scene.gateway.app.state.gateway._exchanges.conversations
    taken_apart: list[int] = []
    known_of = conversations.known_of
    monkeypatch.setattr(conversations, "known_of", lambda *given: taken_apart.append(1) or known_of(*given))
    bodies = grown(40, 1_600)
    for raw in bodies:
        response = post(scene.url, CHAT, raw, {"authorization": "Bearer grown"})
        assert scene.last.body == raw
        assert response.headers["x-contextfold-action"] == "passed"
    assert 1 <= len(taken_apart) <= 8


@pytest.mark.parametrize(
    "change",
    [
        lambda body: {**body, "tools": [{"type": "function", "function": {"name": "f", "description": "x " * 9_000}}]},
        lambda body: {**body, "messages": [*body["messages"], {"role": "user", "content": "word " * 6_000}]},
        lambda body: {"user": "word " * 9_000, **body},
        lambda body: {
            **body,
            "messages": [
                *body["messages"],
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}],
                },
            ],
        },
    ],
    ids=["tools", "a long message", "another field", "an image"],
)
def test_whatever_could_make_it_due_is_counted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, change: Any, request: pytest.FixtureRequest
) -> None:
    key = {"authorization": f"Bearer {request.node.name}"}
    raw = grown(1, 1_600)[0]
    post(scene.url, CHAT, raw, key)
    conversations = scene.gateway.app.state.gateway._exchanges.conversations
    taken_apart: list[int] = []
    known_of = conversations.known_of
    monkeypatch.setattr(conversations, "known_of", lambda *given: taken_apart.append(1) or known_of(*given))
    post(scene.url, CHAT, raw.replace(b"go on", b"go  on"), key)
    assert not taken_apart
    post(scene.url, CHAT, compact(change(json.loads(raw))), key)
    assert taken_apart


@pytest.mark.parametrize("place", ["/llm", "/a b/llm"])
def test_a_gateway_mounted_in_another_application_asks_the_provider_for_its_own_paths(
    place: str, tmp_path: Path
) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        moved = b"location: /v1/files/other\r\n" if b"/moved " in seen.line else b""
        await writer.json(b"{}", "307 Temporary Redirect" if moved else "200 OK", moved)

    with RawUpstream(script) as upstream:
        gateway = make_app(settings_for(upstream.url, tmp_path))
        main = Starlette(
            routes=[Mount(place, app=gateway)], lifespan=lambda _: gateway.router.lifespan_context(gateway)
        )
        with TestClient(main) as client:
            assert client.post(f"{place}/v1/chat/completions?a=%2F", content=SHORT).status_code == 200
            assert client.get(f"{place}/v1/files/a%2Fb").status_code == 200
            assert client.get(f"{place}/healthz").json()["status"] == "ok"
            assert client.get(f"{place}/v1/moved").status_code == 200
        lines = [seen.line for seen in upstream.seen]
        assert lines[:2] == [b"POST /v1/chat/completions?a=%2F HTTP/1.1", b"GET /v1/files/a%2Fb HTTP/1.1"]
        assert lines[2:] == [b"GET /v1/moved HTTP/1.1", b"GET /v1/files/other HTTP/1.1"]
        never_started = make_app(settings_for(upstream.url, tmp_path))
        told = TestClient(Starlette(routes=[Mount(place, app=never_started)])).post(
            f"{place}/v1/messages", content=SHORT
        )
        assert told.status_code == 503
        assert "lifespan" in told.text
