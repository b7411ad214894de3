"""Recorded HTTP traffic in YAML (VCR cassettes): the longest request to a model is the conversation.

A cassette holds one request for each step, each with all messages so far. The parsing needs PyYAML, which is imported
only when a file looks like a cassette.
"""

from __future__ import annotations

from typing import Any

from contextfold import formats, json_values, yaml_values
from contextfold.errors import InputError
from contextfold.transcripts import requests
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "cassette"


def recognizes(document: TranscriptFile) -> bool:
    if document.value is not None:
        return isinstance(document.value, dict) and isinstance(document.value.get("interactions"), list)
    return document.text.lstrip("-\n\r ").startswith("interactions:")


def read(document: TranscriptFile) -> list[Conversation]:
    value = document.value if document.value is not None else _parsed(document)
    recorded = value.get("interactions") if isinstance(value, dict) else None
    bodies = [_body(entry) for entry in recorded] if isinstance(recorded, list) else []
    found = [
        (messages, body, key)
        for body in bodies
        for key in ("messages", "input")
        if (messages := requests.messages_of(body, key)) is not None
    ]
    if not found:
        raise InputError(f"{document.name}: no recorded request holds messages: record the calls to the model")
    messages, body, key = max(found, key=lambda entry: len(entry[0]))
    messages = requests.with_system(messages, body)
    name = requests.format_of(body, key, messages) or formats.detect(messages).name
    return [Conversation(document.name, name, messages, KIND)]


def _parsed(document: TranscriptFile) -> Any:
    import yaml

    try:
        return yaml_values.read(document.text, fast=True)[1]
    except ValueError as error:
        raise InputError(f"{document.name}: {error}: record the traffic again") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise InputError(f"{document.name}: {place}not valid YAML ({problem}): record the traffic again") from None


def _body(interaction: Any) -> dict[str, Any]:
    request = interaction.get("request") if isinstance(interaction, dict) else None
    body = (request.get("parsed_body") or request.get("body")) if isinstance(request, dict) else None
    if isinstance(body, dict) and "string" in body:
        body = body["string"]
    if isinstance(body, str | bytes):
        try:
            body = json_values.read(body)
        except ValueError:
            return {}
    return body if isinstance(body, dict) else {}
