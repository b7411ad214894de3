"""Which rows of a log are of the conversation in force, where a person went back and said something else.

Such logs are never rewritten: each row names the one before it, and what was gone back on stays in the file.
What belongs here: the way through such rows. What does not: which of them are messages, which each kind of file knows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from contextfold.transcripts.document import TranscriptFile

LEFT_OUT = "left out, as the person went back and said something else"
Parents = Mapping[str, str | None]
"""The id of the row before each one; the first names none."""


def went_back(document: TranscriptFile, places: Sequence[int]) -> tuple[str, ...]:
    """What is said of the rows at these places, if there are any."""
    return (f"{document.places(places)}: {LEFT_OUT}",) if places else ()


def way_to_newest(rows: Sequence[Mapping[str, Any]], own: str, before: str) -> set[str] | None:
    """The ids of the rows from the first to the newest, where each has its ``own`` and names the one ``before``. None
    where one does not, or the way breaks off before the first, or goes in a circle.
    """
    parents = {row[own]: row.get(before) for row in rows if isinstance(row.get(own), str)}
    is_told = all(isinstance(row.get(own), str) and isinstance(parents[row[own]], str | None) for row in rows)
    if not rows or not is_told:
        return None
    found: set[str] = set()
    at: str | None = rows[-1][own]
    while at is not None:
        if at in found or at not in parents:
            return None
        found.add(at)
        at = parents[at]
    return found


def gone_back_on(
    rows: Sequence[str], parents: Parents, is_passed: Callable[[str], bool], place: Callable[[str], Hashable | None]
) -> set[str]:
    """The rows behind words that a person took back, and those words.

    ``rows`` are messages in the order of the file. A row may have several behind it without any going back: parallel
    calls and their results. So words of a person are gone back on only where other words of a person follow the same
    row, and lead to a newer message. ``is_passed``: rows that stand between what is said. ``place`` tells where words
    stand that follow no row; None for all that is no words of a person.
    """
    newest = _newest(rows, parents)
    told: dict[str, str | None] = {}  # the row before each one that is not passed
    asked: dict[Hashable, list[str]] = {}
    for row in rows:
        where = place(row)
        if where is not None:
            before = _said_before(row, parents, is_passed, told)
            asked.setdefault(before if before is not None else ("first", where), []).append(row)
    gone: set[str] = set()
    for several in asked.values():
        kept = max(several, key=lambda row: newest[row])
        for row in several:
            if newest[row] != newest[kept]:
                gone.add(_begin(row, parents, is_passed, newest))
    return _behind(rows, parents, gone) if gone else gone


def _newest(rows: Sequence[str], parents: Parents) -> dict[str, int]:
    """The number of the newest message behind each row, itself included."""
    newest: dict[str, int] = {}
    for number in range(len(rows) - 1, -1, -1):
        at: str | None = rows[number]
        while at is not None and at not in newest:
            newest[at] = number
            at = parents.get(at)
    return newest


def _said_before(
    row: str, parents: Parents, is_passed: Callable[[str], bool], told: dict[str, str | None]
) -> str | None:
    way: list[str] = []
    at = parents.get(row)
    while at is not None and at not in told and is_passed(at):
        told[at] = None  # until more is known; a circle ends here
        way.append(at)
        at = parents.get(at)
    found = told.get(at, at) if at is not None else None
    told.update(dict.fromkeys(way, found))
    return found


def _begin(row: str, parents: Parents, is_passed: Callable[[str], bool], newest: Mapping[str, int]) -> str:
    """The first of the rows that lead to this one alone."""
    way = {row}
    before = parents.get(row)
    while before is not None and before not in way and is_passed(before) and newest[before] == newest[row]:
        way.add(before)
        row, before = before, parents.get(before)
    return row


def _behind(rows: Sequence[str], parents: Parents, gone: set[str]) -> set[str]:
    """All rows behind these, and these."""
    is_gone: dict[str, bool] = dict.fromkeys(gone, True)
    for row in rows:
        way: list[str] = []
        at: str | None = row
        while at is not None and at not in is_gone:
            is_gone[at] = False  # until more is known; a circle ends here
            way.append(at)
            at = parents.get(at)
        if at is not None and is_gone[at]:
            is_gone.update(dict.fromkeys(way, True))
    return {row for row, is_one in is_gone.items() if is_one}
