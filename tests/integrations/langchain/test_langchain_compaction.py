"""``CompactionMiddleware``: the thread keeps everything, the model gets what fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_scripted import SUMMARY, ScriptedModel, calling, problems_of, read_file, talk, worker
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from contextfold import Policy, count_tokens
from contextfold.archive import open_archive
from contextfold.errors import PolicyError, StillTooLong
from contextfold.integrations.langchain import CompactionMade, CompactionMiddleware
from contextfold.integrations.langchain import records as kept_records
from contextfold.integrations.langchain.state import Remembered, latest
from contextfold.passes.question import Proposal
from contextfold.policy import Pins
from contextfold.record.compaction import Compaction

WINDOW = 6_000


def writer(answer: Any = SUMMARY) -> ScriptedModel:
    return ScriptedModel(script=lambda messages, number: answer)


def agent_of(model: ScriptedModel, *middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
    options.setdefault("checkpointer", InMemorySaver())
    options.setdefault("system_prompt", "SYSTEM: be exact.")
    return create_agent(model, [read_file], middleware=list(middleware), **options)


def config_of(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 500}


def ask(agent: Any, question: str, thread: str = "t") -> list[BaseMessage]:
    answered = agent.invoke({"messages": [HumanMessage(question)]}, config_of(thread))
    assert list(answered) == ["messages"], "private state stays private"
    return list(answered["messages"])


def seed(agent: Any, messages: Sequence[BaseMessage], thread: str = "t") -> None:
    """A thread that has these messages already."""
    agent.update_state(config_of(thread), {"messages": list(messages)}, as_node="model")


def test_the_thread_keeps_every_message_and_every_view_fits_and_is_valid() -> None:
    """Through several compactions in a tool loop."""
    model, summaries = ScriptedModel(script=worker(10)), writer()
    agent = agent_of(model, CompactionMiddleware(window=WINDOW, summarizer=summaries))
    for number in range(3):
        thread = ask(agent, f"question {number}")
    assert len(thread) == 66
    assert len(summaries.sent) >= 3
    kinds = [message.type for message in thread]
    assert kinds == (["human", *(["ai", "tool"] * 10), "ai"]) * 3
    for sent in model.sent:
        assert not problems_of(sent)
        assert sent[0].type == "system"
        assert count_tokens(sent) < WINDOW
    newest = next(message for message in reversed(thread) if message.type == "human")
    assert any(message.id == newest.id for message in model.sent[-1]), "the newest request is there word for word"


def test_between_passes_the_prefix_only_grows() -> None:
    """What was sent stays the beginning of what is sent, except right after a pass."""
    model, events = ScriptedModel(script=worker(12)), []
    middleware = CompactionMiddleware(window=WINDOW, on_event=lambda event: events.append(event.name))
    ask(agent_of(model, middleware), "read everything")
    rewritten = sum(
        1
        for before, now in zip(model.sent, model.sent[1:], strict=False)
        if [m.content for m in now[: len(before)]] != [m.content for m in before]
    )
    assert rewritten == events.count("compaction_finished") >= 1


def test_messages_that_need_no_change_are_the_same_objects() -> None:
    """The handler gets the state's own objects."""
    seen: list[tuple[list[Any], list[Any]]] = []

    class Watch(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append((list(request.state["messages"]), list(request.messages)))
            return handler(request)

    agent = agent_of(ScriptedModel(), CompactionMiddleware(window=WINDOW), Watch())
    seed(agent, talk(20))
    ask(agent, "and now?")
    state, view = seen[-1]
    own = {id(message) for message in state}
    changed = [message for message in view if id(message) not in own]
    assert len(view) < len(state)
    assert [message.additional_kwargs for message in changed] == [{"lc_source": "summarization"}]


def test_the_record_in_a_checkpoint_does_not_grow_with_the_history() -> None:
    """Histories of 160 and of 800 messages leave records of the size of one summary."""
    sizes = []
    for turns in (80, 400):
        middleware = CompactionMiddleware(window=WINDOW, summarizer=writer())
        agent = agent_of(ScriptedModel(), middleware)
        seed(agent, talk(turns))
        ask(agent, "and now?")
        state = agent.get_state(config_of()).values
        sizes.append(len(state["_contextfold_CompactionMiddleware"]))
        record = middleware.record(state)
        assert record is not None
        assert record.summary is not None
        assert sizes[-1] < 2 * len(record.summary.text + record.summary.evidence) + 1_000
    assert sizes[1] < 1.5 * sizes[0]


def test_nothing_is_written_where_nothing_changed() -> None:
    middleware = CompactionMiddleware(window=WINDOW)
    agent = agent_of(ScriptedModel(), middleware)
    ask(agent, "hello")
    assert middleware.record(agent.get_state(config_of()).values) is None
    assert "_contextfold_CompactionMiddleware" not in agent.get_state(config_of()).values


class ContextLengthExceeded(Exception):
    """What OpenAI's client raises, by its words."""

    status_code = 400


def too_long() -> ContextLengthExceeded:
    return ContextLengthExceeded(
        "This model's maximum context length is 4000 tokens. However, your messages resulted in 9000 tokens."
    )


def test_a_refusal_for_size_is_answered_by_a_smaller_view_once() -> None:
    """Compacted and sent again, strictly smaller; the record is kept."""
    model = ScriptedModel(script=lambda messages, number: too_long() if number == 0 else "fine")
    middleware = CompactionMiddleware(window=100_000, summarizer=writer())
    agent = agent_of(model, middleware)
    seed(agent, talk(20))
    assert ask(agent, "and now?")[-1].content == "fine"
    first, second = model.sent
    assert sum(len(str(m.content)) for m in second) < sum(len(str(m.content)) for m in first)
    assert middleware.record(agent.get_state(config_of()).values) is not None


def test_a_second_refusal_ends_it() -> None:
    model = ScriptedModel(script=lambda messages, number: too_long())
    agent = agent_of(model, CompactionMiddleware(window=100_000, summarizer=writer()))
    seed(agent, talk(20))
    with pytest.raises(StillTooLong, match="as too long, and this view can be made no smaller"):
        ask(agent, "and now?")
    assert len(model.sent) == 2


@pytest.mark.parametrize("error", [ConnectionError("reset"), RuntimeError("bug")])
def test_other_errors_pass_and_a_paid_summary_is_not_lost(error: Exception) -> None:
    """Three attempts at a model call cost one summary."""
    model, summaries = ScriptedModel(script=lambda messages, number: error if number < 2 else "fine"), writer()
    agent = agent_of(model, CompactionMiddleware(window=WINDOW, summarizer=summaries))
    seed(agent, talk(30))
    for _ in range(2):
        with pytest.raises(type(error)):
            ask(agent, "and now?")
    assert ask(agent, "and now?")[-1].content == "fine"
    assert len(summaries.sent) == 1


def test_a_paid_summary_is_not_lost_in_a_retry_inside_one_run() -> None:
    """A middleware around ours that tries again, with no thread id at all."""

    class Again(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except ConnectionError:
                return handler(request)

    failing = ScriptedModel(script=lambda messages, number: ConnectionError() if number == 0 else "fine")
    summaries = writer()
    agent = agent_of(failing, Again(), CompactionMiddleware(window=WINDOW, summarizer=summaries), checkpointer=None)
    answered = agent.invoke({"messages": [*talk(30), HumanMessage("and now?")]})
    assert answered["messages"][-1].content == "fine"
    assert len(summaries.sent) == 1


def test_a_kept_record_does_not_meet_another_branch_of_the_thread() -> None:
    """A record of a call that failed is not used where the thread went another way."""
    model = ScriptedModel(script=lambda messages, number: ConnectionError() if number == 0 else "fine")
    events: list[str] = []
    middleware = CompactionMiddleware(window=WINDOW, on_event=lambda event: events.append(event.name))
    agent = agent_of(model, middleware)
    seed(agent, talk(30))
    with pytest.raises(ConnectionError):
        ask(agent, "and now?")
    changed = [message.model_copy(update={"id": f"other-{message.id}"}) for message in talk(30)[1:]]
    other = agent_of(model, middleware)
    seed(other, [talk(30)[0], *changed])
    ask(other, "and here?")
    assert "compaction_set_aside" not in events


def test_a_summary_that_fails_leaves_the_view_as_it_is() -> None:
    """The model call goes on with the old view as long as that fits."""
    model = ScriptedModel()
    policy = Policy(trigger=("fraction", 0.5), summary={"retries_on_failure": 0})
    events: list[str] = []
    middleware = CompactionMiddleware(
        window=12_000, policy=policy, summarizer=writer(ValueError("no key")), on_event=lambda e: events.append(e.name)
    )
    agent = agent_of(model, middleware)
    seed(agent, talk(25))
    ask(agent, "and now?")
    assert len(model.sent[-1]) == 52
    assert "summary_failed" in events


def test_the_window_is_that_of_each_requests_model() -> None:
    """The profile of the model decides, not one figure for all."""
    small, large = (ScriptedModel(profile={"max_input_tokens": size}) for size in (5_000, 200_000))
    middleware = CompactionMiddleware()
    for model, compacted in ((small, True), (large, False)):
        agent = agent_of(model, middleware)
        seed(agent, talk(30))
        ask(agent, "and now?")
        assert (len(model.sent[-1]) < 62) is compacted


def test_system_prompt_and_tools_count() -> None:
    """A long system prompt makes the same messages compact."""
    lengths = []
    for prompt in ("Short.", "A rule of the house. " * 600):
        model = ScriptedModel()
        agent = agent_of(model, CompactionMiddleware(window=10_000), system_prompt=prompt)
        seed(agent, talk(20))
        ask(agent, "and now?")
        lengths.append(len(model.sent[-1]))
    assert lengths[0] == 42
    assert lengths[1] < 42


def test_hooks_can_veto_pin_and_save() -> None:
    """What the hook before says holds, and the hook after is told what left."""
    proposals: list[Proposal] = []
    made: list[CompactionMade] = []

    def before(proposal: Proposal) -> Any:
        proposals.append(proposal)
        return False if len(proposals) == 1 else Pins(ids=frozenset({"a3"}))

    model = ScriptedModel()
    middleware = CompactionMiddleware(window=WINDOW, before_compaction=before, after_compaction=made.append)
    agent = agent_of(model, middleware)
    seed(agent, talk(18))
    ask(agent, "first?")
    assert len(model.sent[0]) == 38, "vetoed"
    assert not made
    ask(agent, "second?")
    assert any(message.id == "a3" for message in model.sent[1])
    assert made[0].thread_id == "t"
    assert {message.id for message in made[0].evicted} >= {"a0", "a1", "a2"}
    assert "a3" not in {message.id for message in made[0].evicted}
    assert proposals[0].trigger == "fraction:0.8"
    assert proposals[0].window == WINDOW


def test_hooks_may_be_async() -> None:
    made: list[CompactionMade] = []

    async def before(proposal: Proposal) -> None:
        await anyio.sleep(0)

    async def after(what: CompactionMade) -> None:
        await anyio.sleep(0)
        made.append(what)

    async def run() -> None:
        agent = agent_of(
            ScriptedModel(), CompactionMiddleware(window=WINDOW, before_compaction=before, after_compaction=after)
        )
        await agent.aupdate_state(config_of(), {"messages": talk(30)}, as_node="model")
        await agent.ainvoke({"messages": [HumanMessage("and now?")]}, config_of())

    anyio.run(run)
    assert len(made) == 1


def test_pins_of_the_policy_survive_any_number_of_compactions() -> None:
    """By id, tool or metadata."""
    model = ScriptedModel(script=worker(8))
    pinned = HumanMessage("Never touch the vault.", id="rule", additional_kwargs={"pin": True})
    policy = Policy(pins={"metadata": {"pin": True}})
    agent = agent_of(model, CompactionMiddleware(window=WINDOW, policy=policy))
    seed(agent, [*talk(3), pinned, AIMessage("Understood.", id="ok")])
    for number in range(4):
        ask(agent, f"question {number}")
        assert any(message.id == "rule" for message in model.sent[-1])


def test_instructions_reach_the_summarizer() -> None:
    """Of the middleware in every request, of a manual compaction in that one."""
    summaries = writer()
    middleware = CompactionMiddleware(window=WINDOW, summarizer=summaries, instructions="Name every ticket.")
    agent = agent_of(ScriptedModel(), middleware)
    seed(agent, talk(30))
    ask(agent, "and now?")
    seed(agent, talk(8, start=40))
    middleware.compact(agent, config_of(), instructions="Drop the small talk.")
    said = [str(sent[0].content) for sent in summaries.sent]
    assert len(said) >= 2
    assert all("Name every ticket." in text for text in said)
    assert ["Drop the small talk." in text for text in said] == [False] * (len(said) - 1) + [True]


def test_a_person_can_compact_and_undo() -> None:
    """Undo brings back the very view, and holds until the window is full; it can be undone only once."""
    model, summaries = ScriptedModel(), writer()
    middleware = CompactionMiddleware(window=WINDOW, summarizer=summaries)
    agent = agent_of(model, middleware)
    seed(agent, talk(8))
    assert middleware.undo(agent, config_of()) is False
    ask(agent, "before?")
    result = middleware.compact(agent, config_of())
    assert result.changed
    assert result.tokens_after < result.tokens_before
    assert agent.get_state(config_of()).next == ()
    ask(agent, "after?")
    assert len(model.sent[1]) < len(model.sent[0])
    assert middleware.undo(agent, config_of()) is True
    assert middleware.undo(agent, config_of()) is False
    ask(agent, "again?")
    assert [m.id for m in model.sent[2]][: len(model.sent[0])] == [m.id for m in model.sent[0]]
    seed(agent, talk(10, start=50))
    ask(agent, "above the trigger?")
    assert 0.8 * WINDOW < count_tokens(model.sent[-1]) < WINDOW
    assert len(summaries.sent) == 1, "held"
    seed(agent, talk(8, start=60))
    ask(agent, "above the window?")
    assert len(summaries.sent) == 2


def test_a_thread_in_which_no_node_has_run_can_be_compacted_and_undone() -> None:
    middleware = CompactionMiddleware(window=WINDOW, summarizer=writer())
    agent = agent_of(ScriptedModel(), middleware)
    seed(agent, talk(8))
    assert middleware.compact(agent, config_of()).changed
    assert middleware.record(agent.get_state(config_of()).values) is not None
    assert middleware.undo(agent, config_of())
    assert middleware.record(agent.get_state(config_of()).values) is None


def test_what_a_failed_call_was_made_with_does_not_come_back_behind_an_undo_in_another_process() -> None:
    models = ScriptedModel(script=lambda messages, number: "fine" if number else ConnectionError()), ScriptedModel()
    threads = InMemorySaver()
    one, other = (CompactionMiddleware(window=WINDOW, summarizer=writer()) for _ in models)
    here, there = (agent_of(m, way, checkpointer=threads) for m, way in zip(models, (one, other), strict=True))
    seed(here, talk(20))
    with pytest.raises(ConnectionError):
        ask(here, "and now?")
    assert other.compact(there, config_of()).changed
    assert other.undo(there, config_of())
    assert ask(here, "and now?")[-1].content == "fine"
    assert one.record(here.get_state(config_of()).values) is None


def test_compact_and_undo_have_async_twins() -> None:
    async def run() -> None:
        middleware = CompactionMiddleware(window=WINDOW, summarizer=writer())
        agent = agent_of(ScriptedModel(), middleware)
        await agent.aupdate_state(config_of(), {"messages": talk(8)}, as_node="model")
        assert not await middleware.aundo(agent, config_of())
        assert (await middleware.acompact(agent, config_of(), instructions="Short.")).changed
        assert middleware.record((await agent.aget_state(config_of())).values) is not None
        assert await middleware.aundo(agent, config_of())
        assert middleware.record((await agent.aget_state(config_of())).values) is None

    anyio.run(run)


def test_the_model_can_ask_for_a_compaction() -> None:
    """The tool leaves a request; the next call is sent compacted, with the instructions, and once only."""

    def script(messages: list[BaseMessage], number: int) -> AIMessage:
        if number == 0:
            call = {"name": "compact_conversation", "args": {"instructions": "Keep the plan."}, "id": "c1"}
            return AIMessage("I tidy up.", tool_calls=[call])
        return AIMessage("done")

    model, summaries = ScriptedModel(script=script), writer()
    middleware = CompactionMiddleware(window=WINDOW, summarizer=summaries, tool=True)
    agent = agent_of(model, middleware)
    seed(agent, talk(8))
    thread = ask(agent, "tidy up, please")
    assert thread[-2].content == "The conversation will be compacted before your next step."
    assert len(model.sent[1]) < len(model.sent[0])
    assert "Keep the plan." in str(summaries.sent[0][0].content)
    ask(agent, "and?")
    assert len(summaries.sent) == 1
    schema = middleware.tools[0].tool_call_schema.model_json_schema()  # type: ignore[union-attr]
    assert list(schema["properties"]) == ["instructions"], "nothing injected is shown to the model"


def test_the_model_may_ask_twice_in_one_step() -> None:
    calls = [{"name": "compact_conversation", "args": {}, "id": call_id} for call_id in ("c1", "c2")]
    model, summaries = (
        ScriptedModel(script=lambda messages, n: "done" if n else AIMessage("", tool_calls=calls)),
        writer(),
    )
    agent = agent_of(model, CompactionMiddleware(window=WINDOW, summarizer=summaries, tool=True))
    seed(agent, talk(8))
    assert ask(agent, "tidy up, please")[-1].content == "done"
    assert len(summaries.sent) == 1


def test_what_the_model_asked_for_is_not_paid_for_again_where_the_next_call_fails() -> None:
    def script(messages: list[BaseMessage], number: int) -> Any:
        if number == 0:
            call = {"name": "compact_conversation", "args": {}, "id": "c1"}
            return AIMessage("I tidy up.", tool_calls=[call])
        return ConnectionError("reset") if number < 3 else AIMessage("done")

    summaries = writer()
    middleware = CompactionMiddleware(window=WINDOW, summarizer=summaries, tool=True)
    agent = agent_of(ScriptedModel(script=script), middleware)
    seed(agent, talk(8))
    with pytest.raises(ConnectionError):
        ask(agent, "tidy up, please")
    seed(agent, talk(5, start=50))  # enough for another pass, which no one has asked for
    with pytest.raises(ConnectionError):
        ask(agent, "and?")
    assert ask(agent, "and now?")[-1].content == "done"
    assert len(summaries.sent) == 1


def test_a_request_with_nothing_to_compact_is_forgotten() -> None:
    call = {"name": "compact_conversation", "args": {}, "id": "c1"}
    model = ScriptedModel(
        script=lambda messages, number: AIMessage("", tool_calls=[call]) if number == 0 else AIMessage("done")
    )
    middleware = CompactionMiddleware(window=WINDOW, tool=True)
    agent = agent_of(model, middleware)
    ask(agent, "hello")
    state = agent.get_state(config_of()).values
    assert Remembered.from_text(state["_contextfold_CompactionMiddleware"]).requested is None


class Shelf:
    """A store of records in memory."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def get(self, thread: str) -> str | None:
        return self.texts.get(thread)

    def put(self, thread: str, text: str) -> None:
        self.texts[thread] = text


@pytest.mark.parametrize("is_async", [False, True])
def test_records_may_live_in_a_store(is_async: bool) -> None:
    """Then the state has none, a failed call loses nothing, and compact, undo and the tool work as well."""
    shelf, summaries = Shelf(), writer()
    call = {"name": "compact_conversation", "args": {}, "id": "c1"}
    answers: list[Any] = [ConnectionError(), "fine", AIMessage("", tool_calls=[call]), "tidied"]
    model = ScriptedModel(script=lambda messages, number: answers[number])
    middleware = CompactionMiddleware(window=WINDOW, summarizer=summaries, records=shelf, tool=True)
    agent = agent_of(model, middleware)

    def invoke(question: str) -> Any:
        asked = {"messages": [HumanMessage(question)]}
        if not is_async:
            return agent.invoke(asked, config_of())
        return anyio.run(agent.ainvoke, asked, config_of())

    seed(agent, talk(30))
    with pytest.raises(ConnectionError):
        invoke("and now?")
    assert list(shelf.texts) == ["t"]
    invoke("and now?")
    assert len(summaries.sent) == 1
    assert "_contextfold_CompactionMiddleware" not in agent.get_state(config_of()).values
    seed(agent, talk(5, start=40))
    invoke("tidy up")
    assert len(summaries.sent) == 2
    assert agent.get_state(config_of()).values["_contextfold_CompactionMiddleware"] is None
    current = Remembered.from_text(shelf.texts["t"])
    assert current.can_undo
    assert middleware.undo(agent, config_of())
    assert Remembered.from_text(shelf.texts["t"]).current == current.before
    seed(agent, talk(5, start=50))
    assert middleware.compact(agent, config_of()).changed


class Cabinet:
    """An archive in memory; ``broken`` makes it fail."""

    def __init__(self, broken: BaseException | None = None) -> None:
        self.saved: list[Any] = []
        self.broken = broken

    def save(self, thread_id: str, messages: Sequence[Any]) -> str | None:
        if self.broken:
            raise self.broken
        self.saved += messages
        return f"cabinet:{thread_id}"


def test_an_archive_gets_what_leaves_the_view_each_message_once() -> None:
    cabinet, made = Cabinet(), []
    middleware = CompactionMiddleware(window=WINDOW, archive=cabinet, after_compaction=made.append)
    agent = agent_of(ScriptedModel(script=worker(10)), middleware)
    ask(agent, "one")
    ask(agent, "two")
    ids = [message.id for message in cabinet.saved]
    assert len(made) > 1
    assert len(ids) == len(set(ids))
    assert {what.archived for what in made} == {"cabinet:t"}


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_that_is_a_node_of_another_graph_has_one_record_and_one_file_for_all_its_runs(is_async: bool) -> None:
    """Each of its runs is another task of that graph, here also in another process."""
    shelf, cabinet, saver, summaries, model = Shelf(), Cabinet(), InMemorySaver(), writer(), ScriptedModel()
    named: set[str | None] = set()
    for turn in range(36):
        middleware = CompactionMiddleware(
            window=WINDOW,
            summarizer=summaries,
            records=shelf,
            archive=cabinet,
            after_compaction=lambda made: named.add(made.archived),
        )
        graph = StateGraph(MessagesState)
        graph.add_node("agent", create_agent(model, [], middleware=[middleware]))
        graph.add_edge(START, "agent")
        outer: Any = graph.compile(checkpointer=saver)
        given = {"messages": talk(1, start=turn)}
        anyio.run(outer.ainvoke, given, config_of()) if is_async else outer.invoke(given, config_of())
    rewrites = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(model.sent))
    assert len(summaries.sent) == rewrites
    assert 1 < rewrites < 6
    assert list(shelf.texts) == ["t|agent|h0"]
    assert named == {"cabinet:t|agent|h0"}
    ids = [message.id for message in cabinet.saved]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("config", [{}, {"configurable": {"thread_id": "t"}}], ids=["no thread", "a thread"])
def test_an_agent_without_a_checkpointer_goes_on_with_the_record_of_its_last_run(config: Any) -> None:
    """Whose caller has all messages: with other files in its task at each turn, each turn paid for a summary."""
    summaries, whole = writer(), list[BaseMessage]()
    model = ScriptedModel(script=lambda messages, number: f"answer {number} {'about it all ' * 80}")
    agent = agent_of(model, CompactionMiddleware(window=WINDOW, summarizer=summaries), checkpointer=None)
    for turn in range(40):
        asked = [*whole, HumanMessage(f"question {turn}")]
        asked[0] = HumanMessage(f"<open_files>module_{turn}.py</open_files> Read all.", id="task")
        whole = agent.invoke({"messages": asked}, config)["messages"]
    assert 1 < len(summaries.sent) < 8


def test_sub_agents_that_one_node_runs_side_by_side_have_records_of_their_own() -> None:
    shelf = Shelf()
    agent = create_agent(ScriptedModel(), [], middleware=[CompactionMiddleware(window=WINDOW, records=shelf)])
    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_conditional_edges(
        START, lambda state: [Send("agent", {"messages": talk(30, start=start)}) for start in (0, 100, 200)], ["agent"]
    )
    graph.compile(checkpointer=InMemorySaver()).invoke({"messages": []}, config_of())
    assert sorted(shelf.texts) == ["t|agent|h0", "t|agent|h100", "t|agent|h200"]


@pytest.mark.parametrize("is_in_store", [False, True])
def test_runs_side_by_side_of_an_agent_in_another_graph_leave_the_next_runs_their_record(is_in_store: bool) -> None:
    """LangGraph keeps no private state of such an agent: without this each turn would pay for the same summary."""
    summaries = writer()
    middleware = CompactionMiddleware(window=WINDOW, summarizer=summaries, records=Shelf() if is_in_store else None)
    answer = "answer " + "word " * 150
    agent = create_agent(ScriptedModel(script=lambda messages, number: answer), [], middleware=[middleware])
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": agent.invoke(state)["messages"][-1:]})
    graph.add_conditional_edges(
        START,
        lambda state: [
            Send("agent", {"messages": [*state["messages"], HumanMessage(f"Look at it as {who}.", id=who)]})
            for who in ("a writer", "a judge", "a clerk")
        ],
        ["agent"],
    )
    outer: Any = graph.compile(checkpointer=InMemorySaver())
    for turn in range(30):
        outer.invoke({"messages": [HumanMessage(f"question {turn}", id=f"q{turn}")]}, config_of())
    assert 1 < len(summaries.sent) < 8


@pytest.mark.parametrize("is_async", [False, True])
def test_branches_that_begin_with_the_same_message_each_go_on_with_their_own_record(is_async: bool) -> None:
    """A store has one place for all of them: what another branch put there costs none a summary, and is no news."""

    def branches(records: Shelf | None) -> int:
        def script(messages: list[BaseMessage], number: int) -> Any:
            branch = next(message.id for message in messages if str(message.id).startswith("b"))
            calls[str(branch)] = done = calls.get(str(branch), 0) + 1
            return calling(f"src/{branch}/module_{done}.py", f"call_{branch}_{done}") if done < 24 else f"done {branch}"

        calls: dict[str, int] = {}
        summaries = writer()
        middleware = CompactionMiddleware(
            window=WINDOW, summarizer=summaries, records=records, on_event=lambda event: events.append(event.name)
        )
        graph = StateGraph(MessagesState)
        graph.add_node("agent", create_agent(ScriptedModel(script=script), [read_file], middleware=[middleware]))
        task = HumanMessage("Read the modules.", id="task")
        graph.add_conditional_edges(
            START, lambda state: [Send("agent", {"messages": [task, *talk_of(n)]}) for n in range(3)], ["agent"]
        )
        outer: Any = graph.compile(checkpointer=InMemorySaver())
        given: Any = {"messages": []}
        anyio.run(outer.ainvoke, given, config_of()) if is_async else outer.invoke(given, config_of())
        return len(summaries.sent)

    def talk_of(branch: int) -> list[BaseMessage]:
        return [HumanMessage(f"You have part {branch}.", id=f"b{branch}")]

    events: list[str] = []
    in_state = branches(None)
    assert branches(Shelf()) == in_state > 3
    # A branch that begins behind another's record is told so once.
    assert events.count("compaction_set_aside") <= 2


@pytest.mark.parametrize("is_in_store", [False, True])
def test_a_record_that_an_edited_thread_does_not_fit_is_set_aside_once_and_stays_for_other_branches(
    is_in_store: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each record a thread is read for it, and not at each call."""
    shelf, summaries, events, read = Shelf(), writer(), list[str](), list[int]()
    fits = kept_records.fits

    def counted(record: Any, messages: Sequence[Any]) -> bool:
        read.append(len(messages))
        return fits(record, messages)

    monkeypatch.setattr(kept_records, "fits", counted)
    middleware = CompactionMiddleware(
        window=WINDOW,
        summarizer=summaries,
        records=shelf if is_in_store else None,
        on_event=lambda event: events.append(event.name),
    )
    model = ScriptedModel()
    agent = agent_of(model, middleware)
    seed(agent, talk(20))
    ask(agent, "and now?")
    before = agent.get_state(config_of())
    agent.update_state(config_of(), {"messages": [RemoveMessage(id=f"{who}{n}") for who in "ha" for n in range(3, 16)]})
    for number in range(4):
        ask(agent, f"and then {number}?")
    assert events.count("compaction_set_aside") == 1
    assert len(summaries.sent) == 1
    assert summaries_in(model.sent[-1]) == 0
    assert len(read) <= 1
    agent.invoke({"messages": [HumanMessage("and on the other branch?")]}, before.config)
    assert summaries_in(model.sent[-1]) == 1
    assert len(summaries.sent) == 1


def summaries_in(messages: Sequence[BaseMessage]) -> int:
    return sum(str(message.content).count("SUMMARYTOKEN") for message in messages)


def test_an_archive_that_fails_is_said_and_the_thread_has_everything(caplog: pytest.LogCaptureFixture) -> None:
    middleware = CompactionMiddleware(window=WINDOW, archive=Cabinet(OSError("disk full")))
    agent = agent_of(ScriptedModel(), middleware)
    seed(agent, talk(30))
    assert len(ask(agent, "and now?")) == 62
    assert "disk full" in caplog.text
    interrupted = CompactionMiddleware(window=WINDOW, archive=Cabinet(GraphInterrupt()))
    with pytest.raises(GraphInterrupt):
        interrupted._archived(interrupted._manual(agent.get_state(config_of()), config_of(), ""), [])


def test_an_interrupt_inside_a_model_call_passes_through_and_resumes() -> None:
    """Control flow of LangGraph is neither caught nor taken for a failure."""

    class Approve(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            assert interrupt("go on?") == "yes"
            return handler(request)

    summaries = writer()
    agent = agent_of(ScriptedModel(), CompactionMiddleware(window=WINDOW, summarizer=summaries), Approve())
    seed(agent, talk(30))
    paused = agent.invoke({"messages": [HumanMessage("and now?")]}, config_of())
    assert paused["__interrupt__"][0].value == "go on?"
    resumed = agent.invoke(Command(resume="yes"), config_of())
    assert resumed["messages"][-1].content == "ok"
    assert len(summaries.sent) == 1, "and the summary from before the pause was kept"


def test_a_later_process_goes_on_with_the_record_of_the_state() -> None:
    """Another instance, as after a restart: no summary is paid twice."""
    saver, summaries = InMemorySaver(), writer()
    first = agent_of(ScriptedModel(), CompactionMiddleware(window=WINDOW, summarizer=summaries), checkpointer=saver)
    seed(first, talk(30))
    ask(first, "and now?")
    model = ScriptedModel()
    second = agent_of(model, CompactionMiddleware(window=WINDOW, summarizer=summaries), checkpointer=saver)
    ask(second, "and then?")
    assert len(summaries.sent) == 1
    assert len(model.sent[-1]) < 62


def test_what_is_remembered_survives_its_text() -> None:
    record = Compaction(format="langchain", covers=3, fingerprint="f", fates=())
    for remembered in (
        Remembered(),
        Remembered(record, None, True, False, "Keep it."),
        Remembered(None, record, False, True, ""),
    ):
        assert Remembered.from_text(remembered.to_text()) == remembered
    assert Remembered.from_text(None) == Remembered()
    assert json.dumps(Remembered(record).to_text())
    assert latest("a", None) is None


def test_two_instances_in_one_agent_keep_their_own_records() -> None:
    """Under two names; the inner one works on the view of the outer one."""
    model = ScriptedModel(script=worker(10))
    outer = CompactionMiddleware(window=9_000, name="Outer")
    inner = CompactionMiddleware(window=WINDOW, name="Inner")
    agent = agent_of(model, outer, inner)
    for number in range(4):
        thread = ask(agent, f"question {number}")
    assert len(thread) == 88
    states = [snapshot.values for snapshot in agent.get_state_history(config_of())]
    made = [{record.id for state in states if (record := one.record(state))} for one in (outer, inner)]
    assert all(made)
    assert made[0].isdisjoint(made[1])
    assert not any(problems_of(sent) for sent in model.sent)


class Waiting:
    """An archive and a store of records whose methods nothing would await."""

    async def save(self, thread_id: str, messages: Any) -> None: ...

    def get(self, thread: str) -> str | None: ...

    async def put(self, thread: str, text: str) -> None: ...


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"policy": Policy(), "trigger": ("tokens", 5)}, "give either policy or trigger, not both"),
        ({"trigger": ("pages", 5)}, "unknown unit"),
        ({"window": -1}, "window"),
        ({"summarizer": 42}, "summarizer is 42"),
        ({"on_event": 42}, "on_event is 42"),
        ({"on_event": Waiting().put}, "on_event is async"),
        ({"before_compaction": "veto"}, "before_compaction is 'veto'"),
        ({"after_compaction": []}, "after_compaction"),
        ({"archive": "file:///var/lib/agent"}, "open_archive"),
        ({"records": {}}, "records"),
        ({"instructions": 42}, "instructions is 42"),
        ({"count_text": 42}, "count_text is 42"),
        ({"archive": Waiting()}, "archive has an async save"),
        ({"records": Waiting()}, "records has an async put"),
    ],
)
def test_wrong_settings_are_refused_when_it_is_made(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        CompactionMiddleware(**options)


def test_our_own_archive_has_every_original_before_it_leaves_and_the_model_is_told_where(tmp_path: Path) -> None:
    made: list[CompactionMade] = []
    archive = open_archive(f"file://{tmp_path}")
    model = ScriptedModel(script=worker(10))
    agent = agent_of(model, CompactionMiddleware(window=WINDOW, archive=archive, after_compaction=made.append))
    ask(agent, "one")
    ask(agent, "two")
    assert len(made) > 1
    address = made[-1].archived
    assert address is not None
    assert address in str(model.sent[-1])
    file = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    evicted = [message.text for what in made for message in what.evicted if message.text]
    assert evicted
    assert all(text in file for text in evicted)


@pytest.mark.parametrize("window", [16_000, 1_000_000])
def test_a_trigger_that_is_given_fires_in_every_window(window: int) -> None:
    made: list[Any] = []
    compaction = CompactionMiddleware(window=window, trigger=("tokens", 4_000), after_compaction=made.append)
    agent: Any = create_agent(ScriptedModel(), middleware=[compaction], checkpointer=InMemorySaver())
    for turn in range(20):
        agent.invoke({"messages": talk(1, start=turn)}, {"configurable": {"thread_id": "t"}})
        if made:
            break
    assert 4_000 <= made[0].compaction.tokens_before < 4_500
