"""The official SDKs with a compaction around them, over HTTP against the provider on loopback."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, ToolCall

import building
import contextfold
from building import thinking_turns
from contextfold import Compactor, formats
from contextfold.errors import InputError, RefusedInStream, StillTooLong
from contextfold.integrations import anthropic as over_anthropic
from contextfold.integrations import litellm as over_litellm
from contextfold.integrations import openai as over_openai
from contextfold.integrations import wrapping
from contextfold.integrations.wrapping import endpoint_of, is_async

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

Wire = list[dict[str, Any]]
WINDOW = 8_000
MODEL = "small"


def conversation(steps: int, *, words: int = 120) -> Wire:
    """As Chat Completions has it, without the system prompt, which the other APIs have beside the messages."""
    return building.conversation(steps, words=words)[1:]


def in_format(wire: Wire, format: str) -> list[Any]:
    return formats.get(format).encode(formats.decode(wire, formats.get("openai-chat")))


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(windows={MODEL: WINDOW}, default_window=100_000) as running:
        yield running


# ---- every method, in every color ----

SHAPES = ("chat", "responses", "messages", "messages.stream")
"""The methods: ``chat.completions.create``, ``responses.create``, ``messages.create`` and ``messages.stream``."""


def arguments(shape: str, wire: Wire, *, stream: bool) -> dict[str, Any]:
    if shape == "chat":
        return {"model": MODEL, "messages": wire, "stream": stream}
    if shape == "responses":
        return {"model": MODEL, "input": in_format(wire, "openai-responses"), "stream": stream}
    anthropics = {"model": MODEL, "messages": in_format(wire, "anthropic"), "system": "Be brief.", "max_tokens": 300}
    return anthropics if shape == "messages.stream" else anthropics | {"stream": stream}


def client_of(server: ProviderServer, shape: str, *, is_async: bool) -> Any:
    if shape.startswith("messages"):
        made: Any = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        return made(base_url=server.anthropic_url, api_key="any", max_retries=0)
    made = openai.AsyncOpenAI if is_async else openai.OpenAI
    return made(base_url=server.openai_url, api_key="any", max_retries=0)


def wrapped(client: Any, shape: str, compactor: Compactor, **state: Any) -> Any:
    if shape == "messages.stream":
        return over_anthropic.with_compaction(client.messages.stream, compactor, **state)
    if shape == "messages":
        return over_anthropic.with_compaction(client.messages.create, compactor, **state)
    method = client.chat.completions.create if shape == "chat" else client.responses.create
    return over_openai.with_compaction(method, compactor, **state)


def text_of(shape: str, answer: Any) -> str:
    if shape == "chat":
        return str(answer.choices[0].message.content)
    return str(answer.output_text if shape == "responses" else answer.content[0].text)


def piece_of(shape: str, event: Any) -> str:
    if shape == "chat":
        return (event.choices[0].delta.content or "") if event.choices else ""
    if shape == "responses":
        return event.delta if event.type == "response.output_text.delta" else ""
    is_text = event.type == "content_block_delta" and event.delta.type == "text_delta"
    return event.delta.text if is_text else ""


def asked(
    server: ProviderServer, shape: str, compactor: Compactor, wire: Wire, *, color: str, stream: bool
) -> tuple[str, Any]:
    """The answer's text, and what was called for it."""
    given = arguments(shape, wire, stream=stream)
    if color == "sync":
        with client_of(server, shape, is_async=False) as client:
            send = wrapped(client, shape, compactor)
            if shape == "messages.stream":
                with send(**given) as events:
                    return "".join(events.text_stream), send
            answer = send(**given)
            return ("".join(piece_of(shape, event) for event in answer) if stream else text_of(shape, answer)), send

    async def ask() -> tuple[str, Any]:
        async with client_of(server, shape, is_async=True) as client:
            send = wrapped(client, shape, compactor)
            if shape == "messages.stream":
                async with send(**given) as events:
                    return "".join([piece async for piece in events.text_stream]), send
            answer = await send(**given)
            if not stream:
                return text_of(shape, answer), send
            return "".join([piece_of(shape, event) async for event in answer]), send

    return asyncio.run(ask())


