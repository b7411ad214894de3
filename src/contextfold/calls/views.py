"""The view of a conversation for one request: remembered, decoded, sized, compacted if the policy says so.

What belongs here: bringing together what is remembered (``memory``), how large the window is (``window``), what the
provider's usage taught (``tokens.usage``) and a pass (``passes``). What does not: the public face (``compactor``),
sending (``recovery``), and any decision about a message (``passes.decide``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from contextfold import formats
from contextfold.calls.background import Background
from contextfold.calls.memory import REMEMBERED, FailedAt, KnownConversation, Memory
from contextfold.calls.request import CompactionResult, Request
from contextfold.calls.same import SameModel
from contextfold.conversation.groups import told_of
from contextfold.conversation.history import History
from contextfold.conversation.ledger import Account, Ledger
from contextfold.conversation.pins import newest_native
from contextfold.errors import CannotFit, is_control_flow, reason
from contextfold.formats.base import Format
from contextfold.messages import Text, ToolCall, ToolResult
from contextfold.observe import Observer
from contextfold.passes.means import Made, Means, Nothing
from contextfold.passes.prepared import Prepared
from contextfold.passes.question import Proposal, Question, Trigger, floor_of, triggered
from contextfold.policy import PATIENCE, Pins, Policy
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction, Recalled
from contextfold.record.view import alternating, build, translate
from contextfold.summary.summarizer import Summarizer, as_summarizer
from contextfold.tokens import TokenCounter
from contextfold.window import Window, Windows, bounds

if TYPE_CHECKING:
    from contextfold.passes.without_pass import Revise


class Views:
    """Makes views under one policy. One instance serves any number of conversations and threads."""

    def __init__(
        self,
        policy: Policy,
        windows: Windows,
        summarizer: Summarizer | None,
        count_text: Callable[[str], int] | None = None,
        remembered: int = REMEMBERED,
        *,
        same: bool = False,
    ) -> None:
        self.policy = policy
        self.windows = windows
        self.summarizer = summarizer
        self.same = same
        """The model that a request goes to writes its summaries."""
        self._memory = Memory(count_text, remembered)
        self._strict: set[tuple[str, str | None]] = set()

    async def view(
        self,
        request: Request,
        ports: Ports,
        observer: Observer,
        *,
        window: int | None = None,
        revise: Revise | None = None,
        strict: bool = False,
    ) -> CompactionResult:
        """The view for a request.

        Args:
            window: tokens that the view is to be compacted for, if fewer than the model's window.
            revise: makes the record in place of a pass.
            strict: read the history again and let roles take turns, now and in later views for this endpoint and model.

        Raises what ``Compactor.compact`` raises.
        """
        found = await self.windows.find(request.endpoint, request.model, ports, observer)
        if self._memory.is_near(request.messages, request.previous):
            conversation = self._open(request, observer)
        else:  # decoding a whole history takes long enough to hold up an event loop
            conversation = await ports.compute(self._open, request, observer)
        if strict:
            # Remembered, or the next request would be refused for the same reason.
            self._strict.add((request.endpoint, request.model))
            await ports.compute(conversation.distrust)
        # With a guess a `CannotFit` is not final: one more try, with a window that holds what must stay.
        is_guess = window is None and gives_way(found, request)
        try:
            call = _Call(self, conversation, request, observer, ports, found, window, is_guess or window is not None)
            try:
                return await call.result(revise)
            except CannotFit as error:
                if not is_guess:
                    raise
                found = widened(found, error, observer)
            return await _Call(self, conversation, request, observer, ports, found, None, False).result(revise)
        finally:
            self._memory.put_back(conversation)

    async def due(self, request: Request, ports: Ports, observer: Observer) -> str | None:
        """Why a pass is due for a request, in words; None when none is. Nothing is compacted."""
        found = await self.windows.find(request.endpoint, request.model, ports, observer)
        conversation = await ports.compute(self._open, request, observer)
        try:
            trigger = _Call(self, conversation, request, observer, ports, found, None, False).due()
            return trigger.reason if trigger else None
        finally:
            self._memory.put_back(conversation)

    def is_beside(self, conversation: KnownConversation) -> bool:
        """As ``Memory.is_beside``."""
        return self._memory.is_beside(conversation)

    def is_strict(self, request: Request) -> bool:
        """Whether this endpoint refused two neighbors of one role before."""
        return (request.endpoint, request.model) in self._strict

    def _open(self, request: Request, observer: Observer) -> KnownConversation:
        source = self._format(request, observer)
        conversation = self._memory.take(request.messages, source, request.previous, request.whose)
        follow(conversation, request.previous, observer, role=self.policy.summary_role)
        return conversation

    def _format(self, request: Request, observer: Observer) -> Format:
        if request.format is not None:
            return formats.get(request.format)
        if (known := self._memory.format_of(request.messages)) is not None:
            return known
        found = formats.detect(request.messages)
        observer.emit("format_detected", f"the messages are {found.name}", format=found.name)
        return found


class _Call:
    """One request on its way to a result; every attribute is set once."""

    def __init__(
        self,
        views: Views,
        conversation: KnownConversation,
        request: Request,
        observer: Observer,
        ports: Ports,
        window: Window,
        smaller: int | None,
        is_trial: bool,
    ) -> None:
        self.views = views
        self.conversation = conversation
        self.request = request
        self.observer = observer
        self.ports = ports
        self.window = window
        self.policy, limits = bounds(views.policy, window, views.windows.assumed(request.model))
        self.calibration = request.calibration
        history = conversation.history
        overhead = self.calibration.apply(sum(overhead_of(history.counter, request).values()) + history.head_tokens)
        self.limits = (limits if smaller is None else limits.shrunk(smaller)).beside(self.policy, overhead)
        self.means = self._means(ports, observer, retries=is_trial)

    def _means(self, ports: Ports, observer: Observer, *, retries: bool) -> Means:
        summarizer, request = self.views.summarizer, self.request
        if not self.views.same or request.ask is None:
            return Means(ports, observer, summarizer, request.archive, retries=retries)
        history = self.conversation.history
        sample = history.wire[0] if history.wire else None
        model = SameModel(request.ask, history.format, sample, self.window.tokens, request.answer_limit)
        # The request behind the view is built in the caller's format; a provider that gets another one has not cached
        # that.
        behind = model if request.to in (None, history.format.name) else None
        return Means(ports, observer, as_summarizer(model), request.archive, behind, retries)

    async def result(self, revise: Revise | None) -> CompactionResult:
        conversation, request = self.conversation, self.request
        overhead = overhead_of(conversation.history.counter, request)
        before = self._size(overhead)
        base = conversation.record.pass_id if conversation.record else None
        made: Compaction | None = None
        if revise is None and self._is_for_another_model():
            made = await self._from_the_originals(overhead)
        if revise is not None:
            question = self._question(overhead)
            made = await self._archived(question, await self.ports.compute(revise, question))
        elif trigger := self.due():
            # Only before a pass is every older object looked at again for changes in place: at each call that costs too
            # much.
            if await self.ports.compute(conversation.history.refresh, 0, conversation.known_before):
                follow(conversation, request.previous, self.observer, role=self.policy.summary_role, again=True)
                before = self._size(overhead)
            made = await self._between_hooks(await self.ports.compute(self._question, overhead), trigger) or made
        if made is not None and made is not conversation.record:
            if not request.sending:  # what is sent may be refused: then the caller comes back without this record
                conversation.attempt = None
            await self.ports.compute(conversation.rebuild, made)
        came_back = None
        if revise is None and self.policy.recall.enabled:
            came_back = await self.ports.compute(self._recalled, overhead)
        _report_faults(conversation, self.observer)
        target = formats.get(request.to) if request.to else conversation.history.format
        wire, mended = await self._wire(target)
        if revise is None and self._is_soon(overhead, base):
            await self._start_preparing(overhead)
        return self._result(made, before, overhead, wire, mended, target, came_back)

    def _is_for_another_model(self) -> bool:
        """Whether the view holds a provider's own compaction, and another model than the last one is to read it."""
        conversation, model = self.conversation, self.request.model
        last, conversation.model = conversation.model, model or conversation.model
        if model is None or last in (None, model):
            return False
        gone = conversation.record.gone() if conversation.record else ()
        return newest_native(conversation.history.messages, gone) >= 0

    async def _from_the_originals(self, overhead: Mapping[str, int]) -> Compaction | None:
        """The record without what only the last model could read, in force: what is back may need a pass."""
        from contextfold.passes.without_pass import without_thinking

        question = self._question(overhead)
        made = await self._archived(question, await self.ports.compute(without_thinking, question))
        if made is not None:
            await self.ports.compute(self.conversation.rebuild, made)
            self.observer.emit(
                "native_compaction_left",
                f"the provider's own compaction leaves the view, since {self.request.model} cannot read it: its "
                "originals are back",
                model=self.request.model,
            )
        return made

    def _recalled(self, overhead: Mapping[str, int]) -> Recalled | None:
        """What the newest message asks about and has left the view, put behind it; None where nothing is."""
        conversation = self.conversation
        from contextfold.passes.recalling import recalled  # no conversation is searched unless the policy says so

        found = recalled(self._question(overhead))
        record = conversation.record
        if found is None or record is None:
            return None
        conversation.rebuild(record.model_copy(update={"recalled": (*record.recalled, found)}))
        self.observer.emit(
            "recalled",
            f"messages {', '.join(map(str, found.indices))} are quoted behind message {found.after}: {found.reason}",
            after=found.after,
            indices=list(found.indices),
            tokens=found.tokens,
            reason=found.reason,
        )
        return found

    def due(self) -> Trigger | None:
        """Why a pass is due; None when none is."""
        tokens = self._size(overhead_of(self.conversation.history.counter, self.request))
        messages = len(self.conversation.view.wire)
        return triggered(self.policy, self.limits, tokens, messages, self.request.forced)

    async def _wire(self, target: Format) -> tuple[list[Any], Mapping[int, Account]]:
        conversation, history = self.conversation, self.conversation.history
        record, view, sending = conversation.record, conversation.view, self.request.sending
        if target is not history.format:
            wire, mended = await self.ports.compute(partial(translate, history, record, target, sending=sending))
        else:
            if sending and (conversation.seen.is_open or not conversation.seen.clean):
                view = await self.ports.compute(partial(build, history, record, sending=True))
            wire, mended = list(view.wire), view.mended
        return (alternating(wire, target) if self.views.is_strict(self.request) else wire), mended

    def _result(
        self,
        made: Compaction | None,
        before: int,
        overhead: Mapping[str, int],
        wire: list[Any],
        mended: Mapping[int, Account],
        target: Format,
        came_back: Recalled | None,
    ) -> CompactionResult:
        conversation = self.conversation
        history, compaction = conversation.history, conversation.record
        tokens = conversation.view.tokens
        return CompactionResult(
            messages=wire,
            compaction=compaction,
            changed=made is not None or came_back is not None,
            ledger=Ledger(compaction.runs if compaction else (), history.messages, {**mended, **_quoted(compaction)}),
            tokens_before=before,
            tokens_after=self._size(overhead),
            trigger=made.trigger if made else None,
            events=tuple(self.observer.events),
            window=self.limits.window,
            target=made.target if made else self.limits.target,
            format=target.name,
            window_source=self.window.source,
            calibration=self.calibration,
            estimated_tokens=tokens + sum(overhead.values()),
            _floor=partial(self._floor_of, history, len(history.messages)),
            _text_tokens=partial(text_tokens, wire, target, history.counter),
            _history_tokens=partial(self._history_size, history.sizes, len(history.sizes), overhead),
        )

    def _size(self, overhead: Mapping[str, int]) -> int:
        """The present view as the provider would count it, with what is sent beside it."""
        return self._counted(self.conversation.view.tokens, overhead)

    def _history_size(self, sizes: Sequence[int], length: int, overhead: Mapping[str, int]) -> int:
        return self._counted(sum(sizes[:length]), overhead)

    def _counted(self, tokens: int, overhead: Mapping[str, int]) -> int:
        return self.calibration.apply(tokens) + sum(self.calibration.apply(size) for size in overhead.values())

    def _floor_of(self, history: History, length: int) -> dict[str, int]:
        counter = history.calibrated(self.calibration).counter
        messages = history.messages[:length]
        # The groups of a pass are those of the history until it has grown.
        grouping = history.grouping if length == len(history.messages) else None
        return floor_of(messages, counter, self.policy, overhead_of(counter, self.request), grouping)

    def _question(self, overhead: Mapping[str, int]) -> Question:
        conversation = self.conversation
        return Question(
            history=conversation.history.calibrated(self.calibration),
            record=conversation.record,
            view_tokens=self._size(overhead),
            view_messages=len(conversation.view.wire),
            overhead={name: self.calibration.apply(size) for name, size in overhead.items()},
            limits=self.limits,
            policy=self.policy,
            summary_is_free=self.means.summarizer is None,
            is_behind_view=self.means.same is not None,
            forced=self.request.forced,
            instructions=self.request.instructions,
        )

    async def _between_hooks(self, question: Question, trigger: Trigger) -> Compaction | None:
        """A pass between the caller's hooks: the one before may veto or pin, the one after saves what it wants."""
        request, ports = self.request, self.ports
        if request.before is not None:
            said = await ports.call(request.before, Proposal.of(question, trigger))
            if said is False:
                self.observer.emit("skipped", "the hook before compaction vetoed it", tokens=question.view_tokens)
                return None
            if isinstance(said, Pins):
                pinned = question.policy.model_copy(update={"pins": question.policy.pins.joined(said)})
                question = replace(question, policy=pinned)
        made = await self._pass(question)
        if made is None or await self._archived(question, made.compaction) is None:
            return None
        if request.after is not None:
            await ports.call(request.after, made)
        return made.compaction

    async def _archived(self, question: Question, made: Compaction | None) -> Compaction | None:
        """The record, once the originals of what it hides are saved; None if they are not and the old view goes on."""
        if made is None:
            return None
        from contextfold.passes.perform import archived, under_archive

        made = await self.ports.compute(under_archive, made, question, self.means)
        return made if await archived(made, question, self.means) else None

    # ---- in the background ----

    async def _look_elsewhere(self, question: Question) -> None:
        """What another process has prepared serves as if it were made here, and what it prepares is waited for so."""
        once, conversation, base = self.request.once, self.conversation, _base(question)
        if once is None or self._is_preparing() or self._was_tried(base):
            return
        found = await once(base, None)
        if isinstance(found, Compaction):
            conversation.attempt = Prepared(found, base)
        elif found:
            await self._start_preparing(overhead_of(conversation.history.counter, self.request))

    def _was_tried(self, base: str | None) -> bool:
        attempt = self.conversation.attempt
        if not isinstance(attempt, Prepared):
            return attempt is not None
        # One that was prepared under another record is in force by now; one that fits no longer never will be.
        return attempt.base == base and attempt.still_fits(self.conversation.history) is not None

    def _is_soon(self, overhead: Mapping[str, int], base: str | None) -> bool:
        """Whether to prepare a pass now: the view is near its trigger, and none was tried under the record that the
        caller came with, whose ``pass_id`` is ``base``.
        """
        share, conversation = self.policy.soft_share, self.conversation
        if share is None or self.request.forced or self._is_preparing():
            return False
        # The view is scaled up rather than the trigger down, so that each kind of trigger is asked the same question.
        tokens, messages = math.ceil(self._size(overhead) / share), math.ceil(len(conversation.view.wire) / share)
        if triggered(self.policy, self.limits, tokens, messages) is None or self._was_tried(base):
            return False
        if self.request.previous is not None:
            return True
        is_new = not conversation.known_before and conversation.attempt is None and conversation.background is None
        return not (conversation.drops_oldest or (is_new and self.views.is_beside(conversation)))

    def _is_preparing(self) -> bool:
        return self.conversation.background is not None and self.conversation.background.is_busy

    async def _start_preparing(self, overhead: Mapping[str, int]) -> None:
        conversation = self.conversation
        if conversation.background is None:
            conversation.background = Background(self.policy.summary.parallel)
        # Without instructions for this call alone: a later call takes what is prepared.
        question = replace(self._question(overhead), forced="background", instructions="")
        question = replace(question, history=question.history.snapshot())
        state, before, observer = conversation.state, conversation.attempt, self.observer.another()

        async def make(ports: Ports) -> Compaction | None:
            try:
                made = await _performed(question, self._means(ports, observer, retries=True))
            # No caller waits for this work: an error becomes an event, and the same state is not tried again.
            except Exception as error:
                if is_control_flow(error):
                    raise
                observer.emit("background_failed", reason(error), error=type(error).__name__)
                return None
            return None if isinstance(made, Nothing) else made.compaction

        async def prepare(ports: Ports) -> None:
            once = self.request.once
            made = await (make(ports) if once is None else once(_base(question), partial(make, ports)))
            if not isinstance(made, Compaction):
                told = (event for event in observer.events if event.name in ("summary_failed", "background_failed"))
                conversation.attempt = replace(state, failed=next(told, None)).after(before)
                return
            conversation.attempt = Prepared(made, _base(question))
            text = f"a summary of {made.covers:,} messages is ready and not in force yet"
            observer.emit("summary_prepared", text, summary=made.id)

        conversation.background.start(prepare, self.ports)

    async def _awaited(self, question: Question) -> bool:
        """Wait for a pass that is being prepared. False where the old view can go on until it is."""
        if self.conversation.background is None or not self._is_preparing():
            return True
        if self._can_go_on(question):
            self.observer.emit("skipped", "a summary is being prepared", tokens=question.view_tokens)
            return False
        await self.conversation.background.finished(self.ports)
        return True

    def _can_go_on(self, question: Question) -> bool:
        """Whether a request may go out under the old view, while a summary is made beside it."""
        return not question.forced and question.view_tokens <= PATIENCE * question.limits.window

    def _rests(self, failed: FailedAt, question: Question) -> bool:
        """Whether a model that failed several times is not asked yet, because the old view fits."""
        is_same = failed == replace(self.conversation.state, length=failed.length)
        fits = self._can_go_on(question) if self.policy.soft_share else question.view_tokens <= question.limits.window
        return is_same and fits and not question.forced and self.conversation.state.length < failed.again

    async def _pass(self, question: Question) -> Made | None:
        """A pass, unless one failed for this very state before, or its summary is paid for already."""
        await self._look_elsewhere(question)
        conversation, waits = self.conversation, self._is_preparing()
        if not await self._awaited(question):
            return None
        # Else each call would pay for the same failure; a new message or record is a new state.
        if not question.forced and conversation.attempt == conversation.state and not (waits and self.policy.fallback):
            text = "the summary failed for this very history"
            self.observer.emit("skipped", text, tokens=question.view_tokens)
            return None
        before = conversation.attempt
        if isinstance(before, FailedAt) and self.policy.on_failure == "keep":
            if self._rests(before, question):
                text = "the summary failed several times: it is tried again when more has been said"
                self.observer.emit("skipped", text, tokens=question.view_tokens)
                return None
            if self.policy.soft_share is not None and self._can_go_on(question):
                # What failed is tried again beside the conversation, too: no request waits for it.
                await self._start_preparing(overhead_of(conversation.history.counter, self.request))
                self.observer.emit("skipped", "a summary is prepared once more", tokens=question.view_tokens)
                return None
            if self.policy.fallback is not None and (waits or (self.policy.soft_share and not question.forced)):
                # It had its time. Asked again, a model that is silent would hold this request as long once more.
                self.means = replace(self.means, summarizer=None, same=None)
                failed, text = before.failed, "the built-in extractive summary stands in"
                error = {"error": failed.data.get("error")} if failed is not None else {}
                because = f"{failed.message}; " if failed is not None else ""
                self.observer.emit("fallback_used", because + text, fallback=self.policy.fallback, **error)
        prepared, conversation.attempt = conversation.prepared, None
        lasting = question.policy is self.policy and not question.instructions
        """Asked as ever, without pins or instructions for this call alone."""
        record = await self.ports.compute(prepared.answers, question) if prepared is not None and lasting else None
        if record is not None:
            conversation.attempt = prepared
            text = "the summary that was made before, and is not in force yet, is taken"
            self.observer.emit("summary_adopted", text, summary=record.id, trigger=record.trigger)
            if record.thinking_from:  # what was thought since was thought under the old view
                record = record.changed(thinking_from=len(question.messages))
            return Made(record, question.evicted(record))
        made = await _performed(question, self.means)
        if isinstance(made, Nothing):
            now = conversation.state.after(before)
            conversation.attempt = now if made.cause == "summary_failed" else None
            return None
        if made.compaction.summary is not None and made.compaction.summary.calls and lasting:
            conversation.attempt = Prepared(made.compaction, _base(question))
        return made


