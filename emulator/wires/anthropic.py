"""Anthropic Messages: ``POST /v1/messages`` and ``/v1/messages/count_tokens``.

What belongs here: reading the request and writing the answer. What does not: what is refused (``anthropic_rules``).
Nothing is stored: a request that goes on in a thread is refused as the API refuses one that it does not hold any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from emulator.answers import Finish
from emulator.problems import Problem
from emulator.prompt import Segment, segment_of, tools_segment
from emulator.requests import Request
from emulator.sse import Event, pieces
from emulator.wires.anthropic_rules import anthropic_problem
from emulator.wires.anthropic_thinking import binding_problem, budget_problem, thought
from emulator.wires.base import Body, Reply, Wire, listed, whole_number

STOPS: dict[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "content_filter": "refusal",
    "context_window": "model_context_window_exceeded",
}


class AnthropicMessages(Wire):
    """The Messages API."""

    name = "anthropic"
    rule = "anthropic"
    caches_by_marks = True
    error_types: ClassVar = {
        401: ("authentication_error", "invalid x-api-key"),
        403: ("permission_error", "Your API key does not have permission to use the specified resource."),
        404: ("not_found_error", "Not found"),
        413: ("request_too_large", "Request exceeds the maximum size"),
        429: ("rate_limit_error", "Number of requests has exceeded your per-minute rate limit."),
        500: ("api_error", "Internal server error"),
        503: ("api_error", "Service unavailable"),
        529: ("overloaded_error", "Overloaded"),
    }

    def segments(self, body: Body) -> list[Segment]:
        found = tools_segment(body.get("tools"))
        if body.get("system"):
            found.append(segment_of("system", body["system"], self.rule))
        found += [segment_of("message", message, self.rule) for message in listed(body.get("messages"))]
        if body.get("cache_control") and found:  # the automatic breakpoint: all of the prompt
            last = found[-1]
            found[-1] = Segment(last.kind, last.text, last.other_tokens, cache_mark=True)
        return found

    def answer_limit(self, body: Body) -> int | None:
        return whole_number(body.get("max_tokens"))

    def problem(self, body: Body) -> Problem | None:
        return anthropic_problem(body)

    def bound_problem(self, body: Body, headers: Mapping[str, str]) -> Problem | None:
        return budget_problem(body, headers) or binding_problem(body, headers)

    def body(self, reply: Reply) -> dict[str, Any]:
        return {
            **_head(reply),
            "content": _blocks(reply),
            "stop_reason": STOPS[reply.answer.reason],
            "usage": {**_input_usage(reply), "output_tokens": reply.usage.answer},
        }

    def events(self, reply: Reply) -> list[Event]:
        opening = {**_head(reply), "content": [], "usage": {**_input_usage(reply), "output_tokens": 1}}
        events = [_event("message_start", message=opening)]
        for place, block in enumerate(_blocks(reply)):
            events += _block_events(place, block)
        events.insert(2, _event("ping")) if len(events) > 1 else events.append(_event("ping"))
        delta = {"stop_reason": STOPS[reply.answer.reason], "stop_sequence": None}
        usage = {**_input_usage(reply), "output_tokens": reply.usage.answer}
        usage.pop("service_tier")
        return [*events, _event("message_delta", delta=delta, usage=usage), _event("message_stop")]

    def error_body(self, problem: Problem) -> dict[str, Any]:
        details = {} if problem.code is None else {"details": {"error_code": problem.code}}
        return {"type": "error", "error": {"type": problem.type, "message": problem.message, **details}}

    def error_events(self, request: Request, problem: Problem, body: Any) -> list[Event]:
        return [Event(body if isinstance(body, dict) else json.dumps(body), "error")]

    def unknown_model(self, model: str) -> Problem:
        return Problem(f"model: {model}", 404, "not_found_error")


def _head(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": reply.request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    answer = reply.answer
    texts = [{"type": "text", "text": answer.text}] if answer.text else []
    calls = [
        {
            "type": "tool_use",
            "id": reply.call_id(place, call, "toolu_"),
            "name": call.name,
            "input": dict(call.arguments),
        }
        for place, call in enumerate(answer.tool_calls)
    ]
    thinking = thought(reply.request.body, reply.request.model, reply.number)
    return [*([thinking] if thinking else []), *texts, *calls]


def _block_events(place: int, block: dict[str, Any]) -> list[Event]:
    if block["type"] == "text":
        opening: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    elif block["type"] == "thinking":
        opening = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        opening = {**block, "input": {}}
        parts = pieces(json.dumps(block["input"], ensure_ascii=False))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *parts]]
    return [
        _event("content_block_start", index=place, content_block=opening),
        *(_event("content_block_delta", is_piece=True, index=place, delta=delta) for delta in deltas),
        _event("content_block_stop", index=place),
    ]


def _event(name: str, *, is_piece: bool = False, **fields: Any) -> Event:
    return Event({"type": name, **fields}, name, is_piece)


def _input_usage(reply: Reply) -> dict[str, Any]:
    """``input_tokens`` are those that were neither read from the cache nor written to it."""
    usage = reply.usage
    return {
        "input_tokens": usage.prompt - usage.cached - usage.written,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "service_tier": "standard",
    }
