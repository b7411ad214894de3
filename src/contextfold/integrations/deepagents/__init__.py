"""contextfold in deepagents: drop-ins for the names of ``deepagents.middleware.summarization``.

What belongs here: the public names.

    summarization   the middleware and its hooks           tool        compact_conversation
    passes          what a turn goes through               factories   defaults by the model's profile
    helper          sizes, triggers, folding               state       what a thread remembers
    views           what is sent                           frame       the text around a summary
    arguments       truncated arguments                    reasoning   blocks that may not stay
    history         the history file                       media       media beside it
    large_results   large results at the end               files       a backend, read and written for certain
"""

try:
    import deepagents as _deepagents  # noqa: F401
except ImportError as error:
    raise ImportError(
        "contextfold.integrations.deepagents needs deepagents: pip install 'contextfold[deepagents]'"
    ) from error

from contextfold.integrations.deepagents.factories import (
    compute_summarization_defaults,
    create_summarization_middleware,
    create_summarization_tool_middleware,
)
from contextfold.integrations.deepagents.summarization import (
    DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    SummarizationMiddleware,
)
from contextfold.integrations.deepagents.tool import SummarizationToolMiddleware

__all__ = [
    "DEEPAGENTS_DEFAULT_SUMMARY_PROMPT",
    "SummarizationMiddleware",
    "SummarizationToolMiddleware",
    "compute_summarization_defaults",
    "create_summarization_middleware",
    "create_summarization_tool_middleware",
]
