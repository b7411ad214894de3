"""What is done to a whole text, some of it at a time.

One call for megabytes would hold the interpreter until its end, and with it an event loop that waits for its turn.

What belongs here: calls of the language that read all of a text. What does not: patterns, which are cut to fit where
they are (``tokens``, ``tiers``, ``evidence``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

AT_ONCE = 131_072
"""Characters. To encode, lower or split so many takes a millisecond or two, with signs of three bytes, too."""

_LINE_END = re.compile(r"[\n\v\f\x1c-\x1e\x85\u2028\u2029]|\r[^\n]")
_WORD_ENDS = tuple(map(re.compile, (r"[.!?]\s|。", r"\s", r"[，、！？；：!-*,.:;<>-@\[-^`{-~]")))
"""Where a text may be cut, the best first: behind a sentence, white space, or a sign that is in no word or base64."""


def encoded(text: str, errors: str = "surrogatepass") -> Iterable[bytes]:
    """The text in UTF-8, in pieces. Half a surrogate pair is a legal string in Python, which strict UTF-8 refuses."""
    if len(text) <= AT_ONCE:
        return (text.encode("utf-8", errors),)
    return (text[n : n + AT_ONCE].encode("utf-8", errors) for n in range(0, len(text), AT_ONCE))


def digest(text: str) -> bytes:
    """Sixteen bytes by which a text is known while the text itself is not kept."""
    hasher = blake2b(digest_size=16)
    for piece in encoded(text):
        hasher.update(piece)
    return hasher.digest()


def folded(text: str) -> str:
    """In lower case and as long. Letters that patterns take for others where case does not matter are these others."""
    pieces = (text[n : n + AT_ONCE] for n in range(0, len(text), AT_ONCE))
    return "".join(piece.replace("İ", "i").lower().replace("ſ", "s").replace("ı", "i") for piece in pieces)


def some_lines(text: str) -> Iterator[str]:
    """The text in pieces that end where a line does."""
    start, look = 0, AT_ONCE
    while look < len(text):
        if end := _LINE_END.search(text, look, look + AT_ONCE):
            yield text[start : end.start() + 1]
            start = look = end.start() + 1
        look += AT_ONCE
    yield text[start:]


def some_words(text: str) -> Iterator[str]:
    """The text in small pieces that end where a sentence or a word does.

    A word that is longer than a piece is cut, which leaves no small rest of it: base64 can be told in each piece.
    """
    start, least = 0, max(1, AT_ONCE // 4)  # patterns take longer than the calls that are measured above
    while len(text) - start > 2 * least:
        first, last = start + least, start + 2 * least
        found = (end.search(text, first, last) for end in _WORD_ENDS)
        end = next((one.end() for one in found if one), first)
        yield text[start:end]
        start = end
    yield text[start:]


def split_lines(text: str, keepends: bool = False) -> list[str]:
    """``text.splitlines(keepends)``."""
    return [line for some in some_lines(text) for line in some.splitlines(keepends)]


def without_halves(text: str) -> str:
    """The text with halves of surrogate pairs joined, or replaced where the other one is missing."""
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = start + AT_ONCE
        while "\ud800" <= text[end - 1 : end] <= "\udbff":  # the other half may follow
            end += 1
        parts.append(text[start:end].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
        start = end
    return "".join(parts)
