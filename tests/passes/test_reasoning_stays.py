"""Reasoning in messages that stay: an answer whose provider does not take it without goes back with all of its own."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from contextfold import Compactor, Policy, formats
from contextfold.messages import Reasoning
from contextfold.passes.shorten import shorten_old
from contextfold.tokens import TokenCounter

WORDS = "Let me think about what the file says. " * 30
SIGNED = {"type": "thinking", "thinking": WORDS, "signature": "c2ln"}


def chat(n: int, thought: dict[str, Any]) -> list[Any]:
    call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"n": n})}}
    answer = {"role": "assistant", "content": "", **thought, "tool_calls": [call]}
    return [answer, {"role": "tool", "tool_call_id": f"c{n}", "content": f"output {n}"}]


def anthropic(n: int, block: dict[str, Any]) -> list[Any]:
    call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"n": n}}
    result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"output {n}"}
    return [{"role": "assistant", "content": [block, call]}, {"role": "user", "content": [result]}]


def langchain(n: int, fields: dict[str, Any]) -> list[Any]:
    call = {"name": "read", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"}
    answer = {"type": "ai", "content": "", **fields, "tool_calls": [call]}
    return [answer, {"type": "tool", "tool_call_id": f"c{n}", "content": f"output {n}"}]


Step = Callable[[int, dict[str, Any]], list[Any]]
DETAIL = {"type": "reasoning.text", "text": WORDS, "format": "unknown"}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": WORDS}]}
STAYS: dict[str, tuple[str, Step, dict[str, Any]]] = {
    "DeepSeek, Kimi": ("openai-chat", chat, {"reasoning_content": WORDS}),
    "vLLM": ("openai-chat", chat, {"reasoning": WORDS}),
    "OpenRouter": ("openai-chat", chat, {"reasoning": WORDS, "reasoning_details": [DETAIL]}),
    "DeepSeek by Anthropic's API": ("anthropic", anthropic, {"type": "thinking", "thinking": WORDS}),
    "DeepSeek in LangChain": ("langchain", langchain, {"additional_kwargs": {"reasoning_content": WORDS}}),
    "OpenAI in LangChain": ("langchain", langchain, {"content": [ITEM]}),
}
GOES: dict[str, tuple[str, Step, dict[str, Any]]] = {
    "Claude": ("anthropic", anthropic, SIGNED),
    "Claude in LangChain": ("langchain", langchain, {"content": [SIGNED]}),
    "Claude in LiteLLM": ("openai-chat", chat, {"reasoning_content": WORDS, "thinking_blocks": [SIGNED]}),
}
POLICIES = {
    "first the cheap tiers": Policy(bound_thinking=False),
    "a part stays shortened": Policy(budgets={"shortened": 0.1}, bound_thinking=False),
}


def lost(format: str, step: Step, thought: dict[str, Any], policy: Policy) -> int:
    """How many answers in all views came without the reasoning that they had."""
    chosen, record, found, passes = formats.get(format), None, 0, 0
    wire: list[Any] = []
    compactor = Compactor(window=8_000, policy=policy, summarizer=lambda prompt: "What was read so far.")
    for n in range(60):
        if n % 5 == 0:
            said = {"content": f"What does file {n} say?"}
            wire.append(said | ({"type": "human"} if format == "langchain" else {"role": "user"}))
        wire += step(n, copy.deepcopy(thought))
        out = compactor.compact(wire, record, format=format)
        record, passes = out.compaction, passes + out.changed
        for message in (chosen.decode(entry) for entry in out.messages):
            if message.tool_calls and not any(isinstance(part, Reasoning) for part in message.parts):
                found += 1
    assert passes > 1
    return found


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(("format", "step", "thought"), STAYS.values(), ids=STAYS)
def test_no_answer_goes_back_without_its_reasoning_to_a_provider_that_refuses_that(
    format: str, step: Step, thought: dict[str, Any], policy: Policy
) -> None:
    assert lost(format, step, thought, policy) == 0


@pytest.mark.parametrize(("format", "step", "thought"), GOES.values(), ids=GOES)
def test_old_thinking_of_claude_is_taken_out_of_messages_that_stay(
    format: str, step: Step, thought: dict[str, Any]
) -> None:
    assert lost(format, step, thought, POLICIES["first the cheap tiers"]) > 0


def test_what_an_answer_of_many_thoughts_costs_grows_with_their_number_and_not_with_its_square() -> None:
    steps = []
    for count in (500, 1_000):
        blocks = [{**SIGNED, "thinking": f"thought {n}"} for n in range(count)]
        answer = {"role": "assistant", "content": [*blocks, {"type": "text", "text": "It is done."}]}
        message, made = formats.get("anthropic").decode(answer), list[str]()
        sys.setprofile(lambda frame, kind, _, made=made: made.append(kind))
        try:
            found = shorten_old([message], [0], policy=Policy(), counter=TokenCounter(), wanted=10 * count)
        finally:
            sys.setprofile(None)
        assert len(found.edits) == count
        steps.append(len(made))
    assert steps[1] < 3 * steps[0]


@pytest.mark.parametrize("policy", [Policy(), Policy(budgets={"shortened": 0.1}), *POLICIES.values()])
def test_a_provider_that_asks_for_thinking_that_was_left_out_as_bound_gets_it_back(policy: Policy) -> None:
    """DeepSeek behind Anthropic's API: its thinking has a signature like Claude's, and is bound to nothing."""
    wire: list[Any] = [{"role": "user", "content": "Read the files."}]
    refused: list[str] = []

    def send(view: list[Any]) -> dict[str, Any]:
        answers = [entry["content"] for entry in view if entry["role"] == "assistant"]
        if any(all(block["type"] != "thinking" for block in blocks) for blocks in answers):
            refused.append("The content[].thinking in the thinking mode must be passed back to the API.")
            raise ValueError(refused[-1])
        return {}

    compactor, results, passes = Compactor(window=8_000, policy=policy, summarizer=lambda _: "Read."), [], 0
    for n in range(60):
        wire += anthropic(n, copy.deepcopy(SIGNED))
        previous = results[-1].compaction if results else None
        compactor.call(send, wire, previous, format="anthropic", on_result=results.append)
        passes += any(event.name == "compaction_finished" for event in results[-1].events)
    assert 2 < passes < 8
    assert len(refused) < passes
    if policy.bound_thinking:
        assert len(refused) == 1, "what it has asked for once stays, not for one pass alone"
