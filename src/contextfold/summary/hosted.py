"""What a message says and does beside its texts and calls: tools that the provider ran itself, words that were spoken.

What belongs here: such blocks of every provider and framework, as calls, results and words. What does not: what a
summary tells of them (``extractive_facts``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from contextfold import json_values
from contextfold.errors import held
from contextfold.formats.gemini_shapes import get, snake
from contextfold.messages import Message, Opaque, Text, ToolCall, ToolResult

_HOSTED_CALLS = ("_tool_use", "server_tool_call", "-tool-call", "toolCall", "executableCode", "toolUse")
"""How the types of blocks end that say what a provider's own tool is called with: Anthropic, LangChain, pydantic-ai,
Gemini, Bedrock. An item of OpenAI's holds what the tool gave as well."""

_AROUND_NAMES = re.compile(r"_call$|^executable")
"""What the type of a part has beside the name of its tool."""

_IDS = ("id", "tool_call_id", "toolUseId")
_ARGUMENTS = ("input", "args", "arguments", "action", "queries", "code")
_ALOUD = ("audio", "speech")
"""Types of what was spoken, whose text is its transcript: Chat Completions, pydantic-ai."""

_FAILED = ("error", "failed", "denied", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED")
_TELLS = re.compile(r"code|mcp|tool-return|^server_tool_result")
"""In the type of what came of it: words of a tool. A page or what a search found is read as no failure."""


def answered(message: Message) -> str:
    """What the assistant said: in words, aloud, and what Bedrock gives with citations, without what they cite."""
    said: list[str] = []
    for part in message.parts:
        if isinstance(part, Opaque) and part.label == "citationsContent":
            blocks = _field(_fields(part), "content")
            words = (_field(block, "text") for block in (blocks if isinstance(blocks, list) else ()))
            said += [word for word in words if isinstance(word, str)]
        elif isinstance(part, Text) or (isinstance(part, Opaque) and part.label in _ALOUD):
            said.append(part.text)
    return "\n".join(said)


def acted(message: Message) -> Iterator[ToolCall | ToolResult]:
    """The calls and results of a message, those of tools that the provider ran itself among them."""
    code = ""
    for part in message.parts:
        if isinstance(part, ToolCall | ToolResult):
            yield part
        elif isinstance(part, Opaque) and (part.is_output or part.label.endswith(_HOSTED_CALLS)):
            for one in _hosted(part, code):
                yield one
                code = one.id if isinstance(one, ToolCall) else code


def _hosted(part: Opaque, code: str) -> Iterator[ToolCall | ToolResult]:
    """``code``: the id of the call before it, which an output of Gemini's code belongs to."""
    kind, source = part.label, _fields(part)
    is_item = kind.endswith("_call") and part.is_output
    own = str(_field(source, *_IDS) or part.text)
    if is_item or not part.is_output:
        given = _field(source, *_ARGUMENTS)
        name = str(_field(source, "name", "tool_name", "toolType", "tool_type") or _AROUND_NAMES.sub("", kind).lower())
        arguments = given if isinstance(given, str) else json_values.write(given, default=str) if given else part.text
        yield ToolCall(own, name, "" if arguments == name else arguments)
    is_code = kind == "codeExecutionResult"
    caused = own if is_item else code if is_code else _field(source, "tool_use_id", *_IDS)
    if part.is_output and caused:
        failed, text = _has_failed(source), part.text
        if is_item or is_code:
            text = "\n".join(str(one) for one in (_field(source, "output"), _field(source, "error")) if one)
        words = (Text(text),) if failed or _TELLS.search(f"{kind} {_field(source, 'type')}") else ()
        yield ToolResult(str(caused), words, is_error=failed)


def _fields(part: Opaque) -> Any:
    """What holds the fields of such a part: its block, or what a block has below its name (Gemini, Bedrock)."""
    source = part.source
    if not isinstance(source, Mapping):  # in pydantic-ai's messages, and beside one of Chat Completions
        source = held(source, "part") or held(source, "value") or source
    called = _field(source, "function")
    return {**called, **source} if isinstance(called, Mapping) else get(source, snake(part.label)) or source


def _has_failed(source: Any) -> bool:
    is_told = _field(source, "error", "is_error") or _field(_field(source, "content"), "error_code")
    return bool(is_told) or any(_field(source, name) in _FAILED for name in ("status", "outcome"))


def _field(source: Any, *names: str) -> Any:
    found = (source.get(name) if isinstance(source, Mapping) else held(source, name) for name in names)
    return next((value for value in found if value), None)
