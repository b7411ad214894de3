"""Sessions of agents: what is merged, what is left out, and what every kind of row becomes."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from contextfold.errors import InputError
from contextfold.transcripts import claude_code, codex
from contextfold.transcripts.document import TranscriptFile
from transcripts.files import one, roles, rows, several


def claude(kind: str, content: Any, **row: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **row.pop("message", {})}
    return {"type": kind, "sessionId": "s", "message": message, **row}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": call_id}


# ---- Claude Code -----------------------------------------------------------------------------------------------------


def test_interleaved_rows_of_one_answer_become_one_message_and_one_user_message_with_all_results() -> None:
    answer = {"id": "m1"}
    found = one(
        rows(
            {"type": "summary", "summary": "x"},
            claude("user", "go"),
            claude("assistant", [{"type": "thinking", "thinking": "t", "signature": "s"}], message=answer),
            claude("assistant", [use("a")], message=answer),
            claude("user", [result("a")], toolUseResult={"stdout": "a"}),
            {"type": "progress", "sessionId": "s"},
            claude("assistant", [use("b")], message=answer),
            claude("user", [result("b"), {"type": "text", "text": "stop"}]),
            claude("assistant", "done", message={"id": "m2"}),
        )
    )
    assert (found.kind, found.format, found.name) == ("claude-code", "anthropic", "talk")
    assert found.messages == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, use("a"), use("b")],
        },
        {"role": "user", "content": [result("a"), result("b")]},
        {"role": "user", "content": [{"type": "text", "text": "stop"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]


def test_rows_that_no_model_was_sent_are_left_out_and_compaction_boundaries_are_passed() -> None:
    found = one(
        rows(
            claude("user", "go", uuid="u1"),
            claude("user", "go", uuid="u1"),
            claude("user", "aside", isSidechain=True),
            claude("assistant", [{"type": "text", "text": "error"}], message={"model": "<synthetic>"}),
            {"type": "system", "subtype": "compact_boundary", "sessionId": "s"},
            claude("user", "summary", isCompactSummary=True),
            claude("user", ""),
            claude("assistant", [use("a")]),
            claude("assistant", [use("a")]),
            claude("user", [result("orphan")]),
            claude("user", "on"),
        )
    )
    assert found.messages == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use("a")]},
        {"role": "user", "content": [result("orphan")]},
        {"role": "user", "content": "on"},
    ]


def test_what_was_said_while_claude_code_worked_is_a_message_of_the_users() -> None:
    """It is written as an attachment, and never as a message: the user's words were nowhere in the conversation."""

    def queued(prompt: Any, **fields: Any) -> dict[str, Any]:
        attached = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
        return {"type": "attachment", "attachment": attached, "sessionId": "s", **fields}

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    found = one(
        rows(
            claude("user", "go"),
            claude("assistant", [use("a"), use("b")]),
            claude("user", [result("a")]),
            queued("never touch main", uuid="q"),
            queued("never touch main", uuid="q"),
            claude("user", [result("b")]),
            queued([{"type": "text", "text": "like this"}, image]),
            queued("of a sub-agent", isSidechain=True),
            queued(""),
            {"type": "attachment", "attachment": {"type": "date_change", "newDate": "2026-05-01"}, "sessionId": "s"},
            claude("assistant", "done"),
        )
    )
    assert found.messages[2:-1] == [
        {"role": "user", "content": [result("a"), result("b")]},
        {"role": "user", "content": "never touch main"},
        {"role": "user", "content": [{"type": "text", "text": "like this"}, image]},
    ]


