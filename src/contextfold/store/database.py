"""Connections to one database, and its errors in our words.

What belongs here: engines, transactions, the settings of each dialect with their reasons, and the border where errors
of drivers become ``StoreError``. What does not: queries (``sql``), tables (``schema``, ``migrations``).

- SQLite: one writer at a time, so one connection writes and the pool before it is the queue; readers have their own
  and see the last commit (WAL). ``BEGIN IMMEDIATE`` for what will write, because a read lock cannot be raised while
  another process writes. ``synchronous=FULL``: an acknowledged append survives a power cut, at one fsync each.
- PostgreSQL: one pool. No transaction waits longer for a lock, or sits idle for longer, than ``PATIENCE``: a worker
  that hangs with a row locked does not block the others for ever.
- A file of SQLite is made here before SQLite opens it, for its owner alone; its write-ahead log gets the same mode. A
  symbolic link at any of these names is refused: it may lead to a file of someone else.
- A file of SQLite that was replaced is opened again, and one that is gone is an error: what is acknowledged must be in
  the file that the next process opens.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import Connection, Engine, create_engine, event, exc, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import QueuePool

from contextfold import errors
from contextfold.archive import local
from contextfold.errors import InputError, StoreCorrupt, StoreError, StoreUnavailable
from contextfold.store import addresses, migrations

PATIENCE = 30
"""Seconds that a transaction waits for others."""

READERS = 8
POSTGRES_CONNECTIONS = 16
"""SQLite has one writer at a time and any number of readers, so these are counted apart."""

_DRIVERS = {"sqlite": ("pysqlite", "store"), "postgresql": ("psycopg", "postgres")}
_SHUT_STATES = ("08", "53", "57", "55P03", "40001", "40P01", "25006", "3D000", "28")
"""SQLSTATE (PostgreSQL, appendix A) after which the same call may work later: no connection, no resources, shut down,
locked, in conflict, read-only, no such database, no such user."""


@dataclass(frozen=True, slots=True)
class _Engines:
    """What reads and what writes; they may be the same."""

    reader: Engine
    writer: Engine
    file: tuple[int, int] | None = None
    """Which file they have open, by device and number; None where there is none."""

    def dispose(self) -> None:
        """Close all connections, those in use by other threads as soon as they come back."""
        for engine in {self.reader, self.writer}:
            event.listen(engine.pool, "checkin", lambda _, record: record.invalidate())
            engine.dispose()


def _close(opened: dict[int, _Engines]) -> None:
    found = opened.pop(os.getpid(), None)
    if found is not None:
        found.dispose()


class Database:
    """One database by its URL. Connects when it is first used, in every process.

    ``clock`` gives seconds since 1970; None: that of the database server, which all machines share.

    Raises ``InputError`` for a URL that is not one of ``sqlite:///FILE`` and ``postgresql+psycopg://...``.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None) -> None:
        self.url = resolved(url)
        self.dialect = self.url.get_backend_name()
        self.name = name_of(url)
        """Where it is, for people: as ``name_of`` says it."""
        self.is_in_memory = is_in_memory(self.url)
        self.clock = clock
        self.opened = 0
        """How often it was opened so far: what was read before may have been of another file."""
        self._open: dict[int, _Engines] = {}  # by process: those of a parent are neither used nor closed here
        # Who never closes a store, as most do not, leaves no connection behind: newer Pythons warn of each.
        weakref.finalize(self, _close, self._open)

    @property
    def is_missing(self) -> bool:
        """Whether the first use would make the file."""
        file = _file_of(self.url)
        return file is not None and not os.path.exists(file)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads. Raises ``StoreError``."""
        with self._mapped(), self._engines().reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed at its end, or changes nothing. Raises ``StoreError``."""
        with self._mapped(), self._engines().writer.begin() as connection:
            yield connection

    def truncate_log(self) -> bool:
        """Empty the write-ahead log of SQLite; False where a reader needs it. Raises ``StoreError``."""
        with self._mapped(), self._engines().writer.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA busy_timeout = 1000")  # while it waits for readers, no one else writes
            try:
                return not driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                driver.execute(f"PRAGMA busy_timeout = {PATIENCE * 1_000}")

    def now(self, connection: Connection) -> float:
        """Seconds since 1970."""
        if self.clock is not None:
            return self.clock()
        if self.dialect == "sqlite":  # one machine
            return time.time()
        return float(connection.scalar(text("SELECT extract(epoch from clock_timestamp())")) or 0.0)

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        _close(self._open)

    def _engines(self) -> _Engines:
        """Engines of this process, on tables of the newest version."""
        found = self._open.get(os.getpid())
        if found is not None and found.file is not None and (there := self._identity()) != found.file:
            # SQLite writes on into a file that was deleted or replaced, and all of it is gone with the last connection.
            if there is None:
                raise StoreUnavailable(
                    f"{self.name}: the file is not there any more, or cannot be reached; nothing was written. Put it "
                    "back, and try again"
                )
            self.close()
            found = None
        if found is None:
            made = self._new_engines()
            try:
                self._migrate(made)
            except BaseException:
                made.dispose()
                raise
            made = replace(made, file=self._identity())
            self.opened += 1
            found = self._open.setdefault(os.getpid(), made)
            if found is not made:  # another thread was faster
                made.dispose()
        return found

    def _identity(self) -> tuple[int, int] | None:
        """The file that stands at the path now."""
        path = _file_of(self.url)
        if path is None:
            return None
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _migrate(self, engines: _Engines) -> None:
        with engines.reader.connect() as connection:
            behind = migrations.version_of(connection, self.name) < migrations.NEWEST
        if behind:
            with engines.writer.begin() as connection:
                migrations.migrate(connection, self.clock() if self.clock else time.time(), name=self.name)

    def _new_engines(self) -> _Engines:
        if self.dialect == "postgresql":
            engine = create_engine(
                self.url, pool_size=POSTGRES_CONNECTIONS, max_overflow=0, pool_timeout=PATIENCE, pool_pre_ping=True
            )
            event.listen(engine, "connect", _on_postgres_connection)
            return _Engines(engine, engine)
        if self.is_in_memory:  # it lives as long as its one connection
            engine = self._sqlite(1, "BEGIN IMMEDIATE")
            return _Engines(engine, engine)
        return _Engines(self._sqlite(READERS, "BEGIN"), self._sqlite(1, "BEGIN IMMEDIATE"))

    def _sqlite(self, connections: int, begin: str) -> Engine:
        path = _file_of(self.url)
        if path is not None:
            _make_private(path, self.name)
        engine = create_engine(
            self.url,
            poolclass=QueuePool,
            pool_size=connections,
            max_overflow=0,
            # Longer than SQLite itself waits for a lock: who waits for a connection waits behind such a wait.
            pool_timeout=PATIENCE * 2,
            connect_args={"check_same_thread": False, "timeout": PATIENCE},
        )
        event.listen(engine, "connect", _on_sqlite_connection)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except exc.TimeoutError as error:
            raise StoreUnavailable(f"{self.name}: no connection became free for a long time: {error}") from error
        except exc.DBAPIError as error:
            raise self._explained(error) from error
        except exc.ResourceClosedError as error:
            raise StoreUnavailable(f"{self.name}: the connection was closed: {error}") from error

    def _explained(self, error: exc.DBAPIError) -> StoreError:
        said = addresses.without(self._secrets(), " ".join(str(error.orig).split()))
        return _explained(self.name, error, said)

    def _secrets(self) -> Iterator[str]:
        """What no error may repeat of what this database is opened with."""
        yield self.url.password or ""
        for name, value in self.url.query.items():
            if addresses.is_secret(name):
                yield from (value,) if isinstance(value, str) else value


