"""Mending what a provider would refuse in a list of messages that is about to be sent.

- A result that does not follow its call is moved up to it.
- A call that was never answered, though the assistant spoke again since, gets a result that says so.
- A result whose call is not in the list (it never was, it was summarised, or its id was answered before) cannot be
  sent as a result; it is shown as text from the user, so nothing of it is lost. One that repeats an answer word for
  word is left out.

So much for every provider (``repair``). What only some refuse, as the ``rules`` of their format say (``conform``):

- Blank blocks are left out. Of the assistant, a message that says nothing is left out too; of the user, it is shown as
  a note, because what the assistant says next is an answer to it.
- Calls that share an id, and their results: all but the first get an id of their own.
- A list that begins with the assistant: a note of the user stands before it.

A list that grows is mended the same way each time, so a view only grows with it. Hence nothing here looks at what
follows a message, but for ``answer_pending`` and ``bare_end``, which are for a list that is sent at once.

What belongs here: these, as pure functions over any list of messages. Finding the faults is ``groups``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from contextfold.formats.base import Format
from contextfold.groups import Grouping, group
from contextfold.ledger import Account
from contextfold.messages import Message, Part, Text, ToolCall, ToolResult

UNANSWERED = "[No result: this call was never answered]"
INTERRUPTED = "\0"
"""Among the ids of open calls: there are some, but somebody spoke since."""
ORPHAN = "[Result of tool call {call_id}{name}, whose call is not in this context]"
SILENT = "[This message was empty]"
BEGINNING = "[What was said before this is not in this context]"

AS_TEXT: Account = ("shortened", "a result whose call is not in the view, shown as text")
REPEATED: Account = ("dropped", "a result that was there already, word for word")
EMPTY: Account = ("dropped", "it says nothing")
NOTED: Account = ("kept", "it says nothing; a note in its place says so")
RENAMED: Account = ("kept", "the id of its tool call was used before or is not allowed; the view has another one")
BEGUN: Account = ("kept", "the assistant speaks first; a note of the user stands before it")


@dataclass(frozen=True, slots=True)
class Placed:
    """A message of the mended list: where it stood before (None: it is new), and whether it was moved.

    ``account``: what became of it, where that is worth telling.
    """

    message: Message
    position: int | None
    moved: bool = False
    account: Account | None = None


@dataclass(slots=True)
class Seen:
    """What has to be known of a list to tell whether more messages at its end need mending."""

    format: Format
    open_calls: set[str] = field(default_factory=set)
    """Calls of the last turn that wait for results."""
    call_ids: set[str] = field(default_factory=set)
    """Of all calls, where the format wants no two to share one."""
    renamed: set[str] = field(default_factory=set)
    """Those of them that may go by another id in the view."""
    broken: bool = False
    """Results did not follow their calls: what comes at the end of the list may belong further up in the view."""
    begun: bool = False
    """Something else than instructions was there."""
    speaker: str = ""
    """The role of the last message."""

    @property
    def is_open(self) -> bool:
        """Whether sending the list at once may take more than sending what will be in the view for good."""
        return bool(self.open_calls) or (self.speaker == "assistant" and self.format.rules.bare_end)


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


def answer_pending(placed: Sequence[Placed]) -> list[Placed]:
    """The same list with a result for every call that still waits for one, as a provider wants it that is asked now."""
    messages = [place.message for place in placed]
    grouping = group(messages)
    answered = Counter(
        (caller, part.call_id)
        for (index, number), caller in grouping.answers.items()
        if isinstance(part := messages[index].parts[number], ToolResult)
    )
    waiting: dict[int, list[Placed]] = {}
    for index, message in enumerate(messages):
        for call in message.tool_calls:
            if answered[index, call.id]:
                answered[index, call.id] -= 1
            else:
                waiting.setdefault(index, []).append(Placed(_unanswered(call), None))
    return _behind_their_calls(placed, waiting) if waiting else list(placed)


def is_clean(messages: Sequence[Message], seen: Seen) -> bool:
    """Whether appended messages need no mending, given what was seen before. Updates ``seen``.

    Stricter than ``repair`` and ``conform``: False means "look closely", not "broken".
    """
    clean = True
    for message in messages:
        paired = _is_paired(message, seen)
        clean = _conforms(message, seen) and paired and clean
        seen.broken = seen.broken or not paired
        seen.speaker = message.role
    return clean


def _conforms(message: Message, seen: Seen) -> bool:
    """Whether the format's rules have nothing against this message as the next one."""
    rules = seen.format.rules
    conforms = _acceptable(message, seen.format, leading=not seen.begun) is message
    if not message.is_instruction:
        conforms = conforms and (seen.begun or message.role != "assistant" or not rules.user_first)
        seen.begun = True
    if rules.not_in_call_ids is None:
        return conforms
    for call in message.tool_calls:
        if not _is_free(call.id, seen, rules.not_in_call_ids):
            seen.renamed.add(call.id)
        seen.call_ids |= {call.id, rules.not_in_call_ids.sub("_", call.id)}
    ids = {*(call.id for call in message.tool_calls), *(result.call_id for result in message.tool_results)}
    return conforms and ids.isdisjoint(seen.renamed)


