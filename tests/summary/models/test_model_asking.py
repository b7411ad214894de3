"""Time and failure: waits, limits, cancellation, fallback models and hooks, with a clock in hand."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asking_models import compacted, conversation

from contextfold import Compactor, Policy, SummaryFailed
from contextfold.errors import Cancelled, TimedOut
from contextfold.observe import Event, Observer
from contextfold.ports import AsyncPorts, Clock, SyncPorts, run
from contextfold.summary.bisect import Summary, summarize
from contextfold.summary.chunks import Unit
from contextfold.summary.models import SummaryModel
from contextfold.summary.options import SummaryOptions
from contextfold.summary.summarizer import Answer, as_summarizer
from contextfold.testing import ScriptedSummarizer


class Refused(Exception):
    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class FakePorts(SyncPorts):
    """Blocking ports on which time passes only by sleeping."""

    def __init__(self, chance: float = 0.0) -> None:
        self.time = 1_000.0
        self.slept: list[float] = []
        super().__init__(clock=Clock(now=lambda: self.time, wall=lambda: self.time, chance=lambda: chance))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.time += seconds


def script(*answers: Any) -> Callable[[str], Any]:
    """Gives out answers in order, the last one again and again; errors are raised."""
    left = itertools.chain(answers, itertools.repeat(answers[-1]))
    lock = threading.Lock()

    def ask(prompt: str) -> Any:
        with lock:
            answer = next(left)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return ask


def ask(summarizer: Any, ports: Any = None, observer: Observer | None = None, **options: Any) -> Summary:
    return run(
        summarize(
            [Unit(f"[user]\n{'lorem ipsum ' * 400}", (0,))],
            previous=None,
            summarizer=as_summarizer(summarizer),
            options=SummaryOptions(**options),
            max_tokens=500,
            language="en",
            ports=ports or FakePorts(),
            count=lambda text: len(text) // 4,
            observer=observer or Observer(),
        )
    )


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]


# ---- retries ----


def test_a_failure_that_may_pass_is_tried_again_with_growing_waits() -> None:
    ports, observer = FakePorts(), Observer()
    made = ask(script(Refused(500), Refused(503), ConnectionError(), "a summary"), ports, observer)
    assert made.text == "a summary"
    assert ports.slept == [0.25, 0.5, 1.0]
    retries = [event for event in observer.events if event.name == "summary_retry"]
    assert [event.data["attempt"] for event in retries] == [1, 2, 3]
    assert [event.data["wait"] for event in retries] == ports.slept


def test_chance_spreads_the_waits() -> None:
    ports = FakePorts(chance=0.5)
    ask(script(Refused(500), "a summary"), ports)
    assert ports.slept == [0.375]


def test_retries_are_bounded_and_the_last_failure_comes_out_as_it_is() -> None:
    ports, errors = FakePorts(), [Refused(500) for _ in range(9)]
    with pytest.raises(Refused) as raised:
        ask(script(*errors), ports, retries_on_failure=2)
    assert raised.value is errors[2]
    assert len(ports.slept) == 2


def test_retry_after_is_honored() -> None:
    ports = FakePorts()
    ask(script(Refused(429, retry_after="17"), "a summary"), ports)
    assert ports.slept == [17]


def test_there_is_no_waiting_beyond_the_total_limit() -> None:
    """The provider wants an hour, the caller gives a minute: the failure comes at once."""
    ports = FakePorts()
    with pytest.raises(Refused):
        ask(script(Refused(429, retry_after="3600"), "a summary"), ports, total_seconds=60)
    assert ports.slept == []


def test_the_total_limit_holds_all_requests_and_waits_together() -> None:
    ports = FakePorts()
    with pytest.raises(Refused):
        ask(script(Refused(429, retry_after="25")), ports, total_seconds=60, retries_on_failure=50)
    assert ports.slept == [25, 25]


def test_a_wrong_key_is_not_tried_again() -> None:
    ports = FakePorts()
    with pytest.raises(Refused):
        ask(script(Refused(401), "a summary"), ports)
    assert ports.slept == []


# ---- limits for what cannot be interrupted ----


HUNG = 4.0
"""Seconds: whoever waits less has not waited for the model, however busy the machine is."""


def hanging() -> Any:
    """A new one each time: a process remembers which function fails."""

    def hang(prompt: str) -> str:
        time.sleep(HUNG)
        return "too late"

    return hang


def hanging_async() -> Any:
    async def hang(prompt: str) -> str:
        await asyncio.sleep(HUNG)
        return "too late"

    return hang


def dribbling() -> Any:
    def dribble(prompt: str) -> Iterator[str]:
        yield "a "
        time.sleep(HUNG)
        yield "summary"

    return dribble


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("make", [hanging, hanging_async, dribbling])
@pytest.mark.parametrize("limit", ["idle_seconds", "total_seconds"])
def test_silence_ends_after_the_limit_whatever_is_silent(make: Any, limit: str, color: str) -> None:
    """A plain callable is left alone in its thread, and the conversation goes on."""
    events: list[Event] = []
    policy = Policy(summary={limit: 0.1, "retries_on_failure": 0})
    compactor = Compactor(window=64_000, summarizer=make(), policy=policy, on_event=events.append)
    messages = conversation()
    started = time.perf_counter()
    out = compacted(color, compactor, messages, force=True)
    assert time.perf_counter() - started < HUNG
    assert not out.changed
    assert out.messages == messages
    assert {"summary_timed_out", "summary_failed"} <= set(names(events))


def test_by_option_the_expiry_is_raised() -> None:
    policy = Policy(on_failure="raise", summary={"total_seconds": 0.1})
    with pytest.raises(TimedOut, match=r"longer than 0.1 s in total") as raised:
        Compactor(window=64_000, summarizer=hanging(), policy=policy).compact(conversation(), force=True)
    assert raised.value.total
    assert isinstance(raised.value, SummaryFailed)


def test_a_stream_that_keeps_coming_is_not_silent() -> None:
    def steady(prompt: str) -> Iterator[str]:
        for word in ("a ", "slow ", "summary ", "that ", "arrives"):
            time.sleep(0.06)
            yield word

    policy = Policy(on_failure="raise", summary={"idle_seconds": 0.2})
    out = Compactor(window=64_000, summarizer=steady, policy=policy).compact(conversation(), force=True)
    assert out.summary.text == "a slow summary that arrives"


# ---- cancellation ----


def test_a_token_ends_blocking_code_while_it_waits_and_nothing_changes() -> None:
    token = threading.Event()
    compactor = Compactor(window=64_000, summarizer=hanging())
    messages = conversation()
    threading.Timer(0.1, token.set).start()
    started = time.perf_counter()
    with pytest.raises(Cancelled):
        compactor.compact(messages, force=True, cancel=token)
    assert time.perf_counter() - started < HUNG
    assert compactor.compact(messages).messages == messages


def test_a_token_ends_the_wait_for_a_retry() -> None:
    token = threading.Event()

    def fail(prompt: str) -> str:
        token.set()
        raise Refused(429, retry_after="30")

    with pytest.raises(Cancelled):
        Compactor(window=64_000, summarizer=fail).compact(conversation(), force=True, cancel=token)


def test_a_token_that_is_set_asks_nobody() -> None:
    token, summarizer = threading.Event(), ScriptedSummarizer(["never"])
    token.set()
    for color in ("sync", "async"):
        with pytest.raises(Cancelled):
            compacted(color, Compactor(window=64_000, summarizer=summarizer), conversation(), force=True, cancel=token)
    assert summarizer.prompts == []


@pytest.mark.parametrize("make", [hanging, hanging_async])
def test_cancelling_the_task_passes_through_and_changes_nothing(make: Any) -> None:
    compactor = Compactor(window=64_000, summarizer=make())
    messages = conversation()

    async def main() -> None:
        task = asyncio.create_task(compactor.acompact(messages, force=True))
        await asyncio.sleep(0.1)
        task.cancel()
        started = time.perf_counter()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - started < HUNG

    asyncio.run(main())
    assert compactor.compact(messages).messages == messages


def test_an_async_summarizer_is_really_ended_by_a_limit_also_in_blocking_code() -> None:
    ended = threading.Event()

    async def noted(prompt: str) -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            ended.set()
            raise
        return "too late"

    policy = Policy(summary={"total_seconds": 0.1})
    assert not Compactor(window=64_000, summarizer=noted, policy=policy).compact(conversation(), force=True).changed
    assert ended.wait(2)


class GraphBubbleUp(Exception):
    """Named as LangGraph's."""