EVERY = [
    (shape, color, stream)
    for shape, color, stream in itertools.product(SHAPES, ("sync", "async"), (False, True))
    if stream or shape != "messages.stream"
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("shape", ["chat", "messages"])
def test_an_answer_limit_is_refused_once_and_not_in_every_turn(
    server: ProviderServer, shape: str, stream: bool
) -> None:
    compactor, wire = Compactor(window=WINDOW), conversation(28)
    with client_of(server, shape, is_async=False) as client:
        send = wrapped(client, shape, compactor)
        for steps in range(8, 29, 2):
            given = arguments(shape, wire[: 1 + 2 * steps], stream=stream) | {"max_tokens": 5_000}
            answer = send(**given)
            if stream:
                list(answer)
    limits = [request.answer_limit for request in server.requests if request.status == 200]
    assert sum(request.status != 200 for request in server.requests) == 1
    assert max(limits) == 5_000 > min(limits)


@pytest.mark.parametrize(("shape", "color", "stream"), EVERY)
@pytest.mark.parametrize("window", [None, pytest.param(WINDOW, marks=pytest.mark.strict)])
def test_a_conversation_larger_than_the_window_is_answered(
    server: ProviderServer, shape: str, color: str, stream: bool, window: int | None
) -> None:
    """With and without a known window, and the answer is about what was sent."""
    wire = conversation(100)
    text, send = asked(server, shape, Compactor(window=window), wire, color=color, stream=stream)
    assert text.startswith("Digest of")
    assert len(server.requests) == (1 if window else 2)
    assert server.requests[-1].tokens <= WINDOW
    assert server.requests[-1].status == 200
    assert "ledger_2019" in server.requests[-1].text
    assert send.compaction is not None
    assert send.result.compaction is send.compaction
    given = arguments(shape, wire, stream=stream)
    assert sum(send.result.ledger.counts().values()) == len(given["input" if shape == "responses" else "messages"])


@pytest.mark.parametrize(("shape", "color", "stream"), EVERY)
def test_a_short_conversation_goes_through_as_it_was_written(
    server: ProviderServer, shape: str, color: str, stream: bool
) -> None:
    wire = conversation(3)
    _, send = asked(server, shape, Compactor(window=WINDOW), wire, color=color, stream=stream)
    given = arguments(shape, wire, stream=stream)
    sent = server.requests[0].body
    assert {name: sent[name] for name in given if name != "stream"} == {
        name: value for name, value in given.items() if name != "stream"
    }
    assert send.compaction is None


@pytest.mark.parametrize(
    ("shape", "wording"),
    [("chat", "openai-chat-stream"), ("responses", "native"), ("messages", "anthropic-stream"),
     ("messages.stream", "anthropic-stream")],
)  # fmt: skip
@pytest.mark.parametrize("color", ["sync", "async"])
def test_an_overflow_inside_a_stream_is_caught_before_the_first_content(shape: str, wording: str, color: str) -> None:
    """The provider answers 200 and then says in the stream that the prompt is too long."""
    with ProviderServer(windows={MODEL: WINDOW}, overflow=wording) as server:
        text, send = asked(server, shape, Compactor(window=100_000), conversation(100), color=color, stream=True)
        assert [request.status for request in server.requests] == [200, 200]
        assert server.requests[0].error
    assert text.startswith("Digest of")
    assert send.result.trigger == "overflow: prompt_too_long"


# ---- streams behave like the SDK's ----


def test_a_stream_is_the_sdks_for_everyone_who_asks(server: ProviderServer) -> None:
    with client_of(server, "chat", is_async=False) as client:
        send = wrapped(client, "chat", Compactor(window=WINDOW))
        own = [
            type(event) for event in client.chat.completions.create(**arguments("chat", conversation(2), stream=True))
        ]
        stream = send(**arguments("chat", conversation(2), stream=True))
        assert isinstance(stream, openai.Stream)
        assert stream.response.status_code == 200
        with stream as entered:
            first = next(entered)
            assert [type(first), *(type(event) for event in entered)] == own
        assert stream.response.is_closed
        unread = send(**arguments("chat", conversation(2), stream=True))
        unread.close()
        assert unread.response.is_closed


def test_anthropics_stream_helper_keeps_its_means(server: ProviderServer) -> None:
    with client_of(server, "messages", is_async=False) as client:
        send = wrapped(client, "messages.stream", Compactor(window=WINDOW))
        with send(**arguments("messages.stream", conversation(2), stream=True)) as stream:
            events = [event.type for event in stream]
            message = stream.get_final_message()
        assert {"message_start", "content_block_delta", "text", "message_stop"} <= set(events)
        with send(**arguments("messages.stream", conversation(2), stream=True)) as stream:
            assert stream.get_final_text() == message.content[0].text


def test_usage_is_learned_from_a_stream_whose_helper_alone_reads_it(server: ProviderServer) -> None:
    with client_of(server, "responses", is_async=False) as client:
        send = over_openai.with_compaction(client.responses.stream, Compactor(window=WINDOW))
        with send(model=MODEL, input="Hello. " * 500) as stream:
            assert stream.get_final_response().status == "completed"
        assert send.calibration is not None
        assert send.calibration.observations == 1


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("shape", ["chat", "messages"])
@pytest.mark.parametrize("kind", ["with_raw_response", "with_streaming_response"])
@pytest.mark.parametrize("layer", ["none", "a partial"])
def test_raw_responses_are_those_of_the_sdk_and_a_refusal_before_them_is_recovered(
    server: ProviderServer, kind: str, shape: str, color: str, layer: str
) -> None:
    given = arguments(shape, conversation(100), stream=False)
    kept: dict[tuple[str, str], int] = {}
    store = SimpleNamespace(
        load_window=lambda endpoint, model: None,
        save_window=lambda endpoint, model, tokens: kept.update({(endpoint, model): tokens}),
    )
    compactor = Compactor(windows=store)

    def send_of(client: Any) -> Any:
        holder = client.chat.completions if shape == "chat" else client.messages
        over = over_openai if shape == "chat" else over_anthropic
        method = getattr(holder, kind).create
        if layer == "a partial":
            method = functools.partial(method, model=MODEL)
        return over.with_compaction(method, compactor)

    async def later() -> Any:
        async with client_of(server, shape, is_async=True) as client:
            answer = send_of(client)(**given)
            if kind == "with_raw_response":
                said = (await answer).parse()
                return (await said) if inspect.isawaitable(said) else said
            async with answer as response:
                said = await response.parse()
            assert response.http_response.is_closed
            return said

    def now() -> Any:
        with client_of(server, shape, is_async=False) as client:
            answer = send_of(client)(**given)
            if kind == "with_raw_response":
                return answer.parse()
            with answer as response:
                said = response.parse()
            assert response.http_response.is_closed
            return said

    said = now() if color == "sync" else asyncio.run(later())
    assert text_of(shape, said).startswith("Digest of")
    assert [request.status for request in server.requests] == [400, 200]
    assert [endpoint for endpoint, _ in kept] == [str(client_of(server, shape, is_async=False).base_url)]


@pytest.mark.parametrize("kind", ["with_raw_response", "with_streaming_response"])
def test_a_model_asked_for_raw_responses_writes_the_summary_too(kind: str) -> None:
    with ProviderServer(windows={MODEL: WINDOW}) as server:
        client = openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0)
        method = getattr(client.chat.completions, kind).create
        create = over_openai.with_compaction(method, Compactor(window=WINDOW, summarizer="same"))
        create(model=MODEL, messages=conversation(100))
    assert create.result.summary.calls
    assert create.result.summary.text.startswith("Digest of")


def test_a_function_of_ones_own_around_an_async_method_is_awaited(server: ProviderServer) -> None:
    async def main() -> Any:
        async with client_of(server, "chat", is_async=True) as client:
            method = client.chat.completions.create

            @functools.wraps(method)
            def create(**arguments: Any) -> Any:
                return method(**arguments)

            send: Any = over_openai.with_compaction(create, Compactor())
            return await send(model=MODEL, messages=conversation(100))

    assert text_of("chat", asyncio.run(main())).startswith("Digest of")


