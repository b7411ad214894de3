"""Which number of an error's text is what. (Whole texts of providers: ``test_overflow``.)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.overflow.figures import Figures, figures_of, whole_number


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("prompt is too long: 9000 tokens > 8192 maximum", Figures(prompt=9000, limit=8192)),
        ("you requested 9000 tokens (8000 in the messages, 1000 in the completion)", Figures(8000, 1000, 9000)),
        ("8000 + 1000 > 8192", Figures(8000, 1000, None, 8192)),
        ("used 9000/8192 tokens", Figures(prompt=9000, limit=8192)),
        ("range of input length should be [1, 8192]", Figures(limit=8192)),
        ("max_tokens is too large: 5000", Figures(answer=5000)),
        ("the input is too large: 5000", Figures(prompt=5000)),
        ("exceeds the limit of 8k by 900", Figures(prompt=8900, limit=8000)),
        ("context window of 1m tokens", Figures(limit=1_000_000)),
        ("the prompt has 131 k tokens, above the limit of 128 k", Figures(prompt=131_000, limit=128_000)),
        ("exceeds the limit of 1 million tokens", Figures(limit=1_000_000)),
        ("a context window of 200 thousand tokens", Figures(limit=200_000)),
        ("a context window of 1000 known tokens", Figures(limit=1000)),
        ("input tokens limit exceeded for tier 1", Figures()),
        ("body exceeds 1,048,576 bytes", Figures(limit=1_048_576, other_unit=True)),
        ("exceeds limit (2013)", Figures()),
        ("gpt-4o, messages[3], version 3.5", Figures()),
        ("400 the prompt has 9000 tokens", Figures(prompt=9000)),
        ("the request exceeds the maximum size\nhttp 413: {message: the request exceeds the maximum size}", Figures()),
        ("the context length is exceeded, http error 400", Figures()),
        ("the limit was exceeded: http/1.1 413", Figures()),
        ("https://a.b takes 413 tokens", Figures(limit=413)),
    ],
)
def test_a_number_is_what_the_words_beside_it_say(text: str, figures: Figures) -> None:
    assert figures_of(text) == figures


def test_the_first_number_of_a_role_wins() -> None:
    assert figures_of("limit 8192, and again: limit 4096") == Figures(limit=8192)


@given(st.integers(0, 10**12))
def test_commas_between_thousands_do_not_matter(number: int) -> None:
    assert whole_number(f"{number:,}") == whole_number(str(number)) == number


@given(st.text(alphabet="0123456789,.km prompt limit tokens[]/+>", max_size=200))
def test_any_text_has_figures_or_none(text: str) -> None:
    assert isinstance(figures_of(text), Figures)
