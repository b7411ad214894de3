"""Two people's conversations that a framework hands over as lists: what one's tools answered is not told the other."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from contextfold import Compactor, formats
from contextfold.integrations.known_lists import KnownLists

CLEARED = "[Old tool result content cleared]"
SHOWN = re.compile(r"balance of \w+")


class ListedFace:
    """A face of a framework that tells of no conversation but its items."""

    def __init__(self) -> None:
        self.known = KnownLists(formats.get("openai-responses"))
        self.compactor = Compactor(window=4_000, summarizer=self.clerk)
        self.asked = 0

    def clerk(self, prompt: str) -> str:
        self.asked += 1
        return "Found: " + ", ".join(sorted(set(SHOWN.findall(prompt))))

    def view(self, items: list[Any]) -> str:
        """What is sent for these items, of which the framework makes copies."""
        conversation = self.known.of(json.loads(json.dumps(items)))
        out = self.compactor.compact(conversation.items, conversation.record, format="openai-responses")
        self.known.keep(replace(conversation, record=out.compaction))
        return json.dumps(out.messages)


def of_person(name: str, turns: int, call_id: str) -> list[Any]:
    items: list[Any] = [{"role": "user", "content": "Look up what each of my accounts has."}]
    for n in range(turns):
        called = call_id.format(n)
        items += [
            {"type": "function_call", "call_id": called, "name": "look", "arguments": json.dumps({"account": n})},
            {"type": "function_call_output", "call_id": called, "output": f"balance of {name}_{n} " + "is so " * 90},
        ]
    return items


def with_cleared(items: list[Any], left: int) -> list[Any]:
    """As a client has it that clears all but its newest results."""
    places = [n for n, item in enumerate(items) if item.get("type") == "function_call_output"]
    old = set(places[:-left])
    return [{**item, "output": CLEARED} if n in old else item for n, item in enumerate(items)]


@pytest.mark.parametrize("met", [False, True], ids=["new here", "met before"])
def test_a_list_whose_results_are_cleared_gets_no_record_of_another_ones(met: bool) -> None:
    """Kimi's ids of calls, and those of many a server, are a name and a number: two people who asked for the same
    differ in nothing but what their tools have answered, and where both clients have cleared that, in what is left.
    """
    face, turns = ListedFace(), 24
    for n in range(2, turns, 2):
        face.view(of_person("ann", n, "functions.look:{}"))
        if met:
            face.view(of_person("bob", 2, "functions.look:{}"))
    assert face.asked >= 1
    assert "balance of ann_1" in face.view(with_cleared(of_person("ann", turns, "functions.look:{}"), 4))
    assert "ann" not in face.view(with_cleared(of_person("bob", turns, "functions.look:{}"), 4))
    assert "ann" not in face.view(with_cleared(of_person("bob", turns + 1, "functions.look:{}"), 4))


@pytest.mark.parametrize("call_id", ["functions.look:{}", "call_9aK3bQ7xLm2ZtR5v{}"])
def test_one_whose_results_are_cleared_at_each_turn_pays_for_no_summary_more(call_id: str) -> None:
    """The same caution costs nothing where a conversation goes on."""

    def asked(left: int) -> int:
        face = ListedFace()
        for n in range(2, 80):
            face.view(with_cleared(of_person("ann", n, call_id), left if n % 10 == 0 else left + n % 10))
        return face.asked

    assert 1 <= asked(8) <= asked(100)
