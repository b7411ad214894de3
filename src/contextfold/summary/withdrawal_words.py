"""How rules are taken back in each language that is spoken here: withdrawn, ended, or replaced.

What belongs here: regular expressions over one sentence, by language, also of what has another value from now on. What
does not: how rules are worded (``rule_words``), and which rule a sentence takes back (``rules``).
"""

from __future__ import annotations

from contextfold.summary.rule_words import ASKS_WHY, BEGINS, NOT, Phrases, first

_FROM_NOW = r"(?:from (?:now|here) on|going forward|any ?more|in (?:the )?future)"
SKIPS = rf"\b(?:{_FROM_NOW},? (?:please )?skip ([^,.;!?]{{1,40}})|skip ([^,.;!?]{{1,40}}?),? {_FROM_NOW})\b"
"""Something is to be left out from now on."""

_ENDS_ENGLISH = (
    rf"{SKIPS}|"
    rf"no longer (?:needed|necessary|required)|(?:i|we) no longer (?:use|need|want|run)"
    rf"|(?:do(?:es)?|is|are){NOT} (?:needed|necessary|required)"
    rf"|you (?:no longer (?:have|need) to|do{NOT} (?:have|need) to)"
    rf"|{BEGINS}stop (\w+ing)|(?:can|may) (?:now )?stop (\w+ing)|(?<!\bthere is )(?<!\bthere['’]s )(?<!\bsee )"
    r"(?<!\bsaw )(?<!\bhad )no (?:more )?need (?:to|for)"
)
_ENDS_GERMAN = (
    r"du (?:musst|brauchst) (?:(.{1,60}) )?nicht|(?:musst|brauchst) du (?:(.{1,40}) )?nicht|hör (?:bitte )?auf"
    r"|nicht mehr (?:nötig|notwendig)"
)
_ENDS_FRENCH = (
    r"(?:(?:tu |vous |il )?n['’](?:as|avez|est|y a) )?(?:plus|pas) besoin (?:de |d['’])|arrête[zr]? (?:de |d['’])"
)
_ENDS_SPANISH = r"(?<!\bme )dej[ae] de (\w+r)|no (?:hace falta|es necesario) (?:que )?(\w+)"
_ENDS_PORTUGUESE = r"(?:par[ae]|deix[ae]) de (\w+r)|não precisas? (?:mais )?(?:de )?(\w+r)"
_ENDS_ITALIAN = r"smetti(?:la)? di (\w+re)|non (?:serve più|è più necessario)|non c['’]è più bisogno"
_ENDS_DUTCH = (
    r"(?:je|jij) hoeft (?:(.{1,60}) )?niet|hoef je (?:(.{1,40}) )?niet|(?:hou|houd) op met|stop met|niet meer nodig"
)
_ENDS_RUSSIAN = (
    r"не (?:нужно|надо) больше|больше не (?:нужно|надо)|можешь не|можно не|перестань|перестаньте|прекрати(?:те)?"
)
_ENDS_ASIAN = (
    r"不(?:用|必|需要?|要)再|[别別]再|[无無](?:需|须|須)再|不再需要|もう[^。]{0,12}?(?:し)?ないで"
    r"|[はが](?:もう)?不要(?:です|だ|に)|(?:必要は|必要が)(?:もう)?(?:ない|ありません)|なくても?(?:いい|結構"
    r"|構いません)|[をは]やめて"
    r"|もう不要|그만(?:하|해|두)|할 필요(?:가|는)? ?없|지 않아도 ?(?:돼|됩|괜찮)"
)
_ENDS_HINDI_ARABIC = (
    r"(करना|लिखना|चलाना|देना) बंद कर|की (?:अब )?(?:कोई )?(?:ज़रूरत|जरूरत) नहीं|\bتوقف عن |\bلا حاجة |\bلا داعي "
)

_FOR_SOMETHING = (
    r"in place of|anstatt|(?<!findet )(?<!finden )(?<!fand )(?<!fanden )statt(?= (?!und\b|oder\b|wie\b)\w)|anstelle"
    r"|em lugar d[aeo]|no lugar d[aeo]s?|ao invés d[aeo]s?|al posto d(?:i|el|ell[ao])"
)
"""In the place of what stands behind it."""

_CHINESE_SWAPS = r"代替|取代|改成|改[为為]|改用|[换換][成用]|[还還]是(?:使用|用)(?![不的过過户戶途例])"
_JAPANESE_SWAPS = r"ではなく|代わり|[にへ](?:変えて|切り替えて)|変更して"

