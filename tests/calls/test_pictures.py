"""A picture of megabytes is copied no more often than it must be: each copy holds the interpreter and the loop."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from contextfold import Compactor, formats

DATA = "QUJD" * 500_000
URL = f"data:image/png;base64,{DATA}"
WITH_PICTURE: dict[str, dict[str, Any]] = {
    "openai-chat": {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
    "openai-responses": {"role": "user", "content": [{"type": "input_image", "image_url": URL}]},
    "anthropic": {
        "role": "user",
        "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}],
    },
}


def copies(do: Any) -> float:
    """The most memory that was taken meanwhile, in pictures."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1] / len(DATA)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format", WITH_PICTURE)
def test_a_picture_is_copied_once_when_it_is_read_and_not_at_all_by_the_turn_behind_it(format: str) -> None:
    wire = [{"role": "user", "content": "Look at this."}, WITH_PICTURE[format]]
    assert copies(lambda: formats.decode(wire, formats.get(format))) < 1.5
    compactor = Compactor(window=64_000)
    compactor.compact(wire, format=format)
    answered = [*wire, {"role": "assistant", "content": "A cat."}]
    assert copies(lambda: compactor.compact(answered, format=format)) < 0.5
