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
from contextfold.conversation import pins
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
        decoded = [self._format.decode(message, index) for index, message in enumerate(messages)]
        summary = next((message for message in decoded if pins.is_summary(message)), None)
        given = self._given.get(digest(summary)) if summary is not None else None
        if given is None or len(given.digests) > len(decoded):
            return list(messages), None
        length = len(given.digests)
        if tuple(map(digest, decoded[:length])) != given.digests:
            return list(messages), None
        return [*given.history, *messages[length:]], given.record

    def keep(self, history: Sequence[Any], result: CompactionResult) -> None:
        """Remember what stands behind the view of a result, if a summary is in it."""
        record = result.compaction
        decoded = [self._format.decode(message) for message in result.messages]
        summary = next((message for message in decoded if pins.is_summary(message)), None)
        if record is not None and summary is not None:
            self._given.put(digest(summary), _Given(tuple(map(digest, decoded)), list(history), record))
