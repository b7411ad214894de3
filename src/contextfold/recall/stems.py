"""Words by their stems, so that ``groups`` is found by ``group`` and ``Verbindungen`` by ``Verbindung``.

What belongs here: the stem of a word in the language of its text, all stems that a word of a query may have, and the
parts of a long German or Dutch word. What does not: cutting texts into words (``words``).

Stemmers are Snowball's (``snowballstemmer``). The language of a text is told by its function words
(``summary.language``); the few words of a query tell it badly, so a word that is asked for is looked up under its stem
in every language that has a stemmer here. Since texts are only stemmed in their own language, that finds next to
nothing foreign.

Parts. German and Dutch write compounds in one word, and no dictionary holds them all. So a long word is also indexed by
every beginning and every end of it that could be a word: at least four letters, with a vowel, and an end that begins as
words begin. ``Datenbankverbindung`` is found by ``Datenbank`` and by ``Verbindung``; what is no word (``enbank``) is
never asked for.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from contextfold.summary import language as languages

_SNOWBALL = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
    "tr": "turkish",
    "ru": "russian",
    "uk": "russian",  # close enough for endings of cases; there is no Ukrainian one
    "el": "greek",
    "ar": "arabic",
    "hi": "hindi",
}

COMPOUNDING = {"de", "nl"}
SHORTEST_COMPOUND = 9
SHORTEST_PART = 4

SIGNS = "".join(chr(n) for n in range(0x0900, 0x0E00) if unicodedata.category(chr(n)) in ("Mn", "Mc"))
"""What the scripts of India write vowels with: no letters, and yet no word goes without them. Thai and its like write
words without blanks between them, so there they part words, which finds more."""

_STEMMED = re.compile(rf"(?:[^\W\d_]|[{SIGNS}]){{3,60}}")
_VOWEL = re.compile(r"[aeiouy]")
_ONSET = re.compile(
    r"[aeiouy]|[bcdfghjklmnpqrstvwxz](?=[aeiouy])"
    r"|(?:bl|br|ch|dr|fl|fr|gl|gr|kl|kn|kr|pf|pl|pr|qu|sch|sk|sl|sm|sn|sp|st|th|tr|tw|wr|zw|vl|vr)"
    r"|(?:pfl|pfr|schl|schm|schn|schr|schw|spl|spr|str)"
)
_LATIN = {"de", "en", "es", "fr", "it", "nl", "pl", "pt", "tr"}
_lock = threading.Lock()  # a stemmer keeps the word that it works on


def language_of(text: str) -> str:
    """The language that a text is stemmed in, by its code."""
    return languages.dominant((text,))


@lru_cache(maxsize=200_000)
def stem(word: str, language: str) -> str:
    """The stem of a word that is in lower case; the word itself where there is no stemmer, or it is no plain word."""
    if language not in _SNOWBALL or not _STEMMED.fullmatch(word):
        return word
    with _lock:
        found: str = _stemmer(language).stemWord(word)
    return found if len(found) >= 2 else word


@lru_cache(maxsize=20_000)
def variants(word: str) -> tuple[str, ...]:
    """The different stems of a word in all languages that its letters may belong to, the word itself left out."""
    if not _STEMMED.fullmatch(word):
        return ()
    among = _LATIN if word[0] < "\u0370" else set(_SNOWBALL) - _LATIN
    found = {stem(word, language) for language in sorted(among)}
    return tuple(sorted(found - {word}))


def parts(word: str) -> Iterator[str]:
    """What a long word may be put together from: its beginnings, and its ends by their stems."""
    if len(word) < SHORTEST_COMPOUND or not _STEMMED.fullmatch(word):
        return
    for place in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        head, tail = word[:place], word[place:]
        if _ONSET.match(tail) and _VOWEL.search(head) and _VOWEL.search(tail):
            yield head
            yield tail
            if head.endswith("s"):  # the letter that joins: Verbindung-s-fehler
                yield head[:-1]


@lru_cache(maxsize=32)
def _stemmer(language: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(_SNOWBALL[language])
