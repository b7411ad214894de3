"""The question that a pass answers: one history, one policy, and the state it starts from.

What belongs here: the value, the situation that a plan is made from, and what hooks are told before and after.
What does not: doing anything about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from contextfold.conversation import pins
from contextfold.conversation.history import History
from contextfold.messages import Message
from contextfold.observe import Observer
from contextfold.passes.trigger import Situation
from contextfold.policy import Limits, Policy
from contextfold.record.compaction import Compaction, summary_message
from contextfold.record.view import apply
from contextfold.summary import language
from contextfold.summary.summarizer import Summarizer


class Archive(Protocol):
    """Where originals go before they leave the view (``contextfold.archive`` has one for files)."""

    @property
    def address(self) -> str:
        """Where they will be, for people and tools; it stands in the summary."""
        ...

    def append(self, messages: Mapping[int, Message]) -> Any:
        """Save messages by their index in the history, those that are there already left out. May be ``async def``.

        Raises whatever it likes unless all of them are certain to be there.
        """
        ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pass that is about to begin, for a caller's hook to veto or to pin messages in. Sizes are tokens."""

    trigger: str
    tokens: int
    """The view as it is, with system prompt and tools."""
    window: int
    messages: Sequence[Any]
    """The whole history, as the caller has it."""
    previous: Compaction | None


@dataclass(frozen=True, slots=True)
class Made:
    """A pass that has succeeded, for a caller's hook to save what it wants before the record is in force."""

    compaction: Compaction
    evicted: tuple[Any, ...]
    """The caller's messages that left the view in this pass, in their order."""


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
    archive: Archive | None = None
    is_trial: bool = False
    """Whoever asks has another way if nothing can be made to fit, and says so himself if he has none."""

    @cached_property
    def language(self) -> str:
        """The code of the language that the summary is to be in (R14)."""
        if self.policy.summary.language:
            return self.policy.summary.language
        if self.previous is not None and self.previous.summary is not None:
            return self.previous.summary.language
        return language.dominant(message.text for message in self.history.messages if pins.is_person(message))

    def proposal(self, trigger: str) -> Proposal:
        """What a hook is told before the pass."""
        wire = tuple(self.history.wire)
        return Proposal(trigger, self.view_tokens, self.limits.window, wire, self.previous)

    def made(self, compaction: Compaction) -> Made:
        """What a hook is told after the pass."""
        before = self.previous.gone() if self.previous else set()
        return Made(compaction, tuple(self.history.wire[n] for n in sorted(compaction.gone() - before)))

    def originals(self, compaction: Compaction) -> dict[int, Message]:
        """What is not word for word in the view under a compaction, by index in the history."""
        hidden = compaction.gone() | {edit.index for edit in compaction.edits}
        return {index: self.history.messages[index] for index in sorted(hidden)}

    def situation(self) -> Situation:
        """What the plan is made from; sizes are as the present view has the messages."""
        sizes: Sequence[int] = self.history.sizes
        if self.previous is not None and self.previous.edits:
            counter = self.history.counter
            edited = {edit.index for edit in self.previous.edits}
            view = apply(self.history.messages, self.previous, self.history.format)
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
