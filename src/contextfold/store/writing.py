"""Appending messages to a session.

What belongs here: turning wire objects into rows, and finding out which format a session is in. What does not: SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from contextfold import formats
from contextfold.formats.base import Format
from contextfold.ports import Ports
from contextfold.recall.history import readable, said_by
from contextfold.store import payload
from contextfold.store.loading import counter_for
from contextfold.store.reading import Reader, ask, reading, source_of
from contextfold.store.values import NewMessage


class Writer:
    """Appends to one thread of a store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._format: tuple[str | None, bool] | None = None

    async def append(self, wire: Sequence[Any], ports: Ports, *, at: int | None, named: str | None) -> range:
        """Append all or none; their sequence numbers.

        Raises ``InputError`` for what is not a message of the session's format, and ``StoreConflict`` when the first
        one would not come ``at`` the given place.
        """
        if not wire:
            count = (await self._reader.state(ports)).message_count
            return range(count, count)
        store, thread = self._reader.store, self._reader.thread
        while True:
            known, was_marked = await self._known(ports)
            found, marked = payload.format_of(wire, known, was_marked, named)
            new = await ports.compute(encoded, wire, found, self._reader.count_text)
            if known is not None and found.name != known:
                await self._check_earlier(found, ports)
            saved = {"format": found.name, "marked": marked, "expected_format": known, "at": at}
            first = await ask(ports, store.append, thread, new, **saved)
            if first is not None:
                self._format = (found.name, marked)
                return range(first, first + len(wire))
            self._format = None  # another writer's messages have just shown which format it is

    async def _known(self, ports: Ports) -> tuple[str | None, bool]:
        if self._format is None:
            state = await self._reader.state(ports)
            self._format = (state.format, state.format_marked)
        return self._format

    async def _check_earlier(self, source: Format, ports: Ports) -> None:
        """What is there already must read in the format that has just turned out to be the session's."""
        state = await self._reader.state(ports)
        async for page in self._reader.pages(range(state.message_count), ports):
            with reading(self._reader.thread, source_of(state), page):
                await ports.compute(formats.decode, [message.wire for message in page], source)


def encoded(wire: Sequence[Any], source: Format, count_text: Callable[[str], int] | None) -> list[NewMessage]:
    """Wire objects as rows. Raises ``InputError`` naming the index of one that is no message or cannot be stored."""
    counter = counter_for(source, count_text)
    rows = []
    for index, entry in enumerate(wire):
        message = source.decode(entry, index)
        text = payload.dumps(entry, index, takes_bytes=source.rules.takes_bytes)
        name = payload.storable(message.id) if message.id else message.id
        rows.append(NewMessage(text, said_by(message), name, counter.message(message), readable(message)))
    return rows
