"""The capability: requests and responses on their way through ``Compactor.acall``, and where the record lives.

It stands around the model itself (``get_wrapper_model``), where one request may be sent more than once: a view that a
provider refuses is followed by a smaller one, which no hook around the request could do, since those may call their
handler only once. The record in force travels in the ``metadata`` of the response that it was made for, which no model
sees and every dump of a history keeps; so a stored history, or a fork of one, needs nothing else.

What does not belong here: what models are, and their settings and answers say (``models``), what parts of messages mean
(``formats.pydantic_ai``), and any decision about what is compacted.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Unpack, cast

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.batch import BatchRequest, EncodedBatchRequest
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from contextfold import formats
from contextfold.archive import Archive as FileArchive
from contextfold.calls.same import begins_as_given
from contextfold.calls.thinking import LEAST_THINKING, shorter_thinking, thinking_beside, with_thinking_set
from contextfold.calls.usage import Usage
from contextfold.compactor import After, Before, CompactionResult, Compactor, WindowlessSettings
from contextfold.errors import held
from contextfold.formats.pydantic_ai import split
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.given import checked_compactor, listed, reading, stored_record
from contextfold.integrations.pydantic_ai.models import (
    answer_of,
    for_a_summary,
    for_tests,
    is_claudes,
    is_kept_by_openai,
    is_made_up,
    limited,
    makes_a_budget,
    name_of,
    usage_of,
    without_shapes,
    writing,
)
from contextfold.integrations.rewritten import Originals
from contextfold.integrations.wrapping import betas_in
from contextfold.ports import AsyncPorts, hand_over
from contextfold.record.compaction import Compaction as Record
from contextfold.summary.summarizer import Answer
from contextfold.tokens import Calibration
from contextfold.window import LARGE_MARK, LARGE_WINDOW, by_window

__all__ = ["Compaction", "history_processor"]

FORMAT = "pydantic-ai"
KEY = "contextfold"
"""In the ``metadata`` of a response: the record that was in force behind it, as JSON."""

BEDROCKS = "bedrock_additional_model_requests_fields"
"""The setting in which a request to Bedrock has what Claude's own API has beside the messages."""

_BUDGET = {"type": "enabled", "budget_tokens": LEAST_THINKING}


@dataclass(frozen=True, slots=True)
class _Kept:
    """What this process remembers of a conversation. ``made``: a record that no response of the history has yet, and
    the id of the one that the history had when it was made. ``told``: damaged records of which the log has said so.
    """

    made: Record | None = None
    base: str | None = None
    calibration: Calibration | None = None
    pieces: Mapping[Any, list[Any]] | None = None
    told: set[int] = field(default_factory=set)


