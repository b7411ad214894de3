"""Conversations of every kind of file become messages that any provider would take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.replay import collect, sessions
from benchmarks.replay.chat import content_text
from benchmarks.replay.conversation import Conversation, build
from benchmarks.replay.recording import Recording
from benchmarks.replay.validity import problems

from contextfold import formats


def built(messages: list[Any], format: str = "openai-chat") -> Conversation:
    return build("here", "tests", formats.decode(messages, formats.get(format)))


def shape(conversation: Conversation) -> list[tuple[str, Any]]:
    """Role, and call ids or the id of the call that is answered."""
    return [
        (message["role"], [call["id"] for call in message.get("tool_calls", ())] or message.get("tool_call_id"))
        for message in conversation.messages
    ]


def test_results_stand_behind_their_calls() -> None:
    """However late a result comes, and whatever comes between; one that no one asked for is left out."""

    def use(call_id: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": call_id, "name": "read", "input": {"path": f"/{call_id}"}}

    def result(call_id: str) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": call_id, "content": f"text of {call_id}"}

    conversation = built(
        [
            {"role": "user", "content": "Look at both."},
            {"role": "assistant", "content": [use("A"), use("B")]},
            {"role": "user", "content": [result("A")]},
            {"role": "user", "content": "Hurry."},
            {"role": "user", "content": [result("B"), result("nobody"), {"type": "text", "text": "Done?"}]},
        ],
        "anthropic",
    )
    wanted = [("user", None), ("assistant", ["A", "B"]), ("tool", "A"), ("tool", "B"), ("user", None), ("user", None)]
    assert shape(conversation) == wanted
    assert content_text(conversation.messages[-1]["content"]) == "Done?"


def test_ids_are_unique_and_arguments_are_objects() -> None:
    """A call id that comes twice, and free text as arguments, are mended."""

    def turn(arguments: str) -> list[Any]:
        function = {"name": "run", "arguments": arguments}
        call = {"id": "same", "type": "function", "function": function}
        return [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "same", "content": arguments},
        ]

    conversation = built([{"role": "user", "content": "go"}, *turn('{"a": 1}'), *turn("ls -l")])
    ids = [call["id"] for message in conversation.messages for call in message.get("tool_calls", ())]
    texts = [call["function"]["arguments"] for m in conversation.messages for call in m.get("tool_calls", ())]
    assert len(set(ids)) == 2
    assert [json.loads(text) for text in texts] == [{"a": 1}, {"input": "ls -l"}]
    assert [message["tool_call_id"] for message in conversation.messages if message["role"] == "tool"] == ids


def test_items_of_one_turn_are_one_message_without_its_reasoning() -> None:
    """The Responses format spreads a turn over items."""
    conversation = built(
        [
            {"role": "user", "content": "go"},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "secret"}]},
            {"type": "function_call", "call_id": "a", "name": "run", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "run", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "function_call_output", "call_id": "b", "output": "2"},
            {"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "3"},
        ],
        "openai-responses",
    )
    wanted = [
        ("user", None),
        ("assistant", ["a", "b"]),
        ("tool", "a"),
        ("tool", "b"),
        ("assistant", ["c"]),
        ("tool", "c"),
    ]
    assert shape(conversation) == wanted
    assert "secret" not in json.dumps(conversation.messages)


def test_instructions_come_first_or_become_the_users() -> None:
    """Leading ones are one system message, later ones a user message that does not pass for a person's."""
    conversation = built(
        [
            {"role": "system", "content": "Be exact."},
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "<environment_context>box</environment_context>"},
            {"role": "user", "content": "Hello"},
            {"role": "system", "content": "Now be slow."},
        ]
    )
    assert [message["role"] for message in conversation.messages] == ["system", "user", "user", "user"]
    assert conversation.messages[0]["content"] == "Be exact.\n\nBe brief."
    assert conversation.first_user == 2


def test_languages_and_tools_are_told_apart() -> None:
    """By what is said, not by what tools print."""
    chinese = sessions.load(list(sessions.MAKERS).index("Chinese dialogue 1"))
    english = sessions.load(list(sessions.MAKERS).index("dialogue 1"))
    agent = sessions.load(list(sessions.MAKERS).index("coding agent 1"))
    assert [c.is_chinese for c in (chinese, english, agent)] == [True, False, False]
    assert [c.has_tools for c in (chinese, english, agent)] == [False, False, True]
    japanese = built(
        [{"role": "user", "content": "この文章は日本語で書かれています。漢字もありますが中国語ではありません。"}]
    )
    assert not japanese.is_chinese


def test_the_example_sessions_are_long_valid_and_the_same_each_time() -> None:
    """They take the place of transcripts, so each must fill a window and need its own past."""
    for conversation in sessions.examples():
        recording = Recording(conversation)
        assert not list(problems(recording, recording.numbers)), conversation.name
        assert recording.suits(32_000)
        far = [need for needs in recording.needs.values() for need in needs if need.distance > 16_000]
        assert len(far) > 20, conversation.name
    digests = [conversation.digest for conversation in sessions.examples()]
    sessions.load.cache_clear()
    assert [conversation.digest for conversation in sessions.examples()] == digests
    assert len(set(digests)) == len(digests)


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    """Every kind of file, in any folder; one that holds no conversation is said and left out; copies count once."""
    messages = list(sessions.load(0).messages)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "one.json").write_text(json.dumps(messages))
    (tmp_path / "copy.jsonl").write_text("\n".join(json.dumps(message) for message in messages))
    (tmp_path / "notes.txt").write_text("nothing here")
    (tmp_path / "README.md").write_text("about these files")
    files = collect.files(tmp_path)
    assert files == ["copy.jsonl", "deep/er/one.json", "notes.txt"]
    surveyed = [collect.survey(tmp_path, file) for file in files]
    assert "notes.txt" in surveyed[2][1]
    found = [entry for entries, _ in surveyed for entry in entries]
    assert [entry.source for entry in found] == ["copy", "deep/er"]
    assert len(collect.chosen(found, 0)) == 1
    assert collect.files(tmp_path / "copy.jsonl") == ["copy.jsonl"]
    assert collect.read(tmp_path / "copy.jsonl", "copy.jsonl")[0].digest == found[0].digest


def test_the_longest_of_every_source_come_first() -> None:
    """A limit takes from each source in turn, in each band by itself."""
    sizes = {"a": (90_000, 80_000, 30_000), "b": (60_000,), "c": (25_000, 24_500)}
    found = [
        collect.Found(collect.Place(f"{source}{n}", 0), source, size, f"{source}{n}")
        for source, all_sizes in sizes.items()
        for n, size in enumerate(all_sizes)
    ]
    assert [entry.tokens for entry in collect.chosen(found, 2)] == [90_000, 60_000, 30_000, 25_000]
    assert len(collect.chosen(found, 0)) == len(found)


@pytest.mark.strict
def test_every_real_conversation_is_one_a_provider_would_take(transcripts: Path) -> None:
    """As read, before any strategy touches it."""
    read = 0
    for file in collect.files(transcripts):
        for conversation in collect.read(transcripts, file):
            if conversation.messages:
                recording = Recording(conversation)
                found = list(problems(recording, recording.numbers))
                assert not found or len(conversation.messages) == 1, (conversation.name, found[:3])
                read += 1
    assert read > 20
