"""A history as the engine works on it: decoded once, sized once, however often it grows.

What belongs here: everything that is derived from the messages alone and worth keeping between calls. It only ever
grows at its end; a history that was edited or rewound is a new one. Not safe for concurrent use: one lock per thread
of conversation is the caller's business (``compactor``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, TypeVar

from contextfold import evidence
from contextfold.cached import cached_property
from contextfold.conversation.fingerprint import SHORT_HASH, Saying, digest, fingerprint, opening, order, shape
from contextfold.conversation.groups import Grouping, Walk
from contextfold.conversation.pins import first_user
from contextfold.conversation.recognized import (
    LONGEST_TRAIL,
    clearable,
    dropped,
    goes_on,
    hashes,
    ids_of,
    is_same_left,
    same_or_cleared,
    says_again,
    trail_of,
)
from contextfold.errors import FormatError
from contextfold.formats.base import Format
from contextfold.harness import in_place
from contextfold.json_values import same
from contextfold.messages import Message
from contextfold.tokens import CalibratedCounter, Calibration, TokenCounter

if TYPE_CHECKING:
    from contextfold.recall.memory import MemoryIndex
    from contextfold.summary.extractive_facts import Note

T = TypeVar("T")

LONGEST_OUTLINE = 4_000
"""Characters of hashes: of 500 calls and results, in no more messages. A record grows with what its view holds, and not
with the history. Clients clear results and images long before so many have followed."""

READ_TOGETHER = 100
"""Messages that are read together: most have a few lines, and to read some hundred takes little longer than few."""

MOST_MARKED_VALUES = 2_000
"""Of a wire object that is known again without decoding it. Messages have some ten values, arguments some hundred."""

COUNTED = 4096
"""Short texts whose sizes are remembered, about half a megabyte."""


class History:
    """The wire objects, their messages, and what follows from each message alone."""

    def __init__(self, format: Format, counter: TokenCounter) -> None:
        self.format = format
        self.counter = counter
        self.wire: list[Any] = []
        """The messages as a view has them: the caller's very objects, or mappings in place of an SDK's."""
        self._given: dict[int, Any] = {}
        """Those for which mappings stand."""
        self.messages: list[Message] = []
        self.sizes: list[int] = []
        self.compared = 0
        """The first ones that were not read: they equal objects that may have been changed in place since those were.
        """
        self._marks: list[object] = []
        """What tells whether a wire object is as it was; None for an object that only decoding tells of."""
        self._digests: list[bytes] = []
        self._sayings: dict[int, Saying] = {}
        """Digests of what messages say, in whatever form."""
        self.says_all = True
        """Whether what was made of it tells of nothing else: no message said something else before."""
        self._blocks: dict[int, evidence.Block] = {}
        self._clean_blocks: dict[int, evidence.Block] = {}
        self._notes: dict[int, Note] = {}
        self._said: dict[tuple[Callable[[Sequence[Message], int], Any], int], Any] = {}
        self._counted: dict[str, int] = {}

    @cached_property
    def index(self) -> MemoryIndex:
        """The words of its first messages, for who looks something up in it: filled as far as that was needed."""
        from contextfold.recall.memory import MemoryIndex

        return MemoryIndex()

    def extend(self, wire: Sequence[Any]) -> None:
        """Append wire objects. Raises ``FormatError`` and leaves the history as it was if one is not a message."""
        start = len(self.wire)
        marks = [_mark(entry) for entry in wire]
        messages = self._decoded(wire, start)
        sizes = self.counter.messages(messages)
        self._given.update(
            (n, given)
            for n, (given, own) in enumerate(zip(wire, messages, strict=True), start)
            if given is not own.source
        )
        self.wire += [message.source for message in messages]
        self._marks += marks
        self.messages += messages
        self.sizes += sizes
        self.__dict__.pop("grouping", None)  # the walk that made it goes on

    def _decoded(self, wire: Sequence[Any], start: int) -> list[Message]:
        """The messages that stand from ``start`` on. What one of them is may show in the one before it."""
        found = list[Message]()
        before = self.messages[start - 1] if start else None
        for index, entry in enumerate(wire, start):
            before = in_place(self.format.decode(entry, index), before)
            found.append(before)
        return found

    def is_like(self, offered: Offered, start: int = 0) -> bool:
        """Whether these messages seem to say what all of this history says from ``start`` on, perhaps with more behind
        it: the first, the last and one between do.
        """
        last = len(self.messages) - 1
        return start <= last < len(offered.wire) and all(
            self._as_at(n, offered) is not None for n in (start, (start + last) // 2, last)
        )

    def put_equal(self, offered: Offered, start: int = 0) -> bool:
        """Put other objects in the place of those from ``start`` on, if each says what that one says, as a caller has
        them who reads the conversation from a file at each turn. Else False, and the history is as it was.

        All that is known of them stays known.
        """
        found = list[Message]()
        for index in range(start, len(self.messages)):
            message = self._as_at(index, offered)
            if message is None:
                return False
            found.append(message)
        for index, message in enumerate(found, start):
            self._given.pop(index, None)
            if offered.wire[index] is not message.source:
                self._given[index] = offered.wire[index]
            self.wire[index], self.messages[index] = message.source, message
            self._marks[index] = mark = offered.mark(index)
            self.compared = max(self.compared, index + 1 if mark is None else 0)
        return True

    def _as_at(self, index: int, offered: Offered) -> Message | None:
        """A message that is offered for a place, if it is the one of this place in another object; else None."""
        old, known, mark = self.messages[index], self._marks[index], offered.mark(index)
        given = offered.wire[index]
        is_framework = mark is None and known is None
        if self._is_equal(index, given) if is_framework else mark == known:
            return replace(old, source=given)
        message = offered.message(index)
        if message is None or message != old or not _same_metadata(message, old):
            return None
        return in_place(message, self.messages[index - 1] if index else None)

    def _is_equal(self, index: int, given: Any) -> bool:
        """Whether an object of a framework equals the one that stands here: comparing takes a tenth of decoding."""
        own = self.wire[index]
        return type(given) is type(own) and index not in self._given and same(given, own)

    @property
    def given(self) -> list[Any]:
        """The messages as the caller gave them."""
        if not self._given:
            return self.wire
        return [self._given.get(n, entry) for n, entry in enumerate(self.wire)]

    def snapshot(self) -> History:
        """The history as it is now, for work that goes on while it grows. What is learned of a message is shared."""
        self.words  # noqa: B018  so that both have the same
        twin = copy.copy(self)
        twin.wire, twin.messages, twin.sizes = list(self.wire), list(self.messages), list(self.sizes)
        twin.__dict__.pop("_walk", None)  # it goes on with this history
        twin.__dict__.pop("_reader", None)  # another thread may read messages meanwhile
        twin._given = dict(self._given)
        twin._marks, twin._digests, twin._sayings = list(self._marks), list(self._digests), dict(self._sayings)
        return twin

    def part(self, indices: Sequence[int]) -> History:
        """The history of some of its messages, in this order. All that is known of each is taken along. Both go on with
        one vocabulary, so they are for one pass at a time.
        """
        part = History(self.format, self.counter)
        part.words, part.line_sizes = self.words, self.line_sizes  # the names and sizes of texts, whoever has them
        for place, n in enumerate(indices):
            part.wire.append(self.wire[n])
            part.messages.append(self.messages[n])
            part.sizes.append(self.sizes[n])
            part._marks.append(self._marks[n])
            if n in self._given:
                part._given[place] = self._given[n]
            part._take_along(place, self, n)
        return part

    def _take_along(self, place: int, other: History, n: int) -> None:
        """What another history knows of a message that is here, too."""
        if n in other._blocks:
            self._blocks[place] = other._blocks[n]
        if n in other._clean_blocks:
            self._clean_blocks[place] = other._clean_blocks[n]
        if n in other._notes:
            self._notes[place] = other._notes[n]
        if place == len(self._digests) and n < len(other._digests):
            self._digests.append(other._digests[n])
        if n in other._sayings:
            self._sayings[place] = other._sayings[n]

    def refresh(self, start: int = 0, stop: int | None = None) -> bool:
        """Decode again from ``start`` to ``stop``, in case a caller changed an object in place; True if one was.

        What did not change keeps all that is known about it.
        """
        changed = False
        stop = len(self.wire) if stop is None else max(stop, self.compared)
        self.compared = min(self.compared, max(0, start))
        for index in range(max(0, start), stop):
            given = self._given.get(index, self.wire[index])
            mark = _mark(given)
            if mark is not None and mark == self._marks[index]:
                continue
            self._marks[index] = mark
            [message] = self._decoded([given], index)
            if message == self.messages[index] and _same_metadata(message, self.messages[index]):
                if message.source is self.wire[index]:
                    self.messages[index] = message  # says the same; the blocks that it is made of may be others
                continue
            changed = True
            self._put(index, message)
        if changed:
            self._begin_again()
        return changed

    def replace(self, wire: Sequence[Any]) -> None:
        """Put other messages in the place of the first ones. Raises ``FormatError`` as ``extend`` does."""
        for index, message in enumerate(self._decoded(wire, 0)):
            self._marks[index] = _mark(wire[index])
            self._given.pop(index, None)
            if wire[index] is not message.source:
                self._given[index] = wire[index]
            self._put(index, message)
        self._begin_again()

    def _put(self, index: int, message: Message) -> None:
        self.says_all = self.says_all and self._saying(index).all == Saying(message).all
        self.wire[index] = message.source
        self.messages[index] = message
        self.sizes[index] = self.counter.message(message)
        self._blocks.pop(index, None)
        self._clean_blocks.pop(index, None)
        self._notes.pop(index, None)
        self._sayings.pop(index, None)
        if index < len(self._digests):
            self._digests[index] = digest(message)

    def _begin_again(self) -> None:
        """Forget what was learned from all messages together."""
        self._said = {}  # another one: a snapshot may go on with the old messages
        self.__dict__.pop("index", None)
        self.__dict__.pop("grouping", None)
        self.__dict__.pop("_walk", None)

    def calibrated(self, calibration: Calibration) -> History:
        """The same history with sizes as a provider would count them: shares all else that is known of it."""
        if calibration.ratio == 1.0:
            return self
        self.words, self._reader, self._walk  # noqa: B018  the twin shares them
        twin = copy.copy(self)
        twin.counter = CalibratedCounter(self.counter, calibration)
        twin.sizes = [calibration.apply(size) for size in self.sizes]
        # sizes depend on the counter; all else that is shared follows from the messages alone
        twin._counted = {}
        twin.line_sizes = evidence.ScaledSizes(self.line_sizes, calibration.apply)
        return twin

    @cached_property
    def grouping(self) -> Grouping:
        return self._walk.result()

    @cached_property
    def _walk(self) -> Walk:
        return Walk(self.messages)

    @property
    def head_tokens(self) -> int:
        """Tokens of the instructions that it begins with: no pass rewrites them."""
        return sum(self.sizes[: opening(self.messages)])

    def fingerprint(self, covers: int, *, whole: bool = False) -> str:
        """Of the first ``covers`` messages. What the instructions say that they begin with counts only if ``whole``."""
        return self.fingerprint_at(range(0 if whole else opening(self.messages[:covers]), covers))

    def fingerprint_at(self, indices: Sequence[int]) -> str:
        """Of these messages, in ascending order, as they are."""
        return fingerprint([self.digest_at(n) for n in indices])

    def digest_at(self, index: int) -> bytes:
        """Of a message as it is."""
        while len(self._digests) <= index:
            self._digests.append(digest(self.messages[len(self._digests)]))
        return self._digests[index]

    def is_repeated_in(self, other: History, indices: Sequence[int], theirs: Sequence[int]) -> bool:
        """Whether these messages stand in another history in these places, but for what the client has cleared since.

        In order: most conversations are told apart by the first one, and the digests of all take a while.
        """

        def is_same(n: int, m: int) -> bool:
            return self.digest_at(n) == other.digest_at(m) or says_again(other.messages[m], self._saying(n))

        return len(indices) == len(theirs) and all(map(is_same, indices, theirs))

    def has_ids_in(self, other: History, indices: Sequence[int], theirs: Sequence[int]) -> bool:
        """Whether the calls in these messages have the same ids in those of another history."""
        places = zip(indices, theirs, strict=True)
        return all(ids_of(self.messages[n]) == ids_of(other.messages[m]) for n, m in places)

    def is_said_in(self, other: History) -> bool:
        """Whether another history, perhaps longer, says all that this one does and ever did, in whatever form."""

        def is_same(n: int) -> bool:
            return self.digest_at(n) == other.digest_at(n) or self._saying(n).all == other._saying(n).all

        count = len(self.messages)
        return self.says_all and count <= len(other.messages) and all(map(is_same, range(count)))

    def goes_on_in(self, other: History) -> bool:
        """Whether another history is this one, perhaps longer, in which the client says something otherwise."""
        count = len(self.messages)
        changed = [n for n in range(count) if self.digest_at(n) != other.digest_at(n)]
        return goes_on(self.messages.__getitem__, other.messages.__getitem__, count, changed)

    def fingerprint_of(self, gone: Collection[int], shortened: Collection[int]) -> str:
        """Of what these messages say, in whatever form, and of those that are shortened which parts they have."""
        told = sorted({*gone, *shortened})
        sayings = [self._saying(n).all + self._shape(n, shortened) for n in told]
        return fingerprint([*sayings, order(self.messages[n] for n in told)])

    def outline_of(self, gone: Collection[int], shortened: Collection[int]) -> str:
        """The fingerprint of these messages whatever stands in the newest of them that clients clear to save room, and
        behind it a short hash of each of that; empty where there are no messages.
        """
        told = sorted({*gone, *shortened})
        newest = self._newest_clearable(told)
        sayings = [self._saying(n) for n in newest]
        short = "".join([*(saying.clearable for saying in sayings), *(saying.media for saying in sayings)])
        said = [self._saying(n).all for n in told[: len(told) - len(newest)]] + [one.beside for one in sayings]
        shapes = [self._shape(n, shortened) for n in told]
        whole = [one + shape for one, shape in zip(said, shapes, strict=True)]
        return fingerprint([*whole, order(self.messages[n] for n in told)]) + short if told else ""

    def is_outlined(self, outline: str, gone: Collection[int], shortened: Collection[int]) -> bool:
        """Whether these messages are the ones of an outline, but for what the client has cleared since."""
        newest = self._newest_clearable(sorted({*gone, *shortened}))
        parts = [part for n in newest for part in clearable(self.messages[n])]
        now, size = self.outline_of(gone, shortened), len(fingerprint([]))
        media = size + SHORT_HASH * len(parts)
        are_left = set(hashes(now[media:])) <= set(hashes(outline[media:]))
        is_same = bool(outline) and now[:size] == outline[:size] and are_left
        begins = "".join(self._saying(n).begins for n in newest)
        return is_same and same_or_cleared(parts, now[size:media], outline[size:media], begins)

    def trail(self, covers: int, start: int = 0) -> list[str]:
        """Short hashes of the first ``covers`` messages, from ``start`` on, by which they are known where older ones
        are gone.
        """
        return trail_of(self.messages[:covers], self._saying, start)

    def left_in(self, other: History, *, is_given: bool = False) -> range | None:
        """The oldest of its messages, without which another history is this one, perhaps with more behind it; None
        where it is not. ``is_given``: the caller has said that it is the same conversation.
        """
        count, start = len(self.messages), opening(self.messages)
        if opening(other.messages) != start:
            return None
        told, now = self.trail(count, max(0, count - LONGEST_TRAIL)), other.trail(min(count, len(other.messages)))
        gone = dropped(told, now, count, start, first_user(other.messages))
        if gone is None or is_given:
            return gone
        return gone if is_same_left(self.messages.__getitem__, other.messages.__getitem__, gone, count) else None

    def _newest_clearable(self, told: Sequence[int]) -> Sequence[int]:
        """The newest of these messages, as many as an outline has hashes of. Images do not count: they may be gone."""
        newest = told[-(LONGEST_OUTLINE // SHORT_HASH) :]
        sizes = accumulate(len(self._saying(n).clearable) for n in reversed(newest))
        return newest[len(newest) - sum(size <= LONGEST_OUTLINE for size in sizes) :]

    def _saying(self, index: int) -> Saying:
        if index not in self._sayings:
            self._sayings[index] = Saying(self.messages[index])
        return self._sayings[index]

    def _shape(self, index: int, shortened: Collection[int]) -> bytes:
        return shape(self.messages[index]) if index in shortened else b""

    def block(self, index: int, clean: Callable[[int], Message] | None = None) -> evidence.Block:
        """The lines of a message that evidence may quote. ``clean``: gives the messages without what no line of theirs
        may say.
        """
        blocks = self._blocks if clean is None else self._clean_blocks
        if index not in blocks:
            # A choice weighs the lines of all messages, those that stay because of what they name.
            unread = (n for n in range(index, len(self.messages)) if n not in blocks)
            together = list(islice(unread, READ_TOGETHER))
            lines = self._reader.read([self.messages[n] if clean is None else clean(n) for n in together])
            blocks.update((n, evidence.Block(own, self.words)) for n, own in zip(together, lines, strict=True))
        return blocks[index]

    def note(self, index: int, read: Message) -> Note:
        """What the built-in summary may say of a message. ``read``: the message as it is to be read."""
        found = self._notes.get(index)
        if found is None:
            from contextfold.summary.extractive_facts import Note

            found = self._notes[index] = Note.of(read)
        return found

    def said(self, asked: Callable[[Sequence[Message], int], T], index: int) -> T:
        """What a pure function of the messages says of one of them, by it and those before it: asked once."""
        key = asked, index
        if key not in self._said:
            self._said[key] = asked(self.messages, index)
        found: T = self._said[key]
        return found

    def count(self, text: str) -> int:
        """Tokens of a short text that will be asked for again: a fact of the built-in summary, at each pass."""
        size = self._counted.get(text)
        if size is None:
            if len(self._counted) > COUNTED:
                self._counted.clear()
            size = self._counted[text] = self.counter.text(text)
        return size

    @cached_property
    def _reader(self) -> evidence.LineReader:
        """Agents read the same files again and again: what is kept of equal lines shares the texts."""
        return evidence.LineReader()

    @cached_property
    def words(self) -> evidence.Vocabulary:
        """The names and terms of all blocks."""
        return evidence.Vocabulary()

    @cached_property
    def line_sizes(self) -> evidence.Sizes:
        """Tokens of lines that evidence may quote, counted once: every pass weighs the same lines again."""
        kind = evidence.EstimatedSizes if self.counter.is_estimate else evidence.Sizes
        return kind(self.counter.text)


class Offered:
    """Messages that may be known in other objects: each is looked at once, for however many histories."""

    def __init__(self, format: Format, wire: Sequence[Any]) -> None:
        self.format = format
        self.wire = wire
        self._marks: dict[int, object] = {}
        self._messages: dict[int, Message | None] = {}

    def mark(self, index: int) -> object:
        if index not in self._marks:
            self._marks[index] = _mark(self.wire[index])
        return self._marks[index]

    def message(self, index: int) -> Message | None:
        """None for what is no message of this format."""
        if index not in self._messages:
            try:
                self._messages[index] = self.format.decode(self.wire[index], index)
            except FormatError:
                self._messages[index] = None
        return self._messages[index]


def _mark(wire: Any) -> object:
    """What equals the mark of a wire object as long as that says the same, many times quicker than to decode it: its
    texts, which are mostly the same objects and need no comparing, the keys of objects, and what else JSON has, behind
    numbers for its kind.

    None for others. A value that holds itself many times over would take all memory: many are told by decoding alone.
    """
    if type(wire) is dict and {*map(type, wire.values())} == _TEXTS:
        return tuple(wire.items())
    found: list[object] = []
    waiting, left = [wire], MOST_MARKED_VALUES
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is str:
            found.append(value)
        elif kind is dict and len(value) <= left and _TEXTS.issuperset(map(type, value)):
            left -= len(value)
            keys = tuple(value)
            found.append(_shared(keys) if sum(map(len, keys)) <= _SHORT_KEYS else keys)
            waiting += value.values()
        elif (kind is list or kind is tuple) and len(value) <= left:
            left -= len(value)
            found += (_KINDS[kind], len(value))
            waiting += value
        elif kind in _PLAIN:
            found += (_KINDS[kind], repr(value) if kind is float else value)
        else:
            return None
    return tuple(found)


_TEXTS = {str}
_PLAIN = (int, float, bool, bytes, type(None))
_KINDS: dict[type, int] = {kind: number for number, kind in enumerate((list, tuple, *_PLAIN))}


_SHORT_KEYS = 200
"""Characters: what is shared outlives its conversation, and keys that a stranger makes up may be of any length."""


@lru_cache(maxsize=1_024)
def _shared(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Keys of objects, which most messages have in common."""
    return keys


def _same_metadata(one: Message, other: Message) -> bool:
    """By identity first: what a caller keeps there may be anything, such as an array that does not compare."""
    return one.metadata is other.metadata or same(one.metadata, other.metadata)
