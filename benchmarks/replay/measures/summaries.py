"""Did the text of what left the view reach the summarizer? Found out by probes, whatever the strategy says of itself.

A probe is a piece of a message, letters and digits only, so that quoting and indentation do not matter. A message is
covered fully when all its probes are found in what the summarizer was shown, partly when some are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from benchmarks.replay.chat import rendered
from benchmarks.replay.measure import Column, Number, Step, Totals, counted, share, total
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy

PROBES, PROBE_CHARACTERS, SHORTEST_PROBED = 5, 24, 8
"""The most probes for a message, and the characters of each; shorter messages than the last are left out."""
_NOISE = re.compile(r'(?:\\+["nrtu]?|[^\w\\]|_)+')


def _full(totals: Totals, _: Totals) -> float | None:
    probed = sum(totals.get(f"coverage_{kind}", 0) for kind in ("full", "part", "none"))
    return totals.get("coverage_full", 0) / probed if probed and totals["summary_calls"] else None


class Summaries:
    """What the summarizer is shown of what leaves the view."""

    columns: ClassVar[Sequence[Column]] = (
        Column(
            "coverage",
            "shown to summarizer %",
            "Messages that left the view and whose whole text reached the summarizer, by probes. Nothing stands where "
            "no summarizer was called.",
            _full,
            main=False,
        ),
        Column(
            "summary_calls",
            "summarizer calls",
            "Calls of the stub summarizer.",
            total("summary_calls"),
            "count",
            better="",
            main=False,
        ),
        Column(
            "summary_per_evicted",
            "summarizer input / evicted",
            "Tokens shown to the summarizer for each token that left the view.",
            share("cost_summary_input", "evicted_tokens"),
            "ratio",
            better="",
            main=False,
        ),
    )

    def __init__(self, recording: Recording, window: int) -> None:
        self._recording = recording
        self._so_far: set[int] = set()
        self._walked = 0
        self._evicted: set[int] = set()

    def step(self, step: Step) -> None:
        self._so_far.update(self._recording.numbers[self._walked : step.index])
        self._walked = step.index
        self._evicted |= self._so_far - step.present

    def result(self, strategy: Strategy) -> dict[str, Number]:
        known = self._recording.known
        messages = [n for n in sorted(self._evicted) if known.messages[n]["role"] != "system"]
        shown = [squeezed(text) for text in strategy.summarizer.inputs]
        covered = Counter(reach for n in messages if (reach := reached(rendered(known.messages[n]), shown)))
        return {
            "summary_calls": len(strategy.summarizer.inputs),
            "evicted_messages": len(messages),
            "evicted_tokens": sum(known.tokens(n) for n in messages),
            **counted("coverage_", covered),
        }


def squeezed(text: str) -> str:
    """Only the letters and digits of a text."""
    return _NOISE.sub("", text)


def probes(text: str) -> list[str]:
    """Pieces of a text, evenly spread, its beginning and end among them; none of a text too short to tell."""
    bare = squeezed(text)
    if len(bare) < SHORTEST_PROBED:
        return []
    if len(bare) <= PROBE_CHARACTERS:
        return [bare]
    count = min(PROBES, max(2, len(bare) // PROBE_CHARACTERS))
    last = len(bare) - PROBE_CHARACTERS
    starts = (round(last * number / (count - 1)) for number in range(count))
    return [bare[start : start + PROBE_CHARACTERS] for start in starts]


def reached(text: str, shown: Sequence[str]) -> str:
    """``full``, ``part`` or ``none``: how much of a text stands in squeezed texts; empty where it cannot be told."""
    wanted = probes(text)
    if not wanted:
        return ""
    hits = sum(any(probe in one for one in shown) for probe in wanted)
    return "full" if hits == len(wanted) else "part" if hits else "none"
