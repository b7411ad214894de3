"""Which of the identifiers that the next answer needs are in the view.

Before each answer the strategy makes its view; the answer that really came names identifiers (paths, URLs, hashes,
dotted, snake and camel names, numbers, ids). Those that the conversation had shown before, outside the system message,
are *needed*. *Hard* are those whose last occurrence lies more than a quarter of the window back, *far* those more than
a whole window back: no tail reaches there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.replay.measure import Column, Number, Step, share_column
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy
from contextfold.inspector.replay import is_found, is_in_context

HARD = 4
"""The window divided by this is the distance from which on a need is hard."""


class Recall:
    """Shares of needed identifiers that are in the view, by how and how far back."""

    columns: ClassVar[Sequence[Column]] = (
        share_column(
            "hard_in_context",
            "hard in context %",
            "Needed identifiers last seen more than a quarter of the window ago that stand in a view which a provider "
            "would take, together with plain words that stood near them in the source.",
            "recall_hard_context",
            "recall_hard",
        ),
        share_column(
            "far_usable",
            "far usable %",
            "Needed identifiers last seen more than a window ago that stand in a view which a provider would take.",
            "recall_far_usable",
            "recall_far",
        ),
        share_column(
            "recall",
            "recall %",
            "Needed identifiers that stand verbatim in the view, whatever its size.",
            "recall_found",
            "recall_needed",
            main=False,
        ),
        share_column(
            "hard_recall",
            "hard recall %",
            "The same for those last seen more than a quarter of the window ago.",
            "recall_hard_found",
            "recall_hard",
            main=False,
        ),
        share_column(
            "hard_usable",
            "hard usable %",
            "The same, where a view over the window or malformed counts as empty.",
            "recall_hard_usable",
            "recall_hard",
            main=False,
        ),
    )

    def __init__(self, recording: Recording, window: int) -> None:
        self._recording = recording
        self._window = window
        names = (
            "needed",
            "found",
            "hard",
            "hard_found",
            "hard_usable",
            "hard_context",
            "far",
            "far_found",
            "far_usable",
        )
        self._totals: dict[str, Number] = {f"recall_{name}": 0 for name in names}

    def step(self, step: Step) -> None:
        known = self._recording.known
        for need in step.needs:
            found = is_found(need, step, known)
            self._add("needed", "found", found)
            if need.distance >= self._window // HARD:
                in_context = found and is_in_context(need, step, known)
                self._add("hard", "hard_found", found)
                self._add("", "hard_usable", found and step.usable)
                self._add("", "hard_context", in_context and step.usable)
            if need.distance >= self._window:
                self._add("far", "far_found", found)
                self._add("", "far_usable", found and step.usable)

    def result(self, strategy: Strategy) -> dict[str, Number]:
        return self._totals

    def _add(self, whole: str, part: str, holds: bool) -> None:
        if whole:
            self._totals[f"recall_{whole}"] += 1
        self._totals[f"recall_{part}"] += holds