def test_a_manager_that_fails_to_enter_needs_no_exit() -> None:
    with ProviderServer(windows={MODEL: WINDOW}) as server, client_of(server, "messages", is_async=False) as client:
        server.faults.add(Fault.server_error())
        send = wrapped(client, "messages.stream", Compactor(window=WINDOW))
        with pytest.raises(anthropic.InternalServerError):
            send(**arguments("messages.stream", conversation(2), stream=True)).__enter__()


@pytest.mark.parametrize("color", ["sync", "async"])
def test_other_errors_and_errors_after_the_first_content_are_the_callers(color: str) -> None:
    with ProviderServer(windows={MODEL: WINDOW}) as server:
        server.faults.add(Fault.rate_limit(), times=1)
        with pytest.raises(openai.RateLimitError):
            asked(server, "chat", Compactor(), conversation(2), color=color, stream=True)
        server.faults.clear()
        server.faults.add(Fault.cut(after=1), times=1)
        with pytest.raises((openai.APIError, Exception)) as caught:
            asked(server, "chat", Compactor(), conversation(2), color=color, stream=True)
        assert not isinstance(caught.value, StillTooLong | RefusedInStream)
        assert len(server.requests) == 2


def test_a_refusal_inside_a_stream_that_nothing_can_mend_names_what_was_said() -> None:
    wire = [{"role": "user", "content": "fact " * 9_000}]
    with ProviderServer(windows={MODEL: WINDOW}) as server:
        with pytest.raises(StillTooLong) as caught:
            asked(server, "responses", Compactor(window=100_000), wire, color="sync", stream=True)
        assert isinstance(caught.value.__cause__, RefusedInStream)
        assert "context window" in str(caught.value.__cause__)
        assert len(server.requests) == 1


# ---- a conversation over its turns ----


@pytest.mark.parametrize("shape", ["chat", "responses", "messages"])
def test_a_loop_that_appends_the_sdks_own_objects_stays_cheap_and_paired(server: ProviderServer, shape: str) -> None:
    """Answers are appended as the SDK gave them, calls and all, as its documentation shows."""
    numbers = itertools.count()

    def answer(_: Any) -> Answer:
        return Answer("Looking.", tool_calls=(ToolCall("read_file", {"path": f"/srv/module_{next(numbers)}.py"}),))

    with (
        ProviderServer(windows={MODEL: WINDOW}, answers=answer) as server,
        client_of(server, shape, is_async=False) as client,
    ):
        send = wrapped(client, shape, Compactor(window=WINDOW))
        history: list[Any] = [{"role": "user", "content": "Why are invoices late?"}]
        for turn in range(25):
            sent = len(history)
            output = " ".join(f"value{turn}x{n}" for n in range(150))
            if shape == "chat":
                message = send(model=MODEL, messages=history).choices[0].message
                history.append(message)
                history += [
                    {"role": "tool", "tool_call_id": one.id, "content": output} for one in message.tool_calls or ()
                ]
            elif shape == "responses":
                items = send(model=MODEL, input=history).output
                history += items
                history += [
                    {"type": "function_call_output", "call_id": item.call_id, "output": output}
                    for item in items
                    if item.type == "function_call"
                ]
            else:
                content = send(model=MODEL, messages=history, max_tokens=200).content
                history.append({"role": "assistant", "content": content})
                results = [
                    {"type": "tool_result", "tool_use_id": block.id, "content": output}
                    for block in content
                    if block.type == "tool_use"
                ]
                history.append({"role": "user", "content": results})
        assert {request.status for request in server.requests} == {200}
        assert len(server.requests) == 25
    assert send.result.compaction is not None
    assert send.calibration.observations > 20  # not the first ones, which are tiny
    assert sum(send.result.ledger.counts().values()) == sent


def test_the_state_of_a_conversation_can_be_stored_and_taken_up_again(server: ProviderServer) -> None:
    wire = conversation(100)
    _, send = asked(server, "chat", Compactor(window=WINDOW), wire, color="sync", stream=False)
    with client_of(server, "chat", is_async=False) as client:
        again = wrapped(
            client, "chat", Compactor(window=WINDOW), previous=send.compaction, calibration=send.calibration
        )
        again(model=MODEL, messages=wire)
    assert not again.result.changed
    assert server.requests[-1].body["messages"] == server.requests[-2].body["messages"]


def test_usage_at_the_end_of_a_stream_corrects_the_next_turn(server: ProviderServer) -> None:
    """Chat Completions says it only at the end, and only if asked to."""
    with client_of(server, "chat", is_async=False) as client:
        send = wrapped(client, "chat", Compactor(window=WINDOW))
        given = arguments("chat", conversation(10), stream=True)
        stream = send(**given, stream_options={"include_usage": True})
        assert send.calibration.observations == 0
        assert any(event.usage for event in stream)  # the last one, and not read to the end
        stream.close()
        assert send.calibration.observations == 1
        list(send(**given))
        assert send.calibration.observations == 1


def test_usage_of_a_turn_that_is_over_is_not_taken_for_the_one_that_followed(server: ProviderServer) -> None:
    with client_of(server, "chat", is_async=False) as client:
        send = wrapped(client, "chat", Compactor(window=WINDOW))
        options = {"stream_options": {"include_usage": True}}
        late = send(**arguments("chat", conversation(10), stream=True), **options)
        list(send(**arguments("chat", conversation(20), stream=True), **options))
        list(late)
        assert send.calibration.observations == 1


def test_a_request_whose_history_the_provider_keeps_goes_through_as_it_is(server: ProviderServer) -> None:
    """There is nothing here to compact: an error of the provider is the caller's as well."""
    items = in_format(conversation(60), "openai-responses")
    with client_of(server, "responses", is_async=False) as client:
        send = wrapped(client, "responses", Compactor(window=2_000))
        with pytest.raises(openai.BadRequestError, match="resp_1"):
            send(model=MODEL, input=items, previous_response_id="resp_1")
    assert server.requests[0].body["input"] == items

    async def ask() -> None:
        async with client_of(server, "responses", is_async=True) as client:
            with pytest.raises(openai.BadRequestError, match="resp_1"):
                await wrapped(client, "responses", Compactor())(
                    model=MODEL, input="Hi", previous_response_id="resp_1", stream=True
                )

    asyncio.run(ask())
    assert send.result is None
    assert len(server.requests) == 2


