"""Sessions on disk: which kind of file this is, and the conversations in it, in a wire format.

One module for each kind of file, each with ``recognizes`` and ``read``; they are asked in order, the most particular
first, and plain lists of messages last. Every conversation is decoded once here, so that what ``read`` returns
is known to be good, and an error names the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from contextfold import formats
from contextfold.errors import FormatError, InputError, shown
from contextfold.formats.values import kind_of
from contextfold.transcripts import (
    aider,
    claude_code,
    codex,
    copilot,
    events,
    exports,
    frameworks,
    gemini,
    json_lines,
    mlflow,
    pi,
    qwen,
    telemetry,
    unread,
)
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, parse

__all__ = ["Conversation", "read", "read_file"]

_REMEDY = (
    "give a JSON or JSON Lines list of messages, with role and content, an object that holds one, or a session of "
    "Aider, Claude Code, Codex, Gemini CLI, pi or Qwen Code"
)
_EMPTY = "the JSON object is empty"
_SESSIONS: tuple[tuple[Callable[[TranscriptFile], bool], Callable[[TranscriptFile], list[Conversation]]], ...] = tuple(
    (kind.recognizes, kind.read)
    for kind in (aider, claude_code, codex, copilot, pi, gemini, qwen, exports, events, frameworks, telemetry, mlflow)
)


def read(data: bytes, *, name: str, format: str | None = None) -> list[Conversation]:
    """The conversations in the bytes of a file called ``name``.

    ``format`` names the format of a list of messages instead of having it detected. Raises ``InputError`` in one
    line that names the file, the place, what is wrong, and what to do.
    """
    if format is not None:
        formats.get(format)
    document = parse(data, name)
    conversations = _read(document, format)
    for conversation in conversations:
        _check(document, conversation)
    return conversations


def read_file(path: str | PathLike[str], *, format: str | None = None) -> list[Conversation]:
    """The conversations in a file. Raises ``InputError`` also where it cannot be opened."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: give the path of a readable file") from None
    return read(data, name=str(path), format=format)


def _read(document: TranscriptFile, format: str | None) -> list[Conversation]:
    for recognizes, read_session in _SESSIONS:
        if recognizes(document):
            return _of_format(read_session(document), format)
    if document.value is not None and json_lines.recognizes(document):
        return json_lines.read(document, format)
    if known := unread.told(document):
        what, remedy = known
        raise InputError(f"{document.name}: it looks like {what}: {remedy}")
    raise InputError(f"{document.name}: {_nothing_found(document)}: {_REMEDY}")


def _of_format(conversations: list[Conversation], format: str | None) -> list[Conversation]:
    """Sessions have one format; another one named by the caller is a mistake."""
    for conversation in conversations:
        if format is not None and format != conversation.format:
            raise InputError(
                f"{conversation.name}: a file of kind {conversation.kind} is read as {conversation.format}, "
                f"not {format}: leave the format out"
            )
    return conversations


def _check(document: TranscriptFile, conversation: Conversation) -> None:
    try:
        formats.decode(conversation.messages, formats.get(conversation.format))
    except RecursionError:
        raise InputError(f"{conversation.name}: a message is nested too deeply to be one") from None
    except FormatError as error:
        place = f"message {error.index}"
        if error.index is not None and conversation.messages == document.value:
            place = document.place(error.index)
        raise InputError(
            f"{conversation.name}: {place}: {error.problem}: mend it, or name the right format "
            f"(it was read as {conversation.format})"
        ) from None


def _nothing_found(document: TranscriptFile) -> str:
    if document.value is None:
        return "this is neither JSON nor JSON Lines"
    if isinstance(document.value, dict):
        return f"no list of messages in this JSON object{_keys(document.value)}" if document.value else _EMPTY
    first = document.value[0]
    return f"{document.place(0)} is {kind_of(first)} and no message{_keys(first)}"


def _keys(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    # Keys may be anything, such as titles: each is cut, and none breaks the line.
    keys = ", ".join(shown(key, 60).strip("'\"") for key in list(value)[:6])
    return f" (its keys: {keys})" if keys else ""
