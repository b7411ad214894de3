"""A conversation is checked: would a provider take it, does it fit, could it be made to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from batch_talks import make_talk

from contextfold import Compactor
from contextfold.batch import CheckBatch

CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}


USER = {"role": "user", "content": "Go."}


def checked(messages: Any, window: int = 100_000, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = CheckBatch(window=window, **more)([{"messages": messages}])[0]
    assert found["error"] is None, found["error"]
    return {**found, "problems": json.loads(found["problems"])}


def test_a_sound_conversation_is_valid_and_fits() -> None:
    found = checked(make_talk(5))
    assert (found["valid"], found["fits"], found["compactable"]) == (True, True, True)
    assert found["problems"] == []
    assert found["tokens_before"] == Compactor(window=100_000).compact(make_talk(5)).tokens_before


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "user", "content": "Go."}, {"role": "tool", "tool_call_id": "a", "content": "x"}], "orphan result"),
        (
            [
                {"role": "user", "content": "Go."},
                {"role": "assistant", "tool_calls": [CALL]},
                {"role": "user", "content": "And?"},
            ],
            "dangling call",
        ),
        ([{"role": "user", "content": "Go."}, {"role": "assistant", "content": ""}, *make_talk(1)], "empty message"),
        ([], "no messages"),
        ([{"role": "system", "content": "Be good."}], "nothing but instructions"),
    ],
)
def test_what_a_provider_would_refuse_is_named(messages: list[Any], said: str) -> None:
    found = checked(messages)
    assert found["valid"] is False
    assert any(said in problem for problem in found["problems"]), found["problems"]
    assert found["problem_count"] == len(found["problems"])


def test_a_call_at_the_end_that_waits_for_its_result_is_no_fault() -> None:
    assert checked([{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [CALL]}])["valid"]


def test_calls_that_need_no_id_may_call_one_function_again() -> None:
    """Gemini's API leaves ids out, and OpenAI's older calls have none."""
    call, answer = {"name": "look", "args": {}}, {"name": "look", "response": {"output": "x"}}
    looking = [
        {"role": "model", "parts": [{"functionCall": call}, {"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": answer}, {"functionResponse": answer}]},
    ]
    older = [
        {"role": "assistant", "content": None, "function_call": CALL["function"]},
        {"role": "function", "name": "look", "content": "x"},
    ]
    for talk in ([{"role": "user", "parts": [{"text": "Go."}]}, *looking, *looking], [USER, *older, *older]):
        assert checked(talk)["problems"] == []
    again = [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "a", "content": "x"}]
    assert checked([USER, *again, *again])["problems"] == ["message 3: duplicate call id 'a'"]


def test_what_would_be_mended_before_it_is_sent_is_a_problem() -> None:
    """Anthropic refuses a call id with a blank; nothing else is wrong with it."""
    talk = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a b", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a b", "content": "seen"}]},
    ]
    assert not checked(talk)["valid"]
    sound = json.loads(json.dumps(talk).replace("a b", "ab"))
    assert checked(sound)["valid"]


def test_a_conversation_that_is_too_long_can_be_compacted_or_says_why_not() -> None:
    long = make_talk(40)
    found = checked(long, window=3_000)
    assert (found["fits"], found["compactable"], found["why_not"]) == (False, True, None)
    assert found["tokens_after"] <= found["target"] < 3_000 < found["tokens_before"]
    stuck = checked([{"role": "user", "content": "word " * 5_000}], window=3_000)
    assert (stuck["fits"], stuck["compactable"]) == (False, False)
    assert stuck["floor"] > 3_000
    assert "newest user message" in stuck["why_not"]


def test_what_is_no_conversation_has_an_error_and_no_judgement() -> None:
    found = CheckBatch(window=1_000)([{"messages": "what?"}])[0]
    assert found["error"]
    assert found["valid"] is found["fits"] is found["compactable"] is None
