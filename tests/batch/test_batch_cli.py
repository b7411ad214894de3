"""``contextfold batch``: options, exit codes, what is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from batch_talks import lines_of, make_talk, rows_of
from typer.testing import CliRunner

from contextfold.cli.app import app

PLAIN = {"COLUMNS": "200", "NO_COLOR": "1"}
HERE = ("--workers", "0")


def batch(*words: Any) -> Any:
    return CliRunner().invoke(app, ["batch", *map(str, words)], env=PLAIN)


def test_compact_writes_rows_and_says_what_it_did(lines: Path, tmp_path: Path) -> None:
    done = batch("compact", lines, "--output", tmp_path / "out", "--window", 2_000, *HERE)
    assert done.exit_code == 0, done.output
    assert "14 conversations, 2 failed (2 InputError)" in done.output
    assert "became" in done.output
    assert "talks.jsonl at" in done.output
    assert len(rows_of(tmp_path / "out")) == 14


@pytest.mark.parametrize("command", ["compact", "check", "measure"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "window 64,000, a cautious default, because neither --window nor --model says more"),
        (("--model", "unheard-of"), "a cautious default, because the window of unheard-of is not known: give --window"),
        (("--window", "2000"), "window 2,000"),
    ],
)
def test_a_batch_says_which_window_it_took_and_why(
    command: str, options: tuple[str, ...], said: str, lines: Path, tmp_path: Path
) -> None:
    """As ``compact`` does: of a million conversations it was a guess without a word."""
    assert batch(command, lines, "-o", tmp_path / "out", *options, *HERE).output.splitlines()[0].endswith(said)


@pytest.mark.parametrize("output", ["out", "out.jsonl"])
def test_what_is_not_written_is_not_said_to_be(
    output: str, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file is there once no part of it is missing."""

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("contextfold.batch.outputs.JsonLines.add", full)
    done = batch("check", lines, "-o", tmp_path / output, *HERE)
    assert done.exit_code == 1
    assert "part 0 could not be done: OSError: [Errno 28] No space left on device" in done.output
    assert (f"written to {tmp_path / output}" in done.output) == (output == "out")
    assert (f"{tmp_path / output} is not written yet: finished parts are kept" in done.output) == (output != "out")
    monkeypatch.undo()
    done = batch("check", lines, "-o", tmp_path / output, *HERE)
    assert done.exit_code == 0
    assert f"written to {tmp_path / output}" in done.output


def test_the_summary_can_be_had_as_json_and_lies_beside_the_plan(lines: Path, tmp_path: Path) -> None:
    done = batch("compact", lines, "-o", tmp_path / "out", "--window", 2_000, "--report", "json", *HERE)
    report = json.loads(done.stdout)
    assert (report["conversations"], report["failed"], report["errors"]) == (14, 2, {"InputError": 2})
    assert report["totals"]["tokens_after"] < report["totals"]["tokens_before"]
    assert report == json.loads((tmp_path / "out" / "_job" / "summary.json").read_text())


@pytest.mark.parametrize("command", ["compact", "check", "measure"])
@pytest.mark.parametrize(
    ("options", "window", "source"),
    [((), 64_000, "default"), (("--window", "2000"), 2_000, "explicit"), (("--model", "gpt-4o"), 128_000, "registry")],
)
def test_the_summary_as_json_says_the_window_and_where_it_comes_from(
    command: str, options: tuple[str, ...], window: int, source: str, tmp_path: Path
) -> None:
    """Only the text for people said whether it was a guess."""
    talk = tmp_path / "talk.json"
    talk.write_text(json.dumps(make_talk(2)))
    report = json.loads(batch(command, talk, "-o", tmp_path / "out", *options, "--report", "json", *HERE).stdout)
    assert (report["window"], report["window_source"]) == (window, source)


def test_the_same_command_again_does_nothing_and_says_the_same(lines: Path, tmp_path: Path) -> None:
    command = ("compact", lines, "-o", tmp_path / "out", "--window", 2_000, *HERE)
    first, again = batch(*command), batch(*command)
    assert again.exit_code == 0
    assert "1 of 1 parts were finished before" in again.output
    assert "14 conversations, 2 failed" in again.output
    assert first.output.splitlines()[1] in again.output


def test_measure_gives_the_figures_of_all(lines: Path, tmp_path: Path) -> None:
    done = batch("measure", lines, "-o", tmp_path / "out.jsonl", "--window", 1_500, "--report", "json", *HERE)
    assert done.exit_code == 0
    figures = json.loads(done.stdout)["figures"]
    rows = [row for row in lines_of(tmp_path / "out.jsonl") if row["error"] is None]
    needed, found = (sum(row[name] for row in rows) for name in ("recall_hard", "recall_hard_context"))
    assert figures["hard_in_context"] == pytest.approx(found / needed)
    assert figures["peak_view"] == max(row["max_view_tokens"] for row in rows)
    assert figures["rewrites"] == sum(row["rewrites"] for row in rows)


