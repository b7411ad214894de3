"""What a request to a model says besides the prompt.

What belongs here: the settings of one model, as its requests need them, and reading out of a refusal which of them the
model does not take. What does not: what users write (``model``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from contextfold.overflow import classify
from contextfold.overflow.text import read_exception

OPTIONAL = ("temperature", "max_completion_tokens", "max_tokens", "max_output_tokens", "stream_options", "store")
"""Fields that a request can do without, or under another name."""

OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""What else Chat Completions calls the limit of an answer: older models and servers take one, newer ones the other."""

_INVALID_REQUEST = frozenset({400, 422})
_NOT_TAKEN = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|recogni[sz]ed|accepted|available)|unrecogni[sz]ed|unknown"
    r"|unexpected|does(?: not|nt) (?:support|accept|allow)|extra (?:inputs?|fields?)|deprecated|cannot be (?:set|used)"
    r"|only (?:the default|\d[\d.]* is) |不支持|不允许"
)
_TOO_LARGE = re.compile(r"too (?:large|big|high)|at most|exceed|less than|greater than|maximum (?:value|allowed)")


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """``model`` is the provider's own name. ``is_compatible_server``: it speaks the API, and is not its maker's.

    ``without``: fields of ``OPTIONAL`` that the model refused.
    """

    model: str
    temperature: float | None = None
    max_output_tokens: int | None = None
    stream: bool = True
    is_compatible_server: bool = False
    without: frozenset[str] = frozenset()

    def body(self, limit_name: str | None) -> dict[str, Any]:
        """Optional fields of a request. They go into its body as they are, because SDKs of different age know
        different ones; ``limit_name`` is what the API calls the limit of the answer, None if that is set elsewhere.
        """
        if limit_name in self.without:
            limit_name = OTHER_NAME.get(limit_name)
        wanted = {"temperature": self.temperature}
        if limit_name is not None:
            wanted[limit_name] = self.max_output_tokens
        return {name: value for name, value in wanted.items() if value is not None and name not in self.without}


def refused_field(error: BaseException) -> str | None:
    """The optional field that a request was refused for, by name; None for any other failure.

    A value that is too large is no such thing: without the field, the caller's own limit would be gone.
    """
    said = read_exception(error)
    if not _INVALID_REQUEST.intersection(said.statuses) or classify(error) is not None:
        return None
    if not (_NOT_TAKEN.search(said.text) or any(code.startswith("unsupported") for code in said.codes)):
        return None
    if _TOO_LARGE.search(said.text):
        return None
    ends = {name.rpartition(".")[2] for name in said.fields}  # of body.store what follows body
    named = [name for name in OPTIONAL if name in ends]
    places = [(found.start(), name) for name in OPTIONAL if (found := re.search(rf"\b{name}\b", said.text))]
    return named[0] if named else min(places, default=(0, None))[1]
