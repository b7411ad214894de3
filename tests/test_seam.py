"""Every face calls the same seam, and each idea has one name. Read from the syntax trees of ``src``."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "contextfold"

ROOMS = ("conversation", "record", "passes", "calls", "overflow")

SEAM = {
    "contextfold.calls": {"counted", "views"},
    "contextfold.calls.background": {"Background"},
    "contextfold.calls.memory": {"KnownConversation"},
    "contextfold.calls.recovery": {"UNLIMITED", "Exchange"},
    "contextfold.calls.request": {
        "UNLIMITED",
        "After",
        "Before",
        "CompactionResult",
        "CompactOptions",
        "Once",
        "Request",
        "check_archive",
        "check_state",
    },
    "contextfold.calls.same": {"NOT_FOR_A_SUMMARY", "begins_as_given", "is_shaped"},
    "contextfold.calls.single_flight": {"SingleFlight"},
    "contextfold.calls.thinking": {
        "IS_CLAUDE",
        "LEAST_THINKING",
        "clears_thinking",
        "shorter_thinking",
        "thinking_beside",
        "with_thinking_set",
    },
    "contextfold.calls.refused": {"as_mapping", "refusal_in"},
    "contextfold.calls.usage": {"Usage", "get", "read_usage"},
    "contextfold.overflow": {"Kind", "Overflow", "classify", "next_size"},
    "contextfold.overflow.text": {"ErrorText", "read_exception"},
    "contextfold.passes.decide": {"Nothing", "Plan", "decide", "evicted_fate"},
    "contextfold.passes.perform": {
        "Archiver",
        "Made",
        "Means",
        "archived",
        "perform",
        "run_pass",
        "saved",
        "under_archive",
    },
    "contextfold.passes.means": {"Archiver", "Made", "Means", "Nothing"},
    "contextfold.passes.prepared": {"Prepared"},
    "contextfold.passes.question": {
        "MANUAL",
        "Proposal",
        "Question",
        "Trigger",
        "floor_of",
        "is_thinking_asked_for",
        "triggered",
    },
    "contextfold.passes.recalling": {"CONSIDERED", "Asked", "Evicted", "asked_of", "block"},
    "contextfold.passes.without_pass": {"Revise"},
    "contextfold.record.compaction": {
        "Compaction",
        "Edit",
        "FateRun",
        "Recalled",
        "SummaryRecord",
        "reduce",
        "summary_message",
    },
    "contextfold.record.view": {"View", "alternating", "apply", "build", "ready"},
}
"""What faces may take from the rooms of the engine. ``conversation`` is open: histories, groups, pins and ledgers are
what every face talks about."""

FACES = ("integrations", "store", "archive", "recall", "settings", "cli", "gateway", "inspector", "batch", "testing")

FACE_FILES = sorted(path for face in FACES for path in (SOURCE / face).rglob("*.py"))
ALL_FILES = sorted(SOURCE.rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_faces_take_nothing_from_inside_the_engine_but_the_seam() -> None:
    assert FACE_FILES
    wrong = []
    for path in FACE_FILES:
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            room = node.module.split(".")[1] if node.module.startswith("contextfold.") else ""
            if room not in ROOMS or room == "conversation":
                continue
            taken = {alias.name for alias in node.names} - SEAM.get(node.module, set())
            wrong += [f"{path.relative_to(SOURCE)}:{node.lineno} takes {name} from {node.module}" for name in taken]
    assert not wrong, "call the seam instead:\n" + "\n".join(sorted(wrong))


def test_no_face_builds_limits_by_hand() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in FACE_FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Limits"
    ]
    assert not wrong, f"limits follow from a policy and a window (window.bounds): {wrong}"


def test_events_tell_and_results_decide() -> None:
    """What was emitted is read only by those who hand it on."""
    may = {"calls", "compactor.py", "observe.py", "calling.py", "session.py"}
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in ALL_FILES
        if not may & set(path.relative_to(SOURCE).parts)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr == "events" and ast.unparse(node.value).endswith("observer")
    ]
    assert not wrong, f"a decision is read from events: {wrong}"


NAMESAKES = {
    "Compaction": "the record; and the capability for pydantic-ai, whose capabilities are named for what they do",
    "SummarizationMiddleware": "LangChain's and deepagents' own name, so that one import changes",
}


def test_each_class_name_stands_for_one_class() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in ALL_FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(SOURCE).as_posix())
    twice = {name: found for name, found in places.items() if len(found) > 1 and name not in NAMESAKES}
    assert not twice, f"one name, one class: {twice}"


@pytest.mark.parametrize("name", sorted(NAMESAKES))
def test_every_exception_is_still_needed(name: str) -> None:
    assert sum(f"class {name}(" in path.read_text(encoding="utf-8") for path in ALL_FILES) > 1
