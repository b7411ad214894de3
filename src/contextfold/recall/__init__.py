"""Finding evicted originals again: words to search by, snippets to show, and tools that an agent can be given.

    words      texts and queries as words of a full-text index, Chinese and Japanese included
    snippets   the place in a text that a query is about
    tools      ``search_history`` and ``read_history`` for agents, capped so that reading back cannot flood the window

What is searched is stored elsewhere (``store``).
"""

from contextfold.recall.tools import HistoryTools
from contextfold.recall.words import Query, parse_query, words_of

__all__ = ["HistoryTools", "Query", "parse_query", "words_of"]
