"""The answer that the provider writes by itself: an honest digest of what it was sent.

It names identifiers of the prompt, in their order, spread over all of it, so that a test can see what reached the
model: a marker that was dropped on the way cannot be in it. Deterministic, and much shorter than the prompt.

What belongs here: choosing words of a text. What does not: when a digest is asked for (``provider``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

LARGEST_SHARE = 4
"""A digest has at most one in this many of the tokens of its prompt."""

SHORTEST_LIMIT = 24
"""Tokens that a digest may have however short its prompt is: less holds nothing but the opening."""

_IDENTIFIER = re.compile(r"[\w./:@#$%+~-]*(?:\d|\w[_/.:-]\w|[a-z][A-Z])[\w./:@#$%+~-]*", re.ASCII)
_WORD = re.compile(r"\w+")
_LONGEST_WORD = 64
"""Characters. Longer ones (base64, text without blanks) are data, and are left out or cut."""


def digest(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Identifiers of ``text`` (or words, where it has none) in at most ``limit`` tokens.

    Where not all fit, those at even distances are named, from the first to the last.
    """
    words = _identifiers(text) or [word[:_LONGEST_WORD] for word in _WORD.findall(text)] or ["nothing"]
    opening = f"Digest of {len(text)} characters: "
    fitting = _most(len(words), lambda number: count(opening + ", ".join(_spread(words, number))) <= limit)
    return opening + ", ".join(_spread(words, fitting)) if fitting else _shortest(words, limit, count)


def _identifiers(text: str) -> list[str]:
    """Distinct strings with a digit, a joint or a hump, in the order of their first mention."""
    found = (match[0].strip(".:-,") for match in _IDENTIFIER.finditer(text))
    return list(dict.fromkeys(word for word in found if 2 < len(word) <= _LONGEST_WORD))


def _spread(words: Sequence[str], number: int) -> list[str]:
    """``number`` of the words, at even distances, with the first and the last."""
    last = len(words) - 1
    return [words[place * last // (number - 1)] for place in range(number)] if number > 1 else list(words[:number])


def _most(largest: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to ``largest`` that fits, by bisection; 0 if none does."""
    low, high = 0, largest
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _shortest(words: Sequence[str], limit: int, count: Callable[[str], int]) -> str:
    """One word, where the limit has no room for more; cut, where it has no room for that either."""
    return clipped(words[0], limit, count)


def clipped(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The longest beginning of ``text`` with at most ``limit`` tokens."""
    return text[: _most(len(text), lambda length: count(text[:length]) <= limit)]
