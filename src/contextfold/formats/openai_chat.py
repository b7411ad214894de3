"""OpenAI Chat Completions messages, and the many transcripts that are nearly that.

One wire object is one message: text, media and refusals in ``content``, calls in ``tool_calls``, each result in a
message of role ``tool``. Keys of a message that hold something beside its content (``refusal``, ``audio``,
``reasoning_content``) are parts whose source is a ``Field``, so that removing the part removes the key.

Liberal where recorded sessions are: calls written flat (``name`` and ``arguments`` without ``function``), arguments
given as an object, results that name their call by ``id`` or ``tool_call_ids``, the older ``function_call`` and the
role ``function``, which carry no ids and are paired by the function's name.

Reference: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from contextfold.errors import FormatError
from contextfold.formats import crossing, values
from contextfold.formats.base import Rules
from contextfold.formats.marks import CHAT_ROLES
from contextfold.messages import Media, MediaKind, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""The first two hold words; the others blocks of the same words, with signatures (OpenRouter, LiteLLM)."""
FIELDS = ("refusal", "audio", "images", *REASONING_FIELDS)
SPECIFIC = "provider_specific_fields"
RAN = {
    "compaction_blocks": "",
    "server_tool_calls": "server_tool_use",
    "web_search_results": "web_search_tool_result",
    "tool_results": "",
}
"""What LiteLLM keeps there of the blocks that Anthropic itself wrote or ran, and sends again, with the type of those
that do not name one.
"""
RAN_ID = "srvtoolu_"
"""Begins the id of a call that Anthropic runs itself. Older releases of LiteLLM list it among the others: it has its
result beside it, and a message with another one is refused."""
REASONING_BLOCKS = frozenset({"reasoning", "thinking", "redacted_thinking"})
TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
LINKED: Mapping[str, MediaKind] = {"video_url": "video", "audio_url": "audio"}
"""Blocks of servers that speak this API and take more than OpenAI does (vLLM, OpenRouter)."""
SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""What the API takes as ``input_audio``."""
NAME = re.compile(r"[^\s<|\\/>]{1,64}")  # what the API allows as the name of a participant

InnerPart = Text | Media | Opaque


@dataclass(frozen=True, slots=True)
class Field:
    """The source of a part that is a key of the message itself, beside its content."""

    name: str
    value: Any
    is_bound: bool = False
    """Reasoning whose signature stands in another key: they go together."""


class OpenAIChat:
    """Messages of Chat Completions."""

    name: ClassVar[str] = "openai-chat"
    alternates: ClassVar[bool] = False
    rules: ClassVar[Rules] = Rules()

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        entry = values.as_object(wire, index, "a chat message")
        role = values.role_of(entry, CHAT_ROLES, index)
        parts: tuple[Part, ...]
        if role in ("tool", "function"):
            parts = (_decode_result(entry, role, index),)
        else:
            parts = values.decoded_content(entry.get("content"), _decode_block, index)
        if role == "assistant":
            parts = (*_decode_fields(entry), *parts, *_decode_calls(entry, index))
        if not parts:
            values.said_elsewhere(entry, "content", index)
        name = values.optional_text(entry, "name")
        return values.message_of(entry, self.name, "tool" if role == "function" else role, parts, name=name)

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        return crossing.encode(messages, self.name, _rebuild, _build)

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        if message.source_format != self.name or not _lacks_something(message.source):
            return message
        if message.role == "tool":
            said: tuple[Part, ...] = tuple(
                replace(result, content=(Text(""),), edited=True) for result in message.tool_results
            )
        else:
            said = (*message.parts, Text("")) if message.parts and not message.text else message.parts
        return message.with_parts(said)

    def join(self, first: Any, second: Any) -> Any | None:
        role = first.get("role")
        if role != second.get("role") or first.get("name") != second.get("name") or role in ("tool", "function"):
            return None
        if any(first.get(key) or second.get(key) for key in ("tool_calls", "function_call", *FIELDS)):
            return None
        return {**second, **first, "content": values.joined_contents(first.get("content"), second.get("content"))}


def _lacks_something(entry: Mapping[str, Any]) -> bool:
    """Whether a message has null or nothing for its content, or an empty list of calls: the API takes neither."""
    content, role = entry.get("content"), entry.get("role")
    if role == "assistant":
        speaks = any(entry.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
        return (content is None and not speaks) or entry.get("tool_calls") == []
    return content is None or content == []


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decode_block(block: dict[str, Any], index: int | None) -> Text | Media | Opaque | Reasoning:
    kind = values.block_type(block)
    if kind in REASONING_BLOCKS:
        text = values.optional_text(block, "thinking") or values.optional_text(block, "reasoning") or ""
        return Reasoning(text, source=block)
    return _decode_inner_block(block, index)


def _decode_inner_block(block: dict[str, Any], index: int | None) -> InnerPart:
    kind = values.block_type(block)
    if kind in TEXT_BLOCKS and isinstance(block.get("text"), str):
        return Text(block["text"], source=block)
    if kind == "text" and isinstance(held := block.get("text"), dict) and isinstance(held.get("value"), str):
        return Text(held["value"], source=block)  # of a thread, beside what it quotes
    if kind == "image_url":
        return _decode_image(block, index)
    if kind == "file":
        return _decode_file(block)
    if kind in LINKED and isinstance(held := block.get(kind), dict) and isinstance(held.get("url"), str):
        return values.media_from_url(LINKED[kind], held["url"], source=block)
    return values.input_audio(block) or values.unknown_block(block, index)


def _decode_image(block: dict[str, Any], index: int | None) -> Media:
    image = block.get("image_url")
    image = {"url": image} if isinstance(image, str) else image
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        raise FormatError("an image_url block has no url", index=index)
    return values.media_from_url("image", image["url"], detail=values.optional_text(image, "detail"), source=block)


def _decode_file(block: dict[str, Any]) -> Media | Opaque:
    file = block.get("file")
    held = file.get("file_data") or file.get("file_id") if isinstance(file, dict) else None
    if not isinstance(file, dict) or not isinstance(held, str):
        return values.opaque(block)
    return values.media_from_url("document", held, name=values.optional_text(file, "filename"), source=block)


def _decode_fields(entry: Mapping[str, Any]) -> list[Part]:
    parts: list[Part] = []
    thought = [name for name in REASONING_FIELDS if entry.get(name)]
    is_bound = any(Reasoning("", source=Field(name, entry[name])).is_bound for name in thought)
    for name in FIELDS:
        value = entry.get(name)
        if not value:
            continue
        source = Field(name, value, is_bound and name in thought)
        if name in thought:
            # the same words once more, behind the first key that has them
            words = values.readable(value) if name == thought[0] else ""
            parts.append(Reasoning(words, source=source))
        else:
            parts.append(Opaque(name, values.readable(value), source=source))
    beside = entry[SPECIFIC] if isinstance(entry.get(SPECIFIC), dict) else {}
    for key, usual in RAN.items():
        held = beside.get(key) or []
        for block in held if isinstance(held, list) else [held]:
            label = values.block_type(block) if isinstance(block, dict) else None
            parts.append(Opaque(usual or label or key, values.readable(block), source=Field(SPECIFIC, block)))
    return parts


def _decode_calls(entry: Mapping[str, Any], index: int | None) -> list[ToolCall | Opaque]:
    calls = entry.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise FormatError(f"'tool_calls' is a list, and this is {values.kind_of(calls)}", index=index)
    listed = [_decode_call(call, position, index) for position, call in enumerate(calls or ())]
    found = [
        Opaque("server_tool_use", f"{call.name}\n{call.arguments}", source=Field("tool_calls", call.source))
        if call.id.startswith(RAN_ID)
        else call
        for call in listed
    ]
    legacy = entry.get("function_call")
    if isinstance(legacy, dict):
        name = values.required_text(legacy, "name", "the function_call", index)
        arguments = _arguments(legacy, "arguments", index)
        found.append(ToolCall(values.legacy_id(name), name, arguments, unnamed=True, source=legacy))
    return found


def _decode_call(call: Any, position: int, index: int | None) -> ToolCall:
    what = f"tool call {position}"
    call = values.as_object(call, index, what)
    call_id = values.call_id(call, "id", what, index)
    inner, key = _call_body(call)
    if inner is call and isinstance(call.get("function"), str):
        name = call["function"]
    else:
        name = values.required_text(inner, "name", what, index)
    return ToolCall(call_id, name, _arguments(inner, key, index), custom=key == "input", source=call)


def _call_body(call: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The object that holds the arguments, and under which key."""
    if call.get("type") == "custom" and isinstance(call.get("custom"), dict):
        return call["custom"], "input"
    function = call.get("function")
    return (function if isinstance(function, dict) else call), "arguments"


