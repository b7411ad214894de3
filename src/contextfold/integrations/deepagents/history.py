"""The history file of a thread: what left the view, as sections of markdown in the backend.

What belongs here: the file's name, the text of a section, and saving messages with their media. What does not: which
messages leave (``passes``), and how a backend is written to (``files``).

    {artifacts_root}/conversation_history/{session_id}.md
        ## Summarized at {ISO time}

        <message type="human">...</message>          as ``get_buffer_string(format="xml")`` writes it

    {artifacts_root}/conversation_history/media/{sha256[:16]}.{ext}
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, get_buffer_string

from contextfold.errors import ArchiveError, text_of
from contextfold.integrations.deepagents import media
from contextfold.integrations.deepagents.files import Files
from contextfold.integrations.langchain import layout
from contextfold.observe import logger, scrub

WRITTEN_WHOLE = frozenset({"text", "reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use"})
"""Types of blocks that LangChain writes in full, that it writes from ``tool_calls``, or that cannot be read."""
LINKED = frozenset({"image", "image_url", "audio", "video"})
"""Types that it writes where they have a link of a shape that it knows. It cuts other types to 500 characters, or
leaves them out."""
NOT_SAVED = "Offloading conversation history to backend failed during summarization"
"""How deepagents' own warning begins, so that filters of warnings go on to match."""
_NOTHING = get_buffer_string([HumanMessage("")], format="xml")


def _utc_now() -> datetime:  # no lambda: it can be pickled
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Saved:
    """What came of saving. ``path``: None if it failed. ``lost``: paths of media that could not be stored."""

    path: str | None
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """The history files under one root."""

    root: str
    """The backend's ``artifacts_root``, without a slash at the end."""
    now: Callable[[], datetime] = _utc_now

    @property
    def folder(self) -> str:
        return f"{self.root}/conversation_history"

    @property
    def media_folder(self) -> str:
        return f"{self.folder}/media"

    def path(self, session_id: str) -> str:
        """Where a session's history is."""
        return f"{self.folder}/{session_id}.md"

    async def save(self, session_id: str, messages: Sequence[AnyMessage], files: Files) -> Saved:
        """Append messages to a session's history. A failure is a warning: the thread's state still has them all."""
        path = self.path(session_id)
        kept = [m for m in messages if not layout.is_summary(m) and not isinstance(m, SystemMessage)]
        if not kept:
            return Saved(path)
        found = await files.ports.compute(self._media, kept)
        lost = await self._save_media(found, files)
        try:
            section = await files.ports.compute(self._section, kept, lost)
            await files.append(path, section)
        except (ArchiveError, OSError) as error:
            _warn(
                f"{NOT_SAVED}: {len(kept)} messages could not be saved to {path} ({error}). The thread's state still "
                "has them, the summary names no file, and the next summary tries again."
            )
            return Saved(None, lost)
        missing = [*sorted(lost), *(f"{m.media_type} that is not base64" for m in found if m.path is None)]
        if missing:
            _warn(f"{path} was written, but {len(missing)} media could not be offloaded: {', '.join(missing)}")
        return Saved(path, lost)

    def _media(self, messages: Sequence[AnyMessage]) -> list[media.Stored]:
        return [stored for m in messages for stored in media.media_in(m, self.media_folder).values()]

    async def _save_media(self, found: Sequence[media.Stored], files: Files) -> frozenset[str]:
        lost = set()
        for path, data in {stored.path: stored.data for stored in found if stored.path is not None}.items():
            try:
                await files.put(path, data)
            except (ArchiveError, OSError) as error:
                logger.warning("%s could not be saved: %s", path, scrub(text_of(error)))
                lost.add(path)
        return frozenset(lost)

    def _section(self, messages: Sequence[AnyMessage], lost: frozenset[str]) -> str:
        written = [_in_full(media.with_references(m, self.media_folder, lost)) for m in messages]
        text = f"## Summarized at {self.now().isoformat()}\n\n{get_buffer_string(written, format='xml')}\n\n"
        return text.encode("utf-8", "backslashreplace").decode()  # halves of surrogate pairs have no UTF-8


def _in_full(message: AnyMessage) -> AnyMessage:
    """The message with text in place of blocks that LangChain would shorten or leave out."""
    if isinstance(message.content, str) or all(_is_written(block) for block in message.content):
        return message
    return media.with_blocks(
        message, lambda block: block if _is_written(block) else {"type": "text", "text": _as_text(block)}
    )


def _is_written(block: Any) -> bool:
    if isinstance(block, str) or block.get("type") in WRITTEN_WHOLE:
        return True
    return block.get("type") in LINKED and get_buffer_string([HumanMessage([block])], format="xml") != _NOTHING


def _as_text(block: dict[str, Any]) -> str:
    """JSON; of values that have none, such as raw bytes, their text in Python."""
    return json.dumps(block, ensure_ascii=False, default=str)


def _warn(text: str) -> None:
    logger.warning(text)
    warnings.warn(text, stacklevel=2)
