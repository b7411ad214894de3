"""Reading and writing wire values that look alike in several formats: JSON arguments, data URLs, message contents.

What belongs here: helpers that know no provider. What does not: role names, block types and key names of one format,
which live in the module of that format, and the passage from one format to another (``crossing``).
"""

from __future__ import annotations

import base64
import sys
import urllib.parse
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

from contextfold import json_values
from contextfold.errors import FormatError, border
from contextfold.formats import objects
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

P = TypeVar("P", bound=Part)
F = TypeVar("F")
V = TypeVar("V", Message, Part)

_SAYING = ("content", "parts", "text", "message")
"""Keys under which a message may hold what it says, in one shape or another."""

_CALLS_OF_FRAMEWORKS = frozenset({"toolRequest", "toolResponse", "toolCall", "toolResult", "tool-call", "tool-result"})
"""Types of goose's, pi's and the AI SDK's."""

_UNREADABLE_KEYS = frozenset(
    {"type", "id", "call_id", "tool_use_id", "signature", "encrypted_content", "encrypted_index", "data", "file_id"}
    | {"tool_call_id", "toolUseId", "media_type", "mime_type", "mimeType", "base64"}
)
"""Keys whose strings are identifiers, ciphertext or types: there is nothing to read in them."""


def guarded(decode: Callable[[F, Any, int | None], Message]) -> Callable[..., Message]:
    """A format's ``decode`` that raises kinds of ours only, and lets nothing in that cannot be written later.

    A wire object may hold anything that Python has: objects that raise when they are compared, numbers that have no
    decimal text, keys that are no strings. Each place that looks at one would have to expect that; so the border does.
    """

    @wraps(decode)
    def decoded(format: F, wire: Any, index: int | None = None) -> Message:
        with border("it cannot be read", partial(FormatError, index=index)):
            message = _plain(decode(format, objects.plain(wire, index), index))
            for part in _parts(message):
                if isinstance(_plain(part), Opaque | Reasoning):  # what others hold has been made text
                    json_values.check(part.source)
        return message

    return decoded


_TEXTS: Mapping[type, tuple[str, ...]] = {
    Text: ("text",),
    Media: ("kind",),
    ToolCall: ("id", "name", "arguments"),
    ToolResult: ("call_id",),
    Reasoning: ("text",),
    Opaque: ("label", "text"),
    Message: ("role",),
}
_TEXTS_OR_NONE: Mapping[type, tuple[str, ...]] = {
    Media: ("media_type", "data", "url", "detail"),
    ToolResult: ("name",),
    Message: ("id", "name"),
}


def _plain(value: V) -> V:
    """A message or part whose texts are text, whatever its wire object has in their place.

    Objects of a framework are checked by nothing: their fields hold what a caller put there. JSON has no other kinds
    of text, but Python has: a kind of ``str`` that raises when it is compared becomes the text that it holds.
    """
    kind = type(value)
    for name in _TEXTS[kind]:
        if type(found := getattr(value, name)) is not str:
            _set_text(value, name, found)
    for name in _TEXTS_OR_NONE.get(kind, ()):
        if (found := getattr(value, name)) is not None and type(found) is not str:
            _set_text(value, name, found)
    if isinstance(value, Message) and not isinstance(value.metadata, Mapping):
        object.__setattr__(value, "metadata", NO_METADATA)
    if isinstance(value, ToolResult) and type(value.is_error) is not bool:
        object.__setattr__(value, "is_error", bool(value.is_error))
    return value


def _set_text(value: Any, name: str, found: Any) -> None:
    if not isinstance(found, str):
        raise FormatError(f"{name!r} of a {type(value).__name__} is {kind_of(found)}, and must be a string")
    object.__setattr__(value, name, str.__str__(found))


def _parts(message: Message) -> Iterator[Part]:
    for part in message.parts:
        yield part
        if isinstance(part, ToolResult):
            yield from part.content


