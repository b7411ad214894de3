"""Settings from environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextfold.errors import PolicyError, StillTooLong
from contextfold.policy import Policy
from contextfold.settings import load
from contextfold.testing import ProviderError


def test_every_variable_has_its_effect() -> None:
    settings = load(
        environ={
            "DYNAMIC_SUMMARY_ENABLED": "true",
            "SUMMARY_MESSAGE_LIMIT": "40",
            "SUMMARY_MAX_CONTEXT_TOKENS": "60_000",
            "SUMMARY_KEEP_LAST_N": "6",
            "SUMMARY_TARGET_TOKENS": "800",
            "SUMMARY_BISECT_ENABLED": "on",
            "SUMMARY_BISECT_MAX_DEPTH": "4",
            "SUMMARY_BISECT_MIN_MESSAGES": "3",
            "SUMMARY_RETRY_ON_CONTEXT_OVERFLOW": "no",
            "SUMMARY_MERGE_TARGET_TOKENS": "500",
        }
    )
    policy, summary = settings.policy, settings.policy.summary
    assert [str(clause) for clause in policy.trigger] == ["tokens:60000", "messages:40"]
    assert str(policy.keep) == "messages:6"
    assert (summary.max_tokens, summary.merge_max_tokens) == (800, 500)
    assert (summary.max_depth, summary.min_messages) == (4, 3)
    assert settings.enabled
    assert not policy.resend_after_overflow
    assert settings.sources["keep"] == "SUMMARY_KEEP_LAST_N"


def test_nothing_set_changes_nothing() -> None:
    empty = load(environ={"SUMMARY_KEEP_LAST_N": " ", "SUMMARY_MESSAGE_LIMIT": "", "UNRELATED": "x"})
    assert empty == load(environ={})
    assert empty.policy == Policy()
    assert empty.enabled


def test_switched_off_means_never() -> None:
    settings = load(environ={"DYNAMIC_SUMMARY_ENABLED": "0", "SUMMARY_MESSAGE_LIMIT": "4"})
    assert not settings.enabled
    assert settings.policy.trigger == ()
    history = [{"role": "user", "content": "word " * 50_000}] * 9
    assert not settings.compactor(window=1_000_000).compact(history).changed


def test_without_bisection_nothing_is_halved() -> None:
    off = {"SUMMARY_BISECT_ENABLED": "false", "SUMMARY_BISECT_MAX_DEPTH": "4"}
    assert load(environ=off).policy.summary.max_depth == 0
    assert load(environ={"SUMMARY_BISECT_MAX_DEPTH": "0"}).policy.summary.max_depth == 0


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("SUMMARY_MESSAGE_LIMIT", "many", "a whole number of at least 1"),
        ("SUMMARY_MESSAGE_LIMIT", "0", "a whole number of at least 1"),
        ("SUMMARY_KEEP_LAST_N", "-3", "a whole number of at least 1"),
        ("SUMMARY_BISECT_MAX_DEPTH", "-1", "a whole number of at least 0"),
        ("SUMMARY_BISECT_MAX_DEPTH", "2.5", "a whole number of at least 0"),
        ("DYNAMIC_SUMMARY_ENABLED", "maybe", "one of 1, true, yes, on, 0, false, no, off"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_variable(name: str, value: str, allowed: str) -> None:
    with pytest.raises(PolicyError, match=f"{name} is '{value}': it must be {allowed}"):
        load(environ={name: value})


@pytest.mark.parametrize("name", ["SUMMARY_KEEP_LAST_N", "DYNAMIC_SUMMARY_ENABLED", "SUMMARY_MAX_CONTEXT_TOKENS"])
@pytest.mark.parametrize("value", ["9" * 5_000, "x" * 100_000])
def test_of_a_long_value_only_the_beginning_is_told(name: str, value: str) -> None:
    with pytest.raises(PolicyError, match=f"{name} is '{value[:100]}") as caught:
        load(environ={name: value})
    assert len(str(caught.value)) < 500


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUMMARY_KEEP_LAST_N", "11")
    assert str(load().policy.keep) == "messages:11"
    assert load(environ={}).policy.keep is None


def test_a_refused_request_is_sent_once_where_resending_is_switched_off() -> None:
    sent: list[int] = []

    def send(view: list[dict[str, str]]) -> str:
        sent.append(len(view))
        raise ProviderError("prompt is too long: 90000 tokens > 60000 maximum")

    history = [{"role": "user", "content": f"turn {n} " + "word " * 200} for n in range(60)]
    for value, times in (("false", 1), ("true", 2)):
        sent.clear()
        compactor = load(environ={"SUMMARY_RETRY_ON_CONTEXT_OVERFLOW": value}).compactor(window=200_000)
        with pytest.raises((ProviderError, StillTooLong)):
            compactor.call(send, history)
        assert len(sent) == times


@pytest.mark.parametrize("with_file", [False, True])
@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        ({"SUMMARY_TARGET_TOKENS": "10"}, r"^SUMMARY_TARGET_TOKENS: summary\.max_tokens: .* at least 50"),
        ({"SUMMARY_MERGE_TARGET_TOKENS": "1"}, r"^SUMMARY_MERGE_TARGET_TOKENS: summary\.merge_max_tokens: "),
        (
            {"SUMMARY_MESSAGE_LIMIT": "10", "SUMMARY_KEEP_LAST_N": "20"},
            r"^SUMMARY_KEEP_LAST_N and SUMMARY_MESSAGE_LIMIT: keep messages:20 is not below the trigger",
        ),
    ],
)
def test_what_a_policy_refuses_is_blamed_on_the_variable(
    tmp_path: Path, environ: dict[str, str], problem: str, with_file: bool
) -> None:
    """Also where a file sets something else in the same section."""
    file = tmp_path / "settings.yaml"
    file.write_text("summary:\n  max_depth: 3\n")
    with pytest.raises(PolicyError, match=problem):
        load(file if with_file else None, environ=environ)


def test_a_variable_and_a_line_that_do_not_go_together_are_both_named(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("first_user: true\nkeep: messages:20\n")
    with pytest.raises(PolicyError, match=r"settings\.yaml, line 2 and SUMMARY_MESSAGE_LIMIT: keep messages:20 is not"):
        load(file, environ={"SUMMARY_MESSAGE_LIMIT": "9"})


def test_sources_name_the_variable_that_decides() -> None:
    depth = {"SUMMARY_BISECT_MAX_DEPTH": "4"}
    assert load(environ={**depth, "SUMMARY_BISECT_ENABLED": "1"}).sources["summary.max_depth"] == next(iter(depth))
    assert load(environ={"SUMMARY_BISECT_ENABLED": "1"}).sources == {}
    off = load(environ={**depth, "SUMMARY_BISECT_ENABLED": "0"})
    assert off.sources["summary.max_depth"] == "SUMMARY_BISECT_ENABLED"
    assert load(environ={}, keep="messages:3").sources == {"keep": "the argument keep"}


ODD = ["-1", "0", "abc", "1e3", "5000.0", "TRUE", "½", "1,000", "none"]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "name",
    [
        "SUMMARY_MESSAGE_LIMIT",
        "SUMMARY_MAX_CONTEXT_TOKENS",
        "SUMMARY_KEEP_LAST_N",
        "SUMMARY_TARGET_TOKENS",
        "SUMMARY_MERGE_TARGET_TOKENS",
        "SUMMARY_BISECT_MIN_MESSAGES",
    ],
)
def test_no_odd_value_is_taken_for_a_number(name: str, value: str) -> None:
    with pytest.raises(PolicyError, match=f"{name} is '{value}': it must be a whole number of at least 1"):
        load(environ={name: value})


@pytest.mark.parametrize(
    "name", ["DYNAMIC_SUMMARY_ENABLED", "SUMMARY_BISECT_ENABLED", "SUMMARY_RETRY_ON_CONTEXT_OVERFLOW"]
)
def test_switches_know_the_usual_words_in_any_case(name: str) -> None:
    same = [load(environ={name: value}) for value in ("1", "true", "TRUE", "Yes", " on ")]
    other = [load(environ={name: value}) for value in ("0", "false", "FALSE", "No", "off")]
    assert all((one.policy, one.enabled) == (same[0].policy, same[0].enabled) for one in same)
    assert all((one.policy, one.enabled) == (other[0].policy, other[0].enabled) for one in other)
    assert (same[0].policy, same[0].enabled) != (other[0].policy, other[0].enabled)
    with pytest.raises(PolicyError, match=f"{name} is '-1': it must be one of 1, true"):
        load(environ={name: "-1"})
