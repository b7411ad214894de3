"""Google's SDK: Gemini with a compaction around it.

    from contextfold.integrations.google_genai import with_compaction

    client = with_compaction(genai.Client(), compactor)
    response = client.models.generate_content(model="gemini-2.5-flash", contents=history)

Every way to ask a model (plain, as a stream, in a chat, in the SDK's own loop over functions) ends in one of two
methods of ``client.models``, so these two are replaced: each request of a loop is compacted by itself, and a refusal is
answered without running any function twice.

What belongs here: where the SDK keeps what matters. What does not: all else (``wrapping``). The SDK is only imported to
read contents that are no contents yet, such as a bare text.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from contextfold.compactor import CompactionResult, Compactor
from contextfold.errors import InputError
from contextfold.formats import gemini_shapes as shapes
from contextfold.integrations.given import checked_compactor, filled, reading
from contextfold.integrations.streams import Generated
from contextfold.integrations.wrapping import NOT_SENT, Dialect, Method, WithCompaction, unbound
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.chats import AsyncChat, AsyncChats, Chat, Chats
    from google.genai.client import AsyncClient

__all__ = ["with_compaction"]

CONTENTS = Dialect(
    format="gemini",
    messages="contents",
    system="system_instruction",
    answer_limits=("max_output_tokens",),
    goes_on="continuation_token",
)

_OF_THE_TASK = (
    *("tools", "tool_config", "response_schema", "response_json_schema", "response_mime_type"),
    "cached_content",  # holds instructions and tools of the task, and what was said before
)
"""Settings that shape an answer to the task, and no summary."""
_NOT_FOR_A_SUMMARY = {
    "n": "candidate_count",
    "stop_sequences": "stop_sequences",
    "modalities": "response_modalities",
    "audio": "speech_config",
}
"""Settings by the names under which a request for a summary leaves them out, and by those inside ``config``."""


@overload
def with_compaction(
    target: Client,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> _CompactedClient: ...
@overload
def with_compaction(
    target: AsyncClient,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> _CompactedAsyncClient: ...
@overload
def with_compaction(
    target: Chat,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> _CompactedChat: ...
@overload
def with_compaction(
    target: AsyncChat,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> _CompactedAsyncChat: ...
@overload
def with_compaction(
    target: Method,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> WithCompaction[Method]: ...
def with_compaction(
    target: Any,
    compactor: Compactor,
    *,
    previous: Compaction | None = None,
    calibration: Calibration | None = None,
) -> Any:
    """The same client, chat or method, for one conversation, that never ends in "input token count exceeds".

    Args:
        target: a ``google.genai.Client`` (or its ``aio``), a chat of ``client.chats.create``, or a method:
            ``client.models.generate_content`` or ``generate_content_stream``, of a sync or an async client. It is not
            changed: what is returned is used in its place. Chats that a wrapped client creates are conversations of
            their own.
        compactor: may serve any number of conversations.
        previous, calibration: of this conversation, where it was stored.

    What is returned has ``compaction``, ``calibration`` and ``result`` as ``WithCompaction`` does: store the first two
    with the conversation. Pass the full history every time; a chat does so by itself.

    Raises ``InputError`` for anything else than these.
    """
    checked_compactor(compactor)
    with reading("what is to be wrapped"):
        return _wrapped(target, compactor, previous, calibration)


def _wrapped(target: Any, compactor: Compactor, previous: Compaction | None, calibration: Calibration | None) -> Any:
    name = type(target).__name__
    made: Any
    inner, given = unbound(target) if isinstance(target, partial) else (target, {})
    if callable(owner := getattr(inner, "__self__", None)) or hasattr(owner, "generate_content"):
        method = getattr(inner, "__name__", "")
        if method not in ("generate_content", "generate_content_stream"):
            raise InputError(f"{method} of google.genai sends no conversation: {_REMEDY}")
        state = _Conversation(owner, compactor, previous, calibration)
        ask = getattr(state.models, method)
        made = _Stood(target, state, partial(ask, **given) if given else ask)
    elif hasattr(target, "send_message") and hasattr(target, "_modules"):
        state = _Conversation(target._modules, compactor, previous, calibration)
        chat = copy.copy(target)
        chat._modules = state.models
        made = _Stood(target, state, chat)
    elif hasattr(target, "models") and hasattr(target, "chats"):
        made = _Client(target, compactor, previous, calibration)
    else:
        raise InputError(f"{name} is nothing of google.genai that sends a conversation: {_REMEDY}")
    return made


_REMEDY = "give a Client, a chat, or the method models.generate_content or models.generate_content_stream"


class _Requests:
    """The one method that ``WithCompaction`` knows: arguments side by side, instead of inside ``config``."""

    __name__ = "generate_content"

    def __init__(self, models: Any) -> None:
        # where `endpoint_of` and `is_async` look
        self.__self__ = models
        self._whole = models._generate_content
        self._stream = models._generate_content_stream

    def __call__(self, *, model: str, contents: Any, config: Any = None, stream: bool = False, **given: Any) -> Any:
        method = self._stream if stream else self._whole
        with reading("config"):
            changed = _config(config, given)
        answer = method(model=model, contents=contents, config=changed)
        return _awaited_stream(answer) if stream and hasattr(answer, "__await__") else answer


async def _awaited_stream(answer: Any) -> Generated:
    return Generated(await answer)


def _arguments(model: str, contents: Any, config: Any, *, stream: bool) -> dict[str, Any]:
    """A request as ``_Requests`` takes it. What is inside ``config`` is only looked at, and goes out as it came."""
    given: dict[str, Any] = {"stream": True} if stream else {}
    return {
        "model": model,
        "contents": contents if isinstance(contents, str | list | tuple | Iterator) else [contents],
        "config": config,
        "system_instruction": system_text(shapes.get(config, "system_instruction")),
        "tools": declared(shapes.get(config, "tools")),
        "max_output_tokens": shapes.get(config, "max_output_tokens"),
        "continuation_token": shapes.get(config, "continuation_token"),
        **dict.fromkeys(_NOT_FOR_A_SUMMARY, True),
        **given,
    }


def _config(config: Any, given: Mapping[str, Any]) -> Any:
    """The settings of a request, without what was left out and with another answer limit if there is one."""
    changed: dict[str, Any] = {}
    if "tools" not in given:
        changed |= {name: None for name in _OF_THE_TASK if shapes.get(config, name) is not None}
    changed |= {
        name: None
        for other, name in _NOT_FOR_A_SUMMARY.items()
        if other not in given and shapes.get(config, name) is not None
    }
    if "system_instruction" not in given and shapes.get(config, "system_instruction") is not None:
        changed["system_instruction"] = None
    limit = given.get("max_output_tokens")
    if limit is not None and limit != shapes.get(config, "max_output_tokens"):
        changed["max_output_tokens"] = limit
    if not changed:
        return config
    return shapes.changed({} if config is None else config, **changed)


def system_text(instruction: Any) -> str | None:
    """A system instruction as text: a string, a content, a part, or a list of these."""
    if instruction is None or isinstance(instruction, str):
        return instruction
    if isinstance(instruction, list | tuple):
        return "\n".join(filter(None, map(system_text, instruction))) or None
    parts = shapes.get(instruction, "parts")
    return system_text(parts) if parts is not None else shapes.get(instruction, "text")


def declared(tools: Any) -> list[Any] | None:
    """Tool declarations to be counted: the SDK's objects as their JSON, functions as they are."""
    if not isinstance(tools, list | tuple) or not tools:
        return None
    return [shapes.plain(tool) if shapes.is_object(tool) else tool for tool in tools]


