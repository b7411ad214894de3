"""A chat model that says what a test wants and keeps what it was sent, and conversations to send it.

Real in all else: it streams, tells usage if asked to, and is bound to tools like any other model.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from pydantic import Field, PrivateAttr

Answer = str | AIMessage | Exception

SUMMARY = "SUMMARYTOKEN The user asked for the ledger; files were read; the deploy key is k-778."


class ScriptedModel(BaseChatModel):
    """``script(messages, number)`` gives the answer to call ``number``, from 0; an exception is raised."""

    script: Callable[[list[BaseMessage], int], Answer] = Field(default=lambda messages, number: "ok")
    model_name: str = "scripted"
    profile: Any = None
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    bound: list[Any] = Field(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "scripted-chat"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        return self

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        with self._lock:
            number = len(self.sent)
            self.sent.append(list(messages))
        answer = self.script(list(messages), number)
        if isinstance(answer, Exception):
            raise answer
        return AIMessage(answer) if isinstance(answer, str) else answer

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
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
        words = str(answer.content).split(" ")
        for word in words[:-1]:
            chunk = ChatGenerationChunk(message=AIMessageChunk(word + " "))
            if run_manager:
                run_manager.on_llm_new_token(word + " ", chunk=chunk)
            yield chunk
        calls: list[Any] = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": number}
            for number, call in enumerate(answer.tool_calls)
        ]
        last = ChatGenerationChunk(message=AIMessageChunk(words[-1], tool_call_chunks=calls, chunk_position="last"))
        if run_manager:
            run_manager.on_llm_new_token(words[-1], chunk=last)
        yield last


@tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    number = int("".join(filter(str.isdigit, path)) or 0)
    return "\n".join(
        f"{path}:{line} value_{number * 100 + line} = compute({line}, 'row {number}')" for line in range(25)
    )


def calling(path: str, call_id: str) -> AIMessage:
    """An assistant that reads a file."""
    return AIMessage(f"I read {path}.", tool_calls=[{"name": "read_file", "args": {"path": path}, "id": call_id}])


def worker(reads: int) -> Callable[[list[BaseMessage], int], Answer]:
    """An agent's model: for each question it reads so many files, one by one, then it answers."""

    def script(messages: list[BaseMessage], number: int) -> Answer:
        if number % (reads + 1) < reads:
            return calling(f"src/module_{number}.py", f"call_{number}")
        return f"Answer {number}: done with the question."

    return script


def is_ours(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"


PLAIN = (
    *("we", "looked", "at", "the", "old", "house", "and", "found", "that", "every", "room", "was"),
    *("dry", "but", "roof", "still", "wants", "some", "work", "soon"),
)


def talk(turns: int, *, words: int = 240, start: int = 0) -> list[BaseMessage]:
    """A conversation of questions and answers of so many words, with ids."""
    messages: list[BaseMessage] = []
    for turn in range(start, start + turns):
        filler = " ".join(PLAIN[(turn * 7 + word * (1 + turn % 3)) % len(PLAIN)] for word in range(words))
        messages.append(HumanMessage(f"Question {turn}: what about item-{turn}?", id=f"h{turn}"))
        messages.append(AIMessage(f"Item-{turn} lies in src/item_{turn}.py. {filler}.", id=f"a{turn}"))
    return messages


def problems_of(messages: Sequence[BaseMessage]) -> list[str]:
    """What a provider would refuse: a result without its call before it, a call without its results behind it."""
    found: list[str] = []
    waiting: set[str] = set()
    for number, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                found.append(f"message {number}: orphan result {message.tool_call_id}")
            waiting.discard(message.tool_call_id)
            continue
        if waiting:
            found.append(f"message {number}: calls without results {sorted(waiting)}")
            waiting = set()
        if isinstance(message, AIMessage):
            waiting = {str(call["id"]) for call in message.tool_calls}
    return found
