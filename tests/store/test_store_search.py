"""Everything that a session ever held is found again, in any script, on every database, and only by its owner."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextfold import Compactor
from contextfold.errors import InputError
from contextfold.recall import parse_query
from contextfold.recall.snippets import holds
from effort import examples

WORDS = [
    "alpha",
    "src/app.py",
    "Café",
    "数据库连接超时",
    "データベース",
    "max_age=3600",
    "'; DROP TABLE x; --",
    'a"b',
    "NOT",
    "*",
]


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(texts)]


@pytest.fixture
def session(store: Any, request: pytest.FixtureRequest) -> Any:
    return Compactor(window=4_000).session(request.node.name, store=store)


def test_words_phrases_and_chinese_are_found(session: Any) -> None:
    session.append(
        said(
            "the port is 8443", "noted", "数据库连接超时，请重试", "データベースに接続できません", "Café in src/app.py"
        )
    )
    assert [hit.index for hit in session.search("port 8443")] == [0]
    assert [hit.index for hit in session.search('"port is"')] == [0]
    assert session.search('"is port"') == []
    assert [hit.index for hit in session.search("连接超时")] == [2]
    assert [hit.index for hit in session.search("接続")] == [3]
    assert [hit.index for hit in session.search("cafe src/app.py")] == [4]
    (hit,) = session.search("noted")
    assert (hit.role, hit.snippet, hit.evicted) == ("assistant", "noted", False)


def test_tool_calls_and_results_are_found_and_media_are_not_read_out(session: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Ghent"}'}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 50}}
    session.append(
        [
            {"role": "user", "content": [{"type": "text", "text": "see"}, picture]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "population 265,086"},
        ]
    )
    assert [hit.index for hit in session.search("ghent")] == [1]
    assert [hit.index for hit in session.search("265,086")] == [2]
    assert "image/png, 150 bytes" in session.read(0, 1)[0].text


def test_what_was_evicted_is_found_and_said_to_be(session: Any) -> None:
    for n in range(60):
        session.append(said(f"question {n} about ticket TCK-{n:04d} " + "word " * 60, f"answer {n}"))
        session.view()
    (early,) = session.search("TCK-0002 question")
    (late,) = session.search("TCK-0059")
    assert (early.index, early.evicted) == (4, True)
    assert (late.index, late.evicted) == (118, False)
    assert [entry.index for entry in session.read(4, 3)] == [4, 5, 6]
    assert "TCK-0002" in session.read(4, 1)[0].text


def test_the_newest_come_first_and_no_more_than_asked_for(session: Any) -> None:
    session.append(said(*(f"needle {n}" for n in range(30))))
    assert [hit.index for hit in session.search("needle", limit=5)] == [29, 28, 27, 26, 25]


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=6), query=st.sampled_from(WORDS)
)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_index_answers_as_reading_all_would(store: Any, texts: list[list[str]], query: str) -> None:
    lines = [" ".join(words) for words in texts]
    asked = parse_query(query)
    thread = f"thread {hash(tuple(lines))}"
    session = Compactor(window=4_000).session(thread, store=store)
    if session.state().message_count == 0:
        session.append(said(*lines))
    expected = [n for n, line in enumerate(lines) if holds(line, asked)][::-1]
    if asked.is_empty:
        with pytest.raises(InputError, match="has no word to look for"):
            session.search(query)
    else:
        assert [hit.index for hit in session.search(query, limit=100)] == expected


def test_a_phrase_is_found_where_a_very_long_text_was_cut(session: Any) -> None:
    words = [f"w{n}" for n in range(20_000)]
    session.append(said(" ".join(words)))
    for place in (0, 7_995, 8_000, 15_999, 19_990):
        assert [hit.index for hit in session.search(f'"{" ".join(words[place : place + 6])}"')] == [0]


def test_nobody_finds_the_words_of_others(store: Any, request: pytest.FixtureRequest) -> None:
    """Threads of different namespaces, and of one, never see each other."""
    compactor, name = Compactor(window=4_000), request.node.name
    owners = [("left", name), ("right", name), ("left", name + "2"), ("", name)]
    sessions = [compactor.session(thread, store=store, namespace=space) for space, thread in owners]
    for n, session in enumerate(sessions):
        session.append(said(f"secret number {n}"))
    for n, session in enumerate(sessions):
        assert [hit.snippet for hit in session.search("secret")] == [f"secret number {n}"]


def test_what_retention_deleted_is_not_found(store: Any, request: pytest.FixtureRequest) -> None:
    session = Compactor(window=4_000).session(request.node.name, store=store, namespace="short-lived")
    session.append(said("a passing remark"))
    assert session.search("passing")
    assert store.delete_idle(session.thread, -1)
    session.append(said("something else"))
    assert session.search("passing") == []


def test_async_code_finds_the_same(session: Any) -> None:
    async def both() -> Any:
        await session.aappend(said("the port is 8443"))
        return await session.asearch("port"), await session.aread(0, 5)

    hits, entries = asyncio.run(both())
    assert hits == session.search("port")
    assert entries == session.read(0, 5)


def test_an_agent_gets_it_as_tools(session: Any) -> None:
    session.append(said("the port is 8443", "noted"))
    tools = session.tools(max_tokens=500)
    assert "[0] user: the port is 8443" in tools.dispatch("search_history", {"query": "port"})
    assert "noted" in tools.dispatch("read_history", {"start": 1})


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda s: s.search("?!"), "has no word to look for"),
        (lambda s: s.search("x", limit=0), "limit is 0"),
        (lambda s: s.read(-1), "must not be negative"),
        (lambda s: s.read(0, 0), "count 0 must be 1 to 1,000"),
        (lambda s: s.read(0, 5_000), "count 5000 must be 1 to 1,000"),
    ],
)
def test_what_cannot_be_asked_is_refused(session: Any, call: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        call(session)


def test_a_store_without_an_index_is_searched_by_reading(request: pytest.FixtureRequest) -> None:
    from contextfold.testing.dict_store import DictStore

    session = Compactor(window=4_000).session(request.node.name, store=DictStore())
    session.append(said(*(f"needle {n}" for n in range(5)), "hay"))
    assert [hit.index for hit in session.search("needle", limit=2)] == [4, 3]
