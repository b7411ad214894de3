"""The document between engine and page: one JSON object that says what was there, and where each message went.

Version 1. Sizes are tokens, money is billionths of a dollar, indices are places in ``messages``, and positions in a
text count UTF-16 units as JavaScript does. ``docs/inspector.md`` describes every field; another program may rely on it.
A field may be added without another version; one that changes its meaning makes a new one.

    contextfold  "view"
    version      1
    made_by      name and version of the program
    source       {kind: file | store, name, format, recorded}
    messages     [{role, tokens, parts: [{type, text, ...}], id?, name?}]
    lines        [[speaker, index, part, start, length]] or [[speaker, text, index or null]], quoted by evidence: where
                 the line stands in ``messages``; its text where it does not stand there word for word
    changes      [[index, part, tier, pieces or null]]                           what became of shortened parts
    prices       [{key, model, text}]
    runs         [{name, settings, overhead, pending, requests, states, marks, needs, needed, money}]
                 two where settings are compared

A **request** is a moment: the view that the agent's model got, or would have got, before an answer. ``requests`` holds
them as columns of equal length. A **state** is what is in force from one compaction to the next: the fates of all
messages, what was shortened, the summary. What the view is at a request follows from its state: all messages before it
whose fate is not ``summarized`` or ``dropped``, with the summary behind message ``summary.after``, and each text of
``recalled`` behind its message from its request on.

``overhead`` are the tokens of tools beside each view; ``pending`` says that the last request was not asked for yet.
``needs`` lists what answers used and the view lacked, ``needed`` counts all they used; ``marks`` are errors and events.

What belongs here: these fields and how they are filled from values of the engine. What does not: running anything
(``replayed``), reading stores (``stored``).
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from contextfold import evidence as lines_for_quoting
from contextfold.conversation.ledger import Run
from contextfold.inspector.money import LISTS, described
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, texts
from contextfold.observe import scrub
from contextfold.recall.tools import READ, SEARCH
from contextfold.record.compaction import Compaction, Edit, Recalled, SummaryRecord, reduce
from contextfold.redaction import REDACTED, secrets_in

VERSION = 1

Scrub = Callable[[str], str]

GONE = ("summarized", "dropped")

_CHUNK = re.compile(r"[^\s\\\"'`,;()<>\[\]{}]{8,}")
_ODD = re.compile(r"\d|[a-z][A-Z]")
"""Signs of a key that stand alone, and what a plain word has not."""


def redactor(keys: Iterable[str] = ()) -> Scrub:
    """Takes keys out of a text (``observe.scrub``). Texts repeat in views, so what it said is remembered."""
    known = tuple(keys)
    return lru_cache(maxsize=50_000)(lambda text: scrub(text, known))


# ---- messages ----


def message_entry(message: Message, tokens: int, clean: Scrub) -> dict[str, Any]:
    """A message of ``messages``."""
    entry: dict[str, Any] = {"role": message.role, "tokens": tokens}
    if message.id is not None:
        entry["id"] = clean(message.id)
    if message.name:
        entry["name"] = clean(message.name)
    return {**entry, "parts": [_part(part, clean) for part in message.parts]}


def _part(part: Part, clean: Scrub) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": clean(part.text)}
        case ToolCall():
            recall = {"recall": True} if part.name in (SEARCH, READ) else {}
            return {
                "type": "call",
                "name": clean(part.name),
                "call": clean(part.id),
                "text": clean(part.arguments),
                **recall,
            }
        case ToolResult():
            named = {"name": clean(part.name)} if part.name else {}
            failed = {"error": True} if part.is_error else {}
            return {"type": "result", **named, "call": clean(part.call_id), **failed, "text": part_text(part, clean)}
        case Reasoning():
            return {"type": "reasoning", "text": clean(part.text)}
        case Media():
            return {"type": "media", "text": _medium(part, clean)}
        case Opaque():
            return {"type": "other", "name": clean(part.label), "text": clean(part.text)}


def part_text(part: Part, clean: Scrub) -> str:
    """The text of a part as the document has it."""
    if isinstance(part, ToolCall):
        return clean(part.arguments)
    if isinstance(part, ToolResult):
        return "\n".join(part_text(inner, clean) for inner in part.content)
    return _medium(part, clean) if isinstance(part, Media) else clean(part.text)


def _medium(part: Media, clean: Scrub) -> str:
    """A reference: the bytes of media are left out of the document."""
    size = f", {len(part.data) * 3 // 4:,} bytes" if part.data else ""
    place = f", {clean(part.url)}" if part.url and not part.url.startswith("data:") else ""
    named = f", {clean(part.name)}" if part.name else ""
    return f"[{part.kind}: {part.media_type or 'unknown type'}{named}{size}{place}]"


# ---- states ----


class Shared:
    """What the states of a document have in common, said once: quoted lines and shortened parts, by their numbers.

    Passes carry most of both over from the pass before.
    """

    def __init__(self, messages: Sequence[Message], entries: Sequence[Mapping[str, Any]], clean: Scrub) -> None:
        """``entries``: the messages as the document has them."""
        self.messages = messages
        self.entries = entries
        self.clean = clean
        self.lines: list[list[Any]] = []
        self.changes: list[list[Any]] = []
        self._origins = Origins(messages)
        self._line_numbers: dict[tuple[str, str], int] = {}
        self._change_numbers: dict[tuple[Any, ...], int] = {}
        self._secrets: list[str] | None = None
        self._all_secrets = ""

    def excerpt(self, text: str) -> str:
        """What was cut out of messages, without keys: also those that a message tells by words that stand beside them,
        as a line of a private key does not.
        """
        if self._secrets is None:
            self._secrets = sorted(set(self._taken_out()), key=lambda secret: (-len(secret), secret))
            self._all_secrets = "\n".join(self._secrets)
        text = self.clean(text)
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return _CHUNK.sub(self._without_parts, text) if self._secrets else text

    def _taken_out(self) -> Iterator[str]:
        """The chunks of what was taken out of the messages, but for plain words: such a password is said elsewhere."""
        for message, entry in zip(self.messages, self.entries, strict=False):
            for part, shown in zip(message.parts, entry["parts"], strict=True):
                for secret in secrets_in(part_text(part, str)) if REDACTED in shown["text"] else ():
                    yield from filter(_ODD.search, _CHUNK.findall(secret))

    def _without_parts(self, chunk: re.Match[str]) -> str:
        return REDACTED if chunk[0] in self._all_secrets and _ODD.search(chunk[0]) else chunk[0]

    def line(self, speaker: str, text: str, gone: Collection[int]) -> int:
        """The number of a quoted line; where it came from is looked up when it is first met."""
        key = speaker, text
        if key not in self._line_numbers:
            self._line_numbers[key] = len(self.lines)
            self.lines.append(self._placed(speaker, text, self._origins.of(speaker, text, gone)))
        return self._line_numbers[key]

    def _placed(self, speaker: str, text: str, origin: int | None) -> list[Any]:
        for number, part in enumerate(self.entries[origin]["parts"] if origin is not None else ()):
            start = part["text"].find(text)
            if start >= 0:
                return [speaker, origin, number, _units(part["text"][:start]), _units(text)]
        return [speaker, self.excerpt(text), origin]

    def change(self, index: int, part: int, edits: Sequence[Edit]) -> int:
        """The number of a shortened part: what tiers made of it, in pieces as ``pieces`` gives them."""
        key = (index, part, *((edit.tier, edit.limit) for edit in edits))
        if key not in self._change_numbers:
            before = self.messages[index].parts[part]
            alone = self.messages[index].with_parts((before,))
            left = reduce(alone, [edit.model_copy(update={"part": 0}) for edit in edits]).parts
            became = pieces(part_text(before, self.clean), part_text(left[0], self.excerpt)) if left else None
            self._change_numbers[key] = len(self.changes)
            self.changes.append([index, part, ", ".join(edit.tier for edit in edits), became])
        return self._change_numbers[key]


def state_entry(
    request: int,
    runs: Sequence[Run],
    compaction: Compaction | None,
    shared: Shared,
    *,
    places: Callable[[int], int | None] = lambda place: place,
    **more: Any,
) -> dict[str, Any]:
    """A state of a run, from request number ``request`` on.

    ``places`` maps places in the record's history to indices of messages, where these differ. ``more`` is what is
    known of the compaction besides its record.
    """
    fates = fate_entries(runs, shared.clean)
    entry: dict[str, Any] = {
        "from": request,
        "fates": fates,
        "changed": [],
        "recalled": [],
        "summary": None,
        "compaction": None,
    }
    if compaction is None:
        return entry
    gone = {index for run in runs if run.fate in GONE for index in range(run.start, run.stop)}
    entry["changed"] = _changed(compaction, shared, places)
    entry["compaction"] = {
        "id": compaction.id,
        "trigger": shared.clean(compaction.trigger),
        "window": compaction.window,
        "target": compaction.target,
        "tokens_before": compaction.tokens_before,
        "tokens_after": compaction.tokens_after,
        **more,
    }
    if compaction.summary is not None:
        after = [found for place in range(compaction.summary_after + 1) if (found := places(place)) is not None]
        entry["summary"] = summary_entry(compaction.summary, max(after, default=-1), shared, gone)
    return entry


def recalled_entry(recalled: Recalled, request: int, clean: Scrub) -> dict[str, Any]:
    """What was quoted again from request number ``request`` on, behind message ``after`` that asked for it, and why."""
    return {
        "request": request,
        "after": recalled.after,
        "text": clean(recalled.text),
        "indices": list(recalled.indices),
        "reason": clean(recalled.reason),
        "tokens": recalled.tokens,
    }


def fate_entries(runs: Iterable[Run], clean: Scrub) -> list[list[Any]]:
    """Runs as [start, stop, fate, reason]. Messages after the last one are kept."""
    return [[run.start, run.stop, run.fate, clean(run.reason)] for run in runs]


def _changed(compaction: Compaction, shared: Shared, places: Callable[[int], int | None]) -> list[int]:
    edits: dict[tuple[int, int], list[Edit]] = {}
    for edit in compaction.edits:
        edits.setdefault((edit.index, edit.part), []).append(edit)
    found = [(places(place), part, some) for (place, part), some in edits.items()]
    return [shared.change(index, part, some) for index, part, some in found if index is not None]


def summary_entry(summary: SummaryRecord, after: int, shared: Shared, gone: Collection[int]) -> dict[str, Any]:
    """The summary of a view: its prose, and the numbers of the lines that its evidence quotes."""
    quoted = [shared.line(speaker, text, gone) for speaker, text in evidence_lines(summary.evidence)]
    names = ("role", "language", "algorithm", "tokens", "message_count", "original_tokens", "compression_ratio")
    took = ("input_tokens", "output_tokens", "calls", "chunk_count", "max_depth", "truncated")
    return {
        "after": after,
        "text": shared.excerpt(summary.text),
        "evidence": quoted,
        **{name: getattr(summary, name) for name in (*names, *took)},
        "archive": shared.clean(summary.archive) if summary.archive else None,
    }


_MARK = re.compile(lines_for_quoting.MARK)


def evidence_lines(text: str) -> Iterator[tuple[str, str]]:
    """(speaker, line) of the text of evidence; the speaker of parts of lines is ``part``."""
    speaker = "assistant"
    for line in text.splitlines():
        mark = _MARK.fullmatch(line)
        if mark:
            speaker = "part" if mark[2] else mark[3]
        elif line.strip():
            yield speaker, line


class Origins:
    """Finds the message that a quoted line came from."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._texts: list[tuple[str, int, str]] = []
        self._exact: dict[tuple[str, str], list[int]] = {}
        self._by_word: dict[str, list[int]] | None = None
        for index, message in enumerate(messages):
            self.add(index, message)

    def add(self, index: int, message: Message) -> None:
        """Messages are added in their order."""
        if message.is_instruction:
            return
        for part in message.parts:
            if isinstance(part, ToolResult):
                text = "\n".join(texts(part))
                self._note("tool", index, text, text.splitlines())
            elif isinstance(part, ToolCall):
                shown = lines_for_quoting.lines_of(Message("assistant", (part,)))
                self._note("assistant", index, part.arguments, [line.text for line in shown])
            elif isinstance(part, Text | Opaque):
                is_output = isinstance(part, Opaque) and part.is_output
                speaker = "tool" if is_output else "user" if message.role == "user" else "assistant"
                self._note(speaker, index, part.text, part.text.splitlines())

    def _note(self, speaker: str, index: int, text: str, lines: Iterable[str]) -> None:
        self._texts.append((speaker, index, text))
        for line in lines:
            places = self._exact.setdefault((speaker, line.strip()), [])
            if not places or places[-1] != index:
                places.append(index)

    def of(self, speaker: str, line: str, gone: Collection[int]) -> int | None:
        """The newest message out of view that holds the line, else the newest that does; None where none is known."""
        places = self._exact.get((speaker, line.strip())) or self._holding(speaker, line.strip())
        return next((index for index in reversed(places) if index in gone), places[-1] if places else None)

    def _holding(self, speaker: str, line: str) -> list[int]:
        """Messages with the line inside a longer one."""
        if self._by_word is None:
            self._by_word = {}
            for number, (_, _, text) in enumerate(self._texts):
                for word in set(_WORD.findall(text)):
                    self._by_word.setdefault(word, []).append(number)
        words = _WORD.findall(line)
        # Only where its rarest word stands: there may be many messages. The first and the last word may be cut.
        known = (self._by_word[word] for word in words[1:-1] or words if word in self._by_word)
        candidates: Sequence[int] = min(known, key=len, default=range(len(self._texts)))
        where = (self._texts[number] for number in candidates)
        return sorted({index for who, index, text in where if speaker in (who, "part") and line in text})


