"""The factories of deepagents' summarization module, for our classes.

What belongs here: defaults by the model's profile. They are deepagents' own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from deepagents._models import resolve_model
from deepagents.middleware.summarization import compute_summarization_defaults
from langchain_core.language_models import BaseChatModel
from langchain_core.messages.utils import count_tokens_approximately

from contextfold.integrations.deepagents.summarization import (
    DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    SummarizationMiddleware,
)
from contextfold.integrations.deepagents.tool import SummarizationToolMiddleware
from contextfold.integrations.langchain.constructor import OurOptions

__all__ = [
    "compute_summarization_defaults",
    "create_summarization_middleware",
    "create_summarization_tool_middleware",
]


def create_summarization_middleware(
    model: BaseChatModel,
    backend: Any,
    *,
    summary_prompt: str = DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    trim_tokens_to_summarize: float | None = None,
    token_counter: Callable[..., int] = count_tokens_approximately,
    summarizer: Any = None,
    **options: Unpack[OurOptions],
) -> SummarizationMiddleware:
    """A ``SummarizationMiddleware`` with trigger, ``keep`` and truncation as deepagents sets them for the model.

    ``options`` are those that only our class has. Raises ``TypeError`` if ``model`` is not a chat model.
    """
    if not isinstance(model, BaseChatModel):
        raise TypeError("`create_summarization_middleware` expects `model` to be a `BaseChatModel` instance.")
    defaults = compute_summarization_defaults(model)
    return SummarizationMiddleware(
        model,
        backend=backend,
        trigger=defaults["trigger"],
        keep=defaults["keep"],
        token_counter=token_counter,
        summary_prompt=summary_prompt,
        trim_tokens_to_summarize=trim_tokens_to_summarize,
        truncate_args_settings=defaults["truncate_args_settings"],
        summarizer=summarizer,
        **options,
    )


def create_summarization_tool_middleware(
    model: str | BaseChatModel, backend: Any, *, system_prompt: str | None = None
) -> SummarizationToolMiddleware:
    """A ``SummarizationToolMiddleware`` with the same defaults; ``model`` may be a name, resolved as by deepagents."""
    summarization = create_summarization_middleware(resolve_model(model), backend)
    return SummarizationToolMiddleware(summarization, system_prompt=system_prompt)
