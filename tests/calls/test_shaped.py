"""A request whose answer is forced into a shape is not asked for a summary behind its view: it would be paid for each
time, and be none.
"""

from __future__ import annotations

from typing import Any

import pytest
from emulator import ProviderServer, Request
from pydantic import BaseModel

from contextfold import Compactor
from contextfold.calls.same import is_shaped
from contextfold.integrations import anthropic as over_anthropic
from contextfold.integrations import bedrock as over_bedrock
from contextfold.integrations import google_genai as over_gemini
from contextfold.integrations import openai as over_openai
from effort import crossed


class Found(BaseModel):
    path: str


SCHEMA = {"type": "json_schema", "json_schema": {"name": "found", "schema": {"type": "object"}}}
SHAPED: dict[str, dict[str, Any]] = {
    "a call is required": {"tool_choice": "required"},
    "a call is required, by Anthropic's name": {"tool_choice": {"type": "any"}},
    "one tool, by Anthropic's name": {"tool_choice": {"type": "tool", "name": "read"}},
    "one tool, by OpenAI's name": {"tool_choice": {"type": "function", "function": {"name": "read"}}},
    "one tool, by Bedrock's name": {"tool_choice": {"tool": {"name": "read"}}},
    "one tool, by LangChain's name": {"tool_choice": "read"},
    "one of some tools": {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}},
    "one function": {"function_call": {"name": "read"}},
    "a schema": {"response_format": SCHEMA},
    "any JSON": {"response_format": {"type": "json_object"}},
    "a class": {"response_format": Found},
    "a schema, in Responses": {"text": {"format": {"type": "json_schema", "name": "found", "schema": {}}}},
    "a schema, by Anthropic's name": {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
    "the same by its number": {"config": {"toolConfig": {"functionCallingConfig": {"mode": 2}}}},
    "a call is required, in Gemini": {"config": {"tool_config": {"function_calling_config": {"mode": "ANY"}}}},
    "a schema, in Gemini": {"config": {"response_schema": Found}},
    "any JSON, in Gemini": {"config": {"response_mime_type": "application/json"}},
    "a call is required, as Gemini's API writes it": {
        "config": {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}
    },
    "any JSON, as Gemini's API writes it": {"config": {"responseMimeType": "application/json"}},
    "a schema, as Gemini's API writes it": {"config": {"responseSchema": {"type": "OBJECT"}}},
    "a class, in Responses": {"text_format": Found},
}
FREE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "as it likes": {"tool_choice": "auto"},
    "no call": {"tool_choice": "none"},
    "as it likes, by Anthropic's name": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    "as it likes, by Bedrock's name": {"tool_choice": {"auto": {}}},
    "some tools as it likes": {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
    "words": {"response_format": {"type": "text"}},
    "few words, in Responses": {"text": {"verbosity": "low", "format": {"type": "text"}}},
    "effort, by Anthropic's name": {"output_config": {"effort": "low"}},
    "as it likes, in Gemini": {"config": {"tool_config": {"function_calling_config": {"mode": "AUTO"}}}},
    "the same by its number": {"config": {"toolConfig": {"functionCallingConfig": {"mode": 1}}}},
    "nothing in particular by its number": {"config": {"toolConfig": {"functionCallingConfig": {"mode": 0}}}},
    "no call by its number": {"config": {"toolConfig": {"functionCallingConfig": {"mode": 3}}}},
    "calls checked by their number": {"config": {"toolConfig": {"functionCallingConfig": {"mode": 4}}}},
    "nothing, in Gemini": {"config": {"temperature": 0.1, "response_mime_type": "text/plain"}},
}


@pytest.mark.parametrize("arguments", SHAPED.values(), ids=SHAPED)
def test_what_forces_a_shape_is_known(arguments: dict[str, Any]) -> None:
    assert is_shaped(arguments)


@pytest.mark.parametrize("arguments", FREE.values(), ids=FREE)
def test_what_leaves_room_for_words_is_known(arguments: dict[str, Any]) -> None:
    assert not is_shaped(arguments)


def test_what_an_sdk_writes_for_an_argument_that_was_not_given_forces_nothing() -> None:
    openai = pytest.importorskip("openai")
    assert not is_shaped({"tool_choice": openai.NOT_GIVEN, "response_format": openai.omit})
    types = pytest.importorskip("google.genai.types")
    calling = types.FunctionCallingConfig(mode="ANY")
    config = types.GenerateContentConfig(tool_config=types.ToolConfig(function_calling_config=calling))
    assert is_shaped({"config": config})
    assert not is_shaped({"config": types.GenerateContentConfig(temperature=0.1)})


WINDOW = 8_000
SUMMARY = "Every module was read, and module_7 is the one that is late."


def over(kind: str, server: ProviderServer) -> Any:
    """What sends a list of messages with such a request, in one SDK."""
    compactor = Compactor(window=WINDOW, summarizer="same")
    if kind == "anthropic":
        client = pytest.importorskip("anthropic").Anthropic(base_url=server.anthropic_url, api_key="any")
        create = over_anthropic.with_compaction(client.messages.create, compactor)
        tools = [{"name": "read", "input_schema": {"type": "object"}}]
        return lambda said: create(model="m", max_tokens=100, messages=said, tools=tools, tool_choice={"type": "any"})
    if kind == "gemini":
        genai = pytest.importorskip("google.genai")
        client = over_gemini.with_compaction(
            genai.Client(api_key="any", http_options={"base_url": server.url}), compactor
        )
        config = {"response_mime_type": "application/json"}
        return lambda said: client.models.generate_content(
            model="m",
            config=config,
            contents=[
                {"role": {"assistant": "model"}.get(one["role"], "user"), "parts": [{"text": one["content"]}]}
                for one in said
            ],
        )
    client = pytest.importorskip("openai").OpenAI(base_url=server.openai_url, api_key="any")
    create = over_openai.with_compaction(client.chat.completions.create, compactor)
    return lambda said: create(model="m", messages=said, response_format=SCHEMA)


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini"])
def test_the_summary_is_asked_for_the_usual_way_at_once(kind: str) -> None:
    def answer(request: Request) -> str:
        return SUMMARY if "<conversation>" in request.text else '{"path": "a"}'

    with ProviderServer(default_window=WINDOW, answers=answer) as server:
        send, said = over(kind, server), list[dict[str, str]]()
        for n in range(60):
            said += [{"role": "user", "content": f"Read module_{n}. " + f"part_{n} of it is read at start. " * 12}]
            send(said)
            said += [{"role": "assistant", "content": f"module_{n} is read."}]
    assert [request for request in server.requests if "<conversation>" in request.text]
    assert not [request for request in server.requests if "Pause the task" in request.text]
    assert "module_7 is the one that is late" in server.requests[-1].text


