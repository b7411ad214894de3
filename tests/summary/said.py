"""What people say to agents: rules in each language that is spoken here, talk that sets none, and what lifts a rule."""

from __future__ import annotations

RULES = {
    "en": """
Under no circumstance should you touch prod.
Commit messages have to be in English.
Commit messages should be in English
Nothing gets deployed without my approval.
It must run offline.
We must keep the API stable.
they must not change the schema
I don't want any new dependencies.
I don’t want to use Redux here
i dont want comments in the code
No new dependencies, please.
no emojis
no deploys on friday
No deployments over the weekend.
No merges without a review.
No releases before 18:00.
No external services.
Keep answers under 100 words.
Keep the API stable.
please keep the diff small
Deploy before 2026-05-03.
finish it before friday
Freeze the branch until Friday.
Avoid global state.
please avoid any global variables
Make sure to run the linter.
be sure to run the tests
Stick to Python 3.11.
stick with the standard library
No more than three files.
The bundle should stay under 2 MB.
Refactor it without touching the tests.
Leave the config alone.
leave auth.py as is
Hands off the database.
do NOT push
DO NOT PUSH TO MAIN
don't ever commit secrets
dont touch the migrations
use only the standard library
Costs may not exceed 40 dollars.
You can't use eval.
we can't change the schema
you may not install packages
Use pnpm, not npm.
use tabs instead of spaces
max 3 retries
It has to work on Windows.
stay out of the vendor folder
stay within the budget
Limit responses to 3 sentences.
Ensure the tests pass on Windows.
Change nothing else.
Refrain from force pushing.
The vendor folder is off limits.
You shouldn't touch the lock file.
answer in less than 50 words
Use at most 2 threads
Under no circumstances write to production.
the deadline is friday
The refund cap for this ticket is €120.
The limit per order is 12 items.
Ask me before you delete anything.
Ask before installing packages.
Check with me first before pushing.
Every PR needs a test.
Each commit needs a ticket number.
Tests are mandatory.
No refunds over $50 without approval.
Nobody outside finance may see these numbers.
no inline styles
no semicolons
""",
    "de": """
Am Freitag nicht deployen
Freitags wird nicht deployt.
Lass die Finger von prod
Fass die Datenbank nicht an.
fass die tests nicht an
Bitte nicht pushen.
Nicht auf main pushen.
Vermeide globalen Zustand.
Gebrauche keine globalen Variablen.
Keine neuen Abhängigkeiten bitte.
keine emojis
Finger weg von der Produktion.
Lass die Konfiguration unverändert.
lass die config in ruhe
Halte dich an PEP 8.
Achte darauf, dass die Tests laufen.
Stell sicher, dass alles offline läuft.
Maximal 3 Dateien.
Das Bundle muss unter 2 MB bleiben.
antworte in weniger als 100 Wörtern
Fertig bis Freitag.
bis morgen muss das fertig sein
Es muss offline laufen.
Wir müssen die API stabil halten.
Ändere nichts anderes.
Antworte ausschließlich auf Deutsch.
Die Kosten dürfen 40 Euro nicht überschreiten.
Mach das, ohne die Tests zu ändern.
Verwende kein jQuery.
Auf keinen Fall committen.
Ich will keine neuen Pakete.
Ändere die Schnittstelle nicht.
Höchstens drei Wiederholungen.
Sag dem Kunden nichts von der Störung.
Erwähne die Störung nicht.
Sag in der Mail an die Kundin nichts von den Kosten.
Buche die Reise noch nicht.
Ruf Frau Weber nicht vor Mittag an.
Die Haftung soll auf 250.000 € begrenzt sein.
Das Budget liegt bei 900 Euro.
Frag mich, bevor du etwas löschst.
Zahlen nicht runden.
Jeder Commit braucht eine Ticketnummer.
Tests sind Pflicht.
""",
    "fr": """
Il ne faut pas toucher à la prod
touche pas à la prod
Utilise Postgres, pas MySQL
N'utilise pas la base de prod.
N’utilise pas la base de prod
Ne touche à rien d'autre.
ne touche pas aux tests
Pas de nouvelles dépendances.
pas d'emojis
Évite l'état global.
Il faut que ça marche hors ligne.
Ça doit marcher hors ligne.
Je ne veux pas de nouvelles dépendances.
Reste sous 2 Mo, maximum 3 fichiers.
Réponds en moins de 100 mots.
Termine avant vendredi.
d'ici vendredi
Laisse la config telle quelle.
Assure-toi que les tests passent.
Sans toucher aux tests.
Surtout ne pousse rien sur main.
En aucun cas la production.
Aucune dépendance externe.
Ne dépasse pas 40 euros.
Utilise uniquement la bibliothèque standard.
Vous ne devez pas modifier le schéma.
Tiens-toi à Python 3.11.
Budget total de 2 400 € pour le voyage.
le plafond est de 120 €
Ne parle pas de la panne au client.
Pas de vol avant 9 h du matin.
Demande-moi avant de supprimer quoi que ce soit.
""",
    "es": """
No despliegues los viernes
No se despliega los viernes
No puedes tocar producción
Usa Postgres, no MySQL
No uses la base de producción.
no modifiques los tests
No toques nada más.
Nada de dependencias nuevas.
Evita el estado global.
Tiene que funcionar sin conexión.
Debe funcionar sin conexión.
Hay que mantener la API estable.
No quiero nuevas dependencias.
Responde en menos de 100 palabras.
Termínalo antes del viernes.
para el viernes
máximo 3 archivos
Deja la configuración como está.
Asegúrate de que pasen las pruebas.
Hazlo sin tocar las pruebas.
Usa solo la biblioteca estándar.
No superes los 40 euros.
Nunca hagas push a main.
no instales paquetes
Bajo ningún concepto borres datos.
Cíñete a Python 3.11.
Ninguna dependencia externa.
No programes nada los viernes.
no llames al cliente antes de las 9
No menciones la avería.
No le digas el precio al cliente.
El límite es de 120 euros.
Pregúntame antes de borrar nada.
Cada commit necesita un ticket.
""",
    "pt": """
Não faz deploy na sexta
Use Postgres, não MySQL
Não use o banco de produção.
não mexa nos testes
Não altere a API.
Nada de dependências novas.
Evite estado global.
Tem que funcionar offline.
Deve funcionar offline.
Não quero novas dependências.
Responda em menos de 100 palavras.
Termine até sexta.
no máximo 3 arquivos
Deixe a configuração como está.
Certifique-se de que os testes passam.
Faça sem tocar nos testes.
Use só a biblioteca padrão.
Os custos não podem ultrapassar 40 euros.
Nunca faça push para main.
não instale pacotes
De jeito nenhum apague dados.
Nenhuma dependência externa.
Não reinicie o servidor principal.
não ligue para a cliente antes das 9
Não mencione a falha.
Não diga o preço ao cliente.
O limite de réplicas é 6.
Pergunte antes de apagar qualquer coisa.
Não arredonde os números.
""",
    "it": """
Mai usare MySQL
Mai fare deploy di venerdì
Non puoi toccare la produzione
Non usare il database di produzione.
non toccare i test
Non modificare l'API.
Niente nuove dipendenze.
Evita lo stato globale.
Deve funzionare offline.
Devi mantenere stabile l'API.
Non voglio nuove dipendenze.
Rispondi in meno di 100 parole.
Finisci entro venerdì.
massimo 3 file
Lascia la configurazione così com'è.
Assicurati che i test passino.
Fallo senza toccare i test.
Usa solo la libreria standard.
Non superare i 40 euro.
Non fare mai push su main.
non installare pacchetti
In nessun caso cancellare i dati.
Nessuna dipendenza esterna.
Attieniti a Python 3.11.
Non chiamare il cliente prima delle 9.
non parlare del guasto
Non le dire il prezzo.
Il limite è di 120 euro.
La scadenza è il 3 maggio.
Chiedimi prima di cancellare qualcosa.
I test sono obbligatori.
""",
    "nl": """
Gebruik geen globale variabelen.
geen nieuwe dependencies
Raak de database niet aan.
wijzig de tests niet
Het moet offline werken.
We moeten de API stabiel houden.
Ik wil geen nieuwe pakketten.
Vermijd globale toestand.
Antwoord in minder dan 100 woorden.
Klaar voor vrijdag.
tot vrijdag niets uitrollen
maximaal 3 bestanden
Laat de configuratie zoals het is.
Laat de tests met rust.
Zorg dat de tests slagen.
Doe het zonder de tests te wijzigen.
Gebruik alleen de standaardbibliotheek.
De kosten mogen niet hoger zijn dan 40 euro.
Niet pushen naar main.
Blijf van de productie af.
In geen geval committen.
Houd je aan Python 3.11.
Bel de klant niet voor de middag.
noem de storing niet
Stuur die offerte aan de klant niet.
Stuur de offerte nog niet.
Zeg de klant niets over de prijs.
Het budget is 900 euro.
Vraag het me voordat je iets verwijdert.
Tests zijn verplicht.
""",
    "ru": """
Не используй глобальные переменные.
не трогай тесты
Не меняйте API.
Никаких новых зависимостей.
Избегай глобального состояния.
Это должно работать офлайн.
Мы должны сохранить API.
Не хочу новых зависимостей.
Отвечай не больше 100 слов.
Закончи до пятницы.
максимум 3 файла
Оставь конфиг как есть.
Убедись, что тесты проходят.
Сделай без изменения тестов.
Используй только стандартную библиотеку.
Расходы не должны превышать 40 евро.
Не пуш в main.
Не коммить в main.
Не удаляй данные.
Ни в коем случае не пиши в прод.
Придерживайся Python 3.11.
Не звони клиенту до обеда.
не упоминай сбой
Не трати время на тесты.
Не переводи названия функций.
Не говорите клиенту цену.
Лимит заказа 12 штук.
Не добавляй комментарии
Спроси меня, прежде чем что-то удалять.
Тесты обязательны.
""",
    "pl": """
Nigdy nie pushuj na main.
Zawsze pisz testy.
Nie dotykaj bazy danych.
nie zmieniaj API
Używaj tylko biblioteki standardowej.
Musi działać offline.
Nie wolno usuwać logów.
Bez emoji.
bez komentarzy w kodzie
Żadnych nowych zależności.
Maksymalnie 3 pliki.
Odpowiedź musi mieć mniej niż 100 słów.
Skończ do piątku.
Unikaj zmiennych globalnych.
Upewnij się, że testy przechodzą.
Trzymaj się Pythona 3.11.
Koszt nie może przekroczyć 40 euro.
Budżet wynosi 900 euro.
Pod żadnym pozorem nie commituj.
Nie chcę nowych zależności.
proszę nie usuwaj danych
Zostaw konfigurację bez zmian.
Nie pisz do klienta.
""",
    "zh": """
总是使用Postgres。
提交信息用英文。
删除前先问我。
别碰数据库。
请别修改测试
不要新增依赖。
不准推送到main。
必须离线运行。
避免全局变量。
回答控制在100字以内。
请在周五前完成。
最多三个文件。
保持接口不变。
只改这个文件。
不可以安装新的包。
你不能修改数据库。
预算是40美元。
预算不能超过40美元。
只用标准库。
确保测试通过。
绝不提交密钥。
除了测试,别动其他文件
千万别推到main
请用中文回答
接口不能变
合同金额上限是35万元。
报名期限改为3月22日
删除任何东西之前先问我。
全部用中文回复。
请勿修改数据库
不应该修改 API。
不该动 src/legacy 目录。
不允许使用 eval
一律使用 UTF-8 编码。
仅使用 PostgreSQL
配置文件不可修改。
决不提交密钥。
每个函数都要有文档字符串
保留原有注释
優先使用標準庫。
請勿修改資料庫。
務必先備份。
嚴禁推送到 main。
不許刪除紀錄。
請用繁體中文回答。
""",
    "ja": """
コミットメッセージは英語で。
削除する前に確認してください。
グローバル変数は使わないでください。
データベースに触らないで。
テストを変更しないこと。
新しい依存は追加しないでください
必ずテストを実行してください。
標準ライブラリだけを使ってください。
100文字以内で答えて。
金曜日までに終わらせて。
mainにpushしてはいけません。
mainにpushしちゃダメ
最大3ファイルまで。
設定はそのままにして。
テストを壊さずにリファクタして。
グローバル変数は避けてください。
勝手に消すな。
オフラインで動かなければならない。
予算は40ドルです。
日本語で答えること。
予算の上限は30万円です。
勝手にファイルを消さないように
ファイルを削除しないようにしてください
外部ライブラリは使用不可
eval は使うべきではない
APIの互換性は維持してください
納期は3月31日です
本番DBを変更してはならない
返信は日本語だけでお願いします。
""",
    "ko": """
전역 변수를 쓰지 마세요.
데이터베이스 건드리지 마
테스트를 수정하지 말아 주세요.
반드시 오프라인에서 동작해야 합니다.
새 의존성은 추가하지 마세요.
표준 라이브러리만 사용하세요.
100자 이내로 답해줘.
금요일까지 끝내줘.
main에 푸시하면 안 돼.
설정은 그대로 둬.
전역 상태는 피해 주세요.
비용이 40달러를 넘지 않게 해줘.
최대 3개 파일.
API를 안정적으로 유지해 주세요.
절대 커밋하지 마.
보고서 마감은 12월 3일입니다.
주문 한도는 12개입니다.
삭제하기 전에 먼저 물어봐 주세요.
답변은 한국어로만 해 주세요.
테스트는 필수입니다.
데이터베이스를 수정해서는 안 됩니다
""",
    "hi": """
डेटाबेस को मत छुओ।
कृपया main पर push न करें।
टेस्ट मत बदलना
कभी भी सीक्रेट commit मत करो।
हमेशा हिंदी में जवाब दें।
केवल मानक लाइब्रेरी का उपयोग करें।
यह ऑफ़लाइन चलना चाहिए।
नई निर्भरता नहीं होनी चाहिए।
जवाब 100 शब्दों से ज़्यादा न हो।
अधिकतम 3 फ़ाइलें बदलें
बजट 900 यूरो है।
शुक्रवार तक पूरा करें।
टेस्ट बदले बिना रिफैक्टर करें, बिना किसी फ़ाइल को छुए काम करें।
ग्राहक को कीमत न बताएं।
बिना अनुमति ईमेल भेजना मना है।
सिर्फ़ Python 3.11 इस्तेमाल करो
""",
    "ar": """
لا تلمس قاعدة البيانات.
من فضلك لا تدفع إلى main.
لا تستخدم متغيرات عامة
لا تغيّر الاختبارات.
يجب أن يعمل دون اتصال.
يجب عدم حذف البيانات.
استخدم المكتبة القياسية فقط.
أجب دائمًا بالعربية.
ممنوع إضافة مكتبات جديدة.
بحد أقصى 3 ملفات
الميزانية هي 900 يورو.
لا أريد تبعيات جديدة.
أجب في أقل من 100 كلمة.
أنهِ العمل قبل يوم الجمعة.
تأكد من نجاح الاختبارات.
أعد الهيكلة دون تغيير الاختبارات.
اترك الإعدادات كما هي.
تجنب الحالة العامة.
لا تذكر العطل للعميل.
""",
}
"""One a line, as people type them: without a period, all in lower case, with typographic apostrophes."""

