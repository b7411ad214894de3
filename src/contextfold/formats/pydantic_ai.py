"""Messages of pydantic-ai: ``ModelRequest`` and ``ModelResponse`` objects with their parts.

A request may hold a system prompt, results of tools and words of the user at once, in parts of its own. It is one
message here all the same: ``system`` where it holds instructions, else ``user``. To keep one and summarize the
other, split requests before (``split``); the model's adapter joins them again.

What belongs here: reading and rebuilding. What does not: when to compact (``integrations.pydantic_ai``). The package is
imported only to build new objects; an object cannot exist unless it is loaded already.

Reference: https://ai.pydantic.dev/api/messages/
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from contextfold.errors import FormatError
from contextfold.formats import crossing, values
from contextfold.formats.base import Rules
from contextfold.messages import Media, MediaKind, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

RESULTS = frozenset({"tool-return", "retry-prompt"})
WORDS = frozenset({"user-prompt", "retry-feedback", "speech"})
URLS: dict[str, MediaKind] = {
    "image-url": "image",
    "audio-url": "audio",
    "video-url": "video",
    "document-url": "document",
}
CACHE_POINT = "cache-point"
BOUND_TO = ("anthropic", "bedrock")
"""Providers whose signed thinking is refused behind another prefix."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a message that no one sent: a clock would make two equal views differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Of:
    """Where a part of ours stands: in which part of theirs, and which item of its content. ``behind``: cache marks that
    follow it, which say nothing and go where it goes. ``value``: what a tool that the provider runs gave, as JSON.
    """

    part: Any
    item: Any = None
    behind: tuple[Any, ...] = ()
    value: Any = None

    def __repr__(self) -> str:
        return repr(self.part if self.item is None else self.item)


class PydanticAI:
    """Messages of pydantic-ai."""

    name: ClassVar[str] = "pydantic-ai"
    alternates: ClassVar[bool] = False
    rules: ClassVar[Rules] = Rules()

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        kind = kind_of(wire)
        if kind is None:
            raise FormatError(
                f"a message of pydantic-ai is a ModelRequest or a ModelResponse, and this is {values.kind_of(wire)}",
                index=index,
            )
        parts = [ours for part in wire.parts for ours in _decoded(part)]
        return Message(
            role=_role(wire) if kind == "request" else "assistant",
            parts=tuple(parts),
            metadata=wire.metadata or {},
            source=wire,
            source_format=self.name,
        )

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        return crossing.encode(messages, self.name, _rebuild, _build)

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        return message

    def join(self, first: Any, second: Any) -> Any | None:
        if kind_of(first) != "request" or kind_of(second) != "request":
            return None
        instructions = first.instructions or second.instructions
        return replace(second, parts=[*first.parts, *second.parts], instructions=instructions)


def kind_of(wire: Any) -> str | None:
    """``request`` or ``response``; None for what is no message of pydantic-ai."""
    if values.is_instance(wire, "pydantic_ai.messages", "ModelRequest"):
        return "request"
    return "response" if values.is_instance(wire, "pydantic_ai.messages", "ModelResponse") else None


def split(message: Any) -> list[Any]:
    """A request as requests of one kind each: instructions, results, and each prompt of the user; else the message
    itself. All that stands beside the parts is in each of them.
    """
    if kind_of(message) != "request" or len(message.parts) < 2:
        return [message]
    runs: list[list[Any]] = []
    kinds: list[str] = []
    for part in message.parts:
        kind = _kind(part)
        if kinds and kinds[-1] == kind != "words":
            runs[-1].append(part)
        else:
            runs.append([part])
            kinds.append(kind)
    return [message] if len(runs) == 1 else [replace(message, parts=run) for run in runs]


def _kind(part: Any) -> str:
    """What a part of a request is."""
    if part.part_kind == "retry-prompt" and part.tool_name is None:
        return "words"
    # Everything that is neither a result nor said by the user stays: the framework keeps its own state there, such as
    # which tools are available.
    return "results" if part.part_kind in RESULTS else "words" if part.part_kind in WORDS else "instructions"


