"""``Context`` in graphs of every make: any state, sub-graphs, the functional API, streams, failures, edits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_scripted import SUMMARY, ScriptedModel, is_ours, problems_of, talk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel, Field

from contextfold.integrations.langgraph import CompactionNodeState, CompactionState, Context
from contextfold.record.compaction import Compaction

WINDOW = 3_000
THREAD: Any = {"configurable": {"thread_id": "t"}}


def writer() -> ScriptedModel:
    return ScriptedModel(script=lambda messages, number: SUMMARY)


def graph_of(state: Any, context: Context, model: ScriptedModel, **options: Any) -> Any:
    """One node that calls the model with the view."""

    def node(state: Any) -> dict[str, Any]:
        prepared = context.prepare(state)
        return {context.messages_key: [model.invoke(prepared.messages)], **prepared.update}

    graph = StateGraph(state)
    graph.add_node("agent", node)
    graph.add_edge(START, "agent")
    return graph.compile(**options)


def rounds(app: Any, key: str = "messages", number: int = 10) -> Any:
    for turn in range(number):
        state = app.invoke({key: talk(2, start=2 * turn)}, THREAD)
    return state


def goes_well(model: ScriptedModel, scribe: ScriptedModel) -> bool:
    """Two summaries in ten rounds, valid views, and each an extension of the last one, but for these two."""
    rewrites = sum(later[: len(earlier)] != earlier for earlier, later in zip(model.sent, model.sent[1:], strict=False))
    return len(scribe.sent) == rewrites == 2 and not any(problems_of(sent) for sent in model.sent)


class Chat(TypedDict):
    chat: Annotated[list[Any], add_messages]
    record: str
    figures: dict[str, Any]


def test_the_state_may_call_its_keys_as_it_likes() -> None:
    model, scribe = ScriptedModel(), writer()
    keys = {"messages_key": "chat", "record_key": "record", "metadata_key": "figures"}
    context = Context.of_window(WINDOW, summarizer=scribe, **keys)
    state = rounds(graph_of(Chat, context, model, checkpointer=InMemorySaver()), "chat")
    assert len(state["chat"]) == 50
    assert state["figures"]["message_count"] > 20
    assert goes_well(model, scribe)


@dataclass
class AsDataclass:
    messages: Annotated[list[Any], add_messages] = field(default_factory=list)
    compaction: str | None = None
    summary_metadata: dict[str, Any] | None = None


class AsModel(BaseModel):
    messages: Annotated[list[Any], add_messages] = Field(default_factory=list)
    compaction: str | None = None
    summary_metadata: dict[str, Any] | None = None


@pytest.mark.parametrize("state", [AsDataclass, AsModel, CompactionState])
def test_the_state_may_be_of_any_make(state: Any) -> None:
    model, scribe = ScriptedModel(), writer()
    app = graph_of(state, Context.of_window(WINDOW, summarizer=scribe), model, checkpointer=InMemorySaver())
    assert len(rounds(app)["messages"]) == 50
    assert goes_well(model, scribe)


def test_a_subgraph_shares_the_record_with_its_parent() -> None:
    model, scribe = ScriptedModel(), writer()
    inner = graph_of(CompactionState, Context.of_window(WINDOW, summarizer=scribe), model)
    outer = StateGraph(CompactionState)
    outer.add_node("inner", inner)
    outer.add_edge(START, "inner")
    assert rounds(outer.compile(checkpointer=InMemorySaver()))["compaction"]
    assert goes_well(model, scribe)


def test_the_functional_api_keeps_the_record_in_what_it_saves() -> None:
    model, scribe = ScriptedModel(), writer()
    context = Context.of_window(WINDOW, summarizer=scribe)

    @task
    def answer(messages: list[Any]) -> AIMessage:
        return model.invoke(messages)

    @entrypoint(checkpointer=InMemorySaver())
    def chat(new: list[Any], *, previous: Any = None) -> Any:
        state = previous or {"messages": []}
        messages = add_messages(state["messages"], new)
        prepared = context.prepare({**state, "messages": messages})
        answered = answer(prepared.messages).result()
        saved = {**state, **prepared.update, "messages": add_messages(messages, [answered])}
        return entrypoint.final(value=answered, save=saved)

    for turn in range(10):
        chat.invoke(talk(2, start=2 * turn), THREAD)
    assert goes_well(model, scribe)


def test_a_state_without_the_key_costs_a_warning_and_no_summary_at_each_step(caplog: pytest.LogCaptureFixture) -> None:
    """LangGraph drops what a state has no key for, without a word."""
    model, scribe = ScriptedModel(), writer()
    context = Context.of_window(WINDOW, summarizer=scribe)
    with caplog.at_level(logging.WARNING, logger="contextfold"):
        rounds(graph_of(MessagesState, context, model, checkpointer=InMemorySaver()))
    assert goes_well(model, scribe)
    warnings = [record.message for record in caplog.records]
    assert len(warnings) == 1
    assert "give the state that key, as CompactionState has it" in warnings[0]


def test_a_summary_that_is_paid_survives_a_node_that_fails() -> None:
    """Three attempts at the model, one summary; the state has its record after the one that succeeds."""
    scribe = writer()
    model = ScriptedModel(script=lambda messages, number: ConnectionError("gone") if number < 2 else "ok")
    app = graph_of(CompactionState, Context.of_window(WINDOW, summarizer=scribe), model, checkpointer=InMemorySaver())
    app.update_state(THREAD, {"messages": talk(20)})
    for _ in range(2):
        with pytest.raises(ConnectionError):
            app.invoke({"messages": [HumanMessage("go on", id="q")]}, THREAD)
    state = app.invoke({"messages": [HumanMessage("go on", id="q")]}, THREAD)
    assert len(scribe.sent) == 1
    assert state["compaction"]
    assert state["summary_metadata"]["message_count"] >= 20
    assert app.invoke({"messages": [HumanMessage("and on")]}, THREAD)["compaction"] == state["compaction"]


def test_a_record_that_does_not_fit_an_edited_thread_leaves_the_state(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel()
    app = graph_of(CompactionState, Context.of_window(WINDOW, summarizer=writer()), model, checkpointer=InMemorySaver())
    app.invoke({"messages": talk(20)}, THREAD)
    state = app.get_state(THREAD).values
    gone = [RemoveMessage(id=message.id) for message in state["messages"][2:36]]
    app.update_state(THREAD, {"messages": gone})
    for number in range(3):
        state = app.invoke({"messages": [HumanMessage(f"question {number}")]}, THREAD)
    assert not state["compaction"]
    assert state["summary_metadata"] == {}
    assert len([record for record in caplog.records if "set aside" in record.message]) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_a_fork_from_before_the_newest_pass_goes_on_with_the_record_of_its_own_checkpoint(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The newest record, which this process still knows, was made from messages that the fork has changed."""
    scribe, model = writer(), ScriptedModel()
    context = Context.of_window(WINDOW, summarizer=scribe)

    async def node(state: Any) -> dict[str, Any]:
        prepared = await context.aprepare(state)
        return {"messages": [await model.ainvoke(prepared.messages)], **prepared.update}

    options: Any = {"checkpointer": InMemorySaver()}
    if is_async:
        app: Any = StateGraph(CompactionState).add_node("agent", node).add_edge(START, "agent").compile(**options)
    else:
        app = graph_of(CompactionState, context, model, **options)

    def said(messages: list[Any], config: Any) -> Any:
        given = {"messages": messages}
        return asyncio.run(app.ainvoke(given, config)) if is_async else app.invoke(given, config)

    turn = 0
    while len(scribe.sent) < 2:
        before = app.get_state(THREAD)
        said(talk(2, start=2 * turn), THREAD)
        turn += 1
    own, last = (Compaction.from_json(state.values["compaction"]) for state in (before, app.get_state(THREAD)))
    thread = before.values["messages"]
    assert own.covers < len(thread) <= last.covers
    changed = thread[-1]
    fork = app.update_state(before.config, {"messages": [changed.model_copy(update={"content": "Changed."})]})
    state = said([HumanMessage("and here?")], fork)
    assert not [record for record in caplog.records if "set aside" in record.message]
    record = Compaction.from_json(state["compaction"])
    assert own.id in (record.id, record.parent)


