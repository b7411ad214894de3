"""What a session costs as it grows, and how many go through one process.

    python benchmarks/sessions.py [--messages 100000] [--sessions 1000] [--url sqlite]

First one session grows to 100,000 messages of a tool-using conversation. At each size: the median time of appending a
turn of four messages, of the view behind it in the same session object, and of the view in a session object that has
just been opened (a stateless worker); and the most memory that Python allocated for that last one. Then 1,000 sessions
at once through one process, async: appends, views and the wall time for all.

Exit code 1, with a line that says why, unless at the largest size an append and a view take at most 3 times what they
take at the smallest, and memory at most twice as much.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from store_stress import database

from contextfold import Compactor
from contextfold.observe import logger
from contextfold.store import Session, open_store

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
REPEATS = 15
SLOWER, LARGER = 3.0, 2.0
"""What the largest size may cost, as a multiple of the smallest."""
TURNS_AT_ONCE = 25


def turn(number: int) -> list[dict[str, Any]]:
    """A question, a call, its result and an answer: about 180 tokens."""
    path = f"/srv/app/module_{number}.py"
    call = {"id": f"call-{number}", "type": "function"}
    call = {**call, "function": {"name": "read_file", "arguments": f'{{"path": "{path}"}}'}}
    output = "".join(f"def step_{number}_{line}(value):\n    return value * {line}\n" for line in range(5))
    return [
        {"role": "user", "content": f"Look at {path}, for ticket BILL-{number}."},
        {"role": "assistant", "content": f"Reading {path}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call-{number}", "content": output},
        {"role": "assistant", "content": f"Module {number} rounds half to even."},
    ]


def opened(url: str, thread: str) -> Session:
    return Compactor(window=128_000).session(thread, open_store(url))


def grow(session: Session, size: int) -> None:
    """Append turns, with a view now and then, until there are ``size`` messages."""
    count = session.state().message_count
    while count < size:
        first = count // 4
        session.append([message for n in range(first, first + TURNS_AT_ONCE) for message in turn(n)])
        session.view()
        count += 4 * TURNS_AT_ONCE


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def measure(url: str, size: int) -> tuple[float, float, float, float]:
    """Milliseconds of an append, of the view behind it and of a fresh view; megabytes of a fresh view."""
    session = opened(url, "long")
    session.view()
    appends, views, fresh = [], [], []
    for number in range(REPEATS):
        new = turn(size + number)
        appends.append(milliseconds(partial(session.append, new)))
        made = len(session.summaries())
        took = milliseconds(session.view)
        if len(session.summaries()) == made:  # a pass is not what is measured here
            views.append(took)
        fresh.append(milliseconds(opened(url, "long").view))
    tracemalloc.start()
    opened(url, "long").view()
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return statistics.median(appends), statistics.median(views), statistics.median(fresh), memory


def curve(url: str, largest: int) -> list[tuple[int, float, float, float, float]]:
    print("one session as it grows: median milliseconds, and megabytes at most\n")
    print(
        f"{'messages':>9}  {'append':>8}  {'view':>8}  {'fresh':>10}  {'memory':>8}  {'summaries':>9}  {'total s':>7}"
    )
    rows = []
    start = time.perf_counter()
    for size in [size for size in SIZES if size <= largest]:
        grow(opened(url, "long"), size)
        found = measure(url, size)
        summaries = len(opened(url, "long").summaries())
        rows.append((size, *found))
        append, view, fresh, memory = found
        print(
            f"{size:>9,}  {append:>8.2f}  {view:>8.2f}  {fresh:>10.2f}  {memory:>8.1f}  {summaries:>9}"
            f"  {time.perf_counter() - start:>8.0f}"
        )
    return rows


async def _one(url: str, number: int, turns: int) -> None:
    session = opened(url, f"thread-{number}")
    for step in range(turns):
        await session.aappend(turn(100 * number + step))
        view = await session.aview()
    assert view[-1]["content"] == f"Module {100 * number + turns - 1} rounds half to even."


async def _all(url: str, sessions: int, turns: int) -> None:
    async with anyio.create_task_group() as group:
        for number in range(sessions):
            group.start_soon(_one, url, number, turns)


def crowd(url: str, sessions: int, turns: int = 4) -> None:
    took = milliseconds(lambda: anyio.run(_all, url, sessions, turns)) / 1000
    calls = 2 * turns * sessions
    print(f"\n{sessions:,} sessions at once: {calls:,} appends and views in {took:.1f} s, {calls / took:,.0f} a second")


def judge(rows: list[tuple[int, float, float, float, float]]) -> int:
    first, last = rows[0], rows[-1]
    problems = []
    for name, place, most in (
        ("an append", 1, SLOWER),
        ("a view", 2, SLOWER),
        ("a fresh view", 3, SLOWER),
        ("memory", 4, LARGER),
    ):
        if last[place] > most * first[place]:
            problems.append(f"{name}: {last[place]:.2f} at {last[0]:,} messages, {first[place]:.2f} at {first[0]:,}")
    print("\n" + ("\n".join(f"FAILED: {problem}" for problem in problems) or "holds what is promised"))
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=SIZES[-1])
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--url", default="sqlite", help="sqlite, postgresql, or a database URL")
    given = parser.parse_args()
    logger.setLevel("ERROR")
    with database(given.url) as url:
        rows = curve(url, given.messages)
        crowd(url, given.sessions)
        open_store(url).close()
    return judge(rows)


if __name__ == "__main__":
    sys.exit(main())