ELSEWHERE = [
    (
        over_openai,
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "42"}]},
        "previous_response_id",
    ),
    (over_openai, {"input": [{"type": "function_call_output", "call_id": "c", "output": "42"}]}, "conversation"),
    (
        over_anthropic,
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "42"}]}]},
        "thread",
    ),
]


@pytest.mark.parametrize(("wrapper", "given", "name"), ELSEWHERE)
def test_what_the_provider_keeps_may_be_named_beside_the_arguments(
    wrapper: Any, given: dict[str, Any], name: str
) -> None:
    """Methods that do not name the field take it in ``extra_body``. The result was told as a text of the user."""
    sent: list[dict[str, Any]] = []
    more = {name: {"type": "continue", "id": "t"} if name == "thread" else "resp_1"}
    request = {"model": MODEL, **given, "extra_body": more}
    wrapper.with_compaction(lambda **given: sent.append(given), Compactor(window=2_000))(**request)
    assert sent == [request]


@pytest.mark.parametrize("kind", [{"type": "item_reference"}, {"type": None}, {}])
def test_items_that_stand_for_others_go_through_as_they_are(kind: dict[str, Any]) -> None:
    """What the provider keeps under them can neither be summarized nor seen to be a call that has its result."""
    sent: list[dict[str, Any]] = []
    create = over_openai.with_compaction(lambda **given: sent.append(given), Compactor(window=2_000))
    output = {"type": "function_call_output", "call_id": "call_1", "output": "done " * 9_000}
    items = [{"role": "user", "content": "go"}, {**kind, "id": "fc_1"}, output]
    create(model=MODEL, input=items)
    assert sent == [{"model": MODEL, "input": items}]


def test_a_tool_that_is_added_behind_the_servers_own_compaction_stays() -> None:
    """As the SDK's tool runner sends it: nothing else says that there is such a tool."""
    sent: list[dict[str, Any]] = []
    create = over_anthropic.with_compaction(lambda **given: sent.append(given), Compactor(window=2_000))
    added = {"type": "tool_addition", "tool": {"type": "tool_reference", "tool_name": "fetch"}}
    asked = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": [{"type": "compaction", "content": "Said hello."}]},
        {"role": "system", "content": [added]},
    ]
    create(model=MODEL, max_tokens=300, messages=asked)
    assert sent[0]["messages"] == asked


def test_a_request_that_goes_on_in_a_thread_goes_through_as_it_is_and_one_that_begins_it_is_compacted() -> None:
    """A result whose call the provider holds is no broken list, which would be mended."""
    sent: list[dict[str, Any]] = []
    create = over_anthropic.with_compaction(lambda **given: sent.append(given), Compactor(window=2_000))
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done " * 9_000}
    goes_on = {
        "messages": [{"role": "user", "content": [result]}],
        "thread": {"type": "continue", "previous_message_id": "msg_1"},
    }
    create(model=MODEL, max_tokens=300, **goes_on)
    assert sent[0] == {"model": MODEL, "max_tokens": 300, **goes_on}
    assert create.result is None

    whole = in_format(conversation(60), "anthropic")
    create(model=MODEL, max_tokens=300, messages=whole, thread={"type": "create"})
    assert len(sent[1]["messages"]) < len(whole)
    assert sent[1]["thread"] == {"type": "create"}


def test_every_request_of_a_tool_runner_is_compacted_where_its_refusal_says() -> None:
    """It makes its requests by itself: around the runner, not one of them was compacted."""
    runner = getattr(anthropic.Anthropic(api_key="any").beta.messages, "tool_runner", len)
    if "thread" not in inspect.signature(runner).parameters:
        pytest.skip("this release of the SDK has no tool runner, or sends its requests in another way")

    @anthropic.beta_tool  # type: ignore[untyped-decorator, unused-ignore]
    def read_file(path: str) -> str:
        """Reads a file."""
        return f"{path} says " + "word " * 900

    numbers = itertools.count()

    def answer(_: Any) -> Answer:
        return Answer("", tool_calls=(ToolCall("read_file", {"path": f"/m_{next(numbers)}.py"}),))

    with ProviderServer(windows={MODEL: WINDOW}, answers=answer) as server:
        client = anthropic.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0)
        messages = client.beta.messages
        with pytest.raises(InputError, match=r"client\.beta\.messages\.create = with_compaction\(.* thread=False"):
            over_anthropic.with_compaction(messages.tool_runner, Compactor())
        create = messages.create = over_anthropic.with_compaction(messages.create, Compactor(window=WINDOW))
        asked = {"model": MODEL, "max_tokens": 300, "messages": [{"role": "user", "content": "Read all."}]}
        messages.tool_runner(**asked, tools=[read_file], max_iterations=20, thread=False).until_done()
    assert create.result.ledger.counts()["summarized"] > 20


@pytest.mark.parametrize("keeps", ["nothing", "a ledger"])
def test_every_request_of_openais_tool_runner_is_compacted_as_the_page_says(keeps: str) -> None:
    """With a ledger it asks a copy of its client, whose methods no one wrapped."""
    if not find_spec("openai.lib.responses_tool_runner"):
        pytest.skip("this release of the SDK has no tool runner for Responses")
    runners = import_module("openai.lib.responses_tool_runner")
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    tool = {"type": "function", "name": "read", "parameters": schema, "strict": True}
    numbers = itertools.count()

    def answer(_: Any) -> Answer:
        return Answer("Done.") if next(numbers) > 19 else Answer("", tool_calls=(ToolCall("read", {}),))

    with (
        ProviderServer(windows={MODEL: WINDOW}, answers=answer) as server,
        openai.OpenAI(base_url=server.openai_url, api_key="any") as opened,
    ):
        client: Any = opened.with_options(max_retries=0)
        create = client.responses.create = over_openai.with_compaction(client.responses.create, Compactor())
        client.with_options = lambda **_: client
        runner = runners.ResponsesToolRunner(functions=[runners.RegisteredFunction(tool, lambda _: "word " * 900)])
        ledger = runners.ResponsesToolLedger("a run", [].append) if keeps == "a ledger" else None
        asked = {"model": MODEL, "input": [{"role": "user", "content": "Read all."}], "store": False}
        assert runner.run(client, asked, max_steps=30, ledger=ledger).output_text == "Done."
    assert create.result is not None
    assert create.result.ledger.counts()["summarized"] > 10


