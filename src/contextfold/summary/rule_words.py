"""How rules are worded in each language that is spoken here: what is demanded, forbidden or limited.

What belongs here: regular expressions over one sentence, by language, each with the words that it can begin with. What
does not: what stands without such a word (``standing_words``), what takes a rule back (``withdrawal_words``), and how
they are searched (``extractive_cues``).

What asks for something is a rule, what tells how things are is none: ``keep it short`` and ``it must run offline``, but
neither ``I keep it short`` nor ``it must have been great``. A word that is used in both ways counts where a clause
begins, or behind one who is asked.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Phrases(NamedTuple):
    """A regular expression in lower case, and the words that a match can begin with, in languages that have words."""

    pattern: str
    begins: str = ""


def first(*words: str) -> str:
    """Where a clause begins: behind anything but a word, or behind one of these."""
    return "|".join([r"(?:(?<!\w )", *(rf"(?<=\b{word} )" for word in words)]) + ")"


def _only(words: str, articles: str, *verbs: str) -> str:
    """Words for ``only`` that limit. ``It is only a backstop`` says how little something is, and limits nothing."""
    is_apart = "".join(rf"(?<!\b{verb} )" for verb in verbs)
    return rf"(?:(?:{words})(?! (?:{articles})\b)|{is_apart}(?:{words}))"


NOT_SAID_OF_ONESELF = r"(?<!\bi )(?<!\bwe )(?<!\bit )(?<!\bthey )"
"""``do not touch it`` is a constraint, ``I do not see it`` is none."""

_NOT_TOLD = r"(?<!['’]ve )(?<!\bhave )(?<!\bhas )(?<!\bhad )(?<!['’]m )(?<!['’]re )(?<!['’]s )(?<!['’]ll )"
_NOT_STILL = r"(?<!\bstill )(?<!\bdefinitely )(?<!\breally )(?<!\bhonestly )(?<!\bi just )(?<!\bi also )"
NOT = r"(?: not|n['’]?t)"

BEGINS = first("please", "and", "but", "also", "so")
_GLAD = r"(?:so|such|really|very|quite|nice|good|great|hard|fun|amazing|incredible|disappointing)"
_WORK = (
    r"(?:touch|chang|modif|edit|us|add|remov|delet|renam|break|rewrit|install|push|commit|deploy|merg|upgrad|exceed"
    r"|restart|alter|mov|overwrit)(?:y|e|es|ing)?"
)
"""What is forbidden of work; ``you can't believe it`` forbids nothing."""

DEMANDS = Phrases(
    rf"(?<!\bi )\bmust(?:n['’]?t)?(?!['’]ve\b| have (?:been|taken|felt|had|got|\w{{2,20}}ed)\b| feel\b| be {_GLAD}\b"
    r"| be (?:an? )?(?:bug|mistake|reason|something)\b)\b"
    rf"|{NOT_SAID_OF_ONESELF}{_NOT_TOLD}\bnever(?! (?:been|tried|seen|heard|had|gets?)\b| ?mind\b)\b"
    rf"|{NOT_SAID_OF_ONESELF}{_NOT_TOLD}\balways(?! (?:been|here|there|wanted|admired|loved?|help me|{_GLAD})\b"
    r"| \w{1,20}s (?:me|my)\b)\b"
    rf"|{NOT_SAID_OF_ONESELF}{_NOT_TOLD}{_NOT_STILL}\bdo{NOT}"
    r"(?! (?:worry|have to|need to|know|see|understand|believe|une?|deux|les?|la|des|i?ls?|elles?|on|je|tu|nous|vous"
    r"|certaine?s|celle|celui|ce|cette|son|sa|ses|mon|ma|mes)\b| l['’])\b",
    "must mustn never always do don dont",
)
"""``you must ask`` is a demand; ``it must have been great``, ``I still don't have it``,
``I've always wanted to`` and ``don't worry`` are talk, and ``dont une`` is French."""

ASKED = Phrases(
    rf"\b(?:i|we) (?:(?:really|definitely|absolutely|also|just) do{NOT} want|do{NOT} want(?! my\b"
    r"| to (?:be|feel|lose|miss|forget|over\w+|worry|have|know|sound|seem|come|mess|get|risk|wait|completely|burden"
    r"|make \w{1,20} worse)\b))\b"
    rf"|\b(?:you|we) (?:can(?:not| not|['’]?t)|may not|shall not|should{NOT}) {_WORK}\b"
    r"|\b(?:messages|commits|comments|answers|replies|responses|names|docs|docstrings|tests|functions|files|branches"
    r"|variables|classes|methods|summaries|texts|titles|tickets|reports|dates|amounts|prices|deployments|releases)"
    r" (?:(?:have|need) to|should(?: always| only)?) be (?:in (?!the\b|th\w\w\b)(?=\w)|short"
    r"|brief|lower|upper|signed|under|written"
    r"|named|reviewed|typed|documented|tested|deterministic)\b"
    r"|\b(?:it|this|everything) (?:has|needs) to (?!do with\b|be (?:said|seen)\b)\w|\bi (?:only (?:want|accept|need)"
    r"|never want)\b",
    "i we you it this everything messages commits comments answers replies responses names docs docstrings tests "
    "functions files branches variables classes methods summaries texts titles tickets reports dates amounts prices "
    "deployments releases",
)
"""What must run offline, and what a speaker will not have."""

