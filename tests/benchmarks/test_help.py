"""The programs beside the benchmark, as a person starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["overhead", "passes", "structure"])
def test_a_program_that_is_asked_for_help_measures_nothing(name: str) -> None:
    """``--help`` was taken for a file, or for nothing at all."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
