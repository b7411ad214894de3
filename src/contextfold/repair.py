"""Mending what a provider would refuse in a list of messages that is about to be sent.

- A result that does not follow its call is moved up to it.
- A call that was never answered, though the assistant spoke again since, gets a result that says so.
- A result whose call is not in the list (it never was, it was summarised, or its id was answered before) cannot be
  sent as a result; it is shown as text from the user, so nothing of it is lost. One that repeats an answer word for
  word is left out.

What belongs here: these two, as pure functions over any list of messages. Finding the faults is ``groups``.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from contextfold.groups import Grouping, group
from contextfold.messages import Message, Part, Text, ToolResult

UNANSWERED = "[No result: this call was never answered]"
INTERRUPTED = "\0"
"""Among the ids of open calls: there are some, but somebody spoke since."""
ORPHAN = "[Result of tool call {call_id}{name}, whose call is not in this context]"


@dataclass(frozen=True, slots=True)
class Placed:
    """A message of the mended list: where it stood before (None: it is new), and whether it was moved."""

    message: Message
    position: int | None
    moved: bool = False


def repair(messages: Sequence[Message]) -> list[Placed]:
    """The same messages in an order and shape that a provider takes. What is right already stays the same object."""
    grouping = group(messages)
    placed = [Placed(message, index) for index, message in enumerate(messages)]
    if any(fault.kind == "orphan_result" for fault in grouping.faults):
        known = {answer for index, message in enumerate(messages) for answer in _answers(message, index, grouping)}
        mended = ((_without_orphans(place, grouping, known)) for place in placed)
        placed = _before_pending([place for place in mended if place is not None], messages)
        grouping = group([place.message for place in placed])  # what is text now may stand between call and results
    if not {"result_out_of_place", "dangling_call"} & {fault.kind for fault in grouping.faults}:
        return placed
    return _in_order(placed, grouping)


def is_clean(messages: Sequence[Message], open_calls: set[str]) -> bool:
    """Whether appended messages need no mending, given the ids of calls of the last turn that wait for results.

    Updates ``open_calls``. Stricter than ``repair``: False means "look closely", not "broken".
    """
    clean = True
    for message in messages:
        results = message.tool_results
        known = {result.call_id for result in results} & open_calls
        clean = clean and len(known) == len(results)
        open_calls -= known
        speaks_on = message.split and message.role == "assistant"
        if message.role == "assistant" and (INTERRUPTED in open_calls or (open_calls and not speaks_on)):
            clean = False
        if not results and not speaks_on:
            unanswered = bool(open_calls) and message.role != "assistant"
            open_calls.clear()
            open_calls.update((INTERRUPTED,) if unanswered else ())
        open_calls.update(call.id for call in message.tool_calls)
    return clean


def _answers(message: Message, index: int, grouping: Grouping) -> list[tuple[str, str]]:
    """(call id, text) of the results in a message that answer a call."""
    return [
        (part.call_id, part.text)
        for number, part in enumerate(message.parts)
        if isinstance(part, ToolResult) and (index, number) in grouping.answers
    ]


def _without_orphans(place: Placed, grouping: Grouping, known: Container[tuple[str, str]]) -> Placed | None:
    """A message whose orphans are text; None for one that only repeats, word for word, what answered before."""
    message = place.message
    results: list[Part] = []
    others: list[Part] = []
    changed = False
    for number, part in enumerate(message.parts):
        if not isinstance(part, ToolResult):
            others.append(part)
        elif (place.position, number) in grouping.answers:
            results.append(part)
        else:
            changed = True
            others += () if (part.call_id, part.text) in known else as_text(part)
    if not changed:
        return place
    if not results and not others:
        return None
    if message.role == "tool" and not results:  # it held nothing else: a message of its own
        return replace(place, message=Message(role="user", parts=tuple(others), metadata=message.metadata))
    return replace(place, message=message.with_parts((*results, *others)))


def _before_pending(placed: list[Placed], messages: Sequence[Message]) -> list[Placed]:
    """Orphans that became messages of their own, moved out of a turn whose calls still wait for their results."""
    waiting = [found.first for found in group([place.message for place in placed]).groups if found.pending]
    if not waiting:
        return placed
    start = min(waiting)
    late = [p for p in placed[start:] if p.position is not None and p.message.role != messages[p.position].role]
    rest = [place for place in placed[start:] if place not in late]
    return [*placed[:start], *(replace(place, moved=True) for place in late), *rest]


def as_text(result: ToolResult) -> list[Part]:
    """A tool result as parts that any message may carry."""
    heading = ORPHAN.format(call_id=result.call_id, name=f" ({result.name})" if result.name else "")
    inner = [replace(part, source=None) if not isinstance(part, Text) else Text(part.text) for part in result.content]
    return [Text(heading), *inner]


def _in_order(messages: Sequence[Placed], grouping: Grouping) -> list[Placed]:
    """Each misplaced or missing result goes to the end of the results that follow its last call."""
    misplaced = {fault.index for fault in grouping.faults if fault.kind == "result_out_of_place"}
    waiting: dict[int, list[Placed]] = {}  # call's place -> results to put behind it
    for index in sorted(misplaced):
        caller = max(caller for (place, _), caller in grouping.answers.items() if place == index)
        waiting.setdefault(caller, []).append(replace(messages[index], moved=True))
    for fault in grouping.faults:
        if fault.kind == "dangling_call":
            answer = _unanswered(messages[fault.index].message, fault.detail)
            waiting.setdefault(fault.index, []).append(Placed(answer, None))
    ordered: list[Placed] = []
    due: list[Placed] = []
    for index, place in enumerate(messages):
        if index in misplaced:
            continue
        message = place.message
        if not (message.tool_results or (message.split and message.role == "assistant")):
            ordered += due
            due = []
        ordered.append(place)
        due += waiting.get(index, ())
    return ordered + due


def _unanswered(message: Message, call_id: str) -> Message:
    """A result for a call that has none."""
    call = next(call for call in message.tool_calls if call.id == call_id)
    result = ToolResult(call_id, (Text(UNANSWERED),), name=call.name)
    return Message(role="tool", parts=(result,))
