"""Whoever streams an agent never sees a summary being written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_scripted import SUMMARY, ScriptedModel, read_file, talk
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
from contextfold.integrations.langchain.hidden import hidden_config, hidden_from_streams
from effort import crossed

MARK = "SUMMARYTOKEN"
MODES = ["messages", "updates", "values", "custom", "tasks", "checkpoints", "debug"]


def model_of_summaries() -> ScriptedModel:
    return ScriptedModel(script=lambda messages, number: SUMMARY)


def calling_inside(model: ScriptedModel) -> Callable[[str], str]:
    """A user's function that asks a model by itself, and streams it."""
    return lambda prompt: "".join(str(chunk.text) for chunk in model.stream(prompt))


def acalling_inside(model: ScriptedModel) -> Callable[[str], Any]:
    async def summarize(prompt: str) -> str:
        return "".join([str(chunk.text) async for chunk in model.astream(prompt)])

    return summarize


WAYS = {"model": lambda model: model, "function": calling_inside, "async function": acalling_inside}


def compacting(summarizer: Any) -> Any:
    return CompactionMiddleware(window=6_000, summarizer=summarizer)


def summarizing(summarizer: Any) -> Any:
    return SummarizationMiddleware(summarizer, trigger=("messages", 50), evidence=False)


def agent_with(middleware: Any) -> Any:
    model = ScriptedModel(script=lambda messages, number: "Visible answer in words.")
    agent = create_agent(model, [read_file], middleware=[middleware], checkpointer=InMemorySaver())
    agent.update_state(config(), {"messages": talk(30)}, as_node="model")
    return agent


def config(**more: Any) -> Any:
    return {"configurable": {"thread_id": "t"}, **more}


QUESTION = {"messages": [HumanMessage("and now?")]}


def shown_by(event: Any) -> str:
    """An event without the input of a model call: the view that the agent's own model gets has the summary in it."""
    return str({key: value for key, value in event["data"].items() if key != "input"})


@crossed(way=WAYS, quick=1)
def test_no_stream_mode_shows_the_summary_call(way: str) -> None:
    """Not its tokens, not its text, for a model and for a function that asks one."""
    summaries = model_of_summaries()
    agent = agent_with(compacting(WAYS[way](summaries)))
    chunks = list(agent.stream(QUESTION, config(), stream_mode=MODES))
    assert len(summaries.sent) == 1, "a summary was written meanwhile"
    assert not [chunk for chunk in chunks if MARK in str(chunk)]
    shown = "".join(str(chunk[0].content) for mode, chunk in chunks if mode == "messages")
    assert shown == "Visible answer in words."


@crossed(way=WAYS, quick=1)
def test_no_async_stream_mode_shows_it_either(way: str) -> None:
    summaries = model_of_summaries()
    agent = agent_with(compacting(WAYS[way](summaries)))

    async def run() -> list[Any]:
        return [chunk async for chunk in agent.astream(QUESTION, config(), stream_mode=MODES)]

    chunks = anyio.run(run)
    assert len(summaries.sent) == 1
    assert not [chunk for chunk in chunks if MARK in str(chunk)]


@crossed(way=WAYS, quick=1)
def test_no_event_shows_the_summary_call(way: str) -> None:
    """``astream_events``, which hears of every model by its callbacks."""
    summaries = model_of_summaries()
    agent = agent_with(compacting(WAYS[way](summaries)))

    async def run() -> list[Any]:
        return [event async for event in agent.astream_events(QUESTION, config(), version="v2")]

    events = anyio.run(run)
    assert len(summaries.sent) == 1
    assert not [event for event in events if MARK in shown_by(event)]
    assert sum(event["event"] == "on_chat_model_start" for event in events) == 1


def script_of_both(messages: list[BaseMessage], number: int) -> str:
    """The agent's own model: what it answers, and what it writes as summary."""
    return f"<summary>{SUMMARY}</summary>" if "Pause the task" in str(messages[-1].content) else "Visible answer."


@pytest.mark.parametrize("is_async", [False, True])
def test_no_stream_shows_the_summary_that_the_agents_own_model_writes(is_async: bool) -> None:
    model = ScriptedModel(script=script_of_both)
    middleware = CompactionMiddleware(window=20_000, trigger=("tokens", 2_500), summarizer="same")
    agent = create_agent(model, [read_file], middleware=[middleware], checkpointer=InMemorySaver())
    agent.update_state(config(), {"messages": talk(30)}, as_node="model")

    async def run() -> list[Any]:
        return [chunk async for chunk in agent.astream(QUESTION, config(), stream_mode=MODES)]

    chunks = anyio.run(run) if is_async else list(agent.stream(QUESTION, config(), stream_mode=MODES))
    assert len(model.sent) == 2, "a summary was written meanwhile"
    assert not [chunk for chunk in chunks if MARK in str(chunk)]
    assert "".join(str(chunk[0].content) for mode, chunk in chunks if mode == "messages") == "Visible answer."


class Found(BaseModel):
    """Where it is."""

    path: str


