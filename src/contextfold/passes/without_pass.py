"""Records that are made without a pass, after a refusal: the older half dropped, an oversized item clipped.

What belongs here: making such a record out of the one in force, as pure functions. What does not: when (``recovery``),
and passes (``decide``, ``perform``). No model is asked, and every drop is in the ledger with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from contextfold.conversation import pins
from contextfold.conversation.groups import Group
from contextfold.conversation.ledger import Fate
from contextfold.messages import Media, Part, Reasoning, Text, ToolCall, ToolResult
from contextfold.passes.fates import PASSED
from contextfold.passes.question import WITH_THINKING, Question
from contextfold.record.compaction import Compaction, Edit, FateRun, SummaryRecord, reduce, summary_message
from contextfold.record.view import build
from contextfold.tiers.reasoning import ReasoningRemoved

Revise = Callable[[Question], Compaction | None]

HALVED = "history limit halved after an overflow"


def halved(question: Question) -> Compaction | None:
    """The last resort: the older half of what may leave the view is dropped; None when nothing may leave.

    Half of the tokens, in whole groups, and half of the evidence beside the summary. Instructions, the first and the
    newest user message, pins, pending calls and the newest group stay.
    """
    dropped = _older_half(question)
    summary = _with_half_the_evidence(question)
    if not dropped and summary is _summary(question):
        return None
    return _revised(question, "overflow: history limit halved", dropped=dropped, summary=summary)


def clipped(question: Question, characters: int | None) -> Compaction | None:
    """Items over a provider's cap on one field are clipped below it; None when none can be.

    ``characters``: the cap on one string, or the bytes of one medium. None: not known; then the largest item of the
    view gives way to half of itself. What must stay word for word is not clipped.
    """
    items = sorted(_items(question), key=lambda item: -item[0])
    if characters is None:
        characters = items[0][0] // 2 if items else 0
    edits = [_clip(question, index, number, characters) for size, index, number in items if size > characters]
    return _revised(question, "overflow: item_too_long", edits=edits) if edits else None


def without_thinking(question: Question, leaves: Callable[[int], bool] = lambda index: True) -> Compaction | None:
    """After a refusal of thinking or ciphertext that was made elsewhere: a record that leaves all of it out, and shows
    again what a provider's own compaction stood for. None where nothing of the kind is in the view.

    ``leaves``: of which messages a provider's own compaction is left out. Another model than the one that wrote it gets
    the same before it is asked, but for one whose originals are not there: it stays until it is refused.
    """
    messages, base = question.messages, question.record
    gone, _ = question.out_of_view
    started = base.thinking_from if base else 0
    native, shown = _natives(question, leaves)
    # An answer may begin with it, and goes on behind it: what else the message says stays.
    alone = {
        n
        for n, _ in native
        if all(isinstance(p, Reasoning) or (n, number) in native for number, p in enumerate(messages[n].parts))
    }
    reasoning = {
        (n, number)
        for n in range(len(messages))
        if n not in gone
        for number, part in enumerate(messages[n].parts)
        # bound thinking leaves by `thinking_from`, without an edit of its own
        if isinstance(part, Reasoning) and not part.is_bound
    }
    if (
        not reasoning
        and not native
        and not any(m.is_bound for n, m in enumerate(messages) if n >= started and n not in gone)
    ):
        return None
    return _revised(
        question,
        "malformed_history: thinking",
        dropped=sorted(alone),
        edits=[
            Edit(index=n, part=number, tier=ReasoningRemoved.name, limit=0)
            for n, number in sorted(reasoning | native)
            if n not in alone
        ],
        because="the provider's own compaction item cannot be read any more",
        tier=ReasoningRemoved.name,
        thinking_from=len(messages),
        shown=shown,
    )


def _natives(question: Question, leaves: Callable[[int], bool]) -> tuple[set[tuple[int, int]], list[int]]:
    """Message and part of each of a provider's own compactions that leave the view, and the messages that they stood
    for.
    """
    base = question.record
    gone, removed = question.out_of_view

    def leaving() -> set[tuple[int, int]]:
        return {place for place in pins.natives(question.messages, gone, removed) if leaves(place[0])}

    passed = base.fates if base and leaving() else ()
    shown = [n for run in passed if run.reason == PASSED[1] for n in range(run.start, run.stop)]
    gone = gone.difference(shown)  # among what is back may be an earlier one
    return leaving(), shown


def with_thinking(question: Question) -> Compaction | None:
    """After a refusal because thinking is missing: a record that shows it again. None where none was left out."""
    base = question.record
    _, removed = question.out_of_view
    hidden = {(n, part) for n, part in removed if isinstance(question.messages[n].parts[part], Reasoning)}
    if base is None or not (base.thinking_from or hidden):
        return None
    others = {edit.index for edit in base.edits if (edit.index, edit.part) not in hidden}
    whole = {n for n, _ in hidden} - others
    return _revised(question, WITH_THINKING, thinking_from=0, shown=sorted(whole), undone=hidden)


# ---- what leaves ----


def _older_half(question: Question) -> list[int]:
    groups = list(_droppable(question))
    sizes = question.sizes
    total = sum(sizes[index] for group in groups for index in group)
    dropped: list[int] = []
    taken = 0
    for group in groups:
        if taken * 2 >= total:
            break
        dropped += group
        taken += sum(sizes[index] for index in group)
    return dropped


def _droppable(question: Question) -> Iterator[list[int]]:
    """The indices of whole groups that may leave, oldest first."""
    held, (gone, _) = question.held, question.out_of_view
    groups = sorted(question.grouping.groups, key=lambda group: group.last)
    newest = next((group for group in reversed(groups) if _says_something(question, group)), None)
    for group in groups:
        left = [index for index in group.indices if index not in gone]
        if left and group is not newest and held.keys().isdisjoint(left):
            yield left


def _says_something(question: Question, group: Group) -> bool:
    return any(question.history.messages[index].role == "assistant" for index in group.indices)


def _summary(question: Question) -> SummaryRecord | None:
    return question.record.summary if question.record else None


def _with_half_the_evidence(question: Question) -> SummaryRecord | None:
    summary = _summary(question)
    if summary is None or not summary.evidence:
        return summary
    lines = summary.evidence.splitlines()
    shorter = summary.model_copy(update={"evidence": "\n".join(lines[: len(lines) // 2])})
    return shorter.model_copy(update={"tokens": question.counter.message(summary_message(shorter))})


# ---- what is clipped ----


def _items(question: Question) -> Iterator[tuple[int, int, int]]:
    """(characters or bytes, message, part) of what may be clipped, as it is in the view."""
    edits: dict[tuple[int, int], list[Edit]] = {}
    for edit in question.record.edits if question.record else ():
        edits.setdefault((edit.index, edit.part), []).append(edit.model_copy(update={"part": 0}))
    history = question.history
    held, (gone, _) = question.held, question.out_of_view
    running = pins.about_to_run(history.messages, (n for n, why in held.items() if why == pins.PENDING))
    for index, message in enumerate(history.messages):
        if index not in gone and held.get(index, pins.PENDING) == pins.PENDING:
            for number, part in enumerate(message.parts):
                shown: tuple[Part, ...] = (part,)
                if earlier := edits.get((index, number)):
                    shown = reduce(message.with_parts(shown), earlier).parts
                size = max(map(_length, shown), default=0)
                if size and (index not in running or isinstance(part, ToolResult)):
                    yield size, index, number


def _length(part: Part) -> int:
    """Characters of the longest string in a part, or bytes of a medium; 0 for what no tier clips."""
    match part:
        case Text():
            return len(part.text)
        case ToolCall():
            return len(part.arguments)
        case ToolResult():
            return max((_length(inner) for inner in part.content), default=0)
        case Media():
            # base64: four characters for three bytes
            return len(part.data or "") * 3 // 4
    return 0


def _clip(question: Question, index: int, number: int, characters: int) -> Edit:
    """Media become references; of a text, as many tokens stay as its characters allow."""
    part = question.history.messages[index].parts[number]
    if isinstance(part, Media) or _is_media_result(part):
        return Edit(index=index, part=number, tier="media", limit=0)
    tokens = question.counter.part(part)
    # A tenth less, for the marker.
    return Edit(index=index, part=number, tier="oversized", limit=math.floor(tokens * characters / _length(part) * 0.9))


def _is_media_result(part: Part) -> bool:
    """Whether the largest thing in a tool result is a medium."""
    return isinstance(part, ToolResult) and isinstance(max(part.content, key=_length, default=None), Media)


# ---- the record ----


def _revised(
    question: Question,
    trigger: str,
    *,
    dropped: Sequence[int] = (),
    edits: Sequence[Edit] = (),
    summary: SummaryRecord | None = None,
    because: str = HALVED,
    tier: str = "oversized",
    thinking_from: int | None = None,
    shown: Sequence[int] = (),
    undone: Container[tuple[int, int]] = (),
) -> Compaction:
    """The record in force with more dropped, more shortened and, if given, another summary. ``undone``: parts
    whose edits are taken back.
    """
    base = question.record or _empty(question)
    touched = {edit.index for edit in edits}
    replaced = {(edit.index, edit.part) for edit in edits}
    kept = [
        edit
        for edit in base.edits
        if edit.index not in set(dropped)
        and (edit.index, edit.part) not in replaced
        and (edit.index, edit.part) not in undone
    ]
    covers = max(base.covers, 1 + max([*dropped, *touched], default=-1))
    changes: dict[int, tuple[Fate, str]] = dict.fromkeys(shown, ("kept", "recent"))
    changes |= dict.fromkeys(dropped, ("dropped", because))
    changes |= dict.fromkeys(touched, ("shortened", tier))
    record = base.model_copy(
        update={
            "parent": question.record.known_as if question.record else None,
            "origin": "",
            "covers": covers,
            "fates": _fates(question, base, covers, changes),
            "edits": tuple(sorted([*kept, *edits], key=lambda edit: (edit.index, edit.part))),
            "summary": summary or base.summary,
            "thinking_from": question.thinking_from if thinking_from is None else thinking_from,
            "trigger": trigger,
            "window": question.limits.window,
            "target": question.limits.target,
            "tokens_before": question.view_tokens,
        }
    ).fitted(question.history)
    tokens = build(question.history, record).tokens + sum(question.overhead.values())
    # `model_copy` checks nothing, and would take the cached id of the old record along.
    return Compaction.model_validate(record.model_dump() | {"tokens_after": tokens})


def _empty(question: Question) -> Compaction:
    return Compaction(
        format=question.history.format.name,
        covers=0,
        fingerprint=question.history.fingerprint(0),
        fates=(),
        alternate=question.alternates,
    )


def _fates(
    question: Question, base: Compaction, covers: int, changes: Mapping[int, tuple[Fate, str]]
) -> tuple[FateRun, ...]:
    held = question.held
    fates: list[tuple[Fate, str]] = [("pinned", held[n]) if n in held else ("kept", "recent") for n in range(covers)]
    for run in base.fates:
        fates[run.start : run.stop] = [(run.fate, run.reason)] * (run.stop - run.start)
    for index, fate in changes.items():
        fates[index] = fate
    return FateRun.all_of(fates)
