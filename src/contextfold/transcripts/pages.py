"""Lists of messages as OpenAI's API hands them out: items of a conversation, those of a response's input, messages of a
thread. They come newest first unless another order was asked for, and the answer does not say which one was.

What belongs here: in which order such a list is, and what is said of its other pages. What does not: what its entries
mean (``formats``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextfold.transcripts.document import objects_in

THREAD = "thread.message"
_OURS = ("system", "developer", "user")
_NEWEST_FIRST = (False, True)
"""Whether we said the first and the last message."""


def is_page(value: Mapping[str, Any]) -> bool:
    """Whether this is an answer of the API that holds a list, or one page of it."""
    return value.get("object") == "list" and isinstance(value.get("data"), list)


def in_order(entries: list[Any], *, is_page: bool = False) -> list[Any]:
    """The entries, oldest first. Outside of a page, only those that plainly stand otherwise are turned round."""
    objects = objects_in(entries)
    is_thread = len(objects) == len(entries) and all(one.get("object") == THREAD for one in objects)
    roles = [one["role"] for one in objects if "role" in one]
    ends = (roles[0] in _OURS, roles[-1] in _OURS) if roles else (True, False)
    is_newest_first = _by_time(objects) if is_thread else None
    if is_newest_first is None:
        is_newest_first = _by_calls(objects)
        if not (is_page or is_thread):
            is_newest_first = is_newest_first and ends == _NEWEST_FIRST
        elif is_newest_first is None:
            # Where both ends are ours, the API's own order decides; answers of Chat Completions have another one. What
            # an application says before the user's words begins the list.
            may_be = all(ends) and (roles[0] == "user" or roles[-1] != "user") and all("type" in one for one in objects)
            is_newest_first = ends == _NEWEST_FIRST or may_be
    return entries[::-1] if is_newest_first else entries


def missing(page: Mapping[str, Any]) -> tuple[str, ...]:
    """What is said of the messages on other pages."""
    if page.get("has_more") is not True:
        return ()
    return ("a page of a list that has more (has_more): the messages on its other pages are missing: list all of them",)


def _by_time(entries: Sequence[Any]) -> bool | None:
    made = [one["created_at"] for one in entries if isinstance(one.get("created_at"), int)]
    return bool(made[0] > made[-1]) if len(made) == len(entries) > 0 and made[0] != made[-1] else None


def _by_calls(entries: Sequence[Any]) -> bool | None:
    """By which comes first, calls or their results; None where there are none."""
    begun: set[str] = set()
    found: set[bool] = set()
    for one in entries:
        call = one.get("call_id")
        if isinstance(call, str) and call in begun:
            found.add(str(one.get("type")).endswith("_call"))
        elif isinstance(call, str):
            begun.add(call)
    return found == {True} if found else None
