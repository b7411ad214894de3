"""LangChain's ``trim_messages``: the newest messages within the trigger, starting on a human one."""

from __future__ import annotations

from langchain_core.messages import trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.strategies.bridge import Bridge


class TrimOldest(Strategy):
    """Cuts off the oldest messages, again at each turn."""

    packages = ("langchain-core",)

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._bridge = Bridge()

    def view(self, messages: list[Message]) -> list[Message]:
        with self.outside():
            history = self._bridge.incoming(messages)
        kept = trim_messages(
            history,
            max_tokens=self.trigger,
            token_counter=count_tokens_approximately,
            strategy="last",
            start_on="human",
            include_system=True,
        )
        with self.outside():
            return self._bridge.outgoing(kept)
