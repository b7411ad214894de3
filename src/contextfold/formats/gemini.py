"""Gemini's ``generateContent``: contents of the roles user and model, made of parts, in JSON or as SDK objects.

The results of all calls of one content stand together in the next one, which the API wants directly behind it: as many
as there were calls. Calls need no id, and most have none: they are then known by the name of the function and their
place among the calls of that name in their content, and so are the results, which is how the API pairs them.

A thought signature belongs to the part that it stands in, whatever kind that is, and stays with it; a part that is
nothing but a signature is reasoning. The API has no system role inside the list; files put ``systemInstruction`` there
as a leading entry with the role ``system``. A system message in the middle becomes a user content in ``<system>`` tags.

Code that the API runs itself, and whatever comes next, is opaque, with readable text.

Reference: https://ai.google.dev/api/caching#Content
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from contextfold.errors import FormatError
from contextfold.formats import crossing, values
from contextfold.formats import gemini_shapes as shapes
from contextfold.formats.base import Rules
from contextfold.messages import (
    NO_METADATA,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

ROLES = {"user": "user", "model": "assistant", "function": "user", "tool": "user", "system": "system"}
"""``function`` and ``tool`` are older names for a content of results. Without a role it is the user's."""

ANSWER_KEYS = ("output", "result", "error", "content")
"""A response with one text under one of these keys is that text."""

SIGNATURES = frozenset({"thought_signature", "thoughtSignature"})


class Gemini:
    """Contents of the Gemini API."""

    name: ClassVar[str] = "gemini"
    alternates: ClassVar[bool] = True
    rules: ClassVar[Rules] = Rules(user_first=True)

    @values.guarded
    def decode(self, wire: Any, index: int | None = None) -> Message:
        if not isinstance(wire, dict) and not shapes.is_content_object(wire):
            raise FormatError(
                f"a Gemini content is a JSON object or a google.genai Content, and this is {values.kind_of(wire)}",
                index=index,
            )
        role = _role(wire, index)
        parts = shapes.get(wire, "parts")
        if parts is not None and not isinstance(parts, list | tuple):
            raise FormatError(f"'parts' is a list, and this is {values.kind_of(parts)}", index=index)
        if not parts:
            values.said_elsewhere(wire, "parts", index)
        return Message(
            role=role,  # type: ignore[arg-type]
            parts=_decoded_parts(parts or (), index),
            id=values.optional_text(wire, "id") if isinstance(wire, dict) else None,
            metadata=values.metadata_of(wire) if isinstance(wire, dict) else NO_METADATA,
            source=wire,
            source_format=self.name,
        )

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        sources = [message.source for message in messages if message.source_format == self.name]
        # New contents get the shape of the caller's own: JSON in camel case or snake case, or the SDK's objects.
        told = next(((found, source) for source in sources if (found := shapes.shape_of(source))), (None, None))

        def build(run: Sequence[Message], before: Sequence[Any]) -> list[Any]:
            return [shapes.written(entry, told[0], told[1]) for entry in _build(run, before)]

        return crossing.encode(messages, self.name, lambda message: _rebuild(message, told[0]), build)

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        if message.is_instruction:
            return crossing.instruction(message, self.name, leading=leading)
        if not any(_is_blank(part) for part in message.parts):
            return message if message.parts else message.with_parts(())
        return message.with_parts(tuple(part for part in message.parts if not _is_blank(part)))

    def join(self, first: Any, second: Any) -> Any | None:
        if _spoken_as(first) != _spoken_as(second) or "system" in (_spoken_as(first), _spoken_as(second)):
            return None
        parts = [*(shapes.get(first, "parts") or ()), *(shapes.get(second, "parts") or ())]
        parts.sort(key=lambda part: shapes.get(part, "function_response") is None)  # stable: results first
        return shapes.with_parts(first, parts)


