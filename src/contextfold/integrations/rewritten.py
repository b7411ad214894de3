"""Frameworks that put the view in place of their messages: the history behind it, as long as this process lasts.

Such a framework gives its list back, with the summary in it and more behind. The engine takes a summary in a list for
what it is and updates it, so nothing depends on what is remembered here. But where the originals are still known, the
pass is better: evidence is chosen from them, and it is the same record that goes on.

What belongs here: recognizing a view that was given before, by what its messages say. What does not: the views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contextfold.compactor import CompactionResult
from contextfold.conversation.fingerprint import digest
from contextfold.formats.base import Format
from contextfold.integrations.bounded import Bounded
from contextfold.record.compaction import Compaction

REMEMBERED = 32
"""Conversations. Each holds its messages."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A view that was given, by the digests of its messages, and the history and record behind it."""

    digests: tuple[bytes, ...]
    """Those behind the history's own instructions, which may say another thing at each turn. A summary among these is
    none of them: it tells one conversation from another.
    """
    start: int
    """How many instructions that are."""
    history: list[Any]
    record: Compaction


class Originals:
    """The histories behind the views that were given. Safe for concurrent use. ``format``: of all messages."""

    def __init__(self, format: Format, size: int = REMEMBERED) -> None:
        self._format = format
        self._given: Bounded[_Given] = Bounded(size)

    def behind(self, messages: Sequence[Any]) -> tuple[list[Any], Compaction | None]:
        """The whole history of a list and the record in force, where the list begins with a view that was given; else
        the list itself and None.
        """
        said = _Digests(self._format, messages)
        for given in self._given.all():
            start, stop = given.start, given.start + len(given.digests)
            # Read as far as they are alike: nearly all lists that are no view are told apart by their first messages.
            if stop <= len(messages) and said.begin(start) and all(map(said.is_at, range(start, stop), given.digests)):
                return [*messages[:start], *given.history[start:], *messages[stop:]], given.record
        return list(messages), None

    def keep(self, history: Sequence[Any], result: CompactionResult) -> None:
        """Remember what stands behind the view of a result, if something of it is summarized."""
        record = result.compaction
        if record is not None and record.summary is not None:
            said, before = _Digests(self._format, result.messages), _Digests(self._format, history)
            start = min(said.opening, before.opening, *record.altered)
            digests = tuple(map(said.at, range(start, len(result.messages))))
            # The longest view stands first among those that begin alike: the one that was given last.
            self._given.put((start, digests), _Given(digests, start, list(history), record))


class _Digests:
    """Of the messages of a list, each decoded when it is first asked for."""

    def __init__(self, format: Format, wire: Sequence[Any]) -> None:
        self._format = format
        self._wire = wire
        self._read: list[tuple[bytes, bool]] = []

    def at(self, index: int) -> bytes:
        return self._of(index)[0]

    def is_at(self, index: int, told: bytes) -> bool:
        return self.at(index) == told

    def begin(self, count: int) -> bool:
        """Whether the first messages, at least as many as this, are instructions."""
        return all(self._of(n)[1] for n in range(count))

    @property
    def opening(self) -> int:
        """How many of them are instructions at the beginning."""
        return next((n for n in range(len(self._wire)) if not self._of(n)[1]), len(self._wire))

    def _of(self, index: int) -> tuple[bytes, bool]:
        while len(self._read) <= index:
            message = self._format.decode(self._wire[len(self._read)], len(self._read))
            self._read.append((digest(message), message.is_instruction))
        return self._read[index]
