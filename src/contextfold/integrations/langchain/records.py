"""Where the records of one middleware live: in the state of the thread, or in a store; and in between.

What belongs here: reading and writing what is remembered of a thread (``state``), and keeping a record that is paid for
where the state does not have it yet. What does not: making records.

A middleware can change the state only together with an answer. Where the model call fails, the record it was made with
is here, and the next attempt begins with it. So does a second run on the thread that was waiting meanwhile.

A store has one record for a conversation, which runs side by side may put there in turn, and which an edited thread may
not fit any more. So each run also has its own here: where the store's does not fit, it goes on with that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from contextfold.conversation.history import History
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.known_lists import KnownItems, KnownLists
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.state import Remembered, remembered_in
from contextfold.integrations.langchain.threads import ThreadKey, begins_with_nothing, task_id
from contextfold.passes.prepared import Prepared
from contextfold.record.compaction import Compaction
from contextfold.tokens import TokenCounter


class RecordStore(Protocol):
    """Keeps records outside of the thread's state. May block: async runs call it in worker threads."""

    def get(self, thread: str) -> str | None:
        """The text that was put last for this thread; None if none was."""
        ...

    def put(self, thread: str, text: str) -> None:
        """Keep the text for this thread in place of an earlier one."""
        ...


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """A new text for the state; None clears it."""

    text: str | None


class Records:
    """The records of the threads that one middleware serves. ``state_key``: where a thread's state has its own."""

    def __init__(self, state_key: str, store: RecordStore | None) -> None:
        self.state_key = state_key
        self.store = store
        self._made: Bounded[Prepared] = Bounded()
        self._read: Bounded[Remembered] = Bounded()
        self._own: Bounded[_Own] = Bounded()
        self._unnamed = KnownLists(FORMAT)

    def remembered(self, key: ThreadKey, state: Mapping[str, Any], messages: Sequence[Any]) -> Remembered:
        """What is remembered of a thread."""
        in_state = self._from_text(state.get(self.state_key))
        if self.store is None:
            return in_state
        stored = self._instead_of(self._from_text(self.store.get(key.address)), key, messages)
        return replace(stored, requested=in_state.requested)

    def _instead_of(self, stored: Remembered, key: ThreadKey, messages: Sequence[Any]) -> Remembered:
        """What a store remembers; where that is of other messages, what this run had itself."""
        run = key, task_id()
        own = self._own.get(run)
        if stored.current is None or own is None or not own.continues(messages):
            return stored
        if own.remembered.current is not None and own.remembered.current.id == stored.current.id:
            return stored
        if own.refused != stored.current.id:  # else it was read before: once for each record, not at each call
            if fits(stored.current, messages):
                return stored
            self._own.put(run, replace(own, refused=stored.current.id))
        return own.remembered

    def unsaved(self, key: ThreadKey, remembered: Remembered, messages: Sequence[Any]) -> Compaction | None:
        """A record that continues the remembered one, made here, and not in this state; None if there is none."""
        found = self._made.get(key)
        # Without a thread the first message tells which conversation it is: a client may have dropped it, to save room.
        if found is None and not key.thread_id and remembered == Remembered() and messages:
            left = self._unnamed.left(messages)
            return left.record if left is not None else None
        # After an undo, the record that was undone must not come back from here.
        if found is None or remembered.is_held:
            return None
        # An agent whose state ends with its run begins each with nothing, and goes on with what the last one had.
        is_next_run = begins_with_nothing(key) and remembered == Remembered()
        return found.made if _continues(found, remembered.current, messages, is_next_run=is_next_run) else None

    def keep(self, key: ThreadKey, remembered: Remembered, record: Compaction, messages: Sequence[Any]) -> None:
        """Keep a record that is paid for, whatever becomes of the call that it was made for."""
        self._keep_unnamed(key, record, messages)
        if self.store is not None:
            new = following(remembered, record)
            self.store.put(key.address, new.to_text())
            self._own.put((key, task_id()), _Own.of(new, messages))
            return
        self._made.put(key, Prepared(record, remembered.current.pass_id if remembered.current else None))

    def update(
        self,
        key: ThreadKey,
        remembered: Remembered,
        record: Compaction | None,
        messages: Sequence[Any],
        *,
        is_shared: bool = False,
    ) -> StateUpdate | None:
        """What to change in the state after an answer to the view of ``record``; None where there is nothing to.

        Without a record, one in the state does not fit the thread any more, because it was edited: it goes. One in a
        store stays, for branches that it fits, and this run goes on without it.
        ``is_shared``: another run of the thread began with a state that has no such record, and may need it.
        """
        if record is not None:
            self._keep_unnamed(key, record, messages)
        if not is_shared and (record is None or not begins_with_nothing(key)):
            self._made.drop(key)
        is_new = record is not None and (remembered.current is None or record.id != remembered.current.id)
        new = following(remembered, record) if is_new else replace(remembered, requested=None)
        refused = remembered.current if record is None else None
        if refused is not None:
            new = Remembered()
        if self.store is not None:
            if is_new:
                self.store.put(key.address, new.to_text())
            self._keep_own(key, new, messages, refused)
            return StateUpdate(None) if remembered.requested is not None else None
        return StateUpdate(new.to_text()) if new != remembered else None

    def replace(self, key: ThreadKey, remembered: Remembered) -> dict[str, Any] | None:
        """Put what is remembered in place of what was; the update of the state that this takes, None if none."""
        self._made.drop(key)
        self._own.drop((key, task_id()))
        if self.store is None:
            return {self.state_key: remembered.to_text()}
        self.store.put(key.address, remembered.to_text())
        return None

    def _keep_own(
        self, key: ThreadKey, remembered: Remembered, messages: Sequence[Any], refused: Compaction | None
    ) -> None:
        run = key, task_id()
        known = self._own.get(run)
        # What did not fit these messages fits them no better with more behind them.
        before = known.refused if known is not None and known.continues(messages) else None
        self._own.put(run, replace(_Own.of(remembered, messages), refused=refused.id if refused else before))

    def _keep_unnamed(self, key: ThreadKey, record: Compaction, messages: Sequence[Any]) -> None:
        if not key.thread_id:
            self._unnamed.keep(KnownItems(record.pass_id, list(messages), record))

    def _from_text(self, text: Any) -> Remembered:
        """Read once, however often a run shows it. One that cannot be read is as good as none."""
        key = text if text is None or isinstance(text, str) else (repr(text),)
        known = self._read.get(key)
        if known is None:
            where = f"{self.state_key!r} of the state" if self.store is None else "the store for records"
            known = remembered_in(where, text)
            self._read.put(key, known)
        return known


