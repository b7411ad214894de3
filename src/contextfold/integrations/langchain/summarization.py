"""``SummarizationMiddleware``: change one import, and nothing is lost any more.

What belongs here: the hooks of LangChain's class with the same constructor, attributes and messages, and when a summary
is due. What does not: making it (``folding``), counting (``counting``), the text of the message (``layout``).

It is a subclass of the class that it stands in for, so that ``isinstance`` holds, and arguments, attributes, deprecated
names and error texts are those of the release that is installed. Private methods that subclasses call are here as well,
and those that subclasses override are asked (``overriding``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from math import ceil, floor
from operator import is_
from typing import Any, Unpack

from langchain.agents.middleware import summarization as langchain_summarization
from langchain.agents.middleware.types import (
    AgentState,
    ModelRequest,
    ModelResponse,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from contextfold.calls.single_flight import SingleFlight
from contextfold.errors import PolicyError, plain_functions, plain_number, shown
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.constructor import (
    DEFAULT_KEEP,
    Counting,
    DeprecatedNames,
    DropInTrigger,
    as_template,
    is_known,
    renamed,
    whole,
    writers,
)
from contextfold.integrations.langchain.counting import Measure, estimated, langchain_counter, reported_tokens
from contextfold.integrations.langchain.evicted import LeftMessages
from contextfold.integrations.langchain.folding import DueFold, FoldedThread, Folding, SummarizerFailed
from contextfold.integrations.langchain.hidden import hidden_from_streams, hide
from contextfold.integrations.langchain.models import profile_window, unbound, window_of
from contextfold.integrations.langchain.overriding import (
    BUILD,
    DUE,
    as_overridden,
    is_overridden,
    legal_cut,
    warn_of_unused,
)
from contextfold.integrations.langchain.paid import PaidFolds, in_place
from contextfold.integrations.langchain.sending import KEY as STATE_KEY
from contextfold.integrations.langchain.sending import Sending, shortened, valid, with_update, with_view
from contextfold.integrations.langchain.state import schema
from contextfold.integrations.langchain.threads import ThreadKey, thread_key
from contextfold.observe import Event, Observer
from contextfold.policy import Clause, Size, Unit, parse_size, parse_trigger
from contextfold.ports import AsyncPorts, Ports, SyncPorts, run
from contextfold.summary.options import SummaryOptions

DEFAULT_SUMMARY_PROMPT = langchain_summarization.DEFAULT_SUMMARY_PROMPT


class _Unchosen(int):
    """A default that a caller may choose as well: only the caller's own number is used as it is."""


DEFAULT_CHUNK = _Unchosen(4000)
"""LangChain's default of ``trim_tokens_to_summarize``. Where the window of the model that writes is known, one request
takes up to half of that: each further one is paid for with another summary, and is one more time that it is said again.
"""

NO_HISTORY = "No previous conversation history."
"""What LangChain's class answers where it is asked to summarize nothing. No pass of ours ever asks."""

FULL = 0.95
"""Share of the window above which what ``keep`` names is cut into. The remaining 5 % covers estimate error."""


