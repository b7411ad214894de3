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
from typing import TYPE_CHECKING, Any

from contextfold import formats
from contextfold.calls.attempts import PassAttempts
from contextfold.calls.counted import passed_over, text_tokens
from contextfold.calls.memory import REMEMBERED, KnownConversation, Memory
from contextfold.calls.request import CompactionResult, Request
from contextfold.calls.same import SameModel
from contextfold.conversation.groups import told_of
from contextfold.conversation.history import History
from contextfold.conversation.ledger import Account, Ledger
from contextfold.conversation.pins import natives
from contextfold.errors import CannotFit
from contextfold.formats.base import Format
from contextfold.observe import Observer
from contextfold.passes.means import Means
from contextfold.passes.question import Proposal, Question, Trigger, floor_of, nearing, triggered
from contextfold.policy import Pins, Policy
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
        self.memory = Memory(count_text, remembered)
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
        conversation = await self._opened(request, ports, observer)
        # With a guess a `CannotFit` is not final: one more try, with a window that holds what must stay.
        is_guess = window is None and gives_way(found, request)
        try:
            if strict:
                # Remembered, or the next request would be refused for the same reason.
                self._strict.add((request.endpoint, request.model))
                await ports.compute(conversation.distrust)
            overhead = await _overhead(conversation, request, ports)
            is_trial = is_guess or window is not None
            call = _Call(self, conversation, request, observer, ports, found, window, is_trial, overhead)
            try:
                return await call.result(revise)
            except CannotFit as error:
                if not is_guess:
                    raise
                found = widened(found, error, observer)
            call = _Call(self, conversation, request, observer, ports, found, None, False, overhead)
            return await call.result(revise)
        finally:
            self.memory.put_back(conversation)

    async def due(self, request: Request, ports: Ports, observer: Observer) -> str | None:
        """Why a pass is due for a request, in words; None when none is. Nothing is compacted."""
        found = await self.windows.find(request.endpoint, request.model, ports, observer)
        conversation = await self._opened(request, ports, observer)
        try:
            overhead = await _overhead(conversation, request, ports)
            trigger = _Call(self, conversation, request, observer, ports, found, None, False, overhead).due()
            return trigger.reason if trigger else None
        finally:
            self.memory.put_back(conversation)

    def is_beside(self, conversation: KnownConversation) -> bool:
        """As ``Memory.is_beside``."""
        return self.memory.is_beside(conversation)

    def is_strict(self, request: Request) -> bool:
        """Whether this endpoint refused two neighbors of one role before."""
        return (request.endpoint, request.model) in self._strict

    async def _opened(self, request: Request, ports: Ports, observer: Observer) -> KnownConversation:
        """The conversation of a request, under the record that it came with. It is to be put back."""
        found = list[KnownConversation]()

        def open_it() -> None:
            source = self._format(request, observer)
            found.append(self.memory.take(request.messages, source, request.previous, request.whose))
            follow(found[0], request.previous, observer, role=self.policy.summary_role)

        try:
            if self.memory.is_near(request.messages, request.previous):
                open_it()
            else:  # decoding a whole history takes long enough to hold up an event loop
                await ports.compute(open_it)
        except BaseException:  # cancelled as well: what is paid for stays known
            for conversation in found:
                self.memory.put_back(conversation)
            raise
        return found[0]

    def _format(self, request: Request, observer: Observer) -> Format:
        if request.format is not None:
            return formats.get(request.format)
        if (known := self.memory.format_of(request.messages)) is not None:
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
        overhead: Mapping[str, int],
    ) -> None:
        self.views = views
        self.conversation = conversation
        self.request = request
        self.observer = observer
        self.ports = ports
        self.window = window
        self.policy, limits = bounds(views.policy, window, views.windows.assumed(request.model))
        self.calibration = request.calibration
        self.overhead = overhead
        limits = limits if smaller is None else limits.shrunk(smaller)
        self.limits = limits.beside(self.policy, self._counted(conversation.history.head_tokens))
        # No method of this object: what refers to itself, and to a list of all messages, would stay until Python's
        # collector comes.
        means_over = partial(_means, views, request, conversation.history, window.tokens)
        self.means = means_over(ports, observer, retries=is_trial)
        self.attempts = PassAttempts(self.policy, conversation, request, self.means, means_over, views.memory.flights)

    async def result(self, revise: Revise | None) -> CompactionResult:
        conversation, request = self.conversation, self.request
        before = self._size()
        base = conversation.record.pass_id if conversation.record else None
        made: Compaction | None = None
        if revise is None and request.model is not None:
            conversation.asks(request.model)
            made = await self._from_the_originals(request.model) if len(conversation.asked) > 1 else None
        if revise is not None:
            question = self._question()
            made = await self._archived(question, await self.ports.compute(revise, question))
        elif trigger := self.due():
            # Only before a pass is every older object looked at again for changes in place: at each call that costs too
            # much.
            if await self.ports.compute(conversation.history.refresh, 0, conversation.known_before):
                follow(conversation, request.previous, self.observer, role=self.policy.summary_role, again=True)
                before = self._size()
            made = await self._between_hooks(await self.ports.compute(self._question), trigger) or made
        is_new = made is not None and made is not conversation.record
        if made is not None and is_new:
            await self.ports.compute(conversation.rebuild, made)
        came_back = None
        if revise is None and self.policy.recall.enabled:
            came_back = await self.ports.compute(self._recalled)
        _report_faults(conversation, self.observer)
        target = formats.get(request.to) if request.to else conversation.history.format
        wire, mended = await self._wire(target)
        # Now that nothing is waited for any more: of a call that is cancelled, or sends what is refused, the caller
        # comes back without this record.
        if is_new and not request.sending:
            conversation.attempt = None
        if revise is None and self._is_soon(base):
            self.attempts.prepare(self._question())
        return self._result(made, before, wire, mended, target, came_back)

    async def _from_the_originals(self, model: str) -> Compaction | None:
        """The record without what only other models can read, in force: what is back may need a pass."""
        leaves, record = partial(self.conversation.is_of_another, model), self.conversation.record
        without = (record.gone(), record.removed()) if record else ()
        if not any(leaves(index) for index, _ in natives(self.conversation.history.messages, *without)):
            return None
        from contextfold.passes.without_pass import without_thinking

        question = self._question()
        made = await self._archived(question, await self.ports.compute(without_thinking, question, leaves))
        if made is not None:
            await self.ports.compute(self.conversation.rebuild, made)
            self.observer.emit(
                "native_compaction_left",
                f"the provider's own compaction leaves the view, since {model} cannot read it: its originals are back",
                model=model,
            )
        return made

    def _recalled(self) -> Recalled | None:
        """What the newest message asks about and has left the view, put behind it; None where nothing is."""
        conversation = self.conversation
        from contextfold.passes.recalling import recalled  # no conversation is searched unless the policy says so

        found = recalled(self._question())
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
        messages = len(self.conversation.view.wire)
        return triggered(self.policy, self.limits, self._size(), messages, self.request.forced)

    def _is_soon(self, base: str | None) -> bool:
        """Whether to prepare a pass now: the view is near its trigger. ``base``: as of ``PassAttempts.may_prepare``."""
        conversation = self.conversation
        if not self.attempts.may_prepare(base):
            return False
        if nearing(self.policy, self.limits, self._size(), len(conversation.view.wire)) is None:
            return False
        if self.request.previous is not None:
            return True
        is_new = not conversation.known_before and conversation.attempt is None and conversation.background is None
        return not (conversation.drops_oldest or (is_new and self.views.is_beside(conversation)))

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
            tokens_after=self._size(),
            trigger=made.trigger if made else None,
            events=tuple(self.observer.events),
            window=self.limits.window,
            target=made.target if made else self.limits.target,
            format=target.name,
            window_source=self.window.source,
            calibration=self.calibration,
            estimated_tokens=tokens + sum(self.overhead.values()),
            _floor=partial(self._floor_of, history, len(history.messages), compaction),
            _text_tokens=partial(text_tokens, wire, target, history.counter),
            _passed_over=partial(passed_over, history, compaction, len(history.messages)),
            _history_tokens=partial(self._history_size, history.sizes, len(history.sizes)),
        )

    def _size(self) -> int:
        """The present view as the provider would count it, with what is sent beside it."""
        return self._counted(self.conversation.view.tokens)

    def _history_size(self, sizes: Sequence[int], length: int) -> int:
        return self._counted(sum(sizes[:length]))

    def _counted(self, tokens: int) -> int:
        return self.calibration.apply(tokens) + sum(map(self.calibration.apply, self.overhead.values()))

    def _floor_of(self, history: History, length: int, record: Compaction | None) -> dict[str, int]:
        counter = history.calibrated(self.calibration).counter
        messages = history.messages[:length]
        # The groups of a pass are those of the history until it has grown.
        grouping = history.grouping if length == len(history.messages) else None
        overhead = overhead_of(counter, self.request)
        gone, removed = (record.gone(), record.removed()) if record else ((), ())
        return floor_of(messages, counter, self.policy, overhead, grouping, gone=gone, removed=removed)

    def _question(self) -> Question:
        conversation = self.conversation
        return Question(
            history=conversation.history.calibrated(self.calibration),
            record=conversation.record,
            view_tokens=self._size(),
            view_messages=len(conversation.view.wire),
            overhead={name: self.calibration.apply(size) for name, size in self.overhead.items()},
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
        made = await self.attempts.made(question)
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


def _means(
    views: Views,
    request: Request,
    history: History,
    window: int,
    ports: Ports,
    observer: Observer,
    *,
    retries: bool = True,
) -> Means:
    """What a pass is performed with. ``retries``: as ``Means`` has it."""
    if not views.same or request.ask is None:
        return Means(ports, observer, views.summarizer, request.archive, retries=retries)
    sample = history.wire[0] if history.wire else None
    model = SameModel(request.ask, history.format, sample, window, request.answer_limit)
    # The request behind the view is built in the caller's format; a provider that gets another one has not cached that.
    behind = model if request.to in (None, history.format.name) else None
    return Means(ports, observer, as_summarizer(model), request.archive, behind, retries)


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


async def _overhead(conversation: KnownConversation, request: Request, ports: Ports) -> dict[str, int]:
    """As ``overhead_of``. Declarations of tools are written as JSON at each request, and may be megabytes."""
    counter = conversation.history.counter
    is_short = not request.tools and len(request.system or "") < _SHORT
    return overhead_of(counter, request) if is_short else await ports.compute(overhead_of, counter, request)


_SHORT = 65_536
"""Characters of a system prompt that are counted at once, in a few milliseconds."""


def overhead_of(counter: TokenCounter, request: Request) -> dict[str, int]:
    """What is sent besides the messages, in tokens."""
    overhead = {"system prompt": counter.text(request.system)} if request.system else {}
    if request.tools:
        overhead["tools"] = counter.tools(request.tools)
    return overhead


def _report_faults(conversation: KnownConversation, observer: Observer) -> None:
    if not conversation.has_news:
        return
    conversation.has_news = False
    found = () if conversation.seen.clean else conversation.history.grouping.faults
    faults = [*map(str, found), *conversation.view.added]
    if len(faults) > conversation.faults_told:
        conversation.faults_told = len(faults)
        observer.emit("history_repaired", told_of(found, conversation.view.added), faults=faults)
