"""How Anthropic is asked for a summary: the Messages API.

What belongs here: requests, and answers made of whole messages or of the events of a stream. What does not: clients and
keys (``clients``), and when to ask (``asking``). Nothing here imports the SDK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from contextfold.summary.models.errors import StreamCut
from contextfold.summary.models.settings import RequestSettings
from contextfold.summary.summarizer import Answer

SMALLEST_LIMIT, LARGEST_LIMIT = 1_024, 4_096
"""Tokens. The API wants a limit for every answer. Without one in the settings it is three times what the prompt asks
for, within these: no model takes less than the larger one as its limit."""


def messages_request(
    create: Any, settings: RequestSettings, prompt: str, answer_tokens: int, seconds: float | None
) -> partial[Any]:
    """A call of ``messages.create``."""
    limit = settings.max_output_tokens or min(LARGEST_LIMIT, max(SMALLEST_LIMIT, 3 * answer_tokens))
    stream = {"stream": True} if settings.stream else {}
    return partial(
        create,
        model=settings.model,
        max_tokens=limit,
        messages=[{"role": "user", "content": prompt}],
        extra_body=settings.body(None),
        timeout=seconds,
        **stream,
    )


@dataclass(slots=True)
class MessagesFold:
    """An answer of the Messages API, from one message or from events."""

    _texts: list[str] = field(default_factory=list)
    _stop: str | None = None
    _has_calls: bool = False
    _read: int | None = None
    _written: int | None = None

    def add(self, piece: Any) -> str:
        match piece.type:
            case "message":
                return self._whole(piece)
            case "message_start":
                self._count(piece.message.usage)
            case "content_block_start":
                self._has_calls = self._has_calls or piece.content_block.type == "tool_use"
            case "content_block_delta" if piece.delta.type == "text_delta":
                self._texts.append(piece.delta.text)
                return str(piece.delta.text)
            case "message_delta":
                self._stop = piece.delta.stop_reason or self._stop
                self._count(piece.usage)
        return ""

    def answer(self) -> Answer:
        if self._stop is None:
            raise StreamCut
        return Answer("".join(self._texts), self._stop, self._has_calls, self._read, self._written)

    def _whole(self, message: Any) -> str:
        text = "".join(block.text for block in message.content if block.type == "text")
        self._texts.append(text)
        self._has_calls = any(block.type == "tool_use" for block in message.content)
        self._stop = message.stop_reason
        self._count(message.usage)
        return text

    def _count(self, usage: Any) -> None:
        # Cached tokens are input too, and told apart from the rest of it.
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self._read = sum(getattr(usage, name, None) or 0 for name in names) or self._read
        self._written = getattr(usage, "output_tokens", None) or self._written
