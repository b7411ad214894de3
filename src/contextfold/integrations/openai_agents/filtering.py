"""``compaction(...)`` for ``RunConfig.call_model_input_filter``: from a run's items to the view.

What belongs here: what the framework calls before each request, and what is remembered of conversations between
requests. What does not: sending (``models``), stored conversations (``session``), any decision.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from agents import Model, ModelProvider
from agents.run_config import CallModelData, ModelInputData

from contextfold import formats
from contextfold.compactor import After, Before, CompactionResult, Compactor, WindowlessSettings
from contextfold.errors import held
from contextfold.formats.openai_responses import is_reference
from contextfold.integrations.given import checked_compactor, listed, reading
from contextfold.integrations.known_lists import KnownItems, KnownLists
from contextfold.integrations.openai_agents.models import CompactingModel, CompactingProvider
from contextfold.ports import AsyncPorts, hand_over
from contextfold.record.compaction import Compaction

FORMAT = "openai-responses"


def compaction(
    *,
    window: int | None = None,
    compactor: Compactor | None = None,
    instructions: str = "",
    before: Before | None = None,
    after: After | None = None,
    on_result: Callable[[CompactionResult], object] | None = None,
    **settings: Unpack[WindowlessSettings],
) -> InputCompaction:
    """What ``RunConfig(call_model_input_filter=...)`` takes. One serves any number of agents, runs and conversations.

    Args:
        window: input tokens of the receiving model. None: the registry's for the name of the agent's model, else what
            refusals teach, else a conservative default.
        compactor: a ``Compactor`` of your own, in place of ``window`` and ``settings``.
        instructions: for the summarizer, in every compaction.
        before, after: hooks around a pass, as for ``Compactor.compact``.
        on_result: gets the ``CompactionResult`` of each request.
        settings: as for ``Compactor``: ``trigger``, ``target``, ``keep`` or ``policy``, ``summarizer``, ``on_event``
            and the rest.

    The items of the run and of its session stay as they are. Raises ``PolicyError`` when a setting is not allowed,
    ``TypeError`` for one that does not exist.
    """
    if compactor is not None and (settings or window is not None):
        given = ", ".join([*settings, *(["window"] if window is not None else [])])
        raise TypeError(f"give either compactor or {given}, not both: they are settings of the compactor")
    made = Compactor(window=window, **settings) if compactor is None else checked_compactor(compactor)
    return InputCompaction(made, {"instructions": instructions, "before": before, "after": after}, on_result)


class InputCompaction:
    """Makes views of items. Made by ``compaction(...)``. ``result`` is the ``CompactionResult`` of the last request."""

    def __init__(
        self,
        compactor: Compactor,
        options: Mapping[str, Any],
        on_result: Callable[[CompactionResult], object] | None,
    ) -> None:
        self.compactor = compactor
        self.result: CompactionResult | None = None
        self._options = options
        self._on_result = on_result
        self._conversations = KnownLists(formats.get(FORMAT))

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """The filter: the view in place of the items; the framework's own list where both are the same."""
        items, system = data.model_data.input, data.model_data.instructions
        with reading("the input or the agent's tools"):
            if is_delta(listed("input", items)):
                return data.model_data
            conversation = self._conversations.of(items)
            tools, model = declared(_tools_of(data.agent)), _name_of(data.agent.model)
        result = await self.compactor.acompact(
            conversation.items, conversation.record, **self._arguments(conversation, system, tools, model)
        )
        await self._take(conversation, result)
        view = result.messages
        if len(view) == len(items) and all(map(operator.is_, view, conversation.items)):
            return data.model_data
        return ModelInputData(input=view, instructions=system)

    async def send(
        self,
        send: Callable[..., Awaitable[Any]],
        items: Sequence[Any],
        *,
        system: str | None,
        tools: Sequence[Any],
        model: str | None,
        endpoint: str,
        max_tokens: int | None,
        ask: Callable[..., Any],
    ) -> Any:
        """The response to the view, or to the smaller one that follows a refusal: ``send(view, max_tokens)``."""
        with reading("the input or the tools"):
            conversation = self._conversations.of(listed("input", items))
            schemas = declared(tools)
        results: list[CompactionResult] = []
        response = await self.compactor.acall(
            send,
            conversation.items,
            conversation.record,
            max_tokens=max_tokens,
            on_result=results.append,
            endpoint=endpoint,
            ask=ask,
            **self._arguments(conversation, system, schemas, model),
        )
        await self._take(conversation, results[-1])
        return response

    def model(self, model: Model | str | None = None) -> CompactingModel:
        """A model with a compaction around each request, and a smaller view after a refusal. ``model``: one of the
        framework's, or a name that it knows. For ``Agent(model=...)``, in place of the filter.
        """
        from agents.models.multi_provider import MultiProvider

        return CompactingModel(model if isinstance(model, Model) else MultiProvider().get_model(model), self.send)

    def provider(self, provider: ModelProvider | None = None) -> CompactingProvider:
        """The same for every model of a run that is given by its name: ``RunConfig(model_provider=...)``. None: the
        framework's own provider. A model that is given as an object is not asked for here: see ``model``.
        """
        from agents.models.multi_provider import MultiProvider

        return CompactingProvider(provider or MultiProvider(), self.send)

    def record(self, items: Sequence[Any]) -> Compaction | None:
        """The record in force for a list of items, as ``result.to_input_list()`` gives it; None if there is none."""
        with reading("the items"):
            return self._conversations.of(listed("items", items)).record

    def _arguments(
        self, conversation: KnownItems, system: str | None, tools: Sequence[Any], model: str | None
    ) -> dict[str, Any]:
        def after(made: Any) -> Any:
            """A summary that is paid for is remembered before anything else can fail."""
            self._conversations.keep(replace(conversation, record=made.compaction))
            hook = self._options["after"]
            return hook(made) if hook is not None else None

        return {
            **self._options,
            "after": after,
            "format": FORMAT,
            "system": system,
            "tools": tools or None,
            "calibration": conversation.calibration,
            "model": model,
        }

    async def _take(self, conversation: KnownItems, result: CompactionResult) -> None:
        self.result = result
        self._conversations.keep(replace(conversation, record=result.compaction, calibration=result.calibration))
        if self._on_result is not None:
            await hand_over(AsyncPorts(), self._on_result, result)