def _arguments(body: Mapping[str, Any], key: str, index: int | None) -> str:
    value = body.get(key)
    if value is None:
        return ""
    if isinstance(value, dict):
        return values.json_text(value)
    if not isinstance(value, str):
        found = values.kind_of(value)
        raise FormatError(f"the {key} of a tool call must be a string of JSON, and this is {found}", index=index)
    return value


def _decode_result(entry: Mapping[str, Any], role: str, index: int | None) -> ToolResult:
    content = values.said(entry, _decode_inner_block, index)
    name = values.optional_text(entry, "name")
    call_id = values.legacy_id(name or "") if role == "function" else _answered(entry, index)
    return ToolResult(call_id, content, name=name, is_error=bool(entry.get("error")), source=entry)


def _answered(entry: Mapping[str, Any], index: int | None) -> str:
    several = entry.get("tool_call_ids")
    listed = several[0] if isinstance(several, list) and several else None
    named = [id for id in (entry.get("tool_call_id"), listed, entry.get("id")) if isinstance(id, str)]
    if not named:
        raise FormatError("a tool message has no 'tool_call_id': name the call that it answers", index=index)
    return next(filter(None, named), "")  # as ``values.call_id``


# ---- encoding what was edited ----------------------------------------------------------------------------------------


def _rebuild(message: Message) -> dict[str, Any]:
    source: dict[str, Any] = message.source
    results = message.tool_results
    if message.role == "tool" and results:
        return _rebuild_result(source, results[0])
    said = [p for p in message.parts if not isinstance(p, ToolCall | ToolResult) and not isinstance(p.source, Field)]
    kept = {part.source.name for part in message.parts if isinstance(part.source, Field)}
    gone = {key for key in FIELDS if source.get(key) and key not in kept}
    entry = {key: value for key, value in source.items() if key not in gone}
    if "content" in source or said:
        entry["content"] = values.rebuilt_content(source.get("content"), said, _rebuild_block)
    return _with_calls(entry, message) if message.role == "assistant" else entry


