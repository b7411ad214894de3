"""What files hold in ways of their own, as Chat Completions has it: calls, their results, and media."""

from __future__ import annotations

from typing import Any


def call(id: Any, name: Any, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(id: Any, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def media_of_result(id: str, media: list[dict[str, Any]]) -> dict[str, Any]:
    """The message for media in a result: those of tools take only text."""
    said = {"type": "text", "text": f"From the result of tool call {id}:"}
    return {"role": "user", "content": [said, *media]}


def media(media_type: str, url: str, filename: str) -> dict[str, Any]:
    if media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": filename, "file_data": url}}
