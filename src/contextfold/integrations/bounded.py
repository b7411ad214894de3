"""A mapping that forgets what was not used for longest: what faces remember inside one process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Generic, TypeVar

T = TypeVar("T")

REMEMBERED = 256
"""Threads; the one that was not used for longest goes first."""


class Bounded(Generic[T]):
    """A mapping that forgets what was not used for longest. Safe for concurrent use."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._values: OrderedDict[Any, T] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # What is remembered speaks of objects of this process and of this face: a copy begins with nothing.
        return type(self), (self._size,)

    def get(self, key: Any) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def pop(self, key: Any) -> T | None:
        """The value, which is forgotten."""
        with self._lock:
            return self._values.pop(key, None)

    def put(self, key: Any, value: T) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def drop(self, key: Any) -> None:
        with self._lock:
            self._values.pop(key, None)

    def all(self) -> list[T]:
        """The values, the one used last first."""
        with self._lock:
            return list(reversed(self._values.values()))
