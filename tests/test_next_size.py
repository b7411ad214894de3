"""The size that follows a refusal, as a table."""

from __future__ import annotations

import pytest

from contextfold.overflow import Overflow, next_size
from contextfold.overflow.next_size import room_beside

TABLE = [
    # verdict, sent by our count, window, taken before -> aim at
    (
        "the limit that is named, by the provider's count",
        Overflow("prompt_too_long", 8_000, 10_000),
        5_000,
        64_000,
        0,
        4_000,
    ),
    ("a limit alone", Overflow("prompt_too_long", 8_000), 10_000, 64_000, 0, 8_000),
    ("never nearly what was refused", Overflow("prompt_too_long", 9_950), 10_000, 64_000, 0, 9_000),
    ("never above the window", Overflow("prompt_too_long", 8_000), 10_000, 6_000, 0, 6_000),
    ("no figure: half", Overflow("prompt_too_long"), 10_000, 64_000, 0, 5_000),
    ("no figure: what was taken before", Overflow("prompt_too_long"), 10_000, 64_000, 7_000, 7_000),
    ("no figure: what was taken is no help", Overflow("prompt_too_long"), 10_000, 64_000, 12_000, 5_000),
    (
        "tokens per minute include the answer",
        Overflow("rate_limit_too_small", 30_000, 41_000),
        40_000,
        64_000,
        0,
        29_000,
    ),
    ("an answer larger than the rate", Overflow("rate_limit_too_small", 10_000, 60_000), 40_000, 64_000, 0, 5_000),
    ("a rate nearly as large", Overflow("rate_limit_too_small", 39_900, 41_000), 40_000, 64_000, 0, 36_000),
    ("an answer larger than half", Overflow("rate_limit_too_small", 10_000, 48_000), 40_000, 64_000, 0, 5_000),
    ("counted lighter than here", Overflow("prompt_too_long", 8_000, 9_000), 18_000, 64_000, 0, 8_000),
    ("a limit of nothing", Overflow("prompt_too_long", 0), 4_000, 64_000, 0, 1),
    ("no figure: never above the window", Overflow("prompt_too_long"), 64_000, 20_000, 0, 20_000),
    ("no tokens at all", Overflow("rate_limit_too_small", 0, 41_000), 40_000, 64_000, 0, 1),
]


@pytest.mark.parametrize(
    ("promise", "verdict", "sent", "window", "accepted", "expected"), TABLE, ids=[r[0] for r in TABLE]
)
def test_the_size_follows_from_what_the_refusal_says(
    promise: str, verdict: Overflow, sent: int, window: int, accepted: int, expected: int
) -> None:
    assert next_size(verdict, sent, window, accepted) == expected, promise
    assert next_size(verdict, sent, window, accepted) < sent


@pytest.mark.parametrize(
    ("prompt", "window", "room"), [(5_000, 10_000, 4_900), (9_990, 10_000, 5), (10_000, 10_000, 0)]
)
def test_an_answer_gets_what_a_prompt_leaves_but_for_a_margin(prompt: int, window: int, room: int) -> None:
    """A hundredth of the window, and never more than half of what is left."""
    assert room_beside(prompt, window) == room
