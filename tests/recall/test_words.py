"""Words of a full-text index: what stands in a text is found by it, in any script."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold import Compactor
from contextfold.recall import search
from contextfold.recall.memory import MemoryIndex
from contextfold.recall.ranking import place_of, rank
from contextfold.recall.snippets import WIDTH, snippet
from contextfold.recall.words import LONGEST, parse_query, words_of

SENTENCES = st.lists(
    st.sampled_from(
        [
            "The limit in src/app.py is 4096.",
            "Café No. 3",
            "数据库连接超时",
            "データベースに接続できません",
            "Fehler: Maß > 3",
        ]
    ),
    min_size=1,
    max_size=6,
)


def found(query: str, text: str) -> bool:
    index = MemoryIndex()
    index.add(0, text)
    return bool(rank(parse_query(query), index, 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The limit_3 is 4096!", ["the", "limit", "3", "is", "4096"]),
        ("Café ＡＢＣ", ["cafe", "abc"]),
        ("数据库", ["数据", "据库"]),
        ("库", ["库"]),
        ("用v2库存", ["用", "v2", "库存"]),
        ("ガス", ["ガス"]),
        ("— … !", []),
        ("x" * 300, ["x" * LONGEST]),
        (r'{"a": "one\ntwo\\nsix", "b": "\u0416\ud83d\ude00"}', ["a", "one", "two", "nsix", "b", "ж"]),
        (r'open("C:\new\table") or C:\temp "', ["open", "c", "new", "table", "or", "c", "temp"]),
    ],
)
def test_texts_become_words(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


@given(sentences=SENTENCES, data=st.data())
def test_every_run_of_characters_of_a_text_in_chinese_or_japanese_finds_it(
    sentences: list[str], data: st.DataObject
) -> None:
    text = " ".join(sentences)
    runs = re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]{2,}", text)
    if not runs:
        return
    run = data.draw(st.sampled_from(runs))
    start = data.draw(st.integers(0, len(run) - 2))
    stop = data.draw(st.integers(start + 2, len(run)))
    assert found(run[start:stop], text)


@given(sentences=SENTENCES, data=st.data())
def test_every_word_of_a_text_finds_it_and_a_foreign_one_does_not(sentences: list[str], data: st.DataObject) -> None:
    text = " ".join(sentences)
    word = data.draw(st.sampled_from([word for word in text.split() if any(map(str.isalnum, word))]))
    assert found(word, text)
    assert found(word.upper(), text)
    assert found(f'"{word}" elsewhere', text)
    assert not found(f'{word} "elsewhere"', text)
    assert not found("elsewhere", text)


@given(st.text())
def test_any_query_can_be_asked(query: str) -> None:
    parsed = parse_query(query)
    assert all(unit.words for unit in parsed.units)
    assert parsed.is_empty or found(query, query) or any(unit.required for unit in parsed.units)


@pytest.mark.parametrize(
    ("query", "text", "hit"),
    [
        ("src/app.py", "see src/app.py", True),
        ('"limit is 4096"', "the limit is 4096.", True),
        ('"limit is 4096"', "the limit: 4096 is it", False),
        ("“limit is 4096”", "the limit: 4096 is it", False),
        ("limit 4096", "4096 is the limit", True),
        ("limit 4096", "4096", True),
        ('limit "4096"', "limit", False),
        ('"the limit" "4096"', "the limit is 8192", False),
        ("库", "数据库连接", True),
        ("时", "连接超时", False),  # a lone character is found where a pair begins with it
        ("数据库的端口", "数据库连接超时", True),  # no text has it all, so its pairs are looked for
        ("cafe", "the Café", True),
        ("groups", "She went to the support group for it.", True),
        ("support group", "Those are the groups that we have.", True),
        ("Verbindung", "Die Datenbankverbindungen sind nicht mehr da.", True),
        ("Datenbank", "Die Datenbankverbindungen sind nicht mehr da.", True),
        ("Datenbankverbindung", "Die Verbindung zur Datenbank ist nicht da.", True),
        ("Verbindungsfehler", "Es ist ein Fehler und ich kann nicht mehr.", True),
        ("enbank", "Die Datenbankverbindungen sind nicht mehr da.", False),
        ("maisons", "Il est dans la maison et nous ne pouvons pas.", True),
        ("книги", "Я не вижу эту книгу, и он тоже не видит.", True),
        ("refresh the user token", "see refreshUserTokens() there", True),
        ("tokens", "see refreshUserToken() there", True),
        ("refresh", '{"content": "call it:\\nrefreshUserToken()"}', True),
        ("refreshUser", "see refreshUserToken() there", True),
        ("refreshUserSecret", "the secret of the user", True),
        ("oom", "the pods were OOMKilled", True),
        ("killed", "the pods were OOMKilled", True),
        ("url", "call getURLForUser", True),
        ("bucket", "S3BucketName is not set", True),
        ("auth", "an OAuth2Token", True),
        ("encode", "with base64Encode", True),
        ("token", "refreshToken2 failed", True),
        ("postgres", "we chose PostgreSQL for it", True),
        ("3f2a9b", "commit 3f2a9bc0 fixed it", True),
        ("3f2a9bc0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6", "commit 3f2a9bc fixed it", True),
        ("ken", "see refreshUserToken() there", False),
        ("post", "we chose PostgreSQL for it", False),
        ("hpamtsb", "YWJjZGVmZ2hpamtsbW9sZ2FucA", False),
    ],
)
def test_any_word_finds_a_text_in_any_form_and_quoted_words_must_be_there(query: str, text: str, hit: bool) -> None:
    assert found(query, text) == hit


def best(query: str, *texts: str, limit: int | None = None) -> list[int]:
    index = MemoryIndex()
    for n, text in enumerate(texts):
        index.add(n, text)
    return [one.index for one in rank(parse_query(query), index, limit or len(texts))]


@pytest.mark.parametrize(
    ("query", "texts", "order"),
    [
        ("port of the gateway", ["the port", "hay", "hay", "the gateway has a port", "hay"], [3, 0]),
        ("rare common", ["common", "hay", "rare", "hay", "common", "hay", "common"], [2, 6, 4, 0]),
        ("needle", ["needle", "hay", "hay", "needle"], [3, 0]),  # equal: the newer one
        ("needle", ["needle needle needle hay", "hay", "hay", "needle " + "hay " * 30], [0, 3]),
        ("needle", ["needle", "hay", "hay", "needle " + "hay " * 100], [0, 3]),
        ("where is app.py", ["py app app app where is the app", "hay", "hay", "long " * 80 + "app.py"], [3]),
        ("who is TCK-0042", ["tck tck tck", "hay", "hay", "TCK-0043 " * 3, "hay", "x " * 50 + "tck-0042"], [5]),
        ("file of app.py", ["file " * 9, "hay", "hay", "word " * 90 + "app.py"], [3, 0]),
        ("and/or", ["or is it and", "hay", "hay", "nothing"], [0]),
        ("needle", ["needle needle needle " + "hay " * 30, "hay " * 30, "hay " * 30, "needle hay hay"], [0, 3]),
        # inside compounds it counts once, and less; so do the parts of a name that no text has
        ("token", ["token hay hay", "hay", "hay", "refreshToken refreshToken refreshToken"], [0, 3]),
        ("refreshUserSecret port", ["hay", "port", "hay", "hay", "secret"], [1, 4]),
        ("3f2a9b needle", ["needle 3f2a9bc0", "hay", "hay", "needle"], [0, 3]),  # by its first digits
        # what stands beside one counts although it is no answer itself
        ('"port" gateway', ["hay", "port", "gateway", "hay", "hay", "port"], [1, 5]),
        ('"port" gateway', ["gateway", "port", "hay", "hay", "hay", "port"], [1, 5]),
    ],
)
def test_the_best_come_first(query: str, texts: list[str], order: list[int]) -> None:
    assert best(query, *texts) == order


def test_how_much_of_a_query_a_message_has_is_weighed_by_how_rare_its_words_are() -> None:
    """Words that no message has could be in no answer, and do not count."""
    index = MemoryIndex()
    for n, text in enumerate(["port and gateway", "hay", "port", "hay", "port"]):
        index.add(n, text)
    both, *ports = rank(parse_query("port gateway unheard"), index, 3)
    assert (both.index, both.share, set(both.held)) == (0, 1.0, {"port", "gateway"})
    assert both.held[0] == "gateway"  # the rarest first
    assert [one.held for one in ports] == [("port",)] * 2
    assert all(0 < one.share < 0.4 for one in ports)


def test_a_name_comes_first_however_many_others_hold_more_of_the_rest() -> None:
    texts = [*["the port of the gateway, the port"] * 150, *["hay"] * 300, "word " * 3_000 + "app.py"]
    assert best("port of the gateway in app.py", *texts, limit=2)[0] == 450


def test_however_long_a_message_is_its_rows_stand_in_their_order() -> None:
    assert place_of(0, 0, 1 << 40) < place_of(0, 1, 1) < place_of(1, 0, 1)


def test_as_many_are_found_as_are_asked_for() -> None:
    assert len(best("needle", *["needle"] * 250)) == 250


def test_a_phrase_is_found_where_a_very_long_text_goes_on() -> None:
    words = [f"w{n}" for n in range(20_000)]
    for place in (0, 7_995, 8_000, 19_990):
        assert found(f'"{" ".join(words[place : place + 6])}"', " ".join(words))


@pytest.mark.parametrize(
    "marks", ["\u0301\u0327", "\u3099\u0301", "\u0f73\u0301", "\uff9e\uff9f\u0301", "\u093c\u094d"]
)
def test_a_letter_with_any_number_of_marks_is_read_in_time_with_their_number(marks: str) -> None:
    """Unicode has them sorted, which takes time with the square of their number."""

    def seconds(number: int) -> float:
        before = time.process_time()
        assert any(word.startswith("report") for word in words_of(f"report e{marks * number} of April"))
        return time.process_time() - before

    assert min(seconds(32_000) for _ in range(3)) < 8 * min(seconds(8_000) for _ in range(3)) + 0.05
    assert list(words_of(f"cafe{marks * 15}s")) == list(words_of(f"cafe{marks * 40}s"))


def test_a_message_beside_a_good_one_gains_from_it() -> None:
    texts = ["gateway", "hay", "the port of the gateway?", "gateway", "hay", "gateway"]
    assert best("port gateway", *texts)[:2] == [2, 3]


def test_every_question_word_is_left_out_as_long_as_others_remain() -> None:
    assert parse_query("When did she go to the meeting?").terms == (("go",), ("meeting",))
    assert parse_query("Wann ist das Treffen und wo?").terms == (("treffen",),)
    assert parse_query("what was it?").terms == (("what",), ("was",), ("it",))


@pytest.mark.parametrize("between", [" ", "/", "-"])
def test_a_pasted_log_is_a_query_that_takes_no_minutes(between: str) -> None:
    """Each of a thousand words was looked for in all of each text that was found."""
    words = [f"{''.join('abcdefghij'[int(digit)] for digit in str(10_000 + n))}tion" for n in range(20_000)]
    text = " ".join(words[::-1])
    query = parse_query(between.join(words[:2_000]))
    index = MemoryIndex()
    for number in range(8):
        index.add(number, text)
    began = time.perf_counter()
    assert len(rank(query, index, 8)) == 8
    assert not set(words[:2_000]).isdisjoint(snippet(text, query).split())
    assert time.perf_counter() - began < 12


class TestSnippets:
    def test_a_short_text_is_shown_whole_on_one_line(self) -> None:
        assert snippet("one\n  two", parse_query("two")) == "one two"

    @given(before=st.integers(0, 900), after=st.integers(0, 900))
    def test_the_place_is_shown_wherever_it_stands(self, before: int, after: int) -> None:
        text = "lorem " * before + "the port is 8443 here " + "ipsum " * after
        shown = snippet(text, parse_query("port 8443"))
        assert "8443" in shown
        assert len(shown) <= WIDTH
        assert shown.startswith("…") == (not text.startswith(shown[:20]))

    def test_a_name_is_shown_rather_than_more_of_the_words_around_it(self) -> None:
        text = "the port of the gateway " + "lorem " * 300 + "app.py " + "ipsum " * 300
        assert "app.py" in snippet(text, parse_query("port of the gateway in app.py"))

    def test_letters_that_are_two_in_lower_case_move_no_place(self) -> None:
        text = "İ" * 600 + " the port is 8443 " + "ipsum " * 300
        assert "8443" in snippet(text, parse_query("port 8443"))

    def test_half_of_a_letter_that_is_spelled_by_its_numbers_is_not_shown(self) -> None:
        assert snippet('{"a": "\\ud83d the port"}', parse_query("port")).encode()

    def test_chinese_places_are_shown(self) -> None:
        text = "无关内容。" * 100 + "数据库连接超时。" + "无关内容。" * 100
        assert "数据库连接超时" in snippet(text, parse_query("连接超时"))

    def test_a_word_inside_a_name_is_shown(self) -> None:
        text = "lorem " * 300 + "call refreshUserToken there " + "ipsum " * 300
        assert "refreshUserToken" in snippet(text, parse_query("token"))
        assert "refreshUserToken" in snippet(text, parse_query("refreshUse"))

    @pytest.mark.parametrize(
        ("query", "elsewhere", "place"),
        [
            ("get_choices", "the widget/choices and target choices", "call get_choices() there"),
            ("views.py", "views __pycache__ and reviews.py", "edit views.py there"),
            ('"port 80"', "the port 8080 and export 80", "on port 80 there"),
        ],
    )
    def test_a_name_is_shown_where_its_words_stand_and_not_where_others_begin_or_end_like_it(
        self, query: str, elsewhere: str, place: str
    ) -> None:
        text = f"{elsewhere} {'lorem ' * 300}{place} {'ipsum ' * 300}"
        assert place in snippet(text, parse_query(query))

    def test_a_single_word_or_the_beginning_stands_in(self) -> None:
        long = "beginning " + "word " * 200
        assert snippet(long, parse_query("nothing")).startswith("beginning")
        assert "needle" in snippet(long + "needle " + long, parse_query('"needle missing"'))


def test_the_whole_name_comes_before_its_parts_and_a_word_before_what_begins_with_it() -> None:
    assert best("refreshUserToken", "token of the user", "hay", "refreshUserToken") == [2]
    assert best("user token", "call refreshUserToken first there", "hay", "hay", "the user has a token") == [3, 0]
    assert best("postgres", "PostgreSQL", "hay", "postgres") == [2, 0]
    assert best("kubern", "kubernetes", "hay", "kubern") == [2]


def test_a_name_with_hyphens_comes_before_its_words_apart() -> None:
    texts = ["the content is of a type; content, type", "hay", "Content-Type: text/html", "content of each type"]
    assert best("content-type", *texts)[0] == 2
    assert set(best("content-type", *texts)) == {0, 2, 3}
    assert best("a well-known port 8443", "a well-known one", "hay", "hay", "port 8443 known well")[0] == 3


@pytest.mark.parametrize("stored", [False, True])
def test_what_stands_in_json_is_found_by_each_of_its_words(stored: bool) -> None:
    """What an agent wrote to a file, and what a command or a tool of the provider's gave, is JSON in messages."""
    lines = "import os\n" + "# nothing\n" * 60 + "Frobnicator(1)\r\n\tquux = 'Zürich'\n"
    call = {"type": "tool_use", "id": "c", "name": "write", "input": {"path": "a.py", "content": lines}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": json.dumps({"stdout": lines, "code": 0})}
    ran = {"type": "server_tool_use", "id": "s", "name": "bash_code_execution", "input": {"command": "cat a.py"}}
    gave = {"type": "bash_code_execution_result", "stdout": lines, "stderr": "", "return_code": 0, "content": []}
    messages: list[Any] = [
        {"role": "user", "content": "where is C:\\new\\table?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {
            "role": "assistant",
            "content": [ran, {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": gave}],
        },
    ]

    def found(query: str) -> dict[int, str]:
        if not stored:
            return {hit.index: hit.snippet for hit in search(messages, query)}
        session = Compactor(window=8_000).session("t", "sqlite://")
        session.append(messages)
        return {hit.index: hit.snippet for hit in session.search(query)}

    for word in ("Frobnicator", "quux", '"Frobnicator(1) quux"'):
        shown = found(word)
        assert sorted(shown) == [1, 2, 3]
        assert all("quux = 'Zürich'" in snippet for snippet in shown.values())
    assert sorted(found("Zürich")) == [1, 2, 3]
    assert list(found("table")) == list(found("new")) == [0]


@pytest.mark.parametrize("stored", [False, True])
def test_a_hash_is_found_by_its_first_digits(stored: bool) -> None:
    whole = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"
    said = [f"merged as {whole}", "see 9f8e7d6", "see 9f8e7d7", "the façade was decade old"]
    messages = [{"role": "user", "content": text} for text in said]

    def found(query: str) -> list[int]:
        if not stored:
            return [hit.index for hit in search(messages, query)]
        session = Compactor(window=8_000).session("t", "sqlite://")
        session.append(messages)
        return [hit.index for hit in session.search(query)]

    assert sorted(found("what was in commit 9f8e7d6?")) == [0, 1]
    assert found(f"what was in {whole[:12]}") == found(whole) == [0]
    assert found("facade") == found("decade") == [3]
