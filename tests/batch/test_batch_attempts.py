"""On Ray: a conversation over which actors die, one after the other, is left out in the end. Without Ray here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from batch_talks import make_talk, rows_of

from contextfold.batch import CompactBatch
from contextfold.batch.cluster import PartActor
from contextfold.batch.job import Job, PlannedJob, planned_job

DEADLY = "this one kills each actor that works on it"


class Killed(BaseException):
    """The end of an actor: nothing catches it."""


def dies(prompt: str) -> str:
    if DEADLY in prompt:
        raise Killed
    return "The agent read files and found errors."


def job_of(folder: Path, deadly: set[int]) -> PlannedJob:
    talks = [make_talk(30, n) for n in range(5)]
    for n in deadly:
        talks[n][1] = {"role": "assistant", "content": DEADLY}
    path = folder / "talks.jsonl"
    path.write_text("".join(json.dumps({"id": n, "messages": talk}) + "\n" for n, talk in enumerate(talks)))
    return planned_job(Job(CompactBatch(window=2_000, summarizer=dies), [str(path)], str(folder / "out")))


def attempts_of(ready: PlannedJob) -> tuple[int, dict[str, Any]]:
    """Hand the part to one actor after the other, as Ray does, until one lives."""
    batch = {"part": [json.dumps({"number": 0, "part": ready.parts[0].to_dict()})]}
    for deaths in range(20):
        try:
            return deaths, json.loads(PartActor(ready.task)(batch)["report"][0])
        except Killed:
            continue
    raise AssertionError("no actor lived")


@pytest.mark.strict
@pytest.mark.parametrize("deadly", [set(), {0}, {1, 3}])
def test_what_kills_actors_is_left_out_and_the_rest_is_done(deadly: set[int], tmp_path: Path) -> None:
    ready = job_of(tmp_path, deadly)
    deaths, report = attempts_of(ready)
    assert (report["rows"], report["failed"]) == (5, len(deadly))
    rows = rows_of(tmp_path / "out")
    assert [row["row"]["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert {row["row"]["id"] for row in rows if row["error_type"] == "WorkerDied"} == deadly
    assert deaths == (1 + 2 * len(deadly) if deadly else 0)
    assert not list((tmp_path / "out" / "_job").glob("*.attempts"))
