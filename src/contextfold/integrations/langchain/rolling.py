"""A summarizer that reads messages instead of a prompt: LangChain's runnable or callable ``summarizer``.

What belongs here: feeding it all that is evicted, in chunks if need be, so that nothing is trimmed away. What does not:
chat models, which get prompts (``contextfold.summary``).

Chunks are read one after the other, each behind the summary of those before it. A chunk that overflows is halved
between groups, so no call is parted from its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable

from contextfold.integrations.langchain.layout import summary_message, without_prefix
from contextfold.overflow import classify

Chunk = tuple[AnyMessage, ...]


class WrongSummary(TypeError):
    """The user's summarizer returned something that is not text: a mistake in it, not a bad answer."""


@dataclass(frozen=True, slots=True)
class RollingSummarizer:
    """``groups`` are messages that stand or fall together, oldest first; ``earlier`` is the summary before them.

    ``chunk_tokens``: how much one call gets; None: everything. ``sizes`` are the tokens of each group.
    """

    runnable: Runnable[Any, Any]
    earlier: AnyMessage | None
    groups: Sequence[Chunk]
    sizes: Sequence[int]
    chunk_tokens: int | None
    window: int | None = None

    async def complete(self, prompt: str) -> str:
        """The summary of all groups. The prompt has the same content as text, and is not needed."""
        behind = self.earlier
        text = ""
        for start, stop in self._chunks():
            text = await self._read(behind, self.groups[start:stop])
            behind = summary_message(text, "", language="en", usage_until=None)
        return text

    def _chunks(self) -> list[tuple[int, int]]:
        chunks: list[tuple[int, int]] = []
        start = filled = 0
        for number, size in enumerate(self.sizes):
            if self.chunk_tokens is not None and number > start and filled + size > self.chunk_tokens:
                chunks.append((start, number))
                start, filled = number, 0
            filled += size
        return [*chunks, (start, len(self.groups))]

    async def _read(self, behind: AnyMessage | None, groups: Sequence[Chunk]) -> str:
        messages = [*([behind] if behind else []), *(message for group in groups for message in group)]
        try:
            return _checked(await self.runnable.ainvoke(messages))
        except Exception as error:
            found = classify(error)
            if found is None or len(groups) < 2:
                raise
        middle = len(groups) // 2
        first = await self._read(behind, groups[:middle])
        return await self._read(summary_message(first, "", language="en", usage_until=None), groups[middle:])


def _checked(summary: object) -> str:
    if not isinstance(summary, str):
        raise WrongSummary(f"`summarizer` must return a str, got {type(summary).__name__}.")
    return without_prefix(summary)
