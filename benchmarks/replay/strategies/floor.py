"""The floor any engine must beat: no summary, no peer, nothing clever.

Above the trigger the view becomes system message, first and newest user message, and the longest legal tail within
what is kept; then it only grows until the trigger is reached again.
"""

from __future__ import annotations

from benchmarks.replay import tokens
from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy, split_system


class PinnedTail(Strategy):
    """Pins and a tail."""

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._cut = 0
        self._sizes: list[int] = []

    def view(self, messages: list[Message]) -> list[Message]:
        with self.outside():
            self._sizes += [tokens.message_tokens(message) for message in messages[len(self._sizes) :]]
        if sum(self._sizes[n] for n in self._shown(messages)) > self.trigger:
            self._cut = self._new_cut(messages)
        return [messages[n] for n in self._shown(messages)]

    def _shown(self, messages: list[Message]) -> list[int]:
        people = [n for n, message in enumerate(messages) if message["role"] == "user"]
        pinned = [*range(len(split_system(messages)[0])), *sorted({*people[:1], *people[-1:]})]
        return [n for n in pinned if n < self._cut] + list(range(self._cut, len(messages)))

    def _new_cut(self, messages: list[Message]) -> int:
        start, spent = len(messages), 0
        for n in range(len(messages) - 1, -1, -1):
            spent += self._sizes[n]
            if spent > self.keep and start < len(messages):
                break
            if messages[n]["role"] != "tool":
                start = n
        return start
