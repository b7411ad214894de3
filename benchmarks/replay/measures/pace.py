"""How long a strategy itself takes for a call. The summarizer's time and the adapter's are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.replay.measure import Column, Number, Step
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy


class Pace:
    """Milliseconds of every call: samples, because they differ from run to run."""

    columns: ClassVar[Sequence[Column]] = ()

    def __init__(self, recording: Recording, window: int) -> None:
        self._milliseconds: list[float] = []

    def step(self, step: Step) -> None:
        self._milliseconds.append(round(step.seconds * 1_000, 3))

    def result(self, strategy: Strategy) -> dict[str, Number]:
        return {}

    def times(self, strategy: Strategy) -> dict[str, list[float]]:
        return {"milliseconds": self._milliseconds}
