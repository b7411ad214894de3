"""The provider refuses what the real ones refuse, in their words, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from benchmarks.kinds import read_file
from emulator import ProviderServer
from emulator.wires import AnthropicMessages, BedrockConverse, GeminiContent, OpenAIChat, OpenAIResponses, Wire
from hypothesis import example, given, settings
from hypothesis import strategies as st
from provider_clients import ask, user

from contextfold import Compactor, formats, overflow
from contextfold.testing import histories
from effort import examples

CHECKERS: dict[str, Wire] = {
    wire.name: wire for wire in (OpenAIChat(), OpenAIResponses(), AnthropicMessages(), BedrockConverse())
}
BESIDE_THE_MESSAGES = ("anthropic", "bedrock-converse")
"""APIs that take instructions beside the messages, and want the first word to be the user's."""
quick = settings(max_examples=examples(25), deadline=None, derandomize=True, database=None)

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
BOTH = {**CALL, "tool_calls": [*CALL["tool_calls"], {**CALL["tool_calls"][0], "id": "c2"}]}  # type: ignore[index, list-item]
HELLO = {"role": "user", "content": "hello"}
SAID = [{"role": "assistant", "content": "so"}]


def tool(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


def use(*ids: str, text: str | None = None) -> dict[str, Any]:
    said = [{"type": "text", "text": text}] if text else []
    return {
        "role": "assistant",
        "content": [*said, *({"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids)],
    }


def results(*ids: str, before: str | None = None, after: str | None = None) -> dict[str, Any]:
    blocks: list[Any] = [{"type": "tool_result", "tool_use_id": i, "content": "done"} for i in ids]
    first = [{"type": "text", "text": before}] if before else []
    last = [{"type": "text", "text": after}] if after else []
    return {"role": "user", "content": [*first, *blocks, *last]}


def call(call_id: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: str, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "output": "done"}


def blocks(*given: Any, role: str = "user") -> dict[str, Any]:
    """A message of Converse."""
    return {"role": role, "content": [{"text": block} if isinstance(block, str) else block for block in given]}


def tool_use(*ids: str, text: str = "so", given: Any = None) -> dict[str, Any]:
    calls = [{"toolUse": {"toolUseId": i, "name": "f", "input": {} if given is None else given}} for i in ids]
    return blocks(text, *calls, role="assistant")


def tool_results(*ids: str, before: tuple[Any, ...] = (), after: tuple[Any, ...] = ()) -> dict[str, Any]:
    done = [{"toolResult": {"toolUseId": i, "content": [{"text": "done"}]}} for i in ids]
    return blocks(*before, *done, *after)


POINT = {"cachePoint": {"type": "default"}}
FILE = {"document": {"format": "pdf", "name": "it", "source": {"bytes": "AAAA"}}}
TOLD = blocks("hello")


def hello(wire: str) -> dict[str, Any]:
    return TOLD if wire == "bedrock-converse" else HELLO


def problem_with(wire: str, messages: Any, **more: Any) -> str | None:
    field = "input" if wire == "openai-responses" else "messages"
    tools = {"toolConfig": {"tools": [{}]}} if wire == "bedrock-converse" else {}
    problem = CHECKERS[wire].problem({"max_tokens": 10, field: messages, **tools, **more})
    return problem and problem.message


REFUSED: list[tuple[str, Any, str]] = [
    ("openai-chat", None, "Missing required parameter: 'messages'"),
    ("openai-chat", [], "empty array"),
    ("openai-chat", ["hello"], "Invalid type for 'messages[0]'"),
    ("openai-chat", [{"role": "human", "content": "x"}], "Invalid value: 'human'"),
    ("openai-chat", [{"role": "user", "content": None}], "expected a string, got null"),
    ("openai-chat", [{"role": "user", "content": []}], "Invalid 'messages[0].content': empty array"),
    ("openai-chat", [HELLO, {"role": "assistant", "content": None}], "expected a string, got null"),
    ("openai-chat", [HELLO, {"role": "assistant", "content": "x", "tool_calls": []}], "messages[1].tool_calls"),
    ("openai-chat", [HELLO, tool("c1")], "must be a response to a preceeding message with 'tool_calls'"),
    ("openai-chat", [HELLO, CALL, tool("c1"), HELLO, tool("c1")], "must be a response to a preceeding message"),
    ("openai-chat", [HELLO, CALL, tool("c9")], "'tool_call_id' of 'c9' not found in 'tool_calls'"),
    ("openai-chat", [HELLO, CALL], "did not have response messages: c1"),
    ("openai-chat", [HELLO, BOTH, tool("c1"), HELLO, tool("c2")], "did not have response messages: c2"),
    ("openai-chat", [HELLO, CALL, {"role": "tool", "content": "x"}], "messages[2].tool_call_id"),
    ("openai-responses", None, "must be provided"),
    ("openai-responses", [], "must be provided"),
    ("openai-responses", ["hello"], "Invalid type for 'input[0]'"),
    ("openai-responses", [{"role": "tool", "content": "x"}], "Invalid value: 'tool'"),
    ("openai-responses", [{"role": "user"}], "Missing required parameter: 'input[0].content'"),
    (
        "openai-responses",
        [HELLO, {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}],
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    ("openai-responses", [HELLO, call("c1")], "No tool output found for function call c1."),
    ("openai-responses", [HELLO, output("c1")], "No tool call found for function call output with call_id c1."),
    ("openai-responses", [HELLO, output("c1"), call("c1")], "No tool call found for function call output"),
    (
        "openai-responses",
        [HELLO, call("c1", "custom_tool_call"), output("c1")],
        "No tool call found for function call output with call_id c1.",
    ),
    ("openai-responses", [HELLO, {"type": "reasoning", "id": "rs_1", "summary": []}], "without its required following"),
    ("openai-responses", [HELLO, {"type": "reasoning", "id": "rs_1", "summary": []}, HELLO], "'rs_1' of type"),
    ("anthropic", None, "messages: Field required"),
    ("anthropic", [], "at least one message is required"),
    ("anthropic", ["hello"], "messages.0: Input should be an object"),
    ("anthropic", [{"role": "system", "content": "x"}, HELLO], "use the top-level 'system' parameter"),
    ("anthropic", [HELLO, {"role": "system", "content": "x"}, HELLO], "'system' must precede an 'assistant' message"),
    ("anthropic", [HELLO, *SAID, {"role": "system", "content": "x"}], "'system' must follow a 'user' message"),
    ("anthropic", [{"role": "tool", "content": "x"}], "messages.0.role: Input should be 'user' or 'assistant'"),
    ("anthropic", [{"role": "user", "content": None}], "messages.0.content: Field required"),
    ("anthropic", [{"role": "assistant", "content": "x"}], 'first message must use the "user" role'),
    ("anthropic", [{"role": "user", "content": ""}], "all messages must have non-empty content"),
    ("anthropic", [HELLO, {"role": "assistant", "content": []}, HELLO], "messages.1: all messages must have non-empty"),
    ("anthropic", [{"role": "user", "content": " \n"}], "must contain non-whitespace text"),
    (
        "anthropic",
        [{"role": "user", "content": [{"type": "text", "text": ""}]}],
        "text content blocks must be non-empty",
    ),
    ("anthropic", [{"role": "user", "content": [{"type": "text", "text": " "}]}], "must contain non-whitespace text"),
    ("anthropic", [{"role": "user", "content": [{"text": "x"}]}], "messages.0.content.0.type: Field required"),
    ("anthropic", [HELLO, {"role": "assistant", "content": "ends in a blank "}], "cannot end with trailing whitespace"),
    ("anthropic", [HELLO, use("t1")], "messages.1: `tool_use` ids were found without `tool_result` blocks"),
    ("anthropic", [HELLO, use("t1", "t2"), results("t1")], "immediately after: t2."),
    ("anthropic", [HELLO, use("t1"), results("t1", before="well")], "immediately after: t1."),
    ("anthropic", [HELLO, use("t1"), results("t1", "t2")], "messages.2.content.1: unexpected `tool_use_id`"),
    ("anthropic", [HELLO, results("t1")], "messages.0.content.1: unexpected `tool_use_id`"),
    ("anthropic", [HELLO, use("t1"), results("t1", "t1")], "each tool_use must have a single result"),
    ("anthropic", [HELLO, use("t1"), results("t1"), use("t1"), results("t1")], "`tool_use` ids must be unique"),
    ("anthropic", [HELLO, {**use("t1"), "role": "user"}], "can only be in `assistant` messages"),
    ("anthropic", [HELLO, {**results("t1"), "role": "assistant"}], "can only be in `user` messages"),
    (
        "anthropic",
        [HELLO, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": "{}"}]}],
        "input: Input should be a valid dictionary",
    ),
    (
        "anthropic",
        [
            HELLO,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}]},
        ],
        "thinking.signature: Field required",
    ),
    *(
        ("bedrock-converse", messages, words)
        for messages, words in (
            (None, "must start with a user message"),
            ([], "must start with a user message"),
            (["hello"], "at 'messages.0.member.role' failed to satisfy constraint"),
            ([blocks("x", role="system"), TOLD], "Member must satisfy enum value set: [user, assistant]"),
            ([{"role": "user", "content": "hello"}], "The content field in the Message object at messages.0 is empty"),
            ([{"role": "user", "content": []}], "The content field in the Message object at messages.0 is empty"),
            ([{"role": "user", "content": [7]}], "The ContentBlock object at messages.0.content.0 must set one of"),
            ([blocks({"toolUse": "t1"}, role="assistant")], "messages.0.content.0 must set one of"),
            ([blocks({"toolResult": ["t1"]})], "messages.0.content.0 must set one of the following keys"),
            ([blocks({"type": "text", "text": "x"})], "messages.0.content.0 must set one of the following keys"),
            ([blocks(" \n")], "The text field in the ContentBlock object at messages.0.content.0 is blank."),
            ([blocks(POINT)], "a cachePoint must follow a content block"),
            ([blocks(FILE)], "has a document and no text"),
            ([blocks("x", role="assistant")], "must start with a user message"),
            ([TOLD, TOLD], "must alternate between user and assistant roles"),
            ([TOLD, blocks("ends in a blank ", role="assistant")], "cannot end with trailing whitespace"),
            ([TOLD, tool_use("t1")], "Expected toolResult blocks at messages.2.content for the following Ids: t1"),
            ([TOLD, tool_use("t1", "t2"), tool_results("t1")], "messages.2.content for the following Ids: t2"),
            ([TOLD, tool_use("t1"), tool_results("t1", "t2")], "exceeds the number of toolUse blocks"),
            ([tool_results("t1")], "messages.0.content exceeds the number of toolUse blocks of previous turn"),
            ([TOLD, tool_use("t1"), tool_results("t1", "t1")], "contain duplicate Ids: t1"),
            ([TOLD, *[tool_use("t1"), tool_results("t1")] * 2], "`tool_use` ids must be unique"),
            ([TOLD, tool_use("t1"), tool_results("t1", before=("well",))], "without `tool_result` blocks immediately"),
            ([TOLD, tool_use("a b"), tool_results("a b")], "must satisfy regular expression pattern"),
            ([TOLD, tool_use("t1", given="{}"), tool_results("t1")], "toolUse.input is invalid. Provide a json object"),
            ([{**tool_use("t1"), "role": "user"}], "is in a message of the user"),
            ([TOLD, {**tool_results("t1"), "role": "assistant"}], "is in a message of the assistant"),
        )
    ),
]

ACCEPTED: list[tuple[str, Any]] = [
    ("openai-chat", [{"role": "developer", "content": "be brief"}, HELLO, BOTH, tool("c2"), tool("c1"), HELLO]),
    ("openai-chat", [HELLO, HELLO, {"role": "assistant", "content": None, "refusal": "no"}, HELLO]),
    ("openai-chat", [HELLO, {"role": "assistant", "content": ""}]),
    ("openai-responses", "hello"),
    ("openai-responses", [HELLO, call("c1"), HELLO, call("c2"), output("c2"), output("c1")]),
    ("openai-responses", [HELLO, call("c1", "custom_tool_call"), output("c1", "custom_tool_call_output")]),
    ("openai-responses", [HELLO, {"type": "reasoning", "id": "rs_1", "summary": []}, call("c1"), output("c1")]),
    ("openai-responses", [HELLO, {"type": "reasoning", "summary": [], "encrypted_content": "abc"}, HELLO]),
    ("openai-responses", [HELLO, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, HELLO]),
    ("anthropic", [HELLO, HELLO, use("t1", "t2", text="so"), results("t2", "t1", after="and now?")]),
    ("anthropic", [HELLO, use("t1"), {"role": "assistant", "content": "wait"}, results("t1"), HELLO]),
    ("anthropic", [HELLO, use("t1"), use("t2"), results("t1"), results("t2")]),
    ("anthropic", [HELLO, {"role": "assistant", "content": "a beginning"}]),
    ("anthropic", [HELLO, {"role": "assistant", "content": ""}]),
    ("bedrock-converse", [TOLD, tool_use("t1", "t2"), tool_results("t2", "t1", after=("and now?", POINT))]),
    ("bedrock-converse", [blocks("see", FILE, POINT), blocks("a beginning", role="assistant")]),
]


class TestRules:
    @pytest.mark.parametrize(("wire", "messages", "words"), REFUSED)
    def test_what_providers_refuse_is_refused_in_their_words(self, wire: str, messages: Any, words: str) -> None:
        problem = problem_with(wire, messages)
        assert problem is not None
        assert words in problem

    @pytest.mark.parametrize(("wire", "messages"), ACCEPTED)
    def test_what_providers_accept_is_accepted(self, wire: str, messages: Any) -> None:
        assert problem_with(wire, messages) is None

    @pytest.mark.parametrize("limit", [{"max_tokens": None}, {"max_tokens": 0}, {"max_tokens": "9"}])
    def test_anthropic_wants_an_answer_limit(self, limit: Any) -> None:
        assert (problem_with("anthropic", [HELLO], **limit) or "").startswith("max_tokens: ")

    def test_anthropic_wants_texts_in_the_system_prompt(self) -> None:
        assert problem_with("anthropic", [HELLO], system="") is None
        assert problem_with("anthropic", [HELLO], system=[{"type": "text", "text": "x"}]) is None
        assert "system: text" in (problem_with("anthropic", [HELLO], system=[{"type": "text", "text": ""}]) or "")

    def test_responses_knows_no_earlier_response(self) -> None:
        assert "'resp_9' not found" in (problem_with("openai-responses", "x", previous_response_id="resp_9") or "")

    def test_anthropic_holds_no_thread(self) -> None:
        thread = {"type": "continue", "previous_message_id": "msg_9"}
        assert "msg_9" in (problem_with("anthropic", [HELLO], thread=thread) or "")
        assert problem_with("anthropic", [HELLO], thread={"type": "create"}) is None

    def test_with_thinking_a_chain_of_calls_opens_with_it(self) -> None:
        thinking = {"type": "enabled", "budget_tokens": 1024}
        thought = {"type": "thinking", "thinking": "hm", "signature": "abc"}
        bare = [HELLO, use("t1"), results("t1")]
        opened = [HELLO, {"role": "assistant", "content": [thought, *use("t1")["content"]]}, results("t1")]
        longer = [*opened, use("t2"), results("t2")]
        assert problem_with("anthropic", bare) is None
        assert "Expected `thinking`" in (problem_with("anthropic", bare, thinking=thinking) or "")
        assert problem_with("anthropic", opened, thinking=thinking) is None
        assert problem_with("anthropic", longer, thinking=thinking) is None
        assert (
            problem_with("anthropic", [*bare, {"role": "assistant", "content": "so"}, HELLO], thinking=thinking) is None
        )

    def test_a_system_role_is_taken_behind_the_user_by_models_that_know_it(self) -> None:
        wire = [HELLO, {"role": "system", "content": "x"}, *SAID]
        assert problem_with("anthropic", wire) is None
        assert problem_with("anthropic", wire, model="claude-opus-5") is None
        assert 'Unexpected role "system"' in (problem_with("anthropic", wire, model="claude-sonnet-4-5") or "")

    def test_bedrock_wants_the_tools_with_their_calls(self) -> None:
        called = [TOLD, tool_use("t1"), tool_results("t1")]
        assert "toolConfig field must be defined" in (problem_with("bedrock-converse", called, toolConfig=None) or "")
        assert "system.0 is blank" in (problem_with("bedrock-converse", [TOLD], system=[{"text": ""}]) or "")

    @pytest.mark.parametrize("wire", sorted(CHECKERS))
    def test_refusals_of_pairing_are_what_the_classifier_calls_malformed(self, wire: str) -> None:
        """A client that repairs such histories has to recognize them (R: overflow.classify, ``malformed_history``)."""
        pairing = [text for name, messages, text in REFUSED if name == wire and ("tool" in text or "`" in text)]
        texts = [problem_with(wire, messages) for name, messages, text in REFUSED if name == wire and text in pairing]
        wrong = [text for text in texts if not is_malformed(text) and "found" in str(text)]
        assert pairing
        assert not wrong


def is_malformed(text: str | None) -> bool:
    verdict = overflow.classify(status=400, message=text)
    return verdict is not None and verdict.kind == "malformed_history"


def sendable(wire: str, messages: list[Any]) -> list[Any]:
    """The request that these would be part of: the user has the last word, and for some APIs also the first.

    For these, instructions stand beside the messages, and empty messages, which may be in a history, are not sent.
    """
    beside = wire in BESIDE_THE_MESSAGES
    kept = [
        message for message in messages if not beside or (message.get("role") != "system" and message.get("content"))
    ]
    kept = [hello(wire), *kept] if beside and kept and kept[0]["role"] == "assistant" else kept
    return [*kept, hello(wire)] if kept and kept[-1].get("role") == "assistant" and not is_pending(wire, kept) else kept


def is_pending(wire: str, messages: list[Any]) -> bool:
    """Whether the history ends in calls that wait for results: the strategies make such, and no provider takes them."""
    problem = problem_with(wire, messages) or ""
    return any(
        words in problem
        for words in ("did not have response", "No tool output found", "ids were found without", "Expected toolResult")
    )


def view_of(wire: str, messages: list[Any]) -> list[Any]:
    """The view, as it is sent where turns have to alternate: the caller's own neighbors are joined for sending only."""
    compactor, views = Compactor(window=100_000), list[Any]()
    if not messages or not formats.get(wire).rules.takes_turns:
        return list(compactor.compact(messages).messages)
    compactor.call(views.append, messages, format=wire)
    return list(views[-1])


def as_functions(messages: list[Any]) -> list[Any]:
    """Custom calls as function calls: repairs write the results of functions, whatever the kind of the call."""
    kinds = {"custom_tool_call": "function_call", "custom_tool_call_output": "function_call_output"}
    return [
        {**message, "type": kinds[message["type"]], "arguments": "{}"} if message.get("type") in kinds else message
        for message in messages
    ]


class TestAgainstTheEngine:
    """The bench and the engine were written apart, and agree on what a provider takes."""

    @pytest.mark.parametrize("wire", sorted(CHECKERS))
    def test_whole_histories_are_accepted(self, wire: str) -> None:
        @quick
        @given(histories(wire, max_units=3, huge_units=5))
        def check(messages: list[Any]) -> None:
            given_messages = sendable(wire, messages)
            assert is_pending(wire, given_messages) or problem_with(wire, given_messages) is None

        check()

    @pytest.mark.parametrize("wire", sorted(CHECKERS))
    def test_views_of_broken_histories_are_accepted(self, wire: str) -> None:
        @quick
        @given(histories(wire, broken=True, max_units=3, huge_units=5))
        def check(messages: list[Any]) -> None:
            if "must be unique" in (problem_with(wire, sendable(wire, messages)) or ""):
                return  # two calls of one id are a mistake that no view mends
            view = sendable(wire, view_of(wire, as_functions(messages)))
            assert not view or is_pending(wire, view) or problem_with(wire, view) is None

        check()

    @pytest.mark.strict
    @pytest.mark.parametrize(
        "file",
        [
            "entire-cli-claude-code/0442a060.jsonl",
            "entire-skills-codex/019df8bf-2e48-7332-9ffb-ddedd846cae0.jsonl",
            "deer-flow-replay-zh/china-food-delivery.txt",
        ],
    )
    def test_views_of_real_conversations_are_accepted_over_http(self, transcripts: Path, file: str) -> None:
        """Whatever is refused is refused for its size, by a tokenizer that the engine does not know."""
        conversation = read_file(transcripts / file)[0]
        view = Compactor(window=24_000).compact(conversation.messages).messages
        with ProviderServer(windows={"small": 32_000}) as server:
            ask(server, conversation.format, view)
            assert server.requests[0].status == 200


class TestOverHTTP:
    def test_a_refusal_is_an_error_400_and_is_recorded(self) -> None:
        with ProviderServer() as server:
            with pytest.raises(openai.BadRequestError) as caught:
                ask(server, "openai-chat", [*user("hello"), tool("c1")])
            (request,) = server.requests
        assert caught.value.param == "messages.[1].role"
        assert request.status == 400
        assert request.answer is None
        assert "preceeding" in request.error["error"]["message"]
        assert request.body["messages"][1]["tool_call_id"] == "c1"


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "type",
                        "text",
                        "tool_calls",
                        "id",
                        "call_id",
                        "toolUse",
                        "toolResult",
                        "tools",
                        "parts",
                        "functionCall",
                    ]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
@example([{"role": "user", "parts": [{"functionResponse": {"name": "f", "parts": [7]}}]}])
@quick
def test_no_body_whatever_makes_the_checks_fail(value: Any) -> None:
    """Nonsense ends in a refusal or an answer, never in a broken server."""
    for wire in (*CHECKERS.values(), GeminiContent()):
        for field in ("messages", "input", "contents"):
            body = {field: value, "max_tokens": 5, "system": value, "tools": value, "toolConfig": value}
            wire.segments(body)
            wire.problem(body)
