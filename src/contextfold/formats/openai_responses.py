"""OpenAI Responses items: one assistant turn is spread over items of its own for reasoning, calls and messages.

Every item is one message; those of the assistant's side are marked ``split``, so that neighbors count as one turn.
Calls of the built-in tools that the caller runs (shell, computer, patch, its own tool search) are calls like any other,
with the name of their type; the type of their outputs belongs to them. What is not a message, reasoning, such a call or
its output is opaque and goes through untouched: what the provider runs is complete in itself, or in items that name
each other (``conversation.runs``). So is an output that names its tool and no call: the API takes it as it is.

Reference: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from contextfold.errors import FormatError
from contextfold.formats import crossing, local_tools, values
from contextfold.formats.base import Rules
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

ROLES = ("system", "developer", "user", "assistant")
TEXT_BLOCKS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
NAMED_CALLS = ("function_call", "custom_tool_call")
CUSTOM = ("custom_tool_call", "custom_tool_call_output")
NAMED_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_CALLS = (*NAMED_CALLS, *local_tools.OUTPUT_OF)
UNCALLED = "function_call_output"
"""An output of this type may name its tool in place of a call: no call waits for it."""
SETTINGS = ("configuration_update", "additional_tools")
"""Items that set effort or format, or bring tools, for later answers."""
REFERENCE = "item_reference"
"""An item that stands for one that the provider keeps: what it says is nowhere in the list."""

ARGUMENT_KEYS = ("arguments", "input", "action", "actions", "operation")
"""Where a call keeps what it was called with: functions, custom tools, shell and computer, patches."""


def is_reference(item: Any) -> bool:
    """Whether an item stands for one that the provider keeps. Its type may be null, or left out."""
    if not isinstance(item, Mapping):
        return False
    kind = item.get("type")
    return kind == REFERENCE or (kind is None and isinstance(item.get("id"), str) and item.keys() <= {"id", "type"})


class OpenAIResponses:
    """Items of the Responses API."""

    name: ClassVar[str] = "openai-responses"
    alternates: ClassVar[bool] = False
    rules: ClassVar[Rules] = Rules(results_have_kinds=True, async_calls=True, references=True)

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        item = values.as_object(wire, index, "a Responses item")
        role, parts = _decode_item(item, index)
        return values.message_of(item, self.name, role, parts, split=role == "assistant")

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        return crossing.encode(messages, self.name, _rebuild, _build)

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        if message.source_format != self.name or message.parts or "role" not in message.source:
            return message
        return message.with_parts(()) if message.source.get("content") is None else message

    def join(self, first: Any, second: Any) -> Any | None:
        if first.get("role") is None or first.get("role") != second.get("role"):
            return None
        blocks = [*_blocks(first), *_blocks(second)]
        return {**second, **first, "content": blocks}


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decode_item(item: dict[str, Any], index: int | None) -> tuple[str, tuple[Part, ...]]:
    kind = REFERENCE if is_reference(item) else item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        parts = values.said(item, _decode_block, index)
        return values.role_of(item, ROLES, index), parts
    if not isinstance(kind, str):
        raise FormatError(
            f"it has neither a 'type' nor a 'role'; messages have a role ({', '.join(ROLES)}), other items a type",
            index=index,
        )
    if kind == "reasoning":
        return "assistant", (_decode_reasoning(item),)
    if kind in NAMED_CALLS or local_tools.is_call(item):
        return "assistant", (_decode_call(item, kind, index),)
    if (kind in NAMED_OUTPUTS or kind in local_tools.CALL_OF) and local_tools.answered_id(item) is not None:
        return "tool", (_decode_output(item, kind, index),)
    if kind in NAMED_OUTPUTS and not (kind == UNCALLED and values.optional_text(item, "name")):
        raise FormatError(f"a {kind} item has no 'call_id': name the call that it answers", index=index)
    if kind in SETTINGS:
        # It holds for all that comes behind it: nothing that was said, and nothing to be summed up.
        return "developer", (Opaque(kind, source=item),)
    return "assistant", (values.opaque(item, "compaction" if "compaction" in kind else kind),)


def _decode_reasoning(item: dict[str, Any]) -> Reasoning:
    read = [values.readable(item.get(key)) for key in ("summary", "content")]
    return Reasoning("\n".join(text for text in read if text), source=item)


def _decode_call(item: dict[str, Any], kind: str, index: int | None) -> ToolCall:
    what = f"a {kind} item"
    call_id = values.call_id(item, "call_id", what, index)
    name = values.required_text(item, "name", what, index) if kind in NAMED_CALLS else kind.removesuffix("_call")
    value = item.get(arguments_key(item))
    if not isinstance(value, str | dict | None) and not (kind == local_tools.COMPUTER and isinstance(value, list)):
        raise FormatError(f"{what} has {values.kind_of(value)} for its arguments, not a string of JSON", index=index)
    arguments = value if isinstance(value, str) else values.json_text(value) if value else ""
    local = kind if kind in local_tools.OUTPUT_OF else None
    return ToolCall(call_id, name, arguments, custom=kind == "custom_tool_call", local=local, source=item)


def arguments_key(item: Mapping[str, Any]) -> str:
    """Where a call has its arguments."""
    # of two shapes of one call, the other's key may be there and hold nothing
    return next((key for key in ARGUMENT_KEYS if item.get(key) is not None), "arguments")


def _decode_output(item: dict[str, Any], kind: str, index: int | None) -> ToolResult:
    named = {"call_id": local_tools.answered_id(item)}
    call_id = values.call_id(named, "call_id", f"a {kind} item", index)
    local = local_tools.CALL_OF.get(kind)
    content: tuple[Any, ...] = (values.opaque(item),)
    if local != local_tools.SEARCH:
        content = values.decoded_content(item.get("output"), _decode_block, index, "output")
    failed = item.get("status") == "failed"
    return ToolResult(call_id, content, is_error=failed, custom=kind in CUSTOM, local=local, source=item)


def _decode_block(block: dict[str, Any], index: int | None) -> Text | Media | Opaque:
    kind = values.block_type(block)
    if kind in TEXT_BLOCKS and isinstance(block.get("text"), str):
        return Text(block["text"], source=block)
    if kind in ("input_image", "computer_screenshot"):
        where = block.get("image_url") or block.get("file_id")
        if isinstance(where, str):
            return values.media_from_url("image", where, detail=values.optional_text(block, "detail"), source=block)
    if kind == "input_file":
        where = block.get("file_data") or block.get("file_url") or block.get("file_id")
        if isinstance(where, str):
            name = values.optional_text(block, "filename")
            return values.media_from_url("document", where, name=name, source=block)
    return values.input_audio(block) or local_tools.decoded_chunk(block) or values.opaque(block)


# ---- encoding what was edited ----------------------------------------------------------------------------------------


def _rebuild(message: Message) -> Any:
    source: dict[str, Any] = message.source
    part = message.parts[0]
    if part.source is source and not values.is_touched(part):
        return source
    if isinstance(part, ToolCall):
        key = arguments_key(source)
        return {**source, "call_id": part.id, key: values.with_arguments(source.get(key), part.arguments)}
    if isinstance(part, ToolResult):
        output = values.rebuilt_content(source.get("output"), part.content, _rebuild_input)
        if part.local is not None:
            return local_tools.rebuilt(source, part, output)
        item = {**source, "call_id": part.call_id, "output": output}
        if part.custom != (source.get("type") in CUSTOM):
            item["type"] = _output_type(custom=part.custom)
        return item
    if "role" not in source:  # reasoning or an opaque item, replaced by words
        return {"type": "message", "role": message.role, "content": crossing.joined_text(message.parts)}
    build = _rebuild_output if message.role == "assistant" else _rebuild_input
    return {**source, "content": values.rebuilt_content(source.get("content"), message.parts, build)}


def _rebuild_input(part: Part) -> Any:
    return _rebuild_block(part, "input_text")


def _rebuild_output(part: Part) -> Any:
    return _rebuild_block(part, "output_text")


def _rebuild_block(part: Part, text_type: str) -> Any:
    if isinstance(part.source, dict) and not values.is_touched(part):
        return part.source
    if isinstance(part, Text) and isinstance(part.source, dict) and "text" in part.source:
        return {**part.source, "text": part.text}
    if isinstance(part, Media):
        return _build_media(part)
    return {"type": text_type, "text": part.text if isinstance(part, Text | Opaque) else ""}


# ---- encoding what came from elsewhere -------------------------------------------------------------------------------


def _build(run: Sequence[Message], before: Sequence[Any]) -> list[Any]:
    """A run of foreign messages, as one item per call, result and stretch of words."""
    open_calls: dict[str, list[bool]] = {}  # id -> of which kind its calls without a result are
    items: list[Any] = []
    for message in run:
        role = "user" if message.role == "tool" else message.role
        said: list[Text | Media] = []
        for result in message.tool_results:
            items.append(_build_output(result, custom=_answers_custom(result, open_calls.get(result.call_id, []))))
        for part in message.parts:
            if isinstance(part, Text | Media):
                said.append(part)
            elif isinstance(part, ToolCall):
                items.extend(_build_message(role, said))
                said = []
                items.append(_build_call(part))
                open_calls.setdefault(part.id, []).append(part.custom)
        items.extend(_build_message(role, said))
    return items


def _build_message(role: str, said: Sequence[Text | Media]) -> list[dict[str, Any]]:
    if not said:
        return []
    if role == "assistant":
        said = [part if isinstance(part, Text) else values.media_note(part) for part in said]
    return [{"type": "message", "role": role, "content": crossing.built_content(said, _rebuild_input)}]


def _build_call(call: ToolCall) -> dict[str, Any]:
    if call.custom:
        return {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": call.arguments}
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}


def _build_output(result: ToolResult, *, custom: bool) -> dict[str, Any]:
    program = values.repeated(result, _CALLS, "caller")
    if (local := local_tools.built(result, crossing.joined_text(result.content))) is not None:
        return {**local, **program}
    said = crossing.telling_failure(result)
    output = crossing.built_content(said, _rebuild_input)
    return {"type": _output_type(custom=custom), "call_id": result.call_id, "output": output, **program}


def _output_type(*, custom: bool) -> str:
    return "custom_tool_call_output" if custom else "function_call_output"


def _answers_custom(result: ToolResult, open_calls: list[bool]) -> bool:
    """Whether a result answers a custom tool. Most formats say so with the call only, which is taken off the list."""
    if not open_calls:
        return result.custom
    if result.custom in open_calls:
        open_calls.remove(result.custom)
        return result.custom
    return open_calls.pop()


def _build_media(media: Media) -> dict[str, Any]:
    if media.kind == "image" and (media.data is not None or values.is_link(media)):
        return {"type": "input_image", "image_url": values.data_url(media), "detail": media.detail or "auto"}
    if media.kind == "document" and media.data is not None:
        name = media.name or f"document.{(media.media_type or 'application/pdf').rpartition('/')[2]}"
        return {"type": "input_file", "filename": name, "file_data": values.data_url(media)}
    if media.kind == "document" and values.is_link(media):
        return {"type": "input_file", "file_url": media.url}
    return {"type": "input_text", "text": values.media_note(media).text}


def _blocks(item: Mapping[str, Any]) -> list[Any]:
    content = item.get("content")
    if isinstance(content, str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        return [{"type": kind, "text": content}] if content.strip() else []
    return list(content or ())