STANDING = {
    "en": """
From now on, reply in German.
from now on use spaces
Going forward, every function gets a docstring.
From this point on the amounts are in cents.
From here on out we work on the branch release/2.
Answer in Japanese.
Please respond to me in simple English.
speak german with me
Use British spelling.
Run the linter after each change.
Run the linter after each change in the code.
After every commit, run the linter.
For each pull request, write a line in the changelog.
Run make test before every commit.
before you push, run the tests
Before deleting anything, ask the owner.
Whenever you change the schema, write a migration.
Every time you finish a step, tell me.
Tell me whenever you open a new file.
I prefer tabs over spaces.
I'd prefer not to change my plan.
I would rather you ask first.
My preference is the window seat.
I would like you to ask before you delete files.
Prefer composition over inheritance.
Follow PEP 8.
Follow our naming conventions.
Treat warnings as errors.
All timestamps in UTC.
All amounts are in cents.
I'm allergic to peanuts.
I am vegetarian.
In future, use single quotes.
Moving forward, commit in small steps.
For the rest of this session, answer in bullet points.
All code comments in English.
When you change the API, update the docs.
Whenever you add an endpoint, add a test.
If a test fails, fix it before going on.
After each migration, dump the schema.
when you edit a migration also bump the version file
if you add a dependency, tell me why
If you rename a function, update all callers.
if in doubt ask me
When in doubt, ask.
If something is unclear, ask before guessing.
ask me if you are unsure
when writing tests use pytest fixtures
When committing, use conventional commits.
before you open a PR, rebase on main
After you change a schema, regenerate the client.
After editing a .proto, run make gen.
Before running any destructive command, ask me.
Once a task is done, tick it off in TODO.md.
Update the docs when you change the API.
Run the linter before you commit.
run the tests before committing
When a user asks for a refund, check the order first.
If a customer is angry, escalate to a human.
I want short answers
I need all amounts in EUR
Call me Sam
Short answers please
short answers only pls
Answers in bullet points
answer in bullet points please
Be brief.
Please be concise.
I want answers in German
Please answer briefly.
Use metric units.
use tabs
We use vitest, not jest.
needs to work offline
zero dependencies
Target Python 3.9.
no flights before 9am
nothing over $200 a night
max line length 120
I don't eat meat.
We fly on the 3rd of May at the latest.
""",
    "de": """
Ab jetzt antworte auf Deutsch.
Ab sofort nutzen wir Tabs.
Von nun an heißt der Kunde Auftraggeber.
Von jetzt an werden Beträge in Cent gespeichert.
Künftig bitte mit Zeilennummern.
Antworte mir bitte auf Englisch.
Sprich mit mir auf Deutsch.
Nach jeder Änderung führe die Tests aus.
Führe den Linter nach jedem Commit aus.
Jedes Mal, wenn du das Schema änderst, schreibe eine Migration.
Ich bevorzuge kurze Antworten.
Ich hätte die Ausgabe lieber als Tabelle.
Mir ist lieber, du fragst vorher.
Ich bin allergisch gegen Nüsse.
Bitte auf Deutsch antworten.
Kommentare bitte auf Englisch.
Schreib Kommentare auf Englisch.
Nach jedem Schritt committen.
Vor jedem Commit die Tests laufen lassen.
Ab heute bitte alle Commits auf Englisch.
Künftig verwenden wir pnpm.
Am liebsten sind mir Tabellen.
Wenn du die API änderst, aktualisiere die Doku.
Wenn du eine Datei umbenennst, aktualisiere die Imports.
Wenn du unsicher bist, frag nach.
Falls ein Test fehlschlägt, behebe ihn zuerst.
bevor du committest, lass den Linter laufen
Im Zweifel frag mich.
Ich will kurze Antworten
Kurze Antworten bitte
Antworten bitte in Stichpunkten
Fasse dich kurz.
Nenn mich Sam
Bitte siezen.
ohne emojis
Alle Beträge in EUR
""",
    "fr": """
Désormais, réponds en français.
À partir de maintenant, utilise des tabulations.
Dorénavant les montants sont en centimes.
Désormais le port passe à 9000.
Réponds-moi en anglais.
Lance les tests après chaque modification.
Après chaque commit, lance le linter.
Chaque fois que tu changes le schéma, écris une migration.
Je préfère les réponses courtes.
Je préférerais que tu demandes avant.
J'aimerais mieux un tableau.
Je suis allergique aux noix.
Parlez en français.
À l'avenir, demande avant de supprimer.
Dès maintenant, utilise pnpm.
Merci de répondre en français.
Je voudrais que tu répondes en français.
Commente le code en anglais.
Écris les commentaires en anglais.
J'aime mieux les réponses courtes.
Ma préférence va aux tableaux.
Quand tu modifies l'API, mets à jour la doc.
Si tu as un doute, demande-moi.
Avant de committer, lance le linter.
Si un client demande un remboursement, vérifie d'abord la commande.
Je veux des réponses courtes
Réponses courtes svp
Appelle-moi Sam
Sois bref
sans emojis
Tutoie-moi.
Tous les montants en EUR
""",
    "es": """
A partir de ahora responde en español.
De ahora en adelante usa tabuladores.
Desde ahora los importes van en céntimos.
Respóndeme después en la rama nueva y a partir de hoy en inglés.
Responde en inglés.
Ejecuta las pruebas después de cada cambio.
Después de cada commit, ejecuta el linter.
Cada vez que cambies el esquema, escribe una migración.
Prefiero respuestas cortas.
Preferiría que me preguntes antes.
Soy alérgico a los cacahuetes.
Soy vegetariana.
En adelante, usa pnpm.
Contéstame en español.
Háblame en español.
Quiero que me respondas en español.
Escribe los comentarios en inglés.
Después de cada cambio corre los tests.
Me gusta más con tablas.
Soy celíaco.
Sigue la guía de estilo PEP 8.
Cuando cambies la API, actualiza la documentación.
Si tienes dudas, pregúntame.
Antes de hacer commit, ejecuta el linter.
Si algo no está claro, pregunta.
Quiero respuestas cortas
Respuestas cortas por favor
Llámame Sam
Sé breve
sin emojis
Todos los importes en EUR
""",
    "pt": """
A partir de agora responda em português.
De agora em diante use tabulações.
Daqui para frente os valores ficam em centavos.
Responda em inglês.
Execute os testes após cada mudança.
Depois de cada commit, execute o linter.
Toda vez que mudar o esquema, escreva uma migração.
Prefiro respostas curtas.
Preferiria que você perguntasse antes.
Sou alérgico a amendoim.
Fale em português.
Doravante os nomes ficam em inglês.
No futuro, pergunte antes.
Me responda em português.
Quero que responda em português.
Escreva os comentários em inglês.
Me avise toda vez que terminar uma etapa.
Gosto mais de tabelas.
Siga a PEP 8.
Quando mudar a API, atualize a documentação.
Se tiver dúvida, pergunte.
Antes de fazer commit, rode o linter e verifique.
Na dúvida, pergunte.
Quero respostas curtas
Me chame de Sam
Seja breve, por favor.
sem emojis
""",
    "it": """
D'ora in poi rispondi in italiano.
Da adesso in poi usa le tabulazioni.
Rispondi in inglese.
Parlami in italiano.
Esegui i test dopo ogni modifica.
Dopo ogni commit, esegui il linter.
Ogni volta che cambi lo schema, scrivi una migrazione.
Preferisco risposte brevi.
Preferirei che tu chiedessi prima.
Sono allergico alle arachidi.
Sono vegetariana.
D'ora in avanti gli importi sono in centesimi.
In futuro chiedi prima.
Vorrei che mi rispondessi in italiano.
Scrivi i commenti in inglese.
Fai un commit dopo ogni passo.
Mi piacciono di più le tabelle.
Sono celiaca.
Segui PEP 8.
Quando cambi l'API, aggiorna la documentazione.
Se hai dubbi, chiedimi.
Prima di fare commit, esegui il linter.
Se qualcosa non è chiaro, chiedi.
Voglio risposte brevi
Chiamami Sam
Sii breve.
senza emoji
""",
    "nl": """
Vanaf nu antwoord in het Nederlands.
Voortaan gebruiken we tabs.
Voortaan wordt alles in centen opgeslagen.
Antwoord in het Engels.
Schrijf alles in het Nederlands.
Draai de tests na elke wijziging.
Na elke commit, draai de linter.
Elke keer als je het schema wijzigt, schrijf een migratie.
Ik heb liever korte antwoorden.
Ik zou de uitvoer liever als tabel zien.
Ik geef de voorkeur aan spaties.
Mijn voorkeur is een stoel aan het raam.
Ik ben allergisch voor noten.
In het vervolg eerst vragen.
Antwoord graag in het Nederlands.
Ik wil dat je in het Nederlands antwoordt.
Schrijf commentaar in het Engels.
Voor elke push de tests draaien.
Vanaf vandaag zijn commits in het Engels.
Volg PEP 8.
Als je de API wijzigt, werk de docs bij.
Bij twijfel, vraag het.
Als een test faalt, herstel die eerst.
Voordat je commit, draai de linter.
Ik wil korte antwoorden
Noem me Sam
Wees bondig.
zonder emoji's
""",
    "ru": """
С этого момента отвечай по-русски.
Отныне используй табы.
Впредь суммы в копейках.
Отвечай на английском.
Пиши мне по-русски.
Запускай тесты после каждого изменения.
После каждого коммита запускай линтер.
Каждый раз, когда меняешь схему, пиши миграцию.
Я предпочитаю короткие ответы.
Мне больше нравятся таблицы.
У меня аллергия на орехи.
Я вегетарианка.
В дальнейшем используй pnpm.
В будущем сначала спрашивай.
Теперь отвечай по-русски.
Хочу, чтобы ты отвечал по-русски.
Комментарии пиши на английском.
Прогоняй тесты после каждого изменения.
Я бы предпочёл короткие ответы.
Следуй PEP 8.
Когда меняешь API, обновляй документацию.
Если не уверен, спроси.
Перед коммитом запускай линтер.
Если что-то непонятно, спрашивай.
Отвечай коротко.
Называй меня Сэм
без эмодзи
""",
    "pl": """
Od teraz odpowiadaj po polsku.
Od tej pory używaj tabulatorów.
Odpowiadaj po angielsku.
Pisz po polsku.
Uruchamiaj testy po każdej zmianie.
Po każdym commicie uruchamiaj linter.
Wolę krótkie odpowiedzi.
Preferuję tabele.
Jestem wegetarianką.
Mam alergię na orzechy.
W razie wątpliwości pytaj.
Jeśli nie jesteś pewny, zapytaj.
Gdy zmieniasz API, aktualizuj dokumentację.
""",
    "zh": """
从现在开始用中文回答。
以后回答都用中文。
今后提交前先运行测试。
从此以后金额用分。
用英文回复。
用简体中文写注释。
每次修改后都要运行测试。
每次提交前请运行测试。
我更喜欢简短的回答。
我偏好用表格。
我对花生过敏。
我吃素。
请说中文。
请用中文和我交流。
代码注释用英文。
每完成一步就提交一次。
每次改完代码都跑一下测试。
接下来都用中文。
往后都用空格缩进。
我是素食者。
遵循PEP 8。
如果不确定，就问我。
修改接口时要同步更新文档。
回答简短一点
叫我小王
只给代码
所有金额用欧元
回答都用中文。
提交前要先跑测试。
從現在開始用中文回答。
以後都用繁體中文。
""",
    "ja": """
これからは日本語で答えてください。
今後はタブを使ってください。
今後、金額はセントで書いてください。
以後、コメントは英語です。
日本語で答えて。
英語で書いてください。
変更のたびにテストを実行してください。
毎回リンターを走らせてください。
短い答えの方が好きです。
窓側の席のほうが好みです。
短い説明を好みます。
ナッツのアレルギーがあります。
日本語で返答してください。
ファイルを変更するたびにprettierを実行して。
毎回差分を見せて。
短い回答が好みです。
小麦アレルギーです。
ベジタリアンです。
次回からは先に確認してください。
以降はTypeScriptで書いてください。
PEP 8に従ってください。
APIを変更したら、ドキュメントも更新してください。
わからないときは聞いてください。
ファイルを追加するときは、テストも書いてください。
短く答えて
絵文字なしで
サムと呼んでください。
コミット前にlintを実行してください
英語に変えてください。
""",
    "ko": """
앞으로는 한국어로 답해 주세요.
지금부터 탭을 사용하세요.
이제부터 금액은 센트입니다.
앞으로 표로 보여 주세요.
한국어로 답변해 주세요.
영어로 써 주세요.
변경할 때마다 테스트를 실행해 주세요.
매번 린터를 돌려 주세요.
짧은 답변을 선호합니다.
저는 창가 자리를 선호해요.
저는 견과류 알레르기가 있어요.
지금부터 브랜치 release/2에서 작업합니다.
한국어로 답변 부탁드립니다.
짧은 답변이 더 좋아요.
저는 탭을 더 좋아해요.
저는 채식주의자예요.
PEP 8을 따라 주세요.
다음부터는 먼저 확인해 주세요.
확실하지 않으면 물어봐 주세요.
파일을 수정할 때는 테스트를 실행해 주세요.
짧게 답해줘
샘이라고 불러 주세요.
커밋 전에 린트를 실행하세요
""",
    "hi": """
अब से हिंदी में उत्तर दें।
अब से टैब का उपयोग करें।
आज से राशि पैसे में लिखें।
हिंदी में जवाब दीजिए।
अंग्रेजी में लिखें।
हिंदी में ही समझाइए।
मुझे छोटे उत्तर ज़्यादा पसंद हैं।
मुझे तालिका अधिक पसंद है।
मुझे मूंगफली से एलर्जी है।
आगे से हर कदम बताएं।
अब आगे शाखा release/2 पर काम करें।
हिन्दी में लिखो।
हर बदलाव के बाद टेस्ट चलाओ।
हर commit से पहले टेस्ट चलाएं।
जब भी फ़ाइल बदलो, prettier चलाओ।
हर बार मुझे diff दिखाओ।
मैं शाकाहारी हूँ।
PEP 8 का पालन करो।
भविष्य में पहले पूछें।
संदेह हो तो मुझसे पूछें।
""",
    "ar": """
من الآن فصاعدا أجب بالعربية.
من الآن وصاعدا استخدم المسافات.
ابتداء من الآن المبالغ بالسنت.
من اليوم فصاعدا اكتب التاريخ كاملا.
أجب باللغة العربية.
اكتب بالإنجليزية.
اشرح لي باللغة الفرنسية.
رد بالعربية.
أنا أفضل الإجابات القصيرة.
أفضّل الجداول.
أفضل أن تسأل أولا.
لدي حساسية من الفول السوداني.
شغل الاختبارات بعد كل تغيير.
بعد كل تعديل شغّل الاختبارات.
قبل كل commit شغل الاختبارات.
مستقبلا اسألني أولا.
تكلم معي بالعربية.
أنا نباتي.
عندي حساسية من الفول السوداني.
اتبع PEP 8.
إذا لم تكن متأكدا فاسألني.
""",
}
"""What stands without a word that demands or forbids."""

