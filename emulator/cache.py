"""The prompt cache: which beginnings of prompts the provider has seen.

Beginnings end where segments (messages) end. Real caches cut finer; what they agree on is that one changed byte ends
the common beginning, and that is what tests look for. OpenAI caches every prompt by itself; Anthropic reads and
writes only up to the last block that is marked with ``cache_control``, and reports what it wrote.

What belongs here: remembering and looking up. What does not: which fields report it (``wires``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from threading import Lock

from emulator.prompt import Prompt

OPENAI_STEP = 128
"""Tokens: OpenAI reports cached tokens in steps of this size, from ``SHORTEST_TOKENS`` upwards."""

SHORTEST_TOKENS = 1_024
"""Tokens: the shortest beginning that OpenAI and Anthropic (for most models) cache."""


class PromptCache:
    """Beginnings of prompts per model. Safe to use from several threads."""

    def __init__(self, shortest: int = SHORTEST_TOKENS) -> None:
        self._shortest = shortest
        self._known: set[bytes] = set()
        self._lock = Lock()

    def use(self, model: str, prompt: Prompt, *, by_marks: bool) -> tuple[int, int]:
        """(tokens read from the cache, tokens written to it), and remember this prompt.

        ``by_marks``: only beginnings up to the last cache mark are read or written.
        """
        beginnings = list(self._beginnings(model, prompt, by_marks))
        with self._lock:
            read = max((size for key, size in beginnings if key in self._known), default=0)
            self._known.update(key for key, _ in beginnings)
        longest = beginnings[-1][1] if beginnings else 0
        if by_marks:
            return read, longest - read
        return read // OPENAI_STEP * OPENAI_STEP, 0

    def _beginnings(self, model: str, prompt: Prompt, by_marks: bool) -> Iterator[tuple[bytes, int]]:
        """(key, tokens) of each beginning that is long enough, shortest first."""
        marks = [place for place, segment in enumerate(prompt.segments) if segment.cache_mark]
        end = len(prompt.segments) if not by_marks else (marks[-1] + 1 if marks else 0)
        state, size = hashlib.sha256(model.encode()), 0
        for segment, tokens in zip(prompt.segments[:end], prompt.sizes, strict=False):
            state.update(f"\0{segment.kind}\0{segment.other_tokens}\0{segment.text}".encode(errors="surrogatepass"))
            size += tokens
            if size >= self._shortest:
                yield state.digest(), size
