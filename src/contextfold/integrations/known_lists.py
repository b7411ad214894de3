"""Which conversation a list of items belongs to, where a framework does not say it.

A list belongs to the known conversation with which it has the longest beginning in common, if that beginning reaches at
least as far as the record in force covers. What the instructions at its beginning say does not count, nor what other
messages say that stand in the view word for word, where all else goes on; nor what its client has dropped to save room,
where an id tells that it is the same. So one face serves any number of runs at a time; a conversation that was rewound
or forked keeps its record as long as what it covers is there, and a list that is like no other is a new one.

What belongs here: recognizing lists by what is in them. What does not: views.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, TypeVar

from contextfold import formats
from contextfold.conversation.fingerprint import Saying
from contextfold.conversation.history import History
from contextfold.conversation.pins import first_user
from contextfold.conversation.recognized import has_own_id, ids_of, is_same_behind, is_telling, says_again
from contextfold.formats.base import Format
from contextfold.integrations.bounded import Bounded
from contextfold.json_values import same
from contextfold.messages import Message
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration, TokenCounter

T = TypeVar("T")

REMEMBERED = 64
"""Conversations. Each holds its items."""


@dataclass(frozen=True, slots=True)
class KnownItems:
    """A conversation as its last call had it."""

    key: Any
    items: list[Any]
    record: Compaction | None = None
    calibration: Calibration | None = None
    cleared: int = -1
    """Where the last item stands of which the record may tell what its client has cleared since."""


class KnownLists:
    """The conversations that one face serves. Safe for concurrent use."""

    def __init__(self, format: Format, size: int = REMEMBERED) -> None:
        self._known: Bounded[KnownItems] = Bounded(size)
        self._lock = threading.Lock()
        self._count = 0
        self._format = format
        self._size = size

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._format, self._size)

    def of(self, items: Sequence[Any]) -> KnownItems:
        """The conversation of these items, with the items; what it had before are the very objects of before, since
        the framework makes equal copies for each call.
        """
        best, common = None, 0
        for known in self._known.all():
            alike = shared(known.items, items)
            # Without a record the known list has to be there whole: two conversations may well begin alike.
            least = known.record.covers if known.record is not None else len(known.items)
            if alike > common and alike >= least and self._is_certain(known, alike):
                best, common = known, alike
        # Another run of the same task, or a fork of its first turns, may stand at the beginning of a longer one, in
        # which its client has changed what stands behind that.
        may_be_another = best is None or self._has_more_than_a_turn(items, common)
        if best is None or may_be_another or common < len(best.items):  # as it was once, or with something else in it
            changed = [
                known for known in self._known.all() if len(known.items) > common and self._goes_on(known, items)
            ]
            if changed:
                return self._with_cleared(max(changed, key=lambda known: len(known.items)), items)
        if may_be_another and (left := self.left(items)) is not None:
            return left
        if best is None:
            with self._lock:
                self._count += 1
                return KnownItems(self._count, list(items))
        # A fork gets a key of its own, so that the other branch stays what it is.
        forked = common < len(best.items)
        with self._lock:
            self._count += 1
            key = self._count if forked else best.key
        return replace(best, key=key, items=as_known(best.items, items, common))

    def _has_more_than_a_turn(self, items: Sequence[Any], start: int) -> bool:
        """Whether the model answers more than once from an item on, which no next turn brings."""
        is_models = (self._format.decode(items[n]).role == "assistant" for n in range(start, len(items)))
        return sum(islice((1 for is_answer, _ in groupby(is_models) if is_answer), 2)) > 1

    def _goes_on(self, known: KnownItems, items: Sequence[Any]) -> bool:
        """Whether items differ from the known ones, as far as these go, in nothing but what the client says in messages
        that its view has word for word: files in the task, or a reminder, which may be others at each turn; and in old
        results and arguments, in other places too, which it may have cleared since.
        """
        altered = known.record.altered if known.record is not None else ()
        count = len(known.items)
        if not altered or count > len(items):
            return False

        def before(n: int) -> Message:
            return self._format.decode(known.items[n])

        def now(n: int) -> Message:
            return self._format.decode(items[n])

        changed, written = list[int](), list[int]()
        for n in range(count):  # nearly all others are told apart by the first that differs
            if same(known.items[n], items[n]):
                continue
            if _role(known.items[n]) != _role(items[n]):
                return False
            changed.append(n)
            if n not in altered and _is_callers(items[n]):
                continue
            if ids_of(now(n)) != ids_of(before(n)) or not says_again(now(n), Saying(before(n))):
                return False
            written.append(n)
        return is_same_behind(before, now, count, written, changed)

    def _is_certain(self, known: KnownItems, common: int) -> bool:
        """Whether the first items tell which conversation it is, where its record tells what they do not say any more:
        agents that did the same for two people differ in nothing else, if the ids of their calls are no random ones.
        """
        if known.cleared < 0:
            return True
        # From the newest back, and no further than what tells it.
        read = (self._format.decode(known.items[n]) for n in range(common - 1, known.cleared, -1))
        if any(map(is_telling, read)):
            return True
        read = (self._format.decode(known.items[n]) for n in range(common - 1, -1, -1))
        newest = next((message for message in read if message.tool_calls), None)
        return newest is not None and has_own_id(newest)

    def _with_cleared(self, known: KnownItems, items: Sequence[Any]) -> KnownItems:
        """The conversation with what its client says now."""
        decode = self._format.decode
        differ = [n for n, (old, new) in enumerate(zip(known.items, items, strict=False)) if not same(old, new)]
        cleared = [n for n in differ if Saying(decode(known.items[n])).all != Saying(decode(items[n])).all]
        return replace(known, items=list(items), cleared=max([known.cleared, *cleared]))

    def left(self, items: Sequence[Any]) -> KnownItems | None:
        """The conversation of which a client has dropped the oldest items, without them: nothing else tells of those
        but its record.
        """
        with_record = [(known.items, known) for known in self._known.all() if known.record is not None]
        found = left_of(with_record, items, self._format)
        if found is None:
            return None
        known, gone = found
        left = [*known.items[: gone.start], *known.items[gone.stop :]]
        return replace(known, items=as_known(left, items, len(left)))

    def keep(self, conversation: KnownItems) -> None:
        """Remember a conversation as it is now."""
        self._known.put(conversation.key, conversation)


def _role(item: Any) -> Any:
    return item.get("role") if isinstance(item, dict) else getattr(item, "role", None)


def _is_callers(item: Any) -> bool:
    return _role(item) in ("user", "system", "developer")


def is_same_list(items: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two lists have the very same objects."""
    return len(items) == len(others) and all(map(operator.is_, items, others))


