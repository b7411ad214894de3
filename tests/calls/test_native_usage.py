"""A provider's own compaction and the input tokens that it reports: they are about less than what was sent."""

from __future__ import annotations

from typing import Any

import pytest

from contextfold import CompactionResult, Compactor
from contextfold.integrations.streams import opened
from contextfold.testing.dict_store import DictStore
from contextfold.tokens import Calibration

WORDS = "the words of a text and some more of them "
SUMMARY = {"type": "compaction", "content": "The user asks for reports, and got some."}
ENCRYPTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "E" * 80}
COMPACTED = {"role": "assistant", "content": [SUMMARY, {"type": "text", "text": "Here it is."}]}


def turns(count: int, first: int = 0) -> list[dict[str, Any]]:
    """About 600 tokens each."""
    said = ((f"Report {n}: " + WORDS * 60, f"Question {n}: " + WORDS * 5) for n in range(first, first + count))
    roles = ("assistant", "user")
    return [{"role": role, "content": text} for both in said for role, text in zip(roles, both, strict=True)]


def session(count: int, compaction: dict[str, Any], later: int = 0) -> list[dict[str, Any]]:
    task = {"role": "user", "content": "Write the reports."}
    return [task, *turns(count), compaction, {"role": "user", "content": "Go on."}, *turns(later, count)]


def told(read: int, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "Done."}], "usage": {"input_tokens": read, "output_tokens": 3}, **more}


class Talk:
    """One call after the other, whose answers report what they are given."""

    def __init__(self, format: str) -> None:
        self.asked = 0
        self.sent: list[int] = []
        self.results: list[CompactionResult] = []
        self.compactor = Compactor(window=200_000, summarizer=self._summary)
        self.format = format

    def _summary(self, prompt: str) -> str:
        self.asked += 1
        return "Reports were written."

    def __call__(self, wire: list[dict[str, Any]], answer: Any) -> CompactionResult:
        def send(view: list[Any]) -> Any:
            self.sent.append(len(view))
            return answer

        last = self.results[-1] if self.results else None
        known = {"calibration": last.calibration} if last else {}
        record = last.compaction if last else None
        self.compactor.call(send, wire, record, format=self.format, on_result=self.results.append, **known)
        return self.results[-1]


ITERATIONS = [{"type": "compaction", "input_tokens": 60_000}, {"type": "message", "input_tokens": 9_000}]


def _events() -> Any:
    yield {"type": "message_start", "message": {"usage": {"input_tokens": 9_000, "output_tokens": 1}}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction"}}
    yield {"type": "content_block_delta", "delta": {"type": "compaction_delta", "content": "The user asks."}}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 9_000}}


class Stream:
    def __init__(self) -> None:
        self._events = _events()

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._events)

    def close(self) -> None:
        self._events.close()


@pytest.mark.parametrize(
    ("format", "answer"),
    [
        ("anthropic", told(9_000, content=COMPACTED["content"])),
        ("anthropic", {**told(9_000), "usage": {"input_tokens": 9_000, "iterations": ITERATIONS}}),
        ("openai-responses", {"output": [ENCRYPTED, {"type": "message"}], "usage": {"input_tokens": 9_000}}),
        ("openai-responses", {"output": [{**ENCRYPTED, "type": "context_compaction"}], "usage": {"input_tokens": 9}}),
        ("anthropic", "a stream"),
    ],
)
def test_an_answer_in_which_the_provider_compacted_is_kept_and_teaches_nothing(format: str, answer: Any) -> None:
    talk = Talk(format)
    result = talk(session(60, turns(1)[0]), opened(Stream()) if answer == "a stream" else answer)
    assert (len(talk.sent), talk.asked) == (1, 0)
    assert result.calibration == Calibration()


@pytest.mark.parametrize(("format", "item"), [("anthropic", COMPACTED), ("openai-responses", ENCRYPTED)])
@pytest.mark.parametrize("share", [0.0, 0.8, 1.0])
def test_what_stands_before_a_providers_own_compaction_may_be_read_or_not(
    format: str, item: dict[str, Any], share: float
) -> None:
    """``share``: of what stands before it, how much is counted. Nothing is sent again, nor learned, in any turn."""
    talk = Talk(format)
    wire = session(60, item, later=10)
    for turn in range(4):
        behind = sum(len(str(entry["content"])) for entry in wire[wire.index(item) + 1 :]) // 5
        result = talk(wire, told(behind + int(30_000 * share)))
        assert (len(talk.sent), talk.asked) == (turn + 1, 0)
        assert result.calibration == Calibration()
        assert not {"request_overflowed", "usage_distrusted"} & {event.name for event in result.events}
        wire = [*wire, *turns(1, 100 + turn)]


def test_what_stands_behind_it_is_read_whole_or_the_request_is_made_smaller() -> None:
    talk = Talk("anthropic")
    talk(session(10, COMPACTED, later=60), told(4_000))
    assert len(talk.sent) == 2
    assert "truncated_silently" in str(talk.results[-1].trigger)


def test_usage_teaches_again_once_a_pass_has_dropped_what_stood_before() -> None:
    talk = Talk("anthropic")
    wire = session(60, COMPACTED, later=20)
    view = talk.compactor.compact(wire, format="anthropic", force=True)
    assert len(view.messages) < 50
    assert view.after_usage(int(1.2 * view.estimated_tokens)).calibration.observations == 1
    whole = talk.compactor.compact(wire, format="anthropic")
    assert whole.after_usage(20_000).calibration == Calibration()


def test_a_request_to_a_session_is_judged_alike() -> None:
    sent: list[int] = []

    def send(view: list[Any]) -> Any:
        sent.append(len(view))
        return told(400)

    kept = Compactor(window=200_000).session("thread", DictStore())
    kept.append(session(60, COMPACTED))
    kept.call(send)
    assert len(sent) == 1
