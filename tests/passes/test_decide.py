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
from contextfold.limits import Limits
from contextfold.messages import Message
from contextfold.passes.decide import Nothing, Plan, decide
from contextfold.passes.question import MANUAL, Question
from contextfold.tokens import TokenCounter

NOT_GIVEN = object()
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
    given = {"minimum_gain": 0, "first_user": False, "recent_users": 0, **policy}
    made = Policy(**{name: value for name, value in given.items() if value is not NOT_GIVEN})
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
KEEP_5: dict[str, Any] = {"trigger": ("tokens", 300), "keep": ("messages", 5)}
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
    (
        "a reminder behind the newest results is not taken for the newest turn",
        "u10 c10 r700 c10 r200 s20",
        {**TOKENS_800, "keep": ("messages", 1)},
        "PSS...",
    ),
    ("a call that waits is never evicted", "u400 a400 u20 c10", TOKENS_800, "SS.."),
    ("a pinned tool's result stays", "u10 c50 r90 a700 u20", {**TOKENS_800, "pins": {"tools": ["t50"]}}, "SPPS."),
    ("a number to keep is kept above a small trigger", "u400 a90 u90 a90 u90 a90 u20", KEEP_5, "SS....."),
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


@pytest.mark.parametrize("window", [1_000, 16_000, 200_000, 1_000_000])
def test_a_trigger_that_is_given_fires_in_every_window(window: int) -> None:
    """What a pass must free is ours to say under the default trigger alone, and the caller's with a number."""
    spec, given = "u300 a300 u90 a90 u30", {"trigger": ("tokens", 800), "minimum_gain": NOT_GIVEN}
    assert isinstance(decide(question(spec, window=window, **given)), Plan)
    of_the_window = decide(question(spec, window=1_000_000, **{**given, "minimum_gain": 0.05}))
    assert isinstance(of_the_window, Nothing)
    assert "less than the minimum of 50,000" in of_the_window.reason


def test_above_what_keep_names_the_default_target_gives_way_and_an_explicit_one_does_not() -> None:
    spec = "u400 a90 u90 a90 u90 a90 u20"
    kept = decide(question(spec, trigger=("tokens", 300), keep=("messages", 5), minimum_gain=NOT_GIVEN))
    assert fates(kept, 7) == "SS....."
    assert isinstance(kept, Plan)
    assert kept.above_trigger
    promised = question(spec, trigger=("tokens", 800), target=("tokens", 400), keep=("messages", 5))
    assert fates(decide(promised), 7) == "SSSS..."
    windowed = question(spec, window=500, trigger=("tokens", 300), keep=("messages", 5), minimum_gain=NOT_GIVEN)
    assert fates(decide(windowed), 7) == "SSS....", "and the window bounds it"


OUTPUTS = "u20 c10 r400 c10 r200 c10 r30 a30 u20"


@pytest.mark.parametrize("is_free", [True, False])
def test_outputs_compressed_by_name_spare_the_summary_where_that_is_enough(is_free: bool) -> None:
    """All that are over the limit outside of the tail, not only as many as it takes; the others stay."""

    def asked(**policy: Any) -> Question:
        made = question(OUTPUTS, trigger=("tokens", 700), target=("tokens", 450), keep=("messages", 2), **policy)
        return Question(**{**vars(made), "summary_is_free": is_free})

    class Halves(Written):
        """What a tier made of a message has a tenth of its tokens."""

        def message(self, message: Message) -> int:
            size = super().message(message)
            return size // 10 if any(getattr(part, "edited", False) for part in message.parts) else size

    by_name = asked(tool_outputs={"limit": 50}, evidence=False)
    by_name.history.counter = Halves()
    long = " ".join(f"line {n} of the log says that all is well." for n in range(200))
    for n in (2, 4):
        entry = by_name.history.wire[n]
        by_name.history.wire[n] = {**entry, "content": f"{entry['content']} {long}"}
    by_name.history.refresh()
    plan = decide(by_name)
    assert isinstance(plan, Plan)
    assert (plan.makes_summary, plan.evicted) == (False, ())
    assert [edit.index for edit in plan.edits] == [2, 4]
    assert {edit.tier for edit in plan.edits} == {"tool_outputs"}
