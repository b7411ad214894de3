"""What ``functools.partial`` gives a method is of the request, as what the call gives: on the face of each SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from emulator import ProviderServer

from contextfold import Compactor
from contextfold.errors import InputError

MODEL = "gpt-4o-mini"
CLAUDE = "claude-haiku-4-5"
"""The registry knows the windows of both."""
BEDROCKS = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
GEMINI = "gemini-2.5-flash"
PARAMETERS = {"type": "object", "properties": {}}
FUNCTION = {"name": "read_file", "description": "Reads a file. " * 40, "parameters": PARAMETERS}
SAID = "Be brief. " * 30

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),  # google-genai's own
    pytest.mark.filterwarnings("ignore::DeprecationWarning:litellm"),
]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(default_window=1_000_000) as running:
        yield running


def face_of(name: str, server: ProviderServer, stack: ExitStack) -> tuple[Any, Any, dict[str, Any], str]:
    """``with_compaction``, a method, a request's arguments without its conversation, and the conversation's name."""
    over = import_module(f"contextfold.integrations.{name.partition(' ')[0]}").with_compaction
    function = {"type": "function", "function": FUNCTION}
    if name.startswith("openai"):
        sdk = pytest.importorskip("openai")
        client = stack.enter_context(sdk.OpenAI(base_url=server.openai_url, api_key="any"))
        if name == "openai":
            return over, client.chat.completions.create, {"model": MODEL, "tools": [function]}, "messages"
        given = {"model": MODEL, "tools": [{"type": "function", **FUNCTION}], "instructions": SAID}
        return over, client.responses.create, given, "input"
    if name == "anthropic":
        sdk = pytest.importorskip("anthropic")
        client = stack.enter_context(sdk.Anthropic(base_url=server.anthropic_url, api_key="any"))
        tool = {"name": "read_file", "description": FUNCTION["description"], "input_schema": PARAMETERS}
        given = {"model": CLAUDE, "tools": [tool], "system": SAID, "max_tokens": 300}
        return over, client.messages.create, given, "messages"
    if name == "litellm":
        sdk = pytest.importorskip("litellm")
        given = {"model": f"openai/{MODEL}", "api_base": server.openai_url, "api_key": "any", "tools": [function]}
        return over, sdk.completion, given, "messages"
    if name == "google_genai":
        sdk = pytest.importorskip("google.genai")
        client = stack.enter_context(sdk.Client(api_key="any", http_options={"base_url": server.url}))
        given = {
            "model": GEMINI,
            "config": {"system_instruction": SAID, "tools": [{"functionDeclarations": [FUNCTION]}]},
        }
        return over, client.models.generate_content, given, "contents"
    sdk = pytest.importorskip("boto3")
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    client = sdk.client("bedrock-runtime", endpoint_url=server.bedrock_url, region_name="us-east-1", **keys)
    stack.enter_context(closing(client))
    spec = {"name": "read_file", "description": FUNCTION["description"], "inputSchema": {"json": PARAMETERS}}
    given = {"modelId": BEDROCKS, "toolConfig": {"tools": [{"toolSpec": spec}]}, "system": [{"text": SAID}]}
    return over, client.converse, given, "messages"


def talk(name: str) -> list[Any]:
    words = "What is late?"
    if name == "google_genai":
        return [{"role": "user", "parts": [{"text": words}]}]
    return [{"role": "user", "content": [{"text": words}] if name == "bedrock" else words}]


FACES = ("openai", "openai responses", "anthropic", "litellm", "google_genai", "bedrock")


@pytest.mark.parametrize("name", FACES)
def test_what_a_partial_gives_is_read_as_what_the_call_gives(server: ProviderServer, name: str) -> None:
    with ExitStack() as stack:
        over, method, given, conversation = face_of(name, server, stack)
        said = {conversation: talk(name)}
        plain, bound = over(method, Compactor()), over(partial(method, **given), Compactor())
        plain(**said, **given)
        bound(**said)
        first, second = server.requests
        assert second.body == first.body
        assert bound.result.window_source == plain.result.window_source == "registry"
        assert bound.result.window == plain.result.window
        assert dict(bound.result.floor) == dict(plain.result.floor)
        assert bound.result.floor["tools"] > 60
        # What the call gives takes the place of what the partial gives, as it always does.
        other = {"modelId" if name == "bedrock" else "model": given.get("modelId") or given["model"]}
        over(partial(method, **{**given, **dict.fromkeys(other, "other")}), Compactor())(**said, **other)
        assert server.requests[-1].body == first.body


@pytest.mark.parametrize("name", [face for face in FACES if face not in ("google_genai", "bedrock")])
def test_a_summary_asked_of_the_requests_own_model_leaves_out_what_a_partial_gives_for_the_task(
    server: ProviderServer, name: str
) -> None:
    with ExitStack() as stack:
        over, method, given, conversation = face_of(name, server, stack)
        bound = over(partial(method, **given), Compactor(window=3_000, summarizer="same", keep=("messages", 2)))
        words = [f"Room {n}: " + f"wall {n} is dry. " * 60 for n in range(12)]
        wire = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate([*words, "And now?"])]
        bound(**{conversation: wire})
        asked = [request for request in server.requests if "Room 3" in json.dumps(request.body)]
        assert len(server.requests) >= 2
        assert any("tools" not in request.body for request in asked)


def test_a_partial_of_litellm_takes_its_model_by_place(server: ProviderServer) -> None:
    with ExitStack() as stack:
        over, method, given, _ = face_of("litellm", server, stack)
        model = given.pop("model")
        bound = over(partial(method, model, **given), Compactor())
        bound(talk("litellm"))
        assert bound.result.window_source == "registry"
        with pytest.raises(InputError, match="by name"):
            bound(talk("litellm"), "more")


def test_a_partial_of_an_async_method_is_read_too(server: ProviderServer) -> None:
    sdk = pytest.importorskip("openai")
    over = import_module("contextfold.integrations.openai").with_compaction

    async def ask() -> Any:
        async with sdk.AsyncOpenAI(base_url=server.openai_url, api_key="any") as client:
            bound = over(partial(client.chat.completions.create, model=MODEL), Compactor())
            await bound(messages=talk("openai"))
            return bound.result

    assert asyncio.run(ask()).window_source == "registry"


def test_a_partial_hides_no_tool_runner() -> None:
    sdk = pytest.importorskip("anthropic")
    over = import_module("contextfold.integrations.anthropic").with_compaction
    with sdk.Anthropic(api_key="any") as client, pytest.raises(InputError, match="tool_runner"):
        over(partial(client.beta.messages.tool_runner, model=CLAUDE), Compactor())
