"""Fail if a test that should have run was skipped: ``no_skips.py JUNIT_XML [ALLOWED]``.

A skip is an excuse for machines that lack something. ``.ci/run`` installs all that tests need but for the real
conversations, which are no part of the project: only where there are none may tests skip, and only those that say so
(``ABSENT``). ``ALLOWED`` is a file that names tests of features that a release of a library truly lacks:
``CLASSNAME::NAME REASON`` a line, without parameters.
"""

# ruff: noqa: T201 - it speaks to the log of the run

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ABSENT = ("real conversations", "the reference file is not here")
"""What tests say that need them."""


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


def are_conversations_here() -> bool:
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "transcripts"
    return folder.is_dir()


def main() -> int:
    found = skipped(sys.argv[1])
    may = allowed(sys.argv[2]) if len(sys.argv) > 2 else set()
    without_parameters = {test.partition("[")[0] for test, _ in found}
    absent = () if are_conversations_here() else ABSENT
    wrong = [
        test
        for test, reason in found
        if test.partition("[")[0] not in may and not any(words in reason for words in absent)
    ]
    stale = sorted(may - without_parameters)
    for test, reason in found:
        print(f"skipped {test}: {reason}" + ("" if test in wrong else " (allowed)"))
    if stale:
        print(f"FAILED: {sys.argv[2]} allows what is not skipped: {', '.join(stale)}")
        return 1
    if wrong:
        print(f"FAILED: {len(wrong)} tests were skipped, and should have run: {', '.join(wrong[:5])}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
