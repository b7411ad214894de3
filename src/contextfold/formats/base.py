"""What a wire format must be able to do. Each format is one module with one class, and its marks are in ``marks``.

Laws, held by tests over every real and generated conversation:

- decoding is one to one: wire object ``i`` becomes message ``i``;
- encoding what was decoded and not edited gives the very same objects;
- an edited message is rebuilt from its source: only the edited parts differ, every other key survives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from contextfold.messages import Message


def _sets_nothing(_: Message) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Rules:
    """What a provider demands of a list of messages, beside results that follow their calls. The default: nothing."""

    not_in_call_ids: re.Pattern[str] | None = None
    """A character that no id of a call may have, or that an id is empty; and no two calls share an id. None: any id, as
    often as it comes."""
    longest_call_id: int | None = None
    """Characters that the id of a call may have. None: any number."""
    results_have_kinds: bool = False
    """A result says whether a function or a custom tool answers, and has to be right about it."""
    async_calls: bool = False
    """The model may go on before a call that says so has its result."""
    references: bool = False
    """An item may stand for one that the provider keeps, such as a call whose result follows."""
    instructions_between: bool = False
    """An instruction may stand behind what the user says, before the assistant's answer or at the end."""
    sets_between: Callable[[Message], bool] = _sets_nothing
    """Whether an instruction sets something, such as which tools there are, that words in its place would not: the
    models that know this take instructions between others."""
    user_first: bool = False
    """The first message that is no instruction is the user's."""
    takes_turns: bool = False
    """Two neighbors of one role are refused, not joined by the provider."""
    bare_end: bool = False
    """The text of a last message does not end in white space if it is the assistant's."""
    takes_bytes: bool = False
    """Media are bytes, as its SDK wants them; else all of a message is JSON."""


class Format(Protocol):
    """A wire shape of messages. Stateless."""

    name: ClassVar[str]
    """The public name, such as ``openai-chat``."""

    alternates: ClassVar[bool]
    """True where the provider's rules want user and assistant to take turns (joined by ``join``)."""

    rules: ClassVar[Rules]
    """What ``repair`` sees to in a whole list."""

    def decode(self, wire: Any, index: int | None = None) -> Message:
        """One wire object as a message. Raises ``FormatError`` with what is wrong and ``index``."""
        ...

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        """Messages as wire objects.

        A message that came from this format and was not edited is its own source object. One that was edited is
        rebuilt from its source. One that came from elsewhere is built new, and may then become several objects
        (tool results of one user message) or share one with its neighbors (results that this format keeps together).
        """
        ...

    def acceptable(self, message: Message, *, leading: bool) -> Message:
        """The message as the provider takes it, without its blank blocks for instance; mostly itself.

        ``leading``: nothing but instructions stands before it. A copy without parts says that nothing is left to send.
        Messages of other formats may be given too.
        """
        ...

    def join(self, first: Any, second: Any) -> Any | None:
        """Two neighboring wire objects of one role as one, or None where they cannot be joined."""
        ...
