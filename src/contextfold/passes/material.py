"""What is carried over from messages that leave the view: material for a summarizer, the built-in prose, evidence.

What belongs here: reading the messages of a plan in the form that each of these wants. What does not: the order of the
steps (``perform``), rendering, choosing and writing themselves (``summary``, ``evidence``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain
from typing import Any

from contextfold import evidence as quoting
from contextfold.conversation import pins
from contextfold.evidence import told
from contextfold.evidence.reading import ENOUGH_WORDS
from contextfold.identifiers import names
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from contextfold.passes.decide import Plan
from contextfold.passes.joined import TIER, removed
from contextfold.passes.question import Question
from contextfold.record.compaction import Edit, reduce, summary_message
from contextfold.redaction import redact
from contextfold.summary import extractive
from contextfold.summary.chunks import Unit
from contextfold.summary.extractive_facts import SILENT, Note, rules_taken_back
from contextfold.summary.message import OPEN, Earlier, blocks, parse, summary_text
from contextfold.summary.plans import UPDATES, Task
from contextfold.summary.render import render_group
from contextfold.summary.rules import restated
from contextfold.summary.summarizer import EXTRACTIVE, Summary, SummaryStats

# Measured with planted rules: at 20 and 30 % of the characters .45 and .88 of them survive instead of .33 and .65, for
# 0.2 points of what agents need again.
FOR_RULES = 0.2
"""Share of the room for evidence that the rules of the user may take in the built-in summary. Most sessions have two or
three; a list of thirty must not push out all that they are about."""

FEW_RULES = 400
"""Tokens that rules may take in any case, as far as the room for evidence has them: where little is carried, what the
user set comes before what else was said."""

BESIDE_TEXT = 4
"""Tokens of a message besides its text, and what sizes of parts may miss of the size of the whole."""

_SHORT = 300
"""Characters. The built-in summary asks for the sizes of the same facts at each pass, and of texts that it tries."""


def material(question: Question, plan: Plan) -> tuple[str | None, list[Unit]]:
    """(the summary to update, what is new). Earlier summaries found in the history are updated, not summarized.

    What they quote competes with the new lines for the room of evidence (``evidence``); without any, prose has it.
    """
    messages, grouping = question.history.messages, question.history.grouping
    previous = [question.record.summary.text] if question.record and question.record.summary else []
    evicted, role = set(plan.evicted), question.policy.summary_role
    clean = redact if question.policy.redact else str
    units: list[Unit] = []
    known = set(question.record.edits) if question.record else set()
    for index, part in removed(messages, [edit for edit in plan.edits if edit not in known]):
        if earlier := parse(part.text):
            previous.append(earlier.prose if question.policy.evidence else earlier.text)
        elif text := clean(render_group([part])):
            units.append(Unit(text, (index,)))
    for group in grouping.groups:
        indices = tuple(n for n in group.indices if n in evicted)
        for index in indices:
            # An earlier summary is not material: read again, it would decay with each pass.
            if pins.is_summary(messages[index], role) and (earlier := parse(messages[index].text)):
                previous.append(earlier.prose if question.policy.evidence else earlier.text)
        indices = tuple(n for n in indices if not pins.is_summary(messages[n], role))
        text = clean(render_group([messages[n] for n in indices])) if indices else ""
        if text:
            units.append(Unit(text, indices))
    return clean("\n\n".join(filter(None, previous))) or None, units


def extract(question: Question, plan: Plan) -> Summary:
    """The built-in summary, made from all originals each time: it does not decay and asks no model."""
    gone = _left(question, plan)
    count, room = question.counter.text, prose_room(question, plan)
    left = max(0, most_prose(question, plan) - room) if plan.evidence_tokens else 0
    own = min(left, _for_rules(plan))
    text = extractive.summarize(
        [message for _, message, _ in gone],
        budget=room,
        count=lambda text: question.history.count(text) if len(text) <= _SHORT else count(text),
        language=question.language,
        notes=[note for _, _, note in gone],
        for_rules=own,
        plans=_plans_told(question, plan),
        tasks=_tasks_told(question, [n for n, _, _ in gone]),
        beside=_beside(question, plan, [n for n, _, _ in gone]),
    )
    stats = SummaryStats(
        input_tokens=sum(question.history.sizes[n] for n in plan.gone),
        output_tokens=count(text),
        algorithm=EXTRACTIVE,
    )
    return Summary(text, frozenset(plan.gone), stats)


def _for_rules(plan: Plan) -> int:
    return max(int(FOR_RULES * plan.evidence_tokens), FEW_RULES)


def _left(question: Question, plan: Plan, *, only_rules: bool = False) -> list[tuple[int, Message, Note]]:
    """What leaves the view, in order, as it is to be read, and what there is to say of it: of an earlier summary the
    rules that it tells, which are the user's still. ``only_rules``: of what is no user's, nothing is asked.
    """
    history, role = question.history, question.policy.summary_role
    left: list[tuple[int, Message, Note]] = []
    whole = [(n, _clean(question, n), True) for n in plan.gone]
    parts = [(n, _cleaned(question, message), False) for n, message in removed(history.messages, plan.edits)]
    earlier = [(-1, message, False) for message in _only_told(question)]
    for n, message, is_whole in sorted([*earlier, *whole, *parts], key=lambda entry: entry[0]):
        read = readable(message, role)
        if only_rules and not read.is_user_turn:
            note = SILENT
        elif is_whole:
            note = history.note(n, read)
        else:
            note = Note.of(read)
        if message.role in ("user", role) and OPEN in message.text:
            rules = [restated(rule) for block in _summaries(message) for rule in _told(block)]
            note = replace(note, rules=(*chain.from_iterable(rules), *note.rules))
        left.append((n, read, note))
    return left


def _only_told(question: Question) -> list[Message]:
    """The summary in force, where a client has dropped messages that it tells of: nothing else does."""
    record = question.record
    return [summary_message(record.summary)] if record is not None and record.summary and record.lacks else []


def _summaries(message: Message) -> Iterator[Earlier]:
    """The earlier summaries in a message's texts."""
    for part in message.parts:
        for block in blocks(part.text) if isinstance(part, Text) else ():
            if isinstance(block, Earlier):
                yield block


