"""The rules that a user set and did not take back: what must hold in every summary, word for word.

What belongs here: what later words replace or withdraw, and what stands at the end. What does not: what a sentence says
(``statements``), and where rules stand in a summary (``extractive``).

They are read from the originals at every pass, so none fades. What is said later wins: a statement that says the same
with other figures or names takes the place of the earlier one (``the budget is $900``), and words that withdraw
(``forget the port``, ``use 9000 instead``) take out the rules that they are about. Where it is not clear that they are
meant, the rule stays: one that is repeated too often does less harm than one that is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from contextfold import identifiers
from contextfold.summary import extractive_cues as cues
from contextfold.summary.statements import (
    ALONE,
    COMPARES,
    EMPTY,
    FORGET,
    IS_CJK,
    NAMED,
    STEM,
    WEEKDAY,
    WHOLE,
    Statement,
    parted,
    plain_words,
    statements_of,
    things_of,
    with_nouns,
)
from contextfold.summary.withdrawal_words import IN_SPITE, SKIPS

FEW = 2
"""Words of a rule that one of them is enough to take back: ``forget the budget``."""

LEAST_SAID = 3
"""Plain words that two statements must have in common, and no others, to be about the same thing."""

SAME = 0.7
"""Share of their plain words that two statements have in common that say the same about something else."""

MOST = 200
"""Rules that are looked after. No summary has room for more, and each is compared with all that comes later."""

_FIGURE = re.compile(r"\d[\d.,:]*")
_RULE = frozenset({"rule", "rules"})

_PLACE = re.compile(
    r"(?:#|\bp(?=\d\d))(\d+)\b"
    r"|\b(?:tasks?|issues?|tickets?|story|pull request|pr|mr|bugs?|items?|steps?|tables?|figures?|chapters?"
    r"|sections?|appendix|questions?|exercises?|parts?|pages?|slides?|rows?|columns?|tests?|cases?|requirements?"
    r"|articles?"
    r"|aufgaben?|tabellen?|abbildung|kapitel|abschnitt|anhang|fragen?|übung|teil|seiten?|folien?|schritt|punkt|zeilen?"
    r"|spalten?|tâche|tableau|chapitre|étape|partie|tarea|tabla|capítulo|sección|pregunta|paso|parte|página|tarefa"
    r"|tabela"
    r"|seção|pergunta|questão|passo|etapa|compito|tabella|capitolo|sezione|domanda|pagina|taak|tabel|hoofdstuk|vraag"
    r"|stap"
    r"|deel|задач\w*|таблиц\w*|глав\w*|раздел\w*|вопрос\w*|шаг\w*|част\w*|страниц\w*) (?:no\.? ?|nr\.? ?|№ ?|#)?(\d+)\b"
    r"|(?:第|表|图|図|問|任务|步骤|タスク) ?(\d+)(?![\d%]|[天日年月个週周次回])|(?:과제|표|그림) ?(\d+)(?!\d)",
    re.IGNORECASE,
)
"""A thing that has a number for its name, among others of its kind: ``table 3``, ``issue #12``, ``p95``, ``第3章``."""

_NUMBERED = re.compile(
    r"\b(?:servers?|hosts?|nodes?|files?|modules?|rooms?|phases?|stages?|levels?|databases?|clusters?|machines?"
    r"|workers?"
    r"|services?|accounts?|zones?|tables?|dateien?|module?|räume?|raum|fichiers?|serveurs?|salles?|archivos?"
    r"|servidor(?:es)?"
    r"|módulos?|salas?|arquivos?|moduli|bestand(?:en)?|сервер\w*|файл\w*|модул\w*|plik\w*|serwer\w*)"
    r" (?:no\.? ?|nr\.? ?|№ ?|#)?(\d+|(?-i:[A-Z]))\b"
    r"|(?:[文檔档]件|模[块塊組组]|服[务務]器|伺服器|主机|节点|分支|[会會][议議]室|[数數][据據][库庫]|[项項]目|表|环境"
    r"|環境|账号|用例"
    r"|ファイル|サーバー?|モジュール|ステップ|テーブル|ページ|ブランチ|ノード|項目|会議室|データベース|ケース"
    r"|파일|서버|모듈|단계|테이블|페이지|브랜치|노드|항목|회의실|데이터베이스) ?(\d+|(?-i:[A-Z]))"
    r"(?![\dA-Za-z%.-]| ?[个個件台年月日天次回行列字枚개대번])",
    re.IGNORECASE,
)
"""The same of more things. It tells two apart of which both are forbidden: of two demands the later one holds."""