class SummarizationMiddleware(langchain_summarization.SummarizationMiddleware):
    """Replaces older messages of a thread by a summary when a trigger fires.

    Args:
        model: the chat model that writes summaries, or its name.
        trigger: one size, a mapping (all must hold), a list (any may hold), or None (never).
        keep: the newest part that stays; the pass keeps less where it could not end below the trigger otherwise.
        token_counter: tokens of a list of messages. Left as it is: our estimate, which knows scripts and media.
        summary_prompt: with ``{messages}``; used for every request, those that update and merge summaries included.
        trim_tokens_to_summarize: tokens of conversation in one request; more is read in several. None: no limit but
            the summarizer's own. Nothing is discarded either way. Not given: half of the window that the model's
            profile tells, and 4,000 where it tells none.
        summarizer: writes in place of ``model``: a chat model, its name, or a runnable or callable on messages.
        counting: ``"langchain"`` counts as LangChain does: 3.3 characters per token for Anthropic, 4 otherwise.
        instructions: added to every request to the summarizer.
        summary: time limits, retries, bisection and length of summaries; for what has no argument of its own.
        evidence: whether lines of the evicted messages are quoted below the prose, word for word.
        on_event: called with each ``Event``.

    A summary that fails, is blank or cannot be used changes nothing: the events say why, and the next call tries again.
    Where the thread no longer fits the window that the model's profile tells, the built-in summary stands in.
    """

    state_schema = schema(STATE_KEY, list)
    _frame_tokens = 40
    """Of a summary message without prose and evidence, in the language in which it takes most."""

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        trigger: DropInTrigger = None,
        keep: tuple[Unit, float] = DEFAULT_KEEP,
        token_counter: Callable[..., int] = count_tokens_approximately,
        summary_prompt: str = DEFAULT_SUMMARY_PROMPT,
        trim_tokens_to_summarize: float | None = DEFAULT_CHUNK,
        summarizer: Any = None,
        counting: Counting = "contextfold",
        instructions: str = "",
        summary: SummaryOptions | None = None,
        evidence: bool = True,
        on_event: Callable[[Event], object] | None = None,
        **deprecated_kwargs: Unpack[DeprecatedNames],
    ) -> None:
        when, kept = renamed(trigger, keep, deprecated_kwargs)
        if counting not in ("contextfold", "langchain"):
            raise ValueError(f"counting is {counting!r}: it must be 'contextfold' or 'langchain'")
        plain_functions(on_event=on_event, token_counter=token_counter)
        for name, value, kind, wanted in (
            ("instructions", instructions, str, "a text"),
            ("summary_prompt", summary_prompt, str, "a text"),
            ("summary", summary, SummaryOptions | None, "a SummaryOptions, or None"),
            ("evidence", evidence, bool, "True or False"),
        ):
            if not isinstance(value, kind):
                raise PolicyError(f"{name} is {shown(value)}: it must be {wanted}")
        trimmed = plain_number(trim_tokens_to_summarize)
        if trim_tokens_to_summarize is not None and trimmed is None:
            raise PolicyError(
                f"trim_tokens_to_summarize is {shown(trim_tokens_to_summarize)}: it must be a number of tokens, or None"
            )
        known = is_known(when)
        super().__init__(
            model,
            trigger=when if known else None,
            keep=kept,
            token_counter=token_counter,
            summary_prompt=summary_prompt,
            trim_tokens_to_summarize=trimmed,  # type: ignore[arg-type]  # LangChain takes 0.4 * window, too
        )
        if not known:
            self.trigger = when
        self._writer, self.summarizer = writers(self.model, summarizer)
        self._placed_by_langchain = getattr(self, "_summary_model", None)
        is_default = token_counter is count_tokens_approximately
        if is_default:
            self.token_counter = langchain_counter(self.model) if counting == "langchain" else estimated
        self._partial_token_counter = self.token_counter
        self._measured = Measure.of(self.token_counter, adds_up=is_default)
        self._clauses = parse_trigger(whole(self.trigger, ceil))
        self._on_event = on_event
        self._evicted = LeftMessages()
        self._paid = PaidFolds()
        self._flights = SingleFlight()
        self.instructions = instructions
        self.summary = summary or SummaryOptions()
        self.evidence = evidence
        self._was_said = False
        self._folding(Sending())  # says at once what is wrong
        warn_of_unused(self, SummarizationMiddleware)
        if STATE_KEY not in type(self).state_schema.__annotations__:
            self.state_schema = schema(STATE_KEY, list, type(self).state_schema)

    # ---- hooks ----

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The update that replaces older messages by a summary, or None."""
        with hidden_from_streams():
            folded = run(self._folded(state["messages"], Sending.of_state(state), SyncPorts(), is_first=True))
        return _update(folded)

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """``before_model`` for async agents."""
        with hidden_from_streams():
            folded = await self._folded(state["messages"], Sending.of_state(state), AsyncPorts(), is_first=True)
        return _update(folded)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """See how the thread is sent; where that changed, a summary may be due that ``before_model`` missed."""
        sending, folded = Sending.of(request, self._measure.counter), None
        if self._may_be_due(sending, request, "before_model"):
            with hidden_from_streams():
                folded = run(self._folded(request.messages, sending, SyncPorts()))
        response = handler(self._to_send(request, folded, sending))
        return self._answered(response, request, sending, folded)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """``wrap_model_call`` for async agents."""
        ports, folded = AsyncPorts(), None
        sending = await ports.compute(Sending.of, request, self._measure.counter)
        if self._may_be_due(sending, request, "abefore_model"):
            with hidden_from_streams():
                folded = await self._folded(request.messages, sending, ports)
        response = await handler(await ports.compute(self._to_send, request, folded, sending))
        return await ports.compute(self._answered, response, request, sending, folded)

    def _to_send(
        self, request: ModelRequest[Any], folded: list[AnyMessage] | None, sending: Sending
    ) -> ModelRequest[Any]:
        """The request with messages that a provider takes: a run that was interrupted leaves calls without results."""
        messages = self._fitting(valid(folded or request.messages), sending)
        is_whole = messages is request.messages and not any(map(layout.is_summary, messages))
        return request if is_whole else with_view(request, messages, request.messages)

    def _fitting(self, messages: list[AnyMessage], sending: Sending) -> list[AnyMessage]:
        """The messages inside the model's window, where it is known: results larger than all that can leave are sent
        shortened. The thread keeps them, and a later summary reads them whole.
        """
        window = self._window(sending)
        tokens = sending.overhead + self._tokens(thread_key(messages), messages) if window is not None else 0
        if window is None or tokens <= window or not self._adds_up(messages, tokens - sending.overhead):
            return messages
        sizes = self._measure.sizes.of(thread_key(messages), messages)
        sent = shortened(messages, sizes, tokens - int(FULL * window))
        saved = sum(sizes) - sum(self._measure.sizes.of(thread_key(sent), sent))
        text = f"{tokens:,} tokens do not fit the window of {window:,}: results of tools are sent with {saved:,} fewer"
        self._observer().emit("tier_applied", text, tier="oversized", saved=saved)
        return sent

    def _may_be_due(self, sending: Sending, request: ModelRequest[Any], hook: str) -> bool:
        """Whether ``before_model`` knew of less overhead or of another window. A hook of a subclass is left alone.

        Not where a middleware outside of this one sends other messages than the thread has: what replaces the thread
        is made of the thread's own messages, and that ``before_model`` does at the next call.
        """
        known = Sending.of_state(request.state)
        is_news = sending.overhead > known.overhead or sending.window != known.window
        thread = request.state.get("messages") or []
        is_thread = len(thread) == len(request.messages) and all(map(is_, thread, request.messages))
        return is_news and is_thread and not is_overridden(self, SummarizationMiddleware, hook)

    def _answered(
        self, response: Any, request: ModelRequest[Any], sending: Sending, folded: list[AnyMessage] | None
    ) -> Any:
        """The response, with an update of the state where there is something new in it."""
        update: dict[str, Any] = {}
        if sending.to_state() != Sending.of_state(request.state).to_state():
            update[STATE_KEY] = sending.to_state()
        changes = None
        # A subclass may give the messages that it builds ids of their own.
        if folded and not is_overridden(self, SummarizationMiddleware, BUILD):
            changes = in_place(request.messages, folded)
        if folded and changes is not None:
            for message in changes:
                if layout.is_summary(message):
                    hide(message)
            if (known := self._evicted.behind(folded)) is not None:
                self._evicted.put(changes, known)
            update["messages"] = changes
        return with_update(response, update)

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
        """How to summarize outside of a pass."""
        # A pass would put evidence below the prose by itself.
        is_alone = is_overridden(self, SummarizationMiddleware, "before_model", "abefore_model")
        return replace(self._folding(Sending()), has_evidence=self.evidence and is_alone)

    def _should_summarize(self, messages: list[AnyMessage], total_tokens: int) -> bool:
        """Whether the trigger fires for messages of ``total_tokens``."""
        return self._clause(messages, total_tokens, Sending()) is not None

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

    async def _folded(
        self, messages: list[AnyMessage], sending: Sending, ports: Ports, *, is_first: bool = False
    ) -> list[AnyMessage] | None:
        """The messages that replace these; None where no summary is due, or none could be had.

        ``is_first``: a call of the model begins, so a summarizer that failed for the last one is asked again.
        """
        self._ensure_message_ids(messages)
        if is_first:
            self._paid.forget_failure(messages)
        tokens, due = await ports.compute(self._sized, messages, sending)
        if due is None:
            return None
        thread, paid = messages, await ports.compute(self._paid.instead_of, messages)
        if paid is not None:
            messages = paid
            tokens, due = await ports.compute(self._sized, messages, sending)
            if due is None:
                return paid
        due = replace(due, has_failed=self._paid.has_failed(messages))
        folded = await self._fold(messages, self._evicted.behind(messages), due, tokens, sending, ports)
        if isinstance(folded, SummarizerFailed):
            self._paid.keep_failure(messages)
            return paid
        if folded is None:
            return paid
        if self.evidence:
            self._ensure_message_ids(folded.messages)
            self._evicted.put(folded.messages, folded.evicted.wire)
        # Where no checkpoint keeps what the state is then, the caller's next run begins with all messages again.
        self._paid.keep(thread, folded.messages)
        return folded.messages

    async def _fold(
        self,
        messages: list[AnyMessage],
        evicted: Sequence[AnyMessage] | None,
        due: DueFold,
        tokens: int,
        sending: Sending,
        ports: Ports,
    ) -> FoldedThread | SummarizerFailed | None:
        """The pass. A summary that fails, is blank or cannot be used changes nothing: the events say why.

        ``evicted``: what the summary among the messages stands for; None where that is not known.
        """
        asked = await ports.compute(self._asked, messages, sending, isinstance(ports, AsyncPorts))
        if asked is None:
            return None
        known = None
        if evicted and asked.has_evidence:
            known = await ports.compute(self._evicted.take, evicted, asked.counter)
        folded = await asked.fold(messages, known, due, tokens, sending.overhead, self._observer(), ports)
        if isinstance(folded, FoldedThread):
            self._evicted.give(folded.evicted)
        return folded

    def _observer(self) -> Observer:
        return Observer(self._on_event)

    @property
    def _measure(self) -> Measure:
        """Sizes by ``token_counter``, which may have been replaced."""
        if self._measured.by is not self.token_counter:
            self._measured = Measure.of(self.token_counter, adds_up=False)
        return self._measured

    def _folding(self, sending: Sending) -> Folding:
        """How to fold, by the attributes as they are now."""
        return Folding(
            keep=parse_size(whole(self.keep, floor)),
            writer=self._asked_model,
            reader=self.summarizer,
            prompt=as_template(self.summary_prompt),
            chunk_tokens=self._chunk_tokens(),
            instructions=self.instructions,
            summary=self.summary,
            has_evidence=self.evidence,
            counter=self._measure.counter,
            window=self._window(sending) or window_of(self.model),
            frame=self._frame_tokens,
            flights=self._flights,
            is_news=self._is_news,
        )

    @property
    def _asked_model(self) -> Any:
        """The chat model that writes. Subclasses put another one into the attribute that LangChain's class asks."""
        placed = getattr(self, "_summary_model", None)
        return self._writer if placed is None or placed is self._placed_by_langchain else placed

    def _chunk_tokens(self) -> int | None:
        """How much of the conversation one request takes; None: all of it."""
        chosen, window = self.trim_tokens_to_summarize, profile_window(unbound(self._asked_model))
        return chosen if window is None or not isinstance(chosen, _Unchosen) else max(chosen, window // 2)

    def _is_news(self) -> bool:
        """Whether this is the first time."""
        # Once for each middleware, since its settings are what it is about.
        was_said, self._was_said = self._was_said, True
        return not was_said

    def _asked(self, messages: list[AnyMessage], sending: Sending, is_async: bool) -> Folding | None:
        """How to fold these messages; None where a subclass keeps them all."""
        folding = self._folding(sending)
        return as_overridden(folding, self, SummarizationMiddleware, messages, is_async=is_async)

    def _sized(self, messages: list[AnyMessage], sending: Sending) -> tuple[int, DueFold | None]:
        """How large a thread is as it is sent, and why a summary of it is due."""
        tokens = sending.overhead + self._tokens(thread_key(messages), messages)
        return tokens, self._due(messages, tokens, sending)

    def _tokens(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> int:
        return self._measure.tokens(key, messages)

    def _due(self, messages: list[AnyMessage], tokens: int, sending: Sending) -> DueFold | None:
        """Why a summary is due, and what it is measured by; None where none is."""
        clause = self._clause(messages, tokens, sending)
        is_due = clause is not None
        if is_overridden(self, SummarizationMiddleware, *DUE):
            is_due = self._should_summarize(messages, tokens)
        if not is_due:
            return None
        adds_up = self._adds_up(messages, tokens - sending.overhead)
        window = self._window(sending)
        limit = int(FULL * window) if window is not None and adds_up else None
        if clause is None:
            return DueFold("_should_summarize", limit=limit)
        in_tokens = [self._tokens_of(size, sending) for size in clause.sizes if size.unit != "messages"]
        in_messages = [int(size.value) for size in clause.sizes if size.unit == "messages"]
        if in_tokens and not adds_up:
            return DueFold(str(clause), limit=limit)
        return DueFold(str(clause), min(in_tokens, default=None), min(in_messages, default=None), limit)

    def _clause(self, messages: Sequence[AnyMessage], tokens: int, sending: Sending) -> Clause | None:
        """The clause of the trigger that holds; the provider's own count may reach it too."""
        largest = max(tokens, self._reported(messages)) if self._clauses else tokens
        for clause in self._clauses:
            if all(self._is_reached(size, len(messages), largest, sending) for size in clause.sizes):
                return clause
        return None

    def _is_reached(self, size: Size, messages: int, tokens: int, sending: Sending) -> bool:
        if size.unit == "messages":
            return messages >= size.value
        if size.unit == "fraction" and self._window(sending) is None:
            return False
        return tokens >= self._tokens_of(size, sending)

    def _window(self, sending: Sending) -> int | None:
        """The input tokens of the agent's model where a call has shown it, else of the model that was given."""
        if sending.window is not None and not is_overridden(self, SummarizationMiddleware, "_get_profile_limits"):
            return sending.window
        return self._get_profile_limits() or None  # some profiles say 0 where a window is not known

    def _tokens_of(self, size: Size, sending: Sending) -> int:
        window = self._window(sending)
        if size.unit == "fraction":
            return max(1, int(size.value * (window or 0)))
        # System prompt and tools that alone take most of it leave half of it to the messages: a trigger that no summary
        # could ever get below would ask for one at every call.
        tokens = max(int(size.value), sending.overhead + int(size.value) // 2)
        return min(tokens, max(int(size.value), int(0.9 * window))) if window else tokens

    def _adds_up(self, messages: Sequence[AnyMessage], tokens: int) -> bool:
        """Whether the sizes of single messages add up to what the user's counter says of the list."""
        total = sum(self._measure.sizes.of(thread_key(messages), messages))
        return abs(total - tokens) <= 0.1 * tokens

    def _reported(self, messages: Sequence[AnyMessage]) -> int:
        """What the provider reported last, unless that was before the summary that stands in the history."""
        newest = layout.newest_assistant(messages)
        if newest is None or (newest.id is not None and newest.id == layout.usage_until(messages)):
            return 0
        return reported_tokens(newest, self.model)


def _update(folded: list[AnyMessage] | None) -> dict[str, Any] | None:
    return None if folded is None else {"messages": _replacing(folded)}


def _replacing(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    """The update of a thread's messages that puts these in place of all."""
    for message in messages:
        if layout.is_summary(message):
            # No stream shows the summary as a message.
            hide(message)
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages]
