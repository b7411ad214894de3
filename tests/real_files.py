"""Files of the folder of real conversations, never none: a loop over no files would promise nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest


def files(folder: Path, *patterns: str) -> list[Path]:
    """The files that match, in order. Where there are none the test is skipped, with a reason that says so."""
    return some(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())


def some(paths: Iterable[Path]) -> list[Path]:
    """These paths in order, or a skipped test."""
    found = sorted(paths)
    if not found:
        pytest.skip("the folder of real conversations has none of this kind")
    return found


BENCHMARKS_ONLY = {"pydantic-ai-cassettes", "ui-tars-desktop", "evermemos", "memorybank", "realmembench"}
"""Folders of kinds that the benchmarks read, and the package does not."""
