"""``SummarizationMiddleware`` for deepagents: change one import, and nothing is lost any more.

What belongs here: the constructor and hooks of deepagents' class, and what happens around the model call. What does
not: what a turn goes through (``passes``), the tool (``tool``).

It is a subclass of the class that it stands in for, so that ``isinstance`` and the replacement by name in
``create_deep_agent`` hold, and arguments, attributes and error texts are those of the installed release. No method of
it counts, cuts, summarizes or writes here.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from deepagents.middleware import summarization as deepagents_summarization
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages.utils import count_tokens_approximately

from contextfold.errors import is_control_flow
from contextfold.integrations.deepagents.arguments import Arguments
from contextfold.integrations.deepagents.files import Files, artifacts_root
from contextfold.integrations.deepagents.helper import HEADROOM, Helper, answer_limit
from contextfold.integrations.deepagents.passes import ModelTurn, Passes
from contextfold.integrations.deepagents.state import SummarizationState
from contextfold.integrations.langchain.constructor import DEFAULT_KEEP, Counting, DeprecatedNames, DropInTrigger
from contextfold.integrations.langchain.overriding import is_overridden
from contextfold.integrations.langchain.sending import with_update, with_view
from contextfold.integrations.langchain.state import joined
from contextfold.integrations.langchain.summarization import DEFAULT_CHUNK
from contextfold.observe import Event
from contextfold.overflow import Overflow, classify, next_size
from contextfold.policy import Unit
from contextfold.ports import AsyncPorts, SyncPorts, run
from contextfold.summary.options import SummaryOptions

DEEPAGENTS_DEFAULT_SUMMARY_PROMPT = deepagents_summarization.DEEPAGENTS_DEFAULT_SUMMARY_PROMPT
REMOVED = "history_path_prefix"
ASKED = ("_should_summarize", "_determine_cutoff_index", "_create_summary", "_acreate_summary")
"""Private methods of deepagents' class that decide here as they do there, where a subclass overrides them."""
TOO_LONG = ("prompt_too_long", "rate_limit_too_small", "output_budget")
"""Kinds of refusals that a smaller request answers."""


class SummarizationMiddleware(deepagents_summarization.SummarizationMiddleware):
    """Keeps a deep agent inside its window: the view is summarized, the state keeps every message.

    Args:
        model: the chat model that writes summaries and whose profile says the window, or its name.
        backend: gets the originals of what is summarized.
        trigger: one size, a mapping (all must hold), a list (any may hold), or None (only near the input limit).
        keep: the newest part that stays; a pass keeps less where it could not end below the trigger otherwise.
        token_counter: tokens of a list of messages. Left as it is: our estimate, which knows scripts and media.
        summary_prompt: with ``{messages}``; used for every request, those that update and merge summaries included.
        trim_tokens_to_summarize: tokens of conversation in one request; more is read in several. None: no limit but
            the summarizer's own. Nothing is discarded either way. Not given: half of the window that the model's
            profile tells, and 4,000 where it tells none.
        truncate_args_settings: as for deepagents; None truncates nothing.
        summarizer: writes in place of ``model``: a chat model, its name, or a runnable or callable on messages.
        counting: ``"langchain"`` counts as LangChain does: 3.3 characters per token for Anthropic, 4 otherwise.
        instructions: added to every request to the summarizer.
        summary: time limits, retries, bisection and length of summaries; for what has no argument of its own.
        evidence: whether lines of the evicted messages are quoted below the prose, word for word.
        on_event: called with each ``Event``.

    A summary that fails, is blank or cannot be used changes nothing: the events say why, and the next call tries again.
    Over the model's input limit the built-in summary stands in.
    Raises ``ContextOverflowError`` where the provider refuses even the smaller request.
    """

    state_schema = SummarizationState  # type: ignore[assignment]  # deepagents' keys with reducers, and one more

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        backend: Any,
        trigger: DropInTrigger = None,
        keep: tuple[Unit, float] = DEFAULT_KEEP,
        token_counter: Callable[..., int] = count_tokens_approximately,
        summary_prompt: str = DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
        trim_tokens_to_summarize: float | None = DEFAULT_CHUNK,
        truncate_args_settings: Any = None,
        summarizer: Any = None,
        counting: Counting = "contextfold",
        instructions: str = "",
        summary: SummaryOptions | None = None,
        evidence: bool = True,
        on_event: Callable[[Event], object] | None = None,
        **deprecated_kwargs: Unpack[DeprecatedNames],
    ) -> None:
        renamed: dict[str, Any] = {**deprecated_kwargs}
        removed = {REMOVED: renamed.pop(REMOVED)} if REMOVED in renamed else {}
        helper = Helper(
            model,
            trigger=trigger,
            keep=keep,
            token_counter=token_counter,
            summary_prompt=summary_prompt,
            trim_tokens_to_summarize=trim_tokens_to_summarize,
            summarizer=summarizer,
            counting=counting,
            instructions=instructions,
            summary=summary,
            evidence=evidence,
            on_event=on_event,
            **renamed,
        )
        super().__init__(
            helper.model,
            backend=backend,
            token_counter=helper.token_counter,
            truncate_args_settings=truncate_args_settings,
            **removed,
        )
        if not SummarizationState.__annotations__.keys() <= type(self).state_schema.__annotations__.keys():
            self.state_schema = joined(type(self).state_schema, SummarizationState)  # type: ignore[assignment]
        self._lc_helper = helper  # what deepagents' attributes and methods go by
        arguments = Arguments.of(truncate_args_settings)
        self.passes = Passes(self._as_overridden(helper), arguments, artifacts_root(backend))
        warn_of_ignored(self, SummarizationMiddleware, deepagents_summarization.SummarizationMiddleware, ASKED)

    @property
    def excluded_as(self) -> type[Any]:
        """The class by which a profile's ``excluded_middleware`` drops this one: the one it stands in for.

        A subclass of a user's is named by itself, as deepagents has it.
        """
        own = type(self)
        return deepagents_summarization.SummarizationMiddleware if own is SummarizationMiddleware else own

    # ---- hooks ----

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Send the view, summarized before if that is due, and once more if the provider says it does not fit."""
        return run(self._answered(request, handler, self.files_blocking()))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """``wrap_model_call`` for async agents; it never blocks the event loop."""
        return await self._answered(request, handler, self.files_suspending())

    def files_blocking(self) -> Files:
        """The backend for sync code."""
        return Files(self._backend, SyncPorts(), is_async=False)

    def files_suspending(self) -> Files:
        """The backend for async code."""
        return Files(self._backend, AsyncPorts(), is_async=True)

    def _as_overridden(self, helper: Helper) -> Helper:
        """A helper that asks the methods of a subclass, as deepagents' class does; the same one if it has none."""
        own = SummarizationMiddleware
        names = [name for name in ASKED if is_overridden(self, own, name)]
        if not names:
            return helper
        asking = copy.copy(helper)
        for name in names:
            setattr(asking, name, getattr(self, name))
        return asking

    # ---- one algorithm, both colors ----

    async def _answered(self, request: ModelRequest[Any], handler: Callable[..., Any], files: Files) -> Any:
        helper, passes = self.passes.helper, self.passes
        sending = await files.ports.compute(helper.sending, request)
        turn = await files.ports.compute(passes.begin, request.state, request.messages, sending)
        budget = helper.budget(request)
        turn = await passes.prepared(turn, budget, files)
        if budget is not None and turn.tokens > budget:
            turn = await passes.with_results_moved(turn, budget, files)
            _check(turn, budget)
        window = helper.window(sending)
        response, refusal = await _sent(turn, request, handler, files, window)
        if refusal is not None:
            turn = await self._smaller(turn, refusal, answer_limit(request), files)
            response, again = await _sent(turn, request, handler, files, window)
            if again is not None:
                raise _exhausted(f"the {turn.tokens:,} tokens that were left", turn) from again.error
        return with_update(response, turn.update())

    async def _smaller(self, turn: ModelTurn, refusal: _Refusal, answer: int, files: Files) -> ModelTurn:
        """The turn made strictly smaller; ``ContextOverflowError`` where it cannot be. ``answer``: tokens that it may
        take, which some providers count with the prompt.
        """
        overflow = refusal.overflow
        wanted = next_size(overflow, turn.tokens, turn.tokens)
        if overflow.kind == "output_budget" and overflow.limit is not None:
            wanted = max(1, min(wanted, overflow.limit - answer))
        smaller = await self.passes.smaller(turn, wanted, files)
        if smaller.tokens >= turn.tokens:
            raise _exhausted(f"{turn.tokens:,} tokens", turn) from refusal.error
        return smaller


