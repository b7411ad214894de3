"""A chat model that says what a test wants, and deep agents that run on it. All else is the real framework."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field, PrivateAttr

Answer = str | AIMessage | Exception

SUMMARY = "SUMMARYTOKEN The user asked about many items; the deploy key is k-778."


class ScriptedModel(BaseChatModel):
    """``script(messages, number)`` gives the answer to call ``number``, from 0; an exception is raised."""

    script: Callable[[list[BaseMessage], int], Answer] = Field(default=lambda messages, number: "ok")
    model_name: str = "scripted"
    profile: Any = None
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "scripted-chat"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> ScriptedModel:
        return self

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        with self._lock:
            number = len(self.sent)
            self.sent.append(list(messages))
        answer = self.script(list(messages), number)
        if isinstance(answer, Exception):
            raise answer
        return AIMessage(answer) if isinstance(answer, str) else answer

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    async def _agenerate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        for word in str(answer.content).split(" "):
            chunk = ChatGenerationChunk(message=AIMessageChunk(word + " "))
            if run_manager:
                run_manager.on_llm_new_token(word + " ", chunk=chunk)
            yield chunk


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


def problems_of(messages: Sequence[BaseMessage]) -> list[str]:
    """What a provider would refuse: results without their call before them, calls without all their results."""
    problems: list[str] = []
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                problems.append(f"orphan result {message.tool_call_id}")
            waiting.discard(message.tool_call_id)
        elif waiting:
            problems.append(f"{message.type} message before results {sorted(waiting)}")
            waiting = set()
        if isinstance(message, AIMessage):
            waiting = {str(call["id"]) for call in message.tool_calls}
    return problems
