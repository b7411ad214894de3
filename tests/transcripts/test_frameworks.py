"""What frameworks store of a talk, written by themselves, is read as that talk."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextfold import Compactor, formats
from contextfold.errors import InputError
from contextfold.messages import Message
from transcripts.files import one, roles, rows, several

OUTPUT = "main.py\nREADME.md"
SAID = [
    ("user", "List the files."),
    ("assistant", "I look."),
    ("tool", OUTPUT),
    ("assistant", "There are two."),
]


def pydantic_ai() -> bytes:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    messages: list[ModelMessage] = [
        ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart("List the files.")]),
        ModelResponse(parts=[TextPart("I look."), ToolCallPart("ls", {"path": "."}, tool_call_id="c1")]),
        ModelRequest(parts=[ToolReturnPart("ls", OUTPUT, tool_call_id="c1")], instructions="Answer in English."),
        ModelResponse(parts=[TextPart("There are two.")]),
    ]
    return ModelMessagesTypeAdapter.dump_json(messages)


def haystack() -> bytes:
    from haystack.dataclasses import ChatMessage, ToolCall

    call = ToolCall(tool_name="ls", arguments={"path": "."}, id="c1")
    messages = [
        ChatMessage.from_system("Be brief."),
        ChatMessage.from_user("List the files."),
        ChatMessage.from_assistant("I look.", tool_calls=[call]),
        ChatMessage.from_tool(OUTPUT, origin=call),
        ChatMessage.from_assistant("There are two."),
    ]
    return json.dumps([message.to_dict() for message in messages]).encode()


def adk(*, by_alias: bool = False) -> bytes:
    from google.adk.events import Event
    from google.adk.sessions import Session
    from google.genai import types

    def event(author: str, *parts: types.Part, role: str | None, partial: bool | None = None) -> Event:
        content = types.Content(role=role, parts=list(parts))
        return Event(author=author, invocation_id="i1", content=content, partial=partial)

    call = types.FunctionCall(name="ls", args={"path": "."}, id="c1")
    answer = types.FunctionResponse(name="ls", response={"result": OUTPUT}, id="c1")
    # What ADK sends to no model is no message.
    asked = types.FunctionCall(name="adk_request_credential", args={"client_secret": "hunter2"}, id="c0")
    given = types.FunctionResponse(name="adk_request_credential", response={"access_token": "hunter2"}, id="c0")
    events = [
        event("user", types.Part(text="List the files."), role=None),
        event("lister", types.Part(function_call=asked), role="model"),
        event("user", types.Part(function_response=given), role="user"),
        event("lister", types.Part(text="I lo"), role="model", partial=True),
        event("lister", types.Part(text="I look."), types.Part(function_call=call), role="model"),
        event("lister", types.Part(function_response=answer), role="user"),
        Event(author="lister", invocation_id="i1"),
        event("lister", types.Part(text="There are two."), role=None),
    ]
    return Session(id="s", app_name="a", user_id="u", events=events).model_dump_json(by_alias=by_alias).encode()


def strands(folder: Path) -> bytes:
    """The files of its own session manager, in the order of their names, some messages beyond ten."""
    from strands.session.file_session_manager import FileSessionManager
    from strands.types.session import SessionAgent, SessionMessage

    manager = FileSessionManager(session_id="s", storage_dir=str(folder))
    agent = SessionAgent(agent_id="a", state={}, conversation_manager_state={})
    manager.create_agent("s", agent)
    call = {"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"path": "."}}}
    answer = {"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": OUTPUT}]}}
    messages: list[Any] = [
        {"role": "user", "content": [{"text": "my password is hunter2"}]},
        *({"role": role, "content": [{"text": f"more {role}"}]} for role in ("assistant", "user") * 4),
        {"role": "assistant", "content": [{"text": "Ready."}]},
        {"role": "user", "content": [{"text": "List the files."}]},
        {"role": "assistant", "content": [{"text": "I look."}, call]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": [{"text": "There are two."}]},
    ]
    for number, message in enumerate(messages):
        manager.create_message("s", "a", SessionMessage(message=message, message_id=number))
    redacted = SessionMessage(message=messages[0], message_id=0)
    redacted.redact_message = {"role": "user", "content": [{"text": "[redacted]"}]}
    manager.update_message("s", "a", redacted)
    files = sorted(folder.rglob("message_*.json"))
    assert files[2].name == "message_10.json"
    return rows(*(json.loads(file.read_text()) for file in files))


def said(messages: list[Message]) -> list[tuple[str, str]]:
    """Who said what, a tool's results by its own name."""
    told = []
    for message in messages:
        for result in message.tool_results:
            told.append(("tool", result.text))
        if message.text and not message.is_instruction and not message.tool_results:
            told.append((message.role, message.text))
    return told


