"""How much a line says that people come back to, where two of them talk: a dialogue without tools.

What belongs here: the signs of it, by the wording alone. What does not: how it is weighed against names and rare words
(``choice``).

Asked later about a long talk, people ask for what one of them told of their own life: what they did, have or plan, when
that was, and with what name. Of 3,300 tokens chosen by these signs alone, half of the questions about a dialogue find
their answer, of the same number chosen by rare words 39 %, at random 35 %. Thanks, praise and questions hold next to
none. The signs err often, and cost nothing but room where they do.
"""

from __future__ import annotations

import re

from contextfold.identifiers import CJK

PLAIN = 0.3
"""What a statement counts without any sign. Of each kind of sign two count, ``SIGN`` each."""

SIGN = 0.5
ENOUGH = 2

ASKED = 0.5
"""Factor for what ends in a question: it tells less than its answer."""

FLAT, PER_CHARACTER = 1.0, 0.0125
"""What a sign is worth in a line of no length and for each character: long turns tell more, but not by the token."""

_OWN = re.compile(
    r"\b(?:I|my|mine|me|we|our|ours|us|ich|mir|mich|mein\w*|wir|unser\w*|je|mon|mes|nous|notre|nos|yo|mi|mis|nosotros"
    r"|nuestr\w+|eu|meus?|minhas?|nós|noss\w+|io|mio|mia|miei|noi|nostr\w+|ik|mijn|wij|onze|ja|mój|moja|moje|moim|nasz\w*"
    r"|ben|benim|biz|я|мой|моя|моё|мои|моей|меня|мне|мы|нас|наш\w*)\b|我|咱|私|僕|俺|나는|내가|저는|제가|우리",
    re.IGNORECASE,
)
"""The first person."""

_WHEN = re.compile(
    r"\d+|\b(?:yesterday|today|tonight|tomorrow|recently|lately|ago|since|just|last|next|weeks?|weekend|months?|years?"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october"
    r"|november|december|gestern|heute|morgen|neulich|kürzlich|seit|letzte\w*|nächste\w*|wochen?|monate?|jahre?n?"
    r"|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|januar|februar|märz|mai|juni|juli|oktober|dezember|hier|demain"
    r"|aujourd'hui|récemment|depuis|derni\w+|prochain\w*|semaines?|mois|années?|ayer|hoy|mañana|hace|desde|pasad[oa]"
    r"|próxim\w+|semanas?|meses|años?|ontem|hoje|amanhã|mês|anos?|ieri|oggi|domani|fa|settiman\w|mesi|anni|gisteren"
    r"|vandaag|geleden|sinds|jaar|wczoraj|jutro|temu|вчера|сегодня|завтра|назад|недел\w+|месяц\w*|год\w*|лет)\b"
    r"|[昨今明去前后]天|去年|今年|明年|上周|下周|星期|周末|个月|最近|昨日|今日|明日|先週|来週|先月|来月|어제|오늘|내일|지난|다음",
    re.IGNORECASE,
)
"""When something was or will be, and how many."""

_NAMED = re.compile(
    r"(?<=[^\W\d_A-Z][ ])[A-ZÀ-Þ][\w'’-]*[a-zß-ÿ](?![!?,])|(?<=[^\W\d_A-Z],[ ])[A-ZÀ-Þ][\w'’-]*[a-zß-ÿ](?![!?.,])"
    rf"|(?<=[^\W\d_A-Z][ ])[A-Z]{{2,}}\b|[《「『“\"][^\W_{CJK}]"
)
"""A name that does not begin a sentence, nor address the other: ``Thanks, Mel!``."""

_QUESTION = ("?", "？")


def told(text: str) -> float:
    """How much a line tells, from about 0.2 for a word of thanks to 10 for a long account with dates and names."""
    said = PLAIN + SIGN * sum(_signs(text))
    worth = said * (FLAT + PER_CHARACTER * len(text))
    return worth * ASKED if text.rstrip().endswith(_QUESTION) else worth


def _signs(text: str) -> tuple[int, int, int]:
    named = {found.group() for found in _NAMED.finditer(text)}
    return min(ENOUGH, len(_OWN.findall(text))), min(ENOUGH, len(_WHEN.findall(text))), min(ENOUGH, len(named))
