"""How the drop-in counts: by our estimate, by LangChain's approximation, or by a function of the user's.

What belongs here: sizes of LangChain messages, remembered per thread, so that a turn costs what is new. What does not:
the estimate itself (``contextfold.tokens``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage

from contextfold.formats.langchain import LangChain
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.langchain.layout import is_summary
from contextfold.integrations.langchain.models import provider_of
from contextfold.integrations.langchain.threads import ThreadKey
from contextfold.messages import Message
from contextfold.tokens import TokenCounter

ListCounter = Callable[[Iterable[Any]], int]
"""Tokens of a list of messages, as LangChain's ``token_counter``."""

FORMAT = LangChain()

ALIASES = {
    "amazon_bedrock": {"bedrock", "bedrock_converse"},
    "openai-mantle": {"openai"},
    "anthropic-mantle": {"anthropic"},
}
"""A model's provider for tracers -> what its messages may call the same one, where the two differ."""


def estimated(messages: Iterable[Any]) -> int:
    """Tokens of LangChain messages by our estimate: the default ``token_counter`` of the drop-in."""
    counter = TokenCounter()
    return sum(counter.message(FORMAT.decode(message, number)) for number, message in enumerate(messages))


def langchain_counter(model: Any) -> ListCounter:
    """LangChain's way: 3.3 characters per token for Anthropic, 4 otherwise, whatever the script or the medium."""
    from langchain_core.messages.utils import count_tokens_approximately

    characters = 3.3 if str(getattr(model, "_llm_type", "")).startswith("anthropic-chat") else 4.0
    return partial(count_tokens_approximately, chars_per_token=characters)


class ListedCounter(TokenCounter):
    """MessageSizes messages by a counter of lists, one message at a time; texts and summaries by our estimate."""

    def __init__(self, count: ListCounter) -> None:
        super().__init__()
        self._count = count

    def message(self, message: Message) -> int:
        if isinstance(message.source, BaseMessage) and not is_summary(message.source):
            return max(0, int(self._count([message.source])))
        return super().message(message)

    def messages(self, messages: Sequence[Message]) -> list[int]:
        return list(map(self.message, messages))


@dataclass(frozen=True, slots=True)
class _Known:
    messages: tuple[AnyMessage, ...]
    sizes: tuple[int, ...]


class MessageSizes:
    """Sizes of each message of a thread, counted once."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: Bounded[_Known] = Bounded()

    def of(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> tuple[int, ...]:
        """Tokens of each message."""
        known = self._known.get(key) or _Known((), ())
        start = len(known.messages)
        if start > len(messages) or any(a is not b for a, b in zip(known.messages, messages, strict=False)):
            known, start = _Known((), ()), 0
        if start < len(messages):
            decoded = [FORMAT.decode(message, start + n) for n, message in enumerate(messages[start:])]
            sizes = (*known.sizes, *self._counter.messages(decoded))
            known = _Known(tuple(messages), sizes)
            self._known.put(key, known)
        return known.sizes


@dataclass(frozen=True, slots=True)
class Measure:
    """Sizes as one ``token_counter`` tells them. ``adds_up``: a list is as large as its messages together."""

    by: ListCounter
    counter: TokenCounter
    sizes: MessageSizes
    adds_up: bool

    @classmethod
    def of(cls, by: ListCounter, *, adds_up: bool) -> Measure:
        """For a counter of lists; our own estimate is asked directly."""
        counter = TokenCounter() if by is estimated else ListedCounter(by)
        return cls(by, counter, MessageSizes(counter), adds_up)

    def tokens(self, key: ThreadKey, messages: Sequence[AnyMessage]) -> int:
        """Of all messages."""
        return sum(self.sizes.of(key, messages)) if self.adds_up else self.by(messages)


def reported_tokens(message: Any, model: Any) -> int:
    """The total that the provider reported with an assistant message; 0 if it is not known, or another provider's."""
    usage = getattr(message, "usage_metadata", None)
    said_by = getattr(message, "response_metadata", {}).get("model_provider")
    provider = provider_of(model)
    if not usage or not said_by or provider is None:
        return 0
    same = said_by == provider or said_by in ALIASES.get(provider, ())
    return int(usage.get("total_tokens") or 0) if same else 0
