"""Everything that a session ever held is found again, in any script, on every database, and only by its owner."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from contextfold import Compactor
from contextfold.errors import InputError
from contextfold.recall import parse_query, search
from contextfold.store import migrations, open_store
from contextfold.store import search as search_index
from contextfold.store.database import resolved
from contextfold.store.migrations import migrate
from contextfold.store.sql import SQLStore
from contextfold.store.values import Search, Thread
from effort import examples

WORDS = [
    "alpha",
    "src/app.py",
    "Café",
    "数据库连接超时",
    "データベース",
    "max_age=3600",
    "refreshUserToken",
    "user token",
    "refreshUs",
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
    assert [hit.index for hit in session.search("Which ports are there?")] == [0]
    assert [hit.index for hit in session.search('"port is"')] == [0]
    assert session.search('"is port"') == []
    assert [hit.index for hit in session.search("连接超时")] == [2]
    assert [hit.index for hit in session.search("接続")] == [3]
    assert [hit.index for hit in session.search("cafe src/app.py")] == [4]
    (hit,) = session.search("noted")
    assert (hit.role, hit.snippet, hit.evicted, hit.neighbors) == ("assistant", "noted", False, ())
    assert hit.score > 0


SIGNS = said("कतब क त ब", "किताब मेज पर है", "तमिल नहीं", "தமிழ் மொழி", "المُستخدِم طلب التقرير", "שָׁלוֹם", "soft\u00adhyphen")
ASKED = {"किताब": 1, "किताबें": 1, "மொழி": 3, "المستخدم": 4, "שלום": 5, "softhyphen": 6}


def test_words_are_whole_where_vowels_are_written_as_signs(session: Any) -> None:
    """A text that only has the same consonants is no answer."""
    session.append(SIGNS)
    for query, index in ASKED.items():
        assert [hit.index for hit in session.search(query)] == [index]
        assert [hit.index for hit in search(SIGNS, query)] == [index]


def test_words_that_were_indexed_in_pieces_are_found_when_the_database_is_opened(url: str) -> None:
    engine = create_engine(resolved(url))
    with engine.begin() as connection:
        migrate(connection, 1.0, 8)
        for name, wire in (("old", SIGNS[1]), ("plain", said("the port")[0])):
            row = {"s": Thread("", name).key, "t": name, "w": json.dumps(wire, ensure_ascii=False)}
            for statement in (
                "INSERT INTO agent_sessions (namespace, session_id, thread_id, format, message_count, created_at, "
                "updated_at) VALUES ('', :s, :t, 'openai-chat', 1, 1.0, 1.0)",
                "INSERT INTO session_messages (namespace, session_id, sequence, role, tokens, created_at, payload)"
                " VALUES ('', :s, 0, 'user', 5, 1.0, :w)",
            ):
                connection.execute(text(statement), row)
            pieces = [(0, "user", "क त ब" if name == "old" else "the port")]
            search_index.index(connection, Thread("", name), pieces)
    engine.dispose()
    store = open_store(url)
    assert [hit.index for hit in store.search(Thread("", "old"), Search(parse_query("किताब"), 5, "best", None))] == [0]
    assert [hit.index for hit in store.search(Thread("", "plain"), Search(parse_query("port"), 5, "best", None))] == [0]
    store.close()


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
    early = session.search("question TCK-0002")[0]
    (late,) = session.search("TCK-0059")
    assert (early.index, early.evicted) == (4, True)
    assert (late.index, late.evicted) == (118, False)
    assert [entry.index for entry in session.read(4, 3)] == [4, 5, 6]
    assert "TCK-0002" in session.read(4, 1)[0].text


def test_the_newest_come_first_where_that_is_asked_for_and_no_more_than_asked_for(session: Any) -> None:
    session.append(said(*(f"needle {n} " + "needle " * (n == 7) for n in range(30))))
    assert [hit.index for hit in session.search("needle", limit=5, order="newest")] == [29, 28, 27, 26, 25]
    assert [hit.index for hit in session.search("needle", limit=3)] == [7, 8, 6]  # beside the best one


def test_the_best_is_found_among_hundreds(session: Any) -> None:
    """However far back it stands, and though more messages have a word than are scored exactly."""
    texts = [f"the gateway of step {n}" for n in range(700)]
    texts[123] = "the gateway listens on port 8443"
    texts[77] = "gateway gateway gateway gateway"
    session.append(said(*texts))
    assert session.search("Which port does the gateway use?")[0].index == 123
    assert session.search("gateway")[0].index == 77


def test_roles_times_and_neighbors(session: Any, request: pytest.FixtureRequest) -> None:
    session.append(said("the port is 8443", "port noted", "thanks"))
    moment = session.state().updated_at
    assert [hit.index for hit in session.search("port", roles="user")] == [0]
    assert [hit.index for hit in session.search("port", roles=["assistant", "tool"])] == [1]
    assert session.search("port", roles="tool") == []
    assert session.search("port", since=moment + 60) == []
    assert len(session.search("port", since=moment - 60, until=moment + 60)) == 2
    assert session.search("port", until=datetime.fromtimestamp(moment - 60, UTC)) == []
    (hit,) = session.search("noted", neighbors=1)
    assert [(near.index, near.text) for near in hit.neighbors] == [(0, "the port is 8443"), (2, "thanks")]
    (first,) = session.search("8443", neighbors=5)
    assert [near.index for near in first.neighbors] == [1, 2]


def test_only_what_was_appended_in_a_time_is_found(url: str) -> None:
    now = [1_000.0]
    store = SQLStore(url, clock=lambda: now[0])
    session = Compactor(window=4_000).session("thread", store)
    for line in ("needle one", "needle two", "needle three"):
        session.append(said(line))
        now[0] += 100
    found = session.search("needle", since=1_100, until=1_200)
    assert [hit.index for hit in found] == [1]
    assert session.search("needle", since=5_000) == []
    before = Search(parse_query("needle"), 5, since=1_000, before=2)
    assert sorted(one.index for one in store.search(Thread("", "thread"), before)) == [0, 1]
    store.close()


@pytest.mark.parametrize("damage", [-1.0, 1e300])
def test_a_message_whose_time_is_damaged_is_said_to_be_so_by_a_search_in_time(url: str, damage: float) -> None:
    """It may have been appended then: to leave it out would say that nothing was."""
    store = open_store(url)
    session = Compactor(window=4_000).session("thread", store)
    session.append(said("needle"))
    with store.database.write() as connection:
        connection.execute(text("UPDATE session_messages SET created_at = :t"), {"t": damage})
    (hit,) = session.search("needle", since=1_000, until=2_000)
    assert hit.role == "unreadable"
    assert "created_at" in hit.snippet
    store.close()


def test_what_was_appended_while_the_clock_was_set_back_is_found_in_its_own_time(url: str) -> None:
    now = [0.0]
    store = SQLStore(url, clock=lambda: now[0])
    session = Compactor(window=4_000).session("thread", store)
    for moment in (1_000, 1_100, 500, 1_200, 1_300):
        now[0] = moment
        session.append(said(f"needle of {moment}"))

    def found(query: str, **times: float) -> list[int]:
        return sorted(hit.index for hit in session.search(query, **times))

    assert found("needle", since=900) == [0, 1, 3, 4]
    assert found("needle", since=900, until=1_300) == [0, 1, 3]
    assert found('"needle of"', since=400, until=600) == [2]
    assert found("needle", until=900) == [2]
    assert found("needle") == [0, 1, 2, 3, 4]
    store.close()


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=6),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    order=st.sampled_from(["best", "newest"]),
    roles=st.sampled_from([None, "user", ("assistant", "user")]),
)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_database_answers_as_a_search_in_memory_does(
    store: Any, texts: list[list[str]], words: list[str], order: Any, roles: Any
) -> None:
    """The same messages in the same order with the same scores."""
    lines = [" ".join(one) for one in texts]
    query = " ".join(words)
    session = Compactor(window=4_000).session(f"thread {hash(tuple(lines))}", store=store)
    if session.state().message_count == 0:
        session.append(said(*lines))
    if parse_query(query).is_empty:
        with pytest.raises(InputError, match="has no word to look for"):
            session.search(query)
        return
    expected = search(said(*lines), query, order=order, roles=roles)
    assert session.search(query, order=order, roles=roles) == expected


def test_a_phrase_is_found_where_a_very_long_text_was_cut(session: Any) -> None:
    words = [f"w{n}" for n in range(20_000)]
    session.append(said(" ".join(words)))
    for place in (0, 7_995, 8_000, 15_999, 19_990):
        assert [hit.index for hit in session.search(f'"{" ".join(words[place : place + 6])}"')] == [0]


def test_a_text_of_long_words_takes_more_rows_and_is_found_to_its_end(session: Any) -> None:
    """All of its words have 200 bytes: a row of PostgreSQL takes less than 1 MB of different ones."""
    words = [f"{n:04d}" + "ж" * 96 for n in range(5_200)]
    session.append(said(" ".join(words)))
    for place in (0, 2_595, 2_600, 5_194):
        assert [hit.index for hit in session.search(f'"{" ".join(words[place : place + 6])}"')] == [0]


def test_a_phrase_is_found_after_hundreds_of_its_words(session: Any) -> None:
    session.append(said("again " * 600 + "and again the port", "port again"))
    assert [hit.index for hit in session.search('"again the port"')] == [0]
    assert session.search('"port the again"') == []


def test_postgresql_asks_its_index_and_reads_narrow_rows(new_postgres: Any) -> None:
    """A row with its text in it is ten times as wide, and a search of a long session reads most pages of its rows."""
    store = open_store(new_postgres())
    Compactor(window=4_000).session("thread", store=store).append(said(*(f"message {n} of a few" for n in range(300))))
    with store.database.read() as connection:
        search_index.ranked(connection, Thread("", "thread"), Search(parse_query("message"), 5))
        asked = {"query": "'few'"}
        plan = connection.execute(text("EXPLAIN " + search_index._PLACES["postgresql"]), asked).scalars().all()
        assert any("Bitmap Index Scan on session_words_by_word" in line for line in plan)
        assert connection.scalar(text("SELECT pg_relation_size('session_words')")) / 300 < 200
    store.close()


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


def test_a_message_that_was_taken_back_is_not_found_and_weighs_nothing(
    store: SQLStore, request: pytest.FixtureRequest
) -> None:
    """As if it had never been said: the figures that ranking goes by, too."""
    texts = ["the port is 8443", "noted, the port is open", "Café " + "and 数据库连接超时 " * 300]
    before, after = (
        Compactor(window=4_000).session(request.node.name + name, store=store) for name in ("before", "after")
    )
    before.append(said(*texts[:2]))
    after.append(said(*texts))
    assert store.delete_newest(after.thread, 3, after.state().revision)
    assert after.search("Café") == []
    figures = [
        (hit.index, hit.score, hit.snippet) for session in (before, after) for hit in session.search("port open")
    ]
    assert figures[:2] == figures[2:]
    after.append(said(texts[0], "Café"))
    assert [hit.index for hit in after.search("cafe")] == [3]


def test_async_code_finds_the_same(session: Any) -> None:
    async def both() -> Any:
        await session.aappend(said("the port is 8443"))
        return await session.asearch("port"), await session.aread(0, 5)

    hits, entries = asyncio.run(both())
    assert hits == session.search("port")
    assert entries == session.read(0, 5)


def test_a_search_sees_one_state_whatever_is_appended_meanwhile(
    url: str, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Compactor(window=4_000).session("thread", store=store)
    session.append(said("the port is 8443", "noted", "the gateway has a port"))
    expected = session.search("port gateway")
    other = open_store(url)
    writer = Compactor(window=4_000).session("thread", store=other)
    places = search_index._Index.places

    def appended_between(self: Any, ask: Any) -> list[int]:
        found = places(self, ask)
        writer.append(said("another gateway with another port"))
        return found

    monkeypatch.setattr(search_index._Index, "places", appended_between)
    assert session.search("port gateway") == expected
    monkeypatch.undo()
    assert session.search("port gateway") != expected
    other.close()


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
        (lambda s: s.search("x", order="oldest"), "order is 'oldest'"),
        (lambda s: s.search("x", roles="robot"), "role 'robot' is not one of"),
        (lambda s: s.search("x", neighbors=-1), "neighbors is -1"),
        (lambda s: s.search("x", since=datetime(2031, 1, 1)), "has no time zone"),
        (lambda s: s.search("x", since=date(2031, 1, 1)), "since is datetime.date.*: it must be a datetime"),
        (lambda s: s.search("x", until="2031-03-11"), "until is '2031-03-11': it must be a datetime with a time zone"),
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
    assert [hit.index for hit in session.search("needle", limit=2, order="newest")] == [4, 3]
    assert session.search("Where is the needle 2?")[0].index == 2
    assert [hit.index for hit in session.search("needle", roles="assistant")] == [3, 1]
    with pytest.raises(InputError, match="cannot search by time"):
        session.search("needle", since=0)


def test_a_database_of_before_ranked_search_is_indexed_when_it_is_opened(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, a page after the other, but for what is damaged."""
    monkeypatch.setattr(migrations, "_PAGE", 2)
    said_then = ["the port is 8443", "the port was 80", None, "no port is open"]
    engine = create_engine(resolved(url))
    with engine.begin() as connection:
        migrate(connection, 1.0, 5)
        state = {"n": "", "s": Thread("", "old").key}
        connection.execute(
            text(
                "INSERT INTO agent_sessions (namespace, session_id, thread_id, format, message_count, created_at, "
                "updated_at) VALUES (:n, :s, 'old', 'openai-chat', 4, 1.0, 1.0)"
            ),
            state,
        )
        for n, line in enumerate(said_then):
            payload = "damaged" if line is None else json.dumps(said(line)[0])
            connection.execute(
                text(
                    "INSERT INTO session_messages (namespace, session_id, sequence, role, tokens, created_at, payload)"
                    " VALUES (:n, :s, :q, 'user', 5, 1.0, :p)"
                ),
                {**state, "q": n, "p": payload},
            )
    engine.dispose()
    store = open_store(url)
    with store.database.read() as connection:
        asked = Search(parse_query("Which port?"), 5)
        assert sorted(one.index for one in search_index.ranked(connection, Thread("", "old"), asked)) == [0, 1, 3]
    store.close()
