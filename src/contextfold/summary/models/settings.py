"""What a request to a model says besides the prompt.

What belongs here: the settings of one model, as its requests need them. What does not: what users write (``model``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """``model`` is the provider's own name. ``is_compatible_server``: it speaks the API, and is not its maker's."""

    model: str
    temperature: float | None = None
    max_output_tokens: int | None = None
    stream: bool = True
    is_compatible_server: bool = False

    def body(self, limit_name: str | None) -> dict[str, Any]:
        """Optional fields of a request. They go into its body as they are, because SDKs of different age know
        different ones; ``limit_name`` is what the API calls the limit of the answer, None if that is set elsewhere.
        """
        body: dict[str, Any] = {}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if limit_name is not None and self.max_output_tokens is not None:
            body[limit_name] = self.max_output_tokens
        return body
