"""What a provider says a request took, as a correction of the estimate (R18).

Belongs here: the arithmetic of the correction. Does not: deciding which usage belongs to which messages. The caller
may only bring figures together that are about the very same messages and tools: the estimate of what was sent, and
the input tokens (cached ones included) that the answer to it reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

LOWEST, HIGHEST = 0.5, 2.0
"""No tokenizer in use differs more from the estimate; what does is about other messages, or a mistake."""

MEMORY = 4
"""The ratio is the mean of the first observations, and from this many on moves by a quarter of each difference."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Reported tokens per estimated token. A value: ``learn`` returns another one, and nothing else is remembered."""

    ratio: float = 1.0
    observations: int = 0

    def learn(self, estimated: int, reported: int | None) -> Calibration:
        """With one more observation. Usage that is missing or zero is no observation, nor is an empty request.

        Both in tokens, of exactly the same messages and tools.
        """
        if not reported or reported <= 0 or estimated <= 0:
            return self
        observed = min(HIGHEST, max(LOWEST, reported / estimated))
        weight = 1 / min(self.observations + 1, MEMORY)
        return Calibration(self.ratio + (observed - self.ratio) * weight, self.observations + 1)

    def apply(self, tokens: int) -> int:
        """Estimated tokens as the provider would count them, rounded up."""
        return ceil(tokens * self.ratio)
