"""Anthropic Messages: user and assistant messages that take turns, made of content blocks.

One user message may hold the results of several calls, with text beside them. The API has no system role at the
beginning of the list; transcripts and requests read from files put what was in the ``system`` parameter there as
leading entries with the role ``system``. Those are kept and written as ``{"role": "system", ...}``, and belong into the
``system`` parameter of a request. A system message in the middle becomes a user message in ``<system>`` tags, since
most models refuse the role there. In a request that its client would send as it is (``AnthropicRequest``), it stays one
behind a user message and before the assistant's, or at the end.

The API refuses blank texts, and calls that share an id; other formats have both, and so have transcripts.

Blocks of the server's own tools, search results, compaction and whatever comes next are opaque, with readable text.

Reference: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from contextfold.formats import crossing, values
from contextfold.formats.base import Rules
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

ROLES = ("system", "user", "assistant")
REASONING_BLOCKS = frozenset({"thinking", "redacted_thinking"})
MEDIA_BLOCKS = frozenset({"image", "document"})


def _sets(message: Message) -> bool:
    """Whether a system message changes the tools, how the model answers, or whatever blocks may come for that next."""
    if any(isinstance(part, Opaque) for part in message.parts):
        return True
    config = message.source.get("output_config") if isinstance(message.source, dict) else None
    return isinstance(config, dict) and len(config) > 0


class Anthropic:
    """Messages of the Anthropic Messages API."""

    name: ClassVar[str] = "anthropic"
    alternates: ClassVar[bool] = True
    rules: ClassVar[Rules] = Rules(
        not_in_call_ids=re.compile(r"[^a-zA-Z0-9_-]|\A\Z"), user_first=True, bare_end=True, sets_between=_sets
    )

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        entry = values.as_object(wire, index, "an Anthropic message")
        role = values.role_of(entry, ROLES, index)
        return values.message_of(entry, self.name, role, values.said(entry, _decode_block, index))

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        return crossing.encode(messages, self.name, _rebuild, _build)

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        if message.is_instruction:
            return crossing.instruction(message, self.name, leading=leading)
        if not message.parts:
            return message.with_parts(())
        return message.with_changed(tuple(_without_blanks(part) for part in message.parts if not values.is_blank(part)))

    def join(self, first: Any, second: Any) -> Any | None:
        # several system messages in a row are accepted, and each may have fields of its own
        if first.get("role") != second.get("role") or first.get("role") == "system":
            return None
        blocks = [*_blocks(first.get("content")), *_blocks(second.get("content"))]
        blocks.sort(key=lambda block: block.get("type") != "tool_result")  # stable: the API wants results first
        return {**second, **first, "content": blocks}


class AnthropicRequest(Anthropic):
    """The same, of a client that knows whether its model takes system messages in the middle, as Claude Code does."""

    rules: ClassVar[Rules] = replace(Anthropic.rules, instructions_between=True)


def _without_blanks(part: Part) -> Part:
    """A tool result without its blank blocks; a blank string is accepted there."""
    if not isinstance(part, ToolResult) or not any(values.is_blank(inner) for inner in part.content):
        return part
    if isinstance(part.source, dict) and isinstance(part.source.get("content"), str):
        return part
    return replace(part, content=tuple(inner for inner in part.content if not values.is_blank(inner)), edited=True)


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decode_block(block: dict[str, Any], index: int | None) -> Part:
    kind = values.block_type(block)
    if kind == "tool_use":
        call_id = values.call_id(block, "id", "a tool_use block", index)
        name = values.required_text(block, "name", "a tool_use block", index)
        return ToolCall(call_id, name, values.arguments_text(block.get("input")), source=block)
    if kind == "tool_result":
        call_id = values.call_id(block, "tool_use_id", "a tool_result block", index)
        content = values.decoded_content(block.get("content"), _decode_inner_block, index, "a tool_result")
        return ToolResult(call_id, content, is_error=block.get("is_error") is True, source=block)
    if kind in REASONING_BLOCKS:
        return Reasoning(values.optional_text(block, "thinking") or "", source=block)
    return _decode_inner_block(block, index)


def _decode_inner_block(block: dict[str, Any], index: int | None) -> Text | Media | Opaque:
    kind = values.block_type(block)
    if kind == "text":
        return values.text_of(block, index)
    if kind in MEDIA_BLOCKS:
        return _decode_media(block)
    return values.unknown_block(block, index)


def _decode_media(block: dict[str, Any]) -> Media | Opaque:
    held = block.get("source")
    kind = block["type"]
    if isinstance(held, dict):
        media_type, title = values.optional_text(held, "media_type"), values.optional_text(block, "title")
        if held.get("type") == "base64" and isinstance(held.get("data"), str):
            return Media(kind, media_type=media_type, data=held["data"], name=title, source=block)
        where = values.optional_text(held, "url") or values.optional_text(held, "file_id")
        if where is not None:
            return Media(kind, media_type=media_type, url=where, name=title, source=block)
        # Opaque, unlike other documents, because all of it can be read.
        if held.get("type") == "text":
            said = (title, values.optional_text(block, "context"), values.optional_text(held, "data"))
            lines = [line for line in said if line]
            return Opaque(kind, "\n".join(lines), source=block)
    return values.opaque(block)


# ---- encoding what was edited ----------------------------------------------------------------------------------------


def _rebuild(message: Message) -> dict[str, Any]:
    source: dict[str, Any] = message.source
    content = values.rebuilt_content(source.get("content"), message.parts, _rebuild_block)
    return {**source, "role": "user" if message.role == "tool" else message.role, "content": content}


def _rebuild_block(part: Part) -> Any:
    source = part.source if isinstance(part.source, dict) else None
    if source is None:
        return _build_block(part)
    if not values.is_touched(part):
        return source
    if isinstance(part, ToolCall) and source.get("type") == "tool_use":
        return {**source, "id": part.id, "name": part.name, "input": values.arguments_object(part.arguments)}
    if isinstance(part, ToolResult):
        block = {**source, "tool_use_id": part.call_id}
        if part.content or "content" in source:
            block["content"] = values.rebuilt_content(source.get("content"), part.content, _rebuild_block)
        return block
    if isinstance(part, Text) and source.get("type") == "text":
        return {**source, "text": part.text}
    # the caller's cache mark stays where it was put
    return {**_build_block(part), **{key: source[key] for key in ("cache_control",) if key in source}}


# ---- encoding what came from elsewhere -------------------------------------------------------------------------------


def _build(run: Sequence[Message], before: Sequence[Any]) -> list[Any]:
    leading = all(entry.get("role") == "system" for entry in before)
    return crossing.turns(run, leading, _build_message, Anthropic().join)


def _build_message(message: Message, leading: bool) -> dict[str, Any]:
    if message.is_instruction:
        text = crossing.in_words(message.parts)
        if leading:
            return {"role": "system", "content": text}
        return {"role": "user", "content": crossing.in_tags(text)}
    role = "assistant" if message.role == "assistant" else "user"
    parts = crossing.results_first(message)
    if len(parts) == 1 and isinstance(parts[0], Text):
        return {"role": role, "content": parts[0].text}
    return {"role": role, "content": [_build_block(part, role=role) for part in parts]}


def _build_block(part: Part, *, role: str = "user") -> dict[str, Any]:
    if isinstance(part, ToolCall):
        return {
            "type": "tool_use",
            "id": part.id,
            "name": part.name,
            "input": values.arguments_object(part.arguments, custom=part.custom),
        }
    if isinstance(part, ToolResult):
        return _build_result(part)
    if isinstance(part, Media):
        return _build_media(part) if role == "user" else _text(values.media_note(part).text)
    return _text(part.text if isinstance(part, Text | Opaque) else "")


def _build_result(result: ToolResult) -> dict[str, Any]:
    content = crossing.built_content(result.content, _build_block)
    block = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
    block |= values.repeated(result, ("tool_use",), "toolset_name")
    return {**block, "is_error": True} if result.is_error else block


def _build_media(media: Media) -> dict[str, Any]:
    titled = {"title": media.name} if media.name and media.kind == "document" else {}
    if media.kind in MEDIA_BLOCKS and media.data is not None:
        default = "image/png" if media.kind == "image" else "application/pdf"
        held = {"type": "base64", "media_type": media.media_type or default, "data": media.data}
        return {"type": media.kind, "source": held, **titled}
    if media.kind in MEDIA_BLOCKS and values.is_link(media):
        return {"type": media.kind, "source": {"type": "url", "url": media.url}, **titled}
    return _text(values.media_note(media).text)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    if isinstance(content, dict):
        return [content]
    return [_text(block) if isinstance(block, str) else block for block in content or ()]
