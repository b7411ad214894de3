"""contextfold in LangChain's agents: a drop-in for ``SummarizationMiddleware``, and ``CompactionMiddleware``.

What belongs here: the public names.
"""

try:
    import langchain as _langchain  # noqa: F401
except ImportError as error:
    raise ImportError(
        "contextfold.integrations.langchain needs langchain: pip install 'contextfold[langchain]'"
    ) from error

from contextfold.integrations.langchain.compaction import CompactionMade, CompactionMiddleware
from contextfold.integrations.langchain.summarization import DEFAULT_SUMMARY_PROMPT, SummarizationMiddleware

__all__ = ["DEFAULT_SUMMARY_PROMPT", "CompactionMade", "CompactionMiddleware", "SummarizationMiddleware"]
