"""What a gateway promises about requests: bytes, records, tenants, refusals, failures. All servers are real ones."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import logging
import random
import shlex
import threading
import time
import zlib
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from emulator import Fault, ProviderServer
from tests.gateway.conftest import WINDOW, RawUpstream, Seen, Writer, settings_for
from tests.gateway.requests_made import (
    KEYS,
    PATHS,
    Response,
    body_of,
    compact,
    message_of,
    path_of,
    post,
    read_by,
    turns,
    words,
)
from yarl import URL

from building import thinking_turns
from contextfold import count_tokens
from contextfold.gateway.conversations import Conversations
from contextfold.gateway.refusals import HOLD_SECONDS
from contextfold.gateway.serve import InThread
from contextfold.gateway.upstream import proxy_for
from contextfold.inspector import records
from contextfold.policy import Policy
from contextfold.store import open_store

WIRES = sorted(PATHS)
ENOUGH = 40
"""Turns of a conversation that is several windows long."""


def play(
    gateway: InThread, wire: str, count: int = ENOUGH, *, seed: int = 0, headers: Any = None, **fields: Any
) -> list[Response]:
    found = []
    for messages in turns(wire, count, seed=seed):
        found.append(post(gateway.url, PATHS[wire], compact(body_of(wire, messages, **fields)), headers))
    return found


def actions(responses: list[Response]) -> list[str]:
    return [response.headers["x-contextfold-action"] for response in responses]


# ---- bytes ----


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("pretty", [False, True])
def test_below_the_threshold_the_upstream_gets_the_same_bytes(
    opened: Any, provider: ProviderServer, wire: str, pretty: bool
) -> None:
    gateway = opened(window=200_000)
    provider._provider.default_window = 200_000
    for messages in turns(wire, 12):
        body = body_of(wire, messages)
        raw = json.dumps(body, indent=1).encode() if pretty else compact(body)
        assert post(gateway.url, PATHS[wire], raw).status == 200
        assert provider.requests[-1].raw == raw


BROKEN: dict[str, list[Any]] = {
    "openai-chat": [
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "user", "content": "never mind"},
        {"role": "tool", "tool_call_id": "b", "content": "of no call"},
    ],
    "openai-responses": [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"role": "user", "content": "never mind"},
        {"type": "function_call_output", "call_id": "b", "output": "of no call"},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": "never mind"},
    ],
    "gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"text": "never mind"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "g", "response": {"output": "of no call"}}}]},
    ],
}
"""Calls without results, and results without calls: what a pass would mend."""


@pytest.mark.parametrize("wire", WIRES)
def test_below_the_threshold_no_list_is_mended_unless_its_provider_refuses_it(wire: str, tmp_path: Path) -> None:
    """What a client sends is its own business; after a refusal the mended list goes out, and a header says so."""
    is_strict = False

    async def script(writer: Writer, seen: Seen) -> None:
        if is_strict and seen.body == raw:
            text = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a"
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
            await writer.json(json.dumps(error).encode(), status="400 Bad Request")
        else:
            await writer.json(b'{"usage": {}}')

    first = message_of(wire, "user", "word " * 4_500)
    raw = compact(body_of(wire, [first, *BROKEN[wire]]))
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        response = post(gateway.url, PATHS[wire], raw)
        assert "x-contextfold-tokens-before" in response.headers, "it was counted"
        assert [seen.body for seen in upstream.seen] == [raw]
        assert response.headers["x-contextfold-action"] == "passed"
        is_strict = True
        response = post(gateway.url, PATHS[wire], raw)
        assert response.status == 200
        assert [seen.body == raw for seen in upstream.seen] == [True, True, False]
        assert response.headers["x-contextfold-action"] == "view"
        assert response.headers["x-contextfold-resent"] == "malformed_history"


@pytest.mark.parametrize("size", [4_500, 20], ids=["counted", "short"])
def test_a_refusal_after_which_nothing_was_sent_is_not_told_as_another_request(size: int, tmp_path: Path) -> None:
    text = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    error = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": text}}).encode()

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(error, status="400 Bad Request")

    raw = compact(body_of("anthropic", [{"role": "user", "content": "word " * size}]))
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        response = post(gateway.url, PATHS["anthropic"], raw)
        assert (response.status, response.body) == (400, error)
        assert len(upstream.seen) == 1
        assert "x-contextfold-resent" not in response.headers


def test_items_that_the_provider_keeps_are_left_to_it(opened: Any, provider: ProviderServer) -> None:
    """A list with references says nothing of what stands behind them: there is nothing to summarize, nor to mend."""
    reference = {"type": "item_reference", "id": "fc_1"}
    output = {"type": "function_call_output", "call_id": "a", "output": "word " * 9_000}
    raw = compact(body_of("openai-responses", [{"role": "user", "content": "go"}, reference, output]))
    response = post(opened().url, PATHS["openai-responses"], raw)
    assert provider.requests[-1].raw == raw
    assert response.headers["x-contextfold-native"] == "item_reference"


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_window_is_that_of_the_requests_model_whatever_stands_before_its_name(
    opened: Any, provider: ProviderServer, is_packed: bool
) -> None:
    """Inputs of tools have fields of that name too, and a packed body has no name to be read."""
    provider._provider.default_window = 200_000
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {"model": "gpt-4"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "word " * 25_000}
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}]
    body = {
        "max_tokens": 9,
        "messages": [*messages, {"role": "user", "content": [result]}],
        "model": "claude-sonnet-4-5",
    }
    raw = gzip.compress(compact(body)) if is_packed else compact(body)
    response = post(
        opened(window=None).url, PATHS["anthropic"], raw, {"content-encoding": "gzip"} if is_packed else None
    )
    assert response.headers["x-contextfold-action"] == "passed"
    assert response.headers.get("x-contextfold-window", "200000") == "200000"
    assert provider.requests[-1].raw == raw


@pytest.mark.parametrize("fields", [{}, {"model": "o3-mini"}], ids=["no model", "another model"])
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_the_model_of_azure_is_the_deployment_in_the_path(tmp_path: Path, wire: str, fields: dict[str, str]) -> None:
    """Without, all deployments have one window, and what one of them refuses is taken from the others. Where its name
    is no model's, the body's says more than none.
    """

    async def script(writer: Writer, seen: Seen) -> None:
        if (b"/gpt-4/" in seen.line or b"/small/" in seen.line) and len(seen.body) > 30_000:
            said = {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}
            await writer.json(compact({"error": said}), "400 Bad Request")
        else:
            await writer.json(b"{}")

    call = {"arguments": '{"model": "gpt-4"}', "name": "f"}
    messages = list(turns(wire, 110))[-1]
    if wire == "openai-chat":
        messages[2]["tool_calls"][0]["function"] = call
    else:
        messages[2] |= call
    body = body_of(wire, messages, **fields)
    if not fields:
        del body["model"]
    with RawUpstream(script) as upstream:
        settings = settings_for(upstream.url, tmp_path, window=None, upstreams={"azure": upstream.url})
        with InThread(settings) as gateway:
            windows = {}
            for name in ("gpt-4", "gpt%2D4o", "small", "unknown"):
                path = f"/azure/openai/deployments/{name}{PATHS[wire].removeprefix('/v1')}?api-version=2025-01-01"
                response = post(gateway.url, path, compact(body), {"api-key": name})
                assert response.status == 200
                windows[name] = response.headers["x-contextfold-window"]
    unknown = "200000" if fields else "64000"
    assert windows == {"gpt-4": "8192", "gpt%2D4o": "128000", "small": "8192", "unknown": unknown}


@pytest.mark.parametrize("wire", WIRES)
def test_above_it_a_conversation_of_many_windows_goes_on_and_every_request_extends_the_last(
    opened: Any, provider: ProviderServer, wire: str
) -> None:
    gateway = opened()
    responses = play(gateway, wire)
    assert {response.status for response in responses} == {200}
    assert actions(responses).count("compacted") >= 2
    assert all(request.tokens < WINDOW for request in provider.requests)
    for earlier, later, action in zip(provider.requests, provider.requests[1:], actions(responses)[1:], strict=False):
        if action != "compacted":
            assert later.raw.startswith(earlier.raw[: _end_of_messages(earlier.raw, KEYS[wire])])


def _end_of_messages(raw: bytes, key: str) -> int:
    return read_by(Conversations(), b"", raw, key, lambda message: (message, False))[0].end


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_the_cache_hits_as_often_as_without_compaction_between_two_of_them(
    opened: Any, provider: ProviderServer, wire: str
) -> None:
    gateway = opened()
    responses = play(gateway, wire, size=400)
    had = could_have = 0
    for earlier, later, action in zip(provider.requests, provider.requests[1:], actions(responses)[1:], strict=False):
        if action == "view" and earlier.tokens > 1_100:
            assert later.usage is not None
            had += later.usage.cached
            could_have += earlier.tokens // 128 * 128
    assert could_have > 50_000
    assert had >= 0.95 * could_have


def test_messages_that_stay_are_the_bytes_that_came_whatever_way_they_were_written(
    opened: Any, provider: ProviderServer
) -> None:
    gateway = opened()
    pieces = [b'{ "role" :"user",\n "content": "caf\\u00e9 %d %s" }' % (turn, b"word " * 300) for turn in range(30)]
    answers = b' {"content":"ok", "role":"assistant", "x_vendor": {"b":1.0,"a":[ ]}} '
    for count in range(1, 31):
        raw = (
            b'{"model":"m" , "messages": ['
            + b",".join(piece + b" ," + answers for piece in pieces[: count - 1])
            + (b"," if count > 1 else b"")
            + pieces[count - 1]
            + b' ] ,"temperature":0.50}'
        )
        response = post(gateway.url, PATHS["openai-chat"], raw)
        assert response.status == 200
    assert response.headers["x-contextfold-action"] == "view"
    sent = provider.requests[-1].raw
    assert pieces[29] in sent
    assert pieces[28] + b" ," + answers.rstrip() in sent
    assert sent.endswith(b' ] ,"temperature":0.50}')


def test_headers_go_both_ways_but_for_those_about_the_connection(tmp_path: Path) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        extra = b"x-request-id: r1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nkeep-alive: timeout=5\r\n"
        await writer.json(b'{"ok": true}', headers=extra)

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        given = {
            "anthropic-beta": "context-management-2025-06-27,interleaved-thinking",
            "anthropic-version": "2023-06-01",
            "x-api-key": "secret",
            "User-Agent": "agent/1",
            "connection": "x-hop",
            "x-hop": "1",
            "te": "trailers",
            "accept-encoding": "gzip, br",
        }
        raw = compact(body_of("anthropic", [{"role": "user", "content": "hi"}]))
        response = post(gateway.url, "/v1/messages?beta=true&x=%2F", raw, given)
        seen = upstream.seen[0]
    names = {name.decode().lower(): value.decode() for name, value in seen.headers}
    assert seen.line == b"POST /v1/messages?beta=true&x=%2F HTTP/1.1"
    assert seen.body == raw
    assert names["anthropic-beta"] == given["anthropic-beta"]
    assert names["x-api-key"] == "secret"
    assert names["user-agent"] == "agent/1"
    assert names["accept-encoding"] == "gzip, br"
    assert names["host"] == upstream.url.removeprefix("http://")
    assert not {"x-hop", "te", "transfer-encoding"} & names.keys()
    assert not any(name.startswith("x-contextfold") for name in names)
    assert response.json == {"ok": True}
    assert response.headers["x-request-id"] == "r1"
    assert response.headers["set-cookie"] in ("a=1, b=2", "b=2")
    assert "keep-alive" not in response.headers


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/models", b""),
        ("POST", "/v1/messages/count_tokens", b'{"messages": [ ]}'),
        ("POST", "/v1/responses/compact", b'{"input": [ ]}'),
        ("DELETE", "/v1/files/file-1", b""),
        ("POST", "/v1/files", b"\x00\xff" * 700_000),
        ("GET", "/some/where%20else?a=%2F", b""),
        ("POST", "/v1/chat/completions", b"this is no JSON"),
        ("POST", "/v1/responses", b'{"model": "m", "input": "a text"}'),
        ("GET", "/v1/responses/resp_1", b""),
    ],
)
def test_what_is_no_conversation_passes_through(tmp_path: Path, method: str, path: str, body: bytes) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b"[1,  2]", status="201 Created")

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        response = post(gateway.url, path, body, method=method)
        seen = upstream.seen[0]
    assert seen.line == f"{method} {path} HTTP/1.1".encode()
    assert seen.body == body
    assert (response.status, response.body) == (201, b"[1,  2]")


def test_a_connection_is_kept_behind_an_answer_that_nothing_has_changed(tmp_path: Path) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 55\r\n\r\n")

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
        for _ in range(2):
            connection.request("GET", "/v1/files/file-1/content", headers={"if-none-match": "x"})
            response = connection.getresponse()
            assert (response.status, response.read(), response.headers["etag"]) == (304, b"", "x")
        connection.close()


def test_a_request_in_gzip_is_read_and_passed_on_as_it_came(opened: Any, provider: ProviderServer) -> None:
    gateway = opened()
    raw = gzip.compress(compact(body_of("openai-chat", list(turns("openai-chat", 3))[-1])))
    response = post(gateway.url, PATHS["openai-chat"], raw, {"content-encoding": "gzip"})
    assert provider.requests[-1].raw == raw
    assert response.headers["x-contextfold-action"] == "passed"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_a_password_in_an_upstreams_address_is_sent_there_and_kept_nowhere(path: str, tmp_path: Path) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b'{"usage": {}}')

    with RawUpstream(script) as upstream:
        address = upstream.url.replace("http://", "http://ada:p%40ss@")
        with InThread(settings_for(upstream.url, tmp_path, upstreams={"openai": f"{address}/v1"})) as gateway:
            raw = compact(body_of("openai-chat", list(turns("openai-chat", ENOUGH))[-1]))
            assert post(gateway.url, path, raw).status == 200
            made = gateway.app.state.gateway._upstreams["openai"]
        headers = [(name.lower(), value) for name, value in upstream.seen[0].headers]
    assert [value for name, value in headers if name == b"authorization"] == [b"Basic " + b64encode(b"ada:p@ss")]
    assert upstream.seen[0].line == f"POST {path} HTTP/1.1".encode()
    assert "ada" not in made.endpoint + repr(made)


def test_other_upstreams_are_reached_by_their_names(tmp_path: Path) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}")

    with RawUpstream(script) as upstream:
        named = {"local": f"{upstream.url}/api/v1beta/openai", "openai": upstream.url}
        with InThread(settings_for(upstream.url, tmp_path, upstreams=named)) as gateway:
            post(gateway.url, "/local/v1/chat/completions", b'{"messages": []}')
            post(gateway.url, "/v1/chat/completions", b'{"messages": []}')
        lines = [seen.line for seen in upstream.seen]
    assert lines == [
        b"POST /api/v1beta/openai/chat/completions HTTP/1.1",
        b"POST /v1/chat/completions HTTP/1.1",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/openai/chat/completions",
        "/v1beta/openai/embeddings",
        "/v1beta/models/gemini-3:countTokens",
        "/v1alpha/models/gemini-3:batchGenerateContent",
        "/v1beta/tunedModels/mine:generateContent",
        "/v1beta/cachedContents",
        "/upload/v1beta/files",
        "/v1/models/gemini-3:countTokens?key=of-google",
    ],
)
def test_paths_of_googles_go_to_google_with_its_key(path: str, tmp_path: Path) -> None:
    """Also those on which Google speaks as OpenAI does: its key would be told another provider."""

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}")

    with RawUpstream(script) as google, RawUpstream(script) as other:
        urls = {"openai": f"{other.url}/v1", "anthropic": other.url, "gemini": google.url}
        with InThread(settings_for(google.url, tmp_path, upstreams=urls)) as gateway:
            post(gateway.url, path, b'{"messages": [], "contents": []}', {"authorization": "Bearer of-google"})
        assert not other.seen
        assert google.asked() == google.url + path


@pytest.mark.parametrize("base", ["", "/v1", "/api/anthropic"])
@pytest.mark.parametrize("path", ["/messages", "/messages/count_tokens"])
def test_a_client_that_puts_no_v1_behind_anthropics_address_asks_the_same(
    opened: Any, provider: ProviderServer, tmp_path: Path, base: str, path: str
) -> None:
    """Vercel's AI SDK asks for ANTHROPIC_BASE_URL and ``/messages``: it ended in HTTP 404."""

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}")

    with RawUpstream(script) as upstream:
        urls = {"openai": upstream.url, "anthropic": upstream.url + base}
        with InThread(settings_for(upstream.url, tmp_path, upstreams=urls)) as gateway:
            post(gateway.url, f"{path}?beta=true", b'{"messages": []}')
        asked = upstream.asked()
    assert asked == f"{upstream.url}{base.removesuffix('/v1')}/v1{path}?beta=true"
    gateway = opened()
    bodies = [compact(body_of("anthropic", messages)) for messages in turns("anthropic", ENOUGH)]
    answers = [post(gateway.url, "/messages", raw) for raw in bodies]
    assert {answer.status for answer in answers} == {200}
    assert "compacted" in actions(answers)


