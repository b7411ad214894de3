"""How many tokens a text has, without a tokenizer.

Belongs here: the estimate for one string. Does not: messages, tools and media (``counter``, ``media``), the
numbers themselves (``rates``, written by ``benchmarks/fit_tokens.py``).

How it works. A byte-pair tokenizer first cuts a text into pieces (a word with the character before it, up to
three digits, a run of symbols, a run of white space) and then looks each piece up. The cutting is a regular
expression and can be done here, nearly as o200k does it; nine pieces in ten then are one token. What is left is the
price of the others:

- a word costs more the less its letters look like those that the vocabulary was made for. The price is one token
  plus the sum, where positive, of fitted amounts for what stands before it, its case, its length and each pair of
  neighboring letters. This one rule covers English, other languages in Latin letters, camelCase, identifiers, base64
  and hexadecimal, without having to tell them apart;
- symbols cost by the number of runs of the same character;
- a word in another alphabet costs more the longer it is, by script; Chinese characters, kana and signs have a price
  per character.

Everything is counted in hundredths of a token with whole numbers, so the same text has the same size everywhere.
The time is linear in the length: every piece has a longest length, and long unbroken runs (base64) are sampled.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from contextfold.tokens import rates
from contextfold.tokens.known import WORTH_KEEPING, KnownSizes

_SYMBOL = r"\x00-\x08\x0e-\x1f!-/:-@\[-`{-¿×÷"
_UPPER = "A-ZÀ-ÖØ-Þ"
_LOWER = "a-zß-öø-ɏḀ-ỿ"
_ALPHABETIC = "\u0370-\u1dff\u1f00-\u1fff\uac00-\ud7a3"
_WIDE = "\u0250-\u036f\u2000-\uabff\ud7a4-\udfff\ue001-\U0010ffff"

PIECES = re.compile(
    rf"[ \t{_SYMBOL}]?(?:[{_UPPER}]{{0,32}}[{_LOWER}]{{1,32}}|[{_UPPER}]{{1,32}})(?:'(?:s|t|re|ve|m|ll|d)\b)?"
    r"|[0-9]{1,3}"
    rf"| ?[{_SYMBOL}]{{1,64}}[\r\n/]{{0,64}}"
    r"|\s{0,64}[\r\n]{1,16}|\s{1,128}(?!\S)|\s"
)
"""A text in Latin letters as pieces: words, numbers, symbols, white space. Other characters are skipped."""

SYMBOLS = re.compile(rf"[{_SYMBOL}]")

ALPHABETIC_WORDS = re.compile(rf" ?[{_ALPHABETIC}]{{1,64}}")
"""Words in other alphabets, from Greek to Hangul. Scripts without spaces, such as Thai, come in runs."""

WIDE_RUNS = re.compile(rf"(?: ?[{_WIDE}]+(?:(?<!\w)[\r\n]+)?)+")
"""Chinese, kana, signs, emoji: what is priced by the character, with the white space that a tokenizer joins to it."""

LONGEST = 4_096
"""Characters. Encoded data of that length and more (``LONG_RUNS``) is priced by samples."""

LONG_RUNS = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{4096,}+")
"""Encoded data. Looking behind makes a run be tried once only, from its start: linear on any input."""

_KNOWN = KnownSizes()
"""The sizes of texts that were estimated, whatever conversation they stand in."""

_MANY, _VERY_MANY = 4_000, 1_000_000
"""Characters that are worth sizing in arrays, where these are loaded and where they are not."""

_ARRAYS = "contextfold.tokens.arrays"

_STRETCH = 16_384
"""Characters. Some milliseconds of counting."""

CUT = re.compile(r"(?<=[a-z0-9])[ ,\t\n](?=[A-Za-z0-9])")
"""Where a word or a number ends, and a blank or comma is followed by another."""

_ANY_CUT = re.compile(
    r"(?<=[A-Za-z0-9])(?=[ ,\t\n\"(){}\[\]<>:;&|])"
    rf"|(?<=[{_WIDE}])(?=[{_WIDE}])|(?<=[{_ALPHABETIC}]) (?=[{_ALPHABETIC}])"
)
"""Where a stretch may end: there may be no blank between two words in megabytes of JSON, tables and other scripts. What
is priced by the character is cut anywhere."""

_LOOKED_AT = 131_072
"""Characters in which one search looks for a cut."""

_RUN_ENDS = re.compile(r"[^A-Za-z0-9+/=_-]")
"""What is in no run of encoded data: those are left out before the rest is cut into pieces."""

_SAMPLES, _SAMPLE_CHARACTERS = 16, 128
PLACE = "\ue000"
"""Stands for what is already priced while the rest is cut, so that its neighbors are not joined."""


def estimate(text: str) -> int:
    """Tokens of ``text``: within a few per cent of o200k for conversations, in any language, code and data.

    Zero for an empty text, at least one for any other. Never raises, whatever the characters.
    """
    if len(text) < WORTH_KEEPING:
        return rounded(hundredths(text), bool(text))
    return _KNOWN.size(text, _estimate)


def remember(text: str, size: int) -> None:
    """That ``estimate`` gives this size for a text, for a caller who knows it from the text's parts."""
    if len(text) >= WORTH_KEEPING:
        _KNOWN.size(text, lambda _: size)


