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
    return next((marks[-1][1] for entry in reversed(wire) if (marks := standing(entry))), None)


def standing(entry: Any) -> tuple[tuple[int, Mapping[str, Any]], ...]:
    """All marks of a message: (place of the block that has it, mark). LiteLLM takes one of the message as well."""
    found: list[tuple[int, Mapping[str, Any]]] = []
    for place, block in enumerate(_content(entry)):
        # a block inside of a tool's result may have one, too
        found += [(place, mark) for one in (*_content(block), block) if (mark := _own(one)) is not None]
    if (mark := _own(entry)) is not None:
        found.append((-1, mark))
    return tuple(found)


def _content(entry: Any) -> Sequence[Any]:
    content = entry.get("content") if isinstance(entry, Mapping) else getattr(entry, "content", None)
    return content if isinstance(content, list | tuple) else ()


def _own(block: Any) -> Mapping[str, Any] | None:
    if not isinstance(block, Mapping):
        return None
    if CONTROL in block:
        return {CONTROL: block[CONTROL]}
    return block if block.keys() == {POINT} else None


def marked(entry: Mapping[str, Any], mark: Mapping[str, Any]) -> dict[str, Any]:
    """A message with this mark at its end, if there is a place for it."""
    content = entry.get("content")
    if not isinstance(content, str | list | tuple) or not content:
        return dict(entry)
    # In the Responses API, whose items have a type of their own, a text is of another kind than elsewhere.
    kind = "input_text" if entry.get("type") == "message" else "text"
    blocks = [{"type": kind, "text": content}] if isinstance(content, str) else list(content)
    if POINT in mark:
        blocks.append(mark)
    elif isinstance(blocks[-1], Mapping):
        blocks[-1] = {**blocks[-1], **mark}
    return {**entry, "content": blocks}