ENDS = Phrases(
    rf"\b(?:{_ENDS_ENGLISH}|{_ENDS_GERMAN}|{_ENDS_FRENCH}|{_ENDS_SPANISH}|{_ENDS_PORTUGUESE}|{_ENDS_ITALIAN}"
    rf"|{_ENDS_DUTCH}|{_ENDS_RUSSIAN})\b|{_ENDS_ASIAN}|{_ENDS_HINDI_ARABIC}"
)
"""Something is to be done no more, or need not be done. It takes back what demands it and leaves alone what forbids it:
``stop adding comments`` insists on ``never add comments``. Groups hold what stands between the words.
"""

BANS = Phrases(
    r"\b(?:avoiding|refraining|rules?|bans?|prohibitions?|restrictions?|limits?|limitations?|constraints?|polic(?:y"
    r"|ies)"
    r"|regeln?|verbote?s?|beschränkung(?:en)?|einschränkung(?:en)?|règles?|interdictions?|éviter|reglas?|prohibici\w+"
    r"|restricci\w+|regras?|proibiç\w+|restriç\w+|regol[ae]|divieto|restrizion\w+|verbod|beperking\w*|vermijden"
    r"|правил\w*|запрет\w*|ограничен\w*|избега\w+)\b|规则|规定|限制|ルール|規則|制限|규칙|제한|नियम"
)
"""What a prohibition is called, where words that end something end that."""

_DO_ENGLISH = (
    "use add do go keep edit change make run write put include delete remove install create take switch commit push "
    "deploy touch modify update enable allow try call send set show start merge rename format rewrite move"
)
_DO_GERMAN = (
    "benutz benutze nutz nutze nimm verwende mach mache schreib schreibe füge lösche ändere installiere committe pushe "
    "merge starte"
)
_BEFORE = first("please", "let's", "let’s", "lets", "let us", "ok", "okay", "yes", "so", "bitte", "ja", "dann")
_SAYING_ENGLISH = (
    r"(?:(?:i|we|you) (?:(?:will|shall|should|can|want (?:you |us )?to|need to|have to|must) )?"
    r"|(?:i|we|you)['’](?:ll|d (?:like|prefer) (?:you |us )?to) )"
)
"""Who it is that does it, and that it is to be done."""
_DO_LATIN = {
    "fr": "utilise[zr]?|utilisons|prends|prenez|mets|mettez|passe[zr]?|ajoute[zr]?|modifie[zr]?|fais|faites|change[zr]?"
    "|supprime[zr]?|installe[zr]?|touche[zr]?|pousse[zr]?|déploie|déployez|lance[zr]?|écris|écrivez|garde[zr]?",
    "es": "us[ae]|usad|usemos|usamos|usar|utili[cz][ae]|pon|haz|haga|añad[ae]|agreg(?:a|ue)|cambi[ae]|instal[ae]"
    "|to(?:ca|que)|borr[ae]|edit[ae]|escrib[ae]|modifi(?:ca|que)|sub[ae]|despli?eg(?:a|ue)",
    "pt": "us[ae]|usamos|usar|utiliz[ae]|coloque|faça|adicion[ae]|mud[ae]|alter[ae]|instal[ae]|mexa|apag(?:a|ue)"
    "|edit[ae]|escrev[ae]|modifi(?:ca|que)",
    "it": "us[ai]|usiamo|usare|utilizz[ai]|metti|fai|aggiungi|cambia|installa|tocca|cancella|modifica|scrivi",
    "nl": "gebruik|neem|doe|maak|voeg|wijzig|verander|installeer|schrijf|verwijder|push|zet|pas|raak",
    "ru": "используй(?:те)?|используем|добавь(?:те)?|измени(?:те)?|меняй(?:те)?|удали(?:те)?|установи(?:те)?"
    "|сделай(?:те)?|возьми(?:те)?|пиши(?:те)?|пушь|трогай(?:те)?",
    "pl": "użyj(?:my)?|używaj(?:my)?|dodaj|zmień|usuń|zainstaluj|zrób|weź|pisz",
}
_OF_IT = r"(?:[^\s,;]{1,30} ){1,8}?"


def _after_all(do: str, *, before: str, behind: str, between: str) -> str:
    """That something is to be done, where words for *after all* stand before it, behind it, or behind its verb."""
    return (
        rf"(?<!\w )(?:{before}),? (?:{do}) \w|{_BEFORE}(?:{do}) {_OF_IT}(?:{behind})(?=\W*\Z|[,;:])"
        rf"|{_BEFORE}(?:{do}) (?:{between}) \w"
    )


