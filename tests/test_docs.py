"""The documentation is executed: its Python runs, and the commands it shows exist.

Python blocks of one page run in order in one namespace, which holds ``messages`` (the demo's conversation), in an
empty folder that holds ``session.json``. A block after the line ``<!-- not run: REASON -->`` is only compiled.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from contextfold import CompactionResult, Compactor, Policy
from contextfold.cli.app import app
from contextfold.observe import LEVELS
from leftovers import collected

ROOT = Path(__file__).resolve().parents[1]
PAGES = [page for name in ("README.md", "ARCHITECTURE.md") if (page := ROOT / name).is_file()]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"(?P<before>[^\n]*)\n```(?P<language>\w+)[^\n]*\n(?P<code>.*?)\n```", re.DOTALL)
BATCH = ("compact", "measure", "check")
SESSIONS = ("list", "show", "import", "export", "undo", "compact")
PLAIN = {"COLUMNS": "200", "NO_COLOR": "1"}
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


SLOW = {"models.md", "testing.md"}
"""Pages whose programs take seconds; they run strictly, as those of frameworks do."""
OF_FRAMEWORKS = {
    *("bedrock.md", "google-adk.md", "google-genai.md", "haystack.md", "litellm.md", "openai-agents.md"),
    *("pydantic-ai.md", "strands.md"),
}


@pytest.fixture
def request_of_the_demo() -> dict[str, Any]:
    made: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "make_session.py"))["make_request"]()
    return made


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.strict] if page.name in OF_FRAMEWORKS | SLOW else [], id=page.name)
        for page in PAGES
    ],
)
def test_the_python_of_a_page_runs(
    page: Path, request_of_the_demo: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("session.json").write_text(json.dumps(request_of_the_demo), encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__docs__", "messages": request_of_the_demo["messages"]}
    with collected() if page.name in OF_FRAMEWORKS else nullcontext():
        for block in blocks_of(page):
            if block.language == "python":
                code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
                if block.runs:
                    exec(code, namespace)
        namespace.clear()


def test_the_tutorial_runs_in_a_checkout_with_nothing_but_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its conversation was there in this test alone: a newcomer got a ``NameError``."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__docs__"}
    for block in blocks_of(ROOT / "docs" / "tutorial.md"):
        if block.language == "python":
            exec(block.code, namespace)


def test_the_page_of_the_demo_shows_what_the_demo_prints(tmp_path: Path) -> None:
    """A newcomer compares the two, and the page told of an earlier view: 431 quoted lines, not 418."""
    (tmp_path / "build").mkdir()
    commands = [  # those of ``make demo``
        [str(ROOT / "examples" / "make_session.py"), "build/session.json"],
        ["-m", "contextfold", "compact", "build/session.json", "--window", "16000", "--output", "build/view.json"],
    ]
    width = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    printed = "".join(
        subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=width, check=True, capture_output=True, encoding="utf-8"
        ).stdout
        for words in commands
    )
    [shown] = [block.code for block in blocks_of(ROOT / "docs" / "demo.md") if block.language == "text"]
    timeless = [re.sub(r"Took [0-9.]+ s", "Took 0 s", text.strip()).split() for text in (shown, printed)]
    assert timeless[0] == timeless[1], "paste the output of make demo into docs/demo.md"


def test_every_command_that_is_shown_exists() -> None:
    problems = [f"{place}: {command}: {problem}" for place, command in COMMANDS if (problem := problem_of(command))]
    assert not problems, "\n".join(problems)


def problem_of(command: str) -> str | None:
    """Why a shell command cannot work, if that can be seen without running it."""
    words = [word for word in shlex.split(command, comments=True) if not re.match(r"[A-Z_]+=", word)]
    if not words:
        return None
    program = Path(words[0]).name if words[0].startswith(".venv") else words[0]
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return next((f"no target {word}" for word in words[1:] if word not in targets), None)
    if program == "contextfold":
        return problem_of_options(words[1:])
    if "/" in program:
        return None if os.access(ROOT / program, os.X_OK) else "no such program in the project"
    if program.startswith("python") and words[1:] and words[1].endswith(".py"):
        return None if (ROOT / words[1]).is_file() else f"no script {words[1]}"
    return None if program in ("docker", "pip", "python") else "no such program"


def problem_of_options(words: list[str]) -> str | None:
    """The subcommand exists, and its help names every option that is used."""
    groups = {group.name for group in app.registered_groups}  # such as ``sessions``, with commands of their own
    subcommand = [word for word in words[: 2 if words[0] in groups else 1] if not word.startswith("-")]
    shown = CliRunner().invoke(app, [*subcommand, "--help"], env=PLAIN)
    if shown.exit_code:
        return f"no command {' '.join(subcommand)}"
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    return next((f"no option {option}" for option in options if option not in shown.output), None)


def test_what_cannot_work_is_noticed() -> None:
    """The check itself."""
    assert problem_of("make demo  # the example") is None
    assert problem_of("make coffee") == "no target coffee"
    assert problem_of("contextfold compact session.json --window 16000 | head") is None
    assert problem_of("contextfold compact session.json --widow 16000") == "no option --widow"
    assert problem_of("contextfold expand session.json") == "no command expand"
    assert problem_of("contextfold sessions import session.json --thread demo") is None
    assert problem_of("contextfold sessions import session.json --quiet") == "no option --quiet"
    assert problem_of("contextfold sessions expand demo") == "no command sessions expand"
    assert problem_of("CI=true .ci/run") is None
    assert problem_of("python examples/none.py") == "no script examples/none.py"


@pytest.mark.parametrize(
    "command",
    [
        "compact",
        "inspect",
        "recall",
        "gateway",
        "run",
        "view",
        *(f"sessions {name}" for name in SESSIONS),
        *(f"batch {name}" for name in BATCH),
    ],
)
def test_every_option_of_a_command_is_documented(command: str) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env=PLAIN)
    assert shown.exit_code == 0
    options = set(re.findall(r"(--[a-z-]+)", shown.output)) - {"--help"}
    missing = sorted(option for option in options if option not in text)
    assert not missing, f"say in the documentation what these do: {missing}"


def test_a_command_speaks_of_no_option_that_it_does_not_have() -> None:
    """``sessions compact --help`` told of the ``--config`` that it refuses."""
    told = []
    for command in ("compact", "inspect", "recall", *(f"sessions {name}" for name in (*SESSIONS, "prune"))):
        shown = CliRunner().invoke(app, [*command.split(), "--help"], env=PLAIN).output
        own = set(re.findall(r"^\W*(--[a-z-]+)", shown, re.MULTILINE))
        told += [f"{command}: {name}" for name in set(re.findall(r"--[a-z-]+", shown)) - own]
    assert told == []


def test_the_readme_is_read_in_two_minutes() -> None:
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    assert len(words) <= 700, f"{len(words)} words: move something to its page"


NUMBERED = re.compile(r"(?<![\w./-])[RL][0-9]{1,2}(?![\w/-]|\.\w)")
WORDS_OF_OURS = ("src", "tests", "benchmarks", "emulator", "examples", "docs", ".ci", ".github")


def test_nothing_refers_to_a_list_of_numbers_that_a_reader_does_not_have() -> None:
    """A law or a requirement is named by what it says."""
    files = [file for name in WORDS_OF_OURS for kind in ("*.py", "*.md", "*.yml") for file in (ROOT / name).rglob(kind)]
    assert len(files) > 500
    told = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if NUMBERED.search(line)
    ]
    assert told == []


COLUMNS = {"hard": 1, "far": 2, "users": 3, "cost": 5}
"""Where the tables of docs/benchmark.md have what README and guide tell."""

TOLD = {
    "contextfold, defaults": "contextfold",
    "contextfold, built-in summarizer, defaults": "contextfold",
    'contextfold, `summarizer="same"`': "contextfold_same",
    "its class in place of LangChain's": "contextfold_langchain",
    "contextfold by one changed import": "contextfold_langchain",
    "LangChain's `SummarizationMiddleware`": "langchain",
    "deepagents": "deepagents",
    "langmem": "langmem",
    "pins and a tail": "floor",
}
"""How lines of theirs begin, and the strategy that they are about."""


def measured() -> dict[str, list[dict[str, float]]]:
    """The figures of each strategy in each window, as the report of the benchmark tells them."""
    report = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    found: dict[str, list[dict[str, float]]] = {}
    for section in re.split(r"^### Window .*$", report, flags=re.MULTILINE)[1:4]:
        for row in re.findall(r"^\| [*]*\w+[*]* \|.*$", section.partition("\n## ")[0], re.MULTILINE):
            cells = [cell.strip(" *").partition(" (")[0] for cell in row.strip("| ").split("|")]
            if len(cells) > max(COLUMNS.values()) and cells[0] != "strategy":
                figures = {name: float(cells[place]) for name, place in COLUMNS.items()}
                found.setdefault(cells[0], []).append(figures)
    return found


@pytest.mark.parametrize(
    ("page", "places"),
    [
        ("README.md", {"hard": 1, "users": 2, "cost": 3}),
        ("docs/benchmark-guide.md", {"hard": 1, "far": 2, "users": 3, "cost": 5}),
    ],
)
def test_the_figures_of_a_page_are_those_of_the_last_benchmark(page: str, places: dict[str, int]) -> None:
    report, seen = measured(), 0
    rows = re.findall(r"^\|.*\|$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    for cells in ([cell.strip() for cell in row.strip("|").split("|")] for row in rows):
        strategy = next((name for begins, name in TOLD.items() if cells[0].startswith(begins)), None)
        if strategy is None or len(cells) <= max(places.values()):
            continue
        seen += 1
        for name, place in places.items():
            told = [float(figure) for figure in cells[place].split("/")]
            off = 0.0051 if name == "cost" else 0.51
            assert told == pytest.approx([figures[name] for figures in report[strategy]], abs=off), (cells[0], name)
    assert seen > 4


def test_the_guide_says_what_the_engine_keeps_with_what_the_peers_get() -> None:
    guide = (ROOT / "docs" / "benchmark-guide.md").read_text(encoding="utf-8")
    sentence = re.search(r"contextfold keeps ([\d./\s]+) % at a cost of\s([\d./\s]+),", guide)
    assert sentence is not None
    for told, name in zip(sentence.groups(), ("hard", "cost"), strict=True):
        figures = [figures[name] for figures in measured()["contextfold_given"]]
        assert list(map(float, told.split("/"))) == pytest.approx(figures, abs=0.051 if name == "hard" else 0.0051)


def test_no_link_of_a_page_leads_out_of_the_site_and_all_lead_somewhere() -> None:
    """A folder beside ``docs`` is none of the site's: the link to Django's example was broken there."""
    broken = []
    for page in PAGES:
        place = (ROOT / "docs") if page.parent.name == "docs" else ROOT
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            if not target.exists() or place not in target.parents:
                broken.append(f"{page.name}: {link}")
    assert broken == []


def test_every_extra_that_a_user_installs_is_told_and_exists() -> None:
    """Nine of the frameworks' and that of batches were missing in the guide."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = {"test", "test-clients", "dev", "docs"}  # of those who change contextfold
    table = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8").partition("\n## Extras\n")[2].partition("\n## ")[0]
    told = {
        name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }
    assert told == set(project["optional-dependencies"]) - ours


