"""How many tokens things have: text, messages, tools, media.

``estimate`` needs no tokenizer; ``TokenCounter`` sizes whole messages with it or with any function; ``Calibration``
corrects it by what a provider reports. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contextfold.errors import InputError, PolicyError
from contextfold.tokens.counter import TokenCounter
from contextfold.tokens.estimate import estimate
from contextfold.tokens.media import rule_of
from contextfold.tokens.tiktoken import tiktoken_counter
from contextfold.tokens.usage import CalibratedCounter, Calibration

__all__ = ["CalibratedCounter", "Calibration", "TokenCounter", "count_tokens", "estimate", "tiktoken_counter"]


def count_tokens(messages: Sequence[Any], model: str | None = None, tools: Sequence[Any] | None = None) -> int:
    """Tokens of messages in any supported format, and of tool declarations.

    With ``model``, by its own tokenizer where that is installed and known; by the estimate otherwise. Raises
    ``InputError`` for messages in no known format.
    """
    from contextfold import formats

    try:
        wire = list(messages)
    except TypeError:
        raise InputError(f"messages must be a list of messages, not {type(messages).__name__}") from None
    format = formats.detect(wire)
    counter = _counter(model, media_rule=rule_of(format.name))
    return sum(counter.message(format.decode(entry, index)) for index, entry in enumerate(wire)) + counter.tools(tools)


def _counter(model: str | None, *, media_rule: Any) -> TokenCounter:
    if model is None:
        return TokenCounter(media_rule=media_rule)
    try:
        return TokenCounter(tiktoken_counter(model), media_rule=media_rule)
    except PolicyError:
        return TokenCounter(media_rule=media_rule)
