"""How hard the tests try: quickly by default, in full where ``CONTEXTFOLD_TESTS=full``, as ``.ci/run`` has it.

A run looks at the same examples each time, so that an unrelated change never fails by chance; full runs look at more
of them.
"""

from __future__ import annotations

import itertools
import os
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

FULL = os.environ.get("CONTEXTFOLD_TESTS") == "full"
_FRAMEWORKS = (
    "bedrock",
    "google_adk",
    "google_genai",
    "haystack",
    "litellm",
    "openai_agents",
    "pydantic_ai",
    "strands",
)
_FACES = ("integrations", "langchain", "deepagents", "store", "gateway", "inspector", "batch", "cli")
_ROOMS = ("formats", "hostile", "models", "passes", "promises", "provider", "settings", "summary", "tiers")
SAMPLED = {
    **dict.fromkeys(_FRAMEWORKS, 8),
    **dict.fromkeys(_FACES, 6),
    **dict.fromkeys(_ROOMS, 4),
    **dict.fromkeys(("calls", "test_recovery", "test_same_model"), 3),
    **dict.fromkeys(("archive", "testing", "tokens", "transcripts"), 2),
    **dict.fromkeys(
        ("test_background", "test_evidence", "test_laws_properties", "test_overflow_table", "test_passes"), 2
    ),
}
"""A quick run of everything takes one of so many tests of each file in these folders, with all its cases. A run of one
folder or file takes all that are quick."""
SHARE = 5
"""A full run looks at so many times the examples of a quick one."""


def examples(number: int) -> int:
    """For ``settings(max_examples=examples(200))``: the number in a full run, a share of it in a quick one."""
    return number if FULL else max(5, number // SHARE)


def sample(items: Iterable[pytest.Item]) -> None:
    """Mark as strict what a quick run of everything leaves to ``.ci/run`` and to runs of the folder itself."""
    seen: dict[Path, dict[str, int]] = {}
    for item in items:
        known = seen.setdefault(item.path, {})
        number = known.setdefault(item.nodeid.partition("[")[0], len(known))
        if number % SAMPLED.get(item.path.stem, SAMPLED.get(item.path.parent.name, 1)):
            item.add_marker(pytest.mark.strict)


def repeated(items: Iterable[pytest.Item], report: Path) -> list[pytest.Item]:
    """Those of the tests that do the same in a quick run as in a full one, and passed in that of this JUnit report."""
    passed = set()
    for case in ElementTree.parse(report).iter("testcase"):
        if not {"failure", "error", "skipped"} & {said.tag for said in case}:
            passed.add((case.get("classname"), case.get("name")))
    return [item for item in items if _in_report(item.nodeid) in passed and not _tries_harder(item)]


def waiting(items: Iterable[pytest.Item], turn: int, turns: int) -> list[pytest.Item]:
    """Those whose turn it is not, on a machine too slow to try all: of the cases of each test one share is tried.

    Which ones go together is left to a hash, or a run would see one value alone of a parameter. A test of one case is
    tried in each run.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found = []
    for cases in tests.values():
        cases.sort(key=lambda item: zlib.crc32(item.nodeid.encode(errors="backslashreplace")))
        found += [item for place, item in enumerate(cases) if len(cases) > 1 and place % turns != turn % turns]
    return found


def _in_report(nodeid: str) -> tuple[str, str]:
    """Class and name as a report has them. What is written otherwise there passes for new, and runs again."""
    place, bracket, values = nodeid.partition("[")
    *names, name = place.split("::")
    return ".".join([names[0].removesuffix(".py").replace("/", "."), *names[1:]]), name + bracket + values


def _tries_harder(item: pytest.Item) -> bool:
    """Whether a full run looks at more in this test."""
    known = vars(item.module) if isinstance(item, pytest.Function) else {"FULL": True}
    return "FULL" in known or "examples" in known or getattr(item.obj, "is_hypothesis_test", False)


def crossed(*, quick: int | None = None, **axes: Iterable[Any]) -> pytest.MarkDecorator:
    """``@crossed(way=WAYS, face=FACES)``: a test for each combination. A quick run tries each value of each axis once,
    or ``quick`` combinations.

    The other combinations are strict. For tests that cost tenths of a second each; cheap ones stay as they are.
    """
    columns = [list(values) for values in axes.values()]
    longest = max(map(len, columns))
    tried = {tuple(n % len(values) for values in columns) for n in range(longest if quick is None else quick)}
    cases = []
    for places in itertools.product(*(range(len(values)) for values in columns)):
        values = [column[place] for column, place in zip(columns, places, strict=True)]
        cases.append(pytest.param(*values, marks=() if places in tried else pytest.mark.strict))
    return pytest.mark.parametrize(tuple(axes), cases)
