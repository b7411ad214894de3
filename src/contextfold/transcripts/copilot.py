"""Logs of Copilot's chat in VS Code (``.chatreplay.json``): each request, under the prompt that it was sent for.

Roles and kinds of blocks are numbers there. Each request is a conversation, of chat messages. The text of its answer
ends it, but where calls and another request follow: those stand in that request, with the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, objects_in
from contextfold.transcripts.requests import tools_of

KIND = "copilot"
ROLES = ("system", "user", "assistant", "tool")
IMAGE, TEXT, CACHE_MARK = 0, 1, 3


def recognizes(document: TranscriptFile) -> bool:
    return isinstance(document.value, dict) and next(_requests(document.value), None) is not None


def read(document: TranscriptFile) -> list[Conversation]:
    found = list(_requests(document.value))
    conversations = []
    for name, (log, answer) in zip(document.names(len(found)), found, strict=True):
        messages = [*map(_message, log["requestMessages"]["messages"]), *answer]
        conversations.append(Conversation(name, "openai-chat", messages, KIND, _tools(log)))
    return conversations


def _requests(value: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Each request, and its answer."""
    logs = [log for prompt in objects_in(value.get("prompts")) for log in objects_in(prompt.get("logs"))]
    logs = [log for log in logs if log.get("kind") in ("request", "toolCall")]
    last = next((log for log in reversed(logs) if log["kind"] == "request"), None)
    for log, following in pairwise([*logs, {}]):
        held = log.get("requestMessages")
        if log["kind"] == "request" and isinstance(held, dict) and isinstance(held.get("messages"), list):
            is_told_later = following.get("kind") == "toolCall" and log is not last
            yield log, [] if is_told_later else _answer(log.get("response"))


def _answer(response: Any) -> list[Any]:
    said = response.get("message") if isinstance(response, dict) else None
    text = "".join(one for one in said if isinstance(one, str)) if isinstance(said, list) else said
    return [{"role": "assistant", "content": text}] if isinstance(text, str) and text else []


def _message(message: Any) -> Any:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, int) or isinstance(role, bool) or not 0 <= role < len(ROLES):
        return message
    said: dict[str, Any] = {"role": ROLES[role], "content": _content(message.get("content"))}
    for key, name in (("toolCalls", "tool_calls"), ("toolCallId", "tool_call_id"), ("name", "name")):
        if message.get(key):
            said[name] = message[key]
    return said


def _content(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    blocks: list[Any] = []
    for part in objects_in(content):
        if part.get("type") == TEXT:
            blocks.append({"type": "text", "text": part.get("text") or ""})
        elif part.get("type") == IMAGE and isinstance(part.get("imageUrl"), dict):
            blocks.append({"type": "image_url", "image_url": part["imageUrl"]})
        elif part.get("type") != CACHE_MARK:
            blocks.append({**part, "type": "opaque"})
    if all(block["type"] == "text" and isinstance(block["text"], str) for block in blocks):
        return "".join(block["text"] for block in blocks)
    return blocks


def _tools(log: dict[str, Any]) -> tuple[Any, ...]:
    metadata = log.get("metadata")
    return tools_of(metadata) if isinstance(metadata, dict) else ()
