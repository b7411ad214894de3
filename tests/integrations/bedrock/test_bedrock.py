"""boto3's client of Bedrock with a compaction around it, over HTTP against the provider on loopback."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, ToolCall

from contextfold import Compactor
from contextfold.errors import CannotFit, InputError
from contextfold.integrations.bedrock import with_compaction
from contextfold.integrations.streams import OpenedStream
from effort import crossed
from integrations.rooms import Passes

boto3 = pytest.importorskip("boto3")

from botocore.config import Config  # noqa: E402 - after the check
from botocore.exceptions import ClientError, ParamValidationError  # noqa: E402

WINDOW = 8_000
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOLS = {
    "tools": [{"toolSpec": {"name": "read_file", "inputSchema": {"json": {"type": "object"}}}}],
    "toolChoice": {"auto": {}},
}
METHODS = ("converse", "converse_stream")
Wire = list[dict[str, Any]]
CLIENTS: list[Any] = []


def client_of(server: ProviderServer) -> Any:
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=server.bedrock_url,
        region_name="us-east-1",
        aws_access_key_id="dummy",
        aws_secret_access_key="dummy",
        config=Config(retries={"total_max_attempts": 1}),
    )
    CLIENTS.append(client)
    return client


@pytest.fixture(autouse=True)
def _all_closed() -> Iterator[None]:
    """Clients hold their connections until they are closed."""
    yield
    while CLIENTS:
        CLIENTS.pop().close()


def provider(**options: Any) -> ProviderServer:
    return ProviderServer(windows={MODEL: WINDOW}, default_window=100_000, **options)


def conversation(steps: int, *, parallel: int = 2, words: int = 60) -> Wire:
    """A session of an agent that calls tools side by side; each step has about ``parallel`` x ``words`` x 3 tokens."""
    wire: Wire = [user("Find out why invoices are late. Never touch the table `ledger_2019`.")]
    for step in range(steps):
        ids = [f"tooluse_{step}_{n}" for n in range(parallel)]
        calls = [call(one, "read_file", {"path": f"/srv/app/module_{one}.py"}) for one in ids]
        wire.append({"role": "assistant", "content": [{"text": f"Step {step}: reading."}, *calls]})
        outputs = [" ".join(f"value{step}x{n}" for n in range(words)) for _ in ids]
        wire.append({"role": "user", "content": [result(one, out) for one, out in zip(ids, outputs, strict=True)]})
    return wire


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}


def call(call_id: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": given}}


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}


def text_of(response: dict[str, Any]) -> str:
    if "stream" in response:
        deltas = [event["contentBlockDelta"]["delta"] for event in response["stream"] if "contentBlockDelta" in event]
        return "".join(delta.get("text", "") for delta in deltas)
    return "".join(block.get("text", "") for block in response["output"]["message"]["content"])


def closed(response: dict[str, Any]) -> dict[str, Any]:
    if "stream" in response:
        response["stream"].close()
    return response


# ---- one call ----


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_conversation_larger_than_the_window_is_answered(method: str, window: int | None) -> None:
    wire = conversation(40)
    with provider() as server:
        send = with_compaction(getattr(client_of(server), method), Compactor(window=window))
        text = text_of(send(modelId=MODEL, messages=wire, system=[{"text": "Be brief."}], toolConfig=TOOLS))
        assert [request.status for request in server.requests] == ([200] if window else [400, 200])
        last = server.requests[-1]
    assert text.startswith("Digest of")
    assert last.tokens <= WINDOW
    assert "ledger_2019" in last.text
    assert send.compaction is not None
    assert sum(send.result.ledger.counts().values()) == len(wire)


@pytest.mark.parametrize("method", METHODS)
def test_a_short_conversation_goes_through_as_it_was_written(method: str) -> None:
    given: dict[str, Any] = {
        "modelId": MODEL,
        "messages": conversation(2),
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "inferenceConfig": {"maxTokens": 300, "temperature": 0.5},
        "toolConfig": TOOLS,
        "additionalModelRequestFields": {"top_k": 5},
    }
    with provider() as server:
        client = client_of(server)
        closed(getattr(client, method)(**given))
        send = with_compaction(getattr(client, method), Compactor(window=WINDOW))
        response = closed(send(**given))
        plain, ours = server.requests
    assert ours.body == plain.body
    assert (ours.path, response["ResponseMetadata"]["HTTPStatusCode"]) == (plain.path, 200)
    assert send.compaction is None


@crossed(method=METHODS, wording=("bedrock", "bedrock-claude", "bedrock-bytes", "bedrock-tokens", "bedrock-stream"))
def test_every_way_in_which_bedrock_says_too_long_ends_in_an_answer(method: str, wording: str) -> None:
    with provider(overflow=wording) as server:
        send = with_compaction(getattr(client_of(server), method), Compactor(window=100_000))
        assert text_of(send(modelId=MODEL, messages=conversation(40), toolConfig=TOOLS)).startswith("Digest of")
        assert len(server.requests) <= 3
    assert send.result.trigger == "overflow: prompt_too_long"


def test_a_stream_gives_what_botos_gives_and_can_be_closed() -> None:
    with provider() as server:
        client = client_of(server)
        given = {"modelId": MODEL, "messages": conversation(2), "toolConfig": TOOLS}
        own = list(client.converse_stream(**given)["stream"])
        send = with_compaction(client.converse_stream, Compactor(window=WINDOW))
        stream = send(**given)["stream"]
        assert type(stream) is OpenedStream
        assert [event.keys() for event in stream] == [event.keys() for event in own]
        send(**given)["stream"].close()


def test_a_stream_of_a_prompt_that_bedrock_keeps_comes_as_boto_gives_it() -> None:
    """Such a request has no messages, and passes as it came."""
    events = [{"messageStart": {"role": "assistant"}}, {"messageStop": {"stopReason": "end_turn"}}]

    class BedrockRuntime:
        def converse_stream(self, **given: Any) -> dict[str, Any]:
            return {"ResponseMetadata": {"HTTPStatusCode": 200}, "stream": iter(events)}

    send = with_compaction(BedrockRuntime().converse_stream, Compactor(window=WINDOW))
    answer = send(modelId="arn:aws:bedrock:us-east-1:1:prompt/ABC:1", promptVariables={"topic": {"text": "x"}})
    assert type(answer) is dict
    assert answer["ResponseMetadata"] == {"HTTPStatusCode": 200}
    assert list(answer["stream"]) == events


def test_a_stream_is_botos_for_everyone_who_asks() -> None:
    """Who traces streams tells one by botocore's class."""
    event_stream = pytest.importorskip("botocore.eventstream").EventStream
    with provider() as server:
        send = with_compaction(client_of(server).converse_stream, Compactor(window=WINDOW))
        stream = send(modelId=MODEL, messages=conversation(2), toolConfig=TOOLS)["stream"]
        assert isinstance(stream, event_stream)
        assert callable(stream.get_initial_response)
        with pytest.raises(AttributeError):
            _ = stream.no_such_name
        stream.close()


