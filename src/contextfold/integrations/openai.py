"""OpenAI's SDK, and everything that speaks its language: Chat Completions and Responses with a compaction around them.

    from contextfold.integrations.openai import with_compaction

    create = with_compaction(client.chat.completions.create, compactor)
    response = create(model="gpt-5", messages=history)

What belongs here: the names of arguments. What does not: all else (``wrapping``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from contextfold.compactor import Compactor
from contextfold.formats.openai_responses import is_reference
from contextfold.integrations.wrapping import (
    Dialect,
    Method,
    WithCompaction,
    refuse_other_sdks,
    refuse_what_sends_nothing,
)
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration

__all__ = ["with_compaction"]

CHAT = Dialect(
    format="openai-chat",
    messages="messages",
    system=None,
    answer_limits=("max_tokens", "max_completion_tokens"),
)
RESPONSES = Dialect(
    format="openai-responses",
    messages="input",
    system="instructions",
    answer_limits=("max_output_tokens",),
    elsewhere=("previous_response_id", "conversation"),
)
BY_REFERENCE = replace(RESPONSES, elsewhere=("input",))
"""Items of the input stand for others that the provider keeps."""


def with_compaction(
    method: Method,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> WithCompaction[Method]:
    """The same method, for one conversation, that never ends in "prompt too long".

    Args:
        method: ``client.chat.completions.create`` or ``client.responses.create`` (or their ``stream`` and ``parse``),
            of a sync or an async client. Plain and with ``stream=True``.
        compactor: may serve any number of conversations.
        previous, calibration: of this conversation, where it was stored.

    A Responses request that leaves the conversation to the provider (``previous_response_id``, ``conversation``, items
    of the type ``item_reference``) goes through as it is: there is nothing here to compact.
    """
    refuse_other_sdks(method, "openai")
    refuse_what_sends_nothing(
        method,
        "openai",
        r"\.(chat\.completions(\.completions)?|responses(\.responses)?)\.(create|stream|parse)$",
        "give client.chat.completions.create or client.responses.create, or their stream and parse",
    )
    return WithCompaction(method, compactor, _dialect, previous=previous, calibration=calibration)


def _dialect(arguments: Mapping[str, Any]) -> Dialect:
    if "messages" in arguments:
        return CHAT
    said = arguments.get(RESPONSES.messages)
    return BY_REFERENCE if isinstance(said, list | tuple) and any(map(is_reference, said)) else RESPONSES