_WHEN = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may (?=\d)"
    r"|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|tomorrow|tonight|noon|midnight|next (?:week|month)|(?:the )?end of|eod|20\d\d(?=-))"
)
ONLY_ENGLISH = r"(?<!\bthe )(?<!\bstill )(?<!\bi )" + _only(
    r"only(?! (?:has|have|had|took|says|said|works?|shows?|just|imagine|new issues on|displays|prints|returns"
    r"|renders|contains|gets|sees|does|happens|occurs|appears)\b)",
    "an?",
    "is",
    "was",
    "are",
    "were",
)
_SHIPS = r"(?:deploy\w*|releases?|push\w*|merg\w+|commits?|migrations?)"
ENGLISH = Phrases(
    rf"\b(?:forbidden|not allowed|prohibited|off[ -]limits|hands off|refrain from|{ONLY_ENGLISH}|at (?:most|least"
    rf"|the latest)"
    r"|no (?:more|less|later|longer|earlier|fewer|bigger|larger) than|not exceed|under no circumstances?|unless"
    r"|stop and"
    r"|make sure(?! i (?:do|get|got|understand|see)\b)"
    r"|(?<!how )important(?=:| that\b| to (?!me\b|us\b|you\b))|report all|deadline|due (?:on|by|date)"
    r"|budget(?= (?:is|was|of|for|limit|cap|must|should|stays)\b|:| ?[$€£\d])|(?:within|over|exceed"
    r"|stick to|keep to) (?:(?:the|our|my) )?budget|(?:rule|constraint|requirement|policy|restriction|limit)s?(?=:)"
    r"|(?:limit|cap)(?:ed)? (?:is|of|to|at)|(?:budget|limit|cap|ceiling|maximum|minimum) (?:for|on|per) .{1,40} is"
    r" [$€£]?(?=\d)|limit .{1,40} to (?=\d)|(?:max\.?|maximum(?: of)?|up to) [$€£]?(?=\d)"
    r"|(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\btook )(?<!\bto )(?:under|below"
    r"|(?:less|fewer) than) [$€£]?(?=\d)"
    rf"|(?:by|before|until|till) {_WHEN}|by (?!0\.|\d{{1,4}}(?:[.,]\d{{1,4}})? ?(?:%|percent|times|x\b))(?=\d)"
    r"|nothing (?:gets|goes|leaves|is|will be) (?:[^\s,.;]{1,20} ){0,4}without"
    rf"|without {_WORK}|{_WORK} nothing"
    r"|leave .{1,40} (?:alone|untouched|unchanged|as[ -]is|as (?:it is|they are)))\b"
    rf"|{BEGINS}\b(?:avoid|ensure|(?:be sure|be careful|take care|remember) (?:not )?to|stick (?:to|with)"
    rf"|(?:stay|keep) (?:out of|away from|off|within)"
    r"|keep (?!in mind|in touch|me\b|it up|at it|up\b|going|on\b|\w{1,20}in(?:g\b|['’]))(?=\w)"
    r"|use \S{1,40}(?: \S{1,40})? (?:instead of|rather than|not)|no .{1,60}please"
    r"|no (?:(?:new|extra|additional|external|other|third[- ]party|breaking|global|hard-?coded) (?=\w)|emojis?"
    r"|comments|semicolons?|inline|mock\w*|hacks?|force|placeholders?|console|dependenc\w+)(?! ?(?:error|message|result"
    r"|question)s?\b)"
    rf"|no (?:{_SHIPS}|changes|work|meetings?|calls?) (?:on|over|during|after|before) (?:the )?(?:(?:mon|tues|wednes"
    rf"|thurs|fri|satur|sun)day|weekend|holiday|(?=\d))s?|no {_SHIPS} without (?:an? |the |my |your |our )?\w+)\b",
    "nothing forbidden not prohibited off hands refrain only at no under unless stop make be take "
    "remember important report deadline due budget within over exceed stick keep rule constraint requirement policy "
    "restriction limit cap ceiling maximum minimum max up below less fewer by before until till without leave avoid "
    "ensure stay use touch change modify edit add remove delete rename break rewrite install push commit deploy merge "
    "upgrade restart alter move overwrite",
)


NOW = "now|jetzt|nun|maintenant|désormais|ahora|agora|ora|adesso|nu|теперь|teraz"
"""Beside a figure it says that another one held before."""


def _limit(nouns: str, before: str) -> str:
    """A figure that something is limited to: behind one of the words before figures (``le plafond est de 120``), not
    anywhere behind the noun (``SELECT ... LIMIT 1``, ``rate limit reached: 429``).
    """
    return rf"(?:{nouns})(?:(?: [^\s,.;:=]{{1,20}}){{0,3}} (?:{before})(?: (?:{NOW}))?| ?:) ?[$€£]?(?=\d)"


def _of_what(clause: str, relative: str) -> str:
    """Words between a verb and its ``nicht`` that begin no clause: many type ``zeig mir was nicht geht`` without a
    comma.
    """
    word = r"[^\s,.;:]{1,40} "
    return rf"(?:(?!(?:{clause}) ){word})?(?:(?!(?:{clause}|{relative}) ){word}){{0,8}}"


ONLY_GERMAN = _only("nur", "ein|eine", "ist", "war", "sind", "waren")
_GERMAN_WORK = (
    r"(?:fass|rühr|änder|veränder|lösch|verwend|benutz|nutz|push|installier|committ|mach|schreib|entfern|füg|nimm|lass)"
)
_GERMAN_DEALS = (
    r"(?:sag|nenn|ruf|schick|send|gib|zeig|antwort|sprich|verrat|erwähn|empfiehl|versprich|veröffentlich|übersetz"
    r"|starte|stopp|schließ|öffne|verschieb|bestätig|kontaktier|buche|kaufe|bezahl|teile|plane|zitier|frag)e?"
)
"""What agents are asked to leave beside their work on files. Without a word before it: ``der Start klappt nicht``."""
_GERMAN_OF = _of_what("was|warum|wieso|weshalb|wie|wo|ob|wenn|weil|falls|dass", "(?:die|das|der|den) nicht")
_POLISH_NOT = (
    r"(?:[^.!?]{0,80}[ąćęłńśźż]| (?:ma|mam|wiem|rozumiem|umiem|znam|jest|to|tak|teraz|pisz"
    r"|\w{2,20}(?:uje|aje|odzi|[aui]j|yj))\b)"
)
"""Behind ``nie``: it is no German for never, but the Polish ``not``."""
GERMAN = Phrases(
    rf"\b(?:nie(?!{_POLISH_NOT})|niemals"
    r"|kein\w*(?! (?:ahnung|problem|idee|lust|zeit|sorge)\b)|(?<!\bich )muss(?! ich\b)|müssen|darf"
    rf"|dürfen|{ONLY_GERMAN}|unbedingt|immer|ausschlie(?:ß|ss)lich|höchstens"
    r"|mindestens|maximal|spätestens|frist|keinesfalls|auf (?:gar )?keinen fall|verboten|finger weg"
    r"|lasst? die finger von|nicht überschreiten"
    r"|bis (?:zum|spätestens|morgen|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|ende|(?=\d))|vor (?:dem )?(?=\d)"
    r"|nicht (?:mehr|länger|grö(?:ß|ss)er|später) als|(?:unter|weniger als) (?=\d)|achte darauf|stell\w{0,2} sicher"
    r"|halte? dich an|(?:bitte|du sollst|nichts?) (?:.{1,40} )?(?:nicht|an(?:fassen|rühren)|ändern|pushen|löschen"
    r"|verwenden|benutzen)"
    rf"|(?<!\bich ){_GERMAN_WORK}e? (?:.{{1,60}} )?nichts?|ohne .{{1,40}} zu \w+"
    r"|lasst? .{1,40} (?:in ruhe|unverändert|wie (?:es ist|sie sind))"
    rf"|{_limit('budget|limit|obergrenze|höchstgrenze', 'ist|sind|beträgt|auf|bei|von|maximal')}"
    r"|auf (?=\d).{1,30} (?:begrenzt|beschränkt)"
    r")\b"
    r"|(?<!\w )\b(?:am |an |auf |in |im |vor |nach |über )[^,.;:!?]{1,40} nicht (?:deployen|pushen|mergen|committen"
    r"|releasen|veröffentlichen|installieren|ändern|löschen|anfassen|verwenden|benutzen|arbeiten|schreiben|starten)"
    r"(?=\W*\Z)|(?<!\w )\b(?:am )?(?:(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|wochenende) wird "
    r"(?:\w+ )?nicht (?:deploy\w*|gepusht|gemerg\w*|releas\w*|veröffentlicht|committe\w*|installiert|geändert)\b"
    rf"|{first('bitte', 'und', 'aber')}\b(?:{_GERMAN_DEALS} {_GERMAN_OF}nichts?"
    rf"|nicht (?:mehr )?\w+ (?:.{{1,40}} )?\w+en|vermeide\w*|behalte?)\b",
    "am an in im nach über montag dienstag mittwoch donnerstag freitag samstag sonntag lass nie niemals kein "
    "muss müssen darf dürfen nur unbedingt immer ausschließlich höchstens mindestens maximal "
    "spätestens frist keinesfalls auf verboten finger nicht bis vor unter weniger achte stelle halte bitte du "
    "fass rühr änder veränder lösch verwend benutz nutz push installier committ mach schreib entfern füg nimm lass "
    "ohne vermeide behalte budget limit obergrenze höchstgrenze sag nenn ruf schick send gib zeig antwort sprich "
    "verrat "
    "erwähn empfiehl versprich veröffentlich übersetz starte stopp schließ öffne verschieb bestätig kontaktier buche "
    "kaufe bezahl teile plane zitier frag",
)

