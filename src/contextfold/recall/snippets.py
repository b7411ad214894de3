"""The place in a text that a query is about, short enough to show.

What belongs here: choosing and cutting that place. What does not: finding the text (``ranking``).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from contextfold.recall import stems
from contextfold.recall.words import Query, WordUnit, is_cjk, unescaped

WIDTH = 240
"""Characters of a snippet."""

_LOOKED_AT = 200_000
"""Characters of a long text in which the place is looked for."""

_MOST_PLACES = 20
_MOST_UNITS = 50
"""Of a query, that are found in a text: no more of them stand in one snippet."""

_WORD = re.compile(r"\w+")

_BEFORE, _BEHIND = r"(?<![^\W_])", r"(?![^\W_])"
"""Where no letter or digit stands before, or behind."""


def snippet(text: str, query: Query, width: int = WIDTH) -> str:
    """At most ``width`` characters of ``text`` around where it holds most of a query, on one line.

    Ellipses show where it was cut. Where nothing is found (an accent, a full-width letter), the beginning is shown.
    """
    line = re.sub(r"\s+", " ", unescaped(text[: _LOOKED_AT * 2])).strip()
    if len(line) <= width:
        return line
    room = width - 2
    # A quarter of the room shows what leads to the place.
    start = max(0, min(_first(line, query, room) - room // 4, len(line) - room))
    shown = line[start : start + room]
    return ("…" if start else "") + shown + ("…" if start + room < len(line) else "")


def _first(line: str, query: Query, room: int) -> int:
    """Where the stretch begins that has the most units of a query, names and quoted words counting most."""
    lowered = line[:_LOOKED_AT].lower()
    if len(lowered) != len(line[:_LOOKED_AT]):  # a few letters are two in lower case, and places would be off
        lowered = "".join(small if len(small := letter.lower()) == 1 else letter for letter in line[:_LOOKED_AT])
    found: list[tuple[int, int, int]] = []  # place, unit, weight
    held = " ".join(set(_WORD.findall(lowered)))
    units = 0
    for number, unit in sorted(enumerate(query.units), key=lambda one: not one[1].exact):
        if units == _MOST_UNITS:
            break
        before = len(found)
        places = list(_places(lowered, unit, held))
        if places:
            found += [(place, number, 4 if unit.exact else 1) for place in places]
        else:
            others = unit.instead or tuple(WordUnit((word,)) for word in unit.words if len(unit.words) > 1)
            parts = filter(None, (list(_places(lowered, other, held)) for other in others))
            inner = [place for places in islice(parts, _MOST_UNITS) for place in places]
            found += [(place, number, 1) for place in inner or _inside(lowered, unit, held)]
        units += len(found) > before
    found.sort()
    starts = [place for place, _, _ in found]

    def worth(n: int) -> int:
        within = found[n : bisect.bisect_left(starts, found[n][0] + room * 2 // 3)]
        return sum({number: weight for _, number, weight in within}.values())

    return found[max(range(len(found)), key=lambda n: (worth(n), -n))][0] if found else 0


def _places(line: str, unit: WordUnit, held: str) -> Iterator[int]:
    """Where a unit stands: its words with anything but letters between them, a plain word in any of its forms.

    ``held``: the different words of the line. A pasted log asks for a thousand words, most of which a line has not:
    to look for them all in all of it takes minutes.
    """
    forms, is_any, pattern = _pattern(unit)
    if not (any if is_any else all)(form in (held if _WORD.fullmatch(form) else line) for form in forms):
        return
    for number, match in enumerate(re.finditer(pattern, line)):
        if number == _MOST_PLACES:
            return
        yield match.start()


def _inside(line: str, unit: WordUnit, held: str) -> list[int]:
    """Where a word stands inside another, such as ``token`` in ``refreshUserToken``."""
    word = unit.words[0]
    place = line.find(word) if len(unit.words) == 1 and (word in held or not _WORD.fullmatch(word)) else -1
    return [place] if place >= 0 else []


def _pattern(unit: WordUnit) -> tuple[Sequence[str], bool, str]:
    """What a line must have, all of it or any, and the pattern of the whole."""
    runs: list[str] = []
    for word in unit.words:  # CJK pairs overlap, so they are joined again
        if runs and len(word) == 2 and runs[-1].endswith(word[0]) and is_cjk(word):
            runs[-1] += word[1]
        else:
            runs.append(word)
    if len(runs) == 1 and not is_cjk(runs[0]) and not unit.required:
        forms = sorted({runs[0], *(form for form in stems.variants(runs[0]) if len(form) > 3)}, key=len)
        ending = r"\w*" if unit.prefix else r"\w{0,4}(?!\w)"
        return forms, True, r"(?<!\w)(?:" + "|".join(map(re.escape, forms)) + ")" + ending
    # as words: ``views.py`` is neither in ``reviews.py`` nor in ``views pygments``
    begins = "" if is_cjk(runs[0]) else _BEFORE
    ends = "" if unit.prefix or is_cjk(runs[-1]) else _BEHIND
    return runs, False, begins + r"[\W_]*".join(re.escape(run) for run in runs) + ends