@dataclass(frozen=True, slots=True)
class _Own:
    """What one run had last, and the end of its messages then. ``refused``: id of a record that did not fit them."""

    remembered: Remembered
    count: int
    last_id: str | None
    refused: str | None = None

    @classmethod
    def of(cls, remembered: Remembered, messages: Sequence[Any]) -> _Own:
        """Of a run with these messages."""
        last_id = getattr(messages[-1], "id", None) if messages else None
        return cls(remembered, len(messages), last_id)

    def continues(self, messages: Sequence[Any]) -> bool:
        """Whether the messages are still those, perhaps with more behind them, and not those of another branch."""
        return 0 < self.count <= len(messages) and getattr(messages[self.count - 1], "id", None) == self.last_id


def following(remembered: Remembered, record: Compaction | None) -> Remembered:
    """What is remembered once a new record is in force. What came back stands and falls with its summary: to undo is to
    undo that.
    """
    current = remembered.current
    if record is not None and current is not None and record.pass_id == current.pass_id:
        return replace(remembered, current=record, requested=None)
    return Remembered(current=record, before=current, can_undo=True)


def undone(remembered: Remembered) -> Remembered:
    """What is remembered after the last compaction was undone."""
    return Remembered(current=remembered.before, is_held=True)


def fits(record: Compaction, messages: Sequence[Any]) -> bool:
    """Whether these messages begin as those that a record was made from: a fork may go another way."""
    history = History(FORMAT, TokenCounter())
    history.extend(messages)
    return record.mismatch(history) is None


def _continues(
    made: Prepared, current: Compaction | None, messages: Sequence[Any], *, is_next_run: bool = False
) -> bool:
    """Whether the state is still the one that a record was made from, perhaps with more messages."""
    is_of_state = is_next_run or made.base == (current.pass_id if current else None)
    return is_of_state and fits(made.made, messages)
