"""What a process loads before it has done anything: every agent that uses the library waits for that."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

SMALL = 'Compactor(window=64_000).compact([{"role": "user", "content": "Hello"}])'
DUE = """
messages = [{"role": ("user", "assistant")[n % 2], "content": f"line {n} of /a/b/c{n}.py " * 40} for n in range(60)]
assert Compactor(window=4_000).compact(messages).changed
"""

HEAVY = {"anthropic", "genai_prices", "langchain_core", "openai", "rich", "sqlalchemy", "typer", "yaml"}
NEVER = HEAVY | {
    "contextfold.calls.recovery",
    "contextfold.overflow",
    "contextfold.summary.bisect",
    "contextfold.summary.models",
}
NO_PASS = {
    "anyio",
    "numpy",
    "contextfold.identifiers",
    "contextfold.passes.perform",
    "contextfold.quoting",
    "contextfold.summary.accept",
    "contextfold.tiers.pieces",
}


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import contextfold", HEAVY | {"pydantic", "anyio", "numpy", "contextfold.compactor", "contextfold.errors"}),
        ("from contextfold import ContextfoldError", HEAVY | {"pydantic", "anyio", "numpy", "contextfold.compactor"}),
        ("import contextfold.cli.app", {"contextfold.store", "contextfold.policy", "pydantic", "numpy", "yaml"}),
        (f"from contextfold import Compactor; {SMALL}", NEVER | NO_PASS),
        (f"from contextfold import Compactor\n{DUE}", NEVER),
    ],
    ids=["the package", "an error", "the command line", "a turn with nothing to do", "a pass without a model"],
)
def test_nothing_is_loaded_before_it_is_needed(code: str, unwanted: set[str]) -> None:
    probe = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", probe])))
    assert not loaded & unwanted


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    import contextfold

    with pytest.raises(AttributeError, match="no attribute 'Compacter'"):
        contextfold.Compacter  # noqa: B018
    assert set(contextfold.__all__) <= set(dir(contextfold))


def test_no_validator_is_built_by_the_first_threads_that_need_it() -> None:
    """While pydantic builds what was deferred, other threads may get the validator of the parent class."""
    from pydantic import BaseModel

    for module in ("record.compaction", "settings", "summary.options"):
        importlib.import_module(f"contextfold.{module}")

    def under(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
        for one in kind.__subclasses__():
            yield one
            yield from under(one)

    ours = [kind for kind in under(BaseModel) if kind.__module__.startswith("contextfold.")]
    assert {"Policy", "Compaction"} <= {kind.__name__ for kind in ours}
    assert not [kind.__name__ for kind in ours if kind.model_config.get("defer_build")]
