"""What the tests of the benchmark share: its package in reach, and a tokenizer that needs no vocabulary."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture(autouse=True)
def estimated_tokens() -> Iterator[None]:
    """Tokens are estimated: the instrument is under test here, not any strategy."""
    from benchmarks.replay import tokens

    tokens.use(tokens.ESTIMATE)
    yield
    tokens.use(tokens.ESTIMATE)