DONE_ONCE = """
From now on it works.
From now on I will be in the office.
After every deploy it crashes.
After each commit I run the linter.
Each time I run the tests, they fail.
Whenever I click save, the page reloads.
Add a docstring to each function.
Write a test for every module.
Check every file for tabs.
I went back to French fries.
go back to French fries
the old tests stop running
He preferred the old one.
the preferred network is 5G
All tests in CI are green.
All dates in the file are wrong.
All answers in the survey are empty.
Our German customers answer in German.
I ran the linter after each change.
Before the push, the tests passed.
Write the letter.
Run the tests.
we usually talk on Mondays
The follow up to the style review is done.
They treat it as an error.
Nach jedem Deploy stürzt es ab.
Nach jeder Änderung teste ich es.
Jedes Mal, wenn ich speichere, bricht es ab.
Schreibe eine Funktion für jede Datei.
Ab jetzt läuft es.
In Zukunft wird das besser.
Antworte auf die Frage.
Après chaque commit, ça plante.
Chaque fois que je lance ça plante.
Écris un test pour chaque module.
Cada vez que pruebo, se cuelga el servidor.
Cada vez que cambio algo, muestra el aviso.
Escribe un test para cada módulo.
Toda vez que eu testo, aparece um aviso.
Escreva um teste para cada módulo.
Ogni volta che provo, si blocca.
Scrivi un test per ogni modulo.
Na elke wijziging crasht het.
Na elke stap vraag ik me dat af.
Schrijf een test voor elk bestand.
После каждого изменения он падает.
Каждый раз, когда я запускаю тесты, он падает.
Напиши тест для каждого модуля.
每次运行都报错。
每次按键都发请求
每次启动都要等很久。
以后再说吧。
用英文写的文档在这里。
毎回エラーが出ます。
日本語で書いた文書です。
실행할 때마다 오류가 나요.
앞으로 어떻게 될지 모르겠어요.
हर बार त्रुटि आती है।
मुझे यह पसंद है।
بعد كل تغيير يتعطل.
أفضل طريقة هي هذه.
Run the script once for each change in the list.
Tell me whenever you are ready.
Treat this as done.
Follow these guidelines to fix the bug.
I prefer the first option.
Von hier an wird es kompliziert.
Désormais ça marche.
Ajoute une ligne pour chaque commit de la liste.
Je préfère la première option.
A partir de ahora funciona bien.
Prefiero la primera opción.
A partir de agora funciona.
D'ora in poi funziona.
Vanaf hier wordt het lastig.
С этого момента всё работает.
Я предпочитаю первый вариант.
Пишут по-русски с ошибками.
从现在开始可以用了。
用英文写一封邮件给客户。
用中文解释一下这段代码。
我更喜欢第一个。
これからは大丈夫だと思います。
この関数を日本語で説明して。
ファイルごとに行数を教えてください。
이제부터 시작이네요.
영어로 메일을 써 주세요.
이 함수를 한국어로 설명해줘.
파일마다 줄 수를 알려 주세요.
من الآن فصاعدا يعمل.
اكتب رسالة بالإنجليزية إلى العميل.
Ich bin ab heute im Urlaub.
Kommentare auf Englisch übersetzen
Vor jedem Push testen wir.
Les commentaires en anglais sont à traduire.
Traduce los comentarios en inglés
Quiero que respondas a la pregunta.
Segui il link.
Vanaf vandaag gesloten
Комментарии на русском удали
他说中文。
每次提交都运行CI,很慢
一度に全部見せてください。
次からは気をつけます。
저는 커피가 더 좋아요?
हर बदलाव के बाद यह टूटता है।
بعد كل تغيير يفشل الاختبار
When I run it, it fails.
If you look at line 3 you will see the bug.
When you are done, send me the diff.
If it fails, tell me.
once you have finished, show me the result
When you changed the API you forgot the docs.
Before you start, read README.md.
If a test fails, the build is red.
When users log in, they see a blank page.
When you add the button, make it blue.
If you find the bug, fix it.
When you push this, tell me.
If any of the tests fail, tell me which.
run the migration before you deploy it
I ran the tests before committing.
Replace the text "When in doubt, ask" with something shorter.
Wenn ich es starte, stürzt es ab.
Wenn du fertig bist, schick mir den Diff.
Wenn du das änderst, sag Bescheid.
Wenn du eine Idee hast, sag Bescheid.
Wenn ein Test fehlschlägt, ist der Build rot.
Quand tu as fini, envoie-moi le diff.
Si ça plante, dis-le-moi.
Cuando termines, mándame el diff.
Si falla, dime.
Quando terminar, me mande o diff.
Se falhar, me avise.
Quando hai finito, mandami il diff.
Quando un utente clicca, la pagina si blocca.
Als je klaar bent, stuur me de diff.
Als een test faalt, is de build rood.
Когда закончишь, пришли дифф.
Если упадёт, сообщи.
如果失败了，告诉我。
修改接口时报错了。
我修改文件时要等很久。
終わったら教えてください。
変更したらエラーが出ました。
잘 모르면 어떻게 하나요
I want to know the short answers to these
I need you to write the letter
I want answers to my questions
I need the dates in the table
Short answer: yes.
Brief answers were given by the team.
answers in the table are wrong
Write in the file that it is done
write as soon as you can
be careful
be quick
call me back
Call me on Monday
Call me ASAP
Call Me Maybe is a song
use tabs component from the library
Use single quotes in this line.
the quote has to run first
my app needs to work, please help
max value seen 5
Max errors: none
the max line 120 was long
no one over 5 came
nothing above works
Nothing before line 3 matters to the bug
we use React here and there
we use it here
i cant eat now
Ich will antworten
kurze Antwort: ja
Antworte auf die Mail
alle Angaben in der Tabelle sind falsch
ohne Kommentar
nenn mir drei
Ruf mich an
je veux une réponse
Appelle-moi demain
sans commentaire
Llámame mañana
sin comentarios por ahora del cliente
seja bem-vindo
ik wil antwoorden
noem me drie redenen
Ответы короткие были
叫我去开会
叫我怎么办
不用解释了
回答很简短
短く切って
I need the amounts from the invoice
I want a short summary of this file
Call me when it is done
the short answer is yes
My name is Sam.
We are on Python 3.9
Je m'appelle Sam
Ich heiße Sam.
Me llamo Sam
我叫小王
"""
"""What is asked for once, and what happens again and again: neither stands."""

