"""Every exception that contextfold raises on purpose.

    ContextfoldError
    ├── InputError            the caller's data: a message, a file, a format (names the place)
    │   └── FormatError       a wire object that is not what its format says
    ├── PolicyError           the caller's settings (names the field, the value and what is allowed)
    ├── CannotFit             no compaction can reach the target: lists the floor item by item
    │   └── StillTooLong      the provider refused every view that could be made, the smallest included
    ├── ArchiveError          originals could not be saved, or are not there any more as they were saved
    ├── StoreError            a session could not be read or written; what was acknowledged before is still there
    │   ├── StoreUnavailable  the database is gone, full, read-only or locked: the same call works once it is back
    │   ├── StoreCorrupt      what is stored cannot be read: names the row
    │   └── StoreConflict     another writer changed the session meanwhile
    ├── SummaryFailed         no acceptable summary could be had; nothing has changed
    │   └── TimedOut          the summarizer took longer than it was given
    ├── Cancelled             the caller's token asked to stop; nothing has changed
    ├── RefusedInStream       a provider refused a request inside a stream, after it had answered with success
    └── ContextOverflow       raised *by* a summarizer to say that its prompt did not fit

They divide by who can mend it. Foreign exceptions are mapped to these at the border where they arrive.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any


class ContextfoldError(Exception):
    """The base of all errors raised on purpose. Can be copied, and sent to another process, as whatever it is."""

    response: Any = None
    """Of ``Session.call``: the provider's answer, where it came and could not be appended. It is paid for."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are made again from their text alone. One that takes more fails then, where a pool of processes
        # reads its answer: the whole pool breaks, or waits for ever.
        # What an SDK answered, a stream perhaps, can seldom be sent.
        state = {name: value for name, value in vars(self).items() if name != "response"}
        return _again, (type(self), self.args, state)


def _again(kind: type[ContextfoldError], args: tuple[Any, ...], state: dict[str, Any]) -> ContextfoldError:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error


class InputError(ContextfoldError, ValueError):
    """The given data cannot be read. The text names the file, line or index, and what to do."""


def shown(value: object, most: int = 200) -> str:
    """A value that someone gave, for the text of an error: never longer than so, and never an error itself."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a number without a decimal text, a value too deep, an object that raises
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(text: str, most: int) -> str:
    """The beginning of a text on one line, with an ellipsis where more follows."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def text_of(error: BaseException) -> str:
    """What an error says of itself. One of foreign code may raise instead: then it is named as what cannot be shown."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a body that is gone, an object that raises when it is shown
        return shown(error)


def reason(error: BaseException, most: int = 300) -> str:
    """An error of foreign code on one line, for a text of ours: ``TimeoutError: read timed out``. Never an error."""
    return f"{type(error).__name__}: {' '.join(text_of(error).split())}"[:most]


@contextmanager
def border(problem: str, kind: Callable[[str], Exception] | None = None) -> Iterator[None]:
    """Whatever foreign code raises inside is raised as ``kind`` (``InputError``): the problem, and the reason for it.

    Errors of ours pass as they are.
    """
    try:
        yield
    except ContextfoldError:
        raise
    except Exception as error:
        raise (kind or InputError)(f"{problem}: {reason(error)}") from error


def held(value: object, name: str) -> Any:
    """An attribute of an object that someone gave; None where there is none, or where asking for it raises."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - whatever its own code raises
        return None


def functions(**given: object) -> None:
    """Raise ``PolicyError`` for a hook that is neither a function nor None: it would fail in the middle of a run."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise PolicyError(f"{name} is {shown(value)}: it must be a function, or None")


def plain_functions(**given: object) -> None:
    """``functions`` for those that decisions ask, which await nothing: an async one would never run."""
    functions(**given)
    for name, value in given.items():
        if value is not None and is_async_function(value):
            raise PolicyError(f"{name} is async, and nothing awaits it: {PLAIN}")


PLAIN = "give a plain function, which hands over what has to wait, to a queue for example"


def is_async_function(function: Any) -> bool:
    """Whether calling it gives an awaitable at once: ``async def``, also behind decorators, as in the SDKs."""
    target = function.func if isinstance(function, functools.partial) else function
    target = inspect.unwrap(target)
    # Objects of SDKs may be called as well, by an async method of their class.
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def check_callable(**given: object) -> None:
    """Raise ``InputError`` for what is neither a function nor None: before a request, whose answer would be lost."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise InputError(f"{name} must be a function, not {type(value).__name__}")


