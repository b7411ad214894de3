"""What the gateway has done so far: counters for Prometheus, and the totals that people are told.

What belongs here: counting, prices, and the text that Prometheus reads. What does not: when something is counted.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

Labels = tuple[tuple[str, str], ...]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds of the histogram of added time."""

HELP = {
    "requests_total": ("counter", "Requests, by wire, upstream, what was done, and status."),
    "compactions_total": ("counter", "Compactions that came into force."),
    "tokens_saved_total": ("counter", "Input tokens that were not sent because a view was sent instead."),
    "money_saved_dollars_total": ("counter", "What they would have cost at least, as reads from the prompt cache."),
    "summary_tokens_total": ("counter", "Tokens that summaries by a model took, input and output."),
    "failures_total": ("counter", "What of ours failed, by kind. The original request went on, unless strict."),
    "overflows_total": ("counter", "Refusals that said that a prompt does not fit, by kind."),
    "upstream_errors_total": ("counter", "Upstreams that could not be reached, reset or timed out, by kind."),
    "disconnects_total": ("counter", "Clients that left before the end of their answer."),
    "native_total": ("counter", "Requests left to the provider's own compaction, by field."),
    "shadow_tokens_total": ("counter", "Shadow mode: input tokens that would not have been sent."),
    "in_flight": ("gauge", "Requests that are being answered."),
    "remembered_conversations": ("gauge", "Conversations in memory."),
    "added_seconds": ("histogram", "Time between the end of a request and its start towards the upstream."),
}


@dataclass
class Metrics:
    """Figures of one process."""

    values: dict[tuple[str, Labels], float] = field(default_factory=lambda: defaultdict(float))
    _buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    _seconds: float = 0.0

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        self.values[name, tuple(sorted(labels.items()))] += amount

    def set(self, name: str, value: float) -> None:
        self.values[name, ()] = value

    def total(self, name: str) -> float:
        """A counter over all its labels."""
        return sum(value for (known, _), value in self.values.items() if known == name)

    def took(self, seconds: float) -> None:
        """One request was held up for this long."""
        place = next((at for at, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        self._buckets[place] += 1
        self._seconds += seconds

    def text(self) -> str:
        """Prometheus's text format, version 0.0.4."""
        worker = str(os.getpid())
        lines: list[str] = []
        for name, (kind, help_text) in HELP.items():
            lines += [f"# HELP contextfold_{name} {help_text}", f"# TYPE contextfold_{name} {kind}"]
            if kind == "histogram":
                lines += self._histogram(name, worker)
                continue
            rows = sorted((labels, value) for (known, labels), value in self.values.items() if known == name)
            for labels, value in rows or [((), 0.0)]:
                lines.append(f"contextfold_{name}{_labels((*labels, ('worker', worker)))} {value:.10g}")
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str, worker: str) -> Iterable[str]:
        so_far = 0
        for bound, count in zip((*BUCKETS, float("inf")), self._buckets, strict=True):
            so_far += count
            edge = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f"contextfold_{name}_bucket{_labels((('le', edge), ('worker', worker)))} {so_far}"
        yield f"contextfold_{name}_sum{_labels((('worker', worker),))} {self._seconds:.6f}"
        yield f"contextfold_{name}_count{_labels((('worker', worker),))} {so_far}"


def _labels(labels: Labels) -> str:
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in labels)
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


def price_of(tokens: int, model: str) -> float:
    """Dollars that these input tokens cost at least: as reads from the cache, where the model has a price for them.

    A conversation's beginning is mostly read from the cache; counting it at full price would claim too much. 0 for a
    model whose price is not known.
    """
    return tokens * _per_token(model)


@lru_cache(maxsize=256)
def _per_token(model: str) -> float:
    from genai_prices import Usage, calc_price

    sample = 1_000
    for usage in (Usage(input_tokens=sample, cache_read_tokens=sample), Usage(input_tokens=sample)):
        try:
            return float(calc_price(usage, model).total_price) / sample
        except (LookupError, ValueError):
            continue
    return 0.0


def summary_of(metrics: Metrics) -> Mapping[str, float]:
    """The totals that ``contextfold run`` tells at its end."""
    names = ("requests_total", "compactions_total", "tokens_saved_total", "money_saved_dollars_total", "failures_total")
    return {name.removesuffix("_total"): metrics.total(name) for name in names}
