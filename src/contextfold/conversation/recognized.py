"""Whether messages are a known conversation in which a client says something otherwise than before.

Clients put other files into the task at each turn, or another time into a reminder, and clear old tool results to save
room. None of it makes another conversation, for which a summary would have to be paid again.

What belongs here: comparing messages with those of before. What does not: hashes of them (``fingerprint``), and whether
a record holds (``record``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Any

from contextfold.conversation.cleared import is_cleared
from contextfold.conversation.fingerprint import CUT, SHORT_HASH, START_HASH, Saying, linked
from contextfold.json_values import same
from contextfold.messages import Message, ToolCall, ToolResult

At = Callable[[int], Message]
"""The message at a place."""
SayingAt = Callable[[int], Saying]

MOST_FIRST = 8
"""Messages that a client may keep from the beginning of a conversation while it drops those behind them; clients keep
one to six. What is gone from farther on, someone has deleted, and no summary is to go on telling of it."""
MOST_ENDS = 20
"""Places at which the newest message that is known may stand again. In a list that says one thing time and again there
are thousands, and each would be tried against all that is known.
"""
LONGEST_TRAIL = 300
"""Messages. Windows that clients keep have some ten, or a hundred; a record grows with no more."""


def goes_on(before: At, now: At, count: int, changed: Iterable[int]) -> bool:
    """Whether the first ``count`` messages are those of before, where only the ``changed`` ones, in ascending order,
    differ. They are asked for one by one: nearly all others are told apart by the first, and to read all takes long.

    What a client writes, it may write otherwise, if behind it stands a call with an id of its own: agents that did the
    same for two people differ in nothing else. Results may only have been cleared, and answers of the model stay.
    """
    differ, written = list[int](), list[int]()
    for n in changed:
        differ.append(n)
        if says_again(now(n), Saying(before(n))):
            continue
        if now(n).role == "assistant" or before(n).role != now(n).role:
            return False
        if not _is_same_or_cleared(now(n), Saying(before(n))):
            return False
        if not written and not _is_same_run(before, now, range(n + 1, count)):
            return False
        written.append(n)
    if written:
        return _is_same_run(before, now, range(written[-1] + 1, count))
    return is_same_behind(before, now, count, differ, differ)


def is_same_behind(before: At, now: At, count: int, told: Sequence[int], changed: Sequence[int]) -> bool:
    """Whether the first ``count`` messages, where the ``changed`` ones differ, go on as before behind what was cleared
    in those that were ``told`` of. What a placeholder stands for, another one's conversation has as well: an id of its
    own tells them apart, or else that the client has only cleared, and what tools have answered since.
    """
    cleared = [n for n in told if Saying(now(n)).all != Saying(before(n)).all]
    behind = range(cleared[-1] + 1 if cleared else count, count)
    if not cleared or _is_same_run(before, now, behind):
        return True
    answered = (n for n in behind if is_telling(before(n)))
    only_cleared = all(says_again(now(n), Saying(before(n))) for n in changed)
    return only_cleared and any(Saying(now(n)).all == Saying(before(n)).all for n in answered)


def is_telling(message: Message) -> bool:
    """Whether what a tool answered in it may tell one conversation from another: "saved" stands in many, and so does
    what clients put in the place of results.
    """
    results = message.tool_results
    return any(len(one.text) >= _TELLING and not is_cleared(one, begins_as_before=True) for one in results)


_TELLING = 80
"""Characters."""


def _is_same_run(before: At, now: At, places: Sequence[int]) -> bool:
    """Whether the newest call in these places is the very same one, by an id of its own. Older ones may be examples
    that stand at the beginning of each conversation.
    """
    newest = next((n for n in reversed(places) if before(n).tool_calls), None)
    return newest is not None and has_own_id(before(newest)) and ids_of(now(newest)) == ids_of(before(newest))


def trail_of(messages: Sequence[Message], saying: SayingAt, start: int = 0) -> list[str]:
    """A short hash of each message from ``start`` on: of what it says, in whatever form, the ids that are its own, and
    how far before it the calls stand that it answers.
    """
    links = linked(messages)
    own = (ids_of(one) if has_own_id(one) else [] for one in messages[start:])
    return [saying(n).short(ids, links[n]) for n, ids in enumerate(own, start)]


def is_same_left(before: At, now: At, gone: range, count: int) -> bool:
    """Whether what is left of the ``count`` messages of before, when a client has dropped these, tells which
    conversation it is, by an id of its own: agents that did the same for two people may differ in nothing but what is
    gone.
    """
    left = range(count - 1, gone.stop - 1, -1)
    newest = next((before(n) for n in left if before(n).tool_calls), None)
    if newest is not None and has_own_id(newest):
        return True
    answered = ((before(n).id or "", now(n - len(gone)).id) for n in left if before(n).role == "assistant")
    return any(id == other and _is_random(id) for id, other in answered)


def dropped(
    told: Sequence[Any], now: Sequence[Any], covers: int, start: int, first: int | None, *, more: bool = True
) -> range | None:
    """The oldest of the first ``covers`` messages of before, which a client has dropped: all else of them is there as
    it was. ``told`` and ``now``: the newest of these, and the messages now, or their trails. Before what is dropped may
    stand ``start`` instructions, all messages up to the ``first`` one of a user, or ``more`` of the oldest.

    None where anything else differs, nothing is left, or it is not certain which are gone.
    """
    missing, common = covers - len(told), start
    if missing <= start:  # how it began is known
        pairs = zip(told[start - missing :], now[start:covers], strict=False)
        common += sum(1 for _ in takewhile(lambda pair: same(*pair), pairs))
    usual = {start} if first is None or common <= first else {start, first + 1}
    # Only then the most that both begin with: a window may by chance begin as the whole does.
    found = _without(usual, told, now, covers)
    if not found and more and common <= start + MOST_FIRST:
        found = _without({common}, told, now, covers)
    return found.pop() if len(found) == 1 else None


def brought_back(
    told: Sequence[Any], now: Sequence[Any], start: int, first: int | None, *, more: bool = True
) -> range | None:
    """What stands in ``now`` that was ``dropped`` before: without it, it begins with all of ``told``. None where
    anything else differs.
    """
    ends = (end for end in range(len(told) + 1, len(now) + 1) if same(now[end - 1], told[-1]))
    for end in islice(ends, MOST_ENDS):
        back = dropped(now[:end], told, end, start, first, more=more)
        if back is not None and len(back) == end - len(told):
            return back
    return None


def _without(beginnings: Iterable[int], told: Sequence[Any], now: Sequence[Any], covers: int) -> set[range]:
    """What may have been dropped behind one of these beginnings."""
    missing, found = covers - len(told), set[range]()
    for head in beginnings:
        for left in range(min(len(now), covers - max(1, missing - head)), head, -1):
            gone = covers - left
            ends_so = same(now[left - 1], told[-1])  # most do not
            if ends_so and _are_same(now[head:left], told[head + gone - missing :]):
                found.add(range(head, head + gone))
    return found


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(map(same, some, others))


def ids_of(message: Message) -> list[str]:
    """The ids of its calls."""
    return [call.id for call in message.tool_calls]


def says_again(new: Message, old: Saying) -> bool:
    """Whether a message says what another one said, but for what the client has cleared since."""
    now = Saying(new)
    return now.all == old.all or (now.beside == old.beside and _is_same_or_cleared(new, old))


def _is_same_or_cleared(new: Message, old: Saying) -> bool:
    now = Saying(new)
    are_left = set(hashes(now.media)) <= set(hashes(old.media))
    return are_left and same_or_cleared(clearable(new), now.clearable, old.clearable, now.begins)


def has_own_id(message: Message) -> bool:
    """Whether a call in it has an id that no call of another conversation has: a random one, as most providers give
    them, and none that is made of the tool's name and a number.
    """
    return any(_is_random(call.id.replace(call.name, " ")) for call in message.tool_calls)


def _is_random(name: str) -> bool:
    """Whether digits stand amid letters, or small letters, capitals and digits take turns more often than in words."""
    if _RANDOM.search(name) is not None:
        return True
    for word in _WORD.findall(name):
        runs = [len(run) for run in _RUN.findall(word)]
        if any(sum(runs[n + 1 : n + 5]) <= _CLOSE for n in range(len(runs) - 5)):
            return True
    return False


_AMID = r"(?:[0-9]{1,9}[A-Za-z]+[0-9]|[A-Za-z]{1,9}[0-9]+[A-Za-z])"
_RANDOM = re.compile(rf"(?=[A-Za-z0-9]{{9}}){_AMID}|^call_(?=[a-z0-9]{{8}}$)[a-z0-9]*?{_AMID}")
"""Ollama's have eight characters behind ``call_``."""
_WORD = re.compile(r"[A-Za-z0-9]{9,}")
_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_CLOSE = 7
"""Characters of four such runs between two more: Mistral's ids have nine in all."""


def clearable(message: Message) -> list[ToolCall | ToolResult]:
    """The parts of a message that clients clear, as ``Saying.clearable`` has them."""
    return [part for part in message.parts if isinstance(part, ToolCall | ToolResult)]


def hashes(short: str, size: int = SHORT_HASH) -> list[str]:
    """The short hashes of a ``Saying``, or of a trail, one by one."""
    return [short[at : at + size] for at in range(0, len(short), size)]


def same_or_cleared(parts: Sequence[ToolCall | ToolResult], now: str, before: str, begins: str) -> bool:
    """Whether each of these says what it said before, or was cleared since. ``now`` and ``before``: their hashes;
    ``begins``: as ``Saying.begins``.
    """
    return len(now) == len(before) and all(
        new[:-START_HASH] == old[:-START_HASH]
        or is_cleared(part, begins_as_before=begin == old[-START_HASH:], was_cut=old.endswith(CUT))
        for part, new, old, begin in zip(parts, hashes(now), hashes(before), hashes(begins, START_HASH), strict=True)
    )
