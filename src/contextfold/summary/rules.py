"""The rules that a user set and did not take back: what must hold in every summary, word for word.

What belongs here: finding what a user demands, forbids or limits, or marks with a label in capitals, and what later
words replace or withdraw. What does not: how a demand is worded (``rule_words``), and where rules stand in a
summary (``extractive``).

They are read from the originals at every pass, so none fades. What is said later wins: a statement that says the same
with other figures or names takes the place of the earlier one (``the budget is $900``), and words that withdraw
(``forget the port``, ``use 9000 instead``) take out the rules that they are about. Where it is not clear that they are
meant, the rule stays: one that is repeated too often does less harm than one that is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from contextfold import identifiers
from contextfold.summary import extractive_cues as cues
from contextfold.summary.manner_words import FILLERS, KINDS, NAMING
from contextfold.summary.rule_words import DAYS, NOW
from contextfold.summary.standing_words import REPLIES
from contextfold.summary.withdrawal_words import AMOUNT, ASIAN_VALUES, SETS, SETTING, SKIPS

WHOLE = 240
"""Characters. A message up to this size that begins with a label (``RULE:``) is one statement."""

FEW = 2
"""Words of a rule that one of them is enough to take back: ``forget the budget``."""

LEAST_SAID = 3
"""Plain words that two statements must have in common, and no others, to be about the same thing."""

SAME = 0.7
"""Share of their plain words that two statements have in common that say the same about something else."""

SHORT = 80
"""Characters of what says only how something is to be done, or what it is limited to."""

NAMED = "# as the user's name"
"""The shape of what to call the user."""

MOST = 200
"""Rules that are looked after. No summary has room for more, and each is compared with all that comes later."""

_CONTENT = rf"(?![\u3040-\u309f])[{identifiers.CJK}]"
"""Of text without blanks: hiragana are mostly endings, which differ where a rule is set and where it is lifted."""

_IS_CJK = re.compile(f"[{identifiers.CJK}]")

_MODAL = re.compile(
    "请|务必|必须|必需|一定要?|不要|不能|不可|不得|不许|禁止|严禁|切勿|始终|总是|只能|现在|以后|今后|可以|允许"
    "|直接|使用|改成|改为|换成|作废|不算数|开始|不用再|不必再|不需要再|每次|都要|常に|必ず|必須|絶対|今後"
    "|하지|마세요|말아|주세요|해도|돼요?|됩니다|이제부터|이제|지금부터|앞으로는?|절대|반드시|항상"
)
"""What a rule is worded with, and words that lift one: they say nothing of what it is about."""

_WORD = re.compile(
    rf"(?=({_CONTENT}{_CONTENT}))|(?<!{_CONTENT})({_CONTENT})(?=[\u3041-\u3096])|([^\W\d_{identifiers.CJK}\u0900-\u097f]{{3,}}|[\u0900-\u0963]{{2,}})"
)
"""Each pair of signs, since a pair that begins at the wrong one would say nothing; a sign that Japanese endings stand
behind; words of letters.
"""

_LABEL = re.compile(r"\W*\w[\w -]{2,30}[:：]\s")
_FIGURE = re.compile(r"\d[\d.,:]*")
_ALONE = re.compile(r"(?<![\w./-])\d+(?:[.,:]\d+)?(?![\w/-]|[.,:]\d)")
"""A figure that is no part of a name or an address."""

_WHEN = re.compile(rf"\b(?:{DAYS.pattern})\b", re.IGNORECASE)
_WEEKDAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?)\b", re.IGNORECASE
)
_BY_NOW = re.compile(rf" (?:{NOW})\b", re.IGNORECASE)
_RULE = frozenset({"rule", "rules"})
_FORGET = re.compile(
    r"\b(?:forget|never ?mind|scrap|vergiss\w*|oublie[zr]?|olvid[ae]\w*"
    r"|esque[çc][ae]|dimentica\w*|vergeet|забудь\w*|zapomnij|भूल|(?:ignore|drop|lift) the (?:\w+ )?rules?)\b",
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

_PLACE = re.compile(
    r"#(\d+)\b|\b(?:tasks?|issues?|tickets?|story|pull request|pr|mr|bugs?|items?|steps?|tables?|figures?|chapters?"
    r"|sections?|appendix|questions?|exercises?|parts?|pages?|slides?|rows?|columns?|tests?|cases?|requirements?|articles?"
    r"|aufgaben?|tabellen?|abbildung|kapitel|abschnitt|anhang|fragen?|übung|teil|seiten?|folien?|schritt|punkt|zeilen?"
    r"|spalten?|tâche|tableau|chapitre|étape|partie|tarea|tabla|capítulo|sección|pregunta|paso|parte|página|tarefa|tabela"
    r"|seção|pergunta|questão|passo|etapa|compito|tabella|capitolo|sezione|domanda|pagina|taak|tabel|hoofdstuk|vraag|stap"
    r"|deel|задач\w*|таблиц\w*|глав\w*|раздел\w*|вопрос\w*|шаг\w*|част\w*|страниц\w*) (?:no\.? ?|nr\.? ?|№ ?|#)?(\d+)\b"
    r"|(?:第|表|图|図|問|任务|步骤|タスク) ?(\d+)(?![\d%]|[天日年月个週周次回])|(?:과제|표|그림) ?(\d+)(?!\d)",
    re.IGNORECASE,
)
"""A thing that has a number for its name, among others of its kind: ``table 3``, ``issue #12``, ``第3章``."""

