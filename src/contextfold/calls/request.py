"""One turn of a conversation, as values: what a caller asks for, and what it gets.

What belongs here: ``Request`` and ``CompactionResult``. What does not: how one becomes the other (``compactor``), and
sending it (``recovery``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypedDict, Unpack

from contextfold import formats
from contextfold.cached import cached_property
from contextfold.calls.same import Ask
from contextfold.conversation.ledger import Ledger
from contextfold.errors import InputError, check_cancel, check_tools, held, message_list, system_text
from contextfold.observe import Event
from contextfold.passes.means import Archiver, Made
from contextfold.passes.question import MANUAL, Proposal
from contextfold.ports import Cancellation
from contextfold.record.compaction import Compaction, SummaryRecord
from contextfold.tokens import Calibration

UNCALIBRATED = Calibration()

PASSED_OVER = 0.02
"""Share of a view that its provider may leave uncounted, and still teach how it counts: what the user asked first stays
before a provider's own compaction for good."""

UNLIMITED: Any = object()
"""The caller's ``send`` takes no answer limit."""

Before = Callable[[Proposal], Any]
"""Called before a pass, sync or async. Returns False to veto it, ``Pins`` to keep more in it, None to let it be."""

After = Callable[[Made], Any]
"""Called after a pass that succeeded, before its record is in force; what it raises ends the call, unchanged."""

Once = Callable[[str | None, Callable[[], Awaitable[Compaction | None]] | None], Awaitable[Compaction | bool | None]]
"""``once(base, make)``: what ``make`` prepares, or what another process has prepared behind the record ``base``; with
None for ``make`` what another one has, or True where one is at it."""


class CompactOptions(TypedDict, total=False):
    """The options of ``Compactor.compact`` and of all that calls it; see there."""

    format: str | None
    to: str | None
    system: str | None
    tools: Sequence[Any] | None
    force: bool
    instructions: str
    before: Before | None
    after: After | None
    calibration: Calibration | None
    model: str | None
    endpoint: str
    cancel: Cancellation | None
    archive: Archiver | None


class AsyncCallOptions(CompactOptions, total=False):
    """The options of ``Compactor.acall``."""

    max_tokens: int | None
    on_result: Callable[[CompactionResult], object] | None
    ask: Ask | None
    once: Once | None
    whose: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call."""

    messages: Sequence[Any]
    previous: Compaction | None = None
    format: str | None = None
    to: str | None = None
    system: str | None = None
    tools: Sequence[Any] | None = None
    forced: str | None = None
    """Why to compact whatever the trigger says; None: only if it fires."""
    instructions: str = ""
    before: Before | None = None
    after: After | None = None
    calibration: Calibration = UNCALIBRATED
    model: str | None = None
    endpoint: str = ""
    cancel: Cancellation | None = None
    archive: Archiver | None = None
    """Gets the originals of what leaves the view, before it does."""
    ask: Ask | None = None
    """Asks the model that the view goes to for a summary; None where nothing is sent."""
    once: Once | None = None
    """Prepares a summary where no one else does."""
    whose: bytes = b""
    """For whom it is: what was prepared for another one is not for this one, whatever the messages say."""
    answer_limit: int | None = None
    """The answer limit that the view is sent with, where one is known."""
    sending: bool = False
    """The view goes to a provider at once: a call without a result is answered in it, as none would take it."""

    @classmethod
    def of(
        cls, messages: Sequence[Any], previous: Compaction | None = None, **options: Unpack[CompactOptions]
    ) -> Request:
        """The request of a public call. Raises ``InputError`` for options that there are not, and of the wrong kind."""
        if unknown := options.keys() - CompactOptions.__annotations__.keys():
            names = ", ".join(CompactOptions.__annotations__)
            raise InputError(f"there is no option {', '.join(sorted(unknown))}; there are: {names}")
        given: dict[str, Any] = {name: _as_text(value) for name, value in options.items()}
        forced = MANUAL if _truth("force", given.pop("force", False)) else None
        if given.get("calibration") is None:
            given["calibration"] = UNCALIBRATED
        request = cls(message_list(messages), previous, forced=forced, **given)
        _check(request)
        return request

    def again(self, result: CompactionResult, reason: str | None) -> Request:
        """The same conversation once more, under the record that is in force now, for a reason to compact."""
        return replace(self, previous=result.compaction, forced=reason)


@dataclass(frozen=True)
class CompactionResult:
    """What a call made of a conversation. Sizes are tokens, system prompt and tools included.

    Its ``repr`` has the figures, and nothing of what was said.
    """

    messages: list[Any] = field(repr=False)
    """The view to send, in the format that came in or the one asked for."""
    compaction: Compaction | None = field(repr=False)
    """The record in force; pass it as ``previous`` next turn."""
    changed: bool
    """True if this call made a new compaction."""
    ledger: Ledger = field(repr=False)
    tokens_before: int
    tokens_after: int
    trigger: str | None
    """What made this call compact; None if it did not."""
    events: tuple[Event, ...] = field(repr=False)
    window: int
    target: int
    format: str
    window_source: str
    """Who says how large the window is: explicit, profile, registry, learned or default."""
    calibration: Calibration = field(repr=False)
    """How far the provider's count is from the estimate; pass it as ``calibration`` next turn."""
    estimated_tokens: int
    """The view by the bare estimate, uncalibrated: what the provider's usage for it is compared with."""
    _floor: Callable[[], Mapping[str, int]] = field(repr=False)
    _text_tokens: Callable[[], int] = field(repr=False)
    _passed_over: Callable[[], int] = field(repr=False)
    _history_tokens: Callable[[], int] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # What is asked later rests on the whole history and the means of the call: a copy takes the answers along.
        return {
            **vars(self),
            "_floor": partial(dict, self.floor),
            "_text_tokens": partial(int, self.text_tokens),
            "_passed_over": partial(int, self._uncounted),
            "_history_tokens": None if self.history_tokens is None else partial(int, self.history_tokens),
        }

    @cached_property
    def floor(self) -> Mapping[str, int]:
        """Tokens that no compaction can remove, item by item."""
        return self._floor()

    @cached_property
    def text_tokens(self) -> int:
        """What every provider counts of the view, by the bare estimate: texts, calls and results.

        Not the system prompt and tools, whose schemas some rewrite to half their size; not media, which have many
        prices; not reasoning, which some leave out when they read; not what stands before their own compaction.
        """
        return self._text_tokens()

    @cached_property
    def _uncounted(self) -> int:
        """What the provider need not count of the view, by the bare estimate: it reads its own compaction in place of
        what stands before that."""
        return self._passed_over()

    @property
    def is_counted_whole(self) -> bool:
        """Whether the provider's usage is about as good as all of the view."""
        return self._uncounted <= PASSED_OVER * self.estimated_tokens

    @cached_property
    def history_tokens(self) -> int | None:
        """The request with the whole history in place of the view; None where not all of that is at hand, as in a
        session."""
        return None if self._history_tokens is None else self._history_tokens()

    @property
    def over_window(self) -> bool:
        """The view does not fit the window: nothing was due, or what was compacted is undone. Compact it with
        ``force=True``, or send it with ``call``, which makes it smaller after a refusal."""
        return self.tokens_after > self.window

    @property
    def summary(self) -> SummaryRecord | None:
        """The summary in the view, with its evidence and what it took; None where there is none."""
        return self.compaction.summary if self.compaction else None

    def after_usage(self, input_tokens: int | None) -> CompactionResult:
        """The same result with what the provider reported for exactly this view learned.

        ``input_tokens`` counts cached ones. None or zero teaches nothing, nor does what need not be about all of it.
        """
        if not input_tokens or not self.is_counted_whole:
            return self
        return replace(self, calibration=self.calibration.learn(self.estimated_tokens, input_tokens))


