"""Which messages of a thread the engine's history holds, and where.

A pass over a long thread must not read all of it. Once many messages have left the view, the oldest of them are
*folded*: the engine's history then holds only what of them is still in the view, with one stand-in for each gap
between. The last stand-in carries the summary that was in force at the time, so that it is updated, and its evidence
competes with new lines for its place, as it is where originals are out of reach. Nothing is deleted: an earlier record
has an earlier layout.

    thread    0 1 2 3 4 5 6 7 8 9 10 11 12 ...            layout   runs ((0, 2), (6, 7)), start 9
    history   0 1 [ · ] 6 [S] 9 10 11 12 ...              (2-5 and 7-8 are folded, S is the summary)

What belongs here: the arithmetic between places in a history and sequence numbers of a thread. What does not: reading
messages (``loading``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from contextfold.cached import cached_property
from contextfold.errors import InputError, shown
from contextfold.record.compaction import Compaction, Edit, FateRun


@dataclass(frozen=True)
class Layout:
    """``runs`` of sequence numbers (start, stop) that are there one by one; all from ``start`` on is there too.

    ``summary_id``: the summary whose text stands for what is folded; None where nothing is.
    """

    runs: tuple[tuple[int, int], ...] = ()
    start: int = 0
    summary_id: int | None = None

    @cached_property
    def head(self) -> tuple[int | None, ...]:
        """What stands before ``start``, in order: sequence numbers, and None for each gap."""
        places: list[int | None] = []
        reached = 0
        for first, stop in (*self.runs, (self.start, self.start)):
            if first > reached:
                places.append(None)
            places.extend(range(first, stop))
            reached = stop
        return tuple(places)

    @property
    def folded(self) -> list[range]:
        """The messages that are not there."""
        stops = (0, *(stop for _, stop in self.runs))
        firsts = (*(first for first, _ in self.runs), self.start)
        return [range(stop, first) for stop, first in zip(stops, firsts, strict=True) if stop < first]

    @cached_property
    def last_gap(self) -> int | None:
        """The place of the stand-in that carries the summary."""
        return max((place for place, sequence in enumerate(self.head) if sequence is None), default=None)

    def sequence(self, place: int) -> int | None:
        """The message at a place of the history; None for a stand-in."""
        return self.head[place] if place < len(self.head) else self.start + place - len(self.head)

    def sequences(self, places: Iterable[int]) -> list[int]:
        """The messages at these places, without stand-ins."""
        return [found for place in places if (found := self.sequence(place)) is not None]

    def after(self, places: int) -> int:
        """The sequence number behind the first ``places`` places, which reach up to ``start`` at least."""
        return self.start + places - len(self.head)

    def to_json(self) -> str:
        return json.dumps({"runs": self.runs, "start": self.start, "summary_id": self.summary_id})

    @classmethod
    def from_json(cls, text: str) -> Layout:
        """Raises ``InputError`` for what ``to_json`` did not write."""
        try:
            data: Any = json.loads(text)
            found = tuple((int(first), int(stop)) for first, stop in data["runs"])
            layout = cls(found, int(data["start"]), data["summary_id"])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise InputError(f"not a layout: {type(error).__name__}: {error}") from None
        places = [0, *(place for run in found for place in run), layout.start]
        if places != sorted(places):
            raise InputError(f"not a layout: its runs do not follow each other up to {layout.start:,}")
        if not isinstance(layout.summary_id, int | None):
            raise InputError(f"not a layout: its summary is {shown(layout.summary_id)}")
        return layout


WHOLE = Layout()
"""Every message is there."""


def as_ranges(sequences: Collection[int]) -> list[range]:
    """Ascending sequence numbers as runs of neighbors."""
    found: list[range] = []
    for sequence in sorted(sequences):
        if found and found[-1].stop == sequence:
            found[-1] = range(found[-1].start, sequence + 1)
        else:
            found.append(range(sequence, sequence + 1))
    return found


def gone_from(layout: Layout, record: Compaction | None) -> list[int]:
    """The messages that are out of the view under a record, ascending, without those that are folded."""
    return layout.sequences(sorted(record.gone())) if record else []


def fold(layout: Layout, record: Compaction, summary_id: int, newest: int) -> tuple[Layout, Compaction]:
    """The same record over a history in which only the ``newest`` messages that left the view are still there.

    The record's fingerprint is the old one: the reader of the new history computes its own.
    """
    start = gone_from(layout, record)[-newest]
    gone = record.gone()
    ends: list[int] = []  # the old place behind which each new place ends
    kept: list[int] = []  # messages before ``start`` that stay
    place = 0
    while (sequence := layout.sequence(place)) is None or sequence < start:
        # The first message stays whatever became of it: a format looks at it for the shape of new ones.
        if sequence is not None and (place not in gone or sequence == 0):
            kept.append(sequence)
            ends.append(place)
        elif ends and _is_gap(layout, gone, place - 1):
            ends[-1] = place
        else:
            ends.append(place)
        place += 1
    folded = Layout(tuple((found.start, found.stop) for found in as_ranges(kept)), start, summary_id)
    return folded, _moved(record, ends, place)


def _is_gap(layout: Layout, gone: Collection[int], place: int) -> bool:
    sequence = layout.sequence(place)
    return sequence is None or (place in gone and sequence != 0)


def _moved(record: Compaction, ends: Sequence[int], start: int) -> Compaction:
    """A record for a history in which the places before ``start`` are now those that end behind ``ends``."""
    shift = start - len(ends)
    new_place = {old: new for new, old in enumerate(ends)}
    fates = [(run.fate, run.reason) for run in record.fates for _ in range(run.start, run.stop)]
    moved = [fates[end] for end in ends] + fates[start:]

    def behind(place: int) -> int:
        """How many places of the new history end at or before an old place."""
        return place + 1 - shift if place >= start else sum(1 for end in ends if end <= place)

    edits = [
        Edit(
            index=edit.index - shift if edit.index >= start else new_place[edit.index],
            part=edit.part,
            tier=edit.tier,
            limit=edit.limit,
        )
        for edit in record.edits
    ]
    return record.model_copy(
        update={
            "covers": record.covers - shift,
            "fates": FateRun.all_of(moved),
            "edits": tuple(edits),
            "recalled": (),  # a pass follows, and folds away what came back
            "summary_after": behind(record.summary_after) - 1,
            "thinking_from": behind(record.thinking_from - 1) if record.thinking_from else 0,
        }
    )
