"""The public surface: what ``from contextfold import ...`` gives is a promise, so it changes only on purpose."""

from __future__ import annotations

import importlib
import re
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
