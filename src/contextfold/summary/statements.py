"""What a sentence of a user says that matters to rules: whether it sets one or takes one back, and of what.

What belongs here: the plain words of a statement, what it names, and what it limits, permits and forbids. What does
not: how a demand is worded (``rule_words``), and which rules stand at the end (``rules``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from contextfold import identifiers
from contextfold.summary import extractive_cues as cues
from contextfold.summary.manner_words import FILLERS, KINDS, NAMING
from contextfold.summary.rule_words import DAYS, NOW
from contextfold.summary.standing_words import REPLIES
from contextfold.summary.withdrawal_words import AMOUNT, ASIAN_VALUES, RULE_ENDS, SETS, SETTING

WHOLE = 240
"""Characters. A message up to this size that begins with a label (``RULE:``) is one statement."""

SHORT = 80
"""Characters of what says only how something is to be done, or what it is limited to."""

NAMED = "# as the user's name"
"""The shape of what to call the user."""

_CONTENT = rf"(?![\u3040-\u309f])[{identifiers.CJK}]"
"""Of text without blanks: hiragana are mostly endings, which differ where a rule is set and where it is lifted."""

IS_CJK = re.compile(f"[{identifiers.CJK}]")

_MODAL = re.compile(
    "请|务必|必须|必需|一定要?|不要|不能|不可|不得|不许|禁止|严禁|切勿|始终|总是|只能|现在|以后|今后|可以|允许"
    "|直接|使用|改成|改为|换成|作废|不算数|开始|不用再|不必再|不需要再|每次|都要|常に|必ず|必須|絶対|今後"
    "|하지|마세요|말아|주세요|해도|돼요?|됩니다|이제부터|이제|지금부터|앞으로는?|절대|반드시|항상"
    r"|\b(?:(?:is|are|has been|have been) (?:now )?lifted|(?:no longer|does(?: not|n['’]?t)) appl(?:y|ies))\b"
    r"|\bdo(?: not|n['’]?t) apply(?= any| now|\W*\Z)"
)
"""What a rule is worded with, and words that lift one: they say nothing of what it is about."""

_WORD = re.compile(
    rf"(?=({_CONTENT}{_CONTENT}))|(?<!{_CONTENT})({_CONTENT})(?=[\u3041-\u3096])|([^\W\d_{identifiers.CJK}\u0900-\u097f]{{3,}}|[\u0900-\u0963]{{2,}})"
)
"""Each pair of signs, since a pair that begins at the wrong one would say nothing; a sign that Japanese endings stand
behind; words of letters.
"""

_LABEL = re.compile(r"\W*\w[\w -]{2,30}[:：]\s")
ALONE = re.compile(r"(?<![\w./-])\d+(?:[.,:]\d+)?(?![\w/-]|[.,:]\d)")
"""A figure that is no part of a name or an address."""

_WHEN = re.compile(
    rf"\b(?:{DAYS.pattern})\b|(?:周|星期|[礼禮]拜)[一二三四五六日天]|[月火水木金土日]曜日?|[월화수목금토일]요일",
    re.IGNORECASE,
)
_RULE_OF = re.compile(r"\b([^\W\d_]{3,30}?)(?:s-|s|-)?regel(n?)\b", re.IGNORECASE)
"""``Freitagsregel`` and ``Emoji-Regel``: in German a rule is one word with what it is about."""

WEEKDAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?)\b",
    re.IGNORECASE,
)
"""Days in the languages that begin them with a capital: they stand among names there, and not among plain words."""

_BY_NOW = re.compile(rf" (?:{NOW})\b", re.IGNORECASE)
FORGET = re.compile(
    r"\b(?:forget|never ?mind|scrap|vergiss\w*|oublie[zr]?|olvid[ae]\w*"
    r"|esque[çc][ae]|dimentica\w*|vergeet|забудь\w*|zapomnij|भूल|(?:ignore|drop|lift) the (?:\w+ )?rules?"
    rf"|{RULE_ENDS})\b",
    re.IGNORECASE,
)
"""What they are about need not be all that a rule says: the linter is forgotten with *always run the linter*."""

_VERSION = re.compile(
    r"(?<![\w.])(?!(?:to|by|of|at|is|for|in|on|with|and|or|auf|mit|von|um|bei|à|de|con|per|di|van|op|на|до"
    r"|eur|usd|gbp|chf)\b)((?:[^\W\d_][\w+#]*) v?\d+(?:\.\d+)+|(?<=\w )[A-Z][\w+#]* v?\d+)\b(?![.,]?\d"
    r"| ?(?:%|[€$£]|[kmg]b|m?s|dollars?|euros?|percent|prozent|hours?|minutes?|seconds?|days?|weeks?|times|words|lines"
    r"|stunden?|minuten?|sekunden?|tagen?|wörter)\b)",
)
"""A name and what tells one of its versions from another: ``Python 3.9``, ``Node 18``. No amount, and no date."""

COMPARES = re.compile(
    r"\b(?:than|above|below|over|under|exceed\w*|least|most|before|until|als|über|unter|vor|bis|plus|moins|avant|más|menos"
    r"|mais|più|meno|meer|minder|boven|onder|более|менее|больше|меньше|выше|ниже)\b|超过|以上|以下|之前|より|이상|이하",
    re.IGNORECASE,
)
_REPLY = re.compile(REPLIES.pattern, re.IGNORECASE)
_NAMING = re.compile(NAMING.pattern, re.IGNORECASE)
_MANNERS = tuple((name, re.compile(rf"\b(?:{pattern})(?!\w)")) for name, pattern in KINDS)
_SOME_MANNER = re.compile(rf"\b(?:{'|'.join(pattern for _, pattern in KINDS)})(?!\w)", re.IGNORECASE)
_FILLERS = frozenset(FILLERS.split())
_NOT_SO = re.compile(r"(?:,? not|,? nicht| statt) \w{1,30}$")
_LETTERS = re.compile(r"[^\W\d_]+")
_SETTING = frozenset(SETTING.split())
_SETS = re.compile(SETS)
_HAS_VALUE = re.compile(r"\d|[曜周]")
_AMOUNT = re.compile(AMOUNT)
_VALUE_ASIAN = re.compile(ASIAN_VALUES)
_LINE = re.compile(
    r"(?:(?:set|make|keep|change|raise|the|our|max(?:imum)?) ){0,3}line (?:length|width)(?: limit)?(?: (?:is|to|of|at"
    r"|must be|should be))? #(?: (?:characters|chars|columns|cols))?(?: max(?:imum)?| instead| please)?"
)
_SIGNS = re.compile(
    r"(?:(?:max(?:imum)?|at most|up to) )?(?:of )?# (?:characters|chars|columns|cols)(?: max(?:imum)?)?(?: per line)?"
)
_OF_A_LINE = re.compile(r"(?<!\d)(?:[6-9]\d|1[0-6]\d)(?!\d)")
"""Characters that a line may have: 72, 80, 100, 120. An answer or a page has more."""
STEM = 6
_DOUBLED = re.compile("([bgmnpt])\\1ing$")
"""``running`` and ``run``."""

_FRENCH_YER = re.compile(r"(?<=[ou])ie(?:s|nt)?$")
"""``déploie`` and ``déployer``."""

_MANY = re.compile("(?<=..[^su])s$")
"""Of short words, which are not cut: ``emojis`` and ``emoji``."""

_ARTICLE = re.compile("^[وبف]?(?:ال|لل)(?=..)")
EMPTY = frozenset(
    word
    for words in (
        "the and for with that this from not use must never always only please instead should any all you your our are",
        "was has have will can may now else than then them they who what when without about into its",
        "der die das und mit nicht nur bitte statt stattdessen ein eine einen den dem für von",
        "fine okay allowed again after longer earlier said forget ignore keep need dollars euros",
        "euro eur usd gbp chf mind nevermind ist sind est gilt gelten brauchst wieder erlaubt regel regeln",
        "darf dürfen darfst muss müssen kann kannst jetzt doch wieder nie niemals immer kein keine keinen",
        "jamais toujours peux pouvez maintenant nunca siempre ahora puedes puede agora pode você sempre não",
        "non mai ora adesso puoi nooit altijd mag mogen niet geen никогда всегда нельзя можно можешь теперь снова",
        "les des une pas pour avec que los las una por para con",
        "actually meant scrap cancel drop disregard changed free ahead vergiss stattdessen anstatt plutôt finalement",
        "मत नहीं कभी भी अब आप तुम है हैं को में से पर के की का और यह वह कर करें करो करना सकते सकता हो हमेशा",
        "केवल सिर्फ जा भूल कृपया बजाय जगह",
        "لا يجب أن ألا الآن يمكنك دائما دائمًا فقط من على في إلى هذا هذه ذلك أبدا بدلا انس تجاهل عدم",
        "désormais dorénavant poi partir plaît plait adelante favor diante avanti favore voortaan vanaf going",
        "alsjeblieft forward henceforth jeder jede jedem jedes chaque cada ogni elke iedere отныне впредь этого",
        "момента пожалуйста",
        "nigdy zawsze tylko proszę możesz można wolno teraz już znowu zamiast jednak zapomnij dla musi trzeba więcej",
        "don let lets sorry hagas hacer haz faça fazer fare fai faire fais mache machen feel hace falta वाली बात जाओ",
        "oublie lieu lugar olvida vez esquece verdade invece dimentica plaats vergeet вместо забудь",
        "using benutz benutze benutzt benutzen nutz nutze nutzt nutzen verwende verwendet verwenden nimm nehme nehmt",
        "nehmen utilise utilises utilisez utiliser utilisons usa usar uses usen usad utiliza utilizar utilice utilices",
        "utilize usare usate utilizza utilizzare gebruik gebruiken gebruikt используй используйте использовать",
        "используем używaj używać użyj użyć używamy hier ici aquí aqui здесь",
        "esqueça del della dei delle règle règles regla reglas regra regras regola regole правило правила",
    )
    for word in words.split()
)
"""Words that say nothing of what something is about, among them those for *use*."""

_ALTERS = frozenset(
    word
    for words in (
        "touch change changi edit edits modify modifi alter ändere ändern ändert anfass fass bearbe veränd touche",
        "tocar toques toque cambia cambie mexa mexer altere altera toccar tocca raak",
        "toca tocca wijzig aanpas verand трогай трогат меняй менять измени изменя ruszaj ruszać zmieni zmiena",
    )
    for word in words.split()
)
"""Stems of words for one thing: ``don't touch the config`` falls with ``you can change the config now``."""

