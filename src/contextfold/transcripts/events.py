"""Streams of events: what an agent or a provider sent while it worked, put together to messages.

Three kinds: the event list of UI-TARS agents (user, assistant, environment, calls, results), server-sent events of
LangGraph applications (pieces of messages, calls and their arguments), and a recorded stream of the Responses API,
whose last event holds the whole answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contextfold import formats, json_values
from contextfold.formats.values import json_text, readable
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import Document
from contextfold.transcripts.requests import with_system
from contextfold.transcripts.turns import Turns, as_they_are

AGENT_KIND, STREAM_KIND, RESPONSE_KIND = "event-list", "server-sent-events", "response-stream"
AGENT_ROLES = {"user_message": "user", "environment_input": "user", "assistant_message": "assistant"}
FINISHED = ("response.completed", "response.incomplete")
CONTENT_BLOCKS = ("text", "image_url")


def recognizes(document: Document) -> bool:
    return _is_agent_log(document) or _finished_response(document) is not None or any(_data(document.text))


def read(document: Document) -> list[Conversation]:
    if _is_agent_log(document):
        return [Conversation(document.name, "openai-chat", _agent_messages(document), AGENT_KIND)]
    response = _finished_response(document)
    if response is not None:
        items = with_system(list(response["output"]), response)
        return [Conversation(document.name, "openai-responses", items, RESPONSE_KIND)]
    messages = _stream_messages(list(_data(document.text)))
    name = formats.detect(messages).name
    return [Conversation(document.name, name, messages, STREAM_KIND)]


# ---- the event list of an agent --------------------------------------------------------------------------------------


def _is_agent_log(document: Document) -> bool:
    return any(_kind(row) in AGENT_ROLES and "role" not in row and "content" in row for row in document.objects)


def _kind(event: dict[str, Any]) -> str:
    kind = event.get("type")
    return kind if isinstance(kind, str) else ""


def _agent_messages(document: Document) -> list[Any]:
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


# ---- a recorded stream of the Responses API --------------------------------------------------------------------------


def _finished_response(document: Document) -> dict[str, Any] | None:
    for event in reversed(document.objects):
        response = event.get("response")
        if event.get("type") in FINISHED and isinstance(response, dict) and isinstance(response.get("output"), list):
            return response
    return None


# ---- server-sent events ----------------------------------------------------------------------------------------------


def _data(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects after ``data:``; comments, pings and half-written ends are none."""
    for line in text.split("\n") if text.lstrip().startswith(("event:", "data:", ":")) else ():
        if line.startswith("data:"):
            try:
                value = json_values.read(line[5:])
            except ValueError:
                continue
            if isinstance(value, dict) and ("messages" in value or "id" in value):
                yield value


def _stream_messages(pieces: list[dict[str, Any]]) -> list[Any]:
    states = [piece["messages"] for piece in pieces if isinstance(piece.get("messages"), list)]
    if states:  # the whole state was sent each time: the last one holds all
        return list(states[-1])
    turns = Turns()
    for piece in pieces:
        if piece.get("tool_call_id"):
            _add_stream_result(turns, piece)
        else:
            _add_piece(turns, piece)
    return [message for message in turns.messages(as_they_are) if message["content"] or message.get("tool_calls")]


def _add_stream_result(turns: Turns, piece: dict[str, Any]) -> None:
    call_id = str(piece["tool_call_id"])
    content = piece.get("content")
    text = content if isinstance(content, str) else readable(content)
    message = {"role": "tool", "tool_call_id": call_id, "content": text}
    if not turns.result(call_id, message):
        turns.add(message)


def _add_piece(turns: Turns, piece: dict[str, Any]) -> None:
    answer = f"{piece.get('role')} {piece.get('id')}"
    message = turns.find(answer)
    if message is None:
        message = {"role": "user" if piece.get("role") == "user" else "assistant", "content": ""}
        turns.add(message, answer=answer)
    if isinstance(piece.get("content"), str):
        message["content"] += piece["content"]
    calls = message.setdefault("tool_calls", []) if piece.get("tool_calls") or piece.get("tool_call_chunks") else []
    _add_calls(calls, piece)
    turns.calls(answer, [call["id"] for call in calls])


def _add_calls(calls: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Calls named in this piece, and the next stretch of the arguments of those that have begun."""
    chunks = [chunk for chunk in piece.get("tool_call_chunks") or () if isinstance(chunk, dict)]
    for named in piece.get("tool_calls") or ():
        if isinstance(named, dict) and named.get("id") and named.get("name"):
            arguments = "" if chunks else json_text(named.get("args") or {})
            function = {"name": named["name"], "arguments": arguments}
            calls.append({"id": named["id"], "type": "function", "function": function})
    for chunk in chunks:
        begun = [call for call in calls if call["id"] == chunk.get("id")] or calls[-1:]
        if begun and isinstance(chunk.get("args"), str):
            begun[0]["function"]["arguments"] += chunk["args"]
