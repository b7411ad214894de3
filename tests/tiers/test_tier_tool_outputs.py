"""Old tool outputs: compressed as what they are; what stays is verbatim, what goes is counted."""

from __future__ import annotations

import csv
import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tier_inputs import containers, json_texts, log, texts, unhurried

from contextfold.messages import Media, Opaque, Text, ToolCall, ToolResult
from contextfold.tiers import tool_outputs
from contextfold.tiers.fitting import LEAST
from contextfold.tiers.markers import MARKER, counts_in, is_shortened, without_markers
from contextfold.tiers.tool_outputs import ToolOutputsTier
from contextfold.tiers.tool_outputs_text import of_text
from contextfold.tokens.estimate import estimate
from effort import crossed, examples

tier = ToolOutputsTier()
limits = st.integers(0, 600)


def result(*texts: str) -> ToolResult:
    return ToolResult("call_1", tuple(Text(text) for text in texts), source={"kept": True})


def documents(text: str) -> list[str]:
    """A JSON document, or JSON lines, with their whitespace made the same (NaN is not equal to itself)."""
    try:
        return [json.dumps(json.loads(text))]
    except ValueError:
        return [json.dumps(json.loads(line)) for line in text.split("\n")]


def reduced(text: str, limit: int) -> str:
    return tier.reduce(result(text), limit).text  # type: ignore[union-attr]


@settings(max_examples=examples(200), deadline=None)
@given(st.one_of(texts(), json_texts()), limits)
def test_reducing_again_changes_nothing_nothing_grows_and_the_limit_holds(text: str, limit: int) -> None:
    part = result(text)
    once = tier.reduce(part, limit)
    assert isinstance(once, ToolResult)
    assert tier.reduce(once, limit) is once
    assert once is part or (once.edited and once.source is part.source)
    assert estimate(once.text) <= estimate(text)
    assert once is part or is_shortened(once.text) or documents(once.text) == documents(text)
    if not is_shortened(text):
        assert estimate(once.text) <= max(limit, LEAST)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from([*log(40), "", "ERROR: disk full", "x" * 500]), max_size=400), limits)
def test_every_line_is_there_word_for_word_or_counted(lines: list[str], limit: int) -> None:
    """Verbatim, or cut with an explicit marker and count."""
    text = "\n".join(lines)
    shorter = reduced(text, limit)
    counted = counts_in(shorter)
    if counted["characters"] and not shorter.startswith(tuple(lines)):
        return
    whole = [line for line in shorter.splitlines() if not MARKER.fullmatch(line)]
    known = set(lines)
    assert all(line in known or is_shortened(line) for line in whole)
    if not any(is_shortened(line) for line in whole):
        assert len(whole) + counted["lines"] + counted["repeated lines"] == len(text.splitlines())


@pytest.mark.parametrize(
    "error",
    [
        "ERROR: connection to db-7 refused",
        "ValueError: port must be an integer",
        "E   assert 3 == 4",
        "错误：找不到文件",
        "npm ERR! missing script: build",
        "Process exited with code 137",
        "3 failed, 118 passed in 4.20s",
        "--- FAIL: TestA",
        "src/main.rs:4:5: error[E0308]: mismatched types",
        "エラー: 接続できません",
        "FATAL: out of disk",
    ],
)
def test_an_error_line_survives_wherever_it_stands(error: str) -> None:
    """Error strings are what an agent must repeat exactly."""
    for place in (0, 57, 400, 799):
        lines = log(800)
        lines.insert(place, error)
        shorter = reduced("\n".join(lines), 250)
        assert error in shorter.splitlines()
        assert estimate(shorter) <= 250


def test_a_traceback_keeps_its_last_line_and_the_log_keeps_both_ends() -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "/app/run.py", line 7, in main',
        "    go()",
        "KeyError: 'id'",
    ]
    lines = [*log(300, 1), *traceback, *log(300, 2)]
    shorter = reduced("\n".join(lines), 300).splitlines()
    assert shorter[0] == lines[0]
    assert shorter[-1] == lines[-1]
    assert {traceback[0], traceback[3]} <= set(shorter)


