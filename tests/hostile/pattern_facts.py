"""What a regular expression says of all of its matches, read from its parsed form."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

sre: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

ENDLESS = 10**12
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
FEW = 8
"""The most letters of a set that are told apart."""


def looked_at(pattern: str) -> int:
    """The most characters from the beginning of a match that decide about it, with those of what must or must not
    follow."""
    return max(_extent(parser.parse(pattern)))


def _extent(items: Iterable[Any]) -> tuple[int, int]:
    """The characters that are taken at most, and those that are looked at."""
    taken = seen = 0
    for op, value in items:
        if op in REPEATS:
            _, most, inner = value
            once, ahead = _extent(inner)
            most = ENDLESS if most == sre.MAXREPEAT else most
            takes, sees = once * most, once * (most - 1) + max(once, ahead)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            takes, sees = 0, max(_extent(value[1])) if value[0] > 0 else 0
        elif op in (sre.BRANCH, sre.GROUPREF_EXISTS, sre.SUBPATTERN, sre.ATOMIC_GROUP):
            ways = [_extent(one) for one in _ways(op, value)]
            takes, sees = max(one for one, _ in ways), max(one for _, one in ways)
        elif op is sre.GROUPREF:
            takes = sees = 17  # the quote of a value, and its backslashes
        else:
            takes, sees = 0 if op is sre.AT else 1, 1
        seen = max(seen, taken + sees)
        taken += takes
    return taken, seen


def _ways(op: Any, value: Any) -> list[Any]:
    if op is sre.BRANCH:
        return list(value[1])
    if op is sre.GROUPREF_EXISTS:
        return [one or () for one in value[1:]]
    return [value[3] if op is sre.SUBPATTERN else value]


def word_within(words: Sequence[str], pattern: str) -> int:
    """Within so many characters from its beginning each match has one of the words, in lower case; ``ENDLESS``: there
    are matches without one."""
    search = _Words(words)
    return ENDLESS if search.after({"": 0}, parser.parse(pattern)) else search.within


class _Words:
    """``after``: what may have been read of a word where a part of a pattern was matched without a whole one, and the
    most characters until then."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.beginnings = {"", *(word[:n] for word in words for n in range(len(word)))}
        self.within = 0

    def after(self, read: dict[str, int], items: Iterable[Any]) -> dict[str, int]:
        for op, value in items:
            if op is sre.LITERAL:
                read = self.letters(read, {chr(value).lower()})
            elif op is sre.IN and len(value) <= FEW and all(one is sre.LITERAL for one, _ in value):
                read = self.letters(read, {chr(letter).lower() for _, letter in value})
            elif op in REPEATS:
                least, most, inner = value
                once = self.after(read, inner)
                again = (
                    {"": max(once.values(), default=0) + (most - 1) * _extent(inner)[0]} if most > 1 and once else {}
                )
                read = joined(once, again, read if least == 0 else {})
            elif op in (sre.BRANCH, sre.GROUPREF_EXISTS, sre.SUBPATTERN, sre.ATOMIC_GROUP):
                read = joined(*(self.after(read, one) for one in _ways(op, value)))
            elif op not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT) and read:
                read = {"": max(read.values()) + _extent([(op, value)])[0]}
        return read

    def letters(self, read: dict[str, int], letters: set[str]) -> dict[str, int]:
        found: list[dict[str, int]] = []
        for beginning, length in read.items():
            for letter in letters:
                said = beginning + letter
                if any(said.endswith(word) for word in self.words):
                    self.within = max(self.within, length + 1)
                    continue
                said = next(said[n:] for n in range(len(said) + 1) if said[n:] in self.beginnings)
                found.append({said: length + 1})
        return joined(*found)


def joined(*read: dict[str, int]) -> dict[str, int]:
    return {said: max(one.get(said, 0) for one in read) for said in set().union(*read)}
