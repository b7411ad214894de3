"""What OpenAI Chat Completions refuses: roles, contents, and tool messages that do not pair, in OpenAI's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from emulator.problems import Problem
from emulator.wires.base import Body

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_LISTED_ROLES = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
_UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
_ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."


def chat_problem(body: Body) -> Problem | None:
    """The first thing that is wrong, or None."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return Problem("Missing required parameter: 'messages'.", code="missing_required_parameter", param="messages")
    if not messages:
        return _too_short("messages")
    return next(_problems(messages), None)


def _problems(messages: list[Any]) -> Iterator[Problem]:
    for place, message in enumerate(messages):
        problem = _message_problem(message, place)
        if problem is not None:
            yield problem
            return
    yield from _pairing_problems(messages)


def _message_problem(message: Any, place: int) -> Problem | None:
    if not isinstance(message, dict):
        return Problem(
            f"Invalid type for 'messages[{place}]': expected an object, but got something else instead.",
            code="invalid_type",
            param=f"messages[{place}]",
        )
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in ROLES:
        return Problem(
            f"Invalid value: '{role}'. Supported values are: {_LISTED_ROLES}.",
            code="invalid_value",
            param=f"messages[{place}].role",
        )
    if calls == []:
        return _too_short(f"messages[{place}].tool_calls")
    if content is None and not (role == "assistant" and _says_otherwise(message)):
        return Problem("Invalid value for 'content': expected a string, got null.", param=f"messages.[{place}].content")
    if content == [] and role != "assistant":
        return _too_short(f"messages[{place}].content")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        name = f"messages[{place}].tool_call_id"
        return Problem(f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name)
    return None


def _says_otherwise(message: dict[str, Any]) -> bool:
    """Whether an assistant message without content says something all the same."""
    return any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))


def _pairing_problems(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    """Every call is answered before the next message that is no tool message, and nothing else is answered."""
    asked_at, called, waiting = 0, frozenset[str](), dict[str, None]()
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if not called:
                yield Problem(_ORPHAN, param=f"messages.[{place}].role")
            elif message["tool_call_id"] not in called:
                yield _not_found(message["tool_call_id"], place)
            waiting.pop(message["tool_call_id"], None)
            continue
        if waiting:
            yield _unanswered(waiting, asked_at)
        asked_at, waiting = place, dict.fromkeys(call.get("id", "") for call in message.get("tool_calls") or ())
        called = frozenset(waiting)
    if waiting:
        yield _unanswered(waiting, asked_at)


def _unanswered(waiting: dict[str, None], place: int) -> Problem:
    return Problem(_UNANSWERED + ", ".join(waiting), param=f"messages.[{place}].role")


def _not_found(call_id: str, place: int) -> Problem:
    return Problem(
        f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message.",
        param=f"messages.[{place}].tool_call_id",
    )


def _too_short(name: str) -> Problem:
    return Problem(
        f"Invalid '{name}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        code="empty_array",
        param=name,
    )
