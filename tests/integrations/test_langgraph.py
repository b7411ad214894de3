"""Hand-written LangGraph graphs: the checkpoint keeps everything, the model gets the view."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from contextfold import Compaction, Compactor, InputError, Policy, PolicyError
from contextfold.integrations.langgraph import CompactionNodeState, CompactionState, Context, newest, summary_metadata
from effort import crossed

WINDOW = 4_000
NOON = datetime(2026, 1, 20, 12, tzinfo=UTC)


def answer(number: int, words: int = 60) -> AIMessage:
    call = {"name": "look", "args": {"page": number}, "id": f"call-{number}"}
    return AIMessage(f"Looking at page {number}. " + "word " * words, tool_calls=[call])


def result(number: int) -> ToolMessage:
    return ToolMessage(f"page {number} says result-{number} " + "data " * 80, tool_call_id=f"call-{number}")


def context(**options: Any) -> Context:
    return Context.of_window(WINDOW, now=lambda: NOON, **options)


def conversation(turns: int) -> list[AnyMessage]:
    messages: list[AnyMessage] = [HumanMessage("Read all pages and tell me what they say.")]
    for number in range(turns):
        messages += [answer(number), result(number)]
    return messages


def test_a_short_conversation_is_sent_as_it_is() -> None:
    messages = conversation(2)
    prepared = context(system="Be brief.").prepare({"messages": messages})
    assert prepared.update == {}
    assert prepared.messages[0].content == "Be brief."
    assert all(sent is given for sent, given in zip(prepared.messages[1:], messages, strict=True))


def test_a_long_one_becomes_system_then_summary_then_recent() -> None:
    messages = conversation(40)
    prepared = context(system="Be brief.").prepare({"messages": messages})
    system, summary, *recent = prepared.messages
    assert isinstance(system, SystemMessage)
    assert "result-3" in summary.text
    assert recent[-1] is messages[-1]
    assert messages[0] in recent  # the first message of the user
    assert len(recent) < 20


def test_the_metadata_has_the_figures_of_the_summary() -> None:
    prepared = context().prepare({"messages": conversation(40)})
    found = prepared.update["summary_metadata"]
    record = Compaction.from_json(prepared.update["compaction"])
    assert set(found) == {
        "summary",
        "summarized_until",
        "summary_tokens",
        "created_at",
        "message_count",
        "original_tokens",
        "compression_rate",
    }
    assert found["summary"] == prepared.messages[0].text
    assert found["created_at"] == "2026-01-20T12:00:00+00:00"
    assert record.summary is not None
    assert found["message_count"] == len(record.gone()) == record.summary.message_count
    assert found["summarized_until"] == max(record.gone()) + 1
    assert found["compression_rate"] == pytest.approx(1 - found["summary_tokens"] / found["original_tokens"], abs=1e-4)


@pytest.mark.parametrize("system", [3, lambda state: HumanMessage("Be brief.")])
def test_a_system_prompt_that_is_none_is_refused_in_words(system: Any) -> None:
    context = Context.of_window(4_000, system=system)
    with pytest.raises(PolicyError, match="it must be a text, a SystemMessage, or None"):
        context.prepare({"messages": [HumanMessage("hi")]})


def test_without_a_summary_there_is_no_metadata() -> None:
    assert summary_metadata(Compactor(window=WINDOW).compact(conversation(2)), NOON) == {}


def test_the_record_makes_the_next_view_an_extension_of_the_last() -> None:
    ours = context(system=lambda state: f"Now: {len(state['messages'])}")
    state: dict[str, Any] = {"messages": conversation(40)}
    first = ours.prepare(state)
    state |= first.update
    state["messages"] = [*state["messages"], HumanMessage("Go on.")]
    second = context(system=lambda state: f"Now: {len(state['messages'])}").prepare(state)
    assert second.update == {}
    assert [message.text for message in second.messages[1:-1]] == [message.text for message in first.messages[1:]]
    assert second.messages[0].text != first.messages[0].text  # a prompt that changes each turn disturbs nothing


def test_the_state_may_be_any_object_with_the_keys() -> None:
    class State:
        history = conversation(40)
        record = None

    prepared = Context(Compactor(window=WINDOW), messages_key="history", record_key="record").prepare(State())
    assert set(prepared.update) == {"record", "summary_metadata"}


@pytest.mark.parametrize("state", [{"history": conversation(2)}, {}, SimpleNamespace(history=conversation(2))])
def test_a_state_without_the_messages_is_refused_with_the_names_that_it_has(state: Any) -> None:
    """Else a view of no messages would be sent."""
    with pytest.raises(InputError, match=r"the state has no 'messages', it has ('history'|nothing): .*messages_key"):
        context().prepare(state)
    assert context().prepare({"messages": None}).messages == []


def test_instructions_and_a_forced_pass_reach_the_summarizer() -> None:
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        return "Pages were read."

    messages = conversation(12)
    prepared = context(summarizer=summarizer).prepare({"messages": messages}, force=True, instructions="Mind the dates")
    assert prepared.update
    assert asked
    assert all("Mind the dates" in prompt for prompt in asked)


def test_async_nodes_get_the_same_view() -> None:
    messages = conversation(40)
    first = context().prepare({"messages": messages})
    second = asyncio.run(context().aprepare({"messages": messages}))
    assert [m.text for m in second.messages] == [m.text for m in first.messages]
    assert second.update == first.update


def test_parallel_branches_do_not_conflict() -> None:
    assert newest("old", None) == "old"
    assert newest("old", "new") == "new"
    ours = context()
    graph = StateGraph(CompactionNodeState)
    seen: list[int] = []

    def branch(state: CompactionNodeState) -> dict[str, Any]:
        prepared = ours.prepare(state)
        seen.append(len(prepared.messages))
        return dict(prepared.update)

    for name in ("left", "right"):
        graph.add_node(name, branch)
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    end = graph.compile().invoke({"messages": conversation(40)})
    assert len(seen) == 2
    assert end["compaction"]


# ---- whole graphs ----


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        yield saver


def talk(graph: Any, turns: int, config: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for number in range(turns):
        state = graph.invoke({"messages": [HumanMessage(f"question {number} " + "word " * 150)]}, config)
    return state


class Model:
    """Answers in turn and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[list[AnyMessage]] = []
        answers = (AIMessage(f"answer {number} " + "word " * 100) for number in range(1000))
        self.model = GenericFakeChatModel(messages=answers)

    def invoke(self, messages: list[AnyMessage]) -> AIMessage:
        self.sent.append(list(messages))
        return self.model.invoke(messages)