def _is_free(call_id: str, seen: Seen, forbidden: re.Pattern[str]) -> bool:
    """Whether a call may have this id: no other call has it, or may have been given it (see ``_Naming``)."""
    taken = {call_id, re.sub(r"_\d+$", "", call_id)} & seen.call_ids
    return not taken and not forbidden.search(call_id)


def _is_paired(message: Message, seen: Seen) -> bool:
    """Whether each result of the next message follows its call, and each call has one or may still get it."""
    open_calls = seen.open_calls
    results = message.tool_results
    known = {result.call_id for result in results} & open_calls
    paired = len(known) == len(results)
    open_calls -= known
    speaks_on = message.split and message.role == "assistant"
    if message.role == "assistant" and open_calls:
        # between the calls of one turn, before any result, it may go on
        paired = paired and speaks_on and INTERRUPTED not in open_calls and seen.speaker == "assistant"
    if not results and not speaks_on:
        unanswered = bool(open_calls) and message.role != "assistant"
        open_calls.clear()
        open_calls.update((INTERRUPTED,) if unanswered else ())
    open_calls.update(call.id for call in message.tool_calls)
    return paired


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
        user = Message(role="user", parts=tuple(others), metadata=message.metadata)
        return replace(place, message=user, account=AS_TEXT)
    return replace(place, message=message.with_parts((*results, *others)), account=AS_TEXT)


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
            call = next(call for call in messages[fault.index].message.tool_calls if call.id == fault.detail)
            waiting.setdefault(fault.index, []).append(Placed(_unanswered(call), None))
    return _behind_their_calls(messages, waiting, misplaced)


def _behind_their_calls(
    messages: Sequence[Placed], waiting: Mapping[int, Sequence[Placed]], misplaced: Container[int] = ()
) -> list[Placed]:
    """Each waiting result behind the results that follow the message (by index) with its call."""
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


def _unanswered(call: ToolCall) -> Message:
    """A result for a call that has none."""
    return Message(role="tool", parts=(ToolResult(call.id, (Text(UNANSWERED),), name=call.name, custom=call.custom),))


# ---- what only some providers refuse ----


def conform(placed: Sequence[Placed], format: Format) -> list[Placed]:
    """A list with its calls answered, as the rules of a format want it. What they allow stays the same object."""
    rules = format.rules
    mended = list(_speaking(placed, format))
    if rules.not_in_call_ids is not None:
        mended = _with_own_ids(mended, rules.not_in_call_ids)
    return _begun_by_user(mended) if rules.user_first else mended


def bare_end(placed: Sequence[Placed], format: Format) -> list[Placed]:
    """The same list, to be sent at once: no white space behind the last words, where the format wants that.

    Only words of the assistant are last words: the model is to go on where they end.
    """
    last = placed[-1] if placed else None
    part = last.message.parts[-1] if last and last.message.parts else None
    if last is None or not isinstance(part, Text) or last.message.role != "assistant" or not format.rules.bare_end:
        return list(placed)
    bare = part.text.rstrip()
    if bare == part.text:
        return list(placed)
    parts = (*last.message.parts[:-1], replace(part, text=bare, edited=True))
    return [*placed[:-1], replace(last, message=last.message.with_parts(parts))]