def test_who_changes_over_from_a_peer_finds_each_of_its_settings() -> None:
    editing = pytest.importorskip("langchain.agents.middleware.context_editing")
    page = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    assert "ContextEditingMiddleware" in page
    fields = [field.name for field in dataclasses.fields(editing.ClearToolUsesEdit)]
    assert [name for name in fields if not re.search(rf"`{name}\b", page)] == []


def test_the_reference_has_all_that_a_result_and_a_compactor_have() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    section = reference.partition("### Result\n")[2].partition("\n### ")[0]
    fields = {*(field.name for field in dataclasses.fields(CompactionResult)), *vars(CompactionResult)}
    assert [name for name in sorted(fields) if not name.startswith("_") and f"`{name}" not in section] == []
    section = reference.partition("### Compactor\n")[2].partition("\n### ")[0]
    methods = {name for name, value in vars(Compactor).items() if callable(value) and not name.startswith("_")}
    assert [name for name in sorted(methods) if not re.search(rf"`{name}[(`]", section)] == []


def test_the_reference_has_every_setting_with_its_default_and_every_event_with_its_level() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", reference.partition("### Compactor\n")[0], re.MULTILINE))
    real = dict(settings_of(Policy()))
    assert sorted(told) == sorted(real)
    plain = {name: str(value) for name, value in real.items() if isinstance(value, bool | int | float | None)}
    wrong = [name for name, value in plain.items() if told[name].strip("`").replace("_", "") != value]
    assert wrong == []
    events = dict(re.findall(r"^\| `(\w+)` \| (debug|info|warning|error) \|", reference, re.MULTILINE))
    assert events == {name: logging.getLevelName(level).lower() for name, level in LEVELS.items()}


def settings_of(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel) and name != "recall":  # which has a table of its own
            yield from settings_of(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