AFTER_ALL = "|".join(
    (
        rf"(?:{_BEFORE}|(?<!\w ){_SAYING_ENGLISH}|(?<=\bi think ){_SAYING_ENGLISH})(?:{'|'.join(_DO_ENGLISH.split())})"
        r" (?:[^\s,;]{1,30} ){1,8}after all(?=\W*\Z|[,;:])",
        r"(?<!\w )(?:we(?:['’]re| are)|i(?:['’]m| am)|let['’]?s)(?: going| go) with (?:[^\s,;]{1,30} ){1,8}after all"
        r"(?=\W*\Z|[,;:])",
        rf"{_BEFORE}(?:wir )?(?:{'|'.join(_DO_GERMAN.split())}|nutzen|nehmen|benutzen|verwenden|machen)"
        r" (?:(?:wir|jetzt|nun|bitte|also) )*doch (?!nicht\b|mal\b)\w",
        _after_all(
            _DO_LATIN["fr"],
            before="finalement|tout compte fait",
            behind="finalement|quand même|malgré tout|en fin de compte",
            between="finalement|quand même",
        ),
        _after_all(
            _DO_LATIN["es"],
            before="al final|finalmente|después de todo",
            behind="al final|finalmente|después de todo|igualmente",
            between="al final|finalmente",
        ),
        _after_all(
            _DO_LATIN["pt"],
            before="afinal|no fim das contas|no final das contas",
            behind="afinal|no fim das contas|mesmo assim",
            between="afinal|mesmo",
        ),
        _after_all(
            _DO_LATIN["it"],
            before="alla fine|in fin dei conti",
            behind="alla fine|dopo tutto|lo stesso",
            between="pure|comunque",
        ),
        rf"{_BEFORE}(?:{_DO_LATIN['nl']}) (?:(?:dan|nu|maar) )?toch (?!niet\b)\w",
        rf"(?<!\w )вс[её][- ]таки,? (?:{_DO_LATIN['ru']}) \w|(?<!\w )(?:{_DO_LATIN['ru']}) (?:{_OF_IT})?вс[её][- ]таки",
        rf"(?<!\w )jednak (?:{_DO_LATIN['pl']}) \w|(?<!\w )(?:{_DO_LATIN['pl']}) jednak \w",
    )
)
"""That something is to be done in spite of what was said. It takes back what forbids it."""

IN_SPITE = (
    r"\b(?:finalement|tout compte fait|quand même|malgré tout|en fin de compte|al final|finalmente|después de todo"
    r"|igualmente|afinal|no fim das contas|no final das contas|mesmo assim|alla fine|in fin dei conti|dopo tutto"
    r"|lo stesso|pure|comunque|toch|doch|вс[её][- ]таки|jednak)\b"
)
"""The words for that, which say nothing of what is to be done."""

_RATHER = (
    rf"{_BEFORE}(?:wir )?(?:{'|'.join(_DO_GERMAN.split())}|nutzen|nehmen|benutzen|verwenden) (?:\w+ )?lieber"
    rf"|(?<!\w )mejor (?:{_DO_LATIN['es']})|{_BEFORE}(?:{_DO_LATIN['es']}) mejor (?=\w)"
    rf"|(?<!\w )melhor (?:{_DO_LATIN['pt']})|(?<!\w )meglio (?:{_DO_LATIN['it']})"
    rf"|{_BEFORE}(?:{_DO_LATIN['it']}) piuttosto"
)
"""That something else is to be done, said as what is better."""

RULE_ENDS = (
    r"rules? (?:about [^,.;]{1,40} )?(?:(?:is|are|has been|have been) (?:now )?lifted"
    rf"|(?:no longer|do(?:es)?{NOT}) appl\w+)"
)
"""That a rule, named by what it is about, holds no more."""