def _told(earlier: Earlier) -> Iterable[str]:
    """The rules of an earlier summary: quoted beside a model's prose, or in a section of the built-in one."""
    return quoting.rules_in(earlier.evidence) or extractive.constraints_in(earlier.prose)


def _rules(question: Question, plan: Plan, notes: _Notes, budget: int) -> str:
    """The user's rules under a mark, whatever a model's prose says of them; at most ``budget``.

    What it says word for word stands here, too: where this view is read back as a history, a rule is known by its mark,
    and the next model may say it otherwise or not at all.
    """
    room = max(0, min(budget, _for_rules(plan)) - BESIDE_TEXT)
    return quoting.rules_under_mark(extractive.in_words(*notes, budget=room, count=question.history.count))


_Notes = tuple[list[Note], list[tuple[int, Note]]]


def _notes_of_users(question: Question, plan: Plan) -> _Notes:
    """What there is to say of users' messages that leave the view, and of those that stay in it."""
    left = _left(question, plan, only_rules=True)
    return [note for _, _, note in left], _beside(question, plan, [n for n, _, _ in left])


def _plans_told(question: Question, plan: Plan) -> Collection[str]:
    """The tools whose newest todo list or plan is told: none where a newer one stays in the view and says it itself."""
    newest = question.newest_plan
    return () if newest is not None and newest[0] not in plan.gone else question.policy.pins.plans


def _tasks_told(question: Question, left: Sequence[int]) -> list[Task]:
    """The tasks that were written down in messages that leave the view, with their places among these."""
    places, clean = {n: place for place, n in enumerate(left)}, redact if question.policy.redact else str
    return [
        task._replace(place=places[task.place], text=clean(task.text))
        for task in question.tasks
        if task.place in places
    ]


def _old_plans(question: Question) -> dict[int, Message]:
    """Messages with todo lists or plans that a later one replaced, without these: what they call open may be done. Of
    tasks that are written down one by one, what changed them.
    """
    messages, tools, newest = question.messages, question.policy.pins.plans, question.newest_plan
    if newest is None and not question.tasks:
        return {}
    kept = newest[1] if newest else None
    replaced: set[str] = set()
    left: dict[int, Message] = {}
    for n, message in enumerate(messages):
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                is_old = part.name == UPDATES or (part.name in tools and part is not kept)
                # The other way, too: an id may come again for another call.
                (replaced.add if is_old else replaced.discard)(part.id)
            else:
                is_old = isinstance(part, ToolResult) and part.call_id in replaced
            if not is_old:
                parts.append(part)
        if len(parts) < len(message.parts):
            left[n] = replace(message, parts=tuple(parts))
    return left


