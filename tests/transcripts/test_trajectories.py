"""What harnesses record of an agent's run, step by step, is read as the conversation that its model had."""

from __future__ import annotations

from typing import Any

import pytest

from contextfold import formats
from contextfold.harness import is_output
from transcripts.files import one, roles, rows

OUTPUT = "main.py\nREADME.md"
ASKED = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
TOO = {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": '{"command": "pwd"}'}}
TALK = [
    {"role": "system", "content": "You are careful."},
    {"role": "user", "content": "List the files."},
    {"role": "assistant", "content": "I look.", "tool_calls": [ASKED, TOO], "reasoning_content": "Two commands."},
    {"role": "tool", "tool_call_id": "c1", "content": OUTPUT},
    {"role": "tool", "tool_call_id": "c2", "content": "/w"},
    {"role": "assistant", "content": "There are two."},
]


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": said}]


def atif(*steps: dict[str, Any]) -> dict[str, Any]:
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, start=1)]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": numbered}


def called(id: str, command: str) -> dict[str, Any]:
    return {"tool_call_id": id, "function_name": "bash", "arguments": {"command": command}}


HARBOR = atif(
    {"source": "system", "message": "You are careful."},
    {"source": "user", "message": text("List the files.")},
    {
        "source": "agent",
        "message": "I look.",
        "reasoning_content": "Two commands.",
        "tool_calls": [called("c1", "ls"), called("c2", "pwd")],
        "observation": {
            "results": [
                {"source_call_id": "c1", "content": text(OUTPUT)},
                {"source_call_id": "c2", "content": "/w"},
            ]
        },
    },
    {"source": "agent", "message": "There are two.", "metrics": {"prompt_tokens": 9}},
)
NEW: list[dict[str, Any]] = [
    {"kind": "ConversationStateUpdateEvent", "source": "environment", "key": "full_state", "value": {}},
    {"kind": "SystemPromptEvent", "source": "agent", "system_prompt": text("You are careful.")[0], "tools": []},
    {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": text("List the files.")}},
    {
        "kind": "ActionEvent",
        "source": "agent",
        "thought": text("I look."),
        "reasoning_content": "Two commands.",
        "tool_name": "bash",
        "tool_call_id": "c1",
        "tool_call": {"id": "c1", "name": "bash", "arguments": '{"command": "ls"}', "origin": "completion"},
        "llm_response_id": "r1",
    },
    {
        "kind": "ActionEvent",
        "source": "agent",
        "thought": [],
        "tool_name": "bash",
        "tool_call_id": "c2",
        "tool_call": {"id": "c2", "name": "bash", "arguments": '{"command": "pwd"}', "origin": "completion"},
        "llm_response_id": "r1",
    },
    {
        "kind": "ObservationEvent",
        "source": "environment",
        "tool_name": "bash",
        "tool_call_id": "c1",
        "action_id": "e3",
        "observation": {"kind": "TerminalObservation", "content": text(OUTPUT), "is_error": False},
    },
    {"kind": "AgentErrorEvent", "source": "agent", "tool_name": "bash", "tool_call_id": "c2", "error": "/w"},
    {"kind": "Condensation", "source": "environment", "forgotten_event_ids": ["e2"], "summary": "Files were listed."},
    {
        "kind": "MessageEvent",
        "source": "agent",
        "llm_message": {"role": "assistant", "content": text("There are two.")},
    },
]


def told(call: dict[str, Any]) -> dict[str, Any]:
    answer = {"role": "assistant", "content": "I look.", "tool_calls": [ASKED, TOO]}
    response = {"id": "r1", "choices": [{"message": answer}]}
    return {"function_name": "bash", "tool_call_id": call["id"], "model_response": response}


OLD: list[dict[str, Any]] = [
    {"id": 0, "source": "agent", "action": "system", "args": {"content": "You are careful.", "tools": []}},
    {"id": 1, "source": "user", "action": "message", "args": {"content": "List the files.", "image_urls": None}},
    {"id": 2, "source": "user", "action": "recall", "args": {"query": "List the files.", "thought": ""}},
    {"id": 3, "source": "environment", "observation": "recall", "content": "Added workspace context", "cause": 2},
    {
        "id": 4,
        "source": "agent",
        "action": "run",
        "args": {"command": "ls", "is_input": False, "thought": "I look."},
        "tool_call_metadata": told(ASKED),
    },
    {
        "id": 5,
        "source": "agent",
        "action": "run",
        "args": {"command": "pwd", "is_input": False, "thought": ""},
        "tool_call_metadata": told(TOO),
    },
    {
        "id": 6,
        "source": "agent",
        "observation": "run",
        "content": OUTPUT,
        "cause": 4,
        "tool_call_metadata": told(ASKED),
    },
    {"id": 7, "source": "agent", "observation": "run", "content": "/w", "cause": 5, "tool_call_metadata": told(TOO)},
    {"id": 8, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
    {"id": 9, "source": "agent", "action": "message", "args": {"content": "There are two."}},
]


def without_thoughts(messages: list[Any]) -> list[Any]:
    return [{key: value for key, value in message.items() if key != "reasoning_content"} for message in messages]


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        ("harbor", HARBOR, TALK),
        ("harbor", rows(HARBOR), TALK),
        ("openhands", NEW, TALK),
        ("openhands", NEW[1:], TALK),
        ("openhands", OLD, without_thoughts(TALK)),
        ("openhands", rows({"instance_id": "i", "history": OLD, "metrics": {}}), without_thoughts(TALK)),
    ],
)
def test_a_recorded_run_is_the_conversation_of_its_model(kind: str, stored: Any, expected: list[Any]) -> None:
    """With all calls of one answer in one message, and each result behind them."""
    found = one(stored)
    assert (found.kind, found.format) == (kind, "openai-chat")
    assert found.messages == expected


