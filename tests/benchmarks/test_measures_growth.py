"""Growth: points are measured side by side, stopped where they would take too long, and shown as such."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from benchmarks.replay import jobs, tokens
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.experiments import growth
from benchmarks.replay.recording import Recording
from benchmarks.replay.validity import problems

NAMES = ("contextfold", "masking_turns")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """A run of two strategies at two small lengths."""
    tokens.use(tokens.ESTIMATE)
    patch = pytest.MonkeyPatch()
    patch.setattr(growth, "LENGTHS", (100, 200))
    patch.setattr(growth, "MEMORY_LENGTH", 200)
    patch.setattr(growth, "WINDOWS", {"fits": 10**9, "compacted": 4_000})
    plan = jobs.Plan(None, (16_000,), NAMES, tokens.ESTIMATE, Path("unused"))
    made = growth.run(plan, [], lambda *_: None)
    patch.undo()
    return made


def test_the_conversation_is_valid_and_goes_on_where_it_stopped() -> None:
    tokens.use(tokens.ESTIMATE)
    messages = growth.conversation(0, 100)
    assert growth.conversation(0, 60) + growth.conversation(60, 40) == messages
    recording = Recording(Conversation("made", "made", tuple(messages)))
    assert list(problems(recording, recording.numbers)) == []


@pytest.mark.strict
def test_every_strategy_is_measured_in_both_situations_at_every_length(found: dict[str, Any]) -> None:
    points = found["times"]["points"]
    assert {(p["situation"], p["strategy"], p["length"]) for p in points} == {
        (situation, name, length) for situation in growth.WINDOWS for name in NAMES for length in (100, 200)
    }
    assert all(0 < p["median"] <= p["worst"] for p in points)
    assert found["figures"] == {}


@pytest.mark.strict
def test_memory_is_what_is_held_after_the_call(found: dict[str, Any]) -> None:
    memory = found["times"]["memory"]
    assert memory["contextfold"] > 1_000 > memory["masking_turns"] >= 0


def test_a_strategy_that_would_take_too_long_is_not_run() -> None:
    point, expected = growth._point("fits", 10**9, "no_such_strategy", 10**6, growth.LIMIT_SECONDS + 1)
    assert point.median is None
    assert expected == growth.LIMIT_SECONDS + 1


def points(**medians: float | None) -> list[dict[str, Any]]:
    return [
        {"situation": situation, "strategy": name, "length": length, "median": m, "worst": m, "first": m}
        for situation in growth.WINDOWS
        for name, m in medians.items()
        for length in growth.LENGTHS
    ]


def test_the_table_shows_ratios_to_contextfold_and_what_was_stopped() -> None:
    made = {
        "figures": {},
        "times": {"points": points(contextfold=0.5, slow=20.0, quick=0.02, gone=None), "memory": {"slow": 3_000_000}},
    }
    text = growth.markdown_times(made)
    assert "| contextfold | 0.500 |" in text
    assert "| slow | 20 (40.0x) |" in text
    assert "| quick | 0.020 (0.04x) |" in text
    assert "| gone | – |" in text
    assert "| slow | 3.0 | 1,000 |" in text
    assert growth.markdown(made) == ""


@pytest.mark.strict
@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib comes with the extra bench")
def test_the_curves_are_drawn(tmp_path: Path) -> None:
    growth.plots({"times": {"points": points(contextfold=0.5, slow=20.0)}}, tmp_path)
    assert (tmp_path / "growth.svg").read_text(encoding="utf-8").count("<path") > 10