def test_a_summary_that_a_file_begins_with_is_all_there_is_of_what_came_before() -> None:
    summary = claude("user", "what was done", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    found = one(rows(summary, claude("user", "on"), claude("user", "once more", isCompactSummary=True)))
    assert [message["content"] for message in found.messages] == ["what was done", "on"]
    item = {"type": "message", "role": "user", "content": "on"}
    left = {"type": "message", "role": "user", "content": "what was done"}
    for payload in ({"message": "what was done"}, {"message": "", "replacement_history": [left]}):
        codex = one(rows({"type": "compacted", "payload": payload}, {"type": "response_item", "payload": item}))
        assert codex.messages == [left, item]


def test_a_file_of_nothing_but_a_sub_agents_rows_is_its_session() -> None:
    own = [claude("user", "look", isSidechain=True), claude("assistant", [use("a")], isSidechain=True)]
    assert roles(one(rows(*own)).messages) == ["user", "assistant"]
    assert [message["content"] for message in one(rows(*own, claude("user", "go"))).messages] == ["go"]


def test_rows_that_claude_code_prints_are_those_of_its_files() -> None:
    def printed(kind: str, content: Any, works_for: str | None = None, **message: Any) -> dict[str, Any]:
        row = {"type": kind, "message": {"role": kind, "content": content, **message}, "session_id": "s"}
        return {**row, "parent_tool_use_id": works_for}

    events = [
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]},
        printed("assistant", [{"type": "text", "text": "I look."}], id="m"),
        printed("assistant", [use("a")], id="m"),
        printed("user", "look", "a"),
        printed("assistant", [{"type": "text", "text": "aside"}], "a"),
        printed("user", [result("a")]),
        {"type": "result", "subtype": "success", "result": "done", "session_id": "s"},
    ]
    for data in (rows(*events), json.dumps(events).encode()):
        found = one(data)
        assert (found.kind, found.format) == ("claude-code", "anthropic")
        assert found.messages == [
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use("a")]},
            {"role": "user", "content": [result("a")]},
        ]


def test_what_cursors_agent_prints_keeps_the_calls_that_it_tells_in_rows_of_their_own() -> None:
    """Its other rows are as Claude Code's, so that it was read as a session of its, without a call in it."""
    path, content = {"path": "a"}, {"success": {"content": "x"}}

    def told(state: str, call: str, **tool: Any) -> dict[str, Any]:
        return {"type": "tool_call", "subtype": state, "call_id": call, "tool_call": tool, "session_id": "s"}

    def said(kind: str, text: str) -> dict[str, Any]:
        message = {"role": kind, "content": [{"type": "text", "text": text}]}
        return {"type": kind, "message": message, "session_id": "s"}

    found = one(
        rows(
            {"type": "system", "subtype": "init", "session_id": "s", "model": "m"},
            *(said("user", "go"), said("assistant", "I look.")),
            told("started", "c", readToolCall={"args": path}),
            told("started", "d", function={"name": "f", "arguments": "{}"}),
            told("completed", "c", readToolCall={"args": path, "result": content}),
            told("completed", "d", function={"name": "f", "arguments": "{}"}),
            told("completed", "e", readToolCall=3),
            said("assistant", "done"),
            {"type": "result", "subtype": "success", "result": "I look.done", "session_id": "s"},
        )
    )
    calls = [
        {"type": "tool_use", "id": "c", "name": "read", "input": path},
        {"type": "tool_use", "id": "d", "name": "f", "input": {"arguments": "{}"}},
        {"type": "tool_use", "id": "e", "name": "tool", "input": {}},
    ]
    answer = {"type": "tool_result", "tool_use_id": "c", "content": json.dumps(content)}
    assert [message["content"][0] for message in found.messages] == [
        {"type": "text", "text": "go"},
        {"type": "text", "text": "I look."},
        *(calls[0], answer, *calls[1:]),
        {"type": "text", "text": "done"},
    ]


def test_a_session_of_one_row_is_one_object_and_is_read() -> None:
    assert one(rows(claude("user", "go"))).kind == "claude-code"


def test_another_format_named_for_a_session_is_refused() -> None:
    data = rows(claude("user", "go"))
    assert one(data, format="anthropic").format == "anthropic"
    with pytest.raises(InputError, match="talk: a file of kind claude-code is read as anthropic, not openai-chat"):
        several(data, format="openai-chat")


# ---- Qwen Code -------------------------------------------------------------------------------------------------------


def qwen(number: int, kind: str, *parts: Any, parent: int | None = -1, **row: Any) -> dict[str, Any]:
    before = number - 1 if parent == -1 else parent
    role = "model" if kind == "assistant" else "user"
    message = {"message": {"role": role, "parts": list(parts)}} if parts else {}
    ids = {"uuid": str(number), "parentUuid": str(before) if before else None, "sessionId": "s"}
    return {**ids, "type": kind, **message, **row}


