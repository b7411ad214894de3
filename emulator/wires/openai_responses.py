"""OpenAI Responses: ``POST /v1/responses`` and ``/v1/responses/input_tokens``.

What belongs here: reading the request and writing the answer. What does not: what is refused (``responses_rules``).
Items of answers are kept unless the request says ``store: false``. Responses are not: a request that builds on an
earlier one by its id is refused as the API refuses an unknown id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from emulator.problems import Problem
from emulator.prompt import Segment, segment_of, tools_segment
from emulator.requests import Request
from emulator.sse import Event, pieces
from emulator.wires.base import FIRST_SECOND, Body, Reply, Wire, listed, whole_number
from emulator.wires.openai_chat import OPENAI_CODES, OPENAI_ERRORS, openai_error
from emulator.wires.responses_rules import responses_problem

INCOMPLETE = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "context_window": "model_context_window_exceeded",
}


class OpenAIResponses(Wire):
    """The Responses API."""

    name = "openai-responses"
    rule = "openai"
    error_types = OPENAI_ERRORS

    def segments(self, body: Body) -> list[Segment]:
        found = tools_segment(body.get("tools"))
        if body.get("instructions"):
            found.append(segment_of("system", body["instructions"], self.rule))
        given = body.get("input")
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else listed(given):
            role = item.get("role") if isinstance(item, dict) else None
            found.append(segment_of("system" if role in ("system", "developer") else "message", item, self.rule))
        return found

    def answer_limit(self, body: Body) -> int | None:
        return whole_number(body.get("max_output_tokens"))

    def problem(self, body: Body) -> Problem | None:
        return responses_problem(body)

    def with_kept(self, body: Body, kept: Mapping[str, Any]) -> Body:
        given = body.get("input")
        if not isinstance(given, list):
            return body
        named = [kept.get(str(item.get("id"))) if isinstance(item, dict) and _is_name(item) else None for item in given]
        return {**body, "input": [item if found is None else found for item, found in zip(given, named, strict=True)]}

    def kept(self, reply: Reply) -> Mapping[str, Any]:
        return {item["id"]: item for item in _items(reply)} if _is_stored(reply.request) else {}

    def body(self, reply: Reply) -> dict[str, Any]:
        return _finished(reply)

    def events(self, reply: Reply) -> list[Event]:
        opening = _response(reply.request, "in_progress")
        events = [{"type": "response.created", "response": opening}]
        events += [{"type": "response.in_progress", "response": opening}]
        for place, item in enumerate(_items(reply)):
            events += _item_events(place, item)
        finished = _finished(reply)
        return _numbered([*events, {"type": f"response.{finished['status']}", "response": finished}])

    def error_body(self, problem: Problem) -> dict[str, Any]:
        return openai_error(problem)

    def error_events(self, request: Request, problem: Problem, body: Any) -> list[Event]:
        """The API's own errors end a response that had begun; a gateway's body comes as it is."""
        if body != self.error_body(problem):
            return [Event(body if isinstance(body, dict) else json.dumps(body), "error")]
        opening = _response(request, "in_progress")
        error = {"code": problem.code or problem.type, "message": problem.message}
        failed = {**_response(request, "failed"), "error": error}
        return _numbered(
            [
                {"type": "response.created", "response": opening},
                {"type": "response.in_progress", "response": opening},
                {"type": "response.failed", "response": failed},
            ]
        )

    def code(self, status: int) -> str | None:
        return OPENAI_CODES.get(status) or ("server_error" if status >= 500 else None)


def _response(request: Request, status: str) -> dict[str, Any]:
    """The object that all events of a response carry, with what the request set."""
    body = request.body
    return {
        "id": f"resp_{request.number:06d}",
        "object": "response",
        "created_at": FIRST_SECOND + request.number,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": request.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": _is_stored(request),
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": None,
        "user": None,
    }


def _is_stored(request: Request) -> bool:
    return request.body.get("store") is not False


def _is_name(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "item_reference" or item.keys() == {"id"}


def _finished(reply: Reply) -> dict[str, Any]:
    reason = INCOMPLETE.get(reply.answer.reason)
    return {
        **_response(reply.request, "incomplete" if reason else "completed"),
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _items(reply),
        "usage": {
            "input_tokens": reply.usage.prompt,
            "input_tokens_details": {"cached_tokens": reply.usage.cached},
            "output_tokens": reply.usage.answer,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.usage.prompt + reply.usage.answer,
        },
    }


def _items(reply: Reply) -> list[dict[str, Any]]:
    answer = reply.answer
    before = [{"type": "reasoning", "id": f"rs_{reply.number:06d}", "summary": []}] if answer.reasons else []
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{reply.number:06d}{place:02d}",
            "call_id": reply.call_id(place, call, "call_"),
            "name": call.name,
            "arguments": json.dumps(call.arguments, ensure_ascii=False),
            "status": "completed",
        }
        for place, call in enumerate(answer.tool_calls)
    ]
    if calls and not answer.text:
        return [*before, *calls]
    message = {
        "type": "message",
        "id": f"msg_{reply.number:06d}",
        "status": "incomplete" if answer.reason in INCOMPLETE else "completed",
        "role": "assistant",
        "content": [_text_part(answer.text, refused=answer.reason == "refusal")],
    }
    return [*before, message, *calls]


def _text_part(text: str, *, refused: bool) -> dict[str, Any]:
    if refused:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _item_events(place: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    emptied: dict[str, Any] = {"message": {"content": []}, "function_call": {"arguments": ""}}.get(item["type"], {})
    opening = {**item, "status": "in_progress", **emptied} if emptied else item
    yield {"type": "response.output_item.added", "output_index": place, "item": opening}
    where = {"item_id": item["id"], "output_index": place}
    if emptied:
        yield from _message_events(item, where) if item["type"] == "message" else _call_events(item, where)
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _message_events(item: dict[str, Any], where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["content"][0]
    kind, text = part["type"], part.get("text", part.get("refusal"))
    field = "refusal" if kind == "refusal" else "text"
    logprobs: dict[str, Any] = {} if kind == "refusal" else {"logprobs": []}
    where = {**where, "content_index": 0}
    yield {"type": "response.content_part.added", **where, "part": {**part, field: ""}}
    for piece in pieces(text):
        yield {"type": f"response.{kind}.delta", **where, "delta": piece, **logprobs}
    yield {"type": f"response.{kind}.done", **where, field: text, **logprobs}
    yield {"type": "response.content_part.done", **where, "part": part}


def _call_events(item: dict[str, Any], where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield {"type": "response.function_call_arguments.done", **where, **done}


def _numbered(events: list[dict[str, Any]]) -> list[Event]:
    return [
        Event({**event, "sequence_number": number}, event["type"], event["type"].endswith(".delta"))
        for number, event in enumerate(events)
    ]
