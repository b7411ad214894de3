"""Traces of OpenInference (Phoenix), OpenLLMetry (Traceloop) and MLflow: the conversation that the model had."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextfold import Compactor
from contextfold.errors import InputError
from effort import examples
from transcripts.files import one, rows, several
from transcripts.test_telemetry import MESSAGES, SPAN, TEXTS, TOOL, otlp

SCHEMA = {"name": "weather", "description": "Tells it.", "parameters": {"type": "object"}}
TOOLS = ({"type": "function", "function": SCHEMA},)
SYSTEM, USER, CALLING, *RESULTS, ANSWER = MESSAGES


def flat(name: str, value: Any) -> dict[str, Any]:
    """A structure as attributes of one name each."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {key: one for n, held in inner for key, one in flat(f"{name}.{n}", held).items()} if inner else {name: value}


def call(function: dict[str, Any], name: str) -> dict[str, Any]:
    return {"tool_call": {"id": name, "function": function}}


CALLS = [call(one["function"], one["id"]) for one in CALLING["tool_calls"]]
THOUGHT, SAID = ({"type": kind, "text": text} for kind, text in (("reasoning", "two calls"), ("text", "I look.")))
BLOCKS = [
    {"message_content": THOUGHT},
    {"message_content": SAID},
    {"message_content": {"type": "tool_use"}, **CALLS[0]},
]
ASKED = [
    {"message": SYSTEM},
    {"message": {"role": "user", "contents": [{"message_content": {"type": "text", "text": USER["content"]}}]}},
    {"message": {"role": "assistant", "contents": BLOCKS, "tool_calls": CALLS}},
    *({"message": result} for result in RESULTS),
]
SCHEMAS = [{"tool": {"json_schema": json.dumps(TOOLS[0])}}]
PHOENIX = {"llm": {"input_messages": ASKED, "output_messages": [{"message": ANSWER}], "tools": SCHEMAS}}
OPENINFERENCE = {**flat("llm", PHOENIX["llm"]), "input.value": json.dumps({"messages": MESSAGES[:2]})}
TRACELOOP = {
    **flat(
        "gen_ai.prompt",
        [
            *MESSAGES[:2],
            {**CALLING, "tool_calls": [{"id": one["id"], **one["function"]} for one in CALLING["tool_calls"]]},
            *RESULTS,
        ],
    ),
    **flat("gen_ai.completion", [ANSWER]),
    **flat("llm.request.functions", [{**SCHEMA, "parameters": json.dumps(SCHEMA["parameters"])}]),
}
COLUMNS = {
    f"attributes.{name}": [flat("message", entry["message"]) for entry in entries]
    for name, entries in (("llm.input_messages", ASKED), ("llm.output_messages", [{"message": ANSWER}]))
}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "ChatCompletion", "attributes": OPENINFERENCE, "events": []},
        otlp({name: held for name, held in OPENINFERENCE.items() if held is not None}),
        {"data": [{"span_kind": "LLM", "attributes": PHOENIX}]},
        [{"name": "chain", "attributes.input.value": "x"}, {"name": "llm", **COLUMNS}],
        {"name": "openai.chat", "attributes": TRACELOOP},
    ],
    ids=["a span", "otlp", "structures", "columns", "traceloop"],
)
def test_attributes_of_one_name_each_are_the_conversation_that_the_model_had(value: Any) -> None:
    """They were refused for their keys."""
    found = one(value)
    has_thought = "gen_ai.prompt" not in json.dumps(value)
    expected = [m if has_thought else {k: v for k, v in m.items() if k != "reasoning_content"} for m in MESSAGES]
    assert (found.kind, found.format, found.messages) == ("opentelemetry", "openai-chat", expected)
    assert found.tools == (() if "attributes.llm" in json.dumps(value) else TOOLS)
    assert Compactor(window=10_000).compact(found.messages, tools=found.tools).messages == expected


def test_the_order_of_messages_is_that_of_their_numbers() -> None:
    asked = [{"message": {"role": "user", "content": f"number {n}"}} for n in range(23)]
    attributes = flat("llm.input_messages", asked)
    found = one({"attributes": {key: attributes[key] for key in sorted(attributes)}})
    assert [message["content"] for message in found.messages] == [f"number {n}" for n in range(23)]


def test_messages_that_a_limit_dropped_from_a_span_are_told() -> None:
    """OpenTelemetry keeps the last 128 attributes of a span, so what is lost is the start of the conversation."""
    kept = dict(list(flat("llm.input_messages", ASKED).items())[5:])
    found = one({"attributes": kept})
    assert [message["role"] for message in found.messages] == ["assistant", "tool", "tool"]
    assert [("2 messages of a span" in said, "raise OTEL_SPAN" in said) for said in found.left_out] == [(True, True)]


