"""A summarizer with a small window reads a long history whole, and not much more than once."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.small_summarizers import BOUND, KNOWLEDGE, WINDOWS, made_history, measured  # noqa: E402

from effort import crossed  # noqa: E402


@crossed(window=WINDOWS, knowledge=KNOWLEDGE, seed=(3, 11))
def test_a_long_history_is_read_whole_whatever_is_known_of_the_window(window: int, knowledge: str, seed: int) -> None:
    row = measured("made", made_history(50_000, seed), window, knowledge)
    assert row.outcome == "ok"
    assert row.depth <= 6
    if knowledge == "known":
        assert row.ratio <= BOUND
        assert (row.depth, row.rejected) == (0, 0)
    else:
        assert row.ratio <= 1.3
        assert row.rejected <= 16
