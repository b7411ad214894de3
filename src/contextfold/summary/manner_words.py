"""How users say in few words how to answer and what to call them: *short answers please*, *call me Sam*.

What belongs here: regular expressions over one sentence, by language, of what a task of its own would not say. What
does not: other standing instructions, and the language of answers (``standing_words``).
"""

from __future__ import annotations

from contextfold.summary.rule_words import Phrases
from contextfold.summary.standing_words import ENDS, ENGLISH_BEGINS

_NAME = r"(?!\w*day\b|(?:asap|on|at|when|if|back|maybe|crazy)\b)(?-i:[A-ZÀ-ÖØ-Þ])\w"
ENGLISH = Phrases(
    "|".join(
        (
            # English
            r"\bi(?:['’]d| would)? (?:want|need|like) (?:(?:all|the|your|only|you to give) )*(?:(?:short|brief"
            r"|concise)(?:er)?"
            r" (?:answers|replies|responses)|(?:answers|replies|responses|amounts|prices|dates|times|units) (?:in|as)"
            r" (?!(?:the|this|that|an?|order|my|our)\b)\w)|\bi (?:want|need) you to (?:answer|reply|respond"
            r"|write) (?:in|with|as)\b",
            rf"{ENGLISH_BEGINS}\b(?:(?:short|brief|concise)(?:er)? (?:answers|replies|responses)(?: only)?"
            rf"(?:,? (?:please|pls|plz))?{ENDS}|(?:(?:all )?(?:answers|replies|responses)|answer|reply|respond|write)"
            rf"(?: (?:please|always|only))* (?:in|as) (?:bullet ?points?|bullets|tables?|markdown|plain (?:text|words)"
            rf"|lower ?case|full sentences)(?:,? (?:please|pls|plz|only))?{ENDS}"
            rf"|(?:answer|reply|respond)(?: \w+)? (?:briefly|concisely|tersely){ENDS}"
            rf"|be (?:(?:very|more) )?(?:brief|concise|terse|succinct)(?:,? (?:please|pls|plz))?{ENDS}"
            rf"|(?:call|address) me (?:as )?{_NAME}"
            rf"|use (?:(?:metric|imperial|si) units|tabs|spaces|(?:single|double) quotes|type hints|snake[_ ]case"
            rf"|camel ?case){ENDS}"
            rf"|(?:has|needs) to (?:run|work|support|fit|compile)\b|zero (?:new |extra |external )?(?:dependencies"
            rf"|deps){ENDS}"
            rf"|max(?:imum)? (?:\w+ )?(?:length|size|width|depth|retries|lines|files|price|tokens|words) (?:is "
            rf"|of )?(?=\d)|(?:no (?!one\b)\w+|nothing) (?:before|after|over|above"
            rf"|below) "
            rf"[$€£]?(?=\d)|target (?:python|node|java|es|ios|android|go|php|ruby) ?v?(?=\d))"
            rf"|\bwe (?:only )?use (?!(?:it|this|that|them)\b)[\w.+-]{{1,30}}(?: here{ENDS}|,? (?:not|never) \w)"
            rf"|(?<!\w )bullet ?points,? (?:please|pls|only){ENDS}"
            rf"|(?<=\d )(?:(?:characters|chars|columns|lines|words|tokens|seconds|minutes|files|pages|items|retries) )?"
            rf"max(?:imum)?{ENDS}"
            r"|\bi (?:can(?:not|['’]?t)|do(?: not|n['’]?t)) eat (?:meat|fish|pork|beef|dairy|gluten|nuts|eggs|seafood"
            r"|sugar)\b",
        )
    ),
    "i short brief concise all answers replies responses answer reply respond write be call address use "
    "has needs zero max maximum no nothing target we characters columns lines words tokens seconds minutes files pages "
    "items retries bullet",
)
"""How to answer and what to call the user, in few words: what a task of its own would not say."""
OTHERS = Phrases(
    "|".join(
        (
            # German
            rf"\bich (?:will|möchte|brauche|hätte gerne?) (?:nur )?(?:kurze|knappe|kürzere) antworten\b"
            rf"|(?<!\w )\b(?:nur )?"
            rf"(?:kurze|knappe) antworten(?:,? bitte)?{ENDS}|(?<!\w )\b(?:antworten"
            rf"|antworte) (?:bitte )?(?:immer )?(?:(?:in"
            rf"|als) (?:stichpunkten?|tabellen?)|kurz|knapp){ENDS}|\b(?:fasse?|halte?) dich (?:bitte )?kurz\b"
            rf"|(?<!\w )\bnenne? mich {_NAME}|(?<!\w )\b(?:bitte (?:nicht )?(?:duzen|siezen){ENDS}|(?:duze?"
            rf"|sieze?) mich\b"
            rf"|(?:bitte )?ohne (?:emojis?|kommentare|erklärungen|floskeln)\b|alle (?:beträge|preise|zeiten|maße"
            rf"|angaben) "
            rf"(?:bitte )?in (?!(?:der|die|das|den|dem|ein\w*)\b)[\w-]+{ENDS}|nix (?:löschen|ändern|pushen|anfassen))",
            # French, Spanish
            rf"\bje (?:veux|voudrais) des réponses (?:plus )?(?:courtes|brèves)\b|(?<!\w )\b(?:réponses (?:courtes"
            rf"|brèves)"
            rf"(?:,? (?:svp|stp|s['’]il (?:te|vous) pla[iî]t))?{ENDS}|so(?:is|yez) (?:plus )?(?:brefs?|brève"
            rf"|concis\w*)\b"
            rf"|appelle[zr]?[- ]moi {_NAME}|(?:tutoie|vouvoie|tutoyez|vouvoyez)[- ]moi\b|sans (?:emojis?"
            rf"|commentaires)\b"
            rf"|tous les (?:montants|prix) en \w+{ENDS})",
            rf"\bquiero respuestas (?:más )?(?:cortas|breves)\b|(?<!\w )\b(?:respuestas (?:cortas"
            rf"|breves)(?:,? por favor)?{ENDS}"
            rf"|(?:sé|sea) (?:más )?(?:breve|concis[oa])\b|llámame {_NAME}|tutéame\b|trátame de (?:tú|usted)\b"
            rf"|sin emojis?\b|todos los (?:importes|precios) en \w+{ENDS})",
            # Italian, Portuguese, Dutch
            rf"\b(?:voglio|vorrei) risposte (?:più )?brevi\b|(?<!\w )\b(?:risposte brevi(?:,? per favore)?{ENDS}"
            rf"|sii (?:più )?"
            rf"(?:breve|concis[oa])\b|chiamami {_NAME}|dammi del (?:tu|lei)\b|senza (?:emoji|commenti)\b)",
            rf"\bquero respostas (?:mais )?(?:curtas|breves)\b|(?<!\w )\b(?:respostas curtas(?:,? por favor)?{ENDS}"
            rf"|seja (?:mais )?(?:breve|concis[oa])\b|sem (?:emojis?|comentários)\b)|(?<=\bme )cham[ae] de {_NAME}",
            rf"\bik wil (?:graag )?korte(?:re)? antwoorden\b|(?<!\w )\b(?:korte antwoorden(?: graag)?{ENDS}"
            rf"|wees (?:kort|bondig"
            rf"|beknopt)\b|noem me {_NAME}|zonder (?:emoji['’]?s?|commentaar)\b)",
            # Russian
            r"(?<!\w )\b(?:отвечай(?:те)? (?:\w+ )?(?:коротко|кратко|короче)\b|(?:хочу |мне нужны )?(?:короткие"
            r"|краткие) ответы\b"
            r"|(?:называй|зови)(?:те)? меня \w|без (?:эмодзи|смайлов|комментариев)\b)",
        )
    ),
    "ich nur kurze knappe antworte fass halt nenn bitte duze sieze ohne alle nix je réponses sois soyez appelle tutoie "
    "vouvoie tutoyez sans tous quiero respuestas sé sea llámame tutéame trátame sin todos voglio vorrei risposte sii "
    "chiamami dammi senza quero respostas seja chame chama sem ik korte wees noem zonder отвечай хочу мне короткие "
    "краткие называй зови без",
)
"""The same in other languages."""
ASIAN = Phrases(
    r"(?:回答|回复)(?:请|要|得|尽量)?(?:简短|简洁|精简)(?:一点|一些|些)?(?=[。．｡！!，,]|$)|(?:^"
    r"|[。，,请])(?:以后)?叫我(?![去来怎做干如先]|什么)"
    r"(?=.{1,6}(?:[。．｡！!，,]|$))|不(?:用|要|需要)解释(?!了)|只给我?代码|(?:所有|全部)(?:金额|价格)都?用"
    r"|(?:短く|簡潔に|手短に)(?:答えて|回答して|お願い)|絵文字(?:なし|抜き|は不要)|と呼んで(?:ください|下さい|ね"
    r"|[。．｡！!]|$)"
    r"|(?:짧게|간단히|간결하게) (?:답|대답|말)(?:변)? ?(?:해|하)|라고 불러|이모지 없이"
)

