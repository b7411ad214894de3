"""A job: what is to be done, what is done already, and what came of it all.

What belongs here: the plan and whether a job goes on with it, the work on one part, and the sums. What does not: who
does the work (``pool``, ``cluster``), what is shown of it (``cli.batch``).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from contextfold.batch import measures, outputs, sources
from contextfold.batch.operations import CheckBatch, CompactBatch, MeasureBatch
from contextfold.batch.outputs import ATTEMPTS, ResultFolder
from contextfold.batch.pool import Happened, PartDone, RowDone, Skipped, Told, WorkerLost
from contextfold.batch.sources import Item, Part, Reading
from contextfold.batch.tables import ColumnType
from contextfold.errors import ContextfoldError, InputError
from contextfold.store.addresses import shown
from contextfold.window import Window

Operation = CompactBatch | MeasureBatch | CheckBatch

PLAN = f"{outputs.JOB}/plan.json"
SUMMARY = f"{outputs.JOB}/summary.json"
VERSION = 1
EXAMPLES = 10
"""Errors that a summary quotes."""

BEFORE: Mapping[str, ColumnType] = {"source": "text", "place": "whole", "conversation": "text"}
"""Where a conversation comes from: the file or store; the byte of its line or the number of its row, or None; its
number where a row or file holds several."""
BEHIND: Mapping[str, ColumnType] = {"row": "text"}
"""What else its row held, as one JSON object."""


class WorkerDied(ContextfoldError):
    """Workers died over a conversation, so it was left out."""


def columns_of(operation: Operation) -> dict[str, ColumnType]:
    """The columns of a result."""
    return {**BEFORE, **operation.TYPES, **BEHIND}


@dataclass(frozen=True)
class PartTask:
    """The work on one part: its conversations read, worked on, and written. Pickles."""

    operation: Operation
    reading: Reading
    output: ResultFolder
    kind: str
    stores: Mapping[str, str] = field(default_factory=dict)
    """Addresses of stores with their passwords, by the ones that may be shown."""

    def __call__(self, number: int, part: Part, skipped: Skipped, told: Told) -> dict[str, Any]:
        started, cpu = time.perf_counter(), time.process_time()
        sums = Sums()
        types = columns_of(self.operation)
        # The rows first and the report after them: a part counts as done by its report, so one that stands alone is
        # done again.
        with self.output.opened(outputs.part_name(number, self.kind)) as file:
            writer = outputs.WRITERS[self.kind](file, types)
            try:
                self._write(part, skipped, told, writer, sums)
                writer.close()
            except BaseException:
                writer.abandon()
                raise
        report = {
            "part": number,
            **sums.report(),
            "seconds": round(time.perf_counter() - started, 3),
            "cpu_seconds": round(time.process_time() - cpu, 3),
            "peak_memory": _peak_memory(),
        }
        self.output.write(outputs.done_name(number), outputs.to_json(report))
        return report

    def _write(self, part: Part, skipped: Skipped, told: Told, writer: Any, sums: Sums) -> None:
        store = self.stores.get(part.names[0])
        for index, item in enumerate(sources.items(part, self.reading, store)):
            values = self._values(item, skipped.get(index))
            if values["error"] is not None:
                values["error"] = values["error"].replace(item.source, outputs.told(item.source))
            writer.add({**_origin(item), **values, "row": dict(item.row) or None})
            sums.add(item, values)
            told(values["error"] is not None)

    def _values(self, item: Item, skip: str | None) -> dict[str, Any]:
        if skip is not None:
            return self.operation.failed(WorkerDied(skip))
        if item.given is None:
            return self.operation.failed(item.error or InputError("there is no conversation"))
        return self.operation.one(item.given)


def _origin(item: Item) -> dict[str, Any]:
    return {
        "source": outputs.told(item.source),
        "place": item.place,
        "conversation": (item.given.name.removeprefix("#") or None) if item.given else None,
    }


def _peak_memory() -> int:
    """The most memory that this process had so far, in bytes; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # macOS tells bytes


