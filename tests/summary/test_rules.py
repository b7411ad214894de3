"""Rules that a user set stand until they are replaced or withdrawn, in every language that is spoken here."""

from __future__ import annotations

from importlib import resources

import pytest
from tests.summary.said import BOTH, DEMANDED, DONE_ONCE, LIFTED, REPLACED, RULES, STANDING, STAYING, TALK

from contextfold import Compactor, evidence, harness
from contextfold.messages import Message, Text
from contextfold.summary import extractive, message, rules, statements
from contextfold.summary import extractive_cues as cues
from contextfold.summary.extractive_facts import Note, rules_taken_back, sentences
from contextfold.summary.rules import MOST, in_force, taken_back
from contextfold.summary.statements import Statement, statements_of


def standing(*said: str) -> list[str]:
    found = in_force((n, list(statements_of(list(sentences(text))))) for n, text in enumerate(said))
    return [rule.text for _, rule in found]


@pytest.mark.parametrize(
    "rule",
    [
        "You must keep the public API as it is.",
        "Never push to main.",
        "Always write tests first.",
        "Only use the standard library.",
        "Spend at most 40 dollars on this.",
        "Do not touch the billing module.",
        "Send me the draft by Friday.",
        "The budget for the trip is 900 euros.",
        "Niemals in die Produktion schreiben.",
        "Das Dokument muss bis zum 3. Mai fertig sein.",
        "Ne touche jamais à la base de données.",
        "Il faut au maximum trois fichiers, toujours en français.",
        "Nunca borres los registros.",
        "O orçamento é de 300 euros.",
        "Никогда не удаляй журнал.",
        "不要修改数据库。",
        "データベースは変更しないでください。",
        "절대 배포하지 마세요.",
        "Gebruik nooit de oude tabel.",
        "Non toccare mai la base dati.",
        "Only a maintainer merges to main.",
        "This is only for the staging database.",
        "Nur ein Betreuer führt zusammen.",
        "Solo una persona firma los contratos.",
        "Usa soltanto la porta 8443.",
        "Somente o gerente assina.",
        "Seulement le responsable signe.",
        "Alleen de beheerder tekent.",
    ],
)
def test_a_rule_is_known_by_its_words(rule: str) -> None:
    assert cues.PROHIBITION.search(rule)
    assert standing(rule, "Now look at the log.") == [rule]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was held against the words of a rule."""
    found: list[str] = []
    plain = rules._is_meant

    def counted(new: Statement, words: frozenset[str]) -> bool:
        found.append(new.text)
        return plain(new, words)

    monkeypatch.setattr(rules, "_is_meant", counted)
    return found


def test_rules_that_say_the_same_of_other_things_are_compared_once(compared: list[str]) -> None:
    """Each of two hundred was held against each sentence of a long history."""
    said = [f"Do not edit src/part_{n}.py before the review." for n in range(150)]
    assert standing(*said) == said
    assert len(compared) < 2 * len(said)


def test_rules_that_share_a_word_with_what_is_said_later_are_not_all_held_against_it(compared: list[str]) -> None:
    """*Touch* stands in each of two hundred, and each permission was held against all of them with its patterns."""
    letters = "bcdfghklmn"
    said = [f"never touch the {a}o{b}a{a}u of the {b}e{a}i{b}" for a in letters for b in letters]
    lifted = [text.replace("never", "you can") + " now" for text in said]
    assert standing(*said) == said
    assert standing(*said, *lifted) == []
    assert len(compared) < 3 * len(said)


def test_what_statements_name_is_looked_for_where_their_words_tell_them_not_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of thousands that no later one is about was read for names."""
    looked: list[str] = []
    things = statements.things_of

    def counted(text: str) -> statements.Things:
        looked.append(text)
        return things(text)

    for module in (statements, rules):
        monkeypatch.setattr(module, "things_of", counted)
    letters = "abcdefghijklmnop"
    said = [f"Never {a}{b}{a}{b} the {b}{b}{a}{a} of Lin{a}{b}." for a in letters for b in letters]
    found = [tuple(statements_of([text])) for text in said]
    assert len(in_force(enumerate(found))) == MOST
    assert looked == []


@pytest.mark.parametrize("language", RULES)
def test_what_people_demand_of_an_agent_in_their_words_is_a_rule(language: str) -> None:
    """And it is found by the words that its wording may begin with, in a text of capitals as well."""
    said = RULES[language].split("\n")[1:-1]
    assert len(said) >= 12
    assert [text for text in said if standing(text) != [text]] == []
    assert [text for text in said if not cues.PROHIBITION.search(text.upper())] == []


