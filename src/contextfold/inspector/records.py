"""A document from what a gateway keeps: its records of compactions, which hold summaries and no message.

What belongs here: finding the conversations among the records, and a document of each. What does not: the tables
(``gateway.records``), and sessions of a store, which hold their messages (``stored``).

A gateway knows a conversation by the messages themselves, and keeps none of them. A record names the one that it was
made from, so records form lines; the newest of each line stands for a conversation, known by the digest of the oldest.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import inspect, text

from contextfold.errors import InputError
from contextfold.inspector.document import Scrub, Shared, document, redactor, state_entry
from contextfold.inspector.money import LISTS
from contextfold.inspector.replay import COLUMNS
from contextfold.observe import scrub
from contextfold.record.compaction import Compaction
from contextfold.store.database import Database

log = logging.getLogger("contextfold")

SHOWN = 12
"""Digits of a digest that name a conversation."""

THROUGH_GATEWAY = "through the gateway"
"""Stands where sessions of a store have their namespace."""

ABSENT = {"type": "other", "name": "not stored", "text": "The gateway keeps no messages, only what became of them."}


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the gateway."""

    digest: str
    compaction_id: str
    record: Compaction
    made_at: float
    used_at: float


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A conversation: its records, oldest first."""

    name: str
    records: tuple[Record, ...]


def has_records(database: Database) -> bool:
    """Whether a gateway ever wrote to this database."""
    with database.read() as connection:
        return inspect(connection).has_table("gateway_records")


def lines(database: Database) -> list[RecordLine]:
    """The conversations of a gateway, the one that was used last first."""
    query = text("SELECT digest, compaction_id, record, made_at, used_at FROM gateway_records ORDER BY made_at")
    with database.read() as connection:
        rows = connection.execute(query).all()
    found = [Record(row[0], row[1], one, row[3], row[4]) for row in rows if (one := _readable(row[2])) is not None]
    by_id = {one.compaction_id: one for one in found}
    parents = {one.record.parent for one in found}
    heads = [one for one in found if one.compaction_id not in parents]
    made = [_line(head, by_id) for head in sorted(heads, key=lambda head: -head.used_at)]
    alike = Counter(line[0].digest for line in made)
    return [RecordLine(_unique(line, alike[line[0].digest]), line) for line in made]


def _readable(record: str) -> Compaction | None:
    """A stored record; None where it is damaged, or a newer gateway on this database wrote it: the others are shown."""
    try:
        return Compaction.from_json(record)
    except InputError as error:
        log.info("a record of the gateway is not shown: %s", scrub(str(error)))
        return None


def find(database: Database, name: str) -> RecordLine | None:
    """The conversation of this name, or None."""
    return next((line for line in lines(database) if line.name == name), None) if has_records(database) else None


def signature(database: Database) -> Any:
    """Something that differs once a record was added."""
    with database.read() as connection:
        return tuple(connection.execute(text("SELECT count(*), max(made_at) FROM gateway_records")).one())


def _line(head: Record, by_id: Mapping[str, Record]) -> tuple[Record, ...]:
    line: list[Record] = []
    one: Record | None = head
    while one is not None and one not in line:
        line.append(one)
        one = by_id.get(one.record.parent or "")
    return tuple(reversed(line))


def _unique(line: Sequence[Record], alike: int) -> str:
    """The oldest record's digest; with the newest one's where several conversations began ``alike``."""
    root = line[0].digest[:SHOWN]
    return root if alike == 1 else f"{root}-{line[-1].digest[:SHOWN]}"


def row(line: RecordLine) -> dict[str, Any]:
    """A line of the list of sessions; sizes are those of the newest compaction."""
    newest = line.records[-1]
    return {
        "thread": line.name,
        "namespace": "",
        "turns": None,
        "messages": newest.record.covers,
        "tokens": _histories(line.records)[-1],
        "view_tokens": newest.record.tokens_after,
        "compactions": len(line.records),
        "saved": None,
        "busy": False,
        "updated_at": newest.used_at,
        "error": "",
    }


def recorded(line: RecordLine) -> dict[str, Any]:
    """The document of a conversation: a request for each compaction, and messages by their places alone."""
    clean = redactor()
    newest = line.records[-1].record
    entries = [{"role": "message", "tokens": 0, "parts": [ABSENT]} for _ in range(newest.covers)]
    shared = Shared([], entries, clean)
    states = [state_entry(0, (), None, shared), *(_state(at, one, shared) for at, one in enumerate(line.records))]
    columns = _columns(line.records)
    run = {
        "name": "recorded",
        "settings": {
            "window": newest.window,
            "window_source": "record",
            "trigger": None,
            "target": newest.target,
        },
        "overhead": 0,
        "pending": False,
        "requests": columns,
        "states": states,
        "marks": [],
        "needs": [],
        "needed": {"needed": 0, "whole": 0, "carried": 0, "bare": 0, "lost": 0},
        "money": {prices.key: {"with": [], "without": []} for prices in LISTS},
    }
    return document(_source(line, newest, clean), entries, shared, [run])


def _source(line: RecordLine, newest: Compaction, clean: Scrub) -> dict[str, Any]:
    return {"kind": "gateway", "name": clean(line.name), "format": newest.format, "recorded": True}


def _state(at: int, one: Record, shared: Shared) -> dict[str, Any]:
    # The cuts in shortened messages cannot be shown without the messages.
    known = one.record.model_copy(update={"edits": ()})
    return state_entry(at, one.record.runs, known, shared, created_at=one.made_at)


def _columns(records: Sequence[Record]) -> dict[str, list[int]]:
    columns: dict[str, list[int]] = {name: [0] * len(records) for name in COLUMNS}
    columns["index"] = [one.record.covers for one in records]
    columns["history"] = _histories(records)
    columns["view"] = [one.record.tokens_after for one in records]
    columns["rewritten"] = [1] * len(records)
    columns["state"] = [at + 1 for at in range(len(records))]
    return columns


def _histories(records: Sequence[Record]) -> list[int]:
    """Tokens of everything that was said, at each record: between two of them a view only grows by what is said."""
    sizes: list[int] = []
    for before, one in zip((None, *records), records, strict=False):
        came = one.record.tokens_before
        sizes.append(_least(one.record) if before is None else sizes[-1] + came - before.record.tokens_after)
    return sizes


def _least(record: Compaction) -> int:
    """The same of a line's oldest record. Where an older one is gone, what was cut then is not known."""
    if record.summary is None or record.parent is None:
        return record.tokens_before
    return record.tokens_after - record.summary.tokens + record.summary.original_tokens
