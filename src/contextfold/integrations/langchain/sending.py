"""How a thread is sent to its model: what goes with the messages, how much the model takes, and what is made of a list
that it would refuse.

What belongs here: reading these out of a model request, cheaply enough for every call, and what of them the state of a
thread remembers, because ``before_model`` sees no request. What does not: counting (``contextfold.tokens``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from contextfold.calls.same import NOT_FOR_A_SUMMARY, is_shaped
from contextfold.calls.thinking import thinking_beside, with_thinking_set
from contextfold.conversation.history import History
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.models import profile_window
from contextfold.record.view import build
from contextfold.tiers import TIERS
from contextfold.tokens import TokenCounter

KEY = "_contextfold_sending"
"""Where a thread's state remembers how its last model call was sent."""

_declared: Bounded[tuple[BaseTool, dict[str, Any]]] = Bounded(512)
"""id of a tool -> the tool, kept so that its id stays its own, and its declaration, which takes a millisecond."""


def with_update(response: Any, update: Mapping[str, Any] | None) -> Any:
    """The response of a model call, with an update of the state where there is something new to remember."""
    if not update:
        return response
    if not isinstance(response, ModelResponse):
        response = ModelResponse(result=[response])
    return ExtendedModelResponse(response, Command(update=dict(update)))


def for_summary(
    request: ModelRequest[Any], messages: list[Any], whole: bool, history: Sequence[Any]
) -> ModelRequest[Any] | None:
    """The request with messages that ask for a summary: ``whole``, as a view of ``history`` would be sent itself, or
    with these messages alone. None for a whole one whose answer could be no summary.
    """
    settings = {name: value for name, value in request.model_settings.items() if name not in NOT_FOR_A_SUMMARY}
    if settings != request.model_settings:
        request = request.override(model_settings=settings)
    if of_model := _not_for_a_summary(request.model):
        request = request.override(model=request.model.model_copy(update=of_model))
    if not whole:
        return request.override(
            messages=messages, system_message=None, tools=[], tool_choice=None, response_format=None
        )
    shaped = {"tool_choice": request.tool_choice, **settings}
    # A schema becomes a tool that must be called, or a format of the answer.
    is_plain = request.response_format is None and not is_shaped(shaped)
    return with_view(request, messages, history) if is_plain else None


def _not_for_a_summary(model: Any) -> dict[str, Any]:
    """What of a chat model's own fields changes where it is asked for a summary, and to what."""
    if not isinstance(model, BaseChatModel):  # ``init_chat_model`` gives one that is made for each request
        return {}
    fields = type(model).model_fields
    usual = {name: fields[name].get_default(call_default_factory=True) for name in _OF_ANSWERS if name in fields}
    changed = {name: value for name, value in usual.items() if getattr(model, name) not in (None, value)}
    more = getattr(model, "model_kwargs", None)
    if isinstance(more, Mapping) and any(name in more for name in NOT_FOR_A_SUMMARY):
        changed["model_kwargs"] = {name: value for name, value in more.items() if name not in NOT_FOR_A_SUMMARY}
    return changed


_OF_ANSWERS = ("stop", "stop_sequences", "n", "logit_bias", "response_modalities", "modalities", "audio")
"""What chat models have under these names shapes their answers, and is no part of a prompt."""


def with_view(request: ModelRequest[Any], view: list[Any], history: Sequence[Any]) -> ModelRequest[Any]:
    """The request with a view of ``history`` for its messages, and with the thinking that Claude takes beside it."""
    changed: dict[str, Any] = {"messages": view}
    fields = {name: getattr(request.model, name, None) for name in _THINKING}
    if of_model := _thinking_beside(fields, view, history):
        changed["model"] = request.model.model_copy(update=of_model)
    settings = request.model_settings
    if asked := _thinking_beside(settings, view, history):
        kept = {name: value for name, value in {**settings, **asked}.items() if value is not None}
        changed["model_settings"] = kept
    return request.override(**changed)


_THINKING = ("thinking", "context_management")
"""What ``ChatAnthropic`` has under these names goes into its requests."""


