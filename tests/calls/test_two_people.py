"""Two people's conversations that a framework hands over as lists: what one's tools answered is not told the other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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
    old = set(places[: len(places) - left])
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


def asking(items: list[Any], told: str = "") -> list[Any]:
    """As a client has it that says something else in its task, with another question behind it all."""
    task = {**items[0], "content": f"{items[0]['content']} {told}".rstrip()}
    return [task, *items[1:], {"role": "user", "content": "And what is that in all?"}]


def with_short(items: list[Any]) -> list[Any]:
    """With a first result that is the same for everyone."""
    return [*items[:2], {**items[2], "output": "The bank is open."}, *items[3:]]


def with_one_cleared(items: list[Any], turn: int) -> list[Any]:
    """As a client has it that clears what it has read again since."""
    at = 2 * turn + 2
    return [*items[:at], {**items[at], "output": CLEARED}, *items[at + 1 :]]


def otherwise_written(items: list[Any]) -> list[Any]:
    return [{**item, "arguments": f" {item['arguments']}"} if "arguments" in item else item for item in items]


STEPS: dict[str, list[Callable[[list[Any]], list[Any]]]] = {
    "some left": [lambda items: with_cleared(items, 4), lambda items: asking(with_cleared(items, 4), "It is noon.")],
    "otherwise written": [
        lambda items: with_cleared(items, 4),
        lambda items: otherwise_written(with_cleared(items, 4)),
    ],
    "none left": [lambda items: with_cleared(items, 4), lambda items: asking(with_cleared(items, 0))],
    "one that is the same left": [
        lambda items: with_short(with_cleared(items, 4)),
        lambda items: with_short(asking(with_cleared(items, 0))),
    ],
    "a newer one before": [
        lambda items: with_one_cleared(items, 22),
        lambda items: with_one_cleared(with_cleared(items, 2), 22),
    ],
}
"""What a client has cleared, one after the other."""


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("call_id", ["functions.look:{}", "call_9aK3bQ7xLm2ZtR5v{}"], ids=["numbered", "random"])
def test_what_was_cleared_is_told_by_no_record_of_another_ones_however_it_was(call_id: str, steps: str) -> None:
    """Where what is left is the same for both, an id alone tells whose the record is; by that it goes on."""
    face, turns = ListedFace(), 24
    first = with_short if "same" in steps else list
    is_known = steps in ("some left", "otherwise written", "a newer one before") or "9aK3" in call_id
    for n in range(2, turns, 2):
        face.view(first(of_person("ann", n, call_id)))
    assert face.asked >= 1
    for step in STEPS[steps]:
        view = face.view(step(of_person("ann", turns, call_id)))
        assert ("balance of ann_2," in view) == (is_known or step is STEPS[steps][0])
        if step is STEPS["some left"][0]:  # and where it is begun again from an earlier turn
            assert "balance of ann_2," in face.view(asking(with_cleared(of_person("ann", turns, call_id), 4)[:-2]))
    theirs = STEPS[steps][-1](of_person("bob", turns, call_id.replace("9aK3", "7pQ5")))
    assert "ann" not in face.view(theirs)
    assert "ann" not in face.view(asking(theirs, "It is late."))


@pytest.mark.parametrize("end", ["Saved.", CLEARED])
def test_a_short_answer_that_many_tools_give_does_not_tell_whose_list_it_is(end: str) -> None:
    """The second one's client has cleared all results but the newest, which is the same for both."""
    face = ListedFace()
    for n in range(2, 24, 2):
        face.view(of_person("ann", n, "functions.look:{}"))
    assert face.asked >= 1
    mine, theirs = (of_person(name, 24, "functions.look:{}") for name in ("ann", "bob"))
    face.view([*mine[:-1], {**mine[-1], "output": end}])
    assert "ann" not in face.view([*with_cleared(theirs, 1)[:-1], {**theirs[-1], "output": end}])


PUBLIC = "The rules of the bank, which are the same for everyone: " + "open all day, " * 20


@pytest.mark.parametrize("at", [2, -1], ids=["first", "newest"])
def test_what_both_have_read_does_not_tell_whose_list_it_is(at: int) -> None:
    """A page that is the same for everyone, before all that was cleared, or behind it where the task is another one."""
    face = ListedFace()

    def of(name: str, turns: int, told: str = "", left: int = 99) -> list[Any]:
        items = with_cleared(of_person(name, turns, "functions.look:{}"), left)
        items[at] = {**items[at], "output": PUBLIC}
        return [{**items[0], "content": f"{items[0]['content']}{told}"}, *items[1:]]

    for n in range(2, 24, 2):
        face.view(of("ann", n))
    assert face.asked >= 1
    left, told = (4, "") if at == 2 else (1, " Be brief.")
    face.view(of("ann", 24, left=4 if at == 2 else 99))
    assert "ann" not in face.view(of("bob", 24, told, left))
