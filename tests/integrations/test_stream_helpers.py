"""Streams whose first pieces are empty, as providers write them, read by the SDKs themselves over a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from contextfold import Compactor
from contextfold.integrations import anthropic as over_anthropic
from contextfold.integrations import openai as over_openai
from effort import crossed

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

TOO_LONG = "prompt is too long: 9000 tokens > 8000 maximum"
WIRE = [
    {"role": ("user", "assistant")[number % 2], "content": f"Note {number}. " + f"word{number} " * 200}
    for number in range(81)
]


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}


RESPONSE: dict[str, Any] = {
    "id": "1",
    "object": "response",
    "created_at": 1,
    "model": "small",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "status": "in_progress",
    "instructions": None,
    "error": None,
}
ITEM = {"id": "2", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
PLACE = {"item_id": "2", "output_index": 0, "content_index": 0}
PART = {"type": "output_text", "text": "", "annotations": []}
MESSAGE: dict[str, Any] = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "small",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 1},
}


def delta(api: str, text: str) -> dict[str, Any]:
    return {
        "chat": chunk({"content": text}),
        "responses": {"type": "response.output_text.delta", **PLACE, "delta": text, "logprobs": []},
        "messages": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
    }[api]


BEGUN: dict[str, list[dict[str, Any]]] = {
    "chat": [chunk({"role": "assistant", "content": ""})],
    "responses": [
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
        {"type": "response.content_part.added", **PLACE, "part": PART},
        delta("responses", ""),
    ],
    "messages": [
        {"type": "message_start", "message": MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        delta("messages", ""),
    ],
}
REFUSED: dict[str, dict[str, Any]] = {
    "chat": {"error": {"message": TOO_LONG, "code": "context_length_exceeded"}},
    "responses": {
        "type": "response.failed",
        "response": {**RESPONSE, "status": "failed", "error": {"code": "invalid_prompt", "message": TOO_LONG}},
    },
    "messages": {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}},
}


@contextmanager
def scripted(*streams: list[dict[str, Any]]) -> Iterator[tuple[str, list[int]]]:
    """The URL of a server that answers with one stream after the other, and the length of each request's body."""
    left = list(streams)
    asked: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(len(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for number, event in enumerate(left.pop(0)):
                line = f"event: {event['type']}\n" if "type" in event else ""
                data = json.dumps({**event, "sequence_number": number})
                self.wfile.write(f"{line}data: {data}\n\n".encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def method_of(client: Any, api: str, name: str) -> Any:
    if api == "messages":
        return getattr(client.messages, name)
    if api == "responses":
        return getattr(client.responses, name)
    completions = client.chat.completions
    return getattr(completions, name, None) or getattr(client.beta.chat.completions, name)  # of older releases


@crossed(api=list(BEGUN), name=["create", "stream"], color=["sync", "async"])
def test_a_refusal_behind_pieces_without_any_text_is_recovered(api: str, name: str, color: str) -> None:
    """Of ``chat.completions.stream`` the first one, with the role alone, was taken for the begin of an answer."""
    good = [*BEGUN[api], delta(api, "Fine.")]
    face, package = (over_anthropic, anthropic) if api == "messages" else (over_openai, openai)
    given: dict[str, Any] = {"model": "small", "input" if api == "responses" else "messages": WIRE}
    given |= {"max_tokens": 300} if api == "messages" else {}
    given |= {"stream": True} if name == "create" else {}
    kind = ("" if color == "sync" else "Async") + ("Anthropic" if api == "messages" else "OpenAI")

    with scripted([*BEGUN[api], REFUSED[api]], good) as (url, asked):
        client = getattr(package, kind)(base_url=url, api_key="any", max_retries=0)
        send = face.with_compaction(method_of(client, api, name), Compactor(window=1_000_000))

        def read() -> list[Any]:
            with client, send(**given) as stream:
                return list(stream)

        async def aread() -> list[Any]:
            async with client, await send(**given) if name == "create" else send(**given) as stream:
                return [event async for event in stream]

        events = read() if color == "sync" else asyncio.run(aread())
    assert len(asked) == 2
    assert asked[1] < asked[0] / 2
    assert any("Fine." in str(event) for event in events)
    assert send.result.trigger == "overflow: prompt_too_long"