async def _performed(question: Question, means: Means) -> Made | Nothing:
    # Loaded with the first pass, and beside the event loop: most requests need none.
    await means.ports.compute(import_module, "contextfold.passes.perform")
    from contextfold.passes.perform import run_pass

    return await run_pass(question, means)


def _base(question: Question) -> str | None:
    """What a summary that is prepared now goes on from."""
    return question.record.pass_id if question.record else None


def _quoted(record: Compaction | None) -> dict[int, Account]:
    """What the ledger says of evicted messages that are quoted again."""
    fates: dict[int, Account] = {}
    if record is not None and record.recalled:
        reasons = {n: (run.fate, run.reason) for run in record.fates for n in range(run.start, run.stop)}
        for one in record.recalled:
            for n in one.indices:
                fate, reason = reasons[n]
                fates[n] = (fate, f"{reason}; quoted again behind message {one.after}, {one.reason}")
    return fates


# ---- the window ----


def gives_way(window: Window, request: Request) -> bool:
    """True if the window is only a guess and may be enlarged: it follows from a refusal that named no limit, or is the
    default, and the provider is about to be asked.
    """
    return window.most > window.tokens or (window.source == "default" and request.sending)


def widened(window: Window, error: CannotFit, observer: Observer) -> Window:
    """A guess that cannot be met gives way before it ends a conversation: the provider may take more."""
    tokens = window.most or math.ceil(ROOM_ABOVE_FLOOR * error.needed)
    observer.emit(
        "window_resolved",
        f"what must stay does not fit {window.tokens:,} tokens, which is only assumed: {tokens:,} are tried",
        tokens=tokens,
        source=window.source,
        assumed=window.tokens,
        assumed_source=window.source,
    )
    return replace(window, tokens=tokens)


