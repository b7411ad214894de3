"""The Dockerfile, read line by line: what an image would do cannot be built here, and must hold all the same."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """(instruction, its words), continued lines joined, comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_every_stage_stands_on_one_pinned_python_that_the_package_supports(steps: list[tuple[str, str]]) -> None:
    arguments = dict(rest.split("=", 1) for word, rest in steps if word == "ARG")
    images = [rest.split()[0].replace("${PYTHON}", arguments["PYTHON"]) for word, rest in steps if word == "FROM"]
    assert len(set(images)) == 1
    version = re.fullmatch(r"python:(\d+)\.(\d+)\.\d+-slim-\w+", images[0])
    assert version is not None, images
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = re.search(r">=\s*(\d+)\.(\d+)", project["requires-python"])
    assert least is not None
    assert (int(version[1]), int(version[2])) >= (int(least[1]), int(least[2]))


def test_all_that_is_copied_into_it_is_there(steps: list[tuple[str, str]]) -> None:
    copied = [rest.split()[:-1] for word, rest in steps if word == "COPY" and "--from" not in rest]
    for name in [name for names in copied for name in names]:
        assert (ROOT / name).exists(), name


def test_it_installs_wheels_at_pinned_versions_with_extras_that_there_are(steps: list[tuple[str, str]]) -> None:
    line = next(rest for word, rest in steps if word == "RUN" and "pip install" in rest)
    commands = [shlex.split(command) for command in line.split("&&")]
    for words in commands:
        assert words[words.index("-c") + 1] == "constraints.txt"
        assert words[words.index("--only-binary") + 1] == ":all:"
    backend, words = commands
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"\n{backend[-1]}==" in pins  # an isolated build would take the newest
    assert "--no-build-isolation" in words
    extras = re.fullmatch(r"\.\[([\w,]+)\]", words[-1])
    assert extras is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"gateway", "postgres"} == set(extras[1].split(",")) <= project["optional-dependencies"].keys()


def test_it_runs_as_another_user_than_root_who_may_write_its_volume(steps: list[tuple[str, str]]) -> None:
    last = max(place for place, (word, _) in enumerate(steps) if word == "FROM")
    words = dict(steps[last + 1 :])
    assert words["USER"] not in ("root", "0")
    made = next(rest for word, rest in steps if word == "RUN" and "useradd" in rest)
    assert made.endswith(f"chown {words['USER']} {words['VOLUME']}")
    assert [word for word, _ in steps].index("USER") > steps.index(("RUN", made))
    assert f"sqlite:///{words['VOLUME']}/" in words["ENV"]


def test_signals_arrive_and_its_health_is_looked_at(steps: list[tuple[str, str]]) -> None:
    """The exec form: with a shell in between, SIGTERM ends the shell, and streams are cut."""
    words = dict(steps)
    entry = json.loads(words["ENTRYPOINT"])
    assert entry[:4] == ["contextfold", "gateway", "--host", "0.0.0.0"]
    assert words["STOPSIGNAL"] == "SIGTERM"
    check = json.loads(words["HEALTHCHECK"].partition("CMD ")[2])
    from contextfold.gateway.settings import DEFAULT_PORT

    assert f":{DEFAULT_PORT}/healthz" in check[-1]
    assert words["EXPOSE"] == str(DEFAULT_PORT)
    compile(check[-1], "HEALTHCHECK", "exec")