def _role(wire: Any, index: int | None) -> str:
    role = shapes.get(wire, "role")
    if role is None and shapes.get(wire, "parts") is not None:
        return "user"
    if not isinstance(role, str) or role not in ROLES:
        problem = f"unknown role {role!r}" if role is not None else "it has neither a role nor parts"
        raise FormatError(f"{problem}; roles are user and model", index=index)
    return ROLES[role]


def _spoken_as(wire: Any) -> str:
    return ROLES.get(str(shapes.get(wire, "role") or "user"), "user")


def _is_blank(part: Part) -> bool:
    """A text of no characters, a thought's too if it carries no signature; one with white space is accepted."""
    if isinstance(part, Reasoning):
        return not part.text and shapes.get(part.source, "thought_signature") is None
    return isinstance(part, Text) and not part.text


# ---- decoding --------------------------------------------------------------------------------------------------------


class _Places:
    """Ids for calls (or results) of one content that have none."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def id_of(self, part: Any, name: str) -> str:
        """Its own id; else the name, and the place among those of the same name from the second one on."""
        given = shapes.get(part, "id")
        if isinstance(given, str) and given:
            return given
        self._times[name] += 1
        times = self._times[name]
        return name if times == 1 else f"{name}#{times}"


def _decoded_parts(parts: Sequence[Any], index: int | None) -> tuple[Part, ...]:
    called, answered = _Places(), _Places()
    return tuple(_decoded(part, place, called, answered, index) for place, part in enumerate(parts))


def _decoded(part: Any, place: int, called: _Places, answered: _Places, index: int | None) -> Part:
    if not isinstance(part, dict) and not shapes.is_object(part):
        raise FormatError(f"part {place} is {values.kind_of(part)}, not an object", index=index)
    if (call := shapes.get(part, "function_call")) is not None:
        name = _name_of(call, "functionCall", place, index)
        arguments = values.json_text(shapes.plain(shapes.get(call, "args") or {}))
        unnamed = not shapes.get(call, "id")
        return ToolCall(called.id_of(call, name), name, arguments, unnamed=unnamed, source=part)
    if (answer := shapes.get(part, "function_response")) is not None:
        name = _name_of(answer, "functionResponse", place, index)
        response = shapes.plain(shapes.get(answer, "response"))
        # The API has no flag for a call that failed: an answer that is nothing but an error is one.
        failed = isinstance(response, dict) and set(response) == {"error"}
        return ToolResult(
            answered.id_of(answer, name), _answered(answer, response), name=name, is_error=failed, source=part
        )
    return _decoded_words(part, place, index)


def _decoded_words(part: Any, place: int, index: int | None) -> Part:
    text = shapes.get(part, "text")
    if text is not None and not isinstance(text, str):
        raise FormatError(f"part {place} needs a string in 'text', and this is {values.kind_of(text)}", index=index)
    if shapes.get(part, "thought") is True:
        return Reasoning(text or "", source=part)
    media = _decoded_media(part)
    if media is not None:
        return media
    others = shapes.filled(part).keys() - {"text", "thought", "thought_signature"}
    if text is not None and not others:
        is_signature = not text and shapes.get(part, "thought_signature") is not None
        return Reasoning("", source=part) if is_signature else Text(text, source=part)
    if text is None and not others and shapes.get(part, "thought_signature") is not None:
        return Reasoning("", source=part)
    if text is not None and others <= _BESIDE_TEXT:
        return Text(text, source=part)
    return _opaque(part, others)


_BESIDE_TEXT = frozenset(
    {
        "part_metadata",
        "media_resolution",
        "media_processing",
        "video_metadata",
        "speech_metadata",
        "audio_transcription",
    }
)
"""Fields that say something about a part and hold nothing of it."""


def _name_of(held: Any, what: str, place: int, index: int | None) -> str:
    name = shapes.get(held, "name")
    if not isinstance(name, str) or not name:
        raise FormatError(f"the {what} in part {place} has no name", index=index)
    return name


def _answered(answer: Any, response: Any) -> tuple[Text | Media | Opaque, ...]:
    """What a function answered: the text that it is, or its JSON; and the media beside it."""
    if response is None or response == {}:
        said: tuple[Text | Media | Opaque, ...] = ()
    else:
        key = _text_key(response)
        said = (Text(values.json_text(response) if key is None else response[key], source=response),)
    beside = shapes.get(answer, "parts")
    for part in beside if isinstance(beside, list | tuple) else ():
        media = _decoded_media(part)
        said += (media if media is not None else _opaque(part, shapes.filled(part).keys()),)
    return said


def _text_key(response: Any) -> str | None:
    """The key of the one text that a response is, if it is one."""
    if not isinstance(response, dict) or len(response) != 1:
        return None
    key = next(iter(response))
    return key if key in ANSWER_KEYS and isinstance(response[key], str) else None


def _decoded_media(part: Any) -> Media | None:
    inline, file = shapes.get(part, "inline_data"), shapes.get(part, "file_data")
    held = inline if inline is not None else file
    if held is None:
        return None
    media_type = shapes.get(held, "mime_type")
    media_type = media_type if isinstance(media_type, str) and media_type else None
    data, url = shapes.encoded(shapes.get(held, "data")), shapes.get(held, "file_uri")
    name = shapes.get(held, "display_name")
    name = name if isinstance(name, str) and name else None
    if data is None and not isinstance(url, str):
        return None
    # A file without a media type is mostly the address of a video.
    kind = values.media_kind(media_type, "video" if inline is None and media_type is None else "document")
    return Media(kind, media_type=media_type, data=data, url=url if data is None else None, name=name, source=part)


def _opaque(part: Any, names: Any) -> Opaque:
    label = shapes.camel(sorted(set(names) - _BESIDE_TEXT)[0]) if set(names) - _BESIDE_TEXT else "unknown"
    # signatures are ciphertext, and say nothing
    readable = {name: shapes.plain(inner) for name, inner in shapes.filled(part).items() if name not in SIGNATURES}
    return Opaque(label, values.readable(readable, label), source=part)


# ---- encoding what was edited ----------------------------------------------------------------------------------------


def _rebuild(message: Message, shape: shapes.Shape | None) -> Any:
    own = shapes.shape_of(message.source) or shape
    parts = [_rebuilt(part, own) for part in message.parts]
    role = "model" if message.role == "assistant" else "system" if message.is_instruction else "user"
    same = _spoken_as(message.source) == ROLES[role]
    if not message.tool_results and shapes.get(message.source, "role") in ("function", "tool"):
        same = False  # what is left of it is words
    return shapes.with_parts(message.source, parts, None if same else role)


def _rebuilt(part: Part, shape: shapes.Shape | None) -> Any:
    source = part.source
    if not isinstance(source, dict) and not shapes.is_object(source):
        return _spelled(_built(part), shape)
    if not values.is_touched(part):
        return source
    if isinstance(part, ToolCall) and (call := shapes.get(source, "function_call")) is not None:
        arguments = values.arguments_object(part.arguments)
        return shapes.changed(source, function_call=shapes.changed(call, args=arguments))
    if isinstance(part, ToolResult) and (answer := shapes.get(source, "function_response")) is not None:
        return shapes.changed(source, function_response=_changed_answer(answer, part))
    if isinstance(part, Text) and isinstance(shapes.get(source, "text"), str):
        return shapes.changed(source, text=part.text)
    return _spelled(_built(part), shape)


def _changed_answer(answer: Any, result: ToolResult) -> Any:
    """A response with what is left of its text, in the shape that it had, and of the media beside it."""
    said = [part for part in result.content if isinstance(part, Text)]
    fields: dict[str, Any] = {}
    if any(part.edited or part.source is None for part in said) or not said:
        original = shapes.plain(shapes.get(answer, "response"))
        fields["response"] = _response(crossing.joined_text(said), original, is_error=result.is_error)
    if shapes.get(answer, "parts"):
        kept = [part.source for part in result.content if not isinstance(part, Text) and part.source is not None]
        fields["parts"] = kept or None
    return shapes.changed(answer, **fields)


def _response(text: str, original: Any, *, is_error: bool) -> dict[str, Any]:
    """The object that a text is inside ``response``: JSON stays JSON, a text keeps its key."""
    key = _text_key(original)
    if key is None and isinstance(original, dict) and text.lstrip().startswith("{"):
        held = values.json_object(text)
        if held is not None:
            return held
    return {key or ("error" if is_error else "output"): text}


def _spelled(part: dict[str, Any], shape: shapes.Shape | None) -> Any:
    return shapes.written(part, "snake") if shape == "snake" else part


# ---- encoding what came from elsewhere -------------------------------------------------------------------------------


def _build(run: Sequence[Message], before: Sequence[Any]) -> list[dict[str, Any]]:
    names = _called_before(before)

    def built(message: Message, leading: bool) -> dict[str, Any]:
        names.update((call.id, call.name) for call in message.tool_calls)
        return _built_content(message, names, leading=leading)

    return crossing.turns(run, all(_spoken_as(entry) == "system" for entry in before), built, Gemini().join)


def _called_before(before: Sequence[Any]) -> dict[str, str]:
    """The names of the functions of the last content with calls: it may wait for results."""
    for entry in reversed(before):
        parts = _decoded_parts(shapes.get(entry, "parts") or (), None)
        called = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        if called:
            return called
    return {}


def _built_content(message: Message, names: Mapping[str, str], *, leading: bool) -> dict[str, Any]:
    if message.is_instruction:
        text = crossing.in_words(message.parts)
        if leading:
            return {"role": "system", "parts": [{"text": text}]}
        return {"role": "user", "parts": [{"text": crossing.in_tags(text)}]}
    role = "model" if message.role == "assistant" else "user"
    return {"role": role, "parts": [_built(part, names) for part in crossing.results_first(message)]}


def _built(part: Part, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    if isinstance(part, ToolCall):
        arguments = values.arguments_object(part.arguments, custom=part.custom)
        return {"functionCall": {**_id(part.id, part.name), "name": part.name, "args": arguments}}
    if isinstance(part, ToolResult):
        return _built_result(part, part.name or (names or {}).get(part.call_id) or part.call_id)
    if isinstance(part, Media):
        return _built_media(part)
    return {"text": part.text if isinstance(part, Text | Opaque) else ""}


def _built_result(result: ToolResult, name: str) -> dict[str, Any]:
    texts = [part.text if isinstance(part, Text) else values.media_note(part).text
             for part in result.content if not isinstance(part, Opaque) and not _is_carried(part)]  # fmt: skip
    answer: dict[str, Any] = {**_id(result.call_id, name), "name": name}
    answer["response"] = {"error" if result.is_error else "output": "\n".join(texts)}
    media = [_built_media(part) for part in result.content if isinstance(part, Media) and _is_carried(part)]
    return {"functionResponse": {**answer, "parts": media} if media else answer}


def _id(call_id: str, name: str) -> dict[str, str]:
    """The id as a field, unless it only says the function and the place, as ``_Places`` makes them."""
    made = call_id == name or (call_id.startswith(f"{name}#") and call_id[len(name) + 1 :].isdigit())
    return {} if made else {"id": call_id}


def _is_carried(part: Part) -> bool:
    return isinstance(part, Media) and part.data is not None


_DEFAULT_TYPES: Mapping[str, str] = {
    "image": "image/png",
    "audio": "audio/mp3",
    "video": "video/mp4",
    "document": "application/pdf",
}


def _built_media(media: Media) -> dict[str, Any]:
    media_type = media.media_type or _DEFAULT_TYPES[media.kind]
    if media.data is not None:
        return {"inlineData": {"mimeType": media_type, "data": media.data}}
    if values.is_link(media):
        return {"fileData": {"mimeType": media_type, "fileUri": media.url}}
    return {"text": values.media_note(media).text}
