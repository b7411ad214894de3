"""How it is said that something holds from now on, each time or by liking, and in which language to answer.

What belongs here: regular expressions over one sentence, by language, of standing instructions without a word that
demands or forbids. What does not: those words (``rule_words``), and what becomes of a rule (``rules``).

``Fix the parser`` is done once and no rule, ``from now on run the parser's tests`` stands. So ``each`` counts beside
what happens again and again (``after every commit, run the linter``), not beside the parts of one task (``add a
docstring to each function``), and only where the sentence asks for something: ``after each deploy it crashes`` reports.
"""

from __future__ import annotations

from contextfold.summary.rule_words import Phrases, first

ENDS = r"(?=\W*\Z|[.,;!])"
"""The end of a clause."""

_ENGLISH_DO = (
    r"(?:run|rerun|execute|test|format|lint|update|ask|tell|check|commit|push|build|write|add|use|reply|answer"
    r"|respond"
    r"|report|show|explain|confirm|verify|review|save|log|document|send|give|list|include|quote|cite|mention|call|put"
    r"|mark|start|end|begin|finish|stop|create|make|wait|summari[sz]e|keep|bump|post|print|return|say|read|attach"
    r"|sign)"
)
_ENGLISH_EVENT = (
    r"(?:changes?|commits?|steps?|edits?|merges?|push|tasks?|messages?|repl(?:y|ies)|answers?|responses?|turns?"
    r"|release"
    r"|deploy(?:ment)?s?|runs?|refactor\w*|session|requests?|updates?|pull requests?|prs?|call)"
)
_ENGLISH_EACH = (
    rf"(?:after|before|with|on|in|for|at (?:the )?(?:start|end) of) (?:each|every) (?:\w+ )?{_ENGLISH_EVENT}\b"
    r"(?! (?:in|of|from) (?:this|that|these|those|the (?:list|table|file|range|diff|log|history))\b)"
)
"""``for each change in the list`` goes through the parts of one task."""
_ENGLISH_TONGUE = (
    r"(?:(?:plain|simple|british|american|us|uk|formal|traditional|simplified|brazilian|european) )*(?:english|german"
    r"|french|spanish|italian|portuguese|dutch|russian|chinese|mandarin|cantonese|japanese|korean|hindi|arabic"
    r"|turkish"
    r"|polish|ukrainian|vietnamese|swedish|danish|norwegian|finnish|czech|greek|hebrew|romanian|hungarian|thai)"
)
ENGLISH_BEGINS = first("please", "and", "but", "also", "so", "always", "then", "now")
_ENGLISH_HOLDS = (
    r"(?:from now on|from here on(?: out)?|from this point (?:on|onwards?|forward)|going forward|henceforth)"
)

_ENGLISH_REPLY = (
    rf"(?:{ENGLISH_BEGINS}|(?<=\bnow on )|(?<=\bhere on )|(?<=\byou can )|(?<=\blet['’]s ))\b(?:(?:reply|respond"
    rf"|answer|speak|talk|communicate|write)(?: (?:back|(?:to |with )?(?:me|us)|everything|all (?:answers"
    rf"|replies)))* (?:in )?|(?:(?:switch|go|change)(?: back)?|back) to ){_ENGLISH_TONGUE}\b"
    r"(?! (?!(?:and|with|please|again|now|for|only|from|in|but|so|or|when|if|unless|to|as|until|while)\b)\w)"
)
"""``go back to French``, and not ``go back to French fries``."""
ENGLISH = Phrases(
    rf"(?<!\w )(?:in (?:the )?future|moving forward|as of now|for the rest of (?:this|the|our) (?:session"
    rf"|conversation"
    rf"|chat|project)),? (?:please )?(?:always )?{_ENGLISH_DO}\b(?! of\b)|\b{_ENGLISH_HOLDS}\b(?! (?:is|was|seems"
    rf"|it (?:works?|worked|fails?|failed|crashe[sd])|i(?:['’]ll| will| am|['’]m))\b)|{_ENGLISH_REPLY}"
    rf"|{ENGLISH_BEGINS}\bwrite (?:(?:all|your|the|code|commit) )*(?:comments|messages"
    rf"|docstrings|docs|names) in {_ENGLISH_TONGUE}\b|\buse (?:british|american|us|uk) (?:english|spelling)\b"
    r"|\bi(?:['’]d| would| do)?(?: (?:strongly|really|also|generally|usually|still|definitely|much"
    r"|personally))* prefer\b(?! (?:the )?(?:(?:first|second|third|last|former|latter|other)"
    r" (?:one|option|choice|version|approach|variant|solution|idea)|option \w{1,2}|th(?:is|at) one)\b)|\bi(?: want"
    r"| need|['’]d like| would like) you to (?:always|ask|check with|tell|wait)\b"
    r"|\bi(?:['’]d| would)(?: (?:really|much|still))* rather (?:you|we|it|not (?!say\b))\b|\bmy preferences? (?:is"
    rf"|are)\b|{ENGLISH_BEGINS}\b(?:prefer \w|stop (?:us|add|mak|writ|send|ask|chang|edit|renam|touch|delet|commit"
    rf"|push|call|apologiz)ing\b|treat (?!(?:it|this|that|them|these|those)\b)\w+ as \w|follow (?!th(?:is|at|ese"
    r"|ose)\b)(?:\w+ ){0,4}(?:conventions?|guidelines?|standards?|style ?guides?|styles?"
    r"|pep[ -]?\d+)\b)|(?<!\w )\ball (?:code )?(?:timestamps?|times|dates|amounts|prices|units|measurements|comments"
    r"|answers|replies|docs)(?: (?:go|stay|are|be))? (?:in|as) (?!(?:the|an?|my|our|this|that|it|one|place"
    r"|sync)\b)[\w-]+(?: [\w-]+)?(?=[.,;!]|\W*\Z)|\bi(?:['’]m| am) (?:\w+ )?(?:allergic to|vegetarian|vegan|lactose"
    r"|gluten|colou?r[- ]?blind)\b",
    "in moving as for from going henceforth reply respond answer speak talk communicate write switch go change "
    "back use i my prefer stop treat follow all",
)
_ENGLISH_ALTER = r"(?:change|modify|edit|touch|alter|rename|commit|push|refactor)"
ENGLISH_EACH_TIME = Phrases(
    rf"{ENGLISH_BEGINS}\b{_ENGLISH_DO}\b[^.!?]{{1,80}}\b(?:{_ENGLISH_EACH}|(?:whenever|every ?time|each time) (?:you"
    rf"(?! are ready| like\b| want\b)|we|i (?:ask|say|tell))\b|when you {_ENGLISH_ALTER} (?!(?:it|this|that|them)\b)\w"
    r"|before (?:you )?(?:commit(?:ting)?|push(?:ing)?|merg(?:e|ing)|releas(?:e|ing)|deploy(?:ing)?)\b"
    rf"(?! (?:it|this|that|them|these|those|the)\b))|\b(?:{_ENGLISH_EACH},?|(?:whenever|every ?time"
    rf"|each time) [^.!?]{{1,80}},"
    r"|before (?:you )?(?:commit|push|merg|releas|deploy|delet)(?:e|t)?(?:ing)?\b[^.!?]{0,40},)"
    rf" (?:then |please )*{_ENGLISH_DO}\b",
    "run rerun execute test format lint update ask tell check commit push build write add use reply answer respond "
    "report show explain confirm verify review save log document send give list include quote cite mention call put "
    "mark start end begin finish stop create make wait summarize keep bump post print return say read attach sign "
    "after before with on in for at whenever every each",
)