def _role(request: Any) -> Any:
    return "system" if any(_kind(part) == "instructions" for part in request.parts) else "user"


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decoded(part: Any) -> Iterable[Part]:
    kind, source = part.part_kind, Of(part)
    if kind == "text" and not part.content and part.provider_details:
        # Gemini's signature of an answer may come in a text without a word, and has to go back
        return [Reasoning("", source={"type": "reasoning", "part": part})]
    if kind in ("system-prompt", "text"):
        return [Text(part.content, source=source)] if part.content else []
    if kind == "user-prompt":
        return _contents(part, part.content)
    if kind in RESULTS and _kind(part) == "results":
        return [_result(part)]
    if kind in ("retry-prompt", "retry-feedback"):
        return [Text(_said_back(part), source=source)]
    if kind == "thinking":
        return [Reasoning(part.content or "", source=_thought(part))]
    if kind == "tool-call":
        args = part.args
        text = args if isinstance(args, str) else values.json_text(args) if args else ""
        return [ToolCall(part.tool_call_id, part.tool_name, text, source=source)]
    if kind == "file":
        return [_binary(part.content, Of(part, part.content))]
    if kind == "speech":
        return [Opaque("speech", part.transcript or "", source=source)]
    given = _plain(getattr(part, "content", None))
    # OpenAI's compaction is ciphertext, which stands beside the content
    held = given if given is not None or kind != "compaction" else _plain(part.provider_details)
    return [Opaque(kind, _readable(part, kind, given), source=Of(part, value=held))]


def _contents(part: Any, content: Any) -> list[Text | Media | Opaque]:
    if isinstance(content, str):
        return [Text(content, source=Of(part))] if content else []
    items = list(content) if isinstance(content, list | tuple) else [content]
    found: list[Text | Media | Opaque] = []
    marks: list[Any] = []
    for item in reversed(items):  # so that the marks behind an item are known when it comes
        if getattr(item, "kind", None) == CACHE_POINT:
            marks.append(item)
            continue
        found.append(_item(Of(part, item, tuple(reversed(marks)))))
        marks = []
    return found[::-1]


def _item(source: Of) -> Text | Media | Opaque:
    item = source.item
    kind = getattr(item, "kind", None)
    if isinstance(item, str):
        return Text(item, source=source)
    if kind in ("text-content", "structured-content") and isinstance(item.content, str):
        return Text(item.content, source=source)
    if kind in URLS:
        return values.media_from_url(URLS[kind], item.url, detail=_detail(item), source=source)
    if kind == "binary":
        return _binary(item, source)
    if kind == "uploaded-file":
        # one whose media type no one said and no ending tells may be anything
        return Media(values.media_kind(item.media_type), url=item.file_id, source=source)
    return Opaque(kind or type(item).__name__, _text_of(item), source=source)


def _binary(content: Any, source: Of) -> Media:
    data = base64.b64encode(content.data).decode("ascii")
    kind, detail = values.media_kind(content.media_type), _detail(content)
    return Media(kind, media_type=content.media_type, data=data, detail=detail, source=source)


def _detail(item: Any) -> str | None:
    """How closely OpenAI's models are to look at an image."""
    return values.optional_text(item.vendor_metadata or {}, "detail")


def _result(part: Any) -> ToolResult:
    failed = part.part_kind == "retry-prompt" or part.outcome in ("failed", "denied", "retried")
    content: tuple[Text | Media | Opaque, ...]
    if part.part_kind == "retry-prompt":
        content = (Text(_said_back(part), source=Of(part)),)
    elif getattr(part, "tool_kind", None) is not None:  # its content has a shape that the framework reads back
        content = (Opaque(str(part.tool_kind), _text_of(part.content), source=Of(part)),)
    elif isinstance(part.content, str) or _is_multimodal(part.content):
        content = tuple(_contents(part, part.content))
    else:
        content = (Text(_text_of(part.content), source=Of(part)),) if part.content is not None else ()
    return ToolResult(part.tool_call_id, content, name=part.tool_name, is_error=failed, source=Of(part))


