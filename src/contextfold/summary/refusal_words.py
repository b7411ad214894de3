"""How models say that they will not, or cannot, sum up, in each language spoken here.

What belongs here: patterns of apologies, errors, placeholders and openings of a chat. What does not: where they count
(``accept``). An answer that is one of these sums up nothing, whatever language the prompt asked for.
"""

from __future__ import annotations

APOLOGIES = (
    # English
    r"i[’']?m (?:very |so )?sorry|i am sorry|sorry,|i apologi[sz]e|i (?:can[’']?t|cannot|can not|won[’']?t)\b"
    r"|i am (?:not able|unable)|i[’']?m (?:not able|unable)|unfortunately,? i|as an ai\b"
    # German, French
    r"|(?:es )?tut mir (?:sehr )?leid|leider (?:kann|konnte|darf) ich|ich (?:kann|konnte|darf) (?:[^.]{1,40} )?nicht\b"
    r"|entschuldigung|als ki\b"
    r"|(?:je suis )?désolée?\b|je (?:ne (?:peux|puis|suis pas)|n[’']ai pas pu)\b|malheureusement,? je"
    r"|en tant qu[’']ia\b"
    # Spanish, Portuguese, Italian
    r"|lo siento|lo lamento|(?:lamentablemente,? )?no (?:puedo|me es posible)\b|como ia\b"
    r"|(?:me )?desculpe|desculpa,|sinto muito|(?:infelizmente,? )?(?:eu )?não (?:posso|consigo|me é possível)\b"
    r"|mi dispiace|(?:purtroppo,? )?non (?:posso|riesco|mi è possibile)\b"
    # Dutch, Russian, Polish
    r"|het spijt me|sorry, ik|helaas kan ik|ik kan (?:[^.]{1,40} )?niet\b"
    r"|извините|простите|к сожалению,? я|я не (?:могу|смогу|смог)\b"
    r"|przepraszam|przykro mi|(?:niestety,? )?nie mog[ęe]\b"
    # Chinese, Japanese, Korean
    r"|(?:很|非常|十分)?抱歉|[对對]不起|不好意思|我(?:无法|無法|不能|没有?办法|沒有?辦法)|作[为為](?:一[个個])?(?:ai"
    r"|人工智[能慧])"
    r"|申し訳|すみません|ごめん|恐れ入りますが|あいにく|残念ながら、?(?:私|わたし)"
    r"|죄송|미안|안타깝지만 저는|저는 [^.]{0,40}(?:할 수 없|드릴 수 없)"
    # Hindi, Arabic
    r"|क्षमा कर|माफ़? ?(?:कीजिए|करें|कर)|मुझे खेद|मैं [^।.]{0,40}नहीं (?:कर )?सकत"
    r"|آسف|عذرا|عذرًا|أعتذر|(?:أنا )?لا (?:أستطيع|يمكنني)|لن أتمكن"
)
"""What such an answer begins with."""

ERRORS = (
    r"error (?:code|generating|summari[sz]ing|while)\b|error:|exception:|traceback \(most recent"
    r"|(?:api|http|internal(?: server)?|server|request) error\b|service unavailable|too many requests|rate limit"
    r"|bad gateway|gateway time|\{\s*[\"']error[\"']|[45]\d\d\b(?!,)"
    r"|(?:fehler|erreur|erro|errore|fout|ошибка|błąd|त्रुटि|خطأ) ?:|zu viele anfragen|trop de requêtes"
    r"|demasiadas solicitudes"
    r"|(?:错误|錯誤|エラー|오류) ?[:：]|(?:生成)?(?:摘要|总结|總結)(?:[时時])?(?:出错|出錯|发生错误|發生錯誤)"
    r"|(?:系统|系統|服务器?|服務|伺服器|网络|網路)(?:暂时|暫時|当前|目前)?(?:繁忙|不可用|异常|異常|错误"
    r"|錯誤)(?=[，,。！!]|$)"
    r"|[请請]求(?:过于频繁|過於頻繁|超时|超時|失败|失敗)(?=[，,。！!]|$)"
    r"|エラーが(?:発生|起き)|サーバーエラー|サービスは?が?(?:現在|一時的に)?(?:、)?(?:利用|ご利用)(?:できません"
    r"|いただけません)"
    r"|リクエストが多すぎ|오류가 발생|서버 오류|요청이 너무 많"
)
"""The same of errors."""

