"""Exact counts where tiktoken is installed, and one clear sentence where it is not. No vocabulary is needed."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from contextfold.errors import PolicyError
from contextfold.tokens import count_tokens, tiktoken_counter
from contextfold.tokens.tiktoken import LONGEST_RUN


class Encoding:
    """One token per character, and a record of what was asked."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode_ordinary(self, text: str) -> list[int]:
        self.seen.append(text)
        return [0] * len(text)


@pytest.fixture
def encoding(monkeypatch: pytest.MonkeyPatch) -> Encoding:
    encoding = Encoding()

    def for_model(model: str) -> Encoding:
        if model not in ("gpt-4o", "gpt-5"):
            raise KeyError(model)
        return encoding

    def get(name: str) -> Encoding:
        return encoding

    stub: Any = types.ModuleType("tiktoken")
    stub.list_encoding_names = lambda: ["o200k_base"]
    stub.get_encoding = get
    stub.encoding_for_model = for_model
    monkeypatch.setitem(sys.modules, "tiktoken", stub)
    return encoding


@pytest.mark.parametrize("model", ["gpt-4o", "openai:gpt-5", "openai/gpt-4o", "o200k_base"])
def test_models_with_and_without_provider_and_encodings_are_known(model: str, encoding: Encoding) -> None:
    assert tiktoken_counter(model)("hello") == 5


def test_long_runs_are_counted_in_portions(encoding: Encoding) -> None:
    text = "a b " + "x" * 10_000 + " " * 9_000 + "y" * LONGEST_RUN + " end"
    assert tiktoken_counter("gpt-4o")(text) == len(text)
    assert "".join(encoding.seen) == text
    assert len(encoding.seen) == 9  # before, three portions of x, nothing between, three of spaces, and the rest
    assert all(len(portion) <= LONGEST_RUN + len(" end") for portion in encoding.seen)


def test_special_tokens_are_ordinary_text(encoding: Encoding) -> None:
    assert tiktoken_counter("gpt-4o")("<|endoftext|>") == len("<|endoftext|>")


def test_count_tokens_uses_the_tokenizer_of_the_model(encoding: Encoding) -> None:
    assert count_tokens([{"role": "user", "content": "hello"}], "gpt-4o") == 5 + 4


def test_a_model_that_tiktoken_does_not_know_is_named(encoding: Encoding) -> None:
    with pytest.raises(PolicyError, match=r"tiktoken knows no model 'claude'.*o200k_base"):
        tiktoken_counter("claude")


def test_a_missing_tiktoken_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(PolicyError, match=r"contextfold\[tiktoken\]"):
        tiktoken_counter("gpt-4o")


def test_a_vocabulary_that_cannot_be_loaded_says_how_to_get_one(
    encoding: Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(name: str) -> Encoding:
        raise ConnectionError("no network")

    monkeypatch.setattr(sys.modules["tiktoken"], "get_encoding", unreachable)
    with pytest.raises(PolicyError, match="TIKTOKEN_CACHE_DIR"):
        tiktoken_counter("o200k_base")
