"""Calls and their results: what every provider refuses.

- A result that does not follow its call is moved up to it. A message with results of several turns, or with words
  beside a result that came late, is taken apart: what the user says stays where it was said.
- A call that was never answered, though the assistant spoke again since, gets a result that says so. One that only a
  screenshot can answer is shown as text.
- A result whose call is not in the list (it never was, it was summarized, or its id was answered before) cannot be
  sent as a result; it is shown as text from the user, so nothing of it is lost. One that repeats an answer word for
  word is left out.

What belongs here: these. What does not: contents, roles and ids (``rules``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from contextfold.conversation.groups import Grouping, group
from contextfold.conversation.ledger import Account
from contextfold.messages import Message, Part, Text, ToolCall, ToolResult

UNANSWERED = "[No result: this call was never answered]"
CALLED = "[The tool {name} was called with {arguments}. No result: this call was never answered]"
ANSWERED_BY_SCREENSHOT = "computer_call"
"""``ToolCall.local`` of calls whose result is an image and nothing else; only the tool can make one."""
ORPHAN = "[Result of tool call {call_id}{name}, whose call is not in this context]"
ORPHAN_END = "[End of the result of tool call {call_id}]"
"""Where a result ends that stands among a user's words. Nothing in it can be taken for this line."""

AS_TEXT: Account = ("shortened", "a result whose call is not in the view, shown as text")
UNANSWERABLE: Account = ("shortened", "a call that only a screenshot can answer, and none came; shown as text")
PARTED: Account = ("shortened", "its results stand behind their calls, apart from the rest of it")
REPEATED: Account = ("dropped", "a result that was there already, word for word")


@dataclass(frozen=True, slots=True)
class Placed:
    """A message of the mended list: where it stood before (None: it is new), and whether it was moved.

    ``account``: what became of it, where that is worth telling.
    """

    message: Message
    position: int | None
    moved: bool = False
    account: Account | None = None


def repair(messages: Sequence[Message], *, references: bool = False) -> list[Placed]:
    """The same messages in an order and shape that a provider takes. What is right already stays the same object.

    ``references``: the provider knows calls by items that stand for them, so results of such calls stay what they are.
    """
    grouping = group(messages)
    placed = [Placed(message, index) for index, message in enumerate(messages)]
    is_unknown = bool(grouping.of_references) and not references
    if is_unknown or any(fault.kind == "orphan_result" for fault in grouping.faults):
        called = {*grouping.answers, *(grouping.of_references if references else ())}
        known = {answer for index, message in enumerate(messages) for answer in _answers(message, index, grouping)}
        mended = ((_without_orphans(place, called, known)) for place in placed)
        placed = _before_pending([place for place in mended if place is not None], messages)
        grouping = group([place.message for place in placed])  # what is text now may stand between call and results
    if any(fault.kind == "result_out_of_place" for fault in grouping.faults):
        placed = [part for index, place in enumerate(placed) for part in _of_one_turn(place, index, grouping)]
        grouping = group([place.message for place in placed])
        late = {fault.index for fault in grouping.faults if fault.kind == "result_out_of_place"}
        placed = [part for n, place in enumerate(placed) for part in (_apart(place) if n in late else [place])]
        grouping = group([place.message for place in placed])
    if not {"result_out_of_place", "dangling_call"} & {fault.kind for fault in grouping.faults}:
        return placed
    return _in_order(placed, grouping)


def awaited(message: Message) -> Message:
    """A message whose calls all want their results at once, for a provider that knows no others."""
    if not any(call.is_async for call in message.tool_calls):
        return message
    parts = [
        replace(part, source={**part.source, "async": False, "async_": False}, edited=True)
        if isinstance(part, ToolCall) and part.is_async
        else part
        for part in message.parts
    ]
    return message.with_parts(tuple(parts))


def answer_pending(placed: Sequence[Placed]) -> list[Placed]:
    """The same list with a result for every call that still waits for one, as a provider wants it that is asked now."""
    messages = [place.message for place in placed]
    grouping = group(messages)
    # Counted, since parallel calls may share an id.
    answered = Counter(
        (caller, grouping.answered_by_name.get((index, number), part.call_id))
        for (index, number), caller in grouping.answers.items()
        if isinstance(part := messages[index].parts[number], ToolResult)
    )
    waiting: list[tuple[int, ToolCall]] = []
    for index, message in enumerate(messages):
        for call in message.tool_calls:
            if answered[index, call.id]:
                answered[index, call.id] -= 1
            elif not call.is_async:
                waiting.append((index, call))
    return _with_results(placed, {}, waiting) if waiting else list(placed)


