"""The provider as Bedrock: boto3 gets answers, streams, refusals and faults as it gets them from AWS."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, ToolCall

from contextfold import overflow

boto3 = pytest.importorskip("boto3")

from botocore.config import Config  # noqa: E402 - after the check
from botocore.exceptions import ClientError, EventStreamError, HTTPClientError  # noqa: E402
from urllib3.exceptions import HTTPError  # noqa: E402

MODES = ("plain", "stream")
KEY = "secret-0123456789"
TEXT = "one two three four five six seven eight nine ten eleven twelve"
LONG = " ".join(f"item_{number} in src/module_{number}.py" for number in range(300))
OPEN: list[Any] = []


@pytest.fixture(autouse=True)
def _all_closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": [{"text": text}]}]


def ask(server: ProviderServer, messages: list[Any], mode: str, *, timeout: float = 20, **more: Any) -> dict[str, Any]:
    """One request without retries, and what came back, in the shape of a whole answer."""
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=server.bedrock_url,
        region_name="us-east-1",
        aws_access_key_id="AKIA",
        aws_secret_access_key=KEY,
        config=Config(retries={"total_max_attempts": 1}, read_timeout=timeout),
    )
    OPEN.append(client)
    given = {"modelId": "small", "messages": messages, **more}
    if mode != "stream":
        return client.converse(**given)
    # A stream that ends in an error keeps its connection, which no client closes.
    with closing(client.converse_stream(**given)["stream"]) as stream:
        return whole(stream)


def whole(stream: Any) -> dict[str, Any]:
    """The events of a stream put together."""
    blocks: dict[int, dict[str, Any]] = {}
    ends: dict[str, Any] = {}
    for event in stream:
        (kind,) = event
        inside = event[kind]
        if kind == "contentBlockStart":
            blocks[inside["contentBlockIndex"]] = {"toolUse": {**inside["start"]["toolUse"], "input": ""}}
        elif kind == "contentBlockDelta":
            block, delta = blocks.setdefault(inside["contentBlockIndex"], {"text": ""}), inside["delta"]
            if "text" in delta:
                block["text"] += delta["text"]
            else:
                block["toolUse"]["input"] += delta["toolUse"]["input"]
        else:
            ends.update(inside)
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return {**ends, "output": {"message": {"role": ends["role"], "content": [blocks[n] for n in sorted(blocks)]}}}


def text_of(said: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in said["output"]["message"]["content"])


@pytest.mark.parametrize("mode", MODES)
class TestAnswers:
    def test_one_without_a_script_names_what_was_sent_and_is_billed(self, mode: str) -> None:
        with ProviderServer() as server:
            said = ask(server, user(LONG), mode)
            (request,) = server.requests
        assert "src/module_299.py" in text_of(said)
        assert said["stopReason"] == "end_turn"
        assert said["usage"]["inputTokens"] == request.tokens > 4 * said["usage"]["outputTokens"] > 0
        assert (request.wire, request.model) == ("bedrock-converse", "small")
        assert KEY not in repr(request)
        assert request.headers["authorization"] == "[hidden]"

    def test_text_and_parallel_calls_arrive_whole(self, mode: str) -> None:
        arguments = {"query": "two words and 引用", "nested": {"n": [1, 2]}}
        answer = Answer("I look.", (ToolCall("search", arguments), ToolCall("read", {"path": "a.py"}, "my_id")))
        with ProviderServer(answers=[answer]) as server:
            said = ask(server, user("look"), mode)
        first, *calls = said["output"]["message"]["content"]
        assert first == {"text": "I look."}
        assert [(call["toolUse"]["name"], call["toolUse"]["input"]) for call in calls] == [
            ("search", arguments),
            ("read", {"path": "a.py"}),
        ]
        assert calls[1]["toolUse"]["toolUseId"] == "my_id"
        assert said["stopReason"] == "tool_use"

    def test_one_ends_at_the_limit_of_the_request(self, mode: str) -> None:
        with ProviderServer(answers=[LONG]) as server:
            said = ask(server, user("go on"), mode, inferenceConfig={"maxTokens": 16})
            assert 0 < server.count_tokens(text_of(said)) <= 16
        assert LONG.startswith(text_of(said))
        assert said["stopReason"] == "max_tokens"

    def test_an_unknown_model_is_refused_where_there_is_no_window_for_all(self, mode: str) -> None:
        with ProviderServer(windows={"small": 1_000}, default_window=None) as server:
            assert text_of(ask(server, user("hello"), mode))
            with pytest.raises(ClientError, match="model identifier is invalid"):
                ask(server, user("hello"), mode, modelId="large")

    def test_a_repeated_beginning_is_read_from_the_cache_up_to_its_mark(self, mode: str) -> None:
        marked = [{"role": "user", "content": [{"text": "word " * 2_000}, {"cachePoint": {"type": "default"}}]}]
        more = [{"role": "assistant", "content": [{"text": "Yes."}]}, *user("And now?")]
        with ProviderServer() as server:
            first, again = (ask(server, asked, mode)["usage"] for asked in (marked, [*marked, *more]))
            sizes = [request.tokens for request in server.requests]
        assert first["cacheWriteInputTokens"] == again["cacheReadInputTokens"] > 1_900
        for usage, size in zip((first, again), sizes, strict=True):
            cached = usage["cacheReadInputTokens"] + usage["cacheWriteInputTokens"]
            assert usage["inputTokens"] + cached == size


@pytest.mark.parametrize("mode", MODES)
class TestWindows:
    def test_the_last_token_that_fits_is_answered_and_the_next_is_refused(self, mode: str) -> None:
        with ProviderServer(count_tokens=lambda text: len(text.split()), default_window=9_999) as server:
            ask(server, user("word"), mode)
            frame = server.requests[0].tokens - 1
        limit = {"inferenceConfig": {"maxTokens": 10}}
        with ProviderServer(count_tokens=lambda text: len(text.split()), default_window=300) as server:
            assert text_of(ask(server, user("word " * (290 - frame)), mode, **limit))
            with pytest.raises(ClientError) as caught:
                ask(server, user("word " * 301), mode, **limit)
            assert [request.status for request in server.requests] == [200, 400]
        assert caught.value.response["Error"]["Code"] == "ValidationException"
        verdict = overflow.classify(caught.value)
        assert verdict is not None
        assert verdict.kind == "prompt_too_long"

    def test_a_prompt_truncated_in_silence_costs_less_than_was_sent(self, mode: str) -> None:
        old = [*user("marker_old " + "word " * 300), {"role": "assistant", "content": [{"text": "ok"}]}]
        with ProviderServer() as server:
            server.faults.add(Fault.truncated(60), at=1)
            said = ask(server, [*old, *user("marker_new")], mode)
            (request,) = server.requests
        assert "marker_new" in text_of(said)
        assert "marker_old" not in text_of(said)
        assert said["usage"]["inputTokens"] <= 60 < request.tokens


@pytest.mark.parametrize("mode", MODES)
class TestFaults:
    def test_errors_arrive_with_their_status(self, mode: str) -> None:
        faults = {
            429: (Fault.rate_limit(retry_after=2.5), "ThrottlingException"),
            500: (Fault.server_error(), "InternalServerException"),
            503: (Fault.http_error(503, "come back later"), "ServiceUnavailableException"),
        }
        with ProviderServer(answers=lambda request: TEXT) as server:
            for place, (status, (fault, code)) in enumerate(faults.items(), start=1):
                server.faults.add(fault, at=place)
                with pytest.raises(ClientError) as caught:
                    ask(server, user("hello"), mode)
                answered = caught.value.response
                assert answered["ResponseMetadata"]["HTTPStatusCode"] == status == server.requests[-1].status
                assert answered["Error"]["Code"] == code
                assert ("come back later" in str(caught.value)) == (status == 503)
                assert overflow.classify(caught.value) is None
            assert text_of(ask(server, user("hello"), mode)) == TEXT

    def test_bad_answers_arrive_as_answers(self, mode: str) -> None:
        with ProviderServer(answers=lambda request: TEXT) as server:
            bad = (Fault.blank(), Fault.length(), Fault.window_exceeded(), Fault.refusal("No."), Fault.answers("Sorry"))
            for place, fault in enumerate(bad, start=1):
                server.faults.add(fault, at=place)
            said = [ask(server, user("hello"), mode) for _ in bad]
        half = TEXT[: len(TEXT) // 2]
        assert [(text_of(one), one["stopReason"]) for one in said] == [
            ("", "end_turn"),
            (half, "max_tokens"),
            (half, "model_context_window_exceeded"),
            ("No.", "content_filtered"),
            ("Sorry", "end_turn"),
        ]

    def test_a_cut_connection_is_no_answer(self, mode: str) -> None:
        """boto3 lets urllib3's errors through from a stream, and takes half of a body for one without fields."""
        with ProviderServer(answers=lambda request: TEXT) as server:
            server.faults.add(Fault.cut(after=2), times=1)
            if mode == "stream":
                with pytest.raises(HTTPError):
                    ask(server, user("hello"), mode)
            else:
                assert "output" not in ask(server, user("hello"), mode)
            assert server.requests[0].status == 200
            assert text_of(ask(server, user("hello"), mode)) == TEXT

    def test_a_slow_first_byte_and_a_stall_run_into_the_clients_timeout(self, mode: str) -> None:
        with ProviderServer(answers=lambda request: TEXT) as server:
            server.faults.add(Fault.slow(30), at=1)
            server.faults.add(Fault.stalled(30, after=2), at=2)
            for _ in range(2):
                with pytest.raises((HTTPClientError, HTTPError), match=r"timed out|timeout"):
                    ask(server, user("hello"), mode, timeout=0.4)
            started = time.monotonic()
        assert time.monotonic() - started < 5, "closing does not wait for delays"

    def test_a_forced_overflow_is_recognized_in_a_stream_and_out_of_it(self, mode: str) -> None:
        in_stream = mode == "stream"
        with ProviderServer() as server:
            server.faults.add(Fault.overflows(limit=20, in_stream=in_stream), times=1)
            with pytest.raises(EventStreamError if in_stream else ClientError) as caught:
                ask(server, user("hello " * 40), mode)
            assert server.requests[0].status == (200 if in_stream else 400)
            assert text_of(ask(server, user("hello " * 40), mode))
        verdict = overflow.classify(caught.value)
        assert verdict is not None
        assert verdict.kind == "prompt_too_long"
