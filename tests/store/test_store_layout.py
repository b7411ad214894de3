"""Long sessions: what is folded changes neither the view nor what is accounted for, and memory stays bounded."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from conversations import SYSTEM, said, turn, turns
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contextfold import CannotFit, Compactor, InputError, Policy, formats
from contextfold.record.compaction import Compaction
from contextfold.record.view import build
from contextfold.store import Session, loading, reading
from contextfold.store.layout import WHOLE, Layout, as_ranges, fold, gone_from
from contextfold.store.loading import counter_for, pass_history, pass_ranges, settled, view_conversation, view_ranges
from contextfold.store.recording import GONE
from contextfold.store.sql import SQLStore
from contextfold.store.values import NewSummary, SessionState, StoredMessage, StoredSummary, Thread
from contextfold.testing import histories
from contextfold.testing.dict_store import DictStore
from contextfold.testing.summary_store import summary_of
from effort import examples

FORMATS = ["openai-chat", "openai-responses", "anthropic", "langchain", "gemini", "bedrock-converse"]


def compacted(wire: list[Any], format: str, cuts: list[int], *, first_user: bool = True) -> Compaction | None:
    """The record after compactions at each of these lengths."""
    compactor = Compactor(window=3_000, policy=Policy(first_user=first_user))
    record = None
    with contextlib.suppress(CannotFit):
        for length in [*cuts, len(wire)]:
            if length:
                record = compactor.compact(wire[:length], record, format=format, force=True).compaction
    return record


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(data=st.data(), format=st.sampled_from(FORMATS))
def test_a_folded_history_gives_the_very_same_view(data: st.DataObject, format: str) -> None:
    """In every format, for whole and broken conversations, folded once and twice, with and without their beginning."""
    wire = data.draw(histories(format, max_turns=10, broken=data.draw(st.booleans())))
    cut = data.draw(st.integers(0, len(wire)))
    record = compacted(wire, format, [cut], first_user=data.draw(st.booleans()))
    if record is None or not record.gone():
        return
    record = record.changed(thinking_from=data.draw(st.integers(0, len(wire))))
    source = formats.get(format)
    messages = [StoredMessage(n, entry) for n, entry in enumerate(wire)]
    wanted = build(pass_history(source, WHOLE, None, messages, None), record).wire
    layout = WHOLE
    for newest in sorted({data.draw(st.integers(1, 12)), 1}, reverse=True):
        if len(gone_from(layout, record)) < newest:
            continue
        layout, record = fold(layout, record, 7, newest)
        held = [messages[n] for one in pass_ranges(layout, len(wire)) for n in one]
        history = pass_history(source, layout, stored(record, layout), held, None)
        record = settled(record, history)
        assert record is not None
        assert build(history, record).wire == wanted
        assert record.mismatch(history) is None or "rewound" in str(record.mismatch(history))
        assert as_seen(source.name, stored(record, layout), messages, len(wire)) == wanted


def stored(record: Compaction, layout: Layout) -> StoredSummary:
    columns = {**summary_of(1).columns(), "record": record.to_json(), "layout": layout.to_json()}
    return StoredSummary.of({**columns, "id": 7, "created_at": 0.0, "used_at": 0.0, "undone_at": None})


def as_seen(format: str, summary: StoredSummary, messages: list[StoredMessage], length: int) -> list[Any]:
    """The view of a session that has this summary in force, from what it reads and no more."""
    state = SessionState(Thread("", "t"), format=format, message_count=length)
    read = [messages[n] for one in view_ranges(summary) for n in one]
    loaded = view_conversation(state, summary, read, None)
    loaded.extend(messages[loaded.until : length])
    return loaded.conversation.view.wire


def test_a_layout_knows_where_each_message_stands() -> None:
    layout = Layout(((0, 2), (6, 7)), 9, 3)
    assert layout.head == (0, 1, None, 6, None)
    assert layout.last_gap == 4
    assert [layout.sequence(place) for place in range(8)] == [0, 1, None, 6, None, 9, 10, 11]
    assert layout.sequences(range(7)) == [0, 1, 6, 9, 10]
    assert layout.after(6) == 10
    assert Layout.from_json(layout.to_json()) == layout
    assert WHOLE.last_gap is None
    assert as_ranges([3, 1, 2, 7]) == [range(1, 4), range(7, 8)]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"runs": [1], "start": 0, "summary_id": null}'])
def test_what_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a layout"):
        Layout.from_json(text)


def test_pages_hold_no_more_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 5)
    ranges = [range(3), range(10, 11), range(20, 32)]
    pages = list(reading._paged(ranges))
    assert [[n for one in page for n in one] for page in pages] == [
        [0, 1, 2, 10, 20],
        [21, 22, 23, 24, 25],
        [26, 27, 28, 29, 30],
        [31],
    ]


# ---- whole sessions ----


@pytest.fixture
def short_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "HORIZON", 60)
    monkeypatch.setattr(reading, "PAGE", 50)
    monkeypatch.setattr("contextfold.store.settling.ENOUGH_MESSAGES", 0)
    monkeypatch.setattr("contextfold.store.settling.PAID_MESSAGES", 0)


def opened(store: Any, **options: Any) -> Session:
    given = {"upper_threshold": 6_000, "lower_threshold": 3_000, "min_messages": 8, **options}
    return Compactor(window=16_000).session("thread", store, options=given)


@pytest.mark.strict
@pytest.mark.usefixtures("short_horizon")
def test_a_session_far_beyond_its_horizon_keeps_its_laws(sqlite_store: SQLStore) -> None:
    session = opened(sqlite_store)
    session.append([SYSTEM])
    for number in range(90):
        session.append(turn(number))
        view = session.view()
        assert view[0] == SYSTEM
        assert view[-1] == turn(number)[-1]
        assert "".join(str(entry["content"]) for entry in view).count("<conversation_summary>") <= 1
    newest = session.summaries()[-1]
    assert newest.layout.summary_id is not None
    assert len(gone_from(newest.layout, newest.record)) < 60 + 40
    assert opened(sqlite_store).view() == session.view()
    ledger = session.ledger()
    assert len(ledger) == 361
    assert sum(1 for entry in ledger if entry.fate in GONE) == newest.message_count
    undone = session.undo()
    assert undone is not None
    assert undone.id == newest.id
    assert opened(sqlite_store).view() == session.view()


FACTS = {5: "vault-7311", 12: "relay-7890", 20: "quota-1663", 40: "shard-5242", 60: "probe-9376"}
"""Turn -> what the assistant finds in it."""


@pytest.mark.strict
@pytest.mark.parametrize("horizon", [120, 200])
def test_old_facts_are_carried_on_although_their_messages_are_not_read_again(
    sqlite_store: SQLStore, monkeypatch: pytest.MonkeyPatch, horizon: int
) -> None:
    """The evidence of the summary that is folded competes with new lines, as the originals would."""
    monkeypatch.setattr(loading, "HORIZON", horizon)
    session = opened(sqlite_store)
    session.append([{"role": "user", "content": "Never deploy to eu-west-3 before INC-90210 is closed."}])
    session.append([{"role": "assistant", "content": "The key is held by lease-8961 at 10.4.19.77:8243."}])
    for number in range(100):
        session.append(turn(number, 10 + number * 7 % 20))
        if number in FACTS:
            found = f"The key of ring {number} is held by {FACTS[number]} at 10.4.{number}.77:8243."
            session.append([{"role": "user", "content": "And?"}, {"role": "assistant", "content": found}])
        session.view()
    newest = session.summaries()[-1]
    assert newest.layout.start > 100
    view = str(session.view())
    assert [fact for fact in ("lease-8961", *FACTS.values()) if fact not in view] == []


@pytest.mark.usefixtures("short_horizon")
def test_a_long_import_is_compacted_page_by_page(sqlite_store: SQLStore) -> None:
    """Every message is read by a summarizer once, though never all of them at once."""
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        return "Modules were looked at."

    session = Compactor(window=16_000, summarizer=summarizer).session(
        "thread", sqlite_store, options={"upper_threshold": 6_000, "lower_threshold": 3_000}
    )
    session.append(turns(150))
    view = session.view()
    assert view[-1] == turn(149)[-1]
    assert len(session.summaries()) > 5
    assert all(one.message_count - (before.message_count if before else 0) <= 100 for before, one in pairs(session))
    gone = [entry.index for entry in session.ledger() if entry.fate == "summarized"]
    history = session.history()
    joined = "\n".join(asked)
    missing = [n for n in gone if str(history[n]["content"])[:30] not in joined]
    assert not missing


def test_an_import_that_fits_into_memory_is_one_pass(sqlite_store: SQLStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 50)
    session = opened(sqlite_store)
    session.append(turns(150))
    view = session.view()
    assert view[-1] == turn(149)[-1]
    assert len(session.summaries()) == 1
    assert sum(session.ledger().counts().values()) == session.state().message_count


def pairs(session: Session) -> list[tuple[StoredSummary | None, StoredSummary]]:
    found = session.summaries()
    return list(zip([None, *found], found, strict=False))


@pytest.mark.usefixtures("short_horizon")
def test_a_session_of_which_nothing_is_due_is_read_to_its_end(session: Callable[..., Session]) -> None:
    many = session(window=500_000, options={"upper_threshold": None, "lower_threshold": None})
    many.append(said(300, 20))
    assert many.view() == said(300, 20)


@pytest.mark.strict
def test_memory_does_not_grow_with_what_is_behind(sqlite_store: SQLStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view of 4,000 messages takes about as much as one of 1,000; the curve is in ``benchmarks/sessions.py``."""
    monkeypatch.setattr(loading, "HORIZON", 200)
    monkeypatch.setattr(reading, "PAGE", 200)
    monkeypatch.setattr("contextfold.store.settling.ENOUGH_MESSAGES", 0)
    peaks = []
    for count in (1_000, 3_000):
        done = opened(sqlite_store).state().message_count
        opened(sqlite_store).append(said(count, 30, done))
        opened(sqlite_store).view()
        session = opened(sqlite_store)
        tracemalloc.start()
        session.view()
        session.append(said(2, 30))
        session.view()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 200_000  # bytes; 3,000 messages more would take ten times that


def test_a_record_that_was_moved_back_and_forth_stays_json(sqlite_store: SQLStore) -> None:
    new: NewSummary = summary_of(3)
    recorded = DictStore().record_summary(Thread("", "t"), new)
    assert recorded.layout == WHOLE
    assert recorded.record == new.record
    assert counter_for(formats.get("anthropic"), None).text("a") >= 1
