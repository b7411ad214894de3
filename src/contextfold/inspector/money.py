"""What the requests of a conversation cost in money, by providers' price lists (genai-prices).

Every call is priced on its own, because lists have tiers by size: input that was in the view before at the cache's
read price, new input at the cache's write price where the list has one, else at the input price; the answer that really
came as output. A summarizer is the same model here; its input is not cached. Hidden reasoning, images' own prices
and the smallest size that a provider caches are left out, and so is what a cache forgets between two calls.

Money is counted in whole billionths of a dollar, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

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
    """The rates of a request by its input: from a tier's start on, all its tokens cost that tier's price."""
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


def money(
    columns: Mapping[str, Sequence[int]], states: Sequence[Mapping[str, Any]], *, pending: bool
) -> dict[str, dict[str, list[int]]]:
    """By price list, for each request: what it cost ``with`` compaction (its summary included), and ``without``.

    Without: the whole history each time, as a provider would cache it perfectly, however large it becomes.
    """
    summaries: dict[int, list[Call]] = {}
    for state in states:
        summary = state["summary"]
        if summary and summary["calls"]:
            call = Call(summary["input_tokens"], 0, 0, summary["output_tokens"])
            summaries.setdefault(state["from"], []).append(call)
    found: dict[str, dict[str, list[int]]] = {}
    count = len(columns["index"]) - pending
    rows = list(zip(columns["history"], columns["view"], columns["cached"], columns["answer"], strict=True))[:count]
    for prices in LISTS:
        with_, without, before = [], [], 0
        for number, (history, view, cached, answer) in enumerate(rows):
            calls = [Call(view, cached, view - cached, answer if view else 0), *summaries.get(number, ())]
            with_.append(sum(billionths(prices, call) for call in calls))
            without.append(billionths(prices, Call(history, before, history - before, answer)))
            before = history
        found[prices.key] = {"with": with_, "without": without}
    return found
