"""The correction by a provider's usage: learns from what belongs together, within bounds, and forgets nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.messages import Message, Text
from contextfold.tokens import CalibratedCounter, Calibration, TokenCounter
from contextfold.tokens.usage import HIGHEST, LOWEST, SMALLEST

TOKENS = st.integers(SMALLEST, 2_000_000)


def test_nothing_learned_changes_nothing() -> None:
    assert Calibration().apply(1_234) == 1_234


def test_the_first_usage_is_taken_as_it_is() -> None:
    assert Calibration().learn(1_000, 1_200).apply(500) == 600


@pytest.mark.parametrize(("estimated", "reported"), [(1_000, None), (1_000, 0), (1_000, -5), (0, 100), (6, 9)])
def test_missing_or_zero_usage_and_that_of_tiny_requests_is_ignored(estimated: int, reported: int | None) -> None:
    learned = Calibration().learn(1_000, 900)
    assert learned.learn(estimated, reported) is learned


def test_learning_returns_another_value_and_leaves_the_first() -> None:
    first = Calibration()
    assert first.learn(1_000, 1_100) != first == Calibration()


@given(st.lists(st.tuples(TOKENS, TOKENS), max_size=20))
def test_the_ratio_stays_within_its_bounds(usages: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    for estimated, reported in usages:
        calibration = calibration.learn(estimated, reported)
    assert LOWEST <= calibration.ratio <= HIGHEST
    assert calibration.observations == len(usages)


def test_many_observations_settle_on_what_the_provider_says() -> None:
    calibration = Calibration().learn(1_000, 2_000)
    for _ in range(40):
        calibration = calibration.learn(1_000, 1_100)
    assert calibration.apply(1_000) == pytest.approx(1_100, abs=2)


def test_a_calibrated_counter_corrects_every_answer_and_never_below_the_corrected_sum() -> None:
    counter = TokenCounter()
    calibrated = CalibratedCounter(counter, Calibration(1.3, 2))
    messages = [Message(role="user", parts=(Text("What is in /srv/app/module_7.py?"),))] * 7
    tools = [{"name": "run", "description": "Runs it."}]
    whole = sum(counter.message(message) for message in messages)
    assert sum(calibrated.message(message) for message in messages) >= 1.3 * whole
    assert calibrated.text("one two three") >= 1.3 * counter.text("one two three")
    assert calibrated.part(Text("one two three")) >= 1.3 * counter.part(Text("one two three"))
    assert calibrated.tools(tools) >= 1.3 * counter.tools(tools)
