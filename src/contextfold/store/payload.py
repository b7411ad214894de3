"""Wire objects as JSON text, and back.

What belongs here: the two functions, and which format a session's messages are in. LangChain's message objects come
back as objects, contents of Google's SDK as JSON that it takes, bytes as bytes; everything else is plain JSON already.
What does not: decoding (``formats``).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from contextfold import formats
from contextfold.errors import InputError
from contextfold.formats import gemini_shapes, objects
from contextfold.formats.base import Format
from contextfold.formats.langchain_shapes import is_object
from contextfold.messages import well_formed

_OBJECT = "langchain_object"
"""The one key of the JSON object that stands for a message object."""

_BYTES = "contextfold_bytes"
"""The one key of the JSON object that stands for bytes, which boto3 wants media to be. What a message itself has under
this key stands in a list: what a model or a tool said must not turn into bytes, or into what cannot be read."""

_FINAL = frozenset({str, int, float, bool, type(None), bytes})
"""Types of values that are never changed in place."""


def dumps(wire: Any, index: int, *, takes_bytes: bool = False) -> str:
    """The JSON text of a wire object. Raises ``InputError`` that names the ``index`` of what is not plain data.

    ``takes_bytes``: its format has media as bytes. LangChain's objects may have some in any format, and in what a tool
    gives beside its answer (``artifact``).
    """
    if is_object(wire):
        takes_bytes = True
        from langchain_core.messages import message_to_dict

        wire = {_OBJECT: message_to_dict(wire)}
    elif gemini_shapes.is_content_object(wire):
        wire = gemini_shapes.plain(wire)
    else:
        wire = objects.plain(wire, index)
    other = _bytes_as_json if takes_bytes else None
    try:
        # ``NaN`` is no JSON: PostgreSQL and other readers refuse it, long after the message was taken.
        text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=other)
        if f'"{_BYTES}":' in text and (marked := _with_own_marked(wire)) is not wire:
            wire = marked
            text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=other)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"message {index} cannot be stored: {error}; give plain JSON data") from None
    if text.isascii() or _is_encodable(text):
        return text
    return json.dumps(wire, separators=(",", ":"), default=other)  # lone surrogates only exist escaped


def _bytes_as_json(value: Any) -> dict[str, str]:
    if isinstance(value, bytes | bytearray):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _json_as_bytes(value: dict[str, Any]) -> Any:
    held = value.get(_BYTES) if len(value) == 1 else None
    if isinstance(held, str):
        with suppress(ValueError):  # of a message itself, stored before such were told apart
            return base64.b64decode(held, validate=True)
    return _own_unmarked(value)


def _with_own_marked(wire: Any) -> Any:
    """A copy in which what the message itself has under our key is told from bytes; the same object if nothing is."""
    copy, found = copied(wire), False
    waiting = [copy]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            if value.keys() == {_BYTES}:
                value[_BYTES], found = [value[_BYTES]], True
        elif isinstance(value, list):
            waiting += value
    return copy if found else wire


def _own_unmarked(value: dict[str, Any]) -> dict[str, Any]:
    held = value.get(_BYTES) if len(value) == 1 else None
    return {_BYTES: held[0]} if isinstance(held, list) and len(held) == 1 else value


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def storable(text: str) -> str:
    """A text as every database takes it in a column: without NUL, which PostgreSQL refuses, and half characters.

    Messages and records are JSON, where both are escaped; this is for what stands beside them to be seen and searched.
    """
    return well_formed(text).replace("\0", "\N{REPLACEMENT CHARACTER}")


def loads(text: str) -> Any:
    """The wire object. Raises ``ValueError`` for what ``dumps`` did not write."""
    wire = json.loads(text, object_hook=_json_as_bytes if f'"{_BYTES}"' in text else None)
    if not isinstance(wire, dict):
        raise ValueError(f"a message is a JSON object, not {type(wire).__name__}")
    if wire.keys() == {_OBJECT}:
        from langchain_core.messages import messages_from_dict

        return messages_from_dict([wire[_OBJECT]])[0]
    return wire


def plain(wire: Any) -> Any:
    """The message for a file that others read: LangChain's objects as LangChain writes them, bytes as base64."""
    found = json.loads(dumps(wire, 0, takes_bytes=True), object_hook=_bytes_as_text)
    return found[_OBJECT] if found.keys() == {_OBJECT} else found


def _bytes_as_text(value: dict[str, Any]) -> Any:
    held = value.get(_BYTES) if len(value) == 1 else None
    return held if isinstance(held, str) else _own_unmarked(value)


def copied(wire: Any) -> Any:
    """A copy that its owner may change: of a mapping all through, of an object as deep as the object does it."""
    top: list[Any] = [wire]
    waiting: list[tuple[Any, Any]] = [(top, 0)]
    while waiting:  # by a call of itself it would fail where a message is nested more deeply than calls may be
        holder, place = waiting.pop()
        value = holder[place]
        if isinstance(value, Mapping):
            made = holder[place] = dict(value)
            waiting += [(made, key) for key, inner in made.items() if type(inner) not in _FINAL]
        elif isinstance(value, list):
            parts = holder[place] = list(value)
            waiting += [(parts, n) for n, inner in enumerate(parts) if type(inner) not in _FINAL]
        elif is_object(value) or gemini_shapes.is_object(value):
            holder[place] = value.model_copy(deep=True)
    return top[0]


def format_of(wire: Sequence[Any], known: str | None, is_marked: bool, named: str | None = None) -> tuple[Format, bool]:
    """The format of a session to which these messages come, and whether a mark or its owner said so.

    Messages that are nothing but roles and text read alike in several formats, so the first mark decides. Raises
    ``InputError`` where the session is in another format already.
    """
    found = formats.get(named) if named else formats.marked(wire)
    if found is None:
        return (formats.get(known), is_marked) if known else (formats.detect(wire), False)
    if known and is_marked and known != found.name:
        raise InputError(
            f"the session holds {known} messages, and these are {found.name}: translate them first, "
            f"for example with Compactor.compact(messages, to={known!r}), or use another thread id"
        )
    return found, True
