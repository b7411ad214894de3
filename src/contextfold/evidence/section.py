"""The text that quotes lines: written under short marks of who said them, and read back.

No line of the text begins with a bracket but the marks (``quoting.quoted``), so nothing that is quoted, however it is
written, can pass for one.

What belongs here: that form. What does not: which lines are quoted (``choice``, ``clips``), and the frame around the
text (``summary.message``).

It is read back where the originals are out of reach: in a history that begins with an earlier summary, in a middleware
that rewrites its state, in a session whose oldest messages are not read again. What was said by whom decides what it is
worth there, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from contextfold import quoting
from contextfold.evidence.blocks import SOURCES
from contextfold.evidence.lines import lines_of
from contextfold.evidence.reading import Line
from contextfold.messages import Message, Text, ToolResult

NO_DATES: Mapping[int, str] = MappingProxyType({})

PARTS = "parts of lines"
"""Stands in the marks above parts of lines."""

RULES = "rules"
"""Stands in the mark above what a user set, in the place of a date. Other lines of users were chosen by their worth,
and may have been taken back by words that were not."""

MARK = rf"(?:\[(?:(user|assistant|tool), )?({PARTS})\]|\[(user|assistant|tool)(?:, ([^\[\]\n]+))?\])"
"""A mark: (speaker, ``PARTS``, None, None) above parts of lines, else (None, None, speaker, date). Parts without a
speaker are a tool's, as most are: the mark without one is shorter."""

_MARK = re.compile(rf"^{MARK}$", re.MULTILINE)


def lines_under_marks(
    quoted: Mapping[int, str], speakers: bytes, chosen: Iterable[int], dates: Mapping[int, str] = NO_DATES
) -> list[str]:
    """The chosen ones of the lines, by their numbers, in their order. A mark stands where the speaker changes.

    ``quoted``: the lines as they may stand there (``as_quoted``). ``speakers``: for each line the place of its speaker
    in ``blocks.SOURCES``. ``dates``: of lines that mean nothing without one. It stands in the mark, and holds on until
    another one does.
    """
    lines: list[str] = []
    speaker, date = -1, ""
    for n in sorted(chosen):
        new = dates.get(n, date)
        if speakers[n] != speaker or new != date:
            speaker = speakers[n]
            lines.append(f"[{SOURCES[speaker]}]" if new == date else f"[{SOURCES[speaker]}, {new}]")
            date = new
        lines.append(quoted[n])
    return lines


def rules_under_mark(rules: Iterable[str]) -> str:
    """What a user set, each as a line, under the mark for it; empty for nothing."""
    lines = [as_quoted(" ".join(rule.split())) for rule in rules]
    return "\n".join([f"[user, {RULES}]", *lines]) if lines else ""


def rules_in(text: str) -> list[str]:
    """What a user set, by such a text: the lines that it begins with, where they stand under the mark for it."""
    first, *rest = _MARK.split(text)
    if first.strip() or not rest or rest[2:4] != ["user", RULES]:
        return []
    return [line for line in quoting.unquoted(rest[4]).splitlines() if line.strip()]


def as_quoted(line: str) -> str:
    """A line as it may stand under marks. Most have no sign in them that could begin a mark or a tag."""
    return line if line.isascii() and "[" not in line and "<" not in line else quoting.quoted(line)


def mark_of_parts(speaker: int) -> str:
    """What stands above parts of lines of this speaker, by its place in ``blocks.SOURCES``."""
    return f"[{PARTS}]" if SOURCES[speaker] == "tool" else f"[{SOURCES[speaker]}, {PARTS}]"


def parts_under_marks(parts: Iterable[tuple[int, str]]) -> list[str]:
    """Parts of lines, each with the place of its speaker, in their order under one mark for each speaker."""
    by_speaker: dict[int, list[str]] = {}
    for speaker, part in parts:
        by_speaker.setdefault(speaker, []).append(as_quoted(part))
    return [line for speaker in sorted(by_speaker) for line in (mark_of_parts(speaker), *by_speaker[speaker])]


def read(text: str) -> tuple[Line, ...]:
    """The lines and parts of lines of such a text. What stands above the first mark counts as the assistant's."""
    return tuple(_read(text))


def _read(text: str) -> Iterator[Line]:
    first, *rest = _MARK.split(text)
    yield from _said("assistant", first)
    date = ""
    for of_parts, parts, speaker, new, quoted in zip(*(rest[n::5] for n in range(5)), strict=True):
        if new == RULES:
            # Each by itself: read as one message, those that hold no longer would come with the others.
            for rule in quoted.splitlines():
                yield from _said(speaker, rule)
            continue
        date = new or date
        if parts:
            # what is left of a sentence sets no rule and tells of no failure
            yield from (line._replace(bonus=0.0) for line in _said(of_parts or "tool", quoted))
        elif date and speaker != "tool":
            yield from (line._replace(date=date) for line in _said(speaker, quoted))
        else:
            yield from _said(speaker, quoted)


def _said(speaker: str, quoted: str) -> tuple[Line, ...]:
    text = Text(quoting.unquoted(quoted))
    if speaker == "tool":
        return tuple(lines_of(Message("tool", (ToolResult("evidence", (text,)),))))
    return tuple(lines_of(Message("user" if speaker == "user" else "assistant", (text,))))
