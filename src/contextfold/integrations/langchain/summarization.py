"""``SummarizationMiddleware``: change one import, and nothing is lost any more.

What belongs here: the hooks of LangChain's class with the same constructor, attributes and messages, and when a summary
is due. What does not: making it (``folding``), counting (``counting``), the text of the message (``layout``).

It is a subclass of the class that it stands in for, so that ``isinstance`` holds, and arguments, attributes, deprecated
names and error texts are those of the release that is installed. Private methods that subclasses call are here as well,
and those that subclasses override are asked (``overriding``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor
from typing import Any, Literal

from langchain.agents.middleware import summarization as langchain_summarization
from langchain.agents.middleware.types import (
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.types import Command

from contextfold.errors import CannotFit, is_control_flow
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.constructor import DEFAULT_KEEP, as_template, is_known, renamed, whole, writers
from contextfold.integrations.langchain.counting import Measure, estimated, langchain_counter, reported_tokens
from contextfold.integrations.langchain.folding import Folding
from contextfold.integrations.langchain.hidden import hidden_from_streams, hide
from contextfold.integrations.langchain.models import window_of
from contextfold.integrations.langchain.overhead import declarations, system_text
from contextfold.integrations.langchain.overriding import DUE, as_overridden, is_overridden, legal_cut, warn_of_unused
from contextfold.integrations.langchain.rolling import WrongSummary
from contextfold.integrations.langchain.state import schema
from contextfold.integrations.langchain.threads import ThreadKey, thread_key
from contextfold.observe import Event, Observer
from contextfold.policy import Clause, Size, parse_size, parse_trigger
from contextfold.ports import AsyncPorts, Ports, SyncPorts, run
from contextfold.summary.options import SummaryOptions

DEFAULT_SUMMARY_PROMPT = langchain_summarization.DEFAULT_SUMMARY_PROMPT
DEFAULT_CHUNK = 4000
NO_HISTORY = "No previous conversation history."
"""What LangChain's class answers where it is asked to summarize nothing. No pass of ours ever asks."""

OVERHEAD_KEY = "_contextfold_overhead"
"""Where the state keeps the tokens of system prompt and tools: ``before_model`` does not see them."""

Counting = Literal["contextfold", "langchain"]