def _is_multimodal(content: Any) -> bool:
    items = content if isinstance(content, list | tuple) else [content]
    return any(getattr(item, "kind", None) in (*URLS, "binary", "uploaded-file") for item in items)


def _said_back(part: Any) -> str:
    """What the model is told of its own mistake."""
    return part.content if isinstance(part.content, str) else _text_of(part.content)


def _thought(part: Any) -> dict[str, Any]:
    # Signed thinking of some providers is bound to what stands before it, which the engine knows by Anthropic's words
    # for it.
    is_bound = any(name in (part.provider_name or "") for name in BOUND_TO)
    kind = "thinking" if is_bound else "reasoning"
    return {"type": kind, "signature": part.signature, "id": part.id, "part": part}


def _readable(part: Any, kind: str, given: Any) -> str:
    """What can be read of a part that is not interpreted: of a tool that the provider runs, its input or output."""
    said = [_text_of(value) for name in ("tool_name", "args") if (value := getattr(part, name, None))]
    return "\n".join([*said, given if isinstance(given, str) else values.readable(given, kind)]).rstrip("\n")


def _plain(value: Any) -> Any:
    """A value as JSON has it; objects of the framework, such as pictures, as mappings with their data in base64."""
    if not value or isinstance(value, str):
        return value
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=repr, bytes_mode="base64", inf_nan_mode="constants")