_SPOKEN = r"(?:[对對][话話]|[会會][话話]|聊天|消息|[历歷]史|[内內]容|文本)"
_BEFORE = r"(?:之前|先前|以前|此前|前面|早先|以上|上述|[该该这這]段?|此|本)的?"
_SUMS = r"(?:总结|總結|概括|摘要|[归歸][纳納])"
_LONG = r"[过過太][长長多]了?"
_LEFT_OUT = r"已?被?(?:省略|截[断斷]|[删刪]除)了?"
_CHINESE = (
    rf"(?:{_BEFORE})?(?:{_SPOKEN}|[记記][录錄]){{1,3}}(?:{_LEFT_OUT}|{_LONG}(?:[，,](?:因此|所以|故)?{_LEFT_OUT})?)"
    rf"|(?:由于|由於|因[为為])?(?:(?:{_BEFORE})?{_SPOKEN}{{1,2}}{_LONG}[，,]?(?:因此|所以|故)?)?"
    r"(?:无法|無法|不能|[没沒]能|未能)(?:[进進]行|生成|完成|提供)?"
    rf"(?:[对對]?(?:{_BEFORE})?{_SPOKEN}{{1,2}}(?:[进進]行)?)?{_SUMS}(?:(?:{_BEFORE})?{_SPOKEN}{{0,2}}(?:[记記][录錄])?)"
    rf"|(?:[暂暫]?[无無]|[没沒]有)(?:(?:可以?|需要){_SUMS}|可用|可供|任何|更多|新)?的?(?:{_SUMS}"
    rf"|{_SPOKEN}{{1,2}})(?:[内內]容|[记記][录錄])?"
    rf"(?:(?:可以?|需要|能){_SUMS})?"
    rf"|(?:{_SPOKEN}的?)?{_SUMS}(?:生成)?(?:不可用|失[败敗]|[为為]空|待定|暂缺|從缺|缺失)"
    rf"|[\[【（(「]{_SPOKEN}?的?(?:{_SUMS}|已?省略|略|空|[无無]|已?截[断斷])[\]】）)」]|[无無空略]"
)
_JAPANESE = (
    r"(?:以前|これまで|過去|先|先ほど|上記|この|前|今まで)?の?(?:会話|対話|メッセージ|履歴|やり取り|内容)(?:履歴|内容"
    r"|の内容|の履歴)?[はが]"
    r"(?:長す?ぎ(?:ました|ます|る|た)?"
    r"|(?:省略|切り捨て|切り詰め|削除)(?:(?:され|し)(?:ました|ています|た))?|ありません|存在しません)"
    r"|(?:[^。]{0,20}(?:長すぎ|多すぎ)[^。]{0,10}(?:ため|ので|て)、?)?要約(?:を|は|が|の)?(?:生成"
    r"|作成)?(?:する)?(?:こと)?[はがに]?"
    r"(?:でき(?:ません|ない|なかった)|不可(?:能)?|失敗|利用でき|あり)(?:でした|ません|しました|です|する|でし|た)*"
    r"|要約(?:する|すべき|できる)?(?:内容|会話|もの|対象|履歴)?[はが]?(?:ありません|なし|ない|存在しません)(?:でした)?"
    r"|[\[【（(「](?:会話|対話)?の?(?:要約|省略|略|空|なし)[\]】）)」]|(?:該当|特に)?なし|省略"
)
_KOREAN = (
    r"(?:이전|앞선|지난|위) ?(?:대화|메시지|내역|내용)(?: ?(?:내용|기록))?[은는이가]? ?"
    r"(?:너무 [길긴](?:어서|기 때문에)?(?: 요약[^.]{0,20})?|(?:생략|삭제)(?:되었습니다|했습니다|됨)?|잘렸습니다"
    r"|없습니다|없음)"
    r"|(?:[^.]{0,20}너무 [길긴][^.]{0,10} )?요약(?:을|할|하는 것[은이]|[은이에])? ?(?:내용이 |대화가 )?(?:생성"
    r"|작성)?(?:할 )?"
    r"(?:수 ?(?:가 )?없|하지 못|못|실패|불가|없)[^.]{0,20}"
    r"|\[(?:대화 )?(?:요약|생략)\]|(?:해당 ?)?없음|생략"
)
_GERMAN = (
    r"(?:das |die |der )?(?:vorherig|bisherig|früher|vorangegangen)\w* (?:unterhaltung|konversation|gespräch\w*+"
    r"|nachrichten"
    r"|verlauf|inhalte?)[^.]*(?:zu lang|ausgelassen|gekürzt|entfernt|nicht verfügbar)[^.]*+"
    r"|(?:die )?zusammenfassung (?:ist )?(?:nicht (?:verfügbar|möglich)|fehlgeschlagen)"
    r"|(?:keine?|nichts)(?: (?:vorherig|früher|neu|weiter)\w*)? (?:unterhaltung|nachrichten|zusammenfassung|verlauf"
    r"|inhalte?|zusammenzufassen)(?: (?:vorhanden|verfügbar|zum zusammenfassen))?"
)
_FRENCH = (
    r"(?:la |les |l[’'])?(?:conversation|messages?|historique|échanges?) (?:précédente?s?"
    r"|antérieure?s?)[^.]*(?:trop long"
    r"|omis|tronqué|supprimé|indisponible)[^.]*+"
    r"|(?:aucune?|pas de|rien à)(?: (?:nouve\w+|autres?))? (?:conversation|messages?|historique|résumé|contenu|résumer)"
    r"(?: (?:précédent|antérieur|disponible)\w*| à résumer)?"
    r"|(?:le )?résumé (?:est )?(?:indisponible|non disponible|impossible)|impossible de (?:résumer|générer)[^.]*+"
)
_SPANISH = (
    r"(?:la |el |los )?(?:conversación|mensajes|historial) (?:anterior(?:es)?|previ[oa]s?)[^.]*(?:demasiado larg|omitid"
    r"|truncad|eliminad|no disponible)[^.]*+"
    r"|(?:no hay(?: nada)?(?: que)?|ning[uú]na?|nada que)(?: (?:nuev|otr)\w+)? (?:conversación|mensajes?|historial"
    r"|resumen|contenido|resumir)"
    r"(?: (?:previ|anterior|disponible)\w*| que resumir| para resumir)?"
    r"|(?:el )?resumen (?:no (?:está )?disponible|fallido)|(?:no se pudo|imposible) (?:resumir|generar)[^.]*+"
)
_PORTUGUESE = (
    r"(?:a |o |as )?(?:conversa|mensagens|histórico) (?:anterior(?:es)?|prévi[oa]s?)[^.]*(?:longa? demais|muito long"
    r"|omitid"
    r"|truncad|removid|indisponível)[^.]*+"
    r"|(?:não há|nenhuma?|nada (?:para|a))(?: (?:nov|outr)\w+)? (?:conversa|mensage[nm]s?|histórico|resumo|conteúdo"
    r"|resumir)(?: (?:prévi|anterior|disponíve)\w*| (?:para|a) resumir)?"
    r"|(?:o )?resumo (?:está )?(?:indisponível|não disponível)|não foi possível (?:resumir|gerar)[^.]*+"
)
_ITALIAN = (
    r"(?:la |i )?(?:conversazione|messaggi|cronologia) precedent[ei][^.]*(?:troppo lung|omess|troncat|rimoss"
    r"|non disponibile)[^.]*+"
    r"|(?:nessuna?|niente da|nulla da)(?: (?:nuov|altr)\w+)? (?:conversazione|messaggi[o]?|cronologia|riassunto"
    r"|riepilogo"
    r"|contenuto|riassumere)(?: (?:precedent|disponibil)\w*| da riassumere)?"
    r"|(?:il )?(?:riassunto|riepilogo) non (?:è )?disponibile|impossibile (?:riassumere|generare)[^.]*+"
)
_DUTCH = (
    r"(?:het |de )?(?:vorige|eerdere) (?:gesprek\w*+|conversatie|berichten)[^.]*(?:te lang|weggelaten|ingekort"
    r"|verwijderd"
    r"|niet beschikbaar)[^.]*+"
    r"|(?:geen|niets)(?: (?:vorig|eerder|nieuw)\w*)? (?:gesprek\w*+|berichten|samenvatting|inhoud|geschiedenis"
    r"|(?:om )?samen te vatten)(?: (?:beschikbaar|om samen te vatten))?"
    r"|(?:de )?samenvatting (?:is )?(?:niet beschikbaar|mislukt)"
)
_SLAVIC = (
    r"(?:предыдущ|прежн)\w+ (?:разговор|диалог|беседа|сообщени|переписк)\w*+[^.]*(?:слишком длин|опущен|обрезан|удален"
    r"|удалён|недоступ)[^.]*+"
    r"|(?:нет|ничего)(?: (?:предыдущ|нов)\w+)? (?:разговора|диалога|сообщений|истории|резюме|для резюмирования)"
    r"|(?:резюме|сводка|краткое содержание) недоступн\w+|(?:не удалось|невозможно) (?:создать|составить|сделать"
    r"|подвести"
    r"|резюмировать|обобщить)[^.]*+"
    r"|(?:poprzedni|wcześniejsz)\w+ (?:rozmow|konwersacj|wiadomości)\w*+[^.]*(?:zbyt dług|za dług|pominięt|obcięt"
    r"|usunięt"
    r"|niedostępn)[^.]*+"
    r"|brak (?:poprzedni\w+ )?(?:rozmowy|wiadomości|historii|podsumowania|streszczenia|treści)[^.]{0,20}"
    r"|(?:podsumowanie|streszczenie) (?:jest )?niedostępne|nie udało się (?:podsumować|streścić|wygenerować)[^.]*+"
)
_HINDI_ARABIC = (
    r"(?:पिछली|पिछला|पहले की) (?:बातचीत|वार्तालाप|संदेश)[^।.]*(?:बहुत लंब|छोड़|हटा)[^।.]*+"
    r"|(?:कोई )?(?:सारांश|पिछली बातचीत|संदेश) (?:उपलब्ध नहीं|नहीं (?:है|बन|बना))[^।.]*+|कोई नहीं"
    r"|(?:المحادثة|الرسائل) السابقة[^.]*(?:طويلة جد|محذوف|مقتطع)[^.]*+|لا (?:يوجد|توجد) (?:ملخص|محادثة|رسائل)[^.]{0,30}"
    r"|(?:الملخص )?غير متاح|(?:تعذر|لا يمكن) (?:تلخيص|إنشاء)[^.]*+|لا شيء"
)
PLACEHOLDERS = (
    # Only what cannot be a summary. "Summary" alone is short, but it is what test doubles of chat models answer.
    r"(?:the )?(?:previous|earlier|prior) (?:conversation|messages|history)[^.]*"
    r"(?:too long|omitted|truncated|removed|unavailable)[^.]*+"
    r"|conversation (?:history )?(?:was |is )?(?:too long|truncated|omitted)[^.]*+"
    r"|(?:no|nothing)(?: (?:previous|prior|new|further))? "
    r"(?:conversation|messages?|history|summary|content|to summari[sz]e)[^.]*+"
    r"|(?:the |conversation )?summary (?:is )?(?:unavailable|not available|failed|pending|goes here)[^.]*+"
    r"|(?:failed|unable|not able) to (?:summari[sz]e|(?:generate|create|produce) (?:an? |the )?summary)[^.]*+"
    r"|(?:could not|cannot|can[’']?t) (?:summari[sz]e|(?:generate|create|produce) (?:an? |the )?summary)[^.]*+"
    r"|summari[sz]ation (?:failed|unavailable|is not possible)[^.]*+"
    r"|\[(?:conversation )?summary\]|\[?(?:truncated|omitted|content removed)\]?"
    r"|n/?a|none|null|todo|tbd|undefined|keine?|aucune?|ninguno?|nenhum|nessuno|geen|нет|brak"
    rf"|{_CHINESE}|{_JAPANESE}|{_KOREAN}|{_GERMAN}|{_FRENCH}|{_SPANISH}|{_PORTUGUESE}|{_ITALIAN}|{_DUTCH}|{_SLAVIC}"
    rf"|{_HINDI_ARABIC}"
)
"""What is all of such an answer, but for a sign at its end."""

