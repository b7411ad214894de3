"""What the provider answers, before it is written in any wire format.

What belongs here: the values that scripts, faults and the default answer share. What does not: how a wire format
writes them (``wires``), and where they come from (``provider``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Finish = Literal["stop", "length", "tool_calls", "refusal", "content_filter", "context_window"]
"""Why an answer ended. ``context_window``: the window was full, ``model_context_window_exceeded`` on the wire."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of the tool ``name``. Without ``id`` it gets one that no other call of this server has."""

    name: str
    arguments: Mapping[str, Any]
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, tool calls, or both. Without ``finish`` it ends as such an answer usually does.

    ``reasons``: an item of reasoning stands before it, where the API is OpenAI Responses.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    reasons: bool = False

    @property
    def reason(self) -> Finish:
        """Why it ended: ``finish``, or what follows from its content."""
        if self.finish is not None:
            return self.finish
        return "tool_calls" if self.tool_calls else "stop"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. ``cached`` and ``written`` are parts of ``prompt``: read from and put into the cache."""

    prompt: int
    answer: int
    cached: int = 0
    written: int = 0
