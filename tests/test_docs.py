"""The documentation is executed: its Python runs, and the commands it shows exist.

Python blocks of one page run in order in one namespace, which holds ``messages`` (the demo's conversation), in an
empty folder that holds ``session.json``. A block after the line ``<!-- not run: REASON -->`` is only compiled.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contextfold.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [page for name in ("README.md", "ARCHITECTURE.md") if (page := ROOT / name).is_file()]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"(?P<before>[^\n]*)\n```(?P<language>\w+)[^\n]*\n(?P<code>.*?)\n```", re.DOTALL)
SHELLS = {"sh", "bash", "shell", "console"}


@dataclass(frozen=True)
class Block:
    """One fenced block: where it starts, its language, its code, and whether it is meant to run."""

    page: Path
    line: int
    language: str
    code: str
    runs: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = "\n" + page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("code")),
            language=found["language"],
            code=found["code"],
            runs=not found["before"].startswith("<!-- not run: "),
        )
        for found in FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
COMMANDS = [
    (str(block), line.removeprefix("$ "))
    for block in BLOCKS
    if block.language in SHELLS
    for line in block.code.replace("\\\n", " ").splitlines()
    if line.strip() and not line.startswith("#") and (block.language != "console" or line.startswith("$ "))
]


@pytest.fixture
def request_of_the_demo() -> dict[str, Any]:
    made: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "make_session.py"))["make_request"]()
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(
    page: Path, request_of_the_demo: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("session.json").write_text(json.dumps(request_of_the_demo), encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__docs__", "messages": request_of_the_demo["messages"]}
    for block in blocks_of(page):
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
            if block.runs:
                exec(code, namespace)


@pytest.mark.parametrize(("place", "command"), COMMANDS)
def test_a_command_that_is_shown_exists(place: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    while "=" in words[0]:  # settings of the environment
        words = words[1:]
    if words[0] == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        assert set(words[1:]) <= targets, f"{place}: no such target: {command}"
    elif words[0] == "contextfold":
        check_options(place, words[1:])
    elif words[0].startswith((".", "examples/", "benchmarks/")):
        assert os.access(ROOT / words[0], os.X_OK) or words[0].startswith(".venv"), f"{place}: {words[0]} cannot be run"
    else:
        assert words[0] in ("pip", "python", "git", "cd") or shutil.which(words[0]), f"{place}: no {words[0]}"


def check_options(place: str, words: list[str]) -> None:
    """The subcommand exists, and its help names every option that is used."""
    subcommand = [word for word in words[:1] if not word.startswith("-")]
    shown = CliRunner().invoke(app, [*subcommand, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert shown.exit_code == 0, f"{place}: contextfold {' '.join(words)}: {shown.output}"
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        assert option in shown.output, f"{place}: contextfold {' '.join(subcommand)} has no {option}"


def test_every_option_of_compact_is_documented() -> None:
    if not any(page.name == "README.md" for page in PAGES):
        pytest.fail("there is no README.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = CliRunner().invoke(app, ["compact", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    options = set(re.findall(r"(--[a-z-]+)", shown.output)) - {"--help"}
    missing = sorted(option for option in options if option not in text)
    assert not missing, f"say in the documentation what these do: {missing}"
