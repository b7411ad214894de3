"""Summaries of the drop-in for threads that do not show them: the call failed, or the caller gives all messages again.

What belongs here: a pass that is paid for, as long as this process knows it, and the update that shows it beside an
answer. What does not: making it (``folding``).

Beside an answer the state takes what other middleware says as well: one outside may have changed the answer, and one
inside may add messages. So an update there names the messages that leave, and touches nothing behind them. Where that
cannot be said, ``before_model`` of the next call writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.messages import AnyMessage, RemoveMessage

from contextfold.integrations.bounded import Bounded
from contextfold.integrations.known_lists import left_of
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.evicted import KNOWN, is_same
from contextfold.integrations.langchain.threads import ThreadKey, thread_key


class PaidFolds:
    """What threads were folded to; and which ones the summarizer was asked for in vain, until ``before_model`` runs
    again. Safe for concurrent use; a copy begins with nothing.
    """

    def __init__(self) -> None:
        self._made: Bounded[tuple[ThreadKey, list[AnyMessage], list[AnyMessage]]] = Bounded(KNOWN)
        self._failed: Bounded[list[AnyMessage]] = Bounded(KNOWN)

    def keep(self, messages: Sequence[AnyMessage], folded: list[AnyMessage] | None) -> None:
        """These messages were folded, at a price."""
        if folded:
            key = thread_key(messages)
            self._made.put(key, (key, list(messages), folded))

    def keep_failure(self, messages: Sequence[AnyMessage]) -> None:
        """No summary of these messages could be had."""
        self._failed.put(thread_key(messages), list(messages))

    def forget_failure(self, messages: Sequence[AnyMessage]) -> None:
        """Another call of the model begins, and may ask again."""
        self._failed.drop(thread_key(messages))

    def has_failed(self, messages: Sequence[AnyMessage]) -> bool:
        """Whether no summary of these messages, perhaps with fewer behind them, could be had for this call."""
        failed = self._failed.get(thread_key(messages))
        return failed is not None and len(failed) <= len(messages) and all(map(is_same, failed, messages))

    def instead_of(self, messages: Sequence[AnyMessage]) -> list[AnyMessage] | None:
        """A thread that begins as one that was folded, with the summary; None where none did. It is known by what left,
        which is all that its summary tells: what stays may say something else, as a reminder does.
        """
        key = thread_key(messages)
        for own, before, folded in self._made.all():
            stays = {id(message) for message in folded}
            both = list(zip(before, messages, strict=False))
            is_it = all(id(one) in stays or says_the_same(one, other) for one, other in both)
            if is_it and len(before) <= len(messages) and own[:2] == key[:2]:
                return _folded_now(folded, before, messages)
        # A client that keeps a window of its own has dropped the oldest: nothing else tells of those but the summary.
        alike = [(before, (before, folded)) for own, before, folded in self._made.all() if own[:2] == key[:2]]
        if (found := left_of(alike, messages, FORMAT)) is None:
            return None
        (before, folded), gone = found
        left = {id(message) for message in before[gone.start : gone.stop]}
        there = [message for message in folded if id(message) not in left]
        return _folded_now(there, [*before[: gone.start], *before[gone.stop :]], messages)


def _folded_now(
    folded: Sequence[AnyMessage], before: Sequence[AnyMessage], messages: Sequence[AnyMessage]
) -> list[AnyMessage]:
    """What messages were folded to, with what they are now, and what has come behind them since."""
    now = {id(one): other for one, other in zip(before, messages, strict=False)}
    return [*(now.get(id(one), one) for one in folded), *messages[len(before) :]]


def says_the_same(known: AnyMessage, message: AnyMessage) -> bool:
    """Whether a message is the known one, as far as LangGraph leaves it: it draws ids for what a caller gives as
    mappings, and others at each run.
    """
    if known.id != message.id and _is_drawn(known) and _is_drawn(message):
        message = message.model_copy(update={"id": known.id})
    return is_same(known, message)


def _is_drawn(message: AnyMessage) -> bool:
    try:
        return UUID(message.id or "").version == 4
    except ValueError:
        return False


def in_place(messages: Sequence[AnyMessage], folded: Sequence[AnyMessage]) -> list[Any] | None:
    """The update that makes these messages the folded ones, whatever stands behind them: each new one takes the place
    of one that leaves. None where the order does not allow that.
    """
    there, stays = {id(message) for message in messages}, {id(message) for message in folded}
    made = [message for message in folded if id(message) not in there]
    left = [message for message in messages if id(message) not in stays]
    # The last ones that leave first: middleware inside that takes messages out beside the answer takes old ones, and
    # what has no place any more would stand behind the answer.
    for places in (left[max(0, len(left) - len(made)) :], left[: len(made)]):
        placed = dict(zip(map(id, places), made, strict=False))
        there_then = (
            placed.get(id(message), message) for message in messages if id(message) in stays or id(message) in placed
        )
        if [id(message) for message in there_then] == [id(message) for message in folded]:
            break
    else:
        return None
    new = [one.model_copy(update={"id": old.id}) for one, old in zip(made, places, strict=True)]
    gone = [message for message in left if id(message) not in placed]
    # A message that is not there any more cannot be removed: the run would end. So each is there first.
    return [*new, *gone, *(RemoveMessage(id=str(message.id)) for message in gone)]
