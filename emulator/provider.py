"""What becomes of a request: the order of all checks, the answer, and the record of both.

What belongs here: deciding, without I/O; it runs in worker threads, several requests at a time. What does not: bytes,
connections and time (``app``), and how an API writes things (``wires``).

The order is that of the providers: rate limits and failures come first, then the model, the fields, roles and pairing,
then the window, and only then an answer.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TypeAlias

from emulator.answers import Answer, Usage
from emulator.cache import PromptCache
from emulator.digest import LARGEST_SHARE, SHORTEST_LIMIT, clipped, digest
from emulator.faults import Fault, Faults
from emulator.problems import ErrorAnswer, Problem
from emulator.prompt import Prompt, sized
from emulator.requests import Request, without_secrets
from emulator.sse import Event
from emulator.tokenizer import Tokenizer
from emulator.wires import Reply, Wire
from emulator.wording import Figures, Wording, wording_named

Scripted: TypeAlias = Answer | str | None
Script: TypeAlias = Callable[[Request], Scripted] | Iterable[Scripted]
"""Answers in turn, or a function of the request. None is the digest that is the answer without a script."""

TRUNCATE = "truncate"
"""The wording of a server that says nothing: it drops the oldest messages."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be sent. With ``events`` it is a stream."""

    request: Request
    status: int
    body: Any
    events: tuple[Event, ...] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request as it came in, with its number."""

    number: int
    path: str
    headers: Mapping[str, str]
    raw: bytes
    in_address: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that are in its address, and are read as if they were in its body."""


