"""Spans that give each field of a message an attribute of its own: OpenInference's (Phoenix, Arize), and those of
OpenLLMetry (Traceloop) from before it wrote what OpenTelemetry agreed upon.

    llm.input_messages.0.message.tool_calls.1.tool_call.function.name
    gen_ai.prompt.0.tool_calls.1.name

Exports of Phoenix also have them as structures, whose keys have dots or not. What belongs here: such attributes in the
terms of OpenTelemetry's. What does not: where attributes are found, and what becomes of them (``telemetry``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from contextfold import json_values
from contextfold.transcripts.document import json_in

MARKS = ("input_messages", "gen_ai.prompt.")
"""One of these is in every file that holds such spans."""
INPUTS = ("llm.input_messages", "gen_ai.prompt")
OUTPUTS = ("llm.output_messages", "gen_ai.completion")
TOOLS = ("llm.tools", "llm.request.functions")
PREFIXES = ("llm.", "gen_ai.prompt.", "gen_ai.completion.")
_ROLES = {"model": "assistant", "ai": "assistant", "human": "user", "function": "tool"}
_DOTS, _DIGITS = 20, 9


class SpanMessages(NamedTuple):
    """What a span holds, as OpenTelemetry writes it. ``missing``: how many messages before its last are not in it.
    ``broken``: attributes that break off.
    """

    inputs: list[Any]
    outputs: list[Any] | None
    system: list[Any] | None
    tools: list[Any] | None
    missing: int = 0
    broken: tuple[str, ...] = ()


def is_ours(key: object) -> bool:
    """Whether a key may be one of these attributes."""
    return isinstance(key, str) and key.removeprefix("attributes.").startswith(PREFIXES)


def request_of(attributes: Mapping[str, Any]) -> SpanMessages | None:
    """What the attributes of a span hold; None where there are no messages among them."""
    own = {key.removeprefix("attributes."): value for key, value in attributes.items() if is_ours(key) or key == "llm"}
    tree = _split(own) if own else {}
    inputs, missing = _messages(_at(tree, INPUTS))
    if not inputs:
        return None
    return SpanMessages(inputs, _messages(_at(tree, OUTPUTS))[0], None, list(_tools(_at(tree, TOOLS))), missing)


# ---- names with dots ----


def _split(value: Any) -> dict[str, Any]:
    """A mapping with a level for each dot in its keys. What it holds is left as it is: arguments have keys too."""
    tree: dict[str, Any] = {}
    for key, held in value.items() if isinstance(value, Mapping) else ():
        *way, last = str(key).split(".", _DOTS)
        level: Any = tree
        for name in way:
            level = level.setdefault(name, {}) if isinstance(level, dict) else None
        if isinstance(level, dict):
            level.setdefault(last, held)
    return tree


def _at(tree: dict[str, Any], names: tuple[str, ...]) -> Any:
    """What stands under the first of these names that is there."""
    for name in names:
        found: Any = tree
        for step in name.split("."):
            found = _split(found).get(step)
        if found:
            return found
    return None


def _entries(value: Any) -> list[tuple[int, Any]]:
    """The entries of a list, or of a mapping from their numbers, with these."""
    if isinstance(value, list):
        return list(enumerate(value))
    found = _split(value)
    return sorted(
        ((int(key), held) for key, held in found.items() if key.isdecimal() and len(key) < _DIGITS),
        key=lambda entry: entry[0],
    )


def _in(value: Any, name: str) -> dict[str, Any]:
    """An entry without the name that stands before all its fields."""
    found = _split(value)
    return _split(found[name]) if isinstance(found.get(name), Mapping) else found


# ---- messages ----


def _messages(value: Any) -> tuple[list[dict[str, Any]], int]:
    """The messages of a list, and how many before the last one are missing."""
    found: list[dict[str, Any]] = []
    numbered = _entries(value)
    count = 0
    for _, entry in numbered:
        message = _in(entry, "message")
        role = message.get("role")
        if not isinstance(role, str):  # the rest of one whose other attributes were dropped
            continue
        count += 1
        role, parts = _ROLES.get(role, role), list(_parts(message))
        if role == "assistant" and found and found[-1]["role"] == role and _calls([*found[-1]["parts"], *parts]):
            found[-1]["parts"] += parts  # the items of one answer
        else:
            found.append({"role": role, "parts": parts})
    return found, numbered[-1][0] + 1 - count if numbered else 0


def _calls(parts: list[dict[str, Any]]) -> bool:
    return any(part["type"] == "tool_call" for part in parts)


def _parts(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    blocks = [_part(block) for _, block in _entries(message.get("contents"))]
    if not blocks and message.get("content") not in (None, ""):
        blocks = [{"type": "text", "content": _text(message["content"])}]
    if message.get("role") in ("tool", "function"):
        said = [block for block in blocks if block is not None]
        is_text = all(block["type"] == "text" for block in said)
        response = "\n".join(block["content"] for block in said) if is_text else said
        yield {"type": "tool_call_response", "id": _name(message.get("tool_call_id")), "response": response}
        return
    yield from (block for block in blocks if block is not None)
    calls = [_in(call, "tool_call") for _, call in _entries(message.get("tool_calls"))]
    if isinstance(name := message.get("function_call_name"), str):
        calls.append({"name": name, "arguments": message.get("function_call_arguments_json")})
    for call in calls:
        function = _split(call.get("function")) or call
        id, name = _name(call.get("id")), _name(function.get("name"))
        yield {"type": "tool_call", "id": id, "name": name, "arguments": function.get("arguments")}


def _part(block: Any) -> dict[str, Any] | None:
    """A block of a message; None for a call, which stands among the calls as well."""
    said = _in(block, "message_content")
    kind, text = said.get("type"), said.get("text")
    if kind == "tool_use":
        return None
    if kind in ("text", "reasoning") and (text is not None or kind == "reasoning"):
        return {"type": kind, "content": _text(text or "")}
    url = _in(_in(said.get("image"), "image"), "image").get("url")
    if kind == "image" and isinstance(url, str):
        return {"type": "uri", "modality": "image", "uri": url}
    return {"type": "other", "said": said}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_values.write(value)


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


# ---- tools ----


def _tools(value: Any) -> Iterator[dict[str, Any]]:
    for _, entry in _entries(value):
        tool = _in(entry, "tool")
        schema = _read(tool.get("json_schema")) or tool
        function = _read(schema.get("function")) or schema
        if isinstance(name := function.get("name"), str):
            parameters = function.get("parameters", function.get("input_schema"))
            said = {"name": name, "description": function.get("description"), "parameters": _read(parameters)}
            yield {"type": "function", **{key: held for key, held in said.items() if held is not None}}


def _read(value: Any) -> dict[str, Any] | None:
    value = json_in(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else None