@pytest.mark.parametrize("language", STANDING)
def test_what_holds_from_now_on_or_each_time_and_what_a_user_prefers_is_a_rule(language: str) -> None:
    """*From now on, reply in German* was none, in any language: no word of it demands or forbids."""
    said = STANDING[language].split("\n")[1:-1]
    assert len(said) >= 12
    assert [text for text in said if standing(text) != [text]] == []
    assert [text for text in said if not cues.PROHIBITION.search(text.upper())] == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Please respond in German.", "Reply in French, please."),
        ("Reply in German.", "From now on, answer me in English."),
        (
            "I prefer short answers with the code srv-f996 at the end.",
            "I prefer short answers with the code srv-k601 at the end.",
        ),
        ("I prefer tabs over spaces.", "I prefer spaces over tabs."),
        ("From now on, reply in German.", "You can go back to English."),
        ("From now on, reply in German.", "Switch back to English, please."),
        ("Antworte auf Deutsch.", "Ab jetzt antworte bitte auf Englisch."),
        ("Antworte auf Deutsch.", "Wechsle wieder zu Englisch."),
        ("Responde en inglés.", "Vuelve al español, por favor."),
        ("Rispondi in inglese.", "D'ora in poi torna all'italiano."),
        ("Отвечай по-русски.", "Переключись на английский."),
        ("以后都用中文回答。", "换回英文吧。"),
        ("Réponds en anglais.", "Désormais, parle en français, s'il te plaît."),
        ("以后都用中文回答。", "从现在开始用英文回复。"),
        ("これからは日本語で答えてください。", "英語で返信してください。"),
        ("한국어로 답해 주세요.", "지금부터 영어로 말해 주세요."),
        ("Contéstame en español.", "Quiero que me respondas en inglés."),
        ("Antwoord graag in het Nederlands.", "Antwoord in het Engels."),
        ("Answer in German.", "Let's switch to English."),
        ("Call me Alex.", "call me Sam"),
        ("Call me Alex Miller.", "Please call me Ms Miller."),
        ("Llámame Alex.", "Llámame Sam, por favor."),
        ("Chiamami Alex.", "Chiamami Sam."),
        ("叫我小明", "以后叫我小红"),
        ("太郎と呼んでください", "花子と呼んでください"),
    ],
)
def test_the_later_language_of_answers_and_the_later_wish_hold(earlier: str, later: str) -> None:
    assert standing(earlier, later) == [later]
    assert standing(later, earlier) == [earlier]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Reply in German.", "Write comments in English."),
        ("Reply in German.", "Answer in French and keep the API as it is."),
        ("Answer in French and keep the API as it is.", "Reply in German."),
        ("I prefer the window seat.", "I prefer the vegetarian meal."),
        ("Run the linter after each change.", "Run the tests after each change."),
        ("All amounts in cents.", "All timestamps in UTC."),
    ],
)
def test_what_stands_of_other_things_holds_beside_it(first: str, second: str) -> None:
    assert standing(first, second) == [first, second]


def test_what_is_asked_for_once_or_happens_each_time_is_no_rule() -> None:
    assert [text for text in DONE_ONCE.split("\n")[1:-1] if standing(text)] == []


def test_what_tells_how_things_are_is_no_rule() -> None:
    assert [text for text in TALK.split("\n")[1:-1] if standing(text)] == []


@pytest.mark.parametrize(
    "pasted",
    [
        "fatal: this operation must be run in a work tree",
        "ValueError: must be str, not int",
        "E   AssertionError: expected at least 3",
        'ERROR: column "users.name" must appear in the GROUP BY clause',
        "sqlalchemy.exc.ArgumentError: Column expression must be a column",
        "mapping values are not allowed in this context at line 2 column 102",
        "2024-05-01T12:00:01Z WARN request must be retried, max 5 attempts",
        "error TS2322: the value must not be null",
        "thread 'main' panicked at 'index must be below 5'",
        'raise ValueError("timeout must be at least 1")',
        'if (!name) throw new Error("name must not be null")',
        'assert x > 0, "x must be positive"',
        "// never call this twice",
        "remote: Changes must be made through a pull request.",
        "npm error engine must be at least 18",
        '283: "Pixel Data must be present',
        "only new issues on pull_request: build/pull.patch",
        "newline and only displays the first line",
    ],
)
def test_a_pasted_line_of_a_log_or_of_code_sets_no_rule(pasted: str) -> None:
    assert standing(f"This is what I get:\n{pasted}\nWhat now?") == []


def test_a_pasted_warning_takes_no_rule_back() -> None:
    rule = "Always use the old importer for the ledger."
    pasted = "DeprecationWarning: the old importer of the ledger is deprecated, use the new importer instead"
    assert standing(rule, pasted) == [rule]


@pytest.mark.parametrize(
    "said",
    [
        "WARNING: never touch the ledger",
        "Error messages must be short.",
        "Remote branches must never be deleted.",
        "If (and only if) the tests pass, you may never skip the review.",
        "Errors must never reach the user.",
    ],
)
def test_what_a_person_says_of_errors_and_warnings_is_a_rule(said: str) -> None:
    assert standing(said) == [said]


