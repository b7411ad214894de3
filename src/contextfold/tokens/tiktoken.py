"""Exact counts with OpenAI's tokenizer, where the extra ``contextfold[tiktoken]`` is installed.

Belongs here: everything that knows about tiktoken. It is imported on first use only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from contextfold.errors import PolicyError, shown

LONGEST_RUN = 4_096
"""Characters. The time of byte-pair merging grows faster than the length of a run without a break, so longer runs are
counted in portions of this length. That adds at most one token per portion."""

_LONG_RUNS = re.compile(rf"(?<!\S)\S{{{LONGEST_RUN + 1},}}+|(?<!\s)\s{{{LONGEST_RUN + 1},}}+")


def tiktoken_counter(model: str) -> Callable[[str], int]:
    """A function that counts the tokens of a text as ``model`` does. Special tokens in it are ordinary text.

    ``model`` is a model's name, with or without its provider ("gpt-4o", "openai:gpt-5"), or an encoding ("o200k_base").
    Raises ``PolicyError`` where tiktoken is not installed, does not know the model, or cannot load its vocabulary.
    """
    encode = _encoding(model).encode_ordinary

    def count(text: str) -> int:
        return sum(len(encode(portion)) for portion in _portions(text))

    return count


def _portions(text: str) -> Iterator[str]:
    start = 0
    for run in _LONG_RUNS.finditer(text):
        yield text[start : run.start()]
        yield from (run[0][place : place + LONGEST_RUN] for place in range(0, len(run[0]), LONGEST_RUN))
        start = run.end()
    yield text[start:]


def _encoding(model: str) -> Any:
    try:
        import tiktoken
    except ImportError:
        raise PolicyError(
            f"counting as {model!r} does needs tiktoken, which is not installed: pip install 'contextfold[tiktoken]', "
            "or count without a model (the built-in estimate)"
        ) from None
    try:
        if not isinstance(model, str):
            raise KeyError(model)
        if model in tiktoken.list_encoding_names():
            return tiktoken.get_encoding(model)
        return tiktoken.encoding_for_model(re.split("[:/]", model)[-1])
    except KeyError:
        raise PolicyError(
            f"tiktoken knows no model {shown(model)}: name a model of OpenAI or one of the encodings "
            f"{', '.join(tiktoken.list_encoding_names())}, or count without a model (the built-in estimate)"
        ) from None
    except OSError as error:
        raise PolicyError(
            f"the vocabulary for {model!r} cannot be loaded ({type(error).__name__}): let tiktoken download it once, "
            "or set TIKTOKEN_CACHE_DIR to a folder that has it"
        ) from error