def test_other_errors_and_errors_after_the_first_content_are_the_callers() -> None:
    given = {"modelId": MODEL, "messages": conversation(2), "toolConfig": TOOLS}
    with provider() as server:
        send = with_compaction(client_of(server).converse_stream, Compactor(window=WINDOW))
        server.faults.add(Fault.rate_limit(), times=1)
        with pytest.raises(ClientError, match="ThrottlingException"):
            send(**given)
        server.faults.clear()
        server.faults.add(Fault.cut(after=1), times=1)
        stream = send(**given)["stream"]
        with pytest.raises(Exception) as caught:
            list(stream)
        stream.close()
        assert not isinstance(caught.value, CannotFit)
        assert text_of(send(**given))
        assert len(server.requests) == 3


def test_a_request_that_asks_for_claudes_larger_window_has_it_and_goes_out_as_it_was_written() -> None:
    sent: list[dict[str, Any]] = []

    def converse(**arguments: Any) -> dict[str, Any]:
        sent.append(arguments)
        return {"output": {"message": {"role": "assistant", "content": [{"text": "fine"}]}}}

    ask = with_compaction(converse, Compactor())
    given: dict[str, Any] = {
        "modelId": "anthropic.claude-haiku-4-5",
        "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
    }
    more = {"additionalModelRequestFields": {"anthropic_beta": ["context-1m-2025-08-07"], "top_k": 5}}
    windows = []
    for asked in ({}, more):
        ask(**given, **asked)
        assert ask.result is not None
        assert sent[-1] == {**given, **asked}
        windows.append(ask.result.window)
    assert windows[0] < windows[1] == 1_000_000


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "more",
    [
        {"inferenceConfig": {}, "additionalModelRequestFields": {}},
        {"toolConfig": {"toolChoice": {"auto": {}}}},
        {"toolConfig": {**TOOLS, "tool_choice": {"auto": {}}}},
        {"toolConfig": {}},
        {"toolConfig": None},
        {"inferenceConfig": None},
    ],
    ids=str,
)
def test_boto3_is_given_what_lies_inside_other_arguments_as_it_was_written(method: str, more: dict[str, Any]) -> None:
    """What it refuses, such as a misspelled name, was left out without a word."""
    said: list[Any] = []
    with provider() as server:
        client = client_of(server)
        for ask in (getattr(client, method), with_compaction(getattr(client, method), Compactor(window=WINDOW))):
            try:
                closed(ask(modelId=MODEL, messages=[user("Hello.")], **more))
                said.append(server.requests[-1].body)
            except ParamValidationError as refused:
                said.append(str(refused))
    assert said[0] == said[1]