_COMPARES = re.compile(
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
_INSISTS = re.compile(r"\W*(?:\w{1,6},? )?actually\b", re.IGNORECASE)
_STEM = 6
_POLISH = re.compile("[ąćęłńśźż]", re.IGNORECASE)
"""Endings are longer there: ``pushuj``, ``pushować``. A stem cut for them is one for ``commits`` and ``comments``."""
_DOUBLED = re.compile("([bgmnpt])\\1ing$")
"""``running`` and ``run``."""

_MANY = re.compile("(?<=..[^su])s$")
"""Of short words, which are not cut: ``emojis`` and ``emoji``."""

_ARTICLE = re.compile("^[وبف]?(?:ال|لل)(?=..)")
_EMPTY = frozenset(
    word
    for words in (
        "the and for with that this from not use must never always only please instead should any all you your our are",
        "was has have will can may now else than then them they who what when without about into its",
        "der die das und mit nicht nur bitte statt stattdessen ein eine einen den dem für von",
        "fine okay allowed again after longer applies apply earlier said forget ignore keep need dollars euros",
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
    )
    for word in words.split()
)

_ALTERS = frozenset(
    word
    for words in (
        "touch change changi edit edits modify modifi alter ändere ändern ändert anfass fass bearbe veränd touche",
        "tocar toques toque cambia cambie mexa mexer altere altera toccar tocca raak",
        "wijzig aanpas verand трогай трогат меняй менять измени изменя ruszaj ruszać zmieni zmiena",
    )
    for word in words.split()
)
"""Stems of words for one thing: ``don't touch the config`` falls with ``you can change the config now``."""

_SAYS_NOTHING = frozenset(
    word
    for words in (
        *_EMPTY.difference(
            ("need", "keep", "drop", "cancel", "scrap", "ignore", "disregard", "forget", "apply", "free")
        ),
        "a an to on in at of by it is do be as so ok u re s d ll m t i im we me my any well yes yeah sure",
        "guess permitted welcome alright okey oki make made used using uses zu auf am im es du ihr man",
        "gestattet ordnung problem nutzen verwenden verwende benutzen la le l un de d des du au aux en à sur",
        "tu on vous sont permis permise autorisé utiliser utilise utilisez y el lo al del se su mi una está",
        "están bien permitido permito vale ya usar usa usen utilizar o os as da do dos na no nas nos em um",
        "uma tudo bem il gli di nel uno che va bene permetto consentito usare usi utilizzare op te het je jij",
        "wel gebruiken gebruik в с к по и у ты вы разрешаю использовать użyć używać użyj",
    )
    for word in words.split()
)
"""Of what is forbidden or allowed. ``Use`` is what is done with what nothing else is said of."""

_SKIPS = re.compile(SKIPS, re.IGNORECASE)
_WITHOUT = re.compile(
    r"\b(?:without|ohne|sans|sin|senza|sem|zonder|без|bez) (?:(?:the|any|die|den|das|la|les?|el|il) )?[\w-]{1,40}"
    r"|\b\w{1,40}-(?:free|less|frei\w{0,2}|lose?\w?)\b",
    re.IGNORECASE,
)
"""What something goes without: ``the sudo-free script``."""

_ANY = re.compile(
    r"\b(?:any\w*|other\w*|every\w*|whatever|both|either|only|also|too|as well|alles|andere\w*|jede\w*|beliebig\w*|auch"
    r"|autres?|aussi|n['’]importe|otr[oa]s?|también|cualquier\w*|outr[oa]s?|também|qualquer|altr[oi]|anche|qualsiasi)\b",
    re.IGNORECASE,
)
"""What may be done is more than that."""

_EXCLUSIVE = re.compile(
    r"\b(?:only|nur|ausschließlich|seulement|uniquement|s[oó]lo|solamente|soltanto|solamente|apenas|somente|só|alleen"
    r"|только|tylko)\b|只|だけ|のみ|만 ",
    re.IGNORECASE,
)
_ACTS = re.compile(r"\b(?:drop|cancel|scrap|disregard|ignore)")
"""What may be forbidden in words that also take something back: ``never drop the table``."""

_VERB = re.compile(
    r"\b(?:you|we|he|she|they|it) (?:can|may|are allowed to) (?:now |again )?([^\W\d_]{2,30})\b"
    r"|\b(?:go ahead and|feel free to) ([^\W\d_]{2,30})\b",
    re.IGNORECASE,
)

_STRESSED = re.compile("(?:绝对|千万|万万)(?=[不别])")
_GO_AHEAD = re.compile(r"\b(?:go ahead and|feel free to)\b")
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
    bans: frozenset[str] = frozenset()
    """Of what forbids: all that it says of what must not be done."""

    @property
    def things(self) -> Things:
        """Looked for where it is asked: words are compared first, and tell most statements apart."""
        return _things(self.text)


def statements_of(sentences: Sequence[str]) -> Iterator[Statement]:
    """The sentences of a message that matter to rules; a short message that begins with a label is one statement."""
    whole = " ".join(sentences)
    for text in [whole] if len(whole) <= WHOLE and _LABEL.match(whole) else sentences:
        heads = cues.heads(text)
        asks = is_question(text)
        withdraws = cues.withdraws(text, heads) and (not asks or bool(cues.SWAPPING.search(text)))
        is_rule = (cues.demands(text, heads) or cues.is_labeled(text)) and not asks
        permits = frozenset() if asks or not cues.PERMISSION.search(text, heads) else _permitted(text)
        # What only gives another value is no rule by itself, and takes the place of one about the same.
        shape = "" if asks else _manner(text) or _value(text, is_rule=is_rule)
        if is_rule or withdraws or permits or shape:
            forbids = bool(cues.PROHIBITS.search(text))
            shape = shape or ("" if forbids or not is_rule else _shape(text))
            ends = _plain(cues.ended(text)) - _MORE if withdraws else frozenset()
            bans = _banned(text) if forbids and is_rule else frozenset()
            yield Statement(text, is_rule, withdraws, _plain(text), forbids, shape, ends, permits, bans)


def _shape(text: str) -> str:
    if _REPLY.search(text) and not _plain(_REPLY.sub(" ", text)):
        return "# as the language of answers"
    if _NAMING.search(text) and not _with_nouns(_NAMING.sub(" ", text), _STEM):
        return NAMED
    shape = _figureless(text)
    is_short = any(len(word) == 2 and word not in _SAYS_NOTHING for word in _LETTERS.findall(shape))  # in the US
    said = _plain(text) - {"make"} if shape.count("#") == 1 and not is_short else frozenset()
    if len(said) == 1 and not (_COMPARES.search(bare := min(said)) or bare.startswith("max")):  # that is no thing
        return f"# of {min(said)}"
    return shape if "#" in shape else ""


def _figureless(text: str) -> str:
    return _BY_NOW.sub("", _with_now(text))


def _with_now(text: str) -> str:
    return _WHEN.sub("#", _ALONE.sub("#", text.lower())).rstrip(" .!。")


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
        return f"# of {found[1] or found[2] or found[3]}"
    shape = _figureless(text)
    if shape.count("#") != 1 or not (is_rule or _SETS.search(_with_now(text))):
        return ""
    if _LINE.fullmatch(shape) or (_SIGNS.fullmatch(shape) and _OF_A_LINE.search(text)):
        return "# of line length"
    things = [word for word in _LETTERS.findall(_AMOUNT.sub(" ", shape)) if word not in _SETTING]
    most = [word for word in things if word.startswith("max")]
    stems = _plain(" ".join(word for word in things if word not in most))
    is_one = len(stems) == 1 and len(things) == 1 + len(most[:1])
    return f"# of {'max ' if most else ''}{min(stems)}" if is_one else ""


def is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "？", "؟"))


