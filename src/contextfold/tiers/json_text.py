"""JSON as text: read so that what is kept can be written back exactly as it was.

What belongs here: reading and writing. What does not: choosing what to keep (``tool_arguments``,
``tool_outputs_json``).

Numbers keep their spelling (``1.10``, ``1e400``, integers of any length), objects keep the order of their fields and
even repeated names, and half surrogate pairs stay escaped, so that the text can always be encoded. Only the whitespace
between the tokens and the escaping of characters that need none may change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

DEEPEST = 64
"""Levels of nesting. Deeper texts are not read as JSON: every function over values here may recurse."""


class Number(str):
    """A number, or one of NaN, Infinity and -Infinity, as it was written."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Object:
    """An object: its fields in their order."""

    fields: tuple[tuple[str, Value], ...]


Value: TypeAlias = "str | Number | bool | list[Value] | Object | None"

_NOT_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\[\]{}"]++', re.DOTALL)
_EMPTY_PAIR = re.compile(r"\[\]|\{\}")
_HALF_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACED = re.compile(r'"\s*:\s')


def parse(text: str) -> Value | None:
    """The value of a text that is one JSON object, array or string; None if it is something else or too deep."""
    stripped = text.strip()
    if stripped[:1] + stripped[-1:] not in ("{}", "[]", '""') or is_too_deep(text):
        return None
    try:
        value: Value = _DECODER.decode(text)
    except ValueError:
        return None
    return value


def write(value: Value, *, spaced: bool = False) -> str:
    """The value as JSON on one line; ``spaced`` puts a blank after each comma and colon."""
    return "".join(_pieces(value, ", " if spaced else ",", ": " if spaced else ":"))


def write_string(text: str) -> str:
    """A JSON string. Only what must be escaped is."""
    return _HALF_SURROGATE.sub(_escaped, json.dumps(text, ensure_ascii=False))


def write_scalar(value: Value) -> str:
    """A value that is not a container."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return write_string(value)
    return "null" if value is None else ("true" if value is True else "false")


def is_spaced(text: str) -> bool:
    """Whether JSON text has a blank after its first colon."""
    return _SPACED.search(text) is not None


def is_too_deep(text: str) -> bool:
    """Whether brackets outside of strings are nested more than ``DEEPEST`` levels. Linear, and never recurses."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    brackets = _NOT_BRACKETS.sub("", text)
    for _ in range(DEEPEST):
        brackets, pairs = _EMPTY_PAIR.subn("", brackets)
        if not pairs:
            break
    return bool(brackets)


def _object(pairs: list[tuple[str, Value]]) -> Object:
    return Object(tuple(pairs))


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=Number, parse_int=Number, parse_constant=Number, strict=False
)


def _escaped(half: re.Match[str]) -> str:
    return f"\\u{ord(half.group()):04x}"


def _pieces(value: Value, comma: str, colon: str) -> Iterator[str]:
    if isinstance(value, Object):
        yield "{"
        for number, (name, inner) in enumerate(value.fields):
            yield f"{comma if number else ''}{write_string(name)}{colon}"
            yield from _pieces(inner, comma, colon)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, inner in enumerate(value):
            if number:
                yield comma
            yield from _pieces(inner, comma, colon)
        yield "]"
    else:
        yield write_scalar(value)