def test_a_prompt_that_nothing_can_shorten_ends_in_an_error_of_ours() -> None:
    with provider() as server:
        send = with_compaction(client_of(server).converse, Compactor(window=WINDOW))
        with pytest.raises(CannotFit):
            send(modelId=MODEL, messages=[user("fact " * 9_000)])
        assert not server.requests


def test_an_answer_limit_that_does_not_fit_is_lowered_where_converse_has_it() -> None:
    with provider(overflow="bedrock-claude") as server:
        send = with_compaction(client_of(server).converse, Compactor(window=WINDOW, trigger=("fraction", 1.0)))
        wire = [user(" ".join(f"word{n}" for n in range(2_400)))]
        send(modelId=MODEL, messages=wire, inferenceConfig={"maxTokens": 5_000, "temperature": 0.1})
        sent = server.requests[-1].body["inferenceConfig"]
    assert sent["maxTokens"] < 5_000
    assert sent["temperature"] == 0.1


def test_in_async_code_it_runs_in_a_thread_as_boto3_does() -> None:
    async def ask(send: Any) -> str:
        return text_of(await asyncio.to_thread(send, modelId=MODEL, messages=conversation(40), toolConfig=TOOLS))

    with provider() as server:
        send = with_compaction(client_of(server).converse, Compactor(window=WINDOW))
        assert asyncio.run(ask(send)).startswith("Digest of")


# ---- a conversation ----


def talk(server: ProviderServer, method: str, compactor: Compactor, turns: int, *, interrupted: int = -1) -> Any:
    """A loop as the documentation shows it: messages are appended as boto3 gave them."""
    send = with_compaction(getattr(client_of(server), method), compactor)
    history: Wire = [user("Why are invoices late? Never touch `ledger_2019`.")]
    for turn in range(turns):
        response = send(modelId=MODEL, messages=history, toolConfig=TOOLS, inferenceConfig={"maxTokens": 500})
        message = response["output"]["message"] if method == "converse" else gathered(response["stream"])
        history.append(message)
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        if turn == interrupted:  # the process ended before the tools had run
            history.append(user("Go on."))
            continue
        outputs = [result(one["toolUseId"], " ".join(f"value{turn}x{n}" for n in range(90))) for one in calls]
        history.append({"role": "user", "content": [*outputs, {"cachePoint": {"type": "default"}}]})
        for block in history[:-1]:  # callers move the mark, here by making new messages without it
            block["content"] = [part for part in block["content"] if "cachePoint" not in part]
    return send, history


def gathered(stream: Any) -> dict[str, Any]:
    blocks: dict[int, Any] = {}
    for event in stream:
        if (start := event.get("contentBlockStart")) is not None:
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": {}}}
        if (delta := event.get("contentBlockDelta")) is not None and "text" in delta["delta"]:
            block = blocks.setdefault(delta["contentBlockIndex"], {"text": ""})
            block["text"] += delta["delta"]["text"]
    return {"role": "assistant", "content": [blocks[n] for n in sorted(blocks)]}


def agent_answers() -> Any:
    numbers = itertools.count()

    def answer(request: Any) -> Answer | None:
        if '"toolConfig"' not in request.raw.decode():
            return None  # a summary
        paths = [f"/srv/module_{next(numbers)}.py" for _ in range(2)]
        return Answer("Looking.", tuple(ToolCall("read_file", {"path": path}) for path in paths))

    return answer


