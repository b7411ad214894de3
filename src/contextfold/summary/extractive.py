"""The built-in summarizer: quotes what matters, needs no model and no network, and always answers the same.

What belongs here: sharing the token budget between sections and laying them out. What does not: finding what could be
quoted (``extractive_facts``), how that is recognized (``extractive_cues``), headings (``extractive_words``), exact
facts in number (``evidence``, which stands beside any summary).

It is made from all originals at each pass, so nothing decays by being summarized twice. Every section first gets its
share of the budget, the best facts first; what a section does not need goes to the others. It reports and never tells
anyone to go on with the work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from contextfold.messages import Message, texts
from contextfold.summary import extractive_cues as cues
from contextfold.summary import language as languages
from contextfold.summary.extractive_facts import (
    RULE,
    Action,
    Fact,
    Note,
    Section,
    actions,
    clipped,
    errors,
    paired,
    rules,
    spoken,
)
from contextfold.summary.extractive_words import CONSTRAINTS, Words, words
from contextfold.summary.plans import ADDS, UPDATES, Task, plan

Count = Callable[[str], int]

SHARES: dict[Section, float] = {
    "goal": 0.22,
    "constraints": 0.16,
    "superseded": 0.05,
    "decisions": 0.22,
    "done": 0.2,
    "errors": 0.06,
    "open": 0.09,
}
"""Of the budget, in the order of the page."""

LONGEST_SHARE = 0.5
"""Of the input's tokens: a summary longer than half of what it stands for is none."""

SHORTEST = 100
"""Tokens that are always allowed, however short the input."""

RULING = 0.5
"""Share of the other room that rules may take besides, where they have room of their own."""

SMALL = 600
"""Tokens. Where a summary has no more, rules may take all of it, the opening line's place too."""

PER_RULE = 10
"""Characters that a rule takes besides its text."""

_NEXT = re.compile(
    r"\W{0,4}(next steps?|current (?:task|state|status)|nächster schritt|prochaine étape|siguiente paso|próximo passo"
    r"|prossimo passo|volgende stap|следующий шаг|下一步|次のステップ) ?[:：]",
    re.IGNORECASE,
)
"""Where the work stands, in a user's words. Of two that begin alike the later one holds."""

OLD_WEIGHT = 0.5
"""What the oldest fact keeps of its weight; the newest keeps all."""


def summarize(
    messages: Sequence[Message],
    *,
    budget: int,
    count: Count,
    language: str | None = None,
    notes: Sequence[Note] | None = None,
    for_rules: int = 0,
    plans: Collection[str] = (),
    tasks: Sequence[Task] = (),
    beside: Sequence[tuple[int, Note]] = (),
) -> str:
    """A summary of ``messages`` within ``budget`` tokens as ``count`` gives them, in ``language`` (a code).

    ``for_rules``: tokens beyond the budget that the rules of the user may take. ``plans``: names of tools that write a
    todo list or plan; ``tasks``: those of a list that none of them holds, with their places among ``messages``.
    ``beside``: what ``rules`` wants to know of the messages in the view. ``notes``: what ``Note.of``
    says of each message, for a caller that keeps it.

    Without a language it is that of the users' words. Never empty for messages that are not, unless the budget does
    not even allow for a few words.
    """
    if not messages:
        return ""
    wording = words(language or languages.dominant(m.text for m in messages if m.is_user_turn))
    notes = [Note.of(message) for message in messages] if notes is None else notes
    room = budget + for_rules
    limit = min(room, max(SHORTEST, int(LONGEST_SHARE * _size(messages, count, int(room / LONGEST_SHARE) + 1))))
    facts = [*plan(messages, plans, tasks), *_facts(messages, notes, wording, beside)]
    is_small = for_rules and room <= SMALL and any(fact.weight >= RULE for fact in facts)
    scope = "" if is_small else _scope(notes, wording)
    ruling_room = int(for_rules + (1.0 if is_small else RULING) * budget) if for_rules else 0
    first, taken, is_dense = _ruling(facts, limit - count(scope) - 2, ruling_room, count, wording)
    left = min(budget, room - taken, limit - taken) - count(scope) - 2
    ruling = set(first)
    chosen = first + _chosen([fact for fact in facts if fact not in ruling], left, count, wording)
    return _within(scope, chosen, wording, limit, count, is_dense)


