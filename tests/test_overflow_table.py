"""The classifier on texts of many providers: the table of ``benchmarks/overflow_table.py``, held."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLE = runpy.run_path(str(ROOT / "benchmarks" / "overflow_table.py"))
EXAMPLES: list[dict[str, Any]] = json.loads(TABLE["EXAMPLES"].read_text(encoding="utf-8"))

MISSED = {"snowflake cortex", "tts", "dalle"}
"""Texts too vague to be told from look-alikes; the reasons stand beside the assertions."""


def test_what_the_classifier_says_is_right_and_it_misses_little() -> None:
    """R22: a false alarm compacts for nothing, a miss ends a conversation."""
    precision, recall = TABLE["rates"](TABLE["matrix"](EXAMPLES))
    assert precision == 1.0
    assert recall > 0.98
    wrong = {example["provider"] for example in EXAMPLES if TABLE["verdict"](example)[0] != (example["kind"] or "none")}
    # "max tokens of 4096 exceeded" is what others say of an answer; the other two are of no chat model
    assert wrong <= MISSED


def test_the_figures_of_right_verdicts_are_right() -> None:
    right, of = TABLE["figures"](EXAMPLES)
    assert right >= of - 2


def test_every_kind_and_the_look_alikes_are_in_every_large_group() -> None:
    for group in (1, 2):
        kinds = {example["kind"] for example in EXAMPLES if example["group"] == group}
        assert len(kinds) == len(TABLE["KINDS"])
    assert sum(example["kind"] is None for example in EXAMPLES) > 100


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = [{"provider": "x", "status": 400, "code": None, "message": "Hello", "kind": "output_budget",
              "limit": None, "used": None}]  # fmt: skip
    (tmp_path / "more.json").write_text(json.dumps(wrong), encoding="utf-8")
    assert TABLE["main"]([str(tmp_path / "more.json")]) == 0
    printed = capsys.readouterr().out
    assert "prompt_too_l" in printed
    assert "recall 0.000" in printed
    assert "x: Hello: none, not output_budget" in printed
