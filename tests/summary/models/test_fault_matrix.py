"""Each fault at each position of a summary's calls, in both colors.

Whatever happens, the caller's messages are as they were, and the record is either completed by a usable answer or the
one that was in force; never between. Retries, refusals and failures are told, and no key is seen anywhere.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest
from asking_models import KEY, compacted, conversation
from emulator import Fault, ProviderServer, Request

from contextfold import Compaction, Compactor, Policy
from contextfold.summary.models import SummaryModel

IDLE, LONG = 0.5, 1.2
"""Seconds of silence that are allowed where a server is silent, and that it is silent then."""
PATIENT = 20.0
"""Seconds of silence that are allowed elsewhere, so that a busy machine makes no difference."""

FAULTS: dict[str, Callable[[], Fault]] = {
    "429": lambda: Fault.rate_limit(retry_after=0.02),
    "500": Fault.server_error,
    "529": Fault.overloaded,
    "slow first byte": lambda: Fault.slow(LONG),
    "stalled stream": lambda: Fault.stalled(LONG),
    "cut stream": Fault.cut,
    "blank": Fault.blank,
    "tool call": Fault.tool_call,
    "length": Fault.length,
    "refusal": Fault.refusal,
}
SILENT = {"slow first byte", "stalled stream"}
REJECTED = {"blank", "tool call", "length", "refusal"}
"""These arrive as answers; the others are failures."""

POSITIONS: dict[str, Callable[[Request], bool]] = {
    "first": lambda request: True,
    "chunk": lambda request: "/srv/app/part13.py" in request.text and not request.text.startswith("Merge"),
    "merge": lambda request: request.text.startswith("Merge"),
    "update": lambda request: request.text.startswith("Update"),
    "retry": lambda request: True,  # the last one: where faults stay, a retry is nothing else than the first request
}
OLD = "Digest of "
"""How the answers of the provider begin."""


def in_turn(faults: Iterable[str], others: Iterable[str]) -> list[Any]:
    """Each fault at each place in both colors. A quick run tries every second place, and the colors in turn."""
    return [
        pytest.param(*case, color, marks=[] if number % 2 == 0 and number // 2 % 2 == turn else [pytest.mark.strict])
        for number, case in enumerate(product(faults, others))
        for turn, color in enumerate(("sync", "async"))
    ]


def model_for(wire: str, server: ProviderServer, position: str) -> SummaryModel:
    window = 2_500 if position in ("chunk", "merge") else None
    if wire == "anthropic":
        return SummaryModel("anthropic:matrix", base_url=server.anthropic_url, window=window)
    return SummaryModel("openai:matrix", base_url=server.openai_url, api=wire, window=window)


def policy(idle: float = PATIENT) -> Policy:
    return Policy(summary={"idle_seconds": idle, "retries_on_failure": 1, "parallel": 3})


class Case:
    """A compaction in which one thing goes wrong, and everything that was told about it."""

    def __init__(self, wire: str, server: ProviderServer, fault: str, position: str, times: int) -> None:
        self.events: list[Any] = []
        self.ends: list[Any] = []
        self.before: Compaction | None = None
        self.messages = conversation()
        model = model_for(wire, server, position)
        patience = policy(IDLE if fault in SILENT else PATIENT)
        self.compactor = Compactor(
            window=64_000, summarizer=model, policy=patience, on_event=self.events.append, on_end=self.ends.append
        )
        if position == "update":
            self.before = self.compactor.compact(self.messages, force=True).compaction
            self.messages = [*self.messages, *conversation(20)[1:]]
        if position == "retry":
            server.faults.add(Fault.rate_limit(retry_after=0.01), times=1)
            times = min(times, 1)  # one retry is allowed, so once is always
        server.faults.add(FAULTS[fault](), when=POSITIONS[position], times=times)
        self.events.clear()
        self.ends.clear()

    def run(self, color: str) -> Any:
        given, copied = list(self.messages), copy.deepcopy(self.messages)
        self.out = compacted(color, self.compactor, given, self.before, force=True)
        assert given == copied, "the caller's messages were changed"
        assert all(a is b for a, b in zip(given, self.messages, strict=True))
        return self.out

    @property
    def told(self) -> set[str]:
        return {event.name for event in self.events}

    def everything_said(self, caplog: pytest.LogCaptureFixture) -> str:
        record = self.out.compaction.to_json() if self.out.compaction else ""
        return "\n".join([repr(self.out), repr(self.events), repr(self.ends), record, caplog.text])


def is_complete(out: Any) -> None:
    """The record stands on an answer of the provider, and comes through a store."""
    assert out.changed
    assert out.summary.text.startswith(OLD)
    assert out.summary.algorithm == "bisect_v1"
    assert Compaction.from_json(out.compaction.to_json()).id == out.compaction.id
    assert sum(out.ledger.counts().values()) == len(out.ledger)
    json.dumps(out.messages)


def is_unchanged(case: Case) -> None:
    """The record in force is the one before, and the view is the old one."""
    out = case.out
    assert not out.changed
    assert out.compaction == case.before
    assert "summary_failed" in case.told
    assert "compaction_finished" not in case.told
    assert case.ends[-1].text is None
    assert case.ends[-1].error
    assert out.messages[-1] == case.messages[-1]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("fault", "position", "color"), in_turn(FAULTS, POSITIONS))
def test_a_fault_that_passes_leaves_a_complete_record_or_the_old_one(
    fault: str, position: str, color: str, server: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    """One retry is allowed: behind a retry that fails too there is none."""
    case = Case("chat", server, fault, position, times=1)
    out = case.run(color)
    if position == "retry" and fault not in REJECTED:
        is_unchanged(case)
    else:
        is_complete(out)
        assert case.ends[-1].text == out.summary.text
        assert ("summary_rejected" if fault in REJECTED else "summary_retry") in case.told
    assert ("summary_timed_out" in case.told) == (fault in SILENT)
    assert KEY not in case.everything_said(caplog)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("fault", "position", "color"), in_turn(FAULTS, list(POSITIONS)[:-1]))
def test_a_fault_that_stays_changes_nothing(
    fault: str, position: str, color: str, server: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    """And the same state is not asked about again."""
    case = Case("chat", server, fault, position, times=1_000)
    case.run(color)
    is_unchanged(case)
    assert KEY not in case.everything_said(caplog)
    if position != "first":
        return
    asked = len(server.requests)
    again = case.compactor.compact(case.messages, case.before)
    assert not again.changed
    assert len(server.requests) == asked


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("fault", "wire", "color"), in_turn(FAULTS, ["responses", "anthropic"]))
def test_the_other_apis_fail_and_recover_alike(
    fault: str, wire: str, color: str, server: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case(wire, server, fault, "first", times=1)
    is_complete(case.run(color))
    assert ("summary_rejected" if fault in REJECTED else "summary_retry") in case.told
    assert KEY not in case.everything_said(caplog)
    case = Case(wire, server, fault, "first", times=1_000)
    case.run(color)
    is_unchanged(case)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("color", ["sync", "async"])
def test_what_does_not_fit_without_a_summary_goes_on_with_the_built_in_one(color: str, server: ProviderServer) -> None:
    """On expiry the conversation goes on, and it is said."""
    server.faults.add(Fault.slow(LONG), times=1_000)
    events: list[Any] = []
    model = model_for("chat", server, "first")
    compactor = Compactor(window=8_000, summarizer=model, policy=policy(IDLE), on_event=events.append)
    out = compacted(color, compactor, conversation())
    assert out.changed
    assert out.summary.algorithm == "extractive"
    assert {"summary_timed_out", "summary_failed", "fallback_used"} <= {event.name for event in events}


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_prompt_of_which_only_a_part_was_read_is_not_a_summary_of_all(color: str, server: ProviderServer) -> None:
    """What a server cut away in silence is asked about again, in pieces that it reads."""
    server.faults.add(Fault.truncated(3_000), when=lambda request: request.tokens > 3_000, times=1_000)
    events: list[Any] = []
    compactor = Compactor(
        window=64_000, summarizer=model_for("chat", server, "first"), policy=policy(), on_event=events.append
    )
    start = len(server.requests)
    out = compacted(color, compactor, conversation(), force=True)
    is_complete(out)
    assert out.summary.chunk_count > 1
    assert "summary_overflowed" in {event.name for event in events}
    read = "\n".join(request.text for request in server.requests[start:] if request.tokens <= 3_000)
    gone = [entry.index for entry in out.ledger if entry.fate == "summarized"]
    assert len(gone) > 20
    assert all(f"/srv/app/part{index // 2}.py" in read for index in gone if index % 2)
