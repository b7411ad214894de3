"""Conversations for the tests of sessions."""

from __future__ import annotations

from typing import Any

SYSTEM = {"role": "system", "content": "You look after the billing service."}


def turn(number: int, lines: int = 20) -> list[dict[str, Any]]:
    """A question, a call, its result and an answer, in the chat format; about 40 + 14 tokens for each line."""
    call = {
        "id": f"call-{number}",
        "type": "function",
        "function": {"name": "read_file", "arguments": f'{{"path": "/srv/app/module_{number}.py"}}'},
    }
    return [
        {"role": "user", "content": f"Look at module {number}; the ticket is BILL-{4000 + number}."},
        {"role": "assistant", "content": f"Reading module {number}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call-{number}", "content": source(number, lines)},
        {"role": "assistant", "content": f"Module {number} rounds half to even."},
    ]


def source(number: int, lines: int) -> str:
    return "".join(f"def step_{number}_{line}(value):\n    return value * {number + line}\n" for line in range(lines))


def turns(count: int, lines: int = 20) -> list[dict[str, Any]]:
    return [message for number in range(count) for message in turn(number, lines)]


def said(count: int, tokens: int, start: int = 0) -> list[dict[str, str]]:
    """Plain messages of about so many tokens each, by the estimate."""
    words = [f"w{n % 997}" for n in range(tokens // 2)]
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: " + " ".join(words)}
        for n in range(start, start + count)
    ]
