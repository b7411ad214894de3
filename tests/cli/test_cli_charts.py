"""Bars and plots are pure text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.cli.charts import bar, columns, plot


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 80), st.booleans())
def test_a_bar_is_never_empty_and_never_longer_than_its_width(value: int, of: int, width: int, plain: bool) -> None:
    assert 1 <= len(bar(value, of, width, ascii_only=plain)) <= width


@pytest.mark.parametrize(("value", "of"), [(0, 10), (-1, 10), (5, 0)])
def test_nothing_has_no_bar(value: int, of: int) -> None:
    assert bar(value, of, 10) == ""


def test_a_bar_shows_eighths_of_a_cell() -> None:
    assert bar(10, 10, 4) == "████"
    assert bar(5, 10, 3) == "█▌"
    assert bar(10, 10, 4, ascii_only=True) == "####"


@given(st.lists(st.integers(0, 10**6)), st.integers(1, 80))
def test_columns_lose_no_token(sizes: list[int], width: int) -> None:
    found = columns(sizes, width)
    assert sum(found) == sum(sizes)
    assert len(found) == min(width, len(sizes))


@given(st.lists(st.integers(0, 10**6), max_size=80), st.integers(1, 10))
def test_a_plot_has_its_height_and_its_tallest_column_reaches_the_top(values: list[int], height: int) -> None:
    rows = plot(values, height)
    assert len(rows) == height
    assert all(len(row) <= len(values) for row in rows)
    if max(values, default=0) > 0:
        assert rows[0][values.index(max(values))] == "█"


def test_a_plot_can_do_without_blocks() -> None:
    assert plot([1, 2], 2, ascii_only=True) == [" #", "##"]
