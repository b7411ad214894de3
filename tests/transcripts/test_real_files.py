"""Every conversation file there is gets read, whole, and as the format that it is in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kinds import read_file

from contextfold.errors import InputError
from formats.reading import conversation_files, decoded, pairing
from real_files import files, some

KINDS = {
    "entire-cli-claude-code": ("claude-code", "anthropic"),
    "entire-skills-claude-code": ("claude-code", "anthropic"),
    "kimi-cli-claude-code-zh": ("claude-code", "anthropic"),
    "episodic-memory-claude-code": ("claude-code", "anthropic"),
    "entire-skills-codex": ("codex", "openai-responses"),
    "entire-cli-gemini": ("gemini-cli", "openai-chat"),
    "pi-mono": ("pi", "anthropic"),
    "mini-swe-agent-deepseek": ("messages", "openai-chat"),
    "tau2-bench": ("messages", "openai-chat"),
    "openhands-codeact": ("messages", "openai-chat"),
    "swe-agent": ("messages", "openai-chat"),
    "deer-flow-threads": ("messages", "langchain"),
    "deer-flow-replay-zh": ("server-sent-events", "openai-chat"),
    "realmembench": ("dialogue", "openai-chat"),
    "memorybank": ("dialogue", "openai-chat"),
    "evermemos": ("dialogue", "openai-chat"),
    "ui-tars-desktop": ("event-list", "openai-chat"),
}
COUNTS = {"tau2-bench": 40, "memorybank": 15}


def test_every_conversation_file_is_read(transcripts: Path) -> None:
    for path in conversation_files(transcripts):
        found = read_file(path)
        folder = path.parent.name
        assert all(conversation.messages for conversation in found), path
        if folder in KINDS:
            assert {(conversation.kind, conversation.format) for conversation in found} == {KINDS[folder]}, path
            assert len(found) == COUNTS.get(folder, 1)


def test_files_that_are_no_conversations_are_refused_in_one_line(transcripts: Path) -> None:
    conversations = conversation_files(transcripts)
    for path in some(path for path in transcripts.rglob("*") if path.is_file() and path not in conversations):
        with pytest.raises(InputError) as error:
            read_file(path)
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)


def _blocks(path: Path) -> list[dict[str, Any]]:
    """Every content block of a Claude Code file that is part of the conversation, by an independent reading."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        message = row.get("message") or {}
        skipped = row.get("isSidechain") or row.get("isCompactSummary") or message.get("model") == "<synthetic>"
        if row.get("type") in ("user", "assistant") and not skipped and isinstance(message.get("content"), list):
            found.extend(message["content"])
    return found


def test_claude_code_files_keep_every_call_and_result_with_results_right_after_their_calls(transcripts: Path) -> None:
    """Calls, results and their order are as the provider had them, however the rows interleave."""
    for path in files(transcripts, "*claude-code*/*.jsonl"):
        blocks = _blocks(path)
        (conversation,) = read_file(path)
        calls, results = pairing(decoded(conversation.messages, conversation.format))
        assert calls == sorted(block["id"] for block in blocks if block["type"] == "tool_use")
        assert results == sorted(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")
        kept = [block for message in conversation.messages for block in message["content"] if isinstance(block, dict)]
        assert sorted(map(json.dumps, kept)) == sorted(map(json.dumps, blocks))
        waiting: set[str] = set()
        for message in decoded(conversation.messages, conversation.format):
            assert {result.call_id for result in message.tool_results} == waiting
            waiting = {call.id for call in message.tool_calls}


def test_codex_files_hand_over_every_item_as_it_is(transcripts: Path) -> None:
    for path in files(transcripts, "entire-skills-codex/*.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        items = [line["payload"] for line in lines if line["type"] == "response_item"]
        (conversation,) = read_file(path)
        assert conversation.messages[0]["role"] == "system"
        assert conversation.messages[1:] == items


@pytest.mark.strict
def test_plain_lists_are_handed_over_as_they_stand_in_the_file(transcripts: Path) -> None:
    """No mutation begins at the file: the view of an unchanged conversation holds the file's own messages."""
    path = files(transcripts, "openhands-codeact/*.json")[0]
    value = json.loads(path.read_text(encoding="utf-8"))
    (conversation,) = read_file(path)
    answer = value["response"]["choices"][0]["message"]
    assert conversation.messages == [*value["messages"], answer]
