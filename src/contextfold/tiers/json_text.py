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
_SOME = re.compile(r'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^"]{1,1000}+){1,200}+', re.DOTALL)
_CLOSED_BY = {"[": "]", "{": "}"}
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
    """Whether brackets outside of strings are nested more than ``DEEPEST`` levels, or many and do not match; so is text
    with a string that has no end. Linear, never recurses, and looks at some of a long text at a time.
    """
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    expected: list[str] = []
    place = 0
    while place < len(text):
        some = _SOME.match(text, place)
        if some is None:
            return True
        place = some.end()
        for bracket in _NOT_BRACKETS.sub("", some.group()):
            if bracket in _CLOSED_BY:
                expected.append(_CLOSED_BY[bracket])
                if len(expected) > DEEPEST:
                    return True
            elif not expected or expected.pop() != bracket:
                return True
    return bool(expected)


def _object(pairs: list[tuple[str, Value]]) -> Object:
    return Object(tuple(pairs))


def _number(written: str) -> Number:
    """A function of Python's own, so that other threads may run while megabytes of numbers are read."""
    return Number(written)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_number, parse_constant=_number, strict=False
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