LOCATIONS = ["{base}/models?a=b", "{origin}{base}/chat/completions", "models/../answers", "?again=1", "/elsewhere"]
LOCATIONS += ["/", "{origin}//a"]
DOTS = ["{origin}{base}/../a", "{origin}/../others/v1/a", "%2e%2E/%2e./others/v1/a", "{origin}/a/..\\others/v1/a"]
NO_PATH = [("/v1", location) for location in DOTS]
NO_PATH += [("/api/v1beta/openai", location) for location in [*DOTS, "/v1/models", "/v1/messages", "{base}/messages"]]


@pytest.mark.parametrize("name", ["local", "openai", "anthropic"])
@pytest.mark.parametrize("base", ["/v1", "/api/v1beta/openai"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files/f/content"])
def test_a_redirect_leads_through_the_gateway_to_the_upstream_that_gave_it(
    tmp_path: Path, name: str, base: str, path: str
) -> None:
    """Bare paths led to another upstream, with the conversation and the key that were meant for this one."""

    async def script(writer: Writer, seen: Seen) -> None:
        to = b"location: %s\r\n" % locations[0].encode() if locations else b""
        await writer.json(b"{}", "307 Temporary Redirect" if to else "200 OK", to)

    async def stray(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}")

    with RawUpstream(script) as upstream, RawUpstream(stray) as others:
        urls = dict.fromkeys(("local", "openai", "anthropic"), others.url) | {name: f"{upstream.url}{base}"}
        with InThread(settings_for(upstream.url, tmp_path, upstreams=urls)) as gateway:
            for location in LOCATIONS:
                locations = [location.format(base=base, origin=upstream.url)]
                response = post(gateway.url, f"/{name}{path}", b'{"messages": []}')
                assert response.status == 307
                meant = urljoin(upstream.asked(), locations.pop())
                to = urlsplit(urljoin(f"{gateway.url}/{name}{path}", response.headers["location"]))
                post(f"http://{to.netloc}", f"{to.path}?{to.query}".rstrip("?"), b'{"messages": []}')
                assert upstream.asked() == meant
                is_below = f"{urlsplit(meant).path}/".startswith(f"{base}/")
                assert f"http://{to.netloc}" == gateway.url or (name == "anthropic" and not is_below)
            locations = ["https://files.example.com/f?sig=a%2Fb;c"]
            response = post(gateway.url, f"/{name}{path}", b'{"messages": []}')
            assert response.headers["location"] == locations[0], "what is another's stays as it came"
        assert not others.seen


@pytest.mark.parametrize(("base", "location"), NO_PATH)
def test_an_address_that_no_path_of_the_gateway_stands_for_is_told_as_it_is(
    tmp_path: Path, base: str, location: str
) -> None:
    """``/v1`` would be read as the base, and a client that follows dots leaves the upstream that gave them."""

    async def script(writer: Writer, seen: Seen) -> None:
        to = location.format(base=base, origin=upstream.url)
        await writer.json(b"{}", "307 Temporary Redirect", b"location: %s\r\n" % to.encode())

    with RawUpstream(script) as upstream:
        urls = {"local": f"{upstream.url}{base}", "others": upstream.url}
        with InThread(settings_for(upstream.url, tmp_path, upstreams=urls)) as gateway:
            response = post(gateway.url, "/local/v1/chat/completions", b'{"messages": []}')
            meant = urljoin(upstream.asked(), location.format(base=base, origin=upstream.url))
            assert response.headers["location"] == meant


# ---- streams ----


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        ("openai-chat", "/openai/deployments/gpt-5/chat/completions?api-version=2025-01-01"),
        ("openai-chat", "/chat/completions"),
        ("openai-responses", "/openai/responses?api-version=preview"),
        ("openai-responses", "/backend-api/codex/responses"),
        ("openai-chat", "/v1/chat/completions/"),
        ("openai-responses", "//v1/responses/?a=b"),
        ("anthropic", "/anthropic/v1/messages/"),
        ("gemini", "/v1/projects/p/locations/l/publishers/google/models/gemini-3:streamGenerateContent?alt=sse"),
        ("gemini", "/v1beta1/projects/p/locations/l/endpoints/4711:generateContent"),
        ("gemini", "/v1beta/tunedModels/mine-4711:generateContent?key=k"),
        ("gemini", "/v1beta/models/gemini-3%3AgenerateContent"),
        ("gemini", "/v1beta/models/gemini-3%3astreamGenerateContent?alt=sse"),
    ],
)
def test_conversations_are_kept_inside_the_window_whatever_stands_before_their_route(
    wire: str, path: str, tmp_path: Path
) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b'{"usage": {}}')

    with RawUpstream(script) as upstream:
        settings = settings_for(upstream.url, tmp_path, upstreams={"other": upstream.url})
        with InThread(settings) as gateway:
            raw = compact(body_of(wire, list(turns(wire, ENOUGH))[-1]))
            response = post(gateway.url, f"/other{path}", raw, {"api-key": "k"})
        seen = upstream.seen[0]
    assert response.headers["x-contextfold-action"] == "compacted"
    assert seen.line == f"POST {path} HTTP/1.1".encode()
    assert len(seen.body) < len(raw)


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_is_the_bytes_of_the_upstream(opened: Any, provider: ProviderServer, wire: str) -> None:
    gateway = opened()
    body = body_of(wire, list(turns(wire, 4))[-1], stream=True)
    through = post(gateway.url, path_of(wire, True), compact(body))
    direct = post(provider.url, path_of(wire, True), compact(body))
    assert through.headers["content-type"] == direct.headers["content-type"]
    number = f"{provider.requests[0].number:06d}".encode()
    other = f"{provider.requests[1].number:06d}".encode()
    assert _same(through.body, number) == _same(direct.body, other)


def _same(body: bytes, number: bytes) -> list[Any]:
    """Events without what tells two answers apart: number, time and what the cache had."""
    import re

    body = body.replace(number, b"N")
    what = rb'"(created|created_at)": ?\d+|(, )?"\w*[cC]ache\w*": ?(\d+|\[[^]]*\])'
    return re.sub(what, b"", body).split(b"\n\n")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_of_a_stream_of_gemini_the_usage_is_read_and_told_in_either_form(tmp_path: Path, kind: str) -> None:
    """Without ``alt=sse`` its pieces are a list. The provider counts half of what is counted here."""
    pieces = [{"candidates": [{"content": {"parts": [{"text": word}], "role": "model"}}]} for word in ("a", "b")]
    pieces = [{**piece, "usageMetadata": {"promptTokenCount": 700, "totalTokenCount": 703}} for piece in pieces]
    events = b"".join(b"data: " + compact(piece) + b"\r\n\r\n" for piece in pieces)
    answer = events if kind == "text/event-stream" else compact(pieces)

    async def script(writer: Writer, seen: Seen) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(answer)}\r\n\r\n"
        await writer.write(head.encode() + answer)

    messages = list(turns("gemini", ENOUGH))[-1]
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path, usage="history")) as gateway:
        path = path_of("gemini", True)
        response = post(
            gateway.url,
            path if kind != "application/json" else path.partition("?")[0],
            compact(body_of("gemini", messages)),
        )
        before, after = (int(response.headers[f"x-contextfold-tokens-{name}"]) for name in ("before", "after"))
    assert before > after > 700
    told = (
        json.loads(response.body)
        if kind == "application/json"
        else [json.loads(event.removeprefix(b"data: ")) for event in response.body.split(b"\r\n\r\n") if event]
    )
    assert [piece["candidates"] for piece in told] == [piece["candidates"] for piece in pieces]
    assert told[-1]["usageMetadata"] == {"promptTokenCount": before, "totalTokenCount": before + 3}


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_each_element_of_a_list_that_gemini_streams_comes_at_once_whatever_usage_is_told(
    tmp_path: Path, encoding: str
) -> None:
    """It was held back until its end, and of one that is compressed nothing is told otherwise."""
    goes_on = threading.Event()
    says = ['one {"]', "two \\", "three"]
    pieces = [{"candidates": [{"content": {"parts": [{"text": word}], "role": "model"}}]} for word in says]
    pieces = [{**piece, "usageMetadata": {"promptTokenCount": 700, "totalTokenCount": 703}} for piece in pieces]
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)

    def packed(data: bytes) -> bytes:
        return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH) if encoding == "gzip" else data

    async def script(writer: Writer, seen: Seen) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: {encoding}\r\n"
        await writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        await writer.chunk(packed(b"[" + json.dumps(pieces[0], indent=1).encode()))
        while not goes_on.is_set():
            await asyncio.sleep(0.01)
        for byte in packed(b"\n,\r\n" + compact(pieces[1]) + b"," + compact(pieces[2]) + b"\n]\n"):
            await writer.chunk(bytes([byte]))
        await writer.write(b"0\r\n\r\n")

    raw = compact(body_of("gemini", list(turns("gemini", ENOUGH))[-1]))
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path, usage="history")) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=5)
        connection.request("POST", path_of("gemini", True).partition("?")[0], raw)
        response = connection.getresponse()
        body = response.read1()
        read = (lambda data: zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)) if encoding == "gzip" else bytes
        assert json.loads(read(body) + b"]")[0]["candidates"] == pieces[0]["candidates"]
        goes_on.set()
        told = json.loads(read(body + response.read()))
        connection.close()
    before = int(response.headers["x-contextfold-tokens-before"])
    assert [piece["candidates"] for piece in told] == [piece["candidates"] for piece in pieces]
    counts = [piece["usageMetadata"]["promptTokenCount"] for piece in told]
    assert counts == [before if encoding == "identity" else 700] * 3


