"""What strangers may see of a store: neither its files nor the password that opens it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from conversations import turns
from typer.testing import CliRunner

from contextfold import Compactor, InputError
from contextfold.cli.app import app
from contextfold.errors import StoreError
from contextfold.store import open_store
from contextfold.store.addresses import shown

SECRET = "S3cr3t/p@ss"
ENCODED = "S3cr3t%2Fp%40ss"


def modes_of(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("url", ["sqlite:///{}/sessions.db", "sqlite:///file:{}/sessions.db?uri=true"])
def test_the_files_of_sqlite_are_for_their_owner_alone(tmp_path: Path, url: str) -> None:
    store = open_store(url.format(tmp_path))
    Compactor().session("thread", store).append(turns(2))
    found = modes_of(tmp_path)
    assert {"sessions.db", "sessions.db-wal", "sessions.db-shm"} <= found.keys()
    assert set(found.values()) == {0o600}
    store.close()


@pytest.mark.parametrize(
    "url",
    ["sqlite:///:memory:", "sqlite://", "sqlite:///file::memory:?uri=true", "sqlite:///file:a?mode=memory&uri=true"],
)
def test_a_database_in_memory_leaves_no_file(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(url)
    Compactor().session("thread", store).append(turns(2))
    assert modes_of(tmp_path) == {}
    store.close()


def test_a_database_that_is_there_keeps_the_mode_that_its_owner_gave(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.touch(0o640)
    os.chmod(path, 0o640)
    store = open_store(f"sqlite:///{path}")
    Compactor().session("thread", store).append(turns(1))
    assert set(modes_of(tmp_path).values()) == {0o640}
    store.close()


@pytest.mark.parametrize("name", ["sessions.db", "sessions.db-wal", "sessions.db-journal"])
def test_a_symbolic_link_at_the_name_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / name).symlink_to(victim)
    store = open_store(f"sqlite:///{tmp_path}/store/sessions.db")
    with pytest.raises(StoreError, match="symbolic link, which is not followed"):
        Compactor().session("thread", store).append(turns(1))
    assert victim.read_bytes() == b""
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://bob:{ENCODED}@127.0.0.1:1/agent",
        f"postgresql+psycopg://bob@127.0.0.1:1/agent?password={ENCODED}",
        f"postgresql+psycopg://127.0.0.1:1/agent?user=bob&sslpassword={ENCODED}&connect_timeout=1",
    ],
)
def test_the_password_of_a_database_that_cannot_be_reached_is_told_to_no_one(url: str) -> None:
    pytest.importorskip("psycopg")
    store = open_store(url)
    with pytest.raises(StoreError) as failed:
        Compactor().session("thread", store).append(turns(1))
    for told in (str(failed.value), store.database.name):
        assert ENCODED not in told
        assert SECRET not in told
        assert "127.0.0.1" in told


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://bob:{ENCODED}@host:port/agent",
        f"postgresql+psycopg://bob:{SECRET}@host:port/agent",
        "postgresql+psycopg://bob:S3cr3t#host/agent",
        "postgresql+psycopg://bob:S3cr3t?@host:port/agent",
        f"postgresql+psycopg://host:port/agent?password={ENCODED}",
        f"mysql://bob:{ENCODED}@host/agent",
        f"mysql://host/agent?password={ENCODED}",
        f"postgresql+pg8000://bob:{ENCODED}@host/agent?sslpassword={ENCODED}",
        f"nonsense:bob:{ENCODED}@host",
    ],
)
def test_an_address_that_cannot_be_used_is_named_without_its_password(url: str) -> None:
    with pytest.raises(InputError) as refused:
        open_store(url)
    error: BaseException | None = refused.value
    while error is not None:
        assert "S3cr3t" not in f"{error} {error!r}"
        error = error.__cause__
    assert "give sqlite:///FILE or postgresql+psycopg://" in str(refused.value)


def test_what_is_shown_of_an_address_says_where_it_is() -> None:
    assert shown(f"postgresql://bob:{SECRET}@host:5432/agent?a=b&password=x") == (
        "postgresql://bob:***@host:5432/agent?a=b&password=***"
    )
    assert shown("postgresql://host/agent") == "postgresql://host/agent"
    assert shown("sqlite:////home/a:b@c/x.db") == "sqlite:////home/a:b@c/x.db"


def test_commands_repeat_no_password(tmp_path: Path) -> None:
    url = f"sqlite:///file:{tmp_path}/x.db?uri=true&password=S3cr3t"
    for command in (["sessions", "list"], ["sessions", "show", "none"], ["recall", "none", "word"]):
        done = CliRunner().invoke(app, [*command, "--store", url])
        assert "S3cr3t" not in done.output
        assert "x.db" in done.output
