"""LangChain messages: objects of ``langchain_core`` and their dumps (``langchain_shapes``).

An AI message may name a call twice or three times: as a content block in its provider's own form, in ``tool_calls``
(or ``invalid_tool_calls``), and raw in ``additional_kwargs``. It is one call here, and an edit reaches all places.
``additional_kwargs`` are the message's metadata. New messages take the shape of the others in the list, and are
flat dumps if there are no others.

Reference: https://python.langchain.com/api_reference/core/messages.html
"""

from __future__ import annotations

import base64
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from contextfold.errors import FormatError
from contextfold.formats import crossing, local_tools, values
from contextfold.formats import langchain_built_in as built_in
from contextfold.formats.base import Rules
from contextfold.formats.langchain_shapes import Shape, new_message, shape_of, type_and_fields, with_fields
from contextfold.formats.local_tools import COMPUTER
from contextfold.formats.openai_responses import arguments_key
from contextfold.messages import (
    NO_METADATA,
    Media,
    MediaKind,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
}
KINDS = {"user": "human", "assistant": "ai", "system": "system", "developer": "system", "tool": "tool"}
CHAT_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "developer", "tool": "tool"}
OPENAI_ROLE = "__openai_role__"  # where langchain-openai remembers that a system message is a developer message
REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Keys of ``additional_kwargs`` with thinking: words, and blocks of the same words with signatures (OpenRouter's)."""
SAID_BESIDE = ("refusal", "audio")
"""Keys of ``additional_kwargs`` where OpenAI's client puts what a model says in place of any content."""
CALLS = "tool_calls"
INVALID = "invalid_tool_calls"
LEGACY = "function_call"
"""The key of ``additional_kwargs`` with OpenAI's older call, which a ``FunctionMessage`` answers: neither has an id.
Beside a call of today it repeats that one, as Google's integration has it."""
TEXT_BLOCKS = frozenset({"text", "input_text", "output_text", "text-plain"})
REASONING_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
CALL_BLOCKS = {"tool_use": "input", "tool_call": "args", "function_call": "arguments", "custom_tool_call": "input"}
"""Content blocks that are calls, and where each keeps its arguments: Anthropic, LangChain's own, OpenAI Responses."""
CUSTOM, CUSTOM_OUTPUT = "custom_tool_call", "custom_tool_call_output"
NAMES = ("filename", "title", "name")
"""Keys that hold a file's name."""
WHERE = ("url", "file_data", "image_url", "file_url", "file_uri", "file_id", "id")
"""Keys of a media block that say where its data is; ``data:`` URLs hold it."""
MEDIA_BLOCKS: Mapping[str, MediaKind] = {
    "image": "image",
    "input_image": "image",
    "file": "document",
    "input_file": "document",
    "document": "document",
    "text-plain": "document",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "media": "document",
}


@dataclass(frozen=True, slots=True)
class CallSource:
    """Where a call stands in its message: its content block, and its entry in ``tool_calls`` or its like."""

    block: dict[str, Any] | None
    entry: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Keyword:
    """The source of a part that stands beside the content: a key of ``additional_kwargs``, or of the message."""

    name: str
    value: Any = field(default=None, repr=False)  # fingerprints tell these sources by their names
    """Of thinking."""
    is_bound: bool = field(default=False, repr=False)
    """Thinking whose signature stands in another key: they go together."""


class LangChain:
    """Messages of LangChain, as objects or dumps."""

    name: ClassVar[str] = "langchain"
    alternates: ClassVar[bool] = False
    rules: ClassVar[Rules] = Rules()

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        kind, fields = type_and_fields(wire, index)
        keywords = fields.get("additional_kwargs")
        keywords = keywords if isinstance(keywords, Mapping) else NO_METADATA
        role = _role(kind, fields, keywords, index)
        parts = _decode_parts(role, fields, keywords, index)
        if not parts:
            values.said_elsewhere(fields, "content", index)
        return Message(
            role=role,  # type: ignore[arg-type]
            parts=parts,
            id=values.optional_text(fields, "id"),
            name=values.optional_text(fields, "name") or _role_as_name(kind, fields),
            metadata=keywords,
            source=wire,
            source_format=self.name,
        )

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        sources = (message.source for message in messages if message.source_format == self.name)
        shape: Shape = next((found for found in map(shape_of, sources) if found is not None), "flat")
        return crossing.encode(messages, self.name, _rebuild, lambda run, before: _build(run, shape))

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        return message

    def join(self, first: Any, second: Any) -> Any | None:
        kind, fields = type_and_fields(first, None)
        other_kind, other = type_and_fields(second, None)
        if kind != other_kind or kind not in ("human", "system") or fields.get("name") != other.get("name"):
            return None
        return with_fields(first, {"content": values.joined_contents(fields.get("content"), other.get("content"))})


def _role(kind: str, fields: Mapping[str, Any], keywords: Mapping[str, Any], index: int | None) -> str:
    if kind == "chat":
        said = fields.get("role")
        if not isinstance(said, str) or not said:
            raise FormatError(f"unknown role {said!r}; allowed are {', '.join(CHAT_ROLES)} and names", index=index)
        # A ``ChatMessage`` may have any role, such as "critic": no user said that, and its role goes with it as a name.
        return CHAT_ROLES.get(said, "assistant")
    return "developer" if kind == "system" and keywords.get(OPENAI_ROLE) == "developer" else ROLES[kind]


def _role_as_name(kind: str, fields: Mapping[str, Any]) -> str | None:
    role = fields.get("role")
    return str(role) if kind == "chat" and role not in CHAT_ROLES else None


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decode_parts(
    role: str, fields: Mapping[str, Any], keywords: Mapping[str, Any], index: int | None
) -> tuple[Part, ...]:
    content = fields.get("content")
    if role == "tool":
        name = values.optional_text(fields, "name")
        if fields.get("tool_call_id") is None and name is not None:
            call_id = values.legacy_id(name)  # the older FunctionMessage has no id
        else:
            call_id = values.call_id(fields, "tool_call_id", "a tool message", index)
        local = COMPUTER if built_in.is_screenshot(keywords, content) else None
        inner: tuple[Text | Media | Opaque, ...] = values.decoded_content(content, _decode_inner_block, index)
        if local is not None and isinstance(content, str) and content:
            inner = built_in.shown(content)
        failed = fields.get("status") == "error"
        return (ToolResult(call_id, inner, name=name, is_error=failed, local=local, source=content),)
    if role != "assistant":
        return values.decoded_content(content, _decode_said_block, index)
    parts: list[Part] = [*_thoughts(keywords)]
    said = ((key, keywords[key]) for key in SAID_BESIDE if keywords.get(key))
    parts.extend(Opaque(key, values.readable(value), source=Keyword(key)) for key, value in said)
    entries = _call_entries(fields, keywords, index)
    decode = partial(_decode_block, answered=built_in.answered_in(content))
    parts.extend(_with_entries(values.decoded_content(content, decode, index), entries))
    legacy = keywords.get(LEGACY)
    if isinstance(legacy, Mapping) and (name := values.optional_text(legacy, "name")) and not _has_calls(fields, parts):
        arguments = _arguments(legacy.get("arguments"))
        parts.append(ToolCall(values.legacy_id(name), name, arguments, unnamed=True, source=Keyword(LEGACY)))
    parts.extend(Opaque(key, values.readable(entry), source=Keyword(key)) for key, entry in _unanswerable(fields))
    return tuple(parts)


def _thoughts(keywords: Mapping[str, Any]) -> list[Reasoning]:
    """Thinking beside the content; the words of it once, behind the first key that has them."""
    thought = {name: value for name in REASONING_KEYS if (value := keywords.get(name))}
    is_bound = any(Reasoning("", source=Keyword(name, value)).is_bound for name, value in thought.items())
    return [
        Reasoning(values.readable(value) if not place else "", source=Keyword(name, value, is_bound))
        for place, (name, value) in enumerate(thought.items())
    ]


def _has_calls(fields: Mapping[str, Any], parts: Sequence[Part]) -> bool:
    """Whether a message has calls of today: with ids, or listed without one."""
    return any(isinstance(part, ToolCall) for part in parts) or bool(_unanswerable(fields))


def _is_legacy(parts: Sequence[Part]) -> bool:
    return any(part.source == Keyword(LEGACY) for part in parts)


def _unanswerable(fields: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Calls whose id is None, which LangChain's types allow, and where they are listed: no result can answer them."""
    found = []
    for key in (CALLS, INVALID):
        entries = fields.get(key)
        listed = entries if isinstance(entries, list | tuple) else ()
        found += [(key, entry) for entry in listed if isinstance(entry, Mapping) and _is_without_id(key, entry)]
    return found


def _is_without_id(key: str, entry: Mapping[str, Any]) -> bool:
    return entry.get("id") is None and (key == INVALID or "id" in entry)


def _call_entries(fields: Mapping[str, Any], keywords: Mapping[str, Any], index: int | None) -> list[ToolCall]:
    listed: list[Any] = []
    for key in (CALLS, INVALID):
        entries = fields.get(key) or ()
        if not isinstance(entries, list | tuple):
            raise FormatError(f"{key!r} is {values.kind_of(entries)}, and must be a list", index=index)
        listed.extend(entries)
    unanswerable = {id(entry) for _, entry in _unanswerable(fields)}
    listed = [entry for entry in listed if id(entry) not in unanswerable]
    calls = [_decode_entry(entry, position, index) for position, entry in enumerate(listed)]
    if not calls and not unanswerable:  # dumps of before tool_calls existed
        calls = [_decode_raw(entry) for entry in keywords.get("tool_calls") or () if isinstance(entry, dict)]
    return calls


def _decode_entry(entry: Any, position: int, index: int | None) -> ToolCall:
    what = f"tool call {position}"
    entry = values.as_object(entry, index, what)
    call_id = values.call_id(entry, "id", what, index)
    name = values.optional_text(entry, "name") or ""
    return ToolCall(call_id, name, _arguments(entry.get("args")), source=CallSource(None, entry))


def _decode_raw(entry: dict[str, Any]) -> ToolCall:
    function = entry.get("function")
    body = function if isinstance(function, dict) else entry
    source = CallSource(None, None)
    return ToolCall(
        str(entry.get("id", "")), str(body.get("name", "")), _arguments(body.get("arguments")), source=source
    )


def _arguments(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else values.json_text(value)


def _with_entries(parts: Sequence[Part], entries: Sequence[ToolCall]) -> list[Part]:
    """Content and listed calls as one sequence: a call stands where its block is, else after the content."""
    by_id = {call.id: call for call in entries}
    seen: set[str] = set()
    found: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            listed = by_id.get(part.id)
            seen.add(part.id)
            if listed is not None:
                source = CallSource(part.source.block, listed.source.entry)
                # LangChain lists the text that a custom tool is called with as the one argument of a function
                arguments = part.arguments if part.custom else listed.arguments
                part = replace(part, name=listed.name, arguments=arguments, source=source)
        found.append(part)
    return [*found, *(call for call in entries if call.id not in seen)]


def _decode_block(block: dict[str, Any], index: int | None, answered: Container[Any] = ()) -> Part:
    held = built_in.held(block)  # a block of the provider's that LangChain has no type for
    kind = values.block_type(held)
    if kind in REASONING_BLOCKS:
        return Reasoning(values.readable({key: value for key, value in block.items() if key != "extras"}), source=block)
    if held.get("call_id") not in answered and (call := built_in.call(block, index)) is not None:
        return replace(call, source=CallSource(block, None))
    if kind in CALL_BLOCKS:
        call_id = held.get("call_id") or held.get("id")
        name = values.optional_text(held, "name") or ""
        if call_id is None and "id" in held:
            return values.opaque(block)  # a block of LangChain's own: no result can answer it
        if not isinstance(call_id, str) or not call_id:
            raise FormatError(f"a {kind} block has no id", index=index)
        arguments, custom = _arguments(held.get(CALL_BLOCKS[kind])), kind == CUSTOM
        return ToolCall(call_id, name, arguments, custom=custom, source=CallSource(block, None))
    return _decode_inner_block(block, index)


def _decode_said_block(block: dict[str, Any], index: int | None) -> Part:
    return built_in.output(block, index) or _decode_inner_block(block, index)


def _decode_inner_block(block: dict[str, Any], index: int | None) -> Text | Media | Opaque:
    kind = values.block_type(block)
    if kind in TEXT_BLOCKS and isinstance(block.get("text"), str):
        return Text(block["text"], source=block)
    held = built_in.held(block)
    if values.block_type(held) == CUSTOM_OUTPUT and isinstance(held.get("output"), str):
        return Text(held["output"], source=block)
    if kind == "json" and block.get("json") is not None:
        return Text(values.json_text(block["json"]), source=block)
    if kind == "image_url":
        image = block.get("image_url")
        image = {"url": image} if isinstance(image, str) else image
        if isinstance(image, dict) and isinstance(image.get("url"), str):
            detail = values.optional_text(image, "detail")
            return values.media_from_url("image", image["url"], detail=detail, source=block)
    if isinstance(kind, str) and kind in MEDIA_BLOCKS:
        return _decode_media(block, MEDIA_BLOCKS[kind])
    return values.opaque(block, values.block_type(held) or None)


def _decode_media(block: dict[str, Any], kind: MediaKind) -> Media | Opaque:
    # LangChain's blocks of today (``base64``, ``url``) and before (``source_type``), and those that providers' own
    # integrations take: Anthropic's ``source``, OpenAI's ``file``, ``input_...``, Google's ``media``.
    if isinstance(native := block.get(str(block["type"])), dict) and isinstance(native.get("source"), dict):
        from contextfold.formats.bedrock_converse import decode_media

        # Converse's own shape, which ChatBedrockConverse takes with a ``type`` beside it
        return decode_media(kind, native, block) or values.opaque(block)
    held = next((block[key] for key in ("source", "file", "input_audio") if isinstance(block.get(key), dict)), block)
    media_type = values.optional_text(held, "mime_type") or values.optional_text(held, "media_type")
    if media_type is None and kind == "audio":
        media_type = values.audio_type(values.optional_text(held, "format"))
    data, name = _data(held), _name(block, held)
    if data is not None and "text" not in (held.get("type"), held.get("source_type")):
        return Media(_kind_of(media_type, kind, block), media_type=media_type, data=data, name=name, source=block)
    where = next((held[key] for key in WHERE if isinstance(held.get(key), str)), None)
    if where is None:
        return values.opaque(block)
    found = values.media_from_url(kind, where, name=name, source=block)
    media_type = media_type or found.media_type
    return replace(found, kind=_kind_of(media_type, kind, block), media_type=media_type)


def _data(held: Mapping[str, Any]) -> str | None:
    """What a block carries, as base64. Google's integration takes bytes as well."""
    found = next((held[key] for key in ("base64", "data") if held.get(key)), None)
    if isinstance(found, bytes | bytearray):
        return base64.b64encode(found).decode("ascii")
    return found if isinstance(found, str) else None


def _name(block: Mapping[str, Any], held: Mapping[str, Any]) -> str | None:
    """The file's name, where LangChain's own blocks and those of integrations have it."""
    places = (held, block, *(block[key] for key in ("extras", "metadata") if isinstance(block.get(key), dict)))
    found = (values.optional_text(place, key) for place in places for key in NAMES)
    return next((name for name in found if name), None)


def _kind_of(media_type: str | None, kind: MediaKind, block: Mapping[str, Any]) -> MediaKind:
    """What a block of type ``media`` is, by its media type; every other block says so itself."""
    said = (media_type or "").partition("/")[0]
    return said if block.get("type") == "media" and said in ("image", "audio", "video") else kind  # type: ignore[return-value]


# ---- encoding what was edited ----------------------------------------------------------------------------------------


def _rebuild(message: Message) -> Any:
    _, fields = type_and_fields(message.source, None)
    content = fields.get("content")
    if message.role == "tool":
        result = message.tool_results[0]
        if result.local is not None:
            changes = {"content": built_in.rebuilt_screenshot(content, result.content)}
        else:
            changes = {"content": values.rebuilt_content(content, result.content, _rebuild_block)}
        if fields.get("tool_call_id") is not None:
            changes["tool_call_id"] = result.call_id
        return with_fields(message.source, changes)
    said = [part for part in message.parts if _is_in_content(part)]
    changes = {"content": values.rebuilt_content(content, said, _rebuild_block)}
    if message.role == "assistant":
        changes.update(_changed_calls(fields, message))
    return with_fields(message.source, changes)


def _is_in_content(part: Part) -> bool:
    if isinstance(part, ToolCall):
        return isinstance(part.source, CallSource) and part.source.block is not None
    return not isinstance(part.source, Keyword)


def _changed_calls(fields: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """The calls in all places where they stand beside the content, and the keywords without what is gone of them."""
    kept = {_original_id(call): call for call in message.tool_calls}
    beside = {part.source.name for part in message.parts if isinstance(part.source, Keyword)}
    changes: dict[str, Any] = {
        key: [
            _rebuild_entry(entry, kept[entry["id"]]) if entry.get("id") in kept else entry
            for entry in fields[key]
            if entry.get("id") in kept or (key in beside and entry.get("id") is None)
        ]
        for key in (CALLS, INVALID, "tool_call_chunks")
        if fields.get(key)
    }
    keywords = fields.get("additional_kwargs")
    if not keywords:
        return changes
    keywords = dict(keywords)
    if keywords.get("tool_calls"):
        keywords["tool_calls"] = [
            _rebuild_raw(raw, kept[raw["id"]]) if raw.get("id") in kept else raw
            for raw in keywords["tool_calls"]
            if raw.get("id") in kept or (CALLS in beside and raw.get("id") is None)
        ]
    if LEGACY in keywords and _is_legacy(_decode_parts("assistant", fields, keywords, None)):
        older = next((call for call in message.tool_calls if _is_legacy((call,))), None)
        if older is None:
            del keywords[LEGACY]
        elif older.edited:
            legacy = keywords[LEGACY]
            keywords[LEGACY] = {**legacy, "arguments": values.with_arguments(legacy.get("arguments"), older.arguments)}
    gone = {key for key in (*REASONING_KEYS, *SAID_BESIDE) if keywords.get(key) and key not in beside}
    return {**changes, "additional_kwargs": {key: value for key, value in keywords.items() if key not in gone}}


def _original_id(call: ToolCall) -> str:
    source = call.source if isinstance(call.source, CallSource) else CallSource(None, None)
    if source.entry is not None:
        return str(source.entry["id"])
    block = None if source.block is None else built_in.held(source.block)
    return str(block.get("call_id") or block["id"]) if block is not None else call.id


def _rebuild_entry(entry: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    if not call.edited:
        return entry
    args = entry.get("args")
    if call.custom and isinstance(args, dict) and len(args) == 1:
        return {**entry, "id": call.id, "args": dict.fromkeys(args, call.arguments)}
    return {**entry, "id": call.id, "args": values.with_arguments(args, call.arguments)}


def _rebuild_raw(raw: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    function = raw.get("function")
    if not call.edited or not isinstance(function, dict):
        return raw
    arguments = values.with_arguments(function.get("arguments"), call.arguments)
    return {**raw, "id": call.id, "function": {**function, "arguments": arguments}}


def _rebuild_block(part: Part) -> Any:
    if isinstance(part, ToolCall):
        return _rebuild_call(part)
    if part.source is not None and not values.is_touched(part):
        return part.source
    if isinstance(part, ToolResult):
        return built_in.rebuilt(part)
    if isinstance(part, Text) and isinstance(part.source, dict):
        return _rebuild_text(part, part.source)
    return _build_block(part)


def _rebuild_text(part: Text, block: dict[str, Any]) -> dict[str, Any]:
    if "text" in block:
        return {**block, "text": part.text}
    if "json" not in block:
        return built_in.changed(block, {"output": part.text})
    value = values.json_object(part.text)
    return {**block, "json": value} if value else _build_block(part)


def _rebuild_call(call: ToolCall) -> Any:
    block = call.source.block
    if not call.edited:
        return block
    held = built_in.held(block)
    key = CALL_BLOCKS.get(held["type"]) or arguments_key(held)
    id_key = "call_id" if held.get("call_id") else "id"
    changes = {id_key: call.id, key: values.with_arguments(held.get(key), call.arguments)}
    return built_in.changed(block, changes)


# ---- encoding what came from elsewhere -------------------------------------------------------------------------------


def _build(run: Sequence[Message], shape: Shape) -> list[Any]:
    built: list[Any] = []
    asked = {call.id for message in run for call in message.tool_calls}
    for message in run:
        results, said = crossing.results_and_rest(message)
        for result in results:
            is_of_block = result.local is not None and result.call_id not in asked  # its call stands as it came
            if is_of_block and (block := local_tools.built(result, result.text)) is not None:
                built.append(new_message(shape, "human", {"content": [block]}))
                continue
            fields = _result_fields(result)
            if result.name and result.call_id == values.legacy_id(result.name) and result.call_id not in asked:
                older = {"content": fields["content"], "name": result.name}  # of a call that stands as it came
                built.append(new_message(shape, "function", older))
            else:
                built.append(new_message(shape, "tool", fields))
        if said or message.tool_calls:
            built.append(new_message(shape, KINDS[message.role], _message_fields(message, said)))
    return built


def _message_fields(message: Message, said: Sequence[Text | Media]) -> dict[str, Any]:
    keywords = dict(message.metadata)
    if message.role == "developer":
        keywords[OPENAI_ROLE] = "developer"
    fields: dict[str, Any] = {"content": crossing.built_content(said, _build_block), "additional_kwargs": keywords}
    for key, value in (("id", message.id), ("name", message.name)):
        if value:
            fields[key] = value
    if message.role == "assistant":
        fields["tool_calls"] = [_build_call(call) for call in message.tool_calls]
    return fields


def _result_fields(result: ToolResult) -> dict[str, Any]:
    said = [part for part in result.content if not isinstance(part, Opaque)]
    status = "error" if result.is_error else "success"
    fields: dict[str, Any] = {
        "content": crossing.built_content(said, _build_block),
        "tool_call_id": result.call_id,
        "status": status,
    }
    if result.name:
        fields["name"] = result.name
    return fields


def _build_call(call: ToolCall) -> dict[str, Any]:
    arguments = values.arguments_object(call.arguments, custom=call.custom)
    return {"name": call.name, "args": arguments, "id": call.id, "type": "tool_call"}


def _build_block(part: Part) -> dict[str, Any]:
    if not isinstance(part, Media):
        return {"type": "text", "text": part.text if isinstance(part, Text | Opaque) else ""}
    if part.data is None and not values.is_link(part):
        return {"type": "text", "text": values.media_note(part).text}
    if part.kind == "image":
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": values.data_url(part), **detail}}
    held = {"url": part.url} if part.data is None else {"base64": part.data}
    kind = "file" if part.kind == "document" else part.kind
    mime_type = {"mime_type": part.media_type} if part.media_type else {}
    named = {"filename": part.name} if part.name and kind == "file" else {}
    return {"type": kind, **held, **mime_type, **named}
