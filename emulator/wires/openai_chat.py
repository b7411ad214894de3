"""OpenAI Chat Completions: ``POST /v1/chat/completions``, as OpenAI and all compatible servers speak it.

What belongs here: reading the request and writing the answer. What does not: what is refused (``chat_rules``).
"""

from __future__ import annotations

import json
from typing import Any

from emulator.answers import Finish
from emulator.problems import Problem
from emulator.prompt import Segment, segment_of, tools_segment
from emulator.requests import Request
from emulator.sse import Event, pieces
from emulator.wires.base import Body, Reply, Wire, listed, whole_number
from emulator.wires.chat_rules import chat_problem

FINISHES: dict[Finish, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refusal": "stop",
    "content_filter": "content_filter",
    "context_window": "model_context_window_exceeded",
}

OPENAI_ERRORS = {
    401: ("invalid_request_error", "Incorrect API key provided."),
    403: ("invalid_request_error", "You are not allowed to use this model."),
    429: ("requests", "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1."),
    500: ("server_error", "The server had an error while processing your request. Sorry about that!"),
    503: ("server_error", "The engine is currently overloaded, please try again later."),
    529: ("overloaded_error", "The engine is currently overloaded, please try again later."),
}
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class OpenAIChat(Wire):
    """The Chat Completions API."""

    name = "openai-chat"
    rule = "openai"
    error_types = OPENAI_ERRORS

    def segments(self, body: Body) -> list[Segment]:
        found = tools_segment(body.get("tools") or body.get("functions"))
        for message in listed(body.get("messages")):
            role = message.get("role") if isinstance(message, dict) else None
            found.append(segment_of("system" if role in ("system", "developer") else "message", message, self.rule))
        return found

    def answer_limit(self, body: Body) -> int | None:
        return whole_number(body.get("max_completion_tokens")) or whole_number(body.get("max_tokens"))

    def problem(self, body: Body) -> Problem | None:
        return chat_problem(body)

    def body(self, reply: Reply) -> dict[str, Any]:
        choice = {
            "index": 0,
            "message": self._message(reply),
            "logprobs": None,
            "finish_reason": FINISHES[reply.answer.reason],
        }
        return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}

    def events(self, reply: Reply) -> list[Event]:
        answer = reply.answer
        field = "refusal" if answer.reason == "refusal" else "content"
        deltas: list[tuple[dict[str, Any], bool]]
        deltas = [({"role": "assistant", "content": None if answer.tool_calls else "", "refusal": None}, False)]
        deltas += [({field: piece}, True) for piece in pieces(answer.text)]
        for place, call in enumerate(self._calls(reply)):
            function = call["function"]
            opening = {**call, "index": place, "function": {"name": function["name"], "arguments": ""}}
            deltas.append(({"tool_calls": [opening]}, False))
            for piece in pieces(function["arguments"]):
                deltas.append(({"tool_calls": [{"index": place, "function": {"arguments": piece}}]}, True))
        chunks = [Event(_chunk(reply, delta), is_piece=is_piece) for delta, is_piece in deltas]
        chunks.append(Event(_chunk(reply, {}, FINISHES[answer.reason])))
        if (reply.request.body.get("stream_options") or {}).get("include_usage"):
            chunks.append(Event({**_head(reply, "chat.completion.chunk"), "choices": [], "usage": _usage(reply)}))
        return [*chunks, Event("[DONE]")]

    def error_body(self, problem: Problem) -> dict[str, Any]:
        return openai_error(problem)

    def error_events(self, request: Request, problem: Problem, body: Any) -> list[Event]:
        return [Event(body if isinstance(body, dict) else json.dumps(body))]

    def code(self, status: int) -> str | None:
        return OPENAI_CODES.get(status)

    def _message(self, reply: Reply) -> dict[str, Any]:
        refused = reply.answer.reason == "refusal"
        content = None if refused or (reply.answer.tool_calls and not reply.answer.text) else reply.answer.text
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content,
            "refusal": reply.answer.text if refused else None,
            "annotations": [],
        }
        calls = self._calls(reply)
        return {**message, "tool_calls": calls} if calls else message

    def _calls(self, reply: Reply) -> list[dict[str, Any]]:
        return [
            {
                "id": reply.call_id(place, call, "call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for place, call in enumerate(reply.answer.tool_calls)
        ]


def openai_error(problem: Problem) -> dict[str, Any]:
    """The body of an error of either API of OpenAI."""
    return {"error": {"message": problem.message, "type": problem.type, "param": problem.param, "code": problem.code}}


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.number:06d}",
        "object": kind,
        "created": reply.second,
        "model": reply.request.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _chunk(reply: Reply, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_head(reply, "chat.completion.chunk"), "choices": [choice], "usage": None}


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.answer,
        "total_tokens": usage.prompt + usage.answer,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