def in_words(notes: Sequence[Note], beside: Sequence[tuple[int, Note]], *, budget: int, count: Count) -> list[str]:
    """The user's rules word for word, as many as ``budget`` tokens hold, in their order: what must stand beside a
    summary that may say them in other words or not at all. ``beside``: as for ``rules``.
    """
    found = list({fact.text: fact for fact in rules(notes, beside)}.values())
    # Each with its label: told once for several, labels would take less than they do there.
    chosen = set(_fitting(_ranked(found), budget, count, words("en"), is_dense=False)[0])
    return [fact.text for fact in found if fact in chosen]


def constraints_in(prose: str) -> list[str]:
    """The rules that an earlier summary tells in the section for them, in any language, each with its label."""
    found: list[str] = []
    is_inside, label = False, ""
    for line in prose.splitlines():
        if line.startswith("## "):
            is_inside, label = line[3:] in CONSTRAINTS, ""
        elif is_inside and line.startswith("- "):
            found.append(f"{label}{line[2:]}")
        elif is_inside and line.strip():
            label = f"{line} "  # rules that share one stand below it
    return found


def _ruling(facts: Sequence[Fact], limit: int, room: int, count: Count, wording: Words) -> tuple[list[Fact], int, bool]:
    """The rules that fit, their tokens, and whether labels are told once for the rules that share one. Each stands word
    for word, label and all, where there is room for that.
    """
    found = _ranked(facts)
    chosen, taken = _fitting(found, min(limit, room), count, wording, is_dense=False)
    if len(chosen) == len(found):
        return chosen, taken, False
    return *_fitting(found, min(limit, room), count, wording, is_dense=True), True


def _ranked(facts: Sequence[Fact]) -> list[Fact]:
    """The rules among facts: the weightiest first, and short ones before long ones, so that most are told."""
    found = [fact for fact in facts if fact.weight >= RULE]
    return sorted(found, key=lambda fact: -(fact.weight - RULE + 1) / (len(cues.labeled(fact.text)[1]) + PER_RULE))


def _fitting(
    facts: Sequence[Fact], most: int, count: Count, wording: Words, *, is_dense: bool
) -> tuple[list[Fact], int]:
    """The facts that fit, in their order, and their tokens: of a small room the page's, of others the sum of lines'."""
    chosen: list[Fact] = []
    taken = 0
    told: set[str] = set()
    for fact in facts:
        if most <= SMALL:
            size = count(_page("", [*chosen, fact], wording, is_dense))
        else:
            label, rest = cues.labeled(fact.text) if is_dense else ("", fact.text)
            line = Fact(fact.section, rest, fact.order, fact.weight) if label and label in told else fact
            size = taken + _cost(line, bool(chosen), count, wording)
        if size <= most:
            chosen.append(fact)
            taken = size
            told.add(cues.labeled(fact.text)[0])
    return chosen, taken


def _size(messages: Sequence[Message], count: Count, enough: int) -> int:
    """Tokens of all texts, or of the first ones that are ``enough`` together."""
    size = 0
    for text in (text for message in messages for part in message.parts for text in texts(part) if text):
        size += count(text)
        if size >= enough:
            break
    return size


def _scope(notes: Sequence[Note], wording: Words) -> str:
    """The opening line: how many messages of whom the summary stands for."""
    roles = Counter(note.role for note in notes)
    return wording.scope.format(total=len(notes), user=roles["user"], assistant=roles["assistant"], tool=roles["other"])


# ---- what there is to say ----


def _facts(
    messages: Sequence[Message], notes: Sequence[Note], wording: Words, beside: Sequence[tuple[int, Note]]
) -> list[Fact]:
    """Everything that could be quoted, once each, the newest of equal lines."""
    ruling = list(rules(notes, beside))
    told = {rule.text for rule in ruling}
    said = (fact for fact in spoken(messages, notes) if fact.text not in told)
    done = paired(notes)
    found = [*ruling, *said, *_done(list(actions(done)), wording), *errors(done)]
    span = max(1, len(messages) - 1)
    latest: dict[tuple[Section, str], Fact] = {}
    for fact in sorted(found, key=lambda fact: fact.order):
        state = _NEXT.match(fact.text) if fact.section in ("goal", "constraints") else None
        latest[fact.section, state[1].lower() if state else fact.text] = _faded(fact, (span - fact.order) / span)
    return list(latest.values())