def test_repeated_lines_are_collapsed_with_their_count() -> None:
    text = "start\n" + "Waiting for the debugger to disconnect...\n" * 500 + "done\n"
    assert reduced(text, 60) == (
        "start\nWaiting for the debugger to disconnect...\n…[499 repeated lines shortened]\ndone\n"
    )


def test_identifiers_between_head_and_tail_are_preferred_to_plain_words() -> None:
    lines = [f"and this is some sentence about {word} things" for word in ("odd", "even", "old", "new") * 60]
    lines[130] = "deployed to https://eu-west.example.com/releases/r-4711"
    assert lines[130] in reduced("\n".join(lines), 200)


def test_the_example_of_a_list_of_events_keeps_outcome_total_and_both_ends() -> None:
    items = [
        {"id": n, "title": f"Meeting {n}", "start": f"2026-01-{n:02}T10:00:00", "note": "x" * 30} for n in range(1, 21)
    ]
    shorter = json.loads(reduced(json.dumps({"success": True, "items": items, "total": 20}, indent=2), 200))
    assert (shorter["success"], shorter["total"]) == (True, 20)
    kept = [item for item in shorter["items"] if isinstance(item, dict)]
    (note,) = [item for item in shorter["items"] if isinstance(item, str)]
    assert kept[0]["id"] == 1
    assert kept[-1]["id"] == 20
    assert counts_in(note) == {"items": 20 - len(kept)}


@unhurried
@given(containers(800), st.integers(LEAST, 400))
def test_json_stays_json_of_the_same_kind_and_its_counts_are_right(value: Any, limit: int) -> None:
    """JSON stays valid."""
    shorter = json.loads(reduced(json.dumps(value), limit))
    _compare(value, shorter)


def _compare(before: Any, after: Any) -> None:
    """Whatever of ``before`` is in ``after`` is the same, and whatever is not is counted there."""
    assert type(before) is type(after)
    if isinstance(before, dict):
        fields = {name: inner for name, inner in after.items() if name in before and name != "…"}
        omitted = counts_in(after["…"])["fields"] if isinstance(after.get("…"), str) else 0
        assert len(fields) + omitted >= len(before) - ("…" in before)
        for name, inner in fields.items():
            _compare(before[name], inner)
    elif isinstance(before, list):
        note = next((i for i, inner in enumerate(after) if isinstance(inner, str) and counts_in(inner)["items"]), None)
        if note is not None:
            assert len(after) - 1 + counts_in(after[note])["items"] == len(before)
        head = after if note is None else after[:note]
        tail = [] if note is None else after[note + 1 :]
        for old, new in [*zip(before, head, strict=False), *zip(before[len(before) - len(tail) :], tail, strict=True)]:
            _compare(old, new)
    elif isinstance(before, str):
        assert before == after or is_shortened(after)
    else:
        assert before == after or before != before


def test_outcome_fields_stay_when_most_others_go() -> None:
    value = {f"field_{n}": f"value {n}" for n in range(300)} | {"exit_code": 3, "error": "quota exceeded"}
    shorter = json.loads(reduced(json.dumps(value), 150))
    assert (shorter["exit_code"], shorter["error"]) == (3, "quota exceeded")
    assert len(shorter) - 1 + counts_in(shorter["…"])["fields"] == len(value)


def test_a_log_inside_of_json_is_shortened_line_by_line() -> None:
    output = "\n".join([*log(200), "ERROR: quota exceeded", *log(200)])
    shorter = json.loads(reduced(json.dumps({"output": output, "exit_code": 1}), 300))
    assert shorter["exit_code"] == 1
    assert "ERROR: quota exceeded" in shorter["output"].splitlines()


def test_json_lines_stay_json_lines_and_can_be_shortened_further() -> None:
    text = "\n".join(json.dumps({"id": n, "event": f"login of user {n}"}) for n in range(500))
    shorter = reduced(text, 300)
    further = reduced(shorter, 100)
    for version in (shorter, further):
        rows = [json.loads(line) for line in version.splitlines()]
        kept = [row for row in rows if isinstance(row, dict)]
        assert (kept[0]["id"], kept[-1]["id"]) == (0, 499)
        assert sum(counts_in(row)["items"] for row in rows if isinstance(row, str)) + len(kept) == 500
    assert estimate(further) <= 100


