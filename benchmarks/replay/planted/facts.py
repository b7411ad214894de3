"""The forty facts of the planted-facts measure, in four languages.

What belongs here: reading ``facts.yaml`` into values, and whether a text still tells a fact. What does not:
where facts go in a conversation (``planting``) and when they are asked for (``retention``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["en", "zh", "ja", "de"]
Voice = Literal["user", "assistant", "tool"]

LANGUAGES: tuple[Language, ...] = ("en", "zh", "ja", "de")
KINDS = (
    "decision",
    "rejected option",
    "constraint",
    "path",
    "id",
    "number with unit",
    "command with outcome",
    "error",
    "preference",
    "open question",
)

NEAR = 200
"""Characters within which all parts of a fact must begin to count as one statement: about two lines."""

_BLANK = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Fact:
    """One invented fact in one language: the ``sentence`` as it is said, and the ``parts`` that must come back."""

    number: int
    kind: str
    voice: Voice
    language: Language
    sentence: str
    parts: tuple[str, ...]


@cache
def facts(language: Language) -> tuple[Fact, ...]:
    """All facts as they are said in a language, ordered so that neighbors are of different kinds."""
    entries = _entries()
    by_kind = [[(n, entry) for n, entry in enumerate(entries) if entry["kind"] == kind] for kind in KINDS]
    rounds = [pair for turn in zip(*by_kind, strict=True) for pair in turn]
    return tuple(_fact(number, entry, language) for number, entry in rounds)


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    import yaml

    return tuple(yaml.safe_load((Path(__file__).parent / "facts.yaml").read_text(encoding="utf-8")))


def _fact(number: int, entry: dict[str, Any], language: Language) -> Fact:
    sentence, *parts = entry[language]
    return Fact(number, entry["kind"], entry["voice"], language, sentence, tuple(parts))


def squeezed(text: str) -> str:
    """The text in lower case with every run of blanks as one, so that a line break inside a sentence is no loss."""
    return _BLANK.sub(" ", text).lower()


def is_verbatim(fact: Fact, text: str) -> bool:
    """Whether the ``squeezed`` text holds the whole sentence."""
    return squeezed(fact.sentence) in text


def parts_together(fact: Fact, text: str) -> int:
    """The largest number of the fact's parts that stand together (``NEAR``) in the ``squeezed`` text.

    A part alone is worth nothing when the fact has several: a name without what was said of it is no answer. So the
    result is the number of all parts if it has one, and 0 or at least 2 otherwise.
    """
    places = [list(_places(squeezed(part), text)) for part in fact.parts]
    best = max((_count_near(anchor, places) for found in places for anchor in found), default=0)
    return best if best > 1 or len(fact.parts) == 1 else 0


def is_told(fact: Fact, text: str) -> bool:
    """Whether all parts of the fact stand together in the ``squeezed`` text."""
    return parts_together(fact, text) == len(fact.parts)


def _count_near(start: int, places: Sequence[Sequence[int]]) -> int:
    """How many parts begin within ``NEAR`` characters from ``start`` on."""
    return sum(any(start <= place <= start + NEAR for place in found) for found in places)


def _places(part: str, text: str) -> Iterator[int]:
    """Where the part stands, and not inside a longer word or number."""
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        if not (_continues(text[start - 1 : start], part[0]) or _continues(part[-1], text[end : end + 1])):
            yield start
        start = text.find(part, start + 1)


def _continues(left: str, right: str) -> bool:
    """Whether the border between two characters lies inside an ASCII word."""
    return _is_word(left) and _is_word(right)


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
