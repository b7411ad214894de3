"""What is appended to a thread's file at a time, and how a file is read back.

    # Conversation "support-4711"                                     once, at the top
    ## 2026-11-20T13:05:00+00:00: 36 messages, 12 to 47               a section: what one compaction evicted
    <!-- section bytes=... sha256=... -->                             of all that follows, up to its end mark
    ### 12 user                                                       a message
    <!-- message 12 user digest=... bytes=... -->                     of its text
    ...
    <!-- end of section -->

Sizes make reading safe whatever the messages say, and with the hash show whether a section is whole. Only what is whole
counts: what a crash left half written at the end is cut off before the next section is appended.

What belongs here: bytes in, sections out. What does not: files (``files``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from contextfold.errors import ArchiveError

END = b"<!-- end of section -->\n\n"
_SECTION = re.compile(rb"## [^\n]*\n\n<!-- section bytes=(\d+) sha256=([0-9a-f]{64}) -->\n\n")
_MESSAGE = re.compile(rb"### \d+ \w+\n\n<!-- message (\d+) (\w+) digest=([0-9a-f]+) bytes=(\d+) -->\n\n")


@dataclass(frozen=True, slots=True)
class Section:
    """One archived message: its index in the history, its role, its text, and the digest of what it said."""

    index: int
    role: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where messages went: the address of the file, and which messages of the history it now holds of this append."""

    address: str
    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the file an entry's text stands, in bytes."""

    index: int
    role: str
    digest: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a file holds: the places of all entries of whole sections, and where the last of these ends."""

    places: tuple[Place, ...]
    end: int

    def then(self, data: bytes) -> Scan:
        """What it holds once ``data`` stands behind its end: a whole section, below the heading in a new file."""
        before = b"\n" if self.end else b""
        shift = self.end - len(before)
        added = scan(before + data, "what was appended")
        places = (replace(one, start=one.start + shift, stop=one.stop + shift) for one in added.places)
        return Scan((*self.places, *places), shift + added.end)


def heading(thread: str) -> bytes:
    """The top of a new file. A thread id is quoted, so that it can neither break the layout nor hide in it."""
    shown = json.dumps(thread[:200]).replace("--", "-\\u002d")
    text = "The messages that left the model's context, word for word. Sections are appended and never changed."
    return f"# Conversation {shown}\n\n{text}\n\n".encode()


def section(entries: Sequence[Section], at: datetime) -> bytes:
    """The bytes to append for entries, which must be at least one."""
    body = b"".join(_message(entry) for entry in entries)
    digest = hashlib.sha256(body).hexdigest()
    first, last = entries[0].index, entries[-1].index
    title = f"## {at.isoformat(timespec='seconds')}: {len(entries)} messages, {first} to {last}\n\n"
    return f"{title}<!-- section bytes={len(body)} sha256={digest} -->\n\n".encode() + body + END


def _message(entry: Section) -> bytes:
    text = entry.text.encode("utf-8", "surrogatepass")
    mark = f"<!-- message {entry.index} {entry.role} digest={entry.digest} bytes={len(text)} -->"
    return f"### {entry.index} {entry.role}\n\n{mark}\n\n".encode() + text + b"\n\n"


def scan(data: bytes, address: str) -> Scan:
    """The entries of a file.

    What is incomplete at the very end was left by a crash and does not count. Raises ``ArchiveError`` where anything
    before that is not what was written.
    """
    start = data.find(b"\n## ")
    if start < 0:
        return Scan((), _whole_heading(data))
    position, places = start + 1, []
    while position < len(data):
        found = _SECTION.match(data, position)
        end = found.end() + int(found[1]) if found else len(data)
        whole = found is not None and data.startswith(END, end)
        if found is None or not whole:
            if not _is_torn(data, position, found):
                raise ArchiveError(f"{address} is damaged at byte {position:,}: a section there is not whole")
            break
        if hashlib.sha256(data[found.end() : end]).hexdigest().encode() != found[2]:
            raise ArchiveError(
                f"{address} is damaged: the section at byte {position:,} was changed after it was written"
            )
        places += _places(data, found.end(), end)
        position = end + len(END)
    return Scan(tuple(places), position)


LONGEST_HEADER = 400
"""Bytes. The header of a section or message is made of numbers and hashes, and is shorter."""


def _is_torn(data: bytes, position: int, section: re.Match[bytes] | None) -> bool:
    """Whether the section at ``position`` is one that a crash cut off: the file ends inside of it."""
    if section is None:
        return _is_torn_header(data, position, b"## ")
    # Only sizes are followed, never words: a torn message may quote any of our marks. A size that was changed is not
    # taken for a tear, because the messages inside have sizes of their own, which lead to the real end mark.
    position, stop = section.end(), section.end() + int(section[1])
    while position < min(stop, len(data)):
        found = _MESSAGE.match(data, position)
        if found is None:
            return _is_torn_header(data, position, b"### ")
        position = found.end() + int(found[4]) + len(b"\n\n")
    return position >= len(data) or (position == stop and END.startswith(data[stop:]))


def _is_torn_header(data: bytes, position: int, start: bytes) -> bool:
    rest = data[position : position + LONGEST_HEADER + 1]
    begins = rest.startswith(start) or start.startswith(rest)
    return begins and len(rest) <= LONGEST_HEADER and b"-->\n\n" not in rest


def _whole_heading(data: bytes) -> int:
    """The size of a heading without sections; 0 where not even that is whole."""
    return len(data) if data.endswith(b"never changed.\n\n") else 0


def _places(data: bytes, start: int, stop: int) -> list[Place]:
    places = []
    while start < stop:
        found = _MESSAGE.match(data, start)
        if found is None:
            break
        first = found.end()
        last = first + int(found[4])
        places.append(Place(int(found[1]), found[2].decode(), found[3].decode(), first, last))
        start = last + 2
    return places


def entry_at(place: Place, text: bytes) -> Section:
    """The entry of a place, from the bytes that stand there."""
    return Section(place.index, place.role, text.decode("utf-8", "surrogatepass"), place.digest)