PIECES = {
    "openai-chat": (
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n',
    ),
    "gemini": (b'data: {"candidates":[{"content":{"parts":[{"text":"one"}],"role":"model"}}]}\n\n',),
    "gemini, a list": (b'[{\n  "candidates": [{"content": {"parts": [{"text":', b'"one"}], "role": "model"}}]}\n'),
}


@pytest.mark.parametrize("said", PIECES)
def test_a_stream_arrives_piece_by_piece(tmp_path: Path, said: str) -> None:
    """As soon as it has content: before that, it is held back for some seconds, as it may still be a refusal."""
    pause = threading.Event()
    wire, _, is_list = said.partition(", ")
    kind = b"application/json" if is_list else b"text/event-stream"

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % kind)
        for piece in PIECES[said]:
            await writer.chunk(piece)
        while not pause.is_set():
            await asyncio.sleep(0.005)
        await writer.chunk(b"event: of_a_kind_unknown\ndata: {}\n\ndata: [DONE]\n\n")
        await writer.chunk(b"")

    import http.client

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
        messages = list(turns(wire, 6))[-1]
        began = time.monotonic()
        path = path_of(wire, True).removesuffix("?alt=sse" if is_list else "")  # without it Google sends a list
        connection.request("POST", path, compact(body_of(wire, messages, stream=True)))
        response = connection.getresponse()
        first = b""
        while b'"one"' not in first:
            first += response.read1(10_000)
        assert time.monotonic() - began < HOLD_SECONDS
        pause.set()
        assert response.read().endswith(b"event: of_a_kind_unknown\ndata: {}\n\ndata: [DONE]\n\n")
        connection.close()


# ---- records ----


def test_a_record_is_found_again_by_another_process(provider: ProviderServer, tmp_path: Path) -> None:
    """The store holds the record, the client the messages."""
    lists = list(turns("openai-chat", 25))
    with InThread(settings_for(provider.url, tmp_path)) as first:
        made = [post(first.url, PATHS["openai-chat"], compact(body_of("openai-chat", one))) for one in lists[:-1]]
    before = provider.requests[-1].raw
    with InThread(settings_for(provider.url, tmp_path)) as second:
        found = post(second.url, PATHS["openai-chat"], compact(body_of("openai-chat", lists[-1])))
    assert found.headers["x-contextfold-action"] == "view"
    assert found.headers["x-contextfold-compaction"] == made[-1].headers["x-contextfold-compaction"]
    assert provider.requests[-1].raw.startswith(before[: _end_of_messages(before, "messages")])


@pytest.mark.parametrize("workers", [1, 2])
def test_two_gateways_on_one_store_serve_the_turns_of_one_conversation(
    provider: ProviderServer, tmp_path: Path, workers: int
) -> None:
    """Any worker serves any turn; a gateway with one alone may have another beside it on the same file."""
    with (
        InThread(settings_for(provider.url, tmp_path, workers=workers)) as one,
        InThread(settings_for(provider.url, tmp_path, workers=workers)) as other,
    ):
        responses = []
        for turn, messages in enumerate(turns("anthropic", ENOUGH)):
            gateway = (one, other)[turn % 2]
            responses.append(post(gateway.url, PATHS["anthropic"], compact(body_of("anthropic", messages))))
    assert {response.status for response in responses} == {200}
    ids = [response.headers.get("x-contextfold-compaction") for response in responses]
    changes = sum(one != other for one, other in pairwise(ids))
    assert changes == actions(responses).count("compacted") <= 6


def test_two_tenants_with_the_same_messages_never_see_each_others_record(
    opened: Any, provider: ProviderServer, tmp_path: Path
) -> None:
    gateway = opened()
    mine = play(gateway, "openai-chat", 20, headers={"authorization": "Bearer mine"})
    theirs = play(gateway, "openai-chat", 20, headers={"authorization": "Bearer theirs"})
    assert actions(mine) == actions(theirs)
    assert "compacted" in actions(theirs)
    stored = (tmp_path / "gateway.db").read_bytes() + (tmp_path / "gateway.db-wal").read_bytes()
    assert b"Bearer" not in stored
    assert b"theirs" not in stored


def test_a_password_of_the_operators_netrc_is_sent_to_no_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b'{"ok": true}')

    netrc = tmp_path / "netrc"
    netrc.write_text("default login operator password of-the-operator\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=30)
        body = compact(body_of("anthropic", [{"role": "user", "content": "hi"}]))
        connection.request("POST", PATHS["anthropic"], body, {"content-type": "application/json", "x-api-key": "mine"})
        assert connection.getresponse().read() == b'{"ok": true}'
        connection.close()
        (seen,) = upstream.seen
    told = {name.decode().lower(): value.decode() for name, value in seen.headers}
    assert told["x-api-key"] == "mine"
    assert "authorization" not in told


def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_proxy_of_the_environment_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b'{"ok": true}')

    without_proxies(monkeypatch)
    with RawUpstream(script) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
        with InThread(settings_for("http://api.test", tmp_path)) as gateway:
            raw = compact(body_of("openai-chat", [{"role": "user", "content": "hi"}]))
            assert post(gateway.url, PATHS["openai-chat"], raw).json == {"ok": True}
        (seen,) = proxy.seen
    told = {name.decode().lower(): value.decode() for name, value in seen.headers}
    assert seen.line == b"POST http://api.test/v1/chat/completions HTTP/1.1"
    assert told["proxy-authorization"] == "Basic bWU6c2VjcmV0"
    assert told["authorization"] == "Bearer key-of-a-test"


def test_the_password_of_a_proxy_is_told_to_no_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuses(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}", status="407 Proxy Authentication Required")

    without_proxies(monkeypatch)
    with RawUpstream(refuses) as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
        with InThread(settings_for("https://api.test", tmp_path)) as gateway:
            raw = compact(body_of("openai-chat", [{"role": "user", "content": "hi"}]))
            answer = post(gateway.url, PATHS["openai-chat"], raw)
    assert answer.status == 502
    assert b"407" in answer.body
    assert b"secret" not in answer.body


def test_a_host_that_the_environment_excepts_is_asked_without_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proxies(monkeypatch)
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inside.test,127.0.0.1")
    assert str(proxy_for(URL("https://api.test/v1/messages"))["proxy"]) == "http://proxy.test:3128"
    assert proxy_for(URL("https://inside.test/v1/messages")) == {}
    assert proxy_for(URL("http://api.test/v1/messages")) == {}


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        ({"http_proxy": "proxy.test:3128"}, "http://proxy.test:3128"),
        ({"http_proxy": "me:secret@proxy.test:3128"}, "http://me:secret@proxy.test:3128"),
        ({"all_proxy": "http://proxy.test:3128"}, "http://proxy.test:3128"),
        ({"all_proxy": "proxy.test:3128"}, "http://proxy.test:3128"),
        ({"all_proxy": "socks5://proxy.test:1080"}, None),
        ({"all_proxy": "socks5://proxy.test:1080", "http_proxy": "http://proxy.test:3128"}, "http://proxy.test:3128"),
        ({"http_proxy": "http://proxy.test:3128", "no_proxy": "vllm.test:8000"}, None),
        ({"http_proxy": "http://proxy.test:3128", "no_proxy": "vllm.test:8001"}, "http://proxy.test:3128"),
    ],
)
def test_a_proxy_is_named_as_other_clients_read_it(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], asked: str | None
) -> None:
    """Without a scheme, for all schemes at once, and excepted at one port of a host."""
    without_proxies(monkeypatch)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(URL("http://vllm.test:8000/v1/messages")) == ({"proxy": URL(asked)} if asked else {})


@pytest.mark.parametrize(
    ("excepted", "host", "is_asked"),
    [
        ("10.0.0.0/8", "10.1.2.3:8000", False),
        ("10.1.2.3/8", "10.200.0.1", False),
        ("10.0.0.0/8", "11.1.2.3:8000", True),
        ("10.0.0.0/8", "vllm.test", True),
        ("fd00::/8", "[fd00::1]:8000", False),
        ("fd00::/8", "10.1.2.3", True),
        ("[::1]", "[::1]:8000", False),
        ("[::1]:8000", "[::1]:8000", False),
        ("[::1]:8001", "[::1]:8000", True),
        ("*.test", "vllm.test:8000", False),
        ("*.test", "vllm.other", True),
        ("other vllm.test", "vllm.test:8000", False),
        ("other, 10.0.0.0/8", "10.1.2.3", False),
        ("10.0.0.0/99", "10.1.2.3", True),
        ("10.*", "10.1.2.3:8000", False),
        ("10.*", "110.1.2.3", True),
        ("vllm.test.", "vllm.test:8000", False),
        ("vllm.test", "vllm.test.:8000", False),
        (".test.", "vllm.test", False),
    ],
)
def test_what_is_excepted_from_a_proxy_is_read_as_other_clients_read_it(
    monkeypatch: pytest.MonkeyPatch, excepted: str, host: str, is_asked: bool
) -> None:
    """Ranges of addresses, stars, brackets, dots at the end, and blanks between two names."""
    without_proxies(monkeypatch)
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", excepted)
    assert bool(proxy_for(URL(f"http://{host}/v1/messages"))) is is_asked


def test_sub_agents_that_share_a_session_id_do_not_share_a_record(opened: Any, provider: ProviderServer) -> None:
    """headroom#782, claude-code-proxy#95."""
    gateway = opened()
    headers = {"x-claude-code-session-id": "the-same"}
    one = list(turns("anthropic", 25, seed=1))
    two = list(turns("anthropic", 25, seed=2))
    for left, right in zip(one, two, strict=True):
        post(gateway.url, PATHS["anthropic"], compact(body_of("anthropic", left)), headers)
        post(gateway.url, PATHS["anthropic"], compact(body_of("anthropic", right)), headers)
    for request in provider.requests:
        assert not ("call_1_" in request.text and "call_2_" in request.text)
    assert any("Task 1" in request.text and request.tokens < 6_000 for request in provider.requests[-2:])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("by_another", [False, True])
def test_a_turn_that_is_sent_again_after_the_next_one_was_compacted_costs_no_compaction(
    opened: Any, wire: str, by_another: bool
) -> None:
    """The newest record has its last messages in the summary: an older one serves it."""
    lists = list(turns(wire, ENOUGH))
    first = opened()
    done = actions(play(first, wire))
    again = [number - 1 for number, action in enumerate(done) if action == "compacted"]
    assert len(again) >= 2
    for number in again:
        gateway = opened() if by_another else first  # one that has not met the conversation
        for _ in range(2):
            response = post(gateway.url, PATHS[wire], compact(body_of(wire, lists[number])))
            assert response.status == 200
            assert response.headers["x-contextfold-action"] == done[number]


def test_a_record_that_did_not_serve_is_not_tried_again(opened: Any) -> None:
    """A fork without the newest message of the user, whose last one by then is in the summary."""
    gateway, wire = opened(), "openai-chat"
    rng = random.Random(1)
    said = [{"role": "user", "content": words(rng, 120)}, {"role": "assistant", "content": "yes"}]
    messages: list[Any] = []
    while True:
        messages += [{**said[0], "content": f"{len(messages)} {words(rng, 200)}"}, said[1]]
        response = post(gateway.url, PATHS[wire], compact(body_of(wire, [*messages, {"role": "user", "content": "?"}])))
        if response.headers["x-contextfold-action"] == "compacted":
            break
    fork = [*messages, {"role": "assistant", "content": "and on"}]
    found = [post(gateway.url, PATHS[wire], compact(body_of(wire, fork))) for _ in range(3)]
    assert {one.status for one in found} == {200}
    assert actions(found)[1:] == ["view", "view"]


