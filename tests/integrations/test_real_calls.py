"""A slice of ``benchmarks/real_calls.py``: a real conversation of each wire format, small windows, every color."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kinds import read_file
from emulator import ProviderServer

pytest.importorskip("openai")
pytest.importorskip("anthropic")

BENCH: dict[str, Any] = runpy.run_path(str(Path(__file__).resolve().parents[2] / "benchmarks" / "real_calls.py"))
FILES = {
    "chat": "openhands-codeact/django__django-11149.json",
    "responses": "entire-skills-codex/019ddb75-a272-7d50-b41d-90017f500b5a.jsonl",
    "anthropic": "kimi-cli-claude-code-zh/629b7931.jsonl",
}
"""Real sessions: one ends in a call without a result, one has reasoning items, one is Chinese with images."""


@pytest.mark.strict
@pytest.mark.parametrize("number", range(4), ids=BENCH["COLORS"])
@pytest.mark.parametrize("shape", FILES)
def test_a_real_conversation_is_played_to_its_end(transcripts: Path, shape: str, number: int) -> None:
    """Nothing is refused for its shape, nothing gets stuck, every overflow is recovered."""
    script = BENCH["script"](read_file(transcripts / FILES[shape])[0], 3)
    assert script.shape == shape
    known = (number + list(FILES).index(shape)) % 2 == 0
    setting = BENCH["Setting"](16_000, known, BENCH["COLORS"][number])
    with ProviderServer(windows={BENCH["MODEL"]: setting.window}, default_window=None) as server:
        tally = BENCH["Player"](server, script, setting).run()
    assert tally.stuck == []
    assert tally.refused_for_shape == tally.cannot_fit == 0
    assert tally.overflows == tally.recovered
    assert tally.calls == 3
    assert tally.compacted > 0
