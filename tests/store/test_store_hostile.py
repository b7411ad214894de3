"""No text stops a session: half characters, NUL, deep and endless values, in messages, summaries and searches."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import said

from contextfold import Compactor, ContextfoldError
from contextfold.store.sql import SQLStore
from effort import crossed

HALF = "name_\ud83d of BILL-4711"
NUL = "before\x00after BILL-4712"


@crossed(text=(HALF, NUL, "￾￿", "‮" * 50, "'; DROP TABLE x; --"), quick=2)
def test_a_session_with_any_text_is_viewed_summarized_searched_and_undone(store: SQLStore, text: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "/srv/a.py"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "id": text, "content": f"Never touch {text}, path /srv/{text}/x.py"},
        {"role": "assistant", "content": f"Reading {text}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"error E1001 in {text}\n" * 40},
        *said(40, 120),
    ]
    summaries = (None, lambda prompt: f"They spoke about {text}, and about BILL-4711 in /srv/app/main.py.")
    for number, summarizer in enumerate(summaries):
        session = Compactor(window=4_000, summarizer=summarizer).session(f"thread-{number}", store)
        session.append(messages)
        assert session.history() == messages
        assert len(session.view()) < len(messages)
        assert session.state().summary_text
        assert sum(session.ledger().counts().values()) == len(messages)
        assert session.read(0, 3)[2].text
        session.search(f"{text} BILL", limit=3)
        again = Compactor(window=4_000).session(f"thread-{number}", store)
        assert list(again.view()) == list(session.view())
        session.undo()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": float("nan")},
        {"role": "user", "content": {"a": {1, 2}}},
        {"role": "user", "content": b"bytes"},
        {"role": 7, "content": "x"},
        "text",
        None,
    ],
)
def test_what_is_no_message_is_refused_in_our_words_and_nothing_is_stored(store: SQLStore, message: Any) -> None:
    session = Compactor().session("thread", store)
    with pytest.raises(ContextfoldError, match="message 1"):
        session.append([{"role": "user", "content": "fine"}, message])
    assert session.history() == []


def test_arguments_that_are_nested_very_deeply_neither_stop_appending_nor_summarizing(store: SQLStore) -> None:
    deep = '{"a":' * 1_100 + "1" + "}" * 1_100
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": deep}}
    session = Compactor(window=4_000).session("thread", store)
    session.append(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            *said(40, 120),
        ]
    )
    assert len(session.view()) < 43


@pytest.mark.parametrize("depth", [100, 400, 600, 800, 2_000, 100_000])
def test_a_message_that_was_stored_can_be_viewed_however_deeply_it_is_nested(store: SQLStore, depth: int) -> None:
    """What is too deep for JSON is refused; nothing between the two may be stored and lie there."""
    deep: Any = "inside"
    for n in range(depth):
        deep = [deep] if n % 2 else {"a": deep}
    session = Compactor(window=4_000).session("thread", store)
    messages = [{"role": "user", "content": "go", "metadata": deep}, *said(40, 120)]
    try:
        session.append(messages)
    except ContextfoldError as error:
        assert depth > 400  # where the limit lies is Python's affair
        assert "message 0" in str(error)  # noqa: PT017
        assert session.history() == []
        return
    assert 1 < len(session.view()) < len(messages)
    assert session.compact() is not None
    assert len(session.history()) == len(messages)
