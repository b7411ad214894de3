"""What stands or falls together, and what is broken.

A group is an assistant turn with its reasoning and tool calls, and all results of those calls wherever they
stand; every other message is a group of its own. Planning, splitting and evicting take whole groups, so no
step can part a call from its result.

The rules, each a reason for two messages to share a group:

1. a tool result belongs to the nearest earlier call with its id that has no result yet; where a function and a custom
   tool were called with one id, to the call of its own kind; one that has no id of its own (``is_unnamed``), to the
   first call of its function in the last turn with calls;
2. assistant messages with the same message id are one turn (session files write one row per block), up to what a user
   says, or the model behind results, and behind results no more than ``MOST_ROWS``: some servers give all answers one
   id. Entries of a format as in 3 are not: there an id names an entry;
3. consecutive entries of a format that splits a turn over several entries are one turn;
4. what a provider runs over several messages (``runs``) is one from its beginning to its result, with the calls that it
   makes;
5. a result whose call is not in the list belongs to the nearest item that stands for one that the provider keeps, if no
   result has taken that yet: it may stand for the call.

A call that the model did not wait for (``ToolCall.is_async``) and its result are two groups, with all that was said
meanwhile between them.

What belongs here: groups, and the faults of a history that follow from the same pass (calls without result,
results without call, duplicate ids, results out of place). What does not: mending them (``repair``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from contextfold.conversation.runs import run_of
from contextfold.messages import Message, Opaque, Part, ToolCall, ToolResult

_REFERENCE = "item_reference"
_NO_CALLS = ("rs_", "msg_")
"""How OpenAI's ids begin of what is no call: reasoning and words."""

MOST_ROWS = 16
"""Of one turn. So many calls at once are rare, and a turn stays whole or leaves the view whole."""

FaultKind = Literal["dangling_call", "orphan_result", "duplicate_call_id", "result_out_of_place", "empty_message"]


@dataclass(frozen=True, slots=True)
class Group:
    """Indices into the history, ascending. ``pending``: a call waits for its result and nothing was said since."""

    indices: tuple[int, ...]
    pending: bool = False

    @property
    def first(self) -> int:
        return self.indices[0]

    @property
    def last(self) -> int:
        return self.indices[-1]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something a provider would stumble over. ``index`` is the message, ``detail`` the call id or a size."""

    kind: FaultKind
    index: int
    detail: str = ""

    def __str__(self) -> str:
        return f"message {self.index}: {self.kind.replace('_', ' ')}" + (f" {self.detail!r}" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups in order of their first message, and who is in which.

    ``answers`` maps (message index, part index) of each tool result to the message index of its call;
    a result that is not in it is an orphan.
    """

    groups: tuple[Group, ...]
    group_of: tuple[int, ...]
    answers: dict[tuple[int, int], int]
    faults: tuple[Fault, ...]
    answered_by_name: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """(message index, part index) of each result that named no call -> the id of the call that it answers."""
    of_references: frozenset[tuple[int, int]] = frozenset()
    """(message index, part index) of each result whose call may be one that an item stands for, which the provider
    keeps. It is not among ``answers``, since nothing is known of the call."""

    def cuts(self) -> frozenset[int]:
        """All positions between messages that no group reaches over, both ends of the history included."""
        legal, reach = set(), 0
        for position in range(len(self.group_of) + 1):
            if reach <= position:
                legal.add(position)
            if position < len(self.group_of):
                reach = max(reach, self.groups[self.group_of[position]].last + 1)
        return frozenset(legal)


def group(messages: Sequence[Message]) -> Grouping:
    """Group a whole history in one pass. Never fails: what is broken is named in ``faults``."""
    return Walk(messages).result()


