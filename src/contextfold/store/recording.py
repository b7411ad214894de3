"""From a pass to what is stored of it: the summary with its metadata, and its links to the messages it covers.

What belongs here: pure functions from records to rows, and the ledger of a whole thread out of these rows. What does
not: writing them (the store).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from contextfold.conversation.ledger import Fate, Run, runs
from contextfold.errors import StoreCorrupt
from contextfold.passes.perform import Made
from contextfold.record.compaction import Compaction, Recalled
from contextfold.store.layout import Layout
from contextfold.store.loading import Material
from contextfold.store.payload import storable
from contextfold.store.values import Link, NewSummary, StoredSummary, Thread, Trigger

GONE: tuple[Fate, ...] = ("summarized", "dropped")

SHORTENING = "tiers_v1"
"""The algorithm of a compaction that only shortened messages."""


def new_links(layout: Layout, record: Compaction, already: Collection[int]) -> list[Link]:
    """A link for each message that a record takes out of the view and that was not out of it ``already``."""
    return [
        Link(sequence, run.fate, run.reason)
        for run in record.runs
        if run.fate in GONE
        for sequence in layout.sequences(range(run.start, run.stop))
        if sequence not in already
    ]


def new_summary(
    material: Material,
    made: Made,
    links: Sequence[Link],
    *,
    parent: StoredSummary | None,
    revision: int,
    trigger: Trigger,
    seconds: float,
) -> NewSummary:
    """What is recorded of a pass that took ``seconds``."""
    compaction = made.compaction
    places = {material.layout.sequence(place): place for place in compaction.gone()}
    left = sum(material.history.sizes[places[link.sequence]] for link in links)
    count = len(links) + (parent.message_count if parent else 0)
    original = left + (parent.original_tokens if parent else 0)
    summary = compaction.summary
    if summary is not None:
        summary = summary.model_copy(update={"message_count": count, "original_tokens": original})
    record = compaction.model_copy(update={"parent": parent.record.id if parent else None, "summary": summary})
    return NewSummary(
        parent_id=parent.id if parent else None,
        base_revision=revision,
        trigger=trigger,
        reason=storable(compaction.trigger),
        algorithm=summary.algorithm if summary else SHORTENING,
        text=storable(summary.text) if summary else "",
        tokens=summary.tokens if summary else 0,
        covers=max(material.layout.sequences(range(compaction.covers)), default=-1) + 1,
        message_count=count,
        original_tokens=original,
        input_tokens=summary.input_tokens if summary else 0,
        output_tokens=summary.output_tokens if summary else 0,
        calls=summary.calls if summary else 0,
        chunk_count=summary.chunk_count if summary else 0,
        max_depth=summary.max_depth if summary else 0,
        truncated=summary.truncated if summary else False,
        model=storable(made.model) if made.model else None,
        cost=made.cost,
        seconds=seconds,
        tokens_before=compaction.tokens_before,
        tokens_after=compaction.tokens_after,
        record=record,
        layout=material.layout,
    )


def with_recalled(summary: StoredSummary, found: Recalled, *, revision: int, tokens: int) -> NewSummary:
    """What is recorded where the view under a summary gets a block of what came back: the same, and the block.

    ``tokens``: of the view before it.
    """
    record = summary.record.model_copy(update={"recalled": (*summary.record.recalled, found)})
    row = _beside(summary, record, "recall", found.reason, revision)
    return replace(row, tokens_before=tokens, tokens_after=tokens + found.tokens)


def without_thinking(summary: StoredSummary, until: int, *, revision: int) -> NewSummary:
    """What is recorded where a summary comes into force that was prepared: the same, without the thinking before the
    place ``until``, which was thought under the view that it replaces.
    """
    record = summary.record.changed(thinking_from=until)
    return _beside(summary, record, "thinking", "thinking that was made under an earlier view", revision)


COMPANIONS: tuple[Trigger, ...] = ("recall", "thinking")
"""Rows beside a summary: they say its words again, and come into force and go with it."""


def _beside(summary: StoredSummary, record: Compaction, trigger: Trigger, reason: str, revision: int) -> NewSummary:
    """The row of a summary again, with another record; it took nothing."""
    fields = {name: getattr(summary, name) for name in NewSummary.__dataclass_fields__}
    took: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, "calls": 0, "chunk_count": 0, "max_depth": 0}
    own: dict[str, Any] = {
        "parent_id": summary.id,
        "base_revision": revision,
        "trigger": trigger,
        "reason": storable(reason),
        "cost": None,
        "seconds": 0.0,
        "record": record,
    }
    return NewSummary(**{**fields, **took, **own})


def lineage(thread: Thread, summaries: Sequence[StoredSummary], newest: int | None) -> list[StoredSummary]:
    """The summary in force and those it was built on, newest first. Raises ``StoreCorrupt`` where one is missing."""
    by_id = {summary.id: summary for summary in summaries}
    found: list[StoredSummary] = []
    while newest is not None:
        if newest not in by_id:
            raise StoreCorrupt(f"summary {newest} of session {thread} is missing; restore it from a backup")
        found.append(by_id[newest])
        newest = by_id[newest].parent_id
    return found


def account(thread: Thread, length: int, summary: StoredSummary | None, links: Iterable[Link]) -> tuple[Run, ...]:
    """The fate of each of ``length`` messages of a thread: by the record in force, and the links of its lineage.

    Raises ``StoreCorrupt`` where these speak of a message behind the last one.
    """
    fates: list[tuple[Fate, str]] = [("kept", "recent")] * length
    try:
        for run in summary.record.runs if summary else ():
            for sequence in summary.layout.sequences(range(run.start, run.stop)) if summary else ():
                fates[sequence] = (run.fate, run.reason)
        for link in links:
            fates[link.sequence] = (link.fate, link.reason)
    except IndexError:
        text = f"a summary of session {thread} speaks of more messages than the {length:,} that it has"
        raise StoreCorrupt(f"{text}; restore it from a backup") from None
    return runs(fates)
