"""The message shape that all of the benchmark speaks: OpenAI chat dictionaries.

    {"role": "system" | "user", "content": str | list of blocks}
    {"role": "assistant", "content": str | list, "tool_calls": [{"id", "type", "function": {"name", "arguments"}}]}
    {"role": "tool", "tool_call_id": str, "name": str, "content": str | list}

What belongs here: questions about one message, independent of contextfold, which is one of those being measured.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, TypeAlias

from contextfold.inspector import anchors
from contextfold.inspector.anchors import argument_text, leaves

__all__ = [
    "IMAGE_BLOCKS", "Call", "Message", "argument_text", "calls", "content_text", "identity", "images", "leaves",
    "rendered", "searchable", "with_calls",
]  # fmt: skip

Message: TypeAlias = dict[str, Any]
Call: TypeAlias = tuple[str, str, str]
"""Id, name and arguments (as JSON text) of a tool call."""

IMAGE_BLOCKS = frozenset({"image", "image_url", "input_image"})


def content_text(content: Any) -> str:
    """The readable text of a message's content; images contribute nothing."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(block if isinstance(block, str) else block.get("text") or "" for block in content)


def images(message: Message) -> int:
    """How many images a message carries."""
    content = message.get("content")
    if not isinstance(content, list):
        return 0
    return sum(isinstance(block, dict) and block.get("type") in IMAGE_BLOCKS for block in content)


def calls(message: Message) -> list[Call]:
    """Every tool call of a message."""
    found = message.get("tool_calls") or ()
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in found]


def searchable(message: Message) -> str:
    """Everything that a model could read an identifier from, with JSON escapes flattened."""
    parts = [content_text(message.get("content"))]
    parts += [argument_text(arguments) for _, _, arguments in calls(message)]
    return anchors.searched(parts)


def rendered(message: Message) -> str:
    """Content and calls as one text, the way a summarizer would be shown them."""
    return with_calls(content_text(message.get("content")), calls(message))


def with_calls(text: str, used: list[Call]) -> str:
    """A text and the calls made beside it, one to a line."""
    return "\n".join(part for part in (text, *(f"{name}({arguments})" for _, name, arguments in used)) if part)


def identity(message: Message) -> Hashable:
    """Two messages are the same message when this is equal. Cheap: strings are not copied."""
    content = message.get("content")
    if content is None:
        content = ""
    elif not isinstance(content, str):
        content = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return message["role"], content, tuple(calls(message)), message.get("tool_call_id")
