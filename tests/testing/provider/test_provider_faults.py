"""Every fault arrives at the official SDKs as the real thing would, where and as often as the rules say."""

from __future__ import annotations

import time
from typing import Any

import anthropic
import openai
import pytest
from emulator import Answer, Fault, ProviderServer
from provider_clients import KEY, MODES, WIRES, Failed, ask, user

from contextfold import overflow
from effort import crossed

STATUS_ERRORS = (openai.APIStatusError, anthropic.APIStatusError)
CONNECTION_ERRORS = (
    openai.APIConnectionError,
    anthropic.APIConnectionError,
)
LIMITS = {"openai-chat": "max_tokens", "openai-responses": "max_output_tokens", "anthropic": "max_tokens"}
TEXT = "one two three four five six seven eight nine ten eleven twelve"


@crossed(wire=WIRES, mode=MODES)
class TestInEveryColor:
    """One server for all faults: each hits one request, and the request after it is answered."""

    def test_errors_arrive_with_their_status(self, wire: str, mode: str) -> None:
        faults = {
            429: Fault.rate_limit(retry_after=2.5),
            500: Fault.server_error(),
            529: Fault.overloaded(),
            401: Fault.http_error(401),
            503: Fault.http_error(503, "come back later"),
            418: Fault.http_error(418),
        }
        with ProviderServer(answers=lambda request: TEXT) as server:
            for place, (status, fault) in enumerate(faults.items(), start=1):
                server.faults.add(fault, at=place)
                with pytest.raises(STATUS_ERRORS) as caught:
                    ask(server, wire, user("hello"), mode=mode)
                assert caught.value.status_code == status == server.requests[-1].status
                assert server.requests[-1].fault is fault
                if status == 429:
                    assert caught.value.response.headers["retry-after"] == "2.5"
                assert ("come back later" in str(caught.value)) == (status == 503)
                assert overflow.classify(caught.value) is None
            assert ask(server, wire, user("hello"), mode=mode).text == TEXT

    def test_bad_answers_arrive_as_answers(self, wire: str, mode: str) -> None:
        with ProviderServer(answers=lambda request: TEXT) as server:
            for fault in (Fault.blank(), Fault.length(), Fault.tool_call("look", {"n": 1}), Fault.answers("Sorry")):
                server.faults.add(fault, at=len(server.requests) + 1)
            server.faults.add(Fault.blank(), at=1)
            blank = ask(server, wire, user("hello"), mode=mode)
            server.faults.clear()
            server.faults.add(Fault.length(), at=2)
            server.faults.add(Fault.tool_call("look", {"n": 1}), at=3)
            server.faults.add(Fault.window_exceeded(), at=4)
            server.faults.add(Fault.refusal("No."), at=5)
            server.faults.add(Fault.answers("I am sorry"), at=6)
            length, call, window, refusal, sorry = (ask(server, wire, user("hello"), mode=mode) for _ in range(5))
        assert (blank.text, blank.calls) == ("", ())
        assert length.text == window.text == TEXT[: len(TEXT) // 2]
        assert length.finish in ("length", "max_output_tokens", "max_tokens")
        assert window.finish == "model_context_window_exceeded"
        assert call.text == ""
        assert [name for name, _ in call.calls] == ["look"]
        assert wire == "openai-responses" or refusal.text == "No."
        assert sorry.text == "I am sorry"

    def test_a_cut_connection_is_a_connection_error(self, wire: str, mode: str) -> None:
        with ProviderServer(answers=lambda request: TEXT) as server:
            server.faults.add(Fault.cut(after=2), times=1)
            with pytest.raises(Exception) as caught:
                ask(server, wire, user("hello"), mode=mode)
            assert isinstance(caught.value, CONNECTION_ERRORS) or "RemoteProtocolError" in type(caught.value).__name__
            assert server.requests[0].status == 200
            assert ask(server, wire, user("hello"), mode=mode).text == TEXT

    def test_a_prompt_truncated_in_silence_costs_less_than_was_sent(self, wire: str, mode: str) -> None:
        messages = [*user("marker_old " + "word " * 300), {"role": "assistant", "content": "ok"}, *user("marker_new")]
        with ProviderServer() as server:
            server.faults.add(Fault.truncated(60), at=1)
            said = ask(server, wire, messages, mode=mode)
            (request,) = server.requests
        assert "marker_new" in said.text
        assert "marker_old" not in said.text
        assert request.usage is not None
        assert request.usage.prompt <= 60 < request.tokens

    def test_a_forced_overflow_is_recognized_in_a_stream_and_out_of_it(self, wire: str, mode: str) -> None:
        with ProviderServer() as server:
            server.faults.add(Fault.overflows(limit=20, in_stream="stream" in mode), times=1)
            with pytest.raises((*STATUS_ERRORS, openai.APIError, Failed)) as caught:
                ask(server, wire, user("hello " * 40), mode=mode)
            assert server.requests[0].status == (200 if "stream" in mode else 400)
            assert ask(server, wire, user("hello " * 40), mode=mode).text
        error: Any = caught.value
        verdict = overflow.classify(error, code=getattr(error, "code", None), message=str(error))
        assert verdict is not None
        assert verdict.kind == "prompt_too_long"
        assert verdict.limit in (20, None)


class TestTime:
    @pytest.mark.parametrize("wire", WIRES)
    def test_a_slow_first_byte_and_a_stall_run_into_the_clients_timeout(self, wire: str) -> None:
        with ProviderServer(answers=lambda request: TEXT) as server:
            server.faults.add(Fault.slow(30), at=1)
            server.faults.add(Fault.stalled(30, after=2), at=(2, 3))
            for mode in ("plain", "stream", "plain"):
                with pytest.raises(Exception) as caught:
                    ask(server, wire, user("hello"), mode=mode, timeout=0.4)
                assert "Timeout" in type(caught.value).__name__
            started = time.monotonic()
        assert time.monotonic() - started < 5, "closing does not wait for delays"

    def test_what_is_only_late_arrives_whole(self) -> None:
        with ProviderServer(answers=lambda request: TEXT) as server:
            server.faults.add(Fault.slow(0.2), at=1)
            server.faults.add(Fault.stalled(0.2), at=2)
            for _ in range(2):
                started = time.monotonic()
                assert ask(server, "anthropic", user("hello"), mode="stream").text == TEXT
                assert time.monotonic() - started >= 0.2

    def test_pieces_before_a_cut_have_arrived(self) -> None:
        with ProviderServer(answers=lambda request: TEXT) as server:
            for after, expected in ((0, 0), (1, 1), (3, 3), (99, 4)):
                server.faults.clear()
                server.faults.add(Fault.cut(after=after))
                got = []
                with openai.OpenAI(base_url=server.openai_url, api_key=KEY, max_retries=0) as client:
                    try:
                        stream = client.chat.completions.create(model="m", messages=user("x"), stream=True)  # type: ignore[call-overload]
                        for chunk in stream:
                            got.append(chunk.choices[0].delta.content)
                    except Exception as error:  # noqa: BLE001 - newer SDKs wrap what httpx raises, older do not
                        assert "Connection" in repr(error) or "Protocol" in repr(error)  # noqa: PT017 - after the pieces
                assert len([piece for piece in got if piece]) == expected


class TestRules:
    def test_places_texts_predicates_and_counts_choose_the_requests(self) -> None:
        with ProviderServer(answers=lambda request: "fine") as server:
            server.faults.add(Fault.answers("by place"), at=(1, 3))
            server.faults.add(Fault.answers("by text"), when="needle", times=2)
            server.faults.add(Fault.answers("by predicate"), when=lambda request: request.answer_limit == 7)
            said = [ask(server, "openai-chat", user("hello")).text for _ in range(3)]
            said += [ask(server, "openai-chat", user("a needle")).text for _ in range(3)]
            said += [ask(server, "openai-chat", user("hello"), max_tokens=limit).text for limit in (7, 8)]
        assert said == ["by place", "fine", "by place", "by text", "by text", "fine", "by predicate", "fine"]

    def test_the_first_rule_that_hits_is_the_one(self) -> None:
        with ProviderServer(answers=lambda request: "fine") as server:
            server.faults.add(Fault.answers("first"), times=1)
            server.faults.add(Fault.answers("second"), times=1)
            said = [ask(server, "openai-chat", user("hello")).text for _ in range(3)]
        assert said == ["first", "second", "fine"]

    @pytest.mark.parametrize("at", [0, -1, (1, 0)])
    def test_there_is_no_request_before_the_first(self, at: Any) -> None:
        with pytest.raises(ValueError, match="numbered from 1"):
            ProviderServer().faults.add(Fault.blank(), at=at)

    def test_a_bad_answer_is_made_of_the_scripted_one(self) -> None:
        with ProviderServer(answers=["0123456789"]) as server:
            server.faults.add(Fault.length())
            ask(server, "openai-chat", user("x"))
            assert server.requests[0].answer == Answer("01234", finish="length")


class TestForeignBodies:
    def test_the_page_of_a_proxy_comes_as_it_is(self) -> None:
        page = "<html><h1>502 Bad Gateway</h1></html>"
        with ProviderServer() as server:
            server.faults.add(Fault.http_error(502, body=page))
            with pytest.raises(openai.APIStatusError) as caught:
                ask(server, "openai-chat", user("x"))
            assert caught.value.response.text == page
            assert caught.value.response.headers["content-type"].startswith("text/html")

    @pytest.mark.parametrize("wire", WIRES)
    @pytest.mark.parametrize("body", [None, "upstream went away"])
    def test_an_error_may_be_the_only_event_of_a_stream(self, wire: str, body: str | None) -> None:
        with ProviderServer() as server:
            server.faults.add(Fault.http_error(529, body=body, in_stream=True), times=1)
            with pytest.raises((openai.APIError, anthropic.APIStatusError, Failed, AttributeError)):
                ask(server, wire, user("x"), mode="stream")
            assert server.requests[0].status == 200
