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

from contextfold import quoting
from contextfold.evidence.blocks import SOURCES
from contextfold.evidence.lines import Line, lines_of
from contextfold.messages import Message, Text, ToolResult

PARTS = "[parts of lines]"
"""Stands above parts of lines, as the marks of the speakers stand above lines. Most parts are of tools' outputs."""

_MARK = re.compile(rf"^(?:\[(user|assistant|tool)\]|{re.escape(PARTS)})$", re.MULTILINE)


def lines_under_marks(quoted: Mapping[int, str], speakers: bytes, chosen: Iterable[int]) -> list[str]:
    """The chosen ones of the lines, by their numbers, in their order. A mark stands where the speaker changes.

    ``quoted``: the lines as they may stand there (``as_quoted``). ``speakers``: for each line the place of its speaker
    in ``blocks.SOURCES``.
    """
    lines: list[str] = []
    speaker = -1
    for n in sorted(chosen):
        if speakers[n] != speaker:
            speaker = speakers[n]
            lines.append(f"[{SOURCES[speaker]}]")
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
    return tuple(line for message in _as_messages(text) for line in lines_of(message))


def _as_messages(text: str) -> Iterator[Message]:
    first, *rest = _MARK.split(text)
    first, rest[1::2] = quoting.unquoted(first), [quoting.unquoted(said) for said in rest[1::2]]
    yield Message("assistant", (Text(first),))
    for speaker, said in zip(rest[::2], rest[1::2], strict=True):
        if speaker in ("tool", None):
            yield Message("tool", (ToolResult("evidence", (Text(said),)),))
        else:
            yield Message("user" if speaker == "user" else "assistant", (Text(said),))