class Sums:
    """What adds up over conversations and over parts."""

    def __init__(self) -> None:
        self.rows = self.failed = 0
        self.totals: dict[str, float] = defaultdict(int)
        self.errors: Counter[str] = Counter()
        self.examples: list[dict[str, Any]] = []
        self.cpu_seconds = 0.0
        self.peak_memory = 0

    def add(self, item: Item, values: Mapping[str, Any]) -> None:
        """One conversation."""
        self.rows += 1
        if values["error"] is not None:
            self.failed += 1
            self.errors[values["error_type"]] += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append({**_origin(item), "error": values["error"][:300], "row": _short(item.row)})
            return
        for name, value in values.items():
            if isinstance(value, bool) or name in _ADDED:
                self._count(name, value or 0)

    def merge(self, report: Mapping[str, Any]) -> None:
        """The report of a part."""
        self.rows += report["rows"]
        self.failed += report["failed"]
        self.errors.update(report["errors"])
        self.examples = [*self.examples, *report["examples"]][:EXAMPLES]
        for name, value in report["totals"].items():
            self._count(name, value)
        self.cpu_seconds += report["cpu_seconds"]
        self.peak_memory = max(self.peak_memory, report["peak_memory"])

    def report(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "failed": self.failed,
            "errors": dict(self.errors),
            "examples": self.examples,
            "totals": dict(self.totals),
        }

    def _count(self, name: str, value: float) -> None:
        self.totals[name] = max(self.totals[name], value) if name.startswith("max_") else self.totals[name] + value


_ADDED = {
    *("messages_before", "messages_after", "tokens_before", "tokens_after", "problem_count"),
    *("kept", "pinned", "shortened", "summarized", "dropped"),
    *("summary_calls", "summary_input_tokens", "summary_output_tokens", "seconds"),
    *measures.TOTALS,
    *measures.MONEY,
}


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    """What tells a row from others, for a summary: its short values."""
    return {key: value for key, value in row.items() if isinstance(value, str | int) and len(str(value)) <= 80}


# ---- the plan ----


@dataclass(frozen=True)
class Job:
    """What is to be done, how, and where to."""

    operation: Operation
    inputs: Sequence[str]
    output: str
    """A folder, or a file that ends in .jsonl or .parquet."""
    kind: str | None = None
    """``jsonl`` or ``parquet``; None: that of the output's name, else Parquet where all inputs are Parquet."""
    reading: Reading = field(default_factory=Reading)
    fresh: bool = False
    """Begin again, whatever is there."""


@dataclass
class PlannedJob:
    """A job with its plan."""

    job: Job
    task: PartTask
    parts: list[Part]
    done: dict[int, dict[str, Any]]
    """Reports of the parts that were finished earlier."""

    @property
    def todo(self) -> list[tuple[int, Part]]:
        return [(number, part) for number, part in enumerate(self.parts) if number not in self.done]


