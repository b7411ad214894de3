"""The ranges of pyproject.toml say what is tested: each lower bound is installed somewhere, and the tests run there.

Reads the pins of the environments that the Makefile makes; that these are what is installed there is checked by
``.ci/run``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

TOOLS = {"test", "test-clients", "dev", "docs", "bench"}
"""Extras for work on contextfold itself. No one else depends on them."""
OLDEST = (".venv-oldest", ".venv-oldest-deepagents")


def variables() -> dict[str, str]:
    return dict(re.findall(r"^(\w+)\s*:=\s*(\S+)$", MAKEFILE, re.MULTILINE))


def setting(environment: str, name: str) -> str:
    """``EXTRAS`` or ``PINS`` of an environment, as the Makefile has it."""
    found = {
        variables()[variable]: value
        for variable, value in re.findall(rf"^\$\((\w+)\)/ready: {name} := (\S+)$", MAKEFILE, re.MULTILINE)
    }
    return found[environment]


def normal(name: str) -> str:
    """A distribution's name, as two spellings of it compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(environment: str) -> dict[str, str]:
    lines = (ROOT / setting(environment, "PINS")).read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {normal(name): version for name, version in pairs}


def bounds(requirements: list[str]) -> dict[str, str]:
    """Name and lower bound; a requirement with anything else in it is refused."""
    found = {}
    for requirement in requirements:
        match = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)(?:; .*)?", requirement)
        assert match, f"{requirement}: only a lower bound is expected, as NAME>=VERSION, and where it applies"
        found[normal(match[1])] = match[2]
    return found


def extras(environment: str) -> set[str]:
    return set(setting(environment, "EXTRAS").split(",")) - TOOLS


def test_the_bounds_of_the_package_are_what_the_oldest_environment_installs() -> None:
    """The text must be the same, ``6.0.0`` for ``6.0.0``, so that no one has to think about it."""
    assert bounds(PROJECT["dependencies"]).items() <= pins(OLDEST[0]).items()


@pytest.mark.parametrize("extra", sorted(set(PROJECT["optional-dependencies"]) - TOOLS))
def test_the_bounds_of_an_extra_are_what_an_oldest_environment_installs(extra: str) -> None:
    """All of them together in one environment: a range of each alone would say nothing."""
    wanted = bounds(PROJECT["optional-dependencies"][extra])
    assert wanted
    environments = [one for one in (*OLDEST, ".venv") if extra in extras(one)]  # some support one release so far
    assert any(wanted.items() <= pins(one).items() for one in environments)


def test_the_newest_environment_has_every_extra() -> None:
    assert extras(".venv") == set(PROJECT["optional-dependencies"]) - TOOLS


@pytest.mark.parametrize("library", ["openai", "anthropic", "langchain", "langchain-core", "langgraph", "deepagents"])
def test_the_two_ends_of_a_range_differ(library: str) -> None:
    """Otherwise the second run would tell nothing."""
    oldest = [pins(environment).get(library) for environment in OLDEST]
    assert pins(".venv")[library] not in oldest
    assert any(oldest)


def test_what_runs_at_the_old_end_asks_for_no_framework_that_stands_at_the_new_end_alone() -> None:
    """It would be skipped there, and fail the run. ``tests/integrations/across`` is not run there."""
    folders = ("integrations", "integrations/langchain", "summary/models", "testing/provider")
    alone = re.compile(
        r"""(?:importorskip\(["']|^\s*(?:from|import) )(agents|boto3|google|haystack|litellm|pydantic_ai|strands)\b""",
        re.M,
    )
    may = (ROOT / ".ci" / "allowed_skips_oldest.txt").read_text(encoding="utf-8")
    left_out = set(re.findall(r"--ignore=(\S+\.py)", MAKEFILE))
    tests = [test for folder in folders for test in (ROOT / "tests" / folder).glob("*.py")]
    tests = [test for test in tests if str(test.relative_to(ROOT)) not in left_out]
    assert len(tests) > 20
    asking = {test.stem: sorted(set(alone.findall(test.read_text(encoding="utf-8")))) for test in tests}
    assert not {test: names for test, names in asking.items() if names and f".{test}::" not in may}


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``make demo`` in a folder that holds what the set-up reads, and no package."""
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, folder)
    return subprocess.run(["make", "-C", str(folder), "demo", *arguments], capture_output=True, text=True, timeout=60)


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


@needs_make
def test_without_a_python_that_is_new_enough_the_demo_says_what_to_install(tmp_path: Path) -> None:
    done = make(tmp_path, "CANDIDATES=python2 python1")
    assert done.returncode
    assert "needs Python 3.11 or newer, and none of these is: python2 python1" in done.stderr
    assert "make PYTHON=" in done.stderr


@needs_make
def test_without_the_module_venv_the_demo_says_what_to_install(tmp_path: Path) -> None:
    poor = tmp_path / "poor-python"
    poor.write_text(f'#!/bin/sh\ncase "$2" in *venv*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    poor.chmod(0o755)
    done = make(tmp_path, f"PYTHON={poor}")
    assert done.returncode
    assert "apt install python3-venv" in done.stderr
    assert not (tmp_path / ".venv-demo").exists()


@pytest.mark.strict
@needs_make
def test_a_set_up_that_fails_says_what_it_needs(tmp_path: Path) -> None:
    """A network, or an index that can be reached; here pip may use neither."""
    (tmp_path / ".venv-demo" / "bin").mkdir(parents=True)
    (tmp_path / ".venv-demo" / "bin" / "python").write_text(
        f'#!/bin/sh\n[ "$2" = pip ] && exec {sys.executable} "$@" --isolated --no-index\nexit 0\n'
    )
    (tmp_path / ".venv-demo" / "bin" / "python").chmod(0o755)
    done = make(tmp_path, f"PYTHON={sys.executable}")
    assert done.returncode
    assert "Setting up .venv-demo, once" in done.stdout
    assert "HTTPS_PROXY" in done.stderr
    assert not (tmp_path / ".venv-demo" / "ready").exists()
