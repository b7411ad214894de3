"""The same conversations through deepagents' own summarization and through contextfold's, side by side.

    python examples/side_by_side_deepagents.py

Only the chat models are scripted; everything else is the installed deepagents: ``create_deep_agent``, a backend on a
real folder, a checkpointer. For each conversation it says which of the evicted messages the summarizer was shown,
whether a provider would take what was sent, how large that was, and what was paid for and written.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgentsMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

import contextfold
from contextfold.integrations.deepagents import SummarizationMiddleware

SUMMARY = "The user asked about many items; each answer named a file."
CLASSES: tuple[type, ...] = (DeepAgentsMiddleware, SummarizationMiddleware)


class Scripted(BaseChatModel):
    """Gives ``answers`` one after the other, the last one again and again; raises those that are exceptions."""

    answers: list[Any] = Field(default_factory=lambda: ["Done."])
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    longest: int | None = None
    """Characters; a longer prompt is refused as too long."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        answer = self.answers[min(len(self.sent), len(self.answers) - 1)]
        self.sent.append(messages)
        length = sum(len(str(message.content)) for message in messages)
        if self.longest is not None and length > self.longest:
            raise ContextOverflowError(f"prompt is too long: {length // 4} tokens > {self.longest // 4} maximum")
        if isinstance(answer, Exception):
            raise answer
        message = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])


@dataclass(frozen=True)
class Outcome:
    """What became of a conversation. ``shown`` of ``evicted``: messages whose text a summarizer was sent."""

    evicted: int
    shown: int
    problems: tuple[str, ...]
    tokens: int
    summaries: int
    sections: int
    archived: int
    """Evicted messages whose text is in the history file."""
    task: bool
    """Whether the newest request of the user was sent, word for word."""
    summary: str

    def __str__(self) -> str:
        problems = self.problems[0] if self.problems else "valid"
        return (
            f"{self.shown}/{self.evicted} evicted seen, {problems}, {self.tokens:,} tokens sent, {self.summaries} "
            f"summary request(s), {self.sections} section(s) with {self.archived}/{self.evicted}, newest request "
            f"{'sent' if self.task else 'LOST'}, summary {self.summary[:44]!r}"
        )


