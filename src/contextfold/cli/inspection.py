"""Where the tokens of a conversation are, as values: by role, by tool, the largest messages, groups, what is broken.

What belongs here: counting. What does not: how it looks (``screen``) and what a compaction would do about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from contextfold import formats
from contextfold.conversation.groups import Grouping, group
from contextfold.errors import one_line
from contextfold.messages import Message, ToolCall, ToolResult, texts
from contextfold.tokens import TokenCounter
from contextfold.tokens.media import rule_of

if TYPE_CHECKING:
    from contextfold.transcripts import Conversation

LARGEST = 10
"""How many messages and groups are named."""
PREVIEW = 60
"""Characters of a message that are shown."""


@dataclass(frozen=True, slots=True)
class RoleShare:
    """What messages of one role weigh."""

    role: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolShare:
    """What one tool weighs: ``arguments`` of its calls and their ``results``, in tokens."""

    tool: str
    calls: int
    arguments: int
    results: int

    @property
    def tokens(self) -> int:
        return self.arguments + self.results


@dataclass(frozen=True, slots=True)
class Large:
    """A large message: its place in the history, and how it begins."""

    index: int
    role: str
    tokens: int
    preview: str


@dataclass(frozen=True, slots=True)
class LargeGroup:
    """Messages that stand or fall together, from ``first`` to ``last``."""

    first: int
    last: int
    messages: int
    tokens: int
    pending: bool


@dataclass(frozen=True, slots=True)
class Inspection:
    """All of it. ``sizes`` are tokens per message, in order; ``faults`` are sentences that name the message."""

    format: str
    kind: str
    messages: int
    tokens: int
    roles: tuple[RoleShare, ...]
    tools: tuple[ToolShare, ...]
    largest: tuple[Large, ...]
    groups: int
    largest_groups: tuple[LargeGroup, ...]
    faults: tuple[str, ...]
    sizes: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect_conversation(conversation: Conversation) -> Inspection:
    """Count everything once, with the built-in estimate."""
    messages = decoded(conversation)
    counter = counter_for(conversation)
    sizes = tuple(counter.message(message) for message in messages)
    grouping = group(messages)
    return Inspection(
        format=conversation.format,
        kind=conversation.kind,
        messages=len(messages),
        tokens=sum(sizes),
        roles=_by_role(messages, sizes),
        tools=_by_tool(messages, counter),
        largest=_largest(messages, sizes),
        groups=len(grouping.groups),
        largest_groups=_largest_groups(grouping, sizes),
        faults=tuple(str(fault) for fault in grouping.faults),
        sizes=sizes,
    )


def decoded(conversation: Conversation) -> list[Message]:
    """The messages of a conversation, whatever its format. Raises ``FormatError`` naming the index of a bad one."""
    return formats.decode(conversation.messages, formats.get(conversation.format))


def counter_for(conversation: Conversation) -> TokenCounter:
    """The built-in estimate, with the prices for media of the provider whose format it is."""
    return TokenCounter(media_rule=rule_of(conversation.format))


def first_words(messages: Sequence[Message]) -> str:
    """How the first thing that a person said begins."""
    return next((preview(message) for message in messages if message.is_user_turn), "")


def preview(message: Message) -> str:
    """The first words of a message on one line, or what it holds instead of words."""
    if line := one_line(" ".join(text for part in message.parts for text in texts(part)), PREVIEW):
        return line
    kinds = Counter(type(part).__name__.lower() for part in message.parts)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "empty"


def _role(message: Message) -> str:
    """Its role; ``tool`` too where the format has tool results said by the user."""
    return "tool" if message.tool_results else message.role


def _by_role(messages: Sequence[Message], sizes: Sequence[int]) -> tuple[RoleShare, ...]:
    counts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for message, size in zip(messages, sizes, strict=True):
        role = _role(message)
        counts[role] += 1
        tokens[role] += size
    shares = [RoleShare(role, counts[role], tokens[role]) for role in counts]
    return tuple(sorted(shares, key=lambda share: (-share.tokens, share.role)))


def _by_tool(messages: Sequence[Message], counter: TokenCounter) -> tuple[ToolShare, ...]:
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    calls: Counter[str] = Counter()
    arguments: Counter[str] = Counter()
    results: Counter[str] = Counter()
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            calls[part.name] += 1
            arguments[part.name] += counter.part(part)
        elif isinstance(part, ToolResult):
            results[names.get(part.call_id) or part.name or "unknown"] += counter.part(part)
    tools = [ToolShare(name, calls[name], arguments[name], results[name]) for name in {**calls, **results}]
    return tuple(sorted(tools, key=lambda share: (-share.tokens, share.tool)))


def _largest(messages: Sequence[Message], sizes: Sequence[int]) -> tuple[Large, ...]:
    order = sorted(range(len(messages)), key=lambda index: (-sizes[index], index))[:LARGEST]
    return tuple(Large(index, _role(messages[index]), sizes[index], preview(messages[index])) for index in order)


def _largest_groups(grouping: Grouping, sizes: Sequence[int]) -> tuple[LargeGroup, ...]:
    groups = [
        LargeGroup(one.first, one.last, len(one.indices), sum(sizes[index] for index in one.indices), one.pending)
        for one in grouping.groups
        if len(one.indices) > 1
    ]
    return tuple(sorted(groups, key=lambda large: (-large.tokens, large.first))[:LARGEST])