def test_of_two_calls_at_a_time_the_first_that_ends_leaves_its_record_and_the_last_its_result() -> None:
    """The other's record starts from a view that is no longer in force, and its usage is of another view."""
    inner: list[Any] = []

    def method(*, messages: Wire, stream: bool = False) -> Any:
        if not stream:
            return {"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}
        if not inner:
            create(messages=conversation(90))
            inner.append(create.compaction)
        piece = {"choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": None}]}
        return iter([piece, {"choices": [], "usage": {"prompt_tokens": 5_000, "completion_tokens": 1}}])

    create: Any = over_openai.with_compaction(method, Compactor(window=WINDOW))
    stream = iter(create(messages=conversation(60), stream=True))
    assert create.compaction is inner[0]
    assert create.result.compaction is not inner[0]
    next(stream)
    create(messages=conversation(95))
    newest, taught = create.result, create.calibration
    assert len(list(stream)) == 1
    assert (create.result, create.calibration) == (newest, taught)
    assert create.result is newest


OTHERWISE = [(over_openai, "prompt"), (over_anthropic, "prompt"), (over_anthropic, "input")]
LITELLM = find_spec("litellm")
HAS_LITELLM = LITELLM is not None and LITELLM.origin is not None  # else the folder of its tests, which has that name
if HAS_LITELLM:
    OTHERWISE.append((over_litellm, "input"))


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(("face", "name"), OTHERWISE)
def test_a_conversation_that_the_method_calls_otherwise_is_refused_before_it_is_sent(
    face: Any, name: str, color: str
) -> None:
    """It passed untouched: Completions of old, ``litellm.responses``."""

    def create(**_: Any) -> Any:
        raise AssertionError("nothing is sent")

    async def acreate(**_: Any) -> Any:
        raise AssertionError("nothing is sent")

    wrapped = face.with_compaction(create if color == "sync" else acreate, Compactor())

    async def ask() -> None:
        answer = wrapped(model=MODEL, **{name: "Say this is a test."})
        await answer

    with pytest.raises(InputError, match=f"gives its conversation as `{name}`"):
        asyncio.run(ask())


def test_what_takes_an_answer_up_again_or_names_a_stored_prompt_goes_through_as_it_is() -> None:
    """OpenAI's SDK takes no ``input`` beside ``response_id``, not even an empty one."""
    sent: list[dict[str, Any]] = []

    def create(**arguments: Any) -> str:
        sent.append(arguments)
        return "answer"

    for given in ({"response_id": "resp_1", "starting_after": 3}, {"model": MODEL, "prompt": {"id": "pmpt_1"}}):
        assert over_openai.with_compaction(create, Compactor())(**given) == "answer"
        assert sent.pop() == given
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="any", max_retries=0)
    if "response_id" not in inspect.signature(client.responses.stream).parameters:
        return  # of the oldest release
    resumed = over_openai.with_compaction(client.responses.stream, Compactor())(response_id="resp_1", starting_after=3)
    with pytest.raises(openai.APIConnectionError), resumed:
        pass


@pytest.mark.parametrize("asked", ["an argument", "a header", "the client's header", "not at all"])
def test_a_request_that_asks_for_claudes_larger_window_has_it(asked: str) -> None:
    beta, headers = "context-1m-2025-08-07", {"anthropic-beta": "context-1m-2025-08-07"}
    given: dict[str, Any] = {"an argument": {"betas": [beta]}, "a header": {"extra_headers": headers}}.get(asked, {})
    history = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n} " + "word " * 4_000} for n in range(47)]
    own = headers if asked == "the client's header" else None
    with (
        ProviderServer(default_window=1_000_000) as server,
        anthropic.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0, default_headers=own) as client,
    ):
        create = over_anthropic.with_compaction(client.beta.messages.create, Compactor())
        create(model="claude-haiku-4-5", max_tokens=300, messages=history, **given)
    assert create.result is not None
    assert 160_000 < create.result.tokens_before < 200_000
    assert create.result.changed is (asked == "not at all")


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("layer", ["a decorator", "two decorators", "a partial", "a class"])
def test_a_stream_that_a_tracer_stands_before_is_recovered_and_the_tracer_learns_how_it_ends(
    server: ProviderServer, color: str, layer: str
) -> None:
    left: list[Any] = []

    def layered(method: Callable[..., Any]) -> Any:
        class Managed:
            def __init__(self, **arguments: Any) -> None:
                self.inner = method(**arguments)

        class Blocking(Managed):
            def __enter__(self) -> Any:
                return self.inner.__enter__()

            def __exit__(self, *error: Any) -> None:
                left.append(error[0])
                self.inner.__exit__(*error)

        class Suspending(Managed):
            async def __aenter__(self) -> Any:
                return await self.inner.__aenter__()

            async def __aexit__(self, *error: Any) -> None:
                left.append(error[0])
                await self.inner.__aexit__(*error)

        kind = Blocking if color == "sync" else Suspending
        made = functools.wraps(method)(lambda **arguments: kind(**arguments))
        if layer == "two decorators":
            return functools.wraps(made)(lambda **arguments: made(**arguments))
        return {"a partial": functools.partial(made), "a class": kind}.get(layer, made)

    given = arguments("messages.stream", conversation(100), stream=True)
    client = client_of(server, "messages", is_async=color == "async")
    send = over_anthropic.with_compaction(layered(client.messages.stream), Compactor())

    async def broken_off() -> None:
        async with client, send(**given) as events:
            async for _ in events:
                raise KeyError("enough")

    def broken_off_at_once() -> None:
        with client, send(**given) as events:
            for _ in events:
                raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        asyncio.run(broken_off()) if color == "async" else broken_off_at_once()
    assert [request.status for request in server.requests] == [400, 200]
    assert left == [KeyError]


