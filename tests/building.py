"""Short ways to write messages in tests."""

from __future__ import annotations

from contextfold.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult


def system(text: str = "You help.") -> Message:
    return Message("system", (Text(text),))


def user(text: str = "Please go on.") -> Message:
    return Message("user", (Text(text),))


def said(text: str = "Done.", *, id: str | None = None) -> Message:
    return Message("assistant", (Text(text),), id=id)


def calls(*ids: str, id: str | None = None, split: bool = False) -> Message:
    parts: tuple[Part, ...] = tuple(ToolCall(call_id, "run", '{"command": "ls"}') for call_id in ids)
    return Message("assistant", parts, id=id, split=split)


def result(call_id: str, text: str = "ok") -> Message:
    return Message("tool", (ToolResult(call_id, (Text(text),)),))


def results(*ids: str) -> Message:
    """Several results in one user message, as Anthropic has them."""
    return Message("user", tuple(ToolResult(call_id, (Text("ok"),)) for call_id in ids))


def thought(text: str = "hmm") -> Message:
    return Message("assistant", (Reasoning(text),), split=True)
