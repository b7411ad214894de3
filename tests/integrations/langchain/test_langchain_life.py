"""What befalls a thread in use: approvals, edits, rewinds, other models, other middleware, two runs at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    ModelRequest,
    ModelRetryMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from langchain.agents.middleware.types import ExtendedModelResponse, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langchain_scripted import SUMMARY, ScriptedModel, is_ours, problems_of, read_file, talk, worker
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from contextfold import InputError, count_tokens
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
from contextfold.integrations.langchain.paid import PaidFolds
from contextfold.passes.question import Proposal

WINDOW = 3_000
THREAD: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 200}


class Case:
    """An agent on a small window, its model, the model that writes summaries, and the events of both."""

    def __init__(
        self,
        script: Callable[[list[BaseMessage], int], Any] = lambda messages, number: f"answer {number}",
        *middleware: Any,
        summarizer: Any = None,
        tools: Any = (read_file,),
        window: int = WINDOW,
        **options: Any,
    ) -> None:
        self.model = ScriptedModel(script=script)
        self.writer = ScriptedModel(script=lambda messages, number: SUMMARY)
        self.events: list[str] = []
        self.compaction = CompactionMiddleware(
            window=window,
            summarizer=summarizer or self.writer,
            on_event=lambda event: self.events.append(event.name),
            before_compaction=options.pop("before_compaction", None),
        )
        self.agent = create_agent(
            self.model, list(tools), middleware=[*middleware, self.compaction], checkpointer=InMemorySaver(), **options
        )

    def ask(self, *messages: Any, config: Any = THREAD) -> list[Any]:
        given = [HumanMessage(message) if isinstance(message, str) else message for message in messages]
        answered: list[Any] = self.agent.invoke({"messages": given}, config)["messages"]
        return answered

    def seed(self, messages: list[BaseMessage]) -> None:
        self.agent.update_state(THREAD, {"messages": messages}, as_node="model")

    def change(self, *messages: BaseMessage) -> None:
        self.agent.update_state(THREAD, {"messages": list(messages)})

    @property
    def thread(self) -> list[Any]:
        return list(self.agent.get_state(THREAD).values["messages"])

    def views_are_valid(self) -> bool:
        return not any(problems_of(sent) for sent in self.model.sent)


# ---- approvals ----


def two_calls(number: int) -> AIMessage:
    calls = [{"name": "read_file", "args": {"path": f"{name}.py"}, "id": f"{name}{number}"} for name in "ab"]
    return AIMessage("I read two files.", tool_calls=calls)


def test_calls_that_wait_for_an_approval_survive_a_compaction() -> None:
    """Approved and rejected calls, and calls that no one answers because the person says something else."""
    case = Case(
        lambda messages, number: two_calls(number) if number in (0, 2) else f"done {number}",
        HumanInTheLoopMiddleware(interrupt_on={"read_file": True}),
    )
    case.seed(talk(20))
    assert "__interrupt__" in case.agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    decisions = [{"type": "approve"}, {"type": "reject", "message": "not that one"}]
    answered = case.agent.invoke(Command(resume={"decisions": decisions}), THREAD)["messages"]
    assert answered[-1].content == "done 1"
    assert "__interrupt__" in case.agent.invoke({"messages": [HumanMessage("again")]}, THREAD)
    assert case.ask("forget that")[-1].content == "done 3"
    assert case.views_are_valid()
    assert len(case.writer.sent) == 1


def test_one_of_two_parallel_calls_waits_for_a_person() -> None:
    """The other one has its result already; both are in the view once the run goes on."""

    @tool
    def confirm(question: str) -> str:
        """Ask the person."""
        return str(interrupt(question))

    calls = [
        {"name": "read_file", "args": {"path": "a.py"}, "id": "c1"},
        {"name": "confirm", "args": {"question": "Delete?"}, "id": "c2"},
    ]
    case = Case(
        lambda messages, number: AIMessage("Both.", tool_calls=calls) if number == 0 else "done",
        tools=(read_file, confirm),
    )
    case.seed(talk(20))
    case.ask("go")
    assert case.agent.invoke(Command(resume="yes"), THREAD)["messages"][-1].content == "done"
    assert [message.content for message in case.model.sent[-1] if isinstance(message, ToolMessage)][1] == "yes"
    assert case.views_are_valid()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_person_cannot_compact_or_undo_in_the_middle_of_a_step(is_async: bool) -> None:
    """A change of the state would drop the question, and the tool beside it would run twice."""
    paid: list[str] = []

    @tool
    def pay(invoice: str) -> str:
        """Pay an invoice."""
        paid.append(invoice)
        return "paid"

    @tool
    def confirm(question: str) -> str:
        """Ask the person."""
        return str(interrupt(question))

    calls = [
        {"name": "pay", "args": {"invoice": "7"}, "id": "c1"},
        {"name": "confirm", "args": {"question": "Send?"}, "id": "c2"},
    ]
    case = Case(
        lambda messages, number: AIMessage("Both.", tool_calls=calls) if not number else "done", tools=(pay, confirm)
    )
    case.seed(talk(20))
    case.agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    written = len(case.writer.sent)

    def compact() -> Any:
        way = case.compaction
        return asyncio.run(way.acompact(case.agent, THREAD)) if is_async else way.compact(case.agent, THREAD)

    def undo() -> Any:
        way = case.compaction
        return asyncio.run(way.aundo(case.agent, THREAD)) if is_async else way.undo(case.agent, THREAD)

    assert written, "there is something to undo"
    for change in (compact, undo):
        with pytest.raises(InputError, match="waits in the middle of a step"):
            change()
    assert len(case.writer.sent) == written
    assert [found.value for found in case.agent.get_state(THREAD).interrupts] == ["Send?"]
    assert case.agent.invoke(Command(resume="yes"), THREAD)["messages"][-1].content == "done"
    assert paid == ["7"]
    assert case.compaction.compact(case.agent, THREAD) is not None


# ---- edits and rewinds ----


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_a_record_goes_with_the_history_it_was_made_from(change: str) -> None:
    """Someone deletes or edits a message that the summary covers: all is read again, once, and said once."""
    case = Case()
    case.ask(*talk(20))
    assert len(case.writer.sent) == 1
    old = case.thread[3]
    case.change(RemoveMessage(id=old.id) if change == "delete" else AIMessage("EDITED: it burned down.", id=old.id))
    case.ask("and now?")
    case.ask("and then?")
    assert case.events.count("compaction_set_aside") == 1
    assert len(case.writer.sent) == 2
    asked = str(case.writer.sent[1])
    assert old.content not in asked
    assert ("EDITED: it burned down." in asked) is (change == "edit")


def test_a_thread_that_was_cleared_begins_anew() -> None:
    """The record of messages that are gone is set aside once, not at every call from then on."""
    case = Case()
    case.ask(*talk(20))
    case.change(RemoveMessage(id=REMOVE_ALL_MESSAGES))
    for number in range(3):
        case.ask(f"fresh {number}")
    assert case.events.count("compaction_set_aside") == 1
    assert case.compaction.record(case.agent.get_state(THREAD).values) is None
    assert case.model.sent[-1][0].content == "fresh 0"


def test_a_newest_message_that_is_taken_back_costs_nothing() -> None:
    case = Case()
    case.ask(*talk(20))
    case.change(RemoveMessage(id=case.thread[-1].id))
    case.ask("once more")
    assert len(case.writer.sent) == 1
    assert "compaction_set_aside" not in case.events


def test_every_branch_of_a_thread_has_its_own_record() -> None:
    """Time travel: a branch from before a compaction has none, one from behind it has that one."""
    case = Case()
    for turn in range(12):
        case.ask(*talk(2, start=2 * turn))
    states = [state for state in case.agent.get_state_history(THREAD) if not state.next]
    paid = len(case.writer.sent)
    assert paid >= 2
    early = next(state for state in states if case.compaction.record(state.values) is None)
    late = states[0]
    asked = case.ask("from the start?", config=early.config)
    assert case.model.sent[-1] == asked[:-1]
    case.ask("from the end?", config=late.config)
    record = case.compaction.record(late.values)
    assert record is not None
    assert record.summary is not None
    assert sum(str(message.content).count("SUMMARYTOKEN") for message in case.model.sent[-1]) == 1
    assert len(case.writer.sent) == paid
    assert "compaction_set_aside" not in case.events


# ---- other parts of an agent ----


def test_structured_answers_are_kept_apart_from_compaction() -> None:
    class Weather(BaseModel):
        """What it is like."""

        degrees: int

    def script(messages: list[BaseMessage], number: int) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "Weather", "args": {"degrees": number}, "id": f"w{number}"}])

    case = Case(script, response_format=ToolStrategy(Weather))
    for turn in range(10):
        answered = case.agent.invoke({"messages": talk(2, start=2 * turn)}, THREAD)
        assert answered["structured_response"].degrees == turn
    assert len(case.writer.sent) > 1
    assert case.views_are_valid()


def test_prompts_and_tools_that_change_count_as_they_are_sent() -> None:
    """Middleware before ours in the list is outside of it, so that ours sees what it puts into the request."""
    turns = iter(range(100))

    @dynamic_prompt
    def prompt(request: ModelRequest[Any]) -> str:
        return "word " * (1_200 if next(turns) % 2 else 10)

    @wrap_model_call
    def fewer_tools(request: ModelRequest[Any], handler: Any) -> Any:
        return handler(request.override(tools=[] if "word " * 100 in str(request.system_prompt) else request.tools))

    case = Case(lambda messages, number: "ok", prompt, fewer_tools)
    for turn in range(14):
        case.ask(*talk(1, start=turn))
    assert len(case.writer.sent) >= 1
    assert max(count_tokens(sent) for sent in case.model.sent) <= WINDOW


def test_tools_that_fail_leave_valid_views() -> None:
    """Errors as results, calls of tools that do not exist, several at once."""

    @tool
    def fails(number: int) -> str:
        """Does not work."""
        raise ValueError(f"no luck with {number}")

    @wrap_tool_call
    def as_results(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")

    def script(messages: list[BaseMessage], number: int) -> Any:
        if number % 3 == 2:
            return "I give up on this one."
        calls = [{"name": "fails", "args": {"number": number}, "id": f"f{number}"}]
        return AIMessage("x " * 200, tool_calls=[*calls, {"name": "missing", "args": {}, "id": f"m{number}"}])

    case = Case(script, as_results, tools=(fails,))
    for turn in range(10):
        case.ask(*talk(1, start=turn))
    assert len(case.writer.sent) > 1
    assert case.views_are_valid()
    assert sum(getattr(message, "status", "") == "error" for message in case.thread) == 40


others = [
    [],
    [ModelRetryMiddleware()],
    [TodoListMiddleware(), ToolCallLimitMiddleware(thread_limit=1_000)],
    [ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=100_000)])],
    [ModelFallbackMiddleware(ScriptedModel())],
]


@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize("beside", others, ids=lambda beside: "+".join(one.name for one in beside) or "none")
def test_it_works_before_and_behind_other_middleware(beside: list[Any], is_last: bool) -> None:
    """In either order: valid views inside the window, and the thread with every message."""
    writer, model = ScriptedModel(script=lambda messages, number: SUMMARY), ScriptedModel(script=worker(3))
    compaction = CompactionMiddleware(window=WINDOW, summarizer=writer)
    order = [*beside, compaction] if is_last else [compaction, *beside]
    agent = create_agent(model, [read_file], middleware=order, checkpointer=InMemorySaver())
    for turn in range(4):
        thread = agent.invoke({"messages": talk(1, start=turn)}, THREAD)["messages"]
    assert len(thread) == 36
    assert len(writer.sent) > 1
    assert not any(problems_of(sent) for sent in model.sent)
    assert max(count_tokens(sent) for sent in model.sent) < WINDOW


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" * 40


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_middleware_outside_hides_or_adds_is_not_what_replaces_a_thread(is_async: bool) -> None:
    """The drop-in replaces messages for good: of the thread's own, all of which are read."""

    class Selecting(AgentMiddleware[Any, Any, Any]):
        """Leaves old messages out of a request, and adds one for it alone."""

        def selected(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
            return request.override(messages=[HumanMessage("for this request alone"), *request.messages[-42:]])

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(self.selected(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(self.selected(request))

    summaries, model = ScriptedModel(script=lambda messages, number: SUMMARY), ScriptedModel()
    drop_in = SummarizationMiddleware(summaries, trigger=("tokens", 9_000), keep=("messages", 4))
    agent = create_agent(
        model, system_prompt="A rule. " * 4_500, middleware=[Selecting(), drop_in], checkpointer=InMemorySaver()
    )
    told = talk(28)
    assert 6_000 < drop_in.token_counter(told) < 9_000
    agent.update_state(THREAD, {"messages": told}, as_node="model")

    def ask(text: str) -> list[BaseMessage]:
        given: Any = {"messages": [HumanMessage(text)]}
        answered = asyncio.run(agent.ainvoke(given, THREAD)) if is_async else agent.invoke(given, THREAD)
        return list(answered["messages"])

    assert len(ask("and now?")) == len(told) + 2, "nothing has left the thread unread"
    thread = ask("and then?")  # by now the size of the system prompt is known
    assert is_ours(thread[0])
    asked = str(summaries.sent)
    assert all(str(message.content)[:40] in asked for message in told[:-4])
    assert "for this request alone" not in asked + str(thread)


class Saying(AgentMiddleware[Any, Any, Any]):
    """Changes an answer, as a guardrail does, or adds a message beside it."""

    def __init__(self, said: BaseMessage) -> None:
        super().__init__()
        self.said = said

    def answered(self, response: Any) -> Any:
        if isinstance(self.said, AIMessage):
            return ModelResponse(result=[self.said.model_copy(update={"id": response.result[0].id})])
        return ExtendedModelResponse(response, Command(update={"messages": [self.said]}))

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return self.answered(handler(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return self.answered(await handler(request))


BESIDE: Any = {"trigger": ("tokens", 9_000), "keep": ("messages", 4), "trim_tokens_to_summarize": None}


def folding_beside_a_call(
    *middleware: Any, script: Any = lambda messages, number: "whole answer"
) -> tuple[Any, ScriptedModel, ScriptedModel]:
    """An agent whose drop-in, in the place of None, learns of the system prompt at the call that needs a summary."""
    summaries, model = ScriptedModel(script=lambda messages, number: SUMMARY), ScriptedModel(script=script)
    drop_in = SummarizationMiddleware(summaries, **BESIDE)
    agent: Any = create_agent(
        model,
        system_prompt="A rule. " * 4_500,
        middleware=[drop_in if one is None else one for one in middleware],
        checkpointer=InMemorySaver(),
    )
    agent.update_state(THREAD, {"messages": talk(28)}, as_node="model")
    return agent, model, summaries


def asked(agent: Any, is_async: bool, *texts: str) -> list[BaseMessage]:
    given: Any = {"messages": [HumanMessage(text) for text in texts]}
    answered = asyncio.run(agent.ainvoke(given, THREAD)) if is_async else agent.invoke(given, THREAD)
    return list(answered["messages"])


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("said", [AIMessage("[redacted]"), HumanMessage("A note.", id="note")])
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_summary_beside_a_model_call_leaves_what_other_middleware_says_of_the_answer(
    is_inside: bool, said: BaseMessage, is_async: bool
) -> None:
    """What a guardrail took out of an answer came back with the summary, and a message beside the answer was lost."""
    order = (None, Saying(said)) if is_inside else (Saying(said), None)
    agent, model, _ = folding_beside_a_call(*order)
    thread = asked(agent, is_async, "and now?")
    assert is_ours(thread[0])
    assert [message.content for message in thread[:5]] == [message.content for message in model.sent[0][1:]]
    added = [said.content] if isinstance(said, AIMessage) else ["whole answer", said.content]
    assert [message.content for message in thread[5:]] == added


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summary_beside_a_model_call_lets_middleware_inside_take_out_what_leaves_as_well(is_async: bool) -> None:
    """LangGraph ends a run that removes a message twice."""
    agent, model, summaries = folding_beside_a_call(None, Saying(RemoveMessage(id="a1")))
    thread = asked(agent, is_async, "and now?")
    assert is_ours(thread[0])
    assert [message.content for message in thread[:-1]] == [message.content for message in model.sent[0][1:]]
    assert thread[-1].content == "whole answer"
    assert len(summaries.sent) == 1


def test_a_summary_beside_a_model_call_shows_in_no_stream() -> None:
    agent, _, summaries = folding_beside_a_call(None)
    given: Any = {"messages": [HumanMessage("and now?")]}
    shown = [message.text for message, _ in agent.stream(given, THREAD, stream_mode="messages")]
    assert is_ours(agent.get_state(THREAD).values["messages"][0])
    assert summaries.sent
    assert "SUMMARYTOKEN" not in str(shown)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("retries", [2, 0])
def test_a_summary_beside_a_model_call_is_paid_once_however_often_the_call_fails(retries: int, is_async: bool) -> None:
    failing = lambda messages, number: ConnectionError("reset") if number < 2 else "fine"  # noqa: E731
    retry = ModelRetryMiddleware(max_retries=retries, initial_delay=0, on_failure="error")
    agent, model, summaries = folding_beside_a_call(retry, None, script=failing)
    for _ in range(0 if retries else 2):
        with pytest.raises(ConnectionError):
            asked(agent, is_async, "and now?")
    thread = asked(agent, is_async, "and now?")
    assert thread[-1].content == "fine"
    assert is_ours(thread[0])
    assert len(summaries.sent) == 1
    assert all(now[: len(then)] == then for then, now in pairwise(model.sent))


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("window", [None, 12_000])
@pytest.mark.parametrize("trigger", [5_000, 9_000])
def test_a_summarizer_that_fails_is_asked_once_for_each_call_of_the_model(
    trigger: int, window: int | None, is_async: bool
) -> None:
    """Also where the call shows more than ``before_model`` knew. Where that is too much, the built-in summary stands in
    at once, and where the call is tried again, nothing is asked again."""
    failing = lambda messages, number: ConnectionError("reset") if number == 0 else "fine"  # noqa: E731
    summaries = ScriptedModel(script=lambda messages, number: ValueError("no key"))
    model = ScriptedModel(script=failing, profile=None if window is None else {"max_input_tokens": window})
    agent: Any = create_agent(
        model,
        system_prompt="A rule. " * 4_500,
        middleware=[
            ModelRetryMiddleware(max_retries=2, initial_delay=0, on_failure="error"),
            SummarizationMiddleware(summaries, **{**BESIDE, "trigger": ("tokens", trigger)}),
        ],
        checkpointer=InMemorySaver(),
    )
    agent.update_state(THREAD, {"messages": talk(28)}, as_node="model")
    for calls in (1, 2):
        thread = asked(agent, is_async, "and now?")
        assert thread[-1].content == "fine"
        assert is_ours(thread[0]) == (window is not None)
        assert len(summaries.sent) == calls


@pytest.mark.parametrize("is_async", [False, True])
def test_where_the_newest_request_stands_first_the_next_call_writes_the_summary_that_was_paid(is_async: bool) -> None:
    """A summary stands before all that stays, and no id says that beside an answer."""

    def script(messages: list[BaseMessage], number: int) -> Any:
        if number > 1:
            return "done"
        return AIMessage("", tool_calls=[{"name": "read_file", "args": {"path": "z.py"}, "id": f"z{number}"}])

    summaries, model = ScriptedModel(script=lambda messages, number: SUMMARY), ScriptedModel(script=script)
    drop_in = SummarizationMiddleware(summaries, **BESIDE)
    agent: Any = create_agent(
        model, [read_file], system_prompt="A rule. " * 4_500, middleware=[drop_in], checkpointer=InMemorySaver()
    )
    work: list[BaseMessage] = [HumanMessage("Read all files.", id="task")]
    for number in range(8):
        work += [AIMessage("", tool_calls=[{"name": "read_file", "args": {"path": "a"}, "id": f"c{number}"}])]
        work += [ToolMessage("It says: " + "the roof is dry. " * 130, tool_call_id=f"c{number}")]
    assert 4_500 < drop_in.token_counter(work) < 9_000
    given: Any = {"messages": work}
    thread = (asyncio.run(agent.ainvoke(given, THREAD)) if is_async else agent.invoke(given, THREAD))["messages"]
    assert [message.content for message in thread[:-1]] == [message.content for message in model.sent[-1][1:]]
    assert is_ours(thread[0])
    assert thread[1].content == "Read all files."
    assert len(summaries.sent) == 1
    assert not any(problems_of(sent) for sent in model.sent)
    contents = [[message.content for message in sent] for sent in model.sent]
    assert all(now[: len(then)] == then for then, now in pairwise(contents))


@pytest.mark.parametrize("kind", ["objects", "dicts"])
def test_a_caller_who_gives_all_messages_each_time_pays_no_summary_twice(kind: str) -> None:
    """No checkpoint keeps what the thread became: each run folded all of it again, in ever more requests."""
    model = ScriptedModel(script=lambda messages, number: f"answer {number} {'about it all ' * 80}")
    summaries = ScriptedModel(script=lambda messages, number: SUMMARY)
    drop_in = SummarizationMiddleware(summaries, trigger=("tokens", 3_000), keep=("messages", 4))
    agent = create_agent(model, middleware=[drop_in])
    whole = list[BaseMessage]()
    for turn in range(40):
        asked = [*whole, HumanMessage(f"question {turn} <reminder>It is turn {turn}.</reminder>", id=f"q{turn}")]
        told: list[Any] = [{"role": m.type, "content": m.content} for m in asked] if kind == "dicts" else asked
        answer = agent.invoke({"messages": told})["messages"][-1]
        whole += [HumanMessage(f"question {turn}", id=f"q{turn}"), answer]
        seen = "".join(str(message.content) for sent in [model.sent[-1], *summaries.sent] for message in sent)
        assert [n for n in range(turn) if f"question {n}" not in seen or f"answer {n} " not in seen] == []
        assert f"It is turn {turn}." in str(model.sent[-1][-1].content)
    assert 2 < len(summaries.sent) < 8


def folding_what_is_given() -> tuple[Any, ScriptedModel, ScriptedModel]:
    model = ScriptedModel(script=lambda messages, number: "fine")
    summaries = ScriptedModel(script=lambda messages, number: SUMMARY)
    drop_in = SummarizationMiddleware(summaries, trigger=("tokens", 3_000), keep=("messages", 4))
    return create_agent(model, middleware=[drop_in]), model, summaries


@pytest.mark.parametrize("dropped", [0, 6])
def test_what_one_thread_was_folded_to_is_given_to_no_other(dropped: int) -> None:
    """Also where both say the same, and where the other one has only the newest of it."""
    agent, _, summaries = folding_what_is_given()
    messages, paid, said = list[BaseMessage](), list[int](), talk(60)
    for number, (question, answer) in enumerate(zip(said[::2], said[1::2], strict=True)):
        call = {"name": "read_file", "args": {"path": f"{number}.py"}, "id": f"call_{number}tJ7x4Vw9Kq2"}
        read = ToolMessage(answer.content, tool_call_id=call["id"], id=f"t{number}")
        messages += [question, AIMessage("", tool_calls=[call], id=f"c{number}"), read]
    for thread, given in (("one", messages), ("two", messages[dropped:]), ("one", messages)):
        agent.invoke({"messages": given}, {"configurable": {"thread_id": thread}})
        paid.append(len(summaries.sent))
    assert 0 < paid[0] < paid[1] == paid[2]


@pytest.mark.parametrize("window", [None, 100_000])
def test_a_summarizer_that_fails_leaves_a_thread_that_can_be_sent_with_the_summary_that_it_has(
    window: int | None,
) -> None:
    """What replaces messages does so for good: a poor summary is for a thread that could not be sent otherwise."""
    agent, model, summaries = folding_what_is_given()
    summaries.profile = model.profile = None if window is None else {"max_input_tokens": window}
    works = summaries.script
    for turns, script, is_summarized in ((40, None, False), (40, works, True), (80, None, True)):
        summaries.script = script or (lambda messages, number: ValueError("no key"))
        agent.invoke({"messages": talk(turns)})
        assert is_ours(model.sent[-1][0]) == is_summarized
        assert str(model.sent[-1]).count("SUMMARYTOKEN") == is_summarized
    assert [message.id for message in model.sent[-1]][-80:] == [message.id for message in talk(80)[-80:]]


def test_a_caller_who_takes_messages_back_is_shown_none_of_them() -> None:
    agent, model, _ = folding_what_is_given()
    messages = talk(60)
    for given in (messages, messages[:-1]):
        agent.invoke({"messages": given})
    assert str(messages[-1].content) in str(model.sent[0][-1].content)
    assert messages[-1].id not in [message.id for message in model.sent[1]]
    assert messages[-2].id == model.sent[1][-1].id


def test_pictures_cache_marks_and_reasoning_pass_through() -> None:
    """What stays is as it was but for thinking; the summarizer gets neither base64 nor thinking."""
    messages: list[BaseMessage] = []
    for turn in range(14):
        text = {"type": "text", "text": f"look {turn} " + "word " * 100, "cache_control": {"type": "ephemeral"}}
        image: Any = {"type": "image", "base64": PICTURE, "mime_type": "image/png"}
        if turn % 2:
            image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
        messages.append(HumanMessage([text, image], id=f"h{turn}"))
        thought = {"type": "thinking", "thinking": "SECRET THOUGHT", "signature": "s"}
        messages.append(AIMessage([thought, {"type": "text", "text": "seen " * 60}], id=f"a{turn}"))
    case = Case(window=6_000)
    thread = case.ask(*messages, "and?")
    assert len(case.writer.sent) == 1
    asked = str(case.writer.sent)
    assert PICTURE[:60] not in asked
    assert "SECRET THOUGHT" not in asked
    view = case.model.sent[0]
    assert any(is_ours(message) for message in view)
    kept = [message for message in view if not is_ours(message)]
    assert len(kept) > 2
    assert all(any(message in (original, _without_thinking(original)) for original in thread) for message in kept)


def _without_thinking(message: BaseMessage) -> BaseMessage:
    content = (
        message.content
        if isinstance(message.content, str)
        else [block for block in message.content if not (isinstance(block, dict) and block.get("type") == "thinking")]
    )
    return message.model_copy(update={"content": content})


# ---- models ----


def test_a_thread_moves_to_a_smaller_model_and_back() -> None:
    """Each call has the window of its model; what was compacted for the small one goes on as it is with the large."""
    large, small = (ScriptedModel(profile={"max_input_tokens": size}) for size in (20_000, WINDOW))
    in_use = [large]

    @wrap_model_call
    def switch(request: ModelRequest[Any], handler: Any) -> Any:
        return handler(request.override(model=in_use[0]))

    writer = ScriptedModel(script=lambda messages, number: SUMMARY)
    compaction = CompactionMiddleware(summarizer=writer)
    agent = create_agent(large, [read_file], middleware=[switch, compaction], checkpointer=InMemorySaver())
    for turn, model in enumerate([large] * 6 + [small, large, small]):
        in_use[0] = model
        agent.invoke({"messages": talk(2, start=2 * turn)}, THREAD)
    assert [len(sent) for sent in large.sent[:6]] == [4, 9, 14, 19, 24, 29]
    assert all(count_tokens(sent) < WINDOW for sent in small.sent)
    assert len(writer.sent) <= 2
    assert not any(problems_of(sent) for sent in [*large.sent, *small.sent])


def test_what_a_refusal_teaches_about_one_model_is_not_believed_of_another() -> None:
    """Two models of unknown windows: one refuses at 6,000 tokens, the other one still gets everything."""

    def refusing(messages: list[BaseMessage], number: int) -> Any:
        limit = 6_000
        used = count_tokens(messages)
        text = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in {used} tokens."
        )
        return ValueError(text) if used > limit else "ok"

    small, large = ScriptedModel(script=refusing, model_name="small"), ScriptedModel(model_name="large")
    compaction = CompactionMiddleware()
    for model, thread in ((small, "one"), (large, "two"), (small, "three")):
        agent = create_agent(model, [read_file], middleware=[compaction], checkpointer=InMemorySaver())
        agent.invoke({"messages": talk(40)}, {"configurable": {"thread_id": thread}})
    assert len(large.sent[0]) == 80
    assert [count_tokens(sent) > 6_000 for sent in small.sent] == [True, False, False], "learned once, for good"


# ---- two runs at once ----


def run_both(agent: Any, count: int = 2) -> list[Any]:
    """The same thread, so many times at once, in threads."""
    outcome: list[Any] = []

    def run(number: int) -> None:
        try:
            outcome.append(agent.invoke({"messages": [HumanMessage(f"run {number}")]}, THREAD))
        except Exception as error:  # noqa: BLE001 - what a run ends with is what is looked at
            outcome.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return outcome


def test_two_runs_on_one_thread_pay_one_summary() -> None:
    """The second one waits, and goes on with the summary of the first. Nothing is kept of it afterwards."""
    together = threading.Barrier(2)
    paid: list[str] = []

    def summarize(prompt: str) -> str:
        paid.append(prompt)
        return SUMMARY

    def answer(messages: list[BaseMessage], number: int) -> str:
        together.wait(20)  # until both calls are on their way
        return "ok"

    case = Case(answer, summarizer=summarize)
    case.seed(talk(14))
    outcome = run_both(case.agent)
    assert [type(one) for one in outcome] == [dict, dict]
    assert len(paid) == 1
    assert case.events.count("compaction_finished") == 1
    assert all("SUMMARYTOKEN" in str(sent) for sent in case.model.sent)
    assert case.compaction._turns._gates == {}


def test_two_async_runs_on_one_thread_pay_one_summary() -> None:
    """Without blocking the loop; a run that is cancelled while it waits holds no one up."""
    paid: list[str] = []

    async def main() -> None:
        started = asyncio.Event()

        async def summarize(prompt: str) -> str:
            paid.append(prompt)
            started.set()
            await asyncio.sleep(0.2)
            return SUMMARY

        case = Case(summarizer=summarize)
        await case.agent.aupdate_state(THREAD, {"messages": talk(14)}, as_node="model")

        async def run(number: int) -> Any:
            return await case.agent.ainvoke({"messages": [HumanMessage(f"run {number}")]}, THREAD)

        runs = [asyncio.create_task(run(number)) for number in range(4)]
        await started.wait()
        await asyncio.sleep(0.05)
        runs[1].cancel()
        outcome = await asyncio.gather(*runs, return_exceptions=True)
        assert [type(one) for one in outcome] == [dict, asyncio.CancelledError, dict, dict]
        assert case.compaction._turns._gates == {}
        assert len(case.model.sent) == 3

    anyio.run(main)
    assert len(paid) == 1


def test_a_blocking_run_on_an_event_loop_waits_for_no_run_that_it_holds_up() -> None:
    """Both would stand still until the blocking one has waited for as long as any may."""

    async def main() -> tuple[Any, float]:
        asked, let = list[str](), asyncio.Event()

        async def summarize(prompt: str) -> str:
            asked.append(prompt)
            if len(asked) == 1:
                await let.wait()
            return SUMMARY

        case = Case(summarizer=summarize)
        await case.agent.aupdate_state(THREAD, {"messages": talk(14)}, as_node="model")
        run = asyncio.create_task(case.agent.ainvoke({"messages": [HumanMessage("run 0")]}, THREAD))
        while not asked:
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        blocking = case.agent.invoke({"messages": [HumanMessage("run 1")]}, THREAD)
        took = time.monotonic() - begun
        let.set()
        await run
        assert case.compaction._turns._gates == {}
        return blocking, took

    blocking, took = asyncio.run(main())
    assert took < 20
    assert "answer" in str(blocking["messages"][-1].content)


def test_a_failed_pass_lets_the_next_run_in() -> None:
    """The first run's hook raises; the second one compacts by itself."""
    raised: list[Proposal] = []

    def before(proposal: Proposal) -> None:
        raised.append(proposal)
        if len(raised) == 1:
            raise KeyError("the hook is broken")

    case = Case(before_compaction=before)
    case.seed(talk(14))
    outcome = run_both(case.agent)
    assert sorted(type(one).__name__ for one in outcome) == ["KeyError", "dict"]
    assert len(case.writer.sent) == 1


def test_a_hook_may_use_the_thread_that_it_is_called_for() -> None:
    """A pass that runs the same thread from inside does not wait for itself."""
    depth: list[int] = []

    def before(proposal: Proposal) -> bool:
        depth.append(1)
        if len(depth) == 1:
            case.agent.invoke({"messages": [HumanMessage("from inside")]}, THREAD)
        return len(depth) > 1

    case = Case(before_compaction=before)
    case.seed(talk(14))
    finished = threading.Thread(target=case.ask, args=("go",), daemon=True)
    finished.start()
    finished.join(30)
    assert not finished.is_alive()
    assert depth  # whether the inner run meets the whole thread is up to the release of LangGraph


def test_a_run_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that starts a run of its own thread elsewhere, and waits for it: that run goes on without its turn."""
    monkeypatch.setattr("contextfold.integrations.langchain.threads.LONGEST", 0.1)
    depth: list[int] = []

    def before(proposal: Proposal) -> bool:
        depth.append(1)
        if len(depth) == 1:
            elsewhere = threading.Thread(target=case.ask, args=("from elsewhere",))
            elsewhere.start()
            elsewhere.join(30)
        return False

    case = Case(before_compaction=before)
    case.seed(talk(14))
    case.ask("go")
    assert len(depth) == 2
    assert case.compaction._turns._gates == {}


def test_what_a_thread_was_folded_to_is_given_as_its_messages_are_now() -> None:
    """Without those that the client has dropped since; and that no summary could be had holds for no shorter thread."""
    ids = ("call_a8Xb2Kd9Qz1LmN0pRs3Tu5Vw", "call_Zk3Jd8Fh2Ls9Qw1Er5Ty7Ui0", "call_P0o9I8u7Y6t5R4e3W2q1AsDf")
    thread: list[Any] = [HumanMessage("Read all.", id="h")]
    for n, id in enumerate(ids):
        thread.append(AIMessage("", id=f"a{n}", tool_calls=[{"name": "look", "args": {"n": n}, "id": id}]))
        thread.append(ToolMessage(f"result {n}", tool_call_id=id, id=f"t{n}"))
    summary, asked = HumanMessage("SUMMARY", id="s"), HumanMessage("Go on.", id="g")
    paid = PaidFolds()
    paid.keep(thread, [thread[0], summary, *thread[-2:]])
    cleared = thread[-1].model_copy(update={"content": "cleared"})
    assert paid.instead_of([*thread[:-1], cleared, asked]) == [thread[0], summary, thread[-2], cleared, asked]
    assert paid.instead_of([*thread[3:], asked]) == [summary, *thread[-2:], asked]
    paid.keep_failure(thread)
    assert paid.has_failed([*thread, asked])
    assert not paid.has_failed(thread[:-2])
