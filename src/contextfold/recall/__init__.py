"""Finding again what was said: in a list of messages, in a session, by an agent.

    words, stems   texts and queries as words of a full-text index, in any script
    ranking        which messages answer a query, best first: BM25, the same over every index
    memory         an index in memory
    history        ``search`` over the messages at hand, hits and entries
    snippets       the place in a text that a query is about
    markdown       a message as people read it
    tools          ``search_history`` and ``read_history`` for agents, within a limit of tokens

An index on disk belongs to the store (``store.search``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextfold.recall.history import HistoryEntry, Hit, MessageSearch, search
    from contextfold.recall.tools import HistoryTools
    from contextfold.recall.words import Query, parse_query, words_of

__all__ = ["HistoryEntry", "HistoryTools", "Hit", "MessageSearch", "Query", "parse_query", "search", "words_of"]

_HOMES = {
    "HistoryEntry": "history",
    "HistoryTools": "tools",
    "Hit": "history",
    "MessageSearch": "history",
    "Query": "words",
    "parse_query": "words",
    "search": "history",
    "words_of": "words",
}


def __getattr__(name: str) -> Any:
    """Loaded when asked for: most conversations are never searched."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
