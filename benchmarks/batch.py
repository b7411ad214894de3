"""Stored conversations through ``contextfold batch``: how fast, how evenly, in how much memory, and what a kill costs.

    python benchmarks/batch.py [--conversations 2000] [--window 8000] [--runs one many ray worker job]
                               [--folder build/batch] [--json FIGURES.json]

Conversations of about 50 KB are generated (100,000 of them are 5 GB), then compacted by one process, by one for each
CPU and, if asked for, by Ray on this machine. Then a worker is killed in the middle; then a worker and, later, the
whole job, which is begun again. Every run must give the same rows, each conversation once.

Rates by the clock say as much about what else runs on the machine as about contextfold. So scaling is told from CPU
time: what a conversation costs in one process, over what it costs beside others. 1.00 is as if each were alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUNS = ("one", "many", "ray", "worker", "job")
NOUNS = ("invoice", "ledger", "customer", "payment", "period", "batch", "report", "session", "token", "queue", "index")
VERBS = ("load", "resolve", "collect", "apply", "check", "merge", "round", "split", "render", "publish", "reconcile")


def conversation(number: int, size: int = 50_000) -> list[dict[str, Any]]:
    """An agent at work in a repository, in OpenAI's chat format: about ``size`` bytes, the same for the same number."""
    chance = random.Random(number)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are an engineer. Read before you write."}]
    held = turn = 0
    while held < size * chance.uniform(0.9, 1.1):
        if turn % 6 == 0:
            noun, verb = chance.choice(NOUNS), chance.choice(VERBS)
            asked = f"Please {verb} the {noun} of run {chance.randrange(10**6)}. Never touch {noun}_{number}_entries."
            messages.append({"role": "user", "content": asked})
        path = f"src/{chance.choice(NOUNS)}/{chance.choice(VERBS)}_{chance.randrange(400)}.py"
        call = {"name": "read_file", "arguments": json.dumps({"path": path, "limit": 200})}
        text = "\n".join(_line(chance) for _ in range(chance.randrange(10, 70)))
        messages += [
            {
                "role": "assistant",
                "content": f"I read {path} next, because {chance.choice(NOUNS)} is made there.",
                "tool_calls": [{"id": f"call_{number}_{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{number}_{turn}", "content": text},
        ]
        held += len(text) + 400
        turn += 1
    return [*messages, {"role": "assistant", "content": f"Done: {path} was at fault."}]


def _line(chance: random.Random) -> str:
    a, b, verb = chance.choice(NOUNS), chance.choice(NOUNS), chance.choice(VERBS)
    return chance.choice(
        (
            f"    {a} = {verb}_{b}({a}_id={chance.randrange(10**5)}, limit={chance.randrange(900)})",
            f"2031-03-{chance.randrange(10, 28)}T{chance.randrange(10, 23)} worker-{chance.randrange(9)} {verb} {a}",
            f"ERROR {a}.{b}: E{chance.randrange(10**4):04d} could not {verb} within {chance.randrange(9_000)} ms",
            f"    def {verb}_{a}(self, {b}: {b.title()}) -> {a.title()}:",
        )
    )


def generate(path: Path, count: int) -> None:
    """Write so many conversations, unless they are there."""
    done = path.with_suffix(".count")
    if done.is_file() and done.read_text() == str(count):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps({"id": number, "messages": conversation(number)}) + "\n")
    done.write_text(str(count))


@dataclass(frozen=True)
class Run:
    """What a command told of itself, and what the rows that it wrote are."""

    name: str
    report: dict[str, Any]
    wall: float
    digest: str
    ids: list[int]
    growth: float
    """Peak memory of the workers after their last part over that after a quarter of the parts."""

    @property
    def cpu(self) -> float:
        """CPU seconds for each conversation, of the workers."""
        return float(self.report["cpu_seconds"]) / len(self.ids)


def command(source: Path, output: Path, *options: str) -> list[str]:
    words = [sys.executable, "-m", "contextfold", "batch", "compact", str(source), "--output", str(output)]
    return [*words, "--report", "json", *options]


def run(name: str, source: Path, output: Path, *options: str) -> Run:
    started = time.perf_counter()
    done = subprocess.run(command(source, output, *options), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    return result(name, json.loads(done.stdout), time.perf_counter() - started, output)


def result(name: str, report: dict[str, Any], wall: float, output: Path) -> Run:
    digest = hashlib.blake2b()
    ids = []
    for part in sorted(output.glob("part-*.jsonl")):
        with part.open(encoding="utf-8") as rows:
            for line in rows:
                row = json.loads(line)
                ids.append(row["row"]["id"])
                digest.update(json.dumps({key: row[key] for key in row if key != "seconds"}).encode())
    reports = [json.loads(path.read_text()) for path in sorted(output.glob("_job/0*.json"))]
    peaks = [one["peak_memory"] for one in reports]
    early = max(peaks[: max(1, len(peaks) // 4)])
    return Run(name, report, wall, digest.hexdigest(), ids, max(peaks) / early)


def killed_worker(source: Path, output: Path, *options: str) -> Run:
    """A run in which a worker is killed as soon as the first part is written."""
    started = time.perf_counter()
    going = subprocess.Popen(command(source, output, *options), stdout=subprocess.PIPE, text=True)
    _wait_for_parts(output, 1)
    os.kill(next(_workers(going.pid)), signal.SIGKILL)
    told, _ = going.communicate()
    return result("a worker killed", json.loads(told), time.perf_counter() - started, output)


def killed_job(source: Path, output: Path, *options: str) -> Run:
    """A run in which a worker is killed, and which is killed when a third of it is done, and begun again."""
    going = subprocess.Popen(command(source, output, *options), stdout=subprocess.DEVNULL)
    _wait_for_parts(output, 1)
    os.kill(next(_workers(going.pid)), signal.SIGKILL)
    plan = json.loads((output / "_job" / "plan.json").read_text())
    _wait_for_parts(output, len(plan["parts"]) // 3)
    going.kill()
    going.wait()
    return run("killed and resumed", source, output, *options)


def _wait_for_parts(output: Path, count: int) -> None:
    while len(list(output.glob("_job/0*.json"))) < max(1, count):
        time.sleep(0.2)


def _workers(pid: int) -> Iterator[int]:
    for status in sorted(Path("/proc").glob("[0-9]*/status")):
        words = (status.parent / "cmdline").read_bytes() if status.exists() else b""
        if b"spawn_main" in words and f"PPid:\t{pid}\n" in status.read_text():
            yield int(status.parent.name)


def table(runs: Sequence[Run]) -> Iterator[str]:
    heads = (
        "conversations",
        "by the clock, s",
        "a second",
        "CPU s each",
        "per core",
        "workers died",
        "peak MB",
        "memory",
    )
    yield f"| run | {' | '.join(heads)} |"
    yield f"|---|{'---:|' * len(heads)}"
    for one in runs:
        yield (
            f"| {one.name} | {len(one.ids):,} | {one.wall:.1f} | {len(one.ids) / one.wall:.1f} | {one.cpu:.4f} "
            f"| {runs[0].cpu / one.cpu:.2f} | {one.report['workers_died']} "
            f"| {one.report['peak_memory'] / 2**20:.0f} | {one.growth:.2f} |"
        )


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--conversations", type=int, default=2_000)
    reader.add_argument("--folder", type=Path, default=Path("build/batch"))
    reader.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    reader.add_argument("--window", type=int, default=8_000, help="tokens; the conversations have about 13,800")
    reader.add_argument("--runs", nargs="+", choices=RUNS, default=["one", "many", "worker", "job"])
    reader.add_argument("--json", type=Path, help="write the figures there")
    given = reader.parse_args()
    source = given.folder / "talks.jsonl"
    generate(source, given.conversations)
    window = ("--window", str(given.window))
    many = ("--workers", str(given.workers), *window)
    runs = []
    for name in given.runs:
        output = given.folder / name
        shutil.rmtree(output, ignore_errors=True)
        if name == "one":
            runs.append(run("one process", source, output, "--workers", "1", *window))
        elif name == "many":
            runs.append(run(f"{given.workers} processes", source, output, *many))
        elif name == "ray":
            runs.append(run(f"Ray, {given.workers} actors", source, output, "--ray", "local", *many))
        else:
            runs.append((killed_worker if name == "worker" else killed_job)(source, output, *many))
    print(f"{given.conversations:,} conversations, {source.stat().st_size / 2**20:.0f} MB, window {given.window:,}\n")
    print("\n".join(table(runs)))
    for one in runs:
        assert one.ids == list(range(given.conversations)), f"{one.name}: conversations are lost or doubled"
        assert one.digest == runs[0].digest, f"{one.name}: rows differ"
    print("\nEvery run has the same rows, each conversation once.")
    if given.json:
        figures = [
            {"run": one.name, "wall": one.wall, "cpu": one.cpu, "growth": one.growth, **one.report} for one in runs
        ]
        given.json.write_text(json.dumps({"figures": figures}))


if __name__ == "__main__":
    main()
