"""How sentences that matter are worded: constraints, corrections, decisions, open points, errors.

What belongs here: regular expressions over one sentence or line, for English, Chinese, Japanese and German. What does
not: how rules are worded and taken back (``rule_words``, ``withdrawal_words``), and what is done with a sentence that
matches (``extractive_facts``, ``evidence``). A cue may err now and then: what it lets through is still quoted word for
word and under the name of the one who said it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from contextfold.summary.manner_words import MANNERS
from contextfold.summary.rule_words import (
    ASKING,
    DEMANDS,
    FORBIDS,
    NOT_SAID_OF_ONESELF,
    ONLY_ENGLISH,
    ONLY_GERMAN,
    REPORTS,
    RULES,
    Phrases,
)
from contextfold.summary.standing_words import STANDING
from contextfold.summary.withdrawal_words import (
    ALLOWS,
    BANS,
    ENDS,
    LIFTS,
    MEANT,
    PASSED_OVER,
    PERMITS,
    STAYS,
    SWAPS,
)
from contextfold.summary.withdrawal_words import ONCE as JUST_ONCE

_HEAD = re.compile(r"\b\w{1,3}")
_UNPAIRED = re.compile("[\u0130\u0131\u017f]")
"""Letters whose cases are not pairs: in lower case words begin elsewhere."""

_OTHER = re.compile("[\u0130\u0131\u017f\u0590-\u0e7f\u2e80-\U0010ffff]")
"""These, signs without words between blanks, and letters whose words begin with others (``وَ``) or have marks."""


Heads = Mapping[str, Sequence[int]]


def heads(text: str) -> Heads:
    """Where the words of a text begin, by their first three letters in lower case."""
    found: dict[str, list[int]] = {}
    for head in _HEAD.finditer(text.lower()):
        found.setdefault(head.group(), []).append(head.start())
    return found


class Cue:
    """A regular expression, and the words that it can begin with.

    To try an expression with a hundred alternatives at each place of a sentence takes many times as long as to try it
    where one of these words begins. A text in Chinese or Japanese, which has no words between blanks, is searched.
    """

    def __init__(self, pattern: str, words: str, inside: tuple[str, ...] = ()) -> None:
        self.pattern = re.compile(pattern, re.IGNORECASE)
        self._heads = frozenset(word[:3] for word in words.split())
        self._inside = inside
        """What it can begin with besides, anywhere in a word."""

    def search(self, text: str, known: Heads | None = None) -> bool:
        """Whether it occurs. ``known``: the ``heads`` of the text, for a caller that asks several cues."""
        if not text.isascii() and _OTHER.search(text):
            return self.pattern.search(text) is not None
        lower = text.lower() if known is None or self._inside else ""
        if known is None:  # most sentences have none of the words: then no places are needed
            known = {} if self._heads.isdisjoint(_HEAD.findall(lower)) else heads(text)
        match = self.pattern.match
        for head in self._heads.intersection(known):  # plain loops: a generator for each sentence took a fifth
            for start in known[head]:
                if match(text, start):
                    return True
        if not self._inside:
            return False
        return any(part in lower for part in self._inside) and self.pattern.search(text) is not None


class AnyOf:
    """Several wordings, such as those of languages: each is tried only where a word of its own begins."""

    def __init__(self, *wordings: Phrases) -> None:
        self.patterns = tuple(re.compile(one.pattern, re.IGNORECASE) for one in wordings)
        self._wordless = tuple(pattern for pattern, one in zip(self.patterns, wordings, strict=True) if not one.begins)
        self._at: dict[str, list[Callable[[str, int], re.Match[str] | None]]] = {}
        for pattern, one in zip(self.patterns, wordings, strict=True):
            for head in {word[:3] for word in one.begins.split()}:
                self._at.setdefault(head, []).append(pattern.match)

    def search(self, text: str, known: Heads | None = None) -> bool:
        """Whether one of them occurs. ``known``: the ``heads`` of the text, for a caller that asks several cues."""
        is_ascii = text.isascii()
        if not is_ascii and _UNPAIRED.search(text):
            return any(pattern.search(text) for pattern in self.patterns)
        known = heads(text) if known is None else known
        for head in known.keys() & self._at.keys():
            for match in self._at[head]:  # plain loops: a generator for each head took a tenth of the time
                for start in known[head]:
                    if match(text, start):
                        return True
        return not is_ascii and bool(_OTHER.search(text)) and any(pattern.search(text) for pattern in self._wordless)


CONSTRAINT = Cue(
    rf"{NOT_SAID_OF_ONESELF}\b(?:must(?:n['’]t)?|never|always|do(?: not|n['’]t)|cannot|can['’]t)\b"
    rf"|\b(?:should(?: not|n['’]t)?(?! i\b| we\b)|avoid|{ONLY_ENGLISH}|without|prefer|at (?:most|least)"
    r"|no (?:more|less|longer) than|make sure|be sure|ensure|required?|forbidden|not allowed|keep|stick to"
    r"|important|constraint|rule|remember|leave .{1,40} (?:alone|as (?:it is|they are)|untouched))\b"
    rf"|\b(?:nicht|nie(?:mals)?|kein\w*|muss|müssen|darf|dürfen|soll(?:en|te)?|{ONLY_GERMAN}|ohne|immer"
    r"|unbedingt|höchstens|mindestens|bitte kein\w*|vermeide\w*|wichtig)\b"
    r"|必须|必需|务必|一定要|不要|不能|不可|不得|不许|禁止|严禁|切勿|千万别|别再|只能|只用|仅限|仅用"
    r"|始终|永远|确保|避免|至少|至多|最多"
    r"|不超过|以内|优先|记住|注意"
    r"|なければ|ならない|してはいけ|しないで|禁止|必ず|必須|のみ|だけ|以内|以下に|以上に|避けて|常に"
    r"|決して|絶対|注意|厳守|お願いします"
    r"|\b(?:preferred|preference|prefers|wants?|would like|next steps?(?= ?[:：]| (?:is|are)\b)"
    r"|current(?:ly)? (?:task|state)|awaiting|unpushed|failing|in progress)\b"
    r"|\b(?:évite[zr]?|préfère|il faut|devrait|prefiero|prefiere|evita[r]?|importante|debería|prefiro"
    r"|evite|preferisco"
    r"|dovrebbe|vermijd|liever|belangrijk|moet(?:en)?|нужно|надо|следует|избегай\w*|предпочита\w*|важно)\b"
    r"|해야|하세요|피하|선호|중요|주의",
    "must mustn never always do don cannot can should shouldn avoid only without prefer at no make be ensure "
    "require forbidden not allowed keep stick important constraint rule remember leave nicht nie niemals kein muss "
    "müssen darf dürfen soll nur ohne immer unbedingt höchstens mindestens bitte vermeide wichtig wants would next "
    "current awaiting unpushed failing in évite préfère il devrait prefiero evita importante debería prefiro evite "
    "preferisco dovrebbe vermijd liever belangrijk moet нужно надо следует избегай предпочита важно",
)

PROHIBITION = AnyOf(*RULES, *STANDING, *MANNERS)
"""The stronger half of ``CONSTRAINT``: what must hold, or must not happen."""

_REPORT = re.compile(REPORTS, re.IGNORECASE)
_WHY = re.compile(ASKING, re.IGNORECASE)
_IF = re.compile(r"\W*(?:(?:if|when|wenn|falls|si|se|als|если|quando|cuando|quand)\b|如果|もし|만약)", re.IGNORECASE)


_PASTED = re.compile(
    r"\W{0,4}(?:E {1,8})?(?:(?:[\w.]{0,80}(?:Error|Exception)|[\w.]{1,80}(?:Warning|Panic))(?:\[\w{1,20}\])?: "
    r"|(?:error|fatal|ERROR|FATAL|remote)(?:\[\w{1,20}\]| \w{2}\d{3,5})?:|npm (?:error|warn|WARN) "
    r"|\d{3,6}: ?[\"']|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|thread '[^']{1,40}' panicked|(?:raise|throw new) [\w.]{1,80}\("
    r"|assert [^,]{0,80}[<>=]|if \([^)]{1,80}\)+ ?(?:throw|return|\{))|//|/\*|.*\bline \d{1,7},? col(?:umn)? ?\d"
)
"""How lines of logs, of tracebacks and of code begin. Case matters: ``WARNING:`` may be a person's."""


