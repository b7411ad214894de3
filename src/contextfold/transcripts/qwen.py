"""Qwen Code session files: JSON Lines, whose rows hold Gemini's contents as they went to the model and came from it.

Rows are a tree (``uuid``, ``parentUuid``): the newest one and those that lead to it are the conversation; what stands
on other branches is left out, and said. Left out are also rows of the product (``system``): among them is what its own
compaction left (``compressedHistory``), whose originals are in the file. So are sub-agents' rows (``isSidechain``), but
in a file that holds nothing else.
"""

from __future__ import annotations

from typing import Any

from contextfold.transcripts.branches import path_to, went_back
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
    way = _way([row for _, row in own])
    sent = [(place, row) for place, row in own if _is_message(row)]
    gone = [place for place, row in sent if way is not None and row["uuid"] not in way]
    contents = [row["message"] for _, row in sent if way is None or row["uuid"] in way]
    said = (went_back(document, gone),) if gone else ()
    return [Conversation(document.name, "gemini", contents, KIND, left_out=said)]


def _way(rows: list[dict[str, Any]]) -> set[str] | None:
    """The rows from the first to the newest; None where they do not all name the one before them, and it is there."""
    parents = {row["uuid"]: row.get("parentUuid") for row in rows if isinstance(row.get("uuid"), str)}
    if not all(isinstance(row.get("uuid"), str) for row in rows):
        return None
    is_known = all(held is None or isinstance(held, str) for held in parents.values())
    return path_to(rows[-1]["uuid"], parents) if is_known else None


def _is_message(row: dict[str, Any]) -> bool:
    message = row.get("message")
    if row.get("type") not in SENT or "sessionId" not in row or not isinstance(message, dict):
        return False
    return isinstance(message.get("parts"), list) and bool(message["parts"])