def check_send(send: object) -> None:
    """Raise ``InputError`` for what cannot send a view."""
    if not callable(send):
        raise InputError(f"send must be a function of a view that returns a response, not {shown(send)}")


def check_cancel(cancel: object) -> None:
    """Raise ``InputError`` for what can stop no call."""
    if cancel is not None and not callable(held(cancel, "is_set")):
        kind = type(cancel).__name__
        raise InputError(f"cancel must be a threading.Event, or another object with is_set, not {kind}")


def message_list(value: object, hint: str = "pass the list inside it") -> list[Any] | tuple[Any, ...]:
    """The messages that a caller gave: the very list or tuple, or another sequence (a ``deque``) as a list.

    Raises ``InputError`` for anything else. ``hint``: what to do about a mapping.
    """
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        advice = f": {hint}" if isinstance(value, Mapping) else ""
        raise InputError(f"messages must be a list of messages, not {type(value).__name__}{advice}")
    with border("messages cannot be read"):
        return list(value)


def system_text(value: object) -> str | None:
    """The system prompt that a caller gave. Raises ``InputError`` for anything but a text."""
    if isinstance(value, str | None):
        return value
    advice = ": join the texts of its blocks" if isinstance(value, list | tuple) else ""
    raise InputError(f"system must be the text of the system prompt, not {type(value).__name__}{advice}")


def check_tools(tools: object) -> None:
    """Raise ``InputError`` for what is no list of declarations."""
    if not isinstance(tools, Iterable | None) or isinstance(tools, str | bytes | Mapping):
        raise InputError(f"tools must be a list of declarations, not {type(tools).__name__}: put it in a list")


def plain_number(value: object) -> int | float | None:
    """A number that a caller gave, as one of Python's own: NumPy's, fractions and others are read, too. None for
    anything else, and for ``True`` and ``False``.
    """
    if isinstance(value, int | float):
        return None if isinstance(value, bool) else value
    try:
        return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else None
    except (ArithmeticError, TypeError, ValueError):  # larger than any float, or a class that converts to none
        return None


def plain_integer(value: object) -> int | None:
    """``plain_number`` where it must be a whole one by its type: a float is None, too."""
    number = plain_number(value)
    return number if isinstance(number, int) else None