@dataclass(slots=True)
class Provider:
    """The state behind the routes. ``windows`` and ``overflow`` may be changed between requests."""

    tokenizer: Tokenizer
    windows: Mapping[str, int]
    default_window: int | None
    overflow: str | Wording
    digest_tokens: int
    cache: PromptCache
    script: Script | None = None
    faults: Faults = field(default_factory=Faults)
    records: list[Request] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    """What the test's own functions raised; it is raised again when the server is closed."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Parts of answers that a later request may name by their ids alone, where the API has that."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: Lock = field(default_factory=Lock)
    _answers: Iterator[Scripted] | None = None

    def __post_init__(self) -> None:
        if self.script is not None and not callable(self.script):
            self._answers = iter(self.script)

    def arrival(
        self, path: str, headers: Mapping[str, str], raw: bytes, in_address: Mapping[str, Any] | None = None
    ) -> Arrival:
        """Number a request, in the order of the calls."""
        return Arrival(next(self._numbers), path, without_secrets(headers), raw, in_address or {})

    def handle(self, wire: Wire, arrival: Arrival) -> Outcome:
        """Decide what becomes of a request, and record it."""
        outcome = self._outcome(wire, arrival)
        with self._lock:
            self.records.append(outcome.request)
        return outcome

    def count(self, wire: Wire, raw: bytes) -> tuple[int, dict[str, Any]]:
        """(status, body) for a request that only asks for the size of a prompt."""
        body = _parsed(raw)
        problem = _NOT_JSON if body is None else wire.problem({"max_tokens": 1, **body})
        if body is None or problem is not None:
            return 400, wire.error_body(problem or _NOT_JSON)
        return 200, wire.count_body(self._prompt(wire, body).tokens)

    def window_of(self, model: str) -> int | None:
        """Tokens of the window of a model; None: it is not served here."""
        return self.windows.get(model, self.default_window)

    def _prompt(self, wire: Wire, body: Mapping[str, Any]) -> Prompt:
        return sized(wire.segments(body), self.tokenizer.count)

    def _outcome(self, wire: Wire, arrival: Arrival) -> Outcome:
        body = _parsed(arrival.raw)
        body = body and wire.with_kept({**body, **arrival.in_address}, self.kept)
        try:
            prompt = self._prompt(wire, body or {})
            request = _request(wire, arrival, body or {}, prompt)
            if body is None:
                return _refused(wire, request, ErrorAnswer(_NOT_JSON, wire.error_body(_NOT_JSON)))
            fault = self.faults.take(request)
            request = replace(request, fault=fault)
            error = self._error(wire, request, prompt, fault or _NO_FAULT)
            return _refused(wire, request, error) if error else self._answered(wire, request, prompt)
        except Exception as failure:  # noqa: BLE001 - predicates, scripts and counters are the test's own code
            self.failures.append(failure)
            problem = wire.status_problem(500, f"the test's own code raised {type(failure).__name__}: {failure}")
            request = _request(wire, arrival, body or {}, Prompt((), ()))
            return _refused(wire, request, ErrorAnswer(problem, wire.error_body(problem)))

    # ---- errors -----------------------------------------------------------------------------------------------------

    def _error(self, wire: Wire, request: Request, prompt: Prompt, fault: Fault) -> ErrorAnswer | None:
        """Why the request is refused, in the order in which a provider looks."""
        if fault.status is not None:
            problem = wire.status_problem(fault.status, fault.message)
            body = wire.error_body(problem) if fault.body is None else fault.body
            return ErrorAnswer(problem, body, fault.headers, in_stream=bool(fault.in_stream))
        window = self.window_of(request.model)
        refusal = wire.unknown_model(request.model) if window is None else wire.problem(request.body)
        refusal = refusal or wire.bound_problem(request.body, request.headers)
        if refusal is not None:
            return ErrorAnswer(refusal, wire.error_body(refusal))
        if fault.overflow is not None:
            return _forced_overflow(wire, request, prompt, fault)
        if window is None or self._truncates(request, fault):
            return None
        return _overflow(
            wire,
            self._wording(wire),
            Figures(window, prompt.tokens, request.answer_limit or 0, prompt.tokens_of("tools")),
        )

    def _wording(self, wire: Wire) -> Wording:
        return self.overflow if isinstance(self.overflow, Wording) else wording_named(self.overflow, wire.name)

    def _truncates(self, request: Request, fault: Fault) -> bool:
        """Whether too long a prompt is shortened in silence; ``truncation`` is an option of the Responses API."""
        return self.overflow == TRUNCATE or fault.truncate_to is not None or request.body.get("truncation") == "auto"

    # ---- answers ----------------------------------------------------------------------------------------------------

    def _answered(self, wire: Wire, request: Request, prompt: Prompt) -> Outcome:
        fault = request.fault or _NO_FAULT
        window = self.window_of(request.model) or 0
        read = prompt if prompt.tokens <= window else prompt.truncated(window - _reserved(request, window))
        if fault.truncate_to is not None:
            read = prompt.truncated(fault.truncate_to)
        room = max(1, min(request.answer_limit or window, window - read.tokens))
        answer = self._answer(request, read, room)
        if fault.change is not None:
            answer = fault.change(answer)
        answer = self._within(answer, room)
        cached, written = self.cache.use(request.model, read, by_marks=wire.caches_by_marks)
        usage = Usage(read.tokens, self._size(answer), cached, written)
        reply = Reply(request, answer, usage)
        with self._lock:
            self.kept |= wire.kept(reply)
        record = replace(request, status=200, answer=answer, usage=usage)
        if request.stream:
            return Outcome(record, 200, None, tuple(wire.events(reply)))
        return Outcome(record, 200, wire.body(reply))

    def _answer(self, request: Request, read: Prompt, room: int) -> Answer:
        scripted = self._scripted(request)
        if isinstance(scripted, Answer):
            return scripted
        if scripted is not None:
            return Answer(scripted)
        limit = min(room, max(SHORTEST_LIMIT, read.tokens // LARGEST_SHARE), self.digest_tokens)
        return Answer(digest(read.text("message") or read.text(), limit, self.tokenizer.count))

    def _scripted(self, request: Request) -> Scripted:
        if callable(self.script):
            return self.script(request)
        with self._lock:
            return next(self._answers, None) if self._answers is not None else None

    def _within(self, answer: Answer, room: int) -> Answer:
        """The answer, cut off where it is longer than it may be."""
        if self.tokenizer.count(answer.text) <= room:
            return answer
        return replace(answer, text=clipped(answer.text, room, self.tokenizer.count), finish="length")

    def _size(self, answer: Answer) -> int:
        calls = [call.name + json.dumps(call.arguments, ensure_ascii=False) for call in answer.tool_calls]
        return sum(self.tokenizer.count(text) for text in (answer.text, *calls))


_NO_FAULT = Fault("none")
_NOT_JSON = Problem(
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The API expects a JSON payload, but what was sent was not valid JSON.)"
)


def _reserved(request: Request, window: int) -> int:
    """Tokens that a server which truncates keeps for the answer: what was asked for, at most half of the window."""
    return min(request.answer_limit or window // 4, window // 2)


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _request(wire: Wire, arrival: Arrival, body: Mapping[str, Any], prompt: Prompt) -> Request:
    return Request(
        number=arrival.number,
        path=arrival.path,
        wire=wire.name,
        model=str(body.get("model", "")),
        body=body,
        headers=arrival.headers,
        text=prompt.text(),
        messages_text=prompt.text("message"),
        tokens=prompt.tokens,
        answer_limit=wire.answer_limit(body),
        stream=body.get("stream") is True,
        raw=arrival.raw,
    )


def _overflow(wire: Wire, wording: Wording, figures: Figures) -> ErrorAnswer | None:
    problem = wording.problem(figures)
    return None if problem is None else wording.answer(problem, figures, wire.error_body)


def _forced_overflow(wire: Wire, request: Request, prompt: Prompt, fault: Fault) -> ErrorAnswer | None:
    """The overflow of a fault: the window that it names is smaller than the prompt, whatever the model's is."""
    wording = (
        fault.overflow if isinstance(fault.overflow, Wording) else wording_named(fault.overflow or "native", wire.name)
    )
    if fault.in_stream is not None:
        wording = replace(wording, in_stream=fault.in_stream)
    window = min(fault.limit or prompt.tokens // 2, prompt.tokens - 1)
    return _overflow(
        wire, wording, Figures(window, prompt.tokens, request.answer_limit or 0, prompt.tokens_of("tools"))
    )


def _refused(wire: Wire, request: Request, error: ErrorAnswer) -> Outcome:
    if request.stream and error.in_stream:
        events = tuple(wire.error_events(request, error.problem, error.body))
        return Outcome(replace(request, status=200, error=error.body), 200, None, events, error.headers)
    record = replace(request, status=error.problem.status, error=error.body)
    return Outcome(record, error.problem.status, error.body, None, error.headers)
