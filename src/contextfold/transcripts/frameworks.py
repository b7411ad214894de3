"""Conversations as frameworks store them (pydantic-ai, Haystack, Google's ADK, Strands, goose, Copilot CLI, Trae
Agent, the AI SDK), and data sets like ShareGPT's.

What pydantic-ai's ``all_messages_json()`` and Haystack's ``to_dict()`` wrote is read by these packages themselves, and
written as Anthropic messages. Sessions of ADK hold Gemini's contents, those of Strands Converse messages, and
those of goose blocks of its own, which are written as Anthropic's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from contextfold import formats
from contextfold.errors import InputError, reason, shown
from contextfold.formats.values import arguments_text
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, objects_in
from contextfold.transcripts.parts import are_made_of_parts, as_messages
from contextfold.transcripts.requests import with_system
from contextfold.transcripts.turns import Turns, as_they_are

DEPTH = 3
GOOSE_BLOCKS = ("toolRequest", "toolResponse")
GOOSE_HEADER = {"working_dir", "message_count"}
"""Keys of the first row of goose's files, which tells of the session."""
MODELS = ("gpt", "chatgpt", "bing", "bard", "model", "assistant")
SPEAKERS = {"system": "system", "human": "user", "user": "user", **dict.fromkeys(MODELS, "assistant")}
"""Who speaks in data sets like ShareGPT's, as roles."""


class _Kind(NamedTuple):
    """A kind of stored conversations: what tells the first thing in it, and how to turn all of it into messages."""

    name: str
    format: str
    begins: Callable[[Any], bool]
    convert: Callable[[Any], list[Any]]


def recognizes(document: TranscriptFile) -> bool:
    return _found(document) is not None


def read(document: TranscriptFile) -> list[Conversation]:
    found = _found(document)
    if found is None:
        return []
    kind, stored = found
    return [
        Conversation(name, kind.format, _converted(kind, one, name), kind.name)
        for name, one in zip(document.names(len(stored)), stored, strict=True)
    ]


def _converted(kind: _Kind, stored: Any, name: str) -> list[Any]:
    try:
        return kind.convert(stored)
    except InputError as error:
        raise InputError(f"{name}: {error}: mend that, or give a list of messages in another format") from None
    except ImportError:
        remedy = f"pip install 'contextfold[{kind.name}]'"
        raise InputError(f"{name}: messages of {kind.name} are read by its own package: {remedy}") from None
    except Exception as error:  # noqa: BLE001 - whatever a package raises for what it does not know
        remedy = "mend that, or give a list of messages in another format"
        raise InputError(f"{name}: this cannot be read as what {kind.name} stores: {reason(error)}: {remedy}") from None


def _found(document: TranscriptFile) -> tuple[_Kind, list[Any]] | None:
    return next(((kind, stored) for kind in _KINDS if (stored := _stored(document.value, kind.begins, DEPTH))), None)


def _stored(value: Any, begins: Callable[[Any], bool], depth: int) -> list[Any]:
    """What begins like a stored conversation, outermost first, at most ``depth`` levels deep."""
    if begins(value):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, list) or not depth:
        return []
    # The first one tells for all rows of a list; any of an object's values may be it.
    if isinstance(value, list) and not (inner and _stored(inner[0], begins, depth - 1)):
        return []
    return [stored for one in inner for stored in _stored(one, begins, depth - 1)]


def _first(value: Any) -> dict[str, Any]:
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}


# ---- pydantic-ai and Haystack: read by themselves ----


def _is_pydantic_ai(value: Any) -> bool:
    message = _first(value)
    return message.get("kind") in ("request", "response") and "part_kind" in _first(message.get("parts"))


def _of_pydantic_ai(rows: list[Any]) -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    from contextfold.formats import pydantic_ai

    read = ModelMessagesTypeAdapter.validate_json(json.dumps(rows))
    messages = _as_anthropic([part for message in read for part in pydantic_ai.split(message)], "pydantic-ai")
    # only the newest ones are sent, and they stand beside the parts
    instructions = next((row["instructions"] for row in reversed(rows) if row.get("instructions")), None)
    return [{"role": "system", "content": instructions}, *messages] if instructions else messages


