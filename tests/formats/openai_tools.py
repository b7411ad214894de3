"""Calls to tools that OpenAI has built in, and to custom ones, with what answers them, as LangChain has them."""

from __future__ import annotations

import base64
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

SCREEN = (
    "data:image/png;base64,"
    + base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1024).to_bytes(4) * 2 + bytes(9_000)).decode()
)
PATCH = "*** Begin Patch\n" + "+ a line of code\n" * 400 + "*** End"


def in_block(block: dict[str, Any], *, is_v1: bool) -> dict[str, Any]:
    """A block of OpenAI's as ``langchain-openai`` has it."""
    return {"type": "non_standard", "value": block} if is_v1 else block


def of_computer(n: int, *, is_v1: bool) -> list[Any]:
    action = {"type": "screenshot"}
    call = {"type": "computer_call", "id": f"cu{n}", "call_id": f"c{n}", "action": action, "status": "completed"}
    picture: Any = SCREEN if n % 2 else [{"type": "input_image", "image_url": SCREEN}]
    shown = ToolMessage(picture, tool_call_id=f"c{n}", additional_kwargs={"type": "computer_call_output"})
    return [AIMessage([in_block(call, is_v1=is_v1)]), shown]


def of_patch(n: int, *, is_v1: bool) -> list[Any]:
    operation = {"type": "create_file", "path": f"{n}.py", "diff": PATCH}
    call = {"type": "apply_patch_call", "id": f"ap{n}", "call_id": f"c{n}", "operation": operation}
    done = {"type": "apply_patch_call_output", "call_id": f"c{n}", "status": "completed", "output": PATCH}
    return [AIMessage([in_block(call, is_v1=is_v1)]), HumanMessage([in_block(done, is_v1=is_v1)])]


def of_custom(n: int, *, is_v1: bool) -> list[Any]:
    call = {"type": "custom_tool_call", "id": f"ct{n}", "call_id": f"c{n}", "name": "apply", "input": PATCH}
    listed = {"name": "apply", "args": {"__arg1": PATCH}, "id": f"c{n}"}
    done = {"type": "custom_tool_call_output", "output": PATCH}
    said = AIMessage([in_block(call, is_v1=is_v1)], tool_calls=[listed])
    return [said, ToolMessage([done], tool_call_id=f"c{n}", name="apply")]


KINDS_OF_CALLS = {
    of_computer: ("computer_call", "computer_call_output"),
    of_patch: ("apply_patch_call", "apply_patch_call_output"),
    of_custom: ("custom_tool_call", "custom_tool_call_output"),
}