TALK = """
No commits found on the friday branch.
There were no deploys on Friday.
No calls without auth succeeded.
It was merged without my approval.
The tickets should be in the tracker somewhere.
Samstag wird nicht einfach.
Change rien pour moi.
Usa redis, no sé por qué.
Usa redis, non so perché.
总是报错
日志用英文写的，我看不懂
ファイルを削除する前に確認しました
i think there's only one file left
is it ok to always catch exceptions
does this paper always assume normality
dont you think it must be cached
dont we have a helper for that
olvida el presupuesto
esquece o orçamento
забудь про бюджет
I still don't have any signal.
I definitely don't see it.
my app only has permission for the phone
it's always nice talking to you
I want to make sure I do it right.
I'm feeling confused and don't know what to do.
It must have been great.
That must feel great.
There must be a bug somewhere
That’s the only line I use.
I only have one phone
the test must have failed
Increase the contrast by 20%.
I want to travel, but I don't have much time and budget.
I keep getting this error.
Keep in mind that I am new.
Keep going!
No problem.
No worries!
No errors now
No new errors.
It took less than 5 minutes.
It's without doubt great
I always love it
that always makes me smile
I can't avoid it
what to avoid
I haven't been there before
You do not need to follow exactly what is done
Ich habe keine Ahnung.
Ich muss jetzt los.
Ich weiß es nicht.
Das geht nicht.
Das funktioniert bei mir nicht mehr.
Je ne sais pas.
Ça ne marche pas.
Les tests ne passent pas.
No sé qué hacer.
No funciona.
No puedo conectarme.
Não sei.
Não funciona.
Non so cosa fare.
Non funziona.
Ik weet het niet.
Het werkt niet.
Ik heb geen idee.
Ik moet nu gaan.
Я не знаю.
Это не работает.
我经常感觉到自己不能够胜任自己的职位。
最近因为不能运动
能不能缩短截流策略
我在考虑要不要换工作
我没有太多的时间和预算。
又怕预算不够
现在我必须离开了
别人都去了
問題なければ進めてください
わかりません。
動きません。
모르겠어요.
안 돼요.
Look at the log.
Continue.
Use port 9000.
Run the tests again.
The server limits requests.
By the way, nice work.
go on
Nous sommes quatre, dont un bébé.
le fichier dont je parle
les clients dont le compte est fermé
Der Start klappt nicht.
Der Anruf kam nicht an.
Streich den Satz, der gefällt mir nicht.
El servidor no responde.
la función no llama a nadie
el programa no abre
O servidor não responde.
o programa não abre
não fala comigo
Il server non risponde.
De server start niet.
Open het bestand, dat lukt mij niet.
Они не нашли ошибку.
Это не они.
The maximum is not clear to me.
SELECT id FROM users ORDER BY id LIMIT 1
rate limit reached: 429 Too Many Requests
I hit the rate limit 3 times today.
Error: memory limit exceeded (512 MB)
The limit was 5 before, I think.
limit = 50
My budget app has 3 bugs.
Das Limit wurde gestern 3 mal erreicht.
La limite de x quand x tend vers 0 vaut 1.
El límite de la función cuando x tiende a 0 vale 1.
Il tetto della casa ha 30 anni.
O teto da sala tem 3 metros.
Лимит запросов был 5 в прошлом году.
Zeig mir was nicht funktioniert
Gib mir einen Grund warum das nicht klappt
Nenne alle Dateien die nicht getestet sind.
Teile mir mit wenn es nicht geht.
Stuur me de bestanden die niet werken.
Toon mij wat niet werkt.
Start de server als die niet draait.
Не мои файлы.
Не эти файлы, а другие.
Не найти нужный файл.
마감이 언제였지
한도 초과 오류가 나와요
Le budget est serré.
Frage nicht beantwortet.
Frage noch nicht beantwortet
Die Frage ist nicht beantwortet.
Antwort kam nicht an.
Antwort nicht erhalten.
Teile wurden nicht gefunden.
Teile nicht gefunden.
Push hat nicht funktioniert.
Push nicht möglich.
Push ging nicht durch.
Starte nicht gefunden
Nicht alle Tests laufen.
Nicht gefunden.
Keine Antwort vom Server.
Kein Fehler mehr.
Keine Verbindung zur Datenbank.
Kein Unterschied.
keine Fehler gefunden
Build läuft immer noch.
Das ist immer noch kaputt.
Warum ist das immer leer
Geht nicht.
Datei nicht gefunden.
Löschen hat nicht geklappt.
Plane ist nicht installiert.
Das Deployment muss hängen geblieben sein.
Da muss irgendwo ein Bug sein.
Mach ich nicht gern, aber gut.
He asked me before I could answer.
I have to ask before I go.
Tests nicht bestanden.
No comment.
Nothing gets saved.
Every test needs ages.
我之前问过你。
먼저 물어봤어요.
you must be kidding
That must be it.
The customer never replied.
always a pleasure
Bis morgen!
Até amanhã!
Tot morgen!
До завтра!
Muss das so sein
Darf ich das löschen
Ich darf das nicht.
Kein Ding.
Siempre es un placer.
别客气
必ずしもそうではない
Question not answered.
File not found.
Push did not work.
You did not answer my question.
Push doesn't work.
It does not work.
The tests do not pass.
Tests don't run on my machine.
Why does it always fail
why is outcome always missing
how come this never works
The build always fails on Windows.
It never finished.
The export never arrived.
It still does not start.
No response from the server.
There is only one test failing.
We only have two servers.
Only two tests failed.
There must have been an outage.
It only happens on Safari.
The customer must be angry.
I can't change the schema because I lack rights.
I don't want to bother you, but it failed.
My budget was cut last year.
The deadline was yesterday.
Pas de réponse du serveur.
Pas de souci.
Pas de problème.
pas d'erreur cette fois
Aucune erreur.
Aucun problème.
Question pas traitée.
N'a pas répondu.
Ne fonctionne pas.
ne marche toujours pas
Le serveur ne répond toujours pas.
Ça plante toujours.
Je dois partir.
Ça doit venir du cache.
Ningún problema.
Ninguna respuesta del servidor.
Ningún error.
Pregunta no respondida.
No se encontró el archivo.
No encontrado.
Siempre falla en Windows.
El servidor siempre se cae.
Debe de ser un error de red.
Nenhum problema.
Nenhuma resposta do servidor.
Pergunta não respondida.
Não encontrado.
O teste sempre falha.
Deve ser um erro de rede.
Nessun problema.
Nessuna risposta dal server.
Nessun errore.
Niente paura.
Domanda senza risposta.
Non trovato.
Deve essere un errore di rete.
Il server non usa la cache.
Vraag niet beantwoord.
Antwoord niet ontvangen.
Push is niet gelukt.
Geen antwoord van de server.
Geen fout meer.
Niet gevonden.
Geen verschil.
Het werkt nog altijd niet.
Вопрос не отвечен.
Никаких проблем.
Файл не найден.
Тесты всегда падают.
Ответа нет.
Должно быть, ошибка сети.
Никаких ошибок.
测试不能运行。
登录不能用了
网站不能访问了
问题没有回答。
文件找不到。
总是报错
始终报错
不应该出现这个错误
这里不应该超时
系统不允许我登录
验证码功能禁用了
请先禁用缓存
优先级很高
一律失败
这不可能
決不是我改的
業務必要文件在這裡
エラーが出ないようにしてしまいました
この機能は使用不可になっています
デプロイ前にエラーが出ました
还是用户的问题
提交前测试是通过的
不要紧。
我不要紧
まだ答えていません。
ファイルが見つかりません。
常にエラーになります。
いつも失敗します。
必ずエラーになる
絶対おかしい
질문에 답하지 않았어요.
파일이 없습니다.
항상 실패해요.
안 됩니다.
यह नहीं चल रहा है।
मुझे नहीं पता।
टेस्ट हमेशा fail होते हैं।
सर्वर कभी नहीं चला।
केवल दो सर्वर हैं।
मेरा मत अलग है।
इसका मतलब क्या है?
कोई जवाब नहीं आया।
यह कल तक ठीक था।
कोई बात नहीं।
الاختبارات لا تعمل.
لا تعمل
لا توجد أخطاء.
لا أعرف.
لا تقلق.
لا يستجيب الخادم.
لدي خادمان فقط.
يفشل البناء دائمًا.
يجب أن يكون هناك خطأ.
هل يمكنك دائمًا استخدام هذا؟
아직 답이 없어요.
절대 안 바뀌네요
Nie działa.
Nie wiem.
Zawsze pada na Windowsie.
Nigdy nie działało.
Nigdy tego nie widziałem.
Tylko jeden test nie przechodzi.
Muszę już iść.
To musi być błąd sieci.
Trzeba było zapytać.
Bez problemu.
Żadnych błędów.
Plik nie został znaleziony.
Od teraz działa.
Po każdej zmianie pada.
Napisz list po angielsku.
Uruchom testy.
Sprawdź logi.
Wolę pierwszą opcję.
Nie ma odpowiedzi z serwera.
Mam pytanie.
Do jutra!
Nie mogę się zalogować.
Nie rozumiem.
Dodaj test do każdego modułu.
Gdy uruchamiam, pada.
Daj mi znać, jak skończysz.
kein Plan
keine Eile
nie gehört
immer dieser Fehler
nur noch eine Frage
only one more thing
siempre me pasa esto
nunca lo había visto
никогда такого не видел
всегда пожалуйста
только что упало
Is it true that one must call init first
do you always answer like this
Must I restart
how do i make sure it never sleeps
what does "must not" mean here
"""
"""How things are, what others do and how the speaker feels; reports, questions and small talk."""

