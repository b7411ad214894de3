"""What an API has to say about itself: how it reads a request, refuses it, answers it and streams the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from contextfold.tokens.media import Rule
from emulator.answers import Answer, ToolCall, Usage
from emulator.problems import Problem
from emulator.prompt import Segment
from emulator.requests import Request
from emulator.sse import Event

Body = Mapping[str, Any]

FIRST_SECOND = 1_735_689_600
"""2025-01-01: answers carry a time, and no test may depend on the clock. Each request is a second later."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is ready to be written: the request, what is answered, and the tokens that it cost."""

    request: Request
    answer: Answer
    usage: Usage

    @property
    def number(self) -> int:
        """The number of the request."""
        return self.request.number

    @property
    def second(self) -> int:
        """Unix time of the answer, without a clock."""
        return FIRST_SECOND + self.request.number

    def call_id(self, place: int, call: ToolCall, prefix: str) -> str:
        """The id of the call, or one that is made of the numbers of the request and the call."""
        return call.id or f"{prefix}{self.number:06d}{place:02d}"


class Wire(ABC):
    """One API."""

    name: ClassVar[str]
    rule: ClassVar[Rule]
    """Whose prices images have."""
    caches_by_marks: ClassVar[bool] = False
    stream_type: ClassVar[str] = "text/event-stream; charset=utf-8"
    """The content type of a stream."""
    error_types: ClassVar[Mapping[int, tuple[str, str]]]
    """HTTP status -> (type of the error, message)."""

    @abstractmethod
    def segments(self, body: Body) -> list[Segment]:
        """What the model reads, in order: tools, instructions, messages."""

    @abstractmethod
    def answer_limit(self, body: Body) -> int | None:
        """Tokens that the answer may have at most, if the request says so."""

    @abstractmethod
    def problem(self, body: Body) -> Problem | None:
        """What the provider would refuse: fields, roles, pairing. None if nothing."""

    def bound_problem(self, body: Body, headers: Mapping[str, str]) -> Problem | None:
        """What the provider would refuse because it was made under another prefix. None if nothing."""
        return None

    def with_kept(self, body: Body, kept: Mapping[str, Any]) -> Body:
        """The request with what it only names by its id, as far as that was kept."""
        return body

    def kept(self, reply: Reply) -> Mapping[str, Any]:
        """By id, what of an answer a later request may name by that alone."""
        return {}

    @abstractmethod
    def body(self, reply: Reply) -> dict[str, Any]:
        """The answer as one JSON object."""

    def count_body(self, tokens: int) -> dict[str, Any]:
        """The answer to a request that only asks for the size of its prompt."""
        return {"input_tokens": tokens}

    @abstractmethod
    def events(self, reply: Reply) -> list[Event]:
        """The answer as a stream."""

    @abstractmethod
    def error_body(self, problem: Problem) -> dict[str, Any]:
        """An error as one JSON object."""

    @abstractmethod
    def error_events(self, request: Request, problem: Problem, body: Any) -> list[Event]:
        """A stream that consists of an error, whose body would have been ``body``."""

    def unknown_model(self, model: str) -> Problem:
        """The model is not served here."""
        return Problem(
            f"The model `{model}` does not exist or you do not have access to it.", 404, code="model_not_found"
        )

    def status_problem(self, status: int, message: str | None) -> Problem:
        """The provider's usual error for an HTTP status."""
        kind, usual = self.error_types.get(status, ("server_error" if status >= 500 else "invalid_request_error", ""))
        return Problem(message or usual or f"The request failed with status {status}.", status, kind, self.code(status))

    def code(self, status: int) -> str | None:
        """The code that stands beside the message for a status."""
        return None


def listed(value: Any) -> list[Any]:
    """A list as it is, nothing for anything else."""
    return value if isinstance(value, list) else []


def whole_number(value: Any) -> int | None:
    """A number of tokens, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
