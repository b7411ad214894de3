"""From a history and a record to the view, and from the view to wire objects: the list that a caller sends.

What belongs here: ``apply``, encoding a view, keeping the caller's own objects wherever nothing changed, and joining
neighbors that compaction brought together where a format wants turns. What does not: choosing (``passes``).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextfold.conversation.history import History
from contextfold.conversation.ledger import Account
from contextfold.conversation.repair import EMPTY, REPEATED, answer_pending, bare_end, conform, repair
from contextfold.formats.base import Format
from contextfold.messages import Message
from contextfold.record.compaction import Compaction, Edit, reduce, summary_message


@dataclass(frozen=True, slots=True)
class ViewItem:
    """One message of a view. ``index`` is its place in the history, None for the summary.

    ``changed``: not as it stands in the history. ``joinable``: it has a new neighbor before it. ``account``: what
    mending made of it, where that is worth telling.
    """

    message: Message
    index: int | None
    changed: bool = False
    joinable: bool = False
    account: Account | None = None


def apply(
    messages: Sequence[Message], compaction: Compaction | None, target: Format, *, answered: bool = False
) -> list[ViewItem]:
    """The view of a history under a compaction, valid for a provider of format ``target``. The history is not changed.

    ``answered``: as it is sent at once: calls that still wait for their results get one that says so.
    The caller has made sure that the compaction matches (``matches``).
    """
    chosen = _chosen(messages, compaction)
    placed = repair([item.message for item in chosen])
    placed = conform(answer_pending(placed) if answered else placed, target)
    placed = bare_end(placed, target) if answered else placed
    shown = {place.position for place in placed}
    left_out = {item.index for position, item in enumerate(chosen) if position not in shown}
    view: list[ViewItem] = []
    before: int | None = -1
    for place in placed:
        if place.position is None:
            view.append(ViewItem(place.message, None, changed=True, joinable=True, account=place.account))
            before = None
            continue
        item = chosen[place.position]
        changed = item.changed or place.message is not item.message
        neighbor = _are_neighbors(before, item.index, left_out)
        view.append(ViewItem(place.message, item.index, changed, not neighbor or place.moved, place.account))
        before = item.index
    return view


def _are_neighbors(before: int | None, index: int | None, left_out: Container[int | None]) -> bool:
    """Whether nothing stands between two messages in the history but what mending left out of the view."""
    if before is None or index is None or index <= before:
        return False
    return all(between in left_out for between in range(before + 1, index))


def _chosen(messages: Sequence[Message], compaction: Compaction | None) -> list[ViewItem]:
    if compaction is None:
        return [ViewItem(message, index) for index, message in enumerate(messages)]
    gone = compaction.gone()
    edits: dict[int, list[Edit]] = {}
    for edit in compaction.edits:
        edits.setdefault(edit.index, []).append(edit)
    items: list[ViewItem] = []
    for index, message in enumerate(messages):
        if index in gone:
            continue
        reduced = reduce(message, edits[index]) if index in edits else message
        items.append(ViewItem(reduced, index, changed=reduced is not message))
    if compaction.summary is not None:
        place = sum(1 for item in items if item.index is not None and item.index <= compaction.summary_after)
        items.insert(place, ViewItem(summary_message(compaction.summary), None, changed=True))
    return items


@dataclass(slots=True)
class View:
    """Wire objects to send, and their size in tokens without system prompt and tools.

    ``mended``: messages that no record shortened or dropped, but that could not be sent as they stand in the history.
    ``added``: what stands in the view for no message, in words.
    """

    wire: list[Any]
    tokens: int
    mended: Mapping[int, Account] = field(default_factory=dict)
    added: tuple[str, ...] = ()


def build(history: History, compaction: Compaction | None) -> View:
    """The view of a history in its own format. With nothing to change, the caller's very objects."""
    items = apply(history.messages, compaction, history.format)
    alternate = history.format.alternates if compaction is None else compaction.alternate
    wire = _encoded(history, items, alternate)
    own = {id(history.wire[item.index]): item.index for item in items if item.index is not None and not item.changed}
    tokens = sum(
        history.sizes[own[id(entry)]] if id(entry) in own else history.counter.message(history.format.decode(entry))
        for entry in wire
    )
    added = tuple(item.account[1] for item in items if item.account is not None and item.index is None)
    return View(wire, tokens, _mended(history, compaction, items), added)


def _mended(history: History, compaction: Compaction | None, items: Sequence[ViewItem]) -> dict[int, Account]:
    """What mending did to messages that the record let be."""
    edited = {edit.index for edit in compaction.edits} if compaction else set()
    gone = compaction.gone() if compaction else set()
    shown = {item.index: item.account for item in items if item.index is not None}
    mended: dict[int, Account] = {}
    for index, message in enumerate(history.messages):
        if index not in shown:
            account: Account | None = REPEATED if message.tool_results else EMPTY
        else:
            account = shown[index]
        if account is not None and index not in gone and index not in edited:
            mended[index] = account
    return mended


def translate(history: History, compaction: Compaction | None, target: Format) -> list[Any]:
    """The view of a history in another format."""
    messages = [item.message for item in apply(history.messages, compaction, target)]
    wire = target.encode(messages)
    return alternating(wire, target) if target.alternates else wire


def _encoded(history: History, items: Sequence[ViewItem], alternate: bool) -> list[Any]:
    wire: list[Any] = []
    known: Message | None = history.messages[0] if history.messages else None
    for item in items:
        if item.index is not None and not item.changed:
            entries = [history.wire[item.index]]
        else:
            entries = _encode_one(history.format, item.message, known)
        known = item.message if item.message.source is not None else known
        joined = None
        if alternate and item.joinable and wire and entries:
            joined = history.format.join(wire[-1], entries[0])
        if joined is None:
            wire += entries
        else:
            wire[-1:] = [joined, *entries[1:]]
    return wire


def _encode_one(format: Format, message: Message, known: Message | None) -> list[Any]:
    """A message that changed or is new. A new one is encoded behind one of the caller's own, for the format to see
    the shape that the others have (objects or dictionaries) and the call that a result answers.
    """
    if message.source is not None or known is None:
        return format.encode([message])
    return format.encode([known, message])[1:]


def answered(
    history: History, compaction: Compaction | None, target: Format
) -> tuple[list[Any], Mapping[int, Account]]:
    """The view to send at once, in a format: calls that still wait for their results get one that says so.

    With it, what became of messages that could not be sent as they stand in the history.
    """
    items = apply(history.messages, compaction, target, answered=True)
    mended = _mended(history, compaction, items)
    if target is history.format:
        return _encoded(history, items, target.alternates if compaction is None else compaction.alternate), mended
    wire = target.encode([item.message for item in items])
    return (alternating(wire, target) if target.alternates else wire), mended


def alternating(wire: Sequence[Any], target: Format) -> list[Any]:
    """Every run of one role joined, the caller's own neighbors included. What needs no joining stays as it is."""
    joined: list[Any] = []
    for entry in wire:
        both = target.join(joined[-1], entry) if joined else None
        if both is None:
            joined.append(entry)
        else:
            joined[-1] = both
    return joined