@pytest.mark.parametrize(("face", "other"), [("openai", "anthropic"), ("anthropic", "openai")])
def test_the_wrapper_of_another_sdk_is_refused_with_the_one_to_take(face: str, other: str) -> None:
    """Both are called ``with_compaction``: Claude was asked through OpenAI's, and its system prompt did not count."""
    with {"openai": openai.OpenAI, "anthropic": anthropic.Anthropic}[other](api_key="any") as client:
        method = client.messages.create if other == "anthropic" else client.chat.completions.create
        wrap = {"openai": over_openai, "anthropic": over_anthropic}[face].with_compaction
        for given in (method, functools.partial(method, model=MODEL)):
            with pytest.raises(InputError, match=f"from contextfold.integrations.{other}"):
                wrap(given, Compactor())
        with pytest.raises(InputError, match=r"such as client\.chat\.completions\.create or client\.messages\.create"):
            wrap(client, Compactor())


@pytest.mark.parametrize(
    ("face", "path"),
    [
        *(("openai", path) for path in ("embeddings.create", "completions.create", "responses.input_items.list")),
        *(("openai", path) for path in ("responses.retrieve", "models.list", "moderations.create")),
        *(("anthropic", path) for path in ("messages.count_tokens", "messages.batches.create", "models.list")),
    ],
)
def test_a_method_that_sends_no_messages_is_refused_before_its_first_call(face: str, path: str) -> None:
    module = {"openai": over_openai, "anthropic": over_anthropic}[face]
    with {"openai": openai.OpenAI, "anthropic": anthropic.Anthropic}[face](api_key="any") as client:
        method = functools.reduce(getattr, path.split("."), client)
        for given in (method, functools.partial(method, model=MODEL)):
            said = f"{path.rpartition('.')[2]} of {face} sends no list of messages; give"
            with pytest.raises(InputError, match=said):
                module.with_compaction(given, Compactor())


@pytest.mark.parametrize("path", ["chat.completions", "responses", "beta.chat.completions"])
@pytest.mark.parametrize("name", ["create", "stream", "parse"])
def test_all_of_openais_methods_that_send_messages_are_taken(path: str, name: str) -> None:
    for client in (openai.OpenAI(api_key="any"), openai.AsyncOpenAI(api_key="any")):
        method = functools.reduce(getattr, path.split("."), client)
        raw = functools.reduce(getattr, (*path.split("."), "with_raw_response"), client)
        for given in (getattr(method, name, None), getattr(raw, name, None)):
            assert given is None or over_openai.with_compaction(given, Compactor()).compaction is None
        closed = client.close()
        if inspect.iscoroutine(closed):
            asyncio.run(closed)


CLIENTS_OF_ANTHROPICS = {
    "Anthropic": {"api_key": "any"},
    "AnthropicFoundry": {"api_key": "any", "resource": "any"},
    "AnthropicBedrock": {"aws_region": "any", "aws_access_key": "any", "aws_secret_key": "any"},
    "AnthropicVertex": {"region": "any", "project_id": "any", "access_token": "any"},
}


@pytest.mark.parametrize("name", [name for name in CLIENTS_OF_ANTHROPICS if hasattr(anthropic, name)])
@pytest.mark.parametrize("color", ["", "Async"])
def test_all_methods_that_send_messages_of_each_of_anthropics_clients_are_taken(name: str, color: str) -> None:
    """Those of Foundry's client, whose resources have classes of their own, were refused as ones that send nothing."""
    client = getattr(anthropic, color + name)(**CLIENTS_OF_ANTHROPICS[name])
    for path in ("messages", "beta.messages"):
        messages = functools.reduce(getattr, path.split("."), client)
        for owner in (messages, messages.with_raw_response, messages.with_streaming_response):
            for given in (getattr(owner, method, None) for method in ("create", "stream", "parse")):
                assert given is None or over_anthropic.with_compaction(given, Compactor()).compaction is None
    if name == "AnthropicFoundry":
        with pytest.raises(InputError, match="count_tokens of anthropic sends no list of messages"):
            over_anthropic.with_compaction(client.messages.count_tokens, Compactor())
    closed = client.close()
    if inspect.iscoroutine(closed):
        asyncio.run(closed)