def test_a_demand_in_the_words_of_reports_is_a_rule() -> None:
    """*Keine Antwort ohne Quelle* is none of a server that does not answer."""
    assert [text for text in DEMANDED.split("\n")[1:-1] if standing(text) != [text]] == []


@pytest.mark.parametrize("stop", ["．", "｡", "！"])
@pytest.mark.parametrize("language", ["zh", "ja"])
def test_a_rule_may_end_with_any_full_stop(language: str, stop: str) -> None:
    """Papers and manuals in Japanese are written with full-width commas and periods, terminals had half-width ones."""
    said = [text for rules in (RULES, STANDING) for text in rules[language].split("\n")[1:-1]]
    ended = [text.rstrip("。") + stop for text in said if text.endswith("。")]
    assert [text for text in ended if standing(f"{text}次。") != [text]] == []
    assert list(sentences("版本３．５发布了．下一步．")) == ["版本３．５发布了．", "下一步．"]


def test_where_a_rule_may_be_found_does_not_hang_on_the_index_of_words() -> None:
    """Each wording knows all the words that it can begin with."""
    known = (*RULES.values(), *STANDING.values(), TALK, DONE_ONCE)
    said = [text for rules in known for text in rules.split("\n")[1:-1]]
    for text in (*said, *(later for _, later in LIFTED + STAYING)):
        for cue in (cues.PROHIBITION, cues.WITHDRAWAL):
            assert cue.search(text) == any(pattern.search(text) for pattern in cue.patterns), text


@pytest.mark.parametrize(("rule", "later"), LIFTED)
def test_what_is_allowed_later_takes_back_the_rule(rule: str, later: str) -> None:
    assert rule in standing(rule)
    assert rule not in standing(rule, later)


@pytest.mark.parametrize(("rule", "later"), STAYING)
def test_what_tells_of_the_same_things_takes_back_no_rule(rule: str, later: str) -> None:
    """A pasted line of a changelog, say: themes that ``no longer crash`` may still never crash."""
    assert rule in standing(rule, later)


@pytest.mark.parametrize(("earlier", "later", "name"), BOTH)
def test_what_is_forbidden_of_two_things_is_forbidden_of_both(earlier: str, later: str, name: str) -> None:
    """Among quoted lines, too, neither stands for the other."""
    assert standing(earlier, later) == [earlier, later]
    assert rules.about(earlier) != rules.about(later)
    lines = [(1000 * n, evidence.lines_of(Message("user", (Text(text),)))) for n, text in enumerate([earlier, later])]
    quoted = evidence.select(lines, budget=200, already=[name], count=lambda text: len(text) // 4, now=2000)
    assert quoted.splitlines()[1:] == [earlier, later]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Issue #12 must be fixed before the release.", "Issue #15 must be fixed before the release."),
        ("Table 3 must always stay as it is.", "Table 5 must always stay as it is."),
        ("Kapitel 2 darf nicht mehr geändert werden.", "Kapitel 4 darf nicht mehr geändert werden."),
        ("L'étape 1 doit toujours précéder l'étape 2.", "L'étape 2 doit toujours précéder l'étape 3."),
        ("Capítulo 3 debe quedar siempre sin cambios.", "Capítulo 7 debe quedar siempre sin cambios."),
        ("Никогда не меняйте раздел 4 отчёта.", "Никогда не меняйте раздел 6 отчёта."),
        ("第3章必须保持不变。", "第5章必须保持不变。"),
        ("p95 latency must be under 200 ms.", "p99 latency must be under 500 ms."),
        ("표 3은 절대 변경하지 마세요.", "표 5는 절대 변경하지 마세요."),
    ],
)
def test_what_is_demanded_of_one_numbered_thing_is_not_said_of_another(earlier: str, later: str) -> None:
    assert standing(earlier, later) == [earlier, later]
    assert rules.about(earlier) != rules.about(later)
    assert standing("Task 3 must be done by Monday.", "Task 3 must be done by Friday.") == [
        "Task 3 must be done by Friday."
    ]


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        (BOTH[0][:2], "You may edit the file src/ledger/a.py now."),
        (BOTH[1][:2], "Forget that about the table orders_v1 in production."),
        (BOTH[5][:2], "Maintenant tu peux modifier le fichier src/a.py."),
        (BOTH[11][:2], "配置文件 src/a.py 现在可以修改了。"),
    ],
)
def test_what_allows_one_thing_again_leaves_the_other_forbidden(rules: tuple[str, str], allowed: str) -> None:
    assert [rule for rule in standing(*rules, allowed) if rule != allowed] == [rules[1]]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The costs may not exceed $300 in total.", "The costs may not exceed $900 in total."),
        ("Never go above version 2.4 of the library.", "Never go above version 2.6 of the library."),
        ("Do not deploy before Monday the first.", "Do not deploy before Friday the first."),
        ("Do not deploy anything before 2026-05-03.", "Do not deploy anything before 2026-06-01."),
        ("Never edit the files of src/a.py here.", "Never edit the files of src/a.py and src/b.py here."),
        ("Only use the test host a.example for runs.", "Only use the test host b.example for runs."),
    ],
)
def test_of_a_limit_the_later_one_holds(earlier: str, later: str) -> None:
    assert standing(earlier, later) == [later]
    assert rules.about(earlier) == rules.about(later) or "src" in earlier


