"""Bad input: one clear line that names the file, the place, what is wrong, and what to do."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextfold.errors import InputError
from contextfold.transcripts import read, read_file
from effort import examples
from transcripts.files import rows, several

USER = {"role": "user", "content": "go"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ["the file is empty"]),
        (b" \n\t\n", ["the file is empty"]),
        (b'[{"role": "user", "content": "go"}', ["line 1, column 35", "not valid JSON", "cut off"]),
        (b'{\n  "messages": [\n    {"role": "us', ["line 3, column 14", "not valid JSON"]),
        (b'{"a": ' + b"1" * 5000 + b"}", ["not valid JSON", "more digits than can be read"]),
        (repr([USER]).encode(), ["line 1, column 3", "how Python shows a value", "json.dump"]),
        ((repr(USER) + "\n").encode() * 2, ["how Python shows a value", "json.dump"]),
        (json.dumps([USER]).encode("utf-16-le"), ["looks like UTF-16", "save the file as UTF-8"]),
        (rows(USER)[:-3], ["line 1", "not valid JSON"]),
        (json.dumps(USER, indent=1).encode() * 2, ["line 4, column 2", "another JSON value begins", "on one line"]),
        (json.dumps([USER]).encode() * 2, ["line 1, column 36", "another JSON value begins", "jq -c"]),
        *((json.dumps([USER]).encode() + end, ["column 36", "edited by hand"]) for end in (b"]", b",[]", b"end")),
        (rows(USER, USER)[:-5], ["line 2, column", "last line is cut off", "if it is being written, try again"]),
        (rows(USER) + b"{broken\n" + rows(USER), ["line 2, column 2", "not valid JSON", "repair or delete that line"]),
        (rows(USER) + b"[" * 100_000 + b"\n" + rows(USER), ["line 2", "nested too deeply"]),
        (b"[" * 100_000, ["nested too deeply"]),
        (b"\x1f\x8b\x08\x00", ["it is packed (gzip)", "unpack it first"]),
        (
            b'{"role": "user", "content": "\xff"}',
            ["byte 0xff at offset 29", "save the file as UTF-8"],
        ),
        (b'\xff\xfe[\x00"', ["at offset 4", "not valid UTF-16", "save the file as UTF-8"]),
        (rows(USER, 3, USER), ["line 2", "a chat message is a JSON object, and this is a number"]),
        (b"[" + rows(USER).strip() + b", 3, " + rows(USER).strip() + b"]", ["message 1", "this is a number"]),
        (rows({"messages": [USER, "x", USER]}), ["message 1", "this is a string"]),
        (rows({"messages": [USER, {"role": "boss", "content": "x"}]}), ["message 1", "unknown role 'boss'"]),
        (b"3", ["this JSON is a number", "give a list of messages"]),
        (b'"hello"', ["this JSON is a string"]),
        (b"null", ["this JSON is null"]),
        (b"{}", ["the JSON object is empty"]),
        (b'{"a": 1, "b": 2}', ["no list of messages in this JSON object (its keys: a, b)"]),
        (b"[1, 2]", ["message 0 is a number and no message"]),
        (b'{"name": "x"}\n{"name": "y"}', ["line 1 is an object and no message (its keys: name)"]),
        (json.dumps({"a\nb" + "c" * 99: 1}).encode(), ["(its keys: a\\nbccc", "…)"]),
        (b"MIT License\n\nPermission is hereby granted", ["neither JSON nor JSON Lines"]),
        (b"key: value\nlist:\n- one\n", ["neither JSON nor JSON Lines"]),
        (b"data: hello\n", ["neither JSON nor JSON Lines"]),
        (b'data: {"id": "x", "choices": [{"delta": {"content": "hi"}}]}\n', ["neither JSON nor JSON Lines"]),
        (b"SQLite format 3\0\x10\xff", ["it is a database of SQLite", "export a conversation"]),
        (b"PAR1\x15\x04\x80PAR1", ["Parquet", "contextfold batch"]),
    ],
)
def test_bad_input_is_refused_in_one_line_with_the_place_and_the_way_out(data: bytes, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        read(data, name="folder/talk.json")
    text = str(error.value)
    assert text.startswith("folder/talk.json: ")
    assert "\n" not in text
    assert len(text) < 300
    for expected in words:
        assert expected in text


CONTENT = {"content_type": "text", "parts": ["hi"]}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([{"id": "b", "custom_id": "a", "response": {"body": {"choices": []}}}], ["batch API", "file of requests"]),
        ([{"custom_id": "a", "result": {"message": {"role": "assistant", "content": "x"}}}], ["Anthropic's batch API"]),
        ([{"prompt": "a", "completion": "b"}], ["pairs of a prompt", "list of messages"]),
        ({"requesterUsername": "u", "requests": [{"message": {"text": "go"}}]}, ["Copilot", "not what was sent"]),
        ({"kind": "MessageEvent", "id": "e", "source": "user", "llm_message": {}}, ["one event of OpenHands", "list"]),
        (
            [{"id": "1", "role": "agent", "parts": [{"type": "text", "text": "go"}]}],
            ["AI SDK", "convertToModelMessages"],
        ),
        (rows({"type": "text", "sessionID": "s", "part": {"type": "text", "text": "go"}}), ["opencode export"]),
        (rows({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}), ["codex exec", "rollout-"]),
        (
            rows(
                {"type": "init", "session_id": "s", "model": "m", "timestamp": "t"},
                {"type": "message", "role": "user", "content": "go", "timestamp": "t"},
                {"type": "tool_use", "tool_name": "f", "tool_id": "c", "parameters": {}},
            ),
            ["Gemini CLI", "stream-json", "chats"],
        ),
        ([{"sessionId": "s", "messageId": 0, "type": "user", "message": "go"}], ["log of prompts", "chats"]),
        ({"info": {}, "messages": [{"info": {"role": "user"}, "parts": []}]}, ["opencode"]),
        ([{"ts": 1, "type": "say", "say": "text", "text": "go"}], ["Cline", "api_conversation_history.json"]),
        ({"messages": [{"source": "user", "content": "go", "type": "TextMessage"}]}, ["AutoGen", "LLMCall"]),
        (
            {
                "agent_states": {
                    "a": {"agent_state": {"llm_context": {"messages": [{"content": "x", "type": "UserMessage"}]}}}
                }
            },
            ["AutoGen", "LLMCall"],
        ),
        (b"<|start|>user<|message|>go<|end|>", ["Harmony", "openai-harmony"]),
        (rows({"prompt": "q", "chosen": "a", "rejected": "b"}), ["preferred", "list of messages"]),
        (rows({"instruction": "q", "input": "", "output": "b"}), ["instructions", "list of messages"]),
        ({"version": 3, "sessionId": "s", "requests": [{"message": {"text": "go"}}]}, ["VS Code", "chatreplay"]),
        ({"sessionId": "s", "history": [{"message": {"role": "user", "content": "go"}}]}, ["Continue", "history"]),
        ({"version": "0.3.0", "messages": [{"User": {"content": [{"Text": "go"}]}}]}, ["Zed", "role and content"]),
        ({"messages": [{"messageId": "m", "sender": "User", "text": "go"}]}, ["LibreChat", "one branch"]),
        ([{"id": "m", "message_type": "user_message", "content": "go"}], ["Letta", "role and content"]),
        ({"chunkedPrompt": {"chunks": [{"text": "go", "role": "user"}]}}, ["AI Studio", "parts"]),
        ({"log": {"entries": [{"startedDateTime": "t", "request": {}, "response": {}}]}}, ["HAR", "postData"]),
        ([{"id": "m", "role": "user", "parts": [{"type": "text", "data": {"text": "go"}}]}], ["Crush", "data"]),
        (rows({"display": "go", "pastedContents": {}, "project": "/w"}), ["Claude Code", "projects"]),
        ({"type": "result", "subtype": "success", "result": "done", "session_id": "s"}, ["claude -p", "stream-json"]),
        (rows({"session_id": "s", "ts": 1, "text": "go"}), ["Codex", "rollout-"]),
        ({"id": "p", "sessionID": "s", "messageID": "m", "type": "text", "text": "go"}, ["opencode export"]),
        ({"id": "m", "sessionID": "s", "role": "user", "time": {"created": 1}}, ["opencode export"]),
        (rows({"kind": 0, "v": {"version": 3, "requests": []}}, {"kind": 1, "k": ["x"], "v": 1}), ["VS Code", "chatr"]),
        (
            {"name": "x", "messages": [{"versions": [{"role": "user", "content": []}], "currentlySelected": 0}]},
            ["LM Studio", "version"],
        ),
        (
            {"store": {"me": [{"role": "user", "blocks": [{"block_type": "text", "text": "go"}]}]}},
            ["LlamaIndex", "role and content"],
        ),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "GET"}]}]}]}, ["OpenTelemetry", "CAPTURE_MESSAGE"]),
    ],
)
def test_what_holds_no_conversation_of_a_model_is_named_with_the_way_to_one(value: Any, words: list[str]) -> None:
    """It was told by its keys alone, and the way out was that of any other file."""
    with pytest.raises(InputError) as error:
        several(value)
    for expected in ("talk: it looks like ", *words):
        assert expected in str(error.value)


def test_a_packed_log_of_inspect_is_named_with_what_unpacks_it() -> None:
    with pytest.raises(InputError, match="inspect log dump"):
        read(b"PK\x03\x04\xff\xff", name="logs/run.eval")


def test_a_message_that_the_format_refuses_is_named_by_its_line() -> None:
    result = {"role": "tool", "content": "x"}
    with pytest.raises(InputError, match="talk: line 2: a tool message has no 'tool_call_id'"):
        several(rows(USER, result))
    with pytest.raises(InputError, match=r"message 1: unknown role 'tool'.*read as anthropic"):
        several({"messages": [USER, result]}, format="anthropic")
    with pytest.raises(InputError, match="unknown format 'x'"):
        several([USER], format="x")


def test_a_message_nested_too_deeply_to_be_handled_is_refused() -> None:
    deep: Any = {}
    for _ in range(900):
        deep = {"x": deep}
    call = {"type": "tool_use", "id": "c", "name": "f", "input": deep}
    try:
        several([{"role": "assistant", "content": [call]}])
    except InputError as error:
        assert "nested too deeply" in str(error)  # noqa: PT017 - where the limit lies is Python's affair


@pytest.mark.parametrize(("name", "words"), [("missing.json", "No such file"), (".", "directory")])
def test_a_file_that_cannot_be_opened_is_refused_by_name(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        read_file(tmp_path / name)
    assert words in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_file_is_named_by_its_path_however_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(rows(USER))
    assert read_file(path)[0].name == read_file(str(path))[0].name == str(path)


ARGUMENTS = {"args": {}, "arguments": "{}", "name": "f", "id": "c"}
CALL = {"id": "c", "type": "function", "function": ARGUMENTS}
USE = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
MLFLOW = {"mlflow.spanType": "LLM", "mlflow.spanInputs": [USER], "mlflow.spanOutputs": {"message": USER}}
CALLED = {"call_id": "c", "name": "f", "arguments": {"a": 1}}
REQUESTED = {"toolCallId": "c", "name": "f", "arguments": {"a": 1}}
GIVEN = {"type": "text", "text": "x", "annotations": {"audience": ["assistant"]}}
FILE = {"type": "resource", "resource": {"uri": "u", "text": "x"}}
LETTA = {"role": "user", "content": [{"type": "text", "text": "x"}], "tool_calls": None, "tool_returns": []}
RETURNED = {"tool_call_id": "c", "status": "success", "func_response": "x"}
SESSIONS: dict[str, Any] = {
    "chatgpt": {"current_node": "c", "title": "t"}
    | {
        "mapping": {
            "a": {"message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["go"]}}},
            "b": {"parent": "a"}
            | {"message": {"author": {"role": "assistant"}, "recipient": "python", "content": {"text": "1"}}},
            "c": {"parent": "b", "message": {"author": {"role": "tool"}, "content": {"parts": [{"text": "x"}]}}},
        }
    },
    "claude-apps": {"uuid": "u"}
    | {
        "chat_messages": [
            {"uuid": "1", "sender": "human", "text": "go", "files": [{"file_name": "f"}], "parent_message_uuid": "0"},
            {"uuid": "2", "sender": "assistant", "parent_message_uuid": "1"}
            | {"content": [USE, {"type": "tool_result", "tool_use_id": "c", "content": [{"text": "x"}]}]},
        ]
    },
    "claude-code": [
        {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": USER},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "s", "requestId": "r"}
        | {"message": {"id": "m", "role": "assistant", "content": [USE]}},
        {"type": "user", "uuid": "3", "parentUuid": "2", "sessionId": "s"}
        | {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}},
        {"type": "tool_call", "call_id": "d", "tool_call": {"function": {"name": "f", "args": {}, "result": "x"}}},
    ],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s", "instructions": "rules"}},
        {"type": "response_item", "payload": {"type": "message", **USER, "content": [{"type": "input_text"}]}},
        {"type": "response_item", "payload": {"type": "function_call", "call_id": "c", **ARGUMENTS}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "x"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "go"}},
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    ],
    "pi": [
        {"type": "session", "id": "s", "version": 3},
        {"type": "message", "id": "1", "parentId": None, "message": USER},
        {"type": "message", "id": "2", "parentId": "1"}
        | {"message": {"role": "assistant", "content": [{"type": "toolCall", **ARGUMENTS}]}},
        {"type": "message", "id": "3", "parentId": "2"}
        | {"message": {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": "x"}]}},
    ],
    "gemini-cli": {
        "sessionId": "s",
        "projectHash": "h",
        "messages": [
            {"id": "1", "type": "user", "content": "go"},
            {"id": "2", "type": "gemini", "content": "", "thoughts": [{"subject": "a", "description": "b"}]}
            | {
                "toolCalls": [{**ARGUMENTS, "result": [{"functionResponse": {"id": "c", "response": {"output": "x"}}}]}]
            },
        ],
    },
    "qwen-code": [
        {"uuid": "1", "parentUuid": None, "sessionId": "s", "type": "user"}
        | {"message": {"role": "user", "parts": [{"text": "go"}]}},
        {"uuid": "2", "parentUuid": "1", "sessionId": "s", "type": "assistant"}
        | {"message": {"role": "model", "parts": [{"functionCall": {**ARGUMENTS}}]}},
    ],
    "ai-sdk": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "go"}, {"type": "file", "url": "data:,x"}]},
        {"id": "2", "role": "assistant", "parts": [{"type": "tool-f", "toolCallId": "c", "input": {}, "output": "x"}]},
        {"id": "3", "role": "assistant", "content": "x", "toolInvocations": [{"toolCallId": "d", "toolName": "f"}]},
        {"info": {"role": "assistant"}, "parts": [{"type": "tool", "callID": "e", "tool": "f"}]}
        | {"parts": [{"type": "tool", "callID": "e", "tool": "f", "state": {"output": "x", "attachments": [USER]}}]},
    ],
    "copilot": {
        "prompts": [
            {
                "prompt": "go",
                "logs": [
                    {"kind": "request", "response": {"message": ["x"]}, "metadata": {"tools": [CALL]}}
                    | {
                        "requestMessages": {
                            "messages": [{"role": 1, "content": [{"type": 1, "text": "go"}], "toolCalls": [CALL]}]
                        }
                    }
                ],
            }
        ]
    },
    "google-adk": {"id": "s", "appName": "a", "events": [{"author": "user", "content": {"parts": [{"text": "go"}]}}]},
    "server-sent-events": [
        {"id": "u", **USER},
        {"id": "m", "role": "assistant", "tool_calls": [ARGUMENTS], "tool_call_chunks": [{"id": "c", "args": "{}"}]},
        {"id": "r", "tool_call_id": "c", "content": "x"},
    ],
    "response-stream": [
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.completed", "response": {"instructions": "r", "output": [{"type": "message", **USER}]}},
    ],
    "messages": {
        "messages": [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}],
        "response": {"choices": [{"message": {"role": "assistant", "content": "x"}}]},
        "tools": [CALL],
    },
    "goose": [
        {"working_dir": "/w", "description": "d", "message_count": 2},
        {
            "role": "user",
            "content": [{"type": "text", "text": "x"}, {"type": "image", "mimeType": "p", "data": "eA=="}],
        },
        {"role": "assistant", "content": [{"type": "toolRequest", "id": "c", "toolCall": {"value": CALL["function"]}}]},
        {"role": "user", "content": [{"type": "toolResponse", "id": "c", "toolResult": {"value": [GIVEN, FILE]}}]},
    ],
    "letta": {
        "agents": [
            {
                "messages": [
                    {
                        **LETTA,
                        "role": "approval",
                        "tool_calls": [CALL],
                        "content": [{"type": "reasoning", "reasoning": "x"}],
                    },
                    {**LETTA, "role": "approval", "approvals": [RETURNED]},
                    {**LETTA, "role": "tool", "tool_returns": [RETURNED], "tool_call_id": "c"},
                ]
            }
        ]
    },
    "trae-agent": {
        "llm_interactions": [
            {"input_messages": [USER], "response": {"content": None, "tool_calls": [CALLED]}},
            {"input_messages": [{"role": "user", "tool_result": {**CALLED, "result": "x", "error": None}}]}
            | {"response": {"content": "x"}},
        ]
    },
    "copilot-cli": [
        {"type": "session.start", "data": {"sessionId": "s"}},
        {"type": "user.message", "data": {"content": "x"}},
        {"type": "assistant.message", "data": {"content": "x", "reasoningText": "x", "toolRequests": [REQUESTED]}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "c", "result": {"content": "x"}}},
    ],
    "mlflow": {"attributes": {name: json.dumps(value) for name, value in MLFLOW.items()}},
    "opentelemetry": {"attributes": {"llm": {"input_messages": [{"message": {**USER, "tool_calls": [CALL]}}]}}},
}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each mapping or list in a value, with each of its keys or places."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


@pytest.mark.parametrize("kind", SESSIONS)
def test_a_session_with_any_value_in_any_place_is_read_or_refused_and_nothing_else(kind: str) -> None:
    """A call of pi's whose id was a list ended in a ``TypeError``, and calls of Gemini CLI's that were a number."""
    session = json.loads(json.dumps(SESSIONS[kind]))

    def data() -> bytes:
        if kind == "server-sent-events":
            return "".join(f"data: {json.dumps(piece)}\n\n" for piece in session).encode()
        return rows(*session) if isinstance(session, list) else json.dumps(session).encode()

    assert read(data(), name="talk")[0].kind == kind
    for holder, key in _places(session):
        held = holder[key]
        for odd in ([1], {"a": 1}, None, 3, True, "", [[]], 1e400):
            holder[key] = odd
            with contextlib.suppress(InputError):
                read(data(), name="talk")
        holder[key] = held


WRAPPER_KEYS = [
    *("role", "type", "content", "text", "message", "messages", "payload", "sessionId", "history", "request"),
    *("response", "input", "interactions", "prompts", "logs", "requestMessages", "conversations", "dialogues"),
    *("conversation_list", "toolCalls", "output", "choices", "id", "kwargs", "data", "uuid", "toolCallId"),
]
_JSON = st.recursive(
    st.none() | st.integers(-2, 2) | st.sampled_from(["user", "assistant", "message", "text", "x", "gemini"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(WRAPPER_KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(_JSON, max_size=4), st.booleans())
def test_any_json_is_read_or_refused_and_nothing_else(values: list[Any], as_rows: bool) -> None:
    """No file, however odd, ends in another exception than InputError."""
    try:
        found = several(rows(*values)) if as_rows else several(values)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert all(isinstance(conversation.messages, list) for conversation in found)


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_and_nothing_else(data: bytes) -> None:
    try:
        read(data, name="talk")
    except InputError as error:
        assert str(error).startswith("talk: ")  # noqa: PT017 - both outcomes are right
