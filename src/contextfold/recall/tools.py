"""``search_history`` and ``read_history``: tools by which an agent looks up what it was told before.

What belongs here: their descriptions and schemas for every kind of framework, and the limit on what they return. What
does not: the search itself (``store``). Results are delimited as data: what a tool said once is no instruction now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from contextfold import json_values
from contextfold.errors import InputError, one_line, shown, whole_number
from contextfold.quoting import quoted, without_tags
from contextfold.tokens import count_tokens

SEARCH = "search_history"
READ = "read_history"

DEFAULT_TOKENS = 2_000
"""Of one answer. A tenth of a small window: several look-ups in a row still leave room to work with them."""
LEAST_TOKENS = 200
"""Of one answer: what stands around it takes more than half. With less it shows nothing, and is asked for again."""

MOST_RESULTS = 20
MOST_MESSAGES = 50
MOST_NEIGHBORS = 3

BESIDE = 400
"""Characters of a message that is only shown because it stands next to a hit."""


class FoundMessage(Protocol):
    """One hit of a search."""

    @property
    def index(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def snippet(self) -> str: ...


class ShownMessage(Protocol):
    """One message as it was."""

    @property
    def index(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...


class SearchableHistory(Protocol):
    """What a session offers (``contextfold.store``), as far as the tools need it."""

    def search(self, query: str, *, limit: int = MOST_RESULTS) -> Sequence[FoundMessage]:
        """Also called with ``order``, ``roles`` and ``neighbors``, where an agent asks for them."""
        ...

    def read(self, start: int = 0, count: int = MOST_MESSAGES) -> Sequence[ShownMessage]: ...


_SCHEMAS: Mapping[str, tuple[str, dict[str, Any], list[str]]] = {
    SEARCH: (
        "Search the earlier messages of this conversation, those that were summarized and that you no longer see "
        "included. Use it before you ask the user for something that was said already, before you guess a name, value, "
        "path or date, and when the summary mentions something without the details. Ask a question or give a few "
        "words: any of them may match, the best matches come first. Put words in double quotes if they must occur "
        "in a row. Returns message numbers with a snippet of each; read_history shows them whole.",
        {
            "query": {
                "type": "string",
                "description": "A question, or the words to look for, such as a name, a path or an error.",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "description": "The most hits."},
            "order": {
                "type": "string",
                "enum": ["best", "newest"],
                "description": "best (default): what answers best comes first. newest: the last mention comes first.",
            },
            "role": {
                "type": "string",
                "enum": ["user", "assistant", "tool"],
                "description": "Only what the user, the assistant (you) or a tool said.",
            },
            "neighbors": {
                "type": "integer",
                "minimum": 0,
                "maximum": MOST_NEIGHBORS,
                "description": "Also show as many messages before and after each hit, since the answer often stands "
                "next to the question.",
            },
        },
        ["query"],
    ),
    READ: (
        "Read earlier messages of this conversation word for word, from message number `start` on. Use it after "
        "search_history, or with a number that the summary names, when a snippet is not enough. What does not fit into "
        "the answer is left for another call, which the answer names.",
        {
            "start": {"type": "integer", "minimum": 0, "description": "The number of the first message."},
            "count": {"type": "integer", "minimum": 1, "maximum": MOST_MESSAGES, "description": "The most messages."},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "Characters of the first message to skip: for the rest of a long one.",
            },
        },
        ["start"],
    ),
}


def _tokens_of(text: str) -> int:
    return count_tokens([{"role": "user", "content": text}])


@dataclass(frozen=True)
class HistoryTools:
    """The two tools over one history. ``max_tokens`` limits every answer, whatever is asked for.

    ``count`` gives the tokens of a text; the built-in estimate if not given. Raises ``InputError`` for a ``max_tokens``
    below ``LEAST_TOKENS``.
    """

    history: SearchableHistory
    max_tokens: int = DEFAULT_TOKENS
    count: Callable[[str], int] = _tokens_of

    def __post_init__(self) -> None:
        whole_number("max_tokens", self.max_tokens, LEAST_TOKENS)

    def schemas(self, format: str = "openai-chat") -> list[dict[str, Any]]:
        """The tools as a provider wants them: ``openai-chat``, ``openai-responses``, ``anthropic``, ``gemini``
        (function declarations) or ``bedrock-converse`` (entries of ``toolConfig``'s ``tools``).

        Raises ``InputError`` for another format.
        """
        if format not in _SHAPES:
            raise InputError(f"there is no tool schema for {shown(format)}: use one of {', '.join(_SHAPES)}")
        return [_SHAPES[format](*declared) for declared in _declared()]

    def dispatch(self, name: str, arguments: str | Mapping[str, Any]) -> str:
        """The answer to a call, as text for the tool's result. ``arguments``: a mapping, or its JSON text.

        A call that makes no sense gets an answer that says why, since the model can mend it. Raises ``LookupError``
        for a tool that is not one of these, so that it can be one dispatcher among several.
        """
        if name not in _SCHEMAS:
            raise LookupError(f"{name!r} is not one of {SEARCH}, {READ}")
        try:
            given = json_values.read(arguments) if isinstance(arguments, str) else dict(arguments)
            if not isinstance(given, dict):
                raise ValueError("the arguments must be an object")
            return self._search(given) if name == SEARCH else self._read(given)
        except (ValueError, TypeError, OverflowError) as error:
            return f"{name} could not be carried out: {error}"

    def langchain(self) -> list[Any]:
        """The tools as LangChain tools. Raises ``InputError`` where the extra ``langchain`` is not installed."""
        try:
            from langchain_core.tools import StructuredTool
        except ImportError as error:
            raise InputError("tools for LangChain need its package: pip install 'contextfold[langchain]'") from error

        def call(name: str) -> Callable[..., str]:
            return lambda **arguments: self.dispatch(name, arguments)

        return [
            StructuredTool(name=name, description=description, args_schema=schema, func=call(name))
            for name, description, schema in _declared()
        ]

    # ---- the answers ----

    def _search(self, given: Mapping[str, Any]) -> str:
        query = str(given.get("query") or "").strip()
        if not query:
            raise ValueError("query is empty: give the words to look for")
        limit = _whole(given, "limit", 8, 1, MOST_RESULTS)
        found = self.history.search(query, limit=limit, **_options(given))
        if not found:
            return f"No earlier message holds {query!r}. Try other words, or fewer in quotes."
        lines = [without_tags(line) for hit in found for line in _shown(hit)]
        fitting = self._fitting(lines)
        note = (
            f"\n({len(lines) - len(fitting)} more: search for more words, or a lower limit)"
            if lines[len(fitting) :]
            else ""
        )
        return _as_data("\n".join(fitting)) + f"\nRead one with {READ}(start=number).{note}"

    def _read(self, given: Mapping[str, Any]) -> str:
        if "start" not in given:
            raise ValueError("start is missing: give the number of the first message")
        start = _whole(given, "start", 0, 0, None)
        count = _whole(given, "count", 5, 1, MOST_MESSAGES)
        offset = _whole(given, "offset", 0, 0, None)
        messages = self.history.read(start, count)
        if not messages:
            return f"There is no message {start} or later."
        parts: list[str] = []
        for message in messages:
            skipped = offset if message.index == messages[0].index else 0
            # 120 tokens: the tags around the answer, and the sentence that says how to read on
            room = self.max_tokens - self.count("\n".join(parts)) - 120
            text = message.text[skipped:]
            piece = _clipped(text, room, lambda some: self.count(quoted(some)))
            if not piece and text:
                return self._read_on(parts, message.index, skipped)
            # What a stranger wrote must not look like the message of another speaker.
            parts.append(f"[{message.index}] {message.role}:\n{quoted(piece)}")
            if len(piece) < len(text):
                return self._read_on(parts, message.index, skipped + len(piece))
        return _as_data("\n".join(parts))

    def _read_on(self, parts: Sequence[str], index: int, offset: int) -> str:
        rest = f"start={index}, offset={offset}" if offset else f"start={index}"
        return _as_data("\n".join(parts)) + f"\nThere is more: {READ}({rest})"

    def _fitting(self, lines: Sequence[str]) -> list[str]:
        first = list(lines)
        while len(first) > 1 and self.count("\n".join(first)) > self.max_tokens - 120:
            first.pop()
        return [_clipped(line, self.max_tokens - 120, self.count) for line in first] if len(first) == 1 else first


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a call says beyond query and limit. Left out where it says nothing, for histories that know no more."""
    options: dict[str, Any] = {}
    if given.get("order") is not None:
        options["order"] = given["order"]
    if given.get("role") is not None:
        options["roles"] = str(given["role"])
    if neighbors := _whole(given, "neighbors", 0, 0, MOST_NEIGHBORS):
        options["neighbors"] = neighbors
    return options


def _shown(hit: FoundMessage) -> list[str]:
    """A hit, between the messages beside it where there are any."""
    beside = [(near.index, f"  [{near.index}] {near.role}: {one_line(near.text, BESIDE)}") for near in _neighbors(hit)]
    return [line for _, line in sorted([*beside, (hit.index, f"[{hit.index}] {hit.role}: {hit.snippet}")])]


def _neighbors(hit: FoundMessage) -> Sequence[ShownMessage]:
    found: Sequence[ShownMessage] = getattr(hit, "neighbors", ())
    return found


def _as_data(text: str) -> str:
    # With tags inside neutralized: old words are quoted, not said again.
    return f"<history>\n{without_tags(text)}\n</history>"


def _clipped(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """The longest beginning of a text that has at most ``tokens`` tokens, to within a few."""
    if tokens <= 0:
        return ""
    # From a short beginning on: a text of megabytes is read piece by piece, and to count all that is left of it for
    # each piece would take the square of its length.
    low, high = 0, tokens
    while high < len(text) and count(text[:high]) <= tokens:
        low, high = high, 4 * high
    if high >= len(text):
        if count(text) <= tokens:
            return text
        high = len(text)
    while high - low > 16:
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= tokens else (low, middle)
    return text[:low]


def _whole(given: Mapping[str, Any], name: str, default: int, smallest: int, largest: int | None) -> int:
    value = given.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float | str) or int(value) != float(value):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    number = int(value)
    if number < smallest:
        raise ValueError(f"{name} must be at least {smallest}, not {number}")
    return number if largest is None else min(number, largest)


def _declared() -> list[tuple[str, str, dict[str, Any]]]:
    """Each tool: its name, its description, and the schema of its arguments."""
    return [
        (name, description, {"type": "object", "properties": properties, "required": required})
        for name, (description, properties, required) in _SCHEMAS.items()
    ]


def _chat(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": _function(name, description, schema)}


def _responses(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", **_function(name, description, schema)}


def _function(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": schema}


def _anthropic(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": schema}


def _converse(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "description": description, "inputSchema": {"json": schema}}}


_SHAPES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _function,
    "bedrock-converse": _converse,
}
