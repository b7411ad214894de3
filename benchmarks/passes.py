"""What a pass costs, as multiples of counting the same text once, side by side with LangChain, deepagents and tiktoken.

    python -m benchmarks.passes            (make bench-passes)
    python -m benchmarks.passes FILE       a real conversation in place of the generated one

Times are CPU time of this process, and counting stands right before and behind each: a machine that is quick in one
moment and slow in the next must not have counted in the one, and compacted in the other.
LangChain's and deepagents' middlewares get a summarizer that costs nothing. Everything that is remembered between runs
is forgotten before each. Exit code 1, with a line that says why, if a ratio is above its limit; limits leave room for
noise above what was measured; goals stand beside them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from contextfold import Compactor, count_tokens, identifiers
from contextfold.evidence import clips, reading
from contextfold.tokens import estimate as _estimate
from contextfold.transcripts import read_file

T = TypeVar("T")
Message = dict[str, Any]

WINDOW = 64_000
RUNS = 3
MB = 1_000_000

LIMITS = {
    "cold pass": 7.2,
    "growing pass, median": 0.8,
    "last third against first": 2.1,
    "growing pass of a session, median": 1.1,
    "1.26 million tokens": 8.0,
    "first view of 5,000 imported": 13.0,
    "the same, passes": 1.0,
    "5 MB of log": 5.5,
    "1 MB of CSV on one line": 5.5,
    "1 MB of names": 8.0,
    "longest hold of the interpreter, ms": 20.0,
    "import contextfold": 0.5,
    "from contextfold import Compactor": 4.0,
    "contextfold --help": 5.0,
    "memory, times the conversation": 8.0,
}
"""What fails: some 1.6 times what an idle machine shows. Seconds tell of the machine, and have goals alone; what holds
is how many times as long as counting the same text once, or as a start that imports pydantic. Memory differs by next
to nothing from run to run."""

WORDS = ["the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not"]


def session(size: int, seed: int = 1) -> list[Message]:
    """An agent's session of about ``size`` characters: files read, tests run, words between."""
    dice = random.Random(seed)
    files = [
        f"src/app/{name}/{part}_{n}.py" for n, name in enumerate(["views", "models", "jobs", "api"]) for part in "abcd"
    ]
    messages: list[Message] = [{"role": "user", "content": "Make the nightly import faster. Never touch ledger_2019."}]
    length = number = 0
    while length < size:
        path = dice.choice(files)
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "read_file", "arguments": json.dumps({"path": path})},
        }
        lines = [
            f"{row:4}| {dice.choice(['def', 'return', 'self.', '#'])} {dice.choice(WORDS)}_{dice.randrange(400)}"
            f"({dice.choice(WORDS)}={dice.randrange(9000)})  # {' '.join(dice.choices(WORDS, k=6))}"
            for row in range(dice.randrange(5, 90))
        ]
        said = f"I look at {path} because {' '.join(dice.choices(WORDS, k=20))} worker_{number} failed."
        messages.append({"role": "assistant", "content": said, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "\n".join(lines)})
        if number % 9 == 0:
            messages.append({"role": "user", "content": f"Also check limit_{number}; it must stay below {number * 7}."})
        length += sum(map(len, lines)) + len(said)
        number += 1
    return [*messages, {"role": "user", "content": "Go on."}]


def forget() -> None:
    """As if nothing had been counted or read in this process."""
    module = sys.modules[_estimate.__module__]
    module.piece_price.cache_clear()
    module._KNOWN.clear()
    identifiers.in_chunk.cache_clear()
    identifiers.is_named_part.cache_clear()
    reading._CHUNKS.clear()
    clips._named.cache_clear()
    gc.collect()


def seconds(work: Callable[[], T], runs: int = RUNS) -> float:
    """CPU seconds, the median of some runs."""
    times = []
    for _ in range(runs):
        forget()
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)


