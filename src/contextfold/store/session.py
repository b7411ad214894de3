"""The facade: ``Session``.

What belongs here: arguments in, result out, the sync and async doors. What does not: what happens behind them
(``flow``, ``writing``, ``reading``), and SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextfold.conversation.ledger import Ledger
from contextfold.errors import InputError, whole_number
from contextfold.observe import Event, Observer
from contextfold.overflow import classify
from contextfold.passes.perform import Archiver
from contextfold.ports import AsyncPorts, Ports, SyncPorts, run
from contextfold.recall.ranking import Order
from contextfold.recall.tools import DEFAULT_TOKENS, HistoryTools
from contextfold.store import payload, recording
from contextfold.store.finding import Entry, Finder, Hit, Time, Wanted
from contextfold.store.flow import Flow
from contextfold.store.options import SessionOptions, UserConfig, options_for
from contextfold.store.reading import ask
from contextfold.store.request import EngineParts, Request, Settled
from contextfold.store.values import SessionState, StoredSummary, Thread
from contextfold.store.writing import Writer, encoded

__all__ = ["EngineParts", "Session", "SessionResult", "encoded"]

SMALLER = 0.75
"""Share of a refused view that the next one may have, where the refusal names no limit."""


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
        options: SessionOptions | Mapping[str, Any] | None = None,
        user: Any = None,
        get_optimization_config: UserConfig | None = None,
        format: str | None = None,
        archive: str | Archiver | None = None,
    ) -> None:
        self.thread = Thread(namespace, thread_id)
        self.options = options_for(options, user, get_optimization_config)
        self.store = store
        self.archive = _archive(archive, self.thread)
        self._flow = Flow(means, self.thread, store, self.options, self.archive)
        self._writer = Writer(self._flow.reader)
        self._finder = Finder(self._flow.reader)
        self._format = format
        self._means = means

    # ---- sync ----

    def append(self, messages: Sequence[Any], *, at: int | None = None) -> range:
        """Append messages, all or none; their sequence numbers. When this returns, they are on disk.

        ``at``: the sequence number that the first one must get. Whoever repeats an append of which he does not know
        whether it succeeded gets a ``StoreConflict`` instead of a second copy.
        """
        return run(self._append(messages, at, self._blocking()))

    def view(self, *, system: str | None = None, tools: Sequence[Any] | None = None) -> list[Any]:
        """The messages to send, summarized if a threshold is reached. ``system`` and ``tools`` are sent besides them.

        They are copies, so that whoever gets them may change them. Raises ``CannotFit`` and ``SummaryFailed`` as
        ``Compactor.compact`` does.
        """
        return run(self._settle(Request(system, tools), self._blocking())).messages

    def compact(
        self,
        instructions: str = "",
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        overflow: object = None,
    ) -> SessionResult:
        """Summarize now, whatever the thresholds say. ``instructions`` are for the summarizer, for this time.

        ``overflow``: the error by which a provider refused the last view as too long. The next one is smaller.
        """
        return run(self._compact(Request(system, tools, "manual", instructions), overflow, self._blocking()))

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

    def read(self, start: int = 0, count: int = 50) -> list[Entry]:
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
        return run(self._summaries(self._blocking()))

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

    async def aview(self, *, system: str | None = None, tools: Sequence[Any] | None = None) -> list[Any]:
        """``view`` for async code."""
        return (await self._settle(Request(system, tools), self._suspending())).messages

    async def acompact(
        self,
        instructions: str = "",
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        overflow: object = None,
    ) -> SessionResult:
        """``compact`` for async code."""
        return await self._compact(Request(system, tools, "manual", instructions), overflow, self._suspending())

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

    async def aread(self, start: int = 0, count: int = 50) -> list[Entry]:
        """``read`` for async code."""
        return await self._finder.read(start, count, self._suspending())

    async def aundo(self) -> StoredSummary | None:
        """``undo`` for async code."""
        return await self._flow.undo(self._suspending(), self._means.observe())

    async def asummaries(self) -> list[StoredSummary]:
        """``summaries`` for async code."""
        return await self._summaries(self._suspending())

    async def aledger(self) -> Ledger:
        """``ledger`` for async code."""
        return await self._ledger(self._suspending())

    async def astate(self) -> SessionState:
        """``state`` for async code."""
        return await self._flow.reader.state(self._suspending())

    async def ajoin(self) -> None:
        """``join`` for async code."""
        await self._flow.background.ajoin()

    # ---- one algorithm, both colors ----

    async def _append(self, messages: Sequence[Any], at: int | None, ports: Ports) -> range:
        if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
            hint = ": put it into a list" if isinstance(messages, Mapping) else ""
            raise InputError(f"messages must be a list of messages, not {type(messages).__name__}{hint}")
        return await self._writer.append(messages, ports, at=at, named=self._format)

    async def _settle(self, request: Request, ports: Ports) -> SessionResult:
        observer = self._means.observe()
        settled = await self._flow.settle(request, ports, observer)
        return _result(settled, tuple(observer.events))

    async def _compact(self, request: Request, overflow: object, ports: Ports) -> SessionResult:
        if overflow is None:
            return await self._settle(request, ports)
        observer = self._means.observe()
        limit = await self._limit_after(overflow, request, ports, observer)
        forced = Request(request.system, request.tools, "overflow_retry", request.instructions, limit)
        settled = await self._flow.settle(forced, ports, observer)
        return _result(settled, tuple(observer.events))

    async def _limit_after(self, error: object, request: Request, ports: Ports, observer: Observer) -> int:
        """Tokens that the next view may have after a refusal of the present one. A limit that it names is learned."""
        found = classify(error)
        if found is None or found.kind not in ("prompt_too_long", "truncated_silently"):
            raise InputError(f"overflow is {error!r}, which does not say that the prompt was too long")
        sent = (await self._flow.look(request, ports)).tokens
        smaller = int(SMALLER * sent)
        if not found.limit or found.limit <= 0:
            return smaller
        if found.kind == "prompt_too_long":
            await self._means.windows.learn("", None, found.limit, ports, observer, refused=None)
        exact = int(found.limit * min(1.0, sent / found.used)) if found.used else found.limit
        return min(exact, sent - 1)

    async def _history(self, start: int, count: int | None, ports: Ports) -> list[Any]:
        whole_number("start", start, 0)
        if count is not None:
            whole_number("count", count, 0)
        total = (await self._flow.reader.state(ports)).message_count
        stop = total if count is None else min(total, start + count)
        messages = await self._flow.reader.messages([range(start, stop)] if stop > start else [], ports)
        return [message.wire for message in messages]

    async def _summaries(self, ports: Ports) -> list[StoredSummary]:
        found: list[StoredSummary] = await ask(ports, self.store.read_summaries, self.thread)
        return found

    async def _ledger(self, ports: Ports) -> Ledger:
        state = await self._flow.reader.state(ports)
        line = recording.lineage(await self._summaries(ports), state.summary_id)
        links = [link for found in line for link in await ask(ports, self.store.read_links, self.thread, found.id)]
        ids: list[str | None] = []
        async for page in self._flow.reader.pages(range(state.message_count), ports):
            ids += await ports.compute(self._flow.reader.ids, page, state)
        runs = recording.account(state.message_count, line[0] if line else None, links)
        return recording.ledger(runs, ids)

    def _blocking(self) -> Ports:
        return SyncPorts(self._flow.policy.summary.parallel)

    def _suspending(self) -> Ports:
        return AsyncPorts(self._flow.policy.summary.parallel)


def _archive(archive: str | Archiver | None, thread: Thread) -> Archiver | None:
    """The thread's file in the archive at an address, or what the caller has made himself."""
    if not isinstance(archive, str):
        return archive
    from contextfold.archive import open_archive

    return open_archive(archive).thread(thread.id, namespace=thread.namespace)


def _result(settled: Settled, events: tuple[Event, ...]) -> SessionResult:
    return SessionResult(
        messages=[payload.copied(entry) for entry in settled.wire],
        summary=settled.loaded.summary,
        changed=settled.changed,
        tokens_before=settled.before,
        tokens_after=settled.size.tokens,
        events=events,
        window=settled.rules.limits.window,
        target=settled.rules.limits.target,
    )