_ENGLISH_ACT = (
    rf"(?:{_ENGLISH_DO}|fix|kill|escalate|rebase|rebuild|regenerate|dump|tick|follow|refuse|reject|apologi[sz]e|offer"
    r"|skip|retry|revert|abort|pause|notify|inform|alert|redirect|refer|transfer|assume|move|rename|remove|delete"
    r"|convert|redact|mask|translate|restart|validate|handle|raise|throw|pick|choose|let (?:me|us) know|record"
    r"|fall back"
    r"|default to)\b"
)
_ENGLISH_SOME = r"(?:an?|any|another|each|every|some(?:thing|one|body|where)?|any(?:thing|one|body))\b(?! of\b)"
_ENGLISH_KIND = r"(?!(?:it|this|that|these|those|them|the|my|our|all|both|everything)\b)"
_ENGLISH_MAKE = r"(?:add|create|write|need|introduce|open|find|see|hit|fix|remove|delete|install|use|encounter|upgrade)"
_ENGLISH_ALTERING = (
    r"(?:chang|modify|edit|touch|alter|renam|committ|push|refactor|add|creat|writ|install|delet|remov|runn)ing"
)
_ENGLISH_DOUBT = (
    r"(?:when(?:ever)?|if) (?:(?:you(?:['’]re| are) |you (?:feel|get) )?(?:ever )?(?:in (?:any )?doubt|unsure"
    r"|not (?:sure|certain)|uncertain|stuck)\b|(?:some|any)thing (?:is|seems|looks) (?:unclear|ambiguous|off|odd"
    r"|missing)\b)"
)
_ENGLISH_WHERE = rf"(?<![\"“„«]){ENGLISH_BEGINS}\b"
"""Not quoted: the words of another text."""
ENGLISH_CONDITION = Phrases(
    rf"{_ENGLISH_WHERE}(?:(?:when(?:ever)?|if|before|after|once) (?:you (?:{_ENGLISH_ALTER} (?!(?:it|this|that|them)\b)"
    rf"|{_ENGLISH_MAKE} {_ENGLISH_KIND})|{_ENGLISH_SOME}|{_ENGLISH_ALTERING} {_ENGLISH_KIND}"
    rf"|committing\b|pushing\b)|{_ENGLISH_DOUBT})(?:[^.!?,]|\.(?=\w)){{0,80}}, ?"
    rf"(?:(?:then|please|also|always|first|just|stop and) )*{_ENGLISH_ACT}(?! of\b)"
    rf"|{_ENGLISH_WHERE}{_ENGLISH_DOUBT},? (?:(?:then|please|first|just) )*(?:ask|check|stop)\b"
    rf"|{_ENGLISH_WHERE}(?:ask|tell)(?: (?:me|us))?(?: first)?,? {_ENGLISH_DOUBT}"
    rf"|{_ENGLISH_WHERE}when(?:ever)? {_ENGLISH_ALTERING} {_ENGLISH_KIND}(?:\w+ ){{1,3}}(?:always )?"
    rf"(?:use|run|add|keep|follow|write)\b"
    rf"|{_ENGLISH_WHERE}when(?:ever)? you {_ENGLISH_ALTER} (?:an?|any|the) (?:\w+ ){{1,3}}(?:also|please|always) "
    rf"{_ENGLISH_ACT}",
    "when if before after once ask tell",
)
"""What an agent does again and again, what may happen more than once, and doubt: neither what is done once (``when you
are done``, ``if it fails``) nor what happened.
"""

_GERMAN_DO = (
    r"(?:führe?|lass|prüfe?|teste?|starte?|mache?|schreibe?|aktualisiere?|frage?|sage?|zeige?|bestätige?|formatiere?"
    r"|nenne?|gib|baue?|committe?|erkläre?|fasse?|warte|antworte)"
)
_GERMAN_EACH = (
    r"(?:nach|vor|bei|mit|in|zu|am (?:ende|anfang)) jede[rmns]? (?:\w+ )?(?:\w{0,20}änderung|commit|schritt|push"
    r"|merge|antwort|nachricht|deployment|release|durchlauf|aufgabe|anfrage)s?"
)
_GERMAN_TONGUE = (
    r"(?:deutsch|englisch|französisch|spanisch|italienisch|portugiesisch|niederländisch|russisch|chinesisch"
    r"|japanisch)"
)
_GERMAN_REPLY = (
    rf"{first('bitte', 'und', 'aber', 'jetzt', 'sofort')}\b(?:(?:antworte?|schreibe?|sprich|rede|kommentiere?"
    rf"|erkläre?)"
    r"(?: (?:mir|uns|mit (?:mir|uns)|bitte|alles|nur|wieder|immer|jetzt|nun|künftig))* (?:auf|in) (?:einfachem )?"
    r"|(?:wechs(?:le|el)|zurück"
    r"|geh)"
    r"(?: (?:bitte|wieder|zurück))* (?:zu|auf|ins) )(?:deutsch|\w{4,15}isch|hindi)\b"
    rf"|{first('bitte', 'und', 'aber', 'jetzt')}\bauf {_GERMAN_TONGUE} (?:antworten|weiter)\b"
)
GERMAN = Phrases(
    rf"(?<!\w )\b(?:schreibe?|verfasse?) (?:(?:bitte|alle|deine|die) )*(?:kommentare|commits?|commit-nachrichten|doku"
    rf"|docstrings) (?:bitte )?auf {_GERMAN_TONGUE}\b{ENDS}|(?<!\w )\b(?:alle )?(?:kommentare|commits"
    rf"|commit-nachrichten) (?:bitte )?(?:immer )?auf {_GERMAN_TONGUE}\b{ENDS}"
    r"|(?<!\w )\bab heute\b(?! (?:geht|läuft|funktioniert|ist|bin|habe|gibt)\b)|(?<!\w )\b(?:künftig"
    r"|zukünftig) (?:verwenden|nutzen|nehmen|schreiben|benutzen) wir\b"
    rf"|(?<!\w )\b{_GERMAN_EACH},? (?:bitte )?(?:(?:erst|immer|die tests|den linter) )*(?:committen|pushen|testen"
    rf"|prüfen|fragen|(?:laufen lassen|ausführen))\b(?! (?:wir|ich)\b)|\bam liebsten (?:sind|ist|hätte ich"
    rf"|habe ich)\b"
    r"|\b(?:ab (?:jetzt|sofort)(?! (?:geht|läuft|funktioniert|verfügbar|ist)\b)|von (?:jetzt|nun) an"
    rf"|von hier an(?! (?:sind|wird)\b))\b|{first('bitte', 'und', 'aber')}\b(?:künftig|in zukunft"
    rf"|zukünftig),? (?:bitte"
    rf"|{_GERMAN_DO}|verwende|nutze?|benutze?)\b"
    rf"|{first('bitte', 'und', 'aber')}\b{_GERMAN_DO}\b[^.!?]{{1,80}}\b(?:{_GERMAN_EACH}|jedes mal)\b"
    rf"|\b(?:{_GERMAN_EACH},?|jedes mal,? (?:wenn|bevor|nachdem) [^.!?]{{1,60}},) (?:bitte )?{_GERMAN_DO}\b(?! (?:ich"
    rf"|wir)\b)|{_GERMAN_REPLY}"
    r"|\b(?:ich (?:bevorzuge|(?:hätte|habe|mag|möchte) (?:.{1,20} )?lieber)|mir (?:ist|wäre|sind"
    r"|wären) (?:.{1,30} )?lieber)\b|\bich bin (?:\w+ )?(?:allergisch|vegetarier(?:in)?|veganer(?:in)?)\b",
    "alle kommentare commits künftig zukünftig schreibe verfasse auf am ab wechsle wechsel zurück geh von "
    "künftig in zukünftig führ lass prüf test start mach schreib aktual frag sag "
    "zeig bestät format nenn gib bau commit erklär fass warte antwort nach vor bei mit zu am jedes sprich rede komment "
    "ich mir",
)