DEMANDED = """
Never ask why the customer cancels.
Bis morgen alles fertig machen.
Das darf man nicht löschen.
До завтра не трогай тесты.
別のファイルは必ず残してください。
Keine Antwort ohne Quelle.
Keine Antwort über 100 Wörter bitte.
Nicht alle Dateien auf einmal ändern.
Der Wert muss ein Integer sein.
Alle Daten müssen verschlüsselt sein.
La valeur doit être un entier.
Il server non deve riavviarsi.
El campo debe ser un entero.
O campo deve ser um inteiro.
Il campo deve essere un intero.
接口不能再变了。
主分支不能直接推送。
If the build always fails, never retry it.
If bugbot never responds, report this and ask the user what to do next.
Prices must always be shown in euros.
必ずエラー処理を入れてください。
항상 오류 처리를 넣어 주세요.
The build always fails on Windows, so never merge without CI.
Antworte nicht auf Englisch.
Push nicht auf main.
Starte den Server nicht neu.
Teile das Passwort nicht mit anderen.
Frag nicht nach, mach einfach.
Buche nichts ohne Freigabe.
Keine Fehler ignorieren.
Keine Abkürzungen.
Pas de commentaires dans le code.
Ne réponds pas en anglais.
Ninguna dependencia nueva.
Nessuna nuova dipendenza.
Niet committen.
Niet alles herschrijven, alleen de parser.
Never work on main directly.
never load the whole file into memory
always load the config first
Immer auf Deutsch antworten.
Tests do not touch the network: keep it so.
The deadline was moved to Friday: send it by Friday.
测试不能跳过。
你不能启动生产服务。
"""
"""Rules in words that reports have, too."""