def demands(text: str, known: Heads | None = None) -> bool:
    """Whether a sentence sets a rule by its words: neither one that tells how things are, nor one that asks why, nor a
    pasted line of a log or of code.
    """
    if not PROHIBITION.search(text, known) or _WHY.match(text) or _PASTED.match(text):
        return False
    # Most sentences are no rules, so reports are looked for in few. Behind an "if" they tell when to do something.
    return not _REPORT.search(text) or bool(_IF.match(text)) or PROHIBITION.search(_REPORT.sub("x", text))


PROHIBITS = re.compile(FORBIDS.pattern, re.IGNORECASE)
"""Of a rule: it says what must not be, or must stay as it is."""

STRICT = Cue(
    rf"{DEMANDS.pattern}|{NOT_SAID_OF_ONESELF}\b(?:cannot|can['’]t)\b"
    r"|\b(?:forbidden|not allowed|prohibited|not exceed|under no circumstances|deadline|budget|at most"
    r"|no more than)\b"
    r"|\b(?:nie(?:mals)?|kein\w*|muss|müssen|darf|dürfen|verboten|immer|jamais|toujours|doit|doivent|interdit\w*"
    r"|nunca|siempre|debe[ns]?|prohibido|sempre|proibid\w*|vietato|nooit|altijd|никогда|всегда|нельзя|должн\w+"
    r"|запрещ\w*)\b"
    r"|必须|务必|不要|不能|不得|不许|禁止|严禁|切勿|なければ|ならない|いけません|しないで|必ず|必須"
    r"|決して|厳守|절대|반드시|금지",
    f"{DEMANDS.begins} cannot can forbidden not prohibited under deadline budget at no nie niemals kein muss "
    "müssen darf dürfen verboten immer jamais toujours doit doivent interdit nunca siempre debe prohibido sempre "
    "proibid vietato nooit altijd никогда всегда нельзя должн запрещ",
)
"""The words of a rule that are not used by the way: where there is not room for all rules, these go first."""