_FRENCH_DO = (
    r"(?:lance[zr]?|exécute[zr]?|teste[zr]?|vérifie[zr]?|mets|mettez|demande[zr]?|écris|écrivez|affiche[zr]?|dis"
    r"|dites"
    r"|montre[zr]?|confirme[zr]?|fais|faites|ajoute[zr]?|donne[zr]?|utilise[zr]?|réponds|répondez|explique[zr]?)"
)
_FRENCH_EACH = (
    r"(?:après|avant|à|pour|dans|avec) chaque (?:modification|commit|étape|changement|réponse|message|push|fusion"
    r"|déploiement|tâche|demande)\b(?! (?:de (?:la|cette)|du|dans)\b)"
)
_FRENCH_REPLY = (
    rf"(?:\b(?:merci de (?:me |nous )?répondre|(?:je (?:veux|voudrais)|j['’]aimerais) que (?:tu|vous) (?:me |nous )?"
    rf"répond(?:es|iez)) en |{first('et', 'mais', 'plaît', 'plait', 'désormais', 'maintenant')}\b(?:(?:réponds?"
    rf"|répondez|écris|écrivez|parle[zr]?|explique[zr]?|commente[zr]?)(?:[- ](?:moi|nous|tout|toujours|maintenant"
    rf"|uniquement|avec (?:moi|nous)))* en |(?:reviens|revenez|re?passe[zr]?) (?:au |en |à l['’])))"
    rf"(?:français|anglais|allemand|espagnol"
    rf"|italien|portugais|néerlandais|russe|chinois|japonais|coréen|arabe|hindi)\b"
)
FRENCH = Phrases(
    rf"(?<!\w )\b(?:à l['’]avenir|dès maintenant|pour la suite),? {_FRENCH_DO}\b"
    r"|(?<!\w )\b(?:(?:écris|écrivez|mets|mettez) )?(?:tous )?(?:(?:les|tes|vos) )?(?:commentaires"
    rf"|commits) (?:sont )?en (?:français|anglais|allemand|espagnol)\b{ENDS}|(?<!\w )\bcommente[zr]? (?:le |ton "
    rf"|votre )?code en (?:français|anglais)\b|\b(?:j['’]aime(?:rais)? mieux|ma préférence (?:va|est))\b"
    r"|\b(?:désormais|dorénavant|à partir de maintenant|à partir d['’]aujourd['’]hui)\b(?!,? (?:disponible|impossible"
    rf"|possible|ça devrait|(?:ça|cela|tout|l[ea] \w{{1,20}}) (?:marche|fonctionne|répond))\b)"
    rf"|{first('et', 'mais', 'plaît', 'plait')}\b{_FRENCH_DO}\b[^.!?]{{1,80}}\b(?:{_FRENCH_EACH}"
    rf"|chaque fois)\b|\b(?:{_FRENCH_EACH},?|(?:à )?chaque fois que? [^.!?]{{1,60}},) {_FRENCH_DO}\b|{_FRENCH_REPLY}"
    r"|\b(?:je préf[éè]re(?:rais)?(?! la (?:première|deuxième|seconde|dernière)\b)|j['’]aimerais mieux"
    r"|je suis (?:\w+ )?(?:allergique|végétarien(?:ne)?|végane?))\b",
    "merci dès pour tous les tes vos commentaires commits commente ma désormais reviens revenez repasse passe "
    "dorénavant à lance exécute teste vérifie mets mettez demande écris écrivez affiche dis dites montre confirme fais "
    "faites ajoute donne utilise réponds répondez explique après avant pour dans avec chaque parle commente je j",
)

_SPANISH_DO = (
    r"(?:ejecut[ae]|verifi(?:ca|que)|comprueb[ae]|actuali(?:za|ce)|pregunt(?:a|e|ame)|pregúntame|dime|avísame"
    r"|muéstrame"
    r"|confirm[ae]|escrib[ae]|corr[ae]|haz|haga|añad[ae]|agreg(?:a|ue)|usa|use|explica|explique)"
)
"""No verb that as often tells what a program does, here and in the next two: ``muestra`` asks and reports."""
_SPANISH_EACH = (
    r"(?:después de|tras|antes de|en|con|a|al final de) cada (?:cambio|commit|paso|modificación|respuesta|mensaje"
    r"|push|fusión|despliegue|tarea|petición)"
)
_SPANISH_REPLY = (
    rf"(?:\bquiero que (?:me )?(?:respondas|contestes|hables) en |(?<!\w )\b(?:contéstame|háblame) en "
    rf"|{first('favor', 'y', 'pero', 'adelante', 'ahora')}\b(?:(?:(?:responde|contesta|escribe|habla|explica"
    rf"|comenta)(?:me|nos|les)?|responda|conteste|escriba|hable|explique)"
    rf"(?: (?:todo|siempre|ahora|solo|sólo|conmigo))* en "
    rf"|(?:vuelv[ea]|cambi[ae]|pas[ae]) al ))(?:español|castellano|inglés|alemán|francés|italiano|portugués|ruso"
    rf"|chino"
    rf"|japonés|coreano|árabe)\b"
)
SPANISH = Phrases(
    rf"(?<!\w )\b(?:en adelante|de hoy en adelante|desde hoy|en el futuro),? (?:por favor )?{_SPANISH_DO}\b"
    r"|(?<!\w )\b(?:escrib[ae] )?(?:(?:todos )?(?:los|tus) )?(?:comentarios|commits) (?:van )?en (?:inglés|español)\b"
    rf"{ENDS}|\bme gustan? más\b(?! (?:la|el) (?:primer|segund|últim))|\bmi preferencia es\b|\bsoy (?:celíac[oa]"
    r"|intolerante)\b|(?<!\w )\bsig(?:ue|a) (?:\w+ ){0,3}(?:pep[ -]?\d|guía de estilo|convenciones)"
    r"|\b(?:(?:desde|de) ahora en adelante|a partir de (?:ahora|hoy)|de aquí en adelante|desde ahora"
    r"|en lo sucesivo)\b"
    r"(?!,? (?:todo |ya |esto )?(?:funciona|va bien|anda)\b)"
    rf"|{first('favor', 'y', 'pero')}\b{_SPANISH_DO}\b[^.!?]{{1,80}}\b(?:{_SPANISH_EACH}|cada vez)\b"
    rf"|\b(?:{_SPANISH_EACH},?|cada vez que [^.!?]{{1,60}},) {_SPANISH_DO}\b|{_SPANISH_REPLY}"
    r"|\b(?:prefiero(?! la (?:primera|segunda|última)\b)|preferiría|soy (?:\w+ )?(?:alérgic[oa]|vegetarian[oa]"
    r"|vegan[oa]))\b",
    "quiero háblame escribe todos los tus comentarios commits me mi sigue siga desde vuelv cambi pas de a en al "
    "ejecuta corre prueba comprueba verific actualiza pregunta dime avísame muestra "
    "muéstrame confirma escribe haz haga añade agrega usa use utiliza responde explica después tras antes con cada "
    "contesta habla comenta hable prefiero preferiría soy",
)

