"""A summary that is paid for and not in force yet: made in an earlier call or in the background, never asked for twice.

What belongs here: whether it may still come into force. What does not: making it (``perform``), and keeping it
(``calls.memory``, a store).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from contextfold.conversation.history import History
from contextfold.errors import CannotFit
from contextfold.passes.question import Question, triggered
from contextfold.record.compaction import Compaction
from contextfold.record.view import build


@dataclass(frozen=True, slots=True)
class Prepared:
    """``made``: the record. ``base``: the ``pass_id`` of the record in force when it was made; None for none."""

    made: Compaction
    base: str | None

    def still_fits(self, history: History) -> Compaction | None:
        """The record, if what it covers is unchanged: nothing but new messages came since, or a client has dropped the
        oldest.
        """
        return self.made if self.made.mismatch(history) is None else self.made.moved(history)

    def answers(self, question: Question) -> Compaction | None:
        """The record, if it does what a pass for this question would: it fits, and leaves no pass due."""
        in_force = question.record.pass_id if question.record else None
        if in_force != self.base or (made := self.still_fits(question.history)) is None:
            return None
        view = build(question.history, made)
        tokens = view.tokens + sum(question.overhead.values())
        if question.forced:
            return made if tokens <= question.limits.target else None
        if triggered(question.policy, question.limits, tokens, len(view.wire)) is None:
            return made
        after = replace(question, record=made, view_tokens=tokens, view_messages=len(view.wire))
        return made if _leaves_nothing(after) else None


def _leaves_nothing(question: Question) -> bool:
    """Whether nothing comes of the trigger that fires: what must be kept is above it, or too little could leave."""
    from contextfold.passes.decide import Nothing, decide  # only a pass needs it

    try:
        return isinstance(decide(question), Nothing)
    except CannotFit:
        return False
