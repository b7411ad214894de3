"""A job: what is read, what is written, and going on after a stop."""

from __future__ import annotations

import bz2
import gc
import gzip
import json
import lzma
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from batch_talks import lines_of, make_talk, rows_of

from contextfold import Compactor, InputError, PolicyError, StoreError
from contextfold.archive import open_archive
from contextfold.batch import CheckBatch, CompactBatch, MeasureBatch
from contextfold.batch.job import Job, JobOutcome, planned_job, run
from contextfold.batch.outputs import ResultFolder
from contextfold.batch.pool import in_this_process
from contextfold.batch.sources import Reading
from contextfold.errors import ContextfoldError
from effort import crossed

WINDOW = 2_000


def done(*inputs: Any, output: Any, window: int = WINDOW, **more: Any) -> JobOutcome:
    reading = more.pop("reading", Reading())
    operation = more.pop("operation", None) or CompactBatch(window=window)
    return run(
        planned_job(Job(operation, [str(one) for one in inputs], str(output), reading=reading, **more)), in_this_process
    )


def cut(monkeypatch: pytest.MonkeyPatch, size: int = 4_000) -> None:
    """Small parts, so that a small job has several."""
    from contextfold.batch import sources

    monkeypatch.setattr(sources, "LEAST_BYTES", size)


def test_each_line_is_a_row_and_a_bad_line_an_error_of_its_own(lines: Path, tmp_path: Path) -> None:
    outcome = done(lines, output=tmp_path / "out")
    rows = rows_of(tmp_path / "out")
    assert (len(rows), outcome.sums.rows, outcome.sums.failed) == (14, 14, 2)
    assert [row["row"] and row["row"]["id"] for row in rows] == [0, 1, 2, 3, 4, None, 5, 6, 7, 8, 9, 10, 11, 99]
    assert "is no JSON" in rows[5]["error"]
    data = lines.read_bytes()
    for row in rows:
        line = data[row["place"] :].partition(b"\n")[0]
        if row["error"] is None:
            messages = json.loads(line)["messages"]
            assert row["view"] == Compactor(window=WINDOW).compact(messages).messages
    assert outcome.sums.totals["changed"] > 0


