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
from dataclasses import dataclass

from contextfold import quoting
from contextfold.conversation import pins
from contextfold.conversation.fingerprint import digest
from contextfold.conversation.history import History
from contextfold.evidence import lines_of
from contextfold.messages import Message, texts
from contextfold.passes.question import Question
from contextfold.recall.memory import MemoryIndex
from contextfold.recall.ranking import coverage, rank
from contextfold.recall.words import Query, parse_query
from contextfold.record.compaction import Recalled
from contextfold.record.view import apply

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
    """Lines of one message that are to be quoted."""

    index: int
    line: int
    source: str
    text: str


def recalled(question: Question) -> Recalled | None:
    """What to quote behind the newest message; None where nothing is to be, or it was done already."""
    policy, record, history = question.policy.recall, question.record, question.history
    asked = len(history.messages) - 1
    if not policy.enabled or record is None or not record.gone() or asked < record.covers:
        return None
    if not _asks(history.messages[asked], tools=policy.tools) or any(one.after == asked for one in record.recalled):
        return None
    query = _query(history.messages[asked])
    room = min(int(policy.budget * question.limits.window), int(0.95 * question.limits.window) - question.view_tokens)
    if query.is_empty or room <= 0:
        return None
    return _block(question, query, asked, room)


def _asks(message: Message, *, tools: bool) -> bool:
    """Whether a turn begins with this message: a person's; by policy also a tool's result."""
    return (pins.is_person(message) and not message.tool_results) or (tools and bool(message.tool_results))


def _query(message: Message) -> Query:
    text = "\n".join(text for part in message.parts for text in texts(part))
    if len(text) > 2 * ASKED:
        text = f"{text[:ASKED]}\n{text[-ASKED:]}"
    # quotes in running text are no demand: of what a user writes, every word may be the one that counts
    units = parse_query(text.replace('"', " ").replace("“", " ").replace("”", " ")).units
    return Query(units[:MOST_UNITS])


def _block(question: Question, query: Query, asked: int, room: int) -> Recalled | None:
    history, record = question.history, question.record
    assert record is not None
    gone = {n for n in record.gone() if not pins.is_summary(history.messages[n])}
    index = searchable(history, asked)
    shown = _shown(question)
    count = question.counter.text
    quotes: list[_Quote] = []
    text = ""
    for found in rank(query, index, CONSIDERED, among=gone):
        share, why = coverage(query, index, found.index)
        if share < question.policy.recall.threshold:
            continue
        for quote in _quotes(history.messages[found.index], found.index, why, shown):
            longer = _written([*quotes, quote])
            if count(longer) <= room:
                quotes.append(quote)
                text = longer
                shown += "\n" + " ".join(quote.text.split())
    if not quotes:
        return None
    best, why = max(((coverage(query, index, one.index)) for one in quotes), key=lambda found: found[0])
    return Recalled(
        after=asked,
        digest=digest(history.messages[asked]).hex(),
        text=text,
        indices=tuple(dict.fromkeys(one.index for one in quotes)),
        reason=f"{best:.0%} of what was asked: {', '.join(why[:6])}",
        tokens=count(text),
    )


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


def _quotes(message: Message, index: int, why: Sequence[str], shown: str) -> Iterator[_Quote]:
    """The lines of a message that hold most of what was found, with those around them, less what is in the view."""
    lines = lines_of(message)
    worth = [sum(word in line.text.lower() for word in why) for line in lines]
    if not any(worth):
        return
    best = max(range(len(lines)), key=lambda n: (worth[n], -n))
    around = len(lines) if sum(len(line.text) for line in lines) <= WHOLE else AROUND
    for n in (best, *(n for k in range(1, around + 1) for n in (best + k, best - k))):
        if 0 <= n < len(lines) and " ".join(lines[n].text.split()) not in shown:
            yield _Quote(index, n, lines[n].source, lines[n].text)


def _written(quotes: Sequence[_Quote]) -> str:
    """The block: quotes in the order of the conversation, under marks of who said them, and where."""
    lines = [FRAME]
    said: tuple[int, str] | None = None
    for quote in sorted(quotes, key=lambda one: (one.index, one.line)):
        if (quote.index, quote.source) != said:
            said = (quote.index, quote.source)
            lines.append(f"[{quote.source}, message {quote.index}]")
        lines.append(quoting.quoted(quote.text))
    return "\n".join([OPEN, *lines, CLOSE])
