"""What the tests of the benchmark share: its package in reach, and a tokenizer that needs no vocabulary."""

from __future__ import annotations

import logging
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


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A run silences libraries in its process, which is this one here: other tests listen to them."""
    from benchmarks.replay.jobs import QUIET

    levels = {name: logging.getLogger(name).level for name in QUIET}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