ROOM_ABOVE_FLOOR = 2.5
"""Unknown window: assume this multiple of the floor. The default target, half of it, leaves room."""

# ---- steps ----


def follow(
    conversation: KnownConversation,
    previous: Compaction | None,
    observer: Observer,
    *,
    role: str,
    again: bool = False,
) -> None:
    """Bring the view under the record that the caller has in force, if it fits the history.

    ``role``: the one that the policy gives summaries.
    """
    previous = previous.in_role(role) if previous is not None else None
    known = conversation.record
    same = previous is known or (previous is not None and known is not None and previous.id == known.id)
    same = same or (previous is not None and known is not None and conversation.moved == (previous.id, known.id))
    if same and not again:
        return
    problem = previous.mismatch(conversation.history) if previous is not None else None
    if problem is not None and previous is not None and (moved := previous.moved(conversation.history)) is not None:
        conversation.moved = previous.id, moved.id
        problem, previous = None, moved
    if problem is not None:
        observer.emit("compaction_set_aside", f"the given compaction is set aside: {problem}", problem=problem)
    elif previous is not None and previous.thinking_from > len(conversation.history.messages):
        # The history was rewound to before the view changed: what is thought from here on is thought under this view.
        previous = previous.model_copy(update={"thinking_from": len(conversation.history.messages)})
    conversation.rebuild(None if problem else previous)


def overhead_of(counter: TokenCounter, request: Request) -> dict[str, int]:
    """What is sent besides the messages, in tokens."""
    overhead = {"system prompt": counter.text(request.system)} if request.system else {}
    if request.tools:
        overhead["tools"] = counter.tools(request.tools)
    return overhead


def text_tokens(wire: Sequence[Any], format: Format, counter: TokenCounter) -> int:
    """Tokens of the texts, calls and results in a view: no media, no reasoning."""
    messages = [format.decode(entry) for entry in wire]
    parts = [part for message in messages for part in message.parts]
    inner = [one for part in parts for one in (part.content if isinstance(part, ToolResult) else (part,))]
    return sum(counter.part(part) for part in inner if isinstance(part, Text | ToolCall))


def _report_faults(conversation: KnownConversation, observer: Observer) -> None:
    if not conversation.has_news:
        return
    conversation.has_news = False
    found = () if conversation.seen.clean else conversation.history.grouping.faults
    faults = [*map(str, found), *conversation.view.added]
    if len(faults) > conversation.faults_told:
        conversation.faults_told = len(faults)
        observer.emit("history_repaired", told_of(found, conversation.view.added), faults=faults)
