"""The question that a pass answers: one history, one policy, and the record in force. Pure data.

What belongs here: the value, when a pass is due, the floor, and what hooks are told before a pass. What does not: what
becomes of each message (``decide``), and doing anything about it (``perform``).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any

from contextfold.cached import cached_property
from contextfold.conversation import pins
from contextfold.conversation.groups import Grouping, group
from contextfold.conversation.history import History
from contextfold.limits import Limits
from contextfold.messages import Message, Reasoning, ToolCall, ToolResult
from contextfold.policy import Policy
from contextfold.record.compaction import Compaction, summary_message
from contextfold.record.view import apply, ready
from contextfold.tokens import TokenCounter

if TYPE_CHECKING:
    from contextfold.summary.plans import Task

TALK = 0.05
"""Share of its messages that may have to do with tools in a dialogue: a reminder set, something looked up."""

SHORT_TURN = 400
"""Characters. Turns of people have some 150 at the median, answers of models some 900."""

MANUAL = "manual"
"""The reason of a pass that a caller asked for."""
BACKGROUND = "background"
"""That of one that is prepared for the trigger that is near."""
WITH_THINKING = "malformed_history: no_thinking"
"""The trigger of a record that shows all thinking again."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a pass is due: ``reason`` in words, as records and events tell it."""

    reason: str
    by_count: bool = False
    """Fewer messages are wanted, however few tokens they take."""


@dataclass(frozen=True)
class Question:
    """All that a decision depends on. Sizes are tokens."""

    history: History
    record: Compaction | None
    """The record in force."""
    view_tokens: int
    """The view as it is, with what is sent besides the messages."""
    view_messages: int
    overhead: Mapping[str, int]
    """What is sent besides the messages: the system prompt and the tools, by name."""
    limits: Limits
    policy: Policy
    summary_is_free: bool = True
    """The summarizer is the built-in one: then a pass that only shortens would save no money and keep less."""
    is_behind_view: bool = False
    """The model of the request is asked for the summary first, behind the view."""
    forced: str | None = None
    """A reason to compact whatever the trigger says."""
    instructions: str = ""
    """For the summarizer, for this pass alone."""

    @property
    def messages(self) -> Sequence[Message]:
        return self.history.messages

    @property
    def grouping(self) -> Grouping:
        return self.history.grouping

    @property
    def counter(self) -> TokenCounter:
        return self.history.counter

    @cached_property
    def out_of_view(self) -> tuple[set[int], set[tuple[int, int]]]:
        """Messages that are not in the view, and parts that have left the others."""
        return (self.record.gone(), self.record.removed()) if self.record else (set(), set())

    @cached_property
    def held(self) -> Mapping[int, str]:
        """Index -> reason of every message that no pass may touch."""
        return pins.held(self.messages, self.grouping, self.policy, *self.out_of_view)

    @property
    def alternates(self) -> bool:
        """Whether messages of one role in a row are joined in the view."""
        return self.history.format.alternates if self.policy.alternate is None else self.policy.alternate

    @cached_property
    def sizes(self) -> Sequence[int]:
        """``sizes[i]`` is message ``i`` as the view has it now: shortened by the record in force, and mended, with what
        stands in for the results of its calls.
        """
        is_edited = self.record is not None and (self.record.edits or self.record.thinking_from)
        if not is_edited and not self.grouping.faults:
            return self.history.sizes
        view = apply(self.messages, self.record)
        if self.grouping.faults:
            view = ready(view, self.history.format)
        now: dict[int, int] = {}
        index = 0
        for item in view:
            if item.index is None and not item.message.tool_results:
                continue  # the summary, or what was quoted again
            index = index if item.index is None else item.index
            own = not item.changed and item.index is not None
            now[index] = now.get(index, 0) + (self.history.sizes[index] if own else self.counter.message(item.message))
        return [now.get(n, size) for n, size in enumerate(self.history.sizes)]

    @cached_property
    def thinking_is_asked_for(self) -> bool:
        """Whether the provider has refused an earlier view for thinking that was left out. A pass that left it out
        again would be undone, and made once more, in every turn.
        """
        return self.record is not None and is_thinking_asked_for(self.record, self.messages, self.policy)

    @cached_property
    def thinking_from(self) -> int:
        """Where thinking begins that holds under the view of a new record: with what comes after this history."""
        is_free = self.thinking_is_asked_for or not self.policy.bound_thinking
        parts = (part for message in self.messages for part in message.parts)
        if is_free or not any(isinstance(part, Reasoning) and part.is_bound for part in parts):
            return self.record.thinking_from if self.record else 0
        return len(self.messages)

    @cached_property
    def sizes_after(self) -> Sequence[int]:
        """The same sizes under a new record, which leaves out the thinking that was made under this one's view."""
        start = self.record.thinking_from if self.record else 0
        sizes = list(self.sizes)
        for n in range(start, self.thinking_from):
            parts = (part for part in self.messages[n].parts if isinstance(part, Reasoning) and part.is_bound)
            sizes[n] = max(0, sizes[n] - sum(self.counter.part(part) for part in parts))
        return sizes

    @cached_property
    def summary_tokens(self) -> int:
        """What the summary message takes in the view now."""
        if self.record is None or self.record.summary is None:
            return 0
        return self.counter.message(summary_message(self.record.summary))

    @cached_property
    def is_talk(self) -> bool:
        """Whether two people talk here, or an assistant as people do: no tools, and short turns on both sides."""
        works = (n for n in self.messages if any(isinstance(part, ToolCall | ToolResult) for part in n.parts))
        if next(islice(works, int(TALK * len(self.messages)), None), None):
            return False
        # Who asks a model gets long answers full of names, and those are what is needed again.
        answers = [len(message.text) > SHORT_TURN for message in self.messages if message.role == "assistant"]
        return sum(answers) <= len(answers) / 2

    @cached_property
    def language(self) -> str:
        """The code of the language that the summary is to be in: the conversation's, unless the policy names one."""
        if self.policy.summary.language:
            return self.policy.summary.language
        if self.record is not None and self.record.summary is not None:
            return self.record.summary.language
        from contextfold.summary import language  # loads its patterns, which only a pass needs

        return language.dominant(pins.own_text(message) for message in self.messages if pins.is_person(message))

    @cached_property
    def newest_plan(self) -> tuple[int, ToolCall] | None:
        """The todo list or plan in force, and its place: looked for once, through all that was ever said."""
        from contextfold.summary.plans import newest_plan  # loads its patterns, too

        return newest_plan(self.messages, self.policy.pins.plans)

    @cached_property
    def tasks(self) -> list[Task]:
        """Where the tasks stand that an agent writes down one by one."""
        from contextfold.summary.plans import tasks_of  # loads its patterns, too

        return tasks_of(self.messages, self.policy.pins.plans)

    @property
    def trigger(self) -> Trigger | None:
        """Why a pass is due; None when none is."""
        return triggered(self.policy, self.limits, self.view_tokens, self.view_messages, self.forced)

    def evicted(self, made: Compaction) -> tuple[Any, ...]:
        """The caller's messages that a new record takes out of the view, in their order."""
        before = self.record.gone() if self.record else set()
        return tuple(self.history.wire[n] for n in sorted(made.gone() - before))

    def originals(self, made: Compaction) -> dict[int, Message]:
        """What is not word for word in the view under a record, by index in the history."""
        hidden = made.gone() | {edit.index for edit in made.edits}
        # bound thinking leaves by ``thinking_from``, without an edit of its own
        hidden |= {n for n, message in enumerate(self.messages[: made.thinking_from]) if message.is_bound}
        return {index: self.messages[index] for index in sorted(hidden)}


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
    """The record in force."""

    @classmethod
    def of(cls, question: Question, trigger: Trigger) -> Proposal:
        wire = tuple(question.history.wire)
        return cls(trigger.reason, question.view_tokens, question.limits.window, wire, question.record)


