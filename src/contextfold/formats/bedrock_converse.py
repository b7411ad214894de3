"""Bedrock Converse: user and assistant messages that take turns, made of blocks that are named by their only key.

A block is ``{"text": ...}``, ``{"toolUse": ...}``, ``{"toolResult": ...}`` and others, without a ``type``. Media are
bytes, as boto3 takes them, or base64 as the HTTP API has it. One user message may hold the results of several calls,
and has to hold those of all calls of the message before.

The API has no system role inside the list; as with Anthropic, leading entries with the role ``system`` stand for the
``system`` parameter of a request, and a system message in the middle becomes a user message in ``<system>`` tags.

A ``cachePoint`` is a block of its own that callers move at every request: it is handed through, and says nothing.
Guarded content, citations and whatever comes next are opaque, with readable text.

Reference: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from contextfold.errors import FormatError
from contextfold.formats import crossing, values
from contextfold.formats.base import Rules
from contextfold.messages import Media, MediaKind, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, is_mark

ROLES = ("system", "user", "assistant")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
"""What the name of a document is not made of here: the API takes few other signs, and blanks one at a time."""
MEDIA_BLOCKS: Mapping[str, MediaKind] = {"image": "image", "document": "document", "video": "video", "audio": "audio"}

NO_OUTPUT = "[no output]"
"""Stands in a result whose texts were all blank, which the API refuses."""
ATTACHED = "[a document is attached]"
"""Stands beside a document that came without words: the API wants text in each message that has one."""

_TYPES: Mapping[MediaKind, Mapping[str, str]] = {
    "image": {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"},
    "document": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/plain": "txt",
        "text/markdown": "md",
    },
    "video": {
        "video/mp4": "mp4",
        "video/quicktime": "mov",
        "video/x-matroska": "mkv",
        "video/webm": "webm",
        "video/x-flv": "flv",
        "video/mpeg": "mpeg",
        "video/x-ms-wmv": "wmv",
        "video/3gpp": "three_gp",
    },
    "audio": {"audio/mpeg": "mp3", "audio/wav": "wav", "audio/ogg": "ogg", "audio/flac": "flac", "audio/mp4": "m4a"},
}
"""Media types and what Converse calls them."""
_USUAL: Mapping[MediaKind, str] = {
    "image": "image/png",
    "document": "application/pdf",
    "video": "video/mp4",
    "audio": "audio/mpeg",
}


def _changes_tools(message: Message) -> bool:
    return any(isinstance(part, Opaque) and part.label in ("toolAddition", "toolRemoval") for part in message.parts)


class BedrockConverse:
    """Messages of Amazon Bedrock's Converse API."""

    name: ClassVar[str] = "bedrock-converse"
    alternates: ClassVar[bool] = True
    rules: ClassVar[Rules] = Rules(
        takes_bytes=True,
        not_in_call_ids=re.compile(r"[^a-zA-Z0-9_.:-]|\A\Z"),
        longest_call_id=64,
        user_first=True,
        takes_turns=True,
        bare_end=True,
        sets_between=_changes_tools,
    )

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        entry = values.as_object(wire, index, "a Converse message")
        role = values.role_of(entry, ROLES, index)
        return values.message_of(entry, self.name, role, values.said(entry, _decode_block, index))

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        return crossing.encode(messages, self.name, _rebuild, _build)

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        if message.is_instruction:
            return crossing.instruction(message, self.name, leading=leading)
        parts = [_without_blanks(part) for part in message.parts if not values.is_blank(part)]
        if all(is_mark(part) for part in parts):
            return message.with_parts(())
        if _has_bare_document(parts):
            parts.append(Text(ATTACHED))
        return message.with_changed(tuple(parts))

    def join(self, first: Any, second: Any) -> Any | None:
        if first.get("role") != second.get("role") or first.get("role") == "system":
            return None
        blocks = [*_blocks(first.get("content")), *_blocks(second.get("content"))]
        blocks.sort(key=lambda block: "toolResult" not in block)  # stable: models want results first
        return {**second, **first, "content": blocks}


