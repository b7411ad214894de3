"""What the tests of batches share as fixtures; the conversations themselves are in ``talks``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batch_talks import make_talk


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A JSON Lines file with twelve conversations and two lines that hold none."""
    path = tmp_path / "talks.jsonl"
    rows = [json.dumps({"id": n, "messages": make_talk(4 + n, n)}) for n in range(12)]
    text = "\n".join([*rows[:5], "{not json", *rows[5:], '{"id": 99, "messages": 7}']) + "\n"
    path.write_text(text, encoding="utf-8")
    return path