WITHDRAWAL = AnyOf(*LIFTS)
"""The user takes something back or puts something else in its place."""

SWAPPING = re.compile(SWAPS.pattern, re.IGNORECASE)
"""The latter, which holds from then on. It is asked for in a question, too; one that asks whether something is allowed
allows nothing."""

PERMISSION = AnyOf(*PERMITS)
"""The user may allow something."""

ALLOWING = re.compile(ALLOWS.pattern, re.IGNORECASE)
"""The user allows something."""

CORRECTING = re.compile(MEANT.pattern, re.IGNORECASE)
"""The user puts right what was said."""

_PASSED_OVER = re.compile(PASSED_OVER.pattern, re.IGNORECASE)


def put_in_place(text: str) -> str:
    """A text without what something else is put in the place of."""
    return _PASSED_OVER.sub(" ", text)


ONCE = re.compile(JUST_ONCE.pattern, re.IGNORECASE)
"""Something is said of a single time."""

_STAYS = re.compile(STAYS.pattern, re.IGNORECASE)


def withdraws(text: str, known: Heads | None = None) -> bool:
    """Whether a sentence takes something back: neither one that reminds of it, nor one that tells what happened, nor a
    pasted line.
    """
    found = WITHDRAWAL.search(text, known) and not _PASTED.match(text)
    return found and (not _STAYS.search(text) or WITHDRAWAL.search(_STAYS.sub("x", text)))


