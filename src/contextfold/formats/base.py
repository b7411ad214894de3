"""What a wire format must be able to do. Each format is one module with one class; adding one touches nothing else.

Laws, held by tests over every real and generated conversation:

- decoding is one to one: wire object ``i`` becomes message ``i``;
- encoding what was decoded and not edited gives the very same objects;
- an edited message is rebuilt from its source: only the edited parts differ, every other key survives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from contextfold.messages import Message


class Format(Protocol):
    """A wire shape of messages. Stateless."""

    name: ClassVar[str]
    """The public name, such as ``openai-chat``."""

    alternates: ClassVar[bool]
    """True where the provider's rules want user and assistant to take turns (joined by ``join``)."""

    def recognises(self, wire: Sequence[Any]) -> bool:
        """Whether these objects carry marks of this format. Cheap: may look at a sample, must not raise."""
        ...

    def decode(self, wire: Any, index: int | None = None) -> Message:
        """One wire object as a message. Raises ``FormatError`` with what is wrong and ``index``."""
        ...

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        """Messages as wire objects.

        A message that came from this format and was not edited is its own source object. One that was edited is
        rebuilt from its source. One that came from elsewhere is built anew, and may then become several objects
        (tool results of one user message) or share one with its neighbours (results that this format keeps together).
        """
        ...

    def join(self, first: Any, second: Any) -> Any | None:
        """Two neighbouring wire objects of one role as one, or None where they cannot be joined."""
        ...