@pytest.mark.parametrize("size", [700, 4_000, 1_000_000])
def test_lines_are_the_same_however_a_file_is_cut(
    size: int, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    done(lines, output=whole)
    cut(monkeypatch, size)
    monkeypatch.setattr("contextfold.batch.sources.FEWEST_PARTS", 10**9)
    outcome = done(lines, output=tmp_path / "out")
    assert rows_of(tmp_path / "out") == rows_of(whole)
    assert (outcome.parts > 1) == (size < 10_000)


def test_finished_parts_are_not_done_again(lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch)
    whole, output = tmp_path / "whole", tmp_path / "out"
    done(lines, output=whole)
    ready = planned_job(Job(CompactBatch(window=WINDOW), [str(lines)], str(output)))
    some = in_this_process(ready.task, ready.todo[:2])
    assert [type(one).__name__ for one in some].count("PartDone") == 2
    (output / "part-00004.jsonl").write_text("from a part that was not finished")
    written = {part: part.stat().st_mtime_ns for part in sorted(output.glob("part-*"))[:2]}

    outcome = done(lines, output=output)
    assert outcome.parts_before == 2
    assert {part: part.stat().st_mtime_ns for part in written} == written
    assert rows_of(output) == rows_of(whole)
    assert outcome.sums.rows == 14
    assert outcome.sums.totals["tokens_before"] == done(lines, output=whole).sums.totals["tokens_before"]


def test_a_part_without_its_report_or_without_its_rows_is_done_again(
    lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(monkeypatch)
    output = tmp_path / "out"
    done(lines, output=output)
    expected = rows_of(output)
    (output / "_job" / "00001.json").write_text('{"part": 1, "ro')  # cut off
    (output / "part-00002.jsonl").unlink()
    (output / ".part-00002.jsonl.abc.tmp").write_text("left over")
    outcome = done(lines, output=output)
    assert outcome.parts - outcome.parts_before == 2
    assert rows_of(output) == expected
    assert not list(output.glob(".*"))


def test_another_job_does_not_go_on_with_the_parts_of_this_one(lines: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    done(lines, output=output)
    with pytest.raises(InputError, match="other settings \\(window\\)"):
        done(lines, output=output, window=WINDOW * 2)
    with pytest.raises(InputError, match="operation"):
        done(lines, output=output, operation=CheckBatch(window=WINDOW))
    outcome = done(lines, output=output, window=WINDOW * 2, fresh=True)
    assert (outcome.parts_before, outcome.sums.rows) == (0, 14)
    (output / "_job" / "plan.json").unlink()
    with pytest.raises(InputError, match="no plan"):
        done(lines, output=output)


def test_an_input_that_changed_is_noticed_and_one_that_came_is_done(lines: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    first = folder / "b.jsonl"
    first.write_bytes(lines.read_bytes())
    done(folder, output=output)
    (folder / "a.jsonl").write_bytes(lines.read_bytes())
    outcome = done(folder, output=output)
    assert outcome.sums.rows == 28
    assert outcome.parts_before == outcome.parts - 1
    first.write_bytes(lines.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"b\.jsonl has another size since this job was begun"):
        done(folder, output=output)
    first.unlink()
    with pytest.raises(InputError, match=r"b\.jsonl is gone"):
        done(folder, output=output)


@crossed(output=["out", "OUT.JSONL", "deep/out.parquet"], place=["folder", "glob", "memory"])
def test_an_output_among_the_inputs_is_no_input_of_the_same_command_again(
    place: str, output: str, lines: Path, tmp_path: Path
) -> None:
    folder = str(tmp_path / "in") if place != "memory" else f"memory://{tmp_path.name}-{output}"
    given = f"{folder}/**" if place == "glob" else folder
    with fsspec.open(f"{folder}/talks.jsonl", "wb", auto_mkdir=True) as file:
        file.write(lines.read_bytes())
    for _ in range(3):
        outcome = done(given, output=f"{folder}/{output}", kind=None if "." in output else "jsonl")
        assert outcome.sums.rows == 14


def test_a_result_in_a_folder_of_inputs_is_no_input_of_another_command(lines: Path, tmp_path: Path) -> None:
    done(tmp_path, output=tmp_path / "compacted")
    assert done(tmp_path, output=tmp_path / "checked", operation=CheckBatch(window=WINDOW)).sums.rows == 14


@pytest.mark.parametrize("place", ["", "memory://"])
def test_a_result_below_a_pattern_is_no_input_of_another_command_unless_its_parts_are_asked_for(
    place: str, lines: Path, tmp_path: Path
) -> None:
    folder = place + str(tmp_path / "in")
    with fsspec.open(f"{folder}/a/talks.jsonl", "wb", auto_mkdir=True) as file:
        file.write(lines.read_bytes())
    done(f"{folder}/**/*.jsonl", output=f"{folder}/a/compacted")
    check = CheckBatch(window=WINDOW)
    assert done(f"{folder}/**/*.jsonl", output=f"{folder}/checked", operation=check).sums.rows == 14
    assert done(f"{folder}/*/*.jsonl", output=tmp_path / "again", operation=check).sums.rows == 14
    views = Reading(column="view")
    for one, pattern in enumerate(("**/part-*.jsonl", "a/compacted/*.jsonl")):
        given = f"{folder}/{pattern}" if one else f"{folder}/a/{pattern}"
        outcome = done(given, output=tmp_path / f"views{one}", operation=check, reading=views)
        assert (outcome.sums.rows, outcome.sums.failed) == (14, 2)


class OwnWriter:
    """A summarizer that is an object, which each process makes for itself."""

    def __call__(self, prompt: str) -> str:
        return " ".join(prompt.split()[:9])

    def shorter(self, prompt: str, most: int = 50) -> str:
        return self(prompt)[:most]


@pytest.mark.parametrize(
    "made",
    [OwnWriter, lambda: partial(OwnWriter().shorter, most=40), lambda: OwnWriter().shorter],
    ids=["object", "partial", "method"],
)
def test_a_job_is_known_again_in_another_process_whatever_its_summarizer_is(
    made: Callable[[], Any], lines: Path, tmp_path: Path
) -> None:
    """Where an object lies in memory told it from itself, so that what was paid for could not be gone on with."""

    def job(summarizer: Any) -> Job:
        return Job(CompactBatch(window=WINDOW, summarizer=summarizer), [str(lines)], str(tmp_path / "out"))

    several = made(), made()
    assert run(planned_job(job(several[0])), in_this_process).sums.rows == 14
    assert not planned_job(job(several[1])).todo
    with pytest.raises(InputError, match="other settings \\(summarizer\\)"):
        planned_job(job(None))


@pytest.mark.parametrize("given", ["*.parquet", "", "a.parquet"])
def test_the_output_is_parquet_where_all_inputs_are_however_they_are_named(given: str, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    talks = [json.dumps(make_talk(n)) for n in range(3)]
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        parquet.write_table(pyarrow.table({"messages": talks}), folder / f"{name}.parquet")
    for _ in range(2):
        done(folder / given, output=tmp_path / "out")
    assert {path.suffix for path in (tmp_path / "out").glob("part-*")} == {".parquet"}
    (folder / "c.jsonl").write_text(talks[0] + "\n")
    done(folder, output=tmp_path / "other")
    assert {path.suffix for path in (tmp_path / "other").glob("part-*")} == {".jsonl"}


def test_an_output_that_is_the_only_input_is_refused_before_it_is_touched(lines: Path) -> None:
    before = lines.read_bytes()
    with pytest.raises(InputError, match="is the output, too"):
        done(lines, output=lines)
    assert lines.read_bytes() == before


@pytest.mark.parametrize(
    ("url", "column", "format"),
    [
        ("/v1/chat/completions", "body", "openai-chat"),
        ("/v1/responses", "body", "openai-responses"),
        (None, "params", "anthropic"),
    ],
)
def test_requests_of_a_providers_batch_are_rows_that_keep_their_names(
    url: str | None, column: str, format: str, tmp_path: Path
) -> None:
    key = "input" if format == "openai-responses" else "messages"
    said = [{"role": role, "content": f"{role} {turn}"} for turn in range(4) for role in ("user", "assistant")]
    asked = [{"model": "m", "max_tokens": 9, key: said} for _ in range(3)]
    beside = {"method": "POST", "url": url} if url else {}
    path = tmp_path / "batch.jsonl"
    path.write_text(
        "".join(json.dumps({"custom_id": f"r{n}", **beside, column: one}) + "\n" for n, one in enumerate(asked))
    )
    outcome = done(path, output=tmp_path / "out")
    rows = rows_of(tmp_path / "out")
    assert (outcome.sums.failed, len(rows)) == (0, 3)
    assert [row["row"] for row in rows] == [{"custom_id": f"r{n}", **beside} for n in range(3)]
    assert {row["format"] for row in rows} == {format}


@pytest.mark.parametrize("room", [100, 10_000])
def test_a_disk_without_room_is_said_and_the_same_job_goes_on_once_there_is_some(
    room: int, lines: Path, tmp_path: Path
) -> None:
    """``room``: for no plan, or for the parts and not for the one file that they become."""
    resource = pytest.importorskip("resource")
    folder = tmp_path / "in"
    folder.mkdir()
    for number, line in enumerate(lines.read_bytes().splitlines(keepends=True)[:4]):
        (folder / f"{number}.jsonl").write_bytes(line)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        with pytest.raises(StoreError, match="cannot be written: file too large"):
            done(folder, output=tmp_path / "out.jsonl")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "out.jsonl").exists()
    outcome = done(folder, output=tmp_path / "out.jsonl")
    assert (outcome.parts_before > 0) == (room > 1_000)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 4


def test_files_of_others_in_the_folder_of_a_result_stay(lines: Path, tmp_path: Path) -> None:
    """``--output .`` is the folder in which a person works: editors keep what is not saved in names like these."""
    others = [".draft.tmp", "notes/.letter.md.tmp", ".part-time.jsonl.tmp", "home/.cache/.state.tmp"]
    for name in others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    for fresh in (False, False, True):
        done(lines, output=tmp_path, fresh=fresh)
    assert [name for name in others if (tmp_path / name).is_file()] == others


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_job_without_a_row_is_a_file_without_rows_that_can_be_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").touch()
    output = tmp_path / f"out.{kind}"
    outcome = done(tmp_path / "none.jsonl", output=output, reading=Reading(each="line"))
    assert (outcome.parts, outcome.sums.rows) == (0, 0)
    if kind == "jsonl":
        assert output.read_bytes() == b""
        return
    table = pytest.importorskip("pyarrow.parquet").read_table(output)
    assert table.num_rows == 0
    assert {"source", "view", "error"} <= set(table.column_names)


@pytest.mark.parametrize("fresh", [False, True])
def test_an_output_without_a_name_is_not_the_root_folder(fresh: bool, lines: Path) -> None:
    with pytest.raises(InputError, match="the output has no name"):
        done(lines, output="", fresh=fresh)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_name_that_is_no_text_costs_no_row(kind: str, tmp_path: Path) -> None:
    """Bytes of a file's name that are no UTF-8, beside a column of times, which JSON has not."""
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    folder, talk = tmp_path / "in", json.dumps(make_talk(3, 1))
    folder.mkdir()
    table = pyarrow.table({"messages": [talk, talk], "at": [datetime(2026, 1, 2, tzinfo=UTC)] * 2})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    os.rename(tmp_path / "rows.parquet", os.fsencode(folder) + b"/odd\xff.parquet")
    (folder / "plain.json").write_text(talk)
    output = tmp_path / f"out.{kind}"
    outcome = done(folder, output=output)
    assert (outcome.failed_parts, outcome.sums.rows, outcome.sums.failed) == ({}, 3, 0)
    rows = lines_of(output) if kind == "jsonl" else pyarrow.parquet.read_table(output).to_pylist()
    named = "odd\udcff.parquet" if kind == "jsonl" else r"odd\udcff.parquet"
    assert [os.path.basename(row["source"]) for row in rows] == [named, named, "plain.json"]
    held = rows[0]["row"] if kind == "jsonl" else json.loads(rows[0]["row"])
    assert held == {"at": "2026-01-02T00:00:00+00:00"}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_numbers_that_json_has_not_make_no_line_that_json_is_not(kind: str, tmp_path: Path) -> None:
    """pandas has NaN where nothing is."""
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    talk = make_talk(3, 1)
    scores = [float("nan"), float("inf"), 0.5]
    table = pyarrow.table({"messages": [json.dumps(talk)] * 3, "score": scores, "all": [scores] * 3})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text(
        "\n".join(json.dumps({"messages": talk, "score": score, "all": scores}) for score in scores)
    )

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    for given in ("rows.parquet", "rows.jsonl"):
        output = tmp_path / f"{given}.{kind}"
        done(tmp_path / given, output=output)
        if kind == "jsonl":
            rows = [json.loads(line, parse_constant=refused)["row"] for line in output.read_text().splitlines()]
        else:
            stored = pyarrow.parquet.read_table(output).to_pylist()
            rows = [json.loads(row["row"], parse_constant=refused) for row in stored]
        assert [row["score"] for row in rows] == [None, None, 0.5]
        assert [row["all"] for row in rows] == [[None, None, 0.5]] * 3


def test_a_part_of_parquet_that_cannot_be_written_shows_no_error_of_a_library(
    lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer would go on when it is thrown away, behind the end of its file."""
    pytest.importorskip("pyarrow")
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("contextfold.batch.outputs.Parquet.close", full)
    outcome = done(lines, output=tmp_path / "out", kind="parquet")
    assert "No space left" in outcome.failed_parts[0]
    gc.collect()
    assert shown == []


SPARKS = ("part-00000-5f3c.snappy.parquet", "part-00001-5f3c.jsonl", "part-00900.jsonl", "_job/notes.json")
"""Names as other programs give them to parts of theirs."""


@pytest.mark.parametrize("kind", [None, "parquet"])
def test_fresh_removes_what_a_job_wrote_and_nothing_else(
    kind: str | None, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    cut(monkeypatch)
    assert done(lines, output=output).parts > 1
    for name in SPARKS:
        (output / name).write_text("of another program")
    cut(monkeypatch, 1_000_000)
    assert done(lines, output=output, fresh=True, kind=kind).parts == 1
    ours = {f"part-00000.{kind or 'jsonl'}", "_job/plan.json", "_job/00000.json", "_job/summary.json"}
    assert {path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()} == {*SPARKS, *ours}
    assert {(output / name).read_text() for name in SPARKS} == {"of another program"}


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("name", ["part-00000.jsonl", "part-00007.parquet", SPARKS[0]])
def test_parts_that_no_job_wrote_are_neither_removed_nor_mixed_with_ours(
    name: str, fresh: bool, lines: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("of another program")
    with pytest.raises(InputError, match="holds parts of another job, and no plan: give another --output, or move"):
        done(lines, output=tmp_path / "out", fresh=fresh)
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["of another program"]


@pytest.mark.parametrize("fresh", [False, True])
def test_no_part_takes_the_place_of_another_programs_file(fresh: bool, lines: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines.read_bytes())
    done(folder, output=output)
    (output / "part-00001.jsonl").write_text("of another program")
    (folder / "b.jsonl").write_bytes(lines.read_bytes())
    with pytest.raises(InputError, match=r"holds part-00001\.jsonl, which no job of contextfold wrote there"):
        done(folder, output=output, fresh=fresh)
    assert (output / "part-00001.jsonl").read_text() == "of another program"
    assert len(lines_of(output / "part-00000.jsonl")) == 14


def test_a_job_begun_again_may_be_stopped_while_it_removes(
    lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, remove = tmp_path / "out", ResultFolder.remove
    cut(monkeypatch)
    expected = done(lines, output=output).parts
    for left in range(2 * expected + 2):
        budget = iter(range(left))

        def stopped(place: ResultFolder, name: str, budget: Any = budget) -> None:
            if next(budget, None) is None:
                raise KeyboardInterrupt
            remove(place, name)

        monkeypatch.setattr(ResultFolder, "remove", stopped)
        with pytest.raises(KeyboardInterrupt):
            done(lines, output=output, fresh=True)
        monkeypatch.setattr(ResultFolder, "remove", remove)
        assert done(lines, output=output, fresh=True).parts == expected
        assert len(rows_of(output)) == 14


def test_a_file_that_another_run_is_writing_is_no_left_over(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    place = ResultFolder(str(tmp_path))
    abandoned = tmp_path / ".part-00000.jsonl.abc.tmp"
    abandoned.touch()
    with place.opened("part-00001.jsonl") as file:
        ResultFolder(str(tmp_path)).remove_left_overs()
        file.write(b"{}")
    assert not abandoned.exists()
    assert place.read("part-00001.jsonl") == b"{}"


def test_what_was_compressed_and_is_damaged_costs_only_what_cannot_be_read(lines: Path, tmp_path: Path) -> None:
    folder, data = tmp_path / "in", lines.read_bytes()
    folder.mkdir()
    for suffix, kind in ((".gz", gzip), (".bz2", bz2), (".xz", lzma)):
        packed = kind.compress(data)
        (folder / f"cut.jsonl{suffix}").write_bytes(packed[: len(packed) - 40])
        (folder / f"none.jsonl{suffix}").write_bytes(b"nothing that was compressed")
    (folder / "whole.jsonl").write_bytes(data)
    outcome = done(folder, output=tmp_path / "out")
    assert not outcome.failed_parts
    rows = rows_of(tmp_path / "out")
    of = {name: [row for row in rows if row["source"].endswith(name)] for name in ("whole.jsonl", "cut.jsonl.gz")}
    assert len(of["whole.jsonl"]) == 14
    *read, damaged = of["cut.jsonl.gz"]
    assert read
    assert [row["view"] for row in read] == [row["view"] for row in of["whole.jsonl"][: len(read)]]
    assert "is damaged behind byte" in damaged["error"]
    assert all(row["error"] for row in rows if "none.jsonl" in row["source"])


def packed_with(suffix: str, data: bytes) -> bytes:
    if suffix == ".zst":
        return bytes(pytest.importorskip("pyarrow").Codec("zstd").compress(data).to_pybytes())
    kind: Any = {".gz": gzip, ".bz2": bz2, ".xz": lzma}[suffix]
    return bytes(kind.compress(data))


@pytest.mark.parametrize("name", ["talks.jsonl", "talk.json"])
@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("place", ["", "memory://"])
def test_what_is_compressed_is_read_and_told_in_words_where_it_is_damaged(
    place: str, suffix: str, name: str, lines: Path, tmp_path: Path
) -> None:
    """Lines in Zstandard could not be read at all, and a file of it that was cut off was called empty. Of the others
    Python's own words were told, without a place or a way out."""
    folder = place + str(tmp_path / "in")
    data = lines.read_bytes() if name == "talks.jsonl" else json.dumps(make_talk(400)).encode()
    whole, count = packed_with(suffix, data), 14 if name == "talks.jsonl" else 1
    half = len(data) // 2
    given = {
        "whole": whole,
        "parallel": packed_with(suffix, data[:half]) + packed_with(suffix, data[half:]),
        "cut": whole[:-9],
        "changed": whole[:-100] + bytes(60) + whole[-40:],
        "plain": data,
    }
    for kind, content in given.items():
        with fsspec.open(f"{folder}/{kind}.{name}{suffix}", "wb", auto_mkdir=True) as file:
            file.write(content)
    assert not done(folder, output=tmp_path / "out").failed_parts
    rows = rows_of(tmp_path / "out")
    of = {kind: [row for row in rows if f"/{kind}." in row["source"]] for kind in given}
    for kind in ("whole", "parallel"):
        assert len(of[kind]) == count
        assert sum(row["error"] is None for row in of[kind]) == (12 if count == 14 else 1)
    for kind, words in (("cut", "is damaged behind byte"), ("changed", "its bytes were changed"), ("plain", "rename")):
        error = of[kind][-1]["error"]
        assert f"{kind}.{name}{suffix} is" in error, error
        assert words in error, error
        assert "write it again" in error, error
        assert "Error" not in error, error
    assert "it is cut off" in of["cut"][-1]["error"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("pattern", ["", "/*"])
def test_what_leads_nowhere_costs_only_itself_and_a_pipe_is_no_file(lines: Path, tmp_path: Path, pattern: str) -> None:
    """A link to a file that is gone ended the whole job in a traceback, and a pipe let it wait for ever."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "whole.jsonl").write_bytes(lines.read_bytes())
    names = ("gone.json", "gone.jsonl", "gone.jsonl.gz", "gone.parquet")
    for name in names:
        (folder / name).symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe.jsonl")
    outcome = done(f"{folder}{pattern}", output=tmp_path / "out")
    assert not outcome.failed_parts
    errors = {Path(row["source"]).name: row["error"] for row in rows_of(tmp_path / "out") if "gone" in row["source"]}
    assert sorted(errors) == sorted(names)
    assert all("cannot be read: No such file or directory" in error for error in errors.values())
    assert len(rows_of(tmp_path / "out")) == 14 + len(names)


def test_parquet_that_is_damaged_costs_only_what_cannot_be_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path / "in"
    folder.mkdir()
    talks = [json.dumps(make_talk(1)) for _ in range(9)]
    parquet.write_table(pyarrow.table({"messages": talks}), folder / "whole.parquet", row_group_size=3)
    data = (folder / "whole.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(data[: len(data) // 2])
    column = parquet.ParquetFile(folder / "whole.parquet").metadata.row_group(1).column(0)
    at = column.dictionary_page_offset
    (folder / "torn.parquet").write_bytes(data[: at + 1] + bytes(40) + data[at + 41 :])
    parquet.write_table(pyarrow.table({"notes": [1, 2]}), folder / "notes.parquet")
    text = pyarrow.array([*(talk.encode() for talk in talks[:2]), b'"\xff"'], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"messages": text}), folder / "words.parquet")
    outcome = done(folder, output=tmp_path / "out", kind="jsonl")
    assert not outcome.failed_parts
    rows = rows_of(tmp_path / "out")
    found = {
        name: [(row["place"], row["error"]) for row in rows if row["source"].endswith(f"{name}.parquet")]
        for name in ("whole", "cut", "torn", "notes", "words")
    }
    assert found["whole"] == [(n, None) for n in range(9)]
    assert [place for place, error in found["torn"] if error is None] == [0, 1, 2, 6, 7, 8]
    assert [place for place, error in found["words"] if error is None] == [0, 1]
    wrong = {name: [error for _, error in found[name] if error] for name in ("cut", "torn", "notes", "words")}
    said = ("is no Parquet file", "is damaged in row group 1", "there are notes", "can't decode byte")
    for name, words in zip(wrong, said, strict=True):
        assert len(wrong[name]) == 1
        assert words in wrong[name][0]


def test_folders_globs_and_files_of_every_kind_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep" / "_hidden").mkdir(parents=True)
    line = json.dumps({"messages": make_talk(1)}) + "\n"
    (folder / "a.jsonl").write_text(line * 2)
    (folder / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(line.encode() * 3))
    (folder / "F.JSONL").write_text(line * 2)
    (folder / "G.JSONL.GZ").write_bytes(gzip.compress(line.encode() * 2))
    (folder / "H.Json.Xz").write_bytes(lzma.compress(json.dumps(make_talk(1)).encode()))
    (folder / "deep" / "c.ndjson.bz2").write_bytes(bz2.compress(line.encode()))
    (folder / "d.json").write_text(json.dumps([{"messages": make_talk(1)}, {"messages": make_talk(2)}]))
    session = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}]
    (folder / "session.jsonl").write_text("\n".join(map(json.dumps, session)))
    (folder / "notes.txt").write_text("no data")
    (folder / "deep" / "_hidden" / "e.jsonl").write_text(line)
    outcome = done(folder, output=tmp_path / "all")
    assert (outcome.sums.rows, outcome.sums.failed) == (2 + 3 + 1 + 2 + 1 + 2 + 2 + 1, 0)
    rows = rows_of(tmp_path / "all")
    assert [row["conversation"] for row in rows if row["source"].endswith("d.json")] == ["0", "1"]
    assert [len(row["view"]) for row in rows if row["source"].endswith("session.jsonl")] == [2]
    assert not any(row["row"] for row in rows)
    assert done(folder / "*.jsonl", output=tmp_path / "some").sums.rows == 3
    assert done(folder / "**/*.gz", output=tmp_path / "deep").sums.rows == 3
    assert done(folder / "a.jsonl", folder / "d.json", output=tmp_path / "two").sums.rows == 4
    with pytest.raises(InputError, match="no such file or folder"):
        done(folder / "nothing", output=tmp_path / "none")
    with pytest.raises(InputError, match="no file that ends in"):
        done(folder / "*.txt2", output=tmp_path / "none")


def test_what_of_a_session_is_in_no_conversation_is_told_in_a_column_however_it_is_given(tmp_path: Path) -> None:
    """Words that a person took back in Claude Code are not compacted. In tables they were lost without a word."""

    def said(text: str, before: str | None) -> str:
        message = {"role": "user", "content": text}
        return json.dumps({"type": "user", "uuid": text, "parentUuid": before, "sessionId": "s", "message": message})

    session = "\n".join([said("a", None), said("b", "a"), said("c", "a")])
    (tmp_path / "session.jsonl").write_text(session)
    (tmp_path / "lines.jsonl").write_text(json.dumps({"text": session, "id": 7}))
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"messages": [session]}), tmp_path / "table.parquet")
    told = ["line 2: left out, as the person went back and said something else"]
    for name in ("session.jsonl", "lines.jsonl", "table.parquet"):
        output = tmp_path / f"{name}.out.jsonl"
        done(tmp_path / name, output=output)
        (row,) = lines_of(output)
        assert [message["content"] for message in row["view"]] == ["a", "c"]
        assert row["left_out"] == told
    for operation in (CompactBatch, MeasureBatch, CheckBatch):
        out = operation(window=8_000)({"messages": [session, json.dumps([{"role": "user", "content": "x"}])]})
        assert [json.loads(out["left_out"][0]), out["left_out"][1]] == [told, None]


def test_a_file_of_lines_can_be_one_conversation_and_the_other_way_round(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps({"talk": make_talk(n)}) for n in (1, 2, 3)))
    assert done(path, output=tmp_path / "by-column", reading=Reading(column="talk")).sums.rows == 3
    each = done(path, output=tmp_path / "each", reading=Reading(each="line", column="talk"))
    assert each.sums.rows == 3
    requests = tmp_path / "requests.jsonl"
    requests.write_text(json.dumps({"messages": make_talk(2)}) + "\n")
    assert done(requests, output=tmp_path / "file", reading=Reading(each="file")).sums.rows == 1


def test_a_named_column_is_where_the_conversations_of_any_file_are_or_the_file_says_that_it_has_none(
    tmp_path: Path,
) -> None:
    """Of a file that is one JSON document the name was not looked at, and another list of it taken."""
    folder, talk, other = tmp_path / "in", make_talk(2), [{"role": "user", "content": "another list"}]
    folder.mkdir()
    row = {"dialog": talk, "messages": other, "id": 7}
    given: dict[str, Any] = {
        "object.json": row,
        "objects.json": [row, {"messages": other, "id": 8}, "no object", row],
        "list.json": talk,
        "held.json": {"messages": talk},
        "session.jsonl": talk,
        "rows.jsonl": [row, {"messages": other}],
    }
    for name, value in given.items():
        write = json.dumps if name.endswith(".json") else lambda held: "\n".join(map(json.dumps, held))
        (folder / name).write_text(write(value))
    done(folder, output=tmp_path / "out", reading=Reading(column="dialog"))
    rows = rows_of(tmp_path / "out")
    of = {name: [row for row in rows if row["source"].endswith(f"/{name}")] for name in given}
    assert [row["view"] for row in of["object.json"]] == [talk]
    assert of["object.json"][0]["row"] == {"messages": other, "id": 7}
    assert [row["view"] for row in of["objects.json"]] == [talk, None, None, talk]
    assert [row["place"] for row in of["objects.json"]] == [0, 1, 2, 3]
    assert of["objects.json"][1]["row"]["id"] == 8
    assert [row["view"] for row in of["rows.jsonl"]] == [talk, None]
    for name in ("list.json", "held.json", "session.jsonl"):
        assert len(of[name]) == 1
        assert "no column dialog: there are" in of[name][0]["error"]


def test_parquet_goes_in_and_comes_out_with_one_schema(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    source = tmp_path / "talks.parquet"
    rows = [{"id": n, "messages": json.dumps(make_talk(4 + n, n))} for n in range(20)] + [{"id": 20, "messages": "no"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), source, row_group_size=7)
    outcome = done(source, output=tmp_path / "out")
    assert outcome.sums.rows == 21
    table = parquet.read_table(tmp_path / "out")
    assert table.column("place").to_pylist() == list(range(21))
    assert [json.loads(row)["id"] for row in table.column("row").to_pylist()] == list(range(21))
    assert json.loads(table.column("view")[0].as_py()) == make_talk(4)
    assert table.column("error_type")[20].as_py() == "InputError"
    one = tmp_path / "one.parquet"
    done(source, output=one)
    assert parquet.read_table(one).drop_columns("seconds") == table.drop_columns("seconds")
    assert not (tmp_path / "one.parquet.parts").exists()


@pytest.mark.parametrize("suffix", ["", ".jsonl", ".parquet"])
def test_a_column_that_json_cannot_say_fails_no_row_beside_it(tmp_path: Path, suffix: str) -> None:
    import pyarrow
    from pyarrow import parquet

    source = tmp_path / "talks.parquet"
    odd = {"raw": b"\xff\x00", "at": datetime(2031, 1, 1, tzinfo=UTC), "sum": Decimal("1.5"), "no": float("nan")}
    rows = [{"id": n, "messages": json.dumps(make_talk(2, n)), **odd} for n in range(3)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    outcome = done(source, output=tmp_path / f"out{suffix}")
    assert outcome.sums.rows == 3
    assert not outcome.failed_parts


def test_a_column_of_structs_is_read_from_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    source = tmp_path / "talks.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([{"messages": make_talk(n)} for n in (1, 2)]), source)
    done(source, output=tmp_path / "out.jsonl")
    rows = lines_of(tmp_path / "out.jsonl")
    assert [row["view"] for row in rows] == [make_talk(1), make_talk(2)]


def test_one_file_is_written_where_the_output_is_a_file(lines: Path, tmp_path: Path) -> None:
    done(lines, output=tmp_path / "folder")
    done(lines, output=tmp_path / "out.jsonl")
    rows = lines_of(tmp_path / "out.jsonl")
    assert [{k: v for k, v in row.items() if k != "seconds"} for row in rows] == rows_of(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "out.jsonl", "talks.jsonl"]


def test_addresses_of_fsspec_are_read_and_written(lines: Path) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    system.pipe_file("/bucket/in/talks.jsonl", lines.read_bytes())
    outcome = done("memory://bucket/in", output="memory://bucket/out")
    assert outcome.sums.rows == 14
    assert len(system.cat_file("/bucket/out/part-00000.jsonl").splitlines()) == 14
    again = done("memory://bucket/in", output="memory://bucket/out")
    assert (again.parts_before, again.sums.rows) == (1, 14)
    assert done("memory://bucket/in/*.jsonl", output="memory://bucket/glob.jsonl").sums.rows == 14
    assert len(system.cat_file("/bucket/glob.jsonl").splitlines()) == 14
    system.rm("/bucket", recursive=True)


@contextmanager
def served(data: bytes, *, sized: bool = True) -> Iterator[str]:
    """The address of a server that has these bytes at any path, and says or does not say how many there are."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            if sized:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("suffix", ["", ".gz", "?sig=a.b/c", ".gz?X-Amz-Expires=9.5&X-Amz-Signature=a"])
def test_lines_are_read_from_a_server(suffix: str, sized: bool, lines: Path, tmp_path: Path) -> None:
    """Its files are fsspec's own, as those of object stores are: these read no piece of a line."""
    pytest.importorskip("aiohttp")
    data = lines.read_bytes()
    with served(gzip.compress(data) if ".gz" in suffix else data, sized=sized) as place:
        for before in (0, 1):
            outcome = done(f"{place}/talks.jsonl{suffix}", output=tmp_path / "out")
            assert (outcome.failed_parts, outcome.sums.rows, outcome.parts_before) == ({}, 14, before)
    done(lines, output=tmp_path / "own")
    found, own = rows_of(tmp_path / "out"), rows_of(tmp_path / "own")
    assert [row["view"] for row in found] == [row["view"] for row in own]


@pytest.mark.parametrize("output", ["{}/one.jsonl", "file://{}/one.jsonl"])
def test_a_folder_that_stood_beside_one_output_keeps_what_is_not_of_the_job(
    output: str, lines: Path, tmp_path: Path
) -> None:
    """It was removed as a whole."""
    pytest.importorskip("fsspec")
    beside = tmp_path / "one.jsonl.parts"
    beside.mkdir()
    (beside / "notes.txt").write_text("mine")
    done(lines, output=output.format(tmp_path))
    assert len((tmp_path / "one.jsonl").read_text().splitlines()) == 14
    assert [file.name for file in beside.rglob("*")] == ["notes.txt"]
    (beside / "notes.txt").unlink()
    done(lines, output=output.format(tmp_path))
    assert not beside.exists()


def test_a_signed_address_of_parquet_is_known_by_its_path(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"messages": [json.dumps(make_talk(3))] * 4}), tmp_path / "in.parquet")
    with served((tmp_path / "in.parquet").read_bytes()) as place:
        outcome = done(f"{place}/talks.parquet?X-Amz-Expires=9.5&X-Amz-Signature=a", output=tmp_path / "out")
    assert (outcome.sums.rows, outcome.sums.failed) == (4, 0)


def test_a_window_that_no_column_holds_is_refused_before_the_work() -> None:
    assert CompactBatch(window=2**63 - 1).window.tokens == 2**63 - 1
    with pytest.raises(PolicyError, match="a window must be at most"):
        CompactBatch(window=2**63)


@pytest.mark.parametrize(
    "secret", ["token=k7Qx", "X-Amz-Credential=k7Qx&X-Amz-Signature=k7Qx", "Signature=k7Qx", "sv=1&sig=k7Qx"]
)
def test_what_signs_an_address_is_in_no_file_of_a_job_and_the_job_goes_on(
    secret: str, lines: Path, tmp_path: Path
) -> None:
    pytest.importorskip("aiohttp")
    with served(json.dumps({"messages": make_talk(3)}).encode()) as place:
        for before in (0, 1):
            outcome = done(f"{place}/talk.json?part=2&{secret}", output=tmp_path / "out")
            assert (outcome.failed_parts, outcome.sums.failed, outcome.parts_before) == ({}, 0, before)
    written = [file.read_text() for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert len(written) == 4
    assert not [text for text in written if "k7Qx" in text]
    assert any("part=2" in text for text in written)


def test_the_sessions_of_a_store_are_read(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    for number in range(3):
        Compactor(window=100_000).session(f"thread-{number}", store).append(make_talk(3 + number, number))
    outcome = done(store, output=tmp_path / "out")
    rows = rows_of(tmp_path / "out")
    assert outcome.sums.rows == 3
    assert [row["row"]["thread"] for row in rows] == ["thread-0", "thread-1", "thread-2"]
    assert [row["messages_before"] for row in rows] == [13, 17, 21]
    Compactor(window=100_000).session("thread-9", store).append(make_talk(1))
    assert done(store, output=tmp_path / "out").sums.rows == 4
    assert done(store, output=tmp_path / "none", reading=Reading(namespace="other")).sums.rows == 0


def test_a_password_of_a_store_is_in_no_file_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextfold.batch.sources._threads", lambda store, namespace: [("t", 9)])
    address = "postgresql+psycopg://me:hunter2@127.0.0.1:1/db"
    ready = planned_job(Job(CompactBatch(window=WINDOW), [address], str(tmp_path / "out")))
    assert ready.task.stores == {"postgresql+psycopg://me:***@127.0.0.1:1/db": address}
    assert "hunter2" not in (tmp_path / "out" / "_job" / "plan.json").read_text()


def test_a_password_of_an_address_is_in_no_file_of_a_job_and_the_job_goes_on(tmp_path: Path) -> None:
    """Nor in what is told of it; and the files are found again by a second run."""
    memory = fsspec.filesystem("memory")
    place = "memory://me:hunter2@store"
    said = json.dumps({"messages": [{"role": "user", "content": "Hi."}]}) + "\nno JSON\n"
    memory.pipe_file("/me:hunter2@store/in.jsonl", said.encode())
    for rows in (2, 3):
        outcome = done(f"{place}/*.jsonl", output=tmp_path / "out")
        assert outcome.sums.rows == rows
        memory.pipe_file("/me:hunter2@store/more.jsonl", said.splitlines(keepends=True)[0].encode())
    elsewhere = done(f"{place}/*.jsonl", output=f"{place}/out")
    assert "hunter2" not in json.dumps(elsewhere.to_dict())
    written = [file.read_text() for file in (tmp_path / "out").rglob("*") if file.is_file()]
    written += [memory.cat_file(name).decode() for name in memory.find("/me:hunter2@store/out")]
    assert len(written) > 6
    assert not [text for text in written if "hunter2" in text]
    memory.rm("/me:hunter2@store", recursive=True)


@pytest.mark.parametrize("name", ["a" * 300, "ftp://127.0.0.1:9/in.jsonl"])
def test_a_place_that_cannot_be_looked_at_is_told_as_ours(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        done(name, output=tmp_path / "out")
    with pytest.raises(ContextfoldError):
        done(tmp_path, output=name if "://" in name else str(tmp_path / name))
    if "://" in name:
        with pytest.raises(InputError, match="cannot be used as an archive"):
            open_archive(name)


def test_a_part_that_cannot_be_read_is_told_and_done_by_the_next_run(
    lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(monkeypatch)
    ready = planned_job(Job(CompactBatch(window=WINDOW), [str(lines)], str(tmp_path / "out")))
    data = lines.read_bytes()
    lines.unlink()
    outcome = run(ready, in_this_process)
    assert len(outcome.failed_parts) == len(ready.parts) > 1
    assert "cannot be read" in outcome.failed_parts[0]
    lines.write_bytes(data)
    assert done(lines, output=tmp_path / "out").sums.rows == 14