def decoded(data: bytes) -> tuple[str, list[Message]]:
    found = one(data)
    return found.kind, formats.decode(found.messages, formats.get(found.format))


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("pydantic-ai", pydantic_ai),
        ("haystack", haystack),
        ("google-adk", adk),
        ("google-adk", lambda: adk(by_alias=True)),
    ],
)
def test_a_stored_talk_is_read_with_its_calls_and_results(kind: str, stored: Callable[[], bytes]) -> None:
    found, messages = decoded(stored())
    assert found == kind
    assert [(who, text if who != "tool" else OUTPUT) for who, text in said(messages)] == SAID
    (result,) = (result for message in messages for result in message.tool_results)
    (call,) = (call for message in messages for call in message.tool_calls)
    assert (call.name, json.loads(call.arguments), result.call_id) == ("ls", {"path": "."}, call.id)
    assert "README.md" in result.text


def test_what_stands_beside_the_parts_of_pydantic_ai_is_the_system_prompt() -> None:
    _, messages = decoded(pydantic_ai())
    assert [message.text for message in messages if message.is_instruction] == ["Answer in English.", "Be brief."]


def test_rows_of_strands_are_in_the_order_of_their_numbers_and_what_was_redacted_stays_so(tmp_path: Path) -> None:
    found, messages = decoded(strands(tmp_path))
    told = said(messages)
    assert found == "strands"
    assert len(messages) == 14
    assert told[0] == ("user", "[redacted]")
    assert told[-4:] == SAID


def test_a_view_of_a_stored_talk_can_be_sent() -> None:
    found = one(pydantic_ai())
    long = [*found.messages, *({"role": role, "content": "word " * 400} for role in ("user", "assistant") * 20)]
    out = Compactor(window=8_000).compact(long, format=found.format)
    assert out.changed
    assert out.messages[0] == found.messages[0]


