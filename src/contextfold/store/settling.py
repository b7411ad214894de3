"""One call on its way to a session's view that can be sent: look, take a step, look again.

What belongs here: which step is to be taken, and what to do when it finds the session changed. What does not: the steps
(``attempt``), and whether something is due (``decision``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from contextfold.errors import Cancelled, StoreCorrupt
from contextfold.limits import Limits
from contextfold.observe import Observer
from contextfold.policy import PATIENCE, Policy
from contextfold.ports import Ports
from contextfold.record.view import alternating, build
from contextfold.store import loading
from contextfold.store.attempt import Attempt
from contextfold.store.decision import Due, SessionRules, report_budget, report_built
from contextfold.store.loading import Loaded
from contextfold.store.request import Look, SessionRequest, Settled
from contextfold.store.values import SessionState

if TYPE_CHECKING:
    from contextfold.store.flow import Flow

FIRST_WAIT, LONGEST_WAIT = 0.02, 0.5
"""Seconds between looks whether another worker has finished summarizing: the first, and at most."""

SOFT = Due("soft threshold")

OVER_WINDOW = Due("over the window")

FEW_MESSAGES = 10
"""A shorter session is not worth a line in the log."""

ENOUGH_TOKENS, ENOUGH_MESSAGES = 3_000_000, 25_000
"""What is read before a pass of a session that was imported, at most: some hundred megabytes of memory."""

PAID_TOKENS, PAID_MESSAGES = 600_000, 5_000
"""The same where a model is asked for the summary. Each pass is kept, so this is all that an interruption may cost; and
four passes over 20,000 messages took as long as one."""


class Settling:
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
        self.changed = False
        self.before: int | None = None
        self.wait = 0.0
        """Seconds that it was last waited for another worker; 0 before the first time."""

    @classmethod
    async def of(cls, flow: Flow, request: SessionRequest, ports: Ports, observer: Observer) -> Settling:
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
        look = await self.read_on(state, resting)
        loaded, rules, size = look.loaded, look.rules, look.size
        if self.before is None:
            self.before = size.tokens
        complete = loaded.until == state.message_count
        due = None if resting else rules.due(size)
        if complete and self.forced and state.message_count:
            due = Due(self.forced)
        if due is None and complete and self._would_be_refused(look):
            due = OVER_WINDOW
        if due is None and complete and (step := await self._attempt(look, SOFT).recall()) != "nothing":
            self.changed = self.changed or step == "made"
            return None
        if due is None:
            self._report(look)
            return Settled(loaded, rules, size, self.before, self.changed, await self._wire(loaded))
        if not complete:
            text = f"what leaves the view is summarized, up to message {loaded.until:,} of {state.message_count:,}"
            self._tell_progress(text, loaded)
        self.ports.check()  # what is in force stays in force: the next call goes on behind it
        await self._compact(look, due, complete)
        return None

    def _would_be_refused(self, look: Look) -> bool:
        """Whether a view that is about to be sent does not fit, though nothing is to be compacted by itself."""
        if not self.request.sending or self.changed or not look.rules.options.enable_context_optimization:
            return False
        # What was undone gives way then.
        return look.size.tokens > look.rules.limits.window and self.flow.fruitless != look.place

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
        look = await self.reader.steady(partial(self.read_on, resting=False), self.ports)
        if look.loaded.until == look.loaded.state.message_count:
            await self._attempt(look, SOFT).make()

    async def read_on(self, state: SessionState, resting: bool) -> Look:
        """The view with all messages; or, where more were appended than should be in memory, with those that are to be
        compacted first. An import of some ten thousand messages is one pass: each pass reads again what the one before
        it left, so a row of small ones takes several times as long and quotes less well."""
        loaded = await self.reader.view(state, self.ports)
        is_free, total = self.flow.means.summarizer is None, state.message_count
        counter, system, tools = loaded.conversation.history.counter, self.request.system, self.request.tools
        # Declarations of tools are written as JSON to be counted, and may be megabytes.
        overhead = await self.ports.compute(loading.overhead_of, counter, system, tools) if system or tools else {}
        most_tokens, most_messages = (ENOUGH_TOKENS, ENOUGH_MESSAGES) if is_free else (PAID_TOKENS, PAID_MESSAGES)
        while True:
            look = self._measured(loaded, overhead)
            size = look.size
            is_enough = size.new_tokens > most_tokens or size.new_messages > most_messages
            if loaded.until >= total or (is_enough and not resting and look.rules.due(size)):
                return look
            try:
                self.ports.check()
            except Cancelled:
                self.reader.remember(loaded)  # the next view goes on reading behind it
                raise
            await self.reader.next_page(loaded, self.ports)
            if loaded.until < total:
                self._tell_progress(f"{loaded.until:,} of {total:,} messages are read", loaded)

    def _measured(self, loaded: Loaded, overhead: dict[str, int]) -> Look:
        options, more = self.flow.options, sum(overhead.values())
        limits = self.limits.beside(self.policy, more + loaded.conversation.history.head_tokens)
        rules = SessionRules(options, self.policy, options.limits(limits, more))
        return Look(loaded, rules, loaded.size(more), overhead)

    def _attempt(self, look: Look, due: Due, *, stands_in: bool = False) -> Attempt:
        return Attempt(self.flow, look, self.request, self.ports, self.observer, due, stands_in=stands_in)

    def _report(self, look: Look) -> None:
        if look.size.total_messages > FEW_MESSAGES or self.changed:
            report_budget(look.rules, look.size, self.observer)
            report_built(look.size, self.before or 0, self.observer)

    async def _compact(self, look: Look, due: Due, complete: bool) -> None:
        """One attempt to bring a summary into force; the next look at the session shows what came of it."""
        loaded = look.loaded
        # A prepared summary has neither the caller's instructions nor the smaller size that a refusal asks for.
        if self.forced is None and await self._attempt(look, due).adopt():
            return
        if complete and self._goes_on(look):
            # What failed is tried again beside the conversation: no turn waits for a model that is silent.
            if not loaded.state.is_summarizing:
                self.flow.start_preparing(self.request, self.ports)
            self.flow.fruitless = look.place
            self.observer.emit("skipped", "a summary is being prepared", tokens=look.size.tokens)
            return
        stands_in = complete and self.policy.fallback is not None and self._has_failed(loaded.state)
        step = await self._attempt(look, due, stands_in=stands_in).make()
        if step == "busy":
            await self._wait(loaded)
            return
        if step == "nothing":
            # Else every view of the same session would try again, and pay for the same failure.
            self.flow.fruitless = look.place
        if step in ("made", "nothing") and complete:
            self.forced, self.changed = None, self.changed or step == "made"

    def _has_failed(self, state: SessionState) -> bool:
        """Whether a summary beside the conversation, or one that a turn waited for, failed for what is in force."""
        return self._is_beside and self.flow.failed == state.revision

    @property
    def _is_beside(self) -> bool:
        is_asked = self.flow.means.summarizer is not None and self.policy.on_failure == "keep"
        return is_asked and self.flow.options.background and self.forced is None

    def _goes_on(self, look: Look) -> bool:
        """Whether this turn may go out under the old view, while a summary is made, or one that failed tried again."""
        is_first = self.request.limit is None and self.request.revise is None
        state = look.loaded.state
        is_underway = state.is_summarizing or self.flow.background.is_busy  # another worker's, too
        is_made = self._has_failed(state) or (self._is_beside and is_underway)
        return is_first and is_made and look.size.tokens <= PATIENCE * look.rules.limits.window

    async def _wait(self, loaded: Loaded) -> None:
        state = loaded.state
        if not self.wait:
            seconds = self.flow.options.lease_seconds
            whose = f"another worker is summarizing {self.flow.thread}"
            text = f"{whose}: it is waited for, if it died for up to {seconds:g} seconds"
            self._tell_progress(text, loaded, waiting=True)
        self.wait = min(LONGEST_WAIT, 2 * self.wait or FIRST_WAIT)
        await self.ports.sleep(self.wait)
        now = await self.reader.state(self.ports)
        # The other worker's summary will do, unless there were instructions.
        if now.revision != state.revision and not self.request.instructions:
            self.forced = None
