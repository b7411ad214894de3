"""The three APIs answer the official SDKs: texts, calls, refusals, usage, and each event of a stream in its place."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest
from emulator import Answer, ProviderServer, ToolCall
from provider_clients import KEY, MODES, WIRES, ask, user

NATURAL_ENDS = {"openai-chat": "stop", "openai-responses": "completed", "anthropic": "end_turn"}
CALL_ENDS = {"openai-chat": "tool_calls", "openai-responses": "completed", "anthropic": "tool_use"}
LENGTH_ENDS = {"openai-chat": "length", "openai-responses": "max_output_tokens", "anthropic": "max_tokens"}
LONG = " ".join(f"item_{number} in src/module_{number}.py" for number in range(300))


def scripted(answer: Answer | str) -> ProviderServer:
    return ProviderServer(answers=[answer])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
class TestInEveryColor:
    def test_an_answer_without_a_script_names_what_was_sent_and_is_billed(self, wire: str, mode: str) -> None:
        with ProviderServer() as server:
            said = ask(server, wire, user(LONG), mode=mode)
            (request,) = server.requests
        assert "item_0" in said.text
        assert "src/module_299.py" in said.text
        assert said.finish == NATURAL_ENDS[wire]
        assert request.usage is not None
        reported = said.usage.prompt_tokens if wire == "openai-chat" else said.usage.input_tokens
        assert reported == request.tokens == request.usage.prompt > 4 * request.usage.answer > 0
        assert request.answer == Answer(said.text)

    def test_text_and_parallel_calls_arrive_whole(self, wire: str, mode: str) -> None:
        arguments = {"query": "two words and 引用", "nested": {"n": [1, 2]}}
        answer = Answer("I look.", (ToolCall("search", arguments), ToolCall("read", {"path": "a.py"}, "my_id")))
        with scripted(answer) as server:
            said = ask(server, wire, user("look"), mode=mode)
        calls = [(name, json.loads(given) if isinstance(given, str) else given) for name, given in said.calls]
        assert calls == [("search", arguments), ("read", {"path": "a.py"})]
        assert said.text == "I look."
        assert said.finish == CALL_ENDS[wire]

    def test_an_answer_ends_at_the_limit_of_the_request(self, wire: str, mode: str) -> None:
        limit = "max_output_tokens" if wire == "openai-responses" else "max_tokens"
        with scripted(LONG) as server:
            said = ask(server, wire, user("go on"), mode=mode, **{limit: 16})
            assert 0 < server.count_tokens(said.text) <= 16
        assert LONG.startswith(said.text)
        assert said.finish == LENGTH_ENDS[wire]

    def test_a_blank_answer_is_blank(self, wire: str, mode: str) -> None:
        with scripted("") as server:
            said = ask(server, wire, user("hello"), mode=mode)
        assert (said.text, said.calls, said.finish) == ("", (), NATURAL_ENDS[wire])

    def test_an_unknown_model_is_not_found_where_there_is_no_window_for_all(self, wire: str, mode: str) -> None:
        with ProviderServer(windows={"small": 1_000}, default_window=None) as server:
            assert ask(server, wire, user("hello"), mode=mode).text
            with pytest.raises((openai.NotFoundError, anthropic.NotFoundError), match="large"):
                ask(server, wire, user("hello"), mode=mode, model="large")


class TestRefusals:
    def test_each_api_has_its_own_place_for_one(self) -> None:
        refusal = Answer("I can't.", finish="refusal")
        with ProviderServer(answers=[refusal] * 5) as server:
            assert ask(server, "openai-chat", user("x")).text == "I can't."
            assert ask(server, "openai-chat", user("x"), mode="stream").text == "I can't."
            assert ask(server, "anthropic", user("x")).finish == "refusal"
            with openai.OpenAI(base_url=server.openai_url, api_key=KEY) as client:
                part: Any = client.responses.create(model="m", input="x").output[0]
                assert (part.content[0].type, part.content[0].refusal) == ("refusal", "I can't.")
                with client.responses.stream(model="m", input="x") as events:
                    kinds = [event.type for event in events]
        assert "response.refusal.delta" in kinds
        assert "response.refusal.done" in kinds


class TestStreams:
    """The exact sequence of events, read without an SDK."""

    @staticmethod
    def events(server: ProviderServer, path: str, body: dict[str, Any]) -> list[tuple[str | None, Any]]:
        text = httpx.post(server.url + path, json={"model": "m", "stream": True, **body}).text
        found: list[tuple[str | None, Any]] = []
        for block in text.strip().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            data = fields["data"]
            found.append((fields.get("event"), data if data == "[DONE]" else json.loads(data)))
        return found

    def test_anthropic(self) -> None:
        answer = Answer("Hi.", (ToolCall("f", {"a": 1}),))
        with scripted(answer) as server:
            events = self.events(server, "/v1/messages", {"max_tokens": 50, "messages": user("x")})
        assert [name for name, _ in events] == [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            *["content_block_delta"] * 2,
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
        assert all(data["type"] == name for name, data in events)
        assert "".join(data["delta"].get("partial_json", "") for name, data in events[6:8]) == '{"a": 1}'

    def test_chat(self) -> None:
        with scripted(Answer("Hi.")) as server:
            body: dict[str, Any] = {"messages": user("x")}
            events = self.events(server, "/v1/chat/completions", body)
        assert {name for name, _ in events} == {None}
        assert events[-1][1] == "[DONE]"
        choices = [data["choices"][0] for _, data in events[:-1]]
        assert choices[0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
        assert [choice["finish_reason"] for choice in choices] == [None, None, "stop"]
        assert choices[-1]["delta"] == {}

    def test_responses(self) -> None:
        with scripted(Answer(tool_calls=(ToolCall("f", {}),))) as server:
            events = self.events(server, "/v1/responses", {"input": "x"})
        assert [name for name, _ in events] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert [data["sequence_number"] for _, data in events] == list(range(7))
        assert events[2][1]["item"]["arguments"] == ""
        assert events[-1][1]["response"]["output"] == [events[-2][1]["item"]]


class TestScripts:
    def test_a_list_is_given_out_in_turn_and_then_digests_follow(self) -> None:
        with ProviderServer(answers=["one", None, Answer("three")]) as server:
            said = [ask(server, "openai-chat", user("see file_7")).text for _ in range(4)]
        assert said[::2] == ["one", "three"]
        assert all("file_7" in text for text in said[1::2])

    def test_a_refused_request_takes_nothing_out_of_the_list(self) -> None:
        with ProviderServer(windows={"small": 50}, answers=["one"]) as server:
            with pytest.raises(openai.BadRequestError):
                ask(server, "openai-chat", user("word " * 100))
            assert ask(server, "openai-chat", user("hello")).text == "one"

    @pytest.mark.parametrize("wire", WIRES)
    def test_a_function_drives_an_agent_through_calls_and_results(self, wire: str) -> None:
        """The agent loop of a user's test: the model calls a tool, gets the result, and answers with it."""

        def model(request: Any) -> Answer | str:
            if "42 degrees" in request.text:
                return "It is 42 degrees."
            return Answer(tool_calls=(ToolCall("weather", {"city": "Rome"}),))

        with ProviderServer(answers=model) as server:
            history: list[Any] = user("How warm is Rome?")
            said = ask(server, wire, history)
            assert said.calls[0][0] == "weather"
            history += RESULTS[wire](server)
            assert ask(server, wire, history).text == "It is 42 degrees."
            assert [request.status for request in server.requests] == [200, 200]


