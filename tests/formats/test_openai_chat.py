"""Chat Completions: what each key becomes, what an edit leaves alone, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contextfold import formats
from contextfold.errors import FormatError
from contextfold.formats.openai_chat import OpenAIChat
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from formats.reading import decoded

CHAT = OpenAIChat()
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"a": "long"}'}, "index": 0}


def edited(wire: dict[str, Any], *parts: Any) -> Any:
    (entry,) = CHAT.encode([CHAT.decode(wire).with_parts(parts)])
    return entry


def test_every_kind_of_content_becomes_its_part() -> None:
    message = CHAT.decode(
        {
            "role": "user",
            "name": "ann",
            "metadata": {"pin": True},
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                {"type": "image_url", "image_url": "https://a.b/c.png"},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,BBBB"}},
                {"type": "file", "file": {}},
                {"type": "input_audio", "input_audio": {"data": "CCCC", "format": "wav"}},
                {"type": "video_url", "video_url": {"url": "https://a.b/c.mp4"}},
                "bare",
            ],
        }
    )
    assert message.name == "ann"
    assert message.metadata == {"pin": True}
    assert message.parts == (
        Text("look"),
        Media("image", "image/png", data="AAAA", detail="low"),
        Media("image", url="https://a.b/c.png"),
        Media("document", "application/pdf", data="BBBB"),
        Opaque("file"),
        Media("audio", "audio/wav", data="CCCC"),
        Media("video", url="https://a.b/c.mp4"),
        Text("bare"),
    )


def test_what_stands_beside_the_content_of_an_answer_becomes_parts_too() -> None:
    message = CHAT.decode(
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}],
            "refusal": "no",
            "audio": {"id": "a1", "transcript": "said"},
            "reasoning_content": "thought",
            "tool_calls": [CALL, {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
            "function_call": {"name": "old", "arguments": "{}"},
        }
    )
    assert message.parts == (
        Opaque("refusal", "no"),
        Opaque("audio", "said"),
        Reasoning("thought"),
        Reasoning("hm"),
        Text("hi"),
        ToolCall("c1", "run", '{"a": "long"}'),
        ToolCall("c2", "sh", "ls", custom=True),
        ToolCall("function:old", "old", "{}"),
    )


def test_what_anthropic_ran_itself_is_no_call_that_waits_and_stays_where_litellm_keeps_it() -> None:
    """LiteLLM lists such a call among the others, or beside its result, and makes blocks of both again."""
    ran = {"id": "srvtoolu_1", "type": "function", "function": {"name": "web_search", "arguments": '{"query": "q"}'}}
    beside = {
        "citations": None,
        "compaction_blocks": [{"type": "compaction", "content": "Told before."}],
        "web_search_results": [{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": ["Found."]}],
    }
    wire = {"role": "assistant", "content": "hi", "tool_calls": [ran, CALL], "provider_specific_fields": beside}
    message = CHAT.decode(wire)
    assert message.parts == (
        Opaque("compaction", "Told before."),
        Opaque("web_search_tool_result", "Found."),
        Text("hi"),
        Opaque("server_tool_use", 'web_search\n{"query": "q"}'),
        ToolCall("c1", "run", '{"a": "long"}'),
    )
    (call,) = message.tool_calls
    shorter = replace(call, arguments='{"a": "s"}', edited=True)
    (changed,) = CHAT.encode([message.with_parts((*message.parts[:-1], shorter))])
    assert changed["tool_calls"][0] is ran
    assert changed["tool_calls"][1]["function"]["arguments"] == '{"a": "s"}'
    assert changed["provider_specific_fields"] is beside
    assert changed["content"] == "hi"


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c", "name": "f", "arguments": {"a": 1}},
        {"id": "c", "function": "f", "arguments": {"a": 1}, "type": "function"},
        {"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}},
    ],
)
def test_calls_in_the_dialects_of_recorders_are_calls(call: dict[str, Any]) -> None:
    wire = {"role": "assistant", "content": None, "tool_calls": [call]}
    (found,) = CHAT.decode(wire).tool_calls
    assert found == ToolCall("c", "f", '{"a": 1}')
    changed = edited(wire, replace(found, arguments='{"a": 2}', edited=True))["tool_calls"][0]
    assert CHAT.decode({**wire, "tool_calls": [changed]}).tool_calls[0].arguments == '{"a": 2}'
    assert changed.keys() == call.keys()


@pytest.mark.parametrize(
    ("wire", "call_id"),
    [
        ({"role": "tool", "tool_call_id": "c", "content": "x"}, "c"),
        ({"role": "tool", "id": "c", "requestor": "assistant", "content": "x"}, "c"),
        ({"role": "tool", "tool_call_ids": ["c"], "content": "x"}, "c"),
        ({"role": "function", "name": "old", "content": "x"}, "function:old"),
    ],
)
def test_results_find_their_call_under_each_key_that_is_in_use(wire: dict[str, Any], call_id: str) -> None:
    message = CHAT.decode(wire)
    assert message.role == "tool"
    assert message.tool_results[0].call_id == call_id
    shorter = replace(message.tool_results[0], content=(Text("y", edited=True),), edited=True)
    assert edited(wire, shorter) == {**wire, "content": "y"}


def test_an_edit_changes_what_was_edited_and_nothing_else() -> None:
    wire = {
        "role": "assistant",
        "content": [{"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}],
        "reasoning_content": "thought",
        "tool_calls": [CALL, {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
        "extra": {"cost": 1},
    }
    reasoning, text, call, custom = CHAT.decode(wire).parts
    entry = edited(
        wire, reasoning, replace(text, text="s", edited=True), replace(call, arguments="{}", edited=True), custom
    )
    assert entry == {
        **wire,
        "content": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tool_calls": [{**CALL, "function": {"name": "run", "arguments": "{}"}}, wire["tool_calls"][1]],
    }
    assert entry["tool_calls"][1] is wire["tool_calls"][1]
    assert wire["content"][0]["text"] == "long"
    without = edited(wire, text, replace(custom, arguments="x", edited=True))
    assert "reasoning_content" not in without
    assert without["tool_calls"] == [{"id": "c2", "type": "custom", "custom": {"name": "sh", "input": "x"}}]
    assert "tool_calls" not in edited(wire, text)


def test_words_in_a_thread_are_words_and_keep_their_shape() -> None:
    """They stood in an object, as what no one knows: the user's words were neither kept nor shown as such."""
    held = {"value": "Never push.", "annotations": [{"start_index": 0, "type": "file_citation"}]}
    wire = {"object": "thread.message", "role": "user", "content": [{"type": "text", "text": held}]}
    (part,) = CHAT.decode(wire).parts
    assert (type(part), part.text) == (Text, "Never push.")
    assert edited(wire, part) == wire
    shorter = replace(part, text="Never", edited=True)
    text = {"value": "Never", "annotations": []}
    assert edited(wire, shorter) == {**wire, "content": [{"type": "text", "text": text}]}


