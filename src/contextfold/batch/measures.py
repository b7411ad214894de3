"""The benchmark's measures for one conversation under one ``Compactor``.

The conversation is replayed as the inspector does it (``contextfold.inspector.replay``), with the benchmark's names for
totals and figures (``benchmarks/replay/measures``, whose figures are the same for the same views and sizes: a test
holds one against the other). Totals add up over conversations, but for those that begin with ``max_``, of which the
largest is taken; figures follow from totals (``figures_of``), of one conversation or of a million.

What belongs here: counting. What does not: what was needed and whether it was there (``inspector.replay``), what a user
said (``inspector.words``), prices (``inspector.money``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from contextfold import formats
from contextfold.batch.rows import Given
from contextfold.batch.tables import ColumnType
from contextfold.compactor import CompactionResult, Compactor
from contextfold.inspector import words
from contextfold.inspector.money import BILLIONTHS, LISTS, Call, billionths
from contextfold.inspector.recording import Recording
from contextfold.inspector.replay import ReplayRequest, is_found, is_in_context, requests
from contextfold.inspector.wire import Wire
from contextfold.messages import Message, ToolCall
from contextfold.record.compaction import Compaction

Number = int | float

HARD = 4
"""The window divided by this is the distance from which on a need is hard."""
CACHED, UNCACHED, OUTPUT = 0.1, 1.25, 5.0
"""Prices of a token, in input tokens without a cache: the proportions of today's price lists."""

TOTALS = (
    "requests",
    "compactions",
    *(f"recall_{name}" for name in ("needed", "found", "hard", "hard_found", "hard_usable", "hard_context")),
    *(f"recall_{name}" for name in ("far", "far_found", "far_usable")),
    *(f"words_{name}" for name in ("users", "users_verbatim", "users_findable", "constraints", "constraints_verbatim")),
    *(f"cost_{name}" for name in ("view_tokens", "cached_tokens", "summary_input", "summary_output", "rewrites")),
    "max_view_tokens",
    "none_view_tokens",
    "none_cached_tokens",
    *(f"conduct_{name}" for name in ("invalid", "over", "errors", "newest", "newest_lost", "first", "first_kept")),
)
"""What adds up over conversations. ``none_``: the whole history each time, perfectly cached."""

MONEY = tuple(f"money_{prices.key}" for prices in LISTS)
"""Dollars of all requests of a conversation and their answers, by the price lists of ``inspector.money``."""

_Figure = Callable[[Mapping[str, Number]], Number | None]


def _share(part: str, whole: str) -> _Figure:
    return lambda totals: totals[part] / totals[whole] if totals.get(whole) else None


def _total(name: str) -> _Figure:
    return lambda totals: totals[name]


def _spent(view: Number, cached: Number, summary_input: Number = 0, summary_output: Number = 0) -> float:
    return CACHED * cached + UNCACHED * (view - cached + summary_input) + OUTPUT * summary_output


def _cost(totals: Mapping[str, Number]) -> float | None:
    reference = _spent(totals["none_view_tokens"], totals["none_cached_tokens"])
    names = ("view_tokens", "cached_tokens", "summary_input", "summary_output")
    return _spent(*(totals[f"cost_{name}"] for name in names)) / reference if reference else None


_FIGURES: Mapping[str, _Figure] = {
    "hard_in_context": _share("recall_hard_context", "recall_hard"),
    "far_usable": _share("recall_far_usable", "recall_far"),
    "recall": _share("recall_found", "recall_needed"),
    "hard_recall": _share("recall_hard_found", "recall_hard"),
    "hard_usable": _share("recall_hard_usable", "recall_hard"),
    "users_verbatim": _share("words_users_verbatim", "words_users"),
    "users_findable": _share("words_users_findable", "words_users"),
    "constraints": _share("words_constraints_verbatim", "words_constraints"),
    "cost": _cost,
    "rewrites": _total("cost_rewrites"),
    "view_tokens": _share("cost_view_tokens", "requests"),
    "peak_view": _total("max_view_tokens"),
    "cached": _share("cost_cached_tokens", "cost_view_tokens"),
    "invalid": _share("conduct_invalid", "requests"),
    "over_window": _share("conduct_over", "requests"),
    "latest_user_lost": _share("conduct_newest_lost", "conduct_newest"),
    "first_user": _share("conduct_first_kept", "conduct_first"),
    "errors": _total("conduct_errors"),
}
"""The figures by the benchmark's keys for them; shares are from 0 to 1."""