_ENDING = re.compile(ENDS.pattern, re.IGNORECASE)
BAN = re.compile(BANS.pattern, re.IGNORECASE)
_CLAUSE = re.compile(
    r"[,;:(—–]| (?:because|since|now that|weil|denn|parce que|car|porque|perché|omdat)\b", re.IGNORECASE
)


def clauses(text: str) -> list[str]:
    """The parts of a sentence between commas, and what is given as a reason."""
    return _CLAUSE.split(text)


def ended(text: str) -> str:
    """What is to be done no more, or need not be done, where words that take something back say only that; else
    nothing.
    """
    rest = _ENDING.sub(lambda found: " ".join(("\0", *filter(None, found.groups()))), text)
    if "\0" not in rest or any(cue.search(rest) for cue in (WITHDRAWAL, PROHIBITS, BAN)):
        return ""
    clause = next(clause for clause in clauses(rest) if "\0" in clause)
    return clause if re.search(r"\w", clause) else rest


_LABEL = re.compile(r"\W{0,4}([^\W\d_][\w -]{2,40}?)\s?[:：]\s+\w")


def is_labeled(text: str) -> bool:
    """Whether a text begins with a label in capitals (``NOTE: ...``, ``DATENBANK: ...``), in any script that has them.

    A person who marks a sentence so wants it kept, whatever it is about. A log that says ``ERROR:`` does not.
    """
    return bool(labeled(text)[0])


def labeled(text: str) -> tuple[str, str]:
    """The label in capitals that a text begins with, and what stands behind it; without one, nothing and the text."""
    found = _LABEL.match(text)
    if found is None or not found[1].isupper() or ERROR.search(text):
        return "", text
    return found[1], text[found.end() - 1 :]


_USE = r"(?:use|make|put|take|call|write|run)\b[^.!?\n]{0,60}? "
CORRECTION = Cue(
    r"\b(?:(?:(?<![\w'’] )|(?<=\bno )|(?<=\bbut ))actually\b(?!\W*(?:$|[.!?]))"
    rf"|(?:{_USE}|(?<![\w'’,] ))(?:instead of|rather than)|instead(?! of)"
    r"|no longer|forget (?:about|it|that|the)|scrap (?:that|it)|revert|undo"
    r"|(?<!go )(?<!goes )(?<!going )(?<!gone )(?<!went )(?<!thing )wrong(?! (?-i:[A-Z]))"
    r"|roll(?:ed)? back|changed my mind|not what i|that['’]?s not|on second thought|let['’]?s (?:not|switch|go with)"
    r"|drop (?:the|that))\b"
    r"|^no[,.! ](?!\W*(?:worries|problem|need|pressure|rush|hurry|doubt|idea|way|one|matter|thanks?)\b)"
    r"|\b(?:doch (?:nicht|lieber)|stattdessen|vergiss|rückgängig|falsch|anders überlegt)\b"
    r"|不对(?![称齐])|不是这样|(?<![报出没])错了|改成|改为|换成|不用了|(?<![计打清核换估结推预])算了|取消|撤销|回退|恢复到"
    r"|重新来|我的意思是"
    r"|やっぱり|違います|違う|ではなく|取り消|やめて|元に戻|変更して|間違(?!いな)",
    "actually use make put take call write run instead rather no forget scrap revert undo wrong roll rolled changed "
    "not that on let drop doch stattdessen vergiss rückgängig falsch anders",
)