def _with_calls(entry: dict[str, Any], message: Message) -> dict[str, Any]:
    calls, fields = message.tool_calls, [part.source for part in message.parts if isinstance(part.source, Field)]
    legacy = [call for call in calls if call.source is not None and call.source is entry.get("function_call")]
    modern = [field.value for field in fields if field.name == "tool_calls"]
    modern += [_rebuild_call(call) for call in calls if call not in legacy]
    if modern:
        entry["tool_calls"] = modern
    elif entry.get("tool_calls") is not None:
        del entry["tool_calls"]  # the API takes no empty list
    if legacy and legacy[0].edited:
        body = entry["function_call"]
        arguments = values.with_arguments(body.get("arguments"), legacy[0].arguments)
        entry["function_call"] = {**body, "arguments": arguments}
    elif not legacy and entry.get("function_call"):
        del entry["function_call"]
    return entry


def _rebuild_result(source: Mapping[str, Any], result: ToolResult) -> dict[str, Any]:
    entry = {**source, "content": values.rebuilt_content(source.get("content"), result.content, _rebuild_block)}
    if "tool_call_id" in source:
        entry["tool_call_id"] = result.call_id
    return entry


def _rebuild_block(part: Part) -> Any:
    if part.source is not None and not values.is_touched(part):
        return part.source if isinstance(part.source, dict) else {"type": "text", "text": part.source}
    if isinstance(part, Text) and isinstance(part.source, dict) and "text" in part.source:
        held = part.source["text"]  # what a thread's text quotes stands at places in it
        text = {**held, "value": part.text, "annotations": []} if isinstance(held, dict) else part.text
        return {**part.source, "text": text}
    return _build_block(part)


