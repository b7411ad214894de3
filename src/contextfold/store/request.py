"""One call on a session, as values: what it takes from its compactor, what is asked for, and what came of it.

What belongs here: these values. What does not: how one becomes the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextfold.observe import Observer
from contextfold.passes.without_pass import Revise
from contextfold.policy import Policy
from contextfold.store import payload
from contextfold.store.decision import SessionRules, SessionSize
from contextfold.store.kept import PassMemory
from contextfold.store.loading import Loaded
from contextfold.store.values import Trigger
from contextfold.summary.summarizer import Summarizer
from contextfold.window import Window, Windows


@dataclass(frozen=True)
class EngineParts:
    """What sessions take from their compactor. ``observe``: an observer for each call. ``passes``: what passes over
    all of them have read.
    """

    policy: Policy
    windows: Windows
    summarizer: Summarizer | None
    count_text: Callable[[str], int] | None
    observe: Callable[[], Observer]
    remembered: int
    """Sessions whose last passes are kept in memory."""
    passes: PassMemory = field(default_factory=PassMemory)


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """One call. ``limit``: tokens that the view has to fit into, if fewer than the window.

    ``sending``: the view goes to a provider at once. ``revise`` makes the record in place of a pass. ``strict``: the
    provider refused the list as malformed: read it again, and let roles take turns. ``window``: instead of the one
    that is known. ``retries``: the caller has another way where nothing can be made to fit.
    """

    system: str | None = None
    tools: Sequence[Any] | None = None
    forced: Trigger | None = None
    instructions: str = ""
    limit: int | None = None
    sending: bool = False
    revise: Revise | None = None
    strict: bool = False
    window: Window | None = None
    retries: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """A session as it was found: its view, the rules for it, its size, and the tokens of what is no message."""

    loaded: Loaded
    rules: SessionRules
    size: SessionSize
    overhead: Mapping[str, int]

    @property
    def place(self) -> tuple[int, int]:
        """Revision and length: where both are the same, nothing has changed."""
        return self.loaded.state.revision, self.loaded.state.message_count


@dataclass(frozen=True, slots=True)
class Settled:
    """A session whose view can be sent. ``size`` is the view's, ``before`` what it was in tokens."""

    loaded: Loaded
    rules: SessionRules
    size: SessionSize
    before: int
    changed: bool
    wire: tuple[Any, ...]

    def copies(self) -> list[Any]:
        """The view, for its receiver to change at will."""
        return [payload.copied(entry) for entry in self.wire]