@pytest.mark.parametrize("color", ["sync", "async"])
def test_control_flow_of_a_framework_passes_through_without_a_retry(color: str) -> None:
    asked: list[str] = []

    def interrupt(prompt: str) -> str:
        asked.append(prompt)
        raise GraphBubbleUp

    with pytest.raises(GraphBubbleUp):
        compacted(color, Compactor(window=64_000, summarizer=interrupt), conversation(), force=True)
    assert len(asked) == 1


# ---- side by side ----


@pytest.mark.parametrize("color", ["sync", "async"])
def test_no_more_requests_of_one_summary_are_under_way_than_allowed(color: str) -> None:
    now, most, lock = 0, 0, threading.Lock()

    def counted(prompt: str) -> str:
        nonlocal now, most
        with lock:
            now, most = now + 1, max(most, now + 1)
        time.sleep(0.01)
        with lock:
            now -= 1
        return "a summary"

    policy = Policy(summary={"parallel": 2, "input_tokens": 1_000})
    compactor = Compactor(window=64_000, summarizer=counted, policy=policy)
    out = compacted(color, compactor, conversation(), force=True)
    assert out.summary.chunk_count > 4
    assert most == 2


# ---- fallback models ----


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("first", [Refused(401), "", Answer("half", "length")], ids=["error", "blank", "cut off"])
def test_the_next_model_is_asked_when_one_fails(first: Any, color: str, server: Any) -> None:
    server.faults.add(_as_fault(first), when=lambda request: request.model == "primary", times=9)
    events: list[Event] = []
    ends: list[Any] = []
    model = SummaryModel(
        "openai:primary", base_url=server.openai_url, fallbacks=[script(Refused(403)), script("by the third")]
    )
    compactor = Compactor(
        window=64_000,
        summarizer=model,
        on_event=events.append,
        on_end=ends.append,
    )
    out = compacted(color, compactor, conversation(), force=True)
    assert out.summary.text == "by the third"
    failed = [event.data["model"] for event in events if event.name == "summary_model_failed"]
    assert failed[0] == "openai:primary"
    assert len(failed) == 2
    assert "script" in ends[0].model
    assert ends[0].cost is None


