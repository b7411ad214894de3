"""The report of a run: a page of markdown with its plots, and the same figures as JSON.

Everything but the last section is the same in every run over the same conversations with the same code.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.replay import experiments, jobs, remembered, splits, strategies, tables, versions
from benchmarks.replay.jobs import LIMIT
from benchmarks.replay.measure import Column
from benchmarks.replay.measures import columns
from benchmarks.replay.recording import Recording
from benchmarks.replay.replay import steps
from benchmarks.replay.results import Result
from benchmarks.replay.statistics import Row, rows, times

TRIED = Path(__file__).with_name("tried.md")
SHOWN_IN_TEETH = ("none", "contextfold", "floor", "langchain", "deepagents", "masking_langchain", "langmem")
TEETH = 5
"""Windows: the length that the conversation of the saw-teeth should have."""


@dataclass(frozen=True)
class Material:
    """What a run found."""

    plan: jobs.Plan
    survey: jobs.Survey
    results: Sequence[Result]
    missing: Mapping[str, str]
    """Strategies that could not be run, and why."""
    experiments: Mapping[str, Any]
    seconds: float


def write(path: Path, material: Material) -> str:
    """The page at ``path``, its plots in a folder of the same name, figures and times as JSON. The main tables."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_suffix("")
    found = rows(material.results, columns())
    plotted = _plots(material, found, folder)
    path.write_text("\n\n".join(_page(material, found, folder.name if plotted else "")) + "\n", encoding="utf-8")
    _write_json(material, found, material.plan.saved.parent)
    return "\n\n".join(_main_tables(found))


def _page(material: Material, found: Sequence[Row], plots: str) -> list[str]:
    """The sections of the page. ``plots`` is the folder of the plots, as the page links to it; empty without any."""
    return [
        "# Benchmark",
        _opening(material),
        "## At a glance",
        *_main_tables(found),
        tables.legend([column for column in columns() if column.main]),
        *_plot_links(plots),
        "## What each part of contextfold is worth",
        _parts(found),
        "## Chinese conversations and dialogues without tools",
        splits.markdown(material.results),
        *(f"## {title}\n\n{text}" for title, text in experiments.sections(material.experiments)),
        "## All figures",
        *_detailed_tables(found),
        tables.legend([column for column in columns() if not column.main]),
        "## Tried and given up",
        TRIED.read_text(encoding="utf-8").strip() if TRIED.is_file() else "Nothing is noted yet.",
        "## Memory",
        remembered.markdown(),
        "## What was replayed",
        _data(material),
        "## Times",
        _times(material, plots),
    ]


# ---- sections ----


def _opening(material: Material) -> str:
    made_up = material.plan.data is None
    what = "the example sessions of the project, which are made up," if made_up else "real conversations"
    warning = (
        "\n\n**No transcripts were at hand, so this is about the example sessions. They show that the benchmark works; "
        "only real conversations decide between strategies.**"
        if made_up
        else ""
    )
    return (
        f"How well strategies keep an agent inside its window, replayed turn by turn over {what} without a model and "
        "without a network. Before each answer of the agent the strategy makes its view of everything so far; the "
        "answer that really came tells what was needed. [What each figure means, the limits of the method, and how to "
        f"run it on your own conversations](benchmark-guide.md).{warning}\n\n"
        f"    {command(material.plan)}\n\n"
        f"{_versions()}. Trigger at 80 % of the window and 30 % kept, for all that can be told so; `contextfold` has "
        "its own defaults and its built-in summarizer, the others that summarize have the same stub: a deterministic "
        "extract of at most 1,000 tokens. The strategies:\n\n" + _strategies(material)
    )


def command(plan: jobs.Plan) -> str:
    """The command that gives the same report."""
    parts = ["python -m benchmarks.replay", f"--windows {' '.join(map(str, plan.windows))}"]
    if plan.data is None:
        parts.append("--data examples")
    if plan.limit != LIMIT:
        parts.append(f"--limit {plan.limit}")
    others = [name for name in plan.strategies if name != strategies.REFERENCE]
    if others != [name for name in strategies.REGISTRY if name != strategies.REFERENCE]:
        parts.append("--strategies " + " ".join(name for name in others if name in strategies.REGISTRY))
        parts += [f"--strategy {name}" for name in others if name not in strategies.REGISTRY]
    return " ".join(parts)


def _versions() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.packages().items())


def _strategies(material: Material) -> str:
    lines = [f"- `{name}`: {strategies.entry(name).about}" for name in material.plan.strategies]
    lines += [f"- `{name}` could not be run: {reason}" for name, reason in material.missing.items()]
    return "\n".join(lines)


def _main_tables(found: Sequence[Row]) -> list[str]:
    return _tables(found, [column for column in columns() if column.main])


def _detailed_tables(found: Sequence[Row]) -> list[str]:
    return _tables(found, [column for column in columns() if not column.main])


def _tables(found: Sequence[Row], shown: Sequence[Column]) -> list[str]:
    parts = []
    for window in dict.fromkeys(row.window for row in found):
        here = [row for row in found if row.window == window]
        first = here[0]
        parts.append(
            f"### Window {window:,}\n\n{first.conversations} conversations, {first.totals['views']:,.0f} views, "
            f"{first.totals['recall_hard']:,.0f} hard and {first.totals['recall_far']:,.0f} far identifiers\n\n"
            + tables.figures(here, shown, strong=(strategies.OURS,))
        )
    return parts


