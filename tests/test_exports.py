"""The public surface: what ``from contextfold import ...`` gives is a promise, so it changes only on purpose."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import contextfold

ROOT = Path(__file__).resolve().parents[1]

PUBLIC = [
    "ArchiveError",
    "Budgets",
    "Calibration",
    "Cancelled",
    "CannotFit",
    "Compaction",
    "CompactionResult",
    "Compactor",
    "ContextOverflow",
    "ContextfoldError",
    "Event",
    "FormatError",
    "InputError",
    "Ledger",
    "Made",
    "Pins",
    "Policy",
    "PolicyError",
    "Proposal",
    "StillTooLong",
    "StoreError",
    "SummaryFailed",
    "SummaryModel",
    "SummaryOptions",
    "TimedOut",
    "__version__",
    "count_tokens",
]


def test_the_package_exports_exactly_the_public_names() -> None:
    assert sorted(contextfold.__all__) == PUBLIC


def test_every_public_name_is_there_and_explains_itself() -> None:
    for name in PUBLIC:
        value = getattr(contextfold, name)
        assert name == "__version__" or value.__doc__, f"{name} has no docstring"


def test_the_errors_share_one_base_that_a_caller_can_catch() -> None:
    errors = [
        name
        for name in PUBLIC
        if isinstance(value := getattr(contextfold, name), type) and issubclass(value, Exception)
    ]
    assert len(errors) > 10
    for name in errors:
        assert issubclass(getattr(contextfold, name), contextfold.ContextfoldError)


def test_the_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\w+)?", contextfold.__version__)


def test_documented_code_imports_only_what_the_page_of_public_modules_names() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"`(contextfold\.[\w.]+)(?:\.\*)?`", page.split("## `contextfold`")[0])
    public = [name.removesuffix(".") for name in named]
    texts = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.py")]
    assert len(texts) > 20
    imported = {
        (module, text.name)
        for text in texts
        for module in re.findall(r"(?:from|import) (contextfold(?:\.\w+)*)", text.read_text(encoding="utf-8"))
    }
    assert len(imported) > 20
    private = {one for one in imported if not any(f"{one[0]}.".startswith(f"{name}.") for name in public)}
    assert sorted(one for one in private if one[0] != "contextfold") == []
    for name in public:
        assert importlib.import_module(name).__doc__, f"{name} is public and says nothing of itself"


def test_names_in_prose_are_there_and_public() -> None:
    """A name that a page tells people to import is a promise as much as one in its code."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    public = re.findall(r"`(contextfold\.[\w.]+?)(?:\.\*)?`", page.split("## `contextfold`")[0])
    texts = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    name = re.compile(r"`(contextfold(?!\.db\b)(?:\.\w+)+)")  # contextfold.db is a file
    named = {found for text in texts for found in name.findall(text.read_text(encoding="utf-8"))}
    assert len(named) > 20
    private = [one for one in named if not any(f"{one}.".startswith(f"{name}.") for name in public)]
    assert [one for one in private if one.removeprefix("contextfold.") not in PUBLIC] == []
    for one in named:
        pkgutil.resolve_name(one)


FACES = {
    "langchain": "langchain",
    "langgraph": "langchain",
    "deepagents": "deepagents",
    "pydantic_ai": "pydantic-ai",
    "openai_agents": "openai-agents",
    "google_adk": "google-adk",
    "haystack": "haystack",
    "strands": "strands",
}
"""Faces that subclass what a framework has, with the extra that brings it."""
ABSENT = """
import importlib, sys
for name in ("langchain", "langchain_core", "langgraph", "deepagents", "pydantic_ai", "agents", "haystack", "strands"):
    sys.modules[name] = None
sys.modules["google.adk"] = None
for face in sys.argv[1:]:
    try:
        importlib.import_module(f"contextfold.integrations.{face}")
    except ImportError as error:
        print(face, error)
"""


def test_a_face_whose_framework_is_missing_names_the_extra_as_a_shell_takes_it() -> None:
    """LangChain's, LangGraph's and deepagents' said ``No module named 'langchain'``. zsh reads brackets too."""
    done = subprocess.run([sys.executable, "-c", ABSENT, *FACES], capture_output=True, text=True, check=True)
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert {face: text.rpartition(": ")[2] for face, text in told.items()} == {
        face: f"pip install 'contextfold[{extra}]'" for face, extra in FACES.items()
    }
    written = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py")]
    assert [file.name for file in written if "pip install contextfold[" in file.read_text(encoding="utf-8")] == []
