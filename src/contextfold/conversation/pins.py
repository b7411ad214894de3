"""What must stay word for word, and why: instructions, the first and the newest user message, pins, pending calls.

What belongs here: choosing these messages. What does not: what happens to the rest (``passes.decide``).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from contextfold import json_values
from contextfold.conversation.fingerprint import opening
from contextfold.conversation.groups import Grouping
from contextfold.errors import PolicyError, is_control_flow, reason
from contextfold.harness import is_output, parted, without_notes
from contextfold.messages import Media, Message, Opaque, Text, ToolCall
from contextfold.policy import Pins, Policy
from contextfold.summary.message import OPEN, parse

INSTRUCTION = "system or developer message"
SAID_AGAIN = "said again by a later system or developer message, which stays"
FIRST_USER = "first user message"
NEWEST_USER = "newest user message"
PINNED = "pinned by policy"
PENDING = "call without a result yet"
PROVIDER = "compaction item of the provider"


def is_summary(message: Message, role: str = "user") -> bool:
    """Whether this message of a history carries an earlier summary of ours, and nothing else.

    ``role``: in which summaries are sent. In another one than that and the default, our frame is a quotation.
    """
    if message.role not in ("user", role) or len(message.parts) != 1 or not isinstance(message.parts[0], Text):
        return False
    return OPEN in message.text and parse(message.text) is not None


def is_person(message: Message) -> bool:
    """A genuine user message: not only tool results, not an earlier summary, not a harness's note."""
    return (
        message.is_user_turn
        and not is_output(message)
        and not is_summary(message)
        and (bool(own_text(message)) or any(isinstance(part, Media | Opaque) for part in message.parts))
        and not _is_marked_summary(message)
    )


def _is_marked_summary(message: Message) -> bool:
    # LangChain's own middleware and Haystack's compactors mark what they write so; it stands in the user's role, and no
    # person wrote it.
    return (
        json_values.same(message.metadata.get("lc_source"), "summarization") or "context_compaction" in message.metadata
    )


def own_text(message: Message) -> str:
    """What a message says besides the notes of a harness and a summary that was joined to it."""
    _, spoken = parted(message)
    texts = (part.text for part in spoken.parts if isinstance(part, Text)) if spoken else ()
    said = (without_notes(text) for text in texts if OPEN not in text or parse(text) is None)
    return "\n".join(text for text in said if text)


def first_user(messages: Iterable[Message]) -> int | None:
    """Index of the first message that a person wrote; of the first user message, if none looks genuine."""
    first = None
    for index, message in enumerate(messages):
        if message.is_user_turn and not is_summary(message):
            if is_person(message):
                return index
            first = index if first is None else first
    return first


SHORT_BEFORE = 1_000
"""Characters. Clients put reminders and open files into a message before the newest one, and others at each turn."""


def newest_user(messages: Sequence[Message]) -> int | None:
    """Index of the newest user message that is more than what tools answered; of the newest one, where none is."""
    newest = None
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].is_user_turn and not is_summary(messages[index]):
            if not is_output(messages[index]):
                return index
            newest = index if newest is None else newest
    return newest


def newest_said(messages: Sequence[Message]) -> int:
    """Index of the newest message that is no instruction, since clients put reminders behind it; -1 without any."""
    return next((n for n in range(len(messages) - 1, -1, -1) if not messages[n].is_instruction), -1)


def held(
    messages: Sequence[Message],
    grouping: Grouping,
    policy: Policy,
    gone: Container[int] = (),
    removed: Container[tuple[int, int]] = (),
) -> dict[int, str]:
    """Index -> reason of every message that no pass may touch. The first reason that fits is given. ``gone`` and
    ``removed`` as of ``natives``: only what is in the view can be the provider's compaction that counts.
    """
    reasons: dict[int, str] = {}
    native = newest_native(messages, gone, removed)
    repeated = said_again(messages)
    for index, message in enumerate(messages):
        if message.is_instruction and index not in repeated:
            reasons[index] = INSTRUCTION
        elif index == native:
            reasons[index] = PROVIDER
    newest = newest_user(messages)
    if newest is not None:
        reasons.setdefault(newest, NEWEST_USER)
        if newest and _stands_beside(messages[newest - 1]):
            reasons.setdefault(newest - 1, NEWEST_USER)
    first = first_user(messages) if policy.first_user else None
    if first is not None:
        reasons.setdefault(first, FIRST_USER)
    for group in grouping.groups:
        reason = PENDING if group.pending else PINNED if _pinned(group.indices, messages, policy.pins) else None
        if reason:
            # All of the group: a pinned result needs its call, and a call all of its results.
            for index in group.indices:
                reasons.setdefault(index, reason)
    return reasons


