"""The same parts on Ray Data, for a cluster: actors read, work and write where they run.

Only the names of parts and their reports travel; conversations do not pass through the driver. Inputs and output have
to be where every node reaches them: object storage, or a shared file system.

What belongs here: Ray. What does not: the work on a part (``job``).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from contextfold.batch.outputs import ATTEMPTS, JOB, ResultFolder, needs, parsed, to_json
from contextfold.batch.pool import DEATHS_OF_A_ROW, Happened, PartDone, PartFailed, RowDone
from contextfold.batch.sources import Part
from contextfold.errors import InputError, reason

if TYPE_CHECKING:
    from contextfold.batch.job import PartTask

CPUS = 0.5
"""Of an actor. Ray counts what is asked for, not what is used: actors that ask for a whole one take all of a small
machine, and then the tasks that feed them are never scheduled.
"""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class PartActor:
    """An actor of Ray Data: rows that name parts in, rows with their reports out."""

    def __init__(self, task: PartTask) -> None:
        self._task = task

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        return {"report": [self._done(json.loads(str(asked))) for asked in batch["part"]]}

    def _done(self, asked: dict[str, Any]) -> str:
        number = asked["number"]
        attempts = Attempts(self._task.output, number)
        try:
            skipped = attempts.begin()
            report = self._task(number, Part.of(asked["part"]), skipped, attempts.told)
            attempts.end()
        except Exception as error:  # noqa: BLE001  one part that cannot be read or written is no reason to lose others
            report = {"part": number, "failed_part": reason(error)}
        return json.dumps(report)


class Attempts:
    """What earlier actors that died left behind of a part: Ray hands it to a new actor each time, without end.

    The first attempt only says that it began. From the second on, each conversation is noted before it is worked on
    (which costs a small file each time), so that one over which two actors died is known, and left out. It takes one
    death more than on this machine, where a pipe tells from the first.
    """

    def __init__(self, output: ResultFolder, number: int) -> None:
        self._output = output
        self._name = f"{JOB}/{number:05d}{ATTEMPTS}"
        self._deaths: dict[str, int] = {}
        self._at: int | None = None

    def begin(self) -> dict[int, str]:
        """The conversations to leave out, by their place in the part."""
        before = parsed(self._output.read(self._name))
        if before is not None:
            self._deaths = before["deaths"]
            if before["at"] is not None:
                place = str(before["at"])
                self._deaths[place] = self._deaths.get(place, 0) + 1
            self._at = 0
        self._note()
        reason = "two actors died over this conversation: it may need more memory than there is"
        return {int(place): reason for place, count in self._deaths.items() if count >= DEATHS_OF_A_ROW}

    def told(self, failed: bool) -> None:
        """A conversation is done."""
        if self._at is not None:
            self._at += 1
            self._note()

    def end(self) -> None:
        self._output.remove(self._name)

    def _note(self) -> None:
        self._output.write(self._name, to_json({"deaths": self._deaths, "at": self._at}))


def check_installed() -> None:
    """Raises ``InputError`` that says what to install."""
    if (sys.modules["ray"] is None) if "ray" in sys.modules else (find_spec("ray") is None):
        raise needs("Ray", "--ray")


def on_ray(task: PartTask, parts: Sequence[tuple[int, Part]], address: str, workers: int | None) -> Iterator[Happened]:
    """Do parts on a cluster, and yield what becomes of each as it ends.

    ``address``: as ``ray.init`` takes it; ``local`` starts one here. ``workers``: actors; None: two for each CPU.
    Raises ``InputError`` where Ray is not installed, or there is no cluster.
    """
    check_installed()
    if not parts:
        return
    for name in task.output.names(JOB):
        if name.endswith(ATTEMPTS):  # of a run that was stopped, which says nothing against its conversations
            task.output.remove(f"{JOB}/{name}")
    started = "ray" not in sys.modules or not sys.modules["ray"].is_initialized()
    if started:
        _connect(address)
    import ray

    try:
        yield from _happening(task, parts, workers or _actors(ray))
    finally:
        if started:
            ray.shutdown()


def _actors(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1) / CPUS))


def _connect(address: str) -> None:
    # Before Ray is imported for the first time: nothing is reported to anyone, and what its core says of itself stays
    # in its log files. RAY_ACCEL...: what newer releases do; this one warns that it will.
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    own: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # noqa: BLE001 - a node that is too slow to start is a bare Exception of Ray's
        said = reason(error)
        if address == "local":
            raise InputError(f"--ray local: Ray did not start; --workers does the same without it: {said}") from None
        raise InputError(
            f"--ray {address}: no cluster was reached; give auto, ray://HOST:PORT, or local to start one here: {said}"
        ) from None


def _happening(task: PartTask, parts: Sequence[tuple[int, Part]], workers: int) -> Iterator[Happened]:
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    asked = [{"part": json.dumps({"number": number, "part": part.to_dict()})} for number, part in parts]
    reports = ray.data.from_items(asked, override_num_blocks=len(asked)).map_batches(
        PartActor,
        fn_constructor_kwargs={"task": task},
        batch_size=1,
        num_cpus=CPUS,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(workers, len(parts))),
    )
    for row in reports.iter_rows():
        report = json.loads(str(row["report"]))
        if "failed_part" in report:
            yield PartFailed(report["part"], report["failed_part"])
            continue
        yield from (RowDone(failed=number < report["failed"]) for number in range(report["rows"]))
        yield PartDone(report)