Said = Iterable[tuple[int, Sequence[Statement]]]
"""For each message in order, its place and its statements."""


def in_force(said: Said) -> list[tuple[int, Statement]]:
    """The rules that stand at the end, each with the place of its message; of more than ``MOST`` the newest."""
    return _judged(said)[0]


class Fallen(NamedTuple):
    """The texts of rules that stand no longer: those that nothing took the place of, and the others."""

    withdrawn: frozenset[str]
    replaced: frozenset[str]


def taken_back(said: Said) -> Fallen:
    """The rules that later words of the user withdrew or replaced, and that do not stand at the end, also not as a
    part; of more than ``MOST`` the newest, since each line that sets a rule is held against them.
    """
    standing, fallen = _judged(said)
    # A line that is a part of one that fell counts as fallen, too.
    gone = {
        text: is_replaced for text, is_replaced in fallen[-MOST:] if not any(rule.text in text for _, rule in standing)
    }
    replaced = frozenset(text for text, is_replaced in gone.items() if is_replaced)
    return Fallen(frozenset(gone) - replaced, replaced)


def restated(rule: str) -> Iterator[Statement]:
    """A rule of an earlier summary: what took the place of another one stands there as a rule, too."""
    return (replace(one, is_rule=True) for one in statements_of([rule]))


