"""Which language a conversation is held in, judged by what people wrote in it.

What belongs here: telling languages apart by their scripts and their commonest words, and the names of languages for
prompts. What does not: any wording in a language (the prompts' files, ``extractive_words``).

Code, logs, links and names in code are set aside first, since they are English wherever they stand. A language with a
script of its own is told by its letters, one with Latin letters by its function words: the commonest two dozen words
make up about a third of any running text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

DEFAULT = "en"

SAMPLE = 2000
"""Characters of one text that are looked at: a pasted page must not outvote what was written around it."""

_NAMES = {
    "ar": "Arabic",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}

# Each word belongs to as few languages as possible; a word of several counts for each of them.
_FUNCTION_WORDS = {
    "de": "der die das und ist nicht ich wir sie es ein eine einen dem den des mit für auf von zu im auch wie bitte "
    "kann aber wenn noch nur oder sind werden wird bei nach dass mir mal",
    "en": "the and is not it of to in that this you for with on are be we have can please i my how what should from "
    "but if was will do does an there use at as your would all or by",
    "es": "el la los las un una es de que y en no por para con se lo como pero si este esta más muy puedes del al mi "
    "está son hay cuando",
    "fr": "le la les un une est et de des du que qui dans pour pas ne je vous nous avec sur ce cette il au en mais si "
    "peux être sont plus comme mon",
    "it": "il lo la gli le un una è e di che in per non con si del della sono come ma se questo questa mi ho anche più "
    "nel alla puoi",
    "nl": "de het een en is niet van ik je we dat die in op te met voor zijn er maar als ook kan naar aan wordt nog "
    "deze moet",
    "pl": "i w nie na się to jest z że do jak ale czy po za od tak dla są być może ten ta o proszę tylko",
    "pt": "o a os as um uma é de que e em não por para com se do da no na como mas você está isso este esta mais são "
    "meu pode",
    "tr": "bir ve bu için ile de da ne mi var çok daha gibi ama ben sen olarak değil nasıl şu her olan",
    "vi": "và của là có không cho với được trong này một các những tôi bạn để khi như đã thì",
}
_ARTICLE = "a"
"""English's, if anything else is; it is Portuguese's, too, and a small word of Spanish, French, Italian, Polish."""
_LANGUAGES_OF: dict[str, list[str]] = {}
for _code, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_code)

_NOT_PROSE = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`"  # code
    r"|<[^<>\n]{1,200}>"  # tags
    r"|\S{0,100}[/\\_=(){}\[\]@#$]\S*|\S{1,100}\.\S+|\S{0,100}\d\S*",  # paths, names in code, links, figures
    re.DOTALL | re.ASCII,
)
_LATIN_WORD = re.compile(r"[^\W\d_\u0370-\U0010ffff]+")

_SCRIPTS = (
    ("kana", re.compile(r"[\u3040-\u30ff]")),
    ("han", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1fff\u3040-\ud7af\uf900-\ufaff]")
_UKRAINIAN = re.compile(r"[іїєґ]", re.IGNORECASE)

_KANA_SHARE = 0.08
"""Of all Japanese letters in a text, at least this share is kana; Chinese quotes the odd one."""

_LETTERS_PER_WORD = {"han": 1.6, "kana": 1.6, "ko": 2.5, "th": 4.0}
_USUAL_LETTERS = 5.0
"""Per word, of scripts without a figure of their own."""


def dominant(texts: Iterable[str]) -> str:
    """The code (ISO 639-1) of the language that most of the texts' words are in; ``en`` where nothing tells."""
    letters: Counter[str] = Counter()
    latin: Counter[str] = Counter()
    ukrainian = 0
    for text in texts:
        prose = _NOT_PROSE.sub(_kept_letters, text[:SAMPLE])
        latin.update(_LATIN_WORD.findall(prose.lower()))
        if _OTHER_SCRIPT.search(prose):
            letters.update({script: len(found) for script, pattern in _SCRIPTS if (found := pattern.findall(prose))})
            ukrainian += len(_UKRAINIAN.findall(prose))
    script = _script_language(letters, ukrainian)
    if script and _word_count(letters) >= latin.total():
        return script
    return _latin_language(latin) if latin else script or DEFAULT


def name(code: str) -> str:
    """The English name of a language, for prompts. A code that is not known stands for itself."""
    return _NAMES.get(code, code)


def _kept_letters(match: re.Match[str]) -> str:
    """What stays of a stretch that is not prose: letters of other scripts, which may touch a name without a blank."""
    text = match.group()
    return " ".join([" ", *_OTHER_SCRIPT.findall(text)]) if text[0] not in "`~<" else " "


def _word_count(letters: Counter[str]) -> float:
    return sum(number / _LETTERS_PER_WORD.get(script, _USUAL_LETTERS) for script, number in letters.items())


def _script_language(letters: Counter[str], ukrainian: int) -> str:
    """The language that most letters outside the Latin alphabet speak for; empty without such letters."""
    if not letters:
        return ""
    east = letters["kana"] + letters["han"]
    totals = {
        "ja" if letters["kana"] > _KANA_SHARE * east else "zh": east,
        "uk" if ukrainian > 0.02 * letters["cyrillic"] else "ru": letters["cyrillic"],
        **{script: letters[script] for script, _ in _SCRIPTS if script not in ("kana", "han", "cyrillic")},
    }
    return max(totals, key=lambda code: totals[code])


def _latin_language(said: Counter[str]) -> str:
    """The language with most function words; the default one where it is a tie with it, or there are none."""
    words: Counter[str] = Counter()
    for word in said.keys() & _LANGUAGES_OF.keys():
        words.update(dict.fromkeys(_LANGUAGES_OF[word], said[word]))
    if not words:
        return DEFAULT
    is_only_english = any(_LANGUAGES_OF.get(word) == ["en"] for word in said)
    is_of_another = bool(words.keys() - {"en", "pt"}) or not all(map(str.isascii, said))
    if is_only_english or not is_of_another:
        words["en"] += said[_ARTICLE]
    return min(words, key=lambda code: (-words[code], code != DEFAULT, code))


def function_words(code: str) -> tuple[str, ...]:
    """The commonest words of a language that is told by them; none of the others."""
    return tuple(_FUNCTION_WORDS.get(code, "").split())
