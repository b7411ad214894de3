"""Replays one conversation through one strategy.

Teacher forcing: the conversation never changes. Before each answer of the agent the strategy is asked for its view of
everything so far, and the answer that really came tells what was needed.

What belongs here: the loop, and what makes a ``Step``. What does not: judging steps (``measures``), choosing
conversations and strategies (``jobs``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.replay.chat import Message
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measure import Measure, Number, Step, added
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.validity import problems


@dataclass(frozen=True)
class Replay:
    """What was measured of one replay. ``totals`` are the same in every run, ``times`` (samples) are not."""

    totals: Mapping[str, Number]
    times: Mapping[str, Sequence[float]]
    first_error: str = ""


def replay(conversation: Conversation | Recording, strategy: Strategy, measures: Sequence[type[Measure]]) -> Replay:
    """All of a conversation through one strategy, in the strategy's window. The strategy is not closed."""
    recording = conversation if isinstance(conversation, Recording) else Recording(conversation)
    made = [measure(recording, strategy.window) for measure in measures]
    first_error = ""
    for step in steps(recording, strategy):
        first_error = first_error or step.error
        for measure in made:
            measure.step(step)
    totals = added([measure.result(strategy) for measure in made])
    timed = [measure.times(strategy) for measure in made if hasattr(measure, "times")]
    return Replay(totals, {name: samples for one in timed for name, samples in one.items()}, first_error)


def steps(recording: Recording, strategy: Strategy) -> Iterator[Step]:
    """Every request of a replay, as the strategy makes it."""
    previous: tuple[int, ...] = ()
    rewrites = 0
    for index in recording.steps:
        answer = _asked(recording, strategy, index)
        rewritten = bool(previous) and answer.numbers[: len(previous)] != previous
        rewrites += rewritten
        yield _step(recording, strategy, index, answer, previous, rewritten, rewrites)
        previous = answer.numbers


@dataclass(frozen=True)
class _Answer:
    """What a strategy came up with."""

    view: Sequence[Message]
    numbers: tuple[int, ...]
    error: str
    seconds: float


def _asked(recording: Recording, strategy: Strategy, index: int) -> _Answer:
    outside = strategy.adapter_seconds + strategy.summarizer.seconds
    view: Sequence[Message] = ()
    error = ""
    started = time.perf_counter()
    try:
        view = strategy.view(list(recording.messages[:index]))
    except Exception as raised:  # noqa: BLE001  the agent would have stopped here: nothing reaches the model
        error = _said(raised)
    spent = time.perf_counter() - started
    spent -= strategy.adapter_seconds + strategy.summarizer.seconds - outside
    try:
        return _Answer(view, tuple(recording.known.number(message) for message in view), error, spent)
    except (AttributeError, KeyError, TypeError) as raised:  # no chat messages
        return _Answer((), (), _said(raised), spent)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _step(
    recording: Recording,
    strategy: Strategy,
    index: int,
    answer: _Answer,
    previous: tuple[int, ...],
    rewritten: bool,
    rewrites: int,
) -> Step:
    known, numbers = recording.known, answer.numbers
    sizes = [known.tokens(number) for number in numbers]
    return Step(
        recording=recording,
        strategy=strategy,
        window=strategy.window,
        index=index,
        view=answer.view,
        numbers=numbers,
        present=frozenset(numbers),
        foreign=tuple(number for number in numbers if number not in recording.source),
        tokens=sum(sizes),
        cached=sum(sizes[: _same(numbers, previous)]),
        rewritten=rewritten,
        rewrites=rewrites,
        problems=tuple(problems(recording, numbers)),
        error=answer.error,
        seconds=answer.seconds,
    )


def _same(now: Sequence[int], before: Sequence[int]) -> int:
    """How many messages at the start of two views are the same."""
    for count, (one, other) in enumerate(zip(now, before, strict=False)):
        if one != other:
            return count
    return min(len(now), len(before))
