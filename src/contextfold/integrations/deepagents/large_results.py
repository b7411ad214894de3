"""Tool results at the end of a history that are too large to send: moved into the backend, with a preview in place.

What belongs here: the file, and the message that stands in. What does not: when (``passes``).

The results at the end cannot leave the view, because the model has not read them. deepagents replaces such a message in
the state once its text is in the backend; so do we, after it was read back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from langchain_core.messages import AnyMessage, ToolMessage

from contextfold.errors import ArchiveError, text_of
from contextfold.integrations.deepagents.files import Files
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.messages import Text, ToolResult
from contextfold.observe import logger, scrub
from contextfold.tiers import TIERS

PREVIEW = 400
"""Tokens of the preview."""
LARGE = 2 * PREVIEW
"""Tokens from which on a result is moved: less would hardly get shorter."""

LONGEST_NAME = 200
"""Characters of a file name; most file systems take 255 bytes."""

_NOTE = (
    "Tool result too large, the result of this tool call {call} was saved in the filesystem at this path: {path}\n\n"
    "Read it with read_file, a part at a time (offset and limit). Here are its beginning and end; what is left out is "
    "counted:\n"
)


def results_at_end(messages: Sequence[AnyMessage]) -> list[int]:
    """Positions of the tool results that nothing follows."""
    position = len(messages)
    while position > 0 and isinstance(messages[position - 1], ToolMessage):
        position -= 1
    return list(range(position, len(messages)))


async def moved(message: ToolMessage, folder: str, files: Files) -> ToolMessage | None:
    """The message that stands in for a result whose text is in the backend now; None where that failed."""
    result = FORMAT.decode(message).parts[0]
    assert isinstance(result, ToolResult)
    path = f"{folder}/{_name(message.tool_call_id)}"
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    try:
        # A tool's output may hold half a surrogate pair, which no file takes.
        await files.put_text(path, text.encode("utf-8", "backslashreplace").decode())
    except (ArchiveError, OSError) as error:
        logger.warning(
            "a large tool result stays in the state as it is, because it could not be saved: %s", scrub(text_of(error))
        )
        return None
    return await files.ports.compute(_stand_in, message, path)


def _stand_in(message: ToolMessage, path: str) -> ToolMessage:
    decoded = FORMAT.decode(message)
    shorter = TIERS["tool_outputs"].reduce(decoded.parts[0], PREVIEW)
    assert isinstance(shorter, ToolResult)
    preview: ToolMessage = FORMAT.encode([decoded.with_parts((shorter,))])[0]
    note = _NOTE.format(call=message.tool_call_id[:32], path=path)
    content = preview.content
    joined = f"{note}\n{content}" if isinstance(content, str) else [{"type": "text", "text": note}, *content]
    return preview.model_copy(update={"content": joined})


def _name(call_id: str) -> str:
    """A call's id as a file name: no separators and no dots, a hash where it is too long."""
    name = re.sub(r"[./\\]", "_", call_id)
    return (
        name if name and len(name.encode()) <= LONGEST_NAME else f"call-{hashlib.sha256(call_id.encode()).hexdigest()}"
    )
