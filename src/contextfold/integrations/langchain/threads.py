"""What a middleware remembers of threads inside one process: bounded, and safe for concurrent use.

What belongs here: telling threads of conversation apart, the memory itself, and letting the runs of one thread take
turns. What does not: what must survive the process (``state``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from langchain_core.runnables.config import var_child_runnable_config

from contextfold.ports import Ports, Worker


class ThreadKey(NamedTuple):
    """One conversation: a thread, the sub-graph in it, and its first message, which tells apart threads without id, and
    sub-agents that one node of a graph runs side by side.
    """

    thread_id: str
    namespace: str
    first_message: str

    @property
    def address(self) -> str:
        """A text for stores, the same at each run of a conversation: the thread, and of a sub-graph in it also that and
        its first message; of a thread without id its first message.
        """
        first = self.first_message if self.namespace or not self.thread_id else ""
        return "|".join(part for part in (self.thread_id, self.namespace, first) if part)


def thread_key(messages: Sequence[Any], config: Mapping[str, Any] | None = None) -> ThreadKey:
    """The key of a conversation: of the one that is running in this context, or of the one that ``config`` names."""
    configurable = _configurable(config)
    # Without the ids of tasks: an agent that is a node of another graph has another one at each run.
    namespace = "|".join(graph.partition(":")[0] for graph in _graphs(configurable))
    first = getattr(messages[0], "id", None) if messages else None
    return ThreadKey(str(configurable.get("thread_id") or ""), namespace, str(first or ""))


def begins_with_nothing(key: ThreadKey) -> bool:
    """Whether no checkpoint has what a run of the conversation that is running leaves in private state: that of an
    agent which is a node of another graph, or which has no checkpointer, since its caller has all messages.
    """
    # what LangGraph hands from graph to graph; a run that a checkpointer keeps has a thread, whatever it hands on
    has_checkpoints = _configurable(None).get("__pregel_checkpointer", key.thread_id or None) is not None
    return bool(key.namespace) or (any(key) and not has_checkpoints)


def task_id(config: Mapping[str, Any] | None = None) -> str:
    """The task that is this run of an agent inside another graph: it tells apart runs side by side that have the same
    ``ThreadKey``. Empty for an agent that is no node of another graph.
    """
    return "|".join(_graphs(_configurable(config)))


def _configurable(config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (config or var_child_runnable_config.get() or {}).get("configurable") or {}


def _graphs(configurable: Mapping[str, Any]) -> list[str]:
    return str(configurable.get("checkpoint_ns") or "").split("|")[:-1]  # the last part is this very step


_inside: ContextVar[frozenset[Any]] = ContextVar("_inside", default=frozenset())
"""The gates that what runs in this context stands at already."""


PAUSE = 0.02
"""Seconds between two looks at whether it is one's turn. What is waited for is a summary, which takes seconds."""

LONGEST = 120.0
"""Seconds that a run waits for its turn. A hook that waits for a run of its own thread, in a thread of its own, would
wait for ever; a summary that takes longer is paid for twice."""


class ThreadTurns:
    """Lets the runs of one thread compact one after the other, so that the second one finds the summary of the first.

    Sync and async runs wait for each other, and no run waits inside a lock: a run that is cancelled while it waits
    leaves nothing behind. Nothing is kept of a thread when no run is at its gate.
    """

    def __init__(self) -> None:
        self._gates: dict[Any, _Gate] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # who waits here waits for runs of the original

    @contextmanager
    def at_gate(self, key: ThreadKey) -> Iterator[Pass]:
        """A place in the queue of a thread: ``await Pass.wait(ports)``. The turn ends with the context, or before.

        Without thread id there is no queue, nor for what runs inside of a turn, such as a hook.
        """
        place = (self, key)
        # A hook that runs the agent again on its own thread would wait for the turn that waits for the hook.
        if not key.thread_id or place in _inside.get():
            with Pass(_Gate()) as alone:
                yield alone
            return
        with self._lock:
            gate = self._gates.setdefault(place, _Gate())
            gate.users += 1
        token = _inside.set(_inside.get() | {place})
        try:
            with Pass(gate) as turn:
                yield turn
        finally:
            _inside.reset(token)
            with self._lock:
                gate.users -= 1
                if not gate.users:
                    del self._gates[place]


class _Gate:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.holder: Worker | None = None


class Pass:
    """Whose turn it is. It is released once, at the end of the context at the latest."""

    def __init__(self, gate: _Gate) -> None:
        self._gate = gate
        self._is_held = False

    async def wait(self, ports: Ports) -> None:
        """Until it is this one's turn, or has not been for too long; not for a run that this one holds up."""
        worker = Worker.over(ports)
        for _ in range(int(LONGEST / PAUSE)):
            if self._gate.lock.acquire(blocking=False):
                self._is_held, self._gate.holder = True, worker
                return
            holder = self._gate.holder
            if holder is not None and not holder.can_be_awaited_by(worker):
                return
            await ports.sleep(PAUSE)

    def leave(self) -> None:
        """Let the next one in."""
        if self._is_held:
            self._is_held, self._gate.holder = False, None
            self._gate.lock.release()

    @property
    def is_shared(self) -> bool:
        """Whether another run of the thread is at the gate, or went through it and is not done."""
        return self._gate.users > 1

    def __enter__(self) -> Pass:
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()
