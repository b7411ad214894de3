"""A model of the Agents SDK with a compaction around each request: the view, and what follows a refusal.

What belongs here: a model's two methods, and a provider of such models. What does not: the compaction (``filtering``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents import Model, ModelProvider, ModelSettings, ModelTracing
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel

from contextfold.calls.same import NOT_FOR_A_SUMMARY, is_shaped
from contextfold.calls.usage import Usage
from contextfold.formats.openai_responses import is_reference
from contextfold.integrations.streams import aopened
from contextfold.summary.summarizer import Answer

Send = Callable[..., Awaitable[Any]]
"""``InputCompaction.send``."""


class CompactingModel(Model):
    """A model that gets the view of what it is asked. A request that leaves the conversation to the provider goes
    through as it is.
    """

    def __init__(self, wrapped: Model, send: Send) -> None:
        self.wrapped = wrapped
        self._send = send

    def __getattr__(self, name: str) -> Any:
        """What the framework asks of a model beside its protocol: its name, whether it takes a key for caching."""
        if name == "wrapped":  # while a copy is made, there is none yet
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        """What ``isinstance`` goes by beside the type: the framework takes each class of models in its own way."""
        wrapped = self.__dict__.get("wrapped")  # while a copy is made, there is none yet
        return type(self) if wrapped is None else wrapped.__class__

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        **more: Any,
    ) -> Any:
        beside = _beside(system_instructions, tools, output_schema, handoffs, tracing, more)
        return await self._answered(self.wrapped.get_response, input, model_settings, beside)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        **more: Any,
    ) -> AsyncIterator[Any]:
        async def opened(**request: Any) -> Any:
            return await aopened(self.wrapped.stream_response(**request))

        beside = _beside(system_instructions, tools, output_schema, handoffs, tracing, more)
        stream = await self._answered(opened, input, model_settings, beside)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.close()

    async def _answered(
        self,
        answer: Callable[..., Awaitable[Any]],
        input: str | list[Any],
        settings: ModelSettings,
        beside: dict[str, Any],
    ) -> Any:
        async def send(view: Any, max_tokens: int | None = None) -> Any:
            return await answer(input=view, model_settings=_limited(settings, max_tokens), **beside)

        is_elsewhere = beside.get("previous_response_id") or beside.get("conversation_id")
        if is_elsewhere and not isinstance(self.wrapped, OpenAIChatCompletionsModel):  # which reads neither
            return await send(input)
        if isinstance(input, list) and any(map(is_reference, input)):
            return await send(input)
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        schema = beside["output_schema"]
        is_json = schema is not None and not schema.is_plain_text()

        async def ask(messages: list[Any], whole: bool, answer_tokens: int) -> Answer | None:
            """The model itself, asked for a summary (``summarizer="same"``)."""
            if whole and (is_json or is_shaped({"tool_choice": settings.tool_choice})):
                return None
            limit = answer_tokens if settings.max_tokens and answer_tokens else None
            # The framework has no field of its own for words at which answers end.
            changed: dict[str, Any] = {}
            for where in ("extra_args", "extra_body"):
                if isinstance(given := getattr(settings, where), Mapping):
                    changed[where] = {name: one for name, one in given.items() if name not in NOT_FOR_A_SUMMARY}
            endless = replace(settings, **changed)
            nothing: dict[str, Any] = {
                "system_instructions": None,
                "tools": [],
                "handoffs": [],
                "output_schema": None,
                "prompt": None,
            }
            response = await self.wrapped.get_response(
                input=messages,
                # OpenAI refuses a choice among tools where none are sent.
                model_settings=_limited(endless, limit) if whole else replace(endless, tool_choice=None),
                **(beside if whole else {**beside, **nothing}),
            )
            return _answer(response)

        return await self._send(
            send,
            items,
            system=beside["system_instructions"],
            tools=[*beside["tools"], *beside["handoffs"]],
            model=_text(getattr(self.wrapped, "model", None)) or None,
            endpoint=_endpoint(self.wrapped),
            max_tokens=settings.max_tokens,
            ask=ask,
        )

    async def close(self) -> None:
        await self.wrapped.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self.wrapped.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.wrapped._cleanup_on_run_end(owner)


class CompactingProvider(ModelProvider):
    """Gives the models of another provider, each with a compaction around it."""

    def __init__(self, wrapped: ModelProvider, send: Send) -> None:
        self.wrapped = wrapped
        self._send = send

    def get_model(self, model_name: str | None) -> Model:
        return CompactingModel(self.wrapped.get_model(model_name), self._send)

    async def aclose(self) -> None:
        await self.wrapped.aclose()


def _beside(
    system_instructions: str | None, tools: list[Any], output_schema: Any, handoffs: list[Any], tracing: Any, more: Any
) -> dict[str, Any]:
    """What a request has beside its input and its settings, by name."""
    named = {"system_instructions": system_instructions, "tools": tools, "output_schema": output_schema}
    return {**named, "handoffs": handoffs, "tracing": tracing, **more}


def _limited(settings: ModelSettings, max_tokens: int | None) -> ModelSettings:
    return settings if max_tokens in (None, settings.max_tokens) else replace(settings, max_tokens=max_tokens)


def _endpoint(model: Any) -> str:
    client = getattr(model, "_client", None)
    return _text(str(getattr(client, "base_url", None) or ""))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _answer(response: Any) -> Answer:
    """What a response says, as a summary."""
    said: list[str] = []
    for item in response.output:
        blocks: Sequence[Any] = getattr(item, "content", None) or ()
        said += [block.text for block in blocks if getattr(block, "type", None) == "output_text"]
    calls = any(str(getattr(item, "type", "")).endswith("_call") for item in response.output)
    usage = Usage(response.usage.input_tokens or None, response.usage.output_tokens or None)
    # All that the framework hands on of why an answer ended, and only of the Responses API.
    reason = next((item.status for item in response.output if getattr(item, "status", None) == "incomplete"), None)
    return Answer("".join(said), reason, calls, usage.input_tokens, usage.output_tokens)