def _parts(found: Sequence[Row]) -> str:
    """contextfold with a part taken out, against itself."""
    keys = ("hard_in_context", "far_usable", "cost")
    shown = [column for column in columns() if column.key in keys]
    lines = []
    for row in found:
        if strategies.is_ours(row.strategy):
            lines.append([f"{row.window:,}", row.strategy, *(tables.cell(row, column) for column in shown)])
    if not lines:
        return "contextfold was not among the strategies."
    return tables.table(["window", "strategy", *(column.title for column in shown)], lines)


def _data(material: Material) -> str:
    survey = material.survey
    sources: dict[str, list[int]] = {}
    for entry in survey.conversations:
        sources.setdefault(entry.source, []).append(entry.tokens)
    lines = [[name, f"{len(sizes):,}", f"{sum(sizes):,}", f"{max(sizes):,}"] for name, sizes in sorted(sources.items())]
    kinds = {result.digest: result for result in material.results}.values()
    chinese, plain = sum(result.is_chinese for result in kinds), sum(not result.has_tools for result in kinds)
    text = (
        f"{len(survey.conversations)} conversations of more than 1.5 times the smallest window, {chinese} of them in "
        f"Chinese and {plain} without tools. A conversation is replayed in a window if it is longer than 1.5 windows "
        "and its system message takes at most half of one.\n\n"
        + tables.table(["source", "conversations", "tokens", "longest"], lines)
    )
    if survey.unread:
        text += f"\n\n{len(survey.unread)} files held no conversation."
    return text


def _times(material: Material, plots: str) -> str:
    lines = [
        [
            one.strategy,
            f"{one.window:,}",
            f"{one.calls:,}",
            *(f"{value:.2f}" for value in (one.median, one.ninety_fifth, one.worst)),
        ]
        for one in times(material.results)
    ]
    heads = ["strategy", "window", "calls", "median ms", "95 % ms", "worst ms"]
    parts = [
        "These differ from run to run and from machine to machine; everything above does not. Own time of each call, "
        "without the summarizer and without turning messages into another library's.",
        tables.table(heads, lines),
        *(f"### {title}\n\n{text}" for title, text in experiments.sections_on_times(material.experiments, plots)),
        f"The run took {material.seconds:,.0f} s in {material.plan.jobs} processes, results of earlier runs aside.",
    ]
    return "\n\n".join(parts)


# ---- plots ----


def _plots(material: Material, found: Sequence[Row], folder: Path) -> bool:
    """Whether there are any: they need a strategy that does something, and matplotlib, of the extra ``bench``."""
    if importlib.util.find_spec("matplotlib") is None or {row.strategy for row in found} <= {"none"}:
        return False
    from benchmarks.replay import plots

    plots.fidelity_against_cost(found, folder / "fidelity-cost.svg")
    plots.where_the_cost_goes(found, folder / "cost.svg")
    window = material.plan.windows[len(material.plan.windows) // 2]
    plots.saw_teeth(_curves(material, window), window, folder / "saw-teeth.svg")
    experiments.plots(material.experiments, folder)
    return True


def _plot_links(folder: str) -> list[str]:
    if not folder:
        return []
    return [
        "### Fidelity against cost",
        f"![Fidelity against cost]({folder}/fidelity-cost.svg)",
        "Up and to the left is better. Bars are 95 % intervals over conversations. `none` is not shown: over the "
        "window it keeps nothing usable.",
        "### Tokens per turn",
        f"![Tokens per turn]({folder}/saw-teeth.svg)",
        "One conversation, the whole history in gray behind. A good strategy rarely rewrites what it has sent, stays "
        "below the window, and uses it.",
        "### Where the cost goes",
        f"![Where the cost goes]({folder}/cost.svg)",
        "In input-token equivalents, relative to sending the whole history with perfect caching.",
    ]


def _curves(material: Material, window: int) -> dict[str, list[int]]:
    """Sizes of all views of one conversation: the one with tools whose length is closest to ``TEETH`` windows."""
    asked = material.plan.strategies
    names = [name for name in SHOWN_IN_TEETH if name in asked]
    if names == ["none"]:  # which is drawn behind others, and is no panel of its own
        names += [name for name in asked if name != "none"]
    suiting = {result.digest for result in material.results if result.window == window and result.has_tools}
    candidates = [entry for entry in material.survey.conversations if entry.digest in suiting]
    if not candidates:
        candidates = list(material.survey.conversations)
    entry = min(candidates, key=lambda found: (abs(found.tokens - TEETH * window), str(found.place)))
    recording = Recording(jobs.load(material.plan, entry))
    curves = {}
    for name in names:
        strategy = strategies.create(name, window)
        try:
            curves[name] = [step.tokens for step in steps(recording, strategy)]
        finally:
            strategy.close()
    return curves


# ---- JSON ----


def _write_json(material: Material, found: Sequence[Row], folder: Path) -> None:
    """``figures.json``, the same in every run, and ``times.json``."""
    errors = Counter(result.strategy for result in material.results if result.first_error)
    figures = {
        "command": command(material.plan),
        "versions": versions.packages(),
        "conversations": [[str(entry.place), entry.tokens, entry.digest] for entry in material.survey.conversations],
        "rows": [row.as_json() for row in found],
        "conversations_with_errors": dict(sorted(errors.items())),
        "experiments": {name: one.get("figures") for name, one in material.experiments.items()},
    }
    measured = {
        "seconds": round(material.seconds, 1),
        "cores": os.cpu_count(),
        "strategies": [vars(one) for one in times(material.results)],
        "experiments": {name: one.get("times") for name, one in material.experiments.items()},
    }
    for name, content in (("figures.json", figures), ("times.json", measured)):
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
