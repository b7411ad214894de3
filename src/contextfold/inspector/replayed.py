"""A document from a file: its conversation replayed turn by turn, under one or two settings.

What belongs here: running ``Compactor`` in the loop of ``replay``, and turning what it says into the runs of a
document. What does not: the fields (``document``), prices (``money``), reading files (``transcripts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from contextfold import formats
from contextfold.calls.request import CompactionResult
from contextfold.compactor import Compactor
from contextfold.conversation.fingerprint import opening
from contextfold.inspector.document import (
    Shared,
    document,
    fate_entries,
    message_entry,
    recalled_entry,
    redactor,
    state_entry,
)
from contextfold.inspector.money import money
from contextfold.inspector.recording import Recording
from contextfold.inspector.replay import COLUMNS, Judge, ReplayRequest, requests
from contextfold.inspector.wire import Wire
from contextfold.messages import Message
from contextfold.observe import Event
from contextfold.record.compaction import Compaction
from contextfold.transcripts import Conversation

Progress = Callable[[int, int], object]
"""``progress(done, of)`` is called after each request."""

TOLD = ("summary_failed", "fallback_used", "cannot_fit", "archive_failed", "compaction_set_aside", "summary_truncated")
"""Events that are shown beside the moment at which they happened."""


@dataclass(frozen=True)
class Setting:
    """One way to run the replay: a name for people, what was set (name -> value), and the compactor itself."""

    name: str
    compactor: Compactor
    given: Mapping[str, Any] = field(default_factory=dict)


def replayed(
    conversation: Conversation,
    settings: Sequence[Setting],
    *,
    keys: Iterable[str] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The document of a conversation under one or two settings. ``keys`` are taken out besides what looks like one.

    A request whose view could not be made (``CannotFit``) is a moment with an error; the replay goes on, as it does in
    the benchmark.
    """
    clean = redactor(keys)
    talk = _Talk(conversation)
    entries = [message_entry(message, size, clean) for message, size in zip(talk.messages, talk.sizes, strict=True)]
    shared = Shared(talk.messages, entries, clean)
    total = len(settings) * len(talk.steps)
    runs = []
    for number, setting in enumerate(settings):
        started = number * len(talk.steps)
        told = None if progress is None else (lambda done, start=started: progress(start + done, total))
        runs.append(_Replay(talk, setting, shared).run(told))
    source = {
        "kind": "file",
        "name": clean(PurePath(conversation.name).name),
        "format": conversation.format,
        "recorded": False,
    }
    return document(source, entries, shared, runs)


class _Talk:
    def __init__(self, conversation: Conversation) -> None:
        self.wire = list(conversation.messages)
        self.format = formats.get(conversation.format)
        self.tools = conversation.tools or None
        self.messages: list[Message] = formats.decode(self.wire, self.format)
        self.shape = Wire(self.format)
        self.shape.remember(self.wire, self.messages)
        self.recording = Recording(self.wire, self.shape)
        self.sizes = [self.recording.known.tokens(number) for number in self.recording.numbers]
        self.overhead = self.shape.counter.tools(self.tools)
        self.head = sum(self.sizes[: opening(self.messages)])
        self.pending, self.steps = self.recording.pending, self.recording.moments

    def answer_tokens(self, index: int) -> int:
        return sum(self.sizes[place] for place in self.recording.answers.get(index, range(0)))


class _Replay:
    def __init__(self, talk: _Talk, setting: Setting, shared: Shared) -> None:
        self._talk = talk
        self._setting = setting
        self._shared = shared
        self._clean = shared.clean
        self._record: Compaction | None = None
        self._result: CompactionResult | None = None
        self._events: list[Event] = []
        self._columns: dict[str, list[int]] = {name: [] for name in COLUMNS}
        self._states: list[dict[str, Any]] = []
        self._marks: list[dict[str, Any]] = []
        self._judge = Judge(talk.recording, shared.excerpt)

    def run(self, progress: Callable[[int], object] | None) -> dict[str, Any]:
        talk = self._talk
        self._states.append(state_entry(0, (), None, self._shared))
        for number, request in enumerate(requests(talk.recording, self._ask, steps=talk.steps)):
            self._step(number, request)
            if progress is not None:
                progress(number + 1)
        self._settle()
        compactor = self._setting.compactor
        limits = compactor.limits.beside(compactor.policy, talk.overhead + talk.head)
        return {
            "name": self._setting.name,
            "settings": {
                **self._setting.given,
                "window": compactor.window.tokens,
                "window_source": compactor.window.source,
                "trigger": limits.trigger,
                "target": limits.target,
            },
            "overhead": talk.overhead,
            "pending": talk.pending,
            "requests": self._columns,
            "states": self._states,
            "marks": self._marks,
            "needs": self._judge.missing,
            "needed": self._judge.counts,
            "money": money(self._columns, self._states, pending=talk.pending),
        }

    def _ask(self, history: list[Any]) -> Sequence[Any]:
        self._events = []
        talk = self._talk
        result = self._setting.compactor.compact(
            history, previous=self._record, format=talk.format.name, tools=talk.tools
        )
        if result.changed:
            self._settle()
        self._result, self._record, self._events = result, result.compaction, list(result.events)
        return result.messages

    def _settle(self) -> None:
        """A state ends: its fates are those of its last request, which say what became of all messages under it."""
        if self._result is not None:
            self._states[-1]["fates"] = fate_entries(self._result.ledger.runs, self._clean)

    def _note_recalled(self, number: int, record: Compaction | None) -> None:
        """What stands in the view again because the newest message asked about it."""
        noted = self._states[-1]["recalled"]
        for one in record.recalled[len(noted) :] if record is not None else ():
            noted.append(recalled_entry(one, number, self._shared.excerpt))

    def _step(self, number: int, request: ReplayRequest) -> None:
        talk, columns = self._talk, self._columns
        result = self._result
        made = result is not None and not request.error and result.changed
        if made and result is not None and result.compaction is not None:
            self._states.append(
                state_entry(
                    number,
                    result.ledger.runs,
                    result.compaction,
                    self._shared,
                    view_tokens=request.tokens + talk.overhead,
                    rewritten_tokens=request.tokens - request.cached,
                    seconds=round(request.seconds, 4),
                    floor={self._clean(name): size for name, size in result.floor.items()},
                )
            )
        if result is not None and not request.error:
            self._note_recalled(number, result.compaction)
        overhead = talk.overhead
        columns["index"].append(request.index)
        columns["history"].append(talk.recording.before[request.index] + overhead)
        columns["view"].append(0 if request.error else request.tokens + overhead)
        # What stands before the messages is cached from the second request on.
        columns["cached"].append(request.cached + (overhead if number and not request.error else 0))
        columns["rewritten"].append(int(request.rewritten and not request.error))
        columns["answer"].append(talk.answer_tokens(request.index))
        columns["state"].append(len(self._states) - 1)
        if request.error:
            self._marks.append({"at": number, "kind": "error", "text": self._clean(request.error)})
        for event in () if request.error else self._events:
            if event.name in TOLD:
                self._marks.append({"at": number, "kind": event.name, "text": self._clean(event.message)})
        self._judge.step(number, request)
