"""A conversation that can be replayed: messages that any provider and any strategy would accept.

Whatever ``contextfold.transcripts`` reads is brought into one shape: one leading system message at most, every result
directly behind the call that it answers, unique call ids, arguments that are JSON objects, no empty messages. Hidden
reasoning is left out, because providers do not want that of others back, and so are results that no call asked for.

What belongs here: that shape. What does not: reading files (``collect``), and what is measured (``recording``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from benchmarks.replay.chat import Message, content_text
from contextfold import messages as model
from contextfold.inspector.words import INJECTED

CHINESE_SHARE = 0.2
"""Share of letters that are Chinese from which on a conversation counts as Chinese; file contents are often English."""

_LETTER = re.compile(r"[^\W\d_]")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")


@dataclass(frozen=True)
class Conversation:
    """``name`` is its place (file, and number in the file); ``source`` the folder or collection it came from."""

    name: str
    source: str
    messages: tuple[Message, ...]

    @cached_property
    def first_user(self) -> int | None:
        """Index of the first message that a person wrote."""
        for index, message in enumerate(self.messages):
            if message["role"] == "user" and not content_text(message["content"]).lstrip().startswith(INJECTED):
                return index
        return None

    @cached_property
    def digest(self) -> str:
        """A hash of what was said: equal conversations have equal digests, wherever they stand."""
        text = json.dumps(self.messages, ensure_ascii=False, sort_keys=True)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

    @cached_property
    def has_tools(self) -> bool:
        """Whether a tool was ever called."""
        return any(message["role"] == "tool" for message in self.messages)

    @cached_property
    def is_chinese(self) -> bool:
        """Whether people and the agent speak Chinese in it; tool outputs do not count."""
        said = "".join(content_text(m["content"])[:5_000] for m in self.messages if m["role"] in ("user", "assistant"))
        chinese, kana = len(_CHINESE.findall(said)), len(_KANA.findall(said))
        return chinese > CHINESE_SHARE * len(_LETTER.findall(said)) and kana < 0.1 * chinese


def build(name: str, source: str, messages: Iterable[model.Message]) -> Conversation:
    """A conversation from decoded messages of any format."""
    builder = _Builder()
    for message in messages:
        builder.add(message)
    return Conversation(name, source, tuple(builder.finished()))


@dataclass
class _Turn:
    """A message and the results of its calls, by call id."""

    message: Message
    results: dict[str, Message] = field(default_factory=dict)
    open: bool = False
    """An entry of a split assistant turn: the next one may still belong to it."""


class _Builder:
    """Puts turns together in the order in which they began, each result with its call."""

    def __init__(self) -> None:
        self._system: list[str] = []
        self._turns: list[_Turn] = []
        self._waiting: dict[str, tuple[_Turn, str]] = {}  # id as it came -> turn that called, id as it is here
        self._used: set[str] = set()

    def add(self, message: model.Message) -> None:
        if message.is_instruction:
            self._instruct(message)
        for result in message.tool_results:
            self._answer(result)
        if message.role == "user":
            self._say(_content(message.parts))
        elif message.role == "assistant":
            self._act(message)

    def finished(self) -> list[Message]:
        joined = "\n\n".join(self._system)
        found: list[Message] = [{"role": "system", "content": joined}] if joined else []
        for turn in self._turns:
            found.append(turn.message)
            found += [
                turn.results[call["id"]] for call in turn.message.get("tool_calls", ()) if call["id"] in turn.results
            ]
        return found

    def _instruct(self, message: model.Message) -> None:
        """Later instructions become user messages: chat formats take only leading ones."""
        if not message.text.strip():
            return
        if self._turns:
            self._turns.append(_Turn({"role": "user", "content": f"<system>\n{message.text}\n</system>"}))
        else:
            self._system.append(message.text)

    def _say(self, content: Any) -> None:
        if content:
            self._turns.append(_Turn({"role": "user", "content": content}))

    def _answer(self, result: model.ToolResult) -> None:
        turn, call_id = self._waiting.pop(result.call_id, (None, ""))
        if turn is not None:
            name = {"name": result.name} if result.name else {}
            content = _content(result.content)
            turn.results[call_id] = {"role": "tool", "tool_call_id": call_id, **name, "content": content}

    def _act(self, message: model.Message) -> None:
        content = _content(message.parts)
        if not content and not message.tool_calls:
            return
        turn = self._turns[-1] if self._turns else None
        if turn is None or not (turn.open and message.split) or turn.results:
            turn = _Turn({"role": "assistant", "content": ""}, open=message.split)
            self._turns.append(turn)
        turn.message["content"] = _joined(turn.message["content"], content)
        for call in message.tool_calls:
            self._call(turn, call)

    def _call(self, turn: _Turn, call: model.ToolCall) -> None:
        unique = call.id or f"call_{len(self._used)}"
        while unique in self._used:
            unique += "x"
        self._used.add(unique)
        function = {"name": call.name or "tool", "arguments": _arguments(call.arguments)}
        turn.message.setdefault("tool_calls", []).append({"id": unique, "type": "function", "function": function})
        self._waiting[call.id] = turn, unique


def _content(parts: Sequence[model.Part]) -> Any:
    """Text where there is no image, else blocks; empty where nothing can be read or seen."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, model.Text | model.Opaque) and part.text.strip():
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, model.Media):
            blocks.append(_medium(part))
    if any(block["type"] != "text" for block in blocks):
        return blocks
    return "\n".join(block["text"] for block in blocks)


def _medium(part: model.Media) -> dict[str, Any]:
    if part.kind != "image":
        return {"type": "text", "text": f"[{part.kind}: {part.media_type or part.url or 'attached'}]"}
    url = part.url or f"data:{part.media_type or 'image/png'};base64,{part.data or ''}"
    return {"type": "image_url", "image_url": {"url": url}}


def _joined(before: Any, after: Any) -> Any:
    if not before or not after:
        return before or after or ""
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n{after}"
    blocks = [part if isinstance(part, list) else [{"type": "text", "text": part}] for part in (before, after)]
    return blocks[0] + blocks[1]


def _arguments(text: str) -> str:
    """Always the JSON text of an object, written one way."""
    value: Any = text
    with suppress(ValueError):  # free text of a custom tool stays what it is
        value = json.loads(text)
    if not isinstance(value, dict):
        value = {"input": value} if value not in (None, "") else {}
    return json.dumps(value, ensure_ascii=False)
