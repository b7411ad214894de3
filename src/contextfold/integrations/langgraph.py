"""Compaction for hand-written LangGraph graphs: the model gets a view, the checkpoint keeps the whole history.

Two ways, one engine:

- ``Context.prepare(state)`` inside a node of one's own: the messages to send, and the state's update;
- ``Context`` itself as a node before the one that calls the model, or as ``pre_model_hook`` of a prebuilt agent.

``SessionContext`` does the same from a session in a store: with its thresholds, increments, lease, and its user's own
options.

What belongs here: where the state keeps the record, and the figures about the summary that are shown beside it. What
does not: middleware for ``create_agent`` (``langchain``), and any decision about what is compacted (the engine).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict, Unpack

try:
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
    from langchain_core.runnables import Runnable, RunnableConfig
    from langgraph.channels import UntrackedValue
    from langgraph.config import get_config
    from langgraph.graph import MessagesState
except ModuleNotFoundError as error:
    raise ImportError(
        "contextfold.integrations.langgraph needs LangGraph: pip install 'contextfold[langchain]'"
    ) from error

from contextfold.compactor import CompactionResult, Compactor
from contextfold.errors import InputError, PolicyError, shown
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.given import sending_nothing, stored_record
from contextfold.integrations.langchain.hidden import hidden_from_streams, hide
from contextfold.integrations.langchain.records import fits
from contextfold.integrations.langchain.threads import thread_key
from contextfold.observe import logger
from contextfold.policy import Policy
from contextfold.record.compaction import Compaction, summary_message

if TYPE_CHECKING:
    from contextfold.store import Session, SessionResult

FORMAT = "langchain"


def newest(old: Any, new: Any) -> Any:
    """The reducer of the record: a later one replaces an earlier one, and parallel branches do not conflict."""
    return old if new is None else new


class CompactionState(MessagesState):
    """The messages, all of them, and what stands between them and the view."""

    compaction: NotRequired[Annotated[str | None, newest]]
    """The record in force, as JSON: the size of a summary, whatever the length of the history."""
    summary_metadata: NotRequired[Annotated[dict[str, Any] | None, newest]]
    """What ``summary_metadata`` says of it."""


class CompactionNodeState(CompactionState):
    """The state of a graph in which a node of its own makes the view."""

    llm_input_messages: NotRequired[Annotated[list[AnyMessage], UntrackedValue]]
    """The view, on its way from that node to the next one. It is in no checkpoint."""


def _utc_now() -> datetime:  # no lambda: it can be pickled
    return datetime.now(UTC)


@dataclass(frozen=True)
class PreparedMessages:
    """What to send, and what to return from the node that sends it."""

    messages: list[BaseMessage]
    """``[system] + [summary] + [recent]``; without a summary, the system prompt and all messages."""
    update: dict[str, Any] = field(default_factory=dict)
    """The update of the state, empty if nothing changed: ``return {"messages": [answer], **update}``."""


class ContextOptions(TypedDict, total=False):
    """The arguments of a ``Context`` besides its compactor."""

    system: str | SystemMessage | Callable[[Any], str | SystemMessage] | None
    tools: Sequence[Any] | None
    messages_key: str
    record_key: str
    metadata_key: str
    view_key: str
    now: Callable[[], datetime]


class Context(Runnable[Any, dict[str, Any]]):
    """Makes the messages to send from the messages of a graph's state.

    Args:
        compactor: the engine with its window, policy and summarizer.
        system: the system prompt, as text, as a message, or as a function of the state that returns either. It stands
            first in the view and counts, but is no message of the state, so it may change from turn to turn.
        tools: what is bound to the model; it counts.
        messages_key, record_key, metadata_key, view_key: names in the state.
        now: the time for ``created_at``.
    """

    def __init__(
        self,
        compactor: Compactor,
        *,
        system: str | SystemMessage | Callable[[Any], str | SystemMessage] | None = None,
        tools: Sequence[Any] | None = None,
        messages_key: str = "messages",
        record_key: str = "compaction",
        metadata_key: str = "summary_metadata",
        view_key: str = "llm_input_messages",
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.compactor = sending_nothing(compactor)
        self.system = system
        self.tools = tools
        self.messages_key = messages_key
        self.record_key = record_key
        self.metadata_key = metadata_key
        self.view_key = view_key
        self._now = now
        self._made: Bounded[_Made] = Bounded()
        self._has_warned = False
        self._told: set[int] = set()

    @classmethod
    def of_window(cls, window: int, *, summarizer: Any = None, **options: Unpack[ContextOptions]) -> Context:
        """A context with the summary right behind the system prompt. ``window`` is in tokens."""
        policy = Policy(summary_place="after_system")
        return cls(Compactor(window=window, summarizer=summarizer, policy=policy), **options)

    def prepare(self, state: Any, *, instructions: str = "", force: bool = False) -> PreparedMessages:
        """The view of a state. Raises what ``Compactor.compact`` raises; the state is never changed.

        A summary that was paid for is used again where the state does not have it, because the node failed behind it.
        No stream shows the summary call.
        """
        system = self._system(state)
        arguments = self._arguments(state, system, instructions, force)
        with hidden_from_streams():
            return self._prepared(state, system, self.compactor.compact(**arguments))

    async def aprepare(self, state: Any, *, instructions: str = "", force: bool = False) -> PreparedMessages:
        """``prepare`` for async nodes; it never blocks the event loop."""
        system = self._system(state)
        arguments = self._arguments(state, system, instructions, force)
        with hidden_from_streams():
            return self._prepared(state, system, await self.compactor.acompact(**arguments))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The node: the view under ``view_key``, and the record where it is new."""
        return self._as_update(input, self.prepare(input))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """``invoke`` for async graphs."""
        return self._as_update(input, await self.aprepare(input))

    def _as_update(self, state: Any, prepared: PreparedMessages) -> dict[str, Any]:
        # What stands in the view for no message of the state is shown in no ``messages`` stream.
        own = {id(message) for message in _messages(state, self.messages_key)}
        view = [message if id(message) in own else message.model_copy() for message in prepared.messages]
        for message in view:
            if id(message) not in own:
                hide(message)
        return {self.view_key: view, **prepared.update}

    def _arguments(self, state: Any, system: SystemMessage | None, instructions: str, force: bool) -> dict[str, Any]:
        messages = _messages(state, self.messages_key)
        return {
            "messages": messages,
            "previous": self._previous(messages, self._saved(state)),
            "format": FORMAT,
            "system": system.text if system else None,
            "tools": self.tools,
            "instructions": instructions,
            "force": force,
        }

    def _saved(self, state: Any) -> Compaction | None:
        return stored_record(f"the state's {self.record_key!r}", _value(state, self.record_key) or None, self._told)

    def _previous(self, messages: Sequence[Any], saved: Compaction | None) -> Compaction | None:
        """The record in force: the state's, or one that was made here from the state as it is."""
        key = thread_key(messages)
        made = self._made.get(key)
        if made is None or made.record.parent != (saved.id if saved else None) or not fits(made.record, messages):
            return saved
        if not self._has_warned and any(isinstance(message, AIMessage) for message in messages[made.count :]):
            self._has_warned = True
            logger.warning(
                "the state does not keep the record that a node returned under %r, so it lasts as long as this "
                "process: give the state that key, as CompactionState has it, and return **prepared.update",
                self.record_key,
            )
        return made.record

    def _system(self, state: Any) -> SystemMessage | None:
        system = self.system(state) if callable(self.system) else self.system
        if system is not None and not isinstance(system, str | SystemMessage):
            said = "what the function system returned" if callable(self.system) else "system"
            raise PolicyError(f"{said} is {shown(system)}: it must be a text, a SystemMessage, or None")
        return SystemMessage(system) if isinstance(system, str) else system

    def _prepared(self, state: Any, system: SystemMessage | None, result: CompactionResult) -> PreparedMessages:
        update: dict[str, Any] = {}
        record, saved = result.compaction, self._saved(state)
        if record is not None and (saved is None or record.id != saved.id):
            update[self.record_key] = record.to_json()
            update[self.metadata_key] = summary_metadata(result, self._now())
        elif record is None and saved is not None:  # the thread was edited, and the record does not fit it
            # not None, which leaves the state as it is (`newest`)
            update = {self.record_key: "", self.metadata_key: {}}
        self._keep(_messages(state, self.messages_key), record if result.changed else None, saved)
        return PreparedMessages([*([system] if system else []), *result.messages], update)

    def _keep(self, messages: Sequence[Any], made: Compaction | None, saved: Compaction | None) -> None:
        key = thread_key(messages)
        known = self._made.get(key)
        if made is not None:
            self._made.put(key, _Made(made, len(messages)))
        elif known is not None and saved is not None and known.record.id == saved.id:
            self._made.drop(key)


