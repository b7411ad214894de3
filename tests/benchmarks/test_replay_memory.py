"""The section on memory is made from the figures that were kept, so that the next report does not overwrite it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.replay import remembered

from benchmarks import memory


def test_what_is_saved_stands_in_the_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SAVED", tmp_path / "memory.json")
    memory.save("search", {"hit@1": 0.3888})
    memory.save("search", {"hit@5": 0.6712})
    memory.save("rules", {"20%": 0.81})
    text = remembered.markdown(tmp_path / "memory.json")
    assert "38.9 %" in text
    assert "67.1 %" in text
    assert "81.0 %" in text
    assert set(json.loads((tmp_path / "memory.json").read_text())) == {"search", "rules"}


def test_the_page_has_the_section_that_a_report_would_write() -> None:
    page = Path(remembered.__file__).resolve().parents[2] / "docs" / "benchmark.md"
    assert remembered.markdown() in page.read_text(encoding="utf-8")