class _Conversation(WithCompaction[Any]):
    """The state of one conversation, and ``models``: a copy of the SDK's whose requests go through it."""

    def __init__(
        self, models: Any, compactor: Compactor, previous: Compaction | None, calibration: Calibration | None
    ) -> None:
        super().__init__(
            _Requests(models), compactor, lambda arguments: CONTENTS, previous=previous, calibration=calibration
        )
        self.models = copy.copy(models)
        is_async = type(models).__name__.startswith("Async")
        self.models._generate_content = self._later(stream=False) if is_async else self._now(stream=False)
        self.models._generate_content_stream = self._later(stream=True) if is_async else self._now(stream=True)

    def conversation(self, messages: Any) -> list[Any]:
        """The contents as they are; a text, parts and the like as the contents that the SDK makes of them."""
        given = list(messages) if isinstance(messages, list | tuple) else None
        if given is not None and all(_is_content(entry) for entry in given):
            return given
        # The SDK's own, though private: what it makes of a bare text must be what it would have sent.
        from google.genai import _transformers

        with reading("contents"):
            return list(_transformers.t_contents(messages if given is None else given))

    def _now(self, *, stream: bool) -> Callable[..., Any]:
        def ask(*, model: str, contents: Any, config: Any = None) -> Any:
            with reading("config"):
                arguments = _arguments(model, contents, config, stream=stream)
            return self.send(arguments)

        return ask

    def _later(self, *, stream: bool) -> Callable[..., Any]:
        async def ask(*, model: str, contents: Any, config: Any = None) -> Any:
            with reading("config"):
                arguments = _arguments(model, contents, config, stream=stream)
            return await self.asend(arguments)

        return ask