_PORTUGUESE_DO = (
    r"(?:execut[ae]|rode|teste|verifi(?:ca|que)|atualiz[ae]|pergunt[ae]|diga|avise|mostre|confirm[ae]|escreva|faça"
    r"|adicion[ae]|us[ae]|utilize|responda|explique)"
)
_PORTUGUESE_EACH = (
    r"(?:após|depois de|antes de|em|com|a|ao final de) cada (?:mudança|alteração|commit|passo|etapa|resposta"
    r"|mensagem|push|merge|deploy|tarefa|pedido)"
)
_PORTUGUESE_REPLY = (
    rf"(?:(?<!\w )\bme respond[ae] em |\bquero que (?:você )?(?:me )?responda em "
    rf"|{first('favor', 'e', 'mas', 'diante', 'agora')}\b(?:(?:respond[ae]|escrev[ae]|fal[ae]|expli(?:ca|que)"
    rf"|coment[ae])(?:-me|-nos)?(?: (?:tudo|sempre|agora|só|comigo))* em |(?:volt[ae]|mud[ae]|pass[ae]) (?:ao|para o"
    rf"|pro) ))"
    r"(?:português|inglês|alemão|francês|espanhol|italiano|russo|chinês|japonês|coreano|árabe)\b"
)
PORTUGUESE = Phrases(
    rf"(?<!\w )\b(?:no futuro|daqui por diante),? (?:por favor )?{_PORTUGUESE_DO}\b"
    rf"|(?<!\w )\b(?:escrev[ae] )?(?:(?:todos )?os )?(?:comentários|commits) em (?:inglês|português)\b{ENDS}"
    r"|(?<!\w )\bme avis[ae] (?:cada|toda) vez que\b|\bgosto mais de\b|\bminha preferência é\b|\bsou (?:celíac[oa]"
    r"|intolerante)\b|(?<!\w )\bsiga (?:\w+ ){0,3}(?:pep[ -]?\d|guia de estilo|convenções)"
    r"|\b(?:a partir de (?:agora|hoje)|de agora em diante|daqui (?:em|para|pra) (?:diante|a? ?frente)"
    r"|doravante)\b(?!,? (?:tudo |já |isso )?funciona\b)"
    rf"|{first('favor', 'e', 'mas')}\b{_PORTUGUESE_DO}\b[^.!?]{{1,80}}\b(?:{_PORTUGUESE_EACH}|cada vez|toda vez)\b"
    rf"|\b(?:{_PORTUGUESE_EACH},?|(?:cada|toda) vez que [^.!?]{{1,60}},) {_PORTUGUESE_DO}\b|{_PORTUGUESE_REPLY}"
    r"|\b(?:prefiro(?! a (?:primeira|segunda|última)\b)|preferi(?:ri)?a|sou (?:\w+ )?(?:alérgic[oa]|vegetarian[oa]"
    r"|vegan[oa]))\b",
    "me quero no escreve todos os comentários commits gosto minha siga a volt mud pass de daqui doravante "
    "execut roda rode test verifi atualiz pergunt diga avisa avise mostr confirm "
    "escrev faça adicion usa use utiliz respond expli após depois antes em com ao cada toda fala fale coment prefiro "
    "preferia preferiria sou",
)

_ITALIAN_DO = (
    r"(?:esegui|lancia|testa|verifica|aggiorna|chiedi(?:mi)?|dimmi|avvisami|mostrami|conferma|scrivi|aggiungi|fai|usa"
    r"|rispondi|spiega|controlla)"
)
_ITALIAN_EACH = (
    r"(?:dopo|prima di|a|ad|in|con|alla fine di) ogni (?:modifica|commit|passo|passaggio|risposta|messaggio|push"
    r"|merge|rilascio|deploy|attività|richiesta)"
)
_ITALIAN_REPLY = (
    rf"(?:\b(?:vorrei|voglio) che (?:tu )?(?:mi )?rispond(?:a|essi) in "
    rf"|{first('favore', 'e', 'ma', 'poi', 'avanti')}\b(?:(?:rispondi|scrivi|parla|spiega|commenta|risponda|scriva"
    rf"|parli)(?:mi|ci)?(?: (?:tutto|sempre|ora|adesso|solo|con me))* in |(?:torna|passa|torni|passi) all['’]))"
    r"(?:italiano|inglese|tedesco|francese|spagnolo|portoghese|russo|cinese|giapponese|coreano|arabo)\b"
)
ITALIAN = Phrases(
    rf"(?<!\w )\bin futuro,? (?:per favore )?{_ITALIAN_DO}\b|(?<!\w )\b(?:scrivi )?(?:(?:tutti )?i )?(?:commenti"
    rf"|commit) in (?:inglese|italiano)\b{ENDS}|\bmi piac(?:e|ciono) di più\b(?! l[ao] (?:prim|second|ultim))"
    rf"|\bla mia preferenza è\b|\bsono (?:celiac[oa]"
    r"|intollerante)\b|(?<!\w )\bsegui (?:\w+ ){0,3}(?:pep[ -]?\d|guida di stile|convenzioni)"
    r"|\b(?:d['’]ora in (?:poi|avanti)|da (?:ora|adesso|oggi|qui) in (?:poi|avanti))\b(?!,? (?:tutto )?funziona\b)"
    rf"|{first('favore', 'e', 'ma')}\b{_ITALIAN_DO}\b[^.!?]{{1,80}}\b(?:{_ITALIAN_EACH}|ogni volta)\b"
    rf"|\b(?:{_ITALIAN_EACH},?|ogni volta che [^.!?]{{1,60}},) {_ITALIAN_DO}\b|{_ITALIAN_REPLY}"
    r"|\b(?:preferisco(?! la (?:prima|seconda|ultima)\b)|preferirei|sono (?:\w+ )?(?:allergic[oa]|vegetarian[oa]"
    r"|vegan[oa]))\b",
    "vorrei voglio in tutti i commenti commit mi la segui d da torna passa torni passi esegui lancia prova "
    "testa verifica aggiorna chiedi dimmi avvisami mostra conferma scrivi scriva fai aggiungi usa utilizza rispondi "
    "spiega controlla dopo prima a ad in con alla ogni parla parli commenta preferisco preferirei sono",
)