def _chat_result(server: ProviderServer) -> list[Any]:
    function = {"name": "weather", "arguments": '{"city": "Rome"}'}
    call = {"id": "call_00000100", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "42 degrees"},
    ]


def _responses_result(server: ProviderServer) -> list[Any]:
    call = {"type": "function_call", "call_id": "call_00000100", "name": "weather", "arguments": "{}"}
    return [call, {"type": "function_call_output", "call_id": call["call_id"], "output": "42 degrees"}]


def _anthropic_result(server: ProviderServer) -> list[Any]:
    call = {"type": "tool_use", "id": "toolu_00000100", "name": "weather", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "42 degrees"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


RESULTS = {"openai-chat": _chat_result, "openai-responses": _responses_result, "anthropic": _anthropic_result}


class TestOtherRoutes:
    def test_counting_tells_what_a_request_would_cost(self) -> None:
        messages = user("how many tokens are these?")
        with ProviderServer() as server:
            with anthropic.Anthropic(base_url=server.anthropic_url, api_key=KEY) as client:
                counted = client.messages.count_tokens(model="m", messages=messages, system="Be brief.")  # type: ignore[arg-type]
                refused = pytest.raises(anthropic.BadRequestError, match="at least one message")
                with refused:
                    client.messages.count_tokens(model="m", messages=[])
            ask(server, "anthropic", messages, system="Be brief.")
            (request,) = server.requests
            body = {"model": "m", "input": "how many tokens are these?"}
            also = httpx.post(server.openai_url + "/responses/input_tokens", json=body).json()
            broken = httpx.post(server.openai_url + "/responses/input_tokens", content=b"{").status_code
        assert counted.input_tokens == request.tokens > also["input_tokens"] > 5
        assert broken == 400

    def test_the_models_say_their_windows(self) -> None:
        server = ProviderServer(windows={"small": 1_000, "large": 9_000})
        with server, openai.OpenAI(base_url=server.start().openai_url, api_key=KEY) as client:
            windows = {model.id: model.max_model_len for model in client.models.list()}  # type: ignore[attr-defined]
        assert windows == {"small": 1_000, "large": 9_000}

    def test_clients_of_azure_are_served(self) -> None:
        with ProviderServer(answers=["hello"]) as server:
            settings: dict[str, Any] = {"azure_endpoint": server.url, "api_key": KEY, "api_version": "2024-10-21"}
            with openai.AzureOpenAI(**settings) as client:
                said = client.chat.completions.create(model="deployed", messages=user("hi"))  # type: ignore[arg-type]
            assert said.choices[0].message.content == "hello"
            assert server.requests[0].headers["api-key"] == "[hidden]"

    @pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages"])
    @pytest.mark.parametrize("body", [b"not json", b"[1, 2]", b"\xff"])
    def test_a_body_that_is_no_object_is_refused(self, path: str, body: bytes) -> None:
        with ProviderServer() as server:
            answer = httpx.post(server.openai_url + path, content=body)
            assert answer.status_code == server.requests[0].status == 400
            assert "JSON" in answer.json()["error"]["message"]
