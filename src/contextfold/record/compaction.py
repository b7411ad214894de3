"""The compaction record: what one pass decided, as plain data.

A record says how a view differs from the history it was made from: which messages are covered by the summary, which
stay, which parts are shortened and how, and what it cost. It speaks about the first ``covers`` messages; everything
after them is in the view word for word, so the view only grows until the next pass. It stores no message text but
the summary and its evidence, and a fingerprint of the covered messages, so it never meets another history.

What belongs here: the record, its JSON, and whether it belongs to a history. What does not: making one (``passes``),
and the view that follows from it (``view``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from contextfold import tiers
from contextfold.cached import cached_property
from contextfold.conversation import pins
from contextfold.conversation.fingerprint import TRAIL_HASH, opening
from contextfold.conversation.history import History
from contextfold.conversation.ledger import Account, Fate, Run, runs
from contextfold.conversation.recognized import LONGEST_TRAIL, brought_back, dropped, hashes
from contextfold.errors import InputError
from contextfold.messages import Message, Part, Text, ToolCall, well_formed
from contextfold.summary.message import summary_text
from contextfold.tiers.joined import JoinedRemoved
from contextfold.tiers.reasoning import ReasoningRemoved

VERSION = 1
# LangChain's own mark for summaries: what filters them out of a thread there knows ours as well.
SUMMARY_MARK = {"lc_source": "summarization"}
_Hash = Annotated[str, Field(pattern="^[0-9a-f]*$")]


def _writable(text: object) -> object:
    # A record is written to files and databases, and a model's answer, or a file, may hold half a character.
    return well_formed(text) if isinstance(text, str) else text


_Text = Annotated[str, BeforeValidator(_writable)]


class Edit(BaseModel):
    """Part ``part`` of message ``index`` is reduced by ``tier`` with ``limit`` (the tier says in which unit)."""

    model_config = ConfigDict(frozen=True)

    index: Annotated[int, Field(ge=0)]
    part: Annotated[int, Field(ge=0)]
    tier: str
    limit: Annotated[int, Field(ge=0)]

    @field_validator("tier")
    @classmethod
    def _known(cls, tier: str) -> str:
        if tier not in tiers.TIERS:
            raise ValueError(f"tier {tier!r} does not exist; the tiers are {', '.join(tiers.TIERS)}")
        return tier


class SummaryRecord(BaseModel):
    """The one summary of a view: prose by the summarizer, evidence by code, and what it took."""

    model_config = ConfigDict(frozen=True)

    text: _Text
    evidence: _Text = ""
    role: Literal["user", "system", "developer", "assistant"] = "user"
    language: _Text = "en"
    algorithm: _Text = "bisect_v1"
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    chunk_count: int = 0
    max_depth: int = 0
    truncated: bool = False
    learned_window: int | None = None
    """The longest prompt, in tokens, that the summarizer's refusals taught; the next pass starts from it."""
    tokens: int = 0
    """The size of the whole summary message in the view, evidence included."""
    message_count: int = 0
    """How many messages of the history it stands for."""
    original_tokens: int = 0
    """Their size in tokens."""
    archive: _Text | None = None
    """Where the originals are, if they were saved."""

    @property
    def compression_ratio(self) -> float:
        """Share of the original tokens that is gone: 0.9 means that the summary message has a tenth of them."""
        return 0.0 if not self.original_tokens else round(1 - self.tokens / self.original_tokens, 4)


class FateRun(BaseModel):
    """Messages ``start`` to ``stop`` (exclusive) share a fate and its reason."""

    model_config = ConfigDict(frozen=True)

    start: Annotated[int, Field(ge=0)]
    stop: int
    fate: Fate
    reason: _Text

    @field_validator("fate", mode="before")
    @classmethod
    def _american(cls, fate: object) -> object:
        # Records of before the rename have the British spelling.
        return "summarized" if fate == "summarised" else fate

    @model_validator(mode="after")
    def _not_empty(self) -> FateRun:
        if self.stop <= self.start:
            raise ValueError(f"it ends at {self.stop}, which is not behind its start at {self.start}")
        return self

    @classmethod
    def all_of(cls, fates: Iterable[Account]) -> tuple[FateRun, ...]:
        return tuple(cls(start=run.start, stop=run.stop, fate=run.fate, reason=run.reason) for run in runs(fates))

    def as_run(self) -> Run:
        return Run(self.start, self.stop, self.fate, self.reason)


