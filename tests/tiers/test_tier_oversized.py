"""The last resort: whatever is in an item, it is brought under the limit, and says what it lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tier_inputs import containers, json_texts, log, texts, unhurried

from contextfold.messages import Media, Opaque, Text, ToolCall, ToolResult
from contextfold.tiers.fitting import LEAST
from contextfold.tiers.markers import counts_in, is_shortened
from contextfold.tiers.oversized import OversizedTier
from contextfold.tokens.estimate import estimate
from effort import examples

tier = OversizedTier()
limits = st.integers(LEAST, 600)
blocks = st.one_of(
    st.builds(Text, texts(0, 600)),
    st.builds(Media, st.just("image"), st.just("image/png"), st.just("AAAA" * 100)),
    st.builds(Opaque, st.just("search_result"), texts(0, 600)),
)


def size(part: Any) -> int:
    """Tokens of what can be read of a part; what media cost is not counted."""
    if isinstance(part, ToolCall):
        return estimate(part.arguments)
    if isinstance(part, ToolResult):
        return sum(map(size, part.content))
    return 0 if isinstance(part, Media) else estimate(part.text)


@settings(max_examples=examples(200), deadline=None)
@given(st.one_of(texts(), json_texts(), st.text(max_size=2_000)), limits)
def test_any_text_is_within_the_limit_and_stays_so(text: str, limit: int) -> None:
    part = Text(text, source={"kept": True})
    once = tier.reduce(part, limit)
    assert isinstance(once, Text)
    assert tier.reduce(once, limit) is once
    assert size(once) <= size(part)
    assert size(once) <= limit or is_shortened(text)
    assert once is part or (once.edited and once.source is part.source)


@unhurried
@given(containers(900), limits)
def test_json_arguments_are_within_the_limit_and_stay_json_of_the_same_kind(value: Any, limit: int) -> None:
    """JSON stays valid."""
    part = ToolCall("call_1", "write", json.dumps(value))
    once = tier.reduce(part, limit)
    assert isinstance(once, ToolCall)
    assert type(json.loads(once.arguments)) is type(value)
    assert size(once) <= limit or is_shortened(json.dumps(value, ensure_ascii=False))
    assert tier.reduce(once, limit) is once


@unhurried
@given(texts(), limits, st.booleans())
def test_arguments_that_are_no_json_are_within_the_limit_too(text: str, limit: int, custom: bool) -> None:
    part = ToolCall("call_1", "patch", text, custom=custom)
    once = tier.reduce(part, limit)
    assert isinstance(once, ToolCall)
    assert size(once) <= limit or is_shortened(text)
    assert once is part or custom or isinstance(json.loads(once.arguments), dict | list | str)
    assert tier.reduce(once, limit) is once


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(blocks, max_size=8), limits)
def test_any_result_is_within_the_limit_and_stays_so(content: list[Text | Media | Opaque], limit: int) -> None:
    part = ToolResult("call_1", tuple(content), source={"kept": True})
    once = tier.reduce(part, limit)
    assert isinstance(once, ToolResult)
    assert tier.reduce(once, limit) is once
    assert once is part or (once.edited and once.source is part.source)
    if not any(is_shortened(block.text) for block in content if not isinstance(block, Media)):
        assert size(once) <= limit


def test_media_go_only_when_there_is_no_room_for_them() -> None:
    image = Media("image", "image/png", "AAAA" * 1_000)
    part = ToolResult("call_1", (image, Text("\n".join(log(400)))))
    roomy, tight = tier.reduce(part, 4_000), tier.reduce(part, 500)
    assert isinstance(roomy, ToolResult)
    assert isinstance(tight, ToolResult)
    assert roomy.content[0] is image
    assert is_shortened(roomy.text)
    assert tight.content[0] == Text("[image image/png, 2 KB removed to save context]")
    assert size(tight) > 400
    wide = ToolResult("call_1", (Media("image", "image/png", "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAIAAAA12IJa"),))
    assert tier.reduce(wide, 900) is not wide  # 765 tokens for one provider, 1,049 for another


def test_a_huge_block_that_is_not_understood_becomes_a_reference() -> None:
    part = ToolResult("call_1", (Text("found:"), Opaque("search_result", "word " * 5_000)))
    once = tier.reduce(part, 200)
    assert isinstance(once, ToolResult)
    assert once.content == (Text("found:"), Text("[search_result, 25,000 characters removed to save context]"))
    silent = tier.reduce(ToolResult("call_1", (Opaque("blob", source={"key": "word, " * 5_000}),)), 200)
    assert silent == ToolResult("call_1", (Text("[blob removed to save context]"),))


def test_of_thousands_of_small_blocks_the_first_and_last_stay_and_the_others_are_counted() -> None:
    part = ToolResult("call_1", tuple(Text(f"row {n}") for n in range(2_000)))
    once = tier.reduce(part, 200)
    assert isinstance(once, ToolResult)
    assert once.content[0] == part.content[0]
    assert once.content[-1] == part.content[-1]
    assert counts_in(once.text)["blocks"] + len(once.content) - 1 == 2_000
    again = tier.reduce(once, 60)
    assert isinstance(again, ToolResult)
    assert counts_in(again.text)["blocks"] + len(again.content) - 1 == 2_000
    assert 150 < size(once) <= 200
    assert size(again) <= 60


@pytest.mark.parametrize("text", ["word " * 80_000, "字" * 300_000, "x" * 300_000, "🚀" * 50_000])
def test_a_single_huge_line_keeps_its_head_and_its_end(text: str) -> None:
    once = tier.reduce(Text(text), 1_000)
    assert isinstance(once, Text)
    assert 800 < size(once) <= 1_000
    assert once.text[:60] == text[:60]
    assert once.text[-60:] == text[-60:]
