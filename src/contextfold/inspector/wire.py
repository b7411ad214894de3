"""Messages in any format of contextfold, as a recording looks at them.

What belongs here: identity, size and text of one message, and where the agent's model was asked. What does not: what
is said about them in the document (``document``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from contextfold.formats import Format
from contextfold.inspector import anchors
from contextfold.messages import Message, Part, Reasoning, ToolCall, ToolResult
from contextfold.tokens import TokenCounter
from contextfold.tokens.media import rule_of


class Wire:
    """The shape of messages in one format: each is decoded once."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self.counter = TokenCounter(media_rule=rule_of(format.name))
        self._decoded: dict[int, Message] = {}

    def remember(self, wire: Sequence[Any], messages: Sequence[Message]) -> None:
        """Messages that stay alive, so that they need not be decoded again."""
        self._decoded.update((id(entry), message) for entry, message in zip(wire, messages, strict=True))

    def decoded(self, entry: Any) -> Message:
        if isinstance(entry, Message):  # what stands in a view for no wire object of the history
            return entry
        found = self._decoded.get(id(entry))
        return self.format.decode(entry, 0) if found is None else found

    def identity(self, message: Any) -> Hashable:
        decoded = self.decoded(message)
        return decoded.role, decoded.parts

    def tokens(self, message: Any) -> int:
        return self.counter.message(self.decoded(message))

    def searchable(self, message: Any) -> str:
        decoded = self.decoded(message)
        return anchors.searched(text for part in decoded.parts for text in _texts(part))

    def is_instruction(self, message: Any) -> bool:
        return self.decoded(message).is_instruction

    def answers(self, messages: Sequence[Any]) -> list[range]:
        """Runs of the assistant's messages: one answer may be spread over entries of a format, or rows of a file."""
        return answers([self.decoded(message) for message in messages])


def answers(messages: Sequence[Message]) -> list[range]:
    """The agent's answers that have a past.

    Neighboring messages of the assistant are one answer where the format splits turns, or where they share an id;
    else each is an answer of its own.
    """
    found: list[range] = []
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        before = messages[index - 1] if index else None
        if found and found[-1].stop == index and before is not None and _is_one_turn(before, message):
            found[-1] = range(found[-1].start, index + 1)
        else:
            found.append(range(index, index + 1))
    return [answer for answer in found if answer.start > 0]


def _is_one_turn(before: Message, message: Message) -> bool:
    return (before.split and message.split) or (message.id is not None and before.id == message.id)


def _texts(part: Part) -> Iterator[str]:
    """What a model could read of a part, as the benchmark reads it: no reasoning, and of a call its values."""
    if isinstance(part, ToolCall):
        yield anchors.argument_text(part.arguments)
    elif isinstance(part, ToolResult):
        yield part.text
    elif not isinstance(part, Reasoning):
        yield getattr(part, "text", "") or ""
