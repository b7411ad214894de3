"""Answers as the SDKs of OpenAI, Anthropic and others give them: pydantic objects, as the mappings that they stand for.

Callers append ``response.choices[0].message`` to their list, or put ``response.content`` into a message, because the
SDKs take both in the next request. What belongs here: making mappings of them. What does not: objects that a format
knows by itself, those of LangChain and Google, which stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextfold.errors import FormatError, border

_KNOWN_TO_FORMATS = ("langchain_core.", "google.genai.")
_SAYING = ("content", "tool_calls", "function_call", "audio", "refusal", "reasoning", "reasoning_content", "parts")
"""What a message of an SDK has one of, if it has a role."""

_DEEPEST = 4
"""Lists inside of one another: blocks in the result of a tool in the content of a message, and one to spare."""

_JSON = frozenset({str, dict, int, float, bool, type(None)})


def plain(wire: Any, index: int | None = None) -> Any:
    """A message, with mappings in place of the objects of an SDK. What holds none is returned as it is.

    As the SDKs themselves put objects into a request, only what was set is in a mapping. Raises ``FormatError`` for an
    object that cannot be read, or that says what it says in another shape than theirs.
    """
    if isinstance(wire, dict):
        return _filled(wire, index)
    if not _is_of_sdk(wire):
        return wire
    entry = _dumped(wire, index)
    if not isinstance(entry, Mapping) or ("role" in entry and not any(key in entry for key in _SAYING)):
        raise FormatError(f"a {type(wire).__name__} has no content: give the message as its API takes it", index=index)
    return entry


def _filled(entry: dict[str, Any], index: int | None, depth: int = 0) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for key, value in entry.items():
        # a mapping has no objects inside: those of messages stand in lists
        if type(value) not in _JSON and (new := _inner(value, index, depth)) is not value:
            changed[key] = new
    return {**entry, **changed} if changed else entry


def _inner(value: Any, index: int | None, depth: int) -> Any:
    if not isinstance(value, list):
        return _dumped(value, index) if _is_of_sdk(value) else value
    if depth == _DEEPEST:
        return value
    found = [
        _filled(one, index, depth + 1) if isinstance(one, dict) else _inner(one, index, depth + 1) for one in value
    ]
    return value if all(new is old for new, old in zip(found, value, strict=True)) else found


def _dumped(value: Any, index: int | None) -> Any:
    with border("it cannot be read", lambda text: FormatError(text, index=index)):
        return value.model_dump(mode="json", exclude_unset=True, exclude=getattr(value, "__api_exclude__", None))


def _is_of_sdk(value: Any) -> bool:
    kind = type(value)
    if not callable(getattr(kind, "model_dump", None)):
        return False
    return not any(base.__module__.startswith(_KNOWN_TO_FORMATS) for base in kind.__mro__)