def is_thinking_asked_for(record: Compaction, messages: Sequence[Message], policy: Policy) -> bool:
    """Whether a record of these messages shows bound thinking because the provider has refused a view without."""
    if record.trigger == WITH_THINKING:
        return True
    # The passes behind that one leave it there, as no other does: what was learned once holds for all that follow.
    is_shown = policy.bound_thinking and not record.thinking_from
    return is_shown and any(message.is_bound for message in messages[: record.covers])


def triggered(policy: Policy, limits: Limits, tokens: int, messages: int, forced: str | None = None) -> Trigger | None:
    """What makes a view of ``tokens`` tokens and ``messages`` messages compact; None when nothing does."""
    if forced == BACKGROUND:
        near = nearing(policy, limits, tokens, messages)
        return Trigger(forced, by_count=near is not None and near.by_count)
    if forced:
        return Trigger(forced, by_count=forced == MANUAL)
    for clause in policy.clauses(limits.window, limits.overhead):
        if clause.reached(tokens=tokens, messages=messages, window=limits.window):
            return Trigger(str(clause), by_count=any(size.unit == "messages" for size in clause.sizes))
    return None


def nearing(policy: Policy, limits: Limits, tokens: int, messages: int) -> Trigger | None:
    """What is about to make such a view compact, from the policy's share of it on; None when nothing is."""
    share = policy.soft_share
    # The view is scaled up rather than the trigger down, so that each kind of trigger is asked the same question.
    return None if share is None else triggered(policy, limits, ceil(tokens / share), ceil(messages / share))


def floor_of(
    messages: Sequence[Message],
    counter: TokenCounter,
    policy: Policy,
    overhead: Mapping[str, int],
    grouping: Grouping | None = None,
    *,
    gone: Container[int] = (),
    removed: Container[tuple[int, int]] = (),
) -> dict[str, int]:
    """Tokens that no compaction of this history can remove, by item. ``grouping``: that of the messages, if known.
    ``gone`` and ``removed``: messages that are not in the view, and parts that are not.
    """
    floor = {name: size for name, size in overhead.items() if size}
    for index, reason in sorted(pins.held(messages, grouping or group(messages), policy, gone, removed).items()):
        if reason == pins.PENDING and not messages[index].tool_calls:
            continue  # a result beside a pending call may be clipped
        floor[reason] = floor.get(reason, 0) + counter.message(messages[index])
    return floor