def test_what_named_no_call_is_a_result_of_its_step_or_else_what_the_model_read() -> None:
    """Terminus gives what its commands did together, and without calls where it records what its model wrote."""
    shared = {"results": [{"content": OUTPUT}]}
    told = {"source": "agent", "message": "I look.", "observation": shared}
    found = one(
        atif(
            {"source": "user", "message": "List the files."},
            {**told, "tool_calls": [called("c1", "ls"), called("c2", "pwd")]},
            told,
            {"source": "agent", "message": "", "observation": {"results": [{"subagent_trajectory_ref": []}]}},
            {"source": "agent", "message": "There are two."},
        )
    )
    assert roles(found.messages) == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert (found.messages[2]["tool_call_id"], found.messages[2]["content"]) == ("c1", OUTPUT)
    assert found.messages[4]["content"] == OUTPUT


def test_pictures_of_a_run_are_where_they_were_shown() -> None:
    """In Harbor's they lie beside the file or at an address; what a tool showed is told in its result."""
    seen = {"type": "image", "source": {"media_type": "image/png", "path": "https://example.com/a.png"}}
    given = one(atif({"source": "user", "message": [*text("Look."), seen]}, {"source": "agent", "message": "A cat."}))
    url = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    assert given.messages[0] == {"role": "user", "content": [*text("Look."), url]}
    beside = {**seen, "source": {**seen["source"], "path": "images/a.png"}}
    given = one(atif({"source": "user", "message": [*text("Look."), beside]}, {"source": "agent", "message": "A cat."}))
    assert given.messages[0]["content"] == "Look.\n[picture: images/a.png]"
    url = "data:image/png;base64,iVBORw0KGgo="
    shown = {"type": "image", "image_urls": [url]}
    said = {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": [shown]}}
    old = {"source": "user", "action": "message", "args": {"content": "Look.", "image_urls": [url]}}
    for event in (said, old):
        assert one([event]).messages[0]["content"][-1] == {"type": "image_url", "image_url": {"url": url}}


def test_a_command_of_the_persons_is_no_call_of_the_models() -> None:
    """What came of it is told as OpenHands tells it, and counts as a tool's words."""
    ran = {"id": 4, "source": "user", "action": "run", "args": {"command": "ls"}}
    found = one([*OLD[:2], ran, {"id": 5, "source": "user", "observation": "run", "content": OUTPUT, "cause": 4}])
    assert roles(found.messages) == ["system", "user", "user"]
    assert is_output(formats.decode(found.messages, formats.get("openai-chat"))[-1])


def test_an_action_without_what_the_model_wrote_is_read_by_what_became_of_it() -> None:
    """Without the call's id and arguments, and with what came of it, which names the event that asked."""
    asked = {"id": 4, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look."}}
    found = one([*OLD[:2], asked, {"id": 5, "source": "agent", "observation": "run", "content": OUTPUT, "cause": 4}])
    assert found.messages[2]["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command": "ls"}'}
    assert found.messages[3] == {"role": "tool", "tool_call_id": "call-4", "content": OUTPUT}


def test_what_is_said_beside_each_call_of_one_answer_of_openhands_is_kept() -> None:
    """The words of all actions but the first were lost; with a server that gives all answers one id, all of a run's."""

    def acted(id: str, said: str, call: str) -> dict[str, Any]:
        event = {"id": id, "source": "agent", "kind": "ActionEvent", "llm_response_id": "same"}
        thought = [{"type": "text", "text": said}] if said else []
        return {**event, "thought": thought, "tool_call": {"id": call, "name": "f", "arguments": "{}"}}

    def observed(call: str) -> dict[str, Any]:
        found = {"content": [{"type": "text", "text": call}]}
        return {
            "id": call,
            "source": "environment",
            "kind": "ObservationEvent",
            "tool_call_id": call,
            "observation": found,
        }

    asked = {"role": "user", "content": [{"type": "text", "text": "go"}]}
    events = [{"id": "0", "source": "user", "kind": "MessageEvent", "llm_message": asked}]
    events += [acted("1", "One.", "a"), acted("2", "", "b"), acted("3", "One.", "c"), acted("4", "Two.", "d")]
    events += [observed(call) for call in "abcd"] + [acted("5", "Three.", "e"), observed("e")]
    messages = one(events).messages
    assert [m["content"] for m in messages] == ["go", "One.\nTwo.", "a", "b", "c", "d", "Three.", "e"]
