"""Leases: taking one, keeping it alive while a summary is made, and giving it back whatever happens.

What belongs here: ``Loan``, which a cancelled task cannot leave behind, and one thread per process that renews what is
held. What does not: who may have a lease (the store).

A worker that dies renews nothing, so its leases expire. One that was stopped for longer than that finds its lease lost,
and what it made is discarded when it is to come into force, because the store asks for the owner then.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contextfold.ports import Ports, SyncPorts, run
from contextfold.store.reading import ask
from contextfold.store.values import Thread

RENEWALS = 3
"""How often a lease is renewed in the time after which it would expire."""


@dataclass(eq=False)
class Lease:
    """One lease that is held. ``renew`` extends it in the store, and says whether it is still held.

    ``due``: when to renew it next, in seconds of ``time.monotonic``.
    """

    renew: Callable[[], bool]
    seconds: float
    due: float = 0.0
    lost: bool = False


class Keeper:
    """Renews leases from a thread of its own, which ends when there is nothing left to renew."""

    def __init__(self) -> None:
        self._held: set[Lease] = set()
        self._changed = threading.Condition()
        self._running = False

    def hold(self, lease: Lease) -> None:
        """Renew this lease from now on."""
        with self._changed:
            lease.due = time.monotonic() + lease.seconds / RENEWALS
            self._held.add(lease)
            if not self._running:
                self._running = True
                # Not the event loop's: a summarizer that blocks the loop for a minute must not lose the lease by that.
                threading.Thread(target=self._run, daemon=True, name="contextfold-leases").start()
            self._changed.notify()

    def drop(self, lease: Lease) -> None:
        """Renew it no more."""
        with self._changed:
            self._held.discard(lease)
            self._changed.notify()

    def _run(self) -> None:
        while (lease := self._next()) is not None:
            self._renew(lease)

    def _next(self) -> Lease | None:
        """The lease that is due, when it is; None when none is left, and the thread has to end."""
        with self._changed:
            while self._held:
                lease = min(self._held, key=lambda held: held.due)
                left = lease.due - time.monotonic()
                if left <= 0:
                    return lease
                self._changed.wait(left)
            self._running = False
            return None

    def _renew(self, lease: Lease) -> None:
        try:
            lease.lost = not lease.renew()
        except Exception:  # noqa: BLE001 - tables of anyone's own raise what their database raises
            # A store that cannot be reached may be back before the lease expires; and this thread keeps the leases of
            # all other sessions as well.
            lease.due = time.monotonic() + lease.seconds / RENEWALS / 4
            return
        lease.due = time.monotonic() + lease.seconds / RENEWALS
        if lease.lost:
            self.drop(lease)


class Loan:
    """The right to summarize one thread of a store, from before it is asked for until after it is given back.

    A task that is cancelled while it asks leaves a thread behind that goes on asking, and may get the lease when no
    one is there any more to give it back. So both happen in turn: ``back`` waits for an ``acquire`` on its way, and
    after ``back`` none begins. A lease is given back under the name of its owner, so that doing it without having it,
    or twice, does no harm.
    """

    def __init__(self, store: Any, thread: Thread, seconds: float) -> None:
        self.owner = uuid.uuid4().hex
        self._store = store
        self._thread = thread
        self._seconds = seconds
        self._turn = threading.Lock()
        self._is_over = False
        self._may_hold = False
        self._lease = Lease(self._renew, seconds)

    async def acquire(self, ports: Ports) -> bool:
        """Ask for it; False if another worker has it. Once it is there it is renewed."""
        store, self._may_hold = self._store, True
        if inspect.iscoroutinefunction(store.acquire_lease):  # ends with its task
            got = bool(await ports.call(store.acquire_lease, self._thread, self.owner, self._seconds))
        else:
            got = await ports.wait_for(self._acquire)
        if got:
            keeper().hold(self._lease)
        self._may_hold = got
        return got

    def _acquire(self) -> bool:
        with self._turn:
            return not self._is_over and bool(self._store.acquire_lease(self._thread, self.owner, self._seconds))

    async def back(self, ports: Ports) -> bool:
        """Give it back, also while the task is being cancelled. False if it was lost meanwhile."""
        if not self._may_hold:
            return True
        keeper().drop(self._lease)
        store = self._store
        if inspect.iscoroutinefunction(store.release_lease):
            await ports.release(lambda: store.release_lease(self._thread, self.owner))
        else:
            await ports.release(self._back)
        return not self._lease.lost

    def _back(self) -> None:
        with self._turn:
            self._is_over = True
            self._store.release_lease(self._thread, self.owner)

    def _renew(self) -> bool:
        return bool(run(ask(SyncPorts(), self._store.renew_lease, self._thread, self.owner, self._seconds)))


_keepers: dict[int, Keeper] = {}


def keeper() -> Keeper:
    """The one of this process: threads do not survive a fork."""
    return _keepers.setdefault(os.getpid(), Keeper())
