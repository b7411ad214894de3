"""What all workers share: the key that hides credentials, records, and windows that refusals taught.

A database that is down must cost an agent nothing: each question has its time, and after a failure the database is
left alone for a while, so that requests do not queue up behind it. What this process knows itself is asked first.

What belongs here: whose a conversation is, and asking the store. What does not: tables and queries (``records``).
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from contextfold.errors import reason
from contextfold.gateway.body import Body
from contextfold.gateway.call import GatewayCall, State
from contextfold.gateway.records import CHUNK, LEASE_SECONDS, GatewayRecordStore, own_secret
from contextfold.gateway.settings import GatewaySettings
from contextfold.gateway.wires import GatewayWire
from contextfold.record.compaction import Compaction

T = TypeVar("T")

CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"chatgpt-account-id")
"""Headers that say who asks. Hashed together, never kept."""
CREDENTIALS_IN_QUERIES = ("key", "api_key", "api-key", "access_token")
"""The same in a query string, as Google's and Azure's clients send it."""
STORE_SECONDS = 3.0
"""How long a request waits for the database before it goes on without."""
STORE_PAUSE_SECONDS = 5.0
"""How long the database is left alone after it failed."""
STORE_THREADS = 16
"""Questions to the database at a time. A network that loses them may hold each for minutes."""
WINDOW_SECONDS = 2.0
"""How old what other workers learned may be."""
POLL_SECONDS = 0.5
"""How often a summary is asked for that another worker prepares."""
RECENT_RECORDS = 4_096
MOST_WINDOWS = 1_024
"""Model names come from outside."""


class StoreFailed(Exception):
    """The database did not answer, or not in time."""


class SharedStore:
    """The store as one process uses it. It is also where its engine keeps learned windows (``window.WindowStore``)."""

    def __init__(
        self,
        settings: GatewaySettings,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        adopt: Callable[[str, str, int], object],
    ) -> None:
        """``spawn`` runs work beside a request; ``adopt`` gets what other workers learned: endpoint, model, tokens."""
        self.records = GatewayRecordStore(settings.store_url)
        # Whoever reads the same database: another worker, or another gateway that was started on the same file.
        self.has_others = not self.records.database.is_in_memory
        self._keeps = not settings.shadow
        self._spawn = spawn
        self._adopt = adopt
        self._secret = own_secret()
        self._spare_secret = secrets.token_bytes(32)
        self._back_at = 0.0
        self.problem = ""
        """What the database failed with when it did so last. The question that met it may have had no one to tell."""
        self._threads = _Daemons(STORE_THREADS)
        self._recent: OrderedDict[tuple[bytes, bytes], Compaction] = OrderedDict()
        self._windows: dict[tuple[str, str], tuple[int | None, float]] = {}

    @property
    def is_away(self) -> bool:
        """Whether the database failed a moment ago."""
        return time.monotonic() < self._back_at

    async def close(self) -> None:
        await asyncio.to_thread(self.records.close)
        self._threads.close()

    # ---- whose conversation ----

    async def scope(self, call: GatewayCall, wire: GatewayWire) -> bytes:
        """The tenant: a keyed hash of the credential, the upstream and the wire."""
        told = hashlib.blake2b(digest_size=16, key=await self.hash_key())
        # of a header that came twice, the first counts
        named = {name.lower(): value for name, value in reversed(call.headers)}
        for name in CREDENTIALS:
            told.update(b"\0" + name + b"=" + named.get(name, b""))
        if call.query:
            for said, value in parse_qsl(call.query, keep_blank_values=True):
                if said.lower() in CREDENTIALS_IN_QUERIES:
                    told.update(b"\0?" + said.lower().encode() + b"=" + value.encode())
        told.update(b"\0" + call.upstream.endpoint.encode() + b"\0" + wire.format.encode())
        return told.digest()

    async def hash_key(self) -> bytes:
        """The key that all gateways on one database share; one of our own as long as the database is away."""
        if self._secret is None:
            try:
                self._secret = (await self._ask(self.records.prepare))[:64]
            except StoreFailed:
                # A key for this process alone: records stay apart by tenant, and other workers find none of them
                # until the database is back.
                return self._spare_secret
        return self._secret[:64]

    # ---- records ----

    async def look_up(self, scope: bytes, chain: Sequence[bytes], state: State, *, is_new: bool) -> None:
        """Put the record of the longest known beginning in force, if it is longer than the one at hand.

        Raises ``StoreFailed``; what this process knows itself is in force then.
        """
        covers = state.record.covers if state.record is not None else 0
        for place in range(len(chain) - 1, covers - 1, -1):
            record = self._recent.get((scope, chain[place]))
            if record is not None and record is not state.record and state.can_use(record, len(chain)):
                state.adopt(record, chain[place])
                break
        if not (is_new or self.has_others) or not self._keeps:
            return
        covers = state.record.covers if state.record is not None else 0
        # With the place of the record at hand: another worker may have put a later one there.
        longer = chain[max(0, covers - 1) if self.has_others else covers :]
        if not longer:
            return
        asked = [digest.hex() for digest in longer]
        found = await self._ask(self.records.find, scope.hex(), asked)
        while found is not None and not state.can_use(found[1], len(chain)):
            asked = asked[: asked.index(found[0])]
            found = await self._ask(self.records.find, scope.hex(), asked) if asked else None
        if found is not None and (state.record is None or found[1].id != state.record.id):
            state.adopt(found[1], bytes.fromhex(found[0]))
            self._remember(scope, state.digest, found[1])
            self._spawn(self._touched(scope.hex(), found[0]))

    async def _touched(self, scope: str, digest: str) -> None:
        with suppress(StoreFailed):  # it only keeps the record from being deleted a month from now
            await self._ask(self.records.touch, scope, digest)

    async def keep(self, scope: bytes, body: Body, state: State, record: Compaction) -> None:
        """A record is in force for this conversation, and stored for every worker. Raises ``StoreFailed``."""
        chain = body.chain
        digest = chain[record.covers - 1] if 0 < record.covers <= len(chain) else b""
        replaced = state.record
        if replaced is not None and digest and digest == state.digest and record.parent == replaced.id:
            # It takes that one's row, after a refusal: so it takes its place in the line of records, too.
            record = record.changed(parent=replaced.parent)
        state.record, state.digest = record, digest
        # It covers nothing of the chain, so there is nothing to find it by; or all that it is found by may stand in the
        # conversation of another person, too. So it stays with the conversation here.
        if not digest or record.lacks or not state.is_told_by(body.open[: record.covers]):
            return
        self._remember(scope, digest, record)
        if self._keeps:
            await self._ask(self.records.save, scope.hex(), digest.hex(), record.covers, record)

    # ---- summaries that are not in force yet ----

    async def prepare_once(
        self,
        scope: bytes,
        chain: Sequence[bytes],
        base: str | None,
        make: Callable[[], Awaitable[Compaction | None]] | None,
    ) -> Compaction | bool | None:
        """What another worker has prepared behind this record, waited for where one is at it, or else what ``make``
        prepares: a summary is paid for once. None where it failed, which each of those that wait would wait for again.

        Without ``make`` what another has prepared, or True where one is at it.
        """
        if not (self.has_others and self._keeps and chain):
            return None if make is None else await make()
        asked = scope.hex(), base or "", [digest.hex() for digest in chain[-CHUNK:]]
        owner = "" if make is None else secrets.token_hex(16)
        try:
            found = await self._ask(self.records.prepared, *asked, owner)
            if make is None:
                return found
            if found is None:
                return await self._concluded(owner, make)
            while found is True:
                await asyncio.sleep(POLL_SECONDS)
                found = await self._ask(self.records.prepared, *asked, "")
        except StoreFailed:
            return None if make is None else await make()
        # The worker that was at it has died.
        return found if found is not False else await self.prepare_once(scope, chain, base, make)

    async def _concluded(self, owner: str, make: Callable[[], Awaitable[Compaction | None]]) -> Compaction | None:
        """What ``make`` prepares, for the others as well."""
        renewing = asyncio.create_task(self._renewed(owner))
        try:
            record = await make()
        finally:
            renewing.cancel()
        with suppress(StoreFailed):  # the others wait until the lease ends, and pay
            await self._ask(self.records.conclude, owner, record)
        return record

    async def _renewed(self, owner: str) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with suppress(StoreFailed):
                await self._ask(self.records.renew, owner)

    def _remember(self, scope: bytes, digest: bytes, record: Compaction) -> None:
        self._recent[scope, digest] = record
        self._recent.move_to_end((scope, digest))
        while len(self._recent) > RECENT_RECORDS:
            self._recent.popitem(last=False)

    # ---- windows ----

    async def load_window(self, endpoint: str, model: str) -> int | None:
        """What a provider named to any worker; asked again now and then, and never waited for twice."""
        key = (endpoint, model)
        known = self._windows.get(key)
        if known is None:
            await self._refresh_window(key)
        elif self.has_others and time.monotonic() - known[1] > WINDOW_SECONDS:
            # fresh from now on, so that only one request asks
            self._windows[key] = (known[0], time.monotonic())
            self._spawn(self._refresh_window(key))
        return self._windows[key][0]

    async def save_window(self, endpoint: str, model: str, tokens: int) -> None:
        self._windows[endpoint, model] = (tokens, time.monotonic())
        await self._ask(self.records.save_window, endpoint, model, tokens)

    async def _refresh_window(self, key: tuple[str, str]) -> None:
        tokens = self._windows.get(key, (None, 0.0))[0]
        with suppress(StoreFailed):  # it costs one refused request at most
            stored = await self._ask(self.records.load_window, *key)
            tokens = stored if stored is not None else tokens
        while len(self._windows) >= MOST_WINDOWS:
            self._windows.pop(next(iter(self._windows)))
        self._windows[key] = (tokens, time.monotonic())
        if tokens is not None:
            self._adopt(*key, tokens)

    # ---- the database ----

    async def _ask(self, ask: Callable[..., T], *arguments: Any) -> T:
        """Raises ``StoreFailed``, at once where the database failed a moment ago."""
        # Asking a database that is down costs each request the full timeout; once in a while is enough to see that it
        # is back.
        if self.is_away:
            raise StoreFailed(f"it is left alone for {STORE_PAUSE_SECONDS:g} seconds, since it failed: {self.problem}")
        try:
            answer = self._threads.submit(partial(copy_context().run, ask, *arguments))
            return await asyncio.wait_for(asyncio.wrap_future(answer), STORE_SECONDS)
        except TimeoutError:
            problem = f"{self.records.name} gave no answer within {STORE_SECONDS:g} seconds"
        except Exception as error:  # noqa: BLE001 - whatever a driver raises: the agent goes on
            problem = reason(error)
            self.records.start_over()
        self._back_at, self.problem = time.monotonic() + STORE_PAUSE_SECONDS, problem
        raise StoreFailed(problem)


class _Daemons:
    """Threads that nothing waits for at its end. Those of asyncio are few, shared with what looks up names of hosts,
    and its loop, and the process behind it, ends only with them.
    """

    def __init__(self, most: int) -> None:
        self._asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._free = threading.Semaphore(0)
        self._most = most
        self._started = 0

    def submit(self, ask: Callable[[], T]) -> Future[T]:
        """Its answer. What is canceled before a thread is free is never asked."""
        answer = Future[T]()
        self._asked.put((answer, ask))
        if not self._free.acquire(blocking=False) and self._started < self._most:
            self._started += 1
            threading.Thread(target=self._work, daemon=True, name="contextfold-records").start()
        return answer

    def close(self) -> None:
        """Each ends when it has its answer."""
        for _ in range(self._started):
            self._asked.put(None)

    def _work(self) -> None:
        while (one := self._asked.get()) is not None:
            answer, ask = one
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(ask())
                except BaseException as error:  # noqa: BLE001 - carried to the task that waits
                    answer.set_exception(error)
            del one, answer, ask  # nothing is kept alive by a thread that waits
            self._free.release()