def _is_haystack(value: Any) -> bool:
    message = _first(value)
    part = _first(message.get("content"))
    return {"role", "meta", "name"} <= message.keys() and bool(part) and "type" not in part


def _of_haystack(rows: list[Any]) -> list[Any]:
    from haystack.dataclasses import ChatMessage

    return _as_anthropic([ChatMessage.from_dict(row) for row in rows], "haystack")


def _as_anthropic(objects: list[Any], format: str) -> list[Any]:
    return formats.get("anthropic").encode(formats.decode(objects, formats.get(format)))


# ---- rows of their own around messages of a provider ----


def _is_adk(value: Any) -> bool:
    events = value.get("events") if isinstance(value, dict) else None
    if "author" not in _first(events):
        return False
    contents = (event.get("content") for event in events or () if isinstance(event, dict))
    return any(isinstance(content, dict) and isinstance(content.get("parts"), list) for content in contents)


def _of_adk(session: dict[str, Any]) -> list[Any]:
    contents = []
    for event in session["events"]:
        content = event.get("content")
        if content and not event.get("partial"):  # pieces of a stream, which the whole answer follows
            author = "user" if event.get("author") == "user" else "model"
            contents.append({**content, "role": content.get("role") or author})
    return contents


def _is_strands(value: Any) -> bool:
    row = _first(value)
    message = row.get("message")
    return "message_id" in row and isinstance(message, dict) and isinstance(message.get("content"), list)


def _of_strands(rows: list[Any]) -> list[Any]:
    # One file each, whose names sort 10 before 2. What a guardrail redacted stands beside what it was.
    ordered = sorted(rows, key=lambda row: int(row["message_id"]))
    return [row.get("redact_message") or row["message"] for row in ordered]


def _is_trae(value: Any) -> bool:
    asked = _first(value.get("llm_interactions")) if isinstance(value, dict) else {}
    return {"input_messages", "response"} <= asked.keys()


def _of_trae(trajectory: dict[str, Any]) -> list[Any]:
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
        return {"role": "tool", "tool_call_id": result.get("call_id"), "content": text}
    said = {"role": message.get("role"), "content": message.get("content")}
    return _trae_answer(said, objects_in([message.get("tool_call")]))


