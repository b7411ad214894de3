"""Traces of MLflow, as ``Trace.to_json`` and ``search_traces`` give them: requests to models are spans whose inputs and
outputs are JSON in texts, in the format of whoever was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from contextfold import json_values
from contextfold.transcripts import json_lines
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "mlflow"
INPUTS, OUTPUTS, TYPE = "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.spanType"
MODELS = ("CHAT_MODEL", "LLM")
DEPTH = 6


def recognizes(document: TranscriptFile) -> bool:
    """Whether the messages of the file stand in its spans, and nowhere else."""
    if INPUTS not in document.text or json_lines.recognizes(document):
        return False
    return json_lines.recognizes(_requests(document))


def read(document: TranscriptFile) -> list[Conversation]:
    return [replace(one, kind=KIND) for one in json_lines.read(_requests(document))]


def _requests(document: TranscriptFile) -> TranscriptFile:
    """The file as a list of requests to models, each with its answer."""
    found = [{"request": _value(one[INPUTS]), "response": _value(one.get(OUTPUTS))} for one in _spans(document.value)]
    asked = [one for one in found if json_lines.recognizes(replace(document, value=one))]
    return replace(document, value=asked or None, lines=())


def _spans(value: Any, depth: int = DEPTH) -> Iterator[dict[str, Any]]:
    """The attributes of the spans that are requests to models."""
    if isinstance(value, list) and depth:
        for inner in value:
            yield from _spans(inner, depth - 1)
    elif isinstance(value, dict) and depth:
        attributes = value.get("attributes")
        if isinstance(attributes, dict) and INPUTS in attributes and _value(attributes.get(TYPE)) in MODELS:
            yield attributes
        for key, inner in value.items():
            if key != "attributes":
                yield from _spans(inner, depth - 1)


def _value(held: Any) -> Any:
    try:
        return json_values.read(held) if isinstance(held, str) else held
    except ValueError:
        return held
