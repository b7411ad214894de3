"""From a thread's messages and what is remembered of it to what the model is sent.

What belongs here: the view, as a pure function, and which message of the state each of its messages is. What does not:
deciding that something should be summarized (``passes``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from contextfold.integrations.bounded import Bounded
from contextfold.integrations.deepagents.arguments import Arguments
from contextfold.integrations.deepagents.reasoning import without_bound_reasoning
from contextfold.integrations.deepagents.state import SummarizationEvent
from contextfold.integrations.langchain import layout

REMEMBERED_COPIES = 8192


@dataclass(frozen=True, slots=True)
class DeepAgentView:
    """What is sent. ``origins``: the position in the state of each message; None for the summary."""

    messages: list[AnyMessage]
    origins: tuple[int | None, ...]


class Reductions:
    """Messages as a view has them. The same message gives the same object, so that it is sized once."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._made: Bounded[tuple[AnyMessage, AnyMessage | None]] = Bounded(REMEMBERED_COPIES)

    def truncated(self, message: AnyMessage) -> AnyMessage:
        """With short arguments."""
        made = self._once("arguments", message, self._arguments.truncated)
        assert made is not None  # truncating leaves a message of every message
        return made

    def without_reasoning(self, message: AnyMessage) -> AnyMessage | None:
        """Without reasoning that is tied to what stood before; None if that was all."""
        return self._once("reasoning", message, without_bound_reasoning)

    def _once(
        self, what: str, message: AnyMessage, reduce: Callable[[AnyMessage], AnyMessage | None]
    ) -> AnyMessage | None:
        known = self._made.get((what, id(message)))
        if known is None or known[0] is not message:
            known = message, reduce(message)
            self._made.put((what, id(message)), known)
        return known[1]


def view_of(
    messages: Sequence[AnyMessage], event: SummarizationEvent | None, shortened: int, reductions: Reductions
) -> DeepAgentView:
    """The summary and what came after it; without a summary, all messages.

    Arguments of calls before the position ``shortened`` are truncated.
    System messages in the state stand before the summary, word for word. A state that has fewer messages than the
    summary stands for was rewound or trimmed: then all that is left of it is sent behind the summary.
    """
    start, created_at = bounds(messages, event)
    view: list[AnyMessage] = []
    origins: list[int | None] = []
    for index in instructions_before(messages, start):
        view.append(messages[index])
        origins.append(index)
    if event is not None:
        view.append(event.summary)
        origins.append(None)
    for index in range(start, len(messages)):
        message: AnyMessage | None = messages[index]
        if index < shortened:
            message = reductions.truncated(messages[index])
        if index < created_at and message is not None:
            message = reductions.without_reasoning(message)
        if message is not None:
            view.append(message)
            origins.append(index)
    return DeepAgentView(view, tuple(origins))


def bounds(messages: Sequence[AnyMessage], event: SummarizationEvent | None) -> tuple[int, int]:
    """(where the kept messages begin, where those begin that came after the summary)."""
    if event is None:
        return 0, 0
    start = event.cutoff if event.cutoff <= len(messages) else 0
    return start, max(start, min(event.created_at, len(messages)))


def instructions_before(messages: Sequence[AnyMessage], stop: int) -> list[int]:
    """Positions of system messages before ``stop``."""
    return [index for index in range(stop) if isinstance(messages[index], SystemMessage)]


def newest_user(messages: Sequence[AnyMessage]) -> int | None:
    """Position of the newest message of a user that is not a summary."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage) and not layout.is_summary(messages[index]):
            return index
    return None


def position_of(messages: Sequence[AnyMessage], message_id: str | None) -> int:
    """Where the message with this id stands; 0 if it stands nowhere."""
    if message_id is None:
        return 0
    return next((n for n in range(len(messages) - 1, -1, -1) if messages[n].id == message_id), 0)
