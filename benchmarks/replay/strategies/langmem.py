"""langmem's ``summarize_messages``: a running summary beside the untouched history."""

from __future__ import annotations

import warnings
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableLambda
from langmem.short_term import RunningSummary, summarize_messages

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.strategies.bridge import Bridge
from benchmarks.replay.summarizer import OUTPUT_TOKENS


class Running(Strategy):
    """Summarizes at the trigger; it has no setting for how much stays."""

    packages = ("langmem", "langchain-core")

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._bridge = Bridge()
        self._running: RunningSummary | None = None
        self._model = RunnableLambda(self._answer)

    def _answer(self, prompt: Any) -> AIMessage:
        # The last message is the instruction and carries the summary so far: an extractive stub must read it first,
        # where the beginning of the conversation is.
        *messages, instruction = prompt
        return AIMessage(self.summarizer([instruction, *messages] if self._running else messages))

    def view(self, messages: list[Message]) -> list[Message]:
        with self.outside():
            history = self._bridge.incoming(messages)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = summarize_messages(
                history,
                running_summary=self._running,
                model=self._model,
                max_tokens=self.trigger,
                max_tokens_before_summary=self.trigger,
                max_summary_tokens=OUTPUT_TOKENS,
                token_counter=count_tokens_approximately,
            )
        self._running = result.running_summary
        with self.outside():
            return self._bridge.outgoing(result.messages)
