"""Windows: what fits is answered to the last token, what does not is refused in the words of a chosen provider."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest
from emulator import WORDINGS, ProviderServer, Wording
from emulator.wording import Figures, wording_named
from provider_clients import WIRES, Failed, ask, user

from contextfold import overflow

LONG = "word " * 400
WINDOW = 300
LIMITS = {"openai-chat": "max_tokens", "openai-responses": "max_output_tokens", "anthropic": "max_tokens"}


def words(server: ProviderServer, wire: str, prompt: int) -> list[dict[str, Any]]:
    """A message that makes a prompt of exactly so many tokens."""
    ask(server, wire, user("word"), **{LIMITS[wire]: 10})
    frame = server.requests[-1].tokens - 1
    return user("word" + " word" * (prompt - frame - 1))


@pytest.mark.parametrize("wire", WIRES)
class TestBorders:
    def test_the_last_token_that_fits_is_answered_and_the_next_is_refused(self, wire: str) -> None:
        with ProviderServer(windows={"small": WINDOW}, count_tokens=lambda text: len(text.split())) as server:
            fitting = words(server, wire, WINDOW - 10)
            assert ask(server, wire, fitting, **{LIMITS[wire]: 10}).text
            with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as caught:
                ask(server, wire, user("word " * (WINDOW + 1)), **{LIMITS[wire]: 10})
            assert server.requests[1].tokens == WINDOW - 10
        verdict = overflow.classify(caught.value)
        assert verdict is not None
        assert verdict.kind == "prompt_too_long"
        assert verdict.limit in (WINDOW, None)

    def test_prompt_and_answer_limit_together_are_another_error_or_none(self, wire: str) -> None:
        """The Responses API answers with what there is room for; the other two refuse."""
        with ProviderServer(windows={"small": WINDOW}, answers=["word " * 500] * 2) as server:
            if wire == "openai-responses":
                said = ask(server, wire, user("hello"), **{LIMITS[wire]: WINDOW})
                assert said.finish == "max_output_tokens"
                assert said.usage.total_tokens == WINDOW
                return
            with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as caught:
                ask(server, wire, user("hello"), **{LIMITS[wire]: WINDOW})
        verdict = overflow.classify(caught.value)
        assert verdict is not None
        assert (verdict.kind, verdict.limit) == ("output_budget", WINDOW)

    @pytest.mark.parametrize("mode", ["plain", "async"])
    def test_a_plain_request_gets_the_error_as_a_status(self, wire: str, mode: str) -> None:
        with ProviderServer(default_window=WINDOW) as server:
            with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)):
                ask(server, wire, user(LONG), mode=mode, **{LIMITS[wire]: 10})
            assert server.requests[0].status == 400

    @pytest.mark.parametrize("mode", ["stream", "async-stream"])
    def test_a_streaming_request_may_get_it_after_http_200(self, wire: str, mode: str) -> None:
        overflow_of = {"openai-chat": "openai-chat-stream", "anthropic": "anthropic-stream"}.get(wire, "native")
        with ProviderServer(default_window=WINDOW, overflow=overflow_of) as server:
            with pytest.raises((openai.APIError, anthropic.APIStatusError, Failed)) as caught:
                ask(server, wire, user(LONG), mode=mode, **{LIMITS[wire]: 10})
            assert server.requests[0].status == 200
            assert server.requests[0].answer is None
        assert not isinstance(caught.value, openai.BadRequestError)
        error: Any = caught.value
        verdict = (
            overflow.classify(code=error.code, message=str(error)) if wire != "anthropic" else overflow.classify(error)
        )
        assert verdict is not None
        assert verdict.kind == "prompt_too_long"


class TestTruncation:
    @pytest.mark.parametrize("wire", WIRES)
    def test_a_server_that_truncates_reads_the_newest_and_reports_less_than_was_sent(self, wire: str) -> None:
        messages = [*user("marker_old " + LONG), {"role": "assistant", "content": "ok"}, *user("marker_new")]
        with ProviderServer(windows={"small": 100}, overflow="truncate") as server:
            said = ask(server, wire, messages, **{LIMITS[wire]: 30})
            (request,) = server.requests
        assert "marker_new" in said.text
        assert "marker_old" not in said.text
        assert request.usage is not None
        assert request.usage.prompt < 100 < request.tokens

    def test_the_end_of_one_message_that_is_too_long_remains(self) -> None:
        with ProviderServer(windows={"small": 100}, overflow="truncate") as server:
            said = ask(server, "openai-chat", user("marker_old " + LONG + " marker_new"), max_tokens=30)
            (request,) = server.requests
        assert "marker_new" in said.text
        assert "marker_old" not in said.text
        assert request.usage is not None
        assert request.usage.prompt == 70

    def test_responses_truncates_where_it_is_asked_to(self) -> None:
        with ProviderServer(windows={"small": 100}) as server:
            assert ask(server, "openai-responses", user(LONG), truncation="auto").text
            with pytest.raises(openai.BadRequestError):
                ask(server, "openai-responses", user(LONG))


class TestWordings:
    @pytest.mark.parametrize("name", WORDINGS)
    def test_the_classifier_understands_each_of_them(self, name: str) -> None:
        """Bodies as they are sent, with figures of their own, for a prompt that is too long and an answer that is."""
        wording = WORDINGS[name]
        bodies = {}
        for case, figures in {"prompt": Figures(8_000, 12_345, 500), "budget": Figures(8_000, 7_800, 500)}.items():
            problem = wording.problem(figures)
            bodies[case] = problem and json.dumps(
                wording.answer(problem, figures, lambda p: {"message": p.message}).body
            )
        verdict = overflow.classify(bodies["prompt"], status=wording.status)
        assert verdict is not None, bodies["prompt"]
        assert verdict.kind == ("rate_limit_too_small" if name == "openai-rate" else "prompt_too_long")
        assert verdict.limit in (8_000, None)
        assert (bodies["budget"] is None) == (wording.budget is None)
        if bodies["budget"] is not None:
            budget = overflow.classify(bodies["budget"], status=wording.status)
            assert budget is not None, bodies["budget"]
            assert budget.kind == "output_budget"

    def test_tools_are_named_where_there_are_some(self) -> None:
        problem = WORDINGS["openai-chat"].problem(Figures(8_000, 12_345, 500, tools=345))
        assert problem is not None
        assert "(12000 in the messages, 345 in the functions)" in problem.message

    @pytest.mark.parametrize("name", ["vllm", "llama.cpp", "openrouter-wrapped", "databricks", "bedrock", "mistral"])
    @pytest.mark.parametrize("wire", WIRES)
    def test_the_sdks_carry_them_to_the_caller(self, wire: str, name: str) -> None:
        failures = (openai.APIStatusError, anthropic.APIStatusError)
        with ProviderServer(default_window=WINDOW, overflow=name) as server, pytest.raises(failures) as caught:
            ask(server, wire, user(LONG), **{LIMITS[wire]: 10})
        verdict = overflow.classify(caught.value)
        assert verdict is not None
        assert verdict.kind == "prompt_too_long"

    def test_a_gateway_puts_its_own_body_into_the_stream_of_every_api(self) -> None:
        with ProviderServer(default_window=WINDOW, overflow="openrouter-stream") as server:
            for path, field in (("/responses", "input"), ("/chat/completions", "messages"), ("/messages", "messages")):
                body = {"model": "m", "stream": True, "max_tokens": 10, field: user(LONG)}
                answer = httpx.post(server.openai_url + path, json=body)
                assert answer.status_code == 200
                assert "maximum context length is 300 tokens" in answer.text
                assert "context-compression" in server.requests[-1].error["error"]["message"]

    def test_a_wording_of_ones_own(self) -> None:
        wording = Wording("at most {window}, and you sent {prompt}, {excess} too many", status=418)
        raised = pytest.raises(openai.APIStatusError, match="at most 300, and you sent")
        with ProviderServer(default_window=WINDOW, overflow=wording) as server, raised as caught:
            ask(server, "openai-chat", user(LONG))
        assert caught.value.status_code == 418

    def test_an_unknown_name_is_refused_before_anything_runs(self) -> None:
        with pytest.raises(ValueError, match=r"'cloud-nine'.*native.*vllm"):
            ProviderServer(overflow="cloud-nine")
        assert wording_named("native", "anthropic") is WORDINGS["anthropic"]


class TestWhatCounts:
    def tokens(self, server: ProviderServer, wire: str, messages: list[Any], **more: Any) -> int:
        ask(server, wire, messages, **more)
        return server.requests[-1].tokens

    def test_images_cost_their_price_and_not_their_length(self) -> None:
        data = "iVBORw0KGgo" + "A" * 40_000
        chat = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]
        responses = [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"}]
        source = {"type": "base64", "media_type": "image/png", "data": data}
        with ProviderServer() as server:
            for wire, block in zip(WIRES, (chat, responses, [{"type": "image", "source": source}]), strict=True):
                assert 500 < self.tokens(server, wire, [{"role": "user", "content": block}]) < 2_000

    def test_documents_of_text_cost_their_text(self) -> None:
        source = {"type": "text", "media_type": "text/plain", "data": "plain words " * 100}
        with ProviderServer() as server:
            assert (
                150
                < self.tokens(
                    server, "anthropic", [{"role": "user", "content": [{"type": "document", "source": source}]}]
                )
                < 400
            )

    def test_tools_instructions_arguments_and_ciphertext_count(self) -> None:
        tools = [{"type": "function", "name": "f", "description": "words " * 50, "parameters": {}}]
        with ProviderServer() as server:
            bare = self.tokens(server, "openai-responses", user("x"))
            assert self.tokens(server, "openai-responses", user("x"), tools=tools) > bare + 50
            assert self.tokens(server, "openai-responses", user("x"), instructions="words " * 50) > bare + 50
            reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "A" * 16_000}
            assert 3_000 < self.tokens(server, "openai-responses", [reasoning, *user("x")]) - bare < 3_100
            call = {"type": "tool_use", "id": "t", "name": "f", "input": {"text": "words " * 50}}
            result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "words " * 50}]}
            messages = [*user("x"), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
            assert self.tokens(server, "anthropic", messages) > bare + 100


class TestCache:
    BEGINNING = "A long beginning. " * 400

    @pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
    def test_openai_reports_a_repeated_beginning_in_steps(self, wire: str) -> None:
        history = user(self.BEGINNING)
        with ProviderServer() as server:
            first = ask(server, wire, history)
            again = ask(server, wire, [*history, {"role": "assistant", "content": "ok"}, *user("and now?")])
            other = ask(server, wire, [*user("changed"), *history])
        cached = [self.cached(said.usage) for said in (first, again, other)]
        assert cached[0] == cached[2] == 0
        assert cached[1] > 1_024
        assert cached[1] % 128 == 0

    @staticmethod
    def cached(usage: Any) -> int:
        details = getattr(usage, "prompt_tokens_details", None) or usage.input_tokens_details
        return int(details.cached_tokens)

    def test_anthropic_caches_what_is_marked_and_says_what_it_wrote(self) -> None:
        system = [{"type": "text", "text": self.BEGINNING, "cache_control": {"type": "ephemeral"}}]
        with ProviderServer() as server:
            usages = [ask(server, "anthropic", user(text), system=system).usage for text in ("one", "two")]
            unmarked = ask(server, "anthropic", user("three"), system=self.BEGINNING).usage
            total = server.requests[0].tokens
        written, read = usages
        assert written.cache_creation_input_tokens == read.cache_read_input_tokens > 1_024
        assert written.cache_read_input_tokens == read.cache_creation_input_tokens == 0
        assert written.input_tokens + written.cache_creation_input_tokens == total
        assert (unmarked.cache_read_input_tokens, unmarked.cache_creation_input_tokens) == (0, 0)

    def test_a_mark_for_the_whole_request_moves_with_the_conversation(self) -> None:
        more: dict[str, Any] = {"extra_body": {"cache_control": {"type": "ephemeral"}}}
        history = user(self.BEGINNING)
        with ProviderServer() as server:
            first = ask(server, "anthropic", history, **more).usage
            longer = [*history, {"role": "assistant", "content": "ok"}, *user("so?")]
            second = ask(server, "anthropic", longer, **more).usage
        assert first.cache_creation_input_tokens == second.cache_read_input_tokens > 0
        assert 0 < second.cache_creation_input_tokens < 30

    def test_short_beginnings_are_not_cached_unless_the_server_says_so(self) -> None:
        for minimum, cached in ((1_024, 0), (100, 128)):
            with ProviderServer(cache_minimum=minimum) as server:
                usages = [ask(server, "openai-chat", user("word " * 200)).usage for _ in range(2)]
            assert self.cached(usages[1]) == cached
