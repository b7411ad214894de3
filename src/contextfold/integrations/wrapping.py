"""A method of an SDK's client with a compaction around it: same arguments, same answers, for one conversation.

What belongs here: which argument is the conversation, which one limits the answer, sync or async, plain or stream, and
the state of one conversation between calls. What does not: any decision. All is done by ``Compactor.call``; the SDKs
are never imported.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from functools import partial, update_wrapper
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from contextfold.calls.request import check_state
from contextfold.calls.same import NOT_FOR_A_SUMMARY, begins_as_given, is_shaped
from contextfold.calls.thinking import shorter_thinking, thinking_beside, with_thinking_set
from contextfold.calls.usage import Usage
from contextfold.compactor import CompactionResult, Compactor
from contextfold.errors import InputError, held, shown
from contextfold.integrations.given import checked_compactor, reading
from contextfold.integrations.streams import ahanded, aleave, handed, leave
from contextfold.ports import is_awaitable, mark_async
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration
from contextfold.window import by_window

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a method names what matters here."""

    format: str
    messages: str
    """The argument that is the conversation."""
    system: str | None
    """The argument that is the system prompt, where that is none of the messages."""
    answer_limits: tuple[str, ...]
    """The arguments that limit the answer; the first one is used where the caller gives none."""
    elsewhere: tuple[str, ...] = ()
    """Arguments that say that the provider keeps the conversation: nothing can be compacted here then."""
    goes_on: str | None = None
    """The argument with which a model goes on with an answer. It belongs to the view that the answer began from, and
    the provider counts what was answered so far among what is read."""