_FRENCH_WORK = r"(?:touch|modifi|chang|utilis|supprim|cass|ajout|pouss|install|renomm|dépass)"
FRENCH = Phrases(
    r"\b(?:jamais|toujours|doit|doivent|devez|dois|interdi\w*|au (?:plus|moins|maximum)|en aucun cas"
    rf"|{_only('seulement|uniquement', 'une?', 'est', 'était', 'sont')}|exclusivement|moins de (?=\d)|maximum (?=\d)"
    r"|pas plus (?:de|que)|(?:avant|d['’]ici) (?:le (?=\d)|(?=\d)|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|demain|fin)|obligatoire\w*|échéance|il faut|il ne faut (?:pas|jamais|rien|plus|surtout)|assure[- ](?:toi"
    r"|vous)|veille[zr]? à|tiens-toi à|je ne veux pas"
    rf"|{_limit('budget|plafond|limite|délai', 'est|de|à')}"
    rf"|sans {_FRENCH_WORK}(?:er|ier)|laisse[zr]? .{{1,40}} (?:tranquille|telles? quelles?|tels? quels?|intacte?s?))\b"
    rf"|{first('et', 'mais', 'surtout', 'plaît', 'plait')}\b(?:{_FRENCH_WORK}(?:e[zs]?|i?ez) (?:surtout )?(?:pas"
    rf"|jamais)"
    r"|utilise[zr]? \S{1,40}(?: \S{1,40})?,? (?:et )?(?:pas|non) [^\s,.;]{1,40}(?=\W*\Z)"
    rf"|n(?:e |['’])(?:\w+ )?\w[\w-]* .{{0,40}}?(?:pas|rien"
    rf"|que)"
    r"|(?:surtout )?pas d(?:e |['’])\w+|évite[zr]?|aucune? \w+|garde[zr]? \w+|respecte[zr]? \w+)\b",
    "jamais toujours doit doivent devez dois interdit au en pas plus seulement uniquement exclusivement moins maximum "
    "avant d obligatoire échéance budget plafond limite délai il assure veille tiens je sans laisse ne n surtout évite "
    "touche modifi change utilis supprim cass ajout pouss install renomm dépass "
    "aucun garde respecte",
)

_SPANISH_WORK = (
    r"(?:us|utili[cz]|despli?e(?:g|gu)|commite|pushe|fusion|to[cq]u?|cambi|modifi[cq]u?|borr|elimin|env[ií]"
    r"|agreg|agregu|añad|instal|sub|escrib|romp"
    r"|renombr|cre"
    r"|ejecut|hag|pong|sobrepas)"
)
_SPANISH_DEALS = (
    r"(?:(?:program|llam|mencion|habl|reserv|compr|pa(?:g|gu)|mand|muestr|pregunt|publi(?:c|qu)|reinici|acept|confirm"
    r"|contact|cancel|revel|cit|firm|contest|nombr)(?:es?|en|éis)"
    r"|(?:dig|respond|vend|compart|promet|traduzc|ofrezc|incluy|abr|muev|sugier|pid)(?:as?|an|áis))"
)
"""Forms that forbid; ``no responde`` and ``no llama`` tell how things are."""
SPANISH = Phrases(
    rf"\b(?:nunca|siempre|debe[ns]?|{_only('sólo|solo|solamente|únicamente', 'un|una', 'es', 'era', 'son')}|prohibid\w*"
    r"|(?:como )?máximo|al menos|no más de|menos de (?=\d)"
    rf"|(?<!olvid[ae] el )presupuesto|obligatori\w*|plazo|a más tardar|hay que"
    r"|tiene que|antes del? (?:(?=\d)|lunes|martes|miércoles|jueves|viernes|mañana)|(?:hasta|para) el (?:(?=\d)|lunes"
    r"|martes|miércoles|jueves|viernes|sábado|domingo)|en ningún caso|bajo ningún|asegúra(?:te|se)|no quiero|cíñete a"
    rf"|no (?:l[aeo]s? |me |te )?{_SPANISH_WORK}(?:e|a|es|as|é|en|an|éis|áis|ar|er|ir)|sin {_SPANISH_WORK}(?:ar|er|ir)"
    rf"|no puedes (?:l[aeo]s? )?{_SPANISH_WORK}(?:ar|er|ir)|no se (?:despliega|toca|usa|borra|sube|publica|modifica)n?"
    rf"|no (?:l[aeo]s? |me |te |se l[aeo]s? )?{_SPANISH_DEALS}|{_limit('límite|tope', 'es|son|de|en|a')}"
    rf"|no (?:puede |debe )?(?:supere?n?|superes|superar|exced\w+)"
    r"|dej[ae] .{1,40} (?:como está[ns]?|en paz|intact[ao]s?|tal cual))\b"
    rf"|{first('favor', 'y', 'pero')}\b(?:us[ae] \S{{1,40}}(?: \S{{1,40}})?,? (?:y )?no [^\s,.;]{{1,40}}(?=\W*\Z)"
    rf"|evit[ae]r?|nada de \w+"
    rf"|ningun[ao]? \w+|mantén \w+)\b",
    "usa use nunca siempre debe sólo solo solamente únicamente prohibido como máximo al no menos presupuesto "
    "obligatorio plazo "
    "límite tope a hay tiene antes hasta para en bajo asegúra cíñete sin deja deje evita evite nada ningun mantén",
)

