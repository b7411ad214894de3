"""Conversations as some agents store them, in rows of their own: Trae Agent, goose, Copilot CLI, Letta.

What belongs here: what tells such a file, and its rows as messages; goose's blocks as Anthropic's, the others' as Chat
Completions has them. What does not: finding them in a document, and what is said where they cannot be read
(``frameworks``).
"""

from __future__ import annotations

from typing import Any

from contextfold.formats.values import arguments_text, readable
from contextfold.transcripts import chat
from contextfold.transcripts.document import first_object, objects_in
from contextfold.transcripts.turns import Turns, as_they_are

GOOSE_CALLS = ("toolRequest", "frontendToolRequest")
"""A call, and one that the program around goose runs."""
GOOSE_BLOCKS = (*GOOSE_CALLS, "toolResponse")
GOOSE_HEADER = {"working_dir", "message_count"}
"""Keys of the first row of goose's files, which tells of the session."""


def _call(call: dict[str, Any], id: str) -> dict[str, Any]:
    return chat.call(call.get(id), call.get("name"), arguments_text(call.get("arguments") or {}))


# ---- Trae Agent ----


def is_trae(value: Any) -> bool:
    asked = first_object(value.get("llm_interactions")) if isinstance(value, dict) else {}
    return {"input_messages", "response"} <= asked.keys()


def of_trae(trajectory: dict[str, Any]) -> list[Any]:
    # Each request is recorded with what was new in it alone.
    messages: list[Any] = []
    for request in objects_in(trajectory["llm_interactions"]):
        messages += [_trae_said(message) for message in objects_in(request.get("input_messages"))]
        response = request.get("response")
        if isinstance(response, dict) and (response.get("content") or response.get("tool_calls")):
            calls = objects_in(response.get("tool_calls"))
            messages.append(_trae_answer({"role": "assistant", "content": response.get("content")}, calls))
    return messages


def _trae_said(message: dict[str, Any]) -> dict[str, Any]:
    if isinstance(result := message.get("tool_result"), dict):
        text = "\n".join(str(result[key]) for key in ("result", "error") if result.get(key))
        return chat.result(result.get("call_id"), text)
    said = {"role": message.get("role"), "content": message.get("content")}
    return _trae_answer(said, objects_in([message.get("tool_call")]))