def is_delta(items: Sequence[Any]) -> bool:
    """Whether the provider has some of these items: their beginning (``conversation_id``, ``previous_response_id``),
    where results come first, of calls that stand in it, or those that are named by their ids. There is nothing to
    compact here then.
    """
    first = items[0] if items else None
    begins_elsewhere = isinstance(first, Mapping) and str(first.get("type", "")).endswith("_output")
    return begins_elsewhere or any(map(is_reference, items))


def declared(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Functions, handoffs and tools of MCP servers as they are sent, as far as they say: what a tool of the provider's
    own takes is unknown.
    """
    return [
        {"name": held(tool, name), "description": held(tool, description) or "", "parameters": held(tool, schema)}
        for tool in tools
        for name, description, schema in _DECLARATIONS
        if held(tool, schema) is not None
    ]


_DECLARATIONS = (
    ("name", "description", "params_json_schema"),
    ("tool_name", "tool_description", "input_json_schema"),
    ("name", "description", "inputSchema"),
    ("name", "description", "input_schema"),
)
"""How functions, handoffs and tools of MCP servers (of ``mcp`` 1 and 2) are called, described, and say what they take.
"""


def _tools_of(agent: Any) -> list[Any]:
    """All that an agent may call. Tools of its MCP servers as these listed them last: the framework has just asked."""
    servers = held(agent, "mcp_servers") or ()
    listed_there = [tool for server in servers for tool in held(server, "cached_tools") or ()]
    return [*agent.tools, *(held(agent, "handoffs") or ()), *listed_there]


def _name_of(model: Any) -> str | None:
    name = model if isinstance(model, str) else held(model, "model")
    return name if isinstance(name, str) else None
