"""What is done to a text some of it at a time is what the language does to all of it."""

from __future__ import annotations

import re
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold import at_once

TEXTS = st.text(st.sampled_from("aBé\n\r\v\x1c\x85\u2028İıßſK日𝄞\ud834\udd1e "), max_size=60)
SPELLED = ("utf-16-le", "surrogatepass")


@pytest.fixture(autouse=True, scope="module")
def few_signs() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "AT_ONCE", 5)
        yield


@given(TEXTS)
def test_pieces_of_a_text_are_the_text(text: str) -> None:
    whole = text.encode("utf-8", "surrogatepass")
    assert b"".join(at_once.encoded(text)) == whole
    assert at_once.digest(text) == blake2b(whole, digest_size=16).digest()
    assert len(at_once.folded(text)) == len(text)
    assert at_once.folded(text) == "".join({"İ": "i", "ſ": "s", "ı": "i"}.get(sign, sign.lower()) for sign in text)
    assert at_once.without_halves(text) == text.encode(*SPELLED).decode("utf-16-le", "replace")
    for keepends in (False, True):
        assert at_once.split_lines(text, keepends) == text.splitlines(keepends)


@given(st.text(st.sampled_from("aé日 。.!\n-/+\u0301"), max_size=200))
def test_pieces_of_words_are_the_text_none_is_long_and_no_cut_word_leaves_a_small_rest(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "AT_ONCE", 40)
        pieces = list(at_once.some_words(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 20
    cut = [n for n, piece in enumerate(pieces[:-1]) if piece[-1] not in " 。.!\n"]
    assert all(not re.search(r"[\s。.!]", pieces[n + 1][:10]) and len(pieces[n + 1]) >= 10 for n in cut)


def test_a_text_without_line_feeds_is_split_some_at_a_time() -> None:
    for end in ("\r", "\u2028"):
        assert max(map(len, at_once.some_lines(f"a line{end}" * 100))) < 3 * len("a line\r")


def test_half_a_pair_is_refused_where_it_cannot_be_sent() -> None:
    with pytest.raises(UnicodeEncodeError):
        b"".join(at_once.encoded("longer than one piece \ud834", errors="strict"))
