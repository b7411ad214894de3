"""What frameworks and callers hand to a face, looked at before the engine sees it.

The engine's own border (``formats``, ``calls.request``) lets errors of ours through alone. A face looks at things
before that: it tells apart which messages are known, and reads settings out of objects of its framework. Those may hold
anything, and raise anything.

What belongs here: turning that into an error of ours. What does not: what any framework calls its fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contextfold.compactor import Compactor
from contextfold.errors import ContextfoldError, InputError, PolicyError, shown


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever objects of a stranger raise while they are looked at is an ``InputError`` about ``what``."""
    try:
        yield
    except ContextfoldError:
        raise
    except Exception as error:
        raise InputError(f"{what} cannot be read: {type(error).__name__}: {_text_of(error)}"[:500]) from error


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it holds an object that raises when it is shown
        return shown(error)


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