_PORTUGUESE_WORK = (
    r"(?:us|utiliz|arredond|to(?:c|qu)|mex|alter|mud|modifi(?:c|qu)|apa(?:g|gu)|remov|delet|envi|instal|adicion"
    r"|cri|quebr|comit"
    r"|commit|renomei|renome)"
)
_PORTUGUESE_DEALS = (
    r"(?:(?:reinici|li(?:g|gu)|mencion|fal|reserv|compr|pa(?:g|gu)|mand|mostr|pergunt|publi(?:c|qu)|aceit|confirm"
    r"|contat"
    r"|cancel|revel|cit|assin|agend|mar(?:c|qu)|compartilh)(?:es?|em)"
    r"|(?:dig|respond|vend|promet|traduz|ofereç|inclu|abr|mov|sugir|peç|escrev)(?:as?|am))"
)
PORTUGUESE = Phrases(
    rf"\b(?:sempre|devem?|{_only('somente|apenas', 'um|uma', 'é', 'era', 'são')}|só (?:use|altere|mexa|responda)|use só"
    r"|proibid\w*|no máximo|máximo de (?=\d)|pelo menos"
    rf"|(?<!esque[cç][ae] o )orçamento|prazo|obrigatóri\w*|até (?:o|a|dia) \w+|até (?=\d)"
    r"|até (?:segunda|terça|quarta|quinta|sexta|amanhã)|antes d[eao] (?:(?=\d)|segunda|terça|quarta|quinta|sexta"
    r"|amanhã)|(?:menos|abaixo) de (?=\d)|tem (?:que|de)|certifique-se|em hipótese alguma|de jeito nenhum|não quero"
    rf"|não (?:[oa]s? |me |se |lhe )?{_PORTUGUESE_DEALS}|{_limit('limite|teto', 'é|são|de|em|a')}"
    rf"|não (?:podem? )?(?:mais|faça|ultrapass\w+|exced\w+|{_PORTUGUESE_WORK}(?:e|a|es|as|em|am|ar|er|ir))"
    r"|não faz (?:deploy|push|commit|merge|release)"
    rf"|sem {_PORTUGUESE_WORK}(?:ar|er|ir)|deix[ea] .{{1,40}} (?:como está|em paz|intact[ao]s?))\b"
    rf"|{first('favor', 'e', 'mas')}\b(?:us[ae] \S{{1,40}}(?: \S{{1,40}})?,? (?:e )?não [^\s,.;]{{1,40}}(?=\W*\Z)"
    rf"|evit[ae]r?|nada de \w+"
    rf"|nenhuma? \w+|mantenha \w+)\b",
    "sempre deve somente apenas só use proibid no máximo pelo orçamento prazo obrigatóri até antes menos abaixo "
    "limite teto tem certifique em de não sem deixe deixa evite evita nada nenhum mantenha",
)

_ITALIAN_WORK = (
    r"(?:us|utilizz|tocc|cambi|modific|cancell|elimin|aggiung|install|rinomin|romp|scriv|invi|rimuov|rimuover|crea|cre"
    r"|super|pusha|push)"
)
ITALIAN = Phrases(
    r"\b(?:non .{1,40}\bmai|(?<!\w )mai \w{1,20}(?:are|ere|ire)\b|dev(?:e|i|ono)|vietat[oaie]|al massimo"
    r"|massimo (?=\d)|almeno|meno di (?=\d)|esclusivamente"
    rf"|{_only('soltanto', 'un|una|uno', 'è', 'era', 'sono')}|bisogna|assicurati|attieniti a|non voglio|non fare"
    rf"|{_limit('budget|limite|tetto', 'è|sono|di|a')}"
    r"|scadenza|entro (?:il|le|la|domani|lunedì|martedì|mercoledì|giovedì"
    r"|venerdì|(?=\d))|prima d(?:i|el) (?:(?=\d)|lunedì"
    r"|martedì|mercoledì|giovedì|venerdì|domani)|in nessun caso|per nessun motivo"
    rf"|non (?:l[aeo] )?{_ITALIAN_WORK}(?:a|i|e|are|ere|ire|ate|ete)?|senza {_ITALIAN_WORK}(?:are|ere|ire|re)"
    rf"|non puoi (?:l[aeo] )?{_ITALIAN_WORK}(?:are|ere|ire|re)"
    r"|lascia(?:re|te)? .{1,40} (?:stare|così com['’]è|intatt[oaie]|in pace))\b"
    rf"|{first('favore', 'e', 'ma')}\b(?:usa(?:te)? \S{{1,40}}(?: \S{{1,40}})?,? (?:e )?non [^\s,.;]{{1,40}}(?=\W*\Z)"
    rf"|non (?:l[aeo] |gli "
    rf"|mi )?\w{{1,20}}(?:are|ere|ire)|evita(?:re|te)?"
    rf"|niente \w+|nessuna? \w+|mantieni \w+)\b",
    "usa usate mai non deve devi devono vietato al massimo almeno meno esclusivamente soltanto bisogna "
    "assicurati attieniti "
    "budget limite tetto scadenza entro prima in per senza lascia evita niente nessun mantieni",
)

_DUTCH_DEALS = (
    r"(?:noem|vermeld|bel|stuur|boek|koop|betaal|zeg|deel|toon|vraag|beloof|vertaal|herstart|start|sluit|open|antwoord"
    r"|publiceer|bevestig|annuleer|citeer|geef)"
)
_DUTCH_OF = _of_what("wat|waarom|hoe|waar|als|of|omdat", "(?:die|dat) niet")
DUTCH = Phrases(
    rf"\b(?:nooit|altijd|{_only('alleen|uitsluitend', 'een', 'is', 'was', 'zijn')}|hoogstens|minstens|maximaal"
    rf"|uiterlijk"
    r"|verboden|(?<!\bik )moet(?:en)?(?! ik\b)|mag (?:.{1,30} )?niet|mogen (?:.{1,30} )?niet|in geen geval"
    r"|onder geen beding|geen(?! (?:idee|probleem|zin|tijd|zorgen)\b)|niet (?:meer|langer|groter|later) dan"
    r"|minder dan (?=\d)|onder de (?=\d)|zonder .{1,40} te \w+|zorg (?:er ?voor )?dat|houd je aan|blijf (?:.{1,30} )?af"
    r"|(?:voor|vóór|tot) (?:(?=\d)|maandag|dinsdag|woensdag|donderdag|vrijdag|morgen)|(?<!\bik )(?:raak|wijzig|verander"
    r"|verwijder|gebruik|push|installeer|schrijf|commit|hernoem|pas) .{1,60} niet|laat .{1,40} (?:met rust|ongemoeid"
    r"|zoals (?:het is|ze zijn))"
    rf"|{_limit('budget|limiet|plafond', 'is|zijn|bedraagt|van|op')}"
    r")\b"
    rf"|{first('en', 'maar')}\b(?:{_DUTCH_DEALS} {_DUTCH_OF}niets?|niet \w+en|vermijd|houd \w+)\b",
    "nooit altijd alleen uitsluitend hoogstens minstens maximaal uiterlijk verboden moet mag mogen in onder geen niet "
    "minder zonder zorg houd blijf voor vóór tot raak wijzig verander verwijder gebruik push installeer schrijf commit "
    "hernoem pas laat vermijd budget limiet plafond noem vermeld bel stuur boek koop betaal zeg deel toon vraag beloof "
    "vertaal herstart start sluit open antwoord publiceer bevestig annuleer citeer geef",
)

_RUSSIAN_WORK = (
    r"(?:трога|меня|изменя|удаля|отправля|использу|добавля|лома|пуш|коммит|дела|пиш|созда|устанавлива|запуска"
    r"|переименовыва|обновля|публику|правь|правит)"
)
RUSSIAN = Phrases(
    r"\b(?:никогда|всегда|долж(?:ен|на|но|ны)|нельзя|только|исключительно|запрещ\w*|(?:не )?(?:более|менее) (?=\d)"
    r"|не (?:более|менее|больше|меньше|дольше|позже)|меньше (?=\d)|максимум|минимум|обязательно"
    r"|(?<!забудь про )(?<!забудь о )бюджет\w*"
    r"|лимит\w*(?: (?!был)[^\s,.;:=]{1,20})? ?[:—–-]? ?(?=\d)|срок\w*"
    r"|ни в коем случае|ни при каких|никаких|избегай\w*|убедись|придерживайся|не хочу|не превыша\w+"
    rf"|не {_RUSSIAN_WORK}(?:й|йте|и|ите|ь|ьте|ть)?|без (?:изменени\w+|нов\w+|сторонн\w+|внешн\w+)"
    r"|(?:до|к) (?:\d|понедельник|вторник|сред[ыеу]|четверг|пятниц|суббот|воскресен|завтра|конца)\w*"
    r"|оставь .{1,40} (?:в покое|как есть))\b"
    rf"|{first('и', 'но', 'пожалуйста')}\bне (?:трогая|(?!(?:мо|тво|сво|эт|он|одн|люд|\w{{1,12}}йт)и\b)"
    rf"\w{{2,20}}(?:[аяеу]й|йте|ите|ьте|(?<![лх])и))\b",
    "никогда всегда должен нельзя только исключительно запрещ не более менее меньше максимум минимум обязательно "
    "бюджет лимит срок ни никаких избегай убедись придерживайся без до к оставь",
)

