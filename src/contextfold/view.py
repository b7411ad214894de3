"""From a history and a record to wire objects: the list that a caller sends.

What belongs here: encoding a view, keeping the caller's own objects wherever nothing changed, and joining neighbours
that compaction brought together where a format wants roles to alternate. What does not: choosing (``compaction``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextfold.compaction import Compaction, ViewItem, apply
from contextfold.formats.base import Format
from contextfold.history import History
from contextfold.ledger import Account
from contextfold.messages import Message
from contextfold.repair import EMPTY, REPEATED


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
    """Every run of one role joined, the caller's own neighbours included. What needs no joining stays as it is."""
    joined: list[Any] = []
    for entry in wire:
        both = target.join(joined[-1], entry) if joined else None
        if both is None:
            joined.append(entry)
        else:
            joined[-1] = both
    return joined
