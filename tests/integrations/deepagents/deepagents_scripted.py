"""Deep agents' conversations, and models that write summaries. All else is the real framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from integrations.langchain.langchain_scripted import Answer, ScriptedModel
from integrations.langchain.langchain_scripted import problems_of as problems_of

SUMMARY = "SUMMARYTOKEN The user asked about many items; the deploy key is k-778."


def deep_agent(main: ScriptedModel, backend: Any, *middleware: Any, **options: Any) -> Any:
    return create_deep_agent(
        main, backend=backend, middleware=list(middleware), checkpointer=InMemorySaver(), **options
    )


def summarizer(answer: Answer = SUMMARY) -> ScriptedModel:
    """A model that gives every request the same answer."""
    return ScriptedModel(script=lambda messages, number: answer)


def said(messages: Sequence[BaseMessage]) -> str:
    """All text of some messages."""
    return "\n".join(str(message.content) for message in messages)


def prompts(model: ScriptedModel) -> str:
    """All that a model was asked."""
    return "\n".join(said(sent) for sent in model.sent)


def questions(turns: int, words: int = 40, start: int = 0) -> list[AnyMessage]:
    """A person asks, the assistant answers; every message names itself."""
    messages: list[AnyMessage] = []
    for turn in range(start, start + turns):
        filling = " ".join(f"fact-{turn}-{word}" for word in range(words))
        messages.append(HumanMessage(f"[h{turn}] What about item {turn}?", id=f"h{turn}"))
        messages.append(AIMessage(f"[a{turn}] It is in src/item_{turn}.py. {filling}", id=f"a{turn}"))
    return messages


def written(turn: int, content: str, tool: str = "write_file") -> list[AnyMessage]:
    """The assistant writes a file."""
    arguments = {"file_path": f"/src/item_{turn}.py", "content": content}
    return [
        AIMessage(f"[w{turn}]", id=f"w{turn}", tool_calls=[{"name": tool, "args": arguments, "id": f"c{turn}"}]),
        ToolMessage(f"[r{turn}] written", tool_call_id=f"c{turn}", id=f"r{turn}"),
    ]


def tool_loop(calls: int, words: int = 40) -> list[AnyMessage]:
    """One request of a person, and the assistant at work."""
    messages: list[AnyMessage] = [HumanMessage("[task] Repair the ledger, and never touch /etc.", id="task")]
    for number in range(calls):
        text = " ".join(f"line-{number}-{word}" for word in range(words))
        call = {"name": "read_file", "args": {"file_path": f"/src/item_{number}.py"}, "id": f"c{number}"}
        messages.append(AIMessage(f"[a{number}]", id=f"a{number}", tool_calls=[call]))
        messages.append(ToolMessage(f"[t{number}] {text}", tool_call_id=f"c{number}", id=f"t{number}"))
    return messages
