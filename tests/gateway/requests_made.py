"""Requests of conversations that grow, as clients of each wire send them."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contextfold.gateway.body import Body
from contextfold.gateway.conversations import Conversations, KnownParts, parts_of

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/model-of-a-test:generateContent",
}
WORDS = ["alpha", "beta", "gamma", "src/app/main.py", "error", "4711", "result", "value", "naïve", "経路", "\\n", '"x"']


@dataclass
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def post(url: str, path: str, body: bytes, headers: Mapping[str, str] | None = None, method: str = "POST") -> Response:
    """One request on a connection of its own."""
    host = url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        given = {"content-type": "application/json", "authorization": "Bearer key-of-a-test", **(headers or {})}
        connection.request(method, path, body, given)
        response = connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, told, response.read())
    finally:
        connection.close()


def path_of(wire: str, stream: bool) -> str:
    """Where a request goes: with Google's the path says how it is answered."""
    path = PATHS[wire]
    return path.replace(":generate", ":streamGenerate") + "?alt=sse" if wire == "gemini" and stream else path


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def message_of(wire: str, role: str, text: str) -> dict[str, Any]:
    """A message of words alone."""
    if wire == "gemini":
        return {"role": "user" if role == "user" else "model", "parts": [{"text": text}]}
    return {"role": role, "content": text}


def turns(wire: str, count: int, *, seed: int = 0, size: int = 150) -> Iterator[list[dict[str, Any]]]:
    """The messages of a tool loop after each turn; each list begins with the one before."""
    rng = random.Random(seed)
    messages: list[dict[str, Any]] = []
    if wire == "openai-chat":
        messages.append({"role": "system", "content": "You are a careful agent."})
    messages.append(message_of(wire, "user", f"Task {seed}: " + words(rng, 40)))
    yield list(messages)
    for turn in range(count):
        messages += _turn(wire, f"call_{seed}_{turn}", words(rng, size), words(rng, 12))
        yield list(messages)


def _turn(wire: str, call_id: str, output: str, said: str) -> list[dict[str, Any]]:
    arguments = {"path": f"src/{call_id}.py"}
    if wire == "openai-chat":
        call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": json.dumps(arguments)}}
        return [
            {"role": "assistant", "content": said, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": output},
        ]
    if wire == "openai-responses":
        return [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]},
            {"type": "function_call", "call_id": call_id, "name": "read", "arguments": json.dumps(arguments)},
            {"type": "function_call_output", "call_id": call_id, "output": output},
        ]
    if wire == "gemini":
        answer = {"name": "read", "response": {"output": output}}
        return [
            {"role": "model", "parts": [{"text": said}, {"functionCall": {"name": "read", "args": arguments}}]},
            {"role": "user", "parts": [{"functionResponse": answer}]},
        ]
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": said},
                {"type": "tool_use", "id": call_id, "name": "read", "input": arguments},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": output}]},
    ]


KEYS = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages", "gemini": "contents"}


def body_of(wire: str, messages: list[Any], *, stream: bool = False, **fields: Any) -> dict[str, Any]:
    """A request's fields."""
    if wire == "gemini":
        system = {"parts": [{"text": "You are a careful agent."}]}
        return {
            KEYS[wire]: messages,
            "systemInstruction": system,
            "generationConfig": {"maxOutputTokens": 200},
        } | fields
    body: dict[str, Any] = {"model": "model-of-a-test", KEYS[wire]: messages}
    if wire == "anthropic":
        body |= {"max_tokens": 200, "system": "You are a careful agent."}
    if stream:
        body["stream"] = True
    return body | fields


def compact(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def read_by(
    conversations: Conversations, scope: bytes, raw: bytes, key: str, plainly: Any
) -> tuple[Body, KnownParts | None]:
    """A body taken apart, and the conversation that it continues."""
    parts = parts_of(raw, key, plainly, conversations.find(scope, raw, key))
    return conversations.known_of(scope, parts)
