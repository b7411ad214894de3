"""Reading a stream up to its first content: what refuses the request on the way, what counts as content, usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from contextfold import Compactor
from contextfold.calls.usage import Usage
from contextfold.errors import RefusedInStream
from contextfold.integrations.streams import AsyncOpenedStream, OpenedStream, StreamProgress, aopened, handed, opened

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
        ({"type": "response.output_item.added", "item": {"type": "message"}}, False),
        ({"type": "response.content_part.added", "part": {"type": "output_text"}}, False),
        ({"type": "response.output_text.delta", "delta": ""}, False),
        ({"type": "content.delta", "delta": "", "snapshot": ""}, False),
        ({"type": "logprobs.content.delta", "content": [], "snapshot": []}, False),
        ({"type": "content_block_delta", "delta": {"type": "text_delta", "text": ""}}, False),
        ({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": ""}}, True),
        ({"type": "text", "text": "", "snapshot": ""}, False),
        ({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": ""}}}, False),
        ({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}}, True),
    ],
)
def test_what_counts_as_content(event: dict[str, Any], is_content: bool) -> None:
    progress = StreamProgress()
    progress.see(event)
    assert progress.has_content is is_content


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_item.added", "item": {"type": "reasoning"}},
        {"type": "response.output_item.added", "item": {"type": "image_generation_call"}},
        {"type": "response.web_search_call.searching"},
        {"type": "response.image_generation_call.partial_image", "partial_image_b64": "aGk="},
        {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_start", "content_block": {"type": "web_search_tool_result"}},
    ],
)
@pytest.mark.parametrize("color", ["sync", "async"])
def test_what_a_model_does_before_its_first_word_is_told_while_it_does_it(event: dict[str, Any], color: str) -> None:
    """Searches, pictures and thinking of minutes came all at once, with the first piece of text."""
    read: list[str] = []

    class Stream:
        def __init__(self) -> None:
            self.events = iter([{"type": "response.created"}, event, {"type": "response.output_text.delta"}])

        def __next__(self) -> Any:
            read.append("event")
            return next(self.events)

        async def __anext__(self) -> Any:
            return next(self)

        def close(self) -> None: ...

    stream = opened(Stream()) if color == "sync" else asyncio.run(aopened(Stream()))
    assert len(read) == 2
    assert list(stream._ahead)[-1] == event


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


def test_a_helper_that_reads_to_the_end_raises_what_ended_the_stream_before_its_content() -> None:
    """The SDKs' own streams are generators: one that has raised just ends, and their helpers take that for the end."""
    begun = {"type": "message_start", "message": {"usage": {"input_tokens": 7}}}

    def broken() -> Iterator[Any]:
        yield begun
        raise ConnectionError("gone")

    class Helping:
        def __init__(self) -> None:
            self.events = broken()

        def __next__(self) -> Any:
            return next(self.events)

        def get_final_message(self) -> str:
            return f"whole, with {len(list(self.events))} more"

        def close(self) -> None: ...

    class Suspending(Helping):
        async def __anext__(self) -> Any:
            for event in self.events:
                return event
            raise StopAsyncIteration

        async def get_final_message(self) -> str:  # type: ignore[override]
            return super().get_final_message()

    async def check_it() -> None:
        stream = await aopened(Suspending())
        with pytest.raises(ConnectionError, match="gone"):
            await stream.get_final_message()

    asyncio.run(check_it())
    stream = opened(Helping())
    with pytest.raises(ConnectionError, match="gone"):
        stream.get_final_message()
    assert stream.get_final_message() == "whole, with 0 more"  # said once, as by the SDKs
    assert list(stream) == []


@pytest.mark.parametrize("events", [(), (FAILED,)])
def test_a_refusal_that_is_raised_on_the_way_is_one_of_the_request(events: tuple[Any, ...]) -> None:
    refusal = ValueError(TOO_LONG)
    stream = Blocking(refusal, *events)
    with pytest.raises(ValueError, match="too long"):
        opened(stream)
    assert stream.is_closed


def test_a_stream_that_is_traced_where_it_is_iterated_gives_its_events_there() -> None:
    """As OpenTelemetry's proxies do: ``__next__`` is the SDK's, and none of their class."""
    ended = []

    class Traced:
        def __init__(self, *events: Any) -> None:
            self.stream = Blocking(StopIteration(), *events)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.stream, name)

        def __iter__(self) -> Iterator[Any]:
            yield from self.stream.events
            ended.append(True)

    hello = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}
    assert list(opened(Traced(hello, hello))) == [hello, hello]
    assert ended == [True]


def test_a_proxy_that_has_nothing_in_its_class_gives_the_events_of_its_stream() -> None:
    """``for`` does not see what such a proxy stands for; what is handed out has it in its class."""

    class Proxy:
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __getattr__(self, name: str) -> Any:
            return getattr(self.stream, name)

    class Suspending:
        def __init__(self, *events: Any) -> None:
            self.events = iter(events)

        async def __anext__(self) -> Any:
            for event in self.events:
                return event
            raise StopAsyncIteration

    async def read() -> list[Any]:
        return [event async for event in await aopened(Proxy(Suspending(hello, hello)))]

    hello = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}
    assert asyncio.run(read()) == [hello, hello]
    assert list(opened(Proxy(Blocking(StopIteration(), hello, hello)))) == [hello, hello]


def test_a_stream_that_poses_as_awaitable_is_handed_to_blocking_code_as_it_is() -> None:
    class BothColors(Blocking):
        def __await__(self) -> Any:
            raise AssertionError("it is no coroutine")

        def __iter__(self) -> Any:
            return self

    hello = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}
    said = [{"role": "user", "content": "Hello"}]
    assert list(Compactor().call(lambda view: opened(BothColors(StopIteration(), hello)), said)) == [hello]
    assert list(Compactor().call(lambda view: BothColors(StopIteration(), hello), said)) == [hello]


def test_an_answer_that_is_no_stream_though_its_class_has_a_next_is_the_callers_as_it_is() -> None:
    class Answer:
        def __aiter__(self) -> Any:
            raise TypeError("not a stream")

        async def __anext__(self) -> Any:
            raise StopAsyncIteration

    answer = Answer()
    assert asyncio.run(aopened(answer)) is answer


def test_an_async_generator_that_is_refused_inside_is_closed_and_the_refusal_raised() -> None:
    closed = []

    async def generated() -> AsyncIterator[Any]:
        try:
            yield {"error": {"message": TOO_LONG, "code": 400}, "choices": []}
            yield {}
        finally:
            closed.append(True)

    async def check_it() -> None:
        with pytest.raises(RefusedInStream):
            await AsyncOpenedStream.opened(generated(), lambda usage: None)
        assert closed == [True]

    asyncio.run(check_it())


def test_what_stands_in_the_place_of_a_stream_and_cannot_be_closed_says_its_refusal_all_the_same() -> None:
    """As what a tracer puts there. Async code was told of the refusal, and blocking code of a missing ``close``."""
    refusal = {"error": {"message": TOO_LONG, "code": 400}, "choices": []}
    hello = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}
    with pytest.raises(RefusedInStream):
        handed(map(dict, [refusal]))
    with handed(map(dict, [hello])) as stream:
        assert list(stream) == [hello]
    stream.close()