_POLISH_DO = r"(?:\w{2,20}(?:[aui]j|yj)|pisz|rób|pytaj|sprawdź|uruchom|użyj|twórz|dzwoń|mów|róbcie|piszcie)(?:cie|my)?"
POLISH = Phrases(
    # An imperative is what is asked for: ``zawsze pada`` and ``nigdy nie działało`` tell how things are.
    rf"\b(?:nigdy (?:\w+ )?nie {_POLISH_DO}|zawsze (?:najpierw )?{_POLISH_DO}|{_POLISH_DO} (?:\w+ ){{0,3}}(?:zawsze"
    r"|wyłącznie|tylko)|muszą|(?<!\bnie )musi(?:my|sz|cie)?(?! (?:być|to być) (?:błąd|jakiś|coś|problem)\b)|nie wolno"
    r"|zabronion\w+"
    r"|trzeba(?! (?:było|by)\b)|pod żadnym pozorem|w żadnym wypadku|co (?:najmniej|najwyżej) (?=\d)|maksymalnie (?=\d)"
    r"|nie (?:więcej|dłużej|później) niż|nie może (?:przekraczać|przekroczyć|być większ\w+)|mniej niż (?=\d)"
    r"|upewnij się|trzymaj się|nie chcę (?:\w+ ){0,2}(?:nowych|żadnych|komentarzy|zmian)|bez (?:emoji|komentarzy"
    r"|nowych|zewnętrznych)|(?:do|przed) (?:poniedziałk|wtork|środ|czwartk|piątk|sobot|niedziel|jutr)\w{1,3}"
    rf"|{_limit('budżet|limit', 'to|wynosi|jest')}|zostaw .{{1,40}} (?:w spokoju|bez zmian|jak jest))\b"
    rf"|{first('proszę', 'i', 'ale')}\b(?:nie {_POLISH_DO}|unikaj \w+|żadnych (?!(?:błędów|problemów|wyników)\b)\w+)\b",
    "nigdy zawsze muszą musi nie zabronion trzeba pod w co maksymalnie mniej upewnij trzymaj bez do przed budżet limit "
    "zostaw unikaj żadnych używaj użyj odpowiadaj pisz zmieniaj edytuj",
)

KOREAN = Phrases(
    r"절대|반드시|항상|금지|최대|최소|까지|예산|(?:마감|기한|한도)[은는이가을를]? ?:? ?(?=\d)|만 (?:사용|써|쓰|수정|답)"
    r"|지 ?(?:마|말)(?:[세아고라십 .!]|$)"
    r"|(?:면|서는|선) 안 ?(?:돼|됩|된)|야 ?(?:해|합|한|돼|됩)|피해 ?주|이내|이하로|넘지|그대로 (?:두|둬|놔|유지)|유지해"
    r"|없이 (?:해|진행|작성|구현)|기 전에 먼저 (?:물어|확인|알려)[^.]{0,4}(?:주세요|줘)|[로에]만 (?:해|하|써|답)"
    r"|필수(?:입니다|예요|다)"
)
CHINESE = Phrases(
    r"预算(?=[是为：:上限]|不[能得要可超]|.{0,6}\d|.{0,4}[万千百])|(?:上限|限额|期限)(?=[是为：:改].{0,8}\d)|截止"
    r"|之前(?:完成|交|提交|给)"
    r"|(?:今天|明天|周[一二三四五六日天]|月底|\d[日号点])(?:之?前)|(?<!我)必须|(?<!我)一定要|(?<!要)不要"
    r"|(?<!能)(?<!我)(?<!我们)(?<!因为)不能(?!够)|不得|不[许許]|(?<!说)不[准準]|不可以|禁止|[严嚴]禁|[切请請]勿|千万"
    r"|[绝絕決决]不(?!是)"
    r"|[绝絕][对對]不(?!是)|只能|务必|(?<![业業事義医医任職勤服])務必(?!要)"
    r"|不可(?=修改|更改|改|删|使用|推送|提交|[触觸]|[动動]|碰|外[传傳]|泄|覆[盖蓋])|(?<![统統系器])不允[许許]"
    r""
    r"|(?:^|(?<=[，。；！,;你们們]))不(?:应该?+|應該?+|该|該)(?![是有会會出發发存超报報])"
    r"|每[个個次条條][^，。,]{1,12}都(?:必须|需要|要)(?:有|[写寫]|加|[带帶])"
    r"|(?:^|(?<=[，。；！,;请請]))保留(?:原|[现現]有|所有)|(?:^|(?<=[，。；！,;请請]))(?:[优優]先|一律)(?:使用|用"
    r"|采用|[选選])(?!了|过)"
    r"|只[许許]|只允[许許]|只使?用|只改|[仅僅](?:限|使?用|允[许許])|(?<!却)始终|永远不|(?<!以)确保|(?:^"
    r"|(?<=[。；请应要量]))避免|至少|最多|不超过"
    r"|少于\d|小于\d|低于\d|\d.{0,6}以内|保持.{1,20}不变|(?:[请請]|都|全部)用.{1,12}(?:回答|回[复覆])|之?前(?:都|要"
    r"|请)?先问我"
    r"|总是(?=使?用|先|请|要(?!么))|(?:提交信息|变量名|文档|日志|报告)(?:都|请|要|一律|统一)?(?:使用|用)(?:中|英|日)文(?!写的|的)"
    r"|(?:^|(?<=[，。；、！,;请但就]))别(?![的人处名墅扭说])"
)
JAPANESE = Phrases(
    r"予算|上限(?=[はを].{0,6}\d)|期限|締め切り|締切|までに|なければ(?:なら|いけ)|ならない|いけません|ちゃ(?:だめ"
    r"|ダメ|いけ)"
    r"|ては(?:いけ|だめ|ダメ|なら)|ないで(?:ください|下さい|ね|くれ|ほしい|欲しい|[。．｡！!]|$)|しないで"
    r"|(?:する|触る|使う|消す|変える)な(?:[。．｡！!]|$)|禁止|必ず|必須|のみ|決して|絶対|厳守|常に|避けて|以内|最大\d"
    r"|(?:使用|変更|追加)不可(?!能|にな|の状)|べきで[はも]?(?:ない|ありません)"
    r"|(?<!たい)[うくすつぬむるい]こと[。．｡！]?$|以下に|未満に|だけ(?:を|で)?(?:使|利用|変更|編集|修正|答|お願い)"
    r"|(?:変え|触ら|使わ|壊さ|変更せ|追加せ)ずに|そのままに|ないように(?:して(?!しま|い[たるま])|お願い|[。．｡！!]|$)"
    r"|納期(?=[はを].{0,8}\d)|は(?:日本語|英語)で(?:[。．｡！!]|$)"
    r"|(?:削除|変更|編集|修正|上書き|実行)する前に.{0,12}(?:確認して|聞いて|尋ねて|相談して)(?:ください|下さい|ね|[。．｡！!]|$)"
    r"|(?:互換性|形式|構成|構造|既存.{1,12}|現状)[をは]維持して(?:ください|下さい|ね|[。．｡！!]|$)"
)

