"""Sessions: conversations that outlive the process, on SQLite, PostgreSQL, or tables of your own.

    session = compactor.session("thread-1", store="sqlite:///contextfold.db")
    session.append([{"role": "user", "content": "Hello"}])
    session.view()

What belongs here: the public names, and opening stores by their URL. What does not: everything else. SQLAlchemy is
imported when a store is opened, and not before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from contextfold.errors import InputError, held, shown
from contextfold.store import addresses
from contextfold.store.options import SessionKeywords, SessionOptions
from contextfold.store.protocol import SessionStore, SummaryStore
from contextfold.store.request import EngineParts
from contextfold.store.retention import Retention
from contextfold.store.session import Session, SessionResult, SessionView
from contextfold.store.values import (
    Link,
    NewMessage,
    NewSummary,
    SessionState,
    StoredMessage,
    StoredSummary,
    Thread,
)

if TYPE_CHECKING:
    from contextfold.store.sql import SQLStore

__all__ = [
    "Link",
    "NewMessage",
    "NewSummary",
    "Retention",
    "Session",
    "SessionOptions",
    "SessionResult",
    "SessionState",
    "SessionStore",
    "SessionView",
    "StoredMessage",
    "StoredSummary",
    "SummaryStore",
    "Thread",
    "open_session",
    "open_store",
]

_OPTIONS = ("namespace", "options", "user", "get_optimization_config", "format", "archive")
"""What a session takes besides its thread and store."""

_METHODS = tuple(name for name, given in vars(SummaryStore).items() if callable(given) and not name.startswith("_"))
"""What a store of anyone's own must have."""

_opened: dict[str, SQLStore] = {}


def open_store(url: str) -> SQLStore:
    """The store at ``sqlite:///FILE`` or ``postgresql+psycopg://USER@HOST/DATABASE``, with its tables up to date.

    One URL is one store in a process, with its connections. Raises ``InputError`` for another URL, and where an extra
    is missing; ``StoreError`` comes from the first use.
    """
    try:
        from contextfold.store.sql import SQLStore
    except ImportError:
        extra = "postgres" if str(url).startswith("postgres") else "store"  # which brings SQLAlchemy, and its driver
        raise InputError(f"sessions need SQLAlchemy: pip install 'contextfold[{extra}]'") from None
    made = SQLStore(url)
    if made.database.is_in_memory:
        return made
    return _opened.setdefault(made.database.url.render_as_string(hide_password=False), made)


def open_existing(url: str) -> SQLStore:
    """The store at a URL, for who wants what it holds: opening it makes no database.

    Raises ``InputError`` where there is no such file, and as ``open_store``.
    """
    opened = open_store(url)
    if opened.database.is_missing:
        raise InputError(f"{addresses.shown(url)}: there is no such file: name the store that holds the sessions")
    return opened


def open_session(means: EngineParts, thread_id: str, store: Any, **options: Unpack[SessionKeywords]) -> Session:
    """A session on a store, or on the store at a URL; what ``Compactor.session`` calls.

    What refusals teach of the window of a model that has a name is kept in the store, if that can, unless the compactor
    keeps it elsewhere.
    """
    if unknown := options.keys() - _OPTIONS:
        raise InputError(f"there is no option {', '.join(sorted(unknown))}; there are: {', '.join(_OPTIONS)}")
    opened = open_store(store) if isinstance(store, str) else store
    if missing := [name for name in _METHODS if not callable(held(opened, name))]:
        way = "a SummaryStore has them, and a URL such as sqlite:///FILE names one"
        raise InputError(f"store is {shown(opened)}, and has no {', '.join(missing)}: {way}")
    if means.windows.model and hasattr(opened, "save_window"):
        means = replace(means, windows=means.windows.kept_in(opened))
    return Session(means, thread_id, opened, **options)
