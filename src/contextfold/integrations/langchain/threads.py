"""What a middleware remembers of threads inside one process: bounded, and safe for concurrent use.

What belongs here: telling threads of conversation apart, and the memory itself. What does not: what must survive the
process (``state``).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.runnables.config import var_child_runnable_config

T = TypeVar("T")

REMEMBERED = 256
"""Threads; the one that was not used for longest goes first."""


class ThreadKey(NamedTuple):
    """One conversation: a thread, the sub-graph in it, and its first message, which tells threads without id apart."""

    thread_id: str
    namespace: str
    first_message: str

    @property
    def address(self) -> str:
        """A text for stores: the thread and the sub-graph in it; of a thread without id its first message."""
        return "|".join(part for part in (self.thread_id, self.namespace) if part) or self.first_message


def thread_key(messages: Sequence[Any], config: Mapping[str, Any] | None = None) -> ThreadKey:
    """The key of a conversation: of the one that is running in this context, or of the one that ``config`` names."""
    configurable = (config or var_child_runnable_config.get() or {}).get("configurable") or {}
    namespace = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]  # the last part is this very step
    first = getattr(messages[0], "id", None) if messages else None
    return ThreadKey(str(configurable.get("thread_id") or ""), namespace, str(first or ""))


class Bounded(Generic[T]):
    """A mapping that forgets what was not used for longest."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._values: OrderedDict[Any, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Any, value: T) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def drop(self, key: Any) -> None:
        with self._lock:
            self._values.pop(key, None)