_WHOLE_FIGURES = ("rewrites", "peak_view", "errors")
TYPES: Mapping[str, ColumnType] = {
    **{name: "whole" if name in _WHOLE_FIGURES else "number" for name in _FIGURES},
    "first_error": "text",
    **dict.fromkeys(MONEY, "number"),
    **dict.fromkeys(TOTALS, "whole"),
}


def figures_of(totals: Mapping[str, Number]) -> dict[str, Number | None]:
    """The figures of totals, of one conversation or of several added up."""
    return {name: figure(totals) for name, figure in _FIGURES.items()}


class Replayed:
    """One conversation, replayed when it is made. ``tokens``: its size.

    Raises ``InputError`` for what is no conversation. A view that could not be made (``CannotFit``) is a request with
    an error, as in the benchmark: the replay goes on.
    """

    def __init__(self, given: Given, format: str, compactor: Compactor) -> None:
        self._given = given
        self._compactor = compactor
        self._window = compactor.window.tokens
        self._shape = Wire(formats.get(format))
        wire = list(given.messages)
        self._messages = formats.decode(wire, self._shape.format)
        self._shape.remember(wire, self._messages)
        self._recording = Recording(wire, self._shape)
        beside = self._shape.counter.tools(given.tools)
        self._overhead = beside + (self._shape.counter.text(given.system) if given.system else 0)
        self.tokens = self._recording.total_tokens + self._overhead
        self._answered = {result.call_id for message in self._messages for result in message.tool_results}
        self._totals: Counter[str] = Counter(dict.fromkeys(TOTALS, 0))
        self._money: Counter[str] = Counter()
        self._speech = _Speech(self._recording, self._shape, self._messages)
        self._record: Compaction | None = None
        self._made: list[CompactionResult] = []
        self._error: str | None = None
        self._history = 0
        for number, request in enumerate(requests(self._recording, self._ask)):
            self._step(number, request)

    def figures(self) -> dict[str, Any]:
        """The values of ``TYPES``."""
        dollars = {name: self._money[name] / BILLIONTHS for name in MONEY}
        totals = dict(self._totals)
        return {**figures_of(totals), "first_error": self._error, **dollars, **totals}

    def _ask(self, history: list[Any]) -> Sequence[Any]:
        given = self._given
        result = self._compactor.compact(
            history, previous=self._record, format=self._shape.format.name, system=given.system, tools=given.tools
        )
        self._record = result.compaction
        if result.changed:
            self._made.append(result)
        return result.messages

    def _step(self, number: int, request: ReplayRequest) -> None:
        beside = 0 if request.error else self._overhead
        view, cached = request.tokens + beside, request.cached + (beside if number else 0)
        problems = list(_problems(self._recording, self._shape, request.numbers, self._answered))
        fits = view <= self._window
        self._recall(request, usable=fits and not problems)
        self._speech.step(request, fits and not problems, self._totals)
        self._price(request, view, cached)
        totals = self._totals
        totals["requests"] += 1
        totals["cost_view_tokens"] += view
        totals["cost_cached_tokens"] += cached
        totals["cost_rewrites"] += request.rewritten
        totals["max_view_tokens"] = max(totals["max_view_tokens"], view)
        totals["conduct_invalid"] += bool(problems)
        totals["conduct_over"] += not fits
        totals["conduct_errors"] += bool(request.error)
        self._error = self._error or request.error or None
        history = self._recording.before[request.index] + self._overhead
        totals["none_view_tokens"] += history
        totals["none_cached_tokens"] += self._history
        self._history = history

    def _recall(self, request: ReplayRequest, *, usable: bool) -> None:
        known, totals = self._recording.known, self._totals
        for need in self._recording.needs.get(request.index, ()):
            found = is_found(need, request, known)
            totals["recall_needed"] += 1
            totals["recall_found"] += found
            if need.distance >= self._window // HARD:
                totals["recall_hard"] += 1
                totals["recall_hard_found"] += found
                totals["recall_hard_usable"] += found and usable
                totals["recall_hard_context"] += found and usable and is_in_context(need, request, known)
            if need.distance >= self._window:
                totals["recall_far"] += 1
                totals["recall_far_found"] += found
                totals["recall_far_usable"] += found and usable

    def _price(self, request: ReplayRequest, view: int, cached: int) -> None:
        answer = sum(
            self._recording.known.tokens(self._recording.numbers[place])
            for place in self._recording.answers.get(request.index, range(0))
        )
        calls = [] if request.error else [Call(view, cached, view - cached, answer)]
        for made in self._made:
            self._totals["compactions"] += 1
            if made.summary is not None and made.summary.calls:
                self._totals["cost_summary_input"] += made.summary.input_tokens
                self._totals["cost_summary_output"] += made.summary.output_tokens
                calls.append(Call(made.summary.input_tokens, 0, 0, made.summary.output_tokens))
        self._made = []
        for prices in LISTS:
            self._money[f"money_{prices.key}"] += sum(billionths(prices, call) for call in calls)


