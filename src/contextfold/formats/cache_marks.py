"""The marks by which callers tell a provider up to where to cache a prompt, in wire messages.

Anthropic has ``cache_control`` in a content block, Bedrock a block of its own, ``cachePoint``. Callers move them to the
newest message at every request. A provider looks for what it has cached from the marks backward, so a request without
any is read at full price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CONTROL, POINT = "cache_control", "cachePoint"


def newest(wire: Sequence[Any]) -> Mapping[str, Any] | None:
    """The last mark in these messages, None if there is none."""
    for entry in reversed(wire):
        content = entry.get("content") if isinstance(entry, Mapping) else getattr(entry, "content", None)
        for block in reversed(content if isinstance(content, list | tuple) else ()):
            if isinstance(block, Mapping):
                if CONTROL in block:
                    return {CONTROL: block[CONTROL]}
                if block.keys() == {POINT}:
                    return block
    return None


def standing(entry: Any) -> tuple[tuple[int, Any], ...]:
    """All marks of a message, those inside of results of tools included: (place of the block, mark)."""
    content = entry.get("content") if isinstance(entry, Mapping) else getattr(entry, "content", None)
    found: list[tuple[int, Any]] = []
    for place, block in enumerate(content if isinstance(content, list | tuple) else ()):
        if isinstance(block, Mapping):
            found += [(place, block[name]) for name in (CONTROL, POINT) if name in block]
            found += [(place, mark) for _, mark in standing(block)]
    return tuple(found)


def marked(entry: Mapping[str, Any], mark: Mapping[str, Any]) -> dict[str, Any]:
    """A message with this mark at its end, if there is a place for it."""
    content = entry.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    if POINT in mark:
        blocks.append(mark)
    elif blocks and isinstance(blocks[-1], Mapping):
        blocks[-1] = {**blocks[-1], **mark}
    return {**entry, "content": blocks}
