"""What mending adds to a view is known before a pass decides what stays, so that the pass meets its target."""

from __future__ import annotations

import random
from typing import Any

import pytest

from contextfold import Compactor
from effort import examples


def calls(ids: list[str]) -> list[dict[str, Any]]:
    found = [{"id": id, "type": "function", "function": {"name": "run", "arguments": '{"n": 1}'}} for id in ids]
    return [{"role": "assistant", "content": None, "tool_calls": found}]


def results(ids: list[str]) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": id, "content": "ok"} for id in ids]


@pytest.mark.parametrize("kind", ["interrupted", "half answered, late", "one id", "without their calls"])
def test_a_small_window_holds_many_calls_or_results_that_have_no_partner(kind: str) -> None:
    for seed in range(examples(40)):
        dice = random.Random(seed)
        ids = [f"call_{n}" for n in range(dice.randrange(20, 40))]
        stop = {"role": "user", "content": "Stop. " * dice.randrange(1, 100)}
        newest = {
            "interrupted": [*calls(ids), stop],
            "half answered, late": [*calls(ids), stop, *results(ids[::2])],
            "one id": [*calls(["call"] * len(ids)), stop],
            "without their calls": [{"role": "assistant", "content": "It ran."}, *results(ids), stop],
        }
        history: list[dict[str, Any]] = [
            {"role": "system", "content": "You help. " * dice.randrange(1, 60)},
            {"role": "user", "content": "Do it. " * dice.randrange(1, 40)},
        ]
        for n in range(dice.randrange(5, 40)):
            said = " ".join(f"w{dice.randrange(999)}" for _ in range(dice.randrange(10, 200)))
            history += [{"role": "assistant", "content": said}, {"role": "user", "content": f"next {n}"}]
        out = Compactor(window=2_000).compact([*history, *newest[kind]])
        assert out.tokens_after <= 2_000
