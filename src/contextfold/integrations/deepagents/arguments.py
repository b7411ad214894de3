"""Old arguments of ``write_file`` and ``edit_file``, truncated the way deepagents does.

What belongs here: which calls, how, and how far back. What does not: building the view (``views``).

How far is decided in steps and remembered, so what the model is sent only grows in between: once something is
truncated, the border moves on when another ``keep`` has piled up before it, or together with a summary, which rewrites
what is sent anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from contextfold.formats import values
from contextfold.integrations.langchain.constructor import whole
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.messages import Part, ToolCall
from contextfold.policy import Size, parse_size

TOOLS = frozenset({"write_file", "edit_file"})
HEAD = 20
"""Characters that stay of a truncated argument."""

DEFAULT_KEEP = ("messages", 20)
"""deepagents'."""

Sizes = Callable[[], Sequence[int]]
"""Gives the tokens of each message of a view. Called only where ``keep`` is in tokens, since a counter may be slow."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """When and how arguments are truncated. ``trigger``: None for never. ``max_length``: characters of one argument."""

    trigger: Size | None
    keep: Size
    max_length: int
    text: str

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None) -> Arguments:
        """From deepagents' ``truncate_args_settings``. Raises ``ValueError`` for a size that is none."""
        given = settings or {}
        trigger = given.get("trigger")
        return cls(
            trigger=None if trigger is None else parse_size(whole(trigger, ceil)),
            keep=parse_size(whole(given.get("keep", DEFAULT_KEEP), floor)),
            max_length=given.get("max_length", 2000),
            text=given.get("truncation_text", "...(argument truncated)"),
        )

    def is_due(self, *, tokens: int, messages: int, window: int | None) -> bool:
        """Whether a view of this size triggers. A fraction of an unknown window never does."""
        if self.trigger is None or (self.trigger.unit == "fraction" and window is None):
            return False
        if self.trigger.unit == "messages":
            return messages >= self.trigger.value
        return tokens >= max(1, self.trigger.tokens(window or 0) or 0)

    def border(self, messages: int, sizes: Sizes, window: int | None) -> int:
        """The position before which arguments may be truncated, in a view of this many messages: its newest message
        stands behind it, be it larger than all of ``keep``.
        """
        keep = self._keep(window)
        if keep.unit == "messages":
            return max(0, messages - int(keep.value))
        room = max(1, int(keep.value))
        position, counted = messages, sizes()
        while position > 0 and counted[position - 1] <= room:
            position -= 1
            room -= counted[position]
        return min(position, messages - 1)

    def is_a_step(self, old: int, border: int, sizes: Sizes, window: int | None) -> bool:
        """Whether the messages between an old border and a new one are as much as ``keep``."""
        keep = self._keep(window)
        return (border - old if keep.unit == "messages" else sum(sizes()[old:border])) >= keep.value

    def truncated(self, message: AnyMessage) -> AnyMessage:
        """The message with short arguments, in every place where it states them; the same object if they are."""
        if not isinstance(message, AIMessage):
            return message
        decoded = FORMAT.decode(message)
        changed = decoded.with_changed(tuple(self._part(part) for part in decoded.parts))
        if changed is decoded:
            return message
        shorter: AIMessage = FORMAT.encode([changed])[0]
        return shorter

    def _keep(self, window: int | None) -> Size:
        """``keep`` in messages or tokens."""
        if self.keep.unit != "fraction":
            return self.keep
        # A fraction of a window that is not known cannot be told.
        return parse_size(DEFAULT_KEEP) if window is None else Size("tokens", max(1, self.keep.tokens(window) or 0))

    def _part(self, part: Part) -> Part:
        if not isinstance(part, ToolCall) or part.name not in TOOLS:
            return part
        given = values.json_object(part.arguments) or {}
        shorter = {
            name: value[:HEAD] + self.text if isinstance(value, str) and len(value) > self.max_length else value
            for name, value in given.items()
        }
        return part if shorter == given else replace(part, arguments=values.json_text(shorter), edited=True)
