"""Claude's rule for a budget for thinking, by each framework's own client of the provider on loopback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from emulator import ProviderServer

from contextfold import Compactor
from integrations import rooms

# They keep async clients whose sockets outlive the event loop of a test.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MODEL = "claude-haiku-4-5"
ON_BEDROCK = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
WINDOW = 6_000
BUDGET = {"type": "enabled", "budget_tokens": 1_024}
TASK = "Read all logs."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer(windows={MODEL: WINDOW, ON_BEDROCK: WINDOW}) as running, rooms.own_loop():
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
        yield running


def said(n: int) -> str:
    return f"log_{n}.txt says {n * 7} " * 60


Ask = Callable[[int, str | None], None]
"""Asks about a chain of so many calls, which only its first answer thinks before, and what the user says behind it."""


def litellm(server: ProviderServer) -> Ask:
    return _litellm(server, {"thinking": BUDGET})


def litellm_for_any_model(server: ProviderServer) -> Ask:
    return _litellm(server, {"reasoning_effort": "low"})


def _litellm(server: ProviderServer, asked: dict[str, Any]) -> Ask:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched while it is imported
    pytest.importorskip("litellm.main")  # a folder of tests has the name without the end
    import litellm as sdk

    from contextfold.integrations.litellm import with_compaction

    completion: Any = with_compaction(sdk.completion, Compactor(window=WINDOW))
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}

    def ask(calls: int, more: str | None) -> None:
        wire: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
        for n in range(calls):
            call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": f'{{"room": {n}}}'}}
            answer = {"role": "assistant", "content": None, "tool_calls": [call]}
            wire += [{**answer, "thinking_blocks": [thought]} if n == 0 else answer]
            wire += [{"role": "tool", "tool_call_id": f"c{n}", "content": said(n)}]
        wire += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": more}] if more else []
        options: dict[str, Any] = {"api_base": server.anthropic_url, "api_key": "any", "max_retries": 0}
        completion(model=f"anthropic/{MODEL}", messages=wire, tools=tools, max_tokens=2_000, **asked, **options)

    return ask


def _pydantic_ai(model: Any, provider: str, settings: dict[str, Any]) -> Ask:
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    from contextfold.integrations.pydantic_ai import Compaction

    compaction = Compaction(window=WINDOW)
    agent = Agent(model, tools=[rooms.look], capabilities=[compaction], model_settings=settings)  # type: ignore[arg-type]

    def ask(calls: int, more: str | None) -> None:
        history: list[Any] = [ModelRequest([UserPromptPart(TASK)])]
        for n in range(calls):
            thought = ThinkingPart("hm", signature="c2ln", provider_name=provider)
            call = ToolCallPart("look", {"room": n}, tool_call_id=f"c{n}")
            history.append(ModelResponse([thought, call] if n == 0 else [call], provider_name=provider))
            history.append(ModelRequest([ToolReturnPart("look", said(n), tool_call_id=f"c{n}")]))
        history += [ModelResponse([TextPart("Done.")], provider_name=provider)] if more else []
        agent.run_sync(more, message_history=history)

    return ask


def _claude(server: ProviderServer) -> Any:
    pytest.importorskip("pydantic_ai.models")
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = rooms.client(pytest.importorskip("httpx2"))
    provider = AnthropicProvider(api_key="any", base_url=server.anthropic_url, http_client=client)
    return AnthropicModel(MODEL, provider=provider, settings={"max_tokens": 2_000})


def pydantic_ai(server: ProviderServer) -> Ask:
    return _pydantic_ai(_claude(server), "anthropic", {"anthropic_thinking": BUDGET})


def pydantic_ai_for_any_model(server: ProviderServer) -> Ask:
    return _pydantic_ai(_claude(server), "anthropic", {"thinking": "minimal"})


def pydantic_ai_on_bedrock(server: ProviderServer) -> Ask:
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("pydantic_ai.models")
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    keys = {"region_name": "us-east-1", "aws_access_key_id": "dummy", "aws_secret_access_key": "dummy"}
    client = boto3.client("bedrock-runtime", endpoint_url=server.bedrock_url, **keys)
    provider = BedrockProvider(bedrock_client=client)
    model = BedrockConverseModel(ON_BEDROCK, provider=provider, settings={"max_tokens": 2_000})
    return _pydantic_ai(model, "bedrock", {"bedrock_additional_model_requests_fields": {"thinking": BUDGET}})


def google_adk(server: ProviderServer) -> Ask:
    pytest.importorskip("google.adk.agents")
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.events import Event
    from google.adk.models.anthropic_llm import AnthropicLlm
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    from contextfold.integrations.google_adk import CompactionPlugin

    config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(thinking_budget=1_024))
    model = AnthropicLlm(model=MODEL, max_tokens=2_000)
    agent = LlmAgent(
        name="clerk",
        model=model,
        tools=[rooms.look],
        generate_content_config=config,
    )
    app = App(name="app", root_agent=agent, plugins=[CompactionPlugin(window=WINDOW)])
    names: dict[str, Any] = {"app_name": "app", "user_id": "u"}

    async def later(calls: int, more: str | None) -> None:
        runner = Runner(app=app, session_service=InMemorySessionService())
        session = await runner.session_service.create_session(**names, session_id="t")

        async def add(author: str, role: str, parts: list[Any]) -> None:
            event = Event(author=author, invocation_id="i", content=types.Content(role=role, parts=parts))
            await runner.session_service.append_event(session, event)

        await add("user", "user", [types.Part(text=TASK)])
        for n in range(calls):
            thought = types.Part(text="hm", thought=True, thought_signature=b"c2ln")
            call = types.Part(function_call=types.FunctionCall(id=f"c{n}", name="look", args={"room": n}))
            await add("clerk", "model", [thought, call] if n == 0 else [call])
            result = types.FunctionResponse(id=f"c{n}", name="look", response={"result": said(n)})
            if n < calls - 1 or more:
                await add("clerk", "user", [types.Part(function_response=result)])
        if more:
            await add("clerk", "model", [types.Part(text="Done.")])
        newest = types.Part(text=more) if more else types.Part(function_response=result)
        message = types.Content(role="user", parts=[newest])
        async for event in runner.run_async(user_id="u", session_id="t", new_message=message):
            assert event.error_code is None, event.error_message
        await model._anthropic_client.close()  # ADK leaves it open, and keeps it beyond this event loop
        del model.__dict__["_anthropic_client"]

    return lambda calls, more: asyncio.run(later(calls, more))


FACES = [
    *(litellm, litellm_for_any_model, google_adk),
    *(pydantic_ai, pydantic_ai_for_any_model, pydantic_ai_on_bedrock),
]


@pytest.mark.parametrize("face", FACES)
def test_a_chain_whose_thinking_was_summarized_goes_on_without_a_budget(
    server: ProviderServer, face: Callable[[ProviderServer], Ask]
) -> None:
    """Behind an answer without thinking, Anthropic takes no budget; where nothing is missing, it stays."""
    ask = face(server)
    for calls, more, thinks in [(2, None, True), (40, None, False), (40, "And now?", True)]:
        ask(calls, more)
        sent = server.requests[-1]
        assert sent.error is None
        thinking = sent.body.get("thinking") or (sent.body.get("additionalModelRequestFields") or {}).get("thinking")
        assert ((thinking or {}).get("type") == "enabled") is thinks, (calls, more)
    assert all(request.error is None for request in server.requests)