def test_rules_of_one_message_that_say_much_the_same_of_different_things_stand_side_by_side() -> None:
    """A list of them: the last took the place of the first."""
    said = [
        "If there are editor rules in .editorconfig, make sure to include the important parts.",
        "If there is a README.md, make sure to include the important parts.",
    ]
    assert standing(" ".join(said)) == said
    assert standing("Answer in German. Sorry, answer in French.") == ["Sorry, answer in French."]


def test_of_the_next_steps_that_a_user_names_the_newest_is_told() -> None:
    """The earlier one stood beside it, as if there were two."""
    talk = [
        Message("user", (Text(text),))
        for text in (
            "Next step: move the table orders to the new server.",
            "Look at the charts.",
            "Next step: move the table invoices to the new server.",
            "Go on.",
        )
    ]
    told = extractive.summarize(talk, budget=200, count=lambda text: len(text) // 4, for_rules=100)
    assert "invoices" in told
    assert "orders" not in told


def test_of_short_limits_that_differ_in_figures_alone_the_later_one_holds() -> None:
    """They have few words beside names; figures inside of names tell things apart."""
    assert standing("Only use Python 3.11.", "Max 3 retries.", "Only use Python 3.12.") == [
        "Max 3 retries.",
        "Only use Python 3.12.",
    ]
    assert standing("The budget is 500 EUR.", "budget is 800 now") == ["budget is 800 now"]
    assert standing("Das Budget ist 500 Euro.", "Das Budget ist jetzt 800 Euro.") == ["Das Budget ist jetzt 800 Euro."]
    assert standing("The deadline is Friday.", "deadline is Monday now") == ["deadline is Monday now"]
    assert standing("Max 3 retries.", "Max 5 files.") == ["Max 3 retries.", "Max 5 files."]
    assert standing("Always run step_1.sh.", "Always run step_2.sh.") == [
        "Always run step_1.sh.",
        "Always run step_2.sh.",
    ]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("answers in tables", "answer in bullet points"),
        ("use metric units", "use imperial units"),
        ("use single quotes", "use double quotes"),
        ("use camel case", "use snake case"),
        ("short answers please", "detailed answers please"),
        ("all amounts in cents", "i want amounts in euros"),
        ("deadline is friday", "Deadline moved to Monday"),
        ("the deadline is may 5", "the deadline is may 9 now"),
        ("the budget is 500 euros", "the budget is now 800 euros"),
        ("das budget ist 500", "das budget beträgt jetzt 300"),
        ("antworte in stichpunkten", "antworte in tabellen"),
        ("le budget est de 500 euros", "le budget passe à 300 euros"),
        ("el presupuesto es de 500", "sube el presupuesto a 800"),
        ("o orçamento é de 500", "o orçamento passa para 800"),
        ("il budget è di 500", "il budget sale a 800"),
        ("预算是500元", "预算改成300元"),
        ("截止日期是周五", "截止日期改到周一"),
        ("予算は500円です", "予算は300円に変更して"),
        ("予算は500円です", "予算を800円に増やします"),
        ("请在周五前完成。", "请在周一前完成。"),
        ("金曜日までに終わらせて。", "月曜日までに終わらせて。"),
        ("금요일까지 끝내줘.", "월요일까지 끝내줘."),
        ("締め切りは3月1日です。", "締め切りは3月15日に延期します。"),
    ],
)
def test_of_two_manners_or_values_of_one_thing_the_later_one_holds(earlier: str, later: str) -> None:
    """Both were told side by side."""
    assert standing(earlier) == [earlier]
    assert standing(earlier, later) == [later]


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        ("The timeout must be 10 seconds.", "actually make that 30 seconds"),
        ("The service must listen on port 8443.", "use port 9000 instead"),
        ("Use at most 3 retries.", "make that 5 retries"),
    ],
)
def test_what_says_no_more_than_another_figure_stands_beside_its_rule(rule: str, later: str) -> None:
    """The new figure was no rule, and the rule alone says what it is of."""
    assert standing(rule, later) == [rule, later]
    assert standing(later) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Do not touch server 2.", "Do not touch server 3."),
        ("Do not edit file A.", "Do not edit file B."),
        ("不要修改模块3。", "不要修改模块5。"),
        ("不要修改会议室A。", "不要修改会议室B。"),
        ("不要修改开发环境。", "不要修改生产环境。"),
        ("テーブル3は変更しないでください。", "テーブル5は変更しないでください。"),
        ("サーバー2は再起動しないでください。", "サーバー3は再起動しないでください。"),
        ("파일 3을 수정하지 마세요.", "파일 5를 수정하지 마세요."),
        ("절대 개발 서버를 건드리지 마세요.", "절대 운영 서버를 건드리지 마세요."),
    ],
)
def test_what_is_forbidden_of_one_thing_stays_forbidden_of_it(earlier: str, later: str) -> None:
    """Numbered or named in signs, the second took the place of the first."""
    assert standing(earlier, later) == [earlier, later]
    assert rules.about(earlier) != rules.about(later)


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        ("不要修改模块3。", "现在可以修改模块5了。"),
        ("Do not touch server 2.", "You can touch server 3 now."),
        ("ファイル3は変更しないでください。", "ファイル5は変更してもいいです。"),
    ],
)
def test_what_is_allowed_of_one_numbered_thing_is_not_allowed_of_another(rule: str, later: str) -> None:
    assert standing(rule, later) == [rule]
    assert rule not in standing(rule, later.replace("5", "3").replace("server 3", "server 2"))


