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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from contextfold import quoting
from contextfold.evidence.blocks import SOURCES
from contextfold.evidence.lines import lines_of
from contextfold.evidence.reading import Line
from contextfold.messages import Message, Text, ToolResult

NO_DATES: Mapping[int, str] = MappingProxyType({})

PARTS = "[parts of lines]"
"""Stands above parts of lines, as the marks of the speakers stand above lines. Most parts are of tools' outputs."""

MARK = rf"(?:\[(user|assistant|tool)(?:, ([^\[\]\n]+))?\]|{re.escape(PARTS)})"
"""A mark, with its speaker and its date where it has one."""

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


def as_quoted(line: str) -> str:
    """A line as it may stand under marks. Most have no sign in them that could begin a mark or a tag."""
    return line if line.isascii() and "[" not in line and "<" not in line else quoting.quoted(line)


def parts_as_text(parts: Sequence[str]) -> str:
    """Parts of lines under their mark; empty if there are none."""
    return "\n".join(parts_under_mark(parts))


def parts_under_mark(parts: Sequence[str]) -> list[str]:
    """The same as lines."""
    return [PARTS, *map(as_quoted, parts)] if parts else []


def read(text: str) -> tuple[Line, ...]:
    """The lines and parts of lines of such a text. What stands above the first mark counts as the assistant's."""
    return tuple(
        line._replace(date=date) if date else line for message, date in _as_messages(text) for line in lines_of(message)
    )


def _as_messages(text: str) -> Iterator[tuple[Message, str]]:
    """What stands under each mark, with the date that holds there."""
    first, *rest = _MARK.split(text)
    yield Message("assistant", (Text(quoting.unquoted(first)),)), ""
    date = ""
    for speaker, new, quoted in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        said = Text(quoting.unquoted(quoted))
        date = new or date
        if speaker in ("tool", None):
            yield Message("tool", (ToolResult("evidence", (said,)),)), ""
        else:
            yield Message("user" if speaker == "user" else "assistant", (said,)), date
