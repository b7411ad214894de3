"""A pass for one request: made now, taken from what is paid for, or put off; and what is prepared beside the
conversation.

What belongs here: never paying twice for a summary, and never waiting for one while the old view can go on. What does
not: the view (``views``), running work in the background (``background``), and the pass itself (``passes``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TypeVar

from contextfold.calls.background import Background
from contextfold.calls.memory import FailedAt, KnownConversation
from contextfold.calls.request import Once, Request
from contextfold.calls.single_flight import SingleFlight
from contextfold.errors import is_control_flow, reason
from contextfold.observe import Observer
from contextfold.passes.means import Made, Means, Nothing
from contextfold.passes.prepared import Prepared
from contextfold.passes.question import BACKGROUND, Question
from contextfold.policy import PATIENCE, Policy
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction

T = TypeVar("T")

_STEP = 8
"""Messages by which calls may be apart that wait for one another: those of a turn or two."""


class PassAttempts:
    """What becomes of passes over one conversation, for one request.

    ``means_over``: what a pass is performed with, over these ports and with this observer.
    """

    def __init__(
        self,
        policy: Policy,
        conversation: KnownConversation,
        request: Request,
        means: Means,
        means_over: Callable[[Ports, Observer], Means],
        flights: SingleFlight,
    ) -> None:
        self.policy = policy
        self.conversation = conversation
        self.request = request
        self.means = means
        self.ports = means.ports
        self.observer = means.observer
        self.means_over = means_over
        self.flights = flights

    def may_prepare(self, base: str | None) -> bool:
        """Whether to prepare a pass once the view is near its trigger: none was tried under the record that the caller
        came with, whose ``pass_id`` is ``base``.
        """
        return self.policy.soft_share is not None and not (
            self.request.forced or self._is_preparing() or self._was_tried(base)
        )

    async def made(self, question: Question) -> Made | None:
        """A pass, unless one failed for this very state before, or its summary is paid for already."""
        await self._look_elsewhere(question)
        conversation, waits = self.conversation, self._is_preparing()
        if not await self._awaited(question):
            return None
        before, means = conversation.attempt, self.means
        failed = isinstance(before, FailedAt) and before.asked
        # Else each call would pay for the same failure; a new message or record is a new state.
        is_repeated = failed and before == conversation.state and not (waits and self.policy.fallback)
        if is_repeated and not question.forced:
            self._skip("the summary failed for this very history", question)
            return None
        if isinstance(before, FailedAt) and self.policy.on_failure == "keep":
            if failed and self._rests(before, question):
                self._skip("the summary failed several times: it is tried again when more has been said", question)
                return None
            if self.policy.soft_share is not None and self._can_go_on(question):
                # What failed is tried again beside the conversation, too: no request waits for it.
                self.prepare(question)
                self._skip("a summary is prepared once more", question)
                return None
            is_late = waits or (self.policy.soft_share and not question.forced)
            if failed and self.policy.fallback is not None and is_late:
                # It had its time. Asked again, a model that is silent would hold this request as long once more.
                means = self._built_in(before)
        # What is paid for stays known until there is something in its place: a task may be cancelled at any await.
        prepared = conversation.prepared
        if prepared is None:
            conversation.attempt = None
        lasting = question.policy is self.policy and not question.instructions
        """Asked as ever, without pins or instructions for this call alone."""
        record = await self.ports.compute(prepared.answers, question) if prepared is not None and lasting else None
        if record is not None:
            return self._adopted(record, question)
        made, is_of_another = await self._performed(question, means, lasting=lasting)
        if is_of_another and isinstance(made, Made):
            theirs = Prepared(made.compaction, _base(question))
            if record := await self.ports.compute(theirs.answers, question):
                conversation.attempt = theirs
                return self._adopted(record, question)
            made = await _performed(question, means)
        if isinstance(made, Nothing):
            now = conversation.state.after(before) if made.cause == "summary_failed" else None
            conversation.attempt = prepared if self._outlives(prepared, question) else now
            return None
        is_paid = made.compaction.summary is not None and made.compaction.summary.calls > 0
        conversation.attempt = Prepared(made.compaction, _base(question)) if is_paid and lasting else None
        return made

    def prepare(self, question: Question) -> None:
        """Begin a pass beside the conversation."""
        conversation = self.conversation
        if conversation.background is None:
            conversation.background = Background(self.policy.summary.parallel)
        # Without pins and instructions for this call alone: a later call takes what is prepared.
        question = replace(question, policy=self.policy, forced=BACKGROUND, instructions="")
        question = replace(question, history=question.history.snapshot())
        state, before, observer = conversation.state, conversation.attempt, self.observer.another()

        async def told(making: Awaitable[T]) -> T | None:
            """No caller waits for this work: an error becomes an event, and the same state is not tried again."""
            try:
                return await making
            except Exception as error:
                if is_control_flow(error):
                    raise
                observer.emit("background_failed", reason(error), error=type(error).__name__)
                return None

        async def make(ports: Ports) -> Compaction | None:
            nonlocal state
            found = await told(self._performed(question, self.means_over(ports, observer)))
            made = found[0] if found is not None else None
            if isinstance(made, Made):
                return made.compaction
            state = replace(state, asked=made is None or made.cause == "summary_failed")
            return None

        async def shared(once: Once, ports: Ports) -> Compaction | bool | None:
            return await once(_base(question), partial(make, ports))

        async def work(ports: Ports) -> None:
            once = self.request.once
            made = await (make(ports) if once is None else told(shared(once, ports)))
            if not isinstance(made, Compaction):
                failures = (event for event in observer.events if event.name in ("summary_failed", "background_failed"))
                conversation.attempt = replace(state, failed=next(failures, None)).after(before)
                return
            conversation.attempt = Prepared(made, _base(question))
            text = f"a summary of {made.covers:,} messages is ready and not in force yet"
            observer.emit("summary_prepared", text, summary=made.id)

        conversation.background.start(work, self.ports)

    async def _performed(
        self, question: Question, means: Means, *, lasting: bool = True
    ) -> tuple[Made | Nothing, bool]:
        """A pass, and whether another call made it at this time, for the same state. ``lasting``: asked as ever."""
        if question.summary_is_free or not lasting:
            return await _performed(question, means), False
        key = await means.ports.compute(self._key, question)
        making = partial(_performed, question, means)
        return await self.flights.made(key, making, means.ports, self.policy.summary.total_seconds)

    def _key(self, question: Question) -> Hashable:
        """What calls have in common that would pay for the same summary. They may differ in their newest messages,
        which no pass covers; whether the summary serves them is looked at when it is made.
        """
        request, history = self.request, question.history
        older = max(0, len(history.messages) - 2)
        said = history.fingerprint(older - older % _STEP if older >= _STEP else older, whole=True)
        asked = (request.whose, request.endpoint, request.model, question.forced, question.limits, _base(question))
        return history.format.name, said, asked

    async def _look_elsewhere(self, question: Question) -> None:
        """What another process has prepared serves as if it were made here, and what it prepares is waited for so."""
        once, base = self.request.once, _base(question)
        if once is None or self._is_preparing() or self._was_tried(base):
            return
        found = await once(base, None)
        if isinstance(found, Compaction):
            self.conversation.attempt = Prepared(found, base)
        elif found:
            self.prepare(question)

    async def _awaited(self, question: Question) -> bool:
        """Wait for a pass that is being prepared. False where the old view can go on until it is."""
        if self.conversation.background is None or not self._is_preparing():
            return True
        if self._can_go_on(question):
            self._skip("a summary is being prepared", question)
            return False
        await self.conversation.background.finished(self.ports)
        return True

    def _outlives(self, prepared: Prepared | None, question: Question) -> bool:
        """Whether what was paid for serves a later call, though it was not what this one asked for, and that failed.
        Only beside one that a person, or a refusal, forced: the next one asks for less.
        """
        if prepared is None or not question.forced or prepared.base != _base(question):
            return False
        return prepared.still_fits(question.history) is not None

    def _is_preparing(self) -> bool:
        return self.conversation.background is not None and self.conversation.background.is_busy

    def _was_tried(self, base: str | None) -> bool:
        attempt = self.conversation.attempt
        if not isinstance(attempt, Prepared):
            return attempt is not None and attempt.asked  # what was of no use may be, with more that was said
        # One that was prepared under another record is in force by now; one that fits no longer never will be.
        return attempt.base == base and attempt.still_fits(self.conversation.history) is not None

    def _can_go_on(self, question: Question) -> bool:
        """Whether a request may go out under the old view, while a summary is made beside it."""
        return not question.forced and question.view_tokens <= PATIENCE * question.limits.window

    def _rests(self, failed: FailedAt, question: Question) -> bool:
        """Whether a model that failed several times is not asked yet, because the old view fits."""
        is_same = failed == replace(self.conversation.state, length=failed.length)
        fits = self._can_go_on(question) if self.policy.soft_share else question.view_tokens <= question.limits.window
        return is_same and fits and not question.forced and self.conversation.state.length < failed.again

    def _skip(self, text: str, question: Question) -> None:
        self.observer.emit("skipped", text, tokens=question.view_tokens)

    def _built_in(self, before: FailedAt) -> Means:
        failed, text = before.failed, "the built-in extractive summary stands in"
        error = {"error": failed.data.get("error")} if failed is not None else {}
        because = f"{failed.message}; " if failed is not None else ""
        self.observer.emit("fallback_used", because + text, fallback=self.policy.fallback, **error)
        return replace(self.means, summarizer=None, same=None)

    def _adopted(self, record: Compaction, question: Question) -> Made:
        text = "the summary that was made before, and is not in force yet, is taken"
        self.observer.emit("summary_adopted", text, summary=record.id, trigger=record.trigger)
        if record.thinking_from:  # what was thought since was thought under the old view
            record = record.changed(thinking_from=len(question.messages))
        return Made(record, question.evicted(record))


async def _performed(question: Question, means: Means) -> Made | Nothing:
    # Loaded with the first pass, and beside the event loop: most requests need none.
    await means.ports.compute(import_module, "contextfold.passes.perform")
    from contextfold.passes.perform import run_pass

    return await run_pass(question, means)


def _base(question: Question) -> str | None:
    """What a summary that is prepared now goes on from."""
    return question.record.pass_id if question.record else None
