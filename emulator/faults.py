"""What goes wrong, and when: errors, delays, broken streams and bad answers, by script.

What belongs here: the faults and the rules that choose the requests which they hit. What does not: how a wire format
writes an error (``wires``), and the order of things in a request (``provider``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TypeAlias

from emulator.answers import Answer, ToolCall
from emulator.requests import Request
from emulator.wording import Wording

Condition: TypeAlias = str | Callable[[Request], bool]
"""A text that the prompt has to contain, or a predicate."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. Make it with the functions below, named after what the client sees."""

    name: str
    status: int | None = None
    """Answer with this HTTP status instead of looking at the request."""
    message: str | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the first byte."""
    stall: float = 0.0
    """Seconds of silence in the middle of a stream."""
    cuts: bool = False
    """Whether the connection ends in the middle of the answer."""
    after: int = 0
    """Pieces of the answer that are sent before the stall or the cut."""
    change: Callable[[Answer], Answer] | None = None
    """Makes the answer a bad one."""
    truncate_to: int | None = None
    """Tokens of the prompt that are read; the rest is ignored in silence."""
    overflow: str | Wording | None = None
    """Refuse the prompt as too long in these words, whatever its size."""
    limit: int | None = None
    """The window in tokens that ``overflow`` names; None: half of the prompt."""
    in_stream: bool | None = None

    @staticmethod
    def rate_limit(retry_after: float | None = None, message: str | None = None) -> Fault:
        """HTTP 429, with ``Retry-After`` in seconds if given."""
        headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        return Fault("rate_limit", status=429, message=message, headers=headers)

    @staticmethod
    def server_error(message: str | None = None) -> Fault:
        """HTTP 500."""
        return Fault("server_error", status=500, message=message)

    @staticmethod
    def overloaded(message: str | None = None) -> Fault:
        """HTTP 529."""
        return Fault("overloaded", status=529, message=message)

    @staticmethod
    def http_error(status: int, message: str | None = None, *, body: Any = None, in_stream: bool = False) -> Fault:
        """Any HTTP status. ``body`` (JSON, or a text such as a proxy's page) takes the place of the provider's own.

        ``in_stream``: a streaming request gets HTTP 200 and the error as its first event.
        """
        return Fault("http_error", status=status, message=message, body=body, in_stream=in_stream)

    @staticmethod
    def slow(seconds: float) -> Fault:
        """Nothing for ``seconds``, then the usual answer."""
        return Fault("slow", delay=seconds)

    @staticmethod
    def stalled(seconds: float, *, after: int = 1) -> Fault:
        """Silence for ``seconds``, in a stream after ``after`` pieces of the answer, then the rest."""
        return Fault("stalled", stall=seconds, after=after)

    @staticmethod
    def cut(*, after: int = 1) -> Fault:
        """The connection ends: in a stream after ``after`` pieces of the answer, else in the middle of the body."""
        return Fault("cut", cuts=True, after=after)

    @staticmethod
    def blank() -> Fault:
        """An answer without text."""
        return Fault("blank", change=lambda answer: Answer())

    @staticmethod
    def tool_call(name: str = "search", arguments: Mapping[str, Any] | None = None) -> Fault:
        """A tool call instead of text."""
        return Fault("tool_call", change=lambda answer: Answer(tool_calls=(ToolCall(name, arguments or {}),)))

    @staticmethod
    def length() -> Fault:
        """Half of the answer, cut off by the limit of tokens."""
        return Fault("length", change=lambda answer: Answer(answer.text[: len(answer.text) // 2], finish="length"))

    @staticmethod
    def refusal(text: str = "I can't help with that.") -> Fault:
        """The model refuses."""
        return Fault("refusal", change=lambda answer: Answer(text, finish="refusal"))

    @staticmethod
    def answers(text: str) -> Fault:
        """HTTP 200 with this text: an apology, an error message, a placeholder, a text that is too long."""
        return Fault("answers", change=lambda answer: Answer(text))

    @staticmethod
    def truncated(tokens: int) -> Fault:
        """HTTP 200, but only the newest ``tokens`` of the prompt were read: the usage says so, and nothing else."""
        return Fault("truncated", truncate_to=tokens)

    @staticmethod
    def window_exceeded() -> Fault:
        """HTTP 200 with half of the answer and the finish reason ``model_context_window_exceeded``."""
        return Fault(
            "window_exceeded",
            change=lambda answer: Answer(answer.text[: len(answer.text) // 2], finish="context_window"),
        )

    @staticmethod
    def overflows(
        wording: str | Wording = "native", *, limit: int | None = None, in_stream: bool | None = None
    ) -> Fault:
        """The prompt is refused as too long, whatever its size, for a window of ``limit`` tokens.

        ``in_stream``: whether a streaming request gets HTTP 200 and the error as an event; None: as ``wording`` says.
        """
        return Fault("overflows", overflow=wording, limit=limit, in_stream=in_stream)


@dataclass(frozen=True, slots=True)
class _Rule:
    fault: Fault
    at: frozenset[int] | None
    when: Condition | None
    times: int | None

    def hits(self, request: Request) -> bool:
        if self.times == 0 or (self.at is not None and request.number not in self.at):
            return False
        if callable(self.when):
            return self.when(request)
        return self.when is None or self.when in request.text


class Faults:
    """The rules of a server, asked in the order in which they were added. A request has one fault at most."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._lock = Lock()

    def add(
        self,
        fault: Fault,
        *,
        at: int | Collection[int] | None = None,
        when: Condition | None = None,
        times: int | None = None,
    ) -> None:
        """Inject ``fault`` into every request that meets all conditions given.

        Args:
            fault: what goes wrong.
            at: numbers of requests, from 1 (``Request.number``).
            when: a text in the prompt, or a predicate of the request.
            times: how often at most; None: always.
        """
        numbers = None if at is None else frozenset({at} if isinstance(at, int) else at)
        if numbers is not None and any(number < 1 for number in numbers):
            raise ValueError(f"at={at!r}: requests are numbered from 1")
        with self._lock:
            self._rules.append(_Rule(fault, numbers, when, times))

    def clear(self) -> None:
        """From now on nothing goes wrong."""
        with self._lock:
            self._rules.clear()

    def take(self, request: Request) -> Fault | None:
        """The fault of the first rule that hits, which thereby has one time less."""
        with self._lock:
            for place, rule in enumerate(self._rules):
                if rule.hits(request):
                    if rule.times is not None:
                        self._rules[place] = replace(rule, times=rule.times - 1)
                    return rule.fault
        return None