def test_a_session_of_qwen_code_is_what_went_to_the_model_and_came_from_it() -> None:
    """It was refused, but after the product's own compaction: then its summary was read as the whole conversation."""
    call = {"functionCall": {"id": "c", "name": "f", "args": {}}}
    answer = {"functionResponse": {"id": "c", "name": "f", "response": {"output": "x"}}}
    compressed = {"compressedHistory": [{"role": "user", "parts": [{"text": "summary"}]}]}
    found = one(
        rows(
            qwen(1, "system", subtype="session_model", systemPayload={"model": "m"}),
            qwen(2, "user", {"text": "go"}),
            qwen(3, "assistant", {"text": "I look."}, call),
            qwen(4, "tool_result", answer, toolCallResult={"callId": "c"}),
            qwen(5, "user", {"text": "aside"}, isSidechain=True, parent=None),
            qwen(6, "system", subtype="chat_compression", systemPayload=compressed, parent=4),
            qwen(7, "assistant", {"text": "wrong"}),
            qwen(8, "system", subtype="rewind", parent=6),
            qwen(9, "user", {"text": "on"}),
            qwen(10, "assistant", {"text": "done"}),
        )
    )
    assert (found.kind, found.format, roles(found.messages)) == (
        "qwen-code",
        "gemini",
        ["user", "model", "user", "user", "model"],
    )
    assert [message["parts"][0] for message in found.messages] == [
        {"text": "go"},
        {"text": "I look."},
        answer,
        {"text": "on"},
        {"text": "done"},
    ]
    assert found.left_out == ("line 7: left out, as the person went back and said something else",)


def test_rows_of_qwen_code_that_do_not_hang_together_are_all_read() -> None:
    for parents in ({"parent": 77}, {"uuid": None}, {"uuid": 5}, {"parentUuid": []}):
        found = one(rows(qwen(1, "user", {"text": "go"}), qwen(2, "assistant", {"text": "done"}, **parents)))
        assert roles(found.messages) == ["user", "model"]
    assert roles(one(rows(qwen(1, "user", {"text": "go"}, isSidechain=True))).messages) == ["user"]


# ---- Codex -----------------------------------------------------------------------------------------------------------


def test_codex_rows_become_items_behind_the_instructions_and_its_own_notes_are_skipped() -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    found = one(
        rows(
            {"type": "session_meta", "payload": {"id": "x", "base_instructions": {"text": "rules"}}},
            {"type": "session_meta", "payload": {"id": "parent", "instructions": "older rules"}},
            {"type": "response_item", "payload": items[0]},
            {"type": "compacted", "payload": {"message": "summary"}},
            {"type": "event_msg", "payload": {"type": "token_count"}},
            {"type": "response_item", "payload": {"type": "ghost_snapshot", "ghost_commit": {"id": "0a"}}},
            {"type": "response_item", "payload": items[1]},
        )
    )
    assert (found.kind, found.format) == ("codex", "openai-responses")
    assert found.messages == [{"type": "message", "role": "system", "content": "rules"}, *items]


def test_events_without_words_of_a_user_do_not_look_through_all_items_of_codex_each() -> None:
    """A file of 20,000 of both took 20 seconds."""

    def calls(size: int) -> int:
        item = {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "on"}}
        event = {"type": "event_msg", "payload": {"type": "user_message", "message": "go"}}
        document = TranscriptFile("talk", "", [item] * size + [event] * size)
        made: list[str] = []
        sys.setprofile(lambda frame, kind, _: made.append(kind))
        try:
            codex.read(document)
        finally:
            sys.setprofile(None)
        return len(made)

    assert calls(400) < 3 * calls(200)


def test_codex_files_of_the_first_versions_hold_bare_items() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    head = {"id": "x", "timestamp": "t", "instructions": None}
    found = one(rows(head, {"record_type": "state"}, item))
    assert (found.kind, found.messages) == ("codex", [item])
    assert one(rows({**head, "instructions": "rules"}, item)).messages[0]["content"] == "rules"


