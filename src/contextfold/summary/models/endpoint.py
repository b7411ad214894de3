"""What a process knows of one model at one place: how many requests are under way, and whether it works at all.

What belongs here: the gate (a limit on requests side by side), the breaker, and the register of both. What does not:
asking (``asking``). Kept here, too: which optional fields of a request it refused.
Nothing here waits: whoever finds a gate full comes again.

    closed ──failures in a row──▶ open ──after a while──▶ one probe under way ──it fails──▶ open again
       ◀────────────────────── any success ──────────────────────┘
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from weakref import WeakValueDictionary


class Endpoint:
    """One model at one place. Safe for concurrent use. Times are seconds of the clock that the caller reads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._under_way = 0
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False
        self._refused_fields: frozenset[str] = frozenset()

    @property
    def refused_fields(self) -> frozenset[str]:
        """Optional fields that requests do not carry, because the model said that it does not know them."""
        return self._refused_fields

    def refuse_field(self, name: str) -> bool:
        """Note that a field was refused. False if that was known, so that asking without it is no news."""
        with self._lock:
            is_new = name not in self._refused_fields
            self._refused_fields |= {name}
            return is_new

    def enter(self, parallel: int) -> bool:
        """Take a place, if fewer than ``parallel`` are taken. ``leave`` gives it back."""
        with self._lock:
            if self._under_way >= parallel:
                return False
            self._under_way += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._under_way -= 1

    def allows(self, now: float) -> bool:
        """Whether a request may be sent. Behind an open breaker, once its time is up, one may: the probe."""
        with self._lock:
            if self._open_until is None:
                return True
            if self._probing or now < self._open_until:
                return False
            self._probing = True
            return True

    def open_seconds(self, now: float) -> float:
        """For how long nothing is sent."""
        with self._lock:
            return 0.0 if self._open_until is None else max(0.0, self._open_until - now)

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._open_until, self._probing = 0, None, False

    def failed(self, now: float, *, failures: int | None, seconds: float) -> bool:
        """Note a failed request. True if this one opened the breaker, for ``seconds``, as ``failures`` in a row do."""
        with self._lock:
            self._failures += 1
            opens = self._probing or (failures is not None and self._failures >= failures and self._open_until is None)
            if opens:
                self._open_until, self._probing = now + seconds, False
            return opens

    def abandoned(self) -> None:
        """A request ended with neither success nor failure, such as by a cancellation."""
        with self._lock:
            self._probing = False


_named: dict[Hashable, Endpoint] = {}
_of_objects: WeakValueDictionary[Hashable, Endpoint] = WeakValueDictionary()
_register = threading.Lock()


def named(name: str, place: str) -> Endpoint:
    """The endpoint of a model by its name and address: the same for all who name it in this process."""
    with _register:
        return _named.setdefault((name, place), Endpoint(name))


def of_object(name: str, owner: object) -> Endpoint:
    """The endpoint of a callable or a model object, the same as long as somebody holds it.

    Who holds the endpoint must hold ``owner`` too, so that its identity stays its own.
    """
    function = getattr(owner, "__func__", None)  # a method: new at every look, unlike what it is bound to
    key = (id(owner),) if function is None else (id(getattr(owner, "__self__", None)), id(function))
    with _register:
        return _of_objects.setdefault(key, Endpoint(name))
