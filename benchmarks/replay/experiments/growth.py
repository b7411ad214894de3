"""Growth: what one more turn costs a strategy in its own time, with up to 100,000 messages behind it.

Two situations, each measured side by side in one process:

- *fits*: everything fits the window, and there is nothing to do. Most calls of an agent are such.
- *compacted*: a window of 64,000 tokens, so the history was compacted by the first call, and what follows are the turns
  until the next compaction. Here a strategy that throws the originals away has little left to look at.

The conversation uses tools and is made by code. After a first call with the whole of it, two messages are added for
each of the next calls; their median counts, the first call is told apart. The time of the adapter (turning messages
into another library's) and of the summarizer is left out. A strategy is stopped at a length if its calls there are
expected to take longer than a stated limit, judged by the length before.

Memory: what the first call leaves behind, as ``tracemalloc`` counts it, without what the adapter made.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.replay import strategies
from benchmarks.replay.chat import Message
from benchmarks.replay.collect import Found
from benchmarks.replay.jobs import Plan, Progress
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.tables import NOTHING, table

TITLE = "Own time and memory as conversations grow"

LENGTHS = (1_000, 3_000, 10_000, 30_000, 100_000)
"""Messages."""
COMPARED = ("contextfold", "langchain", "deepagents", "langmem", "masking_langchain", "masking_turns")
TURNS, FEWEST_TURNS = 9, 3
LIMIT_SECONDS = 5.0
"""Of processor time, for the first call of a strategy at a length and the fewest turns after it, adapter included."""
MEMORY_LENGTH = 3_000
"""Messages. Counting every allocation slows everything down."""

WINDOWS = {"fits": 10**9, "compacted": 64_000}
"""Tokens, by situation."""


@dataclass(frozen=True, slots=True)
class Point:
    """A strategy at a length. Milliseconds of its own time; None where it was stopped before."""

    situation: str
    strategy: str
    length: int
    median: float | None
    worst: float | None
    first: float | None


def conversation(start: int, count: int) -> list[Message]:
    """Messages ``start`` to ``start + count`` of a conversation: calls and results, a person now and then."""
    made: list[Message] = []
    for number in range(start, start + count, 2):
        made += _talk(number) if number % 50 == 0 else _work(number)
    return made


def _talk(number: int) -> list[Message]:
    return [
        {"role": "user", "content": f"Look at module {number} as well, and tell me what it does."},
        {"role": "assistant", "content": f"I looked at module {number}; it scales its input by {number}."},
    ]


def _work(number: int) -> list[Message]:
    function = {"name": "read_file", "arguments": f'{{"path": "/srv/app/module_{number}.py"}}'}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    output = f"def step_{number}(value):\n    return value * {number}\n" * 4
    return [
        {"role": "assistant", "content": f"Reading module {number}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "name": "read_file", "content": output},
    ]


# ---- measuring ----


def run(plan: Plan, conversations: Sequence[Found], progress: Progress) -> dict[str, Any]:
    """Every point, and the memory; none of it is the same in two runs. Conversations of the run are not used."""
    names = [name for name in COMPARED if name in plan.strategies]
    points: list[Point] = []
    total = len(WINDOWS) * len(LENGTHS) * len(names)
    for situation, window in WINDOWS.items():
        spent: dict[str, float] = {}  # processor seconds at the length before
        for place, length in enumerate(LENGTHS):
            for name in names:
                expected = spent.get(name, 0.0) * (length / LENGTHS[place - 1] if place else 1)
                point, spent[name] = _point(situation, window, name, length, expected)
                points.append(point)
                progress("growth", len(points), total)
    memory = {name: _memory(name) for name in names}
    return {"figures": {}, "times": {"points": [asdict(point) for point in points], "memory": memory}}


def _point(situation: str, window: int, name: str, length: int, expected: float) -> tuple[Point, float]:
    """A point, and the processor seconds that its calls took or would have taken, adapter included."""
    if expected > LIMIT_SECONDS:
        return Point(situation, name, length, None, None, None), expected
    strategy = strategies.create(name, window)
    try:
        messages = conversation(0, length)
        gc.collect()
        started = time.process_time()
        first = _own_milliseconds(strategy, messages)
        times: list[float] = []
        spent = 0.0
        while len(times) < FEWEST_TURNS or (len(times) < TURNS and time.process_time() - started < LIMIT_SECONDS):
            messages = [*messages, *conversation(length + 2 * len(times), 2)]
            times.append(_own_milliseconds(strategy, messages))
            spent = spent if len(times) > FEWEST_TURNS else time.process_time() - started
    finally:
        strategy.close()
    return Point(situation, name, length, statistics.median(times), max(times), first), spent


def _own_milliseconds(strategy: Strategy, messages: list[Message]) -> float:
    outside = strategy.adapter_seconds + strategy.summarizer.seconds
    started = time.perf_counter()
    strategy.view(messages)
    spent = time.perf_counter() - started
    return 1_000 * (spent - (strategy.adapter_seconds + strategy.summarizer.seconds - outside))


def _memory(name: str) -> int:
    """Bytes that a strategy holds after its first call with ``MEMORY_LENGTH`` messages, all of which fit."""
    messages = conversation(0, MEMORY_LENGTH)
    strategy = strategies.create(name, WINDOWS["fits"])
    try:
        strategy.view(messages[:2])  # imports and tables that any conversation shares
        gc.collect()
        tracemalloc.start()
        strategy.view(messages)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        return held - _adapter_bytes(tracemalloc.take_snapshot())
    finally:
        tracemalloc.stop()
        strategy.close()


def _adapter_bytes(snapshot: tracemalloc.Snapshot) -> int:
    return sum(trace.size for trace in snapshot.traces if trace.traceback[0].filename.endswith("bridge.py"))


# ---- the section of the report ----


def markdown(found: Mapping[str, Any]) -> str:
    """Nothing but what is in ``markdown_times``: no figure here is the same in two runs."""
    return ""


def markdown_times(found: Mapping[str, Any]) -> str:
    """Median milliseconds per call by length, how many times contextfold is faster, and memory."""
    points = [Point(**point) for point in found["times"]["points"]]
    window = f"{WINDOWS['compacted']:,} tokens"
    parts = [
        f"Milliseconds of a strategy's own time per call, the median of up to {TURNS} calls; in brackets, how many "
        f"times as long as contextfold's. {NOTHING}: stopped, because the first call and {FEWEST_TURNS} more were "
        f"expected to take more than {LIMIT_SECONDS:g} seconds of processor time.",
        "**Everything fits**",
        _table(points, "fits", "median"),
        f"**Compacted, in a window of {window}**",
        _table(points, "compacted", "median"),
        f"**The compaction itself**: the first call, with the whole history at once, in a window of {window}",
        _table(points, "compacted", "first"),
        f"**Memory** held after a call with {MEMORY_LENGTH:,} messages that all fit, the caller's own not counted",
        _memory_table(found["times"]["memory"]),
    ]
    return "\n\n".join(parts)


def _table(points: Sequence[Point], situation: str, figure: str) -> str:
    """Milliseconds by strategy and length; ``figure`` is a field of ``Point``."""
    names = list(dict.fromkeys(point.strategy for point in points))
    medians = {(p.strategy, p.length): getattr(p, figure) for p in points if p.situation == situation}
    lines = []
    for name in names:
        cells = [_cell(medians[name, length], medians.get((strategies.OURS, length)), name) for length in LENGTHS]
        lines.append([name, *cells])
    return table(["messages", *(f"{length:,}" for length in LENGTHS)], lines)


def _cell(median: float | None, ours: float | None, name: str) -> str:
    if median is None:
        return NOTHING
    text = f"{median:.3f}" if median < 10 else f"{median:,.0f}"
    if name == strategies.OURS or not ours:
        return text
    ratio = median / ours
    return f"{text} ({ratio:,.1f}x)" if ratio >= 1 else f"{text} ({ratio:.2g}x)"


def _memory_table(memory: Mapping[str, int]) -> str:
    lines = [[name, f"{held / 1e6:.1f}", f"{held / MEMORY_LENGTH:,.0f}"] for name, held in memory.items()]
    return table(["strategy", "megabytes", "bytes per message"], lines)


def plots(found: Mapping[str, Any], folder: Path) -> None:
    """``growth.svg``: own time per call by length, for both situations."""
    from benchmarks.replay import plotting

    points = [Point(**point) for point in found["times"]["points"]]
    with plotting.figure(folder / "growth.svg", 1, len(WINDOWS), size=(10, 4), sharey=True) as (_, axes):
        for axis, situation in zip(axes, WINDOWS, strict=True):
            _curves(axis, [point for point in points if point.situation == situation])
            axis.set_title("everything fits" if situation == "fits" else "compacted, 64k window")
        axes[0].set_ylabel("own time per call, milliseconds")
        axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _curves(axis: Any, points: Sequence[Point]) -> None:
    from benchmarks.replay import plotting

    for name in dict.fromkeys(point.strategy for point in points):
        known = [(p.length, p.median) for p in points if p.strategy == name and p.median is not None]
        axis.plot(
            [length for length, _ in known],
            [median for _, median in known],
            color=plotting.color(name),
            marker=plotting.mark(name),
            label=name,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("messages in the conversation")
