"""The summarizer that the options name.

What belongs here: options in, a summarizer out. What does not: what a name may be (``summary.models``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextfold.errors import PolicyError

if TYPE_CHECKING:
    from contextfold.summary.models import SummaryModel

EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class Named:
    """What was typed for ``--summarizer``, ``--base-url``, and the options that begin with ``--summary-``."""

    name: str
    base_url: str | None = None
    api: str | None = None
    window: int | None = None
    fallbacks: Sequence[str] = ()

    def summarizer(self, place: str | None = None) -> SummaryModel | None:
        """The model, or None for the built-in summarizer. Raises ``PolicyError`` that says what is wrong.

        ``place``: where the name stands, if it was not typed.
        """
        if self.name != EXTRACTIVE:
            from contextfold.summary.models import SummaryModel

            try:
                return SummaryModel(
                    self.name, base_url=self.base_url, api=self.api, window=self.window, fallbacks=tuple(self.fallbacks)
                )
            except PolicyError as error:
                if place is None:
                    raise
                raise PolicyError(f"{place}: model_name: {error}") from None
        given = {
            "--base-url": self.base_url,
            "--summary-api": self.api,
            "--summary-window": self.window,
            "--summary-fallback": ", ".join(self.fallbacks) or None,
        }
        for option, value in given.items():
            if value is not None:
                raise PolicyError(
                    f"{option} {value}: the extractive summarizer calls no provider. Leave it out, or name a model "
                    "with --summarizer PROVIDER:MODEL"
                )
        return None
