"""The gate and the breaker that a process shares, and who shares them."""

from __future__ import annotations

import gc

from contextfold.summary.models import endpoint
from contextfold.summary.models.endpoint import Endpoint


def test_no_more_than_allowed_are_let_in_and_whoever_leaves_makes_room() -> None:
    gate = Endpoint("m")
    assert [gate.enter(2), gate.enter(2), gate.enter(2)] == [True, True, False]
    assert gate.enter(3), "each caller has a limit of its own on the same count"
    gate.leave()
    gate.leave()
    assert gate.enter(2)


def test_failures_in_a_row_open_the_breaker_for_a_while() -> None:
    breaker = Endpoint("m")
    assert [breaker.failed(at, failures=3, seconds=60) for at in (0, 1, 2)] == [False, False, True]
    assert not breaker.allows(61)
    assert breaker.open_seconds(32) == 30
    assert breaker.allows(62)


def test_a_success_in_between_starts_the_count_again() -> None:
    breaker = Endpoint("m")
    breaker.failed(0, failures=2, seconds=60)
    breaker.succeeded()
    assert not breaker.failed(1, failures=2, seconds=60)
    assert breaker.allows(1)
    assert breaker.open_seconds(1) == 0


def test_one_probe_decides_when_the_time_is_up() -> None:
    breaker = Endpoint("m")
    breaker.failed(0, failures=1, seconds=10)
    assert [breaker.allows(11), breaker.allows(11)] == [True, False]
    assert breaker.failed(12, failures=1, seconds=10), "the probe failed: open again"
    assert not breaker.allows(21)
    assert breaker.allows(22)
    breaker.abandoned()
    assert breaker.allows(22), "a probe that was cancelled says nothing"
    breaker.succeeded()
    assert [breaker.allows(23), breaker.allows(23)] == [True, True]


def test_failures_of_requests_already_under_way_do_not_prolong_it() -> None:
    breaker = Endpoint("m")
    assert breaker.failed(0, failures=1, seconds=10)
    assert not breaker.failed(9, failures=1, seconds=10)
    assert breaker.allows(11)


def test_a_breaker_that_is_switched_off_never_opens() -> None:
    breaker = Endpoint("m")
    assert not any(breaker.failed(0, failures=None, seconds=10) for _ in range(50))
    assert breaker.allows(0)


def test_the_same_name_at_the_same_place_is_one_endpoint() -> None:
    assert endpoint.named("openai:a", "here") is endpoint.named("openai:a", "here")
    assert endpoint.named("openai:a", "here") is not endpoint.named("openai:a", "there")
    assert endpoint.named("openai:a", "here") is not endpoint.named("openai:b", "here")


class Model:
    def complete(self, prompt: str) -> str:
        return prompt


def test_the_same_object_is_one_endpoint_as_long_as_somebody_holds_it() -> None:
    model, other = Model(), Model()
    held = endpoint.of_object("m", model.complete)
    assert endpoint.of_object("m", model.complete) is held
    assert endpoint.of_object("m", other.complete) is not held
    mark = id(held)
    held.failed(0, failures=1, seconds=99)
    del held
    gc.collect()
    fresh = endpoint.of_object("m", model.complete)
    assert fresh.allows(0), mark
