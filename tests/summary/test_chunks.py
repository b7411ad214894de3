"""Packing rendered groups into requests: nothing lost, nothing repeated, nothing too long, sizes even."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.summary.chunks import SEPARATOR, Room, Unit, clip, cut, joined, pack, partition, split


def count(text: str) -> int:
    return math.ceil(len(text) / 4)


LABEL = re.compile(r"^\[part \d+ of \d+[^\n]*\]\n")

texts = st.lists(
    st.sampled_from(["word ", "line\n", "sentence. ", "句子。", "xxxxxxxxxx", "[user]\n", "[result of bash]\n"]),
    max_size=120,
).map("".join)
units = st.lists(texts, max_size=25).map(lambda many: [Unit(text, (n,)) for n, text in enumerate(many)])
rooms = st.builds(Room, st.none() | st.integers(150, 700), st.integers(700, 4_000))


@given(texts, st.builds(Room, st.none() | st.integers(1, 300), st.integers(1, 900)))
def test_pieces_of_a_cut_text_fit_and_joined_are_the_text(text: str, room: Room) -> None:
    pieces = cut(text, room, count)
    assert "".join(pieces) == text
    assert all(room.holds(piece, count) for piece in pieces)


@given(units, rooms)
def test_every_text_is_in_the_chunks_once_and_in_order(many: list[Unit], room: Room) -> None:
    """Without the labels of segments, the chunks read as the units did."""
    chunks = pack(many, room, count)
    together = "".join(LABEL.sub("", part.text) for chunk in chunks for part in chunk)
    assert together == "".join(unit.text for unit in many)
    assert [n for chunk in chunks for part in chunk for n in part.indices] == sorted(
        n for chunk in chunks for part in chunk for n in part.indices
    )
    assert {n for chunk in chunks for part in chunk for n in part.indices} == {n for u in many for n in u.indices}


@given(units, rooms)
def test_no_chunk_exceeds_the_room(many: list[Unit], room: Room) -> None:
    for chunk in pack(many, room, count):
        assert room.holds(SEPARATOR.join(part.text for part in chunk), count)


@given(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=40))
def test_ranges_are_as_few_as_a_greedy_packer_needs_and_no_fuller(loads: list[float]) -> None:
    ranges = partition(loads)
    assert [place for places in ranges for place in places] == list(range(len(loads)))
    greedy, filled = 0, 2.0
    for load in loads:
        greedy, filled = (greedy + 1, load) if filled + load > 1 else (greedy, filled + load)
    assert len(ranges) <= greedy
    assert all(sum(loads[place] for place in places) <= 1.0001 for places in ranges)


def test_chunks_are_of_even_size_so_that_the_last_is_no_scrap() -> None:
    many = [Unit("x" * 400, (n,)) for n in range(11)]
    sizes = [len(chunk) for chunk in pack(many, Room(1_020, 10**6), count)]
    assert sizes == [6, 5]


def test_units_stay_whole_where_they_fit() -> None:
    many = [Unit("a" * 300, (0, 1)), Unit("b" * 300, (2,)), Unit("c" * 300, (3,))]
    assert pack(many, Room(160, 10**6), count) == [(many[0], many[1]), (many[2],)]
    assert pack(many, Room(None, 10**6), count) == [tuple(many)]
    assert pack([], Room(100, 100), count) == []


def test_the_cap_on_characters_holds_where_tokens_are_unknown() -> None:
    chunks = pack([Unit("a" * 3_000, (0,)), Unit("b" * 200, (1,))], Room(None, 1_000), count)
    assert all(len(SEPARATOR.join(part.text for part in chunk)) <= 1_000 for chunk in chunks)


def test_a_long_unit_becomes_segments_that_say_what_they_are_part_of() -> None:
    lines = "".join(f"line {n} of the log\n" for n in range(200))
    unit = Unit(f"[call bash]\n{{}}\n\n[result of bash]\n{lines}", (4, 5))
    segments = split(unit, Room(400, 10**6), count)
    assert len(segments) > 2
    assert all(segment.indices == (4, 5) for segment in segments)
    assert segments[0].text.startswith(f"[part 1 of {len(segments)}]\n[call bash]")
    for number, segment in enumerate(segments[1:], 2):
        assert segment.text.startswith(f"[part {number} of {len(segments)}: result of bash]\nline ")
    assert "".join(LABEL.sub("", segment.text) for segment in segments) == unit.text


def test_a_cut_at_a_heading_needs_no_second_heading() -> None:
    unit = Unit("[user]\n" + "a" * 992 + "\n[assistant]\n" + "b" * 990, (0,))
    second = split(unit, Room(400, 10**6), count)[-1].text
    assert second.startswith("[part ")
    assert "assistant" in second.splitlines()[0] or second.splitlines()[1] == "[assistant]"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("one two three.\n" * 40, "\n"),
        ("A sentence of words. " * 40, ". "),
        ("用户确认无误。" * 60, "。"),
        ("word " * 120, " "),
    ],
)
def test_cuts_fall_at_lines_then_sentences_then_spaces(text: str, end: str) -> None:
    pieces = cut(text, Room(None, 200), count)
    assert all(piece.rstrip(" ").endswith(end.strip(" ")) for piece in pieces[:-1])


def test_joining_units_keeps_their_texts_and_indices() -> None:
    assert joined([Unit("a", (1, 2)), Unit("b", (2, 3))]) == Unit("a\n\nb", (1, 2, 3))


@given(texts, st.integers(0, 200))
def test_clipping_keeps_the_beginning_and_says_how_much_is_gone(text: str, tokens: int) -> None:
    clipped = clip(text, tokens, count)
    assert count(clipped) <= tokens
    if clipped == text or not clipped:
        return
    head, mark = clipped.rsplit("\n", 1)
    assert text.startswith(head)
    assert mark == f"[{len(text) - len(head):,} characters cut]"