def resolved(url: str) -> URL:
    """The URL with its driver, and a file of SQLite by its absolute path."""
    if not isinstance(url, str | URL):
        raise InputError(f"store {errors.shown(url)} is not a database URL; {_REMEDY}")
    shown = addresses.shown(url) if isinstance(url, str) else url
    try:
        found = make_url(url)
    except exc.ArgumentError:
        raise InputError(f"store {shown!r} is not a database URL; {_REMEDY}") from None
    except ValueError:  # its text would quote what stands in the place of the port, a part of a password perhaps
        if "@" not in url:
            shown = f"{url.partition('://')[0]}://..."
        raise InputError(
            f"store {shown!r} is not a database URL: its port is no number. Write characters such as : / @ # in a "
            f"user's name or password as %3A %2F %40 %23; {_REMEDY}"
        ) from None
    known = _DRIVERS.get(found.get_backend_name())
    if known is None:
        raise InputError(f"store {shown!r} is of no kind that is known; {_REMEDY}")
    if "+" in found.drivername and found.get_driver_name() != known[0]:
        raise InputError(f"store {shown!r}: only the driver {known[0]} is supported; {_REMEDY}")
    if found.get_backend_name() == "sqlite":
        _check_path(found, url, str(shown))
    found = found.set(drivername="+".join((found.get_backend_name(), known[0])))
    if found.get_backend_name() == "sqlite" and not is_in_memory(found) and "uri" not in found.query:
        found = found.set(database=str(Path(str(found.database)).absolute()), query={})
    if found.get_backend_name() == "postgresql":
        _import_psycopg()
    return found


