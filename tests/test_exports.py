"""The public surface: what ``from contextfold import ...`` gives is a promise, so it changes only on purpose."""

from __future__ import annotations

import re

import contextfold

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
