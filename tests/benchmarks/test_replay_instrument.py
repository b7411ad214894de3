"""The instrument itself: each figure says what it claims to, shown on a conversation small enough to check by hand."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.replay import tokens
from benchmarks.replay.chat import identity
from benchmarks.replay.measures.cost import CACHED, UNCACHED, spent
from benchmarks.replay.replay import replay, steps
from benchmarks.replay.strategies import create
from benchmarks.replay.summarizer import OUTPUT_TOKENS, Summarizer
from loops import FIRST, RARE, SEEN, WINDOW, Made, column, figure, made, tool_loop, totals_of

from contextfold.inspector import anchors

Messages = list[dict[str, Any]]


def test_an_anchor_is_a_whole_identifier() -> None:
    """What is asked for is what an agent must repeat exactly, and a part of a longer word is not it."""
    text = (
        "see https://example.org/a/b?x=1, /opt/demo/hosts.conf:12 and src/main_test.go; mail ann@example.org 12345 "
        "ABC-123 torch.nn.Linear fooBarBaz"
    )
    wanted = {
        "https://example.org/a/b?x=1", "/opt/demo/hosts.conf", "src/main_test.go", "ann@example.org", "12345",
        "ABC-123", "torch.nn.Linear", "fooBarBaz",
    }  # fmt: skip
    assert anchors.find(text) == wanted
    assert anchors.find("请看文件config_path_name。") == {"config_path_name"}
    assert anchors.occurs("1234", "a 1234 b")
    assert not anchors.occurs("1234", "12345")
    found = anchors.surroundings("ABC-123", "close ABC-123 before some_other_name today")
    assert found == [frozenset({"close", "before", "today"})]


def test_nothing_is_lost_by_sending_everything() -> None:
    """``none`` has every needed identifier and cost 1.0, and is of no use over the window."""
    totals = totals_of(create("none", WINDOW))
    assert figure("recall", totals) == figure("hard_recall", totals) == 1
    assert figure("cost", totals) == 1
    assert figure("rewrites", totals) == figure("errors", totals) == figure("latest_user_lost", totals) == 0
    assert figure("first_user", totals) == 1
    assert totals["evicted_messages"] == 0
    assert figure("over_window", totals) > 0
    assert figure("hard_usable", totals) < 0.5


def test_a_strategy_that_drops_everything_has_nothing() -> None:
    """Only the system message is left: no identifier is found, and every view is refused."""
    totals = made(lambda messages, _: messages[:1])
    assert figure("recall", totals) == figure("hard_in_context", totals) == figure("far_usable", totals) == 0
    assert figure("invalid", totals) == 1
    assert figure("latest_user_lost", totals) == 1
    assert totals["problem: nothing but the system message"] == totals["views"]


def test_the_price_is_what_the_formula_says() -> None:
    """Each view pays a tenth for what the view before had, and 1.25 for the rest."""
    recording = tool_loop(3)
    views = [recording.before[index] for index in recording.steps]
    expected, cached = 0.0, 0
    for size in views:
        expected += CACHED * cached + UNCACHED * (size - cached)
        cached = size
    totals = totals_of(create("none", WINDOW), recording)
    assert spent(totals) == pytest.approx(expected)
    assert totals["cost_view_tokens"] == sum(views)
    assert totals["max_view_tokens"] == max(views)


def test_a_prefix_that_changes_costs_more_and_counts_as_rewritten() -> None:
    """A view whose first message changes at each turn has nothing in the cache."""

    def restless(messages: Messages, _: object) -> Messages:
        return [{"role": "user", "content": f"turn {len(messages)}"}, *messages[1:]]

    changing, steady = made(restless), totals_of(create("none", WINDOW))
    assert changing["cost_cached_tokens"] == 0
    assert changing["cost_rewrites"] == changing["views"] - 1
    assert figure("cost", changing, steady) > 2


def test_a_tail_loses_what_is_far() -> None:
    """Pins and a tail are valid and fit; what lies more than a window back is gone."""
    totals = totals_of(create("floor", WINDOW))
    assert figure("far_usable", totals) == 0
    assert figure("hard_recall", totals) < 0.7
    assert figure("invalid", totals) == figure("over_window", totals) == 0
    assert totals["evicted_messages"] > 0
    assert column("coverage").value(totals, totals) is None, "no summarizer was called"


def test_an_invalid_view_is_counted() -> None:
    """A call without its result, a result without its call, another system message: a provider refuses each."""

    def without_last_result(messages: Messages, _: object) -> Messages:
        return messages[:-1] if messages[-1]["role"] == "tool" else messages

    def without_calls(messages: Messages, _: object) -> Messages:
        return [message for message in messages if message["role"] != "assistant"]

    def other_system(messages: Messages, _: object) -> Messages:
        return [{"role": "system", "content": "You are an agent."}, *messages[1:]]

    assert made(without_last_result)["problem: call without its result"]
    assert made(without_calls)["problem: result without its call before it"]
    assert made(other_system)["problem: system message changed or not first"]
    totals = made(without_calls)
    assert figure("hard_usable", totals) == 0, "what nobody would take is of no use"


def test_a_lost_user_message_and_a_changed_one_are_counted() -> None:
    """The newest user message must be there word for word, and no one may change the caller's messages."""

    def no_users(messages: Messages, _: object) -> Messages:
        return [message for message in messages if message["role"] != "user"]

    def mutating(messages: Messages, _: object) -> Messages:
        messages[-1]["content"] += "!"
        return messages

    assert figure("latest_user_lost", made(no_users)) == 1
    assert figure("first_user", made(no_users)) == 0
    assert figure("mutated", made(mutating)) > 0
    assert figure("mutated", made(lambda messages, _: messages)) == 0


