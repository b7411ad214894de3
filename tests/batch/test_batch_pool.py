"""Workers are killed, and nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from batch_talks import make_talk, rows_of

from contextfold import ContextfoldError
from contextfold.batch import CompactBatch
from contextfold.batch.job import Job, PlannedJob, planned_job, run
from contextfold.batch.pool import Happened, Pool, RowDone, WorkerLost, _Worker, in_this_process

WINDOW = 2_000
DEADLY, ONCE = "this one kills each process that works on it", "this one kills the first process that works on it"
DIED = "CONTEXTFOLD_TEST_DIED"


def lives(prompt: str) -> str:
    return "The agent read files and found errors."


def dies(prompt: str) -> str:
    """A summarizer as a conversation that needs more memory than there is would have it."""
    died = Path(os.environ[DIED])
    if DEADLY in prompt or (ONCE in prompt and not died.exists()):
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return lives(prompt)


def job_of(lines: Path, output: Path, summarizer: Any = None) -> PlannedJob:
    """A job of one part."""
    return planned_job(Job(CompactBatch(window=WINDOW, summarizer=summarizer), [str(lines)], str(output)))


@pytest.mark.strict
def test_workers_that_die_lose_nothing_and_double_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One dies once, over the second conversation; then each dies over the third, which is given up."""
    monkeypatch.setenv(DIED, str(tmp_path / "died"))
    talks = [make_talk(30, n) for n in range(5)]
    talks[1][1] = {"role": "assistant", "content": ONCE}
    talks[2][1] = {"role": "assistant", "content": DEADLY}
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps({"id": n, "messages": talk}) + "\n" for n, talk in enumerate(talks)))
    ready = job_of(path, tmp_path / "out", dies)
    outcome = run(ready, lambda task, parts: Pool(task, 1).run(parts))
    rows = rows_of(tmp_path / "out")
    assert [row["row"]["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["error_type"] for row in rows] == [None, None, "WorkerDied", None, None]
    assert "ended by SIGKILL" in rows[2]["error"]
    assert outcome.workers_died == 3
    assert (outcome.sums.rows, outcome.sums.failed, outcome.failed_parts) == (5, 1, {})
    run(job_of(path, tmp_path / "whole", lives), in_this_process)
    assert [row for row in rows if not row["error"]] == [
        row for row in rows_of(tmp_path / "whole") if row["row"]["id"] != 2
    ]


@pytest.mark.parametrize("unread", [False, True])
def test_a_worker_whose_job_is_gone_ends_without_a_word(
    unread: bool, lines: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A job that is ended by a signal leaves in the pipe what it had not read yet."""
    ready = job_of(lines, tmp_path / "out")
    worker = _Worker(ready.task)
    assert worker.connection.recv() == "ready"
    if unread:
        worker.give(0, ready.parts[0], {})
        assert worker.connection.poll(60)
        while not (tmp_path / "out" / "_job" / "00000.json").exists():
            time.sleep(0.01)
        time.sleep(0.2)  # it waits for its next part
    worker.connection.close()
    worker.process.join(60)
    assert worker.process.exitcode == 0
    assert capfd.readouterr().err == ""


class CannotStart:
    """A task that no process can unpickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (7,)


class NeverAsked:
    def __call__(self, *_: Any) -> dict[str, Any]:
        raise AssertionError


@pytest.mark.strict
def test_workers_that_cannot_start_end_the_job_and_say_how() -> None:
    with pytest.raises(ContextfoldError, match="no worker can be started: each ended with exit code 7"):
        list(Pool(CannotStart(), 1).run([(0, None)]))  # type: ignore[arg-type, list-item]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no masks of signals")
def test_a_worker_that_is_loading_does_not_hear_ctrl_c(capfd: pytest.CaptureFixture[str]) -> None:
    """It reaches all processes of a terminal; each that was still loading died with a traceback of its own."""
    worker = _Worker(NeverAsked())
    try:
        os.kill(worker.process.pid or 0, signal.SIGINT)
        assert worker.connection.recv() == "ready"
    finally:
        worker.stop()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert capfd.readouterr().err == ""


def test_progress_counts_a_conversation_once_however_often_it_was_done(lines: Path, tmp_path: Path) -> None:
    """What a worker that died had done is taken back, since it is done again."""
    ready = job_of(lines, tmp_path / "out")

    def work(task: Any, parts: Sequence[Any]) -> Iterator[Happened]:
        yield RowDone(failed=True)
        yield WorkerLost(1, 1)
        yield from in_this_process(task, parts)

    seen: list[tuple[int, int]] = []
    run(ready, work, lambda progress: seen.append((progress.rows, progress.failed)))
    assert seen[:2] == [(1, 1), (0, 0)]
    assert seen[-1] == (14, 2)


@pytest.mark.strict
def test_a_job_that_is_killed_goes_on_and_its_workers_end(tmp_path: Path) -> None:
    source, output = tmp_path / "talks.jsonl", tmp_path / "out"
    with source.open("w") as file:
        for n in range(120):
            file.write(json.dumps({"id": n, "messages": make_talk(40, n)}) + "\n")
    command = [sys.executable, "-m", "contextfold", "batch", "compact", str(source), "--window", "4000"]
    command += ["--output", str(output), "--workers", "2", "--report", "json"]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 50
    while not list(output.glob("_job/0*.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = children(killed.pid)
    killed.kill()
    killed.wait()
    while any(is_alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers
    assert not any(is_alive(pid) for pid in workers)
    outcome = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert 0 < outcome["parts_done_before"] < outcome["parts"]
    assert outcome["conversations"] == 120
    counts = Counter(row["row"]["id"] for row in rows_of(output))
    assert counts == Counter(range(120))
    assert not list(output.glob(".*.tmp"))


def children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"PPid:\t{pid}\n" in status.read_text() and b"resource_tracker" not in cmdline(status.parent):
                found.append(int(status.parent.name))
    return found


def cmdline(process: Path) -> bytes:
    return (process / "cmdline").read_bytes()


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