def _answers(message: Message, index: int, grouping: Grouping) -> list[tuple[str, str]]:
    """(call id, text) of the results in a message that answer a call."""
    return [
        (part.call_id, part.text)
        for number, part in enumerate(message.parts)
        if isinstance(part, ToolResult) and (index, number) in grouping.answers
    ]


def _without_orphans(
    place: Placed, called: Container[tuple[int | None, int]], known: Container[tuple[str, str]]
) -> Placed | None:
    """A message whose orphans are text; None for one that only repeats, word for word, what answered before.
    ``called``: message and part of each result that is none.
    """
    message = place.message
    results: list[Part] = []
    others: list[Part] = []
    changed = False
    for number, part in enumerate(message.parts):
        if not isinstance(part, ToolResult):
            others.append(part)
        elif (place.position, number) in called:
            results.append(part)
        else:
            changed = True
            others += () if (part.call_id, part.text) in known else as_text(part)
    if not changed:
        return place
    if not results and not others:
        return None
    if message.role == "tool" and not results:  # it held nothing else: a message of its own
        return replace(place, message=_of_user(message, others), account=AS_TEXT)
    return replace(place, message=message.with_parts((*results, *others)), account=AS_TEXT)


def _of_user(message: Message, said: Sequence[Part]) -> Message:
    """What a tool message holds, as words of the user: providers take none without a result."""
    return Message(role="user", parts=tuple(said), metadata=message.metadata)


def _before_pending(placed: list[Placed], messages: Sequence[Message]) -> list[Placed]:
    """Orphans that became messages of their own, moved out of a turn whose calls still wait for their results."""
    waiting = [found.first for found in group([place.message for place in placed]).groups if found.pending]
    if not waiting:
        return placed
    start = min(waiting)
    late, rest = list[Placed](), list[Placed]()
    for place in placed[start:]:
        is_late = place.position is not None and place.message.role != messages[place.position].role
        (late if is_late else rest).append(place)
    return [*placed[:start], *(replace(place, moved=True) for place in late), *rest]


def as_text(result: ToolResult) -> list[Part]:
    """A tool result as parts that any message may carry, between borders: what it says are no words of a user."""
    from contextfold import quoting  # compiles patterns that most conversations never need

    call_id, name = quoting.word(result.call_id), quoting.word(result.name or "")
    heading = ORPHAN.format(call_id=call_id, name=f" ({name})" if name else "")
    inner: list[Part] = [
        Text(quoting.without_marks(part.text)) if isinstance(part, Text) else replace(part, source=None)
        for part in result.content
    ]
    end = ORPHAN_END.format(call_id=call_id)
    if inner and isinstance(inner[-1], Text):
        return [Text(heading), *inner[:-1], Text(f"{inner[-1].text}\n{end}")]
    return [Text(heading), *inner, Text(end)]


def _of_one_turn(place: Placed, index: int, grouping: Grouping) -> list[Placed]:
    """A message without the results of earlier turns than the last one it answers, and these in messages behind it."""
    message = place.message
    caller_of = {n: grouping.answers[index, n] for n in range(len(message.parts)) if (index, n) in grouping.answers}
    # The latest turn first, because results of calls with one id belong to the nearest.
    callers = sorted(set(caller_of.values()), reverse=True)
    if len(callers) < 2:
        return [place]
    rest = tuple(part for n, part in enumerate(message.parts) if caller_of.get(n, callers[0]) == callers[0])
    parted = [replace(place, message=message.with_parts(rest), account=PARTED)]
    results: dict[int, list[Part]] = {}
    for n, caller in caller_of.items():
        results.setdefault(caller, []).append(message.parts[n])
    for caller in callers[1:]:
        parted.append(Placed(message.with_parts(tuple(results[caller])), None, moved=True))
    return parted


def _apart(place: Placed) -> list[Placed]:
    """A message whose results come late, without them, and these in one behind it that can be moved."""
    message = place.message
    words = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if not words:
        return [place]
    results = tuple(part for part in message.parts if isinstance(part, ToolResult))
    rest = _of_user(message, words) if message.role == "tool" else message.with_parts(words)
    return [replace(place, message=rest, account=PARTED), Placed(message.with_parts(results), None, moved=True)]


