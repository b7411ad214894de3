"""JSON as text: what is read is written back as it was."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tier_inputs import containers, unhurried

from contextfold.tiers.json_text import DEEPEST, is_spaced, is_too_deep, parse, write


@unhurried
@given(containers(), st.booleans(), st.sampled_from((None, 2)), st.booleans())
def test_writing_what_was_read_gives_the_same_json(
    value: object, ascii_only: bool, indent: int | None, spaced: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    written = write(parse(text), spaced=spaced)
    separators = None if spaced else (",", ":")
    assert json.loads(json.dumps(json.loads(written))) == json.loads(text) or "NaN" in text
    if not ascii_only and not any("\ud800" <= character <= "\udfff" for character in text):
        assert written == json.dumps(value, ensure_ascii=False, separators=separators)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.10,"b":1e400,"c":-0.0}',
        '{"n":12345678901234567890.123456789}',
        '{"a":1,"a":2}',
        '["\\ud83d",true,null]',
        f"[{'9' * 5000}]",
        "[NaN,-Infinity]",
        "{}",
        "[]",
        '"a \\"quoted\\" word"',
    ],
)
def test_numbers_repeated_names_and_half_surrogates_keep_their_spelling(text: str) -> None:
    """What is kept is verbatim."""
    written = write(parse(text))
    assert written == text
    assert written.encode()


@pytest.mark.parametrize("text", ["", "   ", "12", "null", "{", "[1,]", "{'a': 1}", '"a","b"', "{}{}", "plain words"])
def test_what_is_no_json_container_or_string_is_not_read(text: str) -> None:
    assert parse(text) is None


def test_a_line_break_that_a_string_should_have_escaped_is_read() -> None:
    """Tools and models write such JSON, and what is written back is valid."""
    assert json.loads(write(parse('{"command": "cd /srv\nls"}'))) == {"command": "cd /srv\nls"}


def test_text_nested_too_deeply_is_not_read_and_never_recursed_into() -> None:
    assert parse("[" * DEEPEST + "]" * DEEPEST) is not None
    assert parse("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1)) is None
    assert parse("[" * (DEEPEST - 1) + "[]," * 9 + "[]" + "]" * (DEEPEST - 1)) is not None
    assert parse("[" * 200_000 + "]" * 200_000) is None
    assert not is_too_deep(json.dumps(["[[[[" * 50] * 100))
    assert is_too_deep("[" * 100)


def test_a_string_without_an_end_is_looked_at_once() -> None:
    """From each escaped quote in it another search began that read to the end: 40 kilobytes took two seconds."""
    started = time.process_time()
    assert parse("[" * DEEPEST + '["' + '\\"' * 100_000 + "]") is None
    assert time.process_time() - started < 1


def test_the_blank_after_a_colon_is_recognized() -> None:
    assert is_spaced('{"a": 1}')
    assert not is_spaced('{"a":1}')
