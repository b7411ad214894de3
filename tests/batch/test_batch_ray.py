"""On Ray, with the two CPUs of a small machine: actors start beside their readers, and may be killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from batch_talks import make_talk, rows_of
from on_ray import ROWS

from contextfold import Compactor

pytestmark = pytest.mark.strict


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("ray")
    program = Path(__file__).with_name("on_ray.py")
    done = subprocess.run([sys.executable, str(program), str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.strip().split("\n")[-1]), folder


def test_ray_data_compacts_and_writes_parquet_with_an_error_in_its_row(seen: tuple[dict[str, Any], Path]) -> None:
    told = seen[0]["tables"]
    expected = [Compactor(window=2_000).compact(make_talk(10 + n)).messages for n in range(7)]
    assert told["views"] == [*expected, None]
    assert told["errors"] == [None] * 7 + ["InputError"]


def test_columns_of_structs_are_read_in_rays_own_batches(seen: tuple[dict[str, Any], Path]) -> None:
    assert seen[0]["structs"] == [make_talk(1), make_talk(2)]


def test_an_actor_that_is_killed_loses_nothing_and_doubles_nothing(seen: tuple[dict[str, Any], Path]) -> None:
    told, folder = seen[0]["killed"], seen[1]
    assert told["dead"] == 1
    assert told["parts"] > 5
    assert (told["rows"], told["failed_parts"]) == (ROWS, {})
    assert [row["row"]["id"] for row in rows_of(folder / "out")] == list(range(ROWS))
    assert rows_of(folder / "out") == rows_of(folder / "whole")
