"""Aider's chat histories (``.aider.chat.history.md``): Markdown, whose lines tell by how they begin whose they are.

``####`` stands before what the person typed, ``>`` before what Aider itself showed; all else is the model's. A file
holds every chat that was begun in its folder, and each is a conversation. What Aider showed no model was sent, and it
is left out, but for the output of a command that the person ran: that is written as Aider sends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from contextfold.errors import InputError
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "aider"
BEGINS = "# aider chat started at "
TYPED, SHOWN, END = "####", ">", "  "
"""What stands before each line of the person's and of Aider's, and behind it: a line break of Markdown's."""
RAN = "I ran this command:\n\n{}\n\nAnd got this output:\n\n{}"
_RUNS = re.compile(r"(?:/(?:run|test|git|lint)\b|!).*")
_KEPT_BACK = re.compile(r"to the chat\?[^?\n]*: no?$", re.MULTILINE)
"""What Aider asks of such an output, and that the person would not have the model read it."""


def recognizes(document: TranscriptFile) -> bool:
    return document.value is None and (document.text.startswith(BEGINS) or f"\n{BEGINS}" in document.text)


def read(document: TranscriptFile) -> list[Conversation]:
    chats: list[list[str]] = [[]]
    for line in document.text.replace("\r\n", "\n").split("\n"):
        if line.startswith(BEGINS):
            chats.append([])
        else:
            chats[-1].append(line)
    # An editor may have taken away blanks at the ends of lines; a heading of the model's has none there either.
    end = END if any(line.startswith(TYPED) and line.endswith(END) for chat in chats for line in chat) else ""
    each = [list(_messages(chat, end)) for chat in chats]
    said = [messages for messages in each if any(message["role"] == "user" for message in messages)]
    if not said:
        problem = "no model was asked anything in this chat history of Aider's"
        raise InputError(f"{document.name}: {problem}: give one with a chat in it")
    names = document.names(len(said))
    return [Conversation(name, "openai-chat", one, KIND) for name, one in zip(names, said, strict=True)]


def _messages(lines: Sequence[str], end: str) -> Iterator[dict[str, str]]:
    command = None
    for mark, group in groupby(lines, lambda line: _mark(line, end)):
        text = "\n".join(line.removeprefix(mark).removeprefix(" ").rstrip() if mark else line for line in group)
        text = text.strip("\n") if mark != TYPED else text.strip()
        if not text.strip():
            continue
        if mark == TYPED:
            found = _RUNS.fullmatch(text)
            command = text if found else None
            if not found:
                yield {"role": "user", "content": text}
        elif mark == SHOWN:
            if command is not None and not _KEPT_BACK.search(text):
                yield {"role": "user", "content": RAN.format(command, text)}
            command = None
        else:
            yield {"role": "assistant", "content": text}


def _mark(line: str, end: str) -> str:
    """Whose a line is: what stands before the person's and Aider's, and nothing before the model's."""
    marks = (mark for mark in (TYPED, SHOWN) if line.startswith(f"{mark} ") or line == mark)
    return next(marks, "") if line.endswith(end) else ""
