"""The same figures on some conversations alone: is the ranking of strategies the same there?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

from benchmarks.replay import tables
from benchmarks.replay.measures.recall import Recall
from benchmarks.replay.results import Result
from benchmarks.replay.statistics import Row, rows
from benchmarks.replay.strategies import OURS, REFERENCE, is_variant

KEY = "hard_in_context"
COLUMN = next(column for column in Recall.columns if column.key == KEY)
GROUPS: Mapping[str, Callable[[Result], bool]] = MappingProxyType(
    {"Chinese": lambda result: result.is_chinese, "without tools": lambda result: not result.has_tools}
)
ALL = "all"


def markdown(results: Sequence[Result]) -> str:
    """A table for each window, and in words where the ranking is another one."""
    parts = [
        f"{COLUMN.title[:-2].capitalize()} in per cent, with the rank in brackets. Few conversations decide here, so "
        "most intervals are wide."
    ]
    for window in dict.fromkeys(sorted(result.window for result in results)):
        here = [result for result in results if result.window == window]
        choices = [r for r in here if r.strategy != REFERENCE and not is_variant(r.strategy)]
        if choices:
            parts.append(_window(window, choices))
    return "\n\n".join(parts)


def _window(window: int, results: Sequence[Result]) -> str:
    groups = {ALL: _by_strategy(results)}
    for name, belongs in GROUPS.items():
        chosen = [result for result in results if belongs(result)]
        if chosen:
            groups[name] = _by_strategy(chosen)
    ranks = {name: ranking(found) for name, found in groups.items()}
    heads = ["strategy", *(f"{name} ({_conversations(found)})" for name, found in groups.items())]
    lines = [
        [strategy, *(_cell(found.get(strategy), ranks[name]) for name, found in groups.items())]
        for strategy in groups[ALL]
    ]
    said = [_compared(name, groups[ALL], groups[name]) for name in groups if name != ALL]
    if len(said) < len(GROUPS):
        absent = [name for name in GROUPS if name not in groups]
        said.append(f"No conversation is long enough for this window among: {', '.join(absent)}.")
    return f"### Window {window:,} alone\n\n{tables.table(heads, lines)}\n\n" + "\n".join(f"- {text}" for text in said)


def _by_strategy(results: Sequence[Result]) -> dict[str, Row]:
    return {row.strategy: row for row in rows(results, [COLUMN])}


def _conversations(found: Mapping[str, Row]) -> int:
    return max(row.conversations for row in found.values())


def ranking(found: Mapping[str, Row]) -> dict[str, int]:
    """Rank of each strategy that has a figure, 1 being the best; equal figures share a rank."""
    values = {name: row.values[KEY] for name, row in found.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return {name: 1 + sum(other > value for other in known.values()) for name, value in known.items()}


def _cell(row: Row | None, ranks: Mapping[str, int]) -> str:
    if row is None or row.strategy not in ranks:
        return tables.NOTHING
    return f"{tables.written(row.values[KEY], COLUMN)} ({ranks[row.strategy]})"


def _compared(name: str, everything: Mapping[str, Row], part: Mapping[str, Row]) -> str:
    """In words: which pairs of strategies stand the other way round than over all conversations."""
    whole, here = ranking(everything), ranking(part)
    if not here:
        return f"{name.capitalize()}: no hard identifier to tell by."
    turned = [
        (one, other)
        for one, other in combinations([strategy for strategy in whole if strategy in here], 2)
        if (whole[one] - whole[other]) * (here[one] - here[other]) < 0
    ]
    first = min(here, key=lambda strategy: here[strategy])
    lead = f"{name.capitalize()}: {first} is first"
    if not turned:
        return f"{lead}, and the ranking is the same as over all."
    pairs = "; ".join(f"{one} and {other}{_margin(one, other, part)}" for one, other in turned)
    tail = "" if any(OURS in pair for pair in turned) else f" No pair with {OURS} is among them."
    return f"{lead}. The other way round than over all: {pairs}.{tail}"


def _margin(one: str, other: str, part: Mapping[str, Row]) -> str:
    """What speaks for chance: intervals that overlap, or a single conversation."""
    low, high = part[one].intervals.get(KEY), part[other].intervals.get(KEY)
    if low is None or high is None:
        return " (one conversation)"
    apart = low[0] > high[1] or high[0] > low[1]
    return "" if apart else " (intervals overlap)"
