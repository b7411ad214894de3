"""How many tokens texts and messages have, by a real vocabulary, the same for every strategy.

The vocabulary comes from the folder that TIKTOKEN_CACHE_DIR names, else from the copy inside an installed litellm
(found, not imported), so no network is needed. ``use("estimate")`` counts with contextfold's own estimate instead,
for tests on machines without a vocabulary: fine to see that the instrument works, not to compare strategies.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from benchmarks.replay.chat import Message, calls, content_text, images

VOCABULARY, ESTIMATE = "o200k_base", "estimate"
TOKENIZERS = (VOCABULARY, ESTIMATE)
IMAGE_TOKENS = 1_000
"""A flat price of an image: providers ask from 85 to about 1,600 tokens."""
MESSAGE_OVERHEAD = 4
CALL_OVERHEAD = 8


class Tokenizer(Protocol):
    """Counts tokens and cuts by them."""

    name: str

    def count(self, text: str) -> int: ...

    def clip(self, text: str, limit: int) -> str:
        """The longest head of the text within ``limit`` tokens."""
        ...


class Vocabulary:
    """A vocabulary of tiktoken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._encoding = _encoding(name)

    def count(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))

    def clip(self, text: str, limit: int) -> str:
        found = self._encoding.encode_ordinary(text)
        return text if len(found) <= limit else str(self._encoding.decode(found[:limit]).rstrip("\ufffd"))


class Estimate:
    """contextfold's estimate of a text's tokens."""

    name = ESTIMATE

    def count(self, text: str) -> int:
        from contextfold.tokens import estimate

        return estimate(text)

    def clip(self, text: str, limit: int) -> str:
        while text and (size := self.count(text)) > limit:
            text = text[: min(len(text) - 1, int(len(text) * limit / size))]
        return text


_chosen: list[Tokenizer] = []


def use(name: str) -> None:
    """Count with this tokenizer from now on, in this process."""
    _chosen[:] = [Estimate() if name == ESTIMATE else Vocabulary(name)]
    count.cache_clear()


def tokenizer() -> Tokenizer:
    """The tokenizer in use; the vocabulary unless told otherwise."""
    if not _chosen:
        use(VOCABULARY)
    return _chosen[0]


@lru_cache(maxsize=200_000)
def count(text: str) -> int:
    """Tokens of a text."""
    return tokenizer().count(text) if text else 0


def clip(text: str, limit: int) -> str:
    """The longest head of the text within ``limit`` tokens."""
    return tokenizer().clip(text, limit)


def message_tokens(message: Message) -> int:
    """Tokens of a message: its text, its images, its calls, and what a provider adds around them."""
    total = MESSAGE_OVERHEAD + count(content_text(message.get("content"))) + IMAGE_TOKENS * images(message)
    for _, name, arguments in calls(message):
        total += CALL_OVERHEAD + count(name) + count(arguments)
    return total


@cache
def _encoding(name: str) -> Any:
    import tiktoken

    if not os.environ.get("TIKTOKEN_CACHE_DIR"):
        spec = importlib.util.find_spec("litellm")
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(folder) / "litellm_core_utils" / "tokenizers")
    try:
        return tiktoken.get_encoding(name)
    except Exception as error:  # noqa: BLE001  whatever the download that we do not want came to
        raise RuntimeError(
            f"the vocabulary {name} is not at hand ({type(error).__name__}): install contextfold[bench], "
            "or set TIKTOKEN_CACHE_DIR to a folder that holds it"
        ) from None
