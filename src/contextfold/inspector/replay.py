"""The replay of a conversation: before each answer of the agent, the view that its model would have got.

Teacher forcing: the conversation never changes. Before each answer whatever makes views is asked for the view of
everything so far, and the answer that really came tells what was needed.

What belongs here: the loop, the values of one request that follow from views alone (what a cache holds of it, whether
the prefix was rewritten), and whether a need was met. What does not: prices (``money``), and what others judge of a
request (the benchmark's measures).
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contextfold.errors import reason
from contextfold.inspector import anchors
from contextfold.inspector.recording import Known, Need, Recording

COLUMNS = ("index", "history", "view", "cached", "rewritten", "answer", "state")
"""What a document says of each request, as columns of equal length."""

CONTEXT_WORDS = 2
"""Plain words around an anchor that must have come along for it to count as in context."""

Ask = Callable[[list[Any]], Sequence[Any]]
"""From the history so far (a list of its own) to the view. What it raises is an error of that request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """One request that the agent's model would have got. Sizes are tokens, times are seconds."""

    index: int
    """Place in the conversation of the answer that really came next. What stands before it is the history."""
    view: Sequence[Any]
    """What would be sent. Empty where making it failed."""
    numbers: tuple[int, ...]
    """The view as numbers of ``recording.known``: equal messages have equal numbers."""
    present: frozenset[int]
    """The same as a set."""
    foreign: tuple[int, ...]
    """Those of ``numbers`` that are no message of the conversation: summaries, notes, shortened messages."""
    tokens: int
    """Size of the view."""
    cached: int
    """Tokens at its start that are the same as in the view before: a provider reads them from its cache."""
    rewritten: bool
    """Not the view before with something appended: the prefix was changed."""
    error: str
    """What was raised instead of a view; empty where nothing was."""
    seconds: float
    """The time that making the view took."""


def requests(
    recording: Recording, ask: Ask, *, steps: Iterable[int] | None = None, outside: Callable[[], float] | None = None
) -> Iterator[ReplayRequest]:
    """Every request of a replay. ``steps``: their indices, those of the recording if not given.

    ``outside``: seconds spent so far that are not to be counted as the view's.
    """
    before = _Numbered()
    for index in recording.steps if steps is None else steps:
        view, error, seconds = _asked(recording, ask, index, outside or float)
        try:
            now = before.then(list(view), recording)
        except (AttributeError, KeyError, TypeError) as raised:  # no messages of this shape
            view, now, error = (), before.then([], recording), reason(raised)
        yield ReplayRequest(
            index=index,
            view=view,
            numbers=now.numbers,
            present=frozenset(now.numbers),
            foreign=now.foreign,
            tokens=now.tokens,
            cached=now.cached,
            rewritten=now.rewritten,
            error=error,
            seconds=seconds,
        )
        before = now