def test_no_stream_of_a_graph_shows_the_summary_call() -> None:
    """Not in ``messages``, not in ``astream_events``; the model's own answer is there."""
    model = ScriptedModel(script=lambda messages, number: "the real answer")
    app = graph_of(CompactionState, Context.of_window(WINDOW, summarizer=(scribe := writer())), model)
    shown = [str(message.content) for message, _ in app.stream({"messages": talk(20)}, stream_mode="messages")]
    assert "".join(shown) == "the real answer"

    async def events() -> list[str]:
        streamed = app.astream_events({"messages": talk(20, start=50)}, version="v2")
        answers = ("on_chat_model_stream", "on_chat_model_end")
        return [
            str(event["data"].get("chunk", event["data"].get("output")))
            async for event in streamed
            if event["event"] in answers
        ]

    heard = asyncio.run(events())
    assert len(scribe.sent) == 2
    assert heard
    assert not any("SUMMARYTOKEN" in one for one in heard)


@pytest.mark.parametrize("system", [None, "Be exact.", lambda state: f"Turn {len(state['messages'])}."])
def test_the_node_before_the_model_shows_nothing_in_the_message_stream(system: str | Callable[..., str] | None) -> None:
    """Its view is on its way to the model: neither the summary message nor the system prompt is an answer."""
    model = ScriptedModel(script=lambda messages, number: "the real answer")
    context = Context.of_window(WINDOW, summarizer=writer(), system=system)
    graph = StateGraph(CompactionNodeState)
    graph.add_node("context", context)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["llm_input_messages"])]})
    graph.add_edge(START, "context")
    graph.add_edge("context", "agent")
    app = graph.compile(checkpointer=InMemorySaver())
    app.update_state(THREAD, {"messages": talk(20)}, as_node="agent")
    shown = app.stream({"messages": [HumanMessage("and now?")]}, THREAD, stream_mode="messages")
    assert "".join(str(message.content) for message, _ in shown if message.type != "human") == "the real answer"
    assert any(is_ours(message) for message in model.sent[0])
    assert model.sent[0][0].type == ("human" if system is None else "system")


def test_no_stream_shows_it_in_async_nodes_either() -> None:
    model = ScriptedModel(script=lambda messages, number: "the real answer")
    context = Context.of_window(WINDOW, summarizer=writer())
    graph = StateGraph(CompactionNodeState)
    graph.add_node("context", context)

    async def agent(state: CompactionNodeState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["llm_input_messages"])]}

    graph.add_node("agent", agent)
    graph.add_edge(START, "context")
    graph.add_edge("context", "agent")
    app = graph.compile()

    async def run() -> list[str]:
        streamed = app.astream({"messages": talk(20)}, stream_mode="messages")
        return [str(message.content) async for message, _ in streamed]

    assert "".join(asyncio.run(run())) == "the real answer"
