"""Which parts to reduce, by which tier: the cheap reductions of old messages, and the last resort for the tail.

What belongs here: choosing edits and pricing them. What does not: the reductions themselves (``tiers``), and whether
they are enough (``decide``).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from contextfold.messages import Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from contextfold.policy import Policy
from contextfold.record.compaction import Edit, reduce
from contextfold.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Shortening:
    """Edits, the new size in tokens of each message that they touch, and tokens saved per tier."""

    edits: tuple[Edit, ...]
    sizes: dict[int, int]
    saved: dict[str, int]


NOTHING = Shortening((), {}, {})


def combined(parts: Sequence[Shortening]) -> Shortening:
    """Several shortenings of different messages as one."""
    saved: dict[str, int] = {}
    for part in parts:
        for tier, tokens in part.saved.items():
            saved[tier] = saved.get(tier, 0) + tokens
    sizes = {index: size for part in parts for index, size in part.sizes.items()}
    return Shortening(tuple(edit for part in parts for edit in part.edits), sizes, saved)


def without(found: Shortening, indices: Container[int]) -> Shortening:
    """The same, but for these messages: what leaves whole need not be shortened first."""
    edits = tuple(edit for edit in found.edits if edit.index not in indices)
    sizes = {n: size for n, size in found.sizes.items() if n not in indices}
    return Shortening(edits, sizes, found.saved if edits else {})


def shorten_old(
    messages: Sequence[Message],
    indices: Sequence[int],
    *,
    policy: Policy,
    counter: TokenCounter,
    wanted: int,
) -> Shortening:
    """Reduce old messages, cheapest tier first, until ``wanted`` tokens are saved or nothing is left to reduce.

    A tier is applied to all the messages it fits before the next one is tried, oldest first, in one batch.
    """
    names = {call.id: call.name for index in indices for call in messages[index].tool_calls}
    edits: dict[int, list[Edit]] = {}
    sizes: dict[int, int] = {}
    saved: dict[str, int] = {}
    for tier in _enabled(policy):
        for index in indices:
            if sum(saved.values()) >= wanted:
                break
            found = list(_edits_of(index, messages[index], tier, policy, names))
            if not found:
                continue
            together = [*edits.get(index, ()), *found]
            before = sizes.get(index)
            before = counter.message(messages[index]) if before is None else before
            after = counter.message(reduce(messages[index], together))
            # the marker of a short part may take more than the part
            if after < before:
                edits[index], sizes[index] = together, after
                saved[tier] = saved.get(tier, 0) + before - after
    chosen = tuple(edit for index in sorted(edits) for edit in edits[index])
    return Shortening(chosen, sizes, saved)


def shorten_all(
    messages: Sequence[Message],
    indices: Iterable[int],
    *,
    policy: Policy,
    counter: TokenCounter,
    names: Mapping[str, str],
) -> Shortening:
    """Reduce these messages by every enabled tier. ``names`` maps call ids to tool names."""
    edits: list[Edit] = []
    sizes: dict[int, int] = {}
    saved: dict[str, int] = {}
    for index in indices:
        found: list[Edit] = []
        size = counter.message(messages[index])
        for tier in _enabled(policy):
            more = [*found, *_edits_of(index, messages[index], tier, policy, names)]
            # A tier is priced on top of those before it: two tiers may touch one part.
            smaller = counter.message(reduce(messages[index], more)) if len(more) > len(found) else size
            if smaller < size:
                saved[tier] = saved.get(tier, 0) + size - smaller
                found, size = more, smaller
        if found:
            edits += found
            sizes[index] = size
    return Shortening(tuple(edits), sizes, saved)


def clip_tail(
    messages: Sequence[Message],
    indices: Sequence[int],
    *,
    limit: int,
    pending: Container[int],
    policy: Policy,
    counter: TokenCounter,
) -> Shortening:
    """Clip the largest items of these messages so that together they take at most ``limit`` tokens, if that can be.

    All clipped items get the same ceiling: the largest one that fits, not below ``policy.oversized.minimum``. Of
    messages whose calls are pending only results are clipped: what is about to run stays as it was asked for.
    """
    if not policy.oversized.enabled:
        return NOTHING
    parts = sorted(_clippable(messages, indices, counter, pending), key=lambda item: (-item[0], item[1], item[2]))
    excess = sum(counter.message(messages[index]) for index in indices) - limit
    least = policy.oversized.minimum
    ceiling = _ceiling([size for size, _, _ in parts], excess, least)
    while True:
        found = _under(ceiling, messages, parts, counter)
        missing = excess - sum(found.saved.values())
        if missing <= 0 or ceiling <= least:
            return found
        # the tier knows only the estimate; the counter that has to be satisfied may count more
        ceiling = max(least, min(ceiling - missing // max(1, len(found.edits)), int(0.9 * ceiling)))


def _under(
    ceiling: int, messages: Sequence[Message], parts: Sequence[tuple[int, int, int]], counter: TokenCounter
) -> Shortening:
    """Every part (tokens, message, number) above the ceiling clipped to it."""
    edits = tuple(
        Edit(index=index, part=part, tier="oversized", limit=ceiling) for size, index, part in parts if size > ceiling
    )
    by_message: dict[int, list[Edit]] = {}
    for edit in sorted(edits, key=lambda edit: (edit.index, edit.part)):
        by_message.setdefault(edit.index, []).append(edit)
    sizes = {index: counter.message(reduce(messages[index], found)) for index, found in by_message.items()}
    saved = sum(counter.message(messages[index]) - size for index, size in sizes.items())
    ordered = tuple(edit for index in sorted(by_message) for edit in by_message[index])
    return Shortening(ordered, sizes, {"oversized": saved} if saved else {})


def _ceiling(sizes: Sequence[int], excess: int, minimum: int) -> int:
    """The ceiling under which the sizes (largest first) lose ``excess`` tokens together, but at least ``minimum``."""
    total = 0
    for count, size in enumerate(sizes, 1):
        total += size
        following = sizes[count] if count < len(sizes) else 0
        # The `count` largest items at one ceiling: right as soon as the next one lies below it.
        ceiling = (total - excess) // count
        if ceiling >= following:
            return max(minimum, ceiling)
    return minimum


def _enabled(policy: Policy) -> Iterator[str]:
    if policy.reasoning.enabled:
        yield "reasoning"
    if policy.tool_arguments.enabled:
        yield "tool_arguments"
    if policy.tool_outputs.enabled:
        yield "tool_outputs"
    if policy.media.enabled:
        yield "media"


def _edits_of(index: int, message: Message, tier: str, policy: Policy, names: Mapping[str, str]) -> Iterable[Edit]:
    is_all_of_it = all(isinstance(part, Reasoning) for part in message.parts)
    for number, part in enumerate(message.parts):
        if isinstance(part, Reasoning) and (is_all_of_it or not _may_go(part, message)):
            continue
        limit = _limit(part, tier, policy, names)
        if limit is not None:
            yield Edit(index=index, part=number, tier=tier, limit=limit)


def _may_go(reasoning: Reasoning, message: Message) -> bool:
    """Whether the provider takes an old answer without its reasoning: Anthropic, which signs it, and Gemini do.

    OpenAI refuses a call whose reasoning item is missing, and DeepSeek and others like it an answer without the
    ``reasoning_content`` that it came with.
    """
    return not message.split and (reasoning.is_bound or message.source_format == "gemini")


def _limit(part: Part, tier: str, policy: Policy, names: Mapping[str, str]) -> int | None:
    """The limit a tier gets for this part, None where it has nothing to do with it."""
    match part:
        case ToolCall() if tier == "tool_arguments":
            wanted = policy.tool_arguments.tools
            return policy.tool_arguments.limit if wanted is None or part.name in wanted else None
        case ToolResult() if tier == "tool_outputs":
            name = part.name or names.get(part.call_id, "")
            return None if name in policy.tool_outputs.exclude else policy.tool_outputs.limit
        case ToolResult() | Media() if tier == "media":
            return 0
        case Reasoning() if tier == "reasoning":
            return 0
    return None


def _clippable(
    messages: Sequence[Message], indices: Iterable[int], counter: TokenCounter, pending: Container[int]
) -> Iterator[tuple[int, int, int]]:
    """(tokens, message index, part number) of what may be clipped as a last resort."""
    for index in indices:
        for number, part in enumerate(messages[index].parts):
            if isinstance(part, ToolResult) or (isinstance(part, ToolCall | Text) and index not in pending):
                yield counter.part(part), index, number