def _judged(said: Said) -> tuple[list[tuple[int, Statement]], list[tuple[str, bool]]]:
    """The rules that stand at the end, and the texts of those that fell, each with whether something took its place."""
    rules = _Standing()
    fallen: list[tuple[str, bool]] = []
    for place, statements in said:
        for one in statements:
            gone = [n for n in rules.meant_by(one) if not _is_said_beside(one, rules.all[n][1], statements)]
            before = [rules.all[n][1].text for n in gone]
            stands = one.is_rule or (_says_else(one, before) if before else _corrects(one, rules.all.values()))
            fallen += [(text, stands) for text in before]
            for n in gone:
                rules.drop(n)
            if stands:
                rules.add(place, one)
    return list(rules.all.values()), fallen


class _Standing:
    """The rules that stand, found by what they say: most have no word in common with what is said later."""

    def __init__(self) -> None:
        self.all: dict[int, tuple[int, Statement]] = {}
        """Each with the place of its message, in order."""
        self._added = 0
        self._saying: dict[object, dict[int, None]] = {}
        """Of all words of a rule, its shape, and what it forbids: the rules of which they are."""
        self._with_word: dict[str, dict[frozenset[str], None]] = {}
        """Of a word, all words of each rule that has it."""

    def add(self, place: int, rule: Statement) -> None:
        if len(self.all) == MOST:
            self.drop(next(iter(self.all)))
        self.all[self._added] = place, rule
        for key in self._keys(rule):
            self._saying.setdefault(key, {})[self._added] = None
        for word in rule.words:
            self._with_word.setdefault(word, {})[rule.words] = None
        self._added += 1

    def drop(self, n: int) -> None:
        _, rule = self.all.pop(n)
        for key in self._keys(rule):
            del self._saying[key][n]
            if not self._saying[key]:
                del self._saying[key]
        if rule.words not in self._saying:
            for word in rule.words:
                del self._with_word[word][rule.words]

    @staticmethod
    def _keys(rule: Statement) -> Iterator[object]:
        yield rule.words
        if rule.shape:
            yield rule.shape
        if rule.bans:
            yield True, rule.bans

    def meant_by(self, one: Statement) -> list[int]:
        """Those whose place a statement takes, or that it withdraws."""
        alike = self._alike(one)
        found = {n for words in alike for n in self._saying[words]}
        if one.shape:
            found.update(self._saying.get(one.shape, ()))
        if one.withdraws and not alike:
            found.update(self._named_by(one))
        found = {n for n in found if not _is_of_others(one, self.all[n][1])}
        if one.permits:
            found.update(self._permitted_by(one.permits))
        return sorted(found)

    def _alike(self, one: Statement) -> list[frozenset[str]]:
        """The words of rules that a statement is about: once for all that say the same of different things."""
        if not (one.is_rule or one.withdraws):
            return []
        *rare, most = sorted((self._with_word.get(word, {}) for word in one.words or ("",)), key=len)
        # Those that share two words share one of the rarer ones; a single word tells enough of a rule of few.
        sharing = {words for some in rare for words in some}
        if one.withdraws:
            sharing.update(words for words in most if len(words) <= FEW)
        return [words for words in sharing if _is_meant(one, words)]

    def _named_by(self, one: Statement) -> Iterator[int]:
        size = _STEM - 2 if _POLISH.search(one.text) else _STEM
        named = replace(one, words=_named(one, size))
        for n, (_, rule) in self.all.items():
            words = _named(rule, size)
            common = len(named.words & words)
            if common and (common > 1 or len(words) <= FEW) and _is_meant(named, words):
                yield n

    def _permitted_by(self, permits: frozenset[str]) -> Iterator[int]:
        yield from self._saying.get((True, permits), ())
        if any(map(_IS_CJK.match, permits)):
            yield from (n for n, (_, rule) in self.all.items() if rule.bans and _is_permitted(permits, rule.bans))


