"""Words of a full-text index: what stands in a text is found by it, in any script."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.recall.snippets import WIDTH, holds, snippet
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
    return holds(text, parse_query(query))


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
    word = data.draw(st.sampled_from(text.split()))
    assert found(word, text)
    assert found(word.upper(), text)
    assert not found(f"{word} elsewhere", text)


@given(st.text())
def test_any_query_can_be_asked(query: str) -> None:
    parsed = parse_query(query)
    assert len(parsed.terms) == len(parsed.prefixes)
    assert all(term for term in parsed.terms)
    assert parsed.is_empty or holds(query, parsed) or '"' in query


@pytest.mark.parametrize(
    ("query", "text", "hit"),
    [
        ("src/app.py", "see src/app.py", True),
        ("src/app.py", "app.py is not in src", False),
        ('"limit is 4096"', "the limit is 4096.", True),
        ('"limit is 4096"', "the limit: 4096 is it", False),
        ("limit 4096", "4096 is the limit", True),
        ("库", "数据库连接", True),
        ("时", "连接超时", False),  # a lone character is found where a pair begins with it
        ("cafe", "the Café", True),
        ("", "anything", True),
    ],
)
def test_terms_are_words_in_a_row_and_all_must_occur(query: str, text: str, hit: bool) -> None:
    assert found(query, text) == hit


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

    def test_chinese_places_are_shown(self) -> None:
        text = "无关内容。" * 100 + "数据库连接超时。" + "无关内容。" * 100
        assert "数据库连接超时" in snippet(text, parse_query("连接超时"))

    def test_a_single_word_or_the_beginning_stands_in(self) -> None:
        long = "beginning " + "word " * 200
        assert snippet(long, parse_query("nothing")).startswith("beginning")
        assert "needle" in snippet(long + "needle " + long, parse_query('"needle missing"'))
