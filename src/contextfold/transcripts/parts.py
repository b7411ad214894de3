"""Messages that are made of parts, as user interfaces keep them: Vercel's AI SDK (also its model messages), Mastra,
which has the parts within the content, and opencode.

A part holds a call together with its result, and one message all steps of an answer. They are written as chat
messages: each step with its calls, and the results behind it. What was only shown (sources, data, snapshots) is left
out, and so is the summary of opencode's own compaction, whose originals are in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from contextfold.formats.values import arguments_text, json_text
from contextfold.transcripts import chat
from contextfold.transcripts.document import objects_in

ROLES = ("system", "user", "assistant", "tool")
OF_MODEL = ("tool-call", "tool-result")
DONE = ("output-available", "result", "completed")
"""States of a call that came to its end, perhaps without a word: a tool may give nothing."""
OF_CHAT = ("tool_calls", "tool_call_id", "function_call")
"""What only a chat message has: an application that changed its framework may have both kinds in one list."""
NO_CALLS = ("tool-approval-request", "tool-approval-response")
FILES = ("file", "image")


def are_made_of_parts(value: Any) -> bool:
    """Whether this is a list of such messages."""
    rows = objects_in(value)
    if not rows or len(rows) < len(value) or not all(_role(row) in ROLES for row in rows):
        return False
    return any(_has_parts(_without_wrapping(row)) for row in rows)


def as_messages(rows: list[dict[str, Any]]) -> list[Any]:
    """Such messages as chat messages."""
    messages: list[Any] = []
    for row in map(_without_wrapping, rows):
        info = row.get("info")
        if messages and isinstance(info, dict) and info.get("summary") is True:
            continue
        if not _has_parts(row) and (isinstance(row.get("content"), str) or any(row.get(key) for key in OF_CHAT)):
            messages.append(row)
            continue
        for step in _steps(row):
            messages += _said(_role(row), step)
    return messages


def _without_wrapping(row: dict[str, Any]) -> dict[str, Any]:
    held = row.get("content")
    return {**held, "role": row.get("role")} if isinstance(held, dict) and held.get("format") == 2 else row


def _role(row: dict[str, Any]) -> Any:
    info = row.get("info")
    held = info if isinstance(info, dict) and "role" not in row else row
    return held.get("role") if isinstance(held.get("role"), str) else None


def _has_parts(row: dict[str, Any]) -> bool:
    if isinstance(row.get("parts"), list):
        return any(_block(part) or _told(part) for part in objects_in(row["parts"]))
    named = (part for part in objects_in(row.get("content")) if part.get("type") in OF_MODEL)
    return bool(objects_in(row.get("toolInvocations"))) or any("toolCallId" in part for part in named)


# ---- steps -----------------------------------------------------------------------------------------------------------


@dataclass
class _Step:
    """One answer of a model, or one message of another role."""

    blocks: list[dict[str, Any]] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    media: list[dict[str, Any]] = field(default_factory=list)


def _steps(row: dict[str, Any]) -> Iterator[_Step]:
    step = _Step()
    for part in _parts(row):
        block, call = _block(part), _call(part)
        is_thought = part.get("type") == "reasoning"
        # What is said behind a result was said in the next step; old files have no mark between them.
        if part.get("type") == "step-start" or (step.results and (block or is_thought)):
            yield step
            step = _Step()
        if call is not None:
            step.calls.append(call)
        if block is not None:
            step.blocks.append(block)
        if is_thought and isinstance(thought := part.get("text") or part.get("reasoning"), str):
            step.thoughts.append(thought)
        _add_result(step, part)
    yield step


def _parts(row: dict[str, Any]) -> list[dict[str, Any]]:
    if isinstance(row.get("parts"), list):
        return objects_in(row["parts"])
    content = row.get("content")
    said = [{"type": "text", "text": content}] if isinstance(content, str) and content else objects_in(content)
    held = [{"type": "tool-invocation", "toolInvocation": one} for one in objects_in(row.get("toolInvocations"))]
    return [*said, *held]


def _said(role: str, step: _Step) -> list[dict[str, Any]]:
    results = [*step.results, *step.media]
    if not (step.blocks or step.calls or step.thoughts):
        return results
    texts = [block["text"] for block in step.blocks if block["type"] == "text"]
    is_text = len(texts) == len(step.blocks) < 2
    message: dict[str, Any] = {"role": role, "content": "".join(texts) if is_text else step.blocks}
    if step.thoughts:
        message["reasoning_content"] = "\n".join(step.thoughts)
    if step.calls:
        message["tool_calls"] = step.calls
    return [message, *results]


# ---- parts -----------------------------------------------------------------------------------------------------------


def _block(part: dict[str, Any]) -> dict[str, Any] | None:
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str) and not part.get("ignored"):
        return {"type": "text", "text": part["text"]}
    if kind not in FILES:
        return None
    media = part.get("mediaType") or part.get("mimeType") or part.get("mime") or "image/*"
    data = part.get("url") or part.get("data") or part.get("image")
    if not isinstance(data, str) or not isinstance(media, str):
        return {"type": "text", "text": json_text(part)}
    url = data if ":" in data[:10] else f"data:{media};base64,{data}"
    return chat.media(media, url, part.get("filename") or "file")


def _told(part: dict[str, Any]) -> tuple[str, Any, dict[str, Any]] | None:
    """The id of a call, the tool's name, and what holds its input and output."""
    kind = str(part.get("type"))
    state = part.get("state")
    if kind == "tool" and isinstance(state, dict):  # opencode's
        return str(part.get("callID")), part.get("tool"), state
    held = part.get("toolInvocation") if kind == "tool-invocation" else part
    is_call = kind == "dynamic-tool" or (kind.startswith("tool-") and kind not in NO_CALLS)
    if not is_call or not isinstance(held, dict) or not isinstance(held.get("toolCallId"), str):
        return None
    return held["toolCallId"], held.get("toolName") or kind.removeprefix("tool-"), held


def _call(part: dict[str, Any]) -> dict[str, Any] | None:
    told = _told(part)
    if told is None or part.get("type") == "tool-result":
        return None
    id, name, held = told
    given = held.get("input", held.get("args"))
    return chat.call(id, name if isinstance(name, str) else "tool", arguments_text(given or {}))


def _add_result(step: _Step, part: dict[str, Any]) -> None:
    told = _told(part)
    if told is None or part.get("type") == "tool-call":
        return
    id, _, held = told
    found = next((held[key] for key in ("output", "result", "errorText", "error") if held.get(key) is not None), None)
    if found is None and held.get("state", held.get("status")) in DONE:
        found = ""
    if found is None:
        return
    if isinstance(found, dict) and found.keys() >= {"type", "value"}:  # as it goes to the model
        found = found["value"]
    text, pictures = _shown(found)
    media = [block for one in objects_in(held.get("attachments")) if (block := _block(one))] + pictures
    step.results.append(chat.result(id, text))
    if media:
        step.media.append(chat.media_of_result(id, media))


def _shown(found: Any) -> tuple[str, list[dict[str, Any]]]:
    """A result as text, and the media in it."""
    pieces = objects_in(found)
    if not any("mediaType" in one for one in pieces):
        return found if isinstance(found, str) else json_text(found), []
    blocks = [_block({**one, "type": "file"} if "mediaType" in one else one) for one in pieces]
    texts = [block["text"] for block in blocks if block is not None and block["type"] == "text"]
    return "\n".join(texts), [block for block in blocks if block is not None and block["type"] != "text"]
