"""The Django project among the examples: its own tests run, and its migrations are those of its models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "django_agent"


@pytest.mark.strict
@pytest.mark.parametrize("command", [("makemigrations", "--check", "--dry-run"), ("test",)], ids=" ".join)
def test_the_project_is_in_order(command: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("django")
    source = PROJECT.parents[1] / "src"
    environ = {**os.environ, "DJANGO_AGENT_DATA": str(tmp_path)}
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "manage.py", *command],
        cwd=PROJECT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if command == ("test",):
        ran = re.search(r"Ran (\d+) tests", done.stderr)
        assert ran is not None
        assert int(ran[1]) >= 30, done.stderr  # none of them left out
        assert "skipped" not in done.stderr
