"""Reading errors: text between and inside JSON, and texts of any size in little time. (Wrapping: ``test_overflow``.)"""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.overflow import Overflow, classify
from contextfold.overflow.text import LONGEST_TEXT, ErrorText, inner_exceptions, read_exception

ANTHROPIC = "prompt is too long: 213462 tokens > 200000 maximum"
FOUND = Overflow("prompt_too_long", 200000, 213462)


def text_of(value: object) -> str:
    said = ErrorText()
    said.read(value)
    return said.text


def test_json_and_printed_python_are_read_wherever_they_stand_in_a_text() -> None:
    first, second = json.dumps({"message": "One."}), repr({"error": {"message": "It's two.", "code": None}})
    assert text_of(f"Before {first} between {second} after") == "before\none.\nbetween\nits two.\nafter"


def test_many_values_in_one_text_are_all_read() -> None:
    lines = "\n".join(json.dumps({"message": f"line {number}"}) for number in range(2_000))
    assert text_of(lines).startswith("line 0\nline 1\n")
    assert text_of(lines).endswith("line 1998\nline 1999")


def test_what_only_looks_like_json_is_read_as_words() -> None:
    assert text_of("{'role: {'user' " * 50) == ("{role: {user " * 50).strip()


def test_a_printed_value_that_is_too_long_to_parse_is_read_as_words() -> None:
    assert text_of("{'message': '" + "a b " * 20_000 + "'}").startswith("{message: a b a b")


@pytest.mark.parametrize(
    "quoted",
    [
        "a" * 400_000,
        "255," * 1_600 + "255",
        "tool call " * 40_000,
        "input tokens exceed " * 20_000,
        "1234 tokens, " * 30_000,
        '{"' * 100_000,
    ],
    ids=lambda quoted: quoted[:12],
)
def test_a_prompt_or_an_image_quoted_back_hides_nothing_and_takes_no_time(quoted: str) -> None:
    started = time.process_time()
    for text in (f"{ANTHROPIC}\n{quoted}", f"{quoted}\n{ANTHROPIC}"):
        verdict = classify(message=text)
        assert verdict is not None
        assert verdict.kind == "prompt_too_long"
    assert classify(message=f"{ANTHROPIC}\n{'a' * 400_000}") == FOUND
    assert classify(message=f"{'a' * 40_000} {ANTHROPIC} {'a' * 40_000}") == FOUND
    assert time.process_time() - started < 2.0


@given(st.text(max_size=40), st.integers(0, 60_000))
def test_no_text_is_longer_than_the_longest(text: str, times: int) -> None:
    assert len(text_of(text * times)) <= LONGEST_TEXT + 3


def test_no_figure_is_cut_in_two_when_the_middle_of_a_text_is_left_out() -> None:
    numbers = " ".join(["131,072"] * 5_000)
    assert set(text_of(numbers).split()) == {"131,072", "…"}


def test_codes_are_snake_case_and_statuses_are_numbers_from_100_to_599() -> None:
    said = ErrorText()
    for value in ("ContextWindowExceededError", "context-length exceeded", 400, 42, True, None):
        said.add_code(value)
    assert said.codes == ["context_window_exceeded_error", "context_length_exceeded"]
    assert said.statuses == [400]


def test_an_exception_tells_its_fields_codes_and_texts_once() -> None:
    class BadRequestError(Exception):
        param = "messages[0].content"
        status_code = 400
        body = '{"message": "Too long.", "code": "string_above_max_length"}'

    said = read_exception(BadRequestError("Too long."))
    assert said.text == "too long."
    assert said.fields == ["messages[0].content"]
    assert said.codes == ["bad_request_error", "string_above_max_length"]
    assert said.statuses == [400]


def test_the_context_of_a_providers_answer_is_not_what_it_wraps() -> None:
    error = RuntimeError("second")
    error.__context__ = ValueError("first")
    assert [str(inner) for inner in inner_exceptions(error, is_answer=False)] == ["first"]
    assert list(inner_exceptions(error, is_answer=True)) == []
