"""Texts and queries as words of a full-text index, the same for every database and for a list in memory.

Databases disagree about what a word is, and most take a whole Chinese sentence for one. So words are cut here, and the
index only stores and matches them:

- letters and digits in a row are a word, in lower case and without accents: ``Café_3`` is ``cafe``, ``3``. So are the
  signs that scripts of India write vowels with; what Arabic and Hebrew may leave out is left out;
- Chinese, Japanese and Korean text becomes overlapping pairs of characters: 数据库 is 数据, 据库. Pairs are the usual
  compromise (Lucene's CJKAnalyzer does the same): every word of two characters and more is found.

Behind the words of a text stand its **marks**: the stem of a word that is inflected, what a compound or a name in code
is made of (``refreshUserToken``: ``refresh``, ``user``, ``token``), and which words it says several times. They begin
or end with a character of Unicode's private use area, which no word has.

What belongs here: words and marks, and what a query asks for. What does not: any database's syntax (``store``), and
what a match is worth (``ranking``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contextfold.at_once import some_words
from contextfold.messages import well_formed
from contextfold.quoting import readable
from contextfold.recall import stems
from contextfold.summary import language as languages

LONGEST = 100
"""Characters of a word that count. What is longer is data, and its beginning is enough to find it."""

STEM, PART = "\ue010", "\ue011"
"""Before a stem, and before a part of a compound."""

OFTEN = ((2, "\ue002"), (4, "\ue003"))
"""(times, behind a word or stem that a text says as often). Databases tell where a word is, not how often."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:[{stems.SIGNS}]+[^\W_{_CJK}]*)*")
_IS_CJK = re.compile(f"[{_CJK}]")
LEFT_OUT = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u00ad"
"""The points of Hebrew, the short vowels of Arabic and what stretches its words, and the soft hyphen."""
_LEFT_OUT = re.compile(f"[\u0300-\u036f{LEFT_OUT}]+")
_MOST_MARKS = 30
"""Marks in a row that a letter may have, as in Unicode's stream-safe texts: no writing needs more, and to bring a row
of them into order takes time with the square of its length."""
_MARKS = re.compile(rf"(?:[^\w\s\x00-\u02ff]|[\uff9e\uff9f]){{{_MOST_MARKS + 1},}}")
"""Rows of signs that may be marks. Those of half-width katakana become marks where a letter gets its one form."""
_QUOTES = '"“”„«»「」『』'
_TERM = re.compile(rf"[{_QUOTES}]([^{_QUOTES}]*)[{_QUOTES}]|([^\s{_QUOTES}]+|[{_QUOTES}])")
_POSSESSIVE = re.compile(r"['’]s?$|^[ldjmnst]['’](?=\w{2})", re.IGNORECASE)
_EXACT = re.compile(
    r"\w[.:@#=\\]\w|\w_|_\w|/\w+/|\w/\w*[._]|\d[^\W\d]*-|-[^\W\d]*\d"  # joined as people do not join words
    r"|\d[^\W\d]|[^\W\d]\d|\d{5,}|[a-z][A-Z]"
)
"""A name that is meant as it stands: a path, an id, a name in code. ``and/or`` and ``well-known`` are plain words."""

_HYPHENATED = re.compile(r"[^\W_]+(?:-[^\W_]+)+")
"""A name, maybe, such as ``content-type``, or plain words."""

# the closing mark may be missing: a text of nothing but marks is read once
_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|\\.')
_PATH = re.compile(r'"[A-Za-z]:\\[^\\]')
"""A path of Windows as it stands, and no string of JSON: there it has two backslashes."""

_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.")
"""Letters that are spelled by their numbers, neighbors together since two may be halves of one; else one escape."""

_SHORT_HASH = re.compile(r"(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,39}")
"""The first digits of a hash, by which people name a commit or an image."""

_HASH = re.compile(r"(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,64}")
_SHORTENED = (12, 10, 8, 7)
"""Digits by which people and tools name a hash instead of all of it."""

