"""Refusals inside of answers that came as a success: routers before several providers begin with 200, and tell in the
body what the provider said.

What belongs here: where answers have them. What does not: events of streams (``integrations.streams``), and what
follows from a refusal (``recovery``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextfold.calls.usage import get
from contextfold.overflow import classify


def refusal_in(response: object) -> dict[str, Any] | None:
    """What a whole answer says against its request, if that is a matter of sizes or shape; all else is the caller's.

    ``{"error": ...}`` of Chat Completions, at the top or in place of the first choice's words, and a failed answer of
    the Responses API. An answer that has words is one, whatever stands beside them.
    """
    try:
        error = get(response, "error") or get(_first(get(response, "choices")), "error")
        if not error or _has_words(response):
            return None
        body = as_mapping(error)
        return body if body and classify(body) is not None else None
    except Exception:  # noqa: BLE001 - an answer that is paid for must not be lost over what stands beside it
        return None


def _has_words(response: object) -> bool:
    message = get(_first(get(response, "choices")), "message")
    said = (get(message, "content"), get(message, "tool_calls"), get(response, "output"), get(response, "content"))
    return any(said)


def _first(values: object) -> Any:
    return values[0] if isinstance(values, list | tuple) and values else None


def as_mapping(value: Any) -> dict[str, Any]:
    """An object of an SDK, a mapping, or a bare text as its message, as a dictionary."""
    if isinstance(value, str):
        return {"message": value} if value else {}
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    return dict(dump(mode="json")) if callable(dump) else {}
