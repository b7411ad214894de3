"""How a summary is asked for: the caller's knobs and their defaults.

What belongs here: the options of the summary call and what is allowed for each. What does not: when to compact and
how much room the summary gets (``policy``), and which model answers (``summarizer``).
"""

from __future__ import annotations

from typing import Any, TypedDict

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

SMALLEST_REQUEST = 512
"""Tokens. Below this the prompt's own words leave no room worth the call. Windows from 2,000 up always work."""

_AT_LEAST = {
    "max_tokens": 50,
    "merge_max_tokens": 50,
    "input_tokens": SMALLEST_REQUEST,
    "max_depth": 0,
    "min_messages": 1,
    "max_string_characters": 4 * SMALLEST_REQUEST,
    "parallel": 1,
    "retries_on_rejection": 0,
    "retries_on_failure": 0,
}


class SummaryFields(TypedDict, total=False):
    """``SummaryOptions`` as a mapping."""

    max_tokens: int | None
    merge_max_tokens: int | None
    input_tokens: int | None
    prompt: str | None
    instructions: str
    language: str | None
    bisect: bool
    max_depth: int
    min_messages: int
    max_string_characters: int
    parallel: int
    retries_on_rejection: int
    retries_on_failure: int
    total_seconds: float | None
    idle_seconds: float | None


class SummaryOptions(BaseModel):
    """The options of the summary call. Immutable; an error about a value names field, value and what is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int | None = None
    """The longest summary, in tokens. None: what the budget allows."""
    merge_max_tokens: int | None = None
    """The longest answer to a request that merges summaries, in tokens. None: as any other."""
    input_tokens: int | None = None
    """The longest prompt that the summarizer takes, in tokens. None: what it says, else learned from its errors."""
    prompt: str | None = None
    """The caller's own prompt. ``{messages}`` marks where the conversation goes (at the end if it is not there);
    ``{language}``, ``{max_tokens}`` and ``{instructions}`` are filled in too. None: the built-in prompts."""
    instructions: str = ""
    """Added to every prompt."""
    language: str | None = None
    """The summary's language as a code such as ``en`` or ``zh``. None: the conversation's."""
    bisect: bool = True
    """False: a request that overflows is cut in no way, and is a failed summary."""
    max_depth: int = 6
    """How often a span may be halved because a request overflowed without naming a limit."""
    min_messages: int = 4
    """A span of fewer messages is cut by size instead of being halved between messages."""
    max_string_characters: int = 1_048_576
    """The longest prompt in characters: the cap that OpenAI puts on one string."""
    parallel: int = 8
    """Requests side by side for one summary."""
    retries_on_rejection: int = 1
    """How often an unacceptable answer (blank, cut off, a tool call, ...) is asked for again."""
    retries_on_failure: int = 3
    """How often a request is sent again after a failure that may pass: a rate limit, a server's error, a lost
    connection; after silence once. Waits half a second and then twice as long each time, or as long as the provider
    says."""
    total_seconds: float | None = 600
    """The longest that one summary may take, with all its requests and waiting. None: any time."""
    idle_seconds: float | None = 120
    """The longest silence: before an answer, and between the pieces of one that is streamed. None: any."""

    @field_validator("total_seconds", "idle_seconds")
    @classmethod
    def _above_zero(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and not value > 0:
            raise ValueError(f"{info.field_name} is {value:g}: it must be above 0, or None for no limit")
        return value

    @field_validator(*_AT_LEAST)
    @classmethod
    def _not_too_small(cls, value: float | None, info: ValidationInfo) -> float | None:
        smallest = _AT_LEAST[str(info.field_name)]
        if value is not None and value < smallest:
            raise ValueError(f"{info.field_name} is {value:,}: it must be at least {smallest:,}")
        return value

    @field_validator("prompt", "language")
    @classmethod
    def _not_blank(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None and not value.strip():
            raise ValueError(f"{info.field_name} is {value!r}: give a text with words in it, or None for the default")
        return value
