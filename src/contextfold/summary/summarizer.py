"""What can write a summary, and what it answers.

What belongs here: the protocol, the answer, and reading one out of what summarizers return. What does not: models and
how they are asked (``models``), what is asked (``prompt_files``), whether an answer will do (``accept``), and the
built-in summarizer that asks no model (``extractive``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from contextfold.errors import PolicyError, held, plain_integer, shown

if TYPE_CHECKING:
    from contextfold.summary.models.chain import ModelChain

ALGORITHM = "bisect_v1"
"""How a summary is made by a summarizer, unless something else is said."""

MOST_TOKENS = 1 << 40
"""A larger count of tokens is none: a record could not be written with it."""

EXTRACTIVE = "extractive"
"""The built-in one, by name."""

UNMARKED = "unmarked"
"""Why an answer behind a view ended that does not begin as a summary has to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a summarizer said. ``finish_reason`` is the provider's own word; sizes are tokens, None if not told."""

    text: str
    finish_reason: str | None = None
    has_tool_calls: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None

    def __post_init__(self) -> None:
        """What stands beside the text comes out of a provider's JSON and may be anything: what is no size is unknown.

        Raises ``PolicyError`` for a text that is none, which is a mistake in the summarizer.
        """
        if not isinstance(self.text, str):
            raise PolicyError(f"the text of the summarizer's Answer is {shown(self.text)}: it must be a string")
        for name in ("input_tokens", "output_tokens"):
            object.__setattr__(self, name, _whole(getattr(self, name)))
        if not isinstance(self.finish_reason, str | None):
            object.__setattr__(self, "finish_reason", None)


@dataclass(frozen=True, slots=True)
class SummaryStats:
    """What a summary cost. Tokens are the summarizer's own figures where it tells them. ``truncated``: text was lost to
    make it fit. ``learned_window``: the longest prompt, in tokens, that errors taught to send; None if none did.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    chunk_count: int = 0
    max_depth: int = 0
    truncated: bool = False
    algorithm: str = ALGORITHM
    learned_window: int | None = None
    model: str = field(default="", compare=False)
    """The models that answered."""
    seconds: float = field(default=0.0, compare=False)
    cost: float | None = field(default=None, compare=False)
    """US dollars, None where a price is not known. Neither this nor ``seconds`` gets into a record."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and the history indices whose whole text was in requests that succeeded."""

    text: str
    covered: frozenset[int]
    stats: SummaryStats


Reply: TypeAlias = str | Answer


@runtime_checkable
class Summarizer(Protocol):
    """Turns a prompt into text. Signals a prompt that does not fit by raising ``ContextOverflow`` or the provider's
    own error, if ``overflow.classify`` knows it.
    """

    @property
    def window(self) -> int | None:
        """The longest prompt it takes, in tokens; None if it does not know."""
        ...

    def complete(self, prompt: str) -> Reply | Awaitable[Reply]:
        """The answer to one prompt. May be ``async def``. May be called from several threads at once."""
        ...


def as_summarizer(value: Any) -> ModelChain:
    """A summarizer from anything that can be one. Raises ``PolicyError`` that says what is accepted."""
    from contextfold.summary.models.chain import chain_of  # it builds on this module

    return chain_of(value)


def to_answer(reply: Any) -> Answer:
    """What a summarizer returned, as an ``Answer``: text, an answer, nothing (blank), or a LangChain message.

    Raises ``PolicyError`` for anything else: it is a mistake in the summarizer, not a bad answer.
    """
    if isinstance(reply, Answer):
        return reply
    if reply is None or isinstance(reply, str):
        return Answer(reply or "")
    if hasattr(reply, "content"):
        return _from_message(reply)
    raise PolicyError(
        f"the summarizer returned {type(reply).__name__}, not text: return a str, a message of LangChain, "
        "or an Answer of contextfold.summary.summarizer"
    )


def _from_message(message: Any) -> Answer:
    told, usage = _mapping(message, "response_metadata"), _mapping(message, "usage_metadata")
    reason = why_ended(told)
    calls = [getattr(message, name, None) for name in ("tool_calls", "invalid_tool_calls")]
    content = message.content
    if not isinstance(content, str | list | tuple):  # a test double, of which a text alone is set
        content = getattr(message, "text", None)
    if is_refusal(_mapping(message, "additional_kwargs"), content):
        reason = REFUSAL
    return Answer(
        _text_of(content),
        finish_reason=str(reason) if reason else None,
        has_tool_calls=any(found for found in calls if isinstance(found, list | tuple)),
        input_tokens=_whole(usage.get("input_tokens")),
        output_tokens=_whole(usage.get("output_tokens")),
    )


REFUSAL = "refusal"


def is_refusal(said: Any, content: Any) -> bool:
    """Whether a model refuses beside what it says: OpenAI's field or part of that name, which LangChain hands through.

    ``said``: what holds the field. The reason for which such an answer ended is none ("stop").
    """
    blocks = content if isinstance(content, list | tuple) else ()
    field = _field(said, REFUSAL)
    return (isinstance(field, str) and bool(field)) or any(_field(block, "type") == REFUSAL for block in blocks)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else held(value, name)


def why_ended(told: Mapping[str, Any]) -> Any:
    """Why an answer of LangChain's ended, from its ``response_metadata``: each provider has a name of its own for it.

    None where that does not say.
    """
    incomplete = told.get("incomplete_details")  # the Responses API says of those that were cut off or filtered
    if isinstance(incomplete, Mapping) and incomplete.get("reason"):
        return incomplete["reason"]
    names = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
    return next((told[name] for name in names if told.get(name)), None)


def _mapping(message: Any, name: str) -> Mapping[str, Any]:
    value = getattr(message, name, None)
    return value if isinstance(value, Mapping) else {}


def _text_of(content: Any) -> str:
    """Text of string or block content; reasoning, calls and media are not what was said."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else []
    return "".join(
        block if isinstance(block, str) else str(block.get("text") or "")
        for block in blocks
        if isinstance(block, str) or (isinstance(block, Mapping) and block.get("type", "text") == "text")
    )


def _whole(value: Any) -> int | None:
    number = plain_integer(value)
    return number if number is not None and 0 < number <= MOST_TOKENS else None