# ---- what a text became ----

MOST_STEPS = 2_000_000
"""Products of the numbers of lines, or of words, that are compared; beyond, what is between stands as it is."""

MOST_PAIRS = 20_000
"""Of equal lines, or words, in both texts, at which a comparison begins."""

_WORD = re.compile(r"\w+")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_WORDS = re.compile(r"\n|[^\S\n]+|\w+|[^\w\s]")


def pieces(old: str, new: str) -> list[list[int] | str]:
    """``new`` as pieces: [start, stop] of ``old`` where it was taken over, a string where it was not."""
    if old == new:
        return [[0, _units(old)]] if old else []
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    found: list[list[int] | str] = [[0, head]] if head else []
    found += _middle(old[head : len(old) - tail], new[head : len(new) - tail], head)
    found += [[len(old) - tail, len(old)]] if tail else []
    return [piece if isinstance(piece, str) else [_units(old[: piece[0]]), _units(old[: piece[1]])] for piece in found]


def _middle(old: str, new: str, offset: int) -> list[list[int] | str]:
    """Line by line, and word by word between the lines that both have."""
    found: list[list[int] | str] = []
    for start, stop, text in _compared(_LINES.findall(old), _LINES.findall(new)):
        if text is None:
            found.append([offset + start, offset + stop])
            continue
        for first, last, word in _compared(_WORDS.findall(old[start:stop]), _WORDS.findall(text)):
            part = old[start + first : start + last]
            if word is None and (len(_WORDS.findall(part)) > 3 or "\n" in part):
                found.append([offset + start + first, offset + start + last])
            elif said := part if word is None else word:
                if found and isinstance(found[-1], str):
                    found[-1] += said
                else:
                    found.append(said)
    return found


