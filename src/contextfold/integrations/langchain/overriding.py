"""Private methods of LangChain's class that a subclass of the drop-in overrides: they decide here as they do there.

DeerFlow and others subclass LangChain's class and override what it calls. What belongs here: which of these methods
decide something in a pass of ours, and how.

    _should_summarize                       whether a summary is due
    _determine_cutoff_index                 where the part that stays begins; also by the methods that it asks
    _partition_messages                     older messages that stay as well
    _create_summary, _acreate_summary       who writes: gets the messages, a chunk at a time
    _build_new_messages                     the messages that carry the summary

A cut is moved so as not to part calls from their results, and a pass may keep less than a method says, so as to end
below the trigger. ``UNUSED`` has no counterpart here, because nothing is trimmed: overriding one gives a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from contextfold.conversation.groups import Grouping, group
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.folding import Folding
from contextfold.policy import Size

CUT = ("_determine_cutoff_index", "_find_safe_cutoff", "_find_safe_cutoff_point", "_find_token_based_cutoff")
PARTITION = "_partition_messages"
WRITERS = ("_create_summary", "_acreate_summary")
DUE = ("_should_summarize", "_should_summarize_based_on_reported_tokens")
BUILD = "_build_new_messages"
UNUSED = ("_trim_messages_for_summary", "_format_summary_prompt", "_overflow_retry_prompt")


def is_overridden(middleware: Any, own: type, *names: str) -> bool:
    """Whether a subclass of ``own``, or the object itself, has another method under one of these names."""
    return any(
        name in vars(middleware) or getattr(type(middleware), name, None) is not getattr(own, name, None)
        for name in names
    )


def warn_of_unused(middleware: Any, own: type) -> None:
    """Say which overridden methods decide nothing."""
    unused = [name for name in UNUSED if is_overridden(middleware, own, name)]
    if unused:
        warnings.warn(
            f"{type(middleware).__name__} overrides {', '.join(unused)}: contextfold summarizes everything that leaves "
            "and never calls them. Set `summary_prompt` or `summarizer`, or override `_create_summary`.",
            UserWarning,
            stacklevel=4,
        )


def as_overridden(
    folding: Folding, middleware: Any, own: type, messages: list[AnyMessage], *, is_async: bool
) -> Folding | None:
    """How to fold these messages, as overridden methods want it; None where they want no summary."""
    if is_overridden(middleware, own, *CUT, PARTITION):
        cutoff = middleware._determine_cutoff_index(messages)
        if cutoff <= 0:
            return None
        folding = _keeping(folding, messages, cutoff, middleware._partition_messages(messages, cutoff)[1])
    if is_overridden(middleware, own, *WRITERS):
        folding = replace(folding, reader=RunnableLambda(_writer(middleware, own, is_async)))
    if is_overridden(middleware, own, BUILD):
        folding = replace(folding, built=middleware._build_new_messages)
    return folding


def legal_cut(messages: Sequence[AnyMessage], cutoff: int) -> int:
    """The last position up to ``cutoff`` at which no call is parted from its results, wherever they stand.

    Behind results without a call, which no provider takes at the beginning. A cutoff behind the end stays as it is.
    """
    if cutoff >= len(messages):
        return cutoff
    decoded = [FORMAT.decode(message, number) for number, message in enumerate(messages)]
    grouping = group(decoded)
    position = max(position for position in grouping.cuts() if position <= max(0, cutoff))
    while position < len(messages) and _is_orphan(messages[position], position, grouping):
        position += 1
    return position


def _is_orphan(message: AnyMessage, position: int, grouping: Grouping) -> bool:
    return isinstance(message, ToolMessage) and (position, 0) not in grouping.answers


def _keeping(folding: Folding, messages: list[AnyMessage], cutoff: int, preserved: list[AnyMessage]) -> Folding:
    """With the messages from the cutoff on as what ``keep`` says, and older ones that are preserved pinned."""
    count = sum(1 for message in messages[cutoff:] if not layout.is_summary(message))
    stays = {id(message) for message in preserved}
    pinned = frozenset(str(message.id) for message in messages[:cutoff] if id(message) in stays)
    return replace(folding, keep=Size("messages", max(1, count)), pinned=pinned)


def _writer(middleware: Any, own: type, is_async: bool) -> Callable[..., Any]:
    """The method that writes: the one of this color, unless only the other one is overridden."""
    preferred, other = WRITERS if not is_async else reversed(WRITERS)
    name = preferred if is_overridden(middleware, own, preferred) else other
    method: Callable[..., Any] = getattr(middleware, name)
    return method