def name_of(url: str | URL) -> str:
    """A URL for people: as it was given, a file of SQLite by its whole path, and without a password."""
    given = url if isinstance(url, str) else url.render_as_string(hide_password=True)
    scheme, _, rest = given.partition(":///")
    path, _, options = rest.partition("?")
    if scheme.startswith("sqlite") and path not in ("", ":memory:") and "uri=" not in options:
        return f"{scheme}:///{Path(path).absolute()}"
    return addresses.shown(given)


def _check_path(found: URL, url: str | URL, shown: str) -> None:
    """Raises ``InputError`` for what SQLAlchemy would not take, or would leave aside: a path that is cut at its ``?``
    is another file, and one that was to be read only is written."""
    if found.host or found.username or found.port:
        shown = addresses.shown(found.render_as_string(hide_password=True))  # which a path could not have
        raise InputError(
            f"store {shown!r}: a path stands behind three slashes: sqlite:///FILE, or sqlite:////FOLDER/FILE"
        )
    if "\0" in str(found.database):
        raise InputError(f"store {shown!r}: a path holds no character of number 0: name a file")
    text = url if isinstance(url, str) else url.render_as_string()
    fields = [field for field in text.partition("?")[2].split("&") if field and field.lower() not in _AS_IT_IS]
    names = [field.partition("=")[0] for field in fields]
    if names and "uri" not in found.query:  # SQLite reads them there, and its extensions know more of them
        way = "write ? in a path as %3F; options of SQLite stand in sqlite:///file:FILE?mode=ro&uri=true"
        raise InputError(f"store {shown!r}: there is no option {names[0]!r} of a file: {way}")


_AS_IT_IS = {"check_same_thread=false", "check_same_thread=0"}
"""What examples give beside the path of a file, and what holds here anyway."""

_REMEDY = "give sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"


def _import_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise InputError("a session on PostgreSQL needs psycopg: pip install 'contextfold[postgres]'") from None


def is_in_memory(url: URL) -> bool:
    """Whether a database lives in one process, as long as its one connection."""
    if url.get_backend_name() != "sqlite":
        return False
    named = url.database or ":memory:"
    as_uri = named.startswith("file:") and (named.startswith("file::memory:") or url.query.get("mode") == "memory")
    return as_uri or named == ":memory:"


def _file_of(url: URL) -> str | None:
    """The path of the file that SQLite opens for a URL; None where there is none to be made."""
    named = url.database
    if not named or url.get_backend_name() != "sqlite" or is_in_memory(url):
        return None
    if not named.startswith("file:"):
        return named
    path, _, _ = named.removeprefix("file:").partition("?")
    if url.query.get("mode") == "ro":
        return None
    return unquote("/" + path.lstrip("/") if path.startswith("/") else path)


