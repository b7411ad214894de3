"""Results of replays as they are saved, so that a run that was stopped goes on where it was.

One file of JSON lines for each conversation, named by the hash of what was said in it; one line for each window and
strategy, with a key that names everything else the figures depend on. A line that was cut off is as good as none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.replay.measure import Number


@dataclass(frozen=True)
class Result:
    """One conversation through one strategy in one window."""

    key: str
    conversation: str
    source: str
    digest: str
    tokens: int
    """Size of the conversation."""
    is_chinese: bool
    has_tools: bool
    window: int
    strategy: str
    totals: Mapping[str, Number]
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    first_error: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))


class Saved:
    """The folder in which results are saved."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, result: Result) -> None:
        """Append a result. One process at a time works on a conversation, so no two write to one file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(result.digest)
        torn = path.is_file() and not path.read_bytes().endswith(b"\n")
        with path.open("a", encoding="utf-8") as lines:
            lines.write(("\n" if torn else "") + result.to_json() + "\n")

    def of(self, digest: str) -> dict[str, Result]:
        """The results of a conversation by their keys; the newest of equal keys."""
        path = self._path(digest)
        if not path.is_file():
            return {}
        return {result.key: result for result in _read(path)}

    def forget(self, digest: str) -> None:
        """Remove what is saved of a conversation."""
        self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.jsonl"


def _read(path: Path) -> Iterator[Result]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row: dict[str, Any] = json.loads(line)
            yield Result(**row)
        except (ValueError, TypeError):  # cut off, or written by another version
            continue
