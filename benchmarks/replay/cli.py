"""Replay conversations through strategies that keep an agent inside its window, and report what they lose and cost.

    python -m benchmarks.replay                                      everything; the report goes to build/bench
    python -m benchmarks.replay --data ~/sessions --windows 16000    your own conversations
    python -m benchmarks.replay --strategies floor deepagents --strategy mymodule:MyStrategy
    python -m benchmarks.replay check                                a small slice against the committed baseline

No model and no network is needed. A run that was stopped goes on where it was; --fresh starts from scratch. Without
transcripts (--data, CONTEXTFOLD_TRANSCRIPTS, or ../shared/transcripts) the project's example sessions are replayed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import fetches a list of prices

from benchmarks.replay import check, experiments, jobs, report, strategies, tokens
from benchmarks.replay.jobs import LIMIT
from benchmarks.replay.progress import bars

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
WINDOWS = (16_000, 32_000, 64_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done; 1 the check found a change for the worse; 2 bad usage; 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        plan = _plan(options)
        return check.run(plan, write=options.write_baseline) if options.what == "check" else _run(plan, options)
    except (ValueError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, "stopped: what was measured is saved, and the next run goes on from there\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("what", nargs="?", choices=("run", "check"), default="run", help="the benchmark (default), or its check")
    add("--data", type=Path, help="a folder of transcripts, or one file; 'examples' for the project's own sessions")
    add("--windows", nargs="+", type=int, default=list(WINDOWS), metavar="TOKENS", help="default: 16000 32000 64000")
    add("--strategies", nargs="+", metavar="NAME", help=f"default: all of {', '.join(strategies.REGISTRY)}")
    add("--strategy", action="append", default=[], metavar="MODULE:CLASS", help="one of your own, besides the others")
    add(
        "--limit",
        type=int,
        default=LIMIT,
        help=f"most conversations of 24k to 48k tokens, and of more; 0: all ({LIMIT})",
    )
    add("--jobs", type=int, default=_cores(), help="processes (default: one for each core)")
    add("--fresh", action="store_true", help="forget what earlier runs saved")
    add("--report", type=Path, default=BUILD / "benchmark.md", help="where the report goes (default: %(default)s)")
    add("--tokenizer", choices=tokens.TOKENIZERS, default=tokens.VOCABULARY, help="default: %(default)s")
    add("--without-experiments", action="store_true", help="replays only")
    add("--write-baseline", action="store_true", help="with check: write the baseline instead of comparing with it")
    return parser


def _plan(options: argparse.Namespace) -> jobs.Plan:
    """Raises ``ValueError`` for what cannot be run."""
    if any(window < 1_000 for window in options.windows):
        raise ValueError(f"a window of {min(options.windows):,} tokens is too small: give at least 1,000")
    if options.jobs < 1:
        raise ValueError("--jobs must be at least 1")
    names = [*(options.strategies or strategies.REGISTRY), *options.strategy]
    for name in names:
        strategies.entry(name)
    names = list(dict.fromkeys([strategies.REFERENCE, *names]))
    return jobs.Plan(
        data=_data(options.data),
        windows=tuple(sorted(set(options.windows))),
        strategies=tuple(names),
        tokenizer=options.tokenizer,
        saved=BUILD / "saved",
        jobs=options.jobs,
        limit=options.limit,
    )


def _data(given: Path | None) -> Path | None:
    """The folder of transcripts; None where the example sessions take their place."""
    if given is not None:
        if str(given) == "examples":
            return None
        if not given.exists():
            raise ValueError(f"--data {given}: there is no such folder or file")
        return given
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    folder = Path(named) if named else ROOT.parent / "shared" / "transcripts"
    return folder if folder.is_dir() else None


def _run(plan: jobs.Plan, options: argparse.Namespace) -> int:
    started = time.monotonic()
    jobs.prepare(plan.tokenizer)
    missing = strategies.unavailable(list(plan.strategies))
    plan = plan.without(missing)
    with bars() as progress:
        survey = jobs.survey(plan, progress)
        if not survey.conversations:
            raise ValueError(f"no conversation is longer than 1.5 windows of {min(plan.windows):,} tokens")
        results = jobs.run(plan, survey.conversations, progress, fresh=options.fresh)
        found = {} if options.without_experiments else experiments.run(plan, survey.conversations, progress)
    seconds = time.monotonic() - started
    summary = report.write(options.report, report.Material(plan, survey, results, missing, found, seconds))
    print(summary)
    print(f"\n{options.report} and {options.report.with_suffix('')}: {seconds:.0f} s", file=sys.stderr)
    return 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
