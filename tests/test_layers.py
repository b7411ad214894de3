"""Imports point inward. Read from the syntax trees of ``src``, so that imports inside functions count too.

An entry is a module or a package directly under ``contextfold``. It may import from its own layer and from those
below it, and never from one above.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"

LAYERS = [
    {
        "at_once",
        "cached",
        "messages",
        "errors",
        "observe",
        "ports",
        "harness",
        "identifiers",
        "json_values",
        "quoting",
        "redaction",
        "yaml_values",
    },
    {
        "formats",
        "tokens",
        "overflow",
        "tiers",
        "summary",
        "evidence",
        "recall",
        "transcripts",
        "window",
        "policy",
        "limits",
    },
    {"conversation", "record"},
    {"passes"},
    {"calls", "compactor"},
    {
        "archive",
        "batch",
        "cli",
        "gateway",
        "inspector",
        "integrations",
        "store",
        "settings",
        "testing",
        "__init__",
        "__main__",
    },
]
"""Innermost first."""

COLOR = {"anyio", "asyncio", "trio", "concurrent", "threading"}
"""What only the drivers may know about."""

RUNTIME = {"anyio", "pydantic", "pydantic_core"}
"""What may be imported at the top of a module besides the standard library: fast, and always installed."""

ALLOWED = {
    ("ports.py", "anyio"): "the async driver",
    ("ports.py", "asyncio"): "as above: a change outlives the task that began it, where a framework runs on asyncio",
    ("ports.py", "concurrent"): "the sync driver hands values between threads",
    ("ports.py", "threading"): "the sync driver runs branches in threads",
    ("calls/memory.py", "threading"): "a lock around what it remembers of conversations",
    ("calls/single_flight.py", "threading"): "a lock around which passes are being made",
    ("cli/", "typer"): "the commands are declared with it; cli.main imports these modules when it runs",
    ("inspector/server.py", "anyio"): "it serves pages; a store blocks, so it is asked in worker threads",
    ("inspector/records.py", "sqlalchemy"): "only where the records are in a database",
    ("inspector/server.py", "starlette"): "only contextfold view imports it, when it serves a page",
    ("tokens/arrays.py", "numpy"): "sizes of the lines that are weighed; loaded with them",
    ("evidence/", "numpy"): "lines are weighed in arrays; loaded with the first choice, not with contextfold",
    ("integrations/deepagents/", "deepagents"): "only users of deepagents import these modules",
    ("integrations/", "langchain"): "only users of LangChain import these modules",
    ("integrations/", "langchain_core"): "as above",
    ("integrations/", "langgraph"): "as above",
    ("integrations/bounded.py", "threading"): "a lock around what is remembered of conversations",
    ("integrations/known_lists.py", "threading"): "a lock around the count of conversations",
    ("integrations/haystack.py", "haystack"): "only users of Haystack import it",
    ("integrations/openai_agents/", "agents"): "only users of the OpenAI Agents SDK import it",
    ("integrations/pydantic_ai/", "pydantic_ai"): "only users of pydantic-ai import it",
    ("integrations/google_adk.py", "google"): "its classes are made from those of Google's Agent Development Kit",
    ("integrations/langchain/state.py", "typing_extensions"): "LangChain's own states are made of its TypedDict",
    ("integrations/langchain/threads.py", "threading"): "a lock around the records of conversation threads",
    ("recall/stems.py", "threading"): "a lock around stemmers, which keep the word that they work on",
    ("store/", "sqlalchemy"): "only users of a store import it",
    ("calls/background.py", "threading"): "a summary is prepared in a thread, or in a task",
    ("store/lease.py", "threading"): "a lease is renewed beside the work that it covers",
    ("testing/dict_store.py", "threading"): "a lock around an example store",
    ("testing/summary_store.py", "threading"): "threads that compete for a lease",
    ("gateway/", "aiohttp"): "the gateway talks to upstreams with it; only users of the gateway import it",
    ("gateway/", "asyncio"): "the gateway is an asynchronous server and nothing else",
    ("gateway/shared.py", "concurrent"): "a driver that hangs keeps its thread, which no pool may wait for",
    ("gateway/", "httptools"): "uvicorn's parser",
    ("gateway/", "multidict"): "aiohttp's headers",
    ("integrations/strands.py", "strands"): "a face of that framework",
    ("gateway/", "orjson"): "as above",
    ("gateway/", "sqlalchemy"): "as above",
    ("gateway/", "starlette"): "as above",
    ("gateway/", "threading"): "a gateway beside one command runs in a thread",
    ("gateway/", "uvicorn"): "as above",
    ("gateway/", "yarl"): "aiohttp's addresses",
    ("cli/screen.py", "rich"): "only imported by the commands, when there is something to show",
}
"""(file or folder, library) -> why the rule does not hold there."""


def is_allowed(found: Import) -> bool:
    return any(library == found.library and found.file.startswith(place) for place, library in ALLOWED)


@dataclass(frozen=True)
class Import:
    """One import of one module: ``top`` if it happens when ``file`` is imported, not when a function runs."""

    file: str
    line: int
    module: str
    top: bool

    @property
    def library(self) -> str:
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def imports_of(path: Path) -> Iterator[Import]:
    """Every import that runs; those for type checkers alone are left out."""
    file = path.relative_to(SOURCE / "contextfold").as_posix()
    package = ("contextfold", *path.relative_to(SOURCE / "contextfold").parts[:-1])

    def walk(node: ast.AST, top: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from (Import(file, child.lineno, alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = ".".join(package[: len(package) - child.level + 1]) if child.level else ""
                module = ".".join(part for part in (base, child.module) if part)
                yield from (Import(file, child.lineno, f"{module}.{alias.name}", top) for alias in child.names)
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, top and not inside)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), True)


FILES = sorted((SOURCE / "contextfold").rglob("*.py"))


@cache
def every_import() -> list[Import]:
    return [found for path in FILES for found in imports_of(path)]


def entry_of_file(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def entry_of_module(module: str) -> str | None:
    """The entry that a dotted name leads to, or None for other libraries. ``from contextfold import x`` too."""
    parts = module.split(".")
    if parts[0] != "contextfold":
        return None
    named = parts[1] if len(parts) > 1 else "__init__"
    return named if layer_of(named) is not None else "__init__"


def layer_of(entry: str) -> int | None:
    return next((number for number, layer in enumerate(LAYERS) if entry in layer), None)


def test_every_module_has_its_layer() -> None:
    homeless = sorted({entry_of_file(found.file) for found in every_import()} - set().union(*LAYERS))
    assert not homeless, f"say in LAYERS where these belong: {homeless}"


def test_the_picture_in_the_architecture_is_what_the_imports_are() -> None:
    page = (SOURCE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = page.partition("<!-- layers -->\n```\n")[2].partition("```")[0]
    drawn = [set(line.split()) for line in reversed(picture.splitlines())]
    assert drawn == [layer - {"__init__", "__main__"} for layer in LAYERS]


def test_imports_point_inward() -> None:
    wrong = []
    for found in every_import():
        entry = entry_of_module(found.module)
        above, below = layer_of(entry_of_file(found.file)), entry and layer_of(entry)
        if above is not None and below is not None and above < below:  # type: ignore[operator]
            wrong.append(f"{found}: layer {above} must not know layer {below}")
    assert not wrong, "\n".join(wrong)


def test_no_two_entries_import_each_other_while_they_are_imported() -> None:
    edges: dict[str, set[str]] = {}
    for found in every_import():
        target = entry_of_module(found.module)
        source = entry_of_file(found.file)
        if found.top and target not in (None, "__init__", source):
            edges.setdefault(source, set()).add(str(target))
    rings = sorted({tuple(sorted((a, b))) for a, targets in edges.items() for b in targets if a in edges.get(b, ())})
    assert not rings, f"these import each other: {rings}"


def test_importing_a_module_loads_nothing_optional_or_slow() -> None:
    wrong = [
        str(found)
        for found in every_import()
        if found.top
        and found.library not in sys.stdlib_module_names | RUNTIME | {"contextfold"}
        and not is_allowed(found)
    ]
    assert not wrong, "import these inside the function that needs them:\n" + "\n".join(wrong)


def test_only_the_drivers_know_about_color() -> None:
    wrong = [str(found) for found in every_import() if found.library in COLOR and not is_allowed(found)]
    assert not wrong, "await a port instead:\n" + "\n".join(wrong)


def test_every_exception_is_still_needed() -> None:
    unused = [
        (place, library)
        for place, library in ALLOWED
        if not any(found.library == library and found.file.startswith(place) for found in every_import())
    ]
    assert not unused, "remove these exceptions"


def test_each_module_opens_by_saying_what_it_is() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in FILES}
    assert not [path for path, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))]