def _beside(question: Question, plan: Plan, before: Sequence[int]) -> list[tuple[int, Note]]:
    """What users said that stays in the view, each with how many of the indices ``before`` come before it."""
    gone = set(plan.gone)
    apart: dict[int, list[Edit]] = {}
    for edit in plan.edits:
        if edit.tier == TIER:
            apart.setdefault(edit.index, []).append(edit)
    return [
        (
            bisect_left(before, n),
            Note.of(reduce(message, apart[n])) if n in apart else question.history.note(n, _clean(question, n)),
        )
        for n, message in enumerate(question.messages)
        if n not in gone and pins.is_person(message)
    ]


def readable(message: Message, role: str = "user") -> Message:
    """A message as the extractive summarizer should read it: an earlier summary by its content, and words that stand
    beside one without it: what it quotes was not said by the user.
    """
    if pins.is_summary(message, role) and (earlier := parse(message.text)):
        return replace(message, role="assistant", parts=tuple(Text(text) for text in earlier if text), source=None)
    if message.role in ("user", role) and OPEN in message.text:
        said = [Text(block) for part in message.parts if isinstance(part, Text) for block in _words(part.text)]
        return replace(message, parts=(*said, *(part for part in message.parts if not isinstance(part, Text))))
    return message


def _words(text: str) -> list[str]:
    return [block for block in blocks(text) if isinstance(block, str)]


def _clean(question: Question, index: int) -> Message:
    """A message as it may be quoted: by policy without secrets, which are taken out of the whole. A line or clause of
    it may hold a password and no longer say that it is one.
    """
    return question.history.said(_redacted_one, index) if question.policy.redact else question.messages[index]


def _cleaned(question: Question, message: Message) -> Message:
    return redacted(message) if question.policy.redact else message


def _redacted_one(messages: Sequence[Message], index: int) -> Message:
    return redacted(messages[index])


def for_archive(originals: Mapping[int, Message], question: Question) -> dict[int, Message]:
    """What an archive gets of originals."""
    if not question.policy.redact:
        return dict(originals)
    return {index: redacted(message) for index, message in originals.items()}


def redacted(message: Message) -> Message:
    """The message without secrets in what it says. It has no source then, since that has them."""
    return replace(message, parts=tuple(_redacted(part) for part in message.parts), source=None, edited=True)


def _redacted(part: Part) -> Part:
    if isinstance(part, ToolCall):
        return replace(part, arguments=redact(part.arguments), source=None, edited=True)
    if isinstance(part, ToolResult):
        content: Any = tuple(_redacted(inner) for inner in part.content)
        return replace(part, content=content, source=None, edited=True)
    if isinstance(part, Text | Opaque | Reasoning):
        return replace(part, text=redact(part.text), source=None)
    if isinstance(part, Media) and part.name:
        return replace(part, name=redact(part.name), source=None)
    return part


def prose_room(question: Question, plan: Plan) -> int:
    """Tokens that the prose may take: its share less the frame around it."""
    frame = question.counter.text(summary_text("", "-", language=question.language))
    return max(40, plan.prose_tokens - frame)


def most_prose(question: Question, plan: Plan) -> int:
    """Tokens that prose may have at most: all that the plan leaves, with no evidence beside it."""
    frame = question.counter.text(summary_text("-", "", language=question.language)) + BESIDE_TEXT
    return plan.target - plan.kept_tokens - frame


