"""Anthropic's SDK: Messages with a compaction around them.

    from contextfold.integrations.anthropic import with_compaction

    create = with_compaction(client.messages.create, compactor)
    response = create(model="claude-sonnet-4-5", max_tokens=4_096, messages=history)

What belongs here: the names of arguments. What does not: all else (``wrapping``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from contextfold.compactor import Compactor
from contextfold.integrations.wrapping import Dialect, WithCompaction
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration

__all__ = ["with_compaction"]

P = ParamSpec("P")
R = TypeVar("R")

MESSAGES = Dialect(format="anthropic", messages="messages", system="system", answer_limits=("max_tokens",))


def with_compaction(
    method: Callable[P, R],
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> WithCompaction[P, R]:
    """The same method, for one conversation, that never ends in "prompt is too long".

    Args:
        method: ``client.messages.create`` (plain or with ``stream=True``) or ``client.messages.stream``, of a sync or
            an async client.
        compactor: may serve any number of conversations.
        previous, calibration: of this conversation, where it was stored.
    """
    return WithCompaction(method, compactor, _dialect, previous=previous, calibration=calibration)


def _dialect(arguments: Mapping[str, Any]) -> Dialect:
    return MESSAGES
