"""Putting a log of rows back into the order of a conversation: every result directly behind the message that called.

Sessions on disk are written as things happen. One answer of the model is spread over several rows, and the results of
its parallel calls arrive between them. ``Turns`` gathers rows of one answer, and keeps results with their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Turn:
    """One message, and the results of the calls that it made."""

    message: dict[str, Any]
    results: list[Any] = field(default_factory=list)


class Turns:
    """Gathers the turns of a conversation, in the order in which they began."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._callers: dict[str, Turn] = {}
        self._answers: dict[str, Turn] = {}

    def add(self, message: dict[str, Any], *, calls: Sequence[Any] = (), answer: str | None = None) -> None:
        """A new message that makes ``calls``. ``answer`` identifies it, for rows that belong to it later."""
        turn = Turn(message)
        self._turns.append(turn)
        self._remember(turn, calls)
        if answer is not None:
            self._answers[answer] = turn

    def find(self, answer: str | None) -> dict[str, Any] | None:
        """The message that was added under this identifier."""
        turn = self._answers.get(answer) if answer is not None else None
        return None if turn is None else turn.message

    def is_answered(self, answer: str | None) -> bool:
        """Whether a call of the message with this identifier has a result."""
        turn = self._answers.get(answer) if answer is not None else None
        return turn is not None and bool(turn.results)

    def forget_answers(self) -> None:
        """No later row belongs to a message that is there."""
        self._answers.clear()

    def calls(self, answer: str, calls: Sequence[Any]) -> None:
        """Calls that a later row adds to the message with this identifier."""
        self._remember(self._answers[answer], calls)

    def result(self, call_id: str, result: Any) -> bool:
        """A result, for the turn that made the call. False if no turn made it."""
        turn = self._callers.get(call_id)
        if turn is not None:
            turn.results.append(result)
        return turn is not None

    def knows(self, call_id: str) -> bool:
        """Whether a turn made this call."""
        return call_id in self._callers

    def messages(self, of_results: Callable[[list[Any]], list[dict[str, Any]]]) -> list[Any]:
        """All messages; ``of_results`` makes the messages that carry the results of one turn."""
        ordered: list[Any] = []
        for turn in self._turns:
            ordered.append(turn.message)
            if turn.results:
                ordered.extend(of_results(turn.results))
        return ordered

    def _remember(self, turn: Turn, calls: Sequence[Any]) -> None:
        for call_id in calls:
            if isinstance(call_id, str):  # files hold anything; what is no id has no result
                self._callers[call_id] = turn


def one_user_message(results: list[Any]) -> list[dict[str, Any]]:
    """Results as Anthropic wants them: all in one user message."""
    return [{"role": "user", "content": results}]


def as_they_are(results: list[Any]) -> list[dict[str, Any]]:
    """Results that are messages of their own."""
    return results