def _without_blanks(part: Part) -> Part:
    """A tool result without its blank texts."""
    if not isinstance(part, ToolResult) or not any(values.is_blank(inner) for inner in part.content):
        return part
    content = tuple(inner for inner in part.content if not values.is_blank(inner))
    return replace(part, content=content or (Text(NO_OUTPUT),), edited=True)


def _has_bare_document(parts: Sequence[Part]) -> bool:
    """Whether a document stands here without any words."""
    documents = any(isinstance(part, Media) and part.kind == "document" for part in parts)
    return documents and not any(isinstance(part, Text) for part in parts)


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decode_block(block: dict[str, Any], index: int | None) -> Part:
    if any(isinstance(held := block.get(kind), dict) and held.get("type") for kind in ("toolUse", "toolResult")):
        return values.opaque(block, _label(block))  # a tool that Bedrock runs: call and result stand in one message
    if isinstance(call := block.get("toolUse"), dict):
        call_id = values.call_id(call, "toolUseId", "a toolUse block", index)
        name = values.required_text(call, "name", "a toolUse block", index)
        return ToolCall(call_id, name, values.arguments_text(call.get("input")), source=block)
    if isinstance(result := block.get("toolResult"), dict):
        call_id = values.call_id(result, "toolUseId", "a toolResult block", index)
        content = values.decoded_content(result.get("content"), _decode_inner_block, index, "a toolResult")
        return ToolResult(call_id, content, is_error=result.get("status") == "error", source=block)
    if isinstance(thinking := block.get("reasoningContent"), dict):
        said = thinking.get("reasoningText")
        return Reasoning(values.optional_text(said, "text") or "" if isinstance(said, dict) else "", source=block)
    if "toolUse" in block or "toolResult" in block:
        kind = "toolUse" if "toolUse" in block else "toolResult"
        raise FormatError(f"{kind} is an object, and this is {values.kind_of(block[kind])}", index=index)
    return _decode_inner_block(block, index)


def _decode_inner_block(block: dict[str, Any], index: int | None) -> Text | Media | Opaque:
    if "text" in block:
        return values.text_of(block, index)
    if "json" in block:
        return Text(values.json_text(block["json"]), source=block)
    for key, kind in MEDIA_BLOCKS.items():
        if isinstance(held := block.get(key), dict) and (media := decode_media(kind, held, block)) is not None:
            return media
    return values.opaque(block, _label(block))


def decode_media(kind: MediaKind, held: Mapping[str, Any], block: dict[str, Any]) -> Media | None:
    """An image, a document, a video or a sound; None for a document of plain text, because all of it can be read."""
    source = held.get("source")
    if not isinstance(source, dict):
        return None
    names = {short: long for long, short in _TYPES[kind].items()}
    said = str(held.get("format"))
    media_type = names.get(said) or (f"{kind}/{said}" if kind != "document" and "format" in held else None)
    data, name = source.get("bytes"), values.optional_text(held, "name")
    if isinstance(data, bytes | bytearray | memoryview):
        return Media(kind, media_type=media_type, data=base64.b64encode(data).decode("ascii"), name=name, source=block)
    if isinstance(data, str):
        return Media(kind, media_type=media_type, data=data, name=name, source=block)
    where = source.get("s3Location")
    uri = values.optional_text(where, "uri") if isinstance(where, dict) else None
    return None if uri is None else Media(kind, media_type=media_type, url=uri, name=name, source=block)


def _label(block: Mapping[str, Any]) -> str:
    """What a block is called: its key, beside the ``type`` of other formats."""
    return values.block_type(block) or next((str(key) for key in block), "unknown")


# ---- encoding what was edited ----------------------------------------------------------------------------------------


def _rebuild(message: Message) -> dict[str, Any]:
    source: dict[str, Any] = message.source
    content = values.rebuilt_content(source.get("content"), message.parts, _rebuild_block)
    if isinstance(content, str) and not isinstance(source.get("content"), str):
        content = [_text(content)]
    return {**source, "role": "user" if message.role == "tool" else message.role, "content": content}


