"""Whole agents: DeerFlow's order over two processes, parallel sub-agents, many threads at once, a watched loop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_scripted import SUMMARY, ScriptedModel, problems_of, read_file, talk
from langgraph.checkpoint.memory import InMemorySaver

from contextfold import count_tokens
from contextfold.integrations.bounded import REMEMBERED
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
from loop_watchdog import nothing_blocks

HERE = Path(__file__).resolve().parent


def process(folder: Path, kind: str, first: int, last: int, stop: str = "") -> dict[str, Any] | None:
    """A run in a process of its own; None if it was ended from inside."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    arguments = [str(folder / "thread.db"), str(report), kind, str(first), str(last), stop]
    done = subprocess.run([sys.executable, str(HERE / "deerflow_agent.py"), *arguments], check=False)
    assert done.returncode == (9 if stop else 0)
    return json.loads(report.read_text(encoding="utf-8")) if report.exists() else None


@pytest.mark.strict
def test_an_agent_in_deerflows_order_survives_its_process(tmp_path: Path) -> None:
    """300 messages, several compactions, a process that ends in the middle of a tool loop, another that goes on.

    The right context at each call, and every original in the thread.
    """
    assert process(tmp_path, "compaction", 0, 8, stop="8.5") is None
    told = process(tmp_path, "compaction", 9, 15)
    assert told is not None
    check_what_was_sent(told)
    assert [people[-1] for people in people_of(told)] == [
        f"question {number}" for number in (*[8] * 5, *(n for n in range(9, 15) for _ in range(10)), 15)
    ]
    thread = told["thread"]
    assert len(thread) == 15 * 20 + 3
    assert [text for role, text, _ in thread if role == "human"] == [f"question {n}" for n in range(16)]
    assert thread[-1][1] == "Which module?", "the clarification ended the run"
    assert told["artifacts"] == 15 * 9
    files = {text.split(":")[0] for role, text, _ in thread if role == "tool" and text.startswith("src/")}
    assert len(files) == 15 * 9
    assert len({identity for _, _, identity in thread}) == len(thread)


@pytest.mark.strict
def test_the_drop_in_in_deerflows_order_survives_its_process(tmp_path: Path) -> None:
    """The same with the class that rewrites the thread: one summary, valid requests, no step done twice."""
    assert process(tmp_path, "drop-in", 0, 3, stop="3.5") is None
    told = process(tmp_path, "drop-in", 4, 6)
    assert told is not None
    check_what_was_sent(told)
    assert [people[-1] for people in people_of(told)].count("question 3") == 5
    assert len(told["thread"]) < 60
    assert sum("Here is a summary" in text for _, text, _ in told["thread"]) == 1


def check_what_was_sent(told: dict[str, Any]) -> None:
    for sent in told["sent"]:
        assert sent["tokens"] < 8_000
        assert sent["problems"] == []
        assert sent["first"] == "system"
    assert 1 <= told["summaries"] <= 25
    assert told["title"] == "About question 0"


def people_of(told: dict[str, Any]) -> list[list[str]]:
    return [sent["people"] for sent in told["sent"]]


@pytest.mark.parametrize("kind", [CompactionMiddleware, SummarizationMiddleware])
@pytest.mark.parametrize("call_id", [None, ""])
def test_an_agent_goes_on_behind_an_invalid_call_without_an_id(kind: Any, call_id: str | None) -> None:
    bad: Any = {"name": "read_file", "args": '{"path":', "id": call_id, "error": "Invalid JSON"}
    paid = ScriptedModel(script=lambda messages, number: SUMMARY)
    middleware = (
        CompactionMiddleware(window=2_000, summarizer=paid)
        if kind is CompactionMiddleware
        else SummarizationMiddleware(paid, trigger=("messages", 20), keep=("messages", 4))
    )
    main = ScriptedModel()
    agent = create_agent(main, [read_file], middleware=[middleware])
    messages = [HumanMessage("[go]"), AIMessage("", invalid_tool_calls=[bad]), *talk(30), HumanMessage("[q]")]
    assert agent.invoke({"messages": messages})["messages"][-1].content
    assert SUMMARY in str(main.sent[-1])
    assert not problems_of(main.sent[-1])