def own_node(model: Model, ours: Context) -> StateGraph[Any]:
    def agent(state: CompactionState) -> dict[str, Any]:
        prepared = ours.prepare(state)
        return {"messages": [model.invoke(prepared.messages)], **prepared.update}

    graph = StateGraph(CompactionState)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    return graph


def node_before(model: Model, ours: Context) -> StateGraph[Any]:
    def agent(state: CompactionNodeState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["llm_input_messages"])]}

    graph = StateGraph(CompactionNodeState)
    graph.add_node("context", ours)
    graph.add_node("agent", agent)
    graph.add_edge(START, "context")
    graph.add_edge("context", "agent")
    return graph


@crossed(build=(own_node, node_before), quick=1)
def test_the_checkpoint_keeps_every_message_and_the_model_gets_the_view(
    build: Callable[[Model, Context], StateGraph[Any]], saver: SqliteSaver
) -> None:
    model, config = Model(), {"configurable": {"thread_id": "one"}}
    graph = build(model, context(system="Be brief.")).compile(checkpointer=saver)
    state = talk(graph, 60, config)
    assert len(state["messages"]) == 120
    assert [m.text.split()[1] for m in state["messages"][::2]] == [str(n) for n in range(60)]
    counter = Compactor(window=WINDOW)
    assert all(counter.compact(sent, format="langchain").tokens_before <= WINDOW for sent in model.sent)
    assert all(sent[-1].text.startswith(f"question {n} ") for n, sent in enumerate(model.sent))
    assert state["summary_metadata"]["message_count"] > 60


