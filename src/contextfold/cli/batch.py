"""``contextfold batch compact|measure|check``: stored conversations by the million.

What belongs here: these commands, their options and exit codes, the progress bar and the summary. What does not: the
work (``batch``).

Exit codes: 0 done, 1 parts could not be read or written (the same command tries them again), 2 usage or bad input,
3 not one conversation succeeded, or with ``--strict``: not all did; 130 interrupted (the same command goes on).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextfold.cli import files
from contextfold.cli.options import (
    INTERRUPTED,
    BaseUrl,
    Config,
    From,
    Keep,
    Model,
    Report,
    ReportKind,
    SummarizerName,
    Target,
    Trigger,
    Window,
    complain,
    format_name,
    load_settings,
    plain_errors,
    sharing,
    whole,
)
from contextfold.cli.summarizers import EXTRACTIVE, Named
from contextfold.cli.terminal import say
from contextfold.errors import StoreError

if TYPE_CHECKING:
    from contextfold.batch.job import Job, JobOutcome, JobProgress, Operation, PlannedJob, Work

WIDEST = 160
"""Characters of an error in the summary; the rows have all of it."""
GOES_ON = "finished parts are kept, and the same command goes on from there"
NOT_ALL_PARTS = 1
NOT_ALL_ROWS = 3

app = typer.Typer(no_args_is_help=True, help="Compact, measure or check stored conversations by the million.")


class RowsAs(StrEnum):
    """What a result is written as."""

    jsonl = "jsonl"
    parquet = "parquet"


class Each(StrEnum):
    """What holds one conversation."""

    line = "line"
    file = "file"


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="Files, folders, globs, JSON Lines, Parquet, addresses such as s3://BUCKET/FOLDER, or a session store.",
    ),
]
Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="OUTPUT", help="A folder for parts, or one file: .jsonl or .parquet."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", parser=whole(0), metavar="N", help="Processes; default: one for each CPU. 0: none but this one."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Work on Ray: auto, ray://HOST:PORT, or local to start one here."),
]
As = Annotated[
    RowsAs | None,
    typer.Option("--as", help="What a folder is filled with; default: Parquet from Parquet, else JSON Lines."),
]
Column = Annotated[
    str | None,
    typer.Option("--column", metavar="NAME", help="Which column or key holds conversations, if not messages or text."),
]
EachIs = Annotated[
    Each | None, typer.Option("--each", help="A conversation is a line or a whole file; default: seen from the file.")
]
Namespace = Annotated[str, typer.Option("--namespace", metavar="NAME", help="Of a session store.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin again: what a batch wrote there is removed.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit code 3 if any conversation failed; of check, also if one is invalid or cannot be made to fit.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no summary.")]


@dataclass(frozen=True, slots=True)
class Typed:
    """The options of all three commands, as they were typed."""

    inputs: Inputs
    output: Output
    workers: Workers = None
    ray: Ray = None
    window: Window = None
    model: Model = None
    trigger: Trigger = None
    target: Target = None
    keep: Keep = None
    config: Config = None
    source_format: From = None
    column: Column = None
    each: EachIs = None
    namespace: Namespace = ""
    as_: As = None
    fresh: Fresh = False
    strict: Strict = False
    report: Report = ReportKind.text
    quiet: Quiet = False

    def for_operation(self, summarizer: str | None, base_url: str | None) -> dict[str, Any]:
        """What operations are made of."""
        found = load_settings(self.config, self.trigger, self.target, self.keep)
        return {
            "window": self.window,
            "model": self.model,
            "column": self.column,
            "format": self.source_format,
            "policy": found.policy,
            "summarizer": Named.of(summarizer, found, base_url).summarizer(),
        }


@app.command()
@sharing(Typed)
def compact(
    summarizer: SummarizerName = None,
    base_url: BaseUrl = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            parser=format_name,
            metavar="FORMAT",
            help="The format of the views, as of --from; default: as they came.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Compact also what is not due.")] = False,
    **options: Any,
) -> None:
    """Make each conversation fit: its view and its record, or its error, in a row of OUTPUT.

    Stopped, it goes on where it was when the same command is given again.

    For example: contextfold batch compact traces/ --window 64000 --output views/
    """
    with plain_errors("batch"):
        from contextfold.batch import CompactBatch

        typed = Typed(**options)
        _run(CompactBatch(to=to, force=force, **typed.for_operation(summarizer, base_url)), typed)


@app.command()
@sharing(Typed)
def measure(summarizer: SummarizerName = None, base_url: BaseUrl = None, **options: Any) -> None:
    """Replay each conversation turn by turn: what its agent would have kept, lost and paid, in a row of OUTPUT."""
    with plain_errors("batch"):
        from contextfold.batch import MeasureBatch

        typed = Typed(**options)
        _run(MeasureBatch(**typed.for_operation(summarizer, base_url)), typed)


@app.command()
@sharing(Typed)
def check(**options: Any) -> None:
    """Say of each conversation whether a provider takes it, whether it fits the window, and whether it could."""
    with plain_errors("batch"):
        from contextfold.batch import CheckBatch

        typed = Typed(**options)
        settings = typed.for_operation(EXTRACTIVE, None)
        del settings["summarizer"]  # whether it could fit takes no summary
        _run(CheckBatch(**settings), typed)


def _run(operation: Operation, typed: Typed) -> None:
    from contextfold.batch.job import Job, planned_job, run
    from contextfold.batch.sources import Reading

    reading = Reading(operation.column, operation.format, typed.each.value if typed.each else None, typed.namespace)
    rows_as = typed.as_.value if typed.as_ else None
    job = Job(operation, typed.inputs, typed.output, rows_as, reading, typed.fresh)
    _check_output(job)
    if typed.report is ReportKind.json and not typed.quiet:
        files.check_writable(files.STANDARD)
    work = _work(typed.workers, typed.ray)
    ready = planned_job(job)
    try:
        with _progress(ready, typed.quiet or typed.report is ReportKind.json) as told:
            outcome = run(ready, work, told)
    except KeyboardInterrupt:
        complain(f"interrupted; {GOES_ON}")
        raise typer.Exit(INTERRUPTED) from None
    except StoreError as error:
        complain(f"{error}; {GOES_ON}")
        raise typer.Exit(NOT_ALL_PARTS) from None
    if not typed.quiet:
        if typed.report is ReportKind.text:
            from contextfold.cli.screen import window_said

            say(window_said(outcome.window.tokens, outcome.window.source, typed.model))
        _show(outcome, typed.report)
    raise typer.Exit(_exit_code(outcome, typed.strict))


_NO_FOLDERS = (".json", ".ndjson", ".csv", ".gz", ".zst", ".bz2", ".xz", ".arrow", ".feather")
"""How names end that are meant as one file. Each became a folder of that name."""


def _check_output(job: Job) -> None:
    from contextfold.batch.outputs import is_remote
    from contextfold.errors import InputError

    if "-" in (*job.inputs, job.output):
        raise InputError("a batch reads and writes no pipe, so that it can go on where it was stopped: name files")
    if is_remote(job.output):
        return
    # By real paths: under two names, a link for instance, an output would still take the place of its own input.
    if any(os.path.realpath(job.output) == os.path.realpath(one) for one in job.inputs):
        raise InputError(f"--output {job.output} is an input as well: name another place")
    if job.output.lower().endswith(_NO_FOLDERS) and not os.path.isdir(job.output):
        raise InputError(f"--output {job.output} is no name of a folder, and one file ends in .jsonl or .parquet")
    if os.path.isfile(job.output) and not job.output.lower().endswith((".jsonl", ".parquet")):
        raise InputError(f"--output {job.output} is a file: name a folder, or a file that ends in .jsonl or .parquet")


def _work(workers: int | None, ray: str | None) -> Work:
    from contextfold.batch import pool

    if ray is not None:
        from contextfold.batch.cluster import check_installed, on_ray

        check_installed()
        return lambda task, parts: on_ray(task, parts, ray, workers)
    if workers == 0:
        return pool.in_this_process
    return lambda task, parts: pool.Pool(task, workers or _cpus()).run(parts)


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _exit_code(outcome: JobOutcome, strict: bool) -> int:
    sums = outcome.sums
    if outcome.failed_parts:
        return NOT_ALL_PARTS
    if sums.rows and sums.failed == sums.rows:
        return NOT_ALL_ROWS
    unfit = sum(sums.rows - sums.failed - sums.totals[name] for name in ("valid", "compactable") if name in sums.totals)
    return NOT_ALL_ROWS if strict and (sums.failed or unfit) else 0


# ---- what is shown ----


@contextlib.contextmanager
def _progress(ready: PlannedJob, quiet: bool) -> Iterator[Any]:
    """A bar on standard error, where that is a terminal: how far, how many, how fast, how many failed."""
    from contextfold.cli import screen

    console = screen.console(stderr=True)
    if ready.done and not quiet:
        typer.echo(f"{len(ready.done):,} of {len(ready.parts):,} parts were finished before", err=True)
    if quiet or not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    started = _now()
    said = TextColumn("{task.fields[said]}", markup=False)
    bar = Progress(
        BarColumn(bar_width=30), TextColumn("{task.percentage:>3.0f} %"), said, TimeRemainingColumn(), console=console
    )
    with bar:
        number = bar.add_task("", total=sum(part.size for part in ready.parts) or 1, said="")

        def told(progress: JobProgress) -> None:
            bar.update(number, completed=progress.size, said=says(progress, _now() - started))

        yield told


def _now() -> float:
    import time

    return time.monotonic()


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def says(progress: JobProgress, seconds: float) -> str:
    """How far a job is, in words."""
    rate = (progress.rows - progress.rows_before) / seconds if seconds > 0 else 0.0
    parts = [
        _count(progress.rows, "conversation"),
        f"{rate:,.1f} a second",
        f"{progress.failed:,} failed",
        f"{progress.parts_done:,} of {progress.parts:,} parts",
    ]
    return ", ".join(parts)


def _show(outcome: JobOutcome, report: ReportKind) -> None:
    if report is ReportKind.json:
        files.write_json(outcome.to_dict())
        return
    for line in summary_lines(outcome):
        say(line)


def summary_lines(outcome: JobOutcome) -> Iterator[str]:
    """The summary at the end, for people."""
    sums, totals = outcome.sums, outcome.sums.totals
    data: Mapping[str, Any] = outcome.to_dict()
    failed = ", ".join(f"{count:,} {kind}" for kind, count in sums.errors.most_common())
    yield f"{_count(sums.rows, 'conversation')}, {sums.failed:,} failed{f' ({failed})' if failed else ''}"
    if "changed" in totals:
        before, after = int(totals["tokens_before"]), int(totals["tokens_after"])
        yield f"{int(totals['changed']):,} compacted; {before:,} tokens became {after:,}"
    if "valid" in totals:
        rest = sums.rows - sums.failed
        counts = {name: int(totals[name]) for name in ("valid", "fits", "compactable")}
        yield (
            f"{counts['valid']:,} of {rest:,} are valid, {counts['fits']:,} fit the window, "
            f"{counts['compactable']:,} can be compacted"
        )
    for name, value in outcome.figures.items():
        if value is not None:
            yield f"  {name} {value:,.3f}" if isinstance(value, float) else f"  {name} {value:,}"
    before_ = f" ({outcome.parts_before:,} finished before)" if outcome.parts_before else ""
    died = f", {_count(outcome.workers_died, 'worker')} died and replaced" if outcome.workers_died else ""
    yield (
        f"{_count(outcome.parts, 'part')}{before_} in {outcome.seconds:,.1f} s: "
        f"{data['conversations_per_second'] or 0:,.1f} conversations a second, "
        f"{sums.cpu_seconds:,.1f} s of CPU time{died}"
    )
    for example in sums.examples:
        place = "" if example["place"] is None else f" at {example['place']:,}"
        said = example["error"].removeprefix(f"{example['source']}: ")
        yield f"  {example['source']}{place}: {said if len(said) <= WIDEST else said[: WIDEST - 1] + '…'}"
    for number, why in outcome.failed_parts.items():
        yield f"  part {number} could not be done: {why}"
    if outcome.is_unfinished_file:
        yield f"{data['output']} is not written yet: {GOES_ON}"
    else:
        yield f"written to {data['output']}"
