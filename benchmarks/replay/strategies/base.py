"""What a strategy is: what decides which messages the agent's model gets to see now.

A strategy of one's own is one class:

    from benchmarks.replay.strategies.base import Strategy

    class LastTen(Strategy):
        def view(self, messages):
            return messages[:1] + messages[-10:]

    python -m benchmarks.replay --strategy mymodule:LastTen

Times are measured around ``view``. What an adapter does only for the sake of the benchmark, such as turning messages
into another library's, stands inside ``with self.outside():``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from benchmarks.replay.chat import Message
from benchmarks.replay.summarizer import Summarizer

TRIGGER = 0.8
"""Share of the window at which every strategy starts to compact, where it can be told."""
KEEP = 0.3
"""Share of the window that every strategy keeps as it is, where it can be told."""


class Strategy:
    """Made for one conversation and one window, and asked once before each answer of the agent."""

    packages: tuple[str, ...] = ()
    """Distributions whose versions its figures depend on."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.trigger = int(window * TRIGGER)
        self.keep = int(window * KEEP)
        self.summarizer = Summarizer()
        """The stub that stands for a model; what it is shown and says is priced."""
        self.adapter_seconds = 0.0

    def view(self, messages: list[Message]) -> list[Message]:
        """The messages to send, given the whole conversation so far (OpenAI chat dictionaries, not to be changed)."""
        raise NotImplementedError

    def fates(self) -> Sequence[str] | None:
        """What the strategy itself says became of each message of the history of its last view.

        One of ``kept``, ``pinned``, ``shortened``, ``summarized``, ``dropped``; None where it keeps no account.
        """
        return None

    def records(self) -> Mapping[str, int]:
        """Totals that only the strategy knows, added to its result."""
        return {}

    def archive(self) -> Mapping[str, str]:
        """Texts that the agent could open besides its view, by the name under which a view may point to them."""
        return {}

    def close(self) -> None:
        """Release what the instance holds outside memory."""

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Time spent in here is the adapter's, not the strategy's."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.adapter_seconds += time.perf_counter() - started


def split_system(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """The system message (as a list of none or one) and the rest."""
    cut = 1 if messages and messages[0]["role"] == "system" else 0
    return messages[:cut], messages[cut:]
