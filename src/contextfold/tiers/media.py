"""The tier for old media: a line of text that says what stood there.

What belongs here: the reference, and putting it in place of the media. What does not: reading image headers and prices
(``tokens.media``).

A URL or a file id stays in the reference, because it can be opened again. Data that was only in the conversation is
gone, and the reference says so with its size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from contextfold import quoting
from contextfold.messages import Media, Part, Text, ToolResult
from contextfold.tokens.media import image_size

_DATA_URL = "data:"
_KILOBYTE = 1024


class MediaReferences:
    """Puts references in place of media, also of those in tool results. ``limit`` has no meaning here."""

    name: ClassVar[str] = "media"

    def reduce(self, part: Part, limit: int) -> Part:
        if isinstance(part, Media):
            return as_text(part)
        if isinstance(part, ToolResult) and any(isinstance(inner, Media) for inner in part.content):
            content = tuple(as_text(inner) if isinstance(inner, Media) else inner for inner in part.content)
            return replace(part, content=content, edited=True)
        return part


def as_text(media: Media) -> Text:
    """The reference as a part. It has no source: the block it came from is of another kind."""
    return Text(reference(media), edited=True)


def reference(media: Media) -> str:
    """Such as ``[image image/png 1024x768, chart.png, 5,120 KB removed to save context]``."""
    url = media.url or ""
    held = url.startswith(_DATA_URL)
    data = url.partition(",")[2] if held else media.data
    size = image_size(data) if media.kind == "image" else None
    pixels = f"{size[0]}x{size[1]}" if size else None
    facts = [" ".join(filter(None, (media.kind, media.media_type, pixels)))]
    if media.name:
        facts.append(quoting.word(media.name))
    if url and not held:
        facts.append(url)
    if data:
        facts.append(_amount(len(data) * 3 // 4))
    return f"[{', '.join(facts)} removed to save context]"


def _amount(count: int) -> str:
    return f"{count:,} bytes" if count < _KILOBYTE else f"{count // _KILOBYTE:,} KB"