def run(
    middleware: type, rounds: Sequence[Sequence[BaseMessage]], main: Scripted, paid: Scripted, **options: Any
) -> Any:
    """(messages of the thread, what was written) after each round was sent to one deep agent."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        agent = create_deep_agent(
            main,
            backend=backend,
            middleware=[middleware(paid, backend=backend, **options)],
            checkpointer=InMemorySaver(),
        )
        thread: Any = {"configurable": {"thread_id": "t"}}
        for messages in rounds:
            with suppress(ConnectionError, ContextOverflowError):
                agent.invoke({"messages": list(messages)} if messages else None, thread)
        history = "".join(file.read_text() for file in sorted(Path(folder).rglob("*.md")))
        return agent.get_state(thread).values["messages"], history


def outcome(middleware: type, rounds: Sequence[Sequence[BaseMessage]], **options: Any) -> Outcome:
    """What one class makes of a conversation."""
    main = options.pop("main", None) or Scripted()
    paid = options.pop("paid", None) or Scripted(answers=[SUMMARY])
    given, history = run(middleware, rounds, main, paid, **options)
    sent = main.sent[-1] if main.sent else []
    kept = {message.id for message in sent}
    text_sent = "\n".join(str(message.text) for message in sent)
    quoted = {m.id for m in given if isinstance(m, HumanMessage) and str(m.text) in text_sent}
    evicted = [message for message in given[:-1] if message.id not in kept | quoted] if sent else []
    prompts = "\n".join(str(message.content) for call in paid.sent for message in call)
    summaries = [str(m.text) for m in sent if m.additional_kwargs.get("lc_source") == "summarization"]
    newest = next(message for message in reversed(given) if isinstance(message, HumanMessage))
    return Outcome(
        evicted=len(evicted),
        shown=sum(f"[{message.id}]" in prompts for message in evicted),
        problems=tuple(problems_of(sent)) if sent else ("STUCK: the model was never called",),
        tokens=contextfold.count_tokens(sent),
        summaries=len(paid.sent),
        sections=history.count("## Summarized at "),
        archived=sum(f"[{message.id}]" in history for message in evicted),
        task=str(newest.text) in text_sent,
        summary=summaries[0].rpartition("<summary>\n")[2].partition("</summary>")[0].strip() if summaries else "",
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


# ---- conversations: every message names itself, so that it can be found in a prompt or a file ----


def questions(turns: int, start: int = 0) -> list[BaseMessage]:
    """A person asks, the assistant answers; a person asks last."""
    messages: list[BaseMessage] = []
    for turn in range(start, start + turns):
        words = " ".join(f"fact-{turn}-{word}" for word in range(40))
        messages.append(HumanMessage(f"[h{turn}] What about item {turn}?", id=f"h{turn}"))
        messages.append(AIMessage(f"[a{turn}] It is in src/item_{turn}.py. {words}", id=f"a{turn}"))
    return [*messages, HumanMessage(f"[q{start}] And what is left?", id=f"q{start}")]


def tool_loop(calls: int) -> list[BaseMessage]:
    """One request, and then nothing but tool calls."""
    messages: list[BaseMessage] = [HumanMessage("[h0] Clean up the repository, and never touch /etc.", id="h0")]
    for number in range(calls):
        words = " ".join(f"row-{number}-{n}" for n in range(60))
        call = {"name": "read_file", "args": {"file_path": f"/src/{number}.py"}, "id": f"c{number}"}
        messages.append(AIMessage(f"[a{number}] I look.", id=f"a{number}", tool_calls=[call]))
        messages.append(ToolMessage(f"[t{number}] {words}", tool_call_id=f"c{number}", id=f"t{number}"))
    return messages


def interrupted_parallel_calls() -> list[BaseMessage]:
    """A person writes between the results of two parallel calls, and the cut falls right behind that message."""
    calls = [{"name": "look", "args": {"path": call}, "id": call} for call in ("p1", "p2")]
    return [
        *questions(6)[:-1],
        AIMessage("[ax] I look.", id="ax", tool_calls=calls),
        ToolMessage("[t1] row", tool_call_id="p1", id="t1"),
        HumanMessage("[hx] Hurry up!", id="hx"),
        ToolMessage("[t2] row", tool_call_id="p2", id="t2"),
        AIMessage("[ay] Both are done.", id="ay"),
    ]


def file_writing(shape: str, turns: int = 12) -> list[BaseMessage]:
    """Files are written; each call is stated in ``tool_calls``, or in a content block besides, as Anthropic has it."""
    messages: list[BaseMessage] = [HumanMessage("[h0] Write the modules.", id="h0")]
    for turn in range(turns):
        arguments = {"file_path": f"/src/{turn}.py", "content": f"value_{turn} = 1\n" * 300}
        call = {"name": "write_file", "args": arguments, "id": f"c{turn}"}
        block = {"type": "tool_use", "name": "write_file", "input": arguments, "id": f"c{turn}"}
        content: Any = [block] if shape == "anthropic" else ""
        messages.append(AIMessage(content, id=f"a{turn}", tool_calls=[call]))
        messages.append(ToolMessage("written", tool_call_id=f"c{turn}", id=f"t{turn}"))
    return messages


# ---- faults: (deepagents', ours) ----


def both(rounds: Sequence[Sequence[BaseMessage]], **options: Any) -> tuple[Outcome, Outcome]:
    """What both classes make of it; models come from functions, so that each class has its own."""

    def made(middleware: type) -> Outcome:
        models = {key: options[key]() for key in ("main", "paid") if key in options}
        return outcome(middleware, rounds, **{**options, **models})

    theirs, ours = (made(middleware) for middleware in CLASSES)
    return theirs, ours


def lost_turns() -> tuple[Outcome, Outcome]:
    """190 evicted messages: with the class's defaults, deepagents' summarizer sees what fits 4,000 tokens."""
    return both([questions(100)], trigger=("messages", 100), keep=("messages", 11))


def tool_loop_behind_one_request() -> tuple[Outcome, Outcome]:
    """One request, 100 tool calls: in deepagents' the trim finds no human message, and the request is gone."""
    return both([tool_loop(100)], trigger=("messages", 100), keep=("messages", 10))


