"""Markers: one grammar, counts that add up, and cuts that never fall inside one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tier_inputs import texts, unhurried

from contextfold.tiers.markers import MARKER, UNITS, counts_in, cut, is_shortened, marker, without_markers

counts = st.dictionaries(st.sampled_from(UNITS), st.integers(1, 10**9), min_size=1)


@unhurried
@given(counts)
def test_what_a_marker_says_is_read_back_from_it(said: dict[str, int]) -> None:
    assert dict(counts_in(marker(said))) == said
    assert MARKER.fullmatch(marker(said))


def test_a_marker_speaks_of_one_thing_in_the_singular() -> None:
    assert marker({"lines": 1, "characters": 1_234}) == "…[1 line, 1,234 characters shortened]"
    assert counts_in("…[1 line shortened]") == {"lines": 1}


@pytest.mark.parametrize(
    "text", ["", "nothing", "…[", "…[many lines shortened]", "[3 lines shortened]", "…[3 cows shortened]"]
)
def test_what_is_no_marker_is_not_taken_for_one(text: str) -> None:
    assert not is_shortened(text)
    assert not counts_in(text)
    assert without_markers(text) == text


@unhurried
@given(st.text(alphabet=st.characters(exclude_characters="…"), max_size=500), st.integers(0, 200), st.floats(0, 0.5))
def test_a_cut_text_is_head_and_tail_and_the_count_of_what_is_not_there(text: str, room: int, share: float) -> None:
    """Verbatim, or cut with an explicit marker and count."""
    shorter = cut(text, room, share)
    if len(text) <= room:
        assert shorter is text
        return
    head, tail = MARKER.split(shorter)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert counts_in(shorter) == {"characters": len(text) - len(head) - len(tail)}
    assert len(shorter) <= max(room, len(marker({"characters": len(text)})))


@unhurried
@given(texts(most=1_500), st.lists(st.tuples(st.integers(0, 700), st.floats(0, 0.5)), min_size=1, max_size=4))
def test_cutting_again_adds_up_and_leaves_no_broken_marker(text: str, cuts: list[tuple[int, float]]) -> None:
    """Markers are neither nested nor cut, and every character is there or counted."""
    shorter = text
    for room, share in cuts:
        shorter = cut(shorter, room, share)
    before, after = counts_in(text), counts_in(shorter)
    there = len(without_markers(text)) + before["characters"]
    assert len(without_markers(shorter)) + after["characters"] == there
    assert after["lines"] == before["lines"]
    assert without_markers(shorter).count("shortened]") <= without_markers(text).count("shortened]")


def test_a_text_of_lines_is_cut_at_the_ends_of_lines() -> None:
    text = "".join(f"line number {index}\n" for index in range(100))
    shorter = cut(text, 200, 0.3)
    assert re.fullmatch(r"(?:line number \d+\n)+…\[[\d,]+ characters shortened\](?:line number \d+\n)+", shorter)


def test_a_marker_stands_alone_where_nothing_else_has_room() -> None:
    assert cut("x" * 100, 3) == "…[100 characters shortened]"


@pytest.mark.parametrize("digits", ["9" * 5_000, "9" + ",999" * 1_500, "9" * 18, "999" + ",999" * 5])
def test_a_stranger_may_write_any_number_where_a_marker_counts(digits: str) -> None:
    """Python reads no number of thousands of digits; what is cut is cut all the same, and what is written is read."""
    text = f"head {'x' * 90} …[{digits} lines shortened] {'x' * 9_000} …[{digits} lines shortened] tail"
    for room in (0, 40, 400):
        shorter = cut(text, room, 0.25)
        assert len(shorter) <= max(room, 80)
        assert is_shortened(shorter)
        assert cut(shorter, max(room, 80)) == shorter
        assert counts_in(shorter)["characters"] > 8_000


def test_a_cut_beside_a_marker_leaves_one_marker_with_the_sum() -> None:
    for text in (marker({"characters": 1_234}) + "x" * 500, "x" * 500 + marker({"characters": 1_234})):
        for room in range(40, 140):
            shorter = cut(text, room, 0.5)
            assert "]…[" not in shorter
            assert counts_in(shorter)["characters"] + len(without_markers(shorter)) == 1_734
