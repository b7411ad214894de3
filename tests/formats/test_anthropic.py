"""Anthropic Messages: what each block becomes, what an edit leaves alone, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from emulator.wires.anthropic_rules import anthropic_problem

from contextfold import Compactor, formats
from contextfold.errors import FormatError
from contextfold.formats.anthropic import Anthropic
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from formats.reading import decoded

ANTHROPIC = Anthropic()
CACHE = {"type": "ephemeral"}
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    "cache_control": CACHE,
}


def edited(wire: dict[str, Any], *parts: Any) -> Any:
    (entry,) = ANTHROPIC.encode([ANTHROPIC.decode(wire).with_parts(parts)])
    return entry


def block(wire: dict[str, Any]) -> Any:
    return ANTHROPIC.decode({"role": "user", "content": [wire]}).parts[0]


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        ({"type": "text", "text": "hi", "cache_control": CACHE}, Text("hi")),
        (IMAGE, Media("image", "image/png", data="AAAA")),
        ({"type": "image", "source": {"type": "url", "url": "https://a.b"}}, Media("image", url="https://a.b")),
        ({"type": "document", "source": {"type": "file", "file_id": "f1"}}, Media("document", url="f1")),
        (
            {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            Opaque("document", "T\nwords"),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "words"}]}},
            Opaque("document", "words"),
        ),
        ({"type": "image"}, Opaque("image")),
        ({"type": "tool_use", "id": "c", "name": "f", "input": {"é": 1}}, ToolCall("c", "f", '{"é": 1}')),
        ({"type": "tool_use", "id": "c", "name": "f"}, ToolCall("c", "f", "{}")),
        ({"type": "tool_result", "tool_use_id": "c"}, ToolResult("c", ())),
        (
            {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True},
            ToolResult("c", (Text("no"),), is_error=True),
        ),
        (
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "x"}, IMAGE]},
            ToolResult("c", (Text("x"), Media("image", "image/png", data="AAAA"))),
        ),
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, Reasoning("hm")),
        ({"type": "redacted_thinking", "data": "xyz"}, Reasoning("")),
        ({"type": "compaction", "content": "so far"}, Opaque("compaction", "so far")),
        (
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            Opaque("server_tool_use", "web_search\nq"),
        ),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s",
                "content": [{"type": "web_search_result", "title": "T", "url": "u", "encrypted_content": "zzz"}],
            },
            Opaque("web_search_tool_result", "T\nu"),
        ),
        ({"text": "no type"}, Opaque("unknown", "no type")),
    ],
)
def test_every_block_becomes_its_part(wire: dict[str, Any], part: Any) -> None:
    assert block(wire) == part
    assert block(wire).source is wire


def test_an_edit_keeps_cache_marks_error_marks_and_every_other_key() -> None:
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": "long"}, "cache_control": CACHE}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    wire = {"role": "assistant", "content": [thinking, call], "id": "m1"}
    reasoning, part = ANTHROPIC.decode(wire).parts
    entry = edited(wire, reasoning, replace(part, arguments='{"a": "s"}', edited=True))
    assert entry == {"role": "assistant", "content": [thinking, {**call, "input": {"a": "s"}}], "id": "m1"}
    assert entry["content"][0] is thinking
    assert edited(wire, part)["content"] == [call]

    result = {"type": "tool_result", "tool_use_id": "c", "content": "long", "is_error": True, "cache_control": CACHE}
    other = {"type": "tool_result", "tool_use_id": "d", "content": "short"}
    wire = {"role": "user", "content": [result, other]}
    first, second = ANTHROPIC.decode(wire).parts
    assert isinstance(first, ToolResult)
    shorter = replace(first, content=(Text("s", edited=True),), edited=True)
    assert edited(wire, shorter, second)["content"] == [{**result, "content": "s"}, other]


def test_blocks_inside_a_result_are_edited_one_by_one() -> None:
    inner = [{"type": "text", "text": "long", "cache_control": CACHE}, IMAGE]
    wire = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": inner}]}
    (result,) = ANTHROPIC.decode(wire).tool_results
    text, image = result.content
    assert isinstance(text, Text)
    noted = Text("[image]", source=image.source, edited=True)
    entry = edited(wire, replace(result, content=(replace(text, text="s", edited=True), noted), edited=True))
    assert entry["content"][0]["content"] == [
        {"type": "text", "text": "s", "cache_control": CACHE},
        {"type": "text", "text": "[image]", "cache_control": CACHE},
    ]


def test_all_results_of_a_step_and_what_the_user_then_says_are_one_user_message() -> None:
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in "ab"]
    wire = [
        {"role": "system", "content": "rules"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "user", "content": "wait"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "assistant", "content": "done"},
        {"role": "system", "content": "late rule"},
    ]
    crossed = ANTHROPIC.encode(decoded(wire, "openai-chat"))
    assert [entry["role"] for entry in crossed] == ["system", "assistant", "user", "assistant", "user"]
    assert crossed[0] == {"role": "system", "content": "rules"}
    assert [part["type"] for part in crossed[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert crossed[4]["content"] == "<system>\nlate rule\n</system>"


def test_two_results_and_words_in_one_user_message_become_three_chat_messages() -> None:
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in "ab"]
    wire = [{"role": "user", "content": [*results, {"type": "text", "text": "and?"}]}]
    assert formats.get("openai-chat").encode(decoded(wire, "anthropic")) == [
        {"role": "tool", "tool_call_id": "a", "content": "a"},
        {"role": "tool", "tool_call_id": "b", "content": "b"},
        {"role": "user", "content": "and?"},
    ]


def test_arguments_that_are_no_object_are_wrapped() -> None:
    calls = (ToolCall("a", "f", "[1]"), ToolCall("b", "f", ""), ToolCall("c", "f", '{"x": 1}', custom=True))
    (entry,) = ANTHROPIC.encode([Message("assistant", calls)])
    assert [call["input"] for call in entry["content"]] == [{"input": "[1]"}, {}, {"input": '{"x": 1}'}]


def test_media_of_every_kind_is_carried_or_noted() -> None:
    parts = (
        Media("image", data="AAAA"),
        Media("document", url="https://a.b/c.pdf"),
        Media("document", data="BBBB"),
        Media("audio", "audio/wav", data="CCCC"),
        Media("image", url="file-1"),
    )
    (entry,) = ANTHROPIC.encode([Message("user", parts)])
    assert entry["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert entry["content"][1]["source"] == {"type": "url", "url": "https://a.b/c.pdf"}
    assert entry["content"][2]["source"]["media_type"] == "application/pdf"
    assert [part["text"] for part in entry["content"][3:]] == [
        "[audio audio/wav: 4 characters of base64]",
        "[image: file-1]",
    ]
    (said,) = ANTHROPIC.encode([Message("assistant", parts[:1])])
    assert said["content"] == [{"type": "text", "text": "[image: 4 characters of base64]"}]
    (answered,) = ANTHROPIC.encode([Message("tool", (ToolResult("c", parts[:1], is_error=True),))])
    assert answered["content"][0]["content"][0]["type"] == "image"
    assert answered["content"][0]["is_error"] is True


def test_neighbors_of_one_role_are_joined_with_results_first() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
    one = {"role": "user", "content": "words", "id": "m"}
    joined = ANTHROPIC.join(one, {"role": "user", "content": [result, "bare"]})
    assert joined["id"] == "m"
    assert [part["type"] for part in joined["content"]] == ["tool_result", "text", "text"]
    assert ANTHROPIC.join({"role": "user", "content": " "}, one)["content"] == [{"type": "text", "text": "words"}]
    assert ANTHROPIC.join(one, {"role": "assistant", "content": "x"}) is None


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ("text", "an Anthropic message is a JSON object, and this is a string"),
        ({"role": "tool", "content": "x"}, "unknown role 'tool'; allowed are system, user, assistant"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, "a tool_result block: 'tool_use_id' is missing"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "c"}]}, "a tool_use block: 'name' is missing"),
        ({"role": "user", "content": [{"type": "text"}]}, "a text block needs a string in 'text', and this is null"),
    ],
)
def test_what_is_no_anthropic_message_is_refused_in_words_with_its_index(wire: Any, words: str) -> None:
    with pytest.raises(FormatError) as error:
        ANTHROPIC.decode(wire, 4)
    assert words in str(error.value)
    assert str(error.value).startswith("message 4: ")


def test_a_system_message_that_changes_tools_or_effort_stays_one_in_every_view() -> None:
    """As words of the user it would change nothing, and the next call would be of a tool that is not there."""
    definition = {"name": "grep", "input_schema": {"type": "object"}}
    changes: dict[int, dict[str, Any]] = {
        2: {
            "role": "system",
            "content": [{"type": "tool_addition", "tool": {"type": "tool_definition", **definition}}],
        },
        3: {"role": "system", "content": [], "output_config": {"effort": "high"}},
        15: {"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "ls"}}]},
    }
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules."}]
    said: list[dict[str, Any]] = []
    compactor, record, passes = Compactor(window=8_000), None, 0
    for turn in range(40):
        lines = "\n".join(f"m{turn}.py:{at}: value_{turn * at} = {at}" for at in range(60))
        messages.append(
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"t{turn}", "name": "r", "input": {}}]}
        )
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{turn}", "content": lines}]}
        )
        if turn in changes:
            said.append(changes[turn])
            messages.append(said[-1])
        result = compactor.compact(messages, record)
        record, passes = result.compaction, passes + result.changed
        assert [message for message in result.messages if message["role"] == "system"] == said
        problem = anthropic_problem({"model": "claude-opus-4-8", "max_tokens": 9, "messages": result.messages})
        assert problem is None
    assert passes > 3


def test_a_tool_that_was_added_stays_when_what_the_assistant_said_behind_it_is_summed_up() -> None:
    """What is left around it are words of users, between which the API takes no system message."""
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "grep"}}}
    messages: list[dict[str, Any]] = []
    compactor, record, passes = Compactor(window=4_000), None, 0
    for turn in range(30):
        messages.append({"role": "user", "content": f"Question {turn}: " + "word " * 100})
        if turn in (1, 9):
            messages.append({"role": "system", "content": [added]})
        result = compactor.compact(messages, record, format="anthropic")
        record, passes = result.compaction, passes + result.changed
        said = [message for message in result.messages if message["role"] == "system"]
        assert said == [message for message in messages if message["role"] == "system"]
        assert anthropic_problem({"model": "claude-opus-4-8", "max_tokens": 9, "messages": result.messages}) is None
        messages.append({"role": "assistant", "content": f"Answer {turn}: " + "reply " * 150})
    assert passes > 1


@pytest.mark.parametrize("calls", [1, 3])
def test_what_the_api_runs_is_never_parted_from_its_result(calls: int) -> None:
    """Code that calls tools of the caller's has its own result only behind theirs, messages later."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules."}]
    compactor, record, passes = Compactor(window=6_000), None, 0
    for turn in range(60):
        run = f"srvtoolu_{turn}"
        blocks: list[dict[str, Any]] = [
            {"type": "server_tool_use", "id": run, "name": "code_execution", "input": {"code": f"read({turn})"}}
        ]
        lines = "\n".join(f"m{turn}.py:{at}: value_{turn * at} = {at}" for at in range(12))
        for at in range(calls):
            call = {
                "id": f"t{turn}_{at}",
                "name": "r",
                "input": {},
                "caller": {"type": "code_execution", "tool_id": run},
            }
            messages.append({"role": "assistant", "content": [*blocks, {"type": "tool_use", **call}]})
            given = {"type": "tool_result", "tool_use_id": call["id"], "content": lines}
            messages.append({"role": "user", "content": [given]})
            blocks = []
        output = {"type": "code_execution_result", "stdout": lines, "stderr": "", "return_code": 0, "content": []}
        ended = {"type": "code_execution_tool_result", "tool_use_id": run, "content": output}
        messages.append({"role": "assistant", "content": [ended, {"type": "text", "text": f"Read {turn}."}]})
        messages.append({"role": "user", "content": "Go on."})
        result = compactor.compact(messages, record)
        record, passes = result.compaction, passes + result.changed
        assert anthropic_problem({"model": "claude-opus-4-8", "max_tokens": 9, "messages": result.messages}) is None
    assert passes > 3