NAMING = Phrases(
    rf"\b(?:(?:call|address) me(?: as)?|nenne? mich|appelle[zr]?[- ]moi|llámame|chiamami|me cham[ae] de|noem me"
    rf"|(?:называй|зови)(?:те)? меня) {_NAME}?[\w'’-]*(?: (?-i:[A-ZÀ-ÖØ-Þ])[\w'’-]{{1,40}})?"
    r"|(?:以后)?叫我[^。！!，,]{1,6}"
    r"|[^。！!、\s]{1,12}と呼んで(?:ください|下さい|ね)?|\S{1,12}라고 불러(?: ?줘|주세요)?"
)
"""What to call the user: of two of these the later one holds."""

MANNERS = (ENGLISH, OTHERS, ASIAN)

KINDS = (
    (
        "the form of answers",
        r"(?:in|as|als|mit|with|using|en|con|em|com) (?:(?:bullet ?points?|bullets|tables?|prose|plain text"
        r"|stichpunkten?|tabellen?|fließtext|tableaux|puces|tablas?|viñetas|tabelle|elenchi|tabelas?)\b)"
        r"|bullet ?points",
    ),
    ("units", r"(?:metric|imperial|si)(?: (?:units|system))?|(?:metrische|imperiale) einheiten"),
    (
        "quotes",
        r"(?:single|double)[ -]quotes|(?:einfache|doppelte) anführungszeichen|guillemets (?:simples|doubles)"
        r"|comillas (?:simples|dobles)|virgolette (?:singole|doppie)|aspas (?:simples|duplas)",
    ),
    (
        "indentation",
        r"(?:(?:\d|two|four)[ -])?(?:tabs|spaces|leerzeichen|tabulatoren|espacios|tabuladores|espaces|tabulations"
        r"|spazi|tabulazioni|espaços|tabulações)(?: for indent(?:ation|ing))?",
    ),
    ("the case of names", r"(?:snake|camel|kebab|pascal)[ _-]?case"),
    (
        "the length of answers",
        r"(?:short|brief|concise|long|detailed|verbose)(?:er)? (?:answers|replies|responses)|be (?:brief|concise|terse"
        r"|detailed|verbose)|(?:keep (?:the |your |all )?)?(?:answers|replies|responses) (?:short|brief|concise)"
        r"|(?:answers|replies|responses) (?:can|may) (?:now )?be (?:longer|shorter|more detailed)"
        r"|antworten (?:dürfen|können) (?:jetzt |wieder |ruhig )?(?:länger|kürzer|ausführlicher) sein"
        r"|(?:kurze|knappe|lange|ausführliche) antworten|réponses (?:courtes|brèves|longues"
        r"|détaillées)"
        r"|respuestas (?:cortas|breves|largas|detalladas)|risposte (?:brevi|lunghe|dettagliate)|respostas (?:curtas"
        r"|longas|detalhadas)",
    ),
    (
        "",
        r"(amounts|prices|costs|times|timestamps|dates|beträge|preise|zeiten|montants|prix|importes|precios|importi"
        r"|prezzi|valores|preços) (?:are |always |immer |bitte ){0,2}(?:in|en|em) (?!(?:the|a|an|this|that|my|our|der"
        r"|die|das|den|dem|le|la|el|il|o)\b)\w{1,20}",
    ),
)
"""What there is one manner of at a time, and how each is named; of two the later one holds."""

FILLERS = (
    "please pls plz ok okay now instead actually always only just use write answer answers reply replies respond "
    "responses all from on again everywhere i want need would like rather prefer d you to your make let s lets "
    "switch change go back to "
    "bitte immer jetzt ab nur stattdessen lieber doch nimm nutze nutzen verwende verwenden benutze benutzen antworte "
    "antworten alle svp stp utilise utilisez mets réponds répondez réponses plutôt toujours maintenant des les tous "
    "usa usar responde respuestas siempre ahora mejor por favor todos los las de la el en "
    "rispondi ora invece sempre risposte agora responda respostas"
)
"""Words around them that say nothing else."""
