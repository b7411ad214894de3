"""Fail if a test that should have run was skipped: ``no_skips.py JUNIT_XML [ALLOWED]``.

A skip is an excuse for machines that lack something (real conversations, a database). In CI, where all of it is
there, a skip hides a test that nobody runs. ``ALLOWED`` is a file that names tests of features that a release of a
library truly lacks: ``CLASSNAME::NAME REASON`` a line, without parameters.
"""

# ruff: noqa: T201 - it speaks to the log of the run

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def skipped(report: str) -> list[tuple[str, str]]:
    """``CLASSNAME::NAME`` and the reason of every skipped test of a JUnit report."""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        for skip in case.iter("skipped"):
            found.append((f"{case.get('classname')}::{case.get('name')}", str(skip.get("message"))))
    return found


def allowed(file: str) -> set[str]:
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def must_not_skip() -> bool:
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "transcripts"
    return os.environ.get("CI") == "true" and folder.is_dir()


def main() -> int:
    found = skipped(sys.argv[1])
    may = allowed(sys.argv[2]) if len(sys.argv) > 2 else set()
    without_parameters = {test.partition("[")[0] for test, _ in found}
    wrong = [test for test, _ in found if test.partition("[")[0] not in may]
    stale = sorted(may - without_parameters)
    for test, reason in found:
        print(f"skipped {test}: {reason}" + ("" if test in wrong else " (allowed)"))
    if stale:
        print(f"FAILED: {sys.argv[2]} allows what is not skipped: {', '.join(stale)}")
        return 1
    if wrong and must_not_skip():
        print(f"FAILED: {len(wrong)} tests were skipped although everything that they need is here")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
