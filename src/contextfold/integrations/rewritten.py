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
from contextfold.conversation.fingerprint import digest, opening
from contextfold.formats.base import Format
from contextfold.integrations.bounded import Bounded
from contextfold.record.compaction import Compaction

REMEMBERED = 32
"""Conversations. Each holds its messages."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A view that was given, by the digests of its messages, and the history and record behind it."""

    digests: tuple[bytes, ...]
    """Empty for the instructions at its beginning: what they say may be another thing at each turn."""
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
        known = self._given.all()
        if not known:
            return list(messages), None
        digests = self._digests(messages)
        start = digests.count(b"")
        for given in known:
            if digests[: len(given.digests)] == given.digests:
                return [*messages[:start], *given.history[start:], *messages[len(given.digests) :]], given.record
        return list(messages), None

    def keep(self, history: Sequence[Any], result: CompactionResult) -> None:
        """Remember what stands behind the view of a result, if something of it is summarized."""
        record = result.compaction
        if record is not None and record.summary is not None:
            digests = self._digests(result.messages)
            # The longest view stands first among those that begin alike: the one that was given last.
            self._given.put(digests, _Given(digests, list(history), record))

    def _digests(self, wire: Sequence[Any]) -> tuple[bytes, ...]:
        messages = [self._format.decode(entry, index) for index, entry in enumerate(wire)]
        start = opening(messages)
        return (*[b""] * start, *map(digest, messages[start:]))
