"""The four wires that hold conversations: where their messages are, what is the provider's own business, and how they
refuse, stream and count.

What belongs here: field names and shapes. What does not: bytes (``body``), connections (``upstream``), decisions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

import orjson

from contextfold import formats
from contextfold.calls.same import NOT_FOR_A_SUMMARY, is_shaped
from contextfold.calls.thinking import clears_thinking, shorter_thinking, thinking_beside, with_thinking_set
from contextfold.conversation.fingerprint import Saying
from contextfold.errors import FormatError
from contextfold.formats import gemini_shapes as gemini
from contextfold.formats.openai_responses import REFERENCE, is_reference
from contextfold.gateway.body import canonical, plain

COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
"""Items and blocks that stand for a conversation that the provider compacted itself."""
TRIGGERS = ("compaction_trigger",)


@dataclass(frozen=True, slots=True)
class GatewayWire:
    """One way to send a conversation."""

    format: str
    read_as: str
    """The format as its clients send it (``formats.OF_REQUESTS``)."""
    path: str
    """The end of the path, behind ``/v1``; of Google's as it is told to people, since the model stands in it."""
    provider: str
    key: str
    """The field that is the list of messages."""
    system: str | None
    limits: tuple[str, ...]
    """The fields that limit the answer; the first is set where there is none."""
    native: tuple[str, ...]
    """Fields by which the client leaves the conversation, or its size, to the provider."""

    def plain(self, entry: Any) -> tuple[Any, bool]:
        """A message as the engine gets it, and whether it is a compaction by the provider."""
        message = plain(entry)
        return message, _is_compaction(message)

    def said(self, message: Any) -> bytes:
        """What two messages have in common that say the same, whatever the ids of their calls, and however written."""
        try:
            return Saying(formats.get(self.read_as).decode(message)).all
        except FormatError:
            return canonical(message)

    def native_feature(self, fields: Mapping[str, Any], messages: Sequence[Any]) -> str | None:
        """What says that this request is not to be touched; None where nothing does."""
        for name in self.native:
            if fields.get(name) and not (_clears_only_thinking(fields[name]) or _begins_a_thread(fields[name])):
                return name
        if self.format == "openai-responses" and any(map(is_reference, messages)):
            return REFERENCE
        last = messages[-1] if messages else None
        return str(last["type"]) if isinstance(last, dict) and last.get("type") in TRIGGERS else None

    def native_in(self, raw: bytes) -> str | None:
        """The field of a body that says so, for one that is not taken apart: conversations that a provider holds go on
        in requests that are all short.
        """
        if not any(b'"%s"' % name.encode() in raw for name in self.native):
            return None
        try:
            fields = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return None
        return self.native_feature(fields, ()) if isinstance(fields, dict) else None

    def system_text(self, fields: Mapping[str, Any]) -> str | None:
        """The instructions that are none of the messages."""
        value = fields.get(self.system) if self.system else None
        if isinstance(value, list):
            texts = (block.get("text") for block in value if isinstance(block, dict))
            value = "\n".join(text for text in texts if isinstance(text, str))
        return value if isinstance(value, str) and value else None

    def limit(self, fields: Mapping[str, Any]) -> tuple[str, int | None]:
        """The field that limits the answer, and its value."""
        for name in self.limits:
            if isinstance(fields.get(name), int):
                return name, fields[name]
        return self.limits[0], None

    def most_asked(self, raw: bytes) -> int:
        """The longest answer that a body can be asking for, without reading it; 0 where it names no limit."""
        # Inputs of tools may have a field of that name too. In a text its quotation marks are escaped.
        return max((int(found[1]) for name in self.limits for found in _limit_called(name).finditer(raw)), default=0)

    def limited(self, fields: Mapping[str, Any], tokens: int) -> dict[str, Any]:
        """The fields to set for an answer of so many tokens at most."""
        name, limit = self.limit(fields)
        thinking = fields.get("thinking")
        return {name: tokens, **with_thinking_set(fields, shorter_thinking(thinking, limit, tokens))}

    def beside(self, fields: Mapping[str, Any], view: Sequence[Any], history: Sequence[Any]) -> dict[str, Any]:
        """The fields to set beside a view of the history that is not all of it; None: to leave out."""
        thinking = thinking_beside(fields.get("thinking"), view, history, self.read_as, fields.get("model"))
        return with_thinking_set(fields, thinking)

    def for_a_summary(self, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """The fields to set (None: to leave out) where a view is asked for a summary; None where no answer to it could
        be one.
        """
        if is_shaped(fields):
            return None
        changes: dict[str, Any] = {one: None for one in NOT_FOR_A_SUMMARY if one in fields}
        return {**changes, **self._as_asked(fields)}

    def alone(self, model: str, messages: Sequence[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """A request for a summary of what a prompt quotes, beside the conversation. ``fields``: its request's."""
        alone: dict[str, Any] = {"model": model, self.key: messages, **self._as_asked(fields)}
        return alone | ({"max_tokens": ANSWER_TOKENS} if self is MESSAGES else {})

    def _as_asked(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """How an answer that is a summary comes. ChatGPT, which Codex asks, gives streams alone."""
        if self is not RESPONSES:
            return {}
        return {"store": False, **({"stream": True} if fields.get("stream") is True else {})}

    def whole(self, path: str, query: str) -> tuple[str, str]:
        """Where the answer to such a request comes in one piece: a path and a query."""
        return path, query

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """An error of ours, in the shape that the wire's clients read."""
        if self.provider == "anthropic":
            return {"type": "error", "error": {"type": kind, "message": message}}
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


class GeminiWire(GatewayWire):
    """Google's: the model and how it answers stand in the path, and most settings in a field of their own. Names may be
    spelled in camel case or in snake case, as in all JSON for protocol buffers.
    """

    __slots__ = ()

    def system_text(self, fields: Mapping[str, Any]) -> str | None:
        said = gemini.get(gemini.get(fields, "system_instruction"), "parts")
        parts = said if isinstance(said, list) else [said]
        texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
        return "\n".join(texts) or None

    def limit(self, fields: Mapping[str, Any]) -> tuple[str, int | None]:
        return super().limit(_config(fields)[1])

    def limited(self, fields: Mapping[str, Any], tokens: int) -> dict[str, Any]:
        name, config = _config(fields)
        return {name: {**config, self.limit(fields)[0]: tokens}}

    def beside(self, fields: Mapping[str, Any], view: Sequence[Any], history: Sequence[Any]) -> dict[str, Any]:
        return {}  # how long it thinks does not depend on what was thought before

    def for_a_summary(self, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        name, config = _config(fields)
        if is_shaped({"config": {**config, "tool_config": gemini.get(fields, "tool_config")}}):
            return None
        kept = {one: value for one, value in config.items() if gemini.snake(one) not in _NOT_FOR_A_SUMMARY}
        return {name: kept} if len(kept) < len(config) else {}

    def alone(self, model: str, messages: Sequence[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        return {self.key: messages}

    def whole(self, path: str, query: str) -> tuple[str, str]:
        # As `$alt`, libraries that Google generates also ask for numbers in place of the names of why an answer ended.
        left = "&".join(one for one in query.split("&") if unquote(one.partition("=")[0]) not in ("alt", "$alt"))
        return _STREAMING.sub("generateContent", path), left

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": _CODES.get(status, "UNKNOWN")}}


_NOT_FOR_A_SUMMARY = ("candidate_count", "stop_sequences", "response_modalities", "speech_config")
_CODES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    408: "DEADLINE_EXCEEDED",
    413: "INVALID_ARGUMENT",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The names of google.rpc.Code for the statuses of ours."""


def _config(fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    name = "generation_config" if "generation_config" in fields else "generationConfig"
    found = fields.get(name)
    return name, found if isinstance(found, Mapping) else {}


ANSWER_TOKENS = 4_096
"""For a prompt by itself, on the wire that wants a limit."""

CHAT = GatewayWire(
    format="openai-chat",
    read_as="openai-chat",
    path="/chat/completions",
    provider="openai",
    key="messages",
    system=None,
    limits=("max_completion_tokens", "max_tokens"),
    native=(),
)
RESPONSES = GatewayWire(
    format="openai-responses",
    read_as="openai-responses",
    path="/responses",
    provider="openai",
    key="input",
    system="instructions",
    limits=("max_output_tokens",),
    native=("context_management", "previous_response_id", "conversation"),
)
MESSAGES = GatewayWire(
    format="anthropic",
    read_as="anthropic-request",
    path="/messages",
    provider="anthropic",
    key="messages",
    system="system",
    limits=("max_tokens",),
    native=("context_management", "compaction", "thread"),
)
CONTENTS = GeminiWire(
    format="gemini",
    read_as="gemini",
    path="beta/models/MODEL:generateContent",
    provider="gemini",
    key="contents",
    system="systemInstruction",
    limits=("maxOutputTokens", "max_output_tokens"),
    native=("cachedContent", "cached_content"),
)
WIRES = (CHAT, RESPONSES, MESSAGES)
_GENERATING = re.compile(r"/(?:models|tunedModels|endpoints)/([^/:]+?)(?::|%3[Aa])(?:g|streamG)enerateContent")
"""Tuned models have collections of their own; with Vertex AI they are asked as endpoints. Some clients encode the
colon.
"""
_STREAMING = re.compile(r"streamGenerateContent(?=/*$)")


@cache
def _limit_called(name: str) -> re.Pattern[bytes]:
    return re.compile(rb'"%s"\s*:\s*(\d{1,18})' % name.encode())


def wire_of(path: str) -> GatewayWire | None:
    """The wire of a path such as ``/v1/chat/completions``; None for everything that is no conversation.

    Servers of OpenAI's kind have other words before the end: Azure's ``/openai/deployments/NAME/chat/completions``, a
    base URL without ``/v1``, ``/backend-api/codex/responses``. Other routes of theirs end in ``/messages``, so that one
    is Anthropic's behind ``/v1`` alone. A slash at the end changes nothing for servers that take it. Google's have
    other words before the end, too, with Vertex AI.
    """
    path = path.rstrip("/")
    if model_in(path):
        return CONTENTS
    return next(
        (wire for wire in WIRES if path.endswith(wire.path if wire.provider == "openai" else "/v1" + wire.path)), None
    )


def model_in(path: str) -> str:
    """The model that is named in a path of Google's; else nothing."""
    found = _GENERATING.search(path)
    return unquote(found[1]) if found and found.end() == len(path.rstrip("/")) else ""


def _clears_only_thinking(value: Any) -> bool:
    """Whether edits by the provider leave all but thinking alone, so that the size stays the client's own business.

    Claude Code asks for one with each request, mostly to keep all of its thinking.
    """
    edits = value.get("edits") if isinstance(value, dict) and value.keys() == {"edits"} else None
    return isinstance(edits, list) and bool(edits) and all(map(clears_thinking, edits))


def _begins_a_thread(value: Any) -> bool:
    """Whether the provider is asked to hold a conversation from here on: this request still has all of it, as one that
    OpenAI is asked to store. Those that go on in a thread have the newest messages alone.
    """
    return isinstance(value, dict) and value.get("type") == "create"


def _is_compaction(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    if message.get("type") in COMPACTIONS:
        return True
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") in COMPACTIONS for block in content
    )


def items_kept(event: Any) -> list[dict[str, Any]]:
    """The items of a whole answer that its provider keeps, so that later requests may name them by their ids alone."""
    response = event.get("response", event) if isinstance(event, dict) else None
    if not isinstance(response, dict) or response.get("object") != "response" or response.get("store") is False:
        return []
    output = response.get("output")
    items = output if isinstance(output, list) else ()
    return [item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)]


def usage_places(event: Any) -> list[dict[str, Any]]:
    """What tells a usage in a response or an event of a stream, wherever this wire has it."""
    if isinstance(event, list):  # Gemini's stream where its client does not ask for events
        event = event[-1] if event else None
    if not isinstance(event, dict):
        return []
    places = (event, event.get("response"), event.get("message"))
    return [place for place in places if isinstance(place, dict) and _usages(place)]


def usage_holders(event: Any) -> list[dict[str, Any]]:
    """The usage objects in a response or an event of a stream."""
    return [usage for place in usage_places(event) for usage in _usages(place)]


def _usages(place: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = (place.get(name) for name in ("usage", "usageMetadata"))
    return [usage for usage in found if isinstance(usage, dict)]


INPUT_NAMES = ("prompt_tokens", "input_tokens", "promptTokenCount")
CACHED_NAMES = ("cache_creation_input_tokens", "cache_read_input_tokens")


def input_tokens(usage: Mapping[str, Any]) -> int | None:
    """All input tokens of a usage object, cached ones included; None where it does not say."""
    for name in INPUT_NAMES:
        count = usage.get(name)
        if isinstance(count, int) and not isinstance(count, bool):
            beside = [usage.get(cached) for cached in CACHED_NAMES]
            return count + sum(one for one in beside if isinstance(one, int))
    return None


def with_input(usage: dict[str, Any], tokens: int) -> None:
    """Let a usage object tell another number of input tokens; what was cached stays as it was told."""
    read = input_tokens(usage)
    if read is None:
        return
    name = next(one for one in INPUT_NAMES if isinstance(usage.get(one), int))
    # Never less than the provider billed: a client that adds up costs must not be told too little.
    more = max(0, tokens - read)
    usage[name] += more
    for total in ("total_tokens", "totalTokenCount"):
        if isinstance(usage.get(total), int):
            usage[total] += more
