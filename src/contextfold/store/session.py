"""The facade: ``Session``.

What belongs here: arguments in, result out, the sync and async doors. What does not: what happens behind them
(``flow``, ``writing``, ``reading``), and SQL.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, overload

from contextfold.calls.request import UNLIMITED, CompactionResult, check_archive
from contextfold.conversation.ledger import Ledger
from contextfold.errors import (
    InputError,
    check_callable,
    check_cancel,
    check_send,
    check_tools,
    held,
    message_list,
    shown,
    system_text,
    whole_number,
)
from contextfold.observe import Event, Observer
from contextfold.overflow import classify, next_size
from contextfold.passes.perform import Archiver
from contextfold.ports import AsyncPorts, Cancellation, Ports, Sends, SyncPorts, hand_over, run
from contextfold.recall.history import HistoryEntry, Hit
from contextfold.recall.ranking import Order
from contextfold.recall.tools import DEFAULT_TOKENS, HistoryTools
from contextfold.store import recording
from contextfold.store.finding import Finder, Time, Wanted
from contextfold.store.flow import Flow
from contextfold.store.options import SessionFields, SessionOptions, UserConfig, UserOptions, options_for
from contextfold.store.reading import ask
from contextfold.store.request import EngineParts, SessionRequest, Settled
from contextfold.store.values import SessionState, StoredSummary, Thread
from contextfold.store.writing import Writer

T = TypeVar("T")


class SessionView(list[Any]):
    """The messages to send: a list of copies, for its receiver to change at will. ``result`` says how it came about."""

    def __init__(self, result: SessionResult) -> None:
        super().__init__(result.messages)
        self.result = result

    @property
    def over_window(self) -> bool:
        """See ``SessionResult.over_window``."""
        return self.result.over_window


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What a compaction made of a session. Sizes are tokens, with system prompt and tools."""

    messages: list[Any]
    """The view to send, in the format that was appended."""
    summary: StoredSummary | None
    """What is in force; None if nothing ever was compacted."""
    changed: bool
    """True if this call put a new summary in force."""
    tokens_before: int
    tokens_after: int
    events: tuple[Event, ...]
    window: int
    target: int

    @property
    def over_window(self) -> bool:
        """The view does not fit the window, and a provider will refuse it: what made it fit was undone, or nothing is
        compacted by itself. Go on with ``Session.compact()``, or with ``Session.call``, which makes it fit."""
        return self.tokens_after > self.window