def said_again(messages: Sequence[Message]) -> set[int]:
    """Indices of the instructions whose words, and nothing else, a later one says again.

    Clients put the same reminder behind every few turns. With each copy in each view, a long session would end in
    nothing but these. The newest copy stays, since what was said last is in force. Those that a list begins with are
    read from the cache, and stay.
    """
    newest = set[tuple[str, ...]]()
    found = set[int]()
    for n in range(len(messages) - 1, opening(messages) - 1, -1):
        message = messages[n]
        texts = tuple(part.text for part in message.parts if isinstance(part, Text)) if message.is_instruction else ()
        if texts and len(texts) == len(message.parts):
            said = (message.role, *texts)
            found |= {n} if said in newest else set()
            newest.add(said)
    return found


def _stands_beside(message: Message) -> bool:
    """Whether a message right before the newest prompt may be of it: an earlier summary there is to become part of the
    next one.
    """
    is_earlier = is_summary(message) or _is_marked_summary(message)
    return message.is_user_turn and len(message.text) <= SHORT_BEFORE and not is_earlier


def about_to_run(messages: Sequence[Message], pending: Iterable[int]) -> set[int]:
    """Which messages of groups with ``pending`` calls may still get results: but for results, nothing is clipped there.

    Calls that the user spoke after were interrupted, and are sent with a placeholder.
    """
    newest = newest_user(messages)
    return {n for n in pending if newest is None or n > newest}


def natives(
    messages: Sequence[Message], gone: Container[int] = (), removed: Container[tuple[int, int]] = ()
) -> Iterator[tuple[int, int]]:
    """Message and part of each compaction of a provider's own in the view, the newest message first. ``gone``: messages
    that are not in the view; ``removed``: parts that are not.
    """
    for index in range(len(messages) - 1, -1, -1):
        for number, part in enumerate(messages[index].parts):
            if isinstance(part, Opaque) and part.is_compaction and index not in gone and (index, number) not in removed:
                yield index, number


def newest_native(
    messages: Sequence[Message], gone: Container[int] = (), removed: Container[tuple[int, int]] = ()
) -> int:
    """Index of the newest message of ``natives``, before which the provider reads nothing; -1 without any."""
    return next((index for index, _ in natives(messages, gone, removed)), -1)


def has_originals(messages: Sequence[Message], native: int) -> bool:
    """Whether the conversation that a provider's own compaction stands for is there too. Clients may go on with the
    list that the provider made of it: the item, and at most what the user wrote and what was thought before it.
    """
    return any(
        message.role == "assistant" and any(isinstance(part, Text | ToolCall) for part in message.parts)
        for message in messages[:native]
    )


def _pinned(indices: Sequence[int], messages: Sequence[Message], pins: Pins) -> bool:
    return not pins.is_empty and any(_matches(index, messages[index], pins) for index in indices)


def _matches(index: int, message: Message, pins: Pins) -> bool:
    if message.id is not None and message.id in pins.ids:
        return True
    if any(call.name in pins.tools for call in message.tool_calls):
        return True
    if pins.metadata and all(
        json_values.same(message.metadata.get(key), value) for key, value in pins.metadata.items()
    ):
        return True
    if pins.predicate is None:
        return False
    try:
        return bool(pins.predicate(message))
    except Exception as error:  # user code: whatever it raises is a mistake in a setting
        if is_control_flow(error):
            raise
        raise PolicyError(f"pins.predicate raised {reason(error)}, asked about message {index}") from error