def _as_fault(answer: Any) -> Any:
    from emulator import Fault

    if isinstance(answer, Refused):
        return Fault.http_error(401, "no such key")
    return Fault.length() if isinstance(answer, Answer) else Fault.blank()


def test_control_flow_does_not_lead_to_the_next_model() -> None:
    chain = as_summarizer(SummaryModel("openai:x", base_url="http://127.0.0.1:9", fallbacks=[script("never")]))
    interrupting = as_summarizer(script(GraphBubbleUp()))
    both = type(chain)((interrupting.models[0], chain.models[1]))
    with pytest.raises(GraphBubbleUp):
        ask(both)


def test_when_all_fail_the_last_failure_comes_out() -> None:
    chain = as_summarizer(script(Refused(401)))
    last = Refused(403)
    both = type(chain)((chain.models[0], as_summarizer(script(last)).models[0]))
    with pytest.raises(Refused) as raised:
        ask(both)
    assert raised.value is last


# ---- hooks ----


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("hooks", ["sync", "async"])
def test_hooks_are_told_in_order_with_the_statistics(hooks: str, color: str) -> None:
    told: list[Any] = []

    async def hear_async(value: Any) -> None:
        await asyncio.sleep(0)
        told.append(value)

    def write(prompt: str) -> Iterator[str]:
        yield from ("a summary ", "in two pieces")

    hear = hear_async if hooks == "async" else told.append
    compactor = Compactor(window=64_000, summarizer=write, on_start=hear, on_stream=hear, on_progress=hear, on_end=hear)
    out = compacted(color, compactor, conversation(), force=True)
    assert [type(value).__name__ for value in told] == [
        "SummaryStart",
        "SummaryProgress",
        "SummaryPiece",
        "SummaryPiece",
        "SummaryProgress",
        "SummaryEnd",
    ]
    start, first, *pieces, done, end = told
    assert "write" in start.model
    assert start.messages == out.ledger.counts()["summarized"]
    assert (first.chunks_done, first.seconds_left) == (0, None)
    assert "".join(piece.text for piece in pieces) == out.summary.text == end.text
    assert {(piece.kind, piece.request) for piece in pieces} == {("summarize", 1)}
    assert (done.chunks_done, done.chunks, done.tokens_done) == (1, 1, done.tokens)
    assert (end.input_tokens, end.calls, end.chunk_count) == (out.summary.input_tokens, 1, 1)
    assert end.compression_ratio == out.summary.compression_ratio > 0
    assert end.seconds >= 0
    assert end.error is None


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_hook_that_raises_changes_nothing_and_is_not_called_again(color: str) -> None:
    told: list[Any] = []

    def broken(value: Any) -> None:
        told.append(value)
        raise RuntimeError("a bug in a hook")

    def write(prompt: str) -> Iterator[str]:
        yield from ("a summary ", "in two pieces")

    plain = Compactor(window=64_000, summarizer=write)
    hooked = Compactor(window=64_000, summarizer=write, on_stream=broken)
    messages = conversation()
    assert compacted(color, hooked, messages, force=True).messages == plain.compact(messages, force=True).messages
    assert len(told) == 1


def test_progress_counts_the_chunks_while_they_are_read() -> None:
    told: list[Any] = []
    summarizer = type("Small", (), {"window": 2_000, "complete": lambda self, prompt: "words " * 20})()
    compactor = Compactor(window=64_000, summarizer=summarizer, on_progress=told.append)
    out = compactor.compact(conversation(), force=True)
    assert out.summary.chunk_count > 3
    assert [value.chunks_done for value in told if value.tokens_done][-1] == out.summary.chunk_count
    assert told[-1].tokens_done == told[-1].tokens
    assert all(value.seconds_left is not None for value in told if value.chunks_done)


def test_real_ports_sleep_and_stop() -> None:
    started = time.perf_counter()
    run(SyncPorts().sleep(0.05))
    asyncio.run(AsyncPorts().sleep(0.05))
    assert time.perf_counter() - started >= 0.1
    token = threading.Event()
    token.set()
    with pytest.raises(Cancelled):
        run(SyncPorts(cancel=token).sleep(5))
    with pytest.raises(Cancelled), contextlib.suppress(ValueError):
        asyncio.run(AsyncPorts(cancel=token).sleep(5))