class _Speech:
    """What people said, followed through the views: all their messages, the newest and the first of them."""

    def __init__(self, recording: Recording, shape: Wire, messages: Sequence[Message]) -> None:
        self._recording = recording
        self._shape = shape
        self._messages = messages
        self._said: list[words.Said] = []
        self._newest: int | None = None
        self._first: int | None = None
        self._walked = 0
        self._foreign: tuple[int, ...] | None = None
        self._others = ""
        self._texts: list[str] = []
        self._known: dict[int, words.WordsFound] = {}

    def step(self, request: ReplayRequest, usable: bool, totals: Counter[str]) -> None:
        self._listen(request.index)
        if request.foreign != self._foreign:
            self._look_around(request.foreign)
        for place, message in enumerate(self._said):
            found = self._find(place, message, request) if usable else words.WordsFound(False, False, 0)
            totals["words_users"] += 1
            totals["words_users_verbatim"] += found.verbatim
            totals["words_users_findable"] += found.findable
            totals["words_constraints"] += len(message.constraints)
            totals["words_constraints_verbatim"] += found.constraints
        if self._newest is not None:
            totals["conduct_newest"] += 1
            totals["conduct_newest_lost"] += not self._is_kept(request, self._newest)
        if self._first is not None:
            totals["conduct_first"] += 1
            totals["conduct_first_kept"] += self._is_kept(request, self._first)

    def _listen(self, until: int) -> None:
        for index in range(self._walked, until):
            message = self._messages[index]
            if message.role != "user" or not message.is_user_turn:
                continue
            self._newest = index
            # A harness said this in the user's place: no first request, and no words of a person.
            if message.text.lstrip().startswith(words.INJECTED):
                continue
            self._first = index if self._first is None else self._first
            if message.text.strip():
                self._said.append(words.said(self._recording.numbers[index], message.text))
        self._walked = until

    def _look_around(self, foreign: tuple[int, ...]) -> None:
        known = self._recording.known
        decoded = [self._shape.decoded(known.messages[number]) for number in foreign]
        self._foreign = foreign
        self._texts = [_content(message) for message in decoded]
        self._others = words.squeezed("\n".join(_rendered(message) for message in decoded))
        self._known = {}

    def _find(self, place: int, message: words.Said, request: ReplayRequest) -> words.WordsFound:
        if message.number in request.present:
            return words.found(message, True, "", {})
        if place not in self._known:
            self._known[place] = words.found(message, False, self._others, {})
        return self._known[place]

    def _is_kept(self, request: ReplayRequest, index: int) -> bool:
        """Whether a message is in the view verbatim: as its own message, or quoted whole inside another one."""
        if self._recording.numbers[index] in request.present:
            return True
        text = self._messages[index].text.strip()
        return bool(text) and any(text in other for other in self._texts)


def _content(message: Message) -> str:
    return "\n".join([message.text, *(result.text for result in message.tool_results)])


def _rendered(message: Message) -> str:
    calls = [f"{part.name}({part.arguments})" for part in message.parts if isinstance(part, ToolCall)]
    return "\n".join([_content(message), *calls])


def _problems(recording: Recording, shape: Wire, view: Sequence[int], answered: set[str]) -> Iterator[str]:
    """What a provider would not accept in a view, apart from its size; told by what was answered in the conversation,
    not by what the engine thinks of it.
    """
    if not view:
        yield "empty view"
        return
    first = recording.numbers[0]
    if shape.is_instruction(recording.messages[0]):
        if view[0] != first:
            yield "system message changed or not first"
        if len(view) == 1:
            yield "nothing but the system message"
    waiting: set[str] = set()
    for number in view:
        message = shape.decoded(recording.known.messages[number])
        results = {result.call_id for result in message.tool_results}
        if results:
            yield from ("result without its call before it" for _ in results - waiting)
            waiting -= results
        calls = {call.id for call in message.tool_calls}
        if calls and message.split:
            waiting |= calls  # items of one turn: its calls stand in several
        elif not results:
            yield from ("call without its result" for _ in waiting & answered)
            waiting = calls
    yield from ("call without its result" for _ in waiting & answered)
