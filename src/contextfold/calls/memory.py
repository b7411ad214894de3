"""What is remembered of conversations between calls, so that a turn that adds k messages costs O(k).

What belongs here: recognizing that a list of messages continues a known one, and letting its view grow. What does not:
anything that outlives the process (that is the record's business).

A conversation is used by one call at a time: a call takes it out of the memory and puts it back. A second call for the
same one meanwhile finds nothing and decodes the history again, which costs time and changes nothing.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from contextfold import formats, json_values
from contextfold.calls.background import Background
from contextfold.calls.single_flight import SingleFlight
from contextfold.conversation.history import History, Offered
from contextfold.conversation.pins import has_originals
from contextfold.conversation.repair import Seen, is_clean, may_stand_between
from contextfold.errors import FormatError
from contextfold.formats.base import Format
from contextfold.observe import Event
from contextfold.passes.prepared import Prepared
from contextfold.record.compaction import Compaction
from contextfold.record.view import View, build
from contextfold.tokens import TokenCounter
from contextfold.tokens.media import rule_of

REMEMBERED = 32
"""Conversations that are kept; the least recently used one goes first."""

MOST_TOKENS = 40_000_000
"""Tokens of all conversations that are kept: with what was derived from them they take a good gigabyte. Few programs
come near, but a server that meets long conversations once each would otherwise keep hundreds of them."""

FEW = 256
"""Messages. As many are decoded in a few milliseconds."""

LATEST = 16
"""Answers of the model by which a conversation is known again that a client has changed elsewhere."""

SEVERAL = 4
"""Failures of a summarizer in a row, from which on it is asked less often."""


@dataclass(frozen=True, slots=True)
class FailedAt:
    """A summary failed for this state: the length of the history, and the ``pass_id`` of the record in force."""

    length: int
    record: str
    failed: Event | None = field(default=None, compare=False)
    """What was told of it, where no caller heard."""
    again: int = field(default=0, compare=False)
    """The length from which on a model is asked once more."""
    times: int = field(default=1, compare=False)
    """How many in a row this is."""
    asked: bool = field(default=True, compare=False)
    """False: no model was asked, since a pass was of no use then."""

    def after(self, before: FailedAt | Prepared | None) -> FailedAt:
        """This failure behind what was ``before``. The next turn asks again, since most failures pass; where several
        did not, each doubles how much has to come before another try, or every turn would pay for one.
        """
        if not isinstance(before, FailedAt) or before != replace(self, length=before.length):
            return self
        times = before.times + 1
        again = self.length + 2 * (self.length - before.length) if times >= SEVERAL else 0
        return replace(self, again=again, times=times)


class KnownConversation:
    """What is remembered of one conversation. Used by one call at a time: a call takes it out and puts it back."""

    def __init__(self, history: History, whose: bytes = b"") -> None:
        self.history = history
        self.whose = whose
        """For whom it is: others may have said the same."""
        self.record: Compaction | None = None
        self.view = View([], 0)
        self.seen = Seen(history.format)
        self.drops_oldest = False
        """Its client keeps a window of its own, so it may stay as long as it is."""
        self.moved: tuple[str, str] | None = None
        """The record that came last in which the client had dropped messages, and what it is without them."""
        self.attempt: FailedAt | Prepared | None = None
        """What the last pass left behind: a failure that is not repeated for the same state, or a summary that is paid
        for and could not be put in force. None: its record is in force, or there was none."""
        self.background: Background | None = None
        """Where a pass is prepared while the conversation goes on; None until one was."""
        self.asked: list[tuple[int, str]] = []
        """The models that were named, each with the length of the history when it was first asked in a row: no other
        can read what it encrypted."""
        self.tokens = 0
        """Of the whole history, when the last call ended."""
        self.known_before: int | None = None
        """Messages that were there before this call, so that they may have been changed in place since they were read;
        None for all."""
        self.faults_told = 0
        self.has_news = False
        """There may be faults that were not told yet: they are looked for in the whole history."""
        self.marked: Format | None = None
        """The format whose marks were seen; None as long as the messages are nothing but roles and text."""

    @property
    def state(self) -> FailedAt:
        """The state that a failure now would be remembered for."""
        return FailedAt(len(self.history.wire), self.record.pass_id if self.record else "")

    def asks(self, model: str) -> None:
        """This model is to answer the messages that are there."""
        length = len(self.history.messages)
        # What was asked about a longer list was undone, and about this one another model is asked instead.
        while len(self.asked) > 1 and self.asked[-1][0] >= length:
            self.asked.pop()
        if not self.asked or self.asked[-1][1] != model:
            self.asked.append((length, model))

    def is_of_another(self, model: str, index: int) -> bool:
        """Whether a provider's own compaction in this message was made for another model, and its originals are there.

        Who wrote it and not who was asked last: a view without it may have come to nothing.
        """
        turn = bisect_right(self.asked, index, key=itemgetter(0))
        return self.asked[max(0, turn - 1)][1] != model and has_originals(self.history.messages, index)

    @property
    def prepared(self) -> Prepared | None:
        return self.attempt if isinstance(self.attempt, Prepared) else None

    @property
    def is_paid_for(self) -> bool:
        """Whether a summary of it is being prepared, was paid for, or failed: asked for again, it would be paid for
        again.
        """
        return self.attempt is not None or self.background is not None

    def continues(self, wire: Sequence[Any], source: Format) -> bool:
        """Whether these messages are the known ones, perhaps with other instructions before and with more behind them.

        Comparing lists tries identity first, in C. Equal copies of the known objects do not count, since the caller is
        to get their own objects back; a caller who copies copies all, so a sample of them tells.
        """
        given = self.history.given
        known = len(given)
        if self.history.format is not source or known > len(wire):
            return False
        start = formats.opening(given)
        if formats.opening(wire[: start + 1]) != start:
            return False
        sample = range(start, known, max(1, known // 16))
        same = all(given[n] is wire[n] for n in sample)
        return same and json_values.same(given[start:], (wire if isinstance(wire, list) else list(wire))[start:known])

    def seems_equal(self, offered: Offered) -> bool:
        """Whether these messages seem to say what the known ones say, in other objects, perhaps under other
        instructions and with more behind them.
        """
        return self.history.is_like(offered, self._instructions_in(offered.wire))

    def takes_equal(self, offered: Offered, previous: Compaction | None) -> bool:
        """Whether these messages, which seem to be equal, are so. They stand in the place of the known ones then."""
        history, start = self.history, self._instructions_in(offered.wire)
        if not history.put_equal(offered):
            # What is paid for may tell of the instructions that it was made under.
            if not start or (self.is_paid_for and not self._has_in_force(previous)):
                return False
            if not history.put_equal(offered, start):
                return False
            history.replace(offered.wire[:start])
        self.view = build(history, self.record)
        return True

    def _instructions_in(self, wire: Sequence[Any]) -> int:
        """How many instructions these messages and the known ones begin with; 0 where these have more or fewer."""
        start = formats.opening(self.history.wire)
        return start if formats.opening(wire[: start + 1]) == start else 0

    def _has_in_force(self, previous: Compaction | None) -> bool:
        return previous is not None and self.record is not None and previous.id == self.record.id

    def append(self, wire: Sequence[Any]) -> None:
        """New messages at the end: the view grows by them, unless something has to be mended."""
        start = len(self.history.messages)
        self.history.extend(wire)
        clean = is_clean(self.history.messages[start:], self.seen)
        self.has_news = self.has_news or not clean
        if not clean or self.seen.broken or self._ends_open(start):
            self.rebuild(self.record)
            return
        self.view.wire += self.history.wire[start:]
        self.view.tokens += sum(self.history.sizes[start:])

    def _ends_open(self, known: int) -> bool:
        """Whether an instruction at the end of the view may be one that waits there for its place. ``known``: messages
        of the history that it is a view of.
        """
        if not self.view.wire:
            return False
        last, source = self.view.wire[-1], self.history.format
        is_original = known > 0 and last is self.history.wire[known - 1]  # read already, and a picture may be in it
        return may_stand_between(self.history.messages[known - 1] if is_original else source.decode(last), source)

    def begin_again(self, read: KnownConversation) -> None:
        """The same conversation in other objects, as ``read`` has it: what was paid for or failed stays known."""
        read.history.says_all = self.history.is_said_in(read.history)
        if read.record is not None:  # its view is under that
            read.rebuild(None)
        self.history, self.record = read.history, None
        self.view, self.seen = read.view, read.seen
        self.faults_told, self.has_news = 0, read.has_news

    def says_the_same(self, history: History, previous: Compaction | None) -> bool:
        """Whether a history says what the known one says, perhaps with more behind it: read again from where it is
        stored, or with the marks of the provider's cache on other messages, which callers move at every request.

        Of one that comes with the record in force, ``previous``, the model's answers are enough: the task or a reminder
        may say something else each time. What was prepared looks for itself whether it still fits.
        """
        known = len(self.history.messages)
        if self.history.format is not history.format or not 0 < known <= len(history.messages):
            return False
        # Without a record, agents that did the same for two people may differ in nothing but the task; and what is
        # prepared may tell that, for the agent's own model reads all of the view.
        in_force = self._has_in_force(previous)
        own = answers(self.history)
        told = own or range(known)
        # A client may have put something between, or taken that away: their order is enough.
        theirs = answers(history)[: len(own)] if in_force and own else told
        if not self.history.is_repeated_in(history, told, theirs):
            return False
        if not self.history.has_ids_in(history, told, theirs):
            # A client that gives others at each turn says all else again, as does a second run that does the same. What
            # that said before, as in a result that was cleared since, may have been something else.
            return previous == self.record and self.history.is_said_in(history)
        return in_force or self.history.goes_on_in(history)

    def is_left_in(self, history: History, previous: Compaction | None) -> bool:
        """Whether a history says what the known one says without its oldest messages, as of a client that keeps a
        window of its own.
        """
        in_force, known = (record.pass_id if record is not None else None for record in (previous, self.record))
        if self.history.format is not history.format or in_force != known:
            return False
        # In this order: nearly all others are told apart by their newest answer.
        own = {self.history.digest_at(n) for n in answers(self.history)[-1:]}
        theirs = {history.digest_at(n) for n in answers(history)[-LATEST:]}
        return bool(own & theirs) and self.history.left_in(history, is_given=in_force is not None) is not None

    def goes_on(self, wire: Sequence[Any]) -> None:
        """These messages are the known ones with more behind them.

        Of the known messages the newest alone is looked at for changes in place, where a client that streams would make
        them; all of them are before a pass, which is rare enough for that.
        """
        known = len(self.history.wire)
        begins_otherwise = self.takes_other_instructions(wire)
        if self.history.refresh(known - 1) or self.takes_moved_marks() or begins_otherwise:
            self.rebuild(self.record)
        self.known_before = known
        self.append(wire[known:])

    def takes_other_instructions(self, wire: Sequence[Any]) -> bool:
        """Whether these messages, which continue the known ones, begin with other instructions. The history has them
        then: one with the time of day is another one at each turn.
        """
        start = formats.opening(self.history.given)
        if all(given is entry for given, entry in zip(self.history.given[:start], wire, strict=False)):
            return False
        self.history.replace(wire[:start])
        return True

    def takes_moved_marks(self) -> bool:
        """Whether the caller moved a mark in place that the view has on an object of ours: with one more than it takes,
        Anthropic refuses the request.
        """
        if not self.view.has_moved_marks(self.history):
            return False
        for index in self.view.marked:
            self.history.refresh(index, index + 1)
        return True

    def rebuild(self, record: Compaction | None) -> None:
        """The view under another record, or after something changed."""
        self.record = record
        self.view = build(self.history, record)
        self.has_news = True

    def distrust(self) -> None:
        """Read everything again, and mend it at each turn: an object was changed in place, or a message that looked
        right was refused.
        """
        self.history.refresh()
        self.seen.clean = False
        self.seen.broken = True
        self.rebuild(self.record)


class Memory:
    """The conversations that one ``Compactor`` remembers. Safe for concurrent use."""

    def __init__(
        self, count_text: Callable[[str], int] | None, most: int = REMEMBERED, most_tokens: int = MOST_TOKENS
    ) -> None:
        self._count_text = count_text
        self._most = most
        self._most_tokens = most_tokens
        self._known: OrderedDict[tuple[int, ...], KnownConversation] = OrderedDict()
        self._lock = threading.Lock()
        self.flights = SingleFlight()
        """The passes that are being made of them now."""

    def format_of(self, wire: Sequence[Any]) -> Format | None:
        """The format of a known conversation that these messages seem to continue; None if it has to be detected.

        Messages that are nothing but roles and text read the same in several formats: until one of them carries a mark
        of its format, new messages are looked at.
        """
        with self._lock:
            known = self._known.get(self._key_of(wire))
        if known is None:
            return None
        known.marked = known.marked or formats.marked(wire[len(known.history.wire) :])
        return known.history.format if known.marked in (None, known.history.format) else None

    def is_near(self, wire: Sequence[Any], record: Compaction | None) -> bool:
        """Whether these messages seem to be a known conversation under a known record, with little behind it."""
        with self._lock:
            known = self._known.get(self._key_of(wire))
        return (
            known is not None
            and 0 <= len(wire) - len(known.history.wire) <= FEW
            and (record is known.record or (record is not None and record == known.record))
        )

    def take(
        self, wire: Sequence[Any], source: Format, previous: Compaction | None = None, whose: bytes = b""
    ) -> KnownConversation:
        """The conversation that these messages continue, with the new ones appended; or a new one. ``previous``: the
        record that came with them. ``whose``: stands for whom they came from.

        Raises ``FormatError`` for what is not a message of this format.
        """
        with self._lock:
            # Taken out, not only read: of two calls at the same time one gets the known state, and the other reads all
            # of it again.
            conversation = self._known.pop(self._key_of(wire), None)
        if conversation is not None and conversation.whose == whose and conversation.continues(wire, source):
            with self._unless_broken(conversation):
                conversation.goes_on(wire)
            return conversation
        if conversation is not None:
            # It may be the same with something else in it, as behind it a reminder that was another one last time.
            self._remember(conversation)
        conversation = self._equal(wire, source, previous, whose)
        if conversation is not None:
            with self._unless_broken(conversation):
                conversation.append(wire[len(conversation.history.wire) :])
        else:
            history = History(source, TokenCounter(self._count_text, media_rule=rule_of(source.name)))
            conversation = KnownConversation(history, whose)
            conversation.append(wire)
        # A client may write the same in two ways, as two libraries do that take turns. What was paid for comes before
        # what is equal then.
        if not conversation.is_paid_for and (waiting := self._waiting(conversation, previous)) is not None:
            waiting.begin_again(conversation)
            conversation = waiting
        conversation.known_before = 0
        conversation.marked = formats.marked(wire)
        return conversation

    @contextmanager
    def _unless_broken(self, conversation: KnownConversation) -> Iterator[None]:
        """One that was taken out is put back where a new message is none: the caller may mend it and come again."""
        try:
            yield
        except FormatError:
            self._remember(conversation)
            raise

    def _remember(self, conversation: KnownConversation) -> None:
        """Put one back that was taken out and not used."""
        with self._lock:
            self._known.setdefault(_key(conversation.history.given), conversation)

    def _key_of(self, wire: Sequence[Any]) -> tuple[int, ...]:
        """Where a conversation is kept that these messages seem to continue: the one that begins with the very same
        objects, or with other instructions before them.
        """
        key = _key(wire)
        if key in self._known or not formats.opening(wire[:1]):
            return key
        # Agents that share a question have instructions of their own, and are told apart by what follows.
        alike = (old for old, known in reversed(self._known.items()) if known.continues(wire, known.history.format))
        return next(alike, key)

    def _equal(
        self, wire: Sequence[Any], source: Format, previous: Compaction | None, whose: bytes
    ) -> KnownConversation | None:
        """The known conversation that these messages continue in other objects, as of a caller who reads them from a
        database at each turn; it is taken out. One that was paid for comes before the others, and the longest first.
        """
        offered = Offered(source, wire)
        with self._lock:
            found = [
                (known.is_paid_for, len(known.history.wire), key)
                for key, known in self._known.items()
                if known.whose == whose and known.history.format is source and known.seems_equal(offered)
            ]
        for *_, key in sorted(found, reverse=True):
            with self._lock:
                known = self._known.pop(key, None)
            if known is None:
                continue
            with self._unless_broken(known):
                if known.takes_equal(offered, previous):
                    return known
            self._remember(known)
        return None

    def _waiting(self, read: KnownConversation, previous: Compaction | None) -> KnownConversation | None:
        """The conversation that ``read`` is in other objects, taken out, if something was paid for it."""
        history = read.history
        with self._lock:  # what is not taken out is no one's, so it may be looked at meanwhile
            for key, known in reversed(self._known.items()):
                if known.whose != read.whose or not known.is_paid_for:
                    continue
                if known.says_the_same(history, previous):
                    return self._known.pop(key)
                if known.is_left_in(history, previous):
                    known.drops_oldest = True
                    if isinstance(known.attempt, FailedAt):  # there may be as many messages as before, and others
                        known.attempt = replace(known.attempt, length=-1)
                    return self._known.pop(key)
        return None

    def is_beside(self, conversation: KnownConversation) -> bool:
        """Whether it has the newest answer of a known conversation and is none that goes on: a client that drops
        or moves messages of its own at each turn makes each one another conversation. What was prepared for it would
        never be used.
        """
        history = conversation.history
        newest = {history.digest_at(n) for n in answers(history)[-LATEST:]}
        with self._lock:  # as in ``_waiting``
            known = [one for one in self._known.values() if one.whose == conversation.whose]
            near = [one for one in known if any(one.history.digest_at(n) in newest for n in answers(one.history)[-1:])]
            return bool(near) and not any(one.says_the_same(history, None) for one in near)

    def put_back(self, conversation: KnownConversation) -> None:
        """Remember a conversation, and forget the one that was not used for longest if there are too many."""
        conversation.tokens = sum(conversation.history.sizes)
        key = _key(conversation.history.given)
        with self._lock:
            other = self._known.pop(key, None)
            # Branches begin with the same objects. What was paid for one of them is found by what its messages say.
            if other is not None and other is not conversation and other.is_paid_for:
                self._known[*key, id(other)] = other
            self._known[key] = conversation
            # What is forgotten is read again: it costs time and loses nothing.
            tokens = sum(known.tokens for known in self._known.values())
            while len(self._known) > self._most or (tokens > self._most_tokens and len(self._known) > 1):
                tokens -= self._known.popitem(last=False)[1].tokens


def answers(history: History) -> list[int]:
    """Where the answers of the model stand."""
    return [n for n, message in enumerate(history.messages) if message.role == "assistant"]


def _key(wire: Sequence[Any]) -> tuple[int, ...]:
    # The first objects alone may be instructions that many conversations share.
    # The objects are kept alive with the conversation, so their ids stay theirs.
    second = max(1, formats.opening(wire))
    return (id(wire[0]) if wire else 0, id(wire[second]) if len(wire) > second else 0)
