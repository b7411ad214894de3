"""The messages that left a thread, as long as they are known: evidence chosen from them keeps more than evidence chosen
from what an earlier summary quotes of them.

What belongs here: which messages a summary stands for, and what was read of them. What does not: the pass
(``folding``).

A state that is rewritten holds them no longer, so they are known as long as this process lasts. Where they are not,
such as after a restart, the quoted lines of the summary compete with the new ones, as those of any summary do.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage

from contextfold.conversation.history import History
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.threads import thread_key
from contextfold.tokens import TokenCounter

KNOWN = 32
"""Threads whose messages are held."""

BACK = 32
"""Summaries of one thread that are known: its newest, and those to which a fork or another attempt may go back. Counted
for each thread: one that is summarized often takes no room from others."""

READ = 8
"""Threads of which also what was read is held: some seven times their size, for a pass that reads only what is new."""


class LeftMessages:
    """The messages that left threads, and what was read of them. Safe for concurrent use."""

    def __init__(self) -> None:
        self._left: Bounded[Bounded[tuple[AnyMessage, ...]]] = Bounded(KNOWN)
        self._read: Bounded[History] = Bounded(READ)

    def __reduce__(self) -> tuple[type[LeftMessages], tuple[()]]:
        return type(self), ()  # as the memory of any face: a copy begins with nothing

    def behind(self, messages: Sequence[AnyMessage]) -> Sequence[AnyMessage] | None:
        """What the summary among these stands for; None where that is not known."""
        key = _summary_in(messages)
        if key is None:
            return None
        for summaries in self._left.all():  # not by the thread: a branch may have become one of its own
            evicted = summaries.get(key)
            if evicted is not None:
                self._left.get(thread_key(evicted))  # it is used
                return evicted
        return None

    def put(self, messages: Sequence[AnyMessage], evicted: Sequence[AnyMessage]) -> None:
        """The summary among these messages stands for ``evicted``. The messages have ids."""
        key = _summary_in(messages)
        if key is None:
            return
        thread = thread_key(evicted)
        summaries = self._left.get(thread) or Bounded(BACK)
        summaries.put(key, tuple(evicted))
        self._left.put(thread, summaries)

    def take(self, evicted: Sequence[AnyMessage], counter: TokenCounter) -> History:
        """The history of the messages that left a thread, with what is known of those that were read before.

        It belongs to the caller, who gives it back (``give``): what learns of messages serves one pass at a time.
        """
        known = self._read.pop(thread_key(evicted))
        if known is None or known.counter is not counter:
            known = History(FORMAT, counter)
        same = 0
        # By what they say: a message that a user changed, perhaps to take a secret out of it, is read again.
        while same < min(len(known.wire), len(evicted)) and is_same(known.wire[same], evicted[same]):
            same += 1
        history = known.part(range(same))
        history.extend(evicted[same:])
        return history

    def give(self, history: History) -> None:
        """What ``take`` gave, with more behind it."""
        self._read.put(thread_key(history.wire), history)


def is_same(known: AnyMessage, message: AnyMessage) -> bool:
    """Whether it says what the known one says."""
    return known is message or known == message


def _summary_in(messages: Sequence[AnyMessage]) -> tuple[tuple[str, str], ...] | None:
    """The ids and texts of the summaries in a thread: equal texts alone may stand for other messages."""
    found = tuple((str(message.id or ""), str(message.content)) for message in messages if layout.is_summary(message))
    return found if found and all(name for name, _ in found) else None