def _is_content(entry: Any) -> bool:
    return shapes.is_content_object(entry) or (isinstance(entry, dict) and "parts" in entry)


class _WithState:
    """What is known of one conversation."""

    _state: _Conversation

    @property
    def compaction(self) -> Compaction | None:
        """The record in force."""
        return self._state.compaction

    @property
    def calibration(self) -> Calibration | None:
        """What the provider's usage taught so far."""
        return self._state.calibration

    @property
    def result(self) -> CompactionResult | None:
        """That of the last request; None before the first."""
        return self._state.result


class _Stood(_WithState):
    """Stands for a method or a chat: everything about it is as it was, and the state of its conversation is here."""

    def __init__(self, target: Any, state: _Conversation, inner: Any) -> None:
        self._target = target
        self._state = state
        self._inner = inner

    @property  # type: ignore[misc]  # what isinstance asks, too
    def __class__(self) -> Any:
        return type(self._target)

    def __getattr__(self, name: str) -> Any:
        return getattr(filled(self, "_inner", name), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._inner(*arguments, **named)

    def __copy__(self) -> Any:
        """Another conversation from here on, with the same client, which the SDK does not let be copied."""
        target = self._target
        if self._inner is not target and hasattr(target, "send_message"):  # a chat: its turns are in lists of its own
            target = copy.copy(target)
            said = {name: list(value) for name, value in vars(self._inner).items() if isinstance(value, list)}
            vars(target).update(said)
        return _wrapped(target, self._state._compactor, self._state.compaction, self._state.calibration)

    def __deepcopy__(self, memo: object) -> Any:
        return copy.copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(NOT_SENT)


class _Client(_Stood):
    """Stands for a client, or the async half of one."""

    def __init__(
        self, client: Any, compactor: Compactor, previous: Compaction | None, calibration: Calibration | None
    ) -> None:
        super().__init__(client, _Conversation(client.models, compactor, previous, calibration), client)
        self._compactor = compactor
        self.models = self._state.models
        self.chats = _Chats(client.chats, compactor)

    @property
    def aio(self) -> Any:
        """The async half: conversations of its own."""
        found = self.__dict__.get("_aio")
        if found is None:
            found = self._aio = _Client(self._target.aio, self._compactor, None, None)
        return found

    def __enter__(self) -> Any:
        self._target.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._target.__exit__(*error)

    async def __aenter__(self) -> Any:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._target.__aexit__(*error)


class _Chats:
    def __init__(self, chats: Any, compactor: Compactor) -> None:
        self._chats = chats
        self._compactor = compactor

    @property  # type: ignore[misc]  # what isinstance asks, too
    def __class__(self) -> Any:
        return type(self._chats)

    def create(self, **arguments: Any) -> Any:
        """A chat, as the SDK's own method makes it."""
        return with_compaction(self._chats.create(**arguments), self._compactor)

    def __getattr__(self, name: str) -> Any:
        return getattr(filled(self, "_chats", name), name)


if TYPE_CHECKING:  # what stands for the SDK's own objects, to a type checker

    class _CompactedChat(Chat, _WithState): ...

    class _CompactedAsyncChat(AsyncChat, _WithState): ...

    class _CompactedChats(Chats):
        def create(self, *, model: str, config: Any = None, history: Any = None) -> _CompactedChat: ...

    class _CompactedAsyncChats(AsyncChats):
        def create(self, *, model: str, config: Any = None, history: Any = None) -> _CompactedAsyncChat: ...

    class _CompactedAsyncClient(AsyncClient, _WithState):
        @property
        def chats(self) -> _CompactedAsyncChats: ...

    class _CompactedClient(Client, _WithState):
        @property
        def chats(self) -> _CompactedChats: ...
        @property
        def aio(self) -> _CompactedAsyncClient: ...