_SAYS_NOTHING = frozenset(
    word
    for words in (
        *EMPTY.difference(("need", "keep", "drop", "cancel", "scrap", "ignore", "disregard", "forget", "free")),
        "a an to on in at of by it is do be as so ok u re s d ll m t i im we me my any well yes yeah sure",
        "guess permitted welcome alright okey oki make made used using uses zu auf am im es du ihr man",
        "gestattet ordnung problem nutzen verwenden verwende benutzen la le l un de d des du au aux en à sur",
        "tu on vous sont permis permise autorisé utiliser utilise utilisez y el lo al del se su mi una está",
        "autorisée autorisés autorisées permises permitida permitidos permitidas permesso permessi permessa permesse "
        "consentita consentiti consentite liberado liberada liberados liberadas estão são sono vanno ammessi ammesse "
        "están bien permitido permito vale ya usar usa usen utilizar o os as da do dos na no nas nos em um",
        "uma tudo bem il gli di nel uno che va bene permetto consentito usare usi utilizzare op te het je jij",
        "wel gebruiken gebruik в с к по и у ты вы разрешаю использовать użyć używać użyj",
    )
    for word in words.split()
)
"""Of what is forbidden or allowed. ``Use`` is what is done with what nothing else is said of."""

_STRESSED = re.compile("(?:绝对|千万|万万)(?=[不别])")
_GO_AHEAD = re.compile(r"\b(?:go ahead and|feel free to)\b")
_NEVER_MIND = re.compile(r"\A\W*never ?mind\b", re.IGNORECASE)
_ASKS_IF = re.compile(
    r"[吗嗎么呢か]\W*$|\b(?:ask|asked|wonder|know) (?:me )?(?:if|whether)\b"
    r"|\bas (?:they are|it is|is)\b|\A\W*(?:the|th(?:is|at|[eo]se)|your|my|our|der|die|das|deine?) "
    r"(?:[\w-]{1,30} ){1,3}(?:is|are|ist|sind) (?:ok|okay|fine|in ordnung)\b(?! (?:now|again|jetzt|nun|wieder))",
    re.IGNORECASE,
)
"""A question, or how things are: ``the mocks are fine``."""

