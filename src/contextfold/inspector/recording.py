"""What can be known about a conversation before any view of it is made, computed once and shared by all replays.

What belongs here: messages as small numbers with everything derived from them, where the requests are, and which
anchors each answer of the agent needed from its past. What does not: views, and whether a need was met (``replay``).
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from contextfold.cached import cached_property
from contextfold.inspector import anchors


class Shape(Protocol):
    """How messages of one kind are looked at. The benchmark has one for its chat messages, ``wire`` one for formats."""

    def identity(self, message: Any) -> Hashable:
        """Two messages are the same message when this is equal."""
        ...

    def tokens(self, message: Any) -> int: ...

    def searchable(self, message: Any) -> str:
        """Everything that a model could read an anchor from (``anchors.searched``)."""
        ...

    def is_instruction(self, message: Any) -> bool:
        """Whether it is a system message: in every view, so nothing in it is ever missed."""
        ...

    def answers(self, messages: Sequence[Any]) -> list[range]:
        """The agent's answers that have a past, in order. Formats may spread one answer over several messages."""
        ...


class Known:
    """Messages as small numbers: equal messages share one, and what is derived from one is computed once."""

    def __init__(self, shape: Shape) -> None:
        self.messages: list[Any] = []
        self._shape = shape
        self._numbers: dict[Hashable, int] = {}
        self._source: dict[int, int] = {}  # id(message) -> number, for messages that stay alive
        self._tokens: dict[int, int] = {}
        self._searchable: dict[int, str] = {}
        self._surroundings: dict[tuple[str, int], list[frozenset[str]]] = {}

    def add_source(self, message: Any) -> int:
        """The number of a message of the conversation itself."""
        number = self._source[id(message)] = self.number_now(message)
        return number

    def number(self, message: Any) -> int:
        """The number of a message of a view."""
        known = self._source.get(id(message))
        return self.number_now(message) if known is None else known

    def is_source(self, message: Any) -> bool:
        """Whether this very object is one of the conversation."""
        return id(message) in self._source

    def number_now(self, message: Any) -> int:
        """The number of the message as it is now, should it have been changed in place."""
        key = self._shape.identity(message)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.messages)
            self.messages.append(copy.copy(message))
        return number

    def tokens(self, number: int) -> int:
        """Tokens of a message."""
        if number not in self._tokens:
            self._tokens[number] = self._shape.tokens(self.messages[number])
        return self._tokens[number]

    def searchable(self, number: int) -> str:
        """What a model could read an anchor from."""
        if number not in self._searchable:
            self._searchable[number] = self._shape.searchable(self.messages[number])
        return self._searchable[number]

    def surroundings(self, anchor: str, number: int) -> list[frozenset[str]]:
        """For each place of an anchor in a message, the plain words around it."""
        key = anchor, number
        if key not in self._surroundings:
            self._surroundings[key] = anchors.surroundings(anchor, self.searchable(number))
        return self._surroundings[key]


@dataclass(frozen=True, slots=True)
class Need:
    """An anchor of an answer of the agent that the conversation had shown before.

    ``homes`` are the numbers of the messages that hold it, ``last`` the index of the newest of them; ``distance``
    counts the tokens since then.
    """

    anchor: str
    homes: frozenset[int]
    distance: int
    last: int = -1


class Recording:
    """A conversation with everything that its replay needs."""

    def __init__(self, messages: Sequence[Any], shape: Shape) -> None:
        self.messages = messages
        self.known = Known(shape)
        self._shape = shape
        self.numbers: list[int] = [self.known.add_source(message) for message in messages]
        """For each message of the conversation, its number in ``known``."""
        self.source = frozenset(self.numbers)
        self.before: list[int] = [0]
        """Tokens before each message, and at the end those of all."""
        for number in self.numbers:
            self.before.append(self.before[-1] + self.known.tokens(number))

    @property
    def total_tokens(self) -> int:
        return self.before[-1]

    @cached_property
    def answers(self) -> Mapping[int, range]:
        """For each request, by its index: which messages are the answer that really came."""
        return {answer.start: answer for answer in self._shape.answers(self.messages)}

    @cached_property
    def steps(self) -> list[int]:
        """Indices before which the agent's model was asked."""
        return list(self.answers)

    @cached_property
    def pending(self) -> bool:
        """Whether the conversation ends before an answer: the view of that moment is shown, and costs nothing yet."""
        ended = max((answer.stop for answer in self.answers.values()), default=0)
        return bool(self.messages) and ended < len(self.messages)

    @cached_property
    def moments(self) -> list[int]:
        """The steps, and the end where an answer is still to come."""
        return [*self.steps, *([len(self.messages)] if self.pending else [])]

    @cached_property
    def instructed(self) -> int:
        """How many instructions the conversation begins with."""
        instructions = (self._shape.is_instruction(message) for message in self.messages)
        return next((index for index, found in enumerate(instructions) if not found), len(self.messages))

    @cached_property
    def needs(self) -> Mapping[int, Sequence[Need]]:
        """For every request, the anchors that its answer repeats from the past, but for those of the instructions."""
        texts = [self.known.searchable(number) for number in self.numbers]
        # An anchor is only searched for in the texts that have its longest word.
        by_word: dict[str, list[int]] = defaultdict(list)
        for index, text in enumerate(texts):
            for word in anchors.words(text):
                by_word[word].append(index)
        # What the instructions say is in every view, so nothing of it can be missing.
        always = "\n".join(texts[: self.instructed])

        known: dict[str, tuple[list[int], list[int]]] = {}

        def earlier(anchor: str, step: int) -> list[int]:
            """Steps come in order, so each text is searched once, and an answer of megabytes not for its own names."""
            if anchor not in known:
                known[anchor] = [], by_word[anchors.longest_word(anchor)][::-1]
            found, waiting = known[anchor]
            while waiting and waiting[-1] < step:
                if anchors.occurs(anchor, texts[index := waiting.pop()]):
                    found.append(index)
            return found

        def need(anchor: str, step: int) -> Need | None:
            places = earlier(anchor, step)
            if not places or anchors.occurs(anchor, always):
                return None
            homes = frozenset(self.numbers[index] for index in places)
            return Need(anchor, homes, self.before[step] - self.before[places[-1] + 1], places[-1])

        def said(answer: range) -> set[str]:
            return set().union(*(anchors.find(texts[index]) for index in answer))

        return {
            step: [found for anchor in sorted(said(answer)) if (found := need(anchor, step))]
            for step, answer in self.answers.items()
        }
