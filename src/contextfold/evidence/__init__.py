"""Verbatim lines worth carrying: chosen by code from everything that has left the view.

What belongs here: cutting messages into lines (``lines``), what each of them holds (``reading``), the same in arrays
(``blocks``), what that is worth (``choice``), which lines are chosen under a token budget (``greedy``), and parts of
lines for the names that none of them shows (``clips``). What does not: recognizing identifiers (``identifiers``), prose
(``summary``), and where the lines stand in the view (the engine).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextfold.evidence.blocks import Block, Vocabulary
    from contextfold.evidence.choice import select
    from contextfold.evidence.lines import LineReader, lines_of
    from contextfold.evidence.reading import Line
    from contextfold.evidence.section import MARK, read, rules_in, rules_under_mark
    from contextfold.evidence.sizes import EstimatedSizes, ScaledSizes, Sizes

__all__ = [
    "MARK",
    "Block",
    "EstimatedSizes",
    "Line",
    "LineReader",
    "ScaledSizes",
    "Sizes",
    "Vocabulary",
    "lines_of",
    "read",
    "rules_in",
    "rules_under_mark",
    "select",
]

_HOMES = {
    "Block": "blocks",
    "Vocabulary": "blocks",
    "select": "choice",
    "Line": "reading",
    "lines_of": "lines",
    "LineReader": "lines",
    "MARK": "section",
    "read": "section",
    "rules_in": "section",
    "rules_under_mark": "section",
    "EstimatedSizes": "sizes",
    "ScaledSizes": "sizes",
    "Sizes": "sizes",
}


def __getattr__(name: str) -> Any:
    """Arrays are loaded with the first choice: many conversations never come to one."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
