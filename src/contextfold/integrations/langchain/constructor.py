"""What the constructor of the drop-in is given, as the drop-in needs it.

What belongs here: deprecated names, triggers that the installed LangChain does not know, sizes and prompts as people
write them, who writes summaries. What does not: checking values (LangChain's own constructor does).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from langchain.agents.middleware import summarization as langchain_summarization
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import coerce_to_runnable

from contextfold.errors import plain_number
from contextfold.observe import Event
from contextfold.policy import Unit
from contextfold.summary.options import SummaryOptions

if TYPE_CHECKING:  # newer than the oldest release that is supported
    from langchain.agents.middleware.summarization import TriggerClause

Counting = Literal["contextfold", "langchain"]
DropInTrigger: TypeAlias = "tuple[Unit, float] | TriggerClause | Sequence[tuple[Unit, float] | TriggerClause] | None"


class DeprecatedNames(TypedDict, total=False):
    """What LangChain's class takes by old names."""

    max_tokens_before_summary: int | None
    messages_to_keep: int


class OurOptions(TypedDict, total=False):
    """What only our drop-ins take."""

    counting: Counting
    instructions: str
    summary: SummaryOptions | None
    evidence: bool
    on_event: Callable[[Event], object] | None


class DropInOptions(OurOptions, DeprecatedNames, total=False):
    """The arguments of the drop-in besides its model."""

    trigger: DropInTrigger
    keep: tuple[Unit, float]
    token_counter: Callable[..., int]
    summary_prompt: str
    trim_tokens_to_summarize: float | None
    summarizer: Any


DEFAULT_KEEP: tuple[Unit, float] = ("messages", 20)
"""LangChain's."""


def renamed(trigger: Any, keep: Any, deprecated: Mapping[str, Any]) -> tuple[Any, Any]:
    """Trigger and keep, from their old names too. Raises ``TypeError`` for a name that is not one of these."""
    unknown = [name for name in deprecated if name not in ("max_tokens_before_summary", "messages_to_keep")]
    if unknown:
        raise TypeError(f"SummarizationMiddleware got an unexpected keyword argument {unknown[0]!r}")
    if "max_tokens_before_summary" in deprecated:
        _warn("max_tokens_before_summary is deprecated. Use trigger=('tokens', value) instead.")
        if trigger is None and deprecated["max_tokens_before_summary"] is not None:
            trigger = ("tokens", deprecated["max_tokens_before_summary"])
    if "messages_to_keep" in deprecated:
        _warn("messages_to_keep is deprecated. Use keep=('messages', value) instead.")
        if keep == DEFAULT_KEEP:
            keep = ("messages", deprecated["messages_to_keep"])
    return trigger, keep


def _warn(text: str) -> None:
    warnings.warn(text, DeprecationWarning, stacklevel=4)


def whole(size: Any, rounded: Callable[[float], int]) -> Any:
    """A size, or a list of them, with tokens as a whole number: LangChain takes ``("tokens", 0.8 * window)``, too."""
    if isinstance(size, list):
        return [whole(entry, rounded) for entry in size]
    if isinstance(size, tuple) and len(size) == 2 and size[0] == "tokens":
        tokens = plain_number(size[1])
        if isinstance(tokens, float) and isfinite(tokens):
            return size[0], max(1, rounded(tokens))
    return size


def is_known(trigger: Any) -> bool:
    """Whether the installed LangChain takes this trigger: mappings are newer than the class."""
    if hasattr(langchain_summarization, "TriggerClause"):
        return True
    return not isinstance(trigger, Mapping) and not (
        isinstance(trigger, list) and any(isinstance(item, Mapping) for item in trigger)
    )


def writers(model: BaseChatModel, summarizer: Any) -> tuple[Any, Runnable[Any, Any] | None]:
    """(the chat model that writes, the runnable that reads messages in its place)."""
    if isinstance(summarizer, str):
        summarizer = langchain_summarization.init_chat_model(summarizer)  # type: ignore[attr-defined]
    if summarizer is None or isinstance(summarizer, BaseChatModel):
        return summarizer or model, None
    return model, coerce_to_runnable(summarizer)


def as_template(prompt: str) -> str:
    """A prompt for ``str.format`` as one for plain filling in: doubled braces stand for single ones."""
    return prompt.replace("{{", "{").replace("}}", "}")
