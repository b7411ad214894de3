"""What the gateway has done so far: counters for Prometheus, and the totals that people are told.

Several workers share one port, and a scrape reaches any of them: so each writes its figures into a folder of the run
(``WorkerFiles``), and the one that is asked reports those of all, each with its process id as the label ``worker``.

What belongs here: counting, prices, and the text that Prometheus reads. What does not: when something is counted.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

Labels = tuple[tuple[str, str], ...]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds of the histogram of added time."""

HELP = {
    "requests_total": ("counter", "Requests, by wire, upstream, what was done, and status."),
    "compactions_total": ("counter", "Compactions that came into force."),
    "tokens_saved_total": ("counter", "Input tokens that were not sent because a view was sent instead."),
    "money_saved_dollars_total": ("counter", "What they would have cost at least, as reads from the prompt cache."),
    "summary_tokens_total": ("counter", "Tokens that summaries by a model took, input and output."),
    "failures_total": ("counter", "What of ours failed, by kind. The request went on, unless strict."),
    "overflows_total": ("counter", "Refusals that said that a prompt does not fit, by kind."),
    "upstream_errors_total": ("counter", "Upstreams that could not be reached, reset or timed out, by kind."),
    "disconnects_total": ("counter", "Clients that left before the end of their answer."),
    "native_total": ("counter", "Requests left to the provider's own compaction, by field."),
    "websockets_declined_total": ("counter", "WebSockets that were declined: clients are to ask by HTTP."),
    "unread_total": (
        "counter",
        "Requests whose body could not be read, and that were passed on as they came, by reason.",
    ),
    "shadow_tokens_total": ("counter", "Shadow mode: input tokens that would not have been sent."),
    "in_flight": ("gauge", "Requests that are being answered."),
    "remembered_conversations": ("gauge", "Conversations in memory."),
    "added_seconds": ("histogram", "Time between the end of a request and its start toward the upstream."),
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

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """A counter by one of its labels, over all others; the largest first."""
        found: defaultdict[str, float] = defaultdict(float)
        for (known, labels), value in self.values.items():
            if known == name:
                found[dict(labels).get(label, "")] += value
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    def took(self, seconds: float) -> None:
        """One request was held up for this long."""
        place = next((at for at, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        self._buckets[place] += 1
        self._seconds += seconds

    def text(self, others: Mapping[str, Metrics] | None = None) -> str:
        """Prometheus's text format, version 0.0.4. ``others``: figures of other workers, by process id."""
        workers = {**(others or {}), str(os.getpid()): self}
        lines: list[str] = []
        for name, (kind, help_text) in HELP.items():
            lines += [f"# HELP contextfold_{name} {help_text}", f"# TYPE contextfold_{name} {kind}"]
            for worker, metrics in sorted(workers.items()):
                lines += metrics._histogram(name, worker) if kind == "histogram" else metrics._rows(name, worker)
        return "\n".join(lines) + "\n"

    def _rows(self, name: str, worker: str) -> Iterable[str]:
        rows = sorted((labels, value) for (known, labels), value in self.values.items() if known == name)
        for labels, value in rows or [((), 0.0)]:
            yield f"contextfold_{name}{_labels((*labels, ('worker', worker)))} {value:.10g}"

    def _histogram(self, name: str, worker: str) -> Iterable[str]:
        so_far = 0
        for bound, count in zip((*BUCKETS, float("inf")), self._buckets, strict=True):
            so_far += count
            edge = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f"contextfold_{name}_bucket{_labels((('le', edge), ('worker', worker)))} {so_far}"
        yield f"contextfold_{name}_sum{_labels((('worker', worker),))} {self._seconds:.6f}"
        yield f"contextfold_{name}_count{_labels((('worker', worker),))} {so_far}"

    def to_json(self) -> str:
        values = [[name, labels, value] for (name, labels), value in self.values.items()]
        return json.dumps({"values": values, "buckets": self._buckets, "seconds": self._seconds})

    @classmethod
    def from_json(cls, text: str, *, runs: bool = True) -> Metrics:
        """``runs``: the worker is there; counters of one that ended stay, and its gauges are gone."""
        said: dict[str, Any] = json.loads(text)
        values = {
            (name, tuple((label, value) for label, value in labels)): amount
            for name, labels, amount in said["values"]
            if runs or HELP[name][0] != "gauge"
        }
        return cls(defaultdict(float, values), said["buckets"], said["seconds"])


class WorkerFiles:
    """The figures of all workers of one run: a file for each in a folder that the run removes at its end."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._own = self._folder / f"{os.getpid()}.json"
        self._written = ""

    def write(self, metrics: Metrics) -> None:
        """The figures of this worker; nothing where they are as they were. A folder that is gone is no failure."""
        text = metrics.to_json()
        if text == self._written:
            return
        with suppress(OSError):
            fresh = self._own.with_suffix(".new")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self._own)  # a reader sees one version or the other
            self._written = text

    def others(self) -> dict[str, Metrics]:
        """The figures of the other workers, those included that have ended: a counter never goes back."""
        found: dict[str, Metrics] = {}
        for path in self._folder.glob("*.json"):
            if path != self._own:
                with suppress(OSError, ValueError, KeyError, TypeError):
                    found[path.stem] = Metrics.from_json(path.read_text(encoding="utf-8"), runs=_runs(path.stem))
        return found


def _runs(worker: str) -> bool:
    try:
        # signal 0 only asks whether the process is there
        os.kill(int(worker), 0)
    except (OSError, ValueError):
        return False
    return True


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
