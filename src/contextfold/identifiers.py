"""Strings that must be repeated exactly or are wrong: paths, URLs, ids, names in code, versions, dates, titles.

What belongs here: recognizing them in a text, by their shape and in any language around them. What does not: how much
one of them is worth (``evidence``), and plain words (a sentence made of nothing else has no identifiers).

How it works: a regular expression that looks at one character at a time cuts the text into chunks, and what a chunk
holds is decided by its shape, once per distinct chunk (agent logs repeat themselves). Names that contain blanks
(quoted titles, code in backticks, capitalized proper names) are found in a second pass. A path, a URL or a dotted name
brings its telling parts along, because it will also be called by them: ``src/app/views.py`` later becomes ``views.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["url", "email", "address", "date", "uuid", "path", "name", "member", "number", "flag", "title", "person"]

LONGEST = 300
"""Characters. A longer string without a blank is data (base64, minified code), not a name."""

SHORTEST = 3
"""Characters. What is shorter is ambiguous wherever it stands."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Kana, Han and Hangul, for use inside a character class."""


class Identifier(NamedTuple):
    """``text`` stands at ``start``:``end`` (characters) of the text that was searched. ``parts`` lie inside it."""

    text: str
    kind: Kind
    start: int
    end: int
    parts: tuple[str, ...] = ()


_SPACED_LETTERS = "À-ÖØ-öø-ɏḀ-ỿͰ-ϿЀ-ԯ"
"""Letters beyond ASCII of scripts that have blanks between words (Latin, Greek, Cyrillic), for a character class."""


def _sign(letters: str = "") -> str:
    return rf"[\w{letters}@#~$%+/.:\\&=?-]"


def _chunk(letters: str = "", first: str = "", signs: str = "") -> str:
    """The pattern of a chunk, whose words have these ``letters`` besides those of ASCII, and which is also made of
    these ``signs``. ``first`` is tried before.
    """
    sign = _sign(letters + signs)
    plain = rf"[A-Za-z{letters}]?+[a-z{letters}]*+[.:?-]*+"
    return rf"(?<!{sign})(?!{plain}(?!{sign}))(?:{first}{sign}{{3,}}+)"


_PLAIN_WORD = re.compile(r"[A-Za-z]?+[a-z]*+[.:?-]*+")

# In a text that has no blanks between words, what follows an identifier mostly is no part of it. In an address of the
# web it is where it stands behind a sign: ``/新闻/``, but not ``/index看看``.
_WORDS_OF_URL = rf"(?<=[/=?&#_-])[{CJK}]+(?:\d+[{CJK}]+)*"
_URL_WITH_WORDS = rf"[A-Za-z][A-Za-z0-9+.-]{{1,15}}://(?:{_sign(_SPACED_LETTERS)}|{_WORDS_OF_URL})++|"

_FULL_WIDTH = "０-９Ａ-Ｚａ-ｚ＿－．％"
"""Letters, digits and signs as wide as those of Chinese and Japanese, as far as names are made of them."""

_HAS_FULL_WIDTH = re.compile(f"[{_FULL_WIDTH}]")
_HALVES = {wide: wide - 0xFEE0 for wide in range(ord("！"), ord("～") + 1)}

_CHUNK = re.compile(_chunk(), re.ASCII)
_WIDE_CHUNK = re.compile(_chunk(_SPACED_LETTERS, _URL_WITH_WORDS, _FULL_WIDTH), re.ASCII)


def chunk_pattern(text: str) -> re.Pattern[str]:
    """What may hold an identifier in a text. Plain words are most of it, and passed over."""
    return _CHUNK if text.isascii() else _WIDE_CHUNK


_WEB = r"""
      (?P<url>    [A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s\\]{3,} )
    | (?P<email>  (?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+ )
    | (?P<address> (?<![\w:])(?= [0-9A-Fa-f]*(?::[0-9A-Fa-f]+)*:: | (?:[0-9A-Fa-f]{1,4}:){5} )
                   [0-9A-Fa-f:.]*(?:[0-9A-Fa-f]|::)(?:/\d{1,3})?(?!\w) )
    |"""
_DATE = r"""
      (?P<date>   \d{4}(?P<separator>[-/.])\d\d?(?P=separator)\d\d?
                  (?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])
                | \d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?![\w:]) )
    | (?P<uuid>   [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12} )
    |"""