class WithCompaction(Generic[Method]):
    """Call it as the method that it stands for. It belongs to one conversation: pass the full history every time.

    ``compaction`` is the record in force and ``calibration`` what usage taught: store both with the conversation, and
    give them to the next one that is made for it. ``result`` is the ``CompactionResult`` of the last call, with its
    ledger and events; None before the first.
    """

    def __init__(
        self,
        method: Callable[..., Any],
        compactor: Compactor,
        dialect: Callable[[Mapping[str, Any]], Dialect],
        *,
        previous: Compaction | None = None,
        calibration: Calibration | None = None,
        adjust: Callable[[dict[str, Any]], dict[str, Any]] = dict,
        by_place: Sequence[str] = (),
        through: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        """``adjust``: the last change to what the method is given. ``by_place``: names of what it takes by place.
        ``through``: what stands between this and the method, where that is called in another way.
        """
        check_state(previous, calibration)
        self.compaction = previous
        self.adjust = adjust
        wrapped = method
        # What a partial gives is of the request like all else: a summary may leave it out, and a model has its window.
        method, self._given = unbound(method, by_place)
        method = method if through is None else through(method)
        self.calibration = calibration
        self.result: CompactionResult | None = None
        self._method: Callable[..., Any] = method
        self._compactor = checked_compactor(compactor)
        self._dialect = dialect
        if not callable(method):
            raise InputError(
                "with_compaction takes the method of a client that sends, such as client.chat.completions.create or "
                f"client.messages.create, not {shown(method)}"
            )
        self._makes_managers = makes_managers(method)
        self._is_raw = is_raw(method)
        self.looks_like(wrapped)

    def __copy__(self) -> WithCompaction[Method]:
        """Another conversation from here on, with the same client, which no SDK lets be copied."""
        made = type(self).__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: object) -> WithCompaction[Method]:
        return copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(NOT_SENT)

    def looks_like(self, method: Callable[..., Any]) -> None:
        """Take a method's name, signature and color for those who ask: what retries or traces a call asks first
        whether to await it.
        """
        update_wrapper(self, method, updated=())
        if inspect.iscoroutinefunction(method):
            mark_async(self)

    if TYPE_CHECKING:
        __call__: Method
        """To a type checker it is the method with all its overloads: what ``stream=True`` answers is another type."""
    else:

        @property
        def __call__(self):
            # `async def` where the method is: some ask for that instead of the mark.
            is_awaited = inspect.iscoroutinefunction(self._method) and not self._makes_managers
            return self._acall if is_awaited else self._call

    def _call(self, *args: Any, **arguments: Any) -> Any:
        return self.called(args, arguments)

    async def _acall(self, *args: Any, **arguments: Any) -> Any:
        return await self.called(args, arguments)

    def called(self, args: tuple[Any, ...], arguments: dict[str, Any]) -> Any:
        if args:
            raise InputError("give all arguments by name: by its name it is told which one is the conversation")
        given = {**self._given, **arguments}
        if not is_async(self._method):
            return Manager(self, given) if self._makes_managers else self.send(given)
        if self._makes_managers or (self._is_raw and not inspect.iscoroutinefunction(self._method)):
            return AsyncManager(self, given)
        return self.asend(given)

    def send(self, arguments: Mapping[str, Any]) -> Any:
        """The method's answer; its stream, opened."""
        arguments = _readable_again(arguments)
        dialect = self._dialect(arguments)
        if _is_elsewhere(dialect, arguments):
            return self._opened(self._method(**arguments), None)
        call = _Call(self, dialect, arguments)
        if call.goes_on:
            view = self._compactor.call(_given, call.wire, self.compaction, before=_no_pass, **call.options)
            call.told = True
            return self._opened(self._method(**call.with_view(view, None)), call)

        def send(view: list[Any], max_tokens: int | None) -> Any:
            return self._opened(self._method(**call.with_view(view, max_tokens)), call)

        def ask(messages: list[Any], whole: bool, answer_tokens: int) -> Any:
            if whole and is_shaped(arguments):
                return None
            return _finished(self._method(**call.for_summary(messages, whole, answer_tokens)))

        return self._compactor.call(send, call.wire, self.compaction, ask=ask, **call.options)

    async def asend(self, arguments: Mapping[str, Any]) -> Any:
        """``send`` for an async method."""
        arguments = _readable_again(arguments)
        dialect = self._dialect(arguments)
        if _is_elsewhere(dialect, arguments):
            return await self._aopened(self._method(**arguments), None)
        call = _Call(self, dialect, arguments)
        if call.goes_on:
            view = await self._compactor.acall(_given, call.wire, self.compaction, before=_no_pass, **call.options)
            call.told = True
            return await self._aopened(self._method(**call.with_view(view, None)), call)

        async def send(view: list[Any], max_tokens: int | None) -> Any:
            return await self._aopened(self._method(**call.with_view(view, max_tokens)), call)

        async def ask(messages: list[Any], whole: bool, answer_tokens: int) -> Any:
            if whole and is_shaped(arguments):
                return None
            return await _afinished(self._method(**call.for_summary(messages, whole, answer_tokens)))

        return await self._compactor.acall(send, call.wire, self.compaction, ask=ask, **call.options)

    def _opened(self, response: Any, call: _Call | None) -> Any:
        manager = None
        if self._makes_managers:
            manager, response = response, response.__enter__()  # sends the request
        elif self._is_raw and hasattr(response, "__enter__") and not hasattr(response, "__next__"):
            # Of `with_streaming_response`: it sends when it is entered, where no refusal would be seen any more.
            return closing(response.__enter__())
        return response if call is None else handed(response, call.on_usage, manager)

    async def _aopened(self, response: Any, call: _Call | None) -> Any:
        manager = None
        if is_awaitable(response):
            response = await response
        elif self._makes_managers or self._is_raw:
            manager, response = response, await response.__aenter__()
        return response if call is None else await ahanded(response, call.on_usage, manager)

    def conversation(self, messages: Any) -> list[Any]:
        """What was given for messages as a list of them."""
        return [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)

    def commit(self, started_from: Compaction | None, result: CompactionResult) -> None:
        """Take over what a call made, unless another call of this conversation did so meanwhile."""
        self.result = result
        self.calibration = result.calibration
        # Of two calls at a time the first one that ends wins: the other's record starts from a view that is no longer
        # in force.
        if self.compaction is started_from:
            self.compaction = result.compaction

    def learn(self, result: CompactionResult | None, input_tokens: int | None) -> None:
        """Usage that a stream reported at its end, for the view of ``result``."""
        if result is not None and self.result is result:
            self.result = result.after_usage(input_tokens)
            self.calibration = self.result.calibration


