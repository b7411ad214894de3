"""Whether messages at the end of a list need mending, without looking at the list again.

What belongs here: what has to be remembered of a list for that, and the question. What does not: mending.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contextfold.conversation.repair.rules import (
    acceptable,
    may_stand_between,
    opens_for_instructions,
    speaks_too_early,
)
from contextfold.formats.base import Format
from contextfold.messages import Message, ToolResult


@dataclass(slots=True)
class Seen:
    """What has to be known of a list to tell whether more messages at its end need mending."""

    format: Format
    open_calls: dict[str, str] = field(default_factory=dict)
    """Calls of the last turn that wait for results: id -> name of the tool."""
    call_ids: set[str] = field(default_factory=set)
    """Of all calls, where the format wants no two to share one."""
    at_work: set[str] = field(default_factory=set)
    """Calls that the model did not wait for, and that have no result yet."""
    custom: dict[str, bool] = field(default_factory=dict)
    """Whether the last call with an id was one of a custom tool, where results have to know."""
    renamed: set[str] = field(default_factory=set)
    """Those of them that may go by another id in the view."""
    clean: bool = True
    """Nothing in the list needed mending so far."""
    broken: bool = False
    """Results did not follow their calls: what comes at the end of the list may belong further up in the view."""
    left_unanswered: bool = False
    """The last message is left out, and stands behind calls without results: the next one meets the placeholder."""
    begun: bool = False
    """Something else than instructions was there."""
    takes_instructions: bool = False
    """The last message that is none lets an instruction stand behind it, where the format allows that."""
    instructed: bool = False
    """One stands there now: the next message has to be the assistant's."""
    speaker: str = ""
    """The role of the last message."""
    spoke_twice: bool = False
    """One of them followed one of its own role, where the provider refuses that."""

    @property
    def is_open(self) -> bool:
        """Whether sending the list at once may take more than sending what will be in the view for good."""
        ends = self.speaker == "assistant" and self.format.rules.bare_end
        return bool(self.open_calls) or self.spoke_twice or ends


def is_clean(messages: Sequence[Message], seen: Seen) -> bool:
    """Whether appended messages need no mending and leave what stands before them alone. Updates ``seen``.

    Stricter than ``repair`` and ``conform``: False means "look closely", not "broken".
    """
    clean = True
    for message in messages:
        # Each question updates `seen`, so all are asked of each message, whatever the first one said.
        interrupts = _interrupts(message, seen)
        paired = _is_paired(message, seen)
        clean = _conforms(message, seen) and paired and not interrupts and clean
        seen.broken = seen.broken or not paired
        seen.spoke_twice |= seen.format.rules.takes_turns and message.role == seen.speaker
        seen.speaker = message.role
    seen.clean = seen.clean and clean
    return clean


def _conforms(message: Message, seen: Seen) -> bool:
    """Whether the format's rules have nothing against this message as the next one."""
    accepted = _is_accepted(message, seen)
    of_one_kind = _is_of_one_kind(message, seen)
    return _keeps_its_ids(message, seen) and accepted and of_one_kind


def _is_accepted(message: Message, seen: Seen) -> bool:
    stands = may_stand_between(message, seen.format) and (seen.takes_instructions or not message.parts)
    accepted = acceptable(message, seen.format, leading=stands or not seen.begun)
    if _is_left_out(message, accepted):
        return False  # the next message stands where it stood
    opens = not seen.begun and speaks_too_early(message, seen.format)
    misplaces = False
    if message.is_instruction:
        seen.instructed |= seen.begun and stands
    else:
        misplaces = seen.instructed and message.role != "assistant"
        seen.begun, seen.instructed, seen.takes_instructions = True, False, opens_for_instructions(message)
    return accepted is message and not opens and not misplaces


def _is_left_out(message: Message, accepted: Message) -> bool:
    """Whether a provider's rules leave nothing of a message."""
    return accepted is not message and not accepted.parts and message.role != "user"


def _is_of_one_kind(message: Message, seen: Seen) -> bool:
    if not seen.format.rules.results_have_kinds:
        return True
    seen.custom.update((call.id, call.custom) for call in message.tool_calls)
    return all(seen.custom.get(part.call_id) == part.custom for part in message.tool_results)


def _keeps_its_ids(message: Message, seen: Seen) -> bool:
    forbidden, longest = seen.format.rules.not_in_call_ids, seen.format.rules.longest_call_id
    if forbidden is None:
        return True
    for call in message.tool_calls:
        if not _is_free(call.id, seen, forbidden) or len(call.id) > (longest or len(call.id)):
            seen.renamed.add(call.id)
        seen.call_ids |= {call.id, forbidden.sub("_", call.id)[:longest]}
    ids = {*(call.id for call in message.tool_calls), *(result.call_id for result in message.tool_results)}
    return ids.isdisjoint(seen.renamed)


def _is_free(call_id: str, seen: Seen, forbidden: re.Pattern[str]) -> bool:
    """Whether a call may have this id: no other call has it, or may have been given it (see ``_Naming``)."""
    taken = {call_id, re.sub(r"_\d+$", "", call_id)} & seen.call_ids
    return not taken and not forbidden.search(call_id)


def _interrupts(message: Message, seen: Seen) -> bool:
    """Whether the next message shows that calls get no result: the placeholder stands before it from now on."""
    left_out = bool(seen.open_calls or seen.left_unanswered) and _is_left_out(
        message, acceptable(message, seen.format, leading=False)
    )
    if seen.left_unanswered:
        seen.left_unanswered = left_out
        return True
    if not seen.open_calls or message.tool_results:
        return False
    speaks_on = message.split and message.role == "assistant" and seen.speaker == "assistant"
    if not speaks_on:
        seen.open_calls.clear()
        seen.left_unanswered = left_out
    return not speaks_on


def _is_paired(message: Message, seen: Seen) -> bool:
    paired = True
    for result in message.tool_results:
        if result.call_id in seen.at_work:
            seen.at_work.remove(result.call_id)
            continue
        called = _call_of(result, seen.open_calls)
        paired = paired and called is not None
        seen.open_calls.pop(called or "", None)
    for call in message.tool_calls:
        if call.is_async and seen.format.rules.async_calls:
            seen.at_work.add(call.id)
            continue
        paired = paired and call.id not in seen.open_calls  # two open calls of one id cannot be told apart
        seen.open_calls[call.id] = call.name
    return paired


def _call_of(result: ToolResult, waiting: Mapping[str, str]) -> str | None:
    """The id of the call that a result answers; one without an id answers the first call of its function."""
    if result.call_id in waiting:
        return result.call_id
    return next((i for i, name in waiting.items() if result.is_unnamed and name == result.name), None)
