"""A small conversation whose figures can be worked out by hand, and strategies made of one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.replay.chat import Message
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measure import Column, Number
from benchmarks.replay.measures import MEASURES, columns
from benchmarks.replay.recording import Recording
from benchmarks.replay.replay import replay
from benchmarks.replay.strategies.base import Strategy

WINDOW = 2_000
FILLER = "the cache was cold and nothing else was learned from this step of the work "
FIRST, RARE = "/srv/app/first_module.py", "/srv/app/rare_module.py"
SEEN = f"broken import lives inside {FIRST} near the loader, unlike {RARE} "


def tool_loop(turns: int = 60) -> Recording:
    """One request, then calls only.

    The output of turn 1 names two files: ``FIRST`` is needed every tenth turn, ``RARE`` only in turn 50.
    """
    messages: list[Message] = [
        {"role": "system", "content": "You are a careful agent."},
        {"role": "user", "content": "Repair the failing build of service_registry please."},
    ]
    for turn in range(turns):
        path = FIRST if turn % 10 == 9 else RARE if turn == 50 else f"/srv/app/module_{turn:04d}.py"
        calls = [
            _call(f"call{turn}a", "read", f'{{"path": "{path}"}}'),
            _call(f"call{turn}b", "run", '{"what": "make"}'),
        ]
        messages.append({"role": "assistant", "content": f"Step {turn}.", "tool_calls": calls})
        output = (SEEN if turn == 1 else "") + FILLER * 3
        messages.append({"role": "tool", "tool_call_id": f"call{turn}a", "content": output})
        messages.append({"role": "tool", "tool_call_id": f"call{turn}b", "content": "ok"})
    return Recording(Conversation("loop", "tests", tuple(messages)))


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class Made(Strategy):
    """A strategy of one function from messages (and the strategy) to a view."""

    def __init__(self, function: Callable[..., Any], window: int = WINDOW) -> None:
        super().__init__(window)
        self._function = function

    def view(self, messages: list[Message]) -> list[Message]:
        view: list[Message] = self._function(messages, self)
        return view


def totals_of(strategy: Strategy, recording: Recording | None = None) -> dict[str, Number]:
    """What all measures say of a strategy on the loop (or another recording)."""
    return dict(replay(recording or tool_loop(), strategy, MEASURES).totals)


def made(function: Callable[..., Any], recording: Recording | None = None) -> dict[str, Number]:
    """The same for a strategy of one function."""
    return totals_of(Made(function), recording)


def column(key: str) -> Column:
    """A column by its key."""
    return next(column for column in columns() if column.key == key)


def figure(key: str, totals: dict[str, Number], reference: dict[str, Number] | None = None) -> float:
    """A figure of a table. Fails where there is nothing to tell."""
    value = column(key).value(totals, reference or totals)
    assert value is not None, key
    return value
