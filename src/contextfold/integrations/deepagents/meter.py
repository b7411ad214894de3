"""The drop-in for LangChain's class, as deepagents' class uses LangChain's: sizes, triggers and folding, no hooks.

What belongs here: asking it questions about a view. What does not: what is done about the answers (``passes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage

from contextfold.errors import CannotFit, is_control_flow
from contextfold.integrations.langchain.models import profile_window
from contextfold.integrations.langchain.quiet import quietly
from contextfold.integrations.langchain.rolling import WrongSummary
from contextfold.integrations.langchain.summarization import SummarizationMiddleware as LangChainDropIn
from contextfold.integrations.langchain.threads import ThreadKey
from contextfold.observe import Observer
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
        return self._sizes.of(key, messages)

    def tokens(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> int:
        """Of all messages."""
        return self._tokens(key, messages)

    def due(self, messages: Sequence[AnyMessage], tokens: int, beside: int) -> Due | None:
        """Whether the trigger fires for a view of ``tokens``, ``beside`` included."""
        clause = self._fired(messages, tokens, beside)
        if clause is None:
            return None
        return Due(str(clause), self._threshold(clause, messages, tokens, beside))

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
        observer = Observer(self._on_event)
        try:
            with quietly():
                return await self._folding.fold(
                    messages,
                    trigger=due.reason,
                    threshold=due.threshold,
                    tokens=tokens,
                    beside=beside,
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


def _half(size: Size) -> Size:
    value = size.value * HALF
    return Size(size.unit, value if size.unit == "fraction" else max(1, int(value)))
