"""What frameworks and callers hand to a face, looked at before the engine sees it.

The engine's own border (``formats``, ``calls.request``) lets errors of ours through alone. A face looks at things
before that: it tells apart which messages are known, and reads settings out of objects of its framework. Those may hold
anything, and raise anything.

What belongs here: turning that into an error of ours. What does not: what any framework calls its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from contextfold.compactor import Compactor
from contextfold.errors import ContextfoldError, InputError, PolicyError, border
from contextfold.observe import logger, scrub
from contextfold.record.compaction import Compaction

T = TypeVar("T")


def reading(what: str) -> AbstractContextManager[None]:
    """Whatever objects of a stranger raise while they are looked at is an ``InputError`` about ``what``."""
    return border(f"{what} cannot be read")


def listed(what: str, value: Any) -> list[Any]:
    """A list (or tuple) of messages that a framework hands over. Raises ``InputError`` for anything else."""
    if not isinstance(value, list | tuple):
        raise InputError(f"{what} must be a list of messages, not {type(value).__name__}")
    return value  # type: ignore[return-value]


def checked_compactor(value: Any) -> Compactor:
    """The compactor that a caller gave. Raises ``PolicyError`` for what is none."""
    if not isinstance(value, Compactor):
        raise PolicyError(f"compactor must be a Compactor of contextfold, not {type(value).__name__}")
    return value


def sending_nothing(value: Any) -> Compactor:
    """The compactor that a caller gave to a face that never sends a request itself. Raises ``PolicyError`` for what is
    none, and for ``summarizer="same"``, which asks the model that a request goes to.
    """
    compactor = checked_compactor(value)
    compactor._needs_no_model()
    return compactor


def stored_record(where: str, text: Any, told: set[int] | None = None) -> Compaction | None:
    """As ``stored``, of a record."""
    return stored(where, text, Compaction.from_json, told)


def stored(where: str, text: Any, read: Callable[[Any], T], told: set[int] | None = None) -> T | None:
    """What was kept in a place that a framework has for us, and others may write to, or a newer version of this library
    has. What cannot be read is as good as nothing, and the log says so: the messages themselves are all there.

    ``told``: what the log has said of this conversation, where its place is read again at each request.
    """
    if text is None:
        return None
    try:
        return read(text)
    except (ContextfoldError, TypeError, ValueError) as failed:
        told, known = set() if told is None else told, hash(str(text))
        if known not in told:
            told.add(known)
            logger.warning("the record in %s cannot be read, so the whole history is: %s", where, scrub(str(failed)))
        return None


def filled(stand_in: Any, inner: str, name: str) -> Any:
    """What an object of ours stands for, for its ``__getattr__``. Raises ``AttributeError``, and does not ask itself
    again, while ``copy`` or ``pickle`` make an object that has nothing yet.
    """
    held = vars(stand_in)
    if inner not in held:
        raise AttributeError(name)
    return held[inner]
