"""Gemini CLI session files: one JSON object with ``messages`` of type ``user`` and ``gemini``, or a log of the same.

They are written as chat messages. A call holds its own result, which becomes a tool message behind it. Thoughts are
summaries for the person and are never sent back; notices (``info``, ``error``) were only displayed.

In the log (JSON Lines) a message is written again each time that it changes, ``$rewindTo`` takes back a message and all
behind it, and ``$set`` may hold the messages that the product goes on with: those that are known are brought up to
date, and new ones join them. After the product's own compaction all of them are copies with new ids: they are left
out, as the originals are in the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contextfold.formats.values import json_text
from contextfold.transcripts import chat
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, objects_in
from contextfold.transcripts.turns import Turns

KIND = "gemini-cli"
ROLES = {"user": "user", "gemini": "assistant"}


def recognizes(document: TranscriptFile) -> bool:
    head = document.objects[0] if document.objects else {}
    # Before an answer came, the rows look like those of others.
    kinds = tuple(ROLES) if "projectHash" in head else ("gemini",)
    return "sessionId" in head and any(entry.get("type") in kinds for entry in _entries(document))


def read(document: TranscriptFile) -> list[Conversation]:
    turns = Turns()
    answered: set[str] = set()
    for entry in _entries(document):
        role = ROLES.get(str(entry.get("type")))
        if role is not None:
            _add(turns, answered, role, entry)
    return [Conversation(document.name, "openai-chat", turns.messages(_results_first), KIND)]


# ---- the log ---------------------------------------------------------------------------------------------------------


def _entries(document: TranscriptFile) -> list[dict[str, Any]]:
    """The messages as they stand at the end."""
    if isinstance(document.value, dict):
        return objects_in(document.value.get("messages"))
    said = _Said()
    for row in document.objects:
        patch = row["$set"] if isinstance(row.get("$set"), dict) else row
        if isinstance(row.get("$rewindTo"), str):
            said.rewind(row["$rewindTo"])
        elif "type" in row:
            said.add(row)
        else:
            said.update(objects_in(patch.get("messages")))
    return said.entries


class _Said:
    """The messages so far, each under its id."""

    def __init__(self) -> None:
        self._entries: dict[Any, dict[str, Any]] = {}
        self._copies: set[str] = set()

    @property
    def entries(self) -> list[dict[str, Any]]:
        return list(self._entries.values())

    def add(self, entry: dict[str, Any]) -> None:
        known = entry.get("id")
        self._entries[known if isinstance(known, str) else object()] = entry

    def rewind(self, target: str) -> None:
        while target in self._entries:
            self._entries.popitem()  # the newest

    def update(self, entries: Iterable[dict[str, Any]]) -> None:
        """The messages that the product goes on with."""
        ids = {entry["id"] for entry in entries if isinstance(entry.get("id"), str)}
        if self._entries and ids.isdisjoint(self._entries) and ids.isdisjoint(self._copies):
            self._copies |= ids
        for entry in entries:
            if not (isinstance(entry.get("id"), str) and entry["id"] in self._copies):
                self.add(entry)


# ---- messages --------------------------------------------------------------------------------------------------------


def _add(turns: Turns, answered: set[str], role: str, entry: dict[str, Any]) -> None:
    """One entry, and the results that it holds: those of its own calls, or (the user's) of calls before it."""
    parts = entry.get("content")
    parts = [part for part in (parts if isinstance(parts, list) else [parts]) if not _is_thought(part)]
    calls = objects_in(entry.get("toolCalls"))
    calls = calls or [call for part in parts if (call := _held(part, "functionCall")) is not None]
    rest = [part for part in parts if _held(part, "functionCall") is None and not _add_answer(turns, answered, part)]
    message: dict[str, Any] = {"role": role, "content": _content(rest)}
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    if calls or message["content"]:
        turns.add(message, calls=[call["id"] for call in message.get("tool_calls", ()) if isinstance(call["id"], str)])
    for call in calls:
        if call.get("result") is not None:
            _add_result(turns, answered, call.get("id"), call["result"])


def _add_answer(turns: Turns, answered: set[str], part: Any) -> bool:
    """A result that stands in a message of its own, as the API has it; mostly the call holds it as well."""
    response = _held(part, "functionResponse")
    known = response is not None and isinstance(response.get("id"), str) and turns.knows(response["id"])
    if response is not None and known and response["id"] not in answered:
        _add_result(turns, answered, response["id"], [part])
    return known


def _add_result(turns: Turns, answered: set[str], call_id: Any, result: Any) -> None:
    parts = result if isinstance(result, list) else [result]
    beside = [(_held(part, "functionResponse") or {}).get("parts") for part in parts]
    content = _content([*parts, *(inner for some in beside if isinstance(some, list) for inner in some)])
    texts = content if isinstance(content, str) else "\n".join(b["text"] for b in content if b["type"] == "text")
    if isinstance(call_id, str):
        answered.add(call_id)
        turns.result(call_id, chat.result(call_id, texts))
        if isinstance(content, list):
            media = [block for block in content if block["type"] != "text"]
            turns.result(call_id, chat.media_of_result(call_id, media))


def _results_first(results: list[Any]) -> list[dict[str, Any]]:
    return sorted(results, key=lambda message: message["role"] != "tool")


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return chat.call(call.get("id"), call.get("name"), json_text(call.get("args") or {}))


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("thought") is True


def _held(part: Any, key: str) -> dict[str, Any] | None:
    held = part.get(key) if isinstance(part, dict) else None
    return held if isinstance(held, dict) else None


def _content(parts: list[Any]) -> Any:
    """Parts as a text, or as blocks where media are among them."""
    media = [_media(part) for part in parts]
    if not any(media):
        return "\n".join(_text(part) for part in parts)
    return [block or {"type": "text", "text": _text(part)} for block, part in zip(media, parts, strict=True)]


def _media(part: Any) -> dict[str, Any] | None:
    held = _held(part, "inlineData")
    kind, data = (held.get("mimeType"), held.get("data")) if held is not None else (None, None)
    if not isinstance(kind, str) or not isinstance(data, str):
        return None
    return chat.media(kind, f"data:{kind};base64,{data}", f"file.{kind.rpartition('/')[2]}")


def _text(value: Any) -> str:
    """The words of a content, of parts, or of function responses; anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return "\n".join(_text(part) for part in value)
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            return str(value["text"])
        response = value.get("functionResponse")
        if isinstance(response, dict):
            return _text(response.get("response"))
        if isinstance(value.get("output"), str) and len(value) == 1:
            return str(value["output"])
    return json_text(value)
