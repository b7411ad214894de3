"""The same conversations through LangChain's own middleware and through contextfold's, side by side.

    python examples/side_by_side_langchain.py

Only the chat models are scripted; everything else is the installed LangChain. For each conversation it says which of
the evicted messages the summarizer was shown, whether a provider would take what is sent next, how large that is, and
how many requests for summaries were paid for.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
)
from langchain.agents.middleware import (
    SummarizationMiddleware as LangChainsMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field

import contextfold
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware

SUMMARY = "The user asked about many items; each answer named a file."


class Scripted(BaseChatModel):
    """Gives ``answers`` one after the other, the last one again and again, and keeps what it was sent."""

    answers: list[Any] = Field(default_factory=lambda: [SUMMARY])
    sent: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        answer = self.answers[min(len(self.sent), len(self.answers) - 1)]
        self.sent.append(messages)
        message = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])


@dataclass(frozen=True)
class Outcome:
    """What a middleware made of a conversation. ``shown`` of ``evicted``: messages whose text a summarizer was sent."""

    evicted: int
    shown: int
    problems: tuple[str, ...]
    tokens: int
    summaries: int
    summary: str

    def __str__(self) -> str:
        problems = self.problems[0] if self.problems else "valid"
        text = f"{self.shown}/{self.evicted} evicted seen, {problems}, {self.tokens:,} tokens sent"
        return f"{text}, {self.summaries} model call(s), summary {self.summary[:60]!r}"


def fold(middleware: type, messages: Sequence[BaseMessage], answer: str = SUMMARY, **options: Any) -> Outcome:
    """Run a summarizing middleware once, as an agent does before a model call."""
    model = Scripted(answers=[answer])
    update = middleware(model, **options).before_model({"messages": list(messages)}, None)
    after = list(messages) if update is None else [m for m in update["messages"] if m.type != "remove"]
    kept = {message.id for message in after}
    evicted = [message for message in messages if message.id not in kept]
    prompts = "\n".join(str(message.content) for sent in model.sent for message in sent)
    summaries = [m for m in after if m.additional_kwargs.get("lc_source") == "summarization"]
    return Outcome(
        evicted=len(evicted),
        shown=sum(1 for message in evicted if f"[{message.id}]" in prompts),
        problems=tuple(problems_of(after)),
        tokens=contextfold.count_tokens(after),
        summaries=len(model.sent),
        summary=str(summaries[0].content).partition("\n\n")[2] if summaries else "",
    )


def problems_of(messages: Sequence[BaseMessage]) -> list[str]:
    """What a provider would refuse: results without their call before them, calls without all their results."""
    problems: list[str] = []
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                problems.append(f"INVALID: orphan result {message.tool_call_id}")
            waiting.discard(message.tool_call_id)
        elif waiting:
            problems.append(f"INVALID: {message.type} message before results {sorted(waiting)}")
            waiting = set()
        if isinstance(message, AIMessage):
            waiting = {str(call["id"]) for call in message.tool_calls}
    return problems


# ---- conversations: every message names itself, so that it can be found in a prompt ----


def questions(turns: int) -> list[BaseMessage]:
    """A person asks, the assistant answers."""
    messages: list[BaseMessage] = []
    for turn in range(turns):
        words = " ".join(f"fact-{turn}-{word}" for word in range(40))
        messages.append(HumanMessage(f"[h{turn}] What about item {turn}?", id=f"h{turn}"))
        messages.append(AIMessage(f"[a{turn}] It is in src/item_{turn}.py. {words}", id=f"a{turn}"))
    return messages


def tool_loop(calls: int) -> list[BaseMessage]:
    """One request, and then nothing but tool calls."""
    messages: list[BaseMessage] = [HumanMessage("[h0] Clean up the whole repository.", id="h0")]
    for number in range(calls):
        messages += [calling(f"a{number}", [f"c{number}"]), result(f"t{number}", f"c{number}")]
    return messages


def interrupted_parallel_calls() -> list[BaseMessage]:
    """A person writes between the results of two parallel calls, and the cut falls right behind that message."""
    messages = questions(6)
    messages += [calling("ax", ["p1", "p2"]), result("t1", "p1"), HumanMessage("[hx] Hurry up!", id="hx")]
    return [*messages, result("t2", "p2"), AIMessage("[ay] Both are done.", id="ay")]


def calling(name: str, calls: Sequence[str]) -> AIMessage:
    return AIMessage(
        f"[{name}] I look.",
        id=name,
        tool_calls=[{"name": "look", "args": {"path": call}, "id": call} for call in calls],
    )


def result(name: str, call: str) -> ToolMessage:
    return ToolMessage(f"[{name}] " + " ".join(f"row-{name}-{n}" for n in range(60)), tool_call_id=call, id=name)


# ---- faults: (what it is, LangChain's, ours) ----


def lost_tool_loop() -> tuple[Outcome, Outcome]:
    """One request, 100 tool calls: LangChain's trim finds no human message, and asks no model at all."""
    return both(tool_loop(100), trigger=("messages", 100), keep=("messages", 10))