def _in_order(messages: Sequence[Placed], grouping: Grouping) -> list[Placed]:
    """Each misplaced or missing result goes to the end of the results that follow its last call."""
    misplaced = {fault.index for fault in grouping.faults if fault.kind == "result_out_of_place"}
    waiting: dict[int, list[Placed]] = {}  # call's place -> results to put behind it
    last_caller: dict[int, int] = {}
    for (index, _), caller in grouping.answers.items():
        last_caller[index] = max(caller, last_caller.get(index, 0))
    for index in sorted(misplaced):
        waiting.setdefault(last_caller[index], []).append(replace(messages[index], moved=True))
    missing = Counter((fault.index, fault.detail) for fault in grouping.faults if fault.kind == "dangling_call")
    dangling: list[tuple[int, ToolCall]] = []
    for index in sorted({index for index, _ in missing}):
        for call in messages[index].message.tool_calls:  # in their order, which tells them apart where ids do not
            if missing[index, call.id]:
                missing[index, call.id] -= 1
                dangling.append((index, call))
    return _with_results(messages, waiting, dangling, misplaced)


def _with_results(
    messages: Sequence[Placed],
    waiting: dict[int, list[Placed]],
    dangling: Sequence[tuple[int, ToolCall]],
    misplaced: Container[int] = (),
) -> list[Placed]:
    """The ``waiting`` results behind their calls, and behind each dangling call (the index of its message, the call) a
    result that says that there is none.
    """
    mended = list(messages)
    for index, call in dangling:
        if call.local == ANSWERED_BY_SCREENSHOT:
            mended[index] = _in_words(mended[index], call)
        else:
            waiting.setdefault(index, []).append(Placed(_unanswered(call), None))
    return _behind_their_calls(mended, waiting, misplaced)


def _behind_their_calls(
    messages: Sequence[Placed], waiting: Mapping[int, Sequence[Placed]], misplaced: Container[int] = ()
) -> list[Placed]:
    """Each waiting result among the results that follow the message (by index) with its call, in the order of the
    calls: without ids, Gemini takes no other.
    """
    ordered: list[Placed] = []
    due: list[Placed] = []
    answered: set[str] = set()  # the ids of their calls
    ranks: dict[str, int] = {}
    start, speaker = 0, ""
    for index, place in enumerate(messages):
        if index in misplaced:
            continue
        message = place.message
        # An item of the assistant behind one of its own is of the same turn, and behind results of the next.
        speaks_on = message.split and message.role == speaker == "assistant"
        # Two open calls of one id could not be told apart, so the first gets its result before the second is made.
        is_again = any(call.id in answered for call in message.tool_calls)
        if is_again or not (message.tool_results or speaks_on):
            _insert(due, ordered, start, ranks)
            due, answered, ranks = [], set(), {}
        ordered.append(place)
        for call in message.tool_calls:
            ranks.setdefault(call.id, len(ranks))
        start = len(ordered) if message.tool_calls else start
        due += waiting.get(index, ())
        answered.update(result.call_id for result in _results(waiting.get(index, ())))
        speaker = message.role
    _insert(due, ordered, start, ranks)
    return ordered


def _insert(due: Sequence[Placed], ordered: list[Placed], start: int, ranks: Mapping[str, int]) -> None:
    """Put results among those that begin at ``start``: before the first message that answers only later calls."""

    def answered(place: Placed) -> list[int]:
        return [ranks.get(result.call_id, len(ranks)) for result in place.message.tool_results]

    def firsts(places: Iterable[Placed]) -> Iterator[int]:
        return (min(answered(place), default=-1) for place in places)

    # The highest so far at each place only grows, so the first message above a rank is found without looking at all.
    highest = list(accumulate(firsts(ordered[start:]), max)) if due else []
    for place in due:
        at = bisect_right(highest, max(answered(place), default=len(ranks)))
        ordered.insert(start + at, place)
        highest.insert(at, max(*firsts([place]), highest[at - 1] if at else -1))


def _results(placed: Iterable[Placed]) -> Iterator[ToolResult]:
    return (result for place in placed for result in place.message.tool_results)


def _unanswered(call: ToolCall) -> Message:
    said = (Text(UNANSWERED),)
    result = ToolResult(call.id, said, name=call.name, custom=call.custom, local=call.local, called=call.source)
    return Message(role="tool", parts=(result,))


def _in_words(place: Placed, call: ToolCall) -> Placed:
    from contextfold import quoting  # compiles patterns that most conversations never need

    text = Text(CALLED.format(name=quoting.word(call.name), arguments=call.arguments or "nothing"))
    parts = tuple(text if part is call else part for part in place.message.parts)
    return replace(place, message=place.message.with_parts(parts), account=UNANSWERABLE)
