"""The tier for tool-call arguments: long strings keep their head, long lists their ends, everything else stays.

What belongs here: shortening the arguments of one call. What does not: which tools and which calls are affected (the
policy's to say).

Arguments of a function stay valid JSON with the same fields in the same order; short values such as paths are written
as they were. Limits are in characters, because what the limit protects are short fields, not a budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from contextfold.messages import Part, ToolCall
from contextfold.tiers import json_text
from contextfold.tiers.json_text import Number, Object, Value
from contextfold.tiers.markers import cut
from contextfold.tiers.pieces import of_lines
from contextfold.tiers.tool_outputs_json import ends
from contextfold.tokens.estimate import estimate

LEAST = 64
"""Characters. Smaller limits count as this: a marker takes half of it."""

MOST_ITEMS = 8
"""Lists with more items are long if they also take more characters than the limit."""

_FIRST, _LAST = 4, 2
"""Items that a long list keeps at its ends."""
_TAIL_SHARE = 0.25
"""Of the room of a string of several lines (code, a document): how much its end gets. One line keeps its head only."""


class ToolArgumentsTier:
    """Shortens every string of the arguments to ``limit`` characters (``LEAST`` if that is more), marker included."""

    name: ClassVar[str] = "tool_arguments"

    def reduce(self, part: Part, limit: int) -> Part:
        if not isinstance(part, ToolCall) or len(part.arguments) <= max(limit, LEAST):
            return part
        arguments = _shortened_arguments(part, max(limit, LEAST))
        if arguments == part.arguments or estimate(arguments) >= estimate(part.arguments):
            return part
        return replace(part, arguments=arguments, edited=True)


def _shortened_arguments(part: ToolCall, limit: int) -> str:
    value = None if part.custom else json_text.parse(part.arguments)
    if value is not None:
        shorter = _shortened(value, limit)
        spaced = json_text.is_spaced(part.arguments)
        return part.arguments if shorter is value else json_text.write(shorter, spaced=spaced)
    if not part.custom and json_text.is_too_deep(part.arguments):
        return part.arguments
    return of_lines(part.arguments).render(limit)


def _shortened(value: Value, limit: int) -> Value:
    """The value with its long strings and lists shortened; the same object if there are none."""
    if isinstance(value, Object):
        fields = tuple((name, _shortened(inner, limit)) for name, inner in value.fields)
        unchanged = all(new[1] is old[1] for new, old in zip(fields, value.fields, strict=True))
        return value if unchanged else Object(fields)
    if isinstance(value, list):
        items = [_shortened(inner, limit) for inner in _without_middle(value, limit)]
        unchanged = len(items) == len(value) and all(new is old for new, old in zip(items, value, strict=True))
        return value if unchanged else items
    if isinstance(value, str) and not isinstance(value, Number):
        return _shortened_string(value, limit)
    return value


def _shortened_string(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    shorter = cut(text, limit, _TAIL_SHARE if "\n" in text else 0.0)
    return shorter if estimate(shorter) < estimate(text) else text


def _without_middle(values: list[Value], limit: int) -> list[Value]:
    if len(values) <= MOST_ITEMS or len(json_text.write(values)) <= limit:
        return values
    return ends(values, _FIRST, _LAST)
