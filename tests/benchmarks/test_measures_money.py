"""Money: every call costs what the price list says, and sums are exact."""

from __future__ import annotations

from decimal import Decimal

import pytest
from benchmarks.replay import tokens
from benchmarks.replay.chat import Message
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measure import added
from benchmarks.replay.measures.money import BILLIONTHS, LISTS, Call, Money, PriceList, billionths, described
from benchmarks.replay.replay import replay
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.strategies.none import Everything
from genai_prices import Usage, calc_price
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(autouse=True)
def _estimate() -> None:
    tokens.use(tokens.ESTIMATE)


class Summarizing(Strategy):
    def view(self, messages: list[Message]) -> list[Message]:
        return [{"role": "user", "content": self.summarizer(messages)}, messages[-1]]


MESSAGES: tuple[Message, ...] = tuple(
    {"role": role, "content": f"Message {n} of the conversation says something about part {n}."}
    for n in range(6)
    for role in ("user", "assistant")
)
TALK = Conversation("talk#0", "talk", MESSAGES)


@pytest.mark.parametrize("prices", LISTS, ids=lambda prices: prices.key)
@pytest.mark.parametrize("size", [1_000, 200_000, 200_001, 500_000])
def test_a_call_costs_what_genai_prices_says(prices: PriceList, size: int) -> None:
    call = Call(input=size, cached=size // 2, written=size - size // 2, output=321)
    written = call.written if prices.provider == "anthropic" else 0
    usage = Usage(
        input_tokens=call.input,
        cache_read_tokens=call.cached,
        cache_write_tokens=written,
        output_tokens=call.output,
    )
    told = calc_price(usage, model_ref=prices.model, provider_id=prices.provider).total_price
    assert billionths(prices, call) == told * Decimal(BILLIONTHS)


@pytest.mark.parametrize("prices", LISTS, ids=lambda prices: prices.key)
def test_reading_from_the_cache_is_cheaper_than_sending_anew(prices: PriceList) -> None:
    anew = billionths(prices, Call(10_000, 0, 10_000, 0))
    assert 0 < billionths(prices, Call(10_000, 9_000, 1_000, 0)) < anew / 2


@pytest.mark.parametrize("prices", LISTS, ids=lambda prices: prices.key)
def test_a_list_is_described_with_its_model_and_prices(prices: PriceList) -> None:
    assert described(prices).startswith(f"{prices.model}: input $")


def test_a_task_costs_the_sum_of_its_calls() -> None:
    totals = replay(TALK, Everything(10_000), [Money]).totals
    sizes = [tokens.message_tokens(message) for message in MESSAGES]
    calls = []
    for index in range(1, len(MESSAGES), 2):
        view, cached = sum(sizes[:index]), sum(sizes[: max(0, index - 2)])
        calls.append(Call(view, cached, view - cached, sizes[index]))
    assert totals["money_input"] == sum(call.input for call in calls)
    for prices in LISTS:
        assert totals[f"money_{prices.key}"] == sum(billionths(prices, call) for call in calls)


def test_the_summarizer_is_paid_too() -> None:
    strategy = Summarizing(10_000)
    totals = replay(TALK, strategy, [Money]).totals
    shown = sum(tokens.count(text) for text in strategy.summarizer.inputs)
    silent = Everything(10_000)
    assert totals["money_input"] > shown > 0
    assert strategy.summarizer.output_tokens > silent.summarizer.output_tokens == 0


@given(st.integers(1, 4))
def test_dollars_are_per_conversation_however_many_are_added(times: int) -> None:
    one = replay(TALK, Everything(10_000), [Money]).totals
    many = added([one] * times)
    for column in Money.columns[:-1]:
        assert column.value(many, {}) == pytest.approx(column.value(one, {}))
        assert column.value({}, {}) is None
    assert Money.columns[-1].value(many, {}) == times