def _as_text(value: Any) -> Any:
    """A kind of ``str`` as the text that it holds: it may compare in its own way, or not at all."""
    return str.__str__(value) if isinstance(value, str) and type(value) is not str else value


def _truth(name: str, value: object) -> bool:
    try:
        return bool(value)
    except Exception as error:
        raise InputError(f"{name} must be True or False, not {type(value).__name__}") from error


def _check_simple(request: Request) -> None:
    """Texts and functions."""
    for name in ("model", "endpoint", "instructions", "format"):
        value = getattr(request, name)
        if not isinstance(value, str) and (value is not None or name in ("endpoint", "instructions")):
            raise InputError(f"{name} must be a text, not {type(value).__name__}")
    for name in ("before", "after"):
        if (hook := getattr(request, name)) is not None and not callable(hook):
            raise InputError(f"{name} must be a function, not {type(hook).__name__}")
    check_cancel(request.cancel)


def check_state(previous: object, calibration: object) -> None:
    """Raises ``InputError`` for what is no state of a conversation; None is one without any."""
    if previous is not None and not isinstance(previous, Compaction):
        raise InputError(
            f"previous must be the compaction of an earlier call, not {type(previous).__name__}: "
            "pass out.compaction, or Compaction.from_json(text) for a stored one"
        )
    if calibration is not None and not isinstance(calibration, Calibration):
        raise InputError(
            f"calibration must be the one of an earlier result, not {type(calibration).__name__}: pass out.calibration"
        )


def check_archive(archive: object) -> None:
    """Raises ``InputError`` for what takes the originals of no conversation; None takes none."""
    takes = callable(held(archive, "append")) and isinstance(held(archive, "address"), str)
    if archive is not None and not takes:
        raise InputError(
            f"archive must be the archive of one conversation, not {type(archive).__name__}: "
            "open_archive(ADDRESS).thread(ID) of contextfold.archive makes one"
        )


def _check(request: Request) -> None:
    """Raises ``InputError`` for arguments of the wrong kind, before anything looks into them."""
    check_state(request.previous, request.calibration)
    system_text(request.system)
    check_tools(request.tools)
    if request.to is not None:
        formats.get(request.to)  # here, and not only when a view is written: a summary would be paid for by then
    _check_simple(request)
    check_archive(request.archive)
