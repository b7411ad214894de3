"""How OpenAI, and every server that speaks its API, is asked for a summary: Chat Completions and Responses.

What belongs here: requests, and answers made of whole responses or of the events of a stream. What does not: clients
and keys (``clients``), and when to ask (``asking``). Nothing here imports the SDK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from contextfold.summary.models.errors import AnswerFailed, StreamCut
from contextfold.summary.models.settings import RequestSettings
from contextfold.summary.summarizer import Answer


def chat_request(
    create: Any, settings: RequestSettings, prompt: str, answer_tokens: int, seconds: float | None
) -> partial[Any]:
    """A call of ``chat.completions.create``.

    OpenAI's reasoning models take only ``max_completion_tokens``, many other servers only ``max_tokens``.
    """
    limit = "max_tokens" if settings.is_compatible_server else "max_completion_tokens"
    stream: dict[str, Any] = {"stream": True} if settings.stream else {}
    if settings.stream and "stream_options" not in settings.without:
        stream["stream_options"] = {"include_usage": True}
    return partial(
        create,
        model=settings.model,
        messages=[{"role": "user", "content": prompt}],
        extra_body=settings.body(limit),
        timeout=seconds,
        **stream,
    )


def responses_request(
    create: Any, settings: RequestSettings, prompt: str, answer_tokens: int, seconds: float | None
) -> partial[Any]:
    """A call of ``responses.create``; the provider is asked not to store it."""
    options: dict[str, Any] = {"stream": True} if settings.stream else {}
    if "store" not in settings.without:
        options["store"] = False
    return partial(
        create,
        model=settings.model,
        input=prompt,
        extra_body=settings.body("max_output_tokens"),
        timeout=seconds,
        **options,
    )


@dataclass(slots=True)
class ChatFold:
    """An answer of Chat Completions, from one response or from chunks."""

    _texts: list[str] = field(default_factory=list)
    _finish: str | None = None
    _is_refused: bool = False
    _has_calls: bool = False
    _usage: Any = None

    def add(self, piece: Any) -> str:
        self._usage = getattr(piece, "usage", None) or self._usage
        choices = getattr(piece, "choices", None) or ()  # the last chunk may hold nothing but the usage
        if not choices:
            return ""
        choice = choices[0]
        said = getattr(choice, "delta", None) or getattr(choice, "message", None)
        self._finish = getattr(choice, "finish_reason", None) or self._finish
        self._is_refused = self._is_refused or bool(getattr(said, "refusal", None))
        self._has_calls = self._has_calls or bool(getattr(said, "tool_calls", None))
        text = getattr(said, "content", None) or ""
        self._texts.append(text)
        return text

    def answer(self) -> Answer:
        if self._finish is None:
            raise StreamCut
        read, written = getattr(self._usage, "prompt_tokens", None), getattr(self._usage, "completion_tokens", None)
        finish = "refusal" if self._is_refused else self._finish
        return Answer("".join(self._texts), finish, self._has_calls, read or None, written or None)


@dataclass(slots=True)
class ResponsesFold:
    """An answer of the Responses API, from one response or from events."""

    _texts: list[str] = field(default_factory=list)
    _response: Any = None

    def add(self, piece: Any) -> str:
        kind = getattr(piece, "type", "")
        if kind == "response.output_text.delta":
            self._texts.append(piece.delta)
            return str(piece.delta)
        if kind == "error":
            raise AnswerFailed(str(piece.message), code=piece.code)
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self._response = piece.response
        elif getattr(piece, "object", "") == "response":
            self._response = piece
            self._texts.append(piece.output_text)
            return str(piece.output_text)
        return ""

    def answer(self) -> Answer:
        response = self._response
        if response is None:
            raise StreamCut
        if response.error is not None:
            raise AnswerFailed(str(response.error.message), code=response.error.code)
        outputs = response.output or ()
        content = [part for item in outputs for part in getattr(item, "content", None) or ()]
        finish = "refusal" if any(part.type == "refusal" for part in content) else _finish_of(response)
        usage = response.usage
        return Answer(
            "".join(self._texts),
            finish,
            any(item.type.endswith("_call") for item in outputs),
            getattr(usage, "input_tokens", None) or None,
            getattr(usage, "output_tokens", None) or None,
        )


def _finish_of(response: Any) -> str:
    """The word for how it ended: ``completed``, or what cut it off."""
    details = getattr(response, "incomplete_details", None)
    return str(getattr(details, "reason", None) or response.status or "completed")
