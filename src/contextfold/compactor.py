"""The facade: ``Compactor`` and its result.

What belongs here: arguments in, result out, the sync and async doors, and a request around which to compact (``call``).
What does not: decisions (``plan``), their execution (``engine``), what is remembered between calls (``memory``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

from contextfold import formats
from contextfold.carry import EXTRACTIVE
from contextfold.compaction import Compaction, SummaryRecord
from contextfold.engine import run_pass
from contextfold.errors import InputError, PolicyError
from contextfold.formats.base import Format
from contextfold.history import History
from contextfold.job import Job
from contextfold.ledger import Ledger
from contextfold.memory import Conversation, Memory
from contextfold.observe import Event, Observer
from contextfold.overflow import Overflow, classify
from contextfold.policy import Limits, Policy
from contextfold.ports import AsyncPorts, Ports, SyncPorts, run
from contextfold.situation import MANUAL, floor_of, triggered
from contextfold.summary.summarizer import Summarizer, as_summarizer
from contextfold.tokens import TokenCounter
from contextfold.view import translate
from contextfold.window import resolve

T = TypeVar("T")

UNSET: Any = object()


@dataclass(frozen=True)
class CompactionResult:
    """What a call made of a conversation. Sizes are tokens, system prompt and tools included."""

    messages: list[Any]
    """The view to send, in the format that came in or the one asked for."""
    compaction: Compaction | None
    """The record in force; pass it as ``previous`` next turn."""
    changed: bool
    """True if this call made a new compaction."""
    ledger: Ledger
    tokens_before: int
    tokens_after: int
    trigger: str | None
    """What made this call compact; None if it did not."""
    events: tuple[Event, ...]
    window: int
    target: int
    format: str
    _floor: Callable[[], Mapping[str, int]] = field(repr=False)

    @cached_property
    def floor(self) -> Mapping[str, int]:
        """Tokens that no compaction can remove, item by item."""
        return self._floor()

    @property
    def summary(self) -> SummaryRecord | None:
        """The summary in the view, with its evidence and what it took; None where there is none."""
        return self.compaction.summary if self.compaction else None


class Compactor:
    """Keeps conversations inside a window. One instance serves any number of conversations and threads.

    Args:
        window: input tokens of the receiving model. None: looked up for ``model``, else a conservative default.
        model: name of the receiving model, such as ``"openai:gpt-5"``.
        trigger, target, keep: see ``Policy``; or give the whole ``policy`` instead.
        summarizer: None or ``"extractive"`` for the built-in one; a callable from prompt to text, sync or async; an
            object with ``complete`` or ``invoke``.
        count_text: tokens of a text, to replace the built-in estimate.
        on_event: called with each ``Event`` as it happens.

    Raises ``PolicyError`` when a setting is not allowed.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        model: str | None = None,
        trigger: Any = UNSET,
        target: Any = UNSET,
        keep: Any = UNSET,
        summarizer: Any = None,
        policy: Policy | None = None,
        count_text: Callable[[str], int] | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        given = {"trigger": trigger, "target": target, "keep": keep}
        given = {name: value for name, value in given.items() if value is not UNSET}
        if policy is not None and given:
            raise PolicyError(f"give either policy or {', '.join(given)}, not both: they are fields of the policy")
        self.policy = policy if policy is not None else Policy(**given)
        self.window = resolve(window, model)
        self.limits = Limits.of(self.policy, self.window.tokens)
        self.summarizer = _summarizer(summarizer)
        self._memory = Memory(count_text)
        self._on_event = on_event

    def compact(
        self,
        messages: Sequence[Any],
        previous: Compaction | None = None,
        *,
        format: str | None = None,
        to: str | None = None,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        force: bool = False,
        instructions: str = "",
    ) -> CompactionResult:
        """The view of a conversation, compacted if the policy says so. Nothing that is passed in is changed.

        Args:
            messages: the full history, in any supported format; never a view of an earlier call.
            previous: the record in force, from the last call or from a store.
            format: the format of ``messages``; detected if not given.
            to: the format of the view; the one that came in if not given.
            system, tools: what is sent besides the messages; they count.
            force: compact now, whatever the trigger says.
            instructions: extra instructions for the summariser, for this call.

        Raises ``InputError`` for data that is not a conversation, ``CannotFit`` when no compaction can reach the
        target, ``SummaryFailed`` when there is no acceptable summary and no way to go on without one. Nothing has
        changed then.
        """
        request = _Request(messages, previous, format, to, system, tools, MANUAL if force else None, instructions)
        return run(self._compact(request, SyncPorts(self.policy.summary.parallel)))

    async def acompact(
        self,
        messages: Sequence[Any],
        previous: Compaction | None = None,
        *,
        format: str | None = None,
        to: str | None = None,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        force: bool = False,
        instructions: str = "",
    ) -> CompactionResult:
        """``compact`` for async code: the same algorithm, and it never blocks the event loop."""
        request = _Request(messages, previous, format, to, system, tools, MANUAL if force else None, instructions)
        return await self._compact(request, AsyncPorts(self.policy.summary.parallel))

    def call(
        self,
        send: Callable[[list[Any]], T],
        messages: Sequence[Any],
        previous: Compaction | None = None,
        *,
        on_result: Callable[[CompactionResult], object] | None = None,
        **options: Any,
    ) -> T:
        """Send a conversation: ``send(view)``, compacted before, and once more if the provider says it does not fit.

        Args:
            send: sends a view and returns the response; any exception of the provider's SDK may come out of it.
            on_result: gets the result whose view was answered; its ``compaction`` is the next ``previous``.
            options: as for ``compact``.

        After an overflow the view is sent again only if it is strictly smaller. Raises what ``send`` raised otherwise.
        """
        ports = SyncPorts(self.policy.summary.parallel)
        response: T = run(self._call(send, _Request(messages, previous, **options), on_result, ports))
        return response

    async def acall(
        self,
        send: Callable[[list[Any]], Any],
        messages: Sequence[Any],
        previous: Compaction | None = None,
        *,
        on_result: Callable[[CompactionResult], object] | None = None,
        **options: Any,
    ) -> Any:
        """``call`` for async code; ``send`` may be sync or async."""
        ports = AsyncPorts(self.policy.summary.parallel)
        return await self._call(send, _Request(messages, previous, **options), on_result, ports)

    # ---- one algorithm, both colours ----

    async def _compact(self, request: _Request, ports: Ports, limits: Limits | None = None) -> CompactionResult:
        _check(request)
        observer = Observer(self._on_event)
        if self._memory.is_near(request.messages, request.previous):
            conversation = self._open(request, observer)
        else:  # decoding a whole history takes long enough to hold up an event loop
            conversation = await ports.compute(self._open, request, observer)
        try:
            return await self._compacted(conversation, request, observer, ports, limits or self.limits)
        finally:
            self._memory.put_back(conversation)

    async def _compacted(
        self, conversation: Conversation, request: _Request, observer: Observer, ports: Ports, limits: Limits
    ) -> CompactionResult:
        history = conversation.history
        overhead = self._overhead(history.counter, request)
        beside = sum(overhead.values())
        before = conversation.view.tokens + beside
        made: Compaction | None = None
        if triggered(self.policy, limits, before, len(conversation.view.wire), request.forced):
            if await ports.compute(history.refresh):
                self._follow(conversation, request.previous, observer, anew=True)
                before = conversation.view.tokens + beside
            made = await self._run(self._job(conversation, request, observer, limits, overhead), conversation, ports)
        if made is not None:
            await ports.compute(conversation.rebuild, made)
        self._report_faults(conversation, observer)
        target = formats.get(request.to) if request.to else history.format
        if target is history.format:
            wire = list(conversation.view.wire)
        else:
            wire = await ports.compute(translate, history, conversation.compaction, target)
        compaction = conversation.compaction
        return CompactionResult(
            messages=wire,
            compaction=compaction,
            changed=made is not None,
            ledger=Ledger(compaction.runs if compaction else (), history.messages, conversation.view.mended),
            tokens_before=before,
            tokens_after=conversation.view.tokens + beside,
            trigger=made.trigger if made else None,
            events=tuple(observer.events),
            window=limits.window,
            target=made.target if made else limits.target,
            format=target.name,
            _floor=partial(self._floor_of, history, len(history.messages), overhead),
        )

    def _job(
        self,
        conversation: Conversation,
        request: _Request,
        observer: Observer,
        limits: Limits,
        overhead: Mapping[str, int],
    ) -> Job:
        return Job(
            history=conversation.history,
            previous=conversation.compaction,
            view_tokens=conversation.view.tokens + sum(overhead.values()),
            view_messages=len(conversation.view.wire),
            overhead=overhead,
            limits=limits,
            policy=self.policy,
            summarizer=self.summarizer,
            observer=observer,
            forced=request.forced,
            instructions=request.instructions,
        )

    async def _run(self, job: Job, conversation: Conversation, ports: Ports) -> Compaction | None:
        """A pass, unless one failed for this very state before: a summariser is not asked twice for nothing."""
        if not job.forced and conversation.failed == conversation.state:
            job.observer.emit("skipped", "the summary failed for this very history", tokens=job.view_tokens)
            return None
        made = await run_pass(job, ports)
        failed = made is None and any(event.name == "summary_failed" for event in job.observer.events)
        conversation.failed = conversation.state if failed else None
        return made

    async def _call(
        self,
        send: Callable[[list[Any]], Any],
        request: _Request,
        on_result: Callable[[CompactionResult], object] | None,
        ports: Ports,
    ) -> Any:
        result = await self._compact(request, ports)
        try:
            response = await ports.call(send, result.messages)
        except Exception as error:
            smaller = await self._after_overflow(classify(error), request, result, ports)
            if smaller is None:
                raise
            result = smaller
            response = await ports.call(send, result.messages)
        if on_result is not None:
            on_result(result)
        return response

    async def _after_overflow(
        self, overflow: Overflow | None, request: _Request, result: CompactionResult, ports: Ports
    ) -> CompactionResult | None:
        """A strictly smaller view after a refusal for size; None when the refusal was for something else."""
        if overflow is None or overflow.kind not in ("prompt_too_long", "truncated_silently"):
            return None
        limits = self.limits.shrunk(_window_after(overflow, result))
        again = request.after(result, f"overflow: {overflow.kind}")
        smaller = await self._compact(again, ports, limits)
        return smaller if smaller.tokens_after < result.tokens_after else None

    # ---- steps ----

    def _open(self, request: _Request, observer: Observer) -> Conversation:
        """The conversation of a request, decoded, sized and under the record that the caller has in force."""
        conversation = self._memory.take(request.messages, self._format(request, observer))
        self._follow(conversation, request.previous, observer)
        return conversation

    def _format(self, request: _Request, observer: Observer) -> Format:
        if request.format is not None:
            return formats.get(request.format)
        if (known := self._memory.format_of(request.messages)) is not None:
            return known
        found = formats.detect(request.messages)
        observer.emit("format_detected", f"the messages are {found.name}", format=found.name)
        return found

    def _follow(
        self, conversation: Conversation, previous: Compaction | None, observer: Observer, *, anew: bool = False
    ) -> None:
        """Bring the view under the record that the caller has in force, if it fits the history."""
        same = previous is conversation.compaction or (
            previous is not None and conversation.compaction is not None and previous.id == conversation.compaction.id
        )
        if same and not anew:
            return
        problem = conversation.history.mismatch(previous) if previous is not None else None
        if problem is not None:
            observer.emit("compaction_set_aside", f"the given compaction is set aside: {problem}", problem=problem)
        conversation.rebuild(None if problem else previous)

    def _overhead(self, counter: TokenCounter, request: _Request) -> dict[str, int]:
        overhead = {"system prompt": counter.text(request.system)} if request.system else {}
        if request.tools:
            overhead["tools"] = counter.tools(request.tools)
        return overhead

    def _floor_of(self, history: History, length: int, overhead: Mapping[str, int]) -> dict[str, int]:
        return floor_of(history.messages[:length], history.counter, self.policy, overhead)

    def _report_faults(self, conversation: Conversation, observer: Observer) -> None:
        """Say what is broken in the history, once."""
        faults = () if conversation.clean else conversation.history.grouping.faults
        if len(faults) > conversation.reported:
            conversation.reported = len(faults)
            shown = "; ".join(str(fault) for fault in faults[:5])
            more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
            observer.emit("history_repaired", f"{shown}{more}", faults=[str(fault) for fault in faults])


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of one call."""

    messages: Sequence[Any]
    previous: Compaction | None = None
    format: str | None = None
    to: str | None = None
    system: str | None = None
    tools: Sequence[Any] | None = None
    forced: str | None = None
    instructions: str = ""

    def after(self, result: CompactionResult, reason: str) -> _Request:
        """The same conversation once more, with the record that is in force now, and a reason to compact."""
        return _Request(
            self.messages, result.compaction, self.format, self.to, self.system, self.tools, reason, self.instructions
        )


def _check(request: _Request) -> None:
    """Raises ``InputError`` for arguments of the wrong kind, before anything looks into them."""
    messages, previous = request.messages, request.previous
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        hint = ": pass the list inside it" if isinstance(messages, Mapping) else ""
        raise InputError(f"messages must be a list of messages, not {type(messages).__name__}{hint}")
    if previous is not None and not isinstance(previous, Compaction):
        raise InputError(
            f"previous must be the compaction of an earlier call, not {type(previous).__name__}: "
            "pass out.compaction, or Compaction.from_json(text) for a stored one"
        )


def _window_after(overflow: Overflow, result: CompactionResult) -> int:
    """The window that a refusal teaches: the limit it names if that helps, else a quarter less than what was sent."""
    smaller = int(result.tokens_after * 0.75)
    if overflow.limit is None or overflow.limit <= 0:
        return min(result.window, smaller)
    if overflow.used:  # the provider's own count says how far our estimate is off
        return min(result.window, int(overflow.limit * min(1.0, result.tokens_after / overflow.used)))
    return min(result.window, overflow.limit)


def _summarizer(value: Any) -> Summarizer | None:
    return None if value is None or value == EXTRACTIVE else as_summarizer(value)
