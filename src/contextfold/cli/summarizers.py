"""The summarizer that the options name.

What belongs here: options in, a summarizer out. What does not: what a name may be (``summary.models``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contextfold.errors import PolicyError

if TYPE_CHECKING:
    from contextfold.settings import Settings
    from contextfold.summary.models import SummaryModel

EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class Named:
    """What was typed for ``--summarizer``, ``--base-url``, and the options that begin with ``--summary-``.

    ``place``: where the name stands, if it was not typed.
    """

    name: str
    base_url: str | None = None
    api: str | None = None
    window: int | None = None
    fallbacks: Sequence[str] = ()
    place: str | None = None

    @classmethod
    def of(cls, typed: str | None, settings: Settings, base_url: str | None, **options: Any) -> Named:
        """The summarizer that was typed, or else the one of the settings."""
        name = typed or (settings.enabled and settings.summary_model) or EXTRACTIVE
        return cls(name, base_url, place=settings.place("model_name") if typed is None else None, **options)

    def summarizer(self) -> SummaryModel | None:
        """The model, or None for the built-in summarizer. Raises ``PolicyError`` that says what is wrong."""
        if self.name != EXTRACTIVE:
            from contextfold.summary.models import SummaryModel

            try:
                return SummaryModel(
                    self.name, base_url=self.base_url, api=self.api, window=self.window, fallbacks=tuple(self.fallbacks)
                )
            except PolicyError as error:
                if self.place is None:
                    raise
                raise PolicyError(f"{self.place}: model_name: {error}") from None
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
