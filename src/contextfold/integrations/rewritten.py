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
        known = self._given.all()
        if not known:
            return list(messages), None
        digests, most = self._digests(messages)
        for given in known:
            start, stop = given.start, given.start + len(given.digests)
            if start <= most and digests[start:stop] == given.digests:
                return [*messages[:start], *given.history[start:], *messages[stop:]], given.record
        return list(messages), None

    def keep(self, history: Sequence[Any], result: CompactionResult) -> None:
        """Remember what stands behind the view of a result, if something of it is summarized."""
        record = result.compaction
        if record is not None and record.summary is not None:
            digests, most = self._digests(result.messages)
            start = min(most, self._digests(history[:most])[1], *record.altered)
            # The longest view stands first among those that begin alike: the one that was given last.
            self._given.put((start, digests[start:]), _Given(digests[start:], start, list(history), record))

    def _digests(self, wire: Sequence[Any]) -> tuple[tuple[bytes, ...], int]:
        """Of each message, and how many of them are instructions at the beginning."""
        messages = [self._format.decode(entry, index) for index, entry in enumerate(wire)]
        return tuple(map(digest, messages)), opening(messages)
