"""Rows as markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.replay.measure import Column
from benchmarks.replay.statistics import Row

NOTHING = "–"


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A markdown table: the first column to the left, the others to the right."""
    parts = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    parts += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(parts)


def figures(rows: Sequence[Row], columns: Sequence[Column], strong: Sequence[str] = ()) -> str:
    """A line for each row, a column for each figure; the strategies in ``strong`` stand out."""
    lines = []
    for row in rows:
        name = f"**{row.strategy}**" if row.strategy in strong else row.strategy
        lines.append([name, *(cell(row, column) for column in columns)])
    return table(["strategy", *(column.title for column in columns)], lines)


def cell(row: Row, column: Column) -> str:
    """A figure as it is printed, with its interval where it has one."""
    text = written(row.values[column.key], column)
    bounds = row.intervals.get(column.key)
    if bounds is None or text == NOTHING or not column.interval:
        return text
    return f"{text} ({100 * bounds[0]:.0f}–{100 * bounds[1]:.0f})"


def written(value: float | None, column: Column) -> str:
    """A figure in the column's style."""
    if value is None:
        return NOTHING
    if column.style == "percent":
        return f"{100 * value:.1f}" if value else "0"
    if column.style in ("ratio", "milliseconds"):
        return f"{value:.2f}"
    if column.style == "money":
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def legend(columns: Sequence[Column]) -> str:
    """What each column means, as a list."""
    return "\n".join(f"- **{column.title}**: {column.meaning}" for column in columns)
