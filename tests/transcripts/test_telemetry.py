"""Spans of OpenTelemetry: however an exporter writes them, they hold the same conversation."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from contextfold import Compactor
from contextfold.errors import InputError
from transcripts.files import one, rows, several

ASKED = [
    {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris and Rome?"}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "two calls"},
            {"type": "text", "content": "I look."},
            {"type": "tool_call", "id": "a", "name": "weather", "arguments": {"city": "Paris"}},
            {"type": "tool_call", "id": "b", "name": "weather", "arguments": {"city": "Rome"}},
        ],
    },
    {
        "role": "tool",
        "parts": [
            {"type": "tool_call_response", "id": "a", "response": "rain"},
            {"type": "tool_call_response", "id": "b", "response": {"sky": "clear", "degrees": 21}},
        ],
    },
]
ANSWER = [{"role": "assistant", "parts": [{"type": "text", "content": "Rain, and 21."}], "finish_reason": "stop"}]
RULES = [{"type": "text", "content": "Be brief."}]
TOOL = {"type": "function", "name": "weather", "description": "Tells it.", "parameters": {"type": "object"}}
ATTRIBUTES = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": ASKED,
    "gen_ai.output.messages": ANSWER,
    "gen_ai.system_instructions": RULES,
    "gen_ai.tool.definitions": [TOOL],
}
TEXTS = {name: value if isinstance(value, str) else json.dumps(value) for name, value in ATTRIBUTES.items()}


def call(name: str, city: str) -> dict[str, Any]:
    return {
        "id": name,
        "type": "function",
        "function": {"name": "weather", "arguments": json.dumps({"city": city}, separators=(", ", ": "))},
    }


MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather in Paris and Rome?"},
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "two calls",
        "tool_calls": [call("a", "Paris"), call("b", "Rome")],
    },
    {"role": "tool", "tool_call_id": "a", "content": "rain"},
    {"role": "tool", "tool_call_id": "b", "content": '{"sky": "clear", "degrees": 21}'},
    {"role": "assistant", "content": "Rain, and 21."},
]


def typed(value: Any) -> dict[str, Any]:
    """A value as OTLP writes it."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": name, "value": typed(held)} for name, held in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(held) for held in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def nested(value: dict[str, Any], levels: int) -> dict[str, Any]:
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return value


def otlp(attributes: dict[str, Any]) -> dict[str, Any]:
    listed = [{"key": name, "value": typed(value)} for name, value in attributes.items()]
    spans = [{"name": "run", "attributes": []}, {"name": "chat", "attributes": listed, "events": []}]
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}


@pytest.mark.parametrize(
    "value",
    [
        otlp(TEXTS),
        {"name": "chat", "attributes": ATTRIBUTES},
        {"name": "chat", "attributes": TEXTS, "events": [], "resource": {"attributes": {"service.name": "x"}}},
        [{"name": "run", "attributes": {}}, {"name": "chat", "attributes": TEXTS}],
        {"data": [{"spans": [{"events": [{"name": "details", "attributes": TEXTS}]}]}]},
        TEXTS,
    ],
)
def test_a_span_is_the_conversation_that_the_model_had(value: Any) -> None:
    """They were refused for their keys."""
    found = one(value)
    assert (found.kind, found.format, found.messages) == ("opentelemetry", "openai-chat", MESSAGES)
    assert found.tools == ({"type": "function", "function": {name: TOOL[name] for name in list(TOOL)[1:]}},)
    assert Compactor(window=10_000).compact(found.messages, tools=found.tools).messages == MESSAGES


def test_structures_of_otlp_are_read_as_their_json_is() -> None:
    assert one(otlp(ATTRIBUTES)).messages == MESSAGES


