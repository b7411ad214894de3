"""What the gateway keeps in a database: records of compactions by the hash of the messages they were made from, windows
that refusals taught, and the key that hides credentials.

A record is found by a tenant's scope and the chain hash of the messages it covers, never by a session's name. No
message and no credential is stored; a record holds the text of its summary.

What belongs here: tables and queries. What does not: connections and their errors (``store.database``).
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, text

from contextfold.errors import InputError, StoreError
from contextfold.observe import scrub
from contextfold.record.compaction import Compaction
from contextfold.store.database import Database

log = logging.getLogger("contextfold.gateway")

VERSION = 1
KEY_VARIABLE = "CONTEXTFOLD_GATEWAY_KEY"
CHUNK = 400
"""Hashes in one query. The longest beginnings are asked for first; one query finds nearly all records."""
DAY = 86_400.0
LEASE_SECONDS = 15.0
"""How long a worker that died keeps others from preparing a summary."""
KEEP_DAYS = 30
"""Records that no request used for this long are deleted when a gateway starts. Nothing but time is lost by it."""

_TABLES = (
    "CREATE TABLE IF NOT EXISTS gateway_schema (version BIGINT PRIMARY KEY, secret VARCHAR(64) NOT NULL)",
    """CREATE TABLE IF NOT EXISTS gateway_records (
        scope CHAR(32) NOT NULL,
        digest CHAR(32) NOT NULL,
        covers BIGINT NOT NULL,
        compaction_id VARCHAR(40) NOT NULL,
        record TEXT NOT NULL,
        made_at {real} NOT NULL,
        used_at {real} NOT NULL,
        PRIMARY KEY (scope, digest)
    )""",
    """CREATE TABLE IF NOT EXISTS gateway_prepared (
        scope CHAR(32) NOT NULL,
        base VARCHAR(40) NOT NULL,
        digest CHAR(32) NOT NULL,
        owner CHAR(32) NOT NULL,
        until {real} NOT NULL,
        record TEXT,
        PRIMARY KEY (scope, base, digest)
    )""",
    """CREATE TABLE IF NOT EXISTS gateway_windows (
        endpoint TEXT NOT NULL,
        model TEXT NOT NULL,
        tokens BIGINT NOT NULL,
        PRIMARY KEY (endpoint, model)
    )""",
)


class GatewayRecordStore:
    """The gateway's tables in one database. Methods block; each is one short transaction. Raises ``StoreError``."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.name = self.database.name
        self._secret: bytes | None = None
        self._is_prepared = False
        self._lock = threading.Lock()

    def prepare(self) -> bytes:
        """The tables are there, and old records are gone; the key that all gateways on this database share."""
        with self._lock:
            if self._is_prepared and self._secret is not None:
                return self._secret
            with self.database.write() as connection:
                self._create(connection)
                secret = self._shared_secret(connection)
                oldest = self.database.now(connection) - KEEP_DAYS * DAY
                connection.execute(text("DELETE FROM gateway_records WHERE used_at < :oldest"), {"oldest": oldest})
                connection.execute(text("DELETE FROM gateway_prepared WHERE until < :oldest"), {"oldest": oldest})
            self._secret = own_secret() or secret
            self._is_prepared = True
            return self._secret

    def start_over(self) -> None:
        """Something failed: the next use connects again, and makes the tables where the file is a new one."""
        self._is_prepared = False
        if not self.database.is_in_memory:
            self.database.close()

    def _create(self, connection: Connection) -> None:
        real = "REAL" if self.database.dialect == "sqlite" else "DOUBLE PRECISION"
        if self.database.dialect == "postgresql":  # two gateways that start at once take turns
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": 0x636F_6E74_6761_7465})
        for statement in _TABLES:
            connection.execute(text(statement.format(real=real)))

    def _shared_secret(self, connection: Connection) -> bytes:
        found = connection.execute(text("SELECT version, secret FROM gateway_schema ORDER BY version DESC")).first()
        if found is None:
            known = self._secret if own_secret() is None else None  # of a database that is gone
            # A key that was handed out is kept where the file was lost: other workers would find none of their
            # conversations again.
            made = known.hex() if known is not None else secrets.token_hex(32)
            connection.execute(text("INSERT INTO gateway_schema VALUES (:v, :s)"), {"v": VERSION, "s": made})
            return bytes.fromhex(made)
        if found[0] > VERSION:
            raise StoreError(
                f"{self.name} has gateway tables of version {found[0]}, and this contextfold knows them up to "
                f"{VERSION}: install a newer contextfold"
            )
        return bytes.fromhex(found[1])

    def find(self, scope: str, digests: Sequence[str]) -> tuple[str, Compaction] | None:
        """(digest, record) of the longest stored beginning. ``digests`` are of ever longer ones."""
        self.prepare()
        query = text(
            "SELECT digest, record FROM gateway_records WHERE scope = :scope AND digest IN :digests "
            "ORDER BY covers DESC LIMIT 1 OFFSET :passed"
        ).bindparams(bindparam("digests", expanding=True))
        with self.database.read() as connection:
            for end in range(len(digests), 0, -CHUNK):
                asked = {"scope": scope, "digests": list(digests[max(0, end - CHUNK) : end])}
                for passed in itertools.count():
                    found = connection.execute(query, {**asked, "passed": passed}).first()
                    if found is None:
                        break
                    if (record := _readable(found[1])) is not None:
                        return found[0], record
        return None

    def save(self, scope: str, digest: str, covers: int, record: Compaction) -> None:
        """Keep a record; a later one for the same messages takes its place."""
        self.prepare()
        with self.database.write() as connection:
            now = self.database.now(connection)
            values = {
                "scope": scope,
                "digest": digest,
                "covers": covers,
                "id": record.id,
                "record": record.to_json(),
                "now": now,
            }
            connection.execute(
                text(
                    "INSERT INTO gateway_records (scope, digest, covers, compaction_id, record, made_at, used_at) "
                    "VALUES (:scope, :digest, :covers, :id, :record, :now, :now) "
                    "ON CONFLICT (scope, digest) DO UPDATE SET covers = excluded.covers, "
                    "compaction_id = excluded.compaction_id, record = excluded.record, used_at = excluded.used_at"
                ),
                values,
            )

    def touch(self, scope: str, digest: str) -> None:
        """A record was used by a process that had not known it."""
        with self.database.write() as connection:
            connection.execute(
                text("UPDATE gateway_records SET used_at = :now WHERE scope = :scope AND digest = :digest"),
                {"now": self.database.now(connection), "scope": scope, "digest": digest},
            )

    # ---- summaries that are not in force yet ----

    def prepared(self, scope: str, base: str, digests: Sequence[str], owner: str) -> Compaction | bool | None:
        """What was prepared behind the record ``base`` for a beginning of this conversation; True where a worker is at
        it, False where one has died, None where none is. With an ``owner``, that one is from now on in place of either,
        for ``LEASE_SECONDS``.
        """
        self.prepare()
        query = text(
            "SELECT until, record, digest FROM gateway_prepared "
            "WHERE scope = :scope AND base = :base AND digest IN :digests ORDER BY record IS NULL, until DESC LIMIT 1"
        ).bindparams(bindparam("digests", expanding=True))
        place = {"scope": scope, "base": base}
        with self.database.write() if owner else self.database.read() as connection:
            now = self.database.now(connection)
            found = connection.execute(query, {**place, "digests": list(digests[-CHUNK:])}).first()
            if found is not None and found[1] is not None:
                if (record := _readable(found[1])) is not None:
                    return record
                if not owner:
                    return False
                clear = "UPDATE gateway_prepared SET record = NULL, until = 0 WHERE digest = :digest"
                connection.execute(text(f"{clear} AND scope = :scope AND base = :base"), {**place, "digest": found[2]})
                found = None
            # One that has much more left than it was given for is of before the clock was set back.
            latest = now + 2 * LEASE_SECONDS
            if found is not None and now < found[0] <= latest:
                return True
            if not owner:
                return None if found is None else False
            mine = {"digest": digests[-1], "owner": owner, "until": now + LEASE_SECONDS}
            # Two that come at the same moment both found none: on PostgreSQL the second one writes behind the first.
            taken = connection.execute(
                text(
                    "INSERT INTO gateway_prepared (scope, base, digest, owner, until) "
                    "VALUES (:scope, :base, :digest, :owner, :until) ON CONFLICT (scope, base, digest) "
                    "DO UPDATE SET owner = excluded.owner, until = excluded.until "
                    "WHERE gateway_prepared.record IS NULL AND NOT (gateway_prepared.until > :now "
                    "AND gateway_prepared.until <= :latest)"
                ),
                {**place, **mine, "now": now, "latest": latest},
            )
            return True if taken.rowcount == 0 else None

    def renew(self, owner: str) -> None:
        """A worker is still at what it prepares."""
        with self.database.write() as connection:
            connection.execute(
                text("UPDATE gateway_prepared SET until = :until WHERE owner = :owner AND record IS NULL"),
                {"owner": owner, "until": self.database.now(connection) + LEASE_SECONDS},
            )

    def conclude(self, owner: str, record: Compaction | None) -> None:
        """What came of it, for other workers; nothing where it failed."""
        end = "DELETE FROM gateway_prepared" if record is None else "UPDATE gateway_prepared SET record = :record"
        values = {"owner": owner} if record is None else {"owner": owner, "record": record.to_json()}
        with self.database.write() as connection:
            connection.execute(text(f"{end} WHERE owner = :owner"), values)

    # ---- the windows, as ``window.WindowStore`` wants them ----

    def load_window(self, endpoint: str, model: str) -> int | None:
        """The window in tokens that a refusal taught, or None."""
        self.prepare()
        with self.database.read() as connection:
            found = connection.scalar(
                text("SELECT tokens FROM gateway_windows WHERE endpoint = :endpoint AND model = :model"),
                {"endpoint": endpoint, "model": model},
            )
        return None if found is None else int(found)

    def save_window(self, endpoint: str, model: str, tokens: int) -> None:
        """Remember it in place of an earlier one."""
        self.prepare()
        values: dict[str, Any] = {"endpoint": endpoint, "model": model, "tokens": tokens}
        with self.database.write() as connection:
            connection.execute(
                text(
                    "INSERT INTO gateway_windows (endpoint, model, tokens) VALUES (:endpoint, :model, :tokens) "
                    "ON CONFLICT (endpoint, model) DO UPDATE SET tokens = excluded.tokens"
                ),
                values,
            )

    def close(self) -> None:
        self.database.close()


def _readable(record: str) -> Compaction | None:
    """A stored record; None where it is damaged, or a newer gateway on this database wrote it: it is as if there were
    none, and not a database that fails, which would be left alone for all conversations.
    """
    try:
        return Compaction.from_json(record)
    except InputError as error:
        log.warning("a stored record is not used: %s", scrub(str(error)))
        return None


def own_secret() -> bytes | None:
    """The key from the environment, for operators who keep it apart from the database."""
    value = os.environ.get(KEY_VARIABLE, "")
    return value.encode() if value else None


__all__ = ["KEY_VARIABLE", "GatewayRecordStore", "own_secret"]