_RULE = r"(?:rule|limit|restriction|requirement|constraint|deadline|budget)s?"
LIFTS = (
    Phrases(
        rf"\b{AFTER_ALL}|\b(?:{_RATHER})\b"
        r"|\b(?:instead|forget (?:about|it|that|the|what|my|those|everything|(?-i:[A-Z])\w+)|never ?mind|scrap"
        r"|scratch (?:that|this"
        r"|the)"
        r"|make (?:it|that) [€$£]?(?=\d)"
        rf"|(?:ignore|disregard) (?:the|that|what|my|those|these|all|any|earlier|previous)|drop (?:the|that)"
        rf"|cancel (?:that|it|(?:the|my|this) (?:\w+ )?{_RULE})"
        r"|withdraw|withdrawn|no longer (?:appl\w+|holds?|valid|matters?|counts?|forbidden|in (?:force|effect))"
        rf"|(?:do(?:es)?|is|are){NOT} (?:apply|hold|matter|count|valid)|{_ENDS_ENGLISH}"
        r"|(?<!\bi )(?<!\bwe )(?:may|can|go ahead and|feel free to) .{1,60} (?:now|again|after all)"
        rf"|lift(?:ed)? (?:the|that)|{RULE_ENDS}|not anymore"
        r"|(?:line (?:length|width)|timeout|port|budget|limit|cap|maximum|threshold) is (?:now [€$£]?\d"
        r"|[€$£]?\d[\d.,]{0,12}(?: \w{1,12})? now)"
        r"|changed my mind|(?<!\bwhat )i meant|on second thought"
        r"|(?:this|that|which|it) replaces|replaces? (?:what|the (?:\w+ )?(?:rule|limit)"
        r"|(?:the|my) (?:earlier|previous|old)\b)"
        r"|from now on|rather than|(?:may|can) (?:now|again)"
        r"|(?:it['’]?s|is|are) (?:now )?(?:fine|ok|okay|allowed|off) (?:now|after all|again)|it['’]?s (?:fine|ok|okay"
        r"|allowed) to)\b|(?<!\w )\bactually\b(?!\W*$)",
        "rule instead forget never nevermind scrap scratch this that which make "
        "disregard ignore drop cancel withdraw no do don does is isn "
        "are aren you lift lifted not changed go feel i on replace from rather may can it its actually stop line "
        "timeout port budget limit cap maximum threshold skip in going any "
        "we you i let tout après mejor melhor meglio "
        "finalement utilise prends mets passe ajoute modifie fais change supprime installe touche pousse déploie lance "
        "écris garde al después usa use usemos pon haz añade agrega cambia instala toca borra edita escribe modifica "
        "sube despliega afinal coloque faça adicione mude altere mexa apague alla usi metti fai aggiungi tocca "
        "cancella scrivi gebruik neem doe maak voeg wijzig verander schrijf verwijder zet pas raak всё все использу "
        "добавь измени меняй удали установи сделай возьми пиши пушь трогай jednak użyj używaj dodaj zmień usuń "
        "zainstaluj zrób weź pisz wir nehmen "
        f"{_DO_ENGLISH} {_DO_GERMAN}",
    ),
    Phrases(
        rf"\b(?:{_ENDS_GERMAN}"
        rf"|stattdessen|{_FOR_SOMETHING}|ich meinte|vergiss|nicht mehr gültig|doch (?:nicht|lieber"
        r"|wieder)"
        r"|(?:ist|sind) (?:jetzt|nun|wieder) (?:ok|okay|erlaubt|gestattet|in ordnung)|gilt (?:ab \w+ )?nicht"
        r"|gelten nicht|aufgehoben|anders überlegt|ab jetzt|ignorier\w*|(?:darf|dürfen|darfst"
        r"|kann|können|kannst) (?:.{1,40} )?(?:jetzt|doch|nun|wieder)|jetzt (?:darf|kann)\w*)\b",
        "du musst brauchst hör stattdessen anstatt statt anstelle in em no ao al ich vergiss nicht doch "
        "gilt gelten aufgehoben anders ab ignorier darf dürfen kann "
        "können jetzt ist sind",
    ),
    Phrases(
        rf"\b(?:{_ENDS_FRENCH}|plutôt|à la place|au lieu d[eu]"
        r"|je voulais dire|oublie[zr]?|ignore[zr]? (?:la|les?|ce\w*|ma|mes)"
        r"|finalement|n(?:e |['’])(?:est"
        r"|s['’]applique|vaut|tient) plus|(?:tu peux|vous pouvez|on peut) (?:.{1,40} )?(?:maintenant|désormais"
        r"|à nouveau|de nouveau)|(?:maintenant|désormais),? (?:tu peux|vous pouvez|on peut))\b",
        "plus pas arrête plutôt à au je oublie ignore finalement ne n tu vous il on maintenant désormais",
    ),
    Phrases(
        rf"\b(?:{_ENDS_SPANISH}|{_ENDS_PORTUGUESE}|{_ENDS_ITALIAN})\b"
        r"|\b(?:en lugar|en vez|qu(?:ise|ería) decir|olvid[ae]\w*|ignora"
        r"|ya no (?:se )?(?:aplic\w+|val\w+|es"
        r"|hace falta|import\w+)"
        r"|(?:ahora|ya) (?:sí|puedes?|se puede|está permitido))\b|\b(?:em vez|quis dizer|(?<!\w )na verdade"
        r"|já não (?:vale|se aplica)|esque[çc][ae]|ignore (?:os?|as?|isso)"
        r"|não (?:vale|se aplica) mais|(?:agora|já) (?:você )?(?:pode|podes|é permitido))\b|\b(?:invece|volevo dire"
        r"|dimentica\w*"
        r"|ignora|non (?:vale|si applica) più|(?:ora|adesso) (?:puoi|si può|potete)|puoi (?:ora|adesso|di nuovo))\b",
        "deja deje no para pare deixa deixe smetti smettila en quise quería olvida ignora ya ahora em quis na esqueç "
        "ignore não agora já invece volevo dimentica non "
        "ora adesso puoi",
    ),
    Phrases(
        rf"\b(?:{_ENDS_DUTCH}|{_ENDS_RUSSIAN})\b"
        r"|\b(?:in plaats|ik bedoelde|vergeet|negeer|niet meer geldig|geldt niet|nu (?:mag|kan) je"
        r"|(?:mag|mogen) (?:.{1,40} )?(?:nu|weer|toch))\b|\b(?:вместо|имел[аи]? в виду|забудь\w*|игнорируй\w*"
        r"|больше не (?:действует|актуальн\w+)"
        r"|отмен\w* (?:это|правил|ограничен|запрет|требован|лимит|бюджет|срок)\w*|отменя[ею]тся"
        r"|(?:теперь|снова|уже) (?:можно|можешь|разреш\w+)"
        r"|можно (?:теперь|снова))\b",
        "je jij hoef hou stop не можешь можно перестань прекрати in ik имел vergeet negeer niet geldt nu mag mogen "
        "вместо забудь игнорируй больше отмен теперь снова уже можно",
    ),
    Phrases(
        r"\b(?:nie (?:musisz|trzeba) już|już nie (?:musisz|trzeba|obowiązuje)|zapomnij o|zamiast"
        r"|jednak (?:nie|użyj|możesz)|(?:możesz|można|wolno) (?:już|teraz|znowu)"
        r"|(?:teraz|już|znowu) (?:możesz|można|wolno)|cofam)\b",
        "nie już zapomnij zamiast jednak możesz można wolno teraz znowu cofam",
    ),
    Phrases(
        rf"{_ENDS_ASIAN}"
        rf"|{_CHINESE_SWAPS}|改到|推迟到|提前到|不用了|算了|取消|撤[销銷]|忘掉|忽略|(?:现在|現在|以[后後]"
        rf"|今[后後])可以|允[许許]你"
        r"|不算(?=[数了。，,；;！!]|$)|我的意思是|作[废廢]|解除"
        rf"|不再(?:[适適]用|有效|使用)|{_JAPANESE_SWAPS}|やっぱり|取り消|忘れて|無視して|[てで]も?いい"
        r"|[てで]も?構いません|かまいません|許可します|撤回|대신|취소|더 이상|잊어|무시해|이제.{0,20}도 ?(?:돼|됩|괜찮"
        r"|좋)|도 ?(?:돼요|됩니다|된다|괜찮)"
    ),
    Phrases(
        rf"{_ENDS_HINDI_ARABIC}"
        r"|के बजाय|की जगह|के बदले|भूल जा|अब .{1,60}सकत[ेाी] (?:हैं|हो|है)|अब .{0,40}(?:लागू नहीं"
        r"|ज़रूरत नहीं|जरूरत नहीं)|रद्द कर|मेरा मतलब"
        r"|\bبدل(?:ا|اً|ًا) |\b(?:انس|انسَ|تجاهل) (?:ما|أمر|ال|تلك|ذلك|هذ)|\bيمكنك .{0,60}الآن"
        r"|\bالآن (?:يمكنك|مسموح)|\bلم ي?عد .{0,40}"
        r"(?:ساري|مطلوب|ينطبق|تنطبق|صالح|ضروري)|\b(?:ألغ|ألغِ) |\bكنت أقصد"
    ),
)
"""The user takes something back or puts something else in its place."""

