"""What the caller is told while a compaction runs: events (each decision), and hooks around the summary.

What belongs here: the values that are told, the names of events with their log levels, how hooks are run, and
``scrub``, which takes keys out of everything that is told. What does not: deciding anything. A hook that raises is
reported once and never changes what the engine does.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from contextfold.redaction import REDACTED, redact

if TYPE_CHECKING:
    from contextfold.ports import Ports

logger = logging.getLogger("contextfold")

# name -> log level. Every event that exists is listed here; an unknown name is a programming error.
LEVELS: Mapping[str, int] = {
    "skipped": logging.DEBUG,  # nothing to do, and why
    "format_detected": logging.DEBUG,
    "history_repaired": logging.WARNING,  # dangling calls, orphan results, duplicate ids, empty messages
    "native_compaction_left": logging.INFO,  # another model cannot read a provider's own compaction item
    "compaction_set_aside": logging.WARNING,  # the record does not match the history any more
    "compaction_started": logging.INFO,
    "tier_applied": logging.INFO,
    "trigger_below_keep": logging.WARNING,  # what must be kept is above the trigger: fewer passes, nothing cut
    "summary_request": logging.DEBUG,
    "summary_chunked": logging.INFO,
    "summary_overflowed": logging.WARNING,  # a request did not fit all the same: split, limit learned
    "summary_rejected": logging.WARNING,  # blank, cut off, longer than its input, ...
    "summary_truncated": logging.WARNING,
    "summary_retry": logging.WARNING,  # a request failed and is sent again after a while
    "summary_field_refused": logging.WARNING,  # a setting that the model does not take is left out
    "summary_timed_out": logging.WARNING,  # silent for too long, or too long in total
    "summary_model_failed": logging.WARNING,  # the next model in the list is asked
    "summary_failed": logging.WARNING,  # the previous state stays in force
    "fallback_used": logging.WARNING,
    "compaction_finished": logging.INFO,
    "archived": logging.INFO,
    "archive_failed": logging.WARNING,  # nothing leaves the view
    "cannot_fit": logging.ERROR,
    "window_resolved": logging.DEBUG,  # how large the window is taken to be, and who says so
    "window_learned": logging.INFO,  # a refusal taught the window of an endpoint and model
    "window_store_failed": logging.WARNING,  # a learned window could not be read or written
    "request_overflowed": logging.WARNING,  # the provider refused a request for its size or shape, or read a part
    "request_resent": logging.INFO,  # once more, strictly smaller or mended
    "answer_limit_lowered": logging.WARNING,  # prompt and answer together did not fit
    "history_halved": logging.WARNING,  # the last resort: the older half was dropped
    "usage_distrusted": logging.WARNING,  # an endpoint's input tokens do not count what is sent
    "context_budget": logging.INFO,  # sessions: the window, what of it may be used, and how it is shared
    "session_progress": logging.INFO,  # sessions: how far the first view of many messages has come
    "view_over_window": logging.WARNING,  # sessions: nothing may be compacted by itself, and it does not fit
    "context_built": logging.INFO,  # sessions: what the view is made of
    "summary_prepared": logging.INFO,  # in the background; not in force yet
    "summary_adopted": logging.INFO,  # one that was prepared is in force now
    "recalled": logging.INFO,  # what the newest message asks about is quoted behind it
    "summary_discarded": logging.INFO,  # it came too late, or what it covers has changed
    "background_failed": logging.WARNING,  # the view goes on as it is
    "lease_lost": logging.WARNING,  # it could not be renewed in time: what is being made will be discarded
    "compaction_undone": logging.INFO,
}

_KEY_VARIABLE = re.compile(r"(?:_KEY|APIKEY|_TOKEN|_SECRET|PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)$")
_SHORT = 200
"""Characters of what is remembered without secrets."""

_SHORTEST_KEY = 8
"""Characters. What is shorter may be a common word, and is not looked for."""


def scrub(text: str, keys: Iterable[str] = ()) -> str:
    """The text without keys: the given ones, those in the environment, and what looks like one (``redaction``)."""
    return _without(text, _known(keys))


def _known(keys: Iterable[str]) -> list[str]:
    """These keys and those in the environment, the longest first."""
    # By name first: each value that is read is decoded.
    found = {*keys, *(os.environ.get(name, "") for name in os.environ if _KEY_VARIABLE.search(name))}
    # Longest first: one key may be the beginning of another, whose rest would be told.
    return sorted((key for key in found if len(key) >= _SHORTEST_KEY), key=len, reverse=True)


def _without(text: str, keys: Iterable[str]) -> str:
    for key in keys:
        text = text.replace(key, REDACTED)
    return _redacted(text) if len(text) <= _SHORT else redact(text)


def _all_without(value: Any, keys: Sequence[str]) -> Any:
    """A JSON value with each of its texts without keys. They are looked for in all texts of a list at once: one by one
    takes ten times as long, and a history may have thousands of faults.
    """
    if isinstance(value, str):
        return _without(value, keys)
    if not isinstance(value, Mapping | list | tuple) or _without(said := "\n".join(_texts(value)), keys) == said:
        return value
    if isinstance(value, Mapping):
        return {name: _all_without(inner, keys) for name, inner in value.items()}
    return [_all_without(inner, keys) for inner in value]


def _texts(value: Any) -> Iterator[str]:
    """The texts inside of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


