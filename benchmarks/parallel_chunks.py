"""Chunks side by side: wall time against the critical path, with a summarizer of fixed latency.

    python -m benchmarks.parallel_chunks [--latency SECONDS] [--parallel N]

The summarizer sleeps and does nothing else, so that the figures are about waiting. The critical path is the longest
chain of requests that wait for each other: rounds of N chunks, then one request for each level of merging. The ratio
is wall time to critical path: 1 would be perfect. Exit code 1 if it is above ``BOUND`` anywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from benchmarks.small_summarizers import made_history
from contextfold import Compactor, Policy

WINDOW = 8_000
CHUNKS = (8, 16, 32)
TOKENS_PER_CHUNK = 7_000
BOUND = 1.25


@dataclass
class Sleeper:
    """Answers after ``latency`` seconds. ``rounds``: how many answers began while no other was being made."""

    latency: float
    window: int = WINDOW
    spans: list[tuple[str, float, float]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, prompt: str) -> str:
        started = time.perf_counter()
        time.sleep(self.latency)
        return self.noted(prompt, started)

    def noted(self, prompt: str, started: float) -> str:
        with self.lock:
            self.spans.append((prompt.split(maxsplit=1)[0], started, time.perf_counter()))
        return "a summary of this part " * 4

    def critical_path(self, parallel: int) -> float:
        """Seconds: rounds of chunks, and what is merged after them."""
        chunks = sum(1 for kind, *_ in self.spans if kind != "Merge")
        merging = sorted(started for kind, started, _ in self.spans if kind == "Merge")
        levels = sum(1 for n, at in enumerate(merging) if n == 0 or at - merging[n - 1] > self.latency / 2)
        return (math.ceil(chunks / parallel) + levels) * self.latency


class AsyncSleeper(Sleeper):
    async def complete(self, prompt: str) -> str:  # type: ignore[override]
        started = time.perf_counter()
        await anyio.sleep(self.latency)
        return self.noted(prompt, started)


def timed(
    make: Callable[[float], Sleeper], messages: list[Any], latency: float, parallel: int
) -> tuple[Sleeper, float]:
    """The summarizer and the seconds that the summary took."""
    sleeper, seconds = make(latency), list[float]()
    policy = Policy(on_failure="raise", summary={"parallel": parallel})
    compactor = Compactor(
        window=64_000, summarizer=sleeper, policy=policy, on_end=lambda end: seconds.append(end.seconds)
    )
    if isinstance(sleeper, AsyncSleeper):
        asyncio.run(compactor.acompact(messages, force=True))
    else:
        compactor.compact(messages, force=True)
    return sleeper, seconds[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--parallel", type=int, default=8)
    given = parser.parse_args()
    print(f"{'color':<6} {'calls':>5} {'critical path, s':>17} {'wall, s':>8} {'ratio':>6} {'one by one, s':>14}")
    worst = 0.0
    for chunks in CHUNKS:
        messages = made_history(chunks * TOKENS_PER_CHUNK)
        for color, make in (("sync", Sleeper), ("async", AsyncSleeper)):
            sleeper, seconds = timed(make, messages, given.latency, given.parallel)
            path = sleeper.critical_path(given.parallel)
            worst = max(worst, seconds / path)
            calls = len(sleeper.spans)
            print(
                f"{color:<6} {calls:>5} {path:>17.1f} {seconds:>8.2f} {seconds / path:>6.2f} "
                f"{calls * given.latency:>14.1f}",
                flush=True,
            )
    print(f"worst ratio {worst:.2f} (bound {BOUND}), {given.parallel} side by side, {given.latency:g} s each")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