_OF_LETTERS = re.compile(rf"[^\W_{identifiers.CJK}]+")
_ENDING = re.compile(r"(?<=\w{3})(?:are|ere|ire|ar|er|ir|u?e[nmz]?|a[nm]?|i|o)$")

_MORE_WORDS = "more any anymor mehr meer mais más più plus больше each every time mal"
_MORE = frozenset(_MORE_WORDS.split())
"""Of what is to be done no more, as the stems of words are: they say nothing of what it is."""


class Things(NamedTuple):
    """What a text names, without figures and days, which are what changes: what is forbidden of one thing is not
    forbidden of another. A version is another thing.
    """

    names: frozenset[str]
    capitalized: frozenset[str]
    """Plain words that begin with a capital: people and products, in German each noun."""
    parts: frozenset[str]
    """What the names can also be called by: ``a.py``."""
    all: frozenset[str]
    """Names and words with a capital."""
    known: frozenset[str]
    """All of these."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that a user said which sets a rule or takes one back. It follows from the message alone."""

    text: str
    is_rule: bool
    withdraws: bool
    words: frozenset[str]
    """The stems of its plain words."""
    forbids: bool
    shape: str
    """The same for two of which the later one holds, whatever their words: of limits the text without its figures, and
    one for all that say no more than in which language to answer.
    """
    ends: frozenset[str]
    """Of what withdraws and says only that something is to be done no more: the stems of the words for it."""
    permits: frozenset[str] = frozenset()
    """Of what says only that something may be done: all that it says of it."""
    says: frozenset[str] = frozenset()
    """Of a rule: all that it says of what must be done, or must not be."""

    @property
    def things(self) -> Things:
        """Looked for where it is asked: words are compared first, and tell most statements apart."""
        return things_of(self.text)


