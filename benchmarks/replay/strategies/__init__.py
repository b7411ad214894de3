"""The strategies that are compared, by name. Each is one class; see ``base`` for how to write another.

What belongs here: names, and making a strategy of a name. A module is imported when its strategy is made, so a package
that is not installed only takes its own strategies away.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.replay.strategies.base import Strategy

OURS = "contextfold"
REFERENCE = "none"


@dataclass(frozen=True)
class Entry:
    """Where the class of a strategy is, and what it is made with besides a window."""

    module: str
    cls: str
    about: str
    """In a line, for the report."""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def _ours(module: str, cls: str, about: str, **options: Any) -> Entry:
    return Entry(f"{__name__}.{module}", cls, about, MappingProxyType(options))


REGISTRY: Mapping[str, Entry] = MappingProxyType(
    {
        "none": _ours("none", "Everything", "no compaction: the reference for cost, not a choice where a window ends"),
        "floor": _ours("floor", "PinnedTail", "system, first and newest user message and a tail; no summary"),
        "trim_oldest": _ours("trim_oldest", "TrimOldest", "LangChain's `trim_messages`"),
        "masking_langchain": _ours("masking_langchain", "ClearToolUses", "LangChain's `ContextEditingMiddleware`"),
        "masking_turns": _ours("masking_turns", "MaskOldTurns", "tool outputs older than ten turns masked"),
        "langchain": _ours("langchain", "Summarization", "LangChain's `SummarizationMiddleware` with its default trim"),
        "langchain_untrimmed": _ours(
            "langchain", "Summarization", "the same, its summarizer shown everything", trim_tokens_to_summarize=None
        ),
        "deepagents": _ours("deepagents", "Summarization", "deepagents' `SummarizationMiddleware`"),
        "langmem": _ours("langmem", "Running", "langmem's `summarize_messages`"),
        "contextfold": _ours("contextfold", "ContextFold", "contextfold as shipped, its built-in summarizer"),
        "contextfold_given": _ours("contextfold", "Given", "contextfold with the peers' thresholds and summarizer"),
        "contextfold_same": _ours(
            "contextfold", "Same", 'contextfold with `summarizer="same"`: the stub reads the view that is cached'
        ),
        "contextfold_langchain": _ours(
            "drop_ins", "LangChain", "contextfold's class in place of LangChain's, given the same"
        ),
        "contextfold_deepagents": _ours(
            "drop_ins", "DeepAgents", "contextfold's class in place of deepagents', given the same"
        ),
        "contextfold_no_evidence": _ours("contextfold", "WithoutEvidence", "contextfold without verbatim lines"),
        "contextfold_no_tiers": _ours("contextfold", "WithoutTiers", "contextfold that shortens nothing"),
        "contextfold_no_prose": _ours("contextfold", "WithoutProse", "contextfold with verbatim lines alone"),
    }
)
"""In the order in which tables show them."""


def is_ours(name: str) -> bool:
    """Whether a strategy is contextfold in some form."""
    return name.startswith(OURS)


def is_variant(name: str) -> bool:
    """Whether a strategy is contextfold with a part taken out, to show what that part is worth."""
    return name.startswith(f"{OURS}_no_")


def entry(name: str) -> Entry:
    """Of a registered name, or of ``module:Class``. Raises ``ValueError`` that lists the names there are."""
    if name in REGISTRY:
        return REGISTRY[name]
    module, colon, cls = name.partition(":")
    if not colon or not module or not cls:
        raise ValueError(f"no strategy {name!r}: give module:Class, or one of {', '.join(REGISTRY)}")
    return Entry(module, cls, f"`{name}`")


def class_of(name: str) -> type[Strategy]:
    """The class of a strategy. Raises ``ImportError`` or ``ValueError`` where there is none."""
    found = entry(name)
    if name not in REGISTRY and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a module beside the one who asks
    cls = getattr(importlib.import_module(found.module), found.cls, None)
    if not (isinstance(cls, type) and issubclass(cls, Strategy)):
        raise ValueError(f"{name}: {found.cls} of {found.module} is no benchmarks.replay.strategies.base.Strategy")
    return cls


def create(name: str, window: int) -> Strategy:
    """A fresh strategy for one conversation in a window of ``window`` tokens."""
    return class_of(name)(window, **entry(name).options)


def unavailable(names: list[str]) -> dict[str, str]:
    """Why which of these cannot be run here."""
    reasons = {}
    for name in names:
        try:
            create(name, 16_000).close()
        except Exception as error:  # noqa: BLE001  a package that is missing or does not work is said, and left out
            reasons[name] = f"{type(error).__name__}: {error}"[:200]
    return reasons