_PATH = r"""
      (?P<path>   [A-Za-z]:\\[\w\\.+-]+ | (?:~|\.{1,2})?(?:/[\w@#~+.-]+)+ | [\w@#~+.-]{1,300}+(?:/[\w@#~+.-]+)+ )
    |"""
_WORDS = r"""
      (?P<flag>   (?<![\w])--?[A-Za-z][\w-]{2,} )
    | (?P<number> [$]?\d+(?:\.\d+)*(?:%|[A-Za-z]{1,3})?(?![.-]?\w) )
    | (?P<name>   [@#$.]?\w+(?:(?:[.-]|::)\w+)* )
"""
_SHAPES = (_WEB + _DATE + _PATH + _WORDS, _DATE + _PATH + _WORDS, _DATE + _WORDS)
_SHAPE, _SHAPE_OF_PATHS, _SHAPE_OF_WORDS = (re.compile(pattern, re.VERBOSE | re.ASCII) for pattern in _SHAPES)
_SPACED = re.compile(
    r"""
      (?P<title>  [《「『【“][^》」』】”\n]{2,40}[》」』】”] | `[^`\n]{1,80}` )
    | (?P<person> (?<!\w)[A-ZÀ-Þ][a-zß-ÿ]+(?:[ ][A-ZÀ-Þ][a-zß-ÿ]+)+(?!\w)
                | (?<=[a-z,;][ ])[A-ZÀ-Þ][a-zß-ÿ]+(?!\w) )
    | (?P<date>   [\d０-９]{1,4}[年月][\d０-９]{1,2}[月日号號](?:[\d０-９]{1,2}[日号號])?
                | (?:[〇零一二三四五六七八九]{4}年)?[一二三四五六七八九十]{1,2}月[一二三四五六七八九十]{1,3}[日号號] )
    | (?P<number> [€£¥￥]\s?\d[\d,]*(?:\.\d+)? | [$]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)
                | (?<![\d,])\d[\d,]*+(?:\.\d++)?\s?(?:[万亿億円元]|°[CF])
                | (?<![０-９，．])(?:[０-９]{1,3}(?:，[０-９]{3})+(?:．[０-９]+)?[万亿億円元]?
                                  | [０-９]+(?:．[０-９]+)?[万亿億円元]) )
    """,
    re.VERBOSE | re.ASCII,
)
# A path with words that are written without blanks begins where letters of ASCII do, or Han and katakana: what stands
# before these without a blank is a particle in Japanese, and cannot be told from a folder in Chinese.
_HAN = CJK.replace("\u3040-\u30ff", "\u30a0-\u30ff")
_FOLDERS = rf"(?:[\w{CJK}+.-]{{1,60}}[/\\]){{0,12}}"
_PART = rf"[\w+-]{{0,60}}[{CJK}][\w{CJK}+-]{{0,60}}"
_ROOT = r"(?:(?:[A-Za-z]:(?=\\)|[~@]|\.{1,2})?[/\\])"
_PATH_WITH_WORDS = re.compile(
    rf"(?:(?<![\w./\\:@~+-])(?:{_ROOT}|@|(?=\w))(?:[\w+.-]{{1,60}}[/\\]){{0,12}}"
    rf"(?:{_PART}[/\\]{_FOLDERS}[\w{CJK}+.-]{{1,60}}?|(?<=[/\\]){_PART})"
    rf"|(?<![\w{_HAN}./\\:@~+-])[{_HAN}]{{1,40}}+(?:[\d_-][\w{CJK}-]{{0,40}}+)?+"
    rf"(?:[/\\]{_FOLDERS}[\w{CJK}+.-]{{1,60}}?)?)(?:\.\w{{1,10}}){{1,3}}\Z",
    re.ASCII,
)
_ENDING_OF_FILE = re.compile(rf"\.(?<=[\w{CJK}]\.)[A-Za-z]\w{{0,4}}(?![\w-]|\.\w)", re.ASCII)
_REST_OF_PATH = re.compile(rf"[\w{_SPACED_LETTERS}{CJK}@~+.:/\\-]*", re.ASCII)
_HAS_CJK = re.compile(f"[{CJK}]")
_TITLES_AND_PERSONS = r"""
      (?<=`)[^`\n]{1,80}`
    | (?<=[A-Z])(?:(?<!\w[A-Z])[a-z]+(?:[ ][A-Z][a-z]+)+(?!\w) | (?<=[a-z,;][ ][A-Z])[a-z]+(?!\w))"""
