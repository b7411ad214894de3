"""Wire messages as the providers' documentation reads them: the checkers' own eyes.

What belongs here: one small reader per format, and the rules by which a provider refuses a list of messages. What
does not: anything of ``contextfold``. A mistake in a format module must not be able to hide itself from its test.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One wire message. ``calls`` are (id, name); ``results`` are (call id, texts)."""

    role: str
    texts: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()
    results: tuple[tuple[str, tuple[str, ...]], ...] = ()
    reasoning: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Media and everything unknown, as canonical JSON."""
    shown: tuple[str, ...] = ()
    """The same, inside results."""
    row: str | None = None
    text_before_result: bool = False
    unreadable: bool = False
    """It stands for something that no one but the provider can read."""

    @property
    def call_ids(self) -> tuple[str, ...]:
        return tuple(call_id for call_id, _ in self.calls)

    @property
    def result_ids(self) -> tuple[str, ...]:
        return tuple(call_id for call_id, _ in self.results)

    @property
    def is_instruction(self) -> bool:
        return self.role in ("system", "developer")

    @property
    def is_person(self) -> bool:
        """A user message that says or shows something and is not only tool results."""
        return self.role == "user" and (any(text.strip() for text in self.texts) or bool(self.others))

    @property
    def is_empty(self) -> bool:
        filled = self.calls or self.results or self.reasoning or self.others
        return not filled and not any(text.strip() for text in self.texts)


def plain(value: Any) -> Any:
    """A wire object as JSON values, LangChain messages included."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if hasattr(value, "model_dump"):
        return {"class": type(value).__name__, **value.model_dump()}
    return value


def canonical(value: Any) -> str:
    """The same text for the same JSON value, whatever the order of its keys."""
    return json.dumps(plain(value), ensure_ascii=False, sort_keys=True, default=plain)


def as_json(wire: Sequence[Any]) -> str:
    """A whole list, byte for byte: the order of keys counts."""
    return json.dumps([plain(message) for message in wire], ensure_ascii=False, default=plain)


def leaves(value: Any) -> tuple[str, ...]:
    """The strings and numbers inside a JSON value (or JSON text), in order. Text that is no JSON is one leaf."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return (value,)
        return leaves(inner) if isinstance(inner, dict | list) else (value,)
    return tuple(_scalars(value))


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


# ---- readers: one wire object -> Entry --------------------------------------------------------------------------

_TEXT = {"text", "input_text", "output_text"}
_THINKING = {"thinking", "redacted_thinking", "reasoning"}


class _Content:
    """Walks the blocks of a message's content, of whichever format."""

    def __init__(self, content: Any) -> None:
        self.texts: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.arguments: list[str] = []
        self.results: list[tuple[str, tuple[str, ...]]] = []
        self.reasoning: list[str] = []
        self.others: list[str] = []
        self.shown: list[str] = []
        self.named: list[str] = []
        self.text_before_result = False
        if isinstance(content, str):
            self.texts.append(content)
        for block in content if isinstance(content, list) else ():
            self._block(block)

    def _block(self, block: Any) -> None:
        if isinstance(block, str):
            self.texts.append(block)
            return
        kind = block.get("type")
        if kind in _TEXT:
            self.texts.append(block.get("text") or "")
        elif kind == "refusal":
            self.texts.append(block.get("refusal") or "")
        elif kind == "tool_use":
            self.calls.append((block["id"], block["name"]))
            self.arguments.extend(leaves(block.get("input")))
        elif kind == "tool_result":
            self.text_before_result = self.text_before_result or bool(self.texts)
            inner = _Content(block.get("content"))
            self.results.append((block["tool_use_id"], tuple(inner.texts)))
            self.shown.extend(inner.others)
        elif kind in _THINKING:
            self.reasoning.append(canonical(block))
        else:
            self.others.append(canonical(block))

    def entry(self, role: str, **fields: Any) -> Entry:
        values = {
            name: tuple(getattr(self, name))
            for name in ("texts", "calls", "arguments", "results", "reasoning", "others", "shown")
        }
        return Entry(role, **{**values, "text_before_result": self.text_before_result, **fields})


