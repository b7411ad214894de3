"""What a thread's state remembers of its summary, under the keys of deepagents.

What belongs here: the keys, their schema, reading what deepagents or we wrote, and the update that saves something new.
What does not: what the model is sent because of it (``views``).

    _summarization_event          {cutoff_index, summary_message, file_path, created_at_index}, both ways
    _summarization_session_id     names the history file, both ways
    _contextfold_shortened_until  ours: calls before the message with this id have their arguments truncated

An event of ours has four keys more; deepagents reads past keys that it does not know:

    archived_until                originals before that index are in the history file
    covered_to, kept_from         ids of the messages on both sides of the cutoff: a user who deletes messages of the
                                  thread moves all that come after them, and no index says so
    is_whole                      the state has all messages that the summary stands for
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NotRequired, TypeGuard

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AnyMessage, HumanMessage, convert_to_messages

from contextfold.integrations.langchain.state import latest
from contextfold.observe import logger

EVENT = "_summarization_event"
SESSION_ID = "_summarization_session_id"
SHORTENED_UNTIL = "_contextfold_shortened_until"


class SummarizationState(AgentState[Any]):
    """The state that the middleware needs: in checkpoints, in no input and no output, not handed to sub-agents."""

    _summarization_event: NotRequired[Annotated[dict[str, Any] | None, PrivateStateAttr, latest]]
    _summarization_session_id: NotRequired[Annotated[str | None, PrivateStateAttr, latest]]
    _contextfold_shortened_until: NotRequired[Annotated[str | None, PrivateStateAttr, latest]]


@dataclass(frozen=True, slots=True)
class SummarizationEvent:
    """A summary in force. Indices are positions in the state's list of messages."""

    cutoff: int
    """The summary stands for the messages before this index."""
    summary: HumanMessage
    path: str | None
    """The history file; None: the originals could not be saved there."""
    created_at: int
    """How many messages the state had when the summary was made."""
    archived_until: int
    """Messages before this index are in the history file."""
    covered_to: str | None = None
    """Id of the last message before the cutoff; None if it is not known."""
    kept_from: str | None = None
    """Id of the first message behind it; None if there was none, or it is not known."""
    is_whole: bool = True
    """Whether the state still has all messages that the summary stands for: if not, it alone quotes those it lost."""

    def aligned(self, messages: Sequence[AnyMessage]) -> SummarizationEvent:
        """The event with the indices that it has in these messages, after some were deleted.

        Where neither side of the cutoff is left, the thread was begun again, and nothing in it is covered.
        """
        cutoff = self._cutoff_in(messages)
        if cutoff == self.cutoff:
            return self
        moved = cutoff - self.cutoff
        return replace(
            self,
            cutoff=cutoff,
            created_at=max(cutoff, self.created_at + moved),
            archived_until=max(0, self.archived_until + moved),
            is_whole=False,
        )

    def without(self, gone: range, messages: Sequence[AnyMessage]) -> SummarizationEvent:
        """The event as it is in these messages, where the caller has dropped those ``gone`` of before."""

        def place(n: int) -> int:
            return n - len(gone) if n >= gone.stop else min(n, gone.start)

        cutoff = place(self.cutoff)
        return replace(
            self,
            cutoff=cutoff,
            created_at=max(cutoff, place(self.created_at)),
            archived_until=place(self.archived_until),
            covered_to=messages[cutoff - 1].id if cutoff else None,
            kept_from=messages[cutoff].id if cutoff < len(messages) else None,
            is_whole=self.is_whole and not gone,
        )

    def _cutoff_in(self, messages: Sequence[AnyMessage]) -> int:
        if self.covered_to is None:  # an event of deepagents: it has the index alone
            return self.cutoff
        if 0 < self.cutoff <= len(messages) and messages[self.cutoff - 1].id == self.covered_to:
            return self.cutoff
        position = {message.id: number for number, message in enumerate(messages) if message.id is not None}
        if self.kept_from in position:
            return position[self.kept_from]
        return position.get(self.covered_to, -1) + 1

    def to_state(self) -> dict[str, Any]:
        """The value for the state."""
        return {
            "cutoff_index": self.cutoff,
            "summary_message": self.summary,
            "file_path": self.path,
            "created_at_index": self.created_at,
            "archived_until": self.archived_until,
            "covered_to": self.covered_to,
            "kept_from": self.kept_from,
            "is_whole": self.is_whole,
        }

    @classmethod
    def from_state(cls, value: Any) -> SummarizationEvent | None:
        """The event in a state; None where there is none, or nothing that anyone could go by."""
        if value is None:
            return None
        cutoff = value.get("cutoff_index") if isinstance(value, Mapping) else None
        summary = _as_message(value.get("summary_message")) if isinstance(value, Mapping) else None
        if not _is_index(cutoff) or not isinstance(summary, HumanMessage):
            logger.warning("the state's %s is not one, and is left aside: the whole history is sent", EVENT)
            return None
        created_at, archived_until = value.get("created_at_index"), value.get("archived_until")
        return cls(
            cutoff=cutoff,
            summary=summary,
            path=_text(value.get("file_path")),
            created_at=created_at if _is_index(created_at) else cutoff,
            # deepagents' own event has no such field: what its cutoff covers is in the file.
            archived_until=archived_until if _is_index(archived_until) else cutoff,
            covered_to=_text(value.get("covered_to")),
            kept_from=_text(value.get("kept_from")),
            is_whole=value.get("is_whole") is not False,
        )


@dataclass(frozen=True, slots=True)
class RememberedEvent:
    """What is remembered of one thread."""

    event: SummarizationEvent | None = None
    session_id: str | None = None
    shortened_until: str | None = None

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RememberedEvent:
        session_id, shortened_until = _text(state.get(SESSION_ID)), _text(state.get(SHORTENED_UNTIL))
        return cls(SummarizationEvent.from_state(state.get(EVENT)), session_id or None, shortened_until)

    def aligned(self, messages: Sequence[AnyMessage]) -> RememberedEvent:
        """With the event's indices as they are in these messages."""
        return self if self.event is None else replace(self, event=self.event.aligned(messages))

    def without(self, gone: range, messages: Sequence[AnyMessage]) -> RememberedEvent:
        """As it is in these messages, where the caller has dropped those ``gone`` of before."""
        return self if self.event is None else replace(self, event=self.event.without(gone, messages))

    def update_since(self, before: RememberedEvent) -> dict[str, Any]:
        """What to change in a state that remembers ``before``."""
        update: dict[str, Any] = {}
        if self.event is not None and self.event != before.event:
            update[EVENT] = self.event.to_state()
        # deepagents writes both together, and readers of updates look for the id beside the event
        if self.session_id != before.session_id or (EVENT in update and self.session_id is not None):
            update[SESSION_ID] = self.session_id
        if self.shortened_until != before.shortened_until:
            update[SHORTENED_UNTIL] = self.shortened_until
        return update


def _as_message(value: Any) -> Any:
    """A message that came as JSON, as clients of an Agent Server state it: no reducer reads it under this key."""
    if not isinstance(value, Mapping):
        return value
    try:
        return convert_to_messages([dict(value)])[0]
    except Exception:  # noqa: BLE001 - LangChain raises all kinds for what is no message
        return None


def _text(value: Any) -> str | None:
    """A text of a state, which a client may have written; None for anything else."""
    return value if isinstance(value, str) else None


def _is_index(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
