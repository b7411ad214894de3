"""The value that every reader of transcript files gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Conversation:
    """One conversation of a file.

    ``name`` is the file's name, with ``#n`` where the file holds several. ``format`` is the wire format of
    ``messages``, and ``kind`` says what sort of file it was read from, such as ``claude-code`` or ``messages``.
    ``tools`` are declarations that stand beside the messages in a recorded request. ``left_out`` says in words what of
    the file is in none of its conversations, though it might be taken for a part of one.
    """

    name: str
    format: str
    messages: list[Any]
    kind: str
    tools: tuple[Any, ...] = ()
    left_out: tuple[str, ...] = ()
    id: str = ""