_THOUSANDS = r"""
      (?<=[$])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)
    | (?<=\d)\d{0,2}(?:,\d{3})+(?:\.\d+)?(?!\w)"""
_SPACED_ASCII = re.compile(rf"[`A-Z$0-9](?:{_TITLES_AND_PERSONS}|{_THOUSANDS})", re.VERBOSE | re.ASCII)
"""What ``_SPACED`` finds in a text of ASCII alone. Looking for its first sign first is seven times as quick."""

_SPACED_WITHOUT_THOUSANDS = re.compile(rf"[`A-Z](?:{_TITLES_AND_PERSONS})", re.VERBOSE | re.ASCII)
"""The same in most texts, which have no ``_THOUSAND``: listings and logs are full of digits."""

_THOUSAND = re.compile(r",\d\d\d", re.ASCII)

MAY_BE_SPACED = re.compile(
    rf" [A-ZÀ-Þ]|,\d\d\d|，[０-９]|[{CJK}][\w-]{{0,40}}\.[A-Za-z]|[`《「『【“€£¥￥年月万亿億円元°]", re.ASCII
)
"""What each name that is found in the second pass has in it, or stands behind."""

_DEVICE = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}")
_SHORT_MEMBERS = (
    "add|all|any|call|copy|find|get|has|id|init|iter|join|keys|kind|len|map|name|next|path|pop|push|read|run|send|set|"
    "size|sort|stop|then|time|trim|type|val"
)
_MEMBER = re.compile(
    rf"[A-Za-z_]\w*\.(?:(?!\w{{1,4}}$)\w+|(?:{_SHORT_MEMBERS}))|[A-Za-z_]\w{{0,2}}\.\w+"
    r"|\.(?!env|git|docker|npm|vscode|profile|zsh|bash)[a-z]+(?<!rc)(?<!ignore)",
    re.ASCII,
)
"""``state.version`` and ``state.get`` but neither ``state.json`` nor ``a.b.c``: two names that mostly also stand alone.
And ``.clone`` of a chain of calls, but not ``.gitignore`` or ``.bashrc``."""

_PLACE = re.compile(r"((?:[A-Za-z]:\\)?[^:]*?\.[A-Za-z]\w{0,4})-\d{1,6}-(?![\d.]|[^.]+\.)", re.ASCII)
"""A file and the number of a line, as searches write them before the lines beside one that they found:
``src/app.py-12-def main``. Not ``db.sql-2026-01-15``, nor ``report.final-2-draft.pdf``."""

_COUNTED = re.compile(r"\d{1,3}-[A-Za-z][a-z]*", re.ASCII)
"""``7-character``, and ``9-from`` of a listing: a number and a plain word. Not ``1234-fixlogin``, a ticket's branch."""

_WORD_PART = re.compile(r"[\w-]+(?:\.\w+)*")
_SEGMENTS = re.compile(r"[/\\]")
_PARTS = re.compile(r"[/\\:?&=]+")
_CASE_CHANGE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d", re.ASCII)
_ENDING = ".:?-&=+%/\\"
_ENDINGS: dict[Kind, str] = {"number": ".", "url": ".:?-&=+%", "date": "", "address": ""}
"""Signs that belong to the sentence, not to the identifier before them."""


def find(text: str) -> Iterator[Identifier]:
    """The identifiers of a text: those without blanks in order, then those with. No two of one pass overlap."""
    for chunk in chunk_pattern(text).finditer(text):
        offset = chunk.start()
        for found in in_chunk(chunk.group()):
            yield Identifier(found.text, found.kind, offset + found.start, offset + found.end, found.parts)
    if not MAY_BE_SPACED.search(text):  # most lines of a log or a program
        return
    yield from spaced(text)


def spaced(text: str) -> Iterator[Identifier]:
    """The identifiers of a text that contain blanks, such as titles and names of people."""
    if text.isascii():
        pattern = _SPACED_ASCII if _THOUSAND.search(text) else _SPACED_WITHOUT_THOUSANDS
        for match in pattern.finditer(text):
            start, end = match.span()
            first = text[start]
            if first == "`":
                if is_title(title := text[start + 1 : end - 1], first):
                    yield Identifier(title, "title", start + 1, end - 1)
            else:
                yield Identifier(text[start:end], "person" if first.isalpha() else "number", start, end)
        return
    yield from sorted((*_paths_with_words(text), *_beside_words(text)), key=lambda one: one.start)