def test_an_error_is_counted_and_sends_nothing() -> None:
    """A strategy that raises, or gives something that is no message, would have stopped the agent."""

    def failing(messages: Messages, _: object) -> Messages:
        raise ValueError("no")

    totals = made(failing)
    assert figure("errors", totals) == totals["views"]
    assert figure("recall", totals) == 0
    assert figure("errors", made(lambda messages, _: ["no message"])) > 0
    assert replay(tool_loop(3), Made(failing), []).first_error == "ValueError: no"


def test_a_list_of_names_is_no_context() -> None:
    """A bare list restores the names; lines restore what was said about them."""

    def tail_with(note: str) -> Any:
        def view(messages: Messages, _: object) -> Messages:
            starts = [n for n, message in enumerate(messages) if message["role"] != "tool"]
            cut = max(n for n in starts if n <= max(2, len(messages) - 6))
            return [*messages[:2], {"role": "user", "content": note}, *messages[cut:]]

        return made(view)

    names, lines = tail_with(f"{FIRST} {RARE}"), tail_with(SEEN)
    assert figure("hard_usable", names) == figure("hard_usable", lines) == 1
    assert figure("hard_in_context", lines) == 1
    assert figure("hard_in_context", names) < 0.5


def test_coverage_tells_what_a_summarizer_saw() -> None:
    """All of a message, its beginning, or nothing of it."""

    def summarizing(shown: Any) -> dict[str, Any]:
        def view(messages: Messages, strategy: Any) -> Messages:
            if len(messages) > 20 and not strategy.summarizer.inputs:
                strategy.summarizer([part for old in messages[2:-1] if (part := shown(old))])
            return messages if len(messages) <= 20 else [*messages[:2], *messages[-3:]]

        return dict(made(view, tool_loop(8)))

    everything = summarizing(lambda message: message)
    assert everything["coverage_full"]
    assert "coverage_part" not in everything
    heads = summarizing(lambda message: {**message, "content": message["content"][:60]})
    assert heads["coverage_part"]
    assert figure("coverage", heads) < figure("coverage", everything)
    assert "coverage_full" not in summarizing(lambda message: None)


def test_a_placeholder_is_no_summary() -> None:
    """A fixed sentence in place of a summary is counted, a summary that quotes one is not."""

    def with_note(note: str) -> Any:
        def view(messages: Messages, _: object) -> Messages:
            return messages if len(messages) < 20 else [messages[0], {"role": "user", "content": note}, *messages[-3:]]

        return made(view)

    fixed = "Previous conversation was too long to summarize."
    assert figure("placeholders", with_note(fixed)) > 0
    assert figure("placeholders", with_note(fixed + FIRST * 40)) == 0


def test_the_stub_summarizer_is_small_and_deterministic() -> None:
    """It begins with the request, and says at most so much, the same every time."""
    text = "\n".join(f"line {n} speaks about component_{n % 7} and file_{n}.py" for n in range(900))
    turns = [{"role": "user", "content": "Please fix component_3"}, {"role": "assistant", "content": text}]
    first, second = Summarizer()(turns), Summarizer()(turns)
    assert first == second
    assert first.startswith("Please fix component_3")
    assert 100 < tokens.count(first) <= OUTPUT_TOKENS


def test_equal_messages_are_equal() -> None:
    """Key order, absent content and names do not make another message of one."""
    assert identity({"role": "user", "content": "a"}) == identity({"content": "a", "role": "user", "name": "x"})
    assert identity({"role": "assistant", "content": None}) == identity({"role": "assistant", "content": ""})
    assert identity({"role": "user", "content": "a"}) != identity({"role": "user", "content": "b"})


def test_contextfold_is_driven_by_its_public_contract() -> None:
    """On the loop it stays valid, within the window, and its ledger has a fate for every message."""
    recording = tool_loop(200)
    strategy = create("contextfold", 4_000)
    made = list(steps(recording, strategy))
    last, fates = made[-1], strategy.fates()
    assert last.usable
    assert any(one.rewritten for one in made)
    assert fates is not None
    assert len(fates) == last.index
    assert {"summarized", "kept"} <= set(fates)


def test_a_replay_is_the_same_twice() -> None:
    """Two replays of one conversation give the same totals."""
    assert totals_of(create("contextfold", WINDOW)) == totals_of(create("contextfold", WINDOW))