def _rebuild_block(part: Part) -> Any:
    source = part.source if isinstance(part.source, dict) else None
    if source is None:
        return part.source if isinstance(part.source, str) and not values.is_touched(part) else _build_block(part)
    if not values.is_touched(part):
        return source
    if isinstance(part, ToolCall) and isinstance(call := source.get("toolUse"), dict):
        changed = {"toolUseId": part.id, "name": part.name, "input": values.arguments_object(part.arguments)}
        return {**source, "toolUse": {**call, **changed}}
    if isinstance(part, ToolResult) and isinstance(result := source.get("toolResult"), dict):
        content = [_rebuild_block(inner) for inner in part.content]
        return {**source, "toolResult": {**result, "toolUseId": part.call_id, "content": content}}
    if isinstance(part, Text) and isinstance(source.get("text"), str):
        return {**source, "text": part.text}
    if isinstance(part, Text) and "json" in source and (value := values.json_object(part.text)) and part.text.strip():
        return {**source, "json": value}
    return _build_block(part)


# ---- encoding what came from elsewhere -------------------------------------------------------------------------------


def _build(run: Sequence[Message], before: Sequence[Any]) -> list[Any]:
    leading = all(entry.get("role") == "system" for entry in before)
    return crossing.turns(run, leading, _build_message, BedrockConverse().join)


def _build_message(message: Message, leading: bool) -> dict[str, Any]:
    if message.is_instruction:
        text = crossing.in_words(message.parts)
        return {"role": "system", "content": [_text(text)]} if leading else _user(crossing.in_tags(text))
    role = "assistant" if message.role == "assistant" else "user"
    parts = crossing.results_first(message)
    if role == "user" and _has_bare_document(parts):
        parts.append(Text(ATTACHED))
    return {"role": role, "content": [_build_block(part, role=role) for part in parts]}


def _build_block(part: Part, *, role: str = "user") -> dict[str, Any]:
    if isinstance(part, ToolCall):
        given = values.arguments_object(part.arguments, custom=part.custom)
        return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": given}}
    if isinstance(part, ToolResult):
        return _build_result(part)
    if isinstance(part, Media):
        # the API takes media from the user alone
        return _build_media(part) if role == "user" else _text(values.media_note(part).text)
    return _text(part.text if isinstance(part, Text | Opaque) else "")


def _build_result(result: ToolResult) -> dict[str, Any]:
    content = [_build_block(part) for part in result.content if not values.is_blank(part)] or [_text(NO_OUTPUT)]
    built: dict[str, Any] = {"toolUseId": result.call_id, "content": content}
    if result.is_error:
        built["status"] = "error"
    return {"toolResult": built}


def _build_media(media: Media) -> dict[str, Any]:
    short = _TYPES[media.kind].get(media.media_type or _USUAL[media.kind])
    source = _source(media)
    if short is None or source is None:
        return _text(values.media_note(media).text)
    held: dict[str, Any] = {"format": short, "source": source}
    if media.kind == "document":  # a name has to be there, and to differ from those of other documents
        said = (media.data or media.url or "").encode("utf-8", "surrogatepass")
        named = _NOT_IN_NAMES.sub("-", media.name or "").strip("-")[:60] or "document"
        held["name"] = f"{named}-{hashlib.blake2b(said, digest_size=4).hexdigest()}"
    return {media.kind: held}


def _source(media: Media) -> dict[str, Any] | None:
    """Bytes, or a place that Bedrock can read; None where the media is neither."""
    if media.data is not None:
        try:
            return {"bytes": base64.b64decode(media.data)}
        except (binascii.Error, ValueError):
            return None
    if media.url is not None and media.url.startswith("s3://"):
        return {"s3Location": {"uri": media.url}}
    return None


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [_text(text)]}


def _text(text: str) -> dict[str, Any]:
    return {"text": text}


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    return [_text(block) if isinstance(block, str) else block for block in content or ()]