def _faded(fact: Fact, age: float) -> Fact:
    """A fact with its weight reduced by age (0: newest, 1: oldest)."""
    # What was asked at first does not fade.
    if fact.section in ("goal", "constraints"):
        return fact
    return Fact(fact.section, fact.text, fact.order, fact.weight * (1 - (1 - OLD_WEIGHT) * age))


def _done(done: Sequence[Action], wording: Words) -> Iterator[Fact]:
    """One line for all actions of one tool on one target: the newest outcome and how often it was done."""
    # By what a line shows of it, without how much of the output was looked at.
    keys = [(action.tool, action.same) for action in done]
    times = Counter(keys)
    for key, action in dict(zip(keys, done, strict=True)).items():
        # To write down a task is not to do it, and where it stands is told by the list.
        if (action.target or action.outcome) and action.tool not in (ADDS, UPDATES):
            # What changed something cannot be found out again by looking; what was only read can.
            weight = 1.0 + 1.5 * action.changing + 0.2 * bool(action.failure)
            yield Fact("done", _action_line(action, times[key], wording), action.order, weight)


def _action_line(action: Action, times: int, wording: Words) -> str:
    line = f"{action.tool}: {action.target}" if action.target else action.tool
    if times > 1:
        line += f" ×{times}"
    outcome = action.outcome or (wording.lines.format(n=action.lines) if action.lines > 1 else "")
    return f"{line} → {outcome}" if outcome else line


# ---- what there is room for ----


def _chosen(facts: Sequence[Fact], limit: int, count: Count, wording: Words) -> list[Fact]:
    """The facts that fit ``limit`` tokens: each section within its share first, then all by weight."""
    ranked = sorted(facts, key=lambda fact: (-fact.weight, -fact.order, fact.text))
    chosen: list[Fact] = []
    opened: set[Section] = set()
    left = limit
    rooms = {section: int(limit * share) for section, share in SHARES.items()}
    # Shares first, or one long section would leave none of the others a word; then the rest goes by weight alone.
    for restricted in (True, False):
        rest: list[Fact] = []
        for fact in ranked:
            room = min(left, rooms[fact.section]) if restricted else left
            cost = _cost(fact, fact.section in opened, count, wording) if room > 0 else 0
            if not 0 < cost <= room:
                rest.append(fact)
                continue
            chosen.append(fact)
            opened.add(fact.section)
            rooms[fact.section] -= cost
            left -= cost
        ranked = rest
    return chosen


def _cost(fact: Fact, opened: bool, count: Count, wording: Words) -> int:
    """Tokens of the fact's line, and of the heading that the first of a section brings along."""
    line = count(f"- {fact.text}\n")
    return line if opened else line + count(f"\n## {getattr(wording, fact.section)}\n")


def _within(scope: str, chosen: list[Fact], wording: Words, limit: int, count: Count, is_dense: bool) -> str:
    """The page, without its least facts if the parts counted for less than the whole; clipped if nothing else helps."""
    while chosen:
        page = _page(scope, chosen, wording, is_dense)
        excess = count(page) - limit
        if excess <= 0:
            return page
        chosen = chosen[: max(0, len(chosen) - max(1, excess // 40))]
    while count(scope) > limit and len(scope) > 1:
        scope = clipped(scope, max(1, len(scope) * 2 // 3))
    return scope


def _page(scope: str, chosen: Iterable[Fact], wording: Words, is_dense: bool) -> str:
    blocks = [scope] if scope else []
    for section in SHARES:
        # chosen by weight, shown in the order of the conversation: a reader follows what happened
        told = [fact.text for fact in sorted(chosen, key=lambda f: f.order) if fact.section == section]
        lines = list(_under_labels(told)) if is_dense and section == "constraints" else [f"- {text}" for text in told]
        if lines:
            blocks.append("\n".join([f"## {getattr(wording, section)}", *lines]))
    return "\n\n".join(blocks)


def _under_labels(told: Iterable[str]) -> Iterator[str]:
    """Lines of a list in which each label that several texts begin with stands once, above what it is said of."""
    found: dict[str, list[str]] = {}
    for text in told:
        label, rest = cues.labeled(text)
        found.setdefault(label, []).append(rest)
    # What has no label comes first, and what has its own: under another one it would be told of that.
    for label, said in sorted(found.items(), key=lambda entry: bool(entry[0]) and len(entry[1]) > 1):
        if len(said) == 1 and label:
            yield f"- {label}: {said[0]}"
        else:
            yield from ([f"{label}:"] if label else [])
            yield from (f"- {text}" for text in said)
