"""Kinds of transcript files that the benchmarks replay and that users of the package do not have.

Event lists of UI-TARS, HTTP recordings (VCR cassettes), chat replays of VS Code, and dialogues without tools; all other
kinds are those of ``contextfold.transcripts``.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.kinds import agent_events, cassettes, chat_replay, dialogues
from contextfold import transcripts
from contextfold.errors import InputError
from contextfold.transcripts import Conversation
from contextfold.transcripts.document import TranscriptFile, parse

__all__ = ["Conversation", "TranscriptFile", "read", "read_file"]


def read_file(path: Path) -> list[Conversation]:
    """The conversations in a file, of these kinds or of the package's. Raises ``InputError``."""
    return read(path.read_bytes(), name=str(path))


def read(data: bytes, *, name: str) -> list[Conversation]:
    """The conversations in the bytes of a file. Dialogues come last, because their shapes are the least particular."""
    document = parse(data, name)
    for kind in (agent_events, cassettes, chat_replay):
        if kind.recognizes(document):
            return kind.read(document)
    try:
        return transcripts.read(data, name=name)
    except InputError:
        if not dialogues.recognizes(document):
            raise
        return dialogues.read(document)
