"""pydantic-ai: a capability that keeps what the model gets inside its window, and the history as it is.

from contextfold.integrations.pydantic_ai import Compaction

agent = Agent("openai:gpt-5", capabilities=[Compaction(window=128_000)])
"""

try:
    import pydantic_ai as _pydantic_ai  # noqa: F401
except ImportError as error:
    raise ImportError(
        "contextfold.integrations.pydantic_ai needs pydantic-ai: pip install 'contextfold[pydantic-ai]'"
    ) from error

from contextfold.integrations.pydantic_ai.capability import Compaction, history_processor

__all__ = ["Compaction", "history_processor"]
