"""The compaction record, and what it makes of a history: the view.

A record says how a view differs from the history it was made from: which messages are covered by the summary, which
stay, which parts are shortened and how, and what it cost. It speaks about the first ``covers`` messages; everything
after them is in the view word for word, so the view only grows until the next pass. It stores no message text but
the summary and its evidence, and a fingerprint of the covered messages, so it never meets another history.

What belongs here: the record, its JSON, what it says about a history, and ``apply``. What does not: making one
(``engine``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from contextfold.errors import InputError
from contextfold.formats.base import Format
from contextfold.ledger import Account, Fate, Run
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from contextfold.repair import answer_pending, bare_end, conform, repair
from contextfold.summary.message import summary_text
from contextfold.tiers import TIERS

VERSION = 1
SUMMARY_MARK = {"lc_source": "summarization"}


class Edit(BaseModel):
    """Part ``part`` of message ``index`` is reduced by ``tier`` with ``limit`` (the tier says in which unit)."""

    model_config = ConfigDict(frozen=True)

    index: int
    part: int
    tier: str
    limit: int


class SummaryRecord(BaseModel):
    """The one summary of a view: prose by the summariser, evidence by code, and what it took."""

    model_config = ConfigDict(frozen=True)

    text: str
    evidence: str = ""
    role: Literal["user", "system", "developer", "assistant"] = "user"
    language: str = "en"
    algorithm: str = "bisect_v1"
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    chunk_count: int = 0
    max_depth: int = 0
    truncated: bool = False
    learned_window: int | None = None
    """The longest prompt, in tokens, that the summariser's refusals taught; the next pass starts from it."""
    tokens: int = 0
    """The size of the whole summary message in the view, evidence included."""
    message_count: int = 0
    """How many messages of the history it stands for."""
    original_tokens: int = 0
    """Their size in tokens."""
    archive: str | None = None
    """Where the originals are, if they were saved."""

    @property
    def compression_ratio(self) -> float:
        """Share of the original tokens that is gone: 0.9 means that the summary message has a tenth of them."""
        return 0.0 if not self.original_tokens else round(1 - self.tokens / self.original_tokens, 4)


class FateRun(BaseModel):
    """Messages ``start`` to ``stop`` (exclusive) share a fate and its reason."""

    model_config = ConfigDict(frozen=True)

    start: int
    stop: int
    fate: Fate
    reason: str

    def as_run(self) -> Run:
        return Run(self.start, self.stop, self.fate, self.reason)


class Compaction(BaseModel):
    """One compaction. Plain, immutable data: ``to_json`` and ``from_json`` bring it through any store."""

    model_config = ConfigDict(frozen=True)

    version: int = VERSION
    parent: str | None = None
    """The ``id`` of the compaction it started from."""
    format: str
    covers: int
    """It decides about the first so many messages of the history."""
    fingerprint: str
    """Of these messages, as ``fingerprint`` computes it."""
    fates: tuple[FateRun, ...]
    edits: tuple[Edit, ...] = ()
    summary: SummaryRecord | None = None
    summary_after: int = -1
    """The summary stands in the view behind the last message up to this index of the history."""
    alternate: bool = False
    trigger: str = ""
    window: int = 0
    target: int = 0
    tokens_before: int = 0
    tokens_after: int = 0

    @cached_property
    def id(self) -> str:
        """A hash of the content: the same compaction has the same id everywhere."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=12).hexdigest()

    def to_json(self) -> str:
        """The record as compact JSON text."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Compaction:
        """The record from ``to_json``. Raises ``InputError`` when it is not one, or from a newer version."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InputError(f"not a compaction record: {error}") from None
        if not isinstance(data, dict):
            raise InputError(f"not a compaction record: expected a JSON object, not {type(data).__name__}")
        if isinstance(version := data.get("version"), int) and version > VERSION:
            raise InputError(f"this compaction record has version {version}; this contextfold reads up to {VERSION}")
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(step) for step in problem["loc"])
            raise InputError(f"not a compaction record: {where}: {problem['msg']}") from None

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run.as_run() for run in self.fates)

    def gone(self) -> set[int]:
        """Indices that are not in the view as messages of their own."""
        return {n for run in self.fates if run.fate in ("summarised", "dropped") for n in range(run.start, run.stop)}


@dataclass(frozen=True, slots=True)
class ViewItem:
    """One message of a view. ``index`` is its place in the history, None for the summary.

    ``changed``: not as it stands in the history. ``joinable``: it has a new neighbour before it. ``account``: what
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
        neighbour = _are_neighbours(before, item.index, left_out)
        view.append(ViewItem(place.message, item.index, changed, not neighbour or place.moved, place.account))
        before = item.index
    return view


def _are_neighbours(before: int | None, index: int | None, left_out: Container[int | None]) -> bool:
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


def reduce(message: Message, edits: Sequence[Edit]) -> Message:
    """A message with some of its parts reduced by tiers; the same object when nothing came of it."""
    parts: list[Part | None] = list(message.parts)
    for edit in edits:
        part = parts[edit.part]
        if part is not None:
            parts[edit.part] = TIERS[edit.tier].reduce(part, edit.limit)
    kept = tuple(part for part in parts if part is not None)
    if len(kept) == len(message.parts) and all(new is old for new, old in zip(kept, message.parts, strict=True)):
        return message
    return message.with_parts(kept)


def summary_message(summary: SummaryRecord) -> Message:
    """The message that carries the summary in a view."""
    text = summary_text(summary.text, summary.evidence, language=summary.language, place=summary.archive)
    return Message(role=summary.role, parts=(Text(text),), metadata=SUMMARY_MARK)


def digest(message: Message) -> bytes:
    """A hash of what a message says: role and parts, not ids, positions, cache marks or metadata."""
    hasher = hashlib.blake2b(message.role.encode(), digest_size=16)
    for part in message.parts:
        for field in _content(part):
            data = field.encode("utf-8", "surrogatepass")
            hasher.update(len(data).to_bytes(8, "little"))
            hasher.update(data)
    return hasher.digest()


def fingerprint(digests: Sequence[bytes]) -> str:
    """One hash for a run of messages, from their digests."""
    hasher = hashlib.blake2b(digest_size=16)
    for one in digests:
        hasher.update(one)
    return hasher.hexdigest()


def _content(part: Part) -> list[str]:
    match part:
        case Text():
            return ["text", part.text]
        case ToolCall():
            return ["call", part.id, part.name, part.arguments]
        case ToolResult():
            return ["result", part.call_id, *(field for inner in part.content for field in _content(inner))]
        case Media():
            return ["media", part.kind, part.media_type or "", part.data or "", part.url or ""]
        case Reasoning():
            return ["reasoning", part.text, _plain(part.source)]
        case Opaque():
            return ["opaque", part.label, part.text, _plain(part.source)]


def _plain(source: Any) -> str:
    if isinstance(source, dict) and "cache_control" in source:
        source = {key: value for key, value in source.items() if key != "cache_control"}
    return json.dumps(source, ensure_ascii=False, sort_keys=True, default=str)