def whole_number(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """The number that a caller gave as ``name``. Raises ``InputError`` for anything but a whole number in its range."""
    number = plain_integer(value)
    if number is None:
        raise InputError(f"{name} is {shown(value)}: it must be a whole number")
    if (least is not None and number < least) or (most is not None and number > most):
        allowed = (
            f"be {least:,} to {most:,}"
            if most is not None
            else f"be at least {least:,}"
            if least
            else "not be negative"
        )
        raise InputError(f"{name} is {shown(value)}: it must {allowed}")
    return number


class FormatError(InputError):
    """A wire object is not what its format says. ``index`` is its place in the list, if known."""

    def __init__(self, problem: str, *, index: int | None = None) -> None:
        self.problem = problem
        self.index = index
        super().__init__(problem if index is None else f"message {index}: {problem}")


class PolicyError(ContextfoldError, ValueError):
    """A setting is not allowed. The text names the field, the value and what is allowed.

    ``problems`` has each as (the way to the field, what is wrong with it), where there is a field to name.
    """

    def __init__(self, text: str, problems: Sequence[tuple[tuple[str | int, ...], str]] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__(text)


class CannotFit(ContextfoldError):
    """The tokens that no compaction can remove exceed the limit that had to be met.

    ``floor`` maps each item ("system prompt", "tools", "newest user message", ...) to its tokens.
    """

    def __init__(self, *, limit: int, floor: Mapping[str, int], limit_name: str = "target") -> None:
        self.limit = limit
        self.limit_name = limit_name
        self.floor = dict(floor)
        self.needed = sum(self.floor.values())
        items = ", ".join(f"{name} {size:,}" for name, size in self.floor.items())
        limits = " or the ".join(dict.fromkeys(("window", limit_name)))
        super().__init__(
            f"the conversation cannot be compacted below {self.needed:,} tokens, and the {limit_name} is {limit:,}: "
            f"{items}. Raise the {limits}, shorten these items, or pin less."
        )


RECENT = "recent messages and summary"
"""In a floor: what is no item that must stay, and was made no smaller."""
_OR_DROP = ', or allow Policy(on_overflow="drop_oldest")'


class StillTooLong(CannotFit):
    """The provider refused the smallest view that could be made. Its own exception is the cause.

    ``sent``: the sizes of the views that were refused, in tokens. ``floor``: the last one of them, item by item.
    """

    def __init__(self, *, sent: Sequence[int], limit: int, floor: Mapping[str, int]) -> None:
        super().__init__(limit=limit, floor=floor, limit_name="window")
        self.sent = tuple(sent)
        items = ", ".join(f"{name} {size:,}" for name, size in self.floor.items())
        self.args = (
            f"the provider refused {' and '.join(f'{size:,}' for size in self.sent)} tokens as too long, and this view "
            f"can be made no smaller: {items}. Use a model with a larger window, shorten these items, or pin less"
            f"{_OR_DROP if RECENT in self.floor else ''}.",
        )


class RefusedInStream(ContextfoldError):
    """A stream began with success and then said, before any content, that the request was refused.

    ``body``: what the stream said, as a mapping.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = dict(body)
        super().__init__(f"refused inside the stream: {shown(self.body, 2_000)}")


class ArchiveError(ContextfoldError):
    """Originals could not be saved for certain, or cannot be read back as they were saved. The text names the file."""


class StoreError(ContextfoldError):
    """A session could not be read or written. The call changed nothing; what was acknowledged before is still there."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, is full, read-only or locked. The same call works once that is mended."""


class StoreCorrupt(StoreError):
    """What is stored cannot be read. The text names the place."""


class StoreConflict(StoreError):
    """Another writer changed the session meanwhile, and the caller asked for it to be as it was."""


class SummaryFailed(ContextfoldError):
    """No acceptable summary could be had, and the history does not fit without one. Nothing has changed.

    ``attempts`` says what each attempt ended with. The provider's own exception, if any, is the cause.
    """

    def __init__(self, problem: str, *, attempts: Sequence[str] = ()) -> None:
        self.attempts = tuple(attempts)
        super().__init__(problem)


class TimedOut(SummaryFailed, TimeoutError):
    """The summarizer took longer than it was given. ``seconds`` is the limit that ran out.

    ``total``: it was the time for the whole summary, so asking again is of no use; else the longest silence.
    """

    def __init__(self, problem: str, *, seconds: float, total: bool) -> None:
        self.seconds = seconds
        self.total = total
        super().__init__(problem)


class Cancelled(ContextfoldError):
    """The token that the caller passed as ``cancel`` was set. Nothing has changed."""


def is_control_flow(error: BaseException) -> bool:
    """Whether this was raised to steer a program, not to report a failure: LangGraph's interrupts, and ``Cancelled``.

    Interrupts are known by name, since the framework is never imported here. All else that a summarizer raises is its
    failure.
    """
    return isinstance(error, Cancelled) or any(cls.__name__ == "GraphBubbleUp" for cls in type(error).__mro__)


class ContextOverflow(ContextfoldError):
    """A summarizer raises this when its prompt did not fit; ``limit`` is its window in tokens, if it knows."""

    def __init__(self, message: str = "the prompt does not fit", *, limit: int | None = None, used: int | None = None):
        self.limit = limit
        self.used = used
        super().__init__(message)
