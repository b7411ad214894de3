"""What stands where something was cut: one grammar of markers, and the one function that cuts inside a string.

A marker such as ``…[1,234 characters shortened]`` or ``…[3 repeated lines, 96 lines shortened]`` counts what is not
there any more. Counts of one unit add up: a cut of a stretch that holds markers leaves one marker with the sums,
so markers are neither nested nor cut, however often a text is shortened.

What belongs here: writing, finding and adding up markers, and cutting a string around them. What does not: deciding
what is worth keeping (``pieces``, ``tool_outputs_json``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

UNITS = ("fields", "items", "blocks", "rows", "sentences", "repeated lines", "lines", "characters")
"""Everything that is ever counted, in the order in which a marker names it."""

_OPENING = "…["
# A stranger may write one, too: Python reads no number of thousands of digits.
_MOST = 10**18 - 1
_COUNT = rf"(?:\d{{1,18}}|\d{{1,3}}(?:,\d{{3}}){{1,5}}) (?:{'|'.join(f'{unit}?' for unit in UNITS)})"
MARKER = re.compile(rf"…\[{_COUNT}(?:, {_COUNT})* shortened\]")
_NUMBER_AND_UNIT = re.compile(r"(?<![\d,])([\d,]++) ([a-z ]+?)(?=, | shortened\])")

_SNAP_SHARE = 0.5
"""Of the kept head: how much of it may be given up so that the cut falls on the end of a line."""


def marker(counts: Mapping[str, int]) -> str:
    """The marker for ``counts`` (unit -> how many were cut). Units with a count of zero are not named."""
    named = [_named(counts[unit], unit) for unit in UNITS if counts.get(unit)]
    return f"{_OPENING}{', '.join(named)} shortened]"


def is_shortened(text: str) -> bool:
    """Whether something was cut from the text and counted."""
    return _OPENING in text and MARKER.search(text) is not None


def counts_in(text: str) -> Counter[str]:
    """What all markers of the text say was cut, added up by unit."""
    counts: Counter[str] = Counter()
    if _OPENING not in text:
        return counts
    for found in MARKER.finditer(text):
        for number, unit in _NUMBER_AND_UNIT.findall(found.group()):
            counts[unit if unit.endswith("s") else f"{unit}s"] += int(number.replace(",", ""))
    return counts


def without_markers(text: str) -> str:
    """The text itself: what is left of it when its markers are taken out."""
    return MARKER.sub("", text) if _OPENING in text else text


def cut(text: str, room: int, tail_share: float = 0.0) -> str:
    """The text within ``room`` characters: its head, a marker with the count, and ``tail_share`` of the room its tail.

    A text of several lines is cut at the ends of lines where that costs at most half of what would stay. Where not
    even the marker has room, the marker stands alone.
    """
    if len(text) <= room:
        return text
    kept = max(0, room - len(marker(_hidden(text))))
    tail = int(kept * tail_share)
    start, end = _at_line_ends(text, kept - tail, len(text) - tail)
    start, end = _around_markers(text, start, end)
    return f"{text[:start]}{marker(_hidden(text[start:end]))}{text[end:]}"


def _named(count: int, unit: str) -> str:
    return f"{min(count, _MOST):,} {unit if count != 1 else unit[:-1]}"


def _hidden(stretch: str) -> Counter[str]:
    counts = counts_in(stretch)
    counts["characters"] += len(without_markers(stretch))
    return counts


def _at_line_ends(text: str, start: int, end: int) -> tuple[int, int]:
    line_end = text.rfind("\n", int(start * (1 - _SNAP_SHARE)), start) + 1
    tail = len(text) - end
    line_start = text.find("\n", end - 1, end + int(tail * _SNAP_SHARE)) + 1
    return line_end or start, line_start or end


def _around_markers(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch widened over every marker that it cuts or touches."""
    if _OPENING not in text:
        return start, end
    for found in MARKER.finditer(text):
        if found.start() <= start <= found.end():
            start = found.start()
        if found.start() <= end <= found.end():
            end = found.end()
    return start, end