def _is_said_beside(new: Statement, old: Statement, statements: Sequence[Statement]) -> bool:
    """Whether a rule and one that says much the same stand side by side in one message: a list of several, of which the
    last takes no other's place.
    """
    if new.withdraws or new.words == old.words or (new.shape and new.shape == old.shape):
        return False
    return any(one is old for one in statements)


def _named(one: Statement, size: int = _STEM) -> frozenset[str]:
    """The words of a statement with its nouns: without a capital but at its beginning it has none."""
    text = one.text
    if size == _STEM and text[1:] == text[1:].lower() and text.partition(" ")[0].lower() in _EMPTY:
        return one.words
    return _with_nouns(text, size)


@lru_cache(maxsize=4_096)
def _with_nouns(text: str, size: int) -> frozenset[str]:
    """The stems of its plain words and of those that begin with a capital, which in German are all nouns: they may be
    all that it is about.
    """
    nouns = {word for name in _things(text).capitalized for word in name.lower().split()}
    return frozenset(word[:size] for word in _plain(text) | nouns)


def _corrects(one: Statement, rules: Iterable[tuple[int, Statement]]) -> bool:
    """Whether what says no more than another figure is about a single rule. It stands beside that rule, which says
    what the figure is of: ``the timeout must be 10 seconds``, ``make that 30 seconds``.
    """
    figures = _ALONE.findall(one.text) if one.withdraws and not _FORGET.search(one.text) else ()
    if len(figures) != 1:
        return False
    said = one.words - {"make"}
    meant = [
        before for _, rule in rules if said and said < rule.words and len(before := _ALONE.findall(rule.text)) == 1
    ]
    return len(meant) == 1 and meant[0] != figures


def _says_else(one: Statement, before: Sequence[str]) -> bool:
    """Whether words that take rules back put something in their place, or name something that these do not: ``use
    spaces instead`` holds from then on, while ``forget the port`` leaves nothing.
    """
    if one.shape or cues.SWAPPING.search(one.text):
        return True
    return not _exact(one.text).issubset(name for rule in before for name in _exact(rule))