def _make_private(path: str, name: str) -> None:
    """Make the file of a database, for its owner alone, unless it is there. Raises ``StoreError`` for a link."""
    for file in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        if local.is_link(file):
            raise StoreError(
                f"{name}: {file} is a symbolic link, which is not followed: name the file that it leads to, or remove "
                "the link"
            )
    with suppress(OSError):  # it is there; or it cannot be made, which SQLite says better
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, local.FILE))


def _on_sqlite_connection(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin and end where SQLAlchemy says so
    connection.text_factory = _text_of
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA secure_delete=ON")  # many builds leave what was deleted in pages that are free
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
        _to_wal(cursor)
    cursor.close()


def _text_of(raw: bytes) -> str | bytes:
    """A text that is stored; what is none as it is, for its reader to tell. SQLite's driver would end the whole query
    with it, and with it all the other rows."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _to_wal(cursor: Any) -> None:
    import sqlite3

    # Switching needs the file for itself for a moment, and does not wait for it: so we do.
    until = time.monotonic() + PATIENCE
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "readonly" in str(error) or time.monotonic() > until:
                return  # it works without, only slower; and a file that cannot be written says so at the first write
            if "locked" not in str(error) and "busy" not in str(error):
                raise
            time.sleep(0.01)


def _on_postgres_connection(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{PATIENCE}s'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{2 * PATIENCE}s'")
    connection.commit()


# ---- errors ----


def _explained(name: str, error: exc.DBAPIError, said: str) -> StoreError:
    """A driver's error as ours: what is wrong, and the way out. ``said``: its text, without secrets."""
    said = said or type(error.orig).__name__
    state = getattr(error.orig, "sqlstate", None)
    lower = said.lower()
    if "malformed" in lower or "not a database" in lower or (state or "").startswith("XX"):
        # A log that an earlier file left is played into the restored one, and damages it in turn.
        first = "" if hasattr(error.orig, "sqlstate") else ", and remove the -wal and -shm beside it first"
        if "not a database" in lower:  # SQLite's words for any file that does not begin as its own do
            what = "is damaged, or never was a database of SQLite: check its name, or restore it"
            return StoreCorrupt(f"{name} {what} from a backup{first}. Nothing was written")
        return StoreCorrupt(f"{name} is damaged: {said}; restore it from a backup{first}. Nothing was written")
    for sign, remedy in _SIGNS.items():
        if sign in lower:
            return StoreUnavailable(f"{name}: {said}; nothing was written. {remedy}")
    gone = state is not None and state.startswith(_SHUT_STATES)
    if gone or error.connection_invalidated or isinstance(error, exc.OperationalError | exc.InterfaceError):
        remedy = next((way for sign, way in _CONNECTING.items() if re.search(sign, lower)), "Try again once it is back")
        return StoreUnavailable(f"{name} cannot be used now: {said}. {remedy}")
    return StoreError(f"{name} refused: {type(error.orig).__name__}: {said}")


_SIGNS = {
    "disk is full": "Make room on the disk, and try again",
    "no space left": "Make room on the disk, and try again",
    "readonly": "Make the file and its folder writable, which reading needs, too, or copy it there with the file -wal "
    "beside it, and try again",
    "read-only": "Make the database writable, and try again",
    "unable to open": "Check that the folder exists and may be written to",
    "is locked": "Another process holds it for longer than it should: end that one, and try again",
    "disk i/o": "Make room on the disk, or check it, and try again",  # reading needs a page of shared memory
}

_LOGIN = r'authentication failed|role "[^"]*" does not exist|no password supplied|no pg_hba\.conf entry'
_CONNECTING = {
    _LOGIN: "Check the user and the password in the URL, and that the server lets this user in",
    r'database "[^"]*" does not exist': "Create the database, or check its name in the URL",
    r"too many (?:clients|connections)|connection slots are reserved": "Allow more connections on the server "
    "(max_connections), or open fewer stores at a time",
    r"translate host name|name or service not known|nodename nor servname|getaddrinfo": "Check the name of the host",
}
"""What a server says to whom it does not let in: waiting would not help."""