@dataclass(init=False, repr=False, eq=False)
class Compaction(AbstractCapability[Any]):
    """Compacts before a model request when a trigger fires, and after a refusal for size. One instance serves any
    number of agents, runs and conversations.

    Args:
        window: input tokens of the receiving model. None: what the model says of itself, else the registry, else what
            refusals teach, else a conservative default.
        compactor: a ``Compactor`` of your own, in place of ``window`` and ``settings``.
        instructions: for the summarizer, in every compaction.
        archive: ``open_archive(...)``, which saves originals before they leave the view.
        before, after: hooks around a pass, as for ``Compactor.compact``.
        on_result: gets the ``CompactionResult`` of each request that was answered, and of a pass that was made while
            the tokens of a request were counted (``UsageLimits(count_tokens_before_request=True)``).
        settings: as for ``Compactor``: ``trigger``, ``target``, ``keep`` or ``policy``; ``summarizer``, which may be a
            ``Model`` of pydantic-ai, too; ``count_text``, ``on_event`` and the rest.

    The history of a run keeps every message; the model gets the view. Raises ``PolicyError`` when a setting is not
    allowed, ``TypeError`` for one that does not exist.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        compactor: Compactor | None = None,
        instructions: str = "",
        archive: FileArchive | None = None,
        before: Before | None = None,
        after: After | None = None,
        on_result: Callable[[CompactionResult], object] | None = None,
        **settings: Unpack[WindowlessSettings],
    ) -> None:
        self.compactors = _Compactors(window, compactor, settings)
        self.options: dict[str, Any] = {"instructions": instructions, "before": before, "after": after}
        self.archive = archive
        self.on_result = on_result
        self.id = None
        self._kept: Bounded[_Kept] = Bounded()
        self._conversation: str | None = None
        self._unsaved: Record | None = None
        self._answered: CompactionResult | None = None

    # ---- what the framework calls ----

    async def for_run(self, ctx: RunContext[Any]) -> Compaction:
        """One for each run: it knows the conversation, and what this run has not yet written into its history."""
        run = copy.copy(self)
        run._conversation = ctx.conversation_id
        return run

    def get_wrapper_model(self, model: Model) -> Model:
        """The model with a compaction around each request."""
        return _CompactingModel(model, self)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """The response, with the record that is new in its metadata; the usage of a stream is learned here."""
        answered, self._answered = self._answered, None
        read = usage_of(response).input_tokens
        if answered is not None and read and not is_made_up(request_context.model, response):
            learned = answered.after_usage(read).calibration
            kept = self._remembered(self._conversation)
            self._remember(self._conversation, replace(kept, calibration=learned))
        if self._unsaved is None:
            return response
        record, self._unsaved = self._unsaved, None
        return replace(response, metadata=_noted(response.metadata, record))

    # ---- what a person asks for ----

    @staticmethod
    def record(messages: Sequence[ModelMessage]) -> Record | None:
        """The record in force in a history, as ``result.all_messages()`` gives it; None if it was never compacted."""
        with reading("the messages"):
            return _saved(listed("messages", messages))

    # ---- between both ----

    def _remembered(self, conversation: str | None) -> _Kept:
        return self._kept.get(conversation) or _Kept()

    def _remember(self, conversation: str | None, kept: _Kept) -> None:
        self._kept.put(conversation, kept)

    async def _tell(self, result: CompactionResult) -> None:
        if self.on_result is not None:
            await hand_over(AsyncPorts(), self.on_result, result)


class _Compactors:
    """One compactor for each window that a model says it has; one for all where the caller gave it."""

    def __init__(self, window: int | None, compactor: Compactor | None, settings: WindowlessSettings) -> None:
        if compactor is not None and (settings or window is not None):
            given = ", ".join([*settings, *(["window"] if window is not None else [])])
            raise TypeError(f"give either compactor or {given}, not both: they are settings of the compactor")
        if isinstance(model := settings.get("summarizer"), Model):
            settings = {**settings, "summarizer": writing(model)}
        self._settings = settings
        # says at once what is wrong
        self._one = Compactor(window=window, **settings) if compactor is None else checked_compactor(compactor)
        self._is_given = compactor is not None or window is not None
        self._by_window: Bounded[Compactor] = Bounded(16)

    def for_model(self, model: Model, name: str) -> Compactor:
        """The compactor for what a model takes. ``name``: as its window is known by."""
        window = None if self._is_given else model.context_window
        if window is None:
            return self._one
        if name.endswith(LARGE_MARK):  # of which the model's profile knows nothing: the request asks for it
            window = max(window, LARGE_WINDOW)
        made = self._by_window.get(window)
        if made is None:
            made = Compactor(window=window, **self._settings)
            self._by_window.put(window, made)
        return made


@dataclass(frozen=True, slots=True)
class _Whole:
    response: ModelResponse
    contextfold_usage: Usage


@dataclass(frozen=True, slots=True)
class _Counted:
    usage: RequestUsage
    contextfold_usage: Usage = field(default_factory=Usage)
    """Nothing was answered: the request itself teaches what its view takes."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    encoded: EncodedBatchRequest
    contextfold_usage: Usage = field(default_factory=Usage)
    """Nothing was answered yet."""