def _exact(text: str) -> set[str]:
    return {*identifiers.names(text), *_FIGURE.findall(text)}


def about(text: str) -> object:
    """What a rule says, whatever it says it of: the same for two that differ in names and figures alone, or in figures
    alone where they forbid something.

    Of a text that sets no rule, the text itself: to look at part 3 and to look at part 4 are two wishes.
    """
    words = _plain(text) if len(text) <= WHOLE and cues.PROHIBITION.search(text) else frozenset()
    return (words, said_of(text)) if len(words) >= LEAST_SAID else text


def said_of(text: str) -> frozenset[str]:
    """What a text says something of, and of nothing else: the things that it names, if it forbids something of them,
    and numbered ones in any case.
    """
    places = _places(text)
    return places | _things(text).all if cues.PROHIBITS.search(text) else places


def _is_meant(new: Statement, old: frozenset[str]) -> bool:
    """Whether what is said later is about a rule of these words, to take its place or to withdraw it."""
    size, before = len(new.words), len(old)
    common = len(new.words & old)
    says_same = common >= 2 and common >= SAME * (size + before - common)
    if not new.withdraws or not common:
        return says_same
    if new.ends and _SKIPS.search(new.text):
        return says_same or (new.ends <= old and len(new.ends) >= 0.5 * before)
    if forgotten := _forgotten(new.text, new.words):
        return says_same or (forgotten <= old and len(forgotten) >= 0.5 * before)
    return says_same or (common >= min(2, before) and common >= 0.5 * min(size, before))


@lru_cache(maxsize=4_096)
def _forgotten(text: str, words: frozenset[str]) -> frozenset[str]:
    """Of a text that says so, which of its plain words say what is to be forgotten: ``forget the port, use 9000``. What
    follows a comma is not meant: ``never mind, commit it``.
    """
    found = _FORGET.search(text)
    if found is None:
        return frozenset()
    clauses = cues.clauses(text[: found.start()])[-1], cues.clauses(text[found.start() :])[0]
    before, behind = (_with_nouns(clause, _STEM) - _RULE for clause in clauses)
    return frozenset(word for word in words if any(one.startswith(word) for one in behind or before))


def _is_of_others(new: Statement, old: Statement) -> bool:
    """Whether something was forbidden of things that are not meant now, or said of a numbered one: the other file may
    still not be edited, and table 3 must stay whatever is said of table 5. What ends a demand is of no prohibition, and
    not of a demand that says nothing of it: ``no need to run the slow tests`` leaves the unit tests.
    """
    if places := _places(old.text):
        now = _places(new.text)
        if now and (places.isdisjoint(now) if new.withdraws else not places <= now):
            return True
    if new.ends:
        return old.forbids or not _says(old.words, new.ends)
    if not old.forbids:
        return new.withdraws and _leaves_demanded(new, old)
    meant, before = new.things, old.things
    if not new.withdraws:
        return not before.all <= meant.known
    if _leaves_forbidden(new, old):
        return True
    if meant.names and before.names:
        return meant.names.isdisjoint(before.names | before.parts) and meant.parts.isdisjoint(before.names)
    return bool(meant.capitalized and before.capitalized) and meant.capitalized.isdisjoint(before.capitalized)


class Manner(NamedTuple):
    """How a text takes something back, looked up once for all rules that it is held against."""

    forgets: bool
    swaps: bool
    denies: bool
    is_of_rules: bool
    allows: bool
    corrects: bool
    compares: bool
    insists: bool
    leaves_all_else: bool
    """It allows anything, or something in a way that it names: what is demanded may be meant."""
    has_day: bool
    lower: str
    clauses: tuple[frozenset[str], ...]
    """Its words and those of its parts, with nouns, without what it only says that something goes without."""


@lru_cache(maxsize=1_024)
def _manner_of(text: str) -> Manner:
    whole = _WITHOUT.sub(" ", text)
    return Manner(
        forgets=bool(_FORGET.search(text)),
        swaps=bool(cues.SWAPPING.search(text)),
        denies=bool(cues.PROHIBITS.search(text)),
        is_of_rules=bool(cues.BAN.search(text)),
        allows=bool(cues.ALLOWING.search(text)),
        corrects=bool(cues.CORRECTING.search(text)),
        compares=bool(_COMPARES.search(text)),
        insists=bool(_INSISTS.match(text)),
        leaves_all_else=bool(_ANY.search(text)),
        has_day=bool(_WEEKDAY.search(text)),
        lower=text.lower(),
        clauses=tuple(_with_nouns(clause, _STEM) for clause in dict.fromkeys((whole, *cues.clauses(whole)))),
    )


