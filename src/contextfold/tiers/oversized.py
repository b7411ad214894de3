"""The last resort for an item that must stay although it is too large: clipped to a number of tokens.

What belongs here: bringing one text, one result or the arguments of one call under a limit whatever is in them. What
does not: when that is needed, and whether what a user said may be clipped (the policy's to say).

Each is first shortened as what it is, by the means of the other tiers. Where that is not enough, media and blocks that
we do not understand become references, and of many blocks the first and the last ones stay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import ClassVar, TypeAlias

from contextfold.messages import Media, Opaque, Part, Text, ToolCall, ToolResult
from contextfold.tiers import json_text
from contextfold.tiers.fitting import LEAST, fit
from contextfold.tiers.json_text import Object
from contextfold.tiers.markers import MARKER, counts_in, cut, marker
from contextfold.tiers.media import as_text
from contextfold.tiers.tool_outputs import shorten, shortened_result
from contextfold.tiers.tool_outputs_json import OMITTED, JsonOutput
from contextfold.tokens.counter import TokenCounter
from contextfold.tokens.estimate import estimate

_COUNTERS = (TokenCounter(media_rule="openai"), TokenCounter(media_rule="anthropic"))
"""Whose prices hold is not known here: the dearer one counts, so that the limit holds with either."""

_TAIL_SHARE = 0.25
"""Of the room of arguments that are no JSON: how much their end gets."""

Block: TypeAlias = Text | Media | Opaque


class OversizedTier:
    """Brings a text, a tool result or the arguments of a call to ``limit`` tokens, or to ``fitting.LEAST`` if more."""

    name: ClassVar[str] = "oversized"

    def reduce(self, part: Part, limit: int) -> Part:
        limit = max(limit, LEAST)
        if isinstance(part, Text):
            text = shorten(part.text, estimate(part.text), limit)
            return part if text is part.text else replace(part, text=text, edited=True)
        if isinstance(part, ToolCall):
            arguments = _clipped_arguments(part, limit)
            return part if arguments is part.arguments else replace(part, arguments=arguments, edited=True)
        if isinstance(part, ToolResult):
            return _clipped_result(part, limit)
        return part


def _clipped_arguments(part: ToolCall, limit: int) -> str:
    text = part.arguments
    size = estimate(text)
    if size <= limit:
        return text
    if part.custom:
        return shorten(text, size, limit)
    value = json_text.parse(text)
    document = JsonOutput([value]) if value is not None else None
    render = document.render if document is not None else lambda room: _as_object(cut(text, room, _TAIL_SHARE))
    smallest = document.smallest() if document is not None else _as_object(cut(text, 0))
    shorter = fit(len(text), size, limit, render) or smallest
    return shorter if estimate(shorter) < size else text


def _as_object(text: str) -> str:
    """Arguments that are no JSON, inside of JSON: what is clipped is at least valid."""
    return json_text.write(Object(((OMITTED, text),)))


def _clipped_result(part: ToolResult, limit: int) -> ToolResult:
    if _tokens(part.content) <= limit:
        return part
    shorter = part
    # From the least loss to the most: texts alone, media as well, then blocks that only the provider can read.
    for content in (part.content, _without_media(part.content), _without_opaque(_without_media(part.content))):
        fixed = _tokens([block for block in content if not isinstance(block, Text)])
        shorter = shortened_result(replace(part, content=content, edited=True), limit - fixed)
        if _tokens(shorter.content) <= limit:
            return shorter
    content = _ends(shorter.content, limit)
    return replace(shorter, content=content) if _tokens(content) < _tokens(part.content) else part


def _without_media(content: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(as_text(block) if isinstance(block, Media) else block for block in content)


def _without_opaque(content: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(_opaque_reference(block) if isinstance(block, Opaque) else block for block in content)


def _opaque_reference(block: Opaque) -> Text:
    size = f", {len(block.text):,} characters" if block.text else ""
    return Text(f"[{block.label}{size} removed to save context]", edited=True)


def _ends(content: Sequence[Block], limit: int) -> tuple[Block, ...]:
    """The first and the last blocks in ``limit`` tokens, half of it each, and between them how many are gone."""
    sizes = [_tokens([block]) for block in content]
    room = (limit - estimate(marker({"blocks": len(content)}))) // 2
    first = bisect_right(list(accumulate(sizes)), room)
    last = bisect_right(list(accumulate(reversed(sizes))), room)  # both halves are less than all of it
    hidden = content[first : len(content) - last]
    note = Text(marker(_hidden(hidden)), edited=True)
    return (*content[:first], note, *content[len(content) - last :])


def _hidden(blocks: Sequence[Block]) -> Counter[str]:
    """How many blocks these are; one that is a marker counts what it says."""
    notes = [block.text for block in blocks if isinstance(block, Text) and MARKER.fullmatch(block.text)]
    counts = sum(map(counts_in, notes), Counter[str]())
    counts["blocks"] += len(blocks) - len(notes)
    return counts


def _tokens(content: Sequence[Block]) -> int:
    return sum(
        estimate(block.text) if isinstance(block, Text) else max(counter.part(block) for counter in _COUNTERS)
        for block in content
    )
