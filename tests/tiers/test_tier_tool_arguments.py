"""Old tool-call arguments: long values are cut with a count, short ones and the shape of the JSON survive."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tier_inputs import containers, texts, unhurried, values

from contextfold.messages import Text, ToolCall
from contextfold.tiers.markers import MARKER, counts_in, is_shortened, without_markers
from contextfold.tiers.tool_arguments import LEAST, MOST_ITEMS, ToolArgumentsTier
from contextfold.tokens.estimate import estimate

tier = ToolArgumentsTier()
limits = st.integers(0, 600)


def call(arguments: str, custom: bool = False) -> ToolCall:
    return ToolCall("call_1", "write_file", arguments, custom=custom, source={"kept": True})


def reduced(arguments: str, limit: int, custom: bool = False) -> str:
    part = tier.reduce(call(arguments, custom), limit)
    assert isinstance(part, ToolCall)
    return part.arguments


def test_a_written_file_keeps_its_path_its_head_and_its_end() -> None:
    body = "".join(f"def function_{index}() -> int:\n    return {index}\n" for index in range(200))
    arguments = json.dumps({"path": "src/app/views.py", "content": body, "mode": "w"})
    shorter = json.loads(reduced(arguments, 300))
    assert list(shorter) == ["path", "content", "mode"]
    assert (shorter["path"], shorter["mode"]) == ("src/app/views.py", "w")
    head, tail = MARKER.split(shorter["content"])
    assert body.startswith(head)
    assert body.endswith(tail)
    assert tail
    assert counts_in(shorter["content"]) == {"characters": len(body) - len(head) - len(tail)}


def test_a_string_of_one_line_keeps_its_head_only() -> None:
    shorter = json.loads(reduced(json.dumps({"query": "word " * 200}), 100))["query"]
    assert shorter.endswith(" characters shortened]")
    assert len(shorter) <= 100


@unhurried
@given(st.dictionaries(st.text(max_size=8), values(900), max_size=8), limits)
def test_shortened_arguments_are_valid_json_with_the_same_fields_and_short_values(
    value: dict[str, Any], limit: int
) -> None:
    """JSON stays valid; short fields survive."""
    shorter = json.loads(reduced(json.dumps(value), limit))
    assert list(shorter) == list(value)
    for name, inner in value.items():
        if isinstance(inner, str) and len(inner) <= max(limit, LEAST):
            assert shorter[name] == inner
        if isinstance(inner, str) and len(inner) > max(limit, LEAST) and shorter[name] != inner:
            assert is_shortened(shorter[name])


@unhurried
@given(st.one_of(containers(900).map(json.dumps), texts()), limits, st.booleans())
def test_reducing_again_changes_nothing_and_nothing_grows(arguments: str, limit: int, custom: bool) -> None:
    part = call(arguments, custom)
    once = tier.reduce(part, limit)
    assert isinstance(once, ToolCall)
    assert tier.reduce(once, limit) is once
    assert once is part or (once.edited and once.source is part.source)
    assert estimate(once.arguments) <= estimate(arguments)
    assert part == call(arguments, custom)


@unhurried
@given(st.lists(st.text(min_size=20, max_size=30), min_size=MOST_ITEMS + 1, max_size=60))
def test_a_long_list_keeps_its_first_and_last_items_and_a_count(items: list[str]) -> None:
    shorter = json.loads(reduced(json.dumps({"files": items}), LEAST))["files"]
    assert shorter[:4] == items[:4]
    assert shorter[-2:] == items[-2:]
    assert counts_in(shorter[4]) == {"items": len(items) - 6}


def test_a_long_list_of_short_items_survives_when_it_takes_little_room() -> None:
    part = call(json.dumps({"lines": list(range(30)), "note": "x" * 60}))
    assert tier.reduce(part, 200) is part


def test_a_free_text_keeps_the_paths_between_its_head_and_its_end() -> None:
    hunk = "".join(f"+    value_{index} = compute(value_{index - 1})\n" for index in range(60))
    patch = (
        "*** Begin Patch\n"
        + "".join(f"*** Update File: src/module_{n}/views.py\n@@\n{hunk}" for n in range(3))
        + "*** End Patch"
    )
    shorter = reduced(patch, 700, custom=True)
    assert len(shorter) <= 700
    assert shorter.startswith("*** Begin Patch\n*** Update File: src/module_0/views.py")
    assert shorter.endswith("*** End Patch")
    assert len(without_markers(shorter).splitlines()) + counts_in(shorter)["lines"] >= patch.count("\n")


def test_broken_json_is_cut_as_text_and_deep_json_is_left_alone() -> None:
    assert is_shortened(reduced('{"content": "' + "word " * 500, 200))
    deep = '{"a":' * 100 + json.dumps("word " * 500) + "}" * 100
    assert reduced(deep, 200) == deep


def test_a_double_encoded_document_stays_a_json_string() -> None:
    shorter = reduced(json.dumps(json.dumps({"content": "word " * 500})), 200)
    assert isinstance(json.loads(shorter), str)
    assert len(json.loads(shorter)) <= 200


def test_the_separators_of_the_original_are_kept() -> None:
    value = {"path": "a.py", "content": "word " * 100}
    assert reduced(json.dumps(value), 80).startswith('{"path": "a.py", "content": "word ')
    assert reduced(json.dumps(value, separators=(",", ":")), 80).startswith('{"path":"a.py","content":"word ')


def test_other_parts_and_short_calls_come_back_as_they_are() -> None:
    for part in (Text("x" * 1_000), call('{"path": "a.py"}')):
        assert tier.reduce(part, 10) is part