_TURN = (
    r"(?:fail\w*|crash\w*|broken?|breaks|passe[ds]|works?|worked|(?:is|are|was|were) (?:\w+ing|(?:(?:too|very|so|quite"
    r"|really|still|already|much) )?(?:slow|fast|good|bad|nice|great|better|worse|down|up|back|stuck|busy|wrong|right"
    r"|correct|installed|missing|empty|old|ready|done))"
    r"|marche(?:nt)?|fonctionne(?:nt)?|plante(?:nt)?)\b"
)
STAYS = Phrases(
    rf"\b(?:(?:do(?:n?['’]?t| not)|never|did|didn['’]?t|you|i|we|they|he|she|users?|always)(?: (?:i|you|we|they|ever))?"
    r" forg[eo]t\w*|(?:ne |n['’])(?:l[ae]s? |l['’])?oubli\w*|no (?:te |se |l[ao]s? |me )*olvid\w*"
    r"|n[ãa]o (?:se |te )?esque[çc]\w*"
    r"|non (?:ti |l[ao] )?dimentic\w*|не забы?[уву]\w*|nie (?:zapom|zapam)\w*"
    r"|ver(?:giss|geet) (?:(?!was\b|dass\b|wat\b|dat\b)[^\s,.!?]{1,30} ){0,4}(?:nicht|niet))\b"
    r"|(?:别|不要)忘|忘れ(?:ない|ず)|잊지 ?마|\A\W*(?:ok(?:ay)?,? |oh,? )?never ?mind[,.;:]"
    rf"|\b(?:actually|finalement),? (?:(?:i|we|he|she|they) (?:just |already |also )?"
    rf"(?!(?:decid|chang|want|need|allow|agree|prefer)ed\b)\w{{2,20}}ed\b|(?:[^\s.,;!?]{{1,20}} ){{1,6}}{_TURN})"
    r"|\b(?:(?:is|are|was|were|gets?|got) (?:\w{2,20} )?\w{2,20}ed|shows?|shown|showed|renders|returns|returned|imports"
    r"|loads|opens|prints|displays|sends) (?:[^\s.,;!?]{1,30} ){0,5}instead\b"
)
"""What is in words that take something back and takes nothing back: reminders, and what happened."""

