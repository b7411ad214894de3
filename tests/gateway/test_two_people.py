"""Two people behind one key who ask for the same: what the tools of one answered is never told the other."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest
from emulator import Answer, ProviderServer
from tests.gateway.requests_made import post

from contextfold.gateway.serve import InThread

CLEARED = "[Old tool result content cleared]"
TASK = "Look up what each of my accounts has."


def of_person(name: str, turns: int, call_id: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    for n in range(turns):
        asked = {"name": "look", "arguments": json.dumps({"account": n})}
        call = {"id": call_id.format(n), "type": "function", "function": asked}
        thought = f"I look at {n}. " + "So I go on with it then. " * 35
        messages += [
            {"role": "assistant", "content": thought, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": f"{name}_{n} has it. " + "is so " * 150},
        ]
    return messages


def with_cleared(messages: list[dict[str, Any]], left: int = 2) -> list[dict[str, Any]]:
    """As a client has it that clears all but its newest results."""
    old = {n for n in range(len(messages) - 2 * left) if messages[n]["role"] == "tool"}
    return [{**one, "content": CLEARED} if n in old else one for n, one in enumerate(messages)]


def clerk(request: Any) -> Answer:
    """A model that says in a summary what it has read."""
    last = str(json.loads(request.raw)["messages"][-1]["content"])
    if "summar" not in last.lower() or last == TASK:
        return Answer("ok")
    found = sorted(set(re.findall(r"(?:ann|bob)_\d+", request.raw.decode())))[:20]
    return Answer(f"The accounts were looked up one after the other. Found: {', '.join(found)}.")


def seen(gateway: InThread, provider: ProviderServer, messages: list[dict[str, Any]]) -> str:
    """What the provider was sent of these messages."""
    body = json.dumps({"model": "m", "messages": messages}).encode()
    assert post(gateway.url, "/v1/chat/completions", body).status == 200
    return provider.requests[-1].raw.decode()


@pytest.mark.parametrize("anew", [False, True], ids=["one gateway", "started anew"])
@pytest.mark.parametrize("call_id", ["functions.look:{}", "call_9aK3bQ7xLm2ZtR5v{}"], ids=["numbered", "random"])
def test_a_summary_of_what_was_cleared_since_is_found_by_its_own_conversation_alone(
    opened: Any, provider: ProviderServer, call_id: str, anew: bool
) -> None:
    """Kimi numbers its calls. Once both clients had cleared their old results, all that a record is found by was the
    same, and it told what the first one's tools had answered.
    """
    provider._provider.script = clerk
    gateway: InThread = opened(summarizer="same")
    view = partial(seen, gateway, provider)

    turns = 60
    for n in range(2, turns, 2):
        view(of_person("ann", n, call_id))
    before = gateway.metrics.total("compactions_total")
    assert before >= 1
    view(with_cleared(of_person("ann", turns, call_id), 4))
    view(with_cleared(of_person("ann", turns + 1, call_id), 5))
    while gateway.metrics.total("compactions_total") < before + 2:
        turns += 1
        view(with_cleared(of_person("ann", turns, call_id)))
    assert "ann_1," in view(with_cleared(of_person("ann", turns + 1, call_id)))
    if anew:
        view = partial(seen, opened(summarizer="same"), provider)
    theirs = view(with_cleared(of_person("bob", turns + 1, call_id.replace("9aK3", "7pQ5"))))
    assert "ann" not in theirs
    if "9aK3" in call_id:  # by an id of its own it is found again
        assert "ann_1," in view(with_cleared(of_person("ann", turns + 2, call_id)))


@pytest.mark.parametrize("end", ["Saved.", CLEARED, "Saved, as it was asked: " + "all of it is in the book now. " * 3])
def test_a_short_answer_that_many_tools_give_does_not_tell_whose_conversation_it_is(
    opened: Any, provider: ProviderServer, end: str
) -> None:
    """The second one's client has cleared all results but the newest, which is the same for both."""
    provider._provider.script = clerk
    gateway: InThread = opened(summarizer="same")
    view = partial(seen, gateway, provider)

    def ended(name: str, turns: int) -> list[dict[str, Any]]:
        messages = of_person(name, turns, "functions.look:{}")
        return [*messages[:-1], {**messages[-1], "content": f"{name}: {end}" if len(end) > 80 else end}]

    for n in range(2, 30, 2):
        view(of_person("ann", n, "functions.look:{}"))
    assert gateway.metrics.total("compactions_total") >= 1
    assert "ann_1," in view(ended("ann", 30))
    theirs = view([*with_cleared(ended("bob", 30), 1), {"role": "user", "content": "And what is that in all?"}])
    assert "ann" not in theirs
    mine = view([*with_cleared(ended("ann", 30), 1), {"role": "user", "content": "And what is that in all?"}])
    assert ("ann_1," in mine) == (len(end) > 80)
