"""What a provider says a request took, as a correction of the estimate.

Belongs here: the arithmetic of the correction, and a counter that applies it. Does not: deciding which usage belongs to
which messages. The caller may only bring figures together that are about the very same messages and tools: the estimate
of what was sent, and the input tokens (cached ones included) that the answer to it reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from contextfold.errors import InputError, shown
from contextfold.messages import Message, Part
from contextfold.tokens.counter import TokenCounter

LOWEST, HIGHEST = 0.5, 2.0
"""No tokenizer in use differs more from the estimate; what does is about other messages, or a mistake."""

SMALLEST = 500
"""Tokens. In a smaller request what the provider puts around messages weighs more than the messages: it tells nothing
about longer ones."""

MEMORY = 4
"""The ratio is the mean of the first observations, and from this many on moves by a quarter of each difference."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Reported tokens per estimated token. A value: ``learn`` returns another one, and nothing else is remembered.

    Raises ``InputError`` for figures that ``learn`` cannot have made, such as damaged ones from a store.
    """

    ratio: float = 1.0
    observations: int = 0

    def __post_init__(self) -> None:
        is_figures = isinstance(self.ratio, int | float) and isinstance(self.observations, int)
        if not (is_figures and LOWEST <= self.ratio <= HIGHEST and self.observations >= 0):
            raise InputError(
                f"a calibration has a ratio from {LOWEST} to {HIGHEST} and 0 or more observations, "
                f"not {shown(self.ratio)} and {shown(self.observations)}"
            )

    def learn(self, estimated: int, reported: int | None) -> Calibration:
        """With one more observation. Missing or zero usage is none, nor is what is no whole number, nor that of a
        request below ``SMALLEST``.

        Both in tokens, of exactly the same messages and tools.
        """
        if not isinstance(reported, int) or reported <= 0 or estimated < SMALLEST:
            return self
        # compared before it is divided: a provider's JSON can hold a number that no float is as large as
        observed = HIGHEST if reported >= HIGHEST * estimated else max(LOWEST, reported / estimated)
        weight = 1 / min(self.observations + 1, MEMORY)
        return Calibration(self.ratio + (observed - self.ratio) * weight, self.observations + 1)

    def apply(self, tokens: int) -> int:
        """Estimated tokens as the provider would count them, rounded up."""
        return ceil(tokens * self.ratio)


class CalibratedCounter(TokenCounter):
    """A counter whose every answer is corrected. Each is rounded up, so a sum is never below the corrected sum."""

    def __init__(self, counter: TokenCounter, calibration: Calibration) -> None:
        self._counter = counter
        self._calibration = calibration

    def text(self, text: str) -> int:
        return self._calibration.apply(self._counter.text(text))

    def part(self, part: Part) -> int:
        return self._calibration.apply(self._counter.part(part))

    def message(self, message: Message) -> int:
        return self._calibration.apply(self._counter.message(message))

    def messages(self, messages: Sequence[Message]) -> list[int]:
        return list(map(self._calibration.apply, self._counter.messages(messages)))

    def tools(self, tools: Sequence[Any] | None) -> int:
        return self._calibration.apply(self._counter.tools(tools))
