"""What is stored of a conversation, as values: the thread, its state, messages, summaries, and their links.

What belongs here: plain frozen data that every store reads and writes, whatever its tables look like. What does not:
SQL (``sql``), and which part of a history is in memory (``layout``, ``loading``).

Sequence numbers count the messages of a thread from 0, without gaps. Times are seconds since 1970. Sizes are tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from contextfold.cached import cached_property
from contextfold.conversation.ledger import Fate
from contextfold.errors import InputError, StoreCorrupt, reason, shown
from contextfold.recall.ranking import Order
from contextfold.recall.words import Query
from contextfold.record.compaction import Compaction
from contextfold.store.layout import Layout

Trigger = Literal["proactive", "overflow_retry", "manual", "background", "recall", "thinking"]

LEASES = 2
"""A lease that has more left than so many times its length is void."""

LONGEST_NAMESPACE = 200
"""Characters. It is part of every key, and PostgreSQL's keys have at most 2,700 bytes."""


@dataclass(frozen=True)
class Thread:
    """Whose conversation, and which. Threads of two namespaces never have anything in common."""

    namespace: str
    id: str

    def __post_init__(self) -> None:
        _check_name("thread id", self.id)
        checked_namespace(self.namespace)

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits: a key of fixed length, whatever the id is. The namespace is part of it."""
        hasher = hashlib.blake2b(self.namespace.encode(), digest_size=16)
        hasher.update(b"\0" + self.id.encode())
        return hasher.hexdigest()

    @property
    def columns(self) -> dict[str, str]:
        """What names the session in every table, by the names of the columns."""
        return {"namespace": self.namespace, "session_id": self.key}

    def __str__(self) -> str:
        shown = self.id if len(self.id) <= 60 else f"{self.id[:57]}..."
        return f"{shown!r}" + (f" of namespace {self.namespace!r}" if self.namespace else "")


def checked_namespace(namespace: str) -> str:
    """The namespace that a caller gave. Raises ``InputError`` for one that no database can hold."""
    if namespace != "":
        _check_name("namespace", namespace)
    if len(namespace) > LONGEST_NAMESPACE:
        raise InputError(f"the namespace has {len(namespace):,} characters, and {LONGEST_NAMESPACE} may be")
    return namespace


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InputError(f"the {what} must be a text that is not empty, not {shown(name)}")
    if "\0" in name:
        raise InputError(f"the {what} holds a NUL character, which databases refuse: {name[:60]!r}")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the {what} is not valid text: {error}") from None


@dataclass(frozen=True)
class SessionState:
    """The row of a session. One that was never written to has no messages and revision 0.

    ``revision`` grows whenever another summary, or none, comes into force. ``prepared_id`` is the newest summary that
    was made from this very revision and is not in force. Until ``held_until`` messages are there, nothing is compacted
    by itself: that was just undone.
    """

    thread: Thread
    format: str | None = None
    format_marked: bool = False
    message_count: int = 0
    token_count: int = 0
    revision: int = 0
    summary_id: int | None = None
    summary_text: str | None = None
    summary_until_index: int | None = None
    """Messages before this one are covered by the summary, or stand in the view word for word."""
    summary_tokens: int | None = None
    summary_created_at: float | None = None
    is_summarizing: bool = False
    """Whether a summary is being made. The mark of a worker that died counts until its lease expires, and no longer."""
    lease_owner: str | None = None
    lease_until: float | None = None
    lease_seconds: float | None = None
    """For how long it was given or renewed; None where the store does not say."""
    prepared_id: int | None = None
    held_until: int = 0
    created_at: float | None = None
    updated_at: float | None = None
    damage: str = ""
    """In a list of sessions: what of the row cannot be read, and the way out; empty where all can. Fields that cannot
    be read are as in a new session, and a thread whose id cannot be read has the key of its row for an id."""

    # Not a field: stores of anyone's own fill those by their names, from tables that have no such column.
    opened = 0
    """Which opening of its database it was read under, where that can be another one at the same address: a file that a
    backup took the place of has another history, perhaps under the same revision."""

    def under(self, opened: int) -> SessionState:
        """The same, read under this opening of its database."""
        found = replace(self)
        object.__setattr__(found, "opened", opened)
        return found

    def at(self, now: float) -> SessionState:
        """What a stored row says at this time of the store's clock: a lease that has expired is of no one at work.

        ``lease_until`` stays, and says that a worker ended without giving it back.
        """
        until, seconds = self.lease_until, self.lease_seconds
        if not self.is_summarizing or until is None:
            return self
        # No lease has more left than it was given for: the clock was set back, and by the old time it would live on
        # for as long. Twice that, so that one that was corrected by a little does not let two workers pay at once.
        is_over = until <= now or (seconds is not None and until > now + LEASES * seconds)
        return replace(self, is_summarizing=False) if is_over else self


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be appended: its payload as ``payload.dumps`` writes it, and what is worth a column."""

    payload: str
    role: str
    message_id: str | None
    tokens: int
    text: str = ""
    """What it says, for stores that can search."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message that was read: the wire object, at its place."""

    sequence: int
    wire: Any
    created_at: float | None = None
    """When it was appended, in seconds since 1970; None where the store does not say."""

    @classmethod
    def of(cls, sequence: int, text: str) -> StoredMessage:
        """From what ``NewMessage.payload`` was. Raises ``ValueError`` for a text that it never was."""
        from contextfold.store import payload  # reads formats, which values need for nothing else

        return cls(sequence, payload.loads(text))