_DUTCH_DO = r"(?:voer|draai|test|controleer|werk|vraag|zeg|toon|bevestig|schrijf|maak|geef|gebruik|antwoord|leg|vertel)"
_DUTCH_EACH = (
    r"(?:na|voor|bij|met|in|aan het eind van) (?:elke?|iedere?) (?:wijziging|commit|stap|aanpassing|antwoord|bericht"
    r"|push|merge|release|taak|vraag)"
)
_DUTCH_REPLY = (
    rf"(?:\bik wil dat je in het (?=\w{{4,15}} (?:antwoordt|reageert|praat)\b)"
    rf"|{first('en', 'maar', 'nu', 'voortaan')}\b(?:(?:antwoord|schrijf|spreek|praat|reageer)(?: (?:me|mij|ons"
    rf"|met mij|alles|altijd|nu|maar|weer|graag|alsjeblieft))* (?:in het )?|(?:ga|schakel)(?: (?:weer|terug))* (?:naar"
    rf"|over op) (?:het )?))(?:nederlands|engels|duits|frans|spaans|italiaans|portugees|russisch|chinees|japans"
    rf"|koreaans|arabisch)\b"
)
DUTCH = Phrases(
    rf"(?<!\w )\bin het vervolg\b(?! (?:is|wordt|gaat|van)\b)|(?<!\w )\bvanaf vandaag\b(?! (?:werkt|is|open|gesloten"
    rf"|ben)\b)|(?<!\w )\b(?:schrijf )?(?:(?:alle|de) )?(?:commentaar|commentaren|commits) in het (?:nederlands"
    rf"|engels)\b(?: graag)?{ENDS}|(?<!\w )\b{_DUTCH_EACH},? (?:(?:eerst|altijd|de tests|de linter) )*(?:draaien"
    rf"|testen|committen|controleren|vragen)\b(?! (?:we|ik)\b)|(?<!\w )\bmeld (?:\w+ )?(?:elke keer|telkens) (?:als"
    rf"|wanneer)\b|\bik ben glutenvrij\b"
    r"|(?<!\w )\bvolg (?:\w+ ){0,3}(?:pep[ -]?\d|stijlgids|conventies)|\b(?:vanaf (?:nu|hier(?! wordt\b))|voortaan"
    r"|van nu af aan)\b(?! (?:is|werkt|beschikbaar)\b)"
    rf"|{first('en', 'maar')}\b{_DUTCH_DO}\b[^.!?]{{1,80}}\b(?:{_DUTCH_EACH}|elke keer|telkens)\b"
    rf"|\b(?:{_DUTCH_EACH},?|(?:elke keer|telkens) (?:als|wanneer) [^.!?]{{1,60}},) {_DUTCH_DO}\b(?! (?:ik|we)\b)"
    rf"|{_DUTCH_REPLY}"
    r"|\bik (?:heb|had|zou|wil) (?:.{1,30} )?liever\b|\bik geef de voorkeur\b|\bmijn voorkeur\b"
    r"|\bik ben (?:\w+ )?(?:allergisch|vegetariër|veganist)\b",
    "ik in alle de commentaar commits iedere meld volg vanaf ga schakel voortaan van voer draai test control "
    "werk vraag zeg toon laat bevest schrijf maak geef gebruik antwoord leg vertel na voor bij met in aan elke telkens "
    "spreek praat reageer ik mijn",
)

_RUSSIAN_DO = (
    r"(?:запуска|запусти|прогоня|проверя|проверь|спрашива|спроси|пиши|напиши|покажи|показыва|подтверди|подтвержда"
    r"|обнови|обновля|делай|сделай|добавь|добавля|используй|отвеча|ответь|сообща|сообщи|объясня)(?:й|йте|те)?"
)
_RUSSIAN_EACH = (
    r"(?:после|перед|при|до|в|с) кажд(?:ого|ой|ым|ом|ую) (?:изменени\w+|коммит\w*|шаг\w*|правк\w+|ответ\w*"
    r"|сообщени\w+|пуш\w*|слияни\w+|релиз\w*|депло\w*|задач\w+|запрос\w*)"
)
_RUSSIAN_REPLY = (
    rf"{first('и', 'но', 'пожалуйста', 'момента', 'отныне', 'впредь', 'теперь', 'чтобы ты', 'чтобы вы')}\b(?:(?:отвеча"
    rf"|пиш|говор|объясня|комментиру|общай)(?!(?:[аяеу]?ю|[ая])т\b|ут\b)\w{{0,5}}(?: (?:мне|нам|всё|все|всегда"
    rf"|теперь|только"
    rf"|со мной"
    rf"|снова))* (?:по-(?:русски|английски|немецки|французски|испански|китайски|японски)|на (?:русском|английском"
    rf"|немецком|французском|испанском|китайском|японском))|(?:вернись|вернемся|вернёмся|переключись|переходи"
    rf"|перейди) (?:на|к) (?:русск|английск|немецк|французск"
    r"|испанск)\w{2,4})\b"
)
RUSSIAN = Phrases(
    rf"(?<!\w )\b(?:в (?:будущем|дальнейшем),?|на будущее:?) (?:(?:сначала|всегда|пожалуйста) )?{_RUSSIAN_DO}\b"
    rf"|(?<!\w )\b(?:пиши(?:те)? )?(?:все )?(?:комментарии|коммиты) (?:пиши(?:те)? )?на (?:английском"
    rf"|русском)\b{ENDS}"
    r"|\bя бы предпоч[её]л\w*|(?<!\w )\bследуй(?:те)? (?:\w+ ){0,3}(?:pep[ -]?\d|соглашени|стил)|"
    r"\b(?:с (?:этого момента|сегодняшнего дня|этой минуты)|отныне|впредь)\b"
    r"(?!,? (?:(?:вс[её]|это|он|она|оно) )?(?:работа[ею]т|начина\w+|будет (?:лучше|проще))\b)"
    rf"|{first('и', 'но', 'пожалуйста')}\b{_RUSSIAN_DO}\b[^.!?]{{1,80}}\b(?:{_RUSSIAN_EACH}|каждый раз)\b"
    rf"|\b(?:{_RUSSIAN_EACH},?|каждый раз,? (?:когда|как|перед|после) [^.!?]{{1,60}},) {_RUSSIAN_DO}\b"
    rf"|{_RUSSIAN_REPLY}"
    r"|\b(?:я предпоч[иеё]\w+(?! (?:перв|втор|последн)\w+)|предпочитаю(?! (?:перв|втор|последн)\w+)"
    r"|мне больше нрав\w+"
    r"|у меня аллергия|я (?:вегетариан\w+|веган\w*))\b",
    "на пиши все комментарии коммиты следуй с вернись вернёмся переключ переход перейди отныне впредь запус "
    "провер спраш спрос пиши напиши покаж показ подтв обнов делай сделай добавь использ отвеч ответь сообщ объясн "
    "после "
    "перед при до в каждый говор коммент общай я предпочитаю мне у",
)

_POLISH_REPLY = (
    rf"{first('i', 'ale', 'proszę', 'teraz', 'pory')}\b(?:(?:odpowiadaj|odpowiedz|pisz|mów)(?: (?:mi|nam|zawsze|tylko"
    r"|wszystko))* po|(?:wróć|przejdź) na) (?:polsk|angielsk|niemieck|francusk|hiszpańsk|rosyjsk)(?:u|i)\b"
)
_POLISH_DO = (
    r"(?:uruchamiaj|uruchom|sprawdzaj|aktualizuj|pytaj|zapytaj|pisz|rób|dodawaj|pokazuj|commituj|testuj|używaj)"
)
POLISH = Phrases(
    r"\b(?:od (?:teraz|tej pory|dziś|dzisiaj)|odtąd)\b(?!,? (?:(?:to|wszystko) )?(?:działa|jest|mam|będę|jestem)\b)"
    rf"|{_POLISH_REPLY}|(?<!\w )\b(?:po|przed) każd(?:ej|ym) (?:zmian|commi|krok|merg|wdroż"
    rf"|push)\w{{0,5}},? {_POLISH_DO}\b"
    rf"|(?<!\w )\b{_POLISH_DO} [^.!?]{{1,60}} (?:po|przed) każd(?:ej|ym) (?:zmian|commi|krok|merg|wdroż|push)\w*"
    rf"|(?<!\w )\b(?:jeśli|gdy) (?:nie jesteś pew\w+|masz wątpliwości|zmieniasz \w[^.!?,]{{1,40}}), {_POLISH_DO}\b"
    rf"|(?<!\w )\bw razie wątpliwości,? {_POLISH_DO}\b|\b(?:wolę|wolałbym|wolałabym|preferuję)\b(?! (?:pierwsz|drug"
    rf"|ostatni)\w+)"
    r"|\b(?:jestem (?:\w+ )?(?:wegetarian|wegan|uczulon)\w+|mam alergię)",
    "od odtąd odpowiadaj pisz mów wróć przejdź po przed uruchamiaj sprawdzaj aktualizuj pytaj zapytaj rób dodawaj "
    "pokazuj commituj testuj używaj jeśli gdy w wolę wolałbym preferuję jestem mam",
)

