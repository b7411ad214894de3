"""System prompts and tools that take half of a small window are read from the cache at each call, whenever a pass is
made: they must not take the room of the turns between two passes, or the view is written anew every few turns.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.building import conversation

from contextfold import Compactor, count_tokens
from contextfold.testing.dict_store import DictStore

WINDOW = 60_000
SYSTEM = "You repair services, and say what you did. " * 650
TOOLS = [
    {"type": "function", "function": {"name": f"tool_{n}", "description": "Reads and writes files, one by one. " * 80}}
    for n in range(30)
]
STEPS = 130
Face = Callable[[list[dict[str, Any]]], list[list[dict[str, Any]]]]


def by_compact(wire: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The views of all turns."""
    compactor, previous, views = Compactor(window=WINDOW), None, []
    for length in range(2, len(wire) + 1, 2):
        out = compactor.compact(wire[:length], previous, system=SYSTEM, tools=TOOLS)
        previous = out.compaction
        views.append(out.messages)
    return views


def by_instructions(wire: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The same with the system prompt where OpenAI's API has it."""
    compactor, previous, views = Compactor(window=WINDOW), None, []
    for length in range(2, len(wire) + 1, 2):
        said = [{"role": "system", "content": SYSTEM}, *wire[:length]]
        out = compactor.compact(said, previous, tools=TOOLS)
        previous = out.compaction
        views.append(out.messages[1:])
    return views


def by_session(wire: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    session = Compactor(window=WINDOW).session("one", DictStore())
    views: list[list[dict[str, Any]]] = []
    for length in range(0, len(wire), 2):
        session.append(wire[length : length + 2])
        views.append(list(session.view(system=SYSTEM, tools=TOOLS)))
    return views


FACES: dict[str, Face] = {"compact": by_compact, "instructions": by_instructions, "session": by_session}


def rewritten(views: list[list[dict[str, Any]]]) -> int:
    """How many views do not begin as the one before, and are written to the cache anew."""
    return sum(view[: len(before)] != before for before, view in pairwise(views))


@pytest.mark.parametrize("face", FACES)
def test_what_stands_beside_the_messages_does_not_make_a_pass_every_few_turns(face: str) -> None:
    beside = count_tokens([{"role": "system", "content": SYSTEM}], tools=TOOLS)
    assert 0.35 * WINDOW < beside < 0.5 * WINDOW
    views = FACES[face](conversation(STEPS, words=1_200))
    assert rewritten(views) <= STEPS / 5
    assert max(map(count_tokens, views)) <= 0.8 * WINDOW - beside
