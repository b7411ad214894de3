"""Gemini: ``POST /v1/models/MODEL:generateContent``, ``:streamGenerateContent?alt=sse`` and ``:countTokens``.

Models whose names begin with ``gemini-3`` give their calls ids, and sign what they say (``gemini_signatures``).

What belongs here: reading the request and writing the answer. What does not: what is refused (``gemini_rules``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from contextfold.messages import Media, MediaKind
from contextfold.tokens.media import media_tokens
from emulator.answers import Finish
from emulator.problems import Problem
from emulator.prompt import FRAME_TOKENS, Kind, Segment, tools_segment
from emulator.requests import Request
from emulator.sse import Event, pieces
from emulator.wires.base import Body, Reply, Wire, listed, whole_number
from emulator.wires.gemini_rules import field, gemini_problem
from emulator.wires.gemini_signatures import is_signing, signature, signature_problem

FINISHES: dict[Finish, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "refusal": "SAFETY",
    "content_filter": "PROHIBITED_CONTENT",
    "context_window": "MAX_TOKENS",
}

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""Names of google.rpc.Code for HTTP statuses."""


class GeminiContent(Wire):
    """The ``generateContent`` methods. The body is read in either spelling, as JSON for protocol buffers is."""

    name = "gemini"
    rule = "google"
    error_types: ClassVar = {
        401: ("", "Request had invalid authentication credentials."),
        403: ("", "Method doesn't allow unregistered callers."),
        429: ("", "You exceeded your current quota, please check your plan and billing details."),
        500: ("", "An internal error has occurred. Please retry or report in https://developers.generativeai.google"),
        503: ("", "The model is overloaded. Please try again later."),
        529: ("", "The model is overloaded. Please try again later."),
    }

    def segments(self, body: Body) -> list[Segment]:
        body = _counted(body)
        found = tools_segment(body.get("tools"))
        system = field(body, "systemInstruction")
        if system:
            found.append(_segment("system", system))
        return [*found, *(_segment("message", content) for content in listed(body.get("contents")))]

    def answer_limit(self, body: Body) -> int | None:
        config = field(body, "generationConfig")
        return whole_number(field(config, "maxOutputTokens")) if isinstance(config, Mapping) else None

    def problem(self, body: Body) -> Problem | None:
        problem = gemini_problem(_counted(body))
        return problem or signature_problem(str(body.get("model", "")), listed(body.get("contents")))

    def body(self, reply: Reply) -> dict[str, Any]:
        return _chunk(reply, _parts(reply), last=True)

    def events(self, reply: Reply) -> list[Event]:
        chunks: list[tuple[dict[str, Any], bool]] = []
        for part in _parts(reply):
            if "functionCall" in part:
                chunks.append((part, True))
                continue
            signed = {name: value for name, value in part.items() if name != "text"}
            chunks += [({"text": piece}, True) for piece in pieces(part["text"])]
            chunks += [({"text": "", **signed}, False)] if signed else []
        events = [Event(_chunk(reply, [part]), is_piece=is_piece) for part, is_piece in chunks]
        return [*events, Event(_chunk(reply, [], last=True))]

    def error_body(self, problem: Problem) -> dict[str, Any]:
        status = STATUSES.get(problem.status, "UNAVAILABLE" if problem.status >= 500 else "INVALID_ARGUMENT")
        return {"error": {"code": problem.status, "message": problem.message, "status": status}}

    def error_events(self, request: Request, problem: Problem, body: Any) -> list[Event]:
        return [Event(body if isinstance(body, dict) else json.dumps(body))]

    def unknown_model(self, model: str) -> Problem:
        return Problem(
            f"models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
            "ListModels to see the list of available models and their supported methods.",
            404,
        )

    def count_body(self, tokens: int) -> dict[str, Any]:
        return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}


def _counted(body: Body) -> Body:
    """A request to count tokens may hold the whole request that is to be counted."""
    inner = field(body, "generateContentRequest")
    return inner if isinstance(inner, Mapping) else body


# ---- what the model reads ----


def _segment(kind: Kind, content: Any) -> Segment:
    parts = field(content, "parts") if isinstance(content, Mapping) else [{"text": str(content)}]
    found = [item for part in listed(parts) if isinstance(part, Mapping) for item in _read(part)]
    texts = [item for item in found if isinstance(item, str)]
    return Segment(kind, "\n".join(texts), FRAME_TOKENS + sum(item for item in found if isinstance(item, int)))


def _read(part: Mapping[str, Any]) -> Iterator[str | int]:
    """Readable strings of a part, and tokens of media."""
    if isinstance(part.get("text"), str):
        yield part["text"]
    call, answer = field(part, "functionCall"), field(part, "functionResponse")
    for held, inside in ((call, "args"), (answer, "response")):
        if isinstance(held, Mapping):
            yield str(held.get("name", ""))
            yield json.dumps(held.get(inside) or {}, ensure_ascii=False)
    for inner in listed(field(answer, "parts")) if isinstance(answer, Mapping) else ():
        yield from _read(inner) if isinstance(inner, Mapping) else ()
    for name in ("executableCode", "codeExecutionResult"):
        code = field(part, name)
        if isinstance(code, Mapping):
            yield from (value for value in code.values() if isinstance(value, str))
    media = _media(part)
    if media is not None:
        yield media_tokens(media, "google")


_KINDS: Mapping[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


def _media(part: Mapping[str, Any]) -> Media | None:
    held = field(part, "inlineData") or field(part, "fileData")
    if not isinstance(held, Mapping):
        return None
    media_type = field(held, "mimeType") or "application/pdf"
    kind = _KINDS.get(str(media_type).partition("/")[0], "document")
    return Media(kind, media_type, data=held.get("data"), url=field(held, "fileUri"))


# ---- the answer ----


def _parts(reply: Reply) -> list[dict[str, Any]]:
    answer, signs = reply.answer, is_signing(reply.request.model)
    parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
    for place, call in enumerate(answer.tool_calls):
        called: dict[str, Any] = {"name": call.name, "args": dict(call.arguments)}
        if signs or call.id:
            called["id"] = reply.call_id(place, call, "fc")
        signed = {"thoughtSignature": signature(reply.number, call.name)} if signs and place == 0 else {}
        parts.append({"functionCall": called, **signed})
    if signs and parts and not answer.tool_calls:
        parts[-1]["thoughtSignature"] = signature(reply.number, "")
    return parts


def _chunk(reply: Reply, parts: list[dict[str, Any]], *, last: bool = False) -> dict[str, Any]:
    content = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if last:
        candidate["finishReason"] = FINISHES[reply.answer.reason]
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(reply, whole=last),
        "modelVersion": reply.request.model,
        "responseId": f"resp{reply.number:06d}",
    }


def _usage(reply: Reply, *, whole: bool) -> dict[str, Any]:
    usage = reply.usage
    said: dict[str, Any] = {"promptTokenCount": usage.prompt}
    if whole:
        said["candidatesTokenCount"] = usage.answer
    said["totalTokenCount"] = usage.prompt + (usage.answer if whole else 0)
    if usage.cached:
        said["cachedContentTokenCount"] = usage.cached
    said["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": usage.prompt}]
    return said
