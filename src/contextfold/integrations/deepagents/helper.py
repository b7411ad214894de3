"""The drop-in for LangChain's class inside that for deepagents', which has it as ``_lc_helper``, like the original:
sizes, triggers and folding, no hooks.

What belongs here: asking it questions about a view. What does not: what is done about the answers (``passes``).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage, SystemMessage

from contextfold.integrations.langchain.hidden import hidden_from_streams
from contextfold.integrations.langchain.models import profile_window
from contextfold.integrations.langchain.overhead import declarations
from contextfold.integrations.langchain.summarization import SummarizationMiddleware as LangChainDropIn
from contextfold.integrations.langchain.threads import ThreadKey
from contextfold.policy import Size
from contextfold.ports import Ports

HALF = 0.5
"""The share of a trigger from which on the agent may ask for a summary."""

HEADROOM = 0.95
"""The share of a model's input limit, beside the answer, up to which a request is sent without a summary."""

ANSWER_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True)
class Due:
    """A summary is due. ``reason``: in words; ``threshold``: tokens to end below, None if only ``keep`` says."""

    reason: str
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Overhead:
    """What is sent beside the messages, and its tokens by our estimate."""

    tokens: int = 0
    system: SystemMessage | None = None
    tools: Sequence[Any] = ()


class Helper(LangChainDropIn):
    """Measures views and folds them. Sizes are tokens."""

    @property
    def window(self) -> int | None:
        """The input tokens that the model's profile names."""
        return profile_window(self.model)

    def overhead(self, request: ModelRequest[Any]) -> Overhead:
        """What is sent beside the messages."""
        return Overhead(self._overhead_of(request), request.system_message, request.tools)

    def sizes(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> tuple[int, ...]:
        """Of each message."""
        return self._measure.sizes.of(key, messages)

    def tokens(self, key: ThreadKey, messages: Sequence[AnyMessage], overhead: Overhead) -> int:
        """Of all messages and the overhead. A counter of the user's own gets what deepagents gives it: the system
        message first, and ``tools=`` if it takes them; if not, our estimate of them is added.
        """
        if self._measure.adds_up:
            return overhead.tokens + self._tokens(key, messages)
        count: Any = self.token_counter
        listed = [*([overhead.system] if overhead.system else []), *messages]
        if _takes_tools(count):
            return int(count(listed, tools=overhead.tools))
        return int(count(listed)) + self._measure.counter.tools(declarations(overhead.tools))

    def due(self, messages: Sequence[AnyMessage], tokens: int, overhead: int) -> Due | None:
        """Whether the trigger fires for a view of ``tokens``, ``beside`` included."""
        fired = self._fired(list(messages), tokens, overhead)
        return None if fired is None else Due(*fired)

    def is_half_due(self, messages: Sequence[AnyMessage], tokens: int, overhead: int) -> bool:
        """Whether a view is at half of what triggers."""
        largest = max(tokens, self._reported(messages))
        return any(
            all(self._is_reached(_half(size), len(messages), largest, overhead) for size in clause.sizes)
            for clause in self._clauses
        )

    def budget(self, request: ModelRequest[Any]) -> int | None:
        """The input tokens that a request may have, by the profile of its model and its answer limit."""
        limit = profile_window(request.model)
        if limit is None:
            return None
        given = (request.model_settings.get(key, getattr(request.model, key, None)) for key in ANSWER_LIMITS)
        answer = max((value for value in given if isinstance(value, int) and not isinstance(value, bool)), default=0)
        return max(1, int(HEADROOM * limit) - answer)

    async def fold(
        self, messages: Sequence[AnyMessage], due: Due, tokens: int, overhead: int, ports: Ports
    ) -> list[AnyMessage] | None:
        """The summary in LangChain's layout and what stays, as the objects that came in; None where nothing changes.

        A summary that fails, is blank or cannot be used changes nothing: the events say why. Raises what steers
        programs, and ``WrongSummary``.
        """
        with hidden_from_streams():
            return await self._fold(list(messages), due.reason, due.threshold, tokens, overhead, ports)


def _takes_tools(count: Any) -> bool:
    """Whether a counter can be called with ``tools=``; not if it does not say what it takes."""
    try:
        parameters = inspect.signature(count).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "tools" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _half(size: Size) -> Size:
    value = size.value * HALF
    return Size(size.unit, value if size.unit == "fraction" else max(1, int(value)))
