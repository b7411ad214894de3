"""What OpenAI Responses refuses: roles, contents, and calls and outputs that do not pair, in OpenAI's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from emulator.problems import Problem
from emulator.wires.base import Body

ROLES = ("assistant", "system", "developer", "user")
_CALLS = {
    "function_call": ("function_call_output", "function call"),
    "custom_tool_call": ("custom_tool_call_output", "custom tool call"),
    "local_shell_call": ("local_shell_call_output", "local shell call"),
    "shell_call": ("shell_call_output", "shell call"),
    "apply_patch_call": ("apply_patch_call_output", "apply patch call"),
    "computer_call": ("computer_call_output", "computer call"),
    "tool_search_call": ("tool_search_output", "tool search call"),
}
"""Type of a call -> (type of its output, how the API calls it)."""

_OUTPUTS = {output: (call, words) for call, (output, words) in _CALLS.items()}
_PARTS = {
    "assistant": ("output_text", "refusal"),
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text", "input_image", "input_file"),
    "developer": ("input_text", "input_image", "input_file"),
}


def responses_problem(body: Body) -> Problem | None:
    """The first thing that is wrong, or None."""
    given = body.get("input")
    if body.get("previous_response_id"):
        return Problem(
            f"Previous response with id '{body['previous_response_id']}' not found.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    if isinstance(given, str) and given:
        return None
    if not isinstance(given, list) or not given:
        return Problem(
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
            code="missing_required_parameter",
        )
    return next(_problems(given), None)


def _problems(items: list[Any]) -> Iterator[Problem]:
    for place, item in enumerate(items):
        problem = _item_problem(item, place)
        if problem is not None:
            yield problem
            return
    yield from _pairing_problems(items)
    yield from _reasoning_problems(items)
    yield from _run_problems(items)


def _item_problem(item: Any, place: int) -> Problem | None:
    if not isinstance(item, dict):
        return Problem(
            f"Invalid type for 'input[{place}]': expected an input item, but got something else instead.",
            code="invalid_type",
            param=f"input[{place}]",
        )
    if item.get("type") == "item_reference":
        text = "Items are not persisted when `store` is set to false."
        return Problem(f"Item with id '{item.get('id')}' not found. {text}", 404, param="input")
    if item.get("type", "message") != "message":
        return _output_problem(item, place)
    if item.get("role") not in ROLES:
        return _not_supported(str(item.get("role")), ROLES, f"input[{place}].role")
    content = item.get("content")
    if content is None:
        name = f"input[{place}].content"
        return Problem(f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name)
    for number, part in enumerate(content if isinstance(content, list) else ()):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind not in _PARTS[item["role"]]:
            return _not_supported(str(kind), _PARTS[item["role"]], f"input[{place}].content[{number}]")
    return None


def _output_problem(item: Mapping[str, Any], place: int) -> Problem | None:
    """An output of a built-in tool has a shape of its own; words are refused where it wants an image or chunks."""
    shape = _SHAPES.get(str(item.get("type")))
    if shape is None or shape(item):
        return None
    name = f"input[{place}].output" if "output" in item else f"input[{place}]"
    return Problem(f"Invalid type for '{name}': it is no {item['type']}.", code="invalid_type", param=name)


def _is_chunk(chunk: Any) -> bool:
    texts = isinstance(chunk, Mapping) and all(isinstance(chunk.get(name), str) for name in ("stdout", "stderr"))
    return texts and isinstance(chunk.get("outcome"), Mapping)


def _is_screenshot(output: Any) -> bool:
    is_one = isinstance(output, Mapping) and output.get("type") == "computer_screenshot"
    return is_one and any(isinstance(output.get(name), str) for name in ("image_url", "file_id"))


_SHAPES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "local_shell_call_output": lambda item: isinstance(item.get("output"), str),
    "shell_call_output": lambda item: isinstance(item.get("output"), list) and all(map(_is_chunk, item["output"])),
    "computer_call_output": lambda item: _is_screenshot(item.get("output")),
    "apply_patch_call_output": lambda item: (
        item.get("status") in ("completed", "failed") and isinstance(item.get("output"), str | None)
    ),
    "tool_search_output": lambda item: isinstance(item.get("tools"), list),
}
"""The types of the openai SDK for these items."""


def _not_supported(value: str, allowed: tuple[str, ...], param: str) -> Problem:
    listed = ", ".join(f"'{name}'" for name in allowed[:-1]) + f" and '{allowed[-1]}'"
    return Problem(f"Invalid value: '{value}'. Supported values are: {listed}.", code="invalid_value", param=param)


def _pairing_problems(items: list[dict[str, Any]]) -> Iterator[Problem]:
    """Every output follows its call, and every call has an output."""
    open_calls: dict[tuple[str, str], None] = {}
    known: set[tuple[str, str]] = set()
    for item in items:
        kind, call_id = str(item.get("type")), str(item.get("call_id") or item.get("id"))
        if kind in ("tool_search_call", "tool_search_output") and item.get("call_id") is None:
            continue  # the provider ran it
        if kind == "function_call_output" and ("local_shell_call", call_id) in open_calls:
            kind = "local_shell_call_output"  # Codex answers so, and is understood
        if kind in _CALLS:
            if item.get("async") is not True:  # the model went on without its result
                open_calls[kind, call_id] = None
            known.add((kind, call_id))
        elif kind in _OUTPUTS:
            call, words = _OUTPUTS[kind]
            if (call, call_id) not in known:
                yield Problem(f"No tool call found for {words} output with call_id {call_id}.", param="input")
            open_calls.pop((call, call_id), None)
    for kind, call_id in open_calls:
        yield Problem(f"No tool output found for {_CALLS[kind][1]} {call_id}.", param="input")


def _reasoning_problems(items: list[dict[str, Any]]) -> Iterator[Problem]:
    """A reasoning item that is named by its id stands before what was said or called after it.

    Items with ``encrypted_content`` bring all that is needed along, and are not looked up.
    """
    for item, following in zip(items, [*items[1:], {}], strict=True):
        if item.get("type") != "reasoning" or not item.get("id") or item.get("encrypted_content"):
            continue
        if not following or following.get("role") in ("user", "system", "developer"):
            yield Problem(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                param="input",
            )


_ENDS = {"program_output": ("program", "call_id"), "mcp_approval_response": ("mcp_approval_request", "id")}
"""Type of what ends a run -> (type of what begins it, the field with its id)."""


def _run_problems(items: list[dict[str, Any]]) -> Iterator[Problem]:
    """What ends a program or an approval follows what began it, and a program's calls follow the program."""
    begun = {(one, str(item.get(key))) for item in items for one, key in _ENDS.values() if item.get("type") == one}
    ended: set[tuple[str, str]] = set()
    for item in items:
        kind, caller = str(item.get("type")), item.get("caller")
        if kind in _ENDS:
            run = _ENDS[kind][0], str(item.get("call_id") or item.get("approval_request_id"))
            ended.add(run)
        elif isinstance(caller, Mapping) and caller.get("caller_id"):
            run = "program", str(caller["caller_id"])
        else:
            continue
        if run not in begun:
            yield Problem(f"No {run[0]} found for {kind} with id {run[1]}.", param="input")
    for kind, run_id in sorted(begun - ended):
        if kind == "mcp_approval_request":
            yield Problem(f"MCP approval requests do not have an approval: {run_id}", param="input")
