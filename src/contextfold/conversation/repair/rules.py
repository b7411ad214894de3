"""What only some providers refuse, as the ``rules`` of their format say.

- Blank blocks are left out. Of the assistant, a message that says nothing is left out too; of the user, it is shown as
  a note, because what the assistant says next is an answer to it.
- A result that a provider would look up among calls of the other kind is marked as its call is.
- Calls that share an id, and their results: all but the first get an id of their own.
- Before the assistant's words at the beginning of a list, a note of the user says that something is not there.
- An instruction that sets something, where it cannot stand, goes to the next place where it can: in words it is lost.

What belongs here: making a list obey. What does not: which format has which rules (``formats``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from contextfold.conversation.groups import group
from contextfold.conversation.ledger import Account
from contextfold.conversation.repair.pairing import REPEATED, Placed
from contextfold.errors import FormatError, border
from contextfold.formats.base import Format
from contextfold.formats.values import is_touched
from contextfold.messages import Message, Opaque, Part, Text, ToolCall, ToolResult

SILENT = "[This message was empty]"
BEGINNING = "[What was said before this is not in this context]"

EMPTY: Account = ("dropped", "it says nothing")
EMPTIED: Account = ("dropped", "nothing was in it but reasoning, which left the view")
NOTED: Account = ("kept", "it says nothing; a note in its place says so")
RENAMED: Account = ("kept", "the id of its tool call was used before or is not allowed; the view has another one")
BEGUN: Account = ("kept", "the assistant speaks first; a note of the user stands before it")
LATER: Account = ("kept", "it sets something; in the view it stands where the provider takes that next")


def conform(placed: Sequence[Placed], format: Format) -> list[Placed]:
    """A list with its calls answered, as the rules of a format want it. What they allow stays the same object."""
    rules = format.rules
    mended = list(_speaking(placed, format))
    if rules.results_have_kinds:
        mended = _of_one_kind(mended)
    if rules.not_in_call_ids is not None:
        mended = _with_own_ids(mended, rules.not_in_call_ids, rules.longest_call_id)
    # Last: which message is the first is only known once empty ones are left out.
    return _begun_by_user(mended, format)


def left_out(message: Message, *, is_edited: bool) -> Account:
    """Why nothing of a message is in a mended list. ``is_edited``: a record takes parts of it out."""
    if message.tool_results:
        return REPEATED
    return EMPTIED if is_edited and not message.is_empty else EMPTY


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
    placed = _where_they_set(placed, format)
    standing = _standing([place.message for place in placed], format)
    for number, place in enumerate(placed):
        stands = number in standing or _is_setting(place.message, format)
        message = acceptable(place.message, format, leading=leading or stands)
        if message is place.message:
            yield place
        elif message.parts:
            yield replace(place, message=message)
        elif message.role == "user":
            yield replace(place, message=message.with_parts((Text(SILENT),)), account=NOTED)
        else:
            continue
        leading = leading and message.is_instruction


def _where_they_set(placed: Sequence[Placed], format: Format) -> Sequence[Placed]:
    """The same list, and what sets something in it stands before the assistant's next answer to the user, or at the
    end, if it cannot stand where it is.
    """
    if not any(may_stand_between(place.message, format) for place in placed):
        return placed
    # What is left out parts no instruction from the next answer.
    placed = [place for place in placed if place.message.role != "assistant" or _is_heard(place.message, format)]
    standing = _standing([place.message for place in placed], format)
    ordered: list[Placed] = []
    moved: list[Placed] = []
    begun = asked = False
    for number, place in enumerate(placed):
        message = place.message
        if begun and number not in standing and _is_setting(message, format):
            moved.append(place)
            continue
        if asked and message.role == "assistant":
            ordered += moved
            moved = []
        moved = [replace(one, moved=True, account=LATER) for one in moved]
        ordered.append(place)
        if number not in standing and (begun or not message.is_instruction):
            begun, asked = True, opens_for_instructions(message)
    return [*ordered, *moved]


def _is_heard(message: Message, format: Format) -> bool:
    return bool(acceptable(message, format, leading=False).parts)


def _is_setting(message: Message, format: Format) -> bool:
    """Whether this is an instruction that would be lost in words."""
    return may_stand_between(message, format) and format.rules.sets_between(message)


def _standing(messages: Sequence[Message], format: Format) -> set[int]:
    """Instructions behind other messages that the format takes where they stand."""
    standing: set[int] = set()
    run: list[int] = []
    begun = asked = False
    for index, message in enumerate(messages):
        if may_stand_between(message, format):
            if asked or not message.parts:
                run.append(index)
        elif begun or not message.is_instruction:
            if message.role == "assistant":
                standing.update(run)
            else:  # without a word it only sets something, which may be anywhere
                standing.update(number for number in run if not messages[number].parts)
            run, begun, asked = [], True, opens_for_instructions(message)
    return standing.union(run)


def may_stand_between(message: Message, format: Format) -> bool:
    """Whether this is an instruction that may stay one in the middle of a list, at the right place."""
    if not message.is_instruction or message.source_format != format.name:
        return False
    return format.rules.instructions_between or format.rules.sets_between(message)


def opens_for_instructions(message: Message) -> bool:
    """Whether an instruction may stand behind this: words of the user, or an end that a server's own tool or compaction
    gave.
    """
    last = message.parts[-1] if message.parts else None
    return message.role != "assistant" or (isinstance(last, Opaque) and (last.is_output or last.is_compaction))


def acceptable(message: Message, format: Format, *, leading: bool) -> Message:
    """The message as a format takes it. One of another format that is empty is lost on the way into this one.

    One whose strings had to be mended when it was read (``messages.well_formed``) could not be written by any client,
    so it is sent as it was read.
    """
    if not message.edited and message.source is not None and any(is_touched(part) for part in message.parts):
        message = message.with_parts(message.parts)
    if message.is_empty and message.source_format != format.name:
        return message.with_parts(())
    # An SDK's class refuses, in a copy, what it put up with when it was set.
    with border(f"a message cannot be written as {format.name}", FormatError):
        return format.acceptable(message, leading=leading)


def _of_one_kind(placed: Sequence[Placed]) -> list[Placed]:
    """Every result marked as its call is: of a function, or of a custom tool."""
    messages = [place.message for place in placed]
    calls = {(n, call.id, call.custom) for n, message in enumerate(messages) for call in message.tool_calls}
    changed: dict[int, list[Part]] = {}
    grouping = group(messages)
    for (index, number), caller in grouping.answers.items():
        result = messages[index].parts[number]
        if not isinstance(result, ToolResult):
            continue
        call_id = grouping.answered_by_name.get((index, number), result.call_id)
        if (caller, call_id, result.custom) not in calls:
            parts = changed.setdefault(index, list(messages[index].parts))
            parts[number] = replace(result, custom=not result.custom, edited=True)
    mended = list(placed)
    for index, parts in changed.items():
        mended[index] = replace(mended[index], message=messages[index].with_parts(tuple(parts)))
    return mended


def speaks_too_early(message: Message, format: Format) -> bool:
    """Whether the first message that is no instruction cannot be this one: it is the assistant's, and no compaction of
    the provider's own, which stands for what the user said.
    """
    if message.role != "assistant" or not format.rules.user_first:
        return False
    first = message.parts[0] if message.parts and message.source_format == format.name else None
    return not (isinstance(first, Opaque) and first.is_compaction)


def _begun_by_user(placed: list[Placed], format: Format) -> list[Placed]:
    """A note of the user before the first message that is no instruction, if that is the assistant's."""
    first = next((n for n, place in enumerate(placed) if not place.message.is_instruction), None)
    if first is None or not speaks_too_early(placed[first].message, format):
        return placed
    note = Placed(Message(role="user", parts=(Text(BEGINNING),)), None, account=BEGUN)
    return [*placed[:first], note, *placed[first:]]


