"""Fakes and generators for testing code that compacts conversations: the same ones that our own tests use.

Summarizers that answer from a script, that take only a few tokens, or that fail; and hypothesis strategies
for conversations in every wire format, whole or broken in the ways that real ones are. Nothing here is needed
at run time: the engine never imports it, and hypothesis is imported only when ``histories`` or ``plots`` is called.

    from contextfold import Compactor
    from contextfold.testing import LimitedSummarizer

    summarizer = LimitedSummarizer(2_000)
    out = Compactor(window=16_000, summarizer=summarizer).compact(messages)
    assert summarizer.accepted            # the prompts that were answered
"""

from contextfold.testing.render import render
from contextfold.testing.strategies import histories, plots
from contextfold.testing.summarizers import FailingSummarizer, LimitedSummarizer, ProviderError, ScriptedSummarizer

__all__ = [
    "FailingSummarizer",
    "LimitedSummarizer",
    "ProviderError",
    "ScriptedSummarizer",
    "histories",
    "plots",
    "render",
]
