"""What every ``SummaryStore`` must hold, as tests. ``dict_store`` has a plain one that holds it.

    class TestMyStore(SummaryStoreTests):
        def make_store(self):
            return MyStore(connection)

        def add(self, store, thread, messages):          # only if the store has no ``append``
            insert_into_my_tables(thread.id, messages)

pytest collects the tests of the subclass; they need nothing else. What belongs here: the promises of
``contextfold.store.protocol``. What does not: what sessions make of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from contextfold.errors import StoreCorrupt
from contextfold.ports import SyncPorts, run
from contextfold.record.compaction import Compaction, FateRun, SummaryRecord
from contextfold.store import payload
from contextfold.store.layout import WHOLE
from contextfold.store.reading import ask
from contextfold.store.values import (
    Link,
    NewMessage,
    NewSummary,
    StoredSummary,
    Thread,
)

THREAD = Thread("ours", "a thread")
OTHERS = (Thread("theirs", "a thread"), Thread("ours", "another thread"), Thread("", "a thread"))


def wire(number: int) -> dict[str, str]:
    """A message in the chat format."""
    return {"role": "user" if number % 2 == 0 else "assistant", "content": f"message {number}"}


def summary_of(covers: int, *, revision: int = 0, parent: int | None = None, text: str = "Prose.") -> NewSummary:
    """A summary of the first ``covers`` messages."""
    record = Compaction(
        format="openai-chat",
        covers=covers,
        fingerprint="0" * 32,
        fates=(FateRun(start=0, stop=covers, fate="summarized", reason="covered by the summary"),),
        summary=SummaryRecord(text=text, evidence="a line\n第二行"),
    )
    return NewSummary(
        parent_id=parent,
        base_revision=revision,
        trigger="proactive",
        reason="tokens:50000",
        algorithm="bisect_v1",
        text=text,
        tokens=12,
        covers=covers,
        message_count=covers,
        original_tokens=100,
        input_tokens=90,
        output_tokens=10,
        calls=2,
        chunk_count=2,
        max_depth=1,
        truncated=False,
        model="a model",
        cost=0.25,
        seconds=1.5,
        tokens_before=120,
        tokens_after=40,
        record=record,
        layout=WHOLE,
    )


def links_to(covers: int, start: int = 0) -> list[Link]:
    return [Link(sequence, "summarized", "covered by the summary") for sequence in range(start, covers)]


class SummaryStoreTests:
    """Subclass it in a test module. Every test makes a store of its own, empty and apart from all others."""

    def make_store(self) -> Any:
        """A store in which nothing is yet."""
        raise NotImplementedError

    def add(self, store: Any, thread: Thread, messages: Sequence[dict[str, str]]) -> None:
        """Let messages of the chat format be appended to a thread."""
        state = self.ask(store.load, thread)
        rows = [NewMessage(payload.dumps(one, n), one["role"], None, 5) for n, one in enumerate(messages)]
        named = {"format": "openai-chat", "marked": False, "expected_format": state.format}
        self.ask(store.append, thread, rows, **named)

    def ask(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a method of the store, be it sync or async."""
        return run(ask(SyncPorts(), method, *arguments, **named))

    def filled(self, count: int = 6) -> Any:
        store = self.make_store()
        self.add(store, THREAD, [wire(n) for n in range(count)])
        return store

    def in_force(self, store: Any, covers: int, parent: int | None = None) -> StoredSummary:
        """A summary that was recorded and put in force."""
        revision = self.ask(store.load, THREAD).revision
        stored: StoredSummary = self.ask(
            store.record_summary, THREAD, summary_of(covers, revision=revision, parent=parent)
        )
        assert self.ask(store.put_in_force, THREAD, stored.id, links_to(covers), revision=revision) is True
        return stored

    # ---- reading ----

    def test_a_thread_that_nobody_wrote_to_is_empty(self) -> None:
        state = self.ask(self.make_store().load, THREAD)
        assert (state.message_count, state.revision, state.summary_id, state.prepared_id) == (0, 0, None, None)
        assert not state.is_summarizing

    def test_messages_come_back_in_order_and_as_they_were(self) -> None:
        store = self.filled(4)
        self.add(store, THREAD, [wire(4), wire(5)])
        assert self.ask(store.load, THREAD).message_count == 6
        found = self.ask(store.read_messages, THREAD, [range(6)])
        assert [(one.sequence, one.wire) for one in found] == [(n, wire(n)) for n in range(6)]

    def test_ranges_are_read_and_nothing_else(self) -> None:
        store = self.filled(6)
        found = self.ask(store.read_messages, THREAD, [range(1), range(2, 2), range(3, 5)])
        assert [one.sequence for one in found] == [0, 3, 4]
        assert list(self.ask(store.read_messages, THREAD, [])) == []

    def test_a_message_that_is_not_there_is_an_error_that_names_it(self) -> None:
        store = self.filled(3)
        error = self.failure(StoreCorrupt, store.read_messages, THREAD, [range(2, 4)])
        assert "3" in error

    # ---- recording and linking ----

    def test_a_summary_comes_back_as_it_was_recorded_and_is_not_in_force(self) -> None:
        store = self.filled()
        new = summary_of(4, text="Prose, 也有中文 \U0001f642.")
        stored = self.ask(store.record_summary, THREAD, new)
        found = self.ask(store.read_summary, THREAD, stored.id)
        assert {name: getattr(found, name) for name in new.__dataclass_fields__} == {
            name: getattr(new, name) for name in new.__dataclass_fields__
        }
        assert found.used_at is None
        state = self.ask(store.load, THREAD)
        assert (state.summary_id, state.revision, state.prepared_id) == (None, 0, stored.id)

    def test_a_summary_in_force_is_shown_by_the_session_and_linked_to_its_messages(self) -> None:
        store = self.filled()
        stored = self.in_force(store, 4)
        state = self.ask(store.load, THREAD)
        shown = (state.summary_id, state.summary_text, state.summary_until_index, state.summary_tokens)
        assert shown == (stored.id, "Prose.", 4, 12)
        assert state.summary_created_at == stored.created_at
        assert (state.revision, state.prepared_id) == (1, None)
        assert self.ask(store.read_links, THREAD, stored.id) == links_to(4)
        assert self.ask(store.read_summary, THREAD, stored.id).used_at is not None

    def test_only_one_of_two_summaries_of_the_same_revision_comes_into_force(self) -> None:
        store = self.filled()
        first, second = (self.ask(store.record_summary, THREAD, summary_of(covers)) for covers in (3, 4))
        assert self.ask(store.put_in_force, THREAD, second.id, links_to(4), revision=0) is True
        assert self.ask(store.put_in_force, THREAD, first.id, links_to(3), revision=0) is False
        state = self.ask(store.load, THREAD)
        assert (state.summary_id, state.revision) == (second.id, 1)
        assert self.ask(store.read_links, THREAD, first.id) == []

    def test_many_threads_that_swap_at_once_win_once(self) -> None:
        store = self.filled()
        ids = [self.ask(store.record_summary, THREAD, summary_of(3)).id for _ in range(6)]
        won: list[int] = []

        def swap(summary_id: int) -> None:
            if self.ask(store.put_in_force, THREAD, summary_id, links_to(3), revision=0):
                won.append(summary_id)

        threads = [threading.Thread(target=swap, args=(summary_id,)) for summary_id in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [self.ask(store.load, THREAD).summary_id]

    def test_undoing_brings_back_the_parent_and_holds_the_session(self) -> None:
        store = self.filled()
        first = self.in_force(store, 2)
        second = self.in_force(store, 4, parent=first.id)
        assert self.ask(store.put_in_force, THREAD, first.id, (), revision=2, undoing=second.id) is True
        state = self.ask(store.load, THREAD)
        assert (state.summary_id, state.summary_until_index, state.revision) == (first.id, 2, 3)
        assert state.held_until == 6
        assert self.ask(store.read_summary, THREAD, second.id).undone_at is not None
        assert self.ask(store.put_in_force, THREAD, None, (), revision=3, undoing=first.id) is True
        assert self.ask(store.load, THREAD).summary_text is None

    def test_what_is_undone_is_still_there(self) -> None:
        store = self.filled()
        stored = self.in_force(store, 4)
        self.ask(store.put_in_force, THREAD, None, (), revision=1, undoing=stored.id)
        assert [one.id for one in self.ask(store.read_summaries, THREAD)] == [stored.id]
        assert len(self.ask(store.read_messages, THREAD, [range(6)])) == 6

    def test_a_summary_that_does_not_exist_is_an_error(self) -> None:
        store = self.filled()
        self.failure(StoreCorrupt, store.read_summary, THREAD, 77)
        self.failure(StoreCorrupt, store.put_in_force, THREAD, 77, (), revision=0)
        assert self.ask(store.load, THREAD).revision == 0

    # ---- the lease ----

    def test_one_owner_at_a_time_may_summarize(self) -> None:
        store = self.filled()
        assert self.ask(store.acquire_lease, THREAD, "one", 60) is True
        assert self.ask(store.acquire_lease, THREAD, "two", 60) is False
        assert self.ask(store.load, THREAD).is_summarizing
        self.ask(store.release_lease, THREAD, "two")
        assert self.ask(store.acquire_lease, THREAD, "two", 60) is False
        self.ask(store.release_lease, THREAD, "one")
        assert not self.ask(store.load, THREAD).is_summarizing
        assert self.ask(store.acquire_lease, THREAD, "two", 60) is True

    def test_a_lease_expires_and_its_owner_cannot_swap_any_more(self) -> None:
        store = self.filled()
        assert self.ask(store.acquire_lease, THREAD, "crashed", 0.05) is True
        stored = self.ask(store.record_summary, THREAD, summary_of(3))
        time.sleep(0.1)
        assert not self.ask(store.load, THREAD).is_summarizing
        assert self.ask(store.acquire_lease, THREAD, "next", 60) is True
        assert self.ask(store.load, THREAD).is_summarizing
        assert self.ask(store.renew_lease, THREAD, "crashed", 60) is False
        assert self.ask(store.put_in_force, THREAD, stored.id, (), revision=0, owner="crashed") is False
        assert self.ask(store.put_in_force, THREAD, stored.id, (), revision=0, owner="next") is True

    def test_a_renewed_lease_does_not_expire(self) -> None:
        store = self.filled()
        assert self.ask(store.acquire_lease, THREAD, "one", 0.05) is True
        assert self.ask(store.renew_lease, THREAD, "one", 60) is True
        time.sleep(0.1)
        assert self.ask(store.acquire_lease, THREAD, "two", 60) is False

    # ---- tenancy ----

    def test_threads_never_see_each_other(self) -> None:
        store = self.filled()
        stored = self.in_force(store, 4)
        self.ask(store.acquire_lease, THREAD, "one", 60)
        for other in OTHERS:
            state = self.ask(store.load, other)
            assert (state.message_count, state.summary_id, state.is_summarizing) == (0, None, False)
            assert list(self.ask(store.read_summaries, other)) == []
            assert list(self.ask(store.read_links, other, stored.id)) == []
            self.failure(StoreCorrupt, store.read_summary, other, stored.id)
            self.failure(StoreCorrupt, store.read_messages, other, [range(1)])
            self.add(store, other, [{"role": "user", "content": f"of {other}"}])
            self.failure(StoreCorrupt, store.put_in_force, other, stored.id, (), revision=0)
            assert self.ask(store.acquire_lease, other, "two", 60) is True
        assert self.ask(store.load, THREAD).message_count == 6
        assert self.ask(store.read_messages, OTHERS[0], [range(1)])[0].wire["content"] == f"of {OTHERS[0]}"

    def failure(self, kind: type[Exception], method: Callable[..., Any], *arguments: Any, **named: Any) -> str:
        """What the error says that this call has to raise."""
        try:
            self.ask(method, *arguments, **named)
        except kind as error:
            return str(error)
        raise AssertionError(f"{method.__name__} was to raise {kind.__name__}")