@pytest.mark.parametrize("build", [own_node, node_before])
def test_another_process_goes_on_where_the_last_one_stopped(
    build: Callable[[Model, Context], StateGraph[Any]], saver: SqliteSaver
) -> None:
    config = {"configurable": {"thread_id": "one"}}
    first, second = Model(), Model()
    talk(build(first, context()).compile(checkpointer=saver), 30, config)
    state = (
        build(second, context()).compile(checkpointer=saver).invoke({"messages": [HumanMessage("And now?")]}, config)
    )
    assert len(state["messages"]) == 62
    (sent,) = second.sent
    same = [message.text for message in first.sent[-1]]
    assert [message.text for message in sent][: len(same)] == same


def test_a_checkpoint_grows_by_the_record_and_not_by_the_view(saver: SqliteSaver) -> None:
    config = {"configurable": {"thread_id": "one"}}
    graph = node_before(Model(), context()).compile(checkpointer=saver)
    talk(graph, 40, config)
    values = graph.get_state(config).values
    assert "llm_input_messages" not in values
    stored = saver.conn.execute("select sum(length(checkpoint)), sum(length(metadata)) from checkpoints").fetchone()
    writes = saver.conn.execute("select channel, sum(length(value)) from writes group by channel").fetchall()
    assert stored[0]
    assert "llm_input_messages" not in dict(writes)
    assert len(values["compaction"]) < WINDOW * 4


def test_an_interrupt_between_the_nodes_loses_nothing(saver: SqliteSaver) -> None:
    config = {"configurable": {"thread_id": "one"}}
    model, ours = Model(), context()

    def approve(state: CompactionNodeState) -> dict[str, Any]:
        interrupt("send it?")
        return {"messages": [model.invoke(ours.prepare(state).messages)]}

    graph = StateGraph(CompactionNodeState)
    graph.add_node("context", ours)
    graph.add_node("agent", approve)
    graph.add_edge(START, "context")
    graph.add_edge("context", "agent")
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({"messages": conversation(40)}, config)
    assert not model.sent
    end = compiled.invoke(Command(resume="yes"), config)
    assert len(model.sent[0]) < 30
    assert len(end["messages"]) == 82


def test_it_is_the_hook_of_a_prebuilt_agent(saver: SqliteSaver) -> None:
    prebuilt = pytest.importorskip("langgraph.prebuilt")

    class AgentState(CompactionState):
        remaining_steps: int

    model = GenericFakeChatModel(messages=(AIMessage(f"answer {n} " + "word " * 100) for n in range(99)))
    with pytest.warns(DeprecationWarning, match="create_react_agent"):
        agent = prebuilt.create_react_agent(
            model, [], pre_model_hook=context(), state_schema=AgentState, checkpointer=saver
        )
    state = talk(agent, 30, {"configurable": {"thread_id": "one"}})
    assert len(state["messages"]) == 60
    assert state["summary_metadata"]["message_count"] > 20


def test_the_policy_of_a_compactor_is_obeyed() -> None:
    ours = Context(Compactor(window=WINDOW, policy=Policy(trigger=("messages", 5))))
    assert ours.prepare({"messages": conversation(6)}).update


@pytest.mark.parametrize("schema", [CompactionState, CompactionNodeState])
def test_to_a_type_checker_a_graph_is_called_with_messages_alone(schema):
    """The other keys are what the graph writes: in a strict program ``invoke({"messages": [...]})`` was an error."""
    hints = get_type_hints(schema, include_extras=True)
    assert [name for name, hint in hints.items() if get_origin(hint) is not NotRequired] == ["messages"]
