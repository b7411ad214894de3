"""The routes, and how an answer goes out: bytes, connections and time.

What belongs here: ASGI. What does not: what is answered (``provider``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from emulator.faults import Fault
from emulator.provider import Outcome, Provider
from emulator.sse import Event
from emulator.wires import AnthropicMessages, BedrockConverse, GeminiContent, OpenAIChat, OpenAIResponses, Wire

_STREAM = "streamGenerateContent"
_GEMINI = tuple(
    f"/{version}/{place}models/{{model}}"
    for version in ("v1", "v1beta", "v1beta1")
    for place in ("", "publishers/google/", "projects/{project}/locations/{location}/publishers/google/")
)
"""The Gemini API's, and Vertex AI's with and without a project. The model is in the address. Google's own SDK asks for
``v1`` since its third version, and for a beta before.
"""

_PATHS: Sequence[tuple[str, Wire]] = (
    ("/v1/chat/completions", OpenAIChat()),
    ("/openai/deployments/{deployment}/chat/completions", OpenAIChat()),
    ("/v1/responses", OpenAIResponses()),
    ("/openai/responses", OpenAIResponses()),
    ("/v1/messages", AnthropicMessages()),
    *((f"{path}:{method}", GeminiContent()) for path in _GEMINI for method in ("generateContent", _STREAM)),
    ("/model/{model:path}/converse", BedrockConverse()),
    ("/model/{model:path}/converse-stream", BedrockConverse()),
)
"""The second and the fourth are Azure's."""

_COUNTS: Sequence[tuple[str, Wire]] = (
    ("/v1/messages/count_tokens", AnthropicMessages()),
    ("/v1/responses/input_tokens", OpenAIResponses()),
    *((f"{path}:countTokens", GeminiContent()) for path in _GEMINI),
)


class ConnectionCut(Exception):
    """Ends the connection in the middle of an answer. On purpose, so ``server`` keeps it out of the log."""


def make_app(provider: Provider, closing: asyncio.Event) -> Starlette:
    """The ASGI application. Whatever waits for a delay goes on as soon as ``closing`` is set."""
    routes = [Route(path, Answering(provider, wire, closing), methods=["POST"]) for path, wire in _PATHS]
    routes += [Route(path, _counting(provider, wire), methods=["POST"]) for path, wire in _COUNTS]
    return Starlette(routes=[*routes, Route("/v1/models", _models(provider))])


def _counting(provider: Provider, wire: Wire) -> Any:
    async def count(http: HTTPRequest) -> Response:
        raw = await http.body()
        status, body = await to_thread.run_sync(provider.count, wire, raw)
        return JSONResponse(body, status)

    return count


def _models(provider: Provider) -> Any:
    async def models(http: HTTPRequest) -> Response:
        """The models with a window of their own; ``max_model_len`` is what vLLM adds."""
        listed = [
            {"id": name, "object": "model", "created": 0, "owned_by": "contextfold", "max_model_len": window}
            for name, window in provider.windows.items()
        ]
        return JSONResponse({"object": "list", "data": listed})

    return models


class Answering:
    """The ASGI endpoint of one API."""

    def __init__(self, provider: Provider, wire: Wire, closing: asyncio.Event) -> None:
        self._provider = provider
        self._wire = wire
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = HTTPRequest(scope, receive)
        arrival = self._provider.arrival(http.url.path, http.headers, await http.body(), _in_address(http))
        outcome = await to_thread.run_sync(self._provider.handle, self._wire, arrival)
        fault = outcome.request.fault or Fault("none")
        await self._wait(fault.delay)
        kind = "application/json" if outcome.events is None else self._wire.stream_type
        kind = "text/html; charset=utf-8" if isinstance(outcome.body, str) else kind
        chunks = _plain_chunks(outcome.body) if outcome.events is None else [event.encode() for event in outcome.events]
        length = {"content-length": str(sum(map(len, chunks)))} if outcome.events is None else {}
        await send(_start(outcome, {"content-type": kind, **length}, arrival.number))
        await self._send_chunks(send, chunks, _break_place(outcome.events, fault), fault)

    async def _send_chunks(self, send: Send, chunks: Sequence[bytes], place: int, fault: Fault) -> None:
        """All chunks; before the one at ``place`` the fault strikes, if it is one that does."""
        for number, chunk in enumerate(chunks):
            if number == place:
                await self._wait(fault.stall)
                if fault.cuts:
                    raise ConnectionCut
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.sleep(0)  # so that a client that has gone is noticed, instead of written to
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _wait(self, seconds: float) -> None:
        """Wait for ``seconds``, or until the server closes."""
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)


def _in_address(http: HTTPRequest) -> dict[str, Any]:
    """What an address says of its request, where others have it in the body."""
    model = http.path_params.get("model")
    return (
        {} if model is None else {"model": model, "stream": http.url.path.endswith((f":{_STREAM}", "/converse-stream"))}
    )


def _start(outcome: Outcome, headers: dict[str, str], number: int) -> dict[str, Any]:
    """The first message of an ASGI response. The SDKs show the request id in their errors."""
    given = {**headers, **outcome.headers, "x-request-id": f"req_{number:06d}", "request-id": f"req_{number:06d}"}
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]
    return {"type": "http.response.start", "status": outcome.status, "headers": encoded}


def _plain_chunks(body: Any) -> list[bytes]:
    """The body in two halves, so that a connection can be cut between them."""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    data = text.encode(errors="replace")
    return [data[: len(data) // 2], data[len(data) // 2 :]]


def _break_place(events: Sequence[Event] | None, fault: Fault) -> int:
    """The chunk before which a stall or a cut strikes: at the latest the last one."""
    if events is None:
        return 1
    after = [place + 1 for place, event in enumerate(events) if event.is_piece]
    last = len(events) - 1
    return min(after[fault.after - 1], last) if 0 < fault.after <= len(after) else (0 if fault.after == 0 else last)
