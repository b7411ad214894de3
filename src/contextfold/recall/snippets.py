"""The place in a text that a query is about, short enough to show.

What belongs here: choosing and cutting that place. What does not: finding the text (``store``).
"""

from __future__ import annotations

import re

from contextfold.recall.words import Query, words_of

WIDTH = 240
"""Characters of a snippet."""


def snippet(text: str, query: Query, width: int = WIDTH) -> str:
    """At most ``width`` characters of ``text`` around where it first holds a term of the query, on one line.

    Ellipses show where it was cut. Where nothing is found (an accent, a full-width letter), the beginning is shown.
    """
    line = re.sub(r"\s+", " ", text).strip()
    if len(line) <= width:
        return line
    room = width - 2
    place = _first(line, query)
    start = max(0, min(place - room // 3, len(line) - room))
    shown = line[start : start + room]
    return ("…" if start else "") + shown + ("…" if start + room < len(line) else "")


def _first(line: str, query: Query) -> int:
    """Where the first whole term stands, else the first word of any, else 0."""
    lowered = line.lower()
    whole = [found.start() for term in query.terms if (found := re.search(_pattern(term), lowered))]
    if whole:
        return min(whole)
    single = [place for term in query.terms for word in term if (place := lowered.find(word)) >= 0]
    return min(single, default=0)


def _pattern(term: tuple[str, ...]) -> str:
    """The words of a term with anything but letters between them; CJK pairs overlap, so they are joined again."""
    runs: list[str] = []
    for word in term:
        if runs and len(word) == 2 and runs[-1].endswith(word[0]) and not word.isascii():
            runs[-1] += word[1]
        else:
            runs.append(word)
    return r"[\W_]*".join(re.escape(run) for run in runs)


def holds(text: str, query: Query) -> bool:
    """Whether a text has every term of a query: what a full-text index must answer, one text at a time."""
    words = list(words_of(text))
    return all(
        any(
            tuple(words[n : n + len(term)]) == term
            or (
                prefix
                and tuple(words[n : n + len(term) - 1]) == term[:-1]
                and _begins(words, n + len(term) - 1, term[-1])
            )
            for n in range(len(words))
        )
        for term, prefix in zip(query.terms, query.prefixes, strict=True)
    )


def _begins(words: list[str], place: int, start: str) -> bool:
    return place < len(words) and words[place].startswith(start)
