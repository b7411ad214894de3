"""The reference: the whole history, whatever the window."""

from __future__ import annotations

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy


class Everything(Strategy):
    """Never compacts. What it costs with perfect caching is what other costs are relative to."""

    def view(self, messages: list[Message]) -> list[Message]:
        return messages
