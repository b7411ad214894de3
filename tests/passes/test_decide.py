"""The decision, as a table that a reader can check by eye.

A conversation is written as ``u20 a30 c10 r300``: a user message of 20 tokens, an answer of 30, a call of 10 and its
result of 300; ``s`` is a system message. Fates are one letter a message: kept, Pinned, shortened, Summarized, dropped.
A dot is a message that the record says nothing about.
"""

from __future__ import annotations

from typing import Any

import pytest

from contextfold import CannotFit, Policy, formats
from contextfold.conversation.history import History
from contextfold.messages import Message
from contextfold.passes.decide import Nothing, Plan, decide
from contextfold.passes.question import MANUAL, Question
from contextfold.policy import Limits
from contextfold.tokens import TokenCounter

LETTERS = {"kept": "k", "pinned": "P", "shortened": "s", "summarized": "S", "dropped": "d"}


class Written(TokenCounter):
    """A message is as large as its text says."""

    def message(self, message: Message) -> int:
        text = next((part.text for part in message.parts if getattr(part, "text", "")), "")
        name = message.tool_calls[0].name if message.tool_calls else text
        digits = "".join(character for character in name.split(" ")[0] if character.isdigit())
        return int(digits or 0)


def conversation(spec: str) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    for number, word in enumerate(spec.split()):
        kind, size = word[0], word[1:]
        if kind == "c":
            call = {"id": f"call{number}", "type": "function", "function": {"name": f"t{size}", "arguments": "{}"}}
            wire.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "r":
            waiting = next(m["tool_calls"][0]["id"] for m in reversed(wire) if "tool_calls" in m)
            wire.append({"role": "tool", "tool_call_id": waiting, "content": f"{size} r{number}"})
        else:
            role = {"s": "system", "u": "user", "a": "assistant"}[kind]
            wire.append({"role": role, "content": f"{size} {kind}{number}"})
    return wire


def question(
    spec: str, *, window: int = 1_000, forced: str | None = None, overhead: int = 0, **policy: Any
) -> Question:
    history = History(formats.get("openai-chat"), Written())
    history.extend(conversation(spec))
    made = Policy(**{"minimum_gain": 0, "first_user": False, "recent_users": 0, **policy})
    return Question(
        history=history,
        record=None,
        view_tokens=sum(history.sizes) + overhead,
        view_messages=len(history.wire),
        overhead={"tools": overhead} if overhead else {},
        limits=Limits.of(made, window),
        policy=made,
        forced=forced,
    )


def fates(plan: Plan | Nothing, length: int) -> str:
    assert isinstance(plan, Plan), plan
    told = "".join(LETTERS[fate] for fate, _ in plan.fates)
    return told + "." * (length - len(told))


TOKENS_800 = {"trigger": ("tokens", 800), "target": ("tokens", 400)}
TABLE: list[tuple[str, str, dict[str, Any], str]] = [
    ("what is old leaves, the newest turn stays", "u400 a100 u200 a100 u20", TOKENS_800, "SSSS."),
    ("a tail of so many tokens stays", "u400 a100 u200 a100 u20", {**TOKENS_800, "keep": ("tokens", 110)}, "SSS.."),
    ("a tail of so many messages stays", "u400 a50 u50 a300 u20", {**TOKENS_800, "keep": ("messages", 1)}, "SSSS."),
    ("instructions stay wherever they stand", "s50 u400 a200 s40 u100 a20 u20", TOKENS_800, "PSSPS.."),
    ("the first request stays by default", "u30 a700 u60 a20 u20", {**TOKENS_800, "first_user": True}, "PSS.."),
    (
        "a call never parts from its result",
        "u10 c10 r700 c10 r60 u20",
        {**TOKENS_800, "keep": ("tokens", 80)},
        "SSS...",
    ),
    ("a call that waits is never evicted", "u400 a400 u20 c10", TOKENS_800, "SS.."),
    ("a pinned tool's result stays", "u10 c50 r90 a700 u20", {**TOKENS_800, "pins": {"tools": ["t50"]}}, "SPPS."),
    ("user messages are kept before others", "u500 a300 u10 a90 u20", {**TOKENS_800, "recent_users": 0.02}, "SSPS."),
]


@pytest.mark.parametrize(("promise", "spec", "policy", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_each_message_has_the_fate_that_the_policy_promises(
    promise: str, spec: str, policy: dict[str, Any], expected: str
) -> None:
    assert fates(decide(question(spec, **policy)), len(spec.split())) == expected, promise


NOTHING = [
    ("below the trigger", "u100 a100 u20", TOKENS_800, "below the trigger"),
    (
        "a gain below the minimum",
        "u30 a30 u720 a10 u20",
        {**TOKENS_800, "target": None, "minimum_gain": 0.5},
        "minimum",
    ),
]


@pytest.mark.parametrize(("promise", "spec", "policy", "reason"), NOTHING, ids=[row[0] for row in NOTHING])
def test_a_pass_that_is_not_due_or_not_worth_it_is_refused_with_its_reason(
    promise: str, spec: str, policy: dict[str, Any], reason: str
) -> None:
    said = decide(question(spec, **policy))
    assert isinstance(said, Nothing), promise
    assert reason in said.reason
    assert said.cause == "not_due"


def test_a_floor_above_an_explicit_target_is_named_item_by_item() -> None:
    with pytest.raises(CannotFit) as caught:
        decide(question("s300 a400 u250", overhead=60, **TOKENS_800))
    assert caught.value.floor["tools"] == 60
    assert caught.value.floor["system or developer message"] == 300
    assert caught.value.floor["newest user message"] == 250


def test_a_caller_who_asks_gets_a_pass_below_the_trigger() -> None:
    plan = decide(question("u100 a100 u20 a20 u20", forced=MANUAL, **TOKENS_800))
    assert fates(plan, 5) == "SSS.."


@pytest.mark.parametrize("newest", range(300, 650, 25))
def test_what_must_stay_never_makes_what_may_stay_grow(newest: int) -> None:
    """The target was lowered to a caller's 400 tokens: above it the summary gets no more than just below it."""

    def rest(size: int) -> int:
        asked = question(f"u500 a400 u{size}", window=4_000, trigger=("tokens", 900))
        lowered = {"target": 400, "comfortable": 400, "most": 400}
        limits = Limits(**{name: lowered.get(name, getattr(asked.limits, name)) for name in Limits.__slots__})
        plan = decide(Question(**{**vars(asked), "limits": limits}))
        assert isinstance(plan, Plan), plan
        return plan.target - sum(plan.floor.values())

    assert rest(newest + 25) <= rest(newest)


def test_deciding_twice_decides_the_same() -> None:
    asked = question("s50 u400 a200 s40 u100 a20 u20", **TOKENS_800)
    assert decide(asked) == decide(asked)
