"""What the requests of a task cost in money, by three providers' price lists: ``contextfold.inspector.money``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from benchmarks.replay.measure import Column, Number, Step, Totals, total
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy
from contextfold.inspector.money import BILLIONTHS, LISTS, Call, PriceList, billionths, described, rates_for

__all__ = ["BILLIONTHS", "LISTS", "Call", "Money", "PriceList", "billionths", "described", "rates_for"]


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
    """The summarizer's calls. Only their whole output is known; it is put on the first.

    What comes behind a cached view is written to the cache, as with any request of the agent; other summarizers cache
    nothing.
    """
    summarizer = strategy.summarizer
    outputs = [summarizer.output_tokens, *[0] * len(summarizer.sizes)]
    return [
        Call(size, cached, size - cached if cached else 0, output)
        for size, cached, output in zip(summarizer.sizes, summarizer.cached, outputs, strict=False)
    ]
