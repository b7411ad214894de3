"""Lists of messages as OpenAI's API hands them out: items of a conversation, those of a response's input, messages of a
thread. They come newest first unless another order was asked for, and the answer does not say which one was.

What belongs here: in which order such a list is, and what is said of its other pages. What does not: what its entries
mean (``formats``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

THREAD = "thread.message"
_OURS, _THEIRS = ("system", "developer", "user"), "assistant"


def is_page(value: Mapping[str, Any]) -> bool:
    """Whether this is an answer of the API that holds a list, or one page of it."""
    return value.get("object") == "list" and isinstance(value.get("data"), list)


def in_order(entries: list[Any], *, is_page: bool = False) -> list[Any]:
    """The entries, oldest first. Outside of a page, only those that say when they were made may stand otherwise."""
    is_thread = all(isinstance(one, dict) and one.get("object") == THREAD for one in entries)
    return entries[::-1] if (is_page or is_thread) and _is_newest_first(entries, is_thread) else entries


def missing(page: Mapping[str, Any]) -> tuple[str, ...]:
    """What is said of the messages on other pages."""
    if page.get("has_more") is not True:
        return ()
    return ("a page of a list that has more (has_more): the messages on its other pages are missing: list all of them",)


def _is_newest_first(entries: Sequence[Any], is_thread: bool) -> bool:
    """By when they were made, by which of a call and its result comes first, or by who begins."""
    made = [one["created_at"] for one in entries if isinstance(one, dict) and isinstance(one.get("created_at"), int)]
    if is_thread and len(made) == len(entries) and made[0] != made[-1]:
        return bool(made[0] > made[-1])
    begun: set[Any] = set()
    for one in entries:
        call = one.get("call_id") if isinstance(one, dict) else None
        if isinstance(call, str) and call in begun:
            return str(one.get("type")).endswith("_call")
        begun.add(call if isinstance(call, str) else None)
    roles = [one.get("role") for one in entries if isinstance(one, dict) and "role" in one]
    return bool(roles) and roles[0] == _THEIRS and roles[-1] in _OURS