def test_a_fork_finds_the_record_of_what_it_shares(opened: Any, provider: ProviderServer) -> None:
    gateway = opened()
    lists = list(turns("openai-chat", 24))
    made = [post(gateway.url, PATHS["openai-chat"], compact(body_of("openai-chat", one))) for one in lists]
    forked = [*lists[-1][:-2], {"role": "user", "content": "do something else instead"}]
    response = post(gateway.url, PATHS["openai-chat"], compact(body_of("openai-chat", forked)))
    assert response.headers["x-contextfold-action"] == "view"
    assert response.headers["x-contextfold-compaction"] == made[-1].headers["x-contextfold-compaction"]
    rewound = post(gateway.url, PATHS["openai-chat"], compact(body_of("openai-chat", lists[3])))
    assert rewound.headers["x-contextfold-action"] == "passed"


# ---- what belongs to the provider ----


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("anthropic", {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
        ("openai-responses", {"context_management": [{"type": "compaction", "compact_threshold": 1_000}]}),
        ("gemini", {"cachedContent": "cachedContents/what-was-said-before"}),
    ],
)
def test_native_context_management_passes_untouched(tmp_path: Path, wire: str, fields: Any) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}")

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        raw = compact(body_of(wire, list(turns(wire, ENOUGH))[-1], **fields))
        response = post(gateway.url, PATHS[wire], raw)
        assert upstream.seen[0].body == raw
    assert response.headers["x-contextfold-native"] == next(iter(fields))


SHORT = [
    ("openai-responses", {"previous_response_id": "resp_1"}, "previous_response_id"),
    ("openai-responses", {"conversation": "conv_1"}, "conversation"),
    ("openai-responses", {"previous_response_id": None, "conversation": None}, None),
    ("openai-responses", {"metadata": {"conversation": "a"}}, None),
    ("anthropic", {"thread": {"type": "continue", "id": "t"}}, "thread"),
    ("anthropic", {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}, None),
    ("openai-chat", {"conversation": "conv_1"}, None),
]


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
@pytest.mark.parametrize(("wire", "fields", "told"), SHORT)
def test_a_short_request_says_whether_it_is_left_to_the_provider(
    tmp_path: Path, wire: str, fields: Any, told: str | None, status: str
) -> None:
    """What a provider holds goes on in short requests alone, also in that which it refuses for the size of the whole;
    each is counted once.
    """
    text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    error = {"message": text, "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(json.dumps({"error": error} if status != "200 OK" else {}).encode(), status=status)

    raw = compact(body_of(wire, [{"role": "user", "content": "Go on."}], **fields))
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        response = post(gateway.url, PATHS[wire], raw)
        assert upstream.seen[0].body == raw
        assert gateway.metrics.total("native_total") == (told is not None)
    assert response.status == int(status[:3])
    assert response.headers.get("x-contextfold-native") == told


@pytest.mark.parametrize("keep", ["all", {"type": "thinking_turns", "value": 1}])
def test_edits_that_clear_thinking_alone_leave_the_size_to_us(opened: Any, provider: ProviderServer, keep: Any) -> None:
    """Claude Code sends one with each request."""
    fields = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": keep}]}}
    found = play(opened(), "anthropic", **fields)
    assert actions(found).count("compacted") >= 1
    assert {response.status for response in found} == {200}
    assert json.loads(provider.requests[-1].raw)["context_management"] == fields["context_management"]


@pytest.mark.parametrize("said", ["The task list is stale.", "Task list {} is stale."])
def test_reminders_in_the_systems_role_stay_where_a_client_put_them(
    opened: Any, provider: ProviderServer, said: str
) -> None:
    """Claude Code puts them behind results; its thinking is bound to every byte before it. Of those that say the same
    word for word, a pass leaves the newest, and what came since then stays.
    """
    gateway = opened()
    reminders: list[Any] = []
    messages: list[Any] = []
    found = []
    for turn, longer in enumerate(turns("anthropic", 2 * ENOUGH)):
        messages += longer[-2:] if turn else longer
        if turn % 3 == 0:
            reminders.append({"role": "system", "content": said.format(turn)})
            messages.append(reminders[-1])
        raw = compact(body_of("anthropic", messages))
        found.append(post(gateway.url, PATHS["anthropic"], raw))
        sent = provider.requests[-1].raw
        if found[-1].headers["x-contextfold-action"] == "passed":
            assert sent == raw
        view = json.loads(sent)["messages"]
        kept = [message for message in view if message["role"] == "system"]
        assert kept == reminders if "{}" in said else kept == reminders[-len(kept) :] != []
        results = next(one for one in reversed(messages) if one["role"] == "user")
        assert view[-2:] == messages[-2:] or view[-1] == results
    assert {response.status for response in found} == {200}
    assert {request.status for request in provider.requests} == {200}
    assert actions(found).count("compacted") >= 2


def test_a_compaction_item_and_all_before_it_stay_as_they_are(tmp_path: Path) -> None:
    """What stands behind it is compacted all the same."""

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.json(b"{}")

    item = b'{"type": "compaction", "id":"cmp_1",  "encrypted_content": "gAAAA==" }'
    before = b'{"type":"message","role":"user","content":"the first"}'
    rest = list(turns("openai-responses", ENOUGH))[-1]
    inside = before + b" , " + item + b"," + compact(rest)[1:-1]
    raw = b'{"model":"m","input":[' + inside + b"]}"
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        response = post(gateway.url, PATHS["openai-responses"], raw)
        sent = upstream.seen[0].body
    assert response.headers["x-contextfold-action"] == "compacted"
    assert sent.startswith(b'{"model":"m","input":[' + before + b" , " + item + b",")
    assert len(sent) < len(raw) / 2


def test_at_most_the_marks_that_came_remain_and_the_newest_is_kept(opened: Any, provider: ProviderServer) -> None:
    gateway = opened()
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": "You are an agent.", "cache_control": mark}]
    tools = [{"name": "read", "input_schema": {"type": "object"}, "cache_control": mark}]
    for messages in turns("anthropic", ENOUGH):
        marked = json.loads(json.dumps(messages))
        for message in [one for one in marked if one["role"] == "user"][-2:]:
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
            message["content"][-1]["cache_control"] = mark
        response = post(
            gateway.url, PATHS["anthropic"], compact(body_of("anthropic", marked, system=system, tools=tools))
        )
        assert response.status == 200
        sent = provider.requests[-1].raw
        assert sent.count(b'"cache_control"') <= 4
        assert b"cache_control" in compact(json.loads(sent)["messages"][-1])
    usage = response.json["usage"]
    assert usage["cache_read_input_tokens"] > 0.5 * usage["input_tokens"]


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
def test_a_client_that_writes_text_as_a_block_while_it_is_marked_goes_on_with_its_conversation(
    opened: Any, provider: ProviderServer, wire: str
) -> None:
    """As litellm writes results for Anthropic, and messages for OpenRouter."""
    gateway = opened()
    for messages in turns(wire, ENOUGH):
        marked = json.loads(json.dumps(messages))
        holder = marked[-1]
        if isinstance(holder["content"], list):
            holder = holder["content"][-1]
        holder["content"] = [{"type": "text", "text": holder["content"], "cache_control": {"type": "ephemeral"}}]
        response = post(gateway.url, PATHS[wire], compact(body_of(wire, marked)))
        assert response.status == 200
    assert gateway.metrics.total("remembered_conversations") == 1
    assert gateway.metrics.total("compactions_total") <= 6


# ---- refusals ----


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_leads_to_one_smaller_request_and_teaches_the_window(
    opened: Any, provider: ProviderServer, wire: str, stream: bool
) -> None:
    gateway = opened(window=None)
    messages = list(turns(wire, ENOUGH))
    response = post(gateway.url, path_of(wire, stream), compact(body_of(wire, messages[-2], stream=stream)))
    assert response.status == 200
    assert response.headers["x-contextfold-resent"]
    assert [request.error is None for request in provider.requests] == [False, True]
    again = post(gateway.url, path_of(wire, stream), compact(body_of(wire, messages[-1], stream=stream)))
    assert again.status == 200
    assert len(provider.requests) == 3


def test_headers_that_speak_of_the_body_that_came_go_with_no_other(opened: Any, provider: ProviderServer) -> None:
    """A provider that remembers a key would answer a view as it answered the original: that it is too long."""
    gateway, wire = opened(window=None), "openai-chat"
    given = {"Idempotency-Key": "turn-7", "content-md5": "abc", "content-digest": "sha-256=:abc=:"}
    messages = list(turns(wire, ENOUGH))[-1]
    for _ in range(2):  # the second time as a client does whose connection broke
        assert post(gateway.url, PATHS[wire], compact(body_of(wire, messages)), given).status == 200
    original, view, again = provider.requests
    assert {name.lower(): original.headers[name.lower()] for name in given} == {k.lower(): v for k, v in given.items()}
    assert view.headers["idempotency-key"] not in ("", "turn-7")
    assert again.headers["idempotency-key"] == view.headers["idempotency-key"], "one body, one key"
    assert again.raw == view.raw
    assert not {"content-md5", "content-digest"} & {*view.headers, *again.headers}


@pytest.mark.parametrize("wire", WIRES)
def test_a_refusal_inside_a_stream_that_began_with_success_is_one_too(
    opened: Any, provider: ProviderServer, wire: str
) -> None:
    provider.faults.add(Fault.overflows(limit=3_000, in_stream=True), at=1)
    gateway = opened()
    body = compact(body_of(wire, list(turns(wire, 13))[-1], stream=True))
    response = post(gateway.url, path_of(wire, True), body)
    assert response.status == 200
    assert len(provider.requests) == 2
    assert b"error" not in response.body.lower().replace(b'"error":null', b"").replace(b'"error": null', b"")
    assert provider.requests[1].tokens < provider.requests[0].tokens


def test_a_refused_prompt_says_nothing_of_the_answers_of_others(tmp_path: Path) -> None:
    """What a prompt alone is refused for is no limit for prompt and answer together: a short request keeps its own."""

    async def script(writer: Writer, seen: Seen) -> None:
        if len(upstream.seen) == 1:
            error = b'{"type": "error", "error": {"message": "prompt is too long: 3000 tokens > 2500 maximum"}}'
            await writer.json(error, status="400 Bad Request")
        else:
            await writer.json(b'{"content": [{"type": "text", "text": "ok"}], "usage": {}}')

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        long, short = (list(turns("anthropic", count))[-1] for count in (13, 1))
        assert post(gateway.url, PATHS["anthropic"], compact(body_of("anthropic", long))).status == 200
        raw = compact(body_of("anthropic", short, max_tokens=30_000))
        assert post(gateway.url, PATHS["anthropic"], raw).status == 200
    assert [len(seen.body) for seen in upstream.seen][1] < len(upstream.seen[0].body)
    assert upstream.seen[-1].body == raw


OPENINGS = {
    "openai-chat": [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [], "prompt_filter_results": []},
        {"error": {"message": "maximum context length is 2500 tokens", "code": "context_length_exceeded"}},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.added", "item": {"type": "message", "id": "m"}},
        {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "too long"}}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}},
        {"type": "error", "error": {"message": "prompt is too long: 3000 tokens > 2500 maximum"}},
    ],
}


@pytest.mark.parametrize("kind", [b"content-type: text/event-stream\r\n", b""])
@pytest.mark.parametrize("wire", OPENINGS)
def test_a_refusal_behind_pieces_that_say_nothing_is_one_too(tmp_path: Path, wire: str, kind: bytes) -> None:
    """Proxies write the opening of an answer before they have asked a provider. ChatGPT's streams to Codex do not say
    that they are some.
    """

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\n%stransfer-encoding: chunked\r\n\r\n" % kind)
        for event in OPENINGS[wire] if len(upstream.seen) == 1 else OPENINGS[wire][:-1]:
            await writer.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
        await writer.chunk(b"data: [DONE]\n\n")
        await writer.chunk(b"")

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        body = compact(body_of(wire, list(turns(wire, 13))[-1], stream=True))
        response = post(gateway.url, path_of(wire, True), body)
        sizes = [len(seen.body) for seen in upstream.seen]
    assert response.status == 200
    assert len(sizes) == 2
    assert sizes[1] < sizes[0]
    assert b"context length" not in response.body.lower()
    assert response.body.count(b"data: ") == len(OPENINGS[wire])


