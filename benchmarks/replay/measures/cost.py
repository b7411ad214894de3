"""What the requests cost in input-token equivalents, with a provider's cache, and where the cost goes.

Cached input costs a tenth of what is new; what is new costs a quarter more, because it is written to the cache. A
summarizer reads its input uncached, unless it is the agent's own model, asked behind the view that its provider has in
the cache. An output token costs five input tokens. These are the proportions of today's
price lists (``money`` has three of them in money).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.replay.measure import Column, Number, Step, Totals, share, total
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy

CACHED, UNCACHED, OUTPUT = 0.1, 1.25, 5.0
"""Prices of a token, in input tokens without a cache."""


def spent(totals: Totals) -> float:
    """The whole cost of totals, in input-token equivalents."""
    return sum(parts(totals).values())


def parts(totals: Totals) -> dict[str, float]:
    """The cost by where it goes."""
    cached = totals["cost_summary_cached"]
    return {
        "cached input": CACHED * totals["cost_cached_tokens"],
        "uncached input": UNCACHED * (totals["cost_view_tokens"] - totals["cost_cached_tokens"]),
        "summarizer input": CACHED * cached + UNCACHED * (totals["cost_summary_input"] - cached),
        "summarizer output": OUTPUT * totals["cost_summary_output"],
    }


def relative(totals: Totals, reference: Totals) -> float | None:
    """Cost relative to the uncompacted history of the same conversations with perfect caching."""
    return spent(totals) / spent(reference) if reference else None


class Cost:
    """Tokens by what they cost."""

    columns: ClassVar[Sequence[Column]] = (
        Column(
            "cost",
            "cost vs none",
            "0.1 for each cached and 1.25 for each other input token of all calls, the summarizer's too, plus 5 for "
            "each token that it says, relative to the uncompacted history with perfect caching.",
            relative,
            "ratio",
            better="low",
        ),
        Column(
            "rewrites",
            "rewrites",
            "Views that are not the view before with something appended: each loses the provider's cache.",
            total("cost_rewrites"),
            "count",
            better="low",
        ),
        Column(
            "view_tokens",
            "mean view",
            "Tokens of the average view.",
            share("cost_view_tokens", "views"),
            "tokens",
            better="low",
            main=False,
        ),
        Column(
            "peak_view",
            "largest view",
            "Tokens of the largest view.",
            total("max_view_tokens"),
            "tokens",
            better="low",
            main=False,
        ),
        Column(
            "cached",
            "cached %",
            "Share of input tokens that a provider reads from its cache.",
            share("cost_cached_tokens", "cost_view_tokens"),
            main=False,
        ),
    )

    def __init__(self, recording: Recording, window: int) -> None:
        self._view = self._cached = self._largest = self._rewrites = 0

    def step(self, step: Step) -> None:
        self._view += step.tokens
        self._cached += step.cached
        self._largest = max(self._largest, step.tokens)
        self._rewrites += step.rewritten

    def result(self, strategy: Strategy) -> dict[str, Number]:
        return {
            "cost_view_tokens": self._view,
            "cost_cached_tokens": self._cached,
            "cost_summary_input": strategy.summarizer.input_tokens,
            "cost_summary_cached": sum(strategy.summarizer.cached),
            "cost_summary_output": strategy.summarizer.output_tokens,
            "cost_rewrites": self._rewrites,
            "max_view_tokens": self._largest,
        }