class Session:
    """A conversation that outlives the process: all messages in, a view that fits out. See ``Compactor.session``.

    Safe for concurrent use by threads, tasks and processes: any number of ``Session`` objects may stand for one thread.

    Raises ``InputError`` for a thread id or store that cannot be, ``PolicyError`` for a setting that is not allowed.
    Every method raises ``StoreError`` when the database fails; nothing has changed then.
    """

    def __init__(
        self,
        means: EngineParts,
        thread_id: str,
        store: Any,
        *,
        namespace: str = "",
        options: SessionOptions | SessionFields | None = None,
        user: Any = None,
        get_optimization_config: UserConfig | None = None,
        format: str | None = None,
        archive: str | os.PathLike[str] | Archiver | None = None,
    ) -> None:
        self.thread = Thread(namespace, thread_id)
        self.store = store
        self.archive = _archive(archive, self.thread)
        self._given = options_for(options)
        self._user = UserOptions(user, get_optimization_config)
        known = self._user.known(self._given)
        self._flow = Flow(means, self.thread, store, known, self.archive)
        self._writer = Writer(self._flow.reader)
        self._finder = Finder(self._flow.reader)
        self._format = format
        self._means = means

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, and one that was sent to another process, is the same session with the same settings."""
        given: dict[str, Any] = {"options": self._given, "format": self._format, "archive": self.archive}
        user = {"user": self._user.user, "get_optimization_config": self._user.configured}
        again = partial(type(self), namespace=self.thread.namespace, **given, **user)
        return again, (self._means, self.thread.id, self.store)

    def __deepcopy__(self, memo: object) -> Session:
        return copy(self)  # on the same store

    @property
    def options(self) -> SessionOptions:
        """The options as they are now: what is configured for the user is read again for each call."""
        return run(self._user.now(self._given, SyncPorts()))

    # ---- sync ----

    def append(self, messages: Sequence[Any], *, at: int | None = None) -> range:
        """Append messages, all or none; their sequence numbers. When this returns, they are on disk.

        ``at``: the sequence number that the first one must get. A caller who repeats an append without knowing
        whether it succeeded gets a ``StoreConflict`` instead of a second copy.
        """
        return run(self._append(messages, at, self._blocking()))

    def view(
        self,
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        cancel: Cancellation | None = None,
    ) -> SessionView:
        """The messages to send, summarized if a threshold is reached. ``system`` and ``tools`` are sent besides them.

        They are copies. ``view.over_window`` is true where they do not fit the window all the same, because what made
        them fit was undone. ``cancel``: a ``threading.Event`` or the like; once it is set, the call ends with
        ``Cancelled``. What is summarized by then stays, and the next view goes on behind it.

        Raises ``CannotFit`` and ``SummaryFailed`` as ``Compactor.compact`` does.
        """
        return SessionView(run(self._settle(SessionRequest(system, tools), self._blocking(cancel))))

    def due(self, *, system: str | None = None, tools: Sequence[Any] | None = None) -> str | None:
        """Why the next ``view`` would put a summary in force, such as ``"tokens:50000"``; None if it would not.

        Nothing is summarized, and no model is asked.
        """
        return run(self._due(SessionRequest(system, tools), self._blocking()))

    def call(
        self,
        send: Sends[T],
        messages: Sequence[Any] = (),
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = UNLIMITED,
        answer: Callable[[T], Any] | None = None,
        on_result: Callable[[CompactionResult], object] | None = None,
        cancel: Cancellation | None = None,
    ) -> T:
        """Send the session: ``send(view)``, summarized before if that is due, and smaller if the provider refuses it.

        Args:
            send: sends a view and returns the response, which may be a stream: it is read up to its first content, so
                that a refusal inside of it counts as one. ``system`` and ``tools`` are what it sends besides.
            messages: new ones, appended before anything is sent.
            max_tokens: the answer limit, if ``send`` takes one: it is then called ``send(view, max_tokens)``, and with
                a lower one where the provider says that prompt and answer together do not fit.
            answer: makes the messages to append out of the response, or one message, so that the session has them when
                this returns. None: append the answer yourself.
            on_result: gets the ``CompactionResult`` whose view was answered, sync or async.
            cancel: as for ``view``.

        All is recorded on the way: each summary, and with ``Policy(on_overflow="drop_oldest")`` what the last resort
        drops, is in force in the store before its view is sent. Raises ``StillTooLong`` when every view was refused
        for its size, and what ``send`` raised otherwise. Where the answer cannot be appended, the error that says so
        has it as ``response``.
        """
        ports = self._blocking(cancel)
        response: T = run(
            self._call(send, messages, SessionRequest(system, tools), max_tokens, answer, on_result, ports)
        )
        return response

    def compact(
        self,
        instructions: str = "",
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        overflow: object = None,
        cancel: Cancellation | None = None,
    ) -> SessionResult:
        """Summarize now, whatever the thresholds say. ``instructions`` are for the summarizer, for this time.

        ``overflow``: the error by which a provider refused the last view as too long. The next one is smaller.
        """
        return run(
            self._compact(SessionRequest(system, tools, "manual", instructions), overflow, self._blocking(cancel))
        )

    def history(self, start: int = 0, count: int | None = None) -> list[Any]:
        """All messages that were ever appended, or ``count`` of them from sequence number ``start`` on."""
        return run(self._history(start, count, self._blocking()))

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        order: Order = "best",
        roles: str | Iterable[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        neighbors: int = 0,
    ) -> list[Hit]:
        """The messages that answer ``query``, best first, those that were evicted included: BM25 over any of its words.

        Words in quotes must occur in a row, and names (``src/app.py``, ``TCK-0042``) come first. Words are found in
        other forms too (``groups`` by ``group``), and Chinese and Japanese need no spaces.

        ``order="newest"``: all that have any word, newest first. ``roles``: only messages of these, such as
        ``"user"``. ``since``, ``until``: only those appended then, as seconds since 1970 or a ``datetime`` with a time
        zone. ``neighbors``: also give as many messages before and after each hit, whole.

        Raises ``InputError`` for a query without a word, and an option that cannot be.
        """
        wanted = Wanted(limit, order, roles, since, until, neighbors)
        return run(self._finder.search(query, wanted, self._blocking()))

    def read(self, start: int = 0, count: int = 50) -> list[HistoryEntry]:
        """Messages as people read them, from sequence number ``start`` on, at most ``count`` (of 1,000)."""
        return run(self._finder.read(start, count, self._blocking()))

    def tools(self, max_tokens: int = DEFAULT_TOKENS) -> HistoryTools:
        """``search_history`` and ``read_history`` over this session, for an agent. ``max_tokens`` is for one answer."""
        return HistoryTools(self, max_tokens)

    def undo(self) -> StoredSummary | None:
        """Bring back the view from before the last compaction; what was undone, or None if nothing was in force.

        Nothing is summarized by itself again until more messages come.
        """
        return run(self._flow.undo(self._blocking(), self._means.observe()))

    def summaries(self) -> list[StoredSummary]:
        """All summaries of the session, oldest first, those that were undone or never used included."""
        return run(self._compactions(self._blocking()))

    def ledger(self) -> Ledger:
        """Where each message of the session is now. Reads all of them."""
        return run(self._ledger(self._blocking()))

    def state(self) -> SessionState:
        """The row of the session: counts, the summary in force, who is summarizing."""
        return run(self._flow.reader.state(self._blocking()))

    def join(self, seconds: float | None = None) -> None:
        """Wait until nothing is prepared in the background of this object any more, but no longer than so."""
        self._flow.background.join(seconds)

    # ---- async: the same ----

    async def aappend(self, messages: Sequence[Any], *, at: int | None = None) -> range:
        """``append`` for async code; never blocks the event loop, as all of these."""
        return await self._append(messages, at, self._suspending())

    async def aview(self, *, system: str | None = None, tools: Sequence[Any] | None = None) -> SessionView:
        """``view`` for async code. Cancel its task to interrupt it."""
        return SessionView(await self._settle(SessionRequest(system, tools), self._suspending()))

    async def adue(self, *, system: str | None = None, tools: Sequence[Any] | None = None) -> str | None:
        """``due`` for async code."""
        return await self._due(SessionRequest(system, tools), self._suspending())

    @overload
    async def acall(
        self,
        send: Sends[Awaitable[T]],
        messages: Sequence[Any] = (),
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = UNLIMITED,
        answer: Callable[[T], Any] | None = None,
        on_result: Callable[[CompactionResult], object] | None = None,
    ) -> T: ...

    @overload
    async def acall(
        self,
        send: Sends[Awaitable[T] | T],
        messages: Sequence[Any] = (),
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = UNLIMITED,
        answer: Callable[[T], Any] | None = None,
        on_result: Callable[[CompactionResult], object] | None = None,
    ) -> T: ...

    async def acall(
        self,
        send: Callable[..., Any],
        messages: Sequence[Any] = (),
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = UNLIMITED,
        answer: Callable[[Any], Any] | None = None,
        on_result: Callable[[CompactionResult], object] | None = None,
    ) -> Any:
        """``call`` for async code; ``send`` may be sync or async."""
        ports = self._suspending()
        return await self._call(send, messages, SessionRequest(system, tools), max_tokens, answer, on_result, ports)

    async def acompact(
        self,
        instructions: str = "",
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        overflow: object = None,
    ) -> SessionResult:
        """``compact`` for async code."""
        return await self._compact(SessionRequest(system, tools, "manual", instructions), overflow, self._suspending())

    async def ahistory(self, start: int = 0, count: int | None = None) -> list[Any]:
        """``history`` for async code."""
        return await self._history(start, count, self._suspending())

    async def asearch(
        self,
        query: str,
        *,
        limit: int = 20,
        order: Order = "best",
        roles: str | Iterable[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        neighbors: int = 0,
    ) -> list[Hit]:
        """``search`` for async code."""
        wanted = Wanted(limit, order, roles, since, until, neighbors)
        return await self._finder.search(query, wanted, self._suspending())

    async def aread(self, start: int = 0, count: int = 50) -> list[HistoryEntry]:
        """``read`` for async code."""
        return await self._finder.read(start, count, self._suspending())

    async def aundo(self) -> StoredSummary | None:
        """``undo`` for async code."""
        return await self._flow.undo(self._suspending(), self._means.observe())

    async def asummaries(self) -> list[StoredSummary]:
        """``summaries`` for async code."""
        return await self._compactions(self._suspending())

    async def aledger(self) -> Ledger:
        """``ledger`` for async code."""
        return await self._ledger(self._suspending())

    async def astate(self) -> SessionState:
        """``state`` for async code."""
        return await self._flow.reader.state(self._suspending())

    async def ajoin(self) -> None:
        """``join`` for async code."""
        await self._flow.background.finished(self._suspending())

    # ---- one algorithm, both colors ----

    async def _append(self, messages: Sequence[Any], at: int | None, ports: Ports) -> range:
        messages = message_list(messages, "put it into a list")
        if at is not None:
            whole_number("at", at, 0, 2**53)
        return await self._writer.append(messages, ports, at=at, named=self._format)

    async def _settle(self, request: SessionRequest, ports: Ports) -> SessionResult:
        observer, flow = self._means.observe(), await self._now(ports)
        settled = await flow.settle(request, ports, observer)
        result = _result(settled)
        if result.over_window:
            _say_over_window(result, observer)
        return replace(result, events=tuple(observer.events))

    async def _now(self, ports: Ports) -> Flow:
        options = await self._user.now(self._given, ports)
        if options != self._flow.given:
            self._flow = self._flow.under(options)
        return self._flow

    async def _due(self, request: SessionRequest, ports: Ports) -> str | None:
        return await (await self._now(ports)).due(request, ports)

    async def _call(
        self,
        send: Callable[..., Any],
        messages: Sequence[Any],
        request: SessionRequest,
        max_tokens: Any,
        answer: Callable[[Any], Any] | None,
        on_result: Callable[[CompactionResult], object] | None,
        ports: Ports,
    ) -> Any:
        from contextfold.store.calling import SessionCall

        check_send(send)
        check_callable(answer=answer, on_result=on_result)
        system_text(request.system)
        check_tools(request.tools)
        # before anything is sent: a process that dies on the way loses the answer, not the question
        await self._append(messages, None, ports)
        flow = await self._now(ports)
        response, result = await SessionCall(flow, request, ports, self._means.observe()).answer(send, max_tokens)
        if answer is not None:
            try:
                await self._keep(await ports.call(answer, response), ports)
            except Exception as error:  # tables of anyone's own raise what their database raises
                if held(error, "response") is None:
                    with suppress(Exception):  # a class may take no attribute
                        error.response = response  # type: ignore[attr-defined]
                raise
        if on_result is not None:
            await hand_over(ports, on_result, result)
        return response

    async def _keep(self, said: Any, ports: Ports) -> None:
        """Append what ``answer`` made of a response. One message as it is: an error would leave the session without."""
        if said is None:
            raise InputError("answer returned None: it must return the messages to append, or one message")
        is_list = isinstance(said, Sequence) and not isinstance(said, Mapping)
        await self._append(said if is_list else [said], None, ports)

    async def _compact(self, request: SessionRequest, overflow: object, ports: Ports) -> SessionResult:
        if not isinstance(request.instructions, str):
            raise InputError(f"instructions must be a text, not {type(request.instructions).__name__}")
        if overflow is None:
            return await self._settle(request, ports)
        limit = await self._limit_after(overflow, request, ports, self._means.observe())
        forced = SessionRequest(request.system, request.tools, "overflow_retry", request.instructions, limit)
        return await self._settle(forced, ports)

    async def _limit_after(self, error: object, request: SessionRequest, ports: Ports, observer: Observer) -> int:
        """Tokens that the next view may have after a refusal of the present one. A limit that it names is learned."""
        size, limits = await (await self._now(ports)).look(request, ports)
        found = classify(error, fill=size.tokens / limits.window)
        if found is None or found.kind not in ("prompt_too_long", "truncated_silently"):
            raise InputError(f"overflow is {shown(error)}, which does not say that the prompt was too long")
        windows = self._means.windows
        limit = next_size(found, size.tokens, limits.window, windows.accepted("", None))
        if found.limit is not None and found.limit > 0 and found.kind == "prompt_too_long":
            await windows.learn("", None, found.limit, ports, observer, refused=None)
        return limit

    async def _history(self, start: int, count: int | None, ports: Ports) -> list[Any]:
        whole_number("start", start, 0)
        if count is not None:
            whole_number("count", count, 0)
        reader = self._flow.reader

        async def look(state: SessionState) -> list[Any]:
            stop = state.message_count if count is None else min(state.message_count, start + count)
            messages = await reader.messages([range(start, stop)] if stop > start else [], ports)
            return [message.wire for message in messages]

        return await reader.steady(look, ports)

    async def _summaries(self, ports: Ports) -> list[StoredSummary]:
        found: list[StoredSummary] = await ask(ports, self.store.read_summaries, self.thread)
        return found

    async def _compactions(self, ports: Ports) -> list[StoredSummary]:
        """Without the rows of what came back by itself, which are no summaries of their own."""
        return [found for found in await self._summaries(ports) if found.trigger not in recording.COMPANIONS]

    async def _ledger(self, ports: Ports) -> Ledger:
        return await self._flow.reader.steady(partial(self._ledger_of, ports), ports)

    async def _ledger_of(self, ports: Ports, state: SessionState) -> Ledger:
        line = recording.lineage(self.thread, await self._summaries(ports), state.summary_id)
        links = [link for found in line for link in await ask(ports, self.store.read_links, self.thread, found.id)]
        ids: list[str | None] = []
        async for page in self._flow.reader.pages(range(state.message_count), ports):
            ids += await ports.compute(self._flow.reader.ids, page, state)
        runs = recording.account(self.thread, state.message_count, line[0] if line else None, links)
        return Ledger.of_ids(runs, ids, await self._flow.mended(state, ports))

    def _blocking(self, cancel: Cancellation | None = None) -> Ports:
        check_cancel(cancel)
        return SyncPorts(self._flow.policy.summary.parallel, cancel=cancel)

    def _suspending(self) -> Ports:
        return AsyncPorts(self._flow.policy.summary.parallel)


def _archive(archive: str | os.PathLike[str] | Archiver | None, thread: Thread) -> Archiver | None:
    """The thread's file in the archive at an address, or what the caller has made himself."""
    if not isinstance(archive, str | os.PathLike):
        check_archive(archive)
        return archive
    from contextfold.archive import open_archive

    return open_archive(archive).thread(thread.id, namespace=thread.namespace)


def _result(settled: Settled) -> SessionResult:
    return SessionResult(
        messages=settled.copies(),
        summary=settled.loaded.summary,
        changed=settled.changed,
        tokens_before=settled.before,
        tokens_after=settled.size.tokens,
        events=(),
        window=settled.rules.limits.window,
        target=settled.rules.limits.target,
    )


def _say_over_window(result: SessionResult, observer: Observer) -> None:
    observer.emit(
        "view_over_window",
        f"the view takes {result.tokens_after:,} tokens, and the window is {result.window:,}: what made it fit was "
        "undone, or nothing is compacted by itself. Go on with compact(), or with call(), which makes it fit",
        tokens=result.tokens_after,
        window=result.window,
    )
