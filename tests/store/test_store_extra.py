"""Without the extra, an error names the one that a store of this kind needs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from contextfold import Compactor
from contextfold.errors import InputError, StoreCorrupt, StoreError
from contextfold.recall import MessageSearch
from contextfold.store import Session, StoredMessage, open_store


@pytest.mark.parametrize(
    ("url", "extra"), [("sqlite:///talks.db", "store"), ("postgresql+psycopg://agent@db/talks", "postgres")]
)
def test_the_extra_that_is_missing_is_named(url: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "contextfold.store.sql", None)  # as where SQLAlchemy cannot be imported
    with pytest.raises(InputError, match=rf"pip install 'contextfold\[{extra}\]'"):
        open_store(url)


def without_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("documents", "messages", "tools"):
        monkeypatch.setitem(sys.modules, f"langchain_core.{module}", None)


@pytest.mark.parametrize(
    "read",
    [
        lambda session: session.history(),
        lambda session: session.view(),
        lambda session: session.search("harbor"),
        lambda session: session.read(),
        lambda session: session.ledger(),
    ],
    ids=["history", "view", "search", "read", "ledger"],
)
def test_a_session_of_langchain_that_is_opened_without_its_package_is_not_called_damaged(
    read: Callable[[Session], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path / 'talks.db'}"
    said = [HumanMessage("Where is the harbor?"), HumanMessage("And the mill?")]
    Compactor(window=8_000).session("one", store).append(said)
    with monkeypatch.context() as elsewhere:
        without_langchain(elsewhere)
        with pytest.raises(StoreError, match=r"messages of LangChain.*pip install 'contextfold\[langchain\]'") as told:
            read(Compactor(window=8_000).session("one", store))
    assert not isinstance(told.value, StoreCorrupt), "no backup would help"
    assert Compactor(window=8_000).session("one", store).history() == said


def test_so_is_one_in_tables_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    written = ToolMessage("found", tool_call_id="call_1")
    text = '{"langchain_object": {"type": "tool", "data": {"content": "found", "tool_call_id": "call_1"}}}'
    assert StoredMessage.of(0, text).wire == written
    without_langchain(monkeypatch)
    with pytest.raises(StoreError, match="langchain"):
        StoredMessage.of(0, text)


def test_tools_for_langchain_name_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = MessageSearch([{"role": "user", "content": "Where is the harbor?"}]).tools()
    without_langchain(monkeypatch)
    with pytest.raises(InputError, match=r"pip install 'contextfold\[langchain\]'"):
        tools.langchain()
