"""Search over the messages at hand, without a store: the same words, order and tools as in a session.

What belongs here: hits and entries, and searching a list. What does not: scores (``ranking``), and sessions
(``store.finding``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contextfold import formats, json_values
from contextfold.errors import InputError, message_list, shown, whole_number
from contextfold.harness import without_notes
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolResult
from contextfold.recall.markdown import as_markdown
from contextfold.recall.memory import MemoryIndex
from contextfold.recall.ranking import Order, rank
from contextfold.recall.snippets import snippet
from contextfold.recall.tools import DEFAULT_TOKENS, HistoryTools
from contextfold.recall.words import Query, parse_query
from contextfold.summary.render import without_blobs

ROLES = ("system", "developer", "user", "assistant", "tool")
MOST_NEIGHBORS = 20

UNREADABLE = "unreadable"
"""In the place of a role: nobody said this. The text says why a stored message cannot be read, and the way out."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A message as people read it. Of one that a damaged store cannot give, the ``role`` is ``"unreadable"`` and the
    text says what is wrong."""

    index: int
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that a search found: its number, who said it, and the place in it. Of one that a damaged store cannot
    give, the ``role`` is ``"unreadable"`` and the snippet says what is wrong."""

    index: int
    role: str
    snippet: str
    evicted: bool = False
    """Whether it is out of the view of a session, so that only here it can be read."""
    score: float = 0.0
    """How well it answers, for comparing hits of one search."""
    neighbors: tuple[HistoryEntry, ...] = ()
    """The messages next to it, where they were asked for: the answer stands next to the question."""


def search(
    messages: Sequence[Any],
    query: str,
    *,
    limit: int = 20,
    order: Order = "best",
    roles: str | Iterable[str] | None = None,
    neighbors: int = 0,
    format: str | None = None,
) -> list[Hit]:
    """The messages of a list that answer ``query``, best first: BM25 over any of its words.

    Words in quotes must occur in a row, and names (``src/app.py``, ``TCK-0042``) come first. Words are found in other
    forms too (``groups`` by ``group``). ``order="newest"``: all that have any word, newest first. ``roles``: only
    messages of these. ``neighbors``: also give as many messages before and after each hit. ``format`` is detected.

    Raises ``InputError`` for a query without a word, or an option that cannot be, ``FormatError`` for what is no
    message. For several searches over one list, make a ``MessageSearch`` once.
    """
    found = MessageSearch(messages, format=format)
    return found.search(query, limit=limit, order=order, roles=roles, neighbors=neighbors)


class MessageSearch:
    """Searches and reads one list of messages, in any supported format. Later changes of the list are not seen.

    Raises ``FormatError`` for what is no message.
    """

    def __init__(self, messages: Sequence[Any], *, format: str | None = None) -> None:
        messages = message_list(messages)
        source = formats.get(format) if format else formats.detect(messages)
        self._entries = [
            HistoryEntry(n, said_by(message), readable(message))
            for n, message in enumerate(formats.decode(messages, source))
        ]
        self._indexes: dict[tuple[str, ...] | None, MemoryIndex] = {}

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        order: Order = "best",
        roles: str | Iterable[str] | None = None,
        neighbors: int = 0,
    ) -> list[Hit]:
        """As the function ``search``."""
        asked, wanted = checked(query, limit, order, roles, neighbors)
        entries = self._entries
        return [
            Hit(
                index=one.index,
                role=entries[one.index].role,
                snippet=snippet(entries[one.index].text, asked),
                score=round(one.score, 4),
                neighbors=tuple(entries[n] for n in beside(one.index, neighbors, len(entries))),
            )
            for one in rank(asked, self._index(wanted), limit, order)
        ]

    def read(self, start: int = 0, count: int = 50) -> list[HistoryEntry]:
        """Messages as people read them, from number ``start`` on, at most ``count``."""
        whole_number("start", start, 0)
        whole_number("count", count, 1)
        return self._entries[start : start + count]

    def tools(self, max_tokens: int = DEFAULT_TOKENS) -> HistoryTools:
        """``search_history`` and ``read_history`` over these messages, for an agent."""
        return HistoryTools(self, max_tokens)

    def _index(self, roles: tuple[str, ...] | None) -> MemoryIndex:
        found = self._indexes.get(roles)
        if found is None:
            found = indexed(self._entries, roles)
            self._indexes[roles] = found
        return found


def readable(message: Message) -> str:
    """What a message says, as markdown: words, calls and results; no hidden reasoning, media by their size, also those
    inside of blocks that we do not interpret.
    """
    parts = tuple(_without_data(part) for part in message.parts if not isinstance(part, Reasoning))
    return as_markdown(message.with_parts(parts), lambda data, kind: f"{kind or 'media'}, {len(data):,} bytes")


def said_by(message: Message) -> str:
    """Who says what a message says. Several formats have results of tools in messages of the user's; they are a tool's,
    unless a person wrote beside them.
    """
    if message.role != "user" or not message.tool_results:
        return message.role
    others = [part for part in message.parts if not isinstance(part, ToolResult)]
    spoken = any(without_notes(part.text) if isinstance(part, Text) else isinstance(part, Media) for part in others)
    return "user" if spoken else "tool"


def _without_data(part: Part) -> Part:
    if not isinstance(part, Opaque) or not part.source:
        return part
    if part.text and not isinstance(part.source, dict):  # an object of a framework
        return replace(part, text=without_blobs(part.text), source=None)
    return replace(part, text=without_blobs(json_values.write(part.source, default=str)), source=None)


def indexed(entries: Iterable[HistoryEntry], roles: tuple[str, ...] | None = None) -> MemoryIndex:
    """An index of messages, of these roles alone. How many messages there are, and how long, all together say."""
    index = MemoryIndex()
    for entry in entries:
        index.add(entry.index, entry.text, found=roles is None or entry.role in roles)
    return index


def checked(
    query: str, limit: int, order: str, roles: str | Iterable[str] | None, neighbors: int
) -> tuple[Query, tuple[str, ...] | None]:
    """The query and the roles of a search. Raises ``InputError`` for what cannot be asked."""
    if not isinstance(query, str):
        raise InputError(f"the query is {shown(query)}: it must be text")
    asked = parse_query(query)
    if asked.is_empty:
        raise InputError(f"the query {query!r} has no word to look for")
    whole_number("limit", limit, 1)
    if order not in ("best", "newest"):
        raise InputError(f"order is {order!r}: it must be 'best' or 'newest'")
    whole_number("neighbors", neighbors, 0, MOST_NEIGHBORS)
    wanted = None if roles is None else (roles,) if isinstance(roles, str) else tuple(sorted(set(roles)))
    if wanted is not None and (unknown := [role for role in wanted if role not in ROLES]):
        raise InputError(f"role {unknown[0]!r} is not one of {', '.join(ROLES)}")
    return asked, wanted


def beside(index: int, neighbors: int, total: int) -> list[int]:
    """The numbers of as many messages before and after one."""
    return [n for n in range(max(0, index - neighbors), min(total, index + neighbors + 1)) if n != index]
