"""Which lines the stub summarizer picks: those of the first request, and then the most salient of the rest.

Salience is tf-idf over lines: a line counts that is full of terms which come again, but not everywhere.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from benchmarks.replay import tokens

Turn: TypeAlias = tuple[str, str]
"""Role and text."""

REQUEST_TOKENS = 250
"""What the first request may take of a summary."""
SMALLEST_REST = 20
"""Tokens: with less room than this nothing more is tried."""
LINE_CHARACTERS = 300
_TERM = re.compile(r"[A-Za-z_][\w./-]{3,}|\d{4,}|[\u3040-\u30ff\u3400-\u9fff]{2}")
_SENTENCE_END = re.compile(r"(?<=[.!?;。！？；])\s*")
_TYPED = re.compile(r"^\W{0,3}(?:user|human)\b\W", re.IGNORECASE)


def extract(turns: Sequence[Turn], limit: int) -> str:
    """Lines of the turns, in their own order, in at most ``limit`` tokens."""
    lines = [(role, line) for role, text in turns for line in split(text)]
    chosen, spent = _first_request(turns, lines)
    seen = {lines[number][1] for number in chosen}
    for number in _by_salience(lines):
        line = lines[number][1]
        if line in seen:
            continue
        cost = tokens.count(line) + 1
        if spent + cost > limit:
            if limit - spent < SMALLEST_REST:
                break
            continue
        seen.add(line)
        chosen.append(number)
        spent += cost
    return tokens.clip("\n".join(lines[number][1] for number in sorted(chosen)), limit)


def split(text: str) -> list[str]:
    """The lines of a text, long ones cut at the ends of sentences; blank ones left out."""
    found = []
    for line in map(str.strip, text.splitlines()):
        while len(line) > LINE_CHARACTERS:
            ends = [match.end() for match in _SENTENCE_END.finditer(line, 40, LINE_CHARACTERS)]
            cut = ends[-1] if ends else LINE_CHARACTERS
            found.append(line[:cut].strip())
            line = line[cut:]
        if line:
            found.append(line)
    return found


def _first_request(turns: Sequence[Turn], lines: Sequence[Turn]) -> tuple[list[int], int]:
    """Numbers of the first lines of the first user message, and the tokens they take."""
    chosen: list[int] = []
    spent = 0
    for number in _request(turns, lines):
        cost = tokens.count(lines[number][1]) + 1
        if spent + cost > REQUEST_TOKENS:
            break
        chosen.append(number)
        spent += cost
    return chosen, spent


def _request(turns: Sequence[Turn], lines: Sequence[Turn]) -> range:
    """The first user message; of a prompt that is one text, from the first line on that says it is the user's."""
    first = next((text for role, text in turns if role == "user"), None)
    if first is not None:
        start = next((number for number, (role, _) in enumerate(lines) if role == "user"), 0)
        return range(start, start + len(split(first)))
    start = next((number for number, (_, line) in enumerate(lines) if _TYPED.match(line)), 0)
    return range(start, len(lines))


def _by_salience(lines: Sequence[Turn]) -> Iterator[int]:
    """Numbers of the lines that have at least two terms, the most salient first."""
    terms = [sorted(set(_TERM.findall(line))) for _, line in lines]  # sorted: sums must not depend on a set's order
    spread = Counter(term for found in terms for term in found)
    total = len(lines) + 1

    def score(found: Sequence[str]) -> float:
        weights = (math.log(1 + spread[term]) * math.log(total / spread[term]) for term in found)
        return sum(weights) / math.sqrt(len(found) + 4)

    scores = [score(found) for found in terms]
    yield from sorted((n for n in range(len(lines)) if len(terms[n]) >= 2), key=lambda n: (-scores[n], n))