class Walk:
    """A walk over a history, which goes on from where it was when the history has grown: see ``group``."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.parent: list[int] = []
        self.unanswered: dict[tuple[str, bool], list[int]] = {}
        """The messages of calls without a result so far, oldest first, by id and whether the tool is a custom one."""
        self.called: set[str] = set()
        self.last_calls: dict[str, deque[ToolCall]] = {}
        """Those of the last message that has any, by function; answered ones may have been taken off."""
        self.last_caller = -1
        """That message."""
        self.turns: dict[str, tuple[int, int]] = {}  # message id -> the first message of that turn, and how many it has
        self.last_other = -1
        """The newest message that is neither a result nor an entry of a turn that is split over several."""
        self.at_work: dict[str, int] = {}  # id of an async call without a result so far -> its message
        self.came_later: list[tuple[int, int]] = []
        """The messages of async calls, and of their results."""
        self.running: dict[str, int] = {}  # id of a run without a result so far -> the message that began it
        self.answers: dict[tuple[int, int], int] = {}
        self.answered_by_name: dict[tuple[int, int], str] = {}
        self.referenced: list[int] = []
        """The messages of items that may stand for a call, and that no result has taken so far."""
        self.of_references: set[tuple[int, int]] = set()
        self.faults: list[Fault] = []

    def result(self) -> Grouping:
        """The groups of all messages that are there by now."""
        start, end = len(self.parent), len(self.messages)
        self.parent += range(start, end)
        for index in range(start, end):
            message = self.messages[index]
            self._join_turn(index, message)
            self._match_parts(index, message)
            if not message.tool_results and not (message.split and message.role == "assistant"):
                self.last_other = index
            if message.is_empty:
                self.faults.append(Fault("empty_message", index))
        return self._grouping()

    def _join_turn(self, index: int, message: Message) -> None:
        if message.is_user_turn:
            self.turns.clear()
        if message.role != "assistant":
            return
        before = self.messages[index - 1] if index else None
        if message.split and before is not None and before.split and before.role == "assistant":
            self._union(index - 1, index)
        # OpenAI's Agents SDK gives everything that a model of another API answers the id `__fake_id__`.
        if message.id is not None and not message.split:
            first, count = self.turns.get(message.id, (index, 0))
            is_behind_results = before is not None and bool(before.tool_results)
            if is_behind_results and (count >= MOST_ROWS or message.text.strip()):
                first, count = index, 0
            self.turns[message.id] = first, count + 1
            self._union(first, index)

    def _match_parts(self, index: int, message: Message) -> None:
        if calls := message.tool_calls:
            self.last_calls, self.last_caller = {}, index
            for call in calls:
                self.last_calls.setdefault(call.name, deque()).append(call)
        for number, part in enumerate(message.parts):
            self._follow_run(index, part)
            if isinstance(part, ToolCall):
                if part.id in self.called and not part.unnamed:
                    self.faults.append(Fault("duplicate_call_id", index, part.id))
                self.called.add(part.id)
                if part.is_async:
                    self.at_work[part.id] = index
                    continue
                self.unanswered.setdefault((part.id, part.custom), []).append(index)
            elif isinstance(part, ToolResult):
                self._match_result(index, number, part)
            elif _may_stand_for_call(part):
                self.referenced.append(index)

    def _follow_run(self, index: int, part: Part) -> None:
        found = run_of(part)
        if found is None:
            return
        place, run = found
        if place == "begins":
            self.running[run] = index  # of two with one id, a result belongs to the nearer one
            return
        begun = self.running.get(run) if place == "inside" else self.running.pop(run, None)
        if begun is not None:
            self._union(begun, index)

    def _match_result(self, index: int, number: int, result: ToolResult) -> None:
        if result.call_id in self.at_work:
            self.answers[index, number] = caller = self.at_work.pop(result.call_id)
            self.came_later.append((caller, index))
            return
        waiting = self._waiting(result.call_id, custom=result.custom)
        if not waiting and (call := self._of_function(index, result)) is not None:
            self.answered_by_name[index, number] = call.id
            waiting = self._waiting(call.id, custom=result.custom)
        if not waiting and self.referenced:
            self._union(self.referenced.pop(), index)
            self.of_references.add((index, number))
            return
        if not waiting:
            self.faults.append(Fault("orphan_result", index, result.call_id))
            return
        caller = waiting.pop()
        self.answers[index, number] = caller
        self._union(caller, index)
        if self.last_other > caller:  # not the results and the rest of the turn alone stand between
            self.faults.append(Fault("result_out_of_place", index, result.call_id))

    def _waiting(self, call_id: str, *, custom: bool) -> list[int]:
        """The calls that a result may answer: of another kind rather than of none, as clients mix the two up, and an
        orphan would lose its place behind the call.
        """
        return self.unanswered.get((call_id, custom)) or self.unanswered.get((call_id, not custom)) or []

    def _of_function(self, index: int, result: ToolResult) -> ToolCall | None:
        """The call that a result without an id answers: the first one of its function without a result."""
        named = self.last_calls.get(result.name or "") if result.is_unnamed else None
        if named is None:
            return None
        # Of a message that is read to its end, a call that does not wait now never will again.
        while index > self.last_caller and named and not self._waiting(named[0].id, custom=False):
            named.popleft()
        return next((call for call in named if self._waiting(call.id, custom=False)), None)

    def _union(self, one: int, other: int) -> None:
        # The lowest index is the root: groups come out in the order of their first message.
        low, high = sorted((self._find(one), self._find(other)))
        self.parent[high] = low

    def _find(self, index: int) -> int:
        while self.parent[index] != index:
            # Each step halves the path, or one turn of thousands of rows would take quadratic time.
            self.parent[index] = self.parent[self.parent[index]]
            index = self.parent[index]
        return index

    def _grouping(self) -> Grouping:
        members: dict[int, list[int]] = {}  # by root, in the order of the roots: each is the first of its group
        for index, parent in enumerate(self.parent):
            if parent == index:
                members[index] = [index]
            else:
                members[self._find(index)].append(index)
        open_calls = [index for calls in self.unanswered.values() for index in calls]
        waiting = {self._find(index): index for index in sorted([*open_calls, *self.running.values()])}
        speakers = range(len(self.messages) - 1, -1, -1)
        last_spoken = next((n for n in speakers if self.messages[n].role == "assistant"), -1)
        # A result that the model has not read yet says more beside its call.
        unread = [call for call, result in self.came_later if result > last_spoken]
        at_work = {self._find(index) for index in (*self.at_work.values(), *unread)}
        groups: list[Group] = []
        group_of = [0] * len(self.messages)
        for root, indices in members.items():
            # Once the assistant spoke elsewhere, no result is coming any more: an abandoned call must not hold its
            # group for good.
            pending = root in waiting and (last_spoken <= waiting[root] or last_spoken in indices)
            pending = pending or root in at_work
            for index in indices:
                group_of[index] = len(groups)
            groups.append(Group(tuple(indices), pending))
        faults = self._all_faults(groups, group_of)
        # copies: the walk goes on
        named, referred = dict(self.answered_by_name), frozenset(self.of_references)
        return Grouping(tuple(groups), tuple(group_of), dict(self.answers), faults, named, referred)

    def _newest_beside(self, group: Group) -> int:
        """The newest message outside of a group that is no result: calls before it get none any more, an ordinary state
        after a crash.
        """
        own = set(group.indices)
        places = range(len(self.messages) - 1, -1, -1)
        return next((n for n in places if n not in own and not self.messages[n].tool_results), -1)

    def _all_faults(self, groups: list[Group], group_of: list[int]) -> tuple[Fault, ...]:
        waiting = [(index, call_id) for (call_id, _), calls in self.unanswered.items() for index in calls]
        # The group may still be pending, since the agent has not spoken: it stays, and is sent with a placeholder.
        pending = {number for number in (group_of[index] for index, _ in waiting) if groups[number].pending}
        beside = {number: self._newest_beside(groups[number]) for number in pending}
        dangling = [
            Fault("dangling_call", index, call_id)
            for index, call_id in waiting
            if index < beside.get(group_of[index], len(self.messages))
        ]
        return tuple(sorted([*self.faults, *dangling], key=lambda fault: (fault.index, fault.kind, fault.detail)))


def _may_stand_for_call(part: Part) -> bool:
    if not isinstance(part, Opaque) or part.label != _REFERENCE or not isinstance(part.source, Mapping):
        return False
    return not str(part.source.get("id")).startswith(_NO_CALLS)


MOST_TOLD = 5
"""Faults in one line."""


def told_of(faults: Iterable[Fault], added: Sequence[str]) -> str:
    """Faults and what was put in for them in a line: those of one kind in one message as their number, since of sixteen
    calls without results, ids say nothing.
    """
    alike: dict[tuple[int, FaultKind], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.index, fault.kind), []).append(fault)
    said = [
        str(some[0]) if len(some) == 1 else f"message {index}: {len(some)} {_plural(kind)}"
        for (index, kind), some in sorted(alike.items())
    ]
    said += added
    more = f" and {len(said) - MOST_TOLD} more" if len(said) > MOST_TOLD else ""
    return "; ".join(said[:MOST_TOLD]) + more


def _plural(kind: FaultKind) -> str:
    words = kind.replace("_", " ")
    return words.replace("result", "results") if "result" in words else f"{words}s"