@pytest.mark.parametrize(("earlier", "later", "stale"), REPLACED)
def test_what_is_put_in_the_place_of_a_rule_stands_in_its_place(earlier: str, later: str, stale: str) -> None:
    """Also where the summary that tells it is read back, and no line quotes what it replaced."""
    assert standing(earlier) == [earlier]
    assert standing(earlier, later) == [later]
    assert [one.text for one in rules.restated(later) if one.is_rule] == [later]
    talk = [Message("user", (Text(text),)) for text in (earlier, "Look at the charts again.", later)]
    told = extractive.summarize(talk, budget=200, count=lambda text: len(text) // 4, for_rules=100)
    assert told.count(later) == 1
    assert stale not in told
    notes = [Note.of(one) for one in talk]
    fallen = rules_taken_back(notes)
    quoted = evidence.select(
        [(1000 * n, evidence.lines_of(one)) for n, one in enumerate(talk[:2])],
        budget=200,
        already=[],
        count=lambda text: len(text) // 4,
        now=3000,
        taken_back=fallen.withdrawn,
        replaced=fallen.replaced,
    )
    assert stale not in quoted


def test_a_rule_that_holds_is_quoted_where_one_fell_whose_words_begin_like_it() -> None:
    """Its line was taken for a part of the other's."""
    holds, fell = "never push to main", "never push to main before 5pm on workdays"
    said = [holds, "Look at src/chart.py.", fell, fell.replace("5pm", "7pm")]
    assert standing(*said) == [holds, said[-1]]
    talk = [Message("user", (Text(text),)) for text in said]
    fallen = rules_taken_back([Note.of(one) for one in talk])
    quoted = evidence.select(
        [(1000 * n, evidence.lines_of(one)) for n, one in enumerate(talk)],
        budget=200,
        already=[],
        count=lambda text: len(text) // 4,
        now=4000,
        taken_back=fallen.withdrawn,
        replaced=fallen.replaced,
    )
    assert holds in quoted.splitlines()


def test_what_stood_beside_a_rule_that_was_replaced_is_quoted_still() -> None:
    said = Message("user", (Text("Only use port 8443 for the gateway. My name is Zoë Núñez, account ACC-88213."),))
    fallen = rules_taken_back([Note.of(said), Note.of(Message("user", (Text("Use port 9000 for it instead."),)))])
    lines = [(1000, evidence.lines_of(said))]
    for gone in (fallen.withdrawn | fallen.replaced, {"Only use port 8443 for the gateway."}):
        quoted = evidence.select(
            lines, budget=200, already=[], count=lambda text: len(text) // 4, now=3000, taken_back=gone, replaced=gone
        )
        assert "ACC-88213" in quoted


def test_questions_and_plain_words_are_no_rules() -> None:
    assert standing("Must it be fast?", "Look at the log of the gateway.", "I do not see it.") == []


@pytest.mark.parametrize(
    "talk",
    [
        "That must have been great fun for all of you!",
        "You must be so proud of your sister.",
        "It must've been such a long way home.",
        "I've always wanted to see the sea there.",
        "Never been there before, is it far?",
        "Taking time for yourself is so important.",
        "It is important to me that people listen.",
        "Don't worry, it went well in the end.",
        "I'm always here for you!",
        "The cache is event-driven; the TTL is only a backstop.",
        "It was only an idea of mine.",
        "Das ist nur ein Vorschlag.",
        "Y es solo una idea mía.",
        "C'est seulement une idée.",
        "È soltanto un'idea.",
        "Isso é apenas um exemplo.",
        "Dat is alleen een voorbeeld.",
    ],
)
def test_what_people_say_of_their_lives_is_no_rule(talk: str) -> None:
    assert not cues.PROHIBITION.search(talk)
    assert not cues.STRICT.search(talk)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (["The budget is $300 in total.", "The budget is $900 in total."], ["The budget is $900 in total."]),
        (["Never push to main.", "Look at it.", "Never push to main."], ["Never push to main."]),
        (["Only use port 8443 for the gateway.", "Forget the port for the gateway."], []),
        (
            [
                "Never touch the billing module.",
                "Always run the linter.",
                "Forget what I said about the billing module.",
            ],
            ["Always run the linter."],
        ),
        (["Never touch the billing module.", "Actually, make the button red."], ["Never touch the billing module."]),
        (
            ["Never leave the settings page.", "On the settings page I can actually see it."],
            ["Never leave the settings page."],
        ),
        (["Never leave the settings page.", "Actually, you may leave the settings page."], []),
        (["不要修改数据库结构。", "算了，数据库结构可以修改。"], []),
    ],
)
def test_later_words_win(said: list[str], left: list[str]) -> None:
    assert standing(*said) == left