ONCE = Phrases(
    r"\b(?:(?:just|only) (?:for )?(?:this once|once)|(?:for )?this (?:one )?(?:time|once)|as an exception|exceptionally"
    r"|ausnahmsweise|dies(?:es)?(?: eine)? ?mal|cette fois(?:-ci)?|exceptionnellement|(?:d?esta|questa) (?:vez|volta)"
    r"|excepcionalmente|eccezionalmente|deze keer|bij uitzondering|этот раз|в порядке исключения|tym razem"
    r"|wyjątkowo)\b"
    r"|[这這]一?次|破例|今回(?:だけ|のみ|に限り)|이번(?:만|에만|엔|에는)"
)
"""Something may be done once, or left out: the rule against it holds from then on."""

ALLOWS = Phrases(
    rf"\b{AFTER_ALL}"
    r"|\b(?:(?:may|can|go ahead and|feel free to) .{1,60} (?:now|again|after all)|(?:may|can) (?:now|again)"
    r"|(?:it['’]?s|is|are) (?:now )?(?:fine|ok|okay|allowed)|(?:darf|dürfen|darfst|kann|können|kannst) (?:.{1,40} )?"
    r"(?:jetzt|doch|nun|wieder)|jetzt (?:darf|kann)\w*|(?:ist|sind) (?:jetzt|nun|wieder) (?:ok|okay|erlaubt|in ordnung)"
    r"|(?:tu peux|vous pouvez|on peut) (?:.{1,40} )?(?:maintenant|désormais|[àd]e? nouveau)|(?:maintenant|désormais),? "
    r"(?:tu peux|vous pouvez|on peut)|(?:ahora|ya) (?:puedes?|se puede)|(?:agora|já) (?:você )?podes?"
    r"|(?:ora|adesso) (?:puoi|si può|potete)|puoi (?:ora|adesso|di nuovo)|nu (?:mag|kan) je"
    r"|(?:mag|mogen) (?:.{1,40} )?(?:nu|weer|toch)|(?:теперь|снова|уже) (?:можно|можешь)"
    r"|можно (?:теперь|снова)|(?:możesz|można|wolno) (?:już|teraz|znowu)"
    r"|(?:teraz|już|znowu) (?:możesz|można|wolno))\b|(?:现在|以后|今后)可以|允许你"
    r"|[てで]も?(?:いい|構いません|かまいません)|도 ?(?:돼요?|됩니다|된다|괜찮)"
)
"""Something may be done. That takes back what forbids it, and nothing of what demands it."""

MEANT = Phrases(
    r"(?:\b(?:(?<!\bwhat )i meant|ich meinte|je voulais dire|qu(?:ise|ería) decir|quis dizer|volevo dire|ik bedoelde"
    r"|имел[аи]? в виду)\b|मेरा मतलब|\bكنت أقصد|我的意思是)"
)
"""What was said is put right."""

