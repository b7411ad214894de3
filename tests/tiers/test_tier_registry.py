"""The tiers by name, and the one that removes reasoning."""

from __future__ import annotations

import pytest

from contextfold.errors import PolicyError
from contextfold.messages import Media, Opaque, Reasoning, Text, ToolCall, ToolResult
from contextfold.tiers import TIERS, reduce

PARTS = (
    Text("words"),
    Media("image", "image/png", "AAAA"),
    ToolCall("call_1", "bash", '{"command": "ls"}'),
    ToolResult("call_1", (Text("a.py"),)),
    Reasoning("hidden", source={"signature": "abc"}),
    Opaque("server_tool_use"),
)


def test_the_tiers_stand_in_their_order_cheapest_first() -> None:
    assert list(TIERS) == ["tool_arguments", "tool_outputs", "media", "reasoning", "oversized", "joined"]
    assert all(tier.name == name for name, tier in TIERS.items())


def test_reasoning_is_removed_whole_and_by_its_own_tier_only() -> None:
    """Byte-identical or dropped whole."""
    for name in TIERS:
        left = reduce(PARTS[4], name, 0)
        assert left is (None if name == "reasoning" else PARTS[4])


@pytest.mark.parametrize("name", ["tool_arguments", "tool_outputs", "reasoning", "oversized"])
def test_a_small_part_comes_back_as_the_same_object(name: str) -> None:
    for part in PARTS[:4] + PARTS[5:]:
        assert reduce(part, name, 0) is part


def test_an_unknown_tier_is_named_with_those_that_exist() -> None:
    with pytest.raises(PolicyError, match=r"tier 'zip' does not exist; the tiers are tool_arguments, .*, joined"):
        reduce(PARTS[0], "zip", 0)