@dataclass(frozen=True, slots=True)
class _Made:
    """A record, and how many messages the state had when it was made."""

    record: Compaction
    count: int


class SessionContext(Context):
    """Makes the messages to send from a session in a store, which follows the messages of the graph's state.

    Args:
        session: from a thread id to its ``Session``: ``lambda thread_id: compactor.session(thread_id, store=...)``. The
            graph is to be run with ``{"configurable": {"thread_id": ...}}``.
        system, tools, messages_key, metadata_key, view_key: as for ``Context``.

    When a summary is due, thresholds, increments and the options of the session's user say, read again at each call;
    ``session.state().is_summarizing`` says whether one is being made, in any process. The state needs no key for a
    record, and has the figures under ``metadata_key`` if it has a key for those.
    """

    def __init__(self, session: Callable[[str], Session], **options: Unpack[ContextOptions]) -> None:
        super().__init__(Compactor(), **options)
        self.session = session

    def prepare(self, state: Any, *, instructions: str = "", force: bool = False) -> PreparedMessages:
        """The view of the session, once it has the messages of the state that it did not have.

        Raises ``InputError`` where the state does not continue what the session has: the thread was edited or forked.
        """
        messages, session, system = self._opened(state)
        known = session.state().message_count
        _check_follows(messages, session.history(known - 1) if known else [], known, session)
        # `at`: of two runs of one thread at the same time, one fails instead of appending the same messages again
        session.append(messages[known:], at=known)
        beside: dict[str, Any] = {"system": system.text if system else None, "tools": self.tools}
        with hidden_from_streams():
            result = session.compact(instructions, **beside) if force else session.view(**beside).result
        return self._shown(state, messages, system, result)

    async def aprepare(self, state: Any, *, instructions: str = "", force: bool = False) -> PreparedMessages:
        """``prepare`` for async nodes; it never blocks the event loop."""
        messages, session, system = self._opened(state)
        known = (await session.astate()).message_count
        _check_follows(messages, await session.ahistory(known - 1) if known else [], known, session)
        await session.aappend(messages[known:], at=known)
        beside: dict[str, Any] = {"system": system.text if system else None, "tools": self.tools}
        with hidden_from_streams():
            if force:
                result = await session.acompact(instructions, **beside)
            else:
                result = (await session.aview(**beside)).result
        return self._shown(state, messages, system, result)

    def _opened(self, state: Any) -> tuple[list[Any], Session, SystemMessage | None]:
        thread_id = get_config().get("configurable", {}).get("thread_id")
        if not thread_id:
            raise InputError('a SessionContext needs a thread: run the graph with {"configurable": {"thread_id": ...}}')
        return list(_messages(state, self.messages_key)), self.session(str(thread_id)), self._system(state)

    def _shown(
        self, state: Any, messages: Sequence[Any], system: SystemMessage | None, result: SessionResult
    ) -> PreparedMessages:
        # the state's own objects where they are equal to the store's copies: `_as_update` hides all others from streams
        own = {message.id: message for message in messages if message.id}
        view = [own[one.id] if one.id in own and own[one.id] == one else one for one in result.messages]
        figures = session_metadata(result)
        changed = figures != (_value(state, self.metadata_key) or {})
        return PreparedMessages([*([system] if system else []), *view], {self.metadata_key: figures} if changed else {})