def read_chat(message: Mapping[str, Any]) -> Entry:
    content = _Content(message.get("content"))
    role = str(message.get("role"))
    if role == "tool":
        return Entry(
            "tool", results=((str(message.get("tool_call_id")), tuple(content.texts)),), shown=tuple(content.others)
        )
    if message.get("refusal"):
        content.texts.append(message["refusal"])
    if message.get("reasoning_content"):
        content.reasoning.append(canonical(message["reasoning_content"]))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call.get("custom") or {}
        if isinstance(function, str):  # Inspect: the name, and the arguments beside it
            function = {"name": function, "arguments": call.get("arguments", "")}
        content.calls.append((str(call.get("id")), str(function.get("name"))))
        content.arguments.extend(leaves(function.get("arguments", function.get("input", ""))))
    return content.entry(role, row=message.get("id") if role == "assistant" else None)


def read_anthropic(message: Mapping[str, Any]) -> Entry:
    role = str(message.get("role"))
    return _Content(message.get("content")).entry(role, row=message.get("id") if role == "assistant" else None)


def read_converse(message: Mapping[str, Any]) -> Entry:
    """Blocks are named by their only key. A cache point says nothing."""
    role = str(message.get("role"))
    content = _Content(())
    for block in message.get("content") or ():
        if isinstance(block.get("text"), str):
            content.texts.append(block["text"])
        elif "toolUse" in block:
            content.calls.append((block["toolUse"]["toolUseId"], block["toolUse"]["name"]))
            content.arguments.extend(leaves(block["toolUse"]["input"]))
        elif "toolResult" in block:
            content.text_before_result = content.text_before_result or bool(content.texts)
            inner = block["toolResult"].get("content") or ()
            texts = [one.get("text") or json.dumps(one["json"], ensure_ascii=False) for one in inner if is_read(one)]
            content.results.append((block["toolResult"]["toolUseId"], tuple(texts)))
            content.shown.extend(canonical(one) for one in inner if not is_read(one))
        elif "reasoningContent" in block:
            content.reasoning.append(canonical(block))
        elif "cachePoint" not in block:
            content.others.append(canonical(block))
    return content.entry(role, row=message.get("id") if role == "assistant" else None)


def is_read(block: Mapping[str, Any]) -> bool:
    return "text" in block or "json" in block


def read_responses(item: Mapping[str, Any]) -> Entry:
    kind = item.get("type", "message")
    if kind == "message":
        return _Content(item.get("content")).entry(str(item.get("role")))
    if kind in ("function_call", "custom_tool_call"):
        given = leaves(item.get("arguments", item.get("input", "")))
        return Entry("assistant", calls=((item["call_id"], item["name"]),), arguments=given)
    if kind in ("function_call_output", "custom_tool_call_output"):
        content = _Content(item.get("output"))
        return Entry("tool", results=((item["call_id"], tuple(content.texts)),), shown=tuple(content.others))
    if kind == "reasoning":
        return Entry("assistant", reasoning=(canonical(item),))
    return Entry("assistant", others=(canonical(item),), unreadable=kind.startswith("compaction"))


_LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system"}


def read_langchain(message: Any) -> Entry:
    """A message object, or the dictionary that one of LangChain's own serializations makes of it."""
    data = message.model_dump() if hasattr(message, "model_dump") else message
    kind = data.get("type")
    inner = data.get("data") if isinstance(data.get("data"), dict) else data.get("kwargs") or data
    kind = inner.get("type", kind)
    if kind == "constructor":
        kind = {"HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system"}.get(data["id"][-1], "tool")
    content = _Content(inner.get("content"))
    if kind == "tool":
        results = ((str(inner.get("tool_call_id")), tuple(content.texts)),)
        return Entry("tool", results=results, shown=tuple(content.others))
    role = _LANGCHAIN_ROLES.get(kind, kind)
    known = {call_id for call_id, _ in content.calls}
    for call in inner.get("tool_calls") or ():
        if call.get("id") not in known:
            content.calls.append((str(call.get("id")), str(call.get("name"))))
            content.arguments.extend(leaves(call.get("args")))
    if (hidden := (inner.get("additional_kwargs") or {}).get("reasoning_content")) is not None:
        content.reasoning.append(canonical(hidden))
    return content.entry(str(role), row=inner.get("id") if role == "assistant" else None)


def read_gemini(content: Any) -> Entry:
    """A content of Gemini's API: calls and results without an id are paired by name and place."""
    parts = content.get("parts") or []
    role = {"model": "assistant", "system": "system"}.get(content.get("role"), "user")
    found = _Content(None)
    for part in parts:
        _read_part(part, found)
    return found.entry(role, row=content.get("id") if role == "assistant" else None)


