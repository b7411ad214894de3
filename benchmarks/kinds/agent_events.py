"""The event list of UI-TARS agents: user, assistant, environment, calls and results, in the order they happened."""

from __future__ import annotations

from typing import Any

from contextfold.formats.values import json_text
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile
from contextfold.transcripts.turns import Turns, as_they_are

KIND = "event-list"
AGENT_ROLES = {"user_message": "user", "environment_input": "user", "assistant_message": "assistant"}
CONTENT_BLOCKS = ("text", "image_url")


def recognizes(document: TranscriptFile) -> bool:
    return any(_kind(row) in AGENT_ROLES and "role" not in row and "content" in row for row in document.objects)


def read(document: TranscriptFile) -> list[Conversation]:
    return [Conversation(document.name, "openai-chat", _agent_messages(document), KIND)]


def _kind(event: dict[str, Any]) -> str:
    kind = event.get("type")
    return kind if isinstance(kind, str) else ""


def _agent_messages(document: TranscriptFile) -> list[Any]:
    turns = Turns()
    for event in document.objects:
        kind = _kind(event)
        if kind == "tool_call":
            _add_agent_call(turns, event)
        elif kind == "tool_result":
            call_id = str(event.get("toolCallId"))
            message = {"role": "tool", "tool_call_id": call_id, "content": _agent_content(event.get("content"))}
            if not turns.result(call_id, message):
                turns.add(message)
        elif kind in AGENT_ROLES:
            _add_said(turns, AGENT_ROLES[kind], event)
    return turns.messages(as_they_are)


def _add_said(turns: Turns, role: str, event: dict[str, Any]) -> None:
    calls = [call for call in event.get("toolCalls") or () if isinstance(call, dict)] if role == "assistant" else []
    content = _agent_content(event.get("content"))
    if not content and not calls:
        return
    message: dict[str, Any] = {"role": role, "content": content}
    if calls:
        message["tool_calls"] = calls
    turns.add(message, calls=[str(call.get("id")) for call in calls])


def _add_agent_call(turns: Turns, event: dict[str, Any]) -> None:
    call_id = str(event.get("toolCallId"))
    if turns.knows(call_id):
        return
    arguments = event.get("arguments")
    text = arguments if isinstance(arguments, str) else json_text(arguments or {})
    call = {"id": call_id, "type": "function", "function": {"name": event.get("name"), "arguments": text}}
    turns.add({"role": "assistant", "content": None, "tool_calls": [call]}, calls=[call_id])


def _agent_content(content: Any) -> Any:
    """Strings and chat blocks as they are, any other result as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return [block if _is_chat_block(block) else {"type": "text", "text": _block_text(block)} for block in content]
    return json_text(content)


def _is_chat_block(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in CONTENT_BLOCKS


def _block_text(block: Any) -> str:
    return block if isinstance(block, str) else json_text(block)
