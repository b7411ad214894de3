"""How contents of the Gemini API are written: as JSON in either spelling, or as objects of ``google-genai``.

The REST API writes ``functionCall``, its Python SDK ``function_call``, and accepts both; objects have attributes of the
second spelling. Reading is the same for all three, and what is written takes the shape that its neighbors have.

What belongs here: reading a field, writing a changed copy, making a new content. What does not: what any field means
(``gemini``). The SDK is never imported: an object's own class makes what stands beside it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from contextfold.errors import held
from contextfold.json_values import MOST_VALUES, check

Shape = Literal["camel", "snake", "object"]

_HUMP = re.compile(r"_([a-z])")
_JOINT = re.compile(r"([A-Z])")


def camel(name: str) -> str:
    """``function_call`` as the REST API writes it: ``functionCall``."""
    return _HUMP.sub(lambda found: found[1].upper(), name)


def snake(name: str) -> str:
    """``functionCall`` as the SDK writes it: ``function_call``."""
    return _JOINT.sub(lambda found: "_" + found[1].lower(), name)


def is_object(value: Any) -> bool:
    """Whether this is a model of the SDK, told by its class without loading the SDK."""
    return bool(_sdk_names(type(value)))


def is_content_object(value: Any) -> bool:
    """Whether this is the SDK's ``Content``, or of a class made from it."""
    return "Content" in _sdk_names(type(value))


_TYPES = "google.genai.types"
_PLAIN = frozenset({dict, str, list, int, float, bool, bytes, type(None)})


def _sdk_names(kind: type) -> frozenset[str]:
    """What a model and its bases are called in ``google.genai.types``; nothing for enumerations and others."""
    if kind in _PLAIN or not hasattr(kind, "model_fields"):
        return frozenset()
    return frozenset(base.__name__ for base in kind.__mro__ if base.__module__ == _TYPES)


def _content_class(value: Any) -> Any:
    # The SDK's own class: ``UserContent`` and the like cannot be made from fields.
    return next(base for base in type(value).__mro__ if base.__name__ == "Content" and base.__module__ == _TYPES)


def get(value: Any, name: str) -> Any:
    """A field by its name in snake case; None where there is none."""
    if isinstance(value, Mapping):
        found = value.get(name)
        return value.get(camel(name)) if found is None else found
    return held(value, name)


def filled(value: Any) -> dict[str, Any]:
    """The fields that are set, by their names in snake case."""
    if isinstance(value, Mapping):
        return {snake(str(name)): inner for name, inner in value.items() if inner is not None}
    names = type(value).model_fields
    return {name: inner for name in names if (inner := getattr(value, name, None)) is not None}


def plain(value: Any) -> Any:
    """A value as JSON has it: bytes as base64, objects as what is set in them. A loop: nothing limits the depth.

    Raises ``ValueError`` for one that contains itself or has more values than any message, ``TypeError`` for odd keys.
    """
    check(value)
    made: list[Any] = [None]
    waiting: list[tuple[Any, Any, Any]] = [(made, 0, value)]
    for _ in range(MOST_VALUES):
        if not waiting:
            return made[0]
        if len(waiting) > MOST_VALUES:
            break
        into, place, found = waiting.pop()
        if isinstance(found, bytes | bytearray):
            into[place] = base64.b64encode(found).decode("ascii")
        elif is_object(found) or isinstance(found, Mapping):
            fields = filled(found) if is_object(found) else found
            into[place] = dict.fromkeys(fields)
            waiting.extend((into[place], name, inner) for name, inner in fields.items())
        elif isinstance(found, list | tuple):
            into[place] = [None] * len(found)
            waiting.extend((into[place], number, inner) for number, inner in enumerate(found))
        else:
            into[place] = found.value if hasattr(found, "value") and hasattr(type(found), "__members__") else found
    raise ValueError(f"it holds more than {MOST_VALUES:,} values, or contains itself")


def encoded(data: Any) -> str | None:
    """Base64 text of media data, whichever way it is held."""
    if isinstance(data, bytes | bytearray):
        return base64.b64encode(data).decode("ascii")
    return data if isinstance(data, str) else None


def changed(value: Any, **fields: Any) -> Any:
    """A copy with other values for these fields (snake case); a field that is None is taken out."""
    if not isinstance(value, Mapping):
        return value.model_copy(update=fields)
    spelled = {_spelling(value, name): inner for name, inner in fields.items()}
    kept = {**value, **spelled}
    return {name: inner for name, inner in kept.items() if inner is not None or name not in spelled}


def with_parts(content: Any, parts: Sequence[Any], role: str | None = None) -> Any:
    """A content with other parts; of an object, those that are mappings become objects. None: its role stays."""
    fields: dict[str, Any] = {} if role is None else {"role": role}
    if not is_object(content):
        return changed(content, parts=list(parts), **fields)
    written_out = {"parts": [part for part in parts if isinstance(part, dict)]}
    made = iter(_content_class(content).model_validate(written_out).parts or ())
    return changed(content, parts=[next(made) if isinstance(part, dict) else part for part in parts], **fields)


def _spelling(value: Mapping[str, Any], name: str) -> str:
    """The spelling that a mapping has for a field, or would have."""
    if name in value or "_" not in name:
        return name
    humped = camel(name)
    return name if humped not in value and shape_of(value) == "snake" else humped


def shape_of(value: Any) -> Shape | None:
    """How a content is written; None where nothing in it tells the spelling."""
    if is_object(value):
        return "object"
    return _spelled(value, 4)


def _spelled(value: Any, depth: int) -> Shape | None:
    """The spelling of the first key that has one."""
    if isinstance(value, list) and depth:
        return next((found for inner in value if (found := _spelled(inner, depth - 1))), None)
    if is_object(value):
        return "snake"  # objects inside a mapping: the caller writes Python
    if not isinstance(value, Mapping) or not depth:
        return None
    for name, inner in value.items():
        if name in _KNOWN and "_" in name:
            return "snake"
        if name in _HUMPED:
            return "camel"
        # Arguments and answers of functions are the caller's own words.
        if name not in ("args", "response") and (found := _spelled(inner, depth - 1)):
            return found
    return None


_KNOWN = frozenset(
    {"function_call", "function_response", "inline_data", "file_data", "thought_signature", "executable_code"}
    | {"code_execution_result", "mime_type", "file_uri", "display_name", "video_metadata", "will_continue"}
)
_HUMPED = frozenset(camel(name) for name in _KNOWN)


def written(content: dict[str, Any], shape: Shape | None, sample: Any = None) -> Any:
    """A new content (or part), given in camel case, in the shape of the others; ``sample`` is one of them.

    Only Gemini's own keys are spelled: never what a function is called with or answers.
    """
    if shape == "object":
        return _content_class(sample).model_validate(content)
    return _snaked(content) if shape == "snake" else content


def _snaked(value: Any) -> Any:
    if isinstance(value, list):
        return [_snaked(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {snake(name): inner if name in ("args", "response") else _snaked(inner) for name, inner in value.items()}