def evidence(question: Question, plan: Plan, prose: str, budget: int, *, with_rules: bool = False) -> str:
    """Lines of what left the view or was shortened, for the names that are not in the view otherwise.

    ``with_rules``: what the user set comes first, since the prose need not tell it.
    """
    history = question.history
    ends = list(accumulate(history.sizes))
    shortened: dict[int, list[Edit]] = {}
    for edit in plan.edits:
        shortened.setdefault(edit.index, []).append(edit)
    removed_parts = removed(history.messages, plan.edits)
    apart = [(n, _lines_of(_cleaned(question, message), question)) for n, message in removed_parts]
    old = _old_plans(question)
    found = [
        (n, _lines_of(_cleaned(question, old[n]), question) if n in old else _lines(question, n))
        for n in {*plan.gone, *shortened} - {n for n, _ in apart}
    ]
    found = sorted([*found, *apart], key=lambda entry: entry[0])
    found[:0] = [(0, _lines_of(message, question)) for message in _only_told(question)]
    quotable = [n for n, _ in found]
    candidates = [(ends[n], lines) for n, lines in found]
    dates = told.dates_of(history.messages) if question.is_talk else []
    # A bare name in the prose is no reason to leave out the line that says something of it.
    said = quoting.lines_of(Message("assistant", (Text(prose),)))
    visible = _names(line for line in said if line.words >= ENOUGH_WORDS)
    gone = set(plan.gone)
    whole = []
    for n, message in enumerate(history.messages):
        if n in shortened:
            visible |= _names(quoting.lines_of(reduce(message, shortened[n])))
        elif message.is_instruction:  # never quoted, so it has no lines
            visible.update(names(message.text))
        elif n not in gone:
            whole.append(history.block(n))
    notes = _notes_of_users(question, plan)
    rules = _rules(question, plan, notes, budget) if with_rules else ""
    fallen = rules_taken_back(*notes)
    lines = quoting.select(
        candidates,
        budget=budget - (history.counter.text(f"{rules}\n") if rules else 0),
        already=visible,
        count=history.counter.text,
        now=ends[-1],
        beside=whole,
        sizes=history.line_sizes,
        words=history.words,
        shown=f"{prose}\n{rules}" if rules else prose,
        taken_back=fallen.withdrawn,
        replaced=fallen.replaced,
        is_talk=question.is_talk,
        dates=[dates[n] for n in quotable] if dates else (),
    )
    lines = "\n".join(filter(None, (rules, lines)))
    return redact(lines) if question.policy.redact else lines


def _lines(question: Question, index: int) -> quoting.Block:
    message = question.messages[index]
    is_plain = message.role not in ("user", question.policy.summary_role) or OPEN not in message.text
    if is_plain:
        clean = partial(_clean, question) if question.policy.redact else None
        return question.history.block(index, clean)
    return _lines_of(_clean(question, index), question)


def _lines_of(message: Message, question: Question) -> quoting.Block:
    """The lines of a message; of an earlier summary those that it quotes, and its prose where no model updates it."""
    history, role = question.history, question.policy.summary_role
    if pins.is_summary(message, role) and (earlier := parse(message.text)):
        prose = _lines_of_prose(earlier.prose) if question.summary_is_free else ()
        return quoting.Block((*prose, *quoting.read(earlier.evidence)), history.words)
    lines = [line for part in message.parts for line in _lines_beside_a_summary(message, part)]
    return quoting.Block(tuple(lines), history.words)


def _lines_of_prose(prose: str) -> tuple[quoting.Line, ...]:
    """What an earlier summary says, without its headings and the line that tells how many messages it stood for."""
    scope, blank, rest = prose.partition("\n\n")
    said = rest if blank and scope[:1].isdigit() else prose
    lines = (line for line in said.splitlines() if not line.startswith("## "))
    return tuple(quoting.lines_of(Message("assistant", (Text("\n".join(lines)),))))


def _lines_beside_a_summary(message: Message, part: Part) -> Iterator[quoting.Line]:
    """The lines of a part of a message that a summary was joined to: its words are the speaker's, the rest is not."""
    # A summary that was joined to words of a user quotes others: only the rest was said by this speaker.
    for block in blocks(part.text) if isinstance(part, Text) else ():
        if isinstance(block, str):
            yield from quoting.lines_of(replace(message, parts=(Text(block),)))
        else:
            yield from _lines_of_prose(block.prose)
            yield from quoting.read(block.evidence)
    if not isinstance(part, Text):
        yield from quoting.lines_of(replace(message, parts=(part,)))


def _names(lines: Iterable[quoting.Line]) -> set[str]:
    return {name for line in lines for name in line.names}
