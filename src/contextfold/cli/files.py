"""Bytes in and bytes out: FILE or standard input, the conversation that was meant, and outputs written atomically.

What belongs here: paths, streams, and errors that name them. What does not: what the bytes mean (``transcripts``).
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import typer

from contextfold.cli.terminal import say
from contextfold.errors import InputError, shown
from contextfold.transcripts import Conversation, read

STANDARD = "-"
"""What stands for standard input and standard output."""


class SeveralConversations(InputError):
    """A file holds several conversations and none was chosen. ``conversations`` are those it holds, in order."""

    def __init__(self, name: str, conversations: Sequence[Conversation]) -> None:
        self.conversations = tuple(conversations)
        count = len(conversations)
        super().__init__(f"{name} holds {count:,} conversations: choose one with --pick N, from 1 to {count}")


def display_name(file: str) -> str:
    """How messages name the input."""
    return "standard input" if file == STANDARD else file


def load(file: str, *, format: str | None, pick: int | None) -> Conversation:
    """The conversation in a file, or the one with number ``pick``, counted from 1.

    Raises ``InputError`` that names the file when it cannot be read or holds nothing like it, and
    ``SeveralConversations`` when a choice is needed.
    """
    found = load_all(file, format=format, pick=pick)
    if len(found) > 1:
        raise SeveralConversations(display_name(file), found)
    return found[0]


def load_all(file: str, *, format: str | None, pick: int | None) -> list[Conversation]:
    """The conversations in a file, or only the one with number ``pick``. Raises ``InputError`` as ``load`` does."""
    name = display_name(file)
    conversations = read(_read_bytes(file), name=name, format=format)
    if pick is None:
        return _told(name, conversations)
    if not 1 <= pick <= len(conversations):
        held = "one conversation" if len(conversations) == 1 else f"{len(conversations):,} conversations"
        raise InputError(f"{name} holds {held}, so --pick must be from 1 to {len(conversations)}, not {pick}")
    return _told(name, [conversations[pick - 1]])


def _told(name: str, conversations: Sequence[Conversation]) -> list[Conversation]:
    """The conversations, once it is said on standard error what of their file is in none of them."""
    for said in dict.fromkeys(said for one in conversations for said in one.left_out):
        say(f"contextfold: {name}: {said}", err=True)
    return list(conversations)


def _read_bytes(file: str) -> bytes:
    if file == STANDARD and sys.stdin is None:  # what starts a program without one, as ``<&-`` does
        raise InputError("standard input is closed: name a file, or send a conversation through a pipe")
    try:
        return sys.stdin.buffer.read() if file == STANDARD else Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{display_name(file)} cannot be read: {_reason(error)}") from error


def check_writable(output: str, option: str = "--output", *, read: str | None = None) -> None:
    """Raise ``InputError`` if ``output`` plainly cannot be written, so that no one waits for a summary in vain, or if
    it is the file that is ``read``: originals would be gone.
    """
    if output == STANDARD:
        if sys.stdout is None:  # as after ``>&-``: what is written then goes nowhere, without an error
            raise InputError("standard output is closed: name a file, or send it through a pipe")
        return
    path = Path(output)
    try:
        is_folder, has_folder = path.is_dir(), path.absolute().parent.is_dir()
    except OSError as error:  # a name that is longer than a file system has them
        raise InputError(f"{option} {shown(output)} cannot be written: {_reason(error)}") from error
    if is_folder:
        raise InputError(f"{option} {output} is a folder: name a file in it")
    if not has_folder:
        raise InputError(f"{option} {output}: there is no folder {path.absolute().parent}")
    if read is not None and read != STANDARD and path.is_file() and is_same(output, read):
        raise InputError(f"{option} {output} is read as well, and would be gone: name another file")


def is_same(one: str, other: str) -> bool:
    """Whether two names are of one file, as those of a link are: an output would take the place of its own input."""
    return os.path.realpath(one) == os.path.realpath(other)


def of_database(url: str) -> str | None:
    """The file of a database URL, None where it has none (a server, or a database in memory)."""
    scheme, _, rest = url.partition(":///")
    return (rest.partition("?")[0] or None) if scheme.startswith("sqlite") else None


def no_thread(thread: str, store: str, namespace: str) -> InputError:
    """The error for a thread that a store does not hold; the store's password is not told."""
    from contextfold.store import addresses

    among = f"namespace {namespace!r} of {addresses.shown(store)}" if namespace else addresses.shown(store)
    return InputError(f"there is no thread {thread!r} in {among}: see contextfold sessions list")


def write_json(value: Any, output: str = STANDARD) -> None:
    """Write a value as readable JSON."""
    from contextfold.cli.report import json_bytes

    data = json_bytes(value)
    if output == STANDARD:
        check_writable(output)
        typer.echo(data, nl=False)
    else:
        write_atomically(output, data)


def write_atomically(output: str, data: bytes, option: str = "--output") -> None:
    """Write a whole file or nothing: a temporary file beside it takes its place at once. ``option`` named the file.

    A link stays a link, an existing file keeps its permissions, and what is no regular file (a device, a pipe) is
    written directly, because a file must not take its place. Raises ``InputError`` where that fails.
    """
    from contextfold.batch.outputs import whole_file

    path = Path(os.path.realpath(output))
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            with whole_file(path) as file:
                file.write(data)
    except OSError as error:
        raise InputError(f"{option} {output} cannot be written: {_reason(error)}") from error


class _Output(io.FileIO):
    """Standard output whose reader may leave, as ``head`` does: then all is done. Where it is full, ``InputError``."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # What is left in buffers goes nowhere, so that the interpreter does not fail once more at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise SystemExit(0) from None
            raise InputError(f"standard output cannot be written: {_reason(error)}") from error


class _Notes(io.FileIO):
    """Standard error, whose words stand beside the work: where they cannot be written, it goes on without them."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            return super().write(data)
        return len(data)


def guarded(stream: TextIO | None, *, notes: bool = False) -> TextIO | None:
    """Standard output that ends the program in order where it cannot be written; ``notes``: standard error, which
    never ends it. What is no file is left as it is.
    """
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if type(getattr(stream.buffer, "raw", stream.buffer)) is not io.FileIO:  # a console of Windows
        return stream
    file = io.BufferedWriter((_Notes if notes else _Output)(stream.fileno(), "wb", closefd=False))
    return io.TextIOWrapper(file, stream.encoding, stream.errors, line_buffering=stream.line_buffering)


def _reason(error: OSError) -> str:
    """The system's words without number and path, such as ``no such file or directory``."""
    return (error.strerror or str(error)).lower()