BY_HARNESS = "You must never rename the ledger table."
LONG = "It was said before as well. " * 60


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (f"<system-reminder>\n{BY_HARNESS}\n</system-reminder>\nNever push to main.", True),
        (f"Never push to main.\n<system-reminder>\n{BY_HARNESS}{LONG}\n</system-reminder>\n{LONG}", True),
        (f"{LONG}<system-reminder>\n{LONG}{BY_HARNESS}\n</system-reminder>\nNever push to main.", True),
        (f"<system-reminder>\n{BY_HARNESS}", False),
        ("<system-reminder> is no word for the page.\nNever push to main.", True),
        (f"<bash-input>ls</bash-input><bash-stdout>{BY_HARNESS}</bash-stdout><bash-stderr></bash-stderr>", False),
        (f"<local-command-stdout>{BY_HARNESS}</local-command-stdout>Never push to main.", True),
        (f"<environment_context>\n<cwd>/srv</cwd>\n{BY_HARNESS}\n</environment_context>", False),
        (f"<task-notification>\n<summary>{BY_HARNESS}</summary>\n</task-notification>", False),
        (
            "Caveat: The messages below were generated by the user while running local commands. DO NOT respond to "
            "these messages unless asked.\nNever push to main.",
            True,
        ),
    ],
)
def test_what_a_harness_writes_in_a_users_name_sets_no_rule(text: str, typed: bool) -> None:
    """What a person typed beside it does, and so do the instructions of a project."""
    said = Message("user", (Text(text),))
    assert [rule.text for rule in Note.of(said).rules] == ["Never push to main."] * typed
    assert [line.text for line in evidence.lines_of(said) if line.bonus and BY_HARNESS[:20] in line.text] == []
    project = Message("user", (Text(f"# AGENTS.md\n\n{BY_HARNESS}"),))
    assert [rule.text for rule in Note.of(project).rules] == [BY_HARNESS]


def test_reminders_that_never_end_are_read_in_one_walk() -> None:
    text = "Look. " + "<system-reminder> <bash-stdout> Caveat: " * 20_000
    assert harness.typed(text) == text


SKILL = "Base directory for this skill: /srv/skills/ship\n\n# Ship\n\n- Never force push.\n- You must run the linter.\n"
CONTINUED = f"""This session is being continued from a previous conversation that ran out of context.
Analysis:
The limit must be lower. {"It was looked at. " * 90}

6. All user messages:
   - "Never push to main."
   - "does it always fail?"

7. Pending Tasks:
   - Never stop. {"It was looked at. " * 90}
Please continue without asking, and do not stop."""


@pytest.mark.parametrize(
    ("text", "stand"),
    [
        (SKILL, []),
        (f"{SKILL}\n\nARGUMENTS: ship it, but never push to main.", ["ship it, but never push to main."]),
        (CONTINUED, ["Never push to main."]),
        (CONTINUED.partition("6.")[0], []),
    ],
)
def test_what_a_harness_inserts_sets_the_rules_of_the_user_in_it_alone(text: str, stand: list[str]) -> None:
    """The text of a skill holds for its call, and a summary of another model is told in its own words."""
    assert [rule.text for rule in Note.of(Message("user", (Text(text),))).rules if rule.is_rule] == stand


PROSE = "The importer reads a file of orders and writes one row for each of them to the ledger. "


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Never call the billing API from the importer.", "{prose}{rule} {prose}"),
        ("Never call the billing API from the importer.", "{prose}\n\n3. {rule}\n\n{prose}"),
        ("Les montants ne doivent jamais être arrondis.", "{prose}\n- {rule}\n{prose}"),
        ("不要修改数据库。", "{prose}\n- {rule}\n{prose}"),
        ("Never call the billing API.", "{prose}\n<rules>\n- {rule}\n</rules>\n{prose}"),
        ("Never call the billing API.", "Go on.\n<constraints>\n- {rule}\n</constraints>"),
    ],
)
def test_a_rule_stands_wherever_a_long_message_of_a_users_own_words_says_it(rule: str, said: str) -> None:
    message = Message("user", (Text(said.format(prose=PROSE * 20, rule=rule)),))
    assert [found.text for found in Note.of(message).rules] == [rule]


