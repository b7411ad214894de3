"""Conversations as frameworks store them (pydantic-ai, Haystack, Google's ADK, Strands, the AI SDK), some agents
(``agents``) and harnesses (``trajectories``) do, and data sets like ShareGPT's.

What pydantic-ai's ``all_messages_json()`` and Haystack's ``to_dict()`` wrote is read by these packages themselves, and
written as Anthropic messages. Sessions of ADK hold Gemini's contents, those of Strands Converse messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from contextfold import formats
from contextfold.errors import InputError, reason, shown
from contextfold.formats import gemini_shapes as shapes
from contextfold.transcripts import agents, trajectories
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, first_object, objects_in
from contextfold.transcripts.parts import are_made_of_parts, as_messages
from contextfold.transcripts.requests import with_system

DEPTH = 3
ADKS_OWN = ("adk_request_credential", "adk_request_confirmation", "adk_framework")
"""Names of calls and results that ADK and an application exchange."""
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
    left_out = _left_out(document, kind)
    return [
        Conversation(name, kind.format, _converted(kind, one, name), kind.name, left_out=left_out)
        for name, one in zip(document.names(len(stored)), stored, strict=True)
    ]


def _left_out(document: TranscriptFile, kind: _Kind) -> tuple[str, ...]:
    """What is said of rows that hold no such conversation, in a file whose other rows hold some."""
    rows = document.value
    if not isinstance(rows, list) or kind.begins(rows):
        return ()
    places = [place for place, row in enumerate(rows) if not _stored(row, kind.begins, DEPTH - 1)]
    they = "it holds" if len(places) == 1 else "they hold"
    return (f"{document.places(places)}: left out, as {they} no messages of {kind.name}",) if places else ()


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


# ---- pydantic-ai and Haystack: read by themselves ----


def _is_pydantic_ai(value: Any) -> bool:
    message = first_object(value)
    return message.get("kind") in ("request", "response") and "part_kind" in first_object(message.get("parts"))


def _of_pydantic_ai(rows: list[Any]) -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    from contextfold.formats import pydantic_ai

    read = ModelMessagesTypeAdapter.validate_json(json.dumps(rows))
    messages = _as_anthropic([part for message in read for part in pydantic_ai.split(message)], "pydantic-ai")
    # only the newest ones are sent, and they stand beside the parts
    instructions = next((row["instructions"] for row in reversed(rows) if row.get("instructions")), None)
    return [{"role": "system", "content": instructions}, *messages] if instructions else messages


def _is_haystack(value: Any) -> bool:
    message = first_object(value)
    part = first_object(message.get("content"))
    return {"role", "meta", "name"} <= message.keys() and bool(part) and "type" not in part


def _of_haystack(rows: list[Any]) -> list[Any]:
    from haystack.dataclasses import ChatMessage

    return _as_anthropic([ChatMessage.from_dict(row) for row in rows], "haystack")


def _as_anthropic(objects: list[Any], format: str) -> list[Any]:
    return formats.get("anthropic").encode(formats.decode(objects, formats.get(format)))


# ---- rows of their own around messages of a provider ----


def _is_adk(value: Any) -> bool:
    events = value.get("events") if isinstance(value, dict) else None
    if "author" not in first_object(events):
        return False
    contents = (event.get("content") for event in objects_in(events))
    return any(isinstance(content, dict) and isinstance(content.get("parts"), list) for content in contents)


def is_adks_own(content: Any) -> bool:
    """Whether a content is of an event between ADK and the application, such as a user's credentials for a tool. ADK
    sends none of them to a model.
    """
    parts = shapes.get(content, "parts")
    of = ("function_call", "function_response")
    inner = [shapes.get(part, name) for part in (parts if isinstance(parts, list) else ()) for name in of]
    return any(shapes.get(one, "name") in ADKS_OWN for one in inner)


def _of_adk(session: dict[str, Any]) -> list[Any]:
    contents = []
    for event in session["events"]:
        content = event.get("content")
        # The whole answer follows pieces of a stream.
        if content and not event.get("partial") and not is_adks_own(content):
            author = "user" if event.get("author") == "user" else "model"
            contents.append({**content, "role": content.get("role") or author})
    return contents


def _is_strands(value: Any) -> bool:
    row = first_object(value)
    message = row.get("message")
    return "message_id" in row and isinstance(message, dict) and isinstance(message.get("content"), list)


def _of_strands(rows: list[Any]) -> list[Any]:
    # One file each, whose names sort 10 before 2. What a guardrail redacted stands beside what it was.
    ordered = sorted(rows, key=lambda row: int(row["message_id"]))
    return [row.get("redact_message") or row["message"] for row in ordered]


# ---- data sets ----


def are_turns(value: Any) -> bool:
    """Whether this is a list of turns as data sets like ShareGPT's have them: ``from`` and ``value``."""
    return {"from", "value"} <= first_object(value).keys()


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
    _Kind("copilot-cli", "openai-chat", agents.is_copilot_cli, agents.of_copilot_cli),
    _Kind("letta", "openai-chat", agents.is_letta, agents.of_letta),
    _Kind("goose", "anthropic", agents.is_goose, agents.of_goose),
    _Kind("harbor", "openai-chat", trajectories.is_atif, trajectories.of_atif),
    _Kind("openhands", "openai-chat", trajectories.is_openhands, trajectories.of_openhands),
    _Kind("trae-agent", "openai-chat", agents.is_trae, agents.of_trae),
    _Kind("ai-sdk", "openai-chat", are_made_of_parts, as_messages),
    _Kind("sharegpt", "openai-chat", _is_sharegpt, _of_sharegpt),
)
