"""A document from a store: what was recorded while the session ran, and the list of all sessions.

What belongs here: from the rows of a store to the states, requests and figures of a document, reading only. What does
not: the fields (``document``), following a store as it changes (``server``).

A store keeps each summary with the number of messages that it was made from, and not the turn in which it was first
sent. So a state begins with the first request that has all these messages before it: exact where summaries are made in
the turn, up to some turns early where they are prepared in the background.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextfold import formats
from contextfold.conversation.ledger import Account, Ledger, Run
from contextfold.conversation.repair import conform, left_out, repair
from contextfold.inspector.document import GONE, Shared, document, message_entry, recalled_entry, redactor, state_entry
from contextfold.inspector.money import money
from contextfold.inspector.recording import Recording
from contextfold.inspector.replay import COLUMNS, Judge, ReplayRequest, pieced
from contextfold.inspector.wire import Wire
from contextfold.messages import Message
from contextfold.ports import SyncPorts, run
from contextfold.record.compaction import Edit, reduce, summary_message
from contextfold.store import SessionState, StoredSummary, Thread
from contextfold.store.reading import Reader, reading, source_of
from contextfold.store.recording import account, lineage

PAGE = 2_000
"""Messages that are read at a time."""


def stored(store: Any, thread: Thread, *, keys: Iterable[str] = ()) -> dict[str, Any]:
    """The document of a session as it is now. ``store`` is any ``SummaryStore`` whose methods block."""

    async def look(state: SessionState) -> _Talk:
        return _Talk(store, thread, state)

    talk = run(Reader(store, thread, None).steady(look, SyncPorts()))
    state, clean = talk.state, redactor(keys)
    entries = [message_entry(message, size, clean) for message, size in zip(talk.messages, talk.sizes, strict=True)]
    shared = Shared(talk.messages, entries, clean)
    source = {
        "kind": "store",
        "name": clean(thread.id),
        "namespace": clean(thread.namespace),
        "format": state.format or "",
        "recorded": True,
        "busy": state.is_summarizing,
    }
    return document(source, entries, shared, [_Run(talk, shared).entry()])


class _Talk:
    def __init__(self, store: Any, thread: Thread, state: SessionState) -> None:
        format = source_of(state)
        self.thread = thread
        self.state = state
        ranges = [range(at, min(at + PAGE, state.message_count)) for at in range(0, state.message_count, PAGE)]
        found = [one for some in ranges for one in store.read_messages(thread, [some])]
        self.wire = [one.wire for one in found]
        with reading(thread, format, found):
            self.messages: list[Message] = formats.decode(self.wire, format)
        shape = Wire(format)
        shape.remember(self.wire, self.messages)
        self.format = format
        self.recording = Recording(self.wire, shape)
        self.sizes = [self.recording.known.tokens(number) for number in self.recording.numbers]
        self.summaries: list[StoredSummary] = list(store.read_summaries(thread))
        self.line = lineage(thread, self.summaries, state.summary_id)[::-1]
        self.links = {summary.id: list(store.read_links(thread, summary.id)) for summary in self.line}
        self.pending, self.steps = self.recording.pending, self.recording.moments


@dataclass(frozen=True)
class _State:
    """What a summary in force makes of the history: who is left, what these became, what is added."""

    kept: Sequence[int]
    """Who is not, of all messages that a request of this state can have."""
    changed: Mapping[int, Message]
    summary: Message | None
    after: int


class _Run:
    def __init__(self, talk: _Talk, shared: Shared) -> None:
        self._talk = talk
        self._shared = shared
        self._first = [0, *(bisect_left(talk.steps, summary.covers) for summary in talk.line)]
        self._states: list[_State] = []
        runs, kept = self._accounted((), {})
        self._entries = [state_entry(0, runs, None, shared)]
        self._states.append(_State(kept, {}, None, -1))
        for summary in talk.line:
            self._add(summary)

    def _accounted(
        self, recorded: Sequence[Run], changed: Mapping[int, Message]
    ) -> tuple[tuple[Run, ...], Sequence[int]]:
        """The fates of the next state that are recorded, and those of messages that are left and cannot be sent as they
        stand; and who is left.

        Only what stands before the first request of the state behind it can be in a view of this one: with all that
        came later, each of many states would cost the whole session.
        """
        talk, gone = self._talk, _gone(recorded)
        number = len(self._states)
        behind = self._first[number + 1] if number + 1 < len(self._first) else len(talk.steps)
        until = talk.steps[behind] if behind < len(talk.steps) else len(talk.messages)
        left = [index for index in range(until) if index not in gone]
        messages = [changed.get(index, talk.messages[index]) for index in left]
        mended = conform(repair(messages, references=talk.format.rules.references), talk.format)
        said = [place for place in mended if place.message.parts or not place.message.edited]
        accounts = {left[place.position]: place.account for place in said if place.position is not None}
        found: dict[int, Account] = {}
        for index in left:
            never = left_out(talk.messages[index], is_edited=index in changed)
            account = accounts.get(index, never)
            if account is not None and (index not in changed or index not in accounts):
                found[index] = account
        runs = Ledger(recorded, talk.messages, found).runs
        return runs, [index for index in left if index not in found or found[index][0] not in GONE]

    def _add(self, summary: StoredSummary) -> None:
        talk = self._talk
        links = [link for one in talk.line[: len(self._states)] for link in talk.links[one.id]]
        places = summary.layout.sequence
        edits: dict[int, list[Edit]] = {}
        for edit in summary.record.edits:
            if (index := places(edit.index)) is not None and index < len(talk.messages):
                edits.setdefault(index, []).append(edit)
        changed = {index: reduce(talk.messages[index], found) for index, found in edits.items()}
        request = self._first[len(self._states)]
        runs, kept = self._accounted(account(talk.thread, len(talk.messages), summary, links), changed)
        entry = state_entry(
            request,
            runs,
            summary.record,
            self._shared,
            places=places,
            made_by=self._shared.clean(summary.model or summary.algorithm),
            reason=self._shared.clean(summary.reason),
            seconds=summary.seconds,
            cost=summary.cost,
            created_at=summary.created_at,
        )
        for one in summary.record.recalled:
            after = places(one.after)
            if after is not None:
                known = {**recalled_entry(one, request, self._shared.excerpt), "after": after}
                entry["recalled"].append(known)
        self._entries.append(entry)
        self._states.append(
            _State(
                kept=kept,
                changed=changed,
                summary=summary_message(summary.record.summary) if summary.record.summary else None,
                after=entry["summary"]["after"] if entry["summary"] else -1,
            )
        )

    def entry(self) -> dict[str, Any]:
        talk = self._talk
        columns: dict[str, list[int]] = {name: [] for name in COLUMNS}
        judge = Judge(talk.recording, self._shared.excerpt)
        for number, request in enumerate(pieced(talk.recording, talk.steps, self._view)):
            columns["index"].append(request.index)
            columns["history"].append(talk.recording.before[request.index])
            columns["view"].append(request.tokens)
            columns["cached"].append(request.cached)
            columns["rewritten"].append(int(request.rewritten))
            columns["answer"].append(
                sum(talk.sizes[place] for place in talk.recording.answers.get(request.index, range(0)))
            )
            columns["state"].append(self._number(number))
            judge.step(number, request)
            self._settle(number, request)
        newest = talk.line[-1].record if talk.line else None
        return {
            "name": "recorded",
            "settings": {
                "window": newest.window if newest else max([1, *columns["history"]]),
                "window_source": "record" if newest else "history",
                "trigger": None,
                "target": newest.target if newest else None,
            },
            "overhead": 0,
            "pending": talk.pending,
            "requests": columns,
            "states": self._entries,
            "marks": self._marks(),
            "needs": judge.missing,
            "needed": judge.counts,
            "money": money(columns, self._entries, pending=talk.pending),
        }

    def _number(self, request: int) -> int:
        """The state at a request: the newest that had begun."""
        return max(number for number, first in enumerate(self._first) if first <= request)

    def _view(self, number: int, until: int) -> list[Any]:
        """The view at a request, out of wire objects of the history and messages in their place."""
        state = self._states[self._number(number)]
        talk = self._talk
        view: list[Any] = []
        summary = state.summary
        for index in state.kept[: bisect_left(state.kept, until)]:
            if summary is not None and index > state.after:
                view.append(summary)
                summary = None
            view.append(state.changed.get(index, talk.wire[index]))
        return [*view, summary] if summary is not None else view

    def _settle(self, number: int, request: ReplayRequest) -> None:
        """What a compaction made of the view is known at its first request."""
        state = self._entries[self._number(number)]
        if state["compaction"] is not None and state["from"] == number:
            state["compaction"]["view_tokens"] = request.tokens
            state["compaction"]["rewritten_tokens"] = request.tokens - request.cached

    def _marks(self) -> list[dict[str, Any]]:
        """Compactions that were undone: they changed the views of some turns, and do not any more."""
        steps = self._talk.steps
        found = []
        for summary in self._talk.summaries:
            if summary.undone_at is not None:
                at = next((number for number, index in enumerate(steps) if index >= summary.covers), len(steps) - 1)
                text = f"a compaction of {summary.message_count:,} messages was in force from here, and undone later"
                found.append({"at": max(0, at), "kind": "undone", "text": text})
        return found


def _gone(runs: Iterable[Run]) -> frozenset[int]:
    return frozenset(n for run in runs if run.fate in GONE for n in range(run.start, run.stop))


# ---- the list ----


@dataclass(frozen=True, slots=True)
class StoredFigures:
    """What the list says of a session besides its row: answers, tokens of its view, billionths of a dollar saved."""

    turns: int
    view_tokens: int
    saved: float | None
    compactions: int


def figures(document: Mapping[str, Any], prices: str) -> StoredFigures:
    """The figures of a session out of its document."""
    run = document["runs"][0]
    paid = run["money"][prices]
    saved = sum(paid["without"]) - sum(paid["with"]) if run["requests"]["index"] else None
    made = [state for state in run["states"] if state["compaction"]]
    turns = len(run["requests"]["index"]) - run["pending"]
    return StoredFigures(turns, _last(run["requests"]["view"]), saved, len(made))


def _last(values: Sequence[int]) -> int:
    return values[-1] if values else 0


def row(state: SessionState, found: StoredFigures | None, error: str) -> dict[str, Any]:
    """A line of the list. ``found`` is None until it was computed; ``error``: what failed last, as far as is known."""
    error = state.damage or error
    # a worker that is done takes its lease off
    if not error and state.lease_until is not None and not state.is_summarizing:
        error = "a worker ended while it was summarizing; the next one takes over"
    return {
        "thread": state.thread.id,
        "namespace": state.thread.namespace,
        "turns": found.turns if found else None,
        "messages": state.message_count,
        "tokens": state.token_count,
        "view_tokens": found.view_tokens if found else state.token_count,
        "compactions": found.compactions if found else int(state.summary_id is not None),
        "saved": found.saved if found else None,
        "busy": state.is_summarizing,
        "updated_at": state.updated_at,
        "error": error,
    }