def _text_of(value: Any) -> str:
    """A value of a tool as the model gets it: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return values.json_text(value)
    except FormatError:
        from pydantic_core import to_json

        return to_json(value, fallback=repr, bytes_mode="base64", inf_nan_mode="constants").decode()


# ---- encoding what was edited ----------------------------------------------------------------------------------------


def _rebuild(message: Message) -> Any:
    """The message with what changed in it; every part that did not change is its own object."""
    theirs: list[tuple[Any, list[Part]]] = []
    for part in message.parts:
        origin = _origin(part)
        if origin is None:
            origin = theirs[-1][0] if theirs else message.source.parts[0]
            if origin is not None and origin.part_kind in RESULTS and not isinstance(part, ToolResult):
                origin = None  # a result that is shown as text, which no result can hold
        if theirs and theirs[-1][0] is origin:
            theirs[-1][1].append(part)
        else:
            theirs.append((origin, [part]))
    rebuilt = [new for origin, parts in theirs for new in (_rebuilt(origin, parts) if origin else [_prompt(parts)])]
    return replace(message.source, parts=rebuilt)


def _origin(part: Part) -> Any | None:
    source = part.source
    return source.part if isinstance(source, Of) else source.get("part") if isinstance(source, dict) else None


def _rebuilt(origin: Any, parts: Sequence[Part]) -> list[Any]:
    was = list(_decoded(origin))
    if len(was) == len(parts) and not any(map(values.is_touched, parts)):
        return [origin]
    kind = origin.part_kind
    if kind == "user-prompt":
        return [replace(origin, content=_content(origin.content, parts))]
    first = parts[0]
    if isinstance(first, ToolResult):
        changed = {"content": _content(origin.content, first.content), "tool_call_id": first.call_id}
        return [replace(_without_kind(origin) if isinstance(changed["content"], str) else origin, **changed)]
    if kind in ("text", "system-prompt", "retry-prompt", "retry-feedback"):
        return [replace(origin, content=crossing.joined_text(parts))]
    if isinstance(first, ToolCall):
        args = values.with_arguments(origin.args, first.arguments) if first.edited else origin.args
        return [replace(origin, args=args, tool_call_id=first.id)]
    return [origin if _origin(part) is origin and not values.is_touched(part) else _built(part) for part in parts]


def _without_kind(result: Any) -> Any:
    """A result whose content has no longer the shape that its kind declares: of no kind, or it could not be loaded."""
    if getattr(result, "tool_kind", None) is None:
        return result
    base = next(kind for kind in type(result).__mro__ if kind.__name__ == "ToolReturnPart")
    made = {one.name: getattr(result, one.name) for one in fields(base) if one.init and one.name != "tool_kind"}
    return base(**made)


def _content(original: Any, parts: Sequence[Part]) -> Any:
    """The content of a part that changed: still a text where it was one, or where nothing but text is left; so is a
    list that was read as one text.
    """
    sources = [part.source for part in parts]
    has_marks = any(isinstance(source, Of) and source.behind for source in sources)
    has_items = isinstance(original, list | tuple) and any(
        isinstance(one, Of) and one.item is not None for one in sources
    )
    if not has_marks and not has_items and all(isinstance(part, Text) for part in parts):
        return crossing.joined_text(parts)
    items: list[Any] = []
    for part in parts:
        source = part.source
        if isinstance(source, Of) and source.item is not None and not values.is_touched(part):
            items.append(source.item)
        elif isinstance(part, Text) and hasattr(getattr(source, "item", None), "metadata"):
            items.append(replace(source.item, content=part.text))
        else:
            items.append(_item_of(part))
        items.extend(source.behind if isinstance(source, Of) else ())
    return items


def _built(part: Part) -> Any:
    import pydantic_ai.messages as theirs

    return theirs.TextPart(part.text if isinstance(part, Text | Opaque) else "")


# ---- encoding what came from elsewhere -------------------------------------------------------------------------------


def _build(run: Sequence[Message], before: Sequence[Any]) -> list[Any]:
    import pydantic_ai.messages as theirs

    names = {call.id: call.name for message in run for call in message.tool_calls}
    for message in before:
        names.update({p.tool_call_id: p.tool_name for p in message.parts if p.part_kind == "tool-call"})
    built: list[Any] = []
    for message in run:
        results, said = crossing.results_and_rest(message)
        parts: list[Any] = [_build_result(theirs, result, names) for result in results]
        if message.role == "assistant":
            if parts:
                built.append(theirs.ModelRequest(parts=parts))
            answer: list[Any] = [theirs.TextPart(_words(part)) for part in said]
            answer += [theirs.ToolCallPart(call.name, call.arguments or None, call.id) for call in message.tool_calls]
            if answer:
                built.append(theirs.ModelResponse(parts=answer, timestamp=EPOCH))
            continue
        if said and message.role in ("system", "developer"):
            parts.append(theirs.SystemPromptPart("\n".join(map(_words, said)), timestamp=EPOCH))
        elif said:
            parts.append(_prompt(said))
        if parts:
            built.append(theirs.ModelRequest(parts=parts, metadata=dict(message.metadata) or None))
    return built


def _prompt(said: Sequence[Part]) -> Any:
    import pydantic_ai.messages as theirs

    return theirs.UserPromptPart(crossing.built_content(said, _item_of), timestamp=EPOCH)


def _build_result(theirs: Any, result: ToolResult, names: dict[str, str]) -> Any:
    content = [part for part in result.content if not isinstance(part, Opaque)]
    return theirs.ToolReturnPart(
        tool_name=result.name or names.get(result.call_id) or "tool",
        content=crossing.built_content(content, _item_of) if content else "",
        tool_call_id=result.call_id,
        timestamp=EPOCH,
        outcome="failed" if result.is_error else "success",
    )


def _words(part: Part) -> str:
    return part.text if isinstance(part, Text | Opaque) else values.media_note(part).text  # type: ignore[arg-type]


def _item_of(part: Part) -> Any:
    import pydantic_ai.messages as theirs

    if not isinstance(part, Media):
        return part.text if isinstance(part, Text | Opaque) else ""
    beside = {"detail": part.detail} if part.detail else None
    if part.data is not None:
        try:
            data = base64.b64decode(part.data, validate=True)
        except (binascii.Error, ValueError):
            return values.media_note(part).text
        media_type = part.media_type or "application/octet-stream"
        return theirs.BinaryContent(data=data, media_type=media_type, vendor_metadata=beside)
    if not values.is_link(part):
        return values.media_note(part).text
    kinds = {"image": theirs.ImageUrl, "audio": theirs.AudioUrl, "video": theirs.VideoUrl}
    return kinds.get(part.kind, theirs.DocumentUrl)(url=part.url or "", vendor_metadata=beside)