@dataclass(frozen=True, slots=True)
class DamagedMessage:
    """A message that was asked for and cannot be read, beside others that can: what is wrong, and the way out."""

    sequence: int
    problem: str


def unreadable(thread: Thread, sequence: int, error: Exception) -> StoreCorrupt:
    """What is raised where a stored message cannot be read."""
    return StoreCorrupt(
        f"message {sequence:,} of session {thread} cannot be read ({reason(error)}); restore it from a backup"
    )


@dataclass(frozen=True, slots=True)
class Search:
    """What a store that can search is asked for.

    ``roles``: only messages of these. ``since``, ``until``: only those that were appended then, in seconds since 1970;
    the end is not included. ``before``: only those with a lower sequence number.
    """

    query: Query
    limit: int
    order: Order = "best"
    roles: tuple[str, ...] | None = None
    since: float | None = None
    until: float | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One message that a summary took out of the view, and why."""

    sequence: int
    fate: Fate
    reason: str


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A compaction as it is recorded: the record itself, what history it speaks about, and what it took.

    ``covers`` counts messages of the thread, ``message_count`` and ``original_tokens`` all that is out of the view.
    """

    parent_id: int | None
    base_revision: int
    """The revision of the session that it was made from; it may only come into force while that stands."""
    trigger: Trigger
    reason: str
    algorithm: str
    text: str
    tokens: int
    covers: int
    message_count: int
    original_tokens: int
    input_tokens: int
    output_tokens: int
    calls: int
    chunk_count: int
    max_depth: int
    truncated: bool
    model: str | None
    cost: float | None
    """US dollars; None where the price is not known."""
    seconds: float
    tokens_before: int
    tokens_after: int
    record: Compaction
    layout: Layout

    def columns(self) -> dict[str, Any]:
        """The fields, with record and layout as JSON text: how most stores will want them."""
        fields = {name: getattr(self, name) for name in NewSummary.__dataclass_fields__}
        return {**fields, "record": self.record.to_json(), "layout": self.layout.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSummary(NewSummary):
    """A recorded summary. Only one whose ``used_at`` is set was ever in force."""

    id: int
    created_at: float
    used_at: float | None = None
    undone_at: float | None = None

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> StoredSummary:
        """From the columns of a summary with its id and times; other keys are ignored.

        Raises ``InputError`` where record or layout cannot be read.
        """
        fields = {name: columns[name] for name in cls.__dataclass_fields__}
        fields["record"] = Compaction.from_json(fields["record"])
        fields["layout"] = Layout.from_json(fields["layout"])
        return cls(**fields)

    @property
    def metadata(self) -> dict[str, Any]:
        """What it took, by the names of the columns."""
        left_out = ("record", "layout", "text")
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in left_out}
