"""Qwen Code session files: JSON Lines, whose rows hold Gemini's contents as they went to the model and came from it.

Rows are a tree (``uuid``, ``parentUuid``): the newest one and those that lead to it are the conversation; what stands
on other branches is left out, and said. Left out are also rows of the product (``system``): among them is what its own
compaction left (``compressedHistory``), whose originals are in the file. So are sub-agents' rows (``isSidechain``), but
in a file that holds nothing else.
"""

from __future__ import annotations

from typing import Any

from contextfold.transcripts.branches import way_to_newest, went_back
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "qwen-code"
SENT = ("user", "assistant", "tool_result")


def recognizes(document: TranscriptFile) -> bool:
    return any(_is_message(row) for row in document.objects)


def read(document: TranscriptFile) -> list[Conversation]:
    rows = [(place, row) for place, row in enumerate(document.rows) if isinstance(row, dict) and "sessionId" in row]
    own = [(place, row) for place, row in rows if not row.get("isSidechain")]
    own = own if any(_is_message(row) for _, row in own) else rows
    way = way_to_newest([row for _, row in own], "uuid", "parentUuid")
    sent = [(place, row) for place, row in own if _is_message(row)]
    gone = [place for place, row in sent if way is not None and row["uuid"] not in way]
    contents = [row["message"] for _, row in sent if way is None or row["uuid"] in way]
    return [Conversation(document.name, "gemini", contents, KIND, left_out=went_back(document, gone))]


def _is_message(row: dict[str, Any]) -> bool:
    message = row.get("message")
    if row.get("type") not in SENT or "sessionId" not in row or not isinstance(message, dict):
        return False
    return isinstance(message.get("parts"), list) and bool(message["parts"])