LIFTED = [
    ("Never deploy on Friday.", "We can deploy on Friday now."),
    ("Never push to main.", "we may now push to main"),
    ("No emojis.", "Use emojis again."),
    ("Don't touch the config.", "The rule about the config is lifted."),
    ("Don't touch the config.", "The config rule no longer applies."),
    ("Never deploy on Friday.", "The Friday rule no longer applies."),
    ("no deploys on friday", "you can deploy on friday now"),
    ("N'envoie jamais d'e-mails.", "Tu peux envoyer des e-mails maintenant."),
    ("Ne déploie jamais le vendredi.", "Tu peux déployer le vendredi maintenant."),
    ("Pas d'emojis.", "Les emojis sont autorisés maintenant."),
    ("No uses emojis.", "Los emojis están permitidos."),
    ("Não use emojis.", "Emojis são permitidos agora."),
    ("Non usare emoji.", "Le emoji sono permesse ora."),
    ("Non usare emoji.", "Le emoji vanno bene."),
    ("Never deploy on Friday.", "Forget the Friday rule."),
    ("Never deploy on Friday.", "Forget about the no-deploy-on-Friday rule."),
    ("Niemals am Freitag deployen.", "Vergiss die Freitagsregel."),
    ("Keine Emojis.", "Vergiss die Emoji-Regel."),
    ("Ne déploie jamais le vendredi.", "Oublie la règle du vendredi."),
    ("Nunca hagas deploy los viernes.", "Olvida la regla de los viernes."),
    ("Nunca faça deploy na sexta.", "Esqueça a regra da sexta."),
    ("Non fare mai deploy il venerdì.", "Dimentica la regola del venerdì."),
    ("Pas d'emojis.", "Oublie la règle des emojis."),
    ("No uses emojis.", "Olvida la regla de los emojis."),
    ("Nutze Redis nie.", "Redis ist jetzt ok."),
    ("不要用emoji。", "可以用emoji了。"),
    ("No uses Redis.", "Al final usa Redis."),
    ("No uses nunca Redis.", "Usa Redis después de todo."),
    ("No toques la configuración.", "Al final toca la configuración."),
    ("N'utilise pas Redis.", "Utilise Redis finalement."),
    ("N'utilise pas Redis.", "Utilise quand même Redis."),
    ("Benutze niemals Redis.", "Nimm doch Redis."),
    ("Verwende kein Redis.", "Wir nutzen jetzt doch Redis."),
    ("Verwende Redis nicht.", "Du darfst Redis jetzt verwenden."),
    ("Installiere Redis nicht.", "Du darfst Redis jetzt installieren."),
    ("Don't use Redis.", "We will use Redis after all."),
    ("Don't use Redis.", "I think we should use Redis after all."),
    ("Don't use Redis.", "We're going with Redis after all."),
    ("Não use Redis.", "No fim das contas, use Redis."),
    ("Não use Redis.", "Use Redis afinal."),
    ("Non usare Redis.", "Alla fine usa Redis."),
    ("Non usare Redis.", "Usa pure Redis."),
    ("Gebruik geen Redis.", "Gebruik toch Redis."),
    ("Не используй Redis.", "Всё-таки используй Redis."),
    ("Nie używaj Redis.", "Jednak użyj Redis."),
    ("每次修改后都要运行测试。", "不要再运行测试了。"),
    ("每次修改后都要运行测试。", "别再运行测试了。"),
    ("每次修改后都要运行测试。", "无需再运行测试。"),
    ("以后回答都用中文。", "不要再用中文回答。"),
    ("不要推送到main分支。", "現在可以推送到main分支。"),
    ("毎回テストを実行してください。", "テストはもう実行しないでください。"),
    ("毎回テストを実行してください。", "テストの実行は不要になりました。"),
    ("dont push to main", "you can push to main"),
    ("don't touch the billing module", "you're allowed to touch the billing module"),
    ("Do not use TypeScript", "ok you can use TypeScript"),
    ("don't use sudo", "feel free to use sudo"),
    ("never drop the users table", "you can drop the users table"),
    ("never push without review", "you can push without review now"),
    ("No emojis", "Forget the emoji rule"),
    ("no emojis", "emojis are fine"),
    ("never use mocks", "mocks are allowed"),
    ("always run the linter", "skip the linter from now on"),
    ("only use port 8443", "you can use any port now"),
    ("The report must be in French", "you can write the report in english now"),
    ("niemals auf main pushen", "du darfst auf main pushen"),
    ("keine emojis", "emojis sind ok"),
    ("no hagas push a main", "puedes hacer push a main"),
    ("no uses emojis", "ya puedes usar emojis"),
    ("ne pousse jamais sur main", "tu peux pousser sur main"),
    ("non modificare lo schema", "puoi modificare lo schema"),
    ("não use emojis", "pode usar emojis agora"),
    ("не трогай базу", "можешь трогать базу"),
    ("mainにpushしないで", "mainにpushしてもOKです"),
    ("不要推送到main", "可以推送到main了"),
    ("绝对不要重启服务器", "可以重启服务器"),
    ("dont touch the config", "you can change the config now"),
    ("Do not modify the API.", "You can change the API now."),
    ("Não mexa na pasta legacy.", "Você pode alterar a pasta legacy agora. Agora pode alterar a pasta legacy."),
    ("always run the tests", "stop running the tests"),
    ("no new dependencies", "scrap the rule about dependencies"),
    ("never use print for logging", "drop the logging rule"),
    ("the budget is 2000 euros", "make the budget 2500"),
    ("Antworte immer auf Deutsch.", "antworte jetzt auf englisch"),
    ("réponds toujours en français", "réponds en anglais"),
    ("antwoord altijd in het nederlands", "antwoord in het engels"),
    ("отвечай всегда на русском", "отвечай на английском"),
    ("常に日本語で答えてください", "英語で答えてください"),
    ("항상 한국어로 답해줘", "영어로 답해줘"),
    ("Never push to main.", "You may push to main now."),
    ("Never push to main.", "you can push to main again"),
    ("Never push to main.", "OK, pushing to main is fine now."),
    ("Never push to main.", "It's okay to push to main now."),
    ("Never touch the billing module.", "Forget what I said about the billing module."),
    ("Never touch the billing module.", "Forget the rule about the billing module."),
    ("The limit is 40 dollars.", "Ignore the earlier limit."),
    ("The budget is 40 dollars.", "The budget no longer applies."),
    ("No new dependencies.", "You can add new dependencies after all."),
    ("Don't use Redis for the cache.", "Use Redis for the cache after all."),
    ("Never edit the migration files.", "OK, edit the migration files after all, it is faster."),
    ("Don't add any dependencies.", "Let's add the dependencies after all."),
    ("Benutze niemals Redis.", "Benutze doch Redis."),
    ("Keep answers under 100 words.", "Answers can be longer than 100 words now."),
    ("Only use port 8443 for the gateway.", "The port limit for the gateway no longer applies."),
    ("Always run the linter.", "You don't have to run the linter."),
    ("Always run the linter.", "You don’t need to run the linter anymore."),
    ("Der Port darf nur 8443 sein.", "Der Port darf doch 9000 sein."),
    ("Niemals auf main pushen.", "Du darfst jetzt auf main pushen."),
    ("Ne pousse jamais sur main.", "Tu peux pousser sur main maintenant."),
    ("Ne touche pas à la base de données.", "Maintenant tu peux toucher à la base de données."),
    ("Nunca hagas push a main.", "Ahora puedes hacer push a main."),
    ("No toques la base de datos.", "Ya puedes tocar la base de datos."),
    ("Nunca faça push para main.", "Agora você pode fazer push para main."),
    ("Não mexa no banco de dados.", "Agora pode mexer no banco de dados."),
    ("Non fare mai push su main.", "Ora puoi fare push su main."),
    ("Non toccare il database dei clienti.", "Adesso puoi toccare il database dei clienti."),
    ("Push nooit naar main.", "Je mag nu naar main pushen."),
    ("Wijzig de klantentabel nooit.", "Nu mag je de klantentabel wijzigen."),
    ("Никогда не удаляй базу данных.", "Теперь можно удалять базу данных."),
    ("Не трогай базу данных.", "Теперь можешь трогать базу данных."),
    ("main에 푸시하지 마세요.", "이제 main에 푸시해도 됩니다."),
    ("데이터베이스를 수정하지 마세요.", "이제 데이터베이스를 수정해도 돼요."),
    ("不要推送到main分支。", "现在可以推送到main分支了。"),
    ("不要动支付模块。", "支付模块可以改了,之前说的不算。"),
    ("main पर push मत करो।", "अब आप main पर push कर सकते हैं।"),
    ("भुगतान मॉड्यूल को मत छुओ।", "भुगतान मॉड्यूल वाली बात भूल जाओ।"),
    ("لا تدفع الكود إلى الفرع الرئيسي.", "يمكنك دفع الكود إلى الفرع الرئيسي الآن."),
    ("لا تلمس قاعدة البيانات.", "الآن يمكنك لمس قاعدة البيانات."),
    ("答えをすぐに教えないでください。", "やっぱり答えも教えていいです。"),
    ("Don't touch the parser in this PR.", "Fine, go ahead and touch the parser after all."),
    ("Don't touch the parser in this PR.", "feel free to touch the parser in this PR again"),
    ("Não reinicie o servidor principal.", "A regra já não vale, reinicie o servidor principal."),
    ("Keep the last 6 weeks for the validation, at most.", "I meant the last 8 weeks for the validation, not 6."),
    ("From now on, reply in German.", "Stop replying in German."),
    ("Run the linter after each change.", "No need to run the linter any more."),
    ("Always run make lint before committing.", "You can stop running make lint."),
    ("Antworte immer mit einer kurzen Liste.", "Du musst nicht mehr mit einer kurzen Liste antworten."),
    ("Schreibe immer einen Kommentar an den Kopf.", "Hör auf, einen Kommentar an den Kopf zu schreiben."),
    ("Lance toujours les tests unitaires.", "Plus besoin de lancer les tests unitaires."),
    ("Ejecuta siempre las pruebas unitarias.", "No hace falta ejecutar las pruebas unitarias."),
    ("Execute sempre os testes unitários.", "Não precisa mais executar os testes unitários."),
    ("Esegui i test unitari dopo ogni modifica.", "Smetti di eseguire i test unitari."),
    ("Draai altijd de langzame tests.", "Je hoeft de langzame tests niet meer te draaien."),
    ("Всегда запускай медленные тесты.", "Можешь не запускать медленные тесты."),
    ("每次修改后都要运行测试。", "不用再运行测试了。"),
    ("必ずリンターを実行してください。", "リンターを実行する必要はありません。"),
    ("반드시 린터를 실행하세요.", "린터를 실행할 필요 없어요."),
    ("हमेशा लिंटर टेस्ट चलाएं।", "लिंटर टेस्ट चलाने की ज़रूरत नहीं।"),
    ("شغّل دائمًا اختبارات الوحدة.", "لا حاجة إلى اختبارات الوحدة."),
    ("Run the linter after each change.", "Thanks, no need to run the linter any more, the server does it."),
    ("Run the linter after each change.", "You don't have to run the linter because the pipeline does it."),
    ("Lance toujours les tests unitaires.", "Tu n'as plus besoin de lancer les tests unitaires."),
    ("Avoid global state.", "No need to avoid global state any more."),
    ("Leave the config file alone.", "You no longer have to leave the config file alone."),
    ("Never push to main.", "You don't have to follow the rule about pushing to main."),
    ("Never push to main.", "Stop pushing to main, then forget the rule about main."),
    ("Vermeide globalen Zustand.", "Du musst globalen Zustand nicht mehr vermeiden."),
    ("Evita el estado global.", "No hace falta evitar el estado global."),
    ("避免全局变量。", "不用再避免全局变量了。"),
    ("The budget is 500 EUR.", "forget the budget"),
    ("Always run the linter.", "never mind the linter"),
    ("Das Budget ist 500 Euro.", "Vergiss das Budget."),
    ("Le budget est de 500 euros.", "Oublie le budget."),
    ("Ändere nie die Konfiguration.", "Vergiss die Regel mit der Konfiguration."),
    ("Ändere nie die Konfiguration.", "Die Konfiguration darfst du jetzt ändern."),
    ("Verwende immer das Modul Zahlung.", "Das Modul Zahlung gilt nicht mehr."),
    ("Keine Emojis.", "Emojis sind wieder erlaubt."),
    ("Keine Emojis.", "Emojis sind jetzt ok."),
    ("Nigdy nie pushuj na main.", "Teraz możesz pushować na main."),
    ("Zawsze uruchamiaj testy.", "Nie musisz już uruchamiać testów."),
    ("Never push to main.", "Push to main instead of develop."),
    ("Never use tabs.", "Use tabs instead."),
    ("Don't use Redux.", "Actually, use Redux."),
    ("Don't touch the billing module.", "you can touch the billing module now, I finished my changes"),
    ("Don't modify the database schema.", "Ok, because we need it you can modify the database schema now"),
    ("Lösche niemals die Produktionsdaten.", "Du kannst die Produktionsdaten jetzt löschen."),
    ("不要删除生产数据库。", "现在可以删除生产数据库了。"),
    ("本番データベースを絶対に削除しないで。", "本番データベースを削除していいです。"),
    ("Ne supprime jamais la base de production.", "Tu peux supprimer la base de production maintenant."),
    ("Non cancellare mai il database di produzione.", "Ora puoi cancellare il database di produzione."),
    ("Nunca apague o banco de produção.", "Agora você pode apagar o banco de produção."),
    ("No borres nunca la base de producción.", "Ahora puedes borrar la base de producción."),
    ("Never delete files without asking me.", "You can delete files without asking me now."),
    ("Never edit files outside src/auth.", "You can edit files outside src/auth now."),
    ("Never edit files outside src/auth.", "You can edit any files now."),
    ("Never kubectl apply on the prod cluster.", "You can kubectl apply on the prod cluster now."),
    ("Keep the limit of 40 dollars.", "The limit of 40 dollars doesn't apply."),
    ("Never use the production key.", "You can use the production key now."),
    ("No comments in the code.", "You can write comments in the code now."),
    ("不要使用生产数据库。", "现在可以使用生产数据库了。"),
    ("本番データベースは使用しないでください。", "本番データベースを使用してもいいです。"),
    ("Never use the cache.", "The cache is fine now."),
    ("Never push to main.", "Never mind, you can push to main."),
    ("Immer die Tests ausführen.", "du musst die tests nicht mehr ausführen"),
    ("Lance toujours les tests.", "Tu n'as plus besoin de lancer les tests."),
    ("Sempre rode os testes.", "Não precisa mais rodar os testes."),
    ("Keep answers short.", "answers can be longer now"),
    ("Kurze Antworten bitte.", "Antworten dürfen jetzt ausführlicher sein."),
]
"""A rule, and words that take it back."""

