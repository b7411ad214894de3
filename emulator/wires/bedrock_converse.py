"""Bedrock Converse: ``POST /model/{modelId}/converse`` and ``/converse-stream``.

The stream is binary: AWS's event stream, frames with two checksums around headers and JSON
(https://smithy.io/2.0/aws/amazon-eventstream.html).

What belongs here: reading the request and writing the answer. What does not: what is refused (``converse_rules``).
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from emulator.answers import Finish
from emulator.problems import Problem
from emulator.prompt import Segment, segment_of, tools_segment
from emulator.requests import Request
from emulator.sse import Event, pieces
from emulator.wires.base import Body, Reply, Wire, listed, whole_number
from emulator.wires.converse_rules import converse_problem

STOPS: dict[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "content_filtered",
    "content_filter": "guardrail_intervened",
    "context_window": "model_context_window_exceeded",
}


@dataclass(frozen=True, slots=True)
class Frame(Event):
    """One event of AWS's event stream. ``name`` is the type of the event, or of the exception if it is one."""

    is_exception: bool = False

    def encode(self) -> bytes:
        kind = "exception" if self.is_exception else "event"
        payload = json.dumps(self.data, ensure_ascii=False).encode(errors="replace")
        headers = b"".join(
            _header(name, value)
            for name, value in (
                (f":{kind}-type", self.name or ""),
                (":content-type", "application/json"),
                (":message-type", kind),
            )
        )
        prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
        prelude += struct.pack(">I", binascii.crc32(prelude))
        message = prelude + headers + payload
        return message + struct.pack(">I", binascii.crc32(message))


def _header(name: str, value: str) -> bytes:
    """A header whose value is a string, which is type 7."""
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()


class BedrockConverse(Wire):
    """The Converse API."""

    name = "bedrock-converse"
    rule = "anthropic"
    caches_by_marks = True
    stream_type = "application/vnd.amazon.eventstream"
    error_types: ClassVar = {
        403: ("AccessDeniedException", "You don't have access to the model with the specified model ID."),
        404: (
            "ResourceNotFoundException",
            "Could not resolve the foundation model from the provided model identifier.",
        ),
        408: ("ModelTimeoutException", "Model has timed out in processing the request. Try your request again."),
        424: ("ModelErrorException", "The system encountered an unexpected error during processing. Try again."),
        429: ("ThrottlingException", "Too many tokens, please wait before trying again."),
        500: ("InternalServerException", "The system encountered an unexpected error during processing."),
        503: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
    }

    def segments(self, body: Body) -> list[Segment]:
        config = body.get("toolConfig")
        tools = listed(config.get("tools")) if isinstance(config, Mapping) else []
        found = tools_segment([tool for tool in tools if not _is_cache_point(tool)])
        found = [Segment(s.kind, s.text, s.other_tokens, any(map(_is_cache_point, tools))) for s in found]
        if body.get("system"):
            found.append(self._segment("system", body["system"]))
        return found + [self._segment("message", _content(message)) for message in listed(body.get("messages"))]

    def _segment(self, kind: Any, blocks: Any) -> Segment:
        said = [_typed(block) for block in listed(blocks) if not _is_cache_point(block)]
        read = segment_of(kind, said, self.rule)
        return Segment(kind, read.text, read.other_tokens, any(map(_is_cache_point, listed(blocks))))

    def answer_limit(self, body: Body) -> int | None:
        config = body.get("inferenceConfig")
        return whole_number(config.get("maxTokens")) if isinstance(config, Mapping) else None

    def problem(self, body: Body) -> Problem | None:
        return converse_problem(body)

    def body(self, reply: Reply) -> dict[str, Any]:
        return {
            "output": {"message": {"role": "assistant", "content": _blocks(reply)}},
            "stopReason": STOPS[reply.answer.reason],
            "usage": _usage(reply),
            "metrics": {"latencyMs": 1},
        }

    def events(self, reply: Reply) -> list[Event]:
        events: list[Event] = [Frame({"role": "assistant"}, "messageStart")]
        for place, block in enumerate(_blocks(reply)):
            events += _block_events(place, block)
        events.append(Frame({"stopReason": STOPS[reply.answer.reason]}, "messageStop"))
        events.append(Frame({"usage": _usage(reply), "metrics": {"latencyMs": 1}}, "metadata"))
        return events

    def error_body(self, problem: Problem) -> dict[str, Any]:
        kind = "ValidationException" if problem.type == "invalid_request_error" else problem.type
        return {"message": problem.message, "__type": kind}

    def error_events(self, request: Request, problem: Problem, body: Any) -> list[Event]:
        kind = str(body.get("__type", "")) if isinstance(body, Mapping) else "validationException"
        return [Frame({"message": problem.message}, kind[:1].lower() + kind[1:], is_exception=True)]

    def unknown_model(self, model: str) -> Problem:
        return Problem("The provided model identifier is invalid.")


