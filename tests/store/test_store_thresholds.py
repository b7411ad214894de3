"""When a session is summarized: by tokens, by messages, and what must be new since the last time.

Upper and lower threshold, first summary from ``min_messages`` on, increments, per-user options, and the figures that
are logged. Token counts are exact here: a word is a token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from contextfold import Compactor, InputError, Policy, PolicyError
from contextfold.store import Session, SessionOptions
from contextfold.store.options import UserOptions
from contextfold.store.sql import SQLStore

FRAME = 4
"""Tokens around each message."""


def count(text: str) -> int:
    return len(text.split())


def message(tokens: int, number: int = 0) -> dict[str, str]:
    """A message of exactly so many tokens."""
    words = [f"w{number}x{n}" for n in range(tokens - FRAME)]
    return {"role": "user" if number % 2 == 0 else "assistant", "content": " ".join(words)}


def messages(amount: int, tokens: int, start: int = 0) -> list[dict[str, str]]:
    return [message(tokens, number) for number in range(start, start + amount)]


@pytest.fixture
def opened(sqlite_store: SQLStore) -> Callable[..., Session]:
    """Sessions with the default thresholds given by name: a policy with a trigger of its own would set them aside."""

    def make(window: int = 128_000, policy: Policy | None = None, **options: Any) -> Session:
        options = {"upper_threshold": 50_000, "lower_threshold": 30_000, **options}
        compactor = Compactor(window=window, count_text=count, policy=policy or Policy(trigger=("fraction", 0.8)))
        return compactor.session("thread", sqlite_store, options=options)

    return make


def made(session: Session) -> int:
    return len(session.summaries())


def view_tokens(session: Session) -> int:
    return sum(FRAME + count(entry["content"]) for entry in session.view())


# ---- thresholds ----


def test_below_the_upper_threshold_nothing_is_summarized(opened: Callable[..., Session]) -> None:
    session = opened()
    session.append(messages(50, 1_000))  # 50,000 exactly: passed is more than reached
    assert session.view() == messages(50, 1_000)
    assert made(session) == 0


def test_after_a_summary_messages_and_summary_are_below_the_lower_threshold(opened: Callable[..., Session]) -> None:
    session = opened()
    session.append([*messages(50, 1_000), message(5, 50)])
    assert view_tokens(session) < 30_000
    (summary,) = session.summaries()
    assert summary.reason == "tokens:50000"
    assert summary.tokens_before == 50_005
    assert summary.tokens_after < 30_000


def test_what_is_sent_besides_the_messages_does_not_count_against_the_thresholds(
    opened: Callable[..., Session],
) -> None:
    session = opened()
    session.append(messages(50, 990))
    session.view(system="word " * 5_000)
    assert made(session) == 0
    session.append(messages(2, 990, 50))
    session.view(system="word " * 5_000)
    (summary,) = session.summaries()
    assert summary.tokens_before == 52 * 990 + 5_000
    assert summary.tokens_after < 30_000 + 5_000


def test_the_compactors_own_trigger_is_asked_first_whatever_the_options_say(opened: Callable[..., Session]) -> None:
    """Five messages that fill the window are compacted, though 20 are wanted for a first summary."""
    session = opened(window=10_000)
    session.append(messages(5, 1_700))
    session.view()
    (summary,) = session.summaries()
    assert summary.reason == "fraction:0.8"


@pytest.mark.strict
def test_thresholds_of_none_leave_it_to_the_compactor(opened: Callable[..., Session]) -> None:
    session = opened(upper_threshold=None, lower_threshold=None)
    session.append(messages(100, 1_000))
    assert len(session.view()) == 100
    session.append(messages(3, 1_000, 100))
    session.view()
    assert [summary.reason for summary in session.summaries()] == ["fraction:0.8"]


def test_optimization_that_is_off_is_off(opened: Callable[..., Session]) -> None:
    session = opened(window=10_000, enable_context_optimization=False)
    session.append(messages(40, 1_000))
    assert len(session.view()) == 40
    assert session.compact().changed


# ---- the first summary and increments ----


def test_first_summary_at_20_messages(opened: Callable[..., Session]) -> None:
    session = opened()
    session.append(messages(19, 3_000))
    assert len(session.view()) == 19
    assert made(session) == 0
    session.append([message(3_000, 19)])
    session.view()
    assert made(session) == 1


def test_an_increment_needs_ten_new_messages(opened: Callable[..., Session]) -> None:
    session = opened(lower_threshold=20_000)
    session.append(messages(40, 1_500))
    session.view()
    (first,) = session.summaries()
    new = 40 - first.covers
    for number in range(new, 9):
        session.append([message(5_000, 40 + number)])
    session.view()
    assert session.state().message_count - first.covers == 9
    assert view_tokens(session) > 50_000
    assert made(session) == 1
    session.append([message(100, 60)])
    session.view()
    assert made(session) == 2
    assert session.summaries()[1].parent_id == first.id


@pytest.mark.strict
def test_an_increment_needs_enough_that_is_new(opened: Callable[..., Session]) -> None:
    """New tokens over summary tokens have to be above ``trigger_ratio``."""
    session = opened(trigger_ratio=1.5)
    session.append(messages(51, 1_000))
    session.view()
    (first,) = session.summaries()
    assert first.tokens > 10_000

    def new_tokens() -> int:
        return sum(FRAME + count(entry["content"]) for entry in session.history()[first.covers :])

    for number in range(51, 120):
        session.append([message(2_000, number)])
        session.view()
        if made(session) == 2:
            break
        assert view_tokens(session) <= 50_000 or new_tokens() <= 1.5 * first.tokens
    assert made(session) == 2
    assert new_tokens() > 1.5 * first.tokens


# ---- 50 messages and 45,000 tokens under a window of 128,000 at a ratio of 0.6 ----

SEED = {"target_usage_ratio": 0.6, "summary_token_ratio": 0.26, "recent_token_ratio": 0.65}


def fifty_messages() -> list[dict[str, str]]:
    """A system prompt of 2,156 tokens, and 50 messages of 45,000."""
    system = {"role": "system", "content": " ".join(["rule"] * (2_156 - FRAME))}
    return [system, *messages(50, 900)]


def test_50_messages_and_45000_tokens_under_128000_at_ratio_06_stay_as_they_are(
    opened: Callable[..., Session],
) -> None:
    session = opened(**SEED)
    session.append(fifty_messages())
    assert session.view() == fifty_messages()


def test_the_log_has_the_same_figures(opened: Callable[..., Session], caplog: pytest.LogCaptureFixture) -> None:
    session = opened(**SEED)
    session.append(fifty_messages())
    with caplog.at_level(logging.INFO, logger="contextfold"):
        session.view()
    (budget,) = (record.contextfold for record in caplog.records if record.message.startswith("context_budget"))
    assert budget == {
        "event": "context_budget",
        "window": 128_000,
        "target_usage": 0.6,
        "usable": 76_800,
        "system": 2_156,
        "available": 74_644,
        "messages": 51,
        "tokens": 47_156,
        "summary_budget": 19_407,
        "recent_budget": 48_518,
    }
    lines = [record.message for record in caplog.records]
    assert any("context window: 128000, target usage: 60.0%, usable: 76800, system: 2156" in line for line in lines)
    assert any("System=2156t, Summary=0t, Recent=45000t (51/51 messages), Total=47156t" in line for line in lines)


def test_the_log_says_what_a_compaction_saved(opened: Callable[..., Session], caplog: pytest.LogCaptureFixture) -> None:
    session = opened(**SEED)
    session.append(fifty_messages())
    with caplog.at_level(logging.INFO, logger="contextfold"):
        result = session.compact()
    built = [record.contextfold for record in caplog.records if record.message.startswith("context_built")][-1]
    assert built["total"] == result.tokens_after == built["system"] + built["summary"] + built["recent"]
    assert built["reduction"] == round(1 - result.tokens_after / 47_156, 4) > 0.3
    assert built["messages"] < 51
    assert built["total_messages"] == 51


@pytest.mark.strict
def test_recent_messages_and_summary_keep_to_their_budgets(opened: Callable[..., Session]) -> None:
    """Under these ratios the summary gets at most 26 % of what is available, recent messages most of the rest."""
    session = opened(**SEED, upper_threshold=None, lower_threshold=None)
    session.append([fifty_messages()[0], *messages(150, 900)])
    session.view()
    (summary,) = session.summaries()
    assert summary.tokens_after <= 76_800
    assert summary.tokens <= 19_407
    assert view_tokens(session) - summary.tokens - 2_156 > 19_407


# ---- options of a user ----


def test_options_of_a_user_override_the_defaults(sqlite_store: SQLStore) -> None:
    """``get_optimization_config`` is a function of the user, or a mapping."""
    compactor = Compactor(window=128_000)
    configured = {"anna": {"upper_threshold": 9_000, "lower_threshold": 4_000}}

    def options(user: str, source: Any) -> SessionOptions:
        return compactor.session(
            "t", sqlite_store, options={"min_messages": 7}, user=user, get_optimization_config=source
        ).options

    for source in (configured, configured.get):
        assert options("anna", source).upper_threshold == 9_000
        assert options("anna", source).min_messages == 7
        assert options("ben", source) == SessionOptions(min_messages=7)


def test_settings_of_a_session_become_settings_of_the_policy(session: Callable[..., Session]) -> None:
    given = {**SEED, "compress_tool_output": False, "tool_output_max_tokens": 300}
    policy = session(options=given)._flow.policy
    assert (policy.budgets.usage, policy.budgets.summary, policy.budgets.recent) == (0.6, 0.26, 0.65)
    assert (policy.tool_outputs.enabled, policy.tool_outputs.limit) == (False, 300)
    assert session()._flow.policy == Policy()


def test_tokens_can_be_counted_by_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its vocabulary may be out of reach of a test, so only the choice is looked at."""
    asked: list[str] = []
    monkeypatch.setattr("contextfold.store.options.tiktoken_counter", lambda name: asked.append(name) or count)
    options = SessionOptions(token_calculation_method="tiktoken")
    assert options.count_text(None) is count
    assert asked == ["o200k_base"]
    assert options.count_text(len) is len
    assert SessionOptions().count_text(None) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"upper_threshold": 10, "lower_threshold": 10}, "lower_threshold 10 is not below upper_threshold 10"),
        ({"min_message": 3}, "min_message: there is no such option; there are: upper_threshold"),
        ({"trigger_ratio": -1}, "trigger_ratio: Input should be greater than or equal to 0 (got -1)"),
        ({"summary_token_ratio": 0.9, "recent_token_ratio": 0.9}, "at most 1 together"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(session: Callable[..., Session], wrong: Any, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        session(options=wrong)
    assert said in str(caught.value)


def test_a_source_of_user_options_that_is_none_says_so() -> None:
    with pytest.raises(PolicyError, match="must be a function or a mapping, not int"):
        UserOptions("anna", 3)  # type: ignore[arg-type]


def test_options_of_a_session_give_nothing_that_was_not_given() -> None:
    """A policy obeys what is given by name to the letter: an option for one thing does not name the others."""
    default = Policy()
    shares = SessionOptions(target_usage_ratio=0.6).policy(default)
    assert shares.budgets.usage == 0.6
    assert shares.model_fields_set == {"budgets"}
    assert not shares.has_own_trigger
    outputs = SessionOptions(compress_tool_output=True, tool_output_max_tokens=300).policy(default)
    assert (outputs.tool_outputs.enabled, outputs.tool_outputs.limit) == (True, 300)
    assert outputs.model_fields_set == {"tool_outputs"}
    own = SessionOptions(compress_tool_output=False).policy(Policy(trigger="tokens:4000", target="tokens:2000"))
    assert own.model_fields_set == {"trigger", "target", "tool_outputs"}
    assert own.has_own_trigger


@pytest.mark.parametrize("given", [5, "fast", [("upper_threshold", 9)], {7: 1}])
def test_settings_of_a_user_that_are_no_mapping_of_names_are_told(sqlite_store: SQLStore, given: Any) -> None:
    session = Compactor(window=16_000).session("t", sqlite_store, user="a", get_optimization_config=lambda user: given)
    with pytest.raises(PolicyError, match=r"get_optimization_config gave|no name of an option"):
        session.view()


class HalfAStore:
    def read_links(self, thread: Any, summary_id: int) -> Any: ...


@pytest.mark.parametrize("store", [5, object(), HalfAStore()])
def test_a_store_without_the_methods_of_one_is_refused_when_the_session_is_made(store: Any) -> None:
    with pytest.raises(InputError, match=r"store is .*has no load, .*sqlite:///FILE"):
        Compactor(window=16_000).session("t", store)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), 1e12, 366 * 24 * 3600])
def test_a_lease_that_no_one_could_take_over_is_refused(seconds: float) -> None:
    with pytest.raises(PolicyError, match="lease_seconds: Input should be"):
        SessionOptions(lease_seconds=seconds)
