"""Observation masking as in "The Complexity Trap" (arXiv 2508.21433): old tool outputs become one line each."""

from __future__ import annotations

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy

KEEP_TURNS = 10
PLACEHOLDER = "[Old tool output omitted: {lines} lines]"


class MaskOldTurns(Strategy):
    """Tool outputs older than the last ten turns are masked, whatever the window."""

    def view(self, messages: list[Message]) -> list[Message]:
        turns = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        border = turns[-KEEP_TURNS] if len(turns) >= KEEP_TURNS else 0
        return [_masked(m) if n < border and m["role"] == "tool" else m for n, m in enumerate(messages)]


def _masked(message: Message) -> Message:
    content = message["content"]
    lines = content.count("\n") + 1 if isinstance(content, str) else len(content)
    return {**message, "content": PLACEHOLDER.format(lines=lines)}