def planned_job(job: Job) -> PlannedJob:
    """The plan of a job: the one that it was begun with, if there is one, and what is done of it.

    Raises ``InputError`` for inputs that cannot be read, for an output that belongs to another job, and where what was
    read before has changed since.
    """
    place = ResultFolder(_folder(job.output))
    found = outputs.parsed(place.read(PLAN))
    stored = None if job.fresh else found
    kind = job.kind or (stored or {}).get("settings", {}).get("kind") or _kind(job)
    outputs.check_kind(kind)
    # Through JSON and back, as the stored ones went: a tuple would differ from its list.
    settings = json.loads(json.dumps(_described(job, kind), default=_written))
    if stored is not None and stored.get("settings") != settings:
        raise InputError(
            f"{outputs.told(job.output)} holds {_differences(stored, settings)}: give another --output, or --fresh"
        )
    own = _own(place, found)
    others = _others(job, place, own, found)
    parts = _parts(job, stored)
    if taken := others & {outputs.part_name(number, kind) for number in range(len(parts))}:
        name = f"{outputs.told(job.output)} holds {min(taken)}"
        raise InputError(f"{name}, which no job of contextfold wrote there: give another --output, or move it away")
    if stored is None or len(parts) != len(stored["parts"]):
        if job.fresh:
            _forget(place, own)
        shown_parts = [_renamed(part, _secrets(job)).to_dict() for part in parts]
        plan = {"version": VERSION, "settings": settings, "parts": shown_parts}
        place.write(PLAN, json.dumps(plan, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    place.remove_left_overs()
    finished = {} if job.fresh else _finished(place, len(parts))
    stores = {shown(one): one for one in job.inputs if sources.is_store(one)}
    return PlannedJob(job, PartTask(job.operation, job.reading, place, kind, stores), parts, finished)


def _kind(job: Job) -> str:
    if (kind := outputs.kind_of_file(job.output)) is not None:
        return kind
    if any(map(sources.is_store, job.inputs)):
        return "jsonl"
    return "parquet" if all(_is_parquet(one, job.output) for one in job.inputs) else "jsonl"


def _is_parquet(given: str, output: str) -> bool:
    """Whether an input is nothing but Parquet; a name or a pattern that ends so needs no look."""
    if sources.is_parquet(given):
        return True
    return all(sources.is_parquet(name) for name, _ in sources.files_of(given, output))


def is_file(output: str) -> bool:
    """Whether an output is one file, and not a folder of parts."""
    return outputs.kind_of_file(output) is not None


def _folder(output: str) -> str:
    """Where the parts go: for an output that is one file, a folder beside it that goes when the file is there."""
    return f"{output}.parts" if is_file(output) else output


def _described(job: Job, kind: str) -> dict[str, Any]:
    """All that the rows of a result depend on, but the conversations themselves."""
    own = {name: value for name, value in vars(job.operation).items() if name in ("to", "force", "column", "format")}
    compactor = {name: _plain(value) for name, value in job.operation.settings.items()}
    return {
        "operation": type(job.operation).__name__,
        "inputs": [shown(one) for one in job.inputs],
        "kind": kind,
        **own,
        **compactor,
        "reading": asdict(job.reading),
    }


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value


def _written(value: Any) -> Any:
    """What JSON does not know. A job is known again by this, so it has to be the same in every process: without the
    order of a set, and without the places in memory that objects are shown with, clients inside of models as well.
    """
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return getattr(value, "__qualname__", None) or _IN_MEMORY.sub("", repr(value))


_IN_MEMORY = re.compile(r" at 0x[0-9A-Fa-f]+")


def _differences(stored: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    before = stored.get("settings") or {}
    names = [name for name in {**before, **settings} if before.get(name) != settings.get(name)]
    return f"a job that was begun with other settings ({', '.join(names)})"


def _parts(job: Job, stored: Mapping[str, Any] | None) -> list[Part]:
    """The parts that were planned, and behind them those of inputs that came since."""
    if stored is None:
        return sources.planned(job.inputs, job.reading, output=job.output)
    opened = {shown: real for real, shown in _secrets(job).items()}
    known = [_renamed(Part.of(data), opened) for data in stored["parts"]]
    return [*known, *sources.planned(job.inputs, job.reading, known, job.output)]


def _secrets(job: Job) -> dict[str, str]:
    """The addresses of files with a secret, and how addresses with a password begin; and how that stands in the plan,
    which others may read."""
    files = [one for one in job.inputs if outputs.is_remote(one) and not sources.is_store(one)]
    beginnings = {one.rpartition("@")[0]: outputs.told(one).rpartition("@")[0] for one in files if "@" in one}
    return {**beginnings, **{one: told for one in files if (told := outputs.told(one)) != one}}


def _renamed(part: Part, others: Mapping[str, str]) -> Part:
    return replace(part, names=tuple(_renamed_one(name, others) for name in part.names))


def _renamed_one(name: str, others: Mapping[str, str]) -> str:
    head, at, rest = name.rpartition("@")
    return others.get(name) or f"{others.get(head, head)}{at}{rest}"


def _finished(place: ResultFolder, count: int) -> dict[int, dict[str, Any]]:
    found = {}
    rows = set(place.names())
    for name in place.names(outputs.JOB):
        number = name.removesuffix(".json")
        if number.isdigit() and int(number) < count:
            report = outputs.parsed(place.read(f"{outputs.JOB}/{name}"))
            # Both have to be there: a report alone would count rows that were deleted since.
            if report is not None and any(f"part-{number}.{kind}" in rows for kind in outputs.KINDS):
                found[int(number)] = report
    return found


def _own(place: ResultFolder, found: Mapping[str, Any] | None) -> set[str]:
    """The names of the parts that a job wrote there, by its plan and by their reports. Other programs name theirs
    ``part-...`` as well."""
    numbers = {stem for name in place.names(outputs.JOB) if (stem := name.removesuffix(".json")).isdigit()}
    numbers |= {f"{number:05d}" for number in range(len(found["parts"]) if found else 0)}
    kinds = [found["settings"]["kind"]] if found else outputs.KINDS
    return {f"part-{number}.{kind}" for number in numbers for kind in kinds}


def _others(job: Job, place: ResultFolder, own: set[str], found: Mapping[str, Any] | None) -> set[str]:
    """The parts that stand there and are none of a job of ours.

    Raises ``InputError`` where there is no plan: there is no telling what they hold, and writing beside them could mix
    two results.
    """
    parts = {name for name in place.names() if name.startswith("part-")}
    others = parts - own
    if found is None and (others if job.fresh else parts):
        way = "move them away" if others else "--fresh"
        raise InputError(
            f"{outputs.told(job.output)} holds parts of another job, and no plan: give another --output, or {way}"
        )
    return others


_OF_A_JOB = re.compile(rf"(?:\d+|summary|plan)\.json|\d+{re.escape(ATTEMPTS)}")


def _forget(place: ResultFolder, own: set[str]) -> None:
    """Remove what a job wrote. The plan goes last: it says which parts those are, also where this is interrupted."""
    for name in sorted(own.intersection(place.names())):
        place.remove(name)
    for name in sorted(place.names(outputs.JOB), key=lambda name: f"{outputs.JOB}/{name}" == PLAN):
        if _OF_A_JOB.fullmatch(name):
            place.remove(f"{outputs.JOB}/{name}")


# ---- running it ----


@dataclass
class JobProgress:
    """How far a job is. ``size`` and ``sizes`` in bytes of input."""

    parts: int
    parts_before: int
    """Parts that were finished by an earlier run."""
    sizes: int
    parts_done: int = 0
    size: int = 0
    rows: int = 0
    failed: int = 0
    rows_before: int = 0
    workers_died: int = 0


@dataclass
class JobOutcome:
    """What came of a job."""

    operation: str
    output: str
    window: Window
    parts: int
    parts_before: int
    rows_before: int
    sums: Sums
    seconds: float
    failed_parts: dict[int, str]
    workers_died: int

    @property
    def is_unfinished_file(self) -> bool:
        """Whether its output is one file, which is written once no part fails."""
        return is_file(self.output) and bool(self.failed_parts)

    @property
    def figures(self) -> dict[str, Any]:
        """Of a measurement, the benchmark's figures over all conversations."""
        is_measured = self.operation == MeasureBatch.__name__ and self.sums.totals
        return measures.figures_of(self.sums.totals) if is_measured else {}

    def to_dict(self) -> dict[str, Any]:
        rows = self.sums.rows - self.rows_before
        return {
            "operation": self.operation,
            "output": outputs.told(self.output),
            "window": self.window.tokens,
            "window_source": self.window.source,
            "conversations": self.sums.rows,
            "failed": self.sums.failed,
            "errors": dict(self.sums.errors),
            "examples": self.sums.examples,
            **({"figures": self.figures} if self.figures else {}),
            "totals": dict(self.sums.totals),
            "parts": self.parts,
            "parts_done_before": self.parts_before,
            "failed_parts": {str(number): why for number, why in self.failed_parts.items()},
            "workers_died": self.workers_died,
            "seconds": round(self.seconds, 3),
            "conversations_per_second": round(rows / self.seconds, 2) if self.seconds else None,
            "cpu_seconds": round(self.sums.cpu_seconds, 3),
            "peak_memory": self.sums.peak_memory,
        }


Work = Callable[[PartTask, Sequence[tuple[int, Part]]], Iterator[Happened]]
"""Does parts, in any order, and says what happens."""


def run(ready: PlannedJob, work: Work, on_progress: Callable[[JobProgress], object] | None = None) -> JobOutcome:
    """Do what is left of a job. What it wrote is complete when this returns; what raises or is stopped can go on.

    Raises ``StoreError`` where what came of it cannot be written, or its parts cannot be put together.
    """
    started = time.perf_counter()
    sums = Sums()
    for report in ready.done.values():
        sums.merge(report)
    progress = JobProgress(len(ready.parts), len(ready.done), sum(part.size for part in ready.parts))
    progress.rows_before = progress.rows = sums.rows
    progress.failed = sums.failed
    progress.parts_done = len(ready.done)
    progress.size = sum(ready.parts[number].size for number in ready.done)
    failed_parts: dict[int, str] = {}
    try:
        with contextlib.closing(work(ready.task, ready.todo)) as happening:  # type: ignore[type-var]
            for happened in happening:
                _note(happened, progress, sums, failed_parts, ready.parts)
                if on_progress is not None:
                    on_progress(progress)
    finally:  # the workers have ended by now: what they were writing is no use to anyone
        ready.task.output.remove_left_overs()
    outcome = JobOutcome(
        operation=type(ready.job.operation).__name__,
        output=ready.job.output,
        window=ready.job.operation.window,
        parts=len(ready.parts),
        parts_before=progress.parts_before,
        rows_before=progress.rows_before,
        sums=sums,
        seconds=time.perf_counter() - started,
        failed_parts=failed_parts,
        workers_died=progress.workers_died,
    )
    ready.task.output.write(SUMMARY, outputs.to_json(outcome.to_dict()))
    # With a part missing the folder stays, for the same command to go on from.
    if is_file(ready.job.output) and not outcome.is_unfinished_file:
        _as_one_file(ready)
    return outcome


def _note(
    happened: Happened, progress: JobProgress, sums: Sums, failed_parts: dict[int, str], parts: Sequence[Part]
) -> None:
    if isinstance(happened, RowDone):
        progress.rows += 1
        progress.failed += happened.failed
    elif isinstance(happened, WorkerLost):
        # Its part is done again from the first row on.
        progress.rows -= happened.rows
        progress.failed -= happened.failed
        progress.workers_died += 1
    elif isinstance(happened, PartDone):
        sums.merge(happened.report)
        progress.parts_done += 1
        progress.size += parts[happened.report["part"]].size
    else:
        failed_parts[happened.number] = happened.why


def _as_one_file(ready: PlannedJob) -> None:
    folder, _, name = ready.job.output.replace(os.sep, "/").rpartition("/")
    place = ready.task.output
    target = ResultFolder(folder or ("/" if ready.job.output.startswith("/") else "."))
    names = [outputs.part_name(number, ready.task.kind) for number in range(len(ready.parts))]
    with outputs.writing(ready.job.output):
        outputs.join(place, names, ready.task.kind, target, name, columns_of(ready.job.operation))
    # Not the folder as a whole: it may have been there, with files of somebody else.
    _forget(place, set(names))
    place.remove_if_empty()
