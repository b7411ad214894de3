"""What the tests of Ray look at: run as a program, because Ray leaves threads, files and warnings in its process.

    python on_ray.py FOLDER

Starts Ray with two CPUs in this process's own session, and prints what came of three jobs as one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from batch_talks import make_talk

from contextfold.batch import CompactBatch, sources
from contextfold.batch.cluster import on_ray
from contextfold.batch.job import Job, planned_job, run
from contextfold.batch.pool import Happened, PartDone, in_this_process

WINDOW = 2_000
ROWS = 24
"""Of the job whose actor is killed: eight parts, so that most are still to be done then."""
ACTORS = {"fn_constructor_kwargs": {"window": WINDOW}, "num_cpus": 0.5, "concurrency": 2}


def main(folder: Path) -> dict[str, Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        return {"tables": tables(folder), "structs": structs(), "killed": killed(folder)}
    finally:
        ray.shutdown()


def tables(folder: Path) -> dict[str, Any]:
    """Rows through ``map_batches`` into Parquet; the last block holds nothing but an error."""
    import ray

    rows = [{"id": n, "messages": json.dumps(make_talk(10 + n))} for n in range(7)] + [{"id": 7, "messages": "no"}]
    data = ray.data.from_items(rows, override_num_blocks=8)
    made = data.map_batches(CompactBatch, batch_format="pyarrow", **ACTORS).drop_columns(["messages"])
    made.write_parquet(str(folder / "parquet"))
    found = sorted(ray.data.read_parquet(str(folder / "parquet")).take_all(), key=lambda row: row["id"])
    return {
        "views": [row["view"] and json.loads(row["view"]) for row in found],
        "errors": [row["error_type"] for row in found],
    }


def structs() -> list[Any]:
    """Messages as structs, in the batches of numpy arrays that Ray gives unless it is told otherwise."""
    import ray

    data = ray.data.from_items([{"messages": make_talk(n)} for n in (1, 2)])
    found = data.map_batches(CompactBatch, **{**ACTORS, "concurrency": 1}).take_all()
    return sorted((json.loads(row["view"]) for row in found), key=len)


def killed(folder: Path) -> dict[str, Any]:
    """A job whose actor is killed when the first part is done."""
    source = folder / "talks.jsonl"
    source.write_text("".join(json.dumps({"id": n, "messages": make_talk(30, n)}) + "\n" for n in range(ROWS)))
    sources.LEAST_BYTES = 70_000
    dead: list[int] = []

    def work(task: Any, parts: Sequence[Any]) -> Iterator[Happened]:
        for happened in on_ray(task, parts, "auto", 2):
            if isinstance(happened, PartDone) and not dead:
                dead.extend(actors()[:1])
                for pid in dead:
                    os.kill(pid, signal.SIGKILL)
            yield happened

    operation = CompactBatch(window=WINDOW)
    outcome = run(planned_job(Job(operation, [str(source)], str(folder / "out"))), work)
    run(planned_job(Job(operation, [str(source)], str(folder / "whole"))), in_this_process)
    return {"dead": len(dead), "parts": outcome.parts, "rows": outcome.sums.rows, "failed_parts": outcome.failed_parts}


def actors() -> list[int]:
    """Actors of the Ray that this process started: children of its raylet."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                b"ray::MapWorker" in (folder / "cmdline").read_bytes()
                and parent(parent(int(folder.name))) == os.getpid()
            ):
                found.append(int(folder.name))
        except OSError:
            continue
    return sorted(found)


def parent(pid: int) -> int:
    words = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return int(words[1])


if __name__ == "__main__":
    told = main(Path(sys.argv[1]))
    sys.stdout.write(json.dumps(told) + "\n")