def _speaking(placed: Sequence[Placed], format: Format) -> Iterator[Placed]:
    """Each message as the format accepts it, without those that say nothing."""
    leading = True
    for place in placed:
        message = _acceptable(place.message, format, leading=leading)
        leading = leading and message.is_instruction
        if message is place.message:
            yield place
        elif message.parts:
            yield replace(place, message=message)
        elif message.role == "user":
            yield replace(place, message=message.with_parts((Text(SILENT),)), account=NOTED)


def _acceptable(message: Message, format: Format, *, leading: bool) -> Message:
    """A message of another format that is empty is lost on the way into this one."""
    if message.is_empty and message.source_format != format.name:
        return message.with_parts(())
    return format.acceptable(message, leading=leading)


def _begun_by_user(placed: list[Placed]) -> list[Placed]:
    """A note of the user before the first message that is no instruction, if that is the assistant's."""
    first = next((n for n, place in enumerate(placed) if not place.message.is_instruction), None)
    if first is None or placed[first].message.role != "assistant":
        return placed
    note = Placed(Message(role="user", parts=(Text(BEGINNING),)), None, account=BEGUN)
    return [*placed[:first], note, *placed[first:]]


def _shares_ids(messages: Sequence[Message], forbidden: re.Pattern[str]) -> bool:
    """Whether two calls have one id, or one has an id that is not allowed."""
    ids = [call.id for message in messages for call in message.tool_calls]
    return len(set(ids)) < len(ids) or any(forbidden.search(call_id) for call_id in ids)


def _with_own_ids(placed: Sequence[Placed], forbidden: re.Pattern[str]) -> list[Placed]:
    """Every call and its result under an id that no call before it has.

    The names follow from the calls before alone, so they stay as they are while the list grows.
    """
    messages = [place.message for place in placed]
    if not _shares_ids(messages, forbidden):
        return list(placed)
    naming = _Naming(forbidden)
    names: dict[tuple[int, str], list[str]] = {}  # the message of a call, the id there -> one name for each such call
    for index, message in enumerate(messages):
        for call in message.tool_calls:
            names.setdefault((index, call.id), []).append(naming.name(call.id))
    answers = group(messages).answers
    called = {call: iter(found) for call, found in names.items()}
    answered = {call: iter(found) for call, found in names.items()}
    renamed: list[Placed] = []
    for index, place in enumerate(placed):
        parts: list[Part] = []
        for number, part in enumerate(place.message.parts):
            if isinstance(part, ToolCall):
                part = _under(part, next(called[index, part.id]))
            elif isinstance(part, ToolResult) and (caller := answers.get((index, number))) is not None:
                part = _under(part, next(answered[caller, part.call_id]))
            parts.append(part)
        renamed.append(_with_parts(place, tuple(parts)))
    return renamed


def _under(part: ToolCall | ToolResult, name: str) -> ToolCall | ToolResult:
    """A call or a result under this id; the same object if it has it."""
    if isinstance(part, ToolCall):
        return part if part.id == name else replace(part, id=name, edited=True)
    return part if part.call_id == name else replace(part, call_id=name, edited=True)


def _with_parts(place: Placed, parts: tuple[Part, ...]) -> Placed:
    """The message with its calls and results renamed; the same object if none was."""
    if all(new is old for new, old in zip(parts, place.message.parts, strict=True)):
        return place
    return replace(place, message=place.message.with_parts(parts), account=place.account or RENAMED)


class _Naming:
    """Gives out ids, none twice: the one that is wanted where it is allowed and free, else with a number behind it."""

    def __init__(self, forbidden: re.Pattern[str]) -> None:
        self._forbidden = forbidden
        self._used: set[str] = set()
        self._times: Counter[str] = Counter()

    def name(self, wanted: str) -> str:
        """An id for the next call that wants this one."""
        stem = name = self._forbidden.sub("_", wanted)
        while not self._times[stem] or name in self._used:
            self._times[stem] += 1
            name = stem if self._times[stem] == 1 else f"{stem}_{self._times[stem]}"
        self._used.add(name)
        return name