class SummarizationMiddleware(langchain_summarization.SummarizationMiddleware):
    """Replaces older messages of a thread by a summary when a trigger fires.

    Args:
        model: the chat model that writes summaries, or its name.
        trigger: one size, a mapping (all must hold), a list (any may hold), or None (never).
        keep: the newest part that stays; the pass keeps less where it could not end below the trigger otherwise.
        token_counter: tokens of a list of messages. Left as it is: our estimate, which knows scripts and media.
        summary_prompt: with ``{messages}``; used for every request, those that update and merge summaries included.
        trim_tokens_to_summarize: tokens of conversation in one request; more is read in several. None: no limit but
            the summarizer's own. Nothing is discarded either way.
        summarizer: writes in place of ``model``: a chat model, its name, or a runnable or callable on messages.
        counting: ``"langchain"`` counts as LangChain does: 3.3 characters per token for Anthropic, 4 otherwise.
        instructions: added to every request to the summarizer.
        summary: time limits, retries, bisection and length of summaries; for what has no argument of its own.
        evidence: whether lines of the evicted messages are quoted below the prose, word for word.
        on_event: called with each ``Event``.

    A summary that fails, is blank or cannot be used changes nothing: the events say why, and the next call tries again.
    """

    state_schema = schema(OVERHEAD_KEY, int)

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        trigger: Any = None,
        keep: Any = DEFAULT_KEEP,
        token_counter: Callable[..., int] = count_tokens_approximately,
        summary_prompt: str = DEFAULT_SUMMARY_PROMPT,
        trim_tokens_to_summarize: int | None = DEFAULT_CHUNK,
        summarizer: Any = None,
        counting: Counting = "contextfold",
        instructions: str = "",
        summary: SummaryOptions | None = None,
        evidence: bool = True,
        on_event: Callable[[Event], object] | None = None,
        **deprecated_kwargs: Any,
    ) -> None:
        trigger, keep = renamed(trigger, keep, deprecated_kwargs)
        if counting not in ("contextfold", "langchain"):
            raise ValueError(f"counting is {counting!r}: it must be 'contextfold' or 'langchain'")
        known = is_known(trigger)
        super().__init__(
            model,
            trigger=trigger if known else None,
            keep=keep,
            token_counter=token_counter,
            summary_prompt=summary_prompt,
            trim_tokens_to_summarize=trim_tokens_to_summarize,
        )
        if not known:
            self.trigger = trigger
        self._writer, self.summarizer = writers(self.model, summarizer)
        is_default = token_counter is count_tokens_approximately
        if is_default:
            self.token_counter = langchain_counter(self.model) if counting == "langchain" else estimated
        self._partial_token_counter = self.token_counter
        self._measured = Measure.of(self.token_counter, adds_up=is_default)
        self._clauses = parse_trigger(whole(self.trigger, ceil))
        self._on_event = on_event
        self.instructions = instructions
        self.summary = summary or SummaryOptions()
        self.evidence = evidence
        self._folding(self._measure)  # says at once what is wrong
        warn_of_unused(self, SummarizationMiddleware)
        if OVERHEAD_KEY not in type(self).state_schema.__annotations__:
            self.state_schema = schema(OVERHEAD_KEY, int, type(self).state_schema)

    # ---- hooks ----

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The update that replaces older messages by a summary, or None."""
        with hidden_from_streams():
            folded = run(self._folded(state["messages"], _overhead(state), SyncPorts()))
        return _update(folded)

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """``before_model`` for async agents."""
        with hidden_from_streams():
            folded = await self._folded(state["messages"], _overhead(state), AsyncPorts())
        return _update(folded)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Count what is sent beside the messages; where it grew, a summary may be due that ``before_model`` missed."""
        overhead, folded = self._overhead_of(request), None
        if overhead > _overhead(request.state) and not is_overridden(self, SummarizationMiddleware, "before_model"):
            with hidden_from_streams():
                folded = run(self._folded(request.messages, overhead, SyncPorts()))
        response = handler(request.override(messages=folded) if folded else request)
        return _answered(response, request, overhead, folded)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """``wrap_model_call`` for async agents."""
        ports, folded = AsyncPorts(), None
        overhead = await ports.compute(self._overhead_of, request)
        if overhead > _overhead(request.state) and not is_overridden(self, SummarizationMiddleware, "abefore_model"):
            with hidden_from_streams():
                folded = await self._folded(request.messages, overhead, ports)
        response = await handler(request.override(messages=folded) if folded else request)
        return _answered(response, request, overhead, folded)

    # ---- what subclasses call and override ----

    def _create_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
        """A summary of all of these messages; raises what the summarizer raises, and ``SummaryFailed``."""
        if not messages_to_summarize:
            return NO_HISTORY
        with hidden_from_streams():
            return run(self._whole_summary().summary_of(messages_to_summarize, self._observer(), SyncPorts()))

    async def _acreate_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
        """``_create_summary`` for async code."""
        if not messages_to_summarize:
            return NO_HISTORY
        with hidden_from_streams():
            return await self._whole_summary().summary_of(messages_to_summarize, self._observer(), AsyncPorts())

    def _whole_summary(self) -> Folding:
        """How to summarize outside of a pass, which would put evidence below the prose by itself."""
        is_alone = is_overridden(self, SummarizationMiddleware, "before_model", "abefore_model")
        return replace(self._folding(self._measure), has_evidence=self.evidence and is_alone)

    def _should_summarize(self, messages: list[AnyMessage], total_tokens: int) -> bool:
        """Whether the trigger fires for messages of ``total_tokens``."""
        return self._clause(messages, total_tokens, 0) is not None

    @staticmethod
    def _find_safe_cutoff_point(messages: list[AnyMessage], cutoff_index: int) -> int:
        """The cutoff, moved back until no call is parted from its results, wherever they stand.

        Results without a call never lead what stays: the cutoff moves on behind them.
        """
        return legal_cut(messages, cutoff_index)

    def _trim_messages_for_summary(self, messages: list[AnyMessage]) -> list[AnyMessage]:
        """All of them: nothing is trimmed on the way to the summarizer."""
        return messages

    # ---- one algorithm, both colors ----

    async def _folded(self, messages: list[AnyMessage], overhead: int, ports: Ports) -> list[AnyMessage] | None:
        """The messages that replace these; None where no summary is due, or none could be had."""
        self._ensure_message_ids(messages)
        tokens = overhead + await ports.compute(self._tokens, thread_key(messages), messages)
        fired = await ports.compute(self._fired, messages, tokens, overhead)
        if fired is None:
            return None
        return await self._fold(messages, *fired, tokens, overhead, ports)

    async def _fold(
        self,
        messages: list[AnyMessage],
        trigger: str,
        threshold: int | None,
        tokens: int,
        overhead: int,
        ports: Ports,
    ) -> list[AnyMessage] | None:
        """The pass. A summary that fails, is blank or cannot be used changes nothing: the events say why."""
        observer = self._observer()
        asked = await ports.compute(self._asked, messages, isinstance(ports, AsyncPorts))
        if asked is None:
            return None
        try:
            return await asked.fold(
                messages,
                trigger=trigger,
                threshold=threshold,
                tokens=tokens,
                overhead=overhead,
                observer=observer,
                ports=ports,
            )
        except CannotFit as error:
            observer.emit("skipped", str(error), tokens=tokens)
            return None
        except Exception as error:  # a summary that could not be had: the engine has said so in an event
            if is_control_flow(error) or isinstance(error, WrongSummary):
                raise
            return None

    def _observer(self) -> Observer:
        return Observer(self._on_event)

    @property
    def _measure(self) -> Measure:
        """Sizes by ``token_counter``, which may have been replaced."""
        if self._measured.by is not self.token_counter:
            self._measured = Measure.of(self.token_counter, adds_up=False)
        return self._measured

    def _folding(self, measure: Measure) -> Folding:
        """How to fold, by the attributes as they are now."""
        return Folding(
            keep=parse_size(whole(self.keep, floor)),
            writer=self._writer,
            reader=self.summarizer,
            prompt=as_template(self.summary_prompt),
            chunk_tokens=self.trim_tokens_to_summarize,
            instructions=self.instructions,
            summary=self.summary,
            has_evidence=self.evidence,
            counter=measure.counter,
            window=window_of(self.model),
        )

    def _asked(self, messages: list[AnyMessage], is_async: bool) -> Folding | None:
        """How to fold these messages; None where a subclass keeps them all."""
        folding = self._folding(self._measure)
        return as_overridden(folding, self, SummarizationMiddleware, messages, is_async=is_async)

    def _tokens(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> int:
        return self._measure.tokens(key, messages)

    def _fired(self, messages: list[AnyMessage], tokens: int, overhead: int) -> tuple[str, int | None] | None:
        """(what triggers, in words; the tokens that a pass must end below); None where no summary is due."""
        clause = self._clause(messages, tokens, overhead)
        is_due = clause is not None
        if is_overridden(self, SummarizationMiddleware, *DUE):
            is_due = self._should_summarize(messages, tokens)
        if not is_due:
            return None
        if clause is None:
            return "_should_summarize", None
        return str(clause), self._threshold(clause, messages, tokens, overhead)

    def _clause(self, messages: Sequence[AnyMessage], tokens: int, overhead: int) -> Clause | None:
        """The clause of the trigger that holds; the provider's own count may reach it too."""
        largest = max(tokens, self._reported(messages)) if self._clauses else tokens
        for clause in self._clauses:
            if all(self._is_reached(size, len(messages), largest, overhead) for size in clause.sizes):
                return clause
        return None

    def _is_reached(self, size: Size, messages: int, tokens: int, overhead: int) -> bool:
        if size.unit == "messages":
            return messages >= size.value
        return tokens >= self._tokens_of(size, overhead)

    def _tokens_of(self, size: Size, overhead: int) -> int:
        """A size in tokens. System prompt and tools that alone take most of it leave half of it to the messages: a
        trigger that no summary could ever get below would ask for one at every call.
        """
        profile = self._get_profile_limits()
        if size.unit == "fraction":
            return max(1, int(size.value * (profile or 0)))
        tokens = max(int(size.value), overhead + int(size.value) // 2)
        return min(tokens, max(int(size.value), int(0.9 * profile))) if profile else tokens

    def _threshold(self, clause: Clause, messages: Sequence[AnyMessage], tokens: int, overhead: int) -> int | None:
        """Tokens that a pass must end below. None where only numbers of messages trigger, and where the sizes of single
        messages do not add up to what the user's counter says of the list.
        """
        total = overhead + sum(self._measure.sizes.of(thread_key(messages), messages))
        if abs(total - tokens) > 0.1 * tokens:
            return None
        return min((self._tokens_of(size, overhead) for size in clause.sizes if size.unit != "messages"), default=None)

    def _reported(self, messages: Sequence[AnyMessage]) -> int:
        """What the provider reported last, unless that was before the summary that stands in the history."""
        newest = layout.newest_assistant(messages)
        if newest is None or (newest.id is not None and newest.id == layout.read(messages).usage_until):
            return 0
        return reported_tokens(newest, self.model)

    def _overhead_of(self, request: ModelRequest[Any]) -> int:
        """Tokens of the system prompt and the tools of a request."""
        system, counter = system_text(request), self._measure.counter
        return (counter.text(system) if system else 0) + counter.tools(declarations(request.tools))


def _overhead(state: Mapping[str, Any]) -> int:
    """Tokens of system prompt and tools as far as they are known."""
    return int(state.get(OVERHEAD_KEY) or 0)


def _update(folded: list[AnyMessage] | None) -> dict[str, Any] | None:
    return None if folded is None else {"messages": _replacing(folded)}


def _replacing(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    """The update of a thread's messages that puts these in place of all. No stream shows the summary as a message."""
    for message in messages:
        if layout.is_summary(message):
            hide(message)
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages]


def _answered(response: Any, request: ModelRequest[Any], overhead: int, folded: list[AnyMessage] | None) -> Any:
    """The response, with an update of the state where there is something new in it."""
    update: dict[str, Any] = {} if overhead == _overhead(request.state) else {OVERHEAD_KEY: overhead}
    if not isinstance(response, ModelResponse):
        response = ModelResponse(result=[response])
    if folded:
        update["messages"] = [*_replacing(folded), *response.result]
    return ExtendedModelResponse(response, Command(update=update)) if update else response
