"""Several summaries made one: merged, or made shorter, until one within the cap remains.

What belongs here: which summaries go into a merge request together, and what is done where not even two fit into one.
What does not: how the summaries came about (``bisect``), and sending a request (``request``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from contextfold.summary.chunks import SEPARATOR, partition
from contextfold.summary.request import SMALLEST_MATERIAL, Requester, SummaryRequest

MergeKind = Literal["merge", "update"]
"""``update``: the first of two texts is the summary that was in force, the second what came after it."""

_WRAPPING = 16
"""Tokens around each summary in a merge request."""


@dataclass(slots=True)
class Merger:
    """Merges the summaries of one run. ``has_shortened``: long ones have been asked once to be shorter."""

    requester: Requester
    has_shortened: bool = False

    async def merged(self, parts: list[str], kind: MergeKind) -> str:
        """Neighbors merged, as many as a request holds, until one text remains.

        Where not even two fit: joined if that is short enough, else shortened (once), else clipped.
        """
        while len(parts) > 1:
            batches = self._batches(parts, kind)
            # A round has to leave fewer parts, or this would never end.
            if len(batches) < len(parts) and not self.requester.stuck:
                parts = await self._round(parts, batches, kind)
                continue
            together = SEPARATOR.join(parts)
            if self.requester.count(together) <= self.requester.max_tokens:
                return together
            if self.requester.stuck:
                return self._clipped(together, self.requester.max_tokens)
            parts = await self._squeezed(parts, kind)
        return parts[0]

    async def capped(self, text: str) -> str:
        """The finished summary within its cap: asked once to be shorter, then clipped."""
        cap = self.requester.max_tokens
        if self.requester.count(text) > cap:
            (text,) = await self._shortened([text], [0], cap)
        return self._clipped(text, cap)

    async def _round(self, parts: list[str], batches: Sequence[range], kind: MergeKind) -> list[str]:
        """One request for each batch of several. The parts of a batch that overflowed stay as they are."""
        several = [batch for batch in batches if len(batch) > 1]
        answer_tokens = self.requester.answer_tokens(1 if kind == "update" else len(batches))
        answer_tokens = min(answer_tokens, self.requester.options.merge_max_tokens or answer_tokens)
        requests = [self._request([parts[place] for place in batch], kind, answer_tokens) for batch in several]
        outcomes = dict(zip(several, await self.requester.send(requests), strict=True))
        merged: list[str] = []
        for batch in batches:
            text = outcomes[batch].text if batch in outcomes else None
            merged += [text] if text is not None else [parts[place] for place in batch]
        return merged

    def _request(self, texts: Sequence[str], kind: MergeKind, answer_tokens: int) -> SummaryRequest:
        if kind == "update":
            return self.requester.compose(kind, texts[1:], previous=texts[0], answer_tokens=answer_tokens)
        return self.requester.compose(kind, texts, answer_tokens=answer_tokens)

    def _batches(self, parts: Sequence[str], kind: MergeKind) -> list[range]:
        room = self.requester.room(kind)
        loads = [len(part) / room.characters for part in parts]
        if room.tokens is not None:
            tokens = [(self.requester.count(part) + _WRAPPING) / room.tokens for part in parts]
            loads = [max(pair) for pair in zip(tokens, loads, strict=True)]
        return partition(loads)

    async def _squeezed(self, parts: list[str], kind: MergeKind) -> list[str]:
        """Parts short enough that two fit into one request: by asking once, after that by clipping."""
        room = self.requester.room(kind).tokens or self.requester.max_tokens * 2
        goal = max(SMALLEST_MATERIAL // 2, room // 2 - _WRAPPING)
        if self.has_shortened:
            return [self._clipped(part, goal) for part in parts]
        self.has_shortened = True
        long = [place for place, part in enumerate(parts) if self.requester.count(part) > goal]
        return await self._shortened(parts, long, goal)

    async def _shortened(self, parts: list[str], places: Sequence[int], goal: int) -> list[str]:
        """The parts at ``places`` as short as the summarizer makes them, where a request holds them."""
        count, room = self.requester.count, self.requester.room("shorten")
        asked = [place for place in places if room.holds(parts[place], count)]
        requests = [self.requester.compose("shorten", [parts[place]], answer_tokens=goal) for place in asked]
        shorter = list(parts)
        for place, outcome in zip(asked, await self.requester.send(requests), strict=True):
            if outcome.text is not None:
                # asked for a shorter text, a model may write a longer one
                shorter[place] = min(parts[place], outcome.text, key=count)
        return shorter

    def _clipped(self, text: str, tokens: int) -> str:
        size = self.requester.count(text)
        if size <= tokens:
            return text
        return self.requester.clipped(text, tokens, f"a summary of {size:,} tokens was cut to {tokens:,}")
