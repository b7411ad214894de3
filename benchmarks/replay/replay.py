"""Replays one conversation through one strategy.

Teacher forcing: the conversation never changes. Before each answer of the agent the strategy is asked for its view of
everything so far, and the answer that really came tells what was needed.

What belongs here: strategies in the loop of ``contextfold.inspector.replay``, and what makes a ``Step``. What does
not: judging steps (``measures``), choosing conversations and strategies (``jobs``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measure import Measure, Number, Step, added
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.validity import problems
from contextfold.inspector.replay import ReplayRequest, requests


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


_SHARED = tuple(field.name for field in fields(ReplayRequest))


def steps(recording: Recording, strategy: Strategy) -> Iterator[Step]:
    """Every request of a replay, as the strategy makes it."""
    outside = lambda: strategy.adapter_seconds + strategy.summarizer.seconds  # noqa: E731
    for request in requests(recording, strategy.view, outside=outside):
        yield Step(
            **{name: getattr(request, name) for name in _SHARED},
            recording=recording,
            strategy=strategy,
            window=strategy.window,
            problems=tuple(problems(recording, request.numbers)),
        )