_NOT_HINDI = r"(?<![\u0900-\u097f])(?:मत|न|ना|नहीं)(?![\u0900-\u097f])"
_TOLD_HINDI = r"(?!.{0,80}(?:[ािी]?त[ाीे]|रहा|रही|रहे|गया|गई) (?:है|हैं|हूँ|था|थी|थे))"
HINDI = Phrases(
    # An imperative behind its "not", at the end of a clause: what tells how things are ends in "is" or "was".
    r"(?<![\u0900-\u097f])(?:मत|न|ना) (?:[^\s।,.!?]{1,20} ){0,2}[^\s।,.!?]{0,19}(?:ें|एं|एँ|ए"
    r"|िए|िये|िएगा|ो|ओ|ना|ाना)(?=[।,.!]|\s*$)"
    rf"|(?<![\u0900-\u097f])(?:हमेशा|कभी भी(?! नहीं)|कभी (?=न |ना |मत )){_TOLD_HINDI}"
    r"|(?:केवल|सिर्फ|सिर्फ़)(?! (?:एक|इतना))(?=.{1,60}(?:ें|िए|िये|ना|ो|ओ)(?:[।,.!]|\s*$))"
    r"|(?<![\u0900-\u097f])(?:अवश्य|अनिवार्य|ज़रूरी है|जरूरी है|वर्जित|मना है|प्रतिबंधित"
    r"|अनुमति नहीं|किसी भी हालत में|बिना (?=.{1,40}(?:ए|े) ))"
    r"|(?:होना|होनी|होने|करना|रखना|रहना|चलना|देना|आना|जाना) चाहिए|नहीं .{1,30}चाहिए|(?:से"
    r"|से भी) (?:ज़्यादा|ज्यादा|अधिक) (?:न|नहीं|ना)(?![\u0900-\u097f])"
    r"|अधिकतम|ज़्यादा से ज़्यादा|ज्यादा से ज्यादा|कम से कम (?=\d)|(?:बजट|सीमा|समय सीमा) (?=.{0,12}\d)"
    r"|(?:सोमवार|मंगलवार|बुधवार|गुरुवार|शुक्रवार|शनिवार|रविवार|कल"
    r"|\d(?: [^\s।]{2,8})?) तक (?!.{0,60}(?:था|थी|थे|रहा है|रही है))"
)
_ARABIC_BEGINS = r"(?:(?<!\w )|(?<=\bو )|(?<=فضلك )|(?<=رجاء )|(?<=رجاءً )|(?<=لكن ))"
_ARABIC_WORK = r"(?:استخدم|استعمل|اكتب|اجعل|شغ[ّ]?ل|أجب|احفظ|تحقق|رد|قم|عد[ّ]?ل|غي[ّ]?ر|اختبر|أرسل|ضع|أضف|انشر|أبق|ابق)"
ARABIC = Phrases(
    rf"{_ARABIC_BEGINS}\bو?لا ت(?!عمل\b|وجد\b|ظهر\b|ستجيب\b|زال\b|كفي\b|فتح\b|قلق\b|نجح\b|تم\b|حدث\b|بدو\b)\w+"
    rf"|\bو?{_ARABIC_WORK} (?:.{{1,60}} )?(?:دائم\w*|فقط)|\bدائم[اً]+ و?{_ARABIC_WORK}\b"
    r"|\bيجب (?:ألا|عدم|أن (?!يكون (?:هناك|خطأ)|أذهب|أقول|أكون))|\b(?:ممنوع|ي[ُ]?منع|محظور"
    r"|ي[ُ]?حظر|إلزامي\w*|إجباري\w*|تجنب|تأكد"
    r"|بحد أقصى|كحد أقصى|الحد الأقصى|لا يزيد|لا تزيد|لا يتجاوز|لا تتجاوز|على الأقل"
    r"|لا أريد(?! أن أزعج)|لا نريد|مطلقا|تحت أي ظرف"
    r"|بأي حال|الموعد النهائي|الميزانية (?=.{0,12}\d)|أقل من (?=\d)|حافظ على|بدون (?:لمس"
    r"|تغيير|تعديل|استخدام|حذف|إضافة)"
    r"|دون (?:لمس|تغيير|تعديل|استخدام|حذف|إضافة|المساس)|اترك .{1,40} كما"
    r"|قبل (?:يوم )?(?:(?=\d)|الاثنين|الثلاثاء|الأربعاء"
    r"|الخميس|الجمعة|السبت|الأحد|الغد|نهاية))"
)

MANDATORY = Phrases(
    # What is asked for before something is done, what each of a kind needs, and what is mandatory.
    rf"{BEGINS}\b(?:ask|check with|consult|tell|warn) (?:me|us)(?: first)? before\b|{BEGINS}\bask before \w+ing\b"
    r"|\b(?:every|each) \w+ (?:\w+ )?needs (?:a|an|its)\b"
    r"|(?<!\bthey are )(?<!\bit is )(?:(?<=\bis )|(?<=\bare ))mandatory\b"
    r"|(?<=\bno )refunds?\b(?= (?:over|above|without)\b)"
    r"|\bnothing (?:is to|may) be \w+ed\b|\bnobody (?:\w+ ){0,3}may\b"
    r"|\bfrag(?:e|t)? (?:mich|uns|vorher|erst)\b.{0,20}\bbevor\b|\bjede[rs]? \w+ braucht eine?n?\b"
    r"|(?:(?<=\bist )|(?<=\bsind ))pflicht\b"
    r"|(?<!\w )(?:zahlen|beträge|preise|werte|texte|namen|daten|dateien|tests) nicht (?:runden|kürzen|ändern"
    r"|löschen|übersetzen|umbenennen|verschieben|anfassen)\b"
    r"|\b(?:demandez?[- ](?:moi|nous)) avant de\b|\b(?:pregúntame|preguntadme|consúltame) antes de\b"
    r"|\b(?:pergunte|pergunta-me|consulte-me)(?: me)? antes de\b|\bchiedimi prima di\b|\bvraag (?:het )?(?:me|mij"
    r"|ons) voor(?:dat)?\b"
    r"|(?:(?<=\bè )|(?<=\bsono ))obbligatori\w*|(?:(?<=\bis )|(?<=\bzijn ))verplicht\b|\bобязател(?:ен|ьна|ьно|ьны)\b"
    r"|\bспрос(?:и|ите) (?:меня|нас),? прежде\b|\bcada \w+ necesita una?\b",
    "please ask check consult tell warn every each mandatory refund nothing nobody frag frage jede jeder jedes "
    "pflicht zahlen beträge preise werte texte namen daten dateien tests demande "
    "demandez pregúntame preguntadme consúltame pergunte pergunta consulte chiedimi vraag obbligatori verplicht "
    "обязателен спроси cada",
)

