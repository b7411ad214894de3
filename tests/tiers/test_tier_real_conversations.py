"""Every tool call and every tool result of the real conversations, through every tier."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kinds import read_file

from contextfold import formats
from contextfold.messages import Part, Text, ToolCall, ToolResult
from contextfold.tiers import TIERS
from contextfold.tiers.fitting import LEAST
from contextfold.tiers.markers import is_shortened
from contextfold.tokens.estimate import estimate
from real_files import files

UNREADABLE = (".md", ".txt", "LICENSE")


def is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def words(part: Part) -> list[str]:
    if isinstance(part, ToolCall):
        return [part.arguments]
    return [inner.text for inner in part.content if isinstance(inner, Text)] if isinstance(part, ToolResult) else []


@pytest.fixture(scope="module")
def parts(transcripts: Path) -> list[Part]:
    """Every distinct tool call and result; a part that several recordings repeat is tried once."""
    found: dict[Any, Part] = {}
    for part in _parts(transcripts):
        found.setdefault((type(part), tuple(words(part))), part)
    return list(found.values())


def _parts(folder: Path) -> Iterator[Part]:
    for path in files(folder, "**/*"):
        if path.is_file() and not path.name.endswith(UNREADABLE):
            for conversation in _conversations(path):
                decoder = formats.get(conversation.format)
                for index, wire in enumerate(conversation.messages):
                    message = decoder.decode(wire, index)
                    yield from message.tool_calls
                    yield from message.tool_results


def _conversations(path: Path) -> list[Any]:
    try:
        return list(read_file(path))
    except ValueError:  # probing questions and the like: not conversations
        return []


@pytest.mark.strict
def test_there_are_enough_of_them(parts: list[Part]) -> None:
    assert sum(isinstance(part, ToolCall) for part in parts) > 1_000
    assert sum(isinstance(part, ToolResult) for part in parts) > 1_000


@pytest.mark.strict
@pytest.mark.parametrize(
    ("name", "limit"), [("tool_outputs", 200), ("tool_arguments", 200), ("oversized", 100), ("media", 0)]
)
def test_every_real_part_is_reduced_once_within_its_limit_and_stays_valid(
    parts: list[Part], name: str, limit: int
) -> None:
    tier = TIERS[name]
    for number, part in enumerate(parts):
        once = tier.reduce(part, limit)
        assert once is not None
        assert tier.reduce(once, limit) is once
        assert number % 10 or tier.reduce(part, limit) == once
        for before, after in islice(zip(words(part), words(once), strict=False), 50):
            assert name == "media" or estimate(after) <= estimate(before)
            assert after == before or is_shortened(after) or json.loads(after) == json.loads(before)
            assert not is_json(before) or is_json(after) or name == "media"


@pytest.mark.strict
def test_every_real_output_ends_at_or_below_its_limit_and_uses_most_of_it(parts: list[Part]) -> None:
    large = [
        part for part in parts if isinstance(part, ToolResult) and estimate(part.text) > 400 and len(part.content) == 1
    ]
    sizes = [estimate(TIERS["tool_outputs"].reduce(part, 200).text) for part in large]  # type: ignore[union-attr]
    assert max(sizes) <= max(200, LEAST)
    assert sum(sizes) / len(sizes) > 160
