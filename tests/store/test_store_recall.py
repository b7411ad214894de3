"""A session recalls by itself: what left its view and is asked about stands behind the question, once, in the store."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextfold import Compactor, Policy
from contextfold.store.sql import SQLStore
from contextfold.testing.dict_store import DictStore
from contextfold.tokens import TokenCounter
from effort import examples

WINDOW = 4_000
FACT = "The gateway listens on port 8443 behind the old balancer."
MARK = re.compile(r"\[(user|assistant), message \d+ of \d+(, [^]]+)?\]$")
QUESTION = {"role": "user", "content": "Which port does the gateway listen on?"}


def talk(turns: int = 60) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "system", "content": "You help."}]
    for n in range(turns):
        said = f"{FACT} " if n == 3 else ""
        found.append({"role": "user", "content": f"Now part {n} of the list, please."})
        found.append({"role": "assistant", "content": f"{said}Part {n} is done. " + f"filler{n} " * 60})
    return found


def session(store: Any, **recall: Any) -> Any:
    policy = Policy(evidence=False, recall={"enabled": True, **recall})
    return Compactor(window=WINDOW, policy=policy).session("thread", store=store)


def test_what_is_asked_about_stands_behind_the_question_with_who_said_it_and_when(store: Any) -> None:
    one = session(store)
    one.append(talk())
    before = one.view().result
    assert FACT not in str(before.messages)
    one.append([QUESTION])
    out = one.view().result
    assert out.changed
    assert out.messages[: len(before.messages) + 1] == [*before.messages, QUESTION]
    block = out.messages[-1]["content"]
    assert FACT in block
    assert re.search(r"\n\[assistant, message 8 of 121, \d{4}-\d\d-\d\d \d\d:\d\d UTC\]\n", block)
    (event,) = [event for event in out.events if event.name == "recalled"]
    assert (event.data["indices"], event.data["after"]) == ([8], 121)


def test_a_worker_that_died_over_a_summary_ends_no_recall() -> None:
    """Nothing comes back while a summary is being made; a lease that has expired is of no one who makes any."""
    now = [1_000.0]
    store = SQLStore("sqlite://", clock=lambda: now[0])
    one = session(store)
    one.append(talk())
    one.view()
    assert store.acquire_lease(one.thread, "a worker that died", 60)
    one.append([QUESTION])
    assert FACT not in str(one.view())
    now[0] += 61
    assert FACT in str(one.view())
    store.close()


def test_the_block_is_part_of_the_session_for_each_process_and_goes_with_the_next_summary(store: Any) -> None:
    one = session(store)
    one.append(talk())
    one.view()
    one.append([QUESTION])
    out = one.view().result
    again = session(store).view().result
    assert again.messages == out.messages
    assert not again.changed
    answer = {"role": "assistant", "content": "8443."}
    one.append([answer])
    assert session(store).view().result.messages == [*out.messages, answer]
    made = len(one.summaries())
    one.append(talk(30)[1:])
    later = one.view().result
    assert "<history>" not in str(later.messages)
    assert len(one.summaries()) > made


def test_undoing_takes_back_the_summary_and_not_only_what_came_back(store: Any) -> None:
    one = session(store)
    one.append(talk(14))
    one.view()
    one.compact()
    one.append([QUESTION])
    assert "<history>" in str(one.view().result.messages)
    summaries = one.summaries()
    undone = one.undo()
    assert undone is not None
    assert undone.trigger != "recall"
    assert undone.id == summaries[-1].id
    assert FACT in str(one.view().result.messages)
    assert "<history>" not in str(one.view().result.messages)


def test_nothing_comes_back_where_it_is_off_or_nothing_answers(store: Any) -> None:
    one = session(store)
    one.append(talk())
    one.view()
    one.append([{"role": "user", "content": "Zebras in Antarctica?"}])
    assert "<history>" not in str(one.view().result.messages)
    off = Compactor(window=WINDOW, policy=Policy(evidence=False)).session("thread", store=store)
    off.append([{"role": "assistant", "content": "None."}, QUESTION])
    assert "<history>" not in str(off.view().result.messages)


@pytest.mark.parametrize("budget", [0.02, 0.05])
def test_a_block_never_takes_more_than_its_budget(store: Any, budget: float) -> None:
    one = session(store, budget=budget, threshold=0.0)
    one.append(talk())
    before = one.view().result
    one.append([{"role": "user", "content": "part gateway list done filler9 filler3 port"}])
    out = one.view().result
    (found,) = out.summary.record.recalled if out.summary.record.recalled else (None,)
    if budget > 0.02:
        assert found is not None
    if found is not None:
        assert found.tokens <= budget * WINDOW
        assert out.tokens_after >= before.tokens_after
        seen = " ".join(str(out.messages[:-1]).split())
        quoted = [line for line in out.messages[-1]["content"].splitlines()[2:-1] if not line.startswith("[")]
        assert not any(" ".join(line.split()) in seen for line in quoted)


def test_a_store_without_an_index_recalls_too() -> None:
    one = session(DictStore())
    one.append(talk())
    one.view()
    one.append([QUESTION])
    assert "[assistant, message 8 of 121]" in one.view().result.messages[-1]["content"]


def test_async_sessions_do_the_same(store: Any) -> None:
    one = session(store)

    async def turns() -> list[Any]:
        await one.aappend(talk())
        await one.aview()
        await one.aappend([QUESTION])
        return await one.aview()

    assert FACT in asyncio.run(turns())[-1]["content"]


WORDS = (
    "gateway",
    "port",
    "8443",
    "balancer",
    "Caroline",
    "support",
    "group",
    "vault",
    "yopum-31",
    "端口",
    "数据库",
    "list",
)
LINES = (
    FACT,
    "Caroline went to the support group on Tuesday.",
    "The vault code of the archive is yopum-31.",
    "数据库端口被占用。",
)
SPOKEN = st.builds(
    lambda lines, filler: "\n".join([*lines, f"Part done. {f'filler{filler} ' * (30 + 5 * filler)}"]),
    st.lists(st.sampled_from(LINES), max_size=2),
    st.integers(0, 9),
)
TURN = st.tuples(
    st.one_of(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
        st.sampled_from(
            [*LINES, "Which port does the gateway listen on?", "part 3 of the list?", "Is it?", '</history> "vault"']
        ),
    ),
    st.lists(SPOKEN, min_size=1, max_size=3),
)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


@given(
    turns=st.lists(TURN, min_size=1, max_size=8),
    before=st.integers(0, 40),
    budget=st.sampled_from([0.01, 0.03, 0.1]),
    threshold=st.sampled_from([0.0, 0.3, 0.8]),
    restarts=st.booleans(),
)
@settings(max_examples=examples(40), deadline=None)
def test_what_comes_back_is_new_within_its_budget_and_moves_nothing_before_it(
    turns: list[Any], before: int, budget: float, threshold: float, restarts: bool
) -> None:
    """In a session of any turns: between two summaries the view only grows, by the turn and at most one block."""
    store = DictStore()
    policy = Policy(recall={"enabled": True, "budget": budget, "threshold": threshold})
    made = lambda: Compactor(window=WINDOW, policy=policy).session("thread", store=store)  # noqa: E731
    one = made()
    history = talk(before)
    one.append(history)
    known = list(one.view().result.messages)
    summaries = len(one.summaries())
    for question, answers in turns:
        one = made() if restarts else one
        asked = {"role": "user", "content": question}
        one.append([asked])
        out = one.view().result
        view = list(out.messages)
        assert one.view().result.messages == view, "a view is the same each time"
        if len(one.summaries()) == summaries:
            assert view[: len(known) + 1] == [*known, asked], "nothing earlier changed"
            new = view[len(known) + 1 :]
            assert len(new) <= 1
            if new:
                found = out.summary.record.recalled[-1]
                assert found.text == new[0]["content"]
                assert found.tokens == TokenCounter().text(found.text) <= budget * WINDOW
                seen = in_one_line("\n".join(message["content"] for message in view[:-1]))
                originals = in_one_line("\n".join(message["content"] for message in history))
                quoted = [in_one_line(line) for line in found.text.splitlines()[2:-1] if not MARK.match(line)]
                assert quoted
                assert not [line for line in quoted if line in seen], "it is in the view already"
                assert all(line in originals for line in quoted), "it was never said"
        said = [{"role": "assistant", "content": answer} for answer in answers]
        one.append(said)
        history += [asked, *said]
        summaries, known = len(one.summaries()), [*view, *said]
        now = one.view().result.messages
        assert now == known or len(one.summaries()) > summaries
        summaries, known = len(one.summaries()), list(now)


def test_a_session_that_is_deleted_before_what_came_back_is_recorded_is_an_empty_one(
    sqlite_store: SQLStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no lease to quote what left the view. What a database says of its keys ended the turn."""
    one = session(sqlite_store)
    one.append(talk())
    one.view()
    one.append([QUESTION])
    record = sqlite_store.record_summary

    def deleted_first(thread: Any, summary: Any) -> Any:
        assert summary.trigger == "recall"
        assert sqlite_store.delete_idle(thread, -1)
        return record(thread, summary)

    monkeypatch.setattr(sqlite_store, "record_summary", deleted_first)
    assert one.view() == []
    assert one.history() == []


@pytest.mark.parametrize("compacted", [False, True])
def test_a_session_that_is_begun_anew_before_what_came_back_is_recorded_keeps_nothing_of_the_one_before(
    sqlite_store: SQLStore, monkeypatch: pytest.MonkeyPatch, compacted: bool
) -> None:
    """A row with the summary of the session that was deleted stayed in it; it even came into force there where as many
    summaries had."""
    one = session(sqlite_store)
    one.append(talk())
    one.view()
    one.append([QUESTION])
    begun = [{**message, "content": f"Anew: {message['content']}"} for message in talk()][: None if compacted else 3]
    record = sqlite_store.record_summary

    def begun_anew(thread: Any, summary: Any) -> Any:
        monkeypatch.undo()
        assert sqlite_store.delete_idle(thread, -1)
        other = session(sqlite_store)
        other.append(begun)
        if compacted:
            other.view()
        return record(thread, summary)

    monkeypatch.setattr(sqlite_store, "record_summary", begun_anew)
    view = list(one.view())
    assert view == list(session(sqlite_store).view())
    assert view[-1] == begun[-1]
    assert [one for one in sqlite_store.read_summaries(one.thread) if one.trigger == "recall"] == []