DECISION = Cue(
    r"\b(?:decid\w+|decision|chose|chosen|opt(?:ed)? for|going with|we(?:['’]ll| will) use|i(?:['’]ll"
    r"| will) use|agreed"
    r"|because|root cause|the (?:issue|problem|cause|reason|bug|fix|culprit) (?:is|was)|turns? out"
    r"|found (?:that|the|a|it|out)|confirm(?:ed|s)|conclusion|conclude\w*|therefore|this means|which means"
    r"|fixed (?:by|it|the)|solved|resolved|verified|key (?:finding|insight|point|change)s?|summary"
    r"|results? (?:is|are|shows?)|recommend\w*|trade-?off|note that|important(?:ly)?)\b"
    r"|\b(?:entschieden|entscheidung|ursache|weil|deshalb|daher|stellt sich heraus|gefunden|behoben|bestätigt)\b"
    r"|决定|采用|选择了|选用|确定|结论|原因是|原因在于|根本原因|问题在于|问题是|发现|说明|因此|所以"
    r"|已修复|修复了|已确认|验证通过|建议|关键|总结"
    r"|決定|採用|結論|原因は|原因が|判明|わかりました|分かりました|確認でき|したがって|そのため"
    r"|修正しました|解決|推奨|重要|結果",
    "decide chose chosen opt opted going we i agreed because root the turn turns found confirm conclusion conclude "
    "therefore this which fixed solved resolved verified key summary result recommend trade tradeoff note important "
    "entschieden entscheidung ursache weil deshalb daher stellt gefunden behoben",
)

_BARE = (
    "a actually agreed ah all also and bug but cause clear confirmed confirms error exactly excellent fine fix "
    "found good got great here i identified in indeed is issue it key let me my now of oh ok okay perfect problem "
    "right root see so sure that the there think this to understand understood very we well what yeah yep yes das "
    "der die fehler fertig gefunden gut ich ist jetzt klar perfekt ursache verstanden"
)
_BARE_WORDS = frozenset(_BARE.split())
_WORD_OR_FIGURE = re.compile(r"[^\W_]+")


def says_nothing(sentence: str) -> bool:
    """Whether a sentence tells that something was found or agreed on, and not what: ``The cause is clear.``"""
    return _BARE_WORDS.issuperset(_WORD_OR_FIGURE.findall(sentence.lower()))


ANNOUNCES = re.compile(
    r"\W*(?:(?:now|next|first|so|ok(?:ay)?|good|great|perfect|jetzt|zuerst)[,.!]?\s+)?(?:let me|lass mich)\b"
    r"|[^。，,]{0,12}[，,]?\s*(?:现在)?让我",
    re.IGNORECASE,
)
"""How a sentence begins that says what is looked at next, or what the user is to tell: nothing was found yet."""

PASSING = Cue(
    r"\bstill (?:not|fail\w*|broken|(?:is|does|has)n['’]t)\b"
    r"|\b(?:not|(?:is|are|has|have)n['’]t) (?:yet |been )?(?:fixed|resolved|passing|solved)\b"
    r"|\b(?:is|are|keeps?) failing\b|\bcan(?:not|['’]t) find\b"
    r"|\b(?:noch immer|immer noch|noch nicht)\b"
    r"|仍然?(?:失败|报错|没有|不行)|还是(?:失败|报错|不行)|(?:没有?|尚未)(?:解决|修复)|まだ(?:失敗|直って|解決)",
    "still not is isn are aren has hasn have haven keep can noch immer",
)
"""A state that the work is there to end: true while nothing was done about it."""

_ASSENTING = (
    "continue go on ahead proceed next sure please thanks thank do nice cool y n no nope weiter danke ja nein bitte"
    " mach oui non merci continuez sí si gracias sim obrigado grazie prego nee bedankt да нет спасибо продолжай "
    "继续 好 好的 可以 是 是的 对 嗯 行 没问题 谢谢 はい 続けて お願いします 네 계속 좋아요"
)
_ASSENTS = _BARE_WORDS | frozenset(_ASSENTING.split())
_CHOICE = re.compile(r"\d{1,2}|[a-d]")


def only_assents(sentence: str) -> bool:
    """Whether a user's sentence only lets the agent go on, or chooses among what it offered: ``continue``, ``1``. What
    was agreed to stands in another message, so in a summary it says nothing.
    """
    words = _WORD_OR_FIGURE.findall(sentence.lower())
    return len(words) <= 4 and all(word in _ASSENTS or _CHOICE.fullmatch(word) for word in words)