_HELLO = (
    r"(?:¡?(?:hello|hi|hey|hallo|guten tag|bonjour|salut|hola|olá|oi|ciao|salve|здравствуйте|привет|cześć|dzień dobry"
    r"|你好|您好|こんにちは|안녕하세요)(?: there)?[!,.！，。、 ]{0,3})?"
)
_OFFERS = (
    r"how (?:can|may|could) i (?:help|assist|be of (?:help|assistance|service))\b[^.?!\n]{0,60}"
    r"|what (?:can i do for you|would you like(?: me)? to do|do you need)(?: next| now| today| first)?"
    r"|wie (?:kann|darf) ich (?:ihnen|dir|euch) [^.?!\n]{0,40}(?:helfen|behilflich sein)"
    r"|was kann ich für (?:sie|dich|euch) tun"
    r"|(?:comment|en quoi) (?:puis-je|est-ce que je peux) [^.?!\n]{0,20}(?:aider|assister|être utile)[^.?!\n]{0,30}"
    r"|¿?(?:en qué|cómo) (?:te |le |os |les )?puedo (?:ayudar|asistir)\w*[^.?!\n]{0,40}"
    r"|(?:como|em que) posso (?:te |lhe |o |a )?(?:ajudar|auxiliar)[^.?!\n]{0,40}"
    r"|(?:come|in cosa|in che modo) posso (?:aiutar|assister|esser)\w*[^.?!\n]{0,40}"
    r"|(?:hoe|waarmee) kan ik (?:je|u|jou|jullie) [^.?!\n]{0,40}(?:helpen|van dienst zijn)"
    r"|(?:чем|как) (?:я )?(?:могу|можем) (?:вам |тебе )?(?:помочь|быть полез\w+)[^.?!\n]{0,40}"
    r"|(?:w czym|jak) mogę (?:ci |panu |pani )?pomóc[^.?!\n]{0,30}"
    r"|(?:请问|請問)?(?:今天)?(?:有什[么麼]|我能|我可以|需要我)[^。？！?!\n]{0,24}(?:[帮幫]|[协協]助|[为為][您你]服[务務])"
    r"[^。？！?!\n]{0,12}"
    r"|(?:今日は|本日は)?、?(?:何か|なにか|どのような|どういった)[^。？！?!\n]{0,24}(?:お手伝い|お力|ご用)[^。？！?!\n]{0,20}"
    r"|(?:오늘 )?(?:무엇을|뭘|어떻게|어떤)[^.?!\n]{0,24}(?:도와|도움)[^.?!\n]{0,16}"
)
_ANNOUNCES = (
    r"(?:(?:sure|certainly|of course|absolutely|okay|ok)\b[,.! ]{0,3})?"
    r"(?:here(?:[’']s| is)|below is) (?:a|an|the|your|my) [^:\n]{0,60}summary[^:\n]{0,60}:"
    r"|(?:hier|nachfolgend) (?:ist|folgt) (?:die|eine) [^:\n]{0,60}zusammenfassung[^:\n]{0,60}:"
    r"|voici (?:un|le) [^:\n]{0,40}résumé[^:\n]{0,60}:|aquí (?:está|tienes|tiene) [^:\n]{0,40}resumen[^:\n]{0,60}:"
    r"|(?:好的[，,])?(?:以下|下面)(?:是|为|為)[^：:\n]{0,20}(?:[总總][结結]|摘要)[^：:\n]{0,10}[：:]"
    r"|以下(?:は|が|に)[^：:\n]{0,24}要約[^：:\n]{0,12}[：:]|다음은 [^:\n]{0,30}요약[^:\n]{0,16}:"
)
OPENINGS = rf"{_HELLO}(?:{_OFFERS})|{_ANNOUNCES}"
"""How small models answer a prompt that they take for the beginning of a chat, or announce a summary and stop: all of
such an answer, but for signs at its end.
"""
