"""Streams of events: what a provider or an application sent while it worked, put together to messages.

Two kinds: server-sent events of LangGraph applications (pieces of messages, calls and their arguments), and a recorded
stream of the Responses API, whose last event holds the whole answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contextfold import formats
from contextfold.formats.values import json_text, readable
from contextfold.transcripts import chat
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, objects_in
from contextfold.transcripts.requests import FINISHED, sent_events, with_system
from contextfold.transcripts.turns import Turns, as_they_are

STREAM_KIND, RESPONSE_KIND = "server-sent-events", "response-stream"


def recognizes(document: TranscriptFile) -> bool:
    return _finished_response(document) is not None or any(_data(document.text))


def read(document: TranscriptFile) -> list[Conversation]:
    response = _finished_response(document)
    if response is not None:
        items = with_system(list(response["output"]), response)
        return [Conversation(document.name, "openai-responses", items, RESPONSE_KIND)]
    messages = _stream_messages(list(_data(document.text)))
    name = formats.detect(messages).name
    return [Conversation(document.name, name, messages, STREAM_KIND)]


# ---- a recorded stream of the Responses API --------------------------------------------------------------------------


def _finished_response(document: TranscriptFile) -> dict[str, Any] | None:
    for event in reversed(document.objects):
        response = event.get("response")
        if event.get("type") in FINISHED and isinstance(response, dict) and isinstance(response.get("output"), list):
            return response
    return None


# ---- server-sent events ----------------------------------------------------------------------------------------------


def _data(text: str) -> Iterator[dict[str, Any]]:
    """Pieces of messages, and states that hold all of them, as they were sent."""
    for value in objects_in(sent_events(text)) if text.lstrip().startswith(("event:", "data:", ":")) else ():
        if isinstance(value.get("messages"), list) or _is_piece(value):
            yield value


def _is_piece(value: dict[str, Any]) -> bool:
    """A piece says whose it is; those of a provider's own stream have an id as well, and other things in them."""
    return "id" in value and ("role" in value or "tool_call_id" in value)


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
    message = chat.result(call_id, text)
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
    chunks = objects_in(piece.get("tool_call_chunks"))
    for named in objects_in(piece.get("tool_calls")):
        if named.get("id") and named.get("name"):
            arguments = "" if chunks else json_text(named.get("args") or {})
            calls.append(chat.call(named["id"], named["name"], arguments))
    for chunk in chunks:
        begun = [call for call in calls if call["id"] == chunk.get("id")] or calls[-1:]
        if begun and isinstance(chunk.get("args"), str):
            begun[0]["function"]["arguments"] += chunk["args"]
