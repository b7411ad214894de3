"""A full run leaves out what has passed in a quick one and is the same there, or waits for its turn, and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from effort import waiting

PLAIN, MORE = "test_half_a_pair_is_refused_where_it_cannot_be_sent", "test_pieces_of_a_text_are_the_text"


class Item(NamedTuple):
    nodeid: str


def test_two_runs_try_each_case_once_and_a_test_of_one_case_twice() -> None:
    alone = Item("tests/test_a.py::test_alone")
    cases = [Item(f"tests/test_a.py::test_of_cases[{number}-{color}]") for number in range(9) for color in "ab"]
    items: Any = [alone, *cases, Item("tests/test_b.py::test_of_cases[one of a file]")]
    runs = [[item for item in items if item not in waiting(items, turn, 2)] for turn in (6, 7)]
    assert sorted(runs[0] + runs[1]) == sorted([*items, alone, items[-1]])
    assert [len(run) for run in runs] == [11, 11]
    assert all({item.nodeid[-2] for item in run if item in cases} == {"a", "b"} for run in runs)


def left(tmp_path: Path, *cases: str) -> set[str]:
    report = tmp_path / "quick.xml"
    report.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "-rA"]
    done = subprocess.run(
        [*command, f"--passed={report}", "tests/test_at_once.py"],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "CONTEXTFOLD_TESTS": "full"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return {name for name in (PLAIN, MORE) if f"::{name}" in done.stdout}


def case(name: str, inside: str = "") -> str:
    return f'<testcase classname="tests.test_at_once" name="{name}">{inside}</testcase>'


def test_what_passed_is_left_out_but_where_a_full_run_looks_at_more(tmp_path: Path) -> None:
    assert left(tmp_path, case(PLAIN), case(MORE)) == {MORE}


def test_what_was_skipped_or_failed_or_is_of_another_file_runs(tmp_path: Path) -> None:
    other = '<testcase classname="tests.test_elsewhere" name="test_pieces_of_a_text_are_the_text"/>'
    assert left(tmp_path, case(PLAIN, '<skipped message="no reason"/>'), other) == {PLAIN, MORE}
    assert left(tmp_path, case(PLAIN, '<failure message="x"/>')) == {PLAIN, MORE}