class Recalled(BaseModel):
    """What was looked up among evicted messages and is quoted behind message ``after``, which asked for it."""

    model_config = ConfigDict(frozen=True)

    after: Annotated[int, Field(ge=0)]
    digest: _Text
    """Of the message that asked, so that the block never stands behind another one."""
    text: _Text
    indices: tuple[int, ...] = ()
    """The messages that are quoted."""
    reason: _Text = ""
    tokens: int = 0


class Compaction(BaseModel):
    """One compaction. Plain, immutable data: ``to_json`` and ``from_json`` bring it through any store."""

    model_config = ConfigDict(frozen=True, ignored_types=(cached_property,))

    version: int = VERSION
    parent: _Text | None = None
    """The ``id`` of the compaction it started from."""
    format: _Text
    covers: Annotated[int, Field(ge=0)]
    """How many messages, from the first on, it decides about."""
    fingerprint: _Hash
    """Of those of them that are not in the view as they are, as ``fingerprint_in`` computes it."""
    outline: _Hash = ""
    """The same whatever the newest tool results and arguments say, and a short hash of each, and of each image: clients
    clear old ones to save room, and what was told of them holds. Empty in older records."""
    trail: _Hash = ""
    """A short hash of each of the newest messages that it covers: clients that keep a window of their own drop the
    oldest, and what was told of them holds. Empty in older records."""
    origin: _Text = ""
    """Where a client has dropped some of what it covers, the ``pass_id`` that it had before."""
    lacks: Annotated[int, Field(ge=0)] = 0
    """How many messages were dropped that its summary may tell of: what is left may stand in other conversations."""
    fates: tuple[FateRun, ...]
    edits: tuple[Edit, ...] = ()
    summary: SummaryRecord | None = None
    summary_after: Annotated[int, Field(ge=-1)] = -1
    """The summary stands in the view behind the last message up to this index of the history."""
    thinking_from: Annotated[int, Field(ge=0)] = 0
    """Signed thinking of messages before this index was made under an earlier view and is not in this one. The index
    is the length of the history when the view changed, so it may lie behind ``covers``."""
    recalled: tuple[Recalled, ...] = ()
    """What is quoted again since then, in the order of the messages that it stands behind."""
    alternate: bool = False
    trigger: _Text = ""
    window: int = 0
    target: int = 0
    tokens_before: int = 0
    tokens_after: int = 0

    @model_validator(mode="after")
    def _whole(self) -> Compaction:
        # One fate for each message, in order: records are read from files that anyone can write.
        reached = 0
        for run in self.fates:
            if run.start != reached:
                raise ValueError(f"fates: a run starts at {run.start}, and the one before it ends at {reached}")
            reached = run.stop
        if reached > self.covers:
            raise ValueError(f"fates: they reach to {reached}, and the record covers {self.covers}")
        if any(edit.index >= self.covers for edit in self.edits):
            raise ValueError(f"edits: one is about a message behind the {self.covers} that the record covers")
        if any(not 0 <= n < reached for one in self.recalled for n in one.indices):
            raise ValueError(f"recalled: one quotes a message that is none of the {reached} that have a fate")
        return self

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
        except RecursionError:
            raise InputError("not a compaction record: it is nested too deeply") from None
        except (ValueError, TypeError) as error:
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
            raise InputError(f"not a compaction record: {where}: {problem['msg']}"[:500]) from None

    def in_role(self, role: str) -> Compaction:
        """The record with its summary in this role, unless it is in the user's: what a file says must not speak with
        more weight than the caller's policy gives a summary.
        """
        if self.summary is None or self.summary.role in ("user", role):
            return self
        return self.changed(summary=self.summary.model_copy(update={"role": role}))

    @property
    def pass_id(self) -> str:
        """The ``id`` of the record as its pass made it. What came back since changes nothing that a pass decides."""
        return self.origin or (self.changed(recalled=()).id if self.recalled else self.id)

    @property
    def known_as(self) -> str:
        """The ``id`` by which others know it: the one before a client dropped some of what it covers."""
        return self.origin or self.id

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Compaction:
        """A copy, with an ``id`` and ``runs`` of its own: pydantic would take the cached ones along, and the copy would
        pass for the record that it was made from.
        """
        copy = super().model_copy(update=update, deep=deep)
        for derived in ("id", "runs"):
            copy.__dict__.pop(derived, None)
        return copy

    def changed(self, **fields: Any) -> Compaction:
        """A copy with other fields, validated."""
        return Compaction.model_validate({**{name: getattr(self, name) for name in type(self).model_fields}, **fields})

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run.as_run() for run in self.fates)

    @property
    def altered(self) -> set[int]:
        """Indices that are not in the view as they are."""
        return self.gone() | {edit.index for edit in self.edits}

    def gone(self) -> set[int]:
        """Indices that are not in the view as messages of their own."""
        return {n for run in self.fates if run.fate in ("summarized", "dropped") for n in range(run.start, run.stop)}

    def removed(self) -> set[tuple[int, int]]:
        """Message and part of what alone left a message that is in the view: reasoning, a provider's own compaction."""
        return {(edit.index, edit.part) for edit in self.edits if edit.tier == ReasoningRemoved.name}

    def fingerprint_in(self, history: History) -> str:
        """Of what it covers in a history. What stands in the view word for word does not count: a task with the files
        that are open, or an instruction with the time of day, may say something else at each turn, and nothing is lost.
        """
        gone, shortened = self.gone(), {edit.index for edit in self.edits}
        return history.fingerprint_of(gone, shortened) if gone or shortened else history.fingerprint(self.covers)

    def fitted(self, history: History) -> Compaction:
        """The record with the fingerprint that it has in this history."""
        outline = history.outline_of(self.gone(), {edit.index for edit in self.edits})
        trail = "".join(history.trail(self.covers, max(0, self.covers - LONGEST_TRAIL)))
        return self.model_copy(update={"fingerprint": self.fingerprint_in(history), "outline": outline, "trail": trail})

    def mismatch(self, history: History) -> str | None:
        """Why this record does not belong to a history; None when it does."""
        if self.covers > len(history.messages):
            return f"it covers {self.covers:,} messages, and the history has {len(history.messages):,}"
        if not self._is_of(history):
            return f"the first {self.covers:,} messages are not the ones it was made from"
        if any(edit.part >= len(history.messages[edit.index].parts) for edit in self.edits):
            return "it shortens a part that a message does not have"
        newest = pins.newest_user(history.messages)
        shortened = newest in {edit.index for edit in self.edits}  # it was an older one when the record was made
        waiting = {n for group in history.grouping.groups if group.pending for n in group.indices}
        calls = {e.index for e in self.edits if isinstance(history.messages[e.index].parts[e.part], ToolCall)}
        shortened |= bool(calls & pins.about_to_run(history.messages, waiting))  # nobody spoke after them now
        if shortened or not {pins.newest_said(history.messages), newest, *waiting}.isdisjoint(self.gone()):
            return "the history was rewound to before its newest messages, which are in the summary now"
        repeated = {n for run in self.fates if run.reason == pins.SAID_AGAIN for n in range(run.start, run.stop)}
        if repeated and not repeated <= pins.said_again(history.messages):
            return "an instruction is not in the view because a later one said it again, which is not there any more"
        return None

    def moved(self, history: History) -> Compaction | None:
        """The record in a history whose client has dropped the oldest of what it covers, to save room: the summary is
        the only place that still tells of it. Or in one whose client has brought such messages back. None where that is
        not all that differs, or no answer of the model that it covers is left, since nothing would tell then which
        conversation it is.
        """
        run = self._dropped_in(history)
        if run is None:
            return self._with_brought_back(history)
        many = run.stop - run.start  # which may have no len(): a record is read from a file that anyone can write
        if all(one.role != "assistant" for one in history.messages[run.start : self.covers - many]):
            return None

        def place(n: int) -> int:
            return min(n, run.start) if n < run.stop else n - many

        fates = (one.model_copy(update={"start": place(one.start), "stop": place(one.stop)}) for one in self.fates)
        return self._placed(history, place, [one for one in fates if one.start < one.stop], many, run)

    def _with_brought_back(self, history: History) -> Compaction | None:
        """The record in a history with messages that its client had dropped before it was made: they stand in the view
        as they are, since a pass over the shorter list has not read them.
        """
        trail, messages = hashes(self.trail, TRAIL_HASH), history.messages
        # One that was moved is known as it was before; and of one of many messages not how they began.
        if self.origin or not trail or len(trail) != self.covers or opening(messages) != self._instructions():
            return None
        first, more = pins.first_user(messages), history.format.name != "langchain"
        back = brought_back(trail, history.trail(len(messages)), opening(messages), first, more=more)
        if back is None or any(one.start < back.start < one.stop for one in self.fates):
            return None

        def place(n: int) -> int:
            return n if n < back.start else n + len(back)

        fates = [
            one.model_copy(update={"start": place(one.start), "stop": place(one.stop - 1) + 1}) for one in self.fates
        ]
        before = sum(one.stop <= back.start for one in fates)
        fates.insert(before, FateRun(start=back.start, stop=back.stop, fate="kept", reason="brought back"))
        return self._placed(history, place, fates, -min(len(back), self.lacks), range(0))

    def _placed(
        self, history: History, place: Callable[[int], int], fates: Sequence[FateRun], lacks: int, gone: range
    ) -> Compaction | None:
        """The record with its messages in other places, without those that are ``gone``."""
        recalled = [
            one.model_copy(
                update={"after": place(one.after), "indices": tuple(place(n) for n in one.indices if n not in gone)}
            )
            for one in self.recalled
            if one.after not in gone
        ]
        moved = self.changed(
            origin=self.pass_id,
            lacks=self.lacks + lacks,
            covers=place(self.covers),
            fates=tuple(fates),
            edits=tuple(e.model_copy(update={"index": place(e.index)}) for e in self.edits if e.index not in gone),
            recalled=tuple(recalled),
            summary_after=place(self.summary_after + 1) - 1,
            thinking_from=place(self.thinking_from),
        ).fitted(history)
        return moved if moved.mismatch(history) is None else None

    def is_moved_to(self, other: Compaction) -> bool:
        """Whether another record is this one, as ``moved`` made it."""
        return other.origin == self.pass_id and (not self.origin or other.lacks > self.lacks)

    def _instructions(self) -> int:
        """How many messages it began with that are instructions."""
        told = self.runs[0] if self.runs and self.runs[0].reason == pins.INSTRUCTION else None
        return told.stop if told is not None else 0

    def _dropped_in(self, history: History) -> range | None:
        trail = hashes(self.trail, TRAIL_HASH)
        start = self._instructions()
        if not trail or len(trail) != min(self.covers, LONGEST_TRAIL) or opening(history.messages) != start:
            return None
        first = pins.first_user(history.messages)
        now = history.trail(min(self.covers, (start if first is None else first + 1) + len(trail)))
        # Of a thread that a framework keeps, a message is gone because someone has deleted it.
        is_thread = history.format.name == "langchain"
        return dropped(trail, now, self.covers, start, first, more=not is_thread)

    def _is_of(self, history: History) -> bool:
        return (
            self.fingerprint == self.fingerprint_in(history)
            or self.fingerprint == history.fingerprint(self.covers, whole=True)  # of older records
            or history.is_outlined(self.outline, self.gone(), {edit.index for edit in self.edits})
        )


