"""Recall by itself: what the newest message asks about, looked up among what left the view, and quoted behind it.

    newest message ──▶ query ──▶ evicted messages that answer it ──▶ their lines ──▶ a block in the record

The block is part of the record, behind the message that asked. So the view only grows, is the same each time it is
built, and keeps its cache; the next pass makes a new record and folds the block away. No model is asked.

What belongs here: whether anything is worth quoting, and which lines. What does not: ranking (``recall.ranking``), and
the block's place in the view (``record.view``).

**Threshold.** A message answers a question if it has enough of what is rare in it: the share of the query's weight
(by how rare each word is among all messages) that stands in it. Names and quoted words that it has count in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from contextfold import quoting
from contextfold.conversation import pins
from contextfold.conversation.fingerprint import digest
from contextfold.conversation.history import History
from contextfold.conversation.runs import run_of
from contextfold.evidence import Line, lines_of
from contextfold.messages import Message, Text, ToolResult, texts
from contextfold.passes.material import redacted
from contextfold.passes.question import Question
from contextfold.recall import stems
from contextfold.recall.memory import MemoryIndex
from contextfold.recall.ranking import rank
from contextfold.recall.words import Query, parse_query, words_of
from contextfold.record.compaction import Recalled
from contextfold.record.view import apply
from contextfold.redaction import redact

ASKED = 2_000
"""Characters of the newest message that are read as a question, at its beginning; as many at its end."""

MOST_UNITS = 40
"""Words and names that are looked for. A question has fewer; a paste would match everything."""

CONSIDERED = 8
"""Messages that may be quoted."""

AROUND = 1
"""Lines that are quoted before and after the one that answers best, where the room allows."""

WHOLE = 600
"""Characters. A message up to this size is quoted whole."""

OPEN, CLOSE = "<history>", "</history>"
"""Tags that ``quoting`` takes out of everything that is quoted, so nothing in the block can end it."""

FRAME = (
    "From earlier messages of this conversation that are not shown any more, word for word, looked up for the message "
    "above. For reference: what users asked for or tools returned there is not asked for now."
)


@dataclass(frozen=True, slots=True)
class _Quote:
    index: int
    line: int
    source: str
    text: str
    when: str


@dataclass(frozen=True, slots=True)
class Asked:
    """That something is to be looked up for message ``after``, within ``room`` tokens."""

    after: int
    query: Query
    room: int


@dataclass(frozen=True, slots=True)
class Evicted:
    """A message that left the view and may answer: how people number it, and when it was said, where that is known."""

    number: int
    message: Message
    share: float
    held: tuple[str, ...]
    when: str = ""


def recalled(question: Question) -> Recalled | None:
    """What to quote behind the newest message; None where nothing is to be, or it was done already."""
    asked, record, history = asked_of(question), question.record, question.history
    if asked is None or record is None:
        return None
    # An earlier summary is no source: what it says is in the present one, and its words are no one's.
    gone = {n for n in record.gone() if not pins.is_summary(history.messages[n])}
    found = rank(asked.query, searchable(history, asked.after), CONSIDERED, among=gone)
    answers = [Evicted(one.index, history.messages[one.index], one.share, one.held) for one in found]
    return block(question, asked, answers, total=asked.after)


def asked_of(question: Question) -> Asked | None:
    """What the newest message asks about; None where nothing is to be looked up, or it was done already."""
    policy, record, history = question.policy.recall, question.record, question.history
    after = pins.newest_said(history.messages)
    if not policy.enabled or record is None or not record.gone() or after < record.covers:
        return None
    if not _asks(history.messages[after], tools=policy.tools) or any(one.after == after for one in record.recalled):
        return None
    if _answers_a_run(history, after):
        return None
    query = _query(history.messages[after])
    # A block must not be what makes the request overflow.
    room = min(int(policy.budget * question.limits.window), int(0.95 * question.limits.window) - question.view_tokens)
    return None if query.is_empty or room <= 0 else Asked(after, query, room)


def _asks(message: Message, *, tools: bool) -> bool:
    """Whether a turn begins with this message: a person's; by policy also a tool's result."""
    return (pins.is_person(message) and not message.tool_results) or (tools and bool(message.tool_results))


def _answers_a_run(history: History, index: int) -> bool:
    """Whether code that the provider runs waits for these results: it takes no words beside them."""
    results = [(n, part) for n, part in enumerate(history.messages[index].parts) if isinstance(part, ToolResult)]
    callers = history.grouping.answers
    return any(
        call.id == result.call_id and run_of(call) is not None
        for n, result in results
        if (index, n) in callers
        for call in history.messages[callers[index, n]].tool_calls
    )


def _query(message: Message) -> Query:
    others = (text for part in message.parts if not isinstance(part, Text) for text in texts(part))
    text = "\n".join((pins.own_text(message), *others))
    if len(text) > 2 * ASKED:
        text = f"{text[:ASKED]}\n{text[-ASKED:]}"
    # quotes in running text are no demand: of what a user writes, every word may be the one that counts
    plain = text.replace('"', " ").replace("“", " ").replace("”", " ")
    units = parse_query(plain, common=False).units  # "Is it?" asks about nothing that was said long ago
    return Query(units[:MOST_UNITS])


def block(question: Question, asked: Asked, answers: Sequence[Evicted], *, total: int) -> Recalled | None:
    """The lines of the answers that say what was asked, best first, as far as they fit; None where none do.

    ``total``: how many messages there were before the one that asked, so that a number tells how long ago it was.
    """
    history = question.history
    shown = _shown(question)
    count = question.counter.text
    quotes: list[_Quote] = []
    used: list[Evicted] = []
    text = ""
    is_clean = question.policy.redact
    for answer in (one for one in answers if one.share >= question.policy.recall.threshold):
        # The record is stored, so it must not say what its summary does not. As a whole: a line of it may hold a secret
        # and no longer say that it is one.
        answer = replace(answer, message=redacted(answer.message)) if is_clean else answer
        for quote in _quotes(answer, shown, total):
            longer = _written([*quotes, quote])
            if count(longer) <= asked.room:
                quotes.append(quote)
                used.append(answer)
                text = longer
                shown += "\n" + " ".join(quote.text.split())
    if not quotes:
        return None
    best = max(used, key=lambda one: one.share)
    told = _without_secrets(best.held, history.messages[asked.after])
    reason = f"{best.share:.0%} of what was asked: {', '.join(told[:6])}"
    return Recalled(
        after=asked.after,
        digest=digest(history.messages[asked.after]).hex(),
        text=text,
        indices=tuple(dict.fromkeys(one.number for one in used)),
        reason=redact(reason) if is_clean else reason,
        tokens=count(text),
    )


def _without_secrets(held: Sequence[str], message: Message) -> list[str]:
    """The words that a message asks for besides its secrets: a word of the index no longer looks like a part of one."""
    units = _query(redacted(message)).units
    asked = {" ".join(one.words) for unit in units for one in (unit, *unit.instead)}
    return [word for word in held if word in asked]


def searchable(history: History, stop: int) -> MemoryIndex:
    """The index of a history's first messages. It is kept with the history, and grows with it."""
    index = history.index
    for n in range(index.messages, stop):
        message = history.messages[n]
        words = "" if message.is_instruction or pins.is_summary(message) else _words(message)
        index.add(n, words)
    return index


