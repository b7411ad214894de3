"""What a provider runs itself over several messages: where it begins, what it calls, and where it ends.

The code of one of Anthropic's code executions, or of a program of OpenAI's, may call tools of the caller's before its
own result comes; a turn that was paused has its result in the next answer; an approval answers its request. A provider
refuses such a result without its beginning ("Each `code_execution_tool_result` block must have a corresponding
`server_tool_use` block before it"), and a beginning without its result.

What belongs here: the ids by which these parts name each other. What does not: groups (``groups``), and calls that the
caller answers, which are parts of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from contextfold.messages import Opaque, Part, ToolCall

Place = Literal["begins", "inside", "ends"]

_BEGINNINGS: Mapping[str, str] = {
    "server_tool_use": "id",
    "mcp_tool_use": "id",
    "server_tool_call": "id",
    "program": "call_id",
    "mcp_approval_request": "id",
}
"""Type of what begins a run -> the field with its id."""
_ENDINGS: Mapping[str, str] = {
    "server_tool_result": "tool_call_id",
    "program_output": "call_id",
    "mcp_approval_response": "approval_request_id",
}
_RESULTS = "_tool_result"
"""How the types of all results of Anthropic's end; they name the call as ``tool_use_id``."""


def run_of(part: Part) -> tuple[Place, str] | None:
    """Where in which run a part stands; None for nearly all, which stand in none."""
    source = part.source
    if not isinstance(part, Opaque | ToolCall) or not isinstance(source, Mapping):
        return None
    if source.get("type") == "non_standard" and isinstance(handed_on := source.get("value"), Mapping):
        source = handed_on  # in a block of LangChain's
    if isinstance(part, ToolCall):
        caller = source.get("caller")
        return (
            _named("inside", caller.get("tool_id") or caller.get("caller_id")) if isinstance(caller, Mapping) else None
        )
    if (name := _BEGINNINGS.get(part.label)) is not None:
        return _named("begins", source.get(name))
    name = _ENDINGS.get(part.label) or ("tool_use_id" if part.label.endswith(_RESULTS) else "")
    return _named("ends", source.get(name)) if name else None


def _named(place: Place, run: object) -> tuple[Place, str] | None:
    return (place, run) if isinstance(run, str) and run else None
