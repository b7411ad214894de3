"""What all tests share."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal import constants_ast
from hypothesis.internal.conjecture import providers

from effort import FULL, examples, repeated, sample, waiting

# Hypothesis draws from the constants of all local modules that happen to be loaded, which differ with the tests that a
# worker was given before. Without them a run looks at the same examples everywhere, and what fails can be run again.
for module in (constants_ast, providers):
    module.is_local_module_file = lambda path: False

# How long an example takes says something about the machine, not about the code.
settings.register_profile("full", deadline=None, derandomize=True)  # what fails can be run again
settings.register_profile("quick", deadline=None, max_examples=examples(100), derandomize=True)
settings.load_profile("full" if FULL else "quick")


# Libraries that report to their makers, or fetch a table when they are imported, unless they are told not to.
os.environ.update(
    HAYSTACK_TELEMETRY_ENABLED="false",
    LANGSMITH_TRACING="false",
    LITELLM_LOCAL_MODEL_COST_MAP="true",
    OPENAI_AGENTS_DISABLE_TRACING="true",
    RAY_USAGE_STATS_ENABLED="0",
)

STRANGERS: list[str] = []
"""Where code of a test wanted to connect to, beyond this machine."""


def stay_here(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: refuses what would leave this machine, as an offline machine would, and remembers it."""
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host and host not in ("localhost", "::1", "0.0.0.0", "::") and not host.startswith("127."):
        STRANGERS.append(host)
        raise OSError(f"tests connect to this machine alone, not to {host}")


sys.addaudithook(stay_here)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are processors: many tests wait for a process, a server or a clock."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "JUnit report of a quick run of the same tree: what passed there, and is the same in a full run, is left out"
    parser.addoption("--passed", type=Path, help=told)
    told = "K/N: try the Kth of N shares of each test's cases; N runs try all"
    parser.addoption("--turn", metavar="K/N", help=told)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers have to collect the same names: one that holds an address is another in each of them."""
    if unstable := [item.nodeid for item in items if " object at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give these tests ids that do not hold an address: {unstable}")
    if not FULL and not config.option.file_or_dir and not config.option.keyword:
        sample(items)
    left_out: set[pytest.Item] = set()
    if config.option.passed is not None:
        left_out.update(repeated(items, config.option.passed))
    if config.option.turn is not None:
        turn, turns = map(int, config.option.turn.split("/"))
        left_out.update(waiting(items, turn, turns))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def transcripts_folder() -> Path | None:
    """The folder of real conversations, or None where there is none: it is not part of the project."""
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "transcripts"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def transcripts() -> Path:
    folder = transcripts_folder()
    if folder is None:
        pytest.skip("no real conversations here: set CONTEXTFOLD_TRANSCRIPTS to a folder of transcripts")
    return folder


LIBRARIES = ("contextfold", "langchain", "langchain_core", "deepagents", "langmem")


@pytest.fixture(autouse=True)
def nobody_is_silenced() -> Iterator[None]:
    """Benchmarks and examples silence libraries in their process, which may be this one."""
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.NOTSET)
    disabled = logging.root.manager.disable
    gateway = logging.getLogger("contextfold.gateway")
    handlers, level, propagate = list(gateway.handlers), gateway.level, gateway.propagate
    yield
    logging.disable(disabled)
    gateway.handlers[:], gateway.propagate = handlers, propagate  # a command that ran in this process set them up
    gateway.setLevel(level)


@pytest.fixture(autouse=True)
def nothing_leaves_this_machine() -> Iterator[None]:
    yield
    strangers, STRANGERS[:] = list(STRANGERS), []
    assert not strangers, "something wanted to reach another machine"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Half a surrogate pair in the text of a failure would end the whole run: it cannot be sent to pytest-xdist."""
    report = yield
    if report.failed and report.longrepr is not None:
        told = str(report.longrepr)
        if (sent := told.encode(errors="backslashreplace").decode()) != told:
            report.longrepr = sent
    return report
