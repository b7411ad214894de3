"""One message as markdown that people can read: words as they are, calls and results in code blocks.

What belongs here: the text of a message, and the media that it refers to. What does not: where it is stored.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from contextfold import json_values, quoting
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

_MARKS = re.compile("`+")

Keep = Callable[[bytes, str | None], str]
"""Stores media (its bytes, its type) and returns the reference to write down."""


def as_markdown(message: Message, keep: Keep) -> str:
    """The whole message. ``keep`` is called for every medium that the message carries itself."""
    return "\n\n".join(text for part in message.parts for text in _part(part, keep))


def _part(part: Part, keep: Keep) -> Iterator[str]:
    match part:
        case Text():
            yield part.text
        case ToolCall():
            yield f"call `{part.name}` ({part.id})"
            yield _block(part.arguments, "text" if part.custom else "json")
        case ToolResult():
            failed = ", an error" if part.is_error else ""
            yield f"result of {part.call_id}{f' `{part.name}`' if part.name else ''}{failed}"
            for inner in part.content:
                yield from ([_block(inner.text, "text")] if isinstance(inner, Text) else _part(inner, keep))
        case Media():
            yield _medium(part, keep)
        case Reasoning():
            yield "reasoning" if part.text else "reasoning that cannot be read"
            if part.text:
                yield _block(part.text, "text")
        case Opaque():
            yield part.label
            yield _block(json_values.write(part.source, default=str) if part.source else part.text, "json")


def _medium(part: Media, keep: Keep) -> str:
    named = f"{part.kind} {quoting.word(part.name)}" if part.name else part.kind
    if part.data is None:
        return f"{named}: {part.url or 'without data'}"
    try:
        data = base64.b64decode(part.data, validate=True)
    except (binascii.Error, ValueError):  # data that is no base64 is kept as it came
        data = part.data.encode("utf-8", "surrogatepass")
    return f"![{named}]({keep(data, part.media_type)})"


def _block(text: str, language: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest, start = 2, text.find("```")  # a pattern would look at each sign, all in one call where there is no mark
    while start >= 0 and (run := _MARKS.match(text, start)):
        longest = max(longest, run.end() - start)
        start = text.find("```", run.end())
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
