"""What ``langchain-openai`` sends of a view is what OpenAI's API takes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from contextfold import Compactor, Policy
from formats.openai_tools import KINDS_OF_CALLS

base = pytest.importorskip("langchain_openai.chat_models.base")


@pytest.mark.parametrize("is_v1", [False, True])
@pytest.mark.parametrize("step", KINDS_OF_CALLS)
@pytest.mark.parametrize("window", [200_000, 8_000, 3_000])
def test_calls_to_tools_of_openai_and_what_answers_them_go_out_as_they_came_or_not_at_all(
    step: Any, window: int, is_v1: bool
) -> None:
    """Also what is shortened is of the type that the API takes for it, and a custom tool is called with bare text."""
    history = [HumanMessage("Look after it."), *(one for n in range(6) for one in step(n, is_v1=is_v1))]
    policy = Policy(keep=("fraction", 0.6), bound_thinking=False)
    result = Compactor(window=window, policy=policy).compact([*history, HumanMessage("And now?")])
    if window == 200_000:
        assert all(one is other for one, other in zip(result.messages, history, strict=False))
    sent = base._construct_responses_api_input(result.messages)
    call, output = KINDS_OF_CALLS[step]
    if f'"{call}"' not in inspect.getsource(base):
        pytest.skip(f"this langchain-openai sends no {call} again")
    items = [item for item in sent if item["type"] != "message"]
    assert [item["type"] for item in items] == [call, output] * (len(items) // 2)
    assert [item["call_id"] for item in items[::2]] == [item["call_id"] for item in items[1::2]]
    assert not any("call is not in this context" in str(item) for item in sent)
    for item in items:
        if item["type"] == "custom_tool_call":
            assert item["input"].startswith("*** Begin Patch\n")
        if item["type"] == "computer_call_output":
            assert item["output"]["type"] == "input_image"
            assert item["output"]["image_url"].startswith("data:image/png")
