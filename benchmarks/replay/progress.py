"""What a run shows while it works: a bar for each part of it, on the error output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.replay.jobs import Progress


@contextmanager
def bars() -> Iterator[Progress]:
    """A ``progress(what, done, of)`` that draws bars, with the time taken and the time to go."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    shape = (TextColumn("{task.description:>16}"), BarColumn(), MofNCompleteColumn())
    with Bars(*shape, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as shown:
        known: dict[str, TaskID] = {}

        def progress(what: str, done: int, of: int) -> None:
            if what not in known:
                known[what] = shown.add_task(what, total=of)
            shown.update(known[what], completed=done, total=of)

        yield progress
