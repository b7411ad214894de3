"""Spans of OpenTelemetry whose attributes hold what a model was sent (``gen_ai.input.messages``), and its answer.

Those that write it in other attributes are read as these (``flattened``).

Exporters write them in many ways: OTLP's JSON, where attributes are lists of keys and typed values, one object for each
span, or a row for each. Messages are JSON in a text, or structures. Each span is one request, and so a conversation.
They are written as chat messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from contextfold.errors import InputError
from contextfold.formats.values import arguments_text, json_text
from contextfold.transcripts import chat, flattened, json_lines
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, json_in, objects_in
from contextfold.transcripts.flattened import SpanMessages

KIND = "opentelemetry"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SYSTEM, TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
NAMES = (INPUT, OUTPUT, SYSTEM, TOOLS)
LIMIT = "a limit of attributes drops the first ones: raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT where spans are recorded"
LENGTH = "a limit of their length does that: raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT where spans are recorded"
DEPTH, LEVELS = 10, 50
DIGITS = 25
"""More than any number has here; they are told as text, as JSON of programs in other languages loses large ones."""


def recognizes(document: TranscriptFile) -> bool:
    """Whether messages stand in such attributes and nowhere else: tools of agents return spans, and recorders of
    requests keep the attributes beside them.
    """
    if (
        not any(mark in document.text for mark in (INPUT, *flattened.MARKS))
        or next(_requests(document.value, DEPTH), None) is None
    ):
        return False
    return not json_lines.recognizes(replace(document, value=_beside(document.value, DEPTH)))


def read(document: TranscriptFile) -> list[Conversation]:
    asked = list(_requests(document.value, DEPTH))
    said = _said_of(sum(len(one.broken) for one in asked))
    found = [one for one in asked if INPUT not in one.broken]
    if not found:
        raise InputError(f"{document.name}: {said[0]}")
    return [
        Conversation(name, "openai-chat", _messages(one), KIND, _tools(one.tools), (*said, *_missing(one.missing)))
        for name, one in zip(document.names(len(found)), found, strict=True)
    ]


# ---- attributes ----


def _beside(value: Any, depth: int) -> Any:
    """What stands beside the attributes, as deep as these are looked for."""
    if isinstance(value, list) and depth:
        return [_beside(inner, depth - 1) for inner in value]
    if isinstance(value, dict) and depth:
        beside = (key for key in value if key not in ("attributes", *NAMES) and not flattened.is_ours(key))
        return {key: _beside(value[key], depth - 1) for key in beside}
    return value


def _requests(value: Any, depth: int) -> Iterator[SpanMessages]:
    """What all spans and events that have messages hold."""
    if not depth:
        return
    if isinstance(value, list):
        for inner in value:
            yield from _requests(inner, depth - 1)
    elif isinstance(value, dict):
        held = _held(value)
        if held is not None:
            # Events may tell the same once more, and what the span leaves out.
            events = objects_in(value.get("events"))
            same = [one for one in map(_held, events) if one is not None and one.inputs == held.inputs]
            yield SpanMessages(*(next(filter(None, found), found[0]) for found in zip(held, *same, strict=True)))
            value = {**value, "events": [event for event in events if _held(event) not in same]}
        for key, inner in value.items() if INPUT not in value else ():
            if key != "attributes" and not flattened.is_ours(key):
                yield from _requests(inner, depth - 1)


def _held(value: dict[str, Any]) -> SpanMessages | None:
    """What the attributes of a span or event hold; None where there are no messages."""
    attributes = value if INPUT in value else _named(value.get("attributes"))
    asked, output, system, tools = listed = [_list(attributes.get(name)) for name in NAMES]
    broken = tuple(
        name for name, one in zip(NAMES, listed, strict=True) if one is None and _begins_list(attributes.get(name))
    )
    if asked is not None or INPUT in broken:
        return SpanMessages(asked or [], output, system, tools, broken=broken)
    in_row = {key: inner for key, inner in value.items() if flattened.is_ours(key)}
    return flattened.request_of(attributes) or flattened.request_of(in_row)


def _missing(count: int) -> tuple[str, ...]:
    return (f"{count:,} messages of a span are not in it; {LIMIT}",) if count else ()


def _said_of(broken: int) -> tuple[str, ...]:
    return (f"attributes of spans break off ({broken:,}), and what is in them is left out; {LENGTH}",) if broken else ()


def _named(attributes: Any, depth: int = LEVELS) -> Mapping[str, Any]:
    if isinstance(attributes, list):  # OTLP's
        pairs = ((one.get("key"), one.get("value")) for one in attributes if isinstance(one, dict))
        return {key: _plain(value, depth) for key, value in pairs if isinstance(key, str)}
    return attributes if isinstance(attributes, dict) else {}


def _plain(value: Any, depth: int) -> Any:
    """A value of OTLP's without the name of its type, ``depth`` levels deep."""
    if not isinstance(value, dict) or len(value) != 1 or not depth:
        return value
    ((kind, held),) = value.items()
    inner = held.get("values") if isinstance(held, dict) else None
    if kind == "arrayValue":
        return [_plain(one, depth - 1) for one in inner] if isinstance(inner, list) else []
    if kind == "kvlistValue":
        return dict(_named(inner, depth - 1)) if isinstance(inner, list) else {}
    if kind == "intValue" and isinstance(held, str) and held.removeprefix("-").isdecimal() and len(held) < DIGITS:
        return int(held)
    return held if kind.endswith("Value") else value


