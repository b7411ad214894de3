"""Policy: every way to write a size, every combination of triggers, and errors that name field, value and remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contextfold import Compactor, settings
from contextfold.errors import PolicyError, plain_number, whole_number
from contextfold.limits import Limits
from contextfold.policy import Budgets, Clause, Policy, Size, parse_size, parse_trigger, start_of
from contextfold.store.retention import Retention
from contextfold.summary.options import SummaryOptions


@pytest.mark.parametrize(
    "written",
    [("fraction", 0.8), ["fraction", 0.8], {"fraction": 0.8}, {"type": "fraction", "value": 0.8}, "fraction:0.8"],
)
def test_a_size_can_be_written_in_five_ways(written: Any) -> None:
    assert parse_size(written) == Size("fraction", 0.8)


@given(st.sampled_from(["tokens", "messages"]), st.integers(1, 10**9))
def test_a_size_survives_its_own_text(unit: Any, value: int) -> None:
    size = Size(unit, value)
    assert parse_size(f"{unit}:{value}") == size


class Profiled:
    model_name = "mine"

    def __init__(self, tokens: Any) -> None:
        self.profile = {"max_input_tokens": tokens}


TALK = [{"role": "user", "content": "hello"}]

TAKES_NUMBERS: list[tuple[Callable[[Any], Any], float]] = [
    (lambda number: Policy(trigger=("tokens", number)).trigger[0].sizes[0].value, 4_000),
    (lambda number: Policy(trigger={"messages": number}).trigger[0].sizes[0].value, 40),
    (lambda number: Policy(target=("fraction", number)).target.value, 0.25),  # type: ignore[union-attr]
    (lambda number: Policy(keep={"type": "tokens", "value": number}).keep.value, 4_000),  # type: ignore[union-attr]
    (lambda number: Policy(background=number).background, 0.5),
    (lambda number: Policy(minimum_gain=number).minimum_gain, 0.25),
    (lambda number: Policy(answer_reserve=number).answer_reserve, 100),
    (lambda number: SummaryOptions(total_seconds=number).total_seconds, 8.0),
    (lambda number: Budgets(usage=number).usage, 0.5),
    (lambda number: Compactor(window=number).window.tokens, 8_000),
    (lambda number: Compactor(remembered=number, window=3).window.tokens, 3),
    (lambda number: Compactor(model=Profiled(number)).window.tokens, 9_000),
    (lambda number: Compactor(count_text=lambda text: number).compact(TALK).tokens_before, 7),
    (lambda number: Retention(idle_seconds=number).idle_seconds, 60),
    (lambda number: whole_number("limit", number, 1, 100), 5),
]


@pytest.mark.parametrize(("setting", "value"), TAKES_NUMBERS)
def test_a_number_of_another_library_is_the_number_that_it_says(setting: Callable[[Any], Any], value: float) -> None:
    """A share of a window that was computed with NumPy or fractions; it is kept as one that JSON can write."""
    plain = setting(value)
    kinds: list[Any] = [np.int64, np.int32, np.uint16] if isinstance(value, int) else [np.float64, np.float32, Fraction]
    for kind in kinds:
        taken = setting(kind(value))
        assert taken == plain
        assert json.loads(json.dumps(taken)) == plain


@pytest.mark.parametrize("value", [True, np.True_, "4", None, 1j, [4], Fraction(10**400, 3), np.array([4, 5])])
def test_what_is_no_number_is_none(value: Any) -> None:
    assert plain_number(value) is None


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (("percent", 80), "unknown unit 'percent'"),
        (("fraction", 1.5), "above 0 and at most 1"),
        (("fraction", 0), "above 0"),
        (("tokens", 0), "at least 1"),
        (("messages", 2.5), "whole number"),
        (("tokens", "many"), "not a number"),
        (("tokens", True), "not a number"),
        ("tokens:many", "not a number"),
        ("80%", "is not a size"),
        (4000, "is not a size"),
        ({}, "triggers always"),
    ],
)
def test_a_wrong_trigger_says_what_is_wrong_and_where(written: Any, problem: str) -> None:
    with pytest.raises(PolicyError, match="trigger") as caught:
        Policy(trigger=written)
    assert problem in str(caught.value)


def test_sizes_in_one_mapping_must_all_hold_and_entries_of_a_list_any() -> None:
    clauses = parse_trigger([("messages", 50), {"tokens": 4000, "messages": 20}])
    both = clauses[1]
    assert both.reached(tokens=4000, messages=20, window=10_000)
    assert not both.reached(tokens=4000, messages=19, window=10_000)
    assert clauses[0] == Clause((Size("messages", 50),))
    assert str(both) == "tokens:4000 and messages:20"


@pytest.mark.parametrize("written", [[("tokens", 4000), ("messages", 50)], (("tokens", 4000), ("messages", 50))])
def test_a_list_or_tuple_of_pairs_is_several_clauses(written: Any) -> None:
    assert len(parse_trigger(written)) == 2


def test_none_means_never() -> None:
    assert Policy(trigger=None).trigger == ()
    assert Limits.of(Policy(trigger=None), 1000).trigger is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"target": ("fraction", 0.9)}, "target fraction:0.9 is not below the trigger fraction:0.8"),
        ({"keep": ("fraction", 0.8)}, "keep fraction:0.8 is not below"),
        ({"trigger": ("messages", 20), "keep": ("messages", 20)}, "keep messages:20 is not below"),
        ({"target": ("messages", 5)}, "a target is a size in tokens or a fraction"),
        ({"summary_role": "tool"}, "summary_role"),
        ({"surprise": 1}, "there is no such setting"),
        ({"budgets": {"summary": 0.9, "recent": 0.9}}, "at most 1"),
        ({"tool_arguments": {"limit": 3}}, "tool_arguments.limit"),
        ({"answer_reserve": -1}, "answer_reserve"),
    ],
)
def test_a_wrong_policy_is_refused_on_construction(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy(**fields)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "window", "problem"),
    [
        (Policy(trigger=("tokens", 4000), target=("fraction", 0.5)), 10_000, "not below the trigger of 4,000"),
        (Policy(trigger=("tokens", 40_000)), 10_000, "above the usable window of 10,000"),
        (Policy(trigger=None, target=("tokens", 20_000)), 10_000, "above the usable window"),
        (Policy(keep=("tokens", 10_000)), 10_000, "keep less"),
        (Policy(answer_reserve=10_000), 10_000, "leaves nothing"),
    ],
)
def test_what_depends_on_the_window_is_checked_with_the_window(policy: Policy, window: int, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        Limits.of(policy, window)


@given(st.integers(100, 10**7), st.integers(1, 10**7))
def test_the_default_target_is_always_below_the_trigger(window: int, trigger: int) -> None:
    """Hysteresis, whatever the trigger."""
    for policy in (Policy(), Policy(trigger=("tokens", min(trigger, window)))):
        limits = Limits.of(policy, window)
        assert limits.trigger is not None
        assert limits.target < max(limits.trigger, 2)


@given(st.integers(1000, 10**6), st.integers(100, 10**6))
def test_shrunk_limits_fit_the_smaller_window(window: int, smaller: int) -> None:
    limits = Limits.of(Policy(), window).shrunk(smaller)
    assert limits.trigger is not None
    assert limits.target < limits.trigger <= limits.window == smaller


def test_a_policy_cannot_be_changed_and_the_fifth_systems_budgets_can_be_had() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Policy().answer_reserve = 3  # type: ignore[misc]
    assert Policy(budgets=Budgets(usage=0.6, summary=0.26, recent=0.65)).budgets.recent == 0.65


@given(st.integers(1_000, 4_000_000))
def test_every_default_target_lies_below_the_default_trigger(window: int) -> None:
    limits = Limits.of(Policy(), window)
    assert limits.trigger is not None
    assert limits.carried is not None
    assert max(limits.target, limits.comfortable, limits.most) < limits.trigger <= 0.8 * window
    assert 0.6 * window - 1 <= limits.trigger
    assert limits.carried < limits.most


@given(st.integers(1_000, 2_000_000), st.integers(1_000, 2_000_000))
def test_a_larger_window_never_starts_at_a_larger_share(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert start_of(small) >= start_of(large)


@given(st.integers(1_000, 2_000_000), st.integers(0, 200_000))
def test_what_stands_beside_the_messages_moves_a_default_trigger_and_nothing_else(window: int, overhead: int) -> None:
    """A system prompt and tools are carried at each call, whenever a pass is made: they take nothing from the turns
    between two passes, as far as the window goes.
    """
    alone, policy = Limits.of(Policy(), window), Policy(trigger=("fraction", 0.7))
    beside = alone.beside(Policy(), overhead)
    assert alone.trigger is not None
    assert beside.trigger is not None
    assert alone.trigger <= beside.trigger <= max(alone.trigger, 0.8 * window + 1)
    assert replace(beside, trigger=alone.trigger, overhead=0) == alone
    assert Limits.of(policy, window).beside(policy, overhead) == Limits.of(policy, window)


def test_an_explicit_trigger_is_taken_to_the_letter_in_every_window() -> None:
    for window in (8_000, 64_000, 1_000_000):
        assert Limits.of(Policy(trigger=("fraction", 0.8)), window).trigger == int(0.8 * window)
        assert Policy(trigger=("fraction", 0.8)).has_own_trigger
        assert not Policy().has_own_trigger


@pytest.mark.parametrize("window", [32_000, 64_000, 128_000, 200_000, 400_000])
@pytest.mark.parametrize("share", [0.2, 0.4, 0.5, 0.55, 0.59, 0.65])
def test_between_a_target_that_is_given_and_the_default_trigger_is_room_for_many_calls(
    window: int, share: float
) -> None:
    """With a target just below where passes start by default, one followed the other at nearly every turn."""
    limits = Limits.of(Policy(target=("tokens", int(share * window))), window)
    alone = Limits.of(Policy(), window).trigger
    assert limits.trigger is not None
    assert alone is not None
    assert alone <= limits.trigger <= 0.8 * window
    # rounded to hundredths; of small windows all that is safe
    assert limits.trigger - limits.target + 0.005 * window + 1 >= min(10_000, 0.8 * window - limits.target)


@pytest.mark.parametrize("window", [8_000, 64_000, 200_000, 1_000_000])
@pytest.mark.parametrize("share", [0.6, 0.7, 0.79])
def test_a_target_that_the_default_trigger_is_not_above_puts_that_off_as_far_as_it_goes(
    window: int, share: float
) -> None:
    """Larger windows start earlier: a policy that serves one model would be refused for another, for a trigger that no
    one has given.
    """
    for target in (("fraction", share), ("tokens", int(share * window))):
        policy = Policy(target=target)
        limits = Limits.of(policy, window)
        assert limits.trigger == int(0.8 * window) > limits.target
        assert limits.beside(policy, window // 10).trigger == limits.trigger
        (clause,) = policy.clauses(window, window // 10)
        assert clause.sizes == (Size("fraction", 0.8),)
    with pytest.raises(PolicyError, match="not below the trigger"):
        Limits.of(Policy(target=("tokens", int(0.8 * window))), window)


@pytest.mark.parametrize(
    "said", [{"target": ("fraction", 0.4)}, {"keep": ("fraction", 0.3)}, {"budgets": {"usage": 0.4}}]
)
def test_the_summary_has_a_size_of_its_own_only_where_the_caller_shared_out_nothing(said: dict[str, Any]) -> None:
    assert Limits.of(Policy(**said), 16_000).carried is None
    assert Limits.of(Policy(), 16_000).carried == int(0.35 * 16_000)
    assert Limits.of(Policy(budgets={"carried": 0.2}), 16_000).carried == 3_200


@given(st.integers(0, 500_000))
def test_prose_never_takes_more_than_the_summary_message_has(tokens: int) -> None:
    model, built_in = (Budgets().prose_of(tokens, built_in=free) for free in (False, True))
    assert 0 <= built_in <= model <= 0.4 * tokens
    assert Budgets(prose=0.5).prose_of(tokens, built_in=True) == tokens // 2


LIMITS: list[tuple[str, Policy, dict[str, Any]]] = [
    (
        "a target that is given is never raised",
        Policy(target=("fraction", 0.2)),
        {"target": 2_000, "comfortable": 2_000},
    ),
    ("all of the window may be a target", Policy(trigger=None, target=("tokens", 10_000)), {"target": 10_000}),
    ("a share of the window", Policy(minimum_gain=0.1), {"minimum_gain": 1_000}),
    ("the lowest clause", Policy(trigger=[("tokens", 6_000), {"tokens": 4_000, "messages": 9}]), {"trigger": 4_000}),
    (
        "what is given for users is theirs under any trigger",
        Policy(trigger=("tokens", 1_000), recent_users=0.25),
        {"recent_users": 2_500},
    ),
    ("the default one is not", Policy(trigger=("tokens", 1_000)), {"recent_users": 312}),
    (
        "a tenth below a low trigger at least",
        Policy(trigger=("tokens", 1_000), budgets={"usage": 0.8}),
        {"target": 900, "most": 850},
    ),
    ("the answer's share is not of the window", Policy(answer_reserve=2_000), {"window": 8_000, "trigger": 6_400}),
]


@pytest.mark.parametrize(("promise", "policy", "expected"), LIMITS, ids=[row[0] for row in LIMITS])
def test_a_policy_in_tokens_of_ten_thousand(promise: str, policy: Policy, expected: dict[str, int]) -> None:
    limits = Limits.of(policy, 10_000)
    assert {name: getattr(limits, name) for name in expected} == expected, promise


def test_limits_of_a_window_that_turned_out_smaller_come_down_with_it() -> None:
    limits = Limits.of(Policy(), 64_000)
    smaller = limits.shrunk(16_000)
    assert smaller.carried is not None
    assert limits.carried is not None
    assert smaller.carried == limits.carried // 4
    assert smaller.most < (smaller.trigger or 0) <= 16_000
    assert (smaller.comfortable, smaller.recent_users) == (limits.comfortable // 4, limits.recent_users // 4)
    assert Limits.of(Policy(trigger=None), 64_000).shrunk(16_000).trigger == 16_000
    fifth = Limits.of(Policy(), 1_000_000).shrunk(200_000)
    assert fifth.beside(Policy(), 120_000).trigger == fifth.trigger == 200_000


def test_who_sets_the_budget_of_recall_gets_recall_unless_it_is_switched_off() -> None:
    assert not Policy().recall.enabled
    assert Policy(recall={"budget": 0.05}).recall.enabled
    assert Policy(recall={"budget": 0.05, "enabled": False}).recall.budget == 0.05
    assert not Policy(recall={"budget": 0.05, "enabled": False}).recall.enabled
    assert not Policy(recall={}).recall.enabled
    assert not Policy(recall=Policy().recall.model_dump()).recall.enabled


@pytest.mark.parametrize("value", [0, 0.0, "off", "false", "no", 1, "true"])
def test_off_is_said_by_a_boolean_alone(value: Any) -> None:
    """A zero or a word said off and left all of it on: what it switches off with itself looks for ``False``."""
    with pytest.raises(PolicyError, match="enabled"):
        Policy(enabled=value)
    with pytest.raises(PolicyError, match="enabled"):
        settings.load(environ={}, enabled=value)
