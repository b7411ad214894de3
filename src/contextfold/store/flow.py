"""What happens to a session between messages in and view out. One color: async functions over ports.

    load ─▶ view, page by page ─▶ due? ──no──▶ soon? ─▶ (in the background) pass ─▶ recorded, not in force
      ▲                             │ yes
      │                             ▼
      │               one is prepared? ──yes, and it still fits───────────────┐
      │                             │ no                                      ▼
      │                           lease ─▶ pass ─▶ recorded ─▶ put in force: compare and swap on the revision
      │                             │ another worker has it                   │
      └───────── wait ──────────────┴─────────────────────────────────────────┘

What belongs here: the order of these steps, and what to do when one of them finds the session changed. What does not:
whether something is due (``decision``), what a pass decides (``passes``), how things are stored (the store).

Nothing is held while a summary is made but a lease that expires. Recording a summary and putting it in force are two
transactions: a worker that dies in between leaves one that is prepared, and the next one uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from contextfold.calls.background import Background
from contextfold.conversation.ledger import Account
from contextfold.errors import Cancelled, ContextfoldError, StoreCorrupt, reason
from contextfold.messages import Message
from contextfold.observe import Observer
from contextfold.passes.decide import Nothing
from contextfold.passes.perform import Archiver, Made, Means, archived, run_pass, saved, under_archive
from contextfold.passes.question import Question, is_thinking_asked_for
from contextfold.passes.recalling import CONSIDERED, Asked, Evicted, asked_of, block
from contextfold.policy import PATIENCE, Limits, Policy
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction
from contextfold.record.view import alternating, build
from contextfold.redaction import redact
from contextfold.store import loading, recording
from contextfold.store.decision import Due, SessionRules, SessionSize, report_budget, report_built
from contextfold.store.finding import Finder
from contextfold.store.layout import WHOLE, Layout, as_ranges, gone_from
from contextfold.store.lease import Loan
from contextfold.store.loading import Loaded, Material
from contextfold.store.options import SessionOptions
from contextfold.store.reading import Reader, ask, reading
from contextfold.store.request import EngineParts, SessionRequest, Settled
from contextfold.store.values import DamagedMessage, NewSummary, Search, SessionState, StoredSummary, Thread, Trigger
from contextfold.window import bounds

FIRST_WAIT, LONGEST_WAIT = 0.02, 0.5
"""Seconds between looks whether another worker has finished summarizing: the first, and at most."""

SOFT = Due("soft threshold")

OVER_WINDOW = Due("over the window")

FEW_MESSAGES = 10
"""A shorter session is not worth a line in the log."""

Step = Literal["made", "nothing", "busy", "lost"]

ENOUGH_TOKENS, ENOUGH_MESSAGES = 3_000_000, 25_000
"""What is read before a pass of a session that was imported, at most: some hundred megabytes of memory."""

PAID_TOKENS, PAID_MESSAGES = 600_000, 5_000
"""The same where a model is asked for the summary. Each pass is kept, so this is all that an interruption may cost; and
four passes over 20,000 messages took as long as one."""


class Flow:
    """The steps of one session. Safe for concurrent use."""

    def __init__(
        self, means: EngineParts, thread: Thread, store: Any, options: SessionOptions, archive: Archiver | None = None
    ) -> None:
        self.means = means
        self.thread = thread
        self.store = store
        self.archive = archive
        self.given = options
        self.options = options.under(means.policy)
        self.policy = options.policy(means.policy)
        Limits.of(self.policy, means.windows.assumed().tokens)  # raises at once where they do not go together
        self.reader = Reader(store, thread, options.count_text(means.count_text))
        self.background = Background(self.policy.summary.parallel)
        self.fruitless: tuple[int, int] | None = None
        """Revision and length at which a pass changed nothing: it is not tried again until something changed."""
        self.failed: int | None = None
        """Revision under which a model was asked for a summary and gave none."""
        self.rejected: set[int] = set()
        """Summaries that were prepared and do not fit the messages any more."""
        self.is_strict = False
        """The provider refused a list as malformed: roles take turns from then on."""

    def under(self, options: SessionOptions) -> Flow:
        """The same session under other options: its user has changed them."""
        other = Flow(self.means, self.thread, self.store, options, self.archive)
        # What was learned of the session holds whatever its options are; a second thread in the background would pay
        # twice.
        other.background, other.is_strict, other.rejected = self.background, self.is_strict, self.rejected
        other.failed = self.failed
        return other

    async def settle(self, request: SessionRequest, ports: Ports, observer: Observer) -> Settled:
        """The session with its view, summarized where that is due or asked for. Raises what a pass raises."""
        settled = await (await _Settling.of(self, request, ports, observer)).run()
        self.reader.remember(settled.loaded)
        if settled.rules.soon(settled.size) and self._may_prepare(settled.loaded.state):
            self.start_preparing(request, ports)
        return settled

    async def bounds(self, request: SessionRequest, ports: Ports, observer: Observer) -> tuple[Policy, Limits]:
        """The policy and its limits, within what refusals taught of the window."""
        windows = self.means.windows
        found = request.window or await windows.find("", None, ports, observer)
        return bounds(self.policy, found, windows.assumed())

    async def due(self, request: SessionRequest, ports: Ports) -> str | None:
        """Why a summary has to be in force before the next request, in words; None when none has."""
        settling = await _Settling.of(self, request, ports, self.means.observe())

        async def look(state: SessionState) -> str | None:
            resting = self.is_idle(state)
            loaded, rules, size = await settling.read_on(state, resting)
            self.reader.remember(loaded)
            due = None if resting else rules.due(size)
            return due.reason if due is not None else None

        return await self.reader.steady(look, ports)

    async def look(self, request: SessionRequest, ports: Ports) -> tuple[SessionSize, Limits]:
        """How large the view is, summarized or not, and the limits for it."""
        settling = await _Settling.of(self, replace(request, forced=None), ports, self.means.observe())

        async def look(state: SessionState) -> tuple[SessionSize, Limits]:
            loaded, rules, size = await settling.read_on(state, resting=True)
            self.reader.remember(loaded)
            return size, rules.limits

        return await self.reader.steady(look, ports)

    async def mended(self, state: SessionState, ports: Ports) -> dict[int, Account]:
        """Messages that no summary took and that cannot be sent as they stand, by sequence number."""
        settling = await _Settling.of(self, SessionRequest(), ports, self.means.observe())
        loaded, _, _ = await settling.read_on(state, resting=False)
        self.reader.remember(loaded)
        found = {loaded.layout.sequence(place): account for place, account in loaded.conversation.view.mended.items()}
        return {sequence: account for sequence, account in found.items() if sequence is not None}

    async def undo(self, ports: Ports, observer: Observer) -> StoredSummary | None:
        """Put what was in force before in force again; the summary that is undone, or None if there is none."""
        while True:
            state, summary = await self.reader.steady(partial(self._newest, ports), ports)
            if summary is None:
                return None
            # where the session changed meanwhile, the loop looks at what is in force now
            swap = partial(self.store.put_in_force, revision=state.revision, undoing=summary.id)
            if await ask(ports, swap, self.thread, summary.parent_id, ()):
                text = f"summary {summary.id} of session {self.thread} is undone"
                observer.emit("compaction_undone", text, summary=summary.id, parent=summary.parent_id)
                return summary

    async def _newest(self, ports: Ports, state: SessionState) -> tuple[SessionState, StoredSummary | None]:
        """The session, and the summary that an undo takes back."""
        summary = await self.reader.summary(state.summary_id, ports)
        # What was recalled goes with the summary that it stands behind: undoing that row alone brings nothing back.
        while summary is not None and summary.trigger in recording.COMPANIONS:
            summary = await self.reader.summary(summary.parent_id, ports)
        return state, summary

    # ---- in the background ----

    def is_idle(self, state: SessionState) -> bool:
        """Whether nothing is to be compacted by itself: that was just undone, or was of no use."""
        undone = state.held_until > 0 and state.message_count <= state.held_until
        return undone or self.fruitless == (state.revision, state.message_count)

    def _may_prepare(self, state: SessionState) -> bool:
        prepared = state.prepared_id is not None and state.prepared_id not in self.rejected
        return not prepared and not state.is_summarizing and not self.is_idle(state)

    def start_preparing(self, request: SessionRequest, ports: Ports) -> None:
        self.background.start(partial(self._prepare, request), ports)

    async def _prepare(self, request: SessionRequest, ports: Ports) -> None:
        """A summary that is recorded and not in force. What goes wrong is told, and changes nothing."""
        observer = self.means.observe()
        try:
            settling = await _Settling.of(self, replace(request, forced="background"), ports, observer)
            await settling.prepare()
        # No caller waits for a summary in the background, so what goes wrong with it must not end the caller's turn.
        except ContextfoldError as error:
            observer.emit("background_failed", reason(error), error=type(error).__name__)


class _Settling:
    """One call on its way to a view that can be sent."""

    def __init__(
        self, flow: Flow, request: SessionRequest, ports: Ports, observer: Observer, policy: Policy, limits: Limits
    ) -> None:
        self.flow = flow
        self.policy = policy
        self.limits = limits if request.limit is None else limits.shrunk(request.limit)
        self.reader = flow.reader
        self.request = request
        self.ports = ports
        self.observer = observer
        self.forced = request.forced
        """What was asked for and is not done yet."""
        self.stands_in = False
        """The built-in summarizer takes the place of a model that had its time."""
        self.changed = False
        self.before: int | None = None
        self.waited = 0

    @classmethod
    async def of(cls, flow: Flow, request: SessionRequest, ports: Ports, observer: Observer) -> _Settling:
        return cls(flow, request, ports, observer, *await flow.bounds(request, ports, observer))

    async def run(self) -> Settled:
        while True:
            state = await self.reader.state(self.ports)
            try:
                settled = await self._round(state)
            except StoreCorrupt:
                if not await self.reader.is_gone(state, self.ports):
                    raise
                continue
            if settled is not None:
                return settled

    async def _round(self, state: SessionState) -> Settled | None:
        """One look at the session as it is, and one step; None where another look has to follow."""
        # Each round asks the store again: another worker may have changed the session since the last one.
        resting = self.changed or self.flow.is_idle(state)
        loaded, rules, size = await self.read_on(state, resting)
        if self.before is None:
            self.before = size.tokens
        complete = loaded.until == state.message_count
        due = None if resting else rules.due(size)
        if complete and self.forced and state.message_count:
            due = Due(self.forced)
        if due is None and complete and self._would_be_refused(state, rules, size):
            due = OVER_WINDOW
        if due is None and complete and await self._recall(loaded, rules, size):
            return None
        if due is None:
            self._report(rules, size)
            return Settled(loaded, rules, size, self.before, self.changed, await self._wire(loaded))
        if not complete:
            text = f"what leaves the view is summarized, up to message {loaded.until:,} of {state.message_count:,}"
            self._tell_progress(text, loaded)
        self.ports.check()  # what is in force stays in force: the next call goes on behind it
        await self._compact(loaded, rules, size, due, complete)
        return None

    def _would_be_refused(self, state: SessionState, rules: SessionRules, size: SessionSize) -> bool:
        """Whether a view that is about to be sent does not fit, though nothing is to be compacted by itself."""
        if not self.request.sending or self.changed or not rules.options.enable_context_optimization:
            return False
        # What was undone gives way then.
        return size.tokens > rules.limits.window and self.flow.fruitless != (state.revision, state.message_count)

    async def _wire(self, loaded: Loaded) -> tuple[Any, ...]:
        conversation = loaded.conversation
        if self.request.strict:
            self.flow.is_strict = True
            await self.ports.compute(loaded.distrust)
        view = conversation.view
        if self.request.sending and (conversation.seen.is_open or not conversation.seen.clean):
            history, record = conversation.history, conversation.record
            view = await self.ports.compute(partial(build, history, record, sending=True))
        format = conversation.history.format
        return tuple(alternating(view.wire, format) if self.flow.is_strict else view.wire)

    def _tell_progress(self, text: str, loaded: Loaded, **more: Any) -> None:
        total = loaded.state.message_count
        self.observer.emit("session_progress", text, messages=loaded.until, total=total, **more)

    async def prepare(self) -> None:
        """A summary of what is there now, recorded for later."""
        loaded, rules, size = await self.reader.steady(partial(self.read_on, resting=False), self.ports)
        if loaded.until == loaded.state.message_count:
            await self._pass(loaded, rules, size, SOFT)

    async def read_on(self, state: SessionState, resting: bool) -> tuple[Loaded, SessionRules, SessionSize]:
        """The view with all messages; or, where more were appended than should be in memory, with those that are to be
        compacted first. An import of some ten thousand messages is one pass: each pass reads again what the one before
        it left, so a row of small ones takes several times as long and quotes less well."""
        loaded = await self.reader.view(state, self.ports)
        is_free, total = self.flow.means.summarizer is None, state.message_count
        most_tokens, most_messages = (ENOUGH_TOKENS, ENOUGH_MESSAGES) if is_free else (PAID_TOKENS, PAID_MESSAGES)
        while True:
            rules, size = self._measure(loaded)
            is_enough = size.new_tokens > most_tokens or size.new_messages > most_messages
            if loaded.until >= total or (is_enough and not resting and rules.due(size)):
                return loaded, rules, size
            try:
                self.ports.check()
            except Cancelled:
                self.reader.remember(loaded)  # the next view goes on reading behind it
                raise
            await self.reader.next_page(loaded, self.ports)
            if loaded.until < total:
                self._tell_progress(f"{loaded.until:,} of {total:,} messages are read", loaded)

    def _measure(self, loaded: Loaded) -> tuple[SessionRules, SessionSize]:
        overhead = self._overhead(loaded)
        options = self.flow.options
        rules = SessionRules(options, self.policy, options.limits(self.limits, sum(overhead.values())))
        return rules, loaded.size(sum(overhead.values()))

    def _overhead(self, loaded: Loaded) -> dict[str, int]:
        counter = loaded.conversation.history.counter
        return loading.overhead_of(counter, self.request.system, self.request.tools)

    def _report(self, rules: SessionRules, size: SessionSize) -> None:
        if size.total_messages > FEW_MESSAGES or self.changed:
            report_budget(rules, size, self.observer)
            report_built(size, self.before or 0, self.observer)

    # ---- what comes back by itself ----

    async def _recall(self, loaded: Loaded, rules: SessionRules, size: SessionSize) -> bool:
        """Put what the newest message asks about and has left the view behind it. True: read the session again."""
        request, state, summary = self.request, loaded.state, loaded.summary
        wanted = self.policy.recall.enabled and rules.options.enable_context_optimization
        shrinking = request.limit is not None or request.revise is not None
        # Not where a view has to become smaller, and not while a summary is being made or waits: it would be lost, and
        # paid for twice.
        if summary is None or not wanted or shrinking or state.prepared_id is not None or state.is_summarizing:
            return False
        question = replace(self._asking(loaded, rules, size), record=summary.record)
        asked = await self.ports.compute(asked_of, question)
        if asked is None:
            return False
        answers = await self._answers(loaded, summary, asked)
        found = await self.ports.compute(partial(block, question, asked, answers, total=state.message_count - 1))
        if found is None:
            return False
        store, thread = self.flow.store, self.flow.thread
        row = recording.with_recalled(summary, found, revision=state.revision, tokens=size.tokens)
        stored: StoredSummary = await ask(self.ports, store.record_summary, thread, row)
        swap = partial(store.put_in_force, revision=state.revision)
        if not await ask(self.ports, swap, thread, stored.id, []):
            self._discard(stored.id, "the session changed while it was made")
            return True
        self.changed = True
        asked_by = state.message_count - 1
        self.observer.emit(
            "recalled",
            f"messages {', '.join(map(str, found.indices))} are quoted behind message {asked_by}: {found.reason}",
            after=asked_by,
            indices=list(found.indices),
            tokens=found.tokens,
            reason=found.reason,
        )
        return True

    async def _answers(self, loaded: Loaded, summary: StoredSummary, asked: Asked) -> list[Evicted]:
        """Messages out of the view that may answer, best first, with the time at which they were appended."""
        state, history = loaded.state, loaded.conversation.history
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

    # ---- one attempt ----

    async def _compact(self, loaded: Loaded, rules: SessionRules, size: SessionSize, due: Due, complete: bool) -> None:
        """One attempt to bring a summary into force; the next look at the session shows what came of it."""
        # A prepared summary has neither the caller's instructions nor the smaller size that a refusal asks for.
        if self.forced is None and await self._adopt(loaded, rules, size, due):
            return
        if complete and self._goes_on(loaded.state, rules, size):
            # What failed is tried again beside the conversation: no turn waits for a model that is silent.
            if not loaded.state.is_summarizing:
                self.flow.start_preparing(self.request, self.ports)
            self.flow.fruitless = (loaded.state.revision, loaded.state.message_count)
            self.observer.emit("skipped", "a summary is being prepared", tokens=size.tokens)
            return
        self.stands_in = complete and self.policy.fallback is not None and self._has_failed(loaded.state)
        step = await self._pass(loaded, rules, size, due)
        if step == "busy":
            await self._wait(loaded)
            return
        if step == "nothing":
            # Else every view of the same session would try again, and pay for the same failure.
            self.flow.fruitless = (loaded.state.revision, loaded.state.message_count)
        if step in ("made", "nothing") and complete:
            self.forced, self.changed = None, self.changed or step == "made"

    def _has_failed(self, state: SessionState) -> bool:
        """Whether a summary beside the conversation, or one that a turn waited for, failed for what is in force."""
        return self._is_beside and self.flow.failed == state.revision

    @property
    def _is_beside(self) -> bool:
        is_asked = self.flow.means.summarizer is not None and self.policy.on_failure == "keep"
        return is_asked and self.flow.options.background and self.forced is None

    def _goes_on(self, state: SessionState, rules: SessionRules, size: SessionSize) -> bool:
        """Whether this turn may go out under the old view, while a summary is made, or one that failed tried again."""
        is_first = self.request.limit is None and self.request.revise is None
        is_underway = state.is_summarizing or self.flow.background.is_busy  # another worker's, too
        is_made = self._has_failed(state) or (self._is_beside and is_underway)
        return is_first and is_made and size.tokens <= PATIENCE * rules.limits.window

    async def _pass(self, loaded: Loaded, rules: SessionRules, size: SessionSize, due: Due) -> Step:
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
            if (await self.reader.state(self.ports)).revision != loaded.state.revision:
                return "lost"
            return await self._pass_as(loan.owner, loaded, rules, size, due)
        finally:
            if not await loan.back(self.ports):
                self.observer.emit("lease_lost", f"the lease on session {thread} could not be renewed in time")

    async def _pass_as(self, owner: str, loaded: Loaded, rules: SessionRules, size: SessionSize, due: Due) -> Step:
        material = await self._material(loaded)
        question = self._question(loaded, material, rules, size, due)
        means = self._means(material.layout)
        if self.stands_in:
            text = "the summary beside the conversation failed: the built-in extractive one stands in"
            self.observer.emit("fallback_used", text, fallback=self.policy.fallback)
        started = self.ports.clock.now()
        made = await self._made(question, means)
        if isinstance(made, Nothing) and made.cause != "summary_failed":
            return "nothing"  # no model was asked
        if isinstance(made, Nothing) or not await self._archived(made.compaction, question, loaded, means):
            self.flow.failed = loaded.state.revision
            return "nothing"
        return await self._record(owner, loaded, material, made, self.ports.clock.now() - started)

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

    async def _archived(self, record: Compaction, question: Question, loaded: Loaded, means: Means) -> bool:
        """Save the originals of what a record hides. What is folded is in the archive that the summary in force names;
        where that is another one, or none, it is saved with them: the new summary names this one for all of it."""
        archive, before = self.flow.archive, loaded.summary
        named = before.record.summary.archive if before and before.record.summary else None
        if archive is not None and before is not None and named != redact(archive.address):
            by_sequence = replace(means, archive=archive)
            source = loaded.conversation.history.format
            layout, _ = loading.pass_layout(before)
            for folded in layout.folded:
                async for page in self.reader.pages(folded, self.ports):
                    with reading(self.flow.thread, source, page):
                        said = await self.ports.compute(loading.decoded, source, page)
                    if not await saved(said, question, by_sequence):
                        return False
        return await archived(record, question, means)

    async def _record(self, owner: str, loaded: Loaded, material: Material, made: Made, seconds: float) -> Step:
        store, thread, state = self.flow.store, self.flow.thread, loaded.state
        trigger: Trigger = self.request.forced or "proactive"
        links = self._links(loaded, material.layout, made.compaction)
        summary: NewSummary = await self.ports.compute(
            partial(
                recording.new_summary,
                material,
                made,
                links,
                parent=loaded.summary,
                revision=state.revision,
                trigger=trigger,
                seconds=seconds,
            )
        )
        stored: StoredSummary = await ask(self.ports, store.record_summary, thread, summary)
        if trigger == "background":
            text = f"summary {stored.id} of session {thread} is prepared: {summary.message_count:,} messages"
            self.observer.emit("summary_prepared", text, summary=stored.id, seconds=round(summary.seconds, 3))
            return "made"
        swap = partial(store.put_in_force, revision=state.revision, owner=owner)
        if await ask(self.ports, swap, thread, stored.id, links):
            await self._unbind_appended(stored, loaded)
            return "made"
        # Losing the swap is no failure where what is in force is what was made here.
        if (await self.reader.state(self.ports)).summary_id == stored.id:
            return "made"  # another worker found it prepared, and was faster
        self._discard(stored.id, "the session changed while it was made")
        return "lost"

    def _discard(self, summary_id: int, problem: str) -> None:
        text = f"summary {summary_id} of session {self.flow.thread} is discarded: {problem}"
        self.observer.emit("summary_discarded", text, summary=summary_id, problem=problem)

    def _links(self, loaded: Loaded, layout: Layout, record: Compaction) -> list[Any]:
        already = gone_from(loaded.layout, loaded.summary.record) if loaded.summary else []
        return recording.new_links(layout, record, set(already))

    def _asking(self, loaded: Loaded, rules: SessionRules, size: SessionSize) -> Question:
        material = Material(loaded.layout, loaded.conversation.history, loaded.conversation.record)
        return self._question(loaded, material, rules, size, SOFT)

    def _question(
        self, loaded: Loaded, material: Material, rules: SessionRules, size: SessionSize, due: Due
    ) -> Question:
        view = loaded.conversation.view
        tokens, messages = size.tokens, len(view.wire)
        if material.record is None and loaded.summary is not None:  # it was set aside
            view = build(material.history, None)
            tokens, messages = view.tokens + size.overhead, len(view.wire)
        return Question(
            history=material.history,
            record=material.record,
            view_tokens=tokens,
            view_messages=messages,
            overhead=self._overhead(loaded),
            limits=rules.limits,
            policy=rules.policy,
            summary_is_free=self.flow.means.summarizer is None,
            forced=None if due.by_policy else due.reason,
            instructions=self.request.instructions,
        )

    # ---- what a pass reads ----

    async def _material(self, loaded: Loaded) -> Material:
        """The history for a pass, with what left the view of late."""
        layout, record = loading.pass_layout(loaded.summary)
        history = await self._history(layout, loaded)
        if record is None or loaded.summary is None or layout is not loaded.summary.layout:
            return Material(layout, history, await self.ports.compute(loading.settled, record, history))
        problem = await self.ports.compute(record.mismatch, history)
        if problem is None:
            return Material(layout, history, record)
        text = f"summary {loaded.summary.id} of session {self.flow.thread} is set aside: {problem}"
        self.observer.emit("compaction_set_aside", text, problem=problem)
        return Material(WHOLE, await self._history(WHOLE, loaded), None)

    async def _history(self, layout: Layout, loaded: Loaded, until: int = 0) -> loading.PartialHistory:
        folded = await self._folded(layout, loaded)
        until = max(until, loaded.until)
        messages = await self.reader.messages(loading.pass_ranges(layout, until), self.ports)
        source = loaded.conversation.history.format
        build_history = partial(loading.pass_history, source, layout, folded, messages, self.reader.count_text)
        with reading(self.flow.thread, source, messages):
            return await self.ports.compute(build_history)

    async def _folded(self, layout: Layout, loaded: Loaded) -> StoredSummary | None:
        if loaded.summary is not None and layout.summary_id == loaded.summary.id:
            return loaded.summary
        return await self.reader.summary(layout.summary_id, self.ports)

    # ---- what others made ----

    async def _adopt(self, loaded: Loaded, rules: SessionRules, size: SessionSize, due: Due) -> bool:
        """Put a prepared summary in force, if what it covers is unchanged. True if the session has to be read again."""
        flow, state = self.flow, loaded.state
        if state.prepared_id is None or state.prepared_id in flow.rejected:
            return False
        prepared = await self.reader.summary(state.prepared_id, self.ports)
        if prepared is None or prepared.covers > state.message_count:
            problem: str | None = "messages that it covers are missing"
        else:
            history = await self._history(prepared.layout, loaded, until=prepared.covers)
            problem = await self.ports.compute(prepared.record.mismatch, history)
        if prepared is None or problem is not None:
            # remembered, or each request would read it and reject it again
            flow.rejected.add(state.prepared_id)
            self._discard(state.prepared_id, problem or "")
            return False
        question = self._question(loaded, Material(prepared.layout, history, prepared.record), rules, size, due)
        # It may have been prepared with another archive, or none: the originals go to ours before they leave the view.
        if not await archived(prepared.record, question, self._means(prepared.layout)):
            return False
        links = self._links(loaded, prepared.layout, prepared.record)
        swap = partial(flow.store.put_in_force, revision=state.revision)
        if await ask(self.ports, swap, flow.thread, prepared.id, links):
            text = f"summary {prepared.id} of session {flow.thread} was prepared, and is in force now"
            self.observer.emit("summary_adopted", text, summary=prepared.id, trigger=prepared.trigger)
            await self._unbind(prepared, history, state.revision + 1)
        return True

    async def _unbind_appended(self, made: StoredSummary, loaded: Loaded) -> None:
        """What other workers appended while a summary was made was thought under the old view as well: no lock keeps
        them from answering meanwhile."""
        state = await self.reader.state(self.ports)
        if state.message_count <= loaded.until or state.summary_id != made.id:
            return
        history = await self._history(made.layout, loaded, until=state.message_count)
        await self._unbind(made, history, state.revision)

    async def _unbind(self, prepared: StoredSummary, history: loading.PartialHistory, revision: int) -> None:
        """What was thought while a summary waited was thought under the old view."""
        if is_thinking_asked_for(prepared.record, history.messages, self.policy):
            return
        # From the start where the summary knows of no thinking: all that is there now came behind it.
        start = prepared.record.thinking_from
        is_meant = start or self.policy.bound_thinking
        if not is_meant or not any(message.is_bound for message in history.messages[start:]):
            return
        store, thread = self.flow.store, self.flow.thread
        row = recording.without_thinking(prepared, len(history.messages), revision=revision)
        stored: StoredSummary = await ask(self.ports, store.record_summary, thread, row)
        # Where the session changes meanwhile, a refusal teaches it.
        if not await ask(self.ports, partial(store.put_in_force, revision=revision), thread, stored.id, []):
            self._discard(stored.id, "the session changed while it was made")

    async def _wait(self, loaded: Loaded) -> None:
        state = loaded.state
        if not self.waited:
            seconds = self.flow.options.lease_seconds
            whose = f"another worker is summarizing {self.flow.thread}"
            text = f"{whose}: it is waited for, if it died for up to {seconds:g} seconds"
            self._tell_progress(text, loaded, waiting=True)
        await self.ports.sleep(min(LONGEST_WAIT, FIRST_WAIT * 2**self.waited))
        self.waited += 1
        now = await self.reader.state(self.ports)
        # The other worker's summary will do, unless there were instructions.
        if now.revision != state.revision and not self.request.instructions:
            self.forced = None


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