def test_an_agent_that_answers_in_a_schema_asks_for_summaries_in_words() -> None:
    """Its requests force a call of a tool; those for a summary have neither tools nor schema."""
    asked: list[list[BaseMessage]] = []

    def script(messages: list[BaseMessage], number: int) -> Any:
        if "<conversation>" in str(messages[-1].content):
            asked.append(messages)
            return SUMMARY
        return AIMessage("", tool_calls=[{"name": "Found", "args": {"path": "a.py"}, "id": f"found_{number}"}])

    middleware = CompactionMiddleware(window=20_000, trigger=("tokens", 2_500), summarizer="same")
    model = ScriptedModel(script=script)
    agent = create_agent(
        model,
        [read_file],
        middleware=[middleware],
        checkpointer=InMemorySaver(),
        response_format=ToolStrategy(Found),
        system_prompt="Find it.",
    )
    agent.update_state(config(), {"messages": talk(30)}, as_node="model")
    out = agent.invoke(QUESTION, config())
    assert out["structured_response"] == Found(path="a.py")
    assert [len(messages) for messages in asked] == [1], "neither a view nor a system prompt"
    assert MARK in str(model.sent[-1])


@pytest.mark.parametrize("is_async", [False, True])
def test_of_the_drop_in_only_the_marked_message_of_the_thread_is_seen(is_async: bool) -> None:
    """The summary message is a part of the thread; it is in the updates and values, never in the message stream."""
    summaries = model_of_summaries()
    agent = agent_with(summarizing(summaries))

    async def run() -> list[Any]:
        return [chunk async for chunk in agent.astream(QUESTION, config(), stream_mode=["messages", "updates"])]

    chunks = anyio.run(run) if is_async else list(agent.stream(QUESTION, config(), stream_mode=["messages", "updates"]))
    assert summaries.sent
    assert not [chunk for mode, chunk in chunks if mode == "messages" and MARK in str(chunk)]
    updates = [chunk for mode, chunk in chunks if mode == "updates" and MARK in str(chunk)]
    assert [list(update) for update in updates] == [["SummarizationMiddleware.before_model"]]
    messages = updates[0]["SummarizationMiddleware.before_model"]["messages"]
    told = [message for message in messages if MARK in str(message.content)]
    assert [message.additional_kwargs for message in told] == [{"lc_source": "summarization"}]
    assert not [message for message in messages if isinstance(message, AIMessage) and MARK in str(message.content)]


def test_events_of_the_drop_in_have_no_summary_call() -> None:
    summaries = model_of_summaries()
    agent = agent_with(summarizing(summaries))

    async def run() -> list[Any]:
        return [event async for event in agent.astream_events(QUESTION, config(), version="v2")]

    events = [event for event in anyio.run(run) if event["event"].startswith("on_chat_model")]
    assert summaries.sent
    assert not [event for event in events if MARK in shown_by(event)]
    assert sum(event["event"] == "on_chat_model_start" for event in events) == 1


def test_a_summary_that_is_due_only_with_the_tools_is_hidden_too() -> None:
    """Made around the model call, for that first call already; the state is what ``before_model`` would leave."""
    summaries = model_of_summaries()
    model = ScriptedModel(script=lambda messages, number: "Visible answer.")
    middleware = SummarizationMiddleware(summaries, trigger=("tokens", 9_000), keep=("messages", 6), evidence=False)
    agent = create_agent(
        model, [read_file], system_prompt="A rule. " * 900, middleware=[middleware], checkpointer=InMemorySaver()
    )
    agent.update_state(config(), {"messages": talk(28)}, as_node="model")
    assert 6_000 < middleware.token_counter(talk(28)) < 9_000
    chunks = list(agent.stream(QUESTION, config(), stream_mode="messages"))
    assert summaries.sent
    assert not [chunk for chunk in chunks if MARK in str(chunk)]
    assert len(model.sent[0]) == 8, "system prompt, summary and six messages"
    thread: list[BaseMessage] = agent.get_state(config()).values["messages"]
    assert [message.content for message in thread[:-1]] == [message.content for message in model.sent[0][1:]]
    assert thread[-1].content == "Visible answer."
    assert agent.get_state(config()).values["_contextfold_sending"][0] > 1_800

    async def again() -> int:
        await agent.aupdate_state(config(), {"messages": talk(26, start=50)}, as_node="model")
        await agent.ainvoke(QUESTION, config())
        return len(model.sent[-1])

    assert anyio.run(again) == 8


def test_in_async_agents_too_a_summary_may_be_due_only_with_the_tools() -> None:
    summaries = model_of_summaries()
    model = ScriptedModel()
    middleware = SummarizationMiddleware(summaries, trigger=("tokens", 9_000), keep=("messages", 6))
    agent = create_agent(model, [], system_prompt="A rule. " * 900, middleware=[middleware])
    anyio.run(agent.ainvoke, {"messages": [*talk(28), HumanMessage("and now?")]})
    assert len(model.sent[0]) == 8


class Tracer(BaseCallbackHandler):
    """What a tracing product hangs into a run."""

    def __init__(self) -> None:
        self.models = 0

    def on_chat_model_start(self, *arguments: Any, **options: Any) -> None:
        self.models += 1


def test_tracing_sees_the_summary_call_as_before() -> None:
    """Only what feeds streams is left out."""
    tracer, summaries = Tracer(), model_of_summaries()
    agent = agent_with(compacting(summaries))
    list(agent.stream(QUESTION, config(callbacks=[tracer]), stream_mode="messages"))
    assert tracer.models == 2


def test_quiet_configuration_leaves_the_given_one_alone() -> None:
    tracer = Tracer()
    around: Any = {"callbacks": [tracer], "tags": ["mine"], "metadata": {"who": "me"}}
    quiet = hidden_config(around)
    assert quiet["callbacks"] == [tracer]
    assert quiet["tags"] == ["mine", "nostream"]
    assert quiet["metadata"]["lc_source"] == "summarization"
    assert around == {"callbacks": [tracer], "tags": ["mine"], "metadata": {"who": "me"}}
    with hidden_from_streams() as aloud, aloud():
        assert hidden_config(None)["callbacks"] == []