STAYING = [
    ("Never push to main.", "ok, push it to main now"),
    ("Never run the tests.", "Run the tests again."),
    ("Never deploy on Friday.", "The Monday rule no longer applies."),
    ("Never use Redis.", "The rule about Postgres is lifted."),
    ("Never deploy on Friday.", "We can see the deploy of Friday now."),
    ("Never deploy on Friday.", "We will deploy on Monday instead."),
    ("Never deploy on Friday.", "Forget the Monday rule."),
    ("Always run the tests.", "Never run the slow tests."),
    ("Always use Postgres.", "Never use MySQL."),
    ("Always ask Anna first.", "Forget Berta, she left."),
    ("No uses Redis.", "Al final usa Memcached."),
    ("No uses Redis.", "Al final Redis funciona."),
    ("N'utilise pas Redis.", "Finalement, utilise Memcached."),
    ("N'utilise pas Redis.", "Finalement Redis marche."),
    ("Ne supprime jamais la base de production.", "Finalement, supprime la base de test."),
    ("Don't use Redis.", "We will use Memcached after all."),
    ("Don't use Redis.", "We will not use Redis after all."),
    ("Don't use Redis.", "Should we use Redis after all?"),
    ("Don't use Redis.", "Actually, Redis works."),
    ("Don't use Redis.", "Actually Redis is slow."),
    ("Benutze kein Redis.", "Wir nehmen doch Memcached."),
    ("Benutze kein Redis.", "Nimm Memcached statt Redis."),
    ("Não use Redis.", "Use Memcached ao invés de Redis."),
    ("Non usare Redis.", "Usa Memcached al posto di Redis."),
    ("Gebruik geen Redis.", "Gebruik toch niet Redis."),
    ("不要用Redis。", "用Memcached代替Redis。"),
    ("Immer Postgres nutzen.", "Das Postgres-Treffen findet am Freitag statt."),
    ("Always run the unit tests.", "Run the unit tests after all."),
    ("Don't use Redis.", "Redis works after all."),
    ("Don't use Redis.", "Don't use Redis after all."),
    ("Don't use Redis.", "Use Postgres after all."),
    ("Never edit the migration files.", "The migration files were edited after all."),
    ("Never delete the production database.", "Delete the test database after all."),
    ("Benutze niemals Redis.", "Benutze doch Postgres."),
    ("不要修改数据库。", "改用 9000 端口。"),
    ("不要修改数据库。", "不要再修改数据库了。"),
    ("必须使用 PostgreSQL 数据库。", "端口改用 9000。"),
    ("不要推送到main分支。", "改用 dev 分支测试。"),
    ("不要修改 config.yaml。", "修改 app.yaml，端口改用 9000。"),
    ("必须运行测试。", "还是用户的测试失败了。"),
    ("必ずポート8000を使ってください。", "タイムアウトは30秒に変更してください。"),
    ("The report must be in French", "you can write the report now"),
    ("Don't use sudo", "you can use the sudo-free script now"),
    ("don't use sudo", "you can run it without sudo now"),
    ("call me Sam", "call the api directly instead"),
    ("never drop the users table", "you can use the users table now"),
    ("budget in the US is 500", "budget in the UK is 300"),
    ("don't forget to push to main", "you can push to main"),
    ("don't push to main", "you can push to main if the tests pass"),
    ("don't push to main", "he says you can push to main"),
    ("never delete the database", "You can delete the database by running drop.sh"),
    ("don't edit table 3", "you can edit table 5"),
    ("never edit a.py", "you can edit b.py"),
    ("don't touch main", "main is fine"),
    ("no mocks", "the mocks are fine"),
    ("no emojis", "emojis are fine in the readme"),
    ("never run the linter in ci", "skip the linter from now on"),
    ("keine dateien löschen", "du darfst die logs löschen"),
    ("no borres la base de datos", "puedes borrar la tabla"),
    ("mainにpushしないで", "devにpushしてもOKです"),
    ("不要推送到main", "可以推送到dev"),
    ("use tabs", "use spaces in the yaml files"),
    ("answer in tables", "write the summary in prose"),
    ("all amounts in euros", "all times in utc"),
    ("100 characters max", "answers max 500 characters"),
    ("max 500 characters", "line length is 100 now"),
    ("deadline is friday", "the call moved to monday"),
    ("deadline is friday", "deadline for the report is monday"),
    ("max 3 retries", "move 3 files to 2 folders"),
    ("timeout must be 10 seconds", "the timeout is 30 seconds and it hangs"),
    ("预算是500元", "截止日期改成周一"),
    ("the budget is 2000 euros", "dont forget the budget"),
    ("the budget is 2000 euros", "please do not forget the budget"),
    ("Das Budget ist 500 Euro.", "Vergiss das Budget nicht!"),
    ("das budget ist 500 euro", "vergiss nicht das budget"),
    ("le budget est de 500 euros", "n'oublie pas le budget"),
    ("el presupuesto es de 500 euros", "no olvides el presupuesto"),
    ("o orçamento é de 500 euros", "não esqueça o orçamento"),
    ("il budget è di 500 euro", "non dimenticare il budget"),
    ("het budget is 500 euro", "vergeet het budget niet"),
    ("budżet to 500 euro", "nie zapomnij o budżecie"),
    ("never squash commits", "forget the comments"),
    ("no new repositories", "forget the report"),
    ("always run the formatter", "forget the form"),
    ("never push to main", "actually i pushed to main yesterday"),
    ("never push to main", "actually the push to main failed"),
    ("always write tests for new code", "actually the tests for new code are failing"),
    ("use tabs not spaces", "the tabs are rendered instead of spaces in the preview"),
    ("never use moment", "replace moment with dayjs in utils.js"),
    ("no emojis", "cancel the emoji import"),
    ("it must be under 10 MB", "keep it under 3 s"),
    ("max 23 kg", "max 2 h"),
    (
        "invalid themes must NEVER explode",
        "16 - **Invalid Theme Handling**: Invalid or malformed themes no longer crash the",
    ),
    ("Never push to main.", "I actually pushed to main."),
    ("You must sound like a successful person.", "These sound like a good plan, actually."),
    ("Never push to main.", "It is fine now, main is green."),
    ("The page must never show errors.", "The page no longer shows errors."),
    ("Never push to main.", "You may run the tests now."),
    ("main पर push मत करो।", "क्या अब मैं main पर push कर सकता हूँ?"),
    ("लॉग कभी मत हटाओ।", "अब आप टेस्ट चला सकते हैं।"),
    ("لا تلمس قاعدة البيانات.", "هل الآن يمكنك لمس قاعدة البيانات؟"),
    ("لا تلمس قاعدة البيانات.", "يمكنك تشغيل الاختبارات الآن."),
    ("Never use Python 3.9 here.", "You may use Python 3.10 here now."),
    ("Das Fenster darf nie flackern.", "Das Fenster flackert nicht mehr."),
    ("La página nunca debe mostrar errores.", "La página ya no muestra errores."),
    ("La page ne doit jamais afficher d'erreurs.", "La page n'affiche plus d'erreurs."),
    ("De pagina mag nooit fouten tonen.", "De pagina toont geen fouten meer."),
    ("Страница никогда не должна показывать ошибки.", "Страница больше не показывает ошибки."),
    ("页面不能显示错误信息。", "页面不再显示错误信息。"),
    ("Never push to main.", "Can I push to main now?"),
    ("Never push to main.", "I'll go ahead and push to main then."),
    ("Niemals auf main pushen.", "Kann ich doch jetzt auf main pushen?"),
    ("Ne pousse jamais sur main.", "Est-ce que tu peux pousser sur main maintenant ?"),
    ("Nunca hagas push a main.", "¿Ahora puedes hacer push a main?"),
    ("不要推送到main分支。", "现在可以推送到main分支了吗？"),
    ("mainにはpushしないでください。", "mainにpushしてもいいですか？"),
    ("main에 푸시하지 마세요.", "이제 main에 푸시해도 돼요?"),
    ("Never push to main.", "What I meant is that the push to main failed."),
    ("Only use port 8443 for the gateway.", "Why did you use port 9000 instead of 8443 for the gateway?"),
    ("Der Dienst lauscht immer auf Port 8443.", "Warum lauscht der Dienst auf 9000 anstatt auf Port 8443?"),
    ("Utilise toujours la table clients_v1 ici.", "Pourquoi la table clients_v2 au lieu de clients_v1 ici ?"),
    ("ログは絶対に消さないで。", "データを見ていいです。"),
    ("Always run the unit tests.", "The unit tests stop running after a minute."),
    ("Always run the unit tests.", "There is no need to worry about the unit tests, they run."),
    ("Führe immer die Tests aus.", "Warum musst du die Tests nicht ausführen?"),
    ("Lance toujours les tests unitaires.", "Les tests unitaires se sont arrêtés de tourner."),
    ("Ejecuta siempre las pruebas unitarias.", "Las pruebas unitarias me dejan de funcionar."),
    ("每次修改后都要运行测试。", "测试运行了，没有报错。"),
    ("Never refactor the parser module.", "Stop refactoring the parser module!"),
    ("Always run the unit tests.", "No need to run the slow tests."),
    ("Always add tests for new code.", "You don't need to add tests for the docs."),
    ("Reply in German.", "You don't need to reply to the email in German."),
    ("Ejecuta siempre las pruebas unitarias.", "No hace falta ejecutar las pruebas unitarias del cliente."),
    ("Всегда запускай тесты модуля.", "Можешь не запускать тесты модуля оплаты."),
    ("Don't add comments to the code.", "You don't need to add comments to the code."),
    ("Don't add comments to the code.", "No need to add comments to the code."),
    ("Never delete the log files.", "It is not necessary to delete the log files."),
    ("Run the linter after each change.", "I see no need to change the config of the linter."),
    ("Schreibe keine Kommentare in den Code.", "Hör auf, Kommentare in den Code zu schreiben!"),
    ("Lösche niemals die Logdateien.", "Du musst die Logdateien nicht löschen."),
    ("N'ajoute jamais de commentaires dans le code.", "Arrête d'ajouter des commentaires dans le code !"),
    ("Ne supprime jamais les logs.", "Tu n'as pas besoin de supprimer les logs."),
    ("Nunca borres los registros del servidor.", "Deja de borrar los registros del servidor."),
    ("No borres los registros.", "No hace falta borrar los registros."),
    ("Não adicione comentários ao código.", "Pare de adicionar comentários ao código!"),
    ("Non aggiungere commenti nel codice.", "Smetti di aggiungere commenti nel codice!"),
    ("Voeg nooit commentaar toe aan de code.", "Stop met commentaar toevoegen aan de code!"),
    ("Verwijder nooit de logs.", "Je hoeft de logs niet te verwijderen."),
    ("Никогда не добавляй комментарии в код.", "Перестань добавлять комментарии в код!"),
    ("不要删除日志文件。", "不用再删除日志文件了。"),
    ("コメントを追加しないでください。", "コメントを追加するのをやめてください。"),
    ("ログを削除しないでください。", "ログを削除する必要はありません。"),
    ("로그 파일을 삭제하지 마세요.", "이제 로그 파일을 삭제하지 않아도 돼요."),
    ("लॉग फ़ाइल मत हटाओ।", "लॉग फ़ाइल हटाने की ज़रूरत नहीं।"),
    ("لا تحذف ملفات السجل.", "توقف عن حذف ملفات السجل!"),
    ("Always run the linter.", "Remember the linter, it is fine now."),
    ("Never show the budget to the customer.", "forget the budget"),
    ("Verwende immer das Modul Zahlung.", "Das Modul Versand gilt nicht mehr."),
    ("Ändere nie die Konfiguration.", "Die Datenbank darfst du jetzt ändern."),
    ("Ändere nie die Konfiguration.", "Die Konfiguration kannst du jetzt lesen."),
    ("Keine Emojis.", "Kommentare sind jetzt ok."),
    ("Buche nie bei Ryanair.", "EasyJet ist jetzt ok."),
    ("The timeout must be 10 seconds.", "actually it took 30 seconds"),
    ("The timeout must be 10 seconds.", "make it 5 pixels"),
    ("Nie dotykaj bazy danych.", "Możesz już uruchomić testy."),
    ("Nigdy nie pushuj na main.", "Nie działa push na main."),
    ("Never expose port 5432.", "the port is 9000 now"),
    ("Always run the tests before committing.", "you can run the tests now"),
    ("Always run the unit tests.", "ok go ahead and run the unit tests now"),
    ("You must ask Ana before each deployment.", "you can ask Ana now"),
    ("Only deploy to staging.", "you can deploy to staging now"),
    ("Keep the old API working.", "the old API is fine now"),
    ("Always run the tests before committing.", "actually run the tests before committing the parser too"),
    ("Verwende immer die Datenbank im Keller.", "Die Datenbank im Keller kannst du jetzt verwenden."),
    ("Ejecuta siempre las pruebas.", "Ahora puedes ejecutar las pruebas."),
    ("Esegui sempre i test unitari.", "Ora puoi eseguire i test unitari."),
    ("Sempre execute os testes unitários.", "Agora você pode executar os testes unitários."),
    ("Lance toujours les tests unitaires.", "Tu peux lancer les tests unitaires maintenant."),
    ("每次修改后都要运行测试。", "现在可以运行测试了。"),
    ("必ずテストを実行してください。", "テストを実行していいです。"),
    ("Only use port 8443.", "the log line says port 8443 now"),
    ("Don't delete the production database.", "Delete the test database instead."),
    ("Don't delete the production database.", "you can delete the staging database now"),
    ("Never run migrations against production.", "run the migrations against staging instead"),
    ("Never push to main.", "instead of main push to develop"),
    ("Never delete files outside of /tmp.", "You can delete the files in build now."),
    ("Don't deploy on Fridays.", "deploy is fine now"),
    ("Don't book flights with Ryanair.", "you can book the flights now"),
    ("Never use --force when pushing.", "ok you can push now"),
    ("Don't commit without running the tests.", "you can commit now, tests are green"),
    ("Do not touch the auth code.", "actually, look at the auth code first"),
    ("Never commit secrets.", "never mind, commit it"),
    ("Never commit secrets.", "forget the commit, i'll do it myself"),
    ("The budget is $500.", "forget the budget chart, do the table first"),
    ("Lösche niemals die Produktionsdaten.", "Lösche stattdessen die Testdaten."),
    ("No borres nunca la base de datos de producción.", "Ahora puedes borrar la base de datos de pruebas."),
    ("No envíes correos a los clientes.", "ya puedes enviar el correo a Ana"),
    ("Ne supprime jamais la base de production.", "Supprime plutôt la base de test."),
    ("Non cancellare mai il database di produzione.", "Ora puoi cancellare il database di test."),
    ("Nunca apague o banco de produção.", "Apague o banco de testes em vez disso."),
    ("不要删除生产数据库。", "现在可以删除测试数据库了。"),
    ("不要推送到main分支。", "改成推送到develop分支。"),
    ("本番データベースを絶対に削除しないで。", "テストデータベースは削除していいです。"),
    ("Never delete files without asking me.", "You can delete the files now."),
    ("Never merge pull requests unless I approve.", "You can merge the pull request now."),
    ("Never push to main unless CI is green.", "CI is green, you can push to main now."),
    ("Never edit files outside src/auth.", "You can edit the files now."),
    ("Do not send mails to anyone except the test account.", "You can send the mails now."),
    ("Lösche niemals Dateien ohne Rückfrage.", "Du darfst die Dateien jetzt löschen."),
    ("Ne supprime jamais de fichiers sans me demander.", "Tu peux supprimer les fichiers maintenant."),
    ("Non cancellare mai file senza chiedermelo.", "Ora puoi cancellare i file."),
    ("没有我的同意不要删除文件。", "现在可以删除文件了。"),
    ("許可なくデプロイしないでください。", "デプロイしてもいいです。"),
    ("Never kubectl apply on the prod cluster.", "You can run kubectl get on the prod cluster now."),
    ("Never run terraform apply against production.", "Actually, run terraform plan against production first."),
    ("Do not apply the migration to production.", "You can test the migration against production now."),
    ("Never use the production key.", "You can rotate the production key now."),
    ("Never use real customer names.", "You can remove the real customer names now."),
    ("No comments in the code.", "You can remove the comments in the code now."),
    ("不要使用生产数据库。", "现在可以备份生产数据库了。"),
    ("本番データベースは使用しないでください。", "本番データベースをバックアップしてもいいです。"),
    ("Never restart the production database.", "The production database is fine now."),
    ("Don't touch the staging config.", "ok the staging config is okay again, thanks"),
    ("Never restart the production database.", "Never mind, the production database restarted by itself."),
    ("Never delete the customer table.", "Ignore the customer table for now."),
    ("Never push to main.", "As an exception you can push to main now."),
    ("Always run the tests before committing.", "No need to run the tests before committing this time."),
    ("Niemals auf main pushen.", "Ausnahmsweise darfst du jetzt auf main pushen."),
    ("Ne pousse jamais sur main.", "Exceptionnellement tu peux pousser sur main maintenant."),
    ("不要推送到main分支。", "现在可以推送到main分支，就这一次。"),
    ("mainにプッシュしないでください。", "今回だけmainにプッシュしてもいいです。"),
    ("main에 푸시하지 마세요.", "이번만 main에 푸시해도 돼요."),
    ("Immer die Tests ausführen.", "du musst die langsamen tests nicht mehr ausführen"),
    ("Lance toujours les tests.", "Tu n'as plus besoin de lancer le serveur."),
    ("Keep the test names short.", "answers can be longer now"),
]
"""A rule, and words that tell of the same things and take nothing back."""

