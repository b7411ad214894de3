"""Chat dictionaries to LangChain's messages and back, and the model that its middlewares want to see."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.replay import tokens
from benchmarks.replay.chat import Message, calls, content_text

_ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


class Bridge:
    """Converts each message once, and gives the very same dictionary back for an unchanged message."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Message, BaseMessage]] = {}  # id(dictionary) -> dictionary, message
        self._origin: dict[int, Message] = {}  # id(message) -> dictionary
        self._by_id: dict[str, tuple[BaseMessage, Message]] = {}
        self._counts: dict[int, tuple[BaseMessage, int]] = {}

    def incoming(self, messages: list[Message]) -> list[BaseMessage]:
        """LangChain's messages for dictionaries."""
        return [self._incoming(message) for message in messages]

    def _incoming(self, message: Message) -> BaseMessage:
        if id(message) not in self._made:
            message_id = f"m{len(self._made)}"
            made = _to_langchain(message, message_id)
            self._made[id(message)] = message, made
            self._origin[id(made)] = message
            self._by_id[message_id] = made, message
        return self._made[id(message)][1]

    def outgoing(self, messages: list[BaseMessage]) -> list[Message]:
        """Dictionaries for LangChain's messages: the ones that came in, wherever nothing changed."""
        return [self._outgoing(message) for message in messages]

    def _outgoing(self, message: BaseMessage) -> Message:
        if id(message) in self._origin:
            return self._origin[id(message)]
        made, origin = self._by_id.get(message.id or "", (None, None))
        if made is not None and origin is not None and _same(made, message):
            return origin  # a copy
        return _to_chat(message)

    def tokens(self, messages: list[BaseMessage]) -> int:
        """Tokens by the benchmark's own tokenizer."""
        return sum(self._tokens(message) for message in messages)

    def _tokens(self, message: BaseMessage) -> int:
        known = self._counts.get(id(message))
        if known is None or known[0] is not message:
            known = self._counts[id(message)] = message, tokens.message_tokens(self._outgoing(message))
        return known[1]


def stub_model(window: int) -> FakeListChatModel:
    """Only its profile is read; it is never asked anything."""
    return FakeListChatModel(responses=["unused"], profile={"max_input_tokens": window})


def _same(one: BaseMessage, other: BaseMessage) -> bool:
    return one.content == other.content and getattr(one, "tool_calls", None) == getattr(other, "tool_calls", None)


def _to_langchain(message: Message, message_id: str) -> BaseMessage:
    role, content = message["role"], message.get("content") or ""
    if role == "system":
        return SystemMessage(content, id=message_id)
    if role == "user":
        return HumanMessage(content, id=message_id)
    if role == "tool":
        return ToolMessage(content, tool_call_id=message["tool_call_id"], name=message.get("name"), id=message_id)
    used: list[Any] = [{"id": i, "name": n, "args": json.loads(a), "type": "tool_call"} for i, n, a in calls(message)]
    return AIMessage(content, tool_calls=used, id=message_id)


def _to_chat(message: BaseMessage) -> Message:
    content: Any = message.content
    if isinstance(content, list) and all(isinstance(block, str) or block.get("type") == "text" for block in content):
        content = content_text(content)
    chat: Message = {"role": _ROLES[message.type], "content": content}
    if isinstance(message, ToolMessage):
        chat["tool_call_id"] = message.tool_call_id
    if isinstance(message, AIMessage) and message.tool_calls:
        chat["tool_calls"] = [_call(call) for call in message.tool_calls]
    return chat


def _call(call: Any) -> dict[str, Any]:
    arguments = json.dumps(call["args"], ensure_ascii=False)
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}