SWAPS = Phrases(
    rf"\A(?!\W*(?:\w+,? ){{0,2}}{ASKS_WHY}).*?"
    rf"(?:\b(?:instead|rather than|stattdessen|{_FOR_SOMETHING}|plutôt|à la place|au lieu|en lugar|en vez|em vez"
    rf"|invece|in plaats|вместо|zamiast)\b|\b(?:{_RATHER})\b|के बजाय|की जगह|के बदले|\bبدل(?:ا|اً|ًا) "
    rf"|{_CHINESE_SWAPS}|{_JAPANESE_SWAPS}|대신"
    rf"|{MEANT.pattern})"
)
"""What puts something in the place of something, in a question as well: ``could you use port 9000 instead?``, and not
why it was done."""

PASSED_OVER = Phrases(
    rf"\b(?:instead of|rather than|{_FOR_SOMETHING}|à la place d[eu]|au lieu d[eu]|en (?:lugar|vez) del?|em vez d[aeo]"
    r"|invece d(?:i|el)|in plaats van|вместо|zamiast)\b[^,.;:!?]*|(?:代替|取代)[^，。,；;！!]*"
)
"""What something else is put in the place of, where words say so: ``instead of main``."""

PERMITS = (
    Phrases(
        rf"{first('please', 'and', 'but', 'so', 'ok', 'okay', 'yes', 'yeah', 'now')}\b(?:feel free to|go ahead and)\b"
        r"|\b(?:(?:you|u)(?:['’]re| are)? (?:can|may|allowed to|free to)|(?:it['’]?s|is|are)"
        r" (?:now |totally |perfectly )?(?:fine|ok|okay|allowed|permitted|welcome)"
        r"|we (?:can|may) (?:now|(?=.{1,60} now\W*\Z)))\b"
        rf"|{_BEFORE}use (?:[^\s,.;]{{1,30}} ){{1,6}}again(?=\W*\Z)",
        "you feel go it its is are we use",
    ),
    Phrases(
        r"\b(?:(?:du|ihr|man|sie) (?:darfst|dürft|darf|dürfen|kannst|könnt|kann|können)|(?:ist|sind|geht) (?:jetzt |nun"
        r" |wieder )?(?:ok|okay|erlaubt|gestattet|in ordnung))\b",
        "du ihr man sie ist sind geht",
    ),
    Phrases(
        r"\b(?:(?:tu peux|vous pouvez|on peut)|(?:est|sont) (?:ok|permise?s?|autorisée?s?)"
        r"|puedes?|pueden|se puede|están? (?:bien|permitid[oa]s?)|puoi|potete|si può|va(?:nno)? bene|podes?|podem"
        r"|(?:estão|está|são|é) (?:ok|liberad[oa]s?|permitid[oa]s?)"
        r"|(?:è|sono) (?:ok|permess[oaie]|consentit[oaie]|ammess[oaie]))\b",
        "estão são é è sono tu vous on est sont puede pueden se está están puoi potete si va vanno pode podem",
    ),
    Phrases(
        r"\b(?:можешь|можно|możesz|można|wolno|(?:je|jij) (?:mag|kunt|kan))\b", "можешь можно możesz można wolno je jij"
    ),
    Phrases(
        r"可以|允许|[てで]も?(?:いい|良い|よい|ok|大丈夫|構いません|かまいません)|도 ?(?:돼요?|됩니다|된다|괜찮)"
        r"|सकत[ेाी]|يمكنك|مسموح"
    ),
)
"""Something may be done, in fewer words than those that take something back: a text that says only this allows what is
forbidden in the same words.
"""

AMOUNT = (
    r"[€$£]?#(?: ?(?:%|[€$£]|k|percent|prozent|seconds?|secs?|s|ms|minutes?|mins?|hours?|days?|weeks?|eur|euros?|usd"
    r"|dollars?|gbp|pounds?|chf|characters?|chars?|columns?|words?|tokens?|sekunden?|minuten?|stunden?|tage?n?|wochen?"
    r"|zeichen|wörter|secondes?|heures?|jours?|mots|segundos?|minutos?|horas?|días?|palabras|secondi|minuti|giorni"
    r"|ore|parole|dias|palavras|seconden|minuten|dagen|uur))?(?!\w)"
)
"""A figure or a day, and what it is counted in."""

