"""A summarizer that fails again and again is asked at the next turns, and then less and less often: every question
costs its input, and the turn waits for it. The old view goes out meanwhile, and one that is well again is used.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.building import conversation

from contextfold import CompactionResult, Compactor, Policy
from effort import crossed

WINDOW = 20_000
ONCE = Policy(summary={"retries_on_failure": 0})
TURNS = 160
SUMMARY = "The invoices are late because of a queue that is never emptied. The table ledger_2019 stays as it is."


class Model:
    """Fails while ``is_down``, in one of the ways in which models do. Notes at which turns it is asked."""

    def __init__(self, fails: Callable[[], str], well_from: int = 10_000) -> None:
        self.fails = fails
        self.well_from = well_from
        self.turn = 0
        self.asked: list[int] = []

    def __call__(self, prompt: str) -> str:
        if self.turn not in self.asked:
            self.asked.append(self.turn)
        return SUMMARY if self.turn >= self.well_from else self.fails()


def down() -> str:
    raise RuntimeError("503: overloaded")


def blank() -> str:
    return " "


def longer() -> str:
    return "I go on with the task. " * 20_000


def played(model: Model, color: str, policy: Policy = ONCE) -> list[CompactionResult]:
    """All turns, up to the first that has a summary."""
    compactor, previous, found = Compactor(window=WINDOW, summarizer=model, policy=policy), None, []
    wire: list[dict[str, Any]] = conversation(TURNS, words=60)
    for length in range(2, len(wire) + 1, 2):
        model.turn = length // 2
        if color == "async":
            out = asyncio.run(compactor.acompact(wire[:length], previous))
        else:
            out = compactor.compact(wire[:length], previous)
        for thread in threading.enumerate():
            if thread.name == "contextfold-background":
                thread.join(10)
        previous = out.compaction
        found.append(out)
        if out.changed:
            break
    return found


@crossed(fails=[down, blank, longer], color=["sync", "async"])
def test_a_model_that_fails_is_asked_less_and_less_often(color: str, fails: Callable[[], str]) -> None:
    model = Model(fails)
    found = played(model, color)
    first, *rest = model.asked
    assert len(found) - first >= 20  # turns with a view above the trigger
    assert rest[0] == first + 1  # most failures pass
    assert len(model.asked) <= 10
    assert not found[-1].changed
    assert found[-1].messages == conversation(TURNS, words=60)[: len(found[-1].messages)]


@pytest.mark.parametrize("fails", [down, blank, longer])
def test_one_that_fails_beside_the_conversation_is_asked_less_and_less_often(fails: Callable[[], str]) -> None:
    model = Model(fails)
    found = played(model, "sync", Policy(background=True, summary={"retries_on_failure": 0}))
    assert len(found) - model.asked[0] >= 20
    assert 3 < len(model.asked) <= 12


@pytest.mark.parametrize("color", ["sync", "async"])
def test_one_that_is_well_again_is_used(color: str) -> None:
    first = Model(down)
    played(first, color)
    model = Model(down, well_from=first.asked[5] + 1)
    found = played(model, color)
    assert found[-1].changed
    assert SUMMARY[:40] in str(found[-1].messages)
    assert len(found) == first.asked[6]


def test_what_is_asked_for_by_name_is_done_at_once() -> None:
    model = Model(down)
    compactor, wire = Compactor(window=WINDOW, summarizer=model, policy=ONCE), conversation(TURNS, words=60)
    for length in range(2, len(wire) - 3, 2):
        model.turn = length // 2
        compactor.compact(wire[:length])
    model.turn, model.well_from = TURNS, TURNS
    assert not compactor.compact(wire[:-2]).changed  # it rests
    assert compactor.compact(wire, force=True).changed


class Down(Exception):
    status_code = 503


@pytest.mark.parametrize("fails", [down, blank])
def test_a_forced_pass_that_fails_leaves_the_summary_that_is_paid_for_and_not_in_force(
    fails: Callable[[], str],
) -> None:
    model, wire = Model(fails, well_from=1), conversation(TURNS, words=60)
    compactor = Compactor(window=WINDOW, summarizer=model, policy=ONCE)

    def send(view: list[Any]) -> Any:
        raise Down("the provider is down")

    def asked_in(turn: int, wire: list[dict[str, Any]]) -> bool:
        model.turn = turn
        with pytest.raises(Down):
            compactor.call(send, wire)
        return turn in model.asked

    assert asked_in(1, wire)
    assert not asked_in(2, wire)
    model.turn = 0
    assert not compactor.compact(wire, force=True, instructions="Name the files.").changed
    assert 0 in model.asked
    assert not asked_in(3, conversation(TURNS + 1, words=60))