def _check_follows(messages: Sequence[Any], last: Sequence[Any], known: int, session: Session) -> None:
    """Raises ``InputError`` unless the state's messages begin with those of the session: its last one tells."""
    if known > len(messages) or (last and _identity(messages[known - 1]) != _identity(last[0])):
        raise InputError(
            f"the state's messages do not continue the {known:,} of session {session.thread}: the thread was edited or "
            "forked. Give a fork a session of its own, or use Context, which keeps its record in the state"
        )


def _identity(message: Any) -> tuple[Any, ...]:
    return (message.type, message.id) if message.id else (message.type, message.content)


def session_metadata(result: SessionResult) -> dict[str, Any]:
    """``summary_metadata`` of the summary that a session has in force."""
    summary = result.summary
    if summary is None or summary.record.summary is None:
        return {}
    return {
        "summary": summary_message(summary.record.summary).text,
        "summarized_until": summary.covers,
        "summary_tokens": summary.tokens,
        "created_at": datetime.fromtimestamp(summary.created_at, UTC).isoformat(),
        "message_count": summary.message_count,
        "original_tokens": summary.original_tokens,
        "compression_rate": summary.record.summary.compression_ratio,
    }


def summary_metadata(result: CompactionResult, created_at: datetime) -> dict[str, Any]:
    """The figures about the summary in force, as plain data.

    ``summary`` is its text, ``summarized_until`` how many messages of the history reach up to the last one it covers,
    ``summary_tokens`` and ``original_tokens`` are tokens, ``message_count`` messages; ``compression_rate`` is the
    share of the original tokens that is gone. Empty where there is no summary.
    """
    summary = result.summary
    if summary is None:
        return {}
    covered = [entry.index for entry in result.ledger if entry.fate == "summarized"]
    return {
        "summary": summary_message(summary).text,
        "summarized_until": max(covered, default=-1) + 1,
        "summary_tokens": summary.tokens,
        "created_at": created_at.isoformat(),
        "message_count": summary.message_count,
        "original_tokens": summary.original_tokens,
        "compression_rate": summary.compression_ratio,
    }


def _value(state: Any, key: str) -> Any:
    """A value of a state, which LangGraph gives as a mapping, a dataclass or a model."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def _messages(state: Any, key: str) -> Sequence[Any]:
    """The messages of a state. Raises ``InputError`` where it has no such value: a view of none would be sent."""
    has_it = key in state if isinstance(state, Mapping) else hasattr(state, key)
    if not has_it:
        names = state if isinstance(state, Mapping) else getattr(state, "__dict__", ())
        raise InputError(
            f"the state has no {shown(key)}, it has {', '.join(map(shown, names)) or 'nothing'}: "
            "name the value with the messages in messages_key"
        )
    return _value(state, key) or []