def test_items_of_one_answer_are_one_message_and_pictures_stay() -> None:
    picture = {"type": "image", "image": {"image": {"url": "data:image/png;base64,AAAA"}}}
    asked = [
        {
            "message": {
                "role": "user",
                "contents": [{"message_content": picture}, {"message_content": {"type": "audio"}}],
            }
        },
        {"message": {"role": "assistant", "content": "I look."}},
        *({"message": {"role": "assistant", "tool_calls": [one]}} for one in CALLS),
        *({"message": result} for result in RESULTS),
        {"message": {"role": "tool", "tool_call_id": "z", "contents": [{"message_content": picture}]}},
    ]
    user, calling, *_, last = one({"attributes": {"llm": {"input_messages": asked}}}).messages
    assert user["content"][0] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert "audio" in user["content"][1]["text"]
    assert calling == {key: value for key, value in CALLING.items() if key != "reasoning_content"}
    assert "data:image/png;base64,AAAA" in last["content"]


def test_an_event_that_tells_what_its_span_tells_is_no_second_conversation() -> None:
    """Spans with events of the details came in twice."""
    names = ("gen_ai.input.messages", "gen_ai.output.messages")
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": TEXTS}
    span = {"attributes": {name: TEXTS[name] for name in names[:1]}, "events": [event]}
    assert one(span).messages == MESSAGES
    assert one(span).tools == ({"type": "function", "function": {k: TOOL[k] for k in SCHEMA}},)
    other = {"attributes": {names[0]: TEXTS[names[1]]}}
    assert len(several({**span, "events": [event, other]})) == 2


CHAT = {"messages": MESSAGES[:5], "tools": list(TOOLS), "model": "m"}
CLAUDE = {"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "go"}]}
DONE = [{"type": "text", "text": "done"}]
CHAIN = [[{"type": "human", "content": "go"}]]
GENERATED = {"generations": [[{"text": "done", "message": {"type": "ai", "content": "done"}}]]}


def mlflow_span(kind: str, inputs: Any, outputs: Any) -> dict[str, Any]:
    held = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
    return {"name": "x", "attributes": {name: json.dumps(value) for name, value in held.items()}, "events": []}


CHATTED = mlflow_span("CHAT_MODEL", CHAT, {"choices": [{"index": 0, "message": ANSWER}]})
RUN = mlflow_span("CHAIN", {"messages": MESSAGES[:2]}, {"messages": MESSAGES})


@pytest.mark.parametrize(
    ("span", "messages", "tools"),
    [
        (CHATTED, MESSAGES, TOOLS),
        (
            mlflow_span("CHAT_MODEL", CLAUDE, {"type": "message", "role": "assistant", "content": DONE}),
            [SYSTEM, *CLAUDE["messages"], {"role": "assistant", "content": DONE}],
            (),
        ),
        (mlflow_span("LLM", CHAIN, GENERATED), [*CHAIN[0], GENERATED["generations"][0][0]["message"]], ()),
    ],
)
def test_requests_in_a_trace_of_mlflow_are_its_conversations(span: Any, messages: list[Any], tools: Any) -> None:
    """They were refused for their keys."""
    for value in ({"info": {}, "data": {"spans": [RUN, span]}}, rows({"trace": "{}", "spans": [RUN, span]})):
        found = one(value)
        assert (found.kind, found.messages, found.tools) == ("mlflow", messages, tools)
    both = several({"data": {"spans": [span, CHATTED]}})
    assert [len(found.messages) for found in both] == [len(messages), len(MESSAGES)]


@pytest.mark.parametrize("held", [{"attributes": OPENINFERENCE}, {"attributes": TRACELOOP}, CHATTED, COLUMNS])
@pytest.mark.parametrize("shape", [0, 1, 2])
def test_a_conversation_that_holds_traces_is_none_itself(held: dict[str, Any], shape: int) -> None:
    say = [{"role": "user", "content": "What is in the trace?"}, {"role": "assistant", "content": "A question."}]
    block = {"role": "user", "content": [{"type": "text", "text": "so", "of": held}]}
    value = ([*say, block], {"messages": say, "metadata": held}, {"messages": say, "llm": {"calls": [held]}, **held})
    found = one(value[shape])
    assert (found.kind, found.messages[:2]) == ("messages", say)


KEYS = [
    "message",
    "role",
    "content",
    "contents",
    "tool_calls",
    "tool_call",
    "function",
    "name",
    "arguments",
    "0",
    "7",
    "١",
]
VALUES = st.recursive(
    st.sampled_from(["user", "assistant", "tool", "", "{}", "[", None, 3]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4).map(".".join), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=examples(300), deadline=None)
@given(VALUES, VALUES, st.sampled_from(["llm.input_messages", "gen_ai.prompt.0", "llm", "mlflow.spanInputs"]))
def test_any_attributes_are_read_or_refused_and_nothing_else(value: Any, other: Any, name: str) -> None:
    attributes = {name: value, "llm.input_messages.1": other, "llm.tools": value, "mlflow.spanType": "LLM"}
    for given_value in ({"attributes": attributes}, attributes, [SPAN, {"attributes": attributes}]):
        try:
            found = several(given_value)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
        else:
            assert all(isinstance(conversation.messages, list) for conversation in found)


def test_a_name_of_a_million_dots_costs_what_it_is_long() -> None:
    attributes = {"llm.input_messages" + ".0" * 1_000_000: "x", **flat("llm.input_messages", ASKED[:2])}
    assert len(one({"attributes": attributes}).messages) == 2
