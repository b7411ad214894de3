"""Chat replays exported from VS Code: prompts with a log of requests, where roles and block types are numbers.

Each request holds all messages so far; the longest, with its answer, is the conversation.
"""

from __future__ import annotations

from typing import Any

from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "chat-replay"
ROLES = ("system", "user", "assistant", "tool")
TEXT_BLOCK = 1  # the only other numbers seen are marks for the cache


def recognizes(document: TranscriptFile) -> bool:
    return bool(_requests(document))


def read(document: TranscriptFile) -> list[Conversation]:
    longest = max(_requests(document), key=lambda request: len(request["requestMessages"]["messages"]))
    messages = [_message(entry) for entry in longest["requestMessages"]["messages"] if isinstance(entry, dict)]
    return [Conversation(document.name, "openai-chat", [*messages, *_answer(longest)], KIND)]


def _requests(document: TranscriptFile) -> list[dict[str, Any]]:
    prompts = document.value.get("prompts") if isinstance(document.value, dict) else None
    logs = [entry for prompt in prompts or () if isinstance(prompt, dict) for entry in prompt.get("logs") or ()]
    return [entry for entry in logs if isinstance(entry, dict) and _holds_messages(entry.get("requestMessages"))]


def _holds_messages(held: Any) -> bool:
    return isinstance(held, dict) and isinstance(held.get("messages"), list)


def _message(entry: dict[str, Any]) -> dict[str, Any]:
    role = entry.get("role")
    known = ROLES[role] if isinstance(role, int) and role in range(len(ROLES)) else role
    message: dict[str, Any] = {"role": known, "content": _content(entry.get("content"))}
    if entry.get("toolCalls"):
        message["tool_calls"] = entry["toolCalls"]
    if entry.get("toolCallId"):
        message["tool_call_id"] = entry["toolCallId"]
    return message


def _content(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == TEXT_BLOCK]
    return "\n".join(text for text in texts if isinstance(text, str))


def _answer(request: dict[str, Any]) -> list[dict[str, Any]]:
    response = request.get("response")
    said = response.get("message") if isinstance(response, dict) else None
    text = "".join(piece for piece in said if isinstance(piece, str)) if isinstance(said, list) else ""
    return [{"role": "assistant", "content": text}] if text else []
