"""From a history and a record to the view, and from the view to wire objects: the list that a caller sends.

    history, record ──apply──▶ items ──ready──▶ items that a provider accepts ──encode──▶ wire objects

What belongs here: these three steps, keeping the caller's own objects wherever nothing changed. What does not: deciding
(``passes``), and the rules of pairing and roles themselves (``conversation.repair``).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from contextfold.conversation.fingerprint import digest
from contextfold.conversation.history import History
from contextfold.conversation.ledger import Account
from contextfold.conversation.repair import answer_pending, awaited, bare_end, conform, left_out, repair
from contextfold.formats import cache_marks, crossing
from contextfold.formats.base import Format
from contextfold.messages import Message
from contextfold.record.compaction import Compaction, Edit, recalled_message, reduce_around, summary_message

WITHOUT_THINKING: Account = ("shortened", "thinking that was made under an earlier view")
"""Its signature holds for the messages that stood before it then, so a provider would refuse it here."""

UNSAYABLE: Account = ("dropped", "nothing in it can be said in the format that it is translated to")


@dataclass(frozen=True, slots=True)
class ViewItem:
    """One message of a view. ``index`` is its place in the history, None for the summary.

    ``changed``: not as it stands in the history. ``joinable``: it has a new neighbor before it. ``account``: what
    mending made of it, where that is worth telling. ``behind``: it quotes what came back for the message of this index.
    """

    message: Message
    index: int | None
    changed: bool = False
    joinable: bool = False
    account: Account | None = None
    behind: int | None = None


def apply(messages: Sequence[Message], record: Compaction | None) -> list[ViewItem]:
    """What a record leaves of a history, the summary in its place. Not yet valid to send: see ``ready``.

    The caller has made sure that the record belongs to the history (``Compaction.mismatch``).
    """
    if record is None:
        return [ViewItem(message, index) for index, message in enumerate(messages)]
    gone = record.gone()
    edits: dict[int, list[Edit]] = {}
    for edit in record.edits:
        edits.setdefault(edit.index, []).append(edit)
    quoted = {one.after: one for one in record.recalled}
    role = record.summary.role if record.summary is not None else "user"
    items: list[ViewItem] = []
    for index, message in enumerate(messages):
        if index in gone:
            continue
        for reduced in reduce_around(message, edits[index]) if index in edits else (message,):
            left = reduced.unbound() if index < record.thinking_from else reduced
            account = None if left is reduced else WITHOUT_THINKING
            items.append(ViewItem(left, index, changed=left is not message, account=account))
        # The digest, because an edited message did not ask for what was quoted behind it.
        if index in quoted and digest(message).hex() == quoted[index].digest:
            items.append(ViewItem(recalled_message(quoted[index], role), None, changed=True, behind=index))
    if record.summary is not None:
        # Counted among what is left, since the message that it stands behind may be gone itself.
        before = [item.index for item in items if item.index is not None and item.index <= record.summary_after]
        # Behind the first half of a message that is in two: the summary stands between them.
        place = next((n for n, item in enumerate(items, 1) if before and item.index == before[-1]), 0)
        items.insert(place, ViewItem(summary_message(record.summary), None, changed=True))
    return items


def ready(items: Sequence[ViewItem], target: Format, *, sending: bool = False) -> list[ViewItem]:
    """The same view, valid for a provider of format ``target``. The one place where a list is made valid to send.

    ``sending``: it is sent at once, so calls at its very end that still wait for their results get one that says so.
    Calls that a later message shows to be interrupted have theirs in any case, so that the view only grows.
    """
    # Pairing first: the rules about ids and kinds look up the call that a result answers.
    messages = [item.message for item in items]
    messages = messages if target.rules.async_calls else [awaited(message) for message in messages]
    placed = repair(messages, references=target.rules.references)
    placed = conform(answer_pending(placed) if sending else placed, target)
    # Only for sending: with the next message these words are not the last ones any more, and the view must only grow.
    placed = bare_end(placed, target) if sending else placed
    shown = {place.position for place in placed}
    # A result that came late stands further up: what came behind it must not be joined to what was sent before it.
    elsewhere = {items[place.position].index for place in placed if place.moved and place.position is not None}
    # What the record emptied said something before: without it, its neighbors are new ones.
    elsewhere |= {item.index for position, item in enumerate(items) if position not in shown and not item.changed}
    view: list[ViewItem] = []
    # The beginning counts as the message before the first: where message 0 stands first, nothing new is beside it.
    before: int | None = -1
    for place in placed:
        if place.position is None:
            view.append(ViewItem(place.message, None, changed=True, joinable=True, account=place.account))
            before = None
            continue
        item = items[place.position]
        changed = item.changed or place.message is not item.message
        joinable = place.moved or not _are_neighbors(before, item.index, elsewhere)
        view.append(
            replace(
                item, message=place.message, changed=changed, joinable=joinable, account=place.account or item.account
            )
        )
        # What is quoted behind a message does not part it from the next one, which may have come later.
        before = item.index if item.behind is None else item.behind
    return view


def _are_neighbors(before: int | None, index: int | None, elsewhere: Container[int | None]) -> bool:
    """Whether nothing stands between two messages in the history but what mending left out or moved."""
    if before is None or index is None or index <= before:
        return False
    return all(between in elsewhere for between in range(before + 1, index))


@dataclass(slots=True)
class View:
    """Wire objects to send, and their size in tokens without system prompt and tools.

    ``mended``: messages that no record dropped, but that could not be sent as they stand in the history, or of which
    nothing was left.
    ``added``: what stands in the view for no message, in words. ``marked``: the marks of the provider's cache of
    messages that are in the view as objects of ours, which go on with them where the caller moves them in place.
    """

    wire: list[Any]
    tokens: int
    mended: Mapping[int, Account] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    marked: Mapping[int, Any] = field(default_factory=dict)

    def has_moved_marks(self, history: History) -> bool:
        """Whether the caller has moved a mark that the view still has, or had, on an object of ours."""
        return any(cache_marks.standing(history.wire[n]) != marks for n, marks in self.marked.items())


def build(history: History, record: Compaction | None, *, sending: bool = False, stop: int | None = None) -> View:
    """The view of a history in its own format, sized. With nothing to change, the caller's very objects. ``stop``: of
    its first messages alone, as it was before the others came.
    """
    items = ready(apply(history.messages[:stop], record), history.format, sending=sending)
    wire = _encoded(history, items, history.format.alternates if record is None else record.alternate, sending=sending)
    # By identity: these are the very objects that were sized once. To count them again would cost the whole length at
    # every turn.
    own = {id(history.wire[item.index]): item.index for item in items if item.index is not None and not item.changed}
    tokens = sum(
        history.sizes[own[id(entry)]] if id(entry) in own else history.counter.message(history.format.decode(entry))
        for entry in wire
    )
    added = tuple(item.account[1] for item in items if item.account is not None and item.index is None)
    return View(wire, tokens, _mended(history, record, items), added, _marked(history, items, wire))


def _marked(history: History, items: Sequence[ViewItem], wire: Sequence[Any]) -> dict[int, Any]:
    handed_back = {id(entry) for entry in wire}
    indices = (item.index for item in items if item.index is not None)
    rebuilt = (n for n in indices if id(history.wire[n]) not in handed_back)
    return {n: marks for n in rebuilt if (marks := cache_marks.standing(history.wire[n]))}


def translate(
    history: History, record: Compaction | None, target: Format, *, sending: bool = False
) -> tuple[list[Any], Mapping[int, Account]]:
    """The view of a history in another format, and what became of messages that could not be sent as they stand."""
    items = ready(apply(history.messages, record), target, sending=sending)
    wire = target.encode([item.message for item in items])
    said = (crossing.crosses(item.message, target.name) for item in items)
    items = [one if is_said else replace(one, account=UNSAYABLE) for one, is_said in zip(items, said, strict=True)]
    return (alternating(wire, target) if target.alternates else wire), _mended(history, record, items)


def _mended(history: History, record: Compaction | None, items: Sequence[ViewItem]) -> dict[int, Account]:
    """What mending did to messages that the record let be, and which of those that it shortened have nothing left."""
    edited = {edit.index for edit in record.edits} if record else set()
    gone = record.gone() if record else set()
    # One whose parts have all left is written as nothing, also where the format has nothing against it.
    shown = {i.index: i.account for i in items if i.index is not None and (i.message.parts or not i.changed)}
    mended: dict[int, Account] = {}
    for index in range(len(history.messages)):
        if index in gone or (index in edited and index in shown):
            continue
        if index not in shown:
            account: Account | None = left_out(history.messages[index], is_edited=index in edited)
        else:
            account = shown[index]
        if account is not None:
            mended[index] = account
    return mended


def _encoded(history: History, items: Sequence[ViewItem], alternate: bool, *, sending: bool) -> list[Any]:
    """The wire objects. ``alternate``: as the record in force has it."""
    # The caller's own neighbors of one role are joined only in what is sent, where they would be refused: before that,
    # the view has to grow while the caller adds to it.
    all_turns = sending and history.format.rules.takes_turns
    wire: list[Any] = []
    known: Message | None = history.messages[0] if history.messages else None
    for item in items:
        if item.index is not None and not item.changed:
            entries = [history.wire[item.index]]
        else:
            entries = _encode_one(history.format, item.message, known)
        known = item.message if item.message.source is not None else known
        joined = None
        if (all_turns or (alternate and item.joinable)) and wire and entries:
            joined = crossing.joined(history.format, wire[-1], entries[0])
        if joined is None:
            wire += entries
        else:
            wire[-1:] = [joined, *entries[1:]]
    return wire


def _encode_one(format: Format, message: Message, known: Message | None) -> list[Any]:
    if message.source is not None or known is None:
        return format.encode([message])
    # Behind one of the caller's own, for the format to see the shape that the others have (objects or dictionaries) and
    # the call that a result answers.
    return format.encode([known, message])[1:]


def alternating(wire: Sequence[Any], target: Format) -> list[Any]:
    """Every run of one role joined, the caller's own neighbors included. What needs no joining stays as it is."""
    joined: list[Any] = []
    for entry in wire:
        both = crossing.joined(target, joined[-1], entry) if joined else None
        if both is None:
            joined.append(entry)
        else:
            joined[-1] = both
    return joined
