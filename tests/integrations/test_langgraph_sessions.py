"""LangGraph graphs on a session: thresholds, increments, the lease, and options of a user."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from contextfold import Compactor, InputError
from contextfold.integrations.langgraph import CompactionNodeState, CompactionState, SessionContext
from contextfold.store import open_store
from contextfold.testing.dict_store import DictStore

OPTIONS = {"upper_threshold": 4_000, "lower_threshold": 2_000, "min_messages": 4, "min_new_messages": 2}


class Graph:
    """A chat on a session. Notes what the model is sent."""

    def __init__(self, store: Any, *, asynchronous: bool = False, **options: Any) -> None:
        self.compactor = Compactor(window=64_000)
        self.options = options or {"options": OPTIONS}
        self.store = store
        self.sent: list[list[AnyMessage]] = []
        self.context = SessionContext(self.session, system="Be brief.")
        graph = StateGraph(CompactionState)
        graph.add_node("agent", self.aagent if asynchronous else self.agent)  # type: ignore[type-var]
        graph.add_edge(START, "agent")
        self.app = graph.compile(checkpointer=InMemorySaver())

    def session(self, thread_id: str) -> Any:
        return self.compactor.session(thread_id, self.store, **self.options)

    def agent(self, state: CompactionState) -> dict[str, Any]:
        return self.answered(self.context.prepare(state))

    async def aagent(self, state: CompactionState) -> dict[str, Any]:
        return self.answered(await self.context.aprepare(state))

    def answered(self, prepared: Any) -> dict[str, Any]:
        self.sent.append(prepared.messages)
        return {"messages": [AIMessage(f"answer {len(self.sent)} " + "word " * 90)], **prepared.update}

    def say(self, text: str, thread: str = "one") -> Any:
        return self.app.invoke({"messages": [HumanMessage(text)]}, config(thread))


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def question(number: int) -> str:
    return f"question {number} " + "word " * 90


def test_thresholds_and_increments_of_the_session_decide(tmp_path: Path) -> None:
    graph = Graph(open_store(f"sqlite:///{tmp_path}/sessions.db"))
    for number in range(60):
        state = graph.say(question(number))
    assert len(state["messages"]) == 120  # the checkpoint has all of them
    session = graph.session("one")
    assert session.state().message_count == 119  # the last answer comes with the next turn
    assert [summary.reason for summary in session.summaries()] == ["tokens:4000"] * len(session.summaries())
    assert len(session.summaries()) > 2
    assert not session.state().is_summarizing
    system, *view = graph.sent[-1]
    assert isinstance(system, SystemMessage)
    assert len(view) < 60
    assert view[-1] is not None
    assert view[-1].content == question(59)
    figures = state["summary_metadata"]
    assert figures["summarized_until"] == session.state().summary_until_index
    assert figures["summary_tokens"] == session.state().summary_tokens
    assert set(figures) == {
        "summary", "summarized_until", "summary_tokens", "created_at", "message_count", "original_tokens",
        "compression_rate",
    }  # fmt: skip


def test_async_graphs_do_the_same_and_threads_are_apart() -> None:
    graph = Graph(DictStore(), asynchronous=True)

    async def talk() -> None:
        for number in range(30):
            for thread in ("one", "two"):
                await graph.app.ainvoke({"messages": [HumanMessage(question(number))]}, config(thread))

    asyncio.run(talk())
    assert graph.session("one").state().message_count == graph.session("two").state().message_count == 59
    assert graph.session("two").state().summary_id is not None


def test_options_of_a_user_hold_from_the_next_turn_on() -> None:
    configured: dict[str, Any] = {}
    graph = Graph(DictStore(), user="anna", get_optimization_config=lambda user: configured)
    for number in range(30):
        graph.say(question(number))
    assert graph.session("one").summaries() == []
    configured |= OPTIONS
    graph.say(question(30))
    assert len(graph.session("one").summaries()) == 1


def test_what_did_not_change_is_the_states_own_message() -> None:
    graph = Graph(DictStore())
    state = graph.say("hello")
    state = graph.say("and again")
    own = {message.id for message in state["messages"]}
    assert all(message.id in own for message in graph.sent[-1][1:])


def test_as_a_node_before_the_model() -> None:
    store, sent = DictStore(), []
    context = SessionContext(lambda thread: Compactor(window=64_000).session(thread, store, options=OPTIONS))

    def call_model(state: CompactionNodeState) -> dict[str, Any]:
        sent.append(state["llm_input_messages"])
        return {"messages": [AIMessage("answer " + "word " * 90)]}

    graph = StateGraph(CompactionNodeState)
    graph.add_node("context", context)
    graph.add_node("call_model", call_model)
    graph.add_edge(START, "context")
    graph.add_edge("context", "call_model")
    app = graph.compile(checkpointer=InMemorySaver())
    for number in range(40):
        state = app.invoke({"messages": [HumanMessage(question(number))]}, config("one"))
    assert len(state["messages"]) == 80
    assert len(sent[-1]) < 40
    assert state["summary_metadata"]["summary_tokens"] > 0


def test_a_thread_that_was_edited_or_forked_is_refused_with_the_way_out() -> None:
    graph = Graph(DictStore())
    graph.say("hello")
    graph.say("and again")
    shorter = {"messages": [HumanMessage("another beginning")]}
    other = Graph(graph.store)
    with pytest.raises(InputError, match=r"the thread was edited or forked\. Give a fork a session of its own"):
        other.app.invoke(shorter, config("one"))


def test_without_a_thread_it_says_what_is_missing() -> None:
    graph = StateGraph(CompactionState)
    context = SessionContext(lambda thread: Compactor().session(thread, DictStore()))
    graph.add_node("agent", lambda state: {**context.prepare(state).update})
    graph.add_edge(START, "agent")
    with pytest.raises(InputError, match="thread_id"):
        graph.compile().invoke({"messages": [HumanMessage("hello")]})
