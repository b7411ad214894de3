"""Gemini CLI session files: one JSON object with ``messages`` of type ``user`` and ``gemini``, or the same as rows.

They are written as chat messages. A call holds its own result, which becomes a tool message behind it. Thoughts are
summaries for the person and are never sent back; notices (``info``, ``error``) were only displayed.
"""

from __future__ import annotations

from typing import Any

from contextfold.formats.values import json_text
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "gemini-cli"
ROLES = {"user": "user", "gemini": "assistant"}


def recognizes(document: TranscriptFile) -> bool:
    head = document.objects[0] if document.objects else {}
    return "sessionId" in head and any(entry.get("type") == "gemini" for entry in _entries(document))


def read(document: TranscriptFile) -> list[Conversation]:
    messages: list[Any] = []
    for entry in _entries(document):
        role = ROLES.get(str(entry.get("type")))
        if role is not None:
            messages.extend(_messages(role, entry))
    return [Conversation(document.name, "openai-chat", messages, KIND)]


def _entries(document: TranscriptFile) -> list[dict[str, Any]]:
    listed = document.value.get("messages") if isinstance(document.value, dict) else document.rows
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _messages(role: str, entry: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [call for call in entry.get("toolCalls") or () if isinstance(call, dict)]
    message: dict[str, Any] = {"role": role, "content": _text(entry.get("content"))}
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    if not calls and not message["content"]:
        return []
    return [message, *(_result(call) for call in calls if call.get("result") is not None)]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call.get("name"), "arguments": json_text(call.get("args") or {})}
    return {"id": call.get("id"), "type": "function", "function": function}


def _result(call: dict[str, Any]) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.get("id"), "content": _text(call["result"])}


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
