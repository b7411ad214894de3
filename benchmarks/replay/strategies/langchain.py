"""LangChain's ``SummarizationMiddleware``, or ours in its place: its state is rewritten, and the system prompt travels
outside it.
"""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import BaseMessage, RemoveMessage

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy, split_system
from benchmarks.replay.strategies.bridge import Bridge, stub_model


class Summarization(Strategy):
    """As an agent of LangChain runs it. ``settings``: more of its arguments."""

    packages: tuple[str, ...] = ("langchain", "langchain-core")
    middleware: type[Any] = SummarizationMiddleware

    def __init__(self, window: int, **settings: Any) -> None:
        super().__init__(window)
        self._bridge = Bridge()
        self._state: list[BaseMessage] = []
        self._seen = 0
        self._middleware = self.middleware(
            model=stub_model(window),
            trigger=("tokens", self.trigger),
            keep=("tokens", self.keep),
            summarizer=lambda messages: self.summarizer(messages),
            **settings,
        )

    def view(self, messages: list[Message]) -> list[Message]:
        system = self._told(messages)
        update = self._middleware.before_model({"messages": self._state}, None)
        with self.outside():
            if update:
                self._state = [message for message in update["messages"] if not isinstance(message, RemoveMessage)]
            return system + self._bridge.outgoing(self._state)

    def _told(self, messages: list[Message]) -> list[Message]:
        """The system message (as a list of none or one), after the agent's state was told what is new of the rest."""
        with self.outside():
            system, _ = split_system(messages)
            fresh = messages[max(self._seen, len(system)) :]
            self._seen = len(messages)
            self._state += self._bridge.incoming(fresh)
            return system