@pytest.mark.parametrize(("face", "path"), [("openai", "chat.completions"), ("anthropic", "messages")])
def test_a_method_that_was_replaced_on_its_class_is_known_by_the_name_it_has_there(
    face: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tracers do so, and not all keep the name of what they replace: it was refused as one that sends nothing."""
    module = {"openai": over_openai, "anthropic": over_anthropic}[face]
    with {"openai": openai.OpenAI, "anthropic": anthropic.Anthropic}[face](api_key="any") as client:
        owner = functools.reduce(getattr, path.split("."), client)
        traced: Callable[..., Any] = lambda self, **arguments: arguments  # noqa: E731 - a function without that name
        monkeypatch.setattr(type(owner), "create", traced)
        assert module.with_compaction(owner.create, Compactor()).compaction is None
        monkeypatch.setattr(type(owner), "stream", traced, raising=False)  # the oldest releases have none
        assert wrapping.makes_managers(owner.stream)
        monkeypatch.setattr(type(owner), "unheard_of", lambda self, **arguments: None, raising=False)
        with pytest.raises(InputError, match="sends no list of messages"):
            module.with_compaction(owner.unheard_of, Compactor())


@pytest.mark.parametrize("state", [{"previous": "{}"}, {"previous": {}}, {"calibration": "{}"}], ids=str)
def test_a_state_that_is_none_is_refused_where_it_is_given(state: dict[str, Any]) -> None:
    """A record as the text that was stored was taken, and failed at the first call."""
    for module in (over_openai, over_anthropic, over_litellm):
        if module is over_litellm:
            pytest.importorskip("litellm")
        with pytest.raises(InputError, match=f"{next(iter(state))} must be .* pass out"):
            module.with_compaction(lambda **arguments: arguments, Compactor(), **state)


def test_an_argument_without_its_name_is_refused_not_lost() -> None:
    create = over_openai.with_compaction(lambda **arguments: arguments, Compactor())
    with pytest.raises(InputError, match="by name"):
        create([{"role": "user", "content": "Hi"}], model=MODEL)


def test_text_as_input_is_one_message_and_stays_text(server: ProviderServer) -> None:
    with client_of(server, "responses", is_async=False) as client:
        send = wrapped(client, "responses", Compactor(window=2_000))
        send(model=MODEL, input="Hello", instructions="Be kind. " * 20)
        assert server.requests[0].body["input"] == "Hello"
        assert send.result.floor["system prompt"] > 20


def test_what_is_not_given_does_not_count_and_iterators_are_read_once(server: ProviderServer) -> None:
    with client_of(server, "chat", is_async=False) as client:
        send = wrapped(client, "chat", Compactor(window=WINDOW))
        wire = conversation(3)
        send(model=MODEL, messages=iter(wire), tools=openai.NOT_GIVEN, max_tokens=openai.NOT_GIVEN)
        assert server.requests[0].body["messages"] == wire
        assert "tools" not in send.result.floor
    with client_of(server, "messages", is_async=False) as client:
        send = wrapped(client, "messages", Compactor(window=WINDOW))
        system = [{"type": "text", "text": "Be brief. " * 30}]
        tool = {"name": "run", "description": "Runs it. " * 30, "input_schema": {"type": "object"}}
        send(model=MODEL, messages=[{"role": "user", "content": "Hi"}], system=system, tools=[tool], max_tokens=9)
        assert send.result.floor["system prompt"] > 60
        assert send.result.floor["tools"] > 60


@pytest.mark.parametrize(
    "name",
    [
        "chat.completions.create",
        "chat.completions.stream",
        "responses.create",
        "partial",
        "with_raw_response",
        "messages.create",
        "messages.parse",
        "converse",
        *(("completion", "acompletion") if HAS_LITELLM else ()),
    ],
)
@pytest.mark.parametrize("color", ["sync", "async"])
def test_who_asks_a_wrapped_method_what_it_is_is_told_what_the_method_is(name: str, color: str) -> None:
    """Retries of tenacity and backoff took it for a function that blocks, awaited nothing, and tried nothing again."""
    face: Any = over_openai
    if name in ("completion", "acompletion"):
        face, method = over_litellm, getattr(import_module("litellm"), name)
    elif name == "converse":
        face = import_module("contextfold.integrations.bedrock")
        keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
        method = pytest.importorskip("boto3").client("bedrock-runtime", **keys).converse
    elif name.startswith("messages"):
        face = over_anthropic
        client: Any = anthropic.AsyncAnthropic if color == "async" else anthropic.Anthropic
        method = held_at(client(api_key="any"), name)
    else:
        client = openai.AsyncOpenAI if color == "async" else openai.OpenAI
        path = {"partial": "responses.create", "with_raw_response": "responses.with_raw_response.create"}.get(
            name, name
        )
        method = held_at(client(api_key="any"), path)
        method = functools.partial(method, model=MODEL) if name == "partial" else method
    send = face.with_compaction(method, Compactor())
    assert inspect.signature(send) == inspect.signature(method)
    assert getattr(send, "__name__", None) == getattr(method, "__name__", None)
    assert inspect.iscoroutinefunction(inspect.unwrap(send)) is inspect.iscoroutinefunction(inspect.unwrap(method))
    is_awaited = inspect.iscoroutinefunction(method)
    marked = inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction
    assert marked(send) is is_awaited
    assert inspect.iscoroutinefunction(send.__call__) is is_awaited


def held_at(client: Any, path: str) -> Any:
    try:
        return functools.reduce(getattr, path.split("."), client)
    except AttributeError:
        pytest.skip("the oldest release of the SDK has no such method")


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("shape", ["chat", "responses", "messages"])
def test_tools_of_an_iterator_are_counted_and_stand_in_each_request_that_is_sent(
    server: ProviderServer, shape: str, color: str
) -> None:
    """The SDKs take any iterable: what had counted them left none to send, and the model had no tools."""
    inner = {"name": "run", "description": "Runs it. " * 30}
    tool = {
        "chat": {"type": "function", "function": {**inner, "parameters": {"type": "object"}}},
        "responses": {"type": "function", **inner, "parameters": {"type": "object"}, "strict": False},
        "messages": {**inner, "input_schema": {"type": "object"}},
    }[shape]
    given = arguments(shape, conversation(100), stream=False) | {"tools": iter([tool])}
    if shape == "messages":
        given["system"] = iter([{"type": "text", "text": "Be brief."}])
    client = client_of(server, shape, is_async=color == "async")
    send = wrapped(client, shape, Compactor())

    async def ask() -> None:
        async with client:
            await send(**given)

    if color == "async":
        asyncio.run(ask())
    else:
        with client:
            send(**given)
    refused, answered = server.requests
    assert (refused.status, answered.status) == (400, 200)
    assert refused.body["tools"] == answered.body["tools"] == [tool]
    assert refused.body.get("system") == answered.body.get("system")
    assert send.result.floor["tools"] > 60


@pytest.mark.parametrize("shape", ["chat", "messages"])
def test_prompt_and_answer_that_do_not_fit_together_get_a_shorter_answer(shape: str) -> None:
    wire = conversation(30)
    with ProviderServer(windows={MODEL: WINDOW}, overflow="vllm" if shape == "chat" else "native") as server:
        with client_of(server, shape, is_async=False) as client:
            send = wrapped(client, shape, Compactor(window=WINDOW, trigger=None))
            given = {**arguments(shape, wire, stream=False), "max_tokens": 4_000}
            send(**given)
        first, second = server.requests
        assert first.error
        assert second.body["max_tokens"] < 4_000
        assert second.body["messages"] == first.body["messages"]
        assert send.compaction is None


def test_an_interrupted_call_is_answered_in_what_is_sent_and_stays_as_it_is_in_the_history(
    server: ProviderServer,
) -> None:
    wire = [*conversation(3)[:-1], {"role": "user", "content": "Never mind, what is the time?"}]
    before = json.dumps(wire)
    for shape in ("chat", "responses", "messages"):
        asked(server, shape, Compactor(window=WINDOW), wire, color="sync", stream=False)
        assert "never answered" in server.requests[-1].text
    assert [request.status for request in server.requests] == [200, 200, 200]
    assert json.dumps(wire) == before
    view = Compactor(window=WINDOW).compact(wire).messages
    assert [view[:-2], view[-1]] == [wire[:-1], wire[-1]], "the same, with a placeholder behind the call"


def test_two_conversations_of_one_compactor_have_their_own_records(server: ProviderServer) -> None:
    compactor = Compactor(window=WINDOW)
    with client_of(server, "chat", is_async=False) as client:
        one, two = (wrapped(client, "chat", compactor) for _ in range(2))
        one(model=MODEL, messages=conversation(100))
        two(model=MODEL, messages=conversation(90, words=130))
    assert one.compaction is not None
    assert two.compaction is not None
    assert one.compaction != two.compaction


def test_a_window_learned_on_one_endpoint_says_nothing_about_another(server: ProviderServer) -> None:
    compactor = Compactor(window=100_000)
    wire = conversation(100)
    asked(server, "chat", compactor, wire, color="sync", stream=False)
    with ProviderServer(windows={MODEL: 60_000}) as other:
        _, send = asked(other, "chat", compactor, wire, color="sync", stream=False)
        assert send.result.window == 100_000
        assert len(other.requests) == 1
    _, send = asked(server, "chat", compactor, wire, color="sync", stream=False)
    assert (send.result.window, send.result.window_source) == (WINDOW, "learned")
    assert len(server.requests) == 3


def test_color_and_endpoint_are_read_off_the_method() -> None:
    def plain(**_: Any) -> None: ...

    async def suspending(**_: Any) -> None: ...

    methods: list[tuple[Callable[..., Any], bool]] = [(plain, False), (suspending, True)]
    for method, expected in methods:
        assert is_async(method) is expected
        assert endpoint_of(method) == ""
    client = openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="any")
    assert is_async(client.chat.completions.create)
    assert is_async(getattr(client.chat.completions, "stream", None) or client.beta.chat.completions.stream)
    assert endpoint_of(client.responses.create) == "http://127.0.0.1:9/v1/"


def test_any_function_with_the_same_arguments_can_be_wrapped() -> None:
    sent: list[Any] = []

    def create(*, model: str, messages: list[Any]) -> dict[str, Any]:
        sent.append(messages)
        return {"usage": {"prompt_tokens": 20}}

    send = over_openai.with_compaction(create, Compactor(window=WINDOW))
    assert send(model=MODEL, messages=[{"role": "user", "content": "Hi"}]) == {"usage": {"prompt_tokens": 20}}
    assert sent == [[{"role": "user", "content": "Hi"}]]


@pytest.fixture
def claude(server: ProviderServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0) as client:
        yield client


def test_a_budget_for_thinking_stays_below_an_answer_limit_that_is_lowered(
    server: ProviderServer, claude: anthropic.Anthropic
) -> None:
    """Anthropic would refuse the second request as well, and the call would end with that."""
    create = over_anthropic.with_compaction(claude.messages.create, Compactor(window=WINDOW))
    said = [{"role": "user", "content": "Why are invoices late? " * 20}]
    thinking = {"type": "enabled", "budget_tokens": 7_950}
    create(model=MODEL, messages=said, max_tokens=7_999, thinking=thinking)
    refused, sent = server.requests
    assert refused.body["thinking"] == thinking
    assert 1_024 <= sent.body["thinking"]["budget_tokens"] < sent.body["max_tokens"] < 7_999


def test_calls_whose_thinking_was_summarized_go_on_without(server: ProviderServer, claude: anthropic.Anthropic) -> None:
    """A model with a budget thinks once, before its first call; behind an answer without, the API takes no budget."""
    compactor = Compactor(window=WINDOW, trigger=("fraction", 0.6), target=("fraction", 0.3))
    create = over_anthropic.with_compaction(claude.beta.messages.create, compactor)
    clearing: dict[str, Any] = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    if "context_management" not in inspect.signature(claude.beta.messages.create).parameters:
        clearing = {}  # the oldest releases
    for said in thinking_turns(once=True):
        create(
            model=MODEL,
            messages=said,
            max_tokens=2_000,
            thinking={"type": "enabled", "budget_tokens": 1_024},
            **clearing,
        )
    assert server.requests[-1].body["thinking"] == {"type": "disabled"}
    assert "context_management" not in server.requests[-1].body
    assert all(request.error is None for request in server.requests)


# ---- what a type checker says ----

TYPED = """
from typing import Any, AsyncIterator, Iterator, Literal, overload

from contextfold import Compactor
from contextfold.integrations.openai import with_compaction

@overload
def create(*, messages: list[Any], stream: Literal[False] = False) -> str: ...
@overload
def create(*, messages: list[Any], stream: Literal[True]) -> Iterator[str]: ...
def create(*, messages: list[Any], stream: bool = False) -> str | Iterator[str]: return ""

wrapped = with_compaction(create, Compactor())
answer: str = wrapped(messages=[])
chunks: Iterator[str] = wrapped(messages=[], stream=True)
record: str = wrapped(messages=[], streem=True)  # an error
"""


def test_to_a_type_checker_a_wrapped_method_has_every_overload_of_its_own(tmp_path, monkeypatch):
    """``stream=True`` answers with another type: in a strict program it was a call that no one may make."""
    checker = pytest.importorskip("mypy.api")
    monkeypatch.setenv("MYPYPATH", str(Path(contextfold.__file__).parents[1]))
    (tmp_path / "program.py").write_text(TYPED)
    read = [str(tmp_path / "program.py"), wrapping.__file__, over_openai.__file__]  # and nothing that these import
    options = ["--strict", "--follow-imports=skip", "--cache-dir", str(tmp_path), "--config-file", ""]
    said, failed, _ = checker.run([*options, *read])
    lines = {line.split(":")[1] for line in said.splitlines() if "program.py" in line and ": error:" in line}
    assert (lines, failed) == ({"16"}, ""), said