_MAY_BE_NUMBER = re.compile(r"(?<![\d_/=(-])\d")
_MAY_BE_LETTER = re.compile(r"[A-Z](?![A-Za-z\d])")
"""What each number and letter of these patterns is. Most sentences have none: names such as ``file_3`` do not."""

_INSISTS = re.compile(r"\W*(?:\w{1,6},? )?(?:actually|finalement)\b", re.IGNORECASE)
_POLISH = re.compile("[ąćęłńśźż]", re.IGNORECASE)
"""Endings are longer there: ``pushuj``, ``pushować``. A stem cut for them is one for ``commits`` and ``comments``."""

_SKIPS = re.compile(SKIPS, re.IGNORECASE)
_IN_SPITE = re.compile(IN_SPITE, re.IGNORECASE)
_WITHOUT = re.compile(
    r"\b(?:without|ohne|sans|sin|senza|sem|zonder|без|bez) (?:(?:the|any|die|den|das|la|les?|el|il) )?[\w-]{1,40}"
    r"|\b\w{1,40}-(?:free|less|frei\w{0,2}|lose?\w?)\b",
    re.IGNORECASE,
)
"""What something goes without: ``the sudo-free script``."""

_EXCEPT = re.compile(
    rf"{_WITHOUT.pattern}|\b(?:unless|except|other than|outside|es sei denn|au(?:ß|ss)er(?:halb)?|sauf|à moins|hors"
    r"|en dehors|salvo|excepto|a menos|fuera|exceto|fora|a não ser|tranne|eccetto|fuori|a meno|tenzij|behalve|buiten"
    r"|кроме|если только|вне|chyba że|poza|oprócz)\b|除非|除了|没有|未经|なく(?!て)|なしに|ずに|以外|없이|외에",
    re.IGNORECASE,
)
"""Where or how what is forbidden may be done all the same: ``never delete files without asking me``."""

_ANY = re.compile(
    r"\b(?:any\w*|other\w*|every\w*|whatever|both|either|only|also|too|as well|alles|andere\w*|jede\w*|beliebig\w*|auch"
    r"|autres?|aussi|n['’]importe|otr[oa]s?|también|cualquier\w*|outr[oa]s?|também|qualquer|altr[oi]|anche"
    r"|qualsiasi)\b",
    re.IGNORECASE,
)
"""What may be done is more than that."""

