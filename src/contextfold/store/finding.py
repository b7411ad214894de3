"""Searching and reading all that a session ever held, what was evicted included.

What belongs here: how hits and entries come about on any store. What does not: the index (``search``), words, scores
and snippets (``recall``), and the tools that agents are given (``recall.tools``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from contextfold.errors import InputError, StoreCorrupt, plain_number, shown, whole_number
from contextfold.messages import Message
from contextfold.ports import Ports
from contextfold.recall.history import UNREADABLE, HistoryEntry, Hit, beside, checked, readable, said_by
from contextfold.recall.memory import MemoryIndex
from contextfold.recall.ranking import Order, Ranked, rank
from contextfold.recall.snippets import snippet
from contextfold.recall.words import Query
from contextfold.store.layout import as_ranges
from contextfold.store.reading import PAGE, Reader, ask, source_of
from contextfold.store.values import DamagedMessage, Search, SessionState, StoredMessage

LONGEST_PAGE = 1_000
"""Messages that one call of ``read`` may ask for."""

Time = datetime | float
"""A moment: a ``datetime`` with a time zone, or seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a search, as a caller gives them."""

    limit: int = 20
    order: Order = "best"
    roles: str | Iterable[str] | None = None
    since: Time | None = None
    until: Time | None = None
    neighbors: int = 0


class Finder:
    """Searches and reads one thread."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def search(self, query: str, wanted: Wanted, ports: Ports) -> list[Hit]:
        """The messages that answer ``query``. Raises ``InputError`` for what cannot be asked."""
        asked, roles = checked(query, wanted.limit, wanted.order, wanted.roles, wanted.neighbors)
        since, until = _seconds("since", wanted.since), _seconds("until", wanted.until)
        search = Search(asked, wanted.limit, wanted.order, roles, since, until)

        async def look(state: SessionState) -> list[Hit]:
            found = await self.ranked(search, state, ports)
            try:
                gone = await self._gone(state.summary_id, ports)
            except StoreCorrupt:  # there is no view to be had: whatever is found can be read here alone
                gone = {one.index for one in found}
            shown = await self._shown([one.index for one in found], wanted.neighbors, state, ports)
            return await ports.compute(partial(_hits, found, asked, shown, gone, wanted.neighbors))

        return await self._reader.steady(look, ports)

    async def read(self, start: int, count: int, ports: Ports) -> list[HistoryEntry]:
        """Messages from sequence number ``start`` on, at most ``count``."""
        if whole_number("start", start) < 0 or not 0 < whole_number("count", count) <= LONGEST_PAGE:
            given = f"start {shown(start)} must not be negative, and count {shown(count)}"
            raise InputError(f"{given} must be 1 to {LONGEST_PAGE:,}")

        async def look(state: SessionState) -> list[HistoryEntry]:
            wanted = range(start, min(start + count, state.message_count))
            return list((await self._entries(wanted, state, ports)).values())

        return await self._reader.steady(look, ports)

    async def ranked(self, asked: Search, state: SessionState, ports: Ports) -> list[Ranked]:
        """From the store's index, or by reading all of it where it has none."""
        if (indexed := getattr(self._reader.store, "search", None)) is not None:
            found: list[Ranked] = await ask(ports, indexed, self._reader.thread, asked)
            return found
        if asked.since is not None or asked.until is not None:
            raise InputError("this store cannot search by time, since it has no method search: leave since and until")
        index, damaged = MemoryIndex(), []
        stop = state.message_count if asked.before is None else min(asked.before, state.message_count)
        for first in range(0, stop, PAGE):
            page = range(first, min(first + PAGE, stop))
            for entry in (await self._entries(page, state, ports)).values():
                if entry.role == UNREADABLE:
                    damaged.append(Ranked(entry.index, 0.0))
                else:
                    index.add(entry.index, entry.text, found=asked.roles is None or entry.role in asked.roles)
        ranked: list[Ranked] = await ports.compute(rank, asked.query, index, asked.limit, asked.order)
        return [*ranked, *damaged][: asked.limit]  # what cannot be read may answer as well

    async def _shown(
        self, indices: Sequence[int], neighbors: int, state: SessionState, ports: Ports
    ) -> dict[int, HistoryEntry]:
        total = state.message_count
        wanted = {n for index in indices for n in (index, *beside(index, neighbors, total)) if n < total}
        return await self._entries(wanted, state, ports)

    async def _gone(self, summary_id: int | None, ports: Ports) -> set[int]:
        gone: set[int] = set()
        while summary_id is not None:
            links = await ask(ports, self._reader.store.read_links, self._reader.thread, summary_id)
            gone.update(link.sequence for link in links)
            summary = await self._reader.summary(summary_id, ports)
            summary_id = summary.parent_id if summary else None
        return gone

    async def _entries(self, sequences: Iterable[int], state: SessionState, ports: Ports) -> dict[int, HistoryEntry]:
        """Messages by their numbers, as people read them. One that cannot be read says so in its place."""
        found = await self._reader.readable(as_ranges(set(sequences)), source_of(state), ports)
        return await ports.compute(_shown, found)


def _hits(
    found: Sequence[Ranked], asked: Query, shown: dict[int, HistoryEntry], gone: set[int], neighbors: int
) -> list[Hit]:
    """Hits in the order in which they were found."""
    hits = []
    for one in found:
        # A message that came meanwhile waits for the next search.
        if (entry := shown.get(one.index)) is not None:
            said = entry.text if entry.role == UNREADABLE else snippet(entry.text, asked)
            hit = Hit(one.index, entry.role, said, one.index in gone, round(one.score, 4))
            near = [shown[n] for n in beside(one.index, neighbors, one.index + neighbors + 1) if n in shown]
            hits.append(replace(hit, neighbors=tuple(near)))
    return hits


def _seconds(name: str, moment: Time | None) -> float | None:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InputError(f"{name} is {moment}, which has no time zone: give one, such as datetime.now(UTC)")
        return moment.timestamp()
    # A database compares a text or a date with its numbers in ways of its own, and finds nothing.
    seconds = plain_number(moment)
    if moment is not None and (seconds is None or seconds != seconds):
        raise InputError(
            f"{name} is {shown(moment)}: it must be a datetime with a time zone, or seconds since 1970 as a number"
        )
    return seconds


def _shown(found: Sequence[tuple[StoredMessage, Message] | DamagedMessage]) -> dict[int, HistoryEntry]:
    entries = {}
    for one in found:
        if isinstance(one, DamagedMessage):
            entries[one.sequence] = HistoryEntry(one.sequence, UNREADABLE, one.problem)
        else:
            number, message = one[0].sequence, one[1]
            entries[number] = HistoryEntry(number, said_by(message), readable(message))
    return entries
