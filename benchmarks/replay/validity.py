"""What a provider, or a framework for agents, would not accept in a view, apart from its size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.replay.chat import calls
from benchmarks.replay.recording import Recording


def problems(recording: Recording, view: Sequence[int]) -> Iterator[str]:
    """Every problem of a view, given as numbers of ``recording.known``."""
    if not view:
        yield "empty view"
        return
    if recording.messages[0]["role"] == "system":
        if view[0] != recording.numbers[0]:
            yield "system message changed or not first"
        if len(view) == 1:
            yield "nothing but the system message"
    yield from _broken_pairs(recording, view)


def _broken_pairs(recording: Recording, view: Sequence[int]) -> Iterator[str]:
    """Calls that lost the result they had, and results that lost their call."""
    waiting: set[str] = set()
    for number in view:
        message = recording.known.messages[number]
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield "result without its call before it"
            waiting.discard(message["tool_call_id"])
            continue
        yield from _unanswered(recording, waiting)
        waiting = {call_id for call_id, _, _ in calls(message)}
    yield from _unanswered(recording, waiting)


def _unanswered(recording: Recording, waiting: set[str]) -> Iterator[str]:
    yield from ("call without its result" for _ in waiting & recording.answered)
