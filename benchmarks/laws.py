"""Runs real conversations through a compactor and checks every law after every pass.

    python -m benchmarks.laws                 every conversation, format, window and summarizer; half an hour
    python -m benchmarks.laws --rotate        every conversation and format once, windows and summarizers in turn
    python -m benchmarks.laws --quick         one conversation and format in 23, about a minute

Each conversation grows from its first message to its last. It is compacted on the way, in every format it can be
expressed in, in windows of 16k, 32k and 64k tokens, by the extractive summarizer and by one that rejects prompts of
more than 2,000, 8,000 and 100,000 tokens. Every call is checked against the laws by ``tests/laws.py``, which knows
nothing of the engine. Prints the totals; the exit code is 1 if any law was violated.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import wire  # noqa: E402
from benchmarks.kinds import read_file  # noqa: E402
from contextfold import Compactor, count_tokens, formats  # noqa: E402
from contextfold.errors import ContextfoldError, InputError  # noqa: E402
from contextfold.testing import LimitedSummarizer  # noqa: E402
from driver import Session  # noqa: E402

WINDOWS = (16_000, 32_000, 64_000)
LIMITS: tuple[int | None, ...] = (None, 2_000, 8_000, 100_000)
"""Of the summarizer, in tokens; None is the extractive one."""

TRIGGER, TARGET = 0.8, 0.5
STEP = 0.25
"""A conversation is compacted each time it grew by this share of the window."""

MOST_CALLS = 7
"""Per run. A conversation so long that it would need more is compacted in larger steps."""

WORKERS = 2


@dataclass(frozen=True)
class Task:
    """One conversation of one file in one format."""

    file: str
    number: int
    format: str
    size: int
    turn: int
    """Which window and which summarizer are its own when windows and summarizers take turns."""


@dataclass
class Tally:
    """What was run and what was found."""

    runs: int = 0
    calls: int = 0
    passes: int = 0
    cannot_fit: int = 0
    checks: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        for name in ("runs", "calls", "passes", "cannot_fit", "checks"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.violations += other.violations


# ---- conversations ----


@lru_cache(maxsize=2)
def conversations(file: str) -> list[Any]:
    return list(read_file(Path(file)))


def files(data: Path) -> list[str]:
    """Every file that could hold a conversation, in a fixed order."""
    return sorted(
        str(path) for path in data.rglob("*") if path.is_file() and not path.name.startswith(("LICENSE", "README"))
    )


def tasks(data: Path) -> Iterator[Task]:
    """Every conversation in every format. A file that holds none is said to, and left out."""
    turn = 0
    for file in files(data):
        try:
            found = conversations(file)
        except InputError as error:
            print(f"  no conversation: {error}"[:200])
            continue
        for number, conversation in enumerate(found):
            size = len(wire.as_json(conversation.messages))
            for name in formats.FORMATS:
                yield Task(file, number, name, size, turn)
                turn += 1


def expressed(conversation: Any, format: str) -> list[Any]:
    """The messages of a conversation in a format; its own objects where that is its format already."""
    if format == conversation.format:
        return list(conversation.messages)
    source = formats.get(conversation.format)
    return formats.get(format).encode(formats.decode(conversation.messages, source))


# ---- one run ----


def cases(task: Task, windows: Sequence[int], rotate: bool) -> list[tuple[int, int | None]]:
    """The (window, summarizer's limit) pairs to run a conversation with: all, or the one whose turn it is."""
    pairs = [(window, limit) for limit in LIMITS for window in windows]
    # 4 formats and 12 pairs: a whole conversation later, every format has moved on by one pair
    return [pairs[(task.turn + task.turn // len(formats.FORMATS)) % len(pairs)]] if rotate else pairs


def run_task(task: Task, pairs: Sequence[tuple[int, int | None]]) -> Tally:
    """One conversation in one format, in each window with its summarizer."""
    tally = Tally()
    name = f"{Path(task.file).parent.name}/{Path(task.file).name}#{task.number} {task.format}"
    messages = expressed(conversations(task.file)[task.number], task.format)
    if not messages:
        return tally
    sizes = [count_tokens([message]) for message in messages]
    before = wire.as_json(messages)
    entries = wire.read(task.format, messages)
    for window, limit in pairs:
        label = f"{name} window={window} summarizer={limit or 'extractive'}"
        tally.add(run(task.format, messages, entries, sizes, window, limit, label))
    if wire.as_json(messages) != before:
        tally.violations.append(f"{name}: mutation: the caller's messages were changed")
    return tally


def run(
    format: str,
    messages: list[Any],
    entries: list[wire.Entry],
    sizes: Sequence[int],
    window: int,
    limit: int | None,
    label: str,
) -> Tally:
    """One conversation growing in one window with one summarizer."""
    recorder = LimitedSummarizer(limit) if limit else None
    session = Session(
        format,
        compactor(window, recorder),
        target=int(TARGET * window),
        trigger=int(TRIGGER * window),
        recorder=recorder,
        named=True,
    )
    tally = Tally(runs=1)
    stops = places(sizes, window)
    for number, stop in enumerate(stops):
        # the last call is repeated with fresh compactors, sync and async: nothing but the input may decide
        session.thorough = number == len(stops) - 1
        try:
            found = session.step(messages[:stop], entries[:stop])
        except ContextfoldError as error:
            found = [f"{type(error).__name__}: {error}"]
        tally.violations += [f"{label} at {stop}: {text}" for text in found]
        if found:
            break
    tally.calls, tally.passes, tally.cannot_fit = session.calls, session.passes, session.gave_up
    tally.checks = session.checks
    return tally


def compactor(window: int, recorder: LimitedSummarizer | None) -> Callable[[], Compactor]:
    def make() -> Compactor:
        return Compactor(window=window, trigger=("fraction", TRIGGER), target=("fraction", TARGET), summarizer=recorder)

    return make


def places(sizes: Sequence[int], window: int) -> list[int]:
    """Lengths of the history at which it is compacted: each time it grew by ``STEP`` of the window, and at its end."""
    step = max(STEP * window, sum(sizes) / MOST_CALLS)
    found, grown = [], 0.0
    for index, size in enumerate(sizes):
        grown += size
        if grown >= step:
            found.append(index + 1)
            grown = 0.0
    return [*found, len(sizes)] if not found or found[-1] != len(sizes) else found


# ---- all of it ----


def main() -> int:
    options = arguments()
    if not options.data.is_dir():
        print(f"no folder {options.data}: name one with --data or CONTEXTFOLD_TRANSCRIPTS", file=sys.stderr)
        return 2
    logging.disable(logging.CRITICAL)  # what the engine has to say about each pass is checked, not shown
    started = time.perf_counter()
    work = sorted(tasks(options.data), key=lambda task: -task.size)
    if options.quick:
        work = work[len(work) // 8 :: 23]
    totals: dict[str, Tally] = {name: Tally() for name in formats.FORMATS}
    with ProcessPoolExecutor(WORKERS) as pool:
        waiting = {pool.submit(run_task, task, cases(task, options.windows, options.rotate)): task for task in work}
        for number, done in enumerate(as_completed(waiting), start=1):
            tally = done.result()
            totals[waiting[done].format].add(tally)
            for text in tally.violations:
                print(f"  {text}"[:400], flush=True)
            if options.progress:
                print(f"  {number}/{len(work)} {waiting[done]}", flush=True)
    report(work, totals, time.perf_counter() - started)
    return int(any(tally.violations for tally in totals.values()))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check the laws over real conversations.")
    default = os.environ.get("CONTEXTFOLD_TRANSCRIPTS") or ROOT.parent / "shared" / "transcripts"
    parser.add_argument("--data", type=Path, default=Path(default), help="folder of conversations")
    parser.add_argument("--windows", type=int, nargs="+", default=list(WINDOWS), help="tokens")
    parser.add_argument("--rotate", action="store_true", help="one window and one summarizer for each conversation")
    parser.add_argument("--quick", action="store_true", help="one conversation and format in 23")
    parser.add_argument("--progress", action="store_true", help="a line for each conversation")
    return parser.parse_args()


WIDTHS = (8, 8, 8, 12, 10, 12)


def report(work: Sequence[Task], totals: dict[str, Tally], seconds: float) -> None:
    columns = ("runs", "calls", "passes", "cannot fit", "checks", "violations")
    print(f"\n{'format':18}{'conversations':>14}" + "".join(f"{c:>{w}}" for c, w in zip(columns, WIDTHS, strict=True)))
    whole = Tally()
    for name, tally in totals.items():
        _row(name, sum(task.format == name for task in work), tally)
        whole.add(tally)
    _row("all", len({(task.file, task.number) for task in work}), whole)
    laws = Counter(text.split(": ")[1] for text in whole.violations)
    if laws:
        print("violations by law:", ", ".join(f"{law} {times}" for law, times in sorted(laws.items())))
    print(f"{seconds:.0f} seconds, {WORKERS} processes")


def _row(name: str, count: int, tally: Tally) -> None:
    figures = (tally.runs, tally.calls, tally.passes, tally.cannot_fit, tally.checks, len(tally.violations))
    print(f"{name:18}{count:>14,}" + "".join(f"{n:>{w},}" for n, w in zip(figures, WIDTHS, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