def warn_of_ignored(middleware: Any, own: type, theirs: type, asked: Sequence[str]) -> None:
    """Say which private methods of deepagents' class a subclass of ours overrides in vain."""
    private = (name for name in vars(theirs) if name.startswith("_") and not name.startswith("__"))
    methods = (name for name in private if name not in asked and callable(getattr(theirs, name)))
    ignored = [name for name in methods if is_overridden(middleware, own, name)]
    if ignored:
        warnings.warn(
            f"{type(middleware).__name__} overrides {', '.join(ignored)}: contextfold does not call them. It asks "
            f"{', '.join(asked)}.",
            UserWarning,
            stacklevel=3,
        )


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The provider says that a request does not fit."""

    error: Exception
    overflow: Overflow


async def _sent(
    turn: ModelTurn, request: ModelRequest[Any], handler: Callable[..., Any], files: Files, window: int | None
) -> tuple[Any, _Refusal | None]:
    """The response, or the refusal for size. Other errors are raised as they are."""
    try:
        return await files.ports.call(handler, with_view(request, turn.sent, turn.messages)), None
    except Exception as error:
        overflow = _overflow(error, turn.tokens / window if window else None)
        if overflow is None:
            raise
        return None, _Refusal(error, overflow)


def _overflow(error: Exception, fill: float | None) -> Overflow | None:
    """What an error says about the size of the request, which takes this share of the window; None if it says nothing
    about that.
    """
    if is_control_flow(error):
        return None
    found = classify(error, fill=fill)
    if found is not None and found.kind in TOO_LONG:
        return found
    # LangChain's own error may come without any words that we know.
    return Overflow("prompt_too_long") if isinstance(error, ContextOverflowError) else None


def _exhausted(refused: str, turn: ModelTurn) -> ContextOverflowError:
    return ContextOverflowError(
        f"Model input still does not fit after recovery: the provider refused {refused} as too long, and nothing more "
        f"can leave. System prompt and tools take {turn.sending.overhead:,}, {len(turn.sent)} messages "
        f"{turn.tokens - turn.sending.overhead:,}. Take a model with a larger window, shorten these, or keep less."
    )


def _check(turn: ModelTurn, budget: int) -> None:
    """Raises ``ContextOverflowError`` for what the model's profile says it cannot take, whatever it is."""
    # Without the headroom for our count: only what the profile itself rules out is refused here.
    limit = int(budget / HEADROOM)
    if turn.tokens > limit:
        raise ContextOverflowError(
            f"Context remains above the input budget after compaction: {turn.tokens:,} tokens, system prompt and tools "
            f"with {turn.sending.overhead:,} of them, where the model takes about {limit:,} beside its answer. Take a "
            "model with a larger window, or shorten the input, the tools or the answer."
        )