class _Call:
    """One call: what of its arguments the compactor gets, and what of the view the method gets."""

    def __init__(self, owner: WithCompaction[Any], dialect: Dialect, arguments: Mapping[str, Any]) -> None:
        self.owner = owner
        self.dialect = dialect
        self.arguments = arguments
        self.original = arguments.get(dialect.messages)
        with reading(dialect.messages):
            if not isinstance(self.original, str | Sequence):
                self.original = list(self.original or ())
            self.wire = owner.conversation(self.original)
        self.started_from = owner.compaction
        self.result: CompactionResult | None = None
        self.told = False
        """Whether the response itself said its usage, so that its stream need not."""
        self.limit = next(
            (name for name in dialect.answer_limits if is_given(arguments.get(name))), dialect.answer_limits[0]
        )
        self.goes_on = dialect.goes_on is not None and is_given(arguments.get(dialect.goes_on))
        self.model = arguments.get("model")
        self.known_as = by_window(self.model, _betas(owner._method, arguments)) if isinstance(self.model, str) else None
        self.endpoint = endpoint_of(owner._method)

    @property
    def options(self) -> dict[str, Any]:
        """For ``Compactor.call``."""
        limit = self.arguments.get(self.limit)
        given = self.arguments.get("tools")
        with reading("the system prompt or the tools"):
            system = _text(self.arguments.get(self.dialect.system)) if self.dialect.system else None
            tools = list(given) if is_given(given) and given else None
        return {
            "format": self.dialect.format,
            "system": system,
            "tools": tools,
            "max_tokens": limit if isinstance(limit, int) else None,
            "calibration": self.owner.calibration,
            "model": self.known_as,
            "endpoint": self.endpoint,
            "on_result": self._on_result,
        }

    def with_view(self, view: list[Any], max_tokens: int | None) -> dict[str, Any]:
        """The method's arguments. A view that is the whole conversation is sent as the caller wrote it."""
        same = len(view) == len(self.wire) and all(new is old for new, old in zip(view, self.wire, strict=True))
        changed: dict[str, Any] = {self.dialect.messages: self.original if same else view}
        thinking = self.arguments.get("thinking")
        if max_tokens is not None:
            changed[self.limit] = max_tokens
            limit = self.arguments.get(self.limit)
            thinking = shorter_thinking(thinking, limit if isinstance(limit, int) else None, max_tokens)
        if not same:
            thinking = thinking_beside(thinking, view, self.wire, self.dialect.format, self.model)
        changed |= with_thinking_set(self.arguments, thinking)
        arguments = {**self.arguments, **changed}
        return self.owner.adjust({name: arguments[name] for name in arguments if changed.get(name, 0) is not None})

    def for_summary(self, messages: list[Any], whole: bool, answer_tokens: int) -> dict[str, Any]:
        """The method's arguments for a summary: as the request itself is sent, but not as a stream of events; or the
        messages alone, without system prompt and tools.
        """
        left_out = {*NOT_FOR_A_SUMMARY, *(() if whole else _OF_THE_TASK)}
        if not whole and self.dialect.system is not None:
            left_out.add(self.dialect.system)
        if self.model is None:  # the stored prompt says which one it is
            left_out.discard("prompt")
        kept = {name: value for name, value in self.arguments.items() if name not in left_out}
        if isinstance(more := kept.get("extra_body"), Mapping):  # fields that the SDK's method does not name
            kept["extra_body"] = {name: value for name, value in more.items() if name not in left_out}
        config = kept.get("output_config")
        if not whole and isinstance(config, Mapping) and "format" in config:  # its effort is none of the task's
            kept["output_config"] = {name: value for name, value in config.items() if name != "format"}
        thinking = self.arguments.get("thinking")
        if whole and not begins_as_given(messages, self.wire):
            thinking = thinking_beside(thinking, messages, self.wire, self.dialect.format, self.model)
        limit = self.arguments.get(self.limit)
        if isinstance(limit, int):
            # A limit for short answers would cut the summary off, which is refused then after it was paid for.
            lowered = answer_tokens or max(limit, LEAST_ANSWER)
            thinking = shorter_thinking(thinking, limit, lowered)
            kept[self.limit] = lowered
        kept |= with_thinking_set(kept, thinking)
        kept = {name: value for name, value in kept.items() if value is not None or self.arguments.get(name) is None}
        return self.owner.adjust({**kept, self.dialect.messages: messages})

    def on_usage(self, reply: Usage) -> None:
        """A stream has said its usage. What it gave before its first content was learned then."""
        trusted = self.owner._compactor.windows.trusts(self.endpoint, self.options["model"])
        if trusted and self.result is not None and not self.told:
            self.owner.learn(self.result, reply.input_tokens)

    def _on_result(self, result: CompactionResult) -> None:
        self.result = result
        self.told = result.calibration != (self.owner.calibration or Calibration())
        self.owner.commit(self.started_from, result)


