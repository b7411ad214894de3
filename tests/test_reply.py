"""What answers say about their requests, in every shape, and what is not taken from them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from contextfold.calls.usage import Usage, get, read_usage

SHAPES: list[tuple[Any, Usage]] = [
    (
        {"choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 900, "completion_tokens": 20}},
        Usage(900, 20, "stop"),
    ),
    (
        {"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
         "usage": {"input_tokens": 900, "input_tokens_details": {"cached_tokens": 800}, "output_tokens": 5}},
        Usage(900, 5, "max_output_tokens"),
    ),
    (
        {"stop_reason": "end_turn", "usage": {"input_tokens": 4, "cache_read_input_tokens": 800,
                                              "cache_creation_input_tokens": 96, "output_tokens": 5}},
        Usage(900, 5, "end_turn"),
    ),
    (
        SimpleNamespace(usage_metadata={"input_tokens": 900, "output_tokens": 5, "input_token_details": {}},
                        response_metadata={"finish_reason": "length"}),
        Usage(900, 5, "length"),
    ),
    ({"response_metadata": {"stop_reason": "tool_use"}}, Usage(finish="tool_use")),
    ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
     Usage(None, 7, "end_turn")),
    ("a text", Usage()),
    (None, Usage()),
    ({"choices": [], "usage": None}, Usage()),
    ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, Usage(None, 0)),
    ({"usage": {"prompt_tokens": True, "completion_tokens": "9"}}, Usage()),
]  # fmt: skip


@pytest.mark.parametrize(("response", "expected"), SHAPES)
def test_every_shape_is_read(response: Any, expected: Usage) -> None:
    assert read_usage(response) == expected


DECLINED = SimpleNamespace(type="message", input_tokens=4_500, output_tokens=0)
SERVED = SimpleNamespace(type="fallback_message", input_tokens=4_500, output_tokens=1)


@pytest.mark.parametrize(
    "response",
    [
        {"usage": {"input_tokens": 9_000, "server_tool_use": {"web_search_requests": 3}}},
        {"usage": {"input_tokens": 9_000}, "content": [{"type": "mcp_tool_use", "id": "m"}, {"type": "text"}]},
        {"usage": {"input_tokens": 9_000}, "content": [SimpleNamespace(type="server_tool_use", name="code_execution")]},
        {
            "usage": {"inputTokens": 9_000},
            "output": {"message": {"content": [{"toolUse": {"type": "server_tool_use", "toolUseId": "a"}}]}},
        },
        SimpleNamespace(
            usage_metadata={"input_tokens": 9_000}, content=[{"type": "server_tool_call", "name": "web_search"}]
        ),
        SimpleNamespace(
            usage_metadata={"input_tokens": 9_000},
            content="It rains.",
            additional_kwargs={"tool_outputs": [{"type": "web_search_call"}]},
        ),
        SimpleNamespace(
            usage=SimpleNamespace(input_tokens=9_000, server_tool_use=SimpleNamespace(web_fetch_requests=1))
        ),
        {"usage": {"input_tokens": 9_000}, "context_management": {"applied_edits": [{"type": "clear_tool_uses"}]}},
        {"usage": {"input_tokens": 9_000}, "output": [{"type": "web_search_call"}, {"type": "message"}]},
        {"usage": {"input_tokens": 9_000, "iterations": [{"type": "message"}, {"type": "fallback_message"}]}},
        SimpleNamespace(usage=SimpleNamespace(input_tokens=9_000, iterations=[DECLINED, SERVED])),
    ],
)
def test_usage_about_other_messages_than_the_ones_sent_is_not_read(response: Any) -> None:
    """Hosted tools count every round, and so does a second model where one has declined; an edited context counts what
    was left of it."""
    assert read_usage(response).input_tokens is None


@pytest.mark.parametrize("served", [{"type": "message"}, {"type": "fallback_message"}])
def test_usage_of_one_round_is_read_whichever_model_answered(served: dict[str, Any]) -> None:
    assert read_usage({"usage": {"input_tokens": 9_000, "iterations": [served]}}).input_tokens == 9_000


def test_a_computer_call_is_the_callers_to_answer_and_its_usage_counts() -> None:
    assert read_usage({"usage": {"input_tokens": 9}, "output": [{"type": "computer_call"}]}).input_tokens == 9
    unused = {"usage": {"input_tokens": 9, "server_tool_use": {"web_search_requests": 0}}}
    assert read_usage(unused).input_tokens == 9


def test_an_object_may_say_it_itself_and_one_that_raises_says_nothing() -> None:
    class Stream:
        contextfold_usage = Usage(7, 8, "stop")

        @property
        def usage(self) -> Any:
            raise RuntimeError("read the stream first")

    assert read_usage(Stream()) == Usage(7, 8, "stop")
    assert get(Stream(), "usage") is None


def test_events_of_a_stream_add_up() -> None:
    whole = Usage(100, 1).merged(Usage(None, 50)).merged(Usage(0, 60, "stop"))
    assert whole == Usage(100, 60, "stop")
