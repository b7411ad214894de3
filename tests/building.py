"""Short ways to write messages in tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from contextfold.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult


def conversation(steps: int, *, words: int = 120) -> list[dict[str, Any]]:
    """A tool-using agent's session of about ``steps`` x (``words`` + 40) tokens."""
    wire: list[dict[str, Any]] = [
        {"role": "system", "content": "You repair services."},
        {"role": "user", "content": "Find out why invoices are late. Never touch the table `ledger_2019`."},
    ]
    for step in range(steps):
        call = {"id": f"call_{step}", "type": "function"}
        call["function"] = {"name": "read_file", "arguments": json.dumps({"path": f"/srv/app/module_{step}.py"})}
        wire.append({"role": "assistant", "content": f"Step {step}: reading module_{step}.", "tool_calls": [call]})
        output = " ".join(f"value{step}x{n}" for n in range(words // 3))
        wire.append({"role": "tool", "tool_call_id": f"call_{step}", "content": output})
    return wire


def thinking_turns(*, once: bool) -> Iterator[list[Any]]:
    """What a Claude that reads 40 logs one after the other is sent behind each. ``once``: it thinks before its first
    call alone, as one with a budget does."""
    messages: list[Any] = [{"role": "user", "content": "Read all logs."}]
    for n in range(40):
        thought = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}] if n == 0 or not once else []
        call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"file": f"log_{n}.txt"}}
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"log_{n}.txt says {n * 7} " * 60}
        messages += [{"role": "assistant", "content": [*thought, call]}, {"role": "user", "content": [result]}]
        yield messages


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
