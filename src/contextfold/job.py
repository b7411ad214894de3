"""The question that a pass answers: one history, one policy, and the state it starts from.

What belongs here: the value, and the situation that a plan is made from. What does not: doing anything about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from contextfold import pins
from contextfold.compaction import Compaction, apply, summary_message
from contextfold.history import History
from contextfold.observe import Observer
from contextfold.policy import Limits, Policy
from contextfold.situation import Situation
from contextfold.summary import language
from contextfold.summary.summarizer import Summarizer


@dataclass(frozen=True)
class Job:
    """One question to the engine: what is to be done about this history? Sizes are tokens."""

    history: History
    previous: Compaction | None
    view_tokens: int
    view_messages: int
    overhead: Mapping[str, int]
    limits: Limits
    policy: Policy
    summarizer: Summarizer | None
    """None: the built-in extractive one."""
    observer: Observer
    forced: str | None = None
    instructions: str = ""

    @cached_property
    def language(self) -> str:
        """The code of the language that the summary is to be in (R14)."""
        if self.policy.summary.language:
            return self.policy.summary.language
        if self.previous is not None and self.previous.summary is not None:
            return self.previous.summary.language
        return language.dominant(message.text for message in self.history.messages if pins.is_person(message))

    def situation(self) -> Situation:
        """What the plan is made from; sizes are as the present view has the messages."""
        sizes: Sequence[int] = self.history.sizes
        if self.previous is not None and self.previous.edits:
            counter = self.history.counter
            edited = {edit.index for edit in self.previous.edits}
            view = apply(self.history.messages, self.previous)
            now = {item.index: counter.message(item.message) for item in view if item.index in edited}
            sizes = [now.get(index, size) for index, size in enumerate(self.history.sizes)]
        return Situation(
            messages=self.history.messages,
            sizes=sizes,
            grouping=self.history.grouping,
            previous=self.previous,
            view_tokens=self.view_tokens,
            view_messages=self.view_messages,
            overhead=self.overhead,
            limits=self.limits,
            policy=self.policy,
            counter=self.history.counter,
            summary_tokens=self._summary_tokens(),
            summary_is_free=self.summarizer is None,
            forced=self.forced,
        )

    def _summary_tokens(self) -> int:
        if self.previous is None or self.previous.summary is None:
            return 0
        return self.history.counter.message(summary_message(self.previous.summary))
