"""How plots look, and how they are saved so that the same figures give the same file.

Light background, the colors of Okabe and Ito (2008), which people with any color vision can tell apart; contextfold
in strong colors, everything else in grays with a mark of its own. Import this only where matplotlib is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt

BLUE, ORANGE, GREEN, SKY, PURPLE = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7"
INK, GRAY, PALE = "#333333", "#8a8a8a", "#d9d9d9"

COLORS = {
    "contextfold": ORANGE,
    "contextfold_given": BLUE,
    "contextfold_same": SKY,
    "contextfold_langchain": GREEN,
    "contextfold_deepagents": PURPLE,
    "contextfold_no_evidence": SKY,
    "contextfold_no_tiers": GREEN,
    "contextfold_no_prose": PURPLE,
}
MARKS = {
    "contextfold": "o", "contextfold_given": "o", "contextfold_no_evidence": "v", "contextfold_no_tiers": "^",
    "contextfold_no_prose": "D", "contextfold_same": "o", "contextfold_langchain": "^",
    "contextfold_deepagents": "P", "none": "*", "floor": "_", "trim_oldest": "x", "masking_langchain": "s",
    "masking_turns": "D", "langchain": "^", "langchain_untrimmed": "v", "deepagents": "P", "langmem": "X",
}  # fmt: skip
STYLE = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": GRAY,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 9.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.constrained_layout.h_pad": 0.08,
    "svg.hashsalt": "contextfold",
    "svg.fonttype": "path",
}


def color(strategy: str) -> str:
    """Of a strategy: strong for contextfold, gray for the others."""
    return COLORS.get(strategy, GRAY)


def mark(strategy: str) -> str:
    """The marker of a strategy; one of one's own gets a pentagon."""
    return MARKS.get(strategy, "p")


@contextmanager
def figure(path: Path, *shape: int, size: tuple[float, float], **options: Any) -> Iterator[tuple[Any, Any]]:
    """(figure, axes) in the common style, saved as SVG to ``path`` at the end. ``size`` is in inches."""
    with mpl.rc_context(STYLE):
        drawn, axes = plt.subplots(*shape, figsize=size, layout="constrained", **options)
        yield drawn, axes
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(drawn)