def shaped_otherwise(kind: str, server: ProviderServer) -> Any:
    """What sends such a request by the arguments of a helper of an SDK, or beside settings that stay."""
    compactor = Compactor(window=WINDOW, summarizer="same")
    if kind == "bedrock":
        keys = {"region_name": "us-east-1", "aws_access_key_id": "any", "aws_secret_access_key": "any"}
        client = pytest.importorskip("boto3").client("bedrock-runtime", endpoint_url=server.bedrock_url, **keys)
        ends = {"inferenceConfig": {"stopSequences": ["late"]}}
        converse = over_bedrock.with_compaction(client.converse, compactor)
        return lambda said: converse(
            modelId="m", messages=[{**one, "content": [{"text": one["content"]}]} for one in said], **ends
        )
    if kind == "gemini":
        genai = pytest.importorskip("google.genai")
        gemini = over_gemini.with_compaction(
            genai.Client(api_key="any", http_options={"base_url": server.url}), compactor
        )
        config = {"stopSequences": ["late"], "candidateCount": 2, "cachedContent": "cachedContents/of-the-task"}
        config |= {"responseModalities": ["AUDIO"], "speechConfig": {"languageCode": "en-US"}}
        return lambda said: gemini.models.generate_content(
            model="m",
            config=config,
            contents=[
                {"role": {"assistant": "model"}.get(one["role"], "user"), "parts": [{"text": one["content"]}]}
                for one in said
            ],
        )
    if kind.startswith("anthropic"):
        client = pytest.importorskip("anthropic").Anthropic(base_url=server.anthropic_url, api_key="any")
        if kind == "anthropic.parse":
            parse = over_anthropic.with_compaction(client.messages.parse, compactor)
            return lambda said: parse(model="m", max_tokens=100, messages=said, output_format=Found)
        create = over_anthropic.with_compaction(client.messages.create, compactor)
        config = {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}}
        return lambda said: create(
            model="m", max_tokens=100, messages=said, output_config=config, stop_sequences=["late"]
        )
    client = pytest.importorskip("openai").OpenAI(base_url=server.openai_url, api_key="any")
    if kind == "openai":
        create = over_openai.with_compaction(client.chat.completions.create, compactor)
        beside = {"logit_bias": {"50256": -100}, "prediction": {"type": "content", "content": "part " * 400}}
        sound: Any = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
        more = {"stop": ["late"], "top_k": 20}
        return lambda said: create(model="m", messages=said, stop=["late"], **beside, **sound, extra_body=more)
    parse = over_openai.with_compaction(client.responses.parse, compactor)
    return lambda said: parse(model="m", input=said, text_format=Found)


ENDS_AN_ANSWER = {
    *("stop", "stop_sequences", "stopSequences", "candidateCount", "logit_bias", "prediction"),
    *("modalities", "audio", "responseModalities", "speechConfig"),
}
SHAPES_AN_ANSWER = ENDS_AN_ANSWER | {"text", "response_format", "cachedContent", "output_format", "format"}


@crossed(kind=["openai", "openai.parse", "anthropic", "anthropic.parse", "gemini", "bedrock"], quick=2)
def test_nothing_that_shapes_or_ends_an_answer_to_the_task_does_so_to_a_summary(kind: str) -> None:
    """A summary would be JSON, or end at a word of the agent's, which no one would see."""

    def answer(request: Request) -> str:
        if "Pause the task" in request.text:
            return "I go on with the task."  # no summary: it is asked for the usual way
        return SUMMARY if "<conversation>" in request.text else '{"path": "a"}'

    with ProviderServer(default_window=WINDOW, answers=answer) as server:
        send, said = shaped_otherwise(kind, server), list[dict[str, str]]()
        for n in range(60):
            said += [{"role": "user", "content": f"Read module_{n}. " + f"part_{n} of it is read at start. " * 12}]
            send(said)
            said += [{"role": "assistant", "content": f"module_{n} is read."}]
    asked = [request for request in server.requests if "<conversation>" in request.text]
    behind = [request for request in server.requests if "Pause the task" in request.text]
    assert asked
    for request in asked:
        fields = request.body | request.body.get("inferenceConfig", {}) | request.body.get("generationConfig", {})
        fields |= request.body.get("output_config", {})
        assert not fields.keys() & SHAPES_AN_ANSWER, fields
    for request in behind:
        fields = request.body | request.body.get("inferenceConfig", {}) | request.body.get("generationConfig", {})
        assert not fields.keys() & ENDS_AN_ANSWER, fields
    if kind == "openai":
        assert {request.body.get("top_k") for request in server.requests} == {20}
    if kind == "anthropic":
        assert {request.body["output_config"].get("effort") for request in asked} == {"low"}
    assert "module_7 is the one that is late" in server.requests[-1].text