def test_rows_of_a_data_set_are_a_conversation_each() -> None:
    talk = [{"from": "human", "value": "Which port?"}, {"from": "gpt", "value": "Port 9000."}]
    found = several(rows({"id": 1, "system": "Be brief.", "conversations": talk}, {"id": 2, "conversations": talk}))
    assert [conversation.name for conversation in found] == ["talk#0", "talk#1"]
    assert roles(found[0].messages) == ["system", "user", "assistant"]
    assert found[1].messages == [
        {"role": "user", "content": "Which port?"},
        {"role": "assistant", "content": "Port 9000."},
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"conversations": [{"from": "observation", "value": "x"}]}, "turn 0 is by 'observation', and not by system,"),
        ([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": 7}]}], "what pydantic-ai stores"),
        ([{"role": "pilot", "meta": {}, "name": None, "content": [{"text": "x"}]}], "what haystack stores"),
        ([{"message_id": "x", "message": {"role": "user", "content": []}}], "what strands stores"),
    ],
)
def test_what_a_framework_does_not_read_is_refused_with_its_reason(data: Any, problem: str) -> None:
    with pytest.raises(InputError, match=r"^talk: .*mend that") as caught:
        one(data)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("stored", "module", "extra"),
    [(pydantic_ai, "pydantic_ai.messages", "pydantic-ai"), (haystack, "haystack.dataclasses", "haystack")],
)
def test_without_its_package_a_talk_is_refused_with_the_way_out(
    stored: Callable[[], bytes], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = stored()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pip install 'contextfold\[{extra}\]'"):
        one(data)


def test_messages_with_a_name_and_notes_of_their_own_are_no_framework() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Go on."}], "meta": {}, "name": "ann"}
    assert one([message]).kind == "messages"
    beside = {"events": [{"author": "ann", "content": "pushed"}], "rows": [{"message_id": 1, "message": {"text": "x"}}]}
    assert one({"messages": [message], **beside}).kind == "messages"


INTERFACES: dict[str, Any] = {
    "the AI SDK": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "List the files."}]},
        {
            "id": "2",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "Let me see."},
                {"type": "text", "text": "I look."},
                {"type": "tool-ls", "toolCallId": "c1", "state": "output-available"}
                | {"input": {"path": "."}, "output": OUTPUT},
                {"type": "source-url", "url": "https://example.com"},
                {"type": "step-start"},
                {"type": "text", "text": "There are two."},
            ],
        },
    ],
    "the AI SDK before": [
        {"id": "1", "role": "user", "content": "List the files."},
        {
            "id": "2",
            "role": "assistant",
            "content": "I look.",
            "reasoning": "Let me see.",
            "toolInvocations": [
                {"state": "result", "toolCallId": "c1", "toolName": "ls", "args": {"path": "."}, "result": OUTPUT}
            ],
        },
        {
            "id": "3",
            "role": "assistant",
            "content": "There are two.",
            "parts": [{"type": "text", "text": "There are two."}],
        },
    ],
    "the AI SDK's model": {
        "messages": [
            {"role": "user", "content": "List the files."},
            {
                "role": "assistant",
                "content": [
                    {"type": "reasoning", "text": "Let me see."},
                    {"type": "text", "text": "I look."},
                    {"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "input": {"path": "."}},
                ],
            },
            {
                "role": "tool",
                "content": [
                    {"type": "tool-result", "toolCallId": "c1", "toolName": "ls"}
                    | {"output": {"type": "text", "value": OUTPUT}}
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "There are two."}]},
        ]
    },
    "Mastra": [
        {
            "role": "user",
            "threadId": "t",
            "content": {"format": 2, "parts": [{"type": "text", "text": "List the files."}], "content": "x"},
        },
        {
            "role": "assistant",
            "threadId": "t",
            "content": {
                "format": 2,
                "parts": [
                    {"type": "step-start"},
                    {"type": "reasoning", "reasoning": "Let me see."},
                    {"type": "text", "text": "I look."},
                    {
                        "type": "tool-invocation",
                        "toolInvocation": {"state": "result", "toolCallId": "c1", "toolName": "ls"}
                        | {"args": {"path": "."}, "result": OUTPUT},
                    },
                    {"type": "step-start"},
                    {"type": "text", "text": "There are two."},
                ],
            },
        },
    ],
    "opencode": {
        "info": {"id": "ses_1", "title": "t"},
        "messages": [
            {"info": {"role": "user"}, "parts": [{"type": "text", "text": "List the files."}]},
            {
                "info": {"role": "assistant"},
                "parts": [
                    {"type": "step-start", "snapshot": "s"},
                    {"type": "reasoning", "text": "Let me see."},
                    {"type": "text", "text": "I look."},
                    {"type": "tool", "callID": "c1", "tool": "ls"}
                    | {"state": {"status": "completed", "input": {"path": "."}, "output": OUTPUT}},
                    {"type": "step-finish", "reason": "tool-calls"},
                ],
            },
            {"info": {"role": "user"}, "parts": [{"type": "compaction", "auto": True}]},
            {"info": {"role": "assistant", "summary": True}, "parts": [{"type": "text", "text": "summary"}]},
            {"info": {"role": "assistant"}, "parts": [{"type": "text", "text": "There are two."}]},
        ],
    },
}


