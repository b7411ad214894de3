"""Fail if a test that should have run was skipped: ``no_skips.py JUNIT_XML``.

A skip is an excuse for machines that lack something (real conversations, a database). In CI, where all of it is
there, a skip hides a test that nobody runs.
"""

# ruff: noqa: T201 - it speaks to the log of the run

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def skipped(report: str) -> list[str]:
    """``test: reason`` for every skipped test of a JUnit report."""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        for skip in case.iter("skipped"):
            found.append(f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}")
    return found


def must_not_skip() -> bool:
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "transcripts"
    return os.environ.get("CI") == "true" and folder.is_dir()


def main() -> int:
    found = skipped(sys.argv[1])
    for line in found:
        print(f"skipped {line}")
    if found and must_not_skip():
        print(f"FAILED: {len(found)} tests were skipped although everything that they need is here")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
