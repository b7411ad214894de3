"""What a thread remembers of its compactions: one private value of its state.

What belongs here: the value, its text, and the state schema that holds it. What does not: making records.

The text is compressed JSON in base64: a checkpoint grows by the size of a summary, not of a history, and a
consumer of LangGraph's ``values`` and ``updates`` streams, which show private values too, gets no summary to display.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, cast

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from typing_extensions import TypedDict

from contextfold.errors import InputError
from contextfold.integrations.given import stored
from contextfold.record.compaction import Compaction


@dataclass(frozen=True, slots=True)
class Remembered:
    """The record in force, the one before it for ``undo``, and what the next model call is to heed."""

    current: Compaction | None = None
    before: Compaction | None = None
    can_undo: bool = False
    """``before`` is None both where there was no compaction before and where nothing is to be undone."""
    is_held: bool = False
    """After an undo nothing is compacted as long as the view fits the window."""
    requested: str | None = None
    """Instructions of a compaction that was asked for and is still to be made; None: none was."""

    def to_text(self) -> str:
        """The value as text of the state."""
        plain = {
            "current": self.current.model_dump(mode="json") if self.current else None,
            "before": self.before.model_dump(mode="json") if self.before else None,
            "can_undo": self.can_undo,
            "is_held": self.is_held,
            "requested": self.requested,
        }
        packed = zlib.compress(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode(), 6)
        return base64.b64encode(packed).decode("ascii")

    @classmethod
    def from_text(cls, text: str | None) -> Remembered:
        """The value of a state. Raises ``InputError`` for text that ``to_text`` did not make."""
        if not text:
            return cls()
        try:
            plain = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
            current, before = plain["current"], plain["before"]
        except (ValueError, TypeError, KeyError, RecursionError, zlib.error) as error:
            raise InputError(
                f"the compaction record in the thread's state cannot be read ({type(error).__name__}: {error}): "
                "set its key to None to go on without it"
            ) from None
        return cls(
            Compaction.from_json(json.dumps(current)) if current else None,
            Compaction.from_json(json.dumps(before)) if before else None,
            bool(plain.get("can_undo")),
            bool(plain.get("is_held")),
            plain.get("requested"),
        )


def remembered_in(where: str, text: Any) -> Remembered:
    """The value of a state or store. One that cannot be read is as good as none, as ``stored`` has it."""
    return stored(where, text, Remembered.from_text) or Remembered()


def latest(old: Any, new: Any) -> Any:
    """The reducer: branches that write in one step do not conflict, the last one stands.

    It has to be the last of the annotations: LangGraph looks at that one alone.
    """
    return new


def schema(key: str, kind: type, base: type = AgentState) -> type[AgentState[Any]]:
    """The state schema ``base`` with one private value under ``key``: in checkpoints, in no input and no output."""
    private = {key: NotRequired[Annotated[kind | None, PrivateStateAttr, latest]]}
    return _typed({**base.__annotations__, **private})


def joined(first: type, second: type) -> type[AgentState[Any]]:
    """A state schema with the keys of both: a subclass may have replaced the one that its base class needs."""
    return _typed({**first.__annotations__, **second.__annotations__})


def _typed(annotations: dict[str, Any]) -> type[AgentState[Any]]:
    return cast("type[AgentState[Any]]", TypedDict("CompactionState", annotations))  # type: ignore[operator]
