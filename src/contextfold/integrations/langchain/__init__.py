"""contextfold in LangChain's agents: a drop-in for ``SummarizationMiddleware``, and ``CompactionMiddleware``.

Needs ``pip install contextfold[langchain]``. What belongs here: the public names.
"""

from contextfold.integrations.langchain.compaction import CompactionMade, CompactionMiddleware
from contextfold.integrations.langchain.summarization import DEFAULT_SUMMARY_PROMPT, SummarizationMiddleware

__all__ = ["DEFAULT_SUMMARY_PROMPT", "CompactionMade", "CompactionMiddleware", "SummarizationMiddleware"]
