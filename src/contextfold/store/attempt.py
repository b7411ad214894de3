"""One look at a session, and the step that it leads to: a pass, what was prepared, or what comes back by itself.

What belongs here: what a step reads, and recording what came of it. What does not: which step is to be taken
(``settling``), and what a pass decides (``passes``).

Nothing is held while a summary is made but a lease that expires. Recording a summary and putting it in force are two
transactions: a worker that dies in between leaves one that is prepared, and the next one uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from contextfold.conversation.history import History
from contextfold.messages import Message
from contextfold.observe import Observer
from contextfold.passes.decide import Nothing
from contextfold.passes.perform import Archiver, Made, Means, archived, run_pass, saved, under_archive
from contextfold.passes.question import Question, is_thinking_asked_for
from contextfold.passes.recalling import CONSIDERED, Asked, Evicted, asked_of, block
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction
from contextfold.record.view import build
from contextfold.redaction import redact
from contextfold.store import loading, recording
from contextfold.store.decision import Due
from contextfold.store.finding import Finder
from contextfold.store.kept import Kept
from contextfold.store.layout import WHOLE, Layout, as_ranges, gone_from
from contextfold.store.lease import Loan
from contextfold.store.loading import Material
from contextfold.store.reading import ask, reading
from contextfold.store.request import Look, SessionRequest
from contextfold.store.values import DamagedMessage, NewSummary, Search, StoredSummary, Trigger

if TYPE_CHECKING:
    from contextfold.store.flow import Flow

Step = Literal["made", "nothing", "busy", "lost"]


class Attempt:
    """A step of a session, after one look at it. ``stands_in``: the built-in summarizer takes the place of a model that
    had its time.
    """

    def __init__(
        self,
        flow: Flow,
        look: Look,
        request: SessionRequest,
        ports: Ports,
        observer: Observer,
        due: Due,
        *,
        stands_in: bool = False,
    ) -> None:
        self.flow = flow
        self.look = look
        self.loaded = look.loaded
        self.reader = flow.reader
        self.request = request
        self.ports = ports
        self.observer = observer
        self.due = due
        self.stands_in = stands_in

    async def make(self) -> Step:
        """A pass under the lease. No other worker makes a summary of this session meanwhile."""
        thread = self.flow.thread
        loan = Loan(self.flow.store, thread, self.flow.options.lease_seconds)
        try:
            # A lease, not a lock in the database: a summary takes seconds to minutes, and no transaction stays open
            # for that.
            if not await loan.acquire(self.ports):
                return "busy"
            # Between the look and the lease another worker may have finished: a summary of the old view would be paid
            # for in vain.
            if (await self.reader.state(self.ports)).revision != self.loaded.state.revision:
                return "lost"
            return await self._made_by(loan.owner)
        finally:
            if not await loan.back(self.ports):
                self.observer.emit("lease_lost", f"the lease on session {thread} could not be renewed in time")

    async def _made_by(self, owner: str) -> Step:
        material = await self._material()
        question = self._question(material)
        means = self._means(material.layout)
        if self.stands_in:
            text = "the summary beside the conversation failed: the built-in extractive one stands in"
            self.observer.emit("fallback_used", text, fallback=self.look.rules.policy.fallback)
        started = self.ports.clock.now()
        made = await self._made(question, means)
        # Views go on with what was read for them: two that had one history would both append to it.
        if isinstance(made, Nothing) and material.history is not self.loaded.conversation.history:
            self._keep(material.layout, material.history, material.record)
        if isinstance(made, Nothing) and made.cause != "summary_failed":
            return "nothing"  # no model was asked
        if isinstance(made, Nothing) or not await self._archived(made.compaction, question, means):
            self.flow.failed = self.loaded.state.revision
            return "nothing"
        return await self._record(owner, material, made, self.ports.clock.now() - started)

    async def _made(self, question: Question, means: Means) -> Made | Nothing:
        """The record of a pass, or the one that is made in its place."""
        revise = self.request.revise
        if revise is None:
            return await run_pass(question, means)
        record = await self.ports.compute(revise, question)
        if record is None:
            return Nothing("nothing is left that may leave the view")
        return Made(await self.ports.compute(under_archive, record, question, means), ())

    def _means(self, layout: Layout) -> Means:
        archive = _BySequence(self.flow.archive, layout) if self.flow.archive is not None else None
        summarizer = None if self.stands_in else self.flow.means.summarizer
        return Means(self.ports, self.observer, summarizer, archive, retries=self.request.retries)

    async def _archived(self, record: Compaction, question: Question, means: Means) -> bool:
        """Save the originals of what a record hides. What is folded is in the archive that the summary in force names;
        where that is another one, or none, it is saved with them: the new summary names this one for all of it."""
        archive, before = self.flow.archive, self.loaded.summary
        named = before.record.summary.archive if before and before.record.summary else None
        if archive is not None and before is not None and named != redact(archive.address):
            by_sequence = replace(means, archive=archive)
            source = self.loaded.conversation.history.format
            layout, _ = loading.pass_layout(before)
            for folded in layout.folded:
                async for page in self.reader.pages(folded, self.ports):
                    with reading(self.flow.thread, source, page):
                        said = await self.ports.compute(loading.decoded, source, page)
                    if not await saved(said, question, by_sequence):
                        return False
        return await archived(record, question, means)

    async def _record(self, owner: str, material: Material, made: Made, seconds: float) -> Step:
        store, thread, state = self.flow.store, self.flow.thread, self.loaded.state
        trigger: Trigger = self.request.forced or "proactive"
        links = self._links(material.layout, made.compaction)
        summary: NewSummary = await self.ports.compute(
            partial(
                recording.new_summary,
                material,
                made,
                links,
                parent=self.loaded.summary,
                revision=state.revision,
                trigger=trigger,
                seconds=seconds,
            )
        )
        stored: StoredSummary = await ask(self.ports, store.record_summary, thread, summary)
        self._keep(material.layout, material.history, made.compaction)
        if trigger == "background":
            text = f"summary {stored.id} of session {thread} is prepared: {summary.message_count:,} messages"
            self.observer.emit("summary_prepared", text, summary=stored.id, seconds=round(summary.seconds, 3))
            return "made"
        if await self.flow.put_in_force(stored.id, links, self.ports, revision=state.revision, owner=owner):
            await self._unbind_appended(stored)
            return "made"
        # Losing the swap is no failure where what is in force is what was made here.
        if (await self.reader.state(self.ports)).summary_id == stored.id:
            return "made"  # another worker found it prepared, and was faster
        self._discard(stored.id, "the session changed while it was made")
        return "lost"

    def _links(self, layout: Layout, record: Compaction) -> list[Any]:
        summary = self.loaded.summary
        already = gone_from(self.loaded.layout, summary.record) if summary else []
        return recording.new_links(layout, record, set(already))

    def _question(self, material: Material) -> Question:
        view, size, rules = self.loaded.conversation.view, self.look.size, self.look.rules
        tokens, messages = size.tokens, len(view.wire)
        if material.record is None and self.loaded.summary is not None:  # it was set aside
            view = build(material.history, None)
            tokens, messages = view.tokens + size.overhead, len(view.wire)
        return Question(
            history=material.history,
            record=material.record,
            view_tokens=tokens,
            view_messages=messages,
            overhead=self.look.overhead,
            limits=rules.limits,
            policy=rules.policy,
            summary_is_free=self.flow.means.summarizer is None,
            forced=None if self.due.by_policy else self.due.reason,
            instructions=self.request.instructions,
        )

    # ---- what a pass reads ----

    async def _material(self) -> Material:
        """The history for a pass, with what left the view of late."""
        summary = self.loaded.summary
        layout, record = loading.pass_layout(summary)
        history = await self._history(layout)
        if record is None or summary is None or layout is not summary.layout:
            return Material(layout, history, await self.ports.compute(loading.settled, record, history))
        problem = await self.ports.compute(record.mismatch, history)
        if problem is None:
            return Material(layout, history, record)
        text = f"summary {summary.id} of session {self.flow.thread} is set aside: {problem}"
        self.observer.emit("compaction_set_aside", text, problem=problem)
        return Material(WHOLE, await self._history(WHOLE), None)

    async def _history(self, layout: Layout, until: int = 0) -> History:
        loaded, until = self.loaded, max(until, self.loaded.until)
        read = loaded.conversation.history
        if loaded.summary is None and layout == WHOLE and until == loaded.until:
            return read  # nothing has left the view
        kept = self.flow.memory.take(loaded.state, layout, until)
        wanted = [range(kept.until, until)] if kept else loading.pass_ranges(layout, until)
        messages = await self.reader.messages(wanted, self.ports)
        with reading(self.flow.thread, read.format, messages):
            if kept is not None:
                await self.ports.compute(kept.history.extend, [message.wire for message in messages])
                return kept.history
            count_text, folded = self.reader.count_text, await self._folded(layout)
            build_history = partial(loading.pass_history, read.format, layout, folded, messages, count_text)
            return await self.ports.compute(build_history)

    def _keep(self, layout: Layout, history: History, record: Compaction | None) -> None:
        """Keep a history for the next pass, unless that one folds it under this record. From here on it is not ours:
        another call may take it and go on with it."""
        state = self.loaded.state
        if not loading.folds(layout, record):
            until = layout.after(len(history.messages))
            self.flow.memory.keep(Kept(state.opened, state.created_at, state.revision, layout, history, until))

    async def _folded(self, layout: Layout) -> StoredSummary | None:
        summary = self.loaded.summary
        if summary is not None and layout.summary_id == summary.id:
            return summary
        return await self.reader.summary(layout.summary_id, self.ports)

    # ---- what others made ----

    async def adopt(self) -> bool:
        """Put a prepared summary in force, if what it covers is unchanged. True if the session has to be read again."""
        flow, state = self.flow, self.loaded.state
        if state.prepared_id is None or state.prepared_id in flow.rejected:
            return False
        prepared = await self.reader.summary(state.prepared_id, self.ports)
        if prepared is None or prepared.covers > state.message_count:
            problem: str | None = "messages that it covers are missing"
        else:
            history = await self._history(prepared.layout, until=prepared.covers)
            problem = await self.ports.compute(prepared.record.mismatch, history)
        if prepared is None or problem is not None:
            # remembered, or each request would read it and reject it again
            flow.rejected.add(state.prepared_id)
            self._discard(state.prepared_id, problem or "")
            return False
        question = self._question(Material(prepared.layout, history, prepared.record))
        # It may have been prepared with another archive, or none: the originals go to ours before they leave the view.
        if not await archived(prepared.record, question, self._means(prepared.layout)):
            return False
        links = self._links(prepared.layout, prepared.record)
        messages = list(history.messages)
        self._keep(prepared.layout, history, prepared.record)
        if await flow.put_in_force(prepared.id, links, self.ports, revision=state.revision):
            text = f"summary {prepared.id} of session {flow.thread} was prepared, and is in force now"
            self.observer.emit("summary_adopted", text, summary=prepared.id, trigger=prepared.trigger)
            await self._unbind(prepared, messages, state.revision + 1)
        return True

    async def _unbind_appended(self, made: StoredSummary) -> None:
        """What other workers appended while a summary was made was thought under the old view as well: no lock keeps
        them from answering meanwhile."""
        state = await self.reader.state(self.ports)
        if state.message_count <= self.loaded.until or state.summary_id != made.id:
            return
        history = await self._history(made.layout, until=state.message_count)
        await self._unbind(made, history.messages, state.revision)

    async def _unbind(self, prepared: StoredSummary, messages: Sequence[Message], revision: int) -> None:
        """What was thought while a summary waited was thought under the old view."""
        if is_thinking_asked_for(prepared.record, messages, self.look.rules.policy):
            return
        # From the start where the summary knows of no thinking: all that is there now came behind it.
        start = prepared.record.thinking_from
        is_meant = start or self.look.rules.policy.bound_thinking
        if not is_meant or not any(message.is_bound for message in messages[start:]):
            return
        store, thread = self.flow.store, self.flow.thread
        row = recording.without_thinking(prepared, len(messages), revision=revision)
        stored: StoredSummary = await ask(self.ports, store.record_summary, thread, row)
        # Where the session changes meanwhile, a refusal teaches it.
        if not await self.flow.put_in_force(stored.id, [], self.ports, revision=revision):
            self._discard(stored.id, "the session changed while it was made")

    def _discard(self, summary_id: int, problem: str) -> None:
        text = f"summary {summary_id} of session {self.flow.thread} is discarded: {problem}"
        self.observer.emit("summary_discarded", text, summary=summary_id, problem=problem)

    # ---- what comes back by itself ----

    async def recall(self) -> Step:
        """Put what the newest message asks about, and what has left the view, behind it."""
        request, state, summary = self.request, self.loaded.state, self.loaded.summary
        wanted = self.look.rules.policy.recall.enabled and self.look.rules.options.enable_context_optimization
        shrinking = request.limit is not None or request.revise is not None
        # Not where a view has to become smaller, and not while a summary is being made or waits: it would be lost, and
        # paid for twice.
        if summary is None or not wanted or shrinking or state.prepared_id is not None or state.is_summarizing:
            return "nothing"
        known = Material(self.loaded.layout, self.loaded.conversation.history, self.loaded.conversation.record)
        question = replace(self._question(known), record=summary.record)
        asked = await self.ports.compute(asked_of, question)
        if asked is None:
            return "nothing"
        answers = await self._answers(summary, asked)
        found = await self.ports.compute(partial(block, question, asked, answers, total=state.message_count - 1))
        if found is None:
            return "nothing"
        store, thread = self.flow.store, self.flow.thread
        row = recording.with_recalled(summary, found, revision=state.revision, tokens=self.look.size.tokens)
        stored: StoredSummary = await ask(self.ports, store.record_summary, thread, row)
        if not await self.flow.put_in_force(stored.id, [], self.ports, revision=state.revision):
            self._discard(stored.id, "the session changed while it was made")
            return "lost"
        asked_by = state.message_count - 1
        self.observer.emit(
            "recalled",
            f"messages {', '.join(map(str, found.indices))} are quoted behind message {asked_by}: {found.reason}",
            after=asked_by,
            indices=list(found.indices),
            tokens=found.tokens,
            reason=found.reason,
        )
        return "made"

    async def _answers(self, summary: StoredSummary, asked: Asked) -> list[Evicted]:
        """Messages out of the view that may answer, best first, with the time at which they were appended."""
        state, history = self.loaded.state, self.loaded.conversation.history
        gone = summary.record.gone()
        present = set(summary.layout.sequences(place for place in range(len(history.messages)) if place not in gone))
        # Eight times as many as are wanted: the index knows nothing of views, and most hits may still stand in this
        # one.
        search = Search(asked.query, CONSIDERED * 8, before=state.message_count - 1)
        ranked = [
            one for one in await Finder(self.reader).ranked(search, state, self.ports) if one.index not in present
        ]
        ranked = ranked[:CONSIDERED]
        wanted = as_ranges({one.index for one in ranked})
        found = await self.reader.readable(wanted, history.format, self.ports)
        # A damaged message that has left the view must not end this one: it cannot be quoted, that is all.
        said = {one[0].sequence: one for one in found if not isinstance(one, DamagedMessage)}
        return [
            Evicted(n, said[n][1], one.share, one.held, _day(said[n][0].created_at))
            for one in ranked
            if (n := one.index) in said
        ]


def _day(moment: float | None) -> str:
    return "" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


class _BySequence:
    """An archive that is told places in a layout, and saves under the sequence numbers of the session."""

    def __init__(self, archive: Archiver, layout: Layout) -> None:
        self._archive = archive
        self._layout = layout
        self.address = archive.address

    def append(self, messages: Mapping[int, Message]) -> Any:
        numbered = ((self._layout.sequence(place), message) for place, message in messages.items())
        return self._archive.append({number: message for number, message in numbered if number is not None})
