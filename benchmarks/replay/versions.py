"""What a figure depends on besides the conversation: versions of packages, and hashes of code that has none.

A saved result is used again only as long as all of this is the same.
"""

from __future__ import annotations

import hashlib
import inspect
import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import contextfold
from benchmarks.replay import strategies, tokens

HERE = Path(__file__).resolve().parent
INSTRUMENT = (
    "chat", "conversation", "extract", "measure", "recording", "replay", "summarizer", "tokens", "validity",
)  # fmt: skip
"""Modules that decide figures; the others choose, run, save and show."""
SHARED = ("anchors", "money", "recording", "replay")
"""Those of ``contextfold.inspector`` that decide figures too."""
PACKAGES = ("contextfold", "langchain", "langchain-core", "deepagents", "langmem", "tiktoken", "genai-prices")


def packages() -> dict[str, str]:
    """Version of Python and of every package of the comparison that is installed; the tokenizer by its name."""
    found = {"python": platform.python_version(), "tokenizer": tokens.tokenizer().name}
    for name in PACKAGES:
        version = _version(name)
        if version:
            found[name] = version
    return found


def of_instrument() -> str:
    """A hash of the code that measures, and the tokenizer that it counts with."""
    shared = Path(contextfold.__file__).parent / "inspector"
    files = (
        [HERE / f"{name}.py" for name in INSTRUMENT]
        + [shared / f"{name}.py" for name in SHARED]
        + sorted((HERE / "measures").glob("*.py"))
    )
    return f"{_hash(files)}:{tokens.tokenizer().name}"


def of_strategy(name: str) -> str:
    """A hash of a strategy's code, and the versions of the packages that it drives."""
    cls = strategies.class_of(name)
    modules = {inspect.getsourcefile(base) for base in cls.__mro__ if base is not object}
    code = _hash(sorted(Path(file) for file in modules if file))
    options = sorted(strategies.entry(name).options.items())
    return ":".join([code, str(options), *(f"{package}={_code_version(package)}" for package in cls.packages)])


@cache
def _code_version(package: str) -> str:
    """contextfold changes without its version changing while it is being worked on, so its code is its version."""
    if package == "contextfold":
        return of_folder(Path(contextfold.__file__).parent)
    return _version(package)


def of_folder(folder: Path) -> str:
    """A hash of all code and prompts below a folder."""
    return _hash(sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".md")))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _hash(files: Iterable[Path]) -> str:
    hasher = hashlib.blake2b(digest_size=10)
    for file in files:
        hasher.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return hasher.hexdigest()
