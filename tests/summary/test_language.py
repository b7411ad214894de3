"""The language of a conversation is the one that people wrote in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.summary import extractive_words, language, message

SENTENCES = {
    "en": "Please fix the login page, and do not change what is in the config.",
    "de": "Bitte ändere nur die Datei mit der Anmeldung, und nicht die Tests.",
    "fr": "Je voudrais que vous corrigiez la page, mais ne touchez pas les tests.",
    "es": "Por favor, corrige la página y no cambies los archivos de configuración.",
    "it": "Puoi correggere la pagina? Non cambiare il file di configurazione.",
    "pt": "Você pode corrigir a página? Não mude os arquivos de configuração.",
    "nl": "Kan je de pagina aanpassen? De tests moet je niet wijzigen.",
    "pl": "Proszę popraw stronę logowania, ale nie zmieniaj testów, bo są dobre.",
    "tr": "Bu sayfa için bir test yaz, ama yapılandırma değil ve çok kısa olsun.",
    "vi": "Bạn có thể sửa trang này cho tôi không? Và các bài kiểm tra là của tôi.",
    "zh": "请修复登录页面的问题，不要修改配置文件。",
    "ja": "ログインページの不具合を直してください。設定ファイルは変更しないでください。",
    "ko": "로그인 페이지를 고쳐 주세요. 설정 파일은 바꾸지 마세요.",
    "ru": "Пожалуйста, исправь страницу входа и не трогай конфигурацию.",
    "uk": "Будь ласка, виправ сторінку входу, її конфігурацію не змінюй і не чіпай.",
    "el": "Διόρθωσε τη σελίδα σύνδεσης και μην αλλάξεις τις ρυθμίσεις.",
    "he": "תקן את דף הכניסה ואל תשנה את ההגדרות.",
    "ar": "أصلح صفحة الدخول ولا تغير الإعدادات.",
    "hi": "लॉगिन पेज ठीक करो और कॉन्फ़िग मत बदलो।",
    "th": "ช่วยแก้หน้าเข้าสู่ระบบ และอย่าแก้ไฟล์ตั้งค่า",
}

LOG = """```
ERROR the connection to the server was lost and it is not possible to continue with this
```
see /srv/app/main.py and https://example.org/the/and/is for `the value of the thing is not`"""


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_recognized(code: str) -> None:
    assert language.dominant([SENTENCES[code]]) == code


@pytest.mark.parametrize("code", SENTENCES)
def test_pasted_logs_code_and_links_do_not_turn_it_into_english(code: str) -> None:
    assert language.dominant([f"{SENTENCES[code]}\n{LOG}"] * 3) == code


@pytest.mark.parametrize("code", sorted(language._NAMES))
def test_every_language_has_an_english_name(code: str) -> None:
    assert language.name(code)[0].isupper()
    assert code in SENTENCES


def test_an_unknown_code_stands_for_itself() -> None:
    assert language.name("Klingon") == "Klingon"


@pytest.mark.parametrize("nothing", [[], [""], ["   "], ["/usr/bin/python3 --version"], ["```\nx = 1\n```"], ["ok"]])
def test_english_where_nothing_tells(nothing: list[str]) -> None:
    assert language.dominant(nothing) == "en"


def test_short_requests_in_english_are_english() -> None:
    """Their one function word is often the article, which Portuguese has, too."""
    asked = ["Write a test", "Add a flag", "run a job", "Rename a column", "Fix a typo"]
    assert [language.dominant([text]) for text in asked] == ["en"] * 5
    assert language.dominant(["Write a test", "Rename a column", "Fix the typo"]) == "en"
    assert language.dominant(["Corrige a data", "Escreve um teste", "Veja a lista"]) == "pt"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Cambia a la rama nueva", "es"),
        ("Qui a gagné", "fr"),
        ("Nimm a oder b", "de"),
        ("Zrób to, a nie tamto", "pl"),
        ("Corrige a função", "pt"),
    ],
)
def test_a_small_word_that_others_have_as_well_makes_none_of_them_english(text: str, code: str) -> None:
    assert language.dominant([text]) == code


def test_names_between_chinese_words_do_not_count_as_english() -> None:
    assert language.dominant(["把src/app/views.py里的getUser改成get_user，再运行pytest"]) == "zh"


def test_a_few_kana_do_not_make_chinese_japanese() -> None:
    assert language.dominant(["这个の字是日语，不过这段话是用中文写的，请继续翻译下面的内容。"]) == "zh"


def test_one_long_pasted_page_does_not_outvote_what_was_written() -> None:
    page = "the page that is shown to all of the users and it is not short " * 500
    assert language.dominant([page, *[SENTENCES["de"]] * 80]) == "de"


def test_the_majority_of_words_decides() -> None:
    assert language.dominant([SENTENCES["en"], SENTENCES["en"], SENTENCES["en"], "请修复"]) == "en"
    assert language.dominant([SENTENCES["zh"], SENTENCES["zh"], "please continue"]) == "zh"


@given(st.lists(st.text(max_size=200), max_size=5))
def test_any_text_has_a_language_that_has_a_name_and_always_the_same(texts: list[str]) -> None:
    code = language.dominant(texts)
    assert code == language.dominant(texts)
    assert code in language._NAMES


def test_what_stands_around_a_summary_is_in_the_language_of_its_headings() -> None:
    """Around Korean, French, Spanish, Portuguese and Russian it was English."""
    abouts = set()
    for code in extractive_words._WORDS:
        text = message.summary_text("one", "[user]\nport 9000", language=code, place="file:///a")
        assert message.parse(text) == ("one", "[user]\nport 9000")
        abouts.add(text.splitlines()[1])
    assert len(abouts) == len(extractive_words._WORDS) == 9