def _compared(before: list[str], after: list[str]) -> Iterator[tuple[int, int, str | None]]:
    """Stretches of the text before, by their characters, and what stands in their place; None where they stay."""
    starts = [0, *itertools.accumulate(map(len, before))]
    if len(before) * len(after) > MOST_STEPS:
        yield 0, starts[-1], "".join(after)
        return
    common = _common_words(before, after).__contains__
    for tag, first, stop, low, high in difflib.SequenceMatcher(common, before, after, autojunk=False).get_opcodes():
        yield starts[first], starts[stop], None if tag == "equal" else "".join(after[low:high])


def _common_words(before: list[str], after: list[str]) -> set[str]:
    """Words or lines at which no search for what is equal begins: blanks, and the commonest, which make too many pairs.
    From each pair all that is left is searched again.
    """
    one, other = Counter(before), Counter(after)
    pairs = {word: one[word] * other[word] for word in one.keys() & other.keys() if not word.isspace()}
    ordered = sorted(pairs, key=lambda word: (pairs[word], word))
    sums = itertools.accumulate(pairs[word] for word in ordered)
    rare = {word for word, places in zip(ordered, sums, strict=True) if places <= MOST_PAIRS}
    return set(other) - rare


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# ---- the rest ----


def prices_entry() -> list[dict[str, str]]:
    return [{"key": prices.key, "model": prices.model, "text": described(prices)} for prices in LISTS]


def document(source: Mapping[str, Any], messages: Sequence[Any], shared: Shared, runs: Sequence[Any]) -> dict[str, Any]:
    """The whole document."""
    from contextfold import __version__

    return {
        "contextfold": "view",
        "version": VERSION,
        "made_by": f"contextfold {__version__}",
        "source": dict(source),
        "messages": list(messages),
        "lines": shared.lines,
        "changes": shared.changes,
        "prices": prices_entry(),
        "runs": list(runs),
    }


def as_json(value: Any) -> bytes:
    """The document as bytes. A lone half of a surrogate pair, which UTF-8 cannot say, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
