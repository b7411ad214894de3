"""Wire objects as JSON text, and back.

What belongs here: the two functions, and which format a session's messages are in. LangChain's messages and documents
come back as objects, contents of Google's SDK as JSON that it takes, bytes as bytes; everything else is plain JSON
already. What would come back as something else is refused.
What does not: decoding (``formats``).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from contextfold import formats
from contextfold.errors import InputError, StoreError, shown
from contextfold.formats import gemini_shapes, objects
from contextfold.formats.base import Format
from contextfold.formats.langchain_shapes import is_object
from contextfold.json_values import MOST_VALUES
from contextfold.messages import well_formed
from contextfold.ports import on_own_stack

_OBJECT = "langchain_object"
"""The one key of the JSON object that stands for a message object."""

_BYTES = "contextfold_bytes"
"""The one key of the JSON object that stands for bytes, which boto3 wants media to be."""

_INSIDE = "contextfold_object"
"""The one key of the JSON object that stands for a message or document of LangChain inside of a message."""

_MARKS = frozenset({_BYTES, _INSIDE})
"""What a message itself has under one of these keys stands in a list: what a model or a tool said must not turn into
bytes or an object, or into what cannot be read."""

_FINAL = frozenset({str, int, float, bool, type(None), bytes})
"""Types of values that are never changed in place."""

_SCALARS = frozenset({str, int, bool, type(None)})


def dumps(wire: Any, index: int, *, takes_bytes: bool = False) -> str:
    """The JSON text of a wire object. Raises ``InputError`` that names the ``index`` and the field of what cannot be
    stored so that it comes back as it is.

    ``takes_bytes``: its format has media as bytes. LangChain's objects may have some in any format, and in what a tool
    gives beside its answer (``artifact``).
    """
    of_langchain = is_object(wire)
    if of_langchain:
        wire = _fields(wire)
    elif gemini_shapes.is_content_object(wire):
        wire = gemini_shapes.plain(wire)
    else:
        wire = objects.plain(wire, index)
    try:
        wire = _as_json(wire, takes_bytes=takes_bytes or of_langchain, takes_objects=of_langchain)
        wire = {_OBJECT: {"type": wire["type"], "data": wire}} if of_langchain else wire
        text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"message {index} cannot be stored: {error}; give plain JSON data") from None
    if text.isascii() or _is_encodable(text):
        return text
    return json.dumps(wire, separators=(",", ":"))  # lone surrogates only exist escaped


def _fields(message: Any) -> dict[str, Any]:
    """The fields of an object of LangChain, as they are: its own dump makes mappings of the objects among them, and
    nothing tells any more what these were."""
    names = type(message).model_fields
    return {name: getattr(message, name) for name in names} | (message.model_extra or {})


def _as_json(wire: Any, *, takes_bytes: bool, takes_objects: bool) -> Any:
    """A copy of nothing but JSON. Raises ``ValueError`` that names the field of what would come back as something else.

    Tuples become lists, and kinds of a text, number or mapping that equal the plain one become that.
    """
    made: list[Any] = [None]
    waiting: list[tuple[Any, Any, Any, Any]] = [(made, 0, wire, None)]
    for _ in range(MOST_VALUES):  # a loop that ends also where a value contains itself
        if not waiting:
            return made[0]
        holder, place, found, path = waiting.pop()
        if isinstance(found, dict):
            inner = holder[place] = dict.fromkeys(found)
            is_marked = len(found) == 1 and not _MARKS.isdisjoint(found)
            for key, value in found.items():
                if not isinstance(key, str):
                    # JSON would make a text of it, and there may be another key of that text
                    raise ValueError(f"{_named(path)} has the key {shown(key)}, and keys are texts")
                if is_marked or type(value) not in _SCALARS:
                    waiting.append((inner, key, [value] if is_marked else value, (path, key)))
                else:
                    inner[key] = value
        elif isinstance(found, list) or (isinstance(found, tuple) and not hasattr(found, "_fields")):
            parts = holder[place] = list(found)
            waiting += [(parts, n, one, (path, n)) for n, one in enumerate(parts) if type(one) not in _SCALARS]
        elif isinstance(found, str | int | None) or (isinstance(found, float) and math.isfinite(found)):
            holder[place] = found
        elif takes_bytes and isinstance(found, bytes | bytearray):
            holder[place] = {_BYTES: base64.b64encode(found).decode("ascii")}
        elif takes_objects and (fields := _inside(found)) is not None:
            inner = holder[place] = {_INSIDE: None}
            waiting.append((inner, _INSIDE, fields, path))
        else:
            raise ValueError(f"{_named(path)} is {_no_json(found)}")
    raise ValueError(f"it holds more than {MOST_VALUES:,} values, or contains itself")


def _no_json(value: Any) -> str:
    # ``NaN``: PostgreSQL and other readers refuse it, long after the message was taken.
    return f"{value}, which JSON has not" if isinstance(value, float) else f"of the type {type(value).__name__}"


def _inside(value: Any) -> dict[str, Any] | None:
    """The fields of a message or document of LangChain, which tools give as their artifact."""
    if is_object(value):
        return {"type": value.type, "data": _fields(value)}
    kind = type(value)
    if (kind.__module__, kind.__name__) == ("langchain_core.documents.base", "Document"):
        return {"type": "Document", "data": _fields(value)}
    return None


def _named(path: Any) -> str:
    """The place of a value inside of a message, such as ``artifact.found[0]``."""
    keys = []
    while path is not None:
        path, key = path
        keys.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(keys)).removeprefix(".") or "it"


def _revived(value: dict[str, Any]) -> Any:
    """What a JSON object stands for."""
    if len(value) != 1:
        return value
    ((key, held),) = value.items()
    if key == _BYTES and isinstance(held, str):
        with suppress(ValueError):  # of a message itself, stored before such were told apart
            return base64.b64decode(held, validate=True)
    if key == _INSIDE and isinstance(held, dict) and held.keys() == {"type", "data"}:
        return _revived_object(held)
    return _own_unmarked(value)


def _revived_object(held: dict[str, Any]) -> Any:
    try:
        from langchain_core.documents import Document
        from langchain_core.messages import messages_from_dict
    except ImportError as error:
        raise StoreError(  # no ``ValueError``: nothing is damaged, and no backup would help
            "the session holds messages of LangChain, which are read by its own package: "
            "pip install 'contextfold[langchain]'"
        ) from error
    return Document(**held["data"]) if held["type"] == "Document" else messages_from_dict([held])[0]


def _own_unmarked(value: dict[str, Any]) -> dict[str, Any]:
    """What the message itself has under a mark."""
    ((key, held),) = value.items()
    return {key: held[0]} if key in _MARKS and isinstance(held, list) and len(held) == 1 else value


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
    """The wire object. Raises ``ValueError`` for what ``dumps`` did not write, and ``StoreError`` where it can only be
    read by a package that is not installed.
    """
    wire = _decoded(text, _revived if _is_marked(text) else None)
    if not isinstance(wire, dict):
        raise ValueError(f"a message is a JSON object, not {type(wire).__name__}")
    return _revived_object(wire[_OBJECT]) if wire.keys() == {_OBJECT} else wire


def _decoded(text: str, hook: Callable[[dict[str, Any]], Any] | None) -> Any:
    """The value of a JSON text. It was written where the stack had room for its levels: where it has not, a thread of
    its own reads it, or a sound message would be a damaged one to whoever is called from far below.
    """
    try:
        return json.loads(text, object_hook=hook)
    except RecursionError:
        return on_own_stack(partial(json.loads, text, object_hook=hook))


def _is_marked(text: str) -> bool:
    return any(f'"{mark}"' in text for mark in _MARKS)


def plain(wire: Any) -> Any:
    """The message for a file that others read: LangChain's objects as LangChain writes them, bytes as base64."""
    found = _decoded(dumps(wire, 0, takes_bytes=True), _as_others_read)
    return found[_OBJECT] if found.keys() == {_OBJECT} else found


def _as_others_read(value: dict[str, Any]) -> Any:
    if len(value) != 1:
        return value
    ((key, held),) = value.items()
    if key == _BYTES and isinstance(held, str):
        return held
    if key == _INSIDE and isinstance(held, dict):
        return held["data"]
    return _own_unmarked(value)


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