def blank_summary() -> tuple[Outcome, Outcome]:
    """A blank answer takes the place of the history in deepagents'."""
    blank = lambda: Scripted(answers=["   "])  # noqa: E731
    return both(
        [questions(30)], paid=blank, trigger=("messages", 40), keep=("messages", 11), trim_tokens_to_summarize=None
    )


def orphan_result() -> tuple[Outcome, Outcome]:
    """The cut behind a message between parallel results parts the second one from its call."""
    return both([interrupted_parallel_calls()], trigger=("messages", 10), keep=("messages", 3))


def three_attempts() -> tuple[Outcome, Outcome]:
    """The model fails twice after the summary: deepagents pays three summaries and writes three sections."""
    failing = lambda: Scripted(answers=[ConnectionError("gone"), ConnectionError("gone"), "Done."])  # noqa: E731
    size: dict[str, Any] = {"trigger": ("messages", 40), "keep": ("messages", 11), "trim_tokens_to_summarize": None}
    return both([questions(30), [], []], main=failing, **size)


def summarizer_overflow() -> tuple[Outcome, Outcome]:
    """The summarizer takes 6,000 characters: deepagents cuts the middle out once, and then gives up."""
    small = lambda: Scripted(answers=[SUMMARY], longest=6_000)  # noqa: E731
    return both(
        [questions(60)], paid=small, trigger=("messages", 40), keep=("messages", 11), trim_tokens_to_summarize=None
    )


def truncation(shape: str) -> tuple[int, int]:
    """Tokens, as LangChain counts them, that truncated arguments take off what is sent: deepagents' class, and ours."""
    settings = {"trigger": ("messages", 4), "keep": ("messages", 4)}
    found = []
    for middleware in CLASSES:
        sizes = []
        for given in (None, settings):
            main = Scripted()
            run(middleware, [file_writing(shape)], main, Scripted(), truncate_args_settings=given)
            sizes.append(count_tokens_approximately(main.sent[-1]))
        found.append(sizes[0] - sizes[1])
    return found[0], found[1]


def rewritten_prefixes(middleware: type, calls: int = 30) -> int:
    """How often what was sent before is not the beginning of what is sent next, in a loop that writes files."""
    messages = file_writing("openai", calls)
    answers = [message for message in messages if isinstance(message, AIMessage)]
    main = Scripted(answers=[*answers, "Done."])
    settings = {"trigger": ("messages", 10), "keep": ("messages", 10)}
    run(middleware, [messages[:1]], main, Scripted(), truncate_args_settings=settings)
    sent = [[str(getattr(m, "tool_calls", "")) + str(m.content) for m in call] for call in main.sent]
    return sum(1 for before, now in pairwise(sent) if now[: len(before)] != before)


def main() -> None:
    """Print everything side by side."""
    logging.disable(logging.ERROR)  # the events of the summaries that are meant to fail
    cases: list[Callable[[], tuple[Outcome, Outcome]]] = [
        lost_turns,
        tool_loop_behind_one_request,
        blank_summary,
        orphan_result,
        three_attempts,
        summarizer_overflow,
    ]
    for case in cases:
        theirs, ours = case()
        print(f"{case.__doc__}\n  deepagents   {theirs}\n  contextfold  {ours}\n")
    print("Truncated arguments: tokens saved (deepagents, contextfold)")
    for shape in ("openai", "anthropic"):
        print(f"  {shape:36}{truncation(shape)}")
    print("\nAn agent that writes 30 files: how often a prefix was rewritten")
    for middleware in CLASSES:
        print(f"  {middleware.__module__.split('.')[0]:36}{rewritten_prefixes(middleware)}")


if __name__ == "__main__":
    main()
