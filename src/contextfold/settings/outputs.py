"""What settings become, where that is made of another library's parts: what each output cannot honor is refused.

What belongs here: the names of summary models as files have them, and the arguments of LangChain's own middleware. What
does not: reading settings (``settings``), and what they do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from contextfold.errors import PolicyError
from contextfold.policy import Policy
from contextfold.settings.summarization import DEFAULT_KEEP, to_format

_FAMILIES = {"gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}
_FAMILIES["claude"] = "anthropic"
"""How names of models begin -> who makes them."""

DECIDES = frozenset({"enabled", "trigger", "keep", "summary", "evidence"})
"""Fields of a policy that the drop-in for LangChain's middleware has arguments for."""


def qualified(name: str) -> str:
    """``PROVIDER:MODEL`` for a name such as ``gpt-4o-mini``; one that does not say whose it is stays as it is."""
    if ":" in name:
        return name
    provider = next((maker for start, maker in _FAMILIES.items() if name.startswith(start)), None)
    return name if provider is None else f"{provider}:{name}"


@contextmanager
def at(place: str | None, key: str) -> Iterator[None]:
    """What is wrong with a setting is told with the place where it was set."""
    try:
        yield
    except (PolicyError, ValueError, ImportError) as error:
        where = f"{place}: {key}: " if place else f"{key}: "
        raise PolicyError(f"{where}{error}") from error


def drop_in_arguments(
    middleware: Callable[..., Any], policy: Policy, place: Callable[[str], str | None]
) -> dict[str, Any]:
    """The arguments of LangChain's class, or our drop-in for it, that mean this policy.

    Raises ``PolicyError`` for a setting that it has no argument for, with the place where that was set.
    """
    known = inspect.signature(middleware).parameters
    arguments: dict[str, Any] = {}
    for name in Policy.model_fields:
        if name in DECIDES or name not in policy.model_fields_set:
            continue
        if name in known:
            arguments[name] = getattr(policy, name)
        elif getattr(policy, name) != Policy.model_fields[name].get_default():
            where = place(name)
            raise PolicyError(
                f"{f'{where}: ' if where else ''}{name}: LangChain's SummarizationMiddleware has nothing like it, so "
                "summarization_middleware() cannot honor it: use compaction_middleware(), or leave it out"
            )
    summary = policy.summary
    trigger = [{size.unit: size.value for size in clause.sizes} for clause in policy.trigger]
    prompt = {} if summary.prompt is None else {"summary_prompt": to_format(summary.prompt)}
    return {
        "trigger": trigger,
        "keep": (policy.keep.unit, policy.keep.value) if policy.keep else DEFAULT_KEEP,
        "trim_tokens_to_summarize": summary.input_tokens,
        "summary": summary,
        "instructions": summary.instructions,
        "evidence": policy.evidence,
        **prompt,
        **arguments,
    }
