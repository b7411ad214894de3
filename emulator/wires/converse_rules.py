"""What Bedrock Converse refuses: turns, empty blocks, and tool blocks that do not pair, in Bedrock's words.

Nothing is joined here: two neighbors of one role are refused. What a model behind Converse refuses comes with "The
model returned the following errors".
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from emulator.problems import Problem
from emulator.wires.base import Body, listed

_CALL_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}\Z")
_OF_MODEL = "The model returned the following errors: "


def converse_problem(body: Body) -> Problem | None:
    """The first thing that is wrong, or None."""
    return next(_problems(body), None)


def _problems(body: Body) -> Iterator[Problem]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield Problem(
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
        return
    for place, block in enumerate(listed(body.get("system"))):
        if not isinstance(block, dict) or ("text" in block and not block["text"]):
            yield Problem(f"The text field in the SystemContentBlock object at system.{place} is blank. {_ADD_TEXT}")
    for place, message in enumerate(messages):
        yield from _message_problems(message, place)
    yield from _turn_problems(messages)
    yield from _pairing_problems(messages)
    if not body.get("toolConfig") and any(_ids(message, "toolUse") for message in messages):
        yield Problem("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
    last = messages[-1]["content"][-1]
    if messages[-1]["role"] == "assistant" and str(last.get("text", "")) != str(last.get("text", "")).rstrip():
        yield Problem(f"{_OF_MODEL}messages: final assistant content cannot end with trailing whitespace")


_ADD_TEXT = "Add text to the text field, and try again."


def _message_problems(message: Any, place: int) -> Iterator[Problem]:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        role = message.get("role") if isinstance(message, dict) else message
        yield Problem(
            f"1 validation error detected: Value '{role}' at 'messages.{place}.member.role' failed to satisfy "
            "constraint: Member must satisfy enum value set: [user, assistant]"
        )
        return
    content = message.get("content")
    if not isinstance(content, list) or not content:
        yield Problem(
            f"The content field in the Message object at messages.{place} is empty. Add a ContentBlock object to the "
            "content field and try again."
        )
        return
    blocks = [block for block in content if isinstance(block, dict)]
    if blocks and all("cachePoint" in block for block in blocks):
        yield Problem(f"messages.{place}.content: a cachePoint must follow a content block")
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        yield Problem(
            f"The content field in the Message object at messages.{place} has a document and no text. {_ADD_TEXT}"
        )
    for number, block in enumerate(content):
        yield from _block_problems(block, f"messages.{place}.content.{number}", str(message["role"]))


def _block_problems(block: Any, where: str, role: str) -> Iterator[Problem]:
    if not isinstance(block, dict) or not block or "type" in block or not _has_objects(block):
        yield Problem(f"The ContentBlock object at {where} must set one of the following keys: text, image, toolUse.")
        return
    if "text" in block and not str(block["text"]).strip():
        yield Problem(f"The text field in the ContentBlock object at {where} is blank. {_ADD_TEXT}")
    if call := block.get("toolUse"):
        yield from _call_problems(call, where, role)
    if result := block.get("toolResult"):
        if role != "user":
            yield Problem(f"The toolResult block at {where} is in a message of the assistant.")
        for number, inner in enumerate(listed(result.get("content"))):
            if isinstance(inner, dict) and "text" in inner and not str(inner["text"]).strip():
                yield Problem(
                    f"The text field in the ToolResultContentBlock object at {where}.toolResult.content.{number} is "
                    f"blank. {_ADD_TEXT}"
                )


def _has_objects(block: dict[str, Any]) -> bool:
    """Whether calls and results are objects, where the block has any."""
    return all(isinstance(block[kind], dict) for kind in ("toolUse", "toolResult") if kind in block)


def _call_problems(call: dict[str, Any], where: str, role: str) -> Iterator[Problem]:
    if role != "assistant":
        yield Problem(f"The toolUse block at {where} is in a message of the user.")
    if not isinstance(call.get("input"), dict):
        yield Problem(
            f"The format of the value at {where}.toolUse.input is invalid. Provide a json object for the field and "
            "try again."
        )
    if not _CALL_ID.match(str(call.get("toolUseId"))):
        yield Problem(
            f"1 validation error detected: Value at '{where}.toolUse.toolUseId' failed to satisfy constraint: Member "
            "must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"
        )


def _turn_problems(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    if messages[0]["role"] != "user":
        yield Problem(
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
    for before, after in itertools.pairwise(messages):
        if before["role"] == after["role"]:
            yield Problem(
                "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
                "between user and assistant roles and try again."
            )


def _pairing_problems(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    """The message after one with calls has their results: all of them, no others, and before anything else."""
    seen: set[str] = set()
    for place, message in enumerate(messages):
        calls = _ids(message, "toolUse")
        for call in calls:
            if call in seen:
                yield Problem(f"{_OF_MODEL}messages.{place}: `tool_use` ids must be unique")
            seen.add(call)
        before = _ids(messages[place - 1], "toolUse") if place else []
        results = _ids(message, "toolResult")
        where = f"messages.{place}.content"
        if missing := [call for call in before if call not in results]:
            yield Problem(f"Expected toolResult blocks at {where} for the following Ids: {', '.join(missing)}")
        if doubled := [call for call, times in Counter(results).items() if times > 1]:
            yield Problem(f"The toolResult blocks at {where} contain duplicate Ids: {', '.join(doubled)}")
        if set(results) - set(before):
            yield Problem(
                f"The number of toolResult blocks at {where} exceeds the number of toolUse blocks of previous turn."
            )
        kinds = ["toolResult" in block for block in message["content"] if "cachePoint" not in block]
        if kinds != sorted(kinds, reverse=True):
            yield Problem(
                f"{_OF_MODEL}messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after"
            )
    if open_calls := _ids(messages[-1], "toolUse"):
        where = f"messages.{len(messages)}.content"
        yield Problem(f"Expected toolResult blocks at {where} for the following Ids: {', '.join(open_calls)}")


def _ids(message: dict[str, Any], kind: str) -> list[str]:
    """The ids of the blocks of one kind."""
    return [str(block[kind].get("toolUseId")) for block in message["content"] if isinstance(block.get(kind), dict)]