def _trae_answer(said: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    held = [_call(call, "call_id") for call in calls]
    return {**said, "tool_calls": held} if held else said


# ---- goose ----


def is_goose(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    blocks = (block for row in value for block in _blocks_of(row))
    return first_object(value).keys() >= GOOSE_HEADER or any(block.get("type") in GOOSE_BLOCKS for block in blocks)


def _blocks_of(row: Any) -> list[dict[str, Any]]:
    return objects_in(row.get("content")) if isinstance(row, dict) and "role" in row else []


def of_goose(rows: list[Any]) -> list[Any]:
    said = [row for row in objects_in(rows) if _blocks_of(row)]
    if any(_is_kept_from(row, "agentVisible") for row in said):  # goose's own compaction: what it replaced is there
        said = [row for row in said if not _is_kept_from(row, "userVisible")]
    messages = [
        {"role": row["role"], "content": [one for block in _blocks_of(row) for one in _goose_block(block)]}
        for row in said
    ]
    return [message for message in messages if message["content"]]


def _is_kept_from(row: dict[str, Any], reader: str) -> bool:
    seen = row.get("metadata")
    return isinstance(seen, dict) and seen.get(reader) is False


def _goose_block(block: dict[str, Any]) -> list[dict[str, Any]]:
    """A block as Anthropic has it; none for what only stands in the file, such as that the person was asked."""
    kind = block.get("type")
    if kind == "image":
        source = {"type": "base64", "media_type": block.get("mimeType"), "data": block.get("data")}
        return [{"type": "image", "source": source}]
    if kind in GOOSE_CALLS:
        call = block["toolCall"].get("value") or {"name": "tool", "arguments": {"": block["toolCall"].get("error")}}
        return [{"type": "tool_use", "id": block["id"], "name": call["name"], "input": call.get("arguments") or {}}]
    if kind == "toolResponse":
        return [_goose_result(block["id"], block["toolResult"])]
    if kind == "text":
        return [{"type": "text", "text": block.get("text")}]
    if kind == "redactedThinking":
        return [{"type": "redacted_thinking", "data": block.get("data")}]
    return [block] if kind == "thinking" else []


def _goose_result(call: str, result: dict[str, Any]) -> dict[str, Any]:
    found = result.get("value")
    if found is None:
        return {"type": "tool_result", "tool_use_id": call, "content": str(result.get("error")), "is_error": True}
    given = objects_in(found["content"] if isinstance(found, dict) else found)
    # What a tool shows to the person alone says so.
    seen = [one for one in given if "assistant" in ((one.get("annotations") or {}).get("audience") or ["assistant"])]
    content = [said for one in seen for said in _goose_block(one) or [_as_text(one)]]
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def _as_text(block: dict[str, Any]) -> dict[str, Any]:
    """What else a tool of MCP may answer: a file by its text, and a link or a sound by what of it can be read."""
    text = first_object([block.get("resource")]).get("text")
    return {"type": "text", "text": text if isinstance(text, str) else readable(block)}


# ---- Copilot CLI ----


def is_copilot_cli(value: Any) -> bool:
    begin = first_object(value)
    return begin.get("type") == "session.start" and isinstance(begin.get("data"), dict)


def of_copilot_cli(events: list[Any]) -> list[Any]:
    turns = Turns()
    for event in objects_in(events):
        data, kind = event.get("data"), event.get("type")
        if not isinstance(data, dict) or event.get("agentId") or data.get("parentToolCallId"):  # a sub-agent's
            continue
        content = data.get("content")
        if kind in ("system.message", "user.message") and content:
            turns.add({"role": kind.removesuffix(".message"), "content": content})
        elif kind == "assistant.message":
            calls = [_call(one, "toolCallId") for one in objects_in(data.get("toolRequests"))]
            said = {"role": "assistant", "content": content or None, **({"tool_calls": calls} if calls else {})}
            if isinstance(thought := data.get("reasoningText"), str) and thought:
                said["reasoning_content"] = thought
            if content or calls:
                turns.add(said, calls=[call["id"] for call in calls])
        elif kind == "tool.execution_complete":
            call = str(data.get("toolCallId"))
            found = data.get("result") or data.get("error")
            text = found.get("content", found.get("message")) if isinstance(found, dict) else found
            result = chat.result(call, arguments_text(text or ""))
            if not turns.result(call, result):  # of a tool that the person ran
                turns.add(result)
    return turns.messages(as_they_are)


# ---- Letta ----

LETTAS = {"role", "tool_calls", "tool_returns"}


def is_letta(value: Any) -> bool:
    """The messages of an agent's file (``.af``)."""
    return first_object(value).keys() >= LETTAS


def of_letta(rows: list[Any]) -> list[Any]:
    """A call that waits for the person's word stands in a row of its own role, and so do the word and, where the
    person's own machine ran it, what came of it, which is mostly in the row of the tool again.
    """
    said = objects_in(rows)
    returned = {call for row in said if row.get("role") == "tool" for call, _ in _letta_results(row)}
    messages: list[Any] = []
    for row in said:
        text, thought = _letta_texts(row)
        calls = objects_in(row.get("tool_calls"))
        if row.get("role") == "tool":
            messages += [chat.result(call, found) for call, found in _letta_results(row)]
        elif row.get("role") != "approval" or calls:
            role = "assistant" if row.get("role") == "approval" else row.get("role")
            message = {"role": role, "content": text or None, **({"tool_calls": calls} if calls else {})}
            messages.append({**message, "reasoning_content": thought} if thought else message)
        else:
            messages += [chat.result(call, found) for call, found in _letta_results(row) if call not in returned]
    return [one for one in messages if one["content"] is not None or "tool_calls" in one]


def _letta_results(row: dict[str, Any]) -> list[tuple[Any, str]]:
    """What came of calls, with their ids. One result may stand as the content alone."""
    held = [*objects_in(row.get("tool_returns")), *objects_in(row.get("approvals"))]
    found = [
        (one["tool_call_id"], one["func_response"]) for one in held if {"tool_call_id", "func_response"} <= one.keys()
    ]
    if not found and row.get("tool_call_id") and row.get("role") == "tool":
        found = [(row["tool_call_id"], _letta_texts(row)[0])]
    return [(call, told if isinstance(told, str) else readable(told)) for call, told in found if isinstance(call, str)]


def _letta_texts(row: dict[str, Any]) -> tuple[str, str]:
    """What a row says, and what was thought."""
    content = row.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)
    thoughts = [one["reasoning"] for one in blocks if isinstance(one.get("reasoning"), str)]
    shown = [one for one in blocks if not str(one.get("type")).endswith("reasoning")]
    said = [one["text"] if isinstance(one.get("text"), str) else readable(one) for one in shown]
    return "\n".join(said), "\n".join(thoughts)