def test_parallel_sub_agents_share_an_instance_and_nothing_else() -> None:
    """Four at a time, each with its own thread of messages and its own model's window."""
    summaries = ScriptedModel(script=lambda messages, number: SUMMARY)
    middleware = CompactionMiddleware(summarizer=summaries)
    models = {
        size: ScriptedModel(script=lambda messages, number: "sub done", profile={"max_input_tokens": size})
        for size in (4_000, 6_000, 8_000, 500_000)
    }

    @tool
    def delegate(size: int) -> str:
        """Give a piece of work to a sub-agent."""
        agent = create_agent(models[size], [read_file], system_prompt=f"SUB {size}", middleware=[middleware])
        asked = [*talk(40, start=size), HumanMessage("and now?")]
        return str(agent.invoke({"messages": asked})["messages"][-1].content)

    calls = [{"name": "delegate", "args": {"size": size}, "id": f"c{size}"} for size in models]
    main = ScriptedModel(script=lambda messages, number: AIMessage("", tool_calls=calls) if number == 0 else "all done")
    agent = create_agent(main, [delegate], middleware=[middleware], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    answered = agent.invoke({"messages": [HumanMessage("go")]}, config)
    assert [str(message.content) for message in answered["messages"][2:]] == [*["sub done"] * 4, "all done"]
    for size, model in models.items():
        (sent,) = model.sent
        assert count_tokens(sent) < size
        assert (len(sent) == 82) is (size == 500_000)
        others = [message for message in sent if message.id and message.id[1:].isdigit()]
        assert all(int(str(message.id)[1:]) // 1_000 == size // 1_000 for message in others)
    assert middleware.record(agent.get_state(config).values) is None, "the main agent had nothing to compact"


@pytest.mark.strict
@pytest.mark.parametrize(
    ("kind", "threads"),
    [("compaction", 100), pytest.param("compaction", REMEMBERED + 100, marks=pytest.mark.strict), ("drop-in", 100)],
)
def test_hundreds_of_interleaved_runs_on_one_instance_do_not_mix(kind: str, threads: int) -> None:
    """Each thread's view and summary are made of its own messages, also where more run than are remembered."""

    def summarize(messages: list[BaseMessage], number: int) -> str:
        text = str(messages[0].content)
        owners = {word.split("-")[1] for word in text.split() if word.startswith("owner-")}
        return f"Thread {sorted(owners)} was about its own matter."

    def answer(messages: list[BaseMessage], number: int) -> str:
        text = " ".join(str(message.content) for message in messages)
        owners = {word.split("-")[1].rstrip(".") for word in text.split() if word.startswith("owner-")}
        named = {part.split("]")[0] for part in text.split("Thread [")[1:]}
        return f"{sorted(owners)} {sorted(named)}"

    summaries, model = ScriptedModel(script=summarize), ScriptedModel(script=answer)
    middleware: Any = CompactionMiddleware(window=1_200, summarizer=summaries)
    if kind == "drop-in":
        middleware = SummarizationMiddleware(summaries, trigger=("tokens", 900), keep=("messages", 2))
    agent = create_agent(model, [], middleware=[middleware])

    async def one(number: int, answers: dict[int, str]) -> None:
        said = f"owner-{number} " + "a word of the house " * 40
        messages = [(HumanMessage if turn % 2 == 0 else AIMessage)(f"{said} {turn}.") for turn in range(5)]
        answered = await agent.ainvoke({"messages": messages})
        answers[number] = str(answered["messages"][-1].content)

    async def run() -> dict[int, str]:
        answers: dict[int, str] = {}
        async with anyio.create_task_group() as group:
            for number in range(threads):
                group.start_soon(one, number, answers)
        return answers

    answers = anyio.run(run)
    assert answers == {number: f"['{number}'] [\"'{number}'\"]" for number in range(threads)}
    assert len(summaries.sent) == threads


@pytest.mark.parametrize("kind", ["compaction", "drop-in"])
def test_async_agents_never_block_the_event_loop(kind: str) -> None:
    """Through a summary, a store and a manual compaction."""

    class Slow:
        """A store that blocks, as one on a disk does."""

        def __init__(self) -> None:
            self.texts: dict[str, str] = {}

        def get(self, thread: str) -> str | None:
            import time

            time.sleep(0.001)
            return self.texts.get(thread)

        def put(self, thread: str, text: str) -> None:
            import time

            time.sleep(0.001)
            self.texts[thread] = text

    summaries = ScriptedModel(script=lambda messages, number: SUMMARY)
    compaction = CompactionMiddleware(window=6_000, summarizer=summaries, records=Slow())
    middleware: Any = compaction
    if kind == "drop-in":
        middleware = SummarizationMiddleware(summaries, trigger=("messages", 50))
    model = ScriptedModel()
    agent = create_agent(model, [read_file], middleware=[middleware], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}

    async def run() -> None:
        with nothing_blocks():
            await agent.ainvoke({"messages": [*talk(30), HumanMessage("and now?")]}, config)
            if kind == "compaction":
                await compaction.acompact(agent, config)
                await compaction.aundo(agent, config)

    anyio.run(run)
    assert summaries.sent
    assert not problems_of(model.sent[-1])
    assert len(model.sent[-1]) < 60
