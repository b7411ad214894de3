"""The view of a conversation for one request: remembered, decoded, sized, compacted if the policy says so.

What belongs here: bringing together what is remembered (``memory``), how large the window is (``window``), what the
provider's usage taught (``tokens.usage``) and a pass (``engine``). What does not: the public face (``compactor``),
sending (``recovery``), and any decision about a message (``plan``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from contextfold import formats
from contextfold.calls.memory import Conversation, Memory
from contextfold.calls.request import CompactionResult, Request
from contextfold.conversation.history import History
from contextfold.conversation.ledger import Account, Ledger
from contextfold.errors import CannotFit
from contextfold.formats.base import Format
from contextfold.messages import Text, ToolCall, ToolResult
from contextfold.observe import Observer
from contextfold.passes.perform import archived, run_pass
from contextfold.passes.question import Job
from contextfold.passes.trigger import floor_of, triggered
from contextfold.passes.without_pass import Revise
from contextfold.policy import Limits, Pins, Policy
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction
from contextfold.record.view import alternating, answered, build, translate
from contextfold.summary.summarizer import Summarizer
from contextfold.tokens import TokenCounter
from contextfold.window import Window, Windows


class Viewer:
    """Makes views under one policy. One instance serves any number of conversations and threads."""

    def __init__(
        self,
        policy: Policy,
        windows: Windows,
        summarizer: Summarizer | None,
        count_text: Callable[[str], int] | None = None,
    ) -> None:
        self.policy = policy
        self.windows = windows
        self.summarizer = summarizer
        self._memory = Memory(count_text)
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
            strict: read the history anew and let roles take turns, now and in later views for this endpoint and model.

        Raises what ``Compactor.compact`` raises.
        """
        found = await self.windows.find(request.endpoint, request.model, ports, observer)
        if self._memory.is_near(request.messages, request.previous):
            conversation = self._open(request, observer)
        else:  # decoding a whole history takes long enough to hold up an event loop
            conversation = await ports.compute(self._open, request, observer)
        if strict:
            self._strict.add((request.endpoint, request.model))
            await ports.compute(_read_anew, conversation)
        is_guess = window is None and gives_way(found, request)
        try:
            turn = _Turn(self, conversation, request, observer, ports, found, window, is_guess or window is not None)
            try:
                return await turn.result(revise)
            except CannotFit as error:
                if not is_guess:
                    raise
                found = widened(found, error, observer)
            return await _Turn(self, conversation, request, observer, ports, found, None, False).result(revise)
        finally:
            self._memory.put_back(conversation)

    def is_strict(self, request: Request) -> bool:
        """Whether this endpoint refused two neighbors of one role before."""
        return (request.endpoint, request.model) in self._strict

    def _open(self, request: Request, observer: Observer) -> Conversation:
        """The conversation of a request, decoded, sized and under the record that the caller has in force."""
        conversation = self._memory.take(request.messages, self._format(request, observer))
        follow(conversation, request.previous, observer)
        return conversation

    def _format(self, request: Request, observer: Observer) -> Format:
        if request.format is not None:
            return formats.get(request.format)
        if (known := self._memory.format_of(request.messages)) is not None:
            return known
        found = formats.detect(request.messages)
        observer.emit("format_detected", f"the messages are {found.name}", format=found.name)
        return found


