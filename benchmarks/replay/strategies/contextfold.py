"""contextfold through its public contract: as shipped, with what the peers are given, and with a part taken out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.replay.chat import Message, content_text
from benchmarks.replay.strategies.base import KEEP, TRIGGER, Strategy
from benchmarks.replay.summarizer import asked_for
from contextfold import Compaction, CompactionResult, Compactor, Policy
from contextfold.policy import Budgets, Oversized, Toggle, ToolArguments, ToolOutputs


class ContextFold(Strategy):
    """With its own defaults and its built-in summarizer; subclasses say what is different."""

    packages = ("contextfold",)

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self.record: Compaction | None = None
        """The compaction in force."""
        self.result: CompactionResult | None = None
        """What the last call gave."""
        self._compactor = Compactor(window=window, **self.settings())

    def settings(self) -> dict[str, Any]:
        """Arguments of the compactor besides its window."""
        return {}

    def view(self, messages: list[Message]) -> list[Message]:
        self.result = self._compactor.compact(messages, previous=self.record)
        self.record = self.result.compaction
        return self.result.messages

    def fates(self) -> Sequence[str] | None:
        return None if self.result is None else [entry.fate for entry in self.result.ledger]


class Given(ContextFold):
    """With the thresholds and the summarizer that the peers get."""

    def settings(self) -> dict[str, Any]:
        return {"trigger": ("fraction", TRIGGER), "keep": ("fraction", KEEP), "summarizer": self.summarizer}


class Same(ContextFold):
    """With ``summarizer="same"``: the agent's own model writes the prose, asked behind the view of the last request."""

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._sent: list[Message] = []

    def settings(self) -> dict[str, Any]:
        return {"summarizer": "same"}

    def view(self, messages: list[Message]) -> list[Message]:
        return self._compactor.call(self._send, messages, self.record, ask=self._ask, on_result=self._take)

    def _send(self, view: list[Message]) -> list[Message]:
        self._sent = view
        return view

    def _take(self, result: CompactionResult) -> None:
        self.result, self.record = result, result.compaction

    def _ask(self, messages: list[Message], whole: bool, answer_tokens: int) -> str:
        *view, instruction = messages
        # The peers' prompts name no length, and this model writes as long as it is asked to.
        longest = asked_for(content_text(instruction["content"]))
        if not whole:  # the usual way: what leaves, as text, in a request of its own
            return self.summarizer(messages, longest=longest)
        return f"<summary>\n{self.summarizer.behind(view, instruction, self._sent, longest)}\n</summary>"


class WithoutEvidence(ContextFold):
    """Prose alone stands for what left the view."""

    def settings(self) -> dict[str, Any]:
        return {"policy": Policy(evidence=False)}


class WithoutTiers(ContextFold):
    """Messages are kept whole or leave: nothing is shortened."""

    def settings(self) -> dict[str, Any]:
        off = Toggle(enabled=False)
        return {
            "policy": Policy(
                tool_arguments=ToolArguments(enabled=False),
                tool_outputs=ToolOutputs(enabled=False),
                media=off,
                reasoning=off,
                oversized=Oversized(enabled=False),
            )
        }


class WithoutProse(ContextFold):
    """Evidence alone stands for what left the view."""

    def settings(self) -> dict[str, Any]:
        return {"policy": Policy(budgets=Budgets(prose=0))}