def statements_of(sentences: Sequence[str]) -> Iterator[Statement]:
    """The sentences of a message that matter to rules; a short message that begins with a label is one statement."""
    whole = " ".join(sentences)
    for text in [whole] if len(whole) <= WHOLE and _LABEL.match(whole) else sentences:
        heads = cues.heads(text)
        asks = is_question(text)
        holds_on = asks or bool(cues.ONCE.search(text))  # the rule does, whatever is allowed now
        withdraws = cues.withdraws(text, heads) and (not holds_on or bool(cues.SWAPPING.search(text)))
        is_rule = (cues.demands(text, heads) or cues.is_labeled(text)) and not asks
        permits = frozenset() if holds_on or not cues.PERMISSION.search(text, heads) else _permitted(text)
        # What only gives another value is no rule by itself, and takes the place of one about the same.
        shape = "" if asks else _manner(text) or _value(text, is_rule=is_rule)
        if is_rule or withdraws or permits or shape:
            forbids = bool(cues.PROHIBITS.search(text))
            shape = shape or ("" if forbids or not is_rule else _shape(text))
            ends = plain_words(cues.ended(text)) - _MORE if withdraws else frozenset()
            says = _ruled(text) if is_rule else frozenset()
            yield Statement(text, is_rule, withdraws, plain_words(text), forbids, shape, ends, permits, says)


def _shape(text: str) -> str:
    if _REPLY.search(text) and not plain_words(_REPLY.sub(" ", text)):
        return "# as the language of answers"
    if _NAMING.search(text) and not with_nouns(_NAMING.sub(" ", text), STEM):
        return NAMED
    shape = _figureless(text)
    is_short = any(len(word) == 2 and word not in _SAYS_NOTHING for word in _LETTERS.findall(shape))  # in the US
    said = plain_words(text) - {"make"} if shape.count("#") == 1 and not is_short else frozenset()
    if len(said) == 1 and not (COMPARES.search(bare := min(said)) or bare.startswith("max")):  # that is no thing
        return f"# of {min(said)}"
    return shape if "#" in shape else ""


def _figureless(text: str) -> str:
    return _BY_NOW.sub("", _with_now(text))


def _with_now(text: str) -> str:
    return _WHEN.sub("#", ALONE.sub("#", text.lower())).rstrip(" .!。．｡")


def _manner(text: str) -> str:
    """Of a short text that says only which of several manners to do something in, what that is: ``use tabs``."""
    if len(text) > SHORT or not _SOME_MANNER.search(text):
        return ""
    core = _NOT_SO.sub(" ", cues.put_in_place(text.lower()))
    for name, pattern in _MANNERS:
        if found := pattern.search(core):
            rest = _LETTERS.findall(pattern.sub(" ", core))
            is_said = len(_LETTERS.findall(core)) > 1 and _FILLERS.issuperset(rest)
            return f"# as {name or found[1]}" if is_said else ""
    return ""