def test_codex_files_that_are_one_object_begin_with_the_instructions() -> None:
    """They are JSON of the first versions; the items were read as any list, without what led them."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    session = {"timestamp": "t", "id": "x", "instructions": "rules"}
    found = one(json.dumps({"session": session, "items": [item]}).encode())
    assert (found.kind, found.format) == ("codex", "openai-responses")
    assert found.messages == [{"type": "message", "role": "system", "content": "rules"}, item]
    bare = one(json.dumps({"session": {**session, "instructions": ""}, "items": [item]}).encode())
    assert bare.messages == [item]


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([1], "n 1 a on"),
        ([2], "n on"),
        ([9], "n on"),
        ([1, 1], "n on"),
        ([0], "n 1 a 2 b note on"),
        ([], "n 1 a 2 b note on"),
    ],
)
def test_what_was_taken_back_in_codex_is_gone_and_nothing_else(taken: list[int], left: str) -> None:
    """The person went back and said something else: both were read as one conversation that no model had."""

    def said(text: str, role: str = "user") -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        content = [{"type": kind, "text": text}]
        return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}

    def event(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": "event_msg", "payload": {"type": kind, **fields}}

    asked = event("user_message", message="...")
    turns = [
        said("n"),
        said("1"),
        asked,
        said("a", "assistant"),
        said("2"),
        asked,
        said("b", "assistant"),
        said("note"),
    ]
    back = [event("thread_rolled_back", num_turns=count) for count in taken]
    found = one(rows({"type": "session_meta", "payload": {"id": "x"}}, *turns, *back, said("on"), asked))
    assert " ".join(message["content"][0]["text"] for message in found.messages) == left


# ---- pi --------------------------------------------------------------------------------------------------------------


def pi(role: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, **fields}}


def test_pi_rows_become_anthropic_messages() -> None:
    call = {"type": "toolCall", "id": "a", "name": "f", "arguments": {"x": 1}}
    image = {"type": "image", "data": "AAAA", "mimeType": "image/gif"}
    found = one(
        rows(
            {"type": "session", "id": "s"},
            pi(
                "user",
                content=[{"type": "text", "text": "go"}, image],
            ),
            pi("assistant", content=[], stopReason="aborted"),
            pi(
                "assistant",
                content=[{"type": "thinking", "thinking": "t", "thinkingSignature": "s"}, call, {**call, "id": "b"}],
            ),
            pi("toolResult", toolCallId="a", content=[{"type": "text", "text": "1"}], isError=True),
            pi("toolResult", toolCallId="b", content="2"),
            pi("bashExecution", command="ls", output="file"),
            pi("compactionSummary", content="so far"),
            {"type": "custom_message", "content": "from an extension"},
            pi("toolResult", toolCallId="lost", content=[{"type": "other"}]),
            {"type": "compaction", "summary": "so far"},
            pi("assistant", content="done"),
        )
    )
    assert (found.kind, found.format) == ("pi", "anthropic")
    assert found.messages == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "go"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AAAA"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {"x": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "text", "text": "1"}],
                    "is_error": True,
                },
                {"type": "tool_result", "tool_use_id": "b", "content": "2"},
            ],
        },
        {"role": "user", "content": "$ ls\nfile"},
        {"role": "user", "content": "from an extension"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": [{"type": "other"}]}]},
        {"role": "assistant", "content": "done"},
    ]


def test_pi_like_rows_with_anthropics_own_thinking_keep_its_signature() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    row = {"type": "message", "message": {"role": "assistant", "content": [thought]}}
    assert one(rows(row, row)).messages[0]["content"] == [thought]


# ---- Gemini CLI ------------------------------------------------------------------------------------------------------


def test_gemini_sessions_become_chat_messages_with_results_behind_their_calls() -> None:
    response = {"functionResponse": {"response": {"output": "listed"}}}
    entries = [
        {"type": "user", "content": [{"text": "go"}]},
        {
            "type": "gemini",
            "content": "I look.",
            "thoughts": [{"subject": "x"}],
            "toolCalls": [
                {"id": "a", "name": "ls", "args": {"p": "."}, "result": [response]},
                {"id": "b", "name": "ls", "args": {}, "result": {"code": 1}},
                {"id": "c", "name": "ls"},
            ],
        },
        {"type": "info", "content": "saved"},
        {"type": "gemini", "content": ""},
        {"type": "gemini", "content": "done"},
    ]
    found = one({"sessionId": "s", "messages": entries})
    assert (found.kind, found.format) == ("gemini-cli", "openai-chat")
    assert roles(found.messages) == ["user", "assistant", "tool", "tool", "assistant"]
    assert [message["content"] for message in found.messages] == ["go", "I look.", "listed", '{"code": 1}', "done"]
    assert found.messages[1]["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"p": "."}'}
    assert one(rows({"sessionId": "s", "projectHash": "h"}, *entries)).messages == found.messages


def test_a_gemini_session_that_was_not_answered_yet_is_what_was_asked() -> None:
    """It was refused as no session: its first request had failed, or was under way."""
    head = {"sessionId": "s", "projectHash": "h", "startTime": "t"}
    asked = {"id": "1", "type": "user", "content": [{"text": "go"}]}
    for data in ({**head, "messages": [asked, {"type": "error", "content": "no quota"}]}, rows(head, asked)):
        assert (one(data).kind, one(data).messages) == ("gemini-cli", [{"role": "user", "content": "go"}])


def said(id: str, kind: str, content: Any, **entry: Any) -> dict[str, Any]:
    return {"id": id, "type": kind, "content": content, **entry}


def read_log(*entries: dict[str, Any]) -> list[Any]:
    head = {"sessionId": "s", "projectHash": "h"}
    return one(rows(head, said("0", "user", "go"), *entries, said("9", "gemini", "done"))).messages[1:-1]


def test_a_message_that_geminis_log_writes_anew_is_one_message_as_it_was_last() -> None:
    call = {"id": "c", "name": "ls", "args": {}}
    answer = {"functionResponse": {"id": "c", "response": {"output": "listed"}}}
    found = read_log(
        said("1", "gemini", "I look."),
        {"$set": {"lastUpdated": "now"}},
        said("1", "gemini", "I look.", toolCalls=[call]),
        said("2", "user", [answer]),
        said("1", "gemini", "I look.", toolCalls=[{**call, "result": [answer]}]),
    )
    assert [(message["role"], message["content"]) for message in found] == [
        ("assistant", "I look."),
        ("tool", "listed"),
    ]


def test_what_was_taken_back_in_geminis_log_is_gone_and_nothing_else() -> None:
    taken = [said("1", "user", "no"), said("2", "gemini", "as you say"), {"$rewindTo": "1"}]
    found = read_log(*taken, said("3", "user", "yes"), {"$rewindTo": "unknown"})
    assert [message["content"] for message in found] == ["yes"]


def test_messages_that_geminis_log_goes_on_with_join_what_was_said_and_its_own_compaction_replaces_nothing() -> None:
    first, grown = said("1", "user", "a"), said("2", "gemini", "b")
    found = read_log(
        {"$set": {"messages": [said("0", "user", "go"), first]}},
        {"$set": {"messages": [said("0", "user", "go"), first, grown]}},
        {"$set": {"messages": [said("x", "user", "a summary"), said("y", "user", "a")]}},
        {"$set": {"messages": [said("x", "user", "a summary"), said("y", "user", "a"), said("3", "user", "c")]}},
    )
    assert [message["content"] for message in found] == ["a", "b", "c"]


def test_calls_thoughts_and_pictures_among_geminis_parts_are_what_they_are() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    thought, called = {"text": "hm", "thought": True}, {"functionCall": {"id": "c", "name": "see", "args": {}}}
    answer = {"functionResponse": {"id": "c", "response": {"output": "a cat"}, "parts": [picture]}}
    found = read_log(
        said("1", "user", [{"text": "look"}, picture]),
        said("2", "gemini", [thought, {"text": "I do."}, called]),
        said("3", "user", [answer]),
    )
    assert [(message["role"], message["content"]) for message in found] == [
        ("user", [{"type": "text", "text": "look"}, shown]),
        ("assistant", "I do."),
        ("tool", "a cat"),
        ("user", [{"type": "text", "text": "From the result of tool call c:"}, shown]),
    ]
    assert [call["id"] for call in found[1]["tool_calls"]] == ["c"]


# ---- streams of events -----------------------------------------------------------------------------------------------


def stream(*pieces: Any) -> bytes:
    return "".join(f"event: message_chunk\ndata: {json.dumps(piece)}\n\n" for piece in pieces).encode()


def test_server_sent_pieces_are_put_together_to_messages_and_calls() -> None:
    call = {"id": "a", "name": "f", "args": {}}
    chunk = {"id": "a", "name": "f", "args": '{"x":'}
    data = stream(
        {"id": "u", "role": "user", "content": "go"},
        {
            "id": "m",
            "role": "assistant",
            "tool_calls": [call],
            "tool_call_chunks": [chunk],
        },
        {"id": "m", "role": "assistant", "tool_call_chunks": [{"id": "", "args": " 1}"}]},
        {"id": "n", "role": "assistant", "content": "And "},
        {"id": "r", "role": "assistant", "tool_call_id": "a", "content": "one"},
        {"id": "n", "role": "assistant", "content": "so."},
        {"id": "n", "role": "assistant", "tool_calls": [{"id": "b", "name": "g", "args": {"y": 2}}]},
        {"id": "q", "role": "assistant", "finish_reason": "stop"},
        {"id": "r2", "tool_call_id": "lost", "content": [{"type": "text", "text": "two"}]},
    )
    found = one(data + b"data: [DONE]\n\ndata: {cut")
    assert (found.kind, found.format) == ("server-sent-events", "openai-chat")
    assert roles(found.messages) == ["user", "assistant", "tool", "assistant", "tool"]
    assert found.messages[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x": 1}'}
    assert found.messages[3]["content"] == "And so."
    assert found.messages[3]["tool_calls"][0]["function"]["arguments"] == '{"y": 2}'
    assert found.messages[4]["content"] == "two"


def test_a_stream_of_states_is_the_last_state() -> None:
    states = [
        [{"type": "human", "content": "go"}],
        [{"type": "human", "content": "go"}, {"type": "ai", "content": "ok"}],
    ]
    found = one(stream({"messages": states[0]}, {"messages": states[1]}))
    assert (found.format, found.messages) == ("langchain", states[1])


def test_a_stream_of_the_responses_api_is_its_finished_answer() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    final = {"type": "response.completed", "response": {"instructions": "rules", "output": [item]}}
    found = one(rows({"type": "response.created", "response": {"output": []}}, final))
    assert (found.kind, found.format) == ("response-stream", "openai-responses")
    assert found.messages == [{"role": "system", "content": "rules"}, item]


# ---- branches --------------------------------------------------------------------------------------------------------


def line(uuid: str, before: str | None, kind: str = "user", content: Any = None, **row: Any) -> dict[str, Any]:
    return {**claude(kind, content or uuid), "uuid": uuid, "parentUuid": before, **row}


def note(uuid: str, before: str | None, **row: Any) -> dict[str, Any]:
    return {"type": "system", "uuid": uuid, "parentUuid": before, "sessionId": "s", **row}


def call_of(uuid: str, before: str) -> dict[str, Any]:
    return line(uuid, before, "assistant", [use(uuid)])


def result_of(uuid: str, before: str, call: str) -> dict[str, Any]:
    return line(uuid, before, "user", [result(call)])


ATTACHED = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "q"}, "sessionId": "s"}
BEGUN = [line("p1", None), line("a1", "p1", "assistant")]
SECOND = [line("p2", "a1"), line("a2", "p2", "assistant")]
BRANCHES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "the newest words are edited": ([*BEGUN, line("p2", "a1"), line("q2", "a1")], "p1 a1 q2"),
    "two turns are gone back on": (
        [*BEGUN, *SECOND, line("p3", "a2"), line("q2", "a1"), line("b2", "q2", "assistant")],
        "p1 a1 q2 b2",
    ),
    "twice, and from inside a branch": (
        [*BEGUN, *SECOND, line("p3", "a2"), line("q3", "a2"), line("q2", "a1"), line("r2", "a1")],
        "p1 a1 r2",
    ),
    "a newer branch stays on the way": ([*BEGUN, *SECOND, line("p3", "a2"), line("q3", "a2")], "p1 a1 p2 a2 q3"),
    "notes stand between": (
        [
            *BEGUN,
            note("n", "a1"),
            line("meta", "n", isMeta=True),
            line("p2", "meta"),
            {**ATTACHED, "uuid": "q", "parentUuid": "p2"},
            note("m", "a1"),
            line("q2", "m"),
        ],
        "p1 a1 q2",
    ),
    "the first words are gone back on": (
        [*BEGUN, *SECOND, line("q1", None), line("b1", "q1", "assistant"), line("q2", "b1")],
        "q1 b1 q2",
    ),
    "across a compaction": (
        [
            *BEGUN,
            *SECOND,
            note("edge", None, subtype="compact_boundary", logicalParentUuid="a2"),
            line("sum", "edge", isCompactSummary=True),
            line("p3", "sum"),
            line("q2", "a1"),
        ],
        "p1 a1 q2",
    ),
    "a compaction is no way back": (
        [
            *BEGUN,
            note("edge", None, subtype="compact_boundary"),
            line("sum", "edge", isCompactSummary=True),
            line("p2", "sum"),
            line("a2", "p2", "assistant"),
        ],
        "p1 a1 p2 a2",
    ),
    "parallel calls and their results": (
        [
            *BEGUN,
            call_of("c", "a1"),
            call_of("d", "c"),
            result_of("r", "c", "c"),
            result_of("s", "d", "d"),
            line("a3", "s", "assistant"),
            line("p2", "a3"),
        ],
        "p1 a1 c c d d a3 p2",
    ),
    "words where a result was interrupted": (
        [*BEGUN, call_of("c", "a1"), result_of("r", "c", "c"), line("p2", "c")],
        "p1 a1 c c p2",
    ),
    "a command of the product's own": (
        [*BEGUN, line("x", "a1", content="<command-name>/exit</command-name>"), line("p2", "a1")],
        "p1 a1 <command-name>/exit</command-name> p2",
    ),
    "the way breaks off": (
        [*BEGUN, line("p2", "lost"), line("a2", "p2", "assistant"), line("p3", "gone")],
        "p1 a1 p2 a2 p3",
    ),
    "words name a row that the file lacks": (
        [*BEGUN, *SECOND, line("p3", "lost"), line("a3", "p3", "assistant"), line("p4", "gone")],
        "p1 a1 p2 a2 p3 a3 p4",
    ),
    "the row before words names one that the file lacks": (
        [*BEGUN, *SECOND, note("n", "lost"), line("p3", "n"), line("a3", "p3", "assistant")],
        "p1 a1 p2 a2 p3 a3",
    ),
    "words follow what a sub-agent said": (
        [
            *BEGUN,
            line("s1", None, isSidechain=True),
            line("b1", "s1", "assistant", isSidechain=True),
            line("p2", "b1"),
            line("p3", "p2"),
        ],
        "p1 a1 p2 p3",
    ),
    "answers follow nothing": (
        [line("p1", None), line("a1", None, "assistant"), line("p2", "a1"), line("p3", None)],
        "p1 a1 p2 p3",
    ),
    "no words follow anything": (
        [*BEGUN, line("p2", None), line("a2", "p2", "assistant"), line("p3", None)],
        "p1 a1 p2 a2 p3",
    ),
    "two sessions in one file": (
        [*BEGUN, *SECOND, line("q1", None, sessionId="t"), line("b1", "q1", "assistant", sessionId="t")],
        "p1 a1 p2 a2 q1 b1",
    ),
    "a circle": ([line("p1", "a1"), line("a1", "p1", "assistant"), note("n", "n"), line("p2", "n")], "p1 a1 p2"),
}


def texts(messages: list[dict[str, Any]]) -> str:
    said = []
    for message in messages:
        content = message["content"]
        for block in [content] if isinstance(content, str) else content:
            told = block if isinstance(block, str) else block.get("text") or block.get("id") or block["tool_use_id"]
            said.append(told)
    return " ".join(said)


@pytest.mark.parametrize(("talk", "left"), BRANCHES.values(), ids=BRANCHES)
def test_what_was_gone_back_on_in_claude_code_is_left_out_and_nothing_else(
    talk: list[dict[str, Any]], left: str
) -> None:
    """All branches were read as one conversation that no model had. What hangs together by no ids is read whole."""
    found = one(rows(*talk))
    assert texts(found.messages) == left
    own = [row for row in talk if row["type"] != "system" and not row.get("isSidechain")]
    is_whole = left.count(" ") == sum(not row.get("isCompactSummary") for row in own) - 1
    assert bool(found.left_out) is not is_whole


def test_rows_that_were_gone_back_on_are_told_with_their_places() -> None:
    talk = [*BEGUN, *SECOND, note("n", "a2"), line("p3", "n"), line("q2", "a1")]
    went_back = "left out, as the person went back and said something else"
    assert one(rows(*talk)).left_out == (f"lines 3-4, 6: {went_back}",)
    assert one(json.dumps(talk).encode()).left_out == (f"entries 2-3, 5: {went_back}",)


def test_rows_whose_fields_are_none_end_in_no_error_that_is_not_ours() -> None:
    queued = {**ATTACHED, "uuid": "q", "parentUuid": "p1", "message": None}
    talk = [*BEGUN, line("p2", "a1"), {**line("odd", "a1"), "uuid": ["x"]}, queued, line("q2", "a1"), line("r2", "q")]
    found = one(rows(*talk, line("s2", "q")))
    assert texts(found.messages) == "p1 a1 odd q q2 s2"


def test_ways_through_a_long_session_are_walked_once() -> None:
    def calls(size: int) -> int:
        talk = [line("0", None)]
        for number in range(1, size):  # every second word is taken back
            talk += [note(f"n{number}", str(number - 1)), line(f"x{number}", f"n{number}")]
            talk += [line(str(number), f"n{number}")]
        document = TranscriptFile("talk", "", talk)
        made: list[str] = []
        sys.setprofile(lambda frame, kind, _: made.append(kind))
        try:
            claude_code.read(document)
        finally:
            sys.setprofile(None)
        return len(made)

    assert calls(400) < 3 * calls(200)


def pi_row(name: str, before: str | None, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": name, **fields}
    return {"type": "message", "id": name, "parentId": before, "message": message}


def test_a_pi_session_is_the_way_to_its_newest_row() -> None:
    """Its rows are a tree, and all branches were read as one. What it wrote of a branch that was left is sent."""
    head = {"type": "session", "version": 3, "id": "s"}
    talk = [head, *(pi_row(name, before) for name, before in zip("abc", [None, "a", "b"], strict=True))]
    left = {"type": "branch_summary", "id": "d", "parentId": "a", "fromId": "c", "summary": "tried b"}
    found = one(rows(*talk, left, pi_row("e", "d"), {"type": "label", "id": "f", "parentId": "e", "targetId": "a"}))
    first, of_branch, last = (message["content"] for message in found.messages)
    assert (first, last) == ("a", "e")
    assert "tried b" in of_branch
    assert found.left_out == ("lines 3-4: left out, as the person went back and said something else",)
    for broken in ("lost", "e"):
        whole = one(rows(*talk, left, pi_row("e", broken)))
        assert [message["content"] for message in whole.messages] == ["a", "b", "c", "e"]
        assert not whole.left_out


def test_rows_like_pis_that_name_none_before_them_are_one_conversation() -> None:
    """Of a session of Factory's Droid, whose rows do not, all but the last was left out as gone back on."""
    said = [pi_row(name, None) for name in "abc"]
    unnamed = [{key: held for key, held in row.items() if key != "parentId"} for row in said]
    begun = {"type": "session_start", "id": "s", "title": "t", "cwd": "/w"}
    found = one(rows(begun, *unnamed))
    assert (found.kind, len(found.messages), found.left_out) == ("pi", 3, ())
    named = [unnamed[0], pi_row("b", "a"), pi_row("c", "a")]
    assert len(one(rows(begun, *named)).messages) == 2


