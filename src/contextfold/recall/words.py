"""Texts and queries as words of a full-text index, the same for every database.

Databases disagree about what a word is, and most take a whole Chinese sentence for one. So words are cut here, and the
index only stores and matches them:

- letters and digits in a row are a word, in lower case and without accents: ``Café_3`` is ``cafe``, ``3``;
- Chinese, Japanese and Korean text becomes overlapping pairs of characters: 数据库 is 数据, 据库. Pairs are the usual
  compromise (Lucene's CJKAnalyzer does the same): every word of two characters and more is found.

What belongs here: words, and what a query asks for. What does not: any database's syntax (``store``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 100
"""Characters of a word that count. What is longer is data, and its beginning is enough to find it."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")
_TERM = re.compile(r'"([^"]*)"|(\S+)')


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: texts that have every term. A term is words that follow one another.

    ``prefixes`` says of each term whether its last word may go on: one CJK character stands for every pair that it
    begins.
    """

    terms: tuple[tuple[str, ...], ...]
    prefixes: tuple[bool, ...]

    @property
    def is_empty(self) -> bool:
        return not self.terms


def words_of(text: str) -> Iterator[str]:
    """The words of a text in order."""
    for run in _RUN.findall(_folded(text)):
        if not _IS_CJK.match(run):
            yield run[:LONGEST]
        elif len(run) == 1:
            yield run
        else:
            yield from (run[place : place + 2] for place in range(len(run) - 1))


def parse_query(query: str) -> Query:
    """What a person or a model typed: words that must all occur, and "words in quotes" that must follow one another.

    A term such as ``src/app.py`` is its words in a row. Punctuation alone asks for nothing.
    """
    terms: list[tuple[str, ...]] = []
    prefixes: list[bool] = []
    for quoted, bare in _TERM.findall(query):
        term = tuple(words_of(quoted or bare))
        if term:
            terms.append(term)
            prefixes.append(len(term[-1]) == 1 and bool(_IS_CJK.match(term[-1])))
    return Query(tuple(terms), tuple(prefixes))


def _folded(text: str) -> str:
    """Lower case, one form for one letter (full-width ones included), no accents; CJK voicing marks stay."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    if plain.isascii():
        return plain
    apart = unicodedata.normalize("NFD", plain)
    bare = "".join(c for c in apart if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFC", bare)
