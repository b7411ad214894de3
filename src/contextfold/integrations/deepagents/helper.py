"""The drop-in for LangChain's class inside that for deepagents', which has it as ``_lc_helper``, like the original:
sizes, triggers and folding, no hooks.

What belongs here: asking it questions about a view. What does not: what is done about the answers (``passes``).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage

from contextfold.cached import cached_property
from contextfold.integrations.langchain.folding import DueFold, FoldedThread, SummarizerFailed
from contextfold.integrations.langchain.hidden import hidden_from_streams
from contextfold.integrations.langchain.models import profile_window
from contextfold.integrations.langchain.sending import Sending, declarations
from contextfold.integrations.langchain.summarization import SummarizationMiddleware as LangChainDropIn
from contextfold.integrations.langchain.threads import ThreadKey
from contextfold.policy import Size
from contextfold.ports import Ports

HALF = 0.5
"""The share of a trigger from which on the agent may ask for a summary."""

HEADROOM = 0.95
"""The share of a model's input limit, beside the answer, up to which a request is sent without a summary."""

ANSWER_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class Helper(LangChainDropIn):
    """Measures views and folds them. Sizes are tokens."""

    _frame_tokens = 120

    @cached_property
    def _takes_tools(self) -> bool | None:
        return _takes_tools(self.token_counter)

    def sending(self, request: ModelRequest[Any]) -> Sending:
        """How a request is sent."""
        return Sending.of(request, self._measure.counter)

    def window(self, sending: Sending) -> int | None:
        """The input tokens of the agent's model, else of the one that was given, by its profile."""
        return self._window(sending)

    def sizes(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> tuple[int, ...]:
        """Of each message."""
        return self._measure.sizes.of(key, messages)

    def tokens(self, key: ThreadKey, messages: Sequence[AnyMessage], sending: Sending) -> int:
        """Of all messages and what is sent with them. A counter of the user's own gets what deepagents gives it: the
        system message first, and ``tools=`` if it takes them; if not, our estimate of them is added.
        """
        if self._measure.adds_up:
            return sending.overhead + self._tokens(key, messages)
        count: Any = self.token_counter
        listed = [*([sending.system] if sending.system else []), *messages]
        if self._takes_tools is not False:
            try:
                return int(count(listed, tools=sending.tools))
            except TypeError:
                if self._takes_tools:
                    raise  # the counter's own mistake
        return int(count(listed)) + self._measure.counter.tools(declarations(sending.tools))

    def due(self, messages: Sequence[AnyMessage], tokens: int, sending: Sending) -> DueFold | None:
        """Why a summary of a view of ``tokens``, all that is sent included, is due; None where none is."""
        return self._due(list(messages), tokens, sending)

    def is_half_due(self, messages: Sequence[AnyMessage], tokens: int, sending: Sending) -> bool:
        """Whether a view is at half of what triggers."""
        largest = max(tokens, self._reported(messages))
        return any(
            all(self._is_reached(_half(size), len(messages), largest, sending) for size in clause.sizes)
            for clause in self._clauses
        )

    def budget(self, request: ModelRequest[Any]) -> int | None:
        """The input tokens that a request may have, by the profile of its model and its answer limit."""
        limit = profile_window(request.model)
        if limit is None:
            return None
        return max(1, int(HEADROOM * limit) - answer_limit(request))

    def can_part(self, messages: Sequence[AnyMessage], due: DueFold, tokens: int, sending: Sending) -> bool:
        """Whether ``fold`` would ask for a summary, or has nothing that may leave."""
        asked = self._asked(list(messages), sending, False)
        return asked is not None and asked.can_part(messages, due, tokens, sending.overhead)

    async def fold(
        self,
        messages: Sequence[AnyMessage],
        evicted: Sequence[AnyMessage] | None,
        due: DueFold,
        tokens: int,
        sending: Sending,
        ports: Ports,
    ) -> list[AnyMessage] | SummarizerFailed | None:
        """The summary in LangChain's layout and what stays, as the objects that came in; None where nothing can leave.

        ``evicted``: what the summary among the messages stands for; None where that is not known. A summary that fails,
        is blank or cannot be used changes nothing: the events say why. Raises what steers programs, and
        ``WrongSummary``.
        """
        with hidden_from_streams():
            folded = await self._fold(list(messages), evicted, due, tokens, sending, ports)
        return folded.messages if isinstance(folded, FoldedThread) else folded


def answer_limit(request: ModelRequest[Any]) -> int:
    """Tokens that the answer to a request may take; 0 where no one says."""
    given = (request.model_settings.get(key, getattr(request.model, key, None)) for key in ANSWER_LIMITS)
    # The largest: providers' classes have different names for the limit, and some set several.
    return max((value for value in given if isinstance(value, int) and not isinstance(value, bool)), default=0)


def _takes_tools(count: Any) -> bool | None:
    """Whether a counter can be called with ``tools=``; None where it does not say what it takes, and is tried."""
    try:
        parameters = inspect.signature(count).parameters.values()
    except (TypeError, ValueError):
        return None
    return any(p.name == "tools" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _half(size: Size) -> Size:
    value = size.value * HALF
    return Size(size.unit, value if size.unit == "fraction" else max(1, int(value)))