_IN_CHINESE = (
    r"(?:中文|汉语|国语|普通话|英文|英语|日文|日语|韩语|韩文|法语|德语|西班牙语|俄语|阿拉伯语|葡萄牙语|意大利语)"
)
_SCRIPT = "(?:(?:[简簡][体體]|繁[体體]))?"
_CHINESE_REPLY = (
    rf"(?:^|请)说{_IN_CHINESE}(?=[。．｡！!，,]|$)|用{_IN_CHINESE}[和跟与]我们?(?:交流|沟通|说|聊|对话)"
    rf"|用{_SCRIPT}{_IN_CHINESE}(?:来|进行|直接)?(?:回答|回[复覆]|说|交流|沟通|解释|输出)(?!了|过|的|怎么"
    rf"|(?:一下)?[这那])|(?:换回|改回|切回|切换回|切换到|换成"
    rf"|改用){_SCRIPT}{_IN_CHINESE}(?:来?(?:回答|回[复覆]|交流))?(?!的)"
    rf"|(?:回答|回[复覆]|输出|交流|对话)(?:都|请|要|一律|统一|全部){{0,2}}用{_SCRIPT}{_IN_CHINESE}(?!了|过|的|怎么)"
    rf"|(?:都|一律|统一)用{_SCRIPT}{_IN_CHINESE}(?=[。．｡！!，,]|$)"
)
CHINESE = Phrases(
    r"[从從](?:现在|現在|今天|此)(?:开始|起|以后|往后)(?!.{0,4}(?:可以用|能用|正常|好)了)|从今(?:以后|往后|天起)"
    r"|今[后後](?!的"
    r"|的确|可[以能]|[会會])|以[后後](?:都|[请請]|每次|一律|统一|統一|回[复覆]|回答)"
    r"|(?:提交|推送|合并|发布|部署|push|commit)(?:代码)?之?前[，,]?(?:都|请|要|需要?|记得|也|先){1,3}[^，。]{2,20}"
    rf"|{_CHINESE_REPLY}|用(?:简体|繁体)?{_IN_CHINESE}(?:来)?(?:写|注释)(?!了|过|的|一?[封篇个首段份]|给)"
    r"|每次.{1,20}(?:都要(?!等|花|重新|报)|请(?!求|假)|先(?!前)|务必)|我(?:更喜欢|更倾向|比较喜欢|更偏好|偏好|偏爱"
    r"|宁愿|宁可)(?!第[一二三])|我对.{1,10}过敏|我(?:吃素|是素食|不吃(?:辣|肉|猪|牛|羊|鱼|海鲜|香菜)|乳糖不耐)"
    r"|(?:往后|后续|接下来)(?:都|一律|统一)(?!是|很|没|会|能)|(?:^|[。，,；])(?:代码)?注释(?:都|请|统一|一律)*用"
    rf"(?:简体|繁体)?{_IN_CHINESE}(?!的)|每(?:完成|做完|改完).{{1,12}}(?:就|都)(?:要|请)?(?:提交|运行|跑|测试|告诉"
    rf"|更新)"
    r"|每次.{1,12}[都就](?:要|请)?(?:跑|运行|执行|检查)(?:一下|一遍)|(?:^|[。，,；请])(?:遵循|遵守)(?=.{0,12}(?:PEP"
    r"|规范|风格|约定))"
)
_IN_JAPANESE = "(?:日本語|英語|中国語|韓国語|ドイツ語|フランス語|スペイン語)で"
_JAPANESE_REPLY = (
    rf"{_IN_JAPANESE}(?:答えて|回答して|返答して|返信して|(?<!を日本語で)(?<!を英語で)説明して|話して|返事して"
    rf"|応答して|お願い)(?!い(?:た|る|ます|まし))"
    r"|(?:日本語|英語|中国語|韓国語)に(?:戻して|切り替えて|変えて|変更して)(?!い(?:た|る|ます|まし))"
)
JAPANESE = Phrases(
    rf"これから(?:は|、)(?!大丈夫|どう)|今後(?:は(?!どう)|、)|以後、|これ以降|今から(?:は|、)|{_JAPANESE_REPLY}"
    r"|(?:コミット|プッシュ|マージ|リリース|デプロイ|push|commit)(?:する)?前に(?:は)?、?.{1,30}て(?:ください|下さい"
    r"|ね|[。．｡！!]|$)"
    rf"|{_IN_JAPANESE}(?:書いて|出力して)(?!い(?:た|る|ます|まし))"
    r"|(?:毎回|(?:たび|(?<![一今])度|(?<!ファイル)(?<!行)(?<!関数)ごと)に).{0,30}(?:て(?:ください|下さい|ほしい"
    r"|欲しい|ね)"
    r"|すること)|(?:方|ほう)が(?:好き|好み)|を好みます|アレルギーがあ"
    r"|(?<!どんな)(?<!どの)(?:回答|答え|説明|形式)が好みです|(?:アレルギー|ベジタリアン|ヴィーガン)です(?!か)"
    r"|(?:次回|次)からは.{1,30}て(?:ください|下さい|ね)|(?:^|[。、])以降は.{1,30}て(?:ください|下さい|ね)"
    r"|(?:PEP ?\d+|規約|スタイルガイド)に従って(?:ください|下さい|ね)"
    r"|(?:たび|(?<![一今])度)に.{1,30}て(?=[。．｡！!]|$)|(?:^|[。、])毎回.{1,30}[てで](?=[。．｡！!]|$)"
)
_IN_KOREAN = r"(?:한국어|영어|일본어|중국어|독일어|프랑스어|스페인어)로(?:만)? (?:.{0,8} )?"
_ONLY_KOREAN = r"(?:한국어|영어|일본어|중국어|독일어|프랑스어|스페인어)로(?:만)? (?:(?:다시|계속|모두|전부|항상) )?"
_KOREAN_ASKS = r"(?:변)?(?:해|하|을)? ?(?:줘|주세요|세요|라|십시오|하세요)"
_KOREAN_REPLY = (
    rf"{_IN_KOREAN}(?:(?:답|대답|말|(?<![을를] 한국어로 )(?<![을를] 영어로 )설명|응답|회신){_KOREAN_ASKS}"
    r"|(?:돌아가|바꿔|바꾸) ?(?:줘|주세요|세요|자|십시오)|(?:답변|대답) ?부탁)"
)
KOREAN = Phrases(
    r"(?:지금|이제)부터(?! ?(?:시작|출발))|앞으로는|앞으로 (?=.{1,40}(?:줘|주세요|하세요|해라|십시오|마세요))"
    rf"|{_KOREAN_REPLY}|{_ONLY_KOREAN}(?:작성|써|쓰){_KOREAN_ASKS}"
    r"|(?:(?<!파일)(?<!줄)(?<!함수)마다|매번) .{0,30}(?:줘|주세요|하세요|해라|십시오)|선호(?:해|합|한다)"
    r"|알레르기가 있"
    r"|(?:다음|앞으로)부터는? (?=.{1,40}(?:줘|주세요|하세요|해라|십시오|마세요))|저는 .{1,20}더 좋아(?:해|합)"
    r"|(?:답변|설명|대답)이 더 좋아(?:요|해)"
    r"|(?:채식주의자|비건)(?:예요|이에요|입니다)|(?:PEP ?\d+|규칙|스타일 가이드)[을를] 따라 ?(?:줘|주세요)"
)
_HINDI_ASKS = r"(?:ें|एं|एँ|िए|िये|इए|इये|ना|ो|ओ)(?:[।,.!]|\s*$)"
_IN_HINDI = "(?:हिंदी|हिन्दी|अंग्रेज़ी|अंग्रेजी) में (?:ही )?"
_HINDI_REPLY = rf"{_IN_HINDI}(?:उत्तर|जवाब|बात|बोल|समझा)(?=.{{0,12}}{_HINDI_ASKS})"
HINDI = Phrases(
    rf"(?<![\u0900-\u097f])(?:अब से|आज से|आगे से|अब आगे)(?![\u0900-\u097f])(?=.{{1,80}}{_HINDI_ASKS})"
    rf"|{_HINDI_REPLY}|{_IN_HINDI}लिख(?=.{{0,12}}{_HINDI_ASKS})"
    r"|मुझे .{1,40}(?:ज़्यादा|ज्यादा|अधिक) पसंद (?:है|हैं)|मुझे .{1,30}से एलर्जी"
    rf"|(?<![\u0900-\u097f])हर (?:बदलाव|कदम|commit|push|फ़ाइल बदलने|जवाब|टेस्ट) (?:के बाद"
    rf"|से पहले)(?=.{{1,60}}{_HINDI_ASKS})|(?<![\u0900-\u097f])(?:जब भी .{{1,40}}[,،] ?"
    rf"|हर बार मुझे )(?=.{{1,40}}{_HINDI_ASKS})|भविष्य में (?=.{{1,60}}{_HINDI_ASKS})"
    r"|मैं (?:शाकाहारी|वीगन) हू|का पालन कर(?:ो|ें|िए|ना)(?:[।,.!]|\s*$)"
)
_ARABIC_REPLY = (
    r"\bو?(?:(?:أجب|رد|تحدث|تكلم|اشرح|جاوب)\w{0,3} (?:.{1,20} )?|اكتب (?:(?:لي|كل شيء|التعليقات|الردود"
    r"|الإجابات) )?)(?:باللغة ال|بال)(?:عربية|إنجليزية|انجليزية|فرنسية|ألمانية)"
)
_ARABIC_DO = r"(?:شغ[ّ]?ل|اختبر|استخدم|اكتب|أخبرني|اسألني|حد[ّ]?ث|نف[ّ]?ذ|تحقق)"
_ARABIC_EVENT = r"(?:تغيير|تعديل|خطوة|commit|push|التزام|دفع|رد|مهمة|إصدار)"
ARABIC = Phrases(
    rf"من الآن (?:ف|و)صاعد(?!\w{{0,2}} (?:يعمل|تعمل)\b)|ابتداء[ً]? من (?:الآن|اليوم)|من اليوم فصاعد|{_ARABIC_REPLY}"
    rf"|\b(?:أفضّل|أنا أفضل|أفضل أن)\b|\b{_ARABIC_DO} (?:.{{1,40}} )?(?:بعد|قبل|عند) كل {_ARABIC_EVENT}"
    rf"|(?<!\w )(?:بعد|قبل|عند) كل {_ARABIC_EVENT}،? {_ARABIC_DO}\b|(?<!\w )(?:مستقبلا"
    rf"|في المستقبل)[ًا]*،? {_ARABIC_DO}\w*"
    r"|\bأنا نباتي|\bعندي حساسية|(?<!\w )(?:اتبع|التزم ب)(?=.{0,20}(?:PEP|دليل|معايير|أسلوب))"
    rf"|لدي حساسية"
)