@pytest.mark.parametrize("method", METHODS)
def test_a_loop_with_parallel_calls_a_moving_cache_mark_and_an_interruption_is_never_refused(method: str) -> None:
    with provider(answers=agent_answers()) as server:
        send, history = talk(server, method, Compactor(window=WINDOW), 25, interrupted=12)
        assert {request.status for request in server.requests} == {200}
        assert len(server.requests) == 25
        cached = [request.usage.cached for request in server.requests]
    assert send.result.compaction is not None
    assert send.calibration.observations > 15
    assert sum(send.result.ledger.counts().values()) == len(history) - 2
    assert sum(1 for tokens in cached if tokens) > 12


@pytest.mark.strict
@pytest.mark.parametrize("method", ["converse_stream"])
def test_a_loop_of_many_passes_stays_below_the_window(method: str) -> None:
    passes, turns = Passes(), 54
    with provider(answers=agent_answers()) as server:
        send, history = talk(server, method, Compactor(window=WINDOW, on_event=passes), turns, interrupted=turns // 2)
        assert {request.status for request in server.requests} == {200}
        assert len(server.requests) == turns
        assert max(request.tokens for request in server.requests) <= WINDOW
    assert passes.count >= 8
    assert sum(send.result.ledger.counts().values()) == len(history) - 2


@crossed(fault=(Fault.server_error(), Fault.blank(), Fault.length(), Fault.refusal()), method=METHODS)
def test_a_summarizer_that_fails_changes_nothing(method: str, fault: Fault) -> None:
    """The model itself summarizes; with every summary failing, the answer is about a view without one, or an error."""
    wire = conversation(40)
    with provider() as server:
        server.faults.add(fault, when=lambda request: '"toolConfig"' not in request.raw.decode())
        send = with_compaction(getattr(client_of(server), method), Compactor(window=WINDOW, summarizer="same"))
        text = text_of(send(modelId=MODEL, messages=wire, toolConfig=TOOLS))
    assert text.startswith("Digest of")
    summary = send.compaction.summary if send.compaction else None
    assert summary is None or "can't help" not in str(summary)


@pytest.mark.parametrize("method", METHODS)
def test_the_model_of_the_conversation_can_summarize_it(method: str) -> None:
    with provider() as server:
        send = with_compaction(getattr(client_of(server), method), Compactor(window=WINDOW, summarizer="same"))
        text_of(send(modelId=MODEL, messages=conversation(40), toolConfig=TOOLS))
        assert len(server.requests) > 1
        assert {request.status for request in server.requests} == {200}
    assert "Digest of" in str(send.compaction.summary)


# ---- what is wrong is said ----


def test_what_is_no_method_is_refused() -> None:
    with pytest.raises(InputError, match=r"client\.converse"):
        with_compaction("converse", Compactor(window=WINDOW))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["invoke_model", "invoke_model_with_response_stream", "apply_guardrail"])
def test_a_method_that_takes_no_messages_is_refused_before_its_first_call(method: str) -> None:
    with ProviderServer() as server:
        given = getattr(client_of(server), method)
    with pytest.raises(InputError, match=rf"{method} of botocore sends no list of messages; give client\.converse"):
        with_compaction(given, Compactor(window=WINDOW))


@pytest.mark.strict
def test_without_boto3_the_error_names_the_extra() -> None:
    code = (
        "import importlib.util; importlib.util.find_spec = lambda name: None\n"
        "from contextfold import Compactor\n"
        "from contextfold.integrations.bedrock import with_compaction\n"
        "with_compaction(print, Compactor(window=9_000))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'contextfold[bedrock]'" in done.stderr


def test_calls_whose_thinking_was_summarized_go_on_without() -> None:
    """Claude with a budget thinks once, before its first call; behind an answer without, it takes no budget."""
    clearing = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]}
    own = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "top_k": 40, "context_management": clearing}
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
    wire = conversation(1)
    wire[1]["content"].insert(0, thought)
    with provider() as server:
        converse = with_compaction(client_of(server).converse, Compactor(window=WINDOW))
        for messages in (wire, wire + conversation(40)[3:]):
            converse(modelId=MODEL, messages=messages, toolConfig=TOOLS, additionalModelRequestFields=own)
        whole, view = (request.body["additionalModelRequestFields"] for request in server.requests)
    assert whole == own
    rest = {"edits": [{"type": "clear_tool_uses_20250919"}]}  # edits of thinking are refused where there is none
    assert view == {"thinking": {"type": "disabled"}, "top_k": 40, "context_management": rest}
