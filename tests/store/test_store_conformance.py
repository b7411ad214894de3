"""Every store that we have keeps the promises of ``SummaryStore``: SQLite, PostgreSQL, dictionaries, and an async one.

The tests are those of ``contextfold.testing.summary_store``, which users run on stores of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextfold.store import open_store
from contextfold.store.sql import SQLStore
from contextfold.testing.dict_store import DictStore
from contextfold.testing.summary_store import SummaryStoreTests, wire


class _OnDatabase(SummaryStoreTests):
    """Closes what a test opened."""

    url: str

    def make_store(self) -> SQLStore:
        self.opened = open_store(self.url)
        return self.opened

    @pytest.fixture(autouse=True)
    def _closing(self) -> Any:
        self.opened: SQLStore | None = None
        yield
        if self.opened is not None:
            self.opened.close()


class TestSQLite(_OnDatabase):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.url = f"sqlite:///{tmp_path}/sessions.db"


class TestPostgreSQL(_OnDatabase):
    @pytest.fixture(autouse=True)
    def _database(self, new_postgres: Callable[[], str]) -> None:
        self.url = new_postgres()


class TestInMemory(_OnDatabase):
    url = "sqlite://"


class TestDictionaries(SummaryStoreTests):
    def make_store(self) -> DictStore:
        return DictStore()


class AsyncStore:
    """A store all of whose methods are async."""

    def __init__(self) -> None:
        inner = DictStore()
        for name, method in inspect.getmembers(inner, inspect.ismethod):
            if not name.startswith("_"):
                setattr(self, name, _suspending(method))


def _suspending(method: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*arguments: Any, **named: Any) -> Any:
        return method(*arguments, **named)

    return call


class TestAsync(SummaryStoreTests):
    def make_store(self) -> AsyncStore:
        return AsyncStore()


class TestTheKitItself:
    """A store that breaks a promise is noticed."""

    def test_a_store_that_mixes_namespaces_fails(self) -> None:
        class Mixing(DictStore):
            def read_messages(self, thread: Any, ranges: Any) -> Any:
                first = next(iter(self._messages))
                return super().read_messages(first, ranges)

        with pytest.raises(AssertionError):
            _Kit(Mixing()).test_threads_never_see_each_other()

    def test_a_store_that_forgets_the_revision_fails(self) -> None:
        class Careless(DictStore):
            def put_in_force(self, thread: Any, summary_id: Any, links: Any, **named: Any) -> bool:
                return super().put_in_force(thread, summary_id, links, revision=self.load(thread).revision)

        with pytest.raises(AssertionError):
            _Kit(Careless()).test_only_one_of_two_summaries_of_the_same_revision_comes_into_force()

    def test_a_store_whose_lease_never_expires_fails(self) -> None:
        with pytest.raises(AssertionError):
            _Kit(DictStore(clock=lambda: 0.0)).test_a_lease_expires_and_its_owner_cannot_swap_any_more()

    def test_the_messages_it_writes_are_in_the_chat_format(self) -> None:
        assert wire(0) == {"role": "user", "content": "message 0"}


class _Kit(SummaryStoreTests):
    def __init__(self, store: DictStore) -> None:
        self._store = store

    def make_store(self) -> DictStore:
        return self._store
