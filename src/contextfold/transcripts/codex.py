"""Codex rollout files: JSON Lines, where the rows ``response_item`` hold the items of the Responses API.

The session's instructions become a leading system message. The row ``compacted`` holds what the product's own
compaction left; the raw items before it are in the file as well, and the conversation goes on from those. Where a file
begins with it, it is all there is of what came before. ``thread_rolled_back`` takes back the newest turns of the user,
and all behind them: the person went back and said something else.
Files of the first versions hold the items bare, after one row with the instructions, or are one object with both.
States of the working tree (``ghost_snapshot``) stand among the items, and were never sent.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from contextfold.formats.openai_responses import OpenAIResponses
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "codex"
ROW_TYPES = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")


def recognizes(document: TranscriptFile) -> bool:
    rows = document.objects
    return any(_is_wrapped(row) for row in rows) or (len(rows) > 1 and _is_bare_head(rows[0])) or _is_whole(document)


def read(document: TranscriptFile) -> list[Conversation]:
    rows = document.objects
    wrapped = [row for row in rows if _is_wrapped(row)]
    if wrapped:
        heads = [row["payload"] for row in wrapped if row["type"] == "session_meta"]
        items = _logged(wrapped)
    elif _is_whole(document):
        heads, items = [document.value["session"]], document.value["items"]
    else:
        heads, items = rows[:1], [row for row in rows[1:] if "record_type" not in row]
    sent = [item for item in items if item.get("type") != "ghost_snapshot"]
    return [Conversation(document.name, OpenAIResponses.name, [*_instructions(heads), *sent], KIND)]


def _logged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items as they stand at the end."""
    items: list[dict[str, Any]] = []
    users: list[int] = []  # where a user's items stand
    turns: list[int] = []  # which of them a person said: harnesses write as users as well, and no event tells it
    for row in rows:
        payload = row["payload"]
        if row["type"] == "response_item" or (row["type"] == "compacted" and not items):
            for item in [payload] if row["type"] == "response_item" else _left(payload):
                if item.get("role") == "user":
                    users.append(len(items))
                items.append(item)
        elif row["type"] == "event_msg" and payload.get("type") == "user_message":
            turns += [n for n in users[-1:] if n not in turns[-1:]]
        elif row["type"] == "event_msg" and payload.get("type") == "thread_rolled_back":
            taken = payload.get("num_turns")
            if turns and isinstance(taken, int) and taken > 0:
                start = turns[-taken:][0]
                del items[start:], turns[-taken:]
                del users[bisect_left(users, start) :]
    return items


def _left(compacted: dict[str, Any]) -> list[dict[str, Any]]:
    """What the product's own compaction left: its items, or its summary alone."""
    items = compacted.get("replacement_history")
    if isinstance(items, list) and items and all(isinstance(item, dict) for item in items):
        return items
    text = compacted.get("message")
    return [{"type": "message", "role": "user", "content": text}] if isinstance(text, str) and text.strip() else []


def _is_wrapped(row: dict[str, Any]) -> bool:
    return row.get("type") in ROW_TYPES and isinstance(row.get("payload"), dict)


def _is_whole(document: TranscriptFile) -> bool:
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("session"), dict):
        return False
    items = value.get("items")
    return "instructions" in value["session"] and isinstance(items, list) and all(isinstance(i, dict) for i in items)


def _is_bare_head(row: dict[str, Any]) -> bool:
    return "type" not in row and "role" not in row and {"id", "timestamp", "instructions"} <= row.keys()


def _instructions(heads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The instructions of the first head; a forked session repeats the head of the session it came from."""
    for head in heads[:1]:
        held = head.get("base_instructions") or head.get("instructions")
        text = held.get("text") if isinstance(held, dict) else held
        if isinstance(text, str) and text.strip():
            return [{"type": "message", "role": "system", "content": text}]
    return []