def lost_turns() -> tuple[Outcome, Outcome]:
    """190 evicted messages: LangChain's summarizer sees what fits 4,000 tokens."""
    return both(questions(100), trigger=("messages", 100), keep=("messages", 10))


def blank_summary() -> tuple[Outcome, Outcome]:
    """A blank answer replaces the history in LangChain's."""
    return both(questions(30), answer="   ", trigger=("messages", 40), keep=("messages", 10))


def orphan_result() -> tuple[Outcome, Outcome]:
    """The cut behind a message between parallel results parts the second one from its call."""
    return both(interrupted_parallel_calls(), trigger=("messages", 10), keep=("messages", 3))


def both(messages: Sequence[BaseMessage], answer: str = SUMMARY, **options: Any) -> tuple[Outcome, Outcome]:
    theirs = fold(LangChainsMiddleware, messages, answer, **options)
    return theirs, fold(SummarizationMiddleware, messages, answer, **options)


def counts() -> dict[str, tuple[int, int]]:
    """Tokens by LangChain's count and by ours, of 10,000 Chinese characters and of a PDF of 300 kB in base64."""
    pdf = base64.b64encode(b"%PDF-1.4\n" + bytes(300_000)).decode()
    block = {"type": "file", "base64": pdf, "mime_type": "application/pdf"}
    found = {}
    for name, message in {
        "10,000 Chinese characters": HumanMessage("请把这份合同的要点整理出来并说明理由" * 555 + "请把这份合同的要点"),
        "a PDF of 300 kB": HumanMessage([block]),
    }.items():
        theirs = LangChainsMiddleware(Scripted(), trigger=("messages", 9)).token_counter([message])
        found[name] = (theirs, SummarizationMiddleware(Scripted(), trigger=("messages", 9)).token_counter([message]))
    return found


@tool
def look(path: str) -> str:
    """Look at a file."""
    return "\n".join(f"Line {number} of {path} says that all is well with the house." for number in range(60))


def loop(middleware: Any, calls: int = 30) -> tuple[int, int, int]:
    """An agent that looks at files: how often the prefix was rewritten, originals in the thread, messages sent last."""
    answers: list[Any] = [calling(f"a{number}", [f"c{number}"]) for number in range(calls)]
    model = Scripted(answers=[*answers, "Done."])
    agent = create_agent(model, [look], middleware=[middleware])
    asked: Any = {"messages": [HumanMessage("Look at everything.", id="h")]}
    state = agent.invoke(asked, {"recursion_limit": 10 * calls})
    pairs = zip(model.sent, model.sent[1:], strict=False)
    rewritten = sum(
        1 for before, now in pairs if [m.content for m in now[: len(before)]] != [m.content for m in before]
    )
    return rewritten, len(state["messages"]), len(model.sent[-1])


def main() -> None:
    """Print everything side by side."""
    logging.disable(logging.WARNING)  # the events of the summaries that are meant to fail
    cases: list[Callable[[], tuple[Outcome, Outcome]]] = [lost_tool_loop, lost_turns, blank_summary, orphan_result]
    for case in cases:
        theirs, ours = case()
        print(f"{case.__doc__}\n  LangChain    {theirs}\n  contextfold  {ours}\n")
    for name, (theirs_counted, ours_counted) in counts().items():
        print(f"{name}: LangChain counts {theirs_counted:,} tokens, contextfold {ours_counted:,}")
    print("\nAn agent of 30 tool calls: prefix rewritten, messages in the thread at the end, messages sent last")
    clear = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=4_000, keep=3)])
    trigger: dict[str, Any] = {"trigger": ("tokens", 8_000), "keep": ("messages", 6)}
    for title, middleware in (
        ("LangChain, clearing tool results", clear),
        ("LangChain, summaries", LangChainsMiddleware(Scripted(), **trigger)),
        ("contextfold, drop-in", SummarizationMiddleware(Scripted(), **trigger)),
        ("contextfold, CompactionMiddleware", CompactionMiddleware(window=10_000, summarizer=Scripted())),
    ):
        print(f"  {title:36}{loop(middleware)}")


if __name__ == "__main__":
    main()
