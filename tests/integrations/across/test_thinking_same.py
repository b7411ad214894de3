"""``summarizer="same"`` beside Claude's thinking: the summary is asked for with what the view went out with.

What a provider has in its cache holds for one way of thinking, and a budget is refused behind a chain of calls whose
thinking was summarized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from emulator import Answer, ProviderServer, Request, ToolCall

from contextfold import Compactor, Policy
from integrations import rooms

# They keep async clients whose sockets outlive the event loop of a test.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MODEL = "claude-haiku-4-5"
WINDOW = 6_000
BUDGET = {"type": "enabled", "budget_tokens": 1_024}
EDITS = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
TASK = "Read all logs."
TURNS = 30
POLICY = Policy(trigger=("fraction", 0.6), target=("fraction", 0.3))
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SUMMARY = "<summary>\nLogs are read one after the other, and each says a multiple of seven.\n</summary>"


def is_behind(request: Request) -> bool:
    return "Pause the task" in request.text


def answer(request: Request) -> Answer | str:
    return SUMMARY if "<summary>" in request.text else Answer("", tool_calls=(ToolCall("look", {"room": 1}),))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer(windows={MODEL: WINDOW}, answers=answer) as running, rooms.own_loop():
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
        yield running


def said(n: int) -> str:
    return f"log_{n}.txt says {n * 7} " * 60


def anthropic(server: ProviderServer) -> None:
    _anthropic(server, thinking=BUDGET)


def anthropic_with_edits(server: ProviderServer) -> None:
    _anthropic(server, thinking=BUDGET, context_management=EDITS, betas=["context-management-2025-06-27"])


def anthropic_that_drops(server: ProviderServer) -> None:
    _anthropic(server, drop_block=True, thinking={"type": "adaptive"})


def _anthropic(server: ProviderServer, *, drop_block: bool = False, max_tokens: int = 2_000, **fields: Any) -> None:
    sdk = pytest.importorskip("anthropic")
    from contextfold.integrations.anthropic import with_compaction

    client = sdk.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0)
    compactor = Compactor(window=WINDOW, summarizer="same", policy=POLICY)
    method = client.beta.messages.create if "betas" in fields else client.messages.create
    create: Any = with_compaction(method, compactor, drop_block=drop_block)
    wire: list[Any] = [{"role": "user", "content": TASK}]
    for n in range(TURNS):
        call = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {"room": n}}
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": said(n)}
        wire = [*wire, {"role": "assistant", "content": [THOUGHT, call] if n == 0 else [call]}]
        wire = [*wire, {"role": "user", "content": [result]}]
        create(model=MODEL, messages=wire, tools=[TOOL], max_tokens=max_tokens, **fields)


def litellm(server: ProviderServer) -> None:
    _litellm(server, {"thinking": BUDGET})


def litellm_for_any_model(server: ProviderServer) -> None:
    _litellm(server, {"reasoning_effort": "low"})


def _litellm(server: ProviderServer, asked: dict[str, Any]) -> None:
    import os

    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched while it is imported
    pytest.importorskip("litellm.main")  # a folder of tests has the name without the end
    import litellm as sdk

    from contextfold.integrations.litellm import with_compaction

    completion: Any = with_compaction(sdk.completion, Compactor(window=WINDOW, summarizer="same", policy=POLICY))
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
    options: dict[str, Any] = {"api_base": server.anthropic_url, "api_key": "any", "max_retries": 0}
    wire: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    for n in range(TURNS):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": f'{{"room": {n}}}'}}
        calling = {"role": "assistant", "content": None, "tool_calls": [call]}
        wire = [*wire, {**calling, "thinking_blocks": [THOUGHT]} if n == 0 else calling]
        wire = [*wire, {"role": "tool", "tool_call_id": f"c{n}", "content": said(n)}]
        completion(model=f"anthropic/{MODEL}", messages=wire, tools=tools, max_tokens=2_000, **asked, **options)


def langchain(server: ProviderServer) -> None:
    pytest.importorskip("langchain_anthropic")
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from contextfold.integrations.langchain import CompactionMiddleware

    model: Any = ChatAnthropic(model=MODEL, max_tokens=2_000, max_retries=0, thinking=BUDGET)  # type: ignore[call-arg]
    middleware = CompactionMiddleware(window=WINDOW, summarizer="same", policy=POLICY)
    state: dict[str, Any] = {}

    def handler(request: Any) -> Any:
        return ModelResponse(result=[request.model.bind_tools(request.tools).invoke(request.messages)])

    messages: list[Any] = [HumanMessage(TASK, id="task")]
    for n in range(TURNS):
        call = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {"room": n}}
        calls: list[Any] = [{"id": f"c{n}", "name": "look", "args": {"room": n}}]
        content: Any = [THOUGHT, call] if n == 0 else [call]
        messages.append(AIMessage(content, tool_calls=calls, id=f"a{n}"))
        messages.append(ToolMessage(said(n), tool_call_id=f"c{n}", id=f"t{n}"))
        request = ModelRequest(
            model=model,
            messages=list(messages),
            system_message=None,
            tools=[TOOL],
            state=state,  # type: ignore[arg-type]
        )
        done = middleware.wrap_model_call(request, handler)
        state |= (done.command.update if getattr(done, "command", None) else None) or {}


def pydantic_ai(server: ProviderServer) -> None:
    pytest.importorskip("pydantic_ai.models")
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
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from contextfold.integrations.pydantic_ai import Compaction

    client = rooms.client(pytest.importorskip("httpx2"))
    provider = AnthropicProvider(api_key="any", base_url=server.anthropic_url, http_client=client)
    model = AnthropicModel(MODEL, provider=provider, settings={"max_tokens": 2_000, "anthropic_thinking": BUDGET})

    class Ending(WrapperModel):
        """Answers in words, so that a run ends: what it was told is the test's."""

        async def request(self, messages: Any, settings: Any, parameters: Any) -> ModelResponse:
            said = await super().request(messages, settings, parameters)
            calls = any(isinstance(part, ToolCallPart) for part in said.parts)
            return ModelResponse([TextPart("Done.")], usage=said.usage, model_name=MODEL) if calls else said

    compaction = Compaction(window=WINDOW, summarizer="same", policy=POLICY)
    agent = Agent(Ending(model), tools=[rooms.look], capabilities=[compaction])
    history: list[Any] = [ModelRequest([UserPromptPart(TASK)])]
    record: Any = None
    for n in range(TURNS):
        thought = ThinkingPart("hm", signature="c2ln", provider_name="anthropic")
        call = ToolCallPart("look", {"room": n}, tool_call_id=f"c{n}")
        history.append(ModelResponse([thought, call] if n == 0 else [call], provider_name="anthropic", metadata=record))
        history.append(ModelRequest([ToolReturnPart("look", said(n), tool_call_id=f"c{n}")]))
        out = agent.run_sync(message_history=list(history))
        record = out.all_messages()[-1].metadata or record


