"""What the requests of a task cost in money, by three providers' price lists (genai-prices).

Every call is priced on its own, because lists have tiers by size: input that was in the view before at the cache's
read price, new input at the cache's write price where the list has one, else at the input price; the answer that really
came as output. The summarizer is the same model here; its input is not cached. Hidden reasoning, images' own prices
and the smallest size that a provider caches are left out, and so is what a cache forgets between two calls.

Money is counted in whole billionths of a dollar, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.replay import tokens
from benchmarks.replay.measure import Column, Number, Step, Totals, total
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

BILLIONTHS = 10**9
PER_MILLION = 1_000
"""Billionths of a dollar for one token, for each dollar that a million cost."""


@dataclass(frozen=True, slots=True)
class PriceList:
    """A model whose prices are used."""

    key: str
    provider: str
    model: str


LISTS = (
    PriceList("openai", "openai", "gpt-5"),
    PriceList("anthropic", "anthropic", "claude-sonnet-4-5"),
    PriceList("google", "google", "gemini-2.5-pro"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """Tokens of one request: ``cached`` of the ``input`` are read from the cache, ``written`` put into it."""

    input: int
    cached: int
    written: int
    output: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Billionths of a dollar for one token."""

    input: int
    cached: int
    written: int
    output: int


@cache
def model_price(prices: PriceList) -> ModelPrice:
    """The prices of a list as the installed genai-prices has them."""
    from genai_prices import Usage, calc_price

    return calc_price(Usage(input_tokens=1), model_ref=prices.model, provider_id=prices.provider).model_price


def described(prices: PriceList) -> str:
    """A list in words, for a table: the model and its prices in dollars per million tokens, for short requests."""
    rates = rates_for(prices, 0)
    names = ("input", "cached input", "new input with a cache", "output")
    values = (rates.input, rates.cached, rates.written, rates.output)
    listed = ", ".join(f"{name} ${value / PER_MILLION:g}" for name, value in zip(names, values, strict=True))
    return f"{prices.model}: {listed}"


@cache
def rates_for(prices: PriceList, input_tokens: int) -> Rates:
    """The rates of a request with so much input: from a tier's start on, all its tokens cost that tier's price."""
    price = model_price(prices)
    plain = _rate(price.input_mtok, input_tokens)
    return Rates(
        input=plain,
        cached=_rate(price.cache_read_mtok, input_tokens, plain),
        written=_rate(price.cache_write_mtok, input_tokens, plain),
        output=_rate(price.output_mtok, input_tokens),
    )


def _rate(price: Any, input_tokens: int, otherwise: int = 0) -> int:
    """Billionths of a dollar for a token, from dollars for a million of them, or tiers of such."""
    if price is None:
        return otherwise
    tiers = getattr(price, "tiers", ())
    reached = [tier.price for tier in tiers if input_tokens > tier.start]
    return int((reached[-1] if reached else getattr(price, "base", price)) * PER_MILLION)


def billionths(prices: PriceList, call: Call) -> int:
    """What a call costs by a list, in billionths of a dollar."""
    rates = rates_for(prices, call.input)
    plain = call.input - call.cached - call.written
    return plain * rates.input + call.cached * rates.cached + call.written * rates.written + call.output * rates.output


def _dollars(key: str) -> Callable[[Totals, Totals], float | None]:
    def value(totals: Totals, _: Totals) -> float | None:
        tasks = totals.get("money_tasks")
        return totals[f"money_{key}"] / BILLIONTHS / tasks if tasks else None

    return value


def _columns() -> Sequence[Column]:
    priced: list[Any] = [
        Column(
            f"money_{prices.key}",
            f"$ {prices.model}",
            f"Dollars per conversation by the prices of {prices.model}: all calls, their answers and the summarizer.",
            _dollars(prices.key),
            "money",
            better="low",
            main=False,
        )
        for prices in LISTS
    ]
    return (
        *priced,
        Column(
            "task_tokens",
            "input tokens per task",
            "Input tokens of all calls of a conversation together, the summarizer's too; cached ones count in full.",
            lambda totals, _: totals["money_input"] / totals["money_tasks"] if totals.get("money_tasks") else None,
            "tokens",
            better="low",
            main=False,
        ),
        Column(
            "tasks",
            "conversations",
            "How many conversations were replayed.",
            total("money_tasks"),
            "count",
            better="",
            main=False,
        ),
    )


class Money:
    """Prices every request of a replay."""

    columns: ClassVar[Sequence[Column]] = _columns()

    def __init__(self, recording: Recording, window: int) -> None:
        self._calls: list[Call] = []

    def step(self, step: Step) -> None:
        answer = step.recording.known.tokens(step.recording.numbers[step.index])
        self._calls.append(Call(step.tokens, step.cached, step.tokens - step.cached, answer))

    def result(self, strategy: Strategy) -> dict[str, Number]:
        calls = [*self._calls, *_summaries(strategy)]
        found: dict[str, Number] = {"money_tasks": 1, "money_input": sum(call.input for call in calls)}
        for prices in LISTS:
            found[f"money_{prices.key}"] = sum(billionths(prices, call) for call in calls)
        return found


def _summaries(strategy: Strategy) -> list[Call]:
    """The summarizer's calls. Only their whole output is known; it is put on the first."""
    sizes = [tokens.count(text) for text in strategy.summarizer.inputs]
    outputs = [strategy.summarizer.output_tokens, *[0] * len(sizes)]
    return [Call(size, 0, 0, output) for size, output in zip(sizes, outputs, strict=False)]