class Confines(NamedTuple):
    """What a rule is confined to, looked up once for all that is said later."""

    acts: frozenset[str]
    goes_without: bool
    has_day: bool
    names: tuple[str, ...]

    def are_named_by(self, manner: Manner) -> bool:
        """Whether a text names something that the rule names, and a day if that does, where it names any."""
        is_named = not self.names or any(name in manner.lower for name in self.names)
        return is_named and (manner.has_day or not self.has_day)


@lru_cache(maxsize=1_024)
def _bounds_of(text: str) -> Confines:
    return Confines(
        acts=frozenset(_ACTS.findall(text.lower())),
        goes_without=bool(_WITHOUT.search(text)),
        has_day=bool(_WEEKDAY.search(text)),
        names=tuple(name.lower() for name in _things(text).known),
    )


def _leaves_demanded(new: Statement, old: Statement) -> bool:
    """Whether words that could take something back allow what is demanded, or ask for it once more: ``you can run the
    tests now`` says nothing against running them always. What says something else puts it in the place of the demand.
    """
    manner = _manner_of(new.text)
    if manner.swaps and old.shape == NAMED:
        return new.shape != NAMED and not manner.forgets
    if manner.forgets or manner.swaps or manner.denies or manner.is_of_rules:
        return False
    exact, told = ({*_FIGURE.findall(one.text), *one.things.names} for one in (new, old))
    if not exact <= told:
        return False
    before = _named(old)
    if manner.leaves_all_else and _EXCLUSIVE.search(old.text):
        return False
    if not manner.allows:
        return manner.insists and not _own(before, manner.clauses[0])
    if manner.compares:
        return False
    if any(said and not _own(said, before) for said in manner.clauses):
        return True
    # It may be done with what is demanded of it: "you can write the report now".
    verb = _VERB.search(new.text)
    done = _with_nouns(verb[1] or verb[2], _STEM) if verb else frozenset()
    return bool(done) and not (manner.leaves_all_else or _own(manner.clauses[0] - done, before))


def _leaves_forbidden(new: Statement, old: Statement) -> bool:
    """Whether words that take something back allow something else than what is forbidden: the test database may be
    deleted, or is to be deleted instead, and the production database may still not.
    """
    manner = _manner_of(new.text)
    if manner.corrects:
        return False
    before = _named(old)
    if manner.swaps:  # in its place is done what was forbidden, or something else
        return bool(_own(before, _with_nouns(cues.put_in_place(new.text), _STEM)))
    bounds = _bounds_of(old.text)
    if bounds.acts and not manner.forgets and bounds.acts.isdisjoint(_ACTS.findall(manner.lower)):
        return True
    if not (manner.is_of_rules or manner.forgets or bounds.are_named_by(manner)):
        return True
    least = 1 if manner.is_of_rules and manner.forgets else min(2, len(before))
    # What is forbidden without something may be allowed without it.
    parts = _whole_clauses(new.text) if bounds.goes_without else manner.clauses
    return not any(
        len(said) - len(extra := _own(said, before)) >= least and not (extra and _own(before, said))
        for said in (part - _RULE for part in parts)
    )


@lru_cache(maxsize=1_024)
def _whole_clauses(text: str) -> tuple[frozenset[str], ...]:
    return tuple(_with_nouns(clause, _STEM) for clause in (text, *cues.clauses(text)))