@pytest.mark.parametrize("interface", INTERFACES)
def test_messages_made_of_parts_are_read_step_by_step(interface: str) -> None:
    """They were refused, or read without their calls, and what was said to give in their place was refused as well."""
    found = one(INTERFACES[interface])
    assert (found.kind, found.format) == ("ai-sdk", "openai-chat")
    assert [(message["role"], message["content"]) for message in found.messages] == SAID
    (call,) = found.messages[1]["tool_calls"]
    assert (call["id"], call["function"]) == ("c1", {"name": "ls", "arguments": '{"path": "."}'})
    assert found.messages[1].get("reasoning_content", "Let me see.") == "Let me see."
    assert found.messages[2]["tool_call_id"] == "c1"


def test_parts_keep_media_errors_and_calls_without_a_result() -> None:
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    shown = {
        "type": "content",
        "value": [{"type": "text", "text": "here"}, {**picture, "type": "media", "data": "AAAA"}],
    }
    parts = [
        {"type": "dynamic-tool", "toolName": "f", "toolCallId": "a", "state": "output-error", "errorText": "no"},
        {"type": "tool-g", "toolCallId": "b", "state": "output-available", "output": shown},
        {"type": "tool-h", "toolCallId": "c", "state": "input-available", "input": {"x": 1}},
        {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "d"},
    ]
    user = {"role": "user", "parts": [{"type": "text", "text": "go"}, picture, {**picture, "mediaType": "text/csv"}]}
    found = one([user, {"role": "assistant", "parts": parts}])
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert [block["type"] for block in found.messages[0]["content"]] == ["text", "image_url", "file"]
    assert [call["id"] for call in found.messages[1]["tool_calls"]] == ["a", "b", "c"]
    assert [message["content"] for message in found.messages[2:4]] == ["no", "here"]
    assert found.messages[4]["content"][1:] == [image]
    assert len(found.messages) == 5
    plain = [{"role": "system", "content": "rules"}, {"role": "user", "content": "go", "parts": []}]
    assert one([*plain, {"role": "assistant", "parts": parts}]).messages[:2] == plain


def test_chat_messages_among_those_made_of_parts_stay_as_they_are() -> None:
    """Calls beside no words, and results in blocks, were dropped without a word, and the file could not be read."""
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    chat = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": OUTPUT}]},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Once more."}],
            "tool_calls": [{**call, "id": "c2"}],
        },
        {"role": "tool", "tool_call_id": "c2", "content": OUTPUT},
    ]
    user = {"role": "user", "parts": [{"type": "text", "text": "List the files."}]}
    assert one([user, *chat, user]).messages[1:-1] == chat


def test_a_trajectory_of_trae_agent_is_one_conversation_with_its_answers_and_results() -> None:
    """Each request in it holds what was new alone, so each was a conversation; answers and results were in none."""
    call = {"call_id": "c1", "name": "ls", "arguments": {"path": "."}, "id": None}
    result = {"call_id": "c1", "success": False, "result": OUTPUT, "error": "1 is hidden", "id": None}
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "List the files."}]
    answers = [{"content": "I look.", "tool_calls": [call]}, {"content": "There are two.", "tool_calls": None}]
    inputs = [asked, [{"role": "user", "content": None, "tool_result": result}]]
    requests = [{"input_messages": new, "response": one} for new, one in zip(inputs, answers, strict=True)]
    steps = [{"llm_messages": asked, "llm_response": answers[0], "tool_results": [result]}]
    found = one({"task": "x", "llm_interactions": requests, "agent_steps": steps, "final_result": "There are two."})
    function = {"name": "ls", "arguments": '{"path": "."}'}
    assert (found.kind, found.messages) == (
        "trae-agent",
        [
            *asked,
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": f"{OUTPUT}\n1 is hidden"},
            {"role": "assistant", "content": "There are two."},
        ],
    )


