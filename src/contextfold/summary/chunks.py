"""Rendered groups packed into requests: which units go together, and where one that is too long is cut.

What belongs here: pure packing and cutting of text. What does not: what to do with a request that is rejected all the
same (``bisect``). Nothing is lost or repeated: the segments of a unit, joined, are its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from contextfold.summary.render import HEADING

SEPARATOR = "\n\n"

_LABEL = 96
"""Characters at most that ``[part 2 of 5: result of NAME]`` takes; a third of that in tokens."""

_SMALLEST = 32
"""Tokens or characters: a segment is never cut below this for its label's sake."""

_LINE_END = re.compile(r"\n+")
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[。！？；]|(?<=,)(?=\s)")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A rendered group, or a segment of one, with the history indices whose text it carries."""

    text: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """What one request has for material: ``tokens`` (None: unknown) and ``characters``."""

    tokens: int | None
    characters: int

    def holds(self, text: str, count: Callable[[str], int]) -> bool:
        return len(text) <= self.characters and (self.tokens is None or count(text) <= self.tokens)


def pack(units: Sequence[Unit], room: Room, count: Callable[[str], int]) -> list[tuple[Unit, ...]]:
    """Consecutive units in as few chunks as hold them, of sizes as even as can be.

    A unit that alone exceeds the room is cut into segments first. ``count`` gives the tokens of a text.
    """
    whole = [part for unit in units for part in split(unit, room, count)]
    return [
        tuple(whole[place] for place in places) for places in partition([_load(u.text, room, count) for u in whole])
    ]


def partition(loads: Sequence[float]) -> list[range]:
    """Consecutive places whose loads sum to at most 1, in as few and as even ranges as can be.

    A load above 1 stands alone.
    """
    capacity = _least_capacity(loads)
    ranges: list[range] = []
    filled = 0.0
    for place, load in enumerate(loads):
        if not ranges or filled + load > capacity:
            ranges.append(range(place, place))
            filled = 0.0
        ranges[-1] = range(ranges[-1].start, place + 1)
        filled += load
    return ranges


def joined(units: Sequence[Unit]) -> Unit:
    """Units as one, to be cut by size."""
    return Unit(SEPARATOR.join(unit.text for unit in units), tuple(dict.fromkeys(n for u in units for n in u.indices)))


def split(unit: Unit, room: Room, count: Callable[[str], int]) -> list[Unit]:
    """The unit itself, or its segments: each says which part it is and under which heading it continues."""
    if room.holds(unit.text, count):
        return [unit]
    headings = [(found.start(), found[0].strip("[]")) for found in HEADING.finditer(unit.text)]
    pieces = cut(unit.text, _segment_room(room), count)
    segments, start = [], 0
    for number, piece in enumerate(pieces, 1):
        under = [name for place, name in headings if place < start or (number > 1 and place <= start)]
        where = f": {under[-1][: _LABEL - 32]}" if under and not HEADING.match(piece) else ""
        segments.append(Unit(f"[part {number} of {len(pieces)}{where}]\n{piece}", unit.indices))
        start += len(piece)
    return segments


def _segment_room(room: Room) -> Room:
    """Room for one segment below its label."""
    # Half a chunk, so that segments and their neighbors fill chunks well.
    tokens = None if room.tokens is None else max(_SMALLEST, room.tokens // 2 - _LABEL // 3)
    return Room(tokens, max(_SMALLEST, room.characters // 2 - _LABEL))


def cut(text: str, room: Room, count: Callable[[str], int]) -> list[str]:
    """Pieces that each fit, in order and without loss: cut at ends of lines, else of sentences, else anywhere."""
    pieces: list[str] = []
    waiting = [text]
    while waiting:
        piece = waiting.pop()
        if len(piece) <= 1 or room.holds(piece, count):
            pieces.append(piece)
        else:
            waiting += reversed(list(_even_pieces(piece, _pieces_needed(piece, room, count))))
    return pieces


def clip(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """The beginning of the text that fits ``tokens``, ended at a boundary, with a mark that says how much is gone."""
    if count(text) <= tokens:
        return text
    keep = len(text)
    while keep > 0:
        keep = min(keep - 1, int(keep * 0.9))
        head = text[: _boundary(text, keep)].rstrip()
        clipped = f"{head}\n[{len(text) - len(head):,} characters cut]"
        if count(clipped) <= tokens:
            return clipped
    return ""


def _pieces_needed(text: str, room: Room, count: Callable[[str], int]) -> int:
    by_characters = -(-len(text) // max(1, room.characters))
    by_tokens = 1 if room.tokens is None else -(-count(text) // max(1, room.tokens))
    return min(max(2, by_characters, by_tokens), len(text))


def _even_pieces(text: str, number: int) -> Iterator[str]:
    start = 0
    for left in range(number, 1, -1):
        end = _boundary(text, start + max(1, (len(text) - start) // left), start)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _boundary(text: str, wanted: int, start: int = 0) -> int:
    """The best place to cut at or a little before ``wanted``: after a line, a sentence, a space; else right there."""
    earliest = max(start + 1, wanted - max(1, (wanted - start) // 4))
    for pattern in (_LINE_END, _SENTENCE_END, _SPACE):
        ends = [found.end() for found in pattern.finditer(text, earliest, wanted)]
        if ends:
            return ends[-1]
    return max(start + 1, wanted)


def _load(text: str, room: Room, count: Callable[[str], int]) -> float:
    characters = (len(text) + len(SEPARATOR)) / max(1, room.characters)
    return characters if room.tokens is None else max(characters, (count(text) + 1) / max(1, room.tokens))


def _least_capacity(loads: Sequence[float]) -> float:
    """The smallest capacity that needs no more chunks than a full room does (the linear partition problem)."""
    needed = _chunks_needed(loads, 1.0)
    low, high = max(loads, default=0.0), max(1.0, max(loads, default=0.0))
    for _ in range(20):  # halvings of the interval: to a millionth of the room
        middle = (low + high) / 2
        if _chunks_needed(loads, middle) <= needed:
            high = middle
        else:
            low = middle
    return high


def _chunks_needed(loads: Sequence[float], capacity: float) -> int:
    chunks, filled = 0, capacity + 1
    for load in loads:
        if filled + load > capacity:
            chunks, filled = chunks + 1, 0.0
        filled += load
    return chunks