def _own(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """What is not among the others, in whatever form of a word. Of signs no pair that only leads from or to one that is
    among them.
    """
    rest = words - others
    if not rest:
        return rest
    forms = _forms(others)
    if max(rest) < "\u3040":  # no signs
        return frozenset(word for word in rest if _form(word) not in forms)
    common = [word for word in words & others if _IS_CJK.match(word)]
    first, last = {word[0] for word in common}, {word[-1] for word in common}
    return frozenset(
        word
        for word in rest
        if not (word[0] in last or word[-1] in first if _IS_CJK.match(word) else _form(word) in forms)
    )


def _is_permitted(permits: frozenset[str], bans: frozenset[str]) -> bool:
    """Whether what is permitted, in signs, is what a rule forbids but for pairs that are endings."""
    if permits.isdisjoint(bans) or not all(map(_IS_CJK.match, permits ^ bans)):
        return False
    return not (_own(permits, bans) or _own(bans, permits))


def _banned(text: str) -> frozenset[str]:
    return frozenset() if _FORGET.search(text) else _content(cues.PROHIBITS.sub(" ", _STRESSED.sub("", text)))


def _permitted(text: str) -> frozenset[str]:
    """All that a text says that allows something, without words for that; nothing where it denies or asks."""
    if cues.PROHIBITS.search(text) or _ASKS_IF.search(text):
        return frozenset()
    return _content(text)


def _content(text: str) -> frozenset[str]:
    """The roots of all words and names of a text that say something, figures too."""
    text = _MODAL.sub(" ", _GO_AHEAD.sub(" ", text.lower()))
    said = (_root(word) for word in _OF_LETTERS.findall(text) if word not in _SAYS_NOTHING)
    return frozenset(said) | {word for word in _plain(text) if _IS_CJK.match(word)}


def _root(word: str) -> str:
    """A word without the ending of a verb or of more than one: ``borres`` and ``borrar``."""
    if word[:_STEM] in _ALTERS:
        return "touch"
    bare = _DOUBLED.sub(r"\1", word).removesuffix("ing")
    return _ENDING.sub("", bare.removesuffix("s") if len(bare) > 3 else bare)


@lru_cache(maxsize=4_096)
def _forms(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_form, words))


def _form(word: str) -> str:
    """What forms of a word have in common: ``push`` and ``pushen``. Arabic forms differ where they begin."""
    return word[-3:] if "\u0600" <= word[0] <= "\u06ff" else word[:4]


def _says(old: frozenset[str], ends: frozenset[str]) -> bool:
    """Whether words of a rule say all that is ended, in whatever form of a word; signs are pairs and may be endings."""
    return all(_IS_CJK.match(word) or any(one.startswith(word[:3]) for one in old) for word in ends)


@lru_cache(maxsize=4_096)
def _places(text: str) -> frozenset[str]:
    return frozenset(f"#{number}" for found in _PLACE.finditer(text) if (number := next(filter(None, found.groups()))))


@lru_cache(maxsize=4_096)
def _things(text: str) -> Things:
    names: set[str] = set()
    capitalized: set[str] = set()
    parts: set[str] = set()
    versions = {one[1].lower() for one in _VERSION.finditer(text) if not DAYS.fullmatch(one[1].partition(" ")[0])}
    if versions and not _COMPARES.search(text):  # of two limits the later one holds
        names |= versions
    for found in identifiers.find(text):
        if found.kind not in ("number", "date") and not DAYS.fullmatch(found.text):
            if found.kind == "person":  # without the article that a sentence begins with
                capitalized.add(" ".join(word for word in found.text.split() if word.lower() not in _EMPTY))
            else:
                names.add(found.text)
            parts.update(found.parts)
    capitalized.discard("")
    named = frozenset(names | capitalized)
    return Things(frozenset(names), frozenset(capitalized), frozenset(parts), named, named | parts)


def _plain(text: str) -> frozenset[str]:
    """The stems of its plain words: without names and figures, which are what changes."""
    for name in identifiers.names(text):
        text = text.replace(name, " ")
    words = ((found[1] or found[2] or found[3]).lower() for found in _WORD.finditer(_MODAL.sub(" ", text)))
    words = (_ARTICLE.sub("", word) for word in words if word not in _EMPTY)
    stems = (_MANY.sub("", _DOUBLED.sub(r"\1", word).removesuffix("ing")[:_STEM]) for word in words)
    return frozenset("touch" if stem in _ALTERS else stem for stem in stems)
