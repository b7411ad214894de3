"""The account: where every message of the history went.

A message has exactly one fate. Runs of neighbors that share fate and reason are stored once, so the ledger of
100,000 messages stays small; entries are made when they are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypeAlias

from contextfold.messages import Message

Fate = Literal["kept", "pinned", "shortened", "summarized", "dropped"]
FATES: tuple[Fate, ...] = ("kept", "pinned", "shortened", "summarized", "dropped")

Account: TypeAlias = tuple[Fate, str]
"""A fate and its reason."""

NOTHING: Mapping[int, Account] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """The fate of one message: ``index`` in the history, its own ``id`` if it has one, and why."""

    index: int
    id: str | None
    fate: Fate
    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """Messages ``start`` to ``stop`` (exclusive) share this fate and reason."""

    start: int
    stop: int
    fate: Fate
    reason: str


def runs(fates: Iterable[Account]) -> tuple[Run, ...]:
    """Neighbors with one fate and reason, put together."""
    found: list[Run] = []
    start = 0
    for (fate, reason), same in groupby(fates):
        stop = start + sum(1 for _ in same)
        found.append(Run(start, stop, fate, reason))
        start = stop
    return tuple(found)


class Ledger:
    """Iterate for one ``Entry`` per message of the history, in order."""

    def __init__(
        self, account: Sequence[Run], messages: Sequence[Message], mended: Mapping[int, Account] = NOTHING
    ) -> None:
        """``mended`` are kept messages that had to take another form to be sent, or could not be sent."""
        self._account = tuple(account)
        self._mended = dict(mended)
        self._messages = messages
        self._length = len(messages)  # the list may grow at its end behind our back

    @classmethod
    def of_ids(
        cls, account: Sequence[Run], ids: Sequence[str | None], mended: Mapping[int, Account] = NOTHING
    ) -> Ledger:
        """The same without the messages, of which only the ids are needed."""
        return cls(account, [Message("user", (), id=name) for name in ids], mended)

    def __reduce__(self) -> tuple[Any, ...]:
        ids = [message.id for message in self._messages[: self._length]]
        return Ledger.of_ids, (self._account, ids, self._mended)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The account as runs; messages after the last run are ``kept``."""
        covered = self._account[-1].stop if self._account else 0
        account = self._account
        if covered < self._length:
            account = (*account, Run(covered, self._length, "kept", "recent"))
        if not self._mended:
            return account
        fates = [(run.fate, run.reason) for run in account for _ in range(run.start, run.stop)]
        for index, mended in self._mended.items():
            fates[index] = mended
        return runs(fates)

    def counts(self) -> dict[Fate, int]:
        """How many messages met each fate; every fate is listed, and the sum is the length of the history."""
        counted: Counter[Fate] = Counter()
        for run in self.runs:
            counted[run.fate] += run.stop - run.start
        return {fate: counted[fate] for fate in FATES}

    def __iter__(self) -> Iterator[Entry]:
        for run in self.runs:
            for index in range(run.start, run.stop):
                yield Entry(index, self._messages[index].id, run.fate, run.reason)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Ledger({self.counts()})"
