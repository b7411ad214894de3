"""Sentences and constraints are found in four languages, and not where there are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.inspector.sentences import constraints, is_constraint, sentences

CONSTRAINTS = (
    "The token must not appear in any log.",
    "Never push to the main branch.",
    "Use only the standard library here.",
    "Please do not touch the migrations.",
    "Don't rename public functions.",
    "The page has to load in no more than 2 seconds.",
    "不要修改已有的接口。",
    "所有金额必须保留两位小数。",
    "别动配置文件。",
    "APIキーは絶対にログに出さないでください。",
    "日付は必ず ISO 形式にしてください。",
    "返信は三行以内にしてください。",
    "Die Datei darf nicht größer als 5 MB werden.",
    "Bitte immer im Sie-Stil antworten.",
    "Auf keinen Fall Kundendaten speichern.",
)
NO_CONSTRAINTS = (
    "I don't know where the file is.",
    "We do not have a test for it yet.",
    "Do we have to keep the old name?",
    "Please look at the parser and tell me what you think.",
    "特别好，谢谢你的说明。",
    "别的测试都通过了。",
    "昨日このファイルを直しました。",
    "Ich habe den Test gestern geschrieben.",
)


@pytest.mark.parametrize("sentence", CONSTRAINTS)
def test_a_sentence_that_limits_what_may_be_done_is_a_constraint(sentence: str) -> None:
    assert constraints(f"Hello there, my friend. {sentence}\nThanks a lot.") == [sentence]


@pytest.mark.parametrize("sentence", NO_CONSTRAINTS)
def test_statements_about_oneself_and_questions_are_none(sentence: str) -> None:
    assert not is_constraint(sentence)


def test_sentences_end_where_people_end_them() -> None:
    text = (
        "See e.g. the parser of Dr. Weiss. It is slow! 第一句话说完了。第二句也说完了！ Am 3. Mai kommt z. B. der Test."
    )
    assert sentences(text) == [
        "See e.g. the parser of Dr. Weiss.",
        "It is slow!",
        "第一句话说完了。",
        "第二句也说完了！",
        "Am 3. Mai kommt z. B. der Test.",
    ]


def test_lists_and_code_are_no_sentences_but_the_items_are() -> None:
    text = "- keep the tests green\n1. never skip hooks\n```\nnever_run = always()\n```\nok"
    assert sentences(text) == ["keep the tests green", "never skip hooks"]


def test_pasted_data_is_no_sentence() -> None:
    assert sentences("x" * 401) == []
    assert len(sentences("x" * 400)) == 1


@given(st.text(alphabet="ab .!?。！？\n`-1必须must", max_size=200))
def test_every_sentence_stands_in_its_text(text: str) -> None:
    assert all(sentence in text for sentence in sentences(text))