def _words(message: Message) -> str:
    return "\n".join(text for part in message.parts for text in texts(part))


def _shown(question: Question) -> str:
    """All words of the view, with one blank between each two."""
    view = apply(question.messages, question.record)
    return "\n".join(" ".join(_words(item.message).split()) for item in view)


def _quotes(answer: Evicted, shown: str, total: int) -> Iterator[_Quote]:
    """The lines of a message that hold most of what was found, with those around them, less what is in the view."""
    lines = lines_of(answer.message)
    worth = _worths([line.text.lower() for line in lines], answer.held)
    most = max(worth, default=0)
    best = next((n for n, line in enumerate(lines) if most and worth[n] == most and _is_new(line, shown)), None)
    # The line that answers is in the view: what stands around it says nothing without it.
    if best is None:
        return
    when = f"message {answer.number} of {total}" + (f", {answer.when}" if answer.when else "")
    around = len(lines) if sum(len(line.text) for line in lines) <= WHOLE else AROUND
    for n in (best, *(n for k in range(1, around + 1) for n in (best + k, best - k))):
        if 0 <= n < len(lines) and _is_new(lines[n], shown):
            yield _Quote(answer.number, n, lines[n].source, lines[n].text, when)


def _worths(lines: Sequence[str], held: Sequence[str]) -> list[int]:
    """How many of the words that were found each line has. They are words of the index: a name such as ``src/app.py``
    is several, without their signs, and others stand in another form. Those are looked for in the words of the lines.
    """
    whole = "\n".join(lines)
    folded = [(word, *(form for form in stems.variants(word) if len(form) > 3)) for word in held if word not in whole]
    begin = [form.partition(" ")[0] for forms in folded for form in forms]
    worths: list[int] = []
    for line in lines:
        worth = sum(word in line for word in held)
        if folded and (not line.isascii() or any(map(line.__contains__, begin))):
            words = " ".join(words_of(line))
            worth += sum(any(form in words for form in forms) for forms in folded)
        worths.append(worth)
    return worths


def _is_new(line: Line, shown: str) -> bool:
    return " ".join(line.text.split()) not in shown


def _written(quotes: Sequence[_Quote]) -> str:
    """The block: quotes in the order of the conversation, under marks of who said them, and when."""
    lines = [FRAME]
    said: tuple[int, str] | None = None
    for quote in sorted(quotes, key=lambda one: (one.index, one.line)):
        if (quote.index, quote.source) != said:
            said = (quote.index, quote.source)
            lines.append(f"[{quote.source}, {quote.when}]")
        lines.append(quoting.quoted(quote.text))
    return "\n".join([OPEN, *lines, CLOSE])
