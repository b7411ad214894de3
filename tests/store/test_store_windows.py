"""What a refusal teaches of the window holds for the session's later views, and is kept in its store."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import turn, turns

from contextfold import Compactor
from contextfold.errors import StoreUnavailable
from contextfold.store import Session, open_store
from contextfold.store.sql import SQLStore
from contextfold.testing.dict_store import DictStore
from contextfold.testing.summarizers import ProviderError

REFUSAL = ProviderError(
    "This model's maximum context length is 8000 tokens. However, your messages resulted in 30000 tokens.",
    code="context_length_exceeded",
)


def opened(store: Any, thread: str = "thread", told: Any = None, **options: Any) -> Session:
    given = {"window": 64_000, "model": "example:small", **options}
    return Compactor(on_event=told, **given).session(thread, store)


def grow(session: Session) -> list[int]:
    """Twenty more turns; the estimated tokens of each view."""
    sizes = []
    for number in range(20):
        session.append(turn(number, 40))
        session.view()
        sizes.append(session._flow.reader._remembered["view"].conversation.view.tokens)
    return sizes


def refused(session: Session) -> None:
    session.append(turns(50))
    assert session.compact(overflow=REFUSAL).tokens_after < 8_000


def test_later_views_stay_within_the_window_that_a_refusal_named(store: SQLStore) -> None:
    """Though the caller had said that it is eight times as large."""
    session = opened(store)
    refused(session)
    assert max(grow(session)) < 8_000


def test_another_process_knows_it_too(url: str) -> None:
    """For this model, in other sessions and namespaces, and not for another model."""
    store = open_store(url)
    refused(opened(store))
    store.close()
    events: list[Any] = []
    again = open_store(url)
    assert max(grow(opened(again, "other", events.append))) < 8_000
    resolved = next(event.data for event in events if event.name == "window_resolved")
    assert (resolved["tokens"], resolved["source"], resolved["assumed"]) == (8_000, "learned", 64_000)
    assert max(grow(opened(again, "third", model="example:large"))) > 8_000
    again.close()


def test_the_last_refusal_counts(store: SQLStore) -> None:
    assert store.load_window("", "example:small") is None
    for tokens in (9_000, 7_000, 8_000):
        store.save_window("", "example:small", tokens)
        assert store.load_window("", "example:small") == tokens
    store.save_window("http://localhost", "example:small", 5_000)
    assert store.load_window("", "example:small") == 8_000


def test_a_model_without_a_name_is_learned_for_this_compactor_alone(store: SQLStore) -> None:
    """Others in the same database may talk to other models."""
    session = opened(store, model=None)
    refused(session)
    assert max(grow(session)) < 8_000
    assert store.load_window("", "") is None
    assert max(grow(opened(store, "other", model=None))) > 8_000


def test_where_windows_are_kept_elsewhere_they_stay_there(store: SQLStore) -> None:
    elsewhere = SQLStore("sqlite://")
    refused(opened(store, windows=elsewhere))
    assert elsewhere.load_window("", "example:small") == 8_000
    assert store.load_window("", "example:small") is None
    elsewhere.close()


def test_a_store_of_ones_own_needs_no_windows() -> None:
    session = opened(DictStore())
    refused(session)
    assert max(grow(session)) < 8_000


def test_what_the_compactor_learned_before_the_session_was_opened_holds(store: SQLStore) -> None:
    compactor = Compactor(window=64_000, model="example:small")
    first = compactor.session("first", DictStore())
    refused(first)
    assert max(grow(compactor.session("second", store))) < 8_000


def test_a_window_that_cannot_be_saved_ends_no_call(store: SQLStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(store, "save_window", fail)
    events: list[Any] = []
    refused(opened(store, told=events.append))
    assert "window_store_failed" in [event.name for event in events]