RULES = (
    DEMANDS,
    MANDATORY,
    ASKED,
    ENGLISH,
    GERMAN,
    FRENCH,
    SPANISH,
    PORTUGUESE,
    ITALIAN,
    DUTCH,
    RUSSIAN,
    POLISH,
    KOREAN,
    CHINESE,
    JAPANESE,
    HINDI,
    ARABIC,
)

ASKS_WHY = (
    r"(?:(?:why|how come|warum|wieso|weshalb|pourquoi|por qu[eé]|perch[eé]|waarom|почему|зачем)"
    r"\b(?! (?:not|don['’]?t|nicht|ne pas|pas|no|não|non|niet|бы)\b)|为什么(?!不)|为何|なぜ|どうして|왜)"
)

ASKING = (
    r"\A\W*(?:(?:so|and|but|ok(?:ay)?|hm+|wait|well|then|und|aber|also|et|mais|alors|y|pero|e|mas|ma|en|maar|dus|а|и"
    rf"|но),? ){{0,2}}"
    rf"(?:{ASKS_WHY}|(?:(?:is|are|was|does|did) (?:it|this|that|there|they|we|the)|do you always|must i"
    r"|do(?: not|n?['’]?t) (?:we|they|you (?:think|have|know))|how (?:do|can) (?:i|we)|what does|was bedeutet"
    r"|wie kann ich)\b)"
)
"""A question why something is so, which many type without a question mark."""

_PARTICIPLE = (
    r"(?:noch |mehr |wirklich )?(?:\w{0,20}ge(?!(?:b|h|brauch|fährd|nehmig|stalt)en\b)\w{1,20}(?:t|en)"
    r"|(?:be|ver|er|ent|zer|über)\w{1,20}t|\w{1,20}iert|(?:bekomm|verstand|erhalt|erschien|verlor|vergess|entstand)en"
    r"|möglich|verfügbar|vorhanden|erreichbar)\b"
)
_WENT_DUTCH = (
    r"(?:(?:\w{2,4})?ge\w{1,20}(?:d|t|en)|(?:be|ver|ont|her)\w{1,20}[dt]|ontvangen|begrepen|verschenen|mogelijk"
    r"|beschikbaar)\b"
)

