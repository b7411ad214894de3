"""LangChain's ``SummarizationMiddleware``: its state is rewritten, and the system prompt travels outside it."""

from __future__ import annotations

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import BaseMessage, RemoveMessage

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy, split_system
from benchmarks.replay.strategies.bridge import Bridge, stub_model


class Summarization(Strategy):
    """``trim`` are the tokens to which the summarizer's input is cut; None: it is shown everything."""

    packages = ("langchain", "langchain-core")

    def __init__(self, window: int, *, trim: int | None) -> None:
        super().__init__(window)
        self._bridge = Bridge()
        self._state: list[BaseMessage] = []
        self._seen = 0
        self._middleware = SummarizationMiddleware(
            model=stub_model(window),
            trigger=("tokens", self.trigger),
            keep=("tokens", self.keep),
            trim_tokens_to_summarize=trim,
            summarizer=lambda messages: self.summarizer(messages),
        )

    def view(self, messages: list[Message]) -> list[Message]:
        with self.outside():
            system, _ = split_system(messages)
            fresh = messages[max(self._seen, len(system)) :]
            self._seen = len(messages)
            self._state += self._bridge.incoming(fresh)
        update = self._middleware.before_model({"messages": self._state}, None)
        with self.outside():
            if update:
                self._state = [message for message in update["messages"] if not isinstance(message, RemoveMessage)]
            return system + self._bridge.outgoing(self._state)
