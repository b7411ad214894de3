"""Replays real conversations through strategies that keep an agent inside its window, and measures what they lose.

    python -m benchmarks.replay --help

No model and no network is involved. ``replay`` is the loop, ``measure`` the interface to what is measured,
``strategies`` are those compared, ``report`` writes ``docs/benchmark.md``.
"""
