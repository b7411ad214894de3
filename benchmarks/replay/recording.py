"""A conversation of the benchmark with everything that its replay needs: ``contextfold.inspector.recording`` for chats.

What belongs here: how the benchmark's messages are looked at, and which windows a conversation suits. What does not:
needs and numbers (there), views, and judgements about them (``measures``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from benchmarks.replay import tokens
from benchmarks.replay.chat import Message, identity, searchable
from benchmarks.replay.conversation import Conversation
from contextfold.inspector import recording
from contextfold.inspector.recording import Known, Need

__all__ = ["Known", "Need", "Recording"]

MOST_INSTRUCTIONS = 0.5
"""Share of a window: no one would run an agent in a window that its system prompt fills to more than this."""
SHORTEST = 1.5
"""Windows: a conversation must be so long to be replayed in one, for a compaction to be needed."""


class Chat:
    """The shape of OpenAI chat dictionaries: every message of the assistant is an answer."""

    def identity(self, message: Message) -> Hashable:
        return identity(message)

    def tokens(self, message: Message) -> int:
        return tokens.message_tokens(message)

    def searchable(self, message: Message) -> str:
        return searchable(message)

    def is_instruction(self, message: Message) -> bool:
        return bool(message["role"] == "system")

    def answers(self, messages: Sequence[Message]) -> list[range]:
        spoken = (index for index, message in enumerate(messages) if message["role"] == "assistant" and index > 0)
        return [range(index, index + 1) for index in spoken]


class Recording(recording.Recording):
    """A conversation with everything that its replay needs."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation.messages, Chat())
        self.conversation = conversation
        self.answered = {message["tool_call_id"] for message in self.messages if message["role"] == "tool"}

    def suits(self, window: int) -> bool:
        """Long enough to need compaction, and not an agent that no one would run in so small a window."""
        instruction_tokens = self.before[self.instructed]
        return self.total_tokens > SHORTEST * window and instruction_tokens <= MOST_INSTRUCTIONS * window