def reduce(message: Message, edits: Sequence[Edit]) -> Message:
    """A message with some of its parts reduced by tiers; the same object when nothing came of it."""
    return message.with_changed(tuple(part for part in _reduced(message, edits) if part is not None))


def reduce_around(message: Message, edits: Sequence[Edit]) -> tuple[Message, ...]:
    """The same, as what stands before and what stands behind the first part that an earlier view had joined to it.

    There the summary stood, so that is where the new one belongs: what stands before it is what the user wrote.
    """
    first = min((edit.part for edit in edits if edit.tier == JoinedRemoved.name), default=None)
    if first is None:
        return (reduce(message, edits),)
    parts = _reduced(message, edits)
    halves = (tuple(part for part in half if part is not None) for half in (parts[:first], parts[first:]))
    return tuple(message.with_parts(half) for half in halves if half)


def _reduced(message: Message, edits: Sequence[Edit]) -> list[Part | None]:
    # A part that leaves stays as None: edits speak of the numbers that parts had in the original.
    parts: list[Part | None] = list(message.parts)
    for edit in edits:
        part = parts[edit.part]
        if part is not None:
            parts[edit.part] = tiers.TIERS[edit.tier].reduce(part, edit.limit)
    return parts


def recalled_message(recalled: Recalled, role: Literal["user", "system", "developer", "assistant"]) -> Message:
    """The message that carries what was looked up."""
    return Message(role, (Text(recalled.text),))


def summary_message(summary: SummaryRecord) -> Message:
    """The message that carries the summary in a view."""
    text = summary_text(summary.text, summary.evidence, language=summary.language, place=summary.archive)
    return Message(role=summary.role, parts=(Text(text),), metadata=SUMMARY_MARK)