_IN_CODE = re.compile(r"(?<![A-Za-z\d])(?:[A-Z]?[a-z][a-z\d]*[A-Z]|[A-Z][A-Z\d]+[a-z])[A-Za-z\d]*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHORTEST_HUMP, _LONGEST_NAME = 3, 60
_SHORTEST_BEGINNING = 5
"""Letters that a word must have for what begins with it to be looked for where no text has the word."""

_ASKING = {
    "en": "when where who whom whose which why whether did done has had having was were been being me us our he she "
    "they them his her its their by as or so than then into about out up down could would should may might a an i "
    "am these those while because s t re ve ll d m",
    "de": "wann wo wer wen wem wessen welche welcher welches warum wieso womit wie was hat hatte haben war waren sein "
    "hast habe du er ihr uns euch mich dich ihm ihn ihnen unser dein sein um am im zum zur vom ob als bis seit",
    "fr": "quand où qui quoi quel quelle quels quelles pourquoi comment combien a ont était été ai as tu il elle ils "
    "elles son sa ses leur leurs se d l s n j",
    "es": "cuándo cuando dónde donde quién quien qué cuál cuáles por cómo cuánto ha han fue era ser su sus le les me "
    "te él ella ellos nos",
    "it": "quando dove chi cosa quale quali perché quanto ha hanno era stato suo sua loro ci si gli",
    "pt": "quando onde quem qual quais porque quanto tem foi era ser seu sua seus suas ele ela eles lhe",
    "nl": "wanneer waar wie welke waarom hoe heeft had was waren hij zij ze zijn haar hun mijn ons",
    "ru": "когда где кто что какой какая какие почему зачем как сколько был была было были в на и с по к у о об из за "
    "для не он она они его ее их это",
}


@dataclass(frozen=True, slots=True)
class WordUnit:
    """One thing that is looked for: a word, or words that follow one another.

    ``required``: only texts that have it are found, since it stood in quotes. ``exact``: texts that have it come first.
    ``prefix``: its last word may go on (one CJK character stands for every pair that it begins, a few digits for the
    hash that they begin). ``instead``: what is looked for where no text has it, such as the words of a path, or words
    that begin with it.
    """

    words: tuple[str, ...]
    required: bool = False
    exact: bool = False
    prefix: bool = False
    instead: tuple[WordUnit, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: texts that have any of the units, and all of the required ones."""

    units: tuple[WordUnit, ...]

    @property
    def is_empty(self) -> bool:
        return not self.units

    @property
    def terms(self) -> tuple[tuple[str, ...], ...]:
        """The words of each unit."""
        return tuple(unit.words for unit in self.units)


def words_of(text: str) -> Iterator[str]:
    """The words of a text in order."""
    runs = (run for some in some_words(unescaped(text)) for run in _RUN.findall(_folded(some)))
    for run in runs:
        if not _IS_CJK.match(run):
            yield run[:LONGEST]
        elif len(run) == 1:
            yield run
        else:
            yield from (run[place : place + 2] for place in range(len(run) - 1))


def names_of(text: str) -> dict[str, tuple[str, ...]]:
    """The names in code of a text that are put together of words (``refreshUserToken``), as the index knows them, each
    with these words. Letters that change at random, as in base64, are no words.
    """
    names = {name for some in some_words(unescaped(text)) for name in _IN_CODE.findall(some)}
    found = {name: _humps(name) for name in names if len(name) <= _LONGEST_NAME}
    return {name.lower(): humps for name, humps in found.items() if humps}


def _humps(name: str) -> tuple[str, ...]:
    humps = _HUMP.findall(name)
    if not 1 < len(humps) <= len(name) / _SHORTEST_HUMP:
        return ()
    return tuple(dict.fromkeys(hump.lower() for hump in humps if len(hump) >= _SHORTEST_HUMP))


def marks_of(words: Sequence[str], language: str, names: Mapping[str, Sequence[str]]) -> list[str]:
    """The marks of a text: stems as often as they occur, parts of compounds and of ``names``, and what it says several
    times.
    """
    marks = [STEM + found for word in words if (found := stems.stem(word, language)) != word]
    counts = Counter(words)
    if language in stems.COMPOUNDING:
        for word in counts:
            marks += dict.fromkeys(PART + stems.stem(part, language) for part in stems.parts(word))
    if names:
        inside = {part for word in names.keys() & counts.keys() for part in names[word]}
        marks += sorted({PART + form for part in inside for form in (part, stems.stem(part, language))})
    counts.update(mark for mark in marks if mark[0] == STEM)
    marks += [word + sign for word, count in counts.items() if count > 1 for times, sign in OFTEN if count >= times]
    return marks


def parse_query(query: str, *, common: bool = True) -> Query:
    """What a person or a model typed: any of these words; "words in quotes" must occur, and follow one another.

    A name such as ``src/app.py`` or ``TCK-0042`` is its words in a row, and texts that have it come first. Words that
    every question has (``when``, ``did``, ``the``) are left out as long as others remain; ``common``: and are
    looked for where none do. Punctuation alone asks for nothing.
    """
    units = [unit for quoted, bare in _TERM.findall(query) for unit in (_quoted(quoted) if quoted else _bare(bare))]
    usual = _common(query)
    telling = [unit for unit in units if unit.required or len(unit.words) > 1 or unit.words[0] not in usual]
    return Query(tuple(dict.fromkeys(telling or (units if common else []))))


def is_cjk(word: str) -> bool:
    return bool(_IS_CJK.match(word))


def _quoted(text: str) -> list[WordUnit]:
    words = tuple(words_of(text))
    return [WordUnit(words, required=True, exact=True, prefix=_goes_on(words))] if words else []


def _bare(text: str) -> list[WordUnit]:
    plain = _POSSESSIVE.sub("", text.strip("?!.,;:()[]{}<>'`*…¿¡‘’。，、？！：；（）"))
    words = tuple(words_of(plain))
    if not words:
        return []
    single = [WordUnit((word,), prefix=_goes_on((word,))) for word in dict.fromkeys(words)]
    if _EXACT.search(plain):
        instead = tuple(single) if len(words) > 1 else _instead(plain, words[0])
        return [WordUnit(words, exact=True, prefix=len(words) == 1 and _goes_on(words), instead=instead)]
    if all(map(is_cjk, words)) and len(words) > 1:
        return [WordUnit(words, instead=tuple(single))]
    if len(words) == 1:
        return [_compound(words[0], plain)]
    alone = [_compound(word) if not is_cjk(word) else WordUnit((word,), prefix=_goes_on((word,))) for word in words]
    # each word by itself, and in a row they count once more: neither comes first whatever else a query asks for
    return [WordUnit(words), *alone] if _HYPHENATED.fullmatch(plain) else alone


def _compound(word: str, name: str = "") -> WordUnit:
    return WordUnit((word,), prefix=_goes_on((word,)), instead=_instead(name, word))


def _instead(name: str, word: str) -> tuple[WordUnit, ...]:
    """What is looked for where no text has a word: its parts, what begins with it, and a hash by its first digits."""
    parts = [*(stems.parts(word) if len(word) >= 2 * 6 else ()), *_humps(name)]
    found = [WordUnit((part,)) for part in dict.fromkeys(parts)]
    if len(word) >= _SHORTEST_BEGINNING and not is_cjk(word):
        found.append(WordUnit((word,), prefix=True))
    if _HASH.fullmatch(word):
        found += [WordUnit((word[:digits],)) for digits in _SHORTENED if digits < len(word)]
    return tuple(found)


def _goes_on(words: Sequence[str]) -> bool:
    """Whether the last word may be the beginning of one: a single CJK character, and the first digits of a hash."""
    return bool(words) and ((len(words[-1]) == 1 and is_cjk(words[-1])) or bool(_SHORT_HASH.fullmatch(words[-1])))


def _common(query: str) -> set[str]:
    """The words that questions in the query's language are made of, folded as all words are."""
    found: set[str] = set()
    for language in {languages.DEFAULT, languages.dominant((query,))}:
        for word in (*languages.function_words(language), *_ASKING.get(language, "").split()):
            found.update(words_of(word))
    return found


def unescaped(text: str) -> str:
    """The text with the line breaks and letters that its strings in quotation marks escape, as JSON and code do: what
    an agent wrote to a file stands in arguments like that, and each word behind ``\\n`` would be another word. So would
    the first word of a color, whose codes for a terminal are left out.
    """
    return readable(_STRINGS.sub(_as_meant, text) if "\\" in text else text)


def _as_meant(string: re.Match[str]) -> str:
    plain = string[0][0] != '"' or _PATH.match(string[0])
    return string[0] if plain else _ESCAPES.sub(_meant, string[0])


def _meant(escape: re.Match[str]) -> str:
    if escape[0] in ("\\n", "\\r", "\\t"):
        return " "
    if len(escape[0]) == 2:
        return escape[0]
    return well_formed("".join(chr(int(number, 16)) for number in escape[0].split("\\u")[1:]))


def _folded(text: str) -> str:
    """Lower case, one form for one letter (full-width ones included), no accents; CJK voicing marks stay."""
    plain = unicodedata.normalize("NFKC", _MARKS.sub(_fewer, text)).casefold()
    if plain.isascii():
        return plain
    return unicodedata.normalize("NFC", _LEFT_OUT.sub("", unicodedata.normalize("NFD", plain)))


def _fewer(signs: re.Match[str]) -> str:
    """The signs without the marks that are more in a row than a letter may have."""
    kept: list[str] = []
    marks = 0
    for sign in signs[0]:
        marks = marks + 1 if sign in "\uff9e\uff9f" or unicodedata.category(sign)[0] == "M" else 0
        if marks <= _MOST_MARKS:
            kept.append(sign)
    return "".join(kept)
