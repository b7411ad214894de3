"""Live progress of a summary by a model, on standard error where that is a terminal.

What belongs here: the line that is drawn, and the hooks that feed it. What does not: counting (``summary.progress``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from contextfold.observe import SummaryPiece, SummaryProgress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class LiveProgress:
    """Chunks done, depth, tokens and time left, redrawn as they change; gone when the work is done.

    Use as a context manager around the work, with ``hooks`` passed to the ``Compactor``. Draws nothing where
    ``console`` is no terminal.
    """

    def __init__(self, console: Console, model: str) -> None:
        self._console = console
        self._model = model
        self._bar: Progress | None = None
        self._written = 0
        self._said = ""

    @property
    def hooks(self) -> dict[str, Callable[[Any], object]]:
        """Arguments for a ``Compactor``; none where nothing is drawn."""
        return {"on_progress": self.on_progress, "on_stream": self.on_stream} if self._console.is_terminal else {}

    def __enter__(self) -> LiveProgress:
        if self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            model, said = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[said]}"))
            self._bar = Progress(model, BarColumn(bar_width=20), said, console=self._console, transient=True)
            self._bar.add_task(f"  {self._model}", total=None, said="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def on_progress(self, progress: SummaryProgress) -> None:
        self._said = says(progress)
        self._draw(completed=progress.tokens_done, total=progress.tokens)

    def on_stream(self, piece: SummaryPiece) -> None:
        self._written += len(piece.text)
        self._draw()

    def _draw(self, **fields: Any) -> None:
        if self._bar is not None:
            written = f", {self._written:,} characters written" if self._written else ""
            self._bar.update(self._bar.task_ids[0], said=f"{self._said}{written}", **fields)


def says(progress: SummaryProgress) -> str:
    """How far it is, in words."""
    parts = [
        f"{progress.chunks_done:,} of {progress.chunks:,} {'chunk' if progress.chunks == 1 else 'chunks'}",
        f"depth {progress.depth}",
        f"{progress.tokens_done:,} of {progress.tokens:,} tokens",
    ]
    if progress.chunks_done >= progress.chunks > 1:
        parts.append("merging")
    elif progress.seconds_left is not None:
        parts.append(f"about {duration(progress.seconds_left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as a person would say them."""
    whole = round(seconds)
    return f"{whole} s" if whole < 90 else f"{whole // 60} min {whole % 60} s"
