"""The drop-in for LangChain's class, as deepagents' class uses LangChain's: sizes, triggers and folding, no hooks.

What belongs here: asking it questions about a view. What does not: what is done about the answers (``passes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage

from contextfold.integrations.langchain.models import profile_window
from contextfold.integrations.langchain.quiet import quietly
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


class Meter(LangChainDropIn):
    """Measures views and folds them. Sizes are tokens."""

    @property
    def window(self) -> int | None:
        """The input tokens that the model's profile names."""
        return profile_window(self.model)

    def beside(self, request: ModelRequest[Any]) -> int:
        """What is sent beside the messages: system prompt and tools."""
        return self._beside_of(request)

    def sizes(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> tuple[int, ...]:
        """Of each message."""
        return self._measure.sizes.of(key, messages)

    def tokens(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> int:
        """Of all messages."""
        return self._tokens(key, messages)

    def due(self, messages: Sequence[AnyMessage], tokens: int, beside: int) -> Due | None:
        """Whether the trigger fires for a view of ``tokens``, ``beside`` included."""
        fired = self._fired(list(messages), tokens, beside)
        return None if fired is None else Due(*fired)

    def is_half_due(self, messages: Sequence[AnyMessage], tokens: int, beside: int) -> bool:
        """Whether a view is at half of what triggers."""
        largest = max(tokens, self._reported(messages))
        return any(
            all(self._is_reached(_half(size), len(messages), largest, beside) for size in clause.sizes)
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
        self, messages: Sequence[AnyMessage], due: Due, tokens: int, beside: int, ports: Ports
    ) -> list[AnyMessage] | None:
        """The summary in LangChain's layout and what stays, as the objects that came in; None where nothing changes.

        A summary that fails, is blank or cannot be used changes nothing: the events say why. Raises what steers
        programs, and ``WrongSummary``.
        """
        with quietly():
            return await self._fold(list(messages), due.reason, due.threshold, tokens, beside, ports)


def _half(size: Size) -> Size:
    value = size.value * HALF
    return Size(size.unit, value if size.unit == "fraction" else max(1, int(value)))