class _Turn:
    """One request on its way to a result; every attribute is set once."""

    def __init__(
        self,
        viewer: Viewer,
        conversation: Conversation,
        request: Request,
        observer: Observer,
        ports: Ports,
        window: Window,
        smaller: int | None,
        is_trial: bool,
    ) -> None:
        self.viewer = viewer
        self.conversation = conversation
        self.request = request
        self.observer = observer
        self.ports = ports
        self.window = window
        self.policy = fitted(viewer.policy, window)
        limits = limits_of(self.policy, window, viewer.windows.assumed(request.model))
        self.limits = limits if smaller is None else limits.shrunk(smaller)
        self.calibration = request.calibration
        self.is_trial = is_trial

    async def result(self, revise: Revise | None) -> CompactionResult:
        conversation, request = self.conversation, self.request
        history = conversation.history
        overhead = overhead_of(history.counter, request)
        before = self._size(overhead)
        made: Compaction | None = None
        messages = len(conversation.view.wire)
        if revise is not None:
            job = self._job(overhead)
            made = await self._saved(job, await self.ports.compute(revise, job))
        elif trigger := triggered(self.policy, self.limits, before, messages, request.forced):
            if await self.ports.compute(history.refresh):
                follow(conversation, request.previous, self.observer, anew=True)
                before = self._size(overhead)
            made = await self._between_hooks(await self.ports.compute(self._job, overhead), trigger)
        if made is not None:
            conversation.unsaved = None
            await self.ports.compute(conversation.rebuild, made)
        _report_faults(conversation, self.observer)
        target = formats.get(request.to) if request.to else history.format
        wire, mended = await self._wire(target)
        return self._result(made, before, overhead, wire, mended, target)

    async def _wire(self, target: Format) -> tuple[list[Any], Mapping[int, Account]]:
        """The view in a format, and what became of messages that had to be mended for it."""
        conversation, history = self.conversation, self.conversation.history
        own = target is history.format
        mended = conversation.view.mended
        if self.request.sending and (conversation.seen.is_open or not conversation.clean or not own):
            wire, mended = await self.ports.compute(answered, history, conversation.compaction, target)
        elif own:
            wire = list(conversation.view.wire)
        else:
            wire = await self.ports.compute(translate, history, conversation.compaction, target)
        return (alternating(wire, target) if self.viewer.is_strict(self.request) else wire), mended

    def _result(
        self,
        made: Compaction | None,
        before: int,
        overhead: Mapping[str, int],
        wire: list[Any],
        mended: Mapping[int, Account],
        target: Format,
    ) -> CompactionResult:
        conversation = self.conversation
        history, compaction = conversation.history, conversation.compaction
        tokens = conversation.view.tokens
        return CompactionResult(
            messages=wire,
            compaction=compaction,
            changed=made is not None,
            ledger=Ledger(compaction.runs if compaction else (), history.messages, mended),
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
        )

    def _size(self, overhead: Mapping[str, int]) -> int:
        """The present view as the provider would count it, with what is sent beside it."""
        beside = sum(self.calibration.apply(size) for size in overhead.values())
        return self.calibration.apply(self.conversation.view.tokens) + beside

    def _floor_of(self, history: History, length: int) -> dict[str, int]:
        counter = history.calibrated(self.calibration).counter
        return floor_of(history.messages[:length], counter, self.policy, overhead_of(counter, self.request))

    def _job(self, overhead: Mapping[str, int]) -> Job:
        conversation = self.conversation
        return Job(
            history=conversation.history.calibrated(self.calibration),
            previous=conversation.compaction,
            view_tokens=self._size(overhead),
            view_messages=len(conversation.view.wire),
            overhead={name: self.calibration.apply(size) for name, size in overhead.items()},
            limits=self.limits,
            policy=self.policy,
            summarizer=self.viewer.summarizer,
            observer=self.observer,
            forced=self.request.forced,
            instructions=self.request.instructions,
            archive=self.request.archive,
            is_trial=self.is_trial,
        )

    async def _between_hooks(self, job: Job, trigger: str) -> Compaction | None:
        """A pass between the caller's hooks: the one before may veto or pin, the one after saves what it wants."""
        request, ports = self.request, self.ports
        if request.before is not None:
            said = await ports.call(request.before, job.proposal(trigger))
            if said is False:
                job.observer.emit("skipped", "the hook before compaction vetoed it", tokens=job.view_tokens)
                return None
            if isinstance(said, Pins):
                job = replace(job, policy=job.policy.model_copy(update={"pins": job.policy.pins.joined(said)}))
        made = await self._saved(job, await self._run(job))
        if made is not None and request.after is not None:
            await ports.call(request.after, job.made(made))
        return made

    async def _saved(self, job: Job, made: Compaction | None) -> Compaction | None:
        """The record, once the originals of what it hides are saved; None if they are not and the old view goes on."""
        if made is None or job.archive is None:
            return made
        originals = await self.ports.compute(job.originals, made)
        return made if await archived(job, originals, self.ports) else None

    async def _run(self, job: Job) -> Compaction | None:
        """A pass, unless one failed for this very state before: a summarizer is not asked twice for nothing."""
        conversation = self.conversation
        if not job.forced and conversation.failed == conversation.state:
            job.observer.emit("skipped", "the summary failed for this very history", tokens=job.view_tokens)
            return None
        unsaved, conversation.unsaved = conversation.unsaved, None
        if unsaved is not None and await self.ports.compute(self._will_do, unsaved, job):
            conversation.unsaved = unsaved
            text = "the summary that was made before, and could not be put in force, is taken"
            job.observer.emit("summary_adopted", text, summary=unsaved.id, trigger=unsaved.trigger)
            return unsaved
        made = await run_pass(job, self.ports)
        if made is not None and made.summary is not None and made.summary.calls and self._is_asked_as_ever(job):
            conversation.unsaved = made
        failed = made is None and any(event.name == "summary_failed" for event in job.observer.events)
        conversation.failed = conversation.state if failed else None
        return made

    def _is_asked_as_ever(self, job: Job) -> bool:
        """Without pins or instructions for this call alone."""
        return job.policy is self.policy and not job.instructions

    def _will_do(self, made: Compaction, job: Job) -> bool:
        """Whether a record made in an earlier call answers this one: nothing but new messages came in between."""
        parent = job.previous.id if job.previous else None
        if not self._is_asked_as_ever(job) or made.parent != parent or made.mismatch(job.history):
            return False
        view = build(job.history, made)
        tokens = view.tokens + sum(job.overhead.values())
        if job.forced:
            return tokens <= job.limits.target
        return triggered(job.policy, job.limits, tokens, len(view.wire)) is None


