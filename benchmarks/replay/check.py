"""A small slice against a committed baseline: fails when fidelity falls or cost rises beyond a margin.

The example sessions are replayed, and the conversations of the baseline where these are at hand. A slice is a few
conversations, two windows, contextfold and the strategies that cost nothing to run: about a minute of one core.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.replay import jobs, strategies, tables
from benchmarks.replay.measure import Column
from benchmarks.replay.measures import columns
from benchmarks.replay.statistics import Row, rows

BASELINE = Path(__file__).with_name("baseline.json")
WINDOWS = (16_000, 32_000)
STRATEGIES = ("none", "floor", "contextfold", "contextfold_given", "contextfold_langchain", "contextfold_deepagents")
LIMIT = 3
"""Conversations in each band of sizes."""

FIDELITY_MARGIN = 0.01
"""``hard in context`` and ``far usable`` may fall by so much (a share: 0.01 is a point) before the check fails."""
COST_MARGIN = 0.02
"""Cost may rise by this share of itself."""
FIDELITY = ("hard_in_context", "far_usable")
FORBIDDEN = ("invalid", "over_window", "latest_user_lost", "errors")
"""Figures of contextfold that must be zero."""

Figures = Mapping[str, Mapping[str, float | None]]
"""``window strategy`` -> the figures of that row."""


def run(plan: jobs.Plan, *, write: bool = False) -> int:
    """Compare with the baseline, or write it. 0 if nothing is worse, 1 if something is."""
    plan = replace(plan, windows=WINDOWS, strategies=STRATEGIES, limit=LIMIT)
    jobs.prepare(plan.tokenizer)
    if write:
        return _write(plan)
    known = json.loads(BASELINE.read_text(encoding="utf-8"))
    failed = [_is_worse(kind, one, survey, known[kind]) for kind, one, survey in _slices(plan, known)]
    return 1 if any(failed) else 0


def _is_worse(kind: str, plan: jobs.Plan, survey: jobs.Survey, known: Mapping[str, Any]) -> bool:
    found = _rows(plan, survey)
    for window in plan.windows:
        print(f"window {window:,}\n\n{tables.figures([row for row in found if row.window == window], _columns())}\n")
    problems = [*worse(figures(found), known["figures"]), *forbidden(found)]
    for problem in problems:
        print(f"WORSE: {problem}")
    print(f"{len(survey.conversations)} {kind}, {len(problems)} figures are worse than {BASELINE.name} allows\n")
    return bool(problems)


def _slices(plan: jobs.Plan, known: Mapping[str, Any]) -> Iterator[tuple[str, jobs.Plan, jobs.Survey]]:
    """(kind of conversations, what to replay them by, the conversations)."""
    examples = replace(plan, data=None)
    yield "examples", examples, jobs.survey(examples, _silent)
    if plan.data is None:
        print("No transcripts are at hand: the example sessions alone are replayed.")
        return
    survey = jobs.survey(plan, _silent)
    if _digests(survey) == known["transcripts"]["conversations"]:
        yield "transcripts", plan, survey
    else:
        print(f"{plan.data} does not hold the conversations of the baseline: the example sessions alone are replayed.")


def _write(plan: jobs.Plan) -> int:
    content = {}
    for kind, one in (("transcripts", plan), ("examples", replace(plan, data=None))):
        if kind == "transcripts" and one.data is None:
            raise ValueError("a baseline is written where transcripts are at hand: give --data")
        survey = jobs.survey(one, _silent)
        content[kind] = {"conversations": _digests(survey), "figures": figures(_rows(one, survey))}
    BASELINE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{BASELINE}: written")
    return 0


def _rows(plan: jobs.Plan, survey: jobs.Survey) -> list[Row]:
    return rows(jobs.run(plan, survey.conversations, _silent), _columns())


def _columns() -> list[Column]:
    wanted = (*FIDELITY, "cost", *FORBIDDEN)
    return [column for column in columns() if column.key in wanted]


def figures(found: Sequence[Row]) -> dict[str, dict[str, float | None]]:
    """What a baseline holds of rows, rounded so that no machine's arithmetic shows."""
    return {
        f"{row.window} {row.strategy}": {
            key: None if value is None else round(value, 6) for key, value in row.values.items()
        }
        for row in found
    }


def worse(now: Figures, then: Figures) -> list[str]:
    """Every figure of contextfold that is worse than the baseline by more than its margin."""
    problems = []
    for name, before in then.items():
        window, strategy = name.split()
        if not strategies.is_ours(strategy):
            continue
        if name not in now:
            problems.append(f"{strategy} at {window}: not measured")
            continue
        problems += [f"{strategy} at {window}: {text}" for text in _fallen(now[name], before)]
    return problems


def _fallen(now: Mapping[str, float | None], then: Mapping[str, float | None]) -> list[str]:
    found = []
    for key in FIDELITY:
        before, after = then[key], now[key]
        if before is not None and (after is None or after < before - FIDELITY_MARGIN):
            found.append(f"{key} fell from {_written(before)} to {_written(after)}, margin {FIDELITY_MARGIN:.3f}")
    before, after = then["cost"], now["cost"]
    if before is not None and (after is None or after > before * (1 + COST_MARGIN)):
        found.append(f"cost rose from {_written(before)} to {_written(after)}, margin {COST_MARGIN:.0%}")
    return found


def forbidden(found: Sequence[Row]) -> list[str]:
    """Every figure of contextfold that should be zero and is not."""
    return [
        f"{row.strategy} at {row.window}: {key} is {value:g}, and must be 0 {row.first_error}".rstrip()
        for row in found
        if strategies.is_ours(row.strategy)
        for key in FORBIDDEN
        if (value := row.values[key])
    ]


def _written(value: float | None) -> str:
    return tables.NOTHING if value is None else f"{value:.4f}"


def _digests(survey: jobs.Survey) -> list[str]:
    return sorted(entry.digest for entry in survey.conversations)


def _silent(*_: object) -> None:
    """The check prints its result only."""