def test_lines_that_only_look_like_json_are_lines() -> None:
    lines = ['{"id": 1, "event": "login"}', "{not json at all}"] * 100
    shorter = reduced("\n".join(lines), 100).splitlines()
    assert lines[0] in shorter
    assert lines[1] in shorter


def test_a_url_inside_of_json_is_kept_whole_or_not_at_all() -> None:
    """Exact identifiers."""
    url = "https://podcasts.example.com/ca/podcast/839-the-godmother-of-worlds/id1740493162?i=1000740493162&from=list"
    value = [{"url": f"{url}{n}", "snippet": "Some words about it. " * 20} for n in range(9)]
    kept = [row for row in json.loads(reduced(json.dumps(value), 300)) if isinstance(row, dict)]
    assert all(row["url"].startswith(url) for row in kept)


def test_a_program_that_lowers_the_limits_of_csv_changes_the_kind_only() -> None:
    text = "name,state,note\n" + "\n".join(f"job-{n},done,{'x' * 40}" for n in range(200))
    before = csv.field_size_limit(20)
    try:
        shorter = reduced(text, 100)
    finally:
        csv.field_size_limit(before)
    assert counts_in(shorter)["lines"] > 150
    assert counts_in(reduced(text, 100))["rows"] > 150


def test_shortening_json_further_adds_its_counts_up() -> None:
    value = {"rows": [{"id": n, "name": f"row {n}"} for n in range(100)]} | {f"key_{n}": n for n in range(100)}
    shorter = reduced(reduced(json.dumps(value), 400), 120)
    fields = json.loads(shorter)
    assert len(fields) - 1 + counts_in(fields["…"])["fields"] == len(value)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("| name | state |\n|---|---|", "| job-{0} | done |"),
        ("name,state,seconds", '"job {0}, nightly",done,{0}'),
        ("name\tstate", "job-{0}\tdone"),
        ("NAME          STATUS    AGE", "job-{0}         Running   3d"),
    ],
)
def test_a_table_keeps_its_header_its_ends_its_failed_rows_and_a_count(header: str, row: str) -> None:
    rows = [row.format(n) for n in range(100, 400)]
    rows[150] = rows[150].replace("done", "FAILED").replace("Running", "FAILED ")
    shorter = reduced("\n".join([header, *rows]), 150)
    lines = shorter.splitlines()
    assert shorter.startswith(header + "\n" + rows[0] + "\n")
    assert lines[-1] == rows[-1]
    assert rows[150] in lines
    kept = [line for line in lines if not is_shortened(line)]
    assert len(kept) - len(header.splitlines()) + counts_in(shorter)["rows"] == 300


@pytest.mark.parametrize(
    "sentence",
    ["The quick brown fox number {0} jumps over a lazy dog in Berlin. ", "第{0}个句子讲的是网关和日志的事情。"],
)
def test_prose_keeps_its_first_and_last_sentences_and_a_count(sentence: str) -> None:
    sentences = [sentence.format(n) for n in range(100, 300)]
    shorter = reduced("".join(sentences), 200)
    assert shorter.startswith(sentences[0])
    assert shorter.endswith(sentences[-1])
    kept = sum(text in shorter for text in sentences)
    assert kept + counts_in(shorter)["sentences"] == 200


def test_texts_of_one_result_share_the_limit_and_media_stay() -> None:
    image, block = Media("image", "image/png", data="AAAA"), Opaque("search_result", "kept")
    long = "\n".join(log(500))
    part = ToolResult("call_1", (Text("short"), image, Text(long), block, Text(long)))
    once = tier.reduce(part, 300)
    assert isinstance(once, ToolResult)
    assert once.content[0] is part.content[0]
    assert once.content[1] is image
    assert once.content[3] is block
    assert 200 < estimate(once.content[2].text) + estimate(once.content[4].text) <= 300  # type: ignore[union-attr]


