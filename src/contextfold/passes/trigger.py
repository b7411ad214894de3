"""What a decision depends on, and whether there is anything to decide.

What belongs here: the situation as a value, the trigger, and the floor. What does not: what becomes of each message
(``plan``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contextfold.conversation import pins
from contextfold.conversation.groups import Grouping, group
from contextfold.messages import Message
from contextfold.policy import Limits, Policy
from contextfold.record.compaction import Compaction
from contextfold.tokens import TokenCounter

MANUAL = "manual"
"""The reason of a pass that a caller asked for."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a decision depends on. Sizes are tokens; ``sizes[i]`` is message ``i`` as the view has it now."""

    messages: Sequence[Message]
    sizes: Sequence[int]
    grouping: Grouping
    previous: Compaction | None
    view_tokens: int
    view_messages: int
    overhead: Mapping[str, int]
    """What is sent besides the messages: the system prompt and the tools, by name."""
    limits: Limits
    policy: Policy
    counter: TokenCounter
    summary_tokens: int = 0
    """What the summary message takes in the view now."""
    summary_is_free: bool = True
    """The summarizer asks nobody: then a pass that only shortens would save nothing and keep less."""
    forced: str | None = None
    """A reason to compact whatever the trigger says."""


def triggered(policy: Policy, limits: Limits, tokens: int, messages: int, forced: str | None = None) -> str | None:
    """What makes a view of this size compact, in words; None when nothing does."""
    if forced:
        return forced
    for clause in policy.clauses(limits.window):
        if clause.reached(tokens=tokens, messages=messages, window=limits.window):
            return str(clause)
    return f"max_tokens:{policy.max_tokens}" if policy.max_tokens is not None and tokens >= policy.max_tokens else None


def floor_of(
    messages: Sequence[Message], counter: TokenCounter, policy: Policy, overhead: Mapping[str, int]
) -> dict[str, int]:
    """Tokens that no compaction of this history can remove, item by item."""
    floor = {name: size for name, size in overhead.items() if size}
    for index, reason in sorted(pins.held(messages, group(messages), policy).items()):
        if reason == pins.PENDING and not messages[index].tool_calls:
            continue  # a result beside a pending call may be clipped
        floor[reason] = floor.get(reason, 0) + counter.message(messages[index])
    return floor