SETS = (
    r"(?:\b(?:to|at|auf|bei|à|au|a|al|para|naar|op)|\b(?:is|are|ist|sind|est|es|é|è|zijn) (?:now|jetzt|nun|maintenant"
    r"|désormais|ahora|agora|ora|adesso|nu)|\b(?:ahora|agora|ora|adesso) (?:es|é|è)(?: d[ei])?|\bbeträgt (?:jetzt|nun))"
    rf" {AMOUNT}(?:,? (?:now|please|pls|instead|jetzt|bitte|ahora|agora|ora))?\Z"
    rf"|\b(?:is|are|ist|est|es) {AMOUNT} (?:now|jetzt|maintenant|ahora)\Z"
)
"""Something is set to a value, and nothing else is said behind it."""

SETTING = (
    "the a our my is are be must should has have been now to at of for let lets s us we please pls ok okay then "
    "actually instead from on raise raised set change changed increase increased lower lowered reduce reduced extend "
    "extended move moved push pushed shift shifted bump bumped update updated up down back make made it that "
    "das der die den ist sind beträgt liegt bei auf jetzt nun ab bitte erhöhe erhöhen senke senken setze setzen ändere "
    "ändern verschiebe verschieben verschoben verlängert erhöht gesenkt geändert wir "
    "le la les l est sont de d à au passe passé passons désormais maintenant "
    "el los es son ahora pasa sube baja cambia cambió mueve movió al para o os é são agora passa muda mudou "
    "il lo è sono ora adesso di sale nu naar op het"
)
"""Words that say nothing of what is set."""

_CHANGED = (
    rf"(?:{_CHINESE_SWAPS}|改到|调到|调整[到为]|设[为成]|设置[为成]|定[为在]|提[高升]到|增加?[到至]|降低?[到至]"
    rf"|减少?[到至]"
    r"|延长[到至]|缩短[到至]|推迟[到至]|提前[到至])"
)
_OFTEN_CHINESE = r"(?:请|請|务必|必须|必須|一律|统一|都|把|将|那|就|现在|以后){0,3}"
_OFTEN_JAPANESE = r"(?:必ず|今後は|これからは|やはり|やっぱり|代わりに|では|じゃあ)?、?"
_SET_JAPANESE = (
    r"(?:使って|使用して|変更|変えて|して|します|増や|減ら|上げ|下げ|引き上げ|引き下げ|延長|延期"
    r"|設定)[^、。,]{0,8}[。．｡！!]?"
)
_SET_KOREAN = r"(?:사용|쓰세요|써|바꿔|변경)[^,.]{0,8}[.!]?"
ASIAN_VALUES = (
    rf"{_OFTEN_CHINESE}(预算|上限|限额|期限|截止(?:日期|时间)?|端口(?=号?)|超时(?:时间)?)号? ?{_OFTEN_CHINESE}"
    rf"(?:是|为|：|:|使?用|{_CHANGED})(?=[^，,。；;]{{0,8}}[\d一二三四五六日天])[^，,。；;\d]{{0,6}}[\d.:]*"
    r"[^，,。；;\d]{0,4}[。．｡！!]?"
    rf"|{_OFTEN_CHINESE}(?:采用|使?用|{_CHANGED}) ?\d+ ?号?(端口)[吧了]?[。．｡！!]?"
    rf"|{_OFTEN_JAPANESE}(予算|上限|期限|締め?切り?|ポート|タイムアウト)(?:番号)?(?:は|を|：| |(?=\d))"
    r"(?=[^、。,]{0,8}(?:\d|曜))[^、。,\d]{0,6}"
    rf"(?:[\d.:]*(?:円|ユーロ|ドル|秒|分|日|月|番|曜日?)){{0,3}}[\d.:]*(?:(?:です|まで|まで(?:です))?[。．｡！!]?"
    rf"|[をに]{_SET_JAPANESE})"
    rf"|{_OFTEN_JAPANESE}\d+ ?番?(ポート)[をに]{_SET_JAPANESE}"
    r"|(예산|한도|기한|마감)(?:은|는|을|를)? (?:이제 )?\d[\d.,]*[^\s\d,.]{0,4}(?:입니다|이에요|예요"
    r"|로 (?:변경|바꿔)[^,.]{0,8})?[.!]?"
    rf"|(?:(?:반드시|꼭|이제|대신|앞으로는?) )?(?:\d+ ?번? ?(포트)|(포트)(?:는|를)? ?\d+ ?번?)(?:을|를|로"
    rf"|으로)? ?{_SET_KOREAN}"
)
"""The whole of a text that says only this, with its figures."""
