"""What a pass is performed with, and what it leaves.

What belongs here: these values alone, so that a request that needs no pass loads nothing of one. What does not: the
pass (``perform``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from contextfold.messages import Message
from contextfold.observe import Observer
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction
from contextfold.summary.summarizer import Answer, Summarizer

Cause = Literal[
    "not_due",  # nothing fires, or a pass would be of no use
    "vetoed",  # the hook before the pass said no
    "summary_failed",  # no summary could be had, and the old view still fits
    "not_archived",  # the archive did not take the originals, and the old view still fits
    "failed_before",  # the summary failed for this very state before
]
"""Why nothing came of a pass: what callers decide by. The reason is for people."""


class Archiver(Protocol):
    """Where originals go before they leave the view (``contextfold.archive`` has one for files)."""

    @property
    def address(self) -> str:
        """Where they will be, for people and tools; it stands in the summary."""
        ...

    def append(self, messages: Mapping[int, Message]) -> Any:
        """Save messages by their index in the history, those that are there already left out. May be ``async def``.

        Raises whatever it likes unless all of them are certain to be there.
        """
        ...


class RequestModel(Protocol):
    """The model that the request goes to, as ``calls.same`` has it."""

    @property
    def ask(self) -> Callable[[list[Any], bool, int], Any]:
        """Send messages as the request is sent; the response, or an awaitable of it."""
        ...

    @property
    def answer_limit(self) -> int | None:
        """The answer limit of the request; None where none is known."""
        ...

    def said(self, text: str) -> Any:
        """A message of the user in the caller's format."""
        ...

    def read(self, response: Any) -> Answer:
        """What it said; blank if it went on with the task."""
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """What a pass is performed with."""

    ports: Ports
    observer: Observer
    summarizer: Summarizer | None = None
    """None: the built-in extractive one."""
    archive: Archiver | None = None
    same: RequestModel | None = None
    """Asked first, behind the view: the provider has that in its cache."""
    retries: bool = False
    """The caller will try another way: do not emit ``cannot_fit``."""


@dataclass(frozen=True, slots=True)
class Made:
    """A pass that has succeeded. Its record is in force once the caller takes it."""

    compaction: Compaction
    evicted: tuple[Any, ...] = ()
    """The caller's messages that left the view in this pass, in their order."""
    model: str | None = None
    """Who wrote the summary; None for the built-in summarizer."""
    cost: float | None = None
    """US dollars that the summary took, where the price is known."""
    seconds: float = 0.0
    """That the summary took."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing is to be done or nothing came of it, and why."""

    reason: str
    cause: Cause = "not_due"
