"""Haystack's ``ChatMessage`` objects: a role, a list of content objects, and meta data of their owner.

A tool call may have no id there; it is then known by the name of its tool, as its result names it too.

What belongs here: reading and rebuilding. What does not: when to compact (``integrations.haystack``). The package is
imported only to build new objects; an object cannot exist unless it is loaded already.

Reference: https://docs.haystack.deepset.ai/docs/chatmessage
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from contextfold.errors import FormatError
from contextfold.formats import crossing, values
from contextfold.formats.base import Rules
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, is_signed

ROLES = ("system", "user", "assistant", "tool")


class Haystack:
    """Messages of Haystack."""

    name: ClassVar[str] = "haystack"
    alternates: ClassVar[bool] = False
    rules: ClassVar[Rules] = Rules()

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        if not is_object(wire):
            raise FormatError(f"Haystack has ChatMessage objects, and this is {values.kind_of(wire)}", index=index)
        return Message(
            role=values.role_of({"role": wire.role.value}, ROLES, index),  # type: ignore[arg-type]
            # Private, but the one place that has all contents in their order: the properties give them kind by kind.
            parts=tuple(_decoded(content) for content in wire._content),
            id=values.optional_text(wire.meta, "id"),
            name=wire.name,
            metadata=wire.meta,
            source=wire,
            source_format=self.name,
        )

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        return crossing.encode(messages, self.name, _rebuild, _build)

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        return message

    def join(self, first: Any, second: Any) -> Any | None:
        if first.role != second.role or first.role.value not in ("user", "system") or first.name != second.name:
            return None
        return replace(first, _content=[*first._content, *second._content])


def is_object(wire: Any) -> bool:
    """Whether this is a ``ChatMessage``."""
    return values.is_instance(wire, "haystack.dataclasses.chat_message", "ChatMessage")


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decoded(content: Any) -> Part:
    kind = type(content).__name__
    if kind == "ToolCall":
        unnamed, arguments = not content.id, _arguments(content.arguments)
        return ToolCall(_id(content), content.tool_name, arguments, unnamed=unnamed, source=content)
    if kind == "ToolCallResult":
        said = content.result
        inner: tuple[Any, ...] = tuple(_said(item) for item in said) if not isinstance(said, str) else ()
        if isinstance(said, str) and said:
            inner = (Text(said, source=said),)
        origin = content.origin
        return ToolResult(_id(origin), inner, name=origin.tool_name, is_error=content.error, source=content)
    if kind == "ReasoningContent":
        held = content.extra.get("reasoning_contents") if isinstance(content.extra, dict) else None
        signed = any(is_signed(block) for block in held or () if isinstance(block, dict))
        kind = "thinking" if signed else "reasoning"
        source = {"type": kind, "signature": signed, "extra": content.extra, "of": content}
        return Reasoning(content.reasoning_text, source=source)
    return _said(content)


def _id(call: Any) -> str:
    return call.id or f"function:{call.tool_name}"


def _arguments(arguments: Any) -> str:
    return values.json_text(arguments) if arguments else ""


def _said(content: Any) -> Text | Media | Opaque:
    kind = type(content).__name__
    if kind == "TextContent":
        return Text(content.text, source=content)
    if kind == "ImageContent":
        detail, path = content.detail, (content.meta or {}).get("file_path")  # where Haystack's own converters say it
        name, data = path if isinstance(path, str) else None, content.base64_image
        return Media("image", content.mime_type, data, detail=detail, name=name, source=content)
    if kind == "FileContent":
        kind_of_media, name = values.media_kind(content.mime_type), content.filename
        return Media(kind_of_media, content.mime_type, content.base64_data, name=name, source=content)
    return Opaque(kind, str(content), source=content)


# ---- encoding --------------------------------------------------------------------------------------------------------


def _rebuild(message: Message) -> Any:
    return replace(message.source, _content=[_rebuilt(part) for part in message.parts])


def _rebuilt(part: Part) -> Any:
    source = part.source
    if isinstance(part, Reasoning) and isinstance(source, dict):
        return source["of"]
    if source is None or not values.is_touched(part):
        return _built(part) if source is None else source
    if isinstance(part, ToolCall):
        arguments = values.arguments_object(part.arguments) if part.edited else source.arguments
        return replace(source, arguments=arguments, id=part.id if part.id != _id(source) else source.id)
    if isinstance(part, ToolResult):
        origin = source.origin if part.call_id == _id(source.origin) else replace(source.origin, id=part.call_id)
        return replace(source, result=_result(source.result, part.content), origin=origin)
    if isinstance(part, Text) and hasattr(source, "text"):
        return replace(source, text=part.text)
    return _built(part)


def _result(original: Any, content: Sequence[Part]) -> Any:
    """The output of a tool: still a text where it was one and nothing but text is left."""
    if isinstance(original, str) and all(isinstance(part, Text) for part in content):
        return crossing.joined_text(content)
    return [_rebuilt(part) for part in content]


def _built(part: Part) -> Any:
    import haystack.dataclasses as theirs

    if isinstance(part, ToolCall):
        return theirs.ToolCall(part.name, values.arguments_object(part.arguments), id=part.id)
    if isinstance(part, Media) and part.data is not None:
        if part.kind == "image":
            return theirs.ImageContent(part.data, part.media_type, part.detail, validation=False)  # type: ignore[arg-type]
        return theirs.FileContent(part.data, part.media_type, filename=part.name, validation=False)
    if isinstance(part, Media):
        return theirs.TextContent(values.media_note(part).text)
    return theirs.TextContent(part.text if isinstance(part, Text | Opaque) else "")


def _build(run: Sequence[Message], before: Sequence[Any]) -> list[Any]:
    import haystack.dataclasses as theirs

    calls = {_id(call): call for message in before for call in message.tool_calls}
    built: list[Any] = []
    for message in run:
        results, said = crossing.results_and_rest(message)
        for result in results:
            origin = calls.get(result.call_id) or theirs.ToolCall(result.name or "tool", {}, id=result.call_id)
            output = _result("", [part for part in result.content if not isinstance(part, Opaque)])
            built.append(theirs.ChatMessage.from_tool(output, origin, error=result.is_error))
        content = [_built(part) for part in (*said, *message.tool_calls)]
        calls.update({_id(call): call for call in content if isinstance(call, theirs.ToolCall)})
        if content:
            role = "system" if message.role == "developer" else "user" if message.role == "tool" else message.role
            meta = dict(message.metadata)
            built.append(theirs.ChatMessage(theirs.ChatRole(role), content, _name=message.name, _meta=meta))
    return built