@pytest.mark.parametrize(
    "pasted",
    [
        "The build must never fail. " + PROSE * 80,  # a page
        "249:     always returns a writeable array",
        'raise ValueError("the value must be positive")',
        "NOTE: the table is for those who write reports",
        "<issue>\nIt must never be empty.\n</issue>",
        "You may push to main now.",
    ],
)
def test_what_is_pasted_between_a_users_words_sets_no_rule_and_takes_none_back(pasted: str) -> None:
    rule = Message("user", (Text("Never push to main."),))
    paste = Message("user", (Text(f"{PROSE * 20}\n{pasted}\n{PROSE * 20}"),))
    said = [(n, Note.of(message).rules) for n, message in enumerate([rule, paste])]
    assert [found.text for _, found in in_force(said)] == ["Never push to main."]


@pytest.mark.parametrize(
    ("text", "stand"),
    [
        ("> You must rename the table.\n\nI do not agree.", []),
        ("Berta wrote:\n> Always use MySQL.\n> You should avoid Redis.\nWhat do you think?", []),
        ("You said:\n\n> You may push to main now.\n\nWho allowed that?", ["Never push to main."]),
        ("Follow these rules:\n> Always run the tests.", ["Always run the tests."]),
        ("Halte dich an diese Regeln:\n\n> Immer die Tests ausführen.\n\nDanke", ["Immer die Tests ausführen."]),
        ("> Always run the tests.\n> Never skip one.", ["Always run the tests.", "Never skip one."]),
    ],
)
def test_what_a_user_quotes_sets_no_rule_and_takes_none_back(text: str, stand: list[str]) -> None:
    """Words of others are told. What is said to be obeyed is meant, and so is a message that is all quoted."""
    said = [Message("user", (Text(one),)) for one in ("Never push to main.", text)]
    rules = [found.text for _, found in in_force((n, Note.of(one).rules) for n, one in enumerate(said))]
    assert rules == list(dict.fromkeys(["Never push to main.", *stand]))
    quoted = [text for section, text, _ in Note.of(said[1]).said if section == "constraints"]
    assert quoted == []


def test_a_labelled_message_is_one_statement() -> None:
    said = "HARD RULE: Only Python 3.11. The sandbox has no network."
    assert standing(said) == [said]


def test_of_very_many_rules_the_newest_stand() -> None:
    rules = [f"Never call the function number {'x' * n} of module {chr(97 + n % 26) * 9}." for n in range(MOST + 50)]
    assert len(standing(*rules)) <= MOST


def test_of_very_many_rules_that_were_taken_back_the_newest_are_held_against_lines() -> None:
    """Each line that sets a rule is compared with them all."""
    said = [
        [f"Never touch the table {number:b} of customers.", f"Forget that about table {number:b} of customers."]
        for number in range(3 * MOST)
    ]
    found = taken_back((n, list(statements_of(sentences))) for n, sentences in enumerate(said))
    assert found.withdrawn == {rules[0] for rules in said[-MOST:]}
    assert not found.replaced