@pytest.mark.parametrize(
    ("wire", "refusal"),
    [
        (
            "openai-chat",
            b'{"error": {"message": "maximum context length is 2500 tokens", "code": 400}, "user_id": "u"}',
        ),
        (
            "openai-responses",
            b'{"id": "r", "status": "failed", "error": {"code": "context_length_exceeded"}, "output": []}',
        ),
        ("anthropic", b'{"type": "error", "error": {"message": "prompt is too long: 3000 tokens > 2500 maximum"}}'),
        (
            "gemini",
            b'{"error": {"code": 400, "message": "The input token count (3000) exceeds the maximum number of tokens '
            b'allowed (2500).", "status": "INVALID_ARGUMENT"}}',
        ),
        (
            "gemini",
            b'[{"error": {"code": 400, "message": "The input token count (3000) exceeds the maximum number of tokens '
            b'allowed (2500).", "status": "INVALID_ARGUMENT"}}]',
        ),
    ],
    ids=["openai-chat", "openai-responses", "anthropic", "gemini", "gemini, a list"],
)
@pytest.mark.parametrize("way", ["at once", "behind blanks, in pieces", "in gzip"])
def test_a_refusal_inside_a_plain_answer_that_is_a_success_is_one_too(
    wire: str, refusal: bytes, way: str, tmp_path: Path
) -> None:
    """Routers before several providers answer with 200, and tell in the body what the provider said."""
    answer = b'{"output": [{"text": "ok, \\"error\\": {"}], "usage": {}}'

    async def script(writer: Writer, seen: Seen) -> None:
        said = answer if len(upstream.seen) > 1 else refusal
        if way == "behind blanks, in pieces":
            await writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            for piece in (b"  \n", b"\n", said[:9], said[9:], b""):
                await writer.chunk(piece)
        elif way == "in gzip":
            await writer.json(gzip.compress(said), headers=b"content-encoding: gzip\r\n")
        else:
            await writer.json(said)

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        raw = compact(body_of(wire, list(turns(wire, 13))[-1]))
        response = post(gateway.url, PATHS[wire], raw)
        sizes = [len(seen.body) for seen in upstream.seen]
    assert response.status == 200
    assert (gzip.decompress(response.body) if way == "in gzip" else response.body).strip() == answer
    assert sizes[0] == len(raw)
    assert sizes[1] < len(raw)
    assert response.headers["x-contextfold-resent"] == "prompt_too_long"


def test_a_refusal_inside_a_stream_that_is_a_bare_text_is_one_too(tmp_path: Path) -> None:
    said = [b'data: {"error": "maximum context length is 2500 tokens"}\n\n', b"data: [DONE]\n\n"]

    async def script(writer: Writer, seen: Seen) -> None:
        body = said[len(upstream.seen) - 1]
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
        await writer.write(head % len(body) + body)

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        raw = compact(body_of("openai-chat", list(turns("openai-chat", 13))[-1], stream=True))
        response = post(gateway.url, PATHS["openai-chat"], raw)
    assert response.body == said[1]


def test_a_request_for_claudes_larger_window_has_it_and_the_others_have_the_usual_one(
    opened: Any, provider: ProviderServer
) -> None:
    provider._provider.default_window = 1_000_000
    gateway = opened(window=None)
    messages = list(turns("anthropic", 40, size=2_000))[-1]
    raw = compact({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages})
    large = {"anthropic-beta": "oauth-2025-04-20,context-1m-2025-08-07"}
    taken = post(gateway.url, PATHS["anthropic"], raw, large)
    assert taken.headers["x-contextfold-action"] == "passed"
    assert provider.requests[-1].raw == raw
    usual = post(gateway.url, PATHS["anthropic"], raw)
    assert usual.headers["x-contextfold-action"] == "compacted"
    assert usual.headers["x-contextfold-window"] == "200000"


def test_what_others_are_refused_for_does_not_take_the_larger_window_from_those_that_ask_for_it(
    opened: Any, provider: ProviderServer
) -> None:
    provider.faults.add(Fault.overflows(limit=3_000), at=1)
    gateway = opened(window=1_000_000)
    raw = compact({**body_of("anthropic", list(turns("anthropic", 13))[-1]), "model": "claude-sonnet-4-5"})
    assert post(gateway.url, PATHS["anthropic"], raw).headers["x-contextfold-resent"] == "prompt_too_long"
    taken = post(gateway.url, PATHS["anthropic"], raw, {"anthropic-beta": "context-1m-2025-08-07", "x-api-key": "b"})
    assert taken.headers["x-contextfold-action"] == "passed"
    assert provider.requests[-1].raw == raw


def test_a_learned_window_is_known_to_other_workers(provider: ProviderServer, tmp_path: Path) -> None:
    lists = list(turns("openai-chat", ENOUGH))
    with InThread(settings_for(provider.url, tmp_path, window=None, workers=2)) as first:
        post(first.url, PATHS["openai-chat"], compact(body_of("openai-chat", lists[-1])))
    taught = len(provider.requests)
    with InThread(settings_for(provider.url, tmp_path, window=None, workers=2)) as second:
        body = body_of("openai-chat", list(turns("openai-chat", ENOUGH, seed=9))[-1])
        assert post(second.url, PATHS["openai-chat"], compact(body)).status == 200
    assert taught == 2
    assert len(provider.requests) == 3


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])  # their refusals name the limit
def test_a_window_that_was_learned_from_an_odd_refusal_is_corrected_by_the_next_true_one(
    opened: Any, provider: ProviderServer, wire: str
) -> None:
    """Else nothing of the conversation would fit for ever, on any worker."""
    provider.faults.add(Fault.overflows(limit=300), at=1)
    gateway = opened()
    said = "The loader and the ledger stay as they are until the end of the month. " * 45
    odd = [{"role": "user", "content": said}]
    assert post(gateway.url, PATHS[wire], compact(body_of(wire, odd))).status == 400
    messages = [*odd, *(m for m in list(turns(wire, ENOUGH))[-1][1:])]
    statuses = [post(gateway.url, PATHS[wire], compact(body_of(wire, messages))).status for _ in range(3)]
    assert statuses[-1] == 200, [request.error for request in provider.requests]
    assert gateway.metrics.total("failures_total"), "the learned window was in the way"


@pytest.mark.parametrize("wire", WIRES)
def test_a_window_that_was_guessed_from_denser_words_is_not_in_the_way_of_others(wire: str, tmp_path: Path) -> None:
    """Their refusal names no limit, and their estimate is half of what they cost."""
    rng = random.Random(1)

    def dense(text: str) -> int:
        digits = sum(map(str.isdigit, text))
        return (len(text) - digits) // 4 + digits

    with (
        ProviderServer(default_window=WINDOW, count_tokens=dense, overflow="bedrock") as provider,
        InThread(settings_for(provider.url, tmp_path)) as gateway,
    ):
        numbers = [" ".join(str(rng.randrange(10**12)) for _ in range(80)) for _ in range(10)]
        messages = [message_of(wire, ("user", "assistant")[n % 2], text) for n, text in enumerate([*numbers, "go on"])]
        response = post(gateway.url, PATHS[wire], compact(body_of(wire, messages)))
        assert response.headers["x-contextfold-resent"] == "prompt_too_long"
        assert int(response.headers["x-contextfold-window"]) < WINDOW // 2
        plain = [message_of(wire, "user", "The loader and the ledger stay as they are until May. " * 270)]
        told = []
        for n in range(8):
            plain += [message_of(wire, "assistant", f"fine {n}"), message_of(wire, "user", "go on, then. " * 150)]
            response = post(gateway.url, PATHS[wire], compact(body_of(wire, plain)), {"x-api-key": "another"})
            assert response.status == 200
            told.append((response.headers.get("x-contextfold-window"), "x-contextfold-failure" in response.headers))
        assert told[2:] == [(str(WINDOW), False)] * 6
        assert sum(request.error is not None for request in provider.requests) == 1


def test_what_cannot_be_made_to_fit_gets_the_providers_own_refusal(opened: Any, provider: ProviderServer) -> None:
    gateway = opened(window=None)
    body = body_of("openai-chat", [{"role": "user", "content": "word " * 20_000}])
    response = post(gateway.url, PATHS["openai-chat"], compact(body))
    direct = post(provider.url, PATHS["openai-chat"], compact(body))
    assert response.status == direct.status == 400
    assert response.json == direct.json
    assert response.headers["x-contextfold-failure"]


def test_other_errors_of_the_provider_are_the_clients(opened: Any, provider: ProviderServer) -> None:
    provider.faults.add(Fault.rate_limit(retry_after=7), at=1)
    provider.faults.add(Fault.overloaded(), at=2)
    gateway = opened()
    raw = compact(body_of("anthropic", list(turns("anthropic", 3))[-1]))
    limited = post(gateway.url, PATHS["anthropic"], raw)
    assert (limited.status, limited.headers["retry-after"]) == (429, "7")
    assert post(gateway.url, PATHS["anthropic"], raw).status == 529
    assert len(provider.requests) == 2


# ---- failures of ours ----