def test_a_command_that_a_person_kept_from_the_model_of_pi_is_not_read() -> None:
    """``!!`` runs one that is not sent: its output was compacted, archived and shown as the user's words."""
    secret = pi_row("x", "a", role="bashExecution", command="env", output="KEY=1", excludeFromContext=True)
    found = one(rows(pi_row("a", None), secret, pi_row("b", "x")))
    assert [message["content"] for message in found.messages] == ["a", "b"]


@pytest.mark.parametrize("calls", [True, False])
def test_answers_that_all_have_one_id_stay_apart_in_claude_code(calls: bool) -> None:
    """All that was said in a session became one message at its beginning."""
    same = {"id": "msg"}
    said, expected = [claude("user", "go")], ["user"]
    for n in range(3):
        said.append(claude("assistant", [{"type": "text", "text": f"step {n}"}], message=same))
        if calls:
            said.append(claude("assistant", [use(f"c{n}")], message=same))
        said.append(claude("user", [result(f"c{n}")] if calls else f"go {n}"))
        expected += ["assistant", "user"]
    found = one(rows(*said)).messages
    assert roles(found) == expected
    assert [message["content"][0]["text"] for message in found[1::2]] == ["step 0", "step 1", "step 2"]


def test_calls_alone_of_answers_that_all_have_one_id_are_no_endless_message() -> None:
    said = [claude("user", "go")]
    for n in range(40):
        said += [claude("assistant", [use(f"c{n}")], message={"id": "msg"}), claude("user", [result(f"c{n}")])]
    assert [len(message["content"]) for message in one(rows(*said)).messages[1:]] == [16, 16, 16, 16, 8, 8]


def test_ids_that_are_none_end_in_no_error_that_is_not_ours() -> None:
    asked = {"type": "message", "id": "1", "parentId": None, "message": {"role": "user", "content": "a"}}
    used = {"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}
    with pytest.raises(InputError, match="'id' is missing"):
        one(rows(asked, {"type": "message", "id": "2", "parentId": "1", "message": used}))
    head = {"sessionId": "s", "projectHash": "p"}
    patch = {"$set": {"messages": [{"id": [1], "type": "gemini", "content": "b"}]}}
    assert roles(one(rows(head, {"type": "user", "id": "1", "content": "a"}, patch)).messages) == ["user", "assistant"]
