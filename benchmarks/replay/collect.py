"""Which conversations are replayed: those of a folder, in every kind of file that ``benchmarks.kinds`` reads.

What belongs here: finding, reading and choosing. What does not: the example sessions (``sessions``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kinds import Conversation as Transcript
from benchmarks.kinds import read_file
from benchmarks.replay import tokens
from benchmarks.replay.chat import rendered
from benchmarks.replay.conversation import Conversation, build
from contextfold import formats
from contextfold.errors import InputError
from contextfold.messages import Message

NOT_TRANSCRIPTS = ("LICENSE", "README", "SPLIT", "probing", ".")
"""How names of files begin that lie beside transcripts and hold none."""
BANDS = ((24_000, 48_000), (48_000, 10**9))
"""Tokens. ``limit`` applies to each band by itself, so that the long do not crowd out the middling."""


@dataclass(frozen=True)
class Place:
    """Where a conversation is: a file below the folder of data, and its number in the file."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}#{self.number}"


@dataclass(frozen=True)
class Found:
    """A conversation long enough to fill a window, with its size in tokens."""

    place: Place
    source: str
    tokens: int
    digest: str


def files(data: Path) -> list[str]:
    """Every file below a folder that could hold conversations, as paths relative to it, in a fixed order."""
    if data.is_file():
        return [data.name]
    found = (path.relative_to(data) for path in data.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not path.name.startswith(NOT_TRANSCRIPTS))


def read(data: Path, file: str) -> list[Conversation]:
    """The conversations of one file, ready to be replayed. Raises ``InputError`` where it holds none."""
    path = data if data.is_file() else data / file
    source = Path(file).parent.as_posix()
    return [
        build(f"{file}#{number}", Path(file).stem if source == "." else source, _decoded(found))
        for number, found in enumerate(read_file(path))
    ]


def _decoded(conversation: Transcript) -> list[Message]:
    return formats.decode(conversation.messages, formats.get(conversation.format))


def survey(data: Path, file: str) -> tuple[list[Found], str]:
    """The conversations of a file that are long enough, and what is wrong with the file, if something is."""
    try:
        conversations = read(data, file)
    except InputError as error:
        return [], str(error)
    found = []
    for number, conversation in enumerate(conversations):
        if sum(len(rendered(message)) for message in conversation.messages) < BANDS[0][0]:
            continue  # fewer characters than tokens wanted
        size = sum(tokens.message_tokens(message) for message in conversation.messages)
        if size > BANDS[0][0]:
            found.append(Found(Place(file, number), conversation.source, size, conversation.digest))
    return found, ""


def chosen(found: Iterable[Found], limit: int) -> list[Found]:
    """The longest of every source in turn, up to ``limit`` in each band (0: all), longest first.

    A conversation that stands in several files is taken once.
    """
    unique = {entry.digest: entry for entry in sorted(found, key=_longest_first, reverse=True)}
    picked: list[Found] = []
    for low, high in BANDS:
        picked += _in_turn([entry for entry in unique.values() if low < entry.tokens <= high], limit)
    return sorted(picked, key=_longest_first)


def _in_turn(band: Sequence[Found], limit: int) -> list[Found]:
    queues: dict[str, list[Found]] = {}
    for entry in sorted(band, key=_longest_first):
        queues.setdefault(entry.source, []).append(entry)
    ranked = sorted((rank, source) for source, queue in queues.items() for rank in range(len(queue)))
    return [queues[source][rank] for rank, source in ranked[: limit or None]]


def _longest_first(entry: Found) -> tuple[int, str]:
    return -entry.tokens, str(entry.place)
