"""An agent with the middleware of DeerFlow in its order, over an SQLite file. Runs as a process of its own.

    python deerflow_agent.py DATABASE REPORT KIND FIRST LAST STOP

Asks questions FIRST to LAST, resuming what was left unfinished; ends the process without warning when the model is
called for step STOP ("question.step"). The report says, for each model call, what was sent.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NotRequired

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_scripted import SUMMARY, ScriptedModel, problems_of, read_file
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END
from langgraph.types import Command

from contextfold import count_tokens
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware

WINDOW = 8_000
READS = 9
CONFIG: Any = {"configurable": {"thread_id": "deer"}, "recursion_limit": 1_000}


class ThreadState(AgentState[Any]):
    """What DeerFlow's middleware keeps beside the messages."""

    thread_data: NotRequired[dict[str, str]]
    sandbox: NotRequired[dict[str, str]]
    title: NotRequired[str]


class ThreadData(AgentMiddleware[ThreadState, Any, Any]):
    """Folders of the thread."""

    state_schema = ThreadState

    def before_agent(self, state: ThreadState, runtime: Any) -> dict[str, Any]:
        return {"thread_data": {"workspace": "threads/deer/workspace"}}


class Sandbox(AgentMiddleware[ThreadState, Any, Any]):
    """A sandbox for the tools, and a note of it in each result."""

    state_schema = ThreadState

    def before_agent(self, state: ThreadState, runtime: Any) -> dict[str, Any] | None:
        assert state.get("thread_data"), "thread data come first"
        return None if state.get("sandbox") else {"sandbox": {"id": "box-1"}}

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        result = handler(request)
        if isinstance(result, ToolMessage):
            result.artifact = {"sandbox": request.state["sandbox"]["id"]}
        return result


class Title(AgentMiddleware[ThreadState, Any, Any]):
    """A title after the first exchange."""

    state_schema = ThreadState

    def after_model(self, state: ThreadState, runtime: Any) -> dict[str, Any] | None:
        if state.get("title"):
            return None
        return {"title": f"About {state['messages'][0].content}"}


class Clarification(AgentMiddleware[ThreadState, Any, Any]):
    """A question back to the person ends the run."""

    state_schema = ThreadState

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        if request.tool_call["name"] != "ask_clarification":
            return handler(request)
        asked = ToolMessage(request.tool_call["args"]["question"], tool_call_id=request.tool_call["id"])
        return Command(update={"messages": [asked]}, goto=END)


@tool(return_direct=True)
def ask_clarification(question: str) -> str:
    """Ask the person."""
    raise AssertionError("the middleware answers")


def script(stop: str) -> Callable[[list[BaseMessage], int], AIMessage]:
    """Each question takes nine files, the last question a question back. What comes next is read off the newest
    message, so that any process can go on where another one stopped.
    """

    def answer(messages: list[BaseMessage], number: int) -> AIMessage:
        newest = messages[-1]
        if isinstance(newest, ToolMessage):
            question, step = (int(part) for part in str(newest.tool_call_id).split("-")[1:])
            step += 1
        else:
            question, step = int(str(newest.content).split("question ")[1]), 0
        if f"{question}.{step}" == stop:
            os._exit(9)
        if step == READS:
            return AIMessage(f"Answer to question {question}.")
        name, args = "read_file", {"path": f"src/module_{question}_{step}.py"}
        if question == 15:
            name, args = "ask_clarification", {"question": "Which module?"}
        call = {"name": name, "args": args, "id": f"call-{question}-{step}"}
        return AIMessage(f"Step {step} of question {question}.", tool_calls=[call])

    return answer


def main(database: str, report: str, kind: str, first: int, last: int, stop: str) -> None:
    """Ask the questions and write the report."""
    model = ScriptedModel(script=script(stop))
    summaries = ScriptedModel(script=lambda messages, number: SUMMARY)
    summarizing: Any = CompactionMiddleware(window=WINDOW, summarizer=summaries)
    if kind == "drop-in":
        summarizing = SummarizationMiddleware(summaries, trigger=("tokens", 6_000), keep=("messages", 12))
    with SqliteSaver.from_conn_string(database) as saver:
        agent = create_agent(
            model,
            [read_file, ask_clarification],
            system_prompt="You are DeerFlow.",
            middleware=[ThreadData(), Sandbox(), summarizing, Title(), Clarification()],
            checkpointer=saver,
        )
        try:
            if agent.get_state(CONFIG).tasks:
                agent.invoke(None, CONFIG, durability="sync")
            for number in range(first, last + 1):
                agent.invoke({"messages": [HumanMessage(f"question {number}")]}, CONFIG, durability="sync")
        finally:
            state = agent.get_state(CONFIG).values
            told = {
                "thread": [[m.type, str(m.content), m.id] for m in state["messages"]],
                "artifacts": sum(1 for m in state["messages"] if getattr(m, "artifact", None) == {"sandbox": "box-1"}),
                "title": state.get("title"),
                "summaries": len(summaries.sent),
                "sent": [
                    {
                        "tokens": count_tokens(sent),
                        "problems": problems_of(sent),
                        "first": sent[0].type,
                        "people": [str(m.content) for m in sent if m.type == "human"],
                    }
                    for sent in model.sent
                ],
            }
            Path(report).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
