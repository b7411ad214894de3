"""What becomes of each message in a pass, as the ledger tells it.

What belongs here: fates and their reasons. What does not: deciding what stays (``decide``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from contextfold.conversation.ledger import Fate
from contextfold.conversation.pins import SAID_AGAIN
from contextfold.evidence.lines import is_sampled
from contextfold.messages import Message, Opaque, Reasoning
from contextfold.record.compaction import Edit, FateRun

PASSED: tuple[Fate, str] = ("dropped", "the provider's own compaction item stands for it")


def fates(
    messages: Sequence[Message],
    *,
    pinned: Mapping[int, str],
    edits: Sequence[Edit],
    evicted: Collection[int],
    passed: Collection[int],
    earlier: Sequence[FateRun],
) -> tuple[tuple[Fate, str], ...]:
    """The fate of each message that a record covers, and why.

    ``pinned``: why messages must stay. ``edits``: what is shortened. ``evicted``: what leaves; for what is ``passed``
    of that a provider's own compaction stands. ``earlier``: the fates under the record before.
    """
    # Each step overrides the ones before it; what left in an earlier pass keeps the reason it left for.
    found: list[tuple[Fate, str]] = [("kept", "recent")] * len(messages)
    for index, reason in pinned.items():
        if index < len(messages):
            found[index] = ("pinned", reason)
    tiers: dict[int, list[str]] = {}
    for edit in edits:
        tiers.setdefault(edit.index, []).append(edit.tier)
    for index, names in tiers.items():
        found[index] = ("shortened", ", ".join(dict.fromkeys(names)))
    for index in evicted:
        found[index] = PASSED if index in passed else evicted_fate(messages[index])
    for run in earlier:
        if run.fate in ("summarized", "dropped"):
            found[run.start : run.stop] = [(run.fate, run.reason)] * (run.stop - run.start)
    return tuple(found)


def evicted_fate(message: Message) -> tuple[Fate, str]:
    """Where a message goes that leaves the view: into the summary, unless there is nothing in it to summarize."""
    if message.is_empty:
        return "dropped", "empty message"
    if message.is_instruction:  # no summarizer reads it
        return "dropped", SAID_AGAIN
    if all(isinstance(part, Reasoning) for part in message.parts):
        return "dropped", "reasoning is never summarized"
    if all(isinstance(part, Reasoning | Opaque) and not _readable(part) for part in message.parts):
        return "dropped", "nothing in it can be read"
    if any(is_sampled(result.text) for result in message.tool_results):
        return "summarized", "covered by the summary; of a very long output a sample was read for evidence"
    return "summarized", "covered by the summary"


def _readable(part: Reasoning | Opaque) -> bool:
    return isinstance(part, Opaque) and bool(part.text.strip())