def _value(text: str, *, is_rule: bool) -> str:
    """Of a short text that says only what a single thing is limited or set to, that thing; of what is no rule only if
    it says that this changes: ``let's raise the budget to 800``.
    """
    if len(text) > SHORT or not (_HAS_VALUE.search(text) or _WHEN.search(text)):
        return ""
    if not text.isascii() and (found := _VALUE_ASIAN.fullmatch(text)):
        return f"# of {next(filter(None, found.groups()))}"
    shape = _figureless(text)
    if shape.count("#") != 1 or not (is_rule or _SETS.search(_with_now(text))):
        return ""
    if _LINE.fullmatch(shape) or (_SIGNS.fullmatch(shape) and _OF_A_LINE.search(text)):
        return "# of line length"
    things = [word for word in _LETTERS.findall(_AMOUNT.sub(" ", shape)) if word not in _SETTING]
    most = [word for word in things if word.startswith("max")]
    stems = plain_words(" ".join(word for word in things if word not in most))
    is_one = len(stems) == 1 and len(things) == 1 + len(most[:1])
    return f"# of {'max ' if most else ''}{min(stems)}" if is_one else ""


def is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "？", "؟"))


@lru_cache(maxsize=4_096)
def with_nouns(text: str, size: int) -> frozenset[str]:
    """The stems of its plain words and of those that begin with a capital, which in German are all nouns: they may be
    all that it is about. Days are among them.
    """
    nouns = {word for name in things_of(text).capitalized for word in name.lower().split()}
    nouns.update(day.lower() for day in WEEKDAY.findall(parted(text)))
    return frozenset(_MANY.sub("", word[:size]) for word in plain_words(text) | nouns)


def _ruled(text: str) -> frozenset[str]:
    """All that a rule says, without words for rules."""
    if FORGET.search(text):
        return frozenset()
    return _content(cues.PROHIBITS.sub(" ", _MODAL.sub(" ", _STRESSED.sub("", text))))


def _permitted(text: str) -> frozenset[str]:
    """All that a text says that allows something, without words for that; nothing where it denies or asks."""
    text = _NEVER_MIND.sub("", text)
    if cues.PROHIBITS.search(text) or _ASKS_IF.search(text):
        return frozenset()
    return _content(text)


def _content(text: str) -> frozenset[str]:
    """The roots of all words and names of a text that say something, figures too."""
    text = _MODAL.sub(" ", _GO_AHEAD.sub(" ", text.lower()))
    said = (_root(word) for word in _OF_LETTERS.findall(text) if word not in _SAYS_NOTHING)
    return frozenset(said) | {word for word in plain_words(text) if IS_CJK.match(word)}


def _root(word: str) -> str:
    """A word without the ending of a verb or of more than one: ``borres`` and ``borrar``."""
    if word[:STEM] in _ALTERS:
        return "touch"
    bare = _DOUBLED.sub(r"\1", _FRENCH_YER.sub("ye", word)).removesuffix("ing")
    return _ENDING.sub("", bare.removesuffix("s") if len(bare) > 3 else bare)


def parted(text: str) -> str:
    """A text with words for rules apart from what these are about."""
    return _RULE_OF.sub(r"\1 Regel\2", text) if "regel" in text.lower() else text


@lru_cache(maxsize=4_096)
def things_of(text: str) -> Things:
    text = parted(text)
    names: set[str] = set()
    capitalized: set[str] = set()
    parts: set[str] = set()
    versions = {one[1].lower() for one in _VERSION.finditer(text) if not DAYS.fullmatch(one[1].partition(" ")[0])}
    if versions and not COMPARES.search(text):  # of two limits the later one holds
        names |= versions
    for found in identifiers.find(text):
        if found.kind not in ("number", "date") and not DAYS.fullmatch(found.text):
            if found.kind == "person":  # without the article that a sentence begins with
                said = [word for word in found.text.split() if word.lower() not in EMPTY]
                capitalized.add(" ".join(said))
                if found.start == 0 and len(said) > 1:  # the first may be a verb: "Installiere Redis"
                    parts.add(" ".join(said[1:]))
            else:
                names.add(found.text)
            parts.update(found.parts)
    capitalized.discard("")
    named = frozenset(names | capitalized)
    return Things(frozenset(names), frozenset(capitalized), frozenset(parts), named, named | parts)


def plain_words(text: str) -> frozenset[str]:
    """The stems of its plain words: without names and figures, which are what changes."""
    text = parted(text)
    for name in identifiers.names(text):
        text = text.replace(name, " ")
    words = ((found[1] or found[2] or found[3]).lower() for found in _WORD.finditer(_MODAL.sub(" ", text)))
    words = (_ARTICLE.sub("", word) for word in words if word not in EMPTY)
    words = (_FRENCH_YER.sub("ye", word) if "ie" in word else word for word in words)
    stems = (_MANY.sub("", _DOUBLED.sub(r"\1", word).removesuffix("ing")[:STEM]) for word in words)
    return frozenset("touch" if stem in _ALTERS else stem for stem in stems)
