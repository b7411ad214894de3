"""What a row may hold a conversation as."""

from __future__ import annotations

import json
from typing import Any

import pytest
from batch_talks import make_talk

from contextfold.batch import CompactBatch
from contextfold.batch.rows import read_row

CODEX = [
    {"timestamp": "2031-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}},
    {
        "timestamp": "2031-01-01T00:00:01Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
    },
]


def view_of(row: dict[str, Any], column: str = "messages") -> Any:
    out = CompactBatch(window=100_000)([row])[0]
    assert out["error"] is None, out["error"]
    return json.loads(out["view"])


def test_a_list_its_json_and_a_request_are_the_same_conversation() -> None:
    talk = make_talk(3)
    request = {"model": "m", "messages": talk, "tools": [{"type": "function", "function": {"name": "read_file"}}]}
    for value in (talk, tuple(talk), json.dumps(talk), json.dumps(talk).encode(), request, json.dumps(request)):
        assert view_of({"messages": value}) == talk


def test_a_session_files_text_or_bytes_is_a_conversation() -> None:
    text = "\n".join(json.dumps(row) for row in CODEX)
    for row in ({"text": text}, {"bytes": text.encode(), "path": "rollout.jsonl"}):
        view = view_of(row)
        assert view[0]["content"][0]["text"] == "Hello"


def test_a_row_of_a_data_set_with_turns_is_a_conversation() -> None:
    talk = [{"role": "user", "content": "Which port?"}, {"role": "assistant", "content": "Port 9000."}]
    turns = [{"from": "human", "value": "Which port?"}, {"from": "gpt", "value": "Port 9000."}]
    for value in (turns, json.dumps(turns), {"conversations": turns}):
        assert view_of({"id": 7, "conversations": value}) == talk
    refused = CompactBatch(window=100_000)([{"conversations": [{"from": "observation", "value": "x"}]}])[0]
    assert "turn 0 is by 'observation'" in refused["error"]


def test_the_format_the_tools_and_the_system_prompt_of_a_row_are_used() -> None:
    talk = [{"role": "user", "content": "Hello"}]
    row = {"messages": talk, "format": "anthropic", "system": "Be brief. " * 50, "tools": '[{"name": "look"}]'}
    out = CompactBatch(window=100_000)([row, {"messages": talk}])
    assert out[0]["format"] == "anthropic"
    assert out[0]["tokens_before"] > out[1]["tokens_before"] + 50


@pytest.mark.parametrize("value", [None, 7, "", "[", "[1, 2]", [1], {"a": 1}, b"\xff\xfe", float("nan")])
def test_what_is_no_conversation_is_an_error_of_its_row(value: Any) -> None:
    out = CompactBatch(window=100_000)([{"messages": value}, {"messages": make_talk(1)}, {}])
    assert out[0]["error"]
    assert out[0]["view"] is None
    assert out[1]["error"] is None
    assert out[2]["error"]


def test_a_row_with_several_conversations_says_so() -> None:
    both = json.dumps([{"messages": make_talk(1)}, {"messages": make_talk(2)}])
    assert "2 conversations" in CompactBatch(window=100_000)([{"messages": both}])[0]["error"]
    assert [len(given.messages) for given in read_row({"messages": both}, "messages")] == [5, 9]


def test_half_a_surrogate_pair_does_not_end_a_batch() -> None:
    import pyarrow

    out = CompactBatch(window=100_000)([{"messages": [{"role": "user", "content": "half \ud83d of it"}]}])
    pyarrow.array([out[0]["view"]])
    assert "half" in out[0]["view"]


def through_arrow(talks: list[Any]) -> list[Any]:
    """As a column of structs gives conversations back."""
    import pyarrow

    return list(pyarrow.array(talks).to_pylist())


def test_fields_that_a_column_of_structs_added_are_taken_as_missing() -> None:
    talks = [make_talk(2), make_talk(3)]
    filled = through_arrow(talks)
    assert filled != talks
    assert filled[0][0]["tool_calls"] is None
    assert [view_of({"messages": talk}) for talk in filled] == talks


def test_arguments_that_a_column_of_structs_mixed_are_told_apart() -> None:
    def call(name: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": name, "input": given}]}

    def result(name: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "done"}]}

    start = {"role": "user", "content": [{"type": "text", "text": "Go."}]}
    talk = [start, call("read", {"path": "x"}), result("read"), call("run", {"command": "ls"}), result("run")]
    (filled,) = through_arrow([talk])
    assert filled[1]["content"][0]["input"] == {"path": "x", "command": None}
    assert view_of({"messages": filled}) == talk


def test_a_null_that_the_caller_wrote_stays() -> None:
    talk = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {"limit": None}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
        {"role": "assistant", "content": "PartDone.", "name": None},
    ]
    assert view_of({"messages": talk}) == talk


def test_a_column_of_numpy_with_lists_of_structs_is_read() -> None:
    import numpy

    column = numpy.empty(1, dtype=object)
    column[0] = numpy.array(through_arrow([make_talk(2), make_talk(1)])[0], dtype=object)
    out = CompactBatch(window=100_000)({"messages": column})
    assert json.loads(out["view"][0]) == make_talk(2)
