"""``summarizer="same"`` in the money model: a summary behind a cached view costs what such a request costs."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.replay import strategies, tokens
from benchmarks.replay.chat import Message
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measures.cost import CACHED, UNCACHED, Cost, parts
from benchmarks.replay.measures.money import LISTS, Call, Money, billionths
from benchmarks.replay.measures.summaries import Summaries
from benchmarks.replay.replay import replay
from benchmarks.replay.strategies.contextfold import Same
from benchmarks.replay.summarizer import Summarizer

WINDOW = 6_000


def talk(words: int, turns: int = 80) -> Conversation:
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for n in range(turns):
        messages.append({"role": "user", "content": f"Please look at module_{n:03}.py and tell me what it sets."})
        said = " ".join(f"It sets limit_{n}_{k} for the rows." for k in range(words // 8))
        messages.append({"role": "assistant", "content": f"module_{n:03}.py is read. {said}"})
    return Conversation("talk#0", "talk", tuple(messages))


class Watched(Same):
    """Notes what was sent before each summary, apart from what the stub finds out by itself."""

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self.before: list[int] = []

    def _ask(self, messages: list[Message], whole: bool, answer_tokens: int) -> str:
        assert whole
        assert messages[: len(self._sent)] == self._sent
        self.before.append(sum(map(tokens.message_tokens, self._sent)))
        return super()._ask(messages, whole, answer_tokens)


def test_a_summary_behind_the_view_reads_the_view_of_the_last_request_from_the_cache() -> None:
    strategy = Watched(WINDOW)
    found = replay(talk(80), strategy, [Cost, Money, Summaries])
    totals, asked = found.totals, strategy.summarizer
    assert found.first_error == ""
    assert len(asked.cached) == totals["summary_calls"] >= 2
    assert asked.cached == strategy.before
    assert totals["cost_summary_cached"] == sum(asked.cached) > 0.8 * sum(asked.sizes)
    assert parts(totals)["summarizer input"] == pytest.approx(
        CACHED * sum(asked.cached) + UNCACHED * (sum(asked.sizes) - sum(asked.cached))
    )
    assert totals["coverage_full"] > 0
    assert "coverage_none" not in totals
    for prices in LISTS:
        calls = [Call(size, part, size - part, 0) for size, part in zip(asked.sizes, asked.cached, strict=True)]
        paid = sum(billionths(prices, call) for call in calls)
        assert paid < 0.5 * sum(billionths(prices, Call(size, 0, 0, 0)) for size in asked.sizes)


def test_it_costs_less_than_a_summarizer_that_reads_all_that_leaves_once_more() -> None:
    def summarizer_input(name: str) -> float:
        totals = replay(talk(80), strategies.create(name, WINDOW), [Cost]).totals
        return parts(totals)["summarizer input"]

    assert 0 < summarizer_input("contextfold_same") < 0.6 * summarizer_input("contextfold_given")


def test_where_no_instruction_fits_behind_the_view_the_input_has_its_full_price() -> None:
    strategy: Any = strategies.create("contextfold_same", WINDOW)
    totals = replay(talk(1_000, 8), strategy, [Cost]).totals
    assert totals["cost_summary_input"] > 0
    assert totals["cost_summary_cached"] < 0.5 * totals["cost_summary_input"]


def test_nothing_behind_the_first_change_of_a_view_is_cached() -> None:
    messages: list[Message] = [{"role": "user", "content": f"This is part {n} of it all."} for n in range(6)]
    stub = Summarizer()
    changed = [*messages[:2], {"role": "user", "content": "Another one."}, *messages[3:]]
    stub.behind(messages, {"role": "user", "content": "Pause."}, changed, 100)
    assert stub.cached == [sum(map(tokens.message_tokens, messages[:2]))]
    assert stub.sizes[0] > sum(map(tokens.message_tokens, messages))
