"""Kinds of transcript files that only the benchmarks read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kinds import Conversation, read, read_file

from contextfold.errors import InputError
from transcripts.files import roles, rows


def one(data: bytes | Any) -> Conversation:
    """The only conversation in bytes, or in a value as JSON."""
    (conversation,) = several(data)
    return conversation


def several(data: bytes | Any) -> list[Conversation]:
    return read(data if isinstance(data, bytes) else json.dumps(data).encode(), name="talk")


def test_an_event_list_becomes_messages_with_results_right_behind_their_calls() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "https://a.b"}}
    events = [
        {"type": "user_message", "content": [{"type": "text", "text": "go"}]},
        {"type": "assistant_message", "content": "", "toolCalls": [call]},
        {"type": "tool_call", "toolCallId": "a", "name": "f", "arguments": {}},
        {"type": "environment_input", "content": [image]},
        {"type": "tool_result", "toolCallId": "a", "content": {"ok": True}},
        {"type": "tool_call", "toolCallId": "b", "name": "g", "arguments": {"x": 1}},
        {"type": "tool_result", "toolCallId": "b", "content": [{"type": "text", "text": "1"}, {"type": "y"}, "z"]},
        {"type": "tool_result", "toolCallId": "lost", "content": None},
        {"type": "assistant_message", "content": ""},
        {"type": "agent_run_end"},
    ]
    for data in (events, rows(*events)):
        found = one(data)
        assert (found.kind, found.format) == ("event-list", "openai-chat")
        assert roles(found.messages) == ["user", "assistant", "tool", "user", "assistant", "tool", "tool"]
        assert found.messages[2]["content"] == '{"ok": true}'
        assert found.messages[3]["content"] == [image]
        assert found.messages[4]["tool_calls"][0]["function"] == {"name": "g", "arguments": '{"x": 1}'}
        assert [block["text"] for block in found.messages[5]["content"]] == ["1", '{"type": "y"}', "z"]


@pytest.mark.parametrize(
    "value",
    [
        {"dialogues": [{"dialogue_turns": [{"speaker": "User", "content": "a"}]}, {"dialogue_turns": []}]}
        | {"extra": [{"dialogue_turns": 3}]},
        {"Ann": {"history": {"day": [{"query": "a", "response": "b"}, {"query": "a"}], "other": None}}, "Bob": {}},
        {"conversation_list": [{"sender": "user_1", "sender_name": "Ann", "content": "a"}]},
        [{"speaker": "system", "content": "a"}, {"speaker": "bot", "text": "b"}],
    ],
)
def test_dialogues_become_chat_messages(value: Any) -> None:
    found = one(value)
    assert (found.kind, found.format) == ("dialogue", "openai-chat")
    assert found.messages[0]["content"] in ("a", "Ann: a")
    assert set(roles(found.messages)) <= {"user", "assistant", "system"}


def test_several_dialogues_in_a_file_are_several_conversations_with_numbered_names() -> None:
    days = {"history": {"day": [{"query": "a", "response": "b"}]}}
    assert [found.name for found in several({"Ann": days, "Bob": days})] == ["talk#0", "talk#1"]


def test_the_longest_request_of_a_cassette_is_the_conversation() -> None:
    data = b"""interactions:
- request: {method: GET, body: ''}
- request: {method: POST, body: 'not json'}
- request:
    parsed_body: {model: m, instructions: rules, input: short}
- request:
    body:
      string: '{"model": "m", "system": "rules",
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'
- broken
"""
    found = one(data)
    assert (found.kind, found.format) == ("cassette", "anthropic")
    assert roles(found.messages) == ["system", "user", "assistant"]
    request = {"parsed_body": {"model": "m", "instructions": "rules", "input": "hi"}}
    found = one({"interactions": [{"request": request}]})
    assert (found.format, found.messages[1]) == ("openai-responses", {"role": "user", "content": "hi"})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"interactions:\n- request: [\n", "talk: line 3, column 1: not valid YAML"),
        (b"interactions:\n- request: {body: ''}\n", "talk: no recorded request holds messages"),
        (b"interactions: 3\n", "talk: no recorded request holds messages"),
    ],
)
def test_a_cassette_without_messages_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(InputError) as error:
        several(data)
    assert str(error.value).startswith(words)


def test_a_chat_replay_is_its_longest_request_with_its_answer() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}, "type": "function"}
    messages = [
        {"role": 0, "content": [{"type": 1, "text": "rules"}, {"type": 3, "cacheType": "x"}]},
        {"role": 1, "content": [{"type": 1, "text": "go"}]},
        {"role": 2, "content": "", "toolCalls": [call]},
        {"role": 3, "content": [{"type": 1, "text": "done"}], "toolCallId": "a"},
    ]
    logs = [
        {"kind": "element"},
        {"kind": "request", "requestMessages": {"messages": messages[:2]}, "response": {"message": [""]}},
        {"kind": "request", "requestMessages": {"messages": messages}, "response": {"message": ["all ", "done"]}},
    ]
    found = one({"prompts": [{"logs": logs}]})
    assert (found.kind, found.format) == ("chat-replay", "openai-chat")
    assert roles(found.messages) == ["system", "user", "assistant", "tool", "assistant"]
    assert found.messages[-1]["content"] == "all done"
    assert found.messages[0]["content"] == "rules"
    found = one({"prompts": [{"logs": logs[:2]}]})
    assert len(found.messages) == 2


def test_other_files_are_read_as_the_package_does(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"role": "user", "content": "go"}]))
    (found,) = read_file(path)
    assert (found.kind, found.format) == ("messages", "openai-chat")


def test_what_is_no_conversation_is_refused() -> None:
    with pytest.raises(InputError, match="talk: no list of messages"):
        several({"a": 1})