def has_all(sent: Sequence[Any], view: Sequence[Any]) -> bool:
    """Whether all objects of a view are in what was sent, so that its usage is that of the view. What a framework's
    hooks add goes out each time, and counts; what they take out makes it the usage of another view.
    """
    there = set(map(id, sent))
    return all(id(item) in there for item in view)


def shared(known: Sequence[Any], items: Sequence[Any]) -> int:
    """How many items both begin with, whatever the instructions among them say; none if they are these alone."""
    start = formats.opening(known)
    if formats.opening(items) != start:
        return 0
    common = start
    for one, other in zip(known[start:], items[start:], strict=False):
        # Identity first: most items are the very objects of before, and comparing long contents takes time.
        if one is not other and not same(one, other):
            break
        common += 1
    return common if common > start else 0


def left_of(known: Sequence[tuple[Sequence[Any], T]], items: Sequence[Any], format: Format) -> tuple[T, range] | None:
    """The first of the known lists of which these items are the rest, perhaps with more behind it, and which of its
    items a client has dropped; None where an id tells of none that it is the same conversation.
    """

    def read(items: Sequence[Any]) -> History:
        history = History(format, TokenCounter())
        history.extend(items)
        return history

    def said(entry: Sequence[Any]) -> list[bytes]:
        history = read(entry)
        return [history.digest_at(n) for n in range(len(entry))]

    now, told, start = None, set[bytes](), formats.opening(items)
    oldest = said(items[start : start + 1])
    for before, one in known:
        newest, place = said(before[-1:]), len(before) - 1
        if oldest == said(before[start : start + 1]) and newest == said(items[place : place + 1]):
            return None  # all is there, as nearly always: reading it again at each turn would take time
        now = now or read(items)
        told = told or {now.digest_at(n) for n in range(len(items))}
        # Nearly all others are told apart by their newest items: to read all of them holds up what else is to be done.
        if not told.issuperset(newest) or not _may_end(format, before[start:], now.messages[start:]):
            continue
        if (gone := read(before).left_in(now)) is not None:
            return one, gone
    return None


_LOOKED_AT = 8
"""Items at the end of a known list that are compared before all of it is read."""


def _may_end(format: Format, before: Sequence[Any], now: Sequence[Message]) -> bool:
    """Whether the newest of the items of before stand one behind the other among the messages now, as far as the client
    may have left them.
    """
    newest = [format.decode(item) for item in reversed(before[-_LOOKED_AT:])]
    first = first_user(now) or 0  # a client that drops its oldest messages may keep all up to this one

    def are_there(end: int) -> bool:
        there = reversed(now[max(first + 1, end - len(newest)) : end])
        return all(_says_as(one, other) for one, other in zip(newest, there, strict=False))

    last = newest[:1]
    return any(are_there(n + 1) for n, message in enumerate(now) if all(_says_as(one, message) for one in last))


def _says_as(one: Message, other: Message) -> bool:
    return one.role == other.role and Saying(one).all == Saying(other).all and _own_ids(one) == _own_ids(other)


def _own_ids(message: Message) -> list[str]:
    return ids_of(message) if has_own_id(message) else []


def as_known(known: Sequence[Any], items: Sequence[Any], common: int) -> list[Any]:
    """The items, with the known objects in place of the first ``common``, by which the engine recognizes them."""
    start = formats.opening(items)
    return [*items[:start], *known[start:common], *items[max(start, common) :]]
