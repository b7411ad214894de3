"""Reading a stream up to its first content: what refuses the request on the way, what counts as content, usage."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from contextfold.calls.usage import Usage
from contextfold.errors import RefusedInStream
from contextfold.integrations.streams import OpenedStream, StreamProgress, aopened, opened

TOO_LONG = "prompt is too long: 9000 tokens > 8000 maximum"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "message": TOO_LONG, "code": "invalid_request_error"},
        {"type": "error", "error": {"message": TOO_LONG}},
        {"error": {"message": TOO_LONG, "code": 400}, "choices": []},
        {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "No."}}},
        {"type": "chunk", "chunk": {"error": {"message": TOO_LONG}}},
    ],
)
def test_a_refusal_for_size_before_any_content_is_raised_with_what_was_said(event: dict[str, Any]) -> None:
    with pytest.raises(RefusedInStream) as caught:
        StreamProgress().see(event)
    assert caught.value.body


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "message": "Overloaded"},
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Sorry."}}},
        {"type": "response.failed", "response": {"error": None}},
        {"type": "ping"},
    ],
)
def test_all_else_is_left_to_the_caller(event: dict[str, Any]) -> None:
    progress = StreamProgress()
    progress.see(event)
    assert not progress.has_content


def test_an_error_after_content_is_left_to_the_caller() -> None:
    progress = StreamProgress()
    progress.see({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}})
    progress.see({"type": "error", "message": TOO_LONG})
    assert progress.has_content


@pytest.mark.parametrize(
    ("event", "is_content"),
    [
        ({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, False),
        ({"choices": [{"delta": {"content": "Hi"}}]}, True),
        ({"choices": [{"delta": {"reasoning_content": "Hm"}}]}, True),
        ({"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}, True),
        ({"choices": [], "usage": {"prompt_tokens": 9}}, False),
        ({"choices": [{"delta": None, "finish_reason": "stop"}]}, False),
        ({"type": "chunk", "chunk": {"choices": [{"delta": {"content": "Hi"}}]}}, True),
        ({"type": "message_start", "message": {}}, False),
        ({"type": "content_block_start"}, False),
        ({"type": "content_block_delta"}, True),
        ({"type": "response.created"}, False),
        ({"type": "response.output_text.delta", "delta": "Hi"}, True),
    ],
)
def test_what_counts_as_content(event: dict[str, Any], is_content: bool) -> None:
    progress = StreamProgress()
    progress.see(event)
    assert progress.has_content is is_content


def test_a_stream_without_any_content_is_handed_out_whole_and_keeps_its_usage() -> None:
    class Stream:
        def __init__(self) -> None:
            self.events = iter([{"type": "message_start", "message": {"usage": {"input_tokens": 7}}}, {"type": "ping"}])

        def __next__(self) -> Any:
            return next(self.events)

        def close(self) -> None: ...

    told: list[Usage] = []
    opened = OpenedStream(Stream(), told.append)
    assert opened.contextfold_usage.input_tokens == 7
    assert [event["type"] for event in opened] == ["message_start", "ping"]
    assert told == []  # it was there when the stream was handed out
    assert list(OpenedStream(Stream(), told.append).text_stream) == []


def test_what_cannot_be_dumped_has_no_content() -> None:
    progress = StreamProgress()
    progress.see(SimpleNamespace(type=None, error=None, choices=[SimpleNamespace(delta=object())]))
    assert not progress.has_content


class Ending:
    """A stream of an SDK that gives some events and then fails."""

    def __init__(self, error: Exception, *events: Any) -> None:
        self.events, self.error, self.is_closed = list(events), error, False

    def __next__(self) -> Any:
        if self.events:
            return self.events.pop(0)
        raise self.error

    async def __anext__(self) -> Any:
        return next(self)


class Blocking(Ending):
    def close(self) -> None:
        self.is_closed = True


class Suspending(Ending):
    async def close(self) -> None:
        self.is_closed = True


FAILED = {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Sorry."}}}


def test_what_came_before_an_error_that_is_the_callers_is_given_and_then_the_error() -> None:
    stream = opened(Blocking(ConnectionError("gone"), FAILED))
    assert next(stream) == FAILED
    with pytest.raises(ConnectionError, match="gone"):
        next(stream)

    async def check_it() -> None:
        stream = await aopened(Suspending(ConnectionError("gone"), FAILED))
        assert await anext(stream) == FAILED
        with pytest.raises(ConnectionError, match="gone"):
            await anext(stream)

    asyncio.run(check_it())


@pytest.mark.parametrize("events", [(), (FAILED,)])
def test_a_refusal_that_is_raised_on_the_way_is_one_of_the_request(events: tuple[Any, ...]) -> None:
    refusal = ValueError(TOO_LONG)
    stream = Blocking(refusal, *events)
    with pytest.raises(ValueError, match="too long"):
        opened(stream)
    assert stream.is_closed
