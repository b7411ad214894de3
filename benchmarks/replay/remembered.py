"""The section of the report on memory, from the figures that ``benchmarks/memory.py --save`` keeps."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.replay import tables

SAVED = Path(__file__).resolve().parents[1] / "memory.json"

TITLES = {
    "search": "Search by the question as it is typed: a turn that answers it is among the first hits",
    "view": "A turn that answers the question stands in a view of this window, with the question behind it",
    "rules": "What users set, planted among chatter, compacted five times to a share of the characters, stands",
    "kit": "The same for `compaction-conformance-kit` 0.8.0, four seeds, one pass, measured by hand",
}

ABOUT = (
    "Whether what people ask about later can still be found, by `benchmarks/memory.py`. Its dialogues are three of "
    "LoCoMo's ten (Maharana et al., ACL 2024), with questions whose answers stand in one or a few turns; they are not "
    "part of the repository."
)


def markdown(saved: Path = SAVED) -> str:
    """A table for each measurement that was kept."""
    if not saved.is_file():
        return "Nothing was measured yet: `benchmarks/memory.py --save` keeps figures for this section."
    parts = [ABOUT]
    for what, figures in json.loads(saved.read_text(encoding="utf-8")).items():
        row = [f"{figure:.1%}".replace("%", " %") for figure in figures.values()]
        parts.append(f"**{TITLES.get(what, what)}**\n\n{tables.table(list(figures), [row])}")
    return "\n\n".join(parts)
