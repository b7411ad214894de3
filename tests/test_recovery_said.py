"""What a caller is told when a request or a summary comes to nothing: notes, events, costs, and what is tried first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from contextfold import CompactionResult, Compactor, Policy, count_tokens
from contextfold.errors import CannotFit, StillTooLong, SummaryFailed
from contextfold.observe import Event, SummaryEnd
from contextfold.policy import Pins
from contextfold.summary.message import summary_text
from contextfold.summary.summarizer import Answer

Wire = list[dict[str, Any]]
COLORS = pytest.mark.parametrize("color", ["sync", "async"])


class Refused(Exception):
    """As an SDK raises it."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status_code = status


def conversation(turns: int) -> Wire:
    wire: Wire = [{"role": "system", "content": "You repair services."}]
    for turn in range(turns):
        wire.append({"role": "user", "content": f"Look at service_{turn}.py, please. " + f"detail{turn} " * 60})
        wire.append({"role": "assistant", "content": f"service_{turn}.py returns code {turn}. " + f"word{turn} " * 60})
    return [*wire, {"role": "user", "content": "And now?"}]


def call(color: str, compactor: Compactor, send: Callable[..., Any], wire: Wire, **options: Any) -> Any:
    if color == "sync":
        return compactor.call(send, wire, **options)

    async def asend(*arguments: Any) -> Any:
        return send(*arguments)

    return asyncio.run(compactor.acall(asend, wire, **options))


def always(message: str, status: int = 400) -> Callable[..., Any]:
    def send(*arguments: Any) -> Any:
        raise Refused(message, status)

    return send


# ---- notes on the provider's own error ----


@COLORS
@pytest.mark.parametrize(
    ("message", "options", "found", "way_out"),
    [
        ("`max_tokens` exceed context limit: 5000 + 8000 > 10000", {}, "limit 10,000, used 5,000", "pass max_tokens="),
        (
            "input length and `max_tokens` exceed context limit: 5000 + 8000 > 10000",
            {"max_tokens": 8_000},
            "output_budget",
            "larger window",
        ),
        (
            "Invalid 'messages[3].content': string too long. Expected a string with maximum length 9, but got a string "
            "with length 20 instead.",
            {},
            "item_too_long (limit 9, used 20)",
            "split it",
        ),
        ("messages with role 'tool' must be a response to 'tool_calls'", {}, "malformed_history", "name the place"),
        (
            "Request too large for m on tokens per min (TPM): Limit 30, Requested 4000.",
            {},
            "rate_limit_too_small (limit 30, used 4,000)",
            "newest user message",
        ),
        # of a model that is not open to this account
        (
            "Request too large for m on tokens per min (TPM): Limit 0, Requested 4000.",
            {},
            "rate_limit_too_small (limit 0, used 4,000)",
            "newest user message",
        ),
    ],
)
def test_a_refusal_that_stays_is_the_providers_error_with_a_note_that_says_the_way_out(
    color: str, message: str, options: dict[str, Any], found: str, way_out: str
) -> None:
    """Handlers for the SDK's classes go on working, and whoever reads the traceback knows what to do."""
    wire = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is broken? " * 3}]
    with pytest.raises(Refused) as caught:
        call(color, Compactor(window=100_000), always(message), wire, **options)
    (note,) = caught.value.__notes__
    assert note.startswith("contextfold: ")
    assert found in note
    assert f"sent {count_tokens(wire):,} tokens" in note
    assert way_out in note


def test_an_error_that_is_raised_again_has_its_note_once() -> None:
    error = Refused("input length and `max_tokens` exceed context limit: 5000 + 8000 > 10000")

    def send(view: Wire) -> Any:
        raise error

    for _ in range(2):
        with pytest.raises(Refused):
            Compactor(window=100_000).call(send, conversation(2))
    assert len(error.__notes__) == 1


@pytest.mark.parametrize("setting", ["resend_after_overflow", "enabled"])
def test_the_note_names_the_setting_that_forbids_to_send_again(setting: str) -> None:
    policy = Policy(**{setting: False})
    with pytest.raises(Refused) as caught:
        Compactor(window=100_000, policy=policy).call(always("prompt is too long: 300 tokens > 200 maximum"), [])
    assert f"Policy({setting}=False)" in caught.value.__notes__[0]


def test_errors_of_another_kind_get_no_note() -> None:
    with pytest.raises(Refused) as caught:
        Compactor(window=100_000).call(always("invalid x-api-key", 401), conversation(2))
    assert not hasattr(caught.value, "__notes__")


# ---- an answer that is worth having ----


@COLORS
def test_where_a_prompt_leaves_no_room_for_an_answer_it_is_compacted(color: str) -> None:
    """Five tokens of an answer are of no use to anybody."""
    wire, sent = conversation(40), list[tuple[int, int | None]]()
    window = count_tokens(wire) + 10

    def send(view: Wire, max_tokens: int | None) -> str:
        tokens = count_tokens(view)
        sent.append((tokens, max_tokens))
        if tokens + (max_tokens or 0) > window:
            raise Refused(f"input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > {window}")
        return "fine"

    assert call(color, Compactor(window=200_000), send, wire, max_tokens=window - 100) == "fine"
    assert len(sent) == 2
    assert sent[1][0] <= window / 2
    assert (sent[1][1] or 0) > window / 4


