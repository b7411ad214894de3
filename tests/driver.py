"""A conversation that grows through a compactor, every call checked against all laws.

What belongs here: ``Session``, which keeps what a caller keeps (the record, through JSON) and what only a checker
keeps (the last view, who was summarized). What does not: the laws themselves (``laws``).
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import contextfold
import laws
import wire
from contextfold import formats
from contextfold.errors import CannotFit
from contextfold.record.compaction import Compaction


class Recorder(Protocol):
    """A summarizer that remembers the prompts it answered."""

    accepted: list[str]


@dataclass
class Session:
    """``make`` gives a fresh compactor with the same settings and the same answers each time.

    ``target`` and ``trigger`` are tokens. ``recorder`` is the summarizer behind ``make``, if prompts are to be checked.
    ``thorough`` repeats each call: with a fresh compactor, with the new record, and through the async API.
    """

    format: str
    make: Callable[[], Any]
    target: int
    trigger: int
    recorder: Recorder | None = None
    thorough: bool = True
    record: Any = None
    view: list[Any] | None = None
    told: frozenset[int] = frozenset()
    passes: int = 0
    calls: int = 0
    gave_up: int = 0
    last: Any = field(default=None, repr=False)
    length: int = 0
    compactor: Any = field(default=None, repr=False)
    """One for all calls: what it remembers between them must not show. Its twins are fresh."""

    named: bool = False
    """Say the format, or leave it to detection where that can tell."""
    checks: int = 0

    def step(self, history: Sequence[Any], entries: list[wire.Entry] | None = None) -> list[str]:
        """Compact ``history`` as the next turn of this session. Returns violations.

        With ``entries`` (the history as read already), the caller compares the history before and after himself.
        """
        given = list(history)
        before = wire.as_json(given) if entries is None else ""
        answered = len(self.recorder.accepted) if self.recorder else 0
        self.calls += 1
        self.length = len(given)
        self.compactor = self.compactor or self.make()
        try:
            out = self.compactor.compact(given, previous=self.record, **self._options(given))
        except CannotFit as error:
            self.gave_up += 1
            return floor_is_honest(self.format, history, error, self.target)
        accepted = None if self.recorder is None else tuple(self.recorder.accepted[answered:])
        set_aside = any(event.name == "compaction_set_aside" for event in out.events)
        problems = self._unchanged(given, history, before)
        self.checks += len(laws.CHECKS) + 1
        problems += laws.violations(
            self.format,
            given,
            out,
            known=entries,
            target=self.target,
            trigger=self.trigger,
            previous_view=None if set_aside else self.view,
            accepted=accepted,
            told=frozenset() if set_aside else self.told,
        )
        problems += self._acted_when_due(out)
        if self.thorough:
            problems += self._repeated(given, out)
        self._remember(out)
        return problems

    def _options(self, given: list[Any]) -> dict[str, Any]:
        """Nothing but roles and text is of any format: only the caller can say of which."""
        return {"format": self.format} if self.named or formats.marked(given) is None else {}

    def _unchanged(self, given: list[Any], history: Sequence[Any], before: str) -> list[str]:
        self.checks += 1
        same_objects = len(given) == len(history) and all(a is b for a, b in zip(given, history, strict=True))
        if same_objects and (not before or wire.as_json(given) == before):
            return []
        return ["mutation: the caller's messages were changed"]

    def _acted_when_due(self, out: Any) -> list[str]:
        """At the trigger a pass starts, below it none does; unless a summary failed, and that was said."""
        excused = {"summary_failed", "cannot_fit"} & {event.name for event in out.events}
        size = out.tokens_before
        if out.changed and size < self.trigger:
            return [f"progress: a pass started at {size} tokens, below the trigger of {self.trigger}"]
        if not out.changed and size >= self.trigger and not excused:
            return [f"progress: no pass at {size} tokens, and the trigger is {self.trigger}"]
        return []

    def _repeated(self, given: list[Any], out: Any) -> list[str]:
        problems = []
        self.checks += 4
        record = through_json(out.compaction)
        again = self.compactor.compact(given, previous=record, **self._options(given))
        if again.changed:
            problems.append("one-summary: compacting an unchanged history again made a new compaction")
        if wire.as_json(again.messages) != wire.as_json(out.messages):
            problems.append("one-summary: compacting an unchanged history again gave another view")
        twin = self.make().compact(copy.deepcopy(given), previous=self.record, **self._options(given))
        problems += [f"determinism: {text}" for text in differences(out, twin)]
        later = asyncio.run(self.make().acompact(given, previous=self.record, **self._options(given)))
        problems += [f"one-engine: acompact: {text}" for text in differences(out, later)]
        return problems

    def _remember(self, out: Any) -> None:
        self.passes += out.changed
        self.record = through_json(out.compaction)
        self.view = list(out.messages)
        self.told = frozenset(entry.index for entry in out.ledger if entry.fate == "summarized")
        self.last = out


def through_json(record: Any) -> Any:
    """A record as a store would give it back."""
    return None if record is None else Compaction.from_json(record.to_json())


def differences(one: Any, other: Any) -> list[str]:
    """In what two outcomes of the same call differ."""
    found = []
    if wire.as_json(one.messages) != wire.as_json(other.messages):
        found.append("the views differ")
    if [(e.index, e.fate, e.reason) for e in one.ledger] != [(e.index, e.fate, e.reason) for e in other.ledger]:
        found.append("the ledgers differ")
    records = [None if out.compaction is None else out.compaction.to_json() for out in (one, other)]
    if records[0] != records[1]:
        found.append("the records differ")
    if (one.changed, one.tokens_before, one.tokens_after) != (other.changed, other.tokens_before, other.tokens_after):
        found.append("the sizes differ")
    return found


ROOM = 0.25
"""Share of the target that a summary and rounding may ask for before giving up counts as a violation."""


def floor_is_honest(format: str, history: Sequence[Any], error: CannotFit, target: int) -> list[str]:
    """``CannotFit`` names its items, their sum is above its limit, and what must stay really leaves no room."""
    problems = []
    if not error.floor or any(size <= 0 for size in error.floor.values()):
        problems.append(f"progress: CannotFit without a floor: {error.floor}")
    if error.needed <= error.limit:
        problems.append(f"progress: CannotFit although {error.needed} tokens are within {error.limit}")
    entries = wire.read(format, history)
    needed = contextfold.count_tokens([history[index] for index in sorted(must_stay(entries))])
    if needed < (1 - ROOM) * target:
        problems.append(f"progress: CannotFit, but all that must stay has {needed} tokens, and the target is {target}")
    return problems


def run_of(entries: Sequence[wire.Entry], index: int) -> range:
    """The assistant's messages that stand together: in some formats a turn is several."""
    start, stop = index, index + 1
    while start > 0 and entries[start - 1].role == "assistant":
        start -= 1
    while stop < len(entries) and entries[stop].role == "assistant":
        stop += 1
    return range(start, stop)


def must_stay(entries: Sequence[wire.Entry]) -> set[int]:
    """Instructions, what only the provider can read, the first and newest user messages, and the newest turn.

    A result that came late stays with the turn that called, and this with all its results.
    """
    people = [index for index, entry in enumerate(entries) if entry.is_person]
    stay = {index for index, entry in enumerate(entries) if entry.is_instruction or entry.unreadable}
    stay |= {*people[:1], *people[-1:]}
    start = len(entries) - 1
    while start > 0 and entries[start].role != "assistant":
        start -= 1
    while start > 0 and entries[start - 1].role == "assistant":
        start -= 1
    newest = set(range(max(0, start), len(entries)))
    answered = {call_id for index in newest for call_id in entries[index].result_ids}
    callers = {index for index, entry in enumerate(entries) if answered & set(entry.call_ids)}
    callers = {index for caller in callers for index in run_of(entries, caller)}
    called = {call_id for index in callers for call_id in entries[index].call_ids}
    return stay | newest | callers | {i for i, entry in enumerate(entries) if called & set(entry.result_ids)}