def estimate_together(texts: Iterable[str]) -> None:
    """Size texts for which ``estimate`` will be asked soon, in arrays: a half to a third of the time."""
    long = [text for text in texts if len(text) >= WORTH_KEEPING]
    characters = sum(map(len, long))
    # Arrays have a price of their own, and so has loading them: a pass would, but most histories need none yet.
    if characters >= (_MANY if _ARRAYS in sys.modules else _VERY_MANY):
        from contextfold.tokens import arrays

        _KNOWN.learn(long, lambda new: map(rounded, arrays.whole(new)))


def _estimate(text: str) -> int:
    return rounded(hundredths(text))


def rounded(price: int, is_text: bool = True) -> int:
    """Hundredths as whole tokens: at least one for any text."""
    return max(1, (price + 50) // 100) if is_text else 0


def hundredths(text: str) -> int:
    """The price of a text in hundredths of a token, before rounding.

    A long text is counted in stretches, because a search holds the interpreter until it has its end: other threads,
    such as an event loop, run between them.
    """
    if len(text) <= 2 * _STRETCH:
        return _price(text)
    parts = list(stretches(text, _STRETCH))
    # Judged over the whole: a stretch with few words of it could be taken for another language than the one before.
    is_russian = text.isascii() or sum(map(_russian, map(ALPHABETIC_WORDS.findall, parts))) >= 0
    return sum(_price(part, is_russian) for part in parts)


def stretches(text: str, length: int = _STRETCH, where: re.Pattern[str] = _ANY_CUT) -> Iterator[str]:
    """The text cut where no piece, word or run goes on, so that the prices of the parts add up to that of the whole."""
    start, look = 0, length
    while len(text) - start > 2 * length and (cut := _next_cut(text, look, where)):
        if _RUN_ENDS.search(text, max(0, cut.start() - 200), cut.start()):
            yield text[start : cut.start()]
            start = cut.start()
            look = start + length
        else:
            look = cut.start() + 200
    yield text[start:]


def _next_cut(text: str, look: int, where: re.Pattern[str]) -> re.Match[str] | None:
    while look < len(text):
        if cut := where.search(text, look, look + _LOOKED_AT):
            return cut
        look += _LOOKED_AT - 1  # a blank at the end of what was looked at is looked at again, with what follows it
    return None


def _price(text: str, is_russian: bool | None = None) -> int:
    price = 0
    if has_long_run(text):
        price = sum(_sampled(run) for run in LONG_RUNS.findall(text))
        text = LONG_RUNS.sub("", text)
    if not text.isascii():
        words = ALPHABETIC_WORDS.findall(text)
        russian = looks_russian(words) if is_russian is None else is_russian
        price += sum(alphabetic_price(word, russian) for word in words)
        text = ALPHABETIC_WORDS.sub(PLACE, text)
        if runs := WIDE_RUNS.findall(text):
            characters = Counter("".join(runs))
            price += sum(count * wide_price(character) for character, count in characters.items())
            text = WIDE_RUNS.sub(PLACE, text)
    if len(text) <= _LOOKED_AT:
        return price + sum(map(piece_price, PIECES.findall(text)))
    # Megabytes of blanks or of signs, which no stretch ends in: other threads run between two pieces.
    return price + sum(piece_price(piece[0]) for piece in PIECES.finditer(text))


def has_long_run(text: str) -> bool:
    """Whether there is encoded data in a text, which is sampled as a whole."""
    if len(text) < LONGEST:
        return False
    return any(LONG_RUNS.search(text, n, n + _LOOKED_AT + LONGEST) for n in range(0, len(text), _LOOKED_AT))


def _sampled(run: str) -> int:
    """The price of a long run of encoded data, in hundredths, from slices spread evenly over it."""
    step = (len(run) - _SAMPLE_CHARACTERS) // (_SAMPLES - 1)
    slices = [run[start : start + _SAMPLE_CHARACTERS] for start in range(0, step * _SAMPLES, step)]
    price = sum(piece_price(piece) for part in slices for piece in PIECES.findall(part))
    return price * len(run) // (_SAMPLES * _SAMPLE_CHARACTERS)


@lru_cache(maxsize=1 << 16)
def piece_price(piece: str) -> int:
    """Hundredths of a token for one piece of ``PIECES``."""
    if piece[-1].isalpha():
        return _word_price(*word_of(piece))
    if piece.isdigit():
        return 100
    if piece.isspace():
        return 100 if len(piece) <= 32 else 100 + 3 * (len(piece) - 32) // 2
    return _symbols_price(piece)


def word_of(piece: str) -> tuple[str, str]:
    """A word piece as (the character before the word, or nothing; the word without "'s" and the like)."""
    lead, word = ("", piece) if piece[0].isalpha() else (piece[0], piece[1:])
    return lead, word.split("'", 1)[0]


def case_of(word: str) -> str:
    """``lower``, ``Capital``, ``UPPER`` or ``MIxed``: the four shapes that a word piece can have."""
    if word.islower():
        return "lower"
    if len(word) == 1 or word[1:].islower():
        return "Capital"
    return "UPPER" if word.isupper() else "MIxed"


def pairs_of(word: str) -> list[tuple[int, int]]:
    """Neighboring letters as indices into the pair table: 0 to 25 for a to z, 26 any other letter, 27 the edge."""
    places = [27, *(_LETTER_PLACES.get(letter, 26) for letter in word.lower()), 27]
    return list(pairwise(places))


def _word_price(lead: str, word: str) -> int:
    length = len(word)
    if length >= 6 and len(set(word)) == 1:
        return 100 * -(-length // 8)  # "xxxxxxxx": o200k has runs of eight
    case = case_of(word)
    lead = lead if lead in rates.LEADS else "other"
    surplus = rates.LEADS[lead][case] + length * (rates.PER_LETTER[case] + rates.PER_LETTER_AFTER[after(lead)])
    surplus += sum(rates.PAIRS[first][second] for first, second in pairs_of(word))
    return 100 + max(0, surplus)


def after(lead: str) -> str:
    """What kind of thing stands before a word: a space, nothing (case change, digit, line start), or a symbol."""
    return {" ": "space", "": "nothing"}.get(lead, "symbol")


def runs_of(symbols: str) -> int:
    """How many runs of one and the same character: 3 for "};;\\n"."""
    return 1 + sum(left != right for left, right in pairwise(symbols))


def _symbols_price(piece: str) -> int:
    symbols = piece.lstrip(" ")
    runs = runs_of(symbols)
    known = rates.SYMBOL_RUNS[min(runs, len(rates.SYMBOL_RUNS)) - 1]
    beyond = max(0, runs - len(rates.SYMBOL_RUNS)) * rates.FURTHER_SYMBOL_RUN
    return known + beyond + (len(symbols) - runs) * rates.REPEATED_SYMBOL


def looks_russian(words: list[str]) -> bool:
    """Whether Cyrillic words are taken for Russian, which costs a third less than other languages in that alphabet.

    They are unless something speaks against it: letters that Russian has not, or more of the letter that is common in
    Bulgarian than of the one that Bulgarian has not.
    """
    return _russian(words) >= 0


def _russian(words: list[str]) -> int:
    """What speaks for Russian, less what speaks against it. That of a whole text is the sum of what its parts have."""
    letters = "".join(words)
    return letters.count("ы") - letters.count("ъ") - len(_CYRILLIC_BUT_NOT_RUSSIAN.findall(letters))


@lru_cache(maxsize=1 << 16)
def alphabetic_price(word: str, russian: bool) -> int:
    """Hundredths of a token for one word of ``ALPHABETIC_WORDS``."""
    script, length, foreign = alphabetic_features(word, russian)
    first, per_letter = rates.ALPHABETS[script]
    return 100 + max(0, first + per_letter * length + rates.FOREIGN_LETTER * foreign)


def alphabetic_features(word: str, russian: bool) -> tuple[str, int, int]:
    """Script, letters, and how many of these the most common language of the script (Russian, Arabic) has not."""
    letters = word.lstrip(" ")
    script = _block_of(letters[0])
    if script == "Cyrillic" and russian:
        script = "Russian"
    foreign = sum(letter in _NOT_ARABIC or _is_cyrillic_but_not_russian(letter) for letter in letters)
    return script, len(letters), foreign


def _is_cyrillic_but_not_russian(letter: str) -> bool:
    return "\u0400" <= letter <= "\u052f" and letter not in _RUSSIAN


@lru_cache(maxsize=1 << 14)
def wide_price(character: str) -> int:
    """Hundredths of a token for one character of a wide run. The white space in it costs nothing."""
    return 0 if character in " \r\n" else rates.SIGNS[sign_of(character)]


def sign_of(character: str) -> str:
    """The price class of a character of a wide run."""
    block = _block_of(character)
    return _han_class(character) if block == "Han" else block


def _block_of(character: str) -> str:
    return _BLOCK_NAMES[bisect_right(_BLOCK_STARTS, ord(character)) - 1]


def _han_class(character: str) -> str:
    """The most frequent characters, then simplified Chinese by the levels of GB 2312: level 1 is everyday use, level 2
    is rarer, the rest are traditional forms, Japanese forms and rare characters. A vocabulary knows them in this order.
    """
    if character in _MOST_FREQUENT_HAN:
        return "Han, most frequent"
    try:
        row = character.encode("gb2312")[0]
    except UnicodeEncodeError:
        return "Han, traditional"
    return "Han, common" if row < 0xD8 else "Han, rare"


_LETTER_PLACES = {letter: place for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
_RUSSIAN = frozenset("абвгдеёжзийклмнопрстуфхцчшщъыьэюяАБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ")
# The hundred characters that are most frequent in modern Chinese texts of any kind.
_MOST_FREQUENT_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
    "发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本"
)
_CYRILLIC_BUT_NOT_RUSSIAN = re.compile(
    f"[{''.join(filter(_is_cyrillic_but_not_russian, map(chr, range(0x0400, 0x0530))))}]"
)
_NOT_ARABIC = frozenset("پچژگەۆێڕڵڤۇڭۈىېھ")

# Where each block of Unicode begins (The Unicode Standard, Blocks.txt). Blocks that share a price share a name.
_BLOCKS = (
    (0x0250, "other"), (0x0370, "Greek"), (0x0400, "Cyrillic"), (0x0530, "Armenian"), (0x0590, "Hebrew"),
    (0x0600, "Arabic"), (0x0700, "other"), (0x0900, "Devanagari"), (0x0980, "Bengali"), (0x0A00, "Gurmukhi"),
    (0x0A80, "Gujarati"), (0x0B00, "Oriya"), (0x0B80, "Tamil"), (0x0C00, "Telugu"), (0x0C80, "Kannada"),
    (0x0D00, "Malayalam"), (0x0D80, "Sinhala"), (0x0E00, "Thai"), (0x0E80, "Lao"), (0x1000, "Myanmar"),
    (0x10A0, "Georgian"), (0x1100, "other"), (0x1200, "Ethiopic"), (0x13A0, "other"), (0x1780, "Khmer"),
    (0x1800, "other"), (0x2000, "punctuation"),
    (0x2070, "symbols"), (0x2500, "box drawing"), (0x2580, "dingbats"), (0x27C0, "symbols"), (0x2E80, "other"),
    (0x3000, "wide punctuation"), (0x3040, "Hiragana"), (0x30A0, "Katakana"), (0x3100, "other"), (0x3400, "other"),
    (0x4E00, "Han"), (0xA000, "other"), (0xAC00, "Hangul"), (0xD7A4, "other"), (0xFE00, "joiners"),
    (0xFE10, "other"), (0xFF00, "wide punctuation"), (0xFFF0, "other"), (0x1F000, "emoji"), (0x20000, "other"),
)  # fmt: skip
_BLOCK_STARTS = [start for start, _ in _BLOCKS]
_BLOCK_NAMES = [name for _, name in _BLOCKS]