GOOSE = [
    {"role": "user", "created": 1, "content": [{"type": "text", "text": "List the files."}]},
    {
        "role": "assistant",
        "created": 2,
        "content": [
            {"type": "thinking", "thinking": "so", "signature": "s"},
            {"type": "text", "text": "I look."},
            {
                "type": "toolRequest",
                "id": "c1",
                "toolCall": {"status": "success", "value": {"name": "ls", "arguments": {"path": "."}}},
            },
            {"type": "toolRequest", "id": "c2", "toolCall": {"status": "error", "error": "no such tool"}},
        ],
    },
    {
        "role": "user",
        "created": 3,
        "content": [
            {
                "type": "toolResponse",
                "id": "c1",
                "toolResult": {
                    "status": "success",
                    "value": [
                        {"type": "text", "text": OUTPUT, "annotations": {"audience": ["assistant"]}},
                        {"type": "text", "text": "shown", "annotations": {"audience": ["user"]}},
                    ],
                },
            },
            {"type": "toolResponse", "id": "c2", "toolResult": {"status": "error", "error": "no such tool"}},
        ],
    },
    {"role": "assistant", "created": 4, "content": [{"type": "text", "text": "There are two."}]},
]


def test_a_session_of_goose_is_read_with_its_calls_and_results() -> None:
    """It was refused for its first row, or for its blocks."""
    header = {"working_dir": "/w", "description": "d", "message_count": 4}
    found = one(rows(header, *GOOSE))
    assert (found.kind, found.format, roles(found.messages)) == ("goose", "anthropic", [one["role"] for one in GOOSE])
    messages = formats.decode(found.messages, formats.get("anthropic"))
    assert [(call.id, call.name) for call in messages[1].tool_calls] == [("c1", "ls"), ("c2", "tool")]
    result, failed = messages[2].tool_results
    assert (result.call_id, result.text, failed.call_id, failed.text) == ("c1", OUTPUT, "c2", "no such tool")
    assert failed.is_error
    assert one({**header, "conversation": GOOSE}).messages == found.messages
    assert one(rows(header, *GOOSE[:1])).messages == found.messages[:1]
    converse = [{"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "x"}]}}]}]
    assert one(converse).format == "bedrock-converse"


def test_what_gooses_own_compaction_wrote_is_no_word_of_the_users() -> None:
    """Its summary stood among them, beside all that it is of, and the newest question twice."""
    asked = {"role": "user", "content": [{"type": "text", "text": "How many?"}]}
    summary = {"role": "user", "content": [{"type": "text", "text": "Two files."}]}
    goes_on = {"role": "assistant", "content": [{"type": "text", "text": "The context was compacted."}]}
    shown, unseen = {"userVisible": True, "agentVisible": False}, {"userVisible": False, "agentVisible": False}
    of_agent = {"userVisible": False, "agentVisible": True}
    before = [*({**row, "metadata": shown} for row in GOOSE), {**asked, "metadata": unseen}]
    compacted = [*before, {**summary, "metadata": of_agent}, {**goes_on, "metadata": of_agent}, asked]
    assert one(compacted).messages == one([*GOOSE, asked]).messages
    assert len(one([*GOOSE, {**summary, "metadata": of_agent}]).messages) == len(GOOSE) + 1


def test_a_file_that_a_tool_of_gooses_gave_is_its_result() -> None:
    """Its editor answers with the file as a resource of MCP: what the model had read was in no message."""
    file = {"type": "resource", "resource": {"uri": "file:///w/a", "mimeType": "text", "text": OUTPUT}}
    link = {"type": "resource_link", "uri": "file:///w/b", "name": "b"}
    shown = {"type": "text", "text": "shown", "annotations": {"audience": ["user"]}}
    for given, text in (([file, shown], OUTPUT), ([link], "file:///w/b")):
        result = {"status": "success", "value": {"content": given}}
        answer = {"role": "user", "content": [{"type": "toolResponse", "id": "c1", "toolResult": result}]}
        found = one([*GOOSE[:2], answer])
        messages = formats.decode(found.messages, formats.get("anthropic"))
        assert text in messages[2].tool_results[0].text


def test_a_call_that_the_program_around_goose_ran_is_read_with_what_it_thought() -> None:
    """Its result stood without a call, and what it had thought under a seal was in no message."""
    called = {"type": "frontendToolRequest", "id": "c1", "toolCall": {"status": "success", "value": {"name": "pick"}}}
    sealed = {"type": "redactedThinking", "data": "sealed"}
    answer = {"type": "toolResponse", "id": "c1", "toolResult": {"value": [{"type": "text", "text": "x"}]}}
    found = one([GOOSE[0], {"role": "assistant", "content": [sealed, called]}, {"role": "user", "content": [answer]}])
    call = {"type": "tool_use", "id": "c1", "name": "pick", "input": {}}
    assert found.messages[1]["content"] == [{"type": "redacted_thinking", "data": "sealed"}, call]


def test_a_session_of_copilot_cli_is_read_with_its_calls_and_results() -> None:
    """Its events were refused as no messages."""
    call = {"toolCallId": "c1", "name": "ls", "arguments": {"path": "."}, "type": "function"}
    done = {"toolCallId": "c1", "success": True, "result": {"content": OUTPUT, "detailedContent": "more"}}
    events = [
        ("session.start", {"sessionId": "s"}),
        ("user.message", {"content": "List the files.", "attachments": []}),
        ("assistant.turn_start", {"turnId": "0"}),
        ("assistant.message", {"messageId": "m", "content": "I look.", "toolRequests": [call]}),
        ("tool.execution_start", {"toolCallId": "c1", "toolName": "ls", "arguments": {"path": "."}}),
        ("assistant.message", {"content": "of a sub-agent", "toolRequests": [], "parentToolCallId": "c1"}),
        ("tool.execution_complete", done),
        ("assistant.message", {"content": "There are two.", "toolRequests": [], "reasoningText": "two"}),
    ]
    found = one(rows(*({"type": kind, "data": data, "id": "x", "timestamp": "t"} for kind, data in events)))
    assert found.kind == "copilot-cli"
    messages = formats.decode(found.messages, formats.get(found.format))
    assert [(message.role, message.text or message.tool_results[0].text) for message in messages] == SAID
    assert [(one.id, one.name, one.arguments) for one in messages[1].tool_calls] == [("c1", "ls", '{"path": "."}')]
    failed = {**done, "success": False, "result": None, "error": {"message": "denied", "code": "x"}}
    again = [(kind, failed if data is done else data) for kind, data in events]
    found = one(rows(*({"type": kind, "data": data} for kind, data in again)))
    assert found.messages[2]["content"] == "denied"
    # A person runs tools, too: what came of one was in no message.
    run = ("tool.execution_complete", {**done, "toolCallId": "c2", "result": {"content": "on main"}})
    found = one(rows(*({"type": kind, "data": data} for kind, data in [*events, run])))
    assert found.messages[-1] == {"role": "tool", "tool_call_id": "c2", "content": "on main"}


def test_rows_without_a_talk_of_the_kind_of_the_first_are_told() -> None:
    """A row of messages in another format was left out without a word."""
    turns = [{"from": "human", "value": "Go."}, {"from": "gpt", "value": "Done."}]
    other = {"messages": [{"role": "user", "content": "Stop."}]}
    found = several(rows({"conversations": turns}, {"conversations": []}, other, {"conversations": turns}))
    told = ("lines 2-3: left out, as they hold no messages of sharegpt",)
    assert [one.left_out for one in found] == [told, told]
    assert not one(rows(*turns)).left_out


@pytest.mark.parametrize("done", ["output-available", "result", "completed"])
def test_a_call_that_came_to_its_end_without_a_word_has_a_result(done: str) -> None:
    """It was told as one that was never answered."""
    held = {"toolCallId": "a", "toolName": "save", "state": done, "args": {}}
    parts = {
        "output-available": {**held, "type": "tool-save", "output": None},
        "result": {"type": "tool-invocation", "toolInvocation": held},
        "completed": {"type": "tool", "callID": "a", "tool": "save", "state": {"status": done, "input": {}}},
    }
    asked = {"role": "user", "parts": [{"type": "text", "text": "go"}]}
    assert roles(one([asked, {"role": "assistant", "parts": [parts[done]]}]).messages) == ["user", "assistant", "tool"]