def _trae_answer(said: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    held = [
        {
            "id": call.get("call_id"),
            "type": "function",
            "function": {"name": call.get("name"), "arguments": arguments_text(call.get("arguments") or {})},
        }
        for call in calls
    ]
    return {**said, "tool_calls": held} if held else said


def _is_goose(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    blocks = (block for row in value for block in _blocks_of(row))
    return _first(value).keys() >= GOOSE_HEADER or any(block.get("type") in GOOSE_BLOCKS for block in blocks)


def _blocks_of(row: Any) -> list[dict[str, Any]]:
    return objects_in(row.get("content")) if isinstance(row, dict) and "role" in row else []


def _of_goose(rows: list[Any]) -> list[Any]:
    said = [row for row in objects_in(rows) if _blocks_of(row)]
    messages = [
        {"role": row["role"], "content": [one for block in _blocks_of(row) for one in _goose_block(block)]}
        for row in said
    ]
    return [message for message in messages if message["content"]]


def _goose_block(block: dict[str, Any]) -> list[dict[str, Any]]:
    """A block as Anthropic has it; none for what only stands in the file, such as that the person was asked."""
    kind = block.get("type")
    if kind == "image":
        source = {"type": "base64", "media_type": block.get("mimeType"), "data": block.get("data")}
        return [{"type": "image", "source": source}]
    if kind == "toolRequest":
        call = block["toolCall"].get("value") or {"name": "tool", "arguments": {"": block["toolCall"].get("error")}}
        return [{"type": "tool_use", "id": block["id"], "name": call["name"], "input": call.get("arguments") or {}}]
    if kind == "toolResponse":
        return [_goose_result(block["id"], block["toolResult"])]
    if kind == "text":
        return [{"type": "text", "text": block.get("text")}]
    return [block] if kind == "thinking" else []


def _goose_result(call: str, result: dict[str, Any]) -> dict[str, Any]:
    found = result.get("value")
    if found is None:
        return {"type": "tool_result", "tool_use_id": call, "content": str(result.get("error")), "is_error": True}
    given = objects_in(found["content"] if isinstance(found, dict) else found)
    # What a tool shows to the person alone says so.
    seen = [one for one in given if "assistant" in ((one.get("annotations") or {}).get("audience") or ["assistant"])]
    content = [said for one in seen for said in _goose_block({"type": one.get("type"), **one})]
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def _is_copilot_cli(value: Any) -> bool:
    first = _first(value)
    return first.get("type") == "session.start" and isinstance(first.get("data"), dict)


def _of_copilot_cli(events: list[Any]) -> list[Any]:
    turns = Turns()
    for event in objects_in(events):
        data, kind = event.get("data"), event.get("type")
        if not isinstance(data, dict) or event.get("agentId") or data.get("parentToolCallId"):  # a sub-agent's
            continue
        content = data.get("content")
        if kind in ("system.message", "user.message") and content:
            turns.add({"role": kind.removesuffix(".message"), "content": content})
        elif kind == "assistant.message":
            calls = [_call_of_copilot(one) for one in objects_in(data.get("toolRequests"))]
            said = {"role": "assistant", "content": content or None, **({"tool_calls": calls} if calls else {})}
            if isinstance(thought := data.get("reasoningText"), str) and thought:
                said["reasoning_content"] = thought
            if content or calls:
                turns.add(said, calls=[call["id"] for call in calls])
        elif kind == "tool.execution_complete":
            call = data.get("toolCallId")
            found = data.get("result") or data.get("error")
            text = found.get("content", found.get("message")) if isinstance(found, dict) else found
            turns.result(str(call), {"role": "tool", "tool_call_id": call, "content": arguments_text(text or "")})
    return turns.messages(as_they_are)


def _call_of_copilot(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call.get("name"), "arguments": arguments_text(call.get("arguments") or {})}
    return {"id": call.get("toolCallId"), "type": "function", "function": function}


# ---- data sets ----


def are_turns(value: Any) -> bool:
    """Whether this is a list of turns as data sets like ShareGPT's have them: ``from`` and ``value``."""
    return {"from", "value"} <= _first(value).keys()


def of_turns(turns: list[Any]) -> list[Any]:
    """Such turns as chat messages. Raises ``InputError`` for a speaker that no chat has."""
    messages = []
    for number, turn in enumerate(turns):
        if turn["from"] not in SPEAKERS:
            raise InputError(f"turn {number} is by {shown(turn['from'])}, and not by {', '.join(SPEAKERS)}")
        messages.append({"role": SPEAKERS[turn["from"]], "content": turn["value"]})
    return messages


def _is_sharegpt(value: Any) -> bool:
    return are_turns(value.get("conversations") if isinstance(value, dict) else value)


def _of_sharegpt(value: Any) -> list[Any]:
    return with_system(of_turns(value["conversations"]), value) if isinstance(value, dict) else of_turns(value)


_KINDS = (
    _Kind("pydantic-ai", "anthropic", _is_pydantic_ai, _of_pydantic_ai),
    _Kind("haystack", "anthropic", _is_haystack, _of_haystack),
    _Kind("google-adk", "gemini", _is_adk, _of_adk),
    _Kind("strands", "bedrock-converse", _is_strands, _of_strands),
    _Kind("copilot-cli", "openai-chat", _is_copilot_cli, _of_copilot_cli),
    _Kind("goose", "anthropic", _is_goose, _of_goose),
    _Kind("trae-agent", "openai-chat", _is_trae, _of_trae),
    _Kind("ai-sdk", "openai-chat", are_made_of_parts, as_messages),
    _Kind("sharegpt", "openai-chat", _is_sharegpt, _of_sharegpt),
)
