"""Measurements that are no replay of each conversation through each strategy, run after it and shown in the report.

Each is a module here with

    TITLE                                       heading of its section
    run(plan, conversations, progress)          what was found, as plain JSON: {"figures": ..., "times": ...}, where
                                                only times differ from run to run; ``jobs.load`` gives a conversation,
                                                ``jobs.spread`` calls a function in all processes
    markdown(found)                             the section, with figures alone; empty for no section
    markdown_times(found)                       a part of the section on times; optional
    plots(found, folder)                        the SVG file NAME.svg in the folder, shown above the times; optional
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.replay.collect import Found
    from benchmarks.replay.jobs import Plan, Progress

EXPERIMENTS: tuple[str, ...] = ("planted", "growth")
"""Names of modules, in the order of the report."""


def run(plan: Plan, conversations: Sequence[Found], progress: Progress) -> dict[str, Any]:
    """What every experiment found, by its name."""
    return {name: _module(name).run(plan, conversations, progress) for name in EXPERIMENTS}


def sections(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Heading and text of every experiment that was run."""
    parts = [(_module(name).TITLE, _module(name).markdown(one)) for name, one in found.items()]
    return [(title, text) for title, text in parts if text]


def sections_on_times(found: Mapping[str, Any], plotted: str) -> list[tuple[str, str]]:
    """Heading and text of every experiment on times; with its plot, if ``plotted`` names the folder of plots."""
    parts = []
    for name, one in found.items():
        module = _module(name)
        if hasattr(module, "markdown_times"):
            image = f"![{module.TITLE}]({plotted}/{name}.svg)\n\n" if plotted and hasattr(module, "plots") else ""
            parts.append((module.TITLE, image + module.markdown_times(one)))
    return parts


def plots(found: Mapping[str, Any], folder: Path) -> None:
    """The plots of those that have some."""
    for name, one in found.items():
        if hasattr(_module(name), "plots"):
            _module(name).plots(one, folder)


def _module(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}")
