"""Events: one structured record for each decision, handed to the caller and logged.

What belongs here: the event value, the names that exist, their log levels, and the collector that engine
functions are given. What does not: deciding anything. A hook that raises is reported once and never
changes what the engine does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger("contextfold")

# name -> log level. Every event that exists is listed here; an unknown name is a programming error.
LEVELS: Mapping[str, int] = {
    "skipped": logging.DEBUG,  # nothing to do, and why
    "format_detected": logging.DEBUG,
    "history_repaired": logging.WARNING,  # dangling calls, orphan results, duplicate ids, empty messages
    "compaction_set_aside": logging.WARNING,  # the record does not match the history any more
    "compaction_started": logging.INFO,
    "tier_applied": logging.INFO,
    "summary_request": logging.DEBUG,
    "summary_chunked": logging.INFO,
    "summary_overflowed": logging.WARNING,  # a request did not fit all the same: split, limit learnt
    "summary_rejected": logging.WARNING,  # blank, cut off, longer than its input, ...
    "summary_truncated": logging.WARNING,
    "summary_failed": logging.WARNING,  # the previous state stays in force
    "fallback_used": logging.WARNING,
    "compaction_finished": logging.INFO,
    "cannot_fit": logging.ERROR,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One decision: its ``name`` (a key of ``LEVELS``), a sentence for people, and the figures behind it."""

    name: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Observer:
    """Collects the events of one call, logs each, and hands each to the caller's hook."""

    def __init__(self, hook: Callable[[Event], object] | None = None) -> None:
        self.events: list[Event] = []
        self._hook = hook

    def emit(self, name: str, message: str, /, **data: Any) -> None:
        """Record one decision. ``data`` holds plain JSON values: sizes in tokens, times in seconds."""
        event = Event(name, message, data)
        self.events.append(event)
        logger.log(LEVELS[name], "%s: %s", name, message, extra={"contextfold": {"event": name, **data}})
        if self._hook is None:
            return
        try:
            self._hook(event)
        except Exception:  # an observer must never change what it observes
            self._hook = None
            logger.exception("the event hook failed on %r and is not called again during this call", name)
