"""A server that gives its calls no id, only an empty text, has agents that run: their clients answer under that. What
runs without us runs with us, in every format. Where the provider itself refuses an empty id, the view has another
one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.formats.reading import decoded, pairing

from contextfold import Compactor

Calls = Callable[[int], list[Any]]

OUTPUT = "the harbor was quiet, and nobody asked for papers; " * 4


def chat(number: int) -> list[Any]:
    calls = [
        {"id": "", "type": "function", "function": {"name": name, "arguments": f'{{"n": {number}}}'}} for name in "fg"
    ]
    results = [{"role": "tool", "tool_call_id": "", "content": f"{name} {number}: {OUTPUT}"} for name in "fg"]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def responses(number: int) -> list[Any]:
    calls = [{"type": "function_call", "call_id": "", "name": name, "arguments": f'{{"n": {number}}}'} for name in "fg"]
    results = [{"type": "function_call_output", "call_id": "", "output": f"{name} {number}: {OUTPUT}"} for name in "fg"]
    return [*calls, *results]


def anthropic(number: int) -> list[Any]:
    call = {"type": "tool_use", "id": "", "name": "f", "input": {"n": number}}
    result = {"type": "tool_result", "tool_use_id": "", "content": f"{number}: {OUTPUT}"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def bedrock(number: int) -> list[Any]:
    call = {"toolUse": {"toolUseId": "", "name": "f", "input": {"n": number}}}
    result = {"toolResult": {"toolUseId": "", "content": [{"text": f"{number}: {OUTPUT}"}]}}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def langchain(number: int) -> list[Any]:
    calls = [{"id": "", "name": name, "args": {"n": number}} for name in "fg"]
    return [
        AIMessage("", tool_calls=calls),
        *(ToolMessage(f"{name} {number}: {OUTPUT}", tool_call_id="") for name in "fg"),
    ]


PLAIN = {"role": "user", "content": "Go on."}
FORMATS = {
    "openai-chat": (PLAIN, chat),
    "openai-responses": (PLAIN, responses),
    "anthropic": (PLAIN, anthropic),
    "bedrock-converse": ({"role": "user", "content": [{"text": "Go on."}]}, bedrock),
    "langchain": (HumanMessage("Go on."), langchain),
}

NAMED = {"anthropic": ["_", "__2"], "bedrock-converse": ["_", "__2"]}
"""Formats whose providers refuse empty ids, and those of two calls in a view."""


@pytest.mark.parametrize("format", FORMATS)
def test_calls_with_empty_ids_keep_their_results_and_leave_with_them(format: str) -> None:
    request, calls = FORMATS[format]
    compactor = Compactor(window=4_000)
    short = [request, *calls(0), *calls(1)]
    view = compactor.compact(short, format=format).messages
    assert (view == short) is (format not in NAMED)
    assert pairing(decoded(view, format))[0] == NAMED.get(format, [""] * 4)

    long = [request, *(item for number in range(60) for item in calls(number))]
    result = compactor.compact(long, format=format)
    assert result.changed
    assert result.tokens_after < result.tokens_before
    assert not result.ledger.counts()["dropped"]

    asked, answered = pairing(decoded(result.messages, format))
    assert asked == answered
    assert asked
    assert all(asked) is (format in NAMED)

    longer = compactor.compact([*long, request], format=format, previous=result.compaction)
    assert not longer.changed
    assert longer.messages == [*result.messages, request]


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_with_an_empty_id_that_was_interrupted_gets_an_answer(format: str) -> None:
    request, calls = FORMATS[format]
    (asked, *_) = calls(0)
    view = Compactor(window=4_000).compact([request, asked, request], format=format).messages
    called, answered = pairing(decoded(view, format))
    assert called == answered
    assert set(called) == ({""} if format not in NAMED else {"_"})
