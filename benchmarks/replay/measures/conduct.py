"""Whether a view can be sent, and whether it keeps what must never leave: the first and the newest request.

A provider refuses a view that is malformed or over the window; an agent that lost the newest user message answers the
wrong question. None of these should ever happen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from benchmarks.replay.chat import content_text
from benchmarks.replay.measure import Column, Number, Step, counted, share_column, total
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy

PLACEHOLDERS = ("Previous conversation was too long to summarize", "No previous conversation history")
"""Fixed sentences that strategies put where a summary should be."""
LONGEST_PLACEHOLDER = 400
"""Characters of such a sentence with its frame; a real summary may quote an earlier placeholder, and is longer."""


class Conduct:
    """Counts views that break something."""

    columns: ClassVar[Sequence[Column]] = (
        share_column(
            "invalid", "invalid %", "Views that a provider would refuse as malformed.", "conduct_invalid", "views",
            better="low",
        ),
        share_column(
            "over_window", "over window %", "Views larger than the window.", "conduct_over", "views", better="low"
        ),
        share_column(
            "latest_user_lost",
            "newest user lost %",
            "Views without the newest user message word for word.",
            "conduct_newest_lost",
            "conduct_newest",
            better="low",
        ),
        share_column(
            "first_user",
            "first user kept %",
            "Views with the first message that a person wrote, word for word.",
            "conduct_first_kept",
            "conduct_first",
            main=False,
        ),
        Column(
            "errors", "errors", "Calls in which the strategy raised an error.", total("conduct_errors"), "count",
            better="low",
        ),
        Column(
            "placeholders",
            "placeholder summaries",
            "Summaries that are a fixed sentence and say nothing.",
            total("conduct_placeholders"),
            "count",
            better="low",
            main=False,
        ),
        Column(
            "mutated",
            "mutated messages",
            "Messages of the caller that the strategy changed in place.",
            total("conduct_mutated"),
            "count",
            better="low",
            main=False,
        ),
    )  # fmt: skip

    def __init__(self, recording: Recording, window: int) -> None:
        self._recording = recording
        self._counts: Counter[str] = Counter()
        self._problems: Counter[str] = Counter()
        self._newest: int | None = None
        self._walked = 0

    def step(self, step: Step) -> None:
        for index in range(self._walked, step.index):
            if self._recording.messages[index]["role"] == "user":
                self._newest = index
        self._walked = step.index
        counts = self._counts
        counts["views"] += 1
        counts["conduct_invalid"] += bool(step.problems)
        counts["conduct_over"] += not step.fits
        counts["conduct_errors"] += bool(step.error)
        self._problems.update(step.problems)
        if self._newest is not None:
            counts["conduct_newest"] += 1
            counts["conduct_newest_lost"] += not is_kept(step, self._newest)
        first = self._recording.conversation.first_user
        if first is not None and first < step.index:
            counts["conduct_first"] += 1
            counts["conduct_first_kept"] += is_kept(step, first)
        if step.rewritten:
            known = self._recording.known
            counts["conduct_placeholders"] += any(_is_placeholder(known.searchable(n)) for n in step.foreign)

    def result(self, strategy: Strategy) -> dict[str, Number]:
        recording = self._recording
        pairs = zip(recording.messages, recording.numbers, strict=True)
        self._counts["conduct_mutated"] = sum(recording.known.number_now(message) != n for message, n in pairs)
        names = ("invalid", "over", "errors", "newest", "newest_lost", "first", "first_kept", "placeholders", "mutated")
        found: dict[str, Number] = {"views": self._counts["views"]}
        found |= {f"conduct_{name}": self._counts[f"conduct_{name}"] for name in names}
        return found | counted("problem: ", self._problems)


def is_kept(step: Step, index: int) -> bool:
    """Whether a message of the history is in the view verbatim: as its own message, or quoted whole inside another."""
    recording = step.recording
    if recording.numbers[index] in step.present:
        return True
    text = content_text(recording.messages[index]["content"]).strip()
    return bool(text) and any(text in content_text(recording.known.messages[n]["content"]) for n in step.foreign)


def _is_placeholder(text: str) -> bool:
    return len(text) < LONGEST_PLACEHOLDER and any(sentence in text for sentence in PLACEHOLDERS)