def _read_part(part: Mapping[str, Any], found: _Content) -> None:
    if "functionCall" in part:
        call = part["functionCall"]
        found.calls.append((_placed(call, [name for _, name in found.calls]), call["name"]))
        found.arguments.extend(leaves(call.get("args")))
    elif "functionResponse" in part:
        answer = part["functionResponse"]
        found.text_before_result = found.text_before_result or bool(found.texts)
        found.named.append(answer["name"])
        said = answer.get("response") or {}
        texts = tuple(said.values()) if len(said) == 1 and isinstance(next(iter(said.values())), str) else None
        texts = texts or ((json.dumps(said, ensure_ascii=False),) if said else ())
        found.results.append((_placed(answer, found.named[:-1]), texts))
        found.shown.extend(canonical(inner) for inner in answer.get("parts") or ())
    elif part.get("thought") or set(part) == {"thoughtSignature"}:
        found.reasoning.append(canonical(part))
    elif isinstance(part.get("text"), str):
        found.texts.append(part["text"])
    else:
        found.others.append(canonical(part))


def _placed(held: Mapping[str, Any], before: Sequence[str]) -> str:
    """The id of a call or result, or its name, with its place among those of that name."""
    if held.get("id"):
        return str(held["id"])
    place = 1 + list(before).count(held["name"])
    return held["name"] if place == 1 else f"{held['name']}#{place}"


READERS: Mapping[str, Callable[[Any], Entry]] = {
    "openai-chat": read_chat,
    "openai-responses": read_responses,
    "anthropic": read_anthropic,
    "langchain": read_langchain,
    "gemini": read_gemini,
    "bedrock-converse": read_converse,
}


def read(format: str, wire: Sequence[Any]) -> list[Entry]:
    return [READERS[format](message) for message in wire]


# ---- what a provider refuses ------------------------------------------------------------------------------------

Fault = tuple[str, str]  # what is wrong, call id

TAKE_TURNS = ("anthropic", "gemini", "bedrock-converse")
"""Formats in which neighbors of one role are one turn."""


def refusals(format: str, entries: Sequence[Entry]) -> Counter[Fault]:
    """Why a provider would refuse these messages: results that do not follow their call, calls without result.

    Calls of the last turn of the model may still wait. Sources: OpenAI ("an assistant message with 'tool_calls' must be
    followed by tool messages responding to each 'tool_call_id'"; "No tool output found for function call"), Anthropic
    ("tool_use ids were found without tool_result blocks immediately after"; "unexpected tool_use_id").
    """
    if format == "openai-responses":
        return _anywhere_after(entries)
    return _directly_after(_coalesced(entries) if format in TAKE_TURNS else list(entries))


def _anywhere_after(entries: Sequence[Entry]) -> Counter[Fault]:
    found: Counter[Fault] = Counter()
    waiting: dict[str, int] = {}  # call id -> place of the call
    last_turn = _last_turn_starts(entries)
    for place, entry in enumerate(entries):
        for call_id in entry.call_ids:
            if call_id in waiting:
                found["call without result", call_id] += 1
            waiting[call_id] = place
        for call_id in entry.result_ids:
            if waiting.pop(call_id, None) is None:
                found["result without call before it", call_id] += 1
    found.update(("call without result", call_id) for call_id, place in waiting.items() if place < last_turn)
    return found


def _last_turn_starts(entries: Sequence[Entry]) -> int:
    """Where the last unbroken run of entries of the model starts: its calls may wait for their results."""
    place = len(entries) - 1
    while place >= 0 and entries[place].role != "assistant":
        place -= 1
    while place > 0 and entries[place - 1].role == "assistant":
        place -= 1
    return place


def _coalesced(entries: Sequence[Entry]) -> list[Entry]:
    """Neighbors of one role as one: the provider joins them, and takes instructions out of the list."""
    joined: list[Entry] = []
    for entry in entries:
        if entry.is_instruction:
            continue
        if joined and joined[-1].role == entry.role:
            last = joined[-1]
            joined[-1] = Entry(
                entry.role,
                last.texts + entry.texts,
                last.calls + entry.calls,
                results=last.results + entry.results,
                text_before_result=last.text_before_result
                or entry.text_before_result
                or bool(entry.results and any(text.strip() for text in last.texts)),
            )
        else:
            joined.append(entry)
    return joined