def test_rules_have_a_section_and_room_of_their_own() -> None:
    talk = [
        Message("user", (Text("Never write to production."),)),
        *(Message("assistant", (Text(f"I decided to look at module_{n}.py, because it is slow."),)) for n in range(60)),
        Message("user", (Text("Always answer in French."),)),
    ]
    found = extractive.summarize(talk, budget=60, count=lambda text: len(text) // 4, for_rules=60)
    assert "- Never write to production.\n- Always answer in French." in found


@pytest.mark.parametrize(
    "said",
    [
        "NOTE: The gateway runs in Frankfurt.",
        "PROJECT LEAD: Priya owns the release.",
        "DATENBANK: Wir nehmen Postgres 15.",
        "ВАЖНОЕ: сервер стоит в Риге.",
    ],
)
def test_what_a_person_marks_with_a_label_in_capitals_stands(said: str) -> None:
    assert standing(said, "Look at the charts again.") == [said]


@pytest.mark.parametrize(
    "said", ["Note to self, look at it.", "Caroline: Hey there!", "ERROR: no such file", "At 12:30: lunch"]
)
def test_names_clocks_and_logs_are_no_labels(said: str) -> None:
    assert standing(said) == []


def test_a_labeled_statement_is_replaced_by_one_that_says_the_same_of_something_else() -> None:
    earlier, later = (f"FACT: The release owner is {name} this week." for name in ("srv-4711", "srv-0815"))
    assert standing(earlier, later) == [later]


def test_where_little_is_carried_rules_come_before_all_else() -> None:
    rules = [
        "Never touch the orders table.",
        "Spend at most 40 dollars.",
        "Always write tests first.",
        "Send me drafts by Friday.",
    ]
    talk = [
        Message("user", (Text(rules[n // 10] if n % 10 == 0 else f"Remark {n} about the layout."),)) for n in range(40)
    ]
    text = extractive.summarize(talk, budget=30, count=lambda text: len(text) // 4, for_rules=30)
    assert all(rule in text for rule in rules)


def test_where_rules_lack_room_those_of_one_label_stand_under_it_once() -> None:
    rules = [f"HOUSE RULE: Never touch table {name}." for name in ("orders", "invoices", "refunds")]
    talk = [Message("user", (Text(rules[n // 10] if n % 10 == 0 else f"Remark {n}."),)) for n in range(30)]

    def told(room: int) -> str:
        return extractive.summarize(talk, budget=room, count=lambda text: len(text) // 4, for_rules=room)

    assert all(f"- {rule}" in told(60) for rule in rules)
    assert "HOUSE RULE:\n- Never touch table orders.\n- Never touch table invoices.\n- Never touch" in told(17)


@pytest.mark.parametrize("room", range(17, 60, 3))
def test_each_rule_is_read_back_with_the_label_that_it_was_said_with(room: int) -> None:
    rules = [f"HOUSE RULE: Never touch table {name}." for name in ("orders", "invoices", "refunds")]
    rules += ["WAREHOUSE: Only Mia may write.", "Always wait for the night shift.", "LEDGER: Keep amounts in cents."]
    talk = [Message("user", (Text(rules[n // 5] if n % 5 == 0 else f"Remark {n}."),)) for n in range(30)]
    text = extractive.summarize(talk, budget=room, count=lambda text: len(text) // 4, for_rules=room)
    told = extractive.constraints_in(text)
    assert told
    assert set(told) <= set(rules)


@pytest.mark.parametrize("room", [60, 200, 500, 900])
def test_rules_in_words_take_no_more_than_their_room_with_all_their_labels(room: int) -> None:
    words = [f"{a}{b}{c}" for a in ("kalo", "mine", "pura") for b in ("sote", "vixu", "bade") for c in "abcdefg"]
    notes = [Note.of(Message("user", (Text(f"RULES OF THE DATABASE TEAM: Never touch {word}."),))) for word in words]
    told = extractive.in_words(notes, [], budget=room, count=lambda text: len(text) // 4)
    assert len(told) > 2
    assert len(evidence.rules_under_mark(told)) // 4 <= room


def test_under_a_small_target_rules_take_all_the_room_and_none_is_cut() -> None:
    rules = [f"RULE: Never call the service {name * 3} without a ticket." for name in "abcdefgh"]
    wire = [
        {"role": role, "content": text}
        for rule in rules
        for role, text in (
            ("user", rule),
            ("assistant", "Noted."),
            ("user", "How is the page?"),
            ("assistant", "Fine."),
        )
    ]
    for target in range(240, 400, 20):
        out = Compactor(window=4 * target, target=("tokens", target), trigger=("tokens", target + 1)).compact(wire)
        if not out.changed:
            continue
        assert out.summary is not None
        lines = [line.removeprefix("- ") for line in out.summary.text.splitlines() if line.startswith("- ")]
        assert all(
            any(rule.endswith(line) for rule in rules) for line in lines if "ticket" in line or "service" in line
        )


@pytest.mark.parametrize("language", ["en", "de", "zh", "ja"])
def test_an_earlier_summary_is_known_by_the_words_that_its_frame_had_before(language: str) -> None:
    """Stored histories hold summaries of earlier versions."""
    text = message.summary_text("Done: one.", "[user]\nport 9000", language=language)
    now = text.splitlines()[1]
    file = resources.files("contextfold.summary") / "prompts" / f"frame.{language}.md"
    about, _, _, *before = file.read_text(encoding="utf-8").splitlines()
    assert now == about
    assert before
    for former in before:
        assert message.parse(text.replace(now, former)) == ("Done: one.", "[user]\nport 9000")


@pytest.mark.parametrize(
    ("rule", "later", "stands"),
    [
        ("请不要直接推送到main分支。", "现在可以推送到main分支了。", False),
        ("请务必使用8000端口。", "改成9000端口。", False),
        ("mainブランチには絶対にpushしないで。", "mainにpushしていいことにします。", False),
        ("テストは絶対に実行しないで。", "テストを実行してもいいです。", False),
        ("不要连接生产数据库。", "数据库可以连接了。", True),
        ("不要修改配置文件。", "现在可以运行测试了。", True),
        ("ログは絶対に削除しないで。", "データを見ていいです。", True),
    ],
)
def test_what_is_allowed_later_lifts_a_rule_in_chinese_and_japanese(rule: str, later: str, stands: bool) -> None:
    """Their words are found wherever they begin, and endings and words of demanding do not hide that they are equal."""
    assert (rule in standing(rule, later)) == stands
