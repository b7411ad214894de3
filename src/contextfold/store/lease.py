"""Keeping leases alive while summaries are made.

What belongs here: one thread per process that renews what is held. What does not: who may have a lease (the store).

A worker that dies renews nothing, so its leases expire. One that was stopped for longer than that finds its lease lost,
and what it made is discarded when it is to come into force, because the store asks for the owner then.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from contextfold.errors import StoreError

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
        """A store that cannot be reached may be back before the lease expires: it is tried again and again."""
        try:
            lease.lost = not lease.renew()
        except StoreError:
            lease.due = time.monotonic() + lease.seconds / RENEWALS / 4
            return
        lease.due = time.monotonic() + lease.seconds / RENEWALS
        if lease.lost:
            self.drop(lease)


_keepers: dict[int, Keeper] = {}


def keeper() -> Keeper:
    """The one of this process: threads do not survive a fork."""
    return _keepers.setdefault(os.getpid(), Keeper())