def _rebuild_call(call: ToolCall) -> dict[str, Any]:
    if not isinstance(call.source, dict):
        return _build_call(call)
    if not call.edited:
        return call.source
    body, key = _call_body(call.source)
    edited = {key: values.with_arguments(body.get(key), call.arguments)}
    if body is call.source:
        return {**call.source, **edited, "id": call.id}
    holder = "custom" if key == "input" else "function"
    return {**call.source, "id": call.id, holder: {**body, **edited}}


# ---- encoding what came from elsewhere -------------------------------------------------------------------------------


def _build(run: Sequence[Message], before: Sequence[Any]) -> list[Any]:
    """A run of foreign messages. Media of tool results follow all results of the step: tool messages take only text."""
    built: list[Any] = []
    waiting: list[ToolResult] = []
    asked = {call.id for message in run for call in message.tool_calls}
    for message in run:
        results, said = crossing.results_and_rest(message)
        for result in results:
            built.append(_build_result(result, asked))
            if any(isinstance(part, Media) for part in result.content):
                waiting.append(result)
        if said or message.tool_calls:
            built.extend(_build_media(waiting))
            waiting = []
            built.append(_build_message(message, said))
    return [*built, *_build_media(waiting)]


def _build_message(message: Message, said: Sequence[Text | Media]) -> dict[str, Any]:
    role = "user" if message.role == "tool" else message.role
    entry: dict[str, Any] = {"role": role, "content": crossing.built_content(said, _build_block)}
    if message.name and NAME.fullmatch(message.name):
        entry["name"] = message.name
    if role == "assistant":
        texts = [part if isinstance(part, Text) else values.media_note(part) for part in said]
        entry["content"] = crossing.joined_text(texts) if texts else None
        if message.tool_calls:
            entry["tool_calls"] = [_build_call(call) for call in message.tool_calls]
    return entry


def _build_result(result: ToolResult, asked: Set[str]) -> dict[str, Any]:
    said = crossing.telling_failure(result)
    texts = [values.media_note(_shown_elsewhere(part)) if isinstance(part, Media) else part for part in said]
    if result.name and result.call_id == values.legacy_id(result.name) and result.call_id not in asked:
        # The call is no part of the run: it stands before it as it came, and a message of the role tool is refused
        # behind a ``function_call``.
        return {"role": "function", "name": result.name, "content": crossing.joined_text(texts)}
    return {"role": "tool", "tool_call_id": result.call_id, "content": crossing.joined_text(texts)}


def _shown_elsewhere(media: Media) -> Media:
    """The media named by where it follows, for the text of a tool message."""
    return replace(media, data=None, url="see the message after the tool results")


def _build_media(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    blocks: list[Any] = []
    for result in results:
        blocks.append({"type": "text", "text": f"From the result of tool call {result.call_id}:"})
        blocks.extend(_build_block(part) for part in result.content if isinstance(part, Media))
    return [{"role": "user", "content": blocks}] if blocks else []


def _build_call(call: ToolCall) -> dict[str, Any]:
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def _build_block(part: Part) -> dict[str, Any]:
    if isinstance(part, Media):
        return _build_media_block(part)
    return {"type": "text", "text": part.text if isinstance(part, Text | Opaque) else ""}


def _build_media_block(media: Media) -> dict[str, Any]:
    if media.kind == "image" and (media.data is not None or values.is_link(media)):
        detail = {"detail": media.detail} if media.detail else {}
        return {"type": "image_url", "image_url": {"url": values.data_url(media), **detail}}
    if media.kind == "document" and media.data is not None:
        name = media.name or f"document.{(media.media_type or 'application/pdf').rpartition('/')[2]}"
        return {"type": "file", "file": {"filename": name, "file_data": values.data_url(media)}}
    if media.data is not None and media.media_type in SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": SOUNDS[media.media_type]}}
    return {"type": "text", "text": values.media_note(media).text}
