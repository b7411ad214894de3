"""Each fault of deepagents' own class that ``examples/side_by_side_deepagents.py`` shows is there, and not in ours."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "side_by_side_deepagents.py"))


def test_every_evicted_turn_reaches_the_summarizer(example: dict[str, Any]) -> None:
    """With the class's defaults, deepagents summarizes what fits 4,000 tokens and drops the rest unread."""
    theirs, ours = example["lost_turns"]()
    assert theirs.evicted == 190
    assert theirs.shown < 100
    assert ours.shown == ours.evicted > 180
    assert ours.archived == ours.evicted


def test_a_tool_loop_is_summarized_and_its_request_stays(example: dict[str, Any]) -> None:
    """Deepagents asks no model, and the user's words are gone."""
    theirs, ours = example["tool_loop_behind_one_request"]()
    assert (theirs.summaries, theirs.shown, theirs.task) == (0, 0, False)
    assert ours.task
    assert ours.shown == ours.evicted > 180
    assert ours.summary.startswith(example["SUMMARY"])


def test_a_blank_summary_changes_nothing(example: dict[str, Any]) -> None:
    """Deepagents puts nothing in the place of 50 messages."""
    theirs, ours = example["blank_summary"]()
    assert (theirs.evicted, theirs.summary) == (50, "")
    assert (ours.evicted, ours.sections, ours.problems) == (0, 0, ())


def test_no_result_loses_its_call(example: dict[str, Any]) -> None:
    """A message between parallel results."""
    theirs, ours = example["orphan_result"]()
    assert theirs.problems
    assert ours.problems == ()
    assert ours.shown == ours.evicted > 0


def test_a_failing_model_does_not_lose_the_paid_summary(example: dict[str, Any]) -> None:
    """Three attempts: one summary and one section of history; deepagents pays and writes three times."""
    theirs, ours = example["three_attempts"]()
    assert (theirs.summaries, theirs.sections) == (3, 3)
    assert (ours.summaries, ours.sections) == (1, 1)


def test_a_small_summarizer_does_not_stop_the_conversation(example: dict[str, Any]) -> None:
    """Deepagents cuts the middle out once and then the agent is stuck; ours reads everything in parts."""
    theirs, ours = example["summarizer_overflow"]()
    assert theirs.problems or theirs.summary.startswith("Error generating summary")  # in the first releases of 0.7
    assert ours.problems == ()
    assert ours.shown == ours.evicted > 90


def test_truncation_counts_for_every_shape(example: dict[str, Any]) -> None:
    theirs, ours = example["truncation"]("openai")
    assert theirs > 1_000
    assert ours > 1_000
    theirs, ours = example["truncation"]("anthropic")
    assert theirs == 0
    assert ours > 1_000


@pytest.mark.strict
def test_truncation_does_not_slide(example: dict[str, Any]) -> None:
    """In a loop that writes 30 files deepagents rewrites the prefix at nearly every call."""
    theirs, ours = example["CLASSES"]
    assert example["rewritten_prefixes"](theirs) > 20
    assert example["rewritten_prefixes"](ours) <= 6


@pytest.mark.strict
def test_the_table_prints(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    example["main"]()
    printed = capsys.readouterr().out
    assert printed.count("\n  deepagents ") == printed.count("\n  contextfold ") == 7