@lru_cache(maxsize=256)
def _redacted(text: str) -> str:
    """``redact`` for short texts: calls of a conversation tell the same again and again, such as its window."""
    return redact(text)


@dataclass(frozen=True, slots=True)
class Event:
    """One decision: its ``name`` (a key of ``LEVELS``), a sentence for people, and the figures behind it."""

    name: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SummaryStart:
    """A summarizer, ``model``, is about to be asked about ``messages`` of the history, of ``tokens`` in all."""

    model: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SummaryPiece:
    """Text as it arrives. ``request`` counts from 1: several may be answered side by side.

    ``kind`` is ``summarize``, ``chunk``, ``update``, ``merge`` or ``shorten``; the last request to arrive is the
    summary.
    """

    text: str
    kind: str
    request: int


@dataclass(frozen=True, slots=True)
class SummaryProgress:
    """How far a summary has come. Sizes are tokens of the conversation, times are seconds.

    ``chunks`` may still grow: a chunk that does not fit is halved. ``seconds_left`` is None while nothing is done.
    """

    chunks_done: int
    chunks: int
    depth: int
    tokens_done: int
    tokens: int
    seconds: float
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class SummaryEnd:
    """What came of it: the summary's ``text``, or None and the ``error``. Sizes are tokens.

    ``text`` and ``error`` are both set if a paid summary did not fit. Figures are of all
    that was answered, also when it came to nothing. ``compression_ratio`` is the share of the evicted tokens that is
    gone, with evidence counted; ``cost`` is in US dollars by genai-prices, None where the model is not known there;
    ``model`` names those that answered.
    """

    text: str | None
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    chunk_count: int = 0
    max_depth: int = 0
    compression_ratio: float = 0.0
    seconds: float = 0.0
    cost: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a caller wants to be told about summaries, sync or async functions of one value each."""

    on_start: Callable[[SummaryStart], object] | None = None
    on_stream: Callable[[SummaryPiece], object] | None = None
    on_progress: Callable[[SummaryProgress], object] | None = None
    on_end: Callable[[SummaryEnd], object] | None = None


class Observer:
    """Collects the events of one call, logs each, and hands each to the caller's hook; runs the other hooks."""

    def __init__(self, hook: Callable[[Event], object] | None = None, hooks: Hooks | None = None) -> None:
        self.events: list[Event] = []
        self.hooks = hooks or Hooks()
        self.keys: set[str] = set()
        """Keys of clients in use, which are taken out of all that is told."""
        self._hook = hook
        self._broken: set[int] = set()

    def emit(self, name: str, message: str, /, **data: Any) -> None:
        """Record one decision. ``data`` holds plain JSON values: sizes in tokens, times in seconds."""
        level = LEVELS[name]
        # Once for the message and its data: reading the environment takes longer than the rest.
        known = _known(self.keys)
        message = _without(message, known)
        data = {key: _all_without(value, known) for key, value in data.items()}
        event = Event(name, message, data)
        self.events.append(event)
        logger.log(level, "%s: %s", name, message, extra={"contextfold": {"event": name, **data}})
        if self._hook is None:
            return
        try:
            self._hook(event)
        except Exception:  # an observer must never change what it observes
            self._hook = None
            logger.exception("the event hook failed on %r and is not called again during this call", name)

    def another(self) -> Observer:
        """One for work that goes on after this call: the same hooks, and events of its own."""
        other = Observer(self._hook, self.hooks)
        other.keys = set(self.keys)
        return other

    def emit_once(self, name: str, message: str, /, **data: Any) -> None:
        """``emit``, unless the same decision was told in this call already."""
        if not any(event.name == name and event.data == data for event in self.events):
            self.emit(name, message, **data)

    def scrub(self, text: str) -> str:
        """The text without keys."""
        return scrub(text, self.keys)

    async def tell(self, ports: Ports, value: SummaryStart | SummaryPiece | SummaryProgress | SummaryEnd) -> None:
        """Run the hook for this kind of value, if there is one. One that raises is not called again in this call."""
        hook = self._hook_for(value)
        if hook is None or id(hook) in self._broken:
            return
        try:
            await ports.tell(hook, value)
        except Exception:  # an observer must never change what it observes
            self._broken.add(id(hook))
            logger.exception("a summary hook failed and is not called again during this call")

    def _hook_for(self, value: object) -> Callable[[Any], object] | None:
        match value:
            case SummaryStart():
                return self.hooks.on_start
            case SummaryPiece():
                return self.hooks.on_stream
            case SummaryProgress():
                return self.hooks.on_progress
            case _:
                return self.hooks.on_end