def _beside_words(text: str) -> Iterator[Identifier]:
    for match in _SPACED.finditer(text):
        kind: Kind = match.lastgroup  # type: ignore[assignment]
        start, end = match.span()
        if kind == "title":
            start, end = start + 1, end - 1
            if not is_title(text[start:end], text[start - 1]):
                continue
        if end - start >= SHORTEST or kind in ("title", "person"):
            yield Identifier(text[start:end], kind, start, end)


def _paths_with_words(text: str) -> Iterator[Identifier]:
    """Paths and files of whose names parts are in Chinese, Japanese or Korean: ``src/组件/登录页.tsx``."""
    for ending in _ENDING_OF_FILE.finditer(text):
        before = text[max(0, ending.start() - LONGEST) : ending.start()]
        rest = _REST_OF_PATH.match(before[::-1])
        first = ending.start() - (rest.end() if rest else 0)
        is_address = text.find("://", first, ending.start()) >= 0
        if is_address or not _HAS_CJK.search(text, first, ending.start()):
            continue
        if found := _PATH_WITH_WORDS.search(text, first, ending.end()):
            yield Identifier(found.group(), "path", *found.span(), _parts(found.group(), "path"))


def is_title(quoted: str, mark: str) -> bool:
    """Whether what stands behind ``mark`` and before the next one names something: it is more than signs, and not what
    stands between one pair of backticks and the next.
    """
    if mark == "`" and (len(quoted) <= 2 or quoted[0].isspace() or quoted[-1].isspace()):
        return False
    return any(map(str.isalnum, quoted))


def names(text: str) -> tuple[str, ...]:
    """The distinct identifiers of a text and their parts, in the order in which they are found."""
    found: dict[str, None] = {}
    for identifier in find(text):
        found[identifier.text] = None
        found.update(dict.fromkeys(identifier.parts))
    return tuple(found)


def endings(name: str) -> tuple[str, ...]:
    """What a path can also be called by, being read from its end: ``b/c.py`` and ``c.py`` for ``a/b/c.py``."""
    segments = name.split("/")
    endings = ("/".join(segments[start:]) for start in range(1, len(segments)))
    return tuple(ending for ending in endings if ending.strip())


@lru_cache(maxsize=2_048)
def in_chunk(chunk: str) -> tuple[Identifier, ...]:
    """The identifiers of one match of ``chunk_pattern``, placed by its beginning."""
    if len(chunk) > LONGEST:
        return ()
    if _is_full_width(chunk):
        found = in_chunk(chunk.translate(_HALVES))
        return tuple(one._replace(text=chunk[one.start : one.end], parts=()) for one in found)
    if chunk.isidentifier():  # most chunks: what the patterns below say of nothing but letters, digits and underscores
        return (Identifier(chunk, "name", 0, len(chunk)),) if is_name(chunk) else ()
    name, assigned, value = chunk.partition("=")
    if assigned and name.isidentifier() and chunk.isascii() and (value.isdigit() or value.isidentifier()):
        return _assigned(name, value)
    return () if _PLAIN_WORD.fullmatch(chunk) else _by_shape(chunk)


def _is_full_width(text: str) -> bool:
    return not text.isascii() and _HAS_FULL_WIDTH.search(text) is not None


def _assigned(name: str, value: str) -> tuple[Identifier, ...]:
    """What ``_by_shape`` says of ``name=value``, of which programs and logs are full."""
    kind: Kind = "number" if value.isdigit() else "name"
    start = len(name) + 1
    is_value = len(value) >= SHORTEST and (is_number(value) if kind == "number" else is_name(value))
    values = (Identifier(value, kind, start, len(value) + start),) if is_value else ()
    return (Identifier(name, "name", 0, len(name)), *values) if len(name) >= SHORTEST and is_name(name) else values