def as_object(wire: Any, index: int | None, wanted: str) -> dict[str, Any]:
    """The wire object as a dict, or a ``FormatError`` that says what it is instead."""
    if not isinstance(wire, dict):
        raise FormatError(f"{wanted} is a JSON object, and this is {kind_of(wire)}", index=index)
    return wire


def kind_of(value: Any) -> str:
    """What a value is, in words for an error text."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


def is_instance(value: Any, module: str, *names: str) -> bool:
    """Whether a value is of one of these classes, without loading their module: no object exists before it is."""
    loaded = sys.modules.get(module)
    # A class may be missing while another thread is still importing the module.
    return loaded is not None and isinstance(value, tuple(getattr(loaded, name, ()) for name in names))


def block_type(block: Mapping[str, Any]) -> str:
    """The type of a content block, empty where there is none (or where it is no string)."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def role_of(wire: Mapping[str, Any], allowed: Sequence[str], index: int | None) -> str:
    """The role, or a ``FormatError`` that names the roles there are."""
    role = wire.get("role")
    if role is None:
        raise FormatError(f"it has no role; allowed are {', '.join(allowed)}", index=index)
    if role not in allowed:
        raise FormatError(f"unknown role {role!r}; allowed are {', '.join(allowed)}", index=index)
    return str(role)


def required_text(wire: Mapping[str, Any], key: str, what: str, index: int | None) -> str:
    """A string that must be there, such as the name of a tool."""
    value = wire.get(key)
    if not isinstance(value, str) or not value:
        found = "is missing" if value is None else f"is {kind_of(value)}" if value != "" else "is empty"
        raise FormatError(f"{what}: {key!r} {found}, and must be a string", index=index)
    return value


def call_id(wire: Mapping[str, Any], key: str, what: str, index: int | None) -> str:
    """The id of a call. It may be empty: some servers give none, and clients answer such a call under that."""
    return "" if wire.get(key) == "" else required_text(wire, key, what, index)


def optional_text(wire: Mapping[str, Any], key: str) -> str | None:
    """A string where there is one, else None."""
    value = wire.get(key)
    return value if isinstance(value, str) else None


def media_kind(media_type: str | None, otherwise: MediaKind = "document") -> MediaKind:
    """What a medium is by its media type; ``otherwise`` where it has none."""
    if media_type is None:
        return otherwise
    kind = media_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"  # type: ignore[return-value]


def metadata_of(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    """The caller's own ``metadata`` of a message, empty where there is none."""
    metadata = wire.get("metadata")
    return metadata if isinstance(metadata, Mapping) else NO_METADATA


def decoded_content(
    content: Any, decode_block: Callable[[dict[str, Any], int | None], P], index: int | None, what: str = "content"
) -> tuple[P | Text, ...]:
    """A message's content (null, a string, or a list of blocks) as parts. Strings inside a list are text."""
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(content, source=content),)
    if isinstance(content, dict):
        return (decode_block(content, index),)
    if not isinstance(content, list):
        raise FormatError(f"{what} is a string or a list of blocks, and this is {kind_of(content)}", index=index)
    parts: list[P | Text] = []
    for position, block in enumerate(content):
        if isinstance(block, str):
            parts.append(Text(block, source=block))
        elif isinstance(block, dict):
            parts.append(decode_block(block, index))
        else:
            raise FormatError(f"block {position} of {what} is {kind_of(block)}, not an object", index=index)
    return tuple(parts)


def said(
    wire: Mapping[str, Any], decode_block: Callable[[dict[str, Any], int | None], P], index: int | None
) -> tuple[P | Text, ...]:
    """What a message says under ``content``, as parts; ``FormatError`` if it says it under another key."""
    parts = decoded_content(wire.get("content"), decode_block, index)
    if not parts:
        said_elsewhere(wire, "content", index)
    return parts


def message_of(
    wire: Mapping[str, Any],
    format: str,
    role: str,
    parts: tuple[Part, ...],
    *,
    name: str | None = None,
    split: bool = False,
) -> Message:
    """The message of a JSON object with these parts: with its ``id`` and ``metadata``, and itself as the source."""
    return Message(
        role=role,  # type: ignore[arg-type]
        parts=parts,
        id=optional_text(wire, "id"),
        name=name,
        split=split,
        metadata=metadata_of(wire),
        source=wire,
        source_format=format,
    )


