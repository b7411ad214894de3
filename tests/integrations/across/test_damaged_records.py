"""A record in a place that a framework keeps, and others can write to: one that cannot be read ends no conversation."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from contextfold import Compactor

WINDOW = 4_000
TURNS = 40

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def told(turn: int) -> str:
    return f"Question {turn}: " + "word " * 120


def a_record() -> str:
    wire = [{"role": ("user", "assistant")[n % 2], "content": told(n)} for n in range(TURNS)]
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    return record.to_json()


DAMAGED: dict[str, Callable[[str], Any]] = {
    "cut off": lambda text: text[: len(text) // 2],
    "not JSON": lambda text: "gone",
    "another object": lambda text: '{"covers": "many"}',
    "of a newer version": lambda text: json.dumps({**json.loads(text), "version": 99}),
    "no text": lambda text: 7,
    "nested too deeply": lambda text: '{"a":' * 100_000 + "1" + "}" * 100_000,
}


def with_pydantic_ai(stored: Any) -> Any:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from contextfold.integrations.pydantic_ai import Compaction

    seen: list[int] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        seen.append(len(messages))
        return ModelResponse([TextPart("It is so.")])

    history: list[Any] = []
    for turn in range(TURNS):
        history += [ModelRequest.user_text_prompt(told(turn)), ModelResponse([TextPart("Yes.")])]
    history[-1].metadata = {"contextfold": stored}
    agent = Agent(FunctionModel(answer), capabilities=[Compaction(window=WINDOW)])
    answered = agent.run_sync("And now?", message_history=history)
    assert seen[0] < TURNS
    return Compaction.record(answered.all_messages())


def with_strands(stored: Any) -> Any:
    pytest.importorskip("strands.agent")
    from strands import Agent
    from strands.models import Model

    from contextfold.integrations.strands import CompactionManager

    seen: list[int] = []

    class Double(Model):
        def update_config(self, **given: Any) -> None: ...
        def get_config(self) -> Any:
            return {}

        def structured_output(self, *given: Any, **named: Any) -> Any: ...

        async def stream(self, messages: Any, *given: Any, **named: Any) -> Any:
            seen.append(len(messages))
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockDelta": {"delta": {"text": "It is so."}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    manager = CompactionManager(window=WINDOW)
    manager.restore_from_session({**manager.get_state(), "compaction": stored})
    messages: list[Any] = []
    for turn in range(TURNS):
        messages += [{"role": "user", "content": [{"text": told(turn)}]}]
        messages += [{"role": "assistant", "content": [{"text": "Yes."}]}]
    agent = Agent(model=Double(), messages=messages, conversation_manager=manager, callback_handler=None)
    agent("And now?")
    assert seen[0] < TURNS
    return manager.compaction


def with_google_adk(stored: Any) -> Any:
    pytest.importorskip("google.adk")
    from google.adk.agents import LlmAgent
    from google.adk.apps.app import App
    from google.adk.events import Event
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from contextfold.integrations.google_adk import STATE, CompactionPlugin

    seen: list[int] = []

    class Double(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            seen.append(len(llm_request.contents))
            yield LlmResponse(content=types.ModelContent("It is so."))

    async def play() -> Any:
        agent = LlmAgent(name="clerk", model=Double(model="double"))
        runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[CompactionPlugin(window=WINDOW)]))
        where = {"app_name": "app", "user_id": "u"}
        session = await runner.session_service.create_session(**where, state={f"{STATE}clerk": stored})
        for turn in range(TURNS):
            for author, content in (("user", types.UserContent(told(turn))), ("clerk", types.ModelContent("Yes."))):
                await runner.session_service.append_event(session, Event(author=author, content=content))
        asked = types.UserContent("And now?")
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=asked):
            pass
        session = await runner.session_service.get_session(**where, session_id=session.id)
        await runner.close()
        return session.state[f"{STATE}clerk"]

    made = asyncio.run(play())
    assert seen[0] < TURNS
    return None if made == stored else made


def with_langgraph(stored: Any) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.graph import START, StateGraph

    from contextfold.integrations.langgraph import CompactionState, Context

    context, seen = Context(Compactor(window=WINDOW)), list[int]()

    def node(state: Any) -> dict[str, Any]:
        prepared = context.prepare(state)
        seen.append(len(prepared.messages))
        return {"messages": [AIMessage("It is so.")], **prepared.update}

    graph = StateGraph(CompactionState).add_node("model", node).add_edge(START, "model").compile()
    messages = [(HumanMessage, AIMessage)[n % 2](told(n)) for n in range(TURNS)]
    state = graph.invoke({"messages": [*messages, HumanMessage("And now?")], "compaction": stored})
    assert seen[0] < TURNS
    return state["compaction"] if state["compaction"] != stored else None


def with_langchain(stored: Any, *, tool: bool = False) -> Any:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from contextfold.integrations.langchain import CompactionMiddleware

    if isinstance(stored, str) and stored.startswith("{") and stored.endswith("}"):
        packed = zlib.compress(f'{{"current": {stored}, "before": null}}'.encode())
        stored = base64.b64encode(packed).decode()
    seen: list[int] = []

    class Double(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **named: Any) -> Any:
            return self

        def _generate(self, messages: Any, *given: Any, **named: Any) -> Any:
            seen.append(len(messages))
            return super()._generate(messages, *given, **named)

    call = {"name": "compact_conversation", "args": {}, "id": "c1"}
    answers = [AIMessage("", tool_calls=[call]), AIMessage("It is so.")] if tool else [AIMessage("It is so.")]
    middleware, config = CompactionMiddleware(window=WINDOW, tool=tool), {"configurable": {"thread_id": "t"}}
    agent = create_agent(Double(messages=iter(answers)), middleware=[middleware], checkpointer=InMemorySaver())
    messages = [(HumanMessage, AIMessage)[n % 2](told(n)) for n in range(TURNS)]
    agent.update_state(config, {"messages": messages, "_contextfold_CompactionMiddleware": stored}, as_node="model")
    agent.invoke({"messages": [HumanMessage("And now?")]}, config)
    assert max(seen) < TURNS
    return middleware.record(agent.get_state(config).values)


FACES = {
    "google_adk": with_google_adk,
    "langchain": with_langchain,
    "langgraph": with_langgraph,
    "pydantic_ai": with_pydantic_ai,
    "strands": with_strands,
    "the model's tool": partial(with_langchain, tool=True),
}


@pytest.mark.parametrize("how", DAMAGED)
@pytest.mark.parametrize("face", FACES)
def test_a_record_that_cannot_be_read_is_as_good_as_none_and_the_log_says_so(
    face: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "contextfold"):
        assert FACES[face](DAMAGED[how](a_record())), "another record takes its place"
    assert "cannot be read, so the whole history is" in caplog.text


def test_a_damaged_record_is_told_once_for_each_conversation(caplog: pytest.LogCaptureFixture) -> None:
    """Its response stays in the history, and is read with each request; where none is due, nothing takes its place."""
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from contextfold.integrations.pydantic_ai import Compaction

    agent = Agent(
        FunctionModel(lambda messages, info: ModelResponse([TextPart("It is so.")])),
        capabilities=[Compaction(window=WINDOW)],
    )

    def talk(conversation: str) -> int:
        history: list[Any] = [ModelRequest.user_text_prompt("Hello."), ModelResponse([TextPart("Yes.")])]
        history[-1].metadata = {"contextfold": "gone"}
        for _ in range(3):
            answered = agent.run_sync("And now?", message_history=history, conversation_id=conversation)
            history = ModelMessagesTypeAdapter.validate_json(answered.all_messages_json())
        return caplog.text.count("cannot be read, so the whole history is")

    with caplog.at_level(logging.WARNING, "contextfold"):
        assert talk("one") == 1
        assert talk("two") == 2


def test_an_earlier_record_of_a_history_stands_in_for_a_damaged_one() -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart

    from contextfold.integrations.pydantic_ai import Compaction

    text = a_record()
    messages = [ModelResponse([TextPart("Yes.")], metadata={"contextfold": said}) for said in (text, text[:90])]
    record = Compaction.record(messages)
    assert record is not None
    assert record.to_json() == text