OPEN = Cue(
    r"\b(?:next (?:step|up|i|we|,)|todo|to do|remaining|still (?:need|to|fail\w*|missing|open)|not yet|pending"
    r"|left to do|follow-?up|later|i(?:['’]ll| will) (?:now|next|then)|let me (?:now|next)|now (?:i|let)|needs? to"
    r"|blocked|waiting|unclear|open (?:question|point|issue)s?|unresolved)\b"
    r"|- \[ \]"
    r"|\b(?:noch (?:offen|zu|nicht)|als nächstes|nächster schritt|ausstehend|fehlt noch)\b"
    r"|下一步|接下来|待办|还需要|还没|尚未|未完成|剩余|剩下|稍后|现在(?:我|来|让)|待确认"
    r"|次に|これから|残り|未対応|未完了|まだ|後で|ToDo|確認待ち",
    "next todo to remaining still not pending left follow later i let now need blocked waiting unclear open "
    "unresolved noch als nächster ausstehend fehlt",
    ("todo", "- [ ]"),
)

_LEAD = (
    r"Caused by: |Uncaught (?:\(in promise\) )?|Unhandled exception[.:] "
    r"|Exception in thread \"[^\"\n]{1,80}\" |-+> |E {3,9}"
)
"""How runtimes and test runners lead up to the class of an error."""

_NOTHING = r"(?:null|[Nn]one|\([Nn]one\)|[Ff]alse|0|\[\]|\{\}|\"\"|'')\s*(?:[,}\]]|$)"
"""Behind the label of an error: there was none. The last line of a traceback says ``KeyError: None``, and means it."""

ERROR = re.compile(
    # a test in a report
    r"^\s{0,40}(?:[✕✖✗✘❌] ?\w|● [^\n]{1,200} › |not ok\b)|\bFAILED(?:\s{1,9}\[ {0,2}\d{1,3}%\])?\s{0,9}$"
    rf"|^\s{{0,40}}(?:{_LEAD})[\w.$\\]*(?:Error|Exception|Throwable|Panic|Failure)\b(?::|\s*$)|^E {{3,9}}assert\b"
    r"|^thread '[^'\n]{1,80}'(?: \(\d{1,20}\))? panicked at |^PHP (?:Fatal|Parse) error:"
    r"|^(?:Segmentation fault\b|CONFLICT \(|Automatic merge failed)"
    r"|^\S{1,300}\.rb:\d{1,7}:in [`'][^'\n]{1,80}': "
    rf"|^\W{{0,4}}(?!Error:\s*{_NOTHING})"
    r"(?:[\w.]*(?:Error|Exception|Panic|Failure)\b(?:\s*\[[^\]]*\])?:|(?:fatal|error|panic"
    rf"|fehler|ERR!)\b[^\n:]{{0,20}}:(?!\s*{_NOTHING})"
    r"|FAIL(?:ED|URE)?\b|Traceback |npm ERR!|error\[\w+\]|(?:ERROR|FATAL|CRITICAL|WARN(?:ING)?)\b"
    r"|错误[:：]|エラー[:：]|失败[:：]"
    # behind the time, and the host, logger or thread, in a log
    r"|(?:[A-Z][a-z]{2} {1,2}\d{1,2} )?\d{1,4}[-/:]\d"
    r"(?:(?!\b(?:INFO|DEBUG|TRACE|NOTICE|WARN(?:ING)?)\b)[\w:.,+\[\]()/|@#* -]){0,80}?"
    r"\b(?:ERROR|FATAL|CRITICAL)\b(?!=))"
    r"|\blevel=(?:error|fatal|panic)\b|\"(?:level|severity|levelname)\": ?\"(?:error|fatal|ERROR|FATAL|CRITICAL)\""
    r"|\b(?:expired|timed out|refused|denied|exceeded|unreachable|aborted|abgelaufen|verweigert|überschritten)\b"
    r"|过期|超时|被拒绝|超出限制|期限切れ|タイムアウト|拒否され"
    r"|: (?:command not found|[Nn]o such file|[Pp]ermission denied|[Nn]ot found$)|[Nn]o such file or directory"
    r"|(?:[Ee]xit(?:ed)? (?:with )?(?:[Cc]ode|[Ss]tatus)|returncode)\W{0,3}[1-9]\d*|\b[1-9]\d* (?:failed|errors?)\b"
)
"""One line of a tool's output that says that something went wrong. Case matters: ``error`` in running text does not."""

