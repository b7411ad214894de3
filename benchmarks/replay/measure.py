"""The interface between a replay and what is measured of it.

A replay asks a strategy for its view before every answer of the agent, and hands each ``Step`` to its measures. A
measure is one small class: it looks at steps and gives totals, plain numbers that can be added up over conversations,
written to a file and read again. Its columns say how totals become the figures of a table.

What belongs here: these values, and how totals are added. What does not: any particular measure (``measures``), and
anything that runs (``replay``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias

from benchmarks.replay.chat import Message
from contextfold.inspector.replay import ReplayRequest

if TYPE_CHECKING:
    from benchmarks.replay.recording import Recording
    from benchmarks.replay.strategies.base import Strategy
    from contextfold.inspector.recording import Need

Number: TypeAlias = int | float
Totals: TypeAlias = Mapping[str, Number]
"""Figures that are added up over conversations; those whose names begin with ``max_`` by taking the largest."""

MAXIMUM = "max_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(ReplayRequest):
    """One request that the agent's model would have got, as one strategy makes it."""

    recording: Recording
    """The conversation, and all that is known of it. ``recording.known`` has every message by its number."""
    strategy: Strategy
    """The instance that made the view; it lives for one conversation. Only to be read."""
    window: int
    problems: tuple[str, ...]
    """Why a provider would refuse the view, apart from its size."""

    @property
    def history(self) -> Sequence[Message]:
        """The conversation so far."""
        return self.recording.messages[: self.index]

    @property
    def answer(self) -> Message:
        """The message that really came next."""
        return self.recording.messages[self.index]

    @property
    def needs(self) -> Sequence[Need]:
        """The identifiers that the answer repeats from the history."""
        return self.recording.needs[self.index]

    @property
    def fits(self) -> bool:
        return self.tokens <= self.window

    @property
    def usable(self) -> bool:
        """Whether a provider would take the view."""
        return self.fits and not self.problems


class Measure(Protocol):
    """Looks at every step of one replay. One is made for each replay, with a state of its own."""

    columns: ClassVar[Sequence[Column]]

    def __init__(self, recording: Recording, window: int) -> None: ...

    def step(self, step: Step) -> None:
        """Take note of one request."""
        ...

    def result(self, strategy: Strategy) -> Totals:
        """Totals of the whole replay, after its last step. Only what is the same in every run."""
        ...


class Timed(Protocol):
    """What a measure of times and memory gives besides: figures that differ from run to run."""

    def times(self, strategy: Strategy) -> Mapping[str, Sequence[float]]:
        """Samples, which are put together over conversations."""
        ...


Style = Literal["percent", "ratio", "count", "tokens", "money", "milliseconds"]


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a table: how it is had from totals, and what it means."""

    key: str
    title: str
    """The heading, in a few words."""
    meaning: str
    """One sentence for someone who sees the table for the first time."""
    value: Callable[[Totals, Totals], float | None]
    """``value(totals, reference)``; the reference are the totals of ``none`` over the same conversations and window.
    None where there is nothing to tell."""
    style: Style = "percent"
    """How it is written; shares are from 0 to 1, and printed as per cent."""
    sample: tuple[str, str] | None = None
    """Names of (part, whole) in the totals, where the figure is a share that gets a 95 % interval."""
    better: Literal["high", "low", ""] = "high"
    main: bool = True
    """Whether it stands in the first table, not in the details."""

    @property
    def interval(self) -> bool:
        """Whether the interval is printed: for main figures, where it is wide enough to matter."""
        return self.sample is not None and self.main and self.better == "high"


def share(part: str, whole: str) -> Callable[[Totals, Totals], float | None]:
    """The value of a column that divides one total by another."""
    return lambda totals, _: totals[part] / totals[whole] if totals.get(whole) else None


def total(name: str) -> Callable[[Totals, Totals], float | None]:
    """The value of a column that is a total as it stands."""
    return lambda totals, _: totals.get(name)


def share_column(key: str, title: str, meaning: str, part: str, whole: str, **more: object) -> Column:
    """A column with a share of two totals, with its 95 % interval."""
    return Column(key, title, meaning, share(part, whole), sample=(part, whole), **more)  # type: ignore[arg-type]


def added(totals: Iterable[Totals]) -> dict[str, Number]:
    """The totals of several replays as one. The order in which names first come is kept."""
    found: dict[str, Number] = {}
    for one in totals:
        for name, value in one.items():
            if name.startswith(MAXIMUM):
                found[name] = max(found.get(name, value), value)
            else:
                found[name] = found.get(name, 0) + value
    return found


def counted(prefix: str, counter: Counter[str]) -> dict[str, int]:
    """A counter as totals, in the order of its keys."""
    return {f"{prefix}{name}": counter[name] for name in sorted(counter)}