def test_a_bug_of_ours_costs_no_turn_and_is_told(
    opened: Any, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = opened()
    _break_the_engine(gateway, monkeypatch)
    raw = compact(body_of("openai-chat", list(turns("openai-chat", 12))[-1]))
    response = post(gateway.url, PATHS["openai-chat"], raw)
    assert response.status == 200
    assert provider.requests[-1].raw == raw
    assert response.headers["x-contextfold-failure"] == "internal"
    assert (
        'contextfold_failures_total{kind="internal"' in post(gateway.url, "/metrics", b"", method="GET").body.decode()
    )


def test_a_bug_in_what_is_looked_at_first_costs_no_turn(
    opened: Any, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = opened()

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(gateway.app.state.gateway._exchanges.conversations, "find", broken)
    raw = compact(body_of("openai-chat", list(turns("openai-chat", 12))[-1]))
    response = post(gateway.url, PATHS["openai-chat"], raw)
    assert (response.status, response.headers["x-contextfold-failure"]) == (200, "internal")
    assert provider.requests[-1].raw == raw


@pytest.mark.parametrize("strict", [False, True])
def test_a_bug_behind_the_answer_sends_nothing_twice(
    opened: Any, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    """What the provider took is the client's: it was paid for, and may have been acted on."""
    gateway = opened(strict=strict)

    def broken(*_: Any) -> float:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("contextfold.gateway.exchange.price_of", broken)
    responses = play(gateway, "openai-chat")
    assert {response.status for response in responses} == {200}
    assert responses[-1].headers["x-contextfold-failure"] == "internal"
    assert len(provider.requests) == len(responses)


def test_a_bug_that_leaves_no_answer_is_told_in_the_clients_own_shape(
    opened: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = opened()

    async def broken(*_: Any) -> None:
        raise ZeroDivisionError("quoting alpha")

    monkeypatch.setattr(gateway.app.state.gateway._exchanges, "answer", broken)
    response = play(gateway, "anthropic", 0)[0]
    assert (response.status, response.json["error"]["type"]) == (500, "api_error")
    assert response.headers["x-contextfold-failure"] == "internal"
    assert "quoting alpha" not in caplog.text


def test_strict_refuses_instead(opened: Any, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = opened(strict=True)
    _break_the_engine(gateway, monkeypatch)
    raw = compact(body_of("anthropic", list(turns("anthropic", 12))[-1]))
    response = post(gateway.url, PATHS["anthropic"], raw)
    assert response.status == 503
    assert response.json["type"] == "error"
    assert "--strict" in response.json["error"]["message"]
    assert not provider.requests


def _break_the_engine(gateway: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(gateway.app.state.gateway._exchanges.compactor, "acall", broken)


def test_without_its_store_the_gateway_goes_on(provider: ProviderServer, tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    with InThread(settings_for(provider.url, tmp_path, store=f"sqlite:///{folder}/gateway.db")) as gateway:
        responses = play(gateway, "openai-chat")
        health = post(gateway.url, "/healthz", b"", method="GET")
    assert {response.status for response in responses} == {200}
    assert actions(responses).count("compacted") >= 2
    assert any(response.headers.get("x-contextfold-failure") == "store" for response in responses)
    assert health.status == 200


def test_why_the_store_cannot_be_used_is_said_at_the_start_and_with_each_failure(
    provider: ProviderServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("contextfold.gateway"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("contextfold"), "propagate", True)
    with InThread(settings_for(provider.url, tmp_path, store=f"sqlite:///{tmp_path}/no-folder/gateway.db")) as gateway:
        # Other loggers, in a process that ran other tests before, are not asked.
        at_start = [record.getMessage() for record in caplog.records if record.name == "contextfold.gateway"]
        play(gateway, "openai-chat")
    assert len(at_start) == 1
    failures = [record.getMessage() for record in caplog.records if "store failed" in record.getMessage()]
    assert failures
    assert all("no-folder" in said and "unable to open database file" in said for said in [*at_start, *failures])


def test_a_full_disk_costs_no_turn(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SQLite itself says it: "database or disk is full"."""
    from contextfold.store.database import Database

    make = Database._sqlite

    def full(self: Database, *given: Any) -> Any:
        from sqlalchemy import event

        engine = make(self, *given)
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 1"))
        return engine

    monkeypatch.setattr("contextfold.gateway.shared.STORE_PAUSE_SECONDS", 0.0)
    gateway = opened()
    play(gateway, "openai-chat", 3)
    monkeypatch.setattr(Database, "_sqlite", full)
    gateway.app.state.gateway._exchanges.shared.records.database.close()
    responses = play(gateway, "openai-chat", 25, seed=4)
    assert {response.status for response in responses} == {200}
    assert "compacted" in actions(responses)
    assert responses[-1].headers["x-contextfold-action"] == "view"
    assert "store" in {response.headers.get("x-contextfold-failure") for response in responses}


def test_a_store_whose_file_is_removed_is_made_again(
    opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextfold.gateway.shared.STORE_PAUSE_SECONDS", 0.0)
    gateway = opened()
    play(gateway, "openai-chat", 2)
    gateway.app.state.gateway._exchanges.shared.records.database.close()
    for path in tmp_path.glob("gateway.db*"):
        path.unlink()
    responses = play(gateway, "openai-chat", 30, seed=4)
    assert {response.status for response in responses} == {200}
    again = opened()
    raw = compact(body_of("openai-chat", list(turns("openai-chat", 30, seed=4))[-1]))
    found = post(again.url, PATHS["openai-chat"], raw)
    assert found.headers["x-contextfold-action"] == "view"


def test_strict_refuses_where_the_store_is_away(opened: Any, provider: ProviderServer, tmp_path: Path) -> None:
    gateway = opened(strict=True, store=f"sqlite:///{tmp_path}/not/there/gateway.db")
    raw = compact(body_of("openai-chat", list(turns("openai-chat", ENOUGH))[-1]))
    response = post(gateway.url, PATHS["openai-chat"], raw)
    assert response.status == 503
    assert response.headers["x-contextfold-failure"] == "store"
    assert not provider.requests


def test_a_store_that_hangs_holds_requests_up_once(
    opened: Any, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextfold.gateway.shared.STORE_SECONDS", 0.2)
    gateway = opened(workers=2)
    let_go = threading.Event()
    records = gateway.app.state.gateway._exchanges.shared.records
    monkeypatch.setattr(records, "find", lambda *_: let_go.wait(10))
    began = time.monotonic()
    responses = play(gateway, "openai-chat", 20)
    took = time.monotonic() - began
    let_go.set()
    assert {response.status for response in responses} == {200}
    assert took < 8


def test_a_gateway_ends_while_its_store_gives_no_answer(
    provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a network does that loses what is sent to PostgreSQL: what waits for it may do so for minutes."""
    monkeypatch.setattr("contextfold.gateway.shared.STORE_SECONDS", 0.2)
    gateway = InThread(settings_for(provider.url, tmp_path)).start()
    has_ended, answered = threading.Event(), []
    records = gateway.app.state.gateway._exchanges.shared.records
    monkeypatch.setattr(records, "find", lambda *_: answered.append(has_ended.wait(20)))
    failures = [response.headers.get("x-contextfold-failure") for response in play(gateway, "openai-chat", 20)]
    gateway.close(at_once=True)
    assert "store" in failures
    assert not answered
    has_ended.set()


def test_with_its_summarizer_down_the_agent_goes_on(provider: ProviderServer, tmp_path: Path) -> None:
    dead = {"summarizer": "openai:a-model", "base_url": "http://127.0.0.1:1/v1"}
    policy = Policy(summary={"retries_on_failure": 0})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "key")
        with InThread(settings_for(provider.url, tmp_path, policy=policy, **dead)) as gateway:
            responses = play(gateway, "openai-chat", 30)
    assert {response.status for response in responses} == {200}
    assert "summary" in {response.headers.get("x-contextfold-failure") for response in responses}
    assert responses[-1].headers["x-contextfold-action"] == "view"


# ---- modes ----


def test_a_compaction_is_told_and_counted_whatever_the_provider_answers(opened: Any, provider: ProviderServer) -> None:
    gateway = opened()
    provider.faults.add(Fault.rate_limit(retry_after=1), at=1)
    raw = compact(body_of("openai-chat", list(turns("openai-chat", 40))[-1]))
    found = [post(gateway.url, PATHS["openai-chat"], raw) for _ in range(2)]
    assert [response.status for response in found] == [429, 200]
    assert [response.headers["x-contextfold-action"] for response in found] == ["compacted", "view"]
    assert gateway.metrics.total("compactions_total") == 1


def test_shadow_changes_nothing_and_tells_what_it_would_have_saved(opened: Any, provider: ProviderServer) -> None:
    provider._provider.default_window = 100_000
    gateway = opened(shadow=True)
    raws = [compact(body_of("openai-chat", one)) for one in turns("openai-chat", 25)]
    for raw in raws:
        response = post(gateway.url, PATHS["openai-chat"], raw)
    assert [request.raw for request in provider.requests] == raws
    assert response.headers["x-contextfold-action"] == "shadow"
    time.sleep(0.2)
    assert gateway.metrics.total("shadow_tokens_total") > 5_000
    assert gateway.metrics.total("tokens_saved_total") == 0


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_usage_is_the_providers_or_that_of_the_whole_history(
    opened: Any, provider: ProviderServer, wire: str, stream: bool
) -> None:
    options = {"stream_options": {"include_usage": True}} if wire == "openai-chat" and stream else {}
    body = compact(body_of(wire, list(turns(wire, ENOUGH))[-1], stream=stream, **options))
    told = []
    for usage in ("provider", "history"):
        response = post(opened(usage=usage).url, path_of(wire, stream), body)
        told.append(_input_tokens(response.body, stream))
        full = int(response.headers["x-contextfold-tokens-before"])
    sent = provider.requests[-1].tokens
    assert told[0] == sent
    assert told[1] == full > 1.5 * sent


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_shortened_counts_as_saved_as_what_left(opened: Any, provider: ProviderServer, wire: str) -> None:
    """Where a user pastes files and gets short answers, most of what is saved was cut out of the user's messages."""
    provider._provider.default_window = 16_000
    gateway = opened(window=16_000)
    messages: list[Any] = []
    views = 0
    for turn in range(20):
        lines = (f'def part_{at}(given): return "m{turn}:{at}" + str(given) # note {turn * at}' for at in range(48))
        messages.append(message_of(wire, "user", f"# src/m{turn}.py\n" + "\n".join(lines)))
        headers = post(gateway.url, PATHS[wire], compact(body_of(wire, messages))).headers
        if headers["x-contextfold-action"] != "passed":
            full, sent, saved = (int(headers[f"x-contextfold-tokens-{name}"]) for name in ("before", "after", "saved"))
            assert full == pytest.approx(count_tokens(messages), rel=0.1)
            assert saved == full - sent
            views += 1
        messages.append(message_of(wire, "assistant", f"ok {turn}"))
    assert views > 5


def _input_tokens(body: bytes, stream: bool) -> int:
    from contextfold.gateway.wires import input_tokens, usage_holders

    texts = [part.partition(b"data: ")[2] for part in body.split(b"\n\n")] if stream else [body]
    found = [json.loads(text) for text in texts if text.strip().startswith(b"{")]
    return max(input_tokens(usage) or 0 for said in found for usage in usage_holders(said))


def test_a_request_may_switch_it_off(opened: Any, provider: ProviderServer) -> None:
    provider._provider.default_window = 100_000
    gateway = opened()
    raw = compact(body_of("openai-chat", list(turns("openai-chat", ENOUGH))[-1]))
    response = post(gateway.url, PATHS["openai-chat"], raw, {"x-contextfold": "off"})
    assert provider.requests[-1].raw == raw
    assert response.headers["x-contextfold-reason"] == "off"


def test_a_chain_of_two_gateways_compacts_once(opened: Any, provider: ProviderServer, tmp_path: Path) -> None:
    """billion-context#292."""
    inner = opened(store=f"sqlite:///{tmp_path / 'inner.db'}", window=WINDOW // 3)
    outer = opened(upstreams={"openai": f"{inner.url}/v1"})
    responses = play(outer, "openai-chat", 25)
    assert {response.status for response in responses} == {200}
    viewed = [one for one in responses if "x-contextfold-compaction" in one.headers]
    assert viewed
    assert inner.metrics.total("failures_total") == 0


def test_the_callers_own_model_writes_summaries_under_the_callers_key_before_they_are_needed(tmp_path: Path) -> None:
    with ProviderServer(default_window=WINDOW) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            responses = []
            for messages in turns("openai-chat", 25):
                body = compact(body_of("openai-chat", messages))
                responses.append(post(gateway.url, PATHS["openai-chat"], body))
                time.sleep(0.02)
            time.sleep(0.3)
        assert {response.status for response in responses} == {200}
        assert {request.model for request in provider.requests} == {"model-of-a-test"}
        assert len(provider.requests) > len(responses)
        assert any(response.headers.get("x-contextfold-prepared") == "true" for response in responses)


# ---- clients and operators ----


def test_a_client_that_leaves_ends_the_upstreams_work(tmp_path: Path) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        while not seen.closed.is_set():
            await asyncio.sleep(0.01)

    import http.client

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
        connection.request("POST", "/v1/chat/completions", b'{"messages": []}')
        while not upstream.seen:
            time.sleep(0.01)
        connection.close()
        assert upstream.seen[0].closed.wait(5)
        time.sleep(0.1)
        assert gateway.metrics.total("disconnects_total") == 1


LAST_EVENTS = {
    "openai-chat": b'data: {"choices":[],"usage":{"prompt_tokens":4500,"completion_tokens":1}}\n\ndata: [DONE]\n\n',
    "openai-responses": b'event: response.completed\ndata: {"type":"response.completed","response":'
    b'{"output":[],"usage":{"input_tokens":4500,"output_tokens":1}}}\n\n',
    "anthropic": b'event: message_delta\ndata: {"type":"message_delta","usage":{"input_tokens":4500,"output_tokens":1}}'
    b'\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
}


@pytest.mark.parametrize("wire", LAST_EVENTS)
def test_a_client_that_closes_its_connection_at_the_last_event_has_its_whole_answer(tmp_path: Path, wire: str) -> None:
    """As Copilot and Vibe do. They counted as having left (499), and what the provider had counted was lost."""

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        await writer.chunk(LAST_EVENTS[wire])
        while not seen.closed.is_set():  # the end of the answer comes later than its last event
            await asyncio.sleep(0.01)

    import http.client

    messages = [{"role": "user", "content": f"{n} " + "some words " * 70} for n in range(14)]
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path, window=5000)) as gateway:
        actions = []
        for count in (12, 14):
            connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
            body = compact(body_of(wire, messages[:count], stream=True))
            connection.request("POST", PATHS[wire], body, {"content-type": "application/json"})
            response = connection.getresponse()
            said = b""
            while not said.endswith(LAST_EVENTS[wire][-20:]):
                said += response.read1()
            actions.append(response.headers["x-contextfold-action"])
            connection.close()
            assert upstream.seen[-1].closed.wait(5)
            time.sleep(0.1)
        assert gateway.metrics.total("disconnects_total") == 0
        assert actions == ["passed", "compacted"]


@pytest.mark.parametrize(
    ("wire", "pieces", "is_whole"),
    [
        ("openai-chat", [b"data:[DONE]\n\n"], True),
        ("openai-chat", [b'data: {"choices":[]}\n\n'], False),
        ("openai-responses", [b"event: response.incomplete\r\ndata: {}\r\n\r\n"], True),
        ("openai-responses", [b'event:response.failed\ndata: {"text":"\xc3', b'\xa9"}\n\n'], True),
        ("openai-responses", [b"event: response.completed\n", b'data: {"response":{}}', b"\n", b"\n"], True),
        ("openai-responses", [b'event: response.completed\ndata: {"response":{"output":['], False),
        ("anthropic", [b'event: content_block_delta\ndata: {"delta":{"text":"event: message_stop"}}\n\n'], False),
    ],
)
def test_only_with_the_last_event_has_a_client_that_closes_its_connection_the_whole_answer(
    tmp_path: Path, wire: str, pieces: list[bytes], is_whole: bool
) -> None:
    """It may stand in any piece of what was read, be written in other ways, be cut off, or be what an answer speaks
    of."""

    async def script(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            await writer.chunk(piece)
            await asyncio.sleep(0.02)
        while not seen.closed.is_set():
            await asyncio.sleep(0.01)

    import http.client

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
        body = compact(body_of(wire, [], stream=True))
        connection.request("POST", PATHS[wire], body, {"content-type": "application/json"})
        response, said = connection.getresponse(), b""
        while said != b"".join(pieces):
            said += response.read1()
        connection.close()
        assert upstream.seen[0].closed.wait(5)
        time.sleep(0.1)
        assert gateway.metrics.total("disconnects_total") == (not is_whole)


def test_a_stream_that_breaks_off_is_no_whole_answer(tmp_path: Path) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        await writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        await writer.chunk(b'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n')
        await asyncio.sleep(0.05)
        writer.reset()

    import http.client

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            post(gateway.url, PATHS["openai-chat"], compact(body_of("openai-chat", [], stream=True)))
        assert gateway.metrics.total("upstream_errors_total") == 1


@pytest.mark.parametrize(("what", "status"), [("reset", 502), ("stall", 504), ("gone", 502)])
def test_an_upstream_that_gives_no_answer_is_told_apart(tmp_path: Path, what: str, status: int) -> None:
    async def script(writer: Writer, seen: Seen) -> None:
        if what == "reset":
            writer.reset()
        else:
            await asyncio.sleep(5)

    with RawUpstream(script) as upstream:
        url = "http://127.0.0.1:1" if what == "gone" else upstream.url
        with InThread(settings_for(url, tmp_path, first_byte_seconds=0.3)) as gateway:
            response = post(gateway.url, PATHS["anthropic"], b'{"messages": []}')
            assert response.status == status
            assert response.json["type"] == "error"
            assert len(upstream.seen) == (0 if what == "gone" else 1)


def test_a_request_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with InThread(settings_for("http://127.0.0.1:1", tmp_path, max_body=1_000)) as gateway:
        response = post(gateway.url, PATHS["openai-chat"], b" " * 1_001)
    assert response.status == 413
    assert "1,000 bytes" in response.json["error"]["message"]


def test_more_requests_than_allowed_are_refused_at_once(tmp_path: Path) -> None:
    let_go = threading.Event()

    async def script(writer: Writer, seen: Seen) -> None:
        while not let_go.is_set():
            await asyncio.sleep(0.01)
        await writer.json(b"{}")

    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path, max_requests=2)) as gateway:
        waiting = [
            threading.Thread(target=post, args=(gateway.url, PATHS["openai-chat"], b'{"messages": []}'))
            for _ in range(2)
        ]
        for one in waiting:
            one.start()
        while len(upstream.seen) < 2:
            time.sleep(0.01)
        refused = post(gateway.url, PATHS["openai-chat"], b'{"messages": []}')
        let_go.set()
        for one in waiting:
            one.join()
    assert refused.status == 503
    assert refused.headers["retry-after"] == "1"


def test_a_client_that_sends_too_slowly_is_let_go(tmp_path: Path) -> None:
    import socket

    with (
        InThread(settings_for("http://127.0.0.1:1", tmp_path, client_seconds=0.2)) as gateway,
        socket.create_connection(("127.0.0.1", gateway.port), timeout=5) as slow,
    ):
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        assert slow.recv(1_000).startswith(b"HTTP/1.1 408")


def test_operators_see_health_and_figures(opened: Any) -> None:
    gateway = opened()
    play(gateway, "openai-chat", 25)
    health = post(gateway.url, "/healthz", b"", method="GET")
    text = post(gateway.url, "/metrics", b"", method="GET").body.decode()
    assert health.json["status"] == "ok"
    for name in ("requests_total", "compactions_total", "tokens_saved_total", "added_seconds_bucket", "in_flight"):
        assert f"contextfold_{name}{{" in text
    for line in text.splitlines():
        assert line.startswith("#") or line.rsplit(" ", 1)[1].replace(".", "").replace("e+", "").isdigit()


def test_the_log_has_figures_and_no_content(opened: Any, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("contextfold.gateway")
    gateway = opened()
    logger.propagate = True
    with caplog.at_level(logging.INFO, "contextfold.gateway"):
        play(gateway, "openai-chat", 2, headers={"x-claude-code-session-id": "abc-1"})
    assert "wire=openai-chat" in caplog.text
    assert "key-of-a-test" not in caplog.text
    assert "careful agent" not in caplog.text


@pytest.mark.parametrize("sep", ["\x85", "\u2028", " status=500 failure=internal ", '" '])
@pytest.mark.parametrize("count", [1, 40])
def test_a_models_name_forges_neither_a_line_nor_a_figure_of_the_log(
    provider: ProviderServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    sep: str,
    count: int,
) -> None:
    monkeypatch.setattr(logging.getLogger("contextfold.gateway"), "propagate", True)
    fields = {"model": f"m{sep}wire=forged"}
    body = compact({**body_of("openai-chat", list(turns("openai-chat", count))[-1]), **fields})
    # the line comes behind the answer, and at the latest before the gateway has ended
    with (
        caplog.at_level(logging.INFO, "contextfold.gateway"),
        InThread(settings_for(provider.url, tmp_path)) as gateway,
    ):
        post(gateway.url, PATHS["openai-chat"], body)
    (line,) = (record.getMessage() for record in caplog.records if "status=" in record.getMessage())
    assert len(line.splitlines()) == 1
    figures = dict(word.partition("=")[::2] for word in shlex.split(line))
    assert figures["status"] != "500"
    assert figures["wire"] == "openai-chat"
    assert figures.get("model") in (None, fields["model"])


def test_a_failure_is_logged_without_a_word_that_it_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A provider's refusal of a summary may quote the messages and the key; an error of ours may quote anything."""
    said = b'{"error":{"message":"wrong key key-of-a-test, near: You are a careful agent","type":"invalid"}}'

    async def script(writer: Writer, seen: Seen) -> None:
        asked = {name.lower(): value for name, value in seen.headers}
        is_own = b"x-contextfold" in asked and b"conversation_summary" not in seen.body
        if is_own:
            await writer.json(said, "401 Unauthorized")
        else:
            await writer.json(b'{"choices":[{"message":{"role":"assistant","content":"ok"}}]}')

    async def broken(*_: Any, **__: Any) -> None:
        raise ValueError("quoting a careful agent and key-of-a-test")

    monkeypatch.setattr(logging.getLogger("contextfold.gateway"), "propagate", True)
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path, summarizer="same")) as gateway:
        failures = {response.headers.get("x-contextfold-failure") for response in play(gateway, "openai-chat")}
        monkeypatch.setattr(gateway.app.state.gateway._exchanges.compactor, "acall", broken)
        failures |= {response.headers.get("x-contextfold-failure") for response in play(gateway, "openai-chat", seed=1)}
    assert {"summary", "internal"} <= failures
    text = "\n".join(one.getMessage() for one in caplog.records if one.name == "contextfold.gateway")
    assert "summary failed, the request goes on: SummaryRefused, HTTP 401" in text
    assert "internal failed, the request goes on: ValueError in test_gateway.py" in text
    assert not {word for word in ("key-of-a-test", "careful agent") if word in text}


def test_thinking_that_is_bound_to_another_beginning_is_not_sent(tmp_path: Path) -> None:
    """Accounts for which signatures bind all that stands before them refuse every view otherwise."""
    refusal = (
        b'{"type":"error","error":{"type":"invalid_request_error","message":"messages.2.content.0: Invalid signature '
        b"in thinking block. The block is bound to a different conversation. Remove the block, or set "
        b'thinking.block_binding.prefix_mismatch_behavior to \\"drop_block\\""}}'
    )

    async def script(writer: Writer, seen: Seen) -> None:
        body = json.loads(seen.body)
        if len(body["messages"]) < 2 * ENOUGH and b"c2ln" in seen.body:
            await writer.json(refusal, status="400 Bad Request")
            return
        await writer.json(b'{"content": [], "usage": {"input_tokens": 10}}')

    messages = list(turns("anthropic", ENOUGH))[-1]
    for message in messages:
        if message["role"] == "assistant":
            message["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path)) as gateway:
        raw = compact(body_of("anthropic", messages, thinking={"type": "adaptive"}))
        response = post(gateway.url, PATHS["anthropic"], raw)
        assert len(upstream.seen) <= 2
    assert response.status == 200
    assert "x-contextfold-failure" not in response.headers


def with_reminder(messages: list[Any]) -> list[Any]:
    """As clients send it that write something else behind the newest message in each turn."""
    content = messages[-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    reminder = {"type": "text", "text": f"There are {len(messages)} messages so far."}
    return [*messages[:-1], {**messages[-1], "content": [*blocks, reminder]}]


@pytest.mark.parametrize("kind", ["one conversation", "its newest message changes", "many conversations"])
def test_an_answer_limit_beyond_the_window_is_refused_once_and_lowered_ever_after(
    opened: Any, provider: ProviderServer, kind: str
) -> None:
    gateway = opened()
    lists = list(turns("anthropic", 30))
    if kind == "its newest message changes":
        lists = [with_reminder(messages) for messages in lists]
    elif kind == "many conversations":
        lists = [list(turns("anthropic", 3, seed=seed))[-1] for seed in range(30)]
    for messages in lists:
        body = body_of("anthropic", messages, max_tokens=64_000)
        assert post(gateway.url, PATHS["anthropic"], compact(body)).status == 200
    refused = [request for request in provider.requests if request.error is not None]
    assert 1 <= len(refused) <= 6


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.8])
def test_what_the_provider_counts_is_known_also_where_the_newest_message_changes_each_turn(
    tmp_path: Path, factor: float
) -> None:
    """Counted as by an estimate alone, it was compacted too early, or refused before each compaction."""
    made = []
    for change in (list, with_reminder):
        folder = tmp_path / change.__name__
        folder.mkdir()
        with (
            ProviderServer(default_window=WINDOW, count_tokens=lambda text: int(len(text) / 4 * factor)) as provider,
            InThread(settings_for(provider.url, folder)) as gateway,
        ):
            for messages in turns("anthropic", 60):
                raw = compact(body_of("anthropic", change(messages)))
                assert post(gateway.url, PATHS["anthropic"], raw).status == 200
            refused = sum(request.error is not None for request in provider.requests)
            made.append((refused, gateway.metrics.total("compactions_total")))
    (_, compactions), (refused, with_reminders) = made
    assert refused <= 1
    assert with_reminders <= compactions + 1


def test_an_answer_limit_is_lowered_for_the_model_alone_that_refused_it(opened: Any, provider: ProviderServer) -> None:
    """A conversation may go on with another model, whose window is larger."""
    provider._provider.windows = {"small": WINDOW, "large": 10 * WINDOW}
    gateway = opened()
    limits = []
    for model in ("small", "large", "small", "large"):
        body = body_of("anthropic", list(turns("anthropic", 4))[-1], model=model, max_tokens=WINDOW)
        assert post(gateway.url, PATHS["anthropic"], compact(body)).status == 200
        limits.append(provider.requests[-1].answer_limit)
    assert max(limits[0], limits[2]) < WINDOW
    assert limits[1] == limits[3] == WINDOW
    assert sum(request.error is not None for request in provider.requests) == 1


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
def test_a_client_gets_the_refusal_where_as_good_as_no_answer_would_fit(
    opened: Any, provider: ProviderServer, wire: str
) -> None:
    """DSPy tells all in one message, and cuts it where it is refused: of answers of 8 tokens it could read nothing."""
    gateway = opened(window=2 * WINDOW)
    for room, status in ((1_500, 200), (100, 400)):
        long = "The loader stays as it is. " * 2_000
        said = long[: len(long) * (WINDOW - room) // provider.count_tokens(long)]
        body = body_of(wire, [{"role": "user", "content": said}], max_tokens=3_000)
        response = post(gateway.url, PATHS[wire], compact(body))
        assert response.status == status, response.body
        assert (WINDOW - provider.requests[-1].tokens < 256) is (status == 400)
    assert provider.requests[-1].answer_limit == 3_000


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
def test_an_answer_limit_is_not_refused_again_as_a_conversation_gets_denser(tmp_path: Path, wire: str) -> None:
    def dense(text: str) -> int:
        digits = sum(map(str.isdigit, text))
        return (len(text) - digits) // 5 + digits

    said = [{"role": "user", "content": "The loader and the ledger stay as they are until May. " * 150}]
    with (
        ProviderServer(default_window=5 * WINDOW, count_tokens=dense) as provider,
        InThread(settings_for(provider.url, tmp_path, window=5 * WINDOW)) as gateway,
    ):
        for n in range(40):
            body = body_of(wire, said, max_tokens=5 * WINDOW - 1_500)
            response = post(gateway.url, PATHS[wire], compact(body))
            assert response.status == 200
            said += [{"role": "assistant", "content": f"fine {n}"}, {"role": "user", "content": f"{n:03}4711 " * 50}]
        assert 1 <= sum(request.error is not None for request in provider.requests) <= 4


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
def test_an_answer_limit_that_fits_is_left_alone_after_words_that_were_dense(tmp_path: Path, wire: str) -> None:
    """Else answers are cut short, and no one is told."""

    def dense(text: str) -> int:
        digits = sum(map(str.isdigit, text))
        return (len(text) - digits) // 5 + digits

    plain = "The loader and the ledger stay as they are until May. "
    said = [{"role": "user", "content": plain * 30}]
    window, asked, lowered = 5 * WINDOW, 3 * WINDOW // 2, 0
    with (
        ProviderServer(default_window=window, count_tokens=dense) as provider,
        InThread(settings_for(provider.url, tmp_path, window=window)) as gateway,
    ):
        for n in range(30):
            body = body_of(wire, said, max_tokens=asked if n else window)
            assert post(gateway.url, PATHS[wire], compact(body)).status == 200
            sent = provider.requests[-1].raw
            assert dense(sent.decode()) < window - asked
            lowered += json.loads(sent)["max_tokens"] < asked
            dense_words = "0123456789 " * (window // 25) if n == 2 else plain * 70
            said += [{"role": "assistant", "content": f"fine {n}"}, {"role": "user", "content": dense_words}]
        assert sum(request.error is not None for request in provider.requests) == 1
    assert lowered <= 2  # what passed unread was not counted


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
def test_a_refused_answer_limit_costs_those_no_reading_that_ask_for_answers_that_fit(
    opened: Any, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    """What was learned holds until the gateway ends, and so would what it costs."""
    gateway = opened()
    conversations = gateway.app.state.gateway._exchanges.conversations
    taken_apart: list[int] = []
    known_of = conversations.known_of
    monkeypatch.setattr(conversations, "known_of", lambda *given: taken_apart.append(1) or known_of(*given))

    def ask(seed: int, count: int, asked: int | None) -> tuple[str, int]:
        """What became of a growing conversation's newest turn, and how often one of its turns was read."""
        taken_apart.clear()
        for messages in turns(wire, count, seed=seed):
            fields = {} if asked is None else {"max_tokens": asked}
            response = post(gateway.url, PATHS[wire], compact(body_of(wire, messages, **fields)))
            assert response.status == 200
        return response.headers["x-contextfold-action"], len(taken_apart)

    before = ask(1, 2, 500)
    assert ask(2, 2, WINDOW)[0] == "view"
    assert any(request.error is not None for request in provider.requests)  # otherwise nothing was learned
    assert ask(3, 2, 500) == before == ("passed", 0)
    assert ask(4, 2, None)[1] == 0
    assert 0 < ask(5, 8, 500)[1] < 8  # longer ones are read now and then, since they grow toward the trigger
    assert ask(6, 2, WINDOW)[0] == "view"


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
@pytest.mark.parametrize("size", range(8_000, 26_000, 3_000))
def test_an_answer_limit_is_not_lowered_for_the_bytes_of_an_image(
    opened: Any, provider: ProviderServer, wire: str, size: int
) -> None:
    """They cost a few tokens however many they are, in the conversation that was refused as in every other."""
    gateway = opened()
    data = b64encode(random.Random(size).randbytes(size)).decode()
    shown: dict[str, Any] = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    if wire == "anthropic":
        shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    image = {"role": "user", "content": [shown]}
    said = list(turns(wire, 4))[-1]
    asked = [(said, WINDOW), ([image], WINDOW // 4), ([*said, image], WINDOW // 4)]
    for messages, limit in asked:
        assert post(gateway.url, PATHS[wire], compact(body_of(wire, messages, max_tokens=limit))).status == 200
    assert sum(request.error is not None for request in provider.requests) == 1
    refused, lowered, *later = [request.answer_limit for request in provider.requests]
    assert lowered < refused == WINDOW
    assert later == [WINDOW // 4] * 2


def test_an_answer_limit_is_not_lowered_by_what_the_denser_words_of_others_cost(
    opened: Any, provider: ProviderServer
) -> None:
    gateway = opened()
    rng = random.Random(1)
    numbers = " ".join(str(rng.randrange(100)) for _ in range(2_000))
    for text, limit in ((words(rng, 900), WINDOW), (numbers, WINDOW), (words(rng, 1_500), WINDOW // 2)):
        body = body_of("anthropic", [{"role": "user", "content": text}], max_tokens=limit)
        assert post(gateway.url, PATHS["anthropic"], compact(body)).status == 200
    assert 1 <= sum(request.error is not None for request in provider.requests) <= 2
    assert provider.requests[-1].answer_limit == WINDOW // 2


def test_a_budget_for_thinking_stays_below_an_answer_limit_that_is_lowered(
    opened: Any, provider: ProviderServer
) -> None:
    gateway = opened()
    for messages in turns("anthropic", 30):
        for message in messages:
            if message["role"] == "assistant" and message["content"][0]["type"] != "thinking":
                message["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": "c2ln"})
        thinking = {"type": "enabled", "budget_tokens": 31_999}
        body = body_of("anthropic", messages, max_tokens=32_000, thinking=thinking)
        assert post(gateway.url, PATHS["anthropic"], compact(body)).status == 200
    sent = [json.loads(request.raw) for request in provider.requests if request.error is None]
    for one in sent:
        if one["max_tokens"] > 1_024:
            assert 1_024 <= one["thinking"]["budget_tokens"] < one["max_tokens"]
        else:  # no budget is that small
            assert one["thinking"] == {"type": "disabled"}
    assert len({one["thinking"].get("budget_tokens") for one in sent}) <= 4


def test_calls_whose_thinking_was_summarized_go_on_without_and_the_next_turn_thinks_again(
    opened: Any, provider: ProviderServer
) -> None:
    """A model with a budget thinks once, before its first call; behind an answer without, the API takes no budget."""
    gateway = opened(policy=Policy(trigger=("fraction", 0.6), target=("fraction", 0.3)))
    own = {
        "max_tokens": 2_000,
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    }
    for messages in thinking_turns(once=True):
        answer = post(gateway.url, PATHS["anthropic"], compact(body_of("anthropic", messages, **own)))
        assert answer.status == 200
    last = provider.requests[-1].body
    assert last["thinking"] == {"type": "disabled"}
    assert "context_management" not in last  # edits of thinking are refused where there is none
    messages += [{"role": "assistant", "content": "Read."}, {"role": "user", "content": "And now?"}]
    assert post(gateway.url, PATHS["anthropic"], compact(body_of("anthropic", messages, **own))).status == 200
    last = provider.requests[-1].body
    assert {name: last[name] for name in own} == own
    assert all(request.error is None for request in provider.requests)
    assert gateway.metrics.total("failures_total") == 0


def test_records_that_are_made_again_after_a_refusal_stay_those_of_one_conversation(
    opened: Any, provider: ProviderServer, tmp_path: Path
) -> None:
    """The provider wants the thinking back that a pass leaves out, so its record is replaced."""
    gateway = opened(policy=Policy(trigger=("fraction", 0.6), target=("fraction", 0.3)))
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    told = None
    for messages in thinking_turns(once=False):
        body = body_of("anthropic", messages, max_tokens=2_000, thinking=thinking)
        answer = post(gateway.url, PATHS["anthropic"], compact(body))
        assert answer.status == 200
        told = answer.headers.get("x-contextfold-compaction")
    database = open_store(f"sqlite:///{tmp_path / 'gateway.db'}").database
    (line,) = records.lines(database)
    assert len(line.records) == gateway.metrics.total("compactions_total") > 2
    assert line.records[-1].compaction_id == told
    refused = [request for request in provider.requests if request.error is not None]
    made_again = [one for one in line.records if one.record.trigger == "malformed_history: no_thinking"]
    assert len(refused) == len(made_again) == 1


REFUSALS_WITHOUT_FIGURES = {
    "413 Payload Too Large": {
        "type": "error",
        "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"},
    },
    "400 Bad Request": {"error": {"message": "context length exceeded"}},
}


@pytest.mark.parametrize("status", REFUSALS_WITHOUT_FIGURES)
def test_the_status_of_a_refusal_is_no_window(tmp_path: Path, status: str) -> None:
    """Taken for one, it would be kept for the endpoint, and no conversation of anyone's would fit there any more."""
    messages = list(turns("anthropic", 40))[-1]
    body = compact(body_of("anthropic", messages))
    said = compact(REFUSALS_WITHOUT_FIGURES[status])

    async def script(writer: Any, seen: Any) -> None:
        is_refused = len(seen.body) > len(body) * 3 // 4
        await writer.json(said if is_refused else b"{}", status if is_refused else "200 OK")

    with (
        RawUpstream(script) as upstream,
        InThread(settings_for(upstream.url, tmp_path, window=100_000)) as gateway,
    ):
        response = post(gateway.url, PATHS["anthropic"], body)
        assert (response.status, len(upstream.seen)) == (200, 2)
        assert int(response.headers["x-contextfold-window"]) > 5_000


@pytest.mark.parametrize(
    ("said", "is_first"),
    [
        ("Request exceeds the maximum size", True),
        ("Request exceeds the maximum size", False),
        ("Input is too long for requested model.", False),
    ],
)
def test_pictures_that_are_too_many_bytes_teach_no_window_to_other_conversations(
    tmp_path: Path, said: str, is_first: bool
) -> None:
    """A guess from what was refused for its bytes would take all but a few tokens from conversations that fit."""

    async def script(writer: Any, seen: Any) -> None:
        is_refused = len(seen.body) > 500_000
        error = {"type": "error", "error": {"type": "request_too_large", "message": said}}
        await writer.json(compact(error) if is_refused else b"{}", "413 Payload Too Large" if is_refused else "200 OK")

    shots: list[Any] = [{"role": "user", "content": "Click through."}]
    for n in range(8):
        source = {"type": "base64", "media_type": "image/png", "data": f"{n}AAA" * 25_000}
        image = {"type": "tool_result", "tool_use_id": f"t{n}", "content": [{"type": "image", "source": source}]}
        call = {"type": "tool_use", "id": f"t{n}", "name": "look", "input": {}}
        shots += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [image]}]
    words_alone = compact(body_of("anthropic", list(turns("anthropic", 80))[-1]))
    with (
        RawUpstream(script) as upstream,
        InThread(settings_for(upstream.url, tmp_path, window=100_000)) as gateway,
    ):
        if not is_first:
            post(gateway.url, PATHS["anthropic"], words_alone)
        seen = post(gateway.url, PATHS["anthropic"], compact(body_of("anthropic", shots)))
        assert seen.status == 200
        assert "x-contextfold-resent" in seen.headers
        assert post(gateway.url, PATHS["anthropic"], words_alone).headers["x-contextfold-action"] == "passed"
        assert upstream.seen[-1].body == words_alone


def test_a_pass_that_is_made_again_after_a_refusal_stays_in_the_line_of_its_conversation(tmp_path: Path) -> None:
    """It was stored twice, the second time behind a record that is no more: one conversation was shown as two."""
    policy = Policy(keep=("messages", 2))
    with (
        ProviderServer({"small": 1_300}, default_window=WINDOW) as provider,
        InThread(settings_for(provider.url, tmp_path, policy=policy)) as gateway,
    ):
        answers = []
        for model, messages in zip(("large", "small"), list(turns("openai-chat", 50))[24::25], strict=True):
            body = compact(body_of("openai-chat", messages, model=model))
            answers.append(post(gateway.url, PATHS["openai-chat"], body))
        assert [answer.headers.get("x-contextfold-resent") for answer in answers] == [None, "prompt_too_long"]
        (line,) = records.lines(open_store(f"sqlite:///{tmp_path / 'gateway.db'}").database)
        assert len(line.records) == gateway.metrics.total("compactions_total") == 2
    assert line.records[-1].compaction_id == answers[-1].headers["x-contextfold-compaction"]


@pytest.mark.parametrize(("share", "requests"), [(0.9, 2), (0.2, 1)])
def test_a_refusal_without_a_word_is_taken_for_its_size_only_near_the_window(
    tmp_path: Path, share: float, requests: int
) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "fine"}}]}
    refusing = [True]

    async def script(writer: Any, seen: Any) -> None:
        refused = refusing.pop() if refusing else False
        await writer.json(b"" if refused else json.dumps(answer).encode(), "400 Bad Request" if refused else "200 OK")

    said = [
        {"role": "user", "content": f"part {n} " + "plain words here " * int(WINDOW * share / 30)} for n in range(10)
    ]
    body = json.dumps({"model": "m", "messages": said}).encode()
    settings = {"policy": Policy(trigger=("fraction", 0.99))}
    with RawUpstream(script) as upstream, InThread(settings_for(upstream.url, tmp_path, **settings)) as gateway:
        response = post(gateway.url, "/v1/chat/completions", body)
        assert (response.status, len(upstream.seen)) == ((200, 2) if requests == 2 else (400, 1))
        if requests == 2:
            assert len(upstream.seen[1].body) < len(body)
