"""The account against probes: a true one agrees, and every kind of false claim is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.replay import collect, tokens
from benchmarks.replay.chat import Message
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measures.coverage import Coverage, Reading, disagreement, reach_of
from benchmarks.replay.measures.summaries import squeezed
from benchmarks.replay.recording import Recording
from benchmarks.replay.replay import replay, steps
from benchmarks.replay.strategies import create
from benchmarks.replay.strategies.base import Strategy

from contextfold.messages import Message as Decoded
from contextfold.messages import Text
from contextfold.summary import extractive


@pytest.fixture(autouse=True)
def _estimate() -> None:
    tokens.use(tokens.ESTIMATE)


def message(number: int) -> Message:
    return {
        "role": ("user", "assistant")[number % 2],
        "content": f"Message {number} speaks of the part numbered {number}.",
    }


TALK = Conversation("talk#0", "talk", tuple(message(n) for n in range(10)))


class Accounting(Strategy):
    """From the sixth message on: a summary and the two newest messages. ``claims`` is what it says of the others."""

    claim = "summarized"

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._shown = 0
        self._length = 0

    def view(self, messages: list[Message]) -> list[Message]:
        self._length = len(messages)
        if len(messages) < 6:
            return messages
        return [{"role": "user", "content": self.summarizer(messages[:-2])}, *messages[-2:]]

    def fates(self) -> Sequence[str] | None:
        if self._length < 6:
            return ["kept"] * self._length
        return [self.claim] * (self._length - 2) + ["kept"] * 2


class Silent(Accounting):
    """Does not show its summarizer the messages that it says are summarized."""

    def view(self, messages: list[Message]) -> list[Message]:
        self._length = len(messages)
        return messages if len(messages) < 6 else [{"role": "user", "content": "What was said."}, *messages[-2:]]


class Pretending(Accounting):
    claim = "kept"


class Short(Accounting):
    def fates(self) -> Sequence[str] | None:
        return ["kept"]


class Nameless(Accounting):
    def fates(self) -> Sequence[str] | None:
        return None


def share(strategy: type[Strategy]) -> float | None:
    totals = replay(TALK, strategy(10_000), [Coverage]).totals
    return Coverage.columns[0].value(totals, {})


def test_a_true_account_agrees() -> None:
    assert share(Accounting) == 1.0


def test_a_summarizer_that_was_shown_nothing_is_found_out() -> None:
    found = share(Silent)
    assert found is not None
    assert found < 0.5


def test_what_is_not_in_the_view_was_not_kept() -> None:
    found = share(Pretending)
    assert found is not None
    assert found < 0.5


def test_an_account_that_leaves_messages_out_disagrees() -> None:
    found = share(Short)
    assert found is not None
    assert found < 0.5


def test_nothing_is_said_of_a_strategy_without_an_account() -> None:
    assert share(Nameless) is None


def test_disagreements_are_told_with_their_place() -> None:
    recording = Recording(TALK)
    measure = Coverage(recording, 10_000)
    strategy = Silent(10_000)
    for step in steps(recording, strategy):
        measure.step(step)
    measure.result(strategy)
    assert measure.examples[0] == "talk#0 message 0: summarized, but none of it reached the summarizer"


ONE = message(1)
BARE = [squeezed(str(ONE["content"]))]


@pytest.mark.parametrize(
    ("fate", "is_present", "view", "shown", "holds"),
    [
        ("kept", True, [], [], True),
        ("kept", False, BARE, BARE, False),
        ("pinned", False, [], BARE, False),
        ("shortened", False, BARE, [], True),
        ("shortened", False, [], BARE, False),
        ("shortened", True, BARE, [], False),
        ("summarized", False, [], BARE, True),
        ("summarized", False, BARE, [], False),
        ("summarized", True, [], BARE, False),
        ("dropped", False, [], [], True),
        ("dropped", False, [], BARE, False),
        ("lost", False, [], [], False),
    ],
)
def test_every_claim_is_held_against_view_and_summarizer(
    fate: str, is_present: bool, view: list[str], shown: list[str], holds: bool
) -> None:
    assert (disagreement(fate, ONE, is_present=is_present, view=view, shown=shown) == "") is holds


def test_a_call_is_found_however_it_is_written_down() -> None:
    function = {"name": "read", "arguments": '{"path": "/srv/app/module.py", "lines": "from 10 to 90"}'}
    call: Message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    assert (
        reach_of(call, [squeezed("read <path>/srv/app/module.py</path> then <lines>from 10 to 90</lines>")]) == "full"
    )
    assert reach_of(call, [squeezed("read <path>/srv/app/module.py</path>")]) == "part"
    assert reach_of(call, [squeezed("nothing")]) == "none"
    assert reach_of({"role": "user", "content": "ok"}, []) == ""


def test_what_the_built_in_summarizer_reads_is_noted_until_it_is_stopped() -> None:
    reading = Reading()
    said = Decoded("user", (Text("Keep the parser as it is."),))
    extractive.summarize([said], budget=200, count=len)
    extractive.summarize([said], budget=200, count=len)
    assert reading.new() == squeezed(said.text)
    assert reading.new() == ""
    reading.stop()
    extractive.summarize([Decoded("user", (Text("Something else."),))], budget=200, count=len)
    assert reading.new() == ""


@pytest.mark.parametrize("name", ["contextfold", "contextfold_given"])
def test_contextfolds_ledger_agrees_on_a_real_conversation(transcripts: Path, name: str) -> None:
    found = collect.read(transcripts, "kimi-cli-claude-code-zh/516b7270.jsonl")[0]
    strategy = create(name, 16_000)
    totals = replay(found, strategy, [Coverage]).totals
    assert totals["account_claims"] > 50
    assert totals["account_agreed"] == totals["account_claims"]


def test_a_line_break_written_with_a_backslash_behind_a_quote_does_not_matter() -> None:
    plain = 'print(f"\nSummary saved")'
    assert squeezed(plain) == squeezed(plain.replace("\n", "\\n")) == squeezed(plain.replace("\n", "\\\\n"))
    assert squeezed(plain) == "printfSummarysaved"