def _content(message: Any) -> Any:
    return message.get("content") if isinstance(message, Mapping) else ()


def _is_cache_point(block: Any) -> bool:
    return isinstance(block, Mapping) and "cachePoint" in block


def _typed(block: Any) -> Any:
    """A block as other APIs write it, for the one reader of prompts."""
    if not isinstance(block, Mapping):
        return block
    for kind in ("image", "document"):
        if isinstance(held := block.get(kind), Mapping) and isinstance(source := held.get("source"), Mapping):
            if "bytes" not in source:
                return {"text": json.dumps(source, ensure_ascii=False)}
            given = {"type": "base64", "data": source["bytes"], "media_type": f"{kind}/{held.get('format')}"}
            return {"type": kind, "source": given}
    if isinstance(call := block.get("toolUse"), Mapping):
        return {"type": "tool_use", "name": call.get("name"), "input": call.get("input")}
    if isinstance(result := block.get("toolResult"), Mapping):
        inner = [_typed(one) for one in listed(result.get("content"))]
        return {"type": "tool_result", "content": inner}
    if isinstance(thinking := block.get("reasoningContent"), Mapping):
        said = thinking.get("reasoningText")
        return {"text": said.get("text")} if isinstance(said, Mapping) else {"data": thinking.get("redactedContent")}
    if isinstance(guarded := block.get("guardContent"), Mapping):
        return guarded.get("text") or _typed(guarded)
    return block


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    answer = reply.answer
    texts = [{"text": answer.text}] if answer.text else []
    return [
        *texts,
        *(
            {
                "toolUse": {
                    "toolUseId": reply.call_id(place, call, "tooluse_"),
                    "name": call.name,
                    "input": dict(call.arguments),
                }
            }
            for place, call in enumerate(answer.tool_calls)
        ),
    ]


def _block_events(place: int, block: dict[str, Any]) -> list[Event]:
    at = {"contentBlockIndex": place}
    events: list[Event] = []
    if "toolUse" in block:
        call = block["toolUse"]
        start = {"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}}
        events.append(Frame({"start": start, **at}, "contentBlockStart"))
        text = json.dumps(call["input"], ensure_ascii=False)
        deltas: list[dict[str, Any]] = [{"toolUse": {"input": piece}} for piece in pieces(text)]
    else:
        deltas = [{"text": piece} for piece in pieces(block["text"])]
    events += [Frame({"delta": delta, **at}, "contentBlockDelta", is_piece=True) for delta in deltas]
    return [*events, Frame(at, "contentBlockStop")]


def _usage(reply: Reply) -> dict[str, int]:
    """``inputTokens`` are those that were neither read from the cache nor written to it."""
    usage = reply.usage
    return {
        "inputTokens": usage.prompt - usage.cached - usage.written,
        "outputTokens": usage.answer,
        "totalTokens": usage.prompt + usage.answer,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.written,
    }