def _directly_after(entries: Sequence[Entry]) -> Counter[Fault]:
    found: Counter[Fault] = Counter()
    open_calls: Counter[str] = Counter()
    for entry in entries:
        if entry.text_before_result:
            found["text before a result", ",".join(entry.result_ids)] += 1
        for call_id in entry.result_ids:
            if open_calls[call_id] > 0:
                open_calls[call_id] -= 1
            else:
                found["result without call before it", call_id] += 1
        if entry.role == "tool":
            continue
        for call_id in (+open_calls).elements():
            # whatever follows, a result can no longer come; but at the end of the list it still may
            found["call without result", call_id] += 1
        open_calls = Counter(entry.call_ids)
    return found


# ---- what only one provider refuses -----------------------------------------------------------------------------


def rule_breaks(format: str, messages: Sequence[Any]) -> Counter[str]:
    """What one provider refuses whatever is paired: the rules of its roles, contents and ids.

    Sources: Anthropic ("`tool_use` ids must be unique", "text content blocks must contain non-whitespace text", "first
    message must use the "user" role"), OpenAI ("expected a string, got null", "empty array", "No tool call found for
    custom tool call output").
    """
    finders = {
        "anthropic": _anthropic_breaks,
        "openai-chat": _chat_breaks,
        "openai-responses": _responses_breaks,
        "gemini": _gemini_breaks,
        "bedrock-converse": _converse_breaks,
    }
    return Counter(finders[format](messages)) if format in finders else Counter()


def _anthropic_breaks(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    begun = False
    for message in messages:
        if message["role"] == "system":
            if begun:
                yield "an instruction behind other messages"
            continue
        if not begun and message["role"] != "user":
            yield "the assistant speaks first"
        begun = True
        content = message["content"]
        if not content or (isinstance(content, str) and not content.strip()):
            yield "a message that says nothing"
        for block in content if isinstance(content, list) else ():
            yield from _block_breaks(block, seen)


def _block_breaks(block: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    inner = block.get("content") if block.get("type") == "tool_result" else ()
    for text in (block, *(inner if isinstance(inner, list) else ())):
        if text.get("type") == "text" and not text["text"].strip():
            yield "a blank text"
    if block.get("type") == "tool_use":
        if block["id"] in seen:
            yield f"the call id {block['id']} again"
        if not re.fullmatch("[a-zA-Z0-9_-]+", block["id"]):
            yield f"the call id {block['id']}"
        seen.add(block["id"])


def _converse_breaks(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sources: the Converse API's reference, and its ValidationExceptions ("The text field in the ContentBlock object
    at messages.0.content.0 is blank"). That roles alternate is looked at where a view is sent.
    """
    seen: set[str] = set()
    begun = False
    for message in messages:
        if message["role"] == "system":
            if begun:
                yield "an instruction behind other messages"
            continue
        if not begun and message["role"] != "user":
            yield "the assistant speaks first"
        begun = True
        content = message["content"]
        if not isinstance(content, list) or all("cachePoint" in block for block in content):
            yield "a message that says nothing"
        if any("document" in block for block in content) and not any("text" in block for block in content):
            yield "a document without words"
        for block in content:
            inner = block["toolResult"]["content"] if "toolResult" in block else ()
            if any("text" in text and not text["text"].strip() for text in (block, *inner)):
                yield "a blank text"
            if (call_id := block.get("toolUse", {}).get("toolUseId")) is not None:
                if call_id in seen:
                    yield f"the call id {call_id} again"
                if not re.fullmatch("[a-zA-Z0-9_.:-]{1,64}", call_id):
                    yield f"the call id {call_id}"
                seen.add(call_id)


def _chat_breaks(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        if message.get("role") != "assistant" and message.get("content") in (None, []):
            yield "a message that says nothing"
        if message.get("tool_calls") == []:
            yield "an empty list of calls"


def _gemini_breaks(contents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Roles, empty contents and texts, and who begins; Vertex AI: "must include at least one parts field"."""
    begun = False
    for content in contents:
        if content.get("role") == "system":
            if begun:
                yield "an instruction behind other contents"
            continue
        if not begun and content.get("role") != "user":
            yield "the model speaks first"
        begun = True
        if not content.get("parts"):
            yield "a content that says nothing"
        for part in content.get("parts") or ():
            if part.get("text") == "" and len(part) == 1:
                yield "a text of no characters"


def _responses_breaks(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """An output stands behind a call of its own kind with its id."""
    called: set[tuple[str, str]] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            called.add((kind, item["call_id"]))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if (kind.removesuffix("_output"), item["call_id"]) not in called:
                yield f"a {kind} without its call"
        elif kind == "message" and item.get("content") is None:
            yield "a message that says nothing"
