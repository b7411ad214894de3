"""Does a strategy's own account agree with what can be seen from outside?

After every compaction, and at the end, a strategy that keeps an account (``Strategy.fates``) says of each message of
the history what became of it. Each claim is held against a probe that does not ask the strategy:

- *kept*, *pinned*: the message stands in the view as it was;
- *shortened*: it does not, and some of its text stands in the view all the same (or it has none to look for);
- *summarized*: it does not, and all probes of its text (``summaries.probes``) reached the summarizer: the stub, or for
  contextfold's built-in one what that function was handed (``Reading``);
- *dropped*: it does not, and no probe of it reached the summarizer.

The account must have one fate for each message: too short a one disagrees. Of equal messages one may be kept and
another summarized, so that such a one stands in the view tells nothing against a claim that it does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from benchmarks.replay.chat import Message, argument_text, calls, content_text, rendered
from benchmarks.replay.measure import Column, Number, Step, share_column, total
from benchmarks.replay.measures.summaries import reached, squeezed
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy
from contextfold.messages import Message as Decoded
from contextfold.messages import ToolCall, texts
from contextfold.summary import extractive

FATES = ("kept", "pinned", "shortened", "summarized", "dropped")
EXAMPLES = 5
"""Disagreements that are told in words, of each replay."""


def disagreement(fate: str, message: Message, *, is_present: bool, view: Sequence[str], shown: Sequence[str]) -> str:
    """What is wrong with a claim; empty where it holds.

    Args:
        is_present: the message stands in the view as it was.
        view: squeezed texts of what else stands in the view.
        shown: squeezed texts that the summarizer was shown so far.
    """
    if fate in ("kept", "pinned"):
        return "" if is_present else f"{fate}, but not in the view as it was"
    if fate not in FATES:
        return f"no fate: {fate!r}"
    if is_present:
        return f"{fate}, but in the view as it was"
    if fate == "shortened":
        return "shortened, but nothing of it is in the view" if reach_of(message, view) == "none" else ""
    reach = reach_of(message, shown)
    if fate == "summarized":
        return f"summarized, but {reach} of it reached the summarizer" if reach in ("part", "none") else ""
    return "dropped, but it reached the summarizer" if reach == "full" else ""


def reach_of(message: Message, squeezed_texts: Sequence[str]) -> str:
    """``full``, ``part`` or ``none``: how much of a message stands in these texts; empty where it cannot be told.

    Its words and each value in its calls are looked for apart: how a call is written down does not count.
    """
    pieces = [content_text(message.get("content"))]
    pieces += [leaf for _, _, arguments in calls(message) for leaf in argument_text(arguments).split("\n")]
    found = {reach for piece in pieces if (reach := reached(piece, squeezed_texts))}
    return "part" if len(found) > 1 else "".join(found)


class Reading:
    """What contextfold's built-in summarizer is handed, from now until ``stop``.

    It can only be seen from inside: no summarizer of the caller is asked. So its function is replaced, once, by one
    that also notes the messages it gets, as they are and without a copy, in order to cost the strategy no time.
    """

    _open: ClassVar[list[Reading]] = []

    def __init__(self) -> None:
        self._handed: list[Decoded] = []
        self._known: set[int] = set()  # id(message): those of ``_all`` stay alive
        self._all: list[Decoded] = []
        if not hasattr(extractive.summarize, "noted"):
            extractive.summarize = _noting(extractive.summarize)
        self._open.append(self)

    def stop(self) -> None:
        """Take no more notes."""
        self._open.remove(self)

    def new(self) -> str:
        """Squeezed text of what was handed since the last time, each message once."""
        handed = {id(message): message for message in self._handed}
        fresh = [message for key, message in handed.items() if key not in self._known]
        self._known |= handed.keys()
        self._all += fresh
        self._handed = []
        return squeezed("\n".join(text for message in fresh for text in _decoded(message)))

    @classmethod
    def note(cls, messages: Sequence[Decoded]) -> None:
        """Called by the summarizer with what it got."""
        for reading in cls._open:
            reading._handed += messages


def _noting(summarize: Any) -> Any:
    def noted(messages: Sequence[Decoded], **options: Any) -> Any:
        Reading.note(messages)
        return summarize(messages, **options)

    noted.noted = True  # type: ignore[attr-defined]
    return noted


def _decoded(message: Decoded) -> Iterator[str]:
    """The texts of a message as ``chat.rendered`` orders them: names of tools stand before their arguments."""
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield part.name
        yield from texts(part)


class Coverage:
    """Holds the account of a strategy against probes at every compaction."""

    columns: ClassVar[Sequence[Column]] = (
        share_column(
            "account",
            "account agrees %",
            "Claims of the strategy's own account about a message (kept, pinned, shortened, summarized, dropped) that "
            "probes confirm, checked after every compaction.",
            "account_agreed",
            "account_claims",
            main=False,
        ),
        Column(
            "account_claims",
            "claims checked",
            "How many claims were checked.",
            total("account_claims"),
            "count",
            better="",
            main=False,
        ),
    )

    def __init__(self, recording: Recording, window: int) -> None:
        self._recording = recording
        self._last: Step | None = None
        self._twins = {number for number, times in Counter(recording.numbers).items() if times > 1}
        self._counts: Counter[str] = Counter()
        self._squeezed: dict[int, str] = {}
        self._reading = Reading()
        self._inputs = 0  # of the stub, seen so far
        self._shown: list[str] = []
        self._covered: set[int] = set()  # numbers of messages whose whole text was shown
        self.examples: list[str] = []
        """Disagreements in words."""

    def step(self, step: Step) -> None:
        if step.rewritten:
            self._check(step)
        self._last = step

    def result(self, strategy: Strategy) -> dict[str, Number]:
        if self._last is not None and not self._last.rewritten:
            self._check(self._last)
        self._reading.stop()
        return {f"account_{name}": self._counts[name] for name in ("claims", "agreed")}

    def _check(self, step: Step) -> None:
        fates = step.strategy.fates()
        if fates is None or step.error:
            return
        view = [self._bare(number) for number in step.foreign]
        self._look_at_shown(step.strategy)
        for index, number in enumerate(self._recording.numbers[: step.index]):
            message = self._recording.messages[index]
            fate = fates[index] if index < len(fates) else "nothing"
            is_present = number in step.present and (fate in ("kept", "pinned") or number not in self._twins)
            if fate == "summarized" and number in self._covered and not is_present:
                problem = ""
            else:
                problem = disagreement(fate, message, is_present=is_present, view=view, shown=self._shown)
            if fate == "summarized" and not problem:
                self._covered.add(number)
            self._counts["claims"] += 1
            self._counts["agreed"] += not problem
            if problem and len(self.examples) < EXAMPLES:
                self.examples.append(f"{self._recording.conversation.name} message {index}: {problem}")

    def _look_at_shown(self, strategy: Strategy) -> None:
        inputs = strategy.summarizer.inputs
        fresh = [squeezed(text) for text in inputs[self._inputs :]]
        self._inputs = len(inputs)
        self._shown += [text for text in (*fresh, self._reading.new()) if text]

    def _bare(self, number: int) -> str:
        if number not in self._squeezed:
            self._squeezed[number] = squeezed(rendered(self._recording.known.messages[number]))
        return self._squeezed[number]