REPORTS = "|".join(
    (
        # English
        r"\b(?:always|never) (?:fails?|failed|crash(?:es|ed)|breaks|broke|hangs|hung|errors|times? out|happens|happened"
        r"|works|worked|finishe[sd]|arrive[sd]|appear(?:s|ed)|loads|loaded|came|shows up|responds|responded|missing"
        r"|empty|null|wrong|broken|slow|late|flaky|stuck|undefined|blank|the same)\b",
        r"\b(?!this\b|always\b)\w{3,20}s do(?: not|n['’]?t) (?:pass|work|match|compile|exist|load|fit|seem|help|respond"
        r"|run(?= (?:on|in|under|any|here|locally|at)\b|\W*\Z))\b",
        r"\bthere(?: is| are| was| were|['’]?s|['’]re) only\b"
        r"|\bit only (?:happens|occurs|fails|crashes|breaks|works|affects)\b"
        r"|\bonly (?:\w+ ){1,3}(?:failed|passed|crashed|broke|worked)\b"
        r"|\b(?:is|are) (?:still |currently )?only (?:implemented|attempted|showing|getting|half|partially)\b",
        r"\bmust be (?:angry|upset|furious|confused|frustrated|tired)\b|\bdo(?: not|n['’]?t) want to (?:bother|annoy"
        r"|disturb|complain|sound|rush)\b|\bdeadline (?:was (?:yesterday|last|intense|tight|missed|met)|has passed"
        r"|is over)\b|\bbudget was (?:cut|approved|rejected)(?! to\b| at\b)\b",
        r"\b(?:must be (?:kidding|joking|it\b)|never (?:replied|answered)|always a pleasure|only kidding)\b",
        # German
        r"\A\W*(?:bis (?:morgen|dann|bald)|do jutra|até amanhã|tot morgen|до завтра|hasta mañana)(?: dann)?\W*\Z"
        r"|\A\W*(?:kein plan|keine eile|nie gehört|nur noch eine frage|only one more (?:thing|question)"
        r"|nunca lo había visto"
        r"|siempre me pasa(?: esto| lo mismo)?|никогда такого не видела?|всегда пожалуйста|только что (?:упал[ао]?"
        r"|сломал\w+))"
        r"\W*\Z|\A\W*immer diese[rs]? \w+\W*\Z"
        r"|\A\W*(?:muss|darf|müssen|dürfen) (?:ich|wir|man|das|es)\b.*|\bich darf\b|\bkein ding\b"
        r"|\btoujours partante?\b|\bsiempre es un placer\b|(?:不要|别)客气|必ずしも",
        r"\b(?:immer (?:noch|wieder|leer|kaputt|falsch|null|langsamer|öfter|schlechter)|noch immer|wie immer)\b"
        r"|\b(?:schlägt|schlagen|stürzt|bricht|hängt|crasht|klappt|funktioniert|passiert|wirft|bekomme|kriege) "
        r"(?:.{1,30} )?(?:immer|nie)\b",
        r"(?:(?<!\w )|(?<=\b(?:gab|hab|hat|ist|war) )|(?<=\b(?:aber|gibt|noch|habe) ))keine? (?:antwort|fehler"
        r"|fehlermeldung(?:en)?|reaktion|rückmeldung|unterschied|treffer|ergebnisse?|verbindung(?= zu| mit|\W*\Z)|panik"
        r"|stress|sorge|wunder)\b(?! (?:ohne|auf|über|mit|länger|an|(?:geb|schreib|send|schick|ignorier|unterdrück)\w*)"
        r"\b)",
        r"\b(?:frage|antwort|teile|start|push|plane?|starte|commit|änderung|sende?|buche) (?:.{1,40} )?nichts? "
        rf"{_PARTICIPLE}(?=\W*\Z|,)|\b(?:antwort|frage|push|plane?|start) (?:ist|sind|war|waren|hat|haben|wurde|wird"
        r"|kam|kommt|ging|geht|lief|läuft|konnte|kann|klappt) (?:.{1,40} )?nichts?\b",
        r"(?<!\w )nicht alle (?:\w+ )?(?:laufen|bestehen|funktionieren|gehen|klappen|sind|waren|haben|wurden)\b"
        rf"|(?<!\w )nicht {_PARTICIPLE}(?=\W*\Z|,)|\b(?:mach|schreib|nutz|nehm|verwend|benutz)e? ich\b.{{0,60}}?"
        r"\bnichts?\b|\bda muss (?:\w+ )?(?:irgend\w+|was|etwas|ein\w*) |\bmuss (?:.{1,40} )?(?:geblieben|gewesen"
        r"|passiert|schiefgegangen) sein\b",
        # French
        r"\btoujours (?:pas|rien|en panne|vide|cassée?|le même|la même|une erreur|des erreurs)\b|\b(?:plante|plantent"
        r"|échoue|échouent|bloque|il y a|j['’]ai) toujours\b|\bje (?:ne )?dois\b"
        r"|\b(?:pas d(?:e |['’])|aucune? )(?:réponse|souci|problème|erreur|résultat|panique|chance|différence|idée)s?\b"
        r"(?! (?:sans|en|de)\b)|\bpas de nouvelles(?= du|\W*\Z)",
        r"\bn['’](?:ai|as|a|avons|avez|ont|est|était|arrive) (?:\w+ )?(?:pas|rien)\b|\bne (?:marche|fonctionne|répond"
        r"|passe|démarre|compile|charge|trouve|tourne|suffit|sert|sais|comprends|vois)(?:nt)? (?:\w+ )?"
        r"(?:pas|plus|rien)\b|\bça doit (?:venir|être)\b|\bdoit (?:venir d|y avoir|être dû\b)",
        # Spanish, Portuguese, Italian
        r"\bsiempre (?:fallan?|se (?:cae|cuelga|rompe)n?|dan? error|lo mismo|igual|vacío)\b|\b(?:fallan?|se (?:cae"
        r"|cuelga)n?|dan? error) siempre\b|\bnunca (?:lleg[aó]|funcion[aó]|termin[aó]|respond(?:e|ió)|arranc[aó]"
        r"|carg[aó])\b|\bning(?:ún|una) (?:problema|error|respuesta|resultado|diferencia|idea|duda)\b(?! (?:sin|en)\b)"
        r"|\bdeben? de (?:ser|haber|estar)\b|\bdebe (?:ser un (?:error|fallo|problema|bug)|haber una?)\b",
        r"\bsempre (?:falham?|dá erro|cai|trava|quebra|vazio|o mesmo|igual)\b|\b(?:falham?|cai|trava) sempre\b"
        r"|\bnunca (?:cheg(?:a|ou)|funcion(?:a|ou)|termin(?:a|ou)|respond(?:e|eu))\b|\bnenhuma? (?:problema|erro"
        r"|resposta|resultado|diferença|ideia|dúvida)\b(?! (?:sem|em)\b)"
        r"|\bdeve (?:ser um (?:erro|problema|bug)|haver uma?)\b",
        r"\bnessuna? (?:problema|errore|risposta|risultato|differenza|idea|dubbio)\b(?! (?:senza|in)\b)"
        r"|\bniente (?:paura|male|panico)\b|\bdeve (?:essere (?:un (?:errore|problema|bug)|stat[oa])|esserci)\b"
        r"|\bfallisce sempre\b"
        r"|\bnon (?:è|ho|ha|hanno|funziona|arriva|parte|va) (?:.{1,20} )?mai\b"
        r"|\b(?:il|lo|la) (?:server|servizio|programma|app|sistema|sito) non (?!dev|può)\w+\b",
        # Dutch
        r"\b(?:nog altijd|altijd (?:nog|leeg|fout|hetzelfde|stuk))\b|\b(?:faalt|crasht|werkt|mislukt) (?:.{1,20} )?"
        r"(?:altijd|nooit)\b|\bgeen (?:antwoord|fout(?:en|melding)?|verschil|reactie|resultaat|resultaten|verbinding"
        r"|paniek)\b(?! (?:zonder|in|negeren)\b)",
        rf"(?:\b(?:vraag|antwoord|push|commit|start) (?:.{{1,40}} )?|(?<!\w ))niet {_WENT_DUTCH}(?=\W*\Z|,)"
        r"|\b(?:push|commit|start) (?:is|was|werkt|gaat|lukt) (?:.{1,30} )?niet\b",
        # Russian
        r"\bникаких (?:проблем|ошибок|вопросов|новостей|результатов)\b|\bвсегда (?:пада[ею]т|лома[ею]тся|зависа[ею]т"
        r"|выда[ёе]т|одно и то же|пуст\w*)\b|\b(?:пада[ею]т|зависа[ею]т|лома[ею]тся) всегда\b|\bникогда не"
        r" (?:работал|запускал|приходил|доходил|был)\w*|\bдолжно быть,|\bдолж(?:ен|на|но|ны) быть"
        r" (?:где-то|как(?:ая|ой)-то|баг)\b",
        # Chinese, Japanese, Korean
        r"始终(?:报错|失败|为空|是空|没有|无法|不对|显示)|(?:^|(?<=我))不要紧|不能(?:用|访问|登录|连接|上网|播放|下载"
        r"|上传|打印|保存)了"
        r"|(?<![你您们请])不能(?:正常)?(?:运行|工作|启动|打开|加载|显示)了?(?=[。．｡！!，,；;]|$)",
        r"(?:常に|必ず|絶対に?).{0,12}(?:エラーにな[るり]|エラーが出る?|失敗(?:する|し)|落ちる?|止ま[るり]"
        r"|おかしい)(?:ました|ます|です)?(?=[。．｡！!]|$)"
        r"|항상.{0,12}(?:실패|오류가|에러가|죽어|죽습|멈)|절대 안 (?:바뀌|나오|열|움직|켜)",
    )
)
"""How things are, in the words that rules are made of: ``the export never arrived``, ``keine Antwort vom Server``. What
is left of a sentence without it may still set a rule.
"""

FORBIDS = Phrases(
    r"\b(?:not|never|no|nor|nothing|without|avoid|cannot|dont|\w{2,6}n['’]t|forbidden|prohibited|off[ -]limits"
    r"|hands off|refrain|stay (?:out|away)|leave|alone|untouched|unchanged|nicht|nichts|nie(?:mals)?|kein\w*|ohne"
    r"|vermeide\w*|verboten|finger weg|unverändert|ne|pas|rien|jamais|aucune?|sans|évite[zr]?|interdit\w*|laisse[zr]?"
    r"|nunca|nada|ning[uú]n\w*|sin|evit\w+|prohibid\w*|dej[ae]|não|nenhum\w*|sem|proibid\w*|deix[ea]|non|mai|niente"
    r"|nessun\w*|senza|vietat\w*|lascia\w*|niet|niets|nooit|geen|zonder|vermijd|verboden|nigdy|bez|żadnych|unikaj"
    r"|zabronion\w+|не|ни|никогда|нельзя|никаких"
    r"|без|запрещ\w*|избегай\w*|оставь)\b|\bn['’]|[不别別勿禁避]|ない|ません|ずに|[うくすつぬむるいえ]な[。．｡！!]"
    rf"|지 ?(?:마|말)|\b안 |금지|피해|{_NOT_HINDI}|बिना|वर्जित|मना है|\bو?(?:لا|ألا|عدم|ممنوع|بدون|دون"
    rf"|محظور|تجنب)\b|\bي[ُ]?(?:منع|حظر)"
)
"""What must not be done. Two of these that name different things hold side by side, where of two limits the later one
does."""

DAYS = re.compile(
    r"mon|tues?|wed|thu(?:rs)?|fri|sat|sun|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:jan|febr)uary|march|april|may|june|july|august|september|october"
    r"|november|december|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|(?:jan|febr)uar|märz|mai|juni|juli"
    r"|oktober|dezember",
    re.IGNORECASE,
)
"""Days and months in languages that begin them with a capital. They change as figures do, and name no thing."""