# ---- windows that no one named ----


@COLORS
def test_what_must_stay_is_sent_where_only_a_default_says_that_it_does_not_fit(color: str) -> None:
    """No one knows the model, so the provider is asked instead of giving up."""
    wire = [*conversation(3), {"role": "user", "content": "Read this: " + "fact and figure " * 24_000}]
    assert count_tokens(wire[-1:]) > 64_000
    events: list[Event] = []
    compactor = Compactor(on_event=events.append)
    assert call(color, compactor, lambda view: len(view), wire) == len(wire)
    assert "cannot_fit" not in [event.name for event in events]
    first, *_, last = [event for event in events if event.name == "window_resolved"]
    assert (first.data["tokens"], first.data["source"]) == (64_000, "default")
    assert last.data["tokens"] > 2 * 64_000
    assert "only assumed" in last.message
    with pytest.raises(CannotFit):  # whoever only asks for a view is told
        compactor.compact(wire)
    with pytest.raises(CannotFit):  # what the caller said is no guess
        call(color, Compactor(window=64_000), lambda view: len(view), wire)


@COLORS
def test_a_provider_that_refuses_it_has_the_last_word(color: str) -> None:
    wire = [{"role": "user", "content": "Read this: " + "fact and figure " * 24_000}]
    tokens = count_tokens(wire)
    events: list[Event] = []
    send = always(f"prompt is too long: {tokens} tokens > 65000 maximum")
    with pytest.raises(StillTooLong) as caught:
        call(color, Compactor(on_event=events.append), send, wire)
    told = [event for event in events if event.name == "cannot_fit"]
    assert [event.data["floor"] for event in told] == [caught.value.floor]


# ---- events are true ----


@COLORS
def test_nothing_is_said_not_to_fit_that_is_sent_after_all(color: str) -> None:
    """A guess that cannot be met gives way: the event would be false."""
    wire = conversation(20)
    wire[0]["content"] = "Rule number one. " * 1_800
    events: list[Event] = []
    compactor = Compactor(window=100_000, on_event=events.append)

    def send(view: Wire) -> str:
        if count_tokens(view) > 9_000:
            raise Refused("Input is too long for requested model.")
        return "fine"

    for turns in (20, 24, 28):
        wire = [*wire, *conversation(turns)[-9:]]
        assert call(color, compactor, send, wire) == "fine"
    assert "cannot_fit" not in [event.name for event in events]


def test_an_error_names_the_window_once() -> None:
    assert "Raise the window, shorten" in str(CannotFit(limit=5, floor={"x": 9}, limit_name="window"))
    assert "Raise the window or the target, shorten" in str(CannotFit(limit=5, floor={"x": 9}))


# ---- what was paid is told ----


@COLORS
def test_a_summary_that_no_record_can_hold_is_told_with_what_it_cost(color: str) -> None:
    heading = summary_text("", "-", language="en").splitlines()[0]
    ends: list[SummaryEnd] = []
    events: list[Event] = []

    def count(text: str) -> int:
        """A tokenizer that makes the frame of a summary larger than anybody could expect."""
        return len(text) // 4 + (9_000 if heading in text else 0)

    compactor = Compactor(
        window=8_000,
        summarizer=lambda prompt: "The services return codes 0 to 30.",
        count_text=count,
        on_end=ends.append,
        on_event=events.append,
    )
    with pytest.raises(CannotFit) as caught:
        call(color, compactor, lambda view: "fine", conversation(60))
    (end,) = ends
    assert end.text == "The services return codes 0 to 30."
    assert end.error == str(caught.value)
    assert (end.calls, end.model != "") == (1, True)
    assert end.input_tokens > 1_000
    assert [event.name for event in events if event.name == "cannot_fit"] == ["cannot_fit"]


@COLORS
def test_a_summary_that_fails_half_way_tells_what_was_answered_until_then(color: str) -> None:
    """Chunks that were read are paid for, also when a later one fails."""
    ends: list[SummaryEnd] = []
    asked: list[str] = []

    class Model:
        window = 3_000

        def complete(self, prompt: str) -> Answer:
            asked.append(prompt)
            if len(asked) == 4:
                raise ValueError("broken")
            return Answer("It was looked at, and codes came back.", "stop", input_tokens=2_500, output_tokens=9)

    policy = Policy(on_failure="raise", summary={"parallel": 1})
    compactor = Compactor(window=16_000, summarizer=Model(), policy=policy, on_end=ends.append)
    with pytest.raises(ValueError, match="broken"):
        call(color, compactor, lambda view: "fine", conversation(120))
    (end,) = ends
    assert end.text is None
    assert "broken" in (end.error or "")
    assert end.calls in (3, 4)  # threads cannot be stopped: in blocking code the rest of the wave is answered, too
    assert (end.input_tokens, end.output_tokens) == (2_500 * end.calls, 9 * end.calls)
    assert end.model