def _shares_ids(messages: Sequence[Message], forbidden: re.Pattern[str], longest: int | None) -> bool:
    """Whether two calls have one id, or one has an id that is not allowed."""
    ids = [call.id for message in messages for call in message.tool_calls]
    return len(set(ids)) < len(ids) or any(
        forbidden.search(call_id) or len(call_id) > (longest or len(call_id)) for call_id in ids
    )


def _with_own_ids(placed: Sequence[Placed], forbidden: re.Pattern[str], longest: int | None) -> list[Placed]:
    """Every call and its result under an id that no call before it has."""
    messages = [place.message for place in placed]
    if not _shares_ids(messages, forbidden, longest):
        return list(placed)
    # Names follow from the calls before alone, so they stay as they are while the list grows.
    naming = _Naming(forbidden, longest)
    names: dict[tuple[int, str], list[str]] = {}  # the message of a call, the id there -> one name for each such call
    for index, message in enumerate(messages):
        for call in message.tool_calls:
            names.setdefault((index, call.id), []).append(naming.name(call.id))
    grouping = group(messages)
    # Calls and their results are met at different places, so each side goes through the names by itself.
    called = {call: iter(found) for call, found in names.items()}
    answered = {call: iter(found) for call, found in names.items()}
    renamed: list[Placed] = []
    for index, place in enumerate(placed):
        parts: list[Part] = []
        for number, part in enumerate(place.message.parts):
            if isinstance(part, ToolCall):
                part = _under(part, next(called[index, part.id]))
            elif isinstance(part, ToolResult) and (caller := grouping.answers.get((index, number))) is not None:
                call_id = grouping.answered_by_name.get((index, number), part.call_id)
                part = _under(part, next(answered[caller, call_id]))
            parts.append(part)
        renamed.append(_with_parts(place, tuple(parts)))
    return renamed


def _under(part: ToolCall | ToolResult, name: str) -> ToolCall | ToolResult:
    """A call or a result under this id; the same object if it has it."""
    if isinstance(part, ToolCall):
        return part if part.id == name else replace(part, id=name, edited=True)
    return part if part.call_id == name else replace(part, call_id=name, edited=True)


def _with_parts(place: Placed, parts: tuple[Part, ...]) -> Placed:
    message = place.message.with_changed(parts)
    if message is place.message:
        return place
    return replace(place, message=message, account=place.account or RENAMED)


class _Naming:
    """Gives out ids, none twice: the one that is wanted where it is allowed and free, else with a number behind it."""

    def __init__(self, forbidden: re.Pattern[str], longest: int | None) -> None:
        self._forbidden = forbidden
        self._longest = longest
        self._used: set[str] = set()
        self._times: Counter[str] = Counter()

    def name(self, wanted: str) -> str:
        """An id for the next call that wants this one."""
        stem = name = self._forbidden.sub("_", wanted)[: self._longest]
        while not self._times[stem] or name in self._used:
            self._times[stem] += 1
            number = "" if self._times[stem] == 1 else f"_{self._times[stem]}"
            name = (stem if self._longest is None else stem[: self._longest - len(number)]) + number
        self._used.add(name)
        return name