ERROR_WORDS = (
    *(
        "Error",
        "Exception",
        "Panic",
        "Failure",
        "fatal",
        "error",
        "panic",
        "fehler",
        "ERR",
        "FAIL",
        "FATAL",
        "CRITICAL",
    ),
    *(
        "WARN",
        "Traceback",
        "expired",
        "timed out",
        "refused",
        "denied",
        "exceeded",
        "unreachable",
        "aborted",
        "not found",
        "not ok",
    ),
    *("abgelaufen", "verweigert", "überschritten", "o such file", "xit", "returncode", "failed"),
    *("Throwable", "E   ", ".rb:", "Segmentation fault", "CONFLICT"),
    *("错误", "エラー", "失败", "过期", "超时", "被拒绝", "超出限制", "期限切れ", "タイムアウト", "拒否され"),
    *"✕✖✗✘❌●",
)
"""One of these stands in each match of ``ERROR``."""

OUTCOME = re.compile(
    r"\b\d+ (?:passed|skipped|failures?|warnings?|tests?|files? changed|bestanden|übersprungen)\b"
    r"|\b(?:is ready|succeeded|completed|deployed|installed|created|built|finished|erfolgreich|fertig"
    r"|abgeschlossen)\b"
    r"|\b\d+ (?:to (?:add|change|destroy)|added|changed|destroyed|vulnerabilit(?:y|ies))\b"
    r"|\b(?:must be replaced|forces replacement|will be (?:destroyed|updated in-place))\b"
    r"|^(?:note|hint|result|hinweis)s?:|成功|完成|失败|通过|已部署|注意[:：]|完了|成功しました|失敗",
    re.IGNORECASE,
)
"""One line of a tool's output that says what came of it, or tells the reader something."""

OUTCOME_WORDS = (
    *(" passed", " skipped", " failure", " warning", " test", " changed", " bestanden", " übersprungen", "is ready"),
    *("succeeded", "completed", "deployed", "installed", "created", "built", "finished", "erfolgreich", "fertig"),
    *("abgeschlossen", "note:", "notes:", "hint:", "hints:", "result:", "results:", "hinweis:", "hinweiss:"),
    *(" to add", " to change", " to destroy", " added", "destroyed", "vulnerabilit", " replace", "updated in-place"),
    *("成功", "完成", "失败", "通过", "已部署", "注意", "完了", "失敗"),
)
"""One of these stands in each match of ``OUTCOME`` in lower case, as far as the text is ASCII."""

_AMOUNT = (
    r"\d(?<![\w.].)[\d.,]{0,40}+\s?(?:ms|sec(?:onds?)?|min(?:utes?)?|hours?|days?|[KMGT]i?B|%|°C|kg|km|rows?"
    r"|requests?|[KMG]bit/s"
    r"|€|USD|EUR|Sekunden|Minuten|Stunden|Tage|Zeilen|Anfragen)(?!\w)"
)
MEASURE = re.compile(rf"{_AMOUNT}|\d[\d.,]{{0,40}}\s?(?:毫秒|秒|分钟|小时|天|个|条|行|次|元|度|分|時間|日間|件|円|回)")
"""An amount with its unit."""

MEASURE_ASCII = re.compile(_AMOUNT, re.ASCII)
"""The same in a text of ASCII alone."""

CHANGING = re.compile(
    r"edit|write|creat|patch|replace|delet|remov|move|renam|insert|updat|save|commit|push|deploy|send"
    r"|book|cancel|pay|post"
    r"|install|exec|run|bash|shell|command|apply",
    re.IGNORECASE,
)
"""In the name of a tool: it changes something, where others only look."""