@pytest.mark.parametrize(
    "value",
    [
        {"arrayValue": {}},
        {"arrayValue": {"values": None}},
        {"kvlistValue": {"values": 3}},
        {"intValue": "--1"},
        {"stringValue": "[}"},
        nested({"stringValue": "x"}, 100),
    ],
)
def test_values_of_otlp_that_are_none_end_in_no_error_that_is_not_ours(value: dict[str, Any]) -> None:
    attributes = [{"key": ["x"], "value": 1}, 7, {"key": "gen_ai.input.messages", "value": value}]
    span = {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": attributes}]}]}]}
    with contextlib.suppress(InputError):
        several(span)


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": 3}])
def test_a_picture_without_data_is_told_as_it_stands(content: dict[str, Any]) -> None:
    part = {"type": "blob", "modality": "image", **content}
    found = one({"gen_ai.input.messages": [{"role": "user", "parts": [part]}]})
    assert found.messages == [{"role": "user", "content": json.dumps(part)}]


def test_each_span_with_messages_is_a_conversation() -> None:
    spans = [{"attributes": {**TEXTS, "gen_ai.input.messages": ASKED[:count]}} for count in (1, 3)]
    assert [len(found.messages) for found in several(rows(*spans))] == [3, 6]


def test_messages_that_a_limit_of_lengths_cut_off_are_told() -> None:
    """Their span was left out without a word where others could be read, and their answer always."""
    cut = {**TEXTS, "gen_ai.input.messages": TEXTS["gen_ai.input.messages"][:200]}
    unanswered = {**TEXTS, "gen_ai.output.messages": TEXTS["gen_ai.output.messages"][:-5] + "..."}
    found = several(rows(otlp(TEXTS), otlp(cut), otlp(unanswered)))
    assert [one.messages for one in found] == [MESSAGES, MESSAGES[:-1]]
    assert all("attributes of spans break off (2)" in said for one in found for said in one.left_out)
    with pytest.raises(InputError, match=r"spans break off \(1\).*raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"):
        several(otlp(cut))


def test_calls_without_ids_and_what_is_no_text_are_read_too() -> None:
    image = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"}
    asked = [
        {"role": "user", "parts": [{"type": "text", "content": "look"}, image, {"type": "other", "x": 1}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": '{"x": 1}'}] * 2},
        {"role": "user", "parts": [{"type": "tool_call_response", "result": n} for n in ("1", "2")]},
    ]
    user, calling, *results = one({"gen_ai.input.messages": asked}).messages
    again = one({"gen_ai.input.messages": asked * 2}).messages
    assert len({call["id"] for message in again for call in message.get("tool_calls", ())}) == 4
    assert user["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": '{"type": "other", "x": 1}'},
    ]
    assert [call["function"]["arguments"] for call in calling["tool_calls"]] == ['{"x": 1}'] * 2
    ids = [call["id"] for call in calling["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(result["tool_call_id"], result["content"]) for result in results] == [(ids[0], "1"), (ids[1], "2")]


CHAT = [{"role": "user", "content": "What is in the trace?"}, {"role": "assistant", "content": "A question."}]
SPAN = {"name": "chat", "attributes": TEXTS}
FOUND = {"functionResponse": {"name": "trace", "response": SPAN}}
USED = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "store", "input": SPAN}]}


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ([*CHAT, {"role": "user", "content": [{"type": "text", "text": "so", "of": SPAN}]}], 3),
        ({"messages": [CHAT[0], USED]}, 2),
        ({"contents": [{"role": "user", "parts": [{"text": "go"}]}, {"role": "user", "parts": [FOUND]}]}, 2),
        ({"messages": [{"type": "human", "content": "go"}, {"type": "ai", "content": "x", "metadata": SPAN}]}, 2),
        ({"id": "s", "appName": "a", "events": [{"author": "user", "content": {"role": "user", "parts": [FOUND]}}]}, 1),
        ({"input": CHAT[:1], "output": CHAT[1], "metadata": SPAN}, 2),
        ({"trace": {}, "input": {"messages": CHAT[:1]}, "output": CHAT[1], "metadata": SPAN}, 2),
    ],
)
def test_a_conversation_that_holds_spans_or_has_them_beside_it_is_no_span(value: Any, count: int) -> None:
    """The conversation in the attributes was read, and the one that the file is was lost."""
    found = one(value)
    assert found.kind != "opentelemetry"
    assert len(found.messages) == count