def _list(value: Any) -> list[Any] | None:
    value = json_in(value) if _begins_list(value) else value
    return value if isinstance(value, list) else None


def _begins_list(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("[")


# ---- messages ----


def _messages(request: SpanMessages) -> list[Any]:
    messages: list[Any] = []
    waiting: deque[str] = deque()
    unnamed = count(1)
    if system := _content(objects_in(request.system)):
        messages.append({"role": "system", "content": system})
    for message in [*request.inputs, *(request.outputs or ())]:
        messages += _said(message, waiting, unnamed) if isinstance(message, dict) else [message]
    return messages


def _said(message: dict[str, Any], waiting: deque[str], unnamed: Iterator[int]) -> Iterator[dict[str, Any]]:
    """One message: the results that it holds, and the rest. ``waiting``: calls without an id that have no result
    so far; ``unnamed`` numbers them.
    """
    if not isinstance(message.get("parts"), list):
        yield message
        return
    parts = objects_in(message["parts"])
    for part in parts:
        if part.get("type") == "tool_call_response":
            call = part.get("id") or (waiting.popleft() if waiting else "")
            result = part.get("response", part.get("result"))
            yield chat.result(call, arguments_text(result) if result is not None else "")
    calls = [part for part in parts if part.get("type") == "tool_call"]
    content = _content([part for part in parts if part.get("type") not in ("tool_call", "tool_call_response")])
    if not content and not calls:
        return
    said: dict[str, Any] = {"role": message.get("role"), "content": content or None}
    if thought := "\n".join(str(part.get("content")) for part in parts if part.get("type") == "reasoning"):
        said["reasoning_content"] = thought
    for part in calls:
        call = part.get("id")
        if not call:
            call = f"call-{next(unnamed)}"
            waiting.append(call)
        said.setdefault("tool_calls", []).append(
            chat.call(call, part.get("name"), arguments_text(part.get("arguments")))
        )
    yield said


def _content(parts: list[dict[str, Any]]) -> Any:
    """Parts as a text, or as blocks where there is more. What a model thought stands beside it."""
    blocks = [_block(part) for part in parts if part.get("type") != "reasoning"]
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return blocks


def _block(part: dict[str, Any]) -> dict[str, Any]:
    kind, of = part.get("mime_type") or part.get("modality"), part.get("modality")
    content = part.get("content")
    if part.get("type") == "text" and isinstance(content, str):
        return {"type": "text", "text": content}
    is_held = part.get("type") == "blob" and isinstance(content, str)
    url = part.get("uri") or (f"data:{kind};base64,{content}" if is_held else None)
    if isinstance(url, str) and of == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": json_text(part)}


def _tools(declared: list[Any] | None) -> tuple[Any, ...]:
    fields = ("name", "description", "parameters")
    return tuple(
        {"type": "function", "function": {name: tool[name] for name in fields if name in tool}}
        for tool in objects_in(declared)
        if tool.get("type") == "function" and "name" in tool
    )
