"""How the provider counts tokens: with OpenAI's o200k vocabulary where it is on disk, else with the built-in estimate.

What belongs here: choosing a counter without ever touching a network. tiktoken would download a vocabulary that is
missing or damaged, so both are looked at first. What does not: what of a request counts (``prompt``).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from contextfold.tokens import estimate, tiktoken_counter

VOCABULARY = "o200k_base"
_VOCABULARY_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Both as in ``tiktoken_ext.openai_public``: tiktoken names its cached files by the SHA-1 of their URL."""

_REMEMBERED = 8_192
"""Texts whose size is kept: a conversation grows by a message a turn, and only the new one is counted."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A counter and its name: ``o200k_base``, ``estimate``, or ``custom``."""

    name: str
    count: Callable[[str], int]


def choose_tokenizer(count: Callable[[str], int] | None = None) -> Tokenizer:
    """The given counter, or the best one that needs no network."""
    if count is not None:
        return Tokenizer("custom", count)
    if vocabulary_is_on_disk():
        return Tokenizer(VOCABULARY, lru_cache(_REMEMBERED)(tiktoken_counter(VOCABULARY)))
    return Tokenizer("estimate", lru_cache(_REMEMBERED)(estimate))


def vocabulary_is_on_disk() -> bool:
    """Whether tiktoken will find the vocabulary, whole, in its cache."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # tiktoken takes this for: do not cache
        return False
    path = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    file = path / hashlib.sha1(_VOCABULARY_URL.encode()).hexdigest()
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == _VOCABULARY_SHA256
