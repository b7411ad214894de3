"""A session: all messages in, a view that fits out, on SQLite and on PostgreSQL."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from conversations import SYSTEM, said, turn, turns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextfold import Compactor, InputError, count_tokens
from contextfold.conversation.ledger import FATES
from contextfold.errors import StoreConflict
from contextfold.store import Session, open_store
from contextfold.store.recording import GONE
from contextfold.store.sql import SQLStore
from contextfold.testing import ProviderError, ScriptedSummarizer
from contextfold.testing.dict_store import DictStore
from effort import examples
from loop_watchdog import nothing_blocks

SMALL = {"upper_threshold": 6_000, "lower_threshold": 3_000, "min_messages": 8, "min_new_messages": 4}


def opened(store: Any, thread: str = "thread", **options: Any) -> Session:
    return Compactor(window=16_000).session(thread, store, options={**SMALL, **options})


def balances(session: Session) -> None:
    """Every message has one fate, and what is gone is linked to a summary."""
    ledger, state = session.ledger(), session.state()
    assert len(ledger) == state.message_count == sum(ledger.counts().values())
    assert {entry.fate for entry in ledger} <= set(FATES)
    gone = sum(1 for entry in ledger if entry.fate in GONE)
    in_force = [one for one in session.summaries() if one.id == state.summary_id]
    assert gone == (in_force[0].message_count if in_force else 0)


def test_what_was_appended_is_there_in_another_session_object(store: SQLStore) -> None:
    """The history is whole however often it was compacted."""
    session = opened(store)
    assert session.append([SYSTEM]) == range(1)
    assert session.append(turns(40)) == range(1, 161)
    view = session.view()
    assert len(view) < 100
    assert opened(store).view() == view
    assert opened(store).history() == [SYSTEM, *turns(40)]
    assert opened(store).history(1, 2) == turns(1)[:2]
    assert opened(store).history(159, 10) == turns(40)[-2:]
    balances(session)


def test_a_message_that_is_taken_back_is_gone_for_whoever_has_read_it(store: SQLStore) -> None:
    """With the summaries that knew it: the rest is the whole history, and is compacted as such."""
    session, other = opened(store), opened(store)
    session.append([SYSTEM, *turns(40)])
    assert session.view() == other.view()
    state = session.state()
    assert state.summary_id is not None
    assert not store.delete_newest(session.thread, state.message_count - 1, state.revision)
    assert not store.delete_newest(session.thread, state.message_count, state.revision - 1)
    assert session.state() == state
    assert store.delete_newest(session.thread, state.message_count, state.revision)
    assert session.state().summary_id is None
    assert session.summaries() == []
    session.append(turns(1))
    fresh = opened(store, "fresh")
    fresh.append([SYSTEM, *turns(40)[:-1], *turns(1)])
    assert session.history() == fresh.history()
    assert session.state().token_count == fresh.state().token_count
    assert other.view() == session.view() == fresh.view()
    balances(session)


def test_what_comes_in_place_of_a_message_that_was_taken_back_ends_the_rest_after_an_undo(store: SQLStore) -> None:
    session = opened(store)
    session.append([SYSTEM, *turns(40)])
    session.view()
    session.undo()
    for _ in range(4):
        state = session.state()
        assert store.delete_newest(session.thread, state.message_count, state.revision)
    assert session.due() is None
    session.append(turn(39)[:1])
    assert session.due()


def test_the_view_grows_at_its_end_between_summaries_and_is_rewritten_once_by_each(store: SQLStore) -> None:
    """In a remembered session and in one that is opened anew for each view."""
    session = opened(store)
    session.append([SYSTEM])
    before: list[Any] = []
    summaries = 0
    for number in range(60):
        session.append(turn(number))
        view = session.view()
        assert opened(store).view() == view
        if len(session.summaries()) == summaries:
            assert view[: len(before)] == before
        summaries, before = len(session.summaries()), view
        assert view[0] == SYSTEM
        assert view[-1] == turn(number)[-1]
    assert summaries >= 3
    balances(session)


def test_undo_restores_the_exact_earlier_view(store: SQLStore) -> None:
    """Several levels deep, and nothing is compacted again before there is something new."""
    session = opened(store)
    views = []
    for start in (0, 30, 60):
        session.append([message for number in range(start, start + 30) for message in turn(number)])
        session.view()
        views.append(session.view())
    session.append(turn(89))
    views.append(session.view())
    before = opened(store, enable_context_optimization=False)
    kept = len(session.summaries())
    assert kept >= 3
    result = session.compact()
    assert result.changed
    assert result.summary is not None
    undone = session.undo()
    assert undone is not None
    assert undone.id == result.summary.id
    assert session.view() == views[-1] == before.view()
    while session.undo() is not None:
        pass
    assert session.view() == session.history() == before.view()
    assert len(session.summaries()) == kept + 1
    assert all(one.undone_at is not None for one in session.summaries())
    balances(session)
    session.append(turn(90))
    assert len(session.view()) < 100
    balances(session)


def test_nothing_can_be_undone_where_nothing_was_compacted(store: SQLStore) -> None:
    session = opened(store)
    assert session.undo() is None
    session.append([SYSTEM])
    assert session.undo() is None


def test_a_session_that_nobody_wrote_to_is_empty(store: SQLStore) -> None:
    session = opened(store)
    assert (session.view(), session.history(), session.summaries()) == ([], [], [])
    assert not session.compact().changed
    assert session.append([]) == range(0)
    assert session.state().created_at is None
    assert len(session.ledger()) == 0


def test_a_summary_keeps_what_it_took(store: SQLStore) -> None:
    """What a user interface shows of it."""
    summarizer = ScriptedSummarizer(lambda prompt: "Modules were read, and all round half to even.")
    session = Compactor(window=16_000, summarizer=summarizer).session("thread", store, options=SMALL)
    session.append(turns(40))
    session.compact("Name every ticket.")
    (summary,) = session.summaries()
    assert "Name every ticket." in summarizer.prompts[0]
    found = summary.metadata
    assert (found["algorithm"], found["trigger"], found["chunk_count"] >= 0) == ("bisect_v1", "manual", True)
    assert found["calls"] >= 1
    assert found["max_depth"] == 0
    assert not found["truncated"]
    assert found["input_tokens"] > found["output_tokens"] > 0
    assert found["tokens_before"] > found["tokens_after"] > 0
    assert found["seconds"] > 0
    assert "record" not in found
    state = session.state()
    assert state.summary_text == summary.text == "Modules were read, and all round half to even."
    assert state.summary_until_index == summary.covers > 0
    assert state.summary_tokens == summary.tokens
    assert state.summary_created_at == summary.created_at
    assert not state.is_summarizing
    links = store.read_links(session.thread, summary.id)
    assert len(links) == summary.message_count
    assert max(link.sequence for link in links) < summary.covers
    assert session.undo() is not None
    assert session.state().summary_text is None


def test_one_flat_summary_after_many_compactions(store: SQLStore) -> None:
    """It is updated, and an unchanged history is not compacted again by itself."""
    session = opened(store)
    for number in range(70):
        session.append(turn(number, 60))
        session.view()
    assert len(session.summaries()) > 5
    marks = [entry for entry in session.view() if "<conversation_summary>" in str(entry["content"])]
    assert len(marks) == 1
    assert marks[0]["content"].count("<conversation_summary>") == 1
    count = len(session.summaries())
    for _ in range(3):
        session.view()
    assert len(session.summaries()) == count


def test_each_overflow_of_the_provider_makes_the_view_smaller(store: SQLStore) -> None:
    """The trigger is recorded as ``overflow_retry``, and the limit that the error names is kept to."""
    session = Compactor(window=64_000).session("thread", store)
    session.append(turns(50))
    refusal = ProviderError(
        "This model's maximum context length is 8000 tokens. However, your messages resulted in 30000 tokens.",
        code="context_length_exceeded",
    )
    result = session.compact(overflow=refusal)
    assert result.changed
    assert result.tokens_after < 8_000 < result.tokens_before
    assert session.summaries()[0].trigger == "overflow_retry"
    nameless = ProviderError("Input is too long for requested model.")
    again = session.compact(overflow=nameless)
    assert again.tokens_after < result.tokens_after
    with pytest.raises(InputError, match="does not say that the prompt was too long"):
        session.compact(overflow=ValueError("no"))


def test_a_refusal_without_a_word_is_about_the_size_of_a_view_that_fills_the_window(store: SQLStore) -> None:
    session = Compactor(window=64_000, trigger=None).session("thread", store)
    session.append(turns(20))
    mute = ProviderError("400 Bad Request")
    with pytest.raises(InputError, match="does not say that the prompt was too long"):
        session.compact(overflow=mute)
    before = count_tokens(session.view())
    full = Compactor(window=int(before * 1.1), trigger=None).session("thread", store)
    assert full.compact(overflow=mute).tokens_after < before


def test_a_view_can_be_changed_by_whoever_gets_it(store: SQLStore) -> None:
    session = opened(store)
    session.append(turns(2))
    view = session.view()
    view[0]["content"] = "changed"
    view[1]["tool_calls"][0]["function"]["name"] = "changed"
    assert session.view() == turns(2)
    assert session.history() == turns(2)


def test_what_is_appended_may_be_changed_afterwards(store: SQLStore) -> None:
    session = opened(store)
    mine = turns(1)
    session.append(mine)
    mine[0]["content"] = "changed"
    assert session.view() == turns(1)


# ---- what goes in ----


def test_an_append_that_names_its_place_is_made_once(store: SQLStore) -> None:
    session = opened(store)
    session.append(turn(0), at=0)
    with pytest.raises(StoreConflict, match="has 4 messages, and these were to come at 0"):
        session.append(turn(0), at=0)
    assert session.history() == turn(0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([{"role": "user", "content": "fine"}, {"role": "wizard", "content": "?"}], "message 1 has the role 'wizard'"),
        ([{"role": "user", "content": "fine"}, {"role": "user", "content": [{"type": "text", "text": b"x"}]}], "1"),
        ([{"role": "user", "content": "fine", "extra": {1, 2}}], "message 0 cannot be stored"),
        ([{"role": "user", "content": "fine", "extra": float("nan")}], "message 0 cannot be stored"),
        ("text", "messages must be a list of messages, not str"),
        ({"role": "user", "content": "x"}, "put it into a list"),
    ],
)
def test_what_is_no_message_is_refused_and_nothing_is_appended(sqlite_store: SQLStore, wrong: Any, said: str) -> None:
    session = opened(sqlite_store)
    with pytest.raises(InputError) as caught:
        session.append(wrong)
    assert said in str(caught.value)
    assert session.state().message_count == 0


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 7, None])
def test_a_thread_id_that_no_database_takes_is_refused(sqlite_store: SQLStore, name: Any) -> None:
    with pytest.raises(InputError, match="thread id"):
        opened(sqlite_store, name)
    with pytest.raises(InputError, match="namespace"):
        Compactor(window=16_000).session("t", sqlite_store, namespace=name or "n" * 201)


def test_an_option_that_there_is_not_is_told_with_those_that_there_are(sqlite_store: SQLStore) -> None:
    with pytest.raises(InputError, match="no option archives; there are: namespace, options, user"):
        Compactor(window=16_000).session("t", sqlite_store, archives="originals")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "x" * 10_000, "会话-一", "it's; DROP TABLE session_messages--", "%_"]
)
def test_any_other_thread_id_is_fine(store: SQLStore, name: str) -> None:
    session = opened(store, name)
    session.append([SYSTEM])
    assert opened(store, name).history() == [SYSTEM]
    assert [found.thread.id for found in store.sessions()] == [name]
    assert opened(store, name + "x").history() == []


def test_any_text_comes_back(store: SQLStore) -> None:
    texts = ["\0 \x1f \u2028", "lone \ud83d surrogate", "😀 汉字 かな", "\\u0000 \"'", "x" * 300_000]
    session = opened(store)
    wire = [{"role": "user", "content": text, "metadata": {"a": [1, 2.5, None, True]}} for text in texts]
    session.append(wire)
    assert opened(store).history() == wire


# ---- formats ----

ANTHROPIC = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
]


def test_the_first_mark_says_which_format_a_session_is_in(store: SQLStore) -> None:
    session, other = opened(store), opened(store)
    session.append(ANTHROPIC[:1])
    assert session.state().format == "openai-chat"
    other.append([])
    other.append(ANTHROPIC[1:])
    assert session.state().format == "anthropic"
    session.append([{"role": "user", "content": "and more"}])
    assert session.view() == [*ANTHROPIC[:2], *session.view()[2:]]
    assert session.history() == [*ANTHROPIC, {"role": "user", "content": "and more"}]
    with pytest.raises(InputError, match="holds anthropic messages, and these are openai-chat"):
        session.append(turn(0))


def test_a_format_in_which_what_is_there_cannot_be_read_is_refused(store: SQLStore) -> None:
    session = opened(store)
    session.append([{"role": "developer", "content": "Be brief."}])
    with pytest.raises(InputError, match="unknown role 'developer'"):
        session.append(ANTHROPIC[1:])
    assert session.state().message_count == 1


def test_somebody_elses_mark_is_noticed(store: SQLStore) -> None:
    first, second = opened(store), opened(store)
    first.append(ANTHROPIC[:1])
    second.append(ANTHROPIC[1:])
    first.append([{"role": "user", "content": "again"}])
    assert first.state().format == "anthropic"
    assert len(first.history()) == 4


def test_a_named_format_needs_no_mark(store: SQLStore) -> None:
    session = Compactor(window=16_000).session("thread", store, format="anthropic")
    session.append(ANTHROPIC[:1])
    assert (session.state().format, session.state().format_marked) == ("anthropic", True)


def test_langchain_objects_come_back_as_objects(store: SQLStore) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    call = {"name": "ls", "args": {"path": "/srv"}, "id": "a", "type": "tool_call"}
    wire = [
        SystemMessage("You help.", id="s"),
        HumanMessage("Look.", id="h", additional_kwargs={"mine": 1}),
        AIMessage(
            "", tool_calls=[call], id="i", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        ),
        ToolMessage("x", tool_call_id="a", id="t"),
    ]
    session = opened(store)
    session.append(wire)
    assert opened(store).view() == wire
    view = session.view()
    view[1].content = "changed"
    assert session.view() == wire
    session.append([HumanMessage(f"{n} " + "word " * 500, id=f"m{n}") for n in range(20)])
    assert type(session.view()[2]) is HumanMessage
    assert [entry.id for entry in session.ledger()][:4] == ["s", "h", "i", "t"]


# ---- color, stores, and chance ----


def test_the_async_methods_do_what_the_sync_ones_do(url: str) -> None:
    """The same results, with every method."""

    async def work(session: Session) -> list[Any]:
        await session.aappend([SYSTEM])
        await session.aappend(turns(40))
        view = await session.aview(system="More.", tools=[])
        result = await session.acompact("Be brief.")
        history = await session.ahistory(2, 3)
        ledger = (await session.aledger()).counts()
        undone = await session.aundo()
        assert undone is not None
        count = (await session.astate()).message_count
        await session.ajoin()
        return [view, result.messages, history, ledger, undone.text, count, len(await session.asummaries())]

    def blocking(session: Session) -> list[Any]:
        session.append([SYSTEM])
        session.append(turns(40))
        view = session.view(system="More.", tools=[])
        result = session.compact("Be brief.")
        history = session.history(2, 3)
        ledger = session.ledger().counts()
        undone = session.undo()
        assert undone is not None
        count = session.state().message_count
        session.join()
        return [view, result.messages, history, ledger, undone.text, count, len(session.summaries())]

    store = open_store(url)
    assert anyio.run(work, opened(store, "async")) == blocking(opened(store, "sync"))
    store.close()


def test_the_async_methods_never_block_the_loop(url: str) -> None:
    store = open_store(url)

    async def work() -> None:
        with nothing_blocks():
            session = opened(store)
            for number in range(30):
                await session.aappend(turn(number, 40))
                await session.aview()
            await session.aundo()
            await session.aledger()
            await session.ahistory()

    anyio.run(work)
    store.close()


def test_a_session_works_on_any_store_that_keeps_the_promises() -> None:
    from test_store_conformance import AsyncStore

    views = []
    for store in (DictStore(), AsyncStore()):
        session = opened(store)
        for number in range(30):
            session.append(turn(number))
            session.view()
        views.append(session.view())
        assert session.summaries()
        balances(session)
    assert views[0] == views[1]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.sampled_from(["view", "view", "compact", "undo", "reopen"]), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPERATIONS)
def test_any_order_of_operations_keeps_every_message_and_every_law(operations: list[tuple[str, int]]) -> None:
    """Against the plain list of what was appended."""
    store = DictStore()
    session = opened(store, lower_threshold=2_000, upper_threshold=4_000)
    appended: list[Any] = []
    stack: list[list[Any]] = []  # the view from before each compaction
    number = 0
    for name, count in operations:
        if name == "append":
            new = [message for step in range(count) for message in turn(number + step)]
            number += count
            session.append(new)
            appended += new
        elif name == "view":
            view = session.view()
            newest = [entry for entry in appended if entry["role"] == "user"][-1:]
            assert all(entry in view for entry in newest)  # perhaps before the summary of what it led to
        elif name == "compact":
            session.compact()
        elif name == "undo":
            session.undo()
        else:
            session = opened(store, lower_threshold=2_000, upper_threshold=4_000)
        assert session.history() == appended
        balances(session)
        stack.append(session.view())


def test_the_default_store_is_a_file_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is settled when the session is opened, wherever the program goes afterwards."""
    monkeypatch.chdir(tmp_path)
    session = Compactor(window=16_000).session("thread")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    session.append([SYSTEM])
    assert (tmp_path / "contextfold.db").is_file()
    monkeypatch.chdir(tmp_path)
    assert Compactor(window=16_000).session("thread").history() == [SYSTEM]
    session.store.close()


