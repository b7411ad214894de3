"""What is done to a whole text, some of it at a time.

One call for megabytes would hold the interpreter until its end, and with it an event loop that waits for its turn.

What belongs here: calls of the language that read all of a text. What does not: patterns, which are cut to fit where
they are (``tokens``, ``tiers``, ``evidence``).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

AT_ONCE = 131_072
"""Characters. To encode, lower or split so many takes less than a millisecond."""


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


def lower(text: str) -> str:
    """``text.lower()``, but for a capital sigma: whether it ends a word is told from what stands in its piece."""
    if len(text) <= AT_ONCE:
        return text.lower()
    return "".join(text[n : n + AT_ONCE].lower() for n in range(0, len(text), AT_ONCE))


def split_lines(text: str, keepends: bool = False) -> list[str]:
    """``text.splitlines(keepends)``."""
    lines: list[str] = []
    start = 0
    while start < len(text):
        end = text.find("\n", start + AT_ONCE) + 1 or len(text)
        lines += text[start:end].splitlines(keepends)
        start = end
    return lines
