"""The correction by a provider's usage (R18): learns from what belongs together, within bounds, and forgets nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.tokens import Calibration
from contextfold.tokens.usage import HIGHEST, LOWEST

TOKENS = st.integers(1, 2_000_000)


def test_nothing_learnt_changes_nothing() -> None:
    assert Calibration().apply(1_234) == 1_234


def test_the_first_usage_is_taken_as_it_is() -> None:
    assert Calibration().learn(1_000, 1_200).apply(500) == 600


@pytest.mark.parametrize(("estimated", "reported"), [(100, None), (100, 0), (100, -5), (0, 100)])
def test_missing_or_zero_usage_is_ignored(estimated: int, reported: int | None) -> None:
    learnt = Calibration().learn(1_000, 900)
    assert learnt.learn(estimated, reported) is learnt


def test_learning_returns_another_value_and_leaves_the_first() -> None:
    first = Calibration()
    assert first.learn(100, 110) != first == Calibration()


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