@unhurried
@given(st.lists(texts(0, 800), max_size=12), limits)
def test_results_of_several_texts_reach_a_fixed_point_at_once(parts: list[str], limit: int) -> None:
    once = tier.reduce(result(*parts), limit)
    assert tier.reduce(once, limit) is once


def test_an_error_result_and_its_source_stay_what_they_were() -> None:
    part = ToolResult("call_1", (Text("\n".join(log(200))),), name="bash", is_error=True, source={"a": 1})
    once = tier.reduce(part, 100)
    assert isinstance(once, ToolResult)
    assert (once.name, once.is_error, once.source, once.edited) == ("bash", True, {"a": 1}, True)
    assert not part.edited


def test_other_parts_come_back_as_they_are() -> None:
    for part in (Text("word " * 2_000), ToolCall("call_1", "bash", "{}"), result("short")):
        assert tier.reduce(part, 50) is part


HARD: dict[str, Callable[[int], str]] = {
    "a line of 300,000 characters": lambda n: "x" * (300 * n),
    "a line of 300,000 words and numbers": lambda n: " ".join(
        map(str, random.Random(4).choices(range(10**6), k=45 * n))
    ),
    "brackets that never close": lambda n: "[" * (1_000 * n) + "]",
    "quotes that never close": lambda n: '{"' + '\\"' * (500 * n) + "}",
    "dots": lambda n: "a." * (500 * n),
    "openings of markers": lambda n: "…[" * (500 * n),
    "markers": lambda n: "…[12 lines shortened]\n" * (20 * n),
    "blank lines": lambda n: "\n" * (1_000 * n),
    "carriage returns": lambda n: "".join(f"{k}%\r" for k in range(100 * n)),
    "five megabytes of one log": lambda n: "\n".join(log(64 * n)),
    "two megabytes of errors": lambda n: "\n".join(f"ERROR: cannot open /tmp/file-{k}" for k in range(60 * n)),
    "two megabytes of JSON": lambda n: json.dumps(
        [{"id": k, "tags": ["a", "b"], "share": k / 7} for k in range(36 * n)]
    ),
    "an object of 100,000 fields": lambda n: json.dumps({f"k{k}": k for k in range(100 * n)}),
}
"""Texts of the size that they name for 1,000; a quick run tries a fifth of it."""


@crossed(name=HARD, quick=4)
def test_huge_outputs_are_reduced_in_seconds(name: str) -> None:
    text = HARD[name](examples(1_000))
    started = time.process_time()
    shorter = reduced(text, 200)
    assert time.process_time() - started < 30  # at most 3 seconds without a tracer; quadratic code takes minutes
    assert estimate(shorter) <= 200
    assert is_shortened(shorter)


@pytest.mark.strict
def test_megabytes_take_time_in_proportion_to_their_length() -> None:
    def seconds(lines: int) -> float:
        text = "\n".join(log(lines))
        started = time.process_time()
        reduced(text, 200)
        return time.process_time() - started

    assert seconds(32_000) < 10 * max(seconds(8_000), 0.05)


def test_a_marker_of_a_shortened_text_counts_all_of_its_lines_when_shortened_again() -> None:
    text = "\n".join(log(1_000))
    again = reduced(reduced(text, 400), 120)
    kept = [line for line in without_markers(again).splitlines() if line]
    assert len(kept) + counts_in(again)["lines"] == 1_000


@pytest.mark.parametrize("limit", [200, 8_000])
def test_a_large_text_is_read_once_for_all_views_under_a_limit(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass and the views behind it ask for the same outcome several times."""
    text = "\n".join(f"{n} GET /items/{n * 7919 % 100_003} took {n % 900} ms" for n in range(20_000 + limit))
    read = list[str]()
    monkeypatch.setattr(tool_outputs, "of_text", lambda text: read.append(text) or of_text(text))
    assert reduced(text, limit) == reduced(text, limit)
    assert read == [text]