@pytest.mark.strict
def test_many_sessions_at_once_in_one_process(tmp_path: Path) -> None:
    """Nothing is shared between them. 1,000 of them are in ``benchmarks/sessions.py``."""
    store = open_store(f"sqlite:///{tmp_path}/many.db")

    async def one(number: int, done: Callable[[int, list[Any]], None]) -> None:
        session = opened(store, f"thread-{number}", lower_threshold=1_000, upper_threshold=2_000)
        for step in range(3):
            await session.aappend([*said(6, 120, 6 * step), {"role": "user", "content": f"of {number}, {step}"}])
            await session.aview()
        done(number, await session.aview())

    async def work() -> dict[int, list[Any]]:
        views: dict[int, list[Any]] = {}
        async with anyio.create_task_group() as group:
            for number in range(60):
                group.start_soon(functools.partial(one, number, views.__setitem__))
        return views

    views = anyio.run(work)
    assert len(views) == 60
    for number, view in views.items():
        assert view[-1]["content"] == f"of {number}, 2"
        others = [n for n in range(60) if n != number and f"of {n}, " in str(view)]
        assert not others
    store.close()


@pytest.mark.parametrize(
    "own",
    [
        {"contextfold_bytes": "not base64!"},
        {"contextfold_bytes": "YWJj"},
        {"contextfold_bytes": ["YWJj"]},
        {"contextfold_bytes": {"contextfold_bytes": "YWJj"}},
        {"contextfold_object": {"type": "human", "data": {"content": "I am no message."}}},
        {"contextfold_object": [{"contextfold_bytes": "YWJj"}]},
        {"langchain_object": {"type": "human", "data": {"content": "I am no message."}}},
    ],
)
def test_what_a_message_has_under_a_name_of_ours_comes_back_as_it_is(own: dict[str, Any], store: SQLStore) -> None:
    """It came back as bytes, and text that is no base64 made the session unreadable."""
    media = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    use = {"toolUseId": "t1", "name": "note", "input": {"said": own}}
    given = [
        {"role": "user", "content": [{"text": "Keep this."}, media]},
        {"role": "assistant", "content": [{"toolUse": use}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"json": own}]}}]},
    ]
    session = Compactor(window=8_000).session("own", store)
    session.append(given)
    assert list(session.view()) == given
    assert Compactor(window=8_000).session("own", store).history() == given


def test_bytes_in_a_message_of_langchain_are_stored_and_come_back(store: SQLStore) -> None:
    """In a picture as ChatBedrockConverse takes it, and beside a tool's answer, where no provider sees them."""
    messages = pytest.importorskip("langchain_core.messages")
    picture = {"type": "image", "image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    said = [
        messages.HumanMessage(["Draw on this.", picture]),
        messages.AIMessage("", tool_calls=[{"id": "c1", "name": "draw", "args": {}}]),
        messages.ToolMessage("Done.", tool_call_id="c1", artifact={"pixels": b"\x00\x01"}),
    ]
    session = Compactor(window=8_000).session("bytes", store)
    session.append(said)
    assert session.history() == said
    assert list(session.view()) == said