def pieced(
    recording: Recording, steps: Iterable[int], view: Callable[[int, int], Sequence[Any]]
) -> Iterator[ReplayRequest]:
    """Requests whose views are known already: ``view(number, until)`` gives that of a request."""
    numbered = iter(range(10**9))
    yield from requests(recording, lambda history: view(next(numbered), len(history)), steps=steps)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A view as numbers. One that goes on from the view before is read from there on: a chat of many short messages has
    as many views, each longer than the one before.
    """

    view: Sequence[Any] = ()
    """A list of its own: whatever makes views may go on with its own."""
    numbers: tuple[int, ...] = ()
    foreign: tuple[int, ...] = ()
    """Those of ``numbers`` that are no message of the conversation."""
    loose: tuple[int, ...] = ()
    """Places in the view of objects that are not those of the conversation: they may be changed in place."""
    tokens: int = 0
    cached: int = 0
    rewritten: bool = False

    def then(self, view: list[Any], recording: Recording) -> _Numbered:
        """The view behind this one. Raises what a message of another shape raises."""
        known = recording.known
        goes_on = self._goes_on_in(view, known)
        kept = self if goes_on else _Numbered()
        start = len(kept.numbers)
        new = tuple(map(known.number, view[start:]))
        numbers = kept.numbers + new
        same = start if goes_on else _same(numbers, self.numbers)
        return _Numbered(
            view,
            numbers,
            kept.foreign + tuple(number for number in new if number not in recording.source),
            kept.loose + tuple(place for place in range(start, len(view)) if not known.is_source(view[place])),
            kept.tokens + sum(map(known.tokens, new)),
            self.tokens if goes_on else sum(map(known.tokens, numbers[:same])),
            rewritten=same < len(self.numbers),
        )

    def _goes_on_in(self, view: list[Any], known: Known) -> bool:
        """Whether a view begins with the objects of this one, none of which was changed in place since."""
        return (
            len(view) >= len(self.view)
            and all(map(operator.is_, self.view, view))
            and all(known.number(view[place]) == self.numbers[place] for place in self.loose)
        )


def _asked(
    recording: Recording, ask: Ask, index: int, outside: Callable[[], float]
) -> tuple[Sequence[Any], str, float]:
    """The view, or an empty one and what was raised; and the seconds that it took."""
    not_ours = outside()
    started = time.perf_counter()
    view: Sequence[Any] = ()
    error = ""
    try:
        view = ask(list(recording.messages[:index]))
    except Exception as raised:  # noqa: BLE001  the agent would have stopped here: nothing reaches the model
        error = reason(raised)
    return view, error, time.perf_counter() - started - (outside() - not_ours)


def _same(now: Sequence[int], before: Sequence[int]) -> int:
    for count, (one, other) in enumerate(zip(now, before, strict=False)):
        if one != other:
            return count
    return min(len(now), len(before))


# ---- was it needed? ----


def is_whole(need: Need, request: ReplayRequest) -> bool:
    """Whether a message that holds the anchor stands in the view as it was."""
    return not need.homes.isdisjoint(request.present)


def is_found(need: Need, request: ReplayRequest, known: Known) -> bool:
    """Whether the anchor stands in the view verbatim, in a message as it was or in anything else there."""
    return is_whole(need, request) or any(
        anchors.occurs(need.anchor, known.searchable(number)) for number in request.foreign
    )


def is_in_context(need: Need, request: ReplayRequest, known: Known) -> bool:
    """Whether it is found and is no bare name: beside it stand plain words that stood beside it in the source."""
    if is_whole(need, request):
        return True
    if not is_found(need, request, known):
        return False
    around = known.surroundings
    said = [words for n in sorted(need.homes) for words in around(need.anchor, n) if len(words) >= CONTEXT_WORDS]
    if not said:  # it only ever stood among other names
        return True
    kept = [words for n in request.foreign for words in around(need.anchor, n)]
    return any(len(now & then) >= CONTEXT_WORDS for now in kept for then in said)


class Judge:
    """Counts what answers needed from their past by what the view had of it, and lists what it did not have."""

    def __init__(self, recording: Recording, clean: Callable[[str], str]) -> None:
        self._recording = recording
        self._clean = clean
        self.counts = {"needed": 0, "whole": 0, "carried": 0, "bare": 0, "lost": 0}
        """``whole``: in a message as it was. ``carried``: elsewhere in the view, with words that stood beside it.
        ``bare``: elsewhere, without. ``lost``: not in the view."""
        self.missing: list[list[Any]] = []
        """[request, anchor, index where it was last said, tokens since then, ``bare`` or ``lost``]"""

    def step(self, number: int, request: ReplayRequest) -> None:
        for need in self._recording.needs.get(request.index, ()):
            kind = self._kind(need, request)
            self.counts["needed"] += 1
            self.counts[kind] += 1
            if kind in ("bare", "lost"):
                self.missing.append([number, self._clean(need.anchor), need.last, need.distance, kind])

    def _kind(self, need: Need, request: ReplayRequest) -> str:
        known = self._recording.known
        if is_whole(need, request):
            return "whole"
        if not is_found(need, request, known):
            return "lost"
        return "carried" if is_in_context(need, request, known) else "bare"
