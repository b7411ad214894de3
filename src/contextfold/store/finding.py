"""Searching and reading all that a session ever held, what was evicted included.

What belongs here: hits and entries, and how they come about on any store. What does not: the index (``search``), words
and snippets (``recall``), and the tools that agents are given (``recall.tools``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from contextfold import formats
from contextfold.archive.markdown import as_markdown
from contextfold.errors import InputError
from contextfold.messages import Message, Reasoning
from contextfold.ports import Ports
from contextfold.recall.snippets import holds, snippet
from contextfold.recall.words import Query, parse_query
from contextfold.store.layout import as_ranges
from contextfold.store.reading import PAGE, Reader, ask
from contextfold.store.values import StoredMessage

LONGEST_PAGE = 1_000
"""Messages that one call of ``read`` may ask for."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that a search found: its sequence number, who said it, and the place in it."""

    index: int
    role: str
    snippet: str
    evicted: bool
    """Whether it is out of the view, so that only here it can be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message as people read it."""

    index: int
    role: str
    text: str


def readable(message: Message) -> str:
    """What a message says, as markdown: words, calls and results; no hidden reasoning, media by their size."""
    parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return as_markdown(message.with_parts(parts), lambda data, kind: f"{kind or 'media'}, {len(data):,} bytes")


class Finder:
    """Searches and reads one thread."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def search(self, query: str, limit: int, ports: Ports) -> list[Hit]:
        """The newest messages that have every word of ``query``. Raises ``InputError`` for a query without a word."""
        asked = parse_query(query)
        if asked.is_empty:
            raise InputError(f"the query {query!r} has no word to look for")
        if limit < 1:
            raise InputError(f"limit is {limit}: it must be at least 1")
        state = await self._reader.state(ports)
        source = state.format or ""
        sequences = await self._matches(asked, limit, source, state.message_count, ports)
        gone = await self._gone(state.summary_id, ports)
        hits = []
        for entry in await self._entries(sequences, source, ports):
            shown = await ports.compute(partial(snippet, entry.text, asked))
            hits.append(Hit(entry.index, entry.role, shown, entry.index in gone))
        return hits[::-1]

    async def read(self, start: int, count: int, ports: Ports) -> list[Entry]:
        """Messages from sequence number ``start`` on, at most ``count``."""
        if start < 0 or not 0 < count <= LONGEST_PAGE:
            raise InputError(f"start {start} must not be negative, and count {count} must be 1 to {LONGEST_PAGE:,}")
        state = await self._reader.state(ports)
        wanted = range(start, min(start + count, state.message_count))
        return await self._entries(wanted, state.format or "", ports)

    async def _matches(self, asked: Query, limit: int, source: str, count: int, ports: Ports) -> list[int]:
        """Sequence numbers of hits, ascending: from the store's index, or by reading all of it where it has none."""
        if (indexed := getattr(self._reader.store, "search", None)) is not None:
            return sorted(await ask(ports, indexed, self._reader.thread, asked, limit))
        found: list[int] = []
        for stop in range(count, 0, -PAGE):
            entries = await self._entries(range(max(0, stop - PAGE), stop), source, ports)
            found += [entry.index for entry in reversed(entries) if holds(entry.text, asked)]
            if len(found) >= limit:
                break
        return sorted(found[:limit])

    async def _gone(self, summary_id: int | None, ports: Ports) -> set[int]:
        gone: set[int] = set()
        while summary_id is not None:
            links = await ask(ports, self._reader.store.read_links, self._reader.thread, summary_id)
            gone.update(link.sequence for link in links)
            summary = await self._reader.summary(summary_id, ports)
            summary_id = summary.parent_id if summary else None
        return gone

    async def _entries(self, sequences: Iterable[int], source: str, ports: Ports) -> list[Entry]:
        messages = await self._reader.messages(as_ranges(set(sequences)), ports)
        return await ports.compute(_decoded, messages, source)


def _decoded(messages: Sequence[StoredMessage], source: str) -> list[Entry]:
    if not messages:
        return []
    decode = formats.get(source).decode
    entries = []
    for stored in messages:
        message = decode(stored.wire, stored.sequence)
        entries.append(Entry(stored.sequence, message.role, readable(message)))
    return entries
