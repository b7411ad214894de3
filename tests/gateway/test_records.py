"""Records in a database: the same on SQLite and PostgreSQL, for one scope only, shared by all who know the key."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from emulator import ProviderServer
from sqlalchemy import text
from tests.gateway.conftest import settings_for
from tests.gateway.requests_made import PATHS, body_of, compact, post, turns

from contextfold import Compactor
from contextfold.errors import StoreError
from contextfold.gateway.records import CHUNK, KEY_VARIABLE, LEASE_SECONDS, GatewayRecordStore
from contextfold.gateway.serve import InThread
from contextfold.gateway.shared import SharedStore
from contextfold.record.compaction import Compaction


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'records.db'}"
    assert importlib.util.find_spec("psycopg")
    found: str = request.getfixturevalue("server")
    return found


@pytest.fixture
def record() -> Compaction:
    messages = list(turns("openai-chat", 30))[-1]
    made = Compactor(window=8_000).compact(messages, force=True).compaction
    assert made is not None
    return made


SCOPE, OTHER = "a" * 32, "b" * 32


def test_the_longest_beginning_is_found_in_its_own_scope_alone(url: str, record: Compaction) -> None:
    records = GatewayRecordStore(url)
    digests = [f"{number:032x}" for number in range(3 * CHUNK)]
    longer = record.model_copy(update={"covers": 900})
    records.save(SCOPE, digests[5], 6, record)
    records.save(SCOPE, digests[899], 900, longer)
    records.save(OTHER, digests[1_000], 1_001, record)
    assert records.find(SCOPE, digests) == (digests[899], longer)
    assert records.find(SCOPE, digests[:899]) == (digests[5], record)
    assert records.find(SCOPE, digests[6:800]) is None
    assert records.find("c" * 32, digests) is None
    records.close()


def test_a_later_record_for_the_same_messages_takes_the_place(url: str, record: Compaction) -> None:
    records = GatewayRecordStore(url)
    later = record.model_copy(update={"target": 1})
    for one in (record, later):
        records.save(SCOPE, "d" * 32, 7, one)
    found = records.find(SCOPE, ["d" * 32])
    assert found is not None
    assert found[1].target == 1
    records.touch(SCOPE, "d" * 32)
    records.close()


UNREADABLE = ["", "{", '{"version": 2}', '{"version": 1, "fates": [{"start": 0}]}']
"""Damaged, or of a newer gateway on the same database."""


@pytest.mark.parametrize("stored", UNREADABLE)
def test_a_stored_record_that_cannot_be_read_is_as_if_there_were_none(
    url: str, record: Compaction, stored: str
) -> None:
    """It counted as a failure of the database, which was left alone then: no other conversation got its record."""
    records, scope = GatewayRecordStore(url), f"{UNREADABLE.index(stored):x}" * 32
    digests = [f"{number:032x}" for number in range(40)]
    for place in (5, 20, 30):
        records.save(scope, digests[place], place + 1, record)
    assert records.prepared(scope, "", digests[:10], "one") is None
    records.conclude("one", record)
    with records.database.write() as connection:
        for table, late in (("gateway_records", digests[20]), ("gateway_prepared", "")):
            change = text(f"UPDATE {table} SET record = :stored WHERE scope = :scope AND digest >= :late")
            connection.execute(change, {"stored": stored, "scope": scope, "late": late})
    assert records.find(scope, digests) == (digests[5], record)
    assert records.find(scope, digests[6:]) is None
    assert records.prepared(scope, "", digests[:10], "") is False  # as of a worker that died
    assert records.prepared(scope, "", digests[:10], "two") is None
    records.conclude("two", record)
    assert records.prepared(scope, "", digests[:10], "three") == record
    records.close()


def test_gateways_that_start_at_once_share_one_key(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(_: int = 0) -> bytes:
        records = GatewayRecordStore(url)
        try:
            return records.prepare()
        finally:
            records.close()

    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(key, range(8)))
    assert len(keys) == 1
    monkeypatch.setenv(KEY_VARIABLE, "an operator's own")
    assert key() == b"an operator's own"


def test_a_worker_that_died_keeps_others_from_preparing_no_longer_than_its_lease(url: str, record: Compaction) -> None:
    """Nor where the clock was set back meanwhile."""
    store, now = GatewayRecordStore(url), 5_000.0
    store.database.clock = lambda: now
    scope, chain = "c" * 32, ["d" * 32, "e" * 32]
    assert store.prepared(scope, "", chain[:1], "one") is None
    assert store.prepared(scope, "", chain, "two") is True
    assert store.prepared(scope, "another", chain, "") is None
    now = 4_000.0
    assert store.prepared(scope, "", chain, "") is False
    now += LEASE_SECONDS + 1_001
    assert store.prepared(scope, "", chain, "two") is None
    store.conclude("two", record)
    assert store.prepared(scope, "", chain, "three") == record
    assert store.prepared(scope, "", chain[:1], "") is False
    store.close()


def test_of_two_workers_that_come_at_the_same_moment_one_prepares(url: str) -> None:
    stores, together = [GatewayRecordStore(url) for _ in range(2)], Barrier(2)

    def is_others(store: GatewayRecordStore, base: str) -> object:
        together.wait(20)
        return store.prepared(SCOPE, base, ["d" * 32], f"{id(store)}")

    with ThreadPoolExecutor(2) as pool:
        for base in "abcdefgh":
            assert set(pool.map(is_others, stores, [base] * 2)) == {True, None}
    for store in stores:
        store.close()


@pytest.mark.parametrize("what", ["fails", "dies"])
def test_a_summary_that_failed_is_not_tried_by_each_worker_that_waited_for_it(tmp_path: Path, what: str) -> None:
    """A model that is silent held a turn once for each of them. Where a worker has died, one goes on in its place."""

    async def prepared() -> int:
        loop, settings = asyncio.get_running_loop(), settings_for("http://127.0.0.1:9", tmp_path)
        one, two = (SharedStore(settings, loop.create_task, max) for _ in range(2))
        asked, is_over, waits = list[int](), asyncio.Event(), asyncio.Event()
        begun = asyncio.Event()

        async def make() -> None:
            asked.append(1)
            begun.set()
            await is_over.wait()

        def seen(*place: Any) -> Any:
            found = look(*place)
            if found is True:
                loop.call_soon_threadsafe(waits.set)
            return found

        look, two.records.prepared = two.records.prepared, seen  # type: ignore[method-assign]
        first, second = (store.prepare_once(b"s" * 16, [b"d" * 16], None, make) for store in (one, two))
        owner = asyncio.create_task(first)
        await begun.wait()
        other = asyncio.create_task(second)
        await waits.wait()
        if what == "dies":
            owner.cancel()
            two.records.database.clock = lambda: time.time() + LEASE_SECONDS
        is_over.set()
        assert await other is None
        await asyncio.wait({owner})
        await one.close()
        await two.close()
        return len(asked)

    assert asyncio.run(prepared()) == (1 if what == "fails" else 2)


def test_windows_are_kept(url: str) -> None:
    records = GatewayRecordStore(url)
    assert records.load_window("http://h", "m") is None
    for tokens in (9_000, 8_000):
        records.save_window("http://h", "m", tokens)
    assert records.load_window("http://h", "m") == 8_000
    records.close()


def test_tables_of_a_newer_release_are_left_alone(tmp_path: Path) -> None:
    from sqlalchemy import text

    records = GatewayRecordStore(f"sqlite:///{tmp_path / 'new.db'}")
    records.prepare()
    with records.database.write() as connection:
        connection.execute(text("UPDATE gateway_schema SET version = 99"))
    records.close()
    with pytest.raises(StoreError, match="install a newer contextfold"):
        GatewayRecordStore(f"sqlite:///{tmp_path / 'new.db'}").prepare()


def test_two_workers_on_postgresql_serve_one_conversation(
    server: str, provider: ProviderServer, tmp_path: Path
) -> None:
    with (
        InThread(settings_for(provider.url, tmp_path, store=server)) as one,
        InThread(settings_for(provider.url, tmp_path, store=server)) as other,
    ):
        told = []
        for turn, messages in enumerate(turns("openai-chat", 50)):
            url = (one, other)[turn % 2].url
            told.append(post(url, PATHS["openai-chat"], compact(body_of("openai-chat", messages))).headers)
    made = [headers["x-contextfold-action"] for headers in told].count("compacted")
    ids = {headers["x-contextfold-compaction"] for headers in told if "x-contextfold-compaction" in headers}
    assert made == len(ids) >= 2
