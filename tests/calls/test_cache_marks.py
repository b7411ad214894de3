"""The marks of the provider's cache, which callers move to the newest messages at every request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contextfold import Compaction, Compactor, Policy, formats
from contextfold.conversation.history import History
from contextfold.record.compaction import Edit
from contextfold.tokens import TokenCounter

WINDOW = 6_000
MARK, POINT = {"type": "ephemeral"}, {"cachePoint": {"type": "default"}}
MARKED = 3
"""Messages that the caller marks; with the mark of a system prompt these are all that Anthropic takes."""


def of_anthropic(number: int, output: str) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"call_{number}", "name": "look", "input": {"table": number}}
    read = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": output}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [read]}]


def of_bedrock(number: int, output: str) -> list[dict[str, Any]]:
    call = {"toolUseId": f"call_{number}", "name": "look", "input": {"table": number}}
    read = {"toolUseId": f"call_{number}", "content": [{"text": output}]}
    return [{"role": "assistant", "content": [{"toolUse": call}]}, {"role": "user", "content": [{"toolResult": read}]}]


def in_the_block(content: list[Any], is_marked: bool) -> None:
    content[-1].pop("cache_control", None)
    if is_marked:
        content[-1]["cache_control"] = MARK


def in_another_block(content: list[Any], is_marked: bool) -> None:
    content[-1] = {name: value for name, value in content[-1].items() if name != "cache_control"}
    if is_marked:
        content[-1]["cache_control"] = MARK


def as_a_block(content: list[Any], is_marked: bool) -> None:
    content[:] = [block for block in content if block != POINT]
    if is_marked:
        content.append(POINT)


@pytest.mark.parametrize(
    ("turn", "mark", "format"),
    [
        (of_anthropic, in_the_block, "anthropic"),
        (of_anthropic, in_another_block, "anthropic"),
        (of_bedrock, as_a_block, "bedrock-converse"),
    ],
)
@pytest.mark.parametrize("summarizer", [None, "same"])
def test_marks_that_are_moved_in_place_stand_in_a_view_where_the_caller_has_them(
    turn: Callable[[int, str], list[Any]], mark: Callable[[list[Any], bool], None], format: str, summarizer: Any
) -> None:
    """A mark that stayed behind on a result that was cut would be one more than Anthropic takes: it refuses that."""
    content = (
        [{"type": "text", "text": "Read all tables."}] if format == "anthropic" else [{"text": "Read all tables."}]
    )
    messages: list[Any] = [{"role": "user", "content": content}]
    compactor = Compactor(window=WINDOW, policy=Policy(target=("fraction", 0.4)), summarizer=summarizer)
    results: list[Any] = []

    def send(view: list[Any]) -> str:
        marks = [str(entry).count("cache_control") + str(entry).count("cachePoint") for entry in view]
        assert sum(marks) <= MARKED
        assert marks[-1] == 1 or "Pause the task" in str(view[-1])
        return "<summary>\nTables were read one after the other, as the user wanted.\n</summary>"

    for number in range(40):
        users = [message for message in messages if message["role"] == "user"]
        for place, message in enumerate(reversed(users)):
            mark(message["content"], place < MARKED)
        record = results[-1].compaction if results else None
        compactor.call(send, messages, record, format=format, on_result=results.append)
        rows = 1_500 if number % 8 == 0 else 10
        messages += turn(number, "".join(f"row {number}-{row}: value {row * 7}\n" for row in range(rows)))
    assert sum(result.changed for result in results) > 2


def test_a_mark_that_leaves_from_between_two_results_moves_no_edit() -> None:
    """What is shortened is named by its number in the message; behind the last one a mark changes no number."""
    results = [{"toolResult": {"toolUseId": name, "content": [{"text": f"{name} degrees"}]}} for name in "abc"]
    calls = [{"toolUse": {"toolUseId": name, "name": "measure", "input": {}}} for name in "abc"]

    def wire(*blocks: Any) -> list[Any]:
        asked = {"role": "user", "content": [{"text": "Measure all rooms."}]}
        return [asked, {"role": "assistant", "content": calls}, {"role": "user", "content": [*blocks]}]

    def history(*blocks: Any) -> History:
        read = History(formats.get("bedrock-converse"), TokenCounter())
        read.extend(wire(*blocks))
        return read

    edit = Edit(index=2, part=2, tier="tool_outputs", limit=10)  # the second result
    record = Compaction(format="bedrock-converse", covers=3, fingerprint="", fates=(), edits=(edit,))
    record = record.fitted(history(results[0], POINT, *results[1:]))
    assert record.mismatch(history(results[0], POINT, *results[1:], POINT)) is None
    assert record.mismatch(history(*results)) is not None
