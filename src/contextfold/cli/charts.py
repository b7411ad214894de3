"""Bars and plots as lines of text: pure functions from numbers to strings.

What belongs here: how numbers become blocks. What does not: colors and layout (``screen``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

EIGHTHS = "▏▎▍▌▋▊▉█"
"""One to eight eighths of a cell from the left."""
LEVELS = "▁▂▃▄▅▆▇█"
"""One to eight eighths of a cell from the bottom."""


def bar(value: float, of: float, width: int, *, ascii_only: bool = False) -> str:
    """A bar of at most ``width`` cells; anything above zero shows at least a sliver."""
    if of <= 0 or value <= 0:
        return ""
    eighths = max(1, min(8 * width, round(8 * width * value / of)))
    full, rest = divmod(eighths, 8)
    if ascii_only:
        return "#" * max(1, full)
    return "█" * full + (EIGHTHS[rest - 1] if rest else "")


def columns(sizes: Sequence[int], width: int) -> list[int]:
    """``sizes`` summed into at most ``width`` neighboring columns of nearly equal count."""
    count = min(width, len(sizes))
    edges = [column * len(sizes) // count for column in range(count + 1)] if count else [0]
    return [sum(sizes[start:stop]) for start, stop in pairwise(edges)]


def plot(values: Sequence[int], height: int, *, ascii_only: bool = False) -> list[str]:
    """Columns standing side by side, the top row first; each row is one cell of ``height``."""
    top = max(values, default=0)
    if top <= 0:
        return [""] * height
    eighths = [max(1, round(8 * height * value / top)) if value > 0 else 0 for value in values]
    return [
        "".join(_cell(filled - 8 * row, ascii_only) for filled in eighths).rstrip() for row in reversed(range(height))
    ]


def _cell(eighths: int, ascii_only: bool) -> str:
    if eighths <= 0:
        return " "
    return "#" if ascii_only else LEVELS[min(eighths, 8) - 1]
