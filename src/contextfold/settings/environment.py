"""Settings from environment variables, for services that are configured that way.

What belongs here: the names, how their texts are read, and what each means. What does not: which source wins
(``settings``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextfold.errors import PolicyError, shown
from contextfold.settings.summarization import Layer

ENABLED = "DYNAMIC_SUMMARY_ENABLED"
MESSAGE_LIMIT = "SUMMARY_MESSAGE_LIMIT"
MAX_CONTEXT_TOKENS = "SUMMARY_MAX_CONTEXT_TOKENS"
KEEP_LAST_N = "SUMMARY_KEEP_LAST_N"
TARGET_TOKENS = "SUMMARY_TARGET_TOKENS"
BISECT_ENABLED = "SUMMARY_BISECT_ENABLED"
BISECT_MAX_DEPTH = "SUMMARY_BISECT_MAX_DEPTH"
BISECT_MIN_MESSAGES = "SUMMARY_BISECT_MIN_MESSAGES"
RETRY_ON_OVERFLOW = "SUMMARY_RETRY_ON_CONTEXT_OVERFLOW"
MERGE_TARGET_TOKENS = "SUMMARY_MERGE_TARGET_TOKENS"

_SETS = {
    ENABLED: "enabled",
    MESSAGE_LIMIT: "trigger",
    MAX_CONTEXT_TOKENS: "trigger",
    KEEP_LAST_N: "keep",
    TARGET_TOKENS: "summary.max_tokens",
    BISECT_ENABLED: "summary.bisect",
    BISECT_MAX_DEPTH: "summary.max_depth",
    BISECT_MIN_MESSAGES: "summary.min_messages",
    RETRY_ON_OVERFLOW: "resend_after_overflow",
    MERGE_TARGET_TOKENS: "summary.merge_max_tokens",
}
"""Variable -> the setting that it decides."""

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def read(environ: Mapping[str, str]) -> Layer:
    """What the variables set. An empty value counts as not set.

    ``SUMMARY_MESSAGE_LIMIT`` and ``SUMMARY_MAX_CONTEXT_TOKENS`` trigger on their own, each for itself; where one of
    them is set, they replace a file's trigger as a whole. Raises ``PolicyError`` that names variable and value.
    """
    given = {name: environ[name].strip() for name in _SETS if environ.get(name, "").strip()}
    policy: dict[str, Any] = {}
    trigger: list[tuple[str, int]] = []
    if (tokens := _whole(given, MAX_CONTEXT_TOKENS)) is not None:
        trigger.append(("tokens", tokens))
    if (messages := _whole(given, MESSAGE_LIMIT)) is not None:
        trigger.append(("messages", messages))
    if trigger:
        policy["trigger"] = trigger
    if (keep := _whole(given, KEEP_LAST_N)) is not None:
        policy["keep"] = ("messages", keep)
    if (resend := _flag(given, RETRY_ON_OVERFLOW)) is not None:
        policy["resend_after_overflow"] = resend
    if summary := _summary(given):
        policy["summary"] = summary
    return Layer(
        policy=policy,
        sources=_sources(given),
        enabled=_flag(given, ENABLED),
    )


def _sources(given: Mapping[str, str]) -> dict[str, str]:
    """Setting -> the variable that decides it. Bisection that is on is the default, and leaves its depth to others."""
    sources = {_SETS[name]: name for name in given if name != BISECT_ENABLED}
    if _flag(given, BISECT_ENABLED) is False:
        sources |= {"summary.bisect": BISECT_ENABLED, "summary.max_depth": BISECT_ENABLED}
    return sources


def _summary(given: Mapping[str, str]) -> dict[str, int | bool]:
    """Fields of ``SummaryOptions``. Without bisection a request that overflows is a failed summary."""
    bisect = _flag(given, BISECT_ENABLED)
    depth = 0 if bisect is False else _whole(given, BISECT_MAX_DEPTH, smallest=0)
    fields = {
        "max_tokens": _whole(given, TARGET_TOKENS),
        "merge_max_tokens": _whole(given, MERGE_TARGET_TOKENS),
        "bisect": bisect,
        "max_depth": depth,
        "min_messages": _whole(given, BISECT_MIN_MESSAGES),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _whole(given: Mapping[str, str], name: str, *, smallest: int = 1) -> int | None:
    if name not in given:
        return None
    try:
        value = int(given[name].replace("_", ""))
    except ValueError:
        value = smallest - 1
    if value < smallest:
        raise PolicyError(f"{name} is {shown(given[name])}: it must be a whole number of at least {smallest}")
    return value


def _flag(given: Mapping[str, str], name: str) -> bool | None:
    if name not in given:
        return None
    value = given[name].lower()
    if value not in _YES + _NO:
        raise PolicyError(f"{name} is {shown(given[name])}: it must be one of {', '.join(_YES + _NO)}")
    return value in _YES
