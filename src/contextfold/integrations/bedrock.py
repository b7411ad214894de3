"""Amazon Bedrock through boto3: Converse with a compaction around it.

    from contextfold.integrations.bedrock import with_compaction

    converse = with_compaction(client.converse, compactor)
    response = converse(modelId="anthropic.claude-sonnet-4-5", messages=history)

What belongs here: the names of arguments, some of which lie inside others, and the stream, which boto3 puts into a
dictionary. What does not: all else (``wrapping``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from contextfold.compactor import Compactor
from contextfold.errors import InputError, shown
from contextfold.integrations.given import filled, reading
from contextfold.integrations.streams import OpenedStream
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

CONVERSE = Dialect(format="bedrock-converse", messages="messages", system="system", answer_limits=("max_tokens",))


def with_compaction(
    method: Method,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> WithCompaction[Method]:
    """The same method, for one conversation, that never ends in "Input is too long for requested model".

    Args:
        method: ``client.converse`` or ``client.converse_stream`` of a boto3 client for ``bedrock-runtime``. In async
            code, call what comes back in a thread, as you would call boto3.
        compactor: may serve any number of conversations.
        previous, calibration: of this conversation, where it was stored.

    Raises ``ImportError``, which names the extra, where boto3 is not installed, and ``InputError`` for another method.
    """
    if find_spec("boto3") is None:
        raise ImportError(
            "contextfold.integrations.bedrock needs boto3, which is not installed: pip install 'contextfold[bedrock]'"
        )
    if not callable(method):
        raise InputError(f"with_compaction takes client.converse or client.converse_stream, not {shown(method)}")
    refuse_other_sdks(method, "botocore")
    refuse_what_sends_nothing(
        method,
        "botocore",
        r"\.converse(_stream)?$",
        "give client.converse or client.converse_stream, which take the messages of any model",
    )
    return _Conversation(
        method, compactor, lambda _: CONVERSE, previous=previous, calibration=calibration, through=_Method
    )


class _Conversation(WithCompaction[Method]):
    """``WithCompaction`` whose streams come inside a dictionary, as boto3's do."""

    def called(self, args: tuple[Any, ...], arguments: dict[str, Any]) -> Any:
        if args:
            raise InputError("give all arguments by name, as boto3 takes them")
        with reading("the arguments"):
            flat = _flat({**self._given, **arguments})
        answer: Any = self.send(flat)
        # It poses as the stream that it gives. A request that passed as it came has the stream itself.
        if type(answer) in (OpenedStream, _Stream):
            answer = {**answer.response, "stream": answer}
        return answer


class _Method:
    """boto3's method under the names that other SDKs have for its arguments."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__self__ = getattr(method, "__self__", None)
        """The client: it knows its endpoint."""

    def __call__(self, **arguments: Any) -> Any:
        wants_stream = arguments.pop("stream", False)
        response = self._method(**_nested(arguments))
        if not isinstance(response, Mapping) or "stream" not in response:
            return response
        stream = _Stream(response)
        return stream if wants_stream else _folded(stream)


class _Stream:
    """The events of a response, one after the other."""

    def __init__(self, response: Mapping[str, Any]) -> None:
        self.response = response
        self._events: Iterator[Any] = iter(response["stream"])

    @property  # type: ignore[misc]  # what isinstance asks: tracers tell a stream by botocore's class
    def __class__(self) -> Any:
        return type(self.response["stream"])

    def __getattr__(self, name: str) -> Any:
        return getattr(filled(self, "response", name)["stream"], name)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._events)

    def close(self) -> None:
        """Release the connection."""
        self.response["stream"].close()


def _folded(stream: _Stream) -> dict[str, Any]:
    """A stream as the answer that ``converse`` would have given, as far as a summary is concerned: text alone."""
    texts: list[str] = []
    called = False
    answer: dict[str, Any] = {}
    try:
        for event in stream:
            texts.append(event.get("contentBlockDelta", {}).get("delta", {}).get("text", ""))
            called = called or "toolUse" in event.get("contentBlockStart", {}).get("start", {})
            answer.update(event.get("messageStop", {}))
            answer.update(event.get("metadata", {}))
    finally:
        stream.close()
    content: list[Any] = [{"text": "".join(texts)}, *([{"toolUse": {}}] if called else [])]
    return {**answer, "output": {"message": {"role": "assistant", "content": content}}}


_RENAMED = {"modelId": "model", "outputConfig": "response_format"}
_INSIDE = {
    "inferenceConfig": {"max_tokens": "maxTokens", "stop_sequences": "stopSequences"},
    # Claude's: what goes with a view, or asks for a larger window
    "additionalModelRequestFields": {name: name for name in ("thinking", "context_management", "anthropic_beta")},
    "toolConfig": {"tools": "tools", "tool_choice": "toolChoice"},
}
"""By the argument that they lie inside of: how ``wrapping`` calls what it knows, and how Converse does."""


def _flat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under the names that ``wrapping`` knows."""
    flat = {_RENAMED.get(name, name): value for name, value in arguments.items()}
    for outer, names in _INSIDE.items():
        if not isinstance(flat.get(outer), Mapping):
            continue  # what boto3 says to it is the caller's
        rest = dict(flat.pop(outer))
        inside = {new: rest.pop(name) for new, name in names.items() if name in rest}
        flat |= inside
        if rest or not inside:
            flat[outer] = rest
    # A request for a summary leaves `stream` out (`for_summary`), by which `_Method` tells it from the task's own.
    return {**flat, "stream": True}


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse of ``_flat``."""
    known = {new: name for name, new in _RENAMED.items()}
    taken = {new for names in _INSIDE.values() for new in names}
    arguments = {known.get(name, name): value for name, value in flat.items() if name not in taken}
    for outer, names in _INSIDE.items():
        if inside := {name: flat[new] for new, name in names.items() if new in flat}:
            arguments[outer] = {**(arguments.get(outer) or {}), **inside}
    return arguments
