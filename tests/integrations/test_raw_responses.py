"""Raw responses of the SDKs: what their bodies say is known where the SDK has read them."""

from __future__ import annotations

import asyncio
import functools
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

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

WIRE = [
    {"role": ("user", "assistant")[number % 2], "content": f"Note {number}. " + f"word{number} " * 200}
    for number in range(81)
]
REFUSAL = {"error": {"message": "prompt is too long: 9000 tokens > 8000 maximum", "code": "context_length_exceeded"}}
MESSAGE = {"role": "assistant", "content": "Done."}
CHAT = {"id": "1", "object": "chat.completion", "created": 1, "model": "small"}
ITEM = {"id": "2", "type": "message", "role": "assistant", "status": "completed", "content": []}
ANSWERS: dict[str, dict[str, Any]] = {
    "chat.completions": {
        **CHAT,
        "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7_000, "completion_tokens": 2, "total_tokens": 7_002},
    },
    "responses": {
        "id": "1",
        "object": "response",
        "created_at": 1,
        "model": "small",
        "status": "completed",
        "output": [ITEM],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": 7_000, "input_tokens_details": {}, "output_tokens": 2, "total_tokens": 7_002},
    },
    "messages": {
        "id": "1",
        "type": "message",
        "model": "small",
        "role": "assistant",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Done."}],
        "usage": {"input_tokens": 7_000, "output_tokens": 2},
    },
}


@contextmanager
def provider(answers: list[dict[str, Any]]) -> Iterator[tuple[str, list[int]]]:
    """A server that gives these answers, one after the other, and how many messages it was sent for each."""
    asked: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = json.dumps(answers[len(asked)]).encode()
            asked.append(len(body.get("messages") or body.get("input")))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal of the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("shape", list(ANSWERS))
def test_what_the_body_of_a_raw_response_says_is_known_as_that_of_any_other(shape: str, color: str) -> None:
    """Its usage corrects the next turn, and a refusal that came with HTTP 200 is recovered; neither was looked at."""
    sdk: Any = anthropic if shape == "messages" else openai
    over: Any = over_anthropic if shape == "messages" else over_openai
    given: dict[str, Any] = {"model": "small", "input" if shape == "responses" else "messages": WIRE}
    given |= {"max_tokens": 300} if shape == "messages" else {}
    name = "OpenAI" if sdk is openai else "Anthropic"

    def create_of(client: Any) -> Any:
        holder = functools.reduce(getattr, shape.split("."), client)
        return over.with_compaction(holder.with_raw_response.create, Compactor(window=100_000))

    async def later(url: str) -> Any:
        async with getattr(sdk, f"Async{name}")(base_url=url, api_key="any", max_retries=0) as client:
            create = create_of(client)
            return create, await create(**given)

    def now(url: str) -> Any:
        with getattr(sdk, name)(base_url=url, api_key="any", max_retries=0) as client:
            create = create_of(client)
            return create, create(**given)

    with provider([REFUSAL, ANSWERS[shape]]) as (url, asked):
        create, response = asyncio.run(later(url)) if color == "async" else now(url)
    assert response.http_response.json() == ANSWERS[shape]
    assert asked[0] == len(WIRE) > asked[1]
    assert create.result.window == 8_000
    assert create.calibration.observations == 1