def _readable_again(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with a list in place of each iterator: the SDKs take one, and what was counted here, or sent in a
    request that was refused, would be missing in the next.
    """
    read: dict[str, Any] = {}
    for name, value in arguments.items():
        with reading(name):
            read[name] = list(value) if isinstance(value, Iterator) else value
    return read


def _given(view: list[Any], max_tokens: int | None) -> list[Any]:
    """Sends nothing: the view is all that is wanted."""
    return view


def _no_pass(proposal: object) -> bool:
    return False


_OF_THE_TASK = (
    *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
    *("response_format", "text", "text_format", "output_format"),
    *("mcp_servers", "container", "web_search_options", "prompt"),
)
"""Arguments that shape an answer to the task, and no summary: servers and containers are for its tools, and a stored
prompt of OpenAI's has instructions and tools of its own.
"""

LEAST_ANSWER = 2_048
"""Tokens that a summary may take where the caller limits the answer to fewer."""

_FINALS = ("get_final_message", "get_final_completion", "get_final_response", "parse")
"""What gives the whole answer of a stream that is a context manager."""


def _finished(response: Any) -> Any:
    """A whole answer, also of a method named ``stream``, or of one that gives a raw response."""
    if not hasattr(response, "__enter__"):
        return response.parse() if hasattr(response, "http_response") else response
    with response as stream:
        return next(getattr(stream, name) for name in _FINALS if hasattr(stream, name))()


async def _afinished(response: Any) -> Any:
    if is_awaitable(response):
        response = await response
        said = response.parse() if hasattr(response, "http_response") else response
        return await said if inspect.isawaitable(said) else said
    async with response as stream:
        return await next(getattr(stream, name) for name in _FINALS if hasattr(stream, name))()


class Manager:
    """What a method named ``stream`` returns: the request is sent when ``with`` enters it."""

    def __init__(self, owner: WithCompaction[Any], arguments: Mapping[str, Any]) -> None:
        self._owner = owner
        self._arguments = arguments
        self._stream: Any = None

    def __enter__(self) -> Any:
        self._stream = self._owner.send(self._arguments)
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._stream is not None:
            leave(self._stream, kind, error, traceback)


class AsyncManager:
    """``Manager`` for ``async with``, and for ``await`` where it stands for a function that only looks like one."""

    def __init__(self, owner: WithCompaction[Any], arguments: Mapping[str, Any]) -> None:
        self._owner = owner
        self._arguments = arguments
        self._stream: Any = None

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._owner.asend(self._arguments).__await__()

    async def __aenter__(self) -> Any:
        self._stream = await self._owner.asend(self._arguments)
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._stream is not None:
            await aleave(self._stream, kind, error, traceback)


def unbound(method: Callable[..., Any], places: Sequence[str] = ()) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A method, and what ``functools.partial`` gives it, by name. ``places``: names of what it takes by place."""
    given: dict[str, Any] = {}
    while type(method) is partial and len(method.args) <= len(places):
        given = {**dict(zip(places, method.args, strict=False)), **method.keywords, **given}
        method = method.func
    return method, given


def is_async(method: Callable[..., Any]) -> bool:
    """Whether a method belongs to an async client. Its ``stream`` is no coroutine function, its class says it."""
    if isinstance(method, type):
        return hasattr(method, "__aenter__") and not hasattr(method, "__enter__")
    owner = type(_owner_of(method)).__name__
    return owner.startswith("Async") or inspect.iscoroutinefunction(_behind(method)[-1])


def makes_managers(method: Callable[..., Any]) -> bool:
    """Whether a method sends nothing before ``with`` enters what it returns. A tracer may have put a class in place of
    the SDK's ``stream``.
    """
    if isinstance(method, type):
        return hasattr(method, "__enter__") or hasattr(method, "__aenter__")
    return stands_for(method, "stream")


def stands_for(method: Callable[..., Any], name: str) -> bool:
    """Whether a method has this name, or one that decorators and ``functools.partial`` hide."""
    return name in _names_of(method)


def is_raw(method: Callable[..., Any]) -> bool:
    """Whether a function stands for a method of a client, as those of ``with_raw_response`` do, and of
    ``with_streaming_response``, whose answer is a context manager; also with arguments that a partial gives it.
    """
    one: Any = method
    while isinstance(one, partial):
        one = one.func
    return not hasattr(one, "__self__") and hasattr(getattr(one, "__wrapped__", None), "__self__")


def endpoint_of(method: Callable[..., Any]) -> str:
    """The base URL of the client that a method belongs to; empty where it cannot be told."""
    owner = _owner_of(method)
    client = getattr(owner, "_client", None)
    if client is None:  # Google's
        client = getattr(getattr(owner, "_api_client", None), "_http_options", None)
    url = getattr(client, "base_url", None) or getattr(getattr(owner, "meta", None), "endpoint_url", None)  # boto3's
    return str(url or "")


NOT_SENT = (
    "what with_compaction made has a client of its SDK inside, which another process cannot use: send its compaction "
    "and its calibration there, and make it anew: with_compaction(..., previous=compaction, calibration=calibration)"
)

_FACES = {"openai": "openai", "anthropic": "anthropic", "google": "google_genai", "botocore": "bedrock"}
"""By the package of an SDK, the module that wraps it."""


def refuse_other_sdks(method: Callable[..., Any], own: str) -> None:
    """Raises ``InputError`` for a method of another SDK than ``own``: it would be asked in words that are not its own,
    and what it gets beside the messages, such as its system prompt, would not count.
    """
    package = type(_owner_of(method)).__module__.partition(".")[0]
    if package in _FACES and package != own:
        raise InputError(
            f"with_compaction of contextfold.integrations.{_FACES[own]} is for the SDK {own}, and this is a method of "
            f"{package}: import with_compaction from contextfold.integrations.{_FACES[package]}"
        )


def refuse_what_sends_nothing(method: Callable[..., Any], own: str, sends: str, remedy: str) -> None:
    """Raises ``InputError`` for a method of the SDK ``own`` that sends no conversation, or in another shape: it would
    be called as it is, and one day refused for its size, or fail where it is called. ``sends``: a pattern of the
    methods that do, each by its module and its name.
    """
    owner = _owner_of(method)
    behind = _behind(method)
    # A client for one platform may have a class of its own for a resource: its methods are those of the base class.
    kinds = [behind[-1]] if owner is None else type(owner).__mro__
    homes = [str(held(kind, "__module__")) for kind in kinds]
    names = _names_of(method)
    sending = (re.search(sends, f"{home}.{name}") for home in homes for name in names)
    if homes[0].partition(".")[0] == own and not any(sending):
        raise InputError(f"{names[0] if names else shown(method)} of {own} sends no list of messages; {remedy}")


def _names_of(method: Callable[..., Any]) -> list[str]:
    """The name of a method, those that it hides, and the one that its class has it by: a tracer may have put a function
    of another name there.
    """
    behind = _behind(method)
    functions = {id(function) for one in behind if (function := held(one, "__func__")) is not None}
    own = [str(name) for one in behind if (name := held(one, "__name__")) is not None]
    kinds = type(_owner_of(method)).__mro__
    return own + [name for kind in kinds for name, value in vars(kind).items() if id(value) in functions]


def _owner_of(method: Callable[..., Any]) -> Any:
    """The object of an SDK that a method belongs to; None where it cannot be told."""
    owners = (getattr(one, "__self__", None) for one in _behind(method))
    return next((owner for owner in owners if owner is not None), None)


def _behind(method: Callable[..., Any]) -> list[Any]:
    """A method, and what decorators and ``functools.partial`` hide: each stands for the one after it."""
    found: list[Any] = [method]
    while len(found) < MOST_LAYERS:
        inner = found[-1].func if isinstance(found[-1], partial) else getattr(found[-1], "__wrapped__", None)
        if not callable(inner):
            break
        found.append(inner)
    return found


MOST_LAYERS = 32
"""Decorators of one method that are looked through."""


def _betas(method: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """The betas of Anthropic's that a request asks for, by an argument, a header, or the headers of its client."""
    client = getattr(_owner_of(method), "_client", None)
    named = (arguments.get("betas"), arguments.get("anthropic_beta"))  # the second one is Bedrock's
    return betas_in(named, (arguments.get("extra_headers"), held(client, "default_headers")))


def betas_in(named: Sequence[Any], headers: Sequence[Any]) -> str:
    """The betas of Anthropic's that lists of names and headers have, whatever else these are."""
    found = [value for one in headers if isinstance(one, Mapping) for value in one.items()]
    return " ".join(
        [
            *(str(beta) for one in named if isinstance(one, list | tuple) for beta in one),
            *(str(value) for name, value in found if str(name).lower() == "anthropic-beta"),
        ]
    )


def is_given(value: Any) -> bool:
    """Whether an argument is there: the SDKs write ``NOT_GIVEN`` or ``omit`` for one that is not."""
    return value is not None and type(value).__name__ not in ("NotGiven", "Omit")


CONVERSATIONS = ("messages", "input", "prompt", "contents")
"""What the APIs of all providers call a conversation."""


def _is_elsewhere(dialect: Dialect, arguments: Mapping[str, Any]) -> bool:
    if not is_given(arguments.get(dialect.messages)):
        for name in CONVERSATIONS:
            if isinstance(arguments.get(name), str | list | tuple):
                # Untouched, it would be refused one day for its size, and no one would know why.
                raise InputError(
                    f"this with_compaction compacts `{dialect.messages}`, and the request gives its conversation as "
                    f"`{name}`; wrap a method that takes `{dialect.messages}`, or call the method itself"
                )
        return True  # an answer that is taken up again, or a prompt that the provider keeps
    sent = with_body(arguments)
    return any(is_given(sent.get(name)) for name in dialect.elsewhere)


def with_body(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with the fields that the SDK's method does not name, as the request has them."""
    more = arguments.get("extra_body")
    return {**arguments, **more} if isinstance(more, Mapping) else arguments


def _text(system: Any) -> str | None:
    """A system prompt as text: a string, or blocks of text."""
    if isinstance(system, str):
        return system
    blocks = system if isinstance(system, list | tuple) else ()
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, Mapping)) or None
