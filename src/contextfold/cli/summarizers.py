"""The summarizer that the options name.

What belongs here: options in, a summarizer out. What does not: what a name may be (``summary.models``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contextfold.errors import PolicyError

if TYPE_CHECKING:
    from contextfold.settings import Settings
    from contextfold.summary.models import SummaryModel

EXTRACTIVE = "extractive"

_TYPED = {
    "base_url is": "--base-url is",
    "api is": "--summary-api is",
    "window is": "--summary-window is",
    "with a base_url": "with --base-url",
    ", or pass client=": "",
}
"""What errors of ``SummaryModel`` say of its arguments, and what someone who typed a command reads in its place."""


@dataclass(frozen=True, slots=True)
class Named:
    """What was typed for ``--summarizer``, ``--base-url``, and the options that begin with ``--summary-``.

    ``place``: where the name stands, if it was not typed. ``others``: the names that are no model's.
    """

    name: str
    base_url: str | None = None
    api: str | None = None
    window: int | None = None
    fallbacks: Sequence[str] = ()
    place: str | None = None
    others: Sequence[str] = (EXTRACTIVE,)

    @classmethod
    def of(cls, typed: str | None, settings: Settings, base_url: str | None, **options: Any) -> Named:
        """The summarizer that was typed, or else the one of the settings."""
        name = typed or (settings.enabled and settings.summary_model) or EXTRACTIVE
        return cls(name, base_url, place=settings.place("model_name") if typed is None else None, **options)

    def _model(self, option: str, name: str, **options: Any) -> SummaryModel:
        """The model of this name. Errors name an option as it was typed, not the argument that it becomes."""
        from contextfold.summary.models import SummaryModel

        try:
            return SummaryModel(name, **options)
        except PolicyError as error:
            said = str(error).replace("there are openai:", f"there are {', '.join(self.others)}, openai:")
            for argument, typed in _TYPED.items():
                said = said.replace(argument, typed)
            if self.place is not None:
                raise PolicyError(f"{self.place}: model_name: {said}") from None
            raise PolicyError(re.sub(r"^summarizer\b", option, said)) from None

    def summarizer(self) -> SummaryModel | None:
        """The model, or None for the built-in summarizer. Raises ``PolicyError`` that says what is wrong."""
        if self.name != EXTRACTIVE:
            options = {"base_url": self.base_url, "api": self.api, "window": self.window}
            model = self._model("--summarizer", self.name, **options, fallbacks=tuple(self.fallbacks))
            for fallback in self.fallbacks:
                self._model("--summary-fallback", fallback)
            return model
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