def growing(messages: Sequence[Message]) -> list[float]:
    """CPU seconds of each pass of a conversation that grows message by message."""
    forget()
    compactor, previous, times = Compactor(window=WINDOW), None, []
    known: list[Message] = []
    for message in messages:
        known = [*known, message]
        started = time.process_time()
        out = compactor.compact(known, previous)
        if out.changed:
            times.append(time.process_time() - started)
        previous = out.compaction
    return times


def growing_session(messages: Sequence[Message]) -> list[float]:
    """The same for a session in SQLite, each view that makes a pass."""
    forget()
    made: list[str] = []
    compactor, times = Compactor(window=WINDOW, on_event=lambda event: made.append(event.name)), []
    with tempfile.TemporaryDirectory() as folder:
        known = compactor.session("growing", f"sqlite:///{folder}/sessions.db")
        for message in messages:
            known.append([message])
            made.clear()
            started = time.process_time()
            known.view()
            if "compaction_finished" in made:
                times.append(time.process_time() - started)
    return times


def one_output(text: str) -> list[Message]:
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": text},
        {"role": "assistant", "content": "It ran."},
        *({"role": role, "content": f"step {n}"} for n in range(10) for role in ("user", "assistant")),
    ]


def large_inputs() -> dict[str, list[Message]]:
    dice = random.Random(2)
    log = "\n".join(
        f"2026-03-{n % 28 + 1:02}T12:{n % 60:02}:01Z worker-{n % 8} "
        f"GET /api/v2/users/{n}?page={n % 7} 200 {n * 13 % 999}ms"
        for n in range(5 * MB // 72)
    )
    csv = ",".join(f"{dice.randrange(10**6)},item_{n},{n % 2}.5" for n in range(MB // 20))[:MB]
    names = " ".join(f"module_{dice.randrange(10**7)}.part_{n}" for n in range(MB // 25))[:MB]
    found = {"5 MB of log": log, "1 MB of CSV on one line": csv, "1 MB of names": names}
    return {name: one_output(text) for name, text in found.items()}


def imported(messages: list[Message]) -> tuple[float, int]:
    """CPU seconds of the first view of a session with all these messages, and the passes that it made."""
    made: list[str] = []
    compactor = Compactor(window=WINDOW, on_event=lambda event: made.append(event.name))
    with tempfile.TemporaryDirectory() as folder:
        known = compactor.session("imported", f"sqlite:///{folder}/sessions.db")
        known.append(messages)
        started = time.process_time()
        known.view()
        return time.process_time() - started, made.count("compaction_finished")


def longest_hold(messages: list[Message]) -> float:
    """The longest time in milliseconds that a pass keeps other threads, such as an event loop, from running.

    The interpreter changes threads between its own instructions, so this is the CPU time of the longest call of a
    function written in C in which no other function is called. A stopwatch beside it would measure the machine. The
    garbage collections of the whole process, which may begin in any call, are left out.
    """
    held = [0.0]
    calls: list[float] = []
    collections: list[float] = []

    def collect(phase: str, _: dict[str, int]) -> None:
        collections.append(time.thread_time())
        if phase == "stop":
            spent = collections.pop() - collections.pop()
            calls[:] = [started + spent for started in calls]

    def look(frame: FrameType, event: str, __: Any) -> None:
        if frame.f_code is collect.__code__:
            return
        if event == "c_call":
            calls.append(time.thread_time())
        elif event.startswith("c_") and calls:
            held[0] = max(held[0], time.thread_time() - calls.pop())
        elif event == "call":  # a C function that runs Python code holds nothing
            calls[:] = [math.inf] * len(calls)

    forget()
    gc.callbacks.append(collect)
    sys.setprofile(look)
    try:
        Compactor(window=WINDOW).compact(messages)
    finally:
        sys.setprofile(None)
        gc.callbacks.remove(collect)
    return held[0] * 1000


def least_hold(messages: list[Message]) -> float:
    """The least of several runs, as the work is the same in each: what a machine does beside it only adds. A run below
    half of the limit needs no second one, which takes as long as ten passes."""
    held = math.inf
    for _ in range(RUNS):
        if held > LIMITS["longest hold of the interpreter, ms"] / 2:
            held = min(held, longest_hold(messages))
    return held


def started(*command: str) -> float:
    """CPU seconds of a fresh process, the least of some runs. Bytecode is written, as installing a package does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(RUNS + 2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def memory(messages: list[Message]) -> tuple[int, int]:
    """Bytes that a compacted conversation holds, and what is left of them once it is forgotten."""
    Compactor(window=WINDOW).compact(messages)  # what the process keeps of any conversations, a fixed amount
    gc.collect()
    tracemalloc.start()
    compactor = Compactor(window=WINDOW)
    out: Any = compactor.compact(messages)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    del compactor, out
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held, left


def peers(messages: list[Message]) -> dict[str, Callable[[], object]]:
    """The same conversation through the passes of others, and through tiktoken."""
    found: dict[str, Callable[[], object]] = {}
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
        texts = [str(message.get("content") or "") for message in messages]
        found["tiktoken, counting"] = lambda: sum(len(encoding.encode(text, disallowed_special=())) for text in texts)
    except Exception as error:  # noqa: BLE001 - no vocabulary without a network; the table says so
        print(f"tiktoken: left out ({type(error).__name__}: its vocabulary is not on disk)")
    try:
        from langchain.agents.middleware import SummarizationMiddleware
        from langchain_core.language_models.fake_chat_models import FakeListChatModel
        from langchain_core.messages import convert_to_messages

        wire = convert_to_messages(messages)
        free = FakeListChatModel(responses=["A summary that costs nothing."])
        lang: Any = SummarizationMiddleware(model=free, trigger=("tokens", WINDOW // 2), keep=("messages", 20))
        found["LangChain, pass"] = lambda: lang.before_model({"messages": wire}, None)
    except ImportError:
        print("LangChain: left out (not installed)")
    try:
        from deepagents.backends import StateBackend
        from deepagents.middleware.summarization import SummarizationMiddleware as Deep
        from langchain_core.language_models.fake_chat_models import FakeListChatModel as Fake

        from contextfold.integrations.deepagents import SummarizationMiddleware as _present  # noqa: F401

        deep: Any = Deep(
            model=Fake(responses=["Free."]),
            backend=StateBackend(),
            trigger=("tokens", WINDOW // 2),
            keep=("messages", 20),
        )
        found["deepagents, counting and cutting"] = lambda: deep._determine_cutoff_index(wire)
    except Exception as error:  # noqa: BLE001 - its constructor differs from release to release
        print(f"deepagents: left out ({type(error).__name__}: {error})")
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="a conversation in place of the generated one")
    if (file := parser.parse_args(arguments).file) is not None:
        read = max(read_file(file), key=lambda found: len(found.messages))
        messages: list[Message] = list(read.messages)
    else:
        messages = session(1_500_000)
    size = len(json.dumps(messages, ensure_ascii=False, default=str))
    Compactor(window=4_000).compact(session(40_000, seed=3))  # loads what a pass loads
    counting = seconds(lambda: count_tokens(messages), 3 * RUNS)
    print(
        f"{len(messages):,} messages, {size / MB:.2f} MB, window {WINDOW:,}; counting once: {counting:.3f} s of CPU\n"
    )
    rows = measured(messages, size)
    print(f"{'':42} {'measured':>9} {'goal':>9} {'at most':>9}")
    for name, value in rows.items():
        print(f"{name:42} {value:>9.2f} {GOALS.get(name, ''):>9} {LIMITS.get(name, ''):>9}")
    print("\nothers, as multiples of the same counting; a pass of theirs keeps 20 messages and writes a free summary")
    for name, work in peers(messages).items():
        print(f"{name:42} {seconds(work, 1) / counting:>9.2f}")
    problems = [f"{name}: {rows[name]:.2f}, above {limit:.2f}" for name, limit in LIMITS.items() if rows[name] > limit]
    print("\n" + ("\n".join(f"FAILED: {problem}" for problem in problems) or "within the limits"))
    return 1 if problems else 0


GOALS = {
    "cold pass": "3",
    "growing pass, median": "0.4",
    "last third against first": "1.3",
    "growing pass of a session, median": "0.4",
    "1.26 million tokens, MB/s": "2",
    "20,000 imported at that rate, seconds": "10",
    "the same, passes": "1",
    "5 MB of log, seconds": "3",
    "1 MB of CSV on one line, seconds": "2",
    "longest hold of the interpreter, ms": "20",
    "import contextfold, seconds": "0.15",
    "from contextfold import Compactor, seconds": "0.15",
    "contextfold --help, seconds": "0.3",
    "memory, times the conversation": "8",
}


def measured(messages: list[Message], size: int) -> dict[str, float]:
    """The table: CPU seconds, multiples of counting, and sizes."""
    rows: dict[str, float] = {}
    rows["cold pass"], _ = beside_counting(messages)
    times, counting = grown(growing, messages)
    third = max(1, len(times) // 3)
    rows["growing pass, median"] = statistics.median(times) / counting
    rows["last third against first"] = statistics.mean(times[-third:]) / statistics.mean(times[:third])
    times, counting = grown(growing_session, messages, 1)  # its median is one of some thirty passes
    rows["growing pass of a session, median"] = statistics.median(times) / counting
    long = session(3_100_000, seed=5)  # 1.26 million tokens
    rows["1.26 million tokens"], spent = beside_counting(long)
    rows["1.26 million tokens, MB/s"] = len(json.dumps(long)) / MB / spent
    some = [short(message) for message in session(8_000_000, seed=7)[:5_000]]
    counted = seconds(lambda: count_tokens(some), RUNS)
    spent, passes = imported(some)
    rows["first view of 5,000 imported"] = spent / counted
    rows["20,000 imported at that rate, seconds"] = spent * 4
    rows["the same, passes"] = passes
    large = large_inputs()
    for name, one in large.items():
        rows[name], rows[f"{name}, seconds"] = beside_counting(one)
    rows["longest hold of the interpreter, ms"] = max(map(least_hold, large.values()))
    bare, pydantic = started("-c", "pass"), started("-c", "from pydantic import BaseModel")
    for name, command in STARTS.items():
        spent = started("-c", command) - bare
        rows[name] = spent / (pydantic - bare)
        rows[f"{name}, seconds"] = spent
    held, left = memory(messages)
    rows["memory, times the conversation"] = held / size
    rows["memory left once forgotten, times"] = left / size
    return rows


STARTS = {
    "import contextfold": "import contextfold",
    "from contextfold import Compactor": "from contextfold import Compactor",
    "contextfold --help": "import sys; sys.argv[1:] = ['--help']; from contextfold.cli import main; main()",
}


def beside_counting(messages: list[Message]) -> tuple[float, float]:
    """A first pass as multiples of counting the same text, and its CPU seconds: the median of some runs. Over large
    inputs the first one took up to twice as long as the others.
    """
    runs = []
    for _ in range(RUNS):
        counted = seconds(lambda: count_tokens(messages), 1)
        spent = seconds(lambda: Compactor(window=WINDOW).compact(messages), 1)
        counted += seconds(lambda: count_tokens(messages), 1)
        runs.append((2 * spent / counted, spent))
    return statistics.median(ratio for ratio, _ in runs), statistics.median(spent for _, spent in runs)


def grown(
    passes: Callable[[Sequence[Message]], list[float]], messages: Sequence[Message], number: int = RUNS
) -> tuple[list[float], float]:
    """CPU seconds of each pass, the median of some runs, and those of counting between the runs."""
    counted, runs = [seconds(lambda: count_tokens(messages), 1)], []
    for _ in range(number):
        runs.append(passes(messages))
        counted.append(seconds(lambda: count_tokens(messages), 1))
    return [statistics.median(one) for one in zip(*runs, strict=True)], statistics.mean(counted)


def short(message: Message) -> Message:
    """The message with no more than 700 characters, as the messages of long conversations mostly are."""
    return {**message, "content": str(message["content"])[:700]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