_WHEN_ACTS = {
    "de": rf"(?:{_GERMAN_DO}|behebe?|repariere?|füge?|nimm|nutze?|benutze?|verwende?|biete|halte?|stoppe?|leite"
    r"|ergänze?)\b"
    r"(?! (?:ich|wir|sie|er|es)\b)",
    "fr": rf"(?:{_FRENCH_DO}|corrige[zr]?|arrête[zr]?|appelle[zr]?|transfère[zr]?|refuse[zr]?|préviens|prévenez)\b",
    "es": rf"(?:{_SPANISH_DO}|pregunta|corrige|arregla|revisa|detente|para|escala|rechaza)\b",
    "pt": rf"(?:{_PORTUGUESE_DO}|corrija|pare|revise|me (?:pergunte|avise|diga))\b",
    "it": rf"(?:{_ITALIAN_DO}|correggi|sistema|fermati|avvisa|rifiuta)\b",
    "nl": rf"(?:{_DUTCH_DO}|herstel|los|pas|stop|voeg|meld)\b(?! (?:ik|we)\b)",
    "ru": rf"(?:{_RUSSIAN_DO}|исправь|исправляй|останови(?:сь|тесь)|предупреди|уточни|уточняй)\b",
}
CONDITION = Phrases(
    "|".join(
        (
            # German
            r"(?<!\w )\b(?:wenn|falls|sobald|bevor) (?:du (?:(?!(?:es|das|dies|ihn|sie) )[^,.!?]{1,60} )?"
            r"(?:(?:änder|bearbeite|anfass|umbenenn|committe|pusht?|merge)s?t|(?:ein\w{0,2}|etwas"
            r"|neue\w?) (?:\w+ ){0,3}(?:hinzufüg|anleg|schreib|lösch|installier|erstell|brauch|find|umbenenn)e?st)"
            rf"|ein\w{{0,2}} [^,.!?]{{1,60}}|etwas [^,.!?]{{1,60}}|jemand [^,.!?]{{1,60}}),? (?:bitte )?"
            rf"{_WHEN_ACTS['de']}|(?<!\w )\b(?:(?:wenn|falls) du (?:dir )?(?:(?:nicht|un)[ -]?sicher)(?: bist)?"
            rf"|im zweifel(?:sfall)?),? "
            r"(?:bitte |lieber |erst |immer )*(?:frage?|nachfragen|stopp)\b",
            # French
            r"(?<!\w )\b(?:quand|lorsque|si|avant que) (?:(?:tu|vous) (?:modifi|chang|édit|touch|renomm|commit|pouss)"
            r"\w{1,3} (?!(?:ça|cela)\b)|(?:un|une) |quelque chose |quelqu['’]un )[^,.!?]{1,60}, "
            rf"{_WHEN_ACTS['fr']}|(?<!\w )\bavant de (?:commit|push|merg|pouss|supprim|déploy)\w*[^,.!?]{{0,40}}, "
            rf"{_WHEN_ACTS['fr']}|(?<!\w )\b(?:(?:si (?:tu as|vous avez) (?:un|le moindre|des) doutes?|en cas de doute"
            rf"|si (?:tu n['’]es|vous n['’]êtes) pas sûre?s?)),? {_WHEN_ACTS['fr']}",
            # Spanish
            r"(?<!\w )\b(?:cuando|si) (?:(?:cambi|modifi(?:qu|c)|edit|to(?:qu|c)|renombr)(?:es|as|e|a) "
            r"(?!(?:esto|eso)\b)|(?:agreg(?:u?es|as)|añad[ae]s|cre[ea]s|escrib[ae]s|instal[ea]s|necesit[ea]s) (?:un"
            r"|una|nuev[oa]s?) "
            rf"|(?:un|una) |algo |alguien )[^,.!?]{{1,60}}, {_WHEN_ACTS['es']}|(?<!\w )\bantes de (?:hacer (?:commit"
            rf"|push|merge)|subir|desplegar|borrar|commitear)[^,.!?]{{0,40}}, {_WHEN_ACTS['es']}"
            rf"|(?<!\w )\b(?:si (?:tienes"
            rf"|tiene) (?:alguna )?dudas?|si no (?:estás|está) segur[oa]|en caso de duda|ante la duda),? "
            rf"{_WHEN_ACTS['es']}",
            # Portuguese
            r"(?<!\w )\b(?:quando|se|sempre que) (?:você )?(?:(?:mudar|alterar|modificar|editar|renomear|mexer n[oa])"
            r" (?!(?:isso|isto)\b)|(?:adicionar|criar|escrever|instalar) (?:um|uma|nov[oa]s?) |(?:um|uma) |algo "
            rf"|alguém )[^,.!?]{{1,60}}, {_WHEN_ACTS['pt']}|(?<!\w )\bantes de (?:fazer (?:commit|push|merge)|commitar"
            rf"|subir|apagar|publicar)[^,.!?]{{0,40}}, {_WHEN_ACTS['pt']}"
            rf"|(?<!\w )\b(?:se (?:você )?(?:tiver (?:alguma )?"
            rf"dúvidas?|estiver em dúvida|não tiver certeza)|na dúvida|em caso de dúvida),? {_WHEN_ACTS['pt']}",
            # Italian
            r"(?<!\w )\b(?:quando|se) (?:(?:cambi|modifichi|tocchi|rinomini) (?!(?:questo|quello)\b)|(?:aggiungi|crei"
            r"|scrivi|installi) (?:un|una|uno|nuov[oaie]) |(?:un|una|uno) |qualcosa |qualcuno )[^,.!?]{1,60}, "
            rf"{_WHEN_ACTS['it']}|(?<!\w )\bprima di (?:fare (?:commit|push|merge)|cancellare|pubblicare)"
            rf"[^,.!?]{{0,40}}, {_WHEN_ACTS['it']}|(?<!\w )\b(?:se (?:hai (?:dei |qualche )?dubbi?o?|non sei sicur[oa])"
            rf"|nel dubbio),? {_WHEN_ACTS['it']}|(?<=\bin )caso di dubbio,? {_WHEN_ACTS['it']}",
            # Dutch
            r"(?<!\w )\b(?:als|wanneer|voordat) (?:je (?:(?!(?:het|dat|dit|die) )[^,.!?]{1,50} )?(?:wijzigt|verandert"
            rf"|aanpast|hernoemt|commit|pusht)|(?:een |iets |iemand )[^,.!?]{{1,60}}),? {_WHEN_ACTS['nl']}"
            r"|(?<!\w )\b(?:(?:als|wanneer) je (?:twijfelt|het niet zeker weet|niet zeker bent)|bij twijfel),? "
            rf"(?:altijd |eerst )?{_WHEN_ACTS['nl']}",
            # Russian
            r"(?<!\w )\b(?:когда|если|перед тем,? как|прежде чем) (?:ты )?(?:меня|изменя|прави|добавля|созда|пиш"
            r"|удаля|переименовыва|коммити|пуши)(?:ешь|ёшь|шь|ете|ите|ть) (?!(?:это|его|её)\b)[^,.!?]{1,60}, "
            rf"{_WHEN_ACTS['ru']}|(?<!\w )\bперед (?:коммит|пуш|релиз|депло|слияни)\w+,? {_WHEN_ACTS['ru']}"
            r"|(?<!\w )\b(?:если (?:ты |вы )?(?:не увере\w+|сомнева\w+|что-то не\s?(?:ясно|понятно))|при сомнениях"
            rf"|в случае сомнений),? {_WHEN_ACTS['ru']}",
        )
    ),
    "wenn falls sobald bevor im quand lorsque si avant en cuando antes ante quando se sempre na em prima caso nel als "
    "wanneer voordat bij когда если перед прежде при в",
)
"""The same in other languages."""
CONDITION_ASIAN = Phrases(
    r"(?:不确定|不清楚|拿不准|有疑问|有疑虑)(?:的话|时|的时候)?[，,]?(?:请|就|要|先|直接|随时)*问我"
    r"|(?<!我)(?:修改|更改|新增|添加|删除|重命名|改动)(?!完)[^，。,]{1,15}(?:时候?|之?前)[，,]?(?:都|请|要|需要?|记得"
    r"|同时"
    r"|同步|也|先){1,3}(?:更新|运行|跑|执行|添加|补|写|检查|通知)"
    r"|(?:分からない|わからない|不明な|不確かな|不確定な|迷った|迷う|自信がない)(?:こと|点|場合|とき|時"
    r"|ら)?(?:が(?:あれば|あったら)|は|には)?"
    r"[、]?.{0,8}(?:聞いて|質問して|確認して|尋ねて)(?:ください|下さい|ね|[。．｡！!]|$)"
    r"|(?:変更|修正|追加|削除|編集)(?:した|する)(?:場合|とき|時|際)(?:は|には)?[、]?.{1,30}て(?:ください|下さい|ね)"
    r"|(?:変更|追加|削除|編集)したら[、]?.{1,20}も(?:更新|追加|修正)して(?:ください|下さい|ね|[。．｡！!]|$)"
    r"|(?:확실하지 않|잘 모르겠|모르|애매하|헷갈리)(?:으면|면|을 때는?|ㄹ 때) .{0,10}(?:물어|질문|확인)"
    r"|(?:커밋|푸시|머지|배포|릴리스)(?:하기)? ?전에(?:는)? .{1,30}(?:줘|주세요|하세요|해라|십시오)"
    r"|(?:변경|수정|추가|삭제)할 때는? .{1,30}(?:줘|주세요|하세요|해라|십시오)"
    r"|(?:संदेह|शक) हो तो .{0,12}पूछ|\bإذا (?:لم تكن متأكد\w*|كنت غير متأكد|شككت)\b.{0,10}\bف?اسأل"
)

STANDING = (
    ENGLISH,
    ENGLISH_EACH_TIME,
    ENGLISH_CONDITION,
    GERMAN,
    FRENCH,
    SPANISH,
    PORTUGUESE,
    ITALIAN,
    DUTCH,
    RUSSIAN,
    POLISH,
    CHINESE,
    JAPANESE,
    KOREAN,
    HINDI,
    ARABIC,
    CONDITION,
    CONDITION_ASIAN,
)
"""What stands without a word that demands or forbids."""

REPLIES = Phrases(
    "|".join(
        (
            _ENGLISH_REPLY,
            _GERMAN_REPLY,
            _FRENCH_REPLY,
            _SPANISH_REPLY,
            _PORTUGUESE_REPLY,
            _ITALIAN_REPLY,
            _DUTCH_REPLY,
            _RUSSIAN_REPLY,
            _POLISH_REPLY,
            _CHINESE_REPLY,
            _JAPANESE_REPLY,
            _KOREAN_REPLY,
            _HINDI_REPLY,
            _ARABIC_REPLY,
        )
    )
)
"""In which language to answer: of two of these the later one holds, however each is worded."""
