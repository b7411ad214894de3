"""``CompactionMiddleware``: the thread keeps every message, the model gets the view.

What belongs here: what LangChain's agents want of a middleware around the model call, and what a person asks for. What
does not: compacting (``Compactor``), where records live (``records``), the drop-in for LangChain's own class
(``summarization``).

    state ── messages, record ──▶ Compactor.call ──view──▶ handler ──response──▶ state: the record, if it is a new one
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypedDict

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ModelRequest,
    ModelResponse,
)
from langgraph.errors import InvalidUpdateError

from contextfold.archive import Archive as FileArchive
from contextfold.archive import ThreadArchive
from contextfold.compactor import UNSET, CompactionResult, Compactor, policy_of
from contextfold.errors import (
    InputError,
    PolicyError,
    functions,
    held,
    is_control_flow,
    plain_functions,
    shown,
    text_of,
)
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.langchain.hidden import hidden_from_streams
from contextfold.integrations.langchain.models import Receiving
from contextfold.integrations.langchain.records import Records, RecordStore, following, undone
from contextfold.integrations.langchain.sending import declarations, for_summary, system_text, with_update, with_view
from contextfold.integrations.langchain.state import Remembered, schema
from contextfold.integrations.langchain.threads import ThreadKey, ThreadTurns, thread_key
from contextfold.integrations.langchain.tool import compact_tool
from contextfold.observe import Event, logger, scrub
from contextfold.passes.perform import Made
from contextfold.passes.question import Proposal
from contextfold.policy import Policy, SizeInput, TriggerInput, parse_trigger
from contextfold.ports import AsyncPorts, SyncPorts, run
from contextfold.record.compaction import Compaction

FORMAT = "langchain"
MODEL_NODE = "model"
"""What ``create_agent`` calls the node that calls the model."""


class MiddlewareArchive(Protocol):
    """Takes copies of messages that leave the view. What ``contextfold.archive.open_archive`` gives does it, too."""

    def save(self, thread_id: str, messages: Sequence[Any]) -> str | None:
        """Write the messages; where they can be read again, if that can be said. May block."""
        ...


@dataclass(frozen=True, slots=True)
class CompactionMade:
    """What ``after_compaction`` is told: the record, the originals that left the view, and where they were archived."""

    compaction: Compaction
    evicted: tuple[Any, ...]
    thread_id: str
    archived: str | None = None


@dataclass(frozen=True)
class _Turn:
    """One model call: whose it is, what is sent, what is remembered, and the compactor for the model's window."""

    key: ThreadKey
    messages: Sequence[Any]
    system: str | None
    tools: Sequence[dict[str, Any]]
    receiving: Receiving
    remembered: Remembered
    previous: Compaction | None
    compactor: Compactor
    force: bool = False
    instructions: str = ""


@dataclass
class _Answered:
    result: CompactionResult | None = None

    def take(self, result: CompactionResult) -> None:
        self.result = result

    def sure(self) -> CompactionResult:
        """The result of a call that has returned."""
        assert self.result is not None
        return self.result


class MiddlewareOptions(TypedDict, total=False):
    """The arguments of a ``CompactionMiddleware``."""

    policy: Policy | None
    trigger: TriggerInput
    target: SizeInput | None
    keep: SizeInput | None
    window: int | None
    summarizer: Any
    instructions: str
    records: RecordStore | None
    archive: MiddlewareArchive | FileArchive | None
    before_compaction: Callable[[Proposal], Any] | None
    after_compaction: Callable[[CompactionMade], Any] | None
    tool: bool
    count_text: Callable[[str], int] | None
    on_event: Callable[[Event], object] | None
    name: str | None


class CompactionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps what the model gets inside its window, and the thread as it is.

    Args:
        policy: every knob; or ``trigger``, ``target`` and ``keep`` as for ``Compactor``.
        window: input tokens of the receiving model. None: the profile of the model of each request, else the registry,
            else a conservative default.
        summarizer: as for ``Compactor``: None for the built-in one that asks no model; a chat model of LangChain, a
            runnable, a name such as ``"openai:gpt-5-mini"``, a callable. Its calls show in no stream.
        instructions: for the summarizer, in every compaction.
        records: keep records there instead of in the thread's private state.
        archive: ``open_archive(...)``, which saves originals before they leave the view and is named in the summary; or
            an object of your own that gets a copy; where it fails, that is said and nothing is lost: the thread keeps
            all originals.
        before_compaction: called with a ``Proposal``; returns False to veto, ``Pins`` to keep more, None to go on.
        after_compaction: called with ``CompactionMade``. Both may be sync or async.
        tool: whether the model gets a tool ``compact_conversation``.
        count_text: tokens of a text, in place of the estimate.
        on_event: called with each ``Event``.
        name: another name for a second instance in the same agent.

    Raises ``PolicyError`` when a setting is not allowed.
    """

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        trigger: TriggerInput = UNSET,
        target: SizeInput | None = UNSET,
        keep: SizeInput | None = UNSET,
        window: int | None = None,
        summarizer: Any = None,
        instructions: str = "",
        records: RecordStore | None = None,
        archive: MiddlewareArchive | FileArchive | None = None,
        before_compaction: Callable[[Proposal], Any] | None = None,
        after_compaction: Callable[[CompactionMade], Any] | None = None,
        tool: bool = False,
        count_text: Callable[[str], int] | None = None,
        on_event: Callable[[Event], object] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        functions(before_compaction=before_compaction, after_compaction=after_compaction)
        plain_functions(on_event=on_event)
        if archive is not None and not isinstance(archive, FileArchive) and not callable(held(archive, "save")):
            way = "open_archive(ADDRESS) of contextfold.archive makes one"
            raise PolicyError(f"archive is {shown(archive)}: it must have a method save(thread_id, messages); {way}")
        if records is not None and not all(callable(held(records, method)) for method in ("get", "put")):
            raise PolicyError(f"records is {shown(records)}: it must have methods get(thread) and put(thread, text)")
        for setting, value, methods in (("archive", archive, ("save",)), ("records", records, ("get", "put"))):
            waiting = [method for method in methods if iscoroutinefunction(held(value, method))]
            if waiting:
                how = "in async agents it is called in a thread, and may block"
                raise PolicyError(
                    f"{setting} has an async {waiting[0]}, which would not be awaited: make it sync; {how}"
                )
        if not isinstance(instructions, str):
            raise PolicyError(f"instructions is {shown(instructions)}: it must be a text")
        self._name = name or type(self).__name__
        # By its name: two instances in one agent keep their records apart.
        self._key = f"_contextfold_{self._name}"
        self._has_tool = tool
        self._declare()
        self.policy = policy_of(policy, trigger=trigger, target=target, keep=keep)
        self.window = window
        self.summarizer = summarizer
        self.instructions = instructions
        self._records = Records(self._key, records)
        self.archive = archive
        self.before_compaction = before_compaction
        self.after_compaction = after_compaction
        self._count_text = count_text
        self._on_event = on_event
        self._compactors: Bounded[Compactor] = Bounded(16)
        self._seen: Bounded[_Seen] = Bounded()
        self._turns = ThreadTurns()
        self._compactor(Receiving())  # says at once what is wrong

    def _declare(self) -> None:
        """What is made of the name and is not pickled: classes that no module has."""
        self.state_schema = schema(self._key, str, type(self).state_schema)
        self.tools = [compact_tool(self._key)] if self._has_tool else []

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("state_schema", "tools")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._declare()

    @property
    def name(self) -> str:
        """The name in the agent's graph; part of the state's key."""
        return self._name

    # ---- around the model call ----

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Send the view, compacted before if a trigger fires, and once more if the provider says it does not fit."""
        with self._turns.at_gate(thread_key(request.messages)) as taken:
            run(taken.wait(SyncPorts()))
            turn, answered = self._turn(request), _Answered()

            def send(view: list[Any]) -> Any:
                taken.leave()  # the next run of the thread waits for a summary, and that is made by now
                with aloud():
                    return handler(with_view(request, view, turn.messages))

            def ask(messages: list[Any], whole: bool, answer_tokens: int) -> Any:
                asked = for_summary(request, messages, whole, turn.messages)
                return None if asked is None else handler(asked)  # no stream shows it, and the next run waits

            with hidden_from_streams() as aloud:
                options = self._options(turn, answered)
                response = turn.compactor.call(send, turn.messages, turn.previous, ask=ask, **options)
            return self._with_update(turn, answered.result, response, taken.is_shared)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """``wrap_model_call`` for async agents; it never blocks the event loop."""
        ports = AsyncPorts()
        with self._turns.at_gate(thread_key(request.messages)) as taken:
            await taken.wait(ports)
            turn, answered = await ports.compute(self._turn, request), _Answered()

            async def send(view: list[Any]) -> Any:
                taken.leave()  # the next run of the thread waits for a summary, and that is made by now
                with aloud():
                    return await handler(with_view(request, view, turn.messages))

            async def ask(messages: list[Any], whole: bool, answer_tokens: int) -> Any:
                asked = for_summary(request, messages, whole, turn.messages)
                return None if asked is None else await handler(asked)

            with hidden_from_streams() as aloud:
                options = self._options(turn, answered)
                response = await turn.compactor.acall(send, turn.messages, turn.previous, ask=ask, **options)
            return await ports.compute(self._with_update, turn, answered.result, response, taken.is_shared)

    # ---- what a person asks for ----

    def compact(self, agent: Any, config: Any, *, instructions: str = "") -> CompactionResult:
        """Compact a thread now, as for a user's ``/compact``; the agent must have a checkpointer.

        ``config`` names the thread: ``{"configurable": {"thread_id": ...}}``. The summarizer gets the instructions.
        Raises what ``Compactor.compact`` raises, and ``InputError`` while the thread waits in the middle of a step, as
        for an approval; the thread is unchanged then.
        """
        state, answered = agent.get_state(config), _Answered()
        self._check_can_write(state)
        turn = self._manual(state, config, instructions)
        with hidden_from_streams():
            turn.compactor.call(_send_nothing, turn.messages, turn.previous, **self._options(turn, answered))
        result = answered.sure()
        if result.changed:
            self._save(agent, state, turn, following(turn.remembered, result.compaction))
        return result

    async def acompact(self, agent: Any, config: Any, *, instructions: str = "") -> CompactionResult:
        """``compact`` for async code."""
        ports, answered = AsyncPorts(), _Answered()
        state = await agent.aget_state(config)
        self._check_can_write(state)
        turn = await ports.compute(self._manual, state, config, instructions)
        with hidden_from_streams():
            await turn.compactor.acall(_send_nothing, turn.messages, turn.previous, **self._options(turn, answered))
        result = answered.sure()
        if result.changed:
            await self._asave(agent, state, turn, following(turn.remembered, result.compaction))
        return result

    def undo(self, agent: Any, config: Any) -> bool:
        """Bring back the view from before the last compaction; False when there is nothing to undo.

        The thread has all its messages, so nothing is lost either way. Until the view no longer fits the window
        nothing is compacted again, unless it is asked for.

        Raises ``InputError`` while the thread waits in the middle of a step.
        """
        state = agent.get_state(config)
        turn = self._manual(state, config, "")
        if turn.remembered.can_undo:
            self._check_can_write(state)
            self._save(agent, state, turn, undone(turn.remembered))
        return turn.remembered.can_undo

    async def aundo(self, agent: Any, config: Any) -> bool:
        """``undo`` for async code."""
        state = await agent.aget_state(config)
        turn = await AsyncPorts().compute(self._manual, state, config, "")
        if turn.remembered.can_undo:
            self._check_can_write(state)
            await self._asave(agent, state, turn, undone(turn.remembered))
        return turn.remembered.can_undo

    def record(self, state: Mapping[str, Any]) -> Compaction | None:
        """The record in force in a thread's state, as ``agent.get_state(config).values`` gives it."""
        return Remembered.from_text(state.get(self._key)).current

    # ---- steps ----

    def _turn(self, request: ModelRequest[Any]) -> _Turn:
        key = thread_key(request.messages)
        seen = _Seen(Receiving.of(request.model), system_text(request), declarations(request.tools))
        # For ``compact`` from outside of a run, which is given neither the model nor what is sent beside the messages.
        self._seen.put(key, seen)
        return self._turn_of(
            key, request.messages, seen, self._records.remembered(key, request.state, request.messages)
        )

    def _manual(self, snapshot: Any, config: Any, instructions: str) -> _Turn:
        """What a call outside of a run is about. System prompt and tools are those of the thread's last run here."""
        messages = snapshot.values.get("messages") or []
        key = thread_key(messages, config)
        seen = self._seen.get(key) or _Seen(Receiving(), None, [])
        remembered = replace(self._records.remembered(key, snapshot.values, messages), requested=instructions)
        return self._turn_of(key, messages, seen, remembered)

    def _turn_of(self, key: ThreadKey, messages: Sequence[Any], seen: _Seen, remembered: Remembered) -> _Turn:
        unsaved = self._records.unsaved(key, remembered, messages)
        wanted = (self.instructions, remembered.requested)
        return _Turn(
            key=key,
            messages=messages,
            system=seen.system,
            tools=seen.tools,
            receiving=seen.receiving,
            remembered=remembered,
            previous=unsaved or remembered.current,
            compactor=self._compactor(seen.receiving, remembered.is_held),
            force=remembered.requested is not None and unsaved is None,
            instructions="\n".join(text for text in wanted if text),
        )

    def _compactor(self, receiving: Receiving, is_held: bool = False) -> Compactor:
        """The compactor for a model. A thread that is held after an undo has the window itself as its trigger."""
        made = self._compactors.get((receiving, is_held))
        if made is None:
            full = {"trigger": parse_trigger(("fraction", 1.0))}
            made = Compactor(
                window=self.window,
                model=receiving,
                policy=self.policy.model_copy(update=full) if is_held else self.policy,
                summarizer=self.summarizer,
                count_text=self._count_text,
                on_event=self._on_event,
            )
            self._compactors.put((receiving, is_held), made)
        return made

    def _options(self, turn: _Turn, answered: _Answered) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "endpoint": turn.receiving.endpoint,
            "archive": self._file(turn),
            "system": turn.system,
            "tools": turn.tools,
            "force": turn.force,
            "instructions": turn.instructions,
            "before": self.before_compaction,
            "after": partial(self._after, turn),
            "on_result": answered.take,
        }

    def _after(self, turn: _Turn, made: Made) -> Any:
        """Remember a record that is paid for, before anything else can fail; then archive, then the user's hook."""
        self._records.keep(turn.key, turn.remembered, made.compaction, turn.messages)
        archived = self._archived(turn, made.evicted)
        if self.after_compaction is None:
            return None
        return self.after_compaction(CompactionMade(made.compaction, made.evicted, turn.key.thread_id, archived))

    def _file(self, turn: _Turn) -> ThreadArchive | None:
        """The thread's file, where the archive is one of ours: the engine saves there before anything leaves."""
        return self.archive.thread(turn.key.address) if isinstance(self.archive, FileArchive) else None

    def _archived(self, turn: _Turn, evicted: Sequence[Any]) -> str | None:
        if self.archive is None:
            return None
        if isinstance(self.archive, FileArchive):
            return self.archive.thread(turn.key.address).address
        try:
            return self.archive.save(turn.key.address, evicted)
        except Exception as error:
            if is_control_flow(error):
                raise
            logger.warning(
                "archiving %d messages failed (%s: %s); the thread still has them",
                len(evicted),
                type(error).__name__,
                scrub(text_of(error)),
            )
            return None

    def _with_update(self, turn: _Turn, result: CompactionResult | None, response: Any, is_shared: bool) -> Any:
        """The response, with an update of the state where there is something new to remember."""
        record = result.compaction if result else None
        update = self._records.update(turn.key, turn.remembered, record, turn.messages, is_shared=is_shared)
        return with_update(response, {self._key: update.text} if update is not None else None)

    def _check_can_write(self, state: Any) -> None:
        """Raises ``InputError`` where an update of the state would forget what tasks of its step have done already."""
        done = sorted({task.name for task in state.tasks if task.interrupts or task.result is not None})
        if done and self._records.store is None:
            raise InputError(
                f"the thread waits in the middle of a step ({', '.join(done)}), as for an approval: a change of its "
                "state would drop the question, and run again what has run beside it. Resume the thread first, or keep "
                "records in a store (records=)"
            )

    def _save(self, agent: Any, before: Any, turn: _Turn, remembered: Remembered) -> None:
        """Write outside of a run. ``before``: the thread's state as it was."""
        update = self._records.replace(turn.key, remembered)
        if update is None:
            return
        try:
            written = agent.update_state(before.config, update)
        except InvalidUpdateError:  # several nodes ran last
            written = None
        # A thread in which no node has run yet would take an update for an input, which has no private values: then the
        # update counts as the model node's.
        if written is None or agent.get_state(written).values.get(self._key) != update[self._key]:
            agent.update_state(before.config, update, as_node=MODEL_NODE)

    async def _asave(self, agent: Any, before: Any, turn: _Turn, remembered: Remembered) -> None:
        update = await AsyncPorts().compute(self._records.replace, turn.key, remembered)
        if update is None:
            return
        try:
            written = await agent.aupdate_state(before.config, update)
        except InvalidUpdateError:
            written = None
        if written is None or (await agent.aget_state(written)).values.get(self._key) != update[self._key]:
            await agent.aupdate_state(before.config, update, as_node=MODEL_NODE)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the last model call of a thread was sent with."""

    receiving: Receiving
    system: str | None
    tools: Sequence[dict[str, Any]]


def _send_nothing(view: list[Any]) -> None:
    """In place of a model call, where only the compaction is wanted."""