def _by_shape(chunk: str) -> tuple[Identifier, ...]:
    if place := _PLACE.match(chunk):
        # One name with its number, each line would name something of its own, and the file would be named by none.
        return (*in_chunk(place.group(1)), *_behind(chunk, place.end()))
    found = []
    # the alternatives that a chunk has no sign for are not tried at each of its places
    shapes = (_SHAPE, _SHAPE_OF_PATHS, _SHAPE_OF_WORDS) if chunk.isascii() else _wide_shapes()
    shape = shapes[0 if "@" in chunk or ":" in chunk else 1 if "/" in chunk else 2]
    for match in shape.finditer(chunk):
        kind: Kind = match.lastgroup  # type: ignore[assignment]
        text = match.group().rstrip(_ENDINGS.get(kind, _ENDING))
        if len(text) >= SHORTEST and _ACCEPTED.get(kind, _always)(text):
            kind = _closer(kind, text)
            start = match.start()
            found.append(Identifier(text, kind, start, start + len(text), _parts(text, kind)))
    return tuple(found)


def _behind(chunk: str, start: int) -> Iterator[Identifier]:
    """The identifiers of the rest of a chunk."""
    rest = chunk[start:]
    for one in in_chunk(rest) if len(rest) >= SHORTEST else ():
        yield one._replace(start=one.start + start, end=one.end + start)


@lru_cache(maxsize=1)
def _wide_shapes() -> tuple[re.Pattern[str], ...]:
    """The shapes of chunks with letters beyond ASCII. Made when the first one is met: most texts have none."""
    return tuple(re.compile(pattern, re.VERBOSE) for pattern in _SHAPES)


def _closer(kind: Kind, text: str) -> Kind:
    """Attributes are told from other names; versions and addresses with several dots are names, not amounts."""
    if kind == "address" and not _is_address(text):
        return "name"
    if kind == "name" and _MEMBER.fullmatch(text):
        return "member"
    if kind == "name" and _COUNTED.fullmatch(text):
        return "number"
    return "name" if kind == "number" and text.count(".") > 1 else kind


def _always(_: str) -> bool:
    return True


def is_name(text: str) -> bool:
    """Not a plain word: an inner capital, a digit among letters, an underscore, a dot, a sigil or several hyphens."""
    if "_" in text and text.isidentifier() and text[0] != "_" and text[-1] != "_" and text.isascii():  # most of them
        return True
    if _is_full_width(text):
        text = text.translate(_HALVES)
    lower = text.lower()
    if text.isalpha():  # most parts of paths
        return lower != text and bool(_CASE_CHANGE.search(text))
    if text[0] == "#" and len(text) > 2:
        return True
    if lower == text.upper():  # no letter
        return "-" in text and len(text) > 7  # telephone and order numbers
    if text[0] in "@$." or "_" in text.strip("_") or "::" in text or (lower != text and _CASE_CHANGE.search(text)):
        return True
    if "." in text:
        return max(map(len, text.split("."))) > 1
    return bool(_DIGIT.search(text)) or text.count("-") > 1


is_named_part = lru_cache(maxsize=2_048)(is_name)
"""The same, remembered: the paths of a conversation share most of their parts."""


def _is_address(text: str) -> bool:
    """Whether a text is the address of a device, or one of the sixth version of IP, maybe with the size of a network.

    Those of the fourth are names with dots.
    """
    if _DEVICE.fullmatch(text):
        return True
    from ipaddress import IPv6Interface  # few conversations have any

    try:
        IPv6Interface(text)
    except ValueError:
        return False
    return True


def _is_path(text: str) -> bool:
    if not _LETTER.search(text):
        return False
    segments = [s for s in _SEGMENTS.split(text) if s]
    return text[0] in "/~.\\" or ":" in text or len(segments) > 2 or any(map(is_named_part, segments))


def is_number(text: str) -> bool:
    """Whether digits, with signs among them, are a figure that says something."""
    # Three digits such as ``404`` may be anything; ``40%`` and ``1.5`` are figures.
    return len(text) > SHORTEST or not text.isdigit()


_ACCEPTED = {"name": is_name, "path": _is_path, "number": is_number}


def _parts(text: str, kind: Kind) -> tuple[str, ...]:
    if kind not in ("url", "path", "name", "member") or text.isidentifier():
        return ()
    parts: list[str] = []
    if kind in ("url", "path"):
        parts += [p for p in _PARTS.split(text) if len(p) >= SHORTEST and is_named_part(p)]
    for piece in _WORD_PART.findall(text):
        parts += [p for p in piece.split(".") if len(p) > SHORTEST and is_named_part(p)]
    return tuple(dict.fromkeys(p for p in parts if p != text))
