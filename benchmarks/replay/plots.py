"""The plots of the report: what a window sees turn by turn, fidelity against cost, and where the cost goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.replay import plotting
from benchmarks.replay.measures.cost import parts, spent
from benchmarks.replay.statistics import Row
from benchmarks.replay.strategies import REFERENCE, is_ours, is_variant

HIGHEST = 1.35
"""Windows: what reaches above is cut off in the saw-teeth."""
PART_COLORS = {
    "cached input": plotting.SKY,
    "uncached input": plotting.BLUE,
    "summarizer input": "#E69F00",
    "summarizer output": plotting.ORANGE,
}


def saw_teeth(curves: Mapping[str, Sequence[int]], window: int, path: Path) -> None:
    """Tokens of every view, a panel for each strategy, with the whole history behind it."""
    names = [name for name in curves if name != REFERENCE]
    columns = 2 if len(names) > 1 else 1
    lines = -(-len(names) // columns)
    size = (5.2 * columns, 1.9 * lines + 0.5)
    with plotting.figure(path, lines, columns, size=size, sharex=True, sharey=True, squeeze=False) as (drawn, axes):
        for panel, name in zip(axes.flat, names, strict=False):
            _saw_tooth(panel, name, curves, window)
        for panel in list(axes.flat)[len(names) :]:
            panel.set_visible(False)
        drawn.supxlabel("answer of the agent", fontsize=9.5, color=plotting.INK)
        drawn.supylabel("tokens sent", fontsize=9.5, color=plotting.INK)


def _saw_tooth(panel: Any, name: str, curves: Mapping[str, Sequence[int]], window: int) -> None:
    top = HIGHEST * window
    if REFERENCE in curves:
        everything = [min(value, top) for value in curves[REFERENCE]]
        panel.plot(everything, color=plotting.PALE, linewidth=1.2)
    curve = [min(value, top) for value in curves[name]]
    strong = plotting.color(name) if is_ours(name) else "#6b6b6b"
    panel.fill_between(range(len(curve)), curve, color=strong, alpha=0.15, linewidth=0)
    panel.plot(curve, color=strong, linewidth=1.5 if is_ours(name) else 1.1)
    panel.axhline(window, color=plotting.INK, linestyle=(0, (4, 3)), linewidth=0.9)
    panel.text(0.995, window * 1.03, "window", transform=panel.get_yaxis_transform(), ha="right", fontsize=8)
    panel.set_title(name, color=strong if is_ours(name) else plotting.INK)
    panel.set_ylim(0, top)
    panel.set_xlim(0, max(1, len(curve) - 1))
    panel.yaxis.set_major_formatter(_thousands)


def _thousands(value: float, _: object) -> str:
    return f"{value / 1000:.0f}k" if value else "0"


def fidelity_against_cost(rows: Sequence[Row], path: Path) -> None:
    """Identifiers kept in context against cost, a panel for each window: up and to the left is better."""
    rows = [row for row in rows if row.strategy != REFERENCE and not is_variant(row.strategy)]
    windows = list(dict.fromkeys(row.window for row in rows))
    size = (max(6.0, 3.4 * len(windows)), 4.7)
    with plotting.figure(path, 1, len(windows), size=size, sharey=True, squeeze=False) as (drawn, axes):
        for panel, window in zip(axes.flat, windows, strict=True):
            panel.set_title(f"window {window:,}")
            for row in rows:
                if row.window == window:
                    _point(panel, row)
            panel.set_xlabel("cost, of no compaction")
            panel.set_xlim(left=0)
        axes.flat[0].set_ylabel("hard in context, %")
        axes.flat[0].set_ylim(0, 100)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=_legend_columns(size[0]))


def _legend_columns(inches: float) -> int:
    """How many names of strategies stand side by side in a figure so wide."""
    return max(1, int(inches / 1.75))


def _point(panel: Any, row: Row) -> None:
    value, cost = row.values["hard_in_context"], row.values["cost"]
    if value is None or cost is None:
        return
    ours = is_ours(row.strategy)
    low, high = row.intervals.get("hard_in_context", (value, value))
    panel.errorbar(
        cost,
        100 * value,
        yerr=[[100 * max(0.0, value - low)], [100 * max(0.0, high - value)]],
        fmt=plotting.mark(row.strategy),
        color=plotting.color(row.strategy),
        markersize=8 if ours else 6,
        elinewidth=1.2 if ours else 0.8,
        alpha=1.0 if ours else 0.85,
        zorder=3 if ours else 2,
        label=row.strategy,
    )


def where_the_cost_goes(rows: Sequence[Row], path: Path) -> None:
    """Cached, uncached, summarizer's input and output, a bar for each strategy, a panel for each window."""
    windows = list(dict.fromkeys(row.window for row in rows))
    names = [name for name in dict.fromkeys(row.strategy for row in rows) if name != REFERENCE]
    names = [name for name in names if not is_variant(name)]
    size = (3.3 * len(windows) + 1.2, 0.32 * len(names) + 1.3)
    with plotting.figure(path, 1, len(windows), size=size, sharey=True, squeeze=False) as (drawn, axes):
        for panel, window in zip(axes.flat, windows, strict=True):
            here = {row.strategy: row for row in rows if row.window == window}
            _bars(panel, [here.get(name) for name in names])
            panel.set_title(f"window {window:,}")
            panel.set_xlabel("cost, of no compaction")
        first = axes.flat[0]
        first.set_yticks(range(len(names)), names)
        first.invert_yaxis()
        for label in first.get_yticklabels():
            label.set_fontweight("bold" if is_ours(label.get_text()) else "normal")
        handles, labels = first.get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=4)


def _bars(panel: Any, rows: Sequence[Row | None]) -> None:
    starts = [0.0] * len(rows)
    for name, color in PART_COLORS.items():
        widths = [_share(row, name) for row in rows]
        panel.barh(range(len(rows)), widths, left=starts, color=color, height=0.72, label=name)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    panel.grid(axis="y", visible=False)


def _share(row: Row | None, part: str) -> float:
    if row is None or not row.reference:
        return 0.0
    return parts(row.totals)[part] / spent(row.reference)