def test_check_counts_and_strict_makes_it_an_exit_code(tmp_path: Path) -> None:
    source = tmp_path / "talks.jsonl"
    orphan = [{"role": "user", "content": "Go."}, {"role": "tool", "tool_call_id": "a", "content": "x"}]
    rows = [{"messages": make_talk(2)}, {"messages": make_talk(40)}, {"messages": orphan}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = batch("check", source, "-o", tmp_path / "a", "--window", 3_000, *HERE)
    assert done.exit_code == 0
    assert "2 of 3 are valid, 2 fit the window, 3 can be compacted" in done.output
    assert batch("check", source, "-o", tmp_path / "a", "--window", 3_000, "--strict", *HERE).exit_code == 3
    source.write_text(json.dumps(rows[0]) + "\n")
    assert batch("check", source, "-o", tmp_path / "b", "--window", 3_000, "--strict", *HERE).exit_code == 0


def test_bad_rows_are_no_failure_unless_there_is_nothing_else_or_strict_is_asked_for(
    lines: Path, tmp_path: Path
) -> None:
    assert batch("compact", lines, "-o", tmp_path / "a", "--window", 2_000, "--strict", *HERE).exit_code == 3
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"messages": 7}\n{"messages": "x"}\n')
    assert batch("compact", bad, "-o", tmp_path / "b", "--each", "line", *HERE).exit_code == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.jsonl", "-o", "out"), "nothing.jsonl: there is no such file or folder"),
        (("{lines}", "-o", "out", "--trigger", "fraction:7"), "trigger"),
        (("{lines}", "-o", "{lines}"), "is an input as well"),
        (("{lines}", "-o", "notes.txt"), "is a file"),
        (("{lines}", "-o", "rows.json"), "one file ends in .jsonl or .parquet"),
        (("{lines}", "-o", "rows.jsonl.gz"), "one file ends in .jsonl or .parquet"),
        (("{lines}", "-o", "-"), "reads and writes no pipe"),
        (("-", "-o", "out"), "reads and writes no pipe"),
        (("{lines}", "-o", "out", "--to", "klingon"), "unknown format"),
        (("sqlite:///none.db", "-o", "out"), "none.db"),
        (("{lines}", "-o", "out", "--workers", "-1"), "--workers"),
        (("s4://bucket/x", "-o", "out"), "s4://bucket/x cannot be opened"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    words: tuple[str, ...], said: str, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("mine")
    done = batch("compact", *(word.format(lines=lines) for word in words))
    assert done.exit_code == 2
    assert said in done.output
    assert not Path("none.db").exists()
    assert Path("notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("address", "words"), [("local", "Ray did not start; --workers does the same"), ("auto", "no cluster was reached")]
)
@pytest.mark.parametrize("raised", [Exception, ConnectionError, RuntimeError, OSError])
def test_a_ray_that_does_not_start_is_told_in_one_line_whatever_it_raises(
    lines: Path, address: str, words: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """How Ray fails on an overloaded machine cannot be provoked, so its place is taken by what it raised on one."""

    def fails(**options: object) -> None:
        raise raised("The current node timed out during startup.\nThis could happen")

    broken = ModuleType("ray")
    broken.init, broken.is_initialized = fails, lambda: False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", broken)
    monkeypatch.chdir(tmp_path)
    done = batch("compact", str(lines), "-o", "out", "--ray", address)
    assert done.exit_code == 2
    assert f"--ray {address}: {words}" in done.output
    assert "timed out during startup. This could happen" in " ".join(done.output.split())


WITHOUT = """
import sys
for name in ("ray", "pyarrow", "fsspec", "sqlalchemy", "pandas"):
    sys.modules[name] = None
from contextfold.cli.app import app
def run(*words):
    return app(["batch", "check", *words], standalone_mode=False)
assert run("talks.jsonl", "-o", "first", "--workers", "0") == 0
assert run("talks.jsonl", "-o", "out.parquet") == 2
assert run("talks.jsonl", "-o", "out", "--ray", "local") == 2
assert run("s3://bucket/x", "-o", "out") == 2
assert run("sqlite:///x.db", "-o", "out") == 2
"""


def test_without_the_extra_its_name_is_told_and_json_lines_still_work(lines: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stderr.strip().split("\n")
    assert [line.partition(": pip install")[0] for line in said] == [
        "contextfold: Parquet needs pyarrow",
        "contextfold: --ray needs Ray",
        "contextfold: s3://bucket/x needs fsspec",
        "contextfold: sessions need SQLAlchemy",
    ]
    assert all("'contextfold[batch]'" in line for line in said[:3])


def test_importing_batches_imports_nothing_of_the_extra() -> None:
    code = (
        "import sys, contextfold, contextfold.batch, contextfold.cli.batch, contextfold.batch.job\n"
        "print([name for name in ('ray', 'pyarrow', 'fsspec', 'pandas', 'sqlalchemy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_drawn_says_how_far_how_fast_and_what_failed() -> None:
    from contextfold.batch.job import JobProgress
    from contextfold.cli.batch import says

    progress = JobProgress(
        parts=9, parts_before=2, sizes=100, parts_done=4, size=40, rows=1_500, failed=3, rows_before=500
    )
    assert says(progress, 10.0) == "1,500 conversations, 100.0 a second, 3 failed, 4 of 9 parts"
