"""What a turn costs when there is nothing to do, side by side with LangChain's ``SummarizationMiddleware``.

    python benchmarks/overhead.py            (make bench-overhead)

Before every model call both look at the whole conversation and decide that it still fits. Both get the same
LangChain messages, which grow by two per turn, and thresholds that are never reached. The table gives the median
CPU time of such a turn, after one turn that is not counted (it sizes what is there already; shown apart). The two
take rounds of a few turns behind each other, and "faster" is the median of what the rounds say: a machine that is slow
in one second and quick in the next is so for both.

Exit code 1, with a line that says why, unless at 10,000 messages contextfold is at least 20 times faster per turn,
and a turn at 50,000 messages takes at most 20 times one at 1,000, or half a millisecond. (What is left to do for every
message is to see that it is still the same object.)
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from contextfold import Compactor

SIZES = (1_000, 10_000, 50_000)
ROUNDS, TURNS = 7, 7
NEVER = 10**9
"""Tokens: a window that no conversation here comes near."""
FASTER = 20
JUDGED_AT = 10_000
GROWTH = 20
FLAT = 0.0005
"""Seconds: below this a turn counts as flat, whatever its ratio to a shorter one."""

Turn = Callable[[list[BaseMessage]], None]


def messages_from(start: int, count: int) -> list[BaseMessage]:
    """A tool-using conversation: a call and its result in turn, and a person's word now and then."""
    made: list[BaseMessage] = []
    for number in range(start, start + count, 2):
        call = {"name": "read_file", "args": {"path": f"/srv/app/module_{number}.py"}, "id": f"call_{number}"}
        if number % 50 == 0:
            made.append(HumanMessage(f"Look at module {number} as well.", id=f"message-{number}"))
            made.append(AIMessage(f"I looked at module {number}; it is fine.", id=f"message-{number + 1}"))
        else:
            made.append(AIMessage(f"Reading module {number}.", tool_calls=[call], id=f"message-{number}"))
            output = f"def step_{number}(value):\n    return value * {number}\n" * 4
            made.append(ToolMessage(output, tool_call_id=f"call_{number}", id=f"message-{number + 1}"))
    return made


def langchain_turn() -> Turn:
    model = FakeListChatModel(responses=["never asked"])
    middleware: Any = SummarizationMiddleware(model=model, trigger=("tokens", NEVER), keep=("messages", 20))

    def turn(messages: list[BaseMessage]) -> None:
        if middleware.before_model({"messages": messages}, None) is not None:
            raise AssertionError("LangChain compacted: the comparison is void")

    return turn


def contextfold_turn() -> Turn:
    compactor = Compactor(window=NEVER)

    def turn(messages: list[BaseMessage]) -> None:
        if compactor.compact(messages).changed:
            raise AssertionError("contextfold compacted: the comparison is void")

    return turn


class Costs(NamedTuple):
    """CPU seconds of the first turn, and the median of each round."""

    first: float
    rounds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


def seconds_per_turn(turns: Sequence[Turn], size: int) -> list[Costs]:
    """What each takes for a first turn at ``size`` messages, and in each round for turns with two messages more."""
    messages = messages_from(0, size)
    costs = [Costs(_seconds(turn, messages), []) for turn in turns]
    for _ in range(ROUNDS):
        grown = [messages]
        for _ in range(TURNS):
            grown.append([*grown[-1], *messages_from(len(grown[-1]), 2)])
        messages = grown[-1]
        for turn, cost in zip(turns, costs, strict=True):
            cost.rounds.append(statistics.median(_seconds(turn, longer) for longer in grown[1:]))
    return costs


def _seconds(turn: Turn, messages: list[BaseMessage]) -> float:
    start = time.process_time()
    turn(messages)
    return time.process_time() - start


def main() -> int:
    print("median milliseconds of CPU per turn with nothing to do (first turn in brackets)\n")
    print(f"{'messages':>9}  {'LangChain':>20}  {'contextfold':>20}  {'faster':>7}")
    ours: dict[int, float] = {}
    ratios: dict[int, float] = {}
    for size in SIZES:
        theirs, own = seconds_per_turn([langchain_turn(), contextfold_turn()], size)
        ours[size] = own.median
        ratios[size] = statistics.median(a / b for a, b in zip(theirs.rounds, own.rounds, strict=True))
        print(
            f"{size:>9,}  {1000 * theirs.median:>9.3f} ({1000 * theirs.first:>7.1f})  "
            f"{1000 * own.median:>9.3f} ({1000 * own.first:>7.1f})  {ratios[size]:>6.0f}x"
        )
    return _judge(ours, ratios)


def _judge(ours: dict[int, float], ratios: dict[int, float]) -> int:
    growth = ours[SIZES[-1]] / ours[SIZES[0]]
    problems = []
    if ratios[JUDGED_AT] < FASTER:
        problems.append(f"at {JUDGED_AT:,} messages {ratios[JUDGED_AT]:.1f} times faster, and {FASTER} are promised")
    if growth > GROWTH and ours[SIZES[-1]] > FLAT:
        problems.append(f"a turn at {SIZES[-1]:,} messages takes {growth:.1f} times one at {SIZES[0]:,}: not flat")
    print("\n" + ("\n".join(f"FAILED: {problem}" for problem in problems) or "holds what is promised"))
    return 1 if problems else 0


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sys.exit(main())
