"""Identifier-like strings: what an agent must repeat exactly or get wrong.

The instrument's own idea of an identifier, kept apart from ``contextfold.identifiers`` on purpose: what is measured
must not be defined by what is measured against it.

What belongs here: anchors, where they stand in a text, and the text of a message that they are looked for in. What
does not: which of them an answer needed (``recording``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

_EXTENSIONS = (
    "py|pyi|go|ts|tsx|js|jsx|mjs|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|sh|bash|zsh|sql|md|rst|txt|json|jsonl|yaml|"
    "yml|toml|ini|cfg|conf|lock|xml|html|css|scss|csv|tsv|pdf|docx|xlsx|pptx|png|jpg|jpeg|svg|log|patch|diff|mod|sum|"
    "tmpl|ipynb"
)

_LONGEST_RUN = 600
"""Signs of paths in a row in which one may begin: of data without a blank each place would be looked at from each."""

# One alternation, scanned left to right: the first kind that fits at a position takes the whole span,
# so a URL is one anchor and not a URL, a path and three words.
_ANCHOR = re.compile(
    rf"""
      (?P<url>    https?://[^\s"'`<>)\]}}\\|]{{4,}} )
    | (?P<email>  \b[\w.+-]{{1,300}}@[\w-]+(?:\.[\w-]+)+ )
    | (?P<uuid>   \b[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}\b )
    | (?P<path>   (?<![\w/])(?:~|\.{{1,2}})?(?:/[\w.@+-]*[\w@+-]){{2,}}
                | (?<![\w/.])(?=[\w.@+/-]{{1,{_LONGEST_RUN}}}+(?![\w.@+/-]))
                  [\w.@+-]{{0,300}}\w(?:/[\w.@+-]*[\w@+-])+\.\w{{1,8}}\b
                | \b[A-Za-z]:\\[\w\\.-]+\w
                | (?<![\w/.])[\w-]{{2,300}}(?:\.[\w-]+)*\.(?:{_EXTENSIONS})\b )
    | (?P<dotted> \b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){{2,}}\b )
    | (?P<ticket> \#?\b[A-Z][A-Z0-9]{{1,9}}-\d+\b | \#?\b[A-Z]{{1,3}}\d{{4,}}\b )
    | (?P<hex>    \b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{7,64}}\b )
    | (?P<snake>  \b(?=\w{{8,300}}\b)_*[A-Za-z]\w*?_\w*[A-Za-z0-9]\b )
    | (?P<camel>  \b(?=[A-Za-z0-9]{{8,300}}\b)[A-Za-z][A-Za-z0-9]*?[a-z0-9][A-Z][A-Za-z0-9]*\b )
    | (?P<number> \b\d{{4,}}(?:\.\d+)?\b )
    """,
    re.VERBOSE | re.ASCII,  # ASCII boundaries: an identifier may touch Chinese or Japanese text
)
_WORD = re.compile(r"\w+", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z]{3,}|[\u3040-\u30ff\u3400-\u9fff]{2}")
_ESCAPES = re.compile(r'(?<!\\)\\++[nrt"]')
SHORTEST, LONGEST = 4, 300
"""Characters of an anchor."""


def searched(texts: Iterable[str]) -> str:
    """The texts of a message as the one in which anchors are looked for: JSON escapes are flattened to blanks."""
    return _ESCAPES.sub(" ", "\n".join(texts))


def argument_text(arguments: str) -> str:
    """The values of a call's arguments, one to a line; the arguments as they are where they are no JSON.

    Keys are left out: they come from a schema, values do not.
    """
    try:
        return "\n".join(leaves(json.loads(arguments)))
    except (ValueError, RecursionError):
        return arguments


def leaves(value: Any) -> list[str]:
    """The scalars inside a JSON value, as text."""
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def find(text: str) -> set[str]:
    """The distinct anchors of a text."""
    found = set()
    for match in _ANCHOR.finditer(text):
        anchor: str = match.group()
        if match.lastgroup == "url":
            anchor = anchor.rstrip(".,;:!?*_~")
        if SHORTEST <= len(anchor) <= LONGEST:
            found.add(anchor)
    return found


def words(text: str) -> set[str]:
    """The ASCII words of a text, to find messages by."""
    return set(_WORD.findall(text))


def longest_word(anchor: str) -> str:
    """The word of an anchor that narrows a search down most."""
    return max(map(str, _WORD.findall(anchor)), key=len)


def positions(anchor: str, text: str) -> Iterator[int]:
    """Where it stands verbatim, and not as a part of a longer word: 1234 does not occur in 12345."""
    start = text.find(anchor)
    while start >= 0:
        end = start + len(anchor)
        cut_before = start > 0 and _is_word(anchor[0]) and _is_word(text[start - 1])
        cut_after = end < len(text) and _is_word(anchor[-1]) and _is_word(text[end])
        if not cut_before and not cut_after:
            yield start
        start = text.find(anchor, start + 1)


def occurs(anchor: str, text: str) -> bool:
    """Whether it stands in the text verbatim."""
    return next(positions(anchor, text), None) is not None


def surroundings(anchor: str, text: str, radius: int = 80, most: int = 20) -> list[frozenset[str]]:
    """For each of its first ``most`` occurrences, the plain words within ``radius`` characters of it.

    Plain: no anchors, and nothing cut in half.
    """
    found = []
    for start in islice(positions(anchor, text), most):
        end = start + len(anchor)
        before = re.sub(r"^\S+", "", text[max(0, start - radius) : start]) if start > radius else text[:start]
        after = re.sub(r"\S+$", "", text[end : end + radius]) if len(text) > end + radius else text[end:]
        plain = _ANCHOR.sub(" ", f"{before} {after}")
        found.append(frozenset(word.lower() for word in _PLAIN.findall(plain)))
    return found


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