_EXCLUSIVE = re.compile(
    r"\b(?:only|nur|ausschließlich|seulement|uniquement|s[oó]lo|solamente|soltanto|apenas|somente|só|alleen"
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

_NEWS = re.compile(
    r"(?:(?<!\w )|(?<=\bok )|(?<=\bokay )|(?<=\bnow ))\b(?:the|this|that|these|those|your|my|our) "
    r"(?:[\w.-]{1,40} ){1,5}(?:is|are) (?:now |all )?(?:fine|ok|okay)\b"
    r"|(?<!\w )\b(?:der|die|das|(?:dein|mein|unser)\w{0,2}) (?:[\w.-]{1,40} ){1,4}"
    r"(?:ist|sind) (?:jetzt |nun |wieder ){0,2}(?:ok|okay|in ordnung)\b"
    r"|\b(?:ignore|disregard) (?:the|those|these)\b(?!.{0,60}\b(?:said|told|asked|wrote|earlier|previous|above)\b)",
    re.IGNORECASE,
)
"""That something works, or is not to be looked at: it takes back a prohibition only if it says all of it."""

_USING = with_nouns("add include put have write bring introduce install create make try take switch return show", STEM)
"""What may be done, where that is to use the thing that is allowed."""

_USES = re.compile("用|使[うわっいえ]|사용|쓰")
"""The same in languages without blanks or with endings, where it says nothing of what is used."""

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
        """Of all words of a rule, its shape, and what it forbids or demands: the rules of which they are."""
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
        if rule.says:
            yield rule.forbids, rule.says

    def meant_by(self, one: Statement) -> list[int]:
        """Those whose place a statement takes, or that it withdraws."""
        alike = self._alike(one)
        found = {n for words in alike for n in self._saying[words]}
        if one.shape:
            found.update(self._saying.get(one.shape, ()))
        if one.withdraws and not alike:
            found.update(self._named_by(one))
            found.update(self._ended_by(one.ends))
        found = {n for n in found if not _is_of_others(one, self.all[n][1])}
        if one.permits:
            found.update(self._permitted_by(one.permits))
        if one.is_rule and one.says:
            found.update(self._saying.get((not one.forbids, one.says), ()))
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
        size = STEM - 2 if _POLISH.search(one.text) else STEM
        named = replace(one, words=_named(one, size))
        for n, (_, rule) in self.all.items():
            words = _named(rule, size)
            common = len(named.words & words)
            if common and (common > 1 or len(words) <= FEW) and _is_meant(named, words):
                yield n

    def _ended_by(self, ends: frozenset[str]) -> Iterator[int]:
        """Demands of which all is ended that they say, in whatever form of a word: ``lancer`` and ``lance``."""
        if len(ends) >= FEW and not any(map(IS_CJK.match, ends)):
            for n, (_, rule) in self.all.items():
                if not rule.forbids and len(said := _named(rule)) <= len(ends) and _says(said, ends):
                    yield n

    def _permitted_by(self, permits: frozenset[str]) -> Iterator[int]:
        yield from self._saying.get((True, permits), ())
        if any(map(IS_CJK.match, permits)):
            yield from (
                n
                for n, (_, rule) in self.all.items()
                if rule.forbids and rule.says and _is_permitted(permits, rule.says)
            )


def _is_said_beside(new: Statement, old: Statement, statements: Sequence[Statement]) -> bool:
    """Whether a rule and one that says much the same stand side by side in one message: a list of several, of which the
    last takes no other's place.
    """
    if new.withdraws or new.words == old.words or (new.shape and new.shape == old.shape):
        return False
    return any(one is old for one in statements)


def _named(one: Statement, size: int = STEM) -> frozenset[str]:
    """The words of a statement with its nouns: without a capital but at its beginning it has none."""
    text = one.text
    if size == STEM and text[1:] == text[1:].lower() and text.partition(" ")[0].lower() in EMPTY:
        return one.words
    return with_nouns(text, size)


def _corrects(one: Statement, rules: Iterable[tuple[int, Statement]]) -> bool:
    """Whether what says no more than another figure is about a single rule. It stands beside that rule, which says
    what the figure is of: ``the timeout must be 10 seconds``, ``make that 30 seconds``.
    """
    figures = ALONE.findall(one.text) if one.withdraws and not FORGET.search(one.text) else ()
    if len(figures) != 1:
        return False
    said = one.words - {"make"}
    meant = [before for _, rule in rules if said and said < rule.words and len(before := ALONE.findall(rule.text)) == 1]
    return len(meant) == 1 and meant[0] != figures


def _says_else(one: Statement, before: Sequence[str]) -> bool:
    """Whether words that take rules back put something in their place, or name something that these do not: ``use
    spaces instead`` holds from then on, while ``forget the port`` leaves nothing.
    """
    if one.shape or cues.SWAPPING.search(one.text):
        return True
    return not _exact(one.text).issubset(name for rule in before for name in _exact(rule))


def _exact(text: str) -> set[str]:
    text = parted(text)
    names = (name.removesuffix(" Regel").removeprefix("The ") for name in identifiers.names(text))
    return {*(name for name in names if not WEEKDAY.fullmatch(name)), *_FIGURE.findall(text)}


def about(text: str) -> object:
    """What a rule says, whatever it says it of: the same for two that differ in names and figures alone, or in figures
    alone where they forbid something.

    Of a text that sets no rule, the text itself: to look at part 3 and to look at part 4 are two wishes.
    """
    words = plain_words(text) if len(text) <= WHOLE and cues.PROHIBITION.search(text) else frozenset()
    return (words, said_of(text)) if len(words) >= LEAST_SAID else text


def said_of(text: str) -> frozenset[str]:
    """What a text says something of, and of nothing else: the things that it names, if it forbids something of them,
    and numbered ones in any case.
    """
    places = _places(text)
    return places | _numbered(text) | things_of(text).all if cues.PROHIBITS.search(text) else places


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
    found = FORGET.search(text)
    if found is None:
        return frozenset()
    clauses = cues.clauses(text[: found.start()])[-1], cues.clauses(text[found.start() :])[0]
    before, behind = (with_nouns(clause, STEM) - _RULE for clause in clauses)
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
        return old.forbids or not _says(_named(old), new.ends)
    if not old.forbids:
        return new.withdraws and not (new.shape and new.shape == old.shape) and _leaves_demanded(new, old)
    meant, before = new.things, old.things
    numbered, told = _numbered(old.text), _numbered(new.text)
    if not new.withdraws:
        return not (before.all <= meant.known and numbered <= told) or _forbids_else(new, old)
    if (numbered and told and numbered.isdisjoint(told)) or _leaves_forbidden(new, old):
        return True
    if meant.names and before.names:
        return meant.names.isdisjoint(before.names | before.parts) and meant.parts.isdisjoint(before.names)
    if not (meant.capitalized and before.capitalized):
        return False
    said, names = (frozenset(name.removesuffix("s") for name in one.capitalized | one.parts) for one in (meant, before))
    return said.isdisjoint(names)


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
    has_exception: bool
    has_day: bool
    lower: str
    clauses: tuple[frozenset[str], ...]
    """Its words and those of its parts, with nouns, without what it only says that something goes without."""


@lru_cache(maxsize=1_024)
def _manner_of(text: str) -> Manner:
    text = parted(text)
    whole = _IN_SPITE.sub(" ", _WITHOUT.sub(" ", text))
    return Manner(
        forgets=bool(FORGET.search(text)),
        swaps=bool(cues.SWAPPING.search(text)),
        denies=bool(cues.PROHIBITS.search(text)),
        is_of_rules=bool(cues.BAN.search(text)),
        allows=bool(cues.ALLOWING.search(text)),
        corrects=bool(cues.CORRECTING.search(text)),
        compares=bool(COMPARES.search(text)),
        insists=bool(_INSISTS.match(text)),
        leaves_all_else=bool(_ANY.search(text)),
        has_exception=bool(_EXCEPT.search(text)),
        has_day=bool(WEEKDAY.search(text)),
        lower=text.lower(),
        clauses=tuple(with_nouns(clause, STEM) for clause in dict.fromkeys((whole, *cues.clauses(whole)))),
    )


class Confines(NamedTuple):
    """What a rule is confined to, looked up once for all that is said later."""

    acts: frozenset[str]
    has_exception: bool
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
        has_exception=bool(_EXCEPT.search(text)),
        has_day=bool(WEEKDAY.search(text)),
        names=tuple(name.lower() for name in things_of(text).known),
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
    done = _done(new.text)
    return bool(done) and not (manner.leaves_all_else or _own(manner.clauses[0] - done, before))


def _done(text: str) -> frozenset[str]:
    """What a text says may be done; nothing where its word for that says nothing, as ``use``."""
    verb = _VERB.search(text)
    return with_nouns(verb[1] or verb[2], STEM) if verb else frozenset()


def _leaves_forbidden(new: Statement, old: Statement) -> bool:
    """Whether words that take something back allow something else than what is forbidden: the test database may be
    deleted, or is to be deleted instead, and the production database may still not.
    """
    manner = _manner_of(new.text)
    if manner.corrects:
        return False
    before = _named(old)
    if manner.swaps:  # in its place is done what was forbidden, or something else
        return bool(_own(before, with_nouns(cues.put_in_place(new.text), STEM)))
    bounds = _bounds_of(old.text)
    if bounds.acts and not manner.forgets and bounds.acts.isdisjoint(_ACTS.findall(manner.lower)):
        return True
    if not (manner.is_of_rules or manner.forgets or bounds.are_named_by(manner)):
        return True
    least = 1 if manner.is_of_rules and manner.forgets else min(2, len(before))
    # What is forbidden without something may be allowed without it. What only allows it grants what the rule asks for.
    if _NEWS.search(new.text) and not manner.is_of_rules and _own(before, manner.clauses[0]):
        return True
    # To delete the production key is not to use it.
    if _own(_done(new.text), before | _USING) or (_USES.search(old.text) and not _USES.search(new.text)):
        return True
    is_lifted = manner.is_of_rules or manner.forgets or manner.leaves_all_else or manner.has_exception
    if bounds.has_exception and not is_lifted:
        return True
    parts = _whole_clauses(new.text) if bounds.has_exception else manner.clauses
    return not any(
        len(said) - len(extra := _own(said, before)) >= least and not (extra and _own(before, said))
        for said in (part - _RULE for part in parts)
    )


@lru_cache(maxsize=1_024)
def _whole_clauses(text: str) -> tuple[frozenset[str], ...]:
    return tuple(with_nouns(clause, STEM) for clause in (text, *cues.clauses(text)))


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
    common = [word for word in words & others if IS_CJK.match(word)]
    first, last = {word[0] for word in common}, {word[-1] for word in common}
    return frozenset(
        word
        for word in rest
        if not (word[0] in last or word[-1] in first if IS_CJK.match(word) else _form(word) in forms)
    )


def _is_permitted(permits: frozenset[str], bans: frozenset[str]) -> bool:
    """Whether what is permitted, in signs, is what a rule forbids but for pairs that are endings."""
    if permits.isdisjoint(bans) or not all(map(IS_CJK.match, permits ^ bans)):
        return False
    return not (_own(permits, bans) or _own(bans, permits))


@lru_cache(maxsize=4_096)
def _forms(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_form, words))