BOTH = [
    ("Never edit the file src/ledger/a.py here.", "Never edit the file src/billing/b.py here.", "src/ledger/a.py"),
    ("Don't touch the table orders_v1 in production.", "Don't touch the table users_v2 in production.", "orders_v1"),
    ("Never book flights with Ryanair for us.", "Never book flights with EasyJet for us.", "Ryanair"),
    ("Leave the module src/a.py exactly as it is.", "Leave the module src/b.py exactly as it is.", "src/a.py"),
    ("Ändere die Datei src/a.py auf keinen Fall.", "Ändere die Datei src/b.py auf keinen Fall.", "src/a.py"),
    ("Ne modifie jamais le fichier src/a.py.", "Ne modifie jamais le fichier src/b.py.", "src/a.py"),
    ("No modifiques nunca el archivo src/a.py.", "No modifiques nunca el archivo src/b.py.", "src/a.py"),
    ("Nunca altere o arquivo src/a.py daqui.", "Nunca altere o arquivo src/b.py daqui.", "src/a.py"),
    ("Non modificare mai il documento src/a.py.", "Non modificare mai il documento src/b.py.", "src/a.py"),
    ("Wijzig het bestand src/a.py hier nooit.", "Wijzig het bestand src/b.py hier nooit.", "src/a.py"),
    ("Никогда не меняй файл src/a.py здесь.", "Никогда не меняй файл src/b.py здесь.", "src/a.py"),
    ("不要修改配置文件 src/a.py。", "不要修改配置文件 src/b.py。", "src/a.py"),
    ("設定ファイル src/a.py は変更しないでください。", "設定ファイル src/b.py は変更しないでください。", "src/a.py"),
    ("설정 파일 src/a.py 수정하지 마세요.", "설정 파일 src/b.py 수정하지 마세요.", "src/a.py"),
    ("फ़ाइल src/a.py को मत बदलो।", "फ़ाइल src/b.py को मत बदलो।", "src/a.py"),
    ("لا تعدل الملف src/a.py هنا.", "لا تعدل الملف src/b.py هنا.", "src/a.py"),
    ("never use python 3.9 for the workers", "never use python 3.10 for the workers", "workers"),
    ("Do not install Node 18 on the build host.", "Do not install Node 20 on the build host.", "build"),
    ("Verwende niemals Python 3.9 in den Skripten.", "Verwende niemals Python 3.10 in den Skripten.", "in"),
    ("不要使用 TLS 1.0 版本的协议。", "不要使用 TLS 1.1 版本的协议。", "x"),
]
"""What is forbidden of one thing and then of another, and the name of the first."""

REPLACED = [
    ("Never use Postgres.", "Always use Postgres.", "Never"),
    ("Always use Postgres.", "Never use Postgres.", "Always"),
    ("Always use Postgres.", "Stop using Postgres.", "Always"),
    ("Always answer in German.", "Never answer in German.", "Always"),
    ("Benutze niemals Postgres.", "Benutze immer Postgres.", "niemals"),
    ("N'utilise jamais Postgres.", "Utilise toujours Postgres.", "jamais"),
    ("No uses nunca Postgres.", "Usa siempre Postgres.", "nunca"),
    ("不要用Postgres。", "必须用Postgres。", "不要"),
    ("Always use Postgres.", "Forget Postgres, use MySQL.", "Always"),
    ("Always use Postgres.", "We no longer use Postgres, we use MySQL now.", "Always"),
    ("Benutze immer Postgres.", "Nimm MySQL statt Postgres.", "immer"),
    ("Benutze immer Postgres.", "Benutze MySQL anstelle von Postgres.", "immer"),
    ("Use sempre Postgres.", "Use MySQL ao invés de Postgres.", "sempre"),
    ("Usa sempre Postgres.", "Usa MySQL al posto di Postgres.", "sempre"),
    ("Always use Postgres.", "Use MySQL in place of Postgres.", "Always"),
    ("必须使用Postgres。", "用MySQL代替Postgres。", "必须"),
    ("请务必使用 8000 端口。", "改用 9000 端口。", "8000"),
    ("请务必使用8000端口。", "端口改用9000。", "8000"),
    ("必须使用 8000 端口。", "还是用 9000 端口吧。", "8000"),
    ("端口必须是８０００。", "改用９０００端口。", "８０００"),
    ("必须使用 PostgreSQL 数据库。", "不再使用 PostgreSQL，改用 MySQL 数据库。", "必须"),
    ("必ずポート8000を使ってください。", "ポート9000に変えてください。", "8000"),
    ("必ずポート8000を使ってください。", "やはり9000番ポートを使ってください。", "8000"),
    ("반드시 8000 포트를 사용하세요.", "9000 포트로 바꿔 주세요.", "8000"),
    ("以后回答都用中文。", "改用英文回答。", "中文"),
    ("bullet points please", "answer in tables instead", "bullet"),
    ("use tabs", "use spaces instead", "tabs"),
    ("immer tabs verwenden", "nimm leerzeichen statt tabs", "immer"),
    ("budget is 500", "let's raise the budget to 800", "500"),
    ("100 characters max", "line length is 120 now", "100"),
    ("timeout must be 10 seconds", "raise the timeout to 30 seconds", "10"),
    ("max retries is 3", "set max retries to 5", "is 3"),
    ("Only use port 8443 for the gateway.", "Use port 9000 for the gateway instead.", "8443"),
    ("Always answer in German with short words.", "Actually, answer with short words in French.", "German"),
    ("Keep the refund for this ticket under $120.", "Actually, make the refund for this ticket $180.", "$120"),
    ("Line length: 100 characters max.", "line length is 120 now", "100"),
    ("max line length 100", "line length is 120 now", "100"),
    ("Only use port 8443.", "the port is 9000 now", "8443"),
    ("Only use port 8443 for the gateway.", "Could you use port 9000 for the gateway instead?", "8443"),
    ("Don't touch the billing module.", "I meant the invoice module, not billing.", "Don't"),
    ("Always indent the code with tabs.", "Indent the code with spaces instead.", "tabs"),
    ("Only use port 8443 for the gateway.", "Why don't you use port 9000 for the gateway instead?", "8443"),
    ("Do not deploy the gateway before Fri.", "Do not deploy the gateway before Mon.", "Fri"),
    ("The refund cap for this ticket is €120.", "Actually make the refund cap €180, Marta agreed.", "€120"),
    ("Keep the last 6 weeks for the validation, at most.", "I meant the last 8 weeks for the validation.", "6 weeks"),
    ("Der Dienst lauscht immer auf Port 8443.", "Der Dienst lauscht stattdessen auf Port 9000.", "8443"),
    ("Utilise toujours la table clients_v1 ici.", "Utilise plutôt la table clients_v2 ici.", "clients_v1"),
    ("Usa siempre la tabla clientes_v1 aquí.", "Usa la tabla clientes_v2 aquí en lugar de la otra.", "clientes_v1"),
    ("Use sempre a tabela clientes_v1 aqui.", "Use a tabela clientes_v2 aqui em vez da outra.", "clientes_v1"),
    ("Devi leggere la tabella clienti_v1.", "Puoi invece leggere la tabella clienti_v2.", "clienti_v1"),
    ("Gebruik altijd de tabel klanten_v1 hier.", "Gebruik de tabel klanten_v2 hier in plaats daarvan.", "klanten_v1"),
    ("Всегда используй таблицу clients_v1 здесь.", "Используй вместо этого таблицу clients_v2.", "clients_v1"),
    ("请务必使用8000端口。", "改成使用9000端口。", "8000"),
    ("必ずポート8000を使ってください。", "やっぱりポート9000を使ってください。", "8000"),
    ("반드시 포트 8000번을 사용하세요.", "대신 포트 9000번을 사용하세요.", "8000"),
]
"""A rule, what the user puts in its place without a word of demanding, and what holds no longer then."""
