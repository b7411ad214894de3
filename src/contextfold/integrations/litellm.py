"""LiteLLM: ``completion`` and ``acompletion`` with a compaction around them, for any of its providers.

    from contextfold.integrations.litellm import with_compaction

    completion = with_compaction(litellm.completion, compactor)
    response = completion(model="openai/gpt-5", messages=history)

What belongs here: LiteLLM's two positional arguments, and streams that cannot be closed as those of other SDKs are.
What does not: all else (``wrapping``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from contextfold.calls.thinking import IS_CLAUDE
from contextfold.compactor import Compactor
from contextfold.errors import InputError, shown
from contextfold.integrations.given import filled
from contextfold.integrations.wrapping import Dialect, Method, WithCompaction, is_async, refuse_what_sends_nothing
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration

__all__ = ["with_compaction"]

COMPLETION = Dialect(
    format="openai-chat", messages="messages", system=None, answer_limits=("max_tokens", "max_completion_tokens")
)

BY_PLACE = ("model", "messages")
"""What LiteLLM takes by place, too."""


def with_compaction(
    method: Method,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> WithCompaction[Method]:
    """The same function, for one conversation, that never ends in ``ContextWindowExceededError``.

    Args:
        method: ``litellm.completion`` or ``litellm.acompletion``, or that of a ``Router``. Plain and with
            ``stream=True``.
        compactor: may serve any number of conversations.
        previous, calibration: of this conversation, where it was stored.

    Raises ``ImportError``, which names the extra, where LiteLLM is not installed, and ``InputError`` for what cannot
    be called.
    """
    if find_spec("litellm") is None:
        raise ImportError(
            "contextfold.integrations.litellm needs litellm, which is not installed: pip install 'contextfold[litellm]'"
        )
    if not callable(method):
        raise InputError(f"with_compaction takes litellm.completion or litellm.acompletion, not {shown(method)}")
    refuse_what_sends_nothing(
        method,
        "litellm",
        r"\.a?completion$",
        "give litellm.completion or litellm.acompletion, or that of a Router: they ask any model",
    )
    return _Conversation(
        method,
        compactor,
        lambda _: COMPLETION,
        previous=previous,
        calibration=calibration,
        adjust=_as_written,
        by_place=BY_PLACE,
        through=lambda inner: _async_closable(inner) if is_async(inner) else _closable(inner),
    )


class _Conversation(WithCompaction[Method]):
    """``WithCompaction`` that takes the model and the messages by place, too."""

    def called(self, args: tuple[Any, ...], arguments: dict[str, Any]) -> Any:
        free = [name for name in BY_PLACE if name not in self._given]
        by_place = dict(zip(free, args, strict=False))
        if len(args) > len(by_place):
            raise InputError("give all arguments behind the model and the messages by name")
        given: dict[str, Any] = {**self._given, **by_place, **arguments}
        if (thinking := _thinking(given)) is not None:
            given["thinking"] = thinking
        return self.asend(given) if is_async(self._method) else self.send(given)


class _Unchanged(dict[str, Any]):
    """``thinking`` beside an effort, until another one takes its place. ``of_effort``: the caller wrote none, and this
    is what LiteLLM makes of the effort.
    """

    of_effort = False


def _thinking(given: Mapping[str, Any]) -> _Unchanged | None:
    """The thinking that a request with an effort asks for, which has to fit beside the view; None where there is none.

    For Claude's models that think with a budget, LiteLLM makes one of the effort.
    """
    effort, model, own = (given.get(name) for name in ("reasoning_effort", "model", "thinking"))
    if isinstance(own, Mapping) and effort is not None:
        return _Unchanged(own)
    if not isinstance(effort, str) or own is not None or not IS_CLAUDE.search(str(model)):
        return None
    import litellm

    try:
        name, provider, *_ = litellm.get_llm_provider(str(model), custom_llm_provider=given.get("custom_llm_provider"))
        asked = litellm.get_optional_params(model=name, custom_llm_provider=provider, reasoning_effort=effort)
    except Exception:  # noqa: BLE001 - of a router's names it knows none; what it takes amiss, it says of the call itself
        return None
    thinking = asked.get("thinking")
    if not isinstance(thinking, Mapping) or "budget_tokens" not in thinking:
        return None
    made = _Unchanged(thinking)
    made.of_effort = True
    return made


def _as_written(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the caller wrote them, or without the effort, where thinking had to be changed."""
    thinking = arguments.get("thinking")
    if isinstance(thinking, _Unchanged):
        left_out = "thinking" if thinking.of_effort else None
    else:
        left_out = "reasoning_effort" if thinking is not None else None
    return {name: value for name, value in arguments.items() if name != left_out}


def _closable(method: Callable[..., Any]) -> Callable[..., Any]:
    def send(**arguments: Any) -> Any:
        response = method(**arguments)
        return _Stream(response) if hasattr(response, "__next__") else response

    return send


def _async_closable(method: Callable[..., Any]) -> Callable[..., Any]:
    async def send(**arguments: Any) -> Any:
        response = await method(**arguments)
        return _AsyncStream(response) if hasattr(response, "__anext__") else response

    return send


class _Handed:
    """LiteLLM's stream: what it knows of itself stays in reach."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property  # type: ignore[misc]  # what isinstance asks: callers tell a stream from a response by LiteLLM's class
    def __class__(self) -> Any:
        return type(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(filled(self, "_stream", name), name)


class _Stream(_Handed):
    """A stream of ``completion`` that can be closed."""

    def __next__(self) -> Any:
        return next(self._stream)

    def close(self) -> None:
        """Release the connection, where the provider's stream lets it be released."""
        if callable(close := getattr(getattr(self._stream, "completion_stream", None), "close", None)):
            close()


class _AsyncStream(_Handed):
    """A stream of ``acompletion`` that can be closed."""

    async def __anext__(self) -> Any:
        return await self._stream.__anext__()

    async def close(self) -> None:
        """Release the connection, where the provider's stream lets it be released."""
        inner = getattr(self._stream, "completion_stream", None)
        close = getattr(inner, "aclose", None) or getattr(inner, "close", None)
        closed = close() if callable(close) else None
        if inspect.isawaitable(closed):
            await closed