def _form(word: str) -> str:
    """What forms of a word have in common: ``push`` and ``pushen``. Arabic forms differ where they begin."""
    return word[-3:] if "\u0600" <= word[0] <= "\u06ff" else word[:4]


def _says(old: frozenset[str], ends: frozenset[str]) -> bool:
    """Whether words of a rule say all that is ended, in whatever form of a word; signs are pairs and may be endings."""
    return all(IS_CJK.match(word) or any(one.startswith(word[:3]) for one in old) for word in ends)


def _forbids_else(new: Statement, old: Statement) -> bool:
    """Whether of two prohibitions in signs each says something that the other does not: of another thing, with the same
    word for what must not be done with it.
    """
    said, before = (frozenset(filter(IS_CJK.match, one.words)) for one in (new, old))
    return bool(new.forbids and _own(said, before) and _own(before, said))


@lru_cache(maxsize=4_096)
def _numbered(text: str) -> frozenset[str]:
    return _told_apart(text, _NUMBERED) if _MAY_BE_NUMBER.search(text) or _MAY_BE_LETTER.search(text) else frozenset()


@lru_cache(maxsize=4_096)
def _places(text: str) -> frozenset[str]:
    return _told_apart(text, _PLACE) if _MAY_BE_NUMBER.search(text) else frozenset()


def _told_apart(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    return frozenset(f"#{number}" for found in pattern.finditer(text) if (number := next(filter(None, found.groups()))))