# ---- the window ----


def fitted(policy: Policy, window: Window) -> Policy:
    """The policy, with a trigger that can be reached where a refusal proved the window smaller than the caller knew.

    A trigger by messages alone, or none, stays as it is: off means off.
    """
    if window.source != "learned":
        return policy
    usable = window.tokens - policy.answer_reserve
    sizes = [tokens for clause in policy.trigger for size in clause.sizes if (tokens := size.tokens(usable))]
    sizes += [policy.max_tokens] if policy.max_tokens is not None else []
    if not sizes or min(sizes) <= usable:
        return policy
    return policy.model_copy(update={"max_tokens": max(1, int(REACHABLE * usable))})


def gives_way(window: Window, request: Request) -> bool:
    """Whether nobody has said that the window is no larger: it is a guess after a refusal that named no limit, or the
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
"""How many times what must stay is tried where nobody knows the window. The default target, half of it, leaves room."""

REACHABLE = 0.8
"""Share of a learned window where compaction starts, if the policy's own trigger is above it: the default trigger's."""


def limits_of(policy: Policy, window: Window, assumed: Window) -> Limits:
    """The policy in tokens of a window. Where it was made for a larger one, all that exceeds it comes down with it.

    Raises ``PolicyError`` when the policy does not fit the window that was assumed.
    """
    if window.tokens >= assumed.tokens:
        return Limits.of(policy, window.tokens)
    usable = max(1, window.tokens - policy.answer_reserve)
    shrunk = Limits.of(policy, assumed.tokens).shrunk(usable)
    return replace(shrunk, minimum_gain=int(policy.minimum_gain * usable))


# ---- steps ----


def follow(conversation: Conversation, previous: Compaction | None, observer: Observer, *, anew: bool = False) -> None:
    """Bring the view under the record that the caller has in force, if it fits the history."""
    same = previous is conversation.compaction or (
        previous is not None and conversation.compaction is not None and previous.id == conversation.compaction.id
    )
    if same and not anew:
        return
    problem = previous.mismatch(conversation.history) if previous is not None else None
    if problem is not None:
        observer.emit("compaction_set_aside", f"the given compaction is set aside: {problem}", problem=problem)
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


def _read_anew(conversation: Conversation) -> None:
    """In case an object was changed in place, or a message that looked right on its own was not."""
    conversation.history.refresh()
    conversation.clean = False
    conversation.seen.broken = True
    conversation.rebuild(conversation.compaction)


def _report_faults(conversation: Conversation, observer: Observer) -> None:
    """Say what is broken in the history, once."""
    if not conversation.to_report:
        return
    conversation.to_report = False
    faults = [] if conversation.clean else [str(fault) for fault in conversation.history.grouping.faults]
    faults += conversation.view.added
    if len(faults) > conversation.reported:
        conversation.reported = len(faults)
        more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
        observer.emit("history_repaired", f"{'; '.join(faults[:5])}{more}", faults=faults)
