"""Mending what a provider would refuse in a list of messages that is about to be sent.

``pairing`` is for every provider, ``rules`` for what only some refuse, and ``appended`` tells when neither is needed.
A list that grows is mended the same way each time, so a view only grows with it. Hence what becomes of a message
depends on what stands before it, but for ``answer_pending`` and ``bare_end``: they are for a list that is sent at once.

What belongs here: these, as pure functions over any list of messages. Finding the faults is ``groups``.
"""

from contextfold.conversation.repair.appended import Seen, is_clean
from contextfold.conversation.repair.pairing import answer_pending, awaited, repair
from contextfold.conversation.repair.rules import bare_end, conform, left_out, may_stand_between

__all__ = [
    "Seen",
    "answer_pending",
    "awaited",
    "bare_end",
    "conform",
    "is_clean",
    "left_out",
    "may_stand_between",
    "repair",
]