def text_of(block: dict[str, Any], index: int | None) -> Text:
    """A text block, or a ``FormatError`` that says what is in the place of its text."""
    text = block.get("text")
    if not isinstance(text, str):
        raise FormatError(f"a text block needs a string in 'text', and this is {kind_of(text)}", index=index)
    return Text(text, source=block)


def said_elsewhere(wire: Any, where: str, index: int | None) -> None:
    """Raise ``FormatError`` if a message that has nothing in ``where`` says something under another key: frameworks
    have shapes of their own, and what is not read would be taken for an empty message, and left out.
    """
    found = [key for key in _SAYING if key != where and wire.get(key)] if isinstance(wire, Mapping) else ()
    if found:
        said = f"it has no {where!r}, and {found[0]!r} is not read: put what it says in {where!r}"
        raise FormatError(said, index=index)


def rebuilt_content(original: Any, parts: Sequence[P], encode_block: Callable[[P], Any]) -> Any:
    """The content of an edited message: still a string where it was one and all that is left is one text."""
    if isinstance(original, list) and parts:
        return [encode_block(part) for part in parts]
    if not parts:
        return None if original is None else ""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [encode_block(part) for part in parts]


def joined_contents(first: Any, second: Any) -> Any:
    """Two contents (a string or a list of blocks) as one: a string where both are."""
    if not first or not second:
        return first or second or ""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    blocks = ([{"type": "text", "text": one}] if isinstance(one, str) else one for one in (first, second))
    return [block for some in blocks for block in some]


def is_blank(part: Part) -> bool:
    """Whether a part is a text of white space alone."""
    return isinstance(part, Text) and not part.text.strip()


def legacy_id(name: str) -> str:
    """The id of a call that has none, of the time when a message made one call (``function_call``)."""
    return f"function:{name}"


def repeated(result: ToolResult, calls: Container[Any], name: str) -> dict[str, Any]:
    """A field of a call that its result has to repeat, where the call has it. ``calls``: the types of calls of the
    format; of another's, a field of the same name says something else.
    """
    call = result.called
    if not isinstance(call, Mapping) or call.get("type") not in calls or call.get(name) is None:
        return {}
    return {name: call[name]}


def is_touched(part: Part) -> bool:
    """Whether a part, or anything inside it, differs from its source."""
    if isinstance(part, ToolResult):
        return part.edited or any(is_touched(inner) for inner in part.content)
    return bool(getattr(part, "edited", False))


def json_text(value: Any) -> str:
    """JSON as text; characters outside ASCII stay readable."""
    try:
        return json_values.write(value)
    except (ValueError, TypeError) as error:
        raise FormatError(f"a value in it is not JSON: {error}") from None


def arguments_text(value: Any) -> str:
    """The arguments of a call as JSON text: an empty object where there are none."""
    return value if isinstance(value, str) else json_text({} if value is None else value)


