"""Messages of a history that was a view: where roles alternate, a summary stands in one with the words around it.

    opening │ summary of an earlier pass │ words that had stayed │ newest words
       stays     goes into the new one        as far as they fit

What a user wrote before the summary is the message; the rest was joined to it. So a pass takes the summary out, as it
would one in a message of its own, and of the words behind it the older ones. Both are material for the new summary.

What belongs here: which parts of such a message stay, and reading those that go. What does not: joining (``formats``),
and what words of users in their own messages are worth (``decide``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from contextfold.messages import Media, Message, Text
from contextfold.passes.shorten import NOTHING, Shortening
from contextfold.record.compaction import Edit, reduce
from contextfold.summary.message import OPEN, parse
from contextfold.tiers.joined import JoinedRemoved
from contextfold.tokens import TokenCounter

TIER = JoinedRemoved.name


def is_joined(message: Message) -> bool:
    """Whether a summary of an earlier pass is one of several parts of the message."""
    return len(message.parts) > 1 and bool(_summaries(message))


def _summaries(message: Message) -> list[int]:
    return [number for number, part in enumerate(message.parts) if isinstance(part, Text) and _is_summary(part.text)]


def _is_summary(text: str) -> bool:
    return OPEN in text and parse(text) is not None


def taken_apart(
    messages: Sequence[Message], indices: Iterable[int], *, newest: int | None, room: int, counter: TokenCounter
) -> Shortening:
    """What leaves these messages where they are joined ones: summaries, and words behind one beyond ``room`` tokens.

    The latest words stay first. All behind the last summary stay in message ``newest``, which asks for the next answer.
    """
    edits: list[Edit] = []
    sizes: dict[int, int] = {}
    saved = 0
    for index in indices:
        message = messages[index]
        if not is_joined(message):
            continue
        leaving, used = _leaving(message, room, counter, keep_end=index == newest)
        room -= used
        found = [Edit(index=index, part=number, tier=TIER, limit=0) for number in leaving]
        edits += found
        sizes[index] = counter.message(reduce(message, found))
        saved += counter.message(message) - sizes[index]
    return Shortening(tuple(edits), sizes, {TIER: saved} if saved > 0 else {}) if edits else NOTHING


def _leaving(message: Message, room: int, counter: TokenCounter, *, keep_end: bool) -> tuple[list[int], int]:
    """The numbers of the parts that go, and the tokens of the words that stay behind the first summary."""
    summaries = _summaries(message)
    leaving, used = list(summaries), 0
    # By policy the summary may stand before what the user wrote: then that is the part behind it.
    opening = summaries[0] or 1
    for number in range(len(message.parts) - 1, opening, -1):
        part = message.parts[number]
        if number in summaries or not isinstance(part, Text | Media) or (keep_end and number > summaries[-1]):
            continue
        size = counter.part(part)
        if used + size > room:
            leaving.append(number)
        else:
            used += size
    return sorted(leaving), used


def removed(messages: Sequence[Message], edits: Iterable[Edit]) -> Iterator[tuple[int, Message]]:
    """What was taken out, each part as the message that it once was, with the index of the one that held it."""
    for edit in edits:
        if edit.tier == TIER:
            part = messages[edit.index].parts[edit.part]
            yield edit.index, Message(messages[edit.index].role, (part,))