class _CompactingModel(WrapperModel):
    def __init__(self, wrapped: Model, owner: Compaction) -> None:
        super().__init__(wrapped)
        self.owner = owner

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        call = _Call(self, messages, model_settings, model_request_parameters)
        if call.is_elsewhere:
            return await self.wrapped.request(messages, model_settings, model_request_parameters)

        async def send(view: list[Any], max_tokens: int | None) -> _Whole:
            settings = call.settings_beside(view, max_tokens)
            response = await self.wrapped.request(call.sent(view), settings, model_request_parameters)
            return _Whole(response, call.usage(response))

        answered, record = await call.answered(send)
        response: ModelResponse = answered.response
        # An engine for durable runs keeps what is returned here, and no hook sees it again when it is played back.
        return response if record is None else replace(response, metadata=_noted(response.metadata, record))

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Of the view, which is what would be sent: limits of a run are held against it before the request."""
        call = _Call(self, messages, model_settings, model_request_parameters)
        if call.is_elsewhere:
            return await self.wrapped.count_tokens(messages, model_settings, model_request_parameters)

        async def count(view: list[Any], max_tokens: int | None) -> _Counted:
            settings = call.settings_beside(view, max_tokens)
            return _Counted(await self.wrapped.count_tokens(call.sent(view), settings, model_request_parameters))

        counted, result = await call.viewed(count)
        if result.changed:  # a pass is told once: the request that follows finds its record
            await self.owner._tell(result)
        usage: RequestUsage = counted.usage
        return usage

    async def batch_encode(self, request: BatchRequest) -> EncodedBatchRequest:
        """Of the view: what sends requests in batches and stands around this model never calls ``request``."""
        call = _Call(self, request.messages, request.model_settings, request.model_request_parameters)
        if call.is_elsewhere:
            return await self.wrapped.batch_encode(request)

        async def encode(view: list[Any], max_tokens: int | None) -> _Encoded:
            settings = call.settings_beside(view, max_tokens)
            sent = replace(request, messages=call.sent(view), model_settings=settings)
            return _Encoded(await self.wrapped.batch_encode(sent))

        answered, _ = await call.answered(encode)
        encoded: EncodedBatchRequest = answered.encoded
        return encoded

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call = _Call(self, messages, model_settings, model_request_parameters)
        async with AsyncExitStack() as stack:

            async def send(view: list[Any], max_tokens: int | None) -> StreamedResponse:
                settings = call.settings_beside(view, max_tokens)
                # A stream that is refused is closed here, before the next one is opened; an accepted one lives as long
                # as the caller's.
                async with AsyncExitStack() as attempt:
                    opened = self.wrapped.request_stream(
                        call.sent(view), settings, model_request_parameters, run_context
                    )
                    stream = await attempt.enter_async_context(opened)
                    await _primed(stream)
                    if call.resumed or is_made_up(self.wrapped, stream):
                        stream.contextfold_usage = Usage()  # type: ignore[attr-defined]
                    stack.push_async_exit(attempt.pop_all())
                return stream

            stream, record = (await send(messages, None), None) if call.is_elsewhere else await call.answered(send)
            if record is not None:
                # The history that ``run_stream`` gives has the response as it was streamed, not as hooks leave it.
                stream.metadata = _noted(stream.metadata, record)
            yield stream


async def _primed(stream: StreamedResponse) -> None:
    """Read up to the first event, which the stream gives again."""
    # being read already, a finished answer that is played back, or a version of the framework that reads in another
    # way: left alone
    is_usual = type(stream).__aiter__ is StreamedResponse.__aiter__
    if not is_usual or getattr(stream, "_event_iterator", stream) is not None:
        return
    # Some providers accept a request and refuse it inside of the stream, where nothing could be done any more. What is
    # read is the provider's own events: whoever opened the stream may still set limits for reading it.
    events = aiter(stream._get_event_iterator())
    try:
        first = [await anext(events)]
    except StopAsyncIteration:
        first = []

    async def again() -> AsyncGenerator[Any]:
        for event in first:
            yield event
        async for event in events:
            yield event

    stream._get_event_iterator = again  # type: ignore[method-assign]


class _Call:
    """One request: what of it the compactor gets, and what of the view the model gets."""

    def __init__(
        self,
        model: _CompactingModel,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> None:
        self.owner, self.model = model.owner, model.wrapped
        self.messages, self.settings, self.parameters = messages, settings, parameters
        with reading("the messages"):
            self._take_apart(listed("messages", messages))

    def _take_apart(self, messages: Sequence[ModelMessage]) -> None:
        last = messages[-1] if messages else None
        self.resumed = [last] if isinstance(last, ModelResponse) and last.state == "suspended" else []
        """An answer that was interrupted, and is sent back as it is: the provider goes on with it behind the view that
        it answered."""
        # What is looked after from time to time is a job that has its view already: no other one would be read.
        is_a_job = any(self.model.continuation_delay(response) is not None for response in self.resumed)
        self.is_elsewhere = is_a_job or is_kept_by_openai(self.model, self.settings, messages)
        """The provider works on the view that it was sent, or keeps the conversation: nothing can be compacted here."""
        self.messages = messages = list(messages)[: len(messages) - len(self.resumed)]
        named = (name for message in reversed(messages) if isinstance(name := message.conversation_id, str) and name)
        self.conversation = self.owner._conversation or next(named, None)
        self.kept = self.owner._remembered(self.conversation)
        self.pieces = _pieces(messages, self.kept.pieces or {})
        self.wire = [piece for pieces in self.pieces.values() for piece in pieces]
        self.saved = _saved(messages, self.kept.told)
        self.in_force = _saved(self.resumed) or self.saved

    async def answered(self, send: Callable[..., Awaitable[Any]]) -> tuple[Any, Record | None]:
        """The response to the view, or to the one that follows a refusal, and the record that the history lacks."""
        response, result = await self.viewed(send)
        return response, await self._take(result)

    async def viewed(self, send: Callable[..., Awaitable[Any]]) -> tuple[Any, CompactionResult]:
        """What ``send`` made of the view, and the view's result. A summary is remembered, and nothing else is taken."""
        base = self.base
        # A record that was made for this very history, by a run that failed before its response was kept.
        previous = self.kept.made if self.kept.made is not None and self.kept.base == base else self.in_force
        known_as = by_window(name_of(self.model), self._betas() if is_claudes(self.model) else "")
        compactor = self.owner.compactors.for_model(self.model, known_as)
        if all(for_tests(self.model)):
            compactor.windows.say_nothing_of(known_as)
        results: list[CompactionResult] = []

        def after(made: Any) -> Any:
            """A summary that is paid for is remembered before anything else can fail."""
            kept = replace(self.owner._remembered(self.conversation), made=made.compaction, base=base)
            self.owner._remember(self.conversation, kept)
            hook = self.owner.options["after"]
            return hook(made) if hook is not None else None

        with reading("the instructions or the tools"):
            system, tools = self._instructions(), self._tools()
        self.owner._remember(self.conversation, replace(self.kept, pieces=self.pieces))
        response = await compactor.acall(
            send,
            self.wire,
            previous,
            format=FORMAT,
            system=system,
            tools=tools,
            max_tokens=(self.settings or {}).get("max_tokens"),
            calibration=self.kept.calibration,
            model=known_as,
            endpoint=self.model.base_url or "",
            archive=self.owner.archive.thread(self.conversation or "conversation") if self.owner.archive else None,
            ask=self._ask,
            on_result=results.append,
            **{**self.owner.options, "after": after},
        )
        return response, results[-1]

    @property
    def base(self) -> str | None:
        """The id of the record that the history has."""
        return self.saved.id if self.saved else None

    async def _take(self, result: CompactionResult) -> Record | None:
        record, base = result.compaction, self.base
        is_new = record is not None and record.id != base
        kept = replace(
            self.owner._remembered(self.conversation),
            made=record if is_new else None,
            base=base if is_new else None,
            calibration=result.calibration,
        )
        self.owner._remember(self.conversation, kept)
        self.owner._unsaved = record if is_new else None
        self.owner._answered = result
        await self.owner._tell(result)
        return record if is_new else None

    async def _ask(self, messages: list[Any], whole: bool, answer_tokens: int) -> Answer | None:
        """The model itself, asked for a summary (``summarizer="same"``)."""
        if whole:  # the framework would force a call of a tool, or JSON
            _, prepared = self.model.prepare_request(self.settings, self.parameters)
            if not prepared.allow_text_output or prepared.output_mode in ("native", "prompted"):
                return None
        limit = (self.settings or {}).get("max_tokens")
        room = answer_tokens if limit and answer_tokens else None
        is_given = not whole or begins_as_given(messages, self.wire)
        settings = limited(self.settings, room) if is_given else self.settings_beside(messages, room)
        parameters = self.parameters if whole else ModelRequestParameters()
        model, settings = for_a_summary(self.model), without_shapes(settings)
        return answer_of(self.model, await model.request(self.joined(messages), settings, parameters))

    def sent(self, view: Sequence[Any]) -> list[ModelMessage]:
        """What goes to the model for a view."""
        return [*self.joined(view), *self.resumed]

    def joined(self, view: Sequence[Any]) -> list[ModelMessage]:
        """A view as messages: neighboring requests are one, as the framework itself sends them. A message that is whole
        is its own object.
        """
        own = {id(pieces[0]): pieces for pieces in self.pieces.values()}
        originals = {
            id(pieces[0]): message for message, pieces in zip(self.messages, self.pieces.values(), strict=True)
        }
        runs: list[list[ModelMessage]] = []
        place = 0
        while place < len(view):
            pieces = own.get(id(view[place])) or [view[place]]
            is_whole = len(pieces) <= len(view) - place and all(
                one is other for one, other in zip(pieces, view[place:], strict=False)
            )
            pieces = pieces if is_whole else [view[place]]
            message = originals.get(id(view[place]), view[place]) if is_whole else view[place]
            place += len(pieces)
            if runs and isinstance(runs[-1][-1], ModelRequest) and isinstance(message, ModelRequest):
                runs[-1].append(message)
            else:
                runs.append([message])
        return [run[0] if len(run) == 1 else _as_one(cast("list[ModelRequest]", run)) for run in runs]

    def settings_beside(self, view: Sequence[Any], max_tokens: int | None) -> ModelSettings | None:
        """The settings beside a view, and with this limit of the answer: Claude's budget for thinking has to fit both.

        The model's own settings count where the run has none. A budget is also what older models make of ``thinking``.
        """
        own: dict[str, Any] = {**(self.model.settings or {}), **(self.settings or {})}
        settings = limited(self.settings, max_tokens)
        is_whole = len(view) == len(self.wire) and all(map(operator.is_, view, self.wire))
        limit = own.get("max_tokens")

        def beside(fields: Mapping[str, Any]) -> dict[str, Any]:
            thinking = fields.get("thinking")
            if max_tokens is not None:
                thinking = shorter_thinking(thinking, limit, max_tokens)
            if not is_whole:
                thinking = thinking_beside(thinking, view, self.wire, FORMAT, "claude")
            return with_thinking_set(fields, thinking)

        changed: dict[str, Any] = {}
        names = ("thinking", "context_management")
        for name, value in beside({name: own.get(f"anthropic_{name}") for name in names}).items():
            changed[f"anthropic_{name}"] = value
        more = own.get(BEDROCKS)
        if isinstance(more, Mapping) and (made := beside(more)):
            changed[BEDROCKS] = {name: value for name, value in {**more, **made}.items() if value is not None}
        if own.get("thinking") and makes_a_budget(self.model) and beside({"thinking": _BUDGET}):
            changed["thinking"] = False
        return cast("ModelSettings", {**(settings or {}), **changed}) if changed else settings

    def usage(self, response: ModelResponse) -> Usage:
        """What a response says of its request. Of one that went on, it counts what was written before, too."""
        return Usage() if self.resumed or is_made_up(self.model, response) else usage_of(response)

    def _betas(self) -> str:
        """The betas of Anthropic's that the request asks for."""
        own: dict[str, Any] = {**(self.model.settings or {}), **(self.settings or {})}
        more = own.get(BEDROCKS)
        bedrocks = more.get("anthropic_beta") if isinstance(more, Mapping) else None
        headers = (own.get("extra_headers"), held(held(self.model, "client"), "default_headers"))
        return betas_in((own.get("anthropic_betas"), bedrocks), headers)

    def _instructions(self) -> str | None:
        parts = self.parameters.instruction_parts
        said = [part.content for part in parts or () if part.content]
        if parts is None:
            newest = (m.instructions for m in reversed(self.messages) if isinstance(m, ModelRequest))
            said = [next(newest, None) or ""]
        return "\n\n".join(filter(None, said)) or None

    def _tools(self) -> list[dict[str, Any]] | None:
        defined = [*self.parameters.function_tools, *self.parameters.output_tools]
        declared = [
            {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
            for tool in defined
        ]
        return declared or None


def _pieces(messages: Sequence[ModelMessage], before: Mapping[Any, list[Any]]) -> dict[Any, list[Any]]:
    """Each message as messages of one kind."""
    found: dict[Any, list[Any]] = {}
    for message in messages:
        told = getattr(message, "instructions", None)
        said = told if isinstance(told, str) else id(told)
        key: Any = (said, *map(id, message.parts)) if message.parts else id(message)
        while key in found:  # a message that stands in the list twice
            key = (key, len(found))
        # The framework builds its messages again for each request; what has the same parts as before is the same object
        # here, so that the conversation is recognized.
        known = before.get(key)
        found[key] = known if known is not None and _is_same(known, message) else split(message)
    return found


def _is_same(pieces: Sequence[Any], message: ModelMessage) -> bool:
    """Whether these are the pieces of a message: ids of parts may be those of parts that are gone."""
    parts = [part for piece in pieces for part in piece.parts]
    return len(parts) == len(message.parts) and all(map(operator.is_, parts, message.parts))


def _as_one(requests: Sequence[ModelRequest]) -> ModelRequest:
    """Requests as one, results of tools first: they answer what stands before."""
    parts = [part for request in requests for part in request.parts]
    parts.sort(key=lambda part: 0 if part.part_kind in ("tool-return", "retry-prompt") else 1)
    instructions = next((one.instructions for one in reversed(requests) if one.instructions), None)
    return replace(requests[-1], parts=parts, instructions=instructions)


def _noted(metadata: Mapping[str, Any] | None, record: Record) -> dict[str, Any]:
    """The ``metadata`` of a response, with the record in it."""
    return {**(metadata or {}), KEY: record.to_json()}


def _saved(messages: Sequence[ModelMessage], told: set[int] | None = None) -> Record | None:
    """The record that the newest response with a readable one carries: an earlier one still says what it covers."""
    for message in reversed(messages):
        beside = message.metadata
        text = beside.get(KEY) if isinstance(beside, dict) else None
        if (record := stored_record("a response's metadata", text, told)) is not None:
            return record
    return None


def history_processor(
    *, window: int | None = None, compactor: Compactor | None = None, **settings: Unpack[WindowlessSettings]
) -> Callable[[list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """For ``ProcessHistory(history_processor(window=...))``: the simple case, without a second attempt after a refusal.

    The framework puts what a processor returns in place of the run's history, so that what was summarized is gone from
    ``all_messages()``. A later call updates the summary that it finds; while this process lasts, the originals are
    still known, and evidence is chosen from them. Arguments as for ``Compaction``.
    """
    made = _Compactors(window, compactor, settings)._one
    originals = Originals(formats.get(FORMAT))

    async def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        with reading("the messages"):
            wire = [piece for message in listed("messages", messages) for piece in split(message)]
            history, record = originals.behind(wire)
        result = await made.acompact(history, record, format=FORMAT)
        if not result.changed:
            return messages
        originals.keep(history, result)
        view: list[ModelMessage] = list(result.messages)
        return view

    return process