def test_an_older_function_call_can_be_edited_and_removed() -> None:
    wire = {"role": "assistant", "content": "hi", "function_call": {"name": "old", "arguments": "{}"}}
    text, call = CHAT.decode(wire).parts
    assert edited(wire, text, replace(call, arguments="[]", edited=True))["function_call"]["arguments"] == "[]"
    assert "function_call" not in edited(wire, text)
    new = edited(wire, text, call, ToolCall("c9", "f", "{}"))
    assert [entry["id"] for entry in new["tool_calls"]] == ["c9"]


def test_media_can_be_replaced_by_words_and_a_message_without_parts_is_left_out() -> None:
    wire = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]}
    assert edited(wire, Text("[image]")) == {"role": "user", "content": [{"type": "text", "text": "[image]"}]}
    assert edited({"role": "user", "content": "x"}, Text("y"), Text("z"))["content"] == [
        {"type": "text", "text": "y"},
        {"type": "text", "text": "z"},
    ]
    assert CHAT.encode([CHAT.decode(wire).with_parts(())]) == []


def test_an_image_in_a_tool_result_follows_the_results_of_its_step_as_a_user_message() -> None:
    """Tool messages take only text, and nothing may stand between the results of parallel calls."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    wire = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in ("a", "b")],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [image]},
                {"type": "tool_result", "tool_use_id": "b", "content": "text"},
            ],
        },
        {"role": "user", "content": "next"},
    ]
    crossed = CHAT.encode(decoded(wire, "anthropic"))
    assert [entry["role"] for entry in crossed] == ["assistant", "tool", "tool", "user", "user"]
    assert crossed[1]["content"] == "[image image/png: see the message after the tool results]"
    assert crossed[3]["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert CHAT.encode(decoded(wire[:2], "anthropic")) == crossed[:4]


def test_media_that_chat_cannot_carry_becomes_a_note() -> None:
    parts = (
        Media("video", url="https://a.b/v"),
        Media("document", "text/plain", data="QQ=="),
        Media("image", url="file-1"),
    )
    (entry,) = CHAT.encode([Message("user", parts, name="two words")])
    assert "name" not in entry
    assert [block["type"] for block in entry["content"]] == ["text", "file", "text"]
    assert entry["content"][0]["text"] == "[video: https://a.b/v]"
    assert entry["content"][1]["file"]["filename"] == "document.plain"
    (said,) = CHAT.encode([Message("assistant", (Media("image", "image/png", data="AAAA"),), name="bot")])
    assert said == {"role": "assistant", "content": "[image image/png: 4 characters of base64]", "name": "bot"}


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        (3, "a chat message is a JSON object, and this is a number"),
        ({"content": "x"}, "it has no role; allowed are system, developer, user, assistant, tool, function"),
        ({"role": "human", "content": "x"}, "unknown role 'human'"),
        ({"role": "user", "content": 3}, "content is a string or a list of blocks, and this is a number"),
        ({"role": "user", "content": [3]}, "block 0 of content is a number"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "an image_url block has no url"),
        ({"role": "tool", "content": "x"}, "no 'tool_call_id'"),
        ({"role": "assistant", "tool_calls": {}}, "'tool_calls' is a list"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, "tool call 0: 'id' is missing"),
        ({"role": "assistant", "tool_calls": [{"id": 7}]}, "tool call 0: 'id' is a number"),
        (
            {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": ""}}]},
            "tool call 0: 'name' is empty",
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": 3}}]},
            "tool call 0: 'name' is a number",
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": [1]}}]},
            "must be a string of JSON, and this is a list",
        ),
    ],
)
def test_what_is_no_chat_message_is_refused_in_words_with_its_index(wire: Any, words: str) -> None:
    with pytest.raises(FormatError) as error:
        formats.decode([{"role": "user", "content": "x"}, wire], CHAT)
    assert words in str(error.value)
    assert str(error.value).startswith("message 1: ")


def test_neighbors_of_one_role_are_joined_unless_calls_or_names_keep_them_apart() -> None:
    one, other = {"role": "user", "content": "a", "id": 1}, {"role": "user", "content": "b", "id": 2, "extra": 3}
    assert CHAT.join(one, other) == {"role": "user", "content": "a\n\nb", "id": 1, "extra": 3}
    blocks = {"role": "user", "content": [{"type": "text", "text": "c"}]}
    assert CHAT.join(one, blocks)["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "c"}]
    assert CHAT.join({"role": "user", "content": ""}, one)["content"] == "a"
    assert CHAT.join(one, {"role": "assistant", "content": "b"}) is None
    assert CHAT.join(one, {**other, "name": "ann"}) is None
    answer = {"role": "assistant", "content": "a", "tool_calls": [CALL]}
    assert CHAT.join(answer, {"role": "assistant", "content": "b"}) is None
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    assert CHAT.join(result, result) is None


def test_a_result_that_gets_another_call_id_is_written_with_it() -> None:
    """Repairs give calls with the same id different ones."""
    wire = {"role": "tool", "tool_call_id": "c", "content": "x"}
    (result,) = CHAT.decode(wire).tool_results
    assert edited(wire, replace(result, call_id="c-2", edited=True))["tool_call_id"] == "c-2"
    assert isinstance(result, ToolResult)
