"""What can be known about a conversation before any strategy runs, computed once and shared by all of them.

What belongs here: messages as small numbers with everything derived from them, and which identifiers each answer of
the agent needed from its past. What does not: views, and judgements about them (``measures``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from benchmarks.replay import anchors, tokens
from benchmarks.replay.chat import Message, identity, searchable
from benchmarks.replay.conversation import Conversation

MOST_INSTRUCTIONS = 0.5
"""Share of a window: nobody would run an agent in a window that its system prompt fills to more than this."""
SHORTEST = 1.5
"""Windows: a conversation must be so long to be replayed in one, for a compaction to be needed."""


class Known:
    """Messages as small numbers: equal messages share one, and what is derived from one is computed once."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._numbers: dict[Hashable, int] = {}
        self._source: dict[int, int] = {}  # id(dictionary) -> number, for dictionaries that stay alive
        self._tokens: dict[int, int] = {}
        self._searchable: dict[int, str] = {}
        self._surroundings: dict[tuple[str, int], list[frozenset[str]]] = {}

    def add_source(self, message: Message) -> int:
        """The number of a message of the conversation itself."""
        number = self._source[id(message)] = self.number_now(message)
        return number

    def number(self, message: Message) -> int:
        """The number of a message of a view."""
        known = self._source.get(id(message))
        return self.number_now(message) if known is None else known

    def number_now(self, message: Message) -> int:
        """The number of the message as it is now, should someone have changed it in place."""
        key = identity(message)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.messages)
            self.messages.append({**message})
        return number

    def tokens(self, number: int) -> int:
        """Tokens of a message."""
        if number not in self._tokens:
            self._tokens[number] = tokens.message_tokens(self.messages[number])
        return self._tokens[number]

    def searchable(self, number: int) -> str:
        """What a model could read an identifier from."""
        if number not in self._searchable:
            self._searchable[number] = searchable(self.messages[number])
        return self._searchable[number]

    def surroundings(self, anchor: str, number: int) -> list[frozenset[str]]:
        """For each place of an identifier in a message, the plain words around it."""
        key = anchor, number
        if key not in self._surroundings:
            self._surroundings[key] = anchors.surroundings(anchor, self.searchable(number))
        return self._surroundings[key]


@dataclass(frozen=True, slots=True)
class Need:
    """An identifier of an answer of the agent that the conversation had shown before.

    ``homes`` are the numbers of the messages that hold it; ``distance`` counts the tokens since its last occurrence.
    """

    anchor: str
    homes: frozenset[int]
    distance: int


class Recording:
    """A conversation with everything that its replay needs."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.messages: Sequence[Message] = conversation.messages
        self.known = Known()
        self.numbers: list[int] = [self.known.add_source(message) for message in self.messages]
        """For each message of the conversation, its number in ``known``."""
        self.source = frozenset(self.numbers)
        self.before: list[int] = [0]
        """Tokens before each message, and at the end those of all."""
        for number in self.numbers:
            self.before.append(self.before[-1] + self.known.tokens(number))
        self.answered = {message["tool_call_id"] for message in self.messages if message["role"] == "tool"}

    @property
    def total_tokens(self) -> int:
        return self.before[-1]

    @property
    def instruction_tokens(self) -> int:
        """Tokens of the system message."""
        return self.known.tokens(self.numbers[0]) if self._instructed else 0

    @property
    def _instructed(self) -> bool:
        return bool(self.messages) and self.messages[0]["role"] == "system"

    def suits(self, window: int) -> bool:
        """Long enough to need compaction, and not an agent nobody would run in so small a window."""
        return self.total_tokens > SHORTEST * window and self.instruction_tokens <= MOST_INSTRUCTIONS * window

    @cached_property
    def steps(self) -> list[int]:
        """Indices of the assistant's messages that have a past."""
        return [index for index, message in enumerate(self.messages) if message["role"] == "assistant" and index > 0]

    @cached_property
    def needs(self) -> Mapping[int, Sequence[Need]]:
        """For every step, the identifiers that its message repeats from the past, but for the system message's."""
        texts = [self.known.searchable(number) for number in self.numbers]
        by_word: dict[str, list[int]] = defaultdict(list)
        for index, text in enumerate(texts):
            for word in anchors.words(text):
                by_word[word].append(index)
        always = texts[0] if self._instructed else ""

        @cache
        def places(anchor: str) -> tuple[int, ...]:
            candidates = by_word[anchors.longest_word(anchor)]
            return tuple(index for index in candidates if anchors.occurs(anchor, texts[index]))

        def need(anchor: str, step: int) -> Need | None:
            earlier = [index for index in places(anchor) if index < step]
            if not earlier or anchors.occurs(anchor, always):
                return None
            homes = frozenset(self.numbers[index] for index in earlier)
            return Need(anchor, homes, self.before[step] - self.before[earlier[-1] + 1])

        return {
            step: [found for anchor in sorted(anchors.find(texts[step])) if (found := need(anchor, step))]
            for step in self.steps
        }