def json_object(text: str) -> dict[str, Any] | None:
    """The object that this JSON text holds, or None if it holds none. Blank text is an empty object."""
    if not text.strip():
        return {}
    try:
        value = json_values.read(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def arguments_object(arguments: str, *, custom: bool = False) -> dict[str, Any]:
    """Call arguments where a format takes nothing but an object: anything else is wrapped as ``{"input": ...}``, and
    so is the input of a custom tool, whatever it looks like.
    """
    found = None if custom else json_object(arguments)
    return {"input": arguments} if found is None else found


def with_arguments(original: Any, arguments: str) -> Any:
    """Edited call arguments in the type they had on the wire: JSON text, or an object or a list of objects if that is
    what was there.
    """
    if isinstance(original, list):
        try:
            # what tells that some are left out is no object
            return [one for one in json_values.read(arguments) if isinstance(one, dict)]
        except ValueError:
            return original
    return arguments_object(arguments) if isinstance(original, dict) else arguments


def data_url(media: Media) -> str | None:
    """Where the media is: a ``data:`` URL if the data is here, else its URL or file id."""
    if media.data is None:
        return media.url
    return f"data:{media.media_type or 'application/octet-stream'};base64,{media.data}"


def split_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 data of a ``data:`` URL (RFC 2397), or None for any other URL.

    Data that the URL carries without base64, such as an inline SVG, is given as base64 too.
    """
    if not url.startswith("data:"):
        return None
    comma = url.find(",")
    if comma < 0:
        return None
    media_type, *parameters = url[5:comma].split(";")
    data = url[comma + 1 :]  # once: of megabytes, each copy holds the interpreter
    if "base64" not in (parameter.strip().lower() for parameter in parameters):
        data = base64.b64encode(urllib.parse.unquote_to_bytes(data)).decode("ascii")
    return media_type or "text/plain", data


def media_from_url(
    kind: str, url: str, *, detail: str | None = None, name: str | None = None, source: Any = None
) -> Media:
    """Media that a URL points to, or holds."""
    held = split_data_url(url)
    if held is None:
        return Media(kind, url=url, detail=detail, name=name, source=source)  # type: ignore[arg-type]
    return Media(kind, held[0], held[1], detail=detail, name=name, source=source)  # type: ignore[arg-type]


def input_audio(block: Mapping[str, Any]) -> Media | None:
    """The sound in a block of OpenAI's, ``{"type": "input_audio", "input_audio": {"data", "format"}}``, else None."""
    held = block.get("input_audio")
    if block_type(block) != "input_audio" or not isinstance(held, dict) or not isinstance(held.get("data"), str):
        return None
    return Media("audio", media_type=audio_type(optional_text(held, "format")), data=held["data"], source=block)


def audio_type(short: str | None) -> str | None:
    """The media type of a sound that OpenAI names by ``wav`` or ``mp3``."""
    return None if short is None else "audio/mpeg" if short == "mp3" else f"audio/{short}"


def is_link(media: Media) -> bool:
    """Whether the media is at a URL that any provider can fetch (a file id is known to one provider only)."""
    return media.data is None and media.url is not None and "://" in media.url


def media_note(media: Media) -> Text:
    """What stands for media that a format cannot carry."""
    from contextfold import quoting  # compiles patterns that most conversations never need

    where = media.url if media.url is not None else f"{len(media.data or ''):,} characters of base64"
    kind = f"{media.kind} {media.media_type}" if media.media_type else media.kind
    named = f"{quoting.word(media.name)}, " if media.name else ""
    return Text(f"[{kind}: {named}{where}]")


def _unreadable(entry: Mapping[str, Any]) -> frozenset[str]:
    # a document of plain text, such as a page that the provider fetched
    return _UNREADABLE_KEYS - {"data"} if entry.get("type") == "text" else _UNREADABLE_KEYS


def readable(value: Any, label: str = "") -> str:
    """Every string of a JSON value that a person could read, one to a line; identifiers and ciphertext left out.

    ``label``: that of the block it is. What a tool of the provider's gave is also told by its numbers.
    """
    gave = Opaque(label, source=value).is_output and not label.endswith("_list_tools")
    try:
        return "\n".join(text for text in json_values.strings(value, _unreadable, numbers=gave) if text.strip())
    except ValueError as error:
        raise FormatError(f"a block cannot be read: {error}") from None


def unknown_block(block: Mapping[str, Any], index: int | None) -> Opaque:
    """A block of a message that its format does not know: opaque, unless it is a call or a result of a framework's. As
    words these would be parted from each other, and no provider takes them.
    """
    kind = block_type(block)
    if kind in _CALLS_OF_FRAMEWORKS:
        raise FormatError(
            f"a {kind} block is none of this format: write calls and results as the API has them", index=index
        )
    return opaque(block)


def opaque(block: Mapping[str, Any], label: str | None = None) -> Opaque:
    """A block that no one here interprets."""
    label = label or block_type(block) or "unknown"
    return Opaque(label, readable(block, label), source=block)
