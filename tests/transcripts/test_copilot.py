"""Logs of Copilot's chat in VS Code, whose roles and kinds of blocks are numbers."""

from __future__ import annotations

from typing import Any

import pytest

from contextfold import Compactor
from contextfold.errors import InputError
from transcripts.files import one, several

CALL = {"id": "c", "type": "function", "function": {"name": "create_file", "arguments": '{"path": "a"}'}}
TOOL = {"type": "function", "function": {"name": "create_file", "parameters": {}}}


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": 1, "text": said}, {"type": 3, "cacheType": "ephemeral"}]


ASKED = [{"role": 0, "content": text("rules")}, {"role": 1, "content": text("make a file")}]
CALLED = [
    {"role": 2, "content": text("I make it."), "toolCalls": [CALL]},
    {"role": 3, "content": text("made"), "toolCallId": "c"},
]


def request(messages: list[Any], *said: str) -> dict[str, Any]:
    response = {"type": "success", "message": list(said)}
    sent = {"metadata": {"tools": [TOOL]}, "requestMessages": {"messages": messages}}
    return {"kind": "request", **sent, "response": response}


def prompt(*logs: dict[str, Any]) -> dict[str, Any]:
    return {"prompt": "make a file", "logs": [{"kind": "element", "name": "x"}, *logs]}


def test_each_request_is_a_conversation_that_ends_with_its_answer() -> None:
    """They were refused for their keys. The answer with a call stands in the next request, whole."""
    log = {
        "prompts": [
            prompt(request(ASKED, "I make it.")),
            prompt({"kind": "toolCall", "tool": "create_file"}, request([*ASKED, *CALLED], "Do", "ne.")),
        ]
    }
    first, second = several(log)
    system, user = {"role": "system", "content": "rules"}, {"role": "user", "content": "make a file"}
    assert (first.kind, first.format, first.messages) == ("copilot", "openai-chat", [system, user])
    assert second.messages == [
        system,
        user,
        {"role": "assistant", "content": "I make it.", "tool_calls": [CALL]},
        {"role": "tool", "content": "made", "tool_call_id": "c"},
        {"role": "assistant", "content": "Done."},
    ]
    assert second.tools == (TOOL,)


def test_an_answer_whose_calls_no_request_follows_is_kept() -> None:
    """The log ends there, as where the person stopped the agent: no other place has the text."""
    made = {"kind": "toolCall", "tool": "create_file"}
    found = one({"prompts": [prompt(request(ASKED, "I make it."), made, made)]})
    assert found.messages[2:] == [{"role": "assistant", "content": "I make it."}]


def test_pictures_and_what_is_not_known_stand_as_blocks() -> None:
    url = {"url": "data:image/png;base64,AAAA"}
    parts = [*text("look"), {"type": 0, "imageUrl": url}, {"type": 2, "value": {"x": 1}}]
    found = one({"prompts": [prompt(request([{"role": 1, "content": parts}]))]})
    assert found.messages[0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": url},
        {"type": "opaque", "value": {"x": 1}},
    ]
    assert Compactor(window=8_000).compact(found.messages).messages == found.messages


@pytest.mark.parametrize("role", [7, -1, True, None, "boss"])
def test_a_role_that_is_none_is_named(role: Any) -> None:
    with pytest.raises(InputError, match="message 0"):
        several({"prompts": [prompt(request([{"role": role, "content": text("x")}]))]})


@pytest.mark.parametrize("said", [["x"], 3, {"a": 1}])
def test_a_text_that_is_none_stands_as_it_is(said: Any) -> None:
    found = one({"prompts": [prompt(request([{"role": 1, "content": [{"type": 1, "text": said}]}]))]})
    assert found.messages == [{"role": "user", "content": [{"type": "text", "text": said}]}]
