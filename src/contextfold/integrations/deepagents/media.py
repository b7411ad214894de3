"""Media inside messages: where each goes in the backend, and messages that refer to it there.

What belongs here: paths, references, and the bytes of a medium. What does not: writing them (``history``).

A path follows from the bytes, so a message can refer to its medium before it is stored, and the same medium is stored
once. Paths and references are deepagents': ``media/{sha256[:16]}.{ext}``, ``<image url="..." />`` in the history.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage

from contextfold.integrations.langchain.counting import FORMAT
from contextfold.messages import Media, ToolResult

FAILED = '<image error="failed_to_offload" />'
"""What stands in the history for a medium that could not be stored."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One medium and its path in the backend. ``path``: None where its data is not base64, so that it has no bytes."""

    path: str | None
    data: bytes
    media_type: str


def media_in(message: AnyMessage, folder: str) -> dict[int, Stored]:
    """id of each content block that carries a medium itself -> the medium. ``folder``: where media are stored."""
    if isinstance(message.content, str):
        return {}
    return {id(part.source): _stored(part, folder) for part in _media(message)}


def with_references(
    message: AnyMessage, folder: str, failed: frozenset[str] = frozenset(), *, named: str | None = None
) -> AnyMessage:
    """The message with references in place of its media; the same object if it carries none.

    ``failed``: paths that hold nothing; a note says so in their place, and in place of what cannot be decoded.
    ``named``: only media whose paths stand in this text are referred to.
    """
    media = media_in(message, folder)
    if named is not None:
        media = {block: stored for block, stored in media.items() if stored.path is not None and stored.path in named}
    if not media:
        return message
    return with_blocks(message, lambda block: _reference(media[id(block)], failed) if id(block) in media else block)


def with_blocks(message: AnyMessage, replaced: Callable[[Any], Any]) -> AnyMessage:
    """The message with each block of its content replaced."""
    return message.model_copy(update={"content": [replaced(block) for block in message.content]})


def _media(message: AnyMessage) -> Iterator[Media]:
    for part in FORMAT.decode(message).parts:
        for inner in part.content if isinstance(part, ToolResult) else (part,):
            if isinstance(inner, Media) and inner.data is not None:
                yield inner


def _stored(part: Media, folder: str) -> Stored:
    media_type = part.media_type or "application/octet-stream"
    try:
        # Base64 of mail programs and shells comes with line breaks.
        data = base64.b64decode("".join((part.data or "").split()), validate=True)
    except (binascii.Error, ValueError):
        return Stored(None, b"", media_type)
    ending = (mimetypes.guess_extension(media_type) or ".bin").lstrip(".")
    return Stored(f"{folder}/{hashlib.sha256(data).hexdigest()[:16]}.{ending}", data, media_type)


def _reference(stored: Stored, failed: frozenset[str]) -> dict[str, Any]:
    """A block that the history's writer shows with its path: other kinds of files as text, since it has no block."""
    if stored.path is None or stored.path in failed:
        return {"type": "text", "text": FAILED}
    kind = stored.media_type.partition("/")[0]
    if kind in ("image", "audio", "video"):
        return {"type": kind, "url": stored.path}
    return {"type": "text", "text": f'<file url="{stored.path}" />'}
