"""An error that raises when it is shown: callers and frameworks may raise one, and only kinds of ours leave.

An exception's text is its own code: of a class that formats a body which is gone, or of one that holds an odd object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contextfold import Compactor, Policy
from contextfold.batch import CompactBatch
from contextfold.errors import ContextfoldError, InputError
from contextfold.integrations.given import reading
from contextfold.observe import Event


class Unshowable(Exception):
    """One whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def refuse(*_: Any, **__: Any) -> Any:
    raise Unshowable


class Odd(dict[str, Any]):
    """A message that raises such an error at every look."""

    __getitem__ = get = items = keys = values = __iter__ = __contains__ = refuse  # type: ignore[assignment]


class Archive:
    """An archive that takes nothing."""

    address = "memory"
    append = refuse


class Windows:
    """A store of learned windows that is out of order."""

    load_window = save_window = refuse


class Tool:
    """A declaration that cannot be looked at."""

    def __getattr__(self, name: str) -> Any:
        raise Unshowable


TALK: list[Any] = [
    {"role": "assistant" if n % 2 else "user", "content": f"step {n} went as planned. " * 60} for n in range(41)
]
ROOMY = 30_000
"""Tokens: a window in which the conversation fits; a pass is asked for."""


def test_what_fails_beside_a_pass_is_told_and_the_conversation_goes_on() -> None:
    seen: list[Event] = []
    failing = Compactor(window=ROOMY, summarizer=refuse, windows=Windows(), on_event=seen.append)
    failing.compact(TALK, force=True)
    Compactor(window=ROOMY, on_event=seen.append).compact(TALK, force=True, archive=Archive())
    told = [event.name for event in seen if "Unshowable" in event.message]
    assert told == ["window_store_failed", "summary_failed", "archive_failed"]


@pytest.mark.parametrize(
    "compact",
    [
        lambda: Compactor(window=3_000).compact(TALK, archive=Archive()),
        lambda: Compactor(window=3_000).compact([*TALK, Odd()]),
        lambda: Compactor(window=3_000).compact(TALK, tools=[Tool()]),
        lambda: Compactor(window=3_000, policy=Policy(on_failure="raise"), summarizer=refuse).compact(TALK),
        lambda: Compactor(window=3_000).call(TALK, refuse),
        lambda: CompactBatch(window=3_000)(Odd()),
    ],
    ids=["archive", "message", "tool", "summarizer", "request", "batch"],
)
def test_what_cannot_go_on_raises_an_error_of_ours_or_the_callers_own(compact: Callable[[], Any]) -> None:
    with pytest.raises((ContextfoldError, Unshowable)):
        compact()


def test_a_face_that_looks_at_an_object_refuses_it_as_ours() -> None:
    with pytest.raises(InputError, match="Unshowable"), reading("the request"):
        raise Unshowable


def test_a_row_of_a_batch_tells_it() -> None:
    (row,) = CompactBatch(window=3_000)([{"messages": [*TALK, Odd()]}])
    assert row["error_type"]
    assert "Unshowable" in row["error"]