FACES = [anthropic, anthropic_with_edits, anthropic_that_drops, litellm, litellm_for_any_model, langchain, pydantic_ai]


@pytest.mark.parametrize("face", FACES)
def test_a_summary_is_asked_for_with_the_thinking_of_the_view(
    server: ProviderServer, face: Callable[[ProviderServer], None]
) -> None:
    """Else it is refused, or read at full price, at each pass."""
    face(server)
    requests = list(server.requests)
    assert [request.error for request in requests if request.error is not None] == []
    behind = [number for number, request in enumerate(requests) if is_behind(request)]
    assert len(behind) > 2
    for number in behind:
        before, asked = requests[number - 1], requests[number]
        for field in ("thinking", "context_management", "tools", "tool_choice", "system"):
            assert asked.body.get(field) == before.body.get(field), field


def test_a_budget_stays_below_an_answer_limit_that_is_lowered_for_a_summary(server: ProviderServer) -> None:
    """Else each of these requests is refused, and the summary asked for once more, by itself."""
    _anthropic(server, thinking={"type": "enabled", "budget_tokens": 2_900}, max_tokens=3_000)
    asked = [request.body for request in server.requests if is_behind(request)]
    assert any(body["max_tokens"] <= 2_900 for body in asked)
    errors = [str(request.error) for request in server.requests if request.error is not None]
    assert not [error for error in errors if "budget_tokens" in error]
