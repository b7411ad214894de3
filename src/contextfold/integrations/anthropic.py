"""Anthropic's SDK: Messages with a compaction around them.

    from contextfold.integrations.anthropic import with_compaction

    create = with_compaction(client.messages.create, compactor)
    response = create(model="claude-sonnet-4-5", max_tokens=4_096, messages=history)

What belongs here: the names of arguments. What does not: all else (``wrapping``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from contextfold.compactor import Compactor
from contextfold.errors import InputError
from contextfold.integrations.wrapping import (
    Dialect,
    Method,
    WithCompaction,
    refuse_other_sdks,
    refuse_what_sends_nothing,
    stands_for,
    with_body,
)
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration

__all__ = ["with_compaction"]

MESSAGES = Dialect(format="anthropic", messages="messages", system="system", answer_limits=("max_tokens",))
IN_A_THREAD = replace(MESSAGES, elsewhere=("thread",))
"""Of a request that goes on in a thread, the provider has the beginning."""


def with_compaction(
    method: Method,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
    drop_block: bool = False,
) -> WithCompaction[Method]:
    """The same method, for one conversation, that never ends in "prompt is too long".

    Args:
        method: ``client.messages.create`` (plain or with ``stream=True``) or ``client.messages.stream``, of a sync or
            an async client.
        compactor: may serve any number of conversations.
        previous, calibration: of this conversation, where it was stored.
        drop_block: where thinking is asked for, have the server drop what is not bound to this conversation any more
            instead of refusing it: beta ``thinking-binding-controls-2026-08-01``. Without it, a pass leaves out such
            thinking by itself, and a refusal is answered once without any.
    """
    refuse_other_sdks(method, "anthropic")
    if stands_for(method, "tool_runner"):  # it sends one request after the other, and is called once
        raise InputError(
            "tool_runner makes its requests by itself, and none of them would be compacted: put the compaction around "
            "the method that it sends them with, as in client.beta.messages.create = "
            "with_compaction(client.beta.messages.create, compactor), or parse in older releases of the SDK, and give "
            "tool_runner thread=False, where it has that argument"
        )
    refuse_what_sends_nothing(
        method,
        "anthropic",
        r"[._]messages\.(create|stream|parse)$",
        "give client.messages.create or client.messages.stream, or those of client.beta.messages",
    )
    adjust = _dropping if drop_block else dict
    return WithCompaction(method, compactor, _dialect, previous=previous, calibration=calibration, adjust=adjust)


BETA = "thinking-binding-controls-2026-08-01"


def _dropping(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a request, asking the server to drop thinking that another prefix stood before."""
    thinking = arguments.get("thinking")
    if not isinstance(thinking, Mapping):
        return arguments
    headers = dict(arguments.get("extra_headers") or {})
    given = next((name for name in headers if name.lower() == "anthropic-beta"), "anthropic-beta")
    headers[given] = ",".join(dict.fromkeys([*filter(None, headers.get(given, "").split(",")), BETA]))
    binding = {"prefix_mismatch_behavior": "drop_block", **(thinking.get("block_binding") or {})}
    return {**arguments, "thinking": {**thinking, "block_binding": binding}, "extra_headers": headers}


def _dialect(arguments: Mapping[str, Any]) -> Dialect:
    thread = with_body(arguments).get("thread")
    return IN_A_THREAD if isinstance(thread, Mapping) and thread.get("type") != "create" else MESSAGES
