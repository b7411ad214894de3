"""From what is stored to what the engine works on.

Two histories are made of one thread. The one for the view holds the messages that are sent, and blanks where messages
have left the view, so it is about as large as the view. The one for a pass also holds what left the view of late.

What belongs here: building both out of messages that were read, and saying what has to be read. What does not: reading
(the store), and when (``flow``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contextfold import formats
from contextfold.calls.memory import KnownConversation
from contextfold.conversation.history import History
from contextfold.conversation.repair import is_clean
from contextfold.errors import system_text
from contextfold.formats.base import Format
from contextfold.messages import Message
from contextfold.record.compaction import Compaction, summary_message
from contextfold.store.decision import SessionSize
from contextfold.store.layout import WHOLE, Layout, as_ranges, fold, gone_from
from contextfold.store.values import SessionState, StoredMessage, StoredSummary
from contextfold.tokens import TokenCounter
from contextfold.tokens.media import rule_of

HORIZON = 2_000
"""Messages. When more have left the view, a pass reads only the newest half of this number; see ``layout``."""

BLANK = Message("user", ())
"""Placeholder for a message not loaded; never shown."""


class PartialHistory(History):
    """A history in which some messages are stand-ins without a wire object."""

    def add(self, wire: Any) -> None:
        self.extend([wire])

    def stand_in(self, message: Message) -> None:
        self.wire.append(None)
        self.messages.append(message)
        self.sizes.append(0 if message is BLANK else self.counter.message(message))
        self.__dict__.pop("grouping", None)


@dataclass(slots=True)
class Loaded:
    """A session in memory, up to the message before ``until``. Used by one call at a time."""

    state: SessionState
    summary: StoredSummary | None
    conversation: KnownConversation
    until: int
    joins: bool = True
    """The next message follows one that may have left the view: it may have to be joined with what is there now."""

    @property
    def layout(self) -> Layout:
        return self.summary.layout if self.summary else WHOLE

    def extend(self, messages: Sequence[StoredMessage]) -> None:
        """More messages at the end."""
        self.conversation.append([message.wire for message in messages])
        self.until += len(messages)
        if self.joins and messages:
            self.conversation.rebuild(self.conversation.record)
            self.joins = False

    def distrust(self) -> None:
        """Mend the view at each turn from now on: a message that looked right was refused."""
        self.conversation.seen.clean = False
        self.conversation.seen.broken = True
        self.conversation.rebuild(self.conversation.record)

    def size(self, overhead: int) -> SessionSize:
        """How large the view is, with ``overhead`` tokens besides the messages."""
        history, record = self.conversation.history, self.summary.record if self.summary else None
        covered = record.covers if record else 0
        instructions = (n for n, message in enumerate(history.messages) if message.is_instruction)
        return SessionSize(
            tokens=self.conversation.view.tokens + overhead,
            overhead=overhead,
            messages=len(self.conversation.view.wire),
            total_messages=self.until,
            summary_tokens=record.summary.tokens if record and record.summary else 0,
            new_messages=len(history.messages) - covered,
            new_tokens=sum(history.sizes[covered:]),
            system_tokens=overhead + sum(history.sizes[n] for n in instructions),
        )

    def continues(self, state: SessionState) -> bool:
        """Whether a newer state of the session has the same summary in force, and only more messages.

        It may also be another session: this one was deleted, and another one begun, or a backup is in its place.
        """
        return (
            state.opened == self.state.opened
            and state.created_at == self.state.created_at
            and state.revision == self.state.revision
            and state.format == self.state.format
            and state.message_count >= self.until
        )


def counter_for(source: Format, count_text: Callable[[str], int] | None) -> TokenCounter:
    return TokenCounter(count_text, media_rule=rule_of(source.name))


def view_ranges(summary: StoredSummary | None) -> list[range]:
    """What has to be read for a view, without what came after the messages that the record speaks about."""
    if summary is None:
        return []
    record, layout = summary.record, summary.layout
    gone = record.gone()
    present = layout.sequences(place for place in range(_known(summary)) if place not in gone)
    return as_ranges({*present, 0})  # the first one shows the shape of the others


def _known(summary: StoredSummary) -> int:
    """How many places of the history the record speaks about, or stand before the messages that are all there."""
    return max(summary.record.covers, len(summary.layout.head))


def view_conversation(
    state: SessionState,
    summary: StoredSummary | None,
    messages: Iterable[StoredMessage],
    count_text: Callable[[str], int] | None,
) -> Loaded:
    """The view under a record, from the messages of ``view_ranges``."""
    source = formats.get(state.format or "openai-chat")
    history = PartialHistory(source, counter_for(source, count_text))
    conversation = KnownConversation(history)
    if summary is None:
        return Loaded(state, None, conversation, 0)
    found = {message.sequence: message.wire for message in messages}
    known = _known(summary)
    for place in range(known):
        sequence = summary.layout.sequence(place)
        if sequence in found:
            history.add(found[sequence])
        else:
            history.stand_in(BLANK)
    gone = summary.record.gone()
    shown = [message for place, message in enumerate(history.messages) if place not in gone]
    # What is sent alone has to keep the rules: blanks stand for messages that are gone.
    is_clean(shown, conversation.seen)
    conversation.rebuild(summary.record)
    return Loaded(state, summary, conversation, summary.layout.after(known))


@dataclass(frozen=True, slots=True)
class Material:
    """What a pass works on: the history, the record it starts from in the terms of that history, and the layout."""

    layout: Layout
    history: History
    record: Compaction | None


def pass_layout(summary: StoredSummary | None) -> tuple[Layout, Compaction | None]:
    """The layout for a pass over a session with this summary in force, and the record as it reads there."""
    if summary is None:
        return WHOLE, None
    if not folds(summary.layout, summary.record):
        return summary.layout, summary.record
    return fold(summary.layout, summary.record, summary.id, HORIZON // 2)


def folds(layout: Layout, record: Compaction | None) -> bool:
    """Whether a pass after this record folds the history. Only beyond the horizon: as long as it can be read, each pass
    works from all originals."""
    return len(gone_from(layout, record)) > HORIZON


def pass_ranges(layout: Layout, until: int) -> list[range]:
    """What has to be read for a pass over the messages before ``until``."""
    return [*(range(first, stop) for first, stop in layout.runs), range(layout.start, until)]


def pass_history(
    source: Format,
    layout: Layout,
    folded: StoredSummary | None,
    messages: Sequence[StoredMessage],
    count_text: Callable[[str], int] | None,
) -> PartialHistory:
    """The history of a layout from the messages of ``pass_ranges``. ``folded``: the layout's summary."""
    history = PartialHistory(source, counter_for(source, count_text))
    waiting: Iterator[StoredMessage] = iter(messages)
    record = folded.record.summary if folded else None
    for place, sequence in enumerate(layout.head):
        if sequence is not None:
            history.add(next(waiting).wire)
        elif place == layout.last_gap and record is not None:
            history.stand_in(summary_message(record))
        else:
            history.stand_in(BLANK)
    history.extend([message.wire for message in waiting])
    return history


def decoded(source: Format, messages: Iterable[StoredMessage]) -> dict[int, Message]:
    """Messages by their sequence numbers."""
    return {message.sequence: source.decode(message.wire, message.sequence) for message in messages}


def settled(record: Compaction | None, history: History) -> Compaction | None:
    """A record that was moved to another layout, with the fingerprint that it has there."""
    if record is None:
        return None
    return record.fitted(history)


def overhead_of(counter: TokenCounter, system: str | None, tools: Sequence[Any] | None) -> dict[str, int]:
    """What is sent besides the messages, in tokens, by its name."""
    text = system_text(system)
    overhead = {"system prompt": counter.text(text)} if text else {}
    return {**overhead, "tools": counter.tools(tools)} if tools else overhead