@COLORS
def test_what_was_answered_beside_a_failure_is_counted(color: str) -> None:
    ends: list[SummaryEnd] = []

    class Model:
        window = 3_000

        async def complete(self, prompt: str) -> Answer:
            if "service_0.py" in prompt:
                await asyncio.sleep(0.05)
                raise SummaryFailed("broken")
            return Answer("It was looked at, and codes came back.", "stop", input_tokens=2_500, output_tokens=9)

    policy = Policy(on_failure="raise", summary={"parallel": 4})
    compactor = Compactor(window=16_000, summarizer=Model(), policy=policy, on_end=ends.append)
    with pytest.raises(SummaryFailed, match="broken"):
        call(color, compactor, lambda view: "fine", conversation(120))
    assert ends[0].calls == 3
    assert ends[0].input_tokens == 7_500


def test_a_result_is_told_as_before() -> None:
    ends: list[SummaryEnd] = []
    results: list[CompactionResult] = []
    compactor = Compactor(window=8_000, summarizer=lambda prompt: "Codes 0 to 30 came back.", on_end=ends.append)
    compactor.call(lambda view: "fine", conversation(60), on_result=results.append)
    (end,) = ends
    assert (end.error, end.text) == (None, results[0].summary and results[0].summary.text)
    assert end.compression_ratio > 0.5


class Archive:
    """Takes originals, unless it is out of order."""

    address = "memory://originals"

    def __init__(self) -> None:
        self.broken = True
        self.saved: dict[int, Any] = {}

    def append(self, originals: Any) -> None:
        if self.broken:
            raise OSError("disk full")
        self.saved.update(originals)


@COLORS
def test_a_summary_that_could_not_be_saved_is_paid_once(color: str) -> None:
    """An archive that is out of order for some turns costs no summary for each of them."""
    asked: list[str] = []
    events: list[Event] = []
    results: list[CompactionResult] = []
    archive = Archive()

    def write(prompt: str) -> str:
        asked.append(prompt)
        return f"Summary number {len(asked)}: codes came back."

    compactor = Compactor(
        window=20_000, trigger=("tokens", 6_000), summarizer=write, on_event=events.append, target=("tokens", 4_000)
    )
    wire = conversation(40)
    for turn in range(4):
        call(color, compactor, lambda view: "fine", wire, archive=archive, on_result=results.append)
        assert not results[-1].changed
        assert results[-1].messages == wire
        wire = [*wire, {"role": "assistant", "content": "Done."}, {"role": "user", "content": f"Turn {turn}."}]
    assert len(asked) == 1
    archive.broken = False
    call(color, compactor, lambda view: "fine", wire, archive=archive, on_result=results.append)
    assert len(asked) == 1
    assert results[-1].changed
    assert results[-1].summary is not None
    assert results[-1].summary.text == "Summary number 1: codes came back."
    assert results[-1].messages[-1] == wire[-1]
    gone = {entry.index for entry in results[-1].ledger if entry.fate == "summarized"}
    assert gone == set(archive.saved)
    assert [event.name for event in events].count("summary_adopted") == 4


def test_a_summary_that_could_not_be_saved_is_left_where_something_else_is_asked() -> None:
    asked: list[str] = []
    archive = Archive()

    def write(prompt: str) -> str:
        asked.append(prompt)
        return "Codes came back."

    compactor = Compactor(window=20_000, trigger=("tokens", 6_000), target=("tokens", 4_000), summarizer=write)
    wire = conversation(40)
    for options in (
        {},
        {"instructions": "Name the codes."},
        {},
        {"force": True},
        {"before": lambda proposal: Pins(tools=frozenset({"f"}))},
    ):
        compactor.compact(wire, archive=archive, **options)
    assert len(asked) == 4, "the forced one is met by what was made before"
    edited = [wire[0], {"role": "user", "content": "Something else."}, *wire[2:]]
    compactor.compact(edited, archive=archive)
    assert len(asked) == 5
    longer = [*edited, *conversation(20)[1:]]
    compactor.compact(longer, archive=archive)
    assert len(asked) == 6, "with so much more it would be due again at once"


@COLORS
def test_a_hook_that_fails_after_a_pass_does_not_cost_another_summary(color: str) -> None:
    asked: list[str] = []
    broken = True

    def save(made: Any) -> None:
        if broken:
            raise OSError("the database is locked")

    def write(prompt: str) -> str:
        asked.append(prompt)
        return "Codes came back."

    compactor = Compactor(window=8_000, summarizer=write)
    wire = conversation(60)
    for _ in range(2):
        with pytest.raises(OSError, match="locked"):
            call(color, compactor, lambda view: "fine", wire, after=save)
    broken = False
    results: list[CompactionResult] = []
    call(color, compactor, lambda view: "fine", wire, after=save, on_result=results.append)
    assert results[0].changed
    assert len(asked) == 1