def _thinking_beside(fields: Mapping[str, Any], view: Sequence[Any], history: Sequence[Any]) -> dict[str, Any]:
    """What of these fields changes beside the view."""
    return with_thinking_set(fields, thinking_beside(fields.get("thinking"), view, history, "langchain"))


def shortened(messages: Sequence[AnyMessage], sizes: Sequence[int], excess: int) -> list[AnyMessage]:
    """The messages without ``excess`` tokens, as far as results of tools have them: the largest are shortened, with a
    mark and a count. ``sizes``: tokens of each message.
    """
    sent = list(messages)
    for size, n in sorted(zip(sizes, range(len(sent)), strict=True), key=lambda pair: (-pair[0], pair[1])):
        if excess <= 0 or size < LEAST_SHORTENED:
            break
        if isinstance(sent[n], ToolMessage):
            room = max(LEAST_SHORTENED // 2, size - excess)
            sent[n] = _shorter(sent[n], room / size)
            excess -= size - room
    return sent


LEAST_SHORTENED = 800
"""Tokens. Smaller results would hardly get shorter."""


def _shorter(message: AnyMessage, share: float) -> AnyMessage:
    decoded = FORMAT.decode(message)
    # of our estimate, as a counter of the user's may count characters; a tenth less, for the mark and what is around it
    result = TIERS["oversized"].reduce(decoded.parts[0], int(TokenCounter().message(decoded) * share * 0.9))
    return message if result is None else FORMAT.encode([decoded.with_parts((result,))])[0]


@dataclass(frozen=True, slots=True)
class Sending:
    """``overhead``: tokens of ``system`` and ``tools`` by our estimate. ``window``: input tokens of the agent's model
    by its profile, which need not be the model that writes summaries; None if it is not known.
    """

    overhead: int = 0
    window: int | None = None
    system: SystemMessage | None = None
    tools: Sequence[Any] = ()

    @classmethod
    def of(cls, request: ModelRequest[Any], counter: TokenCounter) -> Sending:
        """Of a request."""
        text = system_text(request)
        overhead = (counter.text(text) if text else 0) + counter.tools(declarations(request.tools))
        return cls(overhead, profile_window(request.model), request.system_message, request.tools)

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Sending:
        """Of the thread's last model call, as far as its state knows it."""
        known = state.get(KEY)
        return cls(*known) if known else cls()

    def to_state(self) -> list[int | None]:
        """What a state remembers of it."""
        return [self.overhead, self.window]


def valid(messages: list[AnyMessage]) -> list[AnyMessage]:
    """The messages as a provider takes them: the same list, unless calls and results have come apart in it."""
    if _is_paired(messages):
        return messages
    history = History(FORMAT, TokenCounter())
    history.extend(messages)
    return build(history, None, sending=True).wire


def _is_paired(messages: Sequence[AnyMessage]) -> bool:
    """Whether all results of all calls stand right behind them, and no others."""
    waiting: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return False
            waiting.discard(message.tool_call_id)
            continue
        if waiting:
            return False
        if isinstance(message, AIMessage):
            waiting = {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}
            # Two calls share an id, so the ids do not tell which result is whose.
            if len(waiting) < len(message.tool_calls) + len(message.invalid_tool_calls):
                return False
    return not waiting


def system_text(request: ModelRequest[Any]) -> str | None:
    """The text of the system prompt; None where there is none."""
    return None if request.system_message is None else str(request.system_message.text)


def declarations(tools: Sequence[BaseTool | dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools as they are declared to the model."""
    return [tool if isinstance(tool, dict) else _declaration(tool) for tool in tools]


def _declaration(tool: BaseTool) -> dict[str, Any]:
    known = _declared.get(id(tool))
    if known is not None and known[0] is tool:
        return known[1]
    declared = convert_to_openai_tool(tool)
    if (tool.extras or {}).get("defer_loading") is True:
        declared = {**declared, "defer_loading": True}
    _declared.put(id(tool), (tool, declared))
    return declared
